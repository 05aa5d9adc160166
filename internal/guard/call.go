package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"reprise/internal/guard/know"
	"reprise/internal/guard/names"
)

// call judges a simple command.
func (a *analysis) call(c *syntax.CallExpr, st *state) source {
	if len(c.Args) == 0 {
		a.cur = current{text: a.source(c)}
		for _, n := range c.Assigns {
			a.assign(n, false, st)
		}
		return source{}
	}
	argv := a.room(len(c.Args))
	for _, w := range c.Args {
		if text, ok := plainWord(w); ok {
			argv = append(argv, word{text: text})
			continue
		}
		argv = append(argv, a.fields(w, st)...)
	}
	a.cur = commandOf(argv)
	for _, n := range c.Assigns {
		a.prefix(n, st)
	}
	a.cur = commandOf(argv)
	if len(argv) == 0 {
		a.give("dynamic-command", Deny, a.source(c), "which program this runs is only known when it runs", "write the program's name")
		return source{there: true}
	}
	return a.exec(argv, st)
}

// room is a place for so many words. They are made together, for commands are many.
func (a *analysis) room(n int) []word {
	if n > cap(a.words)-len(a.words) {
		a.words = make([]word, 0, max(n, min(128, 2*cap(a.words)), 8))
	}
	k := len(a.words)
	a.words = a.words[:k+n]
	return a.words[k : k : k+n]
}

// prefix judges an assignment that stands before a command: it is in that
// command's environment.
func (a *analysis) prefix(n *syntax.Assign, st *state) {
	a.arith(n.Index, st)
	w := a.value(n.Value, st)
	if n.Array != nil {
		a.assign(n, true, st.fork())
		return
	}
	if n.Name.Value == "IFS" && len(a.cur.argv) > 0 && a.cur.argv[0].text == "read" && w.known() {
		return // it says where read splits a line, and nothing else
	}
	a.assignment(n.Name.Value, w, true, st)
	a.gets(n.Name.Value, value{known: true, w: w}, st)
}

// current is the command that is being looked at; its text is made where it is
// wanted only.
type current struct {
	text string
	argv []word
}

func commandOf(argv []word) current { return current{argv: argv} }

func (c current) String() string {
	if c.argv != nil {
		return commandLine(c.argv)
	}
	return shown(c.text)
}

// puts reports whether a command only puts files into the directory that it names: it does
// nothing else to that.
func (c current) puts() bool {
	return len(c.argv) > 0 && slices.Contains([]string{"cp", "mv"}, plainName(c.argv[0].text))
}

// replaces reports whether a command puts another file in the place of one that is there,
// or changes what the system says of it: a device may be written to, and not be lost.
func (c current) replaces() bool {
	if len(c.argv) == 0 {
		return false
	}
	switch plainName(c.argv[0].text) {
	case "ln", "link", "mv", "rename", "install", "chmod", "chown", "chgrp", "chattr", "setfacl", "mkfifo", "rsync":
		return true
	case "cp": // with --remove-destination, -a, -b and others; without an option it opens the file
		return slices.ContainsFunc(c.argv[1:], func(w word) bool { return strings.HasPrefix(w.text, "-") && len(w.text) > 1 })
	}
	return false
}

// marks reports whether a command changes only what the system says of files, and not what is
// in them.
func (c current) marks() bool {
	if len(c.argv) == 0 {
		return false
	}
	switch plainName(c.argv[0].text) {
	case "chmod", "chown", "chgrp", "chattr", "setfacl":
		return true
	}
	return false
}

// commandLine is a command as it was resolved, for a person.
func commandLine(argv []word) string {
	var b strings.Builder
	for i, w := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		if b.Len() > 2*maxShown {
			b.WriteString("…")
			break
		}
		s := shown(w.text)
		if s == "" || strings.ContainsAny(s, " \t\n'\"$`\\;&|<>(){}*?[]#~") && !w.glob {
			s = "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}
		b.WriteString(s)
	}
	return b.String()
}

// edits reports whether the command is sed, of which -i without an ending for copies
// changes the files that it is given and no others; see inPlace.
func (c current) edits() bool {
	return len(c.argv) > 0 && slices.Contains([]string{"sed", "gsed"}, filepath.Base(c.argv[0].text))
}

// exec judges a command of resolved words, and returns what it writes out.
func (a *analysis) exec(argv []word, st *state) source {
	a.step(2)
	a.cur = commandOf(argv)
	a.lastSecret = a.lastSecret || anySecret(argv[1:])
	w := argv[0]
	if a.closing != nil {
		a.closing.command(a, argv, st, isFunction(w.text, st))
	}
	switch {
	case !w.known(), w.made && !constantStart(w):
		a.give("dynamic-command", Deny, w.shown(), "which program this runs is only known when it runs", "write the program's name")
		return source{there: true}
	case w.glob && strings.ContainsAny(w.text, "*?[") && w.text != "[" && w.text != "[[":
		a.give("dynamic-command", Deny, w.shown(), "a pattern stands where a program's name should", "write the program's name")
		return source{there: true}
	case w.text == "":
		a.give("dynamic-command", Deny, w.shown(), "the program's name is empty", "write the program's name")
		return source{there: true}
	}
	for f := st.funcs; f != nil; f = f.next {
		if f.name == w.text {
			return a.callFunction(f, argv[1:], st)
		}
	}
	return a.program(argv, st)
}

func isFunction(name string, st *state) bool {
	for f := st.funcs; f != nil; f = f.next {
		if f.name == name {
			return true
		}
	}
	return false
}

// constantStart reports whether an expansion in a command word is one that only
// says where the program is: the words ~ and $HOME.
func constantStart(w word) bool {
	return strings.HasPrefix(w.src, "$HOME/") || strings.HasPrefix(w.src, "${HOME}/") || strings.HasPrefix(w.src, `"$HOME/`) || strings.HasPrefix(w.src, "$PWD/") || strings.HasPrefix(w.src, `"$PWD/`)
}

// program judges a command that is no function.
func (a *analysis) program(argv []word, st *state) source {
	if d, from, ok := a.byRule(argv, st); ok {
		switch d {
		case Allow:
			a.ruled(from, argv[0].shown())
			return a.allowed(argv, st)
		default:
			a.ruled(from, argv[0].shown())
		}
	}
	name := argv[0].text
	if base := filepath.Base(name); st.cleared && agent(base) {
		a.give("limits-dropped", Deny, argv[0].shown(), "an agent that is started without the environment knows nothing of this run's limits", "start it with the environment as it is")
	}
	if strings.ContainsRune(name, '/') {
		base, ok := a.installed(name, st)
		if !ok {
			a.ownElsewhere(argv, st)
			a.wordsOf(argv[1:], st)
			a.starts = true
			return a.script(argv, st)
		}
		argv = append([]word{{text: base, src: argv[0].src}}, argv[1:]...)
		name = base
	}
	a.eats(argv, st)
	if f := builtin(name); f != nil {
		return f(a, argv, st)
	}
	if own := ownName(name); own != "" {
		name = own
		argv = asNamed(own, argv)
	}
	a.starts = true
	a.tellsSecrets(name, argv[1:], st)
	if f := special(name); f != nil {
		return f(a, argv, st)
	}
	p := know.Find(name)
	if p == nil {
		a.wordsOf(argv[1:], st)
		a.give("unknown-program", Ask, name, "it is not known what the program does", "use a program that only reads, or allow it by a rule")
		return source{there: true}
	}
	return a.known(p, argv, st)
}

// installed is the name of a program that is given by its path, where that is
// one of the system's own directories.
func (a *analysis) installed(name string, st *state) (string, bool) {
	switch dir, base := filepath.Split(name); dir {
	case "/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/", "/opt/homebrew/bin/":
		return base, a.root(filepath.Clean(dir)) == ""
	}
	return "", false
}

// script judges a program of the project, or from elsewhere, that is named by
// its path.
func (a *analysis) script(argv []word, st *state) source {
	w := argv[0]
	for _, base := range a.bases(w.text, st) {
		p := a.physical(base, w.text)
		if a.root(p) == "" {
			a.give("unknown-program", Ask, w.shown(), "it runs "+shown(p)+", which is not the system's", "use a program that only reads, or allow it by a rule")
			return source{there: true}
		}
	}
	if name := filepath.Base(w.text); agent(name) && ownName(name) == "" {
		// The project brings it along; it is an agent all the same.
		a.nested(append([]word{{text: name, src: w.src}}, argv[1:]...), st)
	}
	a.handed(argv[1:], st)
	a.buildWrapper(argv)
	a.publishes(filepath.Base(w.text), argv[1:])
	a.projectCode(w, "it runs a program of the project")
	return source{there: true}
}

// projectCode is for what runs the project's own code.
func (a *analysis) projectCode(w word, reason string) {
	d := Ask
	if a.r.ProjectCode {
		d = Allow
	}
	a.give("project-code", d, w.shown(), reason+", and what that does is not looked at", "let the user run it, or allow it by `reprise config set guard.project_code allow` or a rule")
}

// ruled notes what a rule of the settings comes to, with the rule itself.
func (a *analysis) ruled(r Rule, text string) {
	if r.Decision == Allow {
		a.granted = true
		if !a.r.Explain {
			return
		}
	}
	p := Part{Command: a.cur.String(), Decision: r.Decision, Rule: "rule", Word: text, Reason: r.Why, From: r.From, Depth: a.depth}
	if p.Reason == "" {
		p.Reason = "the rule " + string(r.Decision) + " " + shown(r.Shape) + " says so"
	}
	a.parts = append(a.parts, p)
}

// byRule is what the settings' rules say of a command: the strictest that fits.
func (a *analysis) byRule(argv []word, st *state) (Decision, Rule, bool) {
	var best Rule
	found := false
	for _, r := range a.r.List {
		if found && r.Decision.rank() <= best.Decision.rank() {
			continue
		}
		if r.Decision == Allow && r.matches(a.placed(&r, argv, st)) && a.meant(&r, argv, st) || r.Decision != Allow && a.strict(&r, argv, st) {
			best, found = r, true
		}
	}
	return best.Decision, best, found
}

// meant reports whether a rule that allows something allows this: in another directory
// the same words name another file, and a link may lead out of the one that a star was
// written for.
func (a *analysis) meant(r *Rule, argv []word, st *state) bool {
	if r.Decision != Allow || st == nil {
		return true
	}
	if len(a.roots) > 0 && slices.ContainsFunc(st.cwds, func(dir string) bool { return a.root(dir) == "" }) {
		return false // there the same words are of another directory's code, or another repository
	}
	if len(r.Words) > 0 {
		return true // there is no star
	}
	for i, s := range strings.Fields(r.Shape) {
		before, _, star := strings.Cut(s, "*")
		if star && i < len(argv) && a.ours(before, st) && !a.ours(argv[i].text, st) {
			return false // by a link
		}
	}
	return true
}

// allowed judges what a rule that allows a command does not speak of: what the
// built-in rules refuse stays refused.
func (a *analysis) allowed(argv []word, st *state) source {
	a.granted = true
	before := len(a.parts)
	r := *a.r
	r.List = nil
	old := a.r
	a.r = &r
	out := a.program(argv, st)
	a.r = old
	a.onlyRefused(before)
	return out
}

// onlyRefused leaves out of what was found from n on what is only asked about.
func (a *analysis) onlyRefused(n int) {
	kept := a.parts[:n]
	for _, p := range a.parts[n:] {
		if p.Decision == Deny || p.Decision == Allow {
			kept = append(kept, p)
		}
	}
	a.parts = kept
}

// wordsOf judges the words of a program that nothing is known of: where one is
// plainly a protected file or a secret, that is said beside.
func (a *analysis) wordsOf(argv []word, st *state) {
	for _, w := range argv {
		if !w.known() || w.text == "" || w.text[0] == '-' && !strings.Contains(w.text, "=") {
			continue
		}
		text := w.text
		if _, v, ok := strings.Cut(text, "="); ok && text[0] == '-' {
			text = v
		}
		for _, base := range a.bases(text, st) {
			if names.Secret(a.physical(base, text)) != "" {
				a.reads(w.shown())
			}
		}
	}
}

// known judges a command whose program stands in the table.
func (a *analysis) known(p *know.Program, argv []word, st *state) source {
	if a.ownRun(argv, st) || a.ownBinary(argv, st) {
		return source{there: true}
	}
	mark := len(a.options)
	defer func() { a.options = a.options[:mark] }()
	args := a.parseArgs(p, argv[1:], st)
	for len(p.Subs) > 0 && args.sub != nil {
		p = args.sub
		before := args
		args = a.parseArgs(p, before.rest, st)
		args.outer = &before
	}
	informs := args.informs() || args.asksItself(p)
	var files []string
	if informs || turnedAlways(argv[0].text) {
		files = turning(argv[0].text, args.has("--help") || args.has("-help") || args.has("-h"))
	}
	a.turned(argv[0], files, st)
	if informs || a.manual(&args, st) || a.parses(argv, &args, st) {
		return source{there: true}
	}
	if len(p.Subs) > 0 && p.Base == know.Flag && len(p.Operands) == 0 && (len(args.operands) > 0 || !p.Bare) {
		w := argv[0]
		if len(args.operands) > 0 {
			w = args.operands[0]
		}
		if !w.known() || w.made && len(args.operands) > 0 {
			a.give("dynamic-command", Deny, w.shown(), "which command of "+args.path()+" this is is only known when it runs", "write its name")
			return source{there: true}
		}
		a.give("unknown-subcommand", Ask, w.shown(), "it is not known what this command of "+args.path()+" does", "use one that only reads, or allow it by a rule")
		return source{there: true}
	}
	a.outerOptions(argv[0].text, args.outer, st)
	if p.Wraps {
		for _, o := range args.options {
			a.judgeUnknown(p, o) // which word is the program depends on it
		}
		a.base(p, argv[0], args)
		if p.Base == know.Exec && args.outer != nil {
			return a.withPackages(&args, st)
		}
		switch {
		case p.Name == "parallel":
			return a.parallel(&args, st)
		case p.Base == know.Net:
			return a.onAnother(&args, st)
		}
		return a.wrapped(args, p.Skip, st)
	}
	// What is thought of the program in any case speaks first.
	first := p.Base == know.Exec || p.Base == know.Ask || p.Base == know.Config || p.Base == know.Deny
	tells := args.tells(p) || args.inspects(p)
	if first && !tells {
		a.base(p, argv[0], args)
	}
	if p.Base == know.Exec && !tells {
		a.onlyOurs(&args, st)
		a.buildWrapper(argv)
		a.publishes(argv[0].text, argv[1:])
		a.fedCode(p, &args, st)
	}
	args.piecesHere()
	a.judgeArgs(p, &args, a.gitPlace(&args, st))
	a.follows(p, &args, st)
	if !first && !tells {
		a.base(p, argv[0], args)
	}
	if f := after(argv[0].text); f != nil {
		f(a, p, args, st)
	}
	return a.output(p, args, st)
}

// outerOptions judges the options before a subcommand. git's have meanings of
// their own.
func (a *analysis) outerOptions(program string, outer *args, st *state) {
	if program == "git" {
		return
	}
	for ; outer != nil; outer = outer.outer {
		p := know.Find(outer.name)
		for _, o := range outer.options {
			if p != nil {
				a.judgeUnknown(p, o)
				a.elsewhereBy(p, o)
			}
			a.judgeOption(o, st)
		}
	}
}

// makesBranch reports whether a command of git only gives the commit that is there a
// branch: no file changes by it.
func makesBranch(p *know.Program, g *args) bool {
	if g.root() != "git" || p.Name != "checkout" && p.Name != "switch" || len(g.operands) > 0 || len(g.rest) > 0 {
		return false
	}
	makes := false
	for _, o := range g.options {
		switch {
		case o.opt == nil:
			return false
		case p.Name == "checkout" && o.opt.Name == "-b", p.Name == "switch" && o.opt.Name == "-c":
			makes = o.arg.known()
		case o.opt.Name != "-q" && o.opt.Name != "--quiet":
			return false
		}
	}
	return makes
}

// base notes the least that is thought of a program.
func (a *analysis) base(p *know.Program, w word, args args) {
	why := p.Why
	switch p.Base {
	case know.Flag, know.Write, know.Delete:
		// Its paths say what is thought of it, where there are any.
		if a.r.Writes && makesBranch(p, &args) {
			a.granted = true
			return
		}
		if p.Base != know.Flag && !args.judged {
			a.give("writes", Ask, w.shown(), why, "let the user do it, or allow it by a rule")
		}
	case know.Exec:
		a.projectCode(w, why)
	case know.Net:
		a.reaches(args.path())
		if !args.hostsAllowed {
			instead := "let the user do it, or allow it by a rule"
			if args.hosts > args.allowedHosts && byHost(args.name) {
				instead = "have the user add the host to guard.hosts"
			}
			a.give("network", Ask, w.shown(), why, instead)
		}
	case know.Config:
		a.give("changes-settings", Ask, w.shown(), why, "let the user do it")
	case know.Deny:
		a.give("destructive", Deny, w.shown(), why, "let the user do it")
	default:
		a.give("needs-a-person", Ask, w.shown(), why, "let the user do it, or allow it by a rule")
	}
}

// wrapped judges the command that another one runs.
func (a *analysis) wrapped(args args, skip int, st *state) source {
	for _, o := range args.options {
		a.judgeOption(o, st)
	}
	if len(args.operands) < skip {
		return source{there: true}
	}
	for _, w := range args.operands[:skip] {
		if args.name == "flock" {
			a.lockFile(w, st)
		}
		if w.split {
			a.give("dynamic-option", Ask, w.shown(), "how many words this is is only known when it runs", "write it out")
		}
	}
	rest := args.operands[skip:]
	if len(rest) == 0 {
		return source{there: true}
	}
	return a.nested(rest, st)
}

// withPackages judges a command that a manager of packages runs with those of the project
// (bundle exec, poetry run): it is what it would be by itself, and the project's files say
// which program it is.
func (a *analysis) withPackages(g *args, st *state) source {
	if !a.ours(".", st) {
		a.otherCode(word{text: g.root()}, "it runs the code of a directory outside the project", "run it in the project")
	}
	for _, o := range g.outer.options {
		a.give("unknown-option", Ask, o.w.shown(), "the option may turn it to another project", "change to the project's directory")
	}
	if len(g.operands) > 0 && g.root() == "uv" && strings.HasSuffix(g.operands[0].text, ".py") {
		if w := g.operands[0]; !a.ownFile(w.text, st, ".py") || strings.Contains(w.text, "://") {
			a.otherCode(w, "it is code from elsewhere", "name a file of the project")
		}
		g.operands = append([]word{{text: "python3", src: g.operands[0].src}}, g.operands...)
	}
	return a.wrapped(*g, 0, st)
}

// onAnother judges the words that ssh joins for a shell of another machine.
func (a *analysis) onAnother(g *args, st *state) source {
	for _, o := range g.options {
		a.judgeOption(o, st)
	}
	var texts []string
	for _, w := range g.operands[min(1, len(g.operands)):] {
		texts = append(texts, w.text)
	}
	if text := strings.TrimPrefix(strings.Join(texts, " "), "-- "); text != "" {
		a.shellArg(word{text: text}, st)
	}
	return source{there: true, net: true}
}

// lockFile judges the file that flock locks: it makes one that is not there.
func (a *analysis) lockFile(w word, st *state) {
	u := use{}
	for _, base := range a.bases(w.text, st) {
		if _, err := os.Lstat(a.physical(base, w.text)); w.known() && err == nil {
			u.read = true
		}
	}
	a.path(w, u, st)
}

// nested judges a command inside another one.
func (a *analysis) nested(argv []word, st *state) source {
	if a.depth++; a.depth > maxDepth {
		a.depth--
		a.give("too-deep", Ask, argv[0].shown(), "commands start commands, deeper than is followed", "run the inner command by itself")
		return source{there: true}
	}
	cur := a.cur
	out := a.execProgram(argv, st)
	a.cur = cur
	a.depth--
	return out
}

// execProgram is exec for what looks for a program and not for a function.
func (a *analysis) execProgram(argv []word, st *state) source {
	c := a.borrow(st)
	c.funcs = nil
	out := a.exec(argv, c)
	a.giveBack(c)
	return out
}

// dirname is what the program of that name says of a path: unlike filepath.Dir it
// takes no dots out, and passes over slashes at the end.
func dirname(path string) string {
	rest := strings.TrimRight(path, "/")
	if rest == "" {
		return "/"
	}
	i := strings.LastIndexByte(rest, '/')
	if i < 0 {
		return "."
	}
	if dir := strings.TrimRight(rest[:i], "/"); dir != "" {
		return dir
	}
	return "/"
}

// output is what is known of what the program writes out.
func (a *analysis) output(p *know.Program, args args, st *state) source {
	out := source{there: true, what: args.name, net: p.Base == know.Net || st.in.net}
	out.endless = a.neverEnds(p, &args, st)
	produces := p.Produces
	if args.outer != nil && (args.has("--name-only") || args.has("--name-status")) {
		produces = know.Paths
	}
	switch {
	case whereInstalled(p, &args):
		out.origin, out.dotted = installed, true
		return out
	case namesCommits(&args):
		out.origin, out.dotted = fewWords, true
		return out
	case forged(p, &args):
		return out
	}
	out.solid, out.sum = tellsOneWord(&args), sums(&args, st.in)
	if args.outer != nil && args.name == "rev-parse" && len(args.operands) == 0 && len(args.options) == 1 && args.options[0].w.text == "--show-toplevel" && len(st.cwds) == 1 && len(args.outer.options) == 0 {
		if top := a.gitTop(st.cwds[0]); top != "" {
			out.fixed, out.text = true, top+"\n"
		}
		return out
	}
	if args.name == "dirname" && len(args.operands) == 1 && len(args.options) == 0 && args.operands[0].known() && args.operands[0].text != "" {
		out.fixed, out.text = true, dirname(args.operands[0].text)+"\n"
		return out
	}
	switch produces {
	case know.Paths:
		out.origin = a.lists(&args, st)
		out.dotted = args.name == "find" && args.dottedOperands() && !args.has("-printf")
	case know.Numbers:
		out.origin = numbers
	case know.Lines:
		files := args.has("-l") || args.has("--files-with-matches") || args.has("-L") || args.has("--files") || args.has("--files-without-match")
		n := len(args.operands)
		switch args.name {
		case "grep", "egrep", "fgrep", "rg", "ggrep":
			if (args.has("-c") || args.has("--count")) && counts(&args) {
				out.origin = numbers
			}
			if files {
				out.origin = a.found(&args, st)
				return out
			}
			n--
		}
		passed := n > 0 && slices.ContainsFunc(args.operands, func(w word) bool { return !w.known() || standardInput(w.text) })
		if passed && n == 1 && len(args.operands) == 1 && standardInput(args.operands[0].text) {
			n = 0
		}
		if n <= 0 && st.in.there {
			out.origin, out.dotted = st.in.origin, st.in.dotted
			if st.in.fixed && args.name == "cat" && len(args.options) == 0 {
				return st.in
			}
			return out
		}
		out.file = !passed && (args.name == "cat" || args.name == "head" || args.name == "tail")
	}
	return out
}
