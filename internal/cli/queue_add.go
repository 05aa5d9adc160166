package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/redact"
	"reprise/internal/term"
)

// maxList is the longest list of items that is read, in bytes.
const maxList = 256 << 20

type queueAdd struct {
	item      queue.Item
	priority  string
	notBefore string
	jsonl     string
	markdown  string
	github    bool
	task      int
	phase     int
	repo      string
	ghLabels  []string
	ghLimit   int
	dryRun    bool
	asJSON    bool
}

// priorityHelp says what --priority takes.
const priorityHelp = "from 0, the most urgent, to 9, or critical (0), high (2), medium (5, the default) or low (8)"

func newQueueAddCmd(app *App) *cobra.Command {
	var o queueAdd
	cmd := &cobra.Command{
		Use: "add [TITLE]", Args: cobra.MaximumNArgs(1), Short: "Add work items: one by flags, or those of a list",
		Long: `Add a work item, or those of a list: JSONL (one object a line), a markdown list,
the open issues of a repository on GitHub, through gh, or the phases of a task's plan
that are not completed.

An item with a key is added once: when one with that key is there, in whatever
state, it is left as it is. Items of markdown lists, issues and phases have keys, so a
list can be added again and again. For these, --priority, --label and the other
flags count where the list says nothing.

The text of issues is written by others. With --parked what is added waits until
somebody has looked at it (` + "`reprise queue unpark`" + `).`,
		Example: `  reprise queue add "Fix the login" --body - --priority 1 --label auth
  reprise queue add --from tasks.jsonl
  reprise queue add --from-markdown TODO.md --label night
  reprise queue add --from-github --gh-label agent --parked
  reprise queue add --from-task 12`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, app, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.item.Body, "body", "", "what is to be done, at length; - reads standard input")
	f.StringVar(&o.item.ID, "id", "", "its `ID`, such as issue-123; left out, one is made")
	f.StringVar(&o.item.Key, "key", "", "add nothing when an item with this `KEY` is there")
	f.StringVarP(&o.priority, "priority", "p", "", priorityHelp)
	f.StringArrayVarP(&o.item.Labels, "label", "l", nil, "a `LABEL`, can be repeated")
	f.StringSliceVar(&o.item.DependsOn, "depends-on", nil, "the `ITEMS` (ids or keys) that must be done before, with commas or repeated")
	f.StringVar(&o.notBefore, "not-before", "", "not before this `TIME`: a duration from now such as 2h, or a date")
	f.IntVar(&o.item.MaxAttempts, "max-attempts", 0, fmt.Sprintf("how often it may fail (default %d)", queue.DefaultMaxAttempts))
	f.StringVar(&o.item.Agent, "agent", "", "the `CLIENT` that it is meant for: "+strings.Join(config.RouteClients(), ", "))
	offer(cmd, "agent", config.RouteClients()...)
	f.StringVar(&o.item.Task, "task", "", "the `TASK` that it belongs to, such as 012/2")
	f.BoolVar(&o.item.NoChangeOK, "no-change-ok", false, "it may be done without a change of any file")
	f.BoolVar(&o.item.Parked, "parked", false, "it waits until somebody unparks it")
	f.StringVar(&o.jsonl, "from", "", "add the items of this `FILE` of JSONL; - is standard input")
	f.StringVar(&o.markdown, "from-markdown", "", "add the items of the list in this `FILE` of markdown; - is standard input")
	f.BoolVar(&o.github, "from-github", false, "add the open issues of the repository here, through gh")
	f.IntVar(&o.task, "from-task", 0, "add the phases of task `N` that are left to do")
	f.IntVar(&o.phase, "phase", 0, "with --from-task: only this phase")
	f.StringVar(&o.repo, "repo", "", "with --from-github: the `OWNER/NAME` of another repository")
	f.StringArrayVar(&o.ghLabels, "gh-label", nil, "with --from-github: only issues with this `LABEL`, can be repeated")
	f.IntVar(&o.ghLimit, "gh-limit", 100, "with --from-github: at most `N` issues")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be added")
	f.BoolVar(&o.asJSON, "json", false, "print the items for programs")
	cmd.MarkFlagsMutuallyExclusive("from", "from-markdown", "from-github", "from-task")
	return cmd
}

func (o *queueAdd) run(cmd *cobra.Command, app *App, args []string) error {
	ctx := cmd.Context()
	if err := labelsGiven(cmd, "label", o.item.Labels); err != nil {
		return err
	}
	if err := queue.CheckAgent(o.item.Agent); err != nil {
		return usagef("--agent: %w", err)
	}
	if cmd.Flags().Changed("priority") {
		n, err := queue.ParsePriority(o.priority)
		if err != nil {
			return queueError(err)
		}
		o.item.Priority = &n
	}
	if o.notBefore != "" {
		at, err := comingTime(app, "--not-before", o.notBefore)
		if err != nil {
			return err
		}
		o.item.NotBefore = at
	}
	for _, f := range []string{"id", "key", "from", "from-markdown"} {
		if cmd.Flags().Changed(f) && cmd.Flag(f).Value.String() == "" {
			return usagef("--%s is empty: give it a value, or leave it out", f)
		}
	}
	list := o.jsonl != "" || o.markdown != "" || o.github || o.task != 0
	switch {
	case list && len(args) > 0:
		return usagef("a title and a list: give one of them")
	case !list && len(args) == 0:
		return usagef("what is to be added? Give a title, --from, --from-markdown, --from-github or --from-task")
	case list && (o.item.ID != "" || o.item.Key != "" || o.item.Body != ""):
		return usagef("--id, --key and --body are of one item, and a list has several")
	case o.task == 0 && o.phase != 0:
		return usagef("--phase goes with --from-task")
	case !o.github && (o.repo != "" || len(o.ghLabels) > 0):
		return usagef("--repo and --gh-label go with --from-github")
	}
	items, err := o.items(ctx, app, args)
	if err != nil {
		return queueError(err)
	}
	hidden, secrets := 0, redact.New()
	for i := range items {
		texts := []*string{&items[i].Title, &items[i].Body}
		for l := range items[i].Labels {
			texts = append(texts, &items[i].Labels[l])
		}
		for _, text := range texts {
			clean, n := secrets.String(*text)
			*text, hidden = clean, hidden+n
		}
	}
	if hidden > 0 {
		fmt.Fprintf(app.Err, "reprise: %d words looked like a secret and are not kept in the queue: give an agent a key by its environment\n", hidden)
	}
	if o.dryRun {
		// What would be refused is, but for what depends on an item that is not there.
		there := func(name string) (queue.Item, error) { return queue.Item{ID: name}, nil }
		if _, err := queue.Prepare(slices.Clone(items), app.Now(), app.actor(), there); err != nil {
			return queueError(err)
		}
		return o.show(app, items)
	}
	q, err := app.writableQueue(ctx, proc.ID{})
	if err != nil {
		return err
	}
	added, err := q.Add(ctx, items...)
	if err != nil {
		return queueError(app.inAnother(ctx, err))
	}
	return o.report(app, added)
}

// items are what the flags or the list say.
func (o *queueAdd) items(ctx context.Context, app *App, args []string) ([]queue.Item, error) {
	if len(args) > 0 {
		it := o.item
		it.Title, it.Source = args[0], "user"
		body, err := textArg(ctx, app, it.Body)
		it.Body = body
		return []queue.Item{it}, err
	}
	var items []queue.Item
	var err error
	switch {
	case o.github:
		items, err = app.issues(ctx, o)
	case o.task != 0:
		items, err = app.phaseItems(ctx, o.task, o.phase)
	case o.markdown != "":
		var data, name string
		if data, name, err = app.listFile(ctx, o.markdown, "a markdown list"); err == nil {
			items = queue.ParseMarkdown([]byte(data), name)
		}
	default:
		var data, name string
		if data, name, err = app.listFile(ctx, o.jsonl, "items as JSONL"); err == nil {
			items, err = queue.ParseJSONL(strings.NewReader(data), name)
		}
	}
	if err != nil {
		return nil, err
	}
	for i := range items {
		o.fill(&items[i])
	}
	return items, nil
}

// fill gives an item of a list what the flags say, where the list says nothing.
func (o *queueAdd) fill(it *queue.Item) {
	if it.Priority == nil {
		it.Priority = o.item.Priority
	}
	it.Labels = append(it.Labels, o.item.Labels...)
	it.DependsOn = append(it.DependsOn, o.item.DependsOn...)
	it.MaxAttempts = cmp.Or(it.MaxAttempts, o.item.MaxAttempts)
	it.Agent = cmp.Or(it.Agent, o.item.Agent)
	it.Task = cmp.Or(it.Task, o.item.Task)
	it.NoChangeOK = it.NoChangeOK || o.item.NoChangeOK
	it.Parked = o.item.Parked
	if it.NotBefore.IsZero() {
		it.NotBefore = o.item.NotBefore
	}
}

// listFile reads a list; its name is relative to the project, so that it is the same
// wherever the list is read from.
func (a *App) listFile(ctx context.Context, file, what string) (data, name string, err error) {
	if file == "-" {
		data, err = readInput(ctx, a, what, maxList)
		return data, "stdin", err
	}
	path := file
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.Env.Dir, path)
	}
	text, err := readNamed(ctx, path, maxList)
	if err != nil {
		return "", "", fmt.Errorf("read %s: %w", what, err)
	}
	name = filepath.Base(path)
	if home, herr := a.Home(); herr == nil && home.Project != nil {
		if rel, rerr := filepath.Rel(home.Project.Root, path); rerr == nil && filepath.IsLocal(rel) {
			name = filepath.ToSlash(rel)
		}
	}
	return string(text), name, nil
}

// ghTimeout is how long gh may take.
const ghTimeout = 2 * time.Minute

// issues asks gh for the open issues of a repository.
func (a *App) issues(ctx context.Context, o *queueAdd) ([]queue.Item, error) {
	if o.ghLimit < 1 {
		return nil, usagef("--gh-limit %d: at least one", o.ghLimit)
	}
	gh, err := proc.LookPath("gh", a.Env.Vars, a.Env.GOOS)
	if err != nil {
		return nil, exitWith(ExitNotFound, fmt.Errorf("issues are read through gh, GitHub's command line, which is not here: install it and sign in with `gh auth login`, or add the items with --from (%w)", err))
	}
	args := []string{"issue", "list", "--state", "open", "--limit", strconv.Itoa(o.ghLimit), "--json", queue.GitHubFields}
	if o.repo != "" {
		args = append(args, "--repo", o.repo)
	}
	for _, l := range o.ghLabels {
		args = append(args, "--label", l)
	}
	ctx, cancel := context.WithTimeout(ctx, ghTimeout)
	defer cancel()
	out, err := proc.Run(ctx, proc.Cmd{Path: gh, Args: args, Env: append(a.Environ[:len(a.Environ):len(a.Environ)], "GH_PROMPT_DISABLED=1", "NO_COLOR=1"), Dir: a.Env.Dir}, maxList)
	if err != nil {
		return nil, fmt.Errorf("gh issue list: %w", err)
	}
	if out.Exit.Code != 0 {
		return nil, fmt.Errorf("gh issue list ended with %d: %s", out.Exit.Code, term.SafeLine(cmp.Or(firstLine(strings.TrimSpace(string(out.Stderr)), 500), "it says nothing")))
	}
	if out.Cut() {
		return nil, errors.New("gh issue list printed too much: lower --gh-limit")
	}
	items, err := queue.ParseGitHub(out.Stdout)
	if err == nil && len(items) == o.ghLimit {
		fmt.Fprintf(a.Err, "note: gh gave %d issues, as many as were asked for; there may be more (--gh-limit)\n", len(items))
	}
	return items, err
}

// show is the dry run.
func (o *queueAdd) show(app *App, items []queue.Item) error {
	if o.asJSON {
		docs := make([]workItem, len(items))
		for i, it := range items {
			docs[i] = workItem{Item: it}
		}
		return printJSON(app.Out, docs)
	}
	for _, it := range items {
		fmt.Fprintf(app.Out, "%s  %s\n", term.SafeLine(it.Title), app.Style().Dim(term.SafeLine(it.Key)))
	}
	fmt.Fprintf(app.Err, "%s would be added, but those whose key is there.\n", count(len(items), "item"))
	return nil
}

func (o *queueAdd) report(app *App, added []queue.Added) error {
	if o.asJSON {
		docs := make([]workItem, len(added))
		for i, a := range added {
			docs[i] = workDoc(a.Item)
			docs[i].New = &a.New
		}
		return printJSON(app.Out, docs)
	}
	fresh := 0
	for _, a := range added {
		verb := "is there already"
		if a.New {
			fresh++
			verb = "added"
		}
		fmt.Fprintf(app.Out, "%s %s (%s): %s\n", a.Item.ID, verb, a.Item.State, term.SafeLine(a.Item.Title))
	}
	if home, err := app.Home(); err == nil && home.Project == nil && fresh > 0 {
		fmt.Fprintln(app.Err, "note: this is the global queue, and a loop works on a project's: "+term.SafeLine(app.noProject().Error()))
	}
	if len(added) != 1 {
		fmt.Fprintf(app.Err, "%s added, %d there already.\n", count(fresh, "item"), len(added)-fresh)
	}
	return nil
}
