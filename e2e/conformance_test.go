//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The official suite drives tools of fixed names, which no product has: a
// fixture that stands on our own server code has them.
func TestConformanceSuite(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	suite, engine := client(t, "conformance"), node(t)
	h := newHome(t, nil)
	fixture := filepath.Join(filepath.Dir(h.dir), "conformance")
	build := exec.Command("go", "build", "-o", fixture, "./internal/mcpserver/conformance")
	build.Dir = repo
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}

	server := exec.Command(fixture, "-stdin")
	server.Dir, server.Env = h.work, h.env
	var errs lockedBuffer
	server.Stderr = &errs
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		if err := server.Wait(); err != nil {
			t.Errorf("the fixture: %v\n%s", err, errs.String())
		}
	}()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the fixture's address: %v\n%s", err, errs.String())
	}

	free := turn(t)
	defer free()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, engine, suite, "server", "--url", strings.TrimSpace(url))
	cmd.Dir = h.work
	cmd.Env = append(h.env, "PATH="+filepath.Dir(engine)+string(os.PathListSeparator)+os.Getenv("PATH"))
	var report bytes.Buffer
	cmd.Stdout, cmd.Stderr = &report, &report
	err = cmd.Run()
	total := regexp.MustCompile(`Total: (\d+) passed, (\d+) failed`).FindStringSubmatch(report.String())
	if total == nil {
		t.Fatalf("the suite gave no total: %v\n%s", err, report.String())
	}
	passed, _ := strconv.Atoi(total[1]) // digits
	if err != nil || total[2] != "0" || passed < 40 {
		t.Errorf("%s: %v\n%s", total[0], err, report.String())
	}
	t.Log(total[0])
}
