package learn

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/recall"
)

// ofKind are the store's documents of one kind, in order of time.
func (s *fakeStore) ofKind(kind string) []recall.Doc {
	var out []recall.Doc
	for _, d := range s.docs {
		if data, ok := DataOf(d); ok && data.Kind == kind {
			out = append(out, d)
		}
	}
	sortDocs(out)
	return out
}

const moduleMissing = "Error: Cannot find module 'left-pad'\nRequire stack:\n- /w/shop/index.js"

// What is taken for the fix of a failure, by what was done between it and the
// success of the same call.
func TestFixes(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *story)
		kind string // of the fix; empty = none
		text string // what the fix's text must hold
		not  string // and what not
		out  string // outcome
	}{
		{"a command in between", func(s *story) {
			s.shell("npm test", moduleMissing)
			s.shell("npm ci", "")
			s.shell("npm test", "")
		}, "command", "after `npm ci`", "", Fixed},
		{"looking around is no fix", func(s *story) {
			s.shell("npm test", moduleMissing)
			s.shell("ls node_modules", "")
			s.shell("cat package.json | grep left", "")
			s.shell("git status", "")
			s.shell("npm ci", "")
			s.shell("npm test 2>&1 | tail -20", "")
		}, "command", "after `npm ci`", "ls", Fixed},
		{"an edit", func(s *story) {
			s.shell("go test ./internal/cart", "--- FAIL: TestTotal (0.00s)\n    cart_test.go:3: got 1, want 2")
			s.edit("/w/shop/internal/cart/cart.go")
			s.shell("go test ./internal/cart", "")
		}, "edit", "after editing internal/cart/cart.go", "", Fixed},
		{"another command line", func(s *story) {
			s.shell("npm install", "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree")
			s.shell("npm install --legacy-peer-deps", "")
		}, "changed", "`--legacy-peer-deps` added", "", Fixed},
		{"the same after something in one line", func(s *story) {
			s.shell("npm test", moduleMissing)
			s.shell("npm ci && npm test", "")
		}, "command", "after `npm ci`", "", Fixed},
		{"another program for the same", func(s *story) {
			s.shell("npm run build", "npm error code EBADENGINE\nnpm error Unsupported package manager")
			s.shell("pnpm run build", "")
		}, "changed", "`pnpm run build` instead of `npm run build`", "", Fixed},
		{"another program for something else is no fix", func(s *story) {
			s.shell("npm run build", "npm error code EBADENGINE\nnpm error Unsupported package manager")
			s.shell("go build ./...", "")
		}, "", "", "", Unfixed},
		{"a narrower look is no changed command", func(s *story) {
			s.shell("go test ./internal/cart", "--- FAIL: TestTotal (0.00s)\n    cart_test.go:3: got 1, want 2")
			s.edit("/w/shop/internal/cart/cart.go")
			s.shell("go test -run TestTotal -v ./internal/cart", "")
		}, "edit", "after editing internal/cart/cart.go", "-run", Fixed},
		{"nothing changed", func(s *story) {
			s.shell("go test ./...", "--- FAIL: TestNet (0.00s)\n    net_test.go:3: timed out")
			s.shell("go test ./...", "")
		}, "retry", "run again", "", Fixed},
		{"never", func(s *story) {
			s.shell("make deploy", "make: *** No rule to make target 'deploy'.  Stop.")
		}, "", "", "", Unfixed},
		{"the user's word", func(s *story) {
			s.shell("npm test", moduleMissing)
			s.answer("It fails.")
			s.prompt("no, run npm ci first")
			s.shell("npm ci", "")
			s.shell("npm test", "")
		}, "command", "the user said: no, run npm ci first", "", Fixed},
		{"what did not help is no part of the fix", func(s *story) {
			s.shell("npm test", moduleMissing)
			s.shell("npm cache clean --force", "")
			s.shell("npm test", moduleMissing)
			s.shell("npm ci", "")
			s.shell("npm test", "")
		}, "command", "after `npm ci`", "cache", Fixed},
		{"a file's edit after reading it", func(s *story) {
			in := []byte(`{"file_path":"/w/shop/a.go"}`)
			s.add(event.ToolFailed, event.ToolData{Tool: "edit", Name: "Edit", Input: in, Cwd: "/w/shop", Error: "File has not been read yet. Read it first before writing to it."})
			s.add(event.ToolSucceeded, event.ToolData{Tool: "read", Name: "Read", Input: in, Cwd: "/w/shop"})
			s.edit("/w/shop/a.go")
		}, "retry", "run again", "", Fixed},
		{"it failed again with nothing edited since", func(s *story) {
			s.shell("npm test", moduleMissing)
			s.shell("npm ci", "")
			s.shell("npm test", "")
			s.shell("npm test", moduleMissing)
		}, "command", "after `npm ci`", "", Refailed},
		{"it failed again after more edits: the edits may be to blame", func(s *story) {
			s.shell("npm test", moduleMissing)
			s.shell("npm ci", "")
			s.shell("npm test", "")
			s.edit("/w/shop/package.json")
			s.shell("npm test", moduleMissing)
		}, "command", "after `npm ci`", "", Fixed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t)
			s.start()
			s.prompt("Make it work")
			c.do(s)
			s.answer("That was it.")
			s.end()
			st, _ := s.fold("2026-11-03")
			docs := st.ofKind(KindFailure)
			if len(docs) == 0 {
				t.Fatal("no episode")
			}
			d, _ := DataOf(docs[0])
			if d.Outcome != c.out {
				t.Errorf("outcome %q, want %q", d.Outcome, c.out)
			}
			if d.Task != "Make it work" {
				t.Errorf("task %q", d.Task)
			}
			switch {
			case c.kind == "" && d.Fix != nil:
				t.Errorf("a fix where there is none: %+v", d.Fix)
			case c.kind != "" && d.Fix == nil:
				t.Error("no fix")
			case c.kind != "":
				if d.Fix.Kind != c.kind || !strings.Contains(d.Fix.Text, c.text) || c.not != "" && strings.Contains(d.Fix.Text, c.not) {
					t.Errorf("fix %s: %q", d.Fix.Kind, d.Fix.Text)
				}
				if len(d.Evidence) < 2 || d.Fix.Event == "" {
					t.Errorf("evidence %v, success %q", d.Evidence, d.Fix.Event)
				}
				if docs[0].Confidence > 0.7 || docs[0].Confidence <= 0 {
					t.Errorf("confidence %v of a single episode", docs[0].Confidence)
				}
			}
		})
	}
}

// What is no failure makes no episode.
func TestNoFailure(t *testing.T) {
	for _, c := range []struct{ command, said string }{
		{"grep -rn nothing .", "Exit code 1"},
		{"git diff --quiet", "Exit code 1"},
		{"rm -rf build", "The user doesn't want to proceed with this tool use. The tool use was rejected."},
		{"npm publish", "[Request interrupted by user for tool use]"},
		{"curl x", "Claude requested permissions to use Bash, but you haven't granted it yet."},
	} {
		s := newStory(t)
		s.start()
		s.prompt("Look")
		s.shell(c.command, c.said)
		s.end()
		st, _ := s.fold("2026-11-03")
		if docs := st.ofKind(KindFailure); len(docs) != 0 {
			t.Errorf("%s: %s: %s", c.command, c.said, docs[0].Title)
		}
	}
}

// The first prompt of a session corrects nothing, whatever it says.
func TestFirstPromptCorrectsNothing(t *testing.T) {
	s := newStory(t)
	s.start()
	s.prompt("Don't use npm here, use pnpm instead")
	s.shell("pnpm test", "")
	s.answer("Done.")
	s.prompt("no, use yarn instead")
	s.end()
	st, _ := s.fold("2026-11-03")
	docs := st.ofKind(KindCorrection)
	if len(docs) != 1 || !strings.Contains(docs[0].Text, "After `pnpm test` the user said: no, use yarn instead") || docs[0].Author != "user" {
		t.Fatalf("%+v", docs)
	}
}

// failFix is a session in which npm test failed and worked after a command; an
// empty one stands for nothing.
func (s *story) failFix(session, project, command string, at time.Time) {
	s.session, s.project, s.at = session, project, at
	s.start()
	s.prompt("Run the tests")
	s.shell("npm test", moduleMissing)
	if command != "" {
		s.shell(command, "")
		s.shell("npm test", "")
	}
	s.answer("Done.")
	s.end()
}

func d(month, day int) time.Time {
	return time.Date(2026, time.Month(month), day, 9, 0, 0, 0, time.UTC)
}

func TestPatterns(t *testing.T) {
	s := newStory(t)
	s.failFix("s1", "shop", "npm ci", d(10, 1))
	st, o := s.fold("2026-11-03")
	if n := len(st.ofKind(KindPattern)); n != 0 {
		t.Fatalf("%d patterns after one session", n)
	}
	s.failFix("s2", "shop", "npm ci", d(10, 8))
	finish(t, o)
	p := st.ofKind(KindPattern)
	if len(p) != 1 || p[0].Project != "shop" || p[0].Class != recall.ClassPattern || p[0].Confidence != 0.75 {
		t.Fatalf("after two sessions: %+v", p)
	}
	if data, _ := DataOf(p[0]); data.Sessions != 2 || data.Projects != 1 || len(data.Episodes) != 2 || !slices.Contains(p[0].Keys, data.Signature) {
		t.Fatalf("%+v", data)
	}
	s.failFix("s3", "site", "npm ci", d(10, 9))
	finish(t, o)
	p = st.ofKind(KindPattern)
	global := slices.IndexFunc(p, func(d recall.Doc) bool { return d.Project == "" })
	if len(p) != 2 || global < 0 || p[global].Scope != "global" || strings.Contains(p[global].Text, "left-pad") {
		t.Fatalf("after two projects: %+v", p)
	}
}

// What one agent keeps to itself makes no pattern for all.
func TestPatternsKeepToTheirReaders(t *testing.T) {
	s := newStory(t)
	acl := []string{"agent:ann"}
	for i, day := range []int{1, 8} {
		s.session, s.at = fmt.Sprint("p", i), d(10, day)
		for _, x := range []struct{ command, failure string }{{"npm test", moduleMissing}, {"npm ci", ""}, {"npm test", ""}} {
			typ := event.ToolSucceeded
			if x.failure != "" {
				typ = event.ToolFailed
			}
			e := s.event(typ, shellData(x.command, x.failure, nil))
			e.ACL = acl
			s.write(e)
		}
	}
	st, o := s.fold("2026-11-03")
	if len(st.docs) == 0 {
		t.Fatal("nothing was made")
	}
	for _, doc := range st.docs {
		if !slices.Equal(doc.ACL, acl) {
			t.Errorf("%s %q may be read by %v", doc.ID, doc.Title, doc.ACL)
		}
	}
	call := shellData("npm test", moduleMissing, nil)
	for agent, want := range map[string]bool{"ann": true, "bob": false} {
		k, err := o.KnownFix(context.Background(), recall.Reader{Project: "shop", Agent: agent}, call)
		if err != nil || (len(k.Fixes) > 0) != want {
			t.Errorf("%s: %+v, %v", agent, k, err)
		}
	}
}

func TestAntiPatterns(t *testing.T) {
	s := newStory(t)
	s.failFix("s1", "shop", "npm ci", d(9, 1))
	// in a later session it was done, and the failure came again
	s.session, s.at = "s2", d(9, 8)
	s.start()
	s.prompt("Run the tests")
	s.shell("npm test", moduleMissing)
	s.shell("npm ci", "")
	s.shell("npm test", moduleMissing)
	s.end()
	st, o := s.fold("2026-09-10")
	a := st.ofKind(KindAntiPattern)
	if len(a) != 1 || a[0].Class != recall.ClassAntiPattern || !strings.Contains(a[0].Text, "after `npm ci`") {
		t.Fatalf("%+v", a)
	}
	if want := a[0].Time.AddDate(0, 0, 30); !a[0].Review.Equal(want) {
		t.Errorf("review %v, want %v", a[0].Review, want)
	}
	if !a[0].Until.After(a[0].Time.AddDate(0, 0, 20)) || a[0].Until.After(a[0].Time.AddDate(0, 0, 60)) {
		t.Errorf("decays until %v, failed %v", a[0].Until, a[0].Time)
	}
	k, err := o.KnownFix(context.Background(), recall.Reader{Project: "shop"}, shellData("npm test", moduleMissing, nil))
	if err != nil || len(k.Avoid) != 1 || len(k.Fixes) != 0 {
		t.Errorf("a fix that failed again is still offered: %+v, %v", k, err)
	}
	// it works again: lifted
	s.failFix("s3", "shop", "npm ci", d(9, 9))
	finish(t, o)
	if a := st.ofKind(KindAntiPattern); len(a) != 0 {
		t.Errorf("not lifted: %+v", a)
	}
	p := st.ofKind(KindPattern)
	if len(p) != 1 {
		t.Fatalf("%+v", p)
	}
	if data, _ := DataOf(p[0]); !data.Lifted || data.Failures != 1 || p[0].Confidence >= 0.75 {
		t.Errorf("%+v, confidence %v", data, p[0].Confidence)
	}
}

func TestKnownFix(t *testing.T) {
	s := newStory(t)
	s.failFix("s1", "shop", "npm ci", d(10, 1))
	s.failFix("s2", "shop", "npm ci", d(10, 8))
	s.failFix("s3", "shop", "npm install left-pad", d(10, 9))
	_, o := s.fold("2026-11-03")
	ask := func(project, said string) Known {
		t.Helper()
		k, err := o.KnownFix(context.Background(), recall.Reader{Project: project, Session: "now"}, shellData("npm test", said, nil))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := ask("shop", "Error: Cannot find module 'left-pad'\nRequire stack:\n- /home/bob/shop/lib/main.js")
	if len(k.Fixes) != 2 || k.Fixes[0].Class != recall.ClassPattern || !strings.Contains(k.Fixes[0].Snippet, "after `npm ci` (2 sessions)") || k.Fixes[0].Tokens == 0 {
		t.Errorf("%+v", k.Fixes)
	}
	// another module: npm ci may help, installing left-pad does not
	k = ask("shop", "Error: Cannot find module 'express'")
	if len(k.Fixes) != 1 || strings.Contains(k.Fixes[0].Snippet, "install left-pad") {
		t.Errorf("%+v", k.Fixes)
	}
	if k = ask("shop", "Error: Cannot read the file"); !k.Empty() {
		t.Errorf("known, and never seen: %+v", k)
	}
	if k = ask("site", moduleMissing); !k.Empty() {
		t.Errorf("of another project: %+v", k)
	}
	if k = ask("shop", "The user doesn't want to proceed with this tool use."); !k.Empty() || !k.Signature.Empty() {
		t.Errorf("a refused call: %+v", k)
	}
}

// Forgetting holds from the moment that its event is read, for what is there
// and for what would be made again, and lapses with the event.
func TestForgetting(t *testing.T) {
	s := newStory(t)
	s.failFix("s1", "shop", "npm ci", d(10, 1))
	s.failFix("s2", "shop", "npm ci", d(10, 8))
	st, o := s.fold("2026-11-03")
	ep := st.ofKind(KindFailure)[0]
	s.session, s.at = "s9", d(10, 20)
	s.add(event.MemoryRetired, event.MemoryData{Op: "forget", ID: ep.ID, By: "hand"})
	finish(t, o)
	if _, ok := st.docs[ep.ID]; ok {
		t.Error("the episode is still there")
	}
	if p := st.ofKind(KindPattern); len(p) != 0 {
		t.Errorf("a pattern of what was forgotten: %+v", p)
	}
	if _, err := o.Reasons(context.Background(), ep.ID); err == nil || !strings.Contains(err.Error(), "forgotten") {
		t.Errorf("reasons: %v", err)
	}
	st, o = s.fold("2026-11-03") // into an index that was made anew
	if _, ok := st.docs[ep.ID]; ok {
		t.Error("a rebuild brought it back")
	}
	// The rebuild has never seen the episode. A purge takes the event: it is back.
	file := filepath.Join(s.dir, "shop", "2026-10.desk.jsonl")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, string(event.MemoryRetired)) })
	if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	finish(t, o)
	if _, ok := st.docs[ep.ID]; !ok {
		t.Error("the event is gone, and the episode is not back")
	}
}

func TestTiersAndDigest(t *testing.T) {
	s := newStory(t)
	s.failFix("s1", "shop", "npm ci", d(3, 1))
	s.failFix("s2", "shop", "npm ci", d(10, 20))
	used := "ep-"
	for _, c := range [][2]string{{"2026-03-05", Hot}, {"2026-04-10", Warm}, {"2026-11-01", Cold}} { // in order: the last one uses it
		day, want := c[0], c[1]
		st, o := s.fold(day)
		eps := st.ofKind(KindFailure)
		if eps[0].Tier != want {
			t.Errorf("%s: %s, want %s", day, eps[0].Tier, want)
		}
		if want != Cold {
			continue
		}
		used = eps[0].ID
		if eps[0].Status != recall.Superseded || eps[0].Until.IsZero() {
			t.Errorf("a cold episode is served: %+v", eps[0])
		}
		dg := st.ofKind(KindDigest)
		if len(dg) != 1 || dg[0].Title != "What happened in 2026-03 in shop" || !strings.Contains(dg[0].Text, "npm test") || !slices.Contains(dg[0].Keys, exactOf(shellData("npm test", moduleMissing, nil))) {
			t.Fatalf("%+v", dg)
		}
		// being of use brings it back
		s.session, s.at = "s5", d(10, 30)
		s.add(event.RecallUsed, event.UsedData{ID: used, How: "useful"})
		finish(t, o)
		if e := st.ofKind(KindFailure)[0]; e.Tier != Hot || e.Status != recall.Active {
			t.Errorf("used and still %s", e.Tier)
		}
	}
}

func TestSummaries(t *testing.T) {
	s := newStory(t)
	s.start()
	s.prompt("Make the cart work. It is broken.")
	s.shell("npm test", moduleMissing)
	s.shell("npm ci", "")
	s.edit("/w/shop/cart.js")
	s.shell("npm test", "")
	s.answer("I decided to keep the lock file as it is. All is well.")
	s.prompt("no, use pnpm instead")
	s.answer("Done with pnpm.")
	st, o := s.fold("2026-11-02")
	if n := len(st.ofKind(KindSession)); n != 0 {
		t.Fatal("a summary before the end of the session and of the day")
	}
	s.end()
	finish(t, o)
	sum := st.ofKind(KindSession)
	if len(sum) != 1 {
		t.Fatalf("%+v", sum)
	}
	for _, want := range []string{"Task: Make the cart work.", "Edited: cart.js", "Failed and fixed: npm test", "The user said: no, use pnpm instead", "Decided: I decided to keep", "Last answer: Done with pnpm.", "outcome corrected"} {
		if !strings.Contains(sum[0].Text, want) {
			t.Errorf("no %q in\n%s", want, sum[0].Text)
		}
	}
	s.add(event.EpisodeRecorded, Recorded{Kind: "summary", Text: "The cart was mended.", By: "a-model"})
	finish(t, o)
	if sum = st.ofKind(KindSession); !strings.HasPrefix(sum[0].Text, "The cart was mended.\n(written by a-model)") {
		t.Errorf("%s", sum[0].Text)
	}
	// what checks said at its end outlives what the agent said
	s.session = "s3"
	s.start()
	s.prompt("Make the tax right. It is wrong.")
	s.answer("All right, done.")
	s.add(event.VerificationFinished, event.VerificationData{ID: "v1", Status: "failed", Issues: []string{"tests: unit: ended with exit code 1", "tests: lint: ended with exit code 2"}})
	s.end()
	finish(t, o)
	if got := st.ofKind(KindSession); len(got) != 2 || !strings.Contains(got[1].Text+got[0].Text, "\nChecks failed at its end: tests: unit: ended with exit code 1; tests: lint: ended with exit code 2\nLast answer: All right, done.\n1 prompt, 0 tool calls, 0 failed, outcome failed.") {
		t.Errorf("%+v", got)
	}
	// without an end: the next day
	s.session = "s2"
	s.start()
	s.prompt("Something")
	s.answer("Done.")
	finish(t, o)
	if n := len(st.ofKind(KindSession)); n != 2 {
		t.Fatalf("%d summaries", n)
	}
	o.o.Now = clock("2026-11-04")
	finish(t, o)
	if n := len(st.ofKind(KindSession)); n != 3 {
		t.Errorf("%d summaries a day later", n)
	}
}

// A session that was given an item of the queue is remembered by what became of the attempt,
// which is said when it has ended, and not by its own last words; an attempt may fail whose
// checks pass, and the last one decides.
func TestSessionIsJudgedByItsItem(t *testing.T) {
	s := newStory(t)
	s.start()
	s.prompt("Write the greeting.")
	s.answer("All of it is done.")
	s.add(event.VerificationFinished, event.VerificationData{ID: "v1", Status: "passed"})
	s.end()
	s.add(event.WorkChanged, event.WorkData{ID: "hello", Op: "failed", Run: "run-1", Note: "nothing was changed"})
	st, o := s.fold("2026-10-02")
	sum := st.ofKind(KindSession)
	if len(sum) != 1 || !strings.Contains(sum[0].Text, "\nWhat it was to do was not done: nothing was changed\n") || !strings.Contains(sum[0].Text, "outcome failed.") {
		t.Fatalf("%+v", sum)
	}
	s.add(event.WorkChanged, event.WorkData{ID: "hello", Op: "done", Run: "run-2"})
	finish(t, o)
	if sum = st.ofKind(KindSession); len(sum) != 1 || strings.Contains(sum[0].Text, "was not done") || !strings.Contains(sum[0].Text, "outcome good.") {
		t.Fatalf("%+v", sum)
	}
	s.session = "s9" // of a client that has no hooks
	s.add(event.WorkChanged, event.WorkData{ID: "hello", Op: "failed", Run: "run-3"})
	finish(t, o)
	if got, err := o.StatsOf(t.Context(), s.client, s.session); err != nil || got.Session != "" {
		t.Errorf("a session of which nothing was recorded is counted: %+v, %v", got, err)
	}
	s.session = "" // what else becomes of items is nobody's session
	s.add(event.WorkChanged, event.WorkData{ID: "hello", Op: "removed"})
	finish(t, o)
	if n := len(st.ofKind(KindSession)); n != 1 {
		t.Errorf("%d summaries", n)
	}
}

func TestReasons(t *testing.T) {
	s := newStory(t)
	s.failFix("s1", "shop", "npm ci", d(10, 1))
	s.failFix("s2", "shop", "npm ci", d(10, 8))
	st, o := s.fold("2026-10-09")
	ep := st.ofKind(KindFailure)[1]
	s.session, s.at = "s3", d(10, 9)
	s.add(event.RecallServed, event.ServedData{At: "prompt", Items: []event.ServedItem{{ID: ep.ID}}})
	s.add(event.RecallUsed, event.UsedData{ID: ep.ID, How: "useful"})
	finish(t, o)
	x, err := o.Reasons(context.Background(), ep.ID)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, sig := range x.Signals {
		sum += sig.Value * sig.Weight
		if sig.Because == "" {
			t.Errorf("%s: no reason", sig.Name)
		}
	}
	if round3(sum) != x.Doc.Importance || len(x.Signals) != 6 {
		t.Errorf("the signals come to %v, importance is %v: %+v", sum, x.Doc.Importance, x.Signals)
	}
	if x.Usage.Served != 1 || x.Usage.Useful != 1 || len(x.Evidence) != 2 || x.Evidence[0].What != "npm test" || len(x.Related) != 1 || len(x.Gates) != 3 {
		t.Errorf("%+v", x)
	}
	if !slices.Contains(x.Path, ScopeStep{Scope: "project", Name: "shop", Here: true}) {
		t.Errorf("%+v", x.Path)
	}
	if _, err := o.Reasons(context.Background(), "ep-nothing"); err == nil || !strings.Contains(err.Error(), "ep-nothing") {
		t.Errorf("%v", err)
	}
}

// What a run is told, an agent wrote: it corrects nothing in the user's name,
// or any agent could make a preference of the user by starting two runs.
func TestPromptsOfRunsAreNobodysWord(t *testing.T) {
	st := newStory(t)
	for _, session := range []string{"s1", "s2", "s3"} {
		st.session = session
		st.start()
		st.prompt("Run the tests.")
		st.shell("pnpm test", "")
		e := st.event(event.PromptSubmitted, event.PromptData{Text: "No, use yarn instead.", Cwd: "/w/shop"})
		e.Run = "run-aaaaaaaaaa"
		st.write(e)
		st.shell("yarn test", "")
		st.end()
	}
	s, _ := st.fold("2026-11-10")
	for _, d := range s.docs {
		if data, ok := DataOf(d); ok && (data.Kind == KindCorrection || data.Kind == KindSaid) || strings.Contains(d.Text, "The user said") {
			t.Errorf("%s: %s", d.ID, d.Text)
		}
	}
}

// exactOf is what a failed call is known by again.
func exactOf(d event.ToolData) string {
	sig, _ := signCall(&d)
	return sig.Exact
}
