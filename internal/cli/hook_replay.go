package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"reprise/internal/agent/dialect"
	"reprise/internal/agent/dialect/fixture"
	"reprise/internal/agent/dialect/schema"
	"reprise/internal/durable"
	"reprise/internal/proc"
)

// Limits of a hook program that is tried.
const (
	replayLimit  = 30 * time.Second // for one case
	replayOutput = 1 << 20          // bytes of its output
)

type replayFlags struct {
	client, match, against, reference string
	update, asJSON                    bool
}

// replayResult is what came of one case.
type replayResult struct {
	Case     string   `json:"case"`
	OK       bool     `json:"ok"`
	Diff     string   `json:"diff,omitempty"`
	Problems []string `json:"problems,omitempty"`
	Updated  bool     `json:"updated,omitempty"`
}

func newHookReplayCmd(app *App) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use: "replay [DIR] [-- ARG...]", Short: "Run recorded hook payloads through reprise, or through another program",
		Long: `Read each case below DIR (default: those that reprise carries) and compare what it
comes to in this version with its expected.json: the event that is read, what is
recorded, and the answers. --update writes expected.json anew.

With --against, each payload is given to PROGRAM, started as
PROGRAM [ARG...] CLIENT EVENT with the payload on its standard input, and to the
reference (default: this reprise's own hook), and their answers are compared, but
for order and volatile fields. PROGRAM's answers are also held against what the
client takes. Both run with a REPRISE_HOME of their own that is removed afterwards.

Ends with 1 if anything differs.`,
		Example: `  reprise hook replay
  reprise hook replay cases --update
  reprise hook replay cases --against ./old-hook -- --quiet`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var extra []string
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				args, extra = args[:n], args[n:]
			}
			switch {
			case len(args) > 1:
				return usagef("replay takes one directory of cases; arguments for the program go behind --")
			case f.update && len(args) == 0:
				return usagef("--update needs a DIR: the built-in cases belong to the program")
			case f.update && f.against != "":
				return usagef("--update is about expected.json, --against does not read it: give one of the two")
			case f.against == "" && (f.reference != "" || len(extra) > 0):
				return usagef("--reference and arguments behind -- belong to --against")
			case f.client != "" && clientArg(f.client) != nil:
				return clientArg(f.client)
			}
			dir, set := "", fixture.Builtin()
			if len(args) == 1 {
				var err error
				if dir, err = absPath(app, args[0]); err != nil {
					return err
				}
				if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
					return exitWith(ExitNotFound, fmt.Errorf("replay: there is no directory %s", dir))
				}
				set = os.DirFS(dir)
			}
			cases, err := replayCases(set, f)
			if err != nil {
				return err
			}
			if len(cases) == 0 {
				return exitWith(ExitNotFound, errors.New("replay: no case was found; a case is a folder with case.json and stdin.json (see `reprise hook record --help`)"))
			}
			var results []replayResult
			if f.against != "" {
				results, err = replayAgainst(cmd.Context(), app, f, cases, extra)
			} else {
				results, err = replayExpected(dir, set, f, cases)
			}
			if err != nil {
				return err
			}
			return showReplay(app, f, results)
		},
	}
	cmd.Flags().StringVar(&f.client, "client", "", "only cases of this client")
	cmd.Flags().StringVar(&f.match, "case", "", "only cases whose folder matches this `PATTERN`, such as 'claude/*'")
	cmd.Flags().StringVar(&f.against, "against", "", "compare `PROGRAM`'s answers")
	cmd.Flags().StringVar(&f.reference, "reference", "", "compare them with those of this `PROGRAM`")
	cmd.Flags().BoolVar(&f.update, "update", false, "write what differs into expected.json")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print it for programs")
	return cmd
}

func replayCases(set fs.FS, f replayFlags) ([]fixture.Case, error) {
	all, err := fixture.Load(set)
	if err != nil {
		return nil, err
	}
	var out []fixture.Case
	for _, c := range all {
		if f.client != "" && c.Client != f.client {
			continue
		}
		if f.match != "" {
			ok, err := path.Match(f.match, c.Dir)
			if err != nil {
				return nil, usagef("--case %q is no pattern: %w", f.match, err)
			}
			if !ok {
				continue
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// replayExpected compares cases with their expected.json.
func replayExpected(dir string, set fs.FS, f replayFlags, cases []fixture.Case) ([]replayResult, error) {
	var results []replayResult
	for _, c := range cases {
		want, err := fixture.ReadExpected(set, c)
		if err != nil {
			return nil, err
		}
		expect := fixture.Expect(c)
		got, err := fixture.Format(expect)
		if err != nil {
			return nil, err
		}
		r := replayResult{Case: c.Dir, OK: string(want) == string(got)}
		switch {
		case r.OK:
		case f.update:
			if err := fixture.WriteExpected(dir, c, expect); err != nil {
				return nil, err
			}
			r.OK, r.Updated = true, true
		default:
			r.Diff = udiff.Unified(path.Join(c.Dir, "expected.json"), "this version", string(want), string(got))
		}
		results = append(results, r)
	}
	return results, nil
}

// hookProgramRun is a program that answers hooks.
type hookProgramRun struct {
	path string
	args []string
	home string // its REPRISE_HOME
}

// replayAgainst compares two programs' answers.
func replayAgainst(ctx context.Context, app *App, f replayFlags, cases []fixture.Case, extra []string) (_ []replayResult, err error) {
	home, err := app.Home()
	if err != nil {
		return nil, err
	}
	scratch := filepath.Join(home.Paths.Cache, "replay-"+strconv.Itoa(app.PID))
	defer func() {
		if e := durable.RemoveAll(scratch); err == nil {
			err = e
		}
	}()
	tried := hookProgramRun{args: extra, home: filepath.Join(scratch, "tried")}
	reference := hookProgramRun{path: app.Program, args: []string{"hook"}, home: filepath.Join(scratch, "reference")}
	if tried.path, err = findProgram(app, f.against); err != nil {
		return nil, err
	}
	if f.reference != "" {
		reference.args = nil
		if reference.path, err = findProgram(app, f.reference); err != nil {
			return nil, err
		}
	}
	for _, p := range []hookProgramRun{tried, reference} {
		if err := durable.MkdirAll(p.home, 0o700); err != nil {
			return nil, err
		}
	}
	var results []replayResult
	for _, c := range cases {
		want, err := reference.answer(ctx, app, c)
		if err != nil {
			return nil, fmt.Errorf("reference: %w", err)
		}
		got, err := tried.answer(ctx, app, c)
		if err != nil {
			return nil, err
		}
		r := replayResult{Case: c.Dir, Problems: replyProblems(c, got)}
		a, err := want.Comparable(c.Volatile)
		if err != nil {
			return nil, err
		}
		b, err := got.Comparable(c.Volatile)
		if err != nil {
			return nil, err
		}
		r.Diff = udiff.Unified("reference", f.against, string(a), string(b))
		r.OK = r.Diff == "" && len(r.Problems) == 0
		results = append(results, r)
	}
	return results, nil
}

func findProgram(app *App, name string) (string, error) {
	if strings.ContainsAny(name, `/\`) {
		return absPath(app, name)
	}
	return proc.LookPath(name, app.Env.Vars, app.Env.GOOS)
}

// answer runs the program on one case. A program that does not answer in time
// is an answer, too.
func (p hookProgramRun) answer(ctx context.Context, app *App, c fixture.Case) (fixture.Reply, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return fixture.Reply{}, err
	}
	go func() {
		_, _ = out.Write(c.Stdin) // a program that does not read it is no error
		out.Close()
	}()
	defer in.Close()
	limited, cancel := context.WithTimeout(ctx, replayLimit)
	defer cancel()
	env := []string{"REPRISE_HOME=" + p.home}
	for _, v := range app.Environ {
		if !strings.HasPrefix(v, "REPRISE_") {
			env = append(env, v)
		}
	}
	o, err := proc.Run(limited, proc.Cmd{
		Path: p.path, Args: append(append([]string{}, p.args...), c.Client, c.Event), Env: env, Dir: p.home, Stdin: in,
	}, replayOutput)
	switch {
	case ctx.Err() != nil:
		return fixture.Reply{}, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return fixture.Reply{Text: fmt.Sprintf("(no answer in %v)", replayLimit), Exit: -1}, nil
	case err != nil:
		return fixture.Reply{}, fmt.Errorf("start %s: %w", p.path, err)
	}
	return fixture.NewReply(o.Stdout, o.Stderr, o.Exit.Code), nil
}

// replyProblems is what the client would not take, or take for something else.
func replyProblems(c fixture.Case, r fixture.Reply) []string {
	var out []string
	switch {
	case r.Exit == 2:
		out = append(out, "it exits with 2, which blocks in most events")
	case r.Exit != 0:
		out = append(out, fmt.Sprintf("it exits with %d, which the client takes for a failed hook", r.Exit))
	}
	if r.Text != "" {
		out = append(out, "its output is not one JSON object")
	}
	m := dialect.ManifestOf(c.Client)
	if spec := m.Event(c.Event); spec != nil && len(r.Stdout) > 0 {
		if err := checkAnswer(schema.Output(m, spec), r.Stdout); err != nil {
			out = append(out, "its answer has another form than reprise's for this event: "+err.Error())
		}
	}
	return out
}

func checkAnswer(s schema.Object, answer []byte) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	var parsed jsonschema.Schema
	if err := json.Unmarshal(raw, &parsed); err != nil {
		return err
	}
	resolved, err := parsed.Resolve(nil)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(answer, &v); err != nil {
		return err
	}
	if o, ok := v.(map[string]any); ok && len(o) == 0 {
		return nil // the long form of nothing
	}
	return resolved.Validate(v)
}

func showReplay(app *App, f replayFlags, results []replayResult) error {
	differ, updated := 0, 0
	for _, r := range results {
		if !r.OK {
			differ++
		}
		if r.Updated {
			updated++
		}
	}
	if f.asJSON {
		if err := printJSON(app.Out, struct {
			Cases   int            `json:"cases"`
			Differ  int            `json:"differ"`
			Updated int            `json:"updated"`
			Results []replayResult `json:"results"`
		}{len(results), differ, updated, results}); err != nil {
			return err
		}
	} else {
		style := app.Style()
		for _, r := range results {
			switch {
			case r.Updated:
				fmt.Fprintf(app.Out, "%s updated\n", r.Case)
			case !r.OK:
				fmt.Fprintf(app.Out, "%s\n", style.Bold(r.Case))
				for _, p := range r.Problems {
					fmt.Fprintf(app.Out, "  ! %s\n", p)
				}
				fmt.Fprint(app.Out, style.Diff(r.Diff))
			}
		}
		fmt.Fprintf(app.Out, "%d cases, %d differ", len(results), differ)
		if updated > 0 {
			fmt.Fprintf(app.Out, ", %d updated", updated)
		}
		fmt.Fprintln(app.Out)
	}
	if differ > 0 {
		return &ExitError{Code: ExitFailure}
	}
	return nil
}
