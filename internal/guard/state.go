package guard

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of what is followed. Whatever is beyond them is asked about.
const (
	maxText   = 64 << 10 // bytes of a command
	maxDepth  = 12       // commands inside commands inside commands
	maxNested = 150      // open brackets, quotes and blocks at one place
	maxSteps  = 60_000   // steps of looking at one call
	maxPlaces = 6        // directories that a command may be in
)

// value is what is known of a variable.
type value struct {
	known  bool // w is its value, known at least in part
	w      word
	origin origin // of a value that is not known
	dotted bool   // paths that begin with ./
	list   []word // of an array
}

// binding is one assignment; they form a list, the latest first, that copies of
// a state share.
type binding struct {
	name string
	v    value
	next *binding
}

type function struct {
	name string
	body *syntax.Stmt
	next *function
}

// state is what holds at a place of a command.
type state struct {
	cwds      []string // resolved directories that it may be in; nil: not known
	linked    bool     // cd went through a link, so that .. has two meanings
	vars      *binding
	funcs     *function
	calls     []string // functions that it is in
	args      []word   // $1…
	argsKnown bool
	stack     [][]string // of pushd; nil: none, or not known
	old       []string   // where cd - leads; nil: not known
	in        source     // standard input
	cleared   bool       // the environment was taken away
	posix     bool       // the shell may be one that knows POSIX only
	changed   []string
}

// borrow is a copy for the time of a call: what has been given back is used again,
// because commands are many and each page that is touched costs.
func (a *analysis) borrow(st *state) *state {
	n := len(a.spare)
	if n == 0 {
		return st.fork()
	}
	c := a.spare[n-1]
	a.spare = a.spare[:n-1]
	*c = *st
	return c
}

func (a *analysis) giveBack(st *state) { a.spare = append(a.spare, st) }

func (st *state) fork() *state {
	c := *st
	return &c
}

// bound reports whether something was assigned to a variable, or may have been.
func (st *state) bound(name string) bool {
	for b := st.vars; b != nil; b = b.next {
		if b.name == name || b.name == "" {
			return true
		}
	}
	return false
}

// number reports whether a value is known to be one.
func (v value) number() bool {
	return v.list == nil && (!v.known && v.origin == numbers || v.known && v.w.known() && v.w.text != "" && strings.Trim(v.w.text, "0123456789") == "")
}

// ownValue reports whether a variable has a value that the shell gives it, whatever is
// assigned.
func ownValue(name string) bool {
	switch name {
	case "UID", "EUID", "PPID", "GROUPS", "RANDOM", "SRANDOM", "SECONDS", "LINENO", "EPOCHSECONDS", "EPOCHREALTIME", "HISTCMD", "DIRSTACK", "FUNCNAME", "PIPESTATUS", "_":
		return true
	}
	return strings.HasPrefix(name, "BASH_") || name == "BASHPID" || strings.HasPrefix(name, "COMP_")
}

func (st *state) bind(a *analysis, name string, v value) {
	a.step(1)
	a.taint(name, v)
	switch name {
	case "OLDPWD":
		st.old = nil
	case "DIRSTACK":
		st.stack = nil // an element of it is a directory of pushd's
	case "":
		st.old, st.stack = nil, nil
	}
	switch {
	case a.fixed[name], ownValue(name) && !v.number():
		v = value{}
	case ownValue(name):
		v = value{origin: numbers}
	}
	st.vars = &binding{name: name, v: v, next: st.vars}
}

// lookup is what is known of a variable.
func (st *state) lookup(a *analysis, name string) value {
	for b := st.vars; b != nil; b = b.next {
		a.step(1)
		if b.name == name || b.name == "" {
			return b.v
		}
	}
	if a.closing != nil {
		if v, ok := a.closing.g.vars[name]; ok {
			return value{known: true, w: word{text: v, made: true}}
		}
	}
	switch name {
	case "PWD":
		if len(st.cwds) == 1 {
			return value{known: true, w: word{text: st.cwds[0], made: true}}
		}
	case "HOME":
		if a.r.Home != "" {
			return value{known: true, w: word{text: a.r.Home, made: true}}
		}
	case "TMPDIR", "INTERRUPT_FILE", "ERROR_FILE", "PROGRESS_FILE": // the last three are of a session that the loop started
		if v := a.r.env(name); filepath.IsAbs(v) {
			return value{known: true, w: word{text: v, made: true}}
		}
	}
	if len(name) == 1 && name[0] >= '1' && name[0] <= '9' && st.argsKnown {
		if i := int(name[0] - '1'); i < len(st.args) && !anySplit(st.args[:i+1]) {
			return value{known: true, w: st.args[i]}
		}
	}
	return value{}
}

func anySplit(list []word) bool {
	return slices.ContainsFunc(list, func(w word) bool { return w.split })
}

// forget makes everything that is known of variables unknown.
func (st *state) forget(a *analysis) { st.bind(a, "", value{}) }

// join takes over what may have happened in branches, of which one or none ran.
func (st *state) join(a *analysis, branches ...*state) {
	for _, b := range branches {
		if !slices.EqualFunc(st.stack, b.stack, slices.Equal[[]string]) {
			st.stack = nil
		}
		if !slices.Equal(st.old, b.old) {
			st.old = nil
		}
		for v := b.vars; v != nil && v != st.vars; v = v.next {
			a.step(1)
			st.changed = append(st.changed, v.name)
		}
		st.stay(b.cwds)
		st.linked = st.linked || b.linked
		st.funcs = b.funcs
		if !sameArgs(st, b) {
			st.args, st.argsKnown = nil, false
		}
	}
	for _, name := range st.changed {
		number := a.numeric(name, st) || a.isUnset(name, st)
		for _, b := range branches {
			number = number && (a.numeric(name, b) || a.isUnset(name, b))
		}
		v := value{}
		if number {
			v.origin = numbers
		}
		st.bind(a, name, v)
	}
	st.changed = nil
}

// stay adds directories that the command may be in.
func (st *state) stay(cwds []string) {
	if st.cwds == nil || cwds == nil {
		st.cwds = nil
		return
	}
	var add []string
	for _, d := range cwds {
		if !slices.Contains(st.cwds, d) {
			add = append(add, d)
		}
	}
	if len(add) == 0 {
		return
	}
	st.cwds = append(slices.Clone(st.cwds), add...)
	if len(st.cwds) > maxPlaces {
		st.cwds = nil
	}
}

// source is what a command writes out, and the next one in a pipe reads.
type source struct {
	there   bool // there is something to read
	fixed   bool // text is all of it
	text    string
	doubt   bool // another shell writes another text
	origin  origin
	dotted  bool // paths that begin with ./ or an absolute directory
	file    bool // it is what stands in files of the work
	net     bool // it comes from another machine
	solid   bool // no blank is in it
	endless endless
	sum     bool // numbers, with signs between them
	what    string
	// script says that the shell has its commands from here, more that further lines
	// of them follow; there is nothing else then.
	script, more bool
}

// and is what comes out when both write to the same place.
func (s source) and(t source) source {
	switch {
	case !s.there:
		return t
	case !t.there:
		return s
	case s.fixed && t.fixed && len(s.text)+len(t.text) <= maxText:
		s.text += t.text
		s.doubt = s.doubt || t.doubt
		return s
	}
	out := source{there: true, file: s.file && t.file, net: s.net || t.net, endless: max(s.endless, t.endless), what: t.what}
	out.origin = s.ofWhat().with(t.ofWhat())
	out.dotted = out.origin != anything && s.dotted && t.dotted
	return out
}

// ofWhat is what is known of each line: of a text that is known only whether it is numbers.
func (s source) ofWhat() origin {
	switch {
	case !s.fixed:
		return s.origin
	case strings.Trim(s.text, "0123456789\n") == "":
		return numbers
	}
	return anything
}

// assigned are the names that are given values anywhere in a piece of a
// command, and in the functions that it calls, with whether all of these are
// numbers; all says that it cannot be told.
func (a *analysis) assigned(n syntax.Node, funcs *function) (list map[string]bool, all bool) {
	list = map[string]bool{}
	var called []*function
	add := func(name string, number bool) {
		old, ok := list[name]
		list[name] = number && (old || !ok)
	}
	given := func(w *syntax.Word) {
		text, _ := writtenOut(w)
		if name, _, _ := strings.Cut(text, "="); syntax.ValidName(name) {
			add(name, false)
		}
	}
	look := func(n syntax.Node) bool {
		a.step(1)
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name == nil && n.Value != nil {
				given(n.Value) // of declare "x=y"
			}
			if n.Name != nil {
				add(n.Name.Value, n.Index == nil && n.Array == nil && n.Value != nil && isNumber(n.Value.Parts))
			}
		case *syntax.WordIter:
			add(n.Name.Value, false)
		case *syntax.ParamExp:
			if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) && n.Param != nil {
				add(n.Param.Value, false)
			}
		case *syntax.BinaryArithm:
			if w, ok := n.X.(*syntax.Word); ok && syntax.ValidName(w.Lit()) && n.Op.String() != "==" && len(n.Op.String()) > 0 && n.Op.String()[len(n.Op.String())-1] == '=' {
				add(w.Lit(), true)
			}
		case *syntax.UnaryArithm:
			if w, ok := n.X.(*syntax.Word); ok && syntax.ValidName(w.Lit()) {
				add(w.Lit(), true)
			}
		case *syntax.CallExpr:
			name, args := calledBy(n.Args)
			for f := funcs; f != nil; f = f.next {
				if f.name == name && !slices.Contains(called, f) {
					called = append(called, f)
				}
			}
			switch name {
			case "read", "mapfile", "readarray", "printf", "getopts", "unset", "export", "declare", "local", "typeset", "readonly", "let":
				for _, w := range args {
					given(w)
				}
			case "eval", "source", ".":
				all = true
			}
		}
		return true
	}
	syntax.Walk(n, look)
	for i := 0; i < len(called); i++ { // which may call others
		syntax.Walk(called[i].body, look)
	}
	return list, all
}

// calledBy is the constant name that a call begins with, behind what only says where
// it is looked for, and the words after it.
func calledBy(words []*syntax.Word) (string, []*syntax.Word) {
	for len(words) > 0 {
		name, _ := writtenOut(words[0])
		words = words[1:]
		if name != "command" && name != "builtin" && !strings.HasPrefix(name, "-") {
			return name, words
		}
	}
	return "", nil
}

// writtenOut is the text of a word that is written out, with quotes or without; ok is
// false where a part of it is an expansion.
func writtenOut(w *syntax.Word) (text string, ok bool) {
	var b strings.Builder
	for _, p := range w.Parts {
		parts := []syntax.WordPart{p}
		if q, quoted := p.(*syntax.DblQuoted); quoted {
			parts = q.Parts
		}
		for _, p := range parts {
			switch p := p.(type) {
			case *syntax.Lit:
				b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
			case *syntax.SglQuoted:
				b.WriteString(p.Value)
			default:
				return b.String(), false
			}
		}
	}
	return b.String(), true
}

// isNumber reports whether a word comes to a number: digits, or a calculation.
func isNumber(parts []syntax.WordPart) bool {
	if len(parts) != 1 {
		return false
	}
	switch p := parts[0].(type) {
	case *syntax.Lit:
		return p.Value != "" && strings.Trim(p.Value, "0123456789") == ""
	case *syntax.ArithmExp:
		return true
	case *syntax.DblQuoted:
		return isNumber(p.Parts)
	case *syntax.ParamExp:
		return p.Length
	}
	return false
}

// unsure makes what a piece of a command assigns unknown, for it may run any
// number of times.
func (a *analysis) unsure(st *state, n syntax.Node) {
	list, all := a.assigned(n, st.funcs)
	if all {
		st.forget(a)
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		v := value{}
		if list[name] && (a.numeric(name, st) || a.isUnset(name, st)) {
			v.origin = numbers
		}
		st.bind(a, name, v)
	}
}
