package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Nothing leaves the machine that nobody asked for. What a project lives through in a day
// runs below a filter of system calls which tells this test of every address that any
// process would send to, those of grandchildren too; whatever is not on this machine is
// refused, and is a failure here. The one exception that nobody names on the command line,
// an OTLP endpoint, shows that the filter sees what it should.
func TestNothingLeavesTheMachine(t *testing.T) {
	t.Parallel()
	h := newHome(t, settings{"sub_agent": map[string]any{"agent": "script"}})
	h.write(filepath.Join(h.dir, ".gitconfig"), "[user]\n\tname = Ann\n\temail = ann@example.org\n")
	h.write(filepath.Join(h.dir, ".claude", "projects", "-work", "5a13438d-5a8e-41c4-808c-0000000000c1.jsonl"),
		`{"type":"user","sessionId":"5a13438d-5a8e-41c4-808c-0000000000c1","uuid":"1","timestamp":"2026-11-01T10:00:00Z","cwd":"`+h.work+`","message":{"role":"user","content":"hello"}}`+"\n")
	sent := h.watched(t, `exec 3<>/dev/tcp/192.0.2.1/80`)
	if len(sent) != 1 || !strings.Contains(sent[0], "192.0.2.1:80") {
		t.Fatalf("of a connection to 192.0.2.1:80 was seen: %q", sent)
	}
	const day = `set -eu -o pipefail
git init -q . && reprise init --yes --name shop >&2 && git add -A && git commit -qm Shop
reprise setup claude-code codex gemini copilot --yes
reprise doctor || test $? = 1 # no client is here
reprise import transcripts
reprise hooks matrix
hook() { echo "{\"session_id\":\"s1\",\"cwd\":\"$PWD\",\"hook_event_name\":\"$1\"$2}" | reprise-hook claude $1; }
hook SessionStart ',"source":"startup"'
hook UserPromptSubmit ',"prompt":"what is the port of billing?"'
hook PreToolUse ',"tool_name":"Bash","tool_use_id":"u1","tool_input":{"command":"curl https://example.org"}'
hook PostToolUse ',"tool_name":"Bash","tool_use_id":"u1","tool_input":{"command":"ls"},"tool_response":{"stdout":"a","stderr":"","interrupted":false}'
hook Stop '' && hook SessionEnd ',"reason":"other"'
reprise; reprise status; reprise learn "billing is 5432"; reprise decide "Use cookies" --because "they are there"; reprise recall "port of billing"
reprise memory init; reprise memory learn --global "Run the linter first"; reprise index rebuild; reprise metrics; reprise events verify; reprise events stats
printf 'steps:\n  - write: {path: a.txt, content: a}\n  - say: done\n' > ../steps.yaml
reprise spawn --agent-script ../steps.yaml "do it"; reprise runs list
git add -A; git commit -qm more
reprise queue add "Fix it"; reprise loop run --agent-script ../steps.yaml --until-empty --delay 0s; reprise loop report; reprise queue list --all
reprise task new "Another"; reprise task list; reprise team; reprise context show; reprise policy history; reprise guard check -- ls; reprise guard rules
reprise bug-report
reprise demo </dev/null
reprise web >../link & web=$!
until test -s ../link; do sleep 0.05; done; kill -INT $web; wait $web
echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' | reprise mcp
reprise setup --remove --yes`
	if sent := h.watched(t, day); len(sent) > 0 {
		t.Errorf("a day of work would have sent to:\n%s", strings.Join(sent, "\n"))
	}
	sent = h.watched(t, `reprise queue add --max-attempts 1 "And this"; OTEL_EXPORTER_OTLP_ENDPOINT=http://192.0.2.7:4318 reprise loop run --agent-script ../steps.yaml --until-empty --delay 0s`)
	if !slices.ContainsFunc(sent, func(s string) bool { return strings.Contains(s, "192.0.2.7:4318") }) {
		t.Errorf("the endpoint that is set was not sent to, only: %q", sent)
	}
}

// watched runs a script in the home, and says to which addresses on other machines its
// processes would have sent: NAME ADDRESS. Each such call has failed with ENETUNREACH.
func (h *home) watched(t *testing.T, script string) (sent []string) {
	t.Helper()
	type started struct {
		fd  int
		cmd *exec.Cmd
		out *strings.Builder
		err error
	}
	begun := make(chan started)
	go func() {
		// The filter holds for this thread and what it starts; the thread ends with this
		// function, for it is never unlocked.
		runtime.LockOSThread()
		s := started{out: &strings.Builder{}}
		if s.fd, s.err = tellOfSending(); s.err == nil {
			s.cmd = exec.Command("bash", "-c", script)
			s.cmd.Dir, s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr, s.cmd.WaitDelay = h.work, h.env, s.out, s.out, time.Minute
			s.err = s.cmd.Start()
		}
		begun <- s
	}()
	s := <-begun
	if errors.Is(s.err, unix.ENOSYS) || errors.Is(s.err, unix.EPERM) || errors.Is(s.err, unix.EINVAL) || errors.Is(s.err, unix.EBUSY) {
		t.Skipf("this machine lets nobody look at system calls: %v", s.err)
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	defer unix.Close(s.fd)
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	seen := make(chan []string)
	over := make(chan struct{})
	go func() { seen <- answerSending(s.fd, over) }()
	err := <-ended
	close(over)
	sent = <-seen
	if err != nil && !strings.HasPrefix(script, "exec 3<>") {
		t.Fatalf("%v\n%s", err, s.out.String())
	}
	return sent
}

// tellOfSending has the calling thread, and what it starts from now on, ask the holder of
// the descriptor before a socket is connected or sent to.
func tellOfSending() (fd int, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("no_new_privs: %w", err)
	}
	calls := []uint32{unix.SYS_CONNECT, unix.SYS_SENDTO, unix.SYS_SENDMSG}
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}} // the call's number
	for i, call := range calls {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jt: uint8(len(calls) - i)})
	}
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	r, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		return -1, fmt.Errorf("seccomp: %w", e)
	}
	return int(r), nil
}

// asked and answered are struct seccomp_notif and seccomp_notif_resp of linux/seccomp.h.
type asked struct {
	id         uint64
	pid, flags uint32
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type answered struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// answerSending answers until over is closed and nobody asks any more. What stays on this
// machine goes on.
func answerSending(fd int, over <-chan struct{}) (sent []string) {
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 100)
		if err != nil && !errors.Is(err, unix.EINTR) || n > 0 && fds[0].Revents&unix.POLLIN == 0 {
			return sent // all that the filter holds for have ended
		}
		if n <= 0 {
			select {
			case <-over:
				return sent
			default:
				continue
			}
		}
		var c asked
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&c))); e != 0 {
			continue // it was killed meanwhile
		}
		a := answered{id: c.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		if to, away := c.address(); away {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", c.pid))
			sent = append(sent, strings.TrimSpace(string(name))+" "+to)
			a = answered{id: c.id, errno: -int32(unix.ENETUNREACH)}
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
	}
}

// address is where a call would send to, and whether that is another machine. A call
// without an address is one on a socket that was connected before.
func (c asked) address() (to string, away bool) {
	at, size := c.args[1], c.args[2]
	switch c.nr {
	case unix.SYS_SENDTO:
		at, size = c.args[4], c.args[5]
	case unix.SYS_SENDMSG: // struct msghdr begins with the address and its length
		head := c.read(at, 16)
		if len(head) < 16 {
			return "unreadable", true
		}
		at, size = binary.NativeEndian.Uint64(head), uint64(binary.NativeEndian.Uint32(head[8:]))
	}
	if at == 0 || size < 2 {
		return "", false
	}
	addr := c.read(at, int(min(size, 28)))
	if len(addr) < 2 {
		return "unreadable", true
	}
	var ip netip.Addr
	switch family := binary.NativeEndian.Uint16(addr); {
	case family == unix.AF_INET && len(addr) >= 8:
		ip, _ = netip.AddrFromSlice(addr[4:8])
	case family == unix.AF_INET6 && len(addr) >= 24:
		ip, _ = netip.AddrFromSlice(addr[8:24])
	case family == unix.AF_UNIX || family == unix.AF_NETLINK || family == unix.AF_UNSPEC:
		return "", false
	default:
		return fmt.Sprintf("an address of family %d", family), true
	}
	port := binary.BigEndian.Uint16(addr[2:])
	return netip.AddrPortFrom(ip.Unmap(), port).String(), !ip.Unmap().IsLoopback()
}

// read is memory of the process that calls.
func (c asked) read(at uint64, n int) []byte {
	b := make([]byte, n)
	got, err := unix.ProcessVMReadv(int(c.pid), []unix.Iovec{{Base: &b[0], Len: uint64(n)}}, []unix.RemoteIovec{{Base: uintptr(at), Len: n}}, 0)
	if err != nil {
		return nil
	}
	return b[:got]
}
