package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/event"
)

// world is a home directory with transcripts, and logs.
type world struct {
	t    *testing.T
	home string
	// state is beside the home: nothing may be written among the clients' files.
	state string
	now   time.Time
	logs  map[string][]LogEvent
	// room is after how many events the log is full; negative: never.
	room int
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, home: t.TempDir(), state: filepath.Join(t.TempDir(), "import"), now: later(), logs: map[string][]LogEvent{}, room: -1}
	if err := os.CopyFS(w.home, os.DirFS(filepath.Join("testdata", "home"))); err != nil {
		t.Fatal(err)
	}
	return w
}

var errFull = errors.New("the disk is full")

func (w *world) options() Options {
	f := Find(placesIn(w.home), nil)
	w.t.Cleanup(f.Close)
	return Options{
		Found: f, StateDir: w.state, Now: func() time.Time { return w.now },
		Resolve: func(cwd string) string { return strings.TrimPrefix(cwd, "/home/ann/") },
		Log: func(context.Context) iter.Seq2[LogEvent, error] {
			return func(yield func(LogEvent, error) bool) {
				for _, l := range w.logs {
					for _, e := range l {
						if !yield(e, nil) {
							return
						}
					}
				}
			}
		},
		Append: func(_ context.Context, project string, events []event.Event) error {
			for _, e := range events {
				if w.room == 0 {
					return errFull
				}
				w.room--
				w.logs[project] = append(w.logs[project], LogEvent{Event: e, Imported: true})
			}
			return nil
		},
	}
}

func (w *world) run(change func(*Options)) Report {
	w.t.Helper()
	o := w.options()
	if change != nil {
		change(&o)
	}
	r, err := Import(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// ids are those of all events of the logs, sorted; an id that is there twice
// fails the test.
func (w *world) ids() []string {
	w.t.Helper()
	var out []string
	for _, l := range w.logs {
		for _, e := range l {
			out = append(out, e.ID)
		}
	}
	slices.Sort(out)
	if n := len(slices.Compact(slices.Clone(out))); n != len(out) {
		w.t.Errorf("%d events are there twice", len(out)-n)
	}
	return out
}

func (r Report) added() int {
	n := 0
	for _, c := range r.Clients {
		n += c.Added
	}
	return n
}

func TestImportAddsEachEventOnce(t *testing.T) {
	w := newWorld(t)
	dry := w.run(func(o *Options) { o.DryRun = true })
	if _, err := os.Stat(w.state); len(w.logs) > 0 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dry run wrote: %v, %v", w.logs, err)
	}
	first := w.run(nil)
	all := w.ids()
	if len(all) < 60 || first.added() != len(all) || dry.added() != len(all) || first.Projects["work"]+first.Projects["old"]+first.Projects[""] != len(all) {
		t.Fatalf("%d events; first %+v, dry %+v", len(all), first, dry)
	}
	for project, l := range w.logs {
		for _, e := range l {
			if e.Project != project {
				t.Errorf("event of project %q in the log of %q", e.Project, project)
			}
		}
	}
	// Nothing changed: nothing is read. Without cursors: all is read, nothing added.
	again := w.run(nil)
	for _, c := range again.Clients {
		if c.Unchanged != c.Transcripts || c.Sessions != 0 {
			t.Errorf("%+v", c)
		}
	}
	if err := os.RemoveAll(w.state); err != nil {
		t.Fatal(err)
	}
	if r := w.run(nil); r.added() != 0 || r.Clients[0].Known == 0 {
		t.Errorf("%+v", r)
	}
	if d := cmp.Diff(all, w.ids()); d != "" {
		t.Error(d)
	}
}

// An import that ends anywhere goes on the next time, and comes to the same.
func TestImportGoesOnWhereItEnded(t *testing.T) {
	whole := newWorld(t)
	whole.run(nil)
	want := whole.ids()
	for room := 0; room < len(want); room += 19 {
		w := newWorld(t)
		w.room = room
		r, err := Import(t.Context(), w.options())
		if !errors.Is(err, errFull) || r.added() > room {
			t.Fatalf("room for %d: %v, %+v", room, err, r)
		}
		w.room = -1
		w.run(nil)
		if d := cmp.Diff(want, w.ids()); d != "" {
			t.Fatalf("room for %d: %s", room, d)
		}
	}
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	o := w.options()
	o.Progress = func(p Progress) {
		if p.Done == 2 {
			cancel()
		}
	}
	o.Append = func(ctx context.Context, project string, events []event.Event) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return w.options().Append(ctx, project, events)
	}
	if _, err := Import(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	w.run(nil)
	if d := cmp.Diff(want, w.ids()); d != "" {
		t.Error(d)
	}
}

func TestOnlyOneImportAtATime(t *testing.T) {
	w := newWorld(t)
	w.run(func(o *Options) {
		o.Progress = func(p Progress) {
			if p.Done == 1 {
				if _, err := Import(t.Context(), w.options()); err == nil || !strings.Contains(err.Error(), "another one is running") {
					t.Errorf("a second import: %v", err)
				}
			}
		}
	})
	w.ids()
}

// What hooks recorded while a session went on is not added a second time: by
// the ids of tool calls, or by the time in which the hooks were at work.
func TestRecordedSessionsAreNotDoubled(t *testing.T) {
	const claude, gemini = "bc0d184a-062a-473f-a6f1-e171d9a45ea3", "24da161a-f618-4b73-8db0-ecc92b6c7bff"
	whole := newWorld(t)
	whole.run(nil)
	live := func(w *world, client string, keep func(event.Event) bool) (n int) {
		for _, l := range whole.logs {
			for _, e := range l {
				if e.Client == client && keep(e.Event) {
					e.ID, e.Imported, e.TS = "live-"+e.ID, false, e.TS.Add(300*time.Millisecond)
					if client == "gemini" { // its hooks do not tell the call's id
						e.Data = json.RawMessage(strings.Replace(string(e.Data), `"use_id"`, `"unused"`, 1))
					}
					w.logs["work"] = append(w.logs["work"], e)
					n++
				}
			}
		}
		return n
	}
	counts := func(w *world, session string) map[event.Type]int {
		out := map[event.Type]int{}
		for _, e := range w.logs["work"] {
			if e.Session == session {
				out[e.Type]++
			}
		}
		return out
	}
	for _, tc := range []struct {
		client, session string
		what            string
		keep            func(event.Event) bool
	}{
		{"claude", claude, "all of it", func(e event.Event) bool { return e.Session == claude }},
		{"gemini", gemini, "all of it", func(e event.Event) bool { return e.Session == gemini }},
		{"claude", claude, "but one call", func(e event.Event) bool {
			return e.Session == claude && !strings.Contains(string(e.Data), "missing.txt")
		}},
	} {
		w := newWorld(t)
		if live(w, tc.client, tc.keep) == 0 {
			t.Fatal("nothing was recorded: the test is wrong")
		}
		w.run(nil)
		if d := cmp.Diff(counts(whole, tc.session), counts(w, tc.session)); d != "" {
			t.Errorf("%s, %s: %s", tc.client, tc.what, d)
		}
		w.ids()
	}
}

func TestWhatIsLeftOut(t *testing.T) {
	w := newWorld(t)
	r := w.run(func(o *Options) { o.Project = "old" })
	if r.added() == 0 || r.Projects["old"] != r.added() || len(w.logs) != 1 {
		t.Errorf("%+v", r)
	}
	// What was left out is still there to be imported.
	w.run(nil)
	whole := newWorld(t)
	whole.run(nil)
	if d := cmp.Diff(whole.ids(), w.ids()); d != "" {
		t.Error(d)
	}
	old := newWorld(t)
	r = old.run(func(o *Options) { o.Since = later() })
	if r.added() != 0 || r.Clients[0].Older != r.Clients[0].Transcripts {
		t.Errorf("%+v", r)
	}
}

// A session that goes on is read again, and only what is new is added; it ends
// once nobody has written to it for an hour.
func TestGrowingTranscript(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, ".claude", "projects", "-w", "s-9.jsonl")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(n int, at time.Time) {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"type":"user","uuid":"00000000-0000-4000-8000-%012d","sessionId":"s-9","cwd":"/w","timestamp":"2026-05-01T10:00:%02dZ","message":{"content":"prompt %d"}}`+"\n", i, i, i)
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t)
	w.home = home
	w.now = time.Date(2026, 5, 1, 10, 5, 0, 0, time.UTC)
	for i, tc := range []struct {
		prompts, added int
		later          time.Duration
	}{{2, 3, 0}, {2, 0, 0}, {5, 3, 0}, {5, 1, 2 * time.Hour}, {5, 0, 3 * time.Hour}} {
		write(tc.prompts, w.now)
		now := w.now
		w.now = w.now.Add(tc.later)
		if r := w.run(nil); r.added() != tc.added {
			t.Errorf("step %d: %+v", i, r)
		}
		w.now = now
	}
	w.ids()
	// What was taken out of the log for good does not come back with what is new.
	w.logs = map[string][]LogEvent{}
	write(6, w.now.Add(time.Second))
	if r := w.run(nil); r.added() != 1 {
		t.Errorf("after a purge: %+v", r)
	}
}

// Only regular files below the clients' own directories are read, and nothing
// is written there.
func TestNothingElseIsReadOrWritten(t *testing.T) {
	w := newWorld(t)
	outside := filepath.Join(t.TempDir(), "outside.jsonl")
	if err := os.WriteFile(outside, []byte(`{"type":"user","uuid":"x","timestamp":"2026-05-01T10:00:00Z","message":{"content":"stolen"}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(w.home, ".claude", "projects", "-home-ann-work")
	for name, to := range map[string]string{"link.jsonl": outside, "dangling.jsonl": "/nowhere/at/all"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "dir.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	listing := func() (out []string) {
		err := filepath.WalkDir(w.home, func(p string, d fs.DirEntry, err error) error {
			info, _ := d.Info()
			out = append(out, fmt.Sprint(p, info.Size(), info.Mode(), info.ModTime().UnixNano()))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := listing()
	r := w.run(nil)
	if d := cmp.Diff(before, listing()); d != "" {
		t.Errorf("the clients' directories changed: %s", d)
	}
	for _, l := range w.logs {
		for _, e := range l {
			if strings.Contains(string(e.Data), "stolen") {
				t.Errorf("read through a link: %s", e.Data)
			}
		}
	}
	if len(r.Problems) > 0 {
		t.Error(r.Problems)
	}
}
