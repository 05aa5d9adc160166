package scripted

import (
	"encoding/json"
	"fmt"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"reprise/internal/proc"
)

const goos = runtime.GOOS

// forkStep starts children that outlive the agent and hide from whoever stops
// it. What each form escapes:
//
//	none     nothing: same group and session
//	group    a signal to the agent's process group
//	session  that, and one to its session
//	daemon   that, and a walk from parent to child: its parent ends at once,
//	         so the system (or a subreaper) adopts it
//
// With keep_env false the run's id is not in the child's environment either,
// so only its descent from a subreaper gives it away.
type forkStep struct {
	Escape  string   `yaml:"escape"`
	Count   int      `yaml:"count"`
	For     duration `yaml:"for"`
	KeepEnv *bool    `yaml:"keep_env"`
	Ignore  []string `yaml:"ignore"`
}

func (s *forkStep) check() error {
	switch s.Escape {
	case "", "none", "group", "session", "daemon":
	default:
		return fmt.Errorf("escape is none, group, session or daemon, not %q", s.Escape)
	}
	if s.Count < 0 || s.Count > 100 {
		return fmt.Errorf("count is between 0 and 100")
	}
	return (&ignoreStep{Signals: s.Ignore}).check()
}

// linger is what a forked child is told to do.
type linger struct {
	MS     int64    `json:"ms"`
	Again  bool     `json:"again"` // start another one and end: the double fork
	Ignore []string `json:"ignore"`
}

func (s *forkStep) play(p *player) (int, error) {
	l := linger{MS: time.Duration(s.For).Milliseconds(), Again: s.Escape == "daemon", Ignore: s.Ignore}
	if l.MS == 0 {
		l.MS = time.Minute.Milliseconds()
	}
	env := p.Env
	if s.KeepEnv != nil && !*s.KeepEnv {
		env = nil
		for _, kv := range p.Env {
			if !strings.HasPrefix(kv, proc.RunIDVar+"=") {
				env = append(env, kv)
			}
		}
	}
	for range max(s.Count, 1) {
		ch, err := l.start(p.Self, env, p.Dir, s.Escape)
		if err != nil {
			return 0, err
		}
		if l.Again {
			// The first child ends at once; then the second is an orphan.
			if _, err := ch.Wait(); err != nil {
				return 0, err
			}
		}
	}
	return goOn, nil
}

func (l linger) start(self string, env []string, dir, escape string) (*proc.Process, error) {
	arg, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	return proc.Start(proc.Cmd{Path: self, Args: []string{"script-agent", "--linger=" + string(arg)}, Env: env, Dir: dir,
		NewGroup: escape == "group", NewSession: escape == "session" || escape == "daemon"})
}

// live is the forked child's life.
func (l *linger) live(sio IO) int {
	for _, n := range l.Ignore {
		sig, err := signalNamed(n)
		if err != nil {
			return exitUsage
		}
		signal.Ignore(sig)
	}
	if l.Again {
		next := *l
		next.Again = false
		if _, err := next.start(sio.Self, sio.Env, sio.Dir, "session"); err != nil {
			return exitFailed
		}
		return 0
	}
	t := time.NewTimer(time.Duration(l.MS) * time.Millisecond)
	defer t.Stop()
	<-t.C
	return 0
}
