package guard

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"reprise/internal/guard/know"
)

// Each entry of what programs do with their standard input counts: without it another
// thing is said of a shell that takes its commands from there.
func TestEachInputCounts(t *testing.T) {
	p := newProject(t)
	list := know.Inputs()
	if len(list) < 40 {
		t.Fatalf("%d entries", len(list))
	}
	for i := range list {
		program, sub, _ := strings.Cut(list[i].Name, " ")
		var before []string
		ask := func() (said []string) {
			for _, words := range []string{"", "x", "f", "-n 1", "f g", "$y", "x $y", "-", ". f", "-r x"} {
				v := p.judge("bash <<'E'\n" + strings.TrimSpace(program+" "+sub+" "+words) + "\nls\nE")
				said = append(said, fmt.Sprint(v.Decision, slices.ContainsFunc(v.Parts, func(of Part) bool { return of.Rule == "read-two-ways" })))
			}
			return said
		}
		before = ask()
		was := list[i].Input
		list[i].Input = know.ByWords
		after := ask()
		list[i].Input = was
		if slices.Equal(before, after) {
			t.Errorf("%s: nothing else is said without it", list[i].Name)
		}
	}
}
