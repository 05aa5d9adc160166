package task

import (
	"strings"
	"testing"
)

const plan = `# Implementation Plan: Task #12

### Phase 1: Read the log [COMPLETED]
**Goal**: know.

### Phase 2: Mend it [NOT STARTED] {#two}

- **Depends on**: Phase 1
- **Files**: ` + "`login.go`" + `, login_test.go

### Phase 3 - Tell them
**Status**: [IN PROGRESS]
**Depends on**: 1 and 2

## Phase 4
`

func TestPlan(t *testing.T) {
	p, err := ParsePlan([]byte(plan))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, ph := range p.Phases {
		got = append(got, itoa(ph.Number)+" "+ph.Title+" "+string(ph.Status)+" "+join(ph.DependsOn)+" "+strings.Join(ph.Files, "+"))
	}
	want := "1 Read the log completed nothing \n2 Mend it  {#two} not_started 1 login.go+login_test.go\n3 Tell them in_progress 1, 2 \n4  not_started nothing "
	if strings.Join(got, "\n") != want {
		t.Errorf("%q", strings.Join(got, "\n"))
	}
	if n := p.Next(); n.Number != 2 {
		t.Errorf("next %d", n.Number)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	ready := p.Ready()
	if len(ready) != 1 || ready[0].Number != 2 { // 4 says nothing, so it comes after 3
		t.Errorf("ready %+v", ready)
	}
	for n, s := range map[int]Status{1: NotStarted, 2: Completed, 3: Completed, 4: InProgress} {
		if err := p.SetStatus(n, Blocked); err != nil {
			t.Fatal(err)
		}
		if err := p.SetStatus(n, s); err != nil {
			t.Fatal(err)
		}
	}
	out := strings.NewReplacer("log [COMPLETED]", "log [NOT STARTED]", "it [NOT STARTED]", "it [COMPLETED]", "[IN PROGRESS]", "[COMPLETED]", "## Phase 4", "## Phase 4 [IN PROGRESS]").Replace(plan)
	if string(p.Bytes()) != out {
		t.Errorf("%s", p.Bytes())
	}
	if err := p.SetStatus(9, Planned); err == nil {
		t.Error("there is no phase 9")
	}
	for text, want := range map[string]string{
		"### Phase 1: a\n### Phase 1: b\n":                                             "lines 1 and 2",
		"### Phase 1: a\n**Depends on**: 2\n### Phase 2: b\n**Depends on**: Phase 1\n": "wait for each other",
		"### Phase 1: a\n**Depends on**: 7\n":                                          "does not have",
	} {
		p, err := ParsePlan([]byte(text))
		if err == nil {
			err = p.Check()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A plan in which nothing names what it waits for is worked through in order.
func TestPlanInOrder(t *testing.T) {
	p, err := ParsePlan([]byte("### Phase 2: b\n### Phase 1: a\n"))
	if err != nil {
		t.Fatal(err)
	}
	if r := p.Ready(); len(r) != 1 || r[0].Number != 1 {
		t.Errorf("%+v", r)
	}
	for n := 1; n <= 2; n++ {
		if err := p.SetStatus(n, Completed); err != nil {
			t.Fatal(err)
		}
	}
	if p.Next() != nil || p.Ready() != nil {
		t.Error("all is done")
	}
}

// A phase that does not say what it depends on is never worked at beside the one before
// it, whatever it says of its files; one that says "none" is.
func TestPhasesSideBySide(t *testing.T) {
	for text, want := range map[string]string{
		"### Phase 1: a\n- **Files**: a\n### Phase 2: b\n- **Files**: b\n":                                           "1",
		"### Phase 1: a\n### Phase 2: b\n### Phase 3: c\n**Depends on**: 1, 2\n":                                     "1",
		"### Phase 1: a\n### Phase 2: b\n- **Depends on**: none\n### Phase 3: c\n":                                   "1, 2",
		"### Phase 1: a [COMPLETED]\n### Phase 2: b\n- **Depends on**: Phase 1\n### Phase 3: c\n**Depends on**: 1\n": "2, 3",
		"### Phase 1: a [COMPLETED]\n### Phase 2: b [BLOCKED]\n### Phase 3: c\n":                                     "2",
	} {
		p, err := ParsePlan([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, ph := range p.Ready() {
			got = append(got, ph.Number)
		}
		if join(got) != want {
			t.Errorf("%q: ready are %s, not %s", text, join(got), want)
		}
	}
}
