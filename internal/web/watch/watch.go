// Package watch says what has changed on disk, by looking: at the names, sizes and times of files,
// while somebody wants to know. It writes no file and takes no lock.
package watch

import (
	"context"
	"encoding/binary"
	"hash"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"reprise/internal/durable"
)

// Times of looking for what has changed on disk.
const (
	// lookEvery is how long the rest between two looks is at least.
	lookEvery = time.Second
	// restFactor is how much longer than a look the rest after it is at least, so that
	// looking costs no more than a thousandth of a processor however much there is to
	// look at.
	restFactor = 1000
	// restMost keeps what changed from being told much too late where there is very
	// much to look at; a look that takes 5 ms is as long as that.
	restMost = 5 * time.Second
	// looksCompared are the looks of which the quickest counts: on a busy machine one
	// takes longer than it costs.
	looksCompared = 8
)

// Source is something on disk that pages show.
type Source struct {
	Topic string
	Look  func(*Look)
}

// Look makes a number of the identities of files: another number, another content.
type Look struct{ h hash.Hash64 }

// NewLook has seen nothing.
func NewLook() Look { return Look{fnv.New64a()} }

// Sum is the number of what was looked at.
func (l *Look) Sum() uint64 { return l.h.Sum64() }

// File adds a file's name, identity, size and time. One that is not there counts, too.
func (l *Look) File(path string) {
	info, err := os.Lstat(path)
	l.Add(path, info, err)
}

// Add adds what is known of a file already.
func (l *Look) Add(name string, info fs.FileInfo, err error) {
	_, _ = l.h.Write([]byte(name)) // a hash takes everything
	if err != nil {
		_, _ = l.h.Write([]byte{0})
		return
	}
	var b [24]byte
	binary.LittleEndian.PutUint64(b[0:], uint64(info.Size()))
	binary.LittleEndian.PutUint64(b[8:], uint64(info.ModTime().UnixNano()))
	binary.LittleEndian.PutUint64(b[16:], uint64(info.Mode()))
	_, _ = l.h.Write(b[:])
}

// Number adds a number.
func (l *Look) Number(n uint64) {
	_, _ = l.h.Write(binary.LittleEndian.AppendUint64(nil, n))
}

// Dir adds a directory and, with deep, what lies directly in it.
func (l *Look) Dir(path string, deep bool) {
	l.File(path)
	if !deep {
		return
	}
	entries, err := durable.ReadDir(path)
	if err != nil {
		return // that it is not there was added above
	}
	for _, e := range entries {
		info, err := e.Info()
		l.Add(filepath.Join(path, e.Name()), info, err)
	}
}

// Each adds a file of each directory in one.
func (l *Look) Each(path, file string) {
	l.File(path)
	entries, err := durable.ReadDir(path)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			l.File(filepath.Join(path, e.Name(), file))
		}
	}
}

// Watcher tells those who listen what has changed on disk. It looks only while
// somebody listens: files are compared by identity, size and time, which also sees
// what a person's editor or another program has written.
type Watcher struct {
	now     func() time.Time
	sources []Source

	mu      sync.Mutex
	subs    map[*Listener]bool
	looking bool
}

// Listener is one page that is open.
type Listener struct {
	// Wake has something when there is something to take.
	Wake chan struct{} // of capacity 1

	mu      sync.Mutex
	changed map[string]bool
}

// Take is what has changed since it was last called.
func (l *Listener) Take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	topics := slices.Sorted(maps.Keys(l.changed))
	clear(l.changed)
	return topics
}

func (l *Listener) tell(topics []string) {
	l.mu.Lock()
	for _, t := range topics {
		l.changed[t] = true
	}
	l.mu.Unlock()
	select {
	case l.Wake <- struct{}{}:
	default: // it has not yet looked at the last one
	}
}

// Tell tells all who listen.
func (w *Watcher) Tell(topic string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.subs {
		l.tell([]string{topic})
	}
}

// New is a watcher of these sources; it looks while somebody listens.
func New(now func() time.Time, sources []Source) *Watcher {
	return &Watcher{now: now, sources: sources, subs: map[*Listener]bool{}}
}

// Listen begins to listen, until leave. What has changed before is not told.
func (w *Watcher) Listen(ctx context.Context) (l *Listener, leave func()) {
	l = &Listener{Wake: make(chan struct{}, 1), changed: map[string]bool{}}
	w.mu.Lock()
	w.subs[l] = true
	begin := !w.looking
	w.looking = true
	w.mu.Unlock()
	if begin {
		go w.loop(context.WithoutCancel(ctx), w.signs())
	}
	return l, func() {
		w.mu.Lock()
		delete(w.subs, l)
		w.mu.Unlock()
	}
}

// signs are the numbers of all sources as they are now.
func (w *Watcher) signs() []uint64 {
	out := make([]uint64, len(w.sources))
	for i, s := range w.sources {
		l := NewLook()
		s.Look(&l)
		out[i] = l.Sum()
	}
	return out
}

// loop looks until nobody listens.
func (w *Watcher) loop(ctx context.Context, last []uint64) {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	var looks []time.Duration
	for {
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		w.mu.Lock()
		if len(w.subs) == 0 {
			w.looking = false
			w.mu.Unlock()
			return
		}
		subs := slices.Collect(maps.Keys(w.subs))
		w.mu.Unlock()
		began := w.now()
		now := w.signs()
		var topics []string
		for i := range now {
			if now[i] != last[i] {
				topics = append(topics, w.sources[i].Topic)
			}
		}
		last = now
		if len(topics) > 0 {
			for _, l := range subs {
				l.tell(topics)
			}
		}
		if looks = append(looks, w.now().Sub(began)); len(looks) > looksCompared {
			looks = looks[1:]
		}
		timer.Reset(rest(slices.Min(looks)))
	}
}

// rest is how long to rest after a look that costs so much.
func rest(cost time.Duration) time.Duration {
	return min(max(lookEvery, restFactor*cost), restMost)
}
