package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/queue/jet"
	"reprise/internal/term"
)

// onServers is what an App has of a fleet: one connection, and the queues that were opened
// by it.
type onServers struct {
	conn   *fleet.Conn
	lent   bool // the connection is somebody else's, who closes it
	queues []*jet.Queue
}

func (o *onServers) close() {
	for _, q := range o.queues {
		q.Close()
	}
	if o.conn != nil && !o.lent {
		o.conn.Close()
	}
	*o = onServers{}
}

// Fleet is the connection to the servers that the user's settings name. It is made once,
// and ends with the App. purpose is what the servers' operators see of it.
func (a *App) Fleet(ctx context.Context, purpose string) (*fleet.Conn, error) {
	if a.servers.conn != nil {
		return a.servers.conn, nil
	}
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	conn, err := fleet.Connect(ctx, fleet.Options{
		Servers: home.Settings.Queue, Settings: home.Settings.Fleet, Name: "reprise " + purpose + " on " + a.Hostname, Now: time.Now,
		Note: func(text string) { fmt.Fprintln(a.Err, "note: "+term.SafeLine(text)) },
	})
	if err != nil {
		return nil, err
	}
	a.servers.conn = conn
	return conn, nil
}

// Queue is the work queue of the project around the working directory, or of the
// global scope: the one that the user's settings say. bound is the process that its bound
// claims end with, the zero ID where none is made or taken over.
func (a *App) Queue(bound proc.ID) (queue.Queue, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	if home.Settings.Queue == config.QueueFiles {
		return a.fileQueue(bound)
	}
	return a.fleetQueue(bound)
}

// queueProject is the project whose queue it is, "" for the global one.
func (a *App) queueProject() (string, error) {
	home, err := a.Home()
	if err != nil || home.Project == nil {
		return "", err
	}
	if err := config.CheckName(home.Paths, home.Project); err != nil {
		return "", conflict(err)
	}
	return home.Project.Name, nil
}

// fileQueue is the queue of files on this machine, whatever the settings say.
func (a *App) fileQueue(bound proc.ID) (*queue.Files, error) {
	project, err := a.queueProject()
	if err != nil {
		return nil, err
	}
	self, err := proc.Self()
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	return queue.Open(queue.Options{
		Dir: a.home.Paths.Queue(project), Now: a.Env.Now, Host: a.Hostname, Process: bound, Boot: self.Boot,
		Actor: a.actor(), Record: a.recordWork(project),
	}), nil
}

// leftInFiles is how many items that are not settled are in files of this machine while
// the settings name the servers of a fleet: nobody works them off. Those that are claimed stay
// until they are settled.
func (a *App) leftInFiles() (left, claimed int) {
	home, err := a.Home()
	if err != nil || home.Settings.Queue == config.QueueFiles {
		return 0, 0
	}
	q, err := a.fileQueue(proc.ID{})
	if err != nil {
		return 0, 0
	}
	defer q.Close()
	n, err := q.Count(context.Background())
	if err != nil {
		return 0, 0 // nothing is there, or it is told of by who opens it
	}
	return n[queue.Ready] + n[queue.Claimed] + n[queue.Blocked], n[queue.Claimed]
}

// inAnother adds to an error about an item that is to depend on one which the queue has not got
// which queue that is, and that another one has it: nothing can wait for an item of another queue.
func (a *App) inAnother(ctx context.Context, err error) error {
	m, ok := errors.AsType[*queue.MissingError](err)
	if !ok {
		return err
	}
	home, herr := a.Home()
	if herr != nil {
		return err
	}
	files := func(project string) *queue.Files {
		return queue.Open(queue.Options{Dir: home.Paths.Queue(project), Now: a.Env.Now, Host: a.Hostname, Actor: a.actor()})
	}
	has := func(project string) bool {
		_, err := files(project).Get(ctx, m.On)
		return err == nil
	}
	project, perr := a.queueProject()
	servers := home.Settings.Queue != config.QueueFiles
	switch {
	case perr != nil:
	case servers && has(project):
		return fmt.Errorf("%w: it is in the files of this machine, and the settings have the queue on %s: `reprise queue migrate` brings it there", err, home.Settings.Queue)
	case servers:
		return fmt.Errorf("%w (the queue is on %s)", err, home.Settings.Queue)
	case project != "" && has(""):
		return fmt.Errorf("%w: the global queue has it, and this is the queue of %s: add it here, too", err, project)
	case files(project).Went(m.On):
		return fmt.Errorf("%w: it was moved from here to the servers of a fleet, and the settings have the queue in files of this machine: name the servers in `queue` again", err)
	default:
		return fmt.Errorf("%w (the queue is in files of this machine)", err)
	}
	return err
}

// fleetQueue is the queue on the servers that the settings name.
func (a *App) fleetQueue(bound proc.ID) (*jet.Queue, error) {
	project, err := a.queueProject()
	if err != nil {
		return nil, err
	}
	conn, err := a.Fleet(context.Background(), "queue")
	if err != nil {
		return nil, err
	}
	q, err := a.openFleetQueue(conn, project, bound)
	if err != nil {
		return nil, err
	}
	a.servers.queues = append(a.servers.queues, q)
	return q, nil
}

// queueTime is what time it is for the queue: leases and the times of items on servers are by their
// clock, and this machine's may be another.
func (a *App) queueTime() time.Time {
	now := a.Now()
	for _, q := range a.servers.queues {
		if ahead, ok := q.ClockOff(now); ok {
			return now.Add(-ahead)
		}
	}
	return now
}

func (a *App) openFleetQueue(conn *fleet.Conn, project string, bound proc.ID) (*jet.Queue, error) {
	self, err := proc.Self()
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	ctx := context.Background() // each step has a limit of its own
	return jet.Open(ctx, jet.Options{
		Conn: conn, Project: project, Now: time.Now, Host: a.Hostname, Process: bound, Boot: self.Boot, Actor: a.actor(), Record: a.recordWork(project), Patience: a.patience,
	})
}
