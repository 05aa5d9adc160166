package git

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"reprise/internal/durable"
	"reprise/internal/shellword"
)

// ErrPrograms says that a repository has got a setting by which git runs a program, since
// somebody last answered for those that it has.
var ErrPrograms = errors.New("a setting that has git run a program is new")

// ProgramsError is the setting, or the hook, for which nobody has answered.
type ProgramsError struct {
	Key  string // of the setting as git spells it, or the name of the hook
	File string // that has it
	hook bool
}

func (e *ProgramsError) Error() string {
	if e.hook {
		return fmt.Sprintf("the hook %s, %s, is not as it was when the work began, and git would run it: nothing is done with git until a person has looked", e.Key, e.File)
	}
	return fmt.Sprintf("the setting %s in %s has git run a program, and was not so when the work began: nothing is done with git until a person has looked; `git config --file %s --unset-all %s` takes it out", e.Key, e.File, shellword.Quote(e.File), shellword.Quote(e.Key))
}

// Is has a ProgramsError be an ErrPrograms.
func (e *ProgramsError) Is(target error) bool { return target == ErrPrograms }

// Programs are the settings by which git runs programs, and the hooks, for which the user
// answers: those that were there before agents worked beside a repository. An agent that may
// write only its worktree can write the repository's settings, which all worktrees share, or put
// a repository of its own, with settings of its own, into it; git run by reprise would take
// programs from there, outside of the agent's sandbox. A Git whose Options have one is refused
// ([ErrPrograms]) wherever there are others. That costs a look at files of settings for each
// command, and a process only where they changed.
//
// What is changed in the moment between that look and git's own is not seen, nor is what becomes
// of a program that a setting of the user names.
type Programs struct {
	mu     sync.Mutex
	known  map[string]bool // sums of a key and a value, or of a hook; the values may hold secrets
	good   map[[sha256.Size]byte]bool
	beside map[string]bool // files that settings were read from, or would be
	linked map[string]links
}

// links are the submodules of an index that has a stamp.
type links struct{ stamp, paths string }

// KnownPrograms are those whose sums were kept before, such as by another process.
func KnownPrograms(sums []string) *Programs {
	p := &Programs{known: map[string]bool{}, good: map[[sha256.Size]byte]bool{}, beside: map[string]bool{}, linked: map[string]links{}}
	for _, s := range sums {
		p.known[s] = true
	}
	return p
}

// Sums are what is known, to be kept.
func (p *Programs) Sums() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.known))
}

// Learn has all count as known that there is by now in the checkout of g and its submodules.
func (p *Programs) Learn(ctx context.Context, g *Git) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.good)
	return p.each(ctx, g, 0, func(r *repository) error {
		list, err := p.programs(ctx, r)
		for _, it := range list {
			p.known[it.sum] = true
		}
		return err
	})
}

// Check says for what of the checkout of g nobody has answered, nil where there is nothing.
func (p *Programs) Check(ctx context.Context, g *Git) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.each(ctx, g, 0, func(r *repository) error {
		print := p.fingerprint(r)
		if p.good[print] {
			return nil
		}
		list, err := p.programs(ctx, r)
		if err != nil {
			return err
		}
		for _, it := range list {
			if !p.known[it.sum] && (!it.asUser || r.g.asUser) {
				return &ProgramsError{Key: it.key, File: it.file, hook: it.hook}
			}
		}
		p.good[p.fingerprint(r)] = true // with the files that it was read from
		return nil
	})
}

// repository is one as a git sees it.
type repository struct {
	g             *Git
	admin, common string
}

// maxNested bounds how deep submodules lie in one another that are looked at.
const maxNested = 8

// each visits the repository of a Git, and those of the submodules that its index has, into
// which git goes by itself.
func (p *Programs) each(ctx context.Context, g *Git, depth int, visit func(*repository) error) error {
	plain := *g
	plain.o.Programs, plain.index = nil, ""
	admin := g.gitDir
	if admin == "" {
		admin = adminAround(g.dir)
	}
	if admin == "" {
		return nil
	}
	if err := visit(&repository{&plain, admin, CommonOf(admin)}); err != nil || depth == maxNested {
		return err
	}
	top := g.workTree
	if top == "" && g.gitDir == "" {
		top = Top(g.dir)
	}
	if top == "" {
		return nil
	}
	paths, err := p.submodules(ctx, &plain, admin)
	if err != nil {
		return err
	}
	for _, path := range paths {
		dir := filepath.Join(top, filepath.FromSlash(path))
		if !filepath.IsLocal(filepath.FromSlash(path)) || !there(filepath.Join(dir, ".git")) {
			continue
		}
		sub := plain
		sub.dir, sub.gitDir, sub.workTree, sub.bare = dir, "", "", ""
		if err := p.each(ctx, &sub, depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

// submodules are the paths at which an index has commits of other repositories.
func (p *Programs) submodules(ctx context.Context, g *Git, admin string) ([]string, error) {
	index := filepath.Join(admin, "index")
	fi, err := os.Stat(index)
	if err != nil {
		return nil, nil //nolint:nilerr // where there is none, git finds none either
	}
	stamp := fmt.Sprint(fi.ModTime().UnixNano(), fi.Size(), inode(fi))
	if l, ok := p.linked[index]; ok && l.stamp == stamp {
		return splitNUL([]byte(l.paths)), nil
	}
	paths, ok := gitlinks(index)
	if !ok { // a form that is not read here
		big := *g
		big.o.MaxOut = max(big.o.MaxOut, 256<<20)
		out, err := big.runOnce(ctx, big.o.Local, nil, "ls-files", "--stage", "-z")
		if err != nil {
			return nil, err
		}
		for _, rec := range splitNUL(out) {
			if about, name, _ := strings.Cut(rec, "\t"); strings.HasPrefix(about, ModeRepo+" ") {
				paths = append(paths, name)
			}
		}
	}
	p.linked[index] = links{stamp, strings.Join(paths, "\x00")}
	return paths, nil
}

// inode is all that the system says of a file: times can be set back, but for that of the change.
func inode(fi fs.FileInfo) string { return fmt.Sprintf("%+v", fi.Sys()) }

// program is one that git would run.
type program struct {
	key, file, sum string
	hook, asUser   bool // asUser: only where a Git is to do as the user does
}

func sumOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// programs are all that a repository names.
func (p *Programs) programs(ctx context.Context, r *repository) (list []program, err error) {
	out, err := r.g.runOnce(ctx, r.g.o.Local, nil, "config", "--null", "--show-origin", "--list")
	if err != nil {
		return nil, err
	}
	recs := splitNUL(out)
	for i := 0; i+1 < len(recs); i += 2 {
		origin, ok := strings.CutPrefix(recs[i], "file:")
		if !ok {
			continue // ours, on the command line
		}
		if !filepath.IsAbs(origin) {
			origin = filepath.Join(r.g.dir, filepath.FromSlash(origin))
		}
		p.beside[origin] = true
		key, value, _ := strings.Cut(recs[i+1], "\n")
		if included(key) {
			p.beside[r.includes(origin, value)] = true
			continue
		}
		if key == "core.worktree" && r.ownTree(origin, value) {
			continue
		}
		if runs, asUser := runsProgram(key, value); runs {
			list = append(list, program{key: key, file: origin, sum: sumOf(key, value), asUser: asUser})
		}
	}
	hooks, err := durable.ReadDir(filepath.Join(r.common, "hooks"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, h := range hooks {
		if h.IsDir() || strings.HasSuffix(h.Name(), ".sample") {
			continue
		}
		file := filepath.Join(r.common, "hooks", h.Name())
		data, err := durable.Read(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		list = append(list, program{key: h.Name(), file: file, sum: sumOf("hook", h.Name(), string(data)), hook: true, asUser: true})
	}
	return list, nil
}

func included(key string) bool {
	return key == "include.path" || strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path")
}

// includes is the file that a setting in origin has read, too.
func (r *repository) includes(origin, value string) string {
	path := filepath.FromSlash(value)
	if rest, ok := strings.CutPrefix(path, "~"+string(filepath.Separator)); ok {
		return filepath.Join(cmp.Or(r.g.o.Vars["HOME"], r.g.o.Vars["USERPROFILE"]), rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(origin), path)
	}
	return path
}

// ownTree says that core.worktree in a file names the checkout that has the repository for its
// own, as it does in a submodule. Git means a path from the git directory that the file is of,
// which for a linked worktree is seldom its own.
func (r *repository) ownTree(file, value string) bool {
	admin := r.common
	if filepath.Base(file) == "config.worktree" && sameFile(filepath.Dir(file), r.admin) {
		admin = r.admin
	}
	dir := filepath.FromSlash(value)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(admin, dir)
	}
	own := LinkedDir(dir)
	return own != "" && sameFile(own, admin)
}

// fingerprint is all that decides what git reads as settings, as it is now.
func (p *Programs) fingerprint(r *repository) [sha256.Size]byte {
	h := sha256.New()
	vars := r.g.o.Vars
	home := cmp.Or(vars["HOME"], vars["USERPROFILE"])
	files := []string{
		filepath.Join(r.common, "config"), filepath.Join(r.common, "config.worktree"), filepath.Join(r.admin, "config.worktree"),
		vars["GIT_CONFIG_GLOBAL"], filepath.Join(home, ".gitconfig"), filepath.Join(vars["XDG_CONFIG_HOME"], "git", "config"), filepath.Join(home, ".config", "git", "config"),
	}
	conditions := false
	for _, file := range slices.Concat(files, slices.Sorted(maps.Keys(p.beside))) {
		name := file
		if file == filepath.Join(r.admin, "config.worktree") {
			name = "config.worktree" // of a worktree that has none, what is said of others holds
		}
		data, err := durable.Read(file)
		fmt.Fprintf(h, "%q %d %v\n", name, len(data), err == nil)
		h.Write(data)
		lower := bytes.ToLower(data)
		conditions = conditions || bytes.Contains(lower, []byte("includeif"))
		if bytes.Contains(lower, []byte("worktree")) { // core.worktree is about the place
			conditions = true
		}
	}
	if conditions { // by where a checkout is, and on which branch
		head, _ := durable.Read(filepath.Join(r.admin, "HEAD"))
		fmt.Fprintf(h, "%q %q %q\n", r.admin, r.g.dir, head)
	}
	if r.g.asUser {
		hooks, _ := durable.ReadDir(filepath.Join(r.common, "hooks"))
		for _, e := range hooks {
			data, err := durable.Read(filepath.Join(r.common, "hooks", e.Name()))
			fmt.Fprintf(h, "%q %d %v\n", e.Name(), len(data), err == nil)
			h.Write(data)
		}
		fmt.Fprintln(h, "as the user")
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// runsProgram says that a setting has git run a program, or act on files that are elsewhere.
// asUser: only where git does all that the user's would; else reprise overrules it for each
// command ([Git.settings]). Aliases are not there: no command of git can be one.
func runsProgram(key, value string) (runs, asUser bool) {
	section, name := key, ""
	if i := strings.LastIndexByte(key, '.'); i > 0 {
		section, name = key[:i], key[i+1:]
	}
	section, sub, has := strings.Cut(section, ".")
	switch section {
	case "filter":
		return name == "clean" || name == "smudge" || name == "process", false
	case "merge", "hook", "trailer", "tar":
		return has && (name == "driver" || name == "command" || name == "cmd"), false
	case "diff":
		return name == "external" || has && (name == "command" || name == "textconv"), false
	case "core":
		switch name {
		case "sshcommand", "gitproxy", "alternaterefscommand", "worktree":
			return true, false
		case "hookspath":
			return true, true
		case "fsmonitor":
			return value != "true" && value != "false", true
		}
		return false, false
	case "credential":
		return name == "helper", false
	case "gpg":
		return name == "program" || name == "defaultkeycommand", true
	case "remote":
		return name == "uploadpack" || name == "receivepack" || name == "vcs", false
	case "submodule":
		return name == "update" && strings.HasPrefix(value, "!"), false
	case "protocol":
		return name == "allow" && !(sub == "" && value == "never"), false
	case "lfs":
		return strings.HasPrefix(sub, "customtransfer.") || strings.HasPrefix(sub, "extension.") || name == "standalonetransferagent", false
	}
	switch key {
	case "init.templatedir", "gc.recentobjectshook", "uploadpack.packobjectshook":
		return true, false
	}
	return false, false
}
