//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/fleet/fleettest"
	"reprise/internal/queue"
	"reprise/internal/queue/jet"
)

// yard is a project at a remote, servers, and homes of workers as machines have them. A file
// block-WHERE holds up whatever comes to that step, which makes at-WHERE.
type yard struct {
	t     *testing.T
	dir   string
	queue *jet.Queue
	out   *os.File // what all workers say
}

func newYard(t *testing.T) *yard {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	y := &yard{t: t, dir: t.TempDir()}
	var err error
	if y.out, err = os.Create(filepath.Join(y.dir, "out")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { y.out.Close() })
	url := fleettest.Server(t).ClientURL()
	hold := `touch "%[1]s/at-%[2]s"; while test -e "%[1]s/block-%[2]s"; do sleep 0.05; done` + "\n"
	y.script("pack", fmt.Sprintf(hold, y.dir, "fetch")+`exec "$@"`)
	for _, home := range []string{"one", "two"} {
		y.put(home+"/home/.gitconfig", fmt.Sprintf("[user]\n\tname = A\n\temail = a@example.org\n[commit]\n\tgpgSign = false\n[uploadpack]\n\tpackObjectsHook = %s/pack\n", y.dir))
		y.put(home+"/reprise/config.yaml", fmt.Sprintf("queue: %s\nsub_agent: {agent: script, script_file: %s/steps.yaml}\nworker:\n  name: %s\n  projects:\n    shop: {remote: file://%s/code.git}\n", url, y.dir, home, y.dir))
	}
	// An agent may not write there: that it works is told by a file of its own place. On
	// another machine it finds what was made on the branch, and leaves it at that.
	y.put("steps.yaml", fmt.Sprintf("steps:\n  - shell: {command: 'touch begun; while test -e \"%s/block-run\"; do sleep 0.05; done; rm begun; test -s $WORK_ITEM.txt || echo line >> $WORK_ITEM.txt'}\n", y.dir))
	y.sh(".", `git init -q --bare -b trunk code.git; git clone -q code.git shop 2>&1
		cd shop; git checkout -q -b trunk; mkdir .reprise; printf 'v: 1\nname: shop\n' > .reprise/project.yaml; git add -A; git commit -q -m first; git push -q origin trunk`)
	y.script("code.git/hooks/pre-receive", fmt.Sprintf(hold, y.dir, "push"))
	y.script("code.git/hooks/post-receive", fmt.Sprintf(hold, y.dir, "pushed"))
	conn, err := fleet.Connect(t.Context(), fleet.Options{Servers: url, Settings: config.Fleet{Namespace: "reprise"}, Name: "test", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if y.queue, err = jet.Open(t.Context(), jet.Options{Conn: conn, Project: "shop", Now: time.Now, Host: "somewhere else"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { y.queue.Close() })
	t.Cleanup(func() {
		if t.Failed() {
			said, err := os.ReadFile(y.out.Name())
			t.Logf("%s%v", said, err)
		}
	})
	return y
}

func (y *yard) put(name, text string) {
	y.t.Helper()
	file := filepath.Join(y.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		y.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) script(name, text string) {
	y.t.Helper()
	y.put(name, "#!/bin/sh\n"+text+"\n")
	if err := os.Chmod(filepath.Join(y.dir, name), 0o700); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) sh(where, script string) string {
	y.t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = filepath.Join(y.dir, where)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		y.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// start starts a worker in a home; it is killed with the test at the latest.
func (y *yard) start(home string) *exec.Cmd {
	y.t.Helper()
	cmd := exec.Command(program, "worker", "--delay", "0s", "--workers", "1", "--backoff-unit", "1ms")
	cmd.Dir = y.dir
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(y.dir, home, "home"), "REPRISE_HOME="+filepath.Join(y.dir, home, "reprise"), "NO_COLOR=1", "LANG=C.UTF-8")
	cmd.Stdout, cmd.Stderr = y.out, y.out
	if err := cmd.Start(); err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

func (y *yard) until(what string, ok func() bool) {
	y.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			y.t.Fatalf("not %s after three minutes", what)
		}
	}
}

func (y *yard) there(name string) bool {
	_, err := os.Lstat(filepath.Join(y.dir, name))
	return err == nil
}

func (y *yard) state(id string) queue.State {
	it, err := y.queue.Get(y.t.Context(), id)
	if err != nil {
		y.t.Fatal(err)
	}
	return it.State
}

// killPoint is a moment in the life of an item.
type killPoint struct {
	name string
	wait string            // step that is held up there, "" for none
	when func(string) bool // of an item: that it has come there; nil where the step tells
}

// A worker that is killed (SIGKILL) at any step of an item is followed by the next on that
// machine, or by one of another home: the item is settled once, nothing is lost, and what was
// at the remote already is not there twice.
func TestWorkerKilledAtEachStep(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	points := []killPoint{
		{"clone", "fetch", nil}, // of the first item, while its project is cloned
		{"claim", "", func(id string) bool { return y.state(id) != queue.Ready }},
		{"prepare", "fetch", nil},
		{"run", "run", func(id string) bool {
			begun, _ := filepath.Glob(filepath.Join(y.dir, "*/home/reprise-worker/shop.workspaces/loop-"+id+"/begun"))
			return len(begun) == 1
		}},
		{"push", "push", nil},
		{"pushed", "pushed", nil}, // and nobody was told
		{"done", "", func(id string) bool { return y.state(id) == queue.Done }},
	}
	followers := []string{"one", "two"}
	if os.Getenv("REPRISE_LONG_TESTS") == "" {
		points = []killPoint{points[0], points[3], points[5]}
		followers = followers[:1]
	}
	for _, follower := range followers {
		for i, p := range points {
			if p.name == "clone" && follower != "one" {
				continue // it is there by now
			}
			id := fmt.Sprint(p.name, "-", follower)
			if i > 0 { // so that there is something to be fetched
				y.sh("shop", "git commit -q --allow-empty -m 'before "+id+"'; git push -q origin trunk")
			}
			y.sh(".", "rm -f at-*")
			if p.wait != "" {
				y.put("block-"+p.wait, "")
			}
			if _, err := y.queue.Add(t.Context(), queue.Item{ID: id, Title: "Do " + id}); err != nil {
				t.Fatal(err)
			}
			w := y.start("one")
			y.until("at "+p.name+" of "+id, func() bool {
				if p.when != nil {
					return p.when(id)
				}
				return y.there("at-" + p.wait)
			})
			_ = w.Process.Kill()
			_ = w.Wait()
			y.sh(".", "rm -f block-*")
			next := y.start(follower)
			y.until(id+" done", func() bool { return y.state(id) == queue.Done })
			y.once(id)
			_ = next.Process.Signal(syscall.SIGINT)
			if err := next.Wait(); err != nil && !next.ProcessState.Sys().(syscall.WaitStatus).Signaled() { // it may not have come to listen yet
				t.Fatalf("the worker after %s: %v", id, err)
			}
			y.once(id)
		}
	}
}

// once wants an item to be settled once, and its work to be at the remote, once.
func (y *yard) once(id string) {
	y.t.Helper()
	it, err := y.queue.Get(y.t.Context(), id)
	if err != nil {
		y.t.Fatal(err)
	}
	done := 0
	for _, e := range it.History {
		if e.Op == queue.OpDone {
			done++
		}
	}
	if it.State != queue.Done || done != 1 {
		y.t.Errorf("%s is %s, settled %d times: %+v", id, it.State, done, it.History)
	}
	if got := y.sh("code.git", "git rev-list --count trunk..loop-"+id); got != "1" {
		y.t.Errorf("the remote has %s commits for %s", got, id)
	}
	if got := y.sh("code.git", "git show loop-"+id+":"+id+".txt"); got != "line" {
		y.t.Errorf("the remote has %q for %s", got, id)
	}
}
