package improve_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/learn"
	"reprise/internal/learn/improve"
	"reprise/internal/recall"
)

var shop = learn.PolicyScope{Project: "shop"}

func weight(p recall.Policy, name string) float64 {
	if v, ok := p.Weights[name]; ok {
		return v
	}
	v, _ := recall.StandardWeight(name)
	return v
}

// What is called important is never of use: importance comes to count less, a
// step at a time, and no step makes a replay worse.
func TestLearnsFromAMisleadingSignal(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.notes()
	for round := range 3 {
		for i := range 7 {
			h.session((round*7+i)%len(topics), "", "used", false)
		}
		h.now = h.now.Add(25 * time.Hour)
		h.work(shop)
	}
	all := h.policies()
	if len(all) < 2 {
		t.Fatalf("%d policies were taken in three rounds", len(all))
	}
	before := recall.DefaultPolicy()
	for i, v := range all {
		if v.For != shop || v.Version != i+1 || v.Op != learn.PolicyLearnt || v.Policy == nil || v.Replay == nil {
			t.Fatalf("%+v", v)
		}
		if v.Replay.After.Total < v.Replay.Before.Total {
			t.Errorf("version %d does worse: %+v", v.Version, v.Replay)
		}
		for _, name := range recall.WeightNames() {
			if a, b := weight(before, name), weight(*v.Policy, name); math.Abs(b/a-1) > 0.1005 {
				t.Errorf("version %d: %s went from %g to %g at once", v.Version, name, a, b)
			}
		}
		if r := v.Policy.Threshold/before.Threshold - 1; math.Abs(r) > 0.1005 {
			t.Errorf("version %d: the threshold changed by %g", v.Version, r)
		}
		if i > 0 && v.Parent != all[i-1].ID || i == 0 && v.Parent != "default" {
			t.Errorf("version %d comes from %s", v.Version, v.Parent)
		}
		before = *v.Policy
	}
	if w, s := weight(before, "importance"), weight(recall.DefaultPolicy(), "importance"); w >= s {
		t.Errorf("importance counts %g, and %g without what was learnt", w, s)
	}
	if bad := learn.Unbounded(before); len(bad) > 0 {
		t.Error(bad)
	}
	sameAfterRebuild(t, h, all)
}

// The log alone says which policy holds, now and then.
func sameAfterRebuild(t *testing.T, h *history, all []learn.PolicyVersion) {
	t.Helper()
	ctx := context.Background()
	h.open("other.db")
	h.notes()
	again := h.policies()
	a, _ := json.Marshal(all)
	b, _ := json.Marshal(again)
	if string(a) != string(b) {
		t.Errorf("after a rebuild:\n%s\n%s", a, b)
	}
	for i, v := range all {
		p, err := h.org.PolicyFor(ctx, shop, v.Time)
		if err != nil || p.ID != v.ID {
			t.Errorf("at the time of version %d: %s, %v", v.Version, p.ID, err)
		}
		p, err = h.org.PolicyFor(ctx, shop, v.Time.Add(-time.Millisecond))
		want := "default"
		if i > 0 {
			want = all[i-1].ID
		}
		if err != nil || p.ID != want {
			t.Errorf("before version %d: %s, want %s, %v", v.Version, p.ID, want, err)
		}
	}
	now, err := h.org.PolicyFor(ctx, shop, time.Time{})
	if err != nil || now.ID != all[len(all)-1].ID {
		t.Errorf("in force: %s, %v", now.ID, err)
	}
}

// Where the policy in force serves what is used, nothing is taken that only
// looks different, and nothing at all of too little.
func TestTakesNothingForNothing(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.notes()
	for i := range 3 {
		h.session(i, "", "used", false)
	}
	h.now = h.now.Add(25 * time.Hour)
	if out := h.work(shop); out.Adopted != "" || !strings.Contains(out.Why, "too little") {
		t.Errorf("from three uses: %+v", out)
	}
	for i := range 6 {
		h.session(i, "", "", false) // nothing is used
	}
	h.now = h.now.Add(25 * time.Hour)
	if out := h.work(shop); out.Adopted != "" {
		t.Errorf("from no uses: %+v", out)
	}
	if all := h.policies(); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

// A policy that does worse is refused, one outside the limits too.
func TestNeverAdoptsAWorsePolicy(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.notes()
	for i := range 7 {
		h.session(i, "", "used", false)
	}
	h.fold()
	worse := recall.DefaultPolicy()
	worse.Weights = map[string]float64{"importance": 0.2, "coverage": 0.075}
	j, err := h.tuner().Judge(context.Background(), shop, worse, true, "")
	if !errors.Is(err, improve.ErrPolicy) || !strings.Contains(err.Error(), "worse") && !j.Worse && j.Replay.After.Margin >= j.Replay.Before.Margin {
		t.Errorf("%+v, %v", j, err)
	}
	for name, change := range map[string]func(*recall.Policy){
		"weight":    func(p *recall.Policy) { p.Weights = map[string]float64{"title": 9} },
		"name":      func(p *recall.Policy) { p.Weights = map[string]float64{"titel": 1} },
		"threshold": func(p *recall.Policy) { p.Threshold = 0.01 },
		"budget":    func(p *recall.Policy) { p.Budget = map[recall.Class]int{recall.ClassBlock: 100_000} },
		"class":     func(p *recall.Policy) { p.Budget = map[recall.Class]int{"blocks": 1} },
		"scope":     func(p *recall.Policy) { p.TopK = map[string]int{"world": 1} },
	} {
		p := recall.DefaultPolicy()
		change(&p)
		if _, err := h.tuner().Judge(context.Background(), shop, p, true, ""); !errors.Is(err, improve.ErrPolicy) {
			t.Errorf("%s: %v", name, err)
		}
	}
	better := recall.DefaultPolicy()
	better.Weights = map[string]float64{"importance": 0.05}
	j, err = h.tuner().Judge(context.Background(), shop, better, true, "by hand")
	if err != nil || j.Adopted == "" || j.Worse {
		t.Fatalf("%+v, %v", j, err)
	}
	if all := h.policies(); len(all) != 1 || all[0].ID != j.Adopted || all[0].Reason != "by hand" {
		t.Errorf("%+v", all)
	}
}

// Two roles use different things, and come to different policies; one without
// uses keeps the default, and the narrow one holds.
func TestRolesLearnApart(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.notes()
	conductor, musician := learn.PolicyScope{Project: "shop", Role: "conductor"}, learn.PolicyScope{Project: "shop", Role: "musician"}
	for round := range 2 {
		for i := range 7 {
			h.session((i+round)%len(topics), "conductor", "used", false)
			h.session((i+round)%len(topics), "musician", "loud", false)
		}
		h.now = h.now.Add(25 * time.Hour)
		h.work(conductor)
		h.work(musician)
	}
	h.fold()
	ctx := context.Background()
	c, err1 := h.org.PolicyFor(ctx, conductor, time.Time{})
	m, err2 := h.org.PolicyFor(ctx, musician, time.Time{})
	other, err3 := h.org.PolicyFor(ctx, learn.PolicyScope{Project: "shop", Role: "section-leader"}, time.Time{})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if weight(c, "importance") >= weight(m, "importance") {
		t.Errorf("importance counts %g for the conductor, %g for the musician", weight(c, "importance"), weight(m, "importance"))
	}
	if other.ID != "default" {
		t.Errorf("another role has %s", other.ID)
	}
}

func TestRollback(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.notes()
	ctx := context.Background()
	for i := range 7 {
		h.session(i, "", "used", false)
	}
	h.now = h.now.Add(25 * time.Hour)
	if out := h.work(shop); out.Adopted == "" {
		t.Fatalf("%+v", out)
	}
	first := h.policies()[0]
	v, err := h.tuner().Rollback(ctx, shop, "default", "it feels worse")
	if err != nil || v.Version != 2 || v.Parent != first.ID {
		t.Fatalf("%+v, %v", v, err)
	}
	h.fold()
	if p, err := h.org.PolicyFor(ctx, shop, time.Time{}); err != nil || p.ID != "default" {
		t.Errorf("after going back: %s, %v", p.ID, err)
	}
	// What was gone back from is not taken again.
	for i := range 7 {
		h.session(i, "", "used", false)
	}
	h.now = h.now.Add(25 * time.Hour)
	if out := h.work(shop); out.Adopted != "" {
		p, _ := h.org.PolicyFor(ctx, shop, time.Time{})
		h.fold()
		all := h.policies()
		if last := all[len(all)-1]; last.Policy != nil && weight(*last.Policy, "importance") == weight(*first.Policy, "importance") && last.Policy.Threshold == first.Policy.Threshold && len(last.Policy.Weights) == len(first.Policy.Weights) {
			t.Errorf("taken again: %+v, %+v", last, p)
		}
	}
	// An id, or the end of one, brings it back.
	h.now = h.now.Add(time.Second)
	if v, err = h.tuner().Rollback(ctx, shop, first.ID[len(first.ID)-8:], ""); err != nil || v.Restored != first.ID {
		t.Fatalf("%+v, %v", v, err)
	}
	h.fold()
	p, err := h.org.PolicyFor(ctx, shop, time.Time{})
	if err != nil || p.ID != v.ID || weight(p, "importance") != weight(*first.Policy, "importance") {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := h.tuner().Rollback(ctx, shop, "nonsense", ""); !improve.NotFound(err) {
		t.Errorf("an id that is not there: %v", err)
	}
	if _, err := h.tuner().Rollback(ctx, learn.PolicyScope{}, "default", ""); !errors.Is(err, improve.ErrPolicy) {
		t.Errorf("nothing to go back from: %v", err)
	}
}

// Wherever it is stopped, even between the decision and its event, or when the
// event cannot be written, the next one goes on and comes to the same.
func TestGoesOnWhereItWasStopped(t *testing.T) {
	t.Parallel()
	whole := newHistory(t)
	whole.notes()
	broken := newHistory(t)
	broken.notes()
	for i := range 7 {
		whole.session(i, "", "used", false)
		broken.session(i, "", "used", false)
	}
	whole.now = whole.now.Add(25 * time.Hour)
	broken.now = whole.now
	whole.fold()
	out, err := whole.tuner().Work(context.Background(), shop, func() bool { return false })
	if err != nil || out.Adopted == "" {
		t.Fatalf("%+v, %v", out, err)
	}
	steps := 0
	for {
		broken.fold()
		broken.fail = errDisk // only the event of the decision is recorded
		n := 0
		_, err := broken.tuner().Work(context.Background(), shop, func() bool { n++; return n > 6 })
		if err != nil {
			if !errors.Is(err, errDisk) {
				t.Fatal(err)
			}
			break
		}
		if steps++; steps > 3000 {
			t.Fatal("it never ends")
		}
	}
	// The event was written, and the process died before it noted that.
	broken.fail = nil
	if _, err := broken.tuner().Work(context.Background(), shop, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	a, b := whole.policies(), broken.policies()
	if len(a) != 1 || len(b) != 1 {
		t.Fatalf("%d and %d policies", len(a), len(b))
	}
	if x, y := *a[0].Policy, *b[0].Policy; weight(x, "importance") != weight(y, "importance") || x.Threshold != y.Threshold || len(x.Weights) != len(y.Weights) {
		t.Errorf("%+v\n%+v", x, y)
	}
	for range 3 { // nothing is left to do
		if out, err := broken.tuner().Work(context.Background(), shop, func() bool { return false }); err != nil || out.Adopted != "" {
			t.Errorf("%+v, %v", out, err)
		}
	}
	if n := len(broken.policies()); n != 1 {
		t.Errorf("%d policies", n)
	}
}

// Sessions that went wrong teach less.
func TestOutcomesCount(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.notes()
	h.session(1, "", "used", true)
	h.session(2, "", "used", false)
	h.fold()
	list, err := h.org.Recalls(context.Background(), 10, func(learn.Recalled) bool { return true })
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if list[0].Outcome != "good" || list[1].Outcome != "corrected" || !slices.Equal(list[0].Used, []string{"used-2"}) {
		t.Errorf("%+v", list)
	}
}
