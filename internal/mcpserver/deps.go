package mcpserver

import (
	"context"
	"log/slog"
	"time"

	"reprise/internal/config"
	"reprise/internal/memory"
	"reprise/internal/recall"
	"reprise/internal/run"
)

// RunService is what the server needs of run.Manager.
type RunService interface {
	// Start returns once the run is on disk; with an IdempotencyKey that was
	// used before it returns the run which has it, over restarts too.
	Start(ctx context.Context, req run.Request) (run.Record, error)
	// Get wraps run.ErrNotFound for an id that has no record.
	Get(id string) (run.Record, error)
	List(ctx context.Context) ([]run.Record, error)
	// Settle is Get for a run whose supervisor may be dead: its end is written
	// first, or the error says why that cannot be.
	Settle(ctx context.Context, id string) (run.Record, error)
	// Wait returns when the run is settled, or with the record as it is and
	// the context's error.
	Wait(ctx context.Context, id string) (run.Record, error)
	Cancel(ctx context.Context, id, reason string) (run.Record, error)
	Output(id string, maxTokens int) (run.Output, error)
	// StopAll stops the attached runs that were started through this service.
	StopAll(ctx context.Context) (int, error)
}

// MemoryService is what the server needs of memory.Layers. An empty scope is the
// narrowest that has the file, or all.
type MemoryService interface {
	Dir() string
	Ensure(ctx context.Context) error
	Read(ctx context.Context, scope, name string, offset, limit int) (memory.Doc, bool, error)
	List(ctx context.Context, scope string) ([]memory.BlockInfo, error)
	Create(ctx context.Context, b memory.CreateBlock) (memory.Written, error)
	Update(ctx context.Context, b memory.UpdateBlock) (memory.Written, error)
	AppendEpisode(ctx context.Context, e memory.Episode) (memory.Written, error)
	AppendFile(ctx context.Context, path, text string) (int, error)
}

// SearchService finds what is remembered; recall.Index is one.
type SearchService interface {
	Search(ctx context.Context, q recall.Query) ([]recall.Hit, error)
	// Damage is what of the files could not be read, and so is not found.
	Damage(ctx context.Context, r recall.Reader) ([]recall.FileDamage, error)
}

// Deps is everything a Server touches. Runs, Memory, Search and Now are
// required; the rest has defaults.
type Deps struct {
	Runs   RunService
	Memory MemoryService
	Search SearchService
	// Reader is who searches: it decides which scopes are seen.
	Reader recall.Reader

	Settings config.Settings
	Source   string // settings file that was read, for the log
	Log      *slog.Logger
	Now      func() time.Time
	Version  string

	Toolsets []string // names as in --toolsets; empty means "default"
	ReadOnly bool     // only tools that change nothing
	// MemoryAccess is what this server's program may do with the memory: a
	// server inside a spawned run serves no more of it than the run was given.
	MemoryAccess memory.Access
	// InProject says that the server was started inside a project, where by default
	// the state toolset takes the place of the tools that write blocks.
	InProject bool
	// State is the state of the agent that works here; nil outside any project.
	// StateAccess is what this server's program may do with it.
	State       StateService
	StateAccess memory.Access
	// Loop is the loop that started this session; nil: none did.
	Loop LoopService
	// Tasks are the project's; nil outside any. TaskAccess is what this server's program
	// may do with them: a run does what it was started for, and moves no task.
	Tasks      TaskService
	TaskAccess memory.Access
	// Projects are the other projects that there are, named where a search finds
	// nothing: the name of the one that is worked in may be misspelt. nil = none.
	Projects func() []string
	// LegacyOnly refuses the protocol revisions without a handshake. It is an
	// escape for a client whose support of them is broken.
	LegacyOnly bool

	// WorkDir is the default working directory of runs; empty leaves it to
	// run.Manager, which takes the user's home directory.
	WorkDir string

	// Redact takes secrets out of what goes into the log. nil logs values of
	// parameters not at all, only their sizes.
	Redact func(string) (string, int)

	// ProgressEvery is the time between progress notifications; 0 means 5 s.
	ProgressEvery time.Duration
	// SweepEvery is the time between looks for expired jobs; 0 means 30 s.
	SweepEvery time.Duration
}

func (d Deps) withDefaults() Deps {
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.ProgressEvery == 0 {
		d.ProgressEvery = 5 * time.Second
	}
	if d.SweepEvery == 0 {
		d.SweepEvery = 30 * time.Second
	}
	if d.Version == "" {
		d.Version = "dev"
	}
	return d
}
