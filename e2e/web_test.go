//go:build unix

package e2e

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/fakemodel"
	"reprise/internal/fleet/fleettest"
)

// chromium is the browser that Debian ships, or skips the test, or fails it where
// everything has to be there.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("REPRISE_REQUIRE_CLIENTS") != "" {
		t.Fatal("chromium is not installed, and REPRISE_REQUIRE_CLIENTS is set: run script/test as root, which installs it, or apt-get install chromium")
	}
	t.Skip("chromium is not installed")
	return ""
}

// The dashboard in a real browser: what it shows has no barrier that axe finds, is read
// and used without JavaScript and without a mouse, follows runs and files, and is taken in
// by nothing that agents said. script/web/check.mjs has it step by step.
func TestDashboardInABrowser(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	linuxOnly(t, "the browser is Debian's")
	browser := chromium(t)
	kit := webKit(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.CopyFS(bin, os.DirFS(programs)); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(bin, "past"), "./script/web/past")
	build.Dir, build.Env = repo, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building script/web/past: %v\n%s", err, out)
	}
	run := func(name string, args ...string) {
		t.Helper()
		c := exec.CommandContext(ctx, name, args...)
		c.Env = []string{"HOME=" + dir, "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "CHROMIUM=" + browser}
		c.WaitDelay = 10 * time.Second
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", filepath.Base(args[0]), err, out)
		}
		t.Logf("%s", out)
	}
	made := filepath.Join(dir, "made")
	run("bash", filepath.Join(kit, "seed"), bin, made)
	run("node", filepath.Join(kit, "check.mjs"), made)
}

// The real client in a loop asks twice, and a person answers both in the browser: first
// the guard lets a call of it wait, then the agent has a question. The loop goes on by
// itself, with the same session, and the browser sees its end.
func TestDashboardAnswersAClient(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	linuxOnly(t, "the browser is Debian's")
	browser, kit := chromium(t), webKit(t)
	h, m := looped(t, "claude", settings{"guard": map[string]any{"pending": "on", "project_code": "ask"}},
		on("issue-7", 1, bash("./make-canary now")),
		// Nobody may have answered within the minute that a client waits, on a slow machine.
		fakemodel.Rule{Name: "once more", Uses: 4, When: fakemodel.When{Result: "nobody answered in time"}, Say: bash("./make-canary now")},
		fakemodel.Rule{Name: "ask", When: fakemodel.When{Result: "it sings"}, Say: bash(`echo "Keep the old cage?" > "$INTERRUPT_FILE"; while :; do /bin/sleep 0.2; done`)},
		fakemodel.Rule{Name: "answered", When: fakemodel.When{User: "Keep it until spring."}, Say: bash("cat canary; echo spring > cage.txt")},
		fakemodel.Rule{Name: "end", When: fakemodel.When{Result: "made"}, Say: say("The old cage stays until spring.")})
	h.write(filepath.Join(h.work, "make-canary"), "#!/bin/sh\necho made > canary\necho it sings\n")
	if err := os.Chmod(filepath.Join(h.work, "make-canary"), 0o755); err != nil {
		t.Fatal(err)
	}
	h.git("add", "-A")
	h.git("commit", "-q", "-m", "a canary")
	h.must("queue", "add", "--id", "issue-7", "Make it sing")
	free := turn(t)
	defer free()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	// start starts something that says in its first line that it is ready.
	start := func(name string, env []string, args ...string) (c *exec.Cmd, line string) {
		t.Helper()
		c = exec.CommandContext(ctx, name, args...)
		c.Dir, c.Env, c.Stderr, c.WaitDelay = h.work, env, os.Stderr, 10*time.Second
		c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
		out, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		c.Stdout = w
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cancel()
			_ = c.Wait() // where the test ended early
			out.Close()
		})
		r := bufio.NewReader(out)
		if line, err = r.ReadString('\n'); err != nil {
			t.Fatalf("%s ended before it was ready: %v", filepath.Base(name), err)
		}
		go func() { _, _ = io.Copy(os.Stderr, r) }() // it ends with the pipe
		return c, strings.TrimSpace(line)
	}
	web, link := start(program("reprise"), h.env, "web")
	page, _ := start("node", []string{"HOME=" + t.TempDir(), "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "CHROMIUM=" + browser},
		filepath.Join(kit, "answer.mjs"), link, "make-canary", "Keep the old cage?", "Keep it until spring.")
	l := h.beside("loop", "run", "--agent", "claude", "--until-empty", "--delay", "0s")
	if err := page.Wait(); err != nil {
		t.Fatalf("answer.mjs: %v", err)
	}
	l.wait()
	if got := h.gitIn(h.work, "show", "loop-issue-7:cage.txt"); got != "spring\n" {
		t.Errorf("after the answer it wrote %q", got)
	}
	if dirs := h.loopRuns(); len(dirs) != 2 {
		t.Errorf("%d runs: the answer goes to the session that asked", len(dirs))
	}
	decided := h.must("events", "list", "--type", "permission.decided", "--json")
	if !strings.Contains(decided, `"by": "user"`) || !strings.Contains(decided, "make-canary") {
		t.Errorf("what was decided: %s", decided)
	}
	if last := m.Requests()[len(m.Requests())-1]; !strings.Contains(last.Text(), "Keep it until spring.") {
		t.Error("the answer is not in the conversation")
	}
	if err := web.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := web.Wait(); err != nil {
		t.Errorf("the dashboard ended with %v", err)
	}
}

// A worker of a fleet, in a home of its own, is seen and answered in the browser of another
// machine: script/web/fleet.mjs has it step by step.
func TestDashboardOfAFleet(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	linuxOnly(t, "the browser is Debian's")
	browser, kit := chromium(t), webKit(t)
	servers := fleettest.Server(t).ClientURL()
	dir := t.TempDir()
	env := func(name, settings string) []string {
		home := filepath.Join(dir, name)
		write := func(file, text string) {
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(filepath.Join(home, ".gitconfig"), "[user]\nname = A\nemail = a@example.org\n")
		write(filepath.Join(home, "data", "config.yaml"), "queue: "+servers+"\n"+settings)
		return []string{"HOME=" + home, "REPRISE_HOME=" + filepath.Join(home, "data"), "TMPDIR=" + os.TempDir(), "PATH=" + programs + ":" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	}
	goFile := filepath.Join(dir, "go")
	steps := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(steps, []byte(`steps:
  - when: "red please"
  - shell: {command: "echo red > colour.txt"}
  - when: "Ask the colour"
  - shell: {command: "if ! test -e colour.txt; then echo 'Which colour?' > \"$INTERRUPT_FILE\"; exec sleep 600; fi"}
  - when: "Wait here"
  - say: "the first words <script>document.title='taken in'</script>"
  - wait_for: {file: "`+goFile+`", timeout: 300s}
  - say: "the last words"
  - shell: {command: "echo done > $WORK_ITEM.txt"}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	far := env("far", "sub_agent: {agent: script, script_file: "+steps+"}\nworker:\n  name: build-1\n  projects:\n    shop: {remote: "+filepath.Join(dir, "code.git")+"}\n")
	near := env("near", "")
	shop := filepath.Join(dir, "shop")
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	run := func(in string, env []string, name string, args ...string) {
		t.Helper()
		c := exec.CommandContext(ctx, name, args...)
		c.Dir, c.Env, c.WaitDelay = in, env, 10*time.Second
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", filepath.Base(name), args, err, out)
		} else if strings.HasSuffix(args[0], ".mjs") {
			t.Logf("%s", out)
		}
	}
	run(dir, near, "git", "init", "-q", "--bare", "-b", "trunk", "code.git")
	run(dir, near, "git", "clone", "-q", "code.git", shop)
	run(shop, near, "git", "checkout", "-q", "-b", "trunk")
	run(shop, near, program("reprise"), "init", "--yes", "--name", "shop")
	run(shop, near, "git", "add", "-A")
	run(shop, near, "git", "commit", "-q", "-m", "first")
	run(shop, near, "git", "push", "-q", "origin", "trunk")
	run(shop, near, program("reprise"), "queue", "add", "--id", "colour", "Ask the colour")
	run(shop, near, program("reprise"), "queue", "add", "--id", "slow", "Wait here")
	// start starts something that is told to end when the test is over.
	start := func(in string, env []string, name string, args ...string) (line string) {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir, c.Env, c.Stderr = in, env, os.Stderr
		out, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		c.Stdout = w
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = c.Process.Signal(os.Interrupt) // it may have ended
			_ = c.Wait()
			out.Close()
		})
		r := bufio.NewReader(out)
		if line, err = r.ReadString('\n'); err != nil {
			t.Fatalf("%s ended before it said anything: %v", filepath.Base(name), err)
		}
		go func() { _, _ = io.Copy(io.Discard, r) }() // it ends with the pipe
		return strings.TrimSpace(line)
	}
	link := start(shop, near, program("reprise"), "web")
	start(dir, far, program("reprise"), "worker", "--delay", "0s", "--workers", "2", "--backoff-unit", "1ms")
	run(dir, []string{"HOME=" + t.TempDir(), "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "CHROMIUM=" + browser}, "node",
		filepath.Join(kit, "fleet.mjs"), link, goFile, "Which colour?", os.Getenv("REPRISE_TEST_PICTURES"))
}

// webKit is where what drives the browser is.
func webKit(t *testing.T) string {
	t.Helper()
	kit := filepath.Join(repo, "script", "web")
	if _, err := os.Stat(filepath.Join(kit, "node_modules", "playwright-core")); err != nil {
		if os.Getenv("REPRISE_REQUIRE_CLIENTS") != "" {
			t.Fatal("script/web is not installed, and REPRISE_REQUIRE_CLIENTS is set: run script/test, which installs it")
		}
		t.Skip("script/web is not installed: script/test installs it (npm, 18 MB)")
	}
	return kit
}
