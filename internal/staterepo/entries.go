package staterepo

import (
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
	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/redact"
)

// What callers tell apart with errors.Is.
var (
	ErrType    = errors.New("not a type of entry")
	ErrStatus  = errors.New("not a status")
	ErrUnknown = errors.New("no such entry is known here")
	ErrTaken   = errors.New("the handoff was accepted already")
)

// Types are what an entry of the log can be.
func Types() []string {
	return []string{
		mdfile.TypeStart, mdfile.TypePlan, mdfile.TypeImplement, mdfile.TypeDecision, mdfile.TypeHandoff, mdfile.TypeEnd, mdfile.TypeError, mdfile.TypeLearning,
	}
}

// Statuses are how far what an entry of the log tells of has come.
func Statuses() []string { return []string{"pending", "in_progress", "completed", "blocked"} }

// LogEntry is an entry with the agent whose log it stands in, "" for what all
// agents share.
type LogEntry struct {
	mdfile.Entry
	Branch string       `json:"branch"`
	File   string       `json:"file"`
	State  mdfile.State `json:"-"`
	// Holds is, in what [LogEntry.Shown] gives, whether it still holds: active,
	// superseded or retired.
	Holds string `json:"holds,omitempty"`
}

// Shown is the entry as programs are shown it. In its file the status of what is to last
// is that it holds, and that of work how far it has come; here each has a field of its own,
// and status is one of [Statuses] or missing.
func (e LogEntry) Shown() LogEntry {
	e.Holds, e.Entry = e.State.Status, ShownEntry(e.Entry)
	return e
}

// ShownEntry is the entry without a status that is none of [Statuses].
func ShownEntry(e mdfile.Entry) mdfile.Entry {
	if !slices.Contains(Statuses(), e.Status) {
		e.Status = ""
	}
	return e
}

// Entries are the agent's entries on disk.
func (t *Tree) Entries(access memory.Access) *memory.Entries {
	return memory.NewEntries(memory.EntriesOptions{Dir: t.Dir, Now: t.r.o.Now, Access: access, Disk: t.r.o.Disk})
}

// Added is an entry that is on disk and committed.
type Added struct {
	memory.Added
	Saved Saved `json:"saved"`
}

// Add writes an entry into the agent's files and commits it. Its parent is, unless
// it names one, the agent's last entry; entries that it names must be known here.
func (t *Tree) Add(ctx context.Context, access memory.Access, e mdfile.Entry) (Added, error) {
	var out Added
	if !slices.Contains(Types(), e.Type) {
		return out, fmt.Errorf("log: %w: %q; there are %s", ErrType, e.Type, strings.Join(Types(), ", "))
	}
	if e.Status != "" && !slices.Contains(Statuses(), e.Status) {
		return out, fmt.Errorf("log: %w: %q; there are %s", ErrStatus, e.Status, strings.Join(Statuses(), ", "))
	}
	// Before anything is made of it: the commit's first line is made of the text of some, too.
	for _, f := range []*string{&e.Text, &e.Decision, &e.Rationale} {
		*f, _ = redact.New().String(*f)
	}
	e.Agent = cmp.Or(e.Agent, t.Agent())
	if err := t.related(ctx, &e); err != nil {
		return out, fmt.Errorf("log: %w", err)
	}
	waits, err := t.uncommitted(ctx, e)
	if err != nil {
		return out, fmt.Errorf("log: %w", err)
	}
	same := func(old memory.Item, _ mdfile.Entry) bool { return slices.Contains(waits, old.ID) }
	if out.Added, err = t.Entries(access).AddOnce(ctx, e, same); err != nil {
		return out, err
	}
	t.wrote(out.File)
	if out.Saved, err = t.Save(ctx, e.Agent, titled(out.ID, e)); err != nil {
		return out, fmt.Errorf("entry %s is in %s, but not committed, which the next command does: %w", out.ID, out.File, err)
	}
	if !out.Existing {
		t.changed(ctx, Change{Op: "add", Commit: out.Saved.Commit, ID: out.ID, Type: e.Type, Title: e.Title(), Files: []string{out.File}})
	}
	return out, nil
}

// uncommitted are the agent's entries that say what e says and are on disk only: of a
// command that could not commit, which is now given again.
func (t *Tree) uncommitted(ctx context.Context, e mdfile.Entry) (ids []string, err error) {
	own, err := t.lately()
	if err != nil {
		return nil, err
	}
	for _, x := range own {
		if x.Type != e.Type || x.Agent != e.Agent || x.To != e.To || strings.TrimSpace(x.Text) != strings.TrimSpace(e.Text) || strings.TrimSpace(x.Decision) != strings.TrimSpace(e.Decision) {
			continue
		}
		list, err := t.r.git.Objects(ctx, t.ref()+":"+x.File)
		if err != nil {
			return nil, err
		}
		if !strings.Contains(string(list[0].Data), "id: "+x.ID) {
			ids = append(ids, x.ID)
		}
	}
	return ids, nil
}

// titled is the first line of an entry's commit. What becomes memory can be forgotten, and
// commits are not rewritten: of that only the id.
func titled(id string, e mdfile.Entry) string {
	if e.Type == mdfile.TypeLearning || e.Type == mdfile.TypeDecision {
		return e.Type + ": " + id
	}
	return e.Type + ": " + clip.Runes(e.Title(), 60)
}

// tailSize is how much of the end of a log is read where only its last entries
// count: a log may have ten thousand, and parsing them takes longer than the rest
// of logging.
const tailSize = 64 << 10

// lately are the agent's last entries of each file.
func (t *Tree) lately() ([]LogEntry, error) {
	files := map[string][]byte{}
	for _, name := range entryFiles() {
		text, err := t.Read(name)
		if err != nil {
			return nil, err
		}
		if cut := len(text) - tailSize; cut > 0 {
			at := strings.Index(text[cut:], "\n---\nid: ")
			if at < 0 {
				return t.entriesOnDisk()
			}
			text = text[cut+at+1:]
		}
		files[name] = []byte(text)
	}
	return logOf(t.Branch, files), nil
}

// related checks the entries that an entry names, and gives it its parent.
func (t *Tree) related(ctx context.Context, e *mdfile.Entry) error {
	own, err := t.lately()
	if err != nil {
		return err
	}
	if e.Parent == "" {
		var last LogEntry
		for _, x := range own {
			if x.Agent == e.Agent && !x.Time.Before(last.Time) {
				last = x
			}
		}
		e.Parent = last.ID
	}
	known := func(list []LogEntry, id string) bool {
		return slices.ContainsFunc(list, func(x LogEntry) bool { return x.ID == id })
	}
	var all []LogEntry
	for _, id := range append(slices.Clone(e.DependsOn), e.Parent) {
		if id == "" || known(own, id) {
			continue
		}
		if all == nil {
			if all, err = t.r.Log(ctx, Everyone); err != nil {
				return err
			}
		}
		if !known(all, id) {
			return fmt.Errorf("%w: %s; `reprise log --all` lists them, and `reprise state pull` brings those of other machines", ErrUnknown, id)
		}
	}
	return nil
}

// entriesOnDisk are the entries of a checkout, tombstones left out.
func (t *Tree) entriesOnDisk() ([]LogEntry, error) {
	d, err := t.r.o.Disk.OpenDir(t.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	files := map[string][]byte{}
	for _, name := range entryFiles() {
		data, err := d.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err // unreadable is not empty
		}
		files[name] = data
	}
	return logOf(t.Branch, files), nil
}

func entryFiles() []string { return []string{logFile, "decisions.md", "learnings.md"} }

// wrote tells whoever wants to know that a file in the checkout is another.
func (t *Tree) wrote(name string) {
	if t.r.o.AfterWrite != nil {
		t.r.o.AfterWrite(filepath.Join(t.Dir, filepath.FromSlash(name)))
	}
}

func logOf(branch string, files map[string][]byte) []LogEntry {
	var lists [][]mdfile.Entry
	n := 0
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		list := mdfile.ParseEntries(files[name]).Entries
		lists, n = append(lists, list), n+len(list)
	}
	states := mdfile.Resolve(lists...)
	out := make([]LogEntry, 0, n)
	for i, list := range lists {
		for j := range list {
			if list[j].Type == mdfile.TypeTombstone {
				continue
			}
			out = append(out, LogEntry{Entry: list[j], Branch: branch, File: names[i]})
			e := &out[len(out)-1]
			if e.State = states[e.ID]; e.Agent == "" && branch != GlobalBranch {
				e.Agent = strings.TrimPrefix(branch, agentPrefix) // the short form does not say
			}
		}
	}
	return inOrder(out)
}

// inOrder puts a log in order of time. Where it is not, references to entries are put
// in order: they are large, and there may be ten thousand.
func inOrder(list []LogEntry) []LogEntry {
	order := func(a, b *LogEntry) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Branch, b.Branch))
	}
	refs := make([]*LogEntry, len(list))
	sorted := true
	for i := range list {
		refs[i] = &list[i]
		sorted = sorted && (i == 0 || order(refs[i-1], refs[i]) <= 0)
	}
	if sorted {
		return list
	}
	slices.SortStableFunc(refs, order)
	out := make([]LogEntry, len(list))
	for i, e := range refs {
		out[i] = *e
	}
	return out
}

// Everyone in place of an agent's name is all of them, and what they share.
const Everyone = "*"

// Log lists the entries of an agent, or of [Everyone], in order of time: from disk
// where the agent works on this machine, else from its branch as it was last
// fetched. An entry that stands in several logs is listed once. It writes nothing.
func (r *Repo) Log(ctx context.Context, agent string) ([]LogEntry, error) {
	agents, err := r.Agents(ctx)
	if err != nil {
		return nil, err
	}
	var out []LogEntry
	if agent == Everyone {
		if out, err = r.Global().entriesOnDisk(); err != nil {
			return nil, err
		}
	}
	found := agent == Everyone
	for _, a := range agents {
		if agent != Everyone && a.Name != agent {
			continue
		}
		found = true
		list, err := r.agentLog(ctx, a)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	if !found {
		return nil, r.noAgent(ctx, agents, agent)
	}
	out = inOrder(out)
	seen := make(map[string]bool, len(out))
	once := out[:0]
	for i := range out {
		if id := out[i].ID; !seen[id] {
			seen[id] = true
			once = append(once, out[i])
		}
	}
	return once, nil
}

// noAgent says that there is no agent of a name, and what it is called now.
func (r *Repo) noAgent(ctx context.Context, agents []AgentInfo, agent string) error {
	if all, err := r.Log(ctx, Everyone); err == nil {
		if n, err := r.names(ctx, agents, all); err == nil && n.now[agent] != "" {
			return fmt.Errorf("%w: %q, which is called %s now", ErrNoAgent, agent, n.now[agent])
		}
	}
	return fmt.Errorf("%w: %q; `reprise log --all` shows who there is", ErrNoAgent, agent)
}

func (r *Repo) agentLog(ctx context.Context, a AgentInfo) ([]LogEntry, error) {
	branch := agentPrefix + a.Name
	if a.Dir != "" {
		return (&Tree{r: r, Branch: branch, Dir: a.Dir}).entriesOnDisk()
	}
	files, err := r.agentFiles(ctx, a, entryFiles()...)
	if err != nil {
		return nil, err
	}
	return logOf(branch, files), nil
}

// Write replaces a text file of the agent's, such as scratch.md, and commits it.
func (t *Tree) Write(ctx context.Context, access memory.Access, name, text, message string) (Saved, error) {
	if err := access.MayWrite(); err != nil {
		return Saved{}, err
	}
	d, c, err := t.open(ctx)
	if err != nil {
		return Saved{}, fmt.Errorf("write %s: %w", name, err)
	}
	defer d.Close()
	defer c.Abort()
	if err := t.keepEdit(ctx, d, name, text); err != nil {
		return Saved{}, fmt.Errorf("write %s: %w", name, err)
	}
	if err := d.MkdirAll(dirOf(name), dirPerm); err != nil {
		return Saved{}, fmt.Errorf("write %s: %w", name, err)
	}
	if err := d.WriteFile(name, []byte(text), filePerm); err != nil {
		return Saved{}, fmt.Errorf("write %s: %w", name, err)
	}
	t.wrote(name)
	s, err := t.save(ctx, d, cmp.Or(t.Agent(), t.r.o.By), message)
	if err != nil {
		return s, fmt.Errorf("write %s: it is on disk, but not committed: %w", name, err)
	}
	if len(s.Changed) > 0 {
		t.changed(ctx, Change{Op: "write", Commit: s.Commit, Files: s.Changed})
	}
	return s, nil
}

// keepEdit commits what somebody wrote into a file by hand and that is about to be
// replaced: what is not committed yet is never overwritten.
func (t *Tree) keepEdit(ctx context.Context, d *durable.Dir, name, text string) error {
	old, err := d.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(old) == text {
		return nil
	}
	if err != nil {
		return err
	}
	was, err := t.r.git.Objects(ctx, t.ref()+":"+name)
	if err != nil || was[0].ID == git.BlobID(old) {
		return err
	}
	_, err = t.save(ctx, d, "", "")
	return err
}

func dirOf(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return "."
}

// Read is a text file of the agent's, "" when it is missing.
func (t *Tree) Read(name string) (string, error) {
	d, err := t.r.o.Disk.OpenDir(t.Dir)
	if err != nil {
		return "", err
	}
	defer d.Close()
	data, err := d.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// Checkpoint is a named save point of an agent: what it was thinking, and where
// the code was.
type Checkpoint struct {
	Name       string    `json:"name"`
	Time       time.Time `json:"timestamp"`
	CodeBranch string    `json:"code_branch,omitempty"`
	CodeCommit string    `json:"code_commit,omitempty"`
	Message    string    `json:"message,omitempty"`
}

// Checkpoint keeps scratch and context as they are under a name, and the commit
// of the whole state under refs/reprise/checkpoint/AGENT/NAME. A name that is in
// use is ErrBranchExists.
func (t *Tree) Checkpoint(ctx context.Context, access memory.Access, c Checkpoint) (Saved, error) {
	if err := CheckName(c.Name); err != nil {
		return Saved{}, fmt.Errorf("make checkpoint: %w", err)
	}
	file := "checkpoints/" + c.Name + ".md"
	if old, err := t.Read(file); err != nil || old != "" {
		return Saved{}, cmp.Or(err, fmt.Errorf("make checkpoint: %w: %s; take another name", ErrCheckpoint, file))
	}
	head := mdfile.Entry{Type: "checkpoint", Time: c.Time, Agent: t.Agent(), Text: c.Message}
	var b strings.Builder
	_, raw := head.Render()
	b.Write(raw)
	for _, l := range [][2]string{{"Code branch", c.CodeBranch}, {"Code commit", c.CodeCommit}} {
		if l[1] != "" {
			fmt.Fprintf(&b, "\n%s: `%s`\n", l[0], l[1])
		}
	}
	for _, name := range []string{"context.md", "scratch.md"} {
		text, err := t.Read(name)
		if err != nil {
			return Saved{}, fmt.Errorf("make checkpoint: %w", err)
		}
		if strings.TrimSpace(text) != "" {
			fmt.Fprintf(&b, "\n# %s\n\n%s\n", name, strings.TrimSpace(text))
		}
	}
	s, err := t.Write(ctx, access, file, b.String(), "checkpoint: "+c.Name)
	if err != nil {
		return s, err
	}
	ref := "refs/reprise/checkpoint/" + t.Agent() + "/" + c.Name
	if err := t.r.git.MoveRef(ctx, ref, s.Commit, "", "reprise: checkpoint"); err != nil && !isRace(err) {
		return s, fmt.Errorf("make checkpoint: %w", err)
	}
	return s, nil
}

// ErrCheckpoint is the error of a checkpoint's name that is in use.
var ErrCheckpoint = errors.New("there is a checkpoint of this name")

// Checkpoints lists the agent's checkpoints by name.
func (t *Tree) Checkpoints() ([]string, error) {
	d, err := t.r.o.Disk.OpenDir(t.Dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	list, err := d.ReadDir("checkpoints")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []string
	for _, e := range list {
		if name, ok := strings.CutSuffix(e.Name(), ".md"); ok {
			out = append(out, name)
		}
	}
	return out, nil
}

// Handoff is work that one agent left for another.
type Handoff struct {
	LogEntry
	AcceptedBy string `json:"accepted_by,omitempty"` // "" = it waits
}

// Handoffs lists handoffs that are for the agent or for anyone, in order of time;
// with "" those for whomever.
func (r *Repo) Handoffs(ctx context.Context, agent string) ([]Handoff, error) {
	all, err := r.Log(ctx, Everyone)
	if err != nil {
		return nil, err
	}
	claims, err := r.claims(ctx)
	if err != nil {
		return nil, err
	}
	agents, err := r.Agents(ctx)
	if err != nil {
		return nil, err
	}
	n, err := r.names(ctx, agents, all)
	if err != nil {
		return nil, err
	}
	return handoffsIn(all, agent, claims, n), nil
}

func handoffsIn(all []LogEntry, agent string, claims map[string]string, n names) []Handoff {
	taken := maps.Clone(claims) // else the first who accepted, in order of time
	for _, e := range all {
		for _, id := range e.DependsOn {
			if e.Type == mdfile.TypeStart && taken[id] == "" {
				taken[id] = cmp.Or(e.Agent, "user")
			}
		}
	}
	var out []Handoff
	for _, e := range all {
		e.To = n.called(e.To)
		if e.Type != mdfile.TypeHandoff || agent != "" && e.To != "" && e.To != agent || e.State.Status == mdfile.StatusRetired {
			continue
		}
		out = append(out, Handoff{LogEntry: e, AcceptedBy: n.called(taken[e.ID])})
	}
	return out
}

// Unfinished lists the handoffs that the agent accepted and after which it has neither
// ended its work nor handed any on.
func (r *Repo) Unfinished(ctx context.Context, agent string) ([]Handoff, error) {
	list, err := r.Handoffs(ctx, "")
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(h Handoff) bool { return h.AcceptedBy != agent })
	if len(list) == 0 {
		return nil, nil
	}
	own, err := r.Log(ctx, agent)
	if err != nil {
		return nil, err
	}
	for _, e := range own { // in order of time
		switch e.Type {
		case mdfile.TypeEnd, mdfile.TypeHandoff:
			list = slices.DeleteFunc(list, func(h Handoff) bool {
				return !slices.ContainsFunc(own, func(s LogEntry) bool { return slices.Contains(s.DependsOn, h.ID) && s.Time.After(e.Time) })
			})
		}
	}
	return list, nil
}

// Accept takes a handoff for the agent: an entry in its log says so, and whoever
// comes later is refused (ErrTaken). Between machines the one that exchanges first
// has it, and [Repo.Sync] tells the other.
func (t *Tree) Accept(ctx context.Context, access memory.Access, id string) (Added, error) {
	if err := access.MayWrite(); err != nil {
		return Added{}, err
	}
	list, err := t.r.Handoffs(ctx, "")
	if err != nil {
		return Added{}, err
	}
	var found []Handoff
	for _, h := range list {
		if h.ID == id || len(id) >= 4 && strings.HasPrefix(h.ID, id) {
			found = append(found, h)
		}
	}
	if len(found) != 1 {
		return Added{}, fmt.Errorf("accept handoff: %w: %s; `reprise handoff` lists those that wait", ErrUnknown, id)
	}
	h := found[0]
	if h.To != "" && h.To != t.Agent() {
		return Added{}, fmt.Errorf("accept handoff: it is for %s, and this is %s", h.To, t.Agent())
	}
	if h.AcceptedBy != "" && h.AcceptedBy != t.Agent() {
		return Added{}, fmt.Errorf("accept handoff: %w, by %s", ErrTaken, h.AcceptedBy)
	}
	if err := t.claim(ctx, h); err != nil {
		return Added{}, fmt.Errorf("accept handoff: %w", err)
	}
	return t.Add(ctx, access, mdfile.Entry{
		Type: mdfile.TypeStart, Text: "Accepted: " + h.Title(), DependsOn: []string{h.ID}, Source: "handoff:" + h.ID, Time: t.r.o.Now(),
	})
}

// Checkouts are the directories of a project's agents on this machine by name, as
// the repository in dir names them. No process is started.
func Checkouts(dir string) map[string]string {
	out := map[string]string{}
	r := &Repo{o: Options{Dir: dir}}
	list, err := durable.ReadDir(filepath.Join(r.Dir(), "worktrees"))
	if err != nil {
		return out // there are none
	}
	for _, e := range list {
		t := &Tree{r: r, Branch: e.Name()}
		if strings.HasPrefix(e.Name(), agentPrefix) && t.works() {
			out[t.Agent()] = t.where()
		}
	}
	return out
}
