package queue

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"
	"time"

	"reprise/internal/proc"
)

// place is what an item's file name says. All that the order of items and the end
// of leases depend on stands there, so that neither needs a file to be read, and a
// claim needs none to be written.
//
//	ready/p5~c1764349200000000~n0~f3~e1~ID.json
//	claimed/p5~c1764349200000000~f4~e1~s1764349260000~u1764349320000~l60000~h…~w…~ID.json
//	blocked/wOTHER~p5~c1764349200000000~n0~f3~e1~ID.json, or p~…, h~…
//	done/ID.json, dead/ID.json
type place struct {
	state    State
	priority int
	created  int64 // µs since 1970
	notBefor int64 // ms since 1970; 0 is none
	fence    uint64
	edits    uint64
	id       string

	// of a claimed one
	since, until, lease int64  // ms
	holder              string // machine.pid.start, or "" where only the lease counts
	worker              string

	// of a blocked one
	why   byte   // whyWaits, whyParked or whyHeld
	waits string // for whyWaits
}

const (
	whyWaits  = 'w'
	whyParked = 'p'
	// whyHeld: the item was taken out of the way of claims while it is changed.
	// Whoever finds one with the lock in hand has found what a crash left.
	whyHeld = 'h'

	suffix    = ".json"
	maxWorker = 40
)

func (p *place) name() string {
	if p.state == Done || p.state == Dead {
		return p.id + suffix
	}
	var room [nameRoom]byte
	return string(p.appendName(room[:0]))
}

// nameRoom is more than a name has bytes.
const nameRoom = 256

// appendName puts the name after b. It is asked for with every look at a name.
func (p *place) appendName(b []byte) []byte {
	if p.state == Done || p.state == Dead {
		return append(append(b, p.id...), suffix...)
	}
	num := func(key byte, n int64, width int) {
		b = append(b, key)
		for width--; width > 0 && n < powers[width]; width-- {
			b = append(b, '0')
		}
		b = append(strconv.AppendInt(b, n, 10), '~')
	}
	if p.state == Blocked {
		b = append(append(append(b, p.why), p.waits...), '~')
	}
	num('p', int64(p.priority), 1)
	num('c', p.created, 16)
	if p.state != Claimed {
		num('n', p.notBefor, 1)
	}
	num('f', int64(p.fence), 1)
	num('e', int64(p.edits), 1)
	if p.state == Claimed {
		num('s', p.since, 1)
		num('u', p.until, 1)
		num('l', p.lease, 1)
		b = append(append(append(b, 'h'), p.holder...), '~')
		b = append(append(append(b, 'w'), p.worker...), '~')
	}
	return append(append(b, p.id...), suffix...)
}

// powers are those of ten.
var powers = func() (p [18]int64) {
	for i := range p {
		p[i] = 1
		if i > 0 {
			p[i] = 10 * p[i-1]
		}
	}
	return p
}()

// parsePlace reads a file name; ok is false for one that this package does not give.
func parsePlace(state State, name string) (p place, ok bool) {
	p.state = state
	rest, ok := strings.CutSuffix(name, suffix)
	if !ok {
		return p, false
	}
	if state == Done || state == Dead {
		p.id = rest
		return p, CheckID(rest) == nil
	}
	ok = true
	text := func(key byte) string {
		s, after, found := strings.Cut(rest, "~")
		if !found || s == "" || s[0] != key {
			ok = false
			return ""
		}
		rest = after
		return s[1:]
	}
	num := func(key byte) int64 {
		n, err := strconv.ParseInt(text(key), 10, 64)
		ok = ok && err == nil && n >= 0
		return n
	}
	if state == Blocked {
		if rest == "" {
			return p, false
		}
		p.why = rest[0]
		p.waits = text(p.why)
		ok = ok && (p.why == whyWaits && CheckID(p.waits) == nil || (p.why == whyParked || p.why == whyHeld) && p.waits == "")
	}
	p.priority = int(num('p'))
	p.created = num('c')
	if state != Claimed {
		p.notBefor = num('n')
	}
	p.fence = uint64(num('f'))
	p.edits = uint64(num('e'))
	if state == Claimed {
		p.since, p.until, p.lease = num('s'), num('u'), num('l')
		p.holder, p.worker = text('h'), text('w')
	}
	p.id = rest
	var room [nameRoom]byte
	return p, ok && p.priority <= MaxPriority && CheckID(p.id) == nil && string(p.appendName(room[:0])) == name
}

// less is the order in which items are claimed.
func (p *place) less(o *place) int {
	if p.priority != o.priority {
		return p.priority - o.priority
	}
	if p.created != o.created {
		if p.created < o.created {
			return -1
		}
		return 1
	}
	return strings.Compare(p.id, o.id)
}

// ready is the place that an item has when it may be claimed.
func (p place) ready(notBefore time.Time) place {
	return place{state: Ready, priority: p.priority, created: p.created, notBefor: millis(notBefore), fence: p.fence, edits: p.edits, id: p.id}
}

// claimed is the place of the next claim.
func (p place) claimed(now time.Time, lease time.Duration, holder, worker string) place {
	return place{
		state: Claimed, priority: p.priority, created: p.created, fence: p.fence + 1, edits: p.edits, id: p.id,
		since: millis(now), until: millis(now.Add(lease)), lease: lease.Milliseconds(), holder: holder, worker: worker,
	}
}

// blocked is the place of an item that waits for another, or with "" is parked.
func (p place) blocked(waits string, notBefore time.Time) place {
	b := p.ready(notBefore)
	b.state, b.why = Blocked, whyParked
	if waits != "" {
		b.why, b.waits = whyWaits, waits
	}
	return b
}

func (p place) held() place {
	h := p
	h.state, h.why, h.waits = Blocked, whyHeld, ""
	return h
}

func (p place) settled(s State) place { return place{state: s, id: p.id} }

// millis is a time in a name, rounded up so that nothing is early.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(0, t.Add(time.Millisecond-time.Nanosecond).UnixMilli())
}

// machine is a short name for one boot of one machine: process numbers mean the same
// for all who have the same.
func machine(host, boot string) string {
	sum := sha256.Sum256([]byte(host + "\x00" + boot))
	return base32.NewEncoding(alphabet).EncodeToString(sum[:5])
}

func holderName(machine string, id proc.ID) string {
	return fmt.Sprintf("%s.%d.%d", machine, id.PID, id.Start)
}

// parseHolder reads a holder's name; ok is false where only the lease counts.
func parseHolder(s, boot string) (machine string, id proc.ID, ok bool) {
	machine, rest, found := strings.Cut(s, ".")
	pid, start, found2 := strings.Cut(rest, ".")
	n, err := strconv.Atoi(pid)
	u, err2 := strconv.ParseUint(start, 10, 64)
	if !found || !found2 || err != nil || err2 != nil || n <= 0 {
		return "", proc.ID{}, false
	}
	return machine, proc.ID{PID: n, Start: u, Boot: boot}, true
}

// workerName is a worker's name as it stands in a file name: what is no lower-case
// letter, digit, "-", "_" or "." becomes "-".
func workerName(s string) string {
	var b []byte
	for _, c := range strings.ToLower(s) {
		if len(b) == maxWorker {
			break
		}
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
			b = append(b, byte(c))
		default:
			b = append(b, '-')
		}
	}
	return string(b)
}
