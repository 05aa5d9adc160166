package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"reprise/internal/event"
)

// A year of work: so many events of one project and so many blocks of memory.
const (
	sessionEvents = 100_000
	sessionBlocks = 10_000
)

// sessions is what a client waits for where the index is asked: at a session's
// start, at a prompt and when a tool has failed, beside a Go program that does
// nothing. It also says how long the index took to be made.
func (r *rig) sessions() ([]row, error) {
	home := filepath.Join(r.dir, "sessions")
	work := filepath.Join(home, "shop")
	data := filepath.Join(home, "data")
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, err
	}
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "REPRISE_HOME=" + data}
	run := func(args ...string) (time.Duration, error) {
		cmd := exec.Command(r.reprise, args...)
		cmd.Dir, cmd.Env = work, env
		if out, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("reprise %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
	}
	if _, err := run("init", "--yes", "--name", "shop"); err != nil {
		return nil, err
	}
	// Until now, so that the session that is measured is the next day's.
	if err := writeLog(filepath.Join(data, "projects", "shop", "events"), sessionEvents, time.Now()); err != nil {
		return nil, err
	}
	if err := writeNotes(filepath.Join(data, "memory"), sessionBlocks); err != nil {
		return nil, err
	}
	began := time.Now()
	cpu, err := run("index", "rebuild")
	if err != nil {
		return nil, err
	}
	rows := []row{{
		fmt.Sprintf("`reprise index rebuild`, %d events and %d blocks", sessionEvents, sessionBlocks),
		fmt.Sprintf("%.1f s, processor %.1f s", time.Since(began).Seconds(), cpu.Seconds()),
		fmt.Sprintf("%.0f events a second of processor", sessionEvents/cpu.Seconds()), "",
	}}
	payload := func(event, session, more string) []byte {
		return fmt.Appendf(nil, `{"session_id":%q,"transcript_path":"/home/dev/.claude/projects/x/y.jsonl","cwd":%q,"permission_mode":"default","hook_event_name":%q%s}`, session, work, event, more)
	}
	ask := func(name string, session int) ([]byte, string) {
		id := fmt.Sprintf("5a13438d-5a8e-41c4-808c-%012d", session)
		switch name {
		case "UserPromptSubmit":
			return payload(name, id, fmt.Sprintf(`,"prompt_id":"6dff36d8","prompt":"the cart shows name%d as undefined after the feature, why does the page say so"`, session)), "a prompt"
		case "PostToolUseFailure":
			return payload(name, id, fmt.Sprintf(`,"tool_name":"Bash","tool_input":{"command":"go test ./internal/p7"},"tool_use_id":"toolu_1","error":"Exit code 1\n./x9.go:9:3: undefined: name%d\nFAIL\tshop/x [build failed]"`, session%300)), "a tool that failed as before"
		}
		return payload(name, id, `,"source":"startup"`), "a session's start"
	}
	// The first hooks have a plan made, see hooks.
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		in, _ := ask("SessionStart", 0)
		if _, _, err := timedCPU(env, in, work, r.hook, "claude", "SessionStart"); err != nil {
			return nil, err
		}
		if plans, _ := filepath.Glob(filepath.Join(data, "cache", "hooks", "*.plan")); len(plans) > 0 { // the pattern is right
			break
		}
		if time.Now().After(end) {
			return nil, errors.New("no plan for hooks was made within 20 s")
		}
	}
	// What other sessions left is organised before the first measurement, as it is
	// at the end of every turn.
	quiet := func() error {
		_, _, err := timedCPU(env, payload("Stop", "before", `,"stop_hook_active":false,"last_assistant_message":"done"`), work, r.hook, "claude", "Stop")
		return err
	}
	// A session whose client is killed after it has mended something, for each start.
	killed := func(i int) error {
		id := fmt.Sprintf("killed-%d", i)
		for _, e := range []struct{ name, more string }{
			{"PostToolUseFailure", fmt.Sprintf(`,"tool_name":"Bash","tool_input":{"command":"go vet ./internal/p7"},"tool_use_id":"t1","error":"Exit code 1\n./x9.go:9:3: undefined: other%d"`, i)},
			{"PostToolUse", `,"tool_name":"Bash","tool_input":{"command":"go generate ./internal/p7"},"tool_use_id":"t2","tool_response":{"stdout":"ok","stderr":"","interrupted":false}`},
			{"PostToolUse", `,"tool_name":"Bash","tool_input":{"command":"go vet ./internal/p7"},"tool_use_id":"t3","tool_response":{"stdout":"ok","stderr":"","interrupted":false}`},
		} {
			if _, _, err := timedCPU(env, payload(e.name, id, e.more), work, r.hook, "claude", e.name); err != nil {
				return err
			}
		}
		return nil
	}
	for _, m := range []struct {
		event, what string
		each        func(int) error
	}{
		{"SessionStart", "", nil}, {"UserPromptSubmit", "", nil}, {"PostToolUseFailure", "", nil}, {"SessionStart", ", after one that was killed", killed},
	} {
		for range 3 {
			if err := quiet(); err != nil {
				return nil, err
			}
		}
		more, err := r.sessionRow(env, work, m.event, m.what, ask, m.each)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more)
	}
	return rows, nil
}

// sessionRow measures an event; before, which may be nil, is what happens before
// each and is not measured.
func (r *rig) sessionRow(env []string, work, event, more string, ask func(string, int) ([]byte, string), before func(int) error) (row, error) {
	var all, ours, empty, start []time.Duration // processor time, but for the first
	what := ""
	for i := range r.n + 1 {
		if before != nil {
			if err := before(i); err != nil {
				return row{}, err
			}
		}
		in, name := ask(event, i+1)
		what = name + more
		took, a, err := timedCPU(env, in, work, r.hook, "claude", event)
		if err != nil {
			return row{}, err
		}
		_, b, err := timedCPU(env, in, work, r.empty)
		if err != nil {
			return row{}, err
		}
		_, c, err := timedCPU(env, in, work, r.reprise, "--version")
		if err != nil {
			return row{}, err
		}
		all, ours, empty, start = append(all, took), append(ours, a), append(empty, b), append(start, c)
	}
	aim := ""
	if event == "SessionStart" && more == "" {
		aim = "≤ 60 ms where an empty program takes 10"
	}
	return row{
		fmt.Sprintf("`reprise-hook claude %s`: %s, %d events and %d blocks", event, what, sessionEvents, sessionBlocks),
		fmt.Sprintf("%s, processor %s", ms(median(all[1:])), ms(median(ours[1:]))),
		fmt.Sprintf("processor of an empty Go program: %s, of `reprise --version`: %s, so %s and %s", ms(median(empty[1:])), ms(median(start[1:])),
			ratio(median(ours[1:]), median(empty[1:])), ratio(median(ours[1:]), median(start[1:]))), aim,
	}, nil
}

// timedCPU is timed with the processor time of the program and of what it
// started and waited for.
func timedCPU(env []string, in []byte, dir, path string, args ...string) (took, cpu time.Duration, err error) {
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir, cmd.Stdin = env, dir, strings.NewReader(string(in))
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", path, err)
	}
	return time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// writeNotes writes a memory of small blocks.
func writeNotes(dir string, n int) error {
	z := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 4, 50_000)
	blocks := filepath.Join(dir, "blocks")
	if err := os.MkdirAll(blocks, 0o700); err != nil {
		return err
	}
	for i := range n {
		var s strings.Builder
		for range 20 {
			fmt.Fprintf(&s, "w%dq ", z.Uint64())
		}
		if err := os.WriteFile(filepath.Join(blocks, fmt.Sprintf("reference-%d.md", i)), []byte("# Note\n\n"+s.String()+"\n"), 0o600); err != nil {
			return err
		}
	}
	old := time.Now().Add(-time.Hour) // nothing changed in the moment of the look
	for _, d := range []string{blocks, dir} {
		if err := os.Chtimes(d, old, old); err != nil {
			return err
		}
	}
	return nil
}

// writeLog writes a log of n events up to a time: sessions of sixty, in which
// one call in ten fails and is mended. Their chain is not kept: nothing that is
// measured looks at it.
func writeLog(dir string, n int, until time.Time) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	var f *os.File
	var w *bufio.Writer
	shut := func() error {
		if f == nil {
			return nil
		}
		return errors.Join(w.Flush(), f.Close())
	}
	month := ""
	for i := range n {
		at := until.Add(-time.Duration(n-i) * 3 * time.Minute).UTC()
		if m := at.Format("2006-01"); m != month {
			if err := shut(); err != nil {
				return err
			}
			if f, err = os.OpenFile(filepath.Join(dir, m+"."+strings.ToLower(host)+"-old.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
				return err
			}
			w, month = bufio.NewWriter(f), m
		}
		line, err := json.Marshal(oneEvent(i, at))
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return shut()
}

func oneEvent(i int, at time.Time) event.Event {
	e := event.Event{V: 1, ID: fmt.Sprintf("%08x-0000-7000-8000-%012x", i, i), TS: at, Scope: event.ScopeSession, Project: "shop", Session: "s" + strconv.Itoa(i/60), Client: "claude"}
	var data any
	shell := func(command, output string, code int) event.ToolData {
		in, _ := json.Marshal(map[string]string{"command": command}) // a map of strings always can
		d := event.ToolData{Tool: "shell", Name: "Bash", Input: in, Cwd: "/w/shop", Output: output}
		if code != 0 {
			d.Output, d.Error, d.ExitCode = "", output, &code
		}
		return d
	}
	switch test := fmt.Sprintf("go test ./internal/p%d", i/60%40); i % 60 {
	case 0:
		e.Type, data = event.SessionStarted, event.SessionData{Cwd: "/w/shop"}
	case 1, 20, 40:
		e.Type, data = event.PromptSubmitted, event.PromptData{Text: fmt.Sprintf("Add the feature number %d to the cart, with a test for it", i)}
	case 19, 39, 58:
		e.Type, data = event.ResponseCompleted, event.ResponseData{Text: "The feature is there, and its tests pass. I changed the cart and the page."}
	case 59:
		e.Type, data = event.SessionEnded, event.SessionData{}
	case 5, 25, 45, 50, 53:
		e.Type, data = event.ToolFailed, shell(test, fmt.Sprintf("./x%d.go:%d:3: undefined: name%d\nFAIL\tshop/x [build failed]", i, i%300, i/600%50), 1)
	case 7, 27, 47, 52, 55:
		e.Type, data = event.ToolSucceeded, shell(test, "", 0)
	case 6, 26, 46, 51, 54:
		in, _ := json.Marshal(map[string]string{"file_path": fmt.Sprintf("/w/shop/internal/p%d/x.go", i/60%40), "old_string": "some text that is not long", "new_string": "another text that is about as long"})
		e.Type, data = event.ToolSucceeded, event.ToolData{Tool: "edit", Name: "Edit", Input: in, Cwd: "/w/shop", Output: "The file was updated."}
	default:
		e.Type, data = event.ToolSucceeded, shell(fmt.Sprintf("grep -rn 'name%d' internal | head -20", i), "internal/cart/cart.go:12: the line that was looked for\ninternal/page/page.go:40: and another one\n", 0)
	}
	e.Data, _ = json.Marshal(data) // structs of the event package always can
	return e
}
