package guard

import (
	"slices"
	"strings"

	"reprise/internal/guard/know"
)

// Some programs run what they read. What a command gives them to read is no file of the
// project, whatever the user lets the project's code do: it is judged as what is given to
// them by an option is.

// fedCode judges a program that takes its code from its standard input, as it does where
// no word names some.
func (a *analysis) fedCode(p *know.Program, g *args, st *state) {
	switch name := g.root(); {
	case otherShell(name):
		if len(g.operands) == 0 && g.outer == nil {
			a.fedShell(g, st)
		}
		return
	case name == "bc" || name == "dc":
		a.calculators(g, st)
		return
	case name == "sbt" || name == "lein" || name == "dlv":
		// They have a prompt of their own, and read it for further commands.
		if !st.in.there || st.in.file {
			return
		}
	case len(p.Operands) == 0 || p.Operands[0].Kind != know.Script || len(g.operands) > 0 || g.has("-c") || g.has("-m") || st.in.file:
		return
	case slices.ContainsFunc(g.options, func(o option) bool { return o.opt == nil }):
		return // what is not known is asked about
	}
	if st.in.net {
		return // see interpreter
	}
	if !st.in.there {
		a.give("needs-a-person", Ask, g.root(), "with nothing to run it waits for a person, or runs what it reads", "name a file of the project")
		return
	}
	a.otherCode(word{text: g.root()}, "it runs what it is given to read, which is no file of the project", "put it into a file of the project")
}

// unseen is what is read from where a file was opened before, or an option names one.
const unseen = "<&"

// otherShell reports whether a program is a shell whose language is not bash's.
func otherShell(name string) bool {
	switch name {
	case "fish", "pwsh", "powershell", "cmd":
		return true
	}
	return false
}

// fedShell judges a shell of another language that runs what it reads. Simple commands
// are the same in all of them: what is refused there is refused, and all else is asked
// about.
func (a *analysis) fedShell(g *args, st *state) {
	w, inner := word{text: g.root()}, st.fork()
	inner.funcs, inner.args, inner.argsKnown = nil, nil, true
	if st.in.fixed {
		a.otherCode(w, "it runs what it is given to read, which is no file of the project", "put it into a file of the project")
	}
	a.fed(w, inner, st)
}

// calculators judges bc and dc, some of which give a line after ! to a shell.
func (a *analysis) calculators(g *args, st *state) {
	plain := st.in.file || !st.in.there || st.in.fixed && !strings.Contains(st.in.text, "!") || st.in.origin == numbers || st.in.sum
	for _, o := range g.options {
		plain = plain && (!o.given || o.arg.known() && !strings.Contains(o.arg.text, "!"))
	}
	if !plain {
		a.otherCode(word{text: g.name}, "its language can run commands, and what it is given to read may", "write the calculation out, without !")
	}
}

// parallel judges the commands that GNU parallel puts together: it joins its words and
// gives them to a shell, with a line of what it reads at the end or in the place of {};
// without words each line is a command.
func (a *analysis) parallel(g *args, st *state) source {
	for _, o := range g.options {
		a.judgeOption(o, st)
	}
	at := slices.IndexFunc(g.operands, func(w word) bool { return w.known() && strings.HasPrefix(w.text, ":::") })
	words, in := g.operands, st.in
	if at >= 0 {
		words, in = g.operands[:at], a.behindColons(g.operands[at:], st)
	}
	if g.has("-a") {
		in = source{there: true, what: unseen}
	}
	c := st.fork()
	c.in = source{}
	if len(words) == 0 {
		c.posix = true
		at := st.fork()
		at.in = in
		return a.fed(word{text: g.name}, c, at)
	}
	if slices.ContainsFunc(words, func(w word) bool { return !w.known() || strings.ContainsAny(w.text, "|&;<>()$`\\\"'\n") }) {
		text := make([]string, len(words))
		for i, w := range words {
			text[i] = w.text
		}
		joined := strings.Join(text, " ")
		if strings.Contains(joined, unknown) {
			a.give("dynamic-command", Ask, shown(joined), "a shell reads these words once more, and what they are is only known when it runs", "write them out")
		} else {
			a.shellArg(word{text: joined}, c)
		}
	}
	mark := "{}"
	inner := slices.Clone(words)
	for i, w := range inner { // {.}, {/} and their like are parts of a line
		if strings.Contains(w.text, "{") && !strings.Contains(w.text, mark) {
			inner[i] = word{text: unknown, src: w.src, made: true}
		}
	}
	if !slices.ContainsFunc(words, func(w word) bool { return strings.Contains(w.text, "{") }) {
		inner = append(inner, word{text: mark})
	}
	var lines []string
	if in.fixed && !in.doubt {
		if lines = strings.Split(strings.TrimSpace(in.text), "\n"); len(lines) > maxLines {
			lines = nil
		}
	}
	return a.eachLine(inner, mark, in, lines, st)
}

// behindColons is what stands after ::: in a command of parallel, a line each.
func (a *analysis) behindColons(words []word, st *state) source {
	in := source{there: true, fixed: true}
	var b strings.Builder
	files := false
	for _, w := range words {
		switch {
		case w.known() && (w.text == "::::" || w.text == "::::+"):
			files, in.fixed, in.what = true, false, unseen
		case w.known() && (w.text == ":::" || w.text == ":::+"):
			files = false
		case files:
			a.path(w, use{read: true}, st)
		default:
			in.fixed = in.fixed && w.known() && !w.split && !w.glob
			b.WriteString(w.text + "\n")
		}
	}
	in.text = b.String()
	return in
}

// standardInput reports whether a name is that of what a program is given to read.
func standardInput(name string) bool {
	switch name {
	case "-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0":
		return true
	}
	return false
}
