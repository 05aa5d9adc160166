package loop

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"reprise/internal/queue"
)

// An item that is there to merge a branch, or that builds on two which conflict, is done
// when the commits of that branch are in what results, and not by a change of anything.
func TestOwed(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	const who = "git -c user.name=a -c user.email=a@x "
	for _, c := range []struct {
		name, do string
		unkept   string
	}{
		{"nothing", "true", "the branch loop-x is not merged"},
		{"another change", "echo 1 > new && git add -A && " + who + "commit -qm work", "the branch loop-x is not merged"},
		{"another change, uncommitted", "echo 1 > new", "the branch loop-x is not merged"},
		{"a squash", who + "merge -q --squash loop-x; echo both > f; git add -A; " + who + "commit -qm squashed", "the branch loop-x is not merged"},
		{"its branch taken away", "git branch -D loop-x; echo 1 > new", "the branch loop-x is not merged"},
		{"merged", who + "merge -q loop-x; echo both > f; git add -A; " + who + "commit -qm merged", ""},
		{"merged, and left uncommitted", who + "merge -q loop-x; echo both > f; git add f", ""},
		{"merged, and the branch taken away", who + "merge -q loop-x; echo both > f; git add -A; " + who + "commit -qm merged; git branch -D loop-x", ""},
		{"the other side taken", who + "merge -q -s ours loop-x", ""}, // both are there: what of them counts, a review finds
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh := func(script string) string {
				cmd := exec.Command("sh", "-c", script)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x")
				out, _ := cmd.CombinedOutput() // a merge that conflicts fails
				return strings.TrimSpace(string(out))
			}
			sh("git init -q -b trunk && echo 0 > f && git add -A && " + who + "commit -qm begin && git checkout -q -b loop-x && echo x > f && " + who + "commit -qam x && git checkout -q trunk && echo t > f && " + who + "commit -qam t && git checkout -q -b loop-a")
			tip := sh("git rev-parse loop-x")
			w := &Worktrees{Root: dir, Patience: time.Millisecond, Now: time.Now}
			if got, err := w.Tip(t.Context(), "loop-x"); err != nil || got != tip {
				t.Fatal(got, err)
			}
			said := sh(c.do)
			merge := owed{Branch: "loop-x", Commit: tip}
			for what, item := range map[string]queue.Item{
				"by its data": {ID: "a", Title: "A", Source: "loop", Data: merge.data()},
				"by its key":  {ID: "a", Title: "A", Source: "loop", Key: mergeKey + "x:3"},
				"builds on":   {ID: "a", Title: "A"},
			} {
				p := Place{Name: "loop-a", Dir: dir, Top: dir, Branch: "loop-a", Base: sh("git rev-parse trunk")}
				if what == "builds on" {
					p.Unmerged = []string{"loop-x"}
				}
				_, err := w.Keep(t.Context(), p, item)
				var u *UnkeptError
				switch gone := sh("git branch --list loop-x") == ""; {
				case gone && what != "by its data": // nobody knows what it had
					if err != nil {
						t.Errorf("%s: %v (%s)", what, err, said)
					}
				case c.unkept == "" && err != nil, c.unkept != "" && (!errors.As(err, &u) || !strings.Contains(u.Why, c.unkept)):
					t.Errorf("%s: %v, want %q (%s)", what, err, c.unkept, said)
				}
			}
		})
	}
}

// What others write into an item's data is no order to merge.
func TestOwedByOthers(t *testing.T) {
	merge := owed{Branch: "loop-x", Commit: "1"}
	if got := owes(&queue.Item{ID: "a", Source: "jsonl:x", Data: merge.data(), Key: mergeKey + "x:1"}, &Place{}); len(got) != 0 {
		t.Fatal(got)
	}
}
