package quick

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"reprise/internal/durable"
)

// The reserve is a file of the outbox whose space was taken while there was
// some: where the disk is full, what would go into the outbox is written over
// its zero bytes. It begins with a head of one line; then come lines as files of
// the outbox have them; the rest is zero.
const (
	// ReserveName is the reserve's name in the outbox.
	ReserveName = "reserve"
	// ReserveSize is its size in bytes: hundreds of usual events.
	ReserveSize = 2 << 20
	// ReserveHead is the length of its head: a name, a version and how many
	// events could not be kept at all.
	ReserveHead = 64

	reserveWord  = "reprise reserve 1 lost "
	reserveDigit = 12
	// reservePatience is how long the reserve's lock is waited for.
	reservePatience = 300 * time.Millisecond
)

// HoldName is the file of the outbox whose time of change says until when it is
// of no use to try again.
const HoldName = "replay.lock"

var errFull = errors.New("the outbox's reserve is full, too")

// ReserveStart is a reserve with nothing in it.
func ReserveStart() []byte {
	out := make([]byte, ReserveSize)
	copy(out, reserveHead(0))
	return out
}

func reserveHead(lost int) []byte {
	head := append([]byte(reserveWord), bytes.Repeat([]byte("0"), reserveDigit)...)
	n := strconv.Itoa(min(max(lost, 0), 999_999_999_999))
	copy(head[len(head)-len(n):], n)
	head = append(head, bytes.Repeat([]byte(" "), ReserveHead-1-len(head))...)
	return append(head, '\n')
}

// ReserveLost is how many events a reserve's head says were lost; ok is false
// for what is no reserve's head.
func ReserveLost(head []byte) (lost int, ok bool) {
	if len(head) < ReserveHead || string(head[:len(reserveWord)]) != reserveWord {
		return 0, false
	}
	lost, err := strconv.Atoi(string(head[len(reserveWord) : len(reserveWord)+reserveDigit]))
	return lost, err == nil
}

// reserve writes a line into the reserve. What finds no room there is counted.
func (b *Broker) reserve(line []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), reservePatience)
	defer cancel()
	full := false
	err := b.Disk.WriteWithin(ctx, filepath.Join(b.Outbox, ReserveName), func(f io.ReaderAt, size int64) (int64, []byte, error) {
		head := make([]byte, ReserveHead)
		if _, err := f.ReadAt(head, 0); err != nil {
			return 0, nil, err
		}
		lost, ok := ReserveLost(head)
		if !ok {
			return 0, nil, errors.New("it is no reserve")
		}
		end, err := reserveEnd(f, size)
		if err != nil {
			return 0, nil, err
		}
		out := line
		if end > ReserveHead {
			last := make([]byte, 1)
			if _, err := f.ReadAt(last, end-1); err != nil {
				return 0, nil, err
			}
			if last[0] != '\n' { // a crash came between
				out = append([]byte("\n"), line...)
			}
		}
		if end+int64(len(out)) > size {
			full = true
			return 0, reserveHead(lost + 1), nil
		}
		return end, out, nil
	})
	if err == nil && full {
		return errFull
	}
	return err
}

// reserveEnd is the offset of the reserve's first zero byte.
func reserveEnd(f io.ReaderAt, size int64) (int64, error) {
	low, high := int64(ReserveHead), size
	one := make([]byte, 1)
	for low < high {
		mid := (low + high) / 2
		if _, err := f.ReadAt(one, mid); err != nil {
			return 0, err
		}
		if one[0] == 0 {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low, nil
}

// reserved reports whether the reserve holds something.
func (b *Broker) reserved() bool {
	f, err := durable.Open(filepath.Join(b.Outbox, ReserveName))
	if err != nil {
		return false
	}
	defer f.Close()
	var first [1]byte
	_, err = f.ReadAt(first[:], ReserveHead)
	return err == nil && first[0] != 0
}

// WaitingName reports whether a file of that name may be an event that waits:
// its id, and the extension.
func WaitingName(name string) bool {
	const ext = ".json"
	if len(name) != 36+len(ext) || name[36:] != ext {
		return false
	}
	for i := range 36 {
		c := name[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c == '-') {
			return false
		}
	}
	return true
}

// Pending reports whether something waits in the outbox that it is of use to
// look at now.
func (b *Broker) Pending() bool {
	return (b.reserved() || b.waits()) && !b.held()
}

// waits reports whether an event's file is in the outbox. What others put there
// is no reason to look again and again.
func (b *Broker) waits() bool {
	d, err := durable.OpenDirectory(b.Outbox)
	if err != nil {
		return false
	}
	defer d.Close()
	for range 64 { // that many foreign files are not looked through at each event
		names, _ := d.Readdirnames(16)
		for _, name := range names {
			if WaitingName(name) {
				if fi, err := os.Lstat(filepath.Join(b.Outbox, name)); err == nil && fi.Mode().IsRegular() {
					return true
				}
			}
		}
		if len(names) < 16 {
			return false
		}
	}
	return true
}

// MaxHold bounds how long a replay that came to nothing keeps others from
// trying.
const MaxHold = 30 * time.Second

func (b *Broker) held() bool {
	fi, err := os.Lstat(filepath.Join(b.Outbox, HoldName))
	if err != nil {
		return false
	}
	left := fi.ModTime().Sub(b.Now())
	return left > 0 && left <= MaxHold
}

// Hold notes that trying again is of no use for a while.
func (b *Broker) Hold() error {
	return b.Disk.Touch(filepath.Join(b.Outbox, HoldName), b.Now().Add(MaxHold))
}

// Within is a context that ends after a time by a clock, without a timer, which
// would cost a small program a thread: what waits for a lock asks it again and
// again.
func Within(now func() time.Time, d time.Duration) context.Context {
	return until{context.Background(), now, now().Add(d)}
}

type until struct {
	context.Context
	now func() time.Time
	at  time.Time
}

func (u until) Deadline() (time.Time, bool) { return u.at, true }

func (u until) Err() error {
	if u.now().After(u.at) {
		return context.DeadlineExceeded
	}
	return nil
}
