package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/mdfile"
)

// ErrDiverged says that the remote and this directory changed the same lines of
// a file that cannot be merged by rule. Both sides are committed and untouched.
var ErrDiverged = errors.New("this memory and the remote changed the same lines")

const syncTries = 5 // pushes lost to another machine before giving up

func (s *Store) git() *git.Git {
	return git.New(s.o.Dir, git.Options{Program: s.o.Git.Program, Vars: s.o.Git.Vars})
}

// ensureRepo makes the directory a repository when git is there and it is none.
func (s *Store) ensureRepo(ctx context.Context) error {
	if s.o.Git.Off {
		return nil
	}
	g := s.git()
	if !g.Installed() {
		return nil
	}
	d, err := s.open()
	if err != nil {
		return err
	}
	defer d.Close()
	if g.IsTop() && !halfMade(d) {
		return nil
	}
	c, err := d.Begin(ctx)
	if err != nil {
		return fmt.Errorf("make memory: %w", err)
	}
	defer c.Abort()
	if g.IsTop() && !halfMade(d) {
		return nil
	}
	if err := g.Init(ctx, "main"); err != nil {
		return fmt.Errorf("make memory: %w", err)
	}
	return nil
}

// halfMade says that git was killed while it made the repository. Making it
// again goes on from there.
func halfMade(d *durable.Dir) bool {
	if fi, err := d.Lstat(".git"); err != nil || !fi.IsDir() {
		return false
	}
	_, err := d.Lstat(".git/HEAD")
	return errors.Is(err, fs.ErrNotExist)
}

// mergeDir is where files are merged: out of the checkout's way in .git, or
// beside it where .git is a file that names a directory elsewhere, as in a
// linked worktree.
func mergeDir(d *durable.Dir) string {
	if fi, err := d.Lstat(".git"); err == nil && fi.IsDir() {
		return ".git/reprise-merge"
	}
	return ".reprise-merge"
}

// Sync commits what changed and exchanges it with the remote, if there is one.
// When both sides changed, it merges: logs, decisions and the index by rule,
// other files by lines. What cannot be merged is ErrDiverged, with everything
// committed here and nothing overwritten on either side.
func (s *Store) Sync(ctx context.Context, o SyncOptions) (SyncResult, error) {
	var res SyncResult
	if err := s.o.Access.MayWrite(); err != nil {
		return res, err
	}
	if s.o.Git.Off {
		return res, fmt.Errorf("sync memory: the repository is switched off in the settings")
	}
	g := s.git()
	if !g.Installed() {
		return res, fmt.Errorf("sync memory: %w", git.ErrNotInstalled)
	}
	if !o.DryRun {
		if err := s.Ensure(ctx); err != nil {
			return res, err
		}
	}
	if !g.IsTop() {
		return res, fmt.Errorf("sync memory: %w: %s; `reprise memory init` makes it one", git.ErrNotRepo, s.o.Dir)
	}
	if err := s.refuseNested(); err != nil {
		return res, fmt.Errorf("sync memory: %w", err)
	}
	var err error
	if res.Branch, err = g.Branch(ctx); err != nil {
		return res, fmt.Errorf("sync memory: %w", err)
	}
	if res.Remote, err = g.Remote(ctx, res.Branch); err != nil {
		return res, fmt.Errorf("sync memory: %w", err)
	}
	if o.DryRun {
		return s.dryRun(ctx, g, res)
	}
	// Commit before asking the remote: a backup that cannot be sent is still a
	// version that can be gone back to.
	if err := s.local(ctx, g, o, "", &res); err != nil {
		return res, err
	}
	if res.Remote == "" {
		res.Notes = append(res.Notes, fmt.Sprintf("no remote is set, so this stays on this machine; `git -C %q remote add origin URL` sets one", s.o.Dir))
		return res, nil
	}
	if o.NoPush {
		return res, nil
	}
	for try := 1; ; try++ {
		found, err := g.Fetch(ctx, res.Remote, res.Branch)
		if err != nil {
			return res, fmt.Errorf("sync memory: committed here, but not sent: %w", err)
		}
		theirs := ""
		if found {
			theirs = "refs/remotes/" + res.Remote + "/" + res.Branch
			if err := s.local(ctx, g, o, theirs, &res); err != nil {
				return res, err
			}
			if n, err := g.Ahead(ctx, theirs); err == nil && n == 0 {
				return res, nil
			}
		}
		err = g.Push(ctx, res.Remote, res.Branch)
		if err == nil {
			res.Pushed = true
			return res, nil
		}
		if !errors.Is(err, git.ErrRejected) || try == syncTries {
			return res, fmt.Errorf("sync memory: committed here, but not sent: %w", err)
		}
	}
}

// notMemory are pathspecs of what is never committed, whatever .gitignore says.
func notMemory() []string {
	return []string{
		":(exclude,glob)**/.reprise-*", ":(exclude,glob)**/.reprise-*/**", ":(exclude,glob)**/*.lock",
		":(exclude,glob)**/*.torn", ":(exclude,glob)**/*.tmp", ":(exclude,glob)**/.search-index.db*",
		":(exclude,glob)**/index.db", ":(exclude,glob)**/index.db-*",
	}
}

// local is the half of a sync that changes the checkout: under the writer lock,
// it commits and then merges theirs, when that is not empty.
func (s *Store) local(ctx context.Context, g *git.Git, o SyncOptions, theirs string, res *SyncResult) error {
	d, err := s.open()
	if err != nil {
		return err
	}
	defer d.Close()
	c, err := d.Begin(ctx)
	if err != nil {
		return fmt.Errorf("sync memory: %w", err)
	}
	defer c.Abort()
	if busy, err := g.Merging(ctx); err != nil {
		return fmt.Errorf("sync memory: %w", err)
	} else if busy {
		return fmt.Errorf("sync memory: a merge was begun by hand and not ended; run `git merge --continue` or `git merge --abort` in %s", s.o.Dir)
	}
	identity := g.Identity(ctx)
	if err := s.commit(ctx, g, identity, o, res); err != nil {
		return fmt.Errorf("sync memory: %w", err)
	}
	if theirs == "" {
		return nil
	}
	return s.merge(ctx, g, d, identity, theirs, res)
}

func (s *Store) commit(ctx context.Context, g *git.Git, identity []string, o SyncOptions, res *SyncResult) error {
	if _, err := g.Run(ctx, append([]string{"add", "-A", "--", "."}, notMemory()...)...); err != nil {
		return err
	}
	files, err := g.Staged(ctx)
	if err != nil || len(files) == 0 {
		return err
	}
	msg := o.Message
	if strings.TrimSpace(msg) == "" {
		msg = fmt.Sprintf("Memory of %s (%d files)", s.o.Now().UTC().Format("2006-01-02 15:04:05 UTC"), len(files))
	}
	args := append(append([]string{}, identity...), "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace", "-m", msg)
	if _, err := g.Run(ctx, args...); err != nil {
		return err
	}
	res.Committed = true
	res.Files = append(res.Files, files...)
	res.Commit, err = g.Resolve(ctx, "HEAD")
	return err
}

func (s *Store) dryRun(ctx context.Context, g *git.Git, res SyncResult) (SyncResult, error) {
	out, err := g.Run(ctx, append([]string{"status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--", "."}, notMemory()...)...)
	if err != nil {
		return res, fmt.Errorf("sync memory: %w", err)
	}
	for f := range strings.SplitSeq(string(out), "\x00") {
		if len(f) > 3 {
			res.Files = append(res.Files, f[3:])
		}
	}
	return res, nil
}

// refuseNested finds repositories within the memory: git would record them as a
// commit id, and their files would not be in the backup.
func (s *Store) refuseNested() error {
	return filepath.WalkDir(s.o.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Name() != ".git" {
			return nil
		}
		if filepath.Dir(path) == filepath.Clean(s.o.Dir) {
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		return fmt.Errorf("%s is a repository of its own and would not be backed up; move it out of the memory", filepath.Dir(path))
	})
}

// merge brings theirs into the current branch. The result is made beside the
// checkout and put in place by a fast-forward, so that no crash leaves conflict
// marks in a memory file.
func (s *Store) merge(ctx context.Context, g *git.Git, d *durable.Dir, identity []string, theirs string, res *SyncResult) error {
	head, err := g.Resolve(ctx, "HEAD")
	if err != nil {
		return fmt.Errorf("sync memory: %w", err)
	}
	their, err := g.Resolve(ctx, theirs)
	if err != nil || their == "" || their == head {
		return err
	}
	target := their
	if head != "" {
		if ok, err := g.IsAncestor(ctx, their, head); ok || err != nil {
			return err
		}
		ok, err := g.IsAncestor(ctx, head, their)
		if err != nil {
			return fmt.Errorf("sync memory: %w", err)
		}
		if !ok {
			if target, err = s.mergeCommit(ctx, g, d, identity, head, their); err != nil {
				return fmt.Errorf("sync memory: %w", err)
			}
		}
	}
	if err := g.FastForward(ctx, res.Branch, target, "merge "+theirs+": Fast-forward"); err != nil {
		return fmt.Errorf("sync memory: %w", err)
	}
	res.Merged = true
	res.Commit = target
	if head != "" {
		if files, err := g.Changed(ctx, head, target); err == nil && s.o.AfterWrite != nil {
			for _, f := range files {
				s.o.AfterWrite(f)
			}
		}
	}
	return nil
}

func (s *Store) mergeCommit(ctx context.Context, g *git.Git, d *durable.Dir, identity []string, head, their string) (string, error) {
	tree, conflicts, err := g.MergeTree(ctx, head, their)
	if err != nil {
		return "", err
	}
	if len(conflicts) > 0 {
		if tree, err = s.settle(ctx, g, d, tree, conflicts); err != nil {
			return "", err
		}
	}
	return g.CommitTree(ctx, identity, tree, "Merge the memory of another machine", head, their)
}

// settle resolves the conflicts of a merge by rule, or names those it cannot.
func (s *Store) settle(ctx context.Context, g *git.Git, d *durable.Dir, tree string, conflicts []git.Conflict) (string, error) {
	work := s.abs(mergeDir(d))
	if err := d.MkdirAll(mergeDir(d), dirPerm); err != nil {
		return "", fmt.Errorf("%w, and there is no room to merge them: %w", ErrDiverged, err)
	}
	defer d.RemoveAll(mergeDir(d))
	index := filepath.Join(work, "index")
	if _, err := g.RunIndex(ctx, index, "read-tree", tree); err != nil {
		return "", err
	}
	var stuck []string
	for _, c := range conflicts {
		data, err := s.settleFile(ctx, g, d, work, c)
		if err != nil {
			return "", err
		}
		if data == nil {
			stuck = append(stuck, c.Path)
			continue
		}
		id, err := g.PutBlob(ctx, data)
		if err != nil {
			return "", err
		}
		if _, err := g.RunIndex(ctx, index, "update-index", "--add", "--cacheinfo", c.Mode+","+id+","+c.Path); err != nil {
			return "", err
		}
	}
	if len(stuck) > 0 {
		return "", fmt.Errorf("%w: %s; both versions are kept, yours here and theirs at the remote; run `git merge FETCH_HEAD` in %s, mend them, commit, and sync again",
			ErrDiverged, strings.Join(stuck, ", "), s.o.Dir)
	}
	out, err := g.RunIndex(ctx, index, "write-tree")
	return strings.TrimSpace(string(out)), err
}

// settleFile merges one file; nil data when a person has to.
func (s *Store) settleFile(ctx context.Context, g *git.Git, d *durable.Dir, work string, c git.Conflict) ([]byte, error) {
	if c.Ours == "" || c.Theirs == "" || !strings.HasSuffix(c.Path, ".md") {
		return nil, nil
	}
	sides := make([]*mdfile.File, 3)
	for i, id := range []string{c.Ours, c.Base, c.Theirs} {
		var data []byte
		if id != "" {
			var err error
			if data, err = g.Blob(ctx, id); err != nil {
				return nil, err
			}
		}
		f, err := mdfile.Parse(data)
		if err != nil {
			return nil, nil
		}
		sides[i] = f
	}
	sides = sameDay(sides)
	if entryBlock(c.Path) {
		if data, ok := uniteEntries(sides); ok {
			return data, nil
		}
	}
	union := false
	switch stem := strings.TrimSuffix(strings.TrimPrefix(c.Path, blocksDir+"/"), ".md"); {
	case c.Path == indexFile:
		sides, union = sameRows(sides), true
	case episodicName().MatchString(stem), stem == "decisions":
		union = true
	}
	names := []string{"ours", "base", "theirs"}
	args := []string{"merge-file", "-p", "-q"}
	if union {
		args = append(args, "--union")
	}
	for i, f := range sides {
		if err := d.WriteFile(mergeDir(d)+"/"+names[i], f.Bytes(), filePerm); err != nil {
			return nil, err
		}
		args = append(args, filepath.Join(work, names[i]))
	}
	out, err := g.Run(ctx, args...)
	var ge *git.Error
	if errors.As(err, &ge) && ge.Code > 0 && ge.Code < 128 {
		return nil, nil // so many clashes are left
	}
	if err != nil {
		return nil, err
	}
	f, err := mdfile.Parse(out)
	if err != nil || checkMeta(f) != nil {
		return nil, nil
	}
	if c.Path == indexFile {
		f = oneRowEach(f)
	}
	return append([]byte{}, f.Bytes()...), nil
}

// entryBlock says that a file of a memory is one that entries are added to.
func entryBlock(name string) bool { return name == learnedBlock || name == decisionsBlock }

// uniteEntries merges a block of entries (ours, base, theirs) as the state's files of
// entries are merged: all entries of both sides, edits and cuts by hand as what they mean.
// By lines two entries that were added at the same place would clash, or run into each
// other. ok is false where there are no entries, or a person has to look at the rest.
func uniteEntries(sides []*mdfile.File) (data []byte, ok bool) {
	ours, base, theirs := sides[0], sides[1], sides[2]
	head := ours.Head()
	switch {
	case bytes.Equal(ours.Head(), theirs.Head()), bytes.Equal(theirs.Head(), base.Head()), len(base.Bytes()) == 0:
	case bytes.Equal(ours.Head(), base.Head()):
		head = theirs.Head()
	default:
		return nil, false
	}
	for _, f := range []*mdfile.File{ours, theirs} {
		if e := mdfile.ParseEntries(f.Body()); e.Foreign || len(e.Entries) == 0 {
			return nil, false
		}
	}
	body, _, _ := mdfile.MergeSettled(mdfile.SettleEdits(ours.Body(), base.Body(), time.Time{}), mdfile.SettleEdits(theirs.Body(), base.Body(), time.Time{}))
	return append(bytes.Clone(head), body...), true
}

// sameDay sets the `updated` day of all sides to the latest, so that it does
// not clash: which of two days is right is known without asking.
func sameDay(sides []*mdfile.File) []*mdfile.File {
	latest := ""
	for _, f := range sides {
		latest = max(latest, f.Value("updated"))
	}
	if latest == "" {
		return sides
	}
	out := make([]*mdfile.File, len(sides))
	for i, f := range sides {
		out[i] = f
		if f.Value("updated") != "" {
			if g, err := f.SetString("updated", latest); err == nil {
				out[i] = g
			}
		}
	}
	return out
}

// sameRows sets the day of each index row to the latest of all sides.
func sameRows(sides []*mdfile.File) []*mdfile.File {
	latest := map[string]string{}
	for _, f := range sides {
		if t, ok := findIndex(f); ok {
			for _, r := range t.Rows {
				k := strings.ToLower(t.rowName(r))
				latest[k] = max(latest[k], t.cell(r, t.updated))
			}
		}
	}
	out := make([]*mdfile.File, len(sides))
	for i, f := range sides {
		out[i] = f
		t, ok := findIndex(f)
		if !ok {
			continue
		}
		for n := range t.Rows {
			t, _ = findIndex(out[i])
			r := t.Rows[n]
			if day := latest[strings.ToLower(t.rowName(r))]; day != "" && t.updated >= 0 && t.cell(r, t.updated) != day {
				if g, err := out[i].SetCell(r, t.updated, day); err == nil {
					out[i] = g
				}
			}
		}
	}
	return out
}

// oneRowEach drops rows that a union merge doubled; of two rows for one block
// the first stays, which is ours.
func oneRowEach(f *mdfile.File) *mdfile.File {
	for {
		t, ok := findIndex(f)
		if !ok {
			return f
		}
		seen := map[string]bool{}
		dup := -1
		for i, r := range t.Rows {
			k := strings.ToLower(t.rowName(r))
			if k != "" && seen[k] {
				dup = i
				break
			}
			seen[k] = true
		}
		if dup < 0 {
			return f
		}
		g, err := f.RemoveRow(t.Rows[dup])
		if err != nil || bytes.Equal(g.Bytes(), f.Bytes()) {
			return f
		}
		f = g
	}
}

// MergeFile merges a file of a memory directory that lies in a state repository,
// below memory/: logs by union, the index row by row, and days to the latest.
// conflicts is how many places stand there twice, under a notice. Another file, or
// one that cannot be read as markdown, is not ok.
func MergeFile(path string, base, ours, theirs []byte) (merged []byte, conflicts int, ok bool) {
	name, below := strings.CutPrefix(path, "memory/")
	if !below || !strings.HasSuffix(name, ".md") {
		return nil, 0, false
	}
	sides := make([]*mdfile.File, 3)
	for i, data := range [][]byte{ours, base, theirs} {
		f, err := mdfile.Parse(data)
		if err != nil {
			return nil, 0, false
		}
		sides[i] = f
	}
	sides = sameDay(sides)
	if entryBlock(name) {
		if data, ok := uniteEntries(sides); ok {
			return data, 0, true
		}
	}
	stem := strings.TrimSuffix(strings.TrimPrefix(name, blocksDir+"/"), ".md")
	switch {
	case name == indexFile:
		sides = sameRows(sides)
		f, err := mdfile.Parse(mdfile.MergeUnion(sides[1].Bytes(), sides[0].Bytes(), sides[2].Bytes()))
		if err != nil {
			return nil, 0, false
		}
		return bytes.Clone(oneRowEach(f).Bytes()), 0, true
	case episodicName().MatchString(stem), stem == "decisions":
		return mdfile.MergeUnion(sides[1].Bytes(), sides[0].Bytes(), sides[2].Bytes()), 0, true
	}
	m := mdfile.MergeText(sides[1].Bytes(), sides[0].Bytes(), sides[2].Bytes())
	return m.Data, m.Conflicts, true
}
