package task

import (
	"context"
	"fmt"
	"testing"

	"reprise/internal/durable"
)

func filled(tb testing.TB, n int, disk durable.Disk) *Store {
	tb.Helper()
	s := storeIn(tb.TempDir(), unsynced())
	_, err := s.Change(context.Background(), func(b *Board) error {
		for i := range n {
			title := fmt.Sprintf("Task number %d of a long list", i+1)
			if _, err := b.Add(Draft{Title: &title, Body: "What it is about, in a sentence or two, as people write it."}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	s.o.Disk = disk
	return s
}

func BenchmarkList(b *testing.B) {
	for _, n := range []int{100, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := filled(b, n, durable.Disk{})
			b.ResetTimer()
			for b.Loop() {
				if _, err := s.Load(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A status change, with and without waiting for the disk.
func BenchmarkStatus(b *testing.B) {
	for _, way := range []struct {
		name string
		n    int
		disk durable.Disk
	}{{"100", 100, unsynced()}, {"100 synced", 100, durable.Disk{}}, {"5000", 5000, unsynced()}} {
		b.Run(way.name, func(b *testing.B) {
			s := filled(b, way.n, way.disk)
			to := Planned
			b.ResetTimer()
			for b.Loop() {
				if _, err := s.Change(context.Background(), status(way.n/2, to, "")); err != nil {
					b.Fatal(err)
				}
				if to == Planned {
					to = InProgress
				} else {
					to = Planned
				}
			}
		})
	}
}
