package setup

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/logfile"
	"reprise/internal/memory"
	"reprise/internal/pathname"
	"reprise/internal/proc"
	"reprise/internal/term"
)

// Status of a finding.
type Status string

// The statuses, from good to bad. Info is something that is as it is.
const (
	OK   Status = "ok"
	Info Status = "info"
	Warn Status = "warn" // works, with a drawback
	Fail Status = "fail" // something will not work
)

// Finding is one line of the doctor's report.
type Finding struct {
	Check   string `json:"check"`
	Status  Status `json:"status"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
	// Hooks is each hook of a client, where the finding is about them.
	Hooks []HookProof `json:"hooks,omitempty"`
}

// Check is one examination. It changes nothing that lasts.
type Check struct {
	Name string
	Run  func(ctx context.Context) []Finding
	Time time.Duration // how long it may take; 0 = checkTime
}

// checkTime bounds one check: a client's program may hang.
const checkTime = 15 * time.Second

// liveTime bounds the check that runs hooks and clients, all at once.
const liveTime = 2 * time.Minute

// Diagnose runs the checks in order. One that panics or does not end is itself
// a finding, and the others still run. tell, which may be nil, gets the findings
// of each check as soon as there are some.
func Diagnose(ctx context.Context, checks []Check, tell func([]Finding)) []Finding {
	var out []Finding
	for _, c := range checks {
		fs := diagnose(ctx, c)
		for i := range fs {
			fs[i].Check = c.Name
		}
		if tell != nil && len(fs) > 0 {
			tell(fs)
		}
		out = append(out, fs...)
	}
	return out
}

func diagnose(ctx context.Context, c Check) (found []Finding) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Time, checkTime))
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			found = append(found, Finding{Status: Fail, Message: fmt.Sprintf("the check itself went wrong: %v", r), Remedy: "report this"})
		}
	}()
	return c.Run(ctx)
}

// Worst is the worst status of findings.
func Worst(found []Finding) Status {
	worst := OK
	rank := []Status{OK, Info, Warn, Fail}
	for _, f := range found {
		if slices.Index(rank, f.Status) > slices.Index(rank, worst) {
			worst = f.Status
		}
	}
	return worst
}

// Doctor is what the checks look at. Whatever they need from outside is passed
// in, so that each can be tested alone.
type Doctor struct {
	Setup   Setup
	Program string // absolute path of reprise
	Config  string // --config, as it was given

	// Load reads the settings and finds the project.
	Load func() (*config.Home, error)
	// Memory is the memory store's own check.
	Memory interface {
		Check(ctx context.Context) (memory.Report, error)
	}
	// Temp is where programs leave files of the moment whatever they are told, as Claude
	// Code's shell does, if the system can close it to runs; "" where it cannot.
	Temp string
	// Orphans lists live processes of runs that have ended.
	Orphans func(ctx context.Context) (map[string][]proc.ID, error)
	// LookPath finds a program, in PATH and the known places.
	LookPath func(name string) (string, error)
	// Version asks a program for its version.
	Version func(ctx context.Context, program string) (string, error)
	// Secrets counts what looks like a credential.
	Secrets func(text string) int
	// Waiting counts the events that could not be logged yet, and those that
	// never can be; Lost counts those that could be kept nowhere.
	Waiting func() (waiting, bad int, err error)
	Lost    func() (int, error)
	// Absent says what there is of a project in a directory that is in none, "" for nothing.
	Absent func(ctx context.Context) string
	// Live runs a client whose hooks are set up, against a stand-in for its model
	// and on files of its own, and says what came of it. nil: not tried.
	Live func(ctx context.Context, h InstalledHooks) []Finding
	// More are checks of what this package knows nothing of.
	More []Check
}

// Checks lists the doctor's examinations in the order of the report.
func (d Doctor) Checks() []Check {
	return append([]Check{
		{Name: "paths", Run: d.paths},
		{Name: "settings", Run: d.settings},
		{Name: "project", Run: d.project},
		{Name: "trust", Run: d.trust},
		{Name: "program", Run: d.program},
		{Name: "small programs", Run: d.smallPrograms},
		{Name: "git", Run: d.git},
		{Name: "memory", Run: d.memory},
		{Name: "log", Run: d.log},
		{Name: "outbox", Run: d.outbox},
		{Name: "runs", Run: d.runs},
		{Name: "clients", Run: d.clients},
		{Name: "mcp entries", Run: d.entries},
		{Name: "hooks", Run: d.hooks},
		{Name: "live hooks", Run: d.live, Time: liveTime},
		{Name: "filesystem server", Run: d.filesystem},
		{Name: "instructions", Run: d.instructions},
	}, d.More...)
}

func one(s Status, remedy, format string, args ...any) []Finding {
	return []Finding{{Status: s, Message: fmt.Sprintf(format, args...), Remedy: remedy}}
}

// paths checks that what must be written can be. What is not there yet is
// tried at the nearest directory that is.
func (d Doctor) paths(context.Context) []Finding {
	var out []Finding
	for _, p := range []struct{ what, dir string }{
		{"data", d.Setup.Paths.Data}, {"state", d.Setup.Paths.State}, {"cache", d.Setup.Paths.Cache},
	} {
		out = append(out, writable(p.what, p.dir)...)
	}
	return out
}

// probeBytes is what the doctor writes to see that there is room: about what a note and
// its events take.
const probeBytes = 16 << 10

// lost is what is said of a probe that could not be taken away again.
func lost(what, probe string, err error) []Finding {
	if err == nil {
		return nil
	}
	return one(Fail, "remove it, and check the disk", "%s directory: %s cannot be removed: %v", what, probe, cause(err))
}

func writable(what, dir string) []Finding {
	at := dir
	for {
		info, err := os.Stat(at)
		if err == nil {
			if !info.IsDir() {
				return one(Fail, "move it away, or choose another place with REPRISE_HOME", "%s directory %s: %s is not a directory", what, dir, at)
			}
			break
		}
		up := filepath.Dir(at)
		if !errors.Is(err, fs.ErrNotExist) || up == at {
			return one(Fail, "check the permissions above it", "%s directory %s: %v", what, dir, err)
		}
		at = up
	}
	probe := filepath.Join(at, ".reprise-doctor-"+rand.Text())
	f, err := durable.Create(probe, 0o600)
	if err != nil {
		return one(Fail, "make it writable, or choose another place with REPRISE_HOME", "%s directory %s cannot be written: %v", what, dir, cause(err))
	}
	// A full disk has room for a name still, and for what a page holds already.
	_, werr := f.Write(make([]byte, probeBytes))
	if werr == nil {
		werr = f.Sync()
	}
	werr = errors.Join(werr, f.Close())
	rerr := durable.Remove(probe)
	switch {
	case werr != nil:
		return append(one(Fail, "make room on its disk, or look at its quota; nothing is lost, but nothing new is kept", "%s directory %s cannot be written: %v", what, dir, cause(werr)), lost(what, probe, rerr)...)
	case rerr != nil:
		return lost(what, probe, rerr)
	}
	if at != dir {
		return one(OK, "", "%s directory %s will be made when it is needed", what, dir)
	}
	return one(OK, "", "%s directory %s is writable", what, dir)
}

func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func (d Doctor) settings(context.Context) []Finding {
	_, source, err := config.Load(d.Setup.Env, d.Setup.Paths, d.Config)
	var many config.Errors
	switch {
	case errors.As(err, &many):
		var out []Finding
		for _, e := range many {
			out = append(out, one(Fail, e.Remedy, "%s:%d:%d: %s: %s", e.File, e.Line, e.Column, e.Key, e.Problem)...)
		}
		return out
	case err != nil:
		var e *config.Error
		if errors.As(err, &e) {
			remedy := e.Remedy
			plain := *e
			plain.Remedy = ""
			return one(Fail, remedy, "%s", plain.Error())
		}
		return one(Fail, "", "%v", err)
	case source == "":
		return one(OK, "", "no settings file; the defaults hold")
	}
	return one(OK, "", "%s is valid", source)
}

func (d Doctor) project(ctx context.Context) []Finding {
	p, err := config.FindProject(d.Setup.Env, d.Setup.Dir)
	if err != nil {
		return one(Fail, "correct the file, or remove it and run `reprise init`", "%v", err)
	}
	if p == nil && d.Absent != nil {
		if text := d.Absent(ctx); text != "" {
			return one(Warn, "", "%s; until then its guard rules, checks and memory do not count here", text)
		}
	}
	if p == nil {
		return one(Info, "run `reprise init` to make one", "this directory is in no project; the global scope is used")
	}
	if err := config.CheckName(d.Setup.Paths, p); err != nil {
		var taken *config.NameTakenError
		if errors.As(err, &taken) && (taken.Away || !taken.Given.IsZero()) {
			return one(Fail, "", "%v", err) // it says what to do
		}
		return one(Fail, "if they are clones of one repository, run `reprise init --yes` in this one; else give one of the two another name", "%v", err)
	}
	if text := d.Setup.Paths.OtherName(p); text != "" {
		return one(Info, "", "project %s in %s: %s", p.Name, p.Root, text)
	}
	if former, err := d.Setup.Paths.FormerNames(p); err == nil && len(former) > 0 {
		return one(Info, "or leave it, if it is to begin anew under the name "+p.Name, "project %s in %s: %s", p.Name, p.Root, config.Renamed(p, former))
	}
	return one(OK, "", "project %s in %s", p.Name, p.Root)
}

func (d Doctor) program(context.Context) []Finding {
	if strings.Contains(filepath.ToSlash(d.Program), "/go-build") {
		return one(Info, "build it with `go install ./cmd/...` before you install it into a client", "running from `go run`")
	}
	found, err := d.LookPath("reprise")
	if err != nil {
		return one(Warn, fmt.Sprintf("add %s to PATH", filepath.Dir(d.Program)), "reprise is not in PATH; clients have its absolute path and do not need it")
	}
	if !pathname.Same(found, d.Program) {
		return one(Warn, "remove one of the two", "PATH has another reprise: %s, and this is %s", found, d.Program)
	}
	return one(OK, "", "%s", d.Program)
}

// smallPrograms looks for those that clients, runs and hooks start.
func (d Doctor) smallPrograms(context.Context) []Finding {
	if strings.Contains(filepath.ToSlash(d.Program), "/go-build") {
		return nil
	}
	for _, name := range []string{HookProgram, SuperviseProgram, RecallProgram} {
		beside := Beside(d.Program, name)
		if info, err := os.Stat(beside); err != nil || !info.Mode().IsRegular() {
			return one(Warn, "install all four: `go install ./cmd/...`", "%s is not there: without reprise-hook hooks cannot run, without the others runs start slower and sessions wait longer", beside)
		}
	}
	return one(OK, "", "reprise-hook, reprise-supervise and reprise-recall are beside it")
}

func (d Doctor) git(ctx context.Context) []Finding {
	path, err := d.LookPath("git")
	if err != nil {
		return one(Warn, "install git", "git is not there: the memory has no history and no backup")
	}
	v, err := d.Version(ctx, path)
	if err != nil {
		return one(Warn, "check the program", "%s does not answer: %v", path, err)
	}
	return one(OK, "", "%s (%s)", v, path)
}

func (d Doctor) memory(ctx context.Context) []Finding {
	h, err := d.Load()
	if err != nil {
		return one(Info, "", "not looked at, because the settings are wrong")
	}
	return append(d.memoryIn(ctx, h), d.closing(h)...)
}

// closing says that what keeps runs from the memory closes to them the directory for
// temporary files, too: in one above the memory nothing can be made.
func (d Doctor) closing(h *config.Home) []Finding {
	if d.Temp == "" || h.Settings.SubAgent.Sandbox == "off" {
		return nil
	}
	for _, dir := range []string{h.MemoryDir(), h.Paths.Data} { // runs' records lie in the latter
		if real, err := resolveParent(filepath.Join(dir, "x")); err == nil && pathname.Within(d.Temp, real) {
			return one(Warn, "have it elsewhere (REPRISE_HOME), or let runs go without that: `reprise config set sub_agent.sandbox off`",
				"%s lies below %s: runs, which the system keeps from it, cannot make a file in %s, and each shell command of Claude Code ends with exit code 1 there", dir, d.Temp, d.Temp)
		}
	}
	return nil
}

func (d Doctor) memoryIn(ctx context.Context, h *config.Home) []Finding {
	dir := h.MemoryDir()
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		found := writable("memory", dir)
		if found[0].Status == OK {
			found[0].Message = fmt.Sprintf("%s is not there yet; the first write makes it", dir)
		}
		return found
	case err != nil:
		return one(Fail, "check its permissions", "%v", err)
	case !info.IsDir():
		return one(Fail, "correct memory.directory", "%s is not a directory", dir)
	}
	out := writable("memory", dir)
	r, err := d.Memory.Check(ctx)
	if err != nil {
		return append(out, one(Fail, "run `reprise memory check`", "%v", err)...)
	}
	out = append(out, one(OK, "", "%s; core %d of %d tokens, index %d of %d; a session's start tells up to %d and %d of them",
		term.Plural(r.Blocks, "block"), r.CoreTokens, r.CoreBudget, r.IndexTokens, r.IndexBudget, h.Settings.Recall.CoreTokens, h.Settings.Recall.IndexTokens)...)
	for _, f := range r.Findings {
		s := Warn
		if f.Level == memory.LevelError {
			s = Fail
		}
		where := f.File
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		out = append(out, one(s, f.Remedy, "%s: %s", where, f.Problem)...)
	}
	return out
}

func (d Doctor) log(context.Context) []Finding {
	file := d.Setup.Paths.LogFile()
	if h, err := d.Load(); err == nil {
		file = h.LogFile()
	}
	health, err := logfile.Check(file)
	switch {
	case err != nil:
		return one(Warn, "check logging.file and its permissions", "%v", err)
	case !health.Exists:
		return writable("log", filepath.Dir(file))
	}
	status, remedy := OK, ""
	if health.Errors > 0 {
		status, remedy = Warn, "look at the end of the log"
	}
	out := one(status, remedy, "%s, %d bytes, %d errors in its last %d lines", file, health.Bytes, health.Errors, health.Lines)
	if health.Lost > 0 {
		out = append(out, one(Warn, "check the disk and the permissions of the log", "%d log lines could not be written", health.Lost)...)
	}
	if health.Bad > 0 {
		out = append(out, one(Warn, "nothing to do: a crash cut them", "%d lines of the log are not whole", health.Bad)...)
	}
	return append(out, bad(writable("log", filepath.Dir(file)))...)
}

// outbox says whether events wait for their log.
func (d Doctor) outbox(context.Context) []Finding {
	if d.Waiting == nil {
		return nil
	}
	if d.Lost != nil {
		if lost, err := d.Lost(); err == nil && lost > 0 {
			return one(Warn, "make room on the disk", "%d events could not be kept, because the disk was full and what is set aside for that, too", lost)
		}
	}
	switch waiting, bad, err := d.Waiting(); {
	case err != nil:
		return one(Warn, "", "%v", err)
	case bad > 0:
		return one(Warn, "look at them with `reprise events outbox`", "%d events can never be logged as they are, %d wait", bad, waiting)
	case waiting > 0:
		return one(Info, "the next hook logs them, or `reprise events outbox` does now", "%d events wait for their log", waiting)
	}
	return one(OK, "", "no event waits for its log")
}

// bad leaves out what is well.
func bad(found []Finding) []Finding {
	return slices.DeleteFunc(found, func(f Finding) bool { return f.Status == OK })
}

func (d Doctor) runs(ctx context.Context) []Finding {
	if d.Orphans == nil {
		return one(Info, "", "not looked at, because the settings are wrong")
	}
	left, err := d.Orphans(ctx)
	if err != nil {
		return one(Warn, "", "%v", err)
	}
	if len(left) == 0 {
		return one(OK, "", "0 orphans")
	}
	var out []Finding
	for id, procs := range left {
		pids := make([]string, len(procs))
		for i, p := range procs {
			pids[i] = fmt.Sprint(p.PID)
		}
		out = append(out, one(Fail, "run `reprise runs list`, which stops them", "%s has ended and left processes: %s", id, strings.Join(pids, ", "))...)
	}
	return out
}
