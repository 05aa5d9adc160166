package cli_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"reprise/internal/cli"
	"reprise/internal/durable/durabletest"
	"reprise/internal/hookmain"
)

// The command line is tested by scripts in testdata/script against the real
// main, run by this very test binary. `reprise` in a script is the program;
// the supervisors and agents that it starts are the test binary too.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "reprise-hook" {
		os.Exit(hookmain.Main(os.Args[1:], testClock(os.Getenv("REPRISE_TEST_CLOCK"))))
	}
	if name := filepath.Base(os.Args[0]); strings.TrimSuffix(name, ".exe") == "reprise" || len(os.Args) > 1 && slices.Contains([]string{"supervise", "protect", "script-agent", "mcp", "memory"}, os.Args[1]) {
		reprise()
	}
	flag.Parse()
	debug.SetGCPercent(400) // a third of what these tests took was the collector's
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		if err := flag.Set("test.parallel", strconv.Itoa(sideBySide*runtime.GOMAXPROCS(0))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(durabletest.InMemory(func() int { return setUpProgram(m) }))
}

func reprise() {
	app, err := cli.OSApp()
	if err != nil {
		fmt.Fprintln(os.Stderr, "reprise:", err)
		os.Exit(cli.ExitFailure)
	}
	app.Env.Now = testClock(os.Getenv("REPRISE_TEST_CLOCK"))
	os.Exit(cli.Main(context.Background(), os.Args[1:], app))
}

// testClock is the machine's clock, or one that is so much ahead or behind
// ("-1h"): the value of REPRISE_TEST_CLOCK, which only these test programs know.
func testClock(ahead string) func() time.Time {
	off, err := time.ParseDuration(ahead)
	if err != nil {
		return time.Now
	}
	return func() time.Time { return time.Now().Add(off) }
}

// sideBySide is how many tests that are parallel go on at once for each processor, unless
// -parallel says so: scripts wait for processes, and for time, most of theirs.
const sideBySide = 3

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Files:               scripts(t),
		RequireExplicitExec: false,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Defer(outlivedBy(env, env.WorkDir)) // the homes of other machines are below it, too
			env.Setenv("REPRISE_HOME", env.WorkDir+"/reprise")
			env.Setenv("NO_COLOR", "1")
			env.Setenv("LANG", "C.UTF-8")
			return os.MkdirAll(env.WorkDir+"/home", 0o755)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"reprise": command,
			"mcp":     converse,
			"exits":   exits,
			"until":   until,

			"natsserver": natsServer,
		},
	})
}

// scripts are those that run: all of them, each command in this process. With REPRISE_SUITES,
// where each command is a process (runCommand), it is every sixth, others today than
// tomorrow: that a command is the same both ways, any script shows, and together they take as
// long as all other tests of the command line. All are processes when it is "all", as in the long run, and the one that is
// asked for by its name.
func scripts(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	suites := os.Getenv("REPRISE_SUITES")
	if suites == "" || suites == "all" || strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return all
	}
	var some []string
	for i := time.Now().YearDay() % 2 * 3; i < len(all); i += 6 {
		some = append(some, all[i])
	}
	return some
}

// exits runs reprise and wants exactly this exit code:
//
//	exits 3 reprise runs show run-aaaaaaaaaa
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[1] != "reprise" {
		ts.Fatalf("usage: exits CODE reprise [ARG ...]")
	}
	if code := strconv.Itoa(runCommand(ts, args[2:])); code != args[0] {
		ts.Fatalf("%s ended with %s, want exit code %s", strings.Join(args[1:], " "), code, args[0])
	}
}

// until runs a command as a process, again and again until it succeeds. The limit
// is only there for what never does.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: until COMMAND [ARG ...]")
	}
	try := func() error { return ts.Exec(args[0], args[1:]...) }
	if words, pattern := untilPrinted(args); pattern != nil {
		try = func() error { return prints(ts, words, pattern) }
	}
	deadline := time.Now().Add(2 * time.Minute)
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s: still %v after two minutes", strings.Join(args, " "), err)
		}
		time.Sleep(wait)
	}
}

var printed = regexp.MustCompile(`^reprise ([^|"'$]+) \| grep (?:-q )?(?:"([^"\\+?(){}|$]+)"|([\w-]+))$`)

// untilPrinted are the words of reprise, and what it is to print, where that is all that is
// asked again and again: three processes each time are most of what some scripts take, and
// what they wait for has to wait for them.
func untilPrinted(args []string) (words []string, pattern *regexp.Regexp) {
	if len(args) != 3 || args[0] != "sh" || args[1] != "-c" || os.Getenv("REPRISE_SUITES") != "" {
		return nil, nil
	}
	m := printed.FindStringSubmatch(args[2])
	if m == nil {
		return nil, nil
	}
	pattern, err := regexp.Compile("(?m)" + m[2] + m[3])
	if err != nil {
		return nil, nil
	}
	return strings.Fields(m[1]), pattern
}

// prints wants that reprise, called with these words, prints what the pattern is of.
func prints(ts *testscript.TestScript, words []string, pattern *regexp.Regexp) error {
	var out, said bytes.Buffer
	code := inThisProcess(ts, words, &out, &said)
	if !pattern.Match(out.Bytes()) {
		return fmt.Errorf("not printed (exit code %d):\n%s%s", code, &out, &said)
	}
	return nil
}
