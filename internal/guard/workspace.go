package guard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// In are the rules for a session that works in the workspace at dir, the top of a
// worktree of the code: no other checkout of that repository is a place of its work,
// whatever project and settings say. Reading there stays free.
func (r Rules) In(dir string) Rules {
	dir = Resolve(dir)
	common := commonDir(filepath.Join(dir, ".git"))
	roots := []string{dir}
	for _, root := range r.Roots {
		if root = Resolve(root); inside(root, dir) || otherCheckout(root, dir, common) == "" && !inside(dir, root) {
			roots = append(roots, root)
		}
	}
	r.Roots, r.Workspace = roots, dir
	return r
}

// Gone says what is wrong where a session was started in the workspace at dir and
// that is no worktree any more; "" where it is one.
func Gone(dir string) string {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	switch {
	case err == nil:
		return ""
	case errors.Is(err, fs.ErrNotExist):
		return "the workspace " + shown(dir) + " that this session was started in is gone"
	}
	return "the workspace " + shown(dir) + " that this session was started in cannot be looked at"
}

// GoneVerdict is the verdict on every call of such a session.
func GoneVerdict(why string) Verdict {
	return Verdict{Decision: Deny, Rule: "workspace-gone", Reason: why + "; stop here, and do not go on in another checkout: whoever started the session has to start it anew in a workspace [workspace-gone]"}
}

// checkout is the top of the other checkout of the workspace's repository that a
// resolved path outside the roots lies in, "" where it lies in none.
func (a *analysis) checkout(p string) string {
	if a.r.Workspace == "" {
		return ""
	}
	if a.common == "" {
		a.common = commonDir(filepath.Join(a.r.Workspace, ".git"))
	}
	return otherCheckout(p, a.r.Workspace, a.common)
}

// otherCheckout goes up from a path to a working tree of the repository. What lies
// in one belongs to it, other repositories in it too.
func otherCheckout(p, own, common string) string {
	if common == "" {
		return ""
	}
	for d := p; ; d = filepath.Dir(d) {
		if d != own && (d == common || commonDir(filepath.Join(d, ".git")) == common) {
			return d
		}
		if d == filepath.Dir(d) {
			return ""
		}
	}
}

// commonDir is the git directory of all checkouts that a .git stands for; "" where
// there is none.
func commonDir(dot string) string {
	fi, err := os.Lstat(dot)
	switch {
	case err != nil:
		return ""
	case fi.IsDir():
		return Resolve(dot)
	}
	dir := pointer(dot, "gitdir: ")
	if dir == "" {
		return ""
	}
	if common := pointer(filepath.Join(dir, "commondir"), ""); common != "" {
		dir = common
	}
	return Resolve(dir)
}

// pointer is the path that one of git's one-line files names.
func pointer(file, prefix string) string {
	data, _ := smallFile(file) // nothing where it cannot be read
	path, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), prefix)
	if !ok || path == "" {
		return ""
	}
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), path)
	}
	return path
}

// elsewhere refuses to write in another checkout than the session's own.
func (a *analysis) elsewhere(word, top string) {
	a.give("wrong-checkout", Deny, word, "it changes "+shown(top)+", and this session works in "+shown(a.r.Workspace), "write the same path below "+shown(a.r.Workspace))
}
