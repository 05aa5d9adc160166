package staterepo_test

import (
	"strings"
	"testing"

	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/staterepo"
)

// An agent with a new name is one agent: what it wrote under the old one counts as its
// own, handoffs for the old name reach it, and nobody is in the table twice. What another
// agent of the old name writes, here or elsewhere, is that one's.
func TestRenamedIsOneAgent(t *testing.T) {
	t.Parallel()
	m, o := emptyPair.pair(t)
	ctx := t.Context()
	first := m.agent("vm")
	m.add(first, mdfile.Entry{Type: mdfile.TypeImplement, Text: "Of the first", Time: at(1)})
	m.add(first, mdfile.Entry{Type: mdfile.TypeHandoff, Status: "pending", Text: "To anyone", Time: at(2)})
	m.add(m.agent("ben"), mdfile.Entry{Type: mdfile.TypeHandoff, Status: "pending", To: "vm", Text: "To the first", Time: at(3)})
	second := o.agent("vm")
	o.add(second, mdfile.Entry{Type: mdfile.TypeImplement, Text: "Of the second", Time: at(4)})

	// The same name is no other name. Before, this took the branch away.
	if same, err := first.Rename(ctx, memory.FullAccess, "vm"); err == nil || m.gitIn(first.Dir, "log", "-1", "--format=%an") != "vm\n" {
		t.Fatal(same, err)
	}
	team := func(x *machine) map[string]staterepo.Member {
		t.Helper()
		list, err := x.repo.Team(ctx)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]staterepo.Member{}
		for _, a := range list {
			out[a.Agent] = a
		}
		return out
	}
	middle, err := first.Rename(ctx, memory.FullAccess, "middle")
	if err != nil {
		t.Fatal(err)
	}
	one, err := middle.Rename(ctx, memory.FullAccess, "one")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []staterepo.Member{team(m)["one"]} {
		if a.Entries != 4 || a.Last.IsZero() || len(a.Open) != 1 || a.Waiting != 1 {
			t.Errorf("%+v", a)
		}
	}
	if _, err := m.repo.Log(ctx, "vm"); err == nil || !strings.Contains(err.Error(), `"vm", which is called one now`) {
		t.Error(err)
	}
	m.sync()
	o.sync()
	m.sync()
	got := team(o)
	if a, b := got["one"], got["vm"]; a.Entries != 4 || b.Entries != 1 || b.On != "Of the second" || len(a.Open) != 1 || len(b.Open) != 0 {
		t.Errorf("%+v\n%+v", a, b)
	}
	log := o.read(o.repo.Global().Dir, "changelog.md")
	if strings.Contains(log, "| middle |") || !strings.Contains(log, "| one |") {
		t.Error(log)
	}
	// There is another vm now, whom the handoff may be for as well: it is that one's.
	if a := team(m)["one"]; a.Waiting != 0 {
		t.Errorf("%+v", a)
	}
	for _, h := range m.handoffs("vm") {
		if h.To == "vm" {
			if _, err := second.Accept(ctx, memory.FullAccess, h.ID); err != nil {
				t.Error(err)
			}
		}
	}
	if got := m.gitIn(one.Dir, "status", "--porcelain"); got != "" {
		t.Error(got)
	}
	for _, x := range []*machine{m, o} {
		whole(x, "in the end")
	}
}
