package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"reprise/internal/guard/know"
)

// A shell that takes its commands from what it reads shares it with them: what one of
// them reads there is no command any more, so that a quote in it is not opened, and
// the lines behind it are others than they look. After `exec <FILE` it goes on with
// the commands of FILE.

// eats judges a program that may read the text that its shell has the next commands
// from.
func (a *analysis) eats(argv []word, st *state) {
	if st.in.more && !a.readsNothing(argv, st) {
		a.give("read-two-ways", Ask, argv[0].shown(), "it may read from the text that the shell takes its commands from, of which the rest is then another", "give it </dev/null, or give the shell its commands by -c")
	}
}

// readsNothing reports whether a program leaves its standard input alone.
func (a *analysis) readsNothing(argv []word, st *state) bool {
	name := argv[0].text
	input := know.InputOf(name)
	switch {
	case input == know.Reads:
		return false
	case input == know.Leaves, builtin(name) != nil:
		return true
	}
	for _, w := range argv[1:] {
		if !w.known() && !w.origin.names() && w.origin != numbers || w.text == "-" || strings.HasSuffix(w.text, "=-") || strings.HasPrefix(w.text, "--batch") || strings.Contains(w.text, "stdin") || strings.Contains(w.text, "/fd/0") {
			return false
		}
	}
	if input == know.LeavesKnown {
		return !slices.ContainsFunc(argv, func(w word) bool { return know.InputOf(name+" "+w.text) == know.Reads })
	}
	p := know.Find(name)
	if p == nil {
		return true // it is asked about in any case
	}
	mark := len(a.options)
	g := a.parseArgs(p, argv[1:], st)
	a.options = a.options[:mark]
	looks := p.Wraps || g.has("-r") && strings.HasSuffix(name, "grep")
	for i := range g.operands {
		op := p.OperandAt(i, len(g.operands), g.has)
		looks = looks || op != nil && (op.Kind == know.Read || op.Kind == know.Look)
	}
	return looks || p.Cwd && input != know.WithoutFile
}

// turnsTo judges a command by which a shell may go on with the commands of a file.
func (a *analysis) turnsTo(s *syntax.Stmt, st *state) {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !st.in.script || !ok || len(c.Args) == 0 {
		return
	}
	switch c.Args[0].Lit() {
	case "exec", "command", "builtin", "": // the last one is quoted, or not known
	default:
		return
	}
	for _, r := range s.Redirs {
		input := r.Op == syntax.RdrIn || r.Op == syntax.RdrInOut || r.Op == syntax.DplIn || r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc
		if input && r.N == nil || r.N != nil && strings.TrimLeft(r.N.Value, "0") == "" {
			a.give("read-two-ways", Ask, a.source(s), "the shell goes on with the commands that it reads there", "give the shell its commands by -c")
			return
		}
	}
}
