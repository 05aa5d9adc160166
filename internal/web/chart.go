package web

import (
	"fmt"
	"math"
	"strings"
)

// The measures of a chart, in the units of its own view.
const (
	chartW, chartH        = 460, 200
	chartLeft, chartRight = 56, 8
	chartTop, chartBottom = 10, 26
	chartTicks            = 4 // lines across, at most
	chartDays             = 6 // names along the bottom, at most
	markSize              = 4.0
)

// series is a line of a chart: a value for each span, nil where there is none.
type series struct {
	name   string
	values []*float64
}

// chart is a drawing of lines over time, for a template. Its text alternative is a table.
type chart struct {
	W, H  int
	Left  int // where the lines across begin
	Grid  []chartTick
	Below []chartTick
	Lines []chartLine
}

type chartTick struct {
	X, Y   int
	Text   string
	Anchor string
}

// chartLine is a line with its marks; the shape of the marks tells lines apart where
// colours do not.
type chartLine struct {
	Class, Name string
	Path        string
	Marks       []chartMark
	Key         string // mark for the legend, as a path about 0,0
}

type chartMark struct {
	D     string // path
	Title string
}

// chartOf draws lines. With top the scale ends there, else at a round number above the
// highest value.
func chartOf(spans []span, lines []series, top float64, show func(float64) string) chart {
	c := chart{W: chartW, H: chartH, Left: chartLeft}
	for _, l := range lines {
		for _, v := range l.values {
			if v != nil {
				top = max(top, *v)
			}
		}
	}
	step := niceStep(top / chartTicks)
	if top != 1 {
		top = max(step, math.Ceil(top/step-1e-9)*step)
	} else {
		step = .25
	}
	x := func(i int) float64 {
		if len(spans) == 1 {
			return (chartLeft + chartW - chartRight) / 2
		}
		return chartLeft + 8 + float64(i)*float64(chartW-chartLeft-chartRight-16)/float64(len(spans)-1)
	}
	y := func(v float64) float64 { return chartH - chartBottom - v/top*(chartH-chartTop-chartBottom) }
	for v := 0.0; v <= top+step/1e6; v += step {
		c.Grid = append(c.Grid, chartTick{Y: int(math.Round(y(v))), Text: show(v)})
	}
	every := (len(spans) + chartDays - 1) / chartDays
	for i := len(spans) - 1; i >= 0; i -= every {
		anchor := "middle"
		if i == len(spans)-1 {
			anchor = "end"
		}
		name, _, _ := strings.Cut(spans[i].name, " – ")
		c.Below = append(c.Below, chartTick{X: int(x(i)), Y: chartH - 8, Text: name, Anchor: anchor})
	}
	for n, l := range lines {
		line := chartLine{Class: fmt.Sprintf("lane%d", n), Name: l.name, Key: markAt(n, 0, 0)}
		var path strings.Builder
		for i, v := range l.values {
			if v == nil {
				continue
			}
			verb := "L" // over spans without a value, too: few have one each day
			if path.Len() == 0 {
				verb = "M"
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", verb, x(i), y(*v))
			line.Marks = append(line.Marks, chartMark{markAt(n, x(i), y(*v)), fmt.Sprintf("%s, %s: %s", l.name, spans[i].name, show(*v))})
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
