package task

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What belongs to git or to the program is no work of an agent, by whatever name; nor is a
// device or a pipe.
func TestArtifactsOfOthers(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{".git/config", "sub/.git/HEAD", ".GIT/x", "specs/.reprise-journal/given", ".reprise/agent/scratch.md", "linked/.git", ".gitignore", "specs/001_a/reports/r.md"} {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(root, ".git", "config"), filepath.Join(root, "innocent")); err != nil {
		t.Skip(err)
	}
	for name, ok := range map[string]bool{
		".git/config": false, "./.git/config": false, "sub/../.git/config": false, "sub/.git/HEAD": false, ".GIT/x": false,
		"specs/.reprise-journal/given": false, ".reprise/agent/scratch.md": false, "linked/.git": false, "innocent": false,
		filepath.Join(root, ".git", "config"): false, ".gitignore": true, "specs/001_a/reports/r.md": true,
	} {
		if err := Inside(root, name); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An answer that is longer than what is read is told so, with the length; braces by the
// million do not keep the program busy.
func TestLongAnswers(t *testing.T) {
	d := Delegation{Session: "sess_1_abcdef"}
	good := `{"status":"completed","summary":"Done.","artifacts":[],"metadata":{"session_id":"sess_1_abcdef"}}`
	for _, c := range []struct{ name, text, want string }{
		{"two megabytes", strings.Repeat("words ", 400_000) + good, "longer than 1048576 bytes"},
		{"just fits", strings.Repeat("x", MaxAnswer-len(good)) + good, ""},
		{"braces before it", strings.Repeat("{", 900_000) + good, ""},
		{"braces behind it", good + strings.Repeat("{", 900_000), ""},
		{"nothing but braces", strings.Repeat(`{"a":`, 200_000), "no JSON object"},
		{"braces, and the word", strings.Repeat(`{"a":`, 200_000) + `"status"`, "not in the form"},
	} {
		began := time.Now()
		_, err := ParseReturn(c.text, d, t.TempDir())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: it took %s", c.name, took)
		}
	}
}

// beginning is a flow with one task at which a step has been begun.
func beginning(t *testing.T, op string) (*Flow, Brief, *[]string) {
	t.Helper()
	f := flowIn(t, nil)
	change(t, f.Store, add("One"))
	var committed []string
	f.Commit = func(_ context.Context, _, _ string, files []string) { committed = append(committed, files...) }
	b, err := f.Begin(context.Background(), Want{Op: op, Number: 1})
	if err != nil {
		t.Fatal(err)
	}
	return f, b, &committed
}

func answering(b Brief, status string, files ...string) string {
	data, err := json.Marshal(Return{Status: status, Summary: "So.", Artifacts: append([]string{}, files...), Metadata: ReturnAbout{Session: b.Session}})
	if err != nil {
		panic(err)
	}
	return string(data)
}

func (f *Flow) put(t *testing.T, name string, size int, text string) {
	t.Helper()
	p := filepath.Join(f.Root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	err := os.WriteFile(p, []byte(text), 0o644)
	if err == nil && size > 0 {
		err = os.Truncate(p, int64(size))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A report that is too long to be kept in git is not filed, not linked and not committed,
// and it is said how long it may be; nor is a file of that size that an agent names.
func TestLongFiles(t *testing.T) {
	for _, op := range []string{OpResearch, OpPlan} {
		f, b, committed := beginning(t, op)
		f.put(t, b.Artifact, maxArtifact+1, "# R\n")
		f.put(t, "big.bin", maxArtifact+1, "x")
		f.put(t, "small.txt", 0, "x")
		var said []string
		f.Say = func(format string, args ...any) { said = append(said, format) }
		r, err := f.Finish(context.Background(), b.Session, answering(b, "completed", "big.bin", "small.txt"))
		if err != nil || r.Status != "partial" || !strings.Contains(r.Reason, "longer than 8388608 bytes") || strings.Contains(r.Reason, f.Root) {
			t.Errorf("%s: %+v, %v", op, r, err)
		}
		if got := strings.Join(*committed, " "); strings.Contains(got, b.Artifact) || strings.Contains(got, "big.bin") || !strings.Contains(got, "small.txt") {
			t.Errorf("%s: committed were %s", op, got)
		}
		if !strings.Contains(strings.Join(said, "\n"), "is not committed: it has") {
			t.Errorf("%s: nothing is said of big.bin: %q", op, said)
		}
		board, err := f.Store.Load(context.Background())
		if err != nil || len(board.State.Tasks[1].Research)+len(board.State.Tasks[1].Plans) > 0 || board.State.Tasks[1].Status != NotStarted {
			t.Errorf("%s: %+v, %v", op, board.State.Tasks[1], err)
		}
	}
}

// A step that came to a part stays one on record, and its task is what it was before.
func TestPartialStaysPartial(t *testing.T) {
	for _, status := range []string{"partial", "failed", "blocked"} {
		f, b, _ := beginning(t, OpResearch)
		r, err := f.Finish(context.Background(), b.Session, answering(b, status))
		if err != nil || r.Status != status {
			t.Fatalf("%+v, %v", r, err)
		}
		board, err := f.Store.Load(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		want := NotStarted
		if status == "blocked" {
			want = Blocked
		}
		own, err := board.Own(board.State.Tasks[1])
		if err != nil || len(own) != 1 || own[0].Status != status || board.State.Tasks[1].Status != want {
			t.Errorf("%s: on record as %+v, the task is %s, %v", status, own, board.State.Tasks[1].Status, err)
		}
	}
}

// What is committed names no directory of the machine that it was made on.
func TestNoMachinePaths(t *testing.T) {
	f, b, _ := beginning(t, OpResearch)
	f.Store.o.Home = filepath.Dir(f.Root)
	f.put(t, b.Artifact, 0, "# Found\n\nSee "+f.Root+"/login.go:12, and ("+f.Root+").\nRead "+filepath.Dir(f.Root)+"/notes.md.\n")
	r, err := f.Finish(context.Background(), b.Session, answering(b, "completed"))
	if err != nil || r.Status != "completed" {
		t.Fatalf("%+v, %v", r, err)
	}
	if got, want := text(t, f.Store, "001_one/reports/research-001.md"), "# Found\n\nSee login.go:12, and (.).\nRead ~/notes.md.\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	place := filepath.Join(f.Store.o.Home, "places", "p1")
	if _, err := f.Begin(context.Background(), Want{Op: OpPlan, Number: 1, Place: place}); err != nil {
		t.Fatal(err)
	}
	if got := text(t, f.Store, "state.json"); strings.Contains(got, f.Store.o.Home) || !strings.Contains(got, `"~/places/p1"`) {
		t.Error(got)
	}
	if b, err := f.Store.Load(context.Background()); err != nil {
		t.Error(err)
	} else if s, _, err := f.find(context.Background(), b.State.Tasks[1].Operations[0].Session); err != nil || s.dir() != place {
		t.Errorf("%v, %v", s, err)
	}
	change(t, f.Store, func(b *Board) error {
		l, err := b.Failures()
		if err == nil {
			l.Record(Failure{Type: FileNotFound, Message: "read: " + f.Root + "/gone.go: no such file"}, b.now)
		}
		return err
	})
	if got := text(t, f.Store, "errors.json"); strings.Contains(got, f.Root) || !strings.Contains(got, "read: gone.go: no such file") {
		t.Error(got)
	}
}

func TestWithoutDirs(t *testing.T) {
	dirs := [][2]string{{"/home/me/proj", ""}, {"/home/me", "~"}, {"/", "x"}, {"", "y"}}
	for text, want := range map[string]string{
		"/home/me/proj/a.go":              "a.go",
		"in /home/me/proj.":               "in ..",
		"cd /home/me/proj && ls":          "cd . && ls",
		"/home/me/project/a.go":           "~/project/a.go",
		"/home/men/a":                     "/home/men/a",
		"/mnt/home/me/proj/a":             "/mnt/home/me/proj/a",
		"`/home/me/.config/x`":            "`~/.config/x`",
		"file:///home/me/proj/a.md":       "file://a.md",
		"\"/home/me/proj/\"":              "\"./\"",
		"a/home/me/proj/b, /home/me/proj": "a/home/me/proj/b, .",
	} {
		if got := withoutDirs(text, dirs); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// A marker of a phase that is no status is kept and said, with what may stand there; so is
// a plan that cannot be worked with.
func TestUnknownMarkers(t *testing.T) {
	for plan, want := range map[string]string{
		"### Phase 1: Do it [BOGUS]\n":                         "phase 1 is marked [BOGUS] in specs/001_one/plans/implementation-001.md, line 1",
		"# Plan\n\n### Phase 2: Do it\n- **Status**: [HALF]\n": "phase 2 is marked [HALF]",
		"### Phase 1: Read [the docs](x) and [API] pages\n":    "",
		"### Phase 1: Do it [planned]\n":                       "",
		"### Phase 1: a\n### Phase 1: b\n":                     "cannot be worked with",
	} {
		s := storeIn(t.TempDir(), unsynced())
		change(t, s, add("One"))
		change(t, s, func(b *Board) error { _, err := b.AddPlan(1, []byte("### Phase 1: x\n")); return err })
		write(t, s, "001_one/plans/implementation-001.md", plan)
		for _, look := range []func(context.Context) (Report, error){s.Check, s.Fix} {
			r, err := look(context.Background())
			if err != nil || (len(r.Left) == 0) != (want == "") || want != "" && !strings.Contains(r.Left[0].What, want) {
				t.Errorf("%q: %+v, %v", plan, r, err)
			}
		}
		if got := text(t, s, "001_one/plans/implementation-001.md"); got != plan {
			t.Errorf("%q became %q", plan, got)
		}
	}
	// In TODO.md, too: the word is kept until somebody says what it is to be.
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("One", "Two"))
	write(t, s, "TODO.md", strings.Replace(text(t, s, "TODO.md"), "[NOT STARTED]", "[BOGUS]", 1))
	change(t, s, status(2, Planned, ""))
	if got := text(t, s, "TODO.md"); !strings.Contains(got, "[BOGUS]") {
		t.Error(got)
	}
	if r, err := s.Check(context.Background()); err != nil || len(r.Left) != 1 || !strings.Contains(r.Left[0].What, `"[BOGUS]" is none of [NOT STARTED]`) {
		t.Errorf("%+v, %v", r, err)
	}
}

// What stands in the place of a file and is none, or leads out of specs/, is named with what
// to do; a state.json of that sort is set aside by a check that mends.
func TestNotAFile(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("hidden words"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		make func(file string) error
		of   string
		want []string
		mend bool
	}{
		{"TODO.md a link out", func(f string) error { return os.Symlink(outside, f) }, "TODO.md", []string{"TODO.md is a link to " + outside, "in its place"}, false},
		{"TODO.md a link up", func(f string) error { return os.Symlink(filepath.Join("..", "x"), f) }, "TODO.md", []string{"TODO.md is a link to ", "in its place"}, false},
		{"TODO.md a directory", func(f string) error { return os.Mkdir(f, 0o755) }, "TODO.md", []string{"TODO.md is a directory", "move it away"}, false},
		{"TODO.md not text", func(f string) error { return os.WriteFile(f, []byte("# TODO\n\ncaf\xe9\n"), 0o644) }, "TODO.md", []string{"0xe9 in line 3", "save the file as UTF-8"}, false},
		{"TODO.md with a NUL", func(f string) error { return os.WriteFile(f, []byte("# TODO\n\x00\n"), 0o644) }, "TODO.md", []string{"NUL in line 2", "save the file as UTF-8"}, false},
		{"state.json a link out", func(f string) error { return os.Symlink(outside, f) }, "state.json", []string{"state.json is a link to ", "in its place"}, false},
		{"state.json a directory", func(f string) error { return os.Mkdir(f, 0o755) }, "state.json", []string{"state.json", "a directory", "task check --fix` sets it aside"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := storeIn(t.TempDir(), unsynced())
			change(t, s, add("First"))
			file := filepath.Join(s.Dir(), c.of)
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := c.make(file); err != nil {
				t.Skip(err) // no links here
			}
			_, loaded := s.Load(context.Background())
			_, changed := s.Change(context.Background(), add("Second"))
			for _, err := range []error{loaded, changed} {
				if err == nil {
					t.Fatal("it is read")
				}
				for _, want := range c.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%v\nsays nothing of %q", err, want)
					}
				}
				if strings.Contains(err.Error(), "escapes") || strings.Contains(err.Error(), "hidden") {
					t.Error(err)
				}
			}
			rep, err := s.Fix(context.Background())
			if (err == nil) != c.mend || (rep.Damaged != "") != c.mend {
				t.Fatalf("mended: %+v, %v", rep, err)
			}
			if !c.mend {
				return
			}
			if fi, err := os.Stat(rep.Damaged); err != nil || !fi.IsDir() {
				t.Errorf("what was there is not beside it: %v", err)
			}
			if b, err := s.Load(context.Background()); err != nil || b.State.Tasks[1] == nil {
				t.Errorf("%v", err)
			}
		})
	}
}
