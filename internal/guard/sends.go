package guard

import (
	"strings"

	"reprise/internal/guard/know"
	"reprise/internal/guard/names"
)

// What a program that reaches another machine is given is sent there, whatever option or
// word it stands in: a header, a cookie, the name of a browser.

// byHost reports whether a program only asks the hosts that it is given, so that
// guard.hosts decides about it.
func byHost(name string) bool {
	switch name {
	case "curl", "wget", "ping", "dig", "host", "nslookup", "http", "https", "httpie", "xh", "xhs", "curlie":
		return true
	}
	return false
}

// sendsBy looks for what an option has a program send: secrets, and what another command
// wrote.
func (a *analysis) sendsBy(p *know.Program, g *args, o option, st *state) {
	switch {
	case o.opt == nil:
		a.sends(o.w, p, g, st)
	default:
		a.sends(o.arg, p, g, st)
		if o.arg.told && o.opt.Kind == know.Text && byHost(g.name) {
			a.give("needs-a-person", Ask, o.w.shown(), "it sends what a command writes, which may be what a file holds", "write the text out")
		}
	}
}

// sends looks for secrets in what a program sends: the name of a file, also after @ or =,
// and variables whose names say what they hold. To this machine itself a variable may be
// sent, if somebody says so.
func (a *analysis) sends(w word, p *know.Program, g *args, st *state) {
	if w.secret {
		if here(p, g) {
			a.give("reads-secret", Ask, w.shown(), "it sends a secret, if only to this machine", "let the user do it")
		} else {
			a.reads(w.shown())
		}
	}
	text := w.text[strings.LastIndexAny(w.text, "@=<")+1:]
	for _, base := range a.bases(text, st) {
		if text != "" && !strings.Contains(text, "://") && names.Secret(a.physical(base, text)) != "" {
			a.reads(w.shown())
		}
	}
}

// here reports whether all hosts that a program is given are this machine.
func here(p *know.Program, g *args) bool {
	some := false
	foreign := func(w word) bool {
		some = true
		return !w.known() || !loopback(hostOf(w.text))
	}
	for _, o := range g.options {
		if o.opt == nil || o.opt.Kind == know.Net && foreign(o.arg) {
			return false
		}
	}
	for i, w := range g.operands {
		if op := p.OperandAt(i, len(g.operands), g.has); op != nil && op.Kind == know.Net && foreign(w) {
			return false
		}
	}
	return some
}

// loopback reports whether a host is the machine itself.
func loopback(host string) bool {
	host = strings.ToLower(strings.Trim(host, "[]"))
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.") && strings.Trim(host, "0123456789.") == ""
}

// request judges http and its like, which take the method for a word before the address.
func (a *analysis) request(argv []word, st *state) source {
	for i := 1; i < len(argv); i++ {
		switch w := argv[i]; strings.ToUpper(w.text) {
		case "GET", "HEAD", "OPTIONS":
			plain := append(append([]word(nil), argv[:i]...), argv[i+1:]...)
			return a.known(know.Find(argv[0].text), plain, st)
		case "POST", "PUT", "PATCH", "DELETE", "CONNECT", "TRACE":
			a.give("needs-a-person", Ask, w.shown(), "it does more than ask for a page", "let the user do it, or allow it by a rule")
			plain := append(append([]word(nil), argv[:i]...), argv[i+1:]...)
			return a.known(know.Find(argv[0].text), plain, st)
		}
		if !strings.HasPrefix(argv[i].text, "-") {
			break
		}
	}
	return a.known(know.Find(argv[0].text), argv, st)
}

// requests judges the words behind the address that http and its like are given, and what
// they are given to read: data, and files, are sent.
func (a *analysis) requests(_ *know.Program, g args, st *state) {
	for i, w := range g.operands {
		if w.told {
			a.give("needs-a-person", Ask, w.shown(), "it sends what a command writes, which may be what a file holds", "write the text out")
		}
		if i == 0 {
			continue
		}
		at := strings.IndexAny(w.text, "=:@;")
		rest := w.text[max(at, 0):]
		if _, file, ok := strings.Cut(rest, "@"); ok && strings.Trim(rest[:strings.IndexByte(rest, '@')], ":=") == "" {
			a.path(word{text: file, src: w.src}, use{read: true}, st)
			a.give("needs-a-person", Ask, w.shown(), "it may send what a file holds", "write the text out")
			continue
		}
		question := strings.HasPrefix(rest, "==")
		header := strings.HasPrefix(rest, ":") && !strings.HasPrefix(rest, ":=") || rest == ";"
		if !question && !header {
			a.give("needs-a-person", Ask, w.shown(), "it sends data", "let the user do it, or allow it by a rule")
		}
	}
	if st.in.there && !g.has("-I") && !g.has("--ignore-stdin") {
		a.give("needs-a-person", Ask, g.name, "it sends what it is given to read", "give it </dev/null, or let the user do it")
	}
}
