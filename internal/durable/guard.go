package durable

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// A file that people save, too, is guarded: the change says what it was made from, and
// is not made where something else is there. New and old content change places in one
// step where the system can do that, so that what was there in the last instant is seen
// before anything of it is gone; the old content stays in the journal directory until
// the journal has gone. Guarded files come first: as long as one of them may be refused,
// nothing else has been moved.

// ErrChanged is the error of a change that was not made because a file that it was made
// from holds something else now; see [Change.Expect].
var ErrChanged = errors.New("it was changed by somebody else meanwhile")

// errNoExchange says that two files cannot change places in one step here.
var errNoExchange = errors.New("files cannot change places here")

const (
	droppedFile = "dropped.json"
	absent      = "-" // in place of a hash
	keptMark    = ".kept-"
)

// Expect makes Commit do nothing, with [ErrChanged], unless name holds data when the
// change is made; nil is for a file that must not be there. It is for names that the
// change writes. What somebody saved after a crash is kept likewise: the next
// recovery then drops the change, which [Dir.Dropped] tells.
func (c *Change) Expect(name string, data []byte) {
	if c.old == nil {
		c.old = map[string]string{}
	}
	c.old[name] = absent
	if data != nil {
		c.old[name] = sumOf(data)
	}
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// sum is the hash of a regular file, absent where there is none.
func (d *Dir) sum(name string) (string, error) {
	if fi, err := d.o.regular(name); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	} else if fi == nil {
		return absent, nil
	}
	f, err := d.o.openFile(name, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return absent, nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// guard is a guarded file while a journal is carried out.
type guard struct {
	e            journalEdit
	name, staged string // as this system spells them
	now, aside   string // hashes of what is in its place, and in the journal directory
}

// guards looks at all guarded files of a journal.
func (d *Dir) guards(j journal) ([]*guard, error) {
	var out []*guard
	for _, e := range j.Edits {
		if e.Old == "" || e.Remove {
			continue
		}
		n, err := d.target(e.Name)
		if err != nil {
			return nil, err
		}
		g := &guard{e: e, name: n, staged: inJournalDir(e.Staged)}
		if err := d.look(g); err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	return out, nil
}

func (d *Dir) look(g *guard) (err error) {
	if g.now, err = d.sum(g.name); err == nil {
		g.aside, err = d.sum(g.staged)
	}
	return err
}

// put reports whether the new content has come to its place, whatever stands there since.
func (g *guard) put() bool {
	return g.aside == absent || g.aside == g.e.Old || g.aside == g.e.SHA256 && g.now == g.e.SHA256
}

// refuses reports whether what somebody saved would be lost.
func (g *guard) refuses() bool {
	switch {
	case g.put():
		return false
	case g.aside == g.e.SHA256: // not yet put
		return g.now != g.e.Old
	}
	// What came out was not what the change was made from.
	return g.now == g.e.SHA256 || g.now == g.e.Old
}

// putGuarded brings the guarded files of a journal to their places, or takes back what of
// that was done and reports that the change is refused. It can be repeated after any crash.
func (d *Dir) putGuarded(j journal) (refused bool, err error) {
	list, err := d.guards(j)
	if err != nil {
		return false, err
	}
	for _, g := range list {
		if g.refuses() {
			return true, d.takeBack(list)
		}
	}
	for _, g := range list {
		if g.put() {
			continue
		}
		if g.aside != g.e.SHA256 { // and somebody saved once more since
			if err := d.keep(g); err != nil {
				return false, err
			}
			continue
		}
		if err := d.exchange(g); errors.Is(err, ErrChanged) {
			return true, d.takeBack(list)
		} else if err != nil {
			return false, err
		}
		if err := d.look(g); err != nil {
			return false, err
		}
		if g.refuses() {
			return true, d.takeBack(list)
		}
	}
	return false, nil
}

// exchange puts a guarded file's new content in place and the old one aside.
func (d *Dir) exchange(g *guard) error {
	if g.e.Old == absent {
		if err := d.o.step(OpRename, g.name); err != nil {
			return err
		}
		err := d.o.link(g.staged, g.name)
		if errors.Is(err, fs.ErrExist) {
			return ErrChanged
		}
		if err == nil {
			return nil
		}
		return d.moveStaged(g.staged, g.name) // there are no links here
	}
	err := d.o.swapFiles(g.staged, g.name)
	if !errors.Is(err, errNoExchange) {
		return err
	}
	// Without it, the time between this look and the next call is not guarded.
	if now, err := d.sum(g.name); err != nil {
		return err
	} else if now != g.e.Old {
		return ErrChanged
	}
	return retrySharing(func() error { return d.o.rename(g.staged, g.name) })
}

// takeBack puts what guarded files held before into their places again.
func (d *Dir) takeBack(list []*guard) error {
	for _, g := range list {
		if err := d.look(g); err != nil {
			return err
		}
		switch {
		case g.aside == absent || g.aside == g.e.SHA256:
			if g.e.Old == absent && g.now == g.e.SHA256 && g.aside == g.now {
				if err := d.o.removeFile(g.name); err != nil {
					return err
				}
			}
			continue
		case g.now != g.e.SHA256:
			if err := d.keep(g); err != nil {
				return err
			}
			continue
		}
		if err := d.o.swapFiles(g.staged, g.name); err != nil {
			return err
		}
		if err := d.look(g); err != nil {
			return err
		}
		if g.aside == g.e.SHA256 {
			continue
		}
		// Somebody saved in this very moment: the latest stands in its place again.
		if err := d.o.swapFiles(g.staged, g.name); err != nil {
			return err
		}
		if err := d.keep(g); err != nil {
			return err
		}
	}
	return nil
}

// keep puts what stands aside beside its file, unless that is what the change was made
// from or the change's own: nobody else has it.
func (d *Dir) keep(g *guard) error {
	sum, err := d.sum(g.staged)
	if err != nil || sum == absent || sum == g.e.Old || sum == g.e.SHA256 {
		return err
	}
	if a, aerr := d.o.lstat(g.staged); aerr == nil {
		if b, berr := d.o.lstat(g.name); berr == nil && os.SameFile(a, b) {
			return nil // it is in its place, too
		}
	}
	if err := d.o.renameFile(g.staged, g.name+keptMark+randomName(tempRandom)); err != nil {
		return err
	}
	return d.o.syncDir(filepath.Dir(g.name))
}

// keepLate looks once more at what stands aside: an editor that had the file open may
// have written into it after it was put there.
func (d *Dir) keepLate(j journal) error {
	list, err := d.guards(j)
	if err != nil {
		return err
	}
	for _, g := range list {
		if err := d.keep(g); err != nil {
			return err
		}
	}
	return nil
}

// drop ends a journal that is not carried out. noted leaves word of it for [Dir.Dropped].
func (d *Dir) drop(noted bool) error {
	if noted {
		if err := d.o.renameFile(inJournalDir(journalFile), inJournalDir(droppedFile)); err != nil {
			return err
		}
		if err := d.o.syncDir(journalDir); err != nil {
			return err
		}
	} else if err := d.forgetJournal(); err != nil {
		return err
	}
	d.dropStaged()
	return nil
}

// Dropped are the names of the files of a change that was cut short by a crash and was
// then not made, because somebody had saved one of them; the last one, until
// [Dir.ForgetDropped].
func (d *Dir) Dropped() ([]string, error) {
	data, err := d.ReadFile(path.Join(journalDir, droppedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j, err := d.parseJournal(data)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range j.Edits {
		names = append(names, e.Name)
	}
	return names, nil
}

// ForgetDropped forgets what [Dir.Dropped] tells.
func (d *Dir) ForgetDropped() error {
	if _, err := d.o.lstat(inJournalDir(droppedFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return d.o.removeFile(inJournalDir(droppedFile))
}

// IsKept reports whether a name is that of an edit of the file base that was saved in the
// very moment of a change and was put beside it.
func IsKept(name, base string) bool {
	rest, ok := strings.CutPrefix(name, base+keptMark)
	return ok && len(rest) == tempRandom
}

// swapFiles has two files change places in one step.
func (o ops) swapFiles(a, b string) error {
	if err := o.step(OpRename, b); err != nil {
		return err
	}
	from, err := o.openFile(filepath.Dir(a), os.O_RDONLY|dirFlag, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := o.openFile(filepath.Dir(b), os.O_RDONLY|dirFlag, 0)
	if err != nil {
		return err
	}
	defer to.Close()
	return swapAt(from, filepath.Base(a), to, filepath.Base(b))
}
