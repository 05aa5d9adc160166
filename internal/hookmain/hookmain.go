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
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/config/place"
	"reprise/internal/event/quick"
	"reprise/internal/guard"
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
	// maxOutput bounds what the full program may answer.
	maxOutput = 1 << 20
	// reserve is kept of a deadline for saying what went wrong.
	reserve = 100 * time.Millisecond
	// lockPatience is how long a log's lock is waited for before the event is
	// put aside.
	lockPatience = 700 * time.Millisecond
	// longLimit bounds a hook for which a plan has to be made.
	longLimit = 5 * time.Second
)

// Main runs the program and returns its exit code. Events are recorded by now;
// the program's own time is the machine's.
func Main(args []string, now func() time.Time) (code int) {
	if len(args) != 2 {
		_, _ = os.Stderr.WriteString(usage)
		return exitUsage
	}
	// What the runtime itself cannot survive (no memory, no thread, no file to be
	// had) ends the process past every recover, with code 2 by default. As a
	// signal it is no verdict in any client.
	debug.SetTraceback("crash")
	noCore()
	wide()
	p := &program{client: args[0], event: args[1], began: time.Now(), env: place.Env{Now: now}, out: os.Stdout}
	defer func() {
		if r := recover(); r != nil {
			p.warn("the hook failed; please report this", errors.New(panicText(r)))
			p.refuse("the hook failed at this call")
			code = 0
		}
	}()
	p.env = place.Env{Vars: place.ParseVars(os.Environ(), runtime.GOOS), GOOS: runtime.GOOS, Now: now}
	p.disown()
	if hook.Nested(p.env.Get) {
		return 0
	}
	p.limit = time.Duration(dialect.DeadlineMS(p.client, p.event)) * time.Millisecond
	p.run()
	return 0
}

// wide makes room on the stack at once. Growing it by doubling has the runtime look
// up every function that is on it, each time, in tables that nothing else touches.
//
//go:noinline
func wide() byte {
	var room [17 << 10]byte
	return room[len(os.Args)]
}

// disown takes out of the environment what the session's project put there.
func (p *program) disown() {
	dirs := []string{p.env.Get("CLAUDE_PROJECT_DIR"), p.env.Get("GEMINI_PROJECT_DIR")}
	if wd, _ := os.Getwd(); !slices.Contains(dirs, wd) { // where it is gone, the client names one
		dirs = append(dirs, wd)
	}
	for _, dir := range dirs {
		p.imposed = append(p.imposed, place.Disown(p.client, p.env.Vars, dir)...)
	}
	for _, i := range p.imposed {
		_ = os.Unsetenv(i.Name) // it fails for names that no environment has
	}
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
	start         string     // where the session lives
	plan          *plan.Plan // one that holds
	old           *plan.Plan // one that held before
	guard         *hook.Guarding
	imposed       []place.Imposed // variables that a repository's files set, and that are not heeded
	said          bool            // the client has its answer
	answered      bool            // the full program judged the event, and had nothing to say or said it
	counted       bool            // what the session does itself was counted
	mark          string          // of what was cut of the payload
	out           *os.File
}

// took is how long the hook has taken.
func (p *program) took() time.Duration { return time.Since(p.began) }

// left is how long the hook may still take.
func (p *program) left() time.Duration { return p.limit - time.Since(p.began) }

func (p *program) run() {
	dirs, lost := place.Find(p.env)
	p.dirs = dirs
	if lost != nil {
		p.warn("there is no place for the event, so it is not recorded", lost)
	}
	input, mark, err := readInput(os.Stdin, p.left()-reserve)
	if err != nil {
		p.warn("the event could not be read, so it is not recorded", err)
		p.refuse("the call could not be read")
		return
	}
	p.mark = mark
	ev, err := dialect.Parse(p.client, p.event, input)
	if err != nil {
		p.warn("the event could not be understood, so it is not recorded", err)
		p.refuse("the call could not be understood")
		return
	}
	if ev.Kind == dialect.Other || ev.Kind == dialect.Notification {
		return
	}
	if ev.Kind == dialect.SessionStart {
		for _, i := range p.imposed {
			p.warn("a variable that the repository sets is not heeded: it would decide for the user", errors.New(i.Name+" in "+i.File))
		}
	}
	ev.CutMark = mark
	hook.AddExit(&ev)
	if p.env.Dir, err = os.Getwd(); err != nil {
		p.env.Dir = "" // it is gone; the payload may name one that is there
	}
	host, _ := os.Hostname() // "" is a name like others for the log
	host = quick.HostName(host)
	p.start = hook.SessionDir(p.dirs.State, &ev, p.env.Get, p.env.Dir, p.warn)
	if lost != nil {
		p.placeless(ev)
		return
	}
	key := plan.Key{Dir: p.start, Vars: plan.Vars(place.Vars(), p.env.Get)}
	known, err := plan.Load(p.dirs.Cache, key, host)
	if err != nil {
		p.old = known
		p.guard = p.guarding(known)
		p.limit = p.unplanned(ev.Kind)
		p.handOver(&ev, input, 0)
		return
	}
	p.plan = known
	if ms := p.plan.Rules.DeadlineMS; ms > 0 {
		p.limit = min(p.limit, time.Duration(ms)*time.Millisecond)
	}
	if r := &p.plan.Rules; r.Gates(string(ev.Kind)) {
		// The client grants what setup told it, which is more.
		p.limit = max(p.limit, time.Duration(min(r.GateMS, dialect.GateMS(p.client, p.event)))*time.Millisecond)
	}
	p.hot(&ev, input)
}

// placeless judges a call where nobody can tell which rules there are: what the built-in
// ones refuse is refused.
func (p *program) placeless(ev dialect.Event) {
	if !hook.Judges(ev.Kind) {
		return
	}
	p.guard = p.guarding(nil)
	p.guard.Broken = "there is no place for reprise's files"
	j := p.guard.Judge(context.Background(), ev)
	p.say(dialect.Encode(ev, j.Decision).Stdout)
}

// unplanned is the limit of a hook for which a plan has to be made. Whether an end of a
// turn has a gate, and how long a call waits for a person, is not known then: the full
// program, which knows, takes no longer than that.
func (p *program) unplanned(kind dialect.Kind) time.Duration {
	limit := max(p.limit, p.patience(), time.Duration(dialect.GateMS(p.client, p.event))*time.Millisecond)
	if hook.Judges(kind) {
		limit = max(limit, hook.Longest(p.client, p.event))
	}
	return limit
}

// patience is how long the client can be kept waiting where that is rare: when a
// plan has to be made.
func (p *program) patience() time.Duration {
	if m := dialect.ManifestOf(p.client); m != nil {
		if e := m.Event(p.event); e != nil && e.ClientMS >= 10_000 {
			return longLimit
		}
	}
	return 0
}

// hot does what can be done here and hands the rest over.
func (p *program) hot(ev *dialect.Event, input []byte) {
	broker := p.broker(p.plan)
	r := &hook.Router{Rules: &p.plan.Rules, Recorder: broker, Together: broker.RecordAll, Warn: p.warn, Who: p.who(p.plan, ev), State: p.dirs.State, Took: p.took}
	if hook.Judges(ev.Kind) {
		p.guard = p.guarding(p.plan)
		r.Guard, r.Unsettled = p.guard, p.guard.Rules.Full && !p.guard.Rules.Warn
	}
	r.Delegation = hook.Delegates(p.plan, r.Who.Role)
	d, err := r.Route(quick.Within(time.Now, min(p.left()/2, lockPatience)), *ev)
	if err != nil {
		p.handOver(ev, input, r.Done)
		return
	}
	// Where nobody is there to be asked, the guard's own refusal came first.
	refused := r.Judged.Decision.Permission == dialect.Deny
	p.counted = !refused
	if r.Unsettled && (refused || d.Permission != dialect.Deny) && r.Judged.Verdict.Decision == guard.Ask {
		// Somebody else may know, and that takes time.
		p.limit = max(p.limit, p.guard.Patience(*ev))
		p.handOver(ev, input, r.Done)
		return
	}
	if p.plan.Rules.On(string(ev.Kind), ev.Client, r.Who.Role) {
		pending := ev.Kind != dialect.ToolBefore && broker.Pending() // a tool is not kept waiting for it
		switch {
		case !pending && plan.Has(p.plan.Tell, string(ev.Kind), ev.Tool) && p.recall(input):
			return
		case pending || plan.Has(p.plan.Hand, string(ev.Kind), ev.Tool):
			p.handOver(ev, input, r.Done)
			return
		}
	}
	p.say(dialect.Encode(*ev, d).Stdout)
}

// guarding is the guard by a plan's rules.
func (p *program) guarding(known *plan.Plan) *hook.Guarding {
	home, _ := p.env.Home() // unknown, a path through it is outside
	return hook.GuardBy(known, p.start, home, p.env.Get)
}

// refuse answers a call that cannot be judged: silence would let the tool run.
func (p *program) refuse(what string) {
	if p.said {
		return
	}
	g := p.guard
	if g == nil {
		g = &hook.Guarding{Get: p.env.Get}
	}
	p.say(g.Refusal(p.client, p.event, what))
}

func (p *program) broker(known *plan.Plan) *quick.Broker {
	return &quick.Broker{
		Events: func(string) string { return known.Events },
		Outbox: filepath.Join(known.Data, "outbox"),
		Host:   known.Host, Now: p.env.Now, Mark: p.mark,
		Back: func(before, now time.Time) { p.warn(hook.ClockBack, errors.New(quick.BackText(before, now))) },
	}
}

func (p *program) who(known *plan.Plan, ev *dialect.Event) hook.Who {
	return hook.Who{
		Project: known.Project, Run: p.env.Get(hook.RunVar), Agent: p.env.Get(hook.AgentVar),
		Role: hook.Role(p.dirs.State, ev, p.env.Get, p.warn),
	}
}

// say prints an answer, in one write and only whole.
func (p *program) say(answer []byte) {
	if len(answer) == 0 {
		return
	}
	p.said = true
	if _, err := p.out.Write(answer); err != nil {
		p.warn("the client did not take the answer", err)
	}
}

// recall has the recall program say what is remembered at an event that is
// recorded, and reports whether there is nothing left to do: the program may find
// that it is the full one's business, not be there, or be broken, damaged or of
// another version, and then the full one does it while there is time. It is a third
// of the full program's start.
func (p *program) recall(input []byte) bool {
	if p.env.Get(hook.RunVar) != "" {
		return false // what a run may read, only the full program knows
	}
	path := p.beside("reprise-recall", "")
	left := p.left() - reserve
	if path == "" || p.env.Dir == "" || left <= 0 {
		return false
	}
	out, exit, err := handover.Do(handover.Call{
		Path: path, Args: []string{strconv.FormatInt(left.Milliseconds(), 10), p.start, p.client, p.event},
		Env: os.Environ(), Input: input, MaxOutput: maxOutput, Timeout: left,
	})
	switch {
	case err == nil && exit == hook.ExitFull:
		return false
	case err == nil && exit != 0:
		err = errors.New(path + " ended with exit code " + strconv.Itoa(exit))
	case err == nil && !dialect.IsReply(out):
		err = errors.New(path + " printed " + strconv.Itoa(len(out)) + " bytes that are not one JSON object")
	}
	switch {
	case err == nil:
		p.say(out)
		return true
	case p.left() < p.limit/2:
		p.warn("nothing is said to the client, for what is remembered could not be had", err)
		return true
	}
	p.warn("the full program is asked what is remembered, for reprise-recall failed; install all programs from one release", err)
	return false
}

// handOver has the full program do the event, of which done lines are recorded
// already, and passes its answer on if it is one. The lines that are not have
// their ids from here: when nobody can tell whether they were recorded, they
// are put aside, and are then recorded if they were not.
func (p *program) handOver(ev *dialect.Event, input []byte, done int) {
	ids := quick.IDs{}
	at := p.env.Now().UTC().Round(0)
	lines := len(hook.Events(ev, hook.Who{}))
	if hook.Judges(ev.Kind) {
		lines++ // what is decided
	}
	lineIDs := make([]string, lines)
	args := []string{"hook", "--cut-mark=" + p.mark, "--done=" + strconv.Itoa(done), "--at=" + at.Format(time.RFC3339Nano), "--began-us=" + strconv.FormatInt(p.began.UnixMicro(), 10)}
	if p.counted {
		args = append(args, "--counted")
	}
	for i := range lineIDs {
		lineIDs[i] = ids.Next(at)
		args = append(args, "--id="+lineIDs[i])
	}
	err := p.ask(args, input)
	if err == nil {
		return
	}
	p.warn("the event was not dealt with in full", err)
	var judged hook.Judged
	if p.guard != nil && (p.plan != nil || !p.answered) {
		// The guard says by itself what can be said here: silence would let the
		// tool run. Without a plan that holds it does not know what the user forbids.
		// What the full program did judge, it judged by the settings that there are.
		if p.plan == nil {
			p.guard.Broken = "the settings could not be looked at: " + err.Error()
		}
		judged = p.guard.Judge(context.Background(), *ev)
		if !p.said && !p.answered {
			p.say(dialect.Encode(*ev, judged.Decision).Stdout)
		}
	}
	known := p.plan
	if known == nil {
		known = p.old
	}
	if known == nil {
		p.warn("the event was not recorded", errors.New("it is not known yet where the events of "+p.start+" belong"))
		return
	}
	if err := p.putAside(known, ev, judged, lineIDs, done, at); err != nil {
		p.warn("the event was not recorded, and could not be put aside either", err)
	}
}

// putAside puts the lines of an event that are not in the log into the outbox: all
// but the first done. Nobody looked for secrets in them, so what may hold one is
// left out.
func (p *program) putAside(known *plan.Plan, ev *dialect.Event, judged hook.Judged, ids []string, done int, at time.Time) error {
	b := p.broker(known)
	b.Withhold = true
	who := p.who(known, ev)
	var lines []quick.Event
	if known.Rules.Record && known.Rules.Records(ev.Tool, ev.Kind == dialect.ToolFailed) && known.Rules.On(string(ev.Kind), ev.Client, "") {
		lines = hook.Events(ev, who)
	}
	if e, ok := judged.Line(ev, who); ok && known.Rules.Record {
		lines = append(lines, e)
	}
	for i, e := range lines {
		if i < done || i >= len(ids) {
			continue
		}
		if i == 0 && !p.began.IsZero() {
			e.Data = quick.WithHookTime(e.Data, p.took())
		}
		e.ID, e.TS, e.Parent = ids[i], at, hook.Parent(p.dirs.State, ev)
		if err := b.Prepare(&e); err != nil {
			return err
		}
		l := b.Log(&e)
		line, err := l.Line(&e)
		if err != nil {
			return err
		}
		if b.Waits(e.ID) { // put there by the full program, which looked for secrets
			continue
		}
		if err := b.Put(l, &e, line, errUnanswered); err != nil {
			return err
		}
	}
	return nil
}

var errUnanswered = errors.New("the full program did not answer")

var errNoProgram = errors.New("there is no program reprise beside reprise-hook, and none is known from an earlier time; install both")

// mostReplace is how long a program that is not there, or not whole, is waited for.
const mostReplace = 3 * time.Second

// whilePut tries to start the full program until it is there and whole, for as long
// as half of the time allows: right after an install it may be put in place again,
// and before there is a plan nobody else knows where an event belongs. What a try
// that began to run came to is not tried again.
func (p *program) whilePut(try func() error) error {
	end := time.Now().Add(min((p.left()-reserve)/2, mostReplace))
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := try()
		if !beingPut(err) || !time.Now().Add(wait).Before(end) {
			return err
		}
		time.Sleep(wait)
	}
}

// beingPut says that a program could not be started because it is not there, is
// being written or has not its rights yet.
func beingPut(err error) bool {
	for _, e := range [...]error{errNoProgram, os.ErrNotExist, os.ErrPermission, syscall.ETXTBSY, syscall.ENOEXEC} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// ask starts the full program and prints its answer.
func (p *program) ask(args []string, input []byte) error {
	var path string
	var out []byte
	var exit int
	err := p.whilePut(func() (err error) {
		if path = p.full(); path == "" {
			return errNoProgram
		}
		left := p.left() - reserve
		if left <= 0 {
			return handover.ErrTime
		}
		dir := ""
		if p.env.Dir == "" {
			dir = filepath.Dir(path) // nothing starts in a directory that is gone
		}
		out, exit, err = handover.Do(handover.Call{
			Path: path, Dir: dir, Env: os.Environ(), Input: input, MaxOutput: maxOutput, Timeout: left,
			Args: append(slices.Clone(args), "--deadline-ms="+strconv.FormatInt(left.Milliseconds(), 10), "--dir="+p.start, "--", p.client, p.event),
		})
		return err
	})
	switch {
	case err != nil:
		return err
	case exit == hook.ExitAnswered && (len(out) == 0 || dialect.IsReply(out)):
		p.answered = true
		p.say(out)
		return errors.New("reprise could not record it; its log says why, if that can be written")
	case exit == hook.ExitUnrecorded:
		if len(out) > 0 && dialect.IsReply(out) {
			p.say(out)
		}
		return errors.New("reprise could not deal with it; its log says why, if that can be written")
	case exit != 0:
		return errors.New(path + " ended with exit code " + strconv.Itoa(exit))
	}
	if !dialect.IsReply(out) {
		return errors.New(path + " printed " + strconv.Itoa(len(out)) + " bytes that are not one JSON object")
	}
	p.say(out)
	return nil
}

// full is the full program: beside this one, else where it was when a plan was
// made.
func (p *program) full() string {
	for _, known := range [...]*plan.Plan{p.plan, p.old} {
		if known != nil {
			return p.beside("reprise", known.Program)
		}
	}
	return p.beside("reprise", "")
}

// beside is a program of that name in this one's directory, else the other one,
// or "" where neither is there.
func (p *program) beside(name, other string) string {
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
	if other != "" && plan.See(other).Kind == plan.File {
		return other
	}
	return ""
}
