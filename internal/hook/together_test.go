package hook

import (
	"context"
	"errors"
	"slices"
	"testing"

	"reprise/internal/agent/dialect"
	"reprise/internal/event/quick"
	"reprise/internal/guard"
	"reprise/internal/hook/plan"
)

// The lines of one event are recorded together; where one of them is wrong, the
// others are recorded all the same, and what the full program must do is left to it
// whole.
func TestLinesTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		together error
		want     []string
		err      error
		done     int
	}{
		"all at once":    {nil, []string{"together tool.called permission.decided"}, nil, 2},
		"one is wrong":   {quick.ErrInvalid, []string{"alone tool.called", "alone permission.decided"}, nil, 2},
		"for the other":  {ErrNeedsFull, nil, ErrNeedsFull, 0},
		"not to be had":  {errors.New("no space"), []string{"warned"}, nil, 2},
		"no such method": {errNone, []string{"alone tool.called", "alone permission.decided"}, nil, 2},
	} {
		var got []string
		r := &Router{
			Rules: &plan.Rules{Record: true}, Recorder: recordFunc(func(e *quick.Event) { got = append(got, "alone "+e.Type) }),
			Guard: asker{}, Warn: func(string, error) { got = append(got, "warned") },
		}
		if tc.together != errNone {
			r.Together = func(_ context.Context, events []quick.Event, sync bool) (bool, error) {
				if tc.together == nil {
					got = append(got, "together "+events[0].Type+" "+events[1].Type)
				}
				if sync {
					t.Errorf("%s: it waits for the disk", name)
				}
				return false, tc.together
			}
		}
		ev := dialect.Event{Client: "claude", Name: "PreToolUse", Kind: dialect.ToolBefore, Session: "s", Tool: "shell", ToolName: "Bash"}
		if _, err := r.Route(context.Background(), ev); !errors.Is(err, tc.err) || r.Done != tc.done || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, %d done, %q", name, err, r.Done, got)
		}
	}
}

var errNone = errors.New("none")

type recordFunc func(*quick.Event)

func (f recordFunc) Record(_ context.Context, e *quick.Event, _ bool) (bool, error) {
	f(e)
	return false, nil
}

type asker struct{}

func (asker) Judge(context.Context, dialect.Event) Judged {
	return Judged{Said: guard.Ask, Verdict: guard.Verdict{Decision: guard.Ask}}
}
