package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/config"
	"reprise/internal/proc"
	"reprise/internal/proc/confine"
	"reprise/internal/verify/tree"
)

const (
	// stopGrace is how long a check that ran out of time may tidy up.
	stopGrace = time.Second
	// stopTime bounds the ending of everything that a check started.
	stopTime = 10 * time.Second
	// drainTime is how long the end of the output is waited for. It comes at once
	// where nothing is left that holds the other end, but on a busy machine the one
	// who reads has to get his turn first.
	drainTime = 5 * time.Second
	// lookEvery is how often the disk is looked at, at most.
	lookEvery = 500 * time.Millisecond
)

var (
	errTooMuchOutput = errors.New("it printed more than 256 MiB and was ended")
	errDisk          = errors.New("it wrote more than it may, or the disk was nearly full, and was ended")
	errTimeout       = errors.New("it took too long and was ended")
)

// job is one check on its way.
type job struct {
	v    *Verifier
	c    config.Check
	snap *tree.Snapshot
	id   string
	out  output
	res  CheckResult
}

// check runs one check on the snapshot. Everything that it started has ended
// when it returns.
func (v *Verifier) check(ctx context.Context, c config.Check, snap *tree.Snapshot, sub, id string) CheckResult {
	j := &job{v: v, c: c, snap: snap, id: id}
	// Where the copy is differs from one of the tree to one of the base.
	j.out.scan.dirs = []string{snap.Tree.Top + string(filepath.Separator), snap.Tree.Top, snap.Root}
	j.out.scan.tmp = snap.Tmp
	j.res = CheckResult{Name: c.Name, Command: c.Command(), Level: levelOf(c), Status: Error}
	if c.Dir != "." {
		j.res.Dir = c.Dir
	}
	began := v.o.Env.Now()
	if err := j.run(ctx, sub); err != nil {
		j.res.Problem = v.redact(err.Error())
	}
	j.res.DurationMS = v.o.Env.Now().Sub(began).Milliseconds()
	j.read()
	return j.res
}

// read makes the result's texts of what was printed.
func (j *job) read() {
	text := j.v.redact(j.out.text())
	// Where the copy is says nothing to who works in the tree.
	text = strings.ReplaceAll(text, j.snap.Tree.Top+string(filepath.Separator), "")
	text = strings.ReplaceAll(text, j.snap.Tree.Top, ".")
	j.res.Output, j.res.OutputBytes = text, j.out.bytes()
	if j.res.Status == Failed {
		j.res.said, j.res.Lines = j.out.said(), tellingLines(text, 6)
		if len(j.res.said.names) > 0 {
			j.res.said.names = strings.Split(j.v.redact(strings.Join(j.res.said.names, "\n")), "\n")
		}
		j.res.Failures = shown(j.res.said.names, nil)
	}
}

func (j *job) run(ctx context.Context, sub string) error {
	// Before anything is looked up in it.
	if err := j.snap.Intact(); err != nil {
		return err
	}
	dir, err := j.dir(sub)
	if err != nil {
		return err
	}
	env := j.v.environ(j.snap, dir, j.id)
	cmd := proc.Cmd{Env: env, Dir: dir, NewSession: true}
	if cmd.Path, cmd.Args, err = Argv(j.c, dir, env, j.v.o.Env.GOOS); err != nil {
		j.res.Status = Failed // what was to be run is not there: the check does not pass
		j.res.Exit = 127
		return err
	}
	most := j.snap.Size(1<<62) + j.v.o.MaxWritten // before it has written anything
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	p, err := confine.Start(j.v.confinement(j.snap), cmd)
	if errors.Is(err, confine.ErrWithin) && j.v.o.Sandbox != "required" {
		// Whoever confined this process has seen to what matters to him; the tree is
		// compared afterwards in any case.
		j.v.unheld = true
		p, err = proc.Start(cmd)
	}
	_ = w.Close() // the child has its own
	if err != nil {
		return err
	}
	read := make(chan struct{})
	go func() { defer close(read); j.out.from(r) }()
	why := j.wait(ctx, p, most)
	left, err := j.end(ctx, p, why)
	select {
	case <-read:
	case <-time.After(drainTime):
		_ = r.Close() // somebody else holds the pipe
		<-read
	}
	if err != nil {
		return err
	}
	exit, err := p.Wait()
	if err != nil {
		return err
	}
	return j.judge(ctx, exit, left, why)
}

// judge says how the check went.
func (j *job) judge(ctx context.Context, exit proc.Exit, left int, why error) error {
	j.res.Exit, j.res.Signal, j.res.Left = exit.Code, exit.Signal, left
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the verification's own time was over: %w", context.Cause(ctx))
	case why != nil:
		j.res.Status, j.res.TimedOut = Failed, errors.Is(why, errTimeout)
		if j.res.TimedOut {
			return fmt.Errorf("%w after %d s", why, j.c.TimeoutSeconds)
		}
		return why
	case exit.Code == 0:
		j.res.Status = Passed
	default:
		j.res.Status = Failed
	}
	if left > 0 {
		j.res.Problem = "it left " + several(left, "process") + " running, ended afterwards"
	}
	return nil
}

// dir is where the check runs, which must lie in the snapshot.
func (j *job) dir(sub string) (string, error) {
	dir := filepath.Join(j.snap.Tree.Top, filepath.FromSlash(sub), filepath.FromSlash(j.c.Dir))
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("its directory: %w", errors.New(strings.ReplaceAll(err.Error(), j.snap.Tree.Top, ".")))
	}
	top, err := filepath.EvalSymlinks(j.snap.Tree.Top)
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(top, real); err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("its directory %s leads out of the tree", j.c.Dir)
	}
	return real, nil
}

// Argv is the program that runs a check in the directory dir, and its arguments. A
// program named with a path is of that directory, another is looked for in the PATH of
// env. The error says what is not there.
func Argv(c config.Check, dir string, env []string, goos string) (program string, args []string, err error) {
	if c.Shell != "" {
		if goos == "windows" {
			shell, err := proc.LookPath("cmd.exe", config.ParseVars(env, goos), goos)
			return shell, []string{"/D", "/S", "/C", c.Shell}, err
		}
		return "/bin/sh", []string{"-c", c.Shell}, nil
	}
	name := c.Argv[0]
	if strings.ContainsAny(name, `/\`) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, filepath.FromSlash(name))
		}
		if fi, err := os.Stat(name); err != nil || fi.IsDir() {
			return "", nil, fmt.Errorf("there is no program %s", c.Argv[0])
		}
		return name, c.Argv[1:], nil
	}
	path, err := proc.LookPath(name, config.ParseVars(env, goos), goos)
	return path, c.Argv[1:], err
}

// wait waits for the check's end, or for a reason to end it; most is how many
// bytes the snapshot may come to.
func (j *job) wait(ctx context.Context, p *proc.Process, most int64) error {
	over := time.NewTimer(time.Duration(j.c.TimeoutSeconds) * time.Second)
	defer over.Stop()
	look := time.NewTimer(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-p.Done():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over.C:
			return errTimeout
		case <-look.C:
		}
		if j.out.bytes() > maxOutput {
			return errTooMuchOutput
		}
		// A walk through a large tree is not for free: it gets a twentieth of the time.
		began := j.v.o.Env.Now()
		if j.snap.DiskLow() || j.snap.Size(most) > most {
			return errDisk
		}
		look.Reset(max(lookEvery, 20*j.v.o.Env.Now().Sub(began)))
	}
}

// end ends what is left of the check, and says how many processes that were
// beside the check itself.
func (j *job) end(ctx context.Context, p *proc.Process, why error) (left int, err error) {
	if why == nil && j.v.o.Subreaper && proc.NothingLeft() {
		return 0, nil
	}
	grace := time.Duration(0)
	if why != nil {
		grace = stopGrace
	}
	kctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	s, err := proc.StopTree(kctx, p.ID(), j.id, grace)
	if err != nil {
		j.res.running = true
		return 0, fmt.Errorf("not all of it could be ended: %w", err)
	}
	if why != nil {
		return 0, nil
	}
	return s.Killed, nil
}

// confinement keeps a check's hands off the real tree and its repository, and off what
// carried links lead to, where the system can see to that. snap may be nil.
func (v *Verifier) confinement(snap *tree.Snapshot) confine.Spec {
	if v.o.Sandbox == "off" {
		return confine.Spec{}
	}
	if abi, _ := confine.Supported(); abi == 0 {
		return confine.Spec{}
	}
	spec := confine.Spec{DenyWrite: []string{v.tree.Top}, OwnSignals: true}
	if v.tree.Common != "" {
		spec.DenyWrite = append(spec.DenyWrite, v.tree.Common)
	}
	add := func(d string) {
		if !slices.Contains(spec.DenyWrite, d) {
			spec.DenyWrite = append(spec.DenyWrite, d)
		}
	}
	for _, d := range v.o.DenyWrite {
		// What is not there must not be made either. Where not even its directory is,
		// nothing could be made beside it, and a machine that is new needs that.
		if _, err := os.Lstat(filepath.Dir(d)); err == nil {
			add(d)
		}
	}
	if snap != nil {
		out, _ := snap.Outward()
		for _, d := range out {
			add(d)
		}
	}
	return spec
}

// leadOut says where carried links lead, as far as a check can change what is there.
func (v *Verifier) leadOut(snap *tree.Snapshot) string {
	places, around := snap.Outward()
	if v.confinement(nil).Empty() && len(places) > 0 {
		return "what is carried leads out of the copy, and a check can change what is there: " + strings.Join(places[:min(len(places), 3)], ", ")
	}
	if around {
		return "what is carried leads to where the copy itself is, or to more places than are looked at: a check can change what is there"
	}
	return ""
}

// passed are variables that a check gets as they are: where things are, and how
// tools find their caches. Nothing among them is a secret by its purpose; what
// else a check needs, the project names under verify.env.
var passed = [...]string{
	"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
	"XDG_STATE_HOME", "XDG_RUNTIME_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOTOOLCHAIN", "GOPROXY", "GONOSUMDB", "GOSUMDB", "GOPRIVATE", "CGO_ENABLED",
	"CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "NVM_DIR", "FNM_DIR", "VOLTA_HOME", "NODE_PATH", "npm_config_cache",
	"PYENV_ROOT", "UV_CACHE_DIR", "PIP_CACHE_DIR", "POETRY_CACHE_DIR", "CONDA_PREFIX", "RBENV_ROOT", "GEM_HOME", "GEM_PATH", "BUNDLE_PATH",
	"JAVA_HOME", "GRADLE_USER_HOME", "M2_HOME", "MAVEN_HOME", "DOTNET_ROOT", "ELAN_HOME", "DEVELOPER_DIR", "SDKROOT",
	"USERNAME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMROOT", "SYSTEMDRIVE",
	"WINDIR", "COMSPEC", "PATHEXT", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
}

// NestedVar is set in everything that a verification starts: a hook or a
// verification in there is none of ours.
const NestedVar = "REPRISE_VERIFY"

// environ is a check's environment.
func (v *Verifier) environ(snap *tree.Snapshot, dir, id string) []string {
	vars := v.o.Env.Vars
	var env []string
	set := func(name, value string) { env = append(env, name+"="+value) }
	// What leads into the real tree leads into the copy.
	moved := func(s string) string {
		list := filepath.SplitList(s)
		for i, p := range list {
			if rel, err := filepath.Rel(v.tree.Top, p); err == nil && filepath.IsAbs(p) && filepath.IsLocal(rel) {
				list[i] = filepath.Join(snap.Tree.Top, rel)
			}
		}
		return strings.Join(list, string(os.PathListSeparator))
	}
	for _, name := range [...]string{"PATH", "Path"} {
		if p, ok := vars[name]; ok {
			set(name, moved(p))
		}
	}
	for _, name := range [...]string{"VIRTUAL_ENV", "PYTHONPATH"} {
		if p := vars[name]; p != "" {
			set(name, moved(p))
		}
	}
	for _, name := range passed {
		if s, ok := vars[name]; ok {
			set(name, s)
		}
	}
	for name, s := range vars {
		if strings.HasPrefix(name, "LC_") {
			set(name, s)
		}
	}
	// Tools that would wait for a person, or watch for changes, do not with CI.
	for _, kv := range [...][2]string{
		{"CI", "true"}, {"TERM", "dumb"}, {"NO_COLOR", "1"}, {"PWD", dir},
		{"TMPDIR", snap.Tmp}, {"TMP", snap.Tmp}, {"TEMP", snap.Tmp},
		{"GIT_TERMINAL_PROMPT", "0"}, {"GIT_CEILING_DIRECTORIES", snap.Root},
	} {
		set(kv[0], kv[1])
	}
	for _, kv := range v.o.Checks.Env {
		name, value, given := strings.Cut(kv, "=")
		if !given {
			if value, given = vars[name]; !given {
				continue
			}
		}
		set(name, value)
	}
	// Last, so that nothing takes their place.
	set(proc.RunIDVar, id)
	set(NestedVar, "1")
	set("REPRISE_HOOK_DEPTH", "1") // hook.DepthVar, of a package above this one
	return dedupe(env)
}

// dedupe keeps the last of the lines that set a variable.
func dedupe(env []string) []string {
	last := map[string]int{}
	for i, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		last[name] = i
	}
	out := env[:0]
	for i, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); last[name] == i {
			out = append(out, kv)
		}
	}
	return out
}
