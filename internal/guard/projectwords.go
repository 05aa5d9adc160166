package guard

import (
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/guard/know"
)

// What runs the project's own code may be told by its words to run something else: the
// text of a recipe, a package of another machine, a file outside. That is asked about
// also where the user lets the project's code run.

// otherCode is for words by which a program runs more than the project's code.
func (a *analysis) otherCode(w word, reason, instead string) {
	a.give("project-code", Ask, w.shown(), reason, instead)
}

// onlyOurs judges where a program runs the project's code, and the words that it is given:
// neither may be of another place.
func (a *analysis) onlyOurs(g *args, st *state) {
	if !a.ours(".", st) {
		a.otherCode(word{text: g.root()}, "it runs the code of a directory outside the project", "run it in the project")
		return
	}
	if g.root() == "go" {
		return // see goWords
	}
	a.behindDashes(g)
	a.builds(g, st)
	for _, o := range g.options {
		if o.given && o.opt != nil && o.opt.Kind == know.Text {
			for _, part := range strings.FieldsFunc(o.arg.text, func(r rune) bool { return strings.ContainsRune(";,=", r) }) {
				piece := o.arg
				piece.text = part
				a.handed([]word{piece}, st)
			}
		}
	}
	if packageManager(g.root()) || g.root() == "cargo" {
		a.handed(g.operands, st)
	}
	for _, w := range g.operands {
		path := strings.TrimSuffix(w.text, "/...")
		switch {
		case g.root() == "sbt" && strings.ContainsAny(w.text, ";!") || g.root() == "sbt" && (strings.HasPrefix(w.text, "eval") || strings.HasPrefix(w.text, "set")):
			a.otherCode(w, "it is code that it runs", "put it into the project's build")
		case strings.HasPrefix(path, "@") && !packageManager(g.root()):
			a.give("unknown-option", Ask, w.shown(), "it may be a file with further options, which are not seen", "write them out")
		case w.known() && path != "" && path[0] != '-' && !a.ours(a.fromHome(path), st) && !system(filepath.Clean(path)):
			a.otherCode(w, "it is outside the project", "name what is in the project")
		}
	}
}

// packageManager reports whether a word with an @ is a package for a program.
func packageManager(name string) bool {
	switch name {
	case "npm", "pnpm", "yarn":
		return true
	}
	return false
}

// makeWords judges the variables that make is given. Their values are text of recipes,
// which a shell reads, and some are programs or options of make's own.
func (a *analysis) makeWords(_ *know.Program, g args, st *state) {
	for _, w := range g.operands {
		name, value, set := strings.Cut(w.text, "=")
		name = strings.TrimRight(name, ":+?")
		switch {
		case !w.known() && w.origin != numbers && w.origin != fewWords:
			a.otherCode(w, "what make is told is only known when it runs", "write it out")
		case set && (strings.HasSuffix(name, "!") || strings.HasPrefix(name, ".") || slices.Contains([]string{"SHELL", "MAKE", "MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "MAKEOVERRIDES"}, name)):
			a.otherCode(w, name+" says what make runs", "leave it out")
		case !set && strings.Trim(w.text, plainLetters+unknown) != "", set && strings.Trim(value, plainLetters+unknown) != "":
			a.otherCode(w, "the value becomes text of recipes, which a shell reads", "give it letters, digits and -_./=,:+@% only")
		default:
			a.makeValue(w, name, value, st)
		}
	}
}

// plainLetters are those that mean nothing to a shell or to make.
const plainLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:+@%"

// goWords judges what go is to build, test or run: packages of the project, and files in it.
func (a *analysis) goWords(g *args, st *state) {
	list := g.operands
	switch g.name {
	case "run": // further words are the program's
		n := 0
		for n < len(list) && (n == 0 || strings.HasSuffix(list[n-1].text, ".go") && strings.HasSuffix(list[n].text, ".go")) {
			n++
		}
		list = list[:n]
		if n == 1 {
			name, _, _ := strings.Cut(list[0].text, "@")
			a.ownElsewhere(append([]word{{text: "./" + name, src: list[0].src}}, g.operands[n:]...), st)
		}
		a.handed(g.operands[n:], st)
	case "build", "test", "generate", "vet":
	case "tool":
		a.goTool(list, st)
		return
	default:
		return
	}
	for _, w := range list {
		a.packaged(w, st)
		path := strings.TrimSuffix(w.text, "/...")
		switch {
		case !w.known() && !w.origin.names() && w.origin != fewWords && w.origin != numbers:
			a.otherCode(w, "which code this is is only known when it runs", "write it out")
		case w.known() && (path == "." || strings.HasPrefix(path, "./") || strings.HasPrefix(path, "..") || filepath.IsAbs(path) || strings.HasSuffix(path, ".go")) && !strings.Contains(path, "@") && !a.ours(path, st):
			a.otherCode(w, "it is code outside the project", "name packages of the project")
		}
	}
	for _, o := range g.options {
		a.compilerFlags(o)
	}
}

// checkers judges programs that check the project and are told by their first word to
// do something else.
func (a *analysis) checkers(_ *know.Program, g args, st *state) {
	switch {
	case g.name == "govulncheck":
		for _, w := range g.operands {
			a.packaged(w, st)
		}
	case g.name == "pre-commit" && len(g.operands) > 0 && g.operands[0].text != "run":
		a.give("needs-a-person", Ask, g.operands[0].shown(), "it changes git's hooks, or gets code from elsewhere", "let the user do it")
	}
}

// runsEnv judges the name of a script: npm has one of its own that prints the environment.
func (a *analysis) runsEnv(g *args) {
	if (g.name == "run" || g.name == "run-script") && len(g.operands) > 0 && g.operands[0].text == "env" {
		a.give("shows-environment", Ask, g.operands[0].shown(), "it prints the environment, secrets among it", "name the variable that is wanted")
		a.reads("env")
	}
}

// applyPatch judges a patch of Codex's form in a command: Codex takes it out of there
// and applies it by itself, as its tool of that name does. It writes as a command does.
func (a *analysis) applyPatch(argv []word, st *state) source {
	w, known := word{text: st.in.text, src: "apply_patch"}, st.in.there && st.in.fixed && !st.in.doubt
	if len(argv) > 1 {
		w = argv[1]
		known = w.known() && len(argv) == 2
	}
	if !known {
		a.give("dynamic-program", Ask, w.shown(), "which files the patch changes is only known when it runs", "write the patch out")
		return source{there: true}
	}
	list := patched(w.text)
	for _, name := range list {
		if c := a.closing; c != nil {
			for _, dir := range c.dirs(st) {
				c.say(c.g.path(c.g.abs(dir, name), name, use{shallow: true}))
			}
		}
		a.path(word{text: name, src: name}, use{}, st)
	}
	if len(list) == 0 {
		a.give("dynamic-program", Ask, w.shown(), "the patch names no file in a form that is known", "use the client's own tool for editing files")
	}
	return source{there: true}
}
