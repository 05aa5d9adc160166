package setup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"reprise/internal/durable"
)

// maxSettings bounds a settings file. Claude Code's grows with use.
const maxSettings = 64 << 20

// Change is what was done, or would be done, to one file.
type Change struct {
	File     string   `json:"file"`             // as the client knows it
	What     string   `json:"what"`             // of reprise is in it: "MCP server", "hooks", "hooks and MCP server", "skill" or "instructions"
	Real     string   `json:"real,omitempty"`   // where a symbolic link leads, if it is one
	Action   string   `json:"action"`           // "created", "changed", "removed" or "unchanged"
	Backup   string   `json:"backup,omitempty"` // copy of what was there
	Diff     string   `json:"diff,omitempty"`   // unified
	Warnings []string `json:"warnings,omitempty"`

	// left are directories that were made for the file and hold something else yet, the
	// outermost first.
	left []string
}

var bom = []byte("\ufeff")

// input is what an edit starts from.
type input struct {
	text   []byte // without byte order mark
	exists bool
	note   *note
	raw    []byte // as it is on disk
}

// edit turns a file's text into the text to write, without byte order mark.
// gone means that the file should not exist.
type edit func(in input) (text []byte, gone bool, err error)

// changer changes files with backup, lock and note.
type changer struct {
	notes string // directory of the notes
	now   func() time.Time
	dry   bool
	root  string // what a link in a project must not lead out of; "" for the user's own files
	// always has the note told of who uses a file even where the file is as it
	// should be: several clients read one skill.
	always bool
}

// note is what is remembered of an edit, so that it can be undone exactly.
type note struct {
	V       int             `json:"v"`
	File    string          `json:"file"`
	Created bool            `json:"created"`           // the file was made by reprise
	Entries map[string]made `json:"entries,omitempty"` // by path in the file
	Before  string          `json:"before,omitempty"`  // SHA-256 of the text before the first edit
	After   string          `json:"after,omitempty"`   // and after the last
	Backup  string          `json:"backup,omitempty"`  // copy of the text before the first edit
	// Backups are all copies that were made, and Dirs the directories, outermost
	// first: an exact undo takes them along.
	Backups []string `json:"backups,omitempty"`
	Dirs    []string `json:"dirs,omitempty"`
}

// made is one entry that was added.
type made struct {
	Empties int `json:"empties"` // objects around it that were made for it
}

func sum(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

func (c changer) noteFile(real string) string {
	return filepath.Join(c.notes, sum([]byte(real))[:24]+".json")
}

func (c changer) readNote(real string) (*note, error) {
	n := &note{V: 1, File: real, Entries: map[string]made{}}
	data, err := durable.Read(c.noteFile(real))
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read note of %s: %w", real, err)
	}
	if err := json.Unmarshal(data, n); err != nil || n.V != 1 {
		// Only exactness hangs on it: without it an entry is still taken out.
		return &note{V: 1, File: real, Entries: map[string]made{}}, nil
	}
	if n.Entries == nil {
		n.Entries = map[string]made{}
	}
	return n, nil
}

func (c changer) writeNote(real string, n *note) error {
	if len(n.Entries) == 0 {
		err := durable.Remove(c.noteFile(real))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	data, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return fmt.Errorf("note change of %s: %w", real, err)
	}
	return durable.WriteFile(c.noteFile(real), append(data, '\n'), 0o600)
}

// apply runs e on file. tell gets the note, before it is written, to say what
// was made or unmade; it is not called when nothing changes, but for always.
func (c changer) apply(ctx context.Context, file string, perm fs.FileMode, e edit, tell func(*note)) (Change, error) {
	ch := Change{File: file}
	real, err := c.resolve(file)
	if err != nil {
		return ch, err
	}
	if real != file {
		ch.Real = real
	}
	if !c.dry {
		if err := durable.MkdirAll(c.notes, 0o700); err != nil {
			return ch, fmt.Errorf("change %s: %w", file, err)
		}
		unlock, err := durable.Lock(ctx, filepath.Join(c.notes, "lock")) // one for all: it stays
		if err != nil {
			return ch, fmt.Errorf("change %s: %w", file, err)
		}
		defer unlock()
	}
	// A client writes its settings whenever it likes and knows nothing of our
	// lock: what was read must still be there when it is replaced.
	for range 5 {
		again, err := c.once(&ch, real, perm, e, tell)
		if err != nil || !again {
			return ch, err
		}
	}
	return ch, fmt.Errorf("change %s: another program keeps writing it; close the client and try again", file)
}

func (c changer) once(ch *Change, real string, perm fs.FileMode, e edit, tell func(*note)) (again bool, err error) {
	raw, exists, err := readSettings(real)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", ch.File, err)
	}
	n, err := c.readNote(real)
	if err != nil {
		return false, err
	}
	text, mark := bytes.CutPrefix(raw, bom)
	next, gone, err := e(input{text, exists, n, raw})
	if err != nil {
		return false, fmt.Errorf("%s: %w", ch.File, err)
	}
	if mark && !gone {
		next = append(bytes.Clone(bom), next...)
	}
	if exists != gone && bytes.Equal(next, raw) || gone && !exists {
		ch.Action = "unchanged"
		if c.always && !c.dry {
			before := len(n.Entries)
			if tell(n); len(n.Entries) != before {
				return false, c.writeNote(real, n)
			}
		}
		return false, nil
	}
	if ch.Action = action(exists, gone); gone {
		next = nil
	}
	ch.Diff = diff(ch.File, raw, next, exists, gone)
	if err := mayReplace(real, exists); err != nil {
		return false, fmt.Errorf("change %s: %w", ch.File, err)
	}
	if c.dry {
		return false, c.mayChange(ch.File, real)
	}
	// What an exact undo replaces is what was there plus our entries: no copy of
	// that is worth keeping.
	exact := n.undoes(next, gone)
	switch {
	case exact:
	case exists:
		if ch.Backup, err = c.backup(real, raw); err != nil {
			return false, err
		}
	default:
		n.Dirs = append(n.Dirs, missingDirs(filepath.Dir(real))...)
		if err := durable.MkdirAll(filepath.Dir(real), perm|perm>>2&0o111); err != nil {
			return false, fmt.Errorf("make directory for %s: %w", ch.File, err)
		}
	}
	if now, still, err := readSettings(real); err != nil || still != exists || !bytes.Equal(now, raw) {
		if ch.Backup != "" {
			if err := durable.Remove(ch.Backup); err != nil {
				return false, err
			}
			ch.Backup = ""
		}
		return true, err
	}
	if !exact && (len(n.Entries) == 0 || n.After != sum(raw)) {
		n.Created, n.Before, n.Backup = !exists, sum(raw), ch.Backup
		n.Backups = nil // older ones hold what others have changed since: they stay
	}
	if ch.Backup != "" {
		n.Backups = append(n.Backups, ch.Backup)
	}
	n.After = sum(next)
	tell(n)
	// A note of what is not in the file does no harm, a change without its note
	// cannot be undone exactly: the note comes first and goes last.
	var undo func() error
	if len(n.Entries) > 0 {
		if undo, err = c.notedFirst(real, n); err != nil {
			return false, err
		}
	}
	if err := replace(ch.File, real, next, gone, perm); err != nil {
		if undo != nil {
			err = errors.Join(err, undo())
		}
		return false, err
	}
	if undo != nil {
		return false, nil
	}
	if exact {
		ch.left = n.sweep(real)
	}
	return false, c.writeNote(real, n)
}

// replace makes a file what it is to be.
func replace(file, real string, next []byte, gone bool, perm fs.FileMode) error {
	var err error
	if gone {
		err = durable.Remove(real)
	} else {
		err = durable.WriteFile(real, next, perm)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

func action(exists, gone bool) string {
	switch {
	case !exists:
		return "created"
	case gone:
		return "removed"
	}
	return "changed"
}

// mayChange says why a file cannot be written, or the note of it.
func (c changer) mayChange(file, real string) error {
	for _, dir := range []string{filepath.Dir(real), c.notes} {
		if err := mayWrite(dir); err != nil {
			return fmt.Errorf("change %s: %w", file, err)
		}
	}
	return nil
}

// mayReplace says why a file is to stay as it is: a new one could be put in its place all the
// same, but somebody has made it read-only.
func mayReplace(real string, exists bool) error {
	if !exists {
		return nil
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if err := writableFile(real, info.Mode()); err != nil {
		return fmt.Errorf("it is read-only (mode %04o), and stays as it is; make it writable (`chmod u+w`) and try again: %w", info.Mode().Perm(), err)
	}
	return nil
}

// mayWrite says why files cannot be made in a directory, or in the one above it where it
// is not there yet, as far as that can be known without trying.
func mayWrite(dir string) error {
	for {
		info, err := os.Stat(dir)
		up := filepath.Dir(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist) && up != dir:
			dir = up
			continue
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is not a directory; move it away", dir)
		}
		if err := writableDir(dir); err != nil {
			return fmt.Errorf("directory %s cannot be written: %w", dir, err)
		}
		return nil
	}
}

// told adds to an error what became of the files: that all are as they were, or which are
// changed already.
func told(err error, changes []Change) error {
	if err == nil {
		return nil
	}
	var done []string
	for _, ch := range changes {
		if ch.Action != "unchanged" {
			done = append(done, fmt.Sprintf("%s (%s)", ch.File, ch.What))
		}
	}
	if len(done) == 0 {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return fmt.Errorf("%w; done already: %s; once that is mended the same command does the rest", err, strings.Join(done, ", "))
}

// undoes reports whether a text is the one from before the first edit.
func (n *note) undoes(next []byte, gone bool) bool {
	if len(n.Entries) == 0 {
		return false
	}
	if gone {
		return n.Created
	}
	return !n.Created && n.Before != "" && sum(next) == n.Before
}

// sweep removes the copies and empty directories that edits of a file left, now
// that the file is as it was, and gives back the directories that are not empty yet. What
// cannot be removed does no harm.
func (n *note) sweep(real string) (left []string) {
	for _, b := range n.Backups {
		if strings.HasPrefix(b, real+".bak-") {
			_ = durable.Remove(b)
		}
	}
	return swept(n.Dirs)
}

// swept removes directories, outermost first in the list, as far as they are empty, and gives
// back the others.
func swept(dirs []string) []string {
	for i, d := range slices.Backward(dirs) {
		if err := durable.Remove(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return dirs[:i+1] // something else is in it, and so in those above
		}
	}
	return nil
}

// sweepLeft removes the directories that held another of the files when theirs went.
func sweepLeft(changes []Change) {
	for _, ch := range changes {
		swept(ch.left)
	}
}

// missingDirs are the directories down to dir that do not exist, outermost first.
func missingDirs(dir string) []string {
	var out []string
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		out = append(out, dir)
		dir = filepath.Dir(dir)
	}
	slices.Reverse(out)
	return out
}

// notedFirst writes a note and gives the function that puts back the one before.
func (c changer) notedFirst(real string, n *note) (undo func() error, err error) {
	old, err := durable.Read(c.noteFile(real))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read note of %s: %w", real, err)
	}
	missing := err != nil
	if err := c.writeNote(real, n); err != nil {
		return nil, fmt.Errorf("note change of %s: %w", real, err)
	}
	return func() error {
		if missing {
			return durable.Remove(c.noteFile(real))
		}
		return durable.WriteFile(c.noteFile(real), old, 0o600)
	}, nil
}

// resolve follows symbolic links, deliberately: people keep their settings in
// a repository of their own and link to them, and replacing the link by a file
// would break that. A link to nothing is refused, and so is a link in a project
// that leads out of it: a repository must not steer what is written elsewhere.
func (c changer) resolve(file string) (string, error) {
	real, err := filepath.EvalSymlinks(file)
	if errors.Is(err, fs.ErrNotExist) {
		if _, lerr := os.Lstat(file); lerr == nil {
			return "", fmt.Errorf("change %s: it is a symbolic link to something that does not exist; make the file it names, or remove the link", file)
		}
		real, err = resolveParent(file)
	}
	if err != nil {
		return "", fmt.Errorf("change %s: %w; remove the link or correct the path, and try again", file, err)
	}
	if c.root != "" {
		root, err := filepath.EvalSymlinks(c.root)
		if err != nil {
			return "", fmt.Errorf("change %s: %w", file, err)
		}
		rel, err := filepath.Rel(root, real)
		if err != nil || !filepath.IsLocal(rel) {
			return "", fmt.Errorf("change %s: it is a symbolic link that leads out of the project, to %s", file, real)
		}
	}
	return real, nil
}

// resolveParent resolves the part of a path that exists.
func resolveParent(file string) (string, error) {
	dir := filepath.Dir(file)
	if dir == file {
		return file, nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		real, err = resolveParent(dir)
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(real, filepath.Base(file)), nil
}

// readSettings reads a regular file of UTF-8 text. Every error but "not there"
// stops the change: a file that cannot be read must never be taken for empty.
func readSettings(path string) ([]byte, bool, error) {
	data, err := durable.ReadFile(path, maxSettings)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case errors.Is(err, durable.ErrNotRegular):
		return nil, false, errors.New("it is not a regular file")
	case errors.Is(err, durable.ErrTooLong):
		return nil, false, fmt.Errorf("it is larger than %d MiB", maxSettings>>20)
	case err != nil:
		return nil, false, err
	}
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) || !utf8.Valid(data) {
		return nil, false, errors.New("it is not UTF-8 text; save it as UTF-8 first")
	}
	return data, true, nil
}

// backup copies what is there to a new file beside it.
func (c changer) backup(real string, data []byte) (string, error) {
	info, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("back up %s: %w", real, err)
	}
	stamp := real + ".bak-" + c.now().UTC().Format("20060102T150405Z")
	for i := 1; i <= 100; i++ {
		name := stamp
		if i > 1 {
			name = fmt.Sprintf("%s-%d", stamp, i)
		}
		f, err := durable.Create(name, info.Mode().Perm())
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("back up %s: %w", real, err)
		}
		_, err = f.Write(data)
		if err == nil {
			err = f.Sync()
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil { // who restored half a copy would lose what the file has
			return "", errors.Join(fmt.Errorf("back up %s: %w", real, err), durable.Remove(name))
		}
		return name, nil
	}
	return "", fmt.Errorf("back up %s: there are too many backups of this second", real)
}

// restore is what undoing the edits named by keys may put back: the text before
// them, when nothing was changed since and nothing but them was made. gone means
// that there was no file.
func (n *note) restore(raw []byte, keys ...string) (text []byte, gone, ok bool) {
	if len(n.Entries) == 0 || n.After == "" || n.After != sum(raw) {
		return nil, false, false
	}
	for k := range n.Entries {
		if !slices.Contains(keys, k) {
			return nil, false, false
		}
	}
	if n.Created {
		return nil, true, true
	}
	data, err := durable.Read(n.Backup)
	if n.Backup == "" || err != nil || sum(data) != n.Before {
		return nil, false, false
	}
	return bytes.TrimPrefix(data, bom), false, true
}

func diff(file string, before, after []byte, exists, gone bool) string {
	from, to := file, file
	if !exists {
		from = os.DevNull
	}
	if gone {
		to = os.DevNull
	}
	return udiff.Unified(from, to, string(before), string(after))
}
