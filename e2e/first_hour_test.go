//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/fakemodel"
	"reprise/internal/setup"
)

// TestFirstHour is what a new user does whose one client is each of the four, in a home
// that holds nothing: two commands, the doctor, a session, and a session that knows what
// the first one found out. It says how long that took; docs/tutorial.md has the figures.
func TestFirstHour(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	for _, name := range fakemodel.TrialClients() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, settings{"claude_cli": map[string]any{"path": "claude"}})
			h.onlyClient(name)
			h.write(filepath.Join(h.work, "Makefile"), makefile())
			began, commands := time.Now(), 0
			enter := func(args ...string) string {
				commands++
				// Nothing is read: what asks a person ends with an error here.
				return h.must(args...)
			}
			enter("init", "--yes", "--name", "shop")
			enter("setup", "--yes") // names no client: it finds the one that is here
			ready := time.Since(began)
			if commands > 2 {
				t.Errorf("%d commands until the client is connected; 2 are the most", commands)
			}
			called, err := setup.Canonical(name)
			if err != nil {
				t.Fatal(err)
			}
			if s := h.must("status"); !strings.Contains(s, called+" connected") || strings.Contains(s, "not connected") {
				t.Errorf("not %s alone is connected:\n%s", called, s)
			}
			// With a session of the client's own against a stand-in for its model.
			checked := time.Now()
			found := h.must("doctor")
			took := time.Since(checked)
			asked := 0
			for line := range strings.Lines(found) {
				// The one question there is, and Codex asks it itself when it is started.
				if name == "codex" && strings.Contains(line, "until you have accepted them in Codex") {
					asked++
					continue
				}
				if strings.Contains(line, "lies below /tmp") {
					continue // of the tests' homes it is true
				}
				if strings.Contains(line, "FAIL") || strings.HasPrefix(line, "  warn") && !strings.Contains(line, "git") {
					t.Errorf("the doctor is not content: %s", line)
				}
			}
			h.agent(name, "Ship "+name+".", nil, failAndFix("make ship-"+name, "make ship-"+name+" KEY="+keyOf(name))...)
			r := h.agent(name, "Run make ship-"+name+" again.", nil,
				rule("fail", fakemodel.When{Turn: 1}, shell("make ship-"+name)),
				rule("end", fakemodel.When{Turn: 2}, say("I see.")))
			if !r.told("KEY=" + keyOf(name)) {
				t.Errorf("the next session of %s does not know what the first one found out", name)
			}
			t.Logf("%s: %d commands, %d questions, %.1f s until it is connected, doctor %.1f s, %.1f s until a session knew", name, commands, asked,
				ready.Seconds(), took.Seconds(), time.Since(began).Seconds())
		})
	}
}

// onlyClient puts one client, and the node that it runs on, into the path of the home, and
// no other.
func (h *home) onlyClient(name string) {
	h.t.Helper()
	bin := filepath.Join(filepath.Dir(h.dir), "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		h.t.Fatal(err)
	}
	for program, from := range map[string]string{name: client(h.t, name), "node": node(h.t)} {
		if err := os.Symlink(from, filepath.Join(bin, program)); err != nil {
			h.t.Fatal(err)
		}
	}
	h.env = append(h.env, "PATH="+strings.Join([]string{programs, bin, "/usr/local/bin", "/usr/bin", "/bin"}, string(os.PathListSeparator)))
}
