package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tracker is a program that keeps work items and is started anew for each step.
type tracker struct {
	key, shown string
	fill       func(w *trackerWorld, n int) error // so many items, of one list
	add        func(w *trackerWorld, title string) (id string, err error)
	claim      func(w *trackerWorld) (token string, err error) // the next that is ready
	done       func(w *trackerWorld, token string) error
	list       func(w *trackerWorld) (n int, err error) // those that are ready
	has        func(w *trackerWorld, id string) (bool, error)
}

// trackerWorld is a repository in a home of its own.
type trackerWorld struct {
	home, dir string
	env       []string
}

func (p *peers) trackerWorld(t tracker) (*trackerWorld, error) {
	home, env, err := p.home(t.key)
	if err != nil {
		return nil, err
	}
	w := &trackerWorld{home: home, dir: filepath.Join(home, "code"), env: append(env, "REPRISE_HOME="+filepath.Join(home, "data"),
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")}
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := w.run("git", "init", "-q"); err != nil {
		return nil, err
	}
	if _, err := w.run("git", "commit", "-q", "--allow-empty", "-m", "begin"); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *trackerWorld) run(args ...string) ([]byte, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = w.dir, w.env
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out, fmt.Errorf("%s: %w: %s", strings.Join(args[:min(3, len(args))], " "), err, lastLine(exit.Stderr))
	}
	return out, err
}

// field is a text of an object, or of the first of a list of them.
func field(data []byte, name string) (string, error) {
	var list []map[string]any
	if json.Unmarshal(data, &list) != nil {
		list = make([]map[string]any, 1)
		if err := json.Unmarshal(data, &list[0]); err != nil {
			return "", fmt.Errorf("%w: %q", err, data)
		}
	}
	if len(list) == 0 {
		return "", nil
	}
	text, _ := list[0][name].(string)
	if text == "" {
		return "", fmt.Errorf("no %s in %q", name, data)
	}
	return text, nil
}

// list writes a list of items that another program takes, and gives its name.
func (w *trackerWorld) list(n int, line func(i int) string) (string, error) {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i) + "\n")
	}
	file := filepath.Join(w.home, "list.jsonl")
	return file, os.WriteFile(file, []byte(b.String()), 0o600)
}

func (p *peers) trackers() []tracker {
	us := p.r.reprise
	all := []tracker{{
		key: "reprise", shown: "`reprise queue`",
		fill: func(w *trackerWorld, n int) error {
			file, err := w.list(n, func(i int) string { return fmt.Sprintf(`{"title":"item %d of a list"}`, i) })
			if err == nil && n > 0 {
				_, err = w.run(us, "queue", "add", "--from", file)
			}
			return err
		},
		add: func(w *trackerWorld, title string) (string, error) {
			_, err := w.run(us, "queue", "add", title, "--id", title)
			return title, err
		},
		claim: func(w *trackerWorld) (string, error) {
			out, err := w.run(us, "queue", "claim", "--worker", "w", "--json")
			if err != nil {
				return "", err
			}
			return field(out, "token")
		},
		done: func(w *trackerWorld, token string) error {
			_, err := w.run(us, "queue", "done", token, "--summary", "was done")
			return err
		},
		list: func(w *trackerWorld) (int, error) {
			out, err := w.run(us, "queue", "list", "--state", "ready", "--json")
			if err != nil {
				return 0, err
			}
			var items struct{ Items []json.RawMessage }
			err = json.Unmarshal(out, &items)
			return len(items.Items), err
		},
		has: func(w *trackerWorld, id string) (bool, error) {
			_, err := w.run(us, "queue", "show", id)
			return err == nil, nil // it says that there is none
		},
	}}
	if p.of["bd"] == "" {
		return all
	}
	return append(all, p.beads("bd-daemon", p.version("bd")+" (beads), by its daemon"), p.beads("bd-direct", "the same with --no-daemon", "--no-daemon"))
}

// beads is bd; options are such as each of its commands takes.
func (p *peers) beads(key, shown string, options ...string) tracker {
	bd := func(w *trackerWorld, args ...string) ([]byte, error) {
		return w.run(append(append([]string{p.of["bd"]}, args...), options...)...)
	}
	return tracker{
		key: key, shown: shown,
		fill: func(w *trackerWorld, n int) error {
			if _, err := bd(w, "init", "--quiet", "--prefix", "own", "--skip-hooks", "--skip-merge-driver"); err != nil {
				return err
			}
			file, err := w.list(n, func(i int) string {
				return fmt.Sprintf(`{"id":"own-%04d","title":"item %d of a list","status":"open","priority":2,"issue_type":"task","created_at":"2026-11-01T00:00:00Z","updated_at":"2026-11-01T00:00:00Z"}`, i, i)
			})
			if err == nil && n > 0 {
				_, err = bd(w, "import", "-i", file)
			}
			return err
		},
		add: func(w *trackerWorld, title string) (string, error) {
			out, err := bd(w, "create", title, "--json")
			if err != nil {
				return "", err
			}
			return field(out, "id")
		},
		claim: func(w *trackerWorld) (string, error) {
			out, err := bd(w, "ready", "--limit", "1", "--json")
			if err != nil {
				return "", err
			}
			id, err := field(out, "id")
			if err != nil || id == "" {
				return "", errors.Join(err, errors.New("nothing is ready"))
			}
			_, err = bd(w, "update", id, "--claim", "--json")
			return id, err
		},
		done: func(w *trackerWorld, id string) error {
			_, err := bd(w, "close", id, "--reason", "was done", "--json")
			return err
		},
		list: func(w *trackerWorld) (int, error) {
			out, err := bd(w, "ready", "--limit", "5000", "--json")
			if err != nil {
				return 0, err
			}
			var items []json.RawMessage
			err = json.Unmarshal(out, &items)
			return len(items), err
		},
		has: func(w *trackerWorld, id string) (bool, error) {
			_, err := bd(w, "show", id, "--json")
			return err == nil, nil // it says that there is none
		},
	}
}

// items are steps of work items, each a start of the program, beside 1,000 that are ready.
func (p *peers) items() ([]figure, error) {
	const there = 1000
	steps := []struct{ key, shown string }{{"add", "an item added, × reprise's"}, {"claim", "the next claimed, × reprise's"}, {"done", "settled, × reprise's"}, {"list", "1,000 that are ready listed, × reprise's"}}
	trackers := p.trackers()
	worlds := make([]*trackerWorld, len(trackers))
	times := make([][4][]time.Duration, len(trackers))
	for k, t := range trackers {
		var err error
		if worlds[k], err = p.trackerWorld(t); err != nil {
			return nil, err
		}
		if err := t.fill(worlds[k], there); err != nil {
			return nil, fmt.Errorf("%s: %w", t.key, err)
		}
	}
	for i := range p.r.n + 1 {
		for k, t := range trackers {
			took, err := t.steps(worlds[k], fmt.Sprintf("more-%d", i), there)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.key, err)
			}
			if i > 0 { // the first start reads the programs from disk
				for s := range took {
					times[k][s] = append(times[k][s], took[s])
				}
			}
		}
	}
	for k, t := range trackers {
		for s, step := range steps {
			took := median(times[k][s])
			p.add("items", t.key, t.shown, step.key, step.shown, float64(took)/float64(median(times[0][s])), noiseClock, ms(took))
		}
	}
	return p.all, p.endDaemons()
}

// steps are the four of an item, and how long each took.
func (t tracker) steps(w *trackerWorld, title string, least int) (took [4]time.Duration, err error) {
	clock := func(i int, step func() error) {
		if err == nil {
			began := time.Now()
			err = step()
			took[i] = time.Since(began)
		}
	}
	var token string
	clock(0, func() error { _, err := t.add(w, title); return err })
	clock(1, func() (err error) { token, err = t.claim(w); return err })
	clock(2, func() error { return t.done(w, token) })
	clock(3, func() error {
		n, err := t.list(w)
		if err == nil && n < least {
			err = fmt.Errorf("%d are listed of %d", n, least)
		}
		return err
	})
	return took, err
}

// killedTracker adds items, a command each, and kills what runs of the program, its daemon
// too, at a moment of chance. What a command that ended well has added must be there.
func (p *peers) killedTracker(t tracker, rounds int) (k kills, err error) {
	w, err := p.trackerWorld(t)
	if err != nil {
		return k, err
	}
	if err := t.fill(w, 0); err != nil {
		return k, err
	}
	chance := rand.New(rand.NewPCG(1, 2))
	k.times = rounds
	var confirmed []string
	for round := range rounds {
		end := make(chan bool)
		time.AfterFunc(time.Duration(200+chance.IntN(1500))*time.Millisecond, func() {
			p.killAll(w.home)
			close(end)
		})
		for i, ended := 0, false; !ended; i++ {
			id, err := t.add(w, fmt.Sprintf("r%dn%d", round, i))
			if err == nil {
				confirmed = append(confirmed, id)
			}
			select {
			case <-end:
				ended = true
			default:
			}
		}
	}
	k.confirmed = len(confirmed)
	if _, err := t.list(w); err != nil {
		k.unreadable, k.gone = 1, k.confirmed
		return k, nil
	}
	for _, id := range confirmed {
		has, err := t.has(w, id)
		if err != nil {
			return k, err
		}
		if !has {
			k.gone++
		}
	}
	return k, p.endDaemons()
}

// killAll kills what runs with a home: they are the measurement's own, which is in a space of
// processes of its own.
func (p *peers) killAll(home string) {
	procs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, dir := range procs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		pid, bad := strconv.Atoi(filepath.Base(dir))
		if err == nil && bad == nil && pid != os.Getpid() && slices.Contains(strings.Split(string(env), "\x00"), "HOME="+home) {
			if proc, err := os.FindProcess(pid); err == nil {
				_ = proc.Kill() // it may have ended
			}
		}
	}
}

// endDaemons ends what trackers have left running.
func (p *peers) endDaemons() error {
	homes, err := filepath.Glob(filepath.Join(p.r.dir, "*-*"))
	for _, home := range homes {
		p.killAll(home)
	}
	return err
}
