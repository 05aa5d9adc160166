// Package recallmain is the command line of reprise-recall, which says what is
// remembered at an event of a session. It is apart from package cli so that the
// program links neither cobra nor the MCP SDK, whose start costs more than the
// answer, and from the hook program so that a tool call does not pay for SQLite;
// a rule test lists what each links. The hook program has recorded the event by
// then, and starts it with what it has read of the plan.
//
// Whatever it cannot or may not do it leaves to the full program, by its exit
// code. It writes what package session writes, and lines of reprise's own log, and
// takes their locks.
package recallmain

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/config"
	"reprise/internal/config/place"
	"reprise/internal/event"
	"reprise/internal/event/quick"
	"reprise/internal/hook"
	"reprise/internal/hook/compile"
	"reprise/internal/hook/plan"
	"reprise/internal/learn/scopes"
	"reprise/internal/memory"
	"reprise/internal/session"
)

const usage = `reprise-recall is started by reprise-hook, not by people:
  reprise-recall MILLISECONDS DIR CLIENT EVENT
For everything else there is reprise.
`

const (
	exitUsage = 64       // EX_USAGE of sysexits.h; 2 would block a tool
	maxInput  = 64 << 20 // bytes that a client may send
	// maxMemory is from where on memory is collected all the same, in bytes.
	maxMemory = 256 << 20
)

// Main runs the program and returns its exit code.
func Main(args []string) int {
	if len(args) != 4 {
		_, _ = os.Stderr.WriteString(usage)
		return exitUsage
	}
	ms, err := strconv.Atoi(args[0])
	if err != nil || ms <= 0 {
		_, _ = os.Stderr.WriteString(usage)
		return exitUsage
	}
	// A crash of the runtime's own would end with 2, which blocks a tool.
	debug.SetTraceback("crash")
	// It lives for milliseconds. A collection would cost more than it frees: most of
	// what such a program costs is memory that is touched for the first time.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(maxMemory)
	env, err := config.OSEnv()
	if err != nil {
		return hook.ExitFull
	}
	host, err := os.Hostname()
	if err != nil {
		host = "" // a name like others for the log
	}
	p := &program{client: args[2], event: args[3], dir: args[1], env: env, host: host, in: os.Stdin, out: os.Stdout, pid: os.Getpid()}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(ms)*time.Millisecond)
	defer cancel()
	return p.run(ctx)
}

// program is one event.
type program struct {
	client, event, dir, host string
	env                      config.Env
	in                       io.Reader
	out                      io.Writer
	pid                      int

	mu   sync.Mutex // of what follows: the time may end while the answer is worked out
	home *config.Home
	log  *slog.Logger
	file io.Closer
}

// run answers within ctx. What is not said by then is not said.
func (p *program) run(ctx context.Context) int {
	type result struct {
		answer []byte
		code   int
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if x := recover(); x != nil {
				p.warn("the hook failed and says nothing; please report this", fmt.Errorf("%v", x))
				r = result{}
			}
			done <- r
		}()
		r.answer, r.code = p.answer(ctx)
	}()
	defer p.close()
	select {
	case r := <-done:
		if len(r.answer) > 0 {
			if _, err := p.out.Write(r.answer); err != nil {
				p.warn("the client did not take the answer", err)
			}
		}
		return r.code
	case <-ctx.Done():
		p.warn("the hook took too long and says nothing", context.Cause(ctx))
		return 0
	}
}

// answer is what the client is to read.
func (p *program) answer(ctx context.Context) ([]byte, int) {
	input, err := io.ReadAll(io.LimitReader(p.in, maxInput+1))
	if err != nil || len(input) > maxInput {
		return nil, hook.ExitFull
	}
	ev, err := dialect.Parse(p.client, p.event, input)
	if err != nil || hook.Nested(p.env.Get) || p.env.Get(hook.RunVar) != "" {
		return nil, hook.ExitFull
	}
	hook.AddExit(&ev)
	paths, err := config.FindPaths(p.env)
	if err != nil {
		return nil, hook.ExitFull
	}
	known, err := plan.Load(paths.Cache, plan.Key{Dir: p.dir, Vars: plan.Vars(place.Vars(), p.env.Get)}, quick.HostName(p.host))
	if err != nil || !plan.Has(known.Tell, string(ev.Kind), ev.Tool) {
		return nil, hook.ExitFull
	}
	inDir := p.env
	inDir.Dir = p.dir
	home, err := compile.Home(known, inDir)
	if err != nil || scopes.Unfinished(home.Paths.Forgetting()) {
		return nil, hook.ExitFull
	}
	p.mu.Lock()
	p.home = home
	p.mu.Unlock()
	r := &hook.Router{
		Rules: &known.Rules, Handlers: handlers{p, home}, Warn: p.warn, Done: math.MaxInt, // the hook program has recorded it
		Who: hook.Who{Project: known.Project, Agent: p.env.Get(hook.AgentVar), Role: hook.Role(paths.State, &ev, p.env.Get, p.warn)},
	}
	d, err := r.Route(ctx, ev)
	if err != nil {
		p.warn("nothing is said", err)
		return nil, 0
	}
	return dialect.Encode(ev, d).Stdout, 0
}

// handlers are what there is to do here at an event.
type handlers struct {
	p    *program
	home *config.Home
}

// Kinds are those that the program is started for.
func (h handlers) Kinds() []dialect.Kind { return session.Told() }

// Context says what is remembered of the moment.
func (h handlers) Context(ctx context.Context, ev dialect.Event) (dialect.Decision, error) {
	m := session.Open(session.Options{Home: h.home, Env: h.p.env, Access: memory.FullAccess})
	t := session.Teller{
		Memory: m, Warn: h.p.warn,
		Broker: func(who event.Event) (*event.Broker, error) {
			return session.Broker(h.home, h.p.env, h.p.host, who, func(err error) {
				h.p.warn("an event could not be logged and waits in the outbox", err)
			}), nil
		},
	}
	return t.Tell(ctx, ev) // the memory is closed by the end of the process, at less cost
}

// Job does nothing: at these events there is no work but the answer.
func (h handlers) Job(context.Context, dialect.Event) error { return nil }

func (p *program) warn(what string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.log == nil && p.home != nil {
		var lerr error
		if p.log, p.file, lerr = session.Log(p.home.LogFile(), p.home.Settings.Logging, p.env.Now, p.pid); lerr != nil {
			return // nowhere is left to say it: standard error is not the client's
		}
	}
	if p.log != nil {
		p.log.Warn("hook: "+what, slog.String("client", p.client), slog.String("event", p.event), slog.Any("error", err))
	}
}

func (p *program) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		_ = p.file.Close() // each line was written as it came
	}
}
