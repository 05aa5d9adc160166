//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hooked is a user whose client starts hooks.
type hooked struct {
	*home
	data    string // REPRISE_HOME
	program string // reprise-hook
}

func newHooked(t *testing.T) *hooked {
	t.Helper()
	// What the guard says of a call would be events, too; it has tests of its own.
	h := &hooked{home: newHome(t, settings{"guard": map[string]any{"mode": "off"}}), program: program("reprise-hook")}
	h.data = filepath.Join(filepath.Dir(h.dir), "data")
	h.env = append(h.env, "REPRISE_HOME="+h.data)
	return h
}

// payload is what Claude Code sends for an event.
func (h *hooked) payload(event, more string) string {
	return fmt.Sprintf(`{"session_id":"5a13438d","transcript_path":"/t.jsonl","cwd":%q,"hook_event_name":%q%s}`, h.work, event, more)
}

const (
	aTool  = `,"tool_name":"Bash","tool_input":{"command":"go test"},"tool_use_id":"tu1"`
	aFail  = aTool + `,"error":"Exit code 1\nFAIL"`
	aTurn  = `,"prompt":"make it pass"`
	anAsk  = `,"tool_name":"AskUserQuestion","tool_use_id":"tu2","tool_input":{"questions":[{"question":"Which one?","options":[{"label":"A"},{"label":"B"}]},{"question":"When?","options":[]}]}`
	anAnsw = anAsk + `,"tool_response":{"answers":{"Which one?":"B","When?":"now"}}`
)

// hook runs one event through the hook program. Whatever happens, a client must
// see exit code 0, and no output but a whole answer.
func (h *hooked) hook(client, event, payload string) result {
	h.t.Helper()
	return h.start(strings.NewReader(payload), h.program, client, event)
}

func (h *hooked) start(in io.Reader, path string, args ...string) result {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = h.work, h.env, in
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		h.t.Fatalf("%s %q: %v\n%s%s", path, args, err, out.String(), errs.String())
	}
	if out.Len() > 0 && !json.Valid(out.Bytes()) || cmd.ProcessState.ExitCode() != 0 {
		h.t.Errorf("%q: exit code %d, output %q, errors %q: want no opinion", args, cmd.ProcessState.ExitCode(), out.String(), errs.String())
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// ours are the types of events that reprise makes of itself.
var ours = map[string]bool{"recall.served": true, "recall.used": true, "episode.recorded": true, "compaction.finished": true}

// events are the types of a client's events in a log, in their order.
func (h *hooked) events(dir ...string) []string {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(append(append([]string{h.data}, dir...), "events", "*.jsonl")...))
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		for line := range strings.Lines(h.read(f)) {
			var e struct{ Type, Client string }
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				h.t.Fatalf("%s: %v", f, err)
			}
			if e.Client != "" && !ours[e.Type] {
				out = append(out, e.Type)
			}
		}
	}
	return out
}

func (h *hooked) wantEvents(want []string, dir ...string) {
	h.t.Helper()
	if got := h.events(dir...); !slices.Equal(got, want) {
		h.t.Errorf("recorded %q, want %q", got, want)
	}
}

// log is reprise's own log, "" where there is none.
func (h *hooked) log() string {
	data, err := os.ReadFile(filepath.Join(h.data, "state", "log", "reprise.log"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.t.Fatal(err)
	}
	return string(data)
}

func (h *hooked) wantLog(words ...string) {
	h.t.Helper()
	log := h.log()
	for _, w := range words {
		if !strings.Contains(log, w) {
			h.t.Errorf("the log does not say %q:\n%s", w, log)
		}
	}
}

func (h *hooked) plans() []string {
	files, err := filepath.Glob(filepath.Join(h.data, "cache", "hooks", "*.plan"))
	if err != nil {
		h.t.Fatal(err)
	}
	return files
}

// planned has hooks run until there is a plan, which takes two seconds after the
// last change of the settings, and gives how many prompts were recorded by then.
func (h *hooked) planned() int {
	h.t.Helper()
	for n, end := 1, time.Now().Add(3*time.Minute); time.Now().Before(end); n++ {
		h.hook("claude", "UserPromptSubmit", h.payload("UserPromptSubmit", aTurn))
		if len(h.plans()) > 0 {
			return n
		}
		time.Sleep(100 * time.Millisecond)
	}
	h.t.Fatalf("no plan was made; the log says:\n%s", h.log())
	return 0
}

// waiting are the files of the outbox.
func (h *hooked) waiting() int {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(h.data, "outbox", "*.json"))
	if err != nil {
		h.t.Fatal(err)
	}
	return len(files)
}

// One session of each client, event by event, comes to the same history, and
// the chain of the log holds.
func TestHookRecordsASession(t *testing.T) {
	t.Parallel()
	for client, session := range map[string][][3]string{
		"claude": {
			{"SessionStart", `,"source":"startup"`, "session.started"},
			{"UserPromptSubmit", aTurn, "prompt.submitted"},
			{"PreToolUse", aTool, "tool.called"},
			{"PostToolUse", aTool + `,"tool_response":{"stdout":"ok"}`, "tool.succeeded"},
			{"PostToolUseFailure", aFail, "tool.failed"},
			{"PreToolUse", anAsk, "question.asked question.asked"},
			{"PostToolUse", anAnsw, "question.answered question.answered"},
			{"PermissionRequest", aTool, "permission.asked"},
			{"PreCompact", `,"trigger":"auto"`, "client.compacted"},
			{"Stop", `,"last_assistant_message":"done"`, "response.completed"},
			{"MessageDisplay", ``, ""},
			{"SessionEnd", `,"reason":"other"`, "session.ended"},
		},
		"codex": {
			{"SessionStart", `,"source":"startup"`, "session.started"},
			{"UserPromptSubmit", aTurn, "prompt.submitted"},
			{"PreToolUse", aTool, "tool.called"},
			{"PostToolUse", aTool + `,"tool_response":"ok"`, "tool.succeeded"},
			{"Stop", `,"last_assistant_message":"done"`, "response.completed"},
			{"SessionEnd", `,"reason":"other"`, "session.ended"},
		},
		"gemini": {
			{"SessionStart", `,"source":"startup"`, "session.started"},
			{"BeforeAgent", aTurn, "prompt.submitted"},
			{"BeforeTool", `,"tool_name":"run_shell_command","tool_input":{"command":"ls"}`, "tool.called"},
			{"AfterTool", `,"tool_name":"run_shell_command","tool_input":{"command":"ls"},"tool_response":{"llmContent":"a"}`, "tool.succeeded"},
			{"AfterAgent", `,"prompt_response":"done"`, "response.completed"},
			{"SessionEnd", `,"reason":"exit"`, "session.ended"},
		},
	} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			var want []string
			hooks := 0
			for _, e := range session {
				h.hook(client, e[0], h.payload(e[0], e[1]))
				want = append(want, strings.Fields(e[2])...)
				if e[2] != "" {
					hooks++
				}
			}
			h.wantEvents(want)
			timed := 0
			files, _ := filepath.Glob(filepath.Join(h.data, "events", "*.jsonl")) // the pattern is right
			for _, f := range files {
				timed += strings.Count(h.read(f), `"hook_us":`)
			}
			if timed != hooks {
				t.Errorf("%d lines say how long their hook took, of %d hooks", timed, hooks)
			}
			if r := h.reprise("events", "verify"); r.code != 0 {
				t.Errorf("%d: %s%s", r.code, r.out, r.err)
			}
			for line := range strings.Lines(h.log()) {
				if !strings.Contains(line, "too long") { // on a machine that has other things to do
					t.Errorf("the log complains: %s", line)
				}
			}
		})
	}
	t.Run("copilot", func(t *testing.T) {
		t.Parallel()
		h := newHooked(t)
		for _, e := range [][2]string{
			{"sessionStart", `"source":"new","initialPrompt":"x"`}, {"userPromptSubmitted", `"prompt":"x"`},
			{"preToolUse", `"toolName":"bash","toolArgs":"{\"command\":\"ls\"}"`},
			{"postToolUse", `"toolName":"bash","toolArgs":{"command":"ls"},"toolResult":{"resultType":"success","textResultForLlm":"a"}`},
			{"agentStop", `"stopReason":"end_turn"`}, {"sessionEnd", `"reason":"complete"`},
		} {
			h.hook("copilot", e[0], fmt.Sprintf(`{"sessionId":"s1","timestamp":1,"cwd":%q,%s}`, h.work, e[1]))
		}
		h.wantEvents([]string{"session.started", "prompt.submitted", "tool.called", "tool.succeeded", "response.completed", "session.ended"})
	})
}

// A secret never reaches the disk, on neither way, and the event does.
func TestHookKeepsSecretsOut(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.planned()
	token := "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
	h.hook("claude", "PreToolUse", h.payload("PreToolUse", `,"tool_name":"Bash","tool_input":{"command":"curl -H 'Authorization: token `+token+`'"}`))
	// On a machine that has other things to do it may have to wait for another hook.
	for end := time.Now().Add(3 * time.Minute); h.waiting() > 0 && time.Now().Before(end); {
		h.hook("claude", "Stop", h.payload("Stop", ""))
	}
	if got := h.events(); !slices.Contains(got, "tool.called") {
		t.Errorf("recorded %q", got)
	}
	err := filepath.WalkDir(h.data, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(h.read(path), token) {
			t.Errorf("the token is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What a hook starts has hooks of its own, and those say and record nothing.
func TestHookInsideAHook(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.env = append(h.env, "REPRISE_HOOK_DEPTH=1")
	h.hook("claude", "UserPromptSubmit", h.payload("UserPromptSubmit", aTurn))
	h.start(strings.NewReader(h.payload("UserPromptSubmit", aTurn)), program("reprise"), "hook", "claude", "UserPromptSubmit")
	if _, err := os.Stat(h.data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
}

// A repository's settings for a client have variables set in its hooks' environment: they switch
// nothing off, and lead nowhere.
func TestHookProjectDecidesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ client, event, file, text, set string }{
		"Claude Code, inside a hook": {"claude", "UserPromptSubmit", ".claude/settings.json", `{"env":{"REPRISE_HOOK_DEPTH":"1"}}`, "REPRISE_HOOK_DEPTH=1"},
		"Claude Code, other places":  {"claude", "UserPromptSubmit", ".claude/settings.local.json", `{"env":{"REPRISE_CONFIG":"elsewhere"}}`, "REPRISE_CONFIG=%s/evil.yaml"},
		"Gemini CLI":                 {"gemini", "BeforeAgent", ".env", "REPRISE_HOOK_DEPTH=1\n", "REPRISE_HOOK_DEPTH=1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			if err := os.MkdirAll(filepath.Join(h.work, ".claude"), 0o755); err != nil {
				t.Fatal(err)
			}
			h.write(filepath.Join(h.work, c.file), c.text)
			h.write(filepath.Join(h.work, "evil.yaml"), "hooks:\n  off: [prompt]\n")
			if strings.Contains(c.set, "%") {
				h.env = slices.DeleteFunc(h.env, func(kv string) bool { return strings.HasPrefix(kv, "REPRISE_CONFIG=") })
				c.set = fmt.Sprintf(c.set, h.work)
			}
			h.env = append(h.env, c.set)
			h.hook(c.client, c.event, h.payload(c.event, aTurn))
			h.wantEvents([]string{"prompt.submitted"})
		})
	}
}

// The settings switch hooks off at once, though plans are kept.
func TestHookSwitchedOff(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	n := h.planned()
	var old map[string]any
	if err := json.Unmarshal([]byte(h.read(h.config)), &old); err != nil {
		t.Fatal(err)
	}
	old["hooks"] = map[string]any{"off": []string{"prompt"}, "clients": map[string]any{"codex": map[string]any{"off": []string{"response"}}}}
	old["tools"] = map[string]any{"shell": map[string]any{"record": "failures"}}
	data, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	h.write(h.config, string(data))
	h.hook("claude", "UserPromptSubmit", h.payload("UserPromptSubmit", aTurn))
	h.hook("claude", "PreToolUse", h.payload("PreToolUse", aTool))
	h.hook("claude", "PostToolUseFailure", h.payload("PostToolUseFailure", aFail))
	h.hook("claude", "Stop", h.payload("Stop", ""))
	h.hook("codex", "Stop", h.payload("Stop", ""))
	want := append(slices.Repeat([]string{"prompt.submitted"}, n), "tool.failed", "response.completed")
	h.wantEvents(want)
}

// A project's events go into its own log, from every directory of it, and do so
// when its file or its directory is damaged later.
func TestHookFindsTheProject(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	if r := h.reprise("init", "--yes", "--name", "shop"); r.code != 0 {
		t.Fatal(r.err)
	}
	n := h.planned()
	h.write(filepath.Join(h.work, ".reprise", "project.yaml"), "v: 1\nname: [\n")
	h.hook("claude", "PreToolUse", h.payload("PreToolUse", aTool))
	// The guard, which was off, is not while nobody can tell what is set.
	h.wantEvents(append(slices.Repeat([]string{"prompt.submitted"}, n), "tool.called", "permission.decided"), "projects", "shop")
	h.wantEvents(nil)
	h.wantLog("project.yaml", "recorded as before")
}

// From a directory that was removed under the session.
func TestHookInADirectoryThatIsGone(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	gone := filepath.Join(h.work, "gone")
	if err := os.MkdirAll(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	payload := strings.ReplaceAll(h.payload("Stop", ""), h.work, gone)
	r := h.start(strings.NewReader(payload), "/bin/sh", "-c", `cd "$1" && rmdir "$1" && exec "$0" claude Stop`, h.program, gone)
	h.wantEvents([]string{"response.completed"})
	if r.err != "" {
		t.Errorf("said %q", r.err)
	}
}

// mount puts a small file system of its own at dir.
func mount(t *testing.T, dir, options string, flags uintptr) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := mountTmpfs(dir, options, flags); err != nil {
		t.Skipf("a file system of its own is needed, and this user may not mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := unmount(dir); err != nil {
			t.Error(err)
		}
	})
}

// Nothing can be written at all: the client goes on, and standard error says
// why, for there is no log.
func TestHookOnAReadOnlyDisk(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	mount(t, h.data, "size=1m", readOnly)
	for _, e := range []string{"SessionStart", "UserPromptSubmit", "SessionEnd"} {
		r := h.hook("claude", e, h.payload(e, aTurn))
		if !strings.Contains(r.err, "not recorded") {
			t.Errorf("%s: nobody says why nothing was recorded: %q", e, r.err)
		}
	}
}

// The log's disk is full: events wait in the outbox and are in the log, once,
// when there is room again.
func TestHookOnAFullDisk(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	dir := filepath.Join(h.data, "events")
	mount(t, dir, "size=64k", 0)
	h.hook("claude", "SessionStart", h.payload("SessionStart", ""))
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	// The last page of the log may have room: what fits is recorded.
	big := aTool + `,"tool_response":{"stdout":"` + strings.Repeat("x", 8000) + `"}`
	for range 3 {
		h.hook("claude", "PostToolUse", h.payload("PostToolUse", big))
	}
	if h.waiting() == 0 {
		t.Fatalf("nothing waits: recorded %q", h.events())
	}
	h.wantLog("put aside")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	// Each hook does a bounded part of what waits.
	stops := 0
	for end := time.Now().Add(3 * time.Minute); stops == 0 || h.waiting() > 0 && time.Now().Before(end); stops++ {
		h.hook("claude", "Stop", h.payload("Stop", ""))
	}
	want := append([]string{"session.started", "tool.succeeded", "tool.succeeded", "tool.succeeded"}, slices.Repeat([]string{"response.completed"}, stops)...)
	got := h.events()
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) || h.waiting() != 0 {
		t.Errorf("recorded %q, want %q; %d events still wait", got, want, h.waiting())
	}
	if r := h.reprise("events", "verify"); r.code != 0 {
		t.Errorf("%d: %s%s", r.code, r.out, r.err)
	}
}

// Another process holds the log: the hook does not wait for it longer than its
// client would, and the event is not lost.
func TestHookWithALockedLog(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"hook program", "full program"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			n := 1
			if way == "hook program" {
				n = h.planned()
			} else {
				h.hook("claude", "UserPromptSubmit", h.payload("UserPromptSubmit", aTurn))
			}
			locks, err := filepath.Glob(filepath.Join(h.data, "events", "*.lock"))
			if err != nil || len(locks) != 1 {
				t.Fatal(locks, err)
			}
			f, err := os.Open(locks[0])
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			h.hook("claude", "PreToolUse", h.payload("PreToolUse", aTool))
			if took := time.Since(began); took > time.Minute {
				t.Errorf("took %s", took)
			}
			if h.waiting() != 1 {
				t.Errorf("%d events wait, want 1", h.waiting())
			}
			h.wantLog("put aside")
			if err := syscall.Flock(int(f.Fd()), syscall.LOCK_UN); err != nil {
				t.Fatal(err)
			}
			h.hook("claude", "Stop", h.payload("Stop", ""))
			got := h.events()
			slices.Sort(got[n:])
			if want := append(slices.Repeat([]string{"prompt.submitted"}, n), "response.completed", "tool.called"); !slices.Equal(got, want) || h.waiting() != 0 {
				t.Errorf("recorded %q, %d wait", got, h.waiting())
			}
		})
	}
}
