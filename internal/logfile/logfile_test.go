package logfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func clock() time.Time {
	return time.Date(2026, 11, 28, 4, 5, 6, 7_800_000, time.FixedZone("CET", 3600))
}

func open(t *testing.T, opts Options) (*slog.Logger, *Handler) {
	t.Helper()
	if opts.File == "" {
		opts.File = filepath.Join(t.TempDir(), "log", "reprise.log")
	}
	opts.Now = clock
	h, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return slog.New(h), h
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

type valuer struct{ panics bool }

func (v valuer) LogValue() slog.Value {
	if v.panics {
		panic("no")
	}
	return slog.GroupValue(slog.Int("a", 1), slog.Int("b", 2))
}

type badJSON struct{}

func (badJSON) MarshalJSON() ([]byte, error) { panic("no") }

func TestLine(t *testing.T) {
	const head = `{"ts":"2026-11-28T03:05:06.007Z","level":"info","msg":"m"`
	for _, tc := range []struct {
		name string
		log  func(*slog.Logger)
		want string
	}{
		{"no fields", func(l *slog.Logger) { l.Info("m") }, head + `}`},
		{"fields in order", func(l *slog.Logger) { l.Info("m", "job_id", "job-a1b2c3", "n", 3, "ok", true, "f", 1.5) }, head + `,"job_id":"job-a1b2c3","n":3,"ok":true,"f":1.5}`},
		{"level debug", func(l *slog.Logger) { l.Debug("m") }, strings.Replace(head, "info", "debug", 1) + `}`},
		{"level warn", func(l *slog.Logger) { l.Warn("m") }, strings.Replace(head, "info", "warn", 1) + `}`},
		{"level error", func(l *slog.Logger) { l.Error("m") }, strings.Replace(head, "info", "error", 1) + `}`},
		{"in between levels", func(l *slog.Logger) { l.Log(t.Context(), slog.LevelInfo+2, "m") }, head + `}`},
		{"duration in seconds", func(l *slog.Logger) { l.Info("m", "elapsed", 1500*time.Millisecond) }, head + `,"elapsed":1.5}`},
		{"time in UTC", func(l *slog.Logger) { l.Info("m", "at", clock()) }, head + `,"at":"2026-11-28T03:05:06.007Z"}`},
		{"error", func(l *slog.Logger) { l.Info("m", "error", errors.New("disk \"full\"")) }, head + `,"error":"disk \"full\""}`},
		{"reserved names", func(l *slog.Logger) { l.Info("m", "msg", 1, "ts", 2, "level", 3) }, head + `,"msg_":1,"ts_":2,"level_":3}`},
		{"a name twice", func(l *slog.Logger) { l.Info("m", "a", 1, "b", 2, "a", 3) }, head + `,"a":3,"b":2}`},
		{"group", func(l *slog.Logger) { l.Info("m", slog.Group("g", "a", 1, slog.Group("h", "b", 2))) }, head + `,"g":{"a":1,"h":{"b":2}}}`},
		{"empty group", func(l *slog.Logger) { l.Info("m", slog.Group("g")) }, head + `}`},
		{"with", func(l *slog.Logger) { l.With("a", 1).WithGroup("g").With("b", 2).Info("m", "c", 3) }, head + `,"a":1,"g":{"b":2,"c":3}}`},
		{"valuer", func(l *slog.Logger) { l.Info("m", "v", valuer{}) }, head + `,"v":{"a":1,"b":2}}`},
		{"marshaler that panics", func(l *slog.Logger) { l.Info("m", "v", badJSON{}) }, head + `,"v":"!PANIC: no"}`},
		{"no JSON", func(l *slog.Logger) { l.Info("m", "c", make(chan int) == nil, "f", func() {} == nil) }, head + `,"c":false,"f":false}`},
		{"line breaks and HTML", func(l *slog.Logger) { l.Info("m", "a", "x\n<b>&") }, head + `,"a":"x\n<b>&"}`},
		{"not UTF-8", func(l *slog.Logger) { l.Info("m", "a", "x\xffy") }, head + `,"a":"x` + "\ufffd" + `y"}`},
		{"odd arguments", func(l *slog.Logger) { l.Info("m", []any{"a"}...) }, head + `,"!BADKEY":"a"}`},
		{"nil", func(l *slog.Logger) { l.Info("m", "a", nil, "e", error(nil)) }, head + `,"a":null,"e":null}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			log, h := open(t, Options{Level: "debug"})
			tc.log(log)
			got := read(t, h.opts.File)
			if diff := cmp.Diff(strings.Replace(tc.want, "\ufffd", `\ufffd`, 1)+"\n", got); diff != "" {
				t.Error(diff)
			}
			if !json.Valid([]byte(got)) {
				t.Errorf("not JSON: %s", got)
			}
		})
	}
}

func TestValuerThatPanics(t *testing.T) {
	log, h := open(t, Options{})
	log.Info("m", "v", valuer{true}, "after", 1)
	if got := read(t, h.opts.File); !strings.Contains(got, `"v":"LogValue panicked`) || !strings.Contains(got, `"after":1`) {
		t.Errorf("got %s", got)
	}
}

func TestLongTextIsCut(t *testing.T) {
	log, h := open(t, Options{})
	log.Info("m", "a", strings.Repeat("ä", maxText))
	log.Info("m", "many", strings.Split(strings.Repeat("x ", 200_000), " "))
	many := make([]any, 0, 64)
	for i := range 32 {
		many = append(many, fmt.Sprint("k", i), strings.Repeat("y", maxText))
	}
	log.Info("m", many...)
	for line := range strings.Lines(read(t, h.opts.File)) {
		if len(line) > maxLine || !json.Valid([]byte(line)) || !strings.Contains(line, "truncated") {
			t.Errorf("line of %d bytes: %.100s…", len(line), line)
		}
	}
}

func TestRedact(t *testing.T) {
	log, h := open(t, Options{Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }})
	log.Info("pass hunter2", "a", "hunter2", "e", errors.New("bad hunter2"), "m", map[string]string{"k": "hunter2"})
	if got := read(t, h.opts.File); strings.Contains(got, "hunter2") || strings.Count(got, "***") != 4 {
		t.Errorf("got %s", got)
	}
}

func TestLevelAndLaziness(t *testing.T) {
	log, h := open(t, Options{Level: "warn"})
	log.Info("below")
	if _, err := os.Stat(filepath.Dir(h.opts.File)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was made before the first line: %v", err)
	}
	log.Warn("one")
	if err := h.SetLevel("debug"); err != nil {
		t.Fatal(err)
	}
	log.With("a", 1).Debug("two")
	if err := h.SetLevel("loud"); err == nil {
		t.Error("SetLevel took a wrong name")
	}
	if got := read(t, h.opts.File); strings.Count(got, "\n") != 2 {
		t.Errorf("got %s", got)
	}
	if info, err := os.Stat(h.opts.File); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	h.Close()
	log.Error("after the end")
	if got := read(t, h.opts.File); strings.Count(got, "\n") != 2 {
		t.Errorf("a line came after Close: %s", got)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, opts := range []Options{{File: "relative.log", Now: clock}, {File: "/x", Level: "loud", Now: clock}, {File: "/x"}, {Now: clock}} {
		if _, err := New(opts); err == nil {
			t.Errorf("New took %+v", opts)
		}
	}
}

func TestRotation(t *testing.T) {
	log, h := open(t, Options{MaxBackups: 2, maxBytes: 300})
	for _, i := range []int{2, 3, 5} { // left by a setting with more backups
		if err := os.MkdirAll(filepath.Dir(h.opts.File), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(fmt.Sprintf("%s.%d", h.opts.File, i), []byte("old\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		log.Info("m", "i", i)
	}
	var all []string
	for _, name := range []string{".2", ".1", ""} {
		text := read(t, h.opts.File+name)
		if len(text) > 300 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
		all = append(all, strings.Split(strings.TrimSpace(text), "\n")...)
	}
	if _, err := os.Stat(h.opts.File + ".3"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a third backup is there: %v", err)
	}
	for i, line := range all {
		if want := fmt.Sprintf(`"i":%d}`, 20-len(all)+i); !strings.HasSuffix(line, want) {
			t.Errorf("line %d is %s, want …%s", i, line, want)
		}
	}
	if n, err := h.Failures(); n != 0 || err != nil {
		t.Errorf("%d failures: %v", n, err)
	}
}

func TestRotationWithoutBackups(t *testing.T) {
	log, h := open(t, Options{maxBytes: 200})
	for range 10 {
		log.Info("m")
	}
	entries, err := os.ReadDir(filepath.Dir(h.opts.File))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "reprise.log" && e.Name() != "reprise.log.lock" {
			t.Errorf("left: %s", e.Name())
		}
	}
}

func TestTornLineIsClosed(t *testing.T) {
	log, h := open(t, Options{})
	log.Info("one")
	f, err := os.OpenFile(h.opts.File, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"ts":"torn`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	log.Info("two")
	if h, err := Check(h.opts.File); err != nil || h.Lines != 3 || h.Bad != 1 {
		t.Errorf("health %+v, %v: want 3 lines, 1 bad", h, err)
	}
}

// A log that cannot be written must not fail the program, and must say later
// that lines are missing.
func TestFailureIsCountedAndTold(t *testing.T) {
	dir := t.TempDir()
	blocker := filepath.Join(dir, "log")
	if err := os.WriteFile(blocker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	log, h := open(t, Options{File: filepath.Join(blocker, "reprise.log")})
	log.Info("lost 1")
	log.Info("lost 2")
	if n, err := h.Failures(); n != 2 || err == nil {
		t.Errorf("failures %d, %v: want 2 and a reason", n, err)
	}
	if err := os.Remove(blocker); err != nil {
		t.Fatal(err)
	}
	log.Info("kept")
	got := read(t, h.opts.File)
	if !strings.Contains(got, `"level":"warn","msg":"log lines lost","lines":2`) || !strings.Contains(got, "kept") {
		t.Errorf("got %s", got)
	}
	health, err := Check(h.opts.File)
	if err != nil || health.Lost != 2 || health.Bad != 0 || health.Lines != 2 {
		t.Errorf("health %+v, %v", health, err)
	}
}

func TestNotARegularFileIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "precious")
	if err := os.WriteFile(target, []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "reprise.log")
	if err := os.Symlink(target, file); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	log, h := open(t, Options{File: file})
	log.Info("x")
	if n, _ := h.Failures(); n != 1 || read(t, target) != "keep" {
		t.Errorf("failures %d, target %q", n, read(t, target))
	}
}

func TestCheckOfNothing(t *testing.T) {
	if h, err := Check(filepath.Join(t.TempDir(), "none")); err != nil || h.Exists {
		t.Errorf("%+v, %v", h, err)
	}
	if _, err := Check(t.TempDir()); err == nil {
		t.Error("a directory is no log")
	}
}

const childVar = "LOGFILE_TEST_CHILD"

func TestMain(m *testing.M) {
	if file := os.Getenv(childVar); file != "" {
		h, err := New(Options{File: file, MaxBackups: 100, Now: clock, maxBytes: 20_000})
		if err != nil {
			panic(err)
		}
		log := slog.New(h).With("pid", os.Getpid())
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 50 {
					log.Info("from a child", "g", g, "i", i, "pad", strings.Repeat("p", i*3))
				}
			})
		}
		wg.Wait()
		if n, err := h.Failures(); n > 0 {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Several processes write and rotate at once: every line is there, once, whole.
func TestProcesses(t *testing.T) {
	const procs = 4
	file := filepath.Join(t.TempDir(), "log", "reprise.log")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range procs {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), childVar+"="+file)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	files, err := filepath.Glob(file + "*")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	rotated := 0
	for _, f := range files {
		if strings.HasSuffix(f, ".lock") {
			continue
		}
		rotated++
		data := []byte(read(t, f))
		if len(data) > 20_000 {
			t.Errorf("%s has %d bytes", f, len(data))
		}
		for line := range bytes.Lines(data) {
			var l struct {
				PID  int
				G, I int
				Pad  string
			}
			if err := json.Unmarshal(line, &l); err != nil || len(l.Pad) != l.I*3 {
				t.Fatalf("%s: %v in %s", f, err, line)
			}
			seen[fmt.Sprint(l.PID, l.G, l.I)]++
		}
	}
	if len(seen) != procs*4*50 {
		t.Errorf("%d different lines, want %d", len(seen), procs*4*50)
	}
	for k, n := range seen {
		if n != 1 {
			t.Errorf("line %s is there %d times", k, n)
		}
	}
	if rotated < 4 {
		t.Errorf("only %d files: nothing was rotated", rotated)
	}
}

func BenchmarkLine(b *testing.B) {
	h, err := New(Options{File: filepath.Join(b.TempDir(), "reprise.log"), Now: clock})
	if err != nil {
		b.Fatal(err)
	}
	log := slog.New(h)
	for b.Loop() {
		log.Info("tool call received", "tool", "spawn_agent", "task", "do something", "elapsed", time.Second)
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reprise.log")
	if lines, err := Tail(path, 3, func(string) bool { return true }); err != nil || len(lines) != 0 {
		t.Errorf("no log: %v, %v", lines, err)
	}
	text := `{"ts":"2026-01-02T03:04:05Z","level":"warn","msg":"first"}
{"ts":"2026-01-02T03:04:06Z","level":"info","msg":"told"}
no json
{"ts":"2026-01-02T03:04:07Z","level":"error","msg":"second"}
{"ts":"2026-01-02T03:04:08Z","level":"error","msg":"third"`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lines, err := Tail(path, 2, func(level string) bool { return level != "info" })
	if err != nil || len(lines) != 2 {
		t.Fatalf("got %v, %v", lines, err)
	}
	if l := lines[0]; l.Msg != "second" || l.Time != "2026-01-02T03:04:07Z" || l.Level != "error" {
		t.Errorf("the last line but one: %+v", l)
	}
	if l := lines[1]; l.Level != "" || !strings.HasSuffix(l.Text, `"third"`) {
		t.Errorf("half a line is not kept as it is: %+v", l)
	}
	if lines, err := Tail(path, -1, func(string) bool { return true }); err != nil || len(lines) != 0 {
		t.Errorf("fewer than none: %v, %v", lines, err)
	}
}
