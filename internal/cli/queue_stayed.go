package cli

import (
	"context"
	"errors"
	"fmt"

	"reprise/internal/config"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/term"
)

// stayed is an item that is in files of this machine while the settings name servers, such as
// one that somebody had when all others were moved there.
func (a *App) stayed(ctx context.Context, id string, bound proc.ID) (*queue.Files, queue.Item, bool) {
	home, err := a.Home()
	if err != nil || home.Settings.Queue == config.QueueFiles {
		return nil, queue.Item{}, false
	}
	q, err := a.fileQueue(bound)
	if err != nil {
		return nil, queue.Item{}, false
	}
	it, err := q.Get(ctx, id)
	return q, it, err == nil // what cannot be read is told of by `queue migrate`
}

// stayedWords say where such an item is, and how it comes to the servers.
func stayedWords(it *queue.Item) string {
	if it.State == queue.Claimed {
		return it.ID + " is in files of this machine, since somebody has it: settle it by its token here, then `reprise queue migrate` moves it to the servers"
	}
	return it.ID + " is in files of this machine: `reprise queue migrate` moves it to the servers"
}

// waitsForStayed reports whether what an item waits for is not on the servers, but there.
func (a *App) waitsForStayed(it *queue.Item) bool {
	if !it.WaitsForNone {
		return false
	}
	_, _, ok := a.stayed(context.Background(), it.Waits, proc.ID{})
	return ok
}

// notThere adds to an error about an item that the servers have not got where it is, if it is
// in files of this machine.
func (a *App) notThere(ctx context.Context, ref string, err error) error {
	if !errors.Is(err, queue.ErrNotFound) {
		return err
	}
	if _, it, ok := a.stayed(ctx, itemOf(ref), proc.ID{}); ok {
		return fmt.Errorf("%w; %s", err, stayedWords(&it))
	}
	return err
}

// itemOf is the item that a token speaks of; what is no token is an id or a key itself.
func itemOf(ref string) string {
	if id, _, err := queue.ParseToken(queue.Token(ref)); err == nil {
		return id
	}
	return ref
}

// holdersQueue is the queue in which the claim is that a token, or an item's id, speaks of:
// that of the settings, or the files of this machine where the item stayed there because of
// its claim. Who has it would else hear that it is lost, and be at it twice.
func (a *App) holdersQueue(ctx context.Context, q queue.Queue, arg string, bound proc.ID) (queue.Queue, error) {
	id := itemOf(arg)
	files, it, ok := a.stayed(ctx, id, bound)
	if !ok {
		return q, nil
	}
	switch _, err := q.Get(ctx, id); {
	case err == nil: // the servers have one of that id, too, and they are who is asked
		return q, nil
	case !errors.Is(err, queue.ErrNotFound):
		return nil, queueError(err)
	case it.State != queue.Claimed:
		return nil, exitWith(ExitConflict, errors.New(stayedWords(&it)))
	}
	fmt.Fprint(a.Err, wrapLine("note: "+term.SafeLine(it.ID)+" is in files of this machine, where its claim is; when it is settled, `reprise queue migrate` moves it to the servers.", a.Columns))
	return files, nil
}
