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

// The model is the branch global of several clones and a remote, in memory, with
// the real merging and settling: what differs from the real thing is only where
// commits are kept. The same operations run on real git in TestModelOnGit.

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
}

type modelClone struct {
	head int
	disk map[string]string
}

func newModel(t *testing.T, seed uint64, clones int) *model {
	m := &model{t: t, r: rand.New(rand.NewPCG(seed, 6)), blobs: map[string][]byte{}, now: at0, entries: map[string]string{}, lines: map[string]bool{}}
	m.commits = []modelCommit{{files: map[string]git.Entry{}}}
	for range clones {
		m.clones = append(m.clones, &modelClone{disk: map[string]string{}})
	}
	return m
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
		_, raw := mdfile.Entry{Type: mdfile.TypeTombstone, Time: m.tick(), Supersedes: e.ID, Agent: agent}.Render()
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
		for range 60 {
			c := m.clones[m.r.IntN(len(m.clones))]
			switch m.r.IntN(8) {
			case 0:
				m.pull(c)
			case 1:
				m.push(c) // what is not committed is not sent
			case 2:
				m.save(c)
			default:
				m.step(c, fmt.Sprintf("agent%d", m.r.IntN(5)))
				m.save(c) // each command does; a killed one leaves it to the next
			}
		}
		for range 2 {
			for _, c := range m.clones {
				m.pull(c)
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
		if t.Failed() {
			return
		}
	}
}
