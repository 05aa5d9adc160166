package guard

import (
	"path/filepath"
	"slices"
	"strings"
)

// parses reports whether a program that runs code is only asked to look at it, or to
// calculate; what it reads for that is judged.
func (a *analysis) parses(argv []word, g *args, st *state) bool {
	if slices.ContainsFunc(argv, func(w word) bool { return !w.known() || w.glob || w.split }) {
		return false
	}
	switch g.name {
	case "bc":
		return a.calculates(g, st)
	case "sqlite3":
		return a.asksDatabase(g, st)
	case "node", "nodejs":
		return a.checked(argv, st, "--check", "-c")
	case "php":
		return a.checked(argv, st, "-l", "--syntax-check")
	case "python", "python3":
		if len(argv) < 3 || argv[1].text != "-m" {
			return false
		}
		switch argv[2].text {
		case "json.tool":
			return a.formatsJSON(argv[3:], st)
		case "pip":
			return a.pipAsModule(argv, st)
		}
	}
	return false
}

// checked reports whether the words are one of these options and a file.
func (a *analysis) checked(argv []word, st *state, options ...string) bool {
	if len(argv) != 3 || !slices.Contains(options, argv[1].text) || argv[2].text == "" || argv[2].text[0] == '-' {
		return false
	}
	a.path(argv[2], use{read: true}, st)
	return true
}

// calculates reports whether bc gets a text that is known, and in which nothing could
// be a command: some bc give a line after ! to a shell.
func (a *analysis) calculates(g *args, st *state) bool {
	for _, o := range g.options {
		if o.opt == nil || !slices.Contains([]string{"-l", "--mathlib", "-q", "--quiet", "-s", "--standard"}, o.opt.Name) {
			return false
		}
	}
	return len(g.operands) == 0 && (st.in.sum || st.in.fixed && !strings.Contains(st.in.text, "!") && !loopsForever(st.in.text))
}

// formatsJSON reports whether Python's own json.tool only prints: with -m the current
// directory comes first where it looks for modules, and a file there could stand in
// for one of its own.
func (a *analysis) formatsJSON(words []word, st *state) bool {
	var file *word
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w.text == "--indent" && i+1 < len(words):
			i++
		case slices.Contains([]string{"--sort-keys", "--no-ensure-ascii", "--json-lines", "--tab", "--no-indent", "--compact", "-h", "--help"}, w.text):
		case file == nil && w.text != "" && w.text[0] != '-':
			file = &words[i]
		default:
			return false
		}
	}
	for _, dir := range st.cwds {
		if slices.ContainsFunc(a.names(dir), func(name string) bool { return a.pythonOwn(dir, name) }) {
			return false
		}
	}
	kind := st.in.endless
	if file != nil {
		kind = endlessFile(file.text)
		a.path(*file, use{read: true}, st)
	}
	a.fills(kind, "json.tool")
	return len(st.cwds) > 0
}

// pipAsModule judges pip that is started as a module, as pip itself: where it is no more
// than that. With -m the current directory comes first where Python looks for modules,
// and pip tries for many that it may lack, so that no module may lie there but for
// those whose names say that they are the project's own.
func (a *analysis) pipAsModule(argv []word, st *state) bool {
	for _, dir := range st.cwds {
		for _, name := range a.names(dir) {
			switch module, ending, file := strings.Cut(name, "."); {
			case slices.Contains([]string{"setup", "conftest", "manage", "noxfile", "tests", "test"}, module):
			case file && slices.Contains([]string{"py", "pyc", "so", "pyd"}, ending[strings.LastIndexByte(ending, '.')+1:]):
				return false
			case !file && slices.ContainsFunc(a.names(filepath.Join(dir, name)), func(n string) bool { return strings.HasPrefix(n, "__init__.") }):
				return false
			}
		}
	}
	if len(st.cwds) == 0 {
		return false
	}
	a.nested(append([]word{{text: "pip", src: argv[2].src}}, argv[3:]...), st)
	return true
}

// pythonOwn reports whether Python would take a name in a directory for a module of
// its own library.
func (a *analysis) pythonOwn(dir, name string) bool {
	module, ending, file := strings.Cut(name, ".")
	if !strings.HasPrefix(module, "_") && !strings.Contains(pythonModules, " "+module+" ") {
		return false
	}
	if file {
		ending = ending[strings.LastIndexByte(ending, '.')+1:]
		return slices.Contains([]string{"py", "pyc", "so", "pyd"}, ending)
	}
	return slices.ContainsFunc(a.names(filepath.Join(dir, name)), func(n string) bool { return strings.HasPrefix(n, "__init__.") })
}

// pythonModules are the modules of Python's own library, with the newest ones; those
// whose names begin with _ count in any case.
const pythonModules = " abc aifc annotationlib argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect builtins bz2 cProfile calendar cgi cgitb " +
	"chunk cmath cmd code codecs codeop collections colorsys compileall compression concurrent configparser contextlib contextvars copy copyreg crypt csv " +
	"ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput " +
	"fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr " +
	"imp importlib inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap " +
	"modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle " +
	"pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue " +
	"quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr " +
	"socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys " +
	"sysconfig syslog tabnanny tarfile telnetlib tempfile templatelib termios textwrap threading time timeit tkinter token tokenize tomllib trace traceback " +
	"tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref " +
	"xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo "

// manual reports whether a command of git is only asked for its own page: git NAME
// --help is git help NAME.
func (a *analysis) manual(g *args, st *state) bool {
	if g.outer == nil || g.outer.name != "git" || len(g.outer.options) > 0 || len(g.operands) > 0 || len(g.options) != 1 || g.options[0].w.text != "--help" {
		return false
	}
	a.repository("help", word{text: g.name}, []word{{text: g.name}}, st)
	return true
}
