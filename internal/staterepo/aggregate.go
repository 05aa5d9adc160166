package staterepo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"reprise/internal/clip"
	"reprise/internal/mdfile"
)

const logFile = "changelog.md"

// The table of agents stands between these lines, above the entries of
// changelog.md on global. It is worked out from the entries, and so is the same
// wherever they are; a merge leaves it out and makes it anew.
const (
	tableBegin = "<!-- reprise: agents -->"
	tableEnd   = "<!-- /reprise: agents -->"
)

// firstEntry is where the first entry of a log begins, its length where it has none.
// The table stands at the top, and of a long log no more than that is read.
func firstEntry(data []byte) int {
	for n := tailSize; ; n *= 4 {
		n = min(n, len(data))
		f := mdfile.ParseEntries(data[:n])
		switch {
		case f.Foreign:
			return len(data)
		case len(f.Entries) > 1 || len(f.Entries) > 0 && n == len(data): // else it may be cut off
			return f.Entries[0].Start
		case n == len(data):
			return n
		}
	}
}

// withoutTable is a log without the table of agents.
func withoutTable(data []byte) []byte {
	if !bytes.Contains(data, []byte(tableBegin)) {
		return data
	}
	head := firstEntry(data) // what stands in an entry is its own
	for at := 0; ; {
		i := bytes.Index(data[at:head], []byte(tableBegin))
		if i < 0 {
			return data
		}
		i += at
		at = i + len(tableBegin)
		if i > 0 && data[i-1] != '\n' {
			continue
		}
		end := at
		if j := bytes.Index(data[i:head], []byte(tableEnd)); j >= 0 {
			end = i + j + len(tableEnd)
		}
		rest := bytes.TrimLeft(data[end:], "\r\n")
		out := append(bytes.TrimRight(bytes.Clone(data[:i]), "\r\n"), '\n')
		if i == 0 {
			out = nil
		} else if len(rest) > 0 {
			out = append(out, '\n')
		}
		cut := len(data) - len(out) - len(rest)
		data, at, head = append(out, rest...), len(out), max(len(out), head-cut)
	}
}

// withTable is a log with the table of agents at its top.
func withTable(data []byte) []byte {
	data = withoutTable(data)
	f := mdfile.ParseEntries(data)
	if f.Foreign {
		return data
	}
	return tabled(data, agentTable(f.Entries))
}

// tabled puts a table at the top of a log that has none.
func tabled(data []byte, table string) []byte {
	if table == "" {
		return data
	}
	head := 0
	if bytes.HasPrefix(data, []byte("# ")) {
		head = len(data)
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			head = i + 1
		}
	}
	out := bytes.Clone(data[:head])
	if head > 0 && out[head-1] != '\n' {
		out = append(out, '\n')
	}
	if head > 0 {
		out = append(out, '\n')
	}
	out = append(out, table...)
	if rest := bytes.TrimLeft(data[head:], "\r\n"); len(rest) > 0 {
		out = append(append(out, '\n'), rest...)
	}
	return out
}

func agentTable(entries []mdfile.Entry) string {
	states := mdfile.Resolve(entries)
	last := map[string]mdfile.Entry{}
	for _, e := range entries {
		if e.Agent == "" || e.Agent == "user" || e.Type == mdfile.TypeTombstone || states[e.ID].Status == mdfile.StatusRetired {
			continue
		}
		if was, ok := last[e.Agent]; !ok || cmp.Or(e.Time.Compare(was.Time), cmp.Compare(e.ID, was.ID)) > 0 {
			last[e.Agent] = e
		}
	}
	if len(last) == 0 {
		return ""
	}
	for _, e := range entries { // who has another name now is no second agent
		old, renamed := strings.CutPrefix(e.Source, renamedSource)
		if was, ok := last[old]; renamed && ok && old != e.Agent && was.Time.Before(e.Time) {
			delete(last, old)
		}
	}
	var list []mdfile.Entry
	for _, e := range last {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b mdfile.Entry) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Agent, b.Agent))
	})
	var b strings.Builder
	b.WriteString(tableBegin + "\n| Agent | Status | Last activity | On |\n|---|---|---|---|\n")
	for _, e := range list {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", mdfile.EscapeCell(e.Agent), mdfile.EscapeCell(StatusOf(e)), e.Time.UTC().Format("2006-01-02 15:04"), mdfile.EscapeCell(shortTitle(e, 80)))
	}
	b.WriteString(tableEnd + "\n")
	return b.String()
}

// StatusOf is how far an agent has come by an entry of its own.
func StatusOf(e mdfile.Entry) string {
	switch {
	case e.Type == mdfile.TypeHandoff: // its status is that of what was handed on: for who did so it is over
		return "completed"
	case slices.Contains(Statuses(), e.Status):
		return e.Status
	case e.Type == mdfile.TypeEnd:
		return "completed"
	}
	return "in_progress"
}

func shortTitle(e mdfile.Entry, most int) string { return clip.Runes(clip.Line(e.Title()), most) }

// mergeLog unites two logs; the table, where one of them has it, is made anew.
func mergeLog(base, a, b []byte) []byte {
	x, y := withoutTable(a), withoutTable(b)
	m, here, there := mergeSettled(base, x, y)
	if len(x) == len(a) && len(y) == len(b) {
		return m
	}
	entries := slices.Concat(here, there)
	if slices.ContainsFunc(entries, func(e mdfile.Entry) bool { return e.Edited || e.Problem != "" }) {
		return withTable(m) // what such an entry comes to is seen in the whole alone
	}
	return tabled(m, agentTable(entries))
}

// Aggregate brings what the agents logged, those of other machines too as far as
// they were fetched, into changelog.md on global, with a table of who is at what. It
// says whether something came.
func (r *Repo) Aggregate(ctx context.Context) (Saved, bool, error) {
	agents, err := r.Agents(ctx)
	if err != nil {
		return Saved{}, false, fmt.Errorf("aggregate the log: %w", err)
	}
	var logs [][]byte
	for _, a := range agents {
		files, err := r.agentFiles(ctx, a, logFile)
		if err != nil {
			return Saved{}, false, fmt.Errorf("aggregate the log of %s: %w", a.Name, err)
		}
		logs = append(logs, files[logFile])
	}
	t := r.Global()
	d, c, err := t.open(ctx)
	if err != nil {
		return Saved{}, false, fmt.Errorf("aggregate the log: %w", err)
	}
	defer d.Close()
	defer c.Abort()
	old, err := d.ReadFile(logFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Saved{}, false, fmt.Errorf("aggregate the log: %w", err)
	}
	now := aggregated(old, logs)
	if bytes.Equal(now, old) {
		return Saved{}, false, nil
	}
	if err := d.WriteFile(logFile, now, filePerm); err != nil {
		return Saved{}, false, fmt.Errorf("aggregate the log: %w", err)
	}
	t.wrote(logFile)
	s, err := t.save(ctx, d, "reprise", "Aggregate the log")
	return s, true, err
}

// aggregated is the log of all with what these logs have; old, where they have
// nothing new.
func aggregated(old []byte, logs [][]byte) []byte {
	whole := mdfile.ParseEntries(old)
	if whole.Foreign {
		return old
	}
	have := map[string]bool{}
	for _, e := range whole.Entries {
		have[e.ID] = true
	}
	out, changed := withoutTable(old), false
	for _, log := range logs {
		var add []byte
		f := mdfile.ParseEntries(log)
		if f.Foreign {
			continue
		}
		for _, e := range f.Entries {
			if have[e.ID] || e.Problem != "" || e.Edited && !e.Short {
				continue
			}
			have[e.ID] = true
			if len(add) > 0 {
				add = append(add, '\n')
			}
			add = append(append(add, bytes.TrimRight(f.Bytes()[e.Start:e.End], "\r\n")...), '\n')
		}
		if len(add) > 0 {
			out, changed = mdfile.MergeEntries(out, add), true
		}
	}
	if !changed {
		return old
	}
	if !bytes.HasPrefix(out, []byte("#")) && len(old) == 0 {
		out = append([]byte("# Changelog\n\n"), out...)
	}
	return withTable(out)
}

// agentFiles are files of an agent's state: from disk where it works on this
// machine, else from its branch as it was last fetched.
func (r *Repo) agentFiles(ctx context.Context, a AgentInfo, names ...string) (map[string][]byte, error) {
	out := map[string][]byte{}
	if a.Dir != "" {
		t := &Tree{r: r, Branch: agentPrefix + a.Name, Dir: a.Dir}
		for _, name := range names {
			text, err := t.Read(name)
			if errors.Is(err, fs.ErrNotExist) {
				a.Dir = "" // taken away since it was listed: what it held was committed before
				return r.agentFiles(ctx, a, names...)
			}
			if err != nil {
				return nil, err
			}
			out[name] = []byte(text)
		}
		return out, nil
	}
	var ask []string
	for _, name := range names {
		ask = append(ask, a.Commit+":"+name)
	}
	list, err := r.git.Objects(ctx, ask...)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		out[name] = list[i].Data
	}
	return out, nil
}

// Member is one agent as the others see it.
type Member struct {
	Agent  string    `json:"agent"`
	Status string    `json:"status,omitempty"`       // pending, in_progress, completed or blocked; "" where it has logged nothing
	Last   time.Time `json:"last_activity,omitzero"` // zero, and left out, where it has logged nothing
	On     string    `json:"on"`                     // what it is at: context.md in one line, else its last entry
	// Branches are those of the code that it was last seen on and that are not done.
	Branches []string  `json:"branches"`
	Open     []Handoff `json:"handoffs_open"` // that it left and nobody took
	Waiting  int       `json:"waiting"`       // handoffs that are for it alone
	Entries  int       `json:"entries"`
	Here     bool      `json:"here"` // works on this machine
	Dir      string    `json:"dir,omitempty"`
	// Nowhere says that it works in no checkout any more, on no machine, as far as the
	// remote was told. Left is how many of its learnings and decisions are not the
	// project's then.
	Nowhere bool `json:"nowhere,omitempty"`
	Left    int  `json:"unpromoted,omitempty"`
	// Consolidated says that all of it that is to last is on global.
	Consolidated bool `json:"consolidated,omitempty"`
}

// Over says that nothing is to be expected of an agent any more, and nothing of it is
// left to be looked at.
func (m *Member) Over() bool { return m.Nowhere && m.Consolidated && len(m.Open) == 0 }

// Team is who works on the project and on what, the latest first, as far as the
// remote was fetched.
func (r *Repo) Team(ctx context.Context) ([]Member, error) {
	agents, err := r.Agents(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for the team: %w", err)
	}
	all, err := r.Log(ctx, Everyone)
	if err != nil {
		return nil, fmt.Errorf("look for the team: %w", err)
	}
	branches, err := r.Branches()
	if err != nil {
		return nil, fmt.Errorf("look for the team: %w", err)
	}
	claims, err := r.claims(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for the team: %w", err)
	}
	called, err := r.names(ctx, agents, all)
	if err != nil {
		return nil, fmt.Errorf("look for the team: %w", err)
	}
	handoffs := handoffsIn(all, "", claims, called)
	shared, err := r.promoted()
	if err != nil {
		return nil, fmt.Errorf("look for the team: %w", err)
	}
	var out []Member
	for _, a := range agents {
		if err := r.follow(ctx, &a); err != nil {
			return nil, fmt.Errorf("look for the team: %w", err)
		}
		m := Member{Agent: a.Name, Here: a.Dir != "", Dir: a.Dir, Nowhere: a.Ended, Consolidated: a.Consolidated, Branches: []string{}, Open: []Handoff{}}
		for _, e := range all {
			if called.of(&e) == a.Name {
				m.Entries++
				m.Last, m.Status, m.On = e.Time, StatusOf(e.Entry), shortTitle(e.Entry, 120)
				if e.Type == mdfile.TypeHandoff {
					m.On = "" // it was given away
				}
			}
		}
		files, err := r.agentFiles(ctx, a, "context.md")
		if err != nil {
			return nil, fmt.Errorf("look for the team: %w", err)
		}
		for line := range strings.Lines(string(files["context.md"])) {
			if line = strings.TrimLeft(strings.TrimSpace(line), "#- "); line != "" {
				m.On = shortTitle(mdfile.Entry{Text: line}, 120)
				break
			}
		}
		if m.Nowhere {
			own, err := r.agentLog(ctx, a)
			if err != nil {
				return nil, fmt.Errorf("look for the team: %w", err)
			}
			m.Left = len(slices.DeleteFunc(own, shared.has))
		}
		for _, b := range branches {
			if called.called(b.Agent) == a.Name && b.Status != "completed" {
				m.Branches = append(m.Branches, b.Branch)
			}
		}
		for _, h := range handoffs {
			switch {
			case h.AcceptedBy != "":
			case called.of(&h.LogEntry) == a.Name:
				m.Open = append(m.Open, h)
			case h.To == a.Name:
				m.Waiting++
			}
		}
		out = append(out, m)
	}
	slices.SortStableFunc(out, func(a, b Member) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Agent, b.Agent)) })
	return out, nil
}
