package sign

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"reprise/internal/clip"
)

// Signature is what a failure is known by again.
type Signature struct {
	// Key is the same for the same failure with other paths, numbers, ids,
	// times and quoted values: "sig:<family>:<12 hex>".
	Key string
	// Exact is Key with the quoted values kept: a missing module of the same
	// name, not just any missing module.
	Exact string
	// Family is the kind of program that speaks: go, node, npm, tsc, jest,
	// eslint, python, rust, gcc, make, git, docker, java, notfound, permission,
	// network, system, tool or other.
	Family string
	Line   string // what was compared, normalised
	Shown  string // the output's own words, at most 300 bytes
}

// Empty reports that there was nothing to sign.
func (s Signature) Empty() bool { return s.Key == "" }

// Lines of an output that are looked at: what went wrong stands at the
// beginning or at the end.
const (
	headLines = 300
	tailLines = 500
	// MaxShown is how long Signature.Shown may be, in bytes.
	MaxShown = 300
)

// Of works out the signature of a failed call: of tool (our own word for its
// kind) acting on target, which ended with that output and exit code (nil =
// not said).
func Of(tool, target, output string, exit *int) Signature {
	program, _, _ := strings.Cut(target, " ")
	lines := Lines(output)
	best := pick(lines)
	var s Signature
	if best.weight == 0 {
		said := "without a word"
		if exit != nil {
			said = "exit " + strconv.Itoa(*exit)
		} else if code := ExitCode(output); code != "" {
			said = "exit " + code
		}
		s = Signature{Family: "other", Line: target + ": " + said, Shown: said}
		s.Key = sigKey(s.Family, tool, s.Line)
		s.Exact = s.Key + "=" + strings.TrimPrefix(s.Key, "sig:other:")
		return s
	}
	s.Family = best.family
	main, exact := best.general(), best.exact()
	s.Shown = Clip(best.text, MaxShown)
	if detail := detailOf(lines, best); detail != "" {
		main += " / " + Normal(detail, false)
		exact += " / " + Normal(detail, true)
		s.Shown = Clip(best.text+" — "+strings.TrimSpace(detail), MaxShown)
	}
	s.Line = main
	head := tool
	if best.weight < wFamily && tool == "shell" {
		head += " " + program
	}
	s.Key = sigKey(s.Family, head, main)
	s.Exact = s.Key + "=" + Hash(exact)
	return s
}

func sigKey(family, head, line string) string {
	return "sig:" + family + ":" + Hash(head+"\n"+strings.ToLower(line))
}

// Hash is the first 12 hex digits of the SHA-256 of the parts, each of
// which ends by a zero byte.
func Hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// Clip is a text in at most n bytes, without the space around it.
func Clip(s string, n int) string { return clip.Bytes(strings.TrimSpace(s), n) }

// Lines are the lines of an output without terminal commands, blank ones
// left out.
func Lines(s string) []string {
	s = strings.TrimSpace(s)
	s = strings.TrimPrefix(s, "<tool_use_error>")
	s = strings.TrimSuffix(s, "</tool_use_error>")
	var out []string
	for l := range strings.SplitSeq(s, "\n") {
		l = strings.TrimRight(stripTerminal(l), " \t")
		if strings.TrimSpace(l) != "" {
			out = append(out, l)
		}
	}
	if len(out) > headLines+tailLines {
		out = append(out[:headLines:headLines], out[len(out)-tailLines:]...)
	}
	return out
}

// ExitCode is the exit code that an output names in words.
func ExitCode(output string) string {
	for _, lead := range []string{"Exit code ", "exit code ", "Exit Code: ", "exit status ", "exited with code "} {
		if i := strings.Index(output, lead); i >= 0 {
			rest := output[i+len(lead):]
			n := 0
			for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
				n++
			}
			if n > 0 {
				return rest[:n]
			}
		}
	}
	return ""
}

// Weights of a line: how surely it says what went wrong. From wFamily on the
// words alone tell the program; below that the program is part of the
// signature. Of equal lines the first counts from wFirst on, for later errors
// follow from earlier ones, and the last below.
const (
	wSure   = 95
	wFamily = 70
	wFirst  = 70
	wWord   = 40
	wPlain  = 5
)

// found is a line that may say what went wrong.
type found struct {
	weight int
	family string
	text   string // the part that matters
	at     int
	last   bool // of equal ones the last counts: an exception's cause
	// plain is the line to compare where it is not the text's own, as for a
	// command that is not found, which every shell says in another way.
	plain string
}

func (f found) general() string {
	if f.plain != "" {
		return f.plain
	}
	return Normal(f.text, false)
}

func (f found) exact() string {
	if f.plain != "" {
		return f.plain
	}
	return Normal(f.text, true)
}

// pick chooses the line that says best what went wrong.
func pick(lines []string) found {
	var best found
	trace := false
	for i, l := range lines {
		if strings.HasPrefix(strings.TrimSpace(l), "Traceback (most recent call last)") {
			trace = true
		}
		f := classify(l)
		if f.weight == 0 {
			continue
		}
		f.at = i
		if f.family == "exception" {
			f.family = "node"
			if trace || pythonOnly(f.text) || i > 0 && strings.Contains(lines[i-1], ".py") {
				f.family = "python"
			}
		}
		switch {
		case f.weight > best.weight:
			best = f
		case f.weight == best.weight && (f.weight < wFirst || f.last && best.last):
			best = f
		}
	}
	return best
}

// pythonOnly reports an exception that only Python has: its traceback may have
// been cut off.
func pythonOnly(text string) bool {
	name, _, _ := strings.Cut(text, ":")
	switch name {
	case "ModuleNotFoundError", "ImportError", "KeyError", "ValueError", "AttributeError", "NameError", "IndexError", "ZeroDivisionError", "OSError", "FileNotFoundError",
		"PermissionError", "RuntimeError", "NotImplementedError", "IndentationError", "TabError", "UnicodeDecodeError", "UnicodeEncodeError", "RecursionError",
		"ConnectionRefusedError", "TimeoutError", "KeyboardInterrupt", "SystemExit", "StopIteration":
		return true
	}
	return strings.Contains(name, ".") && strings.ToLower(name[:1]) == name[:1] && !strings.HasPrefix(name, "java")
}

// detailOf is the line that says more about the one that was picked: what a
// test said, what a panic was about.
func detailOf(lines []string, f found) string {
	next := func(n int) string {
		if f.at+n < len(lines) {
			return strings.TrimSpace(lines[f.at+n])
		}
		return ""
	}
	switch {
	case strings.HasPrefix(f.text, "--- FAIL:"):
		for i := f.at + 1; i < len(lines) && i < f.at+8; i++ {
			l := strings.TrimSpace(lines[i])
			if strings.HasPrefix(l, "--- FAIL:") || strings.HasPrefix(l, "=== ") {
				continue
			}
			if at := strings.Index(l, "_test.go:"); at >= 0 {
				return l
			}
			break
		}
	case f.family == "rust" && strings.HasPrefix(f.text, "thread ") && strings.HasSuffix(f.text, ":"),
		f.family == "jest", f.family == "java" && strings.HasPrefix(f.text, "* What went wrong"),
		strings.HasPrefix(f.text, "CMake Error"):
		return next(1)
	case f.family == "npm" && strings.HasPrefix(f.text, "code "):
		for i := f.at + 1; i < len(lines) && i < f.at+6; i++ {
			l, ok := npmLine(strings.TrimSpace(lines[i]))
			first, _, _ := strings.Cut(l, " ")
			switch {
			case !ok:
				return ""
			case first == "errno" || first == "syscall" || first == "path" || first == "dest" || l == "":
				continue
			}
			return l
		}
	}
	return ""
}

// npmLine is the rest of a line that npm marks as an error.
func npmLine(l string) (string, bool) {
	for _, lead := range []string{"npm ERR!", "npm error"} {
		if rest, ok := strings.CutPrefix(l, lead); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

// Plain reports that nothing in an output says that something went wrong.
func Plain(output string) bool { return pick(Lines(output)).weight < wWord }

// classify weighs a line.
func classify(line string) found {
	l := strings.TrimSpace(line)
	l = strings.TrimPrefix(l, "Output: ")
	if len(l) > 2000 {
		l = l[:2000]
	}
	if isNoise(l) {
		return found{}
	}
	for _, c := range []func(line, l string) found{commands, goLang, node, python, rust, native, gitDocker, jvm} {
		if f := c(line, l); f.weight > 0 {
			return f
		}
	}
	return general(l)
}

func isNoise(l string) bool {
	for _, lead := range []string{
		"Exit code ", "exit status ", "Exit Code:", "Process Group PGID", "Background PIDs", "Command:", "Directory:", "Signal:", "Stdout:", "Stderr:",
		"<shellId", "<untrusted_context>", "</untrusted_context>", "Error: (none)", "npm ERR! A complete log", "npm error A complete log",
		"npm ERR!     ", "note:", "hint:", "help:", "Note:", "Hint:", "For more information", "Run with `RUST_BACKTRACE", "= note:", "= help:",
		"=== RUN", "=== PAUSE", "=== CONT", "ok  \t", "PASS", "# ", "warning:", "Warning:", "DeprecationWarning", "npm warn", "npm WARN",
		"Traceback (most recent call last)", "goroutine ", "at ", "File \"", "collect2: error", "make: Leaving", "make: Entering", "error: aborting due to",
		"Some errors have detailed explanations", "ヒント:", "注意:", "During handling of the above", "The above exception was",
	} {
		if strings.HasPrefix(l, lead) {
			return true
		}
	}
	if l == "FAIL" || strings.HasPrefix(l, "FAIL\t") || strings.Trim(l, "-=_*~^ │|+─") == "" {
		return true
	}
	return strings.HasPrefix(l, "npm ERR! This is probably not") || strings.HasPrefix(l, "Command exited with code") || strings.HasPrefix(l, "Command failed with exit code")
}

// commands finds what a shell says of a command that is not there or may not
// be run. Every shell says it in its own way; it is one failure.
func commands(_, l string) found {
	low := strings.ToLower(l)
	name := ""
	switch {
	case strings.Contains(low, "command not found: "): // zsh
		name = l[strings.Index(low, "command not found: ")+len("command not found: "):]
	case strings.HasSuffix(low, ": command not found"), strings.HasSuffix(low, ": not found") && strings.Contains(low, "sh:"),
		strings.HasSuffix(l, ": コマンドが見つかりません"), strings.HasSuffix(l, ": コマンドが見つかりません。"):
		parts := strings.Split(l, ":")
		if len(parts) >= 2 {
			name = parts[len(parts)-2]
		}
	case strings.Contains(low, "is not recognized as"):
		name = strings.Trim(strings.SplitN(l, " is not recognized", 2)[0], `'" `)
		if i := strings.LastIndexByte(name, '\''); i >= 0 {
			name = name[i+1:]
		}
	case strings.Contains(low, "unknown command: ") && !strings.HasPrefix(low, "npm"), strings.HasPrefix(low, "spawn ") && strings.HasSuffix(low, " enoent"),
		strings.HasPrefix(low, "error: spawn ") && strings.HasSuffix(low, " enoent"):
		f := strings.Fields(strings.TrimPrefix(l, "Error: "))
		name = f[len(f)-1]
		if strings.HasSuffix(low, " enoent") {
			name = f[1]
		}
	}
	if name = strings.TrimSpace(name); name != "" && len(name) < 80 {
		name = name[strings.LastIndexAny(name, "/\\ ")+1:]
		return found{weight: wSure, family: "notfound", text: l, plain: "command not found: " + name}
	}
	return found{}
}

func goLang(_, l string) found {
	f := found{family: "go", text: l}
	switch {
	case strings.HasPrefix(l, "--- FAIL: "):
		f.weight = 90
	case strings.HasPrefix(l, "panic: ") && !strings.HasPrefix(l, "panic: test timed out"):
		f.weight = 94
	case strings.HasPrefix(l, "panic: test timed out"):
		f.weight, f.text = 94, "panic: test timed out"
	case strings.HasPrefix(l, "go: ") && !strings.HasPrefix(l, "go: downloading") && !strings.HasPrefix(l, "go: finding") && !strings.HasPrefix(l, "go: added") && !strings.HasPrefix(l, "go: upgraded"):
		f.weight = 86
	case strings.HasPrefix(l, "WARNING: DATA RACE"):
		f.weight = 91
	case strings.HasPrefix(l, "fatal error: all goroutines are asleep"):
		f.weight = 94
	default:
		l = strings.TrimPrefix(l, "vet: ")
		if i := strings.Index(l, ".go:"); i > 0 && !strings.Contains(l[:i], " ") {
			if rest, ok := afterPlace(l[i+3:], 2); ok {
				f.weight, f.text = 85, rest
			}
		}
	}
	return f
}

// afterPlace is the text after ":line:column: " (or, for least 1, ":line: ").
func afterPlace(s string, least int) (string, bool) {
	n := 0
	for strings.HasPrefix(s, ":") {
		d := 1
		for d < len(s) && s[d] >= '0' && s[d] <= '9' {
			d++
		}
		if d == 1 {
			break
		}
		s, n = s[d:], n+1
	}
	rest, ok := strings.CutPrefix(s, ":")
	return strings.TrimSpace(rest), ok && n >= least && strings.TrimSpace(rest) != ""
}

func node(line, l string) found {
	if rest, ok := npmLine(l); ok {
		f := found{family: "npm", text: rest, weight: 60}
		switch {
		case strings.HasPrefix(rest, "code ELIFECYCLE"):
			f.weight = 20
		case strings.HasPrefix(rest, "code "):
			f.weight = 82
		case strings.HasPrefix(rest, "Missing script"), strings.HasPrefix(rest, "ERESOLVE"):
			f.weight = 80
		case strings.HasPrefix(rest, "Lifecycle script"), strings.HasPrefix(rest, "command "), rest == "", strings.HasPrefix(rest, "errno"), strings.HasPrefix(rest, "workspace"), strings.HasPrefix(rest, "location"):
			f.weight = 0
		}
		return f
	}
	if i := strings.Index(l, "error TS"); i >= 0 {
		return found{weight: 88, family: "tsc", text: l[i:]}
	}
	if i := strings.Index(l, "ERR_PNPM_"); i >= 0 {
		return found{weight: 84, family: "npm", text: l[i:]}
	}
	if strings.HasPrefix(l, "● ") && strings.Contains(l, "›") {
		return found{weight: 86, family: "jest", text: l}
	}
	if rest, ok := strings.CutPrefix(l, "FAIL "); ok && strings.Contains(rest, " > ") {
		return found{weight: 86, family: "jest", text: rest[strings.Index(rest, " > ")+3:]}
	}
	if f := strings.Fields(l); len(f) > 3 && f[1] == "error" && strings.Contains(f[0], ":") && isDigits(strings.ReplaceAll(f[0], ":", "")) {
		return found{weight: 76, family: "eslint", text: strings.Join(f[2:], " ")}
	}
	if strings.HasPrefix(l, "error Command failed with exit code") {
		return found{weight: 15, family: "npm", text: l}
	}
	if strings.HasPrefix(l, "➤ YN") && strings.Contains(l, "YN0") {
		i := strings.Index(l, ": │ ")
		if i > 0 && !strings.HasPrefix(l, "➤ YN0000") {
			return found{weight: 80, family: "npm", text: l[len("➤ "):]}
		}
	}
	return exception(line, l)
}

// exception finds "NameError: text" and its like; whose it is, the lines
// around it tell.
func exception(_, l string) found {
	l = strings.TrimPrefix(l, "Uncaught ")
	l = strings.TrimPrefix(l, "[")
	if rest, ok := strings.CutPrefix(l, "E   "); ok { // pytest
		l = strings.TrimSpace(rest)
		if f := exception("", l); f.weight > 0 {
			f.family, f.weight, f.last = "python", 83, false
			return f
		}
		return found{}
	}
	name, rest, colon := strings.Cut(l, ":")
	name, _, _ = strings.Cut(name, " [") // TypeError [ERR_X]: …
	if name == "" || len(name) > 80 || strings.ContainsAny(name, " \t/\\\"'(") || !colon && len(l) > 80 {
		return found{}
	}
	short := name[strings.LastIndexByte(name, '.')+1:]
	for _, end := range []string{"Error", "Exception", "KeyboardInterrupt", "SystemExit", "StopIteration"} {
		if strings.HasSuffix(short, end) && short[0] >= 'A' && short[0] <= 'Z' {
			w := 84
			if short == "Error" {
				w = 74 // "Error: …" is anybody's
			}
			if strings.TrimSpace(rest) == "" && colon {
				w -= 20
			}
			if short == "AssertionError" {
				w--
			}
			return found{weight: w, family: "exception", text: l, last: true}
		}
	}
	return found{}
}

func python(_, l string) found {
	f := found{family: "python", text: l}
	switch {
	case strings.HasPrefix(l, "FAILED ") && strings.Contains(l, "::"):
		_, name, _ := strings.Cut(l, "::")
		f.weight, f.text = 88, "FAILED "+name
	case strings.HasPrefix(l, "ERROR ") && strings.Contains(l, ".py"):
		f.weight = 86
	case strings.HasPrefix(l, "error: externally-managed-environment"):
		f.weight = 86
	case strings.HasPrefix(l, "ERROR: Could not find a version"), strings.HasPrefix(l, "ERROR: No matching distribution"), strings.HasPrefix(l, "ERROR: Could not install"):
		f.weight = 84
	case strings.Contains(l, ": No module named "):
		f.weight, f.text = 84, "No module named "+quoted(l[strings.Index(l, ": No module named ")+len(": No module named "):])
	}
	return f
}

func quoted(s string) string { return "'" + strings.Trim(s, `'" .;`) + "'" }

func rust(_, l string) found {
	f := found{family: "rust", text: l}
	switch {
	case strings.HasPrefix(l, "error[E"):
		f.weight = 88
	case strings.HasPrefix(l, "thread '") && strings.Contains(l, "panicked at"):
		f.weight = 90
		if !strings.HasSuffix(l, ":") {
			f.text = l[strings.Index(l, "panicked at"):]
		} else {
			f.text = "thread panicked:"
		}
	case strings.HasPrefix(l, "error: could not compile"), strings.HasPrefix(l, "error: test failed"), strings.HasPrefix(l, "test result: FAILED"):
		f.weight = 12
	case strings.HasPrefix(l, "test ") && strings.HasSuffix(l, "... FAILED"):
		f.weight = 87
	}
	return f
}

func native(_, l string) found {
	for _, mark := range []string{": fatal error: ", ": error: ", ": エラー: ", ": 致命的エラー: "} {
		if i := strings.Index(l, mark); i > 0 {
			if name := l[:i]; strings.Contains(name, ":") || strings.HasSuffix(name, ".java") {
				family := "gcc"
				for _, of := range [][2]string{{".py:", "python"}, {".java:", "java"}, {".go:", "go"}, {".kt:", "java"}} {
					if strings.Contains(name, of[0]) {
						family = of[1]
					}
				}
				return found{weight: 85, family: family, text: strings.TrimPrefix(l[i:], ": ")}
			}
		}
	}
	switch {
	case strings.Contains(l, "undefined reference to "):
		return found{weight: 84, family: "gcc", text: l[strings.Index(l, "undefined reference to "):]}
	case strings.HasPrefix(l, "make") && strings.Contains(l, "*** No rule to make target"):
		return found{weight: 84, family: "make", text: l[strings.Index(l, "*** "):]}
	case strings.HasPrefix(l, "make") && strings.Contains(l, "*** "):
		return found{weight: 10, family: "make", text: l[strings.Index(l, "*** "):]}
	case strings.HasPrefix(l, "CMake Error"):
		return found{weight: 84, family: "make", text: l}
	}
	return found{}
}

func gitDocker(_, l string) found {
	switch {
	case strings.HasPrefix(l, "CONFLICT ("):
		kind, _, _ := strings.Cut(l, ":")
		return found{weight: 88, family: "git", text: kind}
	case strings.HasPrefix(l, "! [") && strings.Contains(l, "rejected"):
		text := l
		if i := strings.LastIndexByte(l, '('); i > 0 {
			text = "! [rejected] " + l[i:]
		}
		return found{weight: 88, family: "git", text: text}
	case strings.HasPrefix(l, "fatal: "), strings.HasPrefix(l, "致命的エラー"):
		return found{weight: 86, family: "git", text: l}
	case strings.HasPrefix(l, "Error response from daemon: "):
		return found{weight: 88, family: "docker", text: l}
	case strings.HasPrefix(l, "docker: Error response from daemon: "):
		return found{weight: 88, family: "docker", text: strings.TrimPrefix(l, "docker: ")}
	case strings.HasPrefix(l, "Cannot connect to the Docker daemon"):
		return found{weight: 90, family: "docker", text: "Cannot connect to the Docker daemon"}
	case strings.HasPrefix(l, "ERROR: failed to solve"), strings.HasPrefix(l, "ERROR: failed to build"):
		return found{weight: 84, family: "docker", text: l}
	}
	return found{}
}

func jvm(_, l string) found {
	f := found{family: "java", text: l}
	switch {
	case strings.HasPrefix(l, "Caused by: "):
		f.weight, f.last = 89, true
	case strings.HasPrefix(l, "Exception in thread "):
		f.weight = 86
		if i := strings.LastIndex(l, "\" "); i > 0 {
			f.text = l[i+2:]
		}
	case strings.HasPrefix(l, "* What went wrong:"):
		f.weight = 87
	case strings.HasPrefix(l, "FAILURE: Build failed"), strings.HasPrefix(l, "[ERROR] ->"), strings.HasPrefix(l, "[ERROR] To see"), strings.HasPrefix(l, "[ERROR] Re-run"), strings.HasPrefix(l, "[ERROR] [Help"), l == "[ERROR]":
		f.weight = 6
	case strings.HasPrefix(l, "[ERROR] "):
		f.weight = 80
	}
	return f
}

// general weighs what is no program's own way of speaking.
func general(l string) found {
	low := strings.ToLower(l)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(low, w) {
				return true
			}
		}
		return false
	}
	l = dropShell(l)
	switch {
	case has("no space left on device", "out of memory", "cannot allocate memory", "too many open files", "disk quota exceeded", "ディスクの空き"):
		return found{weight: 84, family: "system", text: l}
	case has("permission denied", "eacces", "eperm", "operation not permitted", "access is denied", "許可がありません", "権限がありません", "アクセスが拒否"):
		return found{weight: 68, family: "permission", text: l}
	case has("no such file or directory", "enoent", "cannot find the path", "そのようなファイルやディレクトリ", "file does not exist", "file not found"):
		return found{weight: 66, family: "notfound", text: l}
	case has("connection refused", "econnrefused", "could not resolve", "enotfound", "etimedout", "timed out", "connection reset", "network is unreachable", "address already in use", "eaddrinuse", "certificate", "接続が拒否", "タイムアウト"):
		return found{weight: 65, family: "network", text: l}
	case strings.HasPrefix(low, "error: "), strings.HasPrefix(low, "error["), strings.HasPrefix(low, "fatal"):
		return found{weight: 60, family: "other", text: l}
	case has("error", "エラー", "fatal", "exception", "例外", "panic"):
		return found{weight: wWord + 5, family: "other", text: l}
	case has("failed", "failure", "cannot", "can't", "could not", "couldn't", "unable to", "invalid", "not found", "denied", "refused", "unknown", "unexpected",
		"missing", "undefined", "abort", "not allowed", "not supported", "has not been", "no match", "does not exist", "already exists", "mismatch", "expected",
		"失敗", "見つかりません", "存在しません", "できません", "不正", "無効", "不明", "足りません", "必要です"):
		return found{weight: wWord, family: "other", text: l}
	case l == "Killed" || l == "Terminated" || strings.HasPrefix(l, "Segmentation fault"):
		return found{weight: wWord + 10, family: "system", text: l}
	}
	return found{weight: wPlain, family: "other", text: l}
}

// dropShell takes off what a shell puts before the words of the program: its
// own name and the line of the script.
func dropShell(l string) string {
	for _, shell := range []string{"bash: ", "sh: ", "zsh: ", "/bin/sh: ", "/bin/bash: ", "/usr/bin/bash: ", "-bash: ", "zsh:"} {
		rest, ok := strings.CutPrefix(l, shell)
		if !ok {
			continue
		}
		for _, lead := range []string{"line ", "行 ", ""} {
			if r, ok := strings.CutPrefix(rest, lead); ok {
				n := 0
				for n < len(r) && r[n] >= '0' && r[n] <= '9' {
					n++
				}
				if n > 0 && strings.HasPrefix(r[n:], ": ") {
					return r[n+2:]
				}
			}
		}
		return rest
	}
	return l
}
