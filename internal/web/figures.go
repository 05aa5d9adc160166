package web

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/run"
	"reprise/internal/term"
	"reprise/internal/web/chart"
)

// mostSeries are the lines of a chart; what is beyond is drawn as one.
const mostSeries = 5

func (s *Server) figureRoutes() { s.mux.HandleFunc("GET /figures", s.figureShow) }

// figure is one measure over time.
type figure struct {
	ID, Name string
	What     string // what is measured, in a sentence
	Chart    chart.Chart
	Table    table
	Empty    string // why there is nothing to show
}

// table is a chart as text: a row for each span of time, a column for each line.
type table struct {
	Heads []string
	Rows  []tableRow
}

type tableRow struct {
	Name  string
	Cells []string
}

type figuresPage struct {
	By      string // client or agent
	Days    int
	Spans   []int
	Figures []figure
	More    bool // sessions are being worked out
	Trouble []string
}

// measure is how values come to a figure.
type measure struct {
	id, name, what, empty string
	fold                  string // mean, sum, median, p95
	whole                 bool   // the table has a column for each line, also for those that are drawn as one
	max                   float64
	show                  func(float64) string
	cells                 *cells
}

// cell is what a measure's values in one span of time come to, of one group.
type cell struct {
	n           int
	sum, weight float64
	values      []float64 // where ranks are asked for
}

// cells are the values of a measure by group and span of time.
type cells struct {
	spans  []span
	ranks  bool // the values themselves are kept
	groups map[string][]cell
}

func newCells(spans []span, ranks bool) *cells {
	return &cells{spans: spans, ranks: ranks, groups: map[string][]cell{}}
}

// add adds a value; of a rate its weight is how many it is of. What is outside the spans
// is left out.
func (c *cells) add(at time.Time, group string, value, weight float64) {
	i := len(c.spans) - 1
	if at.Before(c.spans[0].from) || !at.Before(c.spans[i].to) {
		return
	}
	for ; at.Before(c.spans[i].from); i-- {
	}
	g := c.groups[group]
	if g == nil {
		g = make([]cell, len(c.spans))
		c.groups[group] = g
	}
	g[i].n, g[i].sum, g[i].weight = g[i].n+1, g[i].sum+value*weight, g[i].weight+weight
	if c.ranks {
		g[i].values = append(g[i].values, value)
	}
}

// names are those of the groups, the ones with the most in them first.
func (c *cells) names() []string {
	weight := map[string]float64{}
	for name, g := range c.groups {
		for _, one := range g {
			weight[name] += one.weight
		}
	}
	return slices.SortedFunc(maps.Keys(weight), func(a, b string) int {
		return cmp.Or(cmp.Compare(weight[b], weight[a]), strings.Compare(a, b))
	})
}

// together are the groups as one.
func (c *cells) together(names []string) []cell {
	out := make([]cell, len(c.spans))
	for _, name := range names {
		for i, one := range c.groups[name] {
			out[i].n, out[i].sum, out[i].weight = out[i].n+one.n, out[i].sum+one.sum, out[i].weight+one.weight
			out[i].values = append(out[i].values, one.values...)
		}
	}
	return out
}

func (s *Server) figureShow(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p := figuresPage{By: q.Get("by"), Days: number(r, "days"), Spans: []int{7, 30, 90}}
	if p.By != "agent" {
		p.By = "client"
	}
	if !slices.Contains(p.Spans, p.Days) {
		p.Days = 30
	}
	spans := spansOf(s.deps.Now(), p.Days)
	list, more, trouble := s.measures(r.Context(), p.By, spans)
	p.More, p.Trouble = more, trouble
	looks := looks{}
	for _, m := range list {
		p.Figures = append(p.Figures, m.figure(looks))
	}
	s.show(w, r, "figures", s.view(r, "figures", "Figures", p))
}

// span is a part of the time that a chart shows.
type span struct {
	from, to time.Time
	name     string
}

// spansOf divides the last days: a week by days, a month by three days, a quarter of a
// year by weeks, for single days of few sessions say little.
func spansOf(now time.Time, days int) []span {
	step := 1
	switch {
	case days > 60:
		step = 7
	case days > 14:
		step = 3
	}
	n := (days + step - 1) / step
	local := now.Local()
	end := time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, local.Location())
	var out []span
	for i := n - 1; i >= 0; i-- {
		to := end.AddDate(0, 0, -i*step)
		from := to.AddDate(0, 0, -step)
		name := from.Format("2 Jan")
		if step > 1 {
			name += " – " + to.AddDate(0, 0, -1).Format("2 Jan")
		}
		out = append(out, span{from, to, name})
	}
	return out
}

func spanNames(spans []span) []string {
	var names []string
	for _, s := range spans {
		names = append(names, s.name)
	}
	return names
}

// measures gathers what there is in the spans, by client or by agent. more says that
// sessions are being worked out yet.
func (s *Server) measures(ctx context.Context, by string, spans []span) (list []*measure, more bool, trouble []string) {
	percent := func(f float64) string { return fmt.Sprintf("%.0f %%", 100*f) }
	count := func(f float64) string { return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64) }
	runs := &measure{id: "runs", name: "Runs that ended well", what: "Of the runs that ended, those whose client ended without an error and whose work was not refused: by the project's checks, or by the loop, which wants something to have come of it.", empty: "No run has ended in this time.", fold: "mean", max: 1, show: percent}
	well := &measure{id: "sessions", name: "Sessions that ended well", what: "Of the sessions whose outcome is known: by verification, or where there is none by corrections and failures that stayed.", empty: "No session with a known outcome in this time.", fold: "mean", max: 1, show: percent}
	retries := &measure{id: "retries", name: "Retries", what: "Failed calls that were made again with the same input, a session.", empty: "No session with tool calls in this time.", fold: "mean", show: count}
	cost := &measure{id: "cost", name: "Cost", what: "US dollars, as clients told them, all runs together.", empty: "No run in this time told what it cost.", fold: "sum", show: term.USD}
	tokens := &measure{id: "tokens", name: "Tokens put in", what: "What a session was told of what is remembered, in tokens.", empty: "No session was told anything in this time.", fold: "mean", show: func(f float64) string { return num(int64(f + .5)) }}
	hits := &measure{id: "hits", name: "Recall hits", what: "Of what sessions were told, what was mentioned later or said to be useful.", empty: "Nothing was told in this time.", fold: "mean", max: 1, show: percent}
	hooks := newLatency()
	for _, m := range []*measure{runs, well, retries, cost, tokens, hits} {
		m.cells = newCells(spans, false)
		list = append(list, m)
	}
	list = append(list, &hooks.median, &hooks.high, &hooks.hookMedian, &hooks.hookHigh)

	agents := map[string]string{} // of a session and of a run
	var refused map[string]bool
	if s.deps.Events != nil {
		err := s.tail.look(s.deps.Events.Dir, func(t *tail) {
			hooks.take(&t.hooks, by, spans)
			refused = maps.Clone(t.hooks.refused)
			if by == "agent" {
				agents = maps.Clone(t.hooks.agents)
			}
		})
		if err != nil {
			trouble = append(trouble, err.Error())
		}
	}
	group := func(client, session, run string) string {
		if by == "client" {
			return orNone(client, "no client")
		}
		name := agents["session "+session]
		if name == "" {
			name = agents["run "+run]
		}
		return orNone(name, "no agent")
	}
	records, err := s.allRuns(ctx)
	if err != nil {
		trouble = append(trouble, err.Error())
	}
	for _, rec := range records {
		if rec.EndedAt == nil || rec.Origin == "judge" || s.deps.Project != "" && rec.Project != s.deps.Project {
			continue // as sessions are: of this project, outside any of all
		}
		g := group(rec.Client, rec.SessionID, rec.ID)
		good := 0.0
		if rec.Status == run.Completed && !refused[rec.ID] {
			good = 1
		}
		if rec.Status.Done() {
			runs.cells.add(*rec.EndedAt, g, good, 1)
		}
		if rec.EndedAt.Before(spans[0].from) {
			continue
		}
		if usd := s.usedBy(rec).USD; usd > 0 {
			cost.cells.add(*rec.EndedAt, g, usd, 1)
		}
	}
	sessions, more, err := s.sessions(ctx)
	if err != nil {
		trouble = append(trouble, err.Error())
	}
	for _, st := range sessions {
		g := group(st.Client, st.Session, "")
		add := func(m *measure, value, weight float64) {
			if weight > 0 {
				m.cells.add(st.Start, g, value, weight)
			}
		}
		switch st.Outcome {
		case "good":
			add(well, 1, 1)
		case "corrected", "failed", "error":
			add(well, 0, 1)
		}
		if st.Calls > 0 {
			add(retries, float64(st.Retries), 1)
		}
		if st.Recalls > 0 && !st.HeldOut {
			add(tokens, float64(st.Tokens), 1)
			add(hits, float64(min(st.Used, st.Served))/float64(max(st.Served, 1)), float64(st.Served))
		}
	}
	return list, more, trouble
}

// used is what a run that has ended used.
type used struct {
	USD    float64
	Tokens int64
}

// usedBy is what a run that has ended cost, and its tokens; it is read once.
func (s *Server) usedBy(rec run.Record) used {
	if u, ok := s.costs.Load(rec.ID); ok {
		return u.(used)
	}
	var u used
	if whole, err := s.deps.Runs.Get(rec.ID); err == nil && whole.Result != nil {
		u.USD, u.Tokens = whole.Spent()
	}
	if rec.Status.Done() {
		s.costs.Store(rec.ID, u)
	}
	return u
}

func orNone(name, none string) string {
	if name == "" {
		return "(" + none + ")"
	}
	return name
}

// looks are the colours and marks of lines by their names: what is a blue triangle in one
// chart is one in each chart of the page.
type looks map[string]int

// of gives the lines of a chart looks that differ from each other. A line keeps the one
// that it had in an earlier chart, where no other line has it; a new one gets a look that
// no name has yet, while there are such.
func (l looks) of(names []string) []int {
	out, here := make([]int, len(names)), map[int]bool{}
	for i, n := range names {
		v, ok := l[n]
		if !ok || here[v] {
			out[i] = -1
			continue
		}
		out[i], here[v] = v, true
	}
	taken := map[int]bool{}
	for _, v := range l {
		taken[v] = true
	}
	for i, n := range names {
		if out[i] >= 0 {
			continue
		}
		v := 0
		for v < mostSeries && (taken[v] || here[v]) {
			v++
		}
		if v == mostSeries {
			for v = 0; here[v]; v++ {
			}
		}
		out[i], here[v], taken[v] = v, true, true
		if _, ok := l[n]; !ok {
			l[n] = v
		}
	}
	return out
}

// figure is the measure over spans of time: a line for each group, the ones with the
// most in them first, and the rest together.
func (m *measure) figure(looks looks) figure {
	f := figure{ID: m.id, Name: m.name, What: m.what}
	if m.cells == nil || len(m.cells.groups) == 0 {
		f.Empty = m.empty
		return f
	}
	names := m.cells.names()
	groups := maps.Clone(m.cells.groups)
	drawn := names
	if len(names) > mostSeries {
		drawn = append(names[:mostSeries-1:mostSeries-1], "others")
		rest := names[mostSeries-1:]
		if slices.Contains(names[:mostSeries-1], "others") { // a group that is called so is no line of its own
			rest = append(rest[:len(rest):len(rest)], "others")
			drawn = append(slices.DeleteFunc(drawn, func(n string) bool { return n == "others" }), "others")
		}
		groups["others"] = m.cells.together(rest)
	}
	values := map[string][]*float64{}
	for name, g := range groups {
		for i := range g {
			values[name] = append(values[name], m.fold1(&g[i]))
		}
	}
	var lines []chart.Series
	for i, look := range looks.of(drawn) {
		lines = append(lines, chart.Series{Name: drawn[i], Look: look, Values: values[drawn[i]]})
	}
	f.Chart = chart.Of(spanNames(m.cells.spans), lines, m.max, m.show)
	if !m.whole {
		names = drawn
	}
	f.Table = m.table(names, groups, values)
	return f
}

// table is what a chart shows as text, a column for each of the names.
func (m *measure) table(names []string, groups map[string][]cell, values map[string][]*float64) table {
	t := table{Heads: append([]string{"Time"}, names...)}
	for i, sp := range m.cells.spans {
		row := tableRow{Name: sp.name}
		some := false
		for _, n := range names {
			text := "–"
			if v := values[n][i]; v != nil {
				text, some = m.show(*v), true
				if m.fold != "sum" {
					text += fmt.Sprintf(" (n = %d)", groups[n][i].n)
				}
			}
			row.Cells = append(row.Cells, text)
		}
		if some { // what is empty throughout says nothing
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// fold1 makes one value of those of a cell; nil of none.
func (m *measure) fold1(c *cell) *float64 {
	if c.n == 0 {
		return nil
	}
	v := c.sum
	switch m.fold {
	case "sum":
	case "median", "p95":
		slices.Sort(c.values)
		v = c.values[len(c.values)/2]
		if m.fold == "p95" {
			v = c.values[(len(c.values)*95+99)/100-1] // the nearest rank
		}
	default:
		v /= c.weight
	}
	return &v
}
