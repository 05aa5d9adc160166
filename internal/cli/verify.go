package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/pathname"
	"reprise/internal/proc"
	"reprise/internal/redact"
	"reprise/internal/setup"
	"reprise/internal/term"
	"reprise/internal/verify"
)

type verifyFlags struct {
	profile, base, trigger, session, client string
	timeout                                 int
	asJSON, ifFree                          bool
}

func newVerifyCmd(app *App) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use: "verify", Args: cobra.NoArgs, Short: "Run the project's checks on a copy of the tree as it is",
		Long: `Run the checks of .reprise/project.yaml (verify.profiles) on a copy of the working
tree: with uncommitted and untracked work, without what git ignores. The tree itself,
its index and its repository are not touched. Which profile is used goes by how much
changed, unless --profile, REPRISE_VERIFY_PROFILE, the setting gates.profile or
verify.profile says which. docs/gates.md has the settings.

A required check that fails is a failure, in a clean checkout too. With --base, a check
that failed at that commit in the same way is excused, if anything changed since.

A repository brings its checks along, so they run only after you have approved the
file with "reprise trust".

Ends with 0 when everything required passed, 1 when not or when that could not be
found out, 3 when there is nothing to check, 4 when the checks are not approved.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runVerify(cmd.Context(), app, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.profile, "profile", "", "quick, standard or deep")
	fl.StringVar(&f.base, "base", "", "`COMMIT` where the work began: what failed there, too, is excused; default: the change is seen against HEAD, and nothing is excused")
	fl.IntVar(&f.timeout, "timeout-seconds", 0, "time for all checks together; 0 is no more than each one's own")
	fl.BoolVar(&f.asJSON, "json", false, "print the result for programs")
	fl.StringVar(&f.trigger, "trigger", verify.Manual, "what it is for")
	fl.StringVar(&f.session, "session", "", "the client's session that it is for")
	fl.StringVar(&f.client, "client", "", "the session's client")
	fl.BoolVar(&f.ifFree, "if-free", false, "do nothing where a verification is at work")
	for _, name := range []string{"trigger", "session", "client", "if-free"} {
		_ = fl.MarkHidden(name) // it was defined just above
	}
	cmd.AddCommand(verifyExplain(app), verifyList(app), verifyShow(app))
	return cmd
}

// verifyHome is the project, what it says of checks, and whether the user
// approved that.
func verifyHome(app *App) (*config.Home, config.Trust, error) {
	home, err := app.Home()
	if err != nil {
		return nil, config.Trust{}, err
	}
	if home.Project == nil {
		if lost, err := home.Paths.Lost(home.Env, home.Dir); err == nil && lost != nil {
			return nil, config.Trust{}, exitWith(ExitNotFound, fmt.Errorf("%s %s, and the checks that were approved are not run, so gates are off; bring it back, or have them off for good with `reprise trust --revoke`", lost.Project.File(), lost.Why()))
		}
		return nil, config.Trust{}, exitWith(ExitNotFound, fmt.Errorf("%s is in no project; `reprise init` makes one", app.Env.Dir))
	}
	trust, err := home.Paths.Trust(home.Project)
	if err != nil && trust.Hash == "" {
		return nil, trust, err
	}
	return home, trust, nil // a record that cannot be read approves nothing
}

// verifyOptions are the world of verifications of a project.
func (a *App) verifyOptions(home *config.Home, trust config.Trust, dir string) verify.Options {
	env := a.Env
	env.Dir = dir
	redactor := redact.New()
	return verify.Options{
		Env: env, Project: home.Project.Name, Root: home.Project.Root, Checks: trust.Says.Verify, Config: trust.Hash,
		Store:     a.verifyStore(home),
		Snapshots: filepath.Join(home.Paths.Cache, "verify"), Host: a.Hostname,
		Sandbox: home.Settings.Gates.Sandbox, DenyWrite: a.keptFromChecks(home), Derived: []string{filepath.Join(home.Paths.Cache, "hooks")},
		Outside:  []string{home.Paths.Cache, home.Paths.State, filepath.Join(home.Paths.Data, "projects"), filepath.Join(home.Paths.Data, "outbox")},
		Keep:     true,
		Programs: a.programs,
		Redact:   func(s string) string { s, _ = redactor.String(s); return s },
		Record:   a.recordVerification,
		Warn: func(what string, err error) {
			if log, lerr := a.Logger(); lerr == nil {
				log.Warn("verify: "+what, "error", err)
			}
		},
	}
}

// keptFromChecks is what checks must not write beside the tree: the memory, what reprise
// knows and was told, and what has clients start its hooks. The code that checks run is
// the agent's, which would otherwise let itself go by a test.
func (a *App) keptFromChecks(home *config.Home) []string {
	out := []string{home.MemoryDir(), cmp.Or(home.Source, home.Paths.ConfigFile)}
	if entries, err := durable.ReadDir(home.Paths.Data); err == nil {
		for _, e := range entries {
			p := filepath.Join(home.Paths.Data, e.Name())
			// With REPRISE_HOME the copies and the log are there, too.
			if !pathname.Within(p, home.Paths.Cache) && !pathname.Within(p, home.Paths.State) {
				out = append(out, p)
			}
		}
	}
	// By what is known of sessions, and the answers to calls that wait, gates and the guard
	// are led; the log is for everybody.
	known := []string{filepath.Join(home.Paths.State, "sessions"), filepath.Join(home.Paths.State, "guard")}
	if entries, err := durable.ReadDir(home.Paths.State); err == nil {
		for _, e := range entries {
			known = append(known, filepath.Join(home.Paths.State, e.Name()))
		}
	}
	for _, p := range known {
		if !slices.Contains(out, p) && !pathname.Within(p, home.LogFile()) && !pathname.Within(p, home.Paths.Cache) && !pathname.Within(home.Paths.Cache, p) {
			out = append(out, p)
		}
	}
	where := setup.Where{Env: a.Env, Dir: a.Env.Dir, Root: home.Project.Root}
	for _, client := range setup.HookClients() {
		if file, err := where.HookFile(client, setup.User); err == nil && file != "" {
			out = append(out, file)
			// Copilot's lies in a directory for hooks only, of which each file counts.
			if dir := filepath.Dir(file); filepath.Base(dir) == "hooks" {
				out = append(out, dir)
			}
		}
	}
	if t, err := setup.Locate(where, "codex", setup.User); err == nil {
		out = append(out, t.File) // it has which hooks are trusted
	}
	return out
}

func (a *App) verifyStore(home *config.Home) verify.Store {
	return verify.Store{Dir: filepath.Join(home.Paths.ProjectDir(home.Project.Name), "verify")}
}

// recordVerification puts a result into the event log, in short.
func (a *App) recordVerification(ctx context.Context, r *verify.Result) error {
	data, err := jsonData(r.Event())
	if err != nil {
		return err
	}
	outcome := ""
	if r.Status == verify.Passed || r.Status == verify.Failed {
		outcome = string(r.Status)
	}
	broker, err := a.Broker()
	if err != nil {
		return err
	}
	_, err = broker.Record(ctx, event.Event{
		Scope: event.ScopeProject, Project: r.Project, Session: r.Session, Client: r.Client, Run: r.Run,
		Type: event.VerificationFinished, Data: data, Outcome: outcome,
		Evidence: []string{"verification:" + r.ID},
	})
	return err
}

// verifyWishes are who may say which profile to use, in their order.
func (a *App) verifyWishes(home *config.Home, trust config.Trust, flag string) ([]verify.Wish, error) {
	wishes := []verify.Wish{
		{By: "--profile says so", Profile: flag},
		{By: "REPRISE_VERIFY_PROFILE says so", Profile: a.Env.Get("REPRISE_VERIFY_PROFILE")},
		{By: "the setting gates.profile says so", Profile: home.Settings.Gates.Profile},
	}
	if trust.Says.Verify != nil {
		wishes = append(wishes, verify.Wish{By: "the project's verify.profile says so", Profile: trust.Says.Verify.Profile})
	}
	for _, w := range wishes {
		if w.Profile != "" && w.Profile != "auto" && !config.IsVerifyProfile(w.Profile) {
			return nil, usagef("%q is not a profile (%s); write one of %s", clipText(w.Profile, 40), w.By, strings.Join(config.VerifyProfiles(), ", "))
		}
	}
	return wishes, nil
}

// notTrusted is the refusal to run what the user has not approved.
func notTrusted(home *config.Home) error {
	return exitWith(ExitConflict, fmt.Errorf("the checks of %s are not approved, so none was run; look at them and approve them with `reprise trust`", home.Project.File()))
}

// verifyAsked is a project that has checks, and who says which profile to use.
func verifyAsked(app *App, profile string) (*config.Home, config.Trust, []verify.Wish, error) {
	home, trust, err := verifyHome(app)
	if err != nil {
		return nil, trust, nil, err
	}
	wishes, err := app.verifyWishes(home, trust, profile)
	if err == nil && trust.Says.Verify.Empty() {
		err = exitWith(ExitNotFound, verify.ErrNoChecks)
	}
	return home, trust, wishes, err
}

// inherits has what the checks leave behind come to this process, where it looks after
// nothing else: what it inherits beside that would be ended, too.
func (a *App) inherits() bool { return !a.Guest && proc.BecomeSubreaper() == nil }

func runVerify(ctx context.Context, app *App, f verifyFlags) error {
	if !slices.Contains(verify.Triggers(), f.trigger) {
		return usagef("%q is nothing that a verification is for; write one of %s", clipText(f.trigger, 40), strings.Join(verify.Triggers(), ", "))
	}
	home, trust, wishes, err := verifyAsked(app, f.profile)
	if err != nil {
		return err
	}
	if !trust.Approved {
		return notTrusted(home)
	}
	o := app.verifyOptions(home, trust, app.Env.Dir)
	o.Subreaper = app.inherits()
	if app.OutIsTerminal && !f.asJSON {
		o.Step = func(step string) {
			if name, ok := strings.CutPrefix(step, "check "); ok {
				fmt.Fprintf(app.Err, "%s %s\n", app.Style().Dim("running"), term.SafeLine(name))
			}
		}
	}
	v, err := verify.New(ctx, o)
	if err != nil {
		return err
	}
	if f.ifFree && v.Busy() {
		return nil
	}
	if err := v.KnowsBase(ctx, f.base); err != nil {
		return usagef("--base: %w", err)
	}
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(f.timeout)*time.Second)
		defer cancel()
	}
	r, err := v.Run(ctx, verify.Request{
		Trigger: f.trigger, Session: f.session, Client: f.client, Wishes: wishes, Base: f.base,
		Regressions: home.Settings.Gates.Off("regressions", nil) == "",
	})
	if errors.Is(err, verify.ErrInterrupted) {
		return err
	}
	if f.asJSON {
		if perr := printJSON(app.Out, r); perr != nil {
			return perr
		}
	} else {
		printResult(app, r, false)
	}
	if err != nil {
		return err
	}
	if r.Status != verify.Passed {
		return exitWithCode(ExitFailure)
	}
	return nil
}

// printResult shows a result; whole also what the checks printed.
func printResult(app *App, r *verify.Result, whole bool) {
	style := app.Style()
	mark := map[verify.Status]string{
		verify.Passed: style.Green("passed"), verify.Failed: style.Red("failed"), verify.Error: style.Yellow("error"), verify.Skipped: style.Dim("skipped"),
	}
	chosen := ""
	if r.Profile != "" { // else it failed before one was chosen
		chosen = "  " + r.Profile + ": " + term.SafeLine(r.Why)
	}
	app.said(r.ID+"  ", mark[r.Status]+chosen)
	if r.Reused != "" {
		app.said("  ", fmt.Sprintf("the very same tree %s in %s", r.Status, r.Reused))
	}
	width := 0
	for _, c := range r.Checks {
		width = max(width, len([]rune(c.Name)))
	}
	for _, c := range r.Checks {
		note := ""
		if c.Level != "required" {
			note = " (" + c.Level + ")"
		}
		if c.AtBase != "" {
			note += " (at the base: " + string(c.AtBase) + ifKnown(c.Excused, ", so it is excused", "") + ")"
		}
		app.said(fmt.Sprintf("  %s %s %6s  ", padRight(term.SafeLine(c.Name), width), mark[c.Status], (time.Duration(c.DurationMS)*time.Millisecond).Round(100*time.Millisecond)), style.Dim(term.SafeLine(c.Command))+note)
		switch {
		case whole && c.Output != "":
			fmt.Fprint(app.Out, indent(term.SafeText(c.Output), "    | "))
		case c.Status == verify.Failed:
			for _, l := range c.Lines {
				fmt.Fprintf(app.Out, "    | %s\n", term.SafeLine(l))
			}
		}
	}
	for _, i := range r.Issues {
		who := ""
		if i.Check != "" {
			who = i.Check + ": "
		}
		level := i.Level
		if r.Status == verify.Error && i.Gate == "tests" && level != "blocking" {
			level = "error" // it is why nothing was found out
		}
		app.said(level+": ", term.SafeLine(who)+term.SafeLine(i.Message))
	}
	for _, n := range r.Next {
		app.said("next: ", term.SafeLine(n))
	}
	if r.Blocked {
		fmt.Fprintln(app.Out, "the agent was kept from ending, and told:")
		for line := range strings.Lines(term.SafeText(r.Reason)) {
			app.said("  ", strings.TrimRight(line, "\n"))
		}
	}
}

func padRight(s string, n int) string { return s + strings.Repeat(" ", max(0, n-len([]rune(s)))) }

func indent(s, by string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(by + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}

func verifyExplain(app *App) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use: "explain", Args: cobra.NoArgs, Short: "Say which checks would run, and why these; run none",
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, trust, wishes, err := verifyAsked(app, f.profile)
			if err != nil {
				return err
			}
			v, err := verify.New(cmd.Context(), app.verifyOptions(home, trust, app.Env.Dir))
			if err != nil {
				return err
			}
			p, err := v.Explain(cmd.Context(), verify.Request{Wishes: wishes, Base: f.base}, "")
			if err != nil {
				return err
			}
			if f.asJSON {
				return printJSON(app.Out, struct {
					Trusted bool `json:"trusted"`
					verify.Plan
				}{trust.Approved, p})
			}
			printPlan(app, home, trust, p)
			return nil
		},
	}
	cmd.Flags().StringVar(&f.profile, "profile", "", "quick, standard or deep")
	cmd.Flags().StringVar(&f.base, "base", "", "`COMMIT` that the change is seen against; default: HEAD")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print it for programs")
	return cmd
}

func printPlan(app *App, home *config.Home, trust config.Trust, p verify.Plan) {
	line := func(name, format string, args ...any) {
		app.said(fmt.Sprintf("%-10s ", name), term.SafeLine(fmt.Sprintf(format, args...)))
	}
	line("tree", "%s", filepath.Join(p.Dir, filepath.FromSlash(p.Sub)))
	switch {
	case p.Problem != "":
		line("change", "cannot be seen: %s", p.Problem)
	case !p.Risk.Known:
		line("change", "there is nothing to compare with")
	default:
		base := p.Base
		if base == "" {
			base = "nothing, for nothing was ever committed"
		}
		line("change", "%s, %s since %s", count(p.Risk.Files, "file"), count(p.Risk.Lines, "line"), clipText(base, 40))
	}
	for _, path := range p.Risk.Protected {
		line("protected", "%s", path)
	}
	line("profile", "%s: %s", p.Profile, p.Why)
	for _, c := range trust.Says.Verify.ChecksOf(p.Profile) {
		level := ""
		if c.Advisory {
			level = " (advisory)"
		}
		line("check", "%s%s: %s", c.Name, level, c.Command())
	}
	if p.Sandboxed {
		line("sandbox", "checks cannot write into the tree or its repository")
	} else {
		line("sandbox", "none: the tree is compared before and after")
	}
	if !trust.Approved {
		line("not run", "%s is not approved; `reprise trust` shows it and asks", home.Project.File())
	}
}

func verifyList(app *App) *cobra.Command {
	var asJSON bool
	var most int
	cmd := &cobra.Command{
		Use: "list", Args: cobra.NoArgs, Short: "List this project's verifications, the newest first",
		RunE: func(*cobra.Command, []string) error {
			home, _, err := verifyHome(app)
			if err != nil {
				return err
			}
			list, bad, err := app.verifyStore(home).List(most)
			if err != nil {
				return err
			}
			if bad > 0 {
				fmt.Fprintf(app.Err, "%s cannot be read\n", count(bad, "result"))
			}
			if asJSON {
				if list == nil {
					list = []*verify.Result{}
				}
				return printJSON(app.Out, list)
			}
			if len(list) == 0 {
				fmt.Fprintln(app.Err, "nothing was verified here yet")
				return nil
			}
			return listVerifications(app, list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them for programs")
	cmd.Flags().IntVarP(&most, "number", "n", 20, "at most so many")
	return cmd
}

func listVerifications(app *App, list []*verify.Result) error {
	style, format := app.Style(), "2006-01-02 15:04"
	if app.Columns > 0 && app.Columns < wideEnough {
		format = "01-02 15:04"
	}
	table := term.NewTable(style, "ID", "STARTED", "TRIGGER", "PROFILE", "STATUS", "CLIENT").MaxWidth(app.Columns)
	for _, r := range list {
		client := r.Client
		if r.Blocked {
			client = strings.TrimSpace(client + " blocked")
		}
		table.Row(r.ID, style.Dim(r.Started.Local().Format(format)), r.Trigger, r.Profile, string(r.Status), client)
	}
	return table.Write(app.Out)
}

func verifyShow(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show [ID]", Args: cobra.MaximumNArgs(1), Short: "Show a verification with what its checks printed; default: the newest",
		RunE: func(_ *cobra.Command, args []string) error {
			home, _, err := verifyHome(app)
			if err != nil {
				return err
			}
			id := "latest"
			if len(args) == 1 {
				id = args[0]
			}
			r, err := app.verifyStore(home).Get(id)
			if errors.Is(err, verify.ErrNoResult) {
				return exitWith(ExitNotFound, err)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(app.Out, r)
			}
			printResult(app, r, true)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}
