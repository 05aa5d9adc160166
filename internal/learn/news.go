package learn

import (
	"context"
	"errors"
	"fmt"

	"reprise/internal/event"
)

// mostNews is how many events may wait to be organised, and still be looked
// through rather than organised at once.
const mostNews = 256

// News reports whether there is something that is not organised yet and that a
// session of the project (or with "" one outside any) could be told of: events
// of its log or the global one, or what an earlier run left undone. Events that
// only say that a session began, what was served or that organising was done
// tell nobody anything; neither does what is only due by the calendar, nor what
// another version made, which has to be taken out before anything can be made anew.
// All of that waits for the next run that nobody waits for. News writes nothing.
func (o *Organizer) News(ctx context.Context, project string) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var news bool
	err := o.store.View(ctx, func(tx Tx) (err error) {
		news, err = o.news(tx, project)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("organise: %w", err)
	}
	return news, nil
}

func (o *Organizer) news(tx Tx, project string) (bool, error) {
	if o.behind() {
		return false, nil
	}
	version, ok, err := tx.Load(bucketMeta, "version")
	if err != nil || !ok {
		return true, err
	}
	if string(version) != o.version() {
		return false, nil
	}
	f := &folder{o: o, tx: tx}
	if left, err := f.anyWork(); err != nil || left {
		return true, err
	}
	for _, log := range o.o.Logs {
		if log.Project != "" && log.Project != project {
			continue
		}
		if news, err := o.newsIn(tx, log); err != nil || news {
			return true, err
		}
	}
	return false, nil
}

func (o *Organizer) newsIn(tx Tx, log Log) (bool, error) {
	from, err := cursors(tx, log)
	if err != nil {
		return false, err
	}
	n := 0
	for item, err := range event.ReadFrom(log.Dir, from) {
		if n++; n > mostNews {
			return true, nil
		}
		var bad *event.LineError
		if errors.As(err, &bad) {
			continue
		}
		if err != nil || !idle(item.Event.Type) {
			return true, nil // what keeps it from being read is organising's to deal with
		}
	}
	return false, nil
}

// idle says that nothing can be told of an event.
func idle(t event.Type) bool {
	switch t {
	case event.SessionStarted, event.RecallServed, event.CompactionFinished:
		return true
	}
	return false
}
