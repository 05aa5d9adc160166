package learn

import (
	"math"
	"time"
)

// The signals that importance is made of, each from 0 to 1.
const (
	SignalUsage    = "usage"    // it was served and then mentioned, or said to be useful
	SignalOutcome  = "outcome"  // how it ended: a fix that worked counts, a failure that stayed counts less
	SignalNovelty  = "novelty"  // the first of its kind; the fifth tells little
	SignalConflict = "conflict" // something speaks against it: it failed again
	SignalRecency  = "recency"  // by tier: hot 1, warm .5, cold .1
	SignalSaid     = "said"     // a person said so
)

// signalNames in the order in which they are told.
func signalNames() []string {
	return []string{SignalUsage, SignalOutcome, SignalNovelty, SignalConflict, SignalRecency, SignalSaid}
}

// signalWeight is what a signal counts; they are not learnt, because recall's
// own weights are, and one place to learn in is enough.
func signalWeight(name string) float64 {
	switch name {
	case SignalUsage:
		return 0.25
	case SignalOutcome:
		return 0.30
	case SignalNovelty:
		return 0.10
	case SignalConflict:
		return -0.20
	case SignalRecency:
		return 0.10
	case SignalSaid:
		return 0.25
	}
	return 0
}

func importance(signals map[string]float64) float64 {
	sum := 0.0
	for _, name := range signalNames() { // in order: floating-point sums depend on it
		sum += signalWeight(name) * signals[name]
	}
	return round3(min(max(sum, 0), 1))
}

// round3 rounds to three decimals, so that two ways to the same figure are the
// same to the bit.
func round3(f float64) float64 { return math.Round(f*1000) / 1000 }

// round4 is round3 for what is as small as a weight.
func round4(f float64) float64 { return math.Round(f*1e4) / 1e4 }

// Usage is what became of an item that recall can serve.
type Usage struct {
	Served    int       `json:"served"`
	Mentioned int       `json:"mentioned"`
	Useful    int       `json:"useful"`
	Useless   int       `json:"useless"`
	Last      time.Time `json:"last,omitzero"` // when it was last mentioned or said to be useful
	Events    []string  `json:"events,omitempty"`
}

// value is usage as a signal: it saturates, and being useless takes back.
func (u Usage) value() float64 {
	n := float64(u.Mentioned) + 3*float64(u.Useful) - 3*float64(u.Useless)
	if n <= 0 {
		return 0
	}
	return round3(1 - 1/(1+n))
}

func (u Usage) said() float64 {
	if u.Useful > u.Useless {
		return 1
	}
	return 0
}

// unwanted is usage as a signal against an item: people said that it is of no
// use more often than that it is.
func (u Usage) unwanted() float64 {
	if u.Useless > u.Useful {
		return 1
	}
	return 0
}

func recency(tier string) float64 {
	switch tier {
	case Hot:
		return 1
	case Warm:
		return 0.5
	}
	return 0.1
}

// novelty is the signal of what had been seen in that many earlier sessions.
func novelty(earlier int) float64 { return round3(1 / float64(1+min(earlier, noveltyMost))) }

// noveltyMost is the number of earlier sessions from which on another makes no
// difference.
const noveltyMost = 4

// half is what is left of 1 after a time, by half-life.
func half(age, life time.Duration) float64 {
	if age <= 0 {
		return 1
	}
	return math.Pow(0.5, float64(age)/float64(life))
}
