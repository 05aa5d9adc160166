package proc

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestIdentifySelf(t *testing.T) {
	a, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Identify(os.Getpid())
	if err != nil || a != b || !a.Alive() || a.IsZero() || a.Boot == "" || a.Start == 0 {
		t.Errorf("%+v and %+v, %v", a, b, err)
	}
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var c ID
	if err := json.Unmarshal(raw, &c); err != nil || c != a {
		t.Errorf("through JSON: %+v, %v", c, err)
	}
	for _, pid := range []int{0, -1, 1 << 30} {
		if _, err := Identify(pid); !errors.Is(err, ErrGone) {
			t.Errorf("Identify(%d): %v, want ErrGone", pid, err)
		}
	}
}

func TestStartRefuses(t *testing.T) {
	dir := t.TempDir()
	file := dir + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		c    Cmd
		want string
		is   error
	}{
		"relative program":   {Cmd{Path: "sh"}, "must be an absolute path", nil},
		"no program":         {Cmd{Path: dir + "/none"}, "none", fs.ErrNotExist},
		"not executable":     {Cmd{Path: file}, "file", fs.ErrPermission},
		"no directory":       {Cmd{Path: "/bin/sh", Dir: dir + "/none"}, "working directory", fs.ErrNotExist},
		"file for directory": {Cmd{Path: "/bin/sh", Dir: file}, "is not a directory", nil},
		"NUL in argument":    {Cmd{Path: "/bin/sh", Args: []string{"a\x00b"}}, "start /bin/sh", syscall.EINVAL},
	} {
		p, err := Start(tc.c)
		if err == nil {
			p.Wait()
			t.Errorf("%s: no error", name)
			continue
		}
		if !strings.Contains(err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExit(t *testing.T) {
	for script, want := range map[string]Exit{
		"exit 0":      {},
		"exit 42":     {Code: 42},
		"kill -9 $$":  {Code: 137, Signal: "SIGKILL"},
		"kill -15 $$": {Code: 143, Signal: "SIGTERM"},
		"exit 143":    {Code: 143},
	} {
		p, err := Start(Cmd{Path: "/bin/sh", Args: []string{"-c", script}})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // waiting twice gives the same
			e, err := p.Wait()
			if err != nil || e.Code != want.Code || e.Signal != want.Signal {
				t.Errorf("%s: %+v, %v", script, e, err)
			}
			// A shell has a resident size of some hundred KB to some MB.
			if e.MaxRSS < 100<<10 || e.MaxRSS > 1<<30 {
				t.Errorf("%s: MaxRSS %d bytes", script, e.MaxRSS)
			}
		}
		select {
		case <-p.Done():
		default:
			t.Error("Done is open after Wait")
		}
	}
}

func TestEnvironmentIsNotInherited(t *testing.T) {
	t.Setenv("PROC_TEST_LEAK", "1")
	for name, env := range map[string][]string{"nil": nil, "given": {"A=b"}} {
		out, err := Run(t.Context(), Cmd{Path: "/usr/bin/env", Env: env}, 1000)
		if want := strings.Join(env, "\n"); err != nil || strings.TrimSpace(string(out.Stdout)) != want {
			t.Errorf("%s: %q, %v", name, out.Stdout, err)
		}
	}
}

// A descriptor that this process was born with (here: made without
// close-on-exec) does not reach a child, extra files do.
func TestNoDescriptorLeaks(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, mark := range map[string]func(){"close_range": closeOnExec, "list": func() { closeOnExecIn("/proc/self/fd") }} {
		fd, err := syscall.Dup(int(f.Fd())) // dup clears close-on-exec
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(fd)
		mark()
		if fl, _, e := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0); e != 0 || fl&syscall.FD_CLOEXEC == 0 {
			t.Errorf("%s: flags of the descriptor: %d, %v", name, fl, e)
		}
	}
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	for want, extra := range map[string][]*os.File{"[0 1 2]\n": nil, "[0 1 2 3]\n": {f}} {
		out, err := Run(t.Context(), Cmd{Path: self, Env: []string{partVar + "=fds"}, ExtraFiles: extra}, 1000)
		if err != nil || string(out.Stdout) != want {
			t.Errorf("with %d extra files: open are %q, %v; want %q", len(extra), out.Stdout, err, want)
		}
	}
}

func TestSessionAndGroup(t *testing.T) {
	for name, tc := range map[string]struct {
		c              Cmd
		group, session bool
	}{
		"neither": {Cmd{}, false, false},
		"group":   {Cmd{NewGroup: true}, true, false},
		"session": {Cmd{NewSession: true}, true, true},
		"both":    {Cmd{NewGroup: true, NewSession: true}, true, true},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c := tc.c
		c.Path, c.Args, c.Stdin = "/bin/sh", []string{"-c", "read x"}, r
		p, err := Start(c)
		if err != nil {
			t.Fatal(err)
		}
		in, err := lookup(p.ID().PID)
		if err != nil || (in.pgrp == in.pid) != tc.group || (in.session == in.pid) != tc.session {
			t.Errorf("%s: %+v, %v", name, in, err)
		}
		w.Close()
		r.Close()
		p.Wait()
	}
}

func TestRunBoundsOutput(t *testing.T) {
	out, err := Run(t.Context(), Cmd{Path: "/bin/sh", Args: []string{"-c", "head -c 3000000 /dev/zero; printf err >&2; exit 5"}, Env: []string{"PATH=/usr/bin:/bin"}}, 1000)
	if err != nil || out.Exit.Code != 5 {
		t.Fatalf("%+v, %v", out.Exit, err)
	}
	if len(out.Stdout) != 1000 || out.StdoutBytes != 3000000 || string(out.Stderr) != "err" || !out.Cut() {
		t.Errorf("%d of %d bytes, stderr %q, cut %v", len(out.Stdout), out.StdoutBytes, out.Stderr, out.Cut())
	}
	if _, err := Run(t.Context(), Cmd{Path: "/bin/sh", Stdout: os.Stdout}, 10); err == nil {
		t.Error("Stdout given: no error")
	}
	if out, err := Run(t.Context(), Cmd{Path: "/bin/sh", Args: []string{"-c", "echo hi"}}, 0); err != nil || len(out.Stdout) != 0 || out.StdoutBytes != 3 {
		t.Errorf("limit 0: %+v, %v", out, err)
	}
}

func TestRunTimeoutKillsTheTree(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, w := newPipe(t)
	go func() {
		// All three processes are up: now.
		for range 3 {
			c.out.ReadString('\n')
		}
		cancel()
	}()
	out, err := Run(ctx, Cmd{
		Path: "/bin/sh", Env: []string{"PATH=/usr/bin:/bin"}, ExtraFiles: []*os.File{w},
		Args: []string{"-c", `trap '' TERM; l='echo up >&3; exec sleep 1000'; echo said; sh -c "$l" & setsid sh -c "$l" & echo up >&3; wait`},
	}, 1000)
	w.Close()
	if !errors.Is(err, context.Canceled) || string(out.Stdout) != "said\n" || out.Exit.Signal != "SIGKILL" {
		t.Errorf("%q, %+v, %v", out.Stdout, out.Exit, err)
	}
	c.gone(t)
	if _, err := Run(ctx, Cmd{Path: "/bin/sh"}, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("context that has ended: %v", err)
	}
}

// A daemon that keeps the pipe open does not hold Run up, and is not killed.
func TestRunDoesNotWaitForDaemons(t *testing.T) {
	marker := newMarker(t)
	swept(t, marker)
	out, err := Run(deadline(t), Cmd{
		Path: "/bin/sh", Env: []string{"PATH=/usr/bin:/bin", RunIDVar + "=" + marker},
		Args: []string{"-c", `setsid sleep 1000 & echo done`},
	}, 1000)
	if err != nil || string(out.Stdout) != "done\n" || out.Exit.Code != 0 {
		t.Errorf("%q, %+v, %v", out.Stdout, out.Exit, err)
	}
	if ids, err := Sweep(marker); err != nil || len(ids) != 1 {
		t.Errorf("the daemon: %v, %v", ids, err)
	}
}

func TestParseStat(t *testing.T) {
	const tail = " S 10 20 30 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 1 1\n"
	want := info{pid: 7, ppid: 10, pgrp: 20, session: 30, start: 12345}
	for _, name := range []string{"sh", "a b", "(a) S 1 2 3", ") R 1 1 1 (", "x\ny", "", "é"} {
		got, err := parseStat([]byte("7 (" + name + ")" + tail))
		if err != nil || got != want {
			t.Errorf("name %q: %+v, %v", name, got, err)
		}
	}
	if got, err := parseStat([]byte("7 (z)" + strings.Replace(tail, " S ", " Z ", 1))); err != nil || !got.ended {
		t.Errorf("zombie: %+v, %v", got, err)
	}
	for _, bad := range []string{"", "7", "7 (a", "7 a)", ")7(", "7 (a) S 1", "x (a)" + tail, "7 (a)" + strings.Replace(tail, "12345", "x", 1)} {
		if got, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: %+v, no error", bad, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("7 (a b) S 10 20 30 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, b []byte) {
		if in, err := parseStat(b); err == nil && in == (info{}) && len(b) < 40 {
			t.Errorf("%q taken for a stat line", b)
		}
	})
}

func TestPidOfFdinfo(t *testing.T) {
	for in, want := range map[string]int{
		"pos:\t0\nflags:\t02000002\nmnt_id:\t15\nino:\t4\nPid:\t4711\nNSpid:\t4711\n": 4711,
		"pos:\t0\nPid:\t-1\n":      0,
		"pos:\t0\nNSpid:\t12\n":    0,
		"pos:\t0\neventfd-id: 3\n": 0,
		"Pid:\tx":                  0,
		"":                         0,
	} {
		if got, ok := pidOfFdinfo([]byte(in)); ok != (want != 0) || ok && got != want {
			t.Errorf("%q: %d, %v", in, got, ok)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		p, err := Start(Cmd{Path: "/bin/true"})
		if err != nil {
			b.Fatal(err)
		}
		p.Wait()
	}
}

func BenchmarkSweep(b *testing.B) {
	for b.Loop() {
		if _, err := Sweep("run-none"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStopTreeOfNine(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		r, w, err := os.Pipe()
		if err != nil {
			b.Fatal(err)
		}
		p, err := Start(Cmd{Path: "/bin/sh", Args: []string{"-c", nine}, Env: []string{"PATH=/usr/bin:/bin", RunIDVar + "=run-bench"}, Stdout: w, NewSession: true})
		if err != nil {
			b.Fatal(err)
		}
		w.Close()
		buf := make([]byte, 30)
		for n := 0; n < 30; {
			k, err := r.Read(buf)
			if err != nil {
				b.Fatal(err)
			}
			n += k
		}
		b.StartTimer()
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
		if st, err := StopTree(ctx, p.ID(), "run-bench", 0); err != nil {
			b.Fatal(st, err)
		}
		cancel()
		r.Close()
	}
}
