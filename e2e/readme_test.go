//go:build unix

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestReadmeCommands runs every command that the README shows, in its order, in
// one shell, as somebody would who follows it. A block that cannot be run (it
// needs an account, or a person) says so after its language: ```sh norun.
func TestReadmeCommands(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	blocks, skipped := shellBlocks(t, filepath.Join(repo, "README.md"))
	if len(blocks) == 0 {
		t.Fatal("README.md shows no commands: the test looks at nothing")
	}
	t.Logf("%d blocks run, %d not", len(blocks), skipped)
	h := newHome(t, nil)
	// The README is for somebody with no settings.
	if err := os.Remove(h.config); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(filepath.Dir(h.dir), "bin")
	var env []string
	for _, e := range h.env {
		switch {
		case strings.HasPrefix(e, "REPRISE_CONFIG="):
		case strings.HasPrefix(e, "PATH="):
			// Only what the README installs, and not what the tests built.
			env = append(env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		default:
			env = append(env, e)
		}
	}
	// Go's own directories are the machine's: a home without them would fetch
	// and build everything again, as it would with cgo where the rest is built without.
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOFLAGS", "CGO_ENABLED").Output()
	if err != nil {
		t.Fatal(err)
	}
	vals := strings.Split(string(out), "\n")
	for i, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOFLAGS", "CGO_ENABLED"} {
		env = append(env, name+"="+vals[i])
	}
	env = append(env, "GOBIN="+bin, "REPO="+repo)

	// "In a clone of this repository": Go's commands run there, the others in a
	// directory that they may write to.
	script := "set -eu\ngo() { (cd \"$REPO\" && command go \"$@\"); }\nset -v\n" + strings.Join(blocks, "\n")
	cmd := exec.Command("bash", "-s")
	cmd.Dir, cmd.Env, cmd.Stdin = h.work, env, strings.NewReader(script)
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("the README's commands: %v\n%s", err, both.String())
	}
	t.Logf("took %v", time.Since(began).Round(time.Millisecond))
	for _, want := range []string{"6543", "run-"} { // the memory was found, the runs were listed
		if !strings.Contains(both.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, both.String())
		}
	}
	// What was left running on purpose is ended, and by its own command.
	h.env = env
	list := regexp.MustCompile(`run-\w+`).FindAllString(h.run(filepath.Join(bin, "reprise"), "runs", "list", "--status", "running").out, -1)
	for _, id := range list {
		h.run(filepath.Join(bin, "reprise"), "runs", "cancel", id)
	}
}

// shellBlocks are the ```sh blocks of a markdown file, and how many of them say norun.
func shellBlocks(t *testing.T, path string) (blocks []string, skipped int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var block []string
	inside, run := false, false
	for _, line := range strings.Split(string(data), "\n") {
		switch {
		case inside && strings.HasPrefix(line, "```"):
			if run {
				blocks = append(blocks, strings.Join(block, "\n"))
			}
			inside, block = false, nil
		case inside:
			block = append(block, line)
		case strings.HasPrefix(line, "```"):
			info := strings.Fields(strings.TrimPrefix(line, "```"))
			shell := len(info) > 0 && (info[0] == "sh" || info[0] == "bash" || info[0] == "shell")
			norun := len(info) > 1 && info[1] == "norun"
			if shell && norun {
				skipped++
			}
			inside, run = true, shell && !norun
		}
	}
	if inside {
		t.Fatalf("%s: a block is not closed", path)
	}
	return blocks, skipped
}
