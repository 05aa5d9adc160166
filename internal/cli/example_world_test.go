//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"reprise/internal/cli"
	"reprise/internal/config"
)

// exampleWorld is a project that has what examples speak of: tasks, work items, runs,
// entries, workspaces. It is made once and put back, whole, before each use.
type exampleWorld struct {
	root, kept string                 // the world, and the copy of it
	was        map[string]fs.FileInfo // what the copy has, by its path in the world
	vars       map[string]string
	program    string      // that the world's commands are told to be
	looping    *os.Process // a loop that was started for an example
}

var runID = regexp.MustCompile(`run-\w+`)

// exampleSetting is how the world is made, as lines of a shell.
var exampleSetting = []string{
	`mkdir -p $HOME/.config/reprise $HOME/.codex $HOME/notes && touch $HOME/.codex/history.jsonl`,
	`printf 'sub_agent:\n  agent: script\n' > $HOME/.config/reprise/config.yaml`,
	`git config --global user.name Ann && git config --global user.email ann@example.org && git config --global init.defaultBranch main`,
	`git init --quiet && mkdir -p internal/login sub && echo 'package login' > internal/login/login.go && echo node_modules/ > .gitignore`,
	`reprise init --yes --name shop`,
	`printf 'v: 1\nname: shop\nverify:\n  profiles:\n    quick:\n      - name: test\n        run: "true"\n    standard:\n      - name: test\n        run: "true"\n' > .reprise/project.yaml`,
	`git add --all && git commit --quiet -m Shop && git commit --quiet --allow-empty -m "The login"`,
	`reprise memory learn "billing is 5432"`,
	`reprise memory learn "The staging port is 6543"`,
	`reprise memory learn --global "Run the linter before a commit"`,
	`reprise state init --agent tidy && reprise decide "Use cookies" && reprise log add "Made the form" && reprise log tidy`,
	`reprise queue add "Fix the login" --id login && reprise queue add "Write its tests" --id tests --depends-on login`,
	`reprise queue add "Write the documents" --id docs && reprise queue park docs`,
	`reprise queue add "Deploy" --id deploy && reprise queue claim deploy --lease 1h && reprise queue fail deploy@1 --permanent`,
	`mkdir specs && for n in 3 12 13 14 15; do printf '### %s. Task %s\n\n- **Status**: [NOT STARTED]\n\n' $n $n; done > specs/TODO.md && reprise task check --fix`,
	`reprise task abandon 15 && reprise task research 14 && reprise task plan 14`,
	`reprise spawn "Say hello"`,
	`reprise verify list`,
	`reprise workspace create billing && reprise workspace create docs && echo text > ../shop.workspaces/docs/new.txt && reprise workspace remove docs --yes`,
	`git add --all && git commit --quiet -m "What there is"`,
}

// exampleIDs stand in examples for ids of this world: how each is found.
var exampleIDs = map[string]struct{ line, pattern string }{
	"run-k3v9x2m7qa":         {"reprise runs list", `run-\w+`},
	"run-w4n8t6c2ye":         {"reprise runs list --status running", `run-\w+`},
	"e-3f9a2c0d51b7e684":     {"reprise recall --json 'billing is 5432'", `e-[0-9a-f]{16}`},
	"e-3f9a2c":               {"reprise recall --json 'billing is 5432'", `e-[0-9a-f]{16}`},
	"e-7c41d09be2a3f856":     {"reprise events list --json --all-projects --type memory.promoted", `e-[0-9a-f]{16}`},
	"e-6b18a7f3c95d0e24":     {"reprise handoff list", `e-[0-9a-f]{16}`},
	"e-3f9a2c0d":             {"reprise handoff list", `e-[0-9a-f]{16}`},
	"9a4e71d3":               {"reprise events list --limit 1", `^[0-9a-f]{8}`},
	"qa-51c0ffee":            {"reprise qa list", `qa-[0-9a-f]+`},
	"0a1b2c3d":               {"reprise guard pending", `^\S{8}`},
	"sess_1764374400_a1b2c3": {"reprise task show 12 --json", `sess_\w+`},
}

func newExampleWorld(t *testing.T) *exampleWorld {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &exampleWorld{root: filepath.Join(dir, "world"), kept: filepath.Join(dir, "kept")}
	for _, d := range []string{"world/home", "world/shop", "bin"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// The hook program stands beside this one, as where both were installed.
	for _, name := range []string{"reprise", "reprise-hook"} {
		if err := linkSelf(filepath.Join(dir, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	w.begin()
	for _, line := range exampleSetting {
		if out, err := w.line(t, line); err != nil {
			t.Fatalf("making the world of examples: %s: %v\n%s", line, err, out)
		}
	}
	if err := copyTree(w.root, w.kept, nil); err != nil {
		t.Fatal(err)
	}
	w.was = map[string]fs.FileInfo{}
	err = filepath.WalkDir(w.kept, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		w.was[w.root+strings.TrimPrefix(path, w.kept)] = info
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *exampleWorld) begin() {
	w.program = filepath.Join(filepath.Dir(w.root), "bin", "reprise")
	w.vars = map[string]string{
		"HOME": filepath.Join(w.root, "home"), "PWD": filepath.Join(w.root, "shop"), "NO_COLOR": "1", "LANG": "C.UTF-8", "TMPDIR": os.TempDir(),
		"PATH": filepath.Join(filepath.Dir(w.root), "bin") + string(os.PathListSeparator) + os.Getenv("PATH"), "EDITOR": "true", "SHELL": "/bin/true",
	}
}

// reset puts everything back: what is not as it was is copied again, and what is new
// is removed.
func (w *exampleWorld) reset(t *testing.T) {
	t.Helper()
	var gone []string
	there := map[string]bool{}
	err := filepath.WalkDir(w.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		was := w.was[path]
		now, err := d.Info()
		if was != nil && err == nil && was.Mode() == now.Mode() && (d.IsDir() || was.Size() == now.Size() && was.ModTime().Equal(now.ModTime())) {
			there[path] = true
			return nil
		}
		gone = append(gone, path)
		if d.IsDir() {
			return filepath.SkipDir
		}
		return nil
	})
	for _, path := range gone {
		if e := os.RemoveAll(path); e != nil {
			err = e
		}
	}
	if err == nil {
		err = copyTree(w.kept, w.root, there)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.begin()
}

// copyTree copies what is not there yet.
func copyTree(from, to string, there map[string]bool) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if there[target] {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return os.MkdirAll(target, info.Mode().Perm())
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, data, info.Mode().Perm()); err != nil {
			return err
		}
		return os.Chtimes(target, info.ModTime(), info.ModTime())
	})
}

func (w *exampleWorld) environ() []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(w.vars)) {
		list = append(list, name+"="+w.vars[name])
	}
	return list
}

// line runs a line: in this process where it is one plain call of reprise, which is
// quicker, and else by a shell.
func (w *exampleWorld) line(t *testing.T, line string) (string, error) {
	t.Helper()
	if args, ok := plainCall(line); ok {
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		typed := &typedWriter{Writer: &out, args: args}
		code := w.main(ctx, args, typed)
		if typed.differs != "" {
			t.Error(typed.differs)
		}
		if code != 0 {
			return out.String(), fmt.Errorf("exit code %d", code)
		}
		return out.String(), nil
	}
	cmd, cancel := w.shell(t, line)
	defer cancel()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (w *exampleWorld) main(ctx context.Context, args []string, out io.Writer) int {
	environ := w.environ()
	env := config.Env{Vars: config.ParseVars(environ, "linux"), Dir: w.vars["PWD"], GOOS: "linux", Now: time.Now}
	return cli.Main(ctx, args, &cli.App{
		In: strings.NewReader(""), Out: out, Err: out, Env: env, Environ: environ, Program: w.program, Hostname: "machine", PID: os.Getpid(), Guest: true,
	})
}

// shell is a line for bash, or a document's, in a process group of its own that five minutes
// end: the longest takes four seconds, and more than a minute on a very busy machine.
func (w *exampleWorld) shell(t *testing.T, line string) (*exec.Cmd, func()) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	cmd := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", line)
	cmd.Dir, cmd.Env = w.vars["PWD"], w.environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd, cancel
}

// plainCall are the arguments of a line that does nothing but call reprise, with words
// that a shell would leave as they are.
func plainCall(line string) ([]string, bool) {
	file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) != 1 || len(file.Stmts[0].Redirs) > 0 || file.Stmts[0].Background || file.Stmts[0].Negated {
		return nil, false
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) == 0 || call.Args[0].Lit() != "reprise" {
		return nil, false
	}
	args := []string{} // of none at all, nil would be those of the test
	for _, word := range call.Args[1:] {
		var b strings.Builder
		for _, part := range word.Parts {
			switch p := part.(type) {
			case *syntax.Lit:
				if strings.ContainsAny(p.Value, `~*?[\`) {
					return nil, false
				}
				b.WriteString(p.Value)
			case *syntax.SglQuoted:
				b.WriteString(p.Value)
			case *syntax.DblQuoted:
				for _, in := range p.Parts {
					lit, ok := in.(*syntax.Lit)
					if !ok || strings.Contains(lit.Value, `\`) {
						return nil, false
					}
					b.WriteString(lit.Value)
				}
			default:
				return nil, false
			}
		}
		args = append(args, b.String())
	}
	return args, true
}

// named puts this world's ids in the place of those that stand in examples. The longest
// first: one is the beginning of another.
func (w *exampleWorld) named(t *testing.T, text string) string {
	t.Helper()
	ids := slices.SortedFunc(maps.Keys(exampleIDs), func(a, b string) int { return len(b) - len(a) })
	for _, id := range ids {
		if !strings.Contains(text, id) {
			continue
		}
		out, err := w.line(t, exampleIDs[id].line)
		found := regexp.MustCompile("(?m)" + exampleIDs[id].pattern).FindString(out)
		if found == "" {
			t.Fatalf("what %s stands for was not found: %s: %v\n%s", id, exampleIDs[id].line, err, out)
		}
		text = strings.ReplaceAll(text, id, found)
	}
	return text
}

// until runs a call of reprise that goes on until Ctrl-C, and presses that when it has
// printed what is waited for.
func (w *exampleWorld) until(t *testing.T, line, want string) (string, error) {
	t.Helper()
	cmd, cancel := w.shell(t, line)
	defer cancel()
	seen := &watched{want: want, done: func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }}
	cmd.Stdout, cmd.Stderr = seen, seen
	err := cmd.Run()
	if !seen.was {
		return seen.b.String(), fmt.Errorf("it ended (%v) without having printed %q", err, want)
	}
	return seen.b.String(), nil
}

// watched calls done once when what was written holds want. Both streams are written by
// one copy at a time: exec gives equal writers one pipe.
type watched struct {
	b    bytes.Buffer
	want string
	was  bool
	done func()
}

func (w *watched) Write(p []byte) (int, error) {
	w.b.Write(p)
	if !w.was && strings.Contains(w.b.String(), w.want) {
		w.was = true
		w.done()
	}
	return len(p), nil
}
