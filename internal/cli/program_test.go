package cli_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"reprise/internal/cli"
	"reprise/internal/config"
)

// program is the path of this test binary under the name of reprise.
var program string

// setUpProgram puts reprise where scripts, and what they start, find it.
func setUpProgram(m *testing.M) int {
	dir, err := os.MkdirTemp("", "reprise-cli-")
	if err == nil {
		defer os.RemoveAll(dir)
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err == nil {
		program = filepath.Join(dir, "reprise")
		if runtime.GOOS == "windows" {
			program += ".exe"
		}
		err = linkSelf(program)
	}
	if err == nil {
		err = os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "set up the program:", err)
		return 1
	}
	code := m.Run()
	if err := schemas.write(); err != nil {
		fmt.Fprintln(os.Stderr, "write what commands print:", err)
		return 1
	}
	if err := inherits(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// linkSelf makes path a second name of this test binary.
func linkSelf(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if os.Link(self, path) == nil || os.Link(program, path) == nil {
		return nil
	}
	data, err := os.ReadFile(self) // on another file system
	if err != nil {
		return err
	}
	// A process that is started just now would hold the file open for writing, and
	// until it has become another program nobody could run it (ETXTBSY).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, data, 0o700)
}

// command is `reprise ARG ...` in a script.
func command(ts *testscript.TestScript, neg bool, args []string) {
	code := runCommand(ts, args)
	switch {
	case code == 0 && neg:
		ts.Fatalf("unexpected command success")
	case code != 0 && !neg:
		ts.Fatalf("[exit code %d]\nunexpected command failure", code)
	}
}

// runCommand runs reprise and returns its exit code. Three of four parts of what
// one of its commands costs are the start of a process, and the scripts have
// eight hundred. So they run in the test's own process, as the program's main
// would have it; what has to be a process, because it is stopped or goes on beside
// others, is started with exec. With REPRISE_SUITES all are processes: script/test
// runs scripts in both ways.
func runCommand(ts *testscript.TestScript, args []string) int {
	if len(args) > 0 && strings.HasPrefix(args[len(args)-1], "&") {
		ts.Fatalf("to go on in the background it has to be a process: exec reprise ...")
	}
	if len(args) == 3 && args[0] == "hook" && slices.Contains([]string{"claude", "codex", "gemini", "copilot"}, args[1]) {
		// A hook that is late says nothing, and on a busy machine it is late.
		args = append(slices.Clone(args), "--deadline-ms=60000")
	}
	if os.Getenv("REPRISE_SUITES") != "" {
		err := ts.Exec("reprise", args...)
		_, _ = fmt.Fprint(ts.Stdout(), ts.ReadFile("stdout"))
		_, _ = fmt.Fprint(ts.Stderr(), ts.ReadFile("stderr"))
		if exit, ok := err.(*exec.ExitError); ok {
			return exit.ExitCode()
		}
		ts.Check(err)
		return 0
	}
	out := &typedWriter{Writer: ts.Stdout(), args: args}
	code := inThisProcess(ts, args, out, ts.Stderr())
	if out.differs != "" {
		ts.Fatalf("%s", out.differs)
	}
	return code
}

// inThisProcess runs reprise as a script would, without a process for it.
func inThisProcess(ts *testscript.TestScript, args []string, out, said io.Writer) int {
	in, environ := ofScript(ts)
	dir := ts.MkAbs(".")
	environ = append(environ, "PWD="+dir)
	host, err := os.Hostname()
	ts.Check(err)
	env := config.Env{Vars: config.ParseVars(environ, runtime.GOOS), Dir: dir, GOOS: runtime.GOOS}
	env.Now = testClock(env.Get("REPRISE_TEST_CLOCK"))
	return cli.Main(context.Background(), args, &cli.App{
		In: strings.NewReader(in), Out: out, Err: said,
		Env: env, Environ: environ, Program: program, Hostname: host, PID: os.Getpid(), Guest: true,
	})
}

// converse is `mcp FILE` in a script: a client of reprise's server sends the
// lines of the file and goes when each of its calls is answered. A server whose
// input ends sooner does not wait for answers that take long.
func converse(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mcp FILE")
	}
	calls := ts.ReadFile(args[0])
	_, environ := ofScript(ts)
	cmd := exec.Command(program, "mcp")
	cmd.Dir, cmd.Env, cmd.Stderr = ts.MkAbs("."), environ, ts.Stderr()
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	_, err = io.WriteString(in, calls)
	ts.Check(err)
	answers := bufio.NewReader(out)
	for left := strings.Count(calls, `"id":`); left > 0; {
		line, err := answers.ReadString('\n')
		_, _ = io.WriteString(ts.Stdout(), line)
		if err != nil {
			_ = cmd.Wait()
			ts.Fatalf("the server ended with %d calls unanswered: %v", left, err)
		}
		if strings.Contains(line, `"id":`) {
			left--
		}
	}
	ts.Check(in.Close())
	_, err = io.Copy(ts.Stdout(), answers)
	ts.Check(err)
	ts.Check(cmd.Wait())
}

// ofScript takes what a script gave for standard input, and reads its
// environment. testscript keeps both to itself, although commands that are
// functions need them as much as those that are processes.
func ofScript(ts *testscript.TestScript) (stdin string, environ []string) {
	v := reflect.ValueOf(ts).Elem()
	in := v.FieldByName("stdin")
	stdin = in.String()
	*(*string)(in.Addr().UnsafePointer()) = ""
	list := v.FieldByName("env")
	for i := range list.Len() {
		environ = append(environ, list.Index(i).String())
	}
	return stdin, environ
}
