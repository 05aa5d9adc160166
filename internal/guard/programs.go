package guard

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/guard/know"
)

// remote reports whether tar takes an archive's name for one on another machine.
func remote(name string) bool {
	host, _, ok := strings.Cut(name, ":")
	return ok && !strings.Contains(host, "/")
}

// wholly reports whether find is to remove all that it finds, without a condition.
func wholly(argv []word) bool {
	deletes := slices.ContainsFunc(argv, func(w word) bool { return w.text == "-delete" })
	return deletes && !slices.ContainsFunc(argv, func(w word) bool {
		switch w.text {
		case "-delete", "-depth", "-d", "-print", "-print0", "-xdev", "-mount", "-true", "-H", "-L", "-P":
			return false
		}
		return strings.HasPrefix(w.text, "-") || w.text == "!" || w.text == "("
	})
}

// jq judges jq, some of whose options take two arguments: a name, and a value or a
// file.
func (a *analysis) jq(argv []word, st *state) source {
	plain := []word{argv[0]}
	for i := 1; i < len(argv); i++ {
		switch w := argv[i]; w.text {
		case "--arg", "--argjson", "--slurpfile", "--rawfile":
			if i+2 >= len(argv) {
				a.give("unknown-option", Ask, w.shown(), w.text+" lacks its arguments", "write them out")
				break
			}
			if argv[i+1].several() || argv[i+2].several() {
				a.give("dynamic-option", Ask, w.shown(), "how many words follow is only known when it runs", "put them in double quotes")
			}
			if strings.HasSuffix(w.text, "file") {
				a.path(argv[i+2], use{read: true}, st)
			}
			i += 2
		case "--":
			plain = append(plain, argv[i:]...)
			i = len(argv)
		default:
			plain = append(plain, w)
		}
	}
	return a.known(know.Find(argv[0].text), plain, st)
}

// turnedAlways reports whether a program may be turned to another one whatever it is
// asked, by the files that [turning] tells.
func turnedAlways(name string) bool {
	switch name {
	case "cargo", "rustc", "rustdoc", "yarn", "pnpm":
		return true
	}
	return false
}

// turning are the files of a project by which a program runs the project's code, or
// another program, even where it is asked for its version or its help only.
func turning(name string) []string {
	switch name {
	case "cargo", "rustc", "rustdoc", "rustup", "rustfmt":
		return []string{"rust-toolchain", "rust-toolchain.toml", ".cargo/config", ".cargo/config.toml"}
	case "yarn": // corepack, which may stand in for it, reads from where it fetches it
		return []string{".yarnrc", ".yarnrc.yml", ".corepack.env"}
	case "pnpm": // it loads its hooks whatever it is asked, and may change itself for another version
		return []string{".pnpmfile.cjs", ".pnpmfile.mjs", "pnpmfile.js", ".npmrc", "pnpm-workspace.yaml", ".corepack.env"}
	case "bazel", "bazelisk": // both start tools/bazel in their own place; the rest says which bazel is fetched
		return []string{"tools/bazel", "tools/bazel.exe", "tools/bazel.bat", ".bazelversion", ".bazeliskrc"}
	case "mvn", "mvnw":
		return []string{".mvn"}
	case "sbt":
		return []string{".sbtopts", ".jvmopts", "project"}
	case "lein":
		return []string{"project.clj", "profiles.clj"}
	case "dotnet": // it may name a directory of the project as the place of the SDK
		return []string{"global.json"}
	case "tox":
		return []string{"toxfile.py"}
	case "flake8": // it says the versions of its plugins, which it has loaded for that
		return []string{".flake8", "setup.cfg", "tox.ini"}
	case "tflint":
		return []string{".tflint.hcl", ".tflint.d"}
	case "rubocop":
		return []string{".rubocop"}
	case "poetry":
		return []string{".poetry"}
	case "pdm":
		return []string{".pdm-plugins"}
	case "composer":
		return []string{"vendor/composer/installed.json"}
	case "bundle", "bundler":
		return []string{".bundle"}
	case "ansible", "ansible-playbook":
		return []string{"ansible.cfg"}
	case "elixir", "iex", "erl":
		return []string{".erlang", ".iex.exs"}
	}
	return nil
}

// turned judges a program that a file of the project turns to something else: one by
// its own files, and any that a manager of versions stands in for, where a file of the
// project says in which directory that one finds it.
func (a *analysis) turned(w word, files []string, st *state) {
	for _, dir := range st.cwds {
		for ; files != nil && a.root(dir) != ""; dir = filepath.Dir(dir) {
			a.step(8)
			for _, f := range files {
				if isThere(filepath.Join(dir, f)) {
					a.projectCode(w, "it may run what the project's "+f+" names")
					return
				}
			}
		}
	}
	for _, dir := range st.cwds {
		if f := a.versions(dir); f != "" && a.managed(w.text) {
			a.projectCode(w, "the project's "+f+" says which program this is")
			return
		}
	}
}

// versions is the file of the project by which a manager of versions takes a program
// from a directory that the file names, "" where there is none, or no manager. It is
// looked for once a directory.
func (a *analysis) versions(dir string) string {
	if a.shims == nil {
		a.shims = []string{}
		for _, d := range filepath.SplitList(a.r.env("PATH")) {
			if filepath.Base(d) == "shims" {
				a.shims = append(a.shims, d)
			}
		}
	}
	if len(a.shims) == 0 {
		return ""
	}
	found, ok := a.versionsIn[dir]
	if ok {
		return found
	}
	for up := dir; found == "" && a.root(up) != ""; up = filepath.Dir(up) {
		a.step(8)
		for _, f := range [...]string{".tool-versions", "mise.toml", ".mise.toml"} {
			if elsewhere(filepath.Join(up, f)) {
				found = f
			}
		}
	}
	if a.versionsIn == nil {
		a.versionsIn = map[string]string{}
	}
	a.versionsIn[dir] = found
	return found
}

// managed reports whether a program of that name is one by which a manager of versions
// finds the real one: a file among its shims.
func (a *analysis) managed(name string) bool {
	for _, d := range a.shims {
		if isThere(filepath.Join(d, name)) {
			return true
		}
	}
	return false
}

// elsewhere reports whether a file of versions names a directory in place of one, or is
// no plain small file.
func elsewhere(path string) bool {
	if !isThere(path) {
		return false
	}
	data, ok := smallFile(path)
	return !ok || bytes.Contains(data, []byte("path:"))
}

// terminal judges stty: to look is fine.
func (a *analysis) terminal(argv []word, st *state) source {
	for _, w := range argv[1:] {
		switch w.text {
		case "size", "speed", "-a", "--all", "-g":
		default:
			return a.known(know.Find("stty"), argv, st)
		}
	}
	return source{there: true}
}

// operandsOf judges operands by what only their text tells.
func (a *analysis) operandsOf(_ *know.Program, g args, st *state) {
	for i, w := range g.operands {
		switch g.name {
		case "gofmt", "goimports", "gofumpt":
			if g.has("-w") {
				a.path(w, use{}, st)
			}
		case "date":
			if !strings.HasPrefix(w.text, "+") {
				a.give("needs-a-person", Ask, w.shown(), "it sets the clock", "write + before a format")
			}
		case "nm", "objdump", "readelf", "size", "strings", "addr2line", "c++filt", "otool":
			if strings.HasPrefix(w.text, "@") {
				a.give("option-config", Ask, w.shown(), "it takes its options from a file", "write the options out")
			}
		case "xmllint":
			a.addressed(w)
		case "man", "info":
			if strings.Contains(w.text, "/") || !w.known() {
				a.path(w, use{read: true}, st)
			}
		case "ps":
			a.processOptions(w)
		case "getent":
			if i == 0 {
				a.database(w)
			}
		case "ldd":
			if _, ok := a.installed(w.text, st); !ok {
				a.projectCode(w, "it may run the program")
			}
		}
	}
	for _, o := range g.options {
		switch {
		case g.name == "xmllint" && o.given:
			a.addressed(o.arg)
		case g.name == "objdump" && o.opt != nil && (o.opt.Name == "-S" || o.opt.Name == "--source"):
			a.give("needs-a-person", Ask, o.w.shown(), "it prints the files that a program says it was made from, wherever they lie", "leave it out")
		case g.name == "ps":
			a.processOptions(o.w)
			if !strings.HasPrefix(o.w.text, "-") {
				a.processOptions(o.arg) // ps u takes no argument
			}
		}
	}
	switch g.name {
	case "ps":
		a.aimed(nil, g, st)
	case "npx", "bunx", "pnpx":
		a.packagedAgent(st)
	}
}

// asksGit has the settings of a repository judged for a command of go that asks git
// about it: go list says which commit a program is made from, and has git look whether
// all of it is committed.
func (a *analysis) asksGit(p *know.Program, g args, st *state) {
	if p.Name != "list" || g.has("-m") {
		return
	}
	at := st
	for _, o := range g.options {
		if o.opt != nil && o.opt.Name == "-C" {
			at = at.fork()
			a.chdir(o.arg, at)
		}
	}
	a.repository("status", word{text: g.root()}, nil, at)
}

// addressed is for what a program takes for a file or for an address.
func (a *analysis) addressed(w word) {
	if !strings.Contains(w.text, "://") {
		return
	}
	a.reaches(w.text)
	if !w.known() || !a.r.hostAllowed(hostOf(w.text)) {
		a.give("network", Ask, w.shown(), "it reads from another machine", "have the user add the host to guard.hosts")
	}
}

// processOptions looks for ps's e without a dash, which shows environments.
func (a *analysis) processOptions(w word) {
	if w.text != "" && w.text[0] != '-' && strings.Contains(w.text, "e") && strings.Trim(w.text, "abcefghjlmnrsuvwxyzACHLMSTVXZ") == "" || w.text == "-E" {
		a.give("shows-environment", Ask, w.shown(), "it prints the environment of processes, secrets among it", "leave the e out, or write -e")
		a.reads("ps")
	}
}

// database judges which of the system's databases getent is to ask.
func (a *analysis) database(w word) {
	switch w.text {
	case "passwd", "group", "services", "protocols", "rpc", "ethers", "aliases", "netgroup", "initgroups", "networks":
	case "shadow", "gshadow":
		a.reads(w.shown())
		a.give("reads-secret", Ask, w.shown(), "it reads secrets of the system", "leave it out")
	default:
		a.reaches("getent")
		a.give("network", Ask, w.shown(), "it may ask a name server", "let the user do it")
	}
}

// packagedAgent judges an agent that is started through a package manager.
func (a *analysis) packagedAgent(st *state) {
	argv := a.cur.argv
	for i, w := range argv[min(1, len(argv)):] {
		name := filepath.Base(w.text)
		switch {
		case w.text == "@anthropic-ai/claude-code":
			name = "claude"
		case strings.HasPrefix(w.text, "-"):
			continue
		}
		if name, _, _ = strings.Cut(name, "@"); agent(name) {
			a.nested(append([]word{{text: name, src: w.src}}, argv[i+2:]...), st)
		}
		return
	}
}
