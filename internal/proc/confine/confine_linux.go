package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"reprise/internal/proc"
)

// minABI is Landlock's ABI 3 of Linux 6.2, the first that knows truncation;
// without it a protected file could be emptied.
const minABI = 3

// Supported returns the kernel's Landlock ABI, or 0 and the reason why it
// cannot be used.
func Supported() (abi int, why string) {
	abi, err := ll.LandlockGetABIVersion()
	switch {
	case errors.Is(err, syscall.ENOSYS):
		return 0, "the kernel has no Landlock (it came with Linux 5.13), or a filter hides it"
	case errors.Is(err, syscall.EOPNOTSUPP):
		return 0, "Landlock is switched off at boot (add landlock to the kernel's lsm= list)"
	case err != nil:
		return 0, "asking for Landlock: " + err.Error()
	case abi < minABI:
		return 0, fmt.Sprintf("the kernel's Landlock has ABI %d; %d (Linux 6.2) is needed to stop truncation", abi, minABI)
	}
	return abi, ""
}

// Rights that may stand in a rule for a file.
const (
	readFile  = ll.AccessFSReadFile | ll.AccessFSExecute
	writeFile = ll.AccessFSWriteFile | ll.AccessFSTruncate
)

// What a Spec handles; what is not handled is free. Device ioctls and named
// sockets are left out on purpose: nothing in a protected directory is one.
const (
	readAll  = readFile | ll.AccessFSReadDir
	writeAll = writeFile | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile |
		ll.AccessFSMakeChar | ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock |
		ll.AccessFSMakeFifo | ll.AccessFSMakeBlock | ll.AccessFSMakeSym | ll.AccessFSRefer
)

// Start starts a command confined, without a program in between: one thread is
// confined, the child is forked from it, and the thread ends. The calling
// process stays free. Where confining is not supported, nothing is started.
func Start(s Spec, c proc.Cmd) (*proc.Process, error) {
	if s.Empty() {
		return proc.Start(c)
	}
	type result struct {
		p   *proc.Process
		err error
	}
	ch := make(chan result, 1)
	go func() {
		// Never unlocked: the runtime throws the thread away when the
		// goroutine ends, and makes no new one from it meanwhile.
		runtime.LockOSThread()
		err := applyToThread(s)
		var p *proc.Process
		if err == nil {
			p, err = proc.Start(c)
		}
		ch <- result{p, err}
	}()
	r := <-ch
	if r.err != nil {
		return nil, fmt.Errorf("confine %s: %w", c.Path, r.err)
	}
	return r.p, nil
}

// applyToThread confines the calling thread and what is forked from it.
func applyToThread(s Spec) error {
	if s.Empty() {
		return nil
	}
	if _, why := Supported(); why != "" {
		return fmt.Errorf("%w: %s", ErrUnsupported, why)
	}
	scoped := uint64(0)
	if s.OwnSignals && scopesSignals() {
		scoped = ll.ScopeSignal
	}
	var rules grants
	var handled uint64
	if s = s.remaining(); !s.Empty() { // else whoever confined this process has seen to it
		var err error
		if rules, handled, err = grantsFor(s); err != nil {
			return err
		}
	}
	if handled == 0 && scoped == 0 {
		return nil
	}
	set, err := ll.LandlockCreateRuleset(&ll.RulesetAttr{HandledAccessFS: handled, Scoped: scoped}, 0)
	if err != nil {
		return fmt.Errorf("create ruleset: %w", err)
	}
	defer unix.Close(set)
	for path, rights := range rules {
		if err := addRule(set, path, rights); err != nil {
			return fmt.Errorf("grant %s: %w", path, err)
		}
	}
	// The kernel wants this of everyone who is not privileged; and a
	// set-user-id program could walk out otherwise.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := ll.LandlockRestrictSelf(set, 0); err != nil {
		return fmt.Errorf("restrict: %w", err)
	}
	return nil
}

// scopesSignals reports whether the kernel can keep signals within what is confined. At
// first it kept the threads of one process from signalling one another, too, which Go's
// runtime does: without the mending of that it is left.
func scopesSignals() bool {
	const abi, mended = 6, 1 << 1 // erratum 2
	if has, _ := Supported(); has < abi {
		return false
	}
	errata, err := ll.LandlockGetErrata()
	return err == nil && errata&mended != 0
}

// remaining is what a Spec denies that is not denied to this process already, and
// so to all that it starts.
func (s Spec) remaining() Spec {
	return Spec{
		DenyWrite: slices.DeleteFunc(slices.Clone(s.DenyWrite), func(p string) bool { return unwritable(nearest(p)) }),
		DenyAll: slices.DeleteFunc(slices.Clone(s.DenyAll), func(p string) bool {
			p = nearest(p)
			return unreadable(p) && unwritable(p)
		}),
	}
}

// nearest is the path, or the directory above it that is there: what is denied
// there is denied for all that may be made in it.
func nearest(path string) string {
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		if _, err := os.Lstat(p); err == nil || p == filepath.Dir(p) {
			return p
		}
	}
}

// unreadable reports whether this process is kept from reading a file or a
// directory though its permissions would let it: then it is confined.
func unreadable(path string) bool {
	return permitted(path, unix.R_OK) && refused(path, unix.O_RDONLY|unix.O_NONBLOCK)
}

// unwritable is unreadable, of writing.
func unwritable(path string) bool {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || !permitted(path, unix.W_OK) {
		return false
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return refused(path, unix.O_WRONLY|unix.O_TMPFILE) // a file without a name, should it be made
	}
	return refused(path, unix.O_WRONLY|unix.O_NONBLOCK)
}

// permitted reports what the permissions of a file say, which Landlock does not
// change.
func permitted(path string, mode uint32) bool {
	return unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS) == nil
}

// refused reports whether a file may not be opened so.
func refused(path string, flags int) bool {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err == nil {
		_ = unix.Close(fd) // nothing was done with it
	}
	return errors.Is(err, unix.EACCES)
}

// addRule grants rights on a path and all below it. A path that is gone, or
// that this user cannot reach, needs none.
func addRule(set int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
	case unix.S_IFLNK:
		return nil // it was put in the place of what was listed
	default:
		rights &= readFile | writeFile // the others are refused for a file
	}
	err = ll.LandlockAddPathBeneathRule(set, &ll.PathBeneathAttr{AllowedAccess: rights, ParentFd: fd}, 0)
	if errors.Is(err, unix.EBADFD) {
		return nil // kernel-internal file systems (a bound namespace file): always free
	}
	return err
}

// grantsFor turns denials into grants. Writing and reading are two separate
// walks: a directory that is only write-protected is readable with all that
// comes into it later.
func grantsFor(s Spec) (grants, uint64, error) {
	noRead, err := locations(s.DenyAll)
	if err != nil {
		return nil, 0, err
	}
	noWrite, err := locations(slices.Concat(s.DenyWrite, s.DenyAll))
	if err != nil {
		return nil, 0, err
	}
	g, handled := grants{}, uint64(writeAll)
	if err := g.walk("/", noWrite, writeAll); err != nil {
		return nil, 0, err
	}
	if len(noRead) > 0 {
		handled |= readAll
		if err := g.walk("/", noRead, readAll); err != nil {
			return nil, 0, err
		}
	}
	return g, handled, nil
}

// grants are the rights of each path that gets a rule.
type grants map[string]uint64

// walk grants everything below dir that is neither denied nor the way to
// something denied. A directory that this user cannot list still has its known
// way down walked; what else is in it gets no grant.
func (g grants) walk(dir string, denied []string, rights uint64) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) && permitted(dir, unix.R_OK) {
		return fmt.Errorf("list %s: %w", dir, ErrWithin)
	}
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	way := wayDown(dir, denied)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case slices.Contains(way, path), slices.Contains(denied, path):
		case e.Type()&fs.ModeSymlink != 0:
			// What it leads to has a rule of its own, or must not have one.
		default:
			g[path] |= rights
		}
	}
	for _, path := range way {
		if err := g.walk(path, denied, rights); err != nil {
			return err
		}
	}
	return nil
}

// wayDown lists dir's children that have something denied below them and are
// not denied themselves.
func wayDown(dir string, denied []string) []string {
	var way []string
	prefix := strings.TrimSuffix(dir, "/") + "/"
	for _, d := range denied {
		rest, ok := strings.CutPrefix(d, prefix)
		if !ok {
			continue
		}
		name, below, _ := strings.Cut(rest, "/")
		child := prefix + name
		if below != "" && !slices.Contains(denied, child) && !slices.Contains(way, child) {
			way = append(way, child)
		}
	}
	return way
}

// maxLinks is the kernel's own limit of symbolic links in one path.
const maxLinks = 40

// locations returns the real places that stand for the paths: where they lead,
// and each symbolic link on the way, since who can replace the link can put
// something else in the protected place. What does not exist yet stands for
// itself.
func locations(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		if !filepath.IsAbs(p) || strings.ContainsRune(p, 0) {
			return nil, fmt.Errorf("protect %q: must be an absolute path", p)
		}
		got, err := follow(filepath.Clean(p))
		if err != nil {
			return nil, err
		}
		if slices.Contains(got, "/") {
			return nil, fmt.Errorf("protect %q: the whole file system cannot be protected", p)
		}
		out = append(out, got...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func follow(path string) ([]string, error) {
	var out []string
	done, rest := "/", strings.TrimPrefix(path, "/")
	for links := 0; rest != ""; {
		name, more, _ := strings.Cut(rest, "/")
		rest = more
		switch name {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, name)
		st, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			// Nothing further can be a link. ".." beyond here cannot be looked
			// up by anyone, so the lexical meaning does no harm.
			done = filepath.Join(next, rest)
			break
		}
		if err != nil {
			return nil, fmt.Errorf("protect %s: %w", path, err)
		}
		if st.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return nil, fmt.Errorf("protect %s: %w", path, syscall.ELOOP)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return nil, fmt.Errorf("protect %s: %w", path, err)
		}
		out = append(out, next)
		rest = target + "/" + rest
		if filepath.IsAbs(target) {
			done = "/"
		}
	}
	return append(out, done), nil
}
