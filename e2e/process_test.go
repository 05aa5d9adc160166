//go:build unix

package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tree lists every file below a directory with its size and time of change.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b.WriteString(p + " " + strconv.FormatInt(info.Size(), 10) + " " + info.ModTime().Format(time.RFC3339Nano) + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Clients start copies of a server only to look at it, several at once: a start
// that writes, locks or migrates would make them fight.
func TestServerStartWritesNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	root := filepath.Dir(h.dir)
	before := tree(t, root)
	var servers []*server
	for range 4 {
		servers = append(servers, h.serve())
	}
	for _, s := range servers {
		for _, method := range []string{"tools/list", "prompts/list", "resources/templates/list"} {
			if m := s.request(method, map[string]any{}); m.Error != nil {
				t.Errorf("%s: %+v", method, m.Error)
			}
		}
		if err := s.in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range servers {
		s.ends(time.Second, "its input ended")
	}
	if after := tree(t, root); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	probe := h.launch() // a copy that is closed before any request
	if err := probe.in.Close(); err != nil {
		t.Fatal(err)
	}
	probe.ends(time.Second, "its input ended")
	if after := tree(t, root); after != before {
		t.Errorf("a start and an end alone wrote:\n%s", after)
	}
}

// TestServerIsGone: within a second of whatever ends its client, and with it
// the runs it started.
func TestServerIsGone(t *testing.T) {
	t.Parallel()
	ways := map[string]func(*testing.T, *server){
		"end of input": func(t *testing.T, s *server) {
			if err := s.in.Close(); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, sig := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT, "SIGHUP": syscall.SIGHUP} {
		ways[name] = func(t *testing.T, s *server) {
			if err := s.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, end := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, sub(map[string]any{"sync_window_seconds": 1}))
			s := h.serve()
			end(t, s)
			s.ends(time.Second, name)
			if c := s.exitCode(); c != 0 {
				t.Errorf("exit code %d, want an orderly end", c)
			}
		})
		t.Run(name+" with a run", func(t *testing.T) {
			t.Parallel()
			h := newHome(t, sub(map[string]any{"sync_window_seconds": 1}))
			s := h.serve()
			job := s.spawn("escape").str("job_id")
			end(t, s)
			// 5 s of grace for the run, which does not use them up: its agent
			// ends on SIGTERM, and the escaped one is killed after it.
			s.ends(7*time.Second, name)
			until(t, 20*time.Second, "no process of the run is left", func() bool { return len(ofRun(t, job)) == 0 })
			until(t, 10*time.Second, "the record is settled", func() bool { r, _ := h.record(job); return r.done() })
		})
	}
	t.Run("death of the parent", func(t *testing.T) {
		t.Parallel()
		linuxOnly(t, "finds the server by its environment in /proc")
		h := newHome(t, nil)
		// The server's input stays open in this test's hands while its parent is killed.
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		parent := exec.Command("sh", "-c", `exec 3<&0; "$0" mcp <&3 >/dev/null & echo $!; wait`, program("reprise"))
		parent.Dir, parent.Env, parent.Stdin = h.work, h.env, r
		out, err := parent.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := parent.Start(); err != nil {
			t.Fatal(err)
		}
		r.Close()
		line := make([]byte, 32)
		n, err := out.Read(line)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
		if err != nil {
			t.Fatal(err)
		}
		alive := func() bool {
			for _, p := range h.mine() {
				if p.pid == pid && strings.Contains(p.args, " mcp") {
					return true
				}
			}
			return false
		}
		until(t, 5*time.Second, "the server runs", alive)
		// It has to be up before its parent dies: it learns its parent at start.
		if _, err := w.WriteString(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"); err != nil {
			t.Fatal(err)
		}
		until(t, 5*time.Second, "the server has read its input", func() bool { return pipeEmpty(t, w) })
		if err := parent.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = parent.Wait() // killed
		began := time.Now()
		until(t, 20*time.Second, "the server is gone", func() bool { return !alive() })
		if took, limit := time.Since(began), within(t, time.Second); took > limit {
			t.Errorf("gone after %v, want at most 1 s (%v on this machine now)", took, limit)
		}
	})
}

// Nothing but the protocol may come out of stdout, whatever comes in, and the
// session goes on. Each server checks every line of its stdout at its end.
func TestGarbageOnStdin(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	s := h.launch()
	for _, line := range []string{
		"\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":"bom","method":"ping"}` + "\n",
		"not json\n", "\n", "{\n", "[]\n", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]` + "\n", "\x00\xff\xfe\n",
		`{"jsonrpc":"1.0","id":9,"method":"x"}` + "\n", `"text"` + "\n", "null\n",
		`{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}` + "\n", strings.Repeat("x", 300_000) + "\n",
	} {
		s.raw(line)
	}
	m := s.request("server/discover", map[string]any{"_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": map[string]any{"name": "e2e", "version": "0"},
		"io.modelcontextprotocol/clientCapabilities": map[string]any{},
	}})
	if m.Error != nil && m.Error.Code != -32601 {
		t.Errorf("server/discover: %+v", m.Error)
	}
	s.initialize() // the older era, after the newer one, on the same connection
	if a := s.good("list_agents", map[string]any{}); a.data == nil {
		t.Errorf("got %+v", a)
	}
	if m := s.request("no/such/method", map[string]any{}); m.Error == nil || m.Error.Code != -32601 {
		t.Errorf("unknown method: %+v", m)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var codes []int
	for _, n := range s.notes {
		if n.Error != nil {
			codes = append(codes, n.Error.Code)
		}
	}
	if len(codes) < 5 {
		t.Errorf("garbage was answered with %v, want an error for each line", codes)
	}
}

// The same tools over the shell: what a run leaves can be found by anybody.
func TestRunsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	r := h.reprise("spawn", "hello from the shell")
	if r.code != 0 || !strings.Contains(r.out, "Mock sub-agent received task: hello from the shell") {
		t.Fatalf("%+v", r)
	}
	if r := h.reprise("spawn", "crash"); r.code != 1 || !strings.Contains(r.err, "failed") {
		t.Errorf("a run that fails: %+v", r)
	}
	if r := h.reprise("spawn", "--timeout=1s", "for ever"); r.code != 5 {
		t.Errorf("a run that times out: %+v", r)
	}
	id := strings.TrimSpace(h.must("spawn", "--detach", "for ever"))
	if r := h.reprise("runs", "wait", "--timeout=50ms", id); r.code != 5 {
		t.Errorf("wait that times out: %+v", r)
	}
	h.must("runs", "cancel", id)
	if out := h.must("runs", "list"); strings.Count(out, "run-") < 4 || !strings.Contains(out, "killed") || !strings.Contains(out, "timeout") {
		t.Errorf("list: %s", out)
	}
	if r := h.reprise("runs", "show", "run-aaaaaaaaaa"); r.code != 3 {
		t.Errorf("no such run: %+v", r)
	}
	if left := ofRun(t, id); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if out := h.must("runs", "logs", id); !strings.Contains(out, "started") {
		t.Errorf("logs: %q", out)
	}
}

// exists reports whether there is something at the path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
