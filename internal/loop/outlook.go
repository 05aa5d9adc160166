package loop

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"reprise/internal/loop/core"
	"reprise/internal/queue"
)

// sharedLook is one look at what the queue has for all workers that find it empty in the same
// moment: each look reads all that is not done.
type sharedLook struct {
	one  sync.Mutex // held while somebody looks
	mu   sync.Mutex
	next *look // has not begun, so that whoever comes now may share it
}

type look struct {
	over  chan struct{}
	empty bool
	next  time.Duration
	left  string
	err   error
}

// outlook says whether anything may still become ready for this loop in the time that it
// has, and when; left is what the queue has all the same, for people. What it says is from
// after it was asked.
func (l *Loop) outlook(ctx context.Context) (empty bool, next time.Duration, left string, err error) {
	sh := &l.looks
	sh.mu.Lock()
	k := sh.next
	first := k == nil
	if first {
		k = &look{over: make(chan struct{})}
		sh.next = k
	}
	sh.mu.Unlock()
	if first {
		sh.one.Lock()
		sh.mu.Lock()
		sh.next = nil
		sh.mu.Unlock()
		k.empty, k.next, k.left, k.err = l.lookOut(ctx)
		close(k.over)
		sh.one.Unlock()
	}
	select {
	case <-k.over:
		return k.empty, k.next, k.left, k.err
	case <-ctx.Done():
		return false, 0, "", ctx.Err()
	}
}

func (l *Loop) lookOut(ctx context.Context) (empty bool, next time.Duration, left string, err error) {
	list, err := l.opt.Queue.List(ctx, queue.Filter{States: []queue.State{queue.Ready, queue.Claimed, queue.Blocked}})
	if err != nil {
		return false, 0, "", err
	}
	s := l.State()
	v := outlook{unread: len(list.Trouble)}
	empty = true
	for _, it := range list.Items {
		switch fits := l.fits(&it); {
		case it.State == queue.Blocked:
			v.blocked(&it)
		case !fits && it.State == queue.Ready:
			v.others++
		case !fits:
		case it.State == queue.Claimed:
			empty = false
			v.claimed++
		default:
			d := max(it.NotBefore.Sub(l.opt.Now()), 10*time.Millisecond)
			if d > s.Limits.MaxTime-s.Worked {
				v.far = append(v.far, fmt.Sprintf("%s waits until %s, which is later than this loop works", it.ID, it.NotBefore.Local().Format("2006-01-02 15:04")))
				continue
			}
			empty = false
			if next == 0 || d < next {
				next, v.next = d, fmt.Sprintf("%s waits until %s", it.ID, it.NotBefore.Local().Format("2006-01-02 15:04:05"))
				if !it.NotBefore.After(l.opt.Now()) { // it waited for nothing, or does not any more
					v.next = it.ID + " has just become ready"
				}
			}
		}
	}
	return empty, next, v.text(), nil
}

// fits says whether the loop would take an item.
func (l *Loop) fits(it *queue.Item) bool {
	if it.Agent != "" && l.opt.Only != "" && it.Agent != l.opt.Only {
		return false
	}
	for _, want := range l.opt.Labels {
		found := false
		for _, has := range it.Labels {
			found = found || has == want
		}
		if !found {
			return false
		}
	}
	return l.opt.Fits == nil || l.opt.Fits(it)
}

// outlook collects what is not ready.
type outlook struct {
	next                     string
	far, dead                []string // dead are what waits in vain
	claimed, parked, waiting int
	others                   int
	unread                   int // files of the queue that cannot be read
}

func (v *outlook) blocked(it *queue.Item) {
	switch {
	case it.Waits == "":
		v.parked++
	case it.WaitsForDead:
		v.dead = append(v.dead, fmt.Sprintf("%s waits for %s, which is dead", it.ID, it.Waits))
	case it.WaitsForNone:
		v.dead = append(v.dead, fmt.Sprintf("%s waits for %s, which the queue has not got", it.ID, it.Waits))
	default:
		v.waiting++
	}
}

// text is all of it in a sentence, "" for nothing.
func (v *outlook) text() string {
	var parts []string
	few := func(list []string) {
		const most = 3
		for i, s := range list {
			if i == most {
				parts = append(parts, fmt.Sprintf("%d more like that", len(list)-most))
				return
			}
			parts = append(parts, s)
		}
	}
	some := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 item "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d items %s", n, many))
		}
	}
	if v.next != "" {
		parts = append(parts, v.next)
	}
	few(v.far)
	few(v.dead)
	some(v.claimed, "is being worked on", "are being worked on")
	some(v.waiting, "waits for others", "wait for others")
	some(v.parked, "is set aside", "are set aside")
	some(v.others, "has other labels, or is for another client", "have other labels, or are for another client")
	switch {
	case v.unread == 1:
		parts = append(parts, "1 file of the queue cannot be read (`reprise queue check`)")
	case v.unread > 1:
		parts = append(parts, fmt.Sprintf("%d files of the queue cannot be read (`reprise queue check`)", v.unread))
	}
	return strings.Join(parts, "; ")
}

// idles tells, once for each reason, that there is nothing to do at the moment.
func (l *Loop) idles(e *core.Claimed) {
	s := l.State()
	if e.Empty && s.Limits.UntilEmpty || s.Busy() > 1 { // it ends, or somebody works: this worker counts as busy
		return
	}
	why := orElse(e.Left, "the queue is empty")
	l.mu.Lock()
	told := l.idle == why
	l.idle = why
	l.mu.Unlock()
	if !told {
		l.tell("waits", -1, "nothing is ready: "+why)
	}
}
