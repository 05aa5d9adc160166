package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/guard/names"
)

// handed judges the words that the project's code is given. A secret, or a file outside
// the project, is in its hands then as in those of a program that reads it.
func (a *analysis) handed(words []word, st *state) {
	if !a.r.ProjectCode {
		return // it is asked about in any case
	}
	for _, w := range words {
		text := w.text
		if _, v, ok := strings.Cut(text, "="); ok && strings.HasPrefix(text, "-") {
			text = v
		}
		if !w.known() || strings.Contains(text, "://") {
			continue
		}
		text = a.fromHome(text)
		for _, base := range a.bases(text, st) {
			p := a.physical(base, text)
			switch {
			case names.Secret(p) != "":
				a.reads(w.shown())
				a.give("reads-secret", Ask, w.shown(), "it gives "+names.Secret(p)+" to the project's code", "leave it out")
			case a.root(p) == "" && !system(filepath.Clean(p)) && besideSomething(p):
				a.otherCode(w, "it is outside the project", "name what is in the project")
			}
		}
	}
}

// besideSomething reports whether a path is that of a file, or of one that could be made:
// /api/v1 is neither, and a word of another kind.
func besideSomething(p string) bool {
	if _, err := os.Lstat(p); err == nil || !os.IsNotExist(err) {
		return true
	}
	dir := filepath.Dir(p)
	if dir == filepath.Dir(dir) {
		return false
	}
	_, err := os.Stat(dir)
	return err == nil || !os.IsNotExist(err)
}

// compilerFlags judges what go build is to tell the linker or the compiler: only what is
// known to name no file and no program.
func (a *analysis) compilerFlags(o option) {
	if o.opt == nil || !o.given || o.opt.Name != "-ldflags" && o.opt.Name != "-gcflags" {
		return
	}
	text := o.arg.text
	if pattern, flags, ok := strings.Cut(text, "="); ok && !strings.HasPrefix(strings.TrimLeft(text, " '\""), "-") && !strings.Contains(pattern, " ") {
		text = flags // of these packages only
	}
	fine := o.arg.known() || o.arg.origin == numbers || o.arg.origin == fewWords || o.arg.solid
	list := strings.Fields(strings.NewReplacer("'", " ", `"`, " ").Replace(text))
	for i := 0; i < len(list) && fine; i++ {
		name, value, given := strings.Cut("-"+strings.TrimLeft(list[i], "-"), "=")
		switch {
		case !strings.HasPrefix(list[i], "-"):
			fine = i > 0 && strings.Contains(text, "'") || i > 0 && strings.Contains(text, `"`) // the rest of a quoted text
		case o.opt.Name == "-ldflags" && name == "-X":
			if !given {
				i++
			}
		case o.opt.Name == "-ldflags":
			fine = slices.Contains([]string{"-s", "-w", "-v", "-race", "-msan", "-asan", "-linkmode", "-buildid", "-checklinkname", "-compressdwarf", "-H", "-d", "-n"}, name)
			if !given && i+1 < len(list) && (name == "-linkmode" || name == "-H") {
				i++
			}
		default:
			fine = slices.Contains([]string{"-N", "-l", "-m", "-S", "-B", "-c", "-C", "-e", "-h", "-live", "-race", "-std", "-lang", "-w", "-dwarf", "-shared", "-smallframes"}, name) ||
				name == "-d" && strings.HasPrefix(value, "checkptr") && !strings.Contains(value, ",")
		}
	}
	if !fine {
		a.give("option-runs", Ask, o.w.shown(), "a flag of the compiler or the linker may name a file that is written, or a program", "leave it out")
	}
}

// goTool judges a tool of Go's: some run what they are given, change files, or reach the
// network, and others are the project's own.
func (a *analysis) goTool(list []word, st *state) {
	if len(list) == 0 {
		return
	}
	name := list[0].text
	switch {
	case !list[0].known(), slices.Contains([]string{"asm", "cgo", "compile", "dist", "distpack", "fix", "link", "pack", "preprofile", "test2json"}, name) || strings.Contains(name, "@"):
		a.otherCode(list[0], "it runs or writes what it is given, and not the project's code", "let the user run it")
	case name == "pprof" && st.in.there && !st.in.file:
		a.otherCode(list[0], "it reads commands, of which some write files", "give it an option that says what to show")
	}
	for _, w := range list[1:] {
		text := strings.TrimSuffix(w.text, "/...")
		there := func(dir string) bool {
			_, err := os.Lstat(filepath.Join(dir, text))
			return err == nil
		}
		switch {
		case strings.Contains(text, "://") || name == "pprof" && !slices.ContainsFunc(a.bases(text, st), there):
			a.give("network", Ask, w.shown(), "it may be an address that it gets a profile from", "name a file of the project that is there")
		case !a.ours(a.fromHome(text), st) && !system(filepath.Clean(text)):
			a.otherCode(w, "it is outside the project", "name what is in the project")
		}
	}
}

// behindDashes judges what cargo gives to the compiler, and to a program's tests.
func (a *analysis) behindDashes(g *args) {
	if g.root() != "cargo" || g.ended < 0 || g.name != "rustc" && g.name != "clippy" {
		return
	}
	list := g.operands[g.ended:]
	for i := 0; i < len(list); i++ {
		text := list[i].text
		value := text
		if slices.Contains([]string{"-D", "-W", "-A", "-F", "-C", "--cfg", "--cap-lints"}, text) && i+1 < len(list) {
			i++
			value = list[i].text
			text += value
		}
		lint := len(text) > 2 && strings.Contains("DWAF", text[1:2]) && text[0] == '-'
		codegen := strings.HasPrefix(text, "-C") && slices.ContainsFunc([]string{"opt-level", "debuginfo", "target-cpu", "lto", "codegen-units", "panic", "overflow-checks", "debug-assertions", "strip", "instrument-coverage"}, func(n string) bool {
			return strings.HasPrefix(strings.TrimPrefix(value, "-C"), n)
		})
		if !list[i].known() || strings.Contains(value, "/") || !lint && !codegen && !strings.HasPrefix(text, "--cfg") && !strings.HasPrefix(text, "--cap-lints") {
			a.give("option-runs", Ask, list[i].shown(), "the compiler may be told to write elsewhere, or to run a program", "put it into the project's settings")
		}
	}
}

// builds judges the words of tools that build a project and can be told to run another
// program, or to get one.
func (a *analysis) builds(g *args, st *state) {
	if g.root() == "cmake" {
		a.places(g)
	}
	if len(g.operands) == 0 {
		return
	}
	first := g.operands[0]
	switch g.root() {
	case "tox", "meson", "dlv", "lein", "playwright", "cypress":
		if slices.Contains([]string{"exec", "e", "devenv", "subprojects", "wrap", "install", "attach", "codegen", "connect", "core", "dap", "update-in"}, first.text) {
			a.otherCode(first, "it runs the words that follow, or gets code from elsewhere", "let the user run it")
		}
	case "bun", "deno", "zig", "swift", "dart", "flutter":
		a.fromNetwork(g, st)
	}
}

// makeValue judges the value of a variable that make is given: a path, an option for a
// compiler that names one, or a program.
func (a *analysis) makeValue(w word, name, value string, st *state) {
	path := value
	if option, v, ok := strings.Cut(value, "="); strings.HasPrefix(value, "-") {
		for _, part := range []string{"plugin", "fuse-ld", "exec", "wrapper", "specs", "extld", "basetemp", "overlay", "modfile", "Xclang"} {
			if strings.Contains(option, part) {
				a.otherCode(w, "the value may be an option that names a program, or a place that is cleared", "put it into the project's file")
				return
			}
		}
		switch {
		case strings.HasPrefix(value, "-D"):
			return
		case ok:
			path = v
		default:
			path = value[min(2, len(value)):]
		}
	}
	program := slices.Contains(programVariables, strings.TrimPrefix(name, "HOST"))
	switch {
	case program && !strings.Contains(path, "/") && path != "" && !usualProgram(name, path):
		a.otherCode(w, "the value is a program that the recipes run", "put it into the project's file")
	case path != ".." && !strings.Contains(path, "/"):
	case !a.ours(path, st) && !system(filepath.Clean(path)):
		a.otherCode(w, "the value may name a program outside the project", "name what is in it")
	case !system(filepath.Clean(path)) && program:
		a.otherCode(w, "the value is a program that the recipes run", "put it into the project's file")
	}
}

// programVariables are make's usual names of programs.
var programVariables = []string{"AR", "AS", "AWK", "BASH", "CARGO", "CC", "CMAKE", "CP", "CPP", "CXX", "FC", "GCC", "GO", "INSTALL", "JAVA", "JAVAC", "LD", "LEX", "LN", "MKDIR", "MV", "NM", "NODE", "NPM", "OBJCOPY", "OBJDUMP", "PERL", "PIP", "PYTEST", "PYTHON", "PYTHON3", "RANLIB", "RM", "RUBY", "RUSTC", "SED", "STRIP", "SUDO", "TAR", "YACC"}

// usualProgram reports whether a program is one that such a variable is usually set to: that
// of its name, or a compiler or an interpreter, of whatever version and target.
func usualProgram(variable, program string) bool {
	parts := strings.Split(program, "-")
	if last := len(parts) - 1; last > 0 && strings.Trim(parts[last], "0123456789.") == "" {
		parts = parts[:last]
	}
	switch name := strings.TrimRight(parts[len(parts)-1], "0123456789."); name {
	case "cc", "gcc", "clang", "g++", "c++", "clang++", "tcc", "icc", "gfortran", "go", "python", "pypy", "node", "nodejs", "bun", "npm", "pnpm", "yarn", "cargo", "rustc", "javac", "java", "ruby", "perl", "ar", "ld", "lld", "mold", "true", "echo", ":", "gawk", "mawk", "sh", "bash", "dash", "pip", "pytest":
		return true
	default:
		return name == strings.ToLower(strings.TrimPrefix(variable, "HOST"))
	}
}

// buildWrapper judges the words of gradle and mvn, and of gradlew and mvnw, which projects have
// for them: what has them take settings, programs or plugins from elsewhere.
func (a *analysis) buildWrapper(argv []word) {
	maven := false
	switch filepath.Base(argv[0].text) {
	case "mvn", "mvnw", "mvnw.cmd":
		maven = true
	case "gradle", "gradlew", "gradlew.bat":
	default:
		return
	}
	names := []string{"-I", "--init-script", "-b", "--build-file", "-p", "--project-dir", "-c", "--settings-file", "-g", "--gradle-user-home", "--include-build", "--project-cache-dir"}
	fine := []string(nil)
	if maven {
		names = []string{"-f", "--file", "-s", "--settings", "-gs", "--global-settings", "-t", "--toolchains", "-gt", "--global-toolchains", "-l", "--log-file", "-ep", "--encrypt-password", "-emp", "--encrypt-master-password"}
		fine = []string{"-fae", "-ff", "-fn", "-fos"}
	}
	for _, w := range argv[1:] {
		name, _, _ := strings.Cut(w.text, "=")
		property, defines := strings.CutPrefix(name, "-D")
		// Both take an option's value glued to its letter, and Maven a long name cut short.
		named := slices.ContainsFunc(names, func(n string) bool {
			if strings.HasPrefix(n, "--") {
				return name == n || maven && len(name) > 3 && strings.HasPrefix(n, name)
			}
			return strings.HasPrefix(name, n) && !strings.HasPrefix(name, "--") && !slices.Contains(fine, name)
		})
		switch {
		case !w.known() && w.origin != numbers && w.origin != fewWords:
			a.otherCode(w, "what it is told is only known when it runs", "write it out")
		case named, defines && slices.ContainsFunc([]string{"exec.", "org.gradle.", "java.", "jdk.", "maven.ext", "maven.repo", "maven.compiler.exec", "jvm", "argLine", "altDeploy", "settings", "file"}, func(p string) bool { return strings.HasPrefix(property, p) }):
			a.otherCode(w, "it names settings, code or a program beside the project's", "put it into the project's file")
		case maven && !defines && strings.Count(w.text, ":") > 1:
			a.otherCode(w, "it may get a plugin of that name from another machine, and runs it", "name a plugin in the project's file, and a phase here")
		}
	}
}
