package core

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata/stories.txt anew")

// story is what the core does with one event after the other, told in words: each event, the
// actions that come of it, and what it changed in the state.
type story struct {
	t   *testing.T
	s   State
	at  time.Duration
	run int
	out strings.Builder
}

// step lets time pass, gives the core an event, and tells of it.
func (y *story) step(after time.Duration, e Event) *story {
	y.t.Helper()
	y.at += after
	before := y.s.Clone()
	given, _ := json.Marshal(y.s)
	old := y.s
	var acts []Action
	y.s, acts = Apply(y.s, Time{Loop: y.at, Wall: epoch.Add(y.at)}, e)
	fmt.Fprintf(&y.out, "%v %s%s\n", y.at, strings.TrimPrefix(reflect.TypeOf(e).String(), "core."), fields(e))
	for _, a := range acts {
		fmt.Fprintf(&y.out, "  do %s%s\n", a.Op, fields(a, "Op", "Slot", "Seq"))
	}
	for _, d := range differences(before, y.s) {
		fmt.Fprintf(&y.out, "  %s\n", d)
	}
	if after, _ := json.Marshal(old); string(after) != string(given) {
		y.t.Errorf("%T changes the state that it was given:\n%s\n%s", e, given, after)
	}
	if why := unsaved(&before, &y.s); why != "" {
		y.t.Errorf("after %T: %s, and nothing says that the state must be written", e, why)
	}
	return y
}

// fields are those of a struct that are not zero, but for some.
func fields(x any, but ...string) string {
	var b strings.Builder
	v := reflect.ValueOf(x)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Field(i).IsZero() || slices.Contains(but, name) || name == "Seq" {
			continue
		}
		value := v.Field(i).Interface()
		switch c := value.(type) {
		case Claim:
			value = fmt.Sprintf("%s@%d", c.Item.ID, c.Fence)
		case *Claim:
			value = fmt.Sprintf("%s@%d", c.Item.ID, c.Fence)
		}
		data, err := json.Marshal(value)
		if err != nil {
			data = []byte(err.Error())
		}
		fmt.Fprintf(&b, " %s=%s", strings.ToLower(name), data)
	}
	return b.String()
}

// differences are the parts of a state that an event changed. Numbers of questions to the
// driver are left out, and so is the time.
func differences(before, after State) (out []string) {
	part := func(s State) map[string]any {
		s.Now, s.Seq, s.Rev = Time{}, 0, 0
		for i := range s.Slots {
			s.Slots[i].Seq = 0
		}
		data, _ := json.Marshal(s)
		m := map[string]any{}
		_ = json.Unmarshal(data, &m)
		return m
	}
	a, b := part(before), part(after)
	for _, name := range keys(a, b) {
		if was, ok := a[name].([]any); ok && name == "slots" {
			now, _ := b[name].([]any)
			for i := range max(len(was), len(now)) {
				if d := changed("", item(was, i), item(now, i)); d != "" {
					out = append(out, fmt.Sprintf("worker %d:%s", i+1, d))
				}
			}
		} else if d := changed(name, a[name], b[name]); d != "" {
			out = append(out, strings.TrimSpace(d))
		}
	}
	return out
}

func item(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

func keys(a, b map[string]any) (names []string) {
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// changed are the values below a name that differ, as they are now.
func changed(name string, a, b any) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	was, ok := a.(map[string]any)
	now, ok2 := b.(map[string]any)
	if ok && ok2 {
		out := ""
		for _, k := range keys(was, now) {
			out += changed(strings.TrimPrefix(name+"."+k, "."), was[k], now[k])
		}
		return out
	}
	data, _ := json.Marshal(b)
	return fmt.Sprintf(" %s=%s", name, data)
}

// unsaved is what an event changed of what a loop must know after it was killed, where the
// state does not say that it must be written; "" where it does.
func unsaved(before, after *State) string {
	if after.Rev != before.Rev {
		return ""
	}
	for what, same := range map[string]bool{
		"phase":      before.Phase == after.Phase && before.Reason == after.Reason,
		"limits":     before.Limits == after.Limits,
		"iterations": before.Iterations == after.Iterations && before.Tally == after.Tally,
		"interrupt":  reflect.DeepEqual(before.Interrupt, after.Interrupt) && before.Shown == after.Shown,
		"items":      reflect.DeepEqual(before.Items, after.Items),
		"requests":   slices.Equal(before.Heard, after.Heard),
		"unpark":     slices.Equal(before.Unpark, after.Unpark) && slices.Equal(before.Open, after.Open),
	} {
		if !same {
			return what
		}
	}
	for i := range after.Slots {
		b, a := before.Slots[i], after.Slots[i]
		if b.Step != a.Step || b.Seq != a.Seq || b.Run != a.Run || b.Stop != a.Stop || b.Lost != a.Lost || b.Answer != a.Answer ||
			b.Verified != a.Verified || !reflect.DeepEqual(b.Claim, a.Claim) || !reflect.DeepEqual(b.From, a.From) || !reflect.DeepEqual(b.Settle, a.Settle) {
			return fmt.Sprintf("worker %d", i)
		}
	}
	return ""
}

// answers to what the core asked a worker last.

func (y *story) claim(i int, id string) *story {
	y.t.Helper()
	y.run++
	c := Claim{Item: Item{ID: id}, Fence: int64(y.run), Token: fmt.Sprintf("%s@%d", id, y.run)}
	return y.step(time.Second, Claimed{Slot: i, Seq: y.s.Slots[i].Seq, Claim: &c})
}

func (y *story) none(i int, e Claimed) *story {
	y.t.Helper()
	e.Slot, e.Seq = i, y.s.Slots[i].Seq
	return y.step(time.Second, e)
}

func (y *story) prepared(i int) *story {
	y.t.Helper()
	return y.step(time.Second, Prepared{Slot: i, Seq: y.s.Slots[i].Seq})
}

func (y *story) launched(i int) *story {
	y.t.Helper()
	return y.step(time.Second, Launched{Slot: i, Seq: y.s.Slots[i].Seq, Run: fmt.Sprintf("run-%d", y.s.Slots[i].Claim.Fence)})
}

func (y *story) begun(i int, id string) *story {
	y.t.Helper()
	return y.claim(i, id).prepared(i).launched(i)
}

func (y *story) exited(i int, o Outcome) *story {
	y.t.Helper()
	p := y.s.Slots[i]
	o.Run = p.Run
	if o.Session == "" {
		o.Session = "session-" + p.Claim.Item.ID
	}
	return y.step(time.Minute, Exited{Slot: i, Run: p.Run, Outcome: o})
}

func (y *story) verified(i int, g Gate, text string) *story {
	y.t.Helper()
	return y.step(time.Second, Verified{Slot: i, Seq: y.s.Slots[i].Seq, Gate: g, Text: text})
}

func (y *story) settled(i int, e Settled) *story {
	y.t.Helper()
	e.Slot, e.Seq = i, y.s.Slots[i].Seq
	return y.step(time.Second, e)
}

func (y *story) archived(i int) *story {
	y.t.Helper()
	return y.step(time.Second, Archived{Slot: i, Seq: y.s.Slots[i].Seq})
}

func (y *story) over(i int) *story { y.t.Helper(); return y.settled(i, Settled{}).archived(i) }

func (y *story) asks(i int, why string) *story {
	y.t.Helper()
	return y.step(time.Minute, AgentAsks{Slot: i, Run: y.s.Slots[i].Run, Why: why}).exited(i, Outcome{Asks: why, Turns: 2, Changed: true, Resumable: true, Cost: 0.5, Tokens: 100}).over(i)
}

func (y *story) fails(i int, id string, o Outcome) *story {
	y.t.Helper()
	return y.begun(i, id).exited(i, o).over(i)
}

// wait is a tick when the state asks for one.
func (y *story) wait() *story {
	y.t.Helper()
	at, ok := y.s.Wake()
	if !ok {
		y.out.WriteString("  nothing is due\n")
		return y
	}
	return y.step(max(0, at-y.at), Tick{})
}

// next waits until the first worker asks for an item, or nothing is due.
func (y *story) next() *story {
	y.t.Helper()
	for y.s.Phase == Working && y.s.Slots[0].Step == Idle {
		if _, ok := y.s.Wake(); !ok {
			break
		}
		y.wait()
	}
	return y
}

func (y *story) unparked(id string) *story {
	y.t.Helper()
	return y.step(time.Second, Unparked{Item: id})
}

var (
	fine    = Outcome{Completed: true, OK: true, Turns: 3, Changed: true, Cost: 0.25, Tokens: 1000}
	died    = Outcome{Class: Crashed, Reason: "exit code 1", Turns: 1}
	told429 = Outcome{Class: RateLimited, Reason: "too many requests"}
)

// stories are nights of a few events each.
var stories = []struct {
	name string
	with func(l *Limits)
	tell func(y *story)
}{
	{"done, and the queue is empty", nil, func(y *story) {
		y.begun(0, "a").step(time.Second, Progress{Slot: 0, Run: "run-1", Cost: 0.1, Tokens: 300}).exited(0, fine).verified(0, GatePassed, "").over(0)
		y.wait().none(0, Claimed{NextIn: 10 * time.Second, Left: "1 item comes later"}).wait().none(0, Claimed{NextIn: time.Hour}).wait().none(0, Claimed{Empty: true})
	}},
	{"checks fail, once and twice, then a person lets it go on", nil, func(y *story) {
		y.begun(0, "a").exited(0, fine).verified(0, GateFailed, "TestX fails").over(0)
		y.wait().begun(0, "a").exited(0, fine).verified(0, GateFailed, "TestX fails").over(0)
		y.step(time.Hour, Tick{}).step(time.Minute, Resumed{Request: "1"}).step(0, Resumed{Request: "1"}).unparked("a")
		y.begun(0, "a").exited(0, fine).verified(0, GateNone, "").over(0)
	}},
	{"an agent asks, is answered, and answered again before it begins", nil, func(y *story) {
		y.begun(0, "a").asks(0, "which?")
		y.step(time.Hour, Resumed{Answer: "x", Number: 9}).step(0, Resumed{}).step(0, Resumed{Answer: "x", Items: []string{"a"}, Number: 7})
		y.step(time.Hour, Resumed{Answer: "first", Items: []string{"a"}, Number: 1, Request: "1"}).unparked("a").claim(0, "a")
		y.step(0, Resumed{Answer: "second", Items: []string{"a"}, Number: 1, Request: "2"}).prepared(0)
		y.step(0, Resumed{Answer: "third", Items: []string{"a"}, Number: 1}).launched(0).step(0, Resumed{Answer: "fourth", Items: []string{"a"}})
		y.exited(0, Outcome{Class: Crashed, Turns: 2, Resumable: true}).over(0)
	}},
	{"two ask, one is answered, the loop waits for the other in the end", func(l *Limits) { l.Workers = 2 }, func(y *story) {
		y.begun(0, "a").begun(1, "b").asks(0, "which a?").asks(1, "which b?")
		y.step(time.Hour, Resumed{Answer: "x"}).step(0, Resumed{Answer: "x", Items: []string{"b"}, Number: 2}).unparked("b")
		y.begun(0, "b").exited(0, fine).verified(0, GateNone, "").over(0).wait().none(0, Claimed{Empty: true}).none(1, Claimed{Empty: true})
		y.step(time.Hour, Resumed{NoAnswer: true}).unparked("a")
	}},
	{"an agent asks, and the rest goes on", func(l *Limits) { l.OnInterrupt = Skip }, func(y *story) {
		y.begun(0, "a").asks(0, "which?").wait().begun(0, "b").exited(0, fine).verified(0, GateNone, "").over(0)
		y.step(0, Resumed{}).step(0, Resumed{Answer: "x"}).step(0, Broken{Slot: -1, Err: "disk full"}).wait().unparked("a").wait().none(0, Claimed{Empty: true})
	}},
	{"an answer that comes late does not let go on what waits for another", func(l *Limits) { l.Workers = 2 }, func(y *story) {
		y.begun(0, "a").begun(1, "b").asks(0, "which a?").asks(1, "which b?").step(0, Resumed{Answer: "x", Items: []string{"a"}})
		y.step(0, Interrupted{Why: "look"}).step(0, Resumed{Answer: "late", Items: []string{"a"}})
	}},
	{"an answer reaches its item alone, of those that are being prepared", func(l *Limits) { l.Workers = 2 }, func(y *story) {
		y.begun(0, "a").begun(1, "b").asks(0, "which a?").asks(1, "which b?").step(0, Resumed{NoAnswer: true}).unparked("a").unparked("b")
		y.step(time.Minute, Tick{}).claim(0, "a").claim(1, "b").step(0, Resumed{Answer: "x", Items: []string{"b"}}).prepared(0).prepared(1)
	}},
	{"an answer to an agent is none to those that a person has stopped", func(l *Limits) { l.Workers = 2 }, func(y *story) {
		y.begun(0, "a").begun(1, "b").asks(0, "which?").step(0, Interrupted{Why: "look"}).step(0, Resumed{Answer: "x", Items: []string{"a"}})
		y.exited(1, Outcome{Turns: 1, Class: Cancelled, Resumable: true}).over(1)
	}},
	{"what was set aside before is not meant by who answers what the loop waits for", nil, func(y *story) {
		y.s.Items["old"] = Memory{Parked: true, Kind: ByAgent, Asked: "old?", Number: 77, From: &Continuation{Run: "run-0", Session: "s"}}
		y.begun(0, "a").asks(0, "which?").step(0, Resumed{Answer: "x"}).unparked("a").step(0, StopAsked{Why: "enough", Drain: true}).step(0, Resumed{NoAnswer: true})
	}},
	{"silence lets go on what the loop waits for, and not what was set aside before", nil, func(y *story) {
		y.s.Items["old"] = Memory{Parked: true, Kind: ByGate, Asked: "TestY fails", Number: 77}
		y.begun(0, "a").exited(0, Outcome{Class: BudgetUsed, Reason: "10 USD", Turns: 5, Cost: 10, Resumable: true}).over(0).step(0, Resumed{})
	}},
	{"an agent asks, and takes its question back", nil, func(y *story) {
		y.begun(0, "a").step(time.Minute, AgentAsks{Slot: 0, Run: "run-1", Why: "which?"}).exited(0, Outcome{Turns: 2, Resumable: true}).over(0)
	}},
	{"a result with words of its own, and one of a kind that nobody knows", nil, func(y *story) {
		y.fails(0, "a", Outcome{Completed: true, Turns: 2, Reason: "it says that it has not done it"}).next().fails(0, "b", Outcome{Class: "odd", Completed: true, OK: true, Turns: 2, Changed: true, Reason: "what is this"})
	}},
	{"a person has to look at the repository, and has", func(l *Limits) { l.Workers = 2 }, func(y *story) {
		y.claim(0, "a").claim(1, "b").step(0, Prepared{Slot: 0, Seq: y.s.Slots[0].Seq, Held: "look at filter.x"}).step(0, Prepared{Slot: 1, Seq: y.s.Slots[1].Seq, Held: "look at filter.x"})
		y.over(0).over(1).wait().step(time.Hour, Cleared{Kind: ByRepo}).begun(0, "a")
	}},
	{"a person has to look at the repository, and nobody is there", func(l *Limits) { l.OnInterrupt = Skip }, func(y *story) {
		y.claim(0, "a").step(0, Prepared{Slot: 0, Seq: y.s.Slots[0].Seq, Held: "look at filter.x"}).over(0)
	}},
	{"each step has patience of its own", nil, func(y *story) {
		y.begun(0, "a").exited(0, fine)
		for range 3 {
			y.step(0, Broken{Slot: 0, Seq: y.s.Slots[0].Seq, Err: "disk full"}).wait()
		}
		y.verified(0, GatePassed, "").step(0, Broken{Slot: 0, Seq: y.s.Slots[0].Seq, Err: "disk full"}).wait()
		y.step(0, Broken{Slot: 0, Seq: y.s.Slots[0].Seq, Err: "disk full"}).wait().settled(0, Settled{})
		y.step(0, Broken{Slot: 0, Seq: y.s.Slots[0].Seq, Err: "disk full"}).wait()
	}},
	{"starts that fail in a row are counted, and no others", func(l *Limits) { l.MaxIdentical = 2 }, func(y *story) {
		taken := func() {
			y.claim(0, "a").step(0, Prepared{Slot: 0, Seq: y.s.Slots[0].Seq, Err: "taken"}).over(0).next()
		}
		taken()
		y.fails(0, "a", told429).next()
		taken()
		y.fails(0, "a", Outcome{Class: Crashed, Turns: 1}).next()
		taken()
		y.step(0, PauseAsked{}).step(0, Resumed{})
		taken()
	}},
	{"a success ends backoff, and no rate limit with a time", func(l *Limits) { l.Workers = 3 }, func(y *story) {
		y.begun(0, "a").begun(1, "b").begun(2, "c").exited(0, Outcome{Class: APIError, Reason: "529"}).over(0).exited(1, fine).verified(1, GateNone, "").over(1).step(0, Tick{})
		named := told429
		named.Reset = epoch.Add(2 * time.Hour)
		y.claim(0, "a").prepared(0).launched(0).exited(0, named).over(0).exited(2, fine).verified(2, GateNone, "").over(2).wait().wait()
	}},
	{"a person interrupts while a run is being started", nil, func(y *story) {
		y.claim(0, "a").prepared(0).step(0, Interrupted{Why: "look"}).launched(0)
	}},
	{"the first reason for stopping a run stays", nil, func(y *story) {
		y.begun(0, "a").step(time.Minute, AgentAsks{Slot: 0, Run: "run-1", Why: "which?"}).step(0, LeaseLost{Slot: 0, Item: "a", Fence: 1}).step(0, StopAsked{Why: "enough"})
	}},
	{"answered before everything of it is kept", nil, func(y *story) {
		y.begun(0, "a").exited(0, Outcome{Asks: "which?", Turns: 2, Resumable: true}).settled(0, Settled{}).step(0, Resumed{Answer: "x", Items: []string{"a"}, Number: 1}).archived(0)
	}},
	{"nobody is there, and nothing could go on: not logged in", func(l *Limits) { l.OnInterrupt, l.Workers = Skip, 2 }, func(y *story) {
		y.begun(0, "a").fails(1, "b", Outcome{Class: AuthFailed, Reason: "log in"}).exited(0, fine).verified(0, GateNone, "").over(0)
	}},
	{"nobody is there, and the money is used up", func(l *Limits) { l.OnInterrupt, l.MaxUSD = Skip, 10 }, func(y *story) {
		y.begun(0, "a").exited(0, Outcome{Completed: true, OK: true, Turns: 3, Changed: true, Cost: 9.9}).verified(0, GateNone, "").over(0).wait()
	}},
	{"paused, with something set aside", func(l *Limits) { l.OnInterrupt = Skip }, func(y *story) {
		y.begun(0, "a").exited(0, Outcome{Class: Cancelled, Turns: 1, Resumable: true}).over(0).next().begun(0, "b").asks(0, "which?")
		y.step(0, PauseAsked{}).step(0, Resumed{}).step(0, Resumed{}).unparked("a").step(0, Resumed{Items: []string{"b"}})
	}},
	{"set aside without ever having run, and answered twice", func(l *Limits) { l.OnInterrupt, l.MaxFailing = Skip, 2 }, func(y *story) {
		for range 2 {
			y.claim(0, "a").step(0, Prepared{Slot: 0, Seq: y.s.Slots[0].Seq, Err: "taken"}).over(0).next()
		}
		y.step(0, Resumed{Answer: "try there", Items: []string{"a"}}).unparked("a").next()
		for range 2 {
			y.claim(0, "a").step(0, Prepared{Slot: 0, Seq: y.s.Slots[0].Seq, Err: "taken"}).over(0).next()
		}
		y.step(0, Resumed{Answer: "or here", Items: []string{"a"}})
	}},
	{"put back beside the loop", func(l *Limits) { l.OnInterrupt = Skip }, func(y *story) {
		y.begun(0, "a").asks(0, "which?").step(0, Resumed{NoAnswer: true, Items: []string{"b"}}).next().claim(0, "a").prepared(0)
	}},
	{"an answer that no session was told outlives a claim that is lost", nil, func(y *story) {
		y.begun(0, "a").asks(0, "which?").step(0, Resumed{Answer: "x", Items: []string{"a"}}).unparked("a").next().claim(0, "a").step(0, LeaseLost{Slot: 0, Item: "a", Fence: 2}).prepared(0).archived(0)
		y.next().claim(0, "a").prepared(0).launched(0).step(0, LeaseLost{Slot: 0, Item: "a", Fence: 3}).exited(0, Outcome{Turns: 1}).archived(0)
	}},
	{"what is done lets who found nothing look again", func(l *Limits) { l.Workers = 2 }, func(y *story) {
		y.begun(0, "a").none(1, Claimed{Left: "1 item waits for a"}).exited(0, fine).verified(0, GateNone, "").over(0)
	}},
	{"a person interrupts, and answers before and after the runs have stopped", func(l *Limits) { l.Workers = 2 }, func(y *story) {
		y.begun(0, "a").begun(1, "b").step(time.Minute, Interrupted{Why: "look"}).step(0, Interrupted{Why: "again"})
		y.exited(0, Outcome{Turns: 2, Resumable: true, Class: Cancelled}).over(0)
		y.step(time.Minute, Resumed{Answer: "go on", Number: y.s.Interrupt.Number}).unparked("a")
		y.exited(1, Outcome{Turns: 2, Resumable: true, Class: Cancelled}).over(1).unparked("b")
		y.begun(0, "a").step(0, Interrupted{Why: "once more"}).exited(0, Outcome{Turns: 1, Class: Cancelled}).over(0).step(0, Resumed{Answer: "x"}).unparked("a")
	}},
	{"a person interrupts while an agent asks", func(l *Limits) { l.Workers = 2 }, func(y *story) {
		y.begun(0, "a").begun(1, "b").asks(0, "which?").step(0, Interrupted{Why: "look"}).exited(1, Outcome{Turns: 1, Class: Cancelled}).over(1)
		y.step(0, Resumed{Answer: "x"}).step(0, Resumed{Answer: "x", Number: y.s.Interrupt.Number}).step(0, Resumed{Answer: "y"}).unparked("b")
	}},
	{"a run is cancelled by somebody", nil, func(y *story) {
		y.begun(0, "a").exited(0, Outcome{Class: Cancelled, Reason: "cancelled by ann", Turns: 1, Resumable: true}).over(0)
	}},
	{"paused, resumed, drained", nil, func(y *story) {
		y.begun(0, "a").step(0, PauseAsked{}).step(0, PauseAsked{}).exited(0, fine).verified(0, GateNone, "").over(0).step(time.Hour, Tick{}).step(0, Resumed{})
		y.begun(0, "b").step(0, StopAsked{Why: "enough", Drain: true}).step(0, StopAsked{Why: "more", Drain: true}).exited(0, fine).verified(0, GateNone, "").over(0)
	}},
	{"paused, and what was asked is answered", func(l *Limits) { l.Workers = 2 }, func(y *story) {
		y.begun(0, "a").begun(1, "b").step(0, PauseAsked{}).asks(0, "which?").step(0, Resumed{Answer: "x", Items: []string{"a"}, Number: 1}).unparked("a").step(time.Hour, Tick{})
		y.step(0, Interrupted{Why: "look"}).step(0, PauseAsked{}).step(0, Resumed{Answer: "seen"}).step(0, Resumed{})
	}},
	{"a rate limit with a time, and what people say meanwhile", nil, func(y *story) {
		named := told429
		named.Reset = epoch.Add(5 * time.Hour)
		y.fails(0, "a", named).step(0, Interrupted{Why: "look"}).step(0, Resumed{}).step(time.Minute, Tick{}).step(0, PauseAsked{}).step(0, Resumed{}).step(time.Minute, Tick{}).step(0, Resumed{})
	}},
	{"stopped in each step", func(l *Limits) { l.Workers = 4 }, func(y *story) {
		y.claim(0, "a").claim(1, "b").prepared(1).begun(2, "c").step(time.Minute, StopAsked{Why: "enough"}).claim(3, "d").prepared(0).launched(1)
		y.step(2*time.Minute, Tick{}).exited(2, Outcome{Turns: 2, Resumable: true}).exited(1, Outcome{Turns: 0}).over(0).over(1).over(2).over(3).step(0, Tick{})
	}},
	{"what a person says to a loop that ends does not have it begin again", nil, func(y *story) {
		y.begun(0, "a").step(0, StopAsked{Why: "enough", Drain: true}).step(0, Resumed{}).step(0, PauseAsked{}).step(0, QueueChanged{}).step(0, StopAsked{Why: "now"}).step(0, Interrupted{Why: "look"}).step(0, StopAsked{Drain: true})
	}},
	{"stopped while it waits", nil, func(y *story) { y.begun(0, "a").asks(0, "which?").step(0, StopAsked{Why: "enough"}) }},
	{"rate limits, with a time and without", nil, func(y *story) {
		named := told429
		named.Reset = epoch.Add(time.Hour)
		y.fails(0, "a", named).step(time.Minute, Tick{}).step(time.Hour, Tick{}).fails(0, "a", told429).wait().wait()
		half := told429
		half.Turns, half.Resumable, half.Reset = 4, true, epoch
		y.fails(0, "a", half)
	}},
	{"the service fails, not logged in, the template is wrong", nil, func(y *story) {
		y.fails(0, "a", Outcome{Class: APIError, Reason: "529", Signature: "529"}).wait().wait().fails(0, "a", Outcome{Class: APIError, Turns: 2, Resumable: true}).wait().wait()
		y.claim(0, "a").prepared(0).step(0, Launched{Slot: 0, Seq: y.s.Slots[0].Seq, Class: BadBootstrap, Err: "no such variable"}).over(0).wait().wait()
		y.fails(0, "a", Outcome{Class: AuthFailed, Reason: "log in"}).step(0, Resumed{}).wait()
	}},
	{"nothing starts, five times", nil, func(y *story) {
		for range 5 {
			y.claim(0, "a").prepared(0).step(0, Launched{Slot: 0, Seq: y.s.Slots[0].Seq, Class: SpawnFailed, Err: "no claude"}).over(0)
			y.next()
		}
	}},
	{"one item cannot have its place", func(l *Limits) { l.MaxIdentical = 2 }, func(y *story) {
		y.begun(0, "a").exited(0, fine).verified(0, GateNone, "").over(0).wait()
		for range 2 {
			y.claim(0, "b").step(0, Prepared{Slot: 0, Seq: y.s.Slots[0].Seq, Err: "taken"}).over(0).wait()
		}
	}},
	{"context full, turns used, until it is too often", func(l *Limits) { l.MaxContinues = 1 }, func(y *story) {
		y.fails(0, "a", Outcome{Class: ContextFull, Reason: "full", Turns: 9, Resumable: true}).wait()
		y.fails(0, "a", Outcome{Class: TurnsUsed, Reason: "50 turns", Turns: 50, Resumable: true})
	}},
	{"the session that a person's answer was for is gone", nil, func(y *story) {
		y.fails(0, "a", Outcome{Session: "s", Turns: 2, Asks: "which?", Resumable: true}).step(0, Resumed{Answer: "blue", Items: []string{"a"}}).unparked("a").wait()
		y.fails(0, "a", Outcome{Session: "s", Class: SessionGone, Reason: "No conversation found with session ID: s"}).wait()
		y.fails(0, "a", Outcome{Session: "t", Class: SessionGone, Reason: "No conversation found with session ID: t"}).wait()
	}},
	{"runs that are ended before they say what they cost", func(l *Limits) { l.MaxUSD, l.ItemUSD = 25, 10 }, func(y *story) {
		silent := Outcome{Session: "s", Class: TimedOut, Turns: 3, Tokens: 100_000, Unpriced: true, Resumable: true}
		y.fails(0, "a", silent).wait() // nothing is known: all of what was set aside
		told := fine
		told.Session, told.Cost, told.Tokens = "s", 10.5, 50_000
		y.begun(0, "a").exited(0, told).verified(0, GateNone, "").over(0).wait() // 10 of which were counted
		y.fails(0, "b", silent).wait()                                           // at twice the price: 0.5 USD for 50,000
		y.fails(0, "c", Outcome{Class: Crashed, Unpriced: true}).wait()          // asked nothing
	}},
	{"money: of a run, of the loop, refused", func(l *Limits) { l.MaxUSD, l.ItemUSD = 12, 10 }, func(y *story) {
		y.fails(0, "a", Outcome{Class: BudgetUsed, Reason: "10 USD", Turns: 5, Cost: 10, Resumable: true}).step(0, Resumed{More: &More{USD: 2, Iterations: 100}}).unparked("a")
		y.fails(0, "a", Outcome{Class: BudgetUsed, Reason: "4 USD", Turns: 5, Cost: 3.9}).step(0, Resumed{}).wait()
	}},
	{"a run costs more than there is", func(l *Limits) { l.MaxUSD, l.Workers = 5, 2 }, func(y *story) {
		y.begun(0, "a").step(0, Progress{Slot: 0, Run: "run-1", Cost: 4.9}).step(0, Progress{Slot: 0, Run: "run-1", Cost: 5.2}).exited(0, Outcome{Turns: 3, Cost: 5.3, Resumable: true}).over(0).step(0, Tick{})
	}},
	{"tokens", func(l *Limits) { l.MaxTokens, l.Workers = 1000, 2 }, func(y *story) {
		y.begun(0, "a").step(0, Progress{Slot: 0, Run: "run-1", Tokens: 400}).begun(1, "b").step(0, Progress{Slot: 1, Run: "run-2", Tokens: 700})
		y.exited(0, Outcome{Turns: 3, Tokens: 500}).over(0).exited(1, Outcome{Turns: 3, Tokens: 800, Asks: "?"}).over(1).step(0, Tick{})
	}},
	{"time, and items", func(l *Limits) { l.MaxTime, l.MaxIterations = time.Hour, 2 }, func(y *story) {
		y.begun(0, "a").exited(0, fine).verified(0, GateNone, "").over(0).wait().begun(0, "b").step(2*time.Hour, Tick{}).exited(0, Outcome{Turns: 2}).over(0)
	}},
	{"as many items as it may", func(l *Limits) { l.MaxIterations, l.Workers = 1, 2 }, func(y *story) {
		y.begun(0, "a").exited(0, fine).verified(0, GateNone, "").over(0).wait()
	}},
	{"silent, too long, told again", func(l *Limits) { l.Workers, l.Stall, l.ItemTimeout = 2, 10*time.Minute, 15*time.Minute }, func(y *story) {
		y.begun(0, "a").begun(1, "b")
		for range 4 {
			y.step(4*time.Minute, Progress{Slot: 1, Run: "run-2", Tokens: 1})
		}
		y.wait().wait().wait().exited(0, Outcome{Turns: 2, Resumable: true}).over(0).exited(1, Outcome{Turns: 2, Resumable: true}).over(1)
	}},
	{"five different items fail", nil, func(y *story) {
		for n, id := range []string{"a", "b", "c", "d", "e"} {
			y.fails(0, id, Outcome{Class: Crashed, Turns: 1, Signature: fmt.Sprint(n)})
			y.next()
		}
		y.step(0, Resumed{}).step(0, Tick{})
	}},
	{"three fail in the same way, then one three times", nil, func(y *story) {
		for _, id := range []string{"a", "b", "c", "a", "a"} {
			y.fails(0, id, died)
			if y.s.Phase == Waiting {
				y.step(0, Resumed{})
			}
			y.next()
		}
	}},
	{"refused; no result; no turn; no change; not even asked", nil, func(y *story) {
		for n, o := range []Outcome{{Class: Refused, Reason: "no", Turns: 1}, {Completed: true, Turns: 2}, {Completed: true, OK: true}, {Completed: true, OK: true, Turns: 2}, {}, {Reported: "broken", Turns: 1, Resumable: true}, {Completed: true, OK: true, Turns: 1, Changed: true, Reported: "no"}} {
			y.fails(0, string(rune('a'+n)), o)
			if y.s.Phase == Waiting {
				y.step(0, Resumed{NoAnswer: true})
				for _, id := range y.s.Unpark {
					y.unparked(id)
				}
			}
			y.next()
		}
	}},
	{"the queue gives it up, and says that it is not ours", nil, func(y *story) {
		y.begun(0, "a").exited(0, died).settled(0, Settled{GaveUp: true}).archived(0).wait().wait()
		y.begun(0, "b").exited(0, fine).verified(0, GateNone, "").settled(0, Settled{Lost: true}).archived(0)
	}},
	{"the claim is lost in each step", func(l *Limits) { l.Workers = 5 }, func(y *story) {
		y.claim(0, "a").claim(1, "b").prepared(1).begun(2, "c").begun(3, "d").exited(3, fine).begun(4, "e").exited(4, died)
		for n, id := range []string{"a", "b", "c", "d", "e"} {
			y.step(0, LeaseLost{Slot: n, Item: id, Fence: 99}).step(0, LeaseLost{Slot: n, Item: id, Fence: int64(n + 1)}).step(0, LeaseLost{Slot: n, Item: id, Fence: int64(n + 1)})
		}
		y.prepared(0).launched(1).verified(3, GatePassed, "").exited(2, fine).exited(1, died).over(4)
		y.archived(0).archived(1).archived(2).archived(3).step(0, LeaseLost{Slot: 9}).step(0, Exited{Slot: 2, Run: "run-3"}).step(0, Prepared{Slot: -1})
	}},
	{"the disk is full in each step", func(l *Limits) { l.Workers = 2 }, func(y *story) {
		broken := func() { y.step(0, Broken{Slot: 0, Seq: y.s.Slots[0].Seq, Err: "disk full"}).wait() }
		broken()
		broken()
		y.claim(0, "a")
		broken()
		y.prepared(0)
		broken()
		y.step(0, Broken{Slot: 0, Seq: y.s.Slots[0].Seq}).step(0, LeaseLost{Slot: 0, Item: "a", Fence: 1}).wait().step(0, Exited{Slot: 0}).archived(0)
		y.claim(0, "b").prepared(0).step(0, Broken{Slot: 0, Seq: y.s.Slots[0].Seq}).step(0, StopAsked{Why: "enough"}).wait().step(0, Exited{Slot: 0})
		broken()
		y.settled(0, Settled{})
		broken()
		y.archived(0).none(1, Claimed{})
	}},
	{"killed and begun again in each step", func(l *Limits) { l.Workers = 6 }, func(y *story) {
		y.claim(0, "a").claim(1, "b").prepared(1).begun(2, "c").begun(3, "d").exited(3, fine).begun(4, "e").exited(4, died)
		own := y.s.Claims()
		y.step(time.Hour, Started{Claims: append(own, Claim{Item: Item{ID: "z"}, Fence: 9})}).step(0, Started{Claims: own[:1]})
		y.prepared(0).step(0, Exited{Slot: 1}).exited(2, fine).archived(1).archived(2).archived(3)
	}},
	{"an earlier run of the item has not ended", func(l *Limits) { l.Workers = 2 }, func(y *story) {
		y.begun(0, "a").step(0, LeaseLost{Slot: 0, Item: "a", Fence: 1}).claim(1, "a").over(1)
	}},
	{"the answer of nobody", nil, func(y *story) {
		y.step(0, Claimed{Slot: 0, Seq: 99, Claim: &Claim{Item: Item{ID: "x"}, Fence: 1}}).step(0, Claimed{Slot: 7}).step(0, Verified{}).step(0, Settled{}).step(0, Archived{}).step(0, QueueChanged{})
		y.step(0, Broken{Slot: 3}).step(0, Broken{Slot: 0, Seq: 99}).step(0, AgentAsks{Slot: 0, Run: "no"}).step(0, Progress{Slot: 5}).step(0, Unparked{Item: "no"})
	}},
}

// TestStories tells each story as it is told in testdata/stories.txt. What is told otherwise
// there is what the loop does otherwise: look at the difference, then run it with -update.
func TestStories(t *testing.T) {
	var all strings.Builder
	for _, one := range stories {
		l := DefaultLimits()
		l.UntilEmpty = true
		if one.with != nil {
			one.with(&l)
		}
		y := &story{t: t, s: New("loop-1", l, Time{Wall: epoch})}
		y.step(0, Started{})
		one.tell(y)
		fmt.Fprintf(&all, "## %s\n\n%s\n", one.name, y.out.String())
	}
	path := filepath.Join("testdata", "stories.txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.Split(string(data), "\n"), strings.Split(all.String(), "\n")
	for n := range max(len(want), len(got)) {
		if n >= len(want) || n >= len(got) || want[n] != got[n] {
			t.Fatalf("%s:%d is\n%s\nand now it is told so:\n%s", path, n+1, at(want, n), at(got, n))
		}
	}
}

func at(list []string, n int) string {
	if n >= len(list) {
		return "(the end)"
	}
	return list[n]
}
