package scopes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn"
)

// story writes logs as a test wants them: with the times and ids that it says.
type story struct {
	t    testing.TB
	dir  string
	n    int
	at   time.Time
	last map[string]string // file → hash of its last line
	// who writes
	host, project, session, client string
}

func newStory(t testing.TB) *story {
	return &story{
		t: t, dir: t.TempDir(), at: time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC), last: map[string]string{}, host: "desk", project: "shop", session: "s1", client: "claude",
	}
}

func (s *story) logs() []learn.Log {
	return []learn.Log{{Project: "shop", Dir: filepath.Join(s.dir, "shop")}, {Project: "site", Dir: filepath.Join(s.dir, "site")}, {Dir: filepath.Join(s.dir, "global")}}
}

func (s *story) event(typ event.Type, data any) event.Event {
	s.n++
	s.at = s.at.Add(7 * time.Second)
	raw, err := json.Marshal(data)
	if err != nil {
		s.t.Fatal(err)
	}
	scope := event.ScopeSession
	if s.session == "" {
		scope = event.ScopeProject
	}
	return event.Event{
		V: event.Version, ID: fmt.Sprintf("%08x-%04x-7000-8000-%012x", s.at.Unix(), s.n&0xffff, s.n), TS: s.at, Scope: scope, Project: s.project,
		Session: s.session, Client: s.client, Type: typ, Data: raw,
	}
}

// write appends an event as it is to the file of its month and of the host.
func (s *story) write(e event.Event) event.Event {
	dir := filepath.Join(s.dir, "global")
	if e.Project != "" {
		dir = filepath.Join(s.dir, e.Project)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(dir, e.TS.Format("2006-01")+"."+s.host+".jsonl")
	e.Prev = s.last[file]
	line, err := json.Marshal(e)
	if err != nil {
		s.t.Fatal(err)
	}
	sum := sha256.Sum256(line)
	s.last[file] = hex.EncodeToString(sum[:])
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil {
		s.t.Fatal(err)
	}
	return e
}

func (s *story) add(typ event.Type, data any) event.Event { return s.write(s.event(typ, data)) }

func (s *story) start() {
	s.add(event.SessionStarted, event.SessionData{Source: "startup", Cwd: "/w/shop"})
}
func (s *story) end() { s.add(event.SessionEnded, event.SessionData{Reason: "other"}) }
func (s *story) prompt(text string) event.Event {
	return s.add(event.PromptSubmitted, event.PromptData{Text: text, Cwd: "/w/shop"})
}
func (s *story) answer(text string) { s.add(event.ResponseCompleted, event.ResponseData{Text: text}) }

func (s *story) shell(command, failure string) event.Event {
	in, _ := json.Marshal(map[string]string{"command": command})
	d := event.ToolData{Tool: "shell", Name: "Bash", Input: in, Cwd: "/w/shop"}
	if failure == "" {
		return s.add(event.ToolSucceeded, d)
	}
	code := 1
	d.Error, d.ExitCode = failure, &code
	return s.add(event.ToolFailed, d)
}

func clock(day string) func() time.Time {
	t, err := time.Parse("2006-01-02", day)
	if err != nil {
		panic(err)
	}
	return func() time.Time { return t.Add(12 * time.Hour) }
}
