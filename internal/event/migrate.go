package event

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/event/quick"
	"reprise/internal/redact"
)

// legacyFile is a log of one file, as programs kept it before ours.
const legacyFile = "events.jsonl"

// maxLog is what a file of the log is read to, in bytes: none is refused for its length.
const maxLog = 1 << 40

// MigrateOptions says which log is to be brought to this program's version.
type MigrateOptions struct {
	Dir    string
	Host   string
	Now    func() time.Time
	Disk   durable.Disk
	DryRun bool
	// Progress, if not nil, is told before each file which of how many it is, from 1.
	Progress func(file string, n, of int)
}

// Audit is what a migration did, or would do.
type Audit struct {
	Dir    string      `json:"dir"`
	DryRun bool        `json:"dry_run"`
	To     int         `json:"to"` // version
	Files  []FileAudit `json:"files"`
	// Aside is where the files are that were replaced, as they were.
	Aside string `json:"aside,omitempty"`
}

// Changed reports whether any file was, or is to be, replaced.
func (a Audit) Changed() bool {
	return slices.ContainsFunc(a.Files, func(f FileAudit) bool { return f.Changed })
}

// Refused is how many lines no migration knows.
func (a Audit) Refused() (n int) {
	for _, f := range a.Files {
		n += len(f.Refused)
	}
	return n
}

// FileAudit is about one file.
type FileAudit struct {
	File     string         `json:"file"`
	Into     []string       `json:"into,omitempty"` // where its events went, if not into the same file
	Changed  bool           `json:"changed"`
	Events   int            `json:"events"`   // in it afterwards
	Versions map[string]int `json:"versions"` // lines by version, as found
	Types    map[string]int `json:"types"`    // events by type, afterwards
	Steps    map[string]int `json:"steps"`    // migrations done: "0 → 1"
	Redacted int            `json:"redacted"` // old events that secrets were taken out of
	Refused  []Problem      `json:"refused"`  // lines that stay as they are
	Before   []Problem      `json:"problems"` // of the old chain
	OldChain string         `json:"old_chain"`
	NewChain string         `json:"new_chain"`
}

// Migrate brings every event of a log to this program's version. A file with
// older events is replaced as a whole, under its lock, with its chain made
// anew; what it was is kept in a directory beside it first. So a crash leaves
// each file old or new, and migrating again goes on. A line that no migration
// knows stays, and is reported. Files without older events are not touched. A
// log of one file, events.jsonl, is divided by month.
func Migrate(ctx context.Context, opt MigrateOptions) (Audit, error) {
	a := Audit{Dir: opt.Dir, DryRun: opt.DryRun, To: Version, Files: []FileAudit{}}
	names, err := FileNames(opt.Dir)
	if err != nil {
		return a, err
	}
	m := &migrator{MigrateOptions: opt, red: redact.New(), aside: filepath.Join(opt.Dir, "before-"+opt.Now().UTC().Format("20060102T150405Z"))}
	for i, name := range names {
		if opt.Progress != nil {
			opt.Progress(name, i+1, len(names))
		}
		if err := m.file(ctx, name, &a); err != nil {
			return a, fmt.Errorf("migrate %s: %w", filepath.Join(opt.Dir, name), err)
		}
	}
	if _, err := os.Lstat(filepath.Join(opt.Dir, legacyFile)); err == nil {
		if err := m.divide(ctx, &a); err != nil {
			return a, fmt.Errorf("migrate %s: %w", filepath.Join(opt.Dir, legacyFile), err)
		}
	}
	if a.Aside != "" && !opt.DryRun {
		report, err := json.MarshalIndent(a, "", "  ")
		if err == nil {
			err = opt.Disk.WriteFile(filepath.Join(m.aside, "audit.json"), append(report, '\n'), 0o600)
		}
		if err != nil {
			return a, fmt.Errorf("the log is migrated, but the report cannot be kept: %w", err)
		}
	}
	return a, nil
}

type migrator struct {
	MigrateOptions
	red   *redact.Redactor
	aside string
}

// moved is one line on its way.
type moved struct {
	piece
	ts   time.Time
	hash string // of the old line
}

// lines migrates the lines of a file.
func (m *migrator) lines(name string, data []byte, f *FileAudit) []moved {
	*f = FileAudit{File: name, Versions: map[string]int{}, Types: map[string]int{}, Steps: map[string]int{}, Refused: []Problem{}, Before: []Problem{}}
	var out []moved
	n := 0
	for text, rest, ok := bytes.Cut(data, []byte("\n")); ok; text, rest, ok = bytes.Cut(rest, []byte("\n")) {
		n++
		head, e, err := m.line(text, f)
		old := quick.Hash(text)
		f.OldChain = old
		if err != nil {
			f.Refused = append(f.Refused, Problem{File: name, Line: n, What: err.Error()})
			out = append(out, moved{piece: piece{text: text}, hash: old})
			continue
		}
		f.Events++
		f.Types[string(e.Type)]++
		out = append(out, moved{piece: piece{head, true}, ts: e.TS, hash: old})
	}
	return out
}

// line is one line in this version, up to where its prev belongs.
func (m *migrator) line(text []byte, f *FileAudit) ([]byte, Event, error) {
	if e, err := parseText(string(text)); err == nil {
		f.Versions[strconv.Itoa(e.V)]++
		head, err := headOf(text)
		return head, e, err
	}
	d := &doc{}
	if err := quick.Members(string(text), func(name, raw string) error {
		d.members = append(d.members, member{name, raw})
		return nil
	}); err != nil {
		f.Versions["none"]++
		return nil, Event{}, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	d.hash = quick.Hash(text)
	v, err := d.version()
	if err != nil {
		f.Versions["unknown"]++
		return nil, Event{}, err
	}
	f.Versions[strconv.Itoa(v)]++
	var steps []string
	for ; v < Version; v++ {
		step, ok := migrations[v]
		if !ok {
			return nil, Event{}, fmt.Errorf("%w: nothing leads on from version %d", ErrInvalid, v)
		}
		if err := step(d); err != nil {
			return nil, Event{}, fmt.Errorf("%w: from version %d: %v", ErrInvalid, v, err)
		}
		steps = append(steps, fmt.Sprintf("%d → %d", v, v+1))
	}
	e, err := parseText(d.String())
	if err != nil {
		return nil, Event{}, err
	}
	before := e
	q := e.quick()
	if err := quick.Normalise(&q); err != nil {
		return nil, Event{}, err
	}
	if e, err = clean(m.red, e.from(&q)); err != nil {
		return nil, Event{}, err
	}
	e = bound(e)
	if bytes.Count(e.Data, []byte("[redacted:")) > bytes.Count(before.Data, []byte("[redacted:")) {
		f.Redacted++
	}
	for _, s := range steps {
		f.Steps[s]++
		f.Changed = true
	}
	q = e.quick()
	return quick.Encode(nil, &q), e, nil
}

// file migrates one file of the log in its place.
func (m *migrator) file(ctx context.Context, name string, a *Audit) error {
	path := filepath.Join(m.Dir, name)
	if !m.DryRun {
		unlock, err := m.Disk.Lock(ctx, path+".lock")
		if err != nil {
			return err
		}
		defer unlock()
	}
	data, err := durable.ReadFile(path, maxLog)
	if err != nil {
		return err
	}
	var f FileAudit
	lines := m.lines(name, data, &f)
	check := Report{Last: map[string]string{}}
	check.verifyFile(context.Background(), name, func(yield func(line, error) bool) { scanLines(bytes.NewReader(data), yield) })
	for _, p := range check.Problems {
		if strings.Contains(p.What, "before it") { // what is refused is told of already
			f.Before = append(f.Before, p)
		}
	}
	f.NewChain = f.OldChain
	if f.Changed {
		first := "" // the beginning of a file that was purged names the chain before
		if len(lines) > 0 {
			if e, err := parseText(string(data[:bytes.IndexByte(data, '\n')])); err == nil && startsChain(e) {
				first = e.Prev
			}
		}
		pieces := make([]piece, len(lines))
		for i, l := range lines {
			pieces[i] = l.piece
		}
		fresh := chain(pieces, first, nil)
		f.NewChain = lastHash(fresh)
		fresh = append(fresh, data[bytes.LastIndexByte(data, '\n')+1:]...)
		if err := m.replace(name, data, fresh, a); err != nil {
			return err
		}
	}
	a.Files = append(a.Files, f)
	return nil
}

// replace keeps a file aside and puts the new one in its place.
func (m *migrator) replace(name string, old, fresh []byte, a *Audit) error {
	if err := m.keep(name, old, a); err != nil || m.DryRun {
		return err
	}
	return m.Disk.WriteFile(filepath.Join(m.Dir, name), fresh, 0o600)
}

func (m *migrator) keep(name string, old []byte, a *Audit) error {
	a.Aside = m.aside
	if m.DryRun {
		return nil
	}
	if err := m.Disk.MkdirAll(m.aside, 0o700); err != nil {
		return err
	}
	return m.Disk.WriteFile(filepath.Join(m.aside, name), old, 0o600)
}

// divide puts the events of a log of one file into those of their months, and
// then moves it aside. What is in a month's file already, after a crash, is not
// put there again.
func (m *migrator) divide(ctx context.Context, a *Audit) error {
	path := filepath.Join(m.Dir, legacyFile)
	data, err := durable.ReadFile(path, maxLog)
	if err != nil {
		return err
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		data = append(data, '\n') // programs of those days did not always end a line
	}
	var f FileAudit
	lines := m.lines(legacyFile, data, &f)
	f.Changed = true
	defer func() { a.Files = append(a.Files, f) }()
	months := map[string][]moved{}
	for _, l := range lines {
		if l.event {
			file := quick.FileName(l.ts, quick.HostName(m.Host)+"-legacy")
			months[file] = append(months[file], l)
		}
	}
	for file := range months {
		f.Into = append(f.Into, file)
	}
	slices.Sort(f.Into)
	if err := m.keep(legacyFile, data, a); err != nil || m.DryRun {
		return err
	}
	for _, file := range f.Into {
		events := months[file]
		slices.SortStableFunc(events, func(x, y moved) int { return x.ts.Compare(y.ts) })
		pieces := make([]piece, len(events))
		for i, l := range events {
			pieces[i] = l.piece
		}
		fresh := chain(pieces, "", nil)
		f.NewChain = lastHash(fresh)
		target := filepath.Join(m.Dir, file)
		unlock, err := m.Disk.Lock(ctx, target+".lock")
		if err != nil {
			return err
		}
		there, err := durable.ReadFile(target, maxLog)
		switch {
		case err == nil && !bytes.Equal(there, fresh):
			err = fmt.Errorf("%s is there already, with something else in it; move one of the two away", file)
		case errors.Is(err, fs.ErrNotExist):
			err = m.Disk.WriteFile(target, fresh, 0o600)
		}
		if uerr := unlock(); err == nil {
			err = uerr
		}
		if err != nil {
			return err
		}
	}
	return m.Disk.Remove(path)
}

func lastHash(data []byte) string {
	data = bytes.TrimSuffix(data, []byte("\n"))
	if len(data) == 0 {
		return ""
	}
	return quick.Hash(data[bytes.LastIndexByte(data, '\n')+1:])
}
