package session

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/learn/scopes"
	"reprise/internal/mdfile"
	"reprise/internal/pathname"
	"reprise/internal/recall"
	"reprise/internal/staterepo"
)

// AgentDirVar names the directory of an agent's state, where it is not the one of
// the checkout around the working directory.
const AgentDirVar = "REPRISE_AGENT_DIR"

// entryNames are the files of entries in an agent's state.
var entryNames = [...]string{"changelog.md", "decisions.md", "learnings.md"}

// AgentEntry is what a file of an agent's entries is called in the index.
func AgentEntry(agent, name string) string { return "agent-" + agent + "/" + name }

// agentFiles are the entries of the agents of a project that work on this machine.
// What an agent did is for all to find; what it learnt and decided is its own
// until it is promoted.
func agentFiles(home *config.Home, project string) func() []recall.EntryFile {
	all := filepath.Join(home.Paths.ProjectGlobal(project), "changelog.md")
	return func() []recall.EntryFile {
		var out []recall.EntryFile
		at := staterepo.Checkouts(home.Paths.ProjectDir(project))
		for _, agent := range slices.Sorted(maps.Keys(at)) {
			for _, name := range entryNames {
				out = append(out, recall.EntryFile{
					Name: AgentEntry(agent, name), Path: filepath.Join(at[agent], name), Class: recall.ClassState,
					Parse: func(data []byte) ([]recall.Doc, error) {
						shared, err := durable.Read(all)
						if err != nil && !os.IsNotExist(err) {
							return nil, err
						}
						return agentDocs(agent, data, idsIn(shared)), nil
					},
				})
			}
		}
		return out
	}
}

// idsIn are the ids of the entries of a file, without parsing them.
func idsIn(data []byte) map[string]bool {
	out := map[string]bool{}
	for line := range bytes.Lines(data) {
		if id, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			out[string(bytes.TrimSpace(id))] = true
		}
	}
	return out
}

// agentDocs are the documents of an agent's entries. What is of others, or is in
// the log of all since the last exchange, is there already: a document is of one file.
func agentDocs(agent string, data []byte, shared map[string]bool) []recall.Doc {
	f := mdfile.ParseEntries(data)
	states := mdfile.Resolve(f.Entries)
	var out []recall.Doc
	seen := map[string]bool{}
	for _, e := range f.Entries {
		st := states[e.ID]
		if e.Type == mdfile.TypeTombstone || st.Status == mdfile.StatusRetired || e.Agent != "" && e.Agent != agent || seen[e.ID] || shared[e.ID] {
			continue
		}
		seen[e.ID] = true
		e.Agent = agent
		d := scopes.EntryDoc(e, st)
		if d.Class != recall.ClassState && len(d.ACL) == 0 {
			d.ACL = []string{"agent:" + agent}
			d.Importance -= 0.1 // nobody else has looked at it yet
		}
		out = append(out, d)
	}
	return out
}

// EntryType is the type of the entry that a document was made of, "" for what is
// none of the agents'.
func EntryType(d *recall.Doc) string {
	switch d.Class {
	case recall.ClassState:
		typ, _ := bytes.CutPrefix(d.Data, []byte(scopes.TypeData))
		return string(typ)
	case recall.ClassDecision:
		return mdfile.TypeDecision
	case recall.ClassLearning:
		return mdfile.TypeLearning
	}
	return ""
}

// desk is where the agent that works in a directory has its state, and its name;
// "" where there is none yet. No process is started.
func desk(home *config.Home, env config.Env) (agent, dir string) {
	if home.Project == nil {
		return "", ""
	}
	if dir = env.Get(AgentDirVar); dir == "" {
		dir = config.AgentDir(home.Project, env.Dir)
	}
	if staterepo.NoLink(dir) != nil {
		return "", "" // a committed link must not make one agent of another
	}
	for name, at := range staterepo.Checkouts(home.Paths.ProjectDir(home.Project.Name)) {
		if pathname.Same(at, dir) {
			return name, dir
		}
	}
	return "", ""
}

// entryLog is a file of entries of which a few are wanted: a log may have ten
// thousand, and a session's start has no time to parse them all.
type entryLog struct {
	name, agent string
	data        []byte
}

// readLog reads a file of entries; one that is not there holds none.
func readLog(dir, name, agent string) (*entryLog, error) {
	data, err := readIn(dir, name)
	if err != nil {
		return nil, &fs.PathError{Op: "read state", Path: filepath.Join(dir, name), Err: err}
	}
	return &entryLog{name: name, agent: agent, data: data}, nil
}

// begins says whether a line that begins at data[at] is one that opens an entry, as far
// as can be told without parsing it: a fence with a key of an entry's below it, or the
// heading of the short form.
func begins(data []byte, at int) bool {
	rest := data[at:]
	if bytes.HasPrefix(rest, []byte("## 2")) {
		return true
	}
	line, rest, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || string(bytes.TrimRight(line, "\r")) != "---" {
		return false
	}
	for _, key := range [...]string{"id:", "timestamp:", "type:", "agent:"} {
		if bytes.HasPrefix(rest, []byte(key)) {
			return true
		}
	}
	return false
}

// before is where the last entry begins that begins before end, -1 for none. Whether one
// does begin there is seen when it is parsed.
func before(data []byte, end int) int {
	for end > 0 {
		at := bytes.LastIndex(data[:end], []byte("\n---"))
		from := max(at, 0)
		if i := bytes.LastIndex(data[from:end], []byte("\n## 2")); i >= 0 {
			at = from + i
		}
		if at < 0 {
			break
		}
		if begins(data, at+1) {
			return at + 1
		}
		end = at
	}
	if begins(data, 0) {
		return 0
	}
	return -1
}

// last are the newest entries of the log, at most n, the newest first, that hold
// and are wanted. mark is something that stands in each of them, "" for none: what
// does not have it is not parsed. The log is read from its end, no farther than it has
// to be.
func (l *entryLog) last(n int, mark string, want func(*mdfile.Entry) bool) []mdfile.Entry {
	var out []mdfile.Entry
	for end := len(l.data); end > 0 && len(out) < n; {
		from := end
		if mark != "" { // what comes after the last mark is of no interest
			if from = lastIndex(l.data[:end], []byte(mark)); from < 0 {
				break
			}
			if next := after(l.data, from); next < end {
				end = next
			}
		}
		at := before(l.data, from)
		if at < 0 {
			break
		}
		piece := l.data[at:end]
		end = at
		for _, e := range slices.Backward(mdfile.ParseEntries(piece).Entries) {
			if e.Type == mdfile.TypeTombstone || e.Problem != "" {
				continue
			}
			if e.Agent == "" {
				e.Agent = l.agent
			}
			if want(&e) && !l.replaced(e.ID) && len(out) < n {
				out = append(out, e)
			}
		}
	}
	return out
}

// lastIndex is bytes.LastIndex for what stands far from the end, or nowhere: that looks
// at each byte alone, bytes.Index at many at once.
func lastIndex(data, mark []byte) int {
	for size, end := 4<<10, len(data); ; size *= 2 {
		begin, last := max(end-size, 0), -1
		for at := begin; ; at = last + 1 {
			i := bytes.Index(data[at:min(end+len(mark)-1, len(data))], mark)
			if i < 0 {
				break
			}
			last = at + i
		}
		if last >= 0 || begin == 0 {
			return last
		}
		end = begin
	}
}

// after is where the next entry begins behind at, the log's end for none.
func after(data []byte, at int) int {
	for at < len(data) {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			break
		}
		if at += i + 1; begins(data, at) {
			return at
		}
	}
	return len(data)
}

// replaced says that another entry took the place of one, or a tombstone.
func (l *entryLog) replaced(id string) bool {
	return bytes.Contains(l.data, []byte("supersedes: "+id))
}

// sessionMark and branchMark stand in the evidence of an entry: in which session,
// and on which branch of the code, it was written.
const (
	sessionMark = "session:"
	branchMark  = "branch:"
)

// Whence is the evidence of an entry that is written in a session, on a branch of
// the code; each may be "".
func Whence(session, branch string) []string {
	var out []string
	for _, m := range [...][2]string{{sessionMark, session}, {branchMark, branch}} {
		if m[1] != "" && !strings.ContainsAny(m[1], "\r\n\x00") {
			out = append(out, m[0]+m[1])
		}
	}
	return out
}

// branchOf is the branch that an entry was written on, "" where that is not known.
func branchOf(e *mdfile.Entry) string {
	for _, m := range e.Evidence {
		if b, ok := strings.CutPrefix(m, branchMark); ok {
			return b
		}
	}
	return ""
}

// newestFirst puts entries in order of time, the newest first.
func newestFirst(list []mdfile.Entry) {
	slices.SortStableFunc(list, func(a, b mdfile.Entry) int { return b.Time.Compare(a.Time) })
}
