package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"reprise/internal/durable"
	"reprise/internal/proc"
	"reprise/internal/queue"
)

// queueBench is "bench queue": worker processes that claim items until none is left,
// from the queue of files and from one in SQLite, by turns in the same run. Nothing is
// settled: a claim is what is measured. Beside them there is what a claim is made of, and
// no more: each worker renames files of its own, and syncs. "bench queue-worker" is such
// a process.
func queueBench(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("queue", flag.ContinueOnError)
	workers := flags.Int("workers", 8, "worker processes")
	items := flags.Int("items", 10_000, "items in the queue")
	rounds := flags.Int("n", 3, "rounds")
	if err := flags.Parse(args); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s %s/%s, %d CPUs, %d workers, %d items, load %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), *workers, *items, load())
	fmt.Fprint(out, "| queue | claims a second, by round | processor time a claim | claimed twice | against SQLite, synced | against bare renames |\n|---|---|---|---|---|---|\n")
	ways := []string{"files", "files, not synced", "sqlite, synced", "sqlite, synced at checkpoints", bareRenames}
	rates := map[string][]float64{}
	used := map[string]time.Duration{}
	twice := map[string]int{}
	for range *rounds {
		for _, way := range ways {
			rate, cpu, double, err := claimAll(way, *workers, *items)
			if err != nil {
				return fmt.Errorf("%s: %w", way, err)
			}
			rates[way] = append(rates[way], rate)
			used[way] += cpu / time.Duration(*items**rounds)
			twice[way] += double
		}
	}
	for _, way := range ways {
		var each []string
		against := map[string]float64{}
		for i, r := range rates[way] {
			each = append(each, fmt.Sprintf("%.0f", r))
			for _, other := range []string{"sqlite, synced", bareRenames} {
				against[other] += r / rates[other][i] / float64(*rounds)
			}
		}
		fmt.Fprintf(out, "| %s | %s | %s | %d | %.2f × | %.2f × |\n", way, strings.Join(each, ", "), used[way].Round(time.Microsecond), twice[way], against["sqlite, synced"], against[bareRenames])
	}
	return nil
}

// bareRenames is a rename and the syncing of both directories, by workers that do not
// meet: the most that a durable claim by rename can reach.
const bareRenames = "bare renames, synced"

// claimAll fills a queue, lets the workers empty it, and says how fast they were and what
// processor time they took.
func claimAll(way string, workers, items int) (rate float64, cpu time.Duration, double int, err error) {
	dir, err := os.MkdirTemp("", "reprise-bench-")
	if err != nil {
		return 0, 0, 0, err
	}
	defer os.RemoveAll(dir)
	if err := fillQueue(way, dir, items); err != nil {
		return 0, 0, 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, 0, 0, err
	}
	seen := map[string]bool{}
	var outs []*bufio.Scanner
	var starts []io.WriteCloser
	var cmds []*exec.Cmd
	for n := range workers {
		cmd := exec.Command(self, "queue-worker", way, dir, strconv.Itoa(n), strconv.Itoa(workers))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return 0, 0, 0, err
		}
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			return 0, 0, 0, err
		}
		if err := cmd.Start(); err != nil {
			return 0, 0, 0, err
		}
		defer func() { _ = cmd.Wait() }() // again, where it is waited for below
		s := bufio.NewScanner(pipe)
		if !s.Scan() || s.Text() != "ready" {
			return 0, 0, 0, errors.New("a worker did not start")
		}
		outs, starts, cmds = append(outs, s), append(starts, in), append(cmds, cmd)
	}
	begin := time.Now()
	for _, in := range starts {
		in.Close() // they begin when their input ends
	}
	var last time.Time
	for _, s := range outs {
		for s.Scan() {
			if at, ok := strings.CutPrefix(s.Text(), "end "); ok {
				ns, err := strconv.ParseInt(at, 10, 64)
				if err != nil {
					return 0, 0, 0, err
				}
				if t := time.Unix(0, ns); t.After(last) {
					last = t
				}
				continue
			}
			if seen[s.Text()] {
				double++
			}
			seen[s.Text()] = true
		}
	}
	if len(seen) != items {
		return 0, 0, 0, fmt.Errorf("%d of %d items were claimed", len(seen), items)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			return 0, 0, 0, err
		}
		cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return float64(items) / last.Sub(begin).Seconds(), cpu, double, nil
}

// claimer claims one item, or says that there is none.
type claimer func() (id string, ok bool, err error)

func queueWorker(args []string) error {
	if len(args) != 4 {
		return errors.New("usage: queue-worker WAY DIR NUMBER WORKERS")
	}
	number, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	workers, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	claim, err := openClaimer(args[0], args[1], number, workers)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	var ids []string
	for {
		id, ok, err := claim()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		ids = append(ids, id)
	}
	end := time.Now().UnixNano()
	w := bufio.NewWriter(os.Stdout)
	for _, id := range ids {
		fmt.Fprintln(w, id)
	}
	fmt.Fprintln(w, "end", end)
	return w.Flush()
}

func fillQueue(way, dir string, items int) error {
	if !strings.HasPrefix(way, "sqlite") {
		q := queue.Open(queue.Options{Dir: filepath.Join(dir, "queue"), Now: time.Now, Disk: unsynced, Host: "bench"})
		all := make([]queue.Item, items)
		for i := range all {
			all[i] = queue.Item{Title: "item " + strconv.Itoa(i), Body: strings.Repeat("What is to be done. ", 20)}
		}
		_, err := q.Add(context.Background(), all...)
		return err
	}
	c, err := openSQLite(way, dir)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Exec(`CREATE TABLE items (id INTEGER PRIMARY KEY, priority INTEGER, state TEXT, fence INTEGER, worker TEXT, until INTEGER, body TEXT);
		CREATE INDEX by_state ON items (state, priority, id);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ` + strconv.Itoa(items) + `)
		INSERT INTO items SELECT i, 5, 'ready', 0, '', 0, hex(zeroblob(200)) FROM n;`)
}

// unsynced leaves out the waits for the disk, to see what they cost.
var unsynced = durable.NewDisk(func(s durable.Step) *durable.Fault {
	if s.Op == durable.OpSync || s.Op == durable.OpSyncDir {
		return &durable.Fault{Skip: true}
	}
	return nil
})

func openSQLite(way, dir string) (*sqlite3.Conn, error) {
	c, err := sqlite3.Open("file:" + filepath.ToSlash(filepath.Join(dir, "queue.db")))
	if err != nil {
		return nil, err
	}
	sync := "FULL" // each commit waits for the disk, as a claim by files does
	if way == "sqlite, synced at checkpoints" {
		sync = "NORMAL"
	}
	return c, c.Exec("PRAGMA busy_timeout = 60000; PRAGMA journal_mode = WAL; PRAGMA synchronous = " + sync)
}

// renamer renames the files that are its own, one a call.
func renamer(dir string, number, workers int) (claimer, error) {
	from, to := filepath.Join(dir, "queue", "ready"), filepath.Join(dir, "queue", "claimed")
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil, err
	}
	return func() (string, bool, error) {
		if number >= len(entries) {
			return "", false, nil
		}
		name := entries[number].Name()
		number += workers
		err := os.Rename(filepath.Join(from, name), filepath.Join(to, name))
		for _, d := range []string{to, from} {
			if err == nil {
				err = syncDir(d)
			}
		}
		return name, err == nil, err
	}, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func openClaimer(way, dir string, number, workers int) (claimer, error) {
	if way == bareRenames {
		return renamer(dir, number, workers)
	}
	if strings.HasPrefix(way, "sqlite") {
		c, err := openSQLite(way, dir)
		if err != nil {
			return nil, err
		}
		st, _, err := c.Prepare(`UPDATE items SET state = 'claimed', fence = fence + 1, worker = ?, until = ?
			WHERE id = (SELECT id FROM items WHERE state = 'ready' ORDER BY priority, id LIMIT 1) RETURNING id`)
		if err != nil {
			return nil, err
		}
		return func() (string, bool, error) {
			if err := errors.Join(st.BindText(1, "w"), st.BindInt64(2, time.Now().Add(time.Minute).UnixMilli())); err != nil {
				return "", false, err
			}
			ok := st.Step()
			id := ""
			if ok {
				id = st.ColumnText(0)
				for st.Step() { // to its end, for that is the commit
				}
			}
			return id, ok, errors.Join(st.Err(), st.Reset())
		}, nil
	}
	self, err := proc.Self()
	if err != nil {
		return nil, err
	}
	opt := queue.Options{Dir: filepath.Join(dir, "queue"), Now: time.Now, Host: "bench", Process: self}
	if way == "files, not synced" {
		opt.Disk = unsynced
	}
	q := queue.Open(opt)
	return func() (string, bool, error) {
		// Not bound: the workers end one after the other, and what each has is to stay.
		c, err := q.Claim(context.Background(), queue.ClaimOptions{Worker: "w", Lease: 24 * time.Hour})
		if errors.Is(err, queue.ErrEmpty) {
			return "", false, nil
		}
		return c.Item.ID, err == nil, err
	}, nil
}
