// Command bench measures the built programs as their users start them and
// prints markdown tables: go run ./script/bench [-n 20] [-only start,hooks]
// With more to set, go run ./script/bench recall [-docs 100000] measures the
// search index, go run ./script/bench import [-mb 100] the taking in of
// transcripts, and go run ./script/bench queue [-workers 8] claims of work items.
// go run ./script/bench compare measures the figures that script/bench/figures.json keeps,
// those of other people's programs among them, and fails where one is beyond its noise;
// record writes that file, and the tables that documents have of it. Both take parts of it
// by -only, and leave what this machine cannot measure as it was recorded.
//
// Everything is measured beside a yardstick of the same run, for two cores that
// others share make bare numbers worth little. It writes only below a temporary
// directory, which it removes, and takes no lock.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) > 1 && slices.Contains([]string{"recall", "ask", "import", "queue", "queue-worker", "peers-apart", "compare", "record", "decode"}, os.Args[1]) {
		run := func(args []string) error { return recallBench(args, os.Stdout) }
		switch os.Args[1] {
		case "ask":
			run = ask
		case "import":
			run = func(args []string) error { return importBench(args, os.Stdout) }
		case "queue":
			run = func(args []string) error { return queueBench(args, os.Stdout) }
		case "compare", "record":
			record := os.Args[1] == "record"
			run = func(args []string) error { return compareBench(record, args, os.Stdout) }
		case "peers-apart":
			run = peersApart
		case "queue-worker":
			run = queueWorker
		case "decode":
			run = decode
		}
		if err := run(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	n := flag.Int("n", 20, "how often each thing is measured")
	only := flag.String("only", "", "measure just these, with commas between: "+strings.Join(names, ", "))
	keep := flag.Bool("keep", false, "leave the temporary directory, to look at what was measured")
	flag.Parse()
	if err := bench(*n, *only, *keep, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// names are what can be measured, in the order of the report.
var names = []string{"start", "call", "spawn", "supervisor", "small", "hooks", "sessions", "state", "tasks", "loop", "idle", "many", "import", "recall"}

// row is one line of the table.
type row struct {
	what, value, against, aim string
}

type rig struct {
	dir, reprise, hook, bare, empty, rss, spent, agent string
	env                                                []string
	n                                                  int
}

func bench(n int, only string, keep bool, out io.Writer) error {
	if n < 1 {
		return fmt.Errorf("-n %d: at least one measurement is needed", n)
	}
	chosen := names
	if only != "" {
		chosen = strings.Split(only, ",")
		for _, name := range chosen {
			if !slices.Contains(names, name) {
				return fmt.Errorf("-only %s: there is no such measurement; there are %s", name, strings.Join(names, ", "))
			}
		}
	}
	dir, err := os.MkdirTemp("", "reprise-bench-")
	if err != nil {
		return err
	}
	if keep {
		fmt.Fprintln(out, dir)
	} else {
		defer os.RemoveAll(dir)
	}
	r, err := newRig(dir, n)
	if err != nil {
		return err
	}
	table := map[string]func() ([]row, error){
		"start": r.coldStart, "call": r.roundTrip, "spawn": r.spawn, "supervisor": r.supervisor, "small": r.hookStart, "hooks": r.hooks, "sessions": r.sessions, "state": r.state,
		"tasks": r.tasks, "loop": r.loopItems, "idle": r.loopIdle, "many": r.loopMany,
	}
	fmt.Fprintf(out, "%s %s/%s, %d CPUs, medians of %d, load %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), n, load())
	head := "| what | measured | yardstick in the same run | aim |\n|---|---|---|---|\n"
	for _, name := range chosen {
		measure := table[name]
		if measure == nil {
			continue
		}
		rows, err := measure()
		if err != nil {
			return err
		}
		for _, row := range rows {
			fmt.Fprintf(out, "%s| %s | %s | %s | %s |\n", head, row.what, row.value, row.against, row.aim)
			head = ""
		}
	}
	// The index makes this process large, which its children's memory would show.
	if slices.Contains(chosen, "import") {
		fmt.Fprintln(out)
		if err := importBench([]string{"-mb", "20"}, out); err != nil {
			return err
		}
	}
	if slices.Contains(chosen, "recall") {
		fmt.Fprintln(out)
		return recallBench(nil, out)
	}
	return nil
}

func newRig(dir string, n int) (*rig, error) {
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator),
		"./cmd/...", "./script/bench/bare", "./script/bench/empty", "./script/bench/rss", "./script/bench/spent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build (run this from the root of the repository): %w", err)
	}
	r := &rig{dir: dir, n: n}
	r.paths(dir)
	r.agent = filepath.Join(dir, "agent.sh")
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo agent 1; exit; }\nread task\n[ \"$task\" = wait ] && while :; do sleep 60; done\necho done\n"
	if err := os.WriteFile(r.agent, []byte(script), 0o700); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "config.yaml")
	settings := fmt.Sprintf("claude_cli: {path: %q}\nmemory: {directory: %q}\nsub_agent: {sync_window_seconds: 1}\n", r.agent, filepath.Join(dir, "memory"))
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		return nil, err
	}
	r.env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "REPRISE_CONFIG=" + config}
	return r, nil
}

// paths has the programs where they were built.
func (r *rig) paths(dir string) {
	at := func(name string) string {
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		return filepath.Join(dir, name)
	}
	r.reprise, r.hook, r.bare, r.empty, r.rss, r.spent = at("reprise"), at("reprise-hook"), at("bare"), at("empty"), at("rss"), at("spent")
}

func median(d []time.Duration) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)) }

func ratio(a, b time.Duration) string { return fmt.Sprintf("%.2f ×", float64(a)/float64(b)) }

// peer is a server that is spoken to in lines.
type peer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	id  int
}

func (r *rig) start(path string, args ...string) (*peer, error) {
	return startIn(r.dir, r.env, path, args...)
}

func (p *peer) call(method string, params any) (json.RawMessage, error) {
	p.id++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": p.id, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	for {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		var m struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", method, line, err)
		}
		if m.ID != p.id {
			continue // a notification
		}
		if m.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, m.Error)
		}
		return m.Result, nil
	}
}

func (p *peer) handshake() error {
	_, err := p.call("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "bench", "version": "0"},
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(p.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	return err
}

// tool calls a tool and gives its structured answer.
func (p *peer) tool(name string, args map[string]any) (map[string]any, error) {
	raw, err := p.call("tools/call", map[string]any{"name": name, "arguments": args})
	if err != nil {
		return nil, err
	}
	var r struct {
		IsError           bool
		StructuredContent map[string]any
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	if r.IsError {
		return nil, fmt.Errorf("%s: %s", name, raw)
	}
	return r.StructuredContent, nil
}

// text calls a tool and gives its answer's text.
func (p *peer) text(name string, args map[string]any) (string, error) {
	raw, err := p.call("tools/call", map[string]any{"name": name, "arguments": args})
	if err != nil {
		return "", err
	}
	var r struct {
		IsError bool
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return "", err
	}
	if r.IsError || len(r.Content) == 0 {
		return "", fmt.Errorf("%s: %s", name, raw)
	}
	return r.Content[0].Text, nil
}

func (p *peer) end() error {
	if err := p.in.Close(); err != nil {
		return err
	}
	if err := p.cmd.Wait(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return err
		}
	}
	return nil
}

// coldStart is from exec to the answer to tools/list.
func (r *rig) coldStart() ([]row, error) {
	once := func(path string, args ...string) (time.Duration, error) {
		began := time.Now()
		p, err := r.start(path, args...)
		if err != nil {
			return 0, err
		}
		if err := p.handshake(); err != nil {
			return 0, err
		}
		if _, err := p.call("tools/list", map[string]any{}); err != nil {
			return 0, err
		}
		took := time.Since(began)
		return took, p.end()
	}
	var ours, bare []time.Duration
	for range r.n + 1 {
		a, err := once(r.reprise, "mcp")
		if err != nil {
			return nil, err
		}
		b, err := once(r.bare)
		if err != nil {
			return nil, err
		}
		ours, bare = append(ours, a), append(bare, b)
	}
	a, b := median(ours[1:]), median(bare[1:]) // the first start reads the programs from disk
	return []row{{"cold start of `reprise mcp` to `tools/list` answered", ms(a), "the SDK's bare server: " + ms(b) + ", so " + ratio(a, b), "≤ 1.5 ×"}}, nil
}

// roundTrip is one small tool call on an open session.
func (r *rig) roundTrip() ([]row, error) {
	many := func(p *peer, name string, args map[string]any) (time.Duration, error) {
		if err := p.handshake(); err != nil {
			return 0, err
		}
		var all []time.Duration
		for range r.n*10 + 1 {
			began := time.Now()
			if _, err := p.tool(name, args); err != nil {
				return 0, err
			}
			all = append(all, time.Since(began))
		}
		return median(all[1:]), p.end()
	}
	p, err := r.start(r.reprise, "mcp")
	if err != nil {
		return nil, err
	}
	ours, err := many(p, "memory_read", map[string]any{"name": "core"})
	if err != nil {
		return nil, err
	}
	if p, err = r.start(r.bare); err != nil {
		return nil, err
	}
	bare, err := many(p, "echo", map[string]any{"text": "x"})
	if err != nil {
		return nil, err
	}
	return []row{{"round trip of a tool call (`memory_read`)", ms(ours), "the bare server's echo: " + ms(bare), ""}}, nil
}

// spawn is what a run costs over running its command.
func (r *rig) spawn() ([]row, error) {
	ours, bare, err := r.spawnTimes()
	if err != nil {
		return nil, err
	}
	a, b := median(ours), median(bare)
	return []row{{"`spawn_agent` of an agent that answers at once", ms(a), "the same command bare: " + ms(b) + ", so " + ms(a-b) + " more", "≤ 15 ms more"}}, nil
}

// spawnTimes are how long the call of the tool takes, and the command alone, in turn.
func (r *rig) spawnTimes() (ours, bare []time.Duration, err error) {
	p, err := r.start(r.reprise, "mcp")
	if err != nil {
		return nil, nil, err
	}
	if err := p.handshake(); err != nil {
		return nil, nil, err
	}
	for range r.n + 1 {
		began := time.Now()
		a, err := p.tool("spawn_agent", map[string]any{"task": "go"})
		if err != nil {
			return nil, nil, err
		}
		if a["status"] != "complete" {
			return nil, nil, fmt.Errorf("spawn_agent: %v", a)
		}
		ours = append(ours, time.Since(began))
		began = time.Now()
		cmd := exec.Command(r.agent)
		cmd.Env, cmd.Stdin = r.env, strings.NewReader("go\n")
		if out, err := cmd.Output(); err != nil || string(out) != "done\n" {
			return nil, nil, fmt.Errorf("agent: %q, %w", out, err)
		}
		bare = append(bare, time.Since(began))
	}
	return ours[1:], bare[1:], p.end()
}

// supervisor is the memory of the process that owns a run.
func (r *rig) supervisor() ([]row, error) {
	if runtime.GOOS != "linux" {
		return []row{{"memory of a run's supervisor", "not measured here", "", "≤ 12 MB"}}, nil
	}
	all, private, err := r.supervisorSize()
	return []row{{"memory of a run's supervisor (RSS)", fmt.Sprintf("%.1f MB", all), fmt.Sprintf("of it private: %.1f MB", private), "≤ 12 MB"}}, err
}

// supervisorSize is how many megabytes it has resident, and how many of these are its alone.
func (r *rig) supervisorSize() (all, private float64, err error) {
	p, err := r.start(r.reprise, "mcp")
	if err != nil {
		return 0, 0, err
	}
	if err := p.handshake(); err != nil {
		return 0, 0, err
	}
	a, err := p.tool("spawn_agent", map[string]any{"task": "wait"})
	if err != nil {
		return 0, 0, err
	}
	record, _ := a["record"].(string)
	data, err := os.ReadFile(record)
	if err != nil {
		return 0, 0, err
	}
	var run struct {
		Supervisor struct{ PID int } `json:"supervisor"`
	}
	if err := json.Unmarshal(data, &run); err != nil {
		return 0, 0, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", run.Supervisor.PID))
	if err != nil {
		return 0, 0, err
	}
	return statusField(string(status), "VmRSS"), statusField(string(status), "RssAnon"), p.end()
}

// statusField is a size in /proc/PID/status, in megabytes; 0 where it is not there.
func statusField(status, name string) float64 {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kb, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB")) // 0 shows
			return float64(kb) / 1024
		}
	}
	return 0
}

// hookStart is what each tool call of an agent pays for.
func (r *rig) hookStart() ([]row, error) {
	once := func(path string, args ...string) (time.Duration, error) {
		began := time.Now()
		cmd := exec.Command(path, args...)
		cmd.Env = r.env
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return 0, err
		}
		return time.Since(began), nil
	}
	var hook, whole, nothing []time.Duration
	for range r.n + 1 {
		a, err := once(r.hook)
		if err != nil {
			return nil, err
		}
		b, err := once(r.reprise, "--version")
		if err != nil {
			return nil, err
		}
		c, err := once("/bin/sh", "-c", ":")
		if err != nil {
			return nil, err
		}
		hook, whole, nothing = append(hook, a), append(whole, b), append(nothing, c)
	}
	a, b, c := median(hook[1:]), median(whole[1:]), median(nothing[1:])
	return []row{{"start and end of `reprise-hook`", ms(a), "`reprise --version`: " + ms(b) + "; a shell that does nothing: " + ms(c), ""}}, nil
}
