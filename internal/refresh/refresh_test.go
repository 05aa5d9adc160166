package refresh_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/proc"
	"reprise/internal/refresh"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

const (
	old   = 30 * time.Hour
	young = 30 * time.Minute
	idA   = "11111111-2222-4333-8444-555555555555"
	idB   = "66666666-7777-4888-8999-aaaaaaaaaaaa"
)

// home is a fake home: paths below it with how old each is.
func home(t *testing.T, files map[string]time.Duration) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fill(t, dir, files)
	return dir
}

func fill(t *testing.T, dir string, files map[string]time.Duration) {
	t.Helper()
	for name, age := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("ten bytes\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(p, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
}

func options(t *testing.T, dir string) refresh.Options {
	t.Helper()
	places, err := refresh.Places(config.Env{Vars: map[string]string{"HOME": dir, "USERPROFILE": dir}, GOOS: runtime.GOOS})
	if err != nil {
		t.Fatal(err)
	}
	return refresh.Options{Places: places, Older: refresh.DefaultOlder, Now: func() time.Time { return now }}
}

// clean scans and cleans, and gives what is gone of the files.
func clean(t *testing.T, dir string, o refresh.Options, files map[string]time.Duration) (gone []string, r refresh.Report) {
	t.Helper()
	found, err := refresh.Scan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			t.Fatalf("looking removed %s", name)
		}
	}
	if r, err = refresh.Clean(t.Context(), o, found); err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name))); errors.Is(err, fs.ErrNotExist) {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	return gone, r
}

func TestWhatGoes(t *testing.T) {
	type ages = map[string]time.Duration
	for _, c := range []struct {
		name  string
		files ages
		set   func(o *refresh.Options, dir string)
		gone  []string
	}{
		{"old leavings of all four clients", ages{
			".claude/projects/-p/" + idA + ".jsonl": old, ".claude/debug/x.txt": old, ".claude/file-history/" + idA + "/f@v1": old,
			".claude/todos/a.json": old, ".claude/session-env/e": old, ".claude/telemetry/t.json": old, ".claude/shell-snapshots/s.sh": old, ".claude/cache/c": old,
			".codex/sessions/2026/11/01/rollout-" + idB + ".jsonl": old, ".codex/log/l.log": old,
			".gemini/tmp/p/chats/session-1.json": old, ".copilot/session-state/" + idA + "/events.jsonl": old, ".copilot/logs/x.log": old,
		}, nil, []string{
			".claude/cache/c", ".claude/debug/x.txt", ".claude/file-history/" + idA + "/f@v1", ".claude/projects/-p/" + idA + ".jsonl", ".claude/session-env/e",
			".claude/shell-snapshots/s.sh", ".claude/telemetry/t.json", ".claude/todos/a.json", ".codex/log/l.log", ".codex/sessions/2026/11/01/rollout-" + idB + ".jsonl",
			".copilot/logs/x.log", ".copilot/session-state/" + idA + "/events.jsonl", ".gemini/tmp/p/chats/session-1.json",
		}},
		{"nothing younger than is asked for", ages{".claude/debug/a": 7 * time.Hour, ".claude/debug/b": 9 * time.Hour}, nil, []string{".claude/debug/b"}},
		{"nothing younger than an hour, whatever is asked for", ages{".claude/debug/a": young, ".claude/debug/b": 61 * time.Minute},
			func(o *refresh.Options, _ string) { o.Older = time.Second }, []string{".claude/debug/b"}},
		{"protected names, where they may lie", ages{
			".claude/settings.json": old, ".claude/.credentials.json": old, ".claude/history.jsonl": old, ".claude/CLAUDE.md": old, ".claude/skills/x/SKILL.md": old,
			".claude/projects/-p/sessions-index.json": old, ".claude/projects/-p/memory/fact.md": old, ".claude/cache/settings.json": old, ".claude/debug/deep/.credentials.json": old,
			".codex/config.toml": old, ".codex/auth.json": old, ".codex/history.jsonl": old, ".gemini/settings.json": old, ".gemini/oauth_creds.json": old,
			".gemini/tmp/p/.project_root": old, ".copilot/config.json": old, ".copilot/mcp-config.json": old, ".copilot/session-state/session.sqlite": old,
		}, nil, nil},
		{"a session is as young as its youngest file", ages{
			".claude/projects/-p/" + idA + ".jsonl": old, ".claude/projects/-p/" + idA + "/subagents/agent-1.jsonl": young,
			".claude/projects/-p/" + idB + ".jsonl": old, ".claude/projects/-p/" + idB + "/tool-results/r.txt": old,
		}, nil, []string{".claude/projects/-p/" + idB + ".jsonl", ".claude/projects/-p/" + idB + "/tool-results/r.txt"}},
		{"what a live process may have written", ages{".claude/projects/-p/" + idA + ".jsonl": 10 * time.Hour, ".claude/projects/-p/" + idB + ".jsonl": 20 * time.Hour, ".codex/log/x": 10 * time.Hour},
			func(o *refresh.Options, _ string) {
				o.Live = []refresh.Live{{Client: "claude-code", Began: now.Add(-12 * time.Hour)}}
			}, []string{".claude/projects/-p/" + idB + ".jsonl", ".codex/log/x"}},
		{"a session that was taken up again and has written nothing yet", ages{".claude/projects/-p/" + idA + ".jsonl": old, ".claude/projects/-p/" + idB + ".jsonl": old},
			func(o *refresh.Options, _ string) {
				o.Live = []refresh.Live{{Client: "claude-code", Began: now.Add(-time.Minute), Words: "claude --resume " + idA}}
			}, []string{".claude/projects/-p/" + idB + ".jsonl"}},
		{"the project that a live process works in", ages{".claude/projects/-home-ann-app/" + idA + ".jsonl": old, ".claude/projects/-home-ann-other/" + idB + ".jsonl": old},
			func(o *refresh.Options, _ string) {
				o.Live = []refresh.Live{{Client: "claude-code", Began: now.Add(-time.Minute), Dir: "/home/ann/app"}}
			}, []string{".claude/projects/-home-ann-other/" + idB + ".jsonl"}},
		{"a process whose beginning is not known keeps all of its client", ages{".claude/debug/a": old, ".codex/log/x": old},
			func(o *refresh.Options, _ string) { o.Live = []refresh.Live{{Client: "claude-code"}} }, []string{".codex/log/x"}},
		{"sessions of runs", ages{".claude/projects/-p/" + idA + ".jsonl": old},
			func(o *refresh.Options, _ string) { o.Sessions = []string{idA} }, nil},
		{"versions of plugins that are installed", ages{
			".claude/plugins/cache/m/p/1.0.0/plugin.json": old, ".claude/plugins/cache/m/p/1.1.0/settings.json": old, ".claude/plugins/installed_plugins.json": young,
		}, func(o *refresh.Options, dir string) {
			text := `{"plugins":{"p@m":[{"installPath":"` + strings.ReplaceAll(filepath.Join(dir, ".claude", "plugins", "cache", "m", "p", "1.1.0"), `\`, `\\`) + `"}]}}`
			if err := os.WriteFile(filepath.Join(dir, ".claude", "plugins", "installed_plugins.json"), []byte(text), 0o644); err != nil {
				panic(err)
			}
		}, []string{".claude/plugins/cache/m/p/1.0.0/plugin.json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := home(t, c.files)
			o := options(t, dir)
			if c.set != nil {
				c.set(&o, dir)
			}
			gone, r := clean(t, dir, o, c.files)
			if !slices.Equal(gone, c.gone) {
				t.Errorf("gone:\n  %s\nwant:\n  %s\nkept: %+v", strings.Join(gone, "\n  "), strings.Join(c.gone, "\n  "), r.Kept)
			}
			if r.Files != len(c.gone) || r.Bytes != int64(10*len(c.gone)) || len(r.Problems) > 0 {
				t.Errorf("it says %d files, %d bytes, problems %q", r.Files, r.Bytes, r.Problems)
			}
			if _, err := os.Stat(filepath.Join(dir, ".claude", "projects", "-p")); len(c.gone) == 13 && !errors.Is(err, fs.ErrNotExist) {
				t.Error("an empty directory of a project is left")
			}
		})
	}
}

// Links lead wherever somebody wants: they are never followed, neither as what is
// removed nor on the way there.
func TestLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	files := map[string]time.Duration{"outside/precious": old, "outside/deep/precious": old, ".claude/debug/own": old, ".claude/skills/s/SKILL.md": old}
	dir := home(t, files)
	for from, to := range map[string]string{
		".claude/debug/out":       filepath.Join(dir, "outside"), // an entry
		".claude/telemetry":       filepath.Join(dir, "outside"), // a whole kind
		".claude/projects":        "skills",                      // within, to what is no leaving
		".codex/sessions/2026":    filepath.Join(dir, "outside"), // on the way
		".claude/file-history/up": "../..",                       // back up
		".gemini":                 filepath.Join(dir, ".claude"), // another client's: its own areas only
		".claude/cache/sub/link":  filepath.Join(dir, "outside"), // deep in what goes
	} {
		p := filepath.Join(dir, from)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, p); err != nil {
			t.Fatal(err)
		}
	}
	o := options(t, dir)
	// The links are of this moment; so that they count as old, so is the clock.
	o.Now = func() time.Time { return time.Now().Add(100 * time.Hour) }
	gone, r := clean(t, dir, o, files)
	if !slices.Equal(gone, []string{".claude/debug/own"}) {
		t.Errorf("gone: %q, problems %q", gone, r.Problems)
	}
	for _, gone := range []string{".claude/debug/out", ".claude/cache/sub"} {
		if _, err := os.Lstat(filepath.Join(dir, gone)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s, which is old, is left: %v", gone, err)
		}
	}
}

// What was looked at is looked at again when its turn comes.
func TestChangedMeanwhile(t *testing.T) {
	files := map[string]time.Duration{".claude/debug/a": old, ".claude/debug/b": old, ".claude/file-history/" + idA + "/f": old}
	dir := home(t, files)
	o := options(t, dir)
	found, err := refresh.Scan(t.Context(), o)
	if err != nil || len(found.Items) != 3 {
		t.Fatalf("%+v, %v", found, err)
	}
	fill(t, dir, map[string]time.Duration{".claude/debug/a": young, ".claude/file-history/" + idA + "/settings.json": old})
	if runtime.GOOS != "windows" {
		if err := os.Rename(filepath.Join(dir, ".claude", "file-history"), filepath.Join(dir, "moved")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(dir, "moved"), filepath.Join(dir, ".claude", "file-history")); err != nil {
			t.Fatal(err)
		}
	}
	r, err := refresh.Clean(t.Context(), o, found)
	if err != nil {
		t.Fatal(err)
	}
	if r.Files != 1 || filepath.Base(r.Items[0].Paths[0]) != "b" {
		t.Errorf("removed: %+v", r.Items)
	}
	if _, err := os.Stat(filepath.Join(dir, "moved", idA, "f")); runtime.GOOS != "windows" && err != nil {
		t.Errorf("through the link that came meanwhile: %v", err)
	}
}

// What may not be read or removed is said, and the rest goes.
func TestNotAllowed(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("nobody is refused here")
	}
	files := map[string]time.Duration{".claude/debug/a": old, ".claude/telemetry/b": old, ".claude/cache/shut/c": old}
	dir := home(t, files)
	for name, mode := range map[string]os.FileMode{"debug": 0o500, "cache/shut": 0} {
		p := filepath.Join(dir, ".claude", name)
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(p, 0o700) })
	}
	gone, r := clean(t, dir, options(t, dir), map[string]time.Duration{".claude/telemetry/b": old})
	if len(gone) != 1 || len(r.Problems) != 2 {
		t.Errorf("gone %q, problems %q", gone, r.Problems)
	}
}

// Only temporary files go of reprise's own, and none of a working tree.
func TestOwnTemporaryFiles(t *testing.T) {
	files := map[string]time.Duration{
		"data/.index.md.abcdefgh2345.tmp": old, "data/memory/.core.md.aaaaaaaaaaaa.tmp": young, "data/memory/core.md": old,
		"data/projects/p/workspaces/w/.x.aaaaaaaaaaaa.tmp": old, "data/memory/notes.tmp": old,
	}
	dir := home(t, files)
	// The form of the name is durable's; this asks it, so that the test cannot rot.
	var want []string
	for name, age := range files {
		if durable.IsTemp(filepath.Base(name)) && age == old && !strings.Contains(name, "workspaces") {
			want = append(want, name)
		}
	}
	if len(want) != 1 {
		t.Fatalf("of the names of this test durable makes %q", want)
	}
	o := options(t, dir)
	o.Places = refresh.OwnPlaces(config.Paths{Data: filepath.Join(dir, "data"), State: filepath.Join(dir, "state"), Cache: filepath.Join(dir, "data")})
	gone, r := clean(t, dir, o, files)
	if !slices.Equal(gone, want) || len(r.Problems) > 0 {
		t.Errorf("gone %q, want %q; problems %q", gone, want, r.Problems)
	}
}

// A kill at any step leaves each session whole or with its transcript, and doing it
// again removes the rest and nothing else.
func TestKilledAtEachStep(t *testing.T) {
	durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) {
			fill(t, dir, killed)
		},
		Act: func(disk durable.Disk, dir string) error {
			o, err := killedOptions(dir)
			if err != nil {
				return err
			}
			o.Disk = disk
			found, err := refresh.Scan(context.Background(), o)
			if err != nil {
				return err
			}
			r, err := refresh.Clean(context.Background(), o, found)
			if err == nil && len(r.Problems) > 0 {
				err = errors.New(strings.Join(r.Problems, "; "))
			}
			return err
		},
		Check: func(t *testing.T, dir string, _ error, _ string) {
			at := func(name string) bool {
				_, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
				return err == nil
			}
			if !at(".claude/projects/-p/"+idA+".jsonl") && at(".claude/projects/-p/"+idA+"/tool-results/r") {
				t.Error("the transcript went before what belongs to it")
			}
			o, err := killedOptions(dir)
			if err != nil {
				t.Fatal(err)
			}
			found, err := refresh.Scan(t.Context(), o)
			if err == nil {
				_, err = refresh.Clean(t.Context(), o, found)
			}
			if err != nil {
				t.Fatal(err)
			}
			for name := range killed {
				if stays := strings.HasSuffix(name, "settings.json") || strings.Contains(name, idB); at(name) != stays {
					t.Errorf("%s is there: %v", name, at(name))
				}
			}
		},
	}.CrashAtEachStep(t)
}

var killed = map[string]time.Duration{
	".claude/projects/-p/" + idA + ".jsonl": old, ".claude/projects/-p/" + idA + "/tool-results/r": old, ".claude/projects/-p/" + idB + ".jsonl": young,
	".claude/debug/a": old, ".claude/settings.json": old,
}

func killedOptions(dir string) (refresh.Options, error) {
	places, err := refresh.Places(config.Env{Vars: map[string]string{"HOME": dir, "USERPROFILE": dir}, GOOS: runtime.GOOS})
	return refresh.Options{Places: places, Older: refresh.DefaultOlder, Now: func() time.Time { return now }}, err
}

// Whose process it is, and which of them nobody owns.
func TestProcesses(t *testing.T) {
	entry := func(pid int, age time.Duration, args ...string) proc.Entry {
		return proc.Entry{ID: proc.ID{PID: pid, Start: 1}, Mine: true, Orphan: true, Began: now.Add(-age), Args: args}
	}
	table := []proc.Entry{
		entry(1, old, "/usr/local/bin/claude", "-p"),
		entry(2, old, "node", "--no-warnings", "/home/a/node_modules/@google/gemini-cli/bundle/gemini.js"),
		entry(3, old, `C:\tools\codex.exe`),
		entry(4, old, "/usr/bin/vim", "claude.md"),         // only an argument
		entry(5, young, "claude"),                          // young
		entry(6, old, "/usr/bin/claude-wrapper"),           // another name
		entry(7, old, "node.exe"),                          // Windows tells no more
		entry(8, old, "grep", "-r", "/home/a/.claude/bin"), // only an argument
		entry(9, old, "/home/a/.local/share/claude/versions/2.1"),
		entry(10, old, "claude"), entry(11, old, "claude"), entry(12, old, "claude"), entry(13, old, "claude"),
	}
	table[9].Terminal = true
	table[10].Orphan = false
	table[11].RunID = "run-x"
	table[12].Mine = false
	live := refresh.Sessions(table)
	var got []int
	for _, l := range live {
		got = append(got, l.ID.PID)
	}
	if want := []int{1, 2, 3, 5, 7, 9, 10, 11, 12}; !slices.Equal(got, want) {
		t.Errorf("clients: %v, want %v", got, want)
	}
	got = nil
	for _, l := range refresh.Orphans(live, now) {
		got = append(got, l.ID.PID)
	}
	if want := []int{1, 2, 3, 9}; !slices.Equal(got, want) {
		t.Errorf("orphans: %v, want %v", got, want)
	}
}
