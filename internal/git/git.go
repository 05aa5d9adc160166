// Package git runs the git program and understands its answers.
//
// The git program writes the repository it is pointed at; beside it, this package
// itself writes loose objects below objects/, and removes locks that killed gits left in
// a repository of reprise's own. It takes no lock:
// two calls on one worktree must be kept apart by the caller, because git's own
// index.lock makes the second one fail.
//
// The program runs with an environment of its own: of the caller's GIT_* variables only
// those that say where the user's settings are and how a remote is reached (inside a hook
// of git's the others name a repository that is not ours), no prompt, no pager, no
// editor, and with those settings of the user switched off that would run a program or
// change bytes (hooks, signing, line end conversion, file system monitor).
package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/proc"
)

// What callers tell apart with errors.Is.
var (
	ErrNotInstalled = errors.New("the git program was not found")
	ErrNotRepo      = errors.New("not a git repository")
	ErrConflict     = errors.New("both sides changed the same lines")
	ErrRejected     = errors.New("the remote has newer work")
	ErrForbidden    = errors.New("the remote does not let branches be removed")
	ErrAuth         = errors.New("the remote refused the login")
	ErrNetwork      = errors.New("the remote could not be reached")
	ErrLocked       = errors.New("another git is at work in the repository")
	ErrTimeout      = errors.New("git took too long and was stopped")
	ErrFilter       = errors.New("a filter of the repository cannot be run")
)

// Error is a git command that failed.
type Error struct {
	Args   []string // without the settings put before them
	Code   int      // exit code; -1 = it did not end by itself
	Stderr string   // at most 4 KiB
	Kind   error    // one of the errors above, or nil
	Lock   string   // git's lock file that was in its way, "" for none

	held  string // about that lock, or what else stands in the way, for people
	cause error  // why the program could not be started or read, such as for want of descriptors
}

// Said is an error without the options of the git that failed, which say nothing to a person and
// take the room of what does.
func Said(err error) string {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err.Error()
	}
	return strings.Replace(err.Error(), "git "+strings.Join(e.Args, " ")+": ", e.command()+": ", 1)
}

// Short is an error with the text that [Said] gives it.
func Short(err error) error {
	if err == nil {
		return nil
	}
	return short{err}
}

type short struct{ error }

func (s short) Error() string { return Said(s.error) }
func (s short) Unwrap() error { return s.error }

// command is what was called, without options.
func (e *Error) command() string {
	for i := 0; i < len(e.Args); i++ {
		if e.Args[i] == "-c" {
			i++
		} else if !strings.HasPrefix(e.Args[i], "-") {
			return "git " + e.Args[i]
		}
	}
	return "git"
}

func (e *Error) Error() string {
	msg := strings.TrimSpace(e.Stderr)
	if e.Kind == ErrFilter {
		return fmt.Sprintf("%s: %s", e.command(), e.held)
	}
	if e.held != "" {
		return fmt.Sprintf("git %s: %s", strings.Join(e.Args, " "), e.held)
	}
	if msg == "" {
		msg = fmt.Sprintf("exit code %d", e.Code)
	}
	s := fmt.Sprintf("git %s: %s", strings.Join(e.Args, " "), msg)
	if e.Kind != nil {
		s += " (" + e.Kind.Error() + ")"
	}
	return s
}

// Unwrap gives Kind, and what the system said where git could not be started.
func (e *Error) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Kind, e.cause}, func(err error) bool { return err == nil })
}

// Options of a Git. Vars is the environment to take PATH, HOME, proxies and the
// ssh agent from; nil runs git with an empty environment.
type Options struct {
	Program string // path, or a name looked up in Vars["PATH"]; empty = "git"
	Vars    map[string]string
	Local   time.Duration // bound of a local command; 0 = 30 s
	Remote  time.Duration // bound of fetch and push; 0 = 2 min
	MaxOut  int           // bytes of output kept; 0 = 4 MiB
	Disk    durable.Disk  // where objects are stored; zero = the real disk
	// Programs, where it is set, are those that repositories may have git run; see [Programs].
	Programs *Programs
	// Now, where it is set, says that the repository is reprise's own: a command that
	// fails at a lock which a killed git left removes it and is done again.
	Now func() time.Time
}

// Git runs commands in one directory.
type Git struct {
	o    Options
	dir  string
	path string
	err  error

	index    string // GIT_INDEX_FILE of one command
	gitDir   string // GIT_DIR, where it is not to be looked for
	workTree string // GIT_WORK_TREE
	bare     string // the repository, where refs and objects may be read as files
	theirs   bool   // see OfUser
	asUser   bool   // see AsUser
}

// New returns a Git for dir. A program that is missing is an error of each call,
// ErrNotInstalled, so that callers without git go on.
func New(dir string, o Options) *Git {
	if o.Program == "" {
		o.Program = "git"
	}
	if o.Local == 0 {
		o.Local = 30 * time.Second
	}
	if o.Remote == 0 {
		o.Remote = 2 * time.Minute
	}
	if o.MaxOut == 0 {
		o.MaxOut = 4 << 20
	}
	g := &Git{o: o, dir: dir}
	g.path, g.err = lookPath(o.Program, o.Vars)
	return g
}

// OfUser returns a Git for a checkout of the user's own code. Their settings of how
// bytes get into files count there (line ends, attributes, filters such as that of
// LFS) and of what is ignored; without them every file would look changed. Hooks,
// signing and the monitor stay switched off.
func (g *Git) OfUser() *Git {
	h := *g
	h.theirs = true
	return &h
}

// AsUser returns a Git that does to the user's own code what the user would do: all
// of their settings count, hooks and signing too. Only what would wait for a person
// is answered.
func (g *Git) AsUser() *Git {
	h := *g
	h.theirs, h.asUser = true, true
	return &h
}

// wholeTime bounds a command that looks at everything in a repository.
const wholeTime = 15 * time.Minute

// Long returns a Git whose commands have as long as it takes to look at a whole repository, such
// as gc and fsck: how long that is, the repository says, and the machine.
func (g *Git) Long() *Git {
	h := *g
	h.o.Local = max(h.o.Local, wholeTime)
	return &h
}

// Installed says whether the program was found.
func (g *Git) Installed() bool { return g.err == nil }

// Program is the path of the git program, "" when there is none.
func (g *Git) Program() string { return g.path }

func lookPath(name string, vars map[string]string) (string, error) {
	if filepath.IsAbs(name) {
		if executable(name) {
			return name, nil
		}
		return "", fmt.Errorf("%w: %s is not a program", ErrNotInstalled, name)
	}
	if vars == nil {
		p, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrNotInstalled, err)
		}
		return filepath.Abs(p)
	}
	// As the doctor looks, and as clients are looked for: a program of the desktop has a
	// short PATH, and git is in its usual places nevertheless.
	p, err := proc.LookPath(name, vars, runtime.GOOS)
	if err != nil {
		return "", fmt.Errorf("%w in PATH or in the usual places; install git, or go without the repository", ErrNotInstalled)
	}
	return p, nil
}

func executable(p string) bool {
	fi, err := os.Stat(p)
	return err == nil && fi.Mode().IsRegular() && (runtime.GOOS == "windows" || fi.Mode()&0o111 != 0)
}

// kept are the variables that git and its children (ssh, credential stores,
// proxies) need. Of git's own, these are how a remote is reached and which files the
// user's settings are in; none that names a repository, an index or a worktree.
var kept = []string{
	"PATH", "Path", "HOME", "USER", "LOGNAME", "USERNAME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH",
	"APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "SYSTEMROOT", "SystemRoot", "WINDIR", "COMSPEC", "PATHEXT",
	"TMPDIR", "TEMP", "TMP", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "SSH_AGENT_PID",
	"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY", "GIT_SSL_NO_VERIFY", "GIT_PROXY_SSL_CAINFO",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GNUPGHOME", "DBUS_SESSION_BUS_ADDRESS",
	"http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
}

func (g *Git) env() []string {
	var env []string
	// Gemini CLI has the settings of the machine and the user switched off for whatever its
	// tools start. That is for what it starts: without the user's name nothing can be
	// committed, and their settings are theirs.
	off := g.o.Vars["GIT_CONFIG_GLOBAL"] == os.DevNull || g.o.Vars["GIT_CONFIG_SYSTEM"] == os.DevNull
	for _, k := range kept {
		if off && strings.HasPrefix(k, "GIT_CONFIG_") {
			continue
		}
		if v, ok := g.o.Vars[k]; ok {
			env = append(env, k+"="+v)
		}
	}
	if g.index != "" {
		env = append(env, "GIT_INDEX_FILE="+g.index)
	}
	if g.gitDir != "" {
		env = append(env, "GIT_DIR="+g.gitDir)
	}
	if g.workTree != "" {
		env = append(env, "GIT_WORK_TREE="+g.workTree)
	}
	if g.asUser {
		env = append(env, "GIT_REFLOG_ACTION="+Action)
	}
	return append(env, "LC_ALL=C", "LANG=C", "GIT_TERMINAL_PROMPT=0", "GCM_INTERACTIVE=never", "GIT_PAGER=cat", "PAGER=cat",
		"GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true", "GIT_MERGE_AUTOEDIT=no", "SSH_ASKPASS_REQUIRE=never",
		// Never a repository above the directory: the memory may lie in one of the user's.
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(g.dir))
}

// settings overrule the user's for one command.
func (g *Git) settings() []string {
	if g.asUser {
		return []string{"-c", "core.quotePath=false", "-c", "core.pager=cat", "-c", "core.editor=true", "-c", "core.askPass=", "-c", "color.ui=false", "-c", "advice.detachedHead=false"}
	}
	null := os.DevNull
	var args []string
	if !g.theirs {
		args = []string{"-c", "core.autocrlf=false", "-c", "core.attributesFile=" + null, "-c", "core.excludesFile=" + null}
	}
	for _, kv := range []string{
		"core.hooksPath=" + null, "core.fsmonitor=false", "core.untrackedCache=false",
		"core.safecrlf=false", "core.quotePath=false",
		"core.pager=cat", "core.editor=true", "core.askPass=", "core.logAllRefUpdates=true",
		"commit.gpgSign=false", "tag.gpgSign=false", "push.gpgSign=false", "gpg.program=false",
		"merge.verifySignatures=false", "merge.conflictStyle=merge", "merge.renames=true",
		"push.recurseSubmodules=no", "fetch.recurseSubmodules=false", "submodule.recurse=false", "push.followTags=false", "push.pushOption=",
		"rerere.enabled=false", "safe.directory=*", "protocol.ext.allow=never",
		// A file of the user's that is in the main checkout and in no worktree, and comments in
		// messages of which the first line may be "#12 A title".
		"diff.orderFile=" + null, "commit.cleanup=whitespace",
		"gc.auto=0", "maintenance.auto=false", "advice.detachedHead=false",
		"i18n.commitEncoding=UTF-8", "i18n.logOutputEncoding=UTF-8", "color.ui=false", "log.showSignature=false",
	} {
		args = append(args, "-c", kv)
	}
	return args
}

// MergeArgs begins the arguments of a merge into the branch that is checked out: it is a commit, files that git ignores are in its way as others are, and no signature or
// squash is asked for, whatever the settings of the user,
// and those of the branch, say. What follows says how far it may go (--ff), and what is merged.
// Without a merge commit it is [Git.FastForward].
func MergeArgs(branch string) []string {
	args := []string{"merge", "--quiet", "--commit", "--no-squash", "--no-verify-signatures", "--no-overwrite-ignore"}
	if !strings.Contains(branch, "=") {
		args = append([]string{"-c", "branch." + branch + ".mergeOptions="}, args...)
	}
	return args
}

// Run runs a local command and returns its standard output.
func (g *Git) Run(ctx context.Context, args ...string) ([]byte, error) {
	return g.run(ctx, g.o.Local, nil, args...)
}

// RunIndex is Run with an index file other than the checkout's own, so that a
// tree can be made without touching files.
func (g *Git) RunIndex(ctx context.Context, index string, args ...string) ([]byte, error) {
	return g.WithIndex(index).run(ctx, g.o.Local, nil, args...)
}

// WithIndex returns a Git whose commands use another index file than the checkout's.
func (g *Git) WithIndex(index string) *Git {
	h := *g
	h.index = index
	return &h
}

// RunInput is Run with bytes on standard input.
func (g *Git) RunInput(ctx context.Context, in []byte, args ...string) ([]byte, error) {
	return g.run(ctx, g.o.Local, in, args...)
}

func (g *Git) run(ctx context.Context, limit time.Duration, in []byte, args ...string) ([]byte, error) {
	if g.o.Programs != nil && g.err == nil {
		if err := g.o.Programs.Check(ctx, g); err != nil {
			return nil, err
		}
	}
	out, err := g.runOnce(ctx, limit, in, args...)
	if err != nil && g.unlocked(err) {
		return g.runOnce(ctx, limit, in, args...)
	}
	return out, err
}

func (g *Git) runOnce(ctx context.Context, limit time.Duration, in []byte, args ...string) ([]byte, error) {
	if g.err != nil {
		return nil, g.err
	}
	if err := g.o.Disk.Step(durable.OpRun, "git "+args[0]); err != nil {
		return nil, err
	}
	bound, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd, start := g.command(bound, args)
	out, errOut := &capped{max: g.o.MaxOut}, &capped{max: 4096}
	cmd.Stdout, cmd.Stderr = out, errOut
	if in != nil {
		cmd.Stdin = bytes.NewReader(in)
	}
	// A child of a killed git may hold the pipes. What a local one says is waited for as
	// long as for itself: on a machine without time, or one that slept in between, it
	// comes late, and the command was done.
	cmd.WaitDelay = 2 * time.Second
	if limit == g.o.Local {
		cmd.WaitDelay = limit
	}
	err := start()
	if err == nil {
		err = cmd.Wait()
	}
	if err == nil {
		if out.cut {
			return nil, &Error{Args: args, Stderr: fmt.Sprintf("more than %d bytes of output", g.o.MaxOut)}
		}
		return out.Bytes(), nil
	}
	return out.Bytes(), g.failed(ctx, bound, args, err, out, errOut)
}

// command is a git that ends, with what it runs, when bound is over, and how it is started.
func (g *Git) command(bound context.Context, args []string) (cmd *exec.Cmd, start func() error) {
	cmd = exec.CommandContext(bound, g.path, append(g.settings(), args...)...)
	cmd.Dir, cmd.Env = g.dir, g.env()
	started := make(chan proc.ID, 1)
	cmd.Cancel = func() error { return endGit(cmd.Process, <-started) }
	return cmd, func() error {
		err := cmd.Start()
		if err == nil {
			// It was not waited for yet, so that its number is its own; of one that has ended
			// already there is no name, and nothing to end.
			id, _ := proc.Identify(cmd.Process.Pid)
			started <- id
		}
		return err
	}
}

// failed is the error of a git that was run within bound, which is ctx with a limit.
func (g *Git) failed(ctx, bound context.Context, args []string, err error, out, errOut *capped) error {
	if ctx.Err() != nil {
		return fmt.Errorf("git %s: %w", strings.Join(args, " "), ctx.Err())
	}
	e := &Error{Args: args, Code: -1, Stderr: errOut.String()}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		e.Code = exit.ExitCode()
	}
	e.Kind = kindOf(e.Stderr + "\n" + tail(out.String(), 2000))
	if program := filterIn(args, e.Stderr); program != "" {
		e.Kind = ErrFilter
		e.held = fmt.Sprintf("files of this repository go through a filter (.gitattributes) that needs the program %s, which is not in PATH; install it, or, if they are to be as they are in the repository, switch the filter off (`git config --get-regexp '^filter'` shows it)", program)
	}
	if e.Lock = lockIn(e.Stderr, g.dir); e.Lock != "" {
		e.held = g.heldBy(e.Lock)
	}
	switch {
	case bound.Err() != nil:
		e.Kind = ErrTimeout
	case exit == nil:
		e.Stderr, e.cause = err.Error(), err
		if errors.Is(err, fs.ErrNotExist) {
			e.Kind = ErrNotInstalled
		}
	}
	return e
}

// How long a git that is cut off has to clean up, and how long it is then tried to kill it.
const (
	cleanUp  = 5 * time.Second
	killTime = 5 * time.Second
)

// endGit ends a git and what it runs, such as a hook: one that is killed leaves its lock
// files, and every later git in the repository fails at them. Asked to end (SIGTERM) it
// removes them, but goes without its hook, which is asked, too. Who does not end in time
// is killed. What the git then said of itself counts: it may just have been done.
func endGit(p *os.Process, id proc.ID) error {
	if !id.IsZero() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanUp+killTime)
		defer cancel()
		_, _ = proc.StopTree(ctx, id, "", cleanUp) // what it could not end is killed below, or by nobody
	}
	_ = p.Kill() // it has ended, as a rule
	return os.ErrProcessDone
}

func tail(s string, n int) string {
	if len(s) > n {
		return s[len(s)-n:]
	}
	return s
}

// kindOf reads git's English messages (LC_ALL=C), as 2.30 to 2.50 write them.
func kindOf(msg string) error {
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(msg, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("deletion prohibited", "deletion of the current branch prohibited"):
		return ErrForbidden
	case has("hook declined", "aborted by hook", "bad config", "does not support push options"):
		return nil // it says what it is, and trying again does not help
	case has("not a git repository"):
		return ErrNotRepo
	case has("CONFLICT (", "Automatic merge failed"):
		return ErrConflict
	case has("[rejected]", "[remote rejected]"):
		return ErrRejected
	case has(".lock': File exists", "Another git process"), has("could not lock config file") && has(": File exists"): // of a ref, too
		return ErrLocked
	case has("non-fast-forward", "fetch first", "failed to update ref", "cannot lock ref"):
		return ErrRejected
	case has("Authentication failed", "Permission denied (", "could not read Username", "could not read Password", "terminal prompts disabled",
		"Host key verification failed", "HTTP Basic: Access denied", "returned error: 401", "returned error: 403"):
		return ErrAuth
	case has("Could not resolve host", "unable to access 'http", "Connection refused", "Connection timed out", "Could not read from remote repository",
		"does not appear to be a git repository", "Network is unreachable", "the remote end hung up"):
		return ErrNetwork
	}
	return nil
}

// filterIn is the program of a filter that git says it could not find, "" where it says nothing
// of one. A filter talks with git as a remote does, and git's words for one that is gone are the
// same.
func filterIn(args []string, stderr string) string {
	switch args[0] {
	case "fetch", "push", "pull", "clone", "ls-remote", "remote", "submodule":
		return ""
	}
	if !strings.Contains(stderr, "the remote end hung up") && !strings.Contains(stderr, "external filter '") && !strings.Contains(stderr, " filter ") {
		return ""
	}
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "error: cannot run "); ok { // without a shell in between
			if program, ok := strings.CutSuffix(rest, ": No such file or directory"); ok {
				return program
			}
		}
		line = strings.Replace(line, ": command not found", ": not found", 1)
		if rest, ok := strings.CutSuffix(line, ": not found"); ok { // "sh: 1: git-lfs"
			return rest[strings.LastIndexByte(rest, ' ')+1:]
		}
	}
	return ""
}

// capped keeps the first max bytes and swallows the rest, so that the child is
// never blocked. The buffer is no embedded field: its ReadFrom would go round
// the limit.
type capped struct {
	buf bytes.Buffer
	max int
	cut bool
}

func (c *capped) Write(p []byte) (int, error) {
	if room := c.max - c.buf.Len(); room < len(p) {
		c.cut = true
		c.buf.Write(p[:max(0, room)])
		return len(p), nil
	}
	return c.buf.Write(p)
}

func (c *capped) Bytes() []byte  { return c.buf.Bytes() }
func (c *capped) String() string { return c.buf.String() }
