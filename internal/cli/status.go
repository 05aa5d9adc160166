package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/agent"
	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/loop/tell"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/run"
	"reprise/internal/setup"
	"reprise/internal/task"
	"reprise/internal/term"
	"reprise/internal/web"
)

// standing is where things stand: what `reprise` with nothing shows. It is told from
// records and names of files; no event log and no client is opened for it, and the index only
// to count in it.
type standing struct {
	V       int            `json:"v"` // 1
	Version string         `json:"version"`
	Dir     string         `json:"directory"`
	Project *standProject  `json:"project"` // null outside any project
	Clients []standClient  `json:"clients"` // those that are on this machine or connected
	Runs    []standRun     `json:"runs"`    // alive, newest first
	Loop    *standLoop     `json:"loop"`    // null where there was none
	Fleet   *standFleet    `json:"fleet"`   // null where the queue is on this machine
	Queue   map[string]int `json:"queue"`   // items by state; null where servers did not tell
	Tasks   map[string]int `json:"tasks"`   // tasks by status
	Night   *standNight    `json:"last_day"`
	Waits   []standWait    `json:"waits"` // for a person, the most pressing first
	Next    []standNext    `json:"next"`  // three at most
	Notes   []string       `json:"notes"` // what could not be looked at
	Memory  standMemory    `json:"memory"`

	nextTask *task.Task
	nextOp   string

	// other is a client that runs and loops could start where the one that they would is not
	// on this machine.
	other string
}

type standProject struct {
	Name string `json:"name"`
	Root string `json:"root"`
}

type standClient struct {
	Client    string `json:"client"`
	Found     bool   `json:"found"`     // its program or its directory is here
	Connected bool   `json:"connected"` // it has reprise's hooks, or the server where it has no hooks
	// Missing is the program by which it is started, where that is nowhere: left-over settings
	// are no client.
	Missing string `json:"missing,omitempty"`
}

type standRun struct {
	ID      string  `json:"id"`
	Status  string  `json:"status"`
	Client  string  `json:"client"`
	Project string  `json:"project,omitempty"`
	Seconds float64 `json:"seconds"`
	Task    string  `json:"task"`
	Tool    string  `json:"last_tool,omitempty"`
	Worker  string  `json:"worker,omitempty"` // of the fleet, where it runs
}

type standLoop struct {
	Running  bool       `json:"running"`
	Phase    core.Phase `json:"phase"`
	Begun    int        `json:"iterations"`
	Of       int        `json:"max_iterations"`
	Done     int        `json:"done"`
	CostUSD  float64    `json:"cost_usd"`
	MaxUSD   float64    `json:"max_usd"`
	Parked   int        `json:"parked"`
	EndedWhy string     `json:"reason,omitempty"`
	Unsaved  string     `json:"unsaved,omitempty"` // why what is told is from before: its state cannot be written
	// Questions are what waits for a person, and what was answered and not told yet; Said
	// is how many of them wait for the next loop alone.
	Questions []loop.Question `json:"questions,omitempty"`
	Said      int             `json:"said,omitempty"`
}

type standWait struct {
	Text    string `json:"text"`
	Command string `json:"command"`
}

type standNext struct {
	Command string `json:"command"`
	Why     string `json:"why"`
}

func newStatusCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "status", Args: cobra.NoArgs, Short: "Where things stand, and the three likely next commands",
		Long: `Say where things stand: the project, the clients, runs that are alive, the loop, the fleet's
workers and what they do, the queue, the tasks, what the last 24 hours came to, what waits for a person, and the
three commands that are likely next. ` + "`reprise`" + ` with nothing shows the same.`,
		Example: `  reprise status
  reprise status --json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return showStatus(cmd.Context(), app, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func showStatus(ctx context.Context, app *App, asJSON bool) error {
	s, err := app.standing(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(app.Out, s)
	}
	_, err = fmt.Fprint(app.Out, app.standingText(&s, app.Columns))
	return err
}

// standing looks at everything once. What cannot be looked at is a note, and the rest
// is shown: this is what one calls when something is off.
func (a *App) standing(ctx context.Context) (standing, error) {
	s := standing{V: 1, Version: Version(), Dir: a.Env.Dir, Clients: []standClient{}, Runs: []standRun{}, Queue: map[string]int{},
		Tasks: map[string]int{}, Waits: []standWait{}, Next: []standNext{}, Notes: []string{}}
	home, err := a.Home()
	if err != nil {
		return s, fmt.Errorf("%w\n`reprise doctor` says more", err)
	}
	if p := home.Project; p != nil {
		s.Project = &standProject{p.Name, p.Root}
		if former, err := home.Paths.FormerNames(p); err == nil && len(former) > 0 && !home.Paths.Begun(p.Name) {
			s.Notes = append(s.Notes, config.Renamed(p, former))
		}
		if text := home.Paths.OtherName(p); text != "" {
			s.Notes = append(s.Notes, text)
		}
	} else if ab := a.absentProject(ctx, home.Dir); ab != nil {
		s.Notes = append(s.Notes, ab.why())
	}
	note := func(what string, err error) {
		if err != nil && ctx.Err() == nil {
			s.Notes = append(s.Notes, what+": "+firstLine(err.Error(), 300))
		}
	}
	note("clients", a.standClients(&s, home))
	note("calls that wait", a.standGuard(&s))
	note("loop", a.standLoop(ctx, &s, home))
	note("runs", a.standRuns(ctx, &s))
	note("queue", a.standQueue(ctx, &s))
	note("fleet", a.standFleet(ctx, &s, home))
	note("tasks", a.standTasks(ctx, &s, home))
	note("project", a.standTrust(&s, home))
	note("gates", a.standGates(&s, home))
	note("memory", a.standMemory(ctx, &s, home))
	s.Next = nextCommands(&s)
	return s, ctx.Err()
}

// missingProgram is the program of a client with hooks, which are all started from a shell,
// where it is not here; else "".
func (a *App) missingProgram(client string, home *config.Home) string {
	if !slices.Contains(setup.HookClients(), client) {
		return ""
	}
	name := setup.Program(client)
	if client == "claude-code" {
		name = home.Settings.ClaudeCLI.Path
	}
	if _, err := a.lookPath(name); err != nil {
		return name
	}
	return ""
}

func (a *App) standClients(s *standing, home *config.Home) error {
	su := setupFor(a, home)
	hooks, err := su.Installed()
	for _, c := range setup.Clients() {
		one := standClient{Client: c, Found: su.Found(c, a.lookPath)}
		one.Connected = slices.ContainsFunc(hooks, func(h setup.InstalledHooks) bool { return h.Client == c })
		if name, _ := su.Plugin(c); name != "" {
			one.Connected = true
		}
		if !one.Connected && !slices.Contains(setup.HookClients(), c) {
			if t, err := setup.Locate(su.Where, c, setup.User); err == nil {
				_, one.Connected, _ = setup.Find(t, setup.Name) // doctor says what is wrong with the file
			}
		}
		one.Missing = a.missingProgram(c, home)
		if one.Found || one.Connected {
			s.Clients = append(s.Clients, one)
		}
	}
	s.other = otherClient(s.Clients, home.Settings.SubAgent.Agent)
	d := setup.Doctor{Setup: su}
	off := map[string]bool{}
	switchedOff := func(client, why string) {
		if why != "" && !off[client] {
			off[client] = true
			s.Waits = append(s.Waits, standWait{setup.SwitchedOff(client, why), "reprise doctor --quick"})
		}
	}
	if name, _ := su.Plugin("claude-code"); name != "" {
		why, _, _ := su.HooksOff("claude-code", true) // doctor says what cannot be read
		switchedOff("claude-code", why)
	}
	for _, h := range hooks {
		if why, _, _ := su.Off(h); why != "" {
			switchedOff(h.Client, why)
			continue
		}
		if list, err := d.Unaccepted(h); err == nil && len(list) > 0 {
			s.Waits = append(s.Waits, standWait{count(len(list), "hook") + " of Codex: it runs them once you trust them as they are, where it asks at its start or by /hooks", "codex"})
		}
	}
	return err
}

func (a *App) standGuard(s *standing) error {
	q, err := a.pendingQueue()
	if err != nil {
		return err
	}
	list, err := q.list()
	for _, c := range list {
		s.Waits = append(s.Waits, standWait{fmt.Sprintf("a call of %s: %s %s", c.Client, c.Tool, firstLine(c.Input, 100)), "reprise guard pending"})
	}
	return err
}

func (a *App) standLoop(ctx context.Context, s *standing, home *config.Home) error {
	if home.Project == nil {
		return nil
	}
	dir := filepath.Join(home.Paths.ProjectDir(home.Project.Name), "loop")
	nightErr := a.standNight(ctx, s, dir)
	st, err := loop.ReadState(dir)
	if err != nil || st == nil {
		return errors.Join(nightErr, err)
	}
	running, _, runErr := loop.Running(durable.Disk{}, dir)
	m := loop.MetricsOf(*st)
	l := &standLoop{Running: running, Phase: m.Phase, Begun: m.Iterations, Of: m.MaxIterations, Done: m.Done, CostUSD: m.CostUSD, MaxUSD: m.MaxUSD, EndedWhy: st.Reason}
	s.Loop = l
	if why := loop.Unsaved(dir, st, a.Now()); running && why != "" {
		l.Unsaved = why
		s.Waits = append(s.Waits, standWait{"the loop cannot go on: " + firstLine(why, 400), "reprise loop status"})
	}
	for i := range st.Slots {
		if p := &st.Slots[i]; running && p.Retries >= loop.ToldStuck && p.Trouble != "" {
			s.Waits = append(s.Waits, standWait{"the loop cannot go on with " + orDash(p.Claim.Item.ID) + ", and tries again: " + firstLine(p.Trouble, 300), "reprise loop status"})
		}
	}
	var qErr error
	l.Questions, qErr = a.questions(ctx, dir, st)
	var asked []string
	for _, q := range l.Questions {
		switch {
		case q.Open():
			asked = append(asked, q.Item)
			s.Waits = append(s.Waits, standWait{term.SafeLine(q.Words()), q.Command()})
		case !running:
			l.Said++
			asked = append(asked, q.Item)
		}
		if st.Items[q.Item].Parked {
			l.Parked++
		}
	}
	if i := st.Interrupt; tell.Beside(i, asked) && st.Phase != core.Finished {
		s.Waits = append(s.Waits, standWait{"the loop waits: " + firstLine(i.Why, 200), tell.GoOn(i.Kind, m)})
	}
	return errors.Join(nightErr, runErr, qErr)
}

func (a *App) standRuns(ctx context.Context, s *standing) error {
	runs, err := a.Runs()
	if err != nil {
		return err
	}
	list, err := runs.List(ctx)
	for _, r := range list {
		if r.Status == run.Interrupted && r.Origin != "loop" && r.ResumedBy == "" { // those of the loop are questions of items
			s.Waits = append(s.Waits, standWait{r.ID + " was interrupted: " + firstLine(r.StatusReason, 120), "reprise runs resume " + r.ID})
		}
		if !r.Status.Settled() {
			s.Runs = append(s.Runs, standRun{ID: r.ID, Status: string(r.Status), Client: r.Client, Project: r.Project, Seconds: r.Elapsed(a.Now()).Seconds(), Task: taskCell(r, 100), Tool: r.Heartbeat.LastTool})
		}
	}
	return err
}

func (a *App) standQueue(ctx context.Context, s *standing) error {
	if left, _ := a.leftInFiles(); left > 0 {
		s.Waits = append(s.Waits, standWait{count(left, "item") + " of the queue in files of this machine, which nobody works off", "reprise queue migrate"})
	}
	q, err := a.Queue(proc.ID{})
	if err != nil {
		s.Queue = nil
		return err
	}
	n, unread, err := countQueue(ctx, q)
	if n == nil && err != nil {
		s.Queue = nil
		return err
	}
	for state, k := range n {
		s.Queue[string(state)] = k
	}
	if unread > 0 {
		s.Waits = append(s.Waits, standWait{count(unread, "file") + " of the queue cannot be read", "reprise queue check"})
	}
	if k := a.givenUp(ctx, q, n[queue.Dead]); k > 0 {
		s.Waits = append(s.Waits, standWait{count(k, "item") + " of the queue given up", "reprise queue list --state dead"})
	}
	return err
}

// readCounted is how many items that are not settled are read to count them. The names of
// more than that are counted alone.
const readCounted = 200

// countQueue is how many items are in each state, and how many files are none that can be
// read: those count for no state.
func countQueue(ctx context.Context, q queue.Queue) (n map[queue.State]int, unread int, err error) {
	n, err = q.Count(ctx)
	open := []queue.State{queue.Ready, queue.Claimed, queue.Blocked}
	most := 0
	for _, s := range open {
		most += n[s]
	}
	if err != nil || most == 0 || most > readCounted {
		return n, 0, err
	}
	l, err := q.List(ctx, queue.Filter{States: open})
	if err != nil {
		return n, 0, err
	}
	for _, s := range open {
		delete(n, s)
	}
	for i := range l.Items {
		n[l.Items[i].State]++
	}
	return n, len(l.Trouble), nil
}

// givenUp is how many of the dead items wait for a person: those that nobody has dropped.
func (a *App) givenUp(ctx context.Context, q queue.Queue, dead int) int {
	if dead == 0 {
		return 0
	}
	l, err := q.List(ctx, queue.Filter{States: []queue.State{queue.Dead}})
	if err != nil {
		return dead // what cannot be read is looked at
	}
	for _, it := range l.Items {
		if it.Dropped() {
			dead--
		}
	}
	return dead
}

func (a *App) standTasks(ctx context.Context, s *standing, home *config.Home) error {
	if home.Project == nil {
		return nil
	}
	b, err := a.tasksOf(home)(ctx)
	if err != nil || b == nil {
		return err
	}
	var open []*task.Task
	for _, n := range b.State.Numbers() {
		t := b.State.Tasks[n]
		s.Tasks[string(t.Status)]++
		if !t.Status.Ended() {
			open = append(open, t)
		}
	}
	if n := s.Tasks[string(task.Blocked)]; n > 0 {
		s.Waits = append(s.Waits, standWait{count(n, "task") + " blocked", "reprise task list --status blocked"})
	}
	task.SortByWork(open)
	for _, t := range open {
		if op := b.NextOp(t); op != "" && t.Status != task.Blocked && len(t.Operations) == 0 && len(b.Waits(t)) == 0 {
			s.nextTask, s.nextOp = t, op
			break
		}
	}
	return nil
}

// otherClient is the connected client that could work where Claude Code, which is set, is not
// here; "" where it is, or another is set, or none could.
func otherClient(clients []standClient, set string) string {
	if set != agent.KindClaude {
		return ""
	}
	other := ""
	for _, c := range clients {
		switch c.Client {
		case "claude-code":
			return ""
		case agent.KindCodex, agent.KindGemini, agent.KindCopilot:
			if c.Connected && other == "" {
				other = c.Client
			}
		}
	}
	return other
}

func (a *App) standTrust(s *standing, home *config.Home) error {
	if home.Project == nil {
		lost, err := home.Paths.Lost(home.Env, home.Dir)
		if lost != nil {
			s.Waits = append(s.Waits, standWait{lost.Project.File() + " " + lost.Why() + ", so no check keeps agents of project " + lost.Project.Name + " from ending", "reprise trust --revoke"})
		}
		return err
	}
	t, err := home.Paths.Trust(home.Project)
	switch {
	case t.Lapsed():
		s.Waits = append(s.Waits, standWait{"the project's settings changed since you approved them, so no check keeps agents from ending", "reprise trust"})
	case len(t.Asks) > 0 && !t.Approved:
		s.Waits = append(s.Waits, standWait{"the project's settings ask for " + strings.Join(t.Asks, ", ") + ", and do nothing until you approve them", "reprise trust"})
	}
	return err
}

// blocksIn counts the blocks of the user's memory and of the project's.
func blocksIn(home *config.Home) int {
	n := 0
	dirs := []string{home.MemoryDir()}
	if home.Project != nil {
		dirs = append(dirs, home.Paths.ProjectMemory(home.Project.Name))
	}
	for _, dir := range dirs {
		list, err := durable.ReadDir(filepath.Join(dir, "blocks"))
		if err != nil {
			continue // there is none, or `reprise memory check` says why
		}
		for _, e := range list {
			if strings.HasSuffix(e.Name(), ".md") {
				n++
			}
		}
	}
	return n
}

// entriesIn counts the learnings and decisions that hold: the project's, and those that
// the user keeps for all projects.
func entriesIn(home *config.Home) int {
	blocks := filepath.Join(home.MemoryDir(), "blocks")
	files := []string{filepath.Join(blocks, "reference-learned.md"), filepath.Join(blocks, "decisions.md")}
	if home.Project != nil {
		dir := home.Paths.ProjectGlobal(home.Project.Name)
		files = append(files, filepath.Join(dir, "learnings.md"), filepath.Join(dir, "decisions.md"))
	}
	var all []mdfile.Entry
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || info.Size() > memory.MaxFile {
			continue // `reprise memory check` says why
		}
		data, err := durable.Read(file)
		if err != nil {
			continue
		}
		all = append(all, mdfile.ParseEntries(data).Entries...)
	}
	n, states := 0, mdfile.Resolve(all)
	for _, e := range all {
		if (e.Type == mdfile.TypeLearning || e.Type == mdfile.TypeDecision) && states[e.ID].Status == mdfile.StatusActive {
			n++
		}
	}
	return n
}

func lasting(n int) string {
	if n == 1 {
		return "1 learning or decision"
	}
	return fmt.Sprintf("%d learnings and decisions", n)
}

// unconnected are the clients of a list that reprise is not in, by name.
func unconnected(list []standClient) (names []string) {
	for _, c := range list {
		if !c.Connected {
			names = append(names, c.Client)
		}
	}
	return names
}

// nobodyConnected is what who has clients, and has connected none, waits for; nil for others.
// `reprise` alone has it among the next commands, which the dashboard has none of.
func nobodyConnected(list []standClient) []web.Wait {
	off := unconnected(list)
	if len(off) == 0 || len(off) < len(list) {
		return nil
	}
	return []web.Wait{{Text: "No client is connected, so nothing is told to sessions, guarded or remembered: " + strings.Join(off, ", ") + " found", Command: "reprise setup"}}
}

// nextCommands are the three commands that are likely next, the likeliest first: what is
// not set up, then what there is to be done, then what there is to look at. What waits for
// a person is not among them: it has its command beside it.
func nextCommands(s *standing) []standNext {
	var list []standNext
	add := func(command, why string) {
		if len(list) < 3 && !slices.ContainsFunc(list, func(n standNext) bool { return n.Command == command }) &&
			!slices.ContainsFunc(s.Waits, func(w standWait) bool { return w.Command == command }) {
			list = append(list, standNext{command, why})
		}
	}
	if s.Loop != nil && !s.Loop.Running && s.Loop.Phase != core.Finished {
		add("reprise loop run", "go on with the loop that stopped in the middle")
	}
	connected := func(c standClient) bool { return c.Connected }
	here := unconnected(s.Clients)
	switch {
	case s.Project == nil && slices.ContainsFunc(s.Clients, connected):
		add("reprise init", "make this directory a project")
	case s.Project == nil && len(here) > 0:
		add("reprise init", "make this directory a project, and connect "+strings.Join(here, ", "))
	case s.Project == nil:
		add("reprise demo", "see it work, without an account")
		add("reprise init", "make this directory a project")
	case len(here) > 0 && !slices.ContainsFunc(s.Clients, connected):
		add("reprise setup", "connect "+strings.Join(here, ", "))
	}
	if s.Project != nil && s.other != "" {
		add("reprise config set sub_agent.agent "+s.other, "have runs and loops start "+s.other+", for Claude Code is not here")
	}
	if s.Loop != nil && s.Loop.Running || len(s.Runs) > 0 {
		add("reprise watch", "look on")
	}
	if s.Fleet != nil && len(s.Fleet.Runs) > 0 && s.Project != nil {
		add("reprise runs logs -f "+s.Fleet.Runs[0].ID, "follow what "+s.Fleet.Runs[0].Worker+" does for "+s.Fleet.Runs[0].Task)
	}
	if s.Night != nil {
		add("reprise loop report --since 24h", "read what the last day came to")
	}
	if s.Loop != nil && s.Loop.Said > 0 && !s.Loop.Running {
		add("reprise loop run", "have agents go on with what you answered")
	}
	if s.Project != nil && s.Queue[string(queue.Ready)] > 0 && (s.Loop == nil || !s.Loop.Running) && !s.Fleet.live() {
		add("reprise loop run", "have agents work on the queue")
	}
	if s.nextTask != nil {
		add(fmt.Sprintf("reprise task %s %d", s.nextOp, s.nextTask.Number), "go on with: "+s.nextTask.Title)
	}
	if s.Project != nil && len(s.Tasks) == 0 {
		add(`reprise task new "…"`, "begin a list of tasks")
	}
	if slices.ContainsFunc(s.Clients, connected) {
		add("reprise context show", "see what the next session is told")
	}
	add("reprise doctor", "see whether all is well")
	add("reprise recall \"…\"", "ask what is remembered")
	add("reprise web --open", "the same in a browser")
	return list
}

// standingText is the page for people, no wider than so many columns; 0 is as wide as
// it gets.
func (a *App) standingText(s *standing, columns int) string {
	style := a.Style()
	var b strings.Builder
	row := func(label, text string) {
		lines := []string{text}
		if columns > 0 {
			width := max(columns-11, 1)
			if label != "" { // a run's task may be as long as it likes
				lines = strings.Split(term.Wrap("", text, "", width), "\n")
			}
			if len(lines) > 2 {
				lines = []string{lines[0], strings.Join(lines[1:], " ")}
			}
			for i, l := range lines {
				lines[i] = term.Cut(l, width)
			}
		}
		for i, l := range lines {
			if i > 0 {
				label = ""
			}
			b.WriteString(strings.TrimRight(style.Dim(fmt.Sprintf("%-9s", label))+"  "+l, " ") + "\n")
		}
	}
	title := style.Bold("no project here") + "  " + term.SafeLine(s.Dir)
	if s.Project != nil {
		title = style.Bold(s.Project.Name) + "  " + term.SafeLine(s.Project.Root)
	}
	if columns > 0 {
		title = term.Cut(title, columns)
	}
	b.WriteString(title + "\n\n")
	row("clients", clientsText(s.Clients))
	row("runs", runsText(s.Runs))
	for i, r := range s.Runs {
		if i == 3 {
			row("", fmt.Sprintf("… and %d more", len(s.Runs)-i))
			break
		}
		row("", term.SafeLine(strings.TrimSpace(fmt.Sprintf("%s %s %s  %s", r.ID, r.Client, ago(time.Duration(r.Seconds*float64(time.Second))), r.Task))))
	}
	if s.Project != nil {
		row("loop", loopText(s.Loop))
	}
	if f := s.Fleet; f != nil {
		row("fleet", term.SafeLine(f.text()))
		for i, r := range f.Runs {
			if i == 3 {
				row("", fmt.Sprintf("… and %d more", len(f.Runs)-i))
				break
			}
			row("", term.SafeLine(strings.TrimSpace(fmt.Sprintf("%s %s %s %s  %s", r.ID, r.Worker, r.Client, ago(time.Duration(r.Seconds*float64(time.Second))), r.Task))))
		}
	}
	none := "empty"
	if s.Queue == nil {
		none = "not known"
	}
	row("queue", statesText(s.Queue, []string{"ready", "claimed", "blocked", "dead"}, none))
	if s.Project != nil {
		var order []string
		for _, st := range task.Statuses() {
			if !st.Ended() {
				order = append(order, string(st))
			}
		}
		none := "none yet"
		if len(s.Tasks) > 0 {
			none = "none open"
		}
		row("tasks", statesText(s.Tasks, order, none))
	}
	row("memory", s.Memory.text())
	if n := s.Night; n != nil {
		row("last day", n.text())
	}
	if len(s.Waits) > 0 {
		b.WriteString("\n" + style.Yellow("waits for you") + "\n")
		b.WriteString(commandsText(style, s.Waits, columns, math.MaxInt))
	}
	b.WriteString("\n" + style.Bold("next") + "\n")
	next := make([]standWait, len(s.Next))
	for i, n := range s.Next {
		next[i] = standWait{Command: n.Command, Text: n.Why}
	}
	b.WriteString(commandsText(style, next, columns, 40)) // a task's title may be as long as it likes
	for _, n := range s.Notes {
		b.WriteString(style.Yellow("note: ") + term.SafeLine(n) + "\n")
	}
	return b.String()
}

// commandsText are commands, each with what it is about. Where a terminal is too narrow for
// both beside each other, as far as so many columns of the text go, the command has a line of its own, which is not cut (it
// is to be copied, and the terminal breaks it), and below it stands the whole of what it
// is about.
func commandsText(style term.Style, list []standWait, columns, need int) string {
	left := max(len(list)-5, 0)
	list = list[:len(list)-left]
	wide, text := 0, 0
	for _, w := range list {
		wide, text = max(wide, term.Width(w.Command)), max(text, term.Width(w.Text))
	}
	var b strings.Builder
	if columns <= 0 || 2+wide+2+min(text, need) <= columns {
		t := term.NewTable(style).MaxWidth(columns)
		for _, w := range list {
			t.Row("  "+style.Cyan(term.SafeLine(w.Command)), term.SafeLine(w.Text))
		}
		_ = t.Write(&b) // into memory
	} else {
		for _, w := range list {
			b.WriteString("  " + style.Cyan(term.SafeLine(w.Command)) + "\n")
			for line := range strings.Lines(wrapLine(term.SafeLine(w.Text), max(columns-4, 1))) {
				b.WriteString("    " + strings.TrimPrefix(line, "  "))
			}
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "  … and %d more\n", left)
	}
	return b.String()
}

func clientsText(list []standClient) string {
	var on, off []string
	for _, c := range list {
		if c.Connected {
			name := c.Client
			if c.Missing != "" {
				name += " (there is no " + c.Missing + " in PATH)"
			}
			on = append(on, name)
		} else {
			off = append(off, c.Client)
		}
	}
	switch {
	case len(list) == 0:
		return "none found"
	case len(off) == 0:
		return strings.Join(on, ", ") + " connected"
	case len(on) == 0:
		return strings.Join(off, ", ") + " found, not connected"
	}
	return strings.Join(on, ", ") + " connected; " + strings.Join(off, ", ") + " found, not connected"
}

func runsText(list []standRun) string {
	if len(list) == 0 {
		return "none alive"
	}
	return fmt.Sprintf("%d alive", len(list))
}

func loopText(l *standLoop) string {
	if l == nil {
		return "none yet"
	}
	figures := fmt.Sprintf("%d of %d attempts begun, %d done, %.2f of %.2f USD", l.Begun, l.Of, l.Done, l.CostUSD, l.MaxUSD)
	switch {
	case l.Running:
		return string(l.Phase) + ": " + figures
	case l.Phase == core.Finished:
		if l.Said > 0 {
			return "not running; the next one begins with what you said about " + count(l.Said, "item")
		}
		return "not running; the last one: " + figures
	}
	return "stopped in the middle (" + string(l.Phase) + "): " + figures
}

// statesText are counts in an order; what is none is left out.
func statesText(n map[string]int, order []string, none string) string {
	var list []string
	for _, s := range order {
		if n[s] > 0 {
			list = append(list, fmt.Sprintf("%d %s", n[s], strings.ReplaceAll(s, "_", " ")))
		}
	}
	if len(list) == 0 {
		return none
	}
	return strings.Join(list, ", ")
}
