// Package run starts agents as background runs, watches them, stops them and
// keeps the record of each.
//
// It owns the runs directory: <runs>/<id>/ with run.json, prompt.md,
// stdout.jsonl, stderr.log, result.json, output.md and the adapter's own
// files, and <runs>/.keys/ with the idempotency keys. run.json is created by
// Manager.Start, then written only by the run's supervisor, then, once that is
// dead, by whoever settles the run; the last two hold supervisor.lock in the
// run's directory while they do. Who extends a run holds request-extend.lock
// there, before it may take that one. A key's lock is <runs>/.keys/<hash>.lock; it
// is taken before any supervisor.lock and never after one.
//
// A run is one supervisor process and one agent process below it. The
// supervisor outlives whoever started the run, unless the run is attached: then
// its standard input is a pipe whose other end the starter holds, and the end
// of that pipe is the end of the run.
package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/agent"
	"reprise/internal/durable"
	"reprise/internal/proc"
)

// Limits and times of a run.
const (
	// DefaultGrace is the time between asking an agent to end and killing it.
	// Claude Code needs about 1.5 s to end on SIGTERM and takes its shells
	// with it; killed at once it leaves them behind.
	DefaultGrace = 5 * time.Second
	// DefaultResultPatience is how long an agent may live on after its final
	// result. Claude Code stays for as long as a background shell of its runs.
	DefaultResultPatience = 10 * time.Second
	// maxTask bounds the task and the system prompt, in bytes.
	maxTask = 8 << 20
	// maxTimeout keeps durations far from overflow: thirty days.
	maxTimeout = 30 * 24 * time.Hour
	// DefaultAskPatience is how long a supervisor may take to read a request,
	// which it looks for ten times a second, before it is woken, and again
	// before it is killed.
	DefaultAskPatience = 5 * time.Second
	// spawnPatience is how long another process's run may stay "spawning"
	// without a supervisor.
	spawnPatience = 5 * time.Second
)

// Request is what a caller wants run. Zero values take the manager's defaults.
type Request struct {
	Task         string
	SystemPrompt string // added to the default preamble
	Model        string
	WorkDir      string // absolute; default: the user's home directory
	AddDirs      []string
	// Timeout is the longest the run may take; 0 takes the default of the
	// settings, a negative one means none.
	Timeout         time.Duration
	MaxOutputTokens int
	AllowMemoryRead bool
	// AllowStateWrite lets the run's tools write the log, the learnings and the
	// decisions of its own agent: proposals, which somebody else promotes.
	AllowStateWrite bool
	Client          string // claude, codex, gemini, copilot, script or generic; "" takes the default
	Program         string // client program; "" takes the configured one
	ScriptFile      string // script client only
	// IdempotencyKey makes the call repeatable: a second Start with the same
	// key returns the first one's run.
	IdempotencyKey string
	// Detach lets the run live on when the process that started it ends.
	Detach bool
	Env    []string // environment of the agent; nil takes the manager's
	Origin string   // for the record: mcp, cli, demo, …
	// Principal is whose token it was that the run was asked for with; "" where
	// none was needed. Limits count runs by it.
	Principal string `json:",omitempty"`
	// Question makes the run one bare question to a model: see Question.
	Question *Question
	// Work makes the run one of the loop's: see Work.
	Work *Work
	// Resume is the run whose session the new one goes on with. What is not said here is as
	// it was then, and a Task that is empty asks for the rest of the work.
	Resume string `json:",omitempty"`
}

// Work is a run that goes on for as long as its item takes, as the client that it is:
// SystemPrompt is added to the client's own, and the preamble for spawned agents is
// left out.
type Work struct {
	agent.Work
	MaxTurns     int           // 0: no limit
	MaxBudgetUSD float64       // 0: no limit
	Grace        time.Duration // between asking it to end and killing it; 0: the manager's
	Session      string        // id of a new session, a UUID; "" makes one
	After        string        `json:"-"` // the run that had the session before, where one is gone on with
}

// Question is a run without its user's settings, hooks, tools and servers, in an
// empty directory within the run's own (WorkDir does not count), whose system
// prompt is the request's and nothing else. A client that cannot be started like
// that is refused (agent.ErrIsolation).
type Question struct {
	Purpose      string          // for the record
	Schema       json.RawMessage // of the answer; see agent.Isolation
	MaxTurns     int             // 0: no limit
	MaxBudgetUSD float64         // 0: no limit
}

// Options is what a Manager needs to know of the world.
type Options struct {
	Dir string // where new runs go
	// Also lists further runs directories in which ids are looked up. It is
	// asked when it is needed; nil means that there are none.
	Also     func() []string
	Project  string   // for the record
	Env      []string // environment that agents start from
	Home     string   // default working directory
	Hostname string

	DefaultClient   string // "" means claude
	ClaudePath      string // claude_cli.path of the settings
	ScriptFile      string // steps of the script client where a request names none
	ClientsFile     string // remembers what programs answered to --version; "" asks each time
	DefaultTimeout  time.Duration
	MaxOutputTokens int
	MemoryDir       string
	ProtectDirs     []string // neither readable nor writable for any run
	Sandbox         string   // auto, off or required
	// SandboxSupport says whether the operating system's sandbox can be had
	// ("" and why not). nil means it cannot.
	SandboxSupport func() (ok bool, why string)

	// Program is the full program (reprise), Helper the small one
	// (reprise-supervise), which is the full one too where the small one is not
	// installed. Both take `supervise DIR` and `protect POLICY`.
	Program string
	Helper  string

	// GuardHook is the command line of the hook that judges a run's tool calls, for
	// clients that have hooks; "" is none.
	GuardHook string

	// ClientHome are the files of the home that codex, gemini or copilot get for a run in
	// place of their user's: reprise's hooks, and how the client asks its model. nil: such
	// a client works only where a request brings its home (Work.HomeFiles).
	ClientHome func(client string) (map[string][]byte, error)

	// RoleBelow is the role of what an agent of a role starts; nil: none.
	RoleBelow func(role string) string

	EventsDir string
	// Outbox is where events wait that could not be recorded; "" is nowhere.
	Outbox string
	// Disk is where everything is written; the zero value is the machine's.
	Disk  durable.Disk
	Grace time.Duration
	// ResultPatience is how long an agent may live on after its result; 0
	// takes DefaultResultPatience.
	ResultPatience time.Duration
	// AskPatience is how long a supervisor may leave a request unread; 0 takes
	// DefaultAskPatience.
	AskPatience time.Duration
	Now         func() time.Time
	Log         *slog.Logger
	// Claim registers the project's name before the first run is written under
	// it; nil does nothing.
	Claim func(context.Context) error
	// LookPath finds a program by name.
	LookPath func(name string) (string, error)
}

// Manager starts runs and answers for them. It is safe for concurrent use.
type Manager struct {
	opt Options

	detector *agent.Detector

	mu       sync.Mutex
	attached map[string]*started // runs this process started, by id
}

// started is what a manager holds of a run it started itself.
type started struct {
	process  *proc.Process
	lifeline *os.File // nil for a detached run
	settled  chan struct{}
}

// New returns a manager. It touches nothing yet.
func New(opt Options) *Manager {
	if opt.Now == nil {
		panic("run.New: Options.Now is nil") // a programming error, found by the first test
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Grace == 0 {
		opt.Grace = DefaultGrace
	}
	if opt.ResultPatience == 0 {
		opt.ResultPatience = DefaultResultPatience
	}
	if opt.AskPatience == 0 {
		opt.AskPatience = DefaultAskPatience
	}
	if opt.DefaultClient == "" {
		opt.DefaultClient = agent.KindClaude
	}
	return &Manager{opt: opt, detector: &agent.Detector{File: opt.ClientsFile}, attached: map[string]*started{}}
}

// Dir is where new runs go.
func (m *Manager) Dir() string { return m.opt.Dir }

// idAlphabet is base32 in lower case, as an id's ten random characters use it.
const idAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

// ValidID reports whether id has the form of a run's id: run- and ten
// characters of a–z and 2–7. Nothing else ever becomes part of a path.
func ValidID(id string) bool {
	tail, ok := strings.CutPrefix(id, "run-")
	return ok && len(tail) == 10 && strings.Trim(tail, idAlphabet) == ""
}

// newID makes an id of 50 random bits. It doubles as the marker in the
// environment of the run's processes, so it must not be guessable.
func newID() string {
	var b [10]byte
	rand.Read(b[:]) // never fails
	for i := range b {
		b[i] = idAlphabet[b[i]&31]
	}
	return "run-" + string(b[:])
}

// newUUID is a version 4 UUID, the only form of session id that Claude takes.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// ErrBadRequest is wrapped by errors about what the caller asked for.
var ErrBadRequest = errors.New("bad request")

// ErrRefused is wrapped by errors about what is in order as it was asked for, and not done as
// things stand: the run that is to be gone on with has not ended, or somebody goes on with it
// already; runs stand too deep below one another, or in a circle.
var ErrRefused = errors.New("refused")

// ErrKeyReused is wrapped when an idempotency key comes with another task.
var ErrKeyReused = errors.New("idempotency key was used for another task")

func badRequest(format string, args ...any) error {
	return fmt.Errorf("start run: %w: %s", ErrBadRequest, fmt.Sprintf(format, args...))
}

// check validates the request and fills in the defaults.
func (m *Manager) check(req *Request) error {
	if strings.TrimSpace(req.Task) == "" {
		return badRequest("task is empty: say what the agent should do")
	}
	if n := len(req.Task) + len(req.SystemPrompt); n > maxTask {
		return badRequest("task and system prompt are %d bytes, the most is %d: put the material into a file and name it in the task", n, maxTask)
	}
	for name, s := range map[string]string{"task": req.Task, "system_prompt": req.SystemPrompt, "model": req.Model, "working_directory": req.WorkDir, "idempotency_key": req.IdempotencyKey} {
		if strings.ContainsRune(s, 0) {
			return badRequest("%s contains a NUL byte: remove it", name)
		}
	}
	if len(req.IdempotencyKey) > 256 {
		return badRequest("idempotency_key is %d bytes, the most is 256", len(req.IdempotencyKey))
	}
	switch {
	case req.Timeout == 0:
		req.Timeout = m.opt.DefaultTimeout
	case req.Timeout < 0:
		req.Timeout = 0
	}
	if req.Timeout > maxTimeout {
		return badRequest("timeout of %s is over the most, %s", req.Timeout, maxTimeout)
	}
	if req.MaxOutputTokens == 0 {
		req.MaxOutputTokens = m.opt.MaxOutputTokens
	}
	if req.MaxOutputTokens < 0 {
		return badRequest("max_output_tokens is %d: use a positive number", req.MaxOutputTokens)
	}
	if err := m.checkWorkDir(req); err != nil {
		return err
	}
	for _, dir := range req.AddDirs {
		if err := checkDir("additional_dirs", dir); err != nil {
			return err
		}
	}
	if req.ScriptFile != "" {
		if info, err := os.Stat(req.ScriptFile); err != nil || !info.Mode().IsRegular() {
			return badRequest("script file %q is not a file that can be read: name one that exists", req.ScriptFile)
		}
	}
	return nil
}

func (m *Manager) checkWorkDir(req *Request) error {
	if req.Question != nil {
		return nil // it gets one of its own
	}
	if req.WorkDir == "" {
		req.WorkDir = m.opt.Home
	}
	if req.WorkDir == "" {
		return badRequest("no working_directory was given and the home directory is not known: give one")
	}
	return checkDir("working_directory", req.WorkDir)
}

func checkDir(name, dir string) error {
	if strings.ContainsRune(dir, 0) {
		return badRequest("%s contains a NUL byte: remove it", name)
	}
	if !filepath.IsAbs(dir) {
		return badRequest("%s %q is not an absolute path: give it from the root", name, dir)
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return badRequest("%s %q does not exist: make it first or name another", name, dir)
	}
	if err != nil {
		return badRequest("%s %q cannot be used: %v", name, dir, err)
	}
	if !info.IsDir() {
		return badRequest("%s %q is not a directory", name, dir)
	}
	return nil
}

// client finds out which adapter a request gets, which program it starts, and
// what is doubtful about that program.
func (m *Manager) client(ctx context.Context, req Request) (a agent.Adapter, program string, notes []string, err error) {
	kind := req.Client
	if kind == "" {
		kind = m.opt.DefaultClient
	}
	switch kind {
	case agent.KindScript:
		a, err := agent.For(kind)
		return a, m.opt.Program, nil, err
	case agent.KindClaude, agent.KindGeneric:
	default:
		if hasOwnHome(kind) {
			return m.otherClient(kind, req.Program)
		}
		_, err := agent.For(kind)
		return nil, "", nil, fmt.Errorf("start run: %w: %w", ErrBadRequest, err)
	}
	name := req.Program
	if name == "" {
		name = m.opt.ClaudePath
	}
	if name == "" {
		return nil, "", nil, badRequest("no program is configured: set claude_cli.path in the settings")
	}
	path, err := m.opt.LookPath(name)
	if err != nil {
		return nil, "", nil, fmt.Errorf("failed to start agent: %w; install Claude Code, name another client (`--agent codex`, or once for all `reprise config set sub_agent.agent codex`), or set claude_cli.path in the settings; `--agent script` works without", err)
	}
	if kind == agent.KindClaude {
		info, findings := agent.Preflight(ctx, path, req.Env, m.detector)
		for _, f := range findings {
			switch f.Level {
			case agent.LevelError:
				return nil, "", nil, fmt.Errorf("failed to start agent: %s: %s", f.Message, f.Remedy)
			case agent.LevelWarn:
				notes = append(notes, f.Message+": "+f.Remedy)
			}
		}
		kind = info.Kind
	}
	a, err = agent.For(kind)
	return a, path, notes, err
}

// hasOwnHome says whether a client gets a home of its own, in place of its user's.
func hasOwnHome(client string) bool {
	return client == agent.KindCodex || client == agent.KindGemini || client == agent.KindCopilot
}

// otherClient is a client that has a home of its own.
func (m *Manager) otherClient(kind, program string) (agent.Adapter, string, []string, error) {
	a, err := agent.For(kind)
	if err != nil {
		return nil, "", nil, err
	}
	if program == "" {
		program = kind
	}
	path, err := m.opt.LookPath(program)
	if err != nil {
		return nil, "", nil, fmt.Errorf("failed to start agent: %w; install %s, or put it into PATH (for questions, judge.program of the settings names it)", err, kind)
	}
	return a, path, nil, nil
}

// Client says which adapter a request would get, and the version of what it would
// start: of the script client, a hash of its steps. Errors are those of Start; a
// question's client that cannot be isolated is one.
func (m *Manager) Client(ctx context.Context, req Request) (name, version string, err error) {
	if req.Env == nil {
		req.Env = m.opt.Env
	}
	a, program, _, err := m.client(ctx, req)
	if err != nil {
		return "", "", err
	}
	if req.Question != nil {
		if _, err := a.Command(m.task(req, a, program, newID(), newUUID())); err != nil {
			return "", "", fmt.Errorf("start run: %w", err)
		}
	}
	if a.Name() == agent.KindScript {
		if req.ScriptFile == "" {
			req.ScriptFile = m.opt.ScriptFile
		}
		data, err := readFile(req.ScriptFile)
		if err != nil && req.ScriptFile != "" {
			return "", "", fmt.Errorf("read steps of the script client: %w", err)
		}
		sum := sha256.Sum256(data)
		return a.Name(), hex.EncodeToString(sum[:8]), nil
	}
	info, err := m.detector.Detect(ctx, program, req.Env)
	return a.Name(), info.Version, err
}

// Start writes the record of a new run and starts its supervisor. When it
// returns without an error the run is on disk and will end in a settled state
// whatever dies. The agent itself may still fail to start: Wait and Get say so.
// Errors wrap ErrBadRequest where the request is at fault, ErrRefused where it is in order
// and not done as things stand, and ErrKeyReused where its idempotency key belongs to another task.
func (m *Manager) Start(ctx context.Context, req Request) (Record, error) {
	if req.Env == nil {
		req.Env = m.opt.Env
	}
	if req.Resume != "" {
		if err := m.fill(ctx, &req); err != nil {
			return Record{}, err
		}
	}
	if err := m.check(&req); err != nil {
		return Record{}, err
	}
	if m.opt.Claim != nil {
		if err := m.opt.Claim(ctx); err != nil {
			return Record{}, fmt.Errorf("start run: %w", err)
		}
	}
	if req.IdempotencyKey == "" {
		return m.begin(ctx, req, newID())
	}
	return m.startOnce(ctx, req)
}

// begin starts a run, in the session of another where one is to be gone on with.
func (m *Manager) begin(ctx context.Context, req Request, id string) (Record, error) {
	if req.Resume == "" {
		return m.start(ctx, req, id, nil)
	}
	from, done, err := m.take(ctx, req.Resume, id)
	if err != nil {
		return Record{}, err
	}
	r, err := m.start(ctx, req, id, from)
	_, lost := m.Get(id) // one that failed to start is on record, and is gone on with in its turn
	return r, errors.Join(err, done(lost == nil))
}

func (m *Manager) start(ctx context.Context, req Request, id string, from *resumed) (Record, error) {
	if req.ScriptFile == "" {
		req.ScriptFile = m.opt.ScriptFile
	}
	path := m.delegation(req.Env)
	if err := m.mayDelegate(req, path); err != nil {
		return Record{}, err
	}
	adapter, program, notes, err := m.client(ctx, req)
	if err != nil {
		return Record{}, err
	}
	sessionID := newUUID()
	if w := req.Work; w != nil {
		sessionID = cmp.Or(w.Resume, w.Session, sessionID)
	}
	if from != nil {
		sessionID = from.from.SessionID
	}
	task := m.task(req, adapter, program, id, sessionID)
	if from != nil {
		task.Resume, task.SystemPrompt = sessionID, cmp.Or(from.system, task.SystemPrompt)
	}
	if task.Work == nil && task.Isolated == nil && m.opt.ClientHome != nil && hasOwnHome(adapter.Name()) {
		files, err := m.opt.ClientHome(adapter.Name())
		if err != nil {
			return Record{}, fmt.Errorf("start run: %w", err)
		}
		task.Work = &agent.Work{HomeFiles: files}
		if from != nil {
			task.Work.Home = from.from.Command.Home
		}
	}
	cmd, err := adapter.Command(task)
	if err != nil {
		return Record{}, fmt.Errorf("start run: %w", err)
	}
	r, err := m.newRecord(req, id, sessionID, adapter.Name(), cmd, path)
	if err != nil {
		return Record{}, err
	}
	r.Notes = notes
	if from != nil {
		r.Resumes, r.Before = from.from.ID, before(from.from)
	} else if req.Work != nil && req.Work.After != "" {
		if last, err := m.Get(req.Work.After); err == nil && last.SessionID == sessionID {
			r.Resumes, r.Before = last.ID, before(last)
		}
	}
	if err := m.create(r, req.Task, cmd.Files); err != nil {
		return Record{}, err
	}
	m.makeClientDir(r, cmd.Env)
	if err := m.launch(r, m.below(cmd.Env, path)); err != nil {
		return Record{}, m.abandon(r, err)
	}
	m.opt.Log.Info("run started", "run", id, "client", r.Client, "working_dir", r.WorkDir)
	if from != nil {
		if err := recordEvent(ctx, m.opt.Hostname, r, m.opt.Now); err != nil {
			m.opt.Log.Warn("record event", "run", id, "error", err.Error())
		}
	}
	return r, nil
}

// task is what the adapter is told of a run.
func (m *Manager) task(req Request, adapter agent.Adapter, program, id, sessionID string) agent.Task {
	dir := filepath.Join(m.opt.Dir, id)
	self := m.opt.Helper
	if adapter.Name() == agent.KindScript {
		self = m.opt.Program // the script player needs the full program
	}
	task := agent.Task{
		RunID: id, SessionID: sessionID, RunDir: dir,
		Prompt: req.Task, SystemPrompt: agent.SystemPrompt(m.opt.MemoryDir, req.SystemPrompt), Model: req.Model,
		WorkDir: req.WorkDir, AddDirs: req.AddDirs, MemoryDir: m.opt.MemoryDir, AllowMemoryRead: req.AllowMemoryRead,
		ProtectDirs: m.opt.ProtectDirs, Timeout: req.Timeout, ScriptFile: req.ScriptFile,
		Program: program, Self: self, Env: req.Env, GuardHook: m.opt.GuardHook,
	}
	if w := req.Work; w != nil {
		task.Work, task.SystemPrompt = &w.Work, req.SystemPrompt
		task.MaxTurns, task.MaxBudgetUSD = w.MaxTurns, w.MaxBudgetUSD
	}
	if q := req.Question; q != nil {
		task.Isolated = &agent.Isolation{Schema: q.Schema}
		task.SystemPrompt, task.WorkDir = req.SystemPrompt, filepath.Join(dir, emptyDir)
		task.MaxTurns, task.MaxBudgetUSD = q.MaxTurns, q.MaxBudgetUSD
	}
	return task
}

func (m *Manager) newRecord(req Request, id, sessionID, client string, cmd agent.Command, path []string) (Record, error) {
	now := m.opt.Now().UTC()
	spawner, err := proc.Self()
	if err != nil {
		return Record{}, fmt.Errorf("start run: %w", err)
	}
	launch := Launch{Path: cmd.Path, Args: cmd.Args, Home: cmd.Home, EventsDir: m.opt.EventsDir, Outbox: m.opt.Outbox, GraceSeconds: m.opt.Grace.Seconds(), ResultPatienceSeconds: m.opt.ResultPatience.Seconds()}
	if req.Work != nil && req.Work.Grace > 0 {
		launch.GraceSeconds = req.Work.Grace.Seconds()
	}
	if err := m.sandbox(&launch, req.AllowMemoryRead); err != nil {
		return Record{}, err
	}
	dir := filepath.Join(m.opt.Dir, id)
	purpose := ""
	if req.Question != nil {
		purpose = req.Question.Purpose
	}
	return Record{
		V: formatVersion, ID: id, Status: Spawning, StatusUpdatedAt: now, StartedAt: now, StartEpoch: now.Unix(),
		Client: client, SessionID: sessionID, Project: m.opt.Project, Model: req.Model, WorkDir: cmd.Dir,
		Origin: req.Origin, Principal: req.Principal, Purpose: purpose, Detached: req.Detach, Key: req.IdempotencyKey, DelegationPath: path,
		Spawner: &spawner, TimeoutSeconds: req.Timeout.Seconds(), MaxOutputTokens: req.MaxOutputTokens,
		AllowMemoryRead: req.AllowMemoryRead, AllowStateWrite: req.AllowStateWrite, AddDirs: req.AddDirs, Command: launch,
		Logs: Logs{Stdout: filepath.Join(dir, stdoutFile), Stderr: filepath.Join(dir, stderrFile)},
		dir:  dir,
		disk: m.opt.Disk,
	}, nil
}

// sandbox decides how the memory directory is kept from the run.
func (m *Manager) sandbox(l *Launch, allowRead bool) error {
	if m.opt.MemoryDir == "" && len(m.opt.ProtectDirs) == 0 {
		l.Sandbox = "nothing to protect"
		return nil
	}
	if m.opt.Sandbox == "off" {
		l.Sandbox = "client rules only: switched off by sub_agent.sandbox"
		return nil
	}
	ok, why := false, "not on this system"
	if m.opt.SandboxSupport != nil {
		ok, why = m.opt.SandboxSupport()
	}
	if !ok {
		if m.opt.Sandbox == "required" {
			return fmt.Errorf("start run: sub_agent.sandbox is \"required\", but there is no sandbox here: %s; use \"auto\" to rely on the client's own rules", why)
		}
		l.Sandbox = "client rules only: " + why
		return nil
	}
	l.Sandbox = "landlock"
	l.DenyAll = slices.Clone(m.opt.ProtectDirs)
	if m.opt.MemoryDir != "" {
		if allowRead {
			l.DenyWrite = append(l.DenyWrite, m.opt.MemoryDir)
		} else {
			l.DenyAll = append(l.DenyAll, m.opt.MemoryDir)
		}
	}
	return nil
}

// create makes the run's directory. run.json comes last: a directory without
// one is a run that never was, and is removed by GC.
func (m *Manager) create(r Record, task string, files map[string][]byte) error {
	if err := m.opt.Disk.MkdirAll(r.dir, 0o700); err != nil {
		return fmt.Errorf("start run: %w", err)
	}
	if m.opt.EventsDir != "" {
		// Beforehand, because a confined run's own runs cannot make it.
		if err := m.opt.Disk.MkdirAll(m.opt.EventsDir, 0o700); err != nil {
			return fmt.Errorf("start run: %w", err)
		}
	}
	if empty := r.path(emptyDir); r.WorkDir == empty {
		if err := m.opt.Disk.MkdirAll(empty, 0o700); err != nil {
			return fmt.Errorf("start run: %w", err)
		}
	}
	if err := m.opt.Disk.WriteFileHot(filepath.Join(r.dir, promptFile), []byte(task), 0o600); err != nil {
		return fmt.Errorf("start run: write task: %w", err)
	}
	for name, data := range files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("start run: adapter %s names file %q outside the run", r.Client, name)
		}
		path := filepath.Join(r.dir, name)
		if dir := filepath.Dir(path); dir != r.dir {
			if err := m.opt.Disk.MkdirAll(dir, 0o700); err != nil {
				return fmt.Errorf("start run: %w", err)
			}
		}
		if err := m.opt.Disk.WriteFileHot(path, data, 0o600); err != nil {
			return fmt.Errorf("start run: write %s: %w", name, err)
		}
	}
	if err := r.write(); err != nil {
		return fmt.Errorf("start run: write record: %w", err)
	}
	return nil
}

// makeClientDir makes the directory that Claude Code keeps its sessions in, where it is the
// first time that it runs here and the sandbox would keep it from that: a session that is
// not kept cannot be gone on with. (The other clients have a home of the run's own.)
func (m *Manager) makeClientDir(r Record, env []string) {
	if r.Client != agent.KindClaude || len(r.Command.DenyAll)+len(r.Command.DenyWrite) == 0 {
		return
	}
	if dir := agent.ClaudeDir(env); filepath.IsAbs(dir) {
		if err := m.opt.Disk.MkdirAll(dir, 0o700); err != nil {
			m.opt.Log.Warn("make the client's directory", "run", r.ID, "error", err.Error())
		}
	}
}

// launch starts the supervisor and remembers it.
func (m *Manager) launch(r Record, env []string) error {
	stdin, lifeline, err := m.lifeline(r.Detached)
	if err != nil {
		return err
	}
	defer stdin.Close()
	log, err := m.opt.Disk.CreateHot(filepath.Join(r.dir, ownLogFile), 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	// The supervisor itself must not carry the run's id: a sweep for it would
	// take the supervisor along.
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, proc.RunIDVar+"=") })
	p, err := proc.Start(proc.Cmd{
		Path: m.opt.Helper, Args: []string{"supervise", r.dir},
		Env: env, Dir: r.dir, Stdin: stdin, Stdout: log, Stderr: log, NewSession: true,
	})
	if err != nil {
		if lifeline != nil {
			lifeline.Close()
		}
		return fmt.Errorf("start supervisor: %w", err)
	}
	s := &started{process: p, lifeline: lifeline, settled: make(chan struct{})}
	m.mu.Lock()
	m.attached[r.ID] = s
	m.mu.Unlock()
	go m.follow(r.ID, s)
	return nil
}

// lifeline returns the supervisor's standard input and, for an attached run,
// the end that this process keeps.
func (m *Manager) lifeline(detached bool) (stdin, keep *os.File, err error) {
	if detached {
		stdin, err = os.Open(os.DevNull)
		return stdin, nil, err
	}
	return proc.Lifeline()
}

// follow waits for a supervisor's end and settles the run if it did not do so
// itself.
func (m *Manager) follow(id string, s *started) {
	defer close(s.settled)
	s.process.Wait()
	if s.lifeline != nil {
		s.lifeline.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := m.settle(ctx, id)
	if err != nil {
		// It stays in the table, so that the next who asks need not wonder
		// whether its supervisor is yet to come.
		m.opt.Log.Error("settle run", "run", id, "error", err.Error())
		return
	}
	if r.Status.Done() {
		m.opt.Log.Info("run ended", "run", id, "status", string(r.Status), "reason", r.StatusReason)
	}
	m.forget(id)
}

func (m *Manager) forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.attached, id)
}

// abandon settles a run whose supervisor could not be started.
func (m *Manager) abandon(r Record, cause error) error {
	if err := r.move(Failed, cause.Error(), m.opt.Now()); err == nil {
		if err := r.write(); err != nil {
			cause = errors.Join(cause, err)
		}
	}
	return fmt.Errorf("failed to start agent: %w", cause)
}
