package hook

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"reprise/internal/agent/dialect"
	"reprise/internal/event/quick"
	"reprise/internal/guard"
	"reprise/internal/hook/plan"
	"reprise/internal/redact"
)

// Of a call that holds a secret nothing that is recorded or said has any of it, though the
// guard shows commands with the values of variables and without the names beside them.
func TestVerdictsRepeatNoSecret(t *testing.T) {
	const secret = "VqLo0AGW0ahkd4E58uAZs28C"
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("MIIEow"+secret, 2)+"\n", 12) + "-----END RSA PRIVATE KEY-----"
	pieces := []string{secret, secret[:9], secret[12:], "MIIEow"}
	root := guard.Resolve(t.TempDir())
	for _, command := range []string{
		`DB_PASSWORD=` + secret + `; mysql -u root -p"$DB_PASSWORD" shop -e "select 1"`,
		`API_KEY=` + secret + ` && ./deploy.sh "$API_KEY"`,
		`TOKEN=` + secret + `; curl -X POST "https://api.example.com/v1/$TOKEN/hook"`,
		`export DOCKER_PASSWORD=` + secret + `; docker login -u bob -p $DOCKER_PASSWORD reg.io`,
		`PASSWORD="` + secret + `"; frobnicate "$PASSWORD"`,
		`PASSWORD='` + secret + `'; x=${PASSWORD:0:12}; frobnicate "$x" "$PASSWORD"`,
		"echo x " + key,
		"frobnicate '" + key + "'",
		`PASSWORD=` + secret + `; frobnicate ` + strings.Repeat("x", 110) + `$PASSWORD`,
	} {
		for _, kind := range []dialect.Kind{dialect.ToolBefore, dialect.PermissionAsked} {
			input, err := json.Marshal(map[string]string{"command": command})
			if err != nil {
				t.Fatal(err)
			}
			ev := dialect.Event{Client: "claude", Kind: kind, Tool: "shell", ToolName: "Bash", Input: input, Cwd: root}
			g := &Guarding{Rules: guard.Rules{Roots: []string{root}}, Dir: root, Get: func(string) string { return "" }}
			for _, knows := range []bool{true, false} {
				if g.Secrets = nil; knows {
					g.Secrets = redact.New().Secrets
				}
				j := g.Judge(t.Context(), ev)
				e, ok := j.Line(&ev, Who{})
				if !ok {
					t.Fatalf("%s: nothing is recorded: %+v", command, j)
				}
				verdict, err := json.Marshal(j.Verdict)
				if err != nil {
					t.Fatal(err)
				}
				for _, text := range []string{string(e.Data), string(verdict), j.Decision.Reason} {
					for _, piece := range pieces {
						if strings.Contains(text, piece) {
							t.Errorf("%s (known: %v): %q in\n%s", command, knows, piece, text)
						}
					}
				}
				if knows && strings.Contains(command, "frobnicate") && !strings.Contains(string(e.Data), "frobnicate") {
					t.Errorf("%s: the command is not told any more: %s", command, e.Data)
				}
				if !knows && j.Verdict.Decision != guard.Allow && !strings.Contains(j.Decision.Reason+j.Verdict.Reason, "may hold a secret") {
					t.Errorf("%s: %+v", command, j.Verdict)
				}
			}
		}
	}
}

// nobody records nothing, and must not be asked to.
type nobody struct{ t *testing.T }

func (n nobody) Record(context.Context, *quick.Event, bool) (bool, error) {
	n.t.Error("something is recorded")
	return false, nil
}

// Where nobody can tell which part of a call is a secret, the call is left to who can,
// whole: what is only decided is recorded there, too.
func TestSecretsAreLeftToWhoCanTell(t *testing.T) {
	root := guard.Resolve(t.TempDir())
	g := &Guarding{Rules: guard.Rules{Roots: []string{root}}, Dir: root, Get: func(string) string { return "" }}
	ev := dialect.Event{
		Client: "claude", Kind: dialect.ToolBefore, Tool: "shell", ToolName: "Bash", Cwd: root,
		Input: []byte(`{"command":"API_KEY=VqLo0AGW0ahkd4E58uAZs28C && frobnicate \"$API_KEY\""}`),
	}
	rules := plan.Rules{Record: true, Tools: []string{"shell:none"}}
	r := &Router{Rules: &rules, Recorder: nobody{t}, Guard: g, Warn: func(string, error) {}}
	if _, err := r.Route(t.Context(), ev); !errors.Is(err, ErrNeedsFull) {
		t.Errorf("%v", err)
	}
}
