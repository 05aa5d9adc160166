package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/durable/durabletest"
	"reprise/internal/workspace"
)

// The disk is full while workspaces are made and taken away: one that cannot be made leaves
// nothing, and one that cannot be kept stays as it is.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	p := at(t, filepath.Join(fastDir(t), "disk"))
	fill := durabletest.SmallDisk(t, p.dir, 8192)
	p.prepare()
	ctx := t.Context()
	lefts := []int{0, 20, 44, 72}
	if os.Getenv("REPRISE_LONG_TESTS") != "" {
		lefts = nil
		for n := 0; n <= 200; n += 4 {
			lefts = append(lefts, n)
		}
	}
	unmade, stayed := 0, 0
	for i, left := range lefts {
		step := fmt.Sprintf("%d KiB left", left)
		name := fmt.Sprintf("new%d", i)
		fill(left)
		_, err := p.manager().Create(ctx, workspace.CreateOptions{Name: name})
		fill(-1)
		if err != nil {
			unmade++
			p.died(name) // where not even that could be written down
			if _, err := p.manager().Mend(ctx); err != nil {
				t.Errorf("%s: %v", step, err)
			}
			p.nothing(name, step)
			p.create(workspace.CreateOptions{Name: name})
		}
		w, err := p.manager().Get(name)
		if err != nil {
			t.Fatal(step, err)
		}
		files := map[string]string{"main.go": "changed\n", "new.txt": strings.Repeat("new\n", 3000), "x.log": strings.Repeat("ignored\n", 2000), ".reprise/agent/scratch.md": "thinking\n"}
		for file, text := range files {
			p.write(w.Dir, file, text)
		}
		fill(left)
		_, err = p.manager().Remove(ctx, name, workspace.RemoveOptions{Save: true})
		fill(-1)
		if err != nil {
			stayed++
			p.died(name)
			if now, gerr := p.manager().Get(name); gerr != nil {
				t.Errorf("%s: %v, and then %v", step, err, gerr)
			} else if now.State == workspace.Ready {
				for file, text := range files {
					if got := p.read(now.Dir, file); got != text {
						t.Errorf("%s: %s is %.20q", step, file, got)
					}
				}
			}
			if _, err := p.manager().Remove(ctx, name, workspace.RemoveOptions{Save: true}); err != nil {
				t.Errorf("%s: again: %v", step, err)
			}
		}
		back, err := p.manager().Restore(ctx, workspace.RestoreOptions{Name: name, Newest: true})
		if err != nil {
			t.Fatal(step, err)
		}
		for file, text := range files {
			if got := p.read(back.Dir, file); got != text {
				t.Errorf("%s: %s came back as %.20q", step, file, got)
			}
		}
		if _, err := p.manager().Remove(ctx, name, workspace.RemoveOptions{Save: true}); err != nil {
			t.Errorf("%s: %v", step, err)
		}
		p.whole(step)
		if t.Failed() {
			return
		}
	}
	if unmade == 0 || stayed == 0 {
		t.Errorf("%d were not made and %d stayed: the disk was not full", unmade, stayed)
	}
}
