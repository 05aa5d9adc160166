package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/memory"
	"reprise/internal/proc"
	"reprise/internal/proc/confine"
	"reprise/internal/redact"
	"reprise/internal/setup"
	"reprise/internal/term"
)

func newDoctorCmd(app *App) *cobra.Command {
	var asJSON, quick, guarding bool
	cmd := &cobra.Command{
		Use: "doctor", Args: cobra.NoArgs, Short: "Say what is set up, what is not, and what to do about it",
		Long: `Look at everything reprise depends on and say what is well, what is not, and what
to do about it. Nothing is changed. The exit code is 1 when something will not
work, and 0 when there are only warnings.

Clients that have reprise's hooks are run once, in a directory of their own and
against a stand-in for their model, to see that the hooks work. They run at the
same time; all four together are about 25 seconds of a processor's work. --quick
leaves that out.

--guard looks at the guard alone: each such client is made to try what is refused,
and the exit code is 0 only where none of them ran it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := doctor(app)
			if err != nil {
				return err
			}
			var checks []setup.Check
			if guarding {
				if checks, err = guardChecks(app); err != nil {
					return err
				}
			} else if !quick {
				var once sync.Once
				d.Live = func(ctx context.Context, h setup.InstalledHooks) []setup.Finding {
					once.Do(func() {
						if app.OutIsTerminal && !asJSON {
							fmt.Fprintf(app.Err, "running the clients, all at once, for up to %s each (--quick leaves that out)\n", liveTime)
						}
					})
					return liveHooks(ctx, app, h)
				}
			}
			if !guarding {
				checks = d.Checks()
			}
			if asJSON {
				found := setup.Diagnose(cmd.Context(), checks, nil)
				if err := printJSON(app.Out, map[string]any{"status": setup.Worst(found), "findings": found}); err != nil {
					return err
				}
				return doctorExit(found)
			}
			heading := ""
			found := setup.Diagnose(cmd.Context(), checks, func(of []setup.Finding) {
				if heading != of[0].Check { // several checks in a row may be about the same
					heading = of[0].Check
					fmt.Fprintln(app.Out, app.Style().Bold(heading))
				}
				printFindings(app, of)
			})
			printVerdict(app, found)
			return doctorExit(found)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings for programs")
	cmd.Flags().BoolVar(&quick, "quick", false, "do not run any client")
	cmd.Flags().BoolVar(&guarding, "guard", false, "prove that what is refused does not run, in each client")
	cmd.MarkFlagsMutuallyExclusive("quick", "guard")
	return cmd
}

func doctorExit(found []setup.Finding) error {
	if setup.Worst(found) == setup.Fail {
		return &ExitError{Code: ExitFailure}
	}
	return nil
}

// doctor wires the checks. It works where the settings do not: that is when it
// is needed most.
func doctor(app *App) (setup.Doctor, error) {
	paths, err := config.FindPaths(app.Env)
	if err != nil {
		return setup.Doctor{}, err
	}
	where := setup.Where{Env: app.Env, Dir: app.Env.Dir, Root: app.Env.Dir}
	if p, err := config.FindProject(app.Env, app.Env.Dir); err == nil && p != nil {
		where.Root = p.Root
	}
	redactor := redact.New()
	d := setup.Doctor{
		Setup:    setup.Setup{Where: where, Paths: paths, Now: app.Env.Now},
		Program:  app.Program,
		Config:   app.ConfigFlag,
		Load:     app.Home,
		Memory:   lazyMemory{app},
		LookPath: func(name string) (string, error) { return proc.LookPath(name, app.Env.Vars, app.Env.GOOS) },
		Version:  func(ctx context.Context, program string) (string, error) { return programVersion(ctx, app, program) },
		Secrets: func(text string) int {
			_, n := redactor.String(text)
			return n
		},
	}
	if abi, _ := confine.Supported(); abi > 0 {
		d.Temp = "/tmp"
	}
	if top := git.Top(where.Root); top != "" {
		d.More = append(d.More, setup.Check{Name: "repository", Run: func(ctx context.Context) []setup.Finding { return app.checkRepository(ctx, top) }})
	}
	if home, err := app.Home(); err == nil {
		if home.Settings.Judge.Client != "" {
			d.More = append(d.More, setup.Check{Name: "judge", Run: app.checkJudge})
		}
		if home.Settings.Queue != config.QueueFiles {
			d.More = append(d.More, setup.Check{Name: "fleet", Run: app.checkFleet})
		}
		d.More = append(d.More, app.memoryChecks(home)...)
		d.More = append(d.More, setup.Check{Name: "guard", Run: app.checkGuardMode}, setup.Check{Name: "gates", Run: app.checkGates}, setup.Check{Name: "delegation", Run: app.checkDelegation})
		d.Waiting = func() (waiting, bad int, err error) {
			broker, err := app.Broker()
			if err != nil {
				return 0, 0, err
			}
			list, err := broker.Outbox()
			for _, w := range list {
				if w.Bad != "" {
					bad++
				} else {
					waiting++
				}
			}
			return waiting, bad, err
		}
		d.Absent = func(ctx context.Context) string {
			if ab := app.absentProject(ctx, app.Env.Dir); ab != nil {
				return ab.why()
			}
			return ""
		}
		d.Lost = func() (int, error) {
			broker, err := app.Broker()
			if err != nil {
				return 0, err
			}
			return broker.Lost()
		}
		d.Orphans = func(context.Context) (map[string][]proc.ID, error) {
			runs, err := app.Runs()
			if err != nil {
				return nil, err
			}
			return runs.Orphans()
		}
	}
	return d, nil
}

// checkRepository asks git whether it reads the repository of the code as its user has it
// set: it does not where another user owns it, and then nothing of tasks is committed.
func (a *App) checkRepository(ctx context.Context, top string) []setup.Finding {
	g := git.New(top, git.Options{Vars: a.Env.Vars})
	_, err := g.AsUser().Run(ctx, "rev-parse", "--git-dir")
	var said *git.Error
	switch {
	case err == nil:
		return finding(setup.OK, "", "git reads the repository in %s", top)
	case errors.Is(err, git.ErrNotInstalled), ctx.Err() != nil:
		return nil // told of by another check
	case errors.As(err, &said) && strings.Contains(said.Stderr, dubiousOwnership):
		return finding(setup.Warn, "if you trust what is in it: "+trustOwner(said.Stderr), "git does not read the repository in %s, because another user owns it: nothing can be committed there, and there are no workspaces", top)
	}
	return finding(setup.Warn, "`git status` there says more", "git does not read the repository in %s: %v", top, err)
}

// lazyMemory opens the store when it is asked.
type lazyMemory struct{ app *App }

func (l lazyMemory) Check(ctx context.Context) (memory.Report, error) {
	layers, err := l.app.Layers()
	if err != nil {
		return memory.Report{}, err
	}
	reports, err := layers.Check(ctx)
	if err != nil {
		return memory.Report{}, err
	}
	var all memory.Report
	for _, r := range reports {
		if r.Project == "" {
			all = r
			continue
		}
		for _, f := range r.Findings {
			f.File = r.Project + ":" + f.File
			all.Findings = append(all.Findings, f)
		}
	}
	return all, nil
}

// programVersion is the first line that a program says to --version. It is asked in a home
// that is made for it and removed again: some clients unpack themselves or make their
// settings directory for that question. One of an npm package is not even asked, since its
// version stands beside it.
func programVersion(ctx context.Context, app *App, program string) (string, error) {
	if v := packageVersion(program); v != "" {
		return v, nil
	}
	dir, drop, err := throwaway("reprise-doctor-")
	if err != nil {
		return "", err
	}
	defer drop()
	vars := plainVars(app)
	for _, name := range []string{"HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TMPDIR", "TEMP", "TMP"} {
		vars[name] = dir
	}
	v, err := askVersion(ctx, varLines(vars), dir, program)
	var says *silentError
	if err == nil || !errors.As(err, &says) {
		return v, err
	}
	// Starters of version managers find the program by the user's own home.
	return askVersion(ctx, app.Environ, app.Env.Dir, program)
}

// silentError is an answer that has no version in it.
type silentError struct{ why string }

func (e *silentError) Error() string { return e.why }

func askVersion(ctx context.Context, env []string, dir, program string) (string, error) {
	out, err := proc.Run(ctx, proc.Cmd{Path: program, Args: []string{"--version"}, Env: env, Dir: dir}, 64<<10)
	if err != nil {
		return "", err
	}
	if out.Exit.Code != 0 {
		return "", &silentError{fmt.Sprintf("exit code %d: %s", out.Exit.Code, firstLine(string(out.Stderr), 200))}
	}
	line := firstLine(string(out.Stdout), 100)
	if line == "" {
		return "", &silentError{"it says nothing"}
	}
	return line, nil
}

// packageVersion is the version of the npm package that a program belongs to, "" where it
// belongs to none or that says no version.
func packageVersion(program string) string {
	path, err := filepath.EvalSymlinks(program)
	if err != nil {
		return ""
	}
	for dir := filepath.Dir(path); strings.Contains(filepath.ToSlash(dir), "/node_modules/") && filepath.Base(dir) != "node_modules"; dir = filepath.Dir(dir) {
		info, err := os.Stat(filepath.Join(dir, "package.json"))
		if err != nil || info.Size() > 1<<20 {
			continue
		}
		data, err := durable.Read(filepath.Join(dir, "package.json"))
		var p struct{ Name, Version string }
		if err == nil && json.Unmarshal(data, &p) == nil && p.Name != "" && p.Version != "" {
			return firstLine(p.Version+" ("+p.Name+")", 100)
		}
	}
	return ""
}

// printFindings prints what one check found, at once: some checks take seconds.
func printFindings(app *App, found []setup.Finding) {
	style := app.Style()
	mark := map[setup.Status]string{
		setup.OK: style.Green("ok  "), setup.Info: style.Dim("info"), setup.Warn: style.Yellow("warn"), setup.Fail: style.Red("FAIL"),
	}
	for _, f := range found {
		fmt.Fprintln(app.Out, term.Wrap("  "+mark[f.Status]+"  ", term.SafeLine(f.Message), "        ", app.Columns))
		if f.Remedy != "" {
			fmt.Fprintln(app.Out, term.Wrap("        "+style.Dim("→")+" ", term.SafeLine(f.Remedy), "          ", app.Columns))
		}
	}
}

func printVerdict(app *App, found []setup.Finding) {
	style := app.Style()
	n := map[setup.Status]int{}
	for _, f := range found {
		n[f.Status]++
	}
	fmt.Fprintln(app.Out)
	switch {
	case n[setup.Fail] > 0:
		fmt.Fprintf(app.Out, "%s\n", style.Red(strings.TrimSpace(fmt.Sprintf("To mend: %d of %s.", n[setup.Fail], count(len(found), "finding")))))
	case n[setup.Warn] > 0:
		fmt.Fprintf(app.Out, "It works; %s.\n", count(n[setup.Warn], "warning"))
	default:
		fmt.Fprintln(app.Out, style.Green("All is well."))
	}
}
