package workspace_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"reprise/internal/workspace"
)

// BenchmarkCreate makes workspaces and bare worktrees of 200 files in turn, so that
// what else the machine does falls on both, and tells how many times as long a
// workspace takes (median of the pairs).
func BenchmarkCreate(b *testing.B) {
	p := newPlace(b)
	for i := range 200 {
		p.write(p.code, fmt.Sprintf("d%d/f%d.txt", i%20, i), fmt.Sprintf("%0*d\n", 4000, i))
	}
	p.commit(p.code, "files")
	p.create(workspace.CreateOptions{Name: "first"})
	var ratios []float64
	for i := range b.N {
		began := time.Now()
		p.git(p.code, "worktree", "add", "-q", "-b", fmt.Sprintf("bare%d", i), filepath.Join(p.dir, fmt.Sprintf("bare%d", i)))
		bare := time.Since(began)
		began = time.Now()
		p.create(workspace.CreateOptions{Name: fmt.Sprintf("w%d", i)})
		ratios = append(ratios, float64(time.Since(began))/float64(bare))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "times-worktree-add")
}
