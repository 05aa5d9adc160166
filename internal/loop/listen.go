package loop

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"reprise/internal/loop/core"
	"reprise/internal/loop/report"
	"reprise/internal/loop/tell"
	"reprise/internal/queue"
)

// lookAgain is how often requests are looked for where the system tells nothing of
// new files, or might not.
const lookAgain = 30 * time.Second

// requests hears what people want: the files in requests/, and interrupt.txt, which may
// be made and removed by hand.
func (l *Loop) requests(ctx context.Context) {
	every := lookAgain
	var told <-chan fsnotify.Event
	watch := l.opt.Watch
	if watch == nil {
		watch = queue.WatchDirs
	}
	w, err := watch(l.opt.Dir, filepath.Join(l.opt.Dir, requestsDir))
	if err == nil {
		defer w.Close()
		told = w.Events
	} else {
		every = WatchEvery
		l.warn("watch the loop's directory", err)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	l.listen(ctx) // what came before the watching began
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			l.listen(ctx)
		case e, ok := <-told:
			if !ok {
				told = nil
				ticker.Reset(WatchEvery)
				continue
			}
			if filepath.Base(e.Name) == interruptFile || filepath.Base(filepath.Dir(e.Name)) == requestsDir && e.Has(fsnotify.Create) {
				l.listen(ctx)
			}
		}
	}
}

// listen looks once.
func (l *Loop) listen(ctx context.Context) {
	list, bad := l.store.take()
	for _, err := range bad {
		l.warn("requests", err)
	}
	for _, r := range list {
		l.obey(ctx, r)
	}
	made, removed, why := l.store.handmade(l.State().Phase == core.Waiting)
	switch {
	case made:
		l.send(ctx, core.Interrupted{Why: orElse(strings.TrimSpace(why), "a person has put "+interruptFile+" there")})
	case removed:
		l.tell("request", -1, interruptFile+" was removed, so it goes on without an answer")
		l.send(ctx, core.Resumed{NoAnswer: true})
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// obey does what a request asks for.
func (l *Loop) obey(ctx context.Context, r Request) {
	s := l.State()
	if r.Kind == "stop" && r.At.Before(l.called) {
		l.tell("request", -1, r.Kind+" is from before this loop began: dropped")
		return
	}
	if r.Loop != "" && r.Loop != s.Loop {
		if r.name != "" {
			l.try(ctx, "take a request away", func() error { return l.store.done(r.name) })
		}
		l.tell("request", -1, fmt.Sprintf("%s is for %s, which is over: dropped", r.Kind, r.Loop))
		return
	}
	if r.Kind == "resume" && r.name != "" && r.Answer == "" && len(r.Items) == 0 && r.More == nil && s.Interrupt == nil && (s.Phase == core.Draining || s.Phase == core.Stopping) {
		l.tell("request", -1, "resume is left for the next loop: this one is ending")
		return
	}
	l.enter("request", -1, strings.TrimSpace(r.Kind+" "+oneLine(r.Why+" "+r.Answer, 300)))
	switch r.Kind {
	case "interrupt":
		l.send(ctx, core.Interrupted{Why: orElse(r.Why, "a person wants to look")})
	case "pause":
		l.send(ctx, core.PauseAsked{})
	case "stop":
		l.send(ctx, core.StopAsked{Why: orElse(r.Why, "a person stopped it"), Drain: r.Drain})
	case "resume":
		l.send(ctx, core.Resumed{Answer: r.Answer, Items: r.Items, Number: r.Number, NoAnswer: r.NoAnswer, More: r.More, Request: r.name})
	default:
		l.tell("request", -1, fmt.Sprintf("%q is no request that a loop knows", oneLine(r.Kind, 40)))
	}
}

// unanswered says of a worker's item that it goes on without the answer that its session
// has asked for, "" where it does not: somebody may have put it back beside the loop.
func (l *Loop) unanswered(slot int) string {
	s := l.State()
	if slot < 0 || slot >= len(s.Slots) {
		return ""
	}
	if f := s.Slots[slot].From; f != nil && f.Number != 0 && f.Answer == "" && (f.Why == string(core.Asked) || f.Why == string(core.Reported)) {
		return "nobody has answered what it asked, and its session is told so: " + oneLine(f.Asked, 200)
	}
	return ""
}

// tell puts a line into the audit, and has people told of it in their words.
func (l *Loop) tell(op string, slot int, text string) {
	line := l.line(op, slot, text)
	l.put(line)
	l.show(line.Item, report.Words(op, text))
}

// tellOf is [Loop.tell] of an item, and no worker.
func (l *Loop) tellOf(op, item, text string) {
	l.put(Line{V: 1, At: l.opt.Now().UTC(), Loop: l.State().Loop, Op: op, Item: item, Text: text})
	l.show(item, report.Words(op, text))
}

// enter puts a line into the audit alone: people are told in another line, or need not be.
func (l *Loop) enter(op string, slot int, text string) { l.put(l.line(op, slot, text)) }

func (l *Loop) line(op string, slot int, text string) Line {
	s := l.State()
	line := Line{V: 1, At: l.opt.Now().UTC(), Loop: s.Loop, Op: op, Text: text, Worker: slot + 1}
	if slot >= 0 && slot < len(s.Slots) {
		p := &s.Slots[slot]
		line.Iteration, line.Item, line.Run = p.Iteration, p.Claim.Item.ID, p.Run
	}
	return line
}

func (l *Loop) put(line Line) {
	if err := l.store.add(context.Background(), line); err != nil {
		l.warn("write the loop's audit", err)
	}
}

// show tells who looks on, of an item or with "" of the loop.
func (l *Loop) show(item, text string) {
	if l.opt.Say != nil && text != "" {
		l.opt.Say(report.Line{At: l.opt.Now(), Item: item, Title: l.title(item), Text: text})
	}
}

// title is what an item is called, "" for one that is not known.
func (l *Loop) title(item string) string {
	l.mu.Lock()
	title, known := l.titles[item]
	l.mu.Unlock()
	if known || item == "" {
		return title
	}
	it, err := l.opt.Queue.Get(context.Background(), item)
	if err != nil {
		return ""
	}
	l.entitle(&it)
	return it.Title
}

// entitle remembers what an item is called, of which there are as many as the loop begins.
func (l *Loop) entitle(it *queue.Item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.titles[it.ID] = it.Title
}

// personText is what a person is told of an interrupt in a line, with what can be done.
func personText(kind, why, item string, m Metrics) string {
	text := core.KindWords(kind) + ": " + why
	switch {
	case item != "":
		return oneLine(text, 300) + " → " + core.AnswerTo(kind, item)
	case kind != core.ByAgent && kind != core.ByGate: // which are about items
		return oneLine(text, 300) + " → " + tell.GoOn(kind, m)
	}
	return text
}

// stillOpen tells at a loop's start what waited for a person before, as it was told then.
func (l *Loop) stillOpen(ctx context.Context) {
	s := l.State()
	list, err := Questions(ctx, l.opt.Dir, &s, l.opt.Queue)
	if err != nil {
		l.warn("look for questions that are open", err)
	}
	for _, q := range list {
		if q.Open() {
			l.tellOf("person", q.Item, personText(q.Kind, q.Why, q.Item, MetricsOf(s)))
		}
	}
	if i := s.Interrupt; s.Phase == core.Waiting && i != nil && len(i.Items) == 0 {
		l.tellOf("person", "", personText(i.Kind, i.Why, "", MetricsOf(s)))
	}
}

// raised tells of ceilings that a person has raised, what they are and what they were.
func (l *Loop) raised(e core.Event, were core.Limits) {
	if r, ok := e.(core.Resumed); !ok || r.More == nil {
		return
	}
	if changed := core.Differences(&core.State{Limits: were}, l.State().Limits, nil); len(changed) > 0 {
		l.tell("raised", -1, strings.Join(changed, ", "))
	}
}

// audit tells of an event, and of what was begun because of it. Progress is not told:
// it would be most of the file.
func (l *Loop) audit(e core.Event, before core.Phase, out []core.Action) {
	switch e := e.(type) {
	case core.Claimed:
		if e.Claim != nil {
			silent := l.unanswered(e.Slot)
			l.enter("claimed", e.Slot, join(fmt.Sprintf("under number %d", e.Claim.Fence), silent))
			l.show(e.Claim.Item.ID, silent)
		}
	case core.Prepared:
		if e.Err != "" {
			l.enter("workspace", e.Slot, "it has none: "+e.Err)
		}
	case core.Launched:
		if e.Class == core.None {
			l.enter("launched", e.Slot, e.Run)
			l.begun(e.Slot)
		} else {
			l.enter("launch failed", e.Slot, string(e.Class)+": "+e.Err)
		}
	case core.AgentAsks:
		l.enter("asks", e.Slot, e.Why)
	case core.Exited:
		o := e.Outcome
		l.enter("ended", e.Slot, strings.TrimSpace(fmt.Sprintf("completed %v, result %v, %s, changed %v, %s, %s %s", o.Completed, o.OK, plural(o.Turns, "turn"), o.Changed, l.costs(e.Slot, o), plural(int(o.Tokens), "token"), oneLine(failure(&core.Settle{Class: o.Class, Reason: o.Reason, Refusal: o.Refusal}), 400))))
	case core.Verified:
		l.enter("checked", e.Slot, strings.TrimSpace(string(e.Gate)+" "+oneLine(e.Text, 300)))
	case core.LeaseLost:
		if s := l.State(); e.Slot >= 0 && e.Slot < len(s.Slots) && s.Slots[e.Slot].Lost { // else it was settled meanwhile
			l.tell("lease lost", e.Slot, e.Why)
		}
	case core.Gone:
		if !l.State().Items[e.Item].Parked {
			l.tellOf("seen to", e.Item, e.What)
		}
	case core.Broken:
		if e.Most == 0 { // else it is told once for all
			l.putOff(e)
		}
	case core.Interrupted:
		l.enter("interrupt", -1, e.Why) // people are told with what can be done
	case core.Resumed:
		if !slices.ContainsFunc(out, func(a core.Action) bool { return a.Op == core.OpRefuse }) {
			l.tellOf("resumed", strings.Join(e.Items, ", "), howOn(&e))
		}
	case core.PauseAsked:
		l.tell("paused", -1, "")
	case core.StopAsked:
		l.tell("stop", -1, e.Why)
	}
	for _, a := range out {
		switch a.Op {
		case core.OpStop:
			l.tell("stopping", a.Slot, a.Text)
		case core.OpSettle, core.OpArchive:
			h := a.How
			if _, settled := e.(core.Settled); a.Op == core.OpArchive && (settled || h.Fate == core.Drop) {
				l.enter("settled", a.Slot, strings.TrimSpace(fmt.Sprintf("%s (completed %v, succeeded %v, verified %s) %s", h.Fate, h.Completed, h.Succeeded, orElse(string(h.Verified), "not looked at"), oneLine(failure(h), 320))))
			}
		case core.OpNotify:
			s := l.State()
			text := personText(a.Kind, a.Text, a.Item, MetricsOf(s))
			if a.Item == "" && s.Phase != core.Waiting && s.Limits.OnInterrupt == core.Skip { // no command would be taken
				text = oneLine(core.KindWords(a.Kind)+": "+a.Text, 300) + "; nobody is waited for"
			}
			l.tellOf("person", a.Item, text)
		case core.OpRefuse:
			if e, ok := e.(core.Resumed); ok {
				l.tellOf("refused", strings.Join(e.Items, ", "), fmt.Sprintf("the answer %q: %s", oneLine(e.Answer, 200), a.Text))
			}
		case core.OpFinish:
			l.tell("finished", -1, a.Text)
		}
	}
	if s := l.State(); s.Phase != before && s.Phase != core.Finished { // of its end is told above
		text, waits := strings.TrimSpace(string(s.Phase)+" "+s.Reason), ""
		if i := s.Interrupt; s.Phase == core.Waiting && i != nil && len(i.Items) > 0 && !i.Halt {
			waits = "; what else is ready waits with it (with --on-interrupt skip, or --unattended, the loop would go on with that)"
		}
		l.enter("phase", -1, text+waits)
		l.show("", report.Phase(s.Phase, s.Reason)+waits)
	}
}

// howOn is how what waited for a person goes on, in words: who was stopped has asked nothing.
func howOn(e *core.Resumed) string {
	switch {
	case e.Answer != "":
		return e.Answer
	case e.NoAnswer:
		return "without an answer"
	}
	return core.GoesOn
}

// costs are what a run has cost by its client, or as it is counted, in words.
func (l *Loop) costs(slot int, o core.Outcome) string {
	l.mu.Lock()
	if slot >= 0 && slot < len(l.s.Slots) {
		if p := l.s.Slots[slot].Outcome; p != nil && p.Run == o.Run {
			o = *p // with what the core has counted for it
		}
	}
	l.mu.Unlock()
	switch {
	case o.Estimated > 0:
		return fmt.Sprintf("%.2f USD at most (an estimate)", o.Estimated)
	case o.Untold:
		return "what it cost is not known"
	}
	return fmt.Sprintf("%.2f USD", o.Cost)
}

// putOff tells of what cannot be done and is tried again: people when that begins, and when it
// has gone on for half a minute. All the rest of the night would only be the same line.
func (l *Loop) putOff(e core.Broken) {
	switch l.tries(e.Slot) {
	case 1:
		l.tell("put off", e.Slot, e.Err)
	case ToldStuck:
		l.tell("put off", e.Slot, fmt.Sprintf("%s; it has failed %d times, and is tried on, every %s in the end, without a word", e.Err, ToldStuck, l.State().Limits.BackoffMax))
	default:
		l.enter("put off", e.Slot, e.Err)
	}
}

// begun tells people that a run of a worker's item was started.
func (l *Loop) begun(slot int) {
	s := l.State()
	if slot < 0 || slot >= len(s.Slots) {
		return
	}
	p := &s.Slots[slot]
	text := "begun"
	if f := p.From; f != nil && f.Fresh {
		text = "begun again"
	} else if f != nil {
		text = "gone on with"
	}
	l.show(p.Claim.Item.ID, text+" ("+p.Run+")")
}
