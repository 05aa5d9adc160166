package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// diskSize is that of the file system that reprise's data lie on. Its image is sparse.
const diskSize = 2 << 30

// spell is a time in which something was wrong with the machine.
type spell struct {
	kind     string
	from, to time.Time // to is zero while it lasts
}

// spells are those that there were, safe for several goroutines.
type spells struct {
	mu  sync.Mutex
	all []spell
}

// begin notes that something is wrong from now on, until the function is called.
func (s *spells) begin(kind string) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := len(s.all)
	s.all = append(s.all, spell{kind: kind, from: time.Now()})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all[i].to = time.Now()
	}
}

// since reports whether one of the kinds was so at any time from at on.
func (s *spells) since(at time.Time, kinds ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.all {
		for _, k := range kinds {
			if p.kind == k && (p.to.IsZero() || p.to.After(at)) {
				return true
			}
		}
	}
	return false
}

// excused reports whether something was wrong since then by which a program may say that
// it cannot do what it was asked.
func (w *world) excused(since time.Time) bool {
	return w.spells.since(since, "full", "readonly", "fds")
}

// trouble deals what befalls the machine and not one process: until ctx ends, one thing at
// a time, and mends each before the next.
func (w *world) trouble(ctx context.Context) error {
	r := rand.New(rand.NewPCG(w.opt.seed, 2))
	type ill struct {
		kind string
		do   func() (mend func() error, err error)
	}
	var list []ill
	add := func(kind string, can bool, do func() (func() error, error)) {
		if w.opt.faults[kind] && can {
			list = append(list, ill{kind, do})
		}
	}
	add("full", w.disk.own, w.disk.fill)
	add("slow", w.disk.group != "", w.disk.slow)
	add("readonly", true, func() (func() error, error) { return w.disk.readOnly(w.home) })
	add("network", w.net.server != nil, func() (func() error, error) { return w.net.lose(r.IntN(2) == 0) })
	add("fds", true, func() (func() error, error) { return w.fewFiles(r) })
	for len(list) > 0 {
		if !wait(ctx, time.Duration((0.3+r.ExpFloat64())*float64(3*time.Second))) {
			return nil
		}
		it := list[r.IntN(len(list))]
		end := w.spells.begin(it.kind)
		mend, err := it.do()
		if err == nil {
			w.blows.add(it.kind, 1)
			wait(ctx, time.Duration(r.Int64N(int64(4*time.Second))))
			err = mend()
		} else if errors.Is(err, errBusy) {
			w.blows.add(it.kind+" was not possible at that moment", 1)
			err = nil
		}
		end()
		if err != nil {
			return fmt.Errorf("%s: %w", it.kind, err)
		}
	}
	return nil
}

// wait waits so long, or says that ctx has ended.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// disk is the file system that reprise's data lie on: one of its own where that can be
// had, so that it can be filled, slowed down and made read-only without anybody else's
// noticing.
type disk struct {
	dir     string
	own     bool
	image   string   // the file that it is in
	device  string   // major:minor
	group   string   // the control group that the programs are in
	missing []string // what cannot be done here, and why
}

// open mounts the file system where it can be mounted.
func (d *disk) open(dir, image string) {
	d.dir = dir
	without := func(what string, why error) {
		d.missing = append(d.missing, fmt.Sprintf("%s: %v", what, why))
	}
	if os.Geteuid() != 0 {
		without("a full disk and a slow one", errors.New("only root can mount a file system to fill"))
		return
	}
	err := os.WriteFile(image, nil, 0o600)
	if err == nil {
		err = os.Truncate(image, diskSize)
	}
	if err == nil {
		err = tool("mkfs.ext4", "-q", "-m", "0", image)
	}
	if err == nil {
		err = tool("mount", "-o", "loop", image, dir)
	}
	if err != nil {
		without("a slow disk", err)
		// A file system in memory can at least be full.
		if err := tool("mount", "-t", "tmpfs", "-o", "mode=700,size=512m", "tmpfs", dir); err != nil {
			without("a full disk", err)
			return
		}
		d.own = true
		return
	}
	d.own, d.image = true, image
	if err := os.Chmod(dir, 0o700); err != nil {
		without("a slow disk", err)
		return
	}
	if err := d.join(); err != nil {
		without("a slow disk", err)
	}
}

// join puts this process, and so all that it starts, into a control group whose writes to
// the file system can be slowed down. That of the first version is used: it needs no
// more than its directory.
func (d *disk) join() error {
	var st unix.Stat_t
	if err := unix.Stat(d.dir, &st); err != nil {
		return err
	}
	d.device = fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	group := fmt.Sprintf("/sys/fs/cgroup/blkio/reprise-chaos-%d", os.Getpid())
	if err := os.Mkdir(group, 0o755); err != nil {
		return fmt.Errorf("no control group for the disk: %w", err)
	}
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		_ = os.Remove(group)
		return err
	}
	d.group = group
	return nil
}

// close takes the file system away.
func (d *disk) close() error {
	var errs []error
	if d.group != "" {
		errs = append(errs, os.WriteFile(filepath.Join(filepath.Dir(d.group), "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0))
		var err error
		for range 50 { // what was just killed is still counted
			if err = os.Remove(d.group); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		errs = append(errs, err)
	}
	if d.own {
		var err error
		for range 50 {
			if err = tool("umount", d.dir); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// look says how to see what was on it.
func (d *disk) look() string {
	if d.image == "" {
		return ""
	}
	return fmt.Sprintf(", after mount -o loop,ro %s %s", d.image, d.dir)
}

// fill takes all the space that there is, and what becomes free.
func (d *disk) fill() (func() error, error) {
	name := filepath.Join(d.dir, "ballast")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var size int64
		for {
			for step := int64(256 << 20); step >= 4096; {
				if unix.Fallocate(int(f.Fd()), 0, size, step) == nil {
					size += step
				} else {
					step /= 2
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() error {
		close(stop)
		<-done
		return errors.Join(f.Close(), os.Remove(name), d.free())
	}, nil
}

// free waits until what was taken can be had again: a journal gives blocks back when it is
// written, and not when their file is removed.
func (d *disk) free() error {
	dir, err := unix.Open(d.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var st unix.Statfs_t
		if err := errors.Join(unix.Syncfs(dir), unix.Fstatfs(dir, &st)); err != nil {
			return err
		}
		if st.Bavail > st.Blocks/4 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d blocks are free %s after what filled the disk was removed", st.Bavail, st.Blocks, patience)
		}
	}
}

// slow lets the programs write twenty times a second, all together.
func (d *disk) slow() (func() error, error) {
	set := func(n int) error {
		return os.WriteFile(filepath.Join(d.group, "blkio.throttle.write_iops_device"), fmt.Appendf(nil, "%s %d", d.device, n), 0)
	}
	return func() error { return set(0) }, set(20)
}

// errBusy says that something could not be done to the machine at that moment, such as to make
// a file system read-only in which a process that stands still is writing.
var errBusy = errors.New("not at this moment")

// readOnly makes a directory read-only: by a second mount of it where there can be one,
// else by the permissions of what is written most.
func (d *disk) readOnly(dir string) (func() error, error) {
	if !d.own {
		return closed(dir)
	}
	if err := tool("mount", "--bind", dir, dir); err != nil {
		return nil, err
	}
	err := tool("mount", "-o", "remount,bind,ro", dir)
	for i := 0; err != nil && i < 400; i++ { // somebody is just writing there
		time.Sleep(10 * time.Millisecond)
		err = tool("mount", "-o", "remount,bind,ro", dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errBusy, err), tool("umount", "-l", dir))
	}
	return func() error {
		// Whoever has opened a directory meanwhile can write in it from now on.
		return errors.Join(tool("mount", "-o", "remount,bind,rw", dir), tool("umount", "-l", dir))
	}, nil
}

// closed takes the right to write from the directories of the stores.
func closed(home string) (func() error, error) {
	var mine []string
	for _, pattern := range []string{"", "memory", "memory/blocks", "projects/*", "projects/*/events", "projects/*/queue/*", "outbox"} {
		found, err := filepath.Glob(filepath.Join(home, pattern))
		if err != nil {
			return nil, err
		}
		for _, dir := range found {
			if fi, err := os.Lstat(dir); err == nil && fi.IsDir() && os.Chmod(dir, 0o500) == nil {
				mine = append(mine, dir)
			}
		}
	}
	return func() error {
		var errs []error
		for _, dir := range mine {
			if err := os.Chmod(dir, 0o700); !errors.Is(err, os.ErrNotExist) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}, nil
}

// fewFiles lets a program that lives long open hardly another file.
func (w *world) fewFiles(r *rand.Rand) (func() error, error) {
	n := r.IntN(4)
	type old struct {
		pid   int
		limit unix.Rlimit
	}
	var all []old
	for pid, line := range w.processes() {
		if !strings.Contains(line, " loop run ") && !strings.HasSuffix(line, " web") && !strings.Contains(line, " mcp") && !strings.Contains(line, "reprise-supervise") {
			continue
		}
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			continue // it has ended
		}
		o := old{pid: pid}
		if unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &o.limit) != nil {
			continue
		}
		less := o.limit
		less.Cur = uint64(len(open) + n)
		if unix.Prlimit(pid, unix.RLIMIT_NOFILE, &less, nil) == nil {
			all = append(all, o)
		}
	}
	return func() error {
		for _, o := range all {
			if err := unix.Prlimit(o.pid, unix.RLIMIT_NOFILE, &o.limit, nil); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
		return nil
	}, nil
}

// network is the way to the state's remote: git's own server on loopback.
type network struct {
	dir     string // what it serves
	port    string
	server  *exec.Cmd
	missing []string
}

// open makes an empty remote and serves it. Where git has no server, the remote is a
// directory, and no network can be lost.
func (n *network) open(dir string) (url string, err error) {
	n.dir = dir
	remote := filepath.Join(dir, "state.git")
	if err := tool("git", "init", "-q", "--bare", remote); err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, n.port, _ = net.SplitHostPort(l.Addr().String())
	l.Close()
	if err := n.start(); err != nil {
		n.missing = append(n.missing, fmt.Sprintf("a lost network: %v", err))
		return remote, nil
	}
	return "git://127.0.0.1:" + n.port + "/state.git", nil
}

func (n *network) start() error {
	cmd := exec.Command("git", "daemon", "--reuseaddr", "--export-all", "--enable=receive-pack", "--listen=127.0.0.1", "--port="+n.port, "--base-path="+n.dir, n.dir)
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + n.dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	for range 200 {
		if c, err := net.Dial("tcp", "127.0.0.1:"+n.port); err == nil {
			c.Close()
			n.server = cmd
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	_ = cmd.Wait()
	return fmt.Errorf("git daemon does not answer: %s", strings.TrimSpace(said.String()))
}

// lose ends the remote's server, so that nobody answers there, or lets it stand still, so
// that nothing comes back.
func (n *network) lose(still bool) (func() error, error) {
	group := -n.server.Process.Pid
	if still {
		return func() error { return syscall.Kill(group, syscall.SIGCONT) }, syscall.Kill(group, syscall.SIGSTOP)
	}
	n.close()
	return n.start, nil
}

func (n *network) close() {
	if n.server != nil {
		_ = syscall.Kill(-n.server.Process.Pid, syscall.SIGCONT)
		_ = syscall.Kill(-n.server.Process.Pid, syscall.SIGKILL)
		_ = n.server.Wait()
		n.server = nil
	}
}

// tool runs a program of the system.
func tool(args ...string) error {
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}
