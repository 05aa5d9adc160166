package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/delegation"
	"reprise/internal/git"
	"reprise/internal/guard"
	"reprise/internal/learn/improve"
	"reprise/internal/run"
	"reprise/internal/setup"
	"reprise/internal/term"
	"reprise/internal/verify"
)

// What waits for a person can be read to its end at any width, and its command is in one
// line, whole, so that it can be copied.
func TestWaitsCanBeRead(t *testing.T) {
	const command = `reprise loop resume --item work-y6req66wuz --answer "…"`
	const text = "the loop asks about Export the invoices: which of the two formats is meant, that of the bank or that of the tax office?"
	s := &standing{Dir: "/x", Waits: []standWait{{text, command}}}
	if out := (&App{}).standingText(s, 0); !strings.Contains(out, command+"  "+text+"\n") { // no terminal
		t.Errorf("not in one line:\n%s", out)
	}
	for _, columns := range []int{30, 40, 80} {
		out := (&App{}).standingText(s, columns)
		_, waits, _ := strings.Cut(out, "waits for you\n")
		waits, _, _ = strings.Cut(waits, "\nnext\n")
		line, said, _ := strings.Cut(waits, "\n")
		if strings.TrimSpace(line) != command {
			t.Errorf("%d columns: the command is %q", columns, line)
		}
		if strings.Join(strings.Fields(said), " ") != text {
			t.Errorf("%d columns: the question is %q", columns, said)
		}
		for l := range strings.Lines(said) {
			if w := term.Width(strings.TrimRight(l, "\n")); w > columns {
				t.Errorf("%d columns: %d in %q", columns, w, l)
			}
		}
	}
}

// Why git did not commit is what it ended for, and not what it warned of on the way.
func TestCommitProblem(t *testing.T) {
	const crlf = "warning: in the working copy of 'specs/state.json', LF will be replaced by CRLF the next time Git touches it\n"
	for name, c := range map[string]struct{ said, want string }{
		"one without an end":       {"", "did not end in the time it was given"},
		"a silent hook":            {"", "ended with exit code 1 and did not say why"},
		"a silent hook, line ends": {crlf + crlf, "ended with exit code 1 and did not say why"},
		"older words of that":      {"warning: LF will be replaced by CRLF in specs/TODO.md.\nThe file will have its original line endings in your working directory\n", "did not say why"},
		"a hook that says it":      {crlf + "no commits on Fridays\n" + crlf, "says: no commits on Fridays"},
		"git's own":                {crlf + "fatal: unable to write\nhint: try again\n", "git says: unable to write"},
		"another owner": {"fatal: detected dubious ownership in repository at '/srv/x y'\nTo add an exception for this directory, call:\n\n\tgit config --global --add safe.directory '/srv/x y'\n",
			"another user owns it; if you trust what is in it: `git config --global --add safe.directory '/srv/x y'`"},
	} {
		failed := &git.Error{Args: []string{"commit"}, Code: 1, Stderr: c.said}
		if name == "one without an end" {
			failed.Code, failed.Kind = -1, git.ErrTimeout
		}
		err := commitProblem(failed)
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "CRLF") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The figures of `reprise metrics` stand below each other, whatever a row is called.
func TestMetricsLineUp(t *testing.T) {
	var out bytes.Buffer
	arm := improve.Arm{Sessions: 3}
	showMetrics(&App{Out: &out, Err: &out}, improve.Metrics{Groups: []improve.Group{{Name: "all", With: arm, Without: arm}}})
	at, rows := -1, 0
	for line := range strings.Lines(out.String()) {
		name, _, ok := strings.Cut(line, "±")
		if !ok {
			continue
		}
		if rows++; at < 0 {
			at = term.Width(name)
		}
		if term.Width(name) != at {
			t.Errorf("out of its column: %q", line)
		}
	}
	if rows < 4 || !strings.Contains(out.String(), "user's corrections") {
		t.Errorf("not the rows that were meant:\n%s", out.String())
	}
}

// Words that people try before they know ours are led to a command that there is.
func TestOtherWords(t *testing.T) {
	root := newRoot(&App{In: strings.NewReader("")}, commands())
	for word, commands := range otherWords {
		for _, words := range commands {
			path, flag, _ := strings.Cut(words, " --")
			cmd, rest, err := root.Find(strings.Fields(path))
			if err != nil || len(rest) > 0 || cmd == root || flag != "" && cmd.Flags().Lookup(flag) == nil {
				t.Errorf("%s: there is no `reprise %s`: %v", word, words, err)
			}
		}
	}
	for word, want := range map[string]string{"remember": "`reprise learn`", "forget": "`reprise memory forget`", "search": "`reprise recall`", "uninstall": "`reprise setup --remove`"} {
		if err := unknownCommand(root, word); !strings.Contains(err.Error(), "Did you mean ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", word, err)
		}
	}
	if err := unknownCommand(root, "xyzzyplugh"); strings.Contains(err.Error(), "Did you mean") {
		t.Errorf("a word that means nothing: %v", err)
	}
}

// Lists are as wide as a terminal of 80 columns at most, whatever stands in them.
func TestListsFit80Columns(t *testing.T) {
	const session = "0b9c2f51-2c55-4a38-9d39-0a6f0f6f2f11"
	for name, show := range map[string]func(app *App) error{
		"delegation status": func(app *App) error {
			rules := delegation.Default()
			v := delegationView{Tiers: 3, Depth: run.MaxDepth, Free: append(rules.Free, "~/notes", "docs/adr", "a/very/long/directory/of/documents"),
				Sessions: []delegationSession{{"claude-code", session, "section-leader", 100, 100, 1000, 1000, 1000, false}}}
			for _, role := range config.Roles() {
				l, _ := rules.Of(role)
				v.Roles = append(v.Roles, delegationRole{role, l.Warn, l.Block, rules.Below(role)})
			}
			return showDelegation(app, v)
		},
		"guard rules": func(app *App) error {
			return printRules(app, guardRulesView{Mode: "enforce", Profile: "auto", ProjectCode: "ask", Writes: "ask", Roots: []string{"/home/somebody/work/project", "/home/somebody/work/another/project", "/tmp/x"},
				Branches: guard.UsualBranches(), Hosts: []string{"*.example.org", "*.example.net", "*.example.com", "localhost.localdomain"},
				Rules: []guardRule{{"deny", "docker run --privileged ...", "guard.deny[10] in /home/somebody/work/another/project/.reprise/project.yaml"}},
				Inert: []string{"guard.allow"}, BuiltIn: guard.BuiltIn()})
		},
		"verify list": func(app *App) error {
			list := []*verify.Result{{ID: "ver-20261128t204401z-abcdefgh", Trigger: verify.TaskPhase, Profile: "standard", Status: verify.Skipped, Client: "claude-code", Blocked: true, Started: time.Date(2026, 11, 28, 20, 44, 1, 0, time.UTC)}}
			return listVerifications(app, list)
		},
		"gates status": func(app *App) error {
			printGates(app, gatesView{Works: "off: the project defines no checks (verify.profiles in .reprise/project.yaml)", Stop: "on", Subagent: "on", When: "claimed", Timeout: 300, Off: []string{"regressions (off by default)", "review (the project does not ask for it)"},
				Latest:   &verify.Result{ID: "ver-20261128t204401z-abcdefgh", Status: verify.Failed},
				Sessions: []verify.GateState{{Client: "claude-code", Session: session, Total: 12, Blocks: 2}}})
			return nil
		},
		"verify show": func(app *App) error {
			printResult(app, &verify.Result{ID: "ver-20261128t204401z-abcdefgh", Status: verify.Failed, Profile: "standard", Why: "by risk: 4 files and 120 lines have changed since the session began",
				Checks: []verify.CheckResult{{Name: "test", Status: verify.Failed, Level: "advisory", AtBase: verify.Failed, Excused: true, Command: "go test ./internal/orders ./internal/invoices"}},
				Issues: []verify.Issue{{Level: "blocking", Check: "test", Message: "the check failed with exit code 1, and at the base it had passed, so what failed is this work's"}},
				Next:   []string{"look at what the check printed, mend it, and end the turn once more: the checks run anew then"}, Blocked: true, Reason: "the work is not done yet, for the project's own checks do not pass on a copy of the tree as it is"}, false)
			return nil
		},
		"metrics": func(app *App) error {
			arm := improve.Arm{Sessions: 300, Judged: 120, Success: .512, SuccessLow: .42, SuccessHigh: .6}
			showMetrics(app, improve.Metrics{Groups: []improve.Group{{Name: "all", With: arm, Without: arm, Lifts: []improve.Lift{{Name: "tool calls", Diff: -12.25, Low: -20.5, High: -4.25}},
				Verdict: "there are too few sessions without recall to tell: 12 of at least 30, so look again when there are more of them"}}})
			return nil
		},
		"config show": func(app *App) error {
			items := []config.Item{{Key: "routes", Value: "x", Doc: strings.Repeat("what it means in some words ", 8), Origin: "default"}}
			_, err := fmt.Fprint(app.Out, settingsYAML(items, app.Columns))
			return err
		},
		"runs show": func(app *App) error {
			r := run.Record{ID: "run-aaaaaaaaaa", Status: run.Failed, StatusReason: strings.Repeat("the client ended without a result ", 4), StartedAt: time.Date(2026, 11, 28, 20, 44, 1, 0, time.UTC)}
			app.Env.Now = func() time.Time { return r.StartedAt }
			return showRunOf(app, r, run.Output{}, func(line func(name, value string)) { line("item", strings.Repeat("word ", 30)) })
		},
	} {
		var out bytes.Buffer
		app := &App{Out: &out, Err: &out, Columns: 80}
		if err := show(app); err != nil {
			t.Fatal(name, err)
		}
		for _, l := range strings.Split(out.String(), "\n") {
			if w := term.Width(l); w > 80 {
				t.Errorf("%s: %d columns: %s", name, w, l)
			}
		}
		if out.Len() < 200 && name != "verify list" {
			t.Errorf("%s: only %q", name, out.String())
		}
	}
}

// What the doctor says is broken between words, and a command that is to be copied not at all.
func TestDoctorFitsTheTerminal(t *testing.T) {
	command := "/opt/a/directory/with/a/name/that/is/longer/than/many"
	for _, columns := range []int{40, 80} {
		var out bytes.Buffer
		printFindings(&App{Out: &out, Columns: columns}, []setup.Finding{
			{Status: setup.Warn, Message: strings.Repeat("something that was found ", 8), Remedy: "run `" + command + "` and then look at it again, as often as it takes"},
		})
		if !strings.Contains(out.String(), command) {
			t.Errorf("%d columns: the command is not whole:\n%s", columns, &out)
		}
		for line := range strings.Lines(out.String()) {
			if w := term.Width(strings.TrimRight(line, "\n")); w > columns && !strings.Contains(line, command) {
				t.Errorf("%d of %d columns: %q", w, columns, line)
			}
		}
	}
}

// What sessions with and without what is remembered have in common and not is told at any
// width: a narrow terminal has the difference below, with its bounds.
func TestMetricsCanBeRead(t *testing.T) {
	rows := [][4]string{{"", "with (n=120)", "without (n=118)", "difference"}, {"ended well", "100 % (97–100)", "83 % (75–89)", "+0.17 (0.10 to 0.24)"}}
	for _, columns := range []int{0, 60, 80, 120} {
		var out bytes.Buffer
		(&App{Out: &out, Columns: columns}).compared(rows)
		if !strings.Contains(out.String(), "+0.17 (0.10 to 0.24)") {
			t.Errorf("%d columns: the difference is not told:\n%s", columns, out.String())
		}
		for l := range strings.Lines(out.String()) {
			if w := term.Width(strings.TrimRight(l, "\n")); columns > 0 && w > columns {
				t.Errorf("%d columns: %d in %q", columns, w, l)
			}
		}
	}
}
