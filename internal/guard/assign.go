package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirects judges the redirections of a statement. in is what they give it to
// read; away says that what it writes out goes elsewhere.
func (a *analysis) redirects(s *syntax.Stmt, st *state) (in source, away bool) {
	for _, r := range s.Redirs {
		a.step(1)
		if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
			st.bind(a, strings.Trim(r.N.Value, "{}"), value{origin: numbers})
		}
		first := r.N == nil || r.N.Value == "0" || r.N.Value == "1"
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			body := a.value(r.Hdoc, st)
			if first {
				in = source{there: true, fixed: body.known(), text: body.text}
			}
		case syntax.WordHdoc:
			w := a.value(r.Word, st)
			if first {
				in = source{there: true, fixed: w.known(), text: w.text + "\n", origin: w.origin}
			}
		case syntax.RdrIn:
			w := a.target(r, st)
			a.path(w, use{read: true}, st)
			in = source{there: true, file: true, what: w.text}
		case syntax.DplIn, syntax.DplOut:
			w := a.target(r, st)
			if w.known() && strings.Trim(w.text, "0123456789") == "" || w.text == "-" || strings.HasSuffix(w.text, "-") && strings.Trim(w.text, "0123456789-") == "" {
				if r.Op == syntax.DplOut && w.text != "1" && (r.N == nil || r.N.Value == "1") {
					away = true
				}
				break
			}
			if r.Op == syntax.DplIn {
				a.path(w, use{read: true}, st)
			}
			a.path(w, use{}, st)
			away = true
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrInOut, syntax.RdrAll, syntax.AppAll:
			a.path(a.target(r, st), use{}, st)
			away = away || r.N == nil || r.N.Value == "1"
		default:
			a.give("unknown-syntax", Ask, r.Op.String(), "this redirection is not one of bash's", "use > or >>")
			a.path(a.target(r, st), use{}, st)
		}
	}
	return in, away
}

// target is what a redirection names: one word, or bash refuses it.
func (a *analysis) target(r *syntax.Redirect, st *state) word {
	a.cur = a.source(r)
	w := a.value(r.Word, st)
	return w
}

// weight is what a variable's name does to the programs that see it.
type weight uint8

const (
	cosmetic weight = iota // listed as having no effect beyond how things look
	plain                  // not known; in the shell itself it is a variable like others
	steering               // it leads programs to code, settings or directories
	loading                // it loads code into any program, or belongs to the guard
)

// sensitive weighs a variable's name.
func sensitive(name string) weight {
	switch name {
	case "TZ", "LANG", "LANGUAGE", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "CI", "COLUMNS", "LINES", "TERM", "COLORTERM", "DEBIAN_FRONTEND",
		"LS_COLORS", "GREP_COLOR", "GREP_COLORS", "BLOCK_SIZE", "POSIXLY_CORRECT", "QUOTING_STYLE", "TIME_STYLE", "VERBOSE", "DEBUG", "REPLY", "OPTIND", "OPTARG",
		"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONHASHSEED", "RUST_BACKTRACE", "RUST_LOG", "CARGO_TERM_COLOR",
		"GIT_PAGER_IN_USE", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE",
		"GOOS", "GOARCH", "CGO_ENABLED", "GOMAXPROCS", "GOGC", "GOTRACEBACK", "GOEXPERIMENT", "NODE_ENV", "SOURCE_DATE_EPOCH", "MANWIDTH", "SYSTEMD_COLORS", "SYSTEMD_PAGER_DISABLED", "HISTCONTROL", "PAGERLESS":
		return cosmetic
	case "PATH", "IFS", "CDPATH", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS0", "PS1", "PS2", "PS3", "PS4", "HOME", "SHELL", "TMPDIR", "TMP", "TEMP", "PWD", "OLDPWD", "FPATH",
		"PAGER", "MANPAGER", "BROWSER", "EDITOR", "VISUAL", "FCEDIT", "PROMPT_COMMAND", "EXECIGNORE", "GLOBIGNORE", "HISTFILE", "INPUTRC", "MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "CC", "CXX", "LD", "AR", "RUSTC",
		"TAR_OPTIONS", "GZIP", "XZ_OPT", "GREP_OPTIONS", "ZIPOPT", "UNZIP", "TERMINFO", "TERMCAP", "LOCPATH", "NLSPATH", "GCONV_PATH", "HOSTALIASES", "RESOLV_HOST_CONF", "IFS_OLD",
		"GROFF_TMAC_PATH", "MANPATH", "MANOPT", "COLUMN", "AWKPATH", "AWKLIBPATH", "POSIXLY", "SSLKEYLOGFILE", "KUBECONFIG", "DOCKER_HOST", "DOCKER_CONFIG", "WGETRC", "CURL_HOME", "NETRC", "SUDO_ASKPASS", "TZDIR":
		return steering
	}
	if strings.HasPrefix(name, "LC_") {
		return cosmetic
	}
	for _, p := range [...]string{"LD_", "DYLD_", "REPRISE_", "BASH_FUNC_", "MALLOC_", "GCONV_", "CLAUDE_", "CODEX_", "GEMINI_", "COPILOT_"} {
		if strings.HasPrefix(name, p) {
			return loading
		}
	}
	switch name {
	case "GIT_ALLOW_PROTOCOL", "CLAUDECODE", "AGENT_ROLE", "ANTHROPIC_BASE_URL", "SESSION_ID", "PROMPT_COMMANDS", "GIT_PROTOCOL_FROM_USER":
		return loading
	}
	for _, p := range [...]string{"GIT_", "SSH_", "PYTHON", "PERL", "RUBY", "NODE_", "NPM_", "npm_", "YARN_", "JAVA_", "JDK_", "_JAVA", "LESS", "BASH", "ZDOTDIR", "RIPGREP_", "CARGO", "RUST", "GO", "DOTNET_", "LUA_", "PHP", "GEM_", "BUNDLE_", "PIP_", "UV_", "POETRY_", "VIRTUAL_ENV", "CONDA_", "MAVEN_", "GRADLE_", "XDG_", "GTK_", "QT_", "GIO_", "DBUS_", "GPG", "GNUPG", "AWS_", "AZURE_", "GOOGLE_", "OPENAI_", "ANTHROPIC_", "FZF_", "BAT_", "RSYNC_", "CVS", "SVN_", "HG", "OPENSSL_", "CURL_", "TEX", "MAGICK_", "PKG_", "CMAKE", "JQ_", "DELTA_", "ACLOCAL", "VIM", "EMACS", "NVIM", "TMUX", "PROMPT", "READLINE"} {
		if strings.HasPrefix(name, p) {
			return steering
		}
	}
	if strings.HasSuffix(strings.ToLower(name), "_proxy") || strings.HasSuffix(name, "OPTS") || strings.HasSuffix(name, "OPTIONS") || strings.HasSuffix(name, "_FLAGS") || strings.HasSuffix(name, "FLAGS") || strings.HasSuffix(name, "PRELOAD") ||
		strings.HasSuffix(name, "_COMMAND") || strings.HasSuffix(name, "_CMD") || strings.HasSuffix(name, "PAGER") || strings.HasSuffix(name, "EDITOR") || strings.HasSuffix(name, "PATH") || strings.HasSuffix(name, "_HOME") || strings.HasSuffix(name, "RC") || strings.HasSuffix(name, "OPEN") || strings.HasSuffix(name, "CLOSE") {
		return steering
	}
	return plain
}

// assignment judges NAME=VALUE. exported says that programs see it, be it only
// the one that it stands before.
func (a *analysis) assignment(name string, v word, exported bool, st *state) {
	a.cur = name + "=" + shown(v.text)
	switch sensitive(name) {
	case cosmetic:
		return
	case loading:
		a.give("environment-loads", Deny, name, "the variable loads code into programs, or decides about the guard and its limits", "leave it as it is")
	case steering:
		a.give("environment", Ask, name, "the variable can lead programs to other code, settings or places", "leave it out, or set one that is known to be cosmetic, such as LC_ALL, TZ or NO_COLOR")
	case plain:
		if exported || a.r.env(name) != "" {
			a.give("environment", Ask, name, "it is not known what the variable does to the program", "leave it out, or allow the command by a rule")
		}
	}
}

// assign evaluates one assignment of the shell's grammar.
func (a *analysis) assign(n *syntax.Assign, exported bool, st *state) {
	a.step(1)
	if n.Name == nil {
		if n.Value != nil {
			a.value(n.Value, st)
		}
		return
	}
	name := n.Name.Value
	if n.Index != nil {
		a.arith(n.Index, st)
	}
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
		}
		w.text = unknown
		if n.Append || anyGlob(v.list) {
			v.list = nil
		}
	case n.Value != nil:
		w = a.value(n.Value, st)
		v = value{known: true, w: w, origin: w.origin}
		if w.text == unknown {
			v = value{origin: w.origin, dotted: !w.dashed}
		}
	case n.Naked:
		return
	default:
		v = value{known: true}
	}
	a.assignment(name, w, exported, st)
	if n.Append || n.Index != nil {
		old := st.lookup(a, name)
		if v.known && old.known && n.Index == nil && old.list == nil {
			v.w.text = old.w.text + v.w.text
		} else {
			v = value{}
		}
	}
	st.bind(a, name, v)
}

func anyGlob(list []word) bool {
	for _, w := range list {
		if w.glob && strings.ContainsAny(w.text, "*?[") || w.split {
			return true
		}
	}
	return false
}

// declare judges export, declare, local and their like.
func (a *analysis) declare(c *syntax.DeclClause, st *state) {
	variant := c.Variant.Value
	exported, integer, nameref := variant == "export", false, false
	a.cur = a.source(c)
	names := 0
	for _, n := range c.Args {
		if n.Name != nil {
			names++
			continue
		}
		// Options, and words that make names while it runs.
		for _, w := range a.fields(n.Value, st) {
			switch {
			case !w.known():
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
					case 'p', 'a', 'A', 'r', 'g', 'l', 'u':
					case 'f', 'F', 't', 'I':
						a.give("declare-option", Ask, w.text, "this option makes functions or traces known to other commands", "leave it out")
					default:
						a.give("unknown-option", Ask, w.text, "it is not known what the option does", "leave it out")
					}
				}
			default:
				name, val, _ := strings.Cut(w.text, "=")
				if strings.HasPrefix(val, "(") {
					a.evaluated(word{text: val + "$", src: w.src})
				}
				if !syntax.ValidName(strings.TrimSuffix(name, "+")) {
					a.subscript(w)
				} else {
					a.assignment(strings.TrimSuffix(name, "+"), word{text: val}, exported, st)
					st.bind(a, strings.TrimSuffix(name, "+"), value{known: true, w: word{text: val}})
				}
			}
		}
	}
	if names == 0 && (exported || variant == "declare" || variant == "typeset") && len(c.Args) <= 1 {
		a.give("shows-environment", Ask, variant, "it prints the values of variables, secrets among them", "print the one variable that is wanted")
		a.reads(variant)
	}
	for _, n := range c.Args {
		if n.Name == nil {
			continue
		}
		if nameref {
			a.give("nameref", Ask, n.Name.Value, "a reference hides which variable is meant", "use the variable itself")
		}
		if integer && n.Value != nil {
			a.evaluated(a.value(n.Value, st))
			st.bind(a, n.Name.Value, value{origin: numbers})
			continue
		}
		if n.Naked && exported {
			v := st.lookup(a, n.Name.Value)
			a.assignment(n.Name.Value, v.w, true, st)
			continue
		}
		a.assign(n, exported, st)
	}
}

// evaluated judges a value that the shell evaluates as arithmetic: text in it
// may name an array, whose subscript runs commands.
func (a *analysis) evaluated(w word) {
	switch {
	case w.origin == numbers && !strings.ContainsAny(strings.ReplaceAll(w.text, unknown, ""), "[$`"):
	case w.known() && !strings.ContainsAny(w.text, "[$`\\"):
	case w.text == "":
	default:
		a.give("data-evaluated", Ask, w.shown(), "the shell evaluates this text, and a subscript in it can run commands", "use a plain number or name")
	}
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
					a.evaluated(a.value(w, st))
				} else {
					a.test(side, st)
				}
			}
			return
		}
		a.test(x.X, st)
		a.test(x.Y, st)
	case *syntax.UnaryTest:
		if w, ok := x.X.(*syntax.Word); ok && (x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar) {
			a.cur = a.source(x)
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
		if w, ok := x.X.(*syntax.Word); ok && syntax.ValidName(w.Lit()) {
			switch x.Op {
			case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
				if sensitive(w.Lit()) != cosmetic {
					a.assignment(w.Lit(), word{text: unknown}, false, st)
				}
				st.bind(a, w.Lit(), value{origin: numbers})
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
	if name := w.Lit(); syntax.ValidName(name) {
		v := st.lookup(a, name)
		switch {
		case v.known:
			a.evaluated(v.w)
		case v.origin == numbers:
		case v.list == nil && a.isUnset(name, st):
		default:
			a.give("data-evaluated", Ask, name, "what the variable holds is only known when it runs, and the shell evaluates it as a calculation", "use a value that is known to be a number")
		}
		return
	}
	if len(w.Parts) == 1 {
		if p, ok := w.Parts[0].(*syntax.ParamExp); ok && p.Short && p.Param != nil && p.Index == nil {
			a.evaluated(a.value(w, st))
			return
		}
	}
	a.evaluated(a.value(w, st))
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
