package hook

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/agent/dialect"
	"reprise/internal/delegation"
	"reprise/internal/guard"
	"reprise/internal/hook/plan"
)

// held is a plan whose conductors are told from the second call and refused
// after the third.
func held(dir string) *plan.Plan {
	rules := all()
	rules.Delegation = delegation.Rules{Tiers: 2, Conductor: delegation.Limits{Warn: 2, Block: 3}, Free: []string{"notes/"}}
	return &plan.Plan{Root: "/p", Events: filepath.Join(dir, "events"), Rules: rules}
}

func call(client, tool, input string) dialect.Event {
	return dialect.Event{Client: client, Kind: dialect.ToolBefore, Session: "s1", Tool: tool, ToolName: tool, Input: []byte(input), Cwd: "/p"}
}

// conduct takes an event through a router of the plan.
func conduct(t *testing.T, p *plan.Plan, s *script, role string, ev dialect.Event) (dialect.Decision, error) {
	t.Helper()
	r := s.router(p.Rules)
	r.Guard = nil
	r.Who.Role = role
	r.Delegation = Delegates(p, role)
	return r.Route(t.Context(), ev)
}

func TestConductorIsToldAndRefused(t *testing.T) {
	for _, client := range dialect.Clients() {
		t.Run(client, func(t *testing.T) {
			p, s := held(t.TempDir()), &script{}
			start := dialect.Event{Client: client, Kind: dialect.SessionStart, Session: "s1", Source: "startup"}
			if _, err := conduct(t, p, s, "conductor", start); err != nil {
				t.Fatal(err)
			}
			work := call(client, "shell", `{"command":"make"}`)
			for i, want := range []string{"", "told", "told", "refused", "free", "free", "refused", "delegated", "", "told"} {
				ev := work
				switch want {
				case "free":
					ev = call(client, "write", fmt.Sprintf(`{"file_path":"/p/%s/x.md"}`, []string{"docs", "notes"}[i%2]))
				case "delegated":
					ev = call(client, "agent", `{"prompt":"make it"}`)
				}
				s.did = nil
				d, err := conduct(t, p, s, "conductor", ev)
				if err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
				recorded := strings.Count(strings.Join(s.did, " "), "delegation.counted")
				if (d.Permission == dialect.Deny) != (want == "refused") || (d.Context != "") != (want == "told" && dialect.CanContext(client, dialect.ToolBefore)) {
					t.Errorf("call %d: %+v, want %q", i, d, want)
				}
				if wants := want == "told" || want == "refused" || want == "delegated"; (recorded == 1) != wants {
					t.Errorf("call %d (%q): recorded %v", i, want, s.did)
				}
			}
			// A client that cannot be told before a call is told after it.
			after := work
			after.Kind = dialect.ToolAfter
			d, err := conduct(t, p, s, "conductor", after)
			if want := !dialect.CanContext(client, dialect.ToolBefore) && dialect.CanContext(client, dialect.ToolAfter); err != nil || (d.Context != "") != want {
				t.Errorf("after the call: %+v, %v; told: %v wanted", d, err, want)
			}
			if len(s.warnings) > 0 {
				t.Errorf("warned of %v", s.warnings)
			}
		})
	}
}

// A subagent that could not be started has taken no work over: what was counted before
// is counted on. One that came back is not undone by a later one that fails.
func TestDelegatingThatFailed(t *testing.T) {
	p := held(t.TempDir())
	step := func(kind dialect.Kind, tool string) dialect.Decision {
		t.Helper()
		ev := call("claude", tool, `{}`)
		ev.Kind = kind
		ev.Source = "startup"
		d, _, err := Delegates(p, "conductor").judge(t.Context(), &ev, "conductor", false, func(what string, err error) { t.Errorf("%s: %v", what, err) })
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	work := func(refused bool) {
		t.Helper()
		if d := step(dialect.ToolBefore, "shell"); (d.Permission == dialect.Deny) != refused {
			t.Errorf("%+v, refused: %v wanted", d, refused)
		}
	}
	step(dialect.SessionStart, "")
	for range 3 {
		work(false)
	}
	work(true)
	for range 2 { // the second is begun where the count was taken back
		step(dialect.ToolBefore, "agent")
		step(dialect.ToolFailed, "agent")
		work(true)
	}
	step(dialect.ToolBefore, "agent") // two at once, and both fail
	step(dialect.ToolBefore, "agent")
	step(dialect.ToolFailed, "agent")
	step(dialect.ToolFailed, "agent")
	work(true)
	step(dialect.ToolBefore, "agent")
	step(dialect.ToolAfter, "agent")
	work(false)
	step(dialect.ToolFailed, "agent") // of an older one
	work(false)
	c, err := Delegates(p, "conductor").Store.Load("claude", "s1")
	if err != nil || c.Work != 2 || c.Delegated != 0 || c.Before != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestWhoIsNotCounted(t *testing.T) {
	dir := t.TempDir()
	p := held(dir)
	sub := call("claude", "shell", `{}`)
	sub.Agent = "sub-1"
	nameless := call("claude", "shell", `{}`)
	nameless.Session = ""
	for role, evs := range map[string][]dialect.Event{
		"musician": {call("claude", "shell", `{}`)}, "": {call("claude", "shell", `{}`)},
		"conductor": {sub, nameless},
	} {
		for range 5 {
			for _, ev := range evs {
				if d, err := conduct(t, p, &script{}, role, ev); err != nil || d.Permission != dialect.NoOpinion || d.Context != "" {
					t.Fatalf("%q: %+v, %v", role, d, err)
				}
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "delegation")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a count was made: %v", err)
	}
}

// A count that is gone, or was written by somebody else, is never taken for 0.
func TestLostCountIsCountedAgain(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"gone":   os.Remove,
		"edited": func(file string) error { return os.WriteFile(file, []byte("reprise delegation 1\nwork 0\n"), 0o600) },
		"emptied": func(file string) error {
			return os.Truncate(file, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := held(t.TempDir()), &script{}
			work := call("claude", "shell", `{"command":"make"}`)
			start := dialect.Event{Client: "claude", Kind: dialect.SessionStart, Session: "s1", Source: "startup"}
			for _, ev := range []dialect.Event{start, work, work} {
				if _, err := conduct(t, p, s, "conductor", ev); err != nil {
					t.Fatal(err)
				}
			}
			if err := spoil(Delegates(p, "conductor").Store.File("claude", "s1")); err != nil {
				t.Fatal(err)
			}
			if _, err := conduct(t, p, s, "conductor", work); !errors.Is(err, ErrNeedsFull) {
				t.Fatalf("the hook program went on: %v", err)
			}
			full := func(c delegation.Count, problem error) (dialect.Decision, []counted, []string) {
				d := Delegates(p, "conductor")
				d.Recount = func(*dialect.Event, string) (delegation.Count, error) { return c, problem }
				var warned []string
				dec, tell, err := d.judge(t.Context(), &work, "conductor", false, func(what string, _ error) { warned = append(warned, what) })
				if err != nil {
					t.Fatal(err)
				}
				return dec, tell, warned
			}
			if d, tell, warned := full(delegation.Count{}, errors.New("no log")); d.Permission != dialect.NoOpinion || len(tell) > 0 || len(warned) != 1 {
				t.Errorf("without a log: %+v, %v, %v", d, tell, warned)
			}
			d, tell, warned := full(delegation.Count{Client: "claude", Session: "s1", Role: "conductor", Work: 3, Total: 3, Refused: 1}, nil)
			if d.Permission != dialect.Deny || len(tell) != 2 || tell[0].what != "recounted" || tell[1].what != "refused" || len(warned) != 1 {
				t.Errorf("with a log: %+v, %+v, %v", d, tell, warned)
			}
			if d, err := conduct(t, p, s, "conductor", work); err != nil || d.Permission != dialect.Deny {
				t.Errorf("the next call: %+v, %v; want a refusal", d, err)
			}
		})
	}
}

// Where something else lies in the place of a count, or of all of them, what the log
// tells is held against the session at each call.
func TestCountThatCannotBeKept(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"a directory": func(file string) error {
			if err := os.Remove(file); err != nil {
				return err
			}
			return os.Mkdir(file, 0o700)
		},
		"a link": func(file string) error {
			if err := os.Remove(file); err != nil {
				return err
			}
			return os.Symlink(os.DevNull, file)
		},
		"a link to what never ends": func(file string) error {
			if err := os.Remove(file); err != nil {
				return err
			}
			return os.Symlink("/dev/zero", file)
		},
		"a directory in the lock's place": func(file string) error {
			if err := os.Remove(file + ".lock"); err != nil {
				return err
			}
			return os.Mkdir(file+".lock", 0o700)
		},
		"a file for all": func(file string) error {
			if err := os.RemoveAll(filepath.Dir(file)); err != nil {
				return err
			}
			return os.WriteFile(filepath.Dir(file), nil, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) { heldByTheLog(t, spoil) })
	}
}

// heldByTheLog spoils the count of a session, which then is refused by what the log tells.
func heldByTheLog(t *testing.T, spoil func(file string) error) {
	t.Helper()
	p, s := held(t.TempDir()), &script{}
	work := call("claude", "shell", `{"command":"make"}`)
	for _, ev := range []dialect.Event{{Client: "claude", Kind: dialect.SessionStart, Session: "s1", Source: "startup"}, work} {
		if _, err := conduct(t, p, s, "conductor", ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := spoil(Delegates(p, "conductor").Store.File("claude", "s1")); err != nil {
		t.Skip(err)
	}
	for range 2 {
		if _, err := conduct(t, p, s, "conductor", work); !errors.Is(err, ErrNeedsFull) {
			t.Fatalf("the hook program went on: %v", err)
		}
		d := Delegates(p, "conductor")
		d.Recount = func(*dialect.Event, string) (delegation.Count, error) {
			return delegation.Count{Client: "claude", Session: "s1", Role: "conductor", Work: 3, Total: 3, Refused: 1}, nil
		}
		dec, _, err := d.judge(t.Context(), &work, "conductor", false, func(string, error) {})
		if err != nil || dec.Permission != dialect.Deny {
			t.Errorf("%+v, %v; want a refusal", dec, err)
		}
		d.Recount = func(*dialect.Event, string) (delegation.Count, error) {
			return delegation.Count{}, errors.New("no log")
		}
		var warned []string
		dec, _, err = d.judge(t.Context(), &work, "conductor", false, func(what string, _ error) { warned = append(warned, what) })
		if err != nil || dec.Permission != dialect.NoOpinion || len(warned) != 1 {
			t.Errorf("without a log: %+v, %v, warned of %v", dec, err, warned)
		}
	}
}

// A session that says once more that it begins does not begin to count anew.
func TestBeginningAgainKeepsTheCount(t *testing.T) {
	p, s := held(t.TempDir()), &script{}
	start := dialect.Event{Client: "claude", Kind: dialect.SessionStart, Session: "s1", Source: "startup"}
	for i := range 5 {
		if _, err := conduct(t, p, s, "conductor", start); err != nil {
			t.Fatal(err)
		}
		d, err := conduct(t, p, s, "conductor", call("claude", "shell", `{}`))
		if err != nil || (d.Permission == dialect.Deny) != (i >= 3) {
			t.Fatalf("call %d: %+v, %v", i, d, err)
		}
	}
}

// What the hook program counted and then handed over is not counted twice.
func TestHandedOverIsCountedOnce(t *testing.T) {
	p, s := held(t.TempDir()), &script{}
	work := call("claude", "shell", `{"command":"make"}`)
	start := dialect.Event{Client: "claude", Kind: dialect.SessionStart, Session: "s1", Source: "startup"}
	for _, ev := range []dialect.Event{start, work, work} {
		if _, err := conduct(t, p, s, "conductor", ev); err != nil {
			t.Fatal(err)
		}
	}
	d := Delegates(p, "conductor")
	d.Counted = true
	dec, tell, err := d.judge(t.Context(), &work, "conductor", false, func(what string, err error) { t.Error(what, err) })
	if err != nil || len(tell) > 0 || !strings.Contains(dec.Context, "2 calls") {
		t.Errorf("%+v, %v, %v; want what was said of the second call", dec, tell, err)
	}
	if c, err := d.Store.Load("claude", "s1"); err != nil || c.Work != 2 {
		t.Errorf("%+v, %v; want 2", c, err)
	}
}

// A command of which the guard knows that it only reads is free; one that only
// the user's rules let pass is work.
func TestReadingCommandsAreFree(t *testing.T) {
	for let, want := range map[bool]int{false: 0, true: 1} {
		p := held(t.TempDir())
		s := &script{judged: Judged{Verdict: guard.Verdict{Decision: guard.Allow, Let: let}}}
		r := s.router(p.Rules)
		r.Who.Role, r.Delegation = "conductor", Delegates(p, "conductor")
		for _, ev := range []dialect.Event{{Client: "claude", Kind: dialect.SessionStart, Session: "s1", Source: "startup"}, call("claude", "shell", `{"command":"ls"}`)} {
			if _, err := r.Route(t.Context(), ev); err != nil {
				t.Fatal(err)
			}
		}
		if c, err := r.Delegation.Store.Load("claude", "s1"); err != nil || c.Work != want {
			t.Errorf("let by the settings %v: %+v, %v; want %d", let, c, err, want)
		}
	}
}
