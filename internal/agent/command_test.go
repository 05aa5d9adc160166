package agent

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/guard"
	"reprise/internal/proc"
)

func testTask(t *testing.T) Task {
	t.Helper()
	root := guard.Resolve(t.TempDir())
	for _, d := range []string{"run", "work", "memory", "more"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return Task{
		RunID: "run-abcdefghij", SessionID: "0b6c1d1e-4f00-4a10-9a55-2f1f3a7f0001", RunDir: filepath.Join(root, "run"),
		Prompt: "do it", SystemPrompt: "be brief", WorkDir: filepath.Join(root, "work"), MemoryDir: filepath.Join(root, "memory"),
		Program: filepath.Join(root, "claude"), Self: filepath.Join(root, "it's reprise"), Timeout: 5 * time.Minute,
		Env: []string{"PATH=/bin", "HOME=" + root, "KEEP=me"},
	}
}

func TestRunIDVarIsTheOneThatProcLooksFor(t *testing.T) {
	if RunIDVar != proc.RunIDVar {
		t.Errorf("%s is not %s", RunIDVar, proc.RunIDVar)
	}
}

func TestClaudeCommand(t *testing.T) {
	task := testTask(t)
	task.Model, task.MaxTurns, task.MaxBudgetUSD = "--odd", 7, 1.5
	task.AddDirs = []string{filepath.Join(filepath.Dir(task.WorkDir), "more")}
	c, err := claude{}.Command(task)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"-p", "--output-format=stream-json", "--verbose", "--session-id=" + task.SessionID,
		"--system-prompt-file=" + filepath.Join(task.RunDir, "system.md"), "--settings=" + filepath.Join(task.RunDir, "settings.json"),
		"--setting-sources=user", "--strict-mcp-config", "--model=--odd", "--max-turns=7", "--max-budget-usd=1.5",
		"--add-dir=" + task.WorkDir, "--add-dir=" + task.AddDirs[0],
	}
	if !slices.Equal(c.Args, want) {
		t.Errorf("args %q\nwant %q", c.Args, want)
	}
	if c.Path != task.Program || c.Dir != task.WorkDir || string(c.Files["system.md"]) != "be brief" {
		t.Errorf("%+v", c)
	}
	for _, arg := range c.Args {
		if strings.Contains(arg, task.Prompt) || strings.Contains(arg, task.SystemPrompt) {
			t.Errorf("%q carries a prompt", arg)
		}
	}
}

func TestClaudeSettings(t *testing.T) {
	type settings struct {
		DisableAllHooks *bool
		Env             map[string]string
		Permissions     struct{ Deny []string }
		Hooks           map[string][]struct {
			Matcher string
			Hooks   []struct {
				Type, Command string
				Timeout       int
			}
		}
	}
	read := func(task Task) (settings, guard.Policy) {
		t.Helper()
		c, err := claude{}.Command(task)
		if err != nil {
			t.Fatal(err)
		}
		var s settings
		var p guard.Policy
		if err := errors.Join(json.Unmarshal(c.Files["settings.json"], &s), json.Unmarshal(c.Files["policy.json"], &p)); err != nil {
			t.Fatal(err)
		}
		return s, p
	}
	task := testTask(t)
	task.ProtectDirs = []string{"/secret/[x]"}
	task.GuardHook = "/bin/reprise-hook claude PreToolUse"
	task.Env = append(task.Env, "AI_MEMORY_PATH="+task.MemoryDir, "API_KEY=hush")
	s, p := read(task)
	for _, rule := range []string{"Read(/" + task.MemoryDir + "/**)", "Edit(/" + task.MemoryDir + "/**)", "Write(/" + task.MemoryDir + "/**)", "Edit(/" + task.RunDir + "/**)", `Read(//secret/\[x\]/**)`} {
		if !slices.Contains(s.Permissions.Deny, rule) {
			t.Errorf("no rule %s in %q", rule, s.Permissions.Deny)
		}
	}
	if slices.Contains(s.Permissions.Deny, "Read(/"+task.RunDir+"/**)") {
		t.Error("a run may not read its own task")
	}
	if s.DisableAllHooks == nil || *s.DisableAllHooks {
		t.Error("the user's disableAllHooks would switch the guard off")
	}
	if s.Env["CLAUDE_CODE_SIMPLE"] != "0" || s.Env["CLAUDE_CODE_SAFE_MODE"] != "0" {
		t.Errorf("the user's variables would switch the guard off: %v", s.Env)
	}
	h := s.Hooks["PreToolUse"]
	wantCmd := `'` + strings.ReplaceAll(task.Self, `'`, `'\''`) + `' protect '` + filepath.Join(task.RunDir, "policy.json") + `'`
	if len(h) != 1 || h[0].Matcher != "*" || len(h[0].Hooks) != 2 || h[0].Hooks[1].Command != task.GuardHook || h[0].Hooks[1].Timeout < 30 || h[0].Hooks[0].Command != wantCmd || h[0].Hooks[0].Timeout < 30 {
		t.Errorf("hooks %+v, want %s", h, wantCmd)
	}
	if !slices.Equal(p.DenyAll, []string{"/secret/[x]", task.MemoryDir}) || !slices.Equal(p.DenyWrite, []string{task.RunDir}) || p.WorkDir != task.WorkDir {
		t.Errorf("policy %+v", p)
	}
	if p.Vars["AI_MEMORY_PATH"] != task.MemoryDir || p.Vars["API_KEY"] != "" {
		t.Errorf("variables in the policy: %v", p.Vars)
	}

	task.AllowMemoryRead, task.GuardHook = true, ""
	s, p = read(task)
	if h := s.Hooks["PreToolUse"]; len(h) != 1 || len(h[0].Hooks) != 1 {
		t.Errorf("hooks without a guard: %+v", h)
	}
	if slices.Contains(s.Permissions.Deny, "Read(/"+task.MemoryDir+"/**)") || !slices.Contains(s.Permissions.Deny, "Edit(/"+task.MemoryDir+"/**)") {
		t.Errorf("rules for a readable memory: %q", s.Permissions.Deny)
	}
	if !slices.Equal(p.DenyWrite, []string{task.MemoryDir, task.RunDir}) {
		t.Errorf("policy %+v", p)
	}
	c, err := claude{}.Command(task)
	if err != nil || !slices.Contains(c.Args, "--add-dir="+task.MemoryDir) {
		t.Errorf("readable memory is not added: %q %v", c.Args, err)
	}
}

func TestMemoryBehindALinkIsNamedBothWays(t *testing.T) {
	task := testTask(t)
	link := filepath.Join(filepath.Dir(task.WorkDir), "link")
	if err := os.Symlink(task.MemoryDir, link); err != nil {
		t.Fatal(err)
	}
	real := task.MemoryDir
	task.MemoryDir = link
	rules := claudeDeny(task.Policy())
	for _, d := range []string{link, real} {
		if !slices.Contains(rules, "Read(/"+d+"/**)") {
			t.Errorf("%s is not covered by %q", d, rules)
		}
	}
}

func TestRulePath(t *testing.T) {
	for in, want := range map[string]string{"/a/b": "//a/b", "/a/b/": "//a/b", "/a*b/c?d": `//a\*b/c\?d`, "/a/!x#y": `//a/\!x\#y`} {
		if got := rulePath(in); got != want {
			t.Errorf("rulePath(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	task := testTask(t)
	task.Env = append(task.Env,
		"CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=parent", "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_CODE_CHILD_SESSION=1", "CLAUDE_CODE_MESSAGING_TOKEN=t", "CLAUDE_CODE_SESSION_ATTENDED=1", "CLAUDE_PID=1", "CLAUDE_PROJECT_DIR=/x", "AI_AGENT=1",
		"CLAUDE_CODE_USE_BEDROCK=1", "CLAUDE_CODE_OAUTH_TOKEN=secret", "CLAUDE_CONFIG_DIR=/c", "ANTHROPIC_API_KEY=k", "REPRISE_RUN_ID=run-outer00000", "REPRISE_DEPTH=1", "REPRISE_MODEL=stale", "REPRISE_ADD_DIRS=/stale", "GIT_DIR=/x/.git", "GIT_WORK_TREE=/x", "GIT_INDEX_FILE=/x/i", "broken", "NUL=\x00")
	for _, kind := range []string{KindClaude, KindGeneric, KindScript} {
		a, err := For(kind)
		if err != nil {
			t.Fatal(err)
		}
		c, err := a.Command(task)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, kv := range c.Env {
			name, v, _ := strings.Cut(kv, "=")
			if _, twice := got[name]; twice {
				t.Errorf("%s: %s is set twice", kind, name)
			}
			got[name] = v
		}
		for name, want := range map[string]string{"KEEP": "me", "CLAUDE_CODE_USE_BEDROCK": "1", "CLAUDE_CODE_OAUTH_TOKEN": "secret", "CLAUDE_CONFIG_DIR": "/c", "ANTHROPIC_API_KEY": "k",
			"REPRISE_RUN_ID": task.RunID, "REPRISE_PARENT_RUN_ID": "run-outer00000", "REPRISE_DEPTH": "2"} {
			if got[name] != want {
				t.Errorf("%s: %s is %q, want %q", kind, name, got[name], want)
			}
		}
		for _, name := range []string{"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_MESSAGING_TOKEN", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_PID", "CLAUDE_PROJECT_DIR", "AI_AGENT", "REPRISE_MODEL", "REPRISE_ADD_DIRS", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "broken", "NUL"} {
			if v, ok := got[name]; ok {
				t.Errorf("%s: %s=%s was inherited", kind, name, v)
			}
		}
	}
}

func TestRetriesAreBoundedByTheTimeout(t *testing.T) {
	for _, tt := range []struct {
		timeout time.Duration
		own     string
		want    int
	}{{0, "", 6}, {time.Second, "", 1}, {5 * time.Second, "", 1}, {30 * time.Second, "", 3}, {5 * time.Minute, "", 7}, {time.Hour, "", 10}, {time.Hour, "2", 2}, {5 * time.Second, "9", 1}, {time.Hour, "0", 0}, {time.Hour, "x", 10}, {time.Hour, "-1", 10}} {
		task := Task{Timeout: tt.timeout}
		if tt.own != "" {
			task.Env = []string{"CLAUDE_CODE_MAX_RETRIES=" + tt.own}
		}
		if got := claudeRetries(task); got != tt.want {
			t.Errorf("timeout %s, own %q: %d, want %d", tt.timeout, tt.own, got, tt.want)
		}
	}
}

func TestGenericAndScriptCommands(t *testing.T) {
	task := testTask(t)
	task.Model, task.AllowMemoryRead = "small", true
	more := filepath.Join(filepath.Dir(task.WorkDir), "more")
	task.AddDirs = []string{more}
	c, err := generic{}.Command(task)
	if err != nil {
		t.Fatal(err)
	}
	if c.Path != task.Program || len(c.Args) != 0 || string(c.Files["system.md"]) != "be brief" {
		t.Errorf("%+v", c)
	}
	for name, want := range map[string]string{"REPRISE_MODEL": "small", "REPRISE_ADD_DIRS": more + string(os.PathListSeparator) + task.MemoryDir, "REPRISE_SYSTEM_PROMPT_FILE": filepath.Join(task.RunDir, "system.md")} {
		if got := proc.EnvValue(c.Env, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	task.ScriptFile = "/x/steps.yaml"
	if c, err = (script{}).Command(task); err != nil {
		t.Fatal(err)
	}
	if c.Path != task.Self || !slices.Equal(c.Args, []string{"script-agent", "--file=/x/steps.yaml"}) {
		t.Errorf("%s %q", c.Path, c.Args)
	}
}

func TestBadTasks(t *testing.T) {
	memory := testTask(t).MemoryDir
	tests := []struct {
		name   string
		change func(*Task)
		want   string
	}{
		{"empty task", func(t *Task) { t.Prompt = " \n\t" }, "task"},
		{"NUL in task", func(t *Task) { t.Prompt = "a\x00b" }, "NUL"},
		{"task not UTF-8", func(t *Task) { t.Prompt = "a\xff" }, "UTF-8"},
		{"NUL in system prompt", func(t *Task) { t.SystemPrompt = "\x00" }, "system prompt"},
		{"NUL in model", func(t *Task) { t.Model = "a\x00" }, "model"},
		{"line break in model", func(t *Task) { t.Model = "a\n" }, "model"},
		{"relative working directory", func(t *Task) { t.WorkDir = "work" }, "relative"},
		{"no working directory", func(t *Task) { t.WorkDir = "" }, "working directory"},
		{"relative additional directory", func(t *Task) { t.AddDirs = []string{"../x"} }, "relative"},
		{"empty additional directory", func(t *Task) { t.AddDirs = []string{""} }, "additional directory"},
		{"NUL in additional directory", func(t *Task) { t.AddDirs = []string{"/a\x00"} }, "NUL"},
		{"relative run directory", func(t *Task) { t.RunDir = "run" }, "run directory"},
		{"relative script", func(t *Task) { t.ScriptFile = "x.yaml" }, "script file"},
		{"working in closed memory", func(t *Task) { t.MemoryDir, t.WorkDir = memory, memory }, "allow_memory_read"},
		{"closed memory handed out", func(t *Task) { t.MemoryDir, t.AddDirs = memory, []string{filepath.Join(memory, "blocks")} }, "allow_memory_read"},
		{"no run id", func(t *Task) { t.RunID = "" }, "run id"},
		{"path as run id", func(t *Task) { t.RunID = "../x" }, "run id"},
		{"negative turns", func(t *Task) { t.MaxTurns = -1 }, "negative"},
		{"too deep", func(t *Task) { t.Env = []string{"REPRISE_DEPTH=3"} }, "deep"},
		{"depth is nonsense", func(t *Task) { t.Env = []string{"REPRISE_DEPTH=many"} }, "REPRISE_DEPTH"},
	}
	for _, tt := range tests {
		for _, kind := range []string{KindClaude, KindGeneric, KindScript} {
			task := testTask(t)
			tt.change(&task)
			a, err := For(kind)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.Command(task); !errors.Is(err, ErrBadTask) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, %s: %v", kind, tt.name, err)
			}
		}
	}
	for _, id := range []string{"", "x", "0b6c1d1e4f004a109a552f1f3a7f0001", "{0b6c1d1e-4f00-4a10-9a55-2f1f3a7f0001}", "0b6c1d1e-4f00-4a10-9a55-2f1f3a7f000g"} {
		task := testTask(t)
		task.SessionID = id
		if _, err := (claude{}).Command(task); !errors.Is(err, ErrBadTask) {
			t.Errorf("session id %q: %v", id, err)
		}
	}
	task := testTask(t)
	task.Self = ""
	if _, err := (claude{}).Command(task); !errors.Is(err, ErrBadTask) {
		t.Errorf("a run without a guard: %v", err)
	}
	if _, err := For("codex9"); !errors.Is(err, ErrUnknownClient) {
		t.Errorf("unknown client: %v", err)
	}
}

func TestSystemPrompt(t *testing.T) {
	got := SystemPrompt("/m/memory", "Answer in French.")
	pre, mem, own := strings.Index(got, "You were started"), strings.Index(got, "/m/memory"), strings.Index(got, "\n\nAnswer in French.")
	if pre != 0 || mem < pre || own < mem {
		t.Errorf("order of the parts: %d %d %d", pre, mem, own)
	}
	if got := SystemPrompt("", "  "); got != Preamble {
		t.Errorf("nothing to add, and yet: %q", got[len(Preamble):])
	}
}

// A bare question: nothing of the user's is loaded, and who cannot be started
// like that is refused.
func TestIsolated(t *testing.T) {
	task := func(env ...string) Task {
		return Task{
			RunID: "run-aaaaaaaaaa", SessionID: "11111111-1111-4111-8111-111111111111", RunDir: "/r", WorkDir: "/r/empty", Prompt: "p", SystemPrompt: "s",
			Program: "/bin/client", Self: "/bin/reprise", Model: "m", MaxTurns: 3, MaxBudgetUSD: 0.25,
			Env: append([]string{"HOME=/h"}, env...), Isolated: &Isolation{Schema: []byte(`{"type":"object"}`)},
		}
	}
	for _, c := range []struct {
		kind  string
		env   []string
		args  []string
		vars  []string
		files []string
		want  error
	}{
		{KindClaude, []string{"REPRISE_DEPTH=3", "CLAUDE_CODE_MAX_RETRIES=9"}, // the deepest run may have a question, too
			[]string{"--setting-sources=", `--settings={"disableAllHooks":true}`, "--strict-mcp-config", "--tools=", "--disable-slash-commands", "--no-session-persistence", `--json-schema={"type":"object"}`, "--max-turns=3", "--max-budget-usd=0.25", "--model=m"},
			[]string{"CLAUDE_CODE_MAX_RETRIES=1", "REPRISE_RUN_ID=run-aaaaaaaaaa"}, []string{"system.md"}, nil},
		{KindGemini, []string{"GEMINI_API_KEY=k", "GEMINI_CLI_SYSTEM_SETTINGS_PATH=/evil"}, []string{"-e", "none", "-m", "m"},
			[]string{"GEMINI_CLI_HOME=" + filepath.Join("/r", "home"), "GEMINI_CLI_SYSTEM_SETTINGS_PATH=" + filepath.Join("/r", "home", "none.json")}, []string{"system.md", filepath.Join("home", ".gemini", "settings.json")}, nil},
		{KindGemini, nil, nil, nil, nil, ErrIsolation},
		{KindCopilot, []string{"GH_TOKEN=k"}, []string{"--available-tools=none", "--no-custom-instructions", "--model", "m"}, []string{"COPILOT_HOME=" + filepath.Join("/r", "home")}, []string{"prompt.md"}, nil},
		{KindCopilot, nil, nil, nil, nil, ErrIsolation},
		{KindCodex, []string{"OPENAI_API_KEY=k"}, nil, nil, nil, ErrIsolation},
		{KindGeneric, nil, nil, nil, nil, ErrIsolation},
		{KindScript, nil, []string{"script-agent"}, nil, nil, nil},
	} {
		a, err := For(c.kind)
		if err != nil {
			t.Fatal(err)
		}
		cmd, err := a.Command(task(c.env...))
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s %q: %v", c.kind, c.env, err)
			continue
		}
		for _, arg := range c.args {
			if !slices.Contains(cmd.Args, arg) {
				t.Errorf("%s: no %q in %q", c.kind, arg, cmd.Args)
			}
		}
		for _, kv := range c.vars {
			name, _, _ := strings.Cut(kv, "=")
			if got := proc.EnvValue(cmd.Env, name); name+"="+got != kv {
				t.Errorf("%s: %s is %q", c.kind, kv, got)
			}
		}
		for _, f := range c.files {
			if _, ok := cmd.Files[f]; !ok {
				t.Errorf("%s: no file %s", c.kind, f)
			}
		}
	}
	for _, kind := range []string{KindCodex, KindGemini, KindCopilot} {
		a, _ := For(kind)
		open := task("GEMINI_API_KEY=k", "GH_TOKEN=k")
		open.Isolated = nil
		if _, err := a.Command(open); !errors.Is(err, ErrBadTask) {
			t.Errorf("%s as a worker: %v", kind, err)
		}
	}
}

// Lines as Gemini CLI 0.61 and Copilot CLI 1.0 wrote them, shortened, and what
// becomes of them when something is missing.
func TestBareStream(t *testing.T) {
	gemini := []string{
		`{"type":"init","timestamp":"2026-11-28T11:00:59.393Z","session_id":"g1","model":"gemini-2.5-pro"}`,
		`{"type":"message","role":"user","content":"The question"}`,
		`{"type":"message","role":"assistant","content":"{\"a\"","delta":true}`, `{"type":"message","role":"assistant","content":":1}","delta":true}`,
		`{"type":"result","status":"success","stats":{"total_tokens":120,"input_tokens":100,"output_tokens":20}}`,
	}
	copilot := []string{
		`{"type":"user.message","data":{"content":"The question"}}`, `{"type":"assistant.message","data":{"content":"{\"a\":1}","toolRequests":[]}}`,
		`{"type":"result","sessionId":"c1","exitCode":0,"usage":{"premiumRequests":0}}`,
	}
	for _, c := range []struct {
		name   string
		lines  []string
		exit   Exit
		ok     bool
		text   string
		reason string
	}{
		{"gemini", gemini, Exit{}, true, `{"a":1}`, ""}, {"copilot", copilot, Exit{}, true, `{"a":1}`, ""},
		{"no result", gemini[:4], Exit{Code: 1, Stderr: "quota"}, false, `{"a":1}`, "ended without a result (exit code 1): quota"},
		{"no answer", append(copilot[:1:1], copilot[2]), Exit{}, false, "", "the agent ended without an answer"},
		{"exit", copilot, Exit{Code: 2}, false, `{"a":1}`, "reported success, but the process ended with exit code 2"},
		{"error", []string{`{"type":"result","status":"error","error":{"type":"x","message":"429"}}`}, Exit{Code: 1}, false, "", "the agent ended with an error: 429"},
		{"words", []string{"not logged in"}, Exit{Code: 1}, false, "", "ended without a result (exit code 1): not logged in"},
		{"cut", []string{`{"type":"assistant.message","data":{"content":"aaaa`}, Exit{Code: 1}, false, "", `ended without a result (exit code 1): {"type":"assistant.message","data":{"content":"aaaa`},
		{"timed out", gemini[:2], Exit{TimedOut: true}, false, "", "stopped at its time limit"}, {"cancelled", nil, Exit{Cancelled: true}, false, "", "cancelled"},
		{"after its result", copilot, Exit{AfterResult: true, Signal: "SIGTERM"}, true, `{"a":1}`, ""},
	} {
		kind := KindGemini
		if strings.Contains(strings.Join(c.lines, ""), `"c1"`) {
			kind = KindCopilot
		}
		a, err := For(kind)
		if err != nil {
			t.Fatal(err)
		}
		s := a.NewStream()
		for _, l := range c.lines {
			s.Line([]byte(l), false)
		}
		if r := s.Finish(c.exit); r.OK != c.ok || r.Text != c.text || r.Reason != c.reason {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

// A form that the last answer is to have reaches the clients that can hold their model to
// one, when a session is gone on with, too.
func TestWorkSchema(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		kind, resume, flag string
		file               bool
	}{
		{KindClaude, "", `--json-schema={"type":"object"}`, false}, {KindClaude, "6b8f5a0e-0000-4000-8000-000000000000", `--json-schema={"type":"object"}`, false},
		{KindCodex, "", "--output-schema=" + filepath.Join(dir, "schema.json"), true}, {KindCodex, "abc", "--output-schema=" + filepath.Join(dir, "schema.json"), true},
		{KindGemini, "", "", false},
	} {
		a, _ := For(c.kind)
		cmd, err := a.Command(Task{
			Prompt: "x", RunID: "run-1", RunDir: dir, WorkDir: dir, Program: "/bin/true", Self: "/bin/true", SessionID: "6b8f5a0e-0000-4000-8000-000000000000",
			Env: []string{"HOME=" + dir, "CODEX_API_KEY=k", "GEMINI_API_KEY=k"}, Work: &Work{Schema: []byte(`{"type":"object"}`), Resume: c.resume},
		})
		if err != nil {
			t.Errorf("%s: %v", c.kind, err)
			continue
		}
		if c.flag != "" && !slices.Contains(cmd.Args, c.flag) {
			t.Errorf("%s: no %s in %q", c.kind, c.flag, cmd.Args)
		}
		if got := string(cmd.Files["schema.json"]); (got == `{"type":"object"}`) != c.file {
			t.Errorf("%s: the file of the schema holds %q", c.kind, got)
		}
	}
}
