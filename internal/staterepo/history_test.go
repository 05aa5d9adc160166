package staterepo_test

import (
	"errors"
	"strings"
	"testing"

	"reprise/internal/mdfile"
	"reprise/internal/staterepo"
)

// What an agent wrote can be looked at commit by commit, page by page, with what each
// changed; a merge is one step of the branch that it came into.
func TestHistory(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	m.ensure()
	one := m.agent("one")
	for i, text := range []string{"The port is 5432", "name with a\ttab and ünï", "The last"} {
		m.add(one, mdfile.Entry{Type: mdfile.TypeLearning, Text: text, Time: at(i)})
	}
	list, err := m.repo.History(t.Context(), "one", "", 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || len(list[0].Parents) != 1 || list[0].Parents[0] != list[1].Commit || len(list[0].Files) != 1 || list[0].Files[0] != "learnings.md" || list[0].Time.IsZero() || list[0].Message == "" {
		t.Fatalf("%+v", list)
	}
	rest, err := m.repo.History(t.Context(), "one", list[1].Commit, 100)
	if err != nil || len(rest) < 3 || rest[0].Commit != list[1].Commit {
		t.Fatalf("%+v %v", rest, err)
	}
	step, diff, err := m.repo.Diff(t.Context(), list[0].Commit)
	if err != nil || step.Commit != list[0].Commit || !strings.Contains(diff, "+The last\n") || strings.Contains(diff, "+The port") {
		t.Errorf("%+v %v\n%s", step, err, diff)
	}
	if _, diff, err := m.repo.Diff(t.Context(), rest[len(rest)-2].Commit); err != nil || !strings.Contains(diff, "new file") {
		t.Errorf("%v\n%s", err, diff)
	}
	// The first commit of all has no parent, and no file.
	if first, diff, err := m.repo.Diff(t.Context(), rest[len(rest)-1].Commit); err != nil || diff != "" || len(first.Parents)+len(first.Files) > 0 {
		t.Errorf("%+v %v\n%s", first, err, diff)
	}
	if all, err := m.repo.History(t.Context(), "", "", 10); err != nil || len(all) == 0 {
		t.Errorf("what all share has no history: %+v %v", all, err)
	}
	for _, bad := range []string{"HEAD", "--output=x", strings.Repeat("0", 40), list[0].Commit[:8]} {
		if _, _, err := m.repo.Diff(t.Context(), bad); !errors.Is(err, staterepo.ErrUnknown) {
			t.Errorf("%q: %v", bad, err)
		}
		if _, err := m.repo.History(t.Context(), "one", bad, 1); !errors.Is(err, staterepo.ErrUnknown) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := m.repo.History(t.Context(), "nobody", "", 1); !errors.Is(err, staterepo.ErrNoAgent) {
		t.Error(err)
	}
}
