package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reprise/internal/config"
)

// Long work says on a terminal how far it is, in a line that is gone at the end; where
// the output or the errors go elsewhere, and for programs, it says nothing.
func TestLongWorkSaysHowFarItIs(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, work := filepath.Join(root, "home"), filepath.Join(root, "work")
	sessions := filepath.Join(home, ".claude", "projects", "-work")
	for _, d := range []string{sessions, work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	add := func(id string) {
		line := `{"type":"user","sessionId":"` + id + `","cwd":"` + filepath.ToSlash(work) + `","timestamp":"2026-11-01T10:00:00Z","uuid":"u1","message":{"role":"user","content":"which port?"}}` + "\n"
		if err := os.WriteFile(filepath.Join(sessions, id+".jsonl"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	base, ticks := time.Now(), atomic.Int64{} // each look at the clock finds it half a second on
	run := func(terminal bool, args ...string) string {
		var out, errs bytes.Buffer
		app := &App{
			In: strings.NewReader(""), Out: &out, Err: &errs, OutIsTerminal: true, ErrIsTerminal: terminal, Columns: 100, Program: "/opt/bin/reprise", Hostname: "h", PID: os.Getpid(), Guest: true,
			Env: config.Env{Vars: map[string]string{"HOME": home, "USERPROFILE": home, "NO_COLOR": "1"}, Dir: work, GOOS: runtime.GOOS,
				Now: func() time.Time { return base.Add(time.Duration(ticks.Add(1)) * 500 * time.Millisecond) }},
		}
		if code := Main(t.Context(), args, app); code != 0 {
			t.Errorf("%q ended with %d: %s", args, code, errs.String())
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Errorf("%q: the line is in the output: %q", args, out.String())
		}
		return errs.String()
	}
	for i, test := range []struct{ command, want string }{
		{"import transcripts", "of 1 transcripts"},
		{"index rebuild", "events read"},
		{"events migrate", "file 1 of 1"},
	} {
		args := strings.Fields(test.command)
		add("5a13438d-5a8e-41c4-808c-00000000000" + string(rune('1'+2*i)))
		if got := run(true, args...); !strings.Contains(got, test.want) || !strings.HasSuffix(got, "\r\x1b[K") {
			t.Errorf("`reprise %s` on a terminal says %q, want %q, and the line gone at the end", test.command, got, test.want)
		}
		add("5a13438d-5a8e-41c4-808c-00000000000" + string(rune('2'+2*i)))
		for _, got := range []string{run(false, args...), run(true, append(args, "--json")...)} {
			if strings.Contains(got, "\x1b") {
				t.Errorf("`reprise %s` says how far it is where nobody looks: %q", test.command, got)
			}
		}
	}
}
