package chart

import (
	"fmt"
	"math"
	"regexp"
	"testing"
)

// Every point of a chart lies within it, whatever the values are.
func TestChartStaysWithinItself(t *testing.T) {
	for _, n := range []int{1, 7, 10, 13} {
		spans := make([]string, n)
		for i := range spans {
			spans[i] = fmt.Sprintf("%d Nov – %d Nov", i+1, i+2)
		}
		for _, top := range []float64{0, 0.004, 1, 7, 99.5, 123456, 3e12} {
			l := Series{Name: "x", Values: make([]*float64, len(spans))}
			for i := range spans {
				v := top * float64(i) / float64(max(len(spans)-1, 1))
				l.Values[i] = &v
			}
			c := Of(spans, []Series{l, {Name: "none", Values: make([]*float64, len(spans))}}, 0, func(f float64) string { return fmt.Sprint(f) })
			if len(c.Grid) < 2 || len(c.Grid) > ticks+2 {
				t.Errorf("a scale to %g has %d lines", top, len(c.Grid))
			}
			for _, tick := range c.Grid {
				if tick.Y < 0 || tick.Y > height {
					t.Errorf("a line of a scale to %g lies at %d", top, tick.Y)
				}
			}
			for _, pair := range regexp.MustCompile(`[ML](-?[\d.]+|NaN|[+-]Inf) (-?[\d.]+|NaN|[+-]Inf)`).FindAllStringSubmatch(c.Lines[0].Path, -1) {
				var x, y float64
				if _, err := fmt.Sscan(pair[1]+" "+pair[2], &x, &y); err != nil || math.IsNaN(y) || x < left || x > width || y < 0 || y > height-bottom+1 {
					t.Errorf("a point of a scale to %g lies at %s", top, pair[0])
				}
			}
		}
	}
}
