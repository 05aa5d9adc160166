package learn

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// How far organising has come is told while it is made, and where another version
// has made it.
func TestProgress(t *testing.T) {
	ctx := context.Background()
	s := newStory(t)
	for i := range 60 {
		s.session = fmt.Sprintf("s%d", i)
		s.start()
		s.prompt("Get the suite green")
		s.end()
	}
	st := newFake()
	now := clock("2026-11-03")()
	o := New(Options{Store: st, Logs: s.logs(), Batch: 40, Now: func() time.Time { now = now.Add(time.Second); return now }})
	look := func() Progress {
		t.Helper()
		p, err := o.Progress(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := look(); p.Read != 0 || p.Total == 0 || p.Other {
		t.Errorf("before: %+v", p)
	}
	last := int64(0)
	for more := true; more; {
		r, err := o.Run(ctx, time.Millisecond) // one step
		if err != nil {
			t.Fatal(err)
		}
		more = r.More
		p := look()
		if p.Read < last || p.Read > p.Total || more && p.Read == p.Total && p.Work == 0 || !more && (p.Read != p.Total || p.Work != 0) {
			t.Fatalf("more %v: %+v after %d", more, p, last)
		}
		last = p.Read
	}
	if err := st.Update(ctx, func(tx Tx) error { return tx.Store(bucketMeta, "version", []byte("0")) }); err != nil {
		t.Fatal(err)
	}
	if p := look(); !p.Other || p.Read != 0 {
		t.Errorf("of another version: %+v", p)
	}
}
