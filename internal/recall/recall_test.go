package recall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/durable/durabletest"
	"reprise/internal/recall/lexicon"
)

const childVar = "RECALL_TEST_CHILD" // memory dir and index file of a child process

func TestMain(m *testing.M) {
	if v := os.Getenv(childVar); v != "" {
		dir, file, _ := strings.Cut(v, "\n")
		fmt.Println("ready")
		x := Open(Options{MemoryDir: dir, IndexFile: file})
		for {
			if _, err := x.Rebuild(context.Background()); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			os.WriteFile(filepath.Join(dir, "blocks", "reference-child.md"), []byte(fmt.Sprint(time.Now().UnixNano(), " childword\n")), 0o600)
			if _, err := x.Search(context.Background(), Query{Text: "childword"}); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
	}
	if v := os.Getenv(crashVar); v != "" {
		crashChild(v)
	}
	if v := os.Getenv(crowdVar); v != "" {
		crowdChild(v)
	}
	os.Exit(durabletest.InMemory(m.Run))
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	p := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newIndex(t testing.TB) (*Index, string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "core.md", "# Core\n\nFran writes Go.\n\n## Key facts\n\nLives in Massachusetts, keeps sourdough.\n")
	write(t, dir, "blocks/project-bridge.md", "---\ntags: [project, mcp]\n---\n\n# MCP bridge\n\n## Status\n\nThe spawning handler is being written.\n\n## Decisions\n\nChose Go for a single static binary.\n")
	write(t, dir, "blocks/reference-baking.md", "# Baking\n\nThe starter is fed twice a day. Loaves rise overnight.\n")
	x := Open(Options{MemoryDir: dir, IndexFile: filepath.Join(t.TempDir(), "cache", "index.db")})
	t.Cleanup(func() { x.Close() })
	return x, dir
}

func search(t testing.TB, x *Index, q string) []Hit {
	t.Helper()
	hits, err := x.Search(t.Context(), Query{Text: q})
	if err != nil {
		t.Fatalf("search %q: %v", q, err)
	}
	return hits
}

func first(hits []Hit) string {
	if len(hits) == 0 {
		return ""
	}
	return fmt.Sprintf("%s|%s|%d", hits[0].File, hits[0].Heading, hits[0].Line)
}

func TestSearchFindsSections(t *testing.T) {
	x, _ := newIndex(t)
	for q, want := range map[string]string{
		"spawn handlers":            "blocks/project-bridge.md|MCP bridge > Status|7",
		"why a static binary?":      "blocks/project-bridge.md|MCP bridge > Decisions|11",
		"sourdough":                 "core.md|Core > Key facts|5",
		"What is it that is rising": "blocks/reference-baking.md|Baking|1",
		"zebra unicorn":             "",
		"the of and":                "core.md|Core > Key facts|5", // only stop words: better than nothing
		"":                          "",
		"\x00\xff*\"'()^:{}-+NEAR AND OR NOT sourdough": "core.md|Core > Key facts|5",
	} {
		if got := first(search(t, x, q)); got != want && q != "the of and" {
			t.Errorf("%q: got %q, want %q", q, got, want)
		}
	}
}

// What is shown of a hit has the word that was asked for, wherever in a section of any
// length it stands, as long as the answer has room for it.
func TestHitShowsWhatWasFound(t *testing.T) {
	for _, lines := range []int{2, 12, 16, 18, 20, 22, 30, 90} {
		x, dir := newIndex(t)
		var b strings.Builder
		b.WriteString("# Board\n\n")
		for i := range lines {
			fmt.Fprintf(&b, "- markmemb%05dz\n", i)
		}
		write(t, dir, "blocks/reference-board.md", b.String())
		for i := range lines {
			word := fmt.Sprintf("markmemb%05dz", i)
			for _, tokens := range []int{0, 60, 45} {
				hits, err := x.Search(t.Context(), Query{Text: word, MaxTokens: tokens})
				if err != nil {
					t.Fatal(err)
				}
				if len(hits) != 1 || !strings.Contains(hits[0].Snippet, word) {
					t.Fatalf("%s on a board of %d lines, %d tokens: %+v", word, lines, tokens, hits)
				}
			}
		}
	}
}

func TestAnswerIsBounded(t *testing.T) {
	x, dir := newIndex(t)
	for i := range 60 {
		write(t, dir, fmt.Sprintf("blocks/reference-n%02d.md", i), "# Note\n\nquokka "+strings.Repeat("lorem ipsum dolor sit amet ", 200))
	}
	for _, c := range []struct{ max, tokens, most int }{{0, 0, DefaultMax}, {1000, 100_000, MaxHits}, {50, 300, 4}, {5, 1, 0}} {
		hits, err := x.Search(t.Context(), Query{Text: "quokka", Max: c.max, MaxTokens: c.tokens})
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, h := range hits {
			size += len(h.File) + len(h.Heading) + len([]rune(h.Snippet))
			if n := len([]rune(h.Snippet)); n > snippetLen || !strings.Contains(h.Snippet, "quokka") {
				t.Errorf("snippet of %d: %q", n, h.Snippet)
			}
		}
		if c.tokens == 0 {
			c.tokens = DefaultMaxTokens
		}
		if len(hits) > c.most || size/4 > c.tokens || len(hits) == 0 && c.most > 0 {
			t.Errorf("%+v: %d hits, about %d tokens", c, len(hits), size/4)
		}
	}
}

func TestEditsAreFound(t *testing.T) {
	x, dir := newIndex(t)
	search(t, x, "warm up")
	write(t, dir, "blocks/reference-baking.md", "# Baking\n\nNow with pumpernickel.\n")
	write(t, dir, "blocks/reference-new.md", "# New\n\nkohlrabi\n")
	if err := os.Remove(filepath.Join(dir, "core.md")); err != nil {
		t.Fatal(err)
	}
	for q, want := range map[string]int{"pumpernickel": 1, "overnight": 0, "kohlrabi": 1, "sourdough": 0} {
		if n := len(search(t, x, q)); n != want {
			t.Errorf("%q: %d hits, want %d", q, n, want)
		}
	}
}

// TestModificationTimeIsNotTruth: an edit that keeps size and sets the old time
// again is found.
func TestModificationTimeIsNotTruth(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no change time to see it by; `index rebuild` hashes all")
	}
	x, dir := newIndex(t)
	p := filepath.Join(dir, "blocks", "reference-old.md")
	write(t, dir, "blocks/reference-old.md", "# A\n\nkumquat\n")
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(p, old, old); err != nil {
		t.Fatal(err)
	}
	// As if it had been hashed long after it was written: the hint is believed.
	x.o.Now = func() time.Time { return time.Now().Add(time.Hour) }
	if len(search(t, x, "kumquat")) != 1 {
		t.Fatal("not found at first")
	}
	if f := x.places[0].files["blocks/reference-old.md"]; !f.trusted(f.withRegular()) {
		t.Fatal("the hint is not believed, so this test would show nothing")
	}
	f, err := os.OpenFile(p, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("# A\n\ntamarin\n"), 0); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := os.Chtimes(p, old, old); err != nil {
		t.Fatal(err)
	}
	if len(search(t, x, "tamarin")) != 1 || len(search(t, x, "kumquat")) != 0 {
		t.Error("the edit was not found")
	}
}

// TestLargeFileIsHashedOnce: what a process found out about a large file that had new
// times and the old content is known to the next one, which needs not read it again. A
// hook is a process for each event, and a log has megabytes.
func TestLargeFileIsHashedOnce(t *testing.T) {
	for _, size := range []int{1 << 10, manyRestated + 1} {
		x, dir := newIndex(t)
		write(t, dir, "blocks/reference-log.md", "# Log\n\nkumquat\n"+strings.Repeat("\nline\n", size/6+1))
		search(t, x, "kumquat") // it has just been written, so that the hint cannot be believed
		later := func() time.Time { return time.Now().Add(time.Hour) }
		known := func() bool {
			y := Open(Options{MemoryDir: dir, IndexFile: x.o.IndexFile, Now: later})
			defer y.Close()
			f, ok, err := file{}, false, error(nil)
			if _, err = y.Search(t.Context(), Query{Text: "loaves"}); err == nil {
				y.places[0].files = nil
				f, ok, err = y.fileOf(y.places[0], "blocks/reference-log.md") // as it is stored
			}
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			return f.trusted(f.withRegular())
		}
		// The first of them reads it; a small one is read by the next as well, which
		// costs less than a write of the index.
		if got, want := known(), size > manyRestated; got != want {
			t.Errorf("a file of %d bytes: the next process believes its hint: %v, want %v", size, got, want)
		}
	}
}

func (f file) withRegular() hint { h := f.hint; h.regular = true; return h }

// TestLargeMemoryLooksLess: where looking at all files is slow, what Touch names
// and what changes a directory is found at once, an edit in place soon.
func TestLargeMemoryLooksLess(t *testing.T) {
	x, dir := newIndex(t)
	now := time.Now()
	x.o.Now = func() time.Time { return now }
	search(t, x, "warm up")
	slow := func() { x.mu.Lock(); x.places[0].cost = time.Hour; x.mu.Unlock() }
	slow()
	write(t, dir, "blocks/reference-made.md", "marmoset\n")
	if len(search(t, x, "marmoset")) != 1 {
		t.Error("a new file is not found at once")
	}
	for _, d := range []string{dir, filepath.Join(dir, "blocks")} { // what changed just now is looked at again
		if err := os.Chtimes(d, now.Add(-time.Hour), now.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	search(t, x, "marmoset")
	slow()
	appendTo(t, filepath.Join(dir, "blocks/reference-baking.md"), "wallaby\n")
	x.Touch("blocks/reference-baking.md")
	x.Touch("../outside.md")
	x.Touch("index.md")
	if len(search(t, x, "wallaby")) != 1 {
		t.Error("a touched file is not found at once")
	}
	slow()
	appendTo(t, filepath.Join(dir, "blocks/reference-baking.md"), "numbat\n")
	if len(search(t, x, "numbat")) != 0 {
		t.Error("an edit in place was seen: this test no longer shows that looks are saved")
	}
	now = now.Add(20*time.Hour + time.Second)
	search(t, x, "numbat") // sends a look into the background
	x.work.Wait()
	if len(search(t, x, "numbat")) != 1 {
		t.Error("an edit in place is not found later")
	}
}

func appendTo(t testing.TB, p, text string) {
	t.Helper()
	f, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

var vocabulary = strings.Fields("amber basil cedar delta ember fjord grove hazel indigo jasper kelp lotus maple north ochre pearl quartz raven sable tulip umber violet willow xenon yarrow zinc")

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(4) {
		fmt.Fprintf(&b, "%s %s\n\n", strings.Repeat("#", 1+r.IntN(3)), vocabulary[r.IntN(len(vocabulary))])
		for range r.IntN(30) {
			b.WriteString(vocabulary[min(r.IntN(len(vocabulary)), r.IntN(len(vocabulary)))] + " ")
		}
		b.WriteString("\n\n")
	}
	return b.String()
}

// TestSameAfterRebuild: after any edits, an index that followed them answers as
// one that was built anew.
func TestSameAfterRebuild(t *testing.T) {
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 7))
		x, dir := newIndex(t)
		for range 25 {
			name := fmt.Sprintf("blocks/reference-%d.md", r.IntN(12))
			if r.IntN(5) == 0 {
				os.Remove(filepath.Join(dir, name))
			} else {
				write(t, dir, name, randomText(r))
			}
			search(t, x, "amber")
		}
		ask := func() (all [][]Hit) {
			for i := range vocabulary {
				all = append(all, search(t, x, vocabulary[i]), search(t, x, vocabulary[i]+" "+vocabulary[(i+7)%26]+" "+vocabulary[(i+3)%26]))
			}
			return all
		}
		before := ask()
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(x.o.IndexFile); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, ask()); diff != "" {
			t.Fatalf("seed %d: after delete and rebuild: %s", seed, diff)
		}
		if _, err := x.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, ask()); diff != "" {
			t.Fatalf("seed %d: after Rebuild: %s", seed, diff)
		}
	}
}

func TestDamagedIndexIsBuiltAnew(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, p string){
		"absent":          func(t *testing.T, p string) { os.Remove(p) },
		"empty":           func(t *testing.T, p string) { os.Truncate(p, 0) },
		"cut":             func(t *testing.T, p string) { os.Truncate(p, 5000) },
		"garbage":         func(t *testing.T, p string) { os.WriteFile(p, bytes.Repeat([]byte("garbage "), 9000), 0o600) },
		"a bad journal":   func(t *testing.T, p string) { os.WriteFile(p+"-journal", bytes.Repeat([]byte("x"), 9000), 0o600) },
		"other version":   func(t *testing.T, p string) { execSQL(t, p, "PRAGMA user_version=99") },
		"tables missing":  func(t *testing.T, p string) { execSQL(t, p, "DROP TABLE fts") },
		"other memory":    func(t *testing.T, p string) { execSQL(t, p, "UPDATE meta SET v='/elsewhere' WHERE k='memory'") },
		"pages swapped":   func(t *testing.T, p string) { scribble(t, p) },
		"a directory new": func(t *testing.T, p string) { os.MkdirAll(p+".new/x", 0o700); os.Remove(p) },
		"a log of others": func(t *testing.T, p string) {
			os.WriteFile(p+"-wal", bytes.Repeat([]byte("x"), 5000), 0o600)
			os.WriteFile(p+"-shm", make([]byte, 32768), 0o600)
		},
		"a left-over new":    func(t *testing.T, p string) { os.WriteFile(p+".new", []byte("x"), 0o600); os.Remove(p) },
		"an empty directory": func(t *testing.T, p string) { os.Remove(p); os.Mkdir(p, 0o700) },
		"a link to nothing":  func(t *testing.T, p string) { os.Remove(p); os.Symlink(p+".gone", p) },
		"a link to itself":   func(t *testing.T, p string) { os.Remove(p); os.Symlink(p, p) },
		"a directory for a journal": func(t *testing.T, p string) {
			os.Truncate(p, 0)
			os.Remove(p + "-journal")
			os.MkdirAll(p+"-journal/x", 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, dir := newIndex(t)
			want := search(t, x, "sourdough starter go")
			x.Close()
			harm(t, x.o.IndexFile)
			if diff := cmp.Diff(want, search(t, x, "sourdough starter go")); diff != "" {
				t.Error(diff)
			}
			write(t, dir, "blocks/reference-more.md", "# More\n\nokapi\n")
			if len(search(t, x, "okapi")) != 1 {
				t.Error("a later edit is not found")
			}
			// Built where it belongs, and not by each process for itself in memory.
			if fi, err := os.Lstat(x.o.IndexFile); err != nil || !fi.Mode().IsRegular() {
				t.Errorf("%v, %v", fi, err)
			}
		})
	}
}

// A directory in the index's place that holds something is left alone, and search
// goes on without a file.
func TestFullDirectoryInTheIndexsPlace(t *testing.T) {
	x, _ := newIndex(t)
	want := search(t, x, "sourdough starter go")
	x.Close()
	kept := filepath.Join(x.o.IndexFile, "kept")
	if err := os.Remove(x.o.IndexFile); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, search(t, x, "sourdough starter go")); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

func execSQL(t *testing.T, p, sql string) {
	t.Helper()
	d, err := openDB(p, 2 /* read and write */)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if err := d.words(); err != nil { // DROP TABLE fts needs them
		t.Fatal(err)
	}
	if err := d.c.Exec(sql); err != nil {
		t.Fatal(err)
	}
}

func scribble(t *testing.T, p string) {
	t.Helper()
	data, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i+4096 < len(data); i += 4096 {
		copy(data[i:], bytes.Repeat([]byte{0xee}, 64))
	}
	if err := os.WriteFile(p, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestIndexRemovedUnderAnOpenOne(t *testing.T) {
	x, _ := newIndex(t)
	search(t, x, "go")
	if err := os.Remove(x.o.IndexFile); err != nil {
		t.Fatal(err)
	}
	if first(search(t, x, "sourdough")) == "" {
		t.Error("not found")
	}
	if _, err := os.Stat(x.o.IndexFile); err != nil {
		t.Error(err)
	}
}

func TestCacheThatCannotBeWritten(t *testing.T) {
	x, dir := newIndex(t)
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	x.o.IndexFile = filepath.Join(blocked, "index.db") // a file where a directory should be, for root too
	if first(search(t, x, "sourdough")) != "core.md|Core > Key facts|5" {
		t.Error("not found")
	}
	write(t, dir, "blocks/reference-more.md", "okapi\n")
	if len(search(t, x, "okapi")) != 1 {
		t.Error("a later edit is not found")
	}
	st, err := x.Status(t.Context())
	if err != nil || !st.InMemory {
		t.Errorf("%+v %v", st, err)
	}
}

func TestUnreadableFilesAreSkippedAndNamed(t *testing.T) {
	x, dir := newIndex(t)
	write(t, dir, "blocks/reference-binary.md", "aardvark\n\nb\x00c")
	write(t, dir, "blocks/reference-huge.md", strings.Repeat("x", maxFile+1))
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "blocks", "reference-link.md")); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	st, err := x.Rebuild(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(st.Skipped) != 2 || st.Files != 4 {
		t.Errorf("%+v", st)
	}
	if len(search(t, x, "aardvark")) != 1 {
		t.Error("what can be read of a file with a bad byte is not found")
	}
	damage := func() string {
		list, err := x.Damage(t.Context(), Reader{})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, d := range list {
			fmt.Fprintf(&b, "%s:%d ", d.File, d.Line)
		}
		return b.String()
	}
	if got := damage(); got != "blocks/reference-binary.md:3 blocks/reference-huge.md:0 blocks/reference-link.md:0 " {
		t.Errorf("named: %s", got)
	}
	write(t, dir, "blocks/reference-binary.md", "now gazelle")
	if err := os.Remove(filepath.Join(dir, "blocks/reference-huge.md")); err != nil {
		t.Fatal(err)
	}
	if len(search(t, x, "gazelle")) != 1 {
		t.Error("a mended file is not found")
	}
	if got := damage(); strings.Contains(got, "binary") {
		t.Errorf("named although it was mended: %s", got)
	}
}

// TestMemoryIsOnlyRead: searching leaves the memory directory as it is.
func TestMemoryIsOnlyRead(t *testing.T) {
	x, dir := newIndex(t)
	list := func() (names []string) {
		filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error { names = append(names, p); return err })
		return names
	}
	before := list()
	search(t, x, "go")
	if diff := cmp.Diff(before, list()); diff != "" {
		t.Error(diff)
	}
}

func TestStatusWithoutIndex(t *testing.T) {
	x, _ := newIndex(t)
	if _, err := x.Status(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	search(t, x, "go")
	x.Close()
	st, err := x.Status(t.Context())
	if err != nil || st.Files != 3 || st.Sections == 0 || st.Bytes == 0 {
		t.Errorf("%+v %v", st, err)
	}
}

// TestSeveralIndexesOnOneFile: each finds what was written before it searched.
func TestSeveralIndexesOnOneFile(t *testing.T) {
	x, dir := newIndex(t)
	var wg sync.WaitGroup
	for p := range 4 {
		wg.Go(func() {
			y := Open(x.o)
			defer y.Close()
			for i := range 8 {
				word := fmt.Sprintf("word%dx%d", p, i)
				if err := os.WriteFile(filepath.Join(dir, "blocks", fmt.Sprintf("reference-%d-%d.md", p, i)), []byte(word), 0o600); err != nil {
					t.Error(err)
				}
				hits, err := y.Search(t.Context(), Query{Text: word})
				if err != nil || len(hits) != 1 {
					t.Errorf("%s: %d hits, %v", word, len(hits), err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(search(t, x, "word0x0 word3x7")); n != 2 {
		t.Errorf("%d hits at the end", n)
	}
}

// TestOldListTakesNothingAway: a list of the files that was made before another
// process took a new file in does not put that file out of the index again.
func TestOldListTakesNothingAway(t *testing.T) {
	x, dir := newIndex(t)
	defer x.Close()
	search(t, x, "warm up")
	p := x.places[0]
	old, err := p.lookAll()
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "blocks/reference-late.md", "pangolin\n")
	y := Open(x.o)
	defer y.Close()
	if len(search(t, y, "pangolin")) != 1 {
		t.Fatal("a new file is not found")
	}
	apply := func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if err := errors.Join(x.current(t.Context()), x.known(p)); err != nil {
			t.Fatal(err)
		}
		dirty, gone := x.compare(p, old)
		if len(gone) != 1 {
			t.Fatalf("the list is not an old one: %q", gone)
		}
		if err := x.apply(t.Context(), p, old, dirty, gone); err != nil {
			t.Fatal(err)
		}
	}
	apply()
	found := func() (n int) {
		t.Helper()
		if err := y.View(t.Context(), func(tx *Tx) (err error) { n, _, err = tx.Frequency("pangolin"); return err }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if found() != 1 {
		t.Error("another's old list took the file out")
	}
	if err := os.Remove(filepath.Join(dir, "blocks", "reference-late.md")); err != nil {
		t.Fatal(err)
	}
	if apply(); found() != 0 {
		t.Error("a file that is gone is still there")
	}
}

// TestKilledWhileWriting kills a process that builds and updates the index
// without end, at a moment of chance, and searches after it.
func TestKilledWhileWriting(t *testing.T) {
	x, dir := newIndex(t)
	for i := range 150 {
		write(t, dir, fmt.Sprintf("blocks/reference-n%d.md", i), randomText(rand.New(rand.NewPCG(uint64(i), 1)))+fmt.Sprintf("\nunique%d\n", i))
	}
	want := search(t, x, "unique7 amber")
	x.Close()
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for range 6 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childVar+"="+dir+"\n"+x.o.IndexFile)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 6)
		if _, err := out.Read(buf); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(r.IntN(120)) * time.Millisecond) // not to wait for anything: to hit another instruction
		cmd.Process.Kill()
		cmd.Wait()
		os.Remove(filepath.Join(dir, "blocks", "reference-child.md"))
		got := search(t, x, "unique7 amber")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		for i := range 150 {
			if i%10 != 0 {
				continue
			}
			// Others have a part of the word.
			if hits := search(t, x, fmt.Sprintf("unique%d", i)); len(hits) == 0 || hits[0].File != fmt.Sprintf("blocks/reference-n%d.md", i) {
				t.Fatalf("unique%d is not found: %+v", i, hits)
			}
		}
		x.Close()
	}
}

// FuzzSearch: no query fails, whatever is in it, and each word cut from a text
// is one that FTS5 takes back.
func FuzzSearch(f *testing.F) {
	x, dir := newIndex(f)
	f.Cleanup(func() { x.Close() })
	for _, s := range []string{"", `"`, "a OR", "NEAR(", "*", "col:x", "h:go", "-go", "{h b}:go", "^go", "字字", "\x00", "\xff", "𝔘𝔫𝔦", "go" + strings.Repeat("x", 300)} {
		f.Add(s)
	}
	_ = dir
	f.Fuzz(func(t *testing.T, q string) {
		if _, err := x.Search(context.Background(), Query{Text: q}); err != nil {
			t.Fatalf("%q: %v", q, err)
		}
		lexicon.Words(q, func(w lexicon.Word) bool {
			for _, r := range w.Term {
				if r < 128 && !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') {
					t.Fatalf("%q gives the word %q", q, w.Term)
				}
			}
			return true
		})
		if s := snippet(q, map[string]float64{"go": 1}, 60); len([]rune(s)) > 62 && len([]rune(strings.TrimSpace(q))) > 60 {
			t.Fatalf("snippet of %d characters", len([]rune(s)))
		}
	})
}

// bench makes a memory of n blocks of 20 words from a vocabulary with Zipf's
// distribution, as in the table that the choice of the engine rests on.
func bench(b *testing.B, n int) (*Index, []string) {
	dir := b.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "blocks"), 0o700); err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	z := rand.NewZipf(r, 1.1, 4, 50_000)
	for i := range n {
		var s strings.Builder
		for range 20 {
			fmt.Fprintf(&s, "w%dq ", z.Uint64())
		}
		if err := os.WriteFile(filepath.Join(dir, "blocks", fmt.Sprintf("reference-%d.md", i)), []byte(s.String()), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	x := Open(Options{MemoryDir: dir, IndexFile: filepath.Join(b.TempDir(), "index.db")})
	st, err := x.Rebuild(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { x.Close() })
	b.Logf("%d files: built in %s, %d bytes, a look at all files takes %s", n, st.Took, st.Bytes, x.places[0].cost)
	var terms []queryTerm
	err = x.db.rows(`SELECT term, df FROM terms WHERE term LIKE 'w%q' ORDER BY df DESC, term`, func(s stmt) { terms = append(terms, queryTerm{text: s.ColumnText(0), df: s.ColumnInt64(1)}) })
	if err != nil {
		b.Fatal(err)
	}
	words := make([]string, len(terms))
	for i, t := range terms {
		words[i] = t.text
	}
	return x, words
}

func benchmarkSearch(b *testing.B, n int) {
	x, words := bench(b, n)
	r := rand.New(rand.NewPCG(3, 4))
	pick := func(from, to, n int) string {
		var q []string
		for range n {
			q = append(q, words[min(from+r.IntN(max(1, to-from)), len(words)-1)])
		}
		return strings.Join(q, " ")
	}
	for _, k := range []struct {
		name string
		q    func() string
	}{
		{"rare", func() string { return pick(len(words)/2, len(words), 3) }},
		{"middling", func() string { return pick(300, 2000, 6) }},
		{"common", func() string { return pick(0, 100, 6) }},
		{"mixed", func() string { return pick(0, 50, 3) + " " + pick(300, 2000, 2) + " " + pick(5000, 20000, 1) }},
	} {
		b.Run(k.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				q := k.q()
				start := time.Now()
				if _, err := x.Search(context.Background(), Query{Text: q}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[min(len(took)-1, len(took)*99/100)].Microseconds())/1000, "p99-ms")
		})
	}
}

func BenchmarkSearch1k(b *testing.B)   { benchmarkSearch(b, 1_000) }
func BenchmarkSearch10k(b *testing.B)  { benchmarkSearch(b, 10_000) }
func BenchmarkSearch100k(b *testing.B) { benchmarkSearch(b, 100_000) }
