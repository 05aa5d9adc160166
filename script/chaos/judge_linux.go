package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"reprise/internal/loop"
	"reprise/internal/queue"
)

// process is a run that lives.
type process struct {
	run               string
	supervisor, agent int
}

// record is what is needed of a run's record.
type record struct {
	ID         string     `json:"id"`
	Status     string     `json:"status"`
	Key        string     `json:"idempotency_key"`
	StartedAt  time.Time  `json:"started_at"`
	EndedAt    *time.Time `json:"ended_at"`
	PID        int        `json:"pid"`
	Supervisor *struct {
		PID int `json:"pid"`
	} `json:"supervisor"`
}

func (r *record) settled() bool { return r.EndedAt != nil }

// records are those of all runs, read from disk without reprise: asking it would settle
// them.
func (w *world) records() ([]record, error) {
	dir := filepath.Join(w.data, "runs")
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []record
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), "run-") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, n.Name(), "run.json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was killed before it had one
		}
		var r record
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name(), err)
		}
		out = append(out, r)
	}
	return out, nil
}

// live are the runs that can be hit.
func (w *world) live() ([]process, error) {
	all, err := w.records()
	if err != nil {
		return nil, err
	}
	mine := w.processes()
	var out []process
	for _, r := range all {
		p := process{run: r.ID}
		if r.settled() {
			continue
		}
		if _, ok := mine[r.PID]; ok {
			p.agent = r.PID
		}
		if r.Supervisor != nil {
			if _, ok := mine[r.Supervisor.PID]; ok {
				p.supervisor = r.Supervisor.PID
			}
		}
		if p.agent+p.supervisor > 0 {
			out = append(out, p)
		}
	}
	return out, nil
}

// processes are those of this world, by the home in their environment, with their
// command lines. A pid that was given to a stranger meanwhile is not among them.
func (w *world) processes() map[int]string {
	marker := []byte("\x00REPRISE_HOME=" + filepath.Join(w.dir, "data") + "\x00")
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	out := map[int]string{}
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile(filepath.Join(d, "environ"))
		if err != nil || !bytes.Contains(append([]byte{0}, environ...), marker) {
			continue
		}
		line, err := os.ReadFile(filepath.Join(d, "cmdline"))
		if err == nil && len(line) > 0 { // a dead one that nobody has waited for has none
			out[pid] = strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return out
}

// killAll ends what is left, and says how many there were.
func (w *world) killAll() int {
	w.kill()
	n := 0
	for range 20 {
		left := w.processes()
		for pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(left) == 0 {
			break
		}
		n = max(n, len(left))
		time.Sleep(50 * time.Millisecond)
	}
	return n
}

// stood is an item as the queue says at the end.
type stood struct {
	queue.Item
	State  queue.State `json:"state"`
	Parked bool        `json:"parked"`
}

func (w *world) list() ([]stood, error) {
	out, err := w.run("reprise", "queue", "list", "--all", "--json")
	if err != nil {
		return nil, fmt.Errorf("queue list: %w\n%s", err, out)
	}
	var l struct {
		Items    []stood         `json:"items"`
		Problems []queue.Trouble `json:"problems"`
	}
	if err := json.Unmarshal([]byte(out), &l); err != nil {
		return nil, fmt.Errorf("queue list: %w\n%s", err, out)
	}
	if len(l.Problems) > 0 {
		return nil, fmt.Errorf("queue list: %v", l.Problems)
	}
	return l.Items, nil
}

// left is how many items can still become done or dead.
func (w *world) left() (int, error) {
	items, err := w.list()
	n := 0
	dead := map[string]bool{}
	for _, it := range items {
		dead[it.ID] = it.State == queue.Dead
	}
	for _, it := range items {
		waits := slices.ContainsFunc(it.DependsOn, func(d string) bool { return dead[d] })
		if it.State != queue.Done && it.State != queue.Dead && !waits {
			n++
		}
	}
	return n, err
}

// report is what came of it all.
type report struct {
	done, dead, waiting, runs, attempts, lost int
	wrong                                     []string
}

func (r *report) bad(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

func (r *report) text(blows map[string]int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "items: %d done, %d dead, %d waiting for a dead one; %d runs, %d attempts failed, %d claims lost\nblows:", r.done, r.dead, r.waiting, r.runs, r.attempts, r.lost)
	for i, what := range slices.Sorted(maps.Keys(blows)) {
		sep := ","
		if i == 0 {
			sep = ""
		}
		fmt.Fprintf(&b, "%s %s %d", sep, what, blows[what])
	}
	return b.String() + "\n"
}

// judge looks at everything after the end.
func (w *world) judge() (*report, error) {
	rep := &report{}
	// Whatever was killed at once is gone a second after the next command.
	if out, err := w.run("reprise", "runs", "list"); err != nil {
		return nil, fmt.Errorf("runs list: %w\n%s", err, out)
	}
	deadline := time.Now().Add(time.Second)
	for len(w.processes()) > 0 && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	for pid, line := range w.processes() {
		rep.bad("process %d is left: %s", pid, line)
	}
	if err := w.judgeItems(rep); err != nil {
		return nil, err
	}
	if err := w.judgeRuns(rep); err != nil {
		return nil, err
	}
	if out, err := w.run("reprise", "queue", "check"); err != nil {
		rep.bad("queue check: %s", strings.TrimSpace(out))
	}
	return rep, w.judgePlaces(rep)
}

// judgeItems: each item is where it should be, and came there once.
func (w *world) judgeItems(rep *report) error {
	items, err := w.list()
	if err != nil {
		return err
	}
	at := map[string]stood{}
	for _, it := range items {
		if _, twice := at[it.ID]; twice {
			rep.bad("%s is there twice", it.ID)
		}
		at[it.ID] = it
	}
	its, bad, err := loop.Iterations(filepath.Join(w.data, "loop"), "")
	if err != nil {
		return err
	}
	if bad > 0 {
		rep.bad("%d lines of the iterations cannot be read", bad)
	}
	settled := map[string][]string{} // what the loops say
	for _, it := range its {
		settled[it.Item] = append(settled[it.Item], string(it.Fate))
	}
	for _, was := range w.items {
		it, ok := at[was.ID]
		if !ok {
			rep.bad("%s is gone", was.ID)
			continue
		}
		rep.attempts += it.Attempts
		rep.lost += it.Lost
		var ends []string
		fences := map[uint64]int{}
		for _, e := range it.History {
			switch e.Op {
			case queue.OpDone:
				ends = append(ends, e.Op)
			case queue.OpClaim:
				if fences[e.Fence]++; fences[e.Fence] > 1 {
					rep.bad("%s was claimed twice under the number %d", it.ID, e.Fence)
				}
			}
		}
		said := 0
		for _, f := range settled[it.ID] {
			if f == "done" {
				said++
			}
		}
		switch it.State {
		case queue.Done:
			rep.done++
			if len(ends) != 1 || said > 1 {
				rep.bad("%s is done %d times by its history, %d by the loops", it.ID, len(ends), said)
			}
			if !was.good {
				rep.bad("%s is done, and cannot be: %s", it.ID, was.Title)
			}
		case queue.Dead:
			rep.dead++
			if len(ends) > 0 || said > 0 {
				rep.bad("%s is dead, and was done", it.ID)
			}
		default:
			if !slices.ContainsFunc(it.DependsOn, func(d string) bool { return at[d].State == queue.Dead }) {
				rep.bad("%s is %s", it.ID, it.State)
			}
			rep.waiting++
		}
	}
	return nil
}

// judgeRuns: all have ended, each claim had one at most, and those of one item one after
// the other.
func (w *world) judgeRuns(rep *report) error {
	runs, err := w.records()
	if err != nil {
		return err
	}
	rep.runs = len(runs)
	byKey, byItem := map[string]string{}, map[string][]record{}
	for _, r := range runs {
		if !r.settled() {
			rep.bad("%s is %s", r.ID, r.Status)
			continue
		}
		if other, twice := byKey[r.Key]; twice {
			rep.bad("%s and %s are of one claim, %s", r.ID, other, r.Key)
		}
		byKey[r.Key] = r.ID
		id, _, _ := strings.Cut(strings.TrimPrefix(r.Key, "loop:"), ":")
		byItem[id] = append(byItem[id], r)
	}
	return nil
}

// judgePlaces: what was done is on its branch, once, upon what it builds on, and no
// worktree of it is left.
func (w *world) judgePlaces(rep *report) error {
	items, err := w.list()
	if err != nil {
		return err
	}
	trees, err := w.run("git", "worktree", "list", "--porcelain")
	if err != nil {
		return fmt.Errorf("git worktree list: %w\n%s", err, trees)
	}
	want := map[string]string{}
	for _, it := range w.items {
		want[it.ID] = strings.Join(append(slices.Clone(it.DependsOn), it.ID), "\n")
	}
	for _, it := range items {
		if it.State != queue.Done {
			continue
		}
		text, err := w.run("git", "show", "loop-"+it.ID+":work.txt")
		if err != nil || strings.TrimSpace(text) != want[it.ID] {
			rep.bad("the branch of %s has %q and not %q: %v", it.ID, strings.TrimSpace(text), want[it.ID], err)
		}
		if strings.Contains(trees, "/loop-"+it.ID+"\n") {
			rep.bad("%s is done, and its worktree is left", it.ID)
		}
	}
	for name := range strings.Lines(trees) {
		if dir, ok := strings.CutPrefix(strings.TrimSpace(name), "worktree "); ok {
			if _, err := os.Stat(dir); err != nil {
				rep.bad("git knows the worktree %s, which is not there", dir)
			}
		}
	}
	return nil
}
