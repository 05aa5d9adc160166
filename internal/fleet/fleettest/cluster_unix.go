//go:build unix

package fleettest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// nodeArg is the first argument of a test binary that is to be a server.
const nodeArg = "nats-node"

// nodeSetup is what such a process is told.
type nodeSetup struct {
	Name, Dir, Host string
	Client, Between int // ports
	Routes          []string
	Cluster         string
}

// Main makes the test binary a server where it was started as one by [StartCluster]. A
// package that starts clusters calls it first in its TestMain.
func Main() {
	if len(os.Args) < 3 || os.Args[1] != nodeArg {
		return
	}
	var n nodeSetup
	if err := json.Unmarshal([]byte(os.Args[2]), &n); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	o := Options(n.Dir)
	o.ServerName, o.Host, o.Port = n.Name, n.Host, n.Client
	o.Cluster = server.ClusterOpts{Name: n.Cluster, Host: n.Host, Port: n.Between}
	o.LameDuckGracePeriod, o.LameDuckDuration = time.Second, 2*time.Second
	for _, r := range n.Routes {
		u, err := url.Parse(r)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		o.Routes = append(o.Routes, u)
	}
	s, err := server.NewServer(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s.Start()
	_, _ = io.Copy(io.Discard, os.Stdin) // until who started it lets go of it, or is dead
	s.LameDuckShutdown()                 // leaders step down, and clients are told to go elsewhere
	s.WaitForShutdown()
	os.Exit(0)
}

// clusters is how many this process has started.
var clusters atomic.Int32

// Cluster is a cluster of servers, each a process.
type Cluster struct {
	t     testing.TB
	Nodes []*Node
	inNS  bool
	tag   string
}

// Node is one of them.
type Node struct {
	setup nodeSetup
	ns    string
	cmd   *exec.Cmd
	in    io.Closer
	cut   bool
}

// StartCluster starts that many servers, and ends them with the test. apart puts each
// into a network namespace of its own, which needs root.
func StartCluster(t testing.TB, n int, apart bool) *Cluster {
	t.Helper()
	// The kernel takes an interface away some time after its namespace, so that the next
	// cluster of this process must not want its name.
	c := &Cluster{t: t, inNS: apart, tag: strconv.Itoa(os.Getpid()) + string(rune('a'+clusters.Add(1)%26))}
	if apart {
		c.network(n)
	}
	for i := range n {
		setup := nodeSetup{Name: fmt.Sprint("n", i+1), Dir: filepath.Join(t.TempDir(), "node"), Host: "127.0.0.1", Cluster: "test"}
		node := &Node{}
		if apart {
			node.ns, setup.Host, setup.Client, setup.Between = c.nsName(i), c.address(i), 4222, 6222
		} else {
			setup.Client, setup.Between = freePort(t), freePort(t)
		}
		node.setup = setup
		c.Nodes = append(c.Nodes, node)
	}
	for _, a := range c.Nodes {
		for _, b := range c.Nodes {
			if a != b {
				a.setup.Routes = append(a.setup.Routes, fmt.Sprintf("nats://%s:%d", b.setup.Host, b.setup.Between))
			}
		}
	}
	for _, node := range c.Nodes {
		c.Start(node)
	}
	t.Cleanup(func() {
		for _, node := range c.Nodes {
			c.Kill(node)
		}
	})
	return c
}

// given are the ports that were chosen in this process. One that a server is still to take,
// or whose server is down for a while, looks free.
var given sync.Map

func freePort(t testing.TB) int {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if _, before := given.LoadOrStore(port, true); !before {
			return port
		}
	}
}

// Servers are the addresses of all, with commas between.
func (c *Cluster) Servers() string {
	var all []string
	for _, n := range c.Nodes {
		all = append(all, n.URL())
	}
	return strings.Join(all, ",")
}

// URL is where clients reach the node.
func (n *Node) URL() string { return fmt.Sprintf("nats://%s:%d", n.setup.Host, n.setup.Client) }

// Name is the server's name, as clusters tell it.
func (n *Node) Name() string { return n.setup.Name }

// Start starts a node that is not running, with what it kept.
func (c *Cluster) Start(n *Node) {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	data, err := json.Marshal(n.setup)
	if err != nil {
		c.t.Fatal(err)
	}
	args := []string{self, nodeArg, string(data)}
	if n.ns != "" {
		args = append([]string{"ip", "netns", "exec", n.ns}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	n.cmd, n.in = cmd, in
}

// Kill ends a node with SIGKILL.
func (c *Cluster) Kill(n *Node) {
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
	n.in.Close()
	n.cmd = nil
}

// Stop lets a node end in order, as an operator does.
func (c *Cluster) Stop(n *Node) {
	if n.cmd == nil {
		return
	}
	n.in.Close()
	_ = n.cmd.Wait()
	n.cmd = nil
}

// Cut takes a node from all others and from its clients, without a word: its network is
// gone, or where it has none of its own it is stopped (SIGSTOP).
func (c *Cluster) Cut(n *Node) {
	c.t.Helper()
	n.cut = true
	if n.ns != "" {
		c.ip("link", "set", "dev", c.outside(n), "down")
	} else if err := n.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		c.t.Fatal(err)
	}
}

// Heal ends that.
func (c *Cluster) Heal(n *Node) {
	c.t.Helper()
	n.cut = false
	if n.ns != "" {
		c.ip("link", "set", "dev", c.outside(n), "up")
	} else if err := n.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		c.t.Fatal(err)
	}
}

// Part takes two nodes from each other, while both reach the third and all clients: what
// one sends to the other goes nowhere. It needs networks of their own.
func (c *Cluster) Part(a, b *Node) { c.between("add", a, b) }

// Join ends that.
func (c *Cluster) Join(a, b *Node) { c.between("del", a, b) }

func (c *Cluster) between(what string, a, b *Node) {
	c.t.Helper()
	if a.ns == "" || b.ns == "" {
		c.t.Fatal("nodes on one network cannot be parted from each other")
	}
	c.ip("-n", a.ns, "route", what, "blackhole", b.setup.Host+"/32")
	c.ip("-n", b.ns, "route", what, "blackhole", a.setup.Host+"/32")
}

// Apart reports whether each node has a network of its own.
func (c *Cluster) Apart() bool { return c.inNS }

// Ready waits until the cluster keeps things: all nodes answer, JetStream has a leader, and
// that knows of each node that it may place something there.
func (c *Cluster) Ready() {
	c.t.Helper()
	deadline := time.Now().Add(ready)
	for {
		err := c.answers()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the cluster does not come up: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (c *Cluster) answers() error {
	for _, n := range c.Nodes {
		nc, err := nats.Connect(n.URL(), nats.Timeout(time.Second))
		if err != nil {
			return err
		}
		_, err = nc.Request("$JS.API.INFO", nil, time.Second)
		nc.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name(), err)
		}
	}
	return c.places()
}

// places has a stream placed on all nodes, and takes it away again: the leader hears from
// each node by and by, and until then there are too few for it.
func (c *Cluster) places() error {
	nc, err := nats.Connect(c.Nodes[0].URL(), nats.Timeout(time.Second))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Second)
	defer cancel()
	const name = "ready"
	if _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: name, Replicas: len(c.Nodes), Storage: jetstream.MemoryStorage}); err != nil {
		return fmt.Errorf("place a stream: %w", err)
	}
	return js.DeleteStream(ctx, name)
}

// Node is the one with a server's name.
func (c *Cluster) Node(name string) *Node {
	for _, n := range c.Nodes {
		if n.setup.Name == name {
			return n
		}
	}
	return nil
}

// The network of a cluster whose nodes are apart: a bridge, and a pair of interfaces a
// node.

func (c *Cluster) nsName(i int) string    { return fmt.Sprintf("rp%s-%d", c.tag, i+1) }
func (c *Cluster) bridge() string         { return "rpb" + c.tag }
func (c *Cluster) address(i int) string   { return fmt.Sprintf("10.213.77.%d", i+2) }
func (c *Cluster) outside(n *Node) string { return "rpo" + strings.TrimPrefix(n.ns, "rp") }

func (c *Cluster) ip(args ...string) {
	c.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		c.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (c *Cluster) network(n int) {
	c.t.Helper()
	c.t.Cleanup(func() {
		for i := range n {
			_ = exec.Command("ip", "netns", "del", c.nsName(i)).Run()
		}
		_ = exec.Command("ip", "link", "del", c.bridge()).Run()
	})
	c.ip("link", "add", c.bridge(), "type", "bridge")
	c.ip("addr", "add", "10.213.77.1/24", "dev", c.bridge())
	c.ip("link", "set", c.bridge(), "up")
	for i := range n {
		ns, outside, inside := c.nsName(i), "rpo"+strings.TrimPrefix(c.nsName(i), "rp"), "rpi"+c.tag
		c.ip("netns", "add", ns)
		c.ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", ns)
		c.ip("link", "set", outside, "master", c.bridge(), "up")
		c.ip("-n", ns, "addr", "add", c.address(i)+"/24", "dev", inside)
		c.ip("-n", ns, "link", "set", inside, "up")
		c.ip("-n", ns, "link", "set", "lo", "up")
	}
}

// CanBeApart says why nodes cannot have networks of their own; "" where they can.
func CanBeApart() string {
	if os.Getuid() != 0 {
		return "network namespaces need root"
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return "there is no ip program"
	}
	name := fmt.Sprintf("rpt%d", os.Getpid())
	if out, err := exec.Command("ip", "link", "add", name, "type", "bridge").CombinedOutput(); err != nil {
		return strings.TrimSpace(string(out))
	}
	_ = exec.Command("ip", "link", "del", name).Run()
	return ""
}
