package improve

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"reprise/internal/learn"
)

// Metrics say what recall is good for: sessions that were told what is
// remembered beside those that were held out. Only sessions for which there was
// something to tell are compared, on both sides.
type Metrics struct {
	Since  time.Time `json:"since,omitzero"`
	By     string    `json:"by,omitempty"`
	Groups []Group   `json:"groups"`
}

// Group are the sessions of one client, role or project, or all of them.
type Group struct {
	Name    string `json:"name"`
	Cycle   Cycle  `json:"cycle"`
	With    Arm    `json:"with"`
	Without Arm    `json:"without"`
	// Lifts compare the two, Without as the ground.
	Lifts []Lift `json:"lifts"`
	// Verdict says in words what can be said.
	Verdict string `json:"verdict"`
}

// Cycle is how many sessions went through each phase of the memory's cycle.
type Cycle struct {
	Sessions  int `json:"sessions"`
	Started   int `json:"started"`   // their beginning was recorded
	Ended     int `json:"ended"`     // and their end
	Whole     int `json:"whole"`     // both
	Organised int `json:"organised"` // worked out to an outcome
	Recalled  int `json:"recalled"`  // told something that was remembered
	Used      int `json:"used"`      // and used it
	Withheld  int `json:"withheld"`  // there was something, and it was held out
	Asked     int `json:"asked"`     // questions that the user answered
	Answered  int `json:"answered"`  // questions that memory answered
}

// Arm is one side of the comparison. Means are for a session.
type Arm struct {
	Sessions    int     `json:"sessions"`
	Judged      int     `json:"judged"`       // whose outcome is known
	Success     float64 `json:"success_rate"` // of the judged
	SuccessLow  float64 `json:"success_low"`  // 95 % interval (Wilson)
	SuccessHigh float64 `json:"success_high"`
	Retries     Mean    `json:"retries"`
	Corrections Mean    `json:"corrections"`
	Calls       Mean    `json:"tool_calls"`
	Failures    Mean    `json:"failures"`
	Tokens      Mean    `json:"tokens"` // told
	Recalls     Mean    `json:"recalls"`
	Hits        float64 `json:"hit_rate"` // items that were used, of those told
	Items       int     `json:"items"`
}

// Mean with half the width of its 95 % interval.
type Mean struct {
	Mean float64 `json:"mean"`
	Half float64 `json:"half"`
	n    int
	vari float64 // variance of the mean
}

// Lift is a difference between the two sides, with its 95 % interval.
type Lift struct {
	Name string  `json:"name"`
	Diff float64 `json:"diff"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Better is whether more of it is better.
	MoreIsBetter bool `json:"more_is_better"`
	// Clear says that the interval does not hold zero, with enough sessions.
	Clear bool `json:"clear"`
}

// enough is the number of sessions on each side below which nothing is said.
const enough = 20

// Measure reads the figures of sessions that began since then, by "client",
// "role", "project" or "".
func Measure(ctx context.Context, o *learn.Organizer, since time.Time, by string) (Metrics, error) {
	m := Metrics{Since: since, By: by}
	groups := map[string][]learn.Stats{}
	err := o.SessionStats(ctx, func(s learn.Stats) bool {
		if s.Imported || s.Start.Before(since) {
			return true // of a past that recall had no part in
		}
		name := "all sessions"
		switch by {
		case "client":
			name = cmp.Or(s.Client, "(no client)")
		case "role":
			name = cmp.Or(s.Role, "(no role)")
		case "project":
			name = cmp.Or(s.Project, "(no project)")
		}
		groups[name] = append(groups[name], s)
		return true
	})
	if err != nil {
		return m, err
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		m.Groups = append(m.Groups, measure(name, groups[name]))
	}
	return m, nil
}

func measure(name string, list []learn.Stats) Group {
	g := Group{Name: name}
	var with, without []learn.Stats
	for _, s := range list {
		g.Cycle.add(s)
		switch {
		case s.HeldOut && s.Withheld > 0:
			without = append(without, s)
		case !s.HeldOut && s.Recalls > 0:
			with = append(with, s)
		}
	}
	g.With, g.Without = armOf(with), armOf(without)
	g.Lifts = lifts(g.With, g.Without)
	g.Verdict = verdict(g)
	return g
}

func (c *Cycle) add(s learn.Stats) {
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	c.Sessions++
	count(&c.Started, s.Started)
	count(&c.Ended, s.Ended)
	count(&c.Whole, s.Started && s.Ended)
	count(&c.Organised, s.Outcome != "" && s.Outcome != "unknown")
	count(&c.Recalled, s.Recalls > 0)
	count(&c.Used, s.Recalls > 0 && s.Used > 0)
	count(&c.Withheld, s.Withheld > 0)
	c.Asked += s.Answered
	c.Answered += s.FromMemory
}

func armOf(list []learn.Stats) Arm {
	a := Arm{Sessions: len(list)}
	good, used := 0, 0
	mean := func(of func(learn.Stats) int) Mean {
		values := make([]float64, len(list))
		for i, s := range list {
			values[i] = float64(of(s))
		}
		return meanOf(values)
	}
	for _, s := range list {
		switch s.Outcome {
		case "good":
			good++
			a.Judged++
		case "", "unknown":
		default:
			a.Judged++
		}
		a.Items += s.Served
		used += min(s.Used, s.Served)
	}
	a.Success, a.SuccessLow, a.SuccessHigh = wilson(good, a.Judged)
	a.Retries, a.Corrections = mean(func(s learn.Stats) int { return s.Retries }), mean(func(s learn.Stats) int { return s.Corrections })
	a.Calls, a.Failures = mean(func(s learn.Stats) int { return s.Calls }), mean(func(s learn.Stats) int { return s.Failures })
	a.Tokens = mean(func(s learn.Stats) int { return s.Tokens })
	a.Recalls = mean(func(s learn.Stats) int { return s.Recalls + s.Withheld })
	if a.Items > 0 {
		a.Hits = round(float64(used) / float64(a.Items))
	}
	return a
}

const z95 = 1.959964

// meanOf is the mean, with an interval by the normal distribution: of some
// dozens of sessions that is near enough, and of fewer nothing is said.
func meanOf(values []float64) Mean {
	n := float64(len(values))
	if n == 0 {
		return Mean{}
	}
	sum, sq := 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	m := Mean{Mean: round(sum / n), n: len(values)}
	if n < 2 {
		return m
	}
	for _, v := range values {
		sq += (v - sum/n) * (v - sum/n)
	}
	m.vari = sq / (n - 1) / n
	m.Half = round(z95 * math.Sqrt(m.vari))
	return m
}

// wilson is a share with its 95 % score interval.
func wilson(good, n int) (share, low, high float64) {
	if n == 0 {
		return 0, 0, 1
	}
	p, N := float64(good)/float64(n), float64(n)
	mid := (p + z95*z95/(2*N)) / (1 + z95*z95/N)
	half := z95 / (1 + z95*z95/N) * math.Sqrt(p*(1-p)/N+z95*z95/(4*N*N))
	return round(p), round(max(0, mid-half)), round(min(1, mid+half))
}

func round(f float64) float64 { return math.Round(f*1e4) / 1e4 }

func lifts(with, without Arm) []Lift {
	// Newcombe's interval of a difference of shares, from the two Wilson ones.
	p, q := with.Success, without.Success
	l := Lift{Name: "success rate", Diff: round(p - q), MoreIsBetter: true}
	l.Low = round(l.Diff - math.Hypot(p-with.SuccessLow, without.SuccessHigh-q))
	l.High = round(l.Diff + math.Hypot(with.SuccessHigh-p, q-without.SuccessLow))
	l.Clear = min(with.Judged, without.Judged) >= enough && (l.Low > 0 || l.High < 0)
	out := []Lift{l}
	for _, x := range []struct {
		name string
		a, b Mean
	}{
		{"retries", with.Retries, without.Retries}, {"corrections by the user", with.Corrections, without.Corrections},
		{"tool calls", with.Calls, without.Calls}, {"failed calls", with.Failures, without.Failures},
	} {
		l := Lift{Name: x.name, Diff: round(x.a.Mean - x.b.Mean)}
		half := z95 * math.Sqrt(x.a.vari+x.b.vari)
		l.Low, l.High = round(l.Diff-half), round(l.Diff+half)
		l.Clear = min(x.a.n, x.b.n) >= enough && (l.Low > 0 || l.High < 0)
		out = append(out, l)
	}
	return out
}

func verdict(g Group) string {
	a, b := g.With.Sessions, g.Without.Sessions
	switch {
	case a == 0 && b == 0:
		return "No session has been told anything yet, so there is nothing to compare."
	case b == 0:
		return "No session was held out yet, so nobody can say how it would have gone without recall. So many of a hundred are as recall.hold_out_percent says: 5, unless the settings say otherwise."
	case min(a, b) < enough:
		return fmt.Sprintf("Too few sessions to tell: %d with recall and %d without; %d of each are needed.", a, b, enough)
	}
	var good, bad []string
	for _, l := range g.Lifts {
		if !l.Clear {
			continue
		}
		if l.Diff > 0 == l.MoreIsBetter {
			good = append(good, l.Name)
		} else {
			bad = append(bad, l.Name)
		}
	}
	switch {
	case len(good)+len(bad) == 0:
		return "There are enough sessions, and no difference that could not be chance."
	case len(bad) == 0:
		return "Better with recall: " + strings.Join(good, ", ") + "."
	case len(good) == 0:
		return "Worse with recall: " + strings.Join(bad, ", ") + "."
	}
	return "Better with recall: " + strings.Join(good, ", ") + ". Worse: " + strings.Join(bad, ", ") + "."
}
