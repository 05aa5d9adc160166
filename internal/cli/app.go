package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/git"
	"reprise/internal/learn"
	"reprise/internal/memory"
	"reprise/internal/proc"
	"reprise/internal/proc/confine"
	"reprise/internal/recall"
	"reprise/internal/run"
	"reprise/internal/session"
	"reprise/internal/setup"
	"reprise/internal/term"
)

// App is all that the command line touches of the world. Commands take it and
// nothing else, so that a test runs the whole program in its own process.
type App struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer

	InIsTerminal  bool
	OutIsTerminal bool
	ErrIsTerminal bool
	Columns       int // of the terminal that Out is; 0 where it is none
	// Size is how large that is now; nil where it is none.
	Size     func() (columns, rows int)
	Env      config.Env
	Environ  []string // the environment as lines, what agents start from
	Program  string   // absolute path of this program
	Hostname string
	PID      int
	// ConfigFlag is --config.
	ConfigFlag string
	// Guest says that this process looks after other things beside its one command, whose
	// processes it must leave alone.
	Guest bool
	// ProtectStdout points the process's own standard output elsewhere, so
	// that no stray print reaches a protocol. nil does nothing.
	ProtectStdout func()
	// Signals subscribes to the requests to stop that the process gets. nil
	// means that there are none.
	Signals func() <-chan os.Signal

	home      *config.Home
	programs  *git.Programs // that the project's repository may have git run; nil where nobody has asked
	log       *slog.Logger
	logf      io.Closer
	runs      *run.Manager
	memory    *memory.Store
	servers   onServers          // of a fleet
	patience  time.Duration      // how long its queue may be away; 0 is the queue's own
	known     *session.Memory    // all that is remembered
	onRebuild func(learn.Report) // told how far what is worked out from the logs is made anew; nil is nobody
	embedNote sync.Once          // that there are no vectors is said once
	// served: a model asks through this process, whoever started it.
	served bool
	// hurried: this process has a deadline, and leaves to another what takes long.
	hurried bool
	// forgetting: what a forgetting has left is being finished.
	forgetting bool
}

// command is one of the program's commands: the word that it is called by, and how it is
// made.
type command struct {
	word string
	make func(*App) *cobra.Command
}

// commands is every command there is, in the order of the help.
func commands() []command {
	return []command{
		{"demo", newDemoCmd},
		{"status", newStatusCmd},
		{"watch", newWatchCmd},
		{"init", newInitCmd},
		{"project", newProjectCmd},
		{"setup", newSetupCmd},
		{"trust", newTrustCmd},
		{"guard", newGuardCmd},
		{"verify", newVerifyCmd},
		{"gates", newGatesCmd},
		{"mcp", newMCPCmd},
		{"web", newWebCmd},
		{"spawn", newSpawnCmd},
		{"runs", newRunsCmd},
		{"queue", newQueueCmd},
		{"loop", newLoopCmd},
		{"worker", newWorkerCmd},
		{"memory", newMemoryCmd},
		{"recall", newRecallCmd},
		{"context", newContextCmd},
		{"state", newStateCmd},
		{"log", newLogCmd},
		{"learn", newLearnCmd},
		{"decide", newDecideCmd},
		{"scratch", newScratchCmd},
		{"note", newNoteCmd},
		{"checkpoint", newCheckpointCmd},
		{"handoff", newHandoffCmd},
		{"artifact", newArtifactCmd},
		{"team", newTeamCmd},
		{"workspace", newWorkspaceCmd},
		{"task", newTaskCmd},
		{"policy", newPolicyCmd},
		{"metrics", newMetricsCmd},
		{"qa", newQACmd},
		{"delegation", newDelegationCmd},
		{"judge", newJudgeCmd},
		{"index", newIndexCmd},
		{"events", newEventsCmd},
		{"import", newImportCmd},
		{"hook", newHookCmd},
		{"compliance", newComplianceCmd},
		{"refresh", newRefreshCmd},
		{"doctor", newDoctorCmd},
		{"upgrade", newUpgradeCmd},
		{"bug-report", newBugReportCmd},
		{"config", newConfigCmd},
		{"paths", newPathsCmd},
		{"version", newVersionCmd},
		{"supervise", newSuperviseCmd},
		{"protect", newProtectCmd},
		{"script-agent", newScriptAgentCmd},
		{"merge-driver", newMergeDriverCmd},
	}
}

// Close frees what the commands opened.
func (a *App) Close() {
	a.servers.close()
	if a.known != nil {
		a.known.Close()
	}
	if a.logf != nil {
		a.logf.Close()
	}
}

// Now is the time by the app's clock.
func (a *App) Now() time.Time { return a.Env.Now() }

// Style colours output where the user wants colour.
func (a *App) Style() term.Style {
	return term.NewStyle(term.WantColour(a.Env.Get, a.OutIsTerminal))
}

// Home is the installation: places, settings and the project around the
// working directory.
func (a *App) Home() (*config.Home, error) {
	if a.home != nil {
		return a.home, nil
	}
	home, err := config.Open(a.Env, a.ConfigFlag)
	var taken *config.NameTakenError
	if errors.As(err, &taken) && a.sameHistory(taken) {
		home, err = config.Open(a.Env, a.ConfigFlag)
	}
	if err != nil {
		return nil, err
	}
	a.home = home
	return home, nil
}

// sameHistory lets a clone have its project's name that only git can tell to be
// one: both checkouts begin with the same commit. It is written down, so that the
// programs which do not ask git know it too.
func (a *App) sameHistory(taken *config.NameTakenError) bool {
	ctx := context.Background()
	commit := rootCommit(ctx, a, taken.Root)
	if commit != "" && taken.Away { // a directory that was moved has the commit that is written down
		return a.claimAt(ctx, taken, taken.Root, commit)
	}
	if commit == "" || commit != rootCommit(ctx, a, taken.By) {
		return false
	}
	for _, root := range []string{taken.By, taken.Root} { // the older one first: it says which commit the name's is
		if !a.claimAt(ctx, taken, root, commit) {
			return false
		}
	}
	return true
}

// claimAt claims the name for the project at root, and tells whether that has it now.
func (a *App) claimAt(ctx context.Context, taken *config.NameTakenError, root, commit string) bool {
	paths, err := config.FindPaths(a.Env)
	if err != nil {
		return false
	}
	env := a.Env
	env.Dir = root
	p, err := config.FindProject(env, root)
	return err == nil && p != nil && p.Name == taken.Name && paths.Claim(ctx, p, commit, a.Now()) == nil
}

// claim claims the name of the project around the working directory before something is
// written for it.
func (a *App) claim(ctx context.Context) error {
	home, err := a.Home()
	if err != nil || home.Project == nil {
		return err
	}
	return home.Paths.Claim(ctx, home.Project, a.unclaimedCommit(ctx, home), a.Now())
}

// unclaimedCommit is the first commit of a project's repository, "" where its name's claim has
// one. Many a project is made before its first commit: that is written down as soon as there
// is one, so that the project is known wherever its directory is moved.
func (a *App) unclaimedCommit(ctx context.Context, home *config.Home) string {
	if home.Paths.KnowsCommit(home.Project.Name) {
		return ""
	}
	return rootCommit(ctx, a, home.Project.Main)
}

// Logger is reprise's own log. Its file is made at the first line.
func (a *App) Logger() (*slog.Logger, error) {
	if a.log != nil {
		return a.log, nil
	}
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	a.log, a.logf, err = session.Log(home.LogFile(), home.Settings.Logging, a.Env.Now, a.PID)
	return a.log, err
}

// Runs is the run manager of the project around the working directory, or of
// the global scope.
func (a *App) Runs() (*run.Manager, error) {
	if a.runs != nil {
		return a.runs, nil
	}
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	log, err := a.Logger()
	if err != nil {
		return nil, err
	}
	set := home.Settings
	userHome, _ := a.Env.Home() // "" makes working_directory a required argument
	var project string
	var claim func(context.Context) error
	if home.Project != nil {
		project = home.Project.Name
		claim = a.claim
	}
	a.runs = run.New(run.Options{
		Dir:             home.RunsDir(),
		Also:            func() []string { return a.otherRuns(home) },
		Project:         project,
		Env:             a.Environ,
		Home:            userHome,
		Hostname:        a.Hostname,
		DefaultClient:   set.SubAgent.Agent,
		ClaudePath:      set.ClaudeCLI.Path,
		ScriptFile:      set.SubAgent.ScriptFile,
		ClientsFile:     filepath.Join(home.Paths.Cache, "clients.json"),
		DefaultTimeout:  time.Duration(set.SubAgent.DefaultTimeoutSeconds) * time.Second,
		MaxOutputTokens: set.SubAgent.DefaultMaxOutputTokens,
		MemoryDir:       home.MemoryDir(),
		Sandbox:         set.SubAgent.Sandbox,
		SandboxSupport: func() (bool, string) {
			abi, why := confine.Supported()
			return abi > 0, why
		},
		Claim:      claim,
		Program:    a.Program,
		Helper:     helperProgram(a.Program),
		GuardHook:  a.guardHook(home),
		ClientHome: a.newWorker(home).home,
		RoleBelow:  delegationRules(set.Delegation).Below,
		EventsDir:  home.EventsDir(),
		Outbox:     home.Paths.Outbox(),
		Now:        a.Env.Now,
		Log:        log,
		LookPath:   func(name string) (string, error) { return proc.LookPath(name, a.Env.Vars, a.Env.GOOS) },
	})
	return a.runs, nil
}

// otherRuns are the runs directories of the other scopes: an id that a person
// or a client has is good wherever it is asked for.
func (a *App) otherRuns(home *config.Home) []string {
	var dirs []string
	if global := home.Paths.Runs(""); global != home.RunsDir() {
		dirs = append(dirs, global)
	}
	entries, err := durable.ReadDir(filepath.Join(home.Paths.Data, "projects"))
	if err != nil {
		return dirs
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue // the former name of one of the others
		}
		if dir := home.Paths.Runs(e.Name()); dir != home.RunsDir() && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// guardHook is what judges the tool calls of runs: by the rules of any session, with
// nobody there to be asked.
func (a *App) guardHook(home *config.Home) string {
	if home.Settings.Guard.Mode == "off" {
		return ""
	}
	s := setup.Setup{Where: setup.Where{Env: a.Env}}
	hook := setup.Beside(a.Program, setup.HookProgram)
	if info, err := os.Stat(hook); err == nil && info.Mode().IsRegular() {
		return s.HookCommand(hook, "claude-code", "PreToolUse")
	}
	return s.HookCommand(a.Program, "hook claude-code", "PreToolUse")
}

// helperProgram is the small program beside this one, or this one where there
// is none (as under `go run`): both know the same helper commands.
func helperProgram(program string) string {
	path := setup.Beside(program, setup.SuperviseProgram)
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return path
	}
	return program
}

// Memory is the memory store. Nothing is made until something is written.
func (a *App) Memory() (*memory.Store, error) {
	if a.memory != nil {
		return a.memory, nil
	}
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	access, err := a.memoryAccess()
	if err != nil {
		return nil, err
	}
	index, err := a.anyIndex()
	if err != nil {
		return nil, err
	}
	a.memory = memory.New(memory.Options{
		Dir:        home.MemoryDir(),
		Access:     access,
		May:        a.may(),
		Now:        a.Env.Now,
		Events:     &memoryEvents{app: a},
		AfterWrite: index.Touch,
		Git:        memory.GitOptions{Vars: a.Env.Vars},
	})
	return a.memory, nil
}

// memoryAccess is what this process may do with the memory: everything, unless
// it runs inside a run, and then what that run may. A run that is not known
// here may nothing. A run that may propose what is to be remembered, which those
// of the loop and of tasks may, is told by its hooks what is: it is the user's
// session as if they sat there, and its own tools read nothing by that.
func (a *App) memoryAccess() (memory.Access, error) {
	id := a.Env.Get(proc.RunIDVar)
	if id == "" {
		return memory.FullAccess, nil
	}
	runs, err := a.Runs()
	if err != nil {
		return memory.NoAccess, err
	}
	if r, err := runs.Get(id); err == nil && (r.AllowMemoryRead || a.hurried && r.AllowStateWrite) {
		return memory.ReadAccess, nil
	}
	return memory.NoAccess, nil
}

// Index is the search index over the memory directory, for one who may read
// the memory.
func (a *App) Index() (*recall.Index, error) {
	m, err := a.Remembered()
	if err != nil {
		return nil, err
	}
	return m.Index, nil
}

func (a *App) anyIndex() (*recall.Index, error) {
	m, err := a.anyKnown()
	if err != nil {
		return nil, err
	}
	return m.Index, nil
}

// memoryEvents makes a memory.written event of each write.
type memoryEvents struct{ app *App }

func (e *memoryEvents) MemoryWritten(ctx context.Context, c memory.Change) error {
	data, err := jsonData(event.MemoryData{Op: c.Op, Name: c.Name, Hash: c.Hash, Bytes: c.Bytes})
	if err != nil {
		return err
	}
	broker, err := e.app.Broker()
	if err != nil {
		return err
	}
	_, err = broker.Record(ctx, event.Event{Scope: event.ScopeProject, Type: event.MemoryWritten, Data: data, Outcome: "success"})
	return err
}

// notFound gives errors about things that do not exist their exit code.
func notFound(err error) error {
	if errors.Is(err, run.ErrNotFound) || errors.Is(err, memory.ErrNotFound) {
		return exitWith(ExitNotFound, err)
	}
	return err
}
