package learn

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/recall"
)

// fixAt is failFix in a directory outside any project, which the session says
// when it begins; an empty one is never said.
func (s *story) fixAt(session, dir, command string, at time.Time) {
	s.session, s.project, s.at = session, "", at
	if dir != "" {
		s.add(event.SessionStarted, event.SessionData{Source: "startup", Cwd: dir})
	}
	s.add(event.PromptSubmitted, event.PromptData{Text: "Run the tests of " + session, Cwd: dir})
	shell := func(command, failure string) {
		data := shellData(command, failure, nil)
		typ := event.ToolSucceeded
		if failure != "" {
			typ = event.ToolFailed
		}
		if data.Cwd = dir; dir != "" {
			data.Cwd = dir + "/below" // where it went later does not matter
		}
		s.add(typ, data)
	}
	shell("npm test", moduleMissing)
	shell(command, "")
	shell("npm test", "")
	s.answer("Done with " + session + ".")
}

// What was seen outside any project is of the directory that its session began
// in: readers of that directory are told, and nobody else.
func TestOutsideProjectsIsAPlace(t *testing.T) {
	s := newStory(t)
	s.fixAt("m1", "/w/misc/", "npm ci", d(10, 1))
	s.fixAt("m2", "/w/misc", "npm ci", d(10, 2))
	s.fixAt("n1", "", "npm cache clean", d(10, 3))
	st, o := s.fold("2026-11-03")
	for _, doc := range st.docs {
		if doc.Session == "n1" {
			if doc.Project != "" || doc.Scope != "global" {
				t.Errorf("a session that never says where it is: %+v", doc)
			}
			continue
		}
		if doc.Project != "dir:/w/misc" || doc.Scope != "project" {
			t.Errorf("%s %s of %q, %s", doc.ID, doc.Title, doc.Project, doc.Scope)
		}
	}
	if p := st.ofKind(KindPattern); len(p) != 1 {
		t.Errorf("patterns: %+v", p)
	}
	for _, x := range []struct {
		who  recall.Reader
		want bool
	}{
		{recall.Reader{Project: "shop"}, false},
		{recall.Reader{}, false},
		{recall.Reader{Places: []string{"dir:/w/other"}}, false},
		{recall.Reader{Places: []string{"dir:/w/misc"}}, true},
		{recall.Reader{Project: "misc", Places: []string{"dir:/w/x", "dir:/w/misc"}}, true}, // it was made a project since
	} {
		k, err := o.KnownFix(context.Background(), x.who, shellData("npm test", moduleMissing, nil))
		told := false
		for _, r := range k.Fixes {
			told = told || strings.Contains(r.Snippet, "npm ci")
		}
		if err != nil || told != x.want {
			t.Errorf("%+v: %+v, %v", x.who, k.Fixes, err)
		}
	}
	err := o.SessionStats(context.Background(), func(x Stats) bool {
		if x.Project != "" {
			t.Errorf("a place is counted as the project %q", x.Project)
		}
		return true
	})
	if err != nil {
		t.Error(err)
	}
}

// A directory and the project that was made of it are not two projects, and no
// number of directories is any.
func TestPlacesAreNoProjects(t *testing.T) {
	s := newStory(t)
	s.fixAt("b1", "/w/site", "npm ci", d(10, 1))
	s.fixAt("b2", "/w/else", "npm ci", d(10, 2))
	s.fixAt("b3", "", "npm ci", d(10, 3))
	s.failFix("b4", "site", "npm ci", d(10, 4))
	s.failFix("b5", "site", "npm ci", d(10, 5))
	st, o := s.fold("2026-11-03")
	for _, p := range st.ofKind(KindPattern) {
		if data, _ := DataOf(p); p.Project == "" || data.Projects > 1 {
			t.Errorf("%q counts %d projects: %s", p.Project, data.Projects, p.Text)
		}
	}
	s.failFix("b6", "shop", "npm ci", d(10, 6))
	finish(t, o)
	global := 0
	for _, p := range st.ofKind(KindPattern) {
		if data, _ := DataOf(p); p.Project == "" {
			global++
			if data.Projects != 2 {
				t.Errorf("%d projects", data.Projects)
			}
		}
	}
	if global != 1 {
		t.Errorf("%d patterns of two projects", global)
	}
}

// A session has its own turns before it: neither its prompts nor its failures
// bring them back, and those of any other session are as ever.
func TestOwnTurnsAreNotTold(t *testing.T) {
	s := newStory(t)
	s.failFix("s1", "shop", "npm ci", d(10, 1))
	options := Options{Logs: s.logs(), Now: clock("2026-11-03")}
	x := recall.Open(recall.Options{IndexFile: filepath.Join(t.TempDir(), "index.db"), MemoryDir: t.TempDir(), Now: options.Now})
	defer x.Close()
	options.Index = x
	o := New(options)
	finish(t, o)
	for _, c := range []struct {
		session, client string
		want            bool
	}{{"s1", "claude", false}, {"s2", "claude", true}, {"s1", "codex", true}} {
		who := recall.Reader{Project: "shop", Session: c.session, Client: c.client}
		a, err := x.Recall(context.Background(), recall.Question{Text: "run the tests npm ci left-pad module", Reader: who, NotOwn: true, Elsewhere: true})
		if err != nil || (len(a.Results) > 0) != c.want || len(a.Elsewhere) > 0 {
			t.Errorf("%+v, prompt: %+v %v", c, a, err)
		}
		k, err := o.KnownFix(context.Background(), who, shellData("npm test", moduleMissing, nil))
		if err != nil || (len(k.Fixes) > 0) != c.want {
			t.Errorf("%+v, failure: %+v %v", c, k, err)
		}
	}
	// What it began with before the client forgot it is told again.
	a, err := x.Top(context.Background(), recall.Question{Reader: recall.Reader{Project: "shop", Session: "s1", Client: "claude"}})
	if err != nil || len(a.Results) != 1 || a.Results[0].Class != recall.ClassSummary {
		t.Errorf("at the start: %+v %v", a, err)
	}
}
