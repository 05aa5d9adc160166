package staterepo

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/git"
	"reprise/internal/mdfile"
)

// The model is the branch global of several clones and a remote, in memory, and of each
// agent what it wrote, whether it was promoted, and where its branch is kept, with the
// real merging, settling, bringing together and looking for what is left: what differs
// from the real thing is only where commits are kept. The same operations run on real git
// in TestModelOnGit.

type modelCommit struct {
	parents []int
	files   map[string]git.Entry
}

type model struct {
	t       *testing.T
	r       *rand.Rand
	blobs   map[string][]byte
	commits []modelCommit
	remote  int
	clones  []*modelClone
	now     time.Time
	n       int
	entries map[string]string // id of each acknowledged entry → its text
	lines   map[string]bool   // acknowledged lines of plan.md
	desks   []*modelDesk
	there   map[string]map[string]string // the remote's branches of agents
	kept    map[string][]map[string]string
}

// modelDesk is an agent's branch on the clone that it works on.
type modelDesk struct {
	name  string
	clone *modelClone
	disk  map[string]string // nil once gc took it away
	done  map[string]string // as it was when it was consolidated
	works bool
	wrote map[string]string // id of each acknowledged entry → its type
}

type modelClone struct {
	head int
	disk map[string]string
}

func newModel(t *testing.T, seed uint64, clones int) *model {
	m := &model{t: t, r: rand.New(rand.NewPCG(seed, 6)), blobs: map[string][]byte{}, now: at0, entries: map[string]string{}, lines: map[string]bool{}}
	m.commits = []modelCommit{{files: map[string]git.Entry{}}}
	m.there, m.kept = map[string]map[string]string{}, map[string][]map[string]string{}
	for range clones {
		m.clones = append(m.clones, &modelClone{disk: map[string]string{}})
	}
	for i := 0; i < 5 && clones > 0; i++ {
		m.desks = append(m.desks, &modelDesk{name: fmt.Sprintf("agent%d", i), clone: m.clones[i%clones], disk: map[string]string{}, works: true, wrote: map[string]string{}})
	}
	return m
}

// desk does one operation of an agent's.
func (m *model) desk(d *modelDesk) {
	switch op := m.r.IntN(10); {
	case d.disk == nil: // taken away; one of that name begins anew
		if m.r.IntN(4) == 0 {
			d.disk, d.done, d.works = map[string]string{}, nil, true
		}
	case op < 5 && d.works:
		kind := [...][2]string{{logFile, mdfile.TypeImplement}, {"learnings.md", mdfile.TypeLearning}, {"decisions.md", mdfile.TypeDecision}}[m.r.IntN(3)]
		m.n++
		e := mdfile.Entry{Type: kind[1], Agent: d.name, Time: m.tick(), Text: fmt.Sprintf("Of %s, number %d.", d.name, m.n)}
		e, raw := e.Render()
		d.disk[kind[0]] = string(mdfile.ParseEntries([]byte(d.disk[kind[0]])).WithEntry(raw))
		d.wrote[e.ID] = kind[1]
	case op < 6 && d.works:
		d.works = false
	case op < 6:
		d.works = true
	case op < 8:
		m.promote(d)
	case op < 9 && !d.works:
		m.collect(d)
	default:
		m.aggregate(d.clone)
		m.save(d.clone)
	}
}

func logFiles(disk map[string]string) map[string][]byte {
	out := map[string][]byte{}
	for _, name := range entryFiles() {
		out[name] = []byte(disk[name])
	}
	return out
}

// left are an agent's entries that are to last and are not on global, as its clone has it.
func (m *model) left(d *modelDesk) []LogEntry {
	var all []mdfile.Entry
	for _, name := range entryFiles() {
		all = append(all, mdfile.ParseEntries([]byte(d.clone.disk[name])).Entries...)
	}
	return slices.DeleteFunc(logOf(agentPrefix+d.name, logFiles(d.disk)), promotedIn(all).has)
}

// promote gives some of what is left to all; where nothing is, the branch is consolidated.
func (m *model) promote(d *modelDesk) {
	left := m.left(d)
	for _, e := range left {
		if m.r.IntN(3) == 0 {
			return // killed, or not all were chosen
		}
		shared := e.Entry
		shared.Source, shared.Time, shared.Parent = "entry:"+e.ID, m.tick(), ""
		shared, raw := shared.Render()
		d.clone.disk[e.File] = string(mdfile.ParseEntries([]byte(d.clone.disk[e.File])).WithEntry(raw))
		m.save(d.clone)
		m.entries[shared.ID] = shared.Title()
	}
	d.done = maps.Clone(d.disk)
}

// collect is gc of one branch, which may be killed after each of its steps.
func (m *model) collect(d *modelDesk) {
	if d.done == nil || !maps.Equal(d.done, d.disk) {
		return
	}
	m.aggregate(d.clone) // as each exchange does, and the agent's end
	m.save(d.clone)
	m.kept[d.name] = append(m.kept[d.name], maps.Clone(d.disk))
	if m.r.IntN(3) == 0 {
		return
	}
	delete(m.there, d.name)
	if m.r.IntN(3) == 0 {
		return
	}
	d.disk, d.done = nil, nil
}

// aggregate brings the agents' logs together on a clone: its own, and others as the
// remote has them.
func (m *model) aggregate(c *modelClone) {
	var logs [][]byte
	for _, d := range m.desks {
		disk := m.there[d.name]
		if d.clone == c {
			disk = d.disk
		}
		logs = append(logs, []byte(disk[logFile]))
	}
	c.disk[logFile] = string(aggregated([]byte(c.disk[logFile]), logs))
}

// exchange brings what agents of a clone wrote to the remote.
func (m *model) exchange(c *modelClone) {
	m.aggregate(c)
	for _, d := range m.desks {
		if d.clone == c && d.disk != nil {
			m.there[d.name] = maps.Clone(d.disk)
		}
	}
}

// checkDesks: each entry that an agent wrote is in its branch, or in one that is kept;
// what is to last is on global, or is left to be promoted: no branch went before that.
func (m *model) checkDesks(what string) {
	m.t.Helper()
	for _, d := range m.desks {
		have := map[string]bool{}
		for _, disk := range append(slices.Clone(m.kept[d.name]), d.disk) {
			for _, e := range logOf(agentPrefix+d.name, logFiles(disk)) {
				have[e.ID] = true
			}
		}
		open := map[string]bool{}
		for _, e := range m.left(d) {
			open[e.ID] = true
		}
		var shared []mdfile.Entry
		for _, name := range entryFiles() {
			shared = append(shared, mdfile.ParseEntries([]byte(d.clone.disk[name])).Entries...)
		}
		retired, on := mdfile.Retired(shared), map[string]bool{}
		for _, e := range shared {
			on[e.ID], on[strings.TrimPrefix(e.Source, "entry:")] = true, true
		}
		for id, typ := range d.wrote {
			if !have[id] {
				m.t.Errorf("%s: entry %s of %s is in no branch", what, id, d.name)
			}
			switch {
			case typ == mdfile.TypeImplement:
				if !on[id] && !retired[id] {
					m.t.Errorf("%s: entry %s of %s is not in the log of all", what, id, d.name)
				}
			case !on[id] && !retired[id] && !open[id]:
				m.t.Errorf("%s: %s %s of %s is neither on global nor left to be promoted", what, typ, id, d.name)
			}
		}
	}
}

var at0 = time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)

func (m *model) tick() time.Time {
	m.now = m.now.Add(time.Duration(m.r.IntN(3)) * time.Millisecond) // several at one time, too
	return m.now
}

func (m *model) files(disk map[string]string) map[string]git.Entry {
	out := map[string]git.Entry{}
	for name, text := range disk {
		id := git.BlobID([]byte(text))
		m.blobs[id] = []byte(text)
		out[name] = git.Entry{Mode: git.ModeFile, ID: id}
	}
	return out
}

// save is Tree.Save: settle what was edited, commit what changed.
func (m *model) save(c *modelClone) {
	old := m.commits[c.head].files
	for _, name := range entryFiles() {
		if _, here := c.disk[name]; !here && old[name].ID == "" {
			continue
		}
		s := mdfile.SettleEdits([]byte(c.disk[name]), m.blobs[old[name].ID], m.tick())
		if s.Changed() {
			c.disk[name] = string(s.Data)
		}
		if again := mdfile.SettleEdits(s.Data, s.Data, m.now); again.Changed() {
			m.t.Fatalf("settled twice: %s", again)
		}
	}
	if files := m.files(c.disk); !maps.Equal(files, old) {
		m.commits = append(m.commits, modelCommit{parents: []int{c.head}, files: files})
		c.head = len(m.commits) - 1
	}
}

func (m *model) ancestors(c int) map[int]bool {
	seen := map[int]bool{}
	todo := []int{c}
	for len(todo) > 0 {
		n := todo[0]
		todo = todo[1:]
		if !seen[n] {
			seen[n] = true
			todo = append(todo, m.commits[n].parents...)
		}
	}
	return seen
}

func (m *model) pull(c *modelClone) {
	m.save(c)
	mine, theirs := m.ancestors(c.head), m.ancestors(m.remote)
	switch {
	case mine[m.remote]:
		return
	case theirs[c.head]:
		c.head = m.remote
	default:
		base := 0 // commits are numbered in order, so the newest common one is the highest
		for n := range mine {
			if theirs[n] {
				base = max(base, n)
			}
		}
		out, err := Options{}.mergeVersions(m.commits[base].files, m.commits[c.head].files, m.commits[m.remote].files, func(string) bool { return false },
			func(ids []string) ([][]byte, error) {
				var data [][]byte
				for _, id := range ids {
					data = append(data, m.blobs[id])
				}
				return data, nil
			})
		if err != nil {
			m.t.Fatal(err)
		}
		maps.Copy(m.blobs, out.data)
		m.commits = append(m.commits, modelCommit{parents: []int{c.head, m.remote}, files: out.files})
		c.head = len(m.commits) - 1
	}
	c.disk = map[string]string{}
	for name, e := range m.commits[c.head].files {
		c.disk[name] = string(m.blobs[e.ID])
	}
}

func (m *model) push(c *modelClone) bool {
	if !m.ancestors(c.head)[m.remote] {
		return false
	}
	m.remote = c.head
	return true
}

// store is what operations need of a clone; the real one has files and git.
type store interface {
	read(name string) string
	write(name, text string)
}

func (c *modelClone) read(name string) string { return c.disk[name] }
func (c *modelClone) write(name, text string) { c.disk[name] = text }

func (m *model) add(s store, agent string, e mdfile.Entry, file string) {
	m.n++
	e.Agent, e.Time = agent, m.tick()
	f := mdfile.ParseEntries([]byte(s.read(file)))
	if len(f.Entries) > 0 && m.r.IntN(2) == 0 {
		e.Parent = f.Entries[len(f.Entries)-1].ID
	}
	e, raw := e.Render()
	s.write(file, string(f.WithEntry(raw)))
	m.entries[e.ID] = e.Title()
}

// step does one operation on a clone.
func (m *model) step(s store, agent string) {
	m.n++
	name := entryFiles()[m.r.IntN(3)]
	f := mdfile.ParseEntries([]byte(s.read(name)))
	switch op := m.r.IntN(10); {
	case op < 4:
		typ := map[string]string{"changelog.md": mdfile.TypeImplement, "decisions.md": mdfile.TypeDecision, "learnings.md": mdfile.TypeLearning}[name]
		text := fmt.Sprintf("Entry %d.", m.n)
		if m.r.IntN(3) == 0 {
			text += "\n\n---\n\n## 2026-01-21T10:30:00Z - plan\n\nNot an entry."
		}
		m.add(s, agent, mdfile.Entry{Type: typ, Text: text}, name)
	case op < 5 && len(f.Entries) > 0: // a hand edit within an entry
		e := f.Entries[m.r.IntN(len(f.Entries))]
		if e.Text == "" || e.Short {
			return
		}
		text := string(f.Bytes())
		body := text[e.Start:e.End]
		s.write(name, text[:e.Start]+strings.Replace(body, "Entry", fmt.Sprintf("Edited %d of entry", m.n), 1)+text[e.End:])
	case op < 6 && len(f.Entries) > 0: // forgotten by reprise
		e := f.Entries[m.r.IntN(len(f.Entries))]
		if e.Type == mdfile.TypeTombstone || e.Edited {
			return
		}
		stone := mdfile.Entry{Type: mdfile.TypeTombstone, Time: m.tick(), Supersedes: e.ID, Agent: agent}
		if strings.HasPrefix(e.Source, "entry:") {
			stone.Source = e.Source
		}
		_, raw := stone.Render()
		s.write(name, string(mdfile.ParseEntries(f.Without(map[string]bool{e.ID: true})).WithEntry(raw)))
	case op < 7 && len(f.Entries) > 0: // cut out by hand
		e := f.Entries[m.r.IntN(len(f.Entries))]
		s.write(name, string(f.Bytes()[:e.Start])+string(f.Bytes()[e.End:]))
	case op < 8 && m.r.IntN(2) == 0: // as after an aggregation
		s.write(logFile, string(withTable([]byte(s.read(logFile)))))
	case op < 8: // a note by hand, above everything
		s.write(name, fmt.Sprintf("# Note %d\n\n", m.n)+s.read(name))
	default:
		line := fmt.Sprintf("Line %d of %s.", m.n, agent)
		lines := strings.SplitAfter(s.read("plan.md"), "\n")
		lines = slices.Insert(lines, m.r.IntN(len(lines)), line+"\n")
		s.write("plan.md", strings.Join(lines, ""))
		m.lines[line] = true
	}
}

// check: all that was acknowledged is there, or a tombstone says why not.
func (m *model) check(what string, s store) {
	m.t.Helper()
	var all []mdfile.Entry
	for _, name := range entryFiles() {
		all = append(all, mdfile.ParseEntries([]byte(s.read(name))).Entries...)
	}
	gone := mdfile.Retired(all)
	have := map[string]bool{}
	for _, e := range all {
		have[e.ID] = true
		if e.Edited {
			m.t.Errorf("%s: %s is edited still: %q", what, e.ID, e.Text)
		}
	}
	for id, title := range m.entries {
		if have[id] == gone[id] {
			m.t.Errorf("%s: entry %s (%s): there %v, forgotten %v", what, id, title, have[id], gone[id])
		}
	}
	for line := range m.lines {
		if strings.Count(s.read("plan.md"), line+"\n") < 1 {
			m.t.Errorf("%s: plan.md has lost %q", what, line)
		}
	}
}

func seeds0(short, long int) int {
	if os.Getenv("REPRISE_LONG_TESTS") != "" {
		return long
	}
	return short
}

// Whatever several clones do, they come to the same bytes, and nothing that was
// acknowledged is lost.
func TestModel(t *testing.T) {
	for seed := range seeds0(200, 5000) {
		m := newModel(t, uint64(seed), 3)
		for range 80 {
			c := m.clones[m.r.IntN(len(m.clones))]
			switch m.r.IntN(18) {
			case 0:
				m.pull(c)
			case 1:
				m.push(c) // what is not committed is not sent
			case 2:
				m.save(c)
			case 3:
				m.exchange(c)
				m.save(c)
			case 4, 5, 6, 7, 8, 9, 10, 11:
				m.desk(m.desks[m.r.IntN(len(m.desks))])
			default:
				m.step(c, fmt.Sprintf("agent%d", m.r.IntN(5)))
				m.save(c) // each command does; a killed one leaves it to the next
			}
		}
		for range 2 {
			for _, c := range m.clones {
				m.pull(c)
				m.exchange(c)
				m.save(c)
				if !m.push(c) {
					t.Fatalf("seed %d: a push after a pull was refused", seed)
				}
			}
		}
		for i, c := range m.clones {
			if !maps.Equal(c.disk, m.clones[0].disk) {
				t.Errorf("seed %d: clone %d differs from the first", seed, i)
			}
			m.check(fmt.Sprintf("seed %d, clone %d", seed, i), c)
		}
		m.checkDesks(fmt.Sprintf("seed %d", seed))
		if t.Failed() {
			return
		}
	}
}

// What was promoted and then forgotten is no longer left to be promoted: the project has
// said that it is not to be kept.
func TestForgottenIsNotLeft(t *testing.T) {
	t.Parallel()
	own, _ := mdfile.Entry{Type: mdfile.TypeLearning, Agent: "one", Time: at0, Text: "The port is 1"}.Render()
	e := LogEntry{Entry: own, State: mdfile.State{Status: mdfile.StatusActive}}
	shared, _ := mdfile.Entry{Type: mdfile.TypeLearning, Source: "entry:" + own.ID, Time: at0, Text: own.Text}.Render()
	stone := mdfile.Entry{Type: mdfile.TypeTombstone, Supersedes: shared.ID, Source: shared.Source}
	for what, c := range map[string]struct {
		shared []mdfile.Entry
		has    bool
	}{
		"not promoted": {nil, false}, "promoted": {[]mdfile.Entry{shared}, true}, "forgotten": {[]mdfile.Entry{stone}, true},
		"another one forgotten": {[]mdfile.Entry{{Type: mdfile.TypeTombstone, Supersedes: "e-0000000000000000", Source: "entry:e-1111111111111111"}}, false},
	} {
		if got := promotedIn(c.shared).has(e); got != c.has {
			t.Errorf("%s: %v, want %v", what, got, c.has)
		}
	}
}
