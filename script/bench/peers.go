package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"reprise/internal/clip"
)

// peersDir has what npm installs from its lock file; peersBuilt has what go builds.
const (
	peersDir   = "script/bench/peers"
	peersBuilt = ".cache/peers"
)

// peersOfGo are programs that come as Go modules, each in a version that is built without cgo
// and runs without a network. They are built in modules of their own, and none is in ours.
var peersOfGo = []struct{ name, module, version, command string }{
	{"engram", "github.com/Gentleman-Programming/engram", "v1.7.0", "cmd/engram"},
	{"bd", "github.com/steveyegge/beads", "v0.47.1", "cmd/bd"},
}

// How much is asked of peers.
const (
	peerQuestions = 290 // of the own set
	peerKills     = 20  // of each
)

// peerFigures measures one of the tables of programs that do some of what reprise does, side
// by side with it. They are other people's, so each has an empty environment and a home of
// its own, and all run where there is no network but loopback and where every process ends
// with the measurement (namespaces of Linux, which need root).
func peerFigures(table string) func(*rig) ([]figure, error) {
	return func(r *rig) ([]figure, error) {
		if runtime.GOOS != "linux" || os.Getuid() != 0 {
			return nil, &away{why: "programs of others are only started where they reach no network, which needs Linux and root"}
		}
		var gone *away
		err := installPeers()
		if err != nil && (!errors.As(err, &gone) || len(gone.programs) == 0) {
			return nil, err
		}
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		// The programs of this run are measured, and not built again.
		cmd := exec.Command("unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", self, "peers-apart", r.dir, strconv.Itoa(r.n), table)
		cmd.Stderr = os.Stderr
		data, failed := cmd.Output()
		if errors.Is(failed, exec.ErrNotFound) {
			return nil, &away{why: failed.Error()}
		}
		if failed != nil {
			return nil, fmt.Errorf("in namespaces of its own: %w", failed)
		}
		var figures []figure
		if failed := json.Unmarshal(data, &figures); failed != nil {
			return nil, failed
		}
		return figures, err // what some programs are missing for
	}
}

// peersApart is that measurement: DIRECTORY of the rig, how often, and which table, whose
// figures it prints.
func peersApart(args []string) error {
	if len(args) != 3 {
		return errors.New("peers-apart DIRECTORY N TABLE: `go run ./script/bench record -only peers` starts it")
	}
	if err := exec.Command("ip", "link", "set", "lo", "up").Run(); err != nil {
		return fmt.Errorf("ip link set lo up: %w", err)
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(args[0], "peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &rig{n: n, dir: dir}
	r.paths(args[0])
	p, err := newPeers(r)
	if err != nil {
		return err
	}
	measure := map[string]func() ([]figure, error){"servers": p.servers, "hooks": p.hooks, "search": p.search, "items": p.items, "kill": p.durability}[args[2]]
	if measure == nil {
		return fmt.Errorf("there is no table %s of peers", args[2])
	}
	figures, err := measure()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(figures)
}

// installPeers has npm install what the lock file names, without running any package's own
// script.
func installPeers() error {
	lock, err := os.ReadFile(filepath.Join(peersDir, "package-lock.json"))
	if err != nil {
		return fmt.Errorf("%w (run this from the root of the repository)", err)
	}
	mark := filepath.Join(peersDir, "node_modules", ".installed")
	if was, err := os.ReadFile(mark); err != nil || string(was) != string(lock) {
		cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-progress", "--loglevel=error")
		cmd.Dir, cmd.Stdout, cmd.Stderr = peersDir, os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return &away{why: fmt.Sprintf("npm ci in %s: %v", peersDir, err)}
		}
		if err := os.WriteFile(mark, lock, 0o600); err != nil {
			return err
		}
	}
	return buildPeers()
}

// buildPeers has go build the others, where they are not there yet. Those that it cannot have
// are away.
func buildPeers() error {
	gone := &away{}
	for _, g := range peersOfGo {
		dir, err := filepath.Abs(filepath.Join(peersBuilt, g.name+"@"+g.version))
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(dir, g.name)); err == nil {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		mod := fmt.Sprintf("module peer\n\ngo 1.25\n\nrequire %s %s\n", g.module, g.version)
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o600); err != nil {
			return err
		}
		cmd := exec.Command("go", "build", "-mod=mod", "-o", g.name, g.module+"/"+g.command)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			gone.programs = append(gone.programs, g.name)
			gone.why += fmt.Sprintf("%s %s is not built: %v: %s. ", g.module, g.version, err, clip.Runes(lastLine(out), 200))
		}
	}
	if len(gone.programs) > 0 {
		gone.why = strings.TrimSpace(gone.why)
		return gone
	}
	return nil
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// peers are the programs, as they are installed.
type peers struct {
	r    *rig
	pkgs string // node_modules
	node string
	env  []string          // of each, with its own HOME before
	of   map[string]string // those that are go's, where they are there
	all  []figure
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
	p := &peers{r: r, pkgs: pkgs, node: node, env: []string{"PATH=" + bin + ":/usr/bin:/bin", "LANG=C.UTF-8"}, of: map[string]string{}}
	for _, g := range peersOfGo {
		file, err := filepath.Abs(filepath.Join(peersBuilt, g.name+"@"+g.version, g.name))
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(file); err == nil {
			p.of[g.name] = file
		}
	}
	return p, nil
}

// home is a new home of a program, and its environment.
func (p *peers) home(name string) (dir string, env []string, err error) {
	if dir, err = os.MkdirTemp(p.r.dir, name+"-"); err != nil {
		return "", nil, err
	}
	return dir, append([]string{"HOME=" + dir}, p.env...), nil
}

// add has one more cell of a table. key is PROGRAM or PROGRAM-WAY, as away.of reads it.
func (p *peers) add(table, key, what, column, of string, value, noise float64, seen string) {
	p.all = append(p.all, figure{Name: "peers." + table + "." + key + "." + column, What: what, Of: of, Value: round(value), Noise: noise, Seen: seen})
}

// version is a program's name with its version, for readers.
func (p *peers) version(name string) string {
	for _, g := range peersOfGo {
		if g.name == name {
			return name + " " + g.version
		}
	}
	pkg := name
	if at, ok := map[string]string{"server-memory": "@modelcontextprotocol/server-memory", "qmd": "@tobilu/qmd"}[name]; ok {
		pkg = at
	}
	var is struct{ Version string }
	data, err := os.ReadFile(filepath.Join(p.pkgs, pkg, "package.json"))
	if err == nil {
		err = json.Unmarshal(data, &is)
	}
	if err != nil {
		return name + " ?"
	}
	return name + " " + is.Version
}

// mcp starts one of the servers in a home.
func (p *peers) mcp(name, home string, env []string) (*peer, error) {
	switch name {
	case "reprise":
		return startIn(home, append(env, "REPRISE_HOME="+filepath.Join(home, "data")), p.r.reprise, "mcp")
	case "bare":
		return startIn(home, env, p.r.bare)
	case "engram":
		return quietIn(home, append(env, "ENGRAM_DATA_DIR="+filepath.Join(home, "data")), p.of["engram"], "mcp")
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

// peerServer is a server, and something small that it is asked; "" is nothing.
type peerServer struct {
	name, shown, tool string
	args              map[string]any
}

// started is what a start of a server took.
type started struct {
	start, call time.Duration
	rss         int64
	tools       int
}

// servers are started until they have told their tools, and asked something small.
func (p *peers) servers() ([]figure, error) {
	list := []peerServer{
		{"bare", "the SDK's bare server", "echo", map[string]any{"text": "x"}},
		{"reprise", "`reprise mcp`", "memory_read", map[string]any{"name": "core"}},
		{"server-memory", p.version("server-memory") + " (node)", "read_graph", map[string]any{}},
		{"qmd", "`qmd mcp`: " + p.version("qmd") + " (node)", "status", map[string]any{}},
		{"claude-mem", p.version("claude-mem") + " (node)", "", nil},
	}
	if p.of["engram"] != "" {
		list = append(list, peerServer{"engram", "`engram mcp`: " + p.version("engram"), "mem_stats", map[string]any{}})
	}
	all := map[string][]started{}
	for i := range p.r.n + 1 {
		for _, one := range list {
			f, err := p.startOf(one)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.name, err)
			}
			if i > 0 { // the first start reads the programs from disk
				all[one.name] = append(all[one.name], f)
			}
		}
	}
	middles := func(name string) (f started) {
		var starts, calls []time.Duration
		for _, one := range all[name] {
			starts, calls = append(starts, one.start), append(calls, one.call)
		}
		f = all[name][len(starts)-1]
		f.start, f.call = median(starts), median(calls)
		return f
	}
	bare := middles("bare")
	for _, one := range list {
		f := middles(one.name)
		p.add("servers", one.name, one.shown, "start", "start to `tools/list` answered, × the bare server's", float64(f.start)/float64(bare.start), noiseClock, ms(f.start))
		if one.tool != "" {
			p.add("servers", one.name, one.shown, "call", "a small call, × the bare server's", float64(f.call)/float64(bare.call), noiseClock, ms(f.call)+", `"+one.tool+"`")
		}
		p.add("servers", one.name, one.shown, "rss", "resident memory, × the bare server's", float64(f.rss)/float64(bare.rss), 2*noiseRSS, fmt.Sprintf("%d MB", f.rss>>20))
		p.add("servers", one.name, one.shown, "tools", "what its tools cost a context, kB", float64(f.tools)/1000, noiseCount, "")
	}
	return p.all, nil
}

// startOf starts a server once, in a new home.
func (p *peers) startOf(one peerServer) (f started, err error) {
	home, env, err := p.home(one.name)
	if err != nil {
		return f, err
	}
	began := time.Now()
	s, err := p.mcp(one.name, home, env)
	if err != nil {
		return f, err
	}
	if err := s.handshake(); err != nil {
		return f, err
	}
	raw, err := s.call("tools/list", map[string]any{})
	if err != nil {
		return f, err
	}
	f.start, f.tools = time.Since(began), len(raw)
	var calls []time.Duration
	for range 20 {
		if one.tool == "" {
			break
		}
		began := time.Now()
		if _, err := s.call("tools/call", map[string]any{"name": one.tool, "arguments": one.args}); err != nil {
			return f, err
		}
		calls = append(calls, time.Since(began))
	}
	if len(calls) > 0 {
		f.call = median(calls[1:])
	}
	f.rss = treeRSS(s.cmd.Process.Pid)
	return f, s.end()
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
