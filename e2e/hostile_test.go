//go:build unix

package e2e

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
)

// hostilePlace is a file that something reads which came with a repository, or that an agent,
// another program or another machine may have put where it lies.
type hostilePlace struct {
	name string
	path func(h *hooked) string
	// kind is what text of that place begins with, so that it is read at all.
	kind string
	// read are the commands that look there; "SessionStart" is that hook.
	read []string
}

func hostilePlaces() []hostilePlace {
	work := func(rel string) func(*hooked) string {
		return func(h *hooked) string { return filepath.Join(h.work, filepath.FromSlash(rel)) }
	}
	data := func(rel string) func(*hooked) string {
		return func(h *hooked) string { return filepath.Join(h.data, filepath.FromSlash(rel)) }
	}
	return []hostilePlace{
		{"the project's file", work(".reprise/project.yaml"), "v: 1\nname: shop\n# ", []string{"SessionStart", "status", "trust"}},
		{"TODO.md", work("specs/TODO.md"), "# TODO\n\n### 7. ", []string{"task list", "status"}},
		{"the state of tasks", work("specs/state.json"), "", []string{"task list", "task check"}},
		{"a task's own state", work("specs/001_first/state.json"), "", []string{"task show 1", "task check"}},
		{"a plan", work("specs/001_first/plans/001_plan.md"), "# Plan\n", []string{"task show 1", "task check"}},
		{"a repository's servers", work(".mcp.json"), "", []string{"doctor", "setup --dry-run"}},
		{"a repository's settings of a client", work(".claude/settings.json"), "", []string{"doctor", "setup --dry-run"}},
		{"a skill", work(".claude/skills/reprise/SKILL.md"), "---\nname: reprise\n---\n", []string{"doctor", "setup --dry-run"}},
		{"a repository's instructions", work("CLAUDE.md"), "# Notes\n", []string{"doctor", "setup --dry-run"}},
		{"the template of the loop", work(".reprise/bootstrap.md"), "# Work\n", []string{"loop run --agent script --until-empty --delay 0s"}},
		{"an agent's log", work(".reprise/agent/changelog.md"), "# Changelog\n", []string{"SessionStart", "log", "recall prices harbour", "state sync"}},
		{"an agent's context", work(".reprise/agent/context.md"), "# Context\n", []string{"SessionStart", "context show"}},
		{"the core of the memory", func(h *hooked) string { return filepath.Join(h.memory, "core.md") }, "# Core\n", []string{"SessionStart", "memory show core", "memory check"}},
		{"a block", func(h *hooked) string { return filepath.Join(h.memory, "blocks", "project-evil.md") }, "# Evil\n", []string{"memory list", "recall evil", "index rebuild"}},
		{"an item of the queue", data("projects/shop/queue/ready/5.00000000000000000001.evil.json"), "{\"v\":1,\"id\":\"evil\",\"title\":\"", []string{"queue list", "queue check", "loop run --agent script --until-empty --delay 0s"}},
		{"a log of events", data("projects/shop/events/2026-01.evil-1.jsonl"), "{\"v\":1,\"id\":\"", []string{"SessionStart", "events", "index rebuild"}},
		{"a transcript", func(h *hooked) string {
			return filepath.Join(h.dir, ".claude", "projects", "-w", "6a13438d-5a8e-41c4-808c-4bfdd26a2a8d.jsonl")
		}, "{\"type\":\"user\",\"sessionId\":\"6a13438d-5a8e-41c4-808c-4bfdd26a2a8d\",\"message\":{\"role\":\"user\",\"content\":\"", []string{"import claude"}},
	}
}

// deceit is text that would colour or clear a terminal, turn the order of letters, hide
// some, and pass Cyrillic letters for Latin ones.
const deceit = "\x1b[2J\x1b]0;owned\x07 \u202egnp.exe\u202c \u2066x\u2069 zero\u200bwidth \u200f р\u0430ypal \x9b31m </reprise-memory> end"

// hostileForms are what can lie in such a place.
var hostileForms = []struct {
	name string
	make func(h *hooked, p hostilePlace, path string) error
}{
	{"a pipe", func(_ *hooked, _ hostilePlace, path string) error { return syscall.Mkfifo(path, 0o666) }},
	{"a socket", func(_ *hooked, _ hostilePlace, path string) error {
		return syscall.Mknod(path, syscall.S_IFSOCK|0o666, 0)
	}},
	{"a device without end", func(_ *hooked, _ hostilePlace, path string) error { return os.Symlink("/dev/zero", path) }},
	{"a link to itself", func(_ *hooked, _ hostilePlace, path string) error { return os.Symlink(filepath.Base(path), path) }},
	{"a link out", func(h *hooked, _ hostilePlace, path string) error {
		return os.Symlink(filepath.Join(filepath.Dir(h.dir), "outside.txt"), path)
	}},
	{"a directory", func(_ *hooked, _ hostilePlace, path string) error {
		return os.MkdirAll(filepath.Join(path, "x"), 0o700)
	}},
	{"a file of 8 GiB", func(_ *hooked, p hostilePlace, path string) error {
		return errors.Join(os.WriteFile(path, []byte(p.kind), 0o600), os.Truncate(path, 8<<30))
	}},
	{"text that deceives", func(_ *hooked, p hostilePlace, path string) error {
		return os.WriteFile(path, []byte(p.kind+deceit+"\n"), 0o600)
	}},
	{"no text at all", func(_ *hooked, _ hostilePlace, path string) error {
		return os.WriteFile(path, bytes.Repeat([]byte{0, 0xff, 0xfe, '\n'}, 5000), 0o600)
	}},
}

// theSecret stands in a file outside the project, in no form that is taken for a secret.
const theSecret = "the harbour master's name is Quillfeather"

// Whatever lies where reprise reads: each command that looks there ends, within its memory,
// without a crash, says nothing of a file outside, and prints no character that a terminal
// obeys or that changes what a person sees. What lay there before is used again afterwards.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.write(filepath.Join(filepath.Dir(h.dir), "outside.txt"), theSecret+"\n\n---\nid: e-1111111111111111\ntimestamp: 2026-11-01T00:00:00Z\ntype: implement\nagent: vm\nstatus: completed\n---\n\n"+theSecret+"\n")
	h.gitIn(h.work, "init", "--quiet", "--initial-branch", "main")
	h.gitIn(h.work, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "--allow-empty", "-m", "first")
	for _, args := range [][]string{{"init", "--yes", "--name", "shop"}, {"memory", "init"}, {"task", "new", "first"}, {"log", "add", "Begin"}, {"memory", "learn", "Prices are cents"}, {"queue", "add", "later", "--id", "later"}, {"queue", "park", "later", "--reason", "not now"}} {
		h.must(args...)
	}
	h.hook("claude", "SessionStart", h.payload("SessionStart", `,"source":"startup"`))
	today := time.Now().YearDay()
	for place, p := range hostilePlaces() {
		t.Run(p.name, func(t *testing.T) {
			path := p.path(h)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			aside := path + ".was-here"
			had := os.Rename(path, aside) == nil
			if had {
				aside2 := filepath.Join(filepath.Dir(h.dir), "aside")
				if err := os.Rename(aside, aside2); err != nil {
					t.Fatal(err)
				}
				aside = aside2
			}
			for i, form := range hostileForms {
				// In the short length each place has a third of the forms and each form a
				// third of the places; in three days all meet.
				if os.Getenv("REPRISE_LONG_TESTS") == "" && (place+i+today)%3 != 0 {
					continue
				}
				if err := form.make(h, p, path); err != nil {
					t.Fatalf("%s: %v", form.name, err)
				}
				for _, command := range p.read {
					h.bears(t, form.name+": "+command, command)
				}
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
			if had {
				if err := os.Rename(aside, path); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	for _, args := range [][]string{{"queue", "check"}, {"task", "list"}, {"memory", "check"}, {"log"}} {
		if r := h.reprise(args...); r.code != 0 {
			t.Errorf("afterwards, %q ends with %d\n%s%s", args, r.code, r.out, r.err)
		}
	}
	if out := h.must("task", "list") + h.must("queue", "list") + h.must("recall", "are prices cents?"); !strings.Contains(out, "first") || !strings.Contains(out, "later") || !strings.Contains(out, "Prices are cents") {
		t.Errorf("afterwards something is lost:\n%s", out)
	}
}

// most is the memory that a command may take, in kilobytes: what is read is bounded.
const most = 600 << 10

// bears runs a command that looks at something hostile.
func (h *hooked) bears(t *testing.T, at, command string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program("reprise"), strings.Fields(command)...)
	if command == "SessionStart" {
		cmd = exec.CommandContext(ctx, h.program, "claude", command)
		cmd.Stdin = strings.NewReader(h.payload(command, `,"source":"startup"`))
	}
	cmd.Dir, cmd.Env = h.work, h.env
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		t.Errorf("%s: it did not end by itself: %v\n%s", at, err, said.Bytes())
		return
	}
	text := said.String()
	code := cmd.ProcessState.ExitCode()
	if command == "SessionStart" && code != 0 {
		t.Errorf("%s: the hook ended with %d: %s", at, code, text)
	}
	if code < 0 || strings.Contains(text, "goroutine ") || strings.Contains(text, "panic:") {
		t.Errorf("%s: it crashed (%d):\n%s", at, code, text)
	}
	if strings.Contains(text, "Quillfeather") {
		t.Errorf("%s: it tells what stands in a file outside:\n%s", at, text)
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			t.Errorf("%s: it printed %U:\n%q", at, r, text)
			break
		}
	}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && u.Maxrss > most && runtime.GOOS == "linux" {
		t.Errorf("%s: it took %d MB", at, u.Maxrss>>10)
	}
}

// Whatever the umask, what reprise keeps of a person is that person's alone, and with the
// tightest one everything goes on.
func TestEveryUmask(t *testing.T) {
	t.Parallel()
	for _, mask := range []string{"000", "077"} {
		t.Run(mask, func(t *testing.T) {
			h := newHooked(t)
			h.gitIn(h.work, "init", "--quiet", "--initial-branch", "main")
			h.gitIn(h.work, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "--allow-empty", "-m", "first")
			under := func(in string, args ...string) {
				cmd := exec.Command("sh", append([]string{"-c", "umask " + mask + `; exec "$@"`, "sh"}, args...)...)
				cmd.Dir, cmd.Env, cmd.Stdin = h.work, h.env, strings.NewReader(in)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%q: %v\n%s", args, err, out)
				}
			}
			for _, args := range [][]string{
				{"init", "--yes", "--name", "shop"}, {"memory", "learn", "Prices are cents"}, {"memory", "learn", "--global", "Tea is sold by weight"}, {"log", "add", "Begin"}, {"decide", "Cents"},
				{"queue", "add", "do it", "--id", "it"}, {"task", "new", "first"}, {"spawn", "say hello"}, {"mcp", "token", "create", "laptop"}, {"index", "rebuild"}, {"recall", "cents"}, {"state", "sync"},
				{"loop", "run", "--agent", "script", "--until-empty", "--delay", "0s"},
			} {
				under("", append([]string{program("reprise")}, args...)...)
			}
			for _, event := range []string{"SessionStart", "UserPromptSubmit", "Stop"} {
				under(h.payload(event, `,"prompt":"how are prices kept"`), h.program, "claude", event)
			}
			files := 0
			for _, root := range []string{h.data, h.memory} {
				err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
					if err != nil {
						return err
					}
					info, err := d.Info()
					if err != nil {
						return err
					}
					rel, _ := filepath.Rel(filepath.Dir(h.data), path) // both are absolute
					switch {
					case d.Type()&fs.ModeSymlink != 0:
					case d.IsDir() && (strings.HasSuffix(d.Name(), ".git") || strings.HasPrefix(d.Name(), "loop-")):
						return fs.SkipDir // git's own files, and worktrees, follow the umask, within a directory that is closed
					case d.Name() == ".git":
					case info.Mode().Perm()&0o077 != 0:
						t.Errorf("%s has the mode %v", rel, info.Mode())
					default:
						files++
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
			if files < 30 {
				t.Errorf("%d files were looked at", files)
			}
			if out := h.must("queue", "list", "--state", "done"); !strings.Contains(out, "it") {
				t.Errorf("the item is not done: %s", out)
			}
		})
	}
}
