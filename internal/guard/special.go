package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/guard/filter"
	"reprise/internal/guard/know"
	"reprise/internal/guard/names"
)

// special is how a program is judged whose words are in an order of their own,
// nil for all others.
func special(name string) func(*analysis, []word, *state) source {
	switch name {
	case "env":
		return (*analysis).envProgram
	case "find", "gfind":
		return (*analysis).find
	case "fd", "fdfind":
		return (*analysis).fd
	case "xargs", "gxargs":
		return (*analysis).xargs
	case "bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "rbash":
		return (*analysis).shell
	case "busybox", "toybox":
		return (*analysis).busybox
	case "sudo", "doas":
		return (*analysis).privileged
	case "watch":
		return (*analysis).watch
	case "kill":
		return (*analysis).kill
	case "jq", "gojq", "jaq":
		return (*analysis).jq
	case "stty":
		return (*analysis).terminal
	case "apply_patch", "applypatch":
		return (*analysis).applyPatch
	case "http", "https", "httpie", "xh", "xhs", "curlie":
		return (*analysis).request
	}
	return nil
}

// after is what is looked at of a program beyond its table, nil for most.
func after(name string) func(*analysis, *know.Program, args, *state) {
	switch name {
	case "git":
		return (*analysis).git
	case "go":
		return (*analysis).asksGit
	case "kill", "pkill", "killall", "skill":
		return (*analysis).kills
	case "rm", "shred", "unlink", "rmdir":
		return (*analysis).removes
	case "printenv":
		return (*analysis).printenv
	case "wget":
		return (*analysis).wget
	case "dig":
		return (*analysis).listedHosts
	case "curl":
		return (*analysis).curlFormat
	case "diff", "colordiff":
		return func(a *analysis, _ *know.Program, g args, st *state) { a.secretsOf(&g, st) }
	case "http", "https", "httpie", "xh", "xhs", "curlie":
		return (*analysis).requests
	case "docker", "podman", "nerdctl", "rpm":
		return (*analysis).readsAddresses
	case "python", "python3", "python2", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "osascript", "pwsh":
		return (*analysis).interpreter
	case "npm", "pnpm", "yarn", "cargo":
		return (*analysis).packages
	case "make", "gmake":
		return (*analysis).makeWords
	case "govulncheck", "pre-commit":
		return (*analysis).checkers
	case "dd":
		return (*analysis).disks
	case "unzip":
		return (*analysis).unzip
	case "sed", "gsed":
		return (*analysis).inPlace
	case "jq", "gojq", "jaq", "yq":
		return (*analysis).query
	case "gunzip", "gzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd", "compress", "uncompress":
		return (*analysis).unpacks
	case "ar", "jar", "gofmt", "goimports", "gofumpt", "date", "nm", "objdump", "readelf", "size", "strings", "addr2line", "c++filt", "otool", "xmllint", "man", "info", "ps", "getent", "ldd", "npx", "bunx", "pnpx":
		return (*analysis).operandsOf
	case "ed", "ex", "vi", "vim", "nvim", "emacs", "nano", "pico", "micro", "hx":
		return (*analysis).edits
	case "less", "more":
		return (*analysis).pager
	case "tar", "bsdtar", "gtar":
		return (*analysis).tar
	case "ln", "link":
		return (*analysis).linked
	case "cp", "install":
		return (*analysis).copies
	case "split":
		return (*analysis).pieces
	case "mknod":
		return (*analysis).nodes
	case "openssl":
		return (*analysis).stores
	case "pgrep", "pidof", "pidwait", "grep", "egrep", "fgrep", "rg", "ag", "awk", "gawk", "mawk":
		return (*analysis).aimed
	case "chmod", "chown", "chgrp", "chattr":
		return (*analysis).modes
	}
	return nil
}

// agents are programs that start another agent.
func agent(name string) bool {
	switch name {
	case "claude", "codex", "gemini", "copilot", "aider", "opencode", "goose", "crush", "amp", "cursor-agent", "qwen", "reprise":
		return true
	}
	return false
}

// envProgram judges env: options, assignments, then a command.
func (a *analysis) envProgram(argv []word, st *state) source {
	p := know.Find("env")
	rest := argv[1:]
	cleared := false
	dir := st
	for len(rest) > 0 {
		w := rest[0]
		name, v, eq := strings.Cut(w.text, "=")
		switch {
		case !w.known() && (w.dashed || !eq):
			if !eq {
				a.give("dynamic-command", Deny, w.shown(), "which program this runs is only known when it runs", "write the program's name")
				return source{there: true}
			}
			fallthrough
		case eq && !strings.HasPrefix(w.text, "-"):
			a.assignment(name, word{text: v}, true, st)
			a.cur = commandOf(argv)
			rest = rest[1:]
			continue
		case w.text == "-":
			cleared = true
			rest = rest[1:]
			continue
		case w.text == "--":
			rest = rest[1:]
			continue
		case strings.HasPrefix(w.text, "-"):
			var g args
			n := g.option(p, rest, 0) + 1
			for _, o := range g.options {
				a.judgeUnknown(p, o)
				a.judgeOption(o, st)
				switch {
				case o.opt == nil:
				case o.opt.Name == "-i" || o.opt.Name == "--ignore-environment":
					cleared = true
				case o.opt.Name == "-u" || o.opt.Name == "--unset":
					if names.Variable(o.arg.text) == names.Loading {
						a.give("environment-loads", Deny, o.arg.shown(), "the variable decides about the guard and its limits", "leave it as it is")
					}
				case o.opt.Name == "-C" || o.opt.Name == "--chdir":
					dir = st.fork()
					a.chdir(o.arg, dir)
				}
			}
			rest = rest[min(n, len(rest)):]
			continue
		}
		break
	}
	if len(rest) == 0 {
		if !cleared {
			a.give("shows-environment", Ask, argv[0].shown(), "it prints the environment, secrets among it", "print the one variable that is wanted")
			a.reads("env")
		}
		return source{there: true}
	}
	if cleared {
		if dir == st {
			dir = st.fork()
		}
		dir.cleared = true
	}
	return a.nested(rest, dir)
}

// find judges find: what its -exec runs is taken out first.
func (a *analysis) find(argv []word, st *state) source {
	p := know.Find("find")
	listed := a.finds(argv, st, true)
	var plain []word
	gone, removes := false, false
	for i := 0; i < len(argv); i++ {
		switch argv[i].text {
		case "--":
			// It ends find's few options before the paths, and not its expression.
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(argv) && argv[end].text != ";" && !(argv[end].text == "+" && end > i+1 && argv[end-1].text == "{}") {
				end++
			}
			if end == i+1 {
				a.give("dynamic-command", Deny, argv[i].shown(), "it lacks the command that it runs", "write it out")
				break
			}
			inner := placed(argv[i+1:end], "{}", listed)
			for k := range inner {
				inner[k].split = inner[k].split || inner[k].text == unknown && end < len(argv) && argv[end].text == "+"
			}
			if k := know.Find(plainName(inner[0].text)); k != nil && (k.Base == know.Write || k.Base == know.Delete) {
				each := slices.ContainsFunc(argv[i+1:end], func(w word) bool { return w.text == "{}" })
				gone, removes = true, removes || each && k.Base == know.Delete && !strings.HasPrefix(argv[i].text, "-ok")
			}
			c := st.fork()
			if strings.HasSuffix(argv[i].text, "dir") && len(inner) > 0 {
				c.cwds = nil
			}
			c.in = source{}
			a.nested(inner, c)
			i = end
		default:
			removes = removes || argv[i].text == "-delete"
			gone = gone || removes
			plain = append(plain, argv[i])
		}
	}
	if gone {
		a.cur = commandOf(argv)
		for _, w := range startsOf(plain) {
			for _, base := range a.bases(w.text, st) {
				q := a.physical(base, w.text)
				switch bad, what := a.protected(q, use{gone: true}); {
				case !w.known():
				case removes && unconditional(plain) && a.root(q) != "" && (q == a.root(q) || repositoryItself(q)):
					a.give("removes-repository", Deny, w.shown(), "it removes the whole of the work", "name what is to go")
				case q == filepath.Dir(q):
					a.give("destructive", Deny, w.shown(), "it removes the whole file system", "name what is to go")
				case a.root(q) == "":
					a.outside(w, q, use{gone: true})
				case bad:
					a.give("protected-file", Deny, w.shown(), "it removes "+what, "leave these files to the user")
				}
			}
			if start, rest, ok := strings.Cut(w.text, unknown); ok && start == "" && strings.HasPrefix(strings.TrimLeft(rest, unknown), "/") && !w.certain {
				a.darkPath(w, use{gone: true}, st)
			}
		}
	}
	out := a.known(p, plain, st)
	if out.origin.names() {
		out.origin = a.finds(argv, st, slices.ContainsFunc(argv, func(w word) bool { return w.text == "-print0" }))
	}
	return out
}

// put puts another word in the place of a mark in this one: of the whole no more is known
// than of each.
func (w word) put(mark string, in word) word {
	before, _, found := strings.Cut(w.text, mark)
	if !found {
		return w
	}
	switch {
	case in.known():
	case w.known():
		w.origin = in.origin
	default:
		w.origin = w.origin.with(in.origin)
	}
	w.made = w.made || in.made
	w.dashed = w.dashed || in.dashed && strings.Trim(before, unknown) == ""
	w.text = strings.ReplaceAll(w.text, mark, in.text)
	return w
}

// placed puts the name of a file, which is not known, in place of a mark.
func placed(argv []word, mark string, listed origin) []word {
	out := slices.Clone(argv)
	for i, w := range out {
		out[i] = w.put(mark, word{text: unknown, origin: listed})
	}
	return out
}

// fd judges fd: what follows -x or -X is a command.
func (a *analysis) fd(argv []word, st *state) source {
	p := know.Find("fd")
	for i, w := range argv {
		switch w.text {
		case "-x", "-X", "--exec", "--exec-batch":
			rest := argv[i+1:]
			if len(rest) == 0 {
				break
			}
			out := a.known(p, argv[:i], st)
			listed := out.origin
			if !listed.names() {
				listed = a.anywhere(st)
			}
			inner := placed(rest, "{}", listed)
			if !slices.ContainsFunc(inner, func(w word) bool { return !w.known() }) {
				inner = append(inner, word{text: unknown, origin: listed, made: true})
			}
			for k := range inner {
				for _, m := range []string{"{/}", "{//}", "{.}", "{/.}"} {
					if strings.Contains(inner[k].text, m) {
						inner[k].text, inner[k].origin = strings.ReplaceAll(inner[k].text, m, unknown), a.anywhere(st)
					}
				}
			}
			a.nested(inner, st.fork())
			return out
		}
	}
	return a.known(p, argv, st)
}

var xargsProgram = know.Program{Name: "xargs", Wraps: true, Opts: []know.Opt{
	{Name: "--arg-file", Arg: know.Required, Kind: know.Read}, {Name: "--delimiter", Arg: know.Required, Kind: know.Text}, {Name: "--eof", Arg: know.Optional, Kind: know.Text}, {Name: "--exit"},
	{Name: "--interactive"}, {Name: "--max-args", Arg: know.Required, Kind: know.Text}, {Name: "--max-chars", Arg: know.Required, Kind: know.Text}, {Name: "--max-lines", Arg: know.Optional, Kind: know.Text},
	{Name: "--max-procs", Arg: know.Required, Kind: know.Text}, {Name: "--no-run-if-empty"}, {Name: "--null"}, {Name: "--replace", Arg: know.Optional, Kind: know.Text}, {Name: "--show-limits"}, {Name: "--verbose"},
	{Name: "-0"}, {Name: "-E", Arg: know.Required, Kind: know.Text}, {Name: "-I", Arg: know.Required, Kind: know.Text}, {Name: "-J", Arg: know.Required, Kind: know.Text}, {Name: "-L", Arg: know.Required, Kind: know.Text}, {Name: "-P", Arg: know.Required, Kind: know.Text},
	{Name: "-a", Arg: know.Required, Kind: know.Read}, {Name: "-d", Arg: know.Required, Kind: know.Text}, {Name: "-e", Arg: know.Optional, Kind: know.Text}, {Name: "-i", Arg: know.Optional, Kind: know.Text}, {Name: "-l", Arg: know.Optional, Kind: know.Text},
	{Name: "-n", Arg: know.Required, Kind: know.Text}, {Name: "-p"}, {Name: "-r"}, {Name: "-s", Arg: know.Required, Kind: know.Text}, {Name: "-t"}, {Name: "-x"},
}}

// shell judges bash and its like: -c, a script, or what they are given to read.
func (a *analysis) shell(argv []word, st *state) source {
	args := argv[1:]
	script, checks, stdin := false, false, false
	for len(args) > 0 {
		o := args[0]
		if !o.known() && o.dashed {
			a.give("dynamic-command", Deny, o.shown(), "what the shell is to run is only known when it runs", "write the command out")
			return source{there: true}
		}
		if len(o.text) < 2 || o.text[0] != '-' && o.text[0] != '+' {
			break
		}
		args = args[1:]
		if o.text == "--" {
			break
		}
		if strings.HasPrefix(o.text, "--") {
			switch o.text {
			case "--norc", "--noprofile", "--posix", "--restricted", "--verbose", "--no-rcs":
			case "--version", "--help":
				return source{there: true}
			case "--login":
				a.give("option-runs", Ask, o.text, "a login shell runs the user's files", "leave it out")
			default:
				a.give("unknown-option", Ask, o.shown(), "it is not known what this option does", "leave it out")
				if o.text == "--rcfile" || o.text == "--init-file" {
					args = args[min(1, len(args)):]
				}
			}
			continue
		}
		for _, c := range o.text[1:] {
			switch c {
			case 'c':
				script = true
			case 'n':
				checks = o.text[0] == '-'
			case 'o', 'O':
				a.traced = a.traced || len(args) > 0 && args[0].text == "xtrace"
				args = args[min(1, len(args)):]
			case 's':
				stdin = true
			case 'x':
				a.traced = true
			case 'e', 'u', 'v', 'f', 'h', 'p', 'r', 'B', 'C', 'E':
			case 'l', 'i':
				// It reads the user's own files, which are not the agent's to change.
			default:
				a.give("unknown-option", Ask, o.shown(), "it is not known what this option does", "leave it out")
			}
		}
	}
	inner := st.fork()
	inner.funcs, inner.args, inner.argsKnown, inner.stack, inner.old = nil, nil, true, nil, nil
	inner.posix = argv[0].text != "bash" && argv[0].text != "zsh" && argv[0].text != "rbash"
	switch {
	case script && len(args) == 0:
		a.give("unknown-option", Ask, argv[0].shown(), "-c lacks the command that is to be run", "write it out")
		return source{there: true}
	case script:
		if !args[0].known() || args[0].split || args[0].pattern() {
			a.give("dynamic-command", Deny, args[0].shown(), "a command is put together while it runs and given to a shell", "write the command out")
			return source{there: true}
		}
		if len(args) > 2 {
			inner.args = args[2:]
		}
		inner.in = st.in
		cur, before := a.cur, len(a.parts)
		out := a.shellText(args[0].text, inner)
		a.cur = cur
		if args[0].made {
			a.computed(args[0], before)
		}
		return out
	case !stdin && len(args) > 0 && args[0].text != "-":
		if checks {
			a.path(args[0], use{read: true}, st)
			return source{there: true}
		}
		if !args[0].known() {
			a.give("dynamic-command", Deny, args[0].shown(), "which script this runs is only known when it runs", "write the script's name")
			return source{there: true}
		}
		if strings.HasPrefix(args[0].text, "/dev/fd/") || args[0].text == "/dev/stdin" {
			a.give("dynamic-command", Deny, args[0].shown(), "what the shell runs is written by another command while it runs", "write the command out")
			return source{there: true}
		}
		a.path(args[0], use{read: true}, st)
		a.handed(args[1:], st)
		a.projectCode(args[0], "it runs a script")
		return source{there: true}
	}
	return a.fed(argv[0], inner, st)
}

// fed judges a shell that runs what it reads.
func (a *analysis) fed(w word, inner, st *state) source {
	in := st.in
	switch {
	case !in.there:
		a.give("needs-a-person", Ask, w.shown(), "a shell with nothing to run waits for a person", "give it a command by -c")
	case in.fixed:
		inner.in = source{}
		if inner != st { // a file that is read in is read to its end at first
			inner.in = source{script: true, more: strings.Contains(strings.TrimRight(in.text, "\n"), "\n")}
		}
		cur := a.cur
		out := a.shellText(in.text, inner)
		a.cur = cur
		if in.doubt {
			a.give("read-two-ways", Ask, w.shown(), "what a backslash means to echo and printf is another thing in each shell", "give it the command by a here-document")
		}
		return out
	case in.net:
		a.give("network-to-shell", Deny, w.shown(), "it runs what comes from another machine", "save it into a file, and let the user look at it")
	case in.file:
		a.projectCode(w, "it runs a script")
	case in.what == unseen:
		a.give("dynamic-command", Ask, w.shown(), "what it runs was opened or named elsewhere, and is not looked at", "write the commands out")
	default:
		a.give("dynamic-command", Deny, w.shown(), "it runs what another command writes while it runs", "write the commands out")
	}
	return source{there: true}
}

// busybox judges busybox, whose first word is a program's name.
func (a *analysis) busybox(argv []word, st *state) source {
	if len(argv) == 1 || len(argv) == 2 && (argv[1].text == "--help" || argv[1].text == "--list" || argv[1].text == "--list-full") {
		return source{there: true}
	}
	if strings.HasPrefix(argv[1].text, "-") {
		a.give("writes", Ask, argv[1].shown(), "it installs its programs", "name one of its programs")
		for _, w := range argv[2:] {
			if !strings.HasPrefix(w.text, "-") {
				a.path(w, use{}, st)
			}
		}
		return source{there: true}
	}
	return a.nested(argv[1:], st)
}

// privileged judges sudo: asking beside what it runs.
func (a *analysis) privileged(argv []word, st *state) source {
	p := know.Find("sudo")
	g := a.parseArgs(p, argv[1:], st)
	for len(g.operands) > 0 {
		name, v, eq := strings.Cut(g.operands[0].text, "=")
		if !eq || strings.HasPrefix(name, "/") {
			break
		}
		a.assignment(name, word{text: v}, true, st)
		g.operands = g.operands[1:]
	}
	a.cur = commandOf(argv)
	for _, o := range g.options {
		a.judgeUnknown(p, o)
	}
	a.base(p, argv[0], g)
	as := st.fork()
	as.cleared = st.cleared || !g.has("-E") && !g.has("--preserve-env")
	return a.wrapped(g, 0, as)
}

// watch judges watch, which gives its words to a shell unless told otherwise.
func (a *analysis) watch(argv []word, st *state) source {
	p := know.Find("watch")
	g := a.parseArgs(p, argv[1:], st)
	for _, o := range g.options {
		a.judgeUnknown(p, o)
		a.judgeOption(o, st)
	}
	if len(g.operands) == 0 {
		return source{}
	}
	if g.has("-x") || g.has("--exec") {
		return a.nested(g.operands, st)
	}
	by := st.fork()
	by.posix = true // it runs sh
	return a.eval(append([]word{argv[0]}, g.operands...), by)
}

// removes judges the words of rm beyond their paths.
func (a *analysis) removes(_ *know.Program, g args, st *state) {
	for _, w := range g.operands {
		// The whole of the work, but for what begins with a dot.
		if w.glob && strings.Trim(w.text, "./*") == "" && strings.HasSuffix(w.text, "*") && w.text[0] != '/' && len(st.cwds) == 1 && !strings.Contains(w.text, "..") && slices.Contains(a.roots, st.cwds[0]) {
			a.give("removes-repository", Deny, w.shown(), "it removes the whole of the work", "name what is to go")
		}
	}
}

// unzip writes unless it is told to list, test or print.
func (a *analysis) unzip(_ *know.Program, g args, _ *state) {
	for i, w := range g.operands {
		if i > 0 && (g.has("-p") || g.has("-c")) && (names.Secret("/"+w.text) != "" || aims(w.text) != "") {
			a.reads(w.shown())
			a.give("reads-secret", Ask, w.shown(), "it prints what holds secrets", "leave it out")
		}
	}
	for _, o := range [...]string{"-l", "-t", "-v", "-Z", "-z", "-p", "-c", "-h", "-hh"} {
		if g.has(o) {
			return
		}
	}
	a.give("writes", Ask, "unzip", "it writes what the archive holds", "list it with -l")
}

// inPlace judges the files that a filter is told to change.
func (a *analysis) inPlace(p *know.Program, g args, st *state) {
	if !g.has("-i") && !g.has("--in-place") && !g.has("--inplace") {
		return
	}
	for i, w := range g.operands {
		if op := p.OperandAt(i, len(g.operands), g.has); op != nil && op.Kind == know.Read {
			a.path(w, use{}, st)
		}
	}
}

// disks judges dd's output.
func (a *analysis) disks(_ *know.Program, g args, _ *state) {
	for _, o := range g.options {
		if o.opt != nil && o.opt.Name == "of" && strings.HasPrefix(o.arg.text, "/dev/") && !device(o.arg.text) {
			a.give("destructive", Deny, o.w.shown(), "it writes over a device", "let the user do it")
		}
	}
}

// modes judges chmod: what opens a file to everybody, or makes it another user's.
func (a *analysis) modes(_ *know.Program, g args, st *state) {
	if g.has("-R") || g.has("--recursive") {
		for _, w := range g.operands[min(1, len(g.operands)):] {
			a.opensAll(w, st)
			if _, rest, ok := strings.Cut(w.text, unknown); ok && strings.HasPrefix(w.text, unknown) && strings.HasPrefix(strings.TrimLeft(rest, unknown), "/") && !w.certain {
				a.darkPath(w, use{gone: true}, st)
			}
		}
	}
	if len(g.operands) > 0 && slices.ContainsFunc(g.options, func(o option) bool { return modeLetters(g.name, o.w.text) }) {
		a.path(g.operands[0], use{replaced: true}, st) // chmod -x FILE: the mode is no operand
	}
	if len(g.operands) > 0 && g.name == "chmod" {
		if m := g.operands[0].text; strings.Contains(m, "s") && strings.ContainsAny(m, "+=") || len(m) == 4 && m[0] >= '2' && m[0] <= '7' && strings.Trim(m, "01234567") == "" {
			a.give("destructive", Deny, g.operands[0].shown(), "it gives a file another user's rights", "let the user do it")
		}
	}
}

// modeLetters reports whether a word that begins with a dash takes rights, or attributes,
// away, and is no option.
func modeLetters(program, word string) bool {
	letters := strings.TrimPrefix(word, "-")
	if program == "chmod" {
		return strings.Trim(letters, "rwxXstugo,") == ""
	}
	return program == "chattr" && strings.Trim(letters, "aAcCdDeEfFijmNPRsStTuVx") == ""
}

// wget writes what it gets into a file, unless it is told to print it or to look only.
func (a *analysis) wget(p *know.Program, g args, st *state) {
	a.listedHosts(p, g, st)
	for _, o := range g.options {
		if o.opt != nil && (o.opt.Name == "--spider" || (o.opt.Name == "-O" || o.opt.Name == "--output-document") && o.arg.text == "-") {
			return
		}
	}
	a.give("writes", Ask, g.name, "it writes what it gets into a file", "print it with -O -")
}

func (a *analysis) printenv(_ *know.Program, g args, _ *state) {
	if len(g.operands) == 0 {
		a.give("shows-environment", Ask, "printenv", "it prints the environment, secrets among it", "print the one variable that is wanted")
		a.reads("printenv")
	}
	for _, w := range g.operands {
		if !w.known() || names.SecretVariable(w.text) || a.opensProxy(w.text) {
			a.give("reads-secret", Ask, w.shown(), "the variable may hold a secret", "leave it out")
			a.reads(w.shown())
		}
	}
}

// interpreter judges a program that runs what it reads: what comes from another
// machine is refused there as it is for a shell.
func (a *analysis) interpreter(_ *know.Program, g args, st *state) {
	refuse := func(w word) {
		a.give("network-to-shell", Deny, w.shown(), "it runs what comes from another machine", "save it into a file, and let the user look at it")
	}
	code := g.has("-c") || g.has("-e") || len(g.operands) > 0 && g.operands[0].text != "-"
	if st.in.net && !code {
		refuse(word{text: g.name})
	}
	for _, w := range g.operands {
		if w.net {
			refuse(w)
		}
	}
	for _, o := range g.options {
		if o.arg.net {
			refuse(o.arg)
		}
	}
}

// packages judges options before a command of npm and its like: they may turn it
// to another directory's package.
func (a *analysis) packages(_ *know.Program, g args, _ *state) {
	if g.outer == nil {
		return
	}
	a.runsEnv(&g)
	for _, o := range g.outer.options {
		if o.opt != nil && o.given && o.opt.Name == "--filter" && o.arg.known() && !strings.HasPrefix(o.arg.text, "/") && !strings.Contains(o.arg.text, "../") {
			continue // packages of this one's workspace
		}
		if o.opt == nil || o.given {
			a.give("unknown-option", Ask, o.w.shown(), "the option may turn it to another package", "change to the package's directory")
		}
	}
}

// exists is kept apart from the file system's own error texts.
func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// pager judges the words by which a pager is given commands.
func (a *analysis) pager(_ *know.Program, g args, _ *state) {
	for i, w := range g.operands {
		if strings.HasPrefix(w.text, "+") && (g.ended < 0 || i < g.ended) {
			a.give("option-runs", Ask, w.shown(), "it gives the pager commands, which can run programs", "leave it out")
		}
	}
}

// query judges a program for jq or yq: what prints the environment, and what reads
// other files.
func (a *analysis) query(p *know.Program, g args, st *state) {
	a.inPlace(p, g, st) // which yq has
	if len(g.operands) == 0 || g.has("-f") || g.has("--from-file") {
		return
	}
	w := g.operands[0]
	for _, name := range filter.Query(w.text) {
		switch name {
		case "env", "$ENV", "strenv", "envsubst", "$__prog_args":
			a.give("shows-environment", Ask, w.shown(), "it prints variables of the environment, secrets among them", "leave it out")
			a.reads(name)
		default:
			a.give("program-runs", Ask, w.shown(), "it reads other files, or runs a program ("+name+")", "name the files beside it")
		}
	}
}

// tar judges the archive and the directory by what is done with them.
func (a *analysis) tar(_ *know.Program, g args, st *state) {
	makes := g.has("-c") || g.has("--create") || g.has("-r") || g.has("--append") || g.has("-u") || g.has("--update") || g.has("-A") || g.has("--delete")
	takes := g.has("-x") || g.has("--extract") || g.has("--get")
	for _, o := range g.options {
		switch {
		case o.opt == nil || !o.given:
		case makes && (o.opt.Name == "-f" || o.opt.Name == "--file") && o.arg.text != "-":
			a.path(o.arg, use{}, st)
		case (o.opt.Name == "-f" || o.opt.Name == "--file") && remote(o.arg.text):
			a.reaches(o.arg.text)
			a.give("network", Ask, o.w.shown(), "a colon in an archive's name stands after another machine's", "write ./ before it")
		case takes && (o.opt.Name == "-C" || o.opt.Name == "--directory"):
			a.path(o.arg, use{}, st)
		}
	}
	if makes {
		for _, w := range g.operands {
			a.path(w, use{read: true}, st)
		}
	}
}

// linked notes the links that a command makes, for what comes after it goes
// through them.
func (a *analysis) linked(p *know.Program, g args, st *state) {
	a.copies(p, g, st)
	if !g.has("-s") && !g.has("--symbolic") || len(g.operands) == 0 || len(st.cwds) != 1 {
		return
	}
	target := g.operands[0]
	name := word{text: filepath.Base(target.text)}
	if n := len(g.operands); n > 1 {
		name = g.operands[n-1]
	}
	at := a.physical(st.cwds[0], name.text)
	if a.exists(at) {
		at = filepath.Join(at, filepath.Base(target.text))
	}
	a.links[at] = target.text // there is one, as the place was looked at
}

// edits judges the files that an editor is given.
func (a *analysis) edits(_ *know.Program, g args, st *state) {
	for _, w := range g.operands {
		for _, base := range a.bases(w.text, st) {
			if bad, what := a.protected(a.physical(base, w.text), use{}); bad && w.known() && w.text != "" {
				a.give("protected-file", Deny, w.shown(), "it changes "+what, "leave these files to the user")
			}
		}
	}
}
