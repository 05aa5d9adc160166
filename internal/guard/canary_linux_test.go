package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// sandbox runs what stands after the directory $1 where it can write into that
// directory only, reaches no network, sees no other process and has no rights
// beyond its own: the guard's verdicts are about to be tried out.
const sandbox = `dir=$1; shift
mount --make-rprivate / && mount --bind "$dir" "$dir" || exit 97
while read -r _ _ _ _ at options _; do
	case "$at" in "$dir" | "$dir"/* | /proc | /proc/* | /sys | /sys/*) continue ;; esac
	case "$options" in ro | ro,*) continue ;; esac
	mount -o "remount,bind,ro,${options#rw,}" "$at" 2>/dev/null
done < /proc/self/mountinfo
if (: > "$REPRISE_PROBE") 2>/dev/null; then exit 98; fi
if [ "$REPRISE_UID" = 0 ]; then set -- setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all "$@"; fi
exec env -u REPRISE_PROBE -u REPRISE_UID "$@"
`

// driver runs each of the commands in the files that it is given; what they leave
// running ends with the sandbox.
const driver = `for c; do
	cd "$REPRISE_WORK" || exit 96
	setsid -w timeout -k 1 3 bash "$c" </dev/null >/dev/null 2>&1
done
exit 0`

// canaries are a project, a home and a directory outside, in which nothing may
// change that is there, and nothing be added.
type canaries struct {
	project
	root, probe string
	runs        int
}

func newCanaries(t *testing.T) *canaries {
	t.Helper()
	c := &canaries{project: newProject(t)}
	c.root = filepath.Dir(c.outside)
	probe, err := os.MkdirTemp("", "guard-probe-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(probe) })
	c.probe = filepath.Join(probe, "written")
	for name, text := range map[string]string{
		filepath.Join(c.outside, "canary"): "sings\n", filepath.Join(c.outside, "x"): "x\n", filepath.Join(c.home, ".bashrc"): "# mine\n", filepath.Join(c.home, ".profile"): "# mine\n", filepath.Join(c.home, ".ssh", "id_rsa"): "key\n",
		filepath.Join(c.dir, "canary"): "sings\n", filepath.Join(c.dir, "src", "x.txt"): "a b c\n", filepath.Join(c.dir, "sub", "evil.sh"): "touch PWNED\n", filepath.Join(c.dir, "f.gz"): "x", filepath.Join(c.dir, "..", "beside"): "x\n",
		filepath.Join(c.root, "tmp", "theirs"): "x\n", filepath.Join(c.root, "commands", "none"): "",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(c.dir, "evil.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	// The test's own directory lies in one that only its user may enter.
	for d := c.root; d != os.TempDir() && len(d) > 1; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			break
		}
	}
	setUp := `rm -rf .git && git init -q -b main . && git config user.name me && git config user.email me@example.org && git add -A && git commit -qm first && git tag v1`
	if out, code := c.run(t, []string{setUp}); code != 0 {
		t.Skipf("nothing can be run where it does no harm (exit %d: %s): that needs unshare and setpriv, and the right to make namespaces", code, bytes.TrimSpace(out))
	}
	if _, err := os.Stat(filepath.Join(c.dir, ".git", "refs", "heads", "main")); err != nil {
		t.Skipf("git does not work there: %v", err)
	}
	return c
}

// run runs commands one after the other, each in the project.
func (c *canaries) run(t *testing.T, commands []string) ([]byte, int) {
	t.Helper()
	c.runs++
	var files []string
	for i, text := range commands {
		name := filepath.Join(c.root, "commands", fmt.Sprintf("%d-%d", c.runs, i))
		if err := os.WriteFile(name, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	uid := os.Getuid()
	if uid == 0 {
		err := filepath.WalkDir(c.root, func(p string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(p, 65534, 65534))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"-m", "-n", "-p", "-f", "--mount-proc", "--kill-child"}
	if uid != 0 {
		args = append([]string{"-r"}, args...)
	}
	args = append(args, "--", "bash", "-c", sandbox, "sandbox", c.root, "bash", "-c", driver, "driver")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", append(args, files...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.home, "TMPDIR=" + filepath.Join(c.root, "tmp"), "LC_ALL=C", "REPRISE_WORK=" + c.dir, "REPRISE_PROBE=" + c.probe, fmt.Sprint("REPRISE_UID=", uid), "GOPROXY=off", "PAGER=cat", "GIT_TERMINAL_PROMPT=0"}
	cmd.Dir = c.root
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return out, exit.ExitCode()
	case err != nil:
		return []byte(err.Error()), -1
	}
	return out, 0
}

// picture is every file with its content.
func (c *canaries) picture(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(c.root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(c.root, p)
		if err != nil {
			return err
		}
		switch {
		case rel == "commands", passing(rel):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			what += " " + string(data)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			if err != nil {
				return err
			}
			what += " " + to
		}
		out[rel] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// passing are the places that allowed commands may write: what git add and git
// commit are for, and what programs keep for themselves to be quicker.
func passing(rel string) bool {
	if in, ok := strings.CutPrefix(rel, filepath.Join("work", "project", ".git")+"/"); ok {
		switch top, _, _ := strings.Cut(in, "/"); top {
		case "index", "objects", "refs", "logs", "COMMIT_EDITMSG", "gc.log", "gc.pid", "packed-refs":
			return true
		}
	}
	if in, ok := strings.CutPrefix(rel, "tmp/"); ok && in != "theirs" {
		return true // what a program that was ended in time has left there
	}
	if in, ok := strings.CutPrefix(rel, "home/"); ok {
		switch top, _, _ := strings.Cut(in, "/"); top {
		case ".cache", ".npm", ".config", ".cargo", ".rustup", ".local", "go", ".docker", ".kube", ".node_repl_history", ".lesshst", ".wget-hsts", "snap", ".java", ".gem", ".yarnrc":
			return true
		}
	}
	return false
}

// altered are the paths that are not as they were.
func altered(before, after map[string]string) []string {
	var out []string
	for p, was := range before {
		if is, ok := after[p]; !ok {
			out = append(out, p+" is gone")
		} else if is != was {
			out = append(out, p+" was changed")
		}
	}
	for p := range after {
		if _, ok := before[p]; !ok {
			out = append(out, p+" is new")
		}
	}
	slices.Sort(out)
	return out
}

// harm runs commands and returns which of them changed something. After one that
// did, everything is put back.
func (c *canaries) harm(t *testing.T, commands []string) map[string][]string {
	t.Helper()
	before := c.picture(t)
	if out, code := c.run(t, commands); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	found := altered(before, c.picture(t))
	if len(found) == 0 {
		return nil
	}
	if len(commands) == 1 {
		return map[string][]string{commands[0]: found}
	}
	out := map[string][]string{}
	half := len(commands) / 2
	for _, part := range [][]string{commands[:half], commands[half:]} {
		n := newCanaries(t)
		maps.Copy(out, n.harm(t, part))
	}
	if len(out) == 0 {
		out[strings.Join(commands, "\n")] = found // only together
	}
	return out
}

// What the guard allows is run, and nothing changes that should not: neither in the
// project, nor outside it, nor in the home directory.
func TestAllowedTouchesNoCanary(t *testing.T) {
	if !long() && os.Getenv("REPRISE_SUITES") == "" {
		t.Skip("it starts hundreds of programs: it runs in script/test's step of the suites, REPRISE_SUITES=1")
	}
	c := newCanaries(t)
	if found := c.harm(t, []string{"touch sub/CONTROL"}); len(found) != 1 {
		t.Fatal("what changes something is not seen")
	}
	for _, bad := range []string{"echo x > ../../outside/canary", "rm canary", "chmod +x f", "echo x >> ~/.bashrc", "ln -s f PWNED", "echo y > $TMPDIR/theirs", "mkdir sub/x", "git config a.b c"} {
		if n := newCanaries(t); long() && len(n.harm(t, []string{bad})) == 0 {
			t.Errorf("not seen: %s", bad)
		}
	}
	list := c.allowed(t)
	began := time.Now()
	for chunk := range slices.Chunk(list, 60) {
		for command, found := range c.harm(t, chunk) {
			t.Errorf("%q is allowed, and %s", command, strings.Join(found, ", "))
		}
	}
	t.Logf("%d allowed commands were run in %s", len(list), time.Since(began).Round(time.Second))
}

// allowed are commands of the corpora that the guard allows, and generated ones.
func (c *canaries) allowed(t *testing.T) []string {
	g := newGenerator(t)
	var all []string
	for _, e := range append(readCorpus(t, "bypasses.jsonl"), hard(t)...) {
		all = append(all, e.Command)
	}
	all = append(all, everyday(t)...)
	most, tries := 150, 300
	if long() {
		most, tries = 1<<30, 6000
	}
	for range tries {
		all = append(all, g.spliced())
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var out []string
	for _, command := range all {
		if strings.Contains(command, "tail -f") || strings.Contains(command, "\x00") {
			continue
		}
		if len(out) < most && let(c.judge(command)) {
			out = append(out, command)
		}
	}
	return out
}

// spliced is a command that was put together of pieces of others, most of them
// with one that would do harm: what of it is allowed has to be harmless.
func (g *generator) spliced() string {
	pick := func() []string {
		if g.IntN(3) == 0 {
			return strings.Split(g.everyday[g.IntN(len(g.everyday))], " ")
		}
		return strings.Split(g.bad(), " ")
	}
	a, b := pick(), pick()
	switch g.IntN(4) {
	case 0: // the beginning of one, the end of another
		a = append(slices.Clone(a[:g.IntN(len(a)+1)]), b[g.IntN(len(b)):]...)
	case 1: // a word in between
		i := g.IntN(len(a) + 1)
		a = slices.Insert(slices.Clone(a), i, b[g.IntN(len(b))])
	case 2: // a word for another
		a = slices.Clone(a)
		a[g.IntN(len(a))] = b[g.IntN(len(b))]
	case 3: // a word less
		i := g.IntN(len(a))
		a = slices.Delete(slices.Clone(a), i, i+1)
	}
	return strings.Join(a, " ")
}
