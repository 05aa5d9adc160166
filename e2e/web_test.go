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
	linuxOnly(t, "the browser is Debian's")
	browser := chromium(t)
	kit := webKit(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
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
