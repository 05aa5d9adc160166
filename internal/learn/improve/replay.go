package improve

import (
	"context"
	"fmt"
	"math"
	"slices"

	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/recall"
)

const (
	// tokenPrice is what a thousand tokens cost that were served and not used, in
	// units of a recall whose used things all stood first.
	tokenPrice = 0.25
	// unseenShare is what of that something costs that had not been served then:
	// nobody knows whether it would have been used.
	unseenShare = 0.5
	// poorShare is what a use counts in a session that did not end well: it did
	// not help much, or with the wrong thing.
	poorShare = 0.5
)

// unit is what one policy came to in one past recall.
type unit struct {
	Weight float64 `json:"w"` // how much the recall counts
	Gain   float64 `json:"g"`
	Cost   float64 `json:"c"` // tokens
	Margin float64 `json:"m"`
	Judged bool    `json:"j"` // something of it was used
}

// replay asks a past recall again, as of its time and as its reader, and judges
// the answer by what was used then.
func replay(ctx context.Context, tx *recall.Tx, x *recall.Index, r learn.Recalled, p recall.Policy, tokens int, explain bool) (unit, recall.Answer, error) {
	a, err := tx.Recall(ctx, x, recall.Question{
		Text: r.Query, Reader: r.Reader, AsOf: r.Time, MaxTokens: tokens, Policy: &p, Exclude: r.Told, NotOwn: true, Explain: explain,
	})
	if err != nil {
		return unit{}, a, fmt.Errorf("replay recall %s: %w", r.Event, err)
	}
	used := make(map[string]bool, len(r.Used))
	for _, id := range r.Used {
		if _, ok, err := tx.Get(id); err != nil {
			return unit{}, a, err
		} else if ok && !slices.Contains(r.Useless, id) { // what is forgotten cannot be found again
			used[id] = true
		}
	}
	return judge(r, a.Results, used), a, nil
}

func judge(r learn.Recalled, results []recall.Result, used map[string]bool) unit {
	u := unit{Weight: 1, Judged: len(used) > 0}
	if r.Outcome != "good" && r.Outcome != "unknown" && u.Judged {
		u.Weight = poorShare
	}
	ideal, got := 0.0, 0.0
	for i := range len(used) {
		ideal += discount(i)
	}
	top := 0.0
	for _, d := range results {
		top = max(top, d.Score)
	}
	sums, counts := [2]float64{}, [2]int{}
	for i, d := range results {
		kind := 0
		switch {
		case used[d.ID]:
			got += discount(i)
			kind = 1
		case slices.ContainsFunc(r.Items, func(it event.ServedItem) bool { return it.ID == d.ID }):
			u.Cost += float64(d.Tokens)
			if slices.Contains(r.Useless, d.ID) {
				u.Cost += float64(d.Tokens) // somebody said so
			}
		default:
			u.Cost += unseenShare * float64(d.Tokens)
		}
		if top > 0 {
			sums[kind] += min(d.Score, top) / top
			counts[kind]++
		}
	}
	if ideal > 0 {
		u.Gain = got / ideal
	}
	if u.Judged {
		for kind, sign := range [2]float64{-1, 1} {
			if counts[kind] > 0 {
				u.Margin += sign * sums[kind] / float64(counts[kind])
			}
		}
	}
	return u
}

// discount is what the i-th place, from 0, counts of the first.
func discount(i int) float64 { return 1 / math.Log2(float64(i)+2) }

// total adds up units: things that were used count by where they stand, tokens
// of the others by their price.
func total(units []unit, which func(i int) bool) learn.Score {
	var s learn.Score
	gain, judged, cost, all, margin := 0.0, 0.0, 0.0, 0.0, 0.0
	for i, u := range units {
		if !which(i) {
			continue
		}
		all += u.Weight
		cost += u.Weight * u.Cost
		if u.Judged {
			judged += u.Weight
			gain += u.Weight * u.Gain
			margin += u.Weight * u.Margin
		}
	}
	if judged > 0 {
		s.Gain, s.Margin = gain/judged, margin/judged
	}
	if all > 0 {
		s.Tokens = cost / all
	}
	s.Total = s.Gain - tokenPrice*s.Tokens/1000
	for _, f := range []*float64{&s.Total, &s.Gain, &s.Tokens, &s.Margin} {
		*f = math.Round(*f*1e6) / 1e6
	}
	return s
}
