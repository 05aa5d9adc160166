package guard

import (
	"path/filepath"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"reprise/internal/guard/names"
)

// origin is what is known of the parts of a word that are not known. Of names of
// files the bits above the lowest two say in which listings they stand.
type origin uint64

const (
	anything origin = iota
	paths           // names of files in the directories of the work
	numbers
	fewWords // one of a few harmless words
	// installed is a path of what is installed on this machine, as a program or its
	// package manager tells it.
	installed
)

// names reports whether it is names of files.
func (o origin) names() bool { return o&3 == paths }

// with is what is known where a part is of the one or of the other.
func (o origin) with(p origin) origin {
	switch {
	case o == p:
		return o
	case o.names() && p.names():
		return o | p
	}
	return anything
}

// process is whose number a word is.
type process uint8

const (
	anyProcess    process = iota
	ownProcess            // of one that this command started
	parentProcess         // of the one that started this shell
)

// word is a word of a command as far as it can be told before it runs.
type word struct {
	text    string  // unknown stands for each part that is not known
	src     string  // as it was written
	glob    bool    // text is a pattern: it has *, ? or [ that are not quoted
	split   bool    // may be none, one or several words
	made    bool    // an expansion made all of it or a part of it
	endless endless // it is a place where something is read that has no end
	origin  origin  // of its unknown parts
	listed  origin  // of the name for which a pattern stands in it
	dashed  bool    // an unknown part may stand at its start, and be a dash
	solid   bool    // no blank is in its unknown parts
	// certain says that an unknown part at the start is not empty.
	certain bool
	process process
	net     bool // what it stands for comes from another machine
	told    bool // a part of it is what a command wrote, of which nothing is known
	secret  bool // a variable in it has a name that says that it holds a secret
	named   bool // a name that a pattern stood for is in it
}

func (w word) known() bool { return !strings.Contains(w.text, unknown) }

// shown is the word as it was written, for a person.
func (w word) shown() string {
	if w.src != "" {
		return shown(w.src)
	}
	return shown(w.text)
}

// fields evaluates a word into the words that the shell makes of it.
func (a *analysis) fields(w *syntax.Word, st *state) []word {
	var out []word
	alts := expandBraces(w)
	if alts == nil {
		a.give("too-many-words", Ask, "", "the braces stand for more words than can be followed", "write the words out")
		return []word{{text: unknown, src: a.source(w), split: true}}
	}
	src := ""
	if len(w.Parts) != 1 || !plainLit(w.Parts[0]) {
		src = a.source(w)
	}
	for _, alt := range alts {
		b := wordBuilder{a: a, st: st, split: true, src: src, braced: len(alts) > 1}
		for i, p := range alt.Parts {
			b.part(p, i == 0, false)
		}
		out = append(out, b.end()...)
		a.step(len(out))
	}
	return out
}

// plainWord is the text of a word that stands for itself.
func plainWord(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	l, ok := w.Parts[0].(*syntax.Lit)
	if !ok || l.Value == "" || l.Value[0] == '~' {
		return "", false
	}
	for i := range len(l.Value) {
		switch l.Value[i] {
		case '\\', '*', '?', '[', '{':
			return "", false
		}
	}
	return l.Value, true
}

func plainLit(p syntax.WordPart) bool {
	l, ok := p.(*syntax.Lit)
	return ok && !strings.Contains(l.Value, `\`)
}

// value evaluates a word that stays one: what is assigned, or redirected to.
func (a *analysis) value(w *syntax.Word, st *state) word {
	if w == nil {
		return word{}
	}
	b := wordBuilder{a: a, st: st, src: a.source(w)}
	for i, p := range w.Parts {
		b.part(p, i == 0, false)
	}
	if got := b.end(); len(got) == 1 {
		if a.closing != nil {
			a.closing.text(a, got[0], st)
		}
		return got[0]
	}
	return word{src: b.src}
}

// wordBuilder puts a word together.
type wordBuilder struct {
	a      *analysis
	st     *state
	src    string
	split  bool // words are split where unquoted expansions have blanks
	braced bool
	out    []word
	cur    strings.Builder
	w      word
	have   bool // there is a word, though it may be empty
	some   bool // an unknown part was seen
}

func (b *wordBuilder) end() []word {
	if b.have || b.cur.Len() > 0 {
		b.flush()
	}
	return b.out
}

func (b *wordBuilder) flush() {
	w := b.w
	w.text, w.src = b.cur.String(), b.src
	b.out = append(b.out, w)
	b.cur.Reset()
	b.w, b.have, b.some = word{made: b.w.made}, false, false
}

func (b *wordBuilder) text(s string, quoted bool) {
	b.have = true
	b.a.step(len(s) / 64)
	if b.cur.Len()+len(s) > maxText {
		panic(tooMuch{}) // a value that doubles and doubles
	}
	if !quoted && strings.ContainsAny(s, "*?[") {
		b.w.glob = true
	}
	if b.some && strings.HasPrefix(s, "-") && b.maybeEmpty() && b.w.origin != numbers && b.w.origin != fewWords {
		b.w.dashed, b.w.origin = true, anything // names may be none
	}
	// A quoted pattern character stands for itself; where the word turns out to be a
	// pattern, it is compared as one that matches anything, which is the safer side.
	b.cur.WriteString(s)
}

// dark adds something that is not known.
func (b *wordBuilder) dark(o origin, quoted bool) {
	b.add(word{text: unknown, origin: o, dashed: o != numbers && o != fewWords && o != installed, split: !quoted && b.split && o != numbers})
}

// add adds a word that is not known in a part of it: what is known of the parts before
// it stays, and of the whole no more is known than of each.
func (b *wordBuilder) add(w word) {
	if b.cur.Len()+len(w.text) > maxText {
		panic(tooMuch{})
	}
	b.have, b.w.made = true, true
	b.w.dashed = b.w.dashed || w.dashed && b.maybeEmpty()
	b.w.certain = b.w.certain || w.certain && b.cur.Len() == 0
	if !w.known() {
		w.solid = w.solid || w.origin == numbers || w.origin == fewWords
		if b.some {
			w.origin, w.solid = w.origin.with(b.w.origin), w.solid && b.w.solid
		}
		b.w.solid = w.solid
		b.some, b.w.origin = true, w.origin
	}
	b.w.glob, b.w.split = b.w.glob || w.glob, b.w.split || w.split
	b.w.net, b.w.told, b.w.secret, b.w.named = b.w.net || w.net, b.w.told || w.told, b.w.secret || w.secret, b.w.named || w.named
	b.w.listed, b.w.process = max(b.w.listed, w.listed), max(b.w.process, w.process)
	b.cur.WriteString(w.text)
}

// names is dark for what may be names of files, of which none begins with a dash where
// they are dotted.
func (b *wordBuilder) names(o origin, dotted, quoted bool) {
	was := b.w.dashed
	b.dark(o, quoted)
	if o.names() && dotted {
		b.w.dashed = was
	}
}

// maybeEmpty reports whether all that there is so far may come to nothing.
func (b *wordBuilder) maybeEmpty() bool { return strings.Trim(b.cur.String(), unknown) == "" }

// list adds the words that "$@", $@ or "${x[@]}" stands for: each is one of its own, but
// where only one word can stand they are put together with blanks.
func (b *wordBuilder) list(items []word, quoted bool) {
	for i, item := range items {
		b.a.step(1 + len(item.text)/64)
		switch {
		case i == 0:
		case !b.split:
			b.text(" ", true)
		case b.have:
			b.flush()
		}
		switch {
		case quoted || !item.known():
			item.split = item.split || !quoted && b.split && item.origin != numbers
			b.add(item)
		case b.split && item.glob:
			b.w.secret, b.w.named = b.w.secret || item.secret, true
			b.text(item.text, false)
		default:
			b.w.secret = b.w.secret || item.secret
			b.expansion(item.text, false)
		}
	}
	b.w.made = true
}

// expansion adds the value of something that is known.
func (b *wordBuilder) expansion(s string, quoted bool) {
	b.w.made = true
	if quoted || !b.split {
		b.text(s, true)
		return
	}
	for s != "" {
		i := strings.IndexAny(s, " \t\n")
		if i < 0 {
			b.text(s, false)
			return
		}
		if i > 0 {
			b.text(s[:i], false)
		}
		if b.have || b.cur.Len() > 0 {
			b.flush()
			b.w.made = true
		}
		s = strings.TrimLeft(s[i:], " \t\n")
	}
}

func (b *wordBuilder) part(p syntax.WordPart, first, quoted bool) {
	b.a.step(1)
	switch p := p.(type) {
	case *syntax.Lit:
		b.literal(p.Value, first, quoted)
	case *syntax.SglQuoted:
		if p.Dollar {
			s, ok := ansiQuoted(p.Value)
			if !ok {
				b.dark(anything, true)
				return
			}
			b.text(s, true)
			return
		}
		b.text(p.Value, true)
	case *syntax.DblQuoted:
		if !b.none(p.Parts) {
			b.have = true
		}
		for _, q := range p.Parts {
			b.part(q, false, true)
		}
	case *syntax.ParamExp:
		b.param(p, quoted)
	case *syntax.CmdSubst:
		b.a.indirect()
		if p.TempFile || p.ReplyVar {
			b.a.give("unknown-syntax", Ask, b.src, "this form of substitution is not one of bash's", "use $(…)")
		}
		out := b.a.inner(p.Stmts, b.st)
		b.w.net = b.w.net || out.net
		b.output(out, quoted)
	case *syntax.ArithmExp:
		b.a.arith(p.X, b.st)
		b.dark(numbers, quoted)
	case *syntax.ProcSubst:
		b.a.indirect()
		out := b.a.inner(p.Stmts, b.st)
		b.w.net, b.w.endless = out.net || b.w.net, out.endless
		b.text("/dev/fd/63", true)
	case *syntax.BraceExp:
		b.sequence(p)
	case *syntax.ExtGlob:
		if qualifier(p.Pattern.Value, b.split) {
			b.a.give("unknown-syntax", Ask, b.src, "zsh takes what stands in the brackets after a pattern for conditions, which can run commands", "write the names out, or use find")
		}
		b.w.glob = true
		b.have = true
		b.cur.WriteString("*")
	default:
		b.a.give("unknown-syntax", Ask, b.src, "a part of this word is in a form that the guard does not know", "write it more plainly")
		b.dark(anything, quoted)
	}
}

// sequence adds what {1..9} or {a..z} stands for: any of these, each a word of its own.
func (b *wordBuilder) sequence(p *syntax.BraceExp) {
	w := word{text: unknown, origin: numbers, split: true}
	for _, e := range p.Elems {
		switch text := e.Lit(); {
		case len(text) == 1 && text[0] >= 'a' && text[0] <= 'z':
			w.origin = fewWords
		case strings.Trim(text, "0123456789") != "":
			w.origin, w.dashed = anything, true // other letters, and numbers below zero
		}
	}
	b.add(w)
}

// none reports whether what stands in double quotes comes to no word at all: "$@"
// without an argument, and an array that has nothing in it.
func (b *wordBuilder) none(parts []syntax.WordPart) bool {
	if len(parts) != 1 {
		return false
	}
	p, ok := parts[0].(*syntax.ParamExp)
	if !ok || p.Exp != nil || p.Slice != nil || p.Repl != nil || p.Length || p.Excl || p.Param == nil {
		return false
	}
	if p.Param.Value == "@" {
		return b.st.argsKnown && len(b.st.args) == 0
	}
	if w, ok := p.Index.(*syntax.Word); ok && w.Lit() == "@" {
		v := b.st.lookup(b.a, p.Param.Value)
		return v.list != nil && len(v.list) == 0
	}
	return false
}

// qualifier reports whether zsh may take the brackets after a pattern for conditions
// on files. What has alternatives is a pattern for it, too.
func qualifier(s string, files bool) bool {
	return strings.ContainsAny(s, ":'\"$`") || strings.HasPrefix(s, "+") || files && !strings.Contains(s, "|")
}

// output adds what a command substitution prints.
func (b *wordBuilder) output(out source, quoted bool) {
	b.a.fills(out.endless, b.src)
	switch {
	case out.fixed && !out.doubt:
		b.expansion(strings.TrimRight(out.text, "\n"), quoted)
	case out.solid:
		b.add(word{text: unknown, solid: true, dashed: true, told: true})
	default:
		b.a.apart(out.origin)
		b.names(out.origin, out.dotted, quoted)
		b.w.told = b.w.told || out.origin == anything
	}
}

func (b *wordBuilder) literal(s string, first, quoted bool) {
	if quoted {
		b.text(unquote(s, "$`\"\\"), true)
		return
	}
	if first && strings.HasPrefix(s, "~") {
		end := strings.IndexByte(s, '/')
		if end < 0 {
			end = len(s)
		}
		switch name := s[1:end]; {
		case name == "" && b.a.r.Home != "":
			b.text(b.a.r.Home, true)
		case name == "+" && len(b.st.cwds) == 1:
			b.text(b.st.cwds[0], true)
		case name != "" && b.a.r.Home != "" && strings.Trim(name, "+-0123456789") != "":
			// Another user's home: wherever it is, it is beside this one's.
			b.text(filepath.Join(filepath.Dir(b.a.r.Home), name), true)
		default:
			b.dark(anything, true)
		}
		s = s[end:]
	}
	for s != "" {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			b.text(s, false)
			return
		}
		b.text(s[:i], false)
		if i+1 >= len(s) {
			b.text(`\`, true)
			return
		}
		if s[i+1] == '\n' {
			s = s[i+2:]
			continue
		}
		_, n := utf8.DecodeRuneInString(s[i+1:])
		b.text(s[i+1:i+1+n], true)
		s = s[i+1+n:]
	}
	b.have = true
}

// unquote removes the backslashes that stand before one of these bytes; a line's end
// behind one the parser has taken out.
func unquote(s, special string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if strings.IndexByte(special, s[i+1]) >= 0 {
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// ansiQuoted reads $'…' as bash does. A NUL ends the text there; that and what
// is no escape are not told.
func ansiQuoted(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'a':
			b.WriteByte(7)
		case 'b':
			b.WriteByte(8)
		case 'e', 'E':
			b.WriteByte(27)
		case 'f':
			b.WriteByte(12)
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'v':
			b.WriteByte(11)
		case '\\', '\'', '"', '?':
			b.WriteByte(c)
		case 'x', 'u', 'U', '0', '1', '2', '3', '4', '5', '6', '7':
			v, n := codePoint(s[i:])
			if v == 0 { // none, or a NUL
				return "", false
			}
			if c == 'u' || c == 'U' {
				b.WriteRune(rune(v))
			} else {
				b.WriteByte(byte(v))
			}
			i += n - 1
		case 'c':
			if i+1 >= len(s) {
				return "", false
			}
			i++
			if s[i]&31 == 0 {
				return "", false
			}
			b.WriteByte(s[i] & 31)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

// codePoint reads the number of an escape that begins with x, u, U or an octal
// digit; n is how many bytes it takes.
func codePoint(s string) (v, n int) {
	base, most, i := 16, 2, 1
	switch s[0] {
	case 'u':
		most = 4
	case 'U':
		most = 8
	case 'x':
	default:
		base, most, i = 8, 3, 0
	}
	start := i
	for ; i < len(s) && i-start < most; i++ {
		c := s[i]
		if c >= 'A' && c <= 'F' {
			c += 'a' - 'A'
		}
		d := strings.IndexByte("0123456789abcdef", c)
		if d < 0 || d >= base {
			break
		}
		v = v*base + d
	}
	return v, i
}

// param adds a parameter's value.
func (b *wordBuilder) param(p *syntax.ParamExp, quoted bool) {
	a, st := b.a, b.st
	if p.Flags != nil || p.NestedParam != nil || len(p.Modifiers) > 0 || p.Width || p.IsSet || p.Param == nil {
		a.give("unknown-syntax", Ask, b.src, "this form of expansion is not one of bash's", "write it more plainly")
		b.dark(anything, quoted)
		return
	}
	name := p.Param.Value
	if p.Slice != nil {
		a.arith(p.Slice.Offset, st)
		a.arith(p.Slice.Length, st)
	}
	if p.Repl != nil {
		a.value(p.Repl.Orig, st)
		b.w.secret = a.value(p.Repl.With, st).secret || b.w.secret
	}
	whole := false
	if w, ok := p.Index.(*syntax.Word); ok && (w.Lit() == "@" || w.Lit() == "*") {
		whole = true
	} else {
		a.arith(p.Index, st)
	}
	if p.Length {
		b.dark(numbers, quoted)
		return
	}
	b.secret(p)
	var other word
	if p.Exp != nil && p.Exp.Word != nil {
		other = a.value(p.Exp.Word, st)
		for _, part := range p.Exp.Word.Parts {
			if l, ok := part.(*syntax.Lit); ok && !quoted && strings.Contains(l.Value, "(") {
				a.give("unknown-syntax", Ask, b.src, "zsh takes what stands in the brackets after a pattern for conditions, which can run commands", "put it in double quotes")
			}
		}
	}
	b.w.secret = b.w.secret || other.secret
	if p.Exp != nil && (p.Exp.Op == syntax.ErrorUnset || p.Exp.Op == syntax.ErrorUnsetOrNull) {
		a.says(other, st) // it is the message
	}
	if p.Exp != nil && p.Exp.Op == syntax.OtherParamOps {
		if other.text == "P" || !other.known() {
			a.give("prompt-expansion", Ask, b.src, "@P expands a value as a prompt, which runs the commands in it", "print the value with printf")
		}
		b.dark(anything, quoted)
		return
	}
	if p.Excl && p.Names == 0 && !whole {
		// ${!x} takes the value of x for a name, with whatever subscript is in it.
		if v := st.lookup(a, name); !v.known || !v.w.known() || !syntax.ValidName(v.w.text) {
			a.give("data-evaluated", Ask, b.src, "it takes a value for a variable's name, and a subscript in it can run commands", "use the variable itself")
		}
	}
	if p.Excl || p.Slice != nil || p.Repl != nil || p.Names != 0 {
		b.dark(anything, quoted)
		return
	}
	if whole && quoted && p.Exp == nil {
		if v := st.lookup(a, name); v.list != nil {
			b.list(v.list, quoted)
			return
		}
	}
	if p.Index != nil {
		b.dark(anything, quoted)
		return
	}
	b.plain(name, p.Exp, other, quoted)
}

// secret notes that a variable holds one, by its name or by what it was given, where
// more is told of it than whether it is set.
func (b *wordBuilder) secret(p *syntax.ParamExp) {
	if p.Exp != nil && (p.Exp.Op == syntax.AlternateUnset || p.Exp.Op == syntax.AlternateUnsetOrNull) {
		return
	}
	name := p.Param.Value
	v := b.st.lookup(b.a, name)
	was := b.w.secret
	defer func() {
		if b.a.traced && b.w.secret && !was {
			b.a.says(word{src: b.src, text: "$" + name, secret: true}, b.st)
		}
	}()
	b.w.secret = b.w.secret || name == "BASH_REMATCH" && b.a.rematched || name == "_" && b.a.lastSecret
	if name == "@" || name == "*" || strings.Trim(name, "0123456789") == "" {
		// Which of the arguments it is may not be known, nor what they are.
		b.w.secret = b.w.secret || anySecret(b.st.args) || !b.st.argsKnown && b.a.tainted["1"]
	}
	b.w.secret = b.w.secret || b.a.holdsSecret(name, v) || p.Excl && v.known && b.a.holdsSecret(v.w.text, b.st.lookup(b.a, v.w.text))
}

// plain adds the value of $name, or of one of the forms that say what is to be
// done where there is none.
func (b *wordBuilder) plain(name string, exp *syntax.Expansion, other word, quoted bool) {
	st := b.st
	switch name {
	case "PPID":
		b.w.process = parentProcess
		b.dark(numbers, quoted)
		return
	case "!":
		b.w.process = ownProcess
		b.dark(numbers, quoted)
		return
	case "#", "?", "$":
		b.dark(numbers, quoted)
		return
	case "BASHPID", "UID", "EUID", "RANDOM", "LINENO", "SECONDS", "EPOCHSECONDS", "SHLVL", "BASH_SUBSHELL", "COLUMNS", "LINES", "OPTIND":
		if !st.bound(name) { // most of them can be given another value
			b.dark(numbers, quoted)
			return
		}
	case "@", "*":
		if st.argsKnown && (quoted && name == "@" || !quoted) && exp == nil {
			b.list(st.args, quoted)
			return
		}
		b.dark(anything, quoted)
		return
	}
	v := st.lookup(b.a, name)
	if exp != nil {
		switch exp.Op {
		case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
			b.w.certain = true // the shell stops where it is empty
		case syntax.AssignUnset, syntax.AssignUnsetOrNull:
			if n := names.Variable(name); n == names.Steering || n == names.Loading {
				cur := b.a.cur
				b.a.assignment(name, other, true, st)
				b.a.cur = cur
			}
			b.a.gets(name, value{known: true, w: other}, st)
			st.bind(b.a, name, value{w: word{secret: other.secret}})
			b.dark(anything, quoted)
			return
		case syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix:
			o := v.origin
			switch {
			case v.known || o == fewWords:
				o = anything
			case o.names():
				o = b.a.anywhere(st) // another name than the one that was listed
			}
			b.dark(o, quoted)
			return
		default:
			b.dark(anything, quoted)
			return
		}
	}
	switch {
	case v.known && v.w.known():
		b.w.listed = max(b.w.listed, v.w.listed)
		if v.w.glob && !quoted {
			b.w.made, b.w.named = true, true
			b.text(v.w.text, false)
			return
		}
		b.w.named = b.w.named || v.w.pattern()
		b.expansion(v.w.text, quoted)
	case v.known:
		b.add(word{text: v.w.text, origin: v.w.origin, dashed: v.w.dashed, told: v.w.told, named: v.w.named, split: !quoted && b.split})
	default:
		b.w.process = max(b.w.process, v.w.process)
		b.w.told = b.w.told || v.w.told
		b.names(v.origin, v.dotted, quoted)
	}
}
