package guard

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/guard/names"
)

// Which version of a tool runs is often said by a file of the project. A number, or
// another name that the tool's own makers give, is no more than that: they, or the
// registry that the user chose, decide what it stands for. A file that says where a
// tool comes from, or that has a program run on the way there, is the project's code.

// turnedAlways reports whether a program may be turned to another one whatever it is
// asked, by the files that [turning] tells.
func turnedAlways(name string) bool {
	switch name {
	case "cargo", "rustc", "rustdoc", "rustup", "npm", "yarn", "pnpm", "shellcheck":
		return true
	}
	return false
}

// turning are the files of a project by which a program runs the project's code, or
// another program, even where it is asked for its version or its help only. After a
// question mark stands what is looked for in the file, where not each counts.
func turning(name string, help bool) []string {
	switch name {
	case "cargo", "rustc", "rustdoc", "rustup", "rustfmt":
		return []string{"rust-toolchain", "rust-toolchain.toml", ".cargo/config", ".cargo/config.toml"}
	case "npm", "npx": // its help is shown by the program that the settings name
		return []string{"package.json?packageManager", ".npmrc?viewer", ".npmrc?browser", ".npmrc?\\"}
	case "yarn", "corepack": // corepack, which may stand in for it, reads from where it fetches it
		return []string{".yarnrc", ".yarnrc.yml", ".corepack.env", "package.json?packageManager"}
	case "pnpm": // it loads its hooks whatever it is asked, and may change itself for another version
		return []string{".pnpmfile.cjs", ".pnpmfile.mjs", "pnpmfile.js", ".npmrc", "pnpm-workspace.yaml", ".corepack.env", "package.json?packageManager"}
	case "webpack", "stylelint", "serverless", "wrangler": // they give way to the project's own copy of them
		return []string{"node_modules/" + name, "node_modules/" + name + "-cli"}
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
		if help {
			return []string{"vendor/composer/installed.json", "composer.json?vendor-dir"}
		}
		return []string{"vendor/composer/installed.json"}
	case "mix": // its help is one of its tasks, for which it loads the project
		if help {
			return []string{"mix.exs"}
		}
	case "vagrant": // its help knows the commands of the project's plugins
		if help {
			return []string{"Vagrantfile"}
		}
	case "rebar3": // it reads its settings first, and a script of that name is evaluated
		return []string{"rebar.config", "rebar.config.script"}
	case "bundle", "bundler":
		return []string{".bundle"}
	case "ansible", "ansible-playbook":
		return []string{"ansible.cfg"}
	case "elixir", "iex", "erl":
		return []string{".erlang", ".iex.exs"}
	case "shellcheck": // it may have it read other files
		return []string{".shellcheckrc", "shellcheckrc"}
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
				name, text, _ := strings.Cut(f, "?")
				if path := filepath.Join(dir, name); isThere(path) && turns(path, text) {
					a.projectCode(w, "it may run what the project's "+name+" names")
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

// maxManifest is how much of a file is read in which something is looked for, in
// bytes; a longer one counts as if it had it.
const maxManifest = 1 << 18

// turns reports whether a file has a text; for packageManager, whether it says there
// where the manager is to be got.
func turns(path, text string) bool {
	if text == "" {
		return true
	}
	data, ok := fileOf(path, maxManifest)
	if !ok || text != "packageManager" {
		return !ok || strings.Contains(string(data), text)
	}
	var m struct {
		Manager any `json:"packageManager"`
	}
	if json.Unmarshal(data, &m) != nil {
		return strings.Contains(string(data), text) || strings.Contains(string(data), `\`)
	}
	s, named := m.Manager.(string)
	return m.Manager != nil && (!named || strings.ContainsAny(s, `:/\`))
}

// versions is the file of the project by which a manager of versions takes a program
// from a place that the file names, "" where there is none, or no manager. It is
// looked for once a directory.
func (a *analysis) versions(dir string) string {
	if a.shims == nil {
		a.shims = []string{}
		for _, d := range filepath.SplitList(a.r.env("PATH")) {
			if filepath.Base(d) == "shims" || strings.HasSuffix(filepath.ToSlash(d), "/.volta/bin") {
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
		a.step(16)
		for _, f := range versionFiles {
			if path := filepath.Join(up, f); isThere(path) && elsewhere(path) {
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

// versionFiles are the files in which managers of versions look for what a project
// wants: those of asdf and mise, of pyenv and its like, of proto, and Volta's hooks.
var versionFiles = [...]string{
	".tool-versions", "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", ".config/mise.toml", ".config/mise/config.toml", "mise/config.toml", ".mise/config.toml", ".config/mise/conf.d", ".rtx.toml",
	".python-version", ".ruby-version", ".node-version", ".java-version", ".php-version", ".perl-version", ".go-version", ".lua-version", ".prototools", ".volta",
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

// elsewhere reports whether a file of versions says more than versions: a place, or
// what is done on the way there. So does one that is no plain small file.
func elsewhere(path string) bool {
	data, ok := smallFile(path)
	switch name := filepath.Base(path); {
	case !ok:
		return true
	case name == ".tool-versions":
		return strings.Contains(string(data), "path:")
	case strings.HasSuffix(name, ".toml"):
		return !plainMise(string(data))
	case name == ".prototools":
		return strings.ContainsAny(string(data), "[:/")
	}
	return strings.ContainsAny(string(data), `/\`)
}

// plainMise reports whether settings of mise only say versions, harmless variables
// and tasks, which run when they are called by their names. The rest may be a
// directory, an address, a template with a command in it, a script or a hook.
func plainMise(text string) bool {
	section := ""
	for _, l := range strings.Split(text, "\n") {
		l = strings.TrimSpace(l)
		switch name, v, _ := strings.Cut(l, "="); {
		case l == "" || l[0] == '#':
		case l[0] == '[':
			section = strings.Trim(l, "[] \t")
			if section != "tools" && section != "env" && section != "tasks" && !strings.HasPrefix(section, "tasks.") {
				return false
			}
		case section == "tools":
			if !plainTool(strings.Trim(strings.TrimSpace(name), `"'`)) || strings.ContainsAny(v, `:/\{`) {
				return false
			}
		case section == "env":
			w := names.Variable(strings.TrimSpace(name))
			if w != names.Cosmetic && w != names.Plain || strings.HasPrefix(name, "_") || strings.ContainsAny(v, `{\`) || strings.Contains(v, `"""`) || strings.Contains(v, "'''") {
				return false
			}
		case section == "":
			return false
		}
	}
	return true
}

// plainTool reports whether a tool's name for mise is one of its own list's, or one of
// a registry that languages have.
func plainTool(name string) bool {
	if from, _, ok := strings.Cut(name, ":"); ok {
		return slices.Contains([]string{"core", "npm", "pipx", "cargo", "go", "gem", "aqua"}, from)
	}
	return !strings.ContainsAny(name, `/\.`)
}
