//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/internal/fakemodel"
)

// looped is a user with a project in git, one approved check (there is no file named
// broken), and one of the clients, against a model that follows the rules. Nothing of
// reprise is set up in the client's own settings.
func looped(t *testing.T, client string, extra settings, rules ...fakemodel.Rule) (*home, *fakemodel.Server) {
	t.Helper()
	path := clientPath(t, client)
	m := model(t, rules...)
	if extra == nil {
		extra = settings{}
	}
	extra["claude_cli"] = map[string]any{"path": "claude"}
	h := newHome(t, extra)
	trial, err := m.Trial(client, h.work)
	if err != nil {
		t.Fatal(err)
	}
	h.env = append(h.env, trial.Env...)
	h.env = append(h.env, "PATH="+strings.Join([]string{programs, filepath.Dir(path), os.Getenv("PATH")}, string(os.PathListSeparator)))
	// A run may make nothing in the directories above the memory, which a user's client
	// has made before.
	h.write(filepath.Join(h.dir, ".claude", "settings.json"), "{}")
	h.write(filepath.Join(h.dir, ".cache", "keep"), "")
	if client == "codex" {
		h.write(filepath.Join(h.dir, ".codex", "config.toml"), "model = \"fake-model\"\nmodel_provider = \"fake\"\n[model_providers.fake]\nname = \"fake\"\nbase_url = \""+m.URL+
			"/v1\"\nenv_key = \"REPRISE_FAKE_KEY\"\nwire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n[mcp_servers.hangs]\ncommand = \"sleep\"\nargs = [\"1000\"]\n")
	}
	h.write(filepath.Join(h.dir, ".gitconfig"), "[user]\n\tname = A\n\temail = a@example.org\n")
	h.git("init", "-q", "-b", "main")
	h.must("init", "--yes", "--name", "shop")
	h.write(filepath.Join(h.work, ".reprise", "project.yaml"), wholeProject)
	h.must("trust", "--yes")
	h.git("add", "-A")
	h.git("commit", "-q", "-m", "one")
	return h, m
}

// clientPath is client, for the helper of a test that has begun with inItsOwnStep.
func clientPath(t *testing.T, name string) string { return client(t, name) }

// project is a path in the project's data.
func (h *home) project(elem ...string) string {
	return filepath.Join(append([]string{h.dir, ".local", "share", "reprise", "projects", "shop"}, elem...)...)
}

// loopRuns are the directories of the project's runs, the oldest first.
func (h *home) loopRuns() []string {
	h.t.Helper()
	dirs, err := filepath.Glob(h.project("runs", "run-*", "run.json"))
	if err != nil {
		h.t.Fatal(err)
	}
	began := map[string]string{}
	var out []string
	for _, file := range dirs {
		var r struct {
			StartedAt time.Time `json:"started_at"`
		}
		if json.Unmarshal([]byte(h.read(file)), &r) == nil {
			dir := filepath.Dir(file)
			began[dir] = r.StartedAt.Format(time.RFC3339Nano)
			out = append(out, dir)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(began[a], began[b]) })
	return out
}

// beside is a command that goes on while the test does something else.
type beside struct {
	t         *testing.T
	cmd       *exec.Cmd
	out, errs bytes.Buffer
	done      chan error
}

func (h *home) beside(args ...string) *beside {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	b := &beside{t: h.t, cmd: exec.CommandContext(ctx, program("reprise"), args...), done: make(chan error, 1)}
	b.cmd.Cancel = func() error { return b.cmd.Process.Signal(syscall.SIGTERM) }
	b.cmd.WaitDelay = 10 * time.Second
	b.cmd.Dir, b.cmd.Env, b.cmd.Stdout, b.cmd.Stderr = h.work, h.env, &b.out, &b.errs
	if err := b.cmd.Start(); err != nil {
		cancel()
		h.t.Fatal(err)
	}
	go func() { b.done <- b.cmd.Wait(); cancel() }()
	h.t.Cleanup(cancel)
	return b
}

// wait is for its end, which must be a good one.
func (b *beside) wait() (out, errs string) {
	b.t.Helper()
	if err := <-b.done; err != nil {
		b.t.Fatalf("%q: %v\n%s%s", b.cmd.Args, err, b.out.String(), b.errs.String())
	}
	return b.out.String(), b.errs.String()
}

func bash(command string) fakemodel.Answer {
	return call("Bash", map[string]any{"command": command, "description": "a step"})
}

// on is a rule for the n-th answer in the session of an item, which may be asked for by
// what its last message says.
func on(item string, turn int, say fakemodel.Answer) fakemodel.Rule {
	return fakemodel.Rule{Name: item, When: fakemodel.When{Task: "the item " + item + ":", Turn: turn}, Say: say}
}

// The complete session of the spawning design, with Claude Code: what stands where while
// it works, and afterwards.
func TestLoopSession(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	linuxOnly(t, "processes are looked at in /proc")
	go_ := filepath.Join(t.TempDir(), "go")
	h, m := looped(t, "claude", nil,
		on("issue-123", 1, bash(`echo "in $SESSION_ID $HARNESS_SESSION $ITERATION $WORK_ITEM $BD_ACTOR $BD_RIG"; pwd`)),
		on("issue-123", 2, bash("echo '2/3 Implementing the login' > \"$PROGRESS_FILE\"")),
		on("issue-123", 3, call("Write", map[string]any{"file_path": "login.txt", "content": "login\n"})),
		on("issue-123", 4, bash("while test ! -f "+go_+"; do /bin/sleep 0.1; done; git add login.txt && git commit -qm 'Add the login'")),
		on("issue-123", 5, say("The login is there.")))
	for _, id := range []string{"issue-123", "issue-124", "issue-125"} {
		h.must("queue", "add", "--id", id, "Implement "+id, "--label", "auth")
	}
	free := turn(t)
	l := h.beside("loop", "run", "--agent", "claude", "--max-iterations", "1", "--delay", "0s")
	defer free()
	// While it works.
	until(t, 2*time.Minute, "the fourth step", func() bool {
		return len(m.Matching(func(q *fakemodel.Request) bool { return q.Turn() == 4 && !q.Side() })) > 0
	})
	until(t, time.Minute, "a session that runs, and how far it says it is", func() bool {
		out := h.reprise("queue", "show", "issue-123", "--json").out
		return strings.Contains(out, `"current_step": "Implementing the login"`) && strings.Contains(out, `"steps_completed": 2`)
	})
	dir := h.loopRuns()[0]
	var live struct {
		Status    string `json:"status"`
		PID       int    `json:"pid"`
		ExitCode  *int   `json:"exit_code"`
		SessionID string `json:"session_id"`
		Command   struct {
			Args []string `json:"args"`
		} `json:"command"`
	}
	unmarshal(t, h.read(filepath.Join(dir, "run.json")), &live)
	if live.Status != "running" || live.PID == 0 || live.ExitCode != nil || len(ofRun(t, filepath.Base(dir))) == 0 {
		t.Errorf("while it works: %+v", live)
	}
	if s := h.must("loop", "status"); !strings.Contains(s, "running") || !strings.Contains(s, "issue-123") || !strings.Contains(s, "2/3 Implementing the login") {
		t.Errorf("status:\n%s", s)
	}
	if q := h.must("queue", "list"); !regexp.MustCompile(`issue-123 +claimed`).MatchString(q) || !regexp.MustCompile(`issue-124 +ready`).MatchString(q) {
		t.Errorf("queue:\n%s", q)
	}
	h.write(go_, "")
	out, errs := l.wait()
	allUsed(t, m)

	// What the client was given.
	args := strings.Join(live.Command.Args, "\n")
	for _, want := range []string{"-p", "--output-format=stream-json", "--verbose", "--session-id=" + live.SessionID, "--append-system-prompt-file=" + filepath.Join(dir, "system.md"),
		"--allowedTools=Bash,Read,Edit,Write,Glob,Grep,mcp__serena__*,mcp__reprise", "--max-turns=50", "--max-budget-usd=10", "--setting-sources=", "--strict-mcp-config"} {
		if !slices.Contains(live.Command.Args, want) {
			t.Errorf("its arguments lack %s:\n%s", want, args)
		}
	}
	first := m.Requests()[0]
	for _, q := range m.Matching(func(q *fakemodel.Request) bool { return q.Wire != "" && !q.Side() }) {
		first = q
		break
	}
	if sys := first.SystemText(); !strings.Contains(sys, "session: "+live.SessionID) || !strings.Contains(sys, "item: issue-123") || !strings.Contains(sys, "iteration of the loop: 1") {
		t.Errorf("its system prompt lacks what was to be appended: %s", sys)
	}
	told := ""
	for _, q := range m.Requests() {
		told += q.Results()
	}
	if !strings.Contains(told, "in "+live.SessionID+" true 1 issue-123 harness-agent shop") || !strings.Contains(told, "loop-issue-123") {
		t.Errorf("its environment and place: %s", told)
	}

	// Afterwards: the design's list of files, in the places that docs/format.md names.
	var r struct {
		Status     string     `json:"status"`
		ExitCode   *int       `json:"exit_code"`
		EndedAt    *time.Time `json:"ended_at"`
		StartEpoch int64      `json:"start_epoch"`
		Heartbeat  struct {
			Messages int   `json:"message_count"`
			Tools    int   `json:"tool_calls"`
			Tokens   int64 `json:"tokens"`
		} `json:"heartbeat"`
	}
	unmarshal(t, h.read(filepath.Join(dir, "run.json")), &r)
	if r.Status != "completed" || r.ExitCode == nil || *r.ExitCode != 0 || r.EndedAt == nil || r.StartEpoch == 0 || r.Heartbeat.Tools != 4 || r.Heartbeat.Messages < 5 {
		t.Errorf("afterwards: %+v", r)
	}
	for name, want := range map[string]string{
		"stdout.jsonl": `"type":"result"`, "result.json": "The login is there.", "system.md": "issue-123", "prompt.md": "issue-123",
		"iteration.json": `"verified": "passed"`, "tools.jsonl": `"tool":"Write"`, "stderr.log": "",
	} {
		if !strings.Contains(h.read(filepath.Join(dir, name)), want) {
			t.Errorf("%s lacks %q: %s", name, want, h.read(filepath.Join(dir, name)))
		}
	}
	var it struct {
		Completed, Succeeded bool
		Fate, Transcript     string
		Tokens               int64
		Turns                int
	}
	unmarshal(t, h.read(filepath.Join(dir, "iteration.json")), &it)
	if !it.Completed || !it.Succeeded || it.Fate != "done" || it.Turns < 5 || it.Tokens == 0 {
		t.Errorf("iteration: %+v", it)
	}
	if !strings.Contains(h.read(it.Transcript), live.SessionID) {
		t.Errorf("its transcript %q", it.Transcript)
	}
	if q := h.must("queue", "list"); !regexp.MustCompile(`issue-124 +ready`).MatchString(q) || !regexp.MustCompile(`issue-125 +ready`).MatchString(q) {
		t.Errorf("queue:\n%s", q)
	}
	if s := h.must("queue", "show", "issue-123", "--json"); !strings.Contains(s, "The login is there.") {
		t.Errorf("the item keeps no outcome: %s", s)
	}
	audit := h.must("loop", "audit")
	at := 0
	for _, step := range []string{"begins", "claimed issue-123", "launched issue-123", "ended issue-123 completed true, result true", "checked issue-123 passed", "settled issue-123 done", "finished"} {
		i := strings.Index(audit[at:], step)
		if i < 0 {
			t.Fatalf("the audit lacks %q after\n%s\nin\n%s", step, audit[:at], audit)
		}
		at += i
	}
	if !strings.Contains(out, "issue-123 'Implement issue-123': done; checks passed") || !strings.Contains(errs, "1 done") {
		t.Errorf("it says\n%s%s", out, errs)
	}
	if log := h.gitIn(h.work, "log", "--format=%s", "loop-issue-123"); !strings.HasPrefix(log, "Add the login\n") {
		t.Errorf("its branch:\n%s", log)
	}
	absent(t, filepath.Join(filepath.Dir(h.work), "work.workspaces", "loop-issue-123"))
	if left, err := os.ReadDir(h.project("loop", "asks")); err != nil || len(left) != 0 {
		t.Errorf("left in asks: %v %v", left, err)
	}
	if n := len(ofRun(t, filepath.Base(dir))); n != 0 {
		t.Errorf("%d processes of it are left", n)
	}
	for name, want := range map[string]string{"loop.json": `"phase": "finished"`, "metrics.json": `"done": 1`, "iterations.jsonl": `"issue-123"`} {
		if !strings.Contains(h.read(h.project("loop", name)), want) {
			t.Errorf("%s lacks %q", name, want)
		}
	}
	if rep := h.must("loop", "report"); !strings.Contains(rep, "**issue-123** Implement issue-123") || !strings.Contains(rep, "The login is there.") {
		t.Errorf("report:\n%s", rep)
	}
	absent(t, h.project("loop", "interrupt.txt"))
}

func unmarshal(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// untilAsked waits until the loop of h waits for a person about the item id, and shows it.
func untilAsked(t *testing.T, h *home, id string) {
	t.Helper()
	until(t, 2*time.Minute, "a loop that waits for a person", func() bool {
		s := h.reprise("loop", "status").out
		if !strings.Contains(s, "waits for a person") || !strings.Contains(s, "set aside: "+id) {
			return false
		}
		_, err := os.Stat(h.project("loop", "interrupt.txt")) // made once the state is kept
		return err == nil
	})
}

// The interrupt of the spawning design, with Claude Code: the session asks by its file, is
// stopped, kept, told of; a person answers, and the same session goes on.
func TestLoopInterrupt(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	h, m := looped(t, "claude", settings{"loop": map[string]any{"notify_command": `echo "$REPRISE_NOTICE_KIND: $REPRISE_NOTICE_TEXT" >> "$HOME/told.txt"`}},
		on("issue-7", 1, bash("echo half > half.txt")),
		on("issue-7", 2, bash(`echo "Tests failing, need to check main branch health" > "$INTERRUPT_FILE"; while :; do /bin/sleep 0.2; done`)),
		fakemodel.Rule{Name: "answered", When: fakemodel.When{User: "main is healthy again"}, Say: bash("cat half.txt; echo whole > whole.txt")},
		fakemodel.Rule{Name: "end", When: fakemodel.When{Result: "half"}, Say: say("Done, on a healthy main.")})
	h.must("queue", "add", "--id", "issue-7", "Mend it")
	free := turn(t)
	defer free()
	l := h.beside("loop", "run", "--agent", "claude", "--until-empty", "--delay", "0s")
	untilAsked(t, h, "issue-7")
	dir := h.loopRuns()[0]
	var r struct {
		Status    string `json:"status"`
		SessionID string `json:"session_id"`
		Interrupt struct {
			Requested bool   `json:"requested"`
			Reason    string `json:"reason"`
		} `json:"interrupt"`
	}
	unmarshal(t, h.read(filepath.Join(dir, "run.json")), &r)
	if r.Status != "interrupted" || !r.Interrupt.Requested || !strings.Contains(r.Interrupt.Reason, "main branch health") {
		t.Errorf("%+v", r)
	}
	if n := len(ofRun(t, filepath.Base(dir))); n != 0 {
		t.Errorf("%d processes of it are left", n)
	}
	var kept struct {
		Item         struct{ ID string }
		Session      string   `json:"session"`
		ChangedFiles []string `json:"changed_files"`
		Asks         string   `json:"asks"`
	}
	unmarshal(t, h.read(filepath.Join(dir, "context.json")), &kept)
	if kept.Item.ID != "issue-7" || kept.Session != r.SessionID || !slices.Contains(kept.ChangedFiles, "half.txt") || kept.Asks != "Tests failing, need to check main branch health" {
		t.Errorf("context.json: %+v", kept)
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "summary.md"): "main branch health", filepath.Join(dir, "interrupt.txt"): "main branch health",
		h.project("loop", "interrupt.txt"): "main branch health", filepath.Join(h.dir, "told.txt"): "agent: Tests failing",
	} {
		if !strings.Contains(h.read(file), want) {
			t.Errorf("%s lacks %q: %s", file, want, h.read(file))
		}
	}
	h.must("loop", "resume", "--answer", "main is healthy again")
	l.wait()
	allUsed(t, m)
	dirs := h.loopRuns()
	if len(dirs) != 2 {
		t.Fatalf("%d runs", len(dirs))
	}
	if args := h.read(filepath.Join(dirs[1], "run.json")); !strings.Contains(args, "--resume="+r.SessionID) || !strings.Contains(args, `"status": "completed"`) {
		t.Errorf("the second run: %s", args)
	}
	last := m.Requests()[len(m.Requests())-1]
	if !strings.Contains(last.Text(), "Go on with the item issue-7") || last.Task() == "" || !strings.Contains(last.Task(), "begin the work on the item issue-7") {
		t.Errorf("the conversation was not gone on with: %q", last.Task())
	}
	absent(t, h.project("loop", "interrupt.txt"))
	if h.gitIn(h.work, "show", "loop-issue-7:whole.txt") != "whole\n" {
		t.Error("its work is not on its branch")
	}
}

// A failed check is told to the same session, which mends it.
func TestLoopChecksFail(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	// To remove a file is asked about, unless the user allows it; and the gate at the end
	// of a turn would have it mended within the first session.
	h, m := looped(t, "claude", settings{"guard": map[string]any{"allow": []string{"rm -f broken"}}, "gates": map[string]any{"stop": "off"}},
		on("one", 1, bash("touch broken work.txt")),
		on("one", 2, say("Done.")),
		fakemodel.Rule{Name: "told", When: fakemodel.When{User: "the file broken is there"}, Say: bash("rm -f broken && echo gone")},
		fakemodel.Rule{Name: "end", When: fakemodel.When{Result: "gone"}, Say: say("It is mended.")})
	h.must("queue", "add", "--id", "one", "Work")
	free := turn(t)
	defer free()
	_, errs := h.beside("loop", "run", "--agent", "claude", "--until-empty", "--delay", "0s", "--backoff-unit", "1ms", "--on-interrupt", "skip").wait()
	allUsed(t, m)
	dirs := h.loopRuns()
	if len(dirs) != 2 || !strings.Contains(errs, "1 done, 1 tried again") {
		t.Fatalf("%d runs\n%s", len(dirs), errs)
	}
	var first struct {
		SessionID string `json:"session_id"`
	}
	unmarshal(t, h.read(filepath.Join(dirs[0], "run.json")), &first)
	if !strings.Contains(h.read(filepath.Join(dirs[1], "run.json")), "--resume="+first.SessionID) {
		t.Error("another session was told")
	}
	if c := h.read(filepath.Join(dirs[0], "context.json")); !strings.Contains(c, `"gate": "failed"`) || !strings.Contains(c, "the file broken is there") {
		t.Errorf("context.json: %s", c)
	}
}

// What the service says when it fails, as the real client shows it, and what the loop
// makes of it.
func TestLoopService(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	fail := func(status int, message string) fakemodel.Rule {
		return fakemodel.Rule{Name: "fails", When: fakemodel.When{}, Uses: -1, Say: fakemodel.Answer{Fail: &fakemodel.Failure{Status: status, Message: message}}}
	}
	for _, tt := range []struct {
		name   string
		rule   fakemodel.Rule
		class  string
		queue  string
		reason string // of the loop
	}{
		{"rate limit", fail(429, "This request would exceed your rate limit. Try again in 20 minutes."), "rate limit", "ready", ""},
		{"not logged in", fail(401, "invalid x-api-key"), "auth", "ready", "authentication"},
		{"context full", fail(400, "prompt is too long: 210000 tokens > 200000 maximum"), "context", "ready", ""},
		{"overloaded", fail(529, ""), "api", "ready", ""},
		{"refusal", fakemodel.Rule{Name: "fails", Uses: -1, Say: fakemodel.Answer{Text: "I will not do that.", Stop: "refusal"}}, "refusal", "dead", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h, _ := looped(t, "claude", nil, tt.rule)
			h.must("queue", "add", "--id", "one", "Work")
			free := turn(t)
			defer free()
			l := h.beside("loop", "run", "--agent", "claude", "--until-empty", "--delay", "0s", "--on-interrupt", "skip")
			var it struct{ Class, Reason, Fate string }
			until(t, 2*time.Minute, "the end of the first run", func() bool {
				data, err := os.ReadFile(h.project("loop", "iterations.jsonl"))
				line, _, ok := strings.Cut(string(data), "\n")
				return err == nil && ok && json.Unmarshal([]byte(line), &it) == nil
			})
			if it.Class != tt.class {
				t.Errorf("class %q (%s), want %q", it.Class, it.Reason, tt.class)
			}
			if tt.name == "rate limit" {
				until(t, time.Minute, "that it holds", func() bool { return strings.Contains(h.reprise("loop", "status").out, "nothing is begun until") })
				if len(h.loopRuns()) != 1 {
					t.Error("it was tried again at once")
				}
			}
			switch {
			case tt.reason != "": // it could go on with nothing
				if err := <-l.done; err == nil || l.cmd.ProcessState.ExitCode() != 1 {
					t.Errorf("it ended with %v, not with exit code 1\n%s", err, l.errs.String())
				}
			case tt.queue == "dead":
				l.wait()
			default:
				_ = h.reprise("loop", "stop", "--wait")
				l.wait()
			}
			if q := h.must("queue", "list", "--state", tt.queue); !strings.Contains(q, "one") {
				t.Errorf("queue:\n%s", h.must("queue", "list"))
			}
			if s := h.must("loop", "status"); !strings.Contains(s, tt.reason) {
				t.Errorf("status:\n%s", s)
			}
		})
	}
}

// A session says how far it is, and asks, by the tools of the loop's own server: what it
// said stands with the item, and the same session goes on with the answer.
func TestLoopTools(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	h, _ := looped(t, "claude", nil,
		on("issue-8", 1, call("ToolSearch", map[string]any{"query": "select:" + tool + "loop_progress," + tool + "loop_ask"})),
		on("issue-8", 2, call(tool+"loop_progress", map[string]any{"steps_completed": 1, "steps_total": 4, "current_step": "Reading the login"})),
		on("issue-8", 3, call(tool+"loop_ask", map[string]any{"question": "Keep the old login for a release?"})),
		on("issue-8", 4, say("I have asked.")), // unless it is stopped before that
		fakemodel.Rule{Name: "answered", When: fakemodel.When{User: "drop it now"}, Say: bash("echo dropped > login.txt; cat login.txt")},
		fakemodel.Rule{Name: "end", When: fakemodel.When{Result: "dropped"}, Say: say("The old login is gone.")})
	h.must("queue", "add", "--id", "issue-8", "Mend the login")
	free := turn(t)
	defer free()
	l := h.beside("loop", "run", "--agent", "claude", "--until-empty", "--delay", "0s")
	untilAsked(t, h, "issue-8")
	var it struct {
		Progress struct {
			Done  int    `json:"steps_completed"`
			Total int    `json:"steps_total"`
			Step  string `json:"current_step"`
		} `json:"progress"`
	}
	unmarshal(t, h.must("queue", "show", "issue-8", "--json"), &it)
	if it.Progress.Done != 1 || it.Progress.Total != 4 || it.Progress.Step != "Reading the login" {
		t.Errorf("how far it said it is: %+v", it.Progress)
	}
	if why := h.read(h.project("loop", "interrupt.txt")); !strings.Contains(why, "Keep the old login for a release?") {
		t.Errorf("it asks %q", why)
	}
	dirs := h.loopRuns()
	var first struct {
		SessionID string `json:"session_id"`
	}
	unmarshal(t, h.read(filepath.Join(dirs[0], "run.json")), &first)
	h.must("loop", "resume", "--answer", "drop it now")
	l.wait()
	if dirs = h.loopRuns(); len(dirs) != 2 || !strings.Contains(h.read(filepath.Join(dirs[1], "run.json")), "--resume="+first.SessionID) {
		t.Errorf("%d runs; another session was answered", len(dirs))
	}
	if h.gitIn(h.work, "show", "loop-issue-8:login.txt") != "dropped\n" {
		t.Error("its work is not on its branch")
	}
}
