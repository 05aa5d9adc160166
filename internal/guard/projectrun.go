package guard

import (
	"path/filepath"
	"slices"
	"strings"
)

// ownRun judges programs that run the project's own code by a file or by its tests,
// where that is plainly all that they do: every word is known, and everything that
// is named lies in the work. It reports whether that was so; else the table speaks.
func (a *analysis) ownRun(argv []word, st *state) bool {
	plain := func(w word) bool { return w.known() && !w.made && !w.glob && !w.split && !w.named }
	tests := argv[0].text == "pytest" || argv[0].text == "py.test"
	if tests && (slices.ContainsFunc(argv, func(w word) bool { return !plain(w) }) || !a.ours(".", st) || !a.pytestWords(argv[1:], st)) {
		a.give("project-code", Ask, argv[0].shown(), "it runs tests, and not plainly those of the project alone", "name files of the project and usual options, or let the user run it")
		return false
	}
	switch argv[0].text {
	case "pytest", "py.test", "node", "nodejs", "python", "python2", "python3", "perl", "ruby", "php", "coverage":
	default:
		return false
	}
	if len(argv) < 2 && !tests || slices.ContainsFunc(argv, func(w word) bool { return !plain(w) }) || !a.ours(".", st) {
		return false
	}
	words := argv[1:]
	switch argv[0].text { // the words of pytest are seen to above
	case "node", "nodejs":
		if words[0].text == "--test" {
			if !a.nodeTestWords(words[1:], st) {
				return false
			}
		} else if !a.ownFile(words[0].text, st, ".js", ".mjs", ".cjs", ".ts") {
			return false
		}
	case "php":
		if !a.ownFile(words[0].text, st, ".php") && !(filepath.Base(words[0].text) == "artisan" && a.ours(words[0].text, st)) {
			return false
		}
		a.publishes(filepath.Base(words[0].text), words[1:])
	case "coverage":
		if words[0].text != "run" {
			return false
		}
		for words = words[1:]; len(words) > 0 && coverageFlag(words[0].text); words = words[1:] {
		}
		if len(words) == 0 {
			return false
		}
		a.nested(append([]word{{text: "python3", src: argv[0].src}}, words...), st)
		return true
	case "perl", "ruby":
		for len(words) > 0 && slices.Contains([]string{"-c", "-w", "-cw", "-wc"}, words[0].text) {
			words = words[1:]
		}
		if len(words) == 0 || !a.ownFile(words[0].text, st, ".pl", ".pm", ".t", ".rb") {
			return false
		}
	case "python", "python2", "python3":
		for len(words) > 0 && slices.Contains([]string{"-u", "-B", "-b", "-bb", "-E", "-s", "-S", "-I", "-O", "-OO", "-q", "-v", "-d"}, words[0].text) {
			words = words[1:]
		}
		switch {
		case len(words) == 0:
			return false
		case len(words) > 1 && words[0].text == "-m" && words[1].text == "unittest":
			if !a.unittestWords(words[2:], st) {
				return false
			}
		case len(words) > 1 && words[0].text == "-m" && words[1].text == "pytest":
			if !a.pytestWords(words[2:], st) {
				return false
			}
		case len(words) > 2 && words[0].text == "-m" && words[1].text == "py_compile":
			if slices.ContainsFunc(words[2:], func(w word) bool { return !a.ownFile(w.text, st, ".py") }) {
				return false
			}
		case len(words) > 1 && words[0].text == "-m":
			return a.ownModule(words[1:], st)
		case !a.ownFile(words[0].text, st, ".py"):
			return false
		default:
			a.publishes(filepath.Base(words[0].text), words[1:])
		}
	}
	a.wordsOf(argv[1:], st)
	a.handed(argv[1:], st)
	a.projectCode(argv[0], "it runs the project's code")
	return true
}

// ours reports whether a path lies in the work, wherever the command may be.
func (a *analysis) ours(path string, st *state) bool {
	bases := a.bases(path, st)
	for _, base := range bases {
		if a.root(a.physical(base, path)) == "" {
			return false
		}
	}
	return len(bases) > 0
}

func (a *analysis) ownFile(path string, st *state, endings ...string) bool {
	return path != "" && path[0] != '-' && slices.Contains(endings, filepath.Ext(path)) && a.ours(path, st)
}

// pytestWords are words of pytest that choose tests and say what is printed. What
// loads plugins and settings, writes reports or clears directories is none of them,
// nor is a file that holds further words.
func (a *analysis) pytestWords(words []word, st *state) bool {
	return a.testWords(words, st, func(w string) bool {
		name, _, given := strings.Cut(w, "=")
		if given {
			return slices.Contains([]string{"--tb", "--maxfail", "--durations", "--color", "--verbosity", "--show-capture", "--capture", "--cov", "--cov-fail-under", "--timeout", "--deselect", "--ignore", "--ignore-glob", "--numprocesses", "--dist", "--reruns", "--asyncio-mode", "--import-mode", "--log-level", "--log-cli-level"}, name) ||
				name == "--cov-report" && strings.HasPrefix(w, "--cov-report=term")
		}
		return strings.Trim(w, "qvxsl") == "-" && w != "-" || slices.Contains([]string{
			"-ra", "-rA", "-rf", "-rs", "--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--sw", "--stepwise", "--exitfirst", "--quiet", "--verbose",
			"--co", "--collect-only", "--no-header", "--no-summary", "--showlocals", "--disable-warnings", "--full-trace", "--setup-show", "--cov", "--no-cov", "--cov-branch", "--cov-append", "--strict-markers", "--strict-config", "--no-cacheprovider", "--cache-clear", "--runxfail", "--random-order",
		}, w)
	}, []string{"-k", "-m", "--maxfail", "--tb", "--durations", "-n", "-W", "--deselect"}, nil)
}

// coverageFlag reports whether a word is an option of coverage run that names no file of
// settings.
func coverageFlag(w string) bool {
	name, _, given := strings.Cut(w, "=")
	if given {
		return slices.Contains([]string{"--source", "--include", "--omit"}, name)
	}
	return slices.Contains([]string{"--branch", "-p", "--parallel-mode", "-a", "--append"}, w)
}

// nodeTestWords are words of node's own test runner.
func (a *analysis) nodeTestWords(words []word, st *state) bool {
	return a.testWords(words, st, func(w string) bool {
		name, value, given := strings.Cut(w, "=")
		if given {
			return slices.Contains([]string{"--test-name-pattern", "--test-skip-pattern", "--test-concurrency", "--test-timeout", "--test-shard"}, name) ||
				name == "--test-reporter" && slices.Contains([]string{"spec", "tap", "dot", "junit", "lcov"}, value)
		}
		return slices.Contains([]string{"--test-only", "--experimental-test-coverage", "--experimental-strip-types", "--test-force-exit", "--enable-source-maps"}, w)
	}, []string{"--test-name-pattern"}, nil)
}

// unittestWords are words of Python's unittest.
func (a *analysis) unittestWords(words []word, st *state) bool {
	dirs := []string(nil)
	if len(words) > 0 && words[0].text == "discover" {
		dirs = []string{"-s", "-t", "--start-directory", "--top-level-directory"}
		words = words[1:]
	}
	texts := []string{"-k"}
	if dirs != nil {
		texts = append(texts, "-p", "--pattern")
	}
	return a.testWords(words, st, func(w string) bool {
		return strings.Trim(w, "vqfbc") == "-" && w != "-" || slices.Contains([]string{"--verbose", "--quiet", "--failfast", "--buffer", "--catch", "--locals"}, w)
	}, texts, dirs)
}

// testWords reports whether words are flags, options with a text, options with a
// directory of the work, and tests in the work.
func (a *analysis) testWords(words []word, st *state, flag func(string) bool, texts, dirs []string) bool {
	for i := 0; i < len(words); i++ {
		w := words[i].text
		switch {
		case w == "" || w[0] == '@':
			return false
		case w[0] != '-':
			file, _, _ := strings.Cut(w, "::")
			if !a.ours(file, st) {
				return false
			}
		case slices.Contains(texts, w) || slices.Contains(dirs, w):
			if i++; i == len(words) || strings.HasPrefix(words[i].text, "-") || slices.Contains(dirs, w) && !a.ours(words[i].text, st) {
				return false
			}
		case !flag(w):
			return false
		}
	}
	return true
}
