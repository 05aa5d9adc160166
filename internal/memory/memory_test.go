package memory

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/mdfile"
)

const childVar = "MEMORY_TEST_CHILD" // "<kind> <n> <dir>"

func TestMain(m *testing.M) {
	if v := os.Getenv(childVar); v != "" {
		kind, rest, _ := strings.Cut(v, " ")
		n, dir, _ := strings.Cut(rest, " ")
		os.Exit(child(kind, n, dir))
	}
	os.Exit(durabletest.InMemory(m.Run))
}

var day = time.Date(2026, 2, 21, 12, 0, 0, 0, time.UTC)

func at(dir string, disk durable.Disk) *Store {
	return New(Options{Dir: dir, Now: func() time.Time { return day }, Disk: disk, Git: GitOptions{Off: true}})
}

// child runs in another process: "crash" does all kinds of writes and is killed
// at step n; "write" appends and updates as one of many.
func child(kind, n, dir string) int {
	ctx := context.Background()
	fail := func(err error) int { fmt.Println(err); return 1 }
	switch kind {
	case "write":
		s := at(dir, durable.Disk{})
		for i := range 12 {
			if _, err := s.AppendEpisode(ctx, Episode{Title: fmt.Sprintf("p%s-%d", n, i), Entry: "what was done"}); err != nil {
				return fail(err)
			}
			if _, err := s.AppendFile(ctx, "blocks/decisions.md", fmt.Sprintf("d%s-%d\n", n, i)); err != nil {
				return fail(err)
			}
			for { // as a client does: read, add a line, write if nobody else did
				doc, _, err := s.Read(ctx, "project-shared", 0, 0)
				if err != nil {
					return fail(err)
				}
				_, err = s.Update(ctx, UpdateBlock{Name: "project-shared", Content: doc.Content + fmt.Sprintf("- u%s-%d\n", n, i), IfHash: doc.Hash})
				if err == nil {
					break
				}
				if !errors.Is(err, ErrStale) {
					return fail(err)
				}
			}
		}
		return 0
	case "crash":
		var op, left int
		if _, err := fmt.Sscanf(n, "%d:%d", &op, &left); err != nil {
			return fail(err)
		}
		disk := durable.NewDisk(func(st durable.Step) *durable.Fault {
			if left--; left < 0 {
				p, _ := os.FindProcess(os.Getpid())
				p.Kill()
				select {}
			}
			if st.Op == durable.OpSync || st.Op == durable.OpSyncDir {
				return &durable.Fault{Skip: true} // what a killed process wrote stays without it
			}
			return nil
		})
		if err := crashOps[op].do(ctx, at(dir, disk)); err != nil {
			return fail(err)
		}
		fmt.Println("end")
		return 0
	}
	return 2
}

var crashOps = []struct {
	name string
	do   func(context.Context, *Store) error
}{
	{"ensure", func(ctx context.Context, s *Store) error { return s.Ensure(ctx) }},
	{"create", func(ctx context.Context, s *Store) error {
		_, err := s.Create(ctx, CreateBlock{Name: "project-a", Content: "# A\n\none\n", Summary: "first"})
		return err
	}},
	{"update", func(ctx context.Context, s *Store) error {
		_, err := s.Update(ctx, UpdateBlock{Name: "project-a", OldText: "one", NewText: "two", Summary: "second"})
		return err
	}},
	{"episode", func(ctx context.Context, s *Store) error {
		_, err := s.AppendEpisode(ctx, Episode{Title: "T", Entry: "E"})
		return err
	}},
	{"append", func(ctx context.Context, s *Store) error {
		_, err := s.AppendFile(ctx, "blocks/decisions.md", "## D\n")
		return err
	}},
}

func newStore(t testing.TB) *Store {
	t.Helper()
	s := at(filepath.Join(t.TempDir(), "memory"), durable.Disk{})
	if err := s.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func get(t testing.TB, s *Store, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.Dir(), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func put(t testing.TB, s *Store, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Dir(), filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// snapshot is every file of the memory but the program's own.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Name() == ".reprise-journal" || e.Name() == ".git" {
			return filepath.SkipDir
		}
		if !e.IsDir() && !strings.HasSuffix(p, ".lock") && !durable.IsTemp(e.Name()) {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(dir, p)
			out[filepath.ToSlash(rel)] = string(data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestKilledAtEachStep: a process is killed at the first, second, … step that
// any write makes on the disk. Afterwards the memory is as it was before the
// write or as it is after it, in all files, and the same writes can be done.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	var states []map[string]string // before each write and after the last
	ref := at(filepath.Join(t.TempDir(), "memory"), durable.Disk{})
	states = append(states, map[string]string{})
	for _, op := range crashOps {
		if err := op.do(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		states = append(states, snapshot(t, ref.Dir()))
	}
	for op := range crashOps {
		t.Run(crashOps[op].name, func(t *testing.T) {
			for step := 0; ; step++ {
				if killedAt(t, states, op, step) {
					continue
				}
				if step < 5 {
					t.Errorf("only %d steps were seen", step)
				}
				return
			}
		})
	}
}

// killedAt does write number op on the state before it, killed at a step. It
// says whether the write took so many steps.
func killedAt(t *testing.T, states []map[string]string, op, step int) bool {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "memory")
	for name, text := range states[op] {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "blocks"), 0o700), os.WriteFile(p, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=crash %d:%d %s", childVar, op, step, dir))
	out, err := cmd.Output()
	if string(out) == "end\n" {
		return false
	}
	if _, ok := errors.AsType[*exec.ExitError](err); !ok || len(out) > 0 || step > 500 {
		t.Fatalf("step %d: it was not killed: %v: %s", step, err, out)
	}
	s := at(dir, durable.Disk{})
	s.List(t.Context()) // opening finishes or undoes what was begun
	got := map[string]string{}
	if _, err := os.Stat(dir); err == nil {
		got = snapshot(t, dir)
	}
	isAppend := crashOps[op].name == "append"
	before, after := cmp.Diff(states[op], got), cmp.Diff(states[op+1], got)
	if before != "" && after != "" {
		t.Fatalf("killed at step %d: neither before: %s\nnor after: %s", step, before, after)
	}
	if isAppend {
		return true // again is not the same
	}
	err = crashOps[op].do(t.Context(), s)
	if err != nil && !(crashOps[op].name == "update" && after == "" && strings.Contains(err.Error(), "old_text")) {
		t.Fatalf("after a kill at step %d, again: %v", step, err)
	}
	if diff := cmp.Diff(states[op+1], snapshot(t, dir)); diff != "" {
		t.Fatalf("after a kill at step %d and the write again: %s", step, diff)
	}
	return true
}

// TestDiskFull: a write that fails for want of space says so and changes nothing.
func TestDiskFull(t *testing.T) {
	s := newStore(t)
	for _, op := range crashOps {
		before := snapshot(t, s.Dir())
		disk := durable.NewDisk(func(st durable.Step) *durable.Fault {
			if st.Op == "write" {
				return &durable.Fault{Err: errors.New("no space left on device")}
			}
			return nil
		})
		if op.name != "ensure" {
			if err := op.do(t.Context(), at(s.Dir(), disk)); err == nil || !strings.Contains(err.Error(), "no space") {
				t.Errorf("%s: %v", op.name, err)
			}
			if diff := cmp.Diff(before, snapshot(t, s.Dir())); diff != "" {
				t.Errorf("%s: %s", op.name, diff)
			}
		}
		if err := op.do(t.Context(), s); err != nil {
			t.Errorf("%s: %v", op.name, err)
		}
	}
}

// TestProcessesLoseNothing: N processes × M writes are N × M writes.
func TestProcessesLoseNothing(t *testing.T) {
	s := newStore(t)
	if _, err := s.Create(t.Context(), CreateBlock{Name: "project-shared", Content: "# Shared\n"}); err != nil {
		t.Fatal(err)
	}
	const procs, each = 4, 12
	var cmds []*exec.Cmd
	for p := range procs {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=write %d %s", childVar, p, s.Dir()))
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	log, dec, shared := get(t, s, "blocks/episodic-2026-02.md"), get(t, s, "blocks/decisions.md"), get(t, s, "blocks/project-shared.md")
	for p := range procs {
		for i := range each {
			for text, in := range map[string]string{fmt.Sprintf("p%d-%d\n", p, i): log, fmt.Sprintf("d%d-%d\n", p, i): dec, fmt.Sprintf("- u%d-%d\n", p, i): shared} {
				if strings.Count(in, text) != 1 {
					t.Errorf("%q is there %d times", text, strings.Count(in, text))
				}
			}
		}
	}
	if n := strings.Count(get(t, s, "index.md"), "\n"); n != 4+3 {
		t.Errorf("index has %d lines:\n%s", n, get(t, s, "index.md"))
	}
}

func TestEnsureChangesNothingThatIsThere(t *testing.T) {
	dir := t.TempDir()
	s := at(dir, durable.Disk{})
	put(t, s, "core.md", "mine\r\n")
	put(t, s, ".gitignore", "x\n")
	for range 2 {
		if err := s.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if get(t, s, "core.md") != "mine\r\n" || get(t, s, ".gitignore") != "x\n" || get(t, s, "index.md") != seedIndex {
		t.Errorf("%v", snapshot(t, dir))
	}
}

// TestReadsWriteNothing, even in a directory that does not exist.
func TestReadsWriteNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	s := at(dir, durable.Disk{})
	if _, _, err := s.Read(t.Context(), "core", 0, 0); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := s.List(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := s.Check(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it was made")
	}
}

func TestCreate(t *testing.T) {
	s := newStore(t)
	in := CreateBlock{Name: "project-bridge", Content: "---\nowner: fran # me\n---\n\n# Bridge\n\nPlanned | soon.\n", Tags: []string{"mcp", "go"}}
	w, err := s.Create(t.Context(), in)
	if err != nil || !w.Created || !w.IndexUpdated {
		t.Fatalf("%+v %v", w, err)
	}
	want := "---\nowner: fran # me\ncreated: 2026-02-21\nupdated: 2026-02-21\ntags: [mcp, go]\n---\n\n# Bridge\n\nPlanned | soon.\n"
	if got := get(t, s, "blocks/project-bridge.md"); got != want || hashOf([]byte(got)) != w.Hash {
		t.Errorf("%s", cmp.Diff(want, got))
	}
	if got, want := get(t, s, "index.md"), seedIndex+"| project-bridge.md | Bridge: Planned \\| soon. | 2026-02-21 |\n"; got != want {
		t.Error(cmp.Diff(want, got))
	}
	later := New(Options{Dir: s.Dir(), Now: func() time.Time { return day.AddDate(0, 0, 3) }, Git: GitOptions{Off: true}})
	before := snapshot(t, s.Dir())
	if w, err := later.Create(t.Context(), in); err != nil || !w.Unchanged {
		t.Errorf("again: %+v %v", w, err)
	}
	if diff := cmp.Diff(before["blocks/project-bridge.md"], get(t, s, "blocks/project-bridge.md")); diff != "" {
		t.Error(diff)
	}
	in.Content = "other"
	if _, err := s.Create(t.Context(), in); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
}

func TestBadInputChangesNothing(t *testing.T) {
	s := newStore(t)
	if _, err := s.Create(t.Context(), CreateBlock{Name: "project-a", Content: "# A\nx x\no o o\n"}); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, s.Dir())
	long := strings.Repeat("x", MaxContent+1)
	create := func(name, content string) error {
		_, err := s.Create(t.Context(), CreateBlock{Name: name, Content: content})
		return err
	}
	update := func(u UpdateBlock) error { _, err := s.Update(t.Context(), u); return err }
	appendTo := func(path string) error { _, err := s.AppendFile(t.Context(), path, "x\n"); return err }
	for name, c := range map[string]struct{ err, want error }{
		"empty name":                       {create("", "x"), ErrName},
		"capital letters":                  {create("Project-A", "x"), ErrName},
		"no known prefix":                  {create("notes", "x"), ErrName},
		"month 13":                         {create("episodic-2026-13", "x"), ErrName},
		"long name":                        {create("project-"+strings.Repeat("a", MaxName), "x"), ErrName},
		"two hyphens":                      {create("project--a", "x"), ErrName},
		"device of Windows":                {create("con", "x"), ErrName},
		"dot dot":                          {create("../project-x", "x"), ErrOutside},
		"dot dot with backslash":           {create(`..\project-x`, "x"), ErrOutside},
		"absolute":                         {create("/etc/passwd", "x"), ErrOutside},
		"drive":                            {create(`C:\x`, "x"), ErrOutside},
		"NUL in name":                      {create("project-\x00", "x"), ErrName},
		"NUL in content":                   {create("project-n", "a\x00b"), ErrContent},
		"not UTF-8":                        {create("project-n", "a\xff"), ErrContent},
		"huge":                             {create("project-n", long), ErrTooLarge},
		"empty content":                    {create("project-n", " \n"), ErrContent},
		"broken front matter":              {create("project-n", "---\na: [\n---\nx"), ErrFormat},
		"front matter is a list":           {create("project-n", "---\n- a\n---\nx"), ErrFormat},
		"day that is none":                 {create("project-n", "---\ncreated: soon\n---\nx"), ErrFormat},
		"tags that are none":               {create("project-n", "---\ntags: {a: 1}\n---\nx"), ErrFormat},
		"update: no such block":            {update(UpdateBlock{Name: "project-z", Content: "x"}), ErrNotFound},
		"update: outside":                  {update(UpdateBlock{Name: "blocks/../../x", Content: "x"}), ErrOutside},
		"update: nothing":                  {update(UpdateBlock{Name: "project-a"}), ErrContent},
		"update: both ways":                {update(UpdateBlock{Name: "project-a", Content: "x", OldText: "A", NewText: "B"}), ErrContent},
		"update: old text absent":          {update(UpdateBlock{Name: "project-a", OldText: "nope", NewText: "B"}), ErrContent},
		"update: old text twice":           {update(UpdateBlock{Name: "project-a", OldText: "x", NewText: "B"}), ErrContent},
		"update: old text overlaps itself": {update(UpdateBlock{Name: "project-a", OldText: "o o", NewText: "B"}), ErrContent},
		"update: front matter cut open":    {update(UpdateBlock{Name: "project-a", OldText: "---\ncreated", NewText: "created"}), ErrFormat},
		"update: nothing left":             {update(UpdateBlock{Name: "project-a", OldText: "# A\nx x\no o o\n", NewText: ""}), ErrContent},
		"append_file: other case":          {appendTo("blocks/Project-A.md"), ErrName},
		"append_file: directory's case":    {appendTo("BLOCKS/project-a.md"), ErrName},
		"append_file: core's case":         {appendTo("Core.md"), ErrName},
		"update: NUL":                      {update(UpdateBlock{Name: "project-a", Content: "\x00"}), ErrContent},
		"update: bad day":                  {update(UpdateBlock{Name: "project-a", OldText: "updated: 2026-02-21", NewText: "updated: 7"}), ErrFormat},
		"update: stale":                    {update(UpdateBlock{Name: "project-a", Content: "y", IfHash: "sha256:0"}), ErrStale},
		"episode: empty":                   {func() error { _, err := s.AppendEpisode(t.Context(), Episode{Title: "t"}); return err }(), ErrContent},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.err, c.want)
		}
	}
	if diff := cmp.Diff(before, snapshot(t, s.Dir())); diff != "" {
		t.Error(diff)
	}
}

func TestStaleErrorCarriesTheCurrentVersion(t *testing.T) {
	s := newStore(t)
	w, err := s.Create(t.Context(), CreateBlock{Name: "project-a", Content: "# A\n"})
	if err != nil {
		t.Fatal(err)
	}
	w2, err := s.Update(t.Context(), UpdateBlock{Name: "project-a", Content: "# A\nsecond\n", IfHash: w.Hash})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Update(t.Context(), UpdateBlock{Name: "project-a", Content: "# A\nthird\n", IfHash: w.Hash})
	var stale *StaleError
	if !errors.As(err, &stale) || stale.Have != w2.Hash || stale.Current.Hash != w2.Hash || !strings.Contains(stale.Current.Content, "second") {
		t.Errorf("%v", err)
	}
	if w, err := s.Update(t.Context(), UpdateBlock{Name: "project-a", Content: "# A\nsecond\n", IfHash: w.Hash}); err != nil || !w.Unchanged {
		t.Errorf("a retried call: %+v %v", w, err)
	}
}

// TestHandEditsAreKept: whatever a person wrote, in any order and spelling, is
// there after every tool's write.
func TestHandEditsAreKept(t *testing.T) {
	s := newStore(t)
	put(t, s, "index.md", "\ufeffMy index!\r\n\r\n|  Last updated | File  | Owner | About |\r\n|:--|:-:|--|--|\r\n| 2020-01-01 | [bridge](blocks/project-bridge.md) | me | the **bridge** |\r\n|2020-01-02|`reference-x`|you|x \\| y\r\n\r\nFoot note.")
	put(t, s, "blocks/project-bridge.md", "---\r\n# by hand\r\nupdated:   2020-01-01 # day\r\nmood: \"fine\"\r\ntags:\r\n- a\r\n---\r\n\r\nBridge\r\n======\r\n\r\nold line\r\n")
	if _, err := s.Update(t.Context(), UpdateBlock{Name: "project-bridge", OldText: "old line\n", NewText: "new line\n"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), CreateBlock{Name: "decisions", Content: "# D\n", Summary: "all"}); err != nil {
		t.Fatal(err)
	}
	wantIndex := "\ufeffMy index!\r\n\r\n|  Last updated | File  | Owner | About |\r\n|:--|:-:|--|--|\r\n| 2026-02-21 | [bridge](blocks/project-bridge.md) | me | the **bridge** |\r\n|2020-01-02|`reference-x`|you|x \\| y\r\n| 2026-02-21 | decisions.md |  | all |\r\n\r\nFoot note."
	if diff := cmp.Diff(wantIndex, get(t, s, "index.md")); diff != "" {
		t.Error(diff)
	}
	want := "---\r\n# by hand\r\nupdated: 2026-02-21 # day\r\nmood: \"fine\"\r\ntags:\r\n- a\r\n---\r\n\r\nBridge\r\n======\r\n\r\nnew line\r\n"
	if diff := cmp.Diff(want, get(t, s, "blocks/project-bridge.md")); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Update(t.Context(), UpdateBlock{Name: "project-bridge", Content: "---\ntags: [b]\n---\n\n# Rewritten\n"}); err != nil {
		t.Fatal(err)
	}
	want = "---\r\n# by hand\r\nupdated: 2026-02-21 # day\r\nmood: \"fine\"\r\ntags: [b]\r\n---\r\n\r\n# Rewritten\r\n"
	if diff := cmp.Diff(want, get(t, s, "blocks/project-bridge.md")); diff != "" {
		t.Error(diff)
	}
}

// TestUnreadableIsNotEmpty: what cannot be read is never overwritten.
func TestUnreadableIsNotEmpty(t *testing.T) {
	s := newStore(t)
	put(t, s, "index.md", "\xff\xfe not text")
	before := snapshot(t, s.Dir())
	if _, err := s.Create(t.Context(), CreateBlock{Name: "project-a", Content: "x"}); err == nil || !strings.Contains(err.Error(), "nothing was written") {
		t.Error(err)
	}
	if _, err := s.AppendEpisode(t.Context(), Episode{Entry: "x"}); err == nil {
		t.Error("an entry was added without its row")
	}
	put(t, s, "index.md", seedIndex)
	if err := os.Mkdir(filepath.Join(s.Dir(), "blocks", "project-a.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), CreateBlock{Name: "project-a", Content: "x"}); err == nil {
		t.Error("a directory was taken for nothing")
	}
	put(t, s, "index.md", "\xff\xfe not text")
	if diff := cmp.Diff(before, snapshot(t, s.Dir())); diff != "" {
		t.Error(diff)
	}
}

func TestEpisode(t *testing.T) {
	s := newStore(t)
	for range 2 { // a retried call adds nothing
		if _, err := s.AppendEpisode(t.Context(), Episode{Title: "# First\nday", Entry: "Did it.\n\n"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.AppendEpisode(t.Context(), Episode{Entry: "Then more. And on."}); err != nil {
		t.Fatal(err)
	}
	want := "---\ncreated: 2026-02-21\nupdated: 2026-02-21\n---\n\n# February 2026\n\n## 2026-02-21 — First day\nDid it.\n\n## 2026-02-21 — Then more\nThen more. And on.\n"
	if diff := cmp.Diff(want, get(t, s, "blocks/episodic-2026-02.md")); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(get(t, s, "index.md"), "| episodic-2026-02.md | Conversation log for February 2026 | 2026-02-21 |\n") {
		t.Error(get(t, s, "index.md"))
	}
}

// The rows of the table of append_file tests, by name.
func TestAppendFile(t *testing.T) {
	s := newStore(t)
	abs := func(name string) string { return filepath.Join(s.Dir(), filepath.FromSlash(name)) }
	t.Run("Append to new file", func(t *testing.T) {
		if n, err := s.AppendFile(t.Context(), abs("notes.txt"), "héllo"); err != nil || n != 6 || get(t, s, "notes.txt") != "héllo" {
			t.Error(n, err)
		}
	})
	t.Run("Append to existing file", func(t *testing.T) {
		if n, err := s.AppendFile(t.Context(), "notes.txt", "\nmore"); err != nil || n != 5 || get(t, s, "notes.txt") != "héllo\nmore" {
			t.Error(n, err)
		}
	})
	before := snapshot(t, s.Dir())
	t.Run("Path outside memory dir", func(t *testing.T) {
		for _, p := range []string{filepath.Join(t.TempDir(), "x"), s.Dir() + "-evil/x", s.Dir(), filepath.Dir(s.Dir()), `C:\temp\x`, `\\host\share\x`, "//host/x"} {
			if _, err := s.AppendFile(t.Context(), p, "x"); !errors.Is(err, ErrOutside) || !strings.Contains(err.Error(), "restricted to the memory directory") {
				t.Errorf("%s: %v", p, err)
			}
		}
	})
	t.Run("Path traversal attempt", func(t *testing.T) {
		outside := t.TempDir()
		if err := os.Symlink(outside, abs("out")); err != nil && runtime.GOOS != "windows" {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(outside, "f"), abs("file")); err != nil && runtime.GOOS != "windows" {
			t.Fatal(err)
		}
		for _, p := range []string{"../x", "blocks/../../x", abs("blocks/../../x"), abs("..") + "/x", `..\x`, `blocks\..\..\x`, "out/x", "file", ".. /x"} {
			if _, err := s.AppendFile(t.Context(), p, "x"); err == nil {
				t.Errorf("%s was written", p)
			}
		}
		for _, p := range []string{".git/config", ".GIT/config", "GIT~1/x", "x/.git/config", ".reprise-journal/journal.json", ".gitignore", "a.lock", "con", "nul.md", "a:b", "a. ", "a\x00b", "~/x", "blocks", "", " "} {
			if _, err := s.AppendFile(t.Context(), p, "x"); err == nil {
				t.Errorf("%q was written", p)
			}
		}
		if list, _ := os.ReadDir(outside); len(list) > 0 {
			t.Error("something was written outside")
		}
		os.Remove(abs("out"))
		os.Remove(abs("file"))
	})
	t.Run("Empty text", func(t *testing.T) {
		if n, err := s.AppendFile(t.Context(), "blocks/none.md", ""); n != 0 || err != nil {
			t.Error(n, err)
		}
	})
	for _, text := range []string{"a\x00", "\xff", strings.Repeat("x", MaxAppend+1)} {
		if _, err := s.AppendFile(t.Context(), "notes.txt", text); err == nil {
			t.Error("bad text was written")
		}
	}
	if diff := cmp.Diff(before, snapshot(t, s.Dir())); diff != "" {
		t.Error(diff)
	}
	t.Run("Parent dir creation", func(t *testing.T) {
		if _, err := s.AppendFile(t.Context(), abs("deep/er/x.md"), "x"); err != nil || get(t, s, "deep/er/x.md") != "x" {
			t.Error(err)
		}
	})
	t.Run("index row of a block", func(t *testing.T) {
		if _, err := s.AppendFile(t.Context(), "blocks/episodic-2026-02.md", "## 2026-02-21 — X\nY.\n"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(get(t, s, "index.md"), "| episodic-2026-02.md | Conversation log for February 2026 | 2026-02-21 |") {
			t.Error(get(t, s, "index.md"))
		}
	})
}

func TestReadRanges(t *testing.T) {
	s := newStore(t)
	put(t, s, "blocks/Notes.md", "a\nb\nc")
	for _, c := range []struct {
		offset, limit int
		want          string
		more          bool
	}{{0, 0, "a\nb\nc", false}, {0, 1, "a\n", true}, {1, 1, "b\n", true}, {2, 5, "c", false}, {9, 1, "", false}} {
		doc, more, err := s.Read(t.Context(), "notes", c.offset, c.limit) // found though it differs in case
		if err != nil || doc.Content != c.want || more != c.more || doc.Lines != 3 || doc.Name != "Notes.md" || doc.Hash != hashOf([]byte("a\nb\nc")) {
			t.Errorf("%+v: %+v %v %v", c, doc, more, err)
		}
	}
}

func TestCheck(t *testing.T) {
	s := newStore(t)
	put(t, s, "core.md", "# Core\n\n## Active projects\n\n"+strings.Repeat("the bridge, see project-bridge.md. ", 90)+"\n\n## Gardening tips\n\n"+strings.Repeat("dig and water. ", 120)+"\n")
	put(t, s, "blocks/project-bridge.md", "---\ncreated: 2026-01-01\nupdated: 2026-02-02\n---\n# B\n")
	put(t, s, "blocks/My Notes.md", "hello\n")
	put(t, s, "blocks/reference-bad.md", "---\nupdated: [\n---\nx\n")
	put(t, s, "blocks/reference-bytes.md", "\xff")
	put(t, s, "blocks/reference-due.md", "---\ncreated: 2020-01-01\nupdated: 2020-01-01\nreview_after: 2020-06-01\n---\nx\n")
	put(t, s, "blocks/todo.txt", "x")
	put(t, s, "index.md", seedIndex+"| project-bridge.md | s | 2026-01-01 |\n| project-gone.md | s | 2026-01-01 |\n| project-bridge | again | |\n"+
		"| reference-bad.md | "+strings.Repeat("long ", 700)+"| |\n")
	r, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range r.Findings {
		got[f.Code+" "+f.File] += string(f.Level) + ": " + f.Problem + " / " + f.Remedy + "\n"
	}
	for key, part := range map[string]string{
		"core.budget core.md":                       "move \"Active projects\"",
		"index.budget index.md":                     "shorten the summary of reference-bad.md",
		"index.dangling index.md":                   "error: it names project-gone.md",
		"index.duplicate index.md":                  "line 5",
		"index.date index.md":                       "2026-02-02",
		"index.unlisted index.md":                   "My Notes.md",
		"index.summary index.md":                    "3499 characters",
		"block.name blocks/My Notes.md":             "reference-my-notes.md",
		"block.frontmatter blocks/reference-bad.md": "line 2",
		"text.damaged blocks/reference-bytes.md":    "0xff at byte 1",
		"block.review blocks/reference-due.md":      "after 2020-06-01",
		"blocks.stray blocks/todo.txt":              "neither listed nor searched",
	} {
		if !strings.Contains(got[key], part) {
			t.Errorf("%s: got %q, want %q in it", key, got[key], part)
		}
	}
	if !strings.Contains(got["core.budget core.md"], "blocks/project-bridge.md") {
		t.Errorf("the section's own block is not named: %s", got["core.budget core.md"])
	}
	if r.OK() {
		t.Error("it is OK")
	}
	fresh, err := newStore(t).Check(t.Context())
	if err != nil || len(fresh.Findings) != 0 {
		t.Errorf("a new memory: %+v %v", fresh, err)
	}
}

func TestWritesWarnOverBudget(t *testing.T) {
	s := newStore(t)
	w, err := s.Update(t.Context(), UpdateBlock{Name: "core", Content: "# Core\n" + strings.Repeat("word ", 1000)})
	if err != nil || len(w.Warnings) != 1 || !strings.Contains(w.Warnings[0], "memory check") {
		t.Errorf("%+v %v", w, err)
	}
}

type recorder struct {
	got []Change
	err error
}

func (r *recorder) MemoryWritten(_ context.Context, c Change) error {
	r.got = append(r.got, c)
	return r.err
}

func TestEventsAndTouches(t *testing.T) {
	rec := &recorder{err: errors.New("disk on fire")}
	var touched []string
	s := newStore(t)
	s.o.Events, s.o.AfterWrite = rec, func(n string) { touched = append(touched, n) }
	w, err := s.Create(t.Context(), CreateBlock{Name: "project-a", Content: "x"})
	if err != nil || len(w.Warnings) != 2 {
		t.Fatalf("%+v %v", w, err)
	}
	if diff := cmp.Diff([]string{"blocks/project-a.md", "index.md"}, touched); diff != "" {
		t.Error(diff)
	}
	if len(rec.got) != 2 || rec.got[0].Op != "create" || rec.got[0].Hash != w.Hash {
		t.Errorf("%+v", rec.got)
	}
}

func TestSkill(t *testing.T) {
	for _, flavour := range []string{FlavourReprise, FlavourFilesystem} {
		text, err := Skill(flavour, "/home/u/memory")
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", "SKILL."+flavour+".md")
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), text); diff != "" {
			t.Errorf("%s (UPDATE_GOLDEN=1 renews it): %s", flavour, diff)
		}
		if n := mdfile.Tokens(text); n < 500 || n > 1000 {
			t.Errorf("%s: about %d tokens", flavour, n)
		}
		var a, b bytes.Buffer
		if err := errors.Join(PackSkill(&a, flavour, "/home/u/memory"), PackSkill(&b, flavour, "/home/u/memory")); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Error("not the same bytes")
		}
		z, err := zip.NewReader(bytes.NewReader(a.Bytes()), int64(a.Len()))
		if err != nil || len(z.File) != 1 || z.File[0].Name != "SKILL.md" {
			t.Fatalf("%v", err)
		}
	}
	if _, err := Skill("other", "/m"); err == nil {
		t.Error("an unknown flavour was taken")
	}
}

func TestTimer(t *testing.T) {
	for goos, parts := range map[string][]string{
		"linux":   {"OnUnitActiveSec=14400", `ExecStart="/opt/re prise" "--config" "/c %% $$ \"q\".yaml" "memory" "sync"`},
		"darwin":  {"<integer>14400</integer>", "<string>/opt/re prise</string>", "&#34;q&#34;"},
		"windows": {"PT240M", "<Command>/opt/re prise</Command>"},
	} {
		tm, err := NewTimer(TimerOptions{GOOS: goos, Program: "/opt/re prise", Args: []string{"--config", `/c % $ "q".yaml`}, ConfigDir: "/h/.config", Home: "/h", StateDir: `C:\s`})
		if err != nil {
			t.Fatal(err)
		}
		all := ""
		for _, f := range tm.Files {
			all += f.Path + "\n" + f.Content
		}
		for _, p := range parts {
			if !strings.Contains(all, p) {
				t.Errorf("%s: no %q in %s", goos, p, all)
			}
		}
		if len(tm.Enable) == 0 || len(tm.Off) == 0 {
			t.Errorf("%s: no commands", goos)
		}
	}
	if _, err := NewTimer(TimerOptions{GOOS: "linux", Every: time.Second}); err == nil {
		t.Error("every second was taken")
	}
}

// FuzzIndexRow: a row can be set in any file that is text, is then found, and
// setting it again changes nothing.
func FuzzIndexRow(f *testing.F) {
	for _, s := range []string{"", seedIndex, "| Block |\n|---|", "Block | Updated\n-|-\na.md | x", "text", "|File|About|\r\n|-|-|\r\n|`project-a`|x"} {
		f.Add([]byte(s), "sum | mary")
	}
	f.Fuzz(func(t *testing.T, data []byte, summary string) {
		m, err := mdparse(data)
		if err != nil || len(summary) > 200 {
			return
		}
		g, err := withRow(m, "project-a.md", summary, "fallback", "2026-02-21")
		if err != nil {
			if checkText("summary", summary, 200) != nil {
				return
			}
			t.Fatal(err)
		}
		it, ok := findIndex(g)
		if !ok {
			t.Fatalf("no table in %q", g.Bytes())
		}
		if _, ok := it.find("project-a.md"); !ok {
			t.Fatalf("no row in %q", g.Bytes())
		}
		h, err := withRow(g, "project-a.md", "", "fallback", "2026-02-21")
		if err != nil || !bytes.Equal(h.Bytes(), g.Bytes()) {
			t.Fatalf("again: %v %q to %q", err, g.Bytes(), h.Bytes())
		}
	})
}
