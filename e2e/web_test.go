//go:build unix

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
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
