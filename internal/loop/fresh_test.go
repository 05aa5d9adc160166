package loop

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/git"
	"reprise/internal/queue"
)

// What git calls changed in a worktree in which nobody has changed it is no work: it neither
// makes an item one that has changed something, nor is it committed with what was.
func TestFreshIsNoWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, make, noise string }{
		{"line ends in the repository", `printf 'a\r\nb\r\n' >noise; git add -A; git commit -qm noise; echo '* text' >.gitattributes`, "touch noise"},
		{"no pointers", `printf 'raw\n' >noise; git add -A; git commit -qm noise; echo 'noise filter=up' >.gitattributes; git config filter.up.clean 'sed s/^/pointer:/'`, "touch noise"},
		{"line ends of the user's settings", `git config core.autocrlf true; printf 'a\nb\n' >noise; git add noise; git commit -qm noise; echo >.gitattributes`, "rm noise; git checkout -q noise; touch noise"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh := sheller(t, dir)
			sh("git init -q -b trunk; echo 0 >f; " + c.make + "; git add .gitattributes f; git commit -qm begin; git checkout -q -b loop-a; " + c.noise)
			w := &Worktrees{Root: dir, Git: git.Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": t.TempDir()}}, Patience: time.Millisecond, Now: time.Now}
			base := sh("git rev-parse HEAD")
			p, item := Place{Name: "loop-a", Dir: dir, Top: dir, Branch: "loop-a", Base: base}, queue.Item{ID: "a", Title: "A"}
			sees := func(changed bool, files string) {
				t.Helper()
				for _, detail := range []bool{false, true} {
					got, err := w.Look(t.Context(), p, detail)
					if err != nil || got.Changed != changed || detail && strings.Join(got.Files, " ") != files || strings.Contains(got.Diff, "noise") {
						t.Errorf("detail %v: %+v, %v; want %v, %s", detail, got, err, changed, files)
					}
				}
			}
			sees(false, "")
			if note, err := w.Keep(t.Context(), p, item); err != nil || note != "" || sh("git rev-parse HEAD") != base {
				t.Errorf("nothing was to be kept: %q, %v", note, err)
			}
			for _, work := range []string{"echo 1 >f", "echo 1 >new", "echo 2 >f; git add f", "echo 3 >f; git commit -qam own"} {
				sh(work + "; " + c.noise)
				what := "f"
				if strings.Contains(work, "new") {
					what = "new"
				}
				if committed := strings.Contains(work, "commit"); !committed {
					sees(true, what)
				}
				if _, err := w.Keep(t.Context(), p, item); err != nil {
					t.Errorf("%s: %v", work, err)
				}
				if got := sh("git diff --name-only HEAD~1 HEAD"); got != what && work != "echo 3 >f; git commit -qam own" {
					t.Errorf("%s: committed %q", work, got)
				}
				p.Base = sh("git rev-parse HEAD")
				sees(false, "")
			}
			// What somebody has made of it is work.
			if err := os.WriteFile(filepath.Join(dir, "noise"), []byte("another\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := w.Look(t.Context(), p, false); err != nil || !got.Changed {
				t.Errorf("%+v, %v", got, err)
			}
			if _, err := w.Keep(t.Context(), p, item); err != nil || !strings.Contains(sh("git show HEAD:noise"), "another") {
				t.Errorf("%v", err)
			}
		})
	}
}

// What an item builds on and is not in what it begins at is said; what was merged is not, be it by a
// squash. What is nowhere to be had keeps it from being begun, until a person lets it.
func TestBeginsWithout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sh := sheller(t, dir)
	sh("git init -q -b trunk; echo 0 >f; git add -A; git commit -qm begin; git checkout -q -b loop-a; echo 1 >f; git commit -qam a; git checkout -q trunk; git checkout -q -b loop-b; echo 2 >g; git add g; git commit -qm b; git checkout -q trunk; git merge -q loop-b; git checkout -q -b loop-s; echo 3 >h; git add h; git commit -qm s; git checkout -q trunk; git merge -q --squash loop-s; git commit -qm squashed; echo 4 >i; git add i; git commit -qm more")
	made := map[string]string{"a": sh("git rev-parse loop-a"), "b": sh("git rev-parse loop-b"), "s": sh("git rev-parse loop-s"), "c": strings.Repeat("1", 40)}
	sh("git branch -q -D loop-a loop-b loop-s")
	w := &Worktrees{Root: dir, Git: git.Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}}, Now: time.Now}
	made["d"] = "of another kind"
	q := queue.Open(queue.Options{Dir: t.TempDir(), Now: time.Now})
	for id, commit := range made {
		if _, err := q.Add(t.Context(), queue.Item{ID: id, Title: id}); err != nil {
			t.Fatal(err)
		}
		c, err := q.Claim(t.Context(), queue.ClaimOptions{Worker: "w", Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.Done(t.Context(), c.Token, queue.Outcome{Data: []byte(`{"commit":"` + commit + `"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	w.Building((&Loop{opt: Options{Queue: q}}).madeBy)
	for on, want := range map[string]string{
		"a": made["a"][:12], "b": "", "s": "", "d": "", "nowhere": "",
	} {
		_, _, lacks, err := w.begin(t.Context(), queue.Item{ID: "x", DependsOn: []string{on}})
		if err != nil || (lacks == "") != (want == "") || !strings.Contains(lacks, want) {
			t.Errorf("on %s: %q, %v; want %q", on, lacks, err, want)
		}
	}
	x := queue.Item{ID: "x", DependsOn: []string{"c"}}
	_, _, _, err := w.begin(t.Context(), x)
	missing, ok := errors.AsType[*missingError](err)
	if !ok || !strings.Contains(missing.Error(), "neither the branch loop-c nor the commit 111111111111") || !strings.Contains(missing.Error(), "`reprise queue unpark x`") {
		t.Errorf("on what is nowhere: %v", err)
	}
	x.History = []queue.Entry{{Op: queue.OpUnpark}, {Op: queue.OpPark, Note: "missing: " + missing.Error()}}
	if _, _, _, err := w.begin(t.Context(), x); err == nil {
		t.Error("it is begun, and nobody has let it")
	}
	x.History = append(x.History, queue.Entry{Op: queue.OpUnpark, Note: "go on"})
	if _, _, lacks, err := w.begin(t.Context(), x); err != nil || !strings.Contains(lacks, "loop-c") {
		t.Errorf("a person has let it begin: %q, %v", lacks, err)
	}
}

// Work that changes what is checked is not merged by itself.
func TestRulesAreMergedByAPerson(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	top, place := filepath.Join(dir, "shop"), filepath.Join(dir, "place")
	if err := os.Mkdir(top, 0o700); err != nil {
		t.Fatal(err)
	}
	sh := sheller(t, top)
	sh("git init -q -b trunk && mkdir .reprise && echo checks >.reprise/project.yaml && echo 0 >f && git add -A && git commit -qm begin && git worktree add -q -b loop-a ../place && cd ../place && echo 1 >f && git commit -qam work")
	w := &Worktrees{Root: top, Git: git.Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}}, Now: time.Now, Into: "trunk", Patience: time.Millisecond}
	p := Place{Name: "loop-a", Dir: place, Top: place, Branch: "loop-a", Base: sh("git rev-parse trunk")}
	// A person's own change of the file meanwhile is not the item's.
	sh("echo more >>.reprise/project.yaml && git commit -qam rules")
	if into, why, err := w.merge(t.Context(), p); into != "trunk" || why != "" || err != nil {
		t.Fatalf("%q, %q, %v", into, why, err)
	}
	was := sh("git rev-parse trunk && cd ../place && echo none >.reprise/project.yaml && git commit -qam 'other rules'")
	_, _, err := w.merge(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "it changes .reprise/project.yaml") || !strings.Contains(err.Error(), "`git merge loop-a`") {
		t.Errorf("%v", err)
	}
	if now := sh("git rev-parse trunk"); now != was {
		t.Errorf("trunk went from %s to %s", was, now)
	}
}
