package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// programs are reprise and reprise-hook side by side, both this test binary, with
// a home of their own.
type programs struct{ dir, home, work string }

func newPrograms(t *testing.T) programs {
	t.Helper()
	p := programs{t.TempDir(), t.TempDir(), t.TempDir()}
	for _, name := range []string{"reprise", "reprise-hook"} {
		if err := linkSelf(filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// run runs one of the programs with the clock so much ahead.
func (p programs) run(t *testing.T, ahead time.Duration, stdin, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(p.dir, name), args...)
	cmd.Dir, cmd.Stdin = p.work, strings.NewReader(stdin)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "REPRISE_HOME=" + filepath.Join(p.home, "data"), "REPRISE_TEST_CLOCK=" + ahead.String()}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, out.String(), errs.String())
	}
	return out.String()
}

func (p programs) hook(t *testing.T, ahead time.Duration, event, session, fields string) string {
	t.Helper()
	if fields != "" {
		fields = "," + fields
	}
	return p.run(t, ahead, fmt.Sprintf(`{"session_id":%q,"cwd":%q,"hook_event_name":%q%s}`, session, p.work, event, fields), "reprise-hook", "claude", event)
}

// The clock is set back between events, by an hour and by more than a month.
// Hooks go on, the log says so, nothing is lost or told twice, and what was
// learned by the wrong clock is told.
func TestClockGoesBack(t *testing.T) {
	const failing = `"tool_name":"Bash","tool_use_id":"%s","tool_input":{"command":"%s"}`
	for _, back := range []time.Duration{time.Hour, 40 * 24 * time.Hour} {
		t.Run(back.String(), func(t *testing.T) {
			t.Parallel()
			p := newPrograms(t)
			// By the clock that is wrong, a command fails and its fix is found; then the clock is put right.
			p.hook(t, back, "SessionStart", "one", `"source":"startup"`)
			p.hook(t, back, "UserPromptSubmit", "one", `"prompt":"make the tests of the parser pass"`)
			p.hook(t, back, "PostToolUseFailure", "one", fmt.Sprintf(failing, "a", "go test ./parsr")+`,"error":"Exit code 1\nno such directory: parsr"`)
			p.hook(t, back, "PostToolUse", "one", fmt.Sprintf(failing, "b", "go test ./parser")+`,"tool_response":{"stdout":"ok","stderr":""}`)
			p.hook(t, 0, "PostToolUse", "one", fmt.Sprintf(failing, "c", "go vet ./parser")+`,"tool_response":{"stdout":"ok","stderr":""}`)
			p.hook(t, 0, "Stop", "one", `"last_assistant_message":"The tests of the parser pass."`)
			p.hook(t, 0, "SessionEnd", "one", `"reason":"other"`)
			p.hook(t, 0, "SessionStart", "two", `"source":"startup"`)
			p.hook(t, 0, "UserPromptSubmit", "two", `"prompt":"go on"`)
			told := p.hook(t, 0, "PostToolUseFailure", "two", fmt.Sprintf(failing, "d", "go test ./parsr")+`,"error":"Exit code 1\nno such directory: parsr"`)
			if !strings.Contains(told, "go test ./parser") {
				t.Errorf("the fix from the time that is ahead is not told: %q", told)
			}

			ids, types := map[string]bool{}, map[string]int{}
			files, err := filepath.Glob(filepath.Join(p.home, "data", "events", "*.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(string(data)) {
					var e struct{ ID, TS, Type, Session string }
					if err := json.Unmarshal([]byte(line), &e); err != nil {
						t.Fatal(err)
					}
					if ids[e.ID] || !strings.HasPrefix(filepath.Base(file), e.TS[:7]) {
						t.Errorf("%s of %s in %s, or twice", e.ID, e.TS, filepath.Base(file))
					}
					ids[e.ID] = true
					types[e.Session+" "+e.Type]++
				}
			}
			for what, n := range map[string]int{
				"one session.started": 1, "one prompt.submitted": 1, "one tool.failed": 1, "one tool.succeeded": 2, "one response.completed": 1, "one session.ended": 1,
				"two session.started": 1, "two prompt.submitted": 1, "two tool.failed": 1,
			} {
				if types[what] != n {
					t.Errorf("%d × %s, want %d", types[what], what, n)
				}
			}
			p.run(t, 0, "", "reprise", "events", "verify")
			for id := range ids {
				if shown := p.run(t, 0, "", "reprise", "events", "show", id); !strings.Contains(shown, id) {
					t.Errorf("%s cannot be shown: %s", id, shown)
				}
				break
			}
			log, err := os.ReadFile(filepath.Join(p.home, "data", "state", "log", "reprise.log"))
			if err != nil || !strings.Contains(string(log), "the clock has gone back") {
				t.Errorf("the log does not say it: %s, %v", log, err)
			}
			if found := p.run(t, 0, "", "reprise", "recall", "go test parser"); !strings.Contains(found, "./parser") {
				t.Errorf("recall: %s", found)
			}
		})
	}
}
