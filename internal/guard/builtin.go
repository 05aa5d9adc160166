package guard

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"reprise/internal/guard/know"
	"reprise/internal/guard/names"
)

// builtin is how a command of the shell itself is judged, nil for a name that is
// none, or that is as names.Cosmetic as the program of its name.
func builtin(name string) func(*analysis, []word, *state) source {
	switch name {
	case ":", "true", "false", "echo", "wait", "return", "exit", "break", "continue", "shift", "times", "dirs", "type", "disown", "bg", "fg":
		return (*analysis).saying
	case "jobs":
		return (*analysis).jobs
	case "history":
		return (*analysis).history
	case "printf":
		return (*analysis).printf
	case "pwd":
		return (*analysis).pwd
	case "cd":
		return (*analysis).cd
	case "pushd":
		return (*analysis).pushd
	case "popd":
		return (*analysis).popd
	case "eval":
		return (*analysis).eval
	case "source", ".":
		return (*analysis).sourced
	case "command", "builtin", "exec":
		return (*analysis).running
	case "alias", "unalias", "bind", "complete", "compopt", "suspend", "logout", "caller", "compgen", "newgrp", "disable", "emulate", "autoload", "zmodload", "zcompile", "noglob", "nocorrect", "sched", "vared", "zle":
		return (*analysis).asked
	case "fc":
		return (*analysis).commandsBefore
	case "trap":
		return (*analysis).trap
	case "read":
		return (*analysis).read
	case "mapfile", "readarray":
		return (*analysis).readLines
	case "test", "[":
		return (*analysis).testCommand
	case "unset":
		return (*analysis).unset
	case "getopts":
		return (*analysis).getopts
	case "set":
		return (*analysis).set
	case "shopt":
		return (*analysis).shopt
	case "hash":
		return (*analysis).hash
	case "enable":
		return (*analysis).enable
	case "umask", "ulimit":
		return (*analysis).limits
	case "let":
		return (*analysis).let
	case "export", "declare", "typeset", "local", "readonly":
		return (*analysis).declareWords
	}
	return nil
}

// leaves notes what holds where a loop or a function is left early, and takes shift's
// arguments away.
func (a *analysis) leaves(argv []word, st *state) {
	switch {
	case argv[0].text == "exit":
	case argv[0].text != "shift":
		a.left = append(a.left, st.fork())
	case len(argv) == 1 && st.argsKnown && len(st.args) > 0 && !st.args[0].several():
		st.args = st.args[1:]
	default:
		st.args, st.argsKnown = nil, false
	}
}

// saying is for commands that only say something, or move on in the script.
func (a *analysis) saying(argv []word, st *state) source {
	for _, w := range argv[1:] {
		a.says(w, st)
	}
	switch argv[0].text {
	case "wait":
		for i, w := range argv[1:] {
			// The name may be glued to it, and other letters may stand before it.
			if at := strings.IndexByte(w.text, 'p'); at < 0 || !strings.HasPrefix(w.text, "-") {
				continue
			} else if name := w.text[at+1:]; name != "" {
				a.name(word{text: name, src: w.src}, st, value{origin: numbers})
			} else if i+2 < len(argv) {
				a.name(argv[i+2], st, value{origin: numbers})
			}
		}
	case "exit", "return", "shift", "break", "continue":
		a.calculations(argv[1:], st)
		a.leaves(argv, st)
	}
	out := source{there: true, what: argv[0].text}
	if argv[0].text != "echo" {
		return source{}
	}
	words := argv[1:]
	escapes := false
	for len(words) > 0 && len(words[0].text) > 1 && words[0].text[0] == '-' && strings.Trim(words[0].text[1:], "neE") == "" {
		escapes = escapes || strings.Contains(words[0].text, "e")
		words = words[1:]
	}
	out.fixed = true
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.text)
		if !w.known() || w.glob && strings.ContainsAny(w.text, "*?[") || w.split {
			out.fixed = false
		}
	}
	out.text = b.String()
	// What a backslash means to echo is another thing in each shell: bash wants -e, dash
	// and zsh do not. Where they come to the same it is followed.
	if plain, any := plainEscapes(out.text); any {
		out.doubt = !plain || !escapes
		if escapes {
			s, ok := ansiQuoted(out.text)
			out.text, out.fixed = s, out.fixed && ok
		}
	}
	out.text += "\n"
	if len(words) == 1 && !out.fixed && words[0].text == unknown {
		out.origin, out.dotted = words[0].origin, !words[0].dashed
	}
	if len(words) == 1 && words[0].glob && words[0].known() {
		out.origin = a.globbed(argv[0].text, words[0], false, st)
	}
	return out
}

// plainEscapes tells of a text whether it has a backslash with a letter, a digit or
// another backslash, to which echo and printf of some shell give a meaning, and whether
// each of these means the same in all of them.
func plainEscapes(s string) (plain, any bool) {
	plain = true
	for i := 0; i+1 < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		switch i++; s[i] {
		case 'n', 't', 'r', 'a', 'b', 'f', 'v', '\\':
			any = true
		case 'c', 'e', 'E', 'x', 'u', 'U', '0', '1', '2', '3', '4', '5', '6', '7', '"', '\'', '?':
			plain, any = false, true
		}
	}
	return plain, any
}

// jobs lists, and with -x runs a command.
func (a *analysis) jobs(argv []word, st *state) source {
	for i, w := range argv[1:] {
		switch {
		case !w.known():
			a.give("dynamic-option", Ask, w.shown(), "it may be an option, and jobs -x runs a command", "write it out")
		case strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "x"):
			a.give("option-runs", Ask, w.shown(), "it runs a command", "run the command by itself")
			if rest := argv[i+2:]; len(rest) > 0 {
				return a.nested(rest, st)
			}
		}
	}
	return source{there: true}
}

// history without options shows what was run.
func (a *analysis) history(argv []word, st *state) source {
	for _, w := range argv[1:] {
		if w.text == "" || strings.Trim(w.text, "0123456789") != "" {
			return a.asked(argv, st)
		}
	}
	return source{there: true}
}

// tellsSecrets judges the words that a program is given: nearly any of them may print
// one, or a part of it (basename, date +…, seq -f, awk -v). What reaches the network is judged by what it
// sends.
func (a *analysis) tellsSecrets(name string, words []word, st *state) {
	if p := know.Find(name); p != nil && p.Base == know.Net {
		return
	}
	for _, w := range words {
		a.says(w, st)
	}
}

// says judges a word that is printed.
func (a *analysis) says(w word, st *state) {
	if w.secret {
		a.reads(w.shown())
		a.give("reads-secret", Ask, w.shown(), "the variable's name says that it holds a secret, and this prints it", "leave it out, or test it with -n")
	}
}

func (a *analysis) printf(argv []word, st *state) source {
	args := argv[1:]
	a.widths(args)
	if len(args) > 0 && strings.HasPrefix(args[0].text, "-v") {
		name := word{text: strings.TrimPrefix(args[0].text, "-v"), src: args[0].src}
		if args = args[1:]; name.text == "" && len(args) > 0 {
			name = args[0]
		}
		for _, w := range args {
			a.says(w, st)
		}
		a.name(name, st, value{})
		return source{}
	}
	if len(args) > 0 && !args[0].known() && args[0].dashed {
		a.give("dynamic-option", Ask, args[0].shown(), "it may be an option, and printf -v evaluates names", "write the format out")
	}
	for _, w := range args {
		a.says(w, st)
	}
	a.formatted(args, st)
	out := source{there: true, what: "printf"}
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	switch {
	case len(args) == 0:
	case args[0].known() && !strings.Contains(strings.ReplaceAll(args[0].text, "%%", ""), "%"):
		plain, _ := plainEscapes(args[0].text)
		out.text, out.fixed = ansiQuoted(strings.ReplaceAll(args[0].text, "%%", "%"))
		out.doubt = !plain
	case args[0].known() && (args[0].text == `%s\n` || args[0].text == "%s" || args[0].text == `%s\0` || args[0].text == "%s\n"):
		end := strings.NewReplacer(`\n`, "\n", `\0`, "\n").Replace(args[0].text[2:])
		out.fixed = true
		var b strings.Builder
		for _, w := range args[1:] {
			b.WriteString(w.text + end)
			out.fixed = out.fixed && w.known() && !w.split && !(w.glob && strings.ContainsAny(w.text, "*?["))
		}
		out.text = b.String()
		if len(args) == 2 && !out.fixed {
			if w := args[1]; w.text == unknown || w.glob && w.known() {
				out.origin, out.dotted = w.origin, !w.dashed
				if w.glob {
					out.origin = a.globbed("printf", w, strings.HasSuffix(args[0].text, `\0`), st)
				}
			}
		}
	}
	return out
}

// name judges a word that names a variable to be set, and notes it.
func (a *analysis) name(w word, st *state, v value) {
	a.subscript(w)
	if w.known() && syntax.ValidName(w.text) {
		a.assignment(w.text, word{text: unknown}, false, st)
		a.gets(w.text, v, st)
		st.bind(a, w.text, v)
		return
	}
	st.forget(a)
}

func (a *analysis) pwd(_ []word, st *state) source {
	out := source{there: true, what: "pwd", origin: paths, dotted: true}
	if len(st.cwds) == 1 && !st.linked {
		out.fixed, out.text = true, st.cwds[0]+"\n"
	}
	return out
}

func (a *analysis) cd(argv []word, st *state) source {
	args := argv[1:]
	for len(args) > 0 && (args[0].text == "-P" || args[0].text == "-L" || args[0].text == "-e" || args[0].text == "--" || args[0].text == "-LP") {
		args = args[1:]
	}
	switch {
	case len(args) == 0:
		args = []word{{text: a.r.Home, src: "~"}}
		if a.r.Home == "" {
			st.cwds = nil
			return source{}
		}
	case len(args) > 1 || args[0].split:
		a.unknownDir(args[0], st)
		return source{}
	case args[0].text == "-" && st.old != nil && !st.linked:
		st.cwds, st.old = st.old, st.cwds
		return source{}
	}
	a.chdir(args[0], st)
	return source{}
}

func (a *analysis) unknownDir(w word, st *state) {
	a.give("unknown-directory", Ask, w.shown(), "which directory it changes to is only known when it runs", "write the directory out")
	st.cwds, st.old, st.stack = nil, nil, nil
}

// chdir follows a change of directory.
func (a *analysis) chdir(w word, st *state) {
	if w.text == "" {
		st.old, st.stack = nil, nil
		return
	}
	if !w.known() || w.text == "-" || w.glob && strings.ContainsAny(w.text, "*?[") || strings.HasPrefix(w.text, "-") || strings.HasPrefix(w.text, "+") {
		a.unknownDir(w, st)
		return
	}
	if !filepath.IsAbs(w.text) && w.text != "." && w.text != ".." && !strings.HasPrefix(w.text, "./") && !strings.HasPrefix(w.text, "../") && a.r.env("CDPATH") != "" {
		a.give("cdpath", Ask, w.shown(), "CDPATH is set, which sends a relative cd elsewhere", "write ./ before it")
		st.cwds, st.old, st.stack = nil, nil, nil
		return
	}
	if st.linked && strings.Contains(w.text, "..") && !filepath.IsAbs(w.text) {
		a.unknownDir(w, st)
		return
	}
	bases := a.bases(w.text, st)
	if len(bases) == 0 {
		a.unknownDir(w, st)
		return
	}
	var to []string
	certain, before := true, st.cwds
	for _, b := range bases {
		p := a.physical(b, w.text)
		// The shell takes the dots out first, the kernel goes link by link.
		lexical := w.text
		if !filepath.IsAbs(lexical) {
			lexical = filepath.Join(b, lexical)
		}
		if q := a.physical("", filepath.Clean(lexical)); q != p {
			to = append(to, q)
			st.linked = true
		}
		if p != filepath.Clean(lexical) {
			st.linked = true
		}
		to = append(to, p)
		if !a.exists(p) {
			// cd fails, and what follows is where it was.
			certain = false
			if st.cwds == nil {
				a.unknownDir(w, st)
				return
			}
			to = append(to, st.cwds...)
		}
	}
	st.cwds, st.old = slices.Compact(to), nil
	if len(to) > maxPlaces {
		st.cwds = nil
	}
	if certain {
		st.old = before
	} else {
		st.stack = nil // pushd may have put nothing on it
	}
}

func (a *analysis) pushd(argv []word, st *state) source {
	before := st.cwds
	if len(argv) != 2 || st.posix { // a shell that knows POSIX only stays where it is
		a.unknownDir(argv[0], st)
		return source{}
	}
	st.old = nil
	a.chdir(argv[1], st)
	if st.old == nil {
		return source{}
	}
	st.stack = append(append([][]string(nil), st.stack...), before)
	return source{}
}

func (a *analysis) popd(argv []word, st *state) source {
	if len(argv) > 1 || len(st.stack) == 0 {
		a.unknownDir(argv[0], st)
		return source{}
	}
	st.cwds, st.old = st.stack[len(st.stack)-1], nil
	st.stack = st.stack[:len(st.stack)-1]
	return source{}
}

func (a *analysis) eval(argv []word, st *state) source {
	var texts []string
	computed := word{}
	for _, w := range argv[1:] {
		if w.made && computed.text == "" {
			computed = w
		}
		if !w.known() || w.split || w.named || w.glob && strings.ContainsAny(w.text, "*?[") && w.made {
			a.give("dynamic-command", Deny, w.shown(), "a command is put together while it runs and evaluated", "write the command out")
			st.forget(a)
			return source{there: true}
		}
		texts = append(texts, w.text)
	}
	before := len(a.parts)
	out := a.shellText(strings.Join(texts, " "), st)
	a.computed(computed, before)
	return out
}

// computed refuses a command that is put together while it runs, where it is not
// plainly harmless: as a program's name that is computed.
func (a *analysis) computed(w word, before int) {
	if w.text == "" {
		return
	}
	for _, p := range a.parts[before:] {
		if p.Decision == Ask {
			a.give("dynamic-command", Deny, w.shown(), "a command is put together while it runs", "write the command out")
			return
		}
	}
}

func (a *analysis) sourced(argv []word, st *state) source {
	if len(argv) < 2 {
		return source{}
	}
	if t := argv[1].text; (t == "/dev/stdin" || t == "/dev/fd/0") && st.in.there {
		return a.fed(argv[1], st, st)
	}
	if !argv[1].known() || strings.HasPrefix(argv[1].text, "/dev/") {
		a.give("dynamic-command", Deny, argv[1].shown(), "which script this runs is only known when it runs", "write the script's name")
	} else {
		a.path(argv[1], use{read: true}, st)
		a.projectCode(argv[1], "it runs a script")
	}
	st.forget(a)
	return source{there: true}
}

// running is command, builtin and exec: they run what follows.
func (a *analysis) running(argv []word, st *state) source {
	name, rest := argv[0].text, argv[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0].text, "-") {
		switch o := rest[0].text; {
		case o == "--":
			rest = rest[1:]
			goto run
		case name == "command" && (o == "-v" || o == "-V" || o == "-pv" || o == "-pV"):
			return source{there: true}
		case name == "command" && o == "-p", name == "exec" && (o == "-c" || o == "-l" || o == "-cl"):
			if strings.Contains(o, "c") {
				st = st.fork()
				st.cleared = true
				a.give("environment", Ask, o, "it takes the environment away, and with it the limits of this run", "leave it out")
			}
			rest = rest[1:]
		case name == "exec" && o == "-a" && len(rest) > 1:
			rest = rest[2:]
		default:
			a.give("unknown-option", Ask, rest[0].shown(), "it is not known what this option does", "leave it out")
			rest = rest[1:]
		}
	}
run:
	if len(rest) == 0 {
		return source{}
	}
	if w := rest[0]; name != "exec" && w.known() && !w.made && builtin(w.text) != nil {
		return a.behind(rest, st)
	}
	return a.nested(rest, st)
}

// behind judges one of the shell's own commands behind command or builtin: what it
// changes is changed here.
func (a *analysis) behind(argv []word, st *state) source {
	if a.depth++; a.depth > maxDepth {
		a.depth--
		a.give("too-deep", Ask, argv[0].shown(), "commands start commands, deeper than is followed", "run the inner command by itself")
		return source{there: true}
	}
	cur := a.cur
	a.cur = commandOf(argv)
	if a.closing != nil {
		a.closing.command(a, argv, st, false)
	}
	a.step(2)
	out := a.program(argv, st)
	a.cur = cur
	a.depth--
	return out
}

func (a *analysis) asked(argv []word, _ *state) source {
	switch commandOf(argv).String() {
	case "alias", "caller", "caller 0", "caller 1", "complete -p", "bind -P", "bind -p", "bind -l", "compgen -a", "compgen -b", "compgen -c", "compgen -k":
		return source{there: true} // it lists them
	}
	a.give("changes-shell", Ask, argv[0].shown(), "it changes what later words mean, or runs what it is given", "leave it out")
	return source{there: true}
}

func (a *analysis) trap(argv []word, st *state) source {
	args := argv[1:]
	if len(args) > 0 && (args[0].text == "--") {
		args = args[1:]
	}
	if len(args) == 0 || args[0].text == "-l" || args[0].text == "-p" || args[0].text == "-" || args[0].text == "" && args[0].known() {
		return source{}
	}
	if !args[0].known() || args[0].split {
		a.give("dynamic-command", Deny, args[0].shown(), "a command is put together while it runs and run later", "write the command out")
		return source{}
	}
	inner := st.fork()
	a.shellText(args[0].text, inner)
	if !slices.Equal(inner.cwds, st.cwds) || inner.vars != st.vars {
		a.give("dynamic-name", Ask, args[0].shown(), "the trap changes the directory or a variable at a time that is not known", "write it where it is to happen")
	}
	// When it runs, the command may be elsewhere, and its variables others.
	n, later := len(a.parts), st.fork()
	later.cwds, later.old, later.stack = nil, nil, nil
	later.forget(a)
	a.shellText(args[0].text, later)
	a.onlyNew(0, n)
	return source{}
}

// read judges read: what follows its options are names.
func (a *analysis) read(argv []word, st *state) source {
	if st.in.endless == oneLine || slices.ContainsFunc(argv, func(w word) bool { return strings.HasPrefix(w.text, "-d") }) {
		a.fills(st.in.endless, "read")
	}
	v := value{origin: st.in.origin, dotted: st.in.dotted}
	if !slices.ContainsFunc(argv, func(w word) bool { return strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "d") }) {
		a.apart(st.in.origin)
	}
	rest := argv[1:]
	for _, w := range rest {
		a.says(w, st) // it may be the prompt
	}
	for len(rest) > 0 && strings.HasPrefix(rest[0].text, "-") && len(rest[0].text) > 1 {
		o := rest[0].text
		last := o[len(o)-1:]
		rest = rest[1:]
		switch {
		case o == "--":
			goto names
		case strings.Trim(o[1:], "rst0123456789") == "" && last != "t", o == "-e":
		case strings.Contains("dnNtpuis", last) && strings.Trim(o[1:len(o)-1], "rset") == "":
			if len(rest) > 0 && last != "s" {
				rest = rest[1:]
			}
		case last == "a":
			v = value{}
		case strings.HasPrefix(o, "-d") || strings.HasPrefix(o, "-n") || strings.HasPrefix(o, "-t") || strings.HasPrefix(o, "-u") || strings.HasPrefix(o, "-p") || strings.HasPrefix(o, "-N"):
		default:
			a.give("unknown-option", Ask, shown(o), "it is not known what this option does", "leave it out")
		}
	}
names:
	for i, w := range rest {
		if i > 0 {
			v = value{}
		}
		a.name(w, st, v)
	}
	if len(rest) == 0 {
		a.bindOwn("REPLY", v, st)
	}
	return source{}
}

// bindOwn gives a variable a value that no word of the command names.
func (a *analysis) bindOwn(name string, v value, st *state) {
	a.gets(name, v, st)
	st.bind(a, name, v)
}

// readLines judges mapfile, whose options are others than those of read: -t takes no
// argument, and -s does.
func (a *analysis) readLines(argv []word, st *state) source {
	name := word{text: "MAPFILE"}
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		if w.text == "--" || !strings.HasPrefix(w.text, "-") || len(w.text) == 1 {
			if w.text == "--" {
				i++
			}
			if i < len(argv) {
				name = argv[i]
			}
			break
		}
	letters:
		for k := 1; k < len(w.text); k++ {
			switch c := w.text[k]; c {
			case 't':
				continue
			case 'C':
				a.give("option-runs", Ask, w.shown(), "it runs a command for each line", "use a loop")
			case 'd', 'n', 'O', 's', 'u', 'c':
			default:
				a.give("unknown-option", Ask, w.shown(), "it is not known what this option does", "leave it out")
				break letters
			}
			if k == len(w.text)-1 {
				i++ // its argument is the next word
			}
			break
		}
	}
	a.fills(st.in.endless, "mapfile")
	a.name(name, st, value{})
	return source{}
}

func (a *analysis) testCommand(argv []word, st *state) source {
	a.toldSecrets(argv[1:], st)
	a.plainNumbers(argv[1:])
	for i, w := range argv[1:] {
		if w.text == "-v" || w.text == "-R" {
			if i+2 < len(argv) && argv[i+2].text != "]" {
				a.subscript(argv[i+2])
			}
			continue
		}
		if manyWords(w) {
			a.give("dynamic-option", Ask, w.shown(), "how many words this is is only known when it runs, and -v among them evaluates the next", "put it in double quotes")
		}
	}
	return source{}
}

func (a *analysis) unset(argv []word, st *state) source {
	for _, w := range argv[1:] {
		if w.text == "-f" || w.text == "-v" || w.text == "-n" || w.text == "--" {
			continue
		}
		a.subscript(w)
		if names.Variable(w.text) == names.Loading || strings.Contains(w.src, "REPRISE_") {
			a.give("environment-loads", Deny, w.text, "the variable decides about the guard and its limits", "leave it as it is")
		}
		if syntax.ValidName(w.text) {
			a.lost(w.text, st)
			st.bind(a, w.text, value{})
		}
	}
	return source{}
}

// lost judges that a variable has no value any more: without PATH a shell takes a
// program's name for that of a file where it is.
func (a *analysis) lost(name string, st *state) {
	switch {
	case name == "PATH":
		a.assignment(name, word{}, false, st)
	case ownValue(name):
		a.give("environment", Ask, name, "it takes from the variable what the shell gives it", "leave it as it is")
	}
}

func (a *analysis) getopts(argv []word, st *state) source {
	if len(argv) > 2 {
		a.name(argv[2], st, value{})
	}
	secret := func(w word) bool { return w.secret }
	a.bindOwn("OPTARG", value{w: word{secret: slices.ContainsFunc(argv, secret) || slices.ContainsFunc(st.args, secret)}}, st)
	return source{}
}

func (a *analysis) set(argv []word, st *state) source {
	if len(argv) == 1 {
		a.give("shows-environment", Ask, "set", "it prints the values of variables, secrets among them", "print the one variable that is wanted")
		a.reads("set")
		return source{there: true}
	}
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		a.traced = a.traced || strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "x")
		switch {
		case w.text == "--" || w.text == "-" || w.known() && !strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "+"):
			st.args, st.argsKnown = slices.Clone(argv[i+1:]), w.text == "--"
			a.taint("1", value{list: st.args})
			return source{}
		case !w.known():
			a.give("dynamic-option", Ask, w.shown(), "it may be an option, which is only known when it runs", "write it out")
			return source{}
		case strings.Trim(w.text[1:], "euxvonfEBCH") != "":
			a.give("unknown-option", Ask, w.shown(), "this option changes what later words mean", "leave it out")
		case strings.HasSuffix(w.text, "o"):
			if i++; i < len(argv) {
				a.traced = a.traced || argv[i].text == "xtrace"
				switch argv[i].text {
				case "pipefail", "errexit", "nounset", "xtrace", "verbose", "noglob", "noclobber", "errtrace", "posix":
				default:
					a.give("unknown-option", Ask, argv[i].shown(), "this option changes what later words mean", "leave it out")
				}
			}
		}
	}
	return source{}
}

func (a *analysis) shopt(argv []word, _ *state) source {
	for _, w := range argv[1:] {
		switch w.text {
		case "-s", "-u", "-q", "-p", "nullglob", "globstar", "extglob", "failglob", "inherit_errexit", "lastpipe", "nocasematch", "globasciiranges", "checkwinsize":
		default:
			a.give("changes-shell", Ask, w.shown(), "this option changes what later words mean", "leave it out")
		}
	}
	return source{}
}

func (a *analysis) hash(argv []word, _ *state) source {
	for _, w := range argv[1:] {
		if w.text != "-r" && (!w.known() || strings.HasPrefix(w.text, "-")) {
			a.give("changes-shell", Ask, w.shown(), "it decides which program a name means", "leave it out")
		}
	}
	return source{}
}

func (a *analysis) enable(argv []word, _ *state) source {
	for _, w := range argv[1:] {
		if !w.known() || strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "f") {
			a.give("loads-code", Deny, w.shown(), "it loads a file of machine code into the shell", "leave it out")
			return source{}
		}
	}
	return a.asked(argv, nil)
}

func (a *analysis) limits(argv []word, _ *state) source {
	for _, w := range argv[1:] {
		if strings.Trim(w.text, "-aSHcdefilmnpqrstuv") != "" || !w.known() {
			a.give("changes-shell", Ask, w.shown(), "it changes the limits of what follows", "leave it out")
		}
	}
	return source{there: true}
}

// let and the declaring words come here where they are not in the shell's own
// grammar: after command or builtin, or with a backslash.
func (a *analysis) let(argv []word, st *state) source {
	for _, w := range argv[1:] {
		a.evaluated(w, st)
	}
	return source{}
}
