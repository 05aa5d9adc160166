package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/git"
	"reprise/internal/hook"
	"reprise/internal/learn/scopes"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/redact"
	"reprise/internal/session"
	"reprise/internal/staterepo"
	"reprise/internal/term"
)

// journal is the state of the agent that works here, opened to be written to.
type journal struct {
	repo   *staterepo.Repo
	tree   *staterepo.Tree
	access memory.Access
}

func (a *App) journal(ctx context.Context) (*journal, error) {
	access, err := a.stateAccess()
	if err == nil {
		err = access.MayWrite()
	}
	if err != nil {
		return nil, err
	}
	repo, err := a.ensuredState(ctx)
	if err != nil {
		return nil, err
	}
	t, err := a.agentTree(ctx, repo, true)
	if err == nil {
		err = a.saysSo(t)
	}
	if err != nil {
		return nil, err
	}
	return &journal{repo: repo, tree: t, access: access}, nil
}

// saysSo refuses to write in the name of the agent that works here for another one, which
// REPRISE_AGENT names.
func (a *App) saysSo(t *staterepo.Tree) error {
	want := config.NameFrom(a.Env.Get(hook.AgentVar))
	if want == "" || staterepo.CheckName(want) != nil || t.Agent() == want {
		return nil
	}
	if n, ok := strings.CutPrefix(t.Agent(), want+"-"); ok {
		if _, err := strconv.Atoi(n); err == nil { // the name was in use, see makeAgent
			return nil
		}
	}
	return exitWith(ExitConflict, fmt.Errorf("the agent that works here is %s, and %s says %s: unset it to write as %s, or give %s a place of its own (`reprise workspace create %s`, or another directory in %s)",
		t.Agent(), hook.AgentVar, want, t.Agent(), want, want, agentDirVar))
}

// journalCommand is what commands that add an entry have in common.
func journalCommand(app *App, use, short string, entry func(text string) mdfile.Entry) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: use, Args: cobra.ExactArgs(1), Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := saidArg(cmd.Context(), app, args[0])
			if err != nil {
				return err
			}
			j, err := app.journal(cmd.Context())
			if err != nil {
				return err
			}
			return j.add(cmd.Context(), app, entry(text), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer for programs")
	return cmd
}

func (j *journal) add(ctx context.Context, app *App, e mdfile.Entry, asJSON bool) error {
	branch, _ := app.codeHead(ctx)
	e.Evidence = append(slices.Clone(e.Evidence), session.Whence(app.clientSession(app.Now().Add(-turnAtMost))(ctx), branch)...)
	added, err := j.tree.Add(ctx, j.access, e)
	if err != nil {
		return stateError(err)
	}
	return j.added(app, added, asJSON)
}

func (j *journal) added(app *App, a staterepo.Added, asJSON bool) error {
	app.noteState(a.Saved.Notes)
	if asJSON {
		a.Item.Entry = staterepo.ShownEntry(a.Item.Entry)
		return printJSON(app.Out, a)
	}
	done := "logged"
	if a.Existing {
		done = "already there"
	}
	fmt.Fprintf(app.Out, "%s %s  %s\n", done, a.ID, app.Style().Dim("(agent "+j.tree.Agent()+", "+a.File+")"))
	for _, w := range a.Warnings {
		fmt.Fprintf(app.Err, "warning: %s\n", w)
	}
	return nil
}

// keep is `learn` and `decide`: what a person says is the project's at once, what an
// agent says is its own until it is promoted. Outside a project it is everyone's.
// Where it says for whom it is, it is kept as `memory learn` and `memory decide` do.
func keep(cmd *cobra.Command, app *App, n scopes.Note, to noteFor, asJSON bool) error {
	ctx := cmd.Context()
	home, err := app.Home()
	if err != nil {
		return err
	}
	said := to.global || to.project != "" || n.Private
	if !app.person() && home.Project != nil && !said {
		j, err := app.journal(ctx)
		if err != nil {
			return err
		}
		e := mdfile.Entry{Type: n.Type, Text: n.Text, Decision: n.Decision, Alternatives: n.Alternatives, Rationale: n.Rationale, Source: "agent", Confidence: 0.6}
		return j.add(ctx, app, e, asJSON)
	}
	if n.Project, err = noteProject(app, to.global, to.project); err != nil {
		return err
	}
	if home.Project != nil && n.Project == home.Project.Name {
		if _, _, err := app.ensureState(ctx); err != nil && !errors.Is(err, git.ErrNotInstalled) {
			return err
		}
	}
	s, err := app.Scopes()
	if err != nil {
		return err
	}
	c, err := s.Learn(ctx, n)
	if err != nil {
		return memoryError(err)
	}
	app.saveGlobal(ctx, n.Project, savedAs(c))
	return changed(app, c, asJSON)
}

// savedAs is what a commit says of a change: the id alone. Commits are not rewritten, so
// words in one would outlast each purge of them, and be pushed.
func savedAs(c scopes.Change) string { return c.Op + ": " + c.ID }

// saveGlobal commits what was written into what a project's agents share, where
// there is a repository. The entry is on disk already: what goes wrong is a note.
func (a *App) saveGlobal(ctx context.Context, project, message string) {
	home, err := a.Home()
	if err != nil || project == "" {
		return
	}
	repo, err := a.stateOf(home, project)
	if err != nil || !repo.Exists() {
		return
	}
	by := ""
	if !a.person() {
		by = a.Env.Get(hook.AgentVar)
	}
	s, err := repo.Global().Save(ctx, by, clipText(strings.Join(strings.Fields(message), " "), 72))
	a.noteState(s.Notes)
	if err != nil {
		fmt.Fprintf(a.Err, "warning: it is written, but not committed: %v\n", err)
	}
}

func newLearnCmd(app *App) *cobra.Command {
	var asJSON bool
	var about string
	var to noteFor
	n := scopes.Note{Type: mdfile.TypeLearning}
	cmd := &cobra.Command{
		Use: "learn INSIGHT", Args: cobra.ExactArgs(1), Short: "Keep something that was learnt",
		Long: `Keep something that was learnt: an agent (REPRISE_AGENT) in its own
learnings.md, until ` + "`reprise context promote`" + ` gives it to all, a person at once
in the project's.

Good ones say what to do or to expect, and hold next time:
  Run the linter before a commit: the hook rejects it otherwise.
  workspace.go is where to begin: everything else calls it.
What was only done is a log entry: ` + "`reprise log add`" + `.`,
		Example: `  reprise learn "Tokens need both checks" --context "the bug of last week"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := saidArg(cmd.Context(), app, args[0])
			if err != nil {
				return err
			}
			n.Text = withContext(text, about)
			return keep(cmd, app, n, to, asJSON)
		},
	}
	learnFlags(cmd, &about)
	noteFlags(cmd, &n, &to)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer for programs")
	return cmd
}

func newDecideCmd(app *App) *cobra.Command {
	n := scopes.Note{Type: mdfile.TypeDecision}
	var asJSON bool
	var to noteFor
	cmd := &cobra.Command{
		Use: "decide DECISION", Args: cobra.ExactArgs(1), Short: "Keep a decision, with what was decided against and why",
		Example: `  reprise decide "Use RS256" --over HS256 --because "a public key is enough"`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if n.Decision, err = saidArg(cmd.Context(), app, args[0]); err != nil {
				return err
			}
			return keep(cmd, app, n, to, asJSON)
		},
	}
	decideFlags(cmd, &n)
	noteFlags(cmd, &n, &to)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer for programs")
	return cmd
}

// newTextCmd is a command that shows or writes one file of the agent's own.
func newTextCmd(app *App, use, file, short string) *cobra.Command {
	var add bool
	cmd := &cobra.Command{
		Use: use, Args: cobra.MaximumNArgs(1), Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if len(args) == 0 {
				t, err := app.ownTree(ctx)
				if t == nil || err != nil {
					return err
				}
				text, err := t.Read(file)
				if err != nil {
					return stateError(err)
				}
				fmt.Fprint(app.Out, term.SafeText(text))
				return nil
			}
			if err := noCommand(cmd, args[0]); err != nil && !add {
				return err
			}
			text, err := textArg(ctx, app, args[0])
			if err != nil {
				return err
			}
			j, err := app.journal(ctx)
			if err != nil {
				return err
			}
			if add {
				old, err := j.tree.Read(file)
				if err != nil {
					return stateError(err)
				}
				if old = strings.TrimRight(old, "\n"); old != "" {
					text = old + "\n\n" + text
				}
			}
			return j.write(ctx, app, file, text)
		},
	}
	cmd.Flags().BoolVar(&add, "add", false, "put it behind what is there, in place of replacing that")
	return cmd
}

func (j *journal) write(ctx context.Context, app *App, file, text string) error {
	if text = strings.TrimRight(text, "\n"); text != "" {
		text += "\n"
	}
	if len(text) > memory.MaxContent {
		return usagef("the text has %d bytes, at most %d are allowed", len(text), memory.MaxContent)
	}
	old, err := j.tree.Read(file)
	if err != nil {
		return stateError(err)
	}
	text = redacted(text)
	s, err := j.tree.Write(ctx, j.access, file, text, strings.TrimSuffix(file, ".md"))
	if err != nil {
		return stateError(err)
	}
	app.noteState(s.Notes)
	fmt.Fprintf(app.Out, "%s  %s\n", file, app.Style().Dim("(agent "+j.tree.Agent()+")"))
	if !strings.HasPrefix(text, strings.TrimRight(old, "\n")) {
		app.sayReplaced(s, j.tree.Dir, file, old, text)
	}
	return nil
}

// redacted is a text without the secrets in it.
func redacted(text string) string {
	text, _ = redact.New().String(text)
	return text
}

func newScratchCmd(app *App) *cobra.Command {
	cmd := newTextCmd(app, "scratch [TEXT]", "scratch.md", "Show the working notes of the agent that works here, or write them")
	cmd.Long = `Show scratch.md of the agent that works here, or put TEXT in its place. TEXT of
- reads standard input. It is that agent's alone: no merge changes it.`
	addShow(cmd, "show", "Show the working notes of the agent that works here")
	return cmd
}

func newNoteCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "note NAME TEXT", Args: cobra.ExactArgs(2), Short: "Write an observation into the agent's notes/NAME.md",
		RunE: func(cmd *cobra.Command, args []string) error {
			name := strings.TrimSuffix(args[0], ".md")
			if err := staterepo.CheckName(name); err != nil {
				return usagef("%w", err)
			}
			text, err := saidArg(cmd.Context(), app, args[1])
			if err != nil {
				return err
			}
			j, err := app.journal(cmd.Context())
			if err != nil {
				return err
			}
			return j.write(cmd.Context(), app, "notes/"+name+".md", text)
		},
	}
}

// savePoint is a checkpoint in the list of them.
type savePoint struct {
	Name string `json:"name"`
	File string `json:"file"` // below the agent's directory
}

func newCheckpointCmd(app *App) *cobra.Command {
	var message string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "checkpoint [NAME]", Args: cobra.MaximumNArgs(1), Short: "Keep where the agent is under a name, or list these save points",
		Long: `Keep scratch.md and context.md as they are, and which commit of the code it is,
in checkpoints/NAME.md. The state of that moment can also be had as a whole: it
is refs/reprise/checkpoint/AGENT/NAME of the state repository.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if len(args) == 0 {
				t, err := app.ownTree(ctx)
				if err != nil {
					return err
				}
				var list []string
				if t != nil {
					if list, err = t.Checkpoints(); err != nil {
						return stateError(err)
					}
				}
				if asJSON {
					points := []savePoint{}
					for _, n := range list {
						points = append(points, savePoint{n, "checkpoints/" + n + ".md"})
					}
					return printJSON(app.Out, points)
				}
				for _, n := range list {
					fmt.Fprintln(app.Out, term.SafeLine(n))
				}
				return nil
			}
			if err := noCommand(cmd, args[0]); err != nil {
				return err
			}
			j, err := app.journal(ctx)
			if err != nil {
				return err
			}
			c := staterepo.Checkpoint{Name: args[0], Time: app.Now(), Message: redacted(message)}
			c.CodeBranch, c.CodeCommit = app.codeHead(ctx)
			s, err := j.tree.Checkpoint(ctx, j.access, c)
			if err != nil {
				return stateError(err)
			}
			app.noteState(s.Notes)
			if asJSON {
				return printJSON(app.Out, c)
			}
			fmt.Fprintf(app.Out, "checkpoints/%s.md  %s\n", c.Name, app.Style().Dim("(agent "+j.tree.Agent()+")"))
			return nil
		},
	}
	cmd.Flags().StringVarP(&message, "message", "m", "", "what it is for")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	addShow(cmd, "list", "List the save points of the agent that works here")
	return cmd
}

// codeHead is the branch and the commit of the code around the working directory,
// "" where there is none.
func (a *App) codeHead(ctx context.Context) (branch, commit string) {
	home, err := a.Home()
	if err != nil || home.Project == nil {
		return "", ""
	}
	if branch, commit = config.CodeHead(a.Env.Dir); commit != "" {
		return branch, commit
	}
	g := git.New(topOf(config.CheckoutRoot(home.Project, a.Env.Dir)), git.Options{Vars: a.Env.Vars})
	if commit, err = g.Resolve(ctx, "HEAD"); err != nil {
		return branch, ""
	}
	branch, _ = g.Branch(ctx) // none where it is detached
	return branch, commit
}

func newHandoffCmd(app *App) *cobra.Command {
	var asJSON bool
	e := mdfile.Entry{Type: mdfile.TypeHandoff, Status: "pending"}
	cmd := &cobra.Command{
		Use: "handoff [TEXT]", Args: cobra.MaximumNArgs(1), Short: "Leave work for another agent, or list what waits for this one",
		Long: `With TEXT: leave work for the agent of --to, or for anyone. Without: list what
waits for the agent that works here; ` + "`reprise handoff accept ID`" + ` takes one,
once.`,
		Example: `  reprise handoff --to tester "Go on with the API tests; fixtures are done"
  reprise handoff accept e-3f9a2c0d`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if len(args) == 0 {
				return listHandoffs(ctx, app, asJSON)
			}
			if err := noCommand(cmd, args[0]); err != nil {
				return err
			}
			text, err := saidArg(ctx, app, args[0])
			if err != nil {
				return err
			}
			if e.To != "" {
				if err := staterepo.CheckName(e.To); err != nil {
					return usagef("--to: %w", err)
				}
			}
			j, err := app.journal(ctx)
			if err != nil {
				return err
			}
			n := e
			n.Text = text
			if err := j.add(ctx, app, n, asJSON); err != nil || asJSON {
				return err
			}
			fmt.Fprintf(app.Out, "It waits for %s; `reprise state sync` brings it to other machines.\n", term.SafeLine(cmp.Or(n.To, "whoever takes it")))
			return nil
		},
	}
	cmd.Flags().StringVar(&e.To, "to", "", "the `AGENT` that it is for (default: anyone)")
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print the answer for programs")
	addShow(cmd, "list", "List what waits for the agent that works here")
	cmd.AddCommand(&cobra.Command{
		Use: "accept ID", Args: cobra.ExactArgs(1), Short: "Take a handoff, so that nobody else does",
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := app.journal(cmd.Context())
			if err != nil {
				return err
			}
			added, err := j.tree.Accept(cmd.Context(), j.access, args[0])
			if err != nil {
				return stateError(err)
			}
			return j.added(app, added, asJSON)
		},
	})
	return cmd
}

func listHandoffs(ctx context.Context, app *App, asJSON bool) error {
	repo, err := app.State()
	if err != nil {
		return err
	}
	t, err := app.agentTree(ctx, repo, false)
	if err != nil {
		return err
	}
	name := config.NameFrom(app.Env.Get(hook.AgentVar)) // who will work here, as journal says
	if staterepo.CheckName(name) != nil {
		name = ""
	}
	if t != nil {
		if err := app.saysSo(t); err != nil {
			return err
		}
		name = t.Agent()
	}
	list, err := repo.Handoffs(ctx, name)
	if err != nil {
		return stateError(err)
	}
	open, own := []staterepo.Handoff{}, 0
	for _, h := range list {
		switch {
		case h.AcceptedBy != "":
		case h.Branch == "agent-"+name:
			own++
		default:
			open = append(open, h)
		}
	}
	if asJSON {
		return printJSON(app.Out, open)
	}
	for _, h := range open {
		fmt.Fprintf(app.Out, "%s  %s  %s\n", h.ID, term.SafeLine(cmp.Or(h.Agent, agentOf(h.LogEntry))), term.SafeLine(h.Title()))
	}
	if len(open) == 0 {
		fmt.Fprintln(app.Err, "nothing waits for "+cmp.Or(name, "whoever works here"))
	}
	if own > 0 {
		verb := "wait"
		if own == 1 {
			verb = "waits"
		}
		fmt.Fprintf(app.Err, "%d of its own %s for others; `reprise log --type handoff` lists them\n", own, verb)
	}
	return nil
}
