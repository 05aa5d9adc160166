package guard

import (
	"slices"
	"strings"

	"reprise/internal/guard/know"
)

// option is one option of a command as it was understood.
type option struct {
	opt *know.Opt // nil: not known
	// short says that the name was abbreviated.
	short bool
	w     word // as it stands in the command
	arg   word // its argument
	given bool // there is one
	name  bool // it is a file's name, by a pattern
}

// args are a program's arguments as they were understood.
type args struct {
	name     string
	options  []option
	operands []word
	ended    int // how many operands came before --, -1: there was none
	sub      *know.Program
	rest     []word // after the subcommand
	outer    *args
	// judged says that a path among them was judged, hostsAllowed that every host
	// is known and may be read from.
	judged, hostsAllowed bool
	hosts, allowedHosts  int
}

func (g *args) has(name string) bool {
	return slices.ContainsFunc(g.options, func(o option) bool { return o.opt != nil && o.opt.Name == name })
}

// dottedOperands reports whether what find was given begins so that no name
// below it can look like an option.
func (g *args) dottedOperands() bool {
	for _, w := range g.operands {
		if !w.known() || w.text == "" || w.text[0] == '-' {
			return false
		}
	}
	return true
}

// informs reports whether a program is only asked for its version or help.
func (g *args) informs() bool {
	if len(g.operands) > 0 || len(g.options) == 0 || g.outer != nil {
		return false
	}
	some := false
	for _, o := range g.options {
		if o.opt == nil || o.short || o.opt.Arg == know.Required || o.given {
			return false
		}
		if o.opt.Name == "--verbose" {
			continue // as far as another one is there
		}
		some = true
		switch o.opt.Name {
		case "--version", "--help", "-version", "-help", "-V", "-vV", "-VV", "-dumpversion", "-dumpmachine", "-dumpfullversion", "--list-sdks", "--list-runtimes", "--info":
		case "-v":
			switch g.name {
			case "node", "npm", "pnpm", "yarn", "bun", "tsc", "perl", "ruby", "php", "lua", "luajit", "julia", "make", "gmake", "mvn":
			default:
				return false
			}
		default:
			return false
		}
	}
	return some
}

// asksItself reports whether a program, or a subcommand of it, is given --help or --version
// and nothing else, by which it tells about itself.
func (g *args) asksItself(p *know.Program) bool {
	if len(g.options) != 1 || g.options[0].given || g.ended >= 0 {
		return false
	}
	w := g.options[0].w
	if g.outer == nil && len(g.operands) == 0 {
		runs := p.Base == know.Exec || p.Base == know.Deny || p.Style == know.Words || len(p.Operands) > 0 && p.Operands[0].Kind == know.Script
		return !runs && p.Help != know.NoHelp && (w.text == "--help" || w.text == "--version")
	}
	for at := g.outer; at != nil; at = at.outer {
		if len(at.options) > 0 {
			return false
		}
	}
	// A word behind a program that has subcommands is one, be it known here or not.
	if n := len(g.operands); n > 1 || n == 1 && (len(p.Subs) == 0 || strings.Trim(g.operands[0].text, "abcdefghijklmnopqrstuvwxyz-") != "") {
		return false
	}
	return w.text == "--help" && know.Find(g.root()).Help == know.HelpOfSubs
}

// tells reports whether a program that does more is only asked to print something.
// Where it is not known what an option does, that may be what it does more.
func (g *args) tells(p *know.Program) bool {
	if slices.ContainsFunc(g.options, func(o option) bool { return o.opt == nil }) {
		return false
	}
	for _, name := range p.Tells {
		if name == "-" && len(g.options)+len(g.operands) == 0 {
			return true
		}
		if slices.ContainsFunc(g.options, func(o option) bool {
			return o.opt != nil && o.opt.Name == name && !o.short && (o.opt.Arg != know.Optional || !o.given)
		}) {
			return true
		}
	}
	return false
}

// parseArgs takes a program's arguments apart. What it cannot understand is in
// the options with no opt.
func (a *analysis) parseArgs(p *know.Program, argv []word, st *state) (g args) {
	g = args{name: p.Name, ended: -1, options: a.options[len(a.options):]}
	// The options of a command are kept in one place, which is used again for
	// the next: see known.
	defer func() {
		if n := len(a.options); cap(a.options) >= n+len(g.options) && (len(g.options) == 0 || &a.options[:n+1][n] == &g.options[0]) {
			a.options = a.options[:n+len(g.options)]
		}
	}()
	a.step(len(argv))
	for i := 0; i < len(argv); i++ {
		w := argv[i]
		switch {
		case g.ended >= 0 || p.Style == know.Words:
			g.operands = append(g.operands, w)
		case w.text == "--" && w.known():
			g.ended = len(g.operands)
		case p.Style == know.KeyValue:
			i = g.keyValue(p, argv, i)
		case strings.HasPrefix(w.text, "-") && len(w.text) > 1:
			i = g.option(p, argv, i)
		case p.Style == know.BSD && i == 0 && w.known() && w.text != "" && !strings.ContainsAny(w.text, "/.="):
			i = g.cluster(p, argv, i, w.text)
		case strings.HasPrefix(w.text, unknown) && w.dashed && !p.Any && !a.undashed(w):
			g.operands = append(g.operands, w)
			if !slices.ContainsFunc(p.Operands, func(o know.Operand) bool { return o.Kind == know.Ask }) {
				g.options = append(g.options, option{w: w})
			}
		case !p.Any && a.optional(w, st):
			g.operands = append(g.operands, w)
			g.options = append(g.options, option{w: w, name: true})
		default:
			if len(p.Subs) > 0 && len(g.operands) == 0 && w.known() && !w.made {
				if s := p.Sub(w.text); s != nil {
					g.sub, g.rest = s, argv[i+1:]
					return g
				}
			}
			g.operands = append(g.operands, w)
			if p.Wraps && len(g.operands) > p.Skip || p.Stops {
				g.operands = append(g.operands, argv[i+1:]...)
				return g
			}
		}
	}
	return g
}

func (g *args) keyValue(p *know.Program, argv []word, i int) int {
	w := argv[i]
	name, v, ok := strings.Cut(w.text, "=")
	o := option{w: w}
	if ok && !strings.Contains(name, unknown) {
		o.opt = p.Opt(name)
		o.arg, o.given = w.behind(v), true
		o.arg.glob = false
	}
	g.options = append(g.options, o)
	return i
}

// behind is the part of a word that is an option's argument: what the whole tells of
// secrets, and of where its text comes from, it tells as well.
func (w word) behind(text string) word {
	return word{text: text, src: w.src, made: w.made, origin: w.origin, glob: w.glob, secret: w.secret, told: w.told, net: w.net, solid: w.solid}
}

// option takes one word that begins with a dash, and its argument.
func (g *args) option(p *know.Program, argv []word, i int) int {
	w := argv[i]
	if p.Style == know.Single || strings.HasPrefix(w.text, "--") {
		return g.long(p, argv, i)
	}
	if o := p.Opt(w.text); o != nil && len(w.text) > 2 && w.known() {
		return g.take(*new(option), o, argv, i)
	}
	if w.known() && strings.Trim(w.text[1:], "0123456789") == "" {
		// -20 is how many.
		if o := p.Opt("-n"); o != nil || p.Any {
			g.options = append(g.options, option{opt: number, w: w})
			return i
		}
	}
	return g.cluster(p, argv, i, w.text[1:])
}

// number stands for an option that is a number.
var number = &know.Opt{Name: "-NUMBER"}

// take notes an option, with the next word where it needs an argument.
func (g *args) take(o option, opt *know.Opt, argv []word, i int) int {
	o.opt, o.w = opt, argv[i]
	if opt.Arg == know.Required && !o.given {
		if i++; i < len(argv) {
			o.arg, o.given = argv[i], true
		}
	}
	g.options = append(g.options, o)
	return i
}

// long takes an option with a long name.
func (g *args) long(p *know.Program, argv []word, i int) int {
	w := argv[i]
	name, v, eq := strings.Cut(w.text, "=")
	o := option{w: w}
	if eq {
		o.arg, o.given = w.behind(v), true
	}
	opt := p.Opt(name) // none for a name that is only known when it runs
	if opt == nil && p.Style == know.Single {
		opt = p.Opt(name[1:]) // with two dashes in the place of one
	}
	if opt == nil && p.Style != know.Single {
		// It may be abbreviated: then the worst of what it may stand for counts.
		for _, c := range p.Abbreviated(name) {
			o.short = true
			if opt == nil || worse(c, opt) {
				opt = c
			}
		}
	}
	if opt == nil {
		g.options = append(g.options, o)
		return i
	}
	return g.take(o, opt, argv, i)
}

func worse(c, d *know.Opt) bool {
	rank := func(o *know.Opt) int {
		switch {
		case o.Effect == know.Deny:
			return 4
		case o.Effect == know.Exec || o.Kind == know.Exec || o.Kind == know.Shell || o.Kind == know.Script:
			return 3
		case o.Effect != know.Flag || o.Kind == know.Write || o.Kind == know.Config || o.Kind == know.Delete:
			return 2
		}
		return 1
	}
	return rank(c) > rank(d)
}

// cluster takes letters that stand together, each an option; one that takes an
// argument has the rest for it.
func (g *args) cluster(p *know.Program, argv []word, i int, letters string) int {
	w := argv[i]
	bare := p.Style == know.BSD && !strings.HasPrefix(w.text, "-")
	next := i
	for k := 0; k < len(letters); k++ {
		opt := p.Opt("-" + letters[k:k+1])
		if opt == nil {
			g.options = append(g.options, option{w: w})
			if p.Any {
				continue
			}
			return next
		}
		o := option{opt: opt, w: w}
		rest := letters[k+1:]
		switch {
		case opt.Arg == know.None:
		case rest != "" && !bare:
			o.arg, o.given = w.behind(strings.TrimPrefix(rest, "=")), true
			g.options = append(g.options, o)
			return next
		case opt.Arg == know.Required:
			if next++; next < len(argv) {
				o.arg, o.given = argv[next], true
			}
		}
		g.options = append(g.options, o)
	}
	return next
}

// judgeArgs judges options and operands by what the table says of them.
func (a *analysis) judgeArgs(p *know.Program, g *args, st *state) {
	for _, o := range g.options {
		a.judgeUnknown(p, o)
		if p.Any && o.opt != nil && !o.given {
			continue
		}
		a.judgeOption(o, st)
		if o.opt != nil && o.given {
			g.count(a, o.opt.Kind, o.arg)
			a.elsewhereBy(p, o)
		}
		if p.Base == know.Net {
			a.sendsBy(p, g, o, st)
		}
	}
	n := len(g.operands)
	for i, w := range g.operands {
		op := p.OperandAt(i, n, g.has)
		if op == nil {
			if !p.Any {
				a.give("unknown-operand", Ask, w.shown(), "it is not known what this argument does", "leave it out")
			}
			continue
		}
		kind := op.Kind
		if kind == know.Delete && g.root() == "git" && g.has("--cached") {
			kind = know.Write // the file stays where it is, and only git forgets it
		}
		a.judgeArg(kind, w, st)
		g.count(a, kind, w)
		if w.several() && !op.Rest {
			// The second of its words is what the next operand is.
			if next := p.OperandAt(i+1, n+1, g.has); next != nil && next.Kind != op.Kind && weighty(next.Kind) {
				a.judgeArg(next.Kind, w, st)
			}
		}
		if p.Base == know.Net {
			a.sends(w, p, g, st)
		}
	}
	g.hostsAllowed = (byHost(g.name) || g.name == "nc" && g.has("-z")) && g.hosts > 0 && g.hosts == g.allowedHosts
	if p.Cwd && !slices.ContainsFunc(p.Operands, func(o know.Operand) bool { return o.Kind == know.Read || o.Kind == know.Look }) || p.Cwd && n == 0 || g.outer != nil && (g.root() == "git" || g.root() == "go") {
		a.here(st)
	}
}

// elsewhereBy judges an option that names another machine, of a program that else
// stays on this one.
func (a *analysis) elsewhereBy(p *know.Program, o option) {
	if o.opt != nil && o.given && o.opt.Kind == know.Net && p.Base != know.Net && !(o.arg.known() && a.r.hostAllowed(hostOf(o.arg.text))) {
		a.give("network", Ask, o.w.shown(), "it reaches another machine", "leave it out")
	}
}

// count notes what the arguments were.
func (g *args) count(a *analysis, k know.Kind, w word) {
	switch k {
	case know.Write, know.Delete:
		g.judged = g.judged || w.text != "" // an empty name is nothing that could be judged
	case know.Net:
		g.hosts++
		if w.known() && a.r.hostAllowed(hostOf(w.text)) {
			g.allowedHosts++
		}
	}
}

func (g *args) root() string {
	for g.outer != nil {
		g = g.outer
	}
	return g.name
}

// path is the name of a program with those of its subcommands.
func (g *args) path() string {
	if g.outer == nil {
		return g.name
	}
	return g.outer.path() + " " + g.name
}

// here judges the current directory, for a program that works in it.
func (a *analysis) here(st *state) {
	if st.cwds == nil {
		a.give("unknown-directory", Ask, "", "the directory that it works in is not known", "write the path out, or change to it by an absolute path")
		return
	}
	a.path(word{text: ".", src: "."}, use{read: true}, st)
}

// judgeUnknown judges an option that the table does not have.
func (a *analysis) judgeUnknown(p *know.Program, o option) {
	if p.Any {
		if manyWords(o.w) {
			a.give("dynamic-option", Ask, o.w.shown(), "how many words this is is only known when it runs", "put it in double quotes")
		}
		return
	}
	switch {
	case o.opt == nil && o.name:
		a.give("dynamic-option", Ask, o.w.shown(), "it may stand for a name that begins with a dash, which the program takes for an option", "put -- or ./ before it")
	case o.opt == nil && !o.w.known():
		a.give("dynamic-option", Ask, o.w.shown(), "it may be an option, which is only known when it runs", "put -- before it, or write it out")
	case o.opt == nil:
		a.give("unknown-option", Ask, o.w.shown(), "it is not known what this option of "+p.Name+" does", "leave it out")
	case o.short && o.opt.Effect == know.Flag && !weighty(o.opt.Kind):
		a.give("abbreviated-option", Ask, o.w.shown(), "an option that is abbreviated may be another one than it looks", "write it in full: "+o.opt.Name)
	}
}

// manyWords reports whether a word may turn out to be several, of which nothing is
// known.
func manyWords(w word) bool {
	return w.split && !w.known() && w.origin != numbers && w.origin != fewWords
}

func weighty(k know.Kind) bool {
	return k != know.Flag && k != know.Text && k != know.Number
}

// judgeOption judges an option that is known.
func (a *analysis) judgeOption(o option, st *state) {
	if o.opt == nil {
		return
	}
	name, effect := o.opt.Name, o.opt.Effect
	if effect == know.Flag && o.opt.Arg == know.Optional && !o.given && o.opt.Kind != know.Text && o.opt.Kind != know.Read {
		effect = o.opt.Kind // it does that without being told where
	}
	switch effect {
	case know.Flag, know.Follow: // what follows links is looked at with all that it is given
	case know.Deny:
		a.give("refused-option", Deny, o.w.shown(), name+" switches off what the user relies on", "leave it out")
	case know.Exec, know.Script, know.Shell:
		a.give("option-runs", Ask, o.w.shown(), name+" runs a program", "leave it out")
	case know.Write, know.Delete:
		d := Ask
		if a.r.Writes && !o.given && o.opt.Kind == know.Text && a.cur.edits() {
			d = Allow // of the files themselves it is said elsewhere
		}
		a.give("writes", d, o.w.shown(), name+" changes or writes files", "leave it out, or use the client's own tool for writing files")
	case know.Net:
		a.reaches(name)
		a.give("network", Ask, o.w.shown(), name+" reaches another machine", "leave it out")
	case know.Config:
		a.give("changes-settings", Ask, o.w.shown(), name+" changes settings", "leave it out")
	default:
		a.give("needs-a-person", Ask, o.w.shown(), name+" does more than read", "leave it out, or allow it by a rule")
	}
	if o.given {
		if manyWords(o.arg) && (o.opt.Kind == know.Text || o.opt.Kind == know.Number) {
			// The second of them is an operand, or a program's name.
			a.give("dynamic-option", Ask, o.arg.shown(), "how many words this is is only known when it runs", "put it in double quotes")
		}
		a.judgeArg(o.opt.Kind, o.arg, st)
	} else if o.opt.Arg == know.Required {
		a.give("unknown-option", Ask, o.w.shown(), name+" lacks its argument", "write it out")
	}
}

// judgeArg judges an argument by what it means.
func (a *analysis) judgeArg(k know.Kind, w word, st *state) {
	switch k {
	case know.Flag, know.Text, know.Number:
	case know.Read:
		if w.text == "-" {
			return
		}
		a.path(w, use{read: true}, st)
	case know.Look:
		a.path(w, use{read: true, looks: true}, st)
	case know.Dir:
		a.path(w, use{read: true}, st)
	case know.Write:
		if w.text == "-" {
			return
		}
		a.path(w, use{replaced: a.cur.replaces()}, st)
	case know.Delete:
		a.path(w, use{gone: true}, st)
	case know.Exec, know.Script:
		a.give("option-runs", Ask, w.shown(), "it names code or a program that is run", "leave it out, or let the user run it")
	case know.Config:
		a.give("option-config", Ask, w.shown(), "it gives the program settings, which may name programs to run", "leave it out")
	case know.Shell:
		a.shellArg(w, st)
	case know.Net:
		a.host(w)
	case know.Ask:
		a.give("needs-a-person", Ask, w.shown(), "with this argument it does more than read", "leave it out, or allow it by a rule")
	case know.Sed:
		a.sed(w, st)
	case know.Awk:
		a.awk(w, st)
	}
}

// shellArg judges a text that a program gives to a shell.
func (a *analysis) shellArg(w word, st *state) {
	if !w.known() {
		a.give("dynamic-command", Deny, w.shown(), "a command is put together while it runs and given to a shell", "write the command out")
		return
	}
	cur := a.cur
	a.shellText(w.text, st.fork())
	a.cur = cur
	a.give("option-runs", Ask, w.shown(), "it gives a command to a shell", "if it is for this machine, run the command by itself; else let the user do it")
}

// host judges what names another machine.
func (a *analysis) host(w word) {
	if w.known() && a.r.hostAllowed(hostOf(w.text)) {
		return
	}
	a.reaches(w.text)
	if strings.HasPrefix(strings.ToLower(w.text), "ext::") {
		a.give("command-as-address", Deny, w.shown(), "git takes this address for a command and runs it", "use https")
		return
	}
	if strings.HasPrefix(strings.ToLower(w.text), "file:") {
		a.give("reads-outside", Ask, w.shown(), "it reads a file by an address", "name the file")
	}
}

// hostOf is the host of an address: of a URL, of user@host:path, or of a name.
func hostOf(s string) string {
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		if scheme = strings.ToLower(scheme); scheme != "http" && scheme != "https" {
			return "" // by gopher and its like any text may be said to any service there
		}
		s = rest
	}
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		s = s[:i]
	}
	if strings.Contains(s, `\`) {
		return "" // some end the host there, others take it for a part of the user's name
	}
	s = s[strings.LastIndexByte(s, '@')+1:]
	if strings.HasPrefix(s, "[") {
		if i := strings.IndexByte(s, ']'); i > 0 {
			return s[1:i]
		}
	}
	s, _, _ = strings.Cut(s, ":")
	return s
}
