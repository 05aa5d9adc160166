package task

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// The plan of a task that is to end errors is the error-analyst's, and the errors name the
// plan that counts; other plans are the planner's.
func TestErrorAnalystPlans(t *testing.T) {
	f := flowIn(t, Routed(nil, nil, nil))
	ctx := context.Background()
	change(t, f.Store, add("Other"))
	change(t, f.Store, func(b *Board) error {
		l, err := b.Failures()
		if err != nil {
			return err
		}
		l.Record(Failure{Type: Timeout, Message: "too late"}, clock())
		_, err = b.FixPlan(l.Groups())
		return err
	})
	if o, err := f.Begin(ctx, Want{Op: OpPlan, Number: 1}); err != nil || o.Agent != "planner" {
		t.Errorf("%s, %v", o.Agent, err)
	}
	o, err := f.Begin(ctx, Want{Op: OpRevise, Number: 2})
	if err != nil || o.Agent != "error-analyst" {
		t.Fatalf("%s, %v", o.Agent, err)
	}
	file := filepath.Join(f.Root, filepath.FromSlash(o.Artifact))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("### Phase 1: End the cause\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	answer := `{"status":"completed","summary":"Found.","artifacts":["` + o.Artifact + `"],"metadata":{"session_id":"` + o.Session + `"}}`
	if r, err := f.Finish(ctx, o.Session, answer); err != nil || r.Status != "completed" {
		t.Fatalf("%+v, %v", r, err)
	}
	b, err := f.Store.Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l, err := b.Failures()
	if err != nil || l.List[0].FixPlan != b.State.Tasks[2].Plans[1] || l.List[0].FixStatus != FixBegun {
		t.Errorf("%+v, %v", l.List[0], err)
	}
}
