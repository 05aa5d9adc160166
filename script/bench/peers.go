package main

import (
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

// peersDir has what is measured beside reprise, as npm installs it from the lock file.
const peersDir = "script/bench/peers"

// apartVar says that this process is the one in a network of its own.
const apartVar = "REPRISE_BENCH_APART"

// peersBench is "bench peers": programs that do some of what reprise does, side by side
// with it. They are other people's, so each has an empty environment and a home of its
// own, and all run where there is no network but loopback and where every process ends
// with the measurement (namespaces of Linux, which need root).
func peersBench(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	n := flags.Int("n", 15, "how often each start and call is measured")
	questions := flags.Int("questions", 290, "how many questions of the own set are asked")
	only := flags.String("only", "", "just these tables, with commas between: servers, hooks, search, kill")
	rounds := flags.Int("rounds", 20, "how often each is killed while it writes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		return errors.New("peers are only started where they reach no network: that needs Linux and root")
	}
	if os.Getenv(apartVar) == "" {
		if err := installPeers(); err != nil {
			return err
		}
		return apart(args)
	}
	if err := exec.Command("ip", "link", "set", "lo", "up").Run(); err != nil {
		return fmt.Errorf("ip link set lo up: %w", err)
	}
	dir, err := os.MkdirTemp("", "reprise-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r, err := newRig(dir, *n)
	if err != nil {
		return err
	}
	p, err := newPeers(r)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s %s/%s, %d CPUs, medians of %d, load %s; %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), *n, load(), p.versions())
	for _, part := range []struct {
		name, head string
		measure    func() ([][]string, error)
	}{
		{"servers", "| server | start to `tools/list` answered | of the bare server's | a small call | RSS | what its tools cost a context |\n|---|---|---|---|---|---|", p.servers},
		{"hooks", "| hook | by the clock | of an empty Go program's | processor time |\n|---|---|---|---|", p.hooks},
		{"search", "| search | found among 5 | among 10 | nothing found | a search | the index made |\n|---|---|---|---|---|---|", func() ([][]string, error) { return p.search(*questions) }},
		{"kill", "| killed while it writes | confirmed writes | of them gone | kills after which the store could not be read |\n|---|---|---|---|", func() ([][]string, error) { return p.durability(*rounds) }},
	} {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), part.name) {
			continue
		}
		rows, err := part.measure()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\n%s\n", part.head)
		for _, row := range rows {
			fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
		}
	}
	return nil
}

// installPeers has npm install what the lock file names, without running any package's own
// script.
func installPeers() error {
	lock, err := os.ReadFile(filepath.Join(peersDir, "package-lock.json"))
	if err != nil {
		return fmt.Errorf("%w (run this from the root of the repository)", err)
	}
	mark := filepath.Join(peersDir, "node_modules", ".installed")
	if was, err := os.ReadFile(mark); err == nil && string(was) == string(lock) {
		return nil
	}
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-progress", "--loglevel=error")
	cmd.Dir, cmd.Stdout, cmd.Stderr = peersDir, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("npm ci in %s: %w", peersDir, err)
	}
	return os.WriteFile(mark, lock, 0o600)
}

// apart runs this measurement once more, with no network and with processes of its own.
func apart(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command("unshare", append([]string{"--net", "--pid", "--fork", "--mount-proc", "--kill-child", self, "peers"}, args...)...)
	cmd.Env = append(os.Environ(), apartVar+"=yes", "GOFLAGS=-mod=mod", "GOPROXY=off")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// peers are the programs, as they are installed.
type peers struct {
	r    *rig
	pkgs string // node_modules
	node string
	env  []string // of each, with its own HOME before
}

func newPeers(r *rig) (*peers, error) {
	pkgs, err := filepath.Abs(filepath.Join(peersDir, "node_modules"))
	if err != nil {
		return nil, err
	}
	bin := filepath.Join(r.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return nil, err
	}
	node := filepath.Join(pkgs, "node", "bin", "node")
	// What the package bun links to its program only its install script puts there.
	for name, of := range map[string]string{"node": node, "bun": filepath.Join(pkgs, "@oven", "bun-linux-x64", "bin", "bun")} {
		if err := os.Symlink(of, filepath.Join(bin, name)); err != nil {
			return nil, err
		}
	}
	return &peers{r: r, pkgs: pkgs, node: node, env: []string{"PATH=" + bin + ":/usr/bin:/bin", "LANG=C.UTF-8"}}, nil
}

// home is a new home of a program, and its environment.
func (p *peers) home(name string) (dir string, env []string, err error) {
	if dir, err = os.MkdirTemp(p.r.dir, name+"-"); err != nil {
		return "", nil, err
	}
	return dir, append([]string{"HOME=" + dir}, p.env...), nil
}

func (p *peers) versions() string {
	var all []string
	for _, name := range []string{"@modelcontextprotocol/server-memory", "@tobilu/qmd", "claude-mem", "bun", "node"} {
		var pkg struct{ Version string }
		data, err := os.ReadFile(filepath.Join(p.pkgs, name, "package.json"))
		if err == nil {
			err = json.Unmarshal(data, &pkg)
		}
		if err != nil {
			pkg.Version = "?"
		}
		all = append(all, name+" "+pkg.Version)
	}
	return strings.Join(all, ", ")
}

// mcp starts one of the servers in a home.
func (p *peers) mcp(name, home string, env []string) (*peer, error) {
	switch name {
	case "reprise":
		return startIn(home, append(env, "REPRISE_HOME="+filepath.Join(home, "data")), p.r.reprise, "mcp")
	case "bare":
		return startIn(home, env, p.r.bare)
	case "server-memory":
		return quietIn(home, append(env, "MEMORY_FILE_PATH="+filepath.Join(home, "memory.jsonl")), p.node, filepath.Join(p.pkgs, "@modelcontextprotocol/server-memory/dist/index.js"))
	case "qmd":
		return quietIn(home, env, p.node, filepath.Join(p.pkgs, "@tobilu/qmd/bin/qmd"), "mcp")
	case "claude-mem":
		return quietIn(home, append(env, "CLAUDE_PLUGIN_ROOT="+filepath.Join(p.pkgs, "claude-mem/plugin")), p.node, filepath.Join(p.pkgs, "claude-mem/plugin/scripts/mcp-server.cjs"))
	}
	return nil, fmt.Errorf("there is no server %s", name)
}

// quietIn starts a server whose notes are not of interest.
func quietIn(dir string, env []string, path string, args ...string) (*peer, error) {
	// The shell is replaced by the program: it is there for standard error alone.
	return startIn(dir, env, "/bin/sh", append([]string{"-c", `exec "$@" 2>/dev/null`, "sh", path}, args...)...)
}

// servers are started until they have told their tools, and asked something small.
func (p *peers) servers() ([][]string, error) {
	type figures struct {
		start, call time.Duration
		rss         int64
		tools       int
	}
	all := map[string]*[]figures{}
	list := []struct {
		name, shown, tool string
		args              map[string]any
	}{
		{"bare", "the SDK's bare server", "echo", map[string]any{"text": "x"}},
		{"reprise", "`reprise mcp`", "memory_read", map[string]any{"name": "core"}},
		{"server-memory", "server-memory (node)", "read_graph", map[string]any{}},
		{"qmd", "`qmd mcp` (node)", "status", map[string]any{}},
		{"claude-mem", "claude-mem's (node)", "", nil},
	}
	for _, one := range list {
		all[one.name] = &[]figures{}
	}
	for i := range p.r.n + 1 {
		for _, one := range list {
			home, env, err := p.home(one.name)
			if err != nil {
				return nil, err
			}
			f := figures{}
			began := time.Now()
			s, err := p.mcp(one.name, home, env)
			if err != nil {
				return nil, err
			}
			if err := s.handshake(); err != nil {
				return nil, fmt.Errorf("%s: %w", one.name, err)
			}
			raw, err := s.call("tools/list", map[string]any{})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.name, err)
			}
			f.start, f.tools = time.Since(began), len(raw)
			var calls []time.Duration
			for range 20 {
				if one.tool == "" {
					break
				}
				began := time.Now()
				if _, err := s.call("tools/call", map[string]any{"name": one.tool, "arguments": one.args}); err != nil {
					return nil, fmt.Errorf("%s: %w", one.name, err)
				}
				calls = append(calls, time.Since(began))
			}
			if len(calls) > 0 {
				f.call = median(calls[1:])
			}
			f.rss = treeRSS(s.cmd.Process.Pid)
			if err := s.end(); err != nil {
				return nil, err
			}
			if i > 0 { // the first start reads the programs from disk
				*all[one.name] = append(*all[one.name], f)
			}
		}
	}
	var bare time.Duration
	var rows [][]string
	for _, one := range list {
		var starts, calls []time.Duration
		for _, f := range *all[one.name] {
			starts, calls = append(starts, f.start), append(calls, f.call)
		}
		last := (*all[one.name])[len(starts)-1]
		if one.name == "bare" {
			bare = median(starts)
		}
		call := "needs its worker"
		if one.tool != "" {
			call = fmt.Sprintf("%s (`%s`)", ms(median(calls)), one.tool)
		}
		rows = append(rows, []string{one.shown, ms(median(starts)), ratio(median(starts), bare), call, fmt.Sprintf("%d MB", last.rss>>20), fmt.Sprintf("%.1f kB", float64(last.tools)/1000)})
	}
	return rows, nil
}

// treeRSS is the memory of a process and of what it started, in bytes.
func treeRSS(pid int) int64 {
	var sum int64
	if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)); err == nil {
		if f := strings.Fields(string(data)); len(f) > 1 {
			pages, _ := strconv.ParseInt(f[1], 10, 64) // 0 shows
			sum = pages * int64(os.Getpagesize())
		}
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is right
	for _, file := range tasks {
		data, _ := os.ReadFile(file) // gone by now
		for _, child := range strings.Fields(string(data)) {
			if id, err := strconv.Atoi(child); err == nil {
				sum += treeRSS(id)
			}
		}
	}
	return sum
}
