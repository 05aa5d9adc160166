package meta

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/durable"
)

// Options say where a builder works.
type Options struct {
	Data string // <data>/meta
	Root string // the project
	Now  func() time.Time
	Disk durable.Disk
}

// Builder is the interview and the system of one project.
type Builder struct {
	o   Options
	dir string
}

// New makes a builder. Nothing is made on disk by it.
func New(o Options) *Builder {
	sum := sha256.Sum256([]byte(o.Root))
	return &Builder{o: o, dir: filepath.Join(o.Data, fmt.Sprintf("%x", sum[:12]))}
}

// Interview is what was answered so far.
type Interview struct {
	V       int               `json:"v"`
	Root    string            `json:"root"`
	Started time.Time         `json:"started"`
	Answers map[string]string `json:"answers"`
}

const (
	interviewFile = "interview.json"
	builtFile     = "built.json"
	claudeDir     = ".claude"
)

// Lock keeps others from the interview and the system of this project.
func (b *Builder) Lock(ctx context.Context) (unlock func() error, err error) {
	if err := b.o.Disk.MkdirAll(b.dir, 0o700); err != nil {
		return nil, fmt.Errorf("begin meta: %w", err)
	}
	unlock, err = durable.TryLock(filepath.Join(b.dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("begin meta for %s: %w", b.o.Root, err)
	}
	return unlock, nil
}

// Interview is the interview as it was left, or a new one. begun says which.
func (b *Builder) Interview() (iv Interview, begun bool, err error) {
	iv = Interview{V: 1, Root: b.o.Root, Started: b.o.Now().UTC().Truncate(time.Second), Answers: map[string]string{}}
	begun, err = b.load(interviewFile, &iv)
	if iv.Answers == nil {
		iv.Answers = map[string]string{}
	}
	return iv, begun, err
}

// Save keeps an interview. It is there after a kill at any moment.
func (b *Builder) Save(iv Interview) error { return b.save(interviewFile, iv) }

// Forget ends an interview.
func (b *Builder) Forget() error {
	err := b.o.Disk.Remove(filepath.Join(b.dir, interviewFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (b *Builder) load(name string, to any) (bool, error) {
	file := filepath.Join(b.dir, name)
	data, err := durable.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w; mend it or remove it", file, err)
	}
	return true, nil
}

func (b *Builder) save(name string, from any) error {
	data, err := json.MarshalIndent(from, "", "  ")
	if err != nil {
		return err
	}
	return b.o.Disk.WriteFile(filepath.Join(b.dir, name), append(data, '\n'), 0o600)
}

// Look says what is in the project.
func (b *Builder) Look() (Existing, error) {
	var e Existing
	built, _, err := b.Built()
	if err != nil {
		return e, err
	}
	e.Ours = len(built.Systems) > 0
	for _, kind := range []struct {
		to  *[]string
		dir string
	}{{&e.Agents, "agents"}, {&e.Commands, "commands"}, {&e.Skills, "skills"}, {&e.Context, "context"}, {&e.Workflows, "workflows"}} {
		list, err := durable.ReadDir(filepath.Join(b.o.Root, claudeDir, kind.dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return e, fmt.Errorf("look at what is there: %w", err)
		}
		for _, f := range list {
			*kind.to = append(*kind.to, strings.TrimSuffix(f.Name(), ".md"))
		}
	}
	return e, nil
}

// Built is what was written into a project.
type Built struct {
	V       int      `json:"v"`
	Systems []System `json:"systems"`
}

// System is one generation.
type System struct {
	Domain string    `json:"domain"`
	At     time.Time `json:"at"`
	// Done says that all is written; else a kill came between, and the next command
	// goes on.
	Done  bool         `json:"done"`
	Files []SystemFile `json:"files"`
	// Replaces are the files that an earlier generation wrote and this one takes away.
	Replaces []SystemFile `json:"replaces,omitempty"`
	// Dirs were made for it, outermost first.
	Dirs []string `json:"dirs,omitempty"`
}

// SystemFile is a file with its text, so that a killed generation can be finished, and
// a replaced one be put back.
type SystemFile struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Built reads what was written.
func (b *Builder) Built() (built Built, any bool, err error) {
	built = Built{V: 1}
	any, err = b.load(builtFile, &built)
	return built, any, err
}

// Outcome is what a generation or an undo did.
type Outcome struct {
	Written []string `json:"written"`
	Removed []string `json:"removed"`
	// Left were changed since they were generated, or are somebody else's, and stay.
	Left []string `json:"left"`
}

// ErrTaken says that files of the user's stand where generated ones would.
var ErrTaken = errors.New("there are files of yours already")

// Plan says which files would be written and which taken away; the error is
// [ErrTaken] with the names when something of the user's is in the way.
func (b *Builder) Plan(d Design, files []File) (sys System, err error) {
	built, _, err := b.Built()
	if err != nil {
		return sys, err
	}
	sys = System{Domain: d.Answers.Domain.Name, At: b.o.Now().UTC().Truncate(time.Second)}
	for _, f := range files {
		sys.Files = append(sys.Files, SystemFile{f.Name, f.Text})
	}
	ours := map[string]string{}
	for _, s := range built.Systems {
		for _, f := range s.Files {
			ours[f.Name] = f.Text
		}
	}
	root, err := b.open()
	if err != nil {
		return sys, err
	}
	defer root.Close()
	if d.Answers.Existing == Replace {
		for _, s := range built.Systems {
			for _, f := range s.Files {
				if now, err := read(root, f.Name); err == nil && now == f.Text {
					sys.Replaces = append(sys.Replaces, f)
				}
			}
		}
	}
	var taken []string
	for _, f := range sys.Files {
		now, err := read(root, f.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return sys, err
		case now == f.Text: // it is so already
		case ours[f.Name] == now && d.Answers.Existing == Replace:
		default:
			taken = append(taken, f.Name)
		}
	}
	if len(taken) > 0 {
		return sys, fmt.Errorf("%w: %s; nothing was written; answer %q to `existing` for names of their own, or move them away", ErrTaken, strings.Join(taken, ", "), Separate)
	}
	return sys, nil
}

// open is the project's directory; no name leads out of it.
func (b *Builder) open() (*durable.Dir, error) {
	root, err := b.o.Disk.OpenDir(b.o.Root)
	if err != nil {
		return nil, fmt.Errorf("open project: %w", err)
	}
	return root, nil
}

func read(root *durable.Dir, name string) (string, error) {
	data, err := root.ReadFile(name)
	return string(data), err
}

// Apply writes a planned system. What it will write is noted first, so that after a
// kill [Builder.Finish] goes on where it stopped.
func (b *Builder) Apply(ctx context.Context, sys System) (Outcome, error) {
	built, _, err := b.Built()
	if err != nil {
		return Outcome{}, err
	}
	for _, f := range sys.Files {
		for dir := path.Dir(f.Name); dir != "."; dir = path.Dir(dir) {
			if _, err := os.Lstat(filepath.Join(b.o.Root, filepath.FromSlash(dir))); errors.Is(err, fs.ErrNotExist) && !slices.Contains(sys.Dirs, dir) {
				sys.Dirs = append(sys.Dirs, dir)
			}
		}
	}
	slices.Sort(sys.Dirs) // the outer one is a prefix of the inner one
	built.Systems = append(built.Systems, sys)
	if err := b.save(builtFile, built); err != nil {
		return Outcome{}, fmt.Errorf("note what is to be written (nothing was): %w", err)
	}
	return b.Finish(ctx)
}

// Finish goes on with a generation that was killed. Without one it does nothing.
func (b *Builder) Finish(ctx context.Context) (Outcome, error) {
	out := Outcome{Written: []string{}, Removed: []string{}, Left: []string{}}
	built, _, err := b.Built()
	if err != nil || len(built.Systems) == 0 {
		return out, err
	}
	sys := &built.Systems[len(built.Systems)-1]
	if sys.Done {
		return out, nil
	}
	root, err := b.open()
	if err != nil {
		return out, err
	}
	defer root.Close()
	if err := sweep(root, sys.Files); err != nil {
		return out, err
	}
	wanted := map[string]bool{}
	for _, f := range sys.Files {
		wanted[f.Name] = true
	}
	old := map[string]string{}
	for _, f := range sys.Replaces {
		old[f.Name] = f.Text
		if wanted[f.Name] {
			continue
		}
		if err := b.removeOwn(root, f, &out); err != nil {
			return out, err
		}
	}
	for _, f := range sys.Files {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		now, err := read(root, f.Name)
		switch {
		case err == nil && now == f.Text:
		case errors.Is(err, fs.ErrNotExist), err == nil && now == old[f.Name] && now != "":
			if err := root.MkdirAll(path.Dir(f.Name), 0o755); err != nil {
				return out, err
			}
			if err := root.WriteFile(f.Name, []byte(f.Text), 0o644); err != nil {
				return out, fmt.Errorf("write %s: %w", f.Name, err)
			}
			out.Written = append(out.Written, f.Name)
		case err != nil:
			return out, fmt.Errorf("write %s: %w", f.Name, err)
		default: // somebody wrote it in between: theirs stays
			out.Left = append(out.Left, f.Name)
		}
	}
	sys.Done = true
	if err := b.save(builtFile, built); err != nil {
		return out, err
	}
	return out, b.Forget()
}

// sweep removes temporary files that killed writers left where files of a system are.
// Whoever writes there holds the lock.
func sweep(root *durable.Dir, files []SystemFile) error {
	seen := map[string]bool{}
	for _, f := range files {
		dir := path.Dir(f.Name)
		if info, err := root.Lstat(dir); seen[dir] || err != nil || !info.IsDir() {
			continue
		}
		seen[dir] = true
		if _, err := root.RemoveStale(dir, time.Time{}); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// removeOwn removes a file if it is as it was generated.
func (b *Builder) removeOwn(root *durable.Dir, f SystemFile, out *Outcome) error {
	now, err := read(root, f.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("remove %s: %w", f.Name, err)
	case now != f.Text:
		out.Left = append(out.Left, f.Name)
		return nil
	}
	if err := root.Remove(f.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", f.Name, err)
	}
	out.Removed = append(out.Removed, f.Name)
	return nil
}

// Undo takes the last system out again: files that are as they were generated go,
// those that it replaced come back, and directories that were made for it go where
// they are empty. What was changed since stays.
func (b *Builder) Undo(ctx context.Context, dry bool) (Outcome, error) {
	out := Outcome{Written: []string{}, Removed: []string{}, Left: []string{}}
	built, _, err := b.Built()
	if err != nil {
		return out, err
	}
	if len(built.Systems) == 0 {
		return out, fmt.Errorf("undo in %s: %w: nothing was generated here", b.o.Root, fs.ErrNotExist)
	}
	sys := built.Systems[len(built.Systems)-1]
	root, err := b.open()
	if err != nil {
		return out, err
	}
	defer root.Close()
	if !dry {
		if err := sweep(root, slices.Concat(sys.Files, sys.Replaces)); err != nil {
			return out, err
		}
	}
	back := map[string]bool{}
	for _, f := range sys.Replaces {
		back[f.Name] = true
	}
	for _, f := range slices.Backward(sys.Files) {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if dry {
			if now, err := read(root, f.Name); err == nil && now == f.Text {
				out.Removed = append(out.Removed, f.Name)
			} else if err == nil {
				out.Left = append(out.Left, f.Name)
			}
			continue
		}
		if back[f.Name] {
			if now, err := read(root, f.Name); err == nil && now != f.Text {
				continue // changed since, or back already
			}
		}
		if err := b.removeOwn(root, f, &out); err != nil {
			return out, err
		}
	}
	for _, f := range sys.Replaces {
		if _, err := root.Lstat(f.Name); dry || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := root.MkdirAll(path.Dir(f.Name), 0o755); err != nil {
			return out, err
		}
		if err := root.WriteFile(f.Name, []byte(f.Text), 0o644); err != nil {
			return out, err
		}
		out.Written = append(out.Written, f.Name)
	}
	if dry {
		return out, nil
	}
	for _, dir := range slices.Backward(sys.Dirs) {
		if err := root.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // something of somebody's is in it
		}
	}
	built.Systems = built.Systems[:len(built.Systems)-1]
	return out, b.save(builtFile, built)
}

// Stage writes files into a directory of their own, so that they can be looked at
// before anything is in the project. Calling done takes it away.
func (b *Builder) Stage(files []File) (dir string, done func() error, err error) {
	dir = filepath.Join(b.dir, "staged")
	if err := b.o.Disk.RemoveAll(dir); err != nil {
		return "", nil, err
	}
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := b.o.Disk.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return "", nil, err
		}
		if err := b.o.Disk.WriteFileHot(name, []byte(f.Text), 0o600); err != nil {
			return "", nil, err
		}
	}
	return dir, func() error { return b.o.Disk.RemoveAll(dir) }, nil
}
