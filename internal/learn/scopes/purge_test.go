package scopes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/recall"
)

// call is a tool call as a client reports it: that it is about to run, and its end.
func (s *story) call(id, command, failure string) {
	in, _ := json.Marshal(map[string]string{"command": command})
	d := event.ToolData{Tool: "shell", Name: "Bash", ID: id, Input: in, Cwd: "/w/shop"}
	s.add(event.ToolCalled, d)
	if failure == "" {
		s.add(event.ToolSucceeded, d)
		return
	}
	code := 1
	d.Error, d.ExitCode = failure, &code
	s.add(event.ToolFailed, d)
}

// leftPad is a session whose first turn fails and fixes something, with all that
// repeats its words; also says what else the turn did.
func (e *estate) leftPad(session string, also func()) {
	e.project, e.session = "shop", session
	e.start()
	p := e.prompt("Get the suite green")
	served := e.event(event.RecallServed, event.ServedData{At: "prompt", Query: "Get the suite green"})
	served.Parent = p.ID
	e.write(served)
	e.call("c1", "cat package.json", "")
	for i := range 15 { // more than an episode names as evidence
		e.call(fmt.Sprintf("c2-%d", i), "npm test", "Error: Cannot find module 'left-pad'\n    at x.js:1")
	}
	e.add(event.PermissionDecided, map[string]string{"tool": "shell", "use_id": "c3", "verdict": "ask", "reason": "npm install left-pad installs"})
	e.call("c3", "npm install left-pad", "")
	e.call("c4", "npm test", "")
	if also != nil {
		also()
	}
	e.answer("Installed left-pad, green now.")
	e.prompt("Describe it in the handbook")
	in, _ := json.Marshal(map[string]string{"file_path": "/w/shop/handbook.md"})
	e.add(event.ToolSucceeded, event.ToolData{Tool: "edit", Name: "Edit", ID: "c5", Input: in, Cwd: "/w/shop"})
	e.answer("The handbook is written.")
	e.add(event.ClientCompacted, event.CompactData{Phase: "after", Summary: "We had to run npm install left-pad."})
	e.add(event.EpisodeRecorded, map[string]string{"kind": "summary", "text": "A module called left-pad was wanting.", "by": "m"})
	e.end()
	e.at = e.at.Add(24 * time.Hour)
}

// episode is the id of the failure that says these words.
func (e *estate) episode(words string) (id string) {
	e.t.Helper()
	e.served()
	err := e.index.View(context.Background(), func(tx *recall.Tx) error {
		return tx.Each(recall.Filter{Class: recall.ClassEpisode}, func(d recall.Doc) bool {
			if data, _ := learn.DataOf(d); data.Kind == learn.KindFailure && strings.Contains(d.Text, words) {
				id = d.ID
			}
			return true
		})
	})
	if err != nil || id == "" {
		e.t.Fatalf("no failure says %q: %v", words, err)
	}
	return id
}

func (e *estate) sound(when string) {
	e.t.Helper()
	for _, p := range []string{"shop", ""} {
		if r := must[event.Report](e.t.(*testing.T))(event.Verify(e.events(p))); !r.OK() {
			e.t.Errorf("%s: the log of %q: %+v", when, p, r.Problems)
		}
	}
}

// An episode that was purged is found by no word of it: not the command that failed
// or the one that helped, not what the client or the guard recorded of these calls
// besides, not the turn in which nothing else happened, the answer, the context that
// was compacted, or what a model wrote of the session. What has nothing to do with
// it stays, in the same session and in others.
func TestPurgeOfAnEpisodeTakesAllThatTellsIt(t *testing.T) {
	ctx := context.Background()
	for _, later := range []bool{false, true} { // forgotten first, purged later
		e := newEstate(t)
		e.leftPad("a1", nil)
		e.project, e.session = "shop", "a2"
		e.start()
		e.prompt("Build the binary")
		e.call("d1", "make all", "ld: library not found for -lfoo")
		e.call("d2", "apt install libfoo-dev", "")
		e.call("d3", "make all", "")
		e.answer("It builds.")
		e.end()
		id := e.episode("left-pad")
		before := eventsOf(t, e, "a1")
		s := e.person("shop")
		if later {
			must[Change](t)(s.Forget(ctx, id, Forgetting{}))
		}
		c := must[Change](t)(s.Forget(ctx, id, Forgetting{Purge: true}))
		for _, words := range []string{"left-pad", "suite green", "npm test", "package.json"} {
			e.nowhere("after the purge", words)
			if got := holding(t, e.dir, words); len(got) != 0 {
				t.Errorf("later %v: %q is still in %v", later, words, got)
			}
		}
		e.sound("after the purge")
		got := e.served()
		for _, stays := range []string{"Describe it in the handbook", "The handbook is written.", "apt install libfoo-dev", "Build the binary"} {
			if !strings.Contains(got, stays) {
				t.Errorf("later %v: %q went, too:\n%s", later, stays, got)
			}
		}
		total := 0
		for _, x := range c.Taken {
			total += x.Events
		}
		if total != c.Purged || c.Purged != before-eventsOf(t, e, "a1") || len(c.Left) != 0 {
			t.Errorf("later %v: %d events said to be taken, %+v; %d of %d are left; left %+v", later, c.Purged, c.Taken, eventsOf(t, e, "a1"), before, c.Left)
		}
	}
}

// eventsOf is how many events of a session the log holds.
func eventsOf(t *testing.T, e *estate, session string) (n int) {
	t.Helper()
	for ev, err := range event.Read(e.events("shop")) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Session == session {
			n++
		}
	}
	return n
}

// What another episode shares stays, and is said to: the prompt of a turn that did
// other work, a call that ended two failures, the same command in another session.
func TestPurgeKeepsWhatOthersShare(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	e.leftPad("a1", func() {
		e.call("c9", "npm run lint", "13 problems: unused variable")
		e.call("c10", "npm run lint -- --fix", "")
	})
	e.project, e.session = "shop", "a2"
	e.start()
	e.prompt("Prepare the demo machine")
	e.call("d1", "npm install left-pad", "")
	e.answer("It is ready.")
	e.end()
	e.session = "a3"
	e.start()
	e.prompt("Deploy it")
	e.call("f1", "kubectl apply -f shop.yaml", "error: no context exists with the name staging")
	e.call("f2", "kubectl config use-context staging-eu", "")
	e.call("f3", "kubectl apply -f shop.yaml", "error: namespace shop not found")
	e.call("f4", "kubectl create namespace shop", "")
	e.call("f5", "kubectl apply -f shop.yaml", "")
	e.answer("Deployed.")
	e.end()
	id := e.episode("left-pad")
	c := must[Change](t)(e.person("shop").Forget(ctx, id, Forgetting{Purge: true}))
	got := e.served()
	for _, stays := range []string{"Get the suite green", "npm run lint", "Prepare the demo machine", "Ran: `npm install left-pad`"} {
		if !strings.Contains(got, stays) {
			t.Errorf("%q went, too:\n%s", stays, got)
		}
	}
	for _, gone := range []string{"Cannot find module", "green now"} {
		e.nowhere("after the purge", gone)
		if files := holding(t, e.dir, gone); len(files) != 0 {
			t.Errorf("%q is still in %v", gone, files)
		}
	}
	i := slices.IndexFunc(c.Left, func(l Left) bool { return l.Words == "npm install left-pad" })
	if i < 0 || c.Left[i].Count == 0 || c.Left[i].Events != 2 || len(c.Left[i].Items) == 0 || c.Left[i].Why == "" {
		t.Errorf("what stays is not said: %+v", c.Left)
	}

	// The call that worked at last ended both failures: with one it stays.
	first := e.episode("no context exists")
	must[Change](t)(e.person("shop").Forget(ctx, first, Forgetting{Purge: true}))
	got = e.served()
	if !strings.Contains(got, "namespace shop not found") || !strings.Contains(got, "kubectl create namespace shop") {
		t.Errorf("the other failure went, too:\n%s", got)
	}
	for _, gone := range []string{"no context exists", "staging-eu"} {
		if files := holding(t, e.dir, gone); len(files) != 0 {
			t.Errorf("%q is still in %v", gone, files)
		}
	}
	e.sound("at the end")
}

// A reason that repeats the words does not take the tombstone with them: without it
// the episode would come back with the next import.
func TestPurgeKeepsItsTombstone(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	a := must[Change](t)(e.person("shop").Learn(ctx, Note{Project: "shop", Text: "The wombat queue is drained by hand."}))
	must[Change](t)(e.person("shop").Forget(ctx, a.ID, Forgetting{Purge: true, Reason: "The wombat queue is drained by hand."}))
	if id := forgotten(t, e); id != a.ID {
		t.Errorf("the tombstone is of %q", id)
	}
}

// A turn that goes takes with it the calls that were refused in it, or asked about and
// never answered: nothing but what was decided of them has their words. What the next
// turn was refused stays.
func TestPurgeTakesWhatWasRefused(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	e.project, e.session = "shop", "r1"
	refused := func(id, word string) {
		in, _ := json.Marshal(map[string]string{"command": "rm -rf /etc/" + word})
		e.add(event.ToolCalled, event.ToolData{Tool: "shell", Name: "Bash", ID: id, Input: in, Cwd: "/w/shop"})
		d := map[string]any{"tool": "shell", "verdict": "deny", "word": "/etc/" + word, "commands": []string{"rm -rf /etc/" + word}}
		if id != "" {
			d["use_id"] = id
		}
		ev := e.event(event.PermissionDecided, d)
		ev.Outcome = "denied"
		e.write(ev)
	}
	e.start()
	e.prompt("Look at the settings")
	refused("c1", "zanzibarquokka")
	refused("", "zanzibarquokka") // of a client that gives no ids
	e.answer("I could not look at them.")
	e.prompt("Then look at the others")
	refused("c2", "otherquokka")
	e.answer("Nor at those.")
	e.end()
	e.at = e.at.Add(24 * time.Hour)
	e.served()
	var turn string
	for _, id := range e.idsOf(learn.KindTurn) {
		if d := must[Found](t)(e.person("shop").Find(ctx, id)).Doc; strings.Contains(d.Text, "Look at the settings") {
			turn = id
		}
	}
	c := must[Change](t)(e.person("shop").Forget(ctx, turn, Forgetting{Purge: true}))
	if got := holding(t, e.dir, "zanzibarquokka"); len(got) != 0 || c.Purged < 6 {
		t.Errorf("it is still in %v; taken %+v", got, c.Taken)
	}
	e.nowhere("after the purge", "zanzibarquokka")
	if got := holding(t, e.dir, "otherquokka"); len(got) == 0 {
		t.Error("what another turn was refused went, too")
	}
	e.sound("after the purge")
}

// The questions that an agent put in a turn go with it, answered or not: of one that was
// not, nothing else tells, so that no other id leads to it. What the user answered stays
// where a failure of its turn goes alone.
func TestPurgeTakesQuestions(t *testing.T) {
	ctx := context.Background()
	for _, whole := range []bool{true, false} {
		e := newEstate(t)
		e.project, e.session = "shop", "q1"
		ask := func(id, word, answer string) {
			q := event.QuestionData{Question: "Use " + word + " as the password?", Options: []string{"yes", word}, UseID: id}
			e.add(event.QuestionAsked, q)
			if answer != "" {
				q.Answer, q.By = answer, "user"
				e.add(event.QuestionAnswered, q)
			}
		}
		e.start()
		e.prompt("Look at the settings")
		ask("c1", "zanzibarquokka", "yes, zanzibarquokka")
		ask("c2", "zanzibarwombat", "")
		e.call("c3", "make zanzibarfail", "Error: no rule")
		e.answer("I looked at them.")
		e.prompt("Then look at the others")
		ask("c4", "otherquokka", "yes")
		ask("c5", "otherwombat", "")
		e.answer("I looked at those.")
		e.end()
		e.at = e.at.Add(24 * time.Hour)
		e.served()
		var id string
		for _, x := range e.idsOf(learn.KindTurn) {
			if d := must[Found](t)(e.person("shop").Find(ctx, x)).Doc; strings.Contains(d.Text, "Look at the settings") {
				id = x
			}
		}
		if !whole {
			id = e.episode("zanzibarfail")
		}
		c := must[Change](t)(e.person("shop").Forget(ctx, id, Forgetting{Purge: true}))
		for _, w := range []string{"zanzibarquokka", "zanzibarwombat"} {
			if got := holding(t, e.dir, w); len(got) == 0 != whole {
				t.Errorf("the whole turn: %v; %s is in %v; taken %+v", whole, w, got, c.Taken)
			}
			if whole {
				e.nowhere("after the purge", w)
			}
		}
		for _, w := range []string{"otherquokka", "otherwombat"} {
			if got := holding(t, e.dir, w); len(got) == 0 {
				t.Errorf("%s of another turn went, too: %+v", w, c.Taken)
			}
		}
		e.sound("after the purge")
	}
}

// What memory answered by itself, and the client then reported, goes with the answer that it
// was given from; another answer to the same question, and that of another project, stay.
func TestPurgeTakesAnswersOfMemory(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	ask := func(project, session, answer string, memory bool) {
		e.project, e.session = project, session
		e.at = e.at.Add(24 * time.Hour)
		e.start()
		e.prompt("Name the customer")
		q := event.QuestionData{Question: "Which name for the customer?", Options: []string{"zanzibarquokka", "blue"}, UseID: "use-" + session}
		e.add(event.QuestionAsked, q)
		q.Answer = answer
		if memory {
			q.By = "memory"
			e.add(event.QuestionAnswered, q)
		}
		q.By = "user"
		e.add(event.QuestionAnswered, q)
		e.answer("Named.")
		e.end()
	}
	ask("site", "q0", "zanzibarquokka", false)
	ask("shop", "q1", "zanzibarquokka", false)
	ask("shop", "q2", "zanzibarquokka", true)
	ask("shop", "q3", "zanzibarquokka", true)
	e.served()
	var id string
	for _, x := range e.idsOf(learn.KindAnswer) {
		if d := must[Found](t)(e.person("shop").Find(ctx, x)).Doc; d.Project == "shop" {
			id = x
		}
	}
	must[Change](t)(e.person("shop").Forget(ctx, id, Forgetting{Purge: true}))
	for _, file := range holding(t, e.dir, "zanzibarquokka") {
		if strings.Contains(file, "shop") {
			t.Errorf("it is still in %s", file)
		}
	}
	if len(holding(t, e.dir, "zanzibarquokka")) == 0 {
		t.Error("another project's went, too")
	}
	e.sound("after the purge")
}
