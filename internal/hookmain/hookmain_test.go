package hookmain

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/config/place"
	"reprise/internal/event/quick"
	"reprise/internal/hook"
	"reprise/internal/hook/plan"
)

const asHook = "REPRISE_TEST_AS_HOOK"

func TestMain(m *testing.M) {
	if os.Getenv(asHook) != "" {
		os.Exit(Main(os.Args[1:], time.Now))
	}
	os.Exit(m.Run())
}

// Where nothing can be written, a call is not judged, and the reason is said on standard error, but to a
// client that would take it for an answer.
func TestNoPlaceForALog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{"relative", file} {
		for client, event := range map[string]string{"claude": "PreToolUse", "codex": "PreToolUse", "copilot": "preToolUse", "gemini": "BeforeTool"} {
			cmd := exec.Command(os.Args[0], client, event)
			cmd.Env = append(os.Environ(), asHook+"=1", "REPRISE_HOME="+home, hook.DepthVar+"=0")
			cmd.Stdin = strings.NewReader(`{"session_id":`)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			// Silence would let the tool run: the client that has a person asked is
			// told to ask.
			if err := cmd.Run(); err != nil || strings.Contains(stdout.String(), `"permissionDecision":"ask"`) != (client == "claude") || client != "claude" && stdout.Len() > 0 {
				t.Errorf("%s, %s: %v, %q", home, client, err, stdout.String())
			}
			if silent := client == "gemini"; silent != (stderr.Len() == 0) {
				t.Errorf("%s, %s: standard error %q", home, client, stderr.String())
			}
			if why := "reprise's log be written: "; home == file && client != "gemini" && !strings.Contains(stderr.String(), why) {
				t.Errorf("%s, %s: standard error %q does not say %q", home, client, stderr.String(), why)
			}
		}
	}
}

// What the full program put aside is whole; what this one puts aside has no text
// that may be a secret. The second never replaces the first.
func TestPutAsideKeepsTheBetter(t *testing.T) {
	data := t.TempDir()
	p := &program{client: "claude", event: "UserPromptSubmit", env: place.Env{Vars: map[string]string{}, Now: time.Now}}
	known := &plan.Plan{Data: data, Events: filepath.Join(data, "events"), Host: "vm"}
	ev, err := dialect.Parse("claude", "UserPromptSubmit", []byte(`{"session_id":"s","prompt":"the token ghp_x7Kd93mQpLw2Zr8VbN4tYc6HjF1sGa5EuR0T is in the file"}`))
	if err != nil {
		t.Fatal(err)
	}
	ids, at := quick.IDs{}, time.Now().UTC()
	known.Rules.Record = true
	lines := []string{ids.Next(at)}
	file := filepath.Join(data, "outbox", lines[0]+".json")
	if err := p.putAside(known, &ev, hook.Judged{}, lines, 0, at); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || !strings.Contains(string(got), quick.Withheld) || strings.Contains(string(got), "x7Kd93mQ") {
		t.Fatalf("%s, %v", got, err)
	}
	const whole = "as the full program wrote it"
	if err := os.WriteFile(file, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.putAside(known, &ev, hook.Judged{}, lines, 0, at); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != whole {
		t.Errorf("%s, %v", got, err)
	}
}

// Nothing that may be a secret gets into the log, not even by the arguments.
func TestLogHoldsNoSecret(t *testing.T) {
	const secret = "ghp_x7Kd93mQpLw2Zr8VbN4tYc6HjF1sGa5EuR0T"
	home := t.TempDir()
	for _, args := range [][]string{{secret, "Stop"}, {"claude", secret}, {"claude", "Stop"}} {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), asHook+"=1", "REPRISE_HOME="+home, hook.DepthVar+"=0")
		cmd.Stdin = strings.NewReader(`{"` + secret + `":1,"` + secret + `":2}`)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%q: %v, %q", args, err, out)
		}
	}
	log, err := os.ReadFile(filepath.Join(home, "state", "log", "reprise.log"))
	if err != nil || strings.Count(string(log), "\n") != 3 || strings.Contains(string(log), secret[4:]) {
		t.Errorf("%s, %v", log, err)
	}
}

// Before there is a plan nobody here knows whether a call waits for a person, and for how
// long: it is given what its client gives.
func TestLimitWithoutAPlan(t *testing.T) {
	for _, tc := range []struct {
		client, event string
		kind          dialect.Kind
		want          time.Duration
	}{
		{"claude", "PreToolUse", dialect.ToolBefore, 55 * time.Second},
		{"claude", "SessionStart", dialect.SessionStart, longLimit},
		{"claude", "Stop", dialect.Response, 585 * time.Second},
	} {
		p := &program{client: tc.client, event: tc.event, limit: time.Second}
		if got := p.unplanned(tc.kind); got != tc.want {
			t.Errorf("%s %s: %s, want %s", tc.client, tc.event, got, tc.want)
		}
	}
}
