// Package verify tells whether work is done: it runs a project's checks on a
// snapshot of the tree, and decides whether an agent may end its turn.
//
// Files it owns, through package durable: <data>/projects/<name>/verify/ with
// <id>.json (a [Result] each, the newest hundred), <id>.begun (a verification at work, or
// one that was killed), base/ (how checks went at a commit) and gates/ (what is known of sessions, see [Gate]).
// Snapshots are package tree's, in <cache>/verify/. It takes run.lock there
// during a verification, and a session's lock in gates/ for moments; it takes no
// lock of another package while it holds one of these, but those of the event
// log. The checks themselves write where they like, except in the real tree:
// that is looked at before and after, and write-protected where the system can.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/proc/confine"
	"reprise/internal/verify/tree"
)

// Options are a verifier's world.
type Options struct {
	Env     config.Env // Dir is where the session works
	Project string
	Root    string // the project's root, whose settings these are
	// Checks are what the user approved; Config is a hash of that text.
	Checks *config.Verify
	Config string

	Store     Store
	Snapshots string // <cache>/verify
	Host      string
	Sandbox   string   // "auto", "off" or "required"
	DenyWrite []string // beside the tree, where checks must not write
	// Derived are directories of files that anybody may remove: those that changed while
	// a check ran are, for it may have changed them. Where they are, much else is made
	// that checks need, so that writing cannot be forbidden.
	Derived []string
	Outside []string // no part of the tree, should they lie in it
	// Programs, where it is set, are those that repositories may have git run.
	Programs *git.Programs
	// MaxWritten is how much a check may add to its snapshot, in bytes; 0 is 4 GiB.
	MaxWritten int64
	// Keep leaves the copy of the tree for the next verification, which then has
	// little to copy and finds what tools cached by path.
	Keep bool
	// Subreaper says that this process looks after nothing else and inherits what
	// checks leave behind.
	Subreaper bool
	Redact    func(string) string // takes secrets out
	// Record puts a result into the event log.
	Record func(context.Context, *Result) error
	// Warn is told what went wrong beside the result.
	Warn func(what string, err error)
	// Step is told each step before it is taken; for tests.
	Step func(string)
}

// Verifier verifies the work in one tree.
type Verifier struct {
	o    Options
	tree tree.Tree
	sub  string
	// unheld says that a check ran without the sandbox that there should have been.
	unheld bool
}

// ErrNoChecks says that a project defines no check.
var ErrNoChecks = errors.New("the project defines no checks: there is nothing under verify.profiles in its .reprise/project.yaml")

// ErrInterrupted says that a verification was ended from outside before it was through,
// as by a signal: it says nothing of the work, and no result of it is kept.
var ErrInterrupted = errors.New("the verification was interrupted")

// New finds the tree to verify.
func New(ctx context.Context, o Options) (*Verifier, error) {
	if o.Checks.Empty() {
		return nil, ErrNoChecks
	}
	return newVerifier(ctx, o)
}

func newVerifier(ctx context.Context, o Options) (*Verifier, error) {
	v := &Verifier{o: o.filled()}
	var err error
	v.tree, err = tree.Find(ctx, o.Env.Dir, o.Root, tree.Options{
		Vars: o.Env.Vars, Limits: tree.Limits{Bytes: int64(o.Checks.MaxMB) << 20}, Outside: append([]string{o.Snapshots}, o.Outside...), Programs: o.Programs,
	})
	if err != nil {
		return nil, err
	}
	v.sub = subOf(v.tree.Top, o.Root)
	return v, nil
}

// filled are the options with what need not be said.
func (o Options) filled() Options {
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	if o.Warn == nil {
		o.Warn = func(string, error) {}
	}
	if o.Step == nil {
		o.Step = func(string) {}
	}
	if o.MaxWritten == 0 {
		o.MaxWritten = 4 << 30
	}
	return o
}

// subOf is the project's root below the top of the tree, "" for the top itself.
// In a linked worktree it is where it is in the main checkout.
func subOf(top, root string) string {
	for _, t := range [...]string{top, config.GitMain(top)} {
		if t == "" {
			continue
		}
		if rel, err := filepath.Rel(t, root); err == nil && filepath.IsLocal(rel) && rel != "." {
			return filepath.ToSlash(rel)
		}
	}
	return ""
}

func (v *Verifier) redact(s string) string { return v.o.Redact(s) }

// Request is one verification.
type Request struct {
	Trigger string
	Claim   string
	Session string
	Client  string
	Run     string
	Agent   string
	Wishes  []Wish // for a profile, the first that is one counts
	Base    string // a commit to compare with; "" is HEAD
	// Regressions looks how what fails went at the base. Whether that excuses it is
	// said by [Request.excuses].
	Regressions bool
	// Reuse takes the answer of an earlier verification of the very same tree, if
	// that passed.
	Reuse bool
	// Spent says that nothing comes of a failure but that it is known: one that is known
	// of this very tree is not looked for again.
	Spent bool
	// NoChecks runs none: only what else there is to look at counts.
	NoChecks bool
	// gates must have been looked at in an earlier verification whose answer is taken.
	gates []string

	// more adds issues when the checks are through, decide says what comes of all
	// of them, before the result is saved.
	more   func(context.Context, *Result)
	decide func(*Result)
}

// excuses reports whether a failure that the base has, too, is held against nobody.
// That is for work which began somewhere: a session's, or what changed since a commit
// that was named. Whoever verifies without a base, or with nothing changed since, as
// in CI, asks whether the tree is sound, and it is not.
func (req Request) excuses(risk RiskSeen) bool {
	switch req.Trigger {
	case Stop, SubagentStop, ToolFailure:
		return req.Regressions
	}
	return req.Regressions && req.Base != "" && risk.Known && risk.Files > 0
}

// Plan is what a verification would do.
type Plan struct {
	Dir       string   `json:"dir"`
	Sub       string   `json:"sub,omitempty"`
	Base      string   `json:"base,omitempty"`
	Risk      RiskSeen `json:"risk"`
	Profile   string   `json:"profile"`
	Why       string   `json:"why"`
	Checks    []string `json:"checks"`
	Sandboxed bool     `json:"sandboxed"`
	// Problem is why the change could not be seen.
	Problem string `json:"problem,omitempty"`
}

// Explain says which profile a verification would use, and why. It runs no check.
func (v *Verifier) Explain(ctx context.Context, req Request, scratch string) (Plan, error) {
	p := Plan{Dir: v.tree.Top, Sub: v.sub, Sandboxed: !v.confinement(nil).Empty()}
	if v.tree.Git {
		c, err := v.tree.ChangeSince(ctx, req.Base, scratch)
		switch {
		case err == nil:
			p.Base, p.Risk = c.Commit, riskOf(v.o.Checks, c, v.sub)
		case ctx.Err() != nil || req.Base != "":
			return p, err
		default:
			p.Problem = err.Error()
		}
	} else if req.Base != "" {
		return p, errors.New("there is no git repository to take the base from")
	}
	p.Profile, p.Why = Choose(v.o.Checks, p.Risk, req.Wishes...)
	if p.Problem != "" {
		p.Why = strings.Replace(p.Why, nothingKnown, "what changed cannot be seen", 1)
	}
	for _, c := range v.o.Checks.ChecksOf(p.Profile) {
		p.Checks = append(p.Checks, c.Name)
	}
	return p, nil
}

// KnowsBase is an error where there is no such commit; "" is none.
func (v *Verifier) KnowsBase(ctx context.Context, base string) error {
	switch {
	case base == "":
		return nil
	case !v.tree.Git:
		return errors.New("there is no git repository to take the base from")
	case !v.tree.Has(ctx, base):
		return fmt.Errorf("there is no commit %q here", base)
	}
	return nil
}

// Run verifies. The result is saved and recorded, whatever it is, unless the verification
// was ended from outside: then the error is [ErrInterrupted], and there is no result. Any
// other error means that saving and recording could not be done; the result is then there,
// too.
func (v *Verifier) Run(ctx context.Context, req Request) (*Result, error) {
	r := v.fresh(req)
	err := v.verify(ctx, req, r)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return nil, errors.Join(interrupted(r, cause), v.o.Store.unmark(r.ID))
	}
	if err != nil {
		r.failed(v.redact(err.Error()))
		r.unseen = len(r.Checks) == 0 && ctx.Err() == nil
	}
	if req.more != nil {
		req.more(ctx, r)
		if len(r.Blocking()) > 0 {
			r.Status = Failed
		}
	}
	if req.decide != nil {
		req.decide(r)
	}
	r.DurationMS = v.o.Env.Now().Sub(r.Started).Milliseconds()
	if r.Stamp != "" && r.Status != Passed {
		r.Stamp = "" // it only serves to find what passed
	}
	r.nextSteps()
	v.o.Step("saving")
	return r, v.keep(ctx, r)
}

// fresh is a result that says nothing yet.
func (v *Verifier) fresh(req Request) *Result {
	now := v.o.Env.Now()
	return &Result{
		V: ResultVersion, ID: newID(now), Project: v.o.Project, Session: req.Session, Client: req.Client, Run: req.Run, Agent: req.Agent,
		Trigger: req.Trigger, Claim: req.Claim, Started: now.UTC(), Config: v.o.Config, Dir: v.tree.Top,
		Checks: []CheckResult{}, Issues: []Issue{}, Next: []string{},
	}
}

// failed notes why nothing could be found out.
func (r *Result) failed(why string) {
	r.Status = Error
	r.Issues = append(r.Issues, Issue{Level: advisory, Gate: "tests", Message: why})
}

// interrupted says what a verification was at when it was ended.
func interrupted(r *Result, cause error) error {
	at := "before a check ran"
	for _, c := range r.Checks {
		switch c.Status {
		case Skipped: // it had no turn
		case Error:
			at = "while the check " + c.Name + " ran"
		default:
			at = "after the check " + c.Name
		}
	}
	return fmt.Errorf("%w %s, so nothing is known of the work: %w", ErrInterrupted, at, cause)
}

// keep saves and records a result, although the time for checks may be over.
func (v *Verifier) keep(ctx context.Context, r *Result) error {
	err := v.o.Store.Save(r)
	if v.o.Record != nil {
		rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		err = errors.Join(err, v.o.Record(rctx, r))
	}
	return err
}

func (v *Verifier) verify(ctx context.Context, req Request, r *Result) error {
	if err := durable.MkdirAll(v.o.Snapshots, 0o700); err != nil {
		return err
	}
	if ids, err := tree.Sweep(ctx, v.o.Snapshots, v.o.Host, v.o.Env.Now()); err != nil {
		v.o.Warn("what a verification that was killed left behind could not all be removed", err)
	} else if len(ids) > 0 {
		v.o.Warn("swept what killed verifications left behind", errors.New(strings.Join(ids, ", ")))
	}
	plan, err := v.Explain(ctx, req, v.o.Snapshots)
	if err != nil {
		return err
	}
	r.Profile, r.Why, r.Risk, r.Base = plan.Profile, plan.Why, plan.Risk, plan.Base
	if req.NoChecks || v.o.Checks.Empty() {
		r.Status = Passed
		return nil
	}
	if abi, why := confine.Supported(); abi == 0 && v.o.Sandbox == "required" {
		return fmt.Errorf("gates.sandbox is \"required\", but there is no sandbox here: %s; with \"auto\" checks run without one", why)
	}
	if err := durable.MkdirAll(v.o.Store.Dir, 0o700); err != nil {
		return err
	}
	// Two sessions of a project check one after the other: the second may find
	// that the first has done its work.
	unlock, err := v.o.Store.Disk.Lock(ctx, filepath.Join(v.o.Store.Dir, "run.lock"))
	if err != nil {
		return fmt.Errorf("another verification of the project is at work: %w", err)
	}
	defer unlock() // an error of it ends with the process
	v.o.Step("locked")
	v.settleKilled(ctx)
	snap, err := v.snapshot(ctx, r.ID, "")
	if err != nil {
		return err
	}
	defer func() { v.release(snap, r) }()
	r.Tree = snap.Hash
	if snap.From.Settled {
		r.Stamp = snap.From.Stamp()
	}
	for _, n := range snap.Notes {
		r.Issues = append(r.Issues, Issue{Level: advisory, Gate: "tree", Message: v.redact("not in the snapshot: " + n)})
	}
	if out := v.leadOut(snap); out != "" {
		r.Issues = append(r.Issues, Issue{Level: advisory, Gate: "tree", Message: v.redact(out)})
	}
	excuses := req.excuses(r.Risk)
	if req.Reuse {
		w := sought{hash: r.Tree, config: r.Config, profile: r.Profile, base: r.Base, excused: excuses, gates: req.gates}
		old := v.o.Store.green(w)
		if old == nil && len(req.gates) > 0 {
			w.gates = nil // the checks need not run again
			old = v.o.Store.green(w)
		}
		if old != nil {
			r.Status, r.Reused = Passed, old.ID
			if old.Excused() != "" {
				r.Checks = old.Checks
			}
			if len(w.gates) > 0 {
				r.Gates = slices.Clone(w.gates)
			}
			return nil
		}
	}
	if req.Spent {
		if old := v.o.Store.red(sought{hash: r.Tree, config: r.Config, profile: r.Profile, base: r.Base}); old != nil {
			r.Status, r.Reused, r.Checks = Failed, cmp.Or(old.Reused, old.ID), old.Checks
			r.Issues = slices.DeleteFunc(slices.Clone(old.Issues), func(i Issue) bool { return i.Gate == "tasks" || i.Gate == "review" })
			return nil
		}
	}
	if err := v.o.Store.begin(r); err != nil {
		return err
	}
	before, marks := v.derived(), v.tree.Marks(snap.From)
	defer v.dropDerived(before)
	defer func() { v.sameRepository(r, marks, snap) }()
	if err := v.checks(ctx, r, snap); errors.Is(err, tree.ErrReplaced) {
		return nil // said, as a failure
	} else if err != nil {
		return err
	}
	// With nothing changed the base is this very tree.
	if req.Regressions && (excuses || r.Risk.Files > 0) {
		v.regressions(ctx, r, excuses)
	}
	v.sameTree(ctx, r, snap)
	v.notCarried(r, snap)
	r.settle()
	return nil
}

// release lets a snapshot go. It is kept only where everything that worked in it
// is known to have ended.
func (v *Verifier) release(snap *tree.Snapshot, r *Result) {
	let := snap.Remove
	if v.o.Keep && snap.Intact() == nil && !slices.ContainsFunc(r.Checks, func(c CheckResult) bool { return c.running }) {
		let = snap.Release
	}
	if err := let(); err != nil {
		v.o.Warn("a snapshot was not removed", err)
	}
}

func (v *Verifier) snapshot(ctx context.Context, id, commit string) (*tree.Snapshot, error) {
	slot := ""
	if v.o.Keep {
		slot = tree.SlotOf(v.tree.Top, v.o.Project, v.sub)
		if commit != "" {
			slot = tree.SlotOf(v.tree.Top, v.o.Project, v.sub, "base")
		}
	}
	return v.tree.Snapshot(ctx, tree.SnapshotOptions{
		Dir: v.o.Snapshots, ID: id, Slot: slot, Sub: v.sub, Host: v.o.Host, Now: v.o.Env.Now, Carry: v.o.Checks.Carry, Commit: commit,
		Step: func(s string) { v.o.Step("snapshot " + s) },
	})
}

// checks runs the profile's checks, one after the other, each on a tree that no
// other has changed.
func (v *Verifier) checks(ctx context.Context, r *Result, snap *tree.Snapshot) error {
	list := v.o.Checks.ChecksOf(r.Profile)
	for i, c := range list {
		if ctx.Err() != nil {
			for _, c := range list[i:] {
				r.Checks = append(r.Checks, CheckResult{Name: c.Name, Command: c.Command(), Level: levelOf(c), Status: Skipped, Problem: "the time was over before its turn came"})
			}
			return fmt.Errorf("the time for all checks was over: %w", context.Cause(ctx))
		}
		v.o.Step("check " + c.Name)
		res := v.check(ctx, c, snap, v.sub, r.ID)
		if err := snap.Intact(); err != nil {
			r.replaced(res, list[i+1:], err)
			return err
		}
		dirty, err := v.changes(ctx, snap, &res)
		r.Checks = append(r.Checks, res)
		switch {
		case ctx.Err() != nil:
			continue // said above
		case err != nil:
			return err
		case dirty && i < len(list)-1:
			if err := v.renew(ctx, snap, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// replaced notes the check that put something else in the place of its copy of the
// tree, and that none of the others runs: it would run there.
func (r *Result) replaced(res CheckResult, rest []config.Check, err error) {
	res.Status, res.Problem = Failed, strings.TrimPrefix(res.Problem+"; "+err.Error(), "; ")
	r.Checks = append(r.Checks, res)
	for _, c := range rest {
		r.Checks = append(r.Checks, CheckResult{Name: c.Name, Command: c.Command(), Level: levelOf(c), Status: Skipped, Problem: "a check before it replaced the directory that it would have run in"})
	}
	r.Status, r.Stamp = Failed, ""
	r.Issues = append(r.Issues, Issue{Level: blocking, Gate: "tree",
		Message: fmt.Sprintf("the check %s replaced the directory that it ran in, and checks must not reach any other: correct its command (%s)", res.Name, res.Command)})
}

// changes looks at what a check did to its snapshot.
func (v *Verifier) changes(ctx context.Context, snap *tree.Snapshot, res *CheckResult) (dirty bool, err error) {
	if ctx.Err() != nil {
		return false, nil
	}
	paths, all, err := snap.Changed(ctx, v.o.Env.Now())
	if err != nil {
		// It may have deleted the very directory.
		res.ChangedCount, res.Changed = 1, []string{"."}
		res.Problem = strings.TrimPrefix(res.Problem+"; it damaged its copy of the tree: "+v.redact(err.Error()), "; ")
		return true, nil
	}
	for i, p := range paths {
		paths[i] = strings.ToValidUTF8(p, "\uFFFD")
	}
	res.Changed, res.ChangedCount = paths, all
	return all > 0, nil
}

// renew makes a snapshot anew in the place of one that a check changed.
func (v *Verifier) renew(ctx context.Context, snap *tree.Snapshot, r *Result) error {
	v.release(snap, r)
	hash := snap.Hash
	fresh, err := v.snapshot(ctx, r.ID, "")
	if err != nil {
		return err
	}
	*snap = *fresh
	if snap.Hash != hash {
		return fmt.Errorf("the tree changed while it was checked, and a check changed its copy: %w", tree.ErrMoving)
	}
	return nil
}

// regressions looks how the checks that failed went at the base, and excuses those
// that failed there in the same way.
func (v *Verifier) regressions(ctx context.Context, r *Result, excuses bool) {
	if r.Base == "" || !slices.ContainsFunc(r.Checks, func(c CheckResult) bool { return c.blocking() }) {
		return
	}
	id := newID(v.o.Env.Now())
	var snap *tree.Snapshot
	defer func() {
		if snap != nil {
			if err := snap.Remove(); err != nil {
				v.o.Warn("a snapshot was not removed", err)
			}
		}
	}()
	for i, c := range v.o.Checks.ChecksOf(r.Profile) {
		res := &r.Checks[i]
		if !res.blocking() || ctx.Err() != nil {
			continue
		}
		key, err := baseKey(r.Base, v.sub, c, v.o.Checks)
		if err != nil {
			continue
		}
		was, known := v.o.Store.base(key, v.o.Env.Now())
		if !known {
			if snap == nil {
				v.o.Step("base")
				if snap, err = v.snapshot(ctx, id, r.Base); err != nil {
					v.o.Warn("how a check went at the base is not known", err)
					r.Issues = append(r.Issues, Issue{Level: advisory, Gate: "regressions", Message: v.redact("how it went at the base is not known, so nothing is excused: " + err.Error())})
					return
				}
			}
			b := v.check(ctx, c, snap, v.sub, id)
			if err := snap.Intact(); err != nil {
				v.o.Warn("how checks went at the base is not known: "+c.Name, err)
				return
			}
			if b.Status == Error {
				continue
			}
			was = atBase{V: atBaseVersion, At: v.o.Env.Now().UTC(), Commit: r.Base, Check: c.Name, Status: b.Status, Ended: b.ended(), Exit: b.Exit}
			if b.said != nil {
				b.said.atBase(&was)
			}
			if err := v.o.Store.saveBase(key, was); err != nil {
				v.o.Warn("how a check went at the base was not kept", err)
			}
		}
		res.AtBase = was.Status
		if was.Status == Failed {
			res.compare(&was, excuses, v.redact)
			if c := v.o.Checks.Carry; res.Excused && len(c) > 0 {
				res.carried = strings.Join(c, ", ")
			}
		}
	}
}

// compare says whether the check failed in the way in which it failed at the base. The
// exit code alone does not say that: most programs have one for everything.
func (c *CheckResult) compare(was *atBase, excuses bool, redact func(string) string) {
	if how := c.ended(); how != was.Ended || c.said == nil {
		c.differs = cmp.Or(how, "it ended by itself") + ", which it did not at the base"
		return
	}
	base := was.said()
	names, lines, why := c.said.news(base)
	if len(names)+len(lines) == 0 && why == "" && was.Exit > 0 && c.Exit > was.Exit && !c.said.named(base) {
		why = fmt.Sprintf("with exit code %d", was.Exit)
	}
	if c.New, c.differs = names, why; len(names) == 0 {
		c.New, c.byLine = shown(lines, redact), true
	}
	c.New = c.New[:min(len(c.New), keptNames)]
	c.Excused = excuses && len(c.New) == 0 && why == ""
}

// sameTree looks whether the real tree is what it was when it was copied.
func (v *Verifier) sameTree(ctx context.Context, r *Result, snap *tree.Snapshot) {
	l, err := v.tree.Again(ctx, v.o.Env.Now(), snap.From)
	if err != nil {
		v.o.Warn("the tree could not be looked at after the checks", err)
		r.Stamp = ""
		return
	}
	paths, all := tree.Differ(snap.From, l, 3)
	if all == 0 {
		return
	}
	r.Stamp = ""
	if hash, err := v.tree.Hash(ctx, l); err == nil && hash == snap.Hash {
		return
	}
	more := ""
	if all > len(paths) {
		more = fmt.Sprintf(" and %d more", all-len(paths))
	}
	r.Issues = append(r.Issues, Issue{Level: advisory, Gate: "tree", Message: strings.ToValidUTF8("the working tree changed while it was checked ("+strings.Join(paths, ", ")+more+"): the result is about how it was before", "\uFFFD")})
}

// sameRepository looks, where checks were not kept from it, whether they left something in the
// real repository: a hook or a setting there is run by git later, outside of any check.
func (v *Verifier) sameRepository(r *Result, before tree.Marks, snap *tree.Snapshot) {
	if !v.unheld && !v.confinement(nil).Empty() {
		return
	}
	list := before.Changed(v.tree.Marks(snap.From))
	if len(list) == 0 {
		return
	}
	more := ""
	if n := len(list); n > 5 {
		more, list = fmt.Sprintf(" and %d more", n-5), list[:5]
	}
	r.Issues = append(r.Issues, Issue{Level: advisory, Gate: "tree", Message: strings.ToValidUTF8("the real repository changed while checks ran that nothing kept from it: "+
		strings.Join(list, ", ")+more+"; unless that was you, look at it before you use git", "\uFFFD")})
}

// settle makes issues of the checks' results, and the status.
func (r *Result) settle() {
	r.Status = Passed
	for i := range r.Checks {
		c := &r.Checks[i]
		if n := c.ChangedCount; n > 0 {
			r.Issues = append(r.Issues, Issue{Level: advisory, Gate: "tree", Check: c.Name,
				Message: fmt.Sprintf("the check changes files of the tree that it runs in (%d, such as %s); the real tree was not touched", n, c.Changed[0])})
		}
		switch c.Status {
		case Failed:
			r.issueOf(c)
		case Error:
			r.Issues = append(r.Issues, Issue{Level: advisory, Gate: "tests", Check: c.Name, Message: "could not be run: " + c.Problem})
			if c.Level == levelRequired && r.Status != Failed {
				r.Status = Error
			}
		}
		if c.blocking() {
			r.Status = Failed
		}
	}
}

// issueOf is what a failed check comes to.
func (r *Result) issueOf(c *CheckResult) {
	is := Issue{Level: advisory, Gate: "tests", Check: c.Name}
	what := fmt.Sprintf("ended with exit code %d", c.Exit)
	if c.Problem != "" {
		what = c.Problem
	}
	switch {
	case c.blocking():
		is.Level = blocking
		if len(c.New) > 0 {
			is.Gate = "regressions"
			what = fmt.Sprintf("it failed at the base, too, but not in: %s", strings.Join(c.New[:min(3, len(c.New))], ", "))
			if c.byLine {
				what = fmt.Sprintf("it failed at the base, too, but did not say there: %s", strings.Join(c.New[:min(2, len(c.New))], " / "))
			}
		} else if c.differs != "" {
			what += "; it failed at the base, too, but " + c.differs
		} else if c.AtBase == Passed {
			is.Gate = "regressions"
			what += "; it passed at the base"
		} else if c.AtBase == Failed {
			what += "; it failed at the base, too"
		}
	case c.Excused:
		what += "; it failed at the base in the same way, so it is not held against this work"
		if c.carried != "" {
			what += " (with " + c.carried + " as now, for carry has no older one)"
		}
	default:
		what += "; it is advisory"
	}
	is.Message = what
	r.Issues = append(r.Issues, is)
}

// nextSteps are what to do about the issues.
func (r *Result) nextSteps() {
	for _, c := range r.Checks {
		switch {
		case c.blocking():
			r.Next = append(r.Next, "make it pass: "+c.Command)
		case c.Excused:
			r.Next = append(r.Next, "failed before this work, too: "+c.Command)
		case c.Status == Error && c.Problem != "":
			r.Next = append(r.Next, "see why the check "+c.Name+" cannot be run")
		}
	}
}

// Busy reports whether a verification of the project is at work.
func (v *Verifier) Busy() bool {
	busy, err := v.o.Store.Disk.IsLocked(filepath.Join(v.o.Store.Dir, "run.lock"))
	return err == nil && busy
}
