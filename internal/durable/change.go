package durable

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// A change of several files is a redo log. Commit first writes every new
// content into the journal directory and syncs it; then it puts the journal
// file in place by one rename, and that is the moment at which the change has
// happened: before it, recovery throws the contents away, after it, recovery
// moves what is left of them into place. Each content is moved, not copied, so
// a content that is no longer in the journal directory is one that arrived.
// The journal goes when everything has arrived and lasts.

const (
	journalDir  = ".reprise-journal"
	journalLock = "lock"
	journalFile = "journal.json"
	stagedExt   = ".new"
)

var (
	// ErrPending is the error of a change that has happened but whose files
	// are not all in place for good, because the disk failed. The next
	// [OpenDir], [Dir.Begin] or [Dir.Recover] puts them there.
	ErrPending = errors.New("change recorded but not finished; it is finished when the directory is next opened")
	// ErrDone is the error of using a change after Commit or Abort.
	ErrDone = errors.New("change already committed or aborted")
)

// Change is several files changed as one: all of them or, whatever happens,
// none. It is not safe for use by several goroutines.
type Change struct {
	d      *Dir
	unlock func() error
	order  []string
	edits  map[string]edit
	old    map[string]string // hashes of what files are expected to hold
	err    error
	done   bool
}

type edit struct {
	remove bool
	data   []byte
	perm   fs.FileMode
}

// journal is the format of journal.json.
type journal struct {
	V     int           `json:"v"`
	ID    string        `json:"id"`
	Edits []journalEdit `json:"edits"`
}

type journalEdit struct {
	Name   string `json:"name"`
	Remove bool   `json:"remove,omitempty"`
	Staged string `json:"staged,omitempty"` // file in the journal directory
	SHA256 string `json:"sha256,omitempty"`
	Size   int64  `json:"size,omitempty"`
	// Old is the hash of what the change was made from, "-" for no file; empty where
	// whatever is there is replaced.
	Old string `json:"old,omitempty"`
}

// Versions of journal.json: the second has files with what they held before, which a
// program that knows only the first must not carry out.
const (
	journalPlain   = 1
	journalGuarded = 2
)

func inJournal(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return strings.EqualFold(first, journalDir) // some file systems ignore case
}

func inJournalDir(name string) string { return filepath.Join(journalDir, name) }

// Begin starts a change. It takes the directory's change lock, waiting for it until
// ctx ends, and keeps it until Commit or Abort.
func (d *Dir) Begin(ctx context.Context) (*Change, error) {
	if err := d.o.mkdirAll(journalDir, 0o700); err != nil {
		return nil, fmt.Errorf("begin change of %s: %w", d.path, err)
	}
	unlock, err := d.o.lock(ctx, inJournalDir(journalLock))
	if err != nil {
		return nil, fmt.Errorf("begin change of %s: %w", d.path, err)
	}
	if err := d.recoverLocked(); err != nil {
		_ = unlock()
		return nil, err
	}
	return &Change{d: d, unlock: unlock, edits: map[string]edit{}}, nil
}

// Write makes name hold data once the change is committed. The data must not be
// changed until then. A bad name is reported by Commit.
func (c *Change) Write(name string, data []byte, perm fs.FileMode) {
	c.add(name, edit{data: data, perm: perm})
}

// Remove makes name be gone once the change is committed. A name that is not
// there is no error.
func (c *Change) Remove(name string) { c.add(name, edit{remove: true}) }

func (c *Change) add(name string, e edit) {
	if _, err := c.d.target(name); err != nil && c.err == nil {
		c.err = err
	}
	if _, ok := c.edits[name]; !ok {
		c.order = append(c.order, name)
	}
	c.edits[name] = e
}

// Abort gives the change up. After Commit or Abort it does nothing, so that it
// can be deferred.
func (c *Change) Abort() error {
	if c.done {
		return nil
	}
	c.done = true
	return c.unlock()
}

// Commit makes the change. On an error that is not [ErrPending] nothing
// happened; [ErrChanged] is that of a file that holds something else than expected. A file that exists keeps its permission bits; directories that are
// missing are made.
func (c *Change) Commit() (err error) {
	if c.done {
		return fmt.Errorf("commit change of %s: %w", c.d.path, ErrDone)
	}
	c.done = true
	defer func() {
		if uerr := c.unlock(); err == nil && uerr != nil {
			err = fmt.Errorf("commit change of %s: done, but: unlock: %w", c.d.path, uerr)
		}
	}()
	if c.err != nil {
		return fmt.Errorf("commit change: %w", c.err)
	}
	switch {
	case len(c.order) == 0:
		return nil
	case len(c.order) == 1 && len(c.old) == 0:
		return c.one(c.order[0])
	}
	j, err := c.stage()
	if err == nil {
		err = c.d.expected(j)
	}
	if err != nil {
		c.d.dropStaged()
		return fmt.Errorf("commit change of %s (nothing was changed): %w", c.d.path, err)
	}
	if err := c.d.writeJournal(j); err != nil {
		if rerr := c.d.forgetJournal(); rerr != nil {
			return fmt.Errorf("commit change of %s: %w: %w", c.d.path, ErrPending, err)
		}
		c.d.dropStaged()
		return fmt.Errorf("commit change of %s (nothing was changed): %w", c.d.path, err)
	}
	refused, err := c.d.apply(j)
	if err == nil && refused {
		if err = c.d.drop(false); err == nil {
			return fmt.Errorf("commit change of %s (nothing was changed): %w", c.d.path, ErrChanged)
		}
	}
	if err != nil {
		return fmt.Errorf("commit change of %s: %w: %w", c.d.path, ErrPending, err)
	}
	return nil
}

// expected refuses a change whose files hold something else than expected, before there
// is a journal.
func (d *Dir) expected(j journal) error {
	list, err := d.guards(j)
	if err != nil {
		return err
	}
	for _, g := range list {
		if g.now != g.e.Old {
			return fmt.Errorf("%s: %w", g.e.Name, ErrChanged)
		}
	}
	return nil
}

// one makes a change of a single file, which is atomic by itself and needs no
// journal.
func (c *Change) one(name string) error {
	d, e := c.d, c.edits[name]
	n, err := d.local(name)
	if err != nil {
		return err
	}
	old, err := d.o.regular(n)
	switch {
	case err != nil:
	case e.remove && old == nil:
		return nil
	case e.remove:
		err = d.o.removeFile(n)
	default:
		if err = d.o.mkdirAll(filepath.Dir(n), 0o755); err == nil {
			err = d.o.replace(n, e.data, e.perm, old, false)
		}
	}
	if err != nil {
		return fmt.Errorf("commit change of %s (nothing was changed): %w", d.o.show(n), err)
	}
	if err := d.o.syncDir(filepath.Dir(n)); err != nil {
		return fmt.Errorf("commit change of %s: %w: sync directory: %w", d.o.show(n), ErrPending, err)
	}
	return nil
}

// stage writes the new contents into the journal directory, so that they last.
func (c *Change) stage() (journal, error) {
	d := c.d
	j := journal{V: journalPlain, ID: randomName(16)}
	for i, name := range c.order {
		n, err := d.local(name)
		if err != nil {
			return j, err
		}
		old, err := d.o.regular(n)
		if err != nil {
			return j, fmt.Errorf("%s: %w", name, err)
		}
		e := c.edits[name]
		if e.remove {
			if old != nil {
				j.Edits = append(j.Edits, journalEdit{Name: name, Remove: true})
			}
			continue
		}
		if err := d.o.mkdirAll(filepath.Dir(n), 0o755); err != nil {
			return j, err
		}
		staged := j.ID + "-" + strconv.Itoa(i) + stagedExt
		if _, err := d.o.writeTemp(inJournalDir(staged), e.data, e.perm, old); err != nil {
			return j, fmt.Errorf("%s: %w", name, err)
		}
		if c.old[name] != "" {
			j.V = journalGuarded
		}
		j.Edits = append(j.Edits, journalEdit{
			Name: name, Staged: staged, SHA256: sumOf(e.data), Size: int64(len(e.data)), Old: c.old[name],
		})
	}
	return j, d.o.syncDir(journalDir)
}

func (d *Dir) writeJournal(j journal) error {
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return d.o.replace(inJournalDir(journalFile), append(data, '\n'), 0o600, nil, true)
}

// forgetJournal takes the journal away for good. Only then may the staged
// contents go: without them, the journal would be taken for one that was
// carried out.
func (d *Dir) forgetJournal() error {
	if _, err := d.o.lstat(inJournalDir(journalFile)); errors.Is(err, fs.ErrNotExist) {
		return nil // it never came to be
	}
	if err := d.o.removeFile(inJournalDir(journalFile)); err != nil {
		return err
	}
	return d.o.syncDir(journalDir)
}

// apply carries out a journal; it can be repeated after any crash. A journal that is
// refused is not carried out at all, and still there.
func (d *Dir) apply(j journal) (refused bool, err error) {
	if refused, err := d.putGuarded(j); err != nil || refused {
		return refused, err
	}
	return false, d.applyRest(j)
}

func (d *Dir) applyRest(j journal) error {
	dirs := map[string]bool{}
	for _, e := range j.Edits {
		n, err := d.target(e.Name)
		if err != nil {
			return err
		}
		dirs[filepath.Dir(n)] = true
		if e.Old != "" {
			continue // it is there
		}
		if e.Remove {
			if err := d.o.removeFile(n); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		}
		if _, err := d.o.regular(n); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		if err := d.moveStaged(inJournalDir(e.Staged), n); err != nil {
			return err
		}
	}
	for dir := range dirs {
		if err := d.o.syncDir(dir); err != nil {
			return err
		}
	}
	if err := d.forgetJournal(); err != nil || j.V != journalGuarded {
		return err
	}
	if err := d.keepLate(j); err != nil {
		return err
	}
	d.dropStaged()
	return nil
}

// moveStaged puts a content in its place, unless it is there already.
func (d *Dir) moveStaged(staged, name string) error {
	err := d.o.renameFile(staged, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, serr := d.o.lstat(staged); errors.Is(serr, fs.ErrNotExist) {
		return nil // arrived before a crash
	}
	// Someone removed the directory that it goes to.
	if err := d.o.mkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return d.o.renameFile(staged, name)
}

// Recover finishes a change that a crash left half done, or takes away what is
// left of one that had not happened yet. It waits for a change that is being
// made. [OpenDir] and [Dir.Begin] call it; without a journal it does nothing,
// not even in a directory that cannot be written.
func (d *Dir) Recover() error {
	if _, err := d.o.lstat(inJournalDir(journalFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := d.o.lock(context.Background(), inJournalDir(journalLock))
	if err != nil {
		return fmt.Errorf("recover %s: %w", d.path, err)
	}
	err = d.recoverLocked()
	if uerr := unlock(); err == nil {
		err = uerr
	}
	return err
}

func (d *Dir) recoverLocked() error {
	data, err := d.ReadFile(journalDir + "/" + journalFile)
	if errors.Is(err, fs.ErrNotExist) {
		d.dropStaged()
		return nil
	}
	if err != nil {
		return fmt.Errorf("recover %s: %w", d.path, err)
	}
	j, err := d.parseJournal(data)
	if err != nil {
		return fmt.Errorf("recover %s: its journal %s cannot be used (move it away once you have looked at it): %w",
			d.path, d.o.show(inJournalDir(journalFile)), err)
	}
	refused, err := d.apply(j)
	if err == nil && refused {
		err = d.drop(true)
	}
	if err != nil {
		return fmt.Errorf("recover %s: finish the recorded change: %w", d.path, err)
	}
	d.dropStaged()
	return nil
}

// parseJournal reads a journal and checks what it is about to do, before any of
// it is done.
func (d *Dir) parseJournal(data []byte) (journal, error) {
	var j journal
	if err := json.Unmarshal(data, &j); err != nil {
		return j, err
	}
	if j.V != journalPlain && j.V != journalGuarded {
		return j, fmt.Errorf("version %d is not one that this program knows", j.V)
	}
	for _, e := range j.Edits {
		if _, err := d.target(e.Name); err != nil {
			return j, err
		}
		if e.Remove {
			continue
		}
		if strings.ContainsAny(e.Staged, `/\`) || filepath.Ext(e.Staged) != stagedExt {
			return j, fmt.Errorf("%q is no content of the journal", e.Staged)
		}
		if e.Old != "" {
			continue // what stands there may be the old content, or what somebody saved
		}
		content, err := d.ReadFile(journalDir + "/" + e.Staged)
		if errors.Is(err, fs.ErrNotExist) {
			continue // arrived already
		}
		if err != nil {
			return j, err
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != e.SHA256 {
			return j, fmt.Errorf("the new content of %s is damaged", e.Name)
		}
	}
	return j, nil
}

// dropStaged removes contents and temporary files that no journal names. What
// cannot be removed now is removed by the next change.
func (d *Dir) dropStaged() {
	list, err := d.o.readDir(journalDir)
	if err != nil {
		return
	}
	synced := false
	for _, e := range list {
		if filepath.Ext(e.Name()) != stagedExt && !IsTemp(e.Name()) {
			continue
		}
		// That there is no journal must last before its contents go.
		if !synced && d.o.syncDir(journalDir) != nil {
			return
		}
		synced = true
		_ = d.o.removeFile(inJournalDir(e.Name()))
	}
}
