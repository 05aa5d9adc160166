package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const repository = "../.."

// The tables in the documents are those that the kept figures make, and each part that is
// kept is shown.
func TestFiguresAreInTheDocument(t *testing.T) {
	k, err := readKept(repository)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, name := range figureDocs {
		data, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil {
			t.Fatal(err)
		}
		want, used, err := withFigures(string(data), k)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if want != string(data) {
			t.Errorf("%s has other figures than %s: `go run ./script/bench record` writes both", name, figuresFile)
		}
		for _, part := range used {
			shown[part] = true
		}
	}
	for _, m := range measures {
		if !shown[m.name] {
			t.Errorf("%s is measured, and in no document", m.name)
		}
		if k.part(m.name) == nil {
			t.Errorf("%s is not kept", m.name)
		}
	}
}

// What differs by more than its noise is named, in both directions, and so is what is on one
// side only; what differs by less is not.
func TestCompare(t *testing.T) {
	was := []figure{{Name: "a", What: "A", Value: 2, Noise: 0.1}, {Name: "b", What: "B", Value: 2, Noise: 0.1}, {Name: "c", What: "C", Value: 2, Noise: 0.1}, {Name: "gone", Value: 1, Noise: 1}, {Name: "none", Noise: exact}, {Name: "some", Noise: exact}}
	now := []figure{{Name: "a", What: "A", Value: 2.1}, {Name: "b", What: "B", Value: 2.3}, {Name: "c", What: "C", Value: 1.7}, {Name: "new", Value: 1}, {Name: "none"}, {Name: "some", Value: 1}}
	text, beyond := compare(was, now)
	if got := strings.Join(beyond, ", "); got != "b (+15 %), c (-15 %), new (not kept), some (+Inf %), gone (not measured)" {
		t.Errorf("beyond the noise: %s", got)
	}
	if !strings.Contains(text, "| A |  | 2 | 2.1 | +5.0 % | ± 10 % |  |") {
		t.Errorf("the table is\n%s", text)
	}
}

// What a program touches and how often it asks git does not hang on what else a machine
// does, so that a rise of a quarter is one of the program. Processor time, which other work
// can double, is left to people who run `go run ./script/bench compare`.
func TestFiguresHold(t *testing.T) {
	if os.Getenv("REPRISE_SUITES") == "" {
		t.Skip("it builds the programs and starts them a hundred times: script/test has it in a step of its own, REPRISE_SUITES=1")
	}
	if runtime.GOOS != "linux" {
		t.Skip("what is kept was measured on Linux, and other systems count pages otherwise")
	}
	k, err := readKept(repository)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(repository)
	r, err := newRig(t.TempDir(), 5)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []struct {
		part string
		run  func() ([]figure, error)
	}{
		{"programs", r.programFigures}, {"context", r.contextFigures},
		{"loop", func() ([]figure, error) {
			git, err := r.gitOfItem()
			return []figure{{Name: "item.git", Value: git}}, err
		}},
	} {
		now, err := m.run()
		if err != nil {
			t.Fatalf("%s: %v", m.part, err)
		}
		was := k.part(m.part)
		if was == nil {
			t.Fatalf("%s: nothing is kept", m.part)
		}
		looked := 0
		for _, f := range now {
			for _, w := range was.Figures {
				if w.Name != f.Name || !w.steady() {
					continue
				}
				looked++
				if f.Value > 1.25*w.Value {
					t.Errorf("%s: %s %s, and %s is kept: `go run ./script/bench compare` shows all; where it is meant, `record` it", f.What, digits(f.Value), f.Of, digits(w.Value))
				}
			}
		}
		if looked == 0 {
			t.Errorf("%s: none of what is measured is kept", m.part)
		}
		text, _ := compare(was.Figures, now)
		t.Log("\n" + text)
	}
}
