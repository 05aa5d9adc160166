package task

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// states are texts of state.json: what the program writes, what others do, what is wrong.
func states(tb testing.TB) []string {
	at := time.Date(2026, 2, 3, 4, 5, 6, 7000, time.UTC)
	full := &State{Next: 40, Tasks: map[int]*Task{
		3: {Number: 3, Title: "ünï \"quoted\" <b> & \\ \u2028", Slug: "x", Status: Blocked, Before: Planned, Reason: "why\tnot"},
		7: {
			Number: 7, Title: "All", Slug: "all", Status: InProgress, Priority: "high", Language: "go", Effort: "90 min", EffortHours: 1.5, DependsOn: []int{3, 5},
			Created: &at, Started: &at, Completed: &at, Abandoned: &at, Updated: &at, Research: []string{"a/b.md", "c.md"}, Plans: []string{"p.md"}, Summary: "s.md",
			Operations: []*Operation{{Name: OpResearch, Session: "sess_1_abcdef", Started: at, Path: []string{"a", "b"}}, {Name: OpPlan}},
		},
	}, Reviews: []*Review{{Number: 1, Status: "completed", Started: at, Tasks: []int{3}}}}
	written, err := full.Bytes()
	if err != nil {
		tb.Fatal(err)
	}
	return []string{
		string(written), `{}`, `{"v":1,"next_number":7,"tasks":{}}`, `{"tasks":{"1":{"title":"a"}}}`, "\ufeff{\"tasks\":{}}",
		`{"tasks":{"1":{"title":"a","mine":{"b":[1]}}},"theirs":"x"}`, `{"tasks":{"1":{"Title":"a"}}}`, `{"TASKS":{"1":{"title":"a"}}}`,
		`{"tasks":{"1":{"title":"a","title":"b"}}}`, `{"tasks":{"1":{"title":"a"},"1":{"slug":"b"}}}`, `{"tasks":{"01":{"title":"a"}}}`,
		`{"tasks":{"1":{"title":null,"depends_on":[],"research":null}}}`, `{"tasks":{"1":{"status":"Done"}}}`, `{"tasks":{"1":{"status":"?"}}}`,
		`{"tasks":{"1":{"effort_hours":1e2}}}`, `{"tasks":{"1":{"effort_hours":"x"}}}`, `{"tasks":{"1":{"depends_on":[1.5]}}}`, `{"tasks":{"1":{"depends_on":[007]}}}`,
		`{"tasks":{"1":{"created":"yesterday"}}}`, `{"tasks":{"1":{"created":"2026-02-03T04:05:06+02:00"}}}`, `{"tasks":{"1":{"title":"\ud800"}}}`, "{\"tasks\":{\"1\":{\"title\":\"\xff\"}}}",
		`{"tasks":{"0":{}}}`, `{"tasks":{"9223372036854775807":{}}}`, `{"tasks":{"1":null}}`, `{"v":2}`, `{"v":1.0}`, `{"next_number":99999999999999999999}`, `{"next_number":-4}`,
		`{"reviews":[null]}`, `{"reviews":[]}`, `{"reviews":[{"number":1}]}`, `{"reviews":null}`, `{"tasks":{}} x`, `{"tasks":{},}`, `{"tasks":{"1":{"title":"a",}}}`, `{"tasks":`, `{"tasks":{"1":{"title":"a`, `{"tasks":{"1":{"title":"a\`,
		`{"tasks":{"1":{"operations":[{"name":"x"}`, `{"tasks":{"1":{"operations":[]}}}`, `{"tasks":{"1":{"title":"\u0041\n"}}}`, `[]`, `null`, `{"a"}`, `{"tasks" {}}`, "{\"tasks\":{\"1\":{\"title\":\"a\nb\"}}}",
	}
}

// What is read the short way is what encoding/json makes of it.
func FuzzQuickState(f *testing.F) {
	for _, s := range states(f) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		quick, ok := quickState(data)
		if !ok {
			return
		}
		slow, err := slowState(data)
		if err != nil {
			t.Fatalf("%q is read the short way, and else: %v", data, err)
		}
		if !reflect.DeepEqual(quick, slow) {
			a, _ := json.Marshal(quick.Tasks)
			b, _ := json.Marshal(slow.Tasks)
			t.Fatalf("%q: %s (%d, %v)\nand by encoding/json %s (%d, %v)", data, a, quick.Next, quick.Reviews, b, slow.Next, slow.Reviews)
		}
	})
}

// What the program writes is read the short way, whatever stands in it, and so is a list
// that a program before this one wrote.
func TestQuickStateReadsWhatIsWritten(t *testing.T) {
	if _, ok := quickState([]byte(states(t)[0])); !ok {
		t.Error("what the program writes is not read the short way")
	}
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("First"))
	change(t, s, status(1, Blocked, "no \"access\""))
	data, err := os.ReadFile(filepath.Join(s.Dir(), "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := quickState(data); !ok {
		t.Errorf("not read the short way:\n%s", data)
	}
}

// The writer writes what encoding/json would.
func TestWriterWritesAsJSONDoes(t *testing.T) {
	for _, text := range states(t) {
		s, err := slowState([]byte(strings.TrimPrefix(text, "\ufeff")))
		if err != nil || s.extra != nil {
			continue
		}
		got, err := s.Bytes()
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		plain := struct {
			V       int                `json:"v"`
			Next    int                `json:"next_number"`
			Tasks   map[int]*plainTask `json:"tasks"`
			Reviews []*Review          `json:"reviews,omitempty"`
		}{stateVersion, s.Next, map[int]*plainTask{}, s.Reviews}
		for n, task := range s.Tasks {
			if task.extra == nil {
				plain.Tasks[n] = (*plainTask)(task)
			}
		}
		want, err := json.MarshalIndent(plain, "", "  ")
		if err != nil || len(plain.Tasks) != len(s.Tasks) {
			continue
		}
		if string(got) != string(want)+"\n" {
			t.Errorf("%s is written as\n%s\nand by encoding/json as\n%s", text, got, want)
		}
	}
}

// What other programs keep in a task stays, in a list that is printed, too.
func TestListKeepsWhatOthersAdd(t *testing.T) {
	s, err := ParseState([]byte(`{"tasks":{"2":{"title":"a","mine":{"b":[1,"<"]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	data, err := MarshalList([]Named{{Task: s.Tasks[2], Waits: []int{5}}})
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	want := map[string]any{"number": 2.0, "folder": "specs/002_", "waits_for": []any{5.0}, "title": "a", "slug": "", "status": "not_started", "mine": map[string]any{"b": []any{1.0, "<"}}}
	if len(list) != 1 || !reflect.DeepEqual(list[0], want) {
		t.Errorf("%s", data)
	}
	if data, err := MarshalList(nil); err != nil || string(data) != "[]\n" {
		t.Errorf("%q, %v", data, err)
	}
}
