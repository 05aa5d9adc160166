// Command past gives a project the weeks before today, for the dashboard's pictures and
// tests: sessions of several clients and agents, runs, and what memory learnt from them.
//
// What it writes, it writes by the log's own broker with a clock that goes through the
// days, and the runs as their supervisors do. The same numbers come out each time.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"reprise/internal/agent"
	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/event/quick"
	"reprise/internal/learn"
	"reprise/internal/recall"
	"reprise/internal/run"
	"reprise/internal/task"
)

func main() {
	if err := work(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "past:", err)
		os.Exit(1)
	}
}

type past struct {
	ctx     context.Context
	dir     string // of the project's data
	project string
	at      time.Time
	dice    *rand.Rand
	// hookDice is apart from dice: what happens stays the same, whatever hooks take.
	hookDice *rand.Rand
	broker   *event.Broker
	who      event.Event
	events   int
}

func work(ctx context.Context) error {
	home := flag.String("home", "", "reprise's data `DIRECTORY`")
	project := flag.String("project", "shop", "`NAME` of the project")
	days := flag.Int("days", 28, "how many days back it begins")
	events := flag.Int("events", 0, "at least so many events in all")
	tasks := flag.Int("tasks", 0, "so many tasks in the list of the project in the working directory")
	flag.Parse()
	if *home == "" {
		return fmt.Errorf("--home is required")
	}
	p := &past{ctx: ctx, dir: filepath.Join(*home, "projects", *project), project: *project, dice: rand.New(rand.NewPCG(7, 28)), hookDice: rand.New(rand.NewPCG(7, 29))}
	p.broker = event.NewBroker(event.BrokerOptions{Events: func(string) string { return filepath.Join(p.dir, "events") }, Host: "ada", Now: func() time.Time { return p.at }})
	now := time.Now()
	for d := *days; d > 0; d-- {
		p.at = time.Date(now.Year(), now.Month(), now.Day()-d, 8, 0, 0, 0, now.Location())
		if err := p.day(*days-d, *days); err != nil {
			return err
		}
	}
	for n := 0; p.events < *events; n++ {
		p.at = time.Date(now.Year(), now.Month(), now.Day()-1-n%max(*days, 1), 20, 0, 0, 0, now.Location())
		if err := p.session(*days-1, *days, fmt.Sprintf("more-%d", n)); err != nil {
			return err
		}
	}
	if *tasks > 0 {
		return manyTasks(ctx, *tasks)
	}
	return nil
}

// hookTimes are the least that hooks take, by what they record.
var hookTimes = map[event.Type]time.Duration{
	event.SessionStarted: 3 * time.Millisecond, event.SessionEnded: 3 * time.Millisecond, event.PromptSubmitted: 2 * time.Millisecond,
	event.ToolCalled: 2500 * time.Microsecond, event.ToolSucceeded: 1500 * time.Microsecond, event.ToolFailed: 2 * time.Millisecond, event.ResponseCompleted: 4 * time.Millisecond,
}

// chance says yes so often, of 100.
func (p *past) chance(percent int) bool { return p.dice.IntN(100) < percent }

func (p *past) day(n, of int) error {
	if n == of/3 || n == of*3/4 {
		if err := p.policy(n > of/2); err != nil {
			return err
		}
	}
	if p.at.Weekday() == time.Sunday {
		return nil
	}
	for i := range 2 + p.dice.IntN(3) {
		if err := p.session(n, of, fmt.Sprintf("s%02d-%d", n, i)); err != nil {
			return err
		}
		p.at = p.at.Add(time.Duration(20+p.dice.IntN(60)) * time.Minute)
	}
	return nil
}

func (p *past) add(typ event.Type, outcome, parent string, data any) (event.Event, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return event.Event{}, err
	}
	e := p.who
	e.Scope, e.Project, e.Type, e.Outcome, e.Parent, e.Data = event.ScopeSession, p.project, typ, outcome, parent, raw
	if typ == event.PolicyChanged {
		e.Scope, e.Session = event.ScopeProject, ""
	}
	if base, ok := hookTimes[typ]; ok {
		took := base + time.Duration(p.hookDice.IntN(int(base)))
		if p.hookDice.IntN(25) == 0 { // the plan was stale, and the full program did it
			took += 25 * time.Millisecond
		}
		e.Data = quick.WithHookTime(e.Data, took)
	}
	p.events++
	return p.broker.Record(p.ctx, e)
}

// session is one session from its start to its end; the later it is, the better it goes.
func (p *past) session(n, of int, name string) error {
	better := 30 * n / of
	clients := []string{"claude", "claude", "claude", "codex", "codex", "gemini"}
	agents := []string{"tidy", "tidy", "docs", "api"}
	p.who = event.Event{Session: name, Client: clients[p.dice.IntN(len(clients))], Agent: agents[p.dice.IntN(len(agents))], Role: "musician"}
	start, err := p.add(event.SessionStarted, "", "", event.SessionData{Source: "startup", Cwd: "/home/ada/shop"})
	if err != nil {
		return err
	}
	if err := p.told(start, "session_start", 250+p.dice.IntN(300)); err != nil {
		return err
	}
	for range 1 + p.dice.IntN(3) {
		p.at = p.at.Add(time.Minute)
		prompt, err := p.add(event.PromptSubmitted, "", "", event.PromptData{Text: pick(p, "Make the port a setting", "Why does the deploy fail?", "Write the tests for the parser", "Tidy the imports")})
		if err != nil {
			return err
		}
		if err := p.told(prompt, "prompt", 60+p.dice.IntN(200)); err != nil {
			return err
		}
		if err := p.calls(better); err != nil {
			return err
		}
		if p.chance(45 + better) {
			for _, id := range []string{"e-port", "e-deploy"} {
				if _, err := p.add(event.RecallUsed, "", prompt.ID, event.UsedData{ID: id, How: "mentioned"}); err != nil {
					return err
				}
			}
		}
		if _, err := p.add(event.ResponseCompleted, "success", prompt.ID, event.ResponseData{Text: "Done: the port stands in one place now."}); err != nil {
			return err
		}
	}
	verdict, outcome := "passed", "success"
	if !p.chance(60 + better) {
		verdict, outcome = "failed", "failure"
	}
	if _, err := p.add(event.VerificationFinished, outcome, "", event.VerificationData{ID: "v-" + name, Status: verdict, DurationMS: 4200}); err != nil {
		return err
	}
	if err := p.run(name, verdict == "passed" || p.chance(40)); err != nil {
		return err
	}
	_, err = p.add(event.SessionEnded, "", "", event.SessionData{Reason: "exit"})
	return err
}

func pick(p *past, texts ...string) string { return texts[p.dice.IntN(len(texts))] }

// told is what was remembered where a client waited for it.
func (p *past) told(parent event.Event, at string, tokens int) error {
	p.at = p.at.Add(time.Duration(9+p.dice.IntN(30)) * time.Millisecond)
	_, err := p.add(event.RecallServed, "", parent.ID, event.ServedData{At: at, Query: "port of billing", Tokens: tokens, Policy: "default", Items: []event.ServedItem{
		{ID: "e-port", Class: "learning", Score: .8, Tokens: tokens / 2}, {ID: "e-deploy", Class: "decision", Score: .6, Tokens: tokens / 2},
	}})
	return err
}

func (p *past) calls(better int) error {
	for range 2 + p.dice.IntN(4) {
		p.at = p.at.Add(20 * time.Second)
		command := pick(p, "go test ./...", "make deploy-staging", "git status", "terraform plan", "go vet ./internal/web")
		id := fmt.Sprintf("use-%d", p.events)
		input := json.RawMessage(fmt.Sprintf(`{"command":%q}`, command))
		if _, err := p.add(event.ToolCalled, "", "", event.ToolData{Tool: "shell", Name: "Bash", ID: id, Input: input}); err != nil {
			return err
		}
		verdict, by, rule := "allow", "guard", ""
		if command == "make deploy-staging" || command == "terraform plan" {
			verdict, rule = "ask", "unknown-program"
		}
		if _, err := p.add(event.PermissionDecided, "", "", map[string]any{"use_id": id, "tool": "shell", "name": "Bash", "verdict": verdict, "by": by, "rule": rule, "reason": "", "commands": []string{command}}); err != nil {
			return err
		}
		if p.chance(60-better) && command == "go test ./..." {
			for range 1 + p.dice.IntN(2) {
				if _, err := p.add(event.ToolFailed, "failure", "", event.ToolData{Tool: "shell", Name: "Bash", ID: id, Input: input, Error: "FAIL: TestPort: want 6543, got 8080"}); err != nil {
					return err
				}
				p.at = p.at.Add(30 * time.Second)
				if _, err := p.add(event.ToolCalled, "", "", event.ToolData{Tool: "shell", Name: "Bash", ID: id + "b", Input: input}); err != nil {
					return err
				}
			}
			id += "b"
		}
		if _, err := p.add(event.ToolSucceeded, "success", "", event.ToolData{Tool: "shell", Name: "Bash", ID: id, Input: input, Output: "ok"}); err != nil {
			return err
		}
	}
	return nil
}

// run is the record of the run that the session was.
func (p *past) run(name string, good bool) error {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	id := []byte("run-")
	for range 10 {
		id = append(id, letters[p.dice.IntN(len(letters))])
	}
	dir := filepath.Join(p.dir, "runs", string(id))
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	end := p.at.UTC()
	start := end.Add(-time.Duration(2+p.dice.IntN(20)) * time.Minute)
	code, status, reason := 0, run.Completed, ""
	if !good {
		code, status, reason = 1, run.Failed, "the tests do not pass"
	}
	r := run.Record{V: 1, ID: string(id), Status: status, StatusReason: reason, StatusUpdatedAt: end, StartedAt: start, StartEpoch: start.Unix(), EndedAt: &end,
		Client: p.who.Client, SessionID: name, Project: p.project, WorkDir: "/home/ada/shop", Origin: "loop", Detached: true, DelegationPath: []string{}, ExitCode: &code,
		Logs: run.Logs{Stdout: filepath.Join(dir, "stdout.jsonl"), Stderr: filepath.Join(dir, "stderr.log")}, Heartbeat: run.Heartbeat{ToolCalls: 12, LastTool: "Bash", Tokens: int64(9000 + p.dice.IntN(40000))}}
	res := agent.Result{OK: good, Text: "Done: the port stands in one place now.", NumTurns: 8, CostUSD: .08 + p.dice.Float64()*.6, Tools: map[string]int{"Bash": 7, "Edit": 3, "Read": 2}}
	task := pick(p, "Make the port a setting", "Write how to deploy", "Look at the slow test", "Tidy the old branches")
	for file, v := range map[string]any{"run.json": r, "result.json": res, "prompt.md": task, "stdout.jsonl": "", "stderr.log": ""} {
		data, ok := v.(string)
		if !ok {
			raw, err := json.MarshalIndent(v, "", "  ")
			if err != nil {
				return err
			}
			data = string(raw)
		}
		if err := durable.WriteFile(filepath.Join(dir, file), []byte(data), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// policy is a change of what recall ranks by, with the replay that spoke for it.
func (p *past) policy(second bool) error {
	v := recall.DefaultPolicy()
	c := learn.PolicyChange{V: 1, Op: learn.PolicyLearnt, For: learn.PolicyScope{Project: p.project}, Version: 1, Parent: "default",
		Reason: "what was used stood nearer the top, with fewer tokens of what was not",
		Replay: &learn.Replay{Recalls: 60, Uses: 34, From: p.at.AddDate(0, 0, -9), To: p.at, Candidates: 22, Before: learn.Score{Total: .5123, Gain: .6011, Tokens: 312, Margin: .081}, After: learn.Score{Total: .5480, Gain: .6204, Tokens: 268, Margin: .096}}}
	v.Threshold *= 1.1
	if second {
		c.Version, c.Replay.Before, c.Replay.After = 2, c.Replay.After, learn.Score{Total: .5711, Gain: .6390, Tokens: 255, Margin: .102}
		v.Diversity *= .95
		v.Budget["learning"] = v.Budget["learning"] * 11 / 10
	}
	c.Policy = &v
	_, err := p.add(event.PolicyChanged, "", "", c)
	return err
}

// manyTasks fills the list of tasks of the project in the working directory.
func manyTasks(ctx context.Context, n int) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	_, err = task.New(dir, task.Options{Now: time.Now}).Change(ctx, func(b *task.Board) error {
		for i := range n {
			title, priority := fmt.Sprintf("Look into what came in as number %d", i+1), []string{"low", "medium", "high"}[i%3]
			if _, err := b.Add(task.Draft{Title: &title, Priority: &priority}); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
