package guard

import (
	"os"
	"path/filepath"
	"testing"
)

// A session that the loop started asks and tells by files that its environment names:
// written as the agent-spawning design has it, by the variable.
func TestLoopFiles(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"work", "data/asks/one-1"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	work := filepath.Join(dir, "work")
	rules := Rules{Roots: []string{work, filepath.Join(dir, "data", "asks", "one-1")}, Own: []string{filepath.Join(dir, "data")}, Home: dir, Writes: true, Unattended: true}
	for _, c := range []struct {
		file, command string
		want          Decision
	}{
		{"data/asks/one-1/interrupt.txt", `echo "which of the two?" > "$INTERRUPT_FILE"`, Allow},
		{"data/asks/one-1/error.txt", `echo "it is broken" > "$ERROR_FILE"`, Allow},
		{"data/asks/one-1/progress.json", `echo "3/10 looking" > "$PROGRESS_FILE"`, Allow},
		{"data/asks/one-1/interrupt.txt", `INTERRUPT_FILE=$X; echo x > "$INTERRUPT_FILE"`, Ask},
		{"data/asks/one-1/interrupt.txt", "rm $INTERRUPT_FILE", Deny},
		{"data/asks/one-1/interrupt.txt", `echo x > "$INTERRUPT_FILE.2"`, Deny},
		{"data/loop.json", `echo x > "$INTERRUPT_FILE"`, Deny},
		{"elsewhere/interrupt.txt", `echo x > "$INTERRUPT_FILE"`, Deny},
		{"", `echo x > "$INTERRUPT_FILE"`, Ask},
	} {
		rules.Env = func(name string) string {
			if c.file == "" || name != "INTERRUPT_FILE" && name != "ERROR_FILE" && name != "PROGRESS_FILE" {
				return ""
			}
			return filepath.Join(dir, filepath.FromSlash(c.file))
		}
		if v := rules.Command(c.command, work); v.Decision != c.want {
			t.Errorf("%s with %q: %s [%s] %s", c.command, c.file, v.Decision, v.Rule, v.Reason)
		}
	}
}
