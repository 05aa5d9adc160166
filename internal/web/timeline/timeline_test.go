package timeline

import (
	"fmt"
	"strings"
	"testing"

	"reprise/internal/staterepo"
)

// The lines of a graph stay within it, and lead from an entry to what it goes on from.
func TestGraph(t *testing.T) {
	entry := func(id, agent, parent string, needs ...string) staterepo.Handoff {
		e := staterepo.Handoff{}
		e.ID, e.Parent, e.DependsOn, e.Branch = id, parent, needs, "agent-"+agent
		return e
	}
	g := Of([]staterepo.Handoff{entry("d", "b", "c"), entry("c", "a", "a1", "gone"), entry("b", "b", "", "a1"), entry("a1", "a", "")})
	if g.W != 2*laneWidth || g.H != 4*rowHeight || len(g.Dots) != 4 || len(g.Lanes) != 2 {
		t.Errorf("%+v", g)
	}
	var drawn []string
	for _, l := range g.Lines {
		drawn = append(drawn, l.Class+" "+l.D)
	}
	want := []string{"lane0 M8 28V140", "lane1 M24 84V196", "lane0 M8 28C8 56 24 56 24 84", "lane0 needs M8 140C8 168 24 168 24 196"}
	if strings.Join(drawn, "; ") != strings.Join(want, "; ") {
		t.Errorf("drawn\n%s\nwant\n%s", strings.Join(drawn, "\n"), strings.Join(want, "\n"))
	}
	var many []staterepo.Handoff
	for i := range 20 {
		many = append(many, entry(fmt.Sprint(i), fmt.Sprint("agent", i), fmt.Sprint(i+1)))
	}
	if g := Of(many); g.W != mostLanes*laneWidth || len(g.Lanes) != mostLanes {
		t.Errorf("twenty agents are %d wide", g.W)
	}
}
