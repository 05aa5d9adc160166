package mcpserver

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"reprise/internal/session"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run with -update to make it", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s (run with -update if this is meant):\n%s", file, diff)
	}
}

// Wire transcripts: raw lines in, raw lines out. The clock of the fakes stands
// still, so nothing has to be normalised but nothing either.
func TestWire(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "wire", "*.txtar"))
	if err != nil || len(files) < 5 {
		t.Fatalf("transcripts: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, func(d *Deps) {
				d.Now = func() time.Time { return epoch }
				d.Settings.SubAgent.SyncWindowSeconds = 0
				if filepath.Base(file) == "state.txtar" {
					inProject(&fakeState{state: session.State{Project: "shop", Agent: "ann", Log: []session.Noted{}, Decisions: []session.Noted{}, Learnings: []session.Noted{}, Open: []session.Noted{}, Handoffs: []session.Noted{}}})(d)
				}
			})
			p := w.serve(t.Context())
			var out bytes.Buffer
			for line := range strings.Lines(string(ar.Files[0].Data)) {
				line = strings.TrimSuffix(line, "\n")
				p.send(line)
				if wantsAnswer(line) {
					out.WriteString(p.next() + "\n")
				}
			}
			if err := p.end(); err != nil {
				t.Error(err)
			}
			for extra := range p.lines {
				t.Errorf("unasked: %s", extra)
			}
			if *update {
				ar.Files = []txtar.File{ar.Files[0], {Name: "out", Data: out.Bytes()}}
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(ar.Files) != 2 {
				t.Fatal("no output in the transcript: run with -update")
			}
			if diff := cmp.Diff(strings.Split(string(ar.Files[1].Data), "\n"), strings.Split(out.String(), "\n")); diff != "" {
				t.Errorf("run with -update if this is meant:\n%s", diff)
			}
		})
	}
}

// wantsAnswer: all but notifications, answers to us and empty lines are.
func wantsAnswer(line string) bool {
	if strings.TrimSpace(line) == "" {
		return false
	}
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(strings.TrimPrefix(line, "\ufeff")), &m) != nil {
		return true
	}
	_, hasID := m["id"]
	_, hasMethod := m["method"]
	return hasID && hasMethod || !hasMethod && !hasID
}
