package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"reprise/internal/guard/names"
)

// redirects judges the redirections of a statement. in is what they give it to
// read; away says that what it writes out goes elsewhere.
func (a *analysis) redirects(s *syntax.Stmt, st *state) (in source, away bool) {
	if len(s.Redirs) == 0 {
		return in, away
	}
	fedBy, feeding := a.fedBy, a.feeding
	defer func() { a.fedBy, a.feeding = fedBy, feeding }()
	a.fedBy, a.feeding = "", true
	if c, ok := s.Cmd.(*syntax.CallExpr); ok && len(c.Args) > 0 {
		if name, _ := calledBy(c.Args); !isFunction(name, st) {
			a.fedBy = name
		}
	}
	for _, r := range s.Redirs {
		a.step(1)
		if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
			a.counted(strings.Trim(r.N.Value, "{}"), st)
		}
		first := r.N == nil || r.N.Value == "0" || r.N.Value == "1"
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			body := a.hereDocument(r, st)
			a.says(body, st)
			if a.closing != nil {
				a.closing.text(a, body, st)
			}
			if first {
				in = source{there: true, fixed: body.known(), text: body.text}
			}
		case syntax.WordHdoc:
			w := a.value(r.Word, st)
			a.says(w, st)
			if first {
				in = source{there: true, fixed: w.known(), text: w.text + "\n", origin: w.origin}
			}
		case syntax.RdrIn:
			in = a.readFrom(r, st)
		case syntax.DplIn, syntax.DplOut:
			w := a.target(r, st)
			if w.known() && strings.Trim(w.text, "0123456789") == "" || w.text == "-" || strings.HasSuffix(w.text, "-") && strings.Trim(w.text, "0123456789-") == "" {
				if r.Op == syntax.DplOut && w.text != "1" && (r.N == nil || r.N.Value == "1") {
					away = true
				}
				if r.Op == syntax.DplIn && first && w.text != "0" {
					in = source{there: true, what: unseen} // what was opened there is not followed
				}
				break
			}
			if r.Op == syntax.DplIn {
				a.path(w, use{read: true}, st)
			}
			a.path(w, use{}, st)
			away = true
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrInOut, syntax.RdrAll, syntax.AppAll:
			w := a.target(r, st)
			if a.closing != nil {
				a.closing.say(a.closing.word(a, w, use{shallow: true}, st))
				a.closing.into = a.closing.into || (r.N == nil || r.N.Value == "1") && w.text != "/dev/null"
			}
			a.path(w, use{}, st)
			away = away || r.N == nil || r.N.Value == "1"
		default:
			a.give("unknown-syntax", Ask, r.Op.String(), "this redirection is not one of bash's", "use > or >>")
			a.path(a.target(r, st), use{}, st)
		}
	}
	return in, away
}

// readFrom judges what a command is given to read by <: a file, or what another command
// writes.
func (a *analysis) readFrom(r *syntax.Redirect, st *state) source {
	if len(r.Word.Parts) == 1 {
		if p, ok := r.Word.Parts[0].(*syntax.ProcSubst); ok && p.Op == syntax.CmdIn {
			a.indirect()
			out := a.inner(p.Stmts, st)
			out.there = true
			return out
		}
	}
	w := a.target(r, st)
	a.path(w, use{read: true}, st)
	if w.known() && standardInput(w.text) && w.text != "-" {
		in := st.in
		in.there = true
		return in
	}
	return source{there: true, endless: endlessFile(w.text), file: !strings.HasPrefix(w.text, "/dev/") && !strings.HasPrefix(w.text, "/proc/"), what: w.text}
}

// hereDocument is the text of a here-document. Where a part of its delimiter is
// quoted it stands as it is written; else a backslash means something before $, `,
// itself and a line's end only, unlike in any other word.
func (a *analysis) hereDocument(r *syntax.Redirect, st *state) word {
	if r.Hdoc == nil {
		return word{}
	}
	raw := false
	for _, p := range r.Word.Parts {
		l, ok := p.(*syntax.Lit)
		raw = raw || !ok || strings.Contains(l.Value, `\`)
	}
	b := wordBuilder{a: a, st: st, src: a.source(r.Hdoc)}
	for _, p := range r.Hdoc.Parts {
		l, ok := p.(*syntax.Lit)
		switch {
		case !ok:
			b.part(p, false, true)
		case raw:
			b.text(l.Value, true)
		default:
			b.text(unquote(l.Value, "$`\\"), true)
		}
	}
	b.have = true // it may be empty
	got := b.end()[0]
	if r.Op == syntax.DashHdoc {
		lines := strings.Split(got.text, "\n")
		for i, l := range lines {
			lines[i] = strings.TrimLeft(l, "\t")
		}
		got.text = strings.Join(lines, "\n")
	}
	return got
}

// target is what a redirection names: one word, or bash refuses it.
func (a *analysis) target(r *syntax.Redirect, st *state) word {
	a.cur = current{text: a.source(r)}
	w := a.value(r.Word, st)
	return w
}

// assignment judges NAME=VALUE. exported says that programs see it, be it only
// the one that it stands before.
func (a *analysis) assignment(name string, v word, exported bool, st *state) {
	if a.closing != nil && name == "PATH" {
		a.closing.distrust = true
	}
	a.cur = current{text: name + "=" + v.text}
	switch names.Variable(name) {
	case names.Cosmetic:
		return
	case names.Loading:
		a.give("environment-loads", Deny, name, "the variable loads code into programs, or decides about the guard, its limits or the project's hooks", "leave it as it is")
	case names.Steering:
		if name == "GOFLAGS" && a.r.ProjectCode && goFlags(v) {
			return
		}
		if strings.HasSuffix(name, "PAGER") && v.known() && !v.glob && (v.text == "cat" || v.text == "") {
			return // as where there is none
		}
		a.give("environment", Ask, name, "the variable can lead programs to other code, settings or places", "leave it out, or set one that is known to be harmless, such as LC_ALL, TZ or NO_COLOR")
	case names.Plain:
		if a.r.ProjectCode && plainSetting(v) {
			return // the project's own, for its tests: it leads nowhere
		}
		if a.exporting && a.r.env(name) == "" {
			a.exports = append(a.exports, name)
		} else if exported || a.r.env(name) != "" {
			a.give("environment", Ask, name, "it is not known what the variable does to the program", "leave it out, or allow the command by a rule")
		}
	}
}

// plainSetting reports whether a variable's value is a number or a word such as are given to
// tests, which names no file and no program.
func plainSetting(v word) bool {
	if !v.known() || v.glob || len(v.text) > 12 {
		return false
	}
	switch strings.ToLower(v.text) {
	case "true", "false", "yes", "no", "on", "off", "trace", "debug", "info", "warn", "warning", "error", "test", "tests", "testing", "dev", "development", "ci", "local", "full", "short", "verbose", "quiet", "silent":
		return true
	}
	return strings.Trim(v.text, "0123456789") == ""
}

// goFlags reports whether GOFLAGS has only options that name no file and no program.
func goFlags(v word) bool {
	if !v.known() || v.glob {
		return false
	}
	for _, f := range strings.Fields(v.text) {
		name, value, given := strings.Cut(f, "=")
		switch name {
		case "-count", "-p", "-parallel", "-timeout", "-cpu", "-short", "-v", "-race", "-failfast", "-trimpath", "-buildvcs", "-json", "-cover":
		case "-mod":
			if value != "readonly" && value != "vendor" {
				return false
			}
		case "-tags":
			if !given || strings.ContainsAny(value, "/@") {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// assign evaluates one assignment of the shell's grammar.
func (a *analysis) assign(n *syntax.Assign, exported bool, st *state) {
	a.step(1)
	name := n.Name.Value
	a.arith(n.Index, st)
	var v value
	var w word
	switch {
	case n.Array != nil:
		v.list = []word{}
		for _, e := range n.Array.Elems {
			if e.Index != nil {
				a.arith(e.Index, st)
				v.list = nil
			}
			got := a.fields(e.Value, st)
			if v.list != nil {
				v.list = append(v.list, got...)
			}
			w.secret = w.secret || anySecret(got)
			a.taint(name, value{list: got})
		}
		w.text, w.secret = unknown, w.secret || anySecret(v.list)
		if n.Append || anyGlob(v.list) {
			v = value{w: word{secret: w.secret}}
		}
	case n.Value != nil:
		w = a.value(n.Value, st)
		v = value{known: true, w: w, origin: w.origin}
		if w.text == unknown {
			v = value{origin: w.origin, dotted: !w.dashed, w: word{process: w.process, secret: w.secret, told: w.told}}
		}
	case n.Naked:
		return
	default:
		v = value{known: true}
	}
	a.assignment(name, w, exported, st)
	if n.Append || n.Index != nil {
		old := st.lookup(a, name)
		if v.known && old.known && n.Index == nil && old.list == nil && len(old.w.text)+len(v.w.text) <= maxText {
			v.w.text = old.w.text + v.w.text
		} else {
			v = value{w: word{secret: w.secret || old.w.secret}}
		}
	}
	a.gets(name, v, st)
	st.bind(a, name, v)
}

// isInteger notes a variable that is declared one.
func (a *analysis) isInteger(name string, yes bool) {
	if !yes {
		return
	}
	if a.integers == nil {
		a.integers = map[string]bool{}
	}
	a.integers[name] = true
}

// gets judges what a variable is given: one that is declared an integer, and a
// few of the shell's own, evaluate it.
func (a *analysis) gets(name string, v value, st *state) {
	switch name {
	case "RANDOM", "SRANDOM", "OPTIND", "HISTCMD", "SECONDS", "LINENO":
	default:
		if !a.integers[name] {
			return
		}
	}
	switch {
	case v.origin == numbers && !v.known:
	case v.known:
		a.evaluated(v.w, st)
	default:
		a.evaluated(word{text: unknown, src: name}, st)
	}
}

func anyGlob(list []word) bool {
	for _, w := range list {
		if w.glob && strings.ContainsAny(w.text, "*?[") || w.split {
			return true
		}
	}
	return false
}

// shows judges that the value of a variable is printed.
func (a *analysis) shows(name string, st *state) {
	secret := a.holdsSecret(name, st.lookup(a, name)) || name == "BASH_REMATCH" && a.rematched
	a.says(word{text: name, src: name, secret: secret}, st)
}

// declares judges a word of declare that makes a name while it runs.
func (a *analysis) declares(w word, exported, integer bool, st *state) {
	name, val, _ := strings.Cut(w.text, "=")
	if strings.HasPrefix(val, "(") {
		a.evaluated(word{text: val + "$", src: w.src}, st)
	}
	if strings.HasPrefix(name, "BASH_FUNC_") {
		a.assignment(name, word{text: val}, exported, st)
	}
	if !syntax.ValidName(strings.TrimSuffix(name, "+")) {
		a.subscript(w)
		return
	}
	name = strings.TrimSuffix(name, "+")
	v := value{known: true, w: word{text: val, src: w.src}}
	a.assignment(name, v.w, exported, st)
	a.isInteger(name, integer)
	a.locals = append(a.locals, name)
	a.gets(name, v, st)
	st.bind(a, name, v)
}

// declare judges export, declare, local and their like.
func (a *analysis) declare(c *syntax.DeclClause, st *state) {
	variant := c.Variant.Value
	exported, integer, nameref, whole, fixed := variant == "export", false, false, false, variant == "readonly"
	prints, worded := false, false
	a.cur = current{text: a.source(c)}
	a.exporting = exported // by export alone: nothing is started by it
	defer func() { a.exporting = false }()
	count := 0
	for _, n := range c.Args {
		if n.Name != nil {
			count++
			continue
		}
		// Options, and words that make names while it runs.
		for _, w := range a.fields(n.Value, st) {
			switch {
			case !w.known():
				worded = true
				a.give("dynamic-name", Ask, w.shown(), "which variable this declares is only known when it runs", "write the name out")
			case strings.HasPrefix(w.text, "-") || strings.HasPrefix(w.text, "+"):
				for _, o := range w.text[1:] {
					switch o {
					case 'x':
						exported = true
					case 'i':
						integer = true
					case 'n':
						nameref = true
					case 'g':
						whole = true
					case 'r':
						fixed = true
					case 'p':
						prints = true
					case 'a', 'A':
					case 'l', 'u', 'c':
						a.give("declare-option", Ask, w.text, "this option changes what is assigned", "leave it out")
					case 'f', 'F', 't', 'I':
						a.give("declare-option", Ask, w.text, "this option makes functions or traces known to other commands", "leave it out")
					default:
						a.give("unknown-option", Ask, w.text, "it is not known what the option does", "leave it out")
					}
				}
			default:
				worded = true
				if prints {
					a.shows(w.text, st)
					break
				}
				a.declares(w, exported, integer, st)
			}
		}
	}
	if count == 0 && !worded && (exported || prints || len(c.Args) == 0 || variant == "declare" || variant == "typeset") {
		a.give("shows-environment", Ask, variant, "it prints the values of variables, secrets among them", "print the one variable that is wanted")
		a.reads(variant)
	}
	for _, n := range c.Args {
		if n.Name == nil {
			continue
		}
		if fixed {
			defer a.fix(n.Name.Value)
		}
		// zsh prints a variable that is declared without an option and a value.
		if prints || n.Naked && count == len(c.Args) && len(st.calls) == 0 && (variant == "declare" || variant == "typeset") {
			a.shows(n.Name.Value, st)
		}
		if prints && n.Naked {
			continue // nothing is declared
		}
		if nameref {
			a.give("nameref", Ask, n.Name.Value, "a reference hides which variable is meant", "use the variable itself")
		}
		a.isInteger(n.Name.Value, integer)
		a.locals = append(a.locals, n.Name.Value)
		if integer && n.Value != nil {
			a.evaluated(a.value(n.Value, st), st)
			a.counted(n.Name.Value, st)
			continue
		}
		if n.Naked && exported {
			v := st.lookup(a, n.Name.Value)
			a.assignment(n.Name.Value, v.w, true, st)
			continue
		}
		a.assign(n, exported, st)
		if n.Naked && variant != "readonly" {
			a.lost(n.Name.Value, st)
			switch { // in a function it is another variable from here on
			case len(st.calls) == 0:
			case st.posix || whole: // dash keeps the value, and -g means the one outside
				st.bind(a, n.Name.Value, value{})
			default:
				st.bind(a, n.Name.Value, value{known: true})
			}
		}
	}
}

// fix notes a variable that no assignment changes any more; the shell goes on after one
// that failed, at least with the next line.
func (a *analysis) fix(name string) {
	if a.fixed == nil {
		a.fixed = map[string]bool{}
	}
	a.fixed[name] = true
}

// counted judges that a variable gets a number.
func (a *analysis) counted(name string, st *state) {
	a.assignment(name, word{text: unknown}, false, st)
	st.bind(a, name, value{origin: numbers})
}

// evaluated judges a value that the shell evaluates as arithmetic: text in it
// may name an array, whose subscript runs commands, or a variable, whose value is
// evaluated in its turn.
func (a *analysis) evaluated(w word, st *state) {
	a.says(w, st) // what comes out is the secret, or what the shell says of a text that is no number
	switch {
	case a.fromNames(w, st):
		a.give("data-evaluated", Ask, w.shown(), "the shell evaluates the name of a file as a calculation, and a subscript in it can run commands", "use a plain number or name")
	case w.origin == numbers && !strings.ContainsAny(strings.ReplaceAll(w.text, unknown, ""), "[$`"):
	case w.known() && !strings.ContainsAny(w.text, "[$`\\"):
		a.evaluatedNames(w.text, st)
	default:
		a.give("data-evaluated", Ask, w.shown(), "the shell evaluates this text, and a subscript in it can run commands", "use a plain number or name")
	}
}

// evaluatedNames judges the variables that a calculation names.
func (a *analysis) evaluatedNames(text string, st *state) {
	for i := 0; i < len(text); {
		c := text[i]
		if c >= '0' && c <= '9' {
			for i < len(text) && (text[i] == '#' || text[i] == '@' || text[i] == '_' || isWordByte(text[i])) {
				i++ // 0x1f, 16#ff
			}
			continue
		}
		end := i
		for end < len(text) && (text[end] == '_' || isWordByte(text[end])) {
			end++
		}
		if end == i {
			i++
			continue
		}
		a.evaluatedName(text[i:end], st)
		i = end
	}
}

func isWordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// subscript judges a word that has to be a variable's name.
func (a *analysis) subscript(w word) {
	if !w.known() || !syntax.ValidName(w.text) {
		a.give("data-evaluated", Ask, w.shown(), "this is no plain name of a variable, and the shell evaluates what stands in its subscript", "use a plain name")
	}
}

// test judges [[ … ]].
func (a *analysis) test(x syntax.TestExpr, st *state) {
	a.step(1)
	switch x := x.(type) {
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range []syntax.TestExpr{x.X, x.Y} {
				if w, ok := side.(*syntax.Word); ok {
					a.evaluated(a.value(w, st), st)
				} else {
					a.test(side, st)
				}
			}
			return
		}
		left, ok := x.X.(*syntax.Word)
		right, both := x.Y.(*syntax.Word)
		if !ok || !both || x.Op == syntax.AndTest || x.Op == syntax.OrTest {
			a.test(x.X, st)
			a.test(x.Y, st)
			return
		}
		w, other := a.value(left, st), a.value(right, st)
		a.rematched = a.rematched || x.Op == syntax.TsReMatch && w.secret
		a.guesses(w, other, st)
	case *syntax.UnaryTest:
		if w, ok := x.X.(*syntax.Word); ok && (x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar) {
			a.cur = current{text: a.source(x)}
			a.subscript(a.value(w, st))
			return
		}
		a.test(x.X, st)
	case *syntax.ParenTest:
		a.test(x.X, st)
	case *syntax.Word:
		a.value(x, st)
	default:
		a.give("unknown-syntax", Ask, "", "a part of the test is in a form that the guard does not know", "write it more plainly")
	}
}

// arith judges an arithmetic expression.
func (a *analysis) arith(x syntax.ArithmExpr, st *state) {
	a.step(1)
	switch x := x.(type) {
	case nil:
	case *syntax.BinaryArithm:
		a.arith(x.X, st)
		a.arith(x.Y, st)
		if w, ok := x.X.(*syntax.Word); ok {
			switch x.Op {
			case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
				a.counted(w.Lit(), st)
			}
		}
	case *syntax.UnaryArithm:
		a.arith(x.X, st)
	case *syntax.ParenArithm:
		a.arith(x.X, st)
	case *syntax.Word:
		a.arithWord(x, st)
	default:
		a.give("unknown-syntax", Ask, "", "a part of the calculation is in a form that the guard does not know", "write it more plainly")
	}
}

// arithWord judges one operand. A plain name is evaluated again, as deep as it
// goes; what it holds must therefore be known, or a number.
func (a *analysis) arithWord(w *syntax.Word, st *state) {
	a.evaluated(a.value(w, st), st)
}

// evaluatedName judges a variable that a calculation names.
func (a *analysis) evaluatedName(name string, st *state) {
	a.step(1)
	if a.depth++; a.depth > maxDepth+4 {
		panic(tooMuch{}) // names that lead to each other, round and round
	}
	defer func() { a.depth-- }()
	v := st.lookup(a, name)
	a.says(word{text: name, src: name, secret: a.holdsSecret(name, v)}, st)
	switch {
	case v.known:
		a.evaluated(v.w, st)
	case v.origin == numbers:
	case v.list == nil && a.isUnset(name, st):
	default:
		a.give("data-evaluated", Ask, name, "what the variable holds is only known when it runs, and the shell evaluates it as a calculation", "use a value that is known to be a number")
	}
}

// isUnset reports whether a variable has no value that anybody gave it: the
// command does not, and the environment neither.
func (a *analysis) isUnset(name string, st *state) bool {
	for b := st.vars; b != nil; b = b.next {
		if b.name == name || b.name == "" {
			return false
		}
	}
	return a.r.Env != nil && a.r.env(name) == ""
}
