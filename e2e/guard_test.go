//go:build unix

package e2e

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/internal/fakemodel"
)

// guarded is a user whose client has our hooks, in a project with a file outside
// it that nothing may touch.
func guarded(t *testing.T, name string, extra settings) (h *home, canary string) {
	t.Helper()
	h = newHome(t, extra)
	h.must("init", "--yes", "--name", "shop")
	if name == "claude" {
		// The client itself allows everything: what is refused, the guard refuses.
		h.write(filepath.Join(h.dir, ".claude", "settings.json"), `{"permissions":{"allow":["Bash"]}}`+"\n")
		name = "claude-code"
	}
	h.must("setup", "--yes", name)
	return h, filepath.Join(filepath.Dir(h.work), "canary")
}

func absent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tool ran: %s is there (%v)", path, err)
	}
}

// What is refused does not run, and the model is told why, in all four clients.
func TestGuardRefuses(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	for _, name := range fakemodel.TrialClients() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, canary := guarded(t, name, nil)
			r := h.agent(name, "Do it.", nil,
				rule("do", fakemodel.When{Turn: 1}, shell("echo x > ../canary")),
				rule("end", fakemodel.When{Turn: 2}, say("I see.")))
			absent(t, canary)
			if !r.told("writes-outside") {
				t.Errorf("the model was not told why\n%s\n%s", r.out, r.err)
			}
			if events := h.must("events", "list", "--type", "permission.decided", "--json"); !strings.Contains(events, `"deny"`) || !strings.Contains(events, "writes-outside") {
				t.Errorf("the decision is no event: %s", events)
			}
		})
	}
}

// Where nobody is there, what would be asked about is refused, in all four.
func TestGuardUnattended(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	for _, name := range fakemodel.TrialClients() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := guarded(t, name, settings{"guard": map[string]any{"profile": "unattended", "writes": "ask"}})
			r := h.agent(name, "Do it.", nil,
				rule("do", fakemodel.When{Turn: 1}, shell("echo x > canary")),
				rule("end", fakemodel.When{Turn: 2}, say("I see.")))
			absent(t, filepath.Join(h.work, "canary"))
			if !r.told("Nobody is there to be asked") {
				t.Errorf("the model was not told why\n%s\n%s", r.out, r.err)
			}
		})
	}
}

// A refusal holds where the client was told to ask nobody, and what would only
// be asked about is then left to it.
func TestGuardHoldsWithoutPermissions(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	h, canary := guarded(t, "claude", settings{"guard": map[string]any{"writes": "ask"}})
	h.env = append(slices.Clone(h.env), "IS_SANDBOX=1") // root is refused the flag otherwise
	r := h.agent("claude", "Do it.", []string{"--dangerously-skip-permissions"},
		rule("refused", fakemodel.When{Turn: 1}, shell("echo x > ../canary")),
		rule("let pass", fakemodel.When{Turn: 2}, shell("echo x > inside")),
		rule("end", fakemodel.When{Turn: 3}, say("I see.")))
	absent(t, canary)
	if !r.told("writes-outside") {
		t.Errorf("the model was not told why\n%s\n%s", r.out, r.err)
	}
	if _, err := os.Stat(filepath.Join(h.work, "inside")); err != nil {
		t.Errorf("what is only asked about did not run: %v\n%s", err, r.out)
	}
}

// doctor --guard proves it live, and fails where a hook is there that does not
// block, or none.
func TestDoctorGuard(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	h, _ := guarded(t, "claude", nil)
	client(t, "claude")
	h.env = append(slices.Clone(h.env), "PATH="+filepath.Dir(client(t, "claude"))+string(os.PathListSeparator)+programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	if r := h.reprise("doctor", "--guard"); r.code != 0 || !strings.Contains(r.out, "did not run, and the model was told why") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	h.write(h.config, `{"guard":{"mode":"warn"}}`)
	if r := h.reprise("doctor", "--guard"); r.code != 1 || !strings.Contains(r.out, "guard.mode is warn") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	h.must("setup", "--remove", "--yes", "claude-code")
	if r := h.reprise("doctor", "--guard"); r.code != 1 || !strings.Contains(r.out, "no client has reprise's hooks") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
}
