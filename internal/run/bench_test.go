//go:build unix

package run_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/internal/proc"
	"reprise/internal/run"
)

// BenchmarkSpawn is a whole run of a program that ends at once, and the same
// program started bare, in turn; "overhead-ms" is the difference of the means.
// The helper program is the test binary, which is larger than reprise-supervise:
// script/bench has the figure with the real one.
func BenchmarkSpawn(b *testing.B) {
	dir := b.TempDir()
	prog := filepath.Join(dir, "agent.sh")
	if err := os.WriteFile(prog, []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		b.Fatal(err)
	}
	m := run.New(options(dir))
	var bare, whole time.Duration
	for b.Loop() {
		began := time.Now()
		p, err := proc.Start(proc.Cmd{Path: prog, Env: os.Environ(), Dir: dir, NewSession: true})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(); err != nil {
			b.Fatal(err)
		}
		bare += time.Since(began)
		began = time.Now()
		r, err := m.Start(b.Context(), run.Request{Task: "x", Program: prog})
		if err != nil {
			b.Fatal(err)
		}
		if r, err = m.Wait(b.Context(), r.ID); err != nil || r.Status != run.Completed {
			b.Fatal(r.Status, err)
		}
		whole += time.Since(began)
	}
	b.ReportMetric(float64((whole-bare).Microseconds())/float64(b.N)/1000, "overhead-ms")
	b.ReportMetric(float64(bare.Microseconds())/float64(b.N)/1000, "bare-ms")
	b.ReportMetric(float64(whole)/float64(bare), "ratio")
}
