package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/run"
	"reprise/internal/task"
	"reprise/internal/term"
)

// stepOf reads what step of a task an item of the queue stands for: "012/research",
// "012/plan", or "012/2" for a phase of its plan.
func stepOf(it queue.Item) (w task.Want, ok bool) {
	number, what, found := strings.Cut(it.Task, "/")
	n, err := strconv.Atoi(number)
	if !found || err != nil || n < 1 {
		return w, false
	}
	w = task.Want{Number: n, By: "item:" + it.ID}
	switch what {
	case task.OpResearch, task.OpPlan, task.OpRevise:
		w.Op = what
		return w, true
	}
	w.Op = task.OpImplement
	w.Phase, err = strconv.Atoi(what)
	return w, err == nil && w.Phase > 0
}

// loopTasks has the loop's items that are steps of tasks worked at as such: the program
// begins and ends the step in the main checkout, and the run does it in its place.
type loopTasks struct {
	app    *App
	flow   *task.Flow
	places loop.Places
	check  func(context.Context, loop.Place, run.Record) (loop.Checked, error)
	queue  queue.Queue
	runs   loop.Runs

	merges mergeChecks

	mu     sync.Mutex
	briefs map[string]task.Brief // by the place's directory
	past   map[string]bool       // of those, the ones whose step has ended before
}

// loopTasks makes a loop work at steps of tasks as such.
func (a *App) loopTasks(ctx context.Context, home *config.Home, opt *loop.Options) error {
	flow, err := a.taskFlow(ctx, flowFlags{noVerify: true})
	if err != nil {
		return err
	}
	var events sync.Mutex // what the app opens once it opens for one at a time
	changed := flow.Changed
	flow.Changed = func(ctx context.Context, b *task.Board) {
		events.Lock()
		defer events.Unlock()
		changed(ctx, b)
	}
	flow.Say = func(format string, args ...any) { opt.Log.Info(fmt.Sprintf(format, args...)) }
	t := &loopTasks{app: a, flow: flow, check: opt.Check, queue: opt.Queue, runs: opt.Runs, places: opt.Places, briefs: map[string]task.Brief{}, past: map[string]bool{}}
	configure := opt.Configure
	opt.Configure = func(r *run.Request) error {
		if configure != nil {
			if err := configure(r); err != nil {
				return err
			}
		}
		t.configure(r)
		return nil
	}
	opt.Places, opt.Check = &taskPlaces{loopTasks: t, merging: t.merging(opt.Places)}, t.verify
	return nil
}

// merging are the places of phases: what is done in them goes into the main checkout,
// whatever becomes of other items, for the next phase needs it.
func (t *loopTasks) merging(places loop.Places) loop.Places {
	if s, ok := places.(*loop.Shared); ok {
		places = s.Worktrees
	}
	trees, ok := places.(*loop.Worktrees)
	if !ok {
		return places
	}
	m := &loop.Worktrees{Workspaces: trees.Workspaces, Belongs: trees.Belongs, Git: trees.Git, Root: trees.Root, Carry: trees.Carry, Integrate: loop.MergeBranch, KeepConflicting: true, Left: trees.Left, Sweep: trees.Sweep, Unlocked: trees.Unlocked, Waiting: trees.Waiting, Now: trees.Now}
	if trees.Check != nil {
		m.Check = t.merges.kept(trees.Check)
	}
	return m
}

func (t *loopTasks) brief(dir string) (task.Brief, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, ok := t.briefs[dir]
	return b, ok
}

// configure tells a run which step of which task it does.
func (t *loopTasks) configure(r *run.Request) {
	b, ok := t.brief(r.WorkDir)
	if !ok {
		return
	}
	t.flow.Equip(r, b)
	r.Task += "\nThe item is a step of a task. What you are to do, and the form in which you end, follow; where they differ from what you were told of the loop, they count.\n\n" + b.Prompt
}

// verify looks at a step's answer, and has the checks run on a phase.
func (t *loopTasks) verify(ctx context.Context, p loop.Place, r run.Record) (loop.Checked, error) {
	b, ok := t.brief(p.Dir)
	if ok {
		if said := t.refused(ctx, b, r); said != "" {
			return loop.Checked{Gate: core.GateFailed, Text: said}, nil
		}
		if b.Op != task.OpImplement {
			return loop.Checked{Gate: core.GateNone}, nil
		}
	}
	if t.check == nil {
		return loop.Checked{Gate: core.GateNone}, nil
	}
	return t.check(ctx, p, r)
}

// refused is why a step's answer does not end it.
func (t *loopTasks) refused(ctx context.Context, b task.Brief, r run.Record) string {
	if r.Result == nil {
		return ""
	}
	ret, err := t.flow.Read(ctx, b.Session, task.LastWords(r.Result))
	switch {
	case err != nil:
		return err.Error()
	case ret.Status != "completed":
		return fmt.Sprintf("the step ended %s: %s", ret.Status, ret.Summary)
	}
	return ""
}

// taskPlaces gives steps of tasks a place, and others what they had without.
type taskPlaces struct {
	*loopTasks
	merging loop.Places
}

// waitForMerge is how long an item waits for another whose work is just being merged.
const waitForMerge = 5 * time.Minute

func (p *taskPlaces) inner(it queue.Item) loop.Places {
	if _, ok := stepOf(it); ok {
		return p.merging
	}
	return p.places
}

// Tip is where a branch of an item's is.
func (p *taskPlaces) Tip(ctx context.Context, branch string) (string, error) {
	if b, ok := p.places.(loop.Brancher); ok {
		return b.Tip(ctx, branch)
	}
	return "", nil
}

// Leave gives up a place whose claim was lost, of whichever kind it is.
func (p *taskPlaces) Leave(ctx context.Context, place loop.Place) error {
	var err error
	for _, x := range [...]loop.Places{p.places, p.merging} {
		if l, ok := x.(loop.Leaver); ok {
			err = errors.Join(err, l.Leave(ctx, place))
		}
	}
	return err
}

// Building tells both kinds of places what items have made.
func (p *taskPlaces) Building(made func(ctx context.Context, id string) (string, error)) {
	for _, x := range [...]loop.Places{p.places, p.merging} {
		if b, ok := x.(loop.Brancher); ok {
			b.Building(made)
		}
	}
}

// Prepare begins the step, and makes its place.
func (p *taskPlaces) Prepare(ctx context.Context, it queue.Item, fence int64) (loop.Place, error) {
	w, ok := stepOf(it)
	if !ok {
		return p.places.Prepare(ctx, it, fence)
	}
	past, ended, err := p.endedBefore(ctx, it, w)
	if err == nil && !ended {
		err = p.possible(ctx, w)
	}
	if err != nil {
		return loop.Place{}, err
	}
	place, err := p.merging.Prepare(ctx, it, fence)
	if err != nil {
		return place, err
	}
	if ended {
		p.mu.Lock()
		p.briefs[place.Dir], p.past[place.Dir] = past, true
		p.mu.Unlock()
		return place, nil
	}
	owner, err := proc.Self()
	if err != nil {
		return place, err
	}
	w.Owner = &owner
	if place.Dir != p.flow.Root {
		w.Place = place.Dir
	}
	b, err := p.flow.Begin(ctx, w)
	if err != nil {
		_, _, ferr := p.merging.Finish(ctx, place, it, core.Retry)
		return place, errors.Join(err, ferr)
	}
	p.mu.Lock()
	p.briefs[place.Dir] = b
	p.mu.Unlock()
	return place, nil
}

// endedBefore is the step of an item that is done where a loop that was killed has ended it: what
// is left to be done of it is to put its place away and to add what comes next.
func (p *taskPlaces) endedBefore(ctx context.Context, it queue.Item, w task.Want) (task.Brief, bool, error) {
	if it.State != queue.Done || it.Result == nil {
		return task.Brief{}, false, nil
	}
	return p.flow.Past(ctx, w, it.Result.Run)
}

// possible waits while what comes before the step is being put in its place: an item is
// done a moment before its work is merged.
func (p *taskPlaces) possible(ctx context.Context, w task.Want) error {
	deadline := p.app.Env.Now().Add(waitForMerge)
	for {
		err := p.flow.Could(ctx, w)
		if !errors.Is(err, task.ErrWaits) && !errors.Is(err, task.ErrLimit) || p.app.Env.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Began notes the run with the place and with the step.
func (p *taskPlaces) Began(ctx context.Context, place loop.Place, id string) error {
	b, ok := p.brief(place.Dir)
	if !ok {
		return p.places.Began(ctx, place, id)
	}
	if err := p.flow.Ran(ctx, b.Session, id); err != nil {
		return err
	}
	return p.merging.Began(ctx, place, id)
}

// Look is as without tasks.
func (p *taskPlaces) Look(ctx context.Context, place loop.Place, detail bool) (loop.Work, error) {
	return p.places.Look(ctx, place, detail)
}

// Keep is as without tasks; the commit of what a phase left is named after the phase. What
// research and plans write is taken over into the main checkout, and is no part of a branch.
func (p *taskPlaces) Keep(ctx context.Context, place loop.Place, it queue.Item) (string, error) {
	b, step := p.brief(place.Dir)
	k, ok := p.inner(it).(loop.Keeper)
	if !ok || step && b.Op != task.OpImplement {
		return "", nil
	}
	if step {
		it.Title = b.Message
	}
	return k.Keep(ctx, place, it)
}

// Finish ends the step by what became of the item.
func (p *taskPlaces) Finish(ctx context.Context, place loop.Place, it queue.Item, fate core.Fate) (string, bool, error) {
	b, ok := p.brief(place.Dir)
	if !ok {
		return p.inner(it).Finish(ctx, place, it, fate)
	}
	note := ""
	var r task.StepResult
	var err error
	if fate == core.Retry && it.State == queue.Dead {
		fate = core.GiveUp // it was the last try
	}
	switch fate {
	case core.Done:
		if r, note, err = p.file(ctx, place, it, b); err != nil {
			err = fmt.Errorf("`reprise task run %d --queue` goes on with the task once this is settled: %w", b.Number, err)
		}
	case core.GiveUp, core.Park:
		status := "failed"
		if fate == core.Park {
			status = "blocked"
		}
		if r, err = p.flow.Cancel(ctx, b.Session, status, whyEnded(&it)); err != nil {
			break
		}
		note, _, err = p.merging.Finish(ctx, place, it, fate)
	default: // the same step is tried again
		return p.merging.Finish(ctx, place, it, fate)
	}
	if err != nil {
		return note, false, err
	}
	p.mu.Lock()
	delete(p.briefs, place.Dir)
	delete(p.past, place.Dir)
	p.mu.Unlock()
	if r.Status != "" {
		note = strings.TrimPrefix(note+"; ", "; ") + fmt.Sprintf("%s of task %d is %s", r.Op, r.Number, r.Status)
	}
	return note, false, nil
}

// file ends the step of an item that is done, and adds what comes after it. Each of its steps
// may be the last of a loop that is killed, and the next loop does them all again.
func (p *taskPlaces) file(ctx context.Context, place loop.Place, it queue.Item, b task.Brief) (r task.StepResult, note string, err error) {
	put := func(ctx context.Context, message string, done bool) (string, error) {
		to := core.Retry
		if done {
			to = core.Done
		}
		named := it
		named.Title = message
		said, conflict, err := p.merging.Finish(ctx, place, named, to)
		note = said
		if err != nil || !conflict {
			return "", err
		}
		return p.merges.conflict(place), nil
	}
	if r, err = p.flow.FinishIn(ctx, b.Session, p.answer(it), put); err != nil {
		return r, note, err
	}
	p.mu.Lock()
	past := p.past[place.Dir]
	p.mu.Unlock()
	if past {
		// What a phase made was brought before the phase ended, so that this only puts the place away.
		p.flow.PutAway(ctx, b, r, place.Dir)
		if _, err := put(ctx, b.Message, r.Status == "completed"); err != nil {
			return r, note, err
		}
		if r.Op == task.OpImplement {
			if end, done, err := p.flow.EndLeft(ctx, r.Number); err != nil {
				return r, note, err
			} else if done {
				r.Task = end.Task
			}
		}
	}
	if err := p.goOn(ctx, it, r); err != nil || r.Task != task.Completed {
		return r, note, err
	}
	return r, note, p.release(ctx, r.Number)
}

// whyEnded is why an item ended that was not done.
func whyEnded(it *queue.Item) string {
	if it.Reason == "" || it.LastError == "" || strings.HasPrefix(it.Reason, it.LastError) {
		return cmp.Or(it.Reason, it.LastError)
	}
	return it.LastError + " (" + it.Reason + ")"
}

// answer is what the run of an item said last.
func (p *taskPlaces) answer(it queue.Item) string {
	if it.Result == nil {
		return ""
	}
	r, err := p.runs.Get(it.Result.Run)
	if err != nil || r.Result == nil {
		return it.Result.Summary
	}
	return task.LastWords(r.Result)
}

// goOn adds the phases of a plan that was just made.
func (p *taskPlaces) goOn(ctx context.Context, it queue.Item, r task.StepResult) error {
	if r.Op != task.OpPlan && r.Op != task.OpRevise || r.Status != "completed" {
		return nil
	}
	b, err := p.flow.Store.Load(ctx)
	if err != nil {
		return err
	}
	if t := b.State.Tasks[r.Number]; t == nil || len(b.Waits(t)) > 0 {
		return nil // its phases come when what it waits for is completed
	}
	items, err := taskItems(ctx, p.queue, b, r.Number)
	if err != nil || len(items) == 0 {
		return err
	}
	for i := range items {
		items[i].Agent = it.Agent
		items[i].Labels = it.Labels
	}
	_, err = p.queue.Add(ctx, items...)
	return err
}

// release adds the phases of tasks that waited for one that is completed now, where they
// are worked at through the queue, too.
func (p *taskPlaces) release(ctx context.Context, done int) error {
	b, err := p.flow.Store.Load(ctx)
	if err != nil {
		return err
	}
	for _, n := range b.State.Numbers() {
		t := b.State.Tasks[n]
		if !slices.Contains(t.DependsOn, done) || t.Status.Ended() || len(t.Plans) == 0 || len(b.Waits(t)) > 0 {
			continue
		}
		planned, err := p.queue.Get(ctx, taskKey(n, task.OpPlan))
		if err != nil {
			continue // nobody asked for it here
		}
		if err := p.goOn(ctx, planned, task.StepResult{Op: task.OpPlan, Number: n, Status: "completed"}); err != nil {
			return err
		}
	}
	return nil
}

// taskKey names the item of a task's step that is no phase.
func taskKey(number int, op string) string { return fmt.Sprintf("task:%03d/%s", number, op) }

// taskLabel is what all items of a task have.
func taskLabel(number int) string { return fmt.Sprintf("task-%03d", number) }

// taskItems are what is left of a task, as items of the queue: what can be known of it
// now. The phases are added when there is a plan.
func taskItems(ctx context.Context, q queue.Queue, b *task.Board, number int) ([]queue.Item, error) {
	t, err := b.Task(number)
	if err != nil {
		return nil, err
	}
	var items []queue.Item
	one := func(op, title string, after ...string) {
		it := queue.Item{
			Key: taskKey(number, op), Title: oneTitle(fmt.Sprintf("Task %d, %s: %s", number, title, t.Title)), Body: op + " of task " + strconv.Itoa(number),
			Task: fmt.Sprintf("%03d/%s", number, op), Source: fmt.Sprintf("task:%03d", number), DependsOn: after, NoChangeOK: true,
		}
		items = append(items, it)
	}
	switch b.NextOp(t) {
	case "":
		return nil, nil
	case task.OpResearch:
		one(task.OpResearch, "research")
		one(task.OpPlan, "plan", taskKey(number, task.OpResearch))
	case task.OpPlan:
		one(task.OpPlan, "plan")
	default:
		p, _, err := b.Plan(t)
		if err != nil {
			return nil, err
		}
		for _, ph := range p.Phases {
			if !ph.Status.Ended() {
				items = append(items, phaseItem(t, p, ph.Number))
			}
		}
	}
	labels := []string{"task", taskLabel(number)}
	if t.Language != "" && t.Language != task.DefaultLanguage {
		labels = append(labels, t.Language)
	}
	renamed := map[string]string{}
	for i := range items {
		it := &items[i]
		it.Labels = labels
		if n, err := queue.ParsePriority(t.Priority); err == nil {
			it.Priority = &n
		}
		key := it.Key
		if it.Key, err = freshKey(ctx, q, key); err != nil {
			return nil, err
		}
		renamed[key] = it.Key
	}
	for i := range items {
		for j, d := range items[i].DependsOn {
			items[i].DependsOn[j] = cmp.Or(renamed[d], d)
		}
	}
	return items, nil
}

// freshKey is the key of a step that is to be done although an item of that key has
// ended: it was given up, or its work was taken back.
func freshKey(ctx context.Context, q queue.Queue, key string) (string, error) {
	for n := 2; ; n++ {
		it, err := q.Get(ctx, key)
		switch {
		case errors.Is(err, queue.ErrNotFound):
			return key, nil
		case err != nil:
			return "", err
		case it.State != queue.Done && it.State != queue.Dead:
			return key, nil
		}
		base, _, _ := strings.Cut(key, "#")
		key = fmt.Sprintf("%s#%d", base, n)
	}
}

func newTaskRunCmd(app *App) *cobra.Command {
	var f flowFlags
	var lf loopFlags
	var parallel, inLoop, queueOnly bool
	cmd := &cobra.Command{
		Use: "run N ...", Args: cobra.MinimumNArgs(1), Short: "Take tasks from where they are to their end: research, plan, and all phases",
		Long: `Take tasks from where they are to their end: research, a plan, and its phases. Those that
others depend on come first; of one that cannot go on the others that wait for it are
left out.

With --parallel tasks, and phases that do not wait for each other, are worked at side by
side, phases in worktrees of their own. With --loop each step becomes an item of the
queue, and the loop works at these (docs/loop.md has its ceilings): a step that fails is
tried again, and what a person must decide waits or is set aside. --queue only adds the
items, for a loop that runs or will.`,
		Example: `  reprise task run 12
  reprise task run 12 13 14 --parallel
  reprise task run 12 --loop --workers 2`,
		Annotations: map[string]string{ownsSignals: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			var numbers []int
			for _, a := range args {
				n, err := taskNumber(a)
				if err != nil {
					return err
				}
				if !slices.Contains(numbers, n) {
					numbers = append(numbers, n)
				}
			}
			if inLoop || queueOnly {
				return app.runTasksInLoop(cmd, numbers, f, lf, queueOnly)
			}
			var err error
			if f.parallel, err = app.sideBySide(parallel); err != nil {
				return err
			}
			ctx, stop := app.untilSignal(cmd.Context())
			defer stop()
			flow, err := app.taskFlow(ctx, f)
			if err != nil {
				return err
			}
			list, err := flow.Drive(ctx, numbers, f.parallel)
			if err == nil && len(list) == 0 {
				fmt.Fprintln(app.Out, "nothing is left to do")
				return nil
			}
			return app.showFlow(list, err, f.asJSON)
		},
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.noVerify, "no-verify", false, "do not run the project's checks after a phase")
	fl.BoolVar(&parallel, "parallel", false, "side by side (tasks.parallel of them)")
	fl.BoolVar(&inLoop, "loop", false, "as items of the queue, by the loop")
	fl.BoolVar(&queueOnly, "queue", false, "add the items to the queue, and leave them to a loop")
	fl.IntVar(&lf.workers, "workers", 1, "with --loop: items worked on at the same time")
	fl.BoolVar(&lf.unattended, "unattended", false, "with --loop: nobody is there; see `reprise loop run`")
	fl.StringVar(&lf.onInterrupt, "on-interrupt", "", "with --loop: when a person must decide: wait, or skip")
	fl.DurationVar(&lf.delay, "delay", 0, "with --loop: between two items of a worker")
	fl.DurationVar(&lf.backoffUnit, "backoff-unit", time.Second, "")
	_ = fl.MarkHidden("backoff-unit") // it was defined just above
	cmd.MarkFlagsMutuallyExclusive("parallel", "loop", "queue")
	offer(cmd, "on-interrupt", "wait", "skip")
	return cmd
}

// untilSignal is a context that ends at the first signal. Commands that own their signals
// have no other.
func (a *App) untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if a.Signals != nil {
		signals := a.Signals()
		go func() {
			select {
			case <-signals:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// runTasksInLoop adds what is left of tasks to the queue, and has the loop work at it.
func (a *App) runTasksInLoop(cmd *cobra.Command, numbers []int, f flowFlags, lf loopFlags, queueOnly bool) error {
	ctx := cmd.Context()
	q, err := a.writableQueue(ctx, proc.ID{})
	if err != nil {
		return err
	}
	b, err := a.loadTasks(ctx)
	if err != nil {
		return err
	}
	order, err := b.Order(numbers)
	if err != nil {
		return taskError(err)
	}
	flow, err := a.taskFlow(ctx, f)
	if err != nil {
		return err
	}
	added := 0
	for _, n := range order {
		if _, done, err := flow.EndLeft(ctx, n); err != nil {
			return taskError(err)
		} else if done {
			continue
		}
		t, err := b.Task(n)
		if err != nil {
			return taskError(err)
		}
		if waits := b.Waits(t); len(waits) > 0 && b.NextOp(t) == task.OpImplement {
			return exitWith(ExitConflict, fmt.Errorf("task %d has a plan and waits for task %s: run that first", n, numbersText(waits)))
		}
		items, err := taskItems(ctx, q, b, n)
		if err != nil {
			return err
		}
		for i := range items {
			items[i].Agent = cmp.Or(f.agent, scriptClient(f.script))
		}
		list, err := q.Add(ctx, items...)
		if err != nil {
			return err
		}
		for _, it := range list {
			if it.New {
				added++
			}
		}
	}
	fmt.Fprintf(a.Err, "%s of the queue\n", count(added, "new item"))
	if queueOnly {
		return nil
	}
	lf.agent, lf.script, lf.model, lf.timeout, lf.untilEmpty, lf.labels = f.agent, f.script, f.model, f.timeout, true, []string{"task"}
	lf.says = []string{"label", "until-empty"}
	if len(numbers) == 1 {
		lf.labels = []string{taskLabel(numbers[0])}
	}
	if err := runLoop(ctx, a, cmd, lf); err != nil {
		return err
	}
	if b, err = a.loadTasks(ctx); err != nil {
		return err
	}
	code := ExitOK
	for _, n := range order {
		t := b.State.Tasks[n]
		if t == nil {
			continue
		}
		if !t.Status.Ended() {
			code = ExitFailure
		}
		reason := ""
		if t.Reason != "" {
			reason = ": " + t.Reason
		}
		fmt.Fprintf(a.Out, "task %d is %s%s\n", n, t.Status.Words(), term.SafeLine(reason))
	}
	return exitWithCode(code)
}
