package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"reprise/internal/clip"
	"reprise/internal/durable"
	"reprise/internal/mdfile"
	"reprise/internal/redact"
)

// Store reads and writes one memory directory. It holds nothing open between
// calls and is safe for use by several goroutines and processes.
type Store struct {
	o       Options
	secrets *redact.Redactor
	swept   atomic.Bool // what killed processes left was removed
}

// New returns a Store. It touches nothing.
func New(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{o: o, secrets: redact.New()}
}

// Dir is the memory directory.
func (s *Store) Dir() string { return s.o.Dir }

const (
	filePerm = 0o600
	dirPerm  = 0o700
)

// seedCore and seedIndex are what a new memory starts with.
const seedCore = `# Core

Nothing is known yet. Replace this text by a short portrait: who the user is,
what they work on, and how they like to work. It is read at the start of every
session, so keep it within 1,000 tokens and move detail into blocks.

## Active projects

## Key facts

## Preferences
`

const seedIndex = `# Index

| Block | Summary | Updated |
|-------|---------|---------|
`

const seedIgnore = `# Derived or short-lived: never backed up.
.reprise-journal/
.reprise-*.tmp
*.lock
*.torn
*.tmp
.search-index.db*
`

// open opens the directory for a call. A missing one is ErrNotFound.
func (s *Store) open() (*durable.Dir, error) {
	if s.o.Dir == "" {
		return nil, fmt.Errorf("open memory: no directory is set; set memory.directory")
	}
	if err := s.o.Access.MayRead(); err != nil {
		return nil, err
	}
	d, err := s.o.Disk.OpenDir(s.o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open memory: %w: %s does not exist yet; `reprise memory init` makes it", ErrNotFound, s.o.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open memory: %w", err)
	}
	return d, nil
}

// Ensure makes what is missing of the directory, core.md, index.md, blocks/,
// .gitignore and the git repository. It never changes what is there, and can
// be called at any time. Without git the memory works, without a repository.
func (s *Store) Ensure(ctx context.Context) error {
	if err := s.ensureFiles(ctx); err != nil {
		return err
	}
	return s.ensureRepo(ctx)
}

func (s *Store) ensureFiles(ctx context.Context) error {
	if err := s.o.Access.MayWrite(); err != nil {
		return err
	}
	if s.o.Dir == "" {
		return fmt.Errorf("make memory: no directory is set; set memory.directory")
	}
	if err := s.o.Disk.MkdirAll(s.o.Dir, dirPerm); err != nil {
		return fmt.Errorf("make memory: %w", err)
	}
	d, err := s.open()
	if err != nil {
		return err
	}
	defer d.Close()
	seeds, err := missingSeeds(d)
	if err != nil {
		return fmt.Errorf("make memory: %w", err)
	}
	if len(seeds) > 0 {
		if err := s.seed(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

var seedFiles = []struct{ name, text string }{
	{coreFile, seedCore}, {indexFile, seedIndex}, {".gitignore", seedIgnore},
}

func missingSeeds(d *durable.Dir) ([]string, error) {
	var missing []string
	for _, f := range seedFiles {
		switch _, err := d.Lstat(f.name); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, f.name)
		case err != nil:
			return nil, err
		}
	}
	fi, err := d.Stat(blocksDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		missing = append(missing, blocksDir)
	case err != nil:
		return nil, err
	case !fi.IsDir():
		return nil, fmt.Errorf("%s is not a directory; move it away", blocksDir)
	}
	return missing, nil
}

func (s *Store) seed(ctx context.Context, d *durable.Dir) error {
	c, err := d.Begin(ctx)
	if err != nil {
		return fmt.Errorf("make memory: %w", err)
	}
	defer c.Abort()
	missing, err := missingSeeds(d) // again, now that nobody else can be at it
	if err != nil {
		return fmt.Errorf("make memory: %w", err)
	}
	var made []Change
	for _, name := range missing {
		if name == blocksDir {
			if err := d.MkdirAll(blocksDir, dirPerm); err != nil {
				return fmt.Errorf("make memory: %w", err)
			}
			continue
		}
		for _, f := range seedFiles {
			if f.name == name {
				c.Write(name, []byte(f.text), filePerm)
				made = append(made, Change{Op: "seed", Name: name, Hash: hashOf([]byte(f.text)), Bytes: len(f.text)})
			}
		}
	}
	if len(made) == 0 {
		return nil
	}
	if err := c.Commit(); err != nil {
		return fmt.Errorf("make memory: %w", err)
	}
	s.tell(ctx, made...)
	return nil
}

// tell reports changes that are on disk, and gives what went wrong in telling.
func (s *Store) tell(ctx context.Context, changes ...Change) (warnings []string) {
	for _, c := range changes {
		if s.o.AfterWrite != nil {
			s.o.AfterWrite(c.Name)
		}
		if s.o.Events == nil {
			continue
		}
		if err := s.o.Events.MemoryWritten(ctx, c); err != nil {
			warnings = append(warnings, fmt.Sprintf("%s is written, but the event of it is not: %v", c.Name, err))
		}
	}
	return warnings
}

// load reads a file that must be there, whole and text.
func load(d *durable.Dir, rel string) (*mdfile.File, error) {
	data, err := loadBytes(d, rel)
	if err != nil {
		return nil, err
	}
	f, err := mdfile.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: %w; mend it in an editor", rel, ErrContent, err)
	}
	return f, nil
}

// loadBytes reads a file that must be there. Any failure but "not there" is an
// error of its own kind: an unreadable file is never an empty one.
func loadBytes(d *durable.Dir, rel string) ([]byte, error) {
	fi, err := d.Stat(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, rel)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", rel, outside(err))
	}
	if fi.Size() > MaxFile {
		return nil, fmt.Errorf("read %s: %w: it has %d bytes, at most %d can be read; split it by hand", rel, ErrTooLarge, fi.Size(), MaxFile)
	}
	data, err := d.ReadFile(rel)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", rel, err)
	}
	return data, nil
}

// Read returns the lines after the first offset ones, at most limit (0 =
// DefaultReadRows), and whether there are more. Of a file that is damaged what can
// be read is returned. It writes nothing.
func (s *Store) Read(ctx context.Context, name string, offset, limit int) (Doc, bool, error) {
	if offset < 0 || limit < 0 {
		return Doc{}, false, fmt.Errorf("read %s: offset and limit must not be negative", clip.Runes(name, 80))
	}
	d, err := s.open()
	if err != nil {
		return Doc{}, false, err
	}
	defer d.Close()
	rel, err := find(d, name)
	if err != nil {
		return Doc{}, false, fmt.Errorf("read memory: %w", err)
	}
	doc, err := s.doc(d, rel)
	if err != nil {
		return Doc{}, false, err
	}
	return doc.page(offset, limit, ctx.Err())
}

func (s *Store) doc(d *durable.Dir, rel string) (Doc, error) {
	data, err := loadBytes(d, rel)
	if err != nil {
		return Doc{}, err
	}
	f, damage := mdfile.Readable(data)
	shown, kept := s.shown(rel, f.Bytes())
	text := string(shown)
	return Doc{Name: strings.TrimPrefix(rel, blocksDir+"/"), Content: text, Hash: hashOf(data), Updated: updated(d, rel, f),
		Tokens: mdfile.Tokens(text), Lines: mdfile.CountLines(shown), Private: len(kept), Damage: damage}, nil
}

func cutLines(text string, offset, limit int) (string, bool) {
	for ; offset > 0 && text != ""; offset-- {
		i := strings.IndexByte(text, '\n')
		if i < 0 {
			return "", false
		}
		text = text[i+1:]
	}
	end := 0
	for n := 0; n < limit; n++ {
		i := strings.IndexByte(text[end:], '\n')
		if i < 0 {
			return text, false
		}
		end += i + 1
	}
	return text[:end], end < len(text)
}

// updated is the day a file's front matter gives, else its modification time.
func updated(d *durable.Dir, rel string, f *mdfile.File) time.Time {
	if f != nil {
		if t, ok := parseDate(f.Value("updated")); ok {
			return t
		}
	}
	if fi, err := d.Stat(rel); err == nil {
		return fi.ModTime().UTC().Truncate(time.Second)
	}
	return time.Time{}
}

var dateLayouts = []string{"2006-01-02", time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700"}

func parseDate(s string) (time.Time, bool) {
	for _, l := range dateLayouts {
		if t, err := time.Parse(l, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// List returns the blocks in order of name. A block that cannot be read is
// listed with the reason as its summary. It writes nothing.
func (s *Store) List(ctx context.Context) ([]BlockInfo, error) {
	d, err := s.open()
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := blockNames(d)
	if err != nil {
		return nil, err
	}
	rows := map[string]string{}
	if data, err := loadBytes(d, indexFile); err == nil {
		idx, _ := mdfile.Readable(data)
		rows = summaries(idx)
	} else if !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	out := make([]BlockInfo, 0, len(names))
	for _, n := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b := BlockInfo{Name: n, Summary: rows[strings.ToLower(n)]}
		if doc, err := s.doc(d, blocksDir+"/"+n); err != nil {
			b.Summary = "(unreadable: " + clip.Runes(err.Error(), 120) + ")"
		} else {
			b.Updated, b.Tokens = doc.Updated, doc.Tokens
		}
		out = append(out, b)
	}
	return out, nil
}

// blockNames lists the .md files of blocks/, in order of name.
func blockNames(d *durable.Dir) ([]string, error) {
	list, err := d.ReadDir(blocksDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list blocks: %w", err)
	}
	var names []string
	for _, e := range list {
		if !e.IsDir() && strings.EqualFold(filepath.Ext(e.Name()), ".md") && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (s *Store) today() string { return s.o.Now().Format("2006-01-02") }

func (s *Store) abs(rel string) string {
	return filepath.Join(s.o.Dir, filepath.FromSlash(rel))
}

// begin takes the single writer lock, making the memory first when it is new.
func (s *Store) begin(ctx context.Context) (*durable.Dir, *durable.Change, error) {
	if err := s.o.Access.MayWrite(); err != nil {
		return nil, nil, err
	}
	d, err := s.open()
	if errors.Is(err, ErrNotFound) || err == nil && missing(d) {
		if d != nil {
			d.Close()
		}
		if err := s.ensureFiles(ctx); err != nil {
			return nil, nil, err
		}
		// A memory without its repository is better than none: git fails for
		// reasons of the user's settings, and `memory init` and a sync say which.
		_ = s.ensureRepo(ctx)
		d, err = s.open()
	}
	if err != nil {
		return nil, nil, err
	}
	c, err := d.Begin(ctx)
	if err != nil {
		d.Close()
		return nil, nil, fmt.Errorf("write memory: %w", err)
	}
	s.sweep(d)
	return d, c, nil
}

// sweep removes, once in the life of a Store, the temporary files of processes
// that were killed. It is called under the writer lock, so none of them is in
// use on this machine; those of the last hour stay for one that shares the disk.
// What cannot be removed is left for the next process: it harms nobody.
func (s *Store) sweep(d *durable.Dir) {
	if s.swept.Swap(true) {
		return
	}
	before := s.o.Now().Add(-time.Hour)
	for _, dir := range []string{".", blocksDir} {
		_, _ = d.RemoveStale(dir, before)
	}
}

func missing(d *durable.Dir) bool {
	_, err := d.Lstat(coreFile)
	return errors.Is(err, os.ErrNotExist)
}
