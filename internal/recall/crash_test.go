package recall

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3/vfs"
)

const (
	crashVar = "RECALL_TEST_CRASH" // memory dir, index file, the step to die at, what to do
	crowdVar = "RECALL_TEST_CROWD" // memory dir, index file, number of the process
)

// crashVFS is the system's files, with a death at a step that changes one.
type crashVFS struct {
	vfs.VFSFilename
	steps *int
	die   int // the step to die before; -1 = never
}

type crashFile struct {
	vfs.File
	v crashVFS
}

// step dies as by kill -9: nothing of this process is run any more.
func (v crashVFS) step() {
	if *v.steps == v.die {
		p, _ := os.FindProcess(os.Getpid())
		p.Kill()
		select {}
	}
	*v.steps++
}

func (v crashVFS) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, out, err := v.VFSFilename.OpenFilename(name, flags)
	if err != nil {
		return nil, out, err
	}
	return crashFile{f, v}, out, nil
}

func (v crashVFS) Delete(name string, sync bool) error {
	v.step()
	return v.VFSFilename.Delete(name, sync)
}

func (f crashFile) WriteAt(b []byte, off int64) (int, error) {
	f.v.step()
	if *f.v.steps == f.v.die { // and in the middle of it
		f.File.WriteAt(b[:len(b)/2], off)
		f.v.step()
	}
	return f.File.WriteAt(b, off)
}

func (f crashFile) Truncate(n int64) error {
	f.v.step()
	return f.File.Truncate(n)
}

func (f crashFile) Sync(flags vfs.SyncFlag) error {
	f.v.step()
	return f.File.Sync(flags)
}

// generation is what one Update of the crash test leaves.
func generation(tx *Tx, n int) error {
	for i := range 40 {
		d := Doc{ID: fmt.Sprint("doc", i), Class: ClassEpisode, Text: fmt.Sprintf("generation%d common word%d", n, i), Time: noon.Add(time.Duration(i) * time.Hour), Keys: []string{fmt.Sprint("gen", n)}}
		if err := tx.Put(d); err != nil {
			return err
		}
	}
	return errors.Join(tx.Delete(fmt.Sprint("only", n-1)), tx.Put(Doc{ID: fmt.Sprint("only", n), Text: "alone"}), tx.Store("test", "generation", []byte(strconv.Itoa(n))))
}

func crashChild(v string) {
	f := strings.Split(v, "\n")
	die, _ := strconv.Atoi(f[2])
	steps := 0
	vfs.Register("crash", crashVFS{vfs.Find("").(vfs.VFSFilename), &steps, die})
	through = "crash"
	x := Open(Options{MemoryDir: f[0], IndexFile: f[1]})
	var err error
	if f[3] == "update" {
		err = x.Update(context.Background(), func(tx *Tx) error { return generation(tx, 2) })
	} else {
		_, err = x.Rebuild(context.Background())
	}
	if err == nil {
		err = x.Close()
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Print(steps)
	os.Exit(0)
}

// whole checks that the index is of one generation and sound, and says which.
func whole(t *testing.T, x *Index) int {
	t.Helper()
	n := 0
	view(t, x, func(tx *Tx) error {
		b, _, err := tx.Load("test", "generation")
		if err != nil {
			return err
		}
		n, _ = strconv.Atoi(string(b))
		docs, err := tx.ByKey(fmt.Sprint("gen", n))
		only, _ := tx.Count(Filter{})
		if err != nil || len(docs) != 40 {
			t.Errorf("%d documents of generation %d, %v; %d in all", len(docs), n, err, only)
		}
		if _, ok, err := tx.Get(fmt.Sprint("only", n)); !ok || err != nil {
			t.Errorf("only%d is not there: %v", n, err)
		}
		for _, q := range []string{`PRAGMA integrity_check`} {
			if err := tx.d.rows(q, func(s stmt) {
				if s.ColumnText(0) != "ok" {
					t.Error(s.ColumnText(0))
				}
			}); err != nil {
				return err
			}
		}
		a, err := tx.Recall(t.Context(), x, Question{Text: fmt.Sprintf("generation%d word7", n)})
		if err != nil || len(a.Results) == 0 || a.Results[0].ID != "doc7" {
			t.Errorf("recalled %v, %v", a.Results, err)
		}
		for g := 1; g <= 3; g++ {
			df, err := tx.d.df(fmt.Sprintf("generation%d", g))
			if want := map[bool]int64{true: 40}[g == n]; err != nil || df != want {
				t.Errorf("%d documents of generation %d are counted in %d, %v", df, g, n, err)
			}
		}
		return nil
	})
	return n
}

// TestKilledAtEachStep kills an Update before, and in the middle of, each of its
// steps on disk. What is found then is the state before or after, without a
// rebuild, and the next Update works.
func TestKilledAtEachStep(t *testing.T) {
	base := t.TempDir()
	memory, file := filepath.Join(base, "memory"), filepath.Join(base, "cache", "index.db")
	write(t, memory, "core.md", "# Core\n\nsourdough\n")
	x := Open(Options{MemoryDir: memory, IndexFile: file})
	update(t, x, func(tx *Tx) error { return generation(tx, 1) })
	if whole(t, x) != 1 {
		t.Fatal("the first generation is not there")
	}
	x.Close()
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	run := func(what string, die int) (out string, died bool) {
		if err := os.WriteFile(file, before, 0o600); err != nil {
			t.Fatal(err)
		}
		os.Remove(file + "-journal")
		os.Remove(file + ".new")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashVar+"="+strings.Join([]string{memory, file, strconv.Itoa(die), what}, "\n"))
		b, err := cmd.Output()
		return string(b), err != nil
	}
	seen := map[string]map[int]int{"update": {}, "rebuild": {}}
	for what, generations := range seen {
		out, died := run(what, -1)
		steps, err := strconv.Atoi(out)
		if died || err != nil || steps < 10 {
			t.Fatalf("%s: %q", what, out)
		}
		stride := max(1, steps/5)
		if os.Getenv("REPRISE_LONG_TESTS") != "" {
			stride = 1
		}
		for die := range steps {
			if die%stride != 0 && die < steps-3 { // the last steps are the commit
				continue
			}
			if out, died := run(what, die); !died {
				t.Fatalf("%s: step %d of %d did not kill: %s", what, die, steps, out)
			}
			x := Open(Options{MemoryDir: memory, IndexFile: file, NoBuild: true})
			n := whole(t, x)
			generations[n]++
			if n > 2 || what == "rebuild" && n != 1 {
				t.Errorf("%s killed at step %d: generation %d", what, die, n)
			}
			update(t, x, func(tx *Tx) error { return generation(tx, 3) })
			if n := whole(t, x); n != 3 {
				t.Errorf("%s killed at step %d: generation %d after the next", what, die, n)
			}
			x.Close()
			// What the dead one left was rolled back, and the journal after it is nobody else's to read, either.
			if fi, err := os.Stat(file + "-journal"); err == nil && runtime.GOOS != "windows" && fi.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s killed at step %d: the journal is %s", what, die, fi.Mode())
			}
			if t.Failed() {
				t.FailNow()
			}
		}
	}
	if seen["update"][1] == 0 {
		t.Errorf("no kill was rolled back: %v", seen)
	}
}

// TestJournalIsForNobodyElse: one process keeps the index open, a second one dies in a write,
// and a third one rolls that back, by which SQLite removes the journal. The one that the first
// then writes by is not for others to read, nor is one that an earlier program left so.
func TestJournalIsForNobodyElse(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits there")
	}
	base := t.TempDir()
	memory, file := filepath.Join(base, "memory"), filepath.Join(base, "cache", "index.db")
	write(t, memory, "core.md", "# Core\n\nsourdough\n")
	long := Open(Options{MemoryDir: memory, IndexFile: file})
	defer long.Close()
	update(t, long, func(tx *Tx) error { return generation(tx, 1) })
	for name, leave := range map[string]func(){
		"rolled back by another": func() {
			if err := os.Remove(file + "-journal"); err != nil {
				t.Fatal(err)
			}
		},
		"of an earlier program": func() {
			if err := os.Chmod(file+"-journal", 0o644); err != nil {
				t.Fatal(err)
			}
		},
	} {
		leave()
		update(t, long, func(tx *Tx) error { return generation(tx, 2) })
		if fi, err := os.Stat(file + "-journal"); err != nil || fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, fi, err)
		}
		update(t, long, func(tx *Tx) error { return generation(tx, 1) })
	}
}

// TestJournalOfAnotherIndex: a journal that a dead writer left is never applied
// to an index that it is not of.
func TestJournalOfAnotherIndex(t *testing.T) {
	base := t.TempDir()
	memory, file := filepath.Join(base, "memory"), filepath.Join(base, "cache", "index.db")
	write(t, memory, "core.md", "# Core\n\nsourdough\n")
	x := Open(Options{MemoryDir: memory, IndexFile: file})
	defer x.Close()
	update(t, x, func(tx *Tx) error { return generation(tx, 1) })
	x.Close()
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var hot []byte // a journal that would be rolled back
	for die := 5; len(hot) == 0; die += 3 {
		os.WriteFile(file, before, 0o600)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashVar+"="+strings.Join([]string{memory, file, strconv.Itoa(die), "update"}, "\n"))
		if cmd.Run() == nil {
			t.Fatal("no kill left a journal")
		}
		y := Open(Options{MemoryDir: memory, IndexFile: file})
		err := y.tryOpen(t.Context())
		y.Close()
		if halfWritten(err) {
			hot, _ = os.ReadFile(file + "-journal")
		}
	}
	for name, set := range map[string]func(){
		"rebuilt over":             func() {},
		"index removed":            func() { os.Remove(file) },
		"killed between two moves": func() { os.Remove(file); os.WriteFile(file+".new", before, 0o600) },
		"index of another version": func() {
			os.Remove(file + "-journal")
			execSQL(t, file, "PRAGMA user_version=99")
			os.WriteFile(file+"-journal", hot, 0o600)
		},
		"garbage beside the journal": func() { os.WriteFile(file, []byte("garbage"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			os.WriteFile(file, before, 0o600)
			os.WriteFile(file+"-journal", hot, 0o600)
			set()
			x := Open(Options{MemoryDir: memory, IndexFile: file})
			defer x.Close()
			if name == "rebuilt over" {
				if _, err := x.Rebuild(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if len(search(t, x, "sourdough")) != 1 {
				t.Error("not found")
			}
			update(t, x, func(tx *Tx) error { return generation(tx, 3) })
			x.Close()
			if n := whole(t, x); n != 3 {
				t.Errorf("generation %d", n)
			}
		})
	}
}

func crowdChild(v string) {
	f := strings.Split(v, "\n")
	x := Open(Options{MemoryDir: f[0], IndexFile: f[1]})
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	for i := range 12 {
		id := fmt.Sprintf("p%s-%d", f[2], i)
		fail(x.Update(context.Background(), func(tx *Tx) error {
			b, _, err := tx.Load("crowd", "count")
			if err != nil {
				return err
			}
			n, _ := strconv.Atoi(string(b))
			return errors.Join(tx.Put(Doc{ID: id, Text: "crowd " + strings.ReplaceAll(id, "-", "x"), Time: noon}), tx.Store("crowd", "count", []byte(strconv.Itoa(n+1))))
		}))
		fail(x.View(context.Background(), func(tx *Tx) error {
			b, _, err := tx.Load("crowd", "count")
			n, _ := strconv.Atoi(string(b))
			docs, cerr := tx.Count(Filter{})
			if all, _ := tx.d.number(`SELECT count(*) FROM docs WHERE file<>0`); err == nil && cerr == nil && docs-int(all) != n {
				return fmt.Errorf("%d documents, counted %d", docs-int(all), n)
			}
			return errors.Join(err, cerr)
		}))
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		a, err := x.Recall(ctx, Question{Text: strings.ReplaceAll(id, "-", "x")})
		cancel()
		fail(err)
		if len(a.Results) == 0 || a.Results[0].ID != id {
			fail(fmt.Errorf("%s is not recalled: %v", id, a.Results))
		}
		if i%4 == 3 { // as a short-lived process would
			fail(x.Close())
		}
	}
	os.Exit(0)
}

// TestCrowd: eight processes write and read one index at once.
func TestCrowd(t *testing.T) {
	x, dir := newIndex(t)
	var all []*exec.Cmd
	for p := range 8 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crowdVar+"="+strings.Join([]string{dir, x.o.IndexFile, strconv.Itoa(p)}, "\n"))
		out := &strings.Builder{}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, cmd.Stdout)
		}
	}
	view(t, x, func(tx *Tx) error {
		if b, _, err := tx.Load("crowd", "count"); string(b) != "96" || err != nil {
			t.Errorf("counted %s, %v", b, err)
		}
		return nil
	})
}
