package verify

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/verify/tree"
)

// world is a project with a tree, and where its verifications go.
type world struct {
	t    *testing.T
	work string
	o    Options
	recs []*Result
}

func newWorld(t *testing.T, checks ...config.Check) *world {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the checks here are for a POSIX shell")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, work: filepath.Join(root, "home", "work")}
	w.put("a.txt", "a\n")
	w.put("d/b.txt", "b\n")
	v := &config.Verify{MaxMB: 64}
	v.Risk[1], v.Risk[2] = config.Risk{Files: 100}, config.Risk{Files: 1000}
	for i := range checks {
		if checks[i].TimeoutSeconds == 0 {
			checks[i].TimeoutSeconds = 20
		}
		if checks[i].Dir == "" {
			checks[i].Dir = "."
		}
	}
	v.Checks[0] = checks
	home := filepath.Join(root, "home")
	w.o = Options{
		Env:     config.Env{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": home, "API_KEY": "sk-secret"}, Dir: w.work, GOOS: runtime.GOOS, Now: time.Now},
		Project: "shop", Root: w.work, Checks: v, Config: "c1", Store: Store{Dir: filepath.Join(root, "store")},
		Snapshots: filepath.Join(root, "cache", "verify"), Host: "h", Sandbox: "auto",
		Record: func(_ context.Context, r *Result) error { w.recs = append(w.recs, r); return nil },
		Warn:   func(what string, err error) { t.Logf("%s: %v", what, err) },
	}
	t.Cleanup(func() {
		if left := w.left(); len(left) > 0 && !t.Failed() {
			t.Errorf("snapshots are left: %v", left)
		}
	})
	return w
}

// left are the snapshots that are there, without those that are kept for next time.
func (w *world) left() (out []string) {
	entries, err := os.ReadDir(w.o.Snapshots)
	if err != nil {
		return nil // there were none
	}
	for _, e := range entries {
		dir := filepath.Join(w.o.Snapshots, e.Name())
		_, kept := os.Lstat(filepath.Join(dir, "kept"))
		_, owned := os.Lstat(filepath.Join(dir, "owner.json"))
		if !w.o.Keep || kept != nil || owned == nil {
			out = append(out, e.Name())
		}
	}
	return out
}

// gitIfAny is git's answer, "" where the tree is in no repository.
func (w *world) gitIfAny(args ...string) string {
	if _, err := os.Stat(filepath.Join(w.work, ".git")); err != nil {
		return ""
	}
	return w.git(args...)
}

func (w *world) put(name, text string) {
	w.t.Helper()
	p := filepath.Join(w.work, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		w.t.Fatal(err)
	}
	// A process that is started just now would hold the file open for writing, and
	// until it has become another program nobody could run it (ETXTBSY).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) git(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t"}, args...)...)
	cmd.Dir, cmd.Env = w.work, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(w.work), "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) commit() string {
	w.git("init", "-q", "-b", "main")
	w.git("add", "-A")
	w.git("commit", "-q", "-m", "one")
	return w.git("rev-parse", "HEAD")
}

// treeHash is everything in the tree, its repository included.
func (w *world) treeHash() string {
	w.t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(w.work, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %v\n", p, fi.Mode())
		if fi.Mode().IsRegular() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "%d %q\n", fi.ModTime().UnixNano(), data)
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// run verifies, and wants the tree to be what it was.
func (w *world) run(req Request) *Result {
	w.t.Helper()
	return w.runContext(context.Background(), req)
}

func (w *world) runContext(ctx context.Context, req Request) *Result {
	w.t.Helper()
	before := w.treeHash()
	v, err := New(context.Background(), w.o)
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := v.Run(ctx, req)
	if err != nil {
		w.t.Fatal(err)
	}
	if after := w.treeHash(); after != before {
		w.t.Error("the tree was touched")
	}
	return r
}

func sh(name, line string) config.Check { return config.Check{Name: name, Shell: line} }

// A check that hangs, floods, forks, deletes its directory, leaves something
// behind or writes where it must not is bounded, said, and leaves no trace.
func TestChecksThatMisbehave(t *testing.T) {
	for _, tc := range []struct {
		name  string
		check config.Check
		want  Status
		in    string // of the problem, the output or an issue
	}{
		{"passes", sh("x", "cat a.txt d/b.txt"), Passed, "a\nb"},
		{"fails", sh("x", "echo 'error: no' >&2; exit 7"), Failed, "exit code 7"},
		{"is not there", config.Check{Name: "x", Argv: []string{"no-such-program"}}, Failed, "no-such-program"},
		{"has no directory", config.Check{Name: "x", Shell: "true", Dir: "nowhere"}, Error, "no such file"},
		{"hangs", config.Check{Name: "x", Shell: "echo begun; sleep 60 & sleep 60", TimeoutSeconds: 1}, Failed, "too long"},
		{"ignores being asked", config.Check{Name: "x", Shell: "trap '' TERM; while :; do sleep 1; done", TimeoutSeconds: 1}, Failed, "too long"},
		{"floods", sh("x", "i=0; while [ $i -lt 3000 ]; do echo 'a line of the flood that goes on and on and on'; i=$((i+1)); done; echo the end; exit 1"), Failed, "bytes left out"},
		{"forks", config.Check{Name: "x", Shell: "f() { [ $1 -gt 0 ] && { f $(($1-1)) & f $(($1-1)) & }; sleep 30; }; f 4", TimeoutSeconds: 1}, Failed, "too long"},
		{"leaves a grandchild", sh("x", "(setsid sleep 60 >/dev/null 2>&1 &) ; exit 0"), Passed, "left 1 process running"},
		{"deletes its directory", sh("x", `rm -rf "$PWD"; exit 0`), Passed, "changes files"},
		{"changes files", sh("x", "echo more >> a.txt; rm d/b.txt; ln -s a.txt l"), Passed, "changes files"},
		{"writes in the real tree", sh("x", "echo bad > \"$HOME/work/a.txt\" 2>/dev/null; exit 0"), Passed, ""},
		{"has a terminal's output", sh("x", `printf '\033[31mFAIL\033[0m one\r\nover\rwritten\n'; exit 1`), Failed, "FAIL one\nwritten"},
		{"sees no secret", sh("x", `test -z "$API_KEY" && test -n "$REPRISE_RUN_ID" && test "$CI" = true`), Passed, ""},
		{"is killed", sh("x", "kill -9 $$"), Failed, ""},
		{"fills the disk", sh("x", "head -c 5000000 /dev/zero > $TMPDIR/big; sleep 60"), Failed, "wrote more than it may"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.check, sh("after", "test -e a.txt && test ! -e l && cat d/b.txt"))
			if tc.name == "writes in the real tree" {
				if v, err := New(context.Background(), w.o); err != nil || v.confinement(nil).Empty() {
					t.Skip("this system has no Landlock: the tree is only compared")
				}
			}
			w.o.MaxWritten = 4_000_000
			if strings.Contains(tc.name, "changes") || strings.Contains(tc.name, "deletes") {
				w.commit()
			}
			r := w.run(Request{Trigger: Manual})
			c := r.Checks[0]
			all := c.Problem + "\n" + c.Output + "\n" + fmt.Sprint(r.Issues)
			if c.Status != tc.want || !strings.Contains(all, tc.in) {
				t.Errorf("%s, exit %d %s, %q, issues %q", c.Status, c.Exit, c.Signal, c.Problem, r.Issues)
				t.Logf("%.2000s", c.Output)
			}
			if r.Status != tc.want {
				t.Errorf("the verification: %s", r.Status)
			}
			if after := r.Checks[1]; after.Status != Passed {
				t.Errorf("the check after it: %s %s %s", after.Status, after.Problem, after.Output)
			}
			if len(c.Output) > keepHead+keepTail+200 || r.DurationMS > 60_000 {
				t.Errorf("%d bytes kept, %d ms", len(c.Output), r.DurationMS)
			}
			if len(w.recs) != 1 || w.recs[0] != r {
				t.Errorf("recorded %d", len(w.recs))
			}
		})
	}
}

// A check that puts a link to the real tree, or anything else, in the place of its
// copy has failed, and no other check runs: it would run there. The same goes
// for checks at the base, which then excuse nothing.
func TestReplacedCopyEndsTheVerification(t *testing.T) {
	for name, line := range map[string]string{
		"a link to the tree":        `cd / && rm -rf "$OLDPWD" && ln -s "$HOME/work" "$OLDPWD"`,
		"another directory":         `up=$(dirname "$PWD") && mkdir ../other && cd / && mv "$OLDPWD" "$OLDPWD-old" && mv "$up/other" "$OLDPWD"`,
		"the directory above":       `up=$(dirname "$PWD") && cd / && mv "$up" "$up-old" && mkdir -p "$HOME/x" && ln -s "$HOME/x" "$up" && ln -s "$HOME/work" "$HOME/x/tree"`,
		"a link, and it fails":      `cd / && rm -rf "$OLDPWD" && ln -s "$HOME/work" "$OLDPWD"; exit 1`,
		"a file":                    `cd / && rm -rf "$OLDPWD" && echo x > "$OLDPWD"`,
		"a link that leads nowhere": `cd / && rm -rf "$OLDPWD" && ln -s /nowhere "$OLDPWD"`,
	} {
		for _, keep := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", kept ", keep), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, sh("x", line), sh("after", "echo evil > a.txt"))
				w.o.Sandbox, w.o.Keep = "off", keep
				w.commit()
				w.put("d/b.txt", "changed\n")
				r := w.run(Request{Trigger: Stop, Regressions: true})
				if r.Status != Failed || len(r.Blocking()) == 0 || !strings.Contains(fmt.Sprint(r.Issues), "replaced the directory") {
					t.Errorf("%s %+v", r.Status, r.Issues)
				}
				if len(r.Checks) != 2 || r.Checks[0].Status != Failed || r.Checks[1].Status != Skipped {
					t.Errorf("%+v", r.Checks)
				}
				if _, err := os.Stat(filepath.Join(w.work, "a.txt")); err != nil {
					t.Error(err)
				}
				for _, name := range w.left() {
					if strings.HasSuffix(name, "-old") { // where the check put it
						_ = os.RemoveAll(filepath.Join(w.o.Snapshots, name))
					}
				}
			})
		}
	}
	t.Run("at the base", func(t *testing.T) {
		w := newWorld(t, sh("x", `test -e new || { cd / && rm -rf "$OLDPWD" && ln -s "$HOME/work" "$OLDPWD"; }; exit 1`), sh("y", "test -e new || echo evil > a.txt; exit 1"))
		w.o.Sandbox = "off"
		w.commit()
		w.put("new", "x")
		if r := w.run(Request{Trigger: Stop, Regressions: true}); r.Status != Failed || r.Checks[0].Excused || r.Checks[1].AtBase != "" {
			t.Errorf("%s %+v", r.Status, r.Checks)
		}
	})
}

func TestRegressions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sh("tests", "cat results.txt; ! grep -q FAIL results.txt"))
	w.put("results.txt", "--- FAIL: TestOld (0.0s)\nok two\n")
	base := w.commit()
	w.put("a.txt", "changed\n")
	r := w.run(Request{Trigger: Manual, Base: base, Regressions: true})
	if r.Status != Passed || r.Checks[0].AtBase != Failed || len(r.Blocking()) != 0 {
		t.Errorf("it failed before, too: %s %+v", r.Status, r.Checks[0])
	}
	if r.Base != base {
		t.Errorf("base %q", r.Base)
	}
	if r := w.run(Request{Trigger: Manual, Regressions: true}); r.Status != Failed || r.Checks[0].AtBase != Failed {
		t.Errorf("nobody said where the work began: %s %+v", r.Status, r.Checks[0])
	}
	if r := w.run(Request{Trigger: Stop, Regressions: true}); r.Status != Passed || !r.Checks[0].Excused {
		t.Errorf("a session's work began somewhere: %s %+v", r.Status, r.Checks[0])
	}
	w.put("results.txt", "--- FAIL: TestOld (0.0s)\n--- FAIL: TestNew (0.0s)\n")
	r = w.run(Request{Trigger: Manual, Base: base, Regressions: true})
	if r.Status != Failed || !slices.Equal(r.Checks[0].New, []string{"TestNew"}) {
		t.Errorf("one is new: %s %+v", r.Status, r.Checks[0])
	}
	r = w.run(Request{Trigger: Manual})
	if r.Status != Failed || r.Checks[0].AtBase != "" {
		t.Errorf("without a look at the base: %s %+v", r.Status, r.Checks[0])
	}
	w.put("results.txt", "ok\n")
	if r = w.run(Request{Trigger: Manual, Base: base, Regressions: true}); r.Status != Passed {
		t.Errorf("mended: %s", r.Status)
	}
}

// What is broken in a submodule did not fail at the base; and what was carried along to
// both is said.
func TestRegressionsInASubmodule(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sh("clean", "! grep -q dirty sm/README"), sh("old", "echo error: old; exit 1"))
	w.o.Checks.Carry = []string{"deps"}
	lib := filepath.Join(filepath.Dir(w.work), "lib")
	w.commit()
	w.git("init", "-q", "-b", "main", lib)
	if err := os.WriteFile(filepath.Join(lib, "README"), []byte("clean\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.git("-C", lib, "add", "-A")
	w.git("-C", lib, "commit", "-q", "-m", "one")
	w.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "sm")
	w.git("commit", "-q", "-m", "sm")
	base := w.git("rev-parse", "HEAD")
	w.put("sm/README", "dirty\n")
	look := func(step string) {
		t.Helper()
		r := w.run(Request{Trigger: Stop, Base: base, Regressions: true})
		if c := r.Checks[0]; r.Status != Failed || c.Excused || c.AtBase != Passed {
			t.Errorf("%s: %s %+v", step, r.Status, c)
		}
		if r.Risk.Files == 0 {
			t.Errorf("%s: no file changed", step)
		}
		if c := r.Checks[1]; !c.Excused || !strings.Contains(r.Issues[1].Message, "with deps as now") {
			t.Errorf("%s: %+v %+v", step, c, r.Issues)
		}
	}
	look("changed")
	w.git("-C", "sm", "commit", "-q", "-a", "-m", "two")
	w.git("commit", "-q", "-a", "-m", "two")
	look("recorded")
	if err := os.RemoveAll(w.o.Store.Dir + "/base"); err != nil {
		t.Fatal(err)
	}
	w.git("-C", "sm", "checkout", "-q", "--orphan", "other")
	w.git("-C", "sm", "commit", "-q", "-m", "three")
	w.git("-C", "sm", "branch", "-D", "main")
	w.git("-C", "sm", "remote", "remove", "origin")
	w.git("-C", "sm", "reflog", "expire", "--expire=now", "--all")
	w.git("-C", "sm", "gc", "-q", "--prune=now")
	r := w.run(Request{Trigger: Stop, Base: base, Regressions: true})
	if r.Status != Failed || r.Checks[1].Excused || !slices.ContainsFunc(r.Issues, func(i Issue) bool { return strings.Contains(i.Message, "so nothing is excused: ") }) {
		t.Errorf("its commit is gone: %s %+v", r.Status, r.Issues)
	}
}

// A clean checkout of what is broken, as CI has it, does not pass: there is no work
// that its failure could be older than.
func TestCommittedFailureIsAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sh("tests", "! test -e broken"))
	w.put("broken", "x")
	head := w.commit()
	for _, req := range []Request{{Trigger: Manual}, {Trigger: Manual, Base: head}, {Trigger: TaskPhase}, {Trigger: Manual, Base: "HEAD"}} {
		req.Regressions = true
		if r := w.run(req); r.Status != Failed || len(r.Blocking()) != 1 || r.Risk.Files != 0 || r.Checks[0].Excused {
			t.Errorf("%+v: %s %+v", req, r.Status, r.Issues)
		}
	}
}

func TestTimeForAllChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sh("slow", "sleep 600"), sh("next", "true"))
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	w.o.Step = func(step string) { // not before: the snapshot may take any time
		if step == "check slow" {
			time.AfterFunc(500*time.Millisecond, func() { cancel(context.DeadlineExceeded) })
		}
	}
	r := w.runContext(ctx, Request{Trigger: Manual})
	if r.Status != Error || len(r.Checks) != 2 || r.Checks[0].Status != Error || r.Checks[1].Status != Skipped {
		t.Errorf("%s %+v", r.Status, r.Checks)
	}
}

// What is ended from outside, as by Ctrl-C, says nothing of the work: it is neither kept
// nor recorded, and is not the latest verification of the project.
func TestInterruptedSaysNothingOfTheWork(t *testing.T) {
	t.Parallel()
	for _, step := range []struct{ at, want string }{
		{"locked", "interrupted before a check ran"},
		{"check slow", "interrupted while the check slow ran"},
		{"check last", "interrupted while the check last ran"},
	} {
		t.Run(step.at, func(t *testing.T) {
			t.Parallel()
			slow := sh("slow", "exec sleep 600")
			if step.at == "check last" {
				slow = sh("slow", "true")
			}
			w := newWorld(t, slow, sh("last", "exec sleep 600"))
			stopped := errors.New("stopped by signal (interrupt)")
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			w.o.Step = func(s string) {
				if s == step.at {
					if list, _, err := w.o.Store.List(5); err != nil || len(list) > 0 {
						t.Errorf("while it is at work it is told as over: %+v, %v", list, err)
					}
					cancel(stopped)
				}
			}
			v, err := New(context.Background(), w.o)
			if err != nil {
				t.Fatal(err)
			}
			r, err := v.Run(ctx, Request{Trigger: Manual})
			if r != nil || !errors.Is(err, ErrInterrupted) || !errors.Is(err, stopped) || !strings.Contains(err.Error(), step.want) {
				t.Errorf("%+v, %v; want %q", r, err, step.want)
			}
			kept, _, err := w.o.Store.List(5)
			if err != nil || len(kept) > 0 || len(w.recs) > 0 {
				t.Errorf("kept %v, recorded %v, %v", kept, w.recs, err)
			}
			if words, _ := filepath.Glob(filepath.Join(w.o.Store.Dir, "*"+begunExt)); len(words) > 0 {
				t.Errorf("it is told as killed: %v", words)
			}
		})
	}
}

func TestSameTreeIsNotVerifiedTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sh("x", "true"))
	w.commit()
	first := w.run(Request{Trigger: Manual})
	again := w.run(Request{Trigger: Manual, Reuse: true})
	if again.Reused != first.ID || again.Status != Passed {
		t.Errorf("%+v", again)
	}
	w.o.Config = "c2"
	if r := w.run(Request{Trigger: Manual, Reuse: true}); r.Reused != "" {
		t.Error("other checks were never passed")
	}
	w.o.Config = "c1"
	w.put("new.txt", "")
	if r := w.run(Request{Trigger: Manual, Reuse: true}); r.Reused != "" {
		t.Error("another tree was never passed")
	}
}

// Whenever the verifying process dies, the tree is what it was, and the next
// verification takes away what is left, processes and all. Where checks had begun, which
// may have killed it, the end of the turn is told as not judged, at once and from then on.
func TestKilledAtEachStep(t *testing.T) {
	if dir := os.Getenv("REPRISE_TEST_VERIFY_DIR"); dir != "" {
		dieAt(t, dir, os.Getenv("REPRISE_TEST_VERIFY_STEP"))
		return
	}
	steps := []string{"locked", "snapshot claimed", "snapshot listed", "snapshot copied", "snapshot carried", "snapshot repository", "snapshot made", "check one", "check two", "saving"}
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sh("one", "sleep 60 & true"), sh("two", "true"))
			if step == "snapshot repository" {
				w.commit()
			}
			// Half of them are killed in a copy that an earlier one left.
			w.o.Keep = len(step)%2 == 0
			if w.o.Keep {
				w.run(Request{Trigger: Manual})
			}
			before := w.treeHash()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "-test.run=^TestKilledAtEachStep$")
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + t.TempDir(), "REPRISE_TEST_VERIFY_DIR=" + filepath.Dir(filepath.Dir(w.work)), "REPRISE_TEST_VERIFY_STEP=" + step, fmt.Sprint("REPRISE_TEST_VERIFY_KEEP=", w.o.Keep)}
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != -1 {
				t.Fatalf("it was not killed: %v\n%s", err, out)
			}
			if w.treeHash() != before {
				t.Error("the tree was touched")
			}
			if _, err := tree.Sweep(context.Background(), w.o.Snapshots, "h", time.Now().Add(2*time.Minute)); err != nil {
				t.Error(err)
			}
			if left := w.left(); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
			if out := w.gitIfAny("worktree", "list"); strings.Count(out, "\n") > 0 {
				t.Errorf("worktrees are registered:\n%s", out)
			}
			w.recs = nil
			unjudged := w.unjudged()
			if want := strings.HasPrefix(step, "check ") || step == "saving"; (unjudged != nil) != want || want && !strings.Contains(unjudged.Unjudged(), "killed while its checks ran") {
				t.Errorf("told as not judged: %+v", unjudged)
			}
			if r := w.run(Request{Trigger: Manual}); r.Status != Passed {
				t.Errorf("the next one: %s %+v", r.Status, r.Issues)
			}
			if unjudged == nil {
				return
			}
			if after := w.unjudged(); after == nil || after.ID != unjudged.ID || len(w.recs) != 2 || w.recs[0].ID != unjudged.ID {
				t.Errorf("after the next one it is %+v, recorded %+v", after, w.recs)
			}
			if words, _ := filepath.Glob(filepath.Join(w.o.Store.Dir, "*"+begunExt)); len(words) > 0 {
				t.Errorf("left: %v", words)
			}
		})
	}
}

// unjudged is the newest end of a turn that is told as not judged.
func (w *world) unjudged() *Result {
	w.t.Helper()
	e, err := w.o.Store.Ends()
	if err != nil {
		w.t.Fatal(err)
	}
	return e.Newest
}

// dieAt verifies in a world that another process made, and dies at a step.
func dieAt(t *testing.T, root, step string) {
	w := newWorld(t, sh("one", "sleep 60 & true"), sh("two", "true"))
	w.o.Env.Dir, w.o.Root = filepath.Join(root, "home", "work"), filepath.Join(root, "home", "work")
	w.o.Store.Dir, w.o.Snapshots = filepath.Join(root, "store"), filepath.Join(root, "cache", "verify")
	w.o.Keep = os.Getenv("REPRISE_TEST_VERIFY_KEEP") == "true"
	w.o.Step = func(s string) {
		if s == step {
			p, err := os.FindProcess(os.Getpid())
			if err == nil {
				_ = p.Kill()
			}
			select {}
		}
	}
	v, err := New(context.Background(), w.o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.Run(context.Background(), Request{Trigger: Stop, Session: "s1"})
	t.Fatalf("outlived %s: %v", step, err)
}

// Two verifications of a project at the same time wait for each other, and what
// the settings of the repository would run on the way is not run: filters, hooks,
// file system monitors.
func TestTwoAtOnceInAnOddRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sh("one at a time", `test ! -e "$HOME/at-work" && : > "$HOME/at-work" && cat a.txt && rm "$HOME/at-work"`))
	w.o.Sandbox, w.o.Keep = "off", true // it makes a file beside the tree
	w.put(".gitattributes", "*.txt filter=trap text eol=crlf\n")
	w.commit()
	trap := filepath.Join(filepath.Dir(w.work), "sprung")
	for _, kv := range [][2]string{
		{"filter.trap.clean", "touch " + trap + "; cat"}, {"filter.trap.smudge", "touch " + trap + "; cat"}, {"filter.trap.required", "true"},
		{"core.fsmonitor", "touch " + trap}, {"core.hooksPath", filepath.Dir(trap)}, {"core.autocrlf", "true"}, {"core.ignoreCase", "true"}, {"core.fileMode", "false"},
		{"diff.external", "touch " + trap}, {"core.pager", "touch " + trap},
	} {
		w.git("config", kv[0], kv[1])
	}
	w.put("a.txt", "changed\n")
	before := w.treeHash()
	results := make(chan *Result, 3)
	for range cap(results) {
		go func() {
			v, err := New(context.Background(), w.o)
			if err != nil {
				results <- &Result{Issues: []Issue{{Message: err.Error()}}}
				return
			}
			o := *v
			o.o.Record = nil
			r, err := o.Run(context.Background(), Request{Trigger: Manual, Regressions: true})
			if err != nil {
				r.Issues = append(r.Issues, Issue{Message: err.Error()})
			}
			results <- r
		}()
	}
	for range cap(results) {
		if r := <-results; r.Status != Passed || r.Checks[0].Output != "changed\n" {
			t.Errorf("%s %+v %+v", r.Status, r.Checks, r.Issues)
		}
	}
	if _, err := os.Lstat(trap); err == nil {
		t.Error("the repository's settings had something run")
	}
	if w.treeHash() != before {
		t.Error("the tree was touched")
	}
}
