// Package timeline draws the entries of several agents as a graph beside their list.
//
// It owns no files, writes none and takes no lock.
package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reprise/internal/staterepo"
)

// Whose is whose log an entry stands in, "" of what all share.
func Whose(e staterepo.LogEntry) string {
	if e.Branch == staterepo.GlobalBranch {
		return ""
	}
	return strings.TrimPrefix(e.Branch, "agent-")
}

// The graph beside the timeline, in the stylesheet's pixels: each entry is as high as a
// row of the list.
const (
	rowHeight = 56
	laneWidth = 16
	dotRadius = 5
	mostLanes = 8
)

// Graph is the lines that join the entries of a timeline, from the newest at the top.
type Graph struct {
	W, H  int
	Lines []Line
	Dots  []Point
	Lanes []Name
}

type Line struct {
	D     string // path
	Class string
}

type Point struct {
	X, Y, R int
	Class   string
}

type Name struct {
	Class, Name string
}

// Of draws entries, the newest first: a lane for each agent, a line along it, and
// lines across to what an entry goes on from or needs. What lies on an older page is
// shown by a line that leaves at the bottom.
func Of(list []staterepo.Handoff) Graph {
	var g Graph
	if len(list) == 0 {
		return g
	}
	lanes, first, last := map[string]int{}, map[int]int{}, map[int]int{} // by agent; the rows of a lane
	row := map[string]int{}
	lane := func(e staterepo.Handoff) int {
		who := Whose(e.LogEntry)
		n, ok := lanes[who]
		if !ok {
			if n = len(lanes); n >= mostLanes {
				return mostLanes - 1
			}
			lanes[who] = n
			name := who
			if name == "" {
				name = "shared"
			}
			g.Lanes = append(g.Lanes, Name{fmt.Sprintf("lane%d", n), name})
		}
		return n
	}
	x := func(lane int) int { return laneWidth/2 + lane*laneWidth }
	y := func(row int) int { return rowHeight/2 + row*rowHeight }
	for i, e := range list {
		row[e.ID] = i
		n := lane(e)
		if _, ok := first[n]; !ok {
			first[n] = i
		}
		last[n] = i
		g.Dots = append(g.Dots, Point{x(n), y(i), dotRadius, fmt.Sprintf("lane%d", n)})
	}
	g.W, g.H = laneWidth*max(1, min(len(lanes), mostLanes)), rowHeight*len(list)
	for n, from := range first {
		if to := last[n]; to > from {
			g.Lines = append(g.Lines, Line{fmt.Sprintf("M%d %dV%d", x(n), y(from), y(to)), fmt.Sprintf("lane%d", n)})
		}
	}
	slices.SortFunc(g.Lines, func(a, b Line) int { return cmp.Compare(a.Class, b.Class) })
	for i, e := range list {
		own := lane(e)
		join := func(id, class string) {
			j, here := row[id]
			if !here || j <= i {
				return
			}
			other := lane(list[j])
			if other == own && class == "" {
				return // along the lane already
			}
			middle := (y(i) + y(j)) / 2
			if other == own {
				side := x(own) + laneWidth*2/3
				g.Lines = append(g.Lines, Line{fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x(own), y(i), side, middle, side, middle, x(own), y(j)), class})
				return
			}
			g.Lines = append(g.Lines, Line{fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x(own), y(i), x(own), middle, x(other), middle, x(other), y(j)), strings.TrimSpace(fmt.Sprintf("lane%d %s", own, class))})
		}
		join(e.Parent, "")
		for _, id := range e.DependsOn {
			join(id, "needs")
		}
		if e.Supersedes != "" {
			join(e.Supersedes, "needs")
		}
	}
	return g
}
