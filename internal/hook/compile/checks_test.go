package compile

import (
	"context"
	"testing"

	"reprise/internal/config"
	"reprise/internal/guard"
)

// A check that is a list is allowed word by word, whatever is in a word: a blank does not
// make two of it, and a star stands for itself. That survives the way through a plan.
func TestListsAreAllowedAsTheyStand(t *testing.T) {
	w := newWorld(t)
	w.write("shop/.reprise/project.yaml", "v: 1\nname: shop\nverify:\n  profiles:\n    quick:\n      - run: [python3, -m, compileall, my dir]\n      - run: [make, 'a*']\n      - run: [make, lint, '...']\n      - run: [go, vet, ./...]\n      - run: [./my tools/check, '']\n")
	env := w.env
	env.Dir = w.path("shop")
	home, err := config.Open(env, "")
	if err != nil {
		t.Fatal(err)
	}
	trust, err := home.Paths.Trust(home.Project)
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Paths.Approve(context.Background(), home.Project, trust, env.Now()); err != nil {
		t.Fatal(err)
	}
	made := Guard(home, env, "")
	rules, ok := guard.ParseLines(made.Lines())
	if !ok {
		t.Fatalf("the plan cannot be read: %q", made.Lines())
	}
	for line, want := range map[string]guard.Decision{
		"python3 -m compileall 'my dir'":    guard.Allow,
		`python3 -m compileall "my dir"`:    guard.Allow,
		"python3 -m compileall my dir":      guard.Ask,
		"python3 -m compileall 'my dir' -f": guard.Ask,
		"make 'a*'":                         guard.Allow,
		"make a*":                           guard.Ask,
		"make ab":                           guard.Ask,
		"make lint ...":                     guard.Allow,
		"make lint more":                    guard.Ask,
		"go vet ./...":                      guard.Allow,
		"'./my tools/check' ''":             guard.Allow,
		"'./my tools/check'":                guard.Ask,
	} {
		v := rules.Command(line, env.Dir)
		if v.Decision != want && !(want == guard.Allow && v.Decision == guard.None) {
			t.Errorf("%s: %s (%+v), want %s", line, v.Decision, v.Parts, want)
		}
	}
}
