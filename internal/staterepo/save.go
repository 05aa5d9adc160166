package staterepo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/mdfile"
)

// maxFile is how long a file may be that is committed; longer ones stay where
// they are, and are named.
const maxFile = 32 << 20

// Saved says what [Tree.Save] did.
type Saved struct {
	Commit  string   `json:"commit"` // that the branch is at now
	Changed []string `json:"changed,omitempty"`
	// Notes are what a person should know: files that are left out, edits of
	// entries that became new ones, what a killed command had left.
	Notes []string `json:"notes,omitempty"`
}

// Save commits the checkout as it is on disk, if it differs from its branch. by is
// who did it, "" for a person. Hand edits of entries are settled first (see
// mdfile.SettleEdits). A race with another committer is tried again.
func (t *Tree) Save(ctx context.Context, by, message string) (Saved, error) {
	d, c, err := t.open(ctx)
	if err != nil {
		return Saved{}, fmt.Errorf("save state: %w", err)
	}
	defer d.Close()
	defer c.Abort()
	s, err := t.save(ctx, d, by, message)
	if err != nil {
		return s, fmt.Errorf("save state: %w", err)
	}
	return s, nil
}

// open takes the checkout's change lock.
func (t *Tree) open(ctx context.Context) (*durable.Dir, *durable.Change, error) {
	if err := NoLink(t.Dir); err != nil {
		return nil, nil, err
	}
	d, err := t.r.o.Disk.OpenDir(t.Dir)
	if err != nil {
		return nil, nil, err
	}
	c, err := d.Begin(ctx)
	if err != nil {
		d.Close()
		return nil, nil, err
	}
	return d, c, nil
}

const tries = 60 // of a commit that others get in the way of

// save is Save with the checkout's lock held.
func (t *Tree) save(ctx context.Context, d *durable.Dir, by, message string) (Saved, error) {
	var out Saved
	remade := false
	for try := range tries {
		if err := pause(ctx, try); err != nil {
			return out, err
		}
		s, err := t.saveOnce(ctx, d, by, message)
		if len(s.Notes) > 0 {
			out.Notes = append(out.Notes, s.Notes...)
		}
		if errors.Is(err, errNoBranch) && !remade {
			var note string
			if note, err = t.remake(ctx, err); err == nil {
				if remade = true; note != "" {
					out.Notes = append(out.Notes, note)
				}
				continue
			}
		}
		switch {
		case isRace(err):
		default:
			s.Notes = out.Notes
			return s, err
		}
	}
	const still = "the files are as they were written, and the next command commits them"
	if locks, err := t.r.git.Locks(); err == nil && len(locks) > 0 {
		return out, fmt.Errorf("%w: %s is there since %s; %s. Another git is at work there, such as one that was started by hand; or a killed one left it, and then it is removed once it is a minute old", ErrHeld, locks[0].Path, locks[0].Since.UTC().Format(time.RFC3339), still)
	}
	return out, fmt.Errorf("%w: %s; %s", ErrBusy, t.Branch, still)
}

// pause waits a little before another try, longer each time, and never as long
// as another.
func pause(ctx context.Context, try int) error {
	if try == 0 {
		return ctx.Err()
	}
	most := min(time.Duration(1<<min(try, 6))*4*time.Millisecond, 200*time.Millisecond)
	timer := time.NewTimer(time.Millisecond + rand.N(most))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (t *Tree) saveOnce(ctx context.Context, d *durable.Dir, by, message string) (Saved, error) {
	var out Saved
	dirs, err := t.dirs(d)
	if err != nil {
		return out, err
	}
	// The branch is read before the files: who committed in between did so with
	// files that are seen here, and who commits later makes the last step fail.
	old, err := t.read(ctx, dirs)
	if err != nil {
		return out, err
	}
	pending, note, err := t.finish(ctx, d, old)
	if err != nil {
		return out, err
	}
	if note != "" {
		out.Notes = append(out.Notes, note)
	}
	if pending {
		if old, err = t.read(ctx, dirs); err != nil {
			return out, err
		}
	}
	now, notes, err := t.scan(ctx, d, dirs, old)
	out.Notes = append(out.Notes, notes...)
	if err != nil {
		return out, err
	}
	out.Changed = now.changed(old)
	out.Commit = old.commit
	if len(out.Changed) == 0 {
		return out, t.index(ctx, old.commit, now.files)
	}
	for _, name := range out.Changed {
		if data, ok := now.data[name]; ok {
			if _, err := t.r.git.Store("blob", data); err != nil {
				return out, err
			}
		}
	}
	id, err := t.commit(now.files, []string{old.commit}, by, cmp.Or(message, summary(out.Changed)))
	if err != nil {
		return out, err
	}
	if err := t.r.git.MoveRef(ctx, t.ref(), id, old.commit, "reprise: "+firstLine(message)); err != nil {
		return out, err
	}
	out.Commit = id
	return out, t.index(ctx, id, now.files)
}

func summary(changed []string) string {
	if len(changed) == 1 {
		return "Change " + changed[0]
	}
	return fmt.Sprintf("Change %d files", len(changed))
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// commit stores a commit of files that are stored, and says who made it: the
// agent or the person as the author, reprise as the committer.
func (t *Tree) commit(files map[string]git.Entry, parents []string, by, message string) (string, error) {
	tree, err := t.r.git.StoreTree(files)
	if err != nil {
		return "", err
	}
	now := t.r.o.Now()
	by = cmp.Or(by, "user")
	author := git.Person{Name: by, Email: by + "@" + t.r.o.Project, Time: now}
	return t.r.git.StoreCommit(tree, parents, author, git.Person{Name: "reprise", Email: "reprise@localhost", Time: now}, message)
}

// version is a set of files: of a commit, or as they are on disk.
type version struct {
	commit string
	files  map[string]git.Entry
	data   map[string][]byte // of what was read; on disk that is all that changed
	trees  map[string]bool   // directories on disk that the commit has, too
}

// changed lists the paths in which the version differs from another.
func (v *version) changed(old *version) []string {
	var out []string
	for name, e := range v.files {
		if old.files[name] != e {
			out = append(out, name)
		}
	}
	for name := range old.files {
		if _, ok := v.files[name]; !ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// dirs are the directories of the checkout, "" for its top.
func (t *Tree) dirs(d *durable.Dir) ([]string, error) {
	out := []string{""}
	for i := 0; i < len(out); i++ {
		list, err := d.ReadDir(cmp.Or(out[i], "."))
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			name := path.Join(out[i], e.Name())
			if e.IsDir() && ours(name) && !fileExists(filepath.Join(t.Dir, filepath.FromSlash(name), ".git")) {
				out = append(out, name)
			}
		}
	}
	return out, nil
}

// ours says that a path is one that is committed; see also info/exclude.
func ours(name string) bool {
	base := path.Base(name)
	return base != ".git" && !strings.HasPrefix(base, ".reprise-") && !strings.HasSuffix(base, ".lock") &&
		!strings.HasSuffix(base, ".torn") && !strings.HasSuffix(base, ".tmp") && portable(name)
}

func portable(name string) bool { return durable.CheckName(name) == nil }

// read is the branch as far as these directories go. Files in others were there
// in a commit and are not on disk any more.
func (t *Tree) read(ctx context.Context, dirs []string) (*version, error) {
	names := []string{t.ref()}
	for _, d := range dirs {
		names = append(names, t.ref()+":"+d)
	}
	list, err := t.r.git.Objects(ctx, names...)
	if err != nil {
		return nil, err
	}
	if list[0].Kind != "commit" {
		if now, err := t.r.Find(t.Dir); err == nil && now != nil && now.Branch != t.Branch {
			return nil, fmt.Errorf("%w: the agent that works in %s is %s by now; run it again", ErrBusy, t.Dir, now.Agent())
		}
		return nil, fmt.Errorf("%w: %s; `reprise state fsck --repair` makes it from what is on disk", errNoBranch, t.Branch)
	}
	v := &version{commit: list[0].ID, files: map[string]git.Entry{}, data: map[string][]byte{}, trees: map[string]bool{}}
	for i, d := range dirs {
		o := list[i+1]
		if o.Kind != "tree" {
			continue
		}
		v.trees[d] = true
		entries, err := git.ParseTree(o.Data)
		if err != nil {
			return nil, err
		}
		for name, e := range entries {
			if e.Mode != git.ModeTree {
				v.files[path.Join(d, name)] = e
			} else if name := path.Join(d, name); !slices.Contains(dirs, name) {
				v.files[name] = e // a whole directory, gone from disk or not to be had there
			}
		}
	}
	return v, nil
}

// scan reads the files on disk, settling entries that were edited.
func (t *Tree) scan(ctx context.Context, d *durable.Dir, dirs []string, old *version) (*version, []string, error) {
	now := &version{files: map[string]git.Entry{}, data: map[string][]byte{}}
	var notes, untracked []string
	ignores := false
	for _, dir := range dirs {
		list, err := d.ReadDir(cmp.Or(dir, "."))
		if err != nil {
			return nil, notes, err
		}
		for _, e := range list {
			name := path.Join(dir, e.Name())
			if e.Name() == ".git" || e.IsDir() {
				if e.IsDir() && ours(name) && !slices.Contains(dirs, name) {
					notes = append(notes, name+" is a repository of its own and is not kept")
				}
				continue
			}
			ignores = ignores || e.Name() == ".gitignore"
			if !ours(name) {
				if !portable(name) {
					notes = append(notes, fmt.Sprintf("%q is not kept: other systems have no such name", name))
				}
				continue
			}
			entry, data, note, err := t.file(d, name, old.files[name])
			if err != nil {
				return nil, notes, err
			}
			if note != "" {
				notes = append(notes, note)
			}
			if entry.ID == "" {
				if was, ok := old.files[name]; ok {
					now.files[name] = was // what cannot be kept as it is now stays as it was
				}
				continue
			}
			now.files[name] = entry
			if data != nil {
				now.data[name] = data
			}
			if _, known := old.files[name]; !known {
				untracked = append(untracked, name)
			}
		}
	}
	for name, e := range old.files {
		if _, here := now.files[name]; !here && (!portable(name) || e.Mode == git.ModeLink || e.Mode == git.ModeRepo) {
			now.files[name] = e // came from elsewhere and cannot be here
		}
	}
	if ignores {
		if err := t.ignored(ctx, now, untracked); err != nil {
			return nil, notes, err
		}
	}
	more, err := t.settle(ctx, d, now, old)
	return now, append(notes, more...), err
}

// file is one file as it is on disk; data is nil where it is the branch's.
func (t *Tree) file(d *durable.Dir, name string, was git.Entry) (e git.Entry, data []byte, note string, err error) {
	fi, err := d.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil, "", nil // gone since it was listed
	}
	if err != nil {
		return e, nil, "", err
	}
	switch {
	case !fi.Mode().IsRegular():
		return e, nil, name + " is not kept: it is no regular file", nil
	case fi.Size() > maxFile:
		return e, nil, fmt.Sprintf("%s is not kept: it has %d MB, at most %d are", name, fi.Size()>>20, maxFile>>20), nil
	}
	data, err = d.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil, "", nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return e, nil, name + " is not kept: it cannot be read", nil
	}
	if err != nil {
		return e, nil, "", err
	}
	e = git.Entry{Mode: git.ModeFile, ID: git.BlobID(data)}
	if fi.Mode()&0o100 != 0 || was.Mode == git.ModeExec && os.PathSeparator == '\\' {
		e.Mode = git.ModeExec
	}
	if e.ID == was.ID {
		data = nil
	}
	return e, data, "", nil
}

// ignored leaves out what a .gitignore in the checkout names. Git is asked only
// where there is one, and only about files that are new.
func (t *Tree) ignored(ctx context.Context, now *version, untracked []string) error {
	if len(untracked) == 0 {
		return nil
	}
	out, err := t.git().RunInput(ctx, []byte(strings.Join(untracked, "\x00")+"\x00"), "check-ignore", "-z", "--stdin", "--no-index")
	var e *git.Error
	if err != nil && (!errors.As(err, &e) || e.Code != 1) {
		return err
	}
	for name := range strings.SplitSeq(string(out), "\x00") {
		delete(now.files, name)
		delete(now.data, name)
	}
	return nil
}

// entryFile says that a path is a file of entries.
func entryFile(name string) bool {
	return name == "learnings.md" || name == "decisions.md" || name == "changelog.md"
}

// settle makes entries of what people did to entries, on disk too.
func (t *Tree) settle(ctx context.Context, d *durable.Dir, now, old *version) ([]string, error) {
	var notes []string
	for _, name := range []string{"changelog.md", "decisions.md", "learnings.md"} {
		was, known := old.files[name]
		is, here := now.files[name]
		if is == was || !known && !here {
			continue
		}
		var base []byte
		if known {
			list, err := t.r.git.Objects(ctx, was.ID)
			if err != nil {
				return notes, err
			}
			base = list[0].Data
		}
		s := mdfile.SettleEdits(now.data[name], base, t.r.o.Now())
		if !s.Changed() {
			continue
		}
		if err := d.WriteFile(name, s.Data, filePerm); err != nil {
			return notes, err
		}
		now.files[name] = git.Entry{Mode: git.ModeFile, ID: git.BlobID(s.Data)}
		now.data[name] = s.Data
		notes = append(notes, name+": "+s.String())
		t.wrote(name)
	}
	return notes, nil
}

// indexed is where a checkout's directory says which commit its index is of.
const indexed = "reprise-index"

// index brings git's index of the checkout to a commit and its files, for people
// who run git there. Reprise does not need it; so an index that someone else works
// on at this moment is left for the next time.
func (t *Tree) index(ctx context.Context, commit string, files map[string]git.Entry) error {
	mark := filepath.Join(t.admin(), indexed)
	if data, err := durable.Read(mark); err == nil && string(bytes.TrimSpace(data)) == commit {
		return nil
	}
	head, err := durable.Read(filepath.Join(t.admin(), "HEAD"))
	if err != nil || strings.TrimSpace(string(head)) != "ref: "+t.ref() {
		return nil // someone looks at another commit there
	}
	if fileExists(filepath.Join(t.admin(), "index.lock")) {
		if _, err := t.r.git.RemoveLeft(); err != nil {
			return err
		}
	}
	for _, e := range files {
		if e.Mode == git.ModeTree { // a directory that this system cannot have
			if files, err = t.r.git.Files(ctx, commit); err != nil {
				return err
			}
			break
		}
	}
	err = t.r.git.WriteIndex(t.admin(), files)
	if errors.Is(err, git.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	return t.r.o.Disk.WriteFileHot(mark, []byte(commit+"\n"), filePerm)
}

func sortedAgents(refs map[string]string) []string {
	names := map[string]bool{}
	for ref := range refs {
		for _, prefix := range []string{heads, tracking} {
			if name, ok := strings.CutPrefix(ref, prefix+agentPrefix); ok {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
