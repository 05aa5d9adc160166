package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/brief"
	"reprise/internal/config"
	"reprise/internal/event"
	"reprise/internal/git"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/recall"
	"reprise/internal/staterepo"
)

// agentAt is an agent of the project with state in a directory of its own.
type agentAt struct {
	w    *world
	name string
	env  config.Env
	tree *staterepo.Tree
	repo *staterepo.Repo
	mem  *Memory
	desk *Desk

	session string // of the client
}

func (w *world) agent(name string) *agentAt {
	w.t.Helper()
	w.env.Vars["PATH"] = os.Getenv("PATH")
	env := w.env
	env.Vars = map[string]string{}
	for k, v := range w.env.Vars {
		env.Vars[k] = v
	}
	env.Vars["REPRISE_AGENT"] = name
	dir := filepath.Join(filepath.Dir(w.env.Dir), "desks", name)
	env.Vars[AgentDirVar] = dir
	a := &agentAt{w: w, name: name, env: env}
	a.repo = staterepo.New(staterepo.Options{
		Dir: w.home.Paths.ProjectDir("shop"), Project: "shop", Git: git.Options{Vars: env.Vars}, Now: time.Now, Merge: memory.MergeFile,
	})
	ctx := w.t.Context()
	if _, err := a.repo.Ensure(ctx); err != nil {
		w.t.Fatal(err)
	}
	var err error
	if a.tree, err = a.repo.CreateAgent(ctx, name, dir, false); err != nil {
		w.t.Fatal(err)
	}
	a.open()
	return a
}

// open opens the memory as a new process would.
func (a *agentAt) open() {
	home := *a.w.home
	home.Env = a.env
	a.mem = Open(Options{Home: &home, Env: a.env, Build: true})
	m := a.mem
	a.w.t.Cleanup(func() { m.Close() })
	a.desk = &Desk{
		Memory:  func() (*Memory, error) { return a.mem, nil },
		Open:    func(context.Context) (*staterepo.Repo, *staterepo.Tree, error) { return a.repo, a.tree, nil },
		Reader:  func() recall.Reader { return Reader(&home, a.env) },
		Session: func(context.Context) string { return a.session },
		Redact:  func(s string) string { return strings.ReplaceAll(s, "hunter2", "[secret]") },
		Code:    func(context.Context) (string, string) { return config.CodeBranch(a.env.Dir), "c0ffee" },
	}
}

func (a *agentAt) teller() *Teller {
	return &Teller{Memory: a.mem, Broker: a.w.broker, Warn: func(what string, err error) { a.w.warn = append(a.w.warn, what+": "+err.Error()) }}
}

func (w *world) branch(name string) {
	w.t.Helper()
	dir := filepath.Join(w.env.Dir, ".git")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/"+name+"\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(name, text string) {
	w.t.Helper()
	file := filepath.Join(w.home.Paths.ProjectGlobal("shop"), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func textsOf(list []Noted) string {
	var out []string
	for _, n := range list {
		out = append(out, n.Text)
	}
	return strings.Join(out, " | ")
}

// What an agent wrote is told to it as it is, by its files, before and after much
// else was written.
func TestState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.branch("ann/tax")
	ann := w.agent("ann")
	ctx := t.Context()
	wrote := must[Wrote](t)
	ann.session = "s1"
	for i := range 7 {
		wrote(ann.desk.Add(ctx, mdfile.Entry{Type: mdfile.TypeImplement, Text: fmt.Sprint("step ", i), Status: "completed"}))
	}
	wrote(ann.desk.Write(ctx, "context.md", "The tax of the cart, password hunter2.", false))
	wrote(ann.desk.Write(ctx, "scratch.md", "try the cache", false))
	wrote(ann.desk.Write(ctx, "scratch.md", "or the index", true))
	l := wrote(ann.desk.Learn(ctx, "Always round at the end, never in between.", "The sum was off by a cent.", false))
	d := wrote(ann.desk.Add(ctx, mdfile.Entry{Type: mdfile.TypeDecision, Decision: "Use decimals", Alternatives: []string{"floats"}, Rationale: "cents", Source: "agent"}))
	w.branch("main")
	wrote(ann.desk.Add(ctx, mdfile.Entry{Type: mdfile.TypeDecision, Decision: "Deploy on Mondays", Source: "agent"}))
	w.branch("ann/tax")
	w.write("branches/ann/tax.md", "---\nbranch: ann/tax\n---\n## Context\n\nThe tax of the cart.\n\n## Plan\n\n")
	st := must[State](t)(ann.desk.State(ctx))
	if st.Agent != "ann" || st.Project != "shop" || st.Branch != "ann/tax" || st.Focus != "The tax of the cart, password [secret]." || st.Scratch != "try the cache\n\nor the index" {
		t.Errorf("%+v", st)
	}
	if got := textsOf(st.Log); !strings.HasPrefix(got, "step 5 | step 6 | Always round") || !strings.HasSuffix(got, "Use decimals | Deploy on Mondays") {
		t.Errorf("log: %s", got)
	}
	if got := textsOf(st.Decisions); got != "Use decimals | Deploy on Mondays" || st.Decisions[0].Branch != "ann/tax" || st.Decisions[0].Why != "cents" || st.Decisions[0].Over[0] != "floats" {
		t.Errorf("decisions: %s", got)
	}
	if len(st.Learnings) != 1 || st.Learnings[0].ID != l.ID || len(st.Open) != 3 {
		t.Errorf("learnings %v, open %v", st.Learnings, st.Open)
	}
	for _, want := range []string{"focus of agent ann: The tax of the cart", "branch ann/tax: Context: The tax of the cart.", "scratch notes: try the cache", "implement, completed, ann: step 6", "3 learnings and decisions of agent ann are not the project's yet"} {
		if got := strings.Join(st.lines(), "\n"); !strings.Contains(strings.Join(strings.Fields(got), " "), want) || strings.Contains(got, "Plan") {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	// Of a large log no more is parsed than is told, and the same comes out.
	var b strings.Builder
	b.WriteString("# Changelog\n\nWhat people write between.\n")
	for i := range 3000 {
		_, raw := mdfile.Entry{Type: mdfile.TypePlan, Agent: "ann", Time: time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC), Text: fmt.Sprint("old ", i)}.Render()
		b.WriteString("\n")
		b.Write(raw)
	}
	file := filepath.Join(ann.tree.Dir, "changelog.md")
	data := must[[]byte](t)(os.ReadFile(file))
	if err := os.WriteFile(file, append([]byte(b.String()+"\n"), data...), 0o600); err != nil {
		t.Fatal(err)
	}
	again := must[State](t)(ann.desk.State(ctx))
	if textsOf(again.Log) != textsOf(st.Log) {
		t.Errorf("of a large log: %s", textsOf(again.Log))
	}
	// What took an entry's place is told in place of it.
	wrote(ann.desk.Add(ctx, mdfile.Entry{Type: mdfile.TypeDecision, Decision: "Use integers of cents", Supersedes: d.ID, Source: "agent"}))
	if got := textsOf(must[State](t)(ann.desk.State(ctx)).Decisions); got != "Use integers of cents | Deploy on Mondays" {
		t.Errorf("decisions: %s", got)
	}
	// Another session has learnt nothing yet.
	ann.session = "s2"
	if st := must[State](t)(ann.desk.State(ctx)); len(st.Learnings) != 0 {
		t.Errorf("%+v", st.Learnings)
	}
	// Somebody without state here sees what is everyone's.
	none := w.env
	m := Open(Options{Home: w.home, Env: none})
	defer m.Close()
	if st := must[State](t)(m.State(ctx, Asking{Reader: m.Reader()})); st.Agent != "" || st.About == "" || len(st.Log)+len(st.Open) != 0 {
		t.Errorf("%+v", st)
	}
}

// A handoff is offered to whom it is for, and no more once it was taken.
func TestHandoffs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, ben, cleo := w.agent("ann"), w.agent("ben"), w.agent("cleo")
	ctx := t.Context()
	any1 := must[Wrote](t)(ann.desk.Add(ctx, mdfile.Entry{Type: mdfile.TypeHandoff, Status: "pending", Text: "Write the tests."}))
	must[Wrote](t)(ann.desk.Add(ctx, mdfile.Entry{Type: mdfile.TypeHandoff, Status: "pending", Text: "Only for ben.", To: "ben"}))
	waits := func(a *agentAt) string { t.Helper(); return textsOf(must[State](t)(a.desk.State(ctx)).Handoffs) }
	if a, b, c := waits(ann), waits(ben), waits(cleo); a != "" || b != "Only for ben. | Write the tests." || c != "Write the tests." {
		t.Errorf("ann %q, ben %q, cleo %q", a, b, c)
	}
	got := must[Accepted](t)(ben.desk.Accept(ctx, any1.ID[:10]))
	if got.Handoff.Text != "Write the tests." || got.Handoff.Agent != "ann" || got.ID == "" {
		t.Errorf("%+v", got)
	}
	if _, err := cleo.desk.Accept(ctx, any1.ID); !errors.Is(err, staterepo.ErrTaken) {
		t.Errorf("taken twice: %v", err)
	}
	if b, c := waits(ben), waits(cleo); b != "Only for ben." || c != "" {
		t.Errorf("ben %q, cleo %q", b, c)
	}
}

// What an agent learnt is its own until it is the project's; its log is for all.
// A search that finds nothing says what else there is.
func TestDeskSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, ben := w.agent("ann"), w.agent("ben")
	ctx := t.Context()
	if err := os.MkdirAll(w.home.Paths.ProjectDir("shop-old"), 0o700); err != nil {
		t.Fatal(err)
	}
	found := func(a *agentAt, want Wanted) Found {
		t.Helper()
		want.Max = 10
		return must[Found](t)(a.desk.Search(ctx, want))
	}
	texts := func(f Found) string {
		var out []string
		for _, r := range f.Results {
			out = append(out, r.Type+" "+r.Agent+" "+strings.SplitN(r.Text, "\n", 2)[0])
		}
		return strings.Join(out, " | ")
	}
	l := must[Wrote](t)(ann.desk.Learn(ctx, "The kiln needs an hour before it can be loaded.", "", false))
	must[Wrote](t)(ann.desk.Add(ctx, mdfile.Entry{Type: mdfile.TypePlan, Text: "Load the kiln first, then glaze."}))
	must[Wrote](t)(ben.desk.Add(ctx, mdfile.Entry{Type: mdfile.TypeDecision, Decision: "Fire the kiln at night", Source: "agent"}))

	if got := found(ann, Wanted{Query: "kiln"}); !strings.Contains(texts(got), "learning ann The kiln needs an hour") || !strings.Contains(texts(got), "plan ann Load the kiln") || strings.Contains(texts(got), "night") || got.Own["ben"] != 1 {
		t.Errorf("ann finds %s, %v", texts(got), got.Own)
	}
	if got := found(ben, Wanted{Query: "kiln"}); strings.Contains(texts(got), "needs an hour") || !strings.Contains(texts(got), "plan ann") || !strings.Contains(texts(got), "decision ben") || got.Own["ann"] != 1 {
		t.Errorf("ben finds %s, %v", texts(got), got.Own)
	}
	if got := found(ben, Wanted{Query: "kiln", Type: mdfile.TypePlan}); texts(got) != "plan ann Load the kiln first, then glaze." {
		t.Errorf("plans: %s", texts(got))
	}
	if got := found(ann, Wanted{Query: "kiln", Since: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}); texts(got) != "" {
		t.Errorf("since 2030: %s", texts(got))
	}
	if got := found(ann, Wanted{}); !strings.HasPrefix(texts(got), "plan ann") || len(got.Results) != 2 {
		t.Errorf("the newest: %s", texts(got))
	}
	if got := found(ann, Wanted{Type: mdfile.TypeLearning}); len(got.Results) != 1 || got.Results[0].ID != l.ID || got.Results[0].Shared {
		t.Errorf("the newest learning: %+v", got)
	}
	if got := found(ann, Wanted{Query: "zeppelin"}); len(got.Results) != 0 || !slices.Equal(got.Projects, []string{"shop-old"}) {
		t.Errorf("nothing: %+v", got)
	}
	// Promoted, it is everyone's.
	e := Entries(w.home, "shop", memory.FullAccess, time.Now)
	if _, err := e.Add(ctx, mdfile.Entry{Type: mdfile.TypeLearning, Agent: "ann", Text: "The kiln needs an hour before it can be loaded.", Source: "entry:" + l.ID, Confidence: 0.6}); err != nil {
		t.Fatal(err)
	}
	if got := found(ben, Wanted{Query: "kiln hour loaded", Type: mdfile.TypeLearning}); texts(got) != "learning ann The kiln needs an hour before it can be loaded." || !got.Results[0].Shared {
		t.Errorf("ben finds %s", texts(got))
	}
	if st := must[State](t)(ann.desk.State(ctx)); len(st.Open) != 0 {
		t.Errorf("not promoted: %+v", st.Open)
	}
	// What an agent copies from what all share stays everyone's.
	data := must[[]byte](t)(os.ReadFile(e.Path("learnings.md")))
	if err := os.WriteFile(filepath.Join(ben.tree.Dir, "learnings.md"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := found(ann, Wanted{Query: "kiln hour loaded", Type: mdfile.TypeLearning}); len(got.Results) == 0 || !slices.ContainsFunc(got.Results, func(r FoundEntry) bool { return r.Shared }) {
		t.Errorf("ann finds %+v", got.Results)
	}
}

// What a session's start tells is within its share, and the switch turns it off.
func TestStateIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.agent("ann")
	ctx := t.Context()
	must[Wrote](t)(ann.desk.Write(ctx, "context.md", strings.Repeat("The tax of the cart. ", 200), false))
	for i := range 10 {
		must[Wrote](t)(ann.desk.Add(ctx, mdfile.Entry{Type: mdfile.TypeImplement, Text: fmt.Sprint(strings.Repeat("step ", 30), i)}))
	}
	b := must[brief.Brief](t)(brief.Make(ctx, ann.mem.Brief(), brief.Request{At: brief.SessionStart, Reader: ann.mem.Reader()}))
	i := slices.IndexFunc(b.Parts, func(p brief.Part) bool { return p.Name == "state" })
	if i < 0 || b.Parts[i].Tokens > 350 || b.Parts[i].Tokens < 100 || !strings.Contains(b.Text, "focus of agent ann") {
		t.Fatalf("%+v", b)
	}
	ann.mem.o.Home.Settings.Hooks.State.SessionStart = "off"
	if b := must[brief.Brief](t)(brief.Make(ctx, ann.mem.Brief(), brief.Request{At: brief.SessionStart, Reader: ann.mem.Reader()})); strings.Contains(b.Text, "focus of agent") {
		t.Errorf("%s", b.Text)
	}
}

// hears is what a session of the agent is told at an event.
func (a *agentAt) hears(ev dialect.Event) string {
	a.w.t.Helper()
	a.open()
	return a.w.tell(a.teller(), ev)
}

// organised has what happened worked out and noticed, as at the event.
func (a *agentAt) noticed(kind dialect.Kind, session string) {
	a.w.t.Helper()
	a.open()
	if _, err := a.mem.Organizer.Run(a.w.t.Context(), 0); err != nil {
		a.w.t.Fatal(err)
	}
	if err := a.mem.Notice(a.w.t.Context(), dialect.Event{Client: "claude", Kind: kind, Session: session}); err != nil {
		a.w.t.Fatal(err)
	}
}

func prompt(session string) dialect.Event {
	return dialect.Event{Kind: dialect.Prompt, Session: session, Prompt: "go on"}
}

func (w *world) edits(session string, n int) {
	for i := range n {
		w.record(session, event.ToolSucceeded, event.ToolData{Tool: "edit", Name: "Edit", Input: json.RawMessage(fmt.Sprintf(`{"file_path":"%s/a%d.go"}`, w.env.Dir, i)), Output: "ok"})
	}
}

// Each thing is said once, at the next event with a channel, and not at all where
// its switch is off or the project has no state.
func TestNudges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.branch("main")
	before := w.teller()
	w.fixes("s0")
	w.edits("s0", 40)
	if got := w.tell(before, prompt("s0")); strings.Contains(got, "reprise-state") {
		t.Errorf("without any state: %s", got)
	}
	ann := w.agent("ann")
	ctx := t.Context()
	must[Wrote](t)(ann.desk.Add(ctx, mdfile.Entry{Type: mdfile.TypeStart, Text: "The cart."}))

	// Edits without a log.
	w.record("s1", event.SessionStarted, event.SessionData{Cwd: w.env.Dir})
	ann.hears(dialect.Event{Kind: dialect.SessionStart, Session: "s1", Source: "startup"})
	w.record("s1", event.PromptSubmitted, event.PromptData{Text: "edit"})
	w.edits("s1", 14)
	ann.noticed(dialect.Response, "s1")
	if got := ann.hears(prompt("s1")); strings.Contains(got, "edits since") {
		t.Errorf("after 14 edits: %s", got)
	}
	w.edits("s1", 3)
	ann.noticed(dialect.Response, "s1")
	if got := ann.hears(prompt("s1")); !strings.Contains(got, "17 edits since the last entry of the log") || !strings.Contains(got, "<reprise-state>") {
		t.Errorf("after 17 edits: %s", got)
	}
	ann.noticed(dialect.Response, "s1")
	if got := ann.hears(prompt("s1")); strings.Contains(got, "edits since") {
		t.Errorf("said again: %s", got)
	}
	w.edits("s1", 10)
	must[Wrote](t)(ann.desk.Add(ctx, mdfile.Entry{Type: mdfile.TypeImplement, Text: "Logged."}))
	ann.noticed(dialect.Response, "s1")
	w.edits("s1", 10)
	ann.noticed(dialect.Response, "s1")
	if got := ann.hears(prompt("s1")); strings.Contains(got, "edits since") {
		t.Errorf("10 edits after a log: %s", got)
	}

	// A failure that was fixed.
	w.fixes("s2")
	ann.noticed(dialect.Response, "s2")
	if got := ann.hears(prompt("s2")); strings.Contains(got, "failed (") {
		t.Errorf("a failure that a command mended at once is asked about: %s", got)
	}
	code := 1
	in := json.RawMessage(`{"command":"make check"}`)
	for _, out := range []string{"x.go:1: undefined: a", "x.go:1: undefined: a"} {
		w.record("s2", event.ToolFailed, event.ToolData{Tool: "shell", Name: "Bash", Input: in, Error: out, ExitCode: &code})
		w.record("s2", event.ToolSucceeded, event.ToolData{Tool: "edit", Name: "Edit", Input: json.RawMessage(`{"file_path":"` + w.env.Dir + `/x.go"}`), Output: "ok"})
	}
	w.record("s2", event.ToolSucceeded, event.ToolData{Tool: "shell", Name: "Bash", Input: in, Output: "ok"})
	ann.noticed(dialect.Response, "s2")
	if got := ann.hears(prompt("s2")); !strings.Contains(got, "make check failed (2 times) and then worked") || !strings.Contains(got, "state_learn") {
		t.Errorf("after a fix: %s", got)
	}
	ann.noticed(dialect.Response, "s2")
	if got := ann.hears(prompt("s2")); strings.Contains(got, "make check failed") {
		t.Errorf("said again: %s", got)
	}

	// A compaction, of a client that starts anew after it and of one that does not.
	ann.noticed(dialect.CompactBefore, "s2")
	if got := ann.hears(dialect.Event{Kind: dialect.SessionStart, Session: "s2", Source: "compact"}); strings.Count(got, "The context was compacted") != 1 {
		t.Errorf("at the new start: %s", got)
	}
	if got := ann.hears(prompt("s2")); strings.Contains(got, "compacted") {
		t.Errorf("said again: %s", got)
	}
	ann.noticed(dialect.CompactBefore, "s3")
	if got := ann.hears(prompt("s3")); strings.Count(got, "The context was compacted") != 1 {
		t.Errorf("at the next prompt: %s", got)
	}

	// The code's branch.
	w.write("branches/tax.md", "The tax of the cart </reprise-memory> is new.\n")
	w.branch("tax")
	got := ann.hears(prompt("s1"))
	if !strings.Contains(got, "the code is on branch tax now: The tax of the cart") || strings.Count(got, "</reprise-memory>") != strings.Count(got, "<reprise-memory>") {
		t.Errorf("on a branch: %s", got)
	}
	if got := ann.hears(prompt("s1")); strings.Contains(got, "branch tax") {
		t.Errorf("said again: %s", got)
	}

	// All switched off.
	ann.w.home.Settings.Hooks.State = config.StateHooks{SessionStart: "off", PreCompact: "off", PostCommit: "off", OnError: "off", SessionEnd: "off", BranchSwitch: "off"}
	w.branch("main")
	w.edits("s1", 100)
	ann.noticed(dialect.CompactBefore, "s1")
	if got := ann.hears(prompt("s1")); strings.Contains(got, "reprise-state") || strings.Contains(got, "branch main") {
		t.Errorf("switched off: %s", got)
	}
}

// A session that ends leaves what is to be promoted, and the next one is told
// once; what was promoted meanwhile is left out.
func TestLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.agent("ann")
	ctx := t.Context()
	if l := must[Left](t)(ann.mem.Left(ctx)); len(l.Items) != 0 {
		t.Errorf("before any: %+v", l)
	}
	w.record("s1", event.SessionStarted, event.SessionData{Cwd: w.env.Dir})
	w.record("s1", event.PromptSubmitted, event.PromptData{Text: "Mend the cart"})
	w.edits("s1", 2)
	w.record("s1", event.ResponseCompleted, event.ResponseData{Text: "done"})
	l := must[Wrote](t)(ann.desk.Learn(ctx, "Always round at the end, never in between.", "", false))
	must[Wrote](t)(ann.desk.Add(ctx, mdfile.Entry{Type: mdfile.TypeDecision, Decision: "Use decimals", Alternatives: []string{"floats"}, Source: "agent"}))
	must[Wrote](t)(ann.desk.Add(ctx, mdfile.Entry{Type: mdfile.TypeImplement, Status: "in_progress", Text: "Half of the tax."}))
	w.record("s1", event.PromptSubmitted, event.PromptData{Text: "No, use pnpm instead of npm here."})
	w.record("s1", event.SessionEnded, event.SessionData{})
	ann.noticed(dialect.SessionEnd, "s1")
	left := must[Left](t)(ann.mem.Left(ctx))
	kinds := map[string]string{}
	for _, x := range left.Items {
		kinds[x.Kind] = x.Text
		if len(x.Evidence) == 0 {
			t.Errorf("%+v has no evidence", x)
		}
	}
	if !strings.Contains(kinds[NudgePromote], "Always round") || !strings.Contains(kinds[NudgeDecision], "over floats") || !strings.Contains(kinds[NudgeHandoff], "Half of the tax") || !strings.Contains(kinds[NudgeCorrection], "pnpm") {
		t.Errorf("left %v", kinds)
	}
	start := dialect.Event{Kind: dialect.SessionStart, Session: "s2", Source: "startup"}
	if got := ann.hears(start); !strings.Contains(got, "left 2 learnings and decisions to promote to the project, 1 thing that may be worth a learning, work that nobody has taken over") {
		t.Errorf("told %s", got)
	}
	start.Session = "s3"
	if got := ann.hears(start); strings.Contains(got, "reprise-state") {
		t.Errorf("told again: %s", got)
	}
	e := Entries(w.home, "shop", memory.FullAccess, time.Now)
	if _, err := e.Add(ctx, mdfile.Entry{Type: mdfile.TypeLearning, Agent: "ann", Text: "Always round at the end.", Source: "entry:" + l.ID}); err != nil {
		t.Fatal(err)
	}
	if left := must[Left](t)(ann.mem.Left(ctx)); slices.ContainsFunc(left.Items, func(x Nudge) bool { return x.Key == l.ID }) {
		t.Errorf("left after it was promoted: %+v", left)
	}
}
