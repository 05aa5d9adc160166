package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"reprise/internal/agent"
	"reprise/internal/proc"
)

// The test binary is the player too: as `script-agent` in a real process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "script-agent" {
		dir, err := os.Getwd()
		if err != nil {
			panic(err)
		}
		self, err := os.Executable()
		if err != nil {
			panic(err)
		}
		os.Exit(Play(IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ(), Dir: dir, Self: self}, os.Args[2:]))
	}
	os.Exit(m.Run())
}

// played is one run of a script in a process of its own.
type played struct {
	dir    string
	proc   *proc.Process
	run    string
	stdout string
	stderr string
}

func start(t *testing.T, task, yaml string, env ...string) *played {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &played{dir: t.TempDir(), run: "run-" + strings.ToLower(strings.NewReplacer("/", "", "_", "").Replace(t.Name()))}
	p.stdout, p.stderr = filepath.Join(p.dir, "out.jsonl"), filepath.Join(p.dir, "err.txt")
	work := filepath.Join(p.dir, "work")
	args := []string{"script-agent"}
	write := func(name, text string) string {
		path := filepath.Join(p.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	if yaml != "" {
		args = append(args, "--file="+write("steps.yaml", yaml))
	}
	in, err := os.Open(write("task", task))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(p.stdout)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	errOut, err := os.Create(p.stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer errOut.Close()
	all := append([]string{"PATH=" + os.Getenv("PATH"), "REPRISE_RUN_ID=" + p.run, "REPRISE_SYSTEM_PROMPT_FILE=" + write("system.md", "be brief")}, env...)
	if p.proc, err = proc.Start(proc.Cmd{Path: self, Args: args, Env: all, Dir: work, Stdin: in, Stdout: out, Stderr: errOut, NewSession: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := proc.StopTree(t.Context(), p.proc.ID(), p.run, 0); err != nil && !errors.Is(err, t.Context().Err()) {
			t.Log(err)
		}
	})
	return p
}

// end waits and judges, as a supervisor does.
func (p *played) end(t *testing.T) (agent.Result, agent.Progress, proc.Exit) {
	t.Helper()
	exit, err := p.proc.Wait()
	if err != nil {
		t.Fatal(err)
	}
	res, pr := p.judge(t, exit)
	return res, pr, exit
}

func (p *played) judge(t *testing.T, exit proc.Exit) (agent.Result, agent.Progress) {
	t.Helper()
	a, err := agent.For(agent.KindScript)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(p.stdout)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := a.NewStream()
	lines := proc.NewLineReader(f, 1<<20)
	for {
		line, cut, _, err := lines.Next()
		if err == nil || len(line) > 0 {
			s.Line(line, cut)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	stderr, err := os.ReadFile(p.stderr)
	if err != nil {
		t.Fatal(err)
	}
	return s.Finish(agent.Exit{Code: exit.Code, Signal: exit.Signal, Stderr: string(stderr)}), s.Progress()
}

func TestScripts(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "core.md")
	if err := os.WriteFile(secret, []byte("remembered"), 0o644); err != nil {
		t.Fatal(err)
	}
	unix := runtime.GOOS != "windows"
	tests := []struct {
		name, yaml string
		env        []string
		ok         bool
		code       int
		text       string // part of the answer
		reason     string // part of it
		check      func(*testing.T, *played, agent.Result, agent.Progress)
	}{
		{name: "default", ok: true, text: "written", check: func(t *testing.T, p *played, _ agent.Result, _ agent.Progress) {
			data, err := os.ReadFile(filepath.Join(p.dir, "work", "reprise-script-"+p.run+".txt"))
			if err != nil || !strings.Contains(string(data), "the task") {
				t.Errorf("artefact: %q %v", data, err)
			}
		}},
		{name: "no steps", yaml: "steps: []\n", ok: true, text: "done"},
		{name: "say", yaml: "v: 1\nsteps:\n  - say: one\n  - say: 'two {{.Task}} {{.RunID}}'\n", ok: true, text: "two the task run-", check: func(t *testing.T, _ *played, r agent.Result, p agent.Progress) {
			if p.Messages != 2 || r.NumTurns != 2 {
				t.Errorf("%d messages, %d turns", p.Messages, r.NumTurns)
			}
		}},
		{name: "echo", yaml: "steps: [{echo: [task, cwd, system_prompt, env, args]}]", env: []string{"API_KEY=hush", "REPRISE_MODEL=tiny"}, ok: true, text: "system_prompt: be brief", check: func(t *testing.T, p *played, r agent.Result, _ agent.Progress) {
			for _, want := range []string{"task: the task", "/work", "API_KEY", "model=tiny"} {
				if !strings.Contains(filepath.ToSlash(r.Text), want) {
					t.Errorf("%q lacks %q", r.Text, want)
				}
			}
			if strings.Contains(r.Text, "hush") {
				t.Error("a value of the environment was said")
			}
		}},
		{name: "write and read", yaml: "steps:\n  - write: {path: a/b.txt, content: 'x {{.RunID}}'}\n  - write: {path: a/b.txt, content: ' y', append: true}\n  - read: a/b.txt\n", ok: true, text: " y", check: func(t *testing.T, p *played, r agent.Result, _ agent.Progress) {
			// A worktree is committed with all that is in it.
			if list, err := os.ReadDir(filepath.Join(p.dir, "work", "a")); err != nil || len(list) != 1 {
				t.Errorf("beside what was written: %v, %v", list, err)
			}
			if r.Tools["Write"] != 2 || r.Tools["Read"] != 1 {
				t.Errorf("tools %v", r.Tools)
			}
		}},
		{name: "read memory", yaml: "steps: [{read: '{{.MemoryDir}}/core.md'}]", env: []string{"REPRISE_MEMORY_DIR=" + filepath.Dir(secret)}, ok: true, text: "read: remembered"},
		{name: "read fails", yaml: "steps: [{read: nowhere.md}]", ok: true, text: "read failed"},
		{name: "write fails", yaml: "steps: [{write: {path: '{{.WorkDir}}', content: x}}]", ok: true, text: "write failed"},
		{name: "denied", yaml: "steps: [{denied: {tool: Bash, input: rm x}}, {say: gave up}]", ok: true, text: "gave up", reason: "1 tool call was denied: Bash"},
		{name: "tools", yaml: "steps: [{tool: {name: Grep, count: 5}}, {say: x}]", ok: true, check: func(t *testing.T, _ *played, r agent.Result, _ agent.Progress) {
			if r.Tools["Grep"] != 5 {
				t.Errorf("tools %v", r.Tools)
			}
		}},
		{name: "exit", yaml: "steps: [{say: half}, {stderr: oh no}, {exit: 3}]", code: 3, text: "oh no", reason: "exit code 3"},
		{name: "api error", yaml: "steps: [{api_error: {status: 529, message: busy}}]", code: 1, text: "529", reason: "status 529", check: func(t *testing.T, _ *played, r agent.Result, _ agent.Progress) {
			if !r.IsError || r.APIStatus != 529 || r.TerminalReason != "api_error" {
				t.Errorf("%+v", r)
			}
		}},
		{name: "retries", yaml: "steps: [{api_retry: {count: 3, status: 429, delay: 1ms}}, {say: at last}]", ok: true, text: "at last", check: func(t *testing.T, _ *played, r agent.Result, _ agent.Progress) {
			if r.Retries != 3 {
				t.Errorf("%d retries", r.Retries)
			}
		}},
		{name: "bad result", yaml: "steps: [{result: {text: '', turns: 0}}]", reason: "nothing was sent"},
		{name: "lying result", yaml: "steps: [{result: {text: fine, is_error: true}}]", reason: "error"},
		{name: "good result then exit 1", yaml: "steps: [{result: {text: fine}}, {exit: 1}]", code: 1, text: "fine", reason: "reported success"},
		{name: "raw", yaml: "steps: [{raw: \"no json\\n\"}, {say: x}]", ok: true, text: "x"},
		{name: "flood", yaml: "steps: [{flood: {bytes: 3MB}}, {flood: {bytes: 1MB, to: stderr, form: text}}, {say: x}]", ok: true, text: "x", check: func(t *testing.T, p *played, _ agent.Result, _ agent.Progress) {
			for path, want := range map[string]int64{p.stdout: 3e6, p.stderr: 1e6} {
				if st, err := os.Stat(path); err != nil || st.Size() < want || st.Size() > want+100_000 {
					t.Errorf("%s: %v %v", path, st, err)
				}
			}
		}},
		{name: "long line", yaml: "steps: [{long_line: {bytes: 60MB}}, {say: after it}]", ok: true, text: "after it"},
		{name: "long result", yaml: "steps: [{long_line: {bytes: 5MB, form: result}}]", ok: true, text: "long long"},
		{name: "wait for nothing", yaml: "steps: [{wait_for: {file: none, timeout: 20ms}}]", code: 1, reason: "did not appear"},
		{name: "when", yaml: "steps: [{when: other}, {exit: 9}, {when: '^the'}, {say: mine}]", ok: true, text: "mine"},
	}
	if unix {
		tests = append(tests, []struct {
			name, yaml string
			env        []string
			ok         bool
			code       int
			text       string
			reason     string
			check      func(*testing.T, *played, agent.Result, agent.Progress)
		}{
			{name: "shell", yaml: "steps: [{shell: {command: 'pwd; echo $REPRISE_RUN_ID'}}]", ok: true, text: "run-"},
			{name: "shell fails", yaml: "steps: [{shell: {command: 'echo no >&2; exit 7'}}]", ok: true, text: "Exit code 7\nno"},
			{name: "partial", yaml: "steps: [{say: half}, {partial: '{\"type\":\"assi'}]", code: 137, text: "half", reason: "SIGKILL"},
			{name: "signal", yaml: "steps: [{signal: SIGTERM}]", code: 143, reason: "SIGTERM"},
		}...)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, "the task", tt.yaml, tt.env...)
			r, pr, exit := p.end(t)
			if r.OK != tt.ok || exit.Code != tt.code || !strings.Contains(r.Text, tt.text) || !strings.Contains(r.Reason, tt.reason) {
				t.Errorf("ok %v, exit %+v, reason %q, text %.200q", r.OK, exit, r.Reason, r.Text)
			}
			if exit.MaxRSS > 200<<20 {
				t.Errorf("used %d MiB", exit.MaxRSS>>20)
			}
			if tt.check != nil {
				tt.check(t, p, r, pr)
			}
		})
	}
}

// until waits for a condition of a process that runs.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

func contains(path, text string) func() bool {
	return func() bool {
		data, err := os.ReadFile(path)
		return err == nil && bytes.Contains(data, []byte(text))
	}
}

func TestBarrier(t *testing.T) {
	p := start(t, "x", "steps: [{say: ready}, {wait_for: {file: go, timeout: 60s}}, {say: went}]")
	until(t, "ready", contains(p.stdout, "ready"))
	if err := os.WriteFile(filepath.Join(p.dir, "work", "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r, _, _ := p.end(t); r.Text != "went" {
		t.Errorf("%+v", r)
	}
}

func TestHangAfterResult(t *testing.T) {
	p := start(t, "x", "steps: [{say: fine}, {result: {}}, {hang: true}]")
	until(t, "a result", contains(p.stdout, `"type":"result"`))
	if _, pr := p.judge(t, proc.Exit{}); !pr.ResultSeen || !p.proc.ID().Alive() {
		t.Errorf("result seen: %v, alive: %v", pr.ResultSeen, p.proc.ID().Alive())
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct{ yaml, want string }{
		{"", "s.yaml:1:1: the script is empty"},
		{"steps: 5\n", "s.yaml:1:8: steps is a list"},
		{"v: 2\nsteps: []\n", "s.yaml:1:4: v is"},
		{"speps: []\n", "s.yaml:1:1: unknown key \"speps\""},
		{"v: 1\n", "the key steps is missing"},
		{"- say: x\n", "one mapping"},
		{"steps:\n  - say: x\n  - sey: y\n", "s.yaml:3:5: unknown step \"sey\""},
		{"steps:\n  - say: x\n    delay: 1s\n", "s.yaml:2:5: a step is a mapping with one key"},
		{"steps:\n  - hello\n", "s.yaml:2:5: a step is"},
		{"steps:\n  - delay: fast\n", "s.yaml:2:12"},
		{"steps:\n  - delay: -1s\n", "between 0 and 24h"},
		{"steps:\n  - write: {path: a, contents: b}\n", "s.yaml:2:"},
		{"steps:\n  - write: {content: b}\n", "path is missing"},
		{"steps:\n  - flood: {bytes: many}\n", "no size"},
		{"steps:\n  - flood: {bytes: 20GB}\n", "at most 10GB"},
		{"steps:\n  - flood: {bytes: 1, to: disk}\n", "to is stdout or stderr"},
		{"steps:\n  - exit: 300\n", "between 0 and 255"},
		{"steps:\n  - exit: [1]\n", "s.yaml:2:"},
		{"steps:\n  - signal: SIGSMILE\n", "unknown signal"},
		{"steps:\n  - ignore: [SIGTERM, X]\n", "unknown signal"},
		{"steps:\n  - echo: [secrets]\n", "cannot echo"},
		{"steps:\n  - fork: {escape: moon}\n", "escape is"},
		{"steps:\n  - when: '('\n", "when"},
		{"steps:\n  - say: [x\n", "s.yaml:"},
		{"steps:\n  - say: x\n  - say: x\nsteps: []\n", "s.yaml:"},
	}
	for _, tt := range tests {
		_, err := Parse("s.yaml", []byte(tt.yaml))
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %s", tt.yaml, err, tt.want)
			continue
		}
		if e.Line == 0 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: no place, or several lines: %v", tt.yaml, err)
		}
	}
}

func TestBadFileAndArguments(t *testing.T) {
	p := start(t, "x", "steps: [{sey: x}]")
	if r, _, exit := p.end(t); exit.Code != exitUsage || !strings.Contains(r.Reason, `unknown step "sey"`) {
		t.Errorf("exit %+v, %q", exit, r.Reason)
	}
	if data, err := os.ReadFile(p.stdout); err != nil || len(data) != 0 {
		t.Errorf("something was played: %q", data)
	}
	for _, args := range [][]string{{"--nope"}, {"--file"}, {"--file="}, {"x"}, {"--linger={"}} {
		if _, _, err := parseArgs(args); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
	if f, _, err := parseArgs([]string{"--file", "a b"}); err != nil || f != "a b" {
		t.Errorf("%q %v", f, err)
	}
}

// Every kind of step is described where the documentation points to.
func TestEveryStepIsDocumented(t *testing.T) {
	src, err := os.ReadFile("scripted.go")
	if err != nil {
		t.Fatal(err)
	}
	for name := range kinds() {
		if !bytes.Contains(src, fmt.Appendf(nil, "//	  - %s:", name)) {
			t.Errorf("step %s is not in the package comment", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("steps: [{say: x}, {flood: {bytes: 1kB}}]")
	f.Add("v: 1\nsteps:\n  - write: {path: a, content: b, append: true}\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := Parse("s", []byte(text))
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%T", err)
		}
	})
}

func TestLingerArgument(t *testing.T) {
	b, err := json.Marshal(linger{MS: 5, Again: true, Ignore: []string{"SIGTERM"}})
	if err != nil {
		t.Fatal(err)
	}
	_, l, err := parseArgs([]string{"--linger=" + string(b)})
	if err != nil || l == nil || l.MS != 5 || !l.Again || len(l.Ignore) != 1 {
		t.Errorf("%+v %v", l, err)
	}
}
