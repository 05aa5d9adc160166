package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"reprise/internal/loop"
	"reprise/internal/queue"
	"reprise/internal/run"
	"reprise/internal/web/gate"
	"reprise/internal/web/watch"
	"reprise/internal/worker/elsewhere"
)

// Limits of the server. Pages answer at once; streams set their own deadlines.
const (
	headerTime  = 10 * time.Second
	requestTime = 30 * time.Second
	answerTime  = 60 * time.Second
	idleTime    = 2 * time.Minute
	maxHeaders  = 32 << 10
	stopGrace   = 300 * time.Millisecond
)

// RunService is what the pages need of run.Manager.
type RunService interface {
	// Get wraps run.ErrNotFound for an id that has no record.
	Get(id string) (run.Record, error)
	// List is newest first; records that can be read come with an error about the others.
	List(ctx context.Context) ([]run.Record, error)
	Settle(ctx context.Context, id string) (run.Record, error)
	Cancel(ctx context.Context, id, reason string) (run.Record, error)
	Extend(ctx context.Context, id string, by time.Duration) error
	Output(id string, maxTokens int) (run.Output, error)
	// Start goes on with a run, where WhyNotResume is "".
	Start(ctx context.Context, req run.Request) (run.Record, error)
	WhyNotResume(r run.Record) string
	Dir() string
}

// Deps is everything that the dashboard touches. Now and Runs are required; a part
// that is nil or empty is a page that is not there.
type Deps struct {
	Project string // name of the project that is shown, "" outside any
	Root    string // its directory
	Version string
	Now     func() time.Time
	Log     *slog.Logger
	// ReadOnly refuses every change.
	ReadOnly bool
	// Claim registers the project's name before the first change; nil does nothing.
	Claim func(context.Context) error

	// Waits is what waits for a person beside what the pages themselves know of; nil is
	// nothing.
	Waits func(context.Context) ([]Wait, error)
	// Client reports whether a coding agent is on this machine that could be started; nil is
	// not known.
	Client func() bool
	// Unmerged is the work of loops that is done and lies in branches of its own, the first
	// that was done first; nil is none.
	Unmerged func(context.Context) ([]loop.Iteration, error)

	Runs RunService
	// RunDirs are directories beside Runs.Dir that Runs lists, too; nil is none.
	RunDirs func() []string
	Queue   queue.Queue
	// LoopDir is the directory of the project's loop, "" outside any project.
	LoopDir string
	// Checks are the project's; nil outside any project.
	Checks *Checks
	// Tasks are the project's; nil outside any project.
	Tasks TaskService
	// Memory is what is remembered; nil where this program may not read it.
	Memory *Remembering
	// Events is the project's log, or the global one; nil where it may not be read.
	Events *Log
	// Guard is nil where there is none to be shown.
	Guard *Guard
	// State is what the project's agents know; nil outside any project.
	State *State
	// Fleet is what workers on other machines do; nil where the queue is on this machine.
	Fleet *elsewhere.Fleet
	// Policy is what recall ranks by; nil where the memory may not be read.
	Policy *Policies
}

// Wait is something that waits for a person, and the command that they give.
type Wait struct{ Text, Command string }

// Options say where the dashboard listens.
type Options struct {
	// Listen is host:port on this machine's loopback; port 0 takes a free one.
	Listen string
	// Ready is told the link that lets one browser in, once requests are accepted,
	// and a further one each time that a link has been used.
	Ready func(link string, first bool)
}

// Server is the dashboard of one project.
type Server struct {
	deps  Deps
	pages *pages
	watch *watch.Watcher
	mux   *http.ServeMux
	nav   []navItem
	// streams is how many answers of events are open.
	streams atomic.Int32
	boards  boards
	// What was read of the agents' state, of runs and of the queue.
	keptState kept[known]
	keptRuns  kept[[]run.Record]
	keptItems kept[queue.Listing]
	costs     sync.Map // by a run's id, of those that have ended
	tail      tail
	queueGone gone
	afar      afar
	// thinking is held while memory is asked, or changed by its knowledge.
	thinking sync.Mutex
	working  working
}

// New makes a dashboard. It reads nothing yet.
func New(d Deps) (*Server, error) {
	if d.Now == nil || d.Runs == nil {
		return nil, errors.New("make the dashboard: Deps.Now and Deps.Runs are required")
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Claim == nil {
		d.Claim = func(context.Context) error { return nil }
	}
	p, err := parsePages(d.Now)
	if err != nil {
		return nil, err
	}
	s := &Server{deps: d, pages: p, mux: http.NewServeMux()}
	s.watch = watch.New(d.Now, s.sources())
	s.routes()
	return s, nil
}

// page is a part of the dashboard: its place in the navigation and its routes.
type page struct {
	id, name string
	there    bool
	routes   func(*Server)
}

func (s *Server) parts() []page {
	d := &s.deps
	return []page{
		{"overview", "Overview", true, (*Server).overviewRoutes},
		{"runs", "Runs", true, (*Server).runRoutes},
		{"work", "Loop & queue", d.Queue != nil, (*Server).workRoutes},
		{"fleet", "Fleet", d.Fleet != nil, (*Server).fleetRoutes},
		{"tasks", "Tasks", d.Tasks != nil, (*Server).taskRoutes},
		{"memory", "Memory", d.Memory != nil, (*Server).memoryRoutes},
		{"state", "State", d.State != nil, (*Server).stateRoutes},
		{"events", "Events", d.Events != nil, (*Server).eventRoutes},
		{"guard", "Guard", d.Guard != nil, (*Server).guardRoutes},
		{"policy", "Policy", d.Policy != nil, (*Server).policyRoutes},
		{"figures", "Figures", true, (*Server).figureRoutes},
	}
}

func (s *Server) routes() {
	for _, p := range s.parts() {
		if !p.there {
			continue
		}
		path := "/" + p.id
		if p.id == "overview" {
			path = "/"
		}
		s.nav = append(s.nav, navItem{ID: p.id, Name: p.name, Path: path})
		p.routes(s)
	}
	s.mux.HandleFunc("GET /live", s.live)
	s.mux.HandleFunc("GET /static/{file}", s.static)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, http.StatusNotFound, errors.New("there is no such page"))
	})
}

// Serve serves until ctx ends. It refuses to listen anywhere but on loopback.
func (s *Server) Serve(ctx context.Context, o Options) error {
	if err := CheckListen(o.Listen); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("serve the dashboard: %w: stop what uses the port, or choose another with --listen", err)
	}
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	g, err := gate.New(listener.Addr().String(), s.deps.ReadOnly, s.mux)
	if err != nil {
		listener.Close()
		return err
	}
	g.Failed = s.failBare
	server := &http.Server{
		Handler:           g,
		ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: answerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeaders,
		ErrorLog:    slog.NewLogLogger(s.deps.Log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return life },
	}
	if o.Ready != nil {
		g.Used = func() { o.Ready(g.Link(), false) }
		o.Ready(g.Link(), true)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the dashboard: %w", err)
	case <-ctx.Done():
	}
	cancel() // streams end now
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer stop()
	if err := server.Shutdown(grace); err != nil {
		server.Close()
	}
	<-ended
	s.endWork()
	return nil
}

// CheckListen says what is wrong with an address to listen on: the dashboard is for
// the one at this machine, so only loopback will do. A name is looked at, too, for
// "localhost" alone is known to be one.
func CheckListen(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen on %.100q: give host:port, as in 127.0.0.1:7878 or [::1]:0", addr)
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() && ip.Zone() == "" {
		return nil
	}
	return fmt.Errorf("listen on %.100q: other machines could reach that, and the dashboard shows and changes everything here: "+
		"use 127.0.0.1, [::1] or localhost; from another machine, forward the port (ssh -L)", addr)
}
