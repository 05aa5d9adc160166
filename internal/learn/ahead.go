package learn

import (
	"iter"
	"strings"

	"reprise/internal/event"
)

// taken is what was read of a log, with the record that was made of it; nil
// where organising has no use for it.
type taken struct {
	item event.Item
	err  error
	rec  *record
}

// ahead yields what a log yields. Reading, parsing and making records goes on
// beside the work that the caller does with them, a little ahead of it.
// The records' src is prefix and the file's name.
func ahead(of Log, log iter.Seq2[event.Item, error], prefix string, sweep func(string) string) iter.Seq[taken] {
	const chunk, chunks = 16, 2 // as far as this is read in vain where the caller stops
	return func(yield func(taken) bool) {
		out, stop := make(chan []taken, chunks), make(chan struct{})
		var panicked any
		go func() {
			defer close(out)
			defer func() { panicked = recover() }()
			var list []taken
			send := func() bool {
				select {
				case out <- list:
					list = make([]taken, 0, chunk)
					return true
				case <-stop:
					return false
				}
			}
			for item, err := range log {
				t := taken{item: item, err: err}
				if err == nil {
					of.rename(&t.item.Event)
					if r, ok := newRecord(&t.item.Event, prefix+item.File, sweep); ok {
						for _, s := range r.strings() {
							*s = strings.Clone(*s) // an event's strings hold its whole line
						}
						t.rec = &r
					}
				}
				if list = append(list, t); len(list) >= chunk && !send() {
					return
				}
			}
			send()
		}()
		defer func() {
			close(stop)
			for range out { // until it has ended
			}
			if panicked != nil {
				panic(panicked)
			}
		}()
		for list := range out {
			for _, t := range list {
				if !yield(t) {
					return
				}
			}
		}
	}
}
