package queue

import (
	"fmt"
	"sync"
	"time"

	"reprise/internal/proc"
)

// Machine is a short name for one boot of one machine: process numbers mean the same for
// all who have the same.
func Machine(host, boot string) string { return machine(host, boot) }

// HolderName is the process that a claim ends with, as claims have it; empty for none.
func HolderName(machine string, id proc.ID) string {
	if id.IsZero() {
		return ""
	}
	return holderName(machine, id)
}

// Overdue decides which claims are over. A holder of this machine that is dead has lost
// its claim at once. Otherwise the lease decides, with two cautions against clocks that
// jump: a holder of this machine that lives gets a moment more, and a lease that ends later
// than any could that is given now (the clock went back) is over once it has been looked
// at for its length. It is safe for use by several goroutines.
type Overdue struct {
	Machine, Boot string
	Alive         func(proc.ID) bool

	mu   sync.Mutex
	seen map[string]time.Time // claims whose lease was found out of order, and since when
}

// Holding is a claim to be judged. Name is another for each claim of each item.
type Holding struct {
	Name   string
	Until  time.Time
	Length time.Duration
	Holder string
}

// Judge tells which of the claims are over. They must be all that there are: what is
// known of others is forgotten.
func (o *Overdue) Judge(now time.Time, claims []Holding) []bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	odd := map[string]time.Time{}
	over := make([]bool, len(claims))
	for i := range claims {
		over[i] = o.one(&claims[i], now, odd)
	}
	o.seen = odd
	return over
}

func (o *Overdue) one(h *Holding, now time.Time, odd map[string]time.Time) bool {
	allow := time.Duration(0)
	if m, id, ok := parseHolder(h.Holder, o.Boot); ok && m == o.Machine {
		if !o.Alive(id) {
			return true
		}
		allow = grace
	}
	left := h.Until.Sub(now)
	switch {
	case left > 0 && left <= h.Length:
		return false
	case left <= 0 && allow == 0:
		return true
	case left > h.Length:
		allow += h.Length
	}
	since, ok := o.seen[h.Name]
	if !ok || now.Before(since) {
		since = now
	}
	odd[h.Name] = since
	return now.Sub(since) >= allow
}

// Why says why a claim is over, for its history.
func (o *Overdue) Why(holder string) string {
	if m, id, ok := parseHolder(holder, o.Boot); ok && m == o.Machine && !o.Alive(id) {
		return fmt.Sprintf("its worker's process %d ended", id.PID)
	}
	return "its lease ran out"
}
