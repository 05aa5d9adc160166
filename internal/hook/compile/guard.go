package compile

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"reprise/internal/config"
	"reprise/internal/guard"
	"reprise/internal/shellword"
	"reprise/internal/workspace/find"
)

// Guard are the guard's rules as settings and project have them. What a project
// says only tightens.
func Guard(home *config.Home, env config.Env, program string) guard.Rules {
	s := home.Settings.Guard
	r := guard.Rules{
		Off: s.Mode == "off", Warn: s.Mode == "warn",
		Unattended: s.Profile == "unattended", Attended: s.Profile == "attended",
		ProjectCode: s.ProjectCode == "allow", Writes: s.Writes == "allow", MCP: s.MCP == "allow",
		Hosts: s.Hosts, Branches: s.Branches, Loose: s.Loosen,
	}
	if h, err := env.Home(); err == nil {
		r.Home = h
	}
	r.Roots = roots(home, env)
	add := func(d guard.Decision, shapes []string, from string) {
		key, file, listed := strings.Cut(from, " in ")
		for i, shape := range shapes {
			if listed {
				from = key + "[" + strconv.Itoa(i) + "] in " + file
			}
			r.List = append(r.List, guard.Rule{Decision: d, Shape: shape, From: from})
		}
	}
	add(guard.Deny, s.Deny, "guard.deny in "+home.Source)
	add(guard.Ask, s.Ask, "guard.ask in "+home.Source)
	add(guard.Allow, s.Allow, "guard.allow in "+home.Source)
	if p := home.Project; p != nil {
		if g := p.Guard; g != nil {
			add(guard.Deny, g.Deny, "guard.deny in "+p.File())
			add(guard.Ask, g.Ask, "guard.ask in "+p.File())
			if len(g.Branches) > 0 {
				if len(r.Branches) == 0 {
					r.Branches = guard.UsualBranches()
				}
				r.Branches = append(slices.Clone(r.Branches), g.Branches...)
			}
		}
		if t, err := home.Paths.Trust(p); err == nil && t.Approved {
			r.List = append(r.List, checks(t.Says.Verify)...)
		}
	}
	r.Own = own(home, program)
	if p := home.Project; p != nil {
		_, r.Workspace = find.Of(home.Paths.ProjectDir(p.Name), guard.Resolve(env.Dir))
	}
	if j := home.Settings.Judge; s.Judge != "off" && j.Client != "" && slices.Contains(j.Purposes, "guard") {
		r.Full, r.WaitMS = true, j.TimeoutSeconds*1000
	}
	if s.Pending == "on" {
		r.Full, r.WaitMS = true, max(r.WaitMS, s.PendingMS)
	}
	return r
}

// roots are the directories of the work: the project's, the working tree's, the
// session's own, and those of the settings.
func roots(home *config.Home, env config.Env) []string {
	var out []string
	add := func(dir string) {
		if dir != "" && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	if home.Project != nil {
		add(home.Project.Root)
	}
	if top := workingTree(env.Dir); top != "" {
		add(top)
	} else {
		add(env.Dir)
	}
	for _, d := range home.Settings.Guard.Roots {
		add(d)
	}
	return out
}

// workingTree is the top of the working tree that a directory is in, "" outside
// any.
func workingTree(dir string) string {
	for d := dir; filepath.IsAbs(d); d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	return ""
}

// own are reprise's own places. What decides about agents is not theirs to
// change, nor is the memory, which has tools of its own.
func own(home *config.Home, program string) []string {
	p := home.Paths
	out := []string{p.Data, p.State, p.Cache, filepath.Dir(p.ConfigFile), home.Settings.Memory.Directory}
	if home.Source != "" {
		out = append(out, home.Source)
	}
	for _, name := range [...]string{"reprise", "reprise-hook", "reprise-supervise"} {
		if filepath.IsAbs(program) {
			out = append(out, filepath.Join(filepath.Dir(program), name))
		}
	}
	return slices.DeleteFunc(out, func(d string) bool { return !filepath.IsAbs(d) })
}

// checks are the shapes of a trusted project's checks: what the user approved to
// be run for it may be run by its agents, word by word. A line for the shell counts
// where it is nothing but words; others are asked about, for what they do depends on
// where they are run.
func checks(v *config.Verify) []guard.Rule {
	var out []guard.Rule
	if v == nil {
		return nil
	}
	for _, list := range v.Checks {
		for _, c := range list {
			argv := c.Argv
			if c.Shell != "" {
				argv = plainWords(c.Shell)
			}
			if len(argv) == 0 || argv[0] == "" || slices.ContainsFunc(argv, func(w string) bool { return strings.ContainsFunc(w, unicode.IsControl) }) {
				continue
			}
			r := guard.Rule{Decision: guard.Allow, From: "a trusted check of the project"}
			if slices.ContainsFunc(argv, func(w string) bool { return w == "" || strings.ContainsAny(w, " *") || w == "..." }) {
				r.Shape, r.Words = shellword.Join(argv), argv
			} else {
				r.Shape = strings.Join(argv, " ")
			}
			if !slices.ContainsFunc(out, func(o guard.Rule) bool { return o.Shape == r.Shape && (len(o.Words) > 0) == (len(r.Words) > 0) }) {
				out = append(out, r)
			}
		}
	}
	return out
}

// plainWords are the words of a line that any shell takes as they stand there; nil
// where one means something to it.
func plainWords(line string) []string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(" \t_-./:@+,=", r)
	}
	line = strings.Trim(line, " \t\n") // a block of text in YAML ends in a line's end
	if strings.ContainsFunc(line, special) {
		return nil
	}
	words := strings.Fields(line)
	for i, w := range words {
		if i == 0 && strings.Contains(w, "=") || w[0] == '=' { // sets a variable; zsh looks up a program
			return nil
		}
	}
	return words
}
