package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/setup"
)

// clockApart is by how much a machine's clock may differ from the servers' before that is
// said: nothing depends on it, but logs of two machines cannot be read side by side.
const clockApart = time.Minute

// checkFleet looks whether the servers that the settings name are there, let this machine
// in, and keep what they are given.
func (a *App) checkFleet(ctx context.Context) []setup.Finding {
	home, err := a.Home()
	if err != nil {
		return one(setup.Warn, "", "the settings cannot be read: %v", err)
	}
	if home.Settings.Queue == config.QueueFiles {
		return nil
	}
	q, err := a.fleetQueue(proc.ID{})
	switch {
	case errors.Is(err, fleet.ErrUnreachable):
		return one(setup.Fail, "start the servers, or set `queue: files` to work without them", "%v", err)
	case err != nil:
		return one(setup.Fail, "see docs/fleet.md", "%v", err)
	}
	n, err := q.Count(ctx)
	if err != nil {
		return one(setup.Fail, "see docs/fleet.md", "%v", err)
	}
	conn := a.servers.conn
	out := one(setup.OK, "", "%s of this project on %s", count(total(n), "item"), conn.NC.ConnectedAddr())
	if left, _ := a.leftInFiles(); left > 0 {
		out = append(out, one(setup.Warn, "reprise queue migrate", "%s of this project in files of this machine, which nobody works off while the settings name servers", count(left, "item"))...)
	}
	if off, ok := q.ClockOff(a.Env.Now()); ok && off.Abs() > clockApart {
		which := "ahead of"
		if off < 0 {
			which = "behind"
		}
		out = append(out, one(setup.Warn, "let the machine's clock be set by the network", "this machine's clock is %s %s the servers'; leases go by the servers', times in logs do not", off.Abs().Round(time.Second), which)...)
	}
	if strings.HasPrefix(conn.Servers(), "nats://") && !conn.Encrypted() && !conn.Loopback() {
		out = append(out, one(setup.Info, "write tls:// into `queue` where the servers can", "the connection is not encrypted")...)
	}
	return out
}

func total(n map[queue.State]int) (sum int) {
	for _, k := range n {
		sum += k
	}
	return sum
}
