//go:build unix

package tell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/proc"
)

// A notice on the desktop is told by the program that is there for it, which a stand-in is
// for here: what it is given is the title and the text, each as one argument, whatever an
// agent has written, and nothing of it is run.
func TestDesktopNotice(t *testing.T) {
	dir := t.TempDir()
	told := filepath.Join(dir, "told")
	standIn := "#!/bin/sh\nfor a in \"$@\"; do printf '<%s>\\n' \"$a\"; done >>" + told + "\n"
	for _, name := range []string{"notify-send", "osascript"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(standIn), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"PATH": dir}
	hostile := "-u critical; $(touch " + dir + "/ran) `touch " + dir + "/ran`\n\"quoted\" 'too' \x00 end with title \"x\""
	for _, c := range []struct {
		goos, program string
		want          []string
	}{
		{"linux", "notify-send", []string{"<--app-name=reprise>", "<-->"}},
		{"darwin", "osascript", []string{"<-e>", "<on run argv>", "<-e>", "<display notification (item 2 of argv) with title (item 1 of argv)>", "<-e>", "<end run>"}},
	} {
		_ = os.Remove(told)
		n := &Notifier{
			Desktop: true, PerHour: 5, GOOS: c.goos, Env: []string{"PATH=" + dir + ":/usr/bin:/bin"}, Now: time.Now,
			LookPath: func(name string) (string, error) { return proc.LookPath(name, env, "linux") },
			Run: func(ctx context.Context, cmd proc.Cmd, _ string) error {
				out, err := proc.Run(ctx, cmd, 4<<10)
				if err == nil && out.Exit.Code != 0 {
					err = fmt.Errorf("exit %d: %s", out.Exit.Code, out.Stderr)
				}
				return err
			},
		}
		if err := n.Send(t.Context(), Notice{Kind: "agent", Project: "shop", Text: hostile}); err != nil {
			t.Fatalf("%s: %v", c.goos, err)
		}
		data, err := os.ReadFile(told)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		want := append(c.want, "<reprise loop shop: agent>", "<"+strings.Join(strings.Fields(strings.ReplaceAll(hostile, "\x00", "")), " ")+">")
		if strings.Join(lines, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: it was given\n%s\nwant\n%s", c.goos, data, strings.Join(want, "\n"))
		}
		if _, err := os.Lstat(filepath.Join(dir, "ran")); err == nil {
			t.Errorf("%s: a part of the text was run", c.goos)
		}

		// Where there is no such program, the user is told which, and what to do.
		env["PATH"] = filepath.Join(dir, "empty")
		err = n.Send(t.Context(), Notice{Kind: "agent", Text: "which?"})
		if err == nil || !strings.Contains(err.Error(), "desktop: ") || !strings.Contains(err.Error(), c.program) || !strings.Contains(err.Error(), "loop.notify_desktop") {
			t.Errorf("%s: without the program: %v", c.goos, err)
		}
		env["PATH"] = dir
	}
}
