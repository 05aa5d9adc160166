package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/verify/tree"
)

// Excused tells of required checks that failed and are not held against the work, in words
// that follow "but"; "" is none. Who hears that the checks passed has to hear of these, too:
// of what they look at nothing is known.
func (r *Result) Excused() string {
	var names []string
	for _, c := range r.Checks {
		if c.Status == Failed && c.Level == levelRequired && c.Excused {
			names = append(names, c.Name)
		}
	}
	switch n := len(names); n {
	case 0:
		return ""
	case 1:
		return names[0] + " fails without this work, too"
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1] + " fail without this work, too"
	}
}

// installed are directories in which package managers put what a project depends on, beside
// its sources: npm, pip and uv, Composer and Bundler, Mix, CocoaPods, Bower, Elm.
var installed = [...]string{"node_modules", ".venv", "venv", "vendor", "deps", "Pods", "bower_components", "elm-stuff"}

// notCarried says, where a check failed, that the copy has not got what the project's tree has
// of its dependencies: checks that need these fail at every commit alike, are excused for that,
// and then hold nothing.
func (v *Verifier) notCarried(r *Result, snap *tree.Snapshot) {
	if !slices.ContainsFunc(r.Checks, func(c CheckResult) bool { return c.Status == Failed }) {
		return
	}
	is := func(dir string) bool { fi, err := os.Stat(dir); return err == nil && fi.IsDir() }
	var gone []string
	for _, sub := range slices.Compact([]string{"", v.sub}) {
		for _, name := range installed {
			if name = filepath.Join(sub, name); is(filepath.Join(v.tree.Top, name)) && !is(filepath.Join(snap.Tree.Top, name)) {
				gone = append(gone, filepath.ToSlash(name))
			}
		}
	}
	if len(gone) == 0 {
		return
	}
	names := strings.Join(gone, ", ")
	r.Issues = append(r.Issues, Issue{Level: advisory, Gate: "tree", Message: fmt.Sprintf("git ignores %s, so the copy that checks run in has none of it; where they need it: `carry: [%s]` below `verify` in .reprise/project.yaml", names, names)})
}
