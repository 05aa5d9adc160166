package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"reprise/internal/config"
	"reprise/internal/memory"
	"reprise/internal/proc"
)

type fakeMemory struct {
	report memory.Report
	err    error
}

func (f fakeMemory) Check(context.Context) (memory.Report, error) { return f.report, f.err }

// newDoctor is a doctor of a machine on which all is well.
func newDoctor(t *testing.T) Doctor {
	t.Helper()
	s := newSetup(t)
	exe := filepath.Join(s.Dir, "reprise")
	put(t, exe, "")
	if err := os.Chmod(exe, 0o755); err != nil {
		t.Fatal(err)
	}
	return Doctor{
		Setup: s, Program: exe,
		Load:   func() (*config.Home, error) { return config.Open(s.Env, "") },
		Memory: fakeMemory{report: memory.Report{CoreBudget: 1000, IndexBudget: 800}},
		Orphans: func(context.Context) (map[string][]proc.ID, error) {
			return nil, nil
		},
		LookPath: func(name string) (string, error) {
			if name == "reprise" {
				return exe, nil
			}
			return "/bin/" + name, nil
		},
		Version: func(context.Context, string) (string, error) { return "1.2.3", nil },
		Secrets: func(text string) int { return strings.Count(text, "SECRET") },
	}
}

// What a check found is told before the next one is begun.
func TestDiagnoseTellsAtOnce(t *testing.T) {
	var order []string
	check := func(name string) Check {
		return Check{Name: name, Run: func(context.Context) []Finding {
			order = append(order, "run "+name)
			return one(OK, "", "fine")
		}}
	}
	Diagnose(t.Context(), []Check{check("a"), check("b")}, func(f []Finding) { order = append(order, "tell "+f[0].Check) })
	if want := "[run a tell a run b tell b]"; fmt.Sprint(order) != want {
		t.Errorf("got %v, want %s", order, want)
	}
}

func find(found []Finding, check, text string) *Finding {
	for i, f := range found {
		if f.Check == check && strings.Contains(f.Message, text) {
			return &found[i]
		}
	}
	return nil
}

type doctorCase struct {
	name    string
	prepare func(t *testing.T, d *Doctor)
	check   string
	status  Status
	message string
}

func machineCases() []doctorCase {
	return []doctorCase{
		{"all is well", func(t *testing.T, d *Doctor) {
			if _, err := d.Setup.Install(t.Context(), Request{Client: "codex", Program: d.Program}); err != nil {
				t.Fatal(err)
			}
		}, "mcp entries", OK, "codex"},
		{"data is a file", func(t *testing.T, d *Doctor) { put(t, d.Setup.Paths.Data, "") }, "paths", Fail, "is not a directory"},
		{"wrong settings", func(t *testing.T, d *Doctor) { put(t, d.Setup.Paths.ConfigFile, "a: 1\nb: 2\n") }, "settings", Fail, ":2:1: b"},
		{"one wrong setting", func(t *testing.T, d *Doctor) { put(t, d.Setup.Paths.ConfigFile, "a: 1\n") }, "settings", Fail, ":1:1: a"},
		{"broken project", func(t *testing.T, d *Doctor) { put(t, config.ProjectFile(d.Setup.Dir), "x") }, "project", Fail, "project.yaml"},
		{"a project", func(t *testing.T, d *Doctor) { put(t, config.ProjectFile(d.Setup.Dir), "v: 1\nname: p\n") }, "project", OK, "project p"},
		{"another reprise in PATH", func(_ *testing.T, d *Doctor) {
			d.LookPath = func(name string) (string, error) { return "/other/" + name, nil }
		}, "program", Warn, "another reprise"},
		{"not in PATH", func(_ *testing.T, d *Doctor) {
			d.LookPath = func(string) (string, error) { return "", errors.New("none") }
		}, "program", Warn, "not in PATH"},
		{"a small program is missing", func(*testing.T, *Doctor) {}, "small programs", Warn, "reprise-hook is not there"},
		{"all programs", func(t *testing.T, d *Doctor) {
			put(t, filepath.Join(filepath.Dir(d.Program), "reprise-hook"), "")
			put(t, filepath.Join(filepath.Dir(d.Program), "reprise-supervise"), "")
			put(t, filepath.Join(filepath.Dir(d.Program), "reprise-recall"), "")
		}, "small programs", OK, "beside it"},
		{"events wait", func(_ *testing.T, d *Doctor) {
			d.Waiting = func() (int, int, error) { return 3, 0, nil }
		}, "outbox", Info, "3 events wait"},
		{"events that cannot be logged", func(_ *testing.T, d *Doctor) {
			d.Waiting = func() (int, int, error) { return 3, 1, nil }
		}, "outbox", Warn, "1 events can never"},
		{"go run", func(_ *testing.T, d *Doctor) { d.Program = "/tmp/go-build1/b001/exe/reprise" }, "program", Info, "go run"},
		{"no git", func(_ *testing.T, d *Doctor) {
			d.LookPath = func(string) (string, error) { return "", errors.New("none") }
		}, "git", Warn, "git is not there"},
		{"no client", func(_ *testing.T, d *Doctor) {
			d.LookPath = func(string) (string, error) { return "", errors.New("none") }
		}, "clients", Warn, "no client was found"},
		{"client that hangs", func(_ *testing.T, d *Doctor) {
			d.Version = func(context.Context, string) (string, error) {
				return "", fmt.Errorf("run it: %w", context.DeadlineExceeded)
			}
		}, "clients", Warn, "did not answer --version within 15s"},
		{"client that fails", func(_ *testing.T, d *Doctor) {
			d.Version = func(context.Context, string) (string, error) { return "", errors.New("exit code 1") }
		}, "clients", Warn, "does not answer"},
		{"configured client is gone", func(t *testing.T, d *Doctor) {
			put(t, d.Setup.Paths.ConfigFile, "claude_cli: {path: /gone/claude}\n")
			look := d.LookPath
			d.LookPath = func(name string) (string, error) {
				if name == "/gone/claude" {
					return "", errors.New("none")
				}
				return look(name)
			}
		}, "clients", Fail, "/gone/claude"},
		{"memory is a file", func(t *testing.T, d *Doctor) { put(t, d.Setup.Paths.Memory(), "") }, "memory", Fail, "is not a directory"},
		{"memory is over its budget", func(t *testing.T, d *Doctor) {
			put(t, filepath.Join(d.Setup.Paths.Memory(), "core.md"), "")
			d.Memory = fakeMemory{report: memory.Report{CoreTokens: 2000, CoreBudget: 1000, Findings: []memory.Finding{{Level: "warning", File: "core.md", Problem: "too long", Remedy: "move some"}}}}
		}, "memory", Warn, "core.md: too long"},
		{"memory where temporary files lie", func(t *testing.T, d *Doctor) {
			d.Temp = filepath.Dir(d.Setup.Env.Vars["HOME"])
		}, "memory", Warn, "cannot make a file in"},
		{"memory behind a link to where temporary files lie", func(t *testing.T, d *Doctor) {
			there, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			data := d.Setup.Paths.Data
			if err := os.MkdirAll(filepath.Dir(data), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(there, data); err != nil {
				t.Skip(err)
			}
			d.Temp = there
		}, "memory", Warn, "cannot make a file in"},
		{"memory is damaged", func(t *testing.T, d *Doctor) {
			put(t, filepath.Join(d.Setup.Paths.Memory(), "core.md"), "")
			d.Memory = fakeMemory{report: memory.Report{Findings: []memory.Finding{{Level: memory.LevelError, File: "b.md", Problem: "broken"}}}}
		}, "memory", Fail, "b.md: broken"},
		{"log with losses", func(t *testing.T, d *Doctor) {
			put(t, d.Setup.Paths.LogFile(), "{\"ts\":\"x\",\"level\":\"warn\",\"msg\":\"log lines lost\",\"lines\":7}\nbroken\n")
		}, "log", Warn, "7 log lines"},
	}
}

func clientCases() []doctorCase {
	return []doctorCase{
		{"orphans", func(_ *testing.T, d *Doctor) {
			d.Orphans = func(context.Context) (map[string][]proc.ID, error) {
				return map[string][]proc.ID{"run-x": {{PID: 7}, {PID: 8}}}, nil
			}
		}, "runs", Fail, "run-x has ended and left processes: 7, 8"},
		{"a check that panics", func(_ *testing.T, d *Doctor) {
			d.Orphans = func(context.Context) (map[string][]proc.ID, error) { panic("boom") }
		}, "runs", Fail, "boom"},
		{"entry of a program that is gone", func(t *testing.T, d *Doctor) {
			put(t, filepath.Join(d.Setup.Env.Vars["HOME"], ".cursor", "mcp.json"), `{"mcpServers":{"reprise":{"command":"/gone/reprise"}}}`)
		}, "mcp entries", Fail, "/gone/reprise is not there"},
		{"entry of another program", func(t *testing.T, d *Doctor) {
			other := filepath.Join(d.Setup.Dir, "other")
			put(t, other, "")
			if err := os.Chmod(other, 0o755); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Setup.Install(t.Context(), Request{Client: "gemini", Program: other}); err != nil {
				t.Fatal(err)
			}
		}, "mcp entries", Warn, "other"},
		{"entry with settings that are gone", func(t *testing.T, d *Doctor) {
			if _, err := d.Setup.Install(t.Context(), Request{Client: "gemini", Program: d.Program, ConfigFile: "/gone.yaml"}); err != nil {
				t.Fatal(err)
			}
		}, "mcp entries", Fail, "/gone.yaml"},
		{"entry of a wrong type", func(t *testing.T, d *Doctor) {
			d.LookPath = func(string) (string, error) { return "", errors.New("none") }
			put(t, filepath.Join(d.Setup.Env.Vars["HOME"], ".cursor", "mcp.json"), `{"mcpServers":{"reprise":5}}`)
		}, "mcp entries", Fail, `its program "" is not there`},
		{"client settings that do not parse", func(t *testing.T, d *Doctor) {
			put(t, filepath.Join(d.Setup.Env.Vars["HOME"], ".cursor", "mcp.json"), `{`)
		}, "mcp entries", Warn, "mcp.json"},
		{"filesystem server without the memory", func(t *testing.T, d *Doctor) {
			if _, err := d.Setup.Install(t.Context(), Request{Client: "cursor", Program: d.Program, Filesystem: []string{d.Setup.Dir}}); err != nil {
				t.Fatal(err)
			}
		}, "filesystem server", Warn, "in none of its directories"},
		{"filesystem server with the memory", func(t *testing.T, d *Doctor) {
			if _, err := d.Setup.Install(t.Context(), Request{Client: "cursor", Program: d.Program, Filesystem: []string{d.Setup.Env.Vars["HOME"]}}); err != nil {
				t.Fatal(err)
			}
		}, "filesystem server", OK, "the memory is in one of them"},
		{"long instructions", func(t *testing.T, d *Doctor) {
			put(t, filepath.Join(d.Setup.Env.Vars["HOME"], ".claude", "CLAUDE.md"), strings.Repeat("word ", 500))
		}, "instructions", Warn, "about 625 tokens"},
		{"a credential in the instructions", func(t *testing.T, d *Doctor) {
			put(t, filepath.Join(d.Setup.Env.Vars["HOME"], ".codex", "AGENTS.md"), "SECRET")
		}, "instructions", Fail, "credentials"},
		{"broken marks", func(t *testing.T, d *Doctor) {
			put(t, filepath.Join(d.Setup.Dir, "AGENTS.md"), endMark)
		}, "instructions", Warn, "marks"},
	}
}

func TestDoctor(t *testing.T) {
	for _, tc := range append(machineCases(), clientCases()...) {
		t.Run(tc.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.Contains(tc.name, "gone") {
				t.Skip("paths of another system")
			}
			d := newDoctor(t)
			tc.prepare(t, &d)
			found := Diagnose(t.Context(), d.Checks(), nil)
			f := find(found, tc.check, tc.message)
			if f == nil || f.Status != tc.status {
				t.Fatalf("want %s %s %q in\n%+v", tc.check, tc.status, tc.message, found)
			}
			if (f.Status == Fail || f.Status == Warn) && f.Remedy == "" && tc.name != "a check that panics" && tc.name != "memory is damaged" {
				t.Errorf("no remedy: %+v", f)
			}
			if Worst(found) == OK && tc.status != OK {
				t.Errorf("worst is %s", Worst(found))
			}
			if strings.Contains(tc.name, "well") && Worst(found) == Fail {
				t.Errorf("something fails: %+v", found)
			}
		})
	}
}

// The doctor leaves nothing behind and needs no settings that load.
func TestDoctorWritesNothing(t *testing.T) {
	d := newDoctor(t)
	home := d.Setup.Env.Vars["HOME"]
	Diagnose(t.Context(), d.Checks(), nil)
	if entries, err := os.ReadDir(home); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	d.Load = func() (*config.Home, error) { return nil, errors.New("wrong") }
	d.Orphans, d.Memory = nil, nil
	for _, f := range Diagnose(t.Context(), d.Checks(), nil) {
		if strings.Contains(f.Message, "went wrong") {
			t.Errorf("%+v", f)
		}
	}
}
