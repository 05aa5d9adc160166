package event_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/event"
	"reprise/internal/event/quick"
)

func options(data string) event.BrokerOptions {
	return event.BrokerOptions{
		Events: func(project string) string {
			if project == "" {
				return filepath.Join(data, "events")
			}
			return filepath.Join(data, "projects", project, "events")
		},
		Outbox: filepath.Join(data, "outbox"), Host: "h", Now: clock(time.Second),
	}
}

func record(t *testing.T, b *event.Broker, e event.Event) event.Event {
	t.Helper()
	if e.Type == "" {
		e.Type = event.ToolCalled
	}
	got, err := b.Record(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestBrokerRoutesAndNormalises(t *testing.T) {
	data := t.TempDir()
	opt := options(data)
	opt.Defaults = event.Event{Client: "Claude-Code", Role: "Section Leader", Agent: " anna ", Session: "s-1"}
	b := event.NewBroker(opt)
	for _, tt := range []struct {
		name string
		in   event.Event
		dir  string
		want event.Scope
	}{
		{"a session outside any project", event.Event{}, "events", event.ScopeSession},
		{"a session in a project", event.Event{Project: "shop"}, "projects/shop/events", event.ScopeSession},
		{"a project", event.Event{Project: "shop", Scope: event.ScopeProject}, "projects/shop/events", event.ScopeProject},
		{"a project's event outside any project", event.Event{Scope: event.ScopeProject}, "events", event.ScopeGlobal},
		{"global, seen from a project", event.Event{Scope: event.ScopeGlobal, Project: "shop"}, "events", event.ScopeGlobal},
	} {
		before, _ := read(filepath.Join(data, tt.dir))
		got := record(t, b, tt.in)
		after, errs := read(filepath.Join(data, tt.dir))
		if len(after) != len(before)+1 || len(errs) > 0 || after[len(after)-1].ID != got.ID || got.Scope != tt.want {
			t.Errorf("%s: scope %q, %d events in %s, %v", tt.name, got.Scope, len(after), tt.dir, errs)
		}
		if got.Client != "claude" || got.Role != "section-leader" || got.Agent != "anna" {
			t.Errorf("%s: client %q, role %q, agent %q", tt.name, got.Client, got.Role, got.Agent)
		}
		if wantSession := tt.want == event.ScopeSession; (got.Session != "") != wantSession {
			t.Errorf("%s: session %q", tt.name, got.Session)
		}
	}
	got := record(t, b, event.Event{ACL: []string{"Client: Gemini-CLI", "client:gemini", "role:Section_Leader", "*"}, Role: "Musician", Outcome: "bad \xff utf-8"})
	if d := cmp.Diff([]string{"client:gemini", "role:section-leader", "*"}, got.ACL); d != "" {
		t.Error(d)
	}
	if got.Role != "musician" || got.Outcome != "bad \uFFFD utf-8" {
		t.Errorf("role %q, outcome %q", got.Role, got.Outcome)
	}
}

func TestBrokerRefuses(t *testing.T) {
	data := t.TempDir()
	b := event.NewBroker(options(data))
	for name, e := range map[string]event.Event{
		"a project that is a path":   {Type: event.ToolCalled, Project: "../../x"},
		"a project with a slash":     {Type: event.ToolCalled, Project: "a/b"},
		"a time before all of this":  {Type: event.ToolCalled, TS: time.Date(1066, 1, 1, 0, 0, 0, 0, time.UTC)},
		"a number for a text":        {Type: event.ToolCalled, Data: json.RawMessage(`{"tool":7}`)},
		"a text for a number":        {Type: event.ToolSucceeded, Data: json.RawMessage(`{"tool":"shell","exit_code":"0"}`)},
		"a fraction for an integer":  {Type: event.ToolSucceeded, Data: json.RawMessage(`{"duration_ms":1.5}`)},
		"names in capitals count":    {Type: event.ToolSucceeded, Data: json.RawMessage(`{"DURATION_MS":"x"}`)},
		"an object for a list":       {Type: event.RecallServed, Data: json.RawMessage(`{"items":{}}`)},
		"a text in a list of things": {Type: event.RecallServed, Data: json.RawMessage(`{"items":[{"id":"a"},"b"]}`)},
		"a number in such a thing":   {Type: event.RecallServed, Data: json.RawMessage(`{"items":[{"id":7}]}`)},
		"numbers in a list of texts": {Type: event.QuestionAsked, Data: json.RawMessage(`{"options":[1]}`)},
		"an acl of no kind":          {Type: event.ToolCalled, ACL: []string{"everyone:x"}},
	} {
		if _, err := b.Record(context.Background(), e); !errors.Is(err, event.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, _ := os.ReadDir(data); len(list) > 0 {
		t.Errorf("something was written: %v", list)
	}
	got := record(t, b, event.Event{Type: event.ToolSucceeded, Data: json.RawMessage(`{"tool":"shell","exit_code":null,"of_tomorrow":[1],"input":[1,"x"],"duration_ms":12}`)})
	if !bytes.Contains(got.Data, []byte(`"of_tomorrow":[1]`)) {
		t.Errorf("an unknown field is gone: %s", got.Data)
	}
}

// TestSchemaIsThePayloads: the hot path's table is what the payloads' structs
// say, so that what passes it can be decoded into them.
func TestSchemaIsThePayloads(t *testing.T) {
	payloads := map[event.Type]any{
		event.SessionStarted: event.SessionData{}, event.SessionEnded: event.SessionData{}, event.PromptSubmitted: event.PromptData{},
		event.ToolCalled: event.ToolData{}, event.ToolSucceeded: event.ToolData{}, event.ToolFailed: event.ToolData{}, event.PermissionAsked: event.ToolData{},
		event.ResponseCompleted: event.ResponseData{}, event.ClientCompacted: event.CompactData{},
		event.SubagentStarted: event.SubagentData{}, event.SubagentFinished: event.SubagentData{},
		event.QuestionAsked: event.QuestionData{}, event.QuestionAnswered: event.QuestionData{},
		event.DelegationCounted: event.DelegationData{}, event.RecallServed: event.ServedData{}, event.RecallUsed: event.UsedData{},
		event.MemoryWritten: event.MemoryData{}, event.MemoryPromoted: event.MemoryData{}, event.MemoryRetired: event.MemoryData{}, event.MemoryPurged: event.MemoryData{},
		event.VerificationFinished: event.VerificationData{},
	}
	for _, typ := range event.Types() {
		got, ok := quick.Fields(string(typ))
		if !ok {
			t.Errorf("%s is not known there", typ)
		}
		var want []quick.Field
		if p := payloads[typ]; p != nil {
			want = fieldsOf(reflect.TypeOf(p))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s:\n%s", typ, d)
		}
	}
}

func fieldsOf(typ reflect.Type) []quick.Field {
	var out []quick.Field
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		ft := f.Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		q := quick.Field{Name: name}
		switch {
		case ft == reflect.TypeFor[json.RawMessage]():
			q.Kind = quick.Any
		case ft.Kind() == reflect.String:
			q.Kind = quick.Text
		case ft.Kind() == reflect.Int || ft.Kind() == reflect.Int64:
			q.Kind = quick.Integer
		case ft.Kind() == reflect.Float64:
			q.Kind = quick.Number
		case ft.Kind() == reflect.Bool:
			q.Kind = quick.Bool
		case ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.String:
			q.Kind = quick.Texts
		case ft.Kind() == reflect.Slice:
			q.Kind, q.Of = quick.Objects, fieldsOf(ft.Elem())
		default:
			panic(f.Name)
		}
		out = append(out, q)
	}
	return out
}

// failing is a disk on which appends to the logs fail while on is set.
func failing(on *atomic.Bool, err error) durable.Disk {
	return durable.NewDisk(func(s durable.Step) *durable.Fault {
		if on.Load() && s.Op == durable.OpWrite && strings.HasSuffix(s.Path, ".jsonl") {
			return &durable.Fault{Err: err, Write: s.Size / 2}
		}
		return nil
	})
}

func TestOutbox(t *testing.T) {
	data := t.TempDir()
	var full atomic.Bool
	var told []error
	opt := options(data)
	opt.Disk, opt.Report = failing(&full, syscall.ENOSPC), func(err error) { told = append(told, err) }
	b := event.NewBroker(opt)
	record(t, b, event.Event{Project: "p"})
	full.Store(true)
	var want []string
	for range 3 {
		e := record(t, b, event.Event{Project: "p", Type: event.PromptSubmitted, Data: json.RawMessage(`{"text":"hello"}`)})
		if e.Prev != "" {
			t.Error("an event that waits has a place in the chain")
		}
		want = append(want, e.ID)
	}
	if len(told) != 3 || !errors.Is(told[0], syscall.ENOSPC) {
		t.Errorf("told %v", told)
	}
	waiting, err := b.Outbox()
	if err != nil || len(waiting) != 3 || waiting[0].ID != want[0] || waiting[0].Bad != "" || !strings.Contains(waiting[0].Why, "no space") {
		t.Errorf("%+v %v", waiting, err)
	}
	if r, err := b.Replay(context.Background(), 0); err != nil || r.Added != 0 || r.Left != 3 || len(r.Trouble) != 3 {
		t.Errorf("while the disk is full: %+v %v", r, err)
	}
	full.Store(false)
	if r, err := b.Replay(context.Background(), 2); err != nil || r.Added != 2 || r.Left != 1 {
		t.Errorf("two at most: %+v %v", r, err)
	}
	if r, err := b.Replay(context.Background(), 0); err != nil || r.Added != 1 || r.Left != 0 {
		t.Errorf("the rest: %+v %v", r, err)
	}
	if r, err := b.Replay(context.Background(), 0); err != nil || !cmp.Equal(r, event.Replayed{}) {
		t.Errorf("again: %+v %v", r, err)
	}
	dir := filepath.Join(data, "projects", "p", "events")
	events, errs := read(dir)
	if len(events) != 4 || len(errs) > 0 || events[1].ID != want[0] || events[3].ID != want[2] {
		t.Errorf("%d events, %v", len(events), errs)
	}
	if r := verify(t, dir); !r.OK() {
		t.Error(r)
	}
}

// TestReplayAddsNothingTwice: a crash after the append and before the file of
// the outbox was removed.
func TestReplayAddsNothingTwice(t *testing.T) {
	data := t.TempDir()
	var full atomic.Bool
	full.Store(true)
	opt := options(data)
	opt.Disk = failing(&full, syscall.ENOSPC)
	b := event.NewBroker(opt)
	e := record(t, b, event.Event{})
	file := filepath.Join(data, "outbox", e.ID+".json")
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	full.Store(false)
	for i, want := range []event.Replayed{{Added: 1}, {Known: 1}, {Known: 1}} {
		if err := os.WriteFile(file, kept, 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := b.Replay(context.Background(), 0); err != nil || !cmp.Equal(r, want) {
			t.Errorf("time %d: %+v %v", i, r, err)
		}
		record(t, b, event.Event{}) // others go on
	}
	if r := verify(t, filepath.Join(data, "events")); !r.OK() || r.Events != 4 {
		t.Errorf("%+v", r)
	}
}

func TestOutboxBadItemHoldsNobodyUp(t *testing.T) {
	data := t.TempDir()
	var full atomic.Bool
	full.Store(true)
	opt := options(data)
	opt.Disk = failing(&full, syscall.EROFS)
	b := event.NewBroker(opt)
	good := record(t, b, event.Event{})
	full.Store(false)
	for name, text := range map[string]string{
		"00000000-bad.json": "no JSON",
		"00000001.json":     `{"v":1,"event":{"v":1,"id":"other","ts":"2026-11-01T00:00:00Z","scope":"global","type":"tool.called","prev":""}}`,
		"00000002.json":     `{"v":1,"event":{"v":1,"id":"00000002","ts":"2026-11-01T00:00:00Z","scope":"global","type":"tool.exploded","prev":""}}`,
		"00000003.json":     `{"v":9,"event":{}}`,
		"00000004.json":     `{"v":1,"event":{"v":1,"id":"00000004","ts":"2026-11-01T00:00:00Z","scope":"project","project":"../up","type":"tool.called","prev":""}}`,
	} {
		if err := os.WriteFile(filepath.Join(data, "outbox", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := b.Replay(context.Background(), 0)
	if err != nil || r.Added != 1 || len(r.Aside) != 5 || r.Left != 0 {
		t.Errorf("%+v %v", r, err)
	}
	if events, _ := read(filepath.Join(data, "events")); len(events) != 1 || events[0].ID != good.ID {
		t.Errorf("%v", events)
	}
	waiting, err := b.Outbox()
	if err != nil || len(waiting) != 5 || waiting[0].Bad == "" {
		t.Errorf("set aside: %+v %v", waiting, err)
	}
	if r, err := b.Replay(context.Background(), 0); err != nil || !cmp.Equal(r, event.Replayed{}) {
		t.Errorf("again: %+v %v", r, err)
	}
}

func TestLockHeldTooLongGoesToTheOutbox(t *testing.T) {
	data := t.TempDir()
	opt := options(data)
	b := event.NewBroker(opt)
	record(t, b, event.Event{})
	unlock, err := durable.TryLock(filepath.Join(data, "events", "2026-11.h.jsonl.lock"))
	if err != nil {
		t.Fatal(err)
	}
	opt.Wait = 20 * time.Millisecond // only now: on a busy machine the first could be late, too
	opt.Now = func() time.Time { return start }
	b = event.NewBroker(opt)
	record(t, b, event.Event{})
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if r, err := b.Replay(context.Background(), 0); err != nil || r.Added != 1 {
		t.Errorf("%+v %v", r, err)
	}
}

func TestNotEvenTheOutbox(t *testing.T) {
	data := t.TempDir()
	disk := durable.NewDisk(func(s durable.Step) *durable.Fault { return &durable.Fault{Err: syscall.EROFS} })
	opt := options(data)
	opt.Disk = disk
	_, err := event.NewBroker(opt).Record(context.Background(), event.Event{Type: event.ToolCalled})
	if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "kept for later") {
		t.Errorf("%v", err)
	}
}

var recording = durabletest.Scenario{
	Prepare: func(t *testing.T, dir string) { record(t, event.NewBroker(options(dir)), event.Event{}) },
	Act: func(disk durable.Disk, dir string) error {
		opt := options(dir)
		opt.Disk = disk
		_, err := event.NewBroker(opt).Record(context.Background(), event.Event{Type: event.PromptSubmitted})
		return err
	},
	Check: func(t *testing.T, dir string, err error, at string) {
		t.Helper()
		b := event.NewBroker(options(dir))
		if _, rerr := b.Replay(context.Background(), 0); rerr != nil {
			t.Errorf("%s: replay: %v", at, rerr)
		}
		add(t, event.Open(filepath.Join(dir, "events"), "h", clock(time.Hour)), event.Event{})
		r := verify(t, filepath.Join(dir, "events"))
		if !r.OK() || r.Events > 3 || err == nil && r.Events != 3 {
			t.Errorf("%s: record said %v, then %d events: %v", at, err, r.Events, r.Problems)
		}
	},
}

func TestRecordKilledAtEachStep(t *testing.T) { recording.CrashAtEachStep(t) }

func TestRecordFailsAtEachStep(t *testing.T) { recording.FailAtEachStep(t, syscall.ENOSPC) }

var replaying = durabletest.Scenario{
	Prepare: func(t *testing.T, dir string) {
		var full atomic.Bool
		full.Store(true)
		opt := options(dir)
		opt.Disk = failing(&full, syscall.ENOSPC)
		b := event.NewBroker(opt)
		record(t, b, event.Event{})
		record(t, b, event.Event{})
	},
	Act: func(disk durable.Disk, dir string) error {
		opt := options(dir)
		opt.Disk = disk
		r, err := event.NewBroker(opt).Replay(context.Background(), 0)
		if err == nil && len(r.Trouble) > 0 {
			err = errors.New(r.Trouble[0])
		}
		return err
	},
	Check: func(t *testing.T, dir string, err error, at string) {
		t.Helper()
		b := event.NewBroker(options(dir))
		if r, err := b.Replay(context.Background(), 0); err != nil || len(r.Aside)+len(r.Trouble) > 0 {
			t.Errorf("%s: replay: %+v %v", at, r, err)
		}
		if r := verify(t, filepath.Join(dir, "events")); !r.OK() || r.Events != 2 {
			t.Errorf("%s: %v, then %d events: %v", at, err, r.Events, r.Problems)
		}
	},
}

func TestReplayKilledAtEachStep(t *testing.T) { replaying.CrashAtEachStep(t) }

func TestReplayFailsAtEachStep(t *testing.T) { replaying.FailAtEachStep(t, syscall.EIO) }

// tree is every byte under a directory, by path.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var data []byte
			data, err = os.ReadFile(path)
			out[path] = string(data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
