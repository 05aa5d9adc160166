package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"reprise/internal/relay"
)

// nameWait is how long a worker of the same name is listened for: one that lives says so
// within that.
const nameWait = relay.BeatEvery + 3*time.Second

// homeTag tells this machine's directories of reprise's data from others', so that one
// worker can be told from another of its name on the same host.
func (w *fleetWorker) homeTag() string {
	home, err := w.app.Home()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(home.Paths.Data))
	return hex.EncodeToString(sum[:6])
}

// named refuses a name that a worker elsewhere has which lives: what is asked of the one
// would reach the other. Where the servers say nothing, nothing is refused.
func (w *fleetWorker) named(ctx context.Context) error {
	a := w.app.in(w.app.Env.Dir, w.notes)
	if w.connect(ctx, a) != nil {
		return nil // whoever needs the servers says what is wrong with them
	}
	before, ok := w.namesake(ctx, a)
	if !ok || before.Quiet {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, nameWait)
	defer cancel()
	told := false
	for {
		now, ok := w.namesake(ctx, a)
		switch {
		case ctx.Err() != nil || !ok || now.Quiet:
			return nil // it has ended, or died: the name is free
		case now.Heard.After(before.Heard):
			return exitWith(ExitConflict, fmt.Errorf("a worker called %s lives on %s already (heard %s): give this one a name of its own, by --name or worker.name of the settings",
				w.flags.name, clipText(now.Host, 100), now.Heard.Local().Format(time.TimeOnly)))
		}
		if !told {
			told = true
			fmt.Fprintf(w.notes, "note: a worker called %s was heard on %s; listening for up to %s whether it lives\n", w.flags.name, clipText(now.Host, 100), nameWait)
		}
		if pause(ctx, 250*time.Millisecond) != nil {
			return nil
		}
	}
}

// namesake is a worker of this one's name, of another home or host.
func (w *fleetWorker) namesake(ctx context.Context, a *App) (relay.Worker, bool) {
	list, err := relay.Workers(ctx, a.servers.conn)
	if err != nil {
		return relay.Worker{}, false
	}
	for _, other := range list {
		if other.Name == w.flags.name && (other.Host != w.app.Hostname || other.Home != w.homeTag()) {
			return other, true
		}
	}
	return relay.Worker{}, false
}
