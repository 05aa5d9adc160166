package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"reprise/internal/clip"
	"reprise/internal/shellword"
)

// Verify is what a project's file says under verify: the checks that tell
// whether work is done. It runs programs, so it counts only in a text that the
// user approved; see [Paths.Trust].
type Verify struct {
	// Profile is the one to use whatever the risk is; "" or "auto" goes by risk.
	Profile string
	// Checks are the checks of each profile, in the order of [VerifyProfiles],
	// without those of the smaller ones; see [Verify.ChecksOf].
	Checks [len(verifyProfiles)][]Check
	// Risk is from what on a change asks for the profile, in the same order; that
	// of quick is not used.
	Risk [len(verifyProfiles)]Risk
	// Protected are patterns of paths whose change asks for the deep profile.
	Protected []string
	// Carry are directories that git ignores and that checks need.
	Carry []string
	// Env are variables that checks get beside the usual ones: NAME takes it from
	// the surroundings, NAME=value sets it.
	Env []string
	// OnFailure runs the quick profile after a tool has failed.
	OnFailure bool
	// Gates are further gates at the end of a turn; see [Gates].
	Gates []string
	// MaxMB bounds a snapshot, in MiB.
	MaxMB int
}

// Check is one command that tells whether work is done.
type Check struct {
	Name string
	// Shell is a line for the shell; Argv is a program and its arguments, without
	// one. One of the two is set.
	Shell string
	Argv  []string
	// Dir is where it runs, relative to the project's root, with slashes.
	Dir            string
	TimeoutSeconds int
	// Advisory says that a failure is told and keeps nobody from ending.
	Advisory bool
}

// Command is the check's command as a person reads it, and as a shell would.
func (c Check) Command() string {
	if c.Shell != "" {
		return c.Shell
	}
	return shellword.Join(c.Argv)
}

// Risk is from how much change on a profile is used: from either on. 0 is never.
type Risk struct {
	Files int `json:"files,omitempty"`
	Lines int `json:"lines,omitempty"` // added and removed
}

var (
	verifyProfiles = [...]string{"quick", "standard", "deep"}
	gateNames      = [...]string{"tests", "regressions", "tasks", "review"}
)

// VerifyProfiles are the profiles of checks, the smallest first.
func VerifyProfiles() []string { return verifyProfiles[:] }

// GateNames are the gates at the end of a turn.
func GateNames() []string { return gateNames[:] }

// Limits of what a project may ask for.
const (
	defaultCheckSeconds = 300
	maxCheckSeconds     = 3600
	maxChecks           = 50
	defaultSnapshotMB   = 2048
)

// defaultVerify has the thresholds that hold where the file gives none: what a
// person reads in a minute is small, what takes half an hour is not.
func defaultVerify() *Verify {
	v := &Verify{MaxMB: defaultSnapshotMB}
	v.Risk[1], v.Risk[2] = Risk{Files: 3, Lines: 50}, Risk{Files: 20, Lines: 800}
	return v
}

// Empty reports whether there is no check at all.
func (v *Verify) Empty() bool {
	return v == nil || len(v.Checks[0])+len(v.Checks[1])+len(v.Checks[2]) == 0
}

// ChecksOf are a profile's checks: those of the smaller profiles, then its own.
// A check of a name that a smaller profile has takes that one's place. Where
// nothing up to the profile is defined, the next larger one that has checks is
// taken, so that a profile never passes for having none.
func (v *Verify) ChecksOf(profile string) []Check {
	if v == nil {
		return nil
	}
	n := slices.Index(verifyProfiles[:], profile)
	var out []Check
	for i, list := range v.Checks {
		if i > n && len(out) > 0 {
			break
		}
		for _, c := range list {
			if at := slices.IndexFunc(out, func(o Check) bool { return o.Name == c.Name }); at >= 0 {
				out[at] = c
			} else {
				out = append(out, c)
			}
		}
	}
	return out
}

// Used is the profile whose checks [Verify.ChecksOf] gives for one: itself, or the
// next larger one where nothing up to it is defined.
func (v *Verify) Used(profile string) string {
	if v == nil {
		return profile
	}
	n := slices.Index(verifyProfiles[:], profile)
	for i, list := range v.Checks {
		if len(list) > 0 {
			return verifyProfiles[max(i, n)]
		}
	}
	return profile
}

// projectVerify reads what a project says of checks.
func (d *document) projectVerify(n ast.Node) *Verify {
	entries, ok := d.mapping("verify", n)
	if !ok {
		return nil
	}
	v := defaultVerify()
	for _, e := range entries {
		switch strings.TrimPrefix(e.key, "verify.") {
		case "profile":
			v.Profile = d.word(e, append([]string{"auto"}, verifyProfiles[:]...))
		case "on_failure":
			v.OnFailure = d.truth(e)
		case "carry":
			v.Carry = d.words(e, checkRelative)
		case "protected":
			v.Protected = d.words(e, checkPattern)
		case "env":
			v.Env = d.words(e, checkSetting)
		case "gates":
			v.Gates = d.words(e, func(s string) string { return notOneOf(s, gateNames[:]) })
		case "max_mb":
			if mb, ok := d.integer(e.key, e.value, 1, 1<<20); ok {
				v.MaxMB = mb
			}
		case "risk":
			d.verifyRisk(e, v)
		case "profiles":
			d.verifyProfiles(e, v)
		default:
			d.add(e.node, e.key, "is not a setting of a project", RemoveIt+"there are profile, profiles, risk, protected, carry, env, gates, on_failure and max_mb")
		}
	}
	return v
}

func (d *document) verifyRisk(e entry, v *Verify) {
	d.verifySections(e, verifyProfiles[1:], func(i int, inner entry) {
		into := &v.Risk[i+1]
		values, ok := d.mapping(inner.key, inner.value)
		if !ok {
			return
		}
		*into = Risk{}
		for _, s := range values {
			var field *int
			switch strings.TrimPrefix(s.key, inner.key+".") {
			case "files":
				field = &into.Files
			case "lines":
				field = &into.Lines
			default:
				d.add(s.node, s.key, "is not a setting of a project", RemoveIt+"there are files and lines")
				continue
			}
			if n, ok := d.integer(s.key, s.value, 0, 1<<30); ok {
				*field = n
			}
		}
	})
}

func (d *document) verifyProfiles(e entry, v *Verify) {
	total := 0
	d.verifySections(e, verifyProfiles[:], func(i int, inner entry) {
		var list []ast.Node
		switch s := inner.value.(type) {
		case *ast.SequenceNode:
			list = s.Values
		case nil, *ast.NullNode:
			return
		default:
			d.add(inner.value, inner.key, "is "+describe(inner.value)+", not a list", "write each check after \"- \"")
			return
		}
		for j, n := range list {
			if total++; total > maxChecks {
				d.add(n, inner.key, fmt.Sprintf("makes more than %d checks", maxChecks), "put some of them into one command")
				return
			}
			key := fmt.Sprintf("%s[%d]", inner.key, j)
			if c, ok := d.check(key, n); ok {
				if slices.ContainsFunc(v.Checks[i], func(o Check) bool { return o.Name == c.Name }) {
					d.add(n, key, fmt.Sprintf("has the name %q a second time", shown(c.Name)), "give each check of a profile a name of its own")
					continue
				}
				v.Checks[i] = append(v.Checks[i], c)
			}
		}
	})
}

// verifySections calls read for each entry of a section whose names are known.
func (d *document) verifySections(e entry, names []string, read func(i int, inner entry)) {
	entries, ok := d.mapping(e.key, e.value)
	if !ok {
		return
	}
	for _, inner := range entries {
		i := slices.Index(names, strings.TrimPrefix(inner.key, e.key+"."))
		if i < 0 {
			d.add(inner.node, inner.key, "is not a setting of a project", "write one of "+strings.Join(names, ", "))
			continue
		}
		read(i, inner)
	}
}

// check reads one check.
func (d *document) check(key string, n ast.Node) (Check, bool) {
	c := Check{TimeoutSeconds: defaultCheckSeconds, Dir: "."}
	before := len(d.errs)
	entries, ok := d.mapping(key, n)
	if !ok {
		return c, false
	}
	for _, e := range entries {
		switch strings.TrimPrefix(e.key, key+".") {
		case "name":
			if s, ok := d.str(e.key, e.value); ok {
				if problem := checkName(s); problem != "" {
					d.add(e.value, e.key, problem, "use at most 60 characters on one line")
				}
				c.Name = s
			}
		case "run":
			d.checkRun(e, &c)
		case "dir":
			if s, ok := d.str(e.key, e.value); ok {
				if problem := checkRelative(s); problem != "" && s != "." {
					d.add(e.value, e.key, problem, "write a path below the project's root")
				}
				c.Dir = s
			}
		case "timeout_seconds":
			if t, ok := d.integer(e.key, e.value, 1, maxCheckSeconds); ok {
				c.TimeoutSeconds = t
			}
		case "level":
			c.Advisory = d.word(e, []string{"required", "advisory"}) == "advisory"
		default:
			d.add(e.node, e.key, "is not a setting of a check", RemoveIt+"there are name, run, dir, timeout_seconds and level")
		}
	}
	if len(d.errs) == before && c.Shell == "" && len(c.Argv) == 0 {
		d.add(n, key+".run", "is missing", "write the command: a line for the shell, or a list of a program and its arguments")
	}
	if c.Name == "" {
		c.Name = shown(clip.Line(c.Command()))
	}
	return c, len(d.errs) == before
}

func (d *document) checkRun(e entry, c *Check) {
	if _, ok := e.value.(*ast.SequenceNode); ok {
		words, nodes, ok := d.list(e.key, e.value)
		if !ok {
			return
		}
		if len(words) == 0 || words[0] == "" {
			d.add(e.value, e.key, "names no program", "write the program first, then its arguments")
		}
		for i, w := range words {
			if strings.ContainsRune(w, 0) {
				d.add(nodes[i], e.key, "holds a NUL", "remove it")
			}
		}
		c.Argv = words
		return
	}
	if s, ok := d.str(e.key, e.value); ok {
		if strings.TrimSpace(s) == "" || strings.ContainsRune(s, 0) {
			d.add(e.value, e.key, "is no command", "write a line for the shell")
		}
		c.Shell = s
	}
}

// word is a text that must be one of a few.
func (d *document) word(e entry, words []string) string {
	s, ok := d.str(e.key, e.value)
	if ok && !slices.Contains(words, s) {
		d.add(e.value, e.key, fmt.Sprintf("%q is not one of its values", shown(s)), "write one of "+strings.Join(words, ", "))
	}
	return s
}

// words is a list of texts, each of which problem finds nothing wrong with.
func (d *document) words(e entry, problem func(string) string) []string {
	list, nodes, ok := d.list(e.key, e.value)
	if !ok {
		return nil
	}
	for i, s := range list {
		if p := problem(s); p != "" {
			d.add(nodes[i], fmt.Sprintf("%s[%d]", e.key, i), p, "correct it, or take it out")
		}
	}
	return list
}

// truth is yes or no, as YAML's truth value or as on and off.
func (d *document) truth(e entry) bool {
	if b, ok := e.value.(*ast.BoolNode); ok {
		return b.Value
	}
	if s, ok := e.value.(*ast.StringNode); ok && (s.Value == "on" || s.Value == "off") {
		return s.Value == "on"
	}
	d.add(e.value, e.key, "is "+describe(e.value)+", not yes or no", "write true or false")
	return false
}

func notOneOf(s string, words []string) string {
	if slices.Contains(words, s) {
		return ""
	}
	return fmt.Sprintf("%q is not one of %s", shown(s), strings.Join(words, ", "))
}

// checkRelative wants a path below the project, with slashes, that says plainly
// where it leads.
func checkRelative(s string) string {
	switch {
	case s == "":
		return "is empty"
	case strings.ContainsAny(s, "\\\x00"):
		return fmt.Sprintf("%q holds a backslash or a NUL", shown(s))
	case path.IsAbs(s) || len(s) > 1 && s[1] == ':':
		return fmt.Sprintf("%q is not relative", shown(s))
	case path.Clean(s) != strings.TrimSuffix(s, "/") || s == "." || s == ".." || strings.HasPrefix(s, "../"):
		return fmt.Sprintf("%q does not lead below the project", shown(s))
	case s == ".git" || strings.HasPrefix(s, ".git/"):
		return "is git's own"
	}
	return ""
}

func checkPattern(s string) string {
	switch {
	case s == "" || strings.ContainsAny(s, "\\\x00"):
		return fmt.Sprintf("%q is no pattern of paths", shown(s))
	case path.IsAbs(s):
		return fmt.Sprintf("%q is not relative", shown(s))
	}
	if _, err := path.Match(strings.ReplaceAll(s, "**", "*"), ""); err != nil {
		return fmt.Sprintf("%q is no pattern of paths", shown(s))
	}
	return ""
}

func checkSetting(s string) string {
	name, value, _ := strings.Cut(s, "=")
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return fmt.Sprintf("%q is not the name of a variable", shown(name))
		}
	}
	switch {
	case name == "" || strings.ContainsRune(value, 0):
		return fmt.Sprintf("%q sets no variable", shown(s))
	case strings.HasPrefix(name, "REPRISE_"):
		return "is one of reprise's own"
	}
	return ""
}

func checkName(s string) string {
	_, problem, _ := checkWord(Env{}, s)
	if problem == "" && len([]rune(s)) > 60 {
		return "is too long"
	}
	return problem
}

// IsVerifyProfile reports whether there is such a profile.
func IsVerifyProfile(s string) bool { return slices.Contains(verifyProfiles[:], s) }
