package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"reprise/internal/agent"
	"reprise/internal/durable"
	"reprise/internal/proc"
	"reprise/internal/proc/confine"
)

const (
	// tick is how often the supervisor looks at the output and at requests.
	tick = 100 * time.Millisecond
	// heartbeatEvery is how often run.json is rewritten while only the
	// heartbeat changes.
	heartbeatEvery = 5 * time.Second
	// lineCap is the longest line that is parsed whole. The file has all of it.
	lineCap = 4 << 20
	// stderrTail is how much of standard error is shown with a failure.
	stderrTail = 8 << 10
)

// SuperviseOptions is the world of a supervisor.
type SuperviseOptions struct {
	Dir  string   // the run's directory
	Env  []string // its own environment, which the agent gets too, with the run's id
	Stop <-chan os.Signal
	Host string       // names the event file
	Disk durable.Disk // where it writes; the zero value is the machine's
	Now  func() time.Time
}

// supervisor is the one owner of a live run.
type supervisor struct {
	opt    SuperviseOptions
	r      Record
	stream agent.Stream
	tail   *proc.Tail
	child  *proc.Process
	output []*os.File // the agent's output, open so that it can be synced at the end
	bounds outputBounds
	given  []int64 // up to where each of output was given back to the disk

	unread   error           // why the agent's output could not be read further
	taken    map[string]bool // kinds of request whose file could not be removed
	behind   bool            // there is more output than was read at the last look
	stopped  bool            // this supervisor decided that the agent must end
	to       Status          // the state the run goes to for that reason
	reason   string
	deadline time.Time // of the run; zero if it has none
	resultAt time.Time // when the final result was seen
	lastBeat time.Time
}

// Supervise owns one run from its agent's start to its settled end: it starts
// the agent, follows its output, enforces its time, acts on requests, collects
// every process that is left and writes the record. It returns an error only
// where it could not do that; the run is then settled by the next reader.
func Supervise(ctx context.Context, opt SuperviseOptions) error {
	// Whoever else holds the lock is looking after a run that it takes for dead;
	// the record says afterwards whether it was right.
	wait, cancel := context.WithTimeout(ctx, spawnPatience)
	defer cancel()
	unlock, err := opt.Disk.Lock(wait, filepath.Join(opt.Dir, lockFile))
	if err != nil {
		return fmt.Errorf("supervise %s: %w", opt.Dir, err)
	}
	defer unlock()
	r, err := readRecord(opt.Disk, opt.Dir)
	if err != nil {
		return err
	}
	if r.Status != Spawning {
		return fmt.Errorf("supervise %s: the run is %s already", r.ID, r.Status)
	}
	self, err := proc.Self()
	if err != nil {
		return err
	}
	r.Supervisor = &self
	adapter, err := agent.For(r.Client)
	if err != nil {
		return err
	}
	s := &supervisor{opt: opt, r: r, stream: adapter.NewStream(), taken: map[string]bool{}, bounds: defaultBounds}
	if err := proc.BecomeSubreaper(); err != nil {
		// The sweep by run id still finds what escapes.
		fmt.Fprintln(os.Stderr, "become subreaper:", err)
	}
	if err := s.start(); err != nil {
		if s.child == nil {
			return s.end(ctx, Failed, err.Error(), agent.Exit{Code: -1}, nil)
		}
		// It lives, and nobody would look after it.
		s.stop(ctx, Failed, err.Error())
	}
	return s.follow(ctx)
}

// start starts the agent with its output going straight to files, so that
// neither a slow reader nor this process's death can block it.
func (s *supervisor) start() error {
	if err := s.r.reserve(); err != nil {
		return fmt.Errorf("failed to start agent: %w", err)
	}
	stdin, err := durable.Open(filepath.Join(s.opt.Dir, promptFile))
	if err != nil {
		return fmt.Errorf("failed to start agent: %w", err)
	}
	defer stdin.Close()
	stdout, err := s.opt.Disk.CreateHot(s.r.Logs.Stdout, 0o600)
	if err != nil {
		return fmt.Errorf("failed to start agent: %w", err)
	}
	s.output = append(s.output, stdout)
	// Before the agent lives, which can put anything else in the file's place.
	out, err := durable.Open(s.r.Logs.Stdout)
	if err != nil {
		return fmt.Errorf("follow the agent's output: %w", err)
	}
	s.tail = proc.NewTail(out, lineCap)
	stderr, err := s.opt.Disk.CreateHot(s.r.Logs.Stderr, 0o600)
	if err != nil {
		return fmt.Errorf("failed to start agent: %w", err)
	}
	s.output = append(s.output, stderr)

	if s.r.TimeoutSeconds > 0 {
		// Counted from the record's start, but on this process's own clock from
		// here on: a wall clock that is set meanwhile changes nothing.
		now := s.opt.Now()
		s.deadline = now.Add(timeLeft(now, s.r.StartedAt, seconds(s.r.TimeoutSeconds)))
	}
	spec := confine.Spec{DenyWrite: s.r.Command.DenyWrite, DenyAll: s.r.Command.DenyAll}
	p, err := confine.Start(spec, proc.Cmd{
		Path: s.r.Command.Path, Args: s.r.Command.Args, Dir: s.r.WorkDir,
		Env:   append(slices.Clone(s.opt.Env), proc.RunIDVar+"="+s.r.ID),
		Stdin: stdin, Stdout: stdout, Stderr: stderr, NewSession: true,
	})
	if err != nil {
		return fmt.Errorf("failed to start agent: %w", err)
	}
	s.child = p
	id := p.ID()
	s.r.Child, s.r.PID = &id, id.PID
	if err := s.r.move(Running, "", s.opt.Now()); err != nil {
		return err
	}
	return s.r.writeHot()
}

// timeLeft is what is left of a run's time at now.
func timeLeft(now, started time.Time, limit time.Duration) time.Duration {
	return limit - min(max(0, now.Sub(started)), limit)
}

// follow watches the agent until it has ended.
func (s *supervisor) follow(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	always := make(chan struct{})
	close(always)
	var lifeline <-chan struct{}
	if !s.r.Detached {
		lifeline = proc.WatchLifeline(0) // its standard input
	}
	for {
		var more chan struct{}
		if s.behind && s.unread == nil {
			more = always
		}
		select {
		case <-s.child.Done():
			return s.finish(ctx)
		case <-lifeline:
			lifeline = nil
			s.stop(ctx, Killed, "the program that started the run has ended")
		case sig := <-s.opt.Stop:
			s.stop(ctx, Killed, fmt.Sprintf("the supervisor was told to stop (%s)", sig))
		case <-ticker.C:
			s.look(ctx)
		case <-more:
			s.look(ctx)
		}
	}
}

// look does what is due at a tick: output, requests, time.
func (s *supervisor) look(ctx context.Context) {
	s.drain(lookBytes)
	if s.unread != nil {
		s.stop(ctx, Failed, s.unread.Error())
	}
	s.bound(ctx)
	now := s.opt.Now()
	if req, ok := s.request(); ok {
		s.act(ctx, req)
	}
	progress := s.stream.Progress()
	if progress.ResultSeen && s.resultAt.IsZero() {
		s.resultAt = now
	}
	switch {
	case !s.deadline.IsZero() && !now.Before(s.deadline):
		s.stop(ctx, TimedOut, fmt.Sprintf("exceeded timeout of %s", seconds(s.r.TimeoutSeconds)))
	case !s.resultAt.IsZero() && now.Sub(s.resultAt) >= seconds(s.r.Command.ResultPatienceSeconds):
		// The answer is there; what holds the process is work it left behind.
		s.stop(ctx, Completing, fmt.Sprintf("lived on for %s after its result and was ended", seconds(s.r.Command.ResultPatienceSeconds)))
	}
	if !s.stopped && now.Sub(s.lastBeat) >= heartbeatEvery {
		s.beat(progress, now)
		if _, err := proc.ReapOrphans(); err != nil {
			fmt.Fprintln(os.Stderr, "reap orphans:", err)
		}
	}
}

// beat writes a heartbeat. A heartbeat that cannot be written is not worth the
// run: it is noted in supervisor.log and tried again.
func (s *supervisor) beat(p agent.Progress, now time.Time) {
	s.lastBeat = now
	s.r.Heartbeat = heartbeat(p, s.tail.Offset(), now)
	if p.Retry != nil {
		s.r.Heartbeat.Retrying = fmt.Sprintf("attempt %d of %d, status %d, waiting %d ms", p.Retry.Attempt, p.Retry.MaxAttempts, p.Retry.Status, p.Retry.DelayMS)
	}
	if err := s.r.writeHot(); err != nil {
		fmt.Fprintln(os.Stderr, "write heartbeat:", err)
	}
}

func heartbeat(p agent.Progress, output int64, now time.Time) Heartbeat {
	return Heartbeat{LastCheck: now.UTC(), MessageCount: p.Messages, ToolCalls: p.ToolCalls, LastTool: p.LastTool, Tokens: p.Tokens, OutputBytes: output}
}

// drain feeds the stream what the agent has written since the last time, up to
// about limit bytes: an agent may write faster than it is read, and would
// otherwise keep its supervisor from seeing that its time is up.
func (s *supervisor) drain(limit int64) {
	if s.tail == nil || s.unread != nil {
		return
	}
	err := feed(s.stream, s.tail, limit)
	if err != nil {
		s.unread = fmt.Errorf("its output can no longer be read: %w", err)
	}
	s.behind = s.tail.Paused()
}

// stop ends the agent and everything below it, for a reason that becomes the
// run's. It returns when the tree is gone; the first reason wins.
func (s *supervisor) stop(ctx context.Context, to Status, reason string) {
	if s.stopped {
		return
	}
	s.stopped, s.to, s.reason = true, to, reason
	grace := seconds(s.r.Command.GraceSeconds)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace+20*time.Second)
	defer cancel()
	heard := s.hear(ctx)
	stopped, err := proc.StopTree(ctx, s.child.ID(), s.r.ID, grace)
	cancel()
	<-heard
	if err != nil {
		fmt.Fprintf(os.Stderr, "stop process tree: %d left: %v\n", stopped.Left, err)
	}
}

// hear takes away requests to stop that come while the run is being stopped, until ctx
// ends: whoever asks once more, such as a loop that was begun again, would else take the
// supervisor for one that reads nothing, and kill it in the middle of the agent's grace.
func (s *supervisor) hear(ctx context.Context) (over <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				for _, kind := range []string{requestCancel, requestInterrupt} {
					if err := s.opt.Disk.Remove(requestPath(s.opt.Dir, kind)); err != nil && !errors.Is(err, fs.ErrNotExist) {
						fmt.Fprintln(os.Stderr, "take a request away:", err)
						return
					}
				}
			}
		}
	}()
	return done
}

// act carries out a request.
func (s *supervisor) act(ctx context.Context, req stopRequest) {
	switch req.Kind {
	case requestCancel:
		s.stop(ctx, Killed, cmp.Or(req.Reason, "cancelled"))
	case requestInterrupt:
		at := req.At.UTC()
		s.r.Interrupt = Interrupt{Requested: true, Reason: &req.Reason, Timestamp: &at}
		s.stop(ctx, Interrupted, cmp.Or(req.Reason, "interrupted"))
	case requestExtend:
		if s.deadline.IsZero() {
			return // it has all the time there is
		}
		s.r.TimeoutSeconds += req.Seconds
		s.deadline = s.deadline.Add(seconds(req.Seconds))
		s.beat(s.stream.Progress(), s.opt.Now())
	}
}

// seconds is a time as the record keeps it.
func seconds(s float64) time.Duration {
	if s >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64 // 292 years
	}
	return time.Duration(s * float64(time.Second))
}

// finish collects what the ended agent left and settles the run.
func (s *supervisor) finish(ctx context.Context) error {
	exit, waitErr := s.child.Wait()
	s.r.ExitCode, s.r.Signal = &exit.Code, exit.Signal
	if !s.stopped {
		if err := s.r.move(Completing, "", s.opt.Now()); err != nil {
			return err
		}
	}
	s.collect(ctx)
	s.readEnds()
	verdict := agent.Exit{Code: exit.Code, Signal: exit.Signal, Stderr: tailOf(s.r.Logs.Stderr, stderrTail)}
	to, reason := Completing, ""
	if s.stopped {
		to, reason = s.to, s.reason
		verdict.TimedOut = to == TimedOut
		verdict.Cancelled = to == Killed || to == Interrupted
		verdict.AfterResult = to == Completing
	} else if s.unread != nil {
		to, reason = Failed, s.unread.Error()
	}
	return s.end(ctx, to, reason, verdict, waitErr)
}

// collect stops what the agent left: it is gone, so whatever carries the run's
// id has no owner any more.
func (s *supervisor) collect(ctx context.Context) {
	if proc.NothingLeft() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	collected, err := proc.StopTree(ctx, proc.ID{}, s.r.ID, s.grace())
	s.r.Collected = collected.Asked
	if err != nil {
		fmt.Fprintln(os.Stderr, "collect processes:", err)
	}
}

// grace for what the agent left behind is short: the agent had its time.
func (s *supervisor) grace() time.Duration {
	return min(time.Second, seconds(s.r.Command.GraceSeconds))
}

// end judges the run, writes its result and takes the record to its last
// state. Completing stands for "as the agent's output says".
func (s *supervisor) end(ctx context.Context, to Status, reason string, exit agent.Exit, waitErr error) error {
	res := s.stream.Finish(exit)
	if to == Failed {
		res.OK = false
	}
	if reason != "" && res.Reason == "" && !res.OK {
		res.Reason = reason
	}
	if to == Completing {
		to, reason = verdictOf(res, reason)
	}
	if waitErr != nil {
		reason = join(reason, waitErr.Error())
	}
	if res.SessionID != "" {
		s.r.SessionID = res.SessionID
	}
	now := s.opt.Now()
	p := s.stream.Progress()
	s.r.Heartbeat = heartbeat(p, sizeOf(s.r.Logs.Stdout), now)
	// The record that follows acknowledges the output, so the output must last.
	for _, f := range s.output {
		if sizeOf(f.Name()) == 0 {
			continue // nothing in it to last
		}
		if err := f.Sync(); err != nil {
			reason = join(reason, fmt.Sprintf("its output may not last (%v)", err))
		}
	}
	reason = join(reason, s.r.keepResult(res))
	if s.r.Status == Running && (to == Completed) {
		if err := s.r.move(Completing, "", now); err != nil {
			return err
		}
	}
	if err := s.r.move(to, reason, now); err != nil {
		return err
	}
	if err := s.r.write(); err != nil {
		return err
	}
	if err := recordEvent(ctx, s.opt.Host, s.r, s.opt.Now); err != nil {
		fmt.Fprintln(os.Stderr, "record event:", err)
	}
	return nil
}

// verdictOf turns the stream's judgement into the run's state.
func verdictOf(res agent.Result, reason string) (Status, string) {
	if res.OK {
		return Completed, join(reason, res.Reason)
	}
	return Failed, join(res.Reason, reason)
}

func join(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "" || a == b:
		return a
	}
	return a + "; " + b
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
