package guard

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"reprise/internal/guard/reading"
)

// analysis is the judging of one call.
type analysis struct {
	r        *Rules
	roots    []string // resolved
	parts    []Part
	granted  bool // something is allowed because the settings say so
	steps    int
	ownDirs  []string
	common   string // git directory of the workspace's repository
	depth    int
	text     string  // the text that is being looked at, for showing what was written
	cur      current // the simple command that is being looked at
	links    map[string]string
	words    []word   // see room
	options  []option // of the commands that are being judged
	secret   Part     // what reads a secret, and what reaches the network: together they are a leak
	net      Part
	declared []declared
	called   map[*syntax.Stmt]bool
	// repositories are what was found in the settings of git, by directory.
	repositories map[string]gitFound
	nestedIn     map[string][]string // repositories in others, by the index that has them
	listed       map[string][]string // names in directories
	spare        []*state            // see borrow
	closing      *closing            // nil: nothing is closed
	integers     map[string]bool     // variables whose values the shell evaluates
	aims         Part                // what looks for the processes of agents, and what ends processes that are not known
	ends         Part
	wrote        bool     // a part of the command may have made files
	walked       int      // what looking for links has cost
	named        int      // and looking for names
	looked       int      // and looking for what the patterns of tools stand for
	gitIn        []string // where the last command of git worked
	gitAt        map[string][]gitDir
	harmless     []string        // see one
	locals       []string        // variables of the functions that it is in
	left         []*state        // where loops and functions were left early
	fixed        map[string]bool // variables that were made readonly
	harmlessIn   map[string]bool // directories in which git runs no program of the repository's settings
	listings     []*listing
	shims        []string          // directories of managers of versions in PATH; nil: not looked at
	versionsIn   map[string]string // what versions found, by directory
	brokenNames  map[string]string // see brokenIn
	dashedNames  map[string]bool   // see dashedIn
	tainted      map[string]bool   // variables that were given a secret somewhere; "1": the arguments
	lastSecret   bool              // a command was given a secret, and $_ may be it
	rematched    bool              // a secret was compared with =~, which keeps parts of it
	fedBy        string            // the command whose redirections are looked at, while they are
	feeding      bool              // they are
	exporting    bool              // what is assigned is for programs that may come
	exports      []string          // variables that no program is known to take, and that any sees that comes
	starts       bool              // a program is started
	repeats      int               // how many loops it is in
	traced       bool              // a shell prints what it runs, with the values of variables
}

// tooMuch ends an analysis that goes beyond its bounds.
type tooMuch struct{}

// step counts the work, so that no command keeps a tool waiting.
func (a *analysis) step(n int) {
	if a.steps += n; a.steps > maxSteps {
		panic(tooMuch{})
	}
}

func newAnalysis(r *Rules) *analysis {
	a := &analysis{r: r, options: make([]option, 0, 32)}
	for _, d := range r.Roots {
		a.roots = append(a.roots, a.place(d))
	}
	return a
}

// place is where a directory of the settings really is. On its way there each link is
// looked at once a call, however many directories begin alike.
func (a *analysis) place(dir string) string {
	if foldCase || !filepath.IsAbs(dir) {
		return Resolve(dir) // by the spelling that the system has for it
	}
	return a.leads(dir)
}

// give notes a finding about the command that is being looked at.
func (a *analysis) give(rule string, d Decision, text, reason, instead string) {
	if a.r.loose(rule) {
		d = looser(d)
	}
	if d == Allow {
		a.granted = true
		if !a.r.Explain {
			return
		}
	}
	a.parts = append(a.parts, Part{Command: a.cur.String(), Decision: d, Rule: rule, Word: shown(text), Reason: reason, Instead: instead, Depth: a.depth})
}

// looser is a decision one step milder.
func looser(d Decision) Decision {
	if d == Deny {
		return Ask
	}
	return Allow
}

// source is a piece of the command as it was written.
func (a *analysis) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(a.text) || from >= to {
		return ""
	}
	return a.text[from:min(to, from+2*maxShown)]
}

// Command judges a command for a shell that runs in cwd.
func (r *Rules) Command(command, cwd string) Verdict {
	a := newAnalysis(r)
	a.run(func() { a.shellText(command, a.start(cwd)); a.uncalled() })
	return a.verdict()
}

// run does f, and asks where f goes beyond the bounds.
func (a *analysis) run(f func()) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case tooMuch{}:
			a.give("too-much", Ask, "", "the command has more to look at than is looked at in the time that a tool can wait", "put it into a script, or run its parts one by one")
		default:
			panic(p)
		}
	}()
	f()
}

// verdict puts the findings together.
func (a *analysis) verdict() Verdict {
	for _, name := range a.exports {
		if a.starts {
			a.cur = current{text: "export " + name}
			a.give("environment", Ask, name, "it is not known what the variable does to the programs that are started", "leave it out, or allow the command by a rule")
		}
	}
	if a.secret.Rule != "" && a.net.Rule != "" {
		p := a.secret
		p.Rule, p.Decision = "secret-leaves", Deny
		p.Reason = "a secret is read in a command that reaches the network (" + a.net.Word + ")"
		p.Instead = "do the one without the other"
		if a.r.loose(p.Rule) {
			p.Decision = Ask
		}
		a.parts = append(a.parts, p)
	}
	if a.aims.Rule != "" && a.ends.Rule != "" {
		p := a.ends
		p.Reason, p.Instead = "it looks for the processes of agents ("+a.aims.Word+") and ends what it finds", "name a process that this session started"
		if a.r.loose(p.Rule) {
			p.Decision = Ask
		}
		a.parts = append(a.parts, p)
	}
	v := verdictOf(a.parts)
	v.Let = a.granted
	return v
}

func (a *analysis) start(cwd string) *state {
	st := &state{}
	if cwd != "" {
		st.cwds = []string{a.place(cwd)}
	}
	return st
}

// shellText judges a text that a shell is given, and returns what it writes out.
func (a *analysis) shellText(text string, st *state) source {
	if a.depth++; a.depth > maxDepth {
		a.give("too-deep", Ask, "", "commands start commands, deeper than is followed", "run the inner command by itself")
		return source{there: true}
	}
	before := a.text
	defer func() { a.depth--; a.text = before }()
	f := a.parse(text)
	if f == nil {
		return source{there: true}
	}
	if why := reading.Doubt(f, text); why != "" {
		a.doubted(why, text, st)
	}
	a.text = text
	first, posix := len(a.parts), st.fork()
	out := a.stmts(f.Stmts, st)
	if a.depth == 1 {
		a.pours(out.endless, "the client that reads it")
	}
	if st.posix {
		a.posixly(text, posix, first)
	}
	return out
}

// posixly judges a text as a shell reads it that knows POSIX only; from is where what
// was found in bash's reading begins.
func (a *analysis) posixly(text string, st *state, from int) {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), "")
	if err != nil || quotesInQuotes(f) { // what the parser makes of such a quote is not what dash does
		a.give("read-two-ways", Ask, "", "sh reads this otherwise than bash, or not at all", "run it by bash -c")
		return
	}
	n := len(a.parts)
	a.stmts(f.Stmts, st)
	a.onlyNew(from, n) // mostly both readings are one, and what was found is found again
}

// quotesInQuotes reports whether a text has a single quote inside "${x:-…}": in dash
// it is a letter like others.
func quotesInQuotes(f *syntax.File) bool {
	found := false
	syntax.Walk(f, func(n syntax.Node) bool {
		q, ok := n.(*syntax.DblQuoted)
		if !ok {
			return !found
		}
		for _, p := range q.Parts {
			if x, ok := p.(*syntax.ParamExp); ok && x.Exp != nil && x.Exp.Word != nil {
				syntax.Walk(x.Exp.Word, func(n syntax.Node) bool {
					_, single := n.(*syntax.SglQuoted)
					found = found || single
					return !found
				})
			}
		}
		return !found
	})
	return found
}

// doubted is for a text that a shell reads otherwise than the parser: it is asked
// about, and what the shell may make of it is looked at as well.
func (a *analysis) doubted(why, text string, st *state) {
	a.give("read-two-ways", Ask, "", "shells read "+why+" otherwise than it seems", "write it without the backslash, or the command on one line")
	for _, other := range reading.Readings(text) {
		if f := a.parse(other); f != nil {
			a.text = other
			a.stmts(f.Stmts, st.fork())
		}
	}
}

// parse reads a text, nil where it cannot be read; that is then noted.
func (a *analysis) parse(text string) *syntax.File {
	if len(text) > maxText {
		a.give("too-large", Ask, "", "the command is longer than 64 KiB", "put it into a file")
		return nil
	}
	a.step(len(text) / 64)
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		a.give("odd-bytes", Ask, "", "the command has bytes that are no UTF-8 text", "write them with $'\\x…'")
		return nil
	}
	if r, ok := firstHidden(text); ok {
		a.give("hidden-character", Ask, string(r), "the command holds a character that is not seen, or that changes how the rest is shown", "leave it out, or write it with $'\\u…'")
	}
	if nesting(text) > maxNested {
		a.give("too-deep", Ask, "", "the command is nested more deeply than is followed", "write it more plainly")
		return nil
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		why := err.Error()
		a.give("syntax", Ask, "", "the command cannot be read as shell ("+shown(why)+")", "write it more plainly")
		return nil
	}
	return f
}

func firstHidden(s string) (rune, bool) {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x20 && c < 0x7f || c == '\n' || c == '\t' {
			continue
		}
		for _, r := range s[i:] {
			if hidden(r) {
				return r, true
			}
		}
		return 0, false
	}
	return 0, false
}

// nesting is how deep brackets and blocks may stand in each other, at most: the
// parser goes down as deep, so that it must not be given what would take long.
func nesting(s string) int {
	depth, most, run := 0, 0, 0
	last := byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth = max(depth-1, 0)
		case '!', '-', '+', '~', '=', '?', '*':
			if last == c || last == ' ' {
				run++
			}
		case '`':
			depth += strings.Count(s[max(0, i-4):i], `\`)
		default:
			if c != ' ' && c != '\n' {
				run = max(run-1, 0)
			}
		}
		last = s[i]
		most = max(most, depth+run/4)
	}
	return max(most+keywords(s), calculated(s))
}

// calculated is how deep the choices and assignments of one calculation may stand in
// each other: a?b:c?d:e, and a=b=c.
func calculated(s string) int {
	most := 0
	for {
		_, rest, ok := strings.Cut(s, "((")
		if !ok {
			return most
		}
		in, after, _ := strings.Cut(rest, "))")
		most = max(most, strings.Count(in, "?"), strings.Count(in, "="))
		s = after
	}
}

// keywords counts the words by which blocks begin, which may all stand in each
// other, less those by which they end.
func keywords(s string) int {
	open, most := 0, 0
	for s != "" {
		end := 0
		for end < len(s) && s[end] > ' ' && s[end] != ';' && s[end] != '&' && s[end] != '|' {
			end++
		}
		w := s[:end]
		s = s[min(end+1, len(s)):]
		switch w {
		case "if", "while", "until", "for", "case", "select", "!", "time", "coproc", "function", "elif":
			open++
			most = max(most, open)
		case "fi", "done", "esac":
			open = max(open-1, 0)
		}
	}
	return most
}

// inner judges commands that run in a shell of their own.
func (a *analysis) inner(list []*syntax.Stmt, st *state) source {
	if a.depth++; a.depth > maxDepth {
		a.give("too-deep", Ask, "", "commands start commands, deeper than is followed", "run the inner command by itself")
		a.depth--
		return source{there: true}
	}
	defer func() { a.depth-- }()
	cur, feeding := a.cur, a.feeding
	a.feeding = false // what it reads is not what it is in reads
	defer func() { a.cur, a.feeding = cur, feeding }()
	return a.stmts(list, st.fork())
}

func (a *analysis) stmts(list []*syntax.Stmt, st *state) source {
	var out source
	for _, s := range list {
		out = out.and(a.stmt(s, st))
	}
	return out
}

func (a *analysis) stmt(s *syntax.Stmt, st *state) source {
	a.step(1)
	if s.Coprocess || s.Disown {
		a.give("unknown-syntax", Ask, "", "this is another shell's syntax", "write it for bash")
	}
	at := st
	if s.Background {
		at = st.fork()
	}
	var before *state
	if mayFail(s) {
		before = at.fork()
		defer func() { a.mayEnd(at, before, []*state{before.fork()}) }()
	}
	a.turnsTo(s, at)
	if c := a.closing; c != nil {
		was := c.into
		defer func() { c.into = was }()
	}
	in, redirected := a.redirects(s, at)
	if in.there {
		keep := at.in
		at.in = in
		defer func() { at.in = keep }()
	}
	var out source
	if s.Cmd != nil {
		out = a.command(s.Cmd, at)
	} else if len(s.Redirs) == 0 {
		a.give("unknown-syntax", Ask, "", "an empty command", "leave it out")
	}
	if redirected {
		if slices.ContainsFunc(s.Redirs, func(r *syntax.Redirect) bool { return r.Word.Lit() != "/dev/null" && r.Op != syntax.RdrIn }) {
			a.pours(out.endless, "the disk")
		}
		return source{}
	}
	return out
}

// mayFail reports whether a statement may not run at all, because what it is redirected
// to cannot be opened. The shell then goes on with the next one.
func mayFail(s *syntax.Stmt) bool {
	return slices.ContainsFunc(s.Redirs, func(r *syntax.Redirect) bool {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			return false
		case syntax.DplIn, syntax.DplOut:
			return r.Word.Lit() != "1" && r.Word.Lit() != "2" && r.Word.Lit() != "-"
		}
		return r.Word.Lit() != "/dev/null"
	})
}

func (a *analysis) command(c syntax.Command, st *state) source {
	switch c := c.(type) {
	case *syntax.CallExpr:
		return a.call(c, st)
	case *syntax.BinaryCmd:
		return a.binary(c, st)
	case *syntax.Subshell:
		return a.stmts(c.Stmts, st.fork())
	case *syntax.Block:
		return a.stmts(c.Stmts, st)
	case *syntax.IfClause:
		return a.ifClause(c, st)
	case *syntax.WhileClause:
		a.indirect()
		a.unsure(st, c)
		return a.turning(c, always(c.Cond, st, c.Until), a.loop(c.Cond, c.Do, st), st)
	case *syntax.ForClause:
		a.indirect()
		return a.forClause(c, st)
	case *syntax.CaseClause:
		return a.caseClause(c, st)
	case *syntax.FuncDecl:
		a.funcDecl(c, st)
	case *syntax.DeclClause:
		a.declare(c, st)
	case *syntax.TestClause:
		a.test(c.X, st)
	case *syntax.ArithmCmd:
		a.arith(c.X, st)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			a.arith(x, st)
		}
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return a.stmt(c.Stmt, st)
		}
	case *syntax.CoprocClause:
		a.give("coproc", Ask, "coproc", "a command that runs beside this one is not followed", "run it in the foreground")
		if c.Stmt != nil {
			a.stmt(c.Stmt, st.fork())
		}
	default:
		a.give("unknown-syntax", Ask, "", "a part of the command is in a form that the guard does not know", "write it more plainly")
	}
	return source{}
}

// indirect notes that what one command says may become another one's arguments.
func (a *analysis) indirect() {
	if a.closing != nil {
		a.closing.indirect = true
	}
}

func (a *analysis) binary(c *syntax.BinaryCmd, st *state) source {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		return a.pipe(c, st)
	}
	// Lists lean to the left and may be long: they are walked, not descended.
	var chain []*syntax.BinaryCmd
	var first *syntax.Stmt
	for cur := c; ; {
		chain = append(chain, cur)
		first = cur.X
		next, ok := cur.X.Cmd.(*syntax.BinaryCmd)
		if !ok || next.Op != syntax.AndStmt && next.Op != syntax.OrStmt || !bare(cur.X) {
			break
		}
		cur = next
	}
	out := a.stmt(first, st)
	last := first
	var skipped *state // where it ends early
	for i := len(chain) - 1; i >= 0; i-- {
		b := chain[i]
		if b.Op == syntax.AndStmt {
			switch {
			case a.works(last, st):
			case skipped == nil:
				skipped = a.borrow(st)
			default: // it may end here as well
				skipped.stay(st.cwds)
				if !sameArgs(skipped, st) {
					skipped.args, skipped.argsKnown = nil, false
				}
			}
			last = b.Y
		} else {
			last = nil
			before := st.fork()
			out = out.and(a.stmt(b.Y, before))
			st.join(a, before)
			continue
		}
		out = out.and(a.stmt(b.Y, st))
	}
	if skipped != nil {
		a.rejoin(st, skipped)
		a.giveBack(skipped)
	}
	return out
}

// works reports whether a command that has just been judged cannot but succeed, so
// that what stands after && is sure to run.
func (a *analysis) works(s *syntax.Stmt, st *state) bool {
	if s == nil || !bare(s) {
		return false
	}
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok {
		return false
	}
	if len(c.Args) == 0 {
		for _, n := range c.Assigns {
			if n.Array != nil || n.Index != nil || n.Value != nil && hasCommand(n.Value) {
				return false
			}
		}
		return true
	}
	switch c.Args[0].Lit() {
	case "cd":
		return len(st.cwds) == 1 && a.exists(st.cwds[0])
	case "echo", "true", ":":
		return true
	}
	return false
}

// hasCommand reports whether a word runs a command, whose end counts.
func hasCommand(w *syntax.Word) bool {
	found := false
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ParamExp, *syntax.ArithmExp:
			found = true
		}
		return !found
	})
	return found
}

// bare reports whether a statement is its command and nothing else.
func bare(s *syntax.Stmt) bool {
	return !s.Negated && !s.Background && !s.Coprocess && !s.Disown && len(s.Redirs) == 0
}

// rejoin goes on after a list that may have ended anywhere: what it assigned
// after its first part is not sure any more.
func (a *analysis) rejoin(st, early *state) {
	var list []string
	for v := st.vars; v != nil && v != early.vars; v = v.next {
		a.step(1)
		list = append(list, v.name)
	}
	st.stay(early.cwds) // cd is not come to where what stands before it fails
	if !sameArgs(st, early) {
		st.args, st.argsKnown = nil, false
	}
	for _, n := range list {
		v := value{}
		if a.numeric(n, st) && (a.numeric(n, early) || a.isUnset(n, early)) {
			v.origin = numbers
		}
		st.bind(a, n, v)
	}
}

// numeric reports whether a variable is known to hold a number.
func (a *analysis) numeric(name string, st *state) bool {
	return st.lookup(a, name).number()
}

// pipe judges the commands of a pipe, each in a shell of its own.
func (a *analysis) pipe(c *syntax.BinaryCmd, st *state) source {
	var list []*syntax.Stmt
	cmd := c
	for {
		list = append(list, cmd.Y)
		next, ok := cmd.X.Cmd.(*syntax.BinaryCmd)
		if !ok || next.Op != syntax.Pipe && next.Op != syntax.PipeAll || !bare(cmd.X) {
			list = append(list, cmd.X)
			break
		}
		cmd = next
	}
	in := st.in
	var out source
	for i := len(list) - 1; i >= 0; i-- {
		one := a.borrow(st)
		one.in = in
		out = a.stmt(list[i], one)
		a.giveBack(one)
		if !out.there {
			out = source{there: true}
		}
		in = out
	}
	return out
}

func (a *analysis) ifClause(c *syntax.IfClause, st *state) source {
	var out source
	var branches []*state
	for n := c; n != nil; n = n.Else {
		a.step(1)
		out = out.and(a.stmts(n.Cond, st))
		b := st.fork()
		out = out.and(a.stmts(n.Then, b))
		branches = append(branches, b)
	}
	st.join(a, branches...)
	return out
}

func (a *analysis) caseClause(c *syntax.CaseClause, st *state) source {
	w := a.value(c.Word, st)
	var out source
	var branches []*state
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			a.guesses(w, a.value(p, st), st)
		}
		b := st.fork()
		out = out.and(a.stmts(item.Stmts, b))
		branches = append(branches, b)
	}
	st.join(a, branches...)
	return out
}

// funcDecl notes a function. What it does is judged where it is called, with
// its arguments; one that is not called by name is judged at the end.
func (a *analysis) funcDecl(c *syntax.FuncDecl, st *state) {
	list := c.Names
	if c.Name != nil {
		list = append(list, c.Name)
	}
	for _, n := range list {
		if strings.Contains(n.Value, "/") {
			a.give("function-name", Ask, n.Value, "a function takes the place of a program", "give it a plain name")
		}
		st.funcs = &function{name: n.Value, body: c.Body, next: st.funcs}
	}
	a.declared = append(a.declared, declared{c.Body, a.text, st.fork()})
}

// declared is a function with the state at its place.
type declared struct {
	body *syntax.Stmt
	text string
	st   *state
}

// uncalled judges the functions that nothing has called: something may call them
// in a way that is not seen.
func (a *analysis) uncalled() {
	for i := 0; i < len(a.declared); i++ {
		d := a.declared[i]
		if a.called[d.body] {
			continue
		}
		a.text = d.text
		d.st.args, d.st.argsKnown = nil, false
		a.unsure(d.st, d.body)
		d.st.calls = append(d.st.calls, "")
		a.stmt(d.body, d.st)
	}
}

// multiplies reports whether a function starts something beside itself.
func multiplies(body *syntax.Stmt) bool {
	found := false
	syntax.Walk(body, func(n syntax.Node) bool {
		if s, ok := n.(*syntax.Stmt); ok && s.Background {
			found = true
		}
		return !found
	})
	return found
}

// mayEnd makes a state that of what may have ended early, in any of these states; it
// began in before.
func (a *analysis) mayEnd(st, before *state, early []*state) {
	if len(early) == 0 {
		return
	}
	whole := st.fork()
	*st = *before
	st.join(a, append(slices.Clone(early), whole)...)
}

// callFunction judges a function with the arguments that it is given.
func (a *analysis) callFunction(f *function, args []word, st *state) source {
	for _, c := range st.calls {
		if c == f.name {
			if multiplies(f.body) {
				a.give("destructive", Deny, f.name, "a function starts itself again and again, beside itself", "write it without")
			}
			a.give("recursion", Ask, f.name, "a function calls itself", "write it without")
			return source{there: true}
		}
	}
	if a.called == nil {
		a.called = map[*syntax.Stmt]bool{}
	}
	a.called[f.body] = true
	if a.depth++; a.depth > maxDepth {
		a.depth--
		a.give("too-deep", Ask, f.name, "commands start commands, deeper than is followed", "run the inner command by itself")
		return source{there: true}
	}
	defer func() { a.depth-- }()
	oldArgs, oldKnown, oldCalls := st.args, st.argsKnown, st.calls
	st.args, st.argsKnown = args, true
	a.taint("1", value{list: args})
	st.calls = append(append([]string(nil), st.calls...), f.name)
	mark, before, n := len(a.locals), st.fork(), len(a.left)
	out := a.stmt(f.body, st)
	a.mayEnd(st, before, a.left[n:])
	a.left = a.left[:n]
	st.args, st.argsKnown, st.calls = oldArgs, oldKnown, oldCalls
	for _, name := range a.locals[mark:] { // it has again what it had, as far as that can be told
		v := value{}
		if (a.numeric(name, st) || a.isUnset(name, st)) && (a.numeric(name, before) || a.isUnset(name, before)) {
			v.origin = numbers
		}
		st.bind(a, name, v)
	}
	a.locals = a.locals[:mark]
	return out
}
