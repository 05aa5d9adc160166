package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const repository = "../.."

// The table in the document is the one that the kept figures make.
func TestFiguresAreInTheDocument(t *testing.T) {
	k, err := readKept(repository)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(repository, figuresDoc))
	if err != nil {
		t.Fatal(err)
	}
	want, err := withFigures(string(data), k)
	if err != nil {
		t.Fatal(err)
	}
	if want != string(data) {
		t.Errorf("%s has other figures than %s: `go run ./script/bench record` writes both", figuresDoc, figuresFile)
	}
}

// What differs by more than its noise is named, in both directions, and so is what is on one
// side only; what differs by less is not.
func TestCompare(t *testing.T) {
	was := []figure{{Name: "a", What: "A", Value: 2, Noise: 0.1}, {Name: "b", What: "B", Value: 2, Noise: 0.1}, {Name: "c", What: "C", Value: 2, Noise: 0.1}, {Name: "gone", Value: 1, Noise: 1}}
	now := []figure{{Name: "a", What: "A", Value: 2.1}, {Name: "b", What: "B", Value: 2.3}, {Name: "c", What: "C", Value: 1.7}, {Name: "new", Value: 1}}
	text, beyond := compare(was, now)
	if got := strings.Join(beyond, ", "); got != "b (+15 %), c (-15 %), new (not kept), gone (not measured)" {
		t.Errorf("beyond the noise: %s", got)
	}
	if !strings.Contains(text, "| A |  | 2.00 | 2.10 | +5.0 % | ± 10 % |  |") {
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
	now, err := r.ratios()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range now {
		if strings.HasSuffix(f.Name, ".processor") {
			continue
		}
		for _, w := range k.Figures {
			if w.Name == f.Name && f.Value > 1.25*w.Value {
				t.Errorf("%s: %.2f %s, and %.2f is kept: `go run ./script/bench compare` shows all; where it is meant, `record` it", f.What, f.Value, f.Of, w.Value)
			}
		}
	}
	text, _ := compare(k.Figures, now)
	t.Log("\n" + text)
}
