package guard

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A project brings tools of its own: programs in node_modules/.bin, modules of Python, scripts
// that package.json names. Who starts them by a runner's name and not by their path runs the
// project's code all the same.

// ownBinary judges a runner of JavaScript's packages (npx, npm exec, yarn, ...) that is given a
// program which the project has installed: it is that program then, and nothing is got from
// elsewhere. It reports whether that was so.
func (a *analysis) ownBinary(argv []word, st *state) bool {
	words := argv[1:]
	direct := false // what stands before the program's name are options of the runner
	switch argv[0].text {
	case "npx", "bunx":
		for len(words) > 0 && slices.Contains([]string{"--no", "--no-install"}, words[0].text) {
			words = words[1:]
		}
		direct = true
	case "pnpm", "yarn", "npm":
		if len(words) == 0 {
			return false
		}
		switch sub := words[0].text; {
		case sub == "exec" || sub == "x" && argv[0].text == "npm":
			words = words[1:]
			direct = argv[0].text != "npm"
			if len(words) > 0 && words[0].text == "--" {
				words, direct = words[1:], true
			}
		case argv[0].text == "npm" || slices.Contains(argvSubs, sub):
			return false
		default:
			direct = true
		}
	default:
		return false
	}
	if len(words) == 0 || !words[0].known() || words[0].made || words[0].glob || strings.Trim(words[0].text, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || words[0].text[0] == '-' {
		return false
	}
	if !direct && slices.ContainsFunc(words[1:], func(w word) bool { return strings.HasPrefix(w.text, "-") && w.text != "--" || !w.known() }) {
		return false // npm takes them for its own
	}
	path := a.installedBy(words[0].text, st)
	if path == "" || !a.ours(".", st) {
		return false
	}
	inner := append([]word{{text: path, src: words[0].src}}, words[1:]...)
	a.ownElsewhere(inner, st)
	a.wordsOf(inner[1:], st)
	a.script(inner, st)
	return true
}

// argvSubs are words of pnpm and yarn that are no programs.
var argvSubs = strings.Fields("run run-script test t start stop restart install i add remove rm uninstall update upgrade up link unlink publish pack login logout token set get cache rebuild dedupe prune version deprecate owner access adduser import store patch dlx create init ci config ls list ll la why explain root prefix bin help view info show v search outdated audit ping whoami pkg workspace workspaces env fetch deploy server setup self-update npm node plugin policies tag team generate-lock-entry global licenses exec build lint dev format typecheck check")

// installedBy is the path of a program that the project's packages brought: in node_modules/.bin of
// the directory or of one above it that is work. It is empty where there is none, or not the
// same for each directory that the command may be in.
func (a *analysis) installedBy(name string, st *state) string {
	found := ""
	for _, dir := range st.cwds {
		path := ""
		for root := a.root(dir); root != "" && path == ""; dir = filepath.Dir(dir) {
			a.step(2)
			p := filepath.Join(dir, "node_modules", ".bin", name)
			if _, err := os.Stat(p); err == nil && a.root(a.physical("", p)) != "" {
				path = p
			}
			if dir == root || dir == filepath.Dir(dir) {
				break
			}
		}
		if path == "" || found != "" && path != found {
			return ""
		}
		found = path
	}
	return found
}

// hasScript reports whether package.json of the directory names a script: a runner takes a name
// that is none for a program of the system's.
func (a *analysis) hasScript(name string, st *state) bool {
	for _, dir := range st.cwds {
		f, err := openNow(filepath.Join(dir, "package.json"))
		if err != nil {
			return false
		}
		text, err := io.ReadAll(io.LimitReader(f, 1<<20))
		f.Close()
		a.step(len(text) / 64)
		var p struct {
			Scripts map[string]string `json:"scripts"`
		}
		if err != nil || json.Unmarshal(text, &p) != nil || p.Scripts[name] == "" {
			return false
		}
	}
	return len(st.cwds) > 0
}

// ownModule judges python -m NAME: a checker of Python's, which is then judged as the program
// of that name is, or a module of the project. It reports whether it was one of these.
func (a *analysis) ownModule(words []word, st *state) bool {
	name := words[0].text
	if slices.Contains([]string{"mypy", "ruff", "black", "flake8", "pylint", "isort", "coverage", "pyright", "tox", "nox", "bandit"}, name) {
		a.nested(append([]word{{text: name, src: words[0].src}}, words[1:]...), st)
		return true
	}
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") != "" || len(st.cwds) == 0 {
		return false
	}
	path := strings.ReplaceAll(name, ".", "/")
	for _, dir := range st.cwds {
		if !isFile(filepath.Join(dir, path+".py")) && !isFile(filepath.Join(dir, path, "__main__.py")) {
			return false
		}
	}
	if !a.ours(path+".py", st) {
		return false
	}
	a.wordsOf(words[1:], st)
	a.handed(words[1:], st)
	a.projectCode(words[0], "it runs the project's code")
	return true
}

// fromNetwork judges the words of runtimes that take code from the network by its address.
func (a *analysis) fromNetwork(g *args, st *state) {
	for _, w := range g.operands {
		if strings.Contains(w.text, "://") || strings.HasPrefix(w.text, "npm:") || strings.HasPrefix(w.text, "jsr:") || !w.known() {
			a.otherCode(w, "it may be code of another machine", "name a file of the project")
		}
	}
	if g.root() == "bun" && g.name == "run" && len(g.operands) > 0 {
		if w := g.operands[0]; w.known() && !a.hasScript(w.text, st) && !a.ownFile(w.text, st, ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx") {
			a.otherCode(w, "package.json names no script so: it may be a program of the system's", "run the program by itself")
		}
	}
}

// places judges what cmake is to define: a program, or a place that is written to later.
func (a *analysis) places(g *args) {
	for _, o := range g.options {
		if o.opt == nil || o.opt.Name != "-D" {
			continue
		}
		name, _, _ := strings.Cut(o.arg.text, "=")
		for _, part := range []string{"COMPILER", "LAUNCHER", "TOOLCHAIN", "LINKER", "PROGRAM", "COMMAND", "PREFIX", "DESTINATION", "INCLUDE", "MODULE_PATH", "EXECUTABLE", "EMULATOR", "_FLAGS", "AR", "RANLIB", "RULE_"} {
			if strings.Contains(strings.ToUpper(name), part) && (len(part) > 2 || strings.HasSuffix(name, "_"+part)) || !o.arg.known() {
				a.otherCode(o.w, "the value may name a program, or code beside the project's", "put it into the project's file")
				break
			}
		}
	}
}
