package tell

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"reprise/internal/loop/core"
)

// Metrics are a loop's figures.
type Metrics struct {
	V             int        `json:"v"`
	Loop          string     `json:"loop"`
	Phase         core.Phase `json:"phase"`
	Began         time.Time  `json:"began"`
	WorkedSeconds float64    `json:"worked_seconds"`
	Workers       int        `json:"workers"`
	Busy          int        `json:"busy"`
	Iterations    int        `json:"iterations"`
	core.Tally
	CostUSD float64 `json:"cost_usd"`
	// EstimatedUSD is the part of it that no client has told: of runs that were ended before they could.
	EstimatedUSD float64 `json:"estimated_usd"`
	// Untold is how many attempts cost nobody knows what, which the sum has nothing of.
	Untold        int     `json:"cost_unknown"`
	Tokens        int64   `json:"tokens"`
	MaxIterations int     `json:"max_iterations"`
	MaxUSD        float64 `json:"max_usd"`
	MaxTokens     int64   `json:"max_tokens"`
	MaxSeconds    float64 `json:"max_seconds"`
	FailuresInRow int     `json:"failures_in_row"`
}

// MetricsOf are the figures of a state.
func MetricsOf(s core.State) Metrics {
	return Metrics{
		V: 1, Loop: s.Loop, Phase: s.Phase, Began: s.Began.Wall, WorkedSeconds: s.Worked.Seconds(), Workers: len(s.Slots), Busy: s.Busy(),
		Iterations: s.Iterations, Tally: s.Tally, CostUSD: s.CostUSD, EstimatedUSD: s.EstimatedUSD, Untold: s.Untold, Tokens: s.Tokens,
		MaxIterations: s.Limits.MaxIterations, MaxUSD: s.Limits.MaxUSD, MaxTokens: s.Limits.MaxTokens, MaxSeconds: s.Limits.MaxTime.Seconds(),
		FailuresInRow: s.Row,
	}
}

// Prometheus writes the figures as Prometheus reads them (text format 0.0.4).
func (m Metrics) Prometheus(w io.Writer, project string) error {
	var b strings.Builder
	label := fmt.Sprintf("project=%q", project)
	one := func(name, kind, help string, v float64, more ...string) {
		fmt.Fprintf(&b, "# HELP reprise_loop_%s %s\n# TYPE reprise_loop_%s %s\n", name, help, name, kind)
		fmt.Fprintf(&b, "reprise_loop_%s{%s} %g\n", name, strings.Join(append([]string{label}, more...), ","), v)
	}
	one("iterations_total", "counter", "Attempts at items that were begun.", float64(m.Iterations))
	fmt.Fprintf(&b, "# HELP reprise_loop_items_total Iterations by how they ended.\n# TYPE reprise_loop_items_total counter\n")
	for _, t := range []struct {
		fate string
		n    int
	}{{"done", m.Done}, {"failed", m.Failed}, {"given_up", m.GivenUp}, {"parked", m.Parked}, {"released", m.Released}, {"lost", m.Lost}} {
		fmt.Fprintf(&b, "reprise_loop_items_total{%s,fate=%q} %d\n", label, t.fate, t.n)
	}
	one("interrupts_total", "counter", "Decisions that a person had to make.", float64(m.Interrupts))
	one("rate_limited_total", "counter", "Runs that ended at a rate limit.", float64(m.RateLimited))
	one("cost_usd_total", "counter", "US dollars.", m.CostUSD)
	one("estimated_usd_total", "counter", "US dollars of these that no client has told: of runs that were ended before they could.", m.EstimatedUSD)
	one("cost_unknown_total", "counter", "Attempts of which nobody has told what they cost.", float64(m.Untold))
	one("tokens_total", "counter", "Tokens.", float64(m.Tokens))
	one("worked_seconds_total", "counter", "Seconds of work.", m.WorkedSeconds)
	one("workers", "gauge", "Workers.", float64(m.Workers))
	one("workers_busy", "gauge", "Workers that have something to do.", float64(m.Busy))
	one("failures_in_row", "gauge", "Failures since the last success.", float64(m.FailuresInRow))
	fmt.Fprintf(&b, "# HELP reprise_loop_phase 1 for the phase that the loop is in.\n# TYPE reprise_loop_phase gauge\n")
	for _, p := range []core.Phase{core.Working, core.Paused, core.Waiting, core.Draining, core.Stopping, core.Finished} {
		v := 0
		if p == m.Phase {
			v = 1
		}
		fmt.Fprintf(&b, "reprise_loop_phase{%s,phase=%q} %d\n", label, p, v)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// GoOn is how a loop goes on that waits for a person, and about no item. At a ceiling it
// would wait again unless that is raised.
func GoOn(kind string, m Metrics) string {
	switch {
	case kind != core.ByBudget:
		return "reprise loop resume"
	case m.Tokens >= m.MaxTokens:
		return "reprise loop resume --more-tokens N"
	}
	return "reprise loop resume --more-usd N"
}

// Beside says that what a loop waits for is to be told beside the questions that are open
// about items, or answered and not taken up yet: who answers these leaves it standing.
func Beside(i *core.Interrupt, asked []string) bool {
	switch {
	case i == nil:
		return false
	case len(asked) == 0:
		return true
	case i.Kind == core.ByAgent, i.Kind == core.ByGate:
		return false // it is one of them
	}
	return !slices.ContainsFunc(i.Items, func(id string) bool { return slices.Contains(asked, id) })
}
