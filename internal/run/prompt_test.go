package run

import (
	"os"
	"path/filepath"
	"testing"
)

// What runs of the loop and of tasks are told begins alike: in lists each stands under the
// title of its item or task.
func TestAbout(t *testing.T) {
	for _, c := range []struct{ origin, prompt, want string }{
		{"loop", "You were started by the loop. Read what you were told of this session, and begin the work on the item work-abc: Export: the invoices\n\nmore", "Export: the invoices"},
		{"loop", "Go on with the item work-abc: Export the invoices\n\nA person has answered", "Export the invoices"},
		{"loop", "Go on with the item work-abc: \n", "Go on with the item work-abc:"},
		{"task", "You are planner, working on one step of one task. The step ends with your last\nmessage, which a program reads.\n\nTask 14: Fix the login\nStep: plan\nLanguage: general\n", "Task 14: Fix the login (plan)"},
		{"task", "Something older\n\nthat has no step\n", "Something older"},
		{"cli", "begin the work on the item x: y\nsecond", "begin the work on the item x: y"},
		{"cli", "", ""},
	} {
		r := Record{ID: "run-aaaaaaaaaa", Origin: c.origin, dir: t.TempDir()}
		if err := os.WriteFile(filepath.Join(r.dir, promptFile), []byte(c.prompt), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := r.About(); err != nil || got != c.want {
			t.Errorf("%s %q: %q, %v, want %q", c.origin, c.prompt, got, err, c.want)
		}
	}
	if _, err := (Record{dir: t.TempDir()}).About(); err == nil {
		t.Error("a prompt that is not there was read")
	}
}
