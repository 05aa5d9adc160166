package guard

import (
	"path"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"reprise/internal/guard/know"
)

// oracle is a second, much simpler look at a command: it knows nothing of options,
// paths and variables, only which programs are named outright and which files are
// written outright. Whatever the guard allows has to pass it.
type oracle struct {
	functions map[string]bool
	found     []string // what must not be allowed
}

// shellWords are the commands of the shell itself that may be allowed.
var shellWords = []string{":", "true", "false", "echo", "jobs", "wait", "return", "exit", "break", "continue", "shift", "times", "dirs", "type", "disown", "bg", "fg", "printf", "pwd", "cd", "pushd", "popd",
	"eval", "command", "builtin", "exec", "trap", "read", "mapfile", "readarray", "test", "[", "unset", "getopts", "set", "shopt", "hash", "umask", "ulimit", "let", "export", "declare", "typeset", "local", "readonly",
	"bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "busybox", "toybox", "source", ".", "xargs", "gxargs"}

// constant is a word's text where it is all literal.
func constant(w *syntax.Word) (string, bool) {
	var b strings.Builder
	var parts func(list []syntax.WordPart, quoted bool) bool
	parts = func(list []syntax.WordPart, quoted bool) bool {
		for _, p := range list {
			switch p := p.(type) {
			case *syntax.Lit:
				if strings.ContainsAny(p.Value, `\`) || !quoted && strings.ContainsAny(p.Value, "*?[]{}~") {
					return false
				}
				b.WriteString(p.Value)
			case *syntax.SglQuoted:
				if p.Dollar {
					return false
				}
				b.WriteString(p.Value)
			case *syntax.DblQuoted:
				if p.Dollar || !parts(p.Parts, true) {
					return false
				}
			default:
				return false
			}
		}
		return true
	}
	ok := parts(w.Parts, false)
	return b.String(), ok
}

func (o *oracle) look(text string, depth int) {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		o.found = append(o.found, "it cannot be parsed: "+err.Error())
		return
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		if d, ok := n.(*syntax.FuncDecl); ok {
			for _, name := range append(d.Names, d.Name) {
				if name != nil {
					o.functions[name.Value] = true
				}
			}
		}
		return true
	})
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			o.call(n, depth)
		case *syntax.Redirect:
			o.redirect(n)
		}
		return true
	})
}

func (o *oracle) redirect(r *syntax.Redirect) {
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.RdrInOut:
		if to, ok := constantText(r.Word); ok && !slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full"}, path.Clean(to)) && !strings.HasPrefix(to, "/dev/fd/") {
			o.found = append(o.found, "it writes "+to)
		}
	}
}

// constantText is constant, and not empty.
func constantText(w *syntax.Word) (string, bool) {
	if w == nil {
		return "", false
	}
	s, ok := constant(w)
	return s, ok && s != ""
}

func (o *oracle) call(c *syntax.CallExpr, depth int) {
	if len(c.Args) == 0 {
		return
	}
	name, ok := constantText(c.Args[0])
	if !ok {
		return
	}
	if o.functions[name] {
		return
	}
	if dir, base := path.Split(name); slices.Contains([]string{"/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/", "/opt/homebrew/bin/"}, dir) {
		name = base
	}
	p := know.Find(name)
	if p == nil && lists(name, c.Args[1:]) {
		return
	}
	if p == nil && !slices.Contains(shellWords, name) {
		o.found = append(o.found, "it runs "+name)
		return
	}
	var words []string
	all := true
	for _, w := range c.Args[1:] {
		s, ok := constant(w)
		words, all = append(words, s), all && ok
	}
	if p != nil && p.Base != know.Flag && p.Base != know.Net && all && len(p.Subs) == 0 && !slices.Contains(shellWords, name) && !informing(words) && !telling(name, words) && !(len(words) == 0 && slices.Contains(p.Tells, "-")) {
		o.found = append(o.found, "it runs "+name+", which does more than read")
	}
	if !all || depth > 3 {
		return
	}
	switch name {
	case "bash", "sh", "dash":
		for i, w := range words {
			if w == "-c" && i+1 < len(words) {
				o.look(words[i+1], depth+1)
				break
			}
			if !strings.HasPrefix(w, "-") {
				break
			}
		}
	case "eval":
		o.look(strings.Join(words, " "), depth+1)
	}
}

// lists reports whether a command of the shell that does more is only asked to print what
// it has.
func lists(name string, args []*syntax.Word) bool {
	line := name
	for _, w := range args {
		s, ok := constant(w)
		if !ok {
			return false
		}
		line += " " + s
	}
	return slices.Contains([]string{"alias", "caller", "caller 0", "caller 1", "complete -p", "bind -P", "bind -p", "bind -l", "compgen -a", "compgen -b", "compgen -c", "compgen -k"}, line) || strings.HasPrefix(line, "fc -l")
}

// informing reports whether a program may be asked about itself only, may write
// into nothing, or may end what the command itself started: the oracle knows no
// more of options.
func informing(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return strings.HasPrefix(w, "-") || strings.HasPrefix(w, "/dev/") || strings.HasPrefix(w, "%")
	})
}

// telling reports whether words without a dash only have something told: letters of ar,
// commands of sqlite3.
func telling(name string, words []string) bool {
	switch name {
	case "ar":
		return len(words) > 0 && strings.Trim(words[0], "tvO") == ""
	case "sqlite3":
		return len(words) > 1 && !slices.ContainsFunc(words[1:], func(w string) bool { return !showsTables(w) })
	}
	return false
}

// objections are what speaks against allowing a command.
func objections(text string) []string {
	o := &oracle{functions: map[string]bool{}}
	o.look(text, 0)
	return o.found
}

// The oracle itself tells what is plainly bad from what is plainly good.
func TestOracle(t *testing.T) {
	for _, c := range []string{"touch PWNED", "ls; 'touch' x", "echo $(touch x)", "bash -c 'touch x'", "eval 'touch x'", "ls > x", "f() { touch x; }; f", "./x", "make", "if ls; then /opt/x; fi", "(", "sh -c 'bash -c \"touch x\"'"} {
		if len(objections(c)) == 0 {
			t.Errorf("%q passes", c)
		}
	}
	for _, c := range []string{"ls > /dev/null", "f() { ls; }; f x", "/usr/bin/ls", "bash -c 'ls'", "git log | head"} {
		if found := objections(c); len(found) > 0 {
			t.Errorf("%q: %q", c, found)
		}
	}
}

// FuzzVerdict gives the guard whatever comes: it never fails, and never allows what
// the oracle objects to.
func FuzzVerdict(f *testing.F) {
	for _, c := range append(readCorpus(f, "bypasses.jsonl"), hard(f)...) {
		f.Add(c.Command)
	}
	for _, c := range everyday(f) {
		f.Add(c)
	}
	for _, w := range wrappings() {
		f.Add(w.wrap("touch PWNED"))
	}
	p := newProject(f)
	r := p.rules()
	f.Fuzz(func(t *testing.T, text string) {
		v := r.Command(text, p.dir)
		if !let(v) {
			return
		}
		if found := objections(text); len(found) > 0 {
			t.Errorf("%q is allowed, but %s", text, strings.Join(found, "; "))
		}
	})
}
