package plan

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/delegation"
)

func aPlan(dir string) *Plan {
	return &Plan{
		Key: Key{Dir: dir, Vars: "HOME=/h\x00REPRISE_HOME=/r\x00"}, Host: "vm", Program: "/opt/r e p/reprise", Project: "shop",
		Root: dir, Events: "/d/events", Data: "/d", Log: "/l", LogMax: 1 << 20,
		Rules: Rules{Record: true, Jobs: true, DeadlineMS: 900, Off: []string{"prompt", "codex:response"}, Tools: []string{"read:off"}, RepoOff: []string{"tool_after"}, Trusted: true,
			Delegation: delegation.Rules{Tiers: 3, Conductor: delegation.Limits{Warn: 1, Block: 2}, SectionLeader: delegation.Limits{Warn: 4, Block: 5}, Free: []string{"a b/", "c"}}},
		Hand: []string{"session_start", "response"}, Tell: []string{"session_start"}, Home: `{"a":"b c"}`,
		Stamps: []Stamp{
			{Kind: Absent, Path: filepath.Join(dir, "a b")},
			{Kind: File, Link: true, Size: 1, Modified: -2, Changed: 3, Device: 1 << 63, Inode: 5, Path: "/x"},
		},
	}
}

func TestPlanIsReadAsItWasWritten(t *testing.T) {
	p := aPlan("/w")
	data, ok := p.Encode()
	if !ok {
		t.Fatal("no form")
	}
	got, err := Parse(data)
	if diff := cmp.Diff(p, got); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	p.Root = "a\nb"
	if _, ok := p.Encode(); ok {
		t.Error("a name with a line end has a form")
	}
}

// A plan with any byte changed or missing is no plan.
func TestDamagedPlans(t *testing.T) {
	data, _ := aPlan("/w").Encode()
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= 1
		if _, err := Parse(bad); !errors.Is(err, ErrStale) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if _, err := Parse(data[:i]); !errors.Is(err, ErrStale) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
}

// What a newer or older program wrote, with a right checksum, is no plan.
func TestForeignPlans(t *testing.T) {
	for _, text := range []string{"reprise hook plan 3\n", "reprise hook plan 2\nnews x\n", "reprise hook plan 2\nstamp f- 1\n", "reprise hook plan 2\nrecord maybe\n", "reprise hook plan 2\ndeadline -1\n", "x\n", ""} {
		if p, err := Parse([]byte(text + "end " + hex64(hash64(offset64, text)) + "\n")); !errors.Is(err, ErrStale) {
			t.Errorf("%q: %+v, %v", text, p, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	data, _ := aPlan("/w").Encode()
	f.Add(string(data[:len(data)-22]))
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse([]byte(text + "end " + hex64(hash64(offset64, text)) + "\n"))
		if err != nil {
			return
		}
		again, ok := p.Encode()
		if !ok {
			t.Fatalf("%+v has no form", p)
		}
		if q, err := Parse(again); err != nil || !cmp.Equal(p, q) {
			t.Errorf("%v: %s", err, cmp.Diff(p, q))
		}
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Each thing that can happen to a file that a plan depends on ends it.
func TestWhatEndsAPlan(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir, file string){
		"longer":             func(t *testing.T, _, file string) { write(t, file, "longer text") },
		"of the same length": func(t *testing.T, _, file string) { write(t, file, "TEXT") },
		"of the same length and time": func(t *testing.T, _, file string) {
			fi, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			write(t, file, "TEXT")
			if err := os.Chtimes(file, time.Time{}, fi.ModTime()); err != nil {
				t.Fatal(err)
			}
		},
		"gone":        func(t *testing.T, _, file string) { must(t, os.Remove(file)) },
		"a directory": func(t *testing.T, _, file string) { must(t, os.Remove(file)); must(t, os.Mkdir(file, 0o700)) },
		"another file": func(t *testing.T, dir, file string) {
			write(t, dir+"/other", "text")
			must(t, os.Rename(dir+"/other", file))
		},
		"a link to the same": func(t *testing.T, dir, file string) {
			must(t, os.Rename(file, dir+"/moved"))
			must(t, os.Symlink(dir+"/moved", file))
		},
		"a new one": func(t *testing.T, dir, _ string) { write(t, dir+"/absent", "") },
		"another directory": func(t *testing.T, dir, _ string) {
			must(t, os.Rename(dir+"/sub", dir+"/old"))
			must(t, os.Mkdir(dir+"/sub", 0o700))
		},
		"a directory too many": func(t *testing.T, dir, _ string) { must(t, os.Remove(dir+"/sub")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "file")
			write(t, file, "text")
			must(t, os.Mkdir(dir+"/sub", 0o700))
			p := aPlan(dir)
			p.Stamps = []Stamp{See(file), See(dir + "/absent"), See(dir + "/sub")}
			data, _ := p.Encode()
			cache := t.TempDir()
			write(t, p.Key.File(cache), string(data))
			if got, err := Load(cache, p.Key, "vm"); err != nil || got.Project != "shop" {
				t.Fatalf("before anything changed: %v", err)
			}
			if _, err := Load(cache, p.Key, "other"); !errors.Is(err, ErrStale) {
				t.Errorf("on another machine: %v", err)
			}
			if _, err := Load(cache, Key{Dir: dir}, "vm"); !errors.Is(err, ErrStale) {
				t.Errorf("in another environment: %v", err)
			}
			// What is in a directory does not matter: .git changes with each command.
			write(t, dir+"/sub/x", "")
			must(t, os.Remove(dir+"/sub/x"))
			if _, err := Load(cache, p.Key, "vm"); err != nil {
				t.Errorf("a file came and went in a directory: %v", err)
			}
			change(t, dir, file)
			old, err := Load(cache, p.Key, "vm")
			if !errors.Is(err, ErrStale) || old == nil || old.Project != "shop" {
				t.Errorf("the plan holds: %v", err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A file that changed less than two seconds before it was read may change again
// without a sign.
func TestSettled(t *testing.T) {
	at := time.Unix(1000, 0)
	for _, tc := range []struct {
		s    Stamp
		want bool
	}{
		{Stamp{Kind: Absent}, true}, {Stamp{Kind: Dir}, true}, {Stamp{Kind: Other}, false}, {Stamp{Kind: Unknown}, false},
		{Stamp{Kind: File, Modified: at.Add(-3 * time.Second).UnixNano()}, true},
		{Stamp{Kind: File, Modified: at.Add(-time.Second).UnixNano()}, false},
		{Stamp{Kind: File, Changed: at.Add(-time.Second).UnixNano()}, false},
		{Stamp{Kind: File, Modified: at.Add(time.Hour).UnixNano()}, false},
	} {
		if got := tc.s.Settled(at); got != tc.want {
			t.Errorf("%+v: %v", tc.s, got)
		}
	}
}

func TestRules(t *testing.T) {
	r := Rules{Record: true, Off: []string{"prompt", "codex:response", "musician:tool_after"}, Tools: []string{"read:off", "shell:failures"}, RepoOff: []string{"session_end"}}
	for _, tc := range []struct {
		kind, client, role string
		trusted, want      bool
	}{
		{"prompt", "claude", "", false, false}, {"response", "codex", "", false, false}, {"response", "claude", "", false, true},
		{"tool_after", "claude", "musician", false, false}, {"tool_after", "claude", "conductor", false, true}, {"tool_after", "claude", "", false, true},
		{"session_end", "claude", "", false, true}, {"session_end", "claude", "", true, false},
	} {
		r.Trusted = tc.trusted
		if got := r.On(tc.kind, tc.client, tc.role); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
	for _, tc := range []struct {
		tool         string
		failed, want bool
	}{{"", false, true}, {"read", true, false}, {"shell", false, false}, {"shell", true, true}, {"edit", false, true}} {
		if got := r.Records(tc.tool, tc.failed); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
	r.Record = false
	if r.Records("", false) {
		t.Error("recorded though recording is off")
	}
}

func TestVarsTellEnvironmentsApart(t *testing.T) {
	seen := map[string]bool{}
	for _, env := range []map[string]string{{}, {"A": "x"}, {"B": "x"}, {"A": "xB=y"}, {"A": "x", "B": "y"}} {
		v := Vars([]string{"A", "B"}, func(n string) string { return env[n] })
		if seen[v] {
			t.Errorf("%v is not told apart", env)
		}
		seen[v] = true
	}
	if a, b := (Key{"/a", "b"}), (Key{"/a/b", ""}); a.Name() == b.Name() || strings.ContainsAny(a.Name(), "/\\") {
		t.Errorf("%s, %s", a.Name(), b.Name())
	}
}
