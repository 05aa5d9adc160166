// Package report makes the page of markdown that says what a loop has done, and has what it
// is made of: what each claim of an item came to, and what a person must decide.
//
// It owns no files and takes no locks.
package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/internal/loop/core"
	"reprise/internal/loop/outcome"
	"reprise/internal/loop/tell"
	"reprise/internal/mdfile"
	"reprise/internal/queue"
	"reprise/internal/term"
)

// Iteration is one line of iterations.jsonl, and iteration.json in the run's directory:
// what one claim of an item came to.
type Iteration struct {
	V         int       `json:"v"`
	Loop      string    `json:"loop"`
	N         int       `json:"iteration"`
	Worker    int       `json:"worker"`
	Item      string    `json:"item"`
	Title     string    `json:"title,omitempty"`
	Fence     int64     `json:"fence"`
	Run       string    `json:"run,omitempty"`
	Session   string    `json:"session,omitempty"`
	Resumed   string    `json:"resumed,omitempty"` // the run that it went on from
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended"`
	Seconds   float64   `json:"seconds"`
	Fate      core.Fate `json:"fate"`
	Class     string    `json:"class,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Completed bool      `json:"completed"`
	Succeeded bool      `json:"succeeded"`
	Verified  core.Gate `json:"verified,omitempty"`
	But       string    `json:"but,omitempty"` // checks that passed are worth less than that: which are not held against the work, and why
	Interrupt string    `json:"interrupt,omitempty"`
	// Refused is what the guard said of the first call of its run that it refused.
	Refused string `json:"refused,omitempty"`
	// Refusals is how many calls the guard refused; 0 in records of older programs.
	Refusals int `json:"refusals,omitempty"`
	// RefusedEarlier says that what was refused was so in an attempt before, and nothing in this one.
	RefusedEarlier bool `json:"refused_earlier,omitempty"`

	Turns     int     `json:"turns"`
	ToolCalls int     `json:"tool_calls"`
	CostUSD   float64 `json:"cost_usd"`
	// CostUnknown says that nobody has told what it cost, so that cost_usd says nothing.
	CostUnknown bool   `json:"cost_unknown,omitempty"`
	Tokens      int64  `json:"tokens"`
	Branch      string `json:"branch,omitempty"`
	Place       string `json:"place,omitempty"`
	Note        string `json:"note,omitempty"` // what was done with the work
	Put         Put    `json:"put,omitempty"`
	Into        string `json:"into,omitempty"` // branch that it is to be merged into, of what was not
	// Later says that this is no claim: work that was done before was merged.
	Later bool `json:"later,omitempty"`
	// Shared is what was changed meanwhile that all worktrees share, in words; "" is nothing.
	Shared string `json:"shared,omitempty"`
	// Changed says whether it changed anything in its place; null in records of older programs.
	Changed *bool  `json:"changed,omitempty"`
	Answer  string `json:"answer,omitempty"`
	// Transcript is the client's own file of the session, where there is one.
	Transcript string `json:"transcript,omitempty"`
	Summary    string `json:"summary,omitempty"` // the agent's last words, cut
	// On is who worked on it on another machine of the fleet; "" is this one. No loop writes it
	// down: it is made of what the servers have, as is Commit, which the work ends with.
	On     string `json:"on,omitempty"`
	Commit string `json:"commit,omitempty"`
}

// Put is where work that is done was put; "" is nowhere: it lies in its branch alone, or the
// record is of an older program.
type Put string

// Where work is put.
const (
	Merged  Put = "merged"  // into the branch that it began at
	Offered Put = "offered" // as a pull request
	Owed    Put = "owed"    // nowhere yet: it was to be merged, and could not be
	// Personal is nowhere yet, and for a person: it changes what holds for all work, or was pushed
	// and nobody could be asked to take it.
	Personal Put = "person"
)

// Night is what a loop has done, in a page of markdown for who comes in the morning:
// what needs a person first. said are the questions as package loop has them, with answers
// that no loop has read yet.
func Night(project string, s core.State, its []Iteration, said []Question, now Standing) string {
	var b strings.Builder
	m := tell.MetricsOf(s)
	fmt.Fprintf(&b, "# What the loop did for %s\n\n", project)
	phase := string(s.Phase)
	if !now.Running && s.Phase != core.Finished {
		phase = "not running: it was killed while it was " + phase
	}
	fmt.Fprintf(&b, "%s began %s, worked for %s and is %s%s. It began %d of at most %d attempts, and cost %.2f of at most %.2f USD and %s.\n",
		s.Loop, s.Began.Wall.Local().Format("2006-01-02 15:04"), term.Took(s.Worked), phase, because(s.Reason), m.Iterations, m.MaxIterations, m.CostUSD, m.MaxUSD, term.Plural(int(m.Tokens), "token"))
	fmt.Fprintf(&b, "\n| done | tried again | given up | times set aside | given back | lost |\n|---|---|---|---|---|---|\n| %d | %d | %d | %d | %d | %d |\n",
		m.Done, m.Failed, m.GivenUp, m.Parked, m.Released, m.Lost)
	if !now.Running && s.Phase != core.Finished {
		b.WriteString("\nNobody runs it: `reprise loop run` goes on with it.\n")
	}
	if now.Unsaved != "" {
		fmt.Fprintf(&b, "\nIt cannot go on: %s.\n", mdfile.EscapeCell(now.Unsaved))
	}
	if m.EstimatedUSD > 0 {
		fmt.Fprintf(&b, "\nOf the money, %s USD is an estimate: runs were ended before their client could say what they cost. They cost that at most, as far as can be known.\n", term.USD(m.EstimatedUSD))
	}
	if m.Untold > 0 {
		fmt.Fprintf(&b, "\nWhat %s cost is not known, and not in that sum: their client does not say it, or was ended before it could.\n", term.Plural(m.Untold, "attempt"))
	}
	b.WriteString(now.left())
	if s.Interrupt != nil {
		fmt.Fprintf(&b, "\n## It waits for a person\n\n%s: %s\n", core.KindWords(s.Interrupt.Kind), mdfile.EscapeCell(s.Interrupt.Why))
		if len(s.Interrupt.Items) == 0 || s.Interrupt.Halt {
			fmt.Fprintf(&b, "\nLet it go on with `%s`.\n", tell.GoOn(s.Interrupt.Kind, m))
		}
	}
	sections(&b, s, its, said, now)
	stay := headed("Not taken away")
	for _, line := range now.Staying {
		fmt.Fprintf(&b, "%s- %s\n", stay.once(), mdfile.EscapeCell(tell.OneLine(line, 400)))
	}
	return term.SafeText(b.String())
}

// Standing is how things stand beside what a loop has written down.
type Standing struct {
	Running bool                // a process runs the loop
	Unsaved string              // why what it has written down is from before, "" where it is not
	Queue   map[queue.State]int // how many items there are; nil is not known
	Unread  int                 // files of the queue that cannot be read
	// Title is what an item is called, "" where the queue has it no more; nil is not known.
	Title func(item string) string
	// State is where an item is, "" where the queue has it no more; nil is not known.
	State func(item string) queue.State
	// Unmerged has the branches that are not merged into what is checked out; nil is not known.
	Unmerged map[string]bool
	// Staying are the worktrees of items that are done and that are still there, a sentence each.
	Staying []string
	// Remote is where other machines of the fleet send what they make; "" is not known.
	Remote string
	// All are the iterations of all loops, for what lies in branches since an earlier one.
	All []Iteration
}

// all are the iterations of all loops, or those of a report where only they are known.
func (n Standing) all(its []Iteration) []Iteration {
	if n.All == nil {
		return its
	}
	return n.All
}

// became is what has become beside the loop of an item that it set aside, and whether no
// session will work on it again.
func (n Standing) became(item string) (what string, ended bool) {
	if n.State == nil {
		return "it is not set aside any more", false
	}
	switch n.State(item) {
	case "":
		return "the queue has it no more", true
	case queue.Dead:
		return "it was dropped", true
	case queue.Done:
		return "it was done beside the loop", true
	case queue.Blocked:
		return "a person has set it aside", false
	}
	return "it is not set aside any more", false
}

// left says what there is still to do.
func (n Standing) left() string {
	if n.Queue == nil {
		return ""
	}
	var parts []string
	for _, s := range []struct {
		state queue.State
		words string
	}{{queue.Ready, "ready"}, {queue.Claimed, "being worked on"}, {queue.Blocked, "blocked (set aside, or waiting for others)"}, {queue.Dead, "given up or dropped"}} {
		if k := n.Queue[s.state]; k > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k, s.words))
		}
	}
	if n.Unread > 0 {
		parts = append(parts, term.Plural(n.Unread, "file")+" that cannot be read (`reprise queue check`)")
	}
	if len(parts) == 0 {
		return "\nNothing is left in the queue.\n"
	}
	return "\nLeft in the queue: " + strings.Join(parts, ", ") + ".\n"
}

// Past is a report of iterations that loops have left, whichever these were.
// s is how the last one stands.
func Past(project string, s core.State, its []Iteration, said []Question, now Standing) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What the loop did for %s\n\n", project)
	if len(its) == 0 {
		b.WriteString("Nothing was worked on.\n")
		return b.String()
	}
	loops, away, cost, tokens, n := map[string]bool{}, map[string]bool{}, 0.0, int64(0), map[core.Fate]int{}
	first, last := its[0].Ended, its[0].Ended
	attempts, unknown := 0, 0
	for _, it := range its {
		if it.On != "" {
			away[it.On] = true
		} else {
			loops[it.Loop] = true
		}
		if it.Later {
			continue
		}
		attempts++
		cost, tokens = cost+it.CostUSD, tokens+it.Tokens
		if it.UnknownCost() {
			unknown++
		}
		n[it.Fate]++
		if it.Ended.Before(first) {
			first = it.Ended
		}
		if it.Ended.After(last) {
			last = it.Ended
		}
	}
	var who []string
	if len(loops) > 0 {
		who = append(who, term.Plural(len(loops), "loop"))
	}
	if len(away) > 0 {
		on := "on other machines "
		if len(who) == 0 {
			on = "On other machines "
		}
		who = append(who, on+strings.Join(slices.Sorted(maps.Keys(away)), ", "))
	}
	fmt.Fprintf(&b, "%s, from %s to %s: %s, %s and %s", strings.Join(who, "; "), first.Local().Format("2006-01-02 15:04"), last.Local().Format("2006-01-02 15:04"),
		term.Plural(attempts, "attempt"), fmt.Sprintf("%.2f USD", cost), term.Plural(int(tokens), "token"))
	if unknown > 0 {
		fmt.Fprintf(&b, ", and what %s cost, which is not known", term.Plural(unknown, "attempt"))
	}
	b.WriteString(".\n")
	fmt.Fprintf(&b, "\n| done | tried again | given up | times set aside | given back | lost |\n|---|---|---|---|---|---|\n| %d | %d | %d | %d | %d | %d |\n",
		n[core.Done], n[core.Retry], n[core.GiveUp], n[core.Park], n[core.Release], n[core.Drop])
	b.WriteString(now.left())
	sections(&b, s, its, said, now)
	return term.SafeText(b.String())
}

// heading is that of a section, which is there where the section has a line.
type heading struct{ text *string }

func headed(title string) heading {
	text := "\n## " + title + "\n\n"
	return heading{&text}
}

// once is the heading before the section's first line, and "" before the others.
func (h heading) once() string {
	text := *h.text
	*h.text = ""
	return text
}

// sections are the items by how they stand, each by the last that was done at it: what
// needs a person first.
func sections(b *strings.Builder, s core.State, its []Iteration, said []Question, now Standing) {
	last := map[string]Iteration{}
	for _, it := range its {
		last[it.Item] = it
	}
	part := func(head heading, want func(Iteration) bool, line func(Iteration) string) {
		var list []Iteration
		for _, it := range last {
			if want(it) {
				list = append(list, it)
			}
		}
		slices.SortFunc(list, func(a, b Iteration) int { return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.Item, b.Item)) })
		for _, it := range list {
			fmt.Fprintf(b, "%s- **%s** %s — %s\n", head.once(), it.Item, mdfile.EscapeCell(it.Title), line(it))
		}
	}
	section := func(title string, want func(Iteration) bool, line func(Iteration) string) {
		part(headed(title), want, line)
	}
	parked := func(it Iteration) string {
		why := tell.OneLine(it.Reason, 400)
		if it.Interrupt == core.ByGate {
			why = Gist(it.Reason)
		}
		return mdfile.EscapeCell(fmt.Sprintf("%s: %s (%s)", core.KindWords(cmp.Or(it.Interrupt, it.Class)), outcome.Join(why, it.refusal()), it.Run))
	}
	needs := headed("Needs a person")
	part(needs, func(it Iteration) bool {
		return it.Fate == core.Park && open(said, it) && !worked(&s, it)
	},
		func(it Iteration) string {
			return asks(it, parked(it))
		})
	alsoNeeded(b, needs, last, said, now)
	settled := headed("Decided, and not gone on with yet")
	part(settled, func(it Iteration) bool {
		return it.Fate == core.Park && decided(said, it) != nil && !worked(&s, it)
	},
		func(it Iteration) string {
			return parked(it) + "; " + decision(decided(said, it))
		})
	decidedBefore(b, settled, last, said)
	shared(b, its)
	working(b, &s, last, now)
	answered(b, s, its, said, now)
	section("Given up", func(it Iteration) bool { return it.Fate == core.GiveUp }, func(it Iteration) string {
		line := reason(&it)
		if it.Run != "" {
			line += " (" + it.Run + ")"
		}
		if it.On != "" {
			line += " (on " + it.On + ")"
		}
		if it.Branch != "" && it.Place != "" && it.made() {
			line += "; what it made stays in " + it.Place
		}
		return mdfile.EscapeCell(line)
	})
	section("Done", func(it Iteration) bool { return it.Fate == core.Done }, doneLine)
	b.WriteString(toMerge(Unmerged(now.all(its), now.Unmerged), cmp.Or(now.Remote, "origin")))
	beside := func(it Iteration, over bool) bool { // somebody has seen to it beside the loop
		_, ended := now.became(it.Item)
		return it.Fate == core.Park && decided(said, it) == nil && !open(said, it) && !worked(&s, it) && ended == over
	}
	seenTo := func(it Iteration) string {
		what, _ := now.became(it.Item)
		return parked(it) + "; " + what
	}
	section("Ended beside the loop", func(it Iteration) bool { return beside(it, true) }, seenTo)
	section("Not done yet", func(it Iteration) bool {
		switch it.Fate {
		case core.Retry, core.Release, core.Drop:
			return !worked(&s, it)
		}
		return beside(it, false)
	},
		func(it Iteration) string {
			if it.Fate == core.Park {
				return seenTo(it)
			}
			return mdfile.EscapeCell(fmt.Sprintf("%s, %s", it.Fate, outcome.Join(outcome.Classed(it.Class, tell.OneLine(it.Reason, 200)), it.refusal())))
		})
}

// asks is what a line says of an item that waits for a person, and how that is answered.
func asks(it Iteration, line string) string {
	// A question is read whole: what can be chosen from stands at its end.
	if asked := strings.TrimSpace(it.Reason); it.Interrupt != core.ByGate && tell.OneLine(asked, 400) != asked {
		line = mdfile.EscapeCell(fmt.Sprintf("%s (%s):", core.KindWords(cmp.Or(it.Interrupt, it.Class)), it.Run))
		for l := range strings.Lines(asked) {
			if l = strings.TrimSpace(l); l != "" {
				line += "\n  > " + mdfile.EscapeCell(l) + "  "
			}
		}
		line += "\n"
	}
	switch {
	case core.Wordless(it.Interrupt):
		line += "\n  Let it go on with `" + core.AnswerTo(it.Interrupt, it.Item) + "`."
	case it.Interrupt == core.ByGate:
		line += "\n  " + mdfile.EscapeCell(afterChecks(&it))
	default:
		line += "\n  Answer with `" + core.AnswerCommand(it.Item) + "`."
	}
	return line
}

// alsoNeeded are what else waits for a person: questions that an earlier loop has left, and
// work that only a person merges.
func alsoNeeded(b *strings.Builder, head heading, last map[string]Iteration, said []Question, now Standing) {
	for i := range said {
		q := &said[i]
		if it, here := last[q.Item]; !q.Open() || here && it.Fate == core.Park {
			continue
		}
		how, why := "Answer with `", tell.OneLine(q.Why, 400)
		switch {
		case core.Wordless(q.Kind):
			how = "Let it go on with `"
		case q.Kind == core.ByGate:
			why = Gist(q.Why)
		}
		fmt.Fprintf(b, "%s- **%s** %s — %s: %s\n  %s%s`.\n", head.once(), q.Item, mdfile.EscapeCell(q.Title), core.KindWords(q.Kind), mdfile.EscapeCell(why), how, q.Command())
	}
	byHand := func(it Iteration) {
		fmt.Fprintf(b, "%s- **%s** %s — its work is for a person to bring to where it belongs: %s\n", head.once(), it.Item, mdfile.EscapeCell(it.Title), mdfile.EscapeCell(tell.OneLine(it.Note, 400)))
	}
	for _, id := range slices.Sorted(maps.Keys(last)) {
		if it := last[id]; it.Fate == core.Done && it.Put == Personal {
			byHand(it)
		}
	}
	if now.Unmerged == nil {
		return // whether that of earlier loops is still to be done is not known
	}
	for _, it := range Unmerged(now.All, now.Unmerged) {
		if _, here := last[it.Item]; !here && it.Put == Personal {
			byHand(it)
		}
	}
}

// decision is what a person has said to a question, and what comes of it.
func decision(q *Question) string {
	what := "it goes on without an answer"
	if q.Answer != "" {
		what = "answered: " + tell.OneLine(q.Answer, 400)
	}
	return mdfile.EscapeCell(what) + "\n  The loop goes on with it; where none runs, `reprise loop run` does."
}

// decidedBefore are decided questions that an earlier loop has left.
func decidedBefore(b *strings.Builder, head heading, last map[string]Iteration, said []Question) {
	for i := range said {
		q := &said[i]
		if _, here := last[q.Item]; q.Open() || here {
			continue
		}
		fmt.Fprintf(b, "%s- **%s** %s — %s: %s; %s\n", head.once(), q.Item, mdfile.EscapeCell(q.Title), core.KindWords(q.Kind), mdfile.EscapeCell(tell.OneLine(q.Why, 400)), decision(q))
	}
}

// worked says that an item is being worked on again since an iteration of it ended.
func worked(s *core.State, it Iteration) bool {
	return slices.ContainsFunc(s.Slots, func(p core.Slot) bool {
		return p.Claim.Item.ID == it.Item && p.Claim.Fence != it.Fence && p.Claim.Fence != 0
	})
}

// working are the items that workers have.
func working(b *strings.Builder, s *core.State, last map[string]Iteration, now Standing) {
	head := headed("Being worked on")
	if !now.Running {
		head = headed("Was being worked on")
	}
	for i := range s.Slots {
		p := &s.Slots[i]
		if it, ended := last[p.Claim.Item.ID]; p.Claim.Fence == 0 || ended && it.Fence == p.Claim.Fence {
			continue
		}
		called := last[p.Claim.Item.ID].Title
		if called == "" && now.Title != nil { // the first time that it is worked on
			called = now.Title(p.Claim.Item.ID)
		}
		fmt.Fprintf(b, "%s- **%s** %s — %s\n", head.once(), p.Claim.Item.ID, mdfile.EscapeCell(called), strings.TrimSpace(string(p.Step)+" "+p.Run))
		if p.Trouble != "" {
			fmt.Fprintf(b, "  It cannot go on, and that is tried again: %s\n", mdfile.EscapeCell(tell.OneLine(p.Trouble, 300)))
		}
	}
}

// decided is the question that an iteration has left, where a person has decided it and no
// session has begun by that yet; nil otherwise.
func decided(said []Question, it Iteration) *Question {
	for i := range said {
		if q := &said[i]; q.Item == it.Item && !q.Open() && (q.Number == 0 || q.Number == it.Fence) {
			return q
		}
	}
	return nil
}

// open says that what an iteration has left still waits for a person.
func open(said []Question, it Iteration) bool {
	return slices.ContainsFunc(said, func(q Question) bool { return q.Item == it.Item && q.Open() })
}

// shared is what was changed, while items were worked on, that all worktrees share: nothing of it
// is undone, and a person may want to look.
func shared(b *strings.Builder, its []Iteration) {
	head := headed("Changed in the repository that all share")
	for _, it := range its {
		if it.Shared == "" {
			continue
		}
		fmt.Fprintf(b, "%s- **%s** %s — %s (%s)\n", head.once(), it.Item, mdfile.EscapeCell(it.Title), mdfile.EscapeCell(it.Shared), it.Run)
	}
}

// answered is what agents asked, and what a person said to it.
func answered(b *strings.Builder, s core.State, its []Iteration, questions []Question, now Standing) {
	its = slices.Clone(its)
	slices.SortStableFunc(its, func(a, b Iteration) int { return a.Ended.Compare(b.Ended) })
	head := headed("Asked and answered")
	for n, it := range its {
		if it.Interrupt != core.ByAgent {
			continue
		}
		said := "not answered yet"
		if !open(questions, it) {
			what, _ := now.became(it.Item)
			said = "not answered; " + what
		}
		if f := s.Items[it.Item].From; f != nil && f.Number == it.Fence && f.Answer != "" {
			said = "answered: " + tell.OneLine(f.Answer, 400)
		}
		if q := decided(questions, it); q != nil {
			said = "it goes on without an answer"
			if q.Answer != "" {
				said = "answered: " + tell.OneLine(q.Answer, 400)
			}
		}
		if next := slices.IndexFunc(its[n+1:], func(later Iteration) bool { return later.Item == it.Item && later.Run != "" }); next >= 0 {
			said = "it went on without an answer"
			if a := its[n+1+next].Answer; a != "" {
				said = "answered: " + tell.OneLine(a, 400)
			}
		}
		fmt.Fprintf(b, "%s- **%s** %s — %s\n", head.once(), it.Item, mdfile.EscapeCell(tell.OneLine(it.Reason, 400)), mdfile.EscapeCell(said))
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + mdfile.EscapeCell(tell.OneLine(reason, 300)) + ")"
}

func doneLine(it Iteration) string {
	if it.Later {
		return mdfile.EscapeCell("done before; " + it.Note)
	}
	var parts []string
	if it.On != "" {
		parts = append(parts, "on "+it.On)
	}
	if !it.untold() {
		cost := fmt.Sprintf("%.2f USD", it.CostUSD)
		if it.CostUnknown {
			cost = "cost not known"
		}
		parts = append(parts, fmt.Sprintf("%s, %s, %s", term.Took(time.Duration(it.Seconds*float64(time.Second))), term.Plural(it.Turns, "turn"), cost))
	}
	parts = append(parts, "checks: "+cmp.Or(string(it.Verified), "none")+it.but())
	if it.Branch != "" {
		parts = append(parts, "branch "+it.Branch)
	}
	if it.Commit != "" {
		parts = append(parts, "commit "+it.Commit[:min(12, len(it.Commit))])
	}
	if it.Note != "" {
		parts = append(parts, it.Note)
	}
	if said := it.refusal(); said != "" {
		parts = append(parts, said)
	}
	line := mdfile.EscapeCell(strings.Join(parts, "; "))
	if it.Summary != "" {
		line += "\n  " + mdfile.EscapeCell(tell.OneLine(it.Summary, 300))
	}
	return line
}

// Cost is what runs have cost, beside so many of which nobody has said it.
func Cost(usd float64, untold int) string {
	text := fmt.Sprintf("%.2f USD", usd)
	if untold > 0 {
		text += ", and what " + term.Plural(untold, "attempt") + " cost, which is not known"
	}
	return text
}

// UnknownCost says that nobody told what an attempt cost.
func (it *Iteration) UnknownCost() bool { return it.CostUnknown || it.untold() }

// untold says that nobody told anything of an attempt on another machine but how it ended.
func (it *Iteration) untold() bool {
	return it.On != "" && it.Started.IsZero() && it.Fate != core.Release // which without a run was not begun
}

// made says whether an iteration has made something that a person may want to look at.
func (it *Iteration) made() bool {
	if it.Changed != nil {
		return *it.Changed
	}
	return it.Class != string(core.NoChange)
}

// put is where the work is; older programs have it in the words of the note alone.
func (it *Iteration) put() Put {
	switch {
	case it.Put != "":
		return it.Put
	case strings.Contains(it.Note, "merged into "):
		return Merged
	case strings.Contains(it.Note, "://"): // of a pull request
		return Offered
	}
	return ""
}

// Unmerged are the last iterations of items that are done and whose work lies in branches of
// their own, in the order in which they were done. branches are those that are not merged into
// what is checked out, by which it is known what a person has merged, or taken away, and of
// work of other machines the commits that are not; nil is not known.
func Unmerged(its []Iteration, branches map[string]bool) (list []Iteration) {
	last := map[string]Iteration{}
	for _, it := range its {
		last[it.Item] = it
	}
	for _, it := range last {
		if put := it.put(); it.Fate == core.Done && it.Branch != "" && (put == "" || put == Owed || put == Personal) && (branches == nil || branches[it.named()]) {
			list = append(list, it)
		}
	}
	slices.SortFunc(list, func(a, b Iteration) int { return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.Item, b.Item)) })
	return list
}

// named is by what git knows the work: of another machine by the commit, for this repository
// may not have its branch.
func (it *Iteration) named() string {
	if it.On != "" {
		return it.Commit
	}
	return it.Branch
}

// OwedMerges are the last iterations of items that are done and whose work was to be merged and
// could not be, in the order in which they were done.
func OwedMerges(its []Iteration) []Iteration {
	return slices.DeleteFunc(Unmerged(its, nil), func(it Iteration) bool { return it.Put != Owed })
}

// toMerge says how work that lies in branches comes to where a person works. One that builds
// on another has that one's commits, and to merge both is to merge it.
func toMerge(list []Iteration, remote string) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nWhat is done is in branches, and nowhere else until it is merged:\n\n")
	var owed []string
	ready, fetched := false, false
	for _, it := range list {
		if it.On != "" {
			if !fetched {
				fmt.Fprintf(&b, "    git fetch %s\n", remote)
				fetched = true
			}
			fmt.Fprintf(&b, "    git merge %s/%s\n", remote, it.Branch)
			continue
		}
		if it.Put != Owed && it.Put != Personal {
			ready = true
			fmt.Fprintf(&b, "    git merge %s\n", it.Branch)
			continue
		}
		fmt.Fprintf(&b, "    %s, once what is said of it above is seen to\n", it.Branch) // why it was not merged
		if it.Put == Owed {
			owed = append(owed, it.Branch)
		}
	}
	if ready {
		b.WriteString("\nA loop that is run with `--integrate merge` does that after the checks with what it does itself, and with `--integrate pr` opens pull requests; these wait for you.\n")
	}
	if len(owed) > 0 {
		fmt.Fprintf(&b, "\nTo be merged, and could not be: %s. The next `reprise loop run --integrate merge` tries that again.\n", strings.Join(owed, ", "))
	}
	return b.String()
}

// afterChecks is what there is to do about an item whose checks failed too often.
func afterChecks(it *Iteration) string {
	text := ""
	if it.Place != "" {
		text = "What it made is in " + it.Place + ". "
	}
	if id := verification(it.Reason); id != "" {
		text += "`reprise verify show " + id + "` has all that was checked. "
	}
	return text + "Let the agent go on, told what to do, with `" + core.AnswerCommand(it.Item) + "`, mend it there yourself, or end it with `reprise queue drop " + it.Item + "`."
}
