package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"reprise/internal/clip"
	"reprise/internal/config"
	"reprise/internal/verify/done"
)

// Gate decides whether an agent may end its turn. It keeps nobody for more than
// MaxBlocks times a turn and five times that a session, and has no opinion
// whenever it cannot find out. A result says that, too; and where not even a check
// could begin in a tree that could be looked at when the session began, the agent is
// told once, for what is in the way may be its own.
type Gate struct {
	// Verifier are the options of the verifications; without checks only the
	// tasks are looked at.
	Verifier Options
	// When is at which ends something is looked at: "changed", "claimed" or
	// "always"; see config.Gates.
	When      string
	MaxBlocks int
	// Timeout bounds one look.
	Timeout time.Duration
	Wishes  []Wish
	// Off are gates that are not looked at.
	Off       []string
	Tasks     Tasks   // nil: there are none
	Reviews   Reviews // nil: nobody reviews
	Reviewers []Reviewer
}

// Turn is an end of a turn that a client told of.
type Turn struct {
	Client, Session, Run string
	// Subagent says that it is the end of a subagent, whose id Agent is.
	Subagent bool
	Agent    string
	Text     string // the last message
	// Active is the client's word that this turn goes on only because it was kept
	// from ending.
	Active bool
	// Prompt tells the user's last prompt from others, as by the id of its event; ""
	// where none is known.
	Prompt string
	// Busy says that other subagents of the session are still at work: the tree is
	// then not what anybody made of it.
	Busy bool
}

// Verdict is what the gate says.
type Verdict struct {
	Block  bool
	Reason string // for the agent, at most maxReason characters
	// Why is why nothing was looked at, or nothing is said.
	Why    string
	Result *Result // of the verification, where there was one
}

// Tasks knows what is being worked on.
type Tasks interface {
	// Current is the task that a session works on; ok is false where there is none.
	Current(ctx context.Context, session string) (t Task, ok bool, err error)
}

// Task is a piece of work with what it takes to be done. Without an ID it is the
// list that the agent itself keeps.
type Task struct {
	ID, Title string
	Criteria  []Criterion
	Open      []string // steps that are not done
}

// Criterion is one thing that must hold before a task is done.
type Criterion struct {
	Text string
	Met  bool
}

// sessionBlocks is how many times MaxBlocks a session is kept in all: a prompt
// that a program writes is a turn, too.
const sessionBlocks = 5

// Begin notes what the tree is before a session, or a subagent, does anything.
func (g *Gate) Begin(ctx context.Context, t Turn) error {
	v, err := g.tree(ctx)
	if err != nil {
		return err
	}
	l, err := v.tree.List(ctx, v.o.Env.Now())
	if err != nil {
		return err
	}
	b := baseline{Dir: v.tree.Top, Stamp: l.Stamp(), Settled: l.Settled, At: v.o.Env.Now().UTC()}
	if v.tree.Git {
		if b.Commit, err = v.tree.Head(ctx); err != nil {
			return err
		}
	}
	if err := g.Verifier.Store.sweepGates(g.Verifier.Env.Now()); err != nil {
		g.warn("old notes of sessions were not removed", err)
	}
	return g.Verifier.Store.change(ctx, t, func(s *gateState, how found) {
		if how == intact && s.Baseline != nil && !t.Subagent {
			return // the session goes on; it began before
		}
		s.Baseline = &b
	})
}

// tree is a verifier that need not have checks.
func (g *Gate) tree(ctx context.Context) (*Verifier, error) {
	o := g.Verifier
	if o.Checks == nil {
		o.Checks = &config.Verify{MaxMB: 2048}
	}
	return newVerifier(ctx, o)
}

func (g *Gate) warn(what string, err error) {
	if g.Verifier.Warn != nil {
		g.Verifier.Warn(what, err)
	}
}

func (g *Gate) on(gate string) bool { return !slices.Contains(g.Off, gate) }

// End looks whether the turn may end. Whatever goes wrong, the verdict lets it.
func (g *Gate) End(ctx context.Context, t Turn) (Verdict, error) {
	if g.Verifier.Env.Get(NestedVar) != "" {
		return Verdict{Why: "it runs inside a verification"}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	var st gateState
	var how found
	err := g.Verifier.Store.change(ctx, t, func(s *gateState, f found) {
		s.turn(t, f)
		st, how = *s, f
	})
	if err != nil {
		return g.unfound(ctx, t, "what is known of the session cannot be read", err)
	}
	if how != intact {
		g.warn("what was known of the session was "+string(how)+"; blocks are counted by the results that are there", fmt.Errorf("session %s", t.Session))
	}
	v, err := g.tree(ctx)
	if err != nil {
		return g.unfound(ctx, t, "the tree cannot be found", err)
	}
	claim, _ := done.Detect(t.Text)
	if why := g.spare(ctx, v, t, &st, claim); why != "" {
		return Verdict{Why: why}, nil
	}
	return g.look(ctx, v, t, st, how, claim)
}

// unfound leaves a result of a look that could not even begin.
func (g *Gate) unfound(ctx context.Context, t Turn, what string, err error) (Verdict, error) {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return Verdict{Why: what}, err // nobody waits any more
	}
	claim, _ := done.Detect(t.Text)
	v := &Verifier{o: g.Verifier.filled()}
	r := v.fresh(g.request(t, claim))
	r.Dir = v.o.Env.Dir
	if err != nil {
		what += ": " + err.Error()
	}
	r.failed(v.redact(what))
	return Verdict{Why: what, Result: r}, errors.Join(err, v.keep(ctx, r))
}

// Lapsed leaves a result of a turn that is not judged because the checks that the user
// approved are not what the project's file says any more; one for each such turn of a
// session in a row would say no more than the first.
func (g *Gate) Lapsed(ctx context.Context, t Turn, why string) error {
	if list, _, err := g.Verifier.Store.List(1); err == nil && len(list) == 1 && list[0].Session == t.Session && list[0].Unjudged() == why {
		return nil
	}
	_, err := g.unfound(ctx, t, why, nil)
	return err
}

// TellLapsed reports whether the session is to be told that, which is once for a text.
func (g *Gate) TellLapsed(ctx context.Context, t Turn) (tell bool, err error) {
	err = g.Verifier.Store.change(ctx, t, func(s *gateState, _ found) {
		tell, s.Lapsed = s.Lapsed != g.Verifier.Config, g.Verifier.Config
	})
	return tell, err
}

// spare is why there is no need to look, "" where there is.
func (g *Gate) spare(ctx context.Context, v *Verifier, t Turn, st *gateState, claim done.Claim) string {
	switch {
	case t.Busy:
		return "other subagents of the session are still at work; their end is looked at"
	case g.When == "claimed" && claim != done.Done:
		return "the agent does not say that it is done"
	case g.When == "changed" && claim == done.Open:
		return "the agent says itself that it is not done"
	}
	l, err := v.tree.List(ctx, v.o.Env.Now())
	if err != nil {
		return "" // a look that fails leaves a result
	}
	stamp := l.Stamp()
	if b := st.Baseline; b != nil && b.Dir == v.tree.Top && b.Settled && b.Stamp == stamp && g.When != "always" {
		return "nothing changed since the session began"
	}
	if !l.Settled || g.Verifier.Checks.Empty() {
		return ""
	}
	if r := g.green(ctx, v, t, st, stamp); r != nil && !g.open(ctx, t) {
		return "nothing changed since " + r.ID + " passed"
	}
	return ""
}

// green is a verification of the tree as it is that says all that a look would: it
// passed against the same base, or soundly, under a profile that covers the one of
// this change, and with the same gates. Without a look at what changed, one of less,
// a subagent's or the agent's own, would do for one of more.
func (g *Gate) green(ctx context.Context, v *Verifier, t Turn, st *gateState, stamp string) *Result {
	w := sought{dir: v.tree.Top, stamp: stamp, config: g.Verifier.Config, base: g.base(ctx, v, st), gates: g.looked(t)}
	w.excused = g.excuses(v, st, w.base)
	if w.base == "" && v.tree.Git {
		head, err := v.tree.Head(ctx)
		if err != nil {
			return nil
		}
		w.base = head
	}
	w.profile = config.VerifyProfiles()[0]
	if g.Verifier.Store.green(w) == nil {
		return nil // and there is no need to see what changed
	}
	plan, err := v.Explain(ctx, Request{Base: w.base, Wishes: g.Wishes}, v.o.Snapshots)
	if err != nil {
		return nil
	}
	w.profile = plan.Profile
	return g.Verifier.Store.green(w)
}

// base is the commit at which the session began, "" where that is not known.
func (g *Gate) base(ctx context.Context, v *Verifier, st *gateState) string {
	if b := st.Baseline; b != nil && b.Dir == v.tree.Top && v.tree.Has(ctx, b.Commit) {
		return b.Commit
	}
	return ""
}

// excuses reports whether a failure may be older than the session's work. Where the
// commit at which that began is not there any more, what is now HEAD may be that work.
func (g *Gate) excuses(v *Verifier, st *gateState, base string) bool {
	gone := base == "" && st.Baseline != nil && st.Baseline.Dir == v.tree.Top && st.Baseline.Commit != ""
	return g.on("regressions") && !gone
}

// BaseOf is the commit at which a session began, "" where that is not known.
func (g *Gate) BaseOf(ctx context.Context, t Turn) (base string, err error) {
	v, err := g.tree(ctx)
	if err != nil {
		return "", err
	}
	err = g.Verifier.Store.change(ctx, t, func(s *gateState, _ found) { base = g.base(ctx, v, s) })
	return base, err
}

// looked are the gates that cost something to look at: what they said of the very
// same change need not be asked again.
func (g *Gate) looked(t Turn) []string {
	if g.on("review") && !t.Subagent && g.Reviews != nil {
		return []string{"review"}
	}
	return nil
}

// Tell is what a verification after a failed tool found, for the session's agent:
// once, and only what is news. "" where there is nothing.
func (g *Gate) Tell(ctx context.Context, t Turn) (text string, err error) {
	list, _, err := g.Verifier.Store.List(5)
	if err != nil {
		return "", err
	}
	for _, r := range list {
		if r.Trigger != ToolFailure || r.Session != t.Session || r.Client != t.Client || g.Verifier.Env.Now().Sub(r.Started) > tellWithin {
			continue
		}
		err := g.Verifier.Store.change(ctx, t, func(s *gateState, _ found) {
			if s.Told == r.ID {
				return
			}
			s.Told = r.ID
			if r.Status == Failed {
				text = failureText(r)
			}
		})
		return text, err
	}
	return "", nil
}

// tellWithin is how old what is told after a failure may be.
const tellWithin = 10 * time.Minute

// open reports whether the current task keeps the turn open.
func (g *Gate) open(ctx context.Context, t Turn) bool {
	r := &Result{}
	g.tasks(ctx, t, r)
	return len(r.Issues) > 0
}

// request is what a look at the end of a turn asks.
func (g *Gate) request(t Turn, claim done.Claim) Request {
	req := Request{
		Trigger: Stop, Claim: string(claim), Session: t.Session, Client: t.Client, Run: t.Run, Agent: t.Agent, Wishes: g.Wishes,
		Regressions: g.on("regressions"), Reuse: true, NoChecks: !g.on("tests"), gates: g.looked(t),
	}
	if t.Subagent {
		req.Trigger = SubagentStop
	}
	return req
}

// look verifies, and decides.
func (g *Gate) look(ctx context.Context, v *Verifier, t Turn, st gateState, how found, claim done.Claim) (Verdict, error) {
	req := g.request(t, claim)
	req.Base = g.base(ctx, v, &st)
	lost := req.Regressions && !g.excuses(v, &st, req.Base)
	req.Regressions = req.Regressions && !lost
	// The checks run although the turn ends in any case: how it ended is for the user to
	// know, and work that was mended at last passes.
	req.Spent = st.Blocks >= g.MaxBlocks || st.Total >= sessionBlocks*g.MaxBlocks
	began := st.Baseline != nil && st.Baseline.Dir == v.tree.Top
	req.more = func(ctx context.Context, r *Result) {
		if lost && r.Status == Failed {
			r.Issues = append(r.Issues, Issue{Level: advisory, Gate: "regressions", Message: "the commit at which the session began is not there any more, so nothing is excused"})
		}
		if g.on("tasks") {
			g.tasks(ctx, t, r)
		}
		if len(g.looked(t)) > 0 && len(r.Blocking()) == 0 && r.Status == Passed && !slices.Contains(r.Gates, "review") {
			r.Gates = append(r.Gates, "review")
			g.review(ctx, v, r)
		}
	}
	var verdict Verdict
	req.decide = func(r *Result) {
		if len(r.Blocking()) == 0 && !(r.unseen && began) {
			return
		}
		verdict = g.decide(ctx, t, r, how)
	}
	r, err := v.Run(ctx, req)
	if errors.Is(err, ErrInterrupted) {
		return Verdict{Why: err.Error()}, err
	}
	verdict.Result = r
	if !verdict.Block && verdict.Why == "" {
		verdict.Why = "the verification " + r.ID + ": " + string(r.Status)
	}
	return verdict, err
}

// decide counts a block before it is said: a process that dies in between has
// blocked once less, and never once more.
func (g *Gate) decide(ctx context.Context, t Turn, r *Result, how found) Verdict {
	var v Verdict
	n, unseen := 0, r.Status == Error
	cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	err := g.Verifier.Store.change(cctx, t, func(s *gateState, again found) {
		switch {
		case t.Active && (how != intact || again != intact):
			v.Why = "the turn goes on because it was kept from ending, and how often that was is not known any more"
		case s.Blocks >= g.MaxBlocks:
			v.Why = fmt.Sprintf("the turn was kept from ending %s already", several(s.Blocks, "time"))
		case s.Total >= sessionBlocks*g.MaxBlocks:
			v.Why = fmt.Sprintf("the session was kept from ending a turn %s already", several(s.Total, "time"))
		case unseen && s.Unseen:
			v.Why = "the agent was told already that its work could not be looked at"
		default:
			s.Unseen = s.Unseen || unseen
			s.Blocks++
			s.Total++
			n = s.Blocks
			v.Block = true
		}
	})
	if err != nil {
		g.warn("a turn ends although its work is not done, for it could not be noted that it is kept", err)
		return Verdict{Why: "it could not be noted that the turn is kept from ending"}
	}
	if v.Block {
		if v.Reason = reasonOf(r, n, g.MaxBlocks); unseen {
			v.Reason = unseenText(r)
		}
		r.Blocked, r.Reason = true, v.Reason
	}
	return v
}

// tasks makes issues of what the current task still lacks.
func (g *Gate) tasks(ctx context.Context, t Turn, r *Result) {
	if g.Tasks == nil || !g.on("tasks") || t.Subagent {
		return
	}
	task, ok, err := g.Tasks.Current(ctx, t.Session)
	if err != nil {
		r.Issues = append(r.Issues, Issue{Level: advisory, Gate: "tasks", Message: "the current task cannot be read: " + err.Error()})
		return
	}
	if !ok {
		return
	}
	add := func(text string) {
		if task.ID != "" {
			text = "task " + task.ID + ": " + text
		}
		r.Issues = append(r.Issues, Issue{Level: blocking, Gate: "tasks", Message: text})
	}
	open := "open: "
	if task.ID == "" {
		open = "your own list has this open: "
	}
	for _, c := range task.Criteria {
		if !c.Met {
			add("acceptance criterion not met: " + c.Text)
		}
	}
	for _, o := range task.Open {
		add(open + o)
	}
}

// maxReason is how long what an agent is told may be, in characters: it becomes
// part of its context.
const maxReason = 1000

// reasonOf is what an agent is told that may not end yet: which check, the
// command, and the first lines that say what is wrong.
func reasonOf(r *Result, n, of int) string {
	return say(r, "reprise: the work is not done yet.", fmt.Sprintf("Mend it, then end your turn again; if it cannot be mended here, say why. All of it: reprise verify show %s (told %d of at most %s)", r.ID, n, several(of, "time")))
}

// unseenText is what an agent is told, once, whose work could not be looked at.
func unseenText(r *Result) string {
	return "reprise: the project's checks could not be run, so it is not known whether the work is done: " + clip.Runes(clip.Line(r.Unjudged()), 500) +
		"\nIf what is in the way is of your making, as a large file that nobody needs, take it away or have git ignore it. Then end your turn again, and say so if it is not. (told once)"
}

// failureText is what an agent is told of a verification that nobody waited for.
func failureText(r *Result) string {
	return say(r, "reprise ran the project's quick checks after the failed tool:", "All of it: reprise verify show "+r.ID)
}

func say(r *Result, head, tail string) string {
	var b strings.Builder
	room := maxReason - len([]rune(tail)) - 1
	add := func(line string) bool {
		line = clip.Runes(clip.Line(line), 200)
		if room -= utf8.RuneCountInString(line) + 1; room < 0 {
			return false
		}
		b.WriteString(line + "\n")
		return true
	}
	add(head)
	for i := range r.Checks {
		c := &r.Checks[i]
		if !c.blocking() {
			continue
		}
		is := Issue{Message: "failed"}
		if at := slices.IndexFunc(r.Issues, func(i Issue) bool { return i.Check == c.Name && i.Level == blocking }); at >= 0 {
			is = r.Issues[at]
		}
		if !add(fmt.Sprintf("Check %q: %s. Command: %s", c.Name, is.Message, c.Command)) {
			break
		}
		for _, l := range c.Lines {
			if !add("| " + l) {
				break
			}
		}
	}
	for _, is := range r.Blocking() {
		if is.Check == "" && !add("- "+is.Message) {
			break
		}
	}
	return b.String() + tail
}

// Review is what a reviewer says of the work.
type Review struct {
	// Verdict is "approve", "reject" or "unsure".
	Verdict  string
	Findings []string // what has to be mended, of a rejection
}

// ReviewRequest is what a reviewer is shown.
type ReviewRequest struct {
	Dir, Base, Profile string
	Risk               RiskSeen
	Diff               string // against the base, cut at maxDiff bytes
}

// maxDiff bounds what a reviewer reads, in bytes.
const maxDiff = 60 << 10

// Reviews asks a reviewer.
type Reviews interface {
	Review(ctx context.Context, who Reviewer, req ReviewRequest) (Review, error)
}

// review asks reviewers, the cheapest that is good enough first, and stronger
// ones where it is unsure or does not answer.
func (g *Gate) review(ctx context.Context, v *Verifier, r *Result) {
	diff, err := v.tree.Diff(ctx, r.Base, v.o.Snapshots, maxDiff)
	if err != nil {
		r.Issues = append(r.Issues, Issue{Level: advisory, Gate: "review", Message: "there is nothing to show to a reviewer: " + err.Error()})
		return
	}
	req := ReviewRequest{Dir: v.tree.Top, Base: r.Base, Profile: r.Profile, Risk: r.Risk, Diff: v.redact(diff)}
	for _, who := range ChooseReviewers(g.Reviewers, r.Profile, "") {
		a, err := g.Reviews.Review(ctx, who, req)
		switch {
		case err != nil:
			r.Issues = append(r.Issues, Issue{Level: advisory, Gate: "review", Message: who.Name + " did not review it: " + v.redact(err.Error())})
			if ctx.Err() != nil {
				return
			}
		case a.Verdict == "approve":
			return
		case a.Verdict == "reject":
			for _, f := range a.Findings {
				r.Issues = append(r.Issues, Issue{Level: blocking, Gate: "review", Message: who.Name + ": " + v.redact(f)})
			}
			if len(a.Findings) > 0 {
				return
			}
		default:
			r.Issues = append(r.Issues, Issue{Level: advisory, Gate: "review", Message: who.Name + " is unsure"})
		}
	}
}
