package cli

import (
	"context"
	"fmt"
	"time"

	"reprise/internal/loop/core"
	"reprise/internal/loop/report"
)

// lastDay is how far "last night" reaches back.
const lastDay = 24 * time.Hour

// standNight is what the loop came to in the last 24 hours.
type standNight struct {
	Items    int     `json:"items"`
	Attempts int     `json:"attempts"` // at these items
	Done     int     `json:"done"`
	Other    int     `json:"not_done"`
	CostUSD  float64 `json:"cost_usd"`
	Tokens   int64   `json:"tokens"`
	// Unknown is how many of the attempts cost nobody knows what.
	Unknown int `json:"cost_unknown,omitempty"`
	// Elsewhere is how many of the attempts were made on other machines of the fleet.
	Elsewhere int `json:"elsewhere,omitempty"`
}

func (n *standNight) text() string {
	attempts := count(n.Attempts, "attempt")
	if n.Elsewhere > 0 {
		attempts += fmt.Sprintf(", %d of them on other machines", n.Elsewhere)
	}
	return fmt.Sprintf("%s in %s: %d done, %d not, %s, %s", count(n.Items, "item"), attempts, n.Done, n.Other, count(int(n.Tokens), "token"), report.Cost(n.CostUSD, n.Unknown))
}

// standNight has what loops here, and other machines of a fleet, came to in the last day, and
// how much of what they ever did is not merged.
func (a *App) standNight(ctx context.Context, s *standing, dir string) error {
	its, _, err := a.worked(ctx, dir)
	if err != nil {
		return err
	}
	done, err := a.notMerged(ctx, its, nil)
	if len(done) > 0 {
		s.Waits = append(s.Waits, standWait{"work that is done is in " + branches(len(done)) + ", not merged", "reprise loop report"})
	}
	n := standNight{}
	last := map[string]core.Fate{} // an item has as many iterations as attempts, and counts once
	for _, it := range its {
		if it.Ended.Before(a.Now().Add(-lastDay)) {
			continue
		}
		n.Attempts++
		n.CostUSD += it.CostUSD
		n.Tokens += it.Tokens
		if it.UnknownCost() {
			n.Unknown++
		}
		if it.On != "" {
			n.Elsewhere++
		}
		last[it.Item] = it.Fate
	}
	for _, fate := range last {
		n.Items++
		if fate == core.Done {
			n.Done++
		} else {
			n.Other++
		}
	}
	if n.Items > 0 {
		s.Night = &n
	}
	return err
}
