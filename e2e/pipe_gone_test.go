//go:build unix

package e2e

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The client closes the end that it reads, and keeps the one that it writes. The
// server leaves as it does otherwise: by itself, with a word in the log, and with
// its run stopped.
func TestClientClosesItsReadingEnd(t *testing.T) {
	t.Parallel()
	h := newHome(t, settings{})
	cmd := exec.Command(program("reprise"), "mcp")
	cmd.Dir, cmd.Env = h.work, h.env
	var errs bytes.Buffer
	cmd.Stderr = &errs
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if inErr != nil || outErr != nil {
		t.Fatal(inErr, outErr)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	const shake = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	if _, err := io.WriteString(in, shake); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_agents","arguments":{}}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Fatal("the server is still there")
	}
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(errs.String(), "write standard output") {
		t.Errorf("%s: %s", cmd.ProcessState, errs.String())
	}
	var log []byte
	err := filepath.WalkDir(filepath.Dir(h.dir), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "reprise.log" {
			log, err = os.ReadFile(path)
		}
		return err
	})
	if err != nil || !bytes.Contains(log, []byte("active_jobs_killed")) {
		t.Errorf("the log does not tell the end: %s, %v", log, err)
	}
}
