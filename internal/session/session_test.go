package session

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/config"
	"reprise/internal/event"
	"reprise/internal/recall"
)

// world is a machine with a project, its sessions and its memory.
type world struct {
	t    *testing.T
	home *config.Home
	env  config.Env
	warn []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	shop := filepath.Join(root, "shop")
	env := config.Env{Vars: map[string]string{"HOME": root, "USERPROFILE": root, "REPRISE_HOME": filepath.Join(root, "data")}, GOOS: "linux", Dir: shop, Now: time.Now}
	if err := os.MkdirAll(filepath.Join(shop, ".reprise"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shop, ".reprise", "project.yaml"), []byte("v: 1\nname: shop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	home, err := config.Open(env, "")
	if err != nil || home.Project == nil {
		t.Fatal(home, err)
	}
	home.Settings.Recall.HoldOutPercent = 0
	return &world{t: t, home: home, env: env}
}

func (w *world) teller() *Teller {
	m := Open(Options{Home: w.home, Env: w.env})
	w.t.Cleanup(func() { m.Close() })
	return &Teller{Memory: m, Broker: w.broker, Warn: func(what string, err error) { w.warn = append(w.warn, what+": "+err.Error()) }}
}

func (w *world) broker(who event.Event) (*event.Broker, error) {
	return Broker(w.home, w.env, "vm", who, func(err error) { w.t.Error(err) }), nil
}

func (w *world) record(session string, typ event.Type, data any) {
	w.t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		w.t.Fatal(err)
	}
	b, _ := w.broker(event.Event{Session: session, Client: "claude"})
	if _, err := b.Record(w.t.Context(), event.Event{Type: typ, Scope: event.ScopeSession, Data: raw}); err != nil {
		w.t.Fatal(err)
	}
}

// fixes is a session in which a command failed and was mended. It does not end:
// its client was killed.
func (w *world) fixes(session string) {
	in := json.RawMessage(`{"command":"go test ./cart"}`)
	code := 1
	w.record(session, event.SessionStarted, event.SessionData{Cwd: w.env.Dir})
	w.record(session, event.PromptSubmitted, event.PromptData{Text: "Mend the sum of the cart, sumUp is not found"})
	w.record(session, event.ToolFailed, event.ToolData{Tool: "shell", Name: "Bash", Input: in, Error: "cart.go:7: undefined: sumUp", ExitCode: &code})
	w.record(session, event.ToolSucceeded, event.ToolData{Tool: "shell", Name: "Bash", Input: json.RawMessage(`{"command":"go generate ./cart"}`), Output: "ok"})
	w.record(session, event.ToolSucceeded, event.ToolData{Tool: "shell", Name: "Bash", Input: in, Output: "ok"})
}

func (w *world) tell(t *Teller, ev dialect.Event) string {
	w.t.Helper()
	ev.Client, ev.Cwd = "claude", w.env.Dir
	d, err := t.Tell(w.t.Context(), ev)
	if err != nil || len(w.warn) > 0 {
		w.t.Fatal(err, w.warn)
	}
	return d.Context
}

func (w *world) start(session string) string {
	w.record(session, event.SessionStarted, event.SessionData{Cwd: w.env.Dir})
	return w.tell(w.teller(), dialect.Event{Kind: dialect.SessionStart, Session: session, Source: "startup"})
}

func (w *world) failure(session string) string {
	code := 1
	return w.tell(w.teller(), dialect.Event{Kind: dialect.ToolFailed, Session: session, Tool: "shell", ToolName: "Bash",
		Input: []byte(`{"command":"go test ./cart"}`), Error: "cart.go:9: undefined: sumUp", ExitCode: &code})
}

func (w *world) index() []byte {
	w.t.Helper()
	data, err := os.ReadFile(IndexFile(w.home))
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

// What a session found out that was killed is known to the one that starts right
// after it, though nobody organised it.
func TestKilledSessionIsKnown(t *testing.T) {
	w := newWorld(t)
	w.start("s0") // there is an index, and nothing in it
	w.fixes("s1")
	w.start("s2")
	if got := w.failure("s2"); !strings.Contains(got, "go generate ./cart") {
		t.Errorf("at the failure: %q", got)
	}
}

// A start for which there is nothing to organise writes nothing into the index:
// the client does not wait for what it cannot be told of.
func TestQuietStartOnlyReads(t *testing.T) {
	w := newWorld(t)
	w.fixes("s1")
	w.record("s1", event.SessionEnded, event.SessionData{})
	first := w.start("s2")
	if first == "" {
		t.Fatal("nothing is told")
	}
	before := w.index()
	for _, s := range []string{"s3", "s4"} {
		if got := w.start(s); got != first {
			t.Errorf("%s was told %q, the one before %q", s, got, first)
		}
	}
	w.failure("s4")
	if !bytes.Equal(before, w.index()) {
		t.Error("the index was written")
	}
	// What was put off is done by the next who has time, and is the same as ever.
	m := w.teller().Memory
	if r, err := m.Organizer.Run(t.Context(), 0); err != nil || r.Events == 0 {
		t.Errorf("%+v, %v: there were events to take in", r, err)
	}
}

// News are told apart from what only says that sessions come and go.
func TestNews(t *testing.T) {
	w := newWorld(t)
	news := func() bool {
		t.Helper()
		m := w.teller().Memory
		got, err := m.Organizer.News(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	organize := func() {
		t.Helper()
		if _, err := w.teller().Memory.Organizer.Run(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	if !news() {
		t.Error("an index in which nothing was ever organised has no news")
	}
	organize()
	if news() {
		t.Error("all is organised, and there are news")
	}
	w.record("s1", event.SessionStarted, event.SessionData{})
	if news() {
		t.Error("that a session began is news")
	}
	w.record("s1", event.PromptSubmitted, event.PromptData{Text: "use pnpm"})
	if !news() {
		t.Error("a prompt is no news")
	}
	organize()
	for range 300 { // more than are looked through
		w.record("s1", event.SessionStarted, event.SessionData{})
	}
	if !news() {
		t.Error("any number of events may wait")
	}
	organize()
	// A log that is another one than before has to be read again.
	logs, _ := filepath.Glob(filepath.Join(w.home.EventsDir(), "*.jsonl")) // the pattern is right
	if len(logs) != 1 || news() {
		t.Fatal(logs)
	}
	if err := os.Truncate(logs[0], 10); err != nil {
		t.Fatal(err)
	}
	if !news() {
		t.Error("a log that was cut is no news")
	}
}

// A kill between the answer and organising loses nothing: whoever comes next
// finds the cursor where it was.
func TestKillBeforeOrganising(t *testing.T) {
	w := newWorld(t)
	w.start("s0")
	w.fixes("s1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the hook's time was over before it began
	if _, err := w.teller().Tell(ctx, dialect.Event{Client: "claude", Kind: dialect.SessionStart, Session: "s2", Cwd: w.env.Dir}); err == nil {
		t.Error("an answer without time")
	}
	w.start("s3")
	if got := w.failure("s3"); !strings.Contains(got, "go generate ./cart") {
		t.Errorf("told %q", got)
	}
}

func TestToldIsNotToldAgain(t *testing.T) {
	w := newWorld(t)
	w.fixes("s1")
	w.record("s1", event.SessionEnded, event.SessionData{})
	w.start("s2")
	ask := func() string {
		return w.tell(w.teller(), dialect.Event{Kind: dialect.Prompt, Session: "s3", Prompt: "go test ./cart says undefined: sumUp"})
	}
	first := ask()
	for again := ask(); again != ""; again = ask() { // there may be more to say
		if _, id, _ := strings.Cut(first, "id ep-"); id == "" || strings.Contains(again, id[:12]) {
			t.Fatalf("told %q, then %q", first, again)
		}
	}
	// A rebuild of the index does not make it forget.
	if _, err := w.teller().Memory.Index.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.teller().Memory.Organizer.Run(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if again := ask(); again != "" {
		t.Errorf("after a rebuild: %q", again)
	}
	// Its client has forgotten all when it starts anew.
	if got := w.start("s3"); !strings.Contains(got, "sumUp") {
		t.Errorf("at a new start: %q", got)
	}
	if err := ForgetTold(w.home.Paths.State, "claude", "s3"); err != nil {
		t.Fatal(err)
	}
	if err := ForgetTold(w.home.Paths.State, "claude", "s3"); err != nil {
		t.Errorf("what is not there: %v", err)
	}
}

// A note is another session's, damaged, no file, or very long: the session is
// told, at worst twice.
func TestToldNotes(t *testing.T) {
	w := newWorld(t)
	tl := w.teller()
	ev := dialect.Event{Client: "claude", Session: "s1"}
	tl.note(ev, []string{"a"}, []event.ServedItem{{ID: "b"}, {ID: "c\nd"}})
	if got := strings.Join(tl.told(t.Context(), ev), " "); got != "a b" {
		t.Errorf("told %q", got)
	}
	if got := tl.told(t.Context(), dialect.Event{Client: "codex", Session: "s1"}); len(got) > 0 {
		t.Errorf("another client was told %q", got)
	}
	file := tl.toldFile(ev)
	for _, text := range []string{"", "claude\ns2\nx\n", "claude\n", "\x00\xff", strings.Repeat("x", 1<<20)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := tl.told(t.Context(), ev); len(got) > 0 {
			t.Errorf("of %.20q: %q", text, got)
		}
	}
	var many []event.ServedItem
	for i := range 10_000 {
		many = append(many, event.ServedItem{ID: "e-" + strings.Repeat("0", 8) + string(rune('a'+i%26))})
	}
	tl.note(ev, nil, many)
	if got := tl.told(t.Context(), ev); len(got) < 1000 || got[len(got)-1] != many[len(many)-1].ID {
		t.Errorf("%d ids are left of very many", len(got))
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if tl.note(ev, nil, many[:1]); len(w.warn) != 1 || len(tl.told(t.Context(), ev)) > 0 {
		t.Errorf("a directory in the note's place: %q", w.warn)
	}
}

// Two hooks of a session at once leave a whole note.
func TestTwoAtOnce(t *testing.T) {
	w := newWorld(t)
	tl := w.teller()
	tl.Warn = func(what string, err error) { t.Error(what, err) }
	ev := dialect.Event{Client: "claude", Session: "s1"}
	var all sync.WaitGroup
	for _, id := range []string{"a", "b", "c", "d"} {
		all.Go(func() {
			for range 50 {
				tl.note(ev, nil, []event.ServedItem{{ID: id}})
				if got := tl.told(t.Context(), ev); len(got) != 1 {
					t.Errorf("read %q", got)
				}
			}
		})
	}
	all.Wait()
}

func TestSweepTold(t *testing.T) {
	w := newWorld(t)
	tl := w.teller()
	state := w.home.Paths.State
	if err := SweepTold(state, time.Now()); err != nil {
		t.Errorf("without any note: %v", err)
	}
	for _, s := range []string{"old", "new"} {
		tl.note(dialect.Event{Client: "claude", Session: s}, []string{"x"}, nil)
	}
	old := time.Now().Add(-toldKeeps - time.Hour)
	if err := os.Chtimes(toldFile(state, "claude", "old"), old, old); err != nil {
		t.Fatal(err)
	}
	if err := SweepTold(state, time.Now()); err != nil {
		t.Fatal(err)
	}
	for s, want := range map[string]int{"old": 0, "new": 1} {
		if got := tl.told(t.Context(), dialect.Event{Client: "claude", Session: s}); len(got) != want {
			t.Errorf("%s: %q", s, got)
		}
	}
}

// A reader in a project stays one, wherever the settings come from.
func TestReader(t *testing.T) {
	w := newWorld(t)
	w.env.Vars["REPRISE_AGENT"], w.env.Vars["AGENT_ROLE"] = "ada", "conductor"
	got := Reader(w.home, w.env)
	if got.Project != "shop" || got.Agent != "ada" || got.Role != "conductor" || len(got.Places) == 0 || got.Places[0] != recall.Place(w.env.Dir) {
		t.Errorf("%+v", got)
	}
}
