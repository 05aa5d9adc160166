package staterepo_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/durable/durabletest"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/staterepo"
)

// On a disk that is full, git's processes and our own writes fail wherever they have come
// to. What was acknowledged is there once there is room again, what was written and not
// committed is committed by the next command, and nothing is damaged.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	needGit(t)
	dir := fastDir(t)
	fill := durabletest.SmallDisk(t, filepath.Join(dir, "data"), 4096)
	m := newMachine(t, nil)
	m.dir, m.vars["HOME"] = dir, dir
	m.repo = staterepo.New(m.options())
	remote := filepath.Join(dir, "remote.git")
	m.gitIn(dir, "init", "-q", "--bare", remote)
	m.remote(remote)
	one := m.agent("one")
	m.sync()
	ctx := t.Context()
	var kept []string
	failed := 0
	try := func(what string, err error) {
		if err == nil {
			return
		}
		failed++
		// Git does not say each time that it is the space.
		text := strings.ToLower(err.Error())
		for _, word := range []string{"no space left on device", "couldn't write", "unable to write", "failed to write", "write error"} {
			if strings.Contains(text, word) {
				return
			}
		}
		t.Errorf("%s: %v", what, err)
	}
	lefts := []int{0, 4, 12, 24, 48}
	if long() {
		lefts = nil
		for n := 0; n <= 120; n += 4 {
			lefts = append(lefts, n)
		}
	}
	for i, left := range lefts {
		what := fmt.Sprintf("%d KiB left", left)
		fill(left)
		text := fmt.Sprintf("Entry with %d KiB left.", left)
		a, err := one.Add(ctx, memory.FullAccess, mdfile.Entry{Type: mdfile.TypeImplement, Text: text})
		if err == nil || a.ID != "" {
			kept = append(kept, text)
		}
		try(what+": log", err)
		_, err = m.repo.Global().Write(ctx, memory.FullAccess, "plan.md", text+"\n", "plan")
		try(what+": plan", err)
		_, err = m.repo.Sync(ctx, staterepo.Both)
		try(what+": sync", err)
		name := fmt.Sprintf("new%d", i)
		_, err = m.repo.CreateAgent(ctx, name, filepath.Join(dir, name, ".reprise", "agent"), false)
		try(what+": new agent", err)
		_, err = m.repo.GC(ctx, true)
		try(what+": gc", err)
		fill(-1)
		if _, err := m.repo.Ensure(ctx); err != nil {
			t.Errorf("%s, and then room: %v", what, err)
		}
		// Who began goes on.
		if _, err := m.repo.CreateAgent(ctx, name, filepath.Join(dir, name, ".reprise", "agent"), true); err != nil && !errors.Is(err, staterepo.ErrBranchExists) {
			t.Errorf("%s, and then room: %v", what, err)
		}
		m.sync()
		whole(m, what)
	}
	if failed < len(lefts) {
		t.Errorf("only %d commands met a full disk", failed)
	}
	log := m.gitIn(m.repo.Dir(), "show", "agent-one:changelog.md")
	for _, text := range kept {
		if strings.Count(log, text+"\n") != 1 {
			t.Errorf("%q is there %d times", text, strings.Count(log, text+"\n"))
		}
	}
	if got := m.gitIn(one.Dir, "status", "--porcelain"); got != "" {
		t.Error(got)
	}
}
