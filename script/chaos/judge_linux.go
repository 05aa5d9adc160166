package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	marker := []byte("\x00REPRISE_HOME=" + w.home + "\x00")
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
	out, err := w.must("reprise", "queue", "list", "--all", "--json")
	if err != nil {
		return nil, err
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

// check is one thing that is promised, how often it was looked at, and where it was not so.
type check struct {
	name  string
	n     int
	wrong []string
}

// is counts a look; where it is not so, what follows says how it is.
func (c *check) is(so bool, format string, args ...any) {
	c.n++
	if !so {
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	}
}

// report is what came of it all.
type report struct {
	done, dead, waiting, runs, attempts, lost int
	checks                                    []*check
	notes                                     []string
}

// check is the one of that name, in the order of their first use.
func (r *report) check(name string) *check {
	for _, c := range r.checks {
		if c.name == name {
			return c
		}
	}
	c := &check{name: name}
	r.checks = append(r.checks, c)
	return c
}

func (r *report) wrong() []string {
	var out []string
	for _, c := range r.checks {
		for _, s := range c.wrong {
			out = append(out, c.name+": "+s)
		}
	}
	return out
}

func (r *report) text(w *world) string {
	var b strings.Builder
	if w.opt.parts["loop"] {
		fmt.Fprintf(&b, "items: %d done, %d dead, %d waiting for a dead one; %d runs, %d attempts failed, %d claims lost\n", r.done, r.dead, r.waiting, r.runs, r.attempts, r.lost)
	}
	fmt.Fprintf(&b, "what happened: %s\n", w.blows.String())
	for _, n := range r.notes {
		fmt.Fprintln(&b, n)
	}
	fmt.Fprint(&b, "\n| what holds | looked at | not so |\n|---|---|---|\n")
	for _, c := range r.checks {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", c.name, c.n, len(c.wrong))
	}
	return b.String()
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
	c := rep.check("no process is left")
	left := w.processes()
	c.is(len(left) == 0, "%v", left)
	c = rep.check("all that were called ended in time, and said plainly what they refused")
	for _, a := range w.actors {
		c.n += a.n
		c.wrong = append(c.wrong, a.wrong...)
	}
	if w.opt.parts["loop"] {
		for _, judge := range []func(*report) error{w.judgeItems, w.judgePlaces} {
			if err := judge(rep); err != nil {
				return nil, err
			}
		}
		out, err := w.run("reprise", "queue", "check")
		rep.check("`queue check` finds nothing").is(err == nil, "%s", strings.TrimSpace(out))
	}
	if err := w.judgeRuns(rep); err != nil {
		return nil, err
	}
	return rep, w.judgeStores(rep)
}

// judgeItems: each item is where it should be, and came there once.
func (w *world) judgeItems(rep *report) error {
	items, err := w.list()
	if err != nil {
		return err
	}
	at := map[string]stood{}
	once, claims := rep.check("each item is settled once, and none is gone"), rep.check("no number of a claim was given twice")
	for _, it := range items {
		_, twice := at[it.ID]
		once.is(!twice, "%s is there twice", it.ID)
		at[it.ID] = it
	}
	its, bad, err := loop.Iterations(filepath.Join(w.data, "loop"), "")
	if err != nil {
		return err
	}
	rep.check("what the loops say can be read").is(bad == 0, "%d lines of the iterations cannot be read", bad)
	settled := map[string][]string{} // what the loops say
	for _, it := range its {
		settled[it.Item] = append(settled[it.Item], string(it.Fate))
	}
	for _, was := range w.items {
		it, ok := at[was.ID]
		if !ok {
			once.is(false, "%s is gone", was.ID)
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
				fences[e.Fence]++
				claims.is(fences[e.Fence] == 1, "%s was claimed twice under the number %d", it.ID, e.Fence)
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
			once.is(len(ends) == 1 && said <= 1, "%s is done %d times by its history, %d by the loops", it.ID, len(ends), said)
			once.is(was.good, "%s is done, and cannot be: %s", it.ID, was.Title)
		case queue.Dead:
			rep.dead++
			once.is(len(ends) == 0 && said == 0, "%s is dead, and was done", it.ID)
		default:
			waits := slices.ContainsFunc(it.DependsOn, func(d string) bool { return at[d].State == queue.Dead })
			once.is(waits, "%s is %s", it.ID, it.State)
			rep.waiting++
		}
	}
	return nil
}

// judgeRuns: all have ended, and each claim had one at most.
func (w *world) judgeRuns(rep *report) error {
	runs, err := w.records()
	if err != nil {
		return err
	}
	rep.runs = len(runs)
	ended, one := rep.check("each run has ended"), rep.check("each claim had one run at most")
	byKey := map[string]string{}
	for _, r := range runs {
		ended.is(r.settled(), "%s is %s", r.ID, r.Status)
		if r.Key == "" {
			continue // not of a loop
		}
		other, twice := byKey[r.Key]
		one.is(!twice, "%s and %s are of one claim, %s", r.ID, other, r.Key)
		byKey[r.Key] = r.ID
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
	work, gone := rep.check("what is done is on its branch, once"), rep.check("no worktree of what is done is left")
	log, err := os.ReadFile(filepath.Join(w.home, "state", "log", "reprise.log"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	said, named := string(log), 0
	want := map[string]string{}
	for _, it := range w.items {
		want[it.ID] = strings.Join(append(slices.Clone(it.DependsOn), it.ID), "\n")
	}
	for _, it := range items {
		if it.State != queue.Done {
			continue
		}
		text, err := w.run("git", "show", "loop-"+it.ID+":work.txt")
		should, ok := want[it.ID]
		if !ok {
			should = it.ID // added while the loop was at work
		}
		work.is(err == nil && strings.TrimSpace(text) == should, "the branch of %s has %q and not %q: %v", it.ID, strings.TrimSpace(text), should, err)
		left := strings.Contains(trees, "/loop-"+it.ID+"\n")
		if left && w.excused(w.start0) && strings.Contains(said, "remove workspace loop-"+it.ID+": ") {
			named++ // it could not be taken away at that moment, and the log says so
			continue
		}
		gone.is(!left, "%s is done, and its worktree is left", it.ID)
	}
	if named > 0 {
		rep.notes = append(rep.notes, fmt.Sprintf("worktrees that could not be taken away when the machine was ill, and are left: %d", named))
	}
	for name := range strings.Lines(trees) {
		if dir, ok := strings.CutPrefix(strings.TrimSpace(name), "worktree "); ok {
			_, err := os.Stat(dir)
			gone.is(err == nil, "git knows the worktree %s, which is not there", dir)
		}
	}
	return nil
}
