package web

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

// source is something on disk that pages show.
type source struct {
	topic string
	look  func(*looker)
}

// looker makes a number of the identities of files: another number, another content.
type looker struct{ h hash.Hash64 }

// file adds a file's name, identity, size and time. One that is not there counts, too.
func (l *looker) file(path string) {
	info, err := os.Lstat(path)
	l.add(path, info, err)
}

func (l *looker) add(name string, info fs.FileInfo, err error) {
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

// number adds a number.
func (l *looker) number(n uint64) {
	_, _ = l.h.Write(binary.LittleEndian.AppendUint64(nil, n))
}

// dir adds a directory and, with deep, what lies directly in it.
func (l *looker) dir(path string, deep bool) {
	l.file(path)
	if !deep {
		return
	}
	entries, err := durable.ReadDir(path)
	if err != nil {
		return // that it is not there was added above
	}
	for _, e := range entries {
		info, err := e.Info()
		l.add(filepath.Join(path, e.Name()), info, err)
	}
}

// each adds a file of each directory in one.
func (l *looker) each(path, file string) {
	l.file(path)
	entries, err := durable.ReadDir(path)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			l.file(filepath.Join(path, e.Name(), file))
		}
	}
}

// watcher tells those who listen what has changed on disk. It looks only while
// somebody listens: files are compared by identity, size and time, which also sees
// what a person's editor or another program has written.
type watcher struct {
	now     func() time.Time
	sources []source

	mu      sync.Mutex
	subs    map[*listener]bool
	looking bool
}

// listener is one page that is open.
type listener struct {
	wake chan struct{} // of capacity 1

	mu      sync.Mutex
	changed map[string]bool
}

// take is what has changed since it was last called.
func (l *listener) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	topics := slices.Sorted(maps.Keys(l.changed))
	clear(l.changed)
	return topics
}

func (l *listener) tell(topics []string) {
	l.mu.Lock()
	for _, t := range topics {
		l.changed[t] = true
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // it has not yet looked at the last one
	}
}

// tell tells all who listen.
func (w *watcher) tell(topic string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.subs {
		l.tell([]string{topic})
	}
}

func newWatcher(now func() time.Time, sources []source) *watcher {
	return &watcher{now: now, sources: sources, subs: map[*listener]bool{}}
}

// listen begins to listen, until leave. What has changed before is not told.
func (w *watcher) listen(ctx context.Context) (l *listener, leave func()) {
	l = &listener{wake: make(chan struct{}, 1), changed: map[string]bool{}}
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
func (w *watcher) signs() []uint64 {
	out := make([]uint64, len(w.sources))
	for i, s := range w.sources {
		l := looker{fnv.New64a()}
		s.look(&l)
		out[i] = l.h.Sum64()
	}
	return out
}

// loop looks until nobody listens.
func (w *watcher) loop(ctx context.Context, last []uint64) {
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
				topics = append(topics, w.sources[i].topic)
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

// sources are what the pages show: files, and what the servers of a fleet say.
func (s *Server) sources() []source {
	d := &s.deps
	list := []source{{"runs", s.runLook}}
	if d.LoopDir != "" {
		list = append(list, source{"loop", func(l *looker) { l.dir(d.LoopDir, true) }}, source{"queue", s.queueLook()})
	}
	if d.Checks != nil {
		list = append(list, source{"checks", func(l *looker) {
			for _, file := range d.Checks.Files {
				l.file(file)
			}
		}})
	}
	if d.Fleet != nil {
		list = append(list, source{"fleet", func(l *looker) {
			sign, _ := s.fleetSigns()
			l.number(sign)
		}})
	}
	if d.Tasks != nil {
		list = append(list, source{"tasks", taskLook(d.Tasks.Dir())})
	}
	if d.Memory != nil {
		list = append(list, source{"memory", func(l *looker) {
			for _, dir := range d.Memory.Dirs {
				l.dir(dir, true)
			}
		}})
	}
	if d.Events != nil {
		list = append(list, source{"events", func(l *looker) { l.dir(d.Events.Dir, true) }})
	}
	if d.State != nil {
		list = append(list, source{"state", s.stateLook()})
	}
	if d.Guard != nil {
		list = append(list, source{"guard", func(l *looker) { l.dir(d.Guard.Dir, true) }})
	}
	return list
}
