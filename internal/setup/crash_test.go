package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
)

// sample is how many steps are tried in the short length; the long one tries all.
func sample(n int) int {
	if os.Getenv("REPRISE_LONG_TESTS") != "" {
		return 0
	}
	return n
}

// oneOf are the clients' own files from before: one that has some, and one that has none.
type oneOf struct {
	client string
	had    map[string]string
}

var crashed = []oneOf{
	{"gemini", map[string]string{"home/.gemini/settings.json": "{\n  // mine\n  \"theme\": \"dark\"\n}\n", "home/.gemini/GEMINI.md": "# Mine\n"}},
	{"gemini", nil},
	{"copilot", nil},
	{"codex", map[string]string{"home/.codex/config.toml": "model = \"x\" # mine\n"}},
	{"claude-code", map[string]string{"home/.claude.json": "{\"numStartups\": 3}\n"}},
}

func (o oneOf) name() string { return fmt.Sprintf("%s with %d", o.client, len(o.had)) }

func (o oneOf) prepare(t *testing.T, dir string) {
	t.Helper()
	for name, text := range o.had {
		put(t, filepath.Join(dir, name), text)
	}
	for _, d := range []string{"home", "work", "etc", "data"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func setupIn(dir string, disk durable.Disk) Setup {
	home, work := filepath.Join(dir, "home"), filepath.Join(dir, "work")
	env := config.Env{Vars: map[string]string{"HOME": home, "PATH": filepath.Join(dir, "none")}, GOOS: "linux", Dir: work, Now: time.Now}
	return Setup{Where: Where{Env: env, Dir: work, Root: work, Machine: filepath.Join(dir, "etc")},
		Paths: config.Paths{Data: filepath.Join(dir, "data")}, Now: func() time.Time { return time.Unix(1770000000, 0) }, Disk: disk}
}

func (o oneOf) all() All {
	return All{Request: Request{Client: o.client, Scope: User, Program: "/bin/reprise", Instructions: true}, HookProgram: "/bin/reprise-hook", Skill: "x", Commands: o.client == "gemini"}
}

// files are what lies below dir, but for the lock, which is never removed.
func files(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == filepath.Join(dir, "data", "clients", "lock") || p == filepath.Join(dir, "data", "clients") {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		text := ""
		if d.Type().IsRegular() {
			text = get(t, p)
		}
		fmt.Fprintf(&b, "%s: %q\n", rel, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// whole is what a setup that nobody disturbs makes of the files.
func (o oneOf) whole(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	o.prepare(t, dir)
	if _, err := setupIn(dir, durable.Disk{}).InstallAll(t.Context(), o.all()); err != nil {
		t.Fatal(err)
	}
	return o.seen(t, dir)
}

// seen is what of the files the client and a person see: all but reprise's notes.
func (o oneOf) seen(t *testing.T, dir string) string {
	t.Helper()
	var keep []string
	for line := range strings.Lines(files(t, dir)) {
		if !strings.HasPrefix(line, "data/clients/") {
			keep = append(keep, line)
		}
	}
	return strings.Join(keep, "")
}

// Killed at any step, a setup is gone on with by the next one as if nothing had been, and
// --remove takes out what it had made: no temporary file, copy or directory stays beside the
// client's files.
func TestSetupKilledAtEachStep(t *testing.T) {
	for _, o := range crashed {
		for _, first := range []string{"remove", "again"} {
			t.Run(o.name()+" "+first, func(t *testing.T) {
				durabletest.Scenario{
					Sample:  sample(5),
					Prepare: o.prepare,
					Act: func(disk durable.Disk, dir string) error {
						_, err := setupIn(dir, disk).InstallAll(t.Context(), o.all())
						return err
					},
					Check: func(t *testing.T, dir string, err error, step string) {
						s := setupIn(dir, durable.Disk{})
						if first == "again" {
							if _, err := s.InstallAll(t.Context(), o.all()); err != nil {
								t.Errorf("%s: again: %v", step, err)
							}
							if got, want := o.seen(t, dir), o.whole(t); got != want {
								t.Errorf("%s: made again there is\n%s\nnot\n%s", step, got, want)
							}
						}
						o.removed(t, s, dir, step)
					},
				}.CrashAtEachStep(t)
			})
		}
	}
}

// removed takes all out, and wants that everything is as it was before.
func (o oneOf) removed(t *testing.T, s Setup, dir, step string) {
	t.Helper()
	if _, err := s.RemoveAll(t.Context(), o.all()); err != nil {
		t.Errorf("%s: remove: %v", step, err)
	}
	fresh := t.TempDir()
	o.prepare(t, fresh)
	if got, want := files(t, dir), files(t, fresh); got != want {
		t.Errorf("%s: after it is taken out there is\n%s\nnot\n%s", step, got, want)
	}
}

// The same where it is the removal that was killed.
func TestRemovalKilledAtEachStep(t *testing.T) {
	for _, o := range crashed {
		for _, first := range []string{"remove", "again"} {
			t.Run(o.name()+" "+first, func(t *testing.T) {
				durabletest.Scenario{
					Sample: sample(5),
					Prepare: func(t *testing.T, dir string) {
						o.prepare(t, dir)
						if _, err := setupIn(dir, durable.Disk{}).InstallAll(t.Context(), o.all()); err != nil {
							t.Fatal(err)
						}
					},
					Act: func(disk durable.Disk, dir string) error {
						_, err := setupIn(dir, disk).RemoveAll(t.Context(), o.all())
						return err
					},
					Check: func(t *testing.T, dir string, err error, step string) {
						s := setupIn(dir, durable.Disk{})
						if first == "again" {
							if _, err := s.InstallAll(t.Context(), o.all()); err != nil {
								t.Errorf("%s: put in again: %v", step, err)
							}
							if got, want := o.seen(t, dir), o.whole(t); got != want {
								t.Errorf("%s: put in again there is\n%s\nnot\n%s", step, got, want)
							}
						}
						o.removed(t, s, dir, step)
					},
				}.CrashAtEachStep(t)
			})
		}
	}
}

// A second edit that was killed leaves the first one to be undone exactly, and no copy.
func TestSecondEditKilledAtEachStep(t *testing.T) {
	o := oneOf{"gemini", map[string]string{"home/.gemini/settings.json": "{\n  // mine\n  \"theme\": \"dark\"\n}\n"}}
	durabletest.Scenario{
		Sample: sample(5),
		Prepare: func(t *testing.T, dir string) {
			o.prepare(t, dir)
			s := setupIn(dir, durable.Disk{})
			if _, err := s.Install(t.Context(), o.all().Request); err != nil {
				t.Fatal(err)
			}
		},
		Act: func(disk durable.Disk, dir string) error {
			_, err := setupIn(dir, disk).InstallAll(t.Context(), o.all())
			return err
		},
		Check: func(t *testing.T, dir string, err error, step string) {
			o.removed(t, setupIn(dir, durable.Disk{}), dir, step)
		},
	}.CrashAtEachStep(t)
}

// A step that fails leaves no trace that the next setup or removal does not take away.
func TestSetupFailsAtEachStep(t *testing.T) {
	o := crashed[0]
	durabletest.Scenario{
		Sample:  sample(12),
		Prepare: o.prepare,
		Act: func(disk durable.Disk, dir string) error {
			_, err := setupIn(dir, disk).InstallAll(t.Context(), o.all())
			return err
		},
		Check: func(t *testing.T, dir string, err error, step string) {
			o.removed(t, setupIn(dir, durable.Disk{}), dir, step)
		},
	}.FailAtEachStep(t, errors.New("no space left on device"))
}
