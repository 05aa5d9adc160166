//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// planting makes secrets, each for one place alone, so that one that is found
// tells how it got there. They are made of parts, so that none stands here.
type planting struct {
	r     *rand.Rand
	where map[string]string // by secret
}

func (p *planting) of(n int, from string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = from[p.r.IntN(len(from))]
	}
	return string(b)
}

// text is a text with one secret of each kind in it.
func (p *planting) text(place string) string {
	const low, up, dig, hex = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", "0123456789abcdef"
	an := low + up + dig
	var b strings.Builder
	b.WriteString("please look at this")
	for kind, s := range map[string]string{
		"GitHub": "gh" + "p_" + p.of(36, an), "AWS": "AK" + "IA" + p.of(16, up+"234567"), "Anthropic": "sk-" + "ant-api03-" + p.of(93, an) + "AA",
		"Slack": "xo" + "xb-" + p.of(12, dig[1:]) + "-" + p.of(12, dig[1:]) + "-" + p.of(24, an), "Stripe": "sk" + "_live_" + p.of(24, an),
		"npm": "npm" + "_" + p.of(36, low+dig), "JWT": "ey" + "J" + p.of(20, an) + ".ey" + "J" + p.of(40, an) + "." + p.of(43, an), "GitLab": "gl" + "pat-" + p.of(20, an),
	} {
		p.where[s] = kind + " in " + place
		b.WriteString(" and " + s)
	}
	return b.String() + " thanks"
}

// forms are how a secret could stand somewhere and still be one: as it is, as an
// index folds it, encoded for a URL, and in base64 at each alignment. A part in
// the middle is enough.
func forms(s string) (out [][]byte) {
	part := s[len(s)-16:]
	for _, f := range []string{part, strings.ToLower(part), url.QueryEscape(part)} {
		out = append(out, []byte(f))
	}
	for shift := range 3 {
		enc := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + part))
		enc = enc[4 : len(enc)-2]
		out = append(out, []byte(enc), []byte(strings.NewReplacer("+", "-", "/", "_").Replace(enc)))
	}
	return out
}

// in names the places whose secrets data holds.
func (p *planting) in(data []byte) []string {
	found := map[string]bool{}
	for s, where := range p.where {
		for _, f := range forms(s) {
			if bytes.Contains(data, f) {
				found[where] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Secrets of eight kinds are planted wherever something comes into reprise: in
// what four clients send their hooks, transcripts, tools of the server, notes,
// decisions, handoffs, tasks, work, questions, checks, errors, the environment.
// Then each byte is looked at of each store, log and index, of git's objects, of
// each page of the dashboard and of the report of a fault.
//
// What a person or a model hands to an agent is that agent's: a run's prompt and
// its raw output are not rewritten, nor is a file of the project that a person
// writes. They are told apart below, by name.
func TestSecretsAreFoundNowhere(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	p := &planting{r: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1)), where: map[string]string{}}
	h.env = append(h.env, "SOME_KEY="+p.text("the environment"))
	h.gitIn(h.work, "init", "--quiet", "--initial-branch", "main")
	h.gitIn(h.work, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "--allow-empty", "-m", "first")
	h.must("init", "--yes", "--name", "shop")
	quoted := func(place string) string {
		data, err := json.Marshal(p.text(place))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	// Hooks.
	for event, more := range map[string]string{
		"SessionStart": `,"source":"startup"`, "UserPromptSubmit": `,"prompt":` + quoted("a prompt"),
		"PreToolUse":         `,"tool_name":"Bash","tool_use_id":"t1","tool_input":{"command":` + quoted("a command") + `}`,
		"PostToolUse":        `,"tool_name":"Bash","tool_use_id":"t1","tool_input":{"command":"make"},"tool_response":{"stdout":` + quoted("the output of a tool") + `,"stderr":` + quoted("its errors") + `}`,
		"PostToolUseFailure": `,"tool_name":"Bash","tool_use_id":"t2","tool_input":{"command":"make"},"error":` + quoted("an error"),
		"PermissionRequest":  `,"tool_name":"Write","tool_use_id":"t3","tool_input":{"file_path":"/x","content":` + quoted("a file to be written") + `}`,
		"SubagentStop":       `,"agent_id":"a1","agent_type":"x","last_assistant_message":` + quoted("what a subagent says"),
		"PreCompact":         `,"trigger":"manual","custom_instructions":` + quoted("what to keep"),
		"Stop":               `,"last_assistant_message":` + quoted("the last words"),
		"Notification":       `,"message":` + quoted("a notification"),
		"Unknown":            `,"something":` + quoted("an event of tomorrow"),
	} {
		h.hook("claude", event, h.payload(event, more))
	}
	h.hook("claude", "PreToolUse", h.payload("PreToolUse", `,"tool_name":"AskUserQuestion","tool_use_id":"q","tool_input":{"questions":[{"question":`+quoted("a question")+`,"options":[{"label":"A"}]}]}`))
	h.hook("claude", "PostToolUse", h.payload("PostToolUse", `,"tool_name":"AskUserQuestion","tool_use_id":"q","tool_input":{"questions":[{"question":"Which?","options":[{"label":"A"}]}]},"tool_response":{"answers":{"Which?":`+quoted("an answer")+`}}`))
	for client, events := range map[string]map[string]string{
		"codex":   {"UserPromptSubmit": `"prompt":` + quoted("a prompt of Codex"), "PostToolUse": `"tool_name":"shell","tool_input":{"command":"x"},"tool_response":` + quoted("output of Codex")},
		"gemini":  {"BeforeAgent": `"prompt":` + quoted("a prompt of Gemini"), "AfterTool": `"tool_name":"run_shell_command","tool_input":{"command":"x"},"tool_response":{"llmContent":` + quoted("output of Gemini") + `}`},
		"copilot": {"userPromptSubmitted": `"sessionId":"c","timestamp":1,"prompt":` + quoted("a prompt of Copilot"), "postToolUse": `"sessionId":"c","timestamp":2,"toolName":"bash","toolArgs":"{}","toolResult":{"resultType":"success","textResultForLlm":` + quoted("output of Copilot") + `}`},
	} {
		for event, more := range events {
			h.hook(client, event, fmt.Sprintf(`{"session_id":"s-%s","cwd":%q,"hook_event_name":%q,%s}`, client, h.work, event, more))
		}
	}
	h.start(strings.NewReader(`not JSON `+p.text("a payload that is none")), h.program, "claude", "Stop")
	// A transcript.
	line := func(kind, content string) string {
		return fmt.Sprintf(`{"type":%q,"sessionId":"6a13438d-5a8e-41c4-808c-4bfdd26a2a8d","uuid":"%s-1","timestamp":"2026-11-20T10:00:00.000Z","cwd":%q,"message":{"role":%q,"content":%s}}`, kind, kind, h.work, kind, content)
	}
	h.write(filepath.Join(h.dir, ".claude", "projects", "-work", "6a13438d-5a8e-41c4-808c-4bfdd26a2a8d.jsonl"),
		line("user", quoted("a transcript's prompt"))+"\n"+line("assistant", `[{"type":"text","text":`+quoted("a transcript's answer")+`}]`)+"\n")
	h.reprise("import", "claude")
	// Commands. Some refuse what holds a secret, which is as good.
	for place, args := range map[string][]string{
		"a learning": {"memory", "learn", "%"}, "a global learning": {"memory", "learn", "--global", "%"}, "a decision": {"decide", "%"},
		"a line of the log": {"log", "add", "%"}, "scratch notes": {"scratch", "%"}, "a note": {"note", "add", "n", "%"}, "the focus": {"context", "set", "%"},
		"a question to memory": {"recall", "%"}, "a search": {"memory", "search", "%"}, "work": {"queue", "add", "%"}, "a handoff": {"handoff", "create", "%"},
		"a guard's question": {"guard", "check", "--", "%"}, "a word that is no command": {"%"}, "a flag's value": {"runs", "list", "--status", "%"},
		"a run's id": {"runs", "show", "%"}, "a correction": {"memory", "correct", "--find", "%", "new"}, "a task's name": {"task", "new", "%"},
	} {
		for i, a := range args {
			if a == "%" {
				args[i] = p.text(place)
			}
		}
		h.reprise(args...)
	}
	h.reprise("spawn", "say "+p.text("a run's task"))
	h.reprise("spawn", "crash "+p.text("the task of a run that fails"))
	// The check prints what lies outside the project, of which verifying has a copy.
	outside := filepath.Join(filepath.Dir(h.dir), "outside.txt")
	h.write(outside, p.text("the output of a check"))
	h.write(filepath.Join(h.work, ".reprise", "project.yaml"), "v: 1\nname: shop\nverify:\n  profiles:\n    quick:\n      - name: test\n        run: [cat, "+outside+", /nowhere]\n")
	h.must("trust", "--yes")
	h.reprise("verify", "--profile", "quick")
	// What agents of the loop say, in each way that they have, goes into the queue, the loop's
	// state, its report and what people are told.
	steps := filepath.Join(filepath.Dir(h.dir), "steps.yaml")
	say := func(place string) string { // in YAML, and in a shell's single quotes
		return "'" + p.text(place) + "'"
	}
	h.write(steps, `steps:
  - {when: "finishes it", say: `+say("the last words of a loop's agent")+`}
  - {write: {path: done.txt, content: "done\n"}}
  - {when: "dies of it", stderr: `+say("the errors of a loop's agent")+`}
  - {exit: 3}
  - {when: "asks about it", shell: {command: "cat `+h.secretFile(p, "a question of a loop's agent")+` > $INTERRUPT_FILE; sleep 600"}}
  - {when: "gives up on it", shell: {command: "cat `+h.secretFile(p, "an error report of a loop's agent")+` > $ERROR_FILE; sleep 600"}}
  - {when: "says how far", shell: {command: 'printf "3/10 %s" "$(cat `+h.secretFile(p, "the progress of a loop's agent")+`)" > $PROGRESS_FILE; sleep 4'}}
`)
	for _, what := range []string{"finishes it", "dies of it", "asks about it", "gives up on it", "says how far"} {
		h.must("queue", "add", what, "--id", strings.ReplaceAll(what, " ", "-"))
	}
	h.reprise("loop", "run", "--agent-script", steps, "--until-empty", "--delay", "0s", "--backoff-unit", "1ms", "--on-interrupt", "skip", "--workers", "3")
	for _, args := range [][]string{{"loop", "report"}, {"loop", "status"}, {"queue", "list"}} {
		if r := h.reprise(args...); len(p.in([]byte(r.out+r.err))) > 0 {
			t.Errorf("%q tells %v", args, p.in([]byte(r.out+r.err)))
		}
	}
	for _, id := range []string{"finishes-it", "dies-of-it", "asks-about-it", "gives-up-on-it", "says-how-far"} {
		r := h.reprise("queue", "show", id, "--json")
		if !strings.Contains(r.out, `"attempts": `) && !strings.Contains(r.out, "done") && !strings.Contains(r.out, "blocked") {
			t.Errorf("the loop has not had %s: %s", id, r.out)
		}
	}
	// Tools of the server.
	s := h.serve("--toolsets", "all")
	for name, args := range map[string]map[string]any{
		"append_file": {"path": "notes.md", "text": p.text("append_file")}, "append_episodic_log": {"entry": p.text("append_episodic_log")},
		"create_memory_block": {"name": "project-x", "summary": p.text("a block's summary"), "content": p.text("a block")},
		"memory_search":       {"query": p.text("memory_search")}, "memory_read": {"file": p.text("a file's name")}, "state_log": {"text": p.text("state_log")},
		"state_learn": {"insight": p.text("state_learn")}, "state_decide": {"decision": p.text("state_decide"), "rationale": p.text("a rationale")},
		"state_handoff": {"text": p.text("state_handoff")}, "state_scratch": {"text": p.text("state_scratch")}, "state_note": {"name": "m", "text": p.text("state_note")},
		"check_agent": {"job_id": p.text("a job's id")}, "spawn_agent": {"task": p.text("spawn_agent")}, "no_such_tool": {"x": p.text("a tool that there is not")},
		"task_new": {"title": p.text("task_new")},
	} {
		s.request("tools/call", map[string]any{"name": name, "arguments": args})
	}
	if err := s.in.Close(); err != nil {
		t.Fatal(err)
	}
	<-s.gone
	// What is done with it all afterwards.
	for _, args := range [][]string{{"memory", "organize"}, {"index", "rebuild"}, {"state", "sync"}, {"context", "show"}} {
		h.reprise(args...)
	}
	if n := len(p.where); n < 400 {
		t.Errorf("%d secrets were planted", n)
	}
	h.noSecretIn(t, p)
}

// secretFile is a file outside the project with a secret of each kind in it.
func (h *hooked) secretFile(p *planting, place string) string {
	path := filepath.Join(filepath.Dir(h.dir), strings.NewReplacer(" ", "-", "'", "").Replace(place))
	h.write(path, p.text(place))
	return path
}

// rawPlace reports whether a file holds an agent's own words as they were.
func rawPlace(rel string) bool {
	parts := strings.Split(rel, "/")
	name := parts[len(parts)-1]
	if i := slices.Index(parts, "runs"); i >= 0 && len(parts) == i+3 {
		// What the agent was given and what it wrote, for it and for whoever looks
		// at the run: 0600, and gone when the run is.
		return name == "prompt.md" || name == "stdout.jsonl" || name == "stderr.log" || name == "result.json"
	}
	return false
}

func (h *hooked) noSecretIn(t *testing.T, p *planting) {
	t.Helper()
	files := 0
	for _, root := range []string{h.data, h.memory, filepath.Join(h.work, ".reprise", "agent"), filepath.Join(h.work, "specs"), filepath.Join(filepath.Dir(h.dir), "tmp"), filepath.Join(h.dir, ".config"), filepath.Join(h.dir, ".cache"), filepath.Join(h.dir, ".local")} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(filepath.Dir(root), path)
			if found := p.in([]byte(path)); len(found) > 0 {
				t.Errorf("the name of %s holds a secret: %v", rel, found)
			}
			if d.IsDir() && strings.HasSuffix(d.Name(), ".git") {
				h.noSecretInObjects(t, p, path)
			}
			if !d.Type().IsRegular() {
				return nil
			}
			files++
			if rawPlace(filepath.ToSlash(rel)) {
				return nil
			}
			if found := p.in([]byte(h.read(path))); len(found) > 0 {
				t.Errorf("%s: %v", rel, found)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// What keeps other users out is the directory around everything.
	for _, dir := range []string{h.data, h.memory} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to other users: %v %v", filepath.Base(dir), info.Mode(), err)
		}
	}
	if files < 30 {
		t.Errorf("%d files were looked at", files)
	}
	report := filepath.Join(h.work, "report.md")
	h.must("bug-report", "-o", report)
	if found := p.in([]byte(h.read(report))); len(found) > 0 {
		t.Errorf("the report of a fault: %v", found)
	}
	h.noSecretOnPages(t, p)
}

// noSecretInObjects looks into what git has packed.
func (h *hooked) noSecretInObjects(t *testing.T, p *planting, dir string) {
	t.Helper()
	cmd := exec.Command("git", "--git-dir", dir, "cat-file", "--batch-all-objects", "--batch")
	cmd.Env = h.env
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("read the objects of %s: %v", dir, err)
	}
	if found := p.in(out); len(found) > 0 {
		t.Errorf("the objects of %s: %v", filepath.Base(dir), found)
	}
}

var pageLink = regexp.MustCompile(`(?:href|hx-get|src)="(/[^"#]*)`)

// noSecretOnPages reads every page of the dashboard that can be reached by links.
// What a run was given and said is shown there as the person's who started it.
func (h *hooked) noSecretOnPages(t *testing.T, p *planting) {
	t.Helper()
	cmd := exec.Command(program("reprise"), "web")
	cmd.Dir, cmd.Env, cmd.Stderr = h.work, h.env, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the dashboard ended with %v", err)
		}
	}()
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }() // it ends with the dashboard
	first, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Timeout: time.Minute}
	seen, next := map[string]bool{}, []string{first.RequestURI()}
	for len(next) > 0 && len(seen) < 300 {
		at := next[0]
		next = next[1:]
		if seen[at] {
			continue
		}
		seen[at] = true
		if strings.Contains(at, "/events/stream") || strings.Contains(at, "/live") || strings.HasSuffix(at, "/stream") {
			continue // it goes on for ever
		}
		res, err := client.Get(first.Scheme + "://" + first.Host + at)
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		body, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
		res.Body.Close()
		if err != nil {
			t.Errorf("%s: %v", at, err)
		}
		if found := p.in(body); len(found) > 0 {
			t.Errorf("the page %s: %v", at, found)
		}
		for _, m := range pageLink.FindAllStringSubmatch(string(body), -1) {
			next = append(next, strings.ReplaceAll(m[1], "&amp;", "&"))
		}
	}
	if len(seen) < 8 {
		t.Errorf("%d pages were read: %v", len(seen), slices.Sorted(maps.Keys(seen)))
	}
}
