//go:build unix

package setup

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/shellword"
)

// hookScript is a hook program that does what one has to: it says nothing and
// leaves an event of its session.
const hookScript = `#!/bin/sh
cat >/dev/null
mkdir -p "$REPRISE_HOME/events"
printf '{"v":1,"id":"x-%s","ts":"2026-11-01T00:00:00Z","scope":"session","session":"reprise-doctor-%s","type":"tool.called","prev":""}\n' "$2" "$2" >> "$REPRISE_HOME/events/2026-11.h.jsonl"
`

// Whatever is wrong with one hook is said of that hook, and of no other.
func TestProbe(t *testing.T) {
	for name, tc := range map[string]struct {
		client, event string // the hook that something is wrong with
		script        string // what its program does
		command       string // its command in place of the program's
		proof         Proof
		why           string
	}{
		"all is well":    {"claude-code", "", "", "", "", ""},
		"copilot":        {"copilot", "", "", "", "", ""},
		"removed":        {"claude-code", "PostToolUse", "", "-", Missing, "not in"},
		"not there":      {"codex", "Stop", "", "/nowhere/reprise-hook codex Stop", Failed, "/nowhere/reprise-hook is not there"},
		"not executable": {"gemini", "AfterTool", "-", "", Failed, "not executable"},
		"not a program":  {"gemini", "AfterTool", "\x00\x01", "", Failed, "cannot be run"},
		"hangs":          {"claude-code", "PreToolUse", "#!/bin/sh\ntrap '' TERM; while :; do sleep 60; done\n", "", Failed, "does not end within"},
		"wrong JSON":     {"copilot", "preToolUse", "#!/bin/sh\necho '{\"a\":'\n", "", Failed, "not one JSON object"},
		"text":           {"codex", "SessionStart", "#!/bin/sh\necho hello\n", "", Failed, "not one JSON object"},
		"blocks":         {"claude-code", "Stop", "#!/bin/sh\nexit 2\n", "", Failed, "exit code 2"},
		"records none":   {"claude-code", "SessionEnd", "#!/bin/sh\nexit 0\n", "", Failed, "records nothing"},
		"another event":  {"claude-code", "PreToolUse", "", "PROGRAM claude PostToolUse", Failed, "not the hook program for PreToolUse"},
		"another client": {"claude-code", "PreToolUse", "", "PROGRAM codex PreToolUse", Failed, "not the hook program for PreToolUse"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			good := filepath.Join(dir, "it's here", "reprise-hook")
			bad := filepath.Join(dir, "bad", "reprise-hook")
			put(t, good, hookScript)
			put(t, bad, strings.TrimPrefix(tc.script, "-"))
			for _, p := range []string{good, bad} {
				if err := os.Chmod(p, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if tc.script == "-" {
				if err := os.Chmod(bad, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			h := InstalledHooks{Client: tc.client, Scope: User, File: "settings.json"}
			for _, e := range HookEvents(tc.client) {
				program := good
				if e == tc.event && tc.script != "" {
					program = bad
				}
				command := "REPRISE_HOME=/elsewhere " + shellword.Quote(program) + " " + hookWord(tc.client) + " " + e
				switch {
				case e != tc.event || tc.command == "":
				case tc.command == "-":
					continue
				default:
					command = strings.Replace(tc.command, "PROGRAM", shellword.Quote(good), 1)
				}
				h.Hooks = append(h.Hooks, Hook{Event: e, Command: command})
			}
			p := Prober{Dir: filepath.Join(dir, "probe"), Env: []string{"PATH=" + os.Getenv("PATH")}}
			if name == "hangs" {
				p.Patience = 2 * time.Second
			}
			proofs, err := p.Probe(context.Background(), h)
			if err != nil || len(proofs) != len(HookEvents(tc.client)) {
				t.Fatalf("%+v %v", proofs, err)
			}
			for _, got := range proofs {
				want, why := Answers, ""
				if got.Event == tc.event {
					want, why = tc.proof, tc.why
				}
				if got.Proof != want || !strings.Contains(got.Why, why) || want == Answers && got.Why != "" {
					t.Errorf("%+v, want %s %q", got, want, why)
				}
			}
			found := ProofFindings(h, proofs)
			if wrong := Worst(found) == Fail; wrong != (tc.event != "") {
				t.Errorf("%+v", found)
			}
			if tc.event != "" && (found[0].Status != Fail || !strings.Contains(found[0].Message, tc.client+" "+tc.event+": ") || found[0].Remedy == "") {
				t.Errorf("%+v", found[0])
			}
		})
	}
}

// What a client ran is proved; what it should have run and did not is said; what
// it cannot be made to run is said with the reason.
func TestSeen(t *testing.T) {
	proofs := []HookProof{{Event: "SessionStart", Proof: Answers}, {Event: "PreCompact", Proof: Answers}, {Event: "Stop", Proof: Answers}, {Event: "SessionEnd", Proof: Missing}}
	got := Seen("claude-code", proofs, func(event string) bool { return event == "SessionStart" || event == "SessionEnd" })
	for i, want := range []Proof{Proved, Answers, Silent, Missing} {
		if got[i].Proof != want {
			t.Errorf("%+v, want %s", got[i], want)
		}
	}
	if got[1].Why == "" || got[2].Why == "" || proofs[0].Proof != Answers {
		t.Errorf("%+v, of %+v", got, proofs)
	}
	found := ProofFindings(InstalledHooks{Client: "claude-code", Scope: User}, got)
	var all []string
	for _, f := range found {
		all = append(all, string(f.Status)+" "+f.Message)
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{"fail claude-code Stop: ", "fail claude-code SessionEnd: ", "1 hooks ran in a live session: SessionStart", "PreCompact (it takes"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	// Every hook that is set up is one that a live session brings about, or has
	// a reason why not.
	for _, client := range HookClients() {
		for _, e := range HookEvents(client) {
			if strings.Contains(e, "ompact") && cannot(client, e) == "" {
				t.Errorf("%s %s", client, e)
			}
		}
	}
}
