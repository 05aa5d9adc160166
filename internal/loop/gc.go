package loop

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"reprise/internal/loop/core"
	"reprise/internal/run"
)

// Retention says which runs of loops may go.
type Retention struct {
	Age  time.Duration // older ones go; 0 is no bound
	Size int64         // and of the others the oldest, until they take no more bytes; 0 is no bound
}

// Old is a run that may go.
type Old struct {
	Run   string    `json:"run"`
	Dir   string    `json:"directory"`
	Ended time.Time `json:"ended"`
	Bytes int64     `json:"bytes"`
	Why   string    `json:"why"` // age or size
}

// Sweep says which runs of loops may go. One that an item goes on from stays, and so
// does one that has not ended.
func Sweep(runs []run.Record, s *core.State, r Retention, now time.Time) (out []Old) {
	needed := map[string]bool{}
	if s != nil {
		for _, m := range s.Items {
			if m.From != nil {
				needed[m.From.Run] = true
			}
		}
		for i := range s.Slots {
			needed[s.Slots[i].Run] = true
		}
	}
	// A session lives in the home of the first run that it had.
	for _, rec := range runs {
		if needed[rec.ID] && rec.Command.Home != "" {
			needed[filepath.Base(filepath.Dir(rec.Command.Home))] = true
		}
	}
	var rest []Old
	var total int64
	for _, rec := range runs {
		if rec.Origin != "loop" || !rec.Status.Settled() || needed[rec.ID] {
			continue
		}
		o := Old{Run: rec.ID, Dir: rec.Dir(), Ended: rec.StatusUpdatedAt, Bytes: sizeOf(rec.Dir())}
		if r.Age > 0 && now.Sub(o.Ended) > r.Age {
			o.Why = "age"
			out = append(out, o)
			continue
		}
		total += o.Bytes
		rest = append(rest, o)
	}
	slices.SortFunc(rest, func(a, b Old) int { return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.Run, b.Run)) })
	for _, k := range rest {
		if r.Size <= 0 || total <= r.Size {
			break
		}
		k.Why = "size"
		out = append(out, k)
		total -= k.Bytes
	}
	slices.SortFunc(out, func(a, b Old) int { return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.Run, b.Run)) })
	return out
}

func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil // what cannot be looked at takes no space
	})
	return n
}
