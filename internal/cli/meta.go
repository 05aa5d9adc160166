package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/meta"
	"reprise/internal/term"
)

type metaOptions struct {
	answers, answer, dir             string
	status, restart, undo, dry, json bool
	answered                         bool // --answer was given, if only with an empty text
}

func newTaskMetaCmd(app *App) *cobra.Command {
	var o metaOptions
	cmd := &cobra.Command{
		Use: "meta", Args: cobra.NoArgs, Short: "Build agents, commands and context for a domain, by an interview",
		Long: `Ask what a domain is about, in eight stages, and make a system of agents for it below
.claude/: agents, commands, a skill, context files, workflows and guides, each agent
scored before it is written. Leave when you like: the next call goes on where you
left. Nothing of yours is written over; --undo takes out what was made.

At a terminal you are asked. Elsewhere give --answers FILE (YAML, docs/meta.md has
one), or go step by step: --status says what is asked next, --answer TEXT answers it.`,
		Example: `  reprise task meta
  reprise task meta --answers answers.yaml --dry-run
  reprise task meta --undo`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.answered = cmd.Flags().Changed("answer")
			return runMeta(cmd.Context(), app, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.answers, "answers", "", "take the answers from this `FILE` of YAML; - reads standard input")
	f.StringVar(&o.answer, "answer", "", "answer the next question with this `TEXT`; an empty one takes what is usual")
	f.BoolVar(&o.status, "status", false, "say what is asked next, and what was answered so far")
	f.BoolVar(&o.restart, "restart", false, "forget the answers so far and begin anew")
	f.StringVar(&o.dir, "dir", "", "build in this `DIR` (default: the project, else the working directory)")
	f.BoolVar(&o.dry, "dry-run", false, "show what would be made, and make nothing")
	f.BoolVar(&o.undo, "undo", false, "take out what was made last")
	f.BoolVar(&o.json, "json", false, "print it for programs")
	cmd.MarkFlagsMutuallyExclusive("answers", "answer", "status", "undo")
	cmd.MarkFlagsMutuallyExclusive("undo", "restart")
	return cmd
}

// metaDoc is what --json prints.
type metaDoc struct {
	Root    string            `json:"root"`
	Answers map[string]string `json:"answers"`
	// Next is what is asked next; without it the interview is through.
	Next *meta.Question `json:"next,omitempty"`
	// Summary is what is to be confirmed.
	Summary string        `json:"summary,omitempty"`
	Files   []meta.File   `json:"files,omitempty"`
	Scores  []meta.Score  `json:"scores,omitempty"`
	Done    *meta.Outcome `json:"done,omitempty"`
	DryRun  bool          `json:"dry_run,omitempty"`
	Checked string        `json:"checked,omitempty"` // what the client's checker said
}

// interviewing is one call of `task meta`.
type interviewing struct {
	app  *App
	o    metaOptions
	b    *meta.Builder
	root string
	have meta.Existing
	iv   meta.Interview
	doc  metaDoc
}

func runMeta(ctx context.Context, app *App, o metaOptions) error {
	home, err := app.Home()
	if err != nil {
		return err
	}
	root := app.Env.Dir
	if home.Project != nil {
		root = home.Project.Root
	}
	if o.dir != "" {
		root = app.abs(o.dir)
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return exitWith(ExitNotFound, err)
	}
	m := &interviewing{app: app, o: o, root: root, b: meta.New(meta.Options{Data: filepath.Join(home.Paths.Data, "meta"), Root: root, Now: app.Env.Now})}
	unlock, err := m.b.Lock(ctx)
	if err != nil {
		return exitWith(ExitConflict, err)
	}
	defer unlock()
	if o.undo {
		return m.undo(ctx)
	}
	if out, err := m.b.Finish(ctx); err != nil {
		return err
	} else if len(out.Written)+len(out.Removed) > 0 {
		fmt.Fprintf(app.Err, "note: a generation that was interrupted is finished: %s written\n", count(len(out.Written), "file"))
	}
	if m.have, err = m.b.Look(); err != nil {
		return err
	}
	if o.restart {
		if err := m.b.Forget(); err != nil {
			return err
		}
	}
	begun := false
	if m.iv, begun, err = m.b.Interview(); err != nil {
		return err
	}
	return m.run(ctx, begun)
}

func (m *interviewing) run(ctx context.Context, begun bool) error {
	app, o := m.app, m.o
	switch {
	case o.answers != "":
		text, _, err := app.listFile(ctx, o.answers, "answers")
		if err != nil {
			return err
		}
		given, err := meta.ParseAnswers([]byte(text))
		if err != nil {
			return usagef("%s: %w", o.answers, err)
		}
		raw, err := meta.Fill(given, m.have)
		if err != nil {
			return usagef("%s: %w", o.answers, err)
		}
		m.iv.Answers = raw
		if missing := meta.Missing(raw, m.have); len(missing) > 0 && !(len(missing) == 1 && missing[0] == "confirm" && o.dry) {
			return usagef("%s: it does not say %s", o.answers, strings.Join(missing, ", "))
		}
	case o.answered:
		q := meta.Next(m.iv.Answers, m.have)
		if q == nil {
			return exitWith(ExitConflict, errors.New("nothing is asked any more; --restart begins anew"))
		}
		if err := meta.Answer(m.iv.Answers, *q, o.answer); err != nil {
			return usagef("%s: %w", q.Key, err)
		}
		if err := m.b.Save(m.iv); err != nil {
			return err
		}
		if meta.Next(m.iv.Answers, m.have) != nil {
			return m.showNext()
		}
	case o.status || !app.InIsTerminal || !app.OutIsTerminal:
		return m.showNext()
	default:
		if err := m.ask(ctx, begun); err != nil {
			return err
		}
	}
	return m.generate(ctx)
}

// showNext says what is asked next, for those who answer it by --answer.
func (m *interviewing) showNext() error {
	m.doc = metaDoc{Root: m.root, Answers: m.iv.Answers, Next: meta.Next(m.iv.Answers, m.have)}
	q := m.doc.Next
	if q != nil && q.Key == "confirm" {
		d, files, err := m.design()
		if err != nil {
			return err
		}
		m.doc.Summary = d.Summary(files)
	}
	if m.o.json {
		return printJSON(m.app.Out, m.doc)
	}
	for _, k := range slices.Sorted(maps.Keys(m.iv.Answers)) {
		fmt.Fprintf(m.app.Out, "%s: %s\n", k, term.SafeLine(m.iv.Answers[k]))
	}
	if m.doc.Summary != "" {
		fmt.Fprintf(m.app.Out, "\n%s\n", term.SafeText(m.doc.Summary))
	}
	if q == nil {
		fmt.Fprintln(m.app.Out, "nothing is asked any more; --restart begins anew")
		return nil
	}
	fmt.Fprintf(m.app.Out, "%s: %s%s\nanswer it with `reprise task meta --answer TEXT`\n", q.Stage, q.Ask, hint(q))
	return nil
}

func hint(q *meta.Question) string {
	var parts []string
	if len(q.Choices) > 0 {
		parts = append(parts, strings.Join(q.Choices, ", "))
	}
	if q.Usual != "" {
		parts = append(parts, "["+q.Usual+"]")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// ask goes through the interview at a terminal. Each answer is kept at once.
func (m *interviewing) ask(ctx context.Context, begun bool) error {
	app := m.app
	if begun {
		fmt.Fprintf(app.Out, "You were here before: %s are kept; --restart begins anew.\n", count(len(m.iv.Answers), "answer"))
	} else {
		fmt.Fprint(app.Out, "This makes agents, commands and context files for a domain of yours, below .claude/.\nIt asks about twenty questions; Enter takes what stands in brackets; leave when you\nlike (Ctrl-C), the answers are kept. Nothing is written before you have confirmed it.\n")
	}
	stage := ""
	for q := meta.Next(m.iv.Answers, m.have); q != nil; q = meta.Next(m.iv.Answers, m.have) {
		if q.Stage != stage {
			stage = q.Stage
			fmt.Fprintf(app.Out, "\n%s\n", app.Style().Bold(stage))
		}
		if q.Key == "confirm" {
			d, files, err := m.design()
			if err != nil {
				return err
			}
			fmt.Fprintf(app.Out, "\n%s\n", term.SafeText(d.Summary(files)))
		}
		fmt.Fprintf(app.Out, "%s%s: ", q.Ask, hint(q))
		line, err := app.ask(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && line == "" {
			return exitWith(ExitConflict, fmt.Errorf("left at %s; `reprise task meta` goes on from there", q.Key))
		}
		if err := meta.Answer(m.iv.Answers, *q, line); err != nil {
			fmt.Fprintf(app.Out, "  %s\n", term.SafeLine(err.Error()))
			continue
		}
		if err := m.b.Save(m.iv); err != nil {
			return err
		}
	}
	return nil
}

func (m *interviewing) design() (meta.Design, []meta.File, error) {
	a, err := meta.Build(m.iv.Answers)
	if err != nil {
		return meta.Design{}, nil, err
	}
	d := meta.NewDesign(a)
	return d, d.Generate(), nil
}

func (m *interviewing) generate(ctx context.Context) error {
	app := m.app
	if m.iv.Answers["existing"] == meta.Cancel {
		if err := m.b.Forget(); err != nil {
			return err
		}
		fmt.Fprintln(app.Out, "nothing was made")
		return nil
	}
	if m.iv.Answers["confirm"] != "yes" && !m.o.dry {
		delete(m.iv.Answers, "confirm")
		if err := m.b.Save(m.iv); err != nil {
			return err
		}
		fmt.Fprintln(app.Out, "nothing was made; the answers are kept, and --restart forgets them")
		return nil
	}
	d, files, err := m.design()
	if err != nil {
		return err
	}
	m.doc = metaDoc{Root: m.root, Answers: m.iv.Answers, Files: files, DryRun: m.o.dry}
	scores, wrong := meta.Check(files)
	m.doc.Scores = scores
	if len(wrong) > 0 {
		return fmt.Errorf("nothing was written; what was generated is not in order:\n  %s", strings.Join(wrong, "\n  "))
	}
	sys, err := m.b.Plan(d, files)
	if errors.Is(err, meta.ErrTaken) {
		return exitWith(ExitConflict, err)
	}
	if err != nil {
		return err
	}
	if m.doc.Checked, err = m.checkSystem(ctx, files); err != nil {
		return err
	}
	if !m.o.dry {
		out, err := m.b.Apply(ctx, sys)
		if err != nil {
			return err
		}
		m.doc.Done = &out
	}
	return m.deliver(d, sys)
}

// deliver says what was made and how to begin with it.
func (m *interviewing) deliver(d meta.Design, sys meta.System) error {
	app := m.app
	if m.o.json {
		return printJSON(app.Out, m.doc)
	}
	if m.o.dry {
		fmt.Fprintf(app.Out, "%s\n", term.SafeText(d.Summary(m.doc.Files)))
		for _, f := range sys.Replaces {
			fmt.Fprintf(app.Out, "would be taken away: %s\n", f.Name)
		}
	} else {
		for _, f := range m.doc.Done.Written {
			fmt.Fprintf(app.Out, "written: %s\n", term.SafeLine(f))
		}
		for _, f := range m.doc.Done.Removed {
			fmt.Fprintf(app.Out, "removed: %s\n", term.SafeLine(f))
		}
		for _, f := range m.doc.Done.Left {
			fmt.Fprintf(app.Out, "left as it is: %s\n", term.SafeLine(f))
		}
	}
	for _, s := range m.doc.Scores {
		fmt.Fprintf(app.Out, "%.1f of 10: %s\n", s.Points, s.File)
	}
	fmt.Fprintln(app.Out, m.doc.Checked)
	if !m.o.dry {
		fmt.Fprintf(app.Out, "Next: start Claude Code anew and type /%s; .claude/docs/%s/quick-start.md says more.\n", d.Commands[0].Name, d.Slug)
	}
	return nil
}

func (m *interviewing) undo(ctx context.Context) error {
	out, err := m.b.Undo(ctx, m.o.dry)
	if errors.Is(err, fs.ErrNotExist) {
		return exitWith(ExitNotFound, err)
	}
	if err != nil {
		return err
	}
	if m.o.json {
		return printJSON(m.app.Out, out)
	}
	word := "removed"
	if m.o.dry {
		word = "would be removed"
	}
	for _, f := range out.Removed {
		fmt.Fprintf(m.app.Out, "%s: %s\n", word, term.SafeLine(f))
	}
	for _, f := range out.Written {
		fmt.Fprintf(m.app.Out, "back: %s\n", term.SafeLine(f))
	}
	for _, f := range out.Left {
		fmt.Fprintf(m.app.Out, "left, for it was changed since: %s\n", term.SafeLine(f))
	}
	return nil
}
