package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/event"
	"reprise/internal/hook"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/term"
	"reprise/internal/worker/elsewhere"
)

func newQueueCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "queue", Short: "What is to be done: add work items, look at them, claim and settle them",
		Long: `What is to be done, for loops, scripts and people. Items are plain files in the
project's data directory, whose directory is their state; outside any project the
queue is the global one. With "queue: nats://host:port" in the settings they are on
the servers of a fleet instead, and every machine that names them works off one
queue; "reprise queue migrate" moves what there is.

An item is claimed under a lease and a fencing number, which stand in its token.
Whoever claims one extends the lease, and settles the item by its token; a word
under a claim that was lost is refused.`,
	}
	cmd.AddCommand(newQueueAddCmd(app), newQueueListCmd(app), newQueueNextCmd(app), newQueueShowCmd(app), newQueueHistoryCmd(app),
		newQueueClaimCmd(app), newQueueExtendCmd(app), newQueueProgressCmd(app), newQueueDoneCmd(app), newQueueFailCmd(app),
		newQueueReleaseCmd(app), newQueueParkCmd(app), newQueueUnparkCmd(app), newQueueRetryCmd(app), newQueueDropCmd(app),
		newQueueEditCmd(app), newQueueGCCmd(app), newQueueCheckCmd(app), newQueueMigrateCmd(app))
	return cmd
}

// actor is who works here, for histories.
func (a *App) actor() string {
	return cmp.Or(a.Env.Get(proc.RunIDVar), a.Env.Get(hook.AgentVar), "user")
}

// recordWork records changes of work items as events.
func (a *App) recordWork(project string) func(context.Context, queue.Change) {
	return func(ctx context.Context, c queue.Change) {
		d := event.WorkData{
			ID: c.Item.ID, Op: c.Op, Title: c.Item.Title, Key: c.Item.Key, From: string(c.From), To: string(c.To), Fence: c.Fence,
			Attempts: c.Item.Attempts, By: c.By, Note: c.Note,
		}
		if r := c.Item.Result; r != nil {
			d.Run = r.Run
		}
		data, err := jsonData(d)
		if err == nil {
			var b *event.Broker
			if b, err = a.Broker(); err == nil {
				e := event.Event{Type: event.WorkChanged, Project: project, Task: c.Item.Task, Data: data}
				if c.Op == queue.OpDone || c.Op == queue.OpFail {
					a.judged(&e, d.Run)
				}
				_, err = b.Record(ctx, e)
			}
		}
		if err != nil {
			fmt.Fprintf(a.Err, "note: %s was %s, which could not be recorded as an event: %v\n", c.Item.ID, c.Op, err)
		}
	}
}

// judged has an event that says what became of an item's attempt belong to the session that
// made it, so that the session is remembered by how it was judged and not by its last words.
// A run that is on no record here, or came to no session, says nothing of one.
func (a *App) judged(e *event.Event, id string) {
	if id == "" {
		return
	}
	runs, err := a.Runs()
	if err != nil {
		return
	}
	if r, err := runs.Get(id); err == nil && r.SessionID != "" {
		e.Session, e.Client, e.Run = r.SessionID, r.Client, r.ID
	}
}

// writableQueue is the queue for a command that changes it, and claims the project's
// name.
func (a *App) writableQueue(ctx context.Context, bound proc.ID) (queue.Queue, error) {
	q, err := a.Queue(bound)
	if err != nil {
		return nil, err
	}
	if err := a.claim(ctx); err != nil {
		return nil, conflict(err)
	}
	return q, nil
}

// queueError gives an error of the queue its exit code.
func queueError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, queue.ErrNotFound), errors.Is(err, queue.ErrEmpty):
		return exitWith(ExitNotFound, err)
	case errors.Is(err, queue.ErrLost), errors.Is(err, queue.ErrState), errors.Is(err, queue.ErrCycle):
		return exitWith(ExitConflict, err)
	case errors.Is(err, queue.ErrInvalid), errors.Is(err, loop.ErrUnanswered):
		return exitWith(ExitUsage, err)
	}
	return err
}

// workItem is an item for programs.
type workItem struct {
	queue.Item
	State queue.State `json:"state"`
	// Claim is there while it is claimed, Token only for the one who claimed it now.
	Claim *queue.Holder `json:"claim,omitempty"`
	Token queue.Token   `json:"token,omitempty"`
	// WaitsFor is the item that a blocked one waits for; a parked one has Parked.
	WaitsFor string `json:"waits_for,omitempty"`
	Parked   bool   `json:"parked,omitempty"`
	// WaitsInVain says that nothing comes of the waiting: what it waits for is "dead", or
	// "missing".
	WaitsInVain string `json:"waits_in_vain,omitempty"`
	New         *bool  `json:"new,omitempty"` // of one that was to be added
}

func workDoc(it queue.Item) workItem {
	doc := workItem{Item: it, State: it.State, Claim: it.Claim, WaitsFor: it.Waits, Parked: it.State == queue.Blocked && it.Waits == ""}
	switch {
	case it.WaitsForDead:
		doc.WaitsInVain = "dead"
	case it.WaitsForNone:
		doc.WaitsInVain = "missing"
	}
	return doc
}

func (a *App) sayTrouble(list []queue.Trouble) {
	for _, t := range list {
		fmt.Fprintf(a.Err, "note: %s: %s\n", term.SafeLine(t.Where), term.SafeLine(t.Why))
	}
	if len(list) > 0 {
		fmt.Fprintln(a.Err, "note: these files are left alone; `reprise queue check` says more")
	}
}

func newQueueListCmd(app *App) *cobra.Command {
	var f queue.Filter
	var states []string
	var all, asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: cobra.NoArgs, Short: "List work items, in the order in which they would be claimed",
		Long: `List work items in the order in which they would be claimed. Without --state or
--all those that are done or dead are left out.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if slices.Contains(states, "all") {
				states, all = nil, true
			}
			for _, s := range states {
				if !slices.Contains(queue.States(), queue.State(s)) {
					return usagef("--state %s: there are %s, and all", s, joinStates())
				}
				f.States = append(f.States, queue.State(s))
			}
			if len(states) == 0 && !all {
				f.States = []queue.State{queue.Ready, queue.Claimed, queue.Blocked}
			}
			if err := labelsGiven(cmd, "label", f.Labels); err != nil {
				return err
			}
			q, err := app.Queue(proc.ID{})
			if err != nil {
				return err
			}
			l, err := q.List(cmd.Context(), f)
			if err != nil {
				return queueError(err)
			}
			total := len(l.Items)
			if limit > 0 && total > limit {
				l.Items = l.Items[:limit]
			}
			if asJSON {
				docs := make([]workItem, len(l.Items))
				for i, it := range l.Items {
					docs[i] = workDoc(it)
				}
				return printJSON(app.Out, struct {
					Items    []workItem      `json:"items"`
					Total    int             `json:"total"`
					Problems []queue.Trouble `json:"problems"`
				}{docs, total, append([]queue.Trouble{}, l.Trouble...)})
			}
			app.sayTrouble(l.Trouble)
			left, claimed := app.leftInFiles()
			if left > 0 {
				held := ""
				if claimed > 0 {
					held = fmt.Sprintf(" (%d claimed: by the token, `reprise queue done` or `release` settles it here first)", claimed)
				}
				fmt.Fprint(app.Err, wrapLine(fmt.Sprintf("note: %s in files of this machine, which nobody works off while the settings name servers; `reprise queue migrate` moves them%s.", count(left, "item"), held), app.Columns))
			}
			if total == 0 {
				return app.noItems(cmd.Context(), q, left > 0, len(states) > 0 || len(f.Labels) > 0 || f.Task != "")
			}
			if err := app.printItems(l.Items, total); err != nil {
				return err
			}
			if slices.ContainsFunc(l.Items, func(it queue.Item) bool { return it.State == queue.Dead && !it.Dropped() }) {
				fmt.Fprint(app.Err, wrapLine("`reprise queue retry ITEM` gives a dead item its attempts again; `reprise queue drop ITEM -m WHY` says that it is not needed.", app.Columns))
			}
			if len(f.States) != 3 || len(states) > 0 {
				return nil
			}
			all, err := q.List(cmd.Context(), queue.Filter{States: []queue.State{queue.Dead}, Labels: f.Labels, Task: f.Task})
			if n := len(all.Items); err == nil && n > 0 {
				fmt.Fprintf(app.Err, "%d dead (`--state dead`).\n", n)
			}
			return queueError(err)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&states, "state", nil, "only items in this `STATE`, can be repeated: "+joinStates())
	fl.BoolVar(&all, "all", false, "those that are done or dead, too")
	fl.StringArrayVarP(&f.Labels, "label", "l", nil, "only items with this `LABEL`, can be repeated")
	fl.StringVar(&f.Task, "task", "", "only items of this `TASK`")
	fl.IntVarP(&limit, "limit", "n", 0, "at most `N` (0: all)")
	fl.BoolVar(&asJSON, "json", false, "print them for programs")
	cmd.MarkFlagsMutuallyExclusive("state", "all")
	offer(cmd, "state", strings.Split(joinStates(), ", ")...)
	return cmd
}

// noItems says what there is where nothing is that was asked for; left says that items in files
// were told of.
func (a *App) noItems(ctx context.Context, q queue.Queue, left, chosen bool) error {
	l, err := q.List(ctx, queue.Filter{})
	if err != nil {
		return queueError(err)
	}
	if len(l.Items) == 0 && left {
		fmt.Fprintln(a.Err, "No work item on the servers.") // what is in files is told anyhow
		return nil
	}
	if len(l.Items) == 0 {
		fmt.Fprintln(a.Err, "No work item here. `reprise queue add TITLE` adds one.")
		return nil
	}
	n := map[queue.State]int{}
	for _, it := range l.Items {
		n[it.State]++
	}
	var parts []string
	for _, s := range queue.States() {
		if n[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (`--state %s`)", n[s], s, s))
		}
	}
	what := "Nothing is ready, claimed or blocked"
	if chosen {
		what = "No item like that"
	}
	verb := "are"
	if strings.HasPrefix(parts[0], "1 ") { // it is said of the first
		verb = "is"
	}
	fmt.Fprintf(a.Err, "%s; there %s %s.\n", what, verb, strings.Join(parts, ", "))
	return nil
}

// waitsFor is what a blocked item waits for, in words, with what can be done where nothing
// comes of that.
func (a *App) waitsFor(it *queue.Item) string {
	switch {
	case a.waitsForStayed(it):
		return "waits for " + it.Waits + ", which is in files of this machine (`reprise queue migrate`)"
	case it.WaitsForDead:
		return "waits for " + it.Waits + ", which is dead (`reprise queue retry " + it.Waits + "`), unless it is to begin without (`reprise queue edit " + it.ID + " --depends-on ''`)"
	case it.WaitsForNone:
		return "waits for " + it.Waits + ", which is not there (`reprise queue edit " + it.ID + " --depends-on ''`)"
	}
	return "waits for " + it.Waits
}

func joinStates() string {
	var names []string
	for _, s := range queue.States() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

func (a *App) printItems(items []queue.Item, total int) error {
	style := a.Style()
	head := []string{"ITEM", "STATE", "P", "TITLE", "DETAIL"}
	narrow := a.Columns > 0 && a.Columns < 80 // two halves of what is left would tell nothing
	if narrow {
		head = head[:4]
	}
	t := term.NewTable(style, head...).MaxWidth(a.Columns)
	colour := map[queue.State]func(string) string{
		queue.Ready: style.Green, queue.Claimed: style.Blue, queue.Blocked: style.Yellow, queue.Dead: style.Red, queue.Done: style.Dim,
	}
	room := 60
	if a.Columns > 0 { // as much for what is said of an item as for its title
		widest := 0
		for _, it := range items {
			widest = max(widest, len(it.ID))
		}
		room = min(60, max(16, (a.Columns-widest-18)/2))
	}
	for _, it := range items {
		title := it.Title
		for _, l := range it.Labels {
			title += " #" + l
		}
		row := []string{it.ID, colour[it.State](string(it.State)), fmt.Sprint(it.Urgency())}
		detail := strings.Join(a.detail(&it), "; ")
		switch {
		case !narrow:
			row = append(row, term.Cut(term.SafeLine(title), room), term.SafeLine(detail))
		case detail != "":
			row = append(row, term.SafeLine(title+" — "+detail))
		default:
			row = append(row, term.SafeLine(title))
		}
		t.Row(row...)
	}
	if err := t.Write(a.Out); err != nil {
		return err
	}
	if total > len(items) {
		fmt.Fprintf(a.Err, "%d of %s.\n", len(items), count(total, "item"))
	}
	return nil
}

// firstOf is the first line of a text, with a mark where there are more.
func firstOf(text string, n int) string {
	line := firstLine(text, n)
	if len(moreLines(text)) > 0 && !strings.HasSuffix(line, "…") {
		line += " …"
	}
	return line
}

// detail says in a few words how an item stands.
func (a *App) detail(it *queue.Item) []string {
	var d []string
	now := a.queueTime()
	switch it.State {
	case queue.Ready:
		if it.NotBefore.After(now) {
			d = append(d, "in "+ago(it.NotBefore.Sub(now)))
		}
	case queue.Claimed:
		who := cmp.Or(it.Claim.Worker, "somebody")
		if left := it.Claim.Until.Sub(now); left > 0 {
			d = append(d, fmt.Sprintf("%s has it for %s more, number %d", who, ago(left), it.Claim.Fence))
		} else {
			d = append(d, fmt.Sprintf("the lease of %s ran out, number %d", who, it.Claim.Fence))
		}
	case queue.Blocked:
		if it.Waits != "" {
			d = append(d, a.waitsFor(it))
		} else {
			d = append(d, "parked: "+firstOf(cmp.Or(it.Reason, "no reason given"), 200))
		}
	case queue.Done:
		if it.Result != nil && it.Result.Summary != "" {
			d = append(d, firstLine(it.Result.Summary, 80))
		}
	case queue.Dead:
		d = append(d, firstLine(it.Reason, 200))
	}
	if p := it.Progress; p != nil && it.State == queue.Claimed {
		d = append(d, progressText(p))
	}
	if it.Attempts > 0 && it.State != queue.Done && !it.Dropped() {
		failed := fmt.Sprintf("failed %d of %d", it.Attempts, it.Limit())
		if it.LastError != "" && (it.State == queue.Ready || !strings.Contains(it.Reason, it.LastError)) { // it is said already
			failed += ": " + firstLine(it.LastError, 60)
		}
		d = append(d, failed)
	}
	if it.Lost > 0 && it.State != queue.Done {
		d = append(d, "worker lost "+times(it.Lost))
	}
	return d
}

func progressText(p *queue.Progress) string {
	s := fmt.Sprintf("step %d", p.StepsCompleted)
	if p.StepsTotal > 0 {
		s += fmt.Sprintf(" of %d", p.StepsTotal)
	}
	if p.CurrentStep != "" {
		s += ": " + p.CurrentStep
	}
	return s
}

func newQueueNextCmd(app *App) *cobra.Command {
	var opt queue.ClaimOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use: "next", Args: cobra.NoArgs, Short: "Show the item that would be claimed, without claiming it",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkWanted(cmd, &opt); err != nil {
				return err
			}
			q, err := app.Queue(proc.ID{})
			if err != nil {
				return err
			}
			it, err := q.Next(cmd.Context(), opt)
			if err != nil {
				return queueError(err)
			}
			return app.showItem(workDoc(it), asJSON)
		},
	}
	wanted(cmd, &opt)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

// wanted adds the flags that say which item is asked for.
func wanted(cmd *cobra.Command, opt *queue.ClaimOptions) {
	cmd.Flags().StringArrayVarP(&opt.Labels, "label", "l", nil, "only an item with this `LABEL`, can be repeated")
	cmd.Flags().StringVar(&opt.Agent, "agent", "", "only an item that is meant for this `CLIENT`, or for any")
	offer(cmd, "agent", config.RouteClients()...)
}

// checkWanted says what is wrong with these flags.
func checkWanted(cmd *cobra.Command, opt *queue.ClaimOptions) error {
	if err := queue.CheckAgent(opt.Agent); err != nil {
		return usagef("--agent: %w", err)
	}
	return labelsGiven(cmd, "label", opt.Labels)
}

// labelsGiven says what is wrong with labels that a flag has: to look for one that is
// empty finds nothing, and to give one gives none.
func labelsGiven(cmd *cobra.Command, flag string, labels []string) error {
	if cmd.Flags().Changed(flag) && len(labels) == 0 {
		labels = []string{""}
	}
	for _, l := range labels {
		if err := queue.CheckLabel(l); err != nil {
			return usagef("--%s: %w", flag, err)
		}
	}
	return nil
}

// queueItem is the item of an id or a key.
func (a *App) queueItem(ctx context.Context, ref string) (queue.Item, error) {
	q, err := a.Queue(proc.ID{})
	if err != nil {
		return queue.Item{}, err
	}
	it, err := q.Get(ctx, ref)
	return it, queueError(a.notThere(ctx, ref, err))
}

func newQueueShowCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show ITEM", Args: cobra.ExactArgs(1), Short: "Show one item, by its id or key", ValidArgsFunction: completeItems(app),
		RunE: func(cmd *cobra.Command, args []string) error {
			it, err := app.queueItem(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return app.showItem(workDoc(it), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func (a *App) showItem(d workItem, asJSON bool) error {
	if asJSON {
		return printJSON(a.Out, d)
	}
	it, style := &d.Item, a.Style()
	field := func(name, value string) {
		if value != "" {
			a.said(fmt.Sprintf("%-11s ", name), term.SafeLine(value))
		}
	}
	a.said(style.Bold(it.ID)+"  ", term.SafeLine(it.Title))
	field("token", string(d.Token))
	field("state", strings.Join(append([]string{string(it.State)}, a.detail(it)...), "; "))
	if asked, ok := elsewhere.AskedOf(it); ok && a.inFleet() {
		field("answer", asked.Command())
	}
	field("priority", fmt.Sprintf("%d (%s)", it.Urgency(), queue.PriorityWord(it.Urgency())))
	field("labels", strings.Join(it.Labels, ", "))
	field("key", it.Key)
	field("source", it.Source)
	field("task", it.Task)
	field("agent", it.Agent)
	field("depends on", strings.Join(it.DependsOn, ", "))
	if !it.NotBefore.IsZero() {
		field("not before", it.NotBefore.Format(time.RFC3339))
	}
	field("created", it.Created.Format(time.RFC3339))
	if r := it.Result; r != nil {
		field("run", r.Run)
		field("session", r.Session)
		field("result", r.Summary)
		field("artifacts", strings.Join(r.Artifacts, ", "))
		field("refused", refusedOf(it))
		field("lacks", lacksOf(it))
	}
	if it.Body != "" {
		fmt.Fprintf(a.Out, "\n%s\n", strings.TrimRight(term.SafeText(it.Body), "\n"))
	}
	return nil
}

// refusedOf is what the guard refused of the run that an item was worked on by last, as its loop
// has left it with the item; "" is nothing.
func refusedOf(it *queue.Item) string {
	var data struct {
		Refused core.Refusal `json:"refused"`
	}
	_ = json.Unmarshal(it.Result.Data, &data) // of a person's or a script's claim it may be anything
	return data.Refused.Words()
}

// lacksOf is what an item builds on and was begun without, as its loop has left it with the item;
// "" is nothing.
func lacksOf(it *queue.Item) string {
	var data struct {
		Lacks string `json:"lacks"`
	}
	_ = json.Unmarshal(it.Result.Data, &data) // as above
	return data.Lacks
}

func newQueueHistoryCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "history ITEM", Args: cobra.ExactArgs(1), Short: "Show what became of an item, from its adding on", ValidArgsFunction: completeItems(app),
		RunE: func(cmd *cobra.Command, args []string) error {
			it, err := app.queueItem(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			list := it.History
			if it.Claim != nil { // the claim that there is now is written when it ends
				list = append(list, queue.Entry{At: it.Claim.Since, Op: queue.OpClaim, By: it.Claim.Worker, Fence: it.Claim.Fence})
			}
			if asJSON {
				return printJSON(app.Out, append([]queue.Entry{}, list...))
			}
			if it.Forgotten > 0 {
				fmt.Fprintf(app.Err, "%s before these are not kept.\n", count(it.Forgotten, "entry"))
			}
			t := term.NewTable(app.Style(), "TIME", "WHAT", "BY", "NUMBER", "NOTE").MaxWidth(app.Columns)
			for _, e := range list {
				number := ""
				if e.Fence > 0 {
					number = fmt.Sprint(e.Fence)
				}
				t.Text(e.At.Local().Format(time.DateTime), e.Op, e.By, number, firstLine(e.Note, 120))
			}
			return t.Write(app.Out)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

// completeItems offers the ids of items that are not settled.
func completeItems(app *App) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !strings.Contains(cmd.Use, "...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		q, err := app.Queue(proc.ID{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		l, _ := q.List(cmd.Context(), queue.Filter{}) // what can be read is offered
		var words []string
		for _, it := range l.Items {
			if it.State != queue.Done && !slices.Contains(args, it.ID) {
				words = append(words, cobra.CompletionWithDesc(it.ID, string(it.State)+": "+firstLine(it.Title, 50)))
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
