package setup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
	disk   durable.Disk
	// left gets the files whose directories hold something else yet; nil where nothing is
	// taken out.
	left *[]string
}

// note is what is remembered of an edit, so that it can be undone exactly, also where whoever
// made it was killed in the middle: it is written before anything else is.
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
	// From is the text that the last edit began with, as [state] has it, and Was the note
	// before it: where the file is still so, that edit was never made.
	From string `json:"from,omitempty"`
	Was  *note  `json:"was,omitempty"`
	// Gone says that the last edit took out what was there last.
	Gone bool `json:"gone,omitempty"`
}

// made is one entry that was added.
type made struct {
	Empties int `json:"empties"` // objects around it that were made for it
}

func sum(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// state stands for what a file holds; a file that is not there is another than an empty one.
func state(text []byte, exists bool) string {
	if !exists {
		return "none"
	}
	return sum(text)
}

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
	if len(n.Entries) == 0 && len(n.Dirs) == 0 {
		err := c.disk.Remove(c.noteFile(real))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	data, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return fmt.Errorf("note change of %s: %w", real, err)
	}
	return c.disk.WriteFile(c.noteFile(real), append(data, '\n'), 0o600)
}

// settle is the note as it is true of the file. Whoever was killed in the middle of an edit
// left one that was not made, or an undo whose traces are still there: they go now, but for a
// dry run.
func (c changer) settle(real string, n *note, at string) (*note, error) {
	next := &note{V: 1, File: real, Entries: map[string]made{}}
	var backups, dirs []string
	switch {
	case len(n.Entries) == 0 || at == n.After && !n.Gone:
		return n, nil
	case at == n.After: // others have changed the file since, and have its copies
	case n.From != "" && at == n.From:
		if n.Was != nil {
			next = n.Was
		}
		backups = without(n.Backups, next.Backups)
		dirs = without(n.Dirs, next.Dirs)
	case n.Created && at == state(nil, false), !n.Created && n.Before != "" && at == n.Before:
		backups, dirs = n.Backups, n.Dirs
	default:
		return n, nil
	}
	if c.dry {
		return next, nil
	}
	for _, b := range backups {
		if err := c.dropBackup(real, b); err != nil {
			return nil, err
		}
	}
	next.Dirs = append(next.Dirs, c.swept(dirs)...)
	return next, c.writeNote(real, next)
}

// without are the names in list that are not in other.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
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
		unlock, err := c.lock(ctx)
		if err != nil {
			return ch, fmt.Errorf("change %s: %w", file, err)
		}
		defer unlock()
		for _, name := range []string{c.noteFile(real), real} { // of who was killed writing it
			if err := c.disk.RemoveTemps(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return ch, fmt.Errorf("change %s: %w", file, err)
			}
		}
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

// lock takes the lock under which files are changed: one for all, which stays.
func (c changer) lock(ctx context.Context) (unlock func() error, err error) {
	if err := c.disk.MkdirAll(c.notes, 0o700); err != nil {
		return nil, err
	}
	return durable.Lock(ctx, filepath.Join(c.notes, "lock"))
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
	if n, err = c.settle(real, n, state(raw, exists)); err != nil {
		return false, fmt.Errorf("change %s: go on with what was begun: %w", ch.File, err)
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
		c.noteLeft(real, n)
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
	if n.undoes(next, gone) {
		return c.undo(ch, real, perm, n, input{raw: raw, exists: exists}, next, gone)
	}
	return c.edit(ch, real, perm, n, input{raw: raw, exists: exists}, next, gone, tell)
}

// undo makes a file what it was before the first edit, and takes away what the edits made
// beside it. A process that is killed on the way leaves a note by which [changer.settle] goes
// on. What an exact undo replaces is what was there plus our entries: no copy of that is worth
// keeping.
func (c changer) undo(ch *Change, real string, perm fs.FileMode, n *note, was input, next []byte, gone bool) (again bool, err error) {
	if same, err := unchanged(real, was); err != nil || !same {
		return true, err
	}
	if err := c.replace(ch.File, real, next, gone, perm); err != nil {
		return false, err
	}
	for _, b := range n.Backups {
		_ = c.dropBackup(real, b) // what cannot be removed does no harm
	}
	end := &note{V: 1, File: real, Dirs: c.swept(n.Dirs)}
	c.noteLeft(real, end)
	return false, c.writeNote(real, end)
}

// edit makes any other change. A note of what is not in the file does no harm, a change
// without its note cannot be undone exactly, and a copy or directory without one is never
// taken away: the note comes first.
func (c changer) edit(ch *Change, real string, perm fs.FileMode, n *note, was input, next []byte, gone bool, tell func(*note)) (again bool, err error) {
	before := *n
	before.Was, before.From = nil, ""
	before.Entries = maps.Clone(n.Entries)
	if was.exists {
		if ch.Backup, err = c.backupName(real); err != nil {
			return false, err
		}
	} else {
		for _, d := range missingDirs(filepath.Dir(real)) {
			if !slices.Contains(n.Dirs, d) {
				n.Dirs = append(slices.Clip(n.Dirs), d)
			}
		}
	}
	if len(n.Entries) == 0 || n.After != sum(was.raw) {
		n.Created, n.Before, n.Backup = !was.exists, sum(was.raw), ch.Backup
		n.Backups = nil // older ones hold what others have changed since: they stay
	}
	if ch.Backup != "" {
		n.Backups = append(slices.Clip(n.Backups), ch.Backup)
	}
	n.After, n.From, n.Was = state(next, !gone), state(was.raw, was.exists), &before
	if len(before.Entries) == 0 && len(before.Dirs) == 0 {
		n.Was = nil
	}
	tell(n)
	n.Gone = len(n.Entries) == 0
	if n.Gone {
		n.Entries = before.Entries
	}
	if err := c.writeNote(real, n); err != nil {
		return false, fmt.Errorf("note change of %s: %w", real, err)
	}
	back := func() error {
		var err error
		if ch.Backup != "" {
			err = c.dropBackup(real, ch.Backup)
			ch.Backup = ""
		}
		c.swept(without(n.Dirs, before.Dirs))
		return errors.Join(err, c.writeNote(real, &before))
	}
	again, err = c.noted(ch, real, perm, was, next, gone)
	if err != nil { // it may be made, and only not be sure to last: then its note stays
		if now, there, rerr := readSettings(real); rerr != nil || state(now, there) == n.After {
			return false, errors.Join(err, rerr)
		}
	}
	if again || err != nil {
		return again, errors.Join(err, back())
	}
	if n.Gone {
		return false, c.writeNote(real, &note{})
	}
	return false, nil
}

// noted makes a change whose note is written.
func (c changer) noted(ch *Change, real string, perm fs.FileMode, was input, next []byte, gone bool) (again bool, err error) {
	if was.exists {
		err = c.backup(real, ch.Backup, was.raw)
	} else if err = c.disk.MkdirAll(filepath.Dir(real), perm|perm>>2&0o111); err != nil {
		err = fmt.Errorf("make directory for %s: %w", ch.File, err)
	}
	if err != nil {
		return false, err
	}
	if same, err := unchanged(real, was); err != nil || !same {
		return true, err
	}
	return false, c.replace(ch.File, real, next, gone, perm)
}

// unchanged reports whether a file still is what was read of it.
func unchanged(real string, was input) (bool, error) {
	now, still, err := readSettings(real)
	return still == was.exists && bytes.Equal(now, was.raw), err
}

// replace makes a file what it is to be.
func (c changer) replace(file, real string, next []byte, gone bool, perm fs.FileMode) error {
	var err error
	if gone {
		err = c.disk.Remove(real)
	} else {
		err = c.disk.WriteFile(real, next, perm)
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

// dropBackup removes a copy that an edit of a file made.
func (c changer) dropBackup(real, backup string) error {
	if !strings.HasPrefix(backup, real+".bak-") {
		return nil
	}
	if err := c.disk.Remove(backup); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// swept removes directories, outermost first in the list, as far as they are empty, and gives
// back the others.
func (c changer) swept(dirs []string) []string {
	for i, d := range slices.Backward(dirs) {
		if err := c.disk.Remove(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return dirs[:i+1] // something else is in it, and so in those above
		}
	}
	return nil
}

// noteLeft tells of a file that is as it was, but for directories that were made for it.
func (c changer) noteLeft(real string, n *note) {
	if c.left != nil && !c.dry && len(n.Entries) == 0 && len(n.Dirs) > 0 {
		*c.left = append(*c.left, real)
	}
}

// sweepLeft removes the directories that held another of the files when theirs went.
func (c changer) sweepLeft(ctx context.Context) error {
	if c.left == nil || len(*c.left) == 0 {
		return nil
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	var dirs []string
	for _, real := range *c.left {
		n, rerr := c.readNote(real)
		if rerr == nil && len(n.Entries) == 0 {
			dirs = append(dirs, n.Dirs...)
		}
		err = errors.Join(err, rerr)
	}
	slices.SortFunc(dirs, func(a, b string) int { return len(b) - len(a) }) // what is in another goes before it
	for _, d := range dirs {
		c.swept([]string{d}) // what is still there holds what is not ours
	}
	for _, real := range *c.left {
		if n, rerr := c.readNote(real); rerr == nil && len(n.Entries) == 0 {
			err = errors.Join(err, c.writeNote(real, &note{}))
		}
	}
	return errors.Join(err, unlock())
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

// backupName is the name of a new file beside a file, for a copy of it.
func (c changer) backupName(real string) (string, error) {
	stamp := real + ".bak-" + c.now().UTC().Format("20060102T150405Z")
	for i := 1; i <= 100; i++ {
		name := stamp
		if i > 1 {
			name = fmt.Sprintf("%s-%d", stamp, i)
		}
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
	}
	return "", fmt.Errorf("back up %s: there are too many backups of this second", real)
}

// backup copies what is there to a new file.
func (c changer) backup(real, name string, data []byte) error {
	info, err := os.Stat(real)
	if err != nil {
		return fmt.Errorf("back up %s: %w", real, err)
	}
	f, err := c.disk.Create(name, info.Mode().Perm())
	if err != nil {
		return fmt.Errorf("back up %s: %w", real, err)
	}
	if err = c.disk.Step(durable.OpWrite, name); err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil { // who restored half a copy would lose what the file has
		return errors.Join(fmt.Errorf("back up %s: %w", real, err), c.disk.Remove(name))
	}
	return nil
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
