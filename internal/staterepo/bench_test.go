package staterepo_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/staterepo"
)

// BenchmarkLog is an entry logged and committed, beside the same commit by git's
// own plumbing (hash-object, mktree, commit-tree, update-ref from the value that
// rev-parse gave), turn by turn, so that a busy machine does the same to both.
//
//	go test ./internal/staterepo -run XX -bench Log -benchtime 40x
func BenchmarkLog(b *testing.B) {
	m := newMachine(b, nil)
	dir := filepath.Join(b.TempDir(), ".reprise", "agent")
	o := m.options()
	o.Dir = filepath.Join(b.TempDir(), "shop") // on the disk that the system has
	m.repo = staterepo.New(o)
	a, err := m.repo.CreateAgent(b.Context(), "one", dir, false)
	if err != nil {
		b.Fatal(err)
	}
	m.gitIn(m.repo.Dir(), "update-ref", "refs/heads/plumbing", "agent-one")
	var ours, plumbing time.Duration
	for i := range b.N {
		start := time.Now()
		if _, err := a.Add(b.Context(), memory.FullAccess, mdfile.Entry{Type: mdfile.TypeImplement, Text: fmt.Sprint("Entry ", i)}); err != nil {
			b.Fatal(err)
		}
		ours += time.Since(start)
		file, err := os.ReadFile(filepath.Join(dir, "changelog.md"))
		if err != nil {
			b.Fatal(err)
		}
		start = time.Now()
		byPlumbing(b, m, append(file, 'x'))
		plumbing += time.Since(start)
	}
	b.ReportMetric(float64(ours.Microseconds())/1000/float64(b.N), "ms/log")
	b.ReportMetric(float64(plumbing.Microseconds())/1000/float64(b.N), "ms/plumbing")
	b.ReportMetric(float64(ours)/float64(plumbing), "ratio")
	b.ReportMetric(0, "ns/op")
}

func byPlumbing(b *testing.B, m *machine, data []byte) {
	git := func(in []byte, args ...string) string {
		cmd := exec.CommandContext(context.Background(), "git", args...)
		cmd.Dir = m.repo.Dir()
		cmd.Env = []string{"PATH=" + m.vars["PATH"], "HOME=" + m.dir, "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@x", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@x"}
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(args, err)
		}
		return strings.TrimSpace(string(out))
	}
	tip := git(nil, "rev-parse", "refs/heads/plumbing")
	blob := git(data, "hash-object", "-w", "--stdin")
	tree := git([]byte("100644 blob "+blob+"\tchangelog.md\n"), "mktree")
	commit := git(nil, "commit-tree", tree, "-p", tip, "-m", "x")
	git(nil, "update-ref", "refs/heads/plumbing", commit, tip)
}

// BenchmarkMerge unites two logs of 10,000 entries each, in turn with two of 1,000: a
// ratio of 10 is what a merge that goes through them once comes to, on a busy machine too.
//
//	go test ./internal/staterepo -run XX -bench 'Merge|Context' -benchtime 25x
func BenchmarkMerge(b *testing.B) {
	logs := func(entries int) func() {
		sides := make([]bytes.Buffer, 2)
		for n := range entries {
			for s := range sides {
				sides[s].WriteString(entry(n, fmt.Sprint("agent", s), mdfile.TypeImplement, fmt.Sprintf("Entry %d of %d.", n, s)))
			}
		}
		return func() {
			merged, _ := staterepo.Options{}.MergeFile("changelog.md", nil, sides[0].Bytes(), sides[1].Bytes())
			if len(merged) < sides[0].Len()+sides[1].Len()-100 {
				b.Fatal("something is lost")
			}
		}
	}
	inTurn(b, "merge", logs(10_000), logs(1_000))
}

// BenchmarkContext reads an agent's log of 10,000 entries, in turn with one of 1,000.
func BenchmarkContext(b *testing.B) {
	read := func(entries int) func() {
		m := newMachine(b, nil)
		a := m.agent("one")
		var text bytes.Buffer
		for n := range entries {
			text.WriteString(entry(n, "one", mdfile.TypeImplement, fmt.Sprintf("Entry %d.", n)))
		}
		m.write(a.Dir, "changelog.md", text.String())
		m.save(a, "one", "")
		return func() {
			if list, err := m.repo.Log(b.Context(), "one"); err != nil || len(list) != entries {
				b.Fatal(len(list), err)
			}
		}
	}
	inTurn(b, "log", read(10_000), read(1_000))
}

// inTurn times the same done with ten times as much, turn by turn with less.
func inTurn(b *testing.B, unit string, much, less func()) {
	var long, short time.Duration
	for range b.N {
		start := time.Now()
		much()
		long += time.Since(start)
		start = time.Now()
		less()
		short += time.Since(start)
	}
	b.ReportMetric(float64(long.Microseconds())/1000/float64(b.N), "ms/"+unit)
	b.ReportMetric(float64(long)/float64(short), "ratio")
	b.ReportMetric(0, "ns/op")
}
