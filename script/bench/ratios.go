package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// cost is what one start of a program took: what other work beside it changes little.
type cost struct {
	cpu   time.Duration
	pages int64 // that were touched for the first time
}

func (c cost) processor() float64 { return float64(c.cpu) }
func (c cost) touched() float64   { return float64(c.pages) }

// subject is a program that is started again and again.
type subject struct {
	name, what string
	of         string // the subject that it is a multiple of; "" of a yardstick
	run        func() (*os.ProcessState, error)
}

// programFigures measures all of them in turns.
func (r *rig) programFigures() ([]figure, error) {
	var list []subject
	for _, more := range []func() ([]subject, error){r.subjects, r.subjectsOfAYear, r.subjectsOfState} {
		s, err := more()
		if err != nil {
			return nil, err
		}
		list = append(list, s...)
	}
	costs := map[string][]cost{}
	for i := range r.n + 1 {
		for _, s := range list {
			state, err := s.run()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.what, err)
			}
			c, ok := spent(state)
			if !ok {
				return nil, errors.New("what processes cost is not known on this system")
			}
			if i > 0 { // the first start reads the program from disk
				costs[s.name] = append(costs[s.name], c)
			}
		}
	}
	var out []figure
	for _, s := range list {
		if s.of == "" {
			continue
		}
		of := list[slices.IndexFunc(list, func(o subject) bool { return o.name == s.of })]
		out = append(out, costFigures(s.name, s.what, "× "+of.what, costs[s.name], costs[s.of])...)
	}
	return out, nil
}

// costFigures are the two of what was measured beside a yardstick.
func costFigures(name, what, of string, ours, theirs []cost) []figure {
	each := func(costs []cost, f func(cost) float64) (all []float64) {
		for _, c := range costs {
			all = append(all, f(c))
		}
		return all
	}
	cpu, base := each(ours, cost.processor), each(theirs, cost.processor)
	pages, touched := each(ours, cost.touched), each(theirs, cost.touched)
	a := ratioOf(name+".processor", what+", processor time", of, cpu, base, noiseCPU)
	b := ratioOf(name+".pages", what+", pages touched first", of, pages, touched, noisePages)
	a.Seen = ms(time.Duration(middle(cpu))) + " to " + ms(time.Duration(middle(base)))
	b.Seen = fmt.Sprintf("%.0f to %.0f", middle(pages), middle(touched))
	return []figure{a, b}
}

// starts is a program that a shop starts with an input.
func (s *shop) starts(in []byte, args ...string) func() (*os.ProcessState, error) {
	return func() (*os.ProcessState, error) {
		cmd := s.command(args...)
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return cmd.ProcessState, err
	}
}

// serves is a server that is asked for its tools, and ended.
func (s *shop) serves(path string, args ...string) func() (*os.ProcessState, error) {
	return func() (*os.ProcessState, error) {
		p, err := startIn(s.dir, s.env, path, args...)
		if err == nil {
			err = p.handshake()
		}
		if err == nil {
			_, err = p.call("tools/list", map[string]any{})
		}
		if err == nil {
			err = p.end()
		}
		if err != nil {
			return nil, err
		}
		return p.cmd.ProcessState, nil
	}
}

// subjects are the programs that are measured in a project of their own, and the yardsticks.
func (r *rig) subjects() ([]subject, error) {
	s, err := r.newShop("ratios")
	if err != nil {
		return nil, err
	}
	if err := s.add("item", 1000); err != nil {
		return nil, err
	}
	if err := writeNotes(filepath.Join(s.home, "memory"), 500); err != nil {
		return nil, err
	}
	if _, err := s.run(r.reprise, "index", "rebuild"); err != nil {
		return nil, err
	}
	hook := func(event string) func() (*os.ProcessState, error) {
		return s.starts(hookPayload(s.dir, event, "go test ./..."), r.hook, "claude", event)
	}
	if err := s.planned(hook("PreToolUse")); err != nil {
		return nil, err
	}
	// What agents run all day, each part of which is allowed.
	long := hookPayload(s.dir, "PreToolUse", strings.TrimSuffix(strings.Repeat("ls -la sub | grep -v x && git log --oneline -3; ", 8000/48), "; "))
	old, err := r.longLog(100 << 20)
	if err != nil {
		return nil, err
	}
	tasks, err := r.newShop("tasks-listed")
	if err != nil {
		return nil, err
	}
	if err := writeList(filepath.Join(tasks.dir, "specs"), taskLong); err != nil {
		return nil, err
	}
	if _, err := tasks.run(r.reprise, "task", "check", "--fix"); err != nil {
		return nil, err
	}
	return []subject{
		{"empty", "an empty Go program", "", s.starts(nil, r.empty)},
		{"bare", "the SDK's bare server", "", s.serves(r.bare)},
		{"version", "`reprise --version`", "empty", s.starts(nil, r.reprise, "--version")},
		{"mcp", "`reprise mcp` to `tools/list` answered and its end", "bare", s.serves(r.reprise, "mcp")},
		{"before-tool", "`reprise-hook` before a tool", "empty", hook("PreToolUse")},
		{"before-tool-log", "the same with a log of 100 MB", "empty", old},
		{"before-tool-8k", "the same for a command of 8 kB", "empty", s.starts(long, r.hook, "claude", "PreToolUse")},
		{"after-tool", "`reprise-hook` after a tool", "empty", hook("PostToolUse")},
		{"prompt", "`reprise-hook` at a prompt", "empty", hook("UserPromptSubmit")},
		{"session", "`reprise-hook` at a session's start", "empty", hook("SessionStart")},
		{"search", "`reprise recall` over 500 blocks", "version", s.starts(nil, r.reprise, "recall", "w5q w9q w300q")},
		{"queue", "`reprise queue list` of 1,000 items", "version", s.starts(nil, r.reprise, "queue", "list", "--json", "--limit", "50")},
		{"tasks", fmt.Sprintf("`reprise task list` of %d tasks", taskLong), "version", tasks.starts(nil, r.reprise, "task", "list", "--json")},
	}, nil
}

// longLog is a hook before a tool in a project whose log is that long.
func (r *rig) longLog(size int64) (func() (*os.ProcessState, error), error) {
	s, err := r.newShop("long-log")
	if err != nil {
		return nil, err
	}
	hook := s.starts(hookPayload(s.dir, "PreToolUse", "go test ./..."), r.hook, "claude", "PreToolUse")
	if err := s.planned(hook); err != nil {
		return nil, err
	}
	return hook, grow(filepath.Join(s.home, "projects", "shop", "events"), size)
}

// A fifth of a year of work: so many events of one project and blocks of memory.
const (
	yearEvents = 20_000
	yearBlocks = 2_000
)

// subjectsOfAYear are hooks that ask an index of much.
func (r *rig) subjectsOfAYear() ([]subject, error) {
	s, err := r.newShop("year")
	if err != nil {
		return nil, err
	}
	if err := writeLog(filepath.Join(s.home, "projects", "shop", "events"), yearEvents, time.Now()); err != nil {
		return nil, err
	}
	if err := writeNotes(filepath.Join(s.home, "memory"), yearBlocks); err != nil {
		return nil, err
	}
	if _, err := s.run(r.reprise, "index", "rebuild"); err != nil {
		return nil, err
	}
	session := 0
	hook := func(event, more string) func() (*os.ProcessState, error) {
		return func() (*os.ProcessState, error) {
			session++ // each is one that was told nothing yet
			in := fmt.Appendf(nil, `{"session_id":"5a13438d-5a8e-41c4-808c-%012d","transcript_path":"/home/dev/.claude/projects/x/y.jsonl","cwd":%q,"permission_mode":"default","hook_event_name":%q%s}`, session, s.dir, event, more)
			return s.starts(in, r.hook, "claude", event)()
		}
	}
	start := hook("SessionStart", `,"source":"startup"`)
	if err := s.planned(start); err != nil {
		return nil, err
	}
	for range 3 { // what other sessions left is organised before, as it is at the end of every turn
		if _, err := hook("Stop", `,"stop_hook_active":false,"last_assistant_message":"done"`)(); err != nil {
			return nil, err
		}
	}
	where := fmt.Sprintf(", %d events and %d blocks", yearEvents, yearBlocks)
	return []subject{
		{"year-session", "a session's start" + where, "empty", start},
		{"year-prompt", "a prompt" + where, "empty", hook("UserPromptSubmit", `,"prompt_id":"6dff36d8","prompt":"the cart shows name7 as undefined after the feature, why does the page say so"`)},
		{"year-failure", "a tool that failed as before" + where, "empty", hook("PostToolUseFailure", `,"tool_name":"Bash","tool_input":{"command":"go test ./internal/p7"},"tool_use_id":"t1","error":"Exit code 1\n./x7.go:7:3: undefined: name7"`)},
	}, nil
}

// subjectsOfState are what entries by the thousand cost: each beside the same with ten.
func (r *rig) subjectsOfState() ([]subject, error) {
	var out []subject
	for _, p := range []struct {
		name, of string
		entries  int
	}{{"few", "", stateFew}, {"many", "few", stateEntries}} {
		s, err := r.stateProject("kept-"+p.name, p.entries)
		if err != nil {
			return nil, err
		}
		sh := &shop{r: r, dir: s.work, env: s.env}
		data, err := os.ReadFile(filepath.Join(s.work, "side0"))
		if err != nil {
			return nil, err
		}
		in := fmt.Appendf(nil, `{"session_id":"5a13438d-5a8e-41c4-808c-000000000001","transcript_path":"/x/y.jsonl","cwd":%q,"hook_event_name":"SessionStart","source":"startup"}`, s.work)
		merge := sh.starts(nil, r.reprise, "merge-driver", filepath.Join(s.work, "base"), filepath.Join(s.work, "ours"), filepath.Join(s.work, "side1"), "changelog.md")
		of := func(what string) string {
			if p.of == "" {
				return ""
			}
			return what + p.of
		}
		log := fmt.Sprintf(" of %d entries", p.entries)
		out = append(out,
			subject{"state-start-" + p.name, "a session's start beside a log" + log, of("state-start-"), sh.starts(in, r.hook, "claude", "SessionStart")},
			subject{"state-merge-" + p.name, "`reprise merge-driver` of two logs" + log, of("state-merge-"), func() (*os.ProcessState, error) {
				if err := os.WriteFile(filepath.Join(s.work, "ours"), data, 0o600); err != nil {
					return nil, err
				}
				return merge()
			}})
	}
	return out, nil
}

// hookPayload is what a client says at an event about a command.
func hookPayload(dir, event, command string) []byte {
	return fmt.Appendf(nil, `{"session_id":"5a13438d-5a8e-41c4-808c-4bfdd26a2a8d","transcript_path":"/none.jsonl","cwd":%q,"permission_mode":"default","source":"startup","prompt":"w5q w9q please","hook_event_name":%q,"tool_name":"Bash","tool_input":{"command":%q},"tool_use_id":"toolu_1","tool_response":{"stdout":"ok","stderr":"","interrupted":false}}`, dir, event, command)
}

// planned runs a hook until there is a plan for hooks, which lasts once the programs that
// it names are two seconds old.
func (s *shop) planned(hook func() (*os.ProcessState, error)) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if _, err := hook(); err != nil {
			return err
		}
		if plans, _ := filepath.Glob(filepath.Join(s.home, "cache", "hooks", "*.plan")); len(plans) > 0 { // the pattern is right
			return nil
		}
	}
	return errors.New("no plan for hooks was made within a minute")
}

// gitOfItem is how often git is started for an item of the loop that has a worktree: counted
// by a stand-in on the PATH, over what a loop without items starts.
func (r *rig) gitOfItem() (float64, error) {
	const items = 8
	s, err := r.newShop("git")
	if err != nil {
		return 0, err
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return 0, err
	}
	bin, log := filepath.Join(r.dir, "git", "bin"), filepath.Join(r.dir, "git", "log")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(bin, "git"), fmt.Appendf(nil, "#!/bin/sh\necho x >> %q\nexec %q \"$@\"\n", log, git), 0o700); err != nil {
		return 0, err
	}
	s.env = slices.DeleteFunc(s.env, func(v string) bool { return strings.HasPrefix(v, "PATH=") })
	s.env = append(s.env, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	loop := func() (int, error) {
		if err := os.WriteFile(log, nil, 0o600); err != nil {
			return 0, err
		}
		if _, err := s.run(r.reprise, "loop", "run", "--agent", "script", "--until-empty", "--delay", "0s", "--workers", "1", "-q"); err != nil {
			return 0, err
		}
		data, err := os.ReadFile(log)
		return strings.Count(string(data), "x"), err
	}
	base, err := loop()
	if err != nil {
		return 0, err
	}
	if err := s.add("item", items); err != nil {
		return 0, err
	}
	all, err := loop()
	if err != nil {
		return 0, err
	}
	if err := s.done(items); err != nil {
		return 0, err
	}
	return float64(all-base) / items, nil
}
