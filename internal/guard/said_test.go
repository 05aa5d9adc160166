package guard

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"reprise/internal/guard/filter"
	"reprise/internal/guard/names"
)

// question is something that is asked of the guard or of a part of it, in words
// that can stand in a line; answer is all that it says.
type question struct{ about, text string }

// line is the question as it stands in testdata/questions.txt.
func (q question) line() string {
	text := strconv.Quote(q.text)
	return q.about + " " + strings.ReplaceAll(text[1:len(text)-1], `\"`, `"`)
}

// asked is where questions are put: a project with all kinds of places in it, and a
// world with a memory directory.
type asked struct {
	project
	world
	short  *strings.Replacer
	others map[string]asked // projects with something in them, by what
	make   func() project
}

// newAsked makes both, with links, repositories and settings beside what corpora
// suppose.
func newAsked(t testing.TB) asked {
	t.Helper()
	p := newProject(t)
	for path, text := range map[string]string{
		"bare/HEAD": "ref: refs/heads/main\n", "bare/config": "[core]\nbare = true\n", "bare/objects/x": "", "bare/refs/x": "",
		"tree/.git": "gitdir: ../store/worktrees/t\n", "store/worktrees/t/commondir": "../..\n", "store/worktrees/t/HEAD": "ref: refs/heads/main\n", "store/config": "[core]\nfsmonitor = ./x\n",
		"far/.git": "gitdir: " + p.dir + "/apart\n", "apart/HEAD": "ref: refs/heads/feature\n", "apart/config.worktree": "[core]\nfsmonitor = ./x\n",
		"detached/.git/HEAD": "0123456789012345678901234567890123456789\n", "feature/.git/HEAD": "ref: refs/heads/feature\n", "headless/.git/x": "", "stray/.git": "nothing\n", "stray/x": "",
		"../../outside/ws/.git": "gitdir: " + p.dir + "/.git/worktrees/ws\n", ".git/worktrees/ws/commondir": "../..\n", "../../outside/ws/f": "", "../../outside/ws2/.git": "gitdir: ../../work/project/.git/worktrees/ws\n", "../../outside/lost/.git": "gitdir: ../nothing\n", "../../outside/odd/.git": "x\n", "../../outside/own/.git/config": "", "in/.git": "gitdir: " + p.dir + "/.git/worktrees/ws\n",
		"included": "[core]\nfsmonitor = ./x\n", "hooked/.git/HEAD": "ref: refs/heads/feature\n", "hooked/.git/config": "[core]\nhooksPath = ../.husky\n", "deep/a/b": "", "own/x": "", "dash/-x": "", "s.env": "", "lock": "", "two words": "",
	} {
		path = filepath.Join(p.dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"inner": "sub", "sub/up": "..", "loop": "loop", "tosettings": ".claude/settings.json", "tosecret": ".env", "nowhere": "../outside/none", "deep/far": "../../../outside", "deep/home": p.home} {
		if err := os.Symlink(target, filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t)
	return asked{p, w, strings.NewReplacer(p.dir, "PROJECT", p.outside, "OUTSIDE", p.home, "HOME", filepath.Dir(p.outside), "ROOT", w.mem, "MEM", w.work, "WORK", w.home, "HOMEDIR", w.root, "WORLD"), map[string]asked{}, func() project { return linked(t, nil) }}
}

// with is a project of its own with what is named in it: NAME, NAME=TEXT or
// NAME->WHERE a link leads, divided by semicolons.
func (p asked) with(what string) asked {
	if q, ok := p.others[what]; ok {
		return q
	}
	q := asked{project: p.make(), world: p.world}
	q.short = strings.NewReplacer(q.dir, "PROJECT", q.outside, "OUTSIDE", q.project.home, "HOME", filepath.Dir(q.outside), "ROOT")
	for _, one := range strings.Split(what, ";") {
		name, text, _ := strings.Cut(one, "=")
		name, target, link := strings.Cut(name, "->")
		name = filepath.Join(q.dir, name)
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if link {
			err = errors.Join(err, os.Symlink(strings.ReplaceAll(target, "OUT", q.outside), name))
		} else {
			err = errors.Join(err, os.WriteFile(name, []byte(text), 0o644))
		}
		if err != nil {
			panic(err)
		}
	}
	p.others[what] = q
	return q
}

// under are the rules by which commands are judged beside the usual ones.
func (p asked) under(name string) *Rules {
	r := p.rules()
	switch name {
	case "free": // what a user may let
		r.Writes, r.ProjectCode, r.MCP, r.Hosts, r.Own, r.Branches = true, true, true, []string{"example.org", "*.example.net"}, []string{p.dir + "/own"}, []string{"next", "rel-*"}
	case "env":
		r.Env = func(n string) string {
			return map[string]string{"CDPATH": "/x", "TMPDIR": "/tmp/x", "FOO": "x", "n": "1"}[n]
		}
	case "homeless":
		r.Home, r.Env = "", nil
	case "placeless":
		r.Roots = nil
	case "ruled":
		for _, shape := range []string{"allow make ...", "ask make x", "deny make x y", "allow git log *", "allow frobnicate", "deny curl * http*x", "allow r*m -rf sub", "deny fr*b*z", "allow mcp__ok__*", "deny mcp__no__*", "ask Frob"} {
			d, s, _ := strings.Cut(shape, " ")
			r.List = append(r.List, Rule{Decision: Decision(d), Shape: s, From: "here"})
		}
		r.List[2].Why = "not that"
	case "explained":
		r.Explain, r.Writes = true, true
		r.List = []Rule{{Decision: Allow, Shape: "frobnicate", From: "here"}}
	case "loose":
		for _, n := range BuiltIn() {
			r.Loose = append(r.Loose, n.Name)
		}
	case "unattended":
		r.Unattended = true
	}
	return r
}

// said is all of a verdict: every finding with its rule and word, so that a rule
// which another one stands in for is missed all the same.
func (p asked) said(v Verdict) string {
	var b strings.Builder
	b.WriteString(string(v.Decision))
	if v.Let {
		b.WriteString(" (let)")
	}
	for _, part := range v.Parts {
		fmt.Fprintf(&b, " | %s %s %q %s; %s", part.Decision, part.Rule, part.Word, part.Reason, part.Instead)
		if part.From != "" {
			b.WriteString(" from " + part.From)
		}
	}
	if len(v.Parts) == 0 && v.Reason != "" {
		b.WriteString(" | " + v.Reason)
	}
	return p.short.Replace(b.String())
}

// answer asks.
func (q question) answer(p asked) string {
	fields := strings.Split(q.text, "\t")
	switch q.about {
	case "command":
		return p.said(p.rules().Command(q.text, p.dir))
	case "long": // NUMBER, TEXT, and a command in which % stands for the text that often
		n, err := strconv.Atoi(fields[0])
		if err != nil {
			return err.Error()
		}
		return p.said(p.rules().Command(strings.ReplaceAll(fields[2], "%", strings.Repeat(fields[1], n)), p.dir))
	case "free", "env", "homeless", "placeless", "ruled", "explained", "loose":
		return p.said(p.under(q.about).Command(q.text, p.dir))
	case "with", "free-with": // WHAT, COMMAND
		o := p.with(fields[0])
		return o.said(o.under(strings.TrimSuffix(q.about, "-with")).Command(fields[1], o.dir))
	case "tool-with": // WHAT, KIND, NAME, and texts by name
		o := p.with(fields[0])
		return o.said(o.rules().Judge(toolCall{kind: fields[1], name: fields[2], texts: fields[3:]}.call(o.dir)))
	case "in": // DIRECTORY, COMMAND
		return p.said(p.rules().Command(fields[1], filepath.Join(p.dir, fields[0])))
	case "workspace", "odd-workspace": // as a session that was started in a worktree, or in what is said to be one
		dir := filepath.Join(p.outside, "ws")
		if q.about == "odd-workspace" {
			dir = filepath.Join(p.outside, fields[0])
			fields = fields[1:]
		}
		r := p.rules()
		r.Writes, r.Roots = true, append(r.Roots, p.outside+"/own", p.outside+"/ws/sub", p.project.home)
		in := r.In(dir)
		return p.short.Replace(strings.Join(append(in.Roots, in.Workspace, Gone(dir), p.said(in.Command(fields[0], dir))), "; "))
	case "workspace-tool":
		in := p.rules().In(p.outside + "/ws")
		return p.said(in.Judge(toolCall{kind: fields[0], name: fields[1], texts: fields[2:]}.call(p.outside + "/ws")))
	case "nowhere-tool": // where the directory is not known
		return p.said(p.rules().Judge(toolCall{kind: fields[0], name: fields[1], texts: fields[2:]}.call("")))
	case "nowhere":
		return p.said(p.rules().Command(q.text, ""))
	case "git": // SETTINGS, COMMAND
		file := filepath.Join(p.dir, ".git", "config")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(fields[0], ";;", "\n")), 0o644); err != nil {
			return err.Error()
		}
		out := p.said(p.rules().Command(fields[1], p.dir))
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			return err.Error()
		}
		return out
	case "closed", "readable": // COMMAND, as a run that may not read memory, or not change it
		return p.said(Memory(p.policy(q.about == "readable"), bash(p.fill(q.text))))
	case "closed-tool", "readable-tool": // NAME, INPUT
		return p.said(Memory(p.policy(q.about == "readable-tool"), ToolCall{Name: fields[0], Input: []byte(p.fill(fields[1]))}))
	case "tool", "free-tool", "ruled-tool", "unattended-tool", "homeless-tool": // KIND, NAME, and texts by name
		r := p.under(strings.TrimSuffix(q.about, "-tool"))
		return p.said(r.Judge(toolCall{kind: fields[0], name: fields[1], texts: fields[2:]}.call(p.dir)))
	case "sed":
		what, file := filter.Sed(q.text)
		return fmt.Sprintf("%s %q", what, file)
	case "awk":
		what, file := filter.Awk(q.text)
		return fmt.Sprintf("%s %q", what, file)
	case "jq":
		return fmt.Sprint(filter.Query(q.text))
	case "path":
		bad, what := names.Protected(q.text)
		return fmt.Sprintf("%v %q, holds %v, secret %q", bad, what, names.Holds(q.text), names.Secret(q.text))
	case "variable":
		return fmt.Sprintf("%d, secret %v", names.Variable(q.text), names.SecretVariable(q.text))
	}
	return "?"
}

// readQuestions are the lines of a file: what is asked about, and the text with the
// escapes of Go.
func readQuestions(t testing.TB, file string) (out []question) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		about, text, _ := strings.Cut(l, " ")
		text, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
		if err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		out = append(out, question{about, text})
	}
	return out
}

// questions are the lines of testdata/questions.txt, the commands of the corpora,
// the calls of tools, and those that concern a memory directory.
func questions(t testing.TB) []question {
	t.Helper()
	out := readQuestions(t, filepath.Join("testdata", "questions.txt"))
	for _, c := range append(readCorpus(t, "bypasses.jsonl"), hard(t)...) {
		out = append(out, question{"command", c.Command})
	}
	for _, c := range toolCalls() {
		text := strings.Join(append([]string{c.kind, c.name}, c.texts...), "\t")
		out = append(out, question{"tool", text}, question{"free-tool", text})
		if c.kind == "mcp" || c.kind == "other" {
			out = append(out, question{"unattended-tool", text})
		}
	}
	for _, list := range [][]string{reaches, harmless} {
		for _, c := range list {
			out = append(out, question{"closed", c}, question{"readable", c})
		}
	}
	for _, c := range slices.Sorted(maps.Keys(revisions)) {
		out = append(out, question{"command", c})
	}
	for _, c := range patches {
		out = append(out, question{"command", c}, question{"free", c}, question{"closed", c}, question{"readable", c})
	}
	for _, c := range slices.Concat(toldOtherwise, toldPlainly) {
		out = append(out, question{"free", c})
	}
	for _, c := range slices.Concat(actsOnNames, onlyShowsNames) {
		out = append(out, question{"readable", c})
	}
	return out
}

// What the guard says, to the word: testdata/said.txt. A decision may be right for
// another reason than the one that is meant, which then nobody would miss.
func TestSaid(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("where the file system folds case, names are said otherwise")
	}
	p := newAsked(t)
	var b strings.Builder
	for _, q := range questions(t) {
		fmt.Fprintf(&b, "%s %q\n\t%s\n", q.about, q.text, q.answer(p))
	}
	isRecorded(t, "said.txt", b.String())
}

// isRecorded compares a text with what a file of testdata has, or writes it there (-update).
func isRecorded(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.Split(string(data), "\n"), strings.Split(text, "\n")
	if len(want) != len(got) {
		t.Errorf("%d lines in %s, %d are said; if that is meant: go test ./internal/guard -run %s -update", len(want), file, len(got), t.Name())
	}
	for i, shown := 0, 0; i < min(len(want), len(got)) && shown < 10; i++ {
		if want[i] != got[i] {
			t.Errorf("%s:%d:\n%s, now\n%s", file, i+1, want[i], got[i])
			shown++
		}
	}
}
