package proc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

type gotLine struct {
	Line  string
	Cut   bool
	Total int64
}

func readAll(t testing.TB, l *LineReader) []gotLine {
	t.Helper()
	var out []gotLine
	for {
		line, cut, total, err := l.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("Next: %v", err)
		}
		out = append(out, gotLine{string(line), cut, total})
	}
}

// wantLines is the plain way to say what LineReader does.
func wantLines(data []byte, limit int) []gotLine {
	var out []gotLine
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		n := len(line)
		out = append(out, gotLine{string(line[:min(n, limit)]), n > limit, int64(n)})
	}
	return out
}

func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", 3*chunk+5)
	for _, tc := range []struct {
		name, in string
		limit    int
	}{
		{"empty", "", 10},
		{"one without end", "abc", 10},
		{"one", "abc\n", 10},
		{"empty lines", "\n\n\na\n", 10},
		{"exactly the limit", "0123456789\nrest\n", 10},
		{"one over the limit", "0123456789a\nrest\n", 10},
		{"carriage return stays", "a\r\nb", 10},
		{"NUL and no UTF-8", "\x00\xff\n\xfe", 10},
		{"longer than a chunk", long + "\nshort\n" + long, len(long)},
		{"longer than a chunk and cut", long + "\nshort\n" + long + "\n", 70000},
		{"line ends at chunk", strings.Repeat("y", chunk-1) + "\nz\n", 2 * chunk},
		{"line of one chunk", strings.Repeat("y", chunk) + "\nz\n", 2 * chunk},
		{"limit 1", "ab\nc\n", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := wantLines([]byte(tc.in), tc.limit)
			for how, r := range map[string]io.Reader{
				"whole":        strings.NewReader(tc.in),
				"half":         iotest.HalfReader(strings.NewReader(tc.in)),
				"error at end": iotest.DataErrReader(strings.NewReader(tc.in)),
			} {
				if d := cmp.Diff(want, readAll(t, NewLineReader(r, tc.limit))); d != "" {
					t.Errorf("%s: (-want +got)\n%s", how, d)
				}
			}
		})
	}
}

func TestLineReaderPassesErrorsOn(t *testing.T) {
	boom := errors.New("boom")
	l := NewLineReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(boom)), 10)
	if line, _, _, err := l.Next(); string(line) != "a" || err != nil {
		t.Fatalf("first line: %q, %v", line, err)
	}
	for range 2 {
		if _, _, _, err := l.Next(); !errors.Is(err, boom) {
			t.Fatalf("error: %v, want boom", err)
		}
	}
}

// repeat gives n bytes of 'x' and a newline without holding them.
type repeat struct{ n int }

func (r *repeat) Read(b []byte) (int, error) {
	if r.n < 0 {
		return 0, io.EOF
	}
	if r.n == 0 {
		r.n = -1
		b[0] = '\n'
		return 1, nil
	}
	n := min(len(b), r.n)
	for i := range n {
		b[i] = 'x'
	}
	r.n -= n
	return n, nil
}

// A line of 60 MB must not cost 60 MB.
func TestLineReaderHugeLineIsBounded(t *testing.T) {
	const size, limit = 60 << 20, 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l := NewLineReader(&repeat{n: size}, limit)
	line, cut, total, err := l.Next()
	runtime.ReadMemStats(&after)
	if err != nil || !cut || total != size || len(line) != limit {
		t.Fatalf("got %d bytes, cut %v, total %d, %v", len(line), cut, total, err)
	}
	// Doubling up to the limit allocates at most twice the limit in all.
	if got := after.TotalAlloc - before.TotalAlloc; got > 2*limit+2*chunk {
		t.Errorf("allocated %d bytes for a line of %d with a limit of %d", got, size, limit)
	}
	if cap(l.line) > limit {
		t.Errorf("holds %d bytes, limit %d", cap(l.line), limit)
	}
}

func TestLineReaderShortLinesDoNotAllocate(t *testing.T) {
	data := strings.Repeat(`{"type":"assistant"}`+"\n", 100)
	r := strings.NewReader(data)
	l := NewLineReader(r, 1<<20)
	_, _, _, _ = l.Next() // the buffer
	if n := testing.AllocsPerRun(20, func() {
		r.Reset(data)
		for {
			if _, _, _, err := l.Next(); err != nil {
				return
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations for 100 lines, want 0", n)
	}
}

func FuzzLineReader(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccc"), 2, 3)
	f.Add([]byte("\n"), 1, 1)
	f.Add(bytes.Repeat([]byte("z"), 200), 50, 7)
	f.Fuzz(func(t *testing.T, data []byte, limit, step int) {
		limit = max(1, limit%1000)
		step = max(1, step%100)
		l := NewLineReader(&stepReader{bytes.NewReader(data), step}, limit)
		if d := cmp.Diff(wantLines(data, limit), readAll(t, l)); d != "" {
			t.Errorf("limit %d, step %d (-want +got)\n%s", limit, step, d)
		}
		if cap(l.line) > limit {
			t.Errorf("holds %d bytes, limit %d", cap(l.line), limit)
		}
	})
}

type stepReader struct {
	r io.Reader
	n int
}

func (s *stepReader) Read(b []byte) (int, error) { return s.r.Read(b[:min(len(b), s.n)]) }

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	w, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	tail := openTail(t, path, 8)
	step := func(write string, want ...gotLine) {
		t.Helper()
		if _, err := w.WriteString(write); err != nil {
			t.Fatal(err)
		}
		var got []gotLine
		for {
			line, cut, total, err := tail.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, gotLine{string(line), cut, total})
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("after writing %q (-want +got)\n%s", write, d)
		}
	}
	step("")
	step("one\ntw", gotLine{"one", false, 3})
	step("")
	step("o", []gotLine(nil)...)
	step("\n", gotLine{"two", false, 3})
	step("0123456789", []gotLine(nil)...)
	step("abc\n\nx\nla", gotLine{"01234567", true, 13}, gotLine{"", false, 0}, gotLine{"x", false, 1})
	step("st")
	line, cut, total, ok := tail.Rest()
	if string(line) != "last" || cut || total != 4 || !ok {
		t.Errorf("Rest: %q %v %d %v", line, cut, total, ok)
	}
	if _, _, _, ok := tail.Rest(); ok {
		t.Error("Rest gave the same line twice")
	}
	if st, _ := w.Stat(); tail.Offset() != st.Size() {
		t.Errorf("Offset %d, file has %d", tail.Offset(), st.Size())
	}
	if err := w.Truncate(3); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := tail.Next(); !errors.Is(err, ErrShrunk) {
		t.Errorf("after truncation: %v, want ErrShrunk", err)
	}
}

// Everything that was written before done is closed arrives, the unfinished
// last line too.
func TestTailFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	w, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	tail := openTail(t, path, 1<<20)
	done := make(chan struct{})
	seen := make(chan string, 10)
	result := make(chan error, 1)
	go func() {
		result <- tail.Follow(context.Background(), done, time.Millisecond, func(line []byte, _ bool, _ int64) error {
			seen <- string(line)
			return nil
		})
	}()
	for _, part := range []string{"a", "\n", "bc\n", "d"} {
		if _, err := w.WriteString(part); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-seen + <-seen; got != "abc" {
		t.Errorf("lines %q, want a and bc", got)
	}
	if _, err := w.WriteString("e\nlast"); err != nil {
		t.Fatal(err)
	}
	close(done)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if got := <-seen + <-seen; got != "delast" {
		t.Errorf("at the end %q, want de and last", got)
	}
}

func TestTailFollowEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tail := openTail(t, path, 10)
	boom := errors.New("boom")
	if err := tail.Follow(t.Context(), nil, time.Millisecond, func([]byte, bool, int64) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("error of the callback: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := tail.Follow(ctx, nil, time.Millisecond, func([]byte, bool, int64) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func openTail(t *testing.T, path string, limit int) *Tail {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return NewTail(f, limit)
}

func TestTailPauses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	// A line that never ends must not keep the reader either.
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	tail := openTail(t, path, 10)
	for _, want := range []int64{1000, 2000, 102000} {
		tail.Allow(want - tail.Offset())
		if _, _, _, err := tail.Next(); !errors.Is(err, io.EOF) || !tail.Paused() || tail.Offset() != want {
			t.Fatalf("at %d of %d, paused %v: %v", tail.Offset(), want, tail.Paused(), err)
		}
	}
	tail.Allow(2 << 20)
	if _, _, _, err := tail.Next(); !errors.Is(err, io.EOF) || tail.Paused() {
		t.Errorf("at the end: paused %v, %v", tail.Paused(), err)
	}
	if line, cut, total, ok := tail.Rest(); string(line) != "xxxxxxxxxx" || !cut || total != 1<<20 || !ok {
		t.Errorf("rest: %q %v %d %v", line, cut, total, ok)
	}
}

// Whatever has been read and wherever the jump lands: what comes after it are
// the file's last lines, whole, and every byte is either read or counted.
func TestTailSkips(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	var all []string
	for i := range 25 {
		all = append(all, strings.Repeat(string(rune('a'+i%26)), i%7))
	}
	text := strings.Join(all, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for allow := range len(text) + 1 {
		for keep := range len(text) + 1 {
			tail := openTail(t, path, 100)
			got, lines := 0, 0
			read := func() {
				for {
					line, _, _, err := tail.Next()
					if err != nil {
						return
					}
					got += len(line) + 1
					lines++
				}
			}
			tail.Allow(int64(allow))
			read()
			before := lines
			skipped, err := tail.Skip(int64(keep))
			if err != nil {
				t.Fatal(err)
			}
			tail.Allow(1 << 20)
			for i := len(all); ; {
				line, _, _, err := tail.Next()
				if err != nil {
					break
				}
				if skipped > 0 && lines == before {
					// The first line after the jump tells where it landed.
					i = strings.Count(text[:got+int(skipped)], "\n")
				} else if skipped == 0 {
					i = lines
				}
				if string(line) != all[i] {
					t.Fatalf("read %d, keep %d: line %d is %q, want %q", allow, keep, i, line, all[i])
				}
				got += len(line) + 1
				lines++
				i++
			}
			if got+int(skipped) != len(text) {
				t.Fatalf("read %d, keep %d: %d read and %d skipped of %d", allow, keep, got, skipped, len(text))
			}
			tail.Close()
		}
	}
}
