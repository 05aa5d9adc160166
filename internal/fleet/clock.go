package fleet

import (
	"sync"
	"time"
)

// Clock tells the servers' time. Machines of a fleet have clocks that differ, and
// some are set while they run; what they tell each other about times, such as the end of
// a lease, is therefore by the servers' clock. It is asked now and then, and between two
// answers the machine's monotonic clock goes on from the last.
type Clock struct {
	now func() time.Time

	mu     sync.Mutex
	server time.Time // what the servers said
	at     time.Time // when that had come, by the machine's clock
}

// NewClock is a clock that knows nothing yet. now is the machine's, with its monotonic
// reading ([time.Now]).
func NewClock(now func() time.Time) *Clock { return &Clock{now: now} }

// Heard takes what a server said the time was, in an answer that has just come. The
// answer was under way, so the clock is behind by no more than that: by it nothing is
// over too early.
func (c *Clock) Heard(server time.Time) {
	if server.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.at = server.UTC(), c.now()
}

// Now is the servers' time, and how long ago they were asked. ok is false before they
// were.
func (c *Clock) Now() (now time.Time, age time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.IsZero() {
		return time.Time{}, 0, false
	}
	age = max(c.now().Sub(c.at), 0)
	return c.server.Add(age), age, true
}
