package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/recall"
)

// recallBench is "bench recall": an index of so many documents and blocks, the
// questions of facts of the engine, and a process that asks one and ends.
// "bench ask" is that process.
func recallBench(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("recall", flag.ContinueOnError)
	docs := flags.Int("docs", 100_000, "derived documents")
	blocks := flags.Int("blocks", 10_000, "blocks of the memory")
	n := flags.Int("n", 200, "questions of each kind")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "reprise-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &recallRig{dir: dir, docs: *docs, n: *n, zipf: rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 4, 50_000), r: rand.New(rand.NewPCG(3, 4))}
	fmt.Fprintf(out, "%s %s/%s, %d CPUs, %d documents and %d blocks, %d questions of each kind, load %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), *docs, *blocks, *n, load())
	if err := b.writeBlocks(*blocks); err != nil {
		return err
	}
	x := recall.Open(recall.Options{IndexFile: b.index(), MemoryDir: b.memory(), Derive: b.derive})
	defer x.Close()
	start := time.Now()
	st, err := x.Rebuild(context.Background())
	if err != nil {
		return err
	}
	took := time.Since(start)
	fmt.Fprintf(out, "| what | p50 | p99 |\n|---|---|---|\n| rebuild: %.0f documents a second, %d MB | %.1f s | |\n", float64(st.Sections+st.Derived)/took.Seconds(), st.Bytes>>20, took.Seconds())
	for _, k := range []struct {
		name     string
		from, to int
		words    int
	}{{"rare", 10_000, 40_000, 3}, {"middling", 300, 2000, 6}, {"common", 0, 100, 6}} {
		var all []time.Duration
		for range b.n {
			q := b.question(k.from, k.to, k.words)
			start := time.Now()
			if _, err := x.Recall(context.Background(), q); err != nil {
				return err
			}
			all = append(all, time.Since(start))
		}
		b.line(out, "recall, "+k.name+" words", all)
	}
	fmt.Fprintf(out, "| RSS of this process | %s | |\n", rss())
	if err := x.Close(); err != nil {
		return err
	}
	return b.processes(out)
}

type recallRig struct {
	dir     string
	docs, n int
	zipf    *rand.Zipf
	r       *rand.Rand
}

func (b *recallRig) memory() string { return filepath.Join(b.dir, "memory") }
func (b *recallRig) index() string  { return filepath.Join(b.dir, "cache", "index.db") }

func (b *recallRig) text(n int) string {
	var s strings.Builder
	for range n {
		fmt.Fprintf(&s, "w%dq ", b.zipf.Uint64())
	}
	return s.String()
}

func (b *recallRig) writeBlocks(n int) error {
	dir := filepath.Join(b.memory(), "blocks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("reference-%d.md", i)), []byte("# Note\n\n"+b.text(20)+"\n"), 0o600); err != nil {
			return err
		}
	}
	old := time.Now().Add(-time.Hour) // nothing changed in the moment of the look
	for _, d := range []string{dir, b.memory()} {
		if err := os.Chtimes(d, old, old); err != nil {
			return err
		}
	}
	return nil
}

// derive stands for the fold of a log of events.
func (b *recallRig) derive(ctx context.Context, x *recall.Index) error {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const batch = 20_000
	for from := 0; from < b.docs; from += batch {
		err := x.Update(ctx, func(tx *recall.Tx) error {
			for i := from; i < min(b.docs, from+batch); i++ {
				session := "s" + strconv.Itoa(i/50)
				err := tx.Put(recall.Doc{ID: fmt.Sprintf("ep-%d", i), Class: recall.ClassEpisode, Project: "shop", Session: session, Source: "event-" + strconv.Itoa(i),
					Title: b.text(1), Text: b.text(20), Group: session, Ord: i % 50, Time: begin.Add(time.Duration(i) * time.Minute), Importance: b.r.Float64(), Keys: []string{"sig" + strconv.Itoa(i%5000)}})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *recallRig) question(from, to, n int) recall.Question {
	var ws []string
	for range n {
		ws = append(ws, fmt.Sprintf("w%dq", from+b.r.IntN(to-from)))
	}
	return recall.Question{Text: strings.Join(ws, " "), Reader: recall.Reader{Project: "shop"}}
}

func (b *recallRig) line(out io.Writer, what string, all []time.Duration) {
	slices.Sort(all)
	fmt.Fprintf(out, "| %s | %s | %s |\n", what, ms(all[len(all)/2]), ms(all[min(len(all)-1, len(all)*99/100)]))
}

// processes measures whole processes in turn: one that opens the index and
// asks, one that only opens, and one that does nothing.
func (b *recallRig) processes(out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	kinds := []string{"nothing", "key", "common"}
	all := make([][]time.Duration, len(kinds))
	cpu := make([][]time.Duration, len(kinds))
	memory := ""
	for range max(10, b.n/5) {
		for i, k := range kinds {
			q := b.question(0, 100, 6).Text
			start := time.Now()
			cmd := exec.Command(self, "ask", k, b.index(), b.memory(), q)
			text, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("ask %s: %w", k, err)
			}
			all[i] = append(all[i], time.Since(start))
			cpu[i] = append(cpu[i], cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			memory = strings.TrimSpace(string(text)) // a child's own figure would hold its parent's
		}
	}
	for i, name := range []string{"a process that does nothing", "a process that asks for a key", "a process that asks with common words"} {
		b.line(out, name, all[i])
		b.line(out, "its processor time", cpu[i])
	}
	fmt.Fprintf(out, "| RSS of such a process | %s | |\n", memory)
	return nil
}

func ask(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("ask: kind, index, memory and question are needed")
	}
	q := recall.Question{Reader: recall.Reader{Project: "shop"}}
	switch args[0] {
	case "nothing":
		return nil
	case "key":
		q.Keys = []string{"sig17"}
	default:
		q.Text = args[3]
	}
	x := recall.Open(recall.Options{IndexFile: args[1], MemoryDir: args[2], NoBuild: true})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := x.Recall(ctx, q); err != nil {
		return err
	}
	fmt.Println(rss())
	return x.Close()
}

// rss is the most memory that this process had, where the system tells.
func rss() string {
	data, _ := os.ReadFile("/proc/self/status")
	for _, l := range strings.Split(string(data), "\n") {
		if v, ok := strings.CutPrefix(l, "VmHWM:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(v)[0])
			return fmt.Sprintf("%.0f MB", float64(kb)/1024)
		}
	}
	return "unknown"
}

func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(data))[0]
}
