package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
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

// Rights that only make sense for a file, and so may stand in a rule for one.
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

// Exec applies the Spec to this process and becomes the program argv[0], an
// absolute path, with the environment env. It returns only with an error:
// where confining is not supported, nothing is run.
func Exec(s Spec, argv, env []string) error {
	if len(argv) == 0 || !filepath.IsAbs(argv[0]) {
		return errors.New("confine: the program must be an absolute path")
	}
	if err := apply(s); err != nil {
		return fmt.Errorf("confine %s: %w", argv[0], err)
	}
	if err := syscall.Exec(argv[0], argv, env); err != nil {
		return fmt.Errorf("confine: start %s: %w", argv[0], err)
	}
	return nil
}

func apply(s Spec) error {
	if s.Empty() {
		return nil
	}
	if _, why := Supported(); why != "" {
		return fmt.Errorf("%w: %s", ErrUnsupported, why)
	}
	rules, handled, err := rulesFor(s)
	if err != nil {
		return err
	}
	cfg, err := landlock.NewConfig(handled)
	if err != nil {
		return fmt.Errorf("make rules: %w", err)
	}
	return cfg.RestrictPaths(rules...)
}

// rulesFor turns denials into grants. Writing and reading are two separate
// walks: a directory that is only write-protected is readable with all that
// comes into it later.
func rulesFor(s Spec) ([]landlock.Rule, landlock.AccessFSSet, error) {
	noRead, err := locations(s.DenyAll)
	if err != nil {
		return nil, 0, err
	}
	noWrite, err := locations(slices.Concat(s.DenyWrite, s.DenyAll))
	if err != nil {
		return nil, 0, err
	}
	g := grants{}
	handled := landlock.AccessFSSet(writeAll)
	if err := g.walk("/", noWrite, writeAll, writeFile); err != nil {
		return nil, 0, err
	}
	if len(noRead) > 0 {
		handled |= readAll
		if err := g.walk("/", noRead, readAll, readFile); err != nil {
			return nil, 0, err
		}
	}
	rules := make([]landlock.Rule, 0, len(g))
	for path, rights := range g {
		rules = append(rules, landlock.PathAccess(rights, path).IgnoreIfMissing())
	}
	return rules, handled, nil
}

// grants are the rights of each path that gets a rule.
type grants map[string]landlock.AccessFSSet

// walk grants everything below dir that is neither denied nor the way to
// something denied. A directory that this user cannot list still has its known
// way down walked; what else is in it gets no grant.
func (g grants) walk(dir string, denied []string, rights, fileRights landlock.AccessFSSet) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	way := wayDown(dir, denied)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch t := e.Type(); {
		case slices.Contains(way, path), slices.Contains(denied, path):
		case t.IsDir():
			g[path] |= rights
		case t&fs.ModeSymlink != 0:
			// What it leads to has a rule of its own, or must not have one.
		default:
			g[path] |= fileRights
		}
	}
	for _, path := range way {
		if err := g.walk(path, denied, rights, fileRights); err != nil {
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
