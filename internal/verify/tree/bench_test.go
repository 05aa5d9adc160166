//go:build unix

package tree

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"
)

// processor is what this process and its children have used of a processor, which
// says something on a busy machine, too.
func processor() time.Duration {
	var all time.Duration
	for _, who := range [...]int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			all += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return all
}

// BenchmarkSnapshot makes the copy of a repository of 5,000 files in 250
// directories, 4 kB each, and lets it go again: anew each time, and in a slot
// while ten files change between two copies. ms/copy is the making alone.
func BenchmarkSnapshot(b *testing.B) {
	for _, slot := range []bool{false, true} {
		b.Run(map[bool]string{false: "anew", true: "kept"}[slot], func(b *testing.B) {
			dir, o := b.TempDir(), SnapshotOptions{Dir: b.TempDir(), Host: "h", Now: time.Now}
			if slot {
				o.Slot = SlotOf(dir)
			}
			for i := range 5000 {
				put(b, dir, fmt.Sprintf("d%d/e%d/f%d.txt", i%25, i%250, i), fmt.Sprintf("%04090d\n", i), 0o644)
			}
			runGit(b, dir, "init", "-q", "-b", "main")
			runGit(b, dir, "add", "-A")
			runGit(b, dir, "commit", "-q", "-m", "one")
			t := find(b, dir)
			var made time.Duration
			once := func(n int) {
				o.ID = fmt.Sprint("ver-", n)
				began := time.Now()
				s, err := t.Snapshot(context.Background(), o)
				if err != nil {
					b.Fatal(err)
				}
				made += time.Since(began)
				if err := s.Release(); err != nil {
					b.Fatal(err)
				}
			}
			if slot {
				once(0)
				made = 0
			}
			used := processor()
			for i := 1; b.Loop(); i++ {
				for f := range 10 {
					put(b, dir, fmt.Sprintf("d%d/e%d/f%d.txt", f%25, f%250, f), fmt.Sprintf("%04090d\n", i), 0o644)
				}
				once(i)
			}
			b.ReportMetric(float64((processor()-used).Milliseconds())/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(made.Milliseconds())/float64(b.N), "ms/copy")
		})
	}
}
