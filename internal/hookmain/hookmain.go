// Package hookmain is the hook program: reprise-hook CLIENT EVENT, started by a
// client at its events, with what happened on its standard input. It is apart
// from package cli so that the program links neither cobra nor SQLite nor a
// YAML parser; a rule test lists what it links, and docs/benchmarks.md says
// what that comes to.
//
// Whatever goes wrong here, the client goes on: no output and exit code 0 mean
// "no opinion" in every client. It writes the event log and the outbox
// (package event), one small file a session with its role, and lines of
// reprise's own log, and takes their locks.
package hookmain

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/config/place"
	"reprise/internal/event/quick"
	"reprise/internal/hook"
	"reprise/internal/hook/plan"
	"reprise/internal/proc/handover"
)

const usage = `reprise-hook is started by clients at their events, not by people:
  reprise-hook CLIENT EVENT     CLIENT is claude, codex, gemini or copilot
"reprise setup" puts it into the clients' settings; for everything else there is reprise.
`

const (
	// exitUsage is EX_USAGE of sysexits.h. 2 would block a tool.
	exitUsage = 64
	// maxInput bounds what is read; the dialect's own limit is below it.
	maxInput = 64 << 20
	// maxOutput bounds what the full program may answer.
	maxOutput = 1 << 20
	// reserve is kept of a deadline for saying what went wrong.
	reserve = 100 * time.Millisecond
	// lockPatience is how long a log's lock is waited for before the event is
	// put aside.
	lockPatience = 700 * time.Millisecond
)

// Main runs the program and returns its exit code.
func Main(args []string) (code int) {
	if len(args) != 2 {
		_, _ = os.Stderr.WriteString(usage)
		return exitUsage
	}
	p := &program{client: args[0], event: args[1], began: time.Now(), out: os.Stdout}
	defer func() {
		if r := recover(); r != nil {
			p.warn("the hook failed and says nothing; please report this", errors.New(panicText(r)))
			code = 0
		}
	}()
	p.env = place.Env{Vars: place.ParseVars(os.Environ(), runtime.GOOS), GOOS: runtime.GOOS, Now: time.Now}
	if hook.Nested(p.env.Get) {
		return 0
	}
	p.limit = time.Duration(dialect.DeadlineMS(p.client, p.event)) * time.Millisecond
	p.run()
	return 0
}

func panicText(r any) string {
	switch v := r.(type) {
	case error:
		return v.Error()
	case string:
		return v
	}
	return "panic"
}

// program is one hook.
type program struct {
	client, event string
	began         time.Time
	limit         time.Duration
	env           place.Env
	dirs          place.Dirs
	start         string // where the session lives
	plan          *plan.Plan
	out           *os.File
}

// left is how long the hook may still take.
func (p *program) left() time.Duration { return p.limit - time.Since(p.began) }

func (p *program) run() {
	input, err := readInput(os.Stdin, maxInput, p.left()-reserve)
	if err != nil {
		p.warn("the event could not be read, so it is not recorded", err)
		return
	}
	ev, err := dialect.Parse(p.client, p.event, input)
	if err != nil {
		p.warn("the event could not be understood, so it is not recorded", err)
		return
	}
	if ev.Kind == dialect.Other || ev.Kind == dialect.Notification {
		return
	}
	if p.dirs, err = place.Find(p.env); err != nil {
		p.warn("there is no place for the event, so it is not recorded", err)
		return
	}
	if p.env.Dir, err = os.Getwd(); err != nil {
		p.env.Dir = "" // it is gone; the payload may name one that is there
	}
	host, _ := os.Hostname() // "" is a name like others for the log
	host = quick.HostName(host)
	p.start = hook.StartDir(&ev, p.env.Get, p.env.Dir)
	key := plan.Key{Dir: p.start, Vars: plan.Vars(place.Vars(), p.env.Get)}
	if p.plan, err = plan.Load(p.dirs.Cache, key, host); err != nil {
		p.handOver(&ev, input, 0)
		return
	}
	if ms := p.plan.Rules.DeadlineMS; ms > 0 {
		p.limit = min(p.limit, time.Duration(ms)*time.Millisecond)
	}
	p.hot(&ev, input)
}

// hot does what can be done here and hands the rest over.
func (p *program) hot(ev *dialect.Event, input []byte) {
	role := p.role(ev)
	broker := &quick.Broker{
		Events: func(string) string { return p.plan.Events },
		Outbox: filepath.Join(p.plan.Data, "outbox"),
		Host:   p.plan.Host, Now: time.Now,
	}
	r := &hook.Router{
		Rules: &p.plan.Rules, Recorder: broker, Warn: p.warn,
		Who: hook.Who{Project: p.plan.Project, Run: p.env.Get(hook.RunVar), Agent: p.env.Get(hook.AgentVar), Role: role},
	}
	d, err := r.Route(lockUntil(time.Now().Add(min(p.left()/2, lockPatience))), *ev)
	if err != nil {
		p.handOver(ev, input, r.Done)
		return
	}
	if p.plan.Rules.On(string(ev.Kind), ev.Client, role) {
		for _, k := range p.plan.Hand {
			if k == string(ev.Kind) {
				p.handOver(ev, input, r.Done)
				return
			}
		}
		if ev.Kind != dialect.ToolBefore && broker.Pending() { // the tool is not kept waiting for it
			p.handOver(ev, input, r.Done)
			return
		}
	}
	p.say(dialect.Encode(*ev, d).Stdout)
}

// say prints an answer, in one write and only whole.
func (p *program) say(answer []byte) {
	if len(answer) == 0 {
		return
	}
	if _, err := p.out.Write(answer); err != nil {
		p.warn("the client did not take the answer", err)
	}
}

// handOver has the full program do the event, of which done lines are recorded
// already, and passes its answer on if it is one.
func (p *program) handOver(ev *dialect.Event, input []byte, done int) {
	path := p.full()
	if path == "" {
		p.warn("the event was not dealt with in full", errors.New("there is no program reprise beside reprise-hook, and none is known from an earlier time; install both"))
		return
	}
	left := p.left() - reserve
	if left <= 0 {
		p.warn("the event was not dealt with in full", handover.ErrTime)
		return
	}
	dir := ""
	if p.env.Dir == "" {
		dir = filepath.Dir(path) // nothing starts in a directory that is gone
	}
	out, exit, err := handover.Do(handover.Call{
		Path: path, Dir: dir,
		Args: []string{"hook", "--done=" + strconv.Itoa(done), "--deadline-ms=" + strconv.FormatInt(left.Milliseconds(), 10),
			"--dir=" + p.start, "--", p.client, p.event},
		Env: os.Environ(), Input: input, MaxOutput: maxOutput, Timeout: left,
	})
	switch {
	case err != nil:
		p.warn("reprise did not answer, so nothing is said to the client", err)
	case exit != 0:
		p.warn("reprise failed, so nothing is said to the client", errors.New(path+" ended with exit code "+strconv.Itoa(exit)))
	case !dialect.IsReply(out):
		p.warn("reprise answered what is no answer, so nothing is said to the client", errors.New(path+" printed "+strconv.Itoa(len(out))+" bytes that are not one JSON object"))
	default:
		p.say(out)
	}
}

// full is the full program: beside this one, else where it was when a plan was
// made.
func (p *program) full() string {
	name := "reprise"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if self, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		path := filepath.Join(filepath.Dir(self), name)
		if plan.See(path).Kind == plan.File {
			return path
		}
	}
	if p.plan != nil && plan.See(p.plan.Program).Kind == plan.File {
		return p.plan.Program
	}
	return ""
}

// until is a context that ends at a time without a timer: what waits for a lock
// asks it again and again, and a timer would cost every hook a thread.
type until struct {
	context.Context
	at time.Time
}

func lockUntil(at time.Time) context.Context { return until{context.Background(), at} }

func (u until) Deadline() (time.Time, bool) { return u.at, true }

func (u until) Err() error {
	if time.Now().After(u.at) {
		return context.DeadlineExceeded
	}
	return nil
}
