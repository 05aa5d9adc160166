package learn

import (
	"math"
	"time"
)

// The tiers. What is hot is served first; what is cold is served only through
// the summary that it is part of.
const (
	Hot  = "hot"
	Warm = "warm"
	Cold = "cold"
)

// Tiers says after how many days without use a thing goes down a tier. One of
// the highest importance stays twice as long as one of none.
type Tiers struct {
	HotDays  int // default 14
	WarmDays int // default 90; from its beginning, not from the end of hot
}

func (t Tiers) withDefaults() Tiers {
	if t.HotDays <= 0 {
		t.HotDays = 14
	}
	if t.WarmDays <= 0 {
		t.WarmDays = 90
	}
	t.WarmDays = max(t.WarmDays, t.HotDays)
	return t
}

const daySeconds = 24 * 60 * 60

// day is the number of the UTC day since 1970 that a time is in.
func day(t time.Time) int { return int(nanos(t) / 1e9 / daySeconds) }

func dayTime(d int) time.Time { return time.Unix(int64(d)*daySeconds, 0).UTC() }

const never = math.MaxInt32

// at is the tier on the day asOf of what was last of use on the day last, and
// the day on which that changes next.
func (t Tiers) at(asOf, last int, importance float64) (tier string, next int) {
	factor := 1 + min(max(importance, 0), 1)
	hot := last + int(float64(t.HotDays)*factor)
	warm := t.coldDay(last, importance)
	switch {
	case asOf < hot:
		return Hot, hot
	case asOf < warm:
		return Warm, warm
	}
	return Cold, never
}

// coldDay is the first day on which something is cold.
func (t Tiers) coldDay(last int, importance float64) int {
	return last + int(float64(t.WarmDays)*(1+min(max(importance, 0), 1)))
}
