package hook

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/clip"
	"reprise/internal/event/quick"
	"reprise/internal/guard"
	"reprise/internal/hook/plan"
)

// AttendedVar says whether somebody is there to be asked, in a process that an
// unattended run starts: "0" is nobody. What a run's environment says can only
// tighten; see [Guarding].
const AttendedVar = "REPRISE_ATTENDED"

// AddDirsVar are the directories beside its own that a run was given, in its
// environment; package agent sets it.
const AddDirsVar = "REPRISE_ADD_DIRS"

// Guarding judges tool calls by rules.
type Guarding struct {
	Rules guard.Rules
	// Dir is where a call is taken to run whose payload does not say it.
	Dir string
	// Get is the environment that the client gave its hooks, which is that of its
	// tools.
	Get func(string) string
	// Broken is why the settings, or the project's file, cannot be read, "" where they
	// can. The rules are then those of before or the built-in ones, and what the user
	// forbids is not known: nothing is allowed.
	Broken string
	// Unsure has what is asked about looked at by somebody else: a judge, or the
	// queue for the user. nil: nobody.
	Unsure func(ctx context.Context, ev dialect.Event, v guard.Verdict) guard.Verdict
	// Secrets are the secrets that stand in a text, which goes by that name. nil: nobody
	// can tell, and nothing is repeated of a call that may hold one.
	Secrets func(name, text string) []string
}

// GuardBy is the guard by the rules of a plan. Without a plan, or with rules that
// cannot be read, it knows the session's directory, the home and what is built in.
func GuardBy(p *plan.Plan, dir, home string, get func(string) string) *Guarding {
	if p != nil {
		if rules, ok := guard.ParseLines(p.Rules.Guard); ok {
			return &Guarding{Rules: rules, Dir: dir, Get: get}
		}
	}
	return &Guarding{Rules: guard.Rules{Roots: []string{dir}, Home: home}, Dir: dir, Get: get}
}

// Nobody reports whether there is nobody to be asked.
func (g *Guarding) Nobody() bool { return g.unattended() }

// unattended reports whether there is nobody to be asked.
func (g *Guarding) unattended() bool {
	if g.Rules.Unattended {
		return true
	}
	return !g.Rules.Attended && (g.Get(RunVar) != "" || g.Get(AttendedVar) == "0")
}

// Judged is a verdict with what it comes to.
type Judged struct {
	Verdict  guard.Verdict
	Decision dialect.Decision // for the client
	// Said is the verdict as it counts: where nobody can be asked, asking is
	// refusing.
	Said guard.Decision
	// Noted says that verdicts are noted and not enforced: what was judged ran.
	Noted bool
	mask  mask
}

// Quiet reports whether the guard knows by itself, and not because the user's
// settings say so, that a call does nothing to be asked about: it reads, or it
// records what was done.
func (j *Judged) Quiet() bool {
	return j.Verdict.Decision == guard.Allow && !j.Verdict.Let
}

// Quiet is [Judged.Quiet] of a call that was made before. Nobody else is asked.
func (g *Guarding) Quiet(ev dialect.Event) bool {
	plain := *g
	plain.Unsure = nil
	j := plain.Judge(context.Background(), ev)
	return j.Quiet()
}

// Judge judges a call. An error of the guard's own is a refusal, or where
// somebody is there, a question.
func (g *Guarding) Judge(ctx context.Context, ev dialect.Event) (j Judged) {
	if g.Broken != "" && (g.Rules.Off || g.Rules.Warn) {
		// That is what the settings said before, which nobody can tell now.
		known := *g
		known.Rules.Off, known.Rules.Warn = false, false
		return known.Judge(ctx, ev)
	}
	if !Judges(ev.Kind) || g.Rules.Off {
		return Judged{Said: guard.None}
	}
	defer func() {
		if p := recover(); p != nil {
			j = g.Say(ev, guard.Verdict{Decision: guard.Ask, Rule: "guard-failed", Reason: "the guard failed at this call, so it cannot tell; please report this [guard-failed]"})
		}
	}()
	ws := g.workspace()
	if ws != "" {
		if why := guard.Gone(ws); why != "" {
			return g.Say(ev, guard.GoneVerdict(why))
		}
	}
	rules := g.Rules
	rules.Unattended = g.unattended()
	rules.Env = g.Get
	rules.Explain = ev.Kind == dialect.PermissionAsked // what is allowed there is recorded, and why
	if g.Get(RunVar) != "" {
		// Whoever started the run gave it these. The memory may be among them, for
		// reading: that nothing writes there is a rule of its own.
		rules.Roots = slices.Clone(rules.Roots)
		for _, d := range filepath.SplitList(g.Get(AddDirsVar)) {
			if filepath.IsAbs(d) {
				rules.Roots = append(rules.Roots, d)
			}
		}
	}
	if ws != "" {
		rules = rules.In(ws) // over what else it was given
	}
	call := guard.Call{Kind: ev.Tool, Name: ev.ToolName, Cwd: ev.Cwd}
	if call.Cwd == "" {
		call.Cwd = g.Dir
	}
	whole := ev.Texts(func(name, v string) { call.Texts = append(call.Texts, guard.Text{Name: name, Value: v}) })
	if ev.CutMark != "" && ev.Tool != "write" && ev.Tool != "edit" {
		for _, t := range call.Texts {
			whole = whole && !strings.Contains(t.Value, ev.CutMark)
		}
	}
	v := rules.Judge(call)
	if !whole && v.Decision != guard.Deny {
		v = guard.Verdict{Decision: guard.Ask, Rule: "too-much", Reason: "the tool's input is in no form that can be read whole [too-much]"}
	}
	if g.Broken != "" && v.Decision != guard.Deny {
		v = guard.Verdict{Decision: guard.Ask, Rule: "guard-failed", Reason: "which rules there are is not known, for " + g.Broken + " [guard-failed]"}
	}
	var m mask
	if v.Decision != guard.Allow || ev.Kind == dialect.PermissionAsked { // of which something is said
		m = g.mask(call.Texts)
		v = m.verdict(v)
	}
	if g.Unsure != nil && g.Broken == "" && v.Decision == guard.Ask && !rules.Warn {
		v = m.verdict(g.Unsure(ctx, ev, v))
	}
	j = g.Say(ev, v)
	j.mask = m
	return j
}

// Say is what a verdict comes to in the event's client.
func (g *Guarding) Say(ev dialect.Event, v guard.Verdict) Judged {
	j := Judged{Verdict: v, Said: v.Decision}
	reason := "reprise guard: " + v.Reason
	if v.Decision == guard.Ask && g.unattended() {
		j.Said = guard.Deny
		reason += ". Nobody is there to be asked, so it is refused."
	}
	if g.Rules.Warn {
		j.Noted = true
		return j
	}
	d := dialect.Decision{Reason: reason}
	switch {
	case j.Said == guard.Deny:
		d.Permission = dialect.Deny
	case ev.Kind == dialect.PermissionAsked && j.Said == guard.Allow:
		// The client asks, and it is known to be harmless.
		d = dialect.Decision{Permission: dialect.Allow}
	case ev.Kind == dialect.ToolBefore && j.Said == guard.Ask && ev.Caps()&dialect.CapAsk != 0 && ev.Permission != "bypassPermissions":
		d.Permission = dialect.Ask
	default:
		// Nothing is said: the client's own rules stay in force.
		d = dialect.Decision{}
	}
	j.Decision = d
	return j
}

// Longest is how long a call may wait for somebody who knows, whatever the settings
// say: below what the client waits for a hook.
func Longest(client, event string) time.Duration {
	return max(time.Duration(dialect.ClientMS(client, event))*time.Millisecond-5*time.Second, 0)
}

// Patience is how long a call may wait for somebody who knows, by the
// settings.
func (g *Guarding) Patience(ev dialect.Event) time.Duration {
	return min(Longest(ev.Client, ev.Name), max(time.Duration(g.Rules.WaitMS)*time.Millisecond, 0)+2*time.Second)
}

// workspace is the one that the session works in, "" for none. What its environment
// says comes first: that is where whoever started it put it.
func (g *Guarding) workspace() string {
	if g.Get != nil {
		if dir := g.Get(WorkspaceVar); filepath.IsAbs(dir) {
			return filepath.Clean(dir)
		}
	}
	return g.Rules.Workspace
}

// Failed is what is said of a call that could not even be read.
func (g *Guarding) Failed(ev dialect.Event, what string) Judged {
	if g.Rules.Off {
		return Judged{Said: guard.None}
	}
	if ws := g.workspace(); ws != "" {
		if why := guard.Gone(ws); why != "" { // which may be all that is wrong
			return g.Say(ev, guard.GoneVerdict(why))
		}
	}
	return g.Say(ev, guard.Verdict{Decision: guard.Ask, Rule: "guard-failed", Reason: what + ", so that it cannot be judged [guard-failed]"})
}

// Refusal answers a client's event that cannot be judged: silence would let the
// tool run. It is empty for events that ask for no verdict.
func (g *Guarding) Refusal(client, event, what string) []byte {
	ev := dialect.Event{Client: client, Name: event}
	if m := dialect.ManifestOf(client); m != nil {
		if s := m.Event(event); s != nil {
			ev.Kind = s.Kind
		}
	}
	if !Judges(ev.Kind) {
		return nil
	}
	return dialect.Encode(ev, g.Failed(ev, what).Decision).Stdout
}

// Line is the event that a verdict comes to: what is asked about or refused, and
// what would have been asked about and is allowed. It reports false where there is
// nothing to record.
func (j *Judged) Line(ev *dialect.Event, who Who) (quick.Event, bool) {
	if j.Said == guard.None || j.Said == "" || j.Said == guard.Allow && ev.Kind != dialect.PermissionAsked && j.Verdict.By == "" {
		return quick.Event{}, false
	}
	e := quick.Event{
		Project: who.Project, Session: ev.Session, Run: who.Run, Client: ev.Client, Agent: who.Agent, Role: who.Role,
		Type: "permission.decided",
	}
	if ev.ToolID != "" {
		e.Evidence = append(e.Evidence, "tool:"+ev.ToolID)
	}
	switch {
	case j.Said == guard.Deny && j.Noted:
		e.Outcome = "would be denied"
	case j.Said == guard.Deny:
		e.Outcome = "denied"
	case j.Said == guard.Allow:
		e.Outcome = "success"
	}
	d := newData()
	d.must("tool", ev.Tool)
	d.must("name", ev.ToolName)
	d.text("use_id", ev.ToolID)
	d.must("verdict", string(j.Said))
	by, instead := "guard", guard.None
	if j.Verdict.Decision != j.Said {
		instead = j.Verdict.Decision
	}
	if j.Verdict.By != "" {
		by, instead = j.Verdict.By, guard.Ask
	}
	if j.Noted {
		d.must("mode", "warn")
	}
	d.must("by", by)
	if instead != guard.None {
		d.must("instead_of", string(instead))
	}
	v := j.why()
	d.text("rule", v.Rule)
	d.text("word", v.Word)
	d.text("reason", v.Reason)
	commands := j.commands()
	if len(commands) == 0 && j.Said == guard.Allow && ev.Tool == "shell" {
		for _, c := range given(ev) {
			if c = j.mask.text(c); c != "" {
				commands = append(commands, c)
			}
		}
	}
	d.texts("commands", commands)
	d.text("cwd", ev.Cwd)
	e.Data = d.end()
	return e, true
}

// maxCommands is how many commands of a call are recorded with what was decided.
const maxCommands = 20

// commands are those of a call that a decision is about, each once: a command can be
// asked about for several reasons. Where all of it is allowed they are the ones that the
// settings let run.
func (j *Judged) commands() []string {
	var out []string
	for _, p := range j.Verdict.Parts {
		if (p.Decision != guard.Allow || j.Verdict.Decision == guard.Allow) && p.Command != "" && len(out) < maxCommands && !slices.Contains(out, p.Command) {
			out = append(out, p.Command)
		}
	}
	return out
}

// why is the verdict with its rule and its reason. Where a call is allowed because the
// settings let it, that is the first part of which they say so.
func (j *Judged) why() guard.Verdict {
	v := j.Verdict
	if v.Decision != guard.Allow || v.Rule != "" {
		return v
	}
	for _, p := range v.Parts {
		if p.Rule == "" {
			continue
		}
		v.Rule, v.Word = p.Rule, p.Word
		if v.Reason = p.Reason; p.From != "" {
			v.Reason += " (" + p.From + ")"
		} else if v.Reason != "" {
			v.Reason = "the settings let it: " + v.Reason
		}
		break
	}
	return v
}

// maxGiven bounds the text of a command that is recorded as it was given, in bytes.
const maxGiven = 500

// given is the command that a shell tool was given.
func given(ev *dialect.Event) []string {
	var words []string
	ev.Texts(func(name, value string) {
		switch way, _, _ := strings.Cut(name, "["); way {
		case "command", "cmd", "script":
			words = append(words, value)
		}
	})
	text := strings.Join(words, " ")
	if text == "" {
		return nil
	}
	return []string{clip.Bytes(text, maxGiven)}
}
