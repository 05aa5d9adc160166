// Package chart draws lines over time as paths of an SVG.
//
// It owns no file, writes none and takes no lock.
package chart

import (
	"fmt"
	"math"
	"strings"
)

// The measures of a chart, in the units of its own view.
const (
	width, height   = 460, 200
	left, right     = 56, 8
	topEdge, bottom = 10, 26
	ticks           = 4 // lines across, at most
	days            = 6 // names along the bottom, at most
	markSize        = 4.0
)

// Series is a line of a chart: a value for each span of time, nil where there is none.
type Series struct {
	Name   string
	Look   int // colour and shape of its marks, from 0; lines of one chart have different ones
	Values []*float64
}

// Chart is a drawing of lines over time, for a template. Its text alternative is a table.
type Chart struct {
	W, H  int
	Left  int // where the lines across begin
	Grid  []Tick
	Below []Tick
	Lines []Line
}

// Tick is a line across, or a name below.
type Tick struct {
	X, Y   int
	Text   string
	Anchor string
}

// Line is a line with its marks; the shape of the marks tells lines apart where
// colours do not.
type Line struct {
	Class, Name string
	Path        string
	Marks       []Mark
	Key         string // mark for the legend, as a path about 0,0
}

// Mark is one value.
type Mark struct {
	D     string // path
	Title string
}

// Of draws lines over spans of time, by the names of these; of "from – to" the beginning is
// written below. With top the scale ends there, else at a round number above the highest
// value.
func Of(spans []string, lines []Series, top float64, show func(float64) string) Chart {
	c := Chart{W: width, H: height, Left: left}
	for _, l := range lines {
		for _, v := range l.Values {
			if v != nil {
				top = max(top, *v)
			}
		}
	}
	step := niceStep(top / ticks)
	if top != 1 {
		top = max(step, math.Ceil(top/step-1e-9)*step)
	} else {
		step = .25
	}
	x := func(i int) float64 {
		if len(spans) == 1 {
			return (left + width - right) / 2
		}
		return left + 8 + float64(i)*float64(width-left-right-16)/float64(len(spans)-1)
	}
	y := func(v float64) float64 { return height - bottom - v/top*(height-topEdge-bottom) }
	for v := 0.0; v <= top+step/1e6; v += step {
		c.Grid = append(c.Grid, Tick{Y: int(math.Round(y(v))), Text: show(v)})
	}
	every := (len(spans) + days - 1) / days
	for i := len(spans) - 1; i >= 0; i -= every {
		anchor := "middle"
		if i == len(spans)-1 {
			anchor = "end"
		}
		name, _, _ := strings.Cut(spans[i], " – ")
		c.Below = append(c.Below, Tick{X: int(x(i)), Y: height - 8, Text: name, Anchor: anchor})
	}
	for _, l := range lines {
		line := Line{Class: fmt.Sprintf("lane%d", l.Look), Name: l.Name, Key: markAt(l.Look, 0, 0)}
		var path strings.Builder
		for i, v := range l.Values {
			if v == nil {
				continue
			}
			verb := "L" // over spans without a value, too: few have one each day
			if path.Len() == 0 {
				verb = "M"
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", verb, x(i), y(*v))
			line.Marks = append(line.Marks, Mark{markAt(l.Look, x(i), y(*v)), fmt.Sprintf("%s, %s: %s", l.Name, spans[i], show(*v))})
		}
		line.Path = path.String()
		c.Lines = append(c.Lines, line)
	}
	return c
}

// niceStep is the next of 1, 2, 2.5 and 5 times a power of ten.
func niceStep(f float64) float64 {
	if f <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(f)))
	for _, n := range []float64{1, 2, 2.5, 5} {
		if n*power >= f*(1-1e-9) {
			return n * power
		}
	}
	return 10 * power
}

// markAt is the mark of a line: a disc, a square, a triangle, a diamond, a ring.
func markAt(n int, x, y float64) string {
	const r = markSize
	switch n % 5 {
	case 1:
		return fmt.Sprintf("M%.1f %.1fh%gv%gh%gz", x-r*.85, y-r*.85, r*1.7, r*1.7, -r*1.7)
	case 2:
		return fmt.Sprintf("M%.1f %.1fl%g %gh%gz", x, y-r*1.1, r*1.1, r*2, -r*2.2)
	case 3:
		return fmt.Sprintf("M%.1f %.1fl%g %gl%g %gl%g %gz", x, y-r*1.25, r*1.25, r*1.25, -r*1.25, r*1.25, -r*1.25, -r*1.25)
	case 4:
		return fmt.Sprintf("M%.1f %.1fh%gv%gh%gv%gh%gv%gh%gv%gh%gv%gh%gz", x-r*.4, y-r*1.2, r*.8, r*.8, r*.8, r*.8, -r*.8, r*.8, -r*.8, -r*.8, -r*.8, -r*.8, r*.8) // a cross
	}
	return fmt.Sprintf("M%.1f %.1fa%g %g 0 1 0 %g 0a%g %g 0 1 0 %g 0z", x-r, y, r, r, 2*r, r, r, -2*r)
}
