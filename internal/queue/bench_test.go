package queue_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/internal/queue"
)

// many is a queue of 22,000 items: a tenth is ready, the same settled, and of the others each
// waits for another.
func many(b *testing.B) (q *queue.Files, dir string) {
	dir = b.TempDir()
	q = files(unsynced(), dir, at(0))
	items := make([]queue.Item, 22_000)
	for i := range items {
		items[i] = queue.Item{ID: fmt.Sprintf("i%05d", i), Title: "a title", Body: "What is to be done. And how.", Labels: []string{"night"}}
		if i%10 > 1 {
			items[i].DependsOn = []string{fmt.Sprintf("i%05d", i-1)}
		}
		if i%10 == 9 {
			items[i].Priority = new(0)
		}
	}
	if _, err := q.Add(b.Context(), items...); err != nil {
		b.Fatal(err)
	}
	return q, dir
}

// bare reads all files of a queue, and nothing else.
func bare(b *testing.B, dir string) time.Duration {
	began := time.Now()
	for _, s := range queue.States() {
		list, err := os.ReadDir(filepath.Join(dir, "queue", string(s)))
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range list {
			if _, err := os.ReadFile(filepath.Join(dir, "queue", string(s), e.Name())); err != nil {
				b.Fatal(err)
			}
		}
	}
	return time.Since(began)
}

// A look at a large queue, beside the bare reads of its files in the same run: what is
// reported as "of-reads" is how many times as long it took.
func BenchmarkMany(b *testing.B) {
	q, dir := many(b)
	ctx := context.Background()
	open := queue.Filter{States: []queue.State{queue.Ready, queue.Claimed, queue.Blocked}}
	for name, look := range map[string]func() error{
		"list":  func() error { _, err := q.List(ctx, open); return err },
		"check": func() error { _, err := q.Check(ctx, false); return err },
		"count": func() error { _, err := q.Count(ctx); return err },
		"next": func() error {
			_, err := queue.Open(queue.Options{Dir: filepath.Join(dir, "queue"), Now: at(0), Host: "vm"}).Next(ctx, queue.ClaimOptions{})
			return err
		},
		"reclaim": func() error { _, err := q.Reclaim(ctx); return err },
		"edit": func() error {
			_, err := q.Edit(ctx, "i00009", queue.Edit{DependsOn: &[]string{"i00008"}})
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			var reads, looks time.Duration
			for b.Loop() {
				reads += bare(b, dir)
				began := time.Now()
				if err := look(); err != nil {
					b.Fatal(err)
				}
				looks += time.Since(began)
			}
			b.ReportMetric(looks.Seconds()/reads.Seconds(), "of-reads")
			b.ReportMetric(looks.Seconds()/float64(b.N), "s/look")
		})
	}
}
