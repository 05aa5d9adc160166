package loop

import (
	"context"
	"errors"
	"slices"
	"testing"

	"reprise/internal/loop/core"
	"reprise/internal/queue"
)

// dying are places whose loop is gone before anything is put where it belongs.
type dying struct {
	*fakePlaces
	die context.CancelFunc
}

func (d dying) Finish(ctx context.Context, _ Place, _ queue.Item, _ core.Fate) (string, bool, error) {
	d.die()
	<-ctx.Done()
	return "", false, ctx.Err()
}

// TestTakenOverBeforeTheEnd: a loop died when its item was done in the queue and the work
// not yet committed. The next one, which has prepared no place for it, sees to it all the
// same: else the branch of an item that is done would lack the work, and the worktree stay.
func TestTakenOverBeforeTheEnd(t *testing.T) {
	n := newNight(t, play{change: true})
	n.add("a")
	ctx, die := context.WithCancel(t.Context())
	defer die()
	n.opt.Places = dying{n.place, die}
	if _, err := New(n.opt).Run(ctx, n.stop); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	n.want("a done")
	n.opt.Places = n.place
	n.all()
	if !slices.Equal(n.place.finished, []string{"a prepared", "a prepared", "a done"}) {
		t.Fatalf("the work was put away: %q", n.place.finished)
	}
}
