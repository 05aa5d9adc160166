package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/clip"
	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/mdfile"
	"reprise/internal/recall"
	"reprise/internal/staterepo"
)

// Limits of what is told of an agent's state.
const (
	mostLog       = 5
	mostDecisions = 8
	mostLearnings = 10
	mostHandoffs  = 5
	mostText      = 4000 // characters of scratch.md, context.md and a branch's file
)

// Noted is an entry as it is told.
type Noted struct {
	ID     string   `json:"id"`
	Time   string   `json:"time"` // RFC 3339, UTC
	Agent  string   `json:"agent"`
	Type   string   `json:"type"`
	Status string   `json:"status,omitempty"`
	Text   string   `json:"text"`
	Over   []string `json:"over,omitempty"`
	Why    string   `json:"because,omitempty"`
	Branch string   `json:"branch,omitempty"` // of the code
	To     string   `json:"to,omitempty"`     // whom a handoff is for; empty = anyone
	// Shared says that it is the project's; else it is the agent's own.
	Shared bool `json:"shared"`
}

// State is where the work of an agent stands.
type State struct {
	Project string  `json:"project"`
	Agent   string  `json:"agent"`      // "" = none has state here yet
	Dir     string  `json:"directory"`  // of its state
	Branch  string  `json:"branch"`     // of the code, "" outside git
	Focus   string  `json:"focus"`      // context.md
	Scratch string  `json:"scratch"`    // scratch.md
	About   string  `json:"on_branch"`  // what is known of the branch
	Log     []Noted `json:"recent_log"` // the newest last
	// Decisions are those of this branch, then the newest of all, the newest first.
	Decisions []Noted `json:"decisions"`
	// Learnings are those of this session.
	Learnings []Noted `json:"session_learnings"`
	// Open are the agent's learnings and decisions that are not the project's yet.
	Open     []Noted `json:"unpromoted"`
	Handoffs []Noted `json:"handoffs_waiting"`
	// Last is when the agent wrote its last entry, zero for never.
	Last time.Time `json:"-"`
}

// Asking says for whom the state is looked up.
type Asking struct {
	Reader  recall.Reader
	Session string    // id of the client's session, "" where it is not known
	Since   time.Time // what was learnt since then is this session's, too; zero = by the id alone
}

// State looks up where the work of the agent stands that works here. It writes
// nothing and starts no process.
func (m *Memory) State(ctx context.Context, ask Asking) (State, error) {
	home := m.o.Home
	st := State{Log: []Noted{}, Decisions: []Noted{}, Learnings: []Noted{}, Open: []Noted{}, Handoffs: []Noted{}}
	if home.Project == nil {
		return st, nil
	}
	st.Project, st.Branch = home.Project.Name, config.CodeBranch(m.o.Env.Dir)
	st.Agent, st.Dir = desk(home, m.o.Env)
	dir := home.Paths.ProjectDir(st.Project)
	v := &stateView{ask: ask, st: &st, global: home.Paths.ProjectGlobal(st.Project), read: map[string]*entryLog{}}
	if err := ctx.Err(); err != nil {
		return st, err
	}
	if err := v.own(); err != nil {
		return st, fmt.Errorf("look up state: %w", err)
	}
	if err := v.decisions(); err != nil {
		return st, fmt.Errorf("look up state: %w", err)
	}
	if st.Branch != "" {
		var err error
		if st.About, err = readText(v.global, filepath.FromSlash(staterepo.BranchFile(st.Branch))); err != nil {
			return st, fmt.Errorf("look up state: %w", err)
		}
	}
	if err := v.handoffs(dir); err != nil {
		return st, fmt.Errorf("look for handoffs: %w", err)
	}
	return st, nil
}

// stateView collects a State.
type stateView struct {
	ask    Asking
	st     *State
	global string // directory of what all share
	logs   []*entryLog
	read   map[string]*entryLog // by path: a log may have megabytes, and is asked for more than once
}

// log is a file of entries, as [readLog] reads it.
func (v *stateView) log(dir, name, agent string) (*entryLog, error) {
	path := filepath.Join(dir, name)
	if l := v.read[path]; l != nil {
		return l, nil
	}
	l, err := readLog(dir, name, agent)
	if err == nil {
		v.read[path] = l
	}
	return l, err
}

// own is what the agent has for itself.
func (v *stateView) own() (err error) {
	st := v.st
	if st.Agent == "" {
		return nil
	}
	if st.Focus, err = readText(st.Dir, "context.md"); err != nil {
		return err
	}
	if st.Scratch, err = readText(st.Dir, "scratch.md"); err != nil {
		return err
	}
	promoted, err := readGlobal(v.global)
	if err != nil {
		return err
	}
	var log, open []mdfile.Entry
	for _, name := range entryNames {
		l, err := v.log(st.Dir, name, st.Agent)
		if err != nil {
			return err
		}
		v.logs = append(v.logs, l)
		log = append(log, l.last(mostLog, "", anyEntry)...)
		if name == "changelog.md" {
			continue
		}
		lasting := l.last(200, "", func(e *mdfile.Entry) bool {
			return (e.Type == mdfile.TypeLearning || e.Type == mdfile.TypeDecision) && e.Agent == st.Agent
		})
		for _, e := range lasting {
			if e.Type == mdfile.TypeLearning && v.ofSession(&e) && len(st.Learnings) < mostLearnings {
				st.Learnings = append(st.Learnings, noted(e, false))
			}
			if !bytes.Contains(promoted, []byte("entry:"+e.ID)) && !bytes.Contains(promoted, []byte("id: "+e.ID)) {
				open = append(open, e)
			}
		}
	}
	newestFirst(log)
	newestFirst(open)
	if len(log) > 0 {
		st.Last = log[0].Time
	}
	for _, e := range slices.Backward(log[:min(len(log), mostLog)]) {
		st.Log = append(st.Log, noted(e, false))
	}
	for _, e := range open[:min(len(open), mostLearnings)] {
		st.Open = append(st.Open, noted(e, false))
	}
	return nil
}

func anyEntry(*mdfile.Entry) bool { return true }

func (v *stateView) ofSession(e *mdfile.Entry) bool {
	return v.ask.Session != "" && slices.Contains(e.Evidence, sessionMark+v.ask.Session) || !v.ask.Since.IsZero() && !e.Time.Before(v.ask.Since)
}

// readGlobal is what all agents share, as bytes to look for ids in.
func readGlobal(dir string) ([]byte, error) {
	var all []byte
	for _, name := range [...]string{"learnings.md", "decisions.md"} {
		data, err := readIn(dir, name)
		if err != nil {
			return nil, err
		}
		all = append(append(all, data...), '\n')
	}
	return all, nil
}

// decisions are those of the branch, then the newest that are of no other one.
func (v *stateView) decisions() error {
	st := v.st
	var of, others []mdfile.Entry
	shared := map[string]bool{}
	global, err := v.log(v.global, "decisions.md", "")
	if err != nil {
		return err
	}
	logs := []*entryLog{global}
	for _, l := range v.logs {
		if l.name == "decisions.md" {
			logs = append(logs, l)
		}
	}
	seen := map[string]bool{}
	for _, l := range logs {
		want := func(e *mdfile.Entry) bool {
			return e.Type == mdfile.TypeDecision && v.ask.Reader.MayRead(e.ACL) && !seen[e.ID] && !seen["entry:"+e.ID]
		}
		var list []mdfile.Entry
		if st.Branch != "" {
			list = l.last(mostDecisions, branchMark+st.Branch, func(e *mdfile.Entry) bool { return want(e) && branchOf(e) == st.Branch })
			of = append(of, list...)
		}
		rest := l.last(mostDecisions, "", func(e *mdfile.Entry) bool { return want(e) && branchOf(e) != st.Branch })
		others = append(others, rest...)
		for _, e := range append(list, rest...) {
			// What was promoted is the project's, and the agent's own of which it
			// was made is not told beside it.
			seen[e.ID], seen[e.Source], shared[e.ID] = true, true, l == global
		}
	}
	newestFirst(of)
	newestFirst(others)
	for _, e := range append(of, others...) {
		if len(st.Decisions) < mostDecisions {
			st.Decisions = append(st.Decisions, noted(e, shared[e.ID]))
		}
	}
	return nil
}

// handoffs are those that wait for the agent: of agents on this machine by their
// files, of others by what the last exchange brought.
func (v *stateView) handoffs(dir string) error {
	list, err := v.handoffsHere(dir)
	if err != nil {
		return err
	}
	newestFirst(list)
	for _, e := range list {
		if e.Agent != v.st.Agent && v.ask.Reader.MayRead(e.ACL) && len(v.st.Handoffs) < mostHandoffs {
			v.st.Handoffs = append(v.st.Handoffs, noted(e, true))
		}
	}
	return nil
}

func (v *stateView) handoffsHere(dir string) ([]mdfile.Entry, error) {
	at := staterepo.Checkouts(dir)
	at[""] = v.global
	var logs []*entryLog
	for _, agent := range slices.Sorted(maps.Keys(at)) {
		l, err := v.log(at[agent], "changelog.md", agent)
		if err != nil {
			return nil, err
		}
		logs = append(logs, l)
	}
	var out []mdfile.Entry
	for _, l := range logs {
		for _, e := range l.last(50, "type: "+mdfile.TypeHandoff, func(e *mdfile.Entry) bool {
			return e.Type == mdfile.TypeHandoff && (e.To == "" || e.To == v.st.Agent)
		}) {
			taken := slices.ContainsFunc(logs, func(by *entryLog) bool {
				return len(by.last(1, e.ID, func(s *mdfile.Entry) bool {
					return s.Type == mdfile.TypeStart && slices.Contains(s.DependsOn, e.ID)
				})) > 0
			})
			if !taken && !slices.ContainsFunc(out, func(o mdfile.Entry) bool { return o.ID == e.ID }) {
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// noted is an entry as it is told.
func noted(e mdfile.Entry, shared bool) Noted {
	n := Noted{ID: e.ID, Time: e.Time.UTC().Format(time.RFC3339), Agent: cmp.Or(e.Agent, "user"), Type: e.Type, Text: e.Text, Over: e.Alternatives, Why: e.Rationale, Branch: branchOf(&e), To: e.To, Shared: shared}
	if e.Decision != "" {
		n.Text = strings.TrimSpace(e.Decision + "\n" + e.Text)
	}
	if e.Status != mdfile.StatusActive {
		n.Status = e.Status
	}
	n.Text = clip.Runes(n.Text, mostText)
	return n
}

// readIn reads a file of a directory, nothing where it is missing. A link that leads out of the
// directory, as whoever writes in a repository can leave one there, is an error: what is told
// to an agent goes to its model.
func readIn(dir, name string) ([]byte, error) {
	d, err := durable.OpenDir(dir)
	var data []byte
	if err == nil {
		defer d.Close()
		data, err = d.ReadFile(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// readText is a file of an agent's, "" when it is missing.
func readText(dir, name string) (string, error) {
	data, err := readIn(dir, name)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(data), "\uFFFD"))
	return clip.Runes(text, mostText), nil
}
