package transcript

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"time"

	"reprise/internal/durable"
	"reprise/internal/event"
)

const (
	// cursorVersion is the version of the cursors; those of another are not used.
	cursorVersion = 1
	// batchEvents and batchBytes are how much is written at once.
	batchEvents = 512
	batchBytes  = 4 << 20
)

// Options say what is imported, and where to.
type Options struct {
	Found *Found
	// Since leaves out transcripts that nobody has written to since then.
	Since time.Time
	// Project, if not "", leaves out what did not happen in this project.
	Project string
	// DryRun reads and counts, and writes nothing.
	DryRun bool
	// StateDir is where the cursors are: `<state>/import`.
	StateDir string
	Now      func() time.Time
	// Resolve is the project that a directory belongs to, "" for none.
	Resolve func(cwd string) string
	// Log yields what all the logs hold, and whether it was imported.
	Log func(ctx context.Context) iter.Seq2[LogEvent, error]
	// Append writes events to the log of a project ("" for the global one). One
	// call at a time, but not in the goroutine of Import.
	Append func(ctx context.Context, project string, events []event.Event) error
	// Progress, if not nil, is told before each transcript and after the last.
	Progress func(Progress)
}

// LogEvent is an event that a log holds already.
type LogEvent struct {
	event.Event
	Imported bool
}

// Progress is how far an import is.
type Progress struct {
	Client      string
	Path        string // of the transcript that comes next; "" at the end
	Done, Files int
	Bytes, All  int64
	Events      int
}

// ClientReport is what an import came to, for one client.
type ClientReport struct {
	Client      string `json:"client"`
	Transcripts int    `json:"transcripts"` // found
	Unchanged   int    `json:"unchanged"`   // read before, and the same since
	Older       int    `json:"older"`       // left out by their date
	Sessions    int    `json:"sessions"`    // read now
	Added       int    `json:"added"`       // events
	Known       int    `json:"known"`       // events that the log had
	Elsewhere   int    `json:"elsewhere"`   // events of other projects, left out
	BadLines    int    `json:"bad_lines"`
	Bytes       int64  `json:"bytes"`
}

// Report is what an import came to.
type Report struct {
	Clients  []ClientReport `json:"clients"`
	Projects map[string]int `json:"projects"` // events added, by project; "" is the global scope
	Bad      []Bad          `json:"bad"`      // the first of the lines that could not be used
	// Problems are transcripts that could not be read at all.
	Problems []string `json:"problems"`
	DryRun   bool     `json:"dry_run"`
	Seconds  float64  `json:"seconds"`
}

// cursor is what a transcript's file among the cursors holds.
type cursor struct {
	V       int       `json:"v"`
	Path    string    `json:"path"`
	Size    int64     `json:"size"`
	Mod     time.Time `json:"mod"`
	Bytes   int64     `json:"bytes"`  // read: it may have grown meanwhile
	SHA256  string    `json:"sha256"` // of those bytes
	Lines   int       `json:"lines"`
	Session string    `json:"session"`
	Events  int       `json:"events"`
	Over    bool      `json:"over"` // read as one that nobody adds to
	Bad     int       `json:"bad"`
	Places  []Bad     `json:"places,omitempty"`
	At      time.Time `json:"at"`
}

// importer is one import while it runs.
type importer struct {
	o      Options
	seen   *Seen
	report Report
	byName map[string]*ClientReport
	// resolved are the projects of directories, which sessions name again and again.
	resolved map[string]string
	batches  map[string]*batch
	// writing is what is being appended while reading goes on; nil = nothing.
	// after is what is true, and noted, once that is done.
	writing chan error
	after   []func() error
}

type batch struct {
	events []event.Event
	bytes  int
}

// Import reads the transcripts and adds to the logs what they do not hold yet.
// It can be stopped at any time and goes on the next time. The report is of
// what was done, also when there is an error.
func Import(ctx context.Context, o Options) (Report, error) {
	began := o.Now()
	im := &importer{o: o, byName: map[string]*ClientReport{}, resolved: map[string]string{}, batches: map[string]*batch{}}
	im.report = Report{DryRun: o.DryRun, Projects: map[string]int{}, Bad: []Bad{}, Problems: []string{}}
	err := im.run(ctx)
	for _, name := range Clients() {
		if c := im.byName[name]; c != nil {
			im.report.Clients = append(im.report.Clients, *c)
		}
	}
	for _, err := range o.Found.Bad {
		im.report.Problems = append(im.report.Problems, err.Error())
	}
	im.report.Seconds = o.Now().Sub(began).Seconds()
	return im.report, err
}

func (im *importer) run(ctx context.Context) error {
	if !im.o.DryRun {
		if err := durable.MkdirAll(im.o.StateDir, 0o700); err != nil {
			return fmt.Errorf("import: %w", err)
		}
		unlock, err := durable.TryLock(filepath.Join(im.o.StateDir, "import.lock"))
		if err != nil {
			return fmt.Errorf("import: another one is running, or the lock cannot be taken: %w", err)
		}
		defer func() { _ = unlock() }() // the end of the process would do it, too
	}
	todo := im.todo()
	if len(todo) == 0 {
		return nil
	}
	if err := im.look(ctx, todo); err != nil {
		return err
	}
	p := Progress{Files: len(todo)}
	for _, s := range todo {
		p.All += s.Size
	}
	defer im.wait() // where an error ends it
	for _, s := range todo {
		p.Client, p.Path = s.Client, s.Path
		im.tell(p)
		if err := im.one(ctx, s); err != nil {
			return err
		}
		if im.writing == nil {
			if err := im.wait(); err != nil {
				return err
			}
		}
		p.Done++
		p.Bytes += s.Size
		p.Events = im.added()
	}
	if err := im.wait(); err != nil {
		return err
	}
	p.Client, p.Path, p.Events = "", "", im.added()
	im.tell(p)
	return nil
}

func (im *importer) tell(p Progress) {
	if im.o.Progress != nil {
		im.o.Progress(p)
	}
}

func (im *importer) added() int {
	n := 0
	for _, c := range im.byName {
		n += c.Added
	}
	return n
}

func (im *importer) client(name string) *ClientReport {
	c := im.byName[name]
	if c == nil {
		c = &ClientReport{Client: name}
		im.byName[name] = c
	}
	return c
}

// todo are the transcripts that have something new.
func (im *importer) todo() []Source {
	var out []Source
	for _, s := range im.o.Found.Sources {
		c := im.client(s.Client)
		c.Transcripts++
		if s.Mod.Before(im.o.Since) {
			c.Older++
			continue
		}
		have, ok := im.cursor(s)
		over := im.o.Now().Sub(s.Mod) > settled
		if ok && have.Size == s.Size && have.Mod.Equal(s.Mod) && have.Over == over {
			c.Unchanged++
			continue
		}
		out = append(out, s)
	}
	return out
}

// look reads the logs for what they hold of the sessions.
func (im *importer) look(ctx context.Context, todo []Source) error {
	want := map[string]bool{}
	for _, s := range todo {
		if s.Session == "" { // known only from within: remember all
			want = nil
			break
		}
		want[SessionKey(s.Client, s.Session)] = true
	}
	im.seen = NewSeen(want)
	for e, err := range im.o.Log(ctx) {
		if err != nil {
			var line *event.LineError
			if errors.As(err, &line) {
				continue // the log's own check tells of it
			}
			return fmt.Errorf("import: look into the log: %w", err)
		}
		im.seen.Add(e.Event, e.Imported)
	}
	return nil
}

func (im *importer) one(ctx context.Context, s Source) error {
	c := im.client(s.Client)
	added, known, left := 0, 0, 0
	done := 0
	if have, ok := im.cursor(s); ok && have.Bytes > 0 && have.Bytes <= s.Size && s.begins(have.Bytes, have.SHA256) {
		done = have.Lines
	}
	st, err := s.Read(ctx, im.o.Now(), done, func(cwd string, e event.Event) error {
		project := im.project(cwd)
		if im.o.Project != "" && project != im.o.Project {
			left++
			return nil
		}
		if im.seen.Has(e) {
			known++
			return nil
		}
		im.seen.Put(e)
		added++
		e.Project = project
		return im.put(ctx, project, e)
	})
	if err == nil {
		err = im.flush(ctx)
	}
	if err != nil {
		im.batches = map[string]*batch{}
		if ctx.Err() != nil || !readable(err) {
			return err
		}
		im.report.Problems = append(im.report.Problems, err.Error())
		return nil
	}
	im.after = append(im.after, func() error {
		c.Sessions++
		c.Added += added
		c.Known += known
		c.Elsewhere += left
		c.Bytes += st.Bytes
		c.BadLines += st.Bad
		im.report.Bad = append(im.report.Bad, st.Places[:min(len(st.Places), 100-min(100, len(im.report.Bad)))]...)
		if im.o.DryRun || left > 0 {
			return nil // what was left out is there to be imported another time
		}
		return im.save(s, st, added)
	})
	return nil
}

// readable reports whether an error is one of this transcript alone.
func readable(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && !errors.Is(err, errAppend)
}

var errAppend = errors.New("import: the log cannot be written")

func (im *importer) project(cwd string) string {
	if cwd == "" {
		return ""
	}
	name, ok := im.resolved[cwd]
	if !ok {
		name = im.o.Resolve(cwd)
		im.resolved[cwd] = name
	}
	return name
}

func (im *importer) put(ctx context.Context, project string, e event.Event) error {
	im.report.Projects[project]++
	if im.o.DryRun {
		return nil
	}
	b := im.batches[project]
	if b == nil {
		b = &batch{}
		im.batches[project] = b
	}
	b.events = append(b.events, e)
	b.bytes += len(e.Data)
	if len(b.events) >= batchEvents || b.bytes >= batchBytes {
		return im.write(ctx, project, b)
	}
	return nil
}

func (im *importer) flush(ctx context.Context) error {
	for _, project := range sortedKeys(im.batches) {
		if err := im.write(ctx, project, im.batches[project]); err != nil {
			return err
		}
	}
	return nil
}

// write begins to append a batch, after the one before.
func (im *importer) write(ctx context.Context, project string, b *batch) error {
	if len(b.events) == 0 {
		return nil
	}
	if err := im.wait(); err != nil {
		return err
	}
	done, events := make(chan error, 1), b.events
	im.writing = done
	b.events, b.bytes = nil, 0
	go func() { done <- im.o.Append(ctx, project, events) }()
	return nil
}

// wait waits until what was begun is in the logs, and notes what that completes.
func (im *importer) wait() error {
	after := im.after
	im.after = nil
	if im.writing != nil {
		err := <-im.writing
		im.writing = nil
		if err != nil {
			return fmt.Errorf("%w: %w", errAppend, err)
		}
	}
	for _, note := range after {
		if err := note(); err != nil {
			return err
		}
	}
	return nil
}

func (im *importer) cursorFile(s Source) string {
	sum := sha256.Sum256([]byte(s.Client + "\x00" + s.Path))
	return filepath.Join(im.o.StateDir, hex.EncodeToString(sum[:16])+".json")
}

// cursor is what is known of a transcript. A file that cannot be used costs
// time and nothing else.
func (im *importer) cursor(s Source) (cursor, bool) {
	var c cursor
	data, err := durable.Read(im.cursorFile(s))
	if err != nil || json.Unmarshal(data, &c) != nil {
		return c, false
	}
	return c, c.V == cursorVersion && c.Path == s.Path
}

func (im *importer) save(s Source, st Stats, events int) error {
	data, err := json.Marshal(cursor{
		V: cursorVersion, Path: s.Path, Size: s.Size, Mod: s.Mod, Bytes: st.Bytes, SHA256: st.Hash, Lines: st.Lines, Session: st.Session, Events: events,
		Over: im.o.Now().Sub(s.Mod) > settled, Bad: st.Bad, Places: st.Places, At: im.o.Now().UTC(),
	})
	if err == nil {
		// Not waited for: what is lost is read again.
		err = durable.WriteFileHot(im.cursorFile(s), append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("import: note what was read: %w", err)
	}
	return nil
}
