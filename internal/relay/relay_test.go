package relay_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/fleet/fleettest"
	"reprise/internal/relay"
)

// machine is a connection as another machine has it.
func machine(t *testing.T, url string) *fleet.Conn {
	t.Helper()
	c, err := fleet.Connect(t.Context(), fleet.Options{Servers: url, Settings: config.Fleet{Namespace: "t"}, Name: t.Name(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func add(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// until waits for what is asked of it to be so.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// buffer is one that two may use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func none(string) {}

// What a run says is followed from another machine while it goes on, to its end. The servers
// go away in between: the run's file goes on, and the copy is caught up, each byte once. Two
// who copy the same run send nothing twice.
func TestOutputIsFollowed(t *testing.T) {
	dir := t.TempDir()
	o := fleettest.Options(dir)
	start := func() *server.Server {
		s, err := server.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		if !s.ReadyForConnections(time.Minute) {
			t.Fatal("the server does not come up")
		}
		return s
	}
	s := start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	url := s.ClientURL()
	o.Port = s.Addr().(*net.TCPAddr).Port // where it comes again

	const run = "run-abcdefghij"
	file := filepath.Join(dir, "stdout.jsonl")
	add(t, file, "one\n")
	var over atomic.Bool
	end := func() []byte {
		if over.Load() {
			return []byte(`{"id":"` + run + `"}`)
		}
		return nil
	}
	var copies sync.WaitGroup
	for range 2 {
		r := relay.Open(machine(t, url), "shop")
		copies.Go(func() {
			if err := r.Mirror(t.Context(), run, file, end); err != nil {
				t.Error(err)
			}
		})
	}
	elsewhere := relay.Open(machine(t, url), "shop")
	until(t, "the run is known", func() bool {
		_, err := elsewhere.Follow(t.Context(), run, false, &buffer{}, none, func() error { return nil })
		return err == nil
	})
	var seen buffer
	type ended struct {
		relay.End
		error
	}
	got := make(chan ended, 1)
	go func() {
		e, err := elsewhere.Follow(t.Context(), run, true, &seen, func(text string) { t.Error(text) }, func() error { return nil })
		got <- ended{e, err}
	}()
	until(t, "the first line is followed", func() bool { return seen.String() == "one\n" })

	s.Shutdown()
	s.WaitForShutdown()
	add(t, file, "two\n")
	s = start()
	long := strings.Repeat("x", 300<<10) // more than one piece
	add(t, file, long+"\n")
	add(t, file, "key AKIAIOSFODNN7EXAMPLQ\n")
	add(t, file, "half")
	over.Store(true)
	copies.Wait()
	e := <-got
	if e.error != nil || !e.Over || string(e.Doc) != `{"id":"`+run+`"}` {
		t.Fatalf("%+v", e)
	}
	text := seen.String()
	if !strings.HasPrefix(text, "one\ntwo\n"+long+"\nkey ") || !strings.HasSuffix(text, "\nhalf") || strings.Contains(text, "AKIAIOSFODNN7EXAMPLQ") {
		t.Errorf("%d bytes: %.40q … %.120q", len(text), text, text[max(0, len(text)-120):])
	}
	// Whoever comes later reads the same.
	var again buffer
	if e, err := elsewhere.Follow(t.Context(), run, false, &again, none, func() error { return nil }); err != nil || !e.Over || again.String() != text {
		t.Errorf("read again: %d bytes, %v", len(again.String()), err)
	}
	if _, err := elsewhere.Follow(t.Context(), "run-bbbbbbbbbb", false, &again, none, nil); !errors.Is(err, relay.ErrNotFound) {
		t.Errorf("a run that nobody told of: %v", err)
	}
}

// What is asked of a worker reaches it whenever it comes, once it is told that it was taken
// not again, and before that again under its name.
func TestRequestsReachTheWorker(t *testing.T) {
	url := fleettest.Server(t).ClientURL()
	person := relay.Open(machine(t, url), "shop")
	if err := person.Ask(t.Context(), "build-1", "20260101T000000.000000000-a", []byte("answer")); err != nil {
		t.Fatal(err)
	}
	if err := person.Ask(t.Context(), "build-2", "20260101T000000.000000000-b", []byte("other")); err != nil {
		t.Fatal(err)
	}
	worker := relay.Open(machine(t, url), "shop")
	killed := errors.New("killed")
	var names []string
	take := func(err error) func(string, []byte) error {
		return func(name string, data []byte) error {
			names = append(names, name+"="+string(data))
			return err
		}
	}
	if err := worker.Asked(t.Context(), "build-1", take(killed)); !errors.Is(err, killed) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	taken := make(chan string, 4)
	go func() {
		defer close(done)
		_ = worker.Asked(ctx, "build-1", func(name string, data []byte) error {
			taken <- name + "=" + string(data)
			return nil
		})
	}()
	if got := <-taken; got != names[0] || got != "20260101T000000.000000000-a=answer" {
		t.Errorf("given %q, then %q", names, got)
	}
	if err := person.Ask(t.Context(), "build-1", "c", []byte("more")); err != nil {
		t.Fatal(err)
	}
	if got := <-taken; got != "c=more" {
		t.Errorf("then %q", got)
	}
	// Whoever asked can see whether it was taken: a worker that was killed is called quiet later.
	if ok, err := person.Taken(t.Context(), "build-1", "c", time.Minute); err != nil || !ok {
		t.Errorf("what was taken: %v, %v", ok, err)
	}
	if ok, err := person.Taken(t.Context(), "build-2", "20260101T000000.000000000-b", time.Millisecond); err != nil || ok {
		t.Errorf("what nobody took: %v, %v", ok, err)
	}
	cancel()
	<-done
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_ = worker.Asked(short, "build-1", func(name string, _ []byte) error {
		if name != "c" { // whose word may have been on its way
			t.Errorf("%s was given again", name)
		}
		return nil
	})
}

// Workers, how loops stand and files of runs are seen from another machine.
func TestWhatWorkersTell(t *testing.T) {
	url := fleettest.Server(t).ClientURL()
	here, there := machine(t, url), machine(t, url)
	for _, name := range []string{"b", "a"} {
		if err := relay.Beat(t.Context(), here, relay.Worker{Name: name, Projects: []string{"shop"}, Doing: []relay.Doing{{Item: "login"}}}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := relay.Workers(t.Context(), there)
	if err != nil || len(list) != 2 || list[0].Name != "a" || list[0].Quiet || list[0].Heard.IsZero() || list[0].Doing[0].Item != "login" {
		t.Fatalf("%+v, %v", list, err)
	}
	if err := relay.Gone(t.Context(), here, "a"); err != nil {
		t.Fatal(err)
	}
	if list, err = relay.Workers(t.Context(), there); err != nil || len(list) != 1 || list[0].Name != "b" {
		t.Fatalf("%+v, %v", list, err)
	}
	r, other := relay.Open(here, "shop.v2"), relay.Open(there, "shop.v2")
	if err := r.PutState(t.Context(), "b", []byte(`{"v":1}`)); err != nil {
		t.Fatal(err)
	}
	if states, err := other.States(t.Context()); err != nil || len(states) != 1 || string(states["b"]) != `{"v":1}` {
		t.Fatalf("%q, %v", states, err)
	}
	file := filepath.Join(t.TempDir(), "report.md")
	add(t, file, strings.Repeat("report\n", 50_000))
	for range 2 { // sent twice it is there once
		if err := r.PutFile(t.Context(), "run-abcdefghij", "report.md", file); err != nil {
			t.Fatal(err)
		}
	}
	files, err := other.Files(t.Context(), "run-abcdefghij")
	if err != nil || len(files) != 1 || files[0].Name != "report.md" || files[0].Bytes != 350_000 {
		t.Fatalf("%+v, %v", files, err)
	}
	var got bytes.Buffer
	if err := other.GetFile(t.Context(), "run-abcdefghij", "report.md", &got); err != nil || got.Len() != 350_000 {
		t.Fatalf("%d bytes, %v", got.Len(), err)
	}
	if err := other.GetFile(t.Context(), "run-abcdefghij", "none", &got); !errors.Is(err, relay.ErrNotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := r.PutFile(t.Context(), "run-abcdefghij", "dir", t.TempDir()); err == nil {
		t.Error("a directory was sent")
	}
}

// A list of runs, and what a run has said, are read by one consumer each, however much there is:
// one for each message made the list of a cluster fail every second time, for a server is asked for
// the message before it knows the consumer.
func TestReadByOneConsumer(t *testing.T) {
	url := fleettest.Server(t).ClientURL()
	dir, worker := t.TempDir(), relay.Open(machine(t, url), "shop")
	for i := range 12 {
		run := "run-aaaaaaaa" + string(rune('a'+i)) + "a"
		file := filepath.Join(dir, run)
		add(t, file, strings.Repeat("one line of many\n", 40<<10)) // some pieces
		if err := worker.Mirror(t.Context(), run, file, func() []byte { return []byte(`{"id":"` + run + `"}`) }); err != nil {
			t.Fatal(err)
		}
	}
	conn := machine(t, url)
	var made atomic.Int64
	sub, err := conn.NC.Subscribe("$JS.API.CONSUMER.CREATE.>", func(*nats.Msg) { made.Add(1) })
	if err == nil {
		err = conn.NC.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	r := relay.Open(machine(t, url), "shop")
	list, err := r.EndedRuns(t.Context())
	if err != nil || len(list) != 12 {
		t.Fatalf("%d runs, %v", len(list), err)
	}
	places, end, err := r.Places(t.Context(), list[0].Run)
	if err != nil || !end.Over || len(places) < 2 {
		t.Fatalf("%d places, %+v, %v", len(places), end, err)
	}
	if err := conn.NC.Flush(); err != nil {
		t.Fatal(err)
	}
	if n := made.Load(); n != 2 {
		t.Errorf("%d consumers were made, want one for each of the two", n)
	}
}
