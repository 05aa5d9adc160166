package memory

import (
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
	"reprise/internal/mdfile"
	"reprise/internal/redact"
)

// Entries are the dated entries of one scope: a project's learnings.md,
// decisions.md and changelog.md, or, in the global memory, the blocks
// reference-learned.md and decisions.md. It holds nothing open between calls
// and is safe for use by several goroutines and processes.
//
// Lock: the change lock of the directory, from the read to the commit.
type Entries struct {
	s      *Store
	plain  bool // a directory of entries and no memory with core and index
	lookup map[string]string
}

// The files of entries, by what they hold.
const (
	learningsFile  = "learnings.md"
	decisionsFile  = "decisions.md"
	changelogFile  = "changelog.md"
	learnedBlock   = blocksDir + "/reference-learned.md"
	decisionsBlock = blocksDir + "/" + decisions
)

// MaxEntry is how long an entry's text may be, in bytes.
const MaxEntry = 64 << 10

// ErrRetired is the error of adding what was forgotten by hand: it comes back
// only when a person says so again.
var ErrRetired = errors.New("was forgotten")

// EntriesOptions of [NewEntries]. Dir and Now are required.
type EntriesOptions struct {
	Dir        string // a project's global/
	Now        func() time.Time
	Access     Access
	May        func(acl []string) bool // as in Options: what Read shows
	AfterWrite func(name string)       // may be nil; name is the file's, relative to Dir
	Disk       durable.Disk
}

// NewEntries returns the entries of a project. It touches nothing.
func NewEntries(o EntriesOptions) *Entries {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{o: Options{Dir: o.Dir, Now: o.Now, Access: o.Access, May: o.May, AfterWrite: o.AfterWrite, Disk: o.Disk}, secrets: redact.New()}
	return &Entries{s: s, plain: true, lookup: map[string]string{
		mdfile.TypeLearning: learningsFile, mdfile.TypePreference: learningsFile, mdfile.TypeDecision: decisionsFile, mdfile.TypeChange: changelogFile,
		mdfile.TypeStart: changelogFile, mdfile.TypePlan: changelogFile, mdfile.TypeImplement: changelogFile,
		mdfile.TypeError: changelogFile, mdfile.TypeHandoff: changelogFile, mdfile.TypeEnd: changelogFile,
	}}
}

// Entries are the entries in the memory's blocks, with their index rows.
func (s *Store) Entries() *Entries {
	return &Entries{s: s, lookup: map[string]string{
		mdfile.TypeLearning: learnedBlock, mdfile.TypePreference: learnedBlock, mdfile.TypeDecision: decisionsBlock,
	}}
}

// Dir is the directory that the files are in.
func (e *Entries) Dir() string { return e.s.o.Dir }

// Files are the names of the files that hold entries, whether they exist or not.
func (e *Entries) Files() []string {
	names := []string{}
	for _, f := range e.lookup {
		if !slices.Contains(names, f) {
			names = append(names, f)
		}
	}
	slices.Sort(names)
	return names
}

// fileOf is the file for entries of a type; unknown types go where learnings go.
func (e *Entries) fileOf(typ string) string {
	if f, ok := e.lookup[typ]; ok {
		return f
	}
	return e.lookup[mdfile.TypeLearning]
}

// Item is an entry with the file it stands in and what has become of it.
type Item struct {
	mdfile.Entry
	File  string       `json:"file"` // relative to Dir, with slashes
	State mdfile.State `json:"-"`
}

// Active says that the entry holds.
func (i Item) Active() bool { return i.State.Status == mdfile.StatusActive }

// EntryProblem is an entry that cannot be read whole; the rest of its file can.
type EntryProblem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	ID      string `json:"id,omitempty"`
	Problem string `json:"problem"`
}

// List returns all entries but tombstones, in order of time, each with what has
// become of it. It writes nothing. Files that are missing hold none.
func (e *Entries) List(ctx context.Context) ([]Item, error) {
	sh, err := e.look(ctx)
	if err != nil {
		return nil, err
	}
	return sh.items(), nil
}

// Problems lists the entries that cannot be read whole, and the places of the
// files that are no text.
func (e *Entries) Problems(ctx context.Context) ([]EntryProblem, error) {
	sh, err := e.look(ctx)
	if err != nil {
		return nil, err
	}
	var out []EntryProblem
	for _, name := range slices.Sorted(maps.Keys(sh.files)) {
		f := sh.files[name]
		for _, x := range f.Entries {
			if x.Problem != "" {
				out = append(out, EntryProblem{File: name, Line: x.Line, ID: x.ID, Problem: x.Problem})
			}
		}
		for _, at := range f.Damage {
			out = append(out, EntryProblem{File: name, Line: at.Line, Problem: at.Problem})
		}
	}
	return out, nil
}

// Get returns the entry with this id, or the one whose id begins with it, or the one
// that was brought back with another id after this one was retired.
func (e *Entries) Get(ctx context.Context, id string) (Item, error) {
	sh, err := e.look(ctx)
	if err != nil {
		return Item{}, err
	}
	var found []Item
	for _, i := range sh.items() {
		if i.ID == id {
			return i, nil
		}
		if len(id) >= 4 && strings.HasPrefix(i.ID, id) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if i, ok := sh.restored(id); ok {
			return i, nil
		}
		return Item{}, fmt.Errorf("%w: no entry %s in %s", ErrNotFound, clip.Runes(id, 40), e.s.o.Dir)
	}
	return Item{}, fmt.Errorf("%w: %d entries begin with %s; give more of the id", ErrNotFound, len(found), clip.Runes(id, 40))
}

// Rivals are groups of entries that each took the place of the same item and know nothing
// of each other, see [mdfile.Rivals]: the one that holds first.
func (e *Entries) Rivals(ctx context.Context) ([][]Item, error) {
	sh, err := e.look(ctx)
	if err != nil {
		return nil, err
	}
	var out [][]Item
	for _, name := range slices.Sorted(maps.Keys(sh.files)) {
		for _, r := range mdfile.Rivals(sh.files[name].Entries) {
			group := make([]Item, len(r))
			for i, x := range r {
				group[i] = Item{Entry: x, File: name, State: sh.states[x.ID]}
			}
			out = append(out, group)
		}
	}
	return out, nil
}

// State is what has become of an item that the entries name, their own or
// another; the zero State when they do not name it.
func (e *Entries) State(ctx context.Context, id string) (mdfile.State, error) {
	sh, err := e.look(ctx)
	if err != nil {
		return mdfile.State{}, err
	}
	return sh.states[id], nil
}

// shelf is all files of entries, read.
type shelf struct {
	files  map[string]*mdfile.EntryFile
	states map[string]mdfile.State
}

// look reads the files for one who changes nothing. A directory that does not exist has
// none.
func (e *Entries) look(ctx context.Context) (*shelf, error) {
	d, err := e.s.open()
	if errors.Is(err, ErrNotFound) {
		return &shelf{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return e.read(ctx, d)
}

func (e *Entries) read(ctx context.Context, d *durable.Dir) (*shelf, error) {
	sh := &shelf{files: map[string]*mdfile.EntryFile{}}
	var all []mdfile.Entry
	for _, name := range e.Files() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := loadEntries(d, name)
		if err != nil {
			return nil, err
		}
		sh.files[name] = f
		all = append(all, f.Entries...)
	}
	sh.states = mdfile.Resolve(all)
	return sh, nil
}

func loadEntries(d *durable.Dir, name string) (*mdfile.EntryFile, error) {
	data, err := loadBytes(d, name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	return mdfile.ParseEntries(data), nil
}

func (sh *shelf) items() []Item {
	var out []Item
	for name, f := range sh.files {
		for _, e := range f.Entries {
			if e.Type != mdfile.TypeTombstone {
				out = append(out, Item{Entry: e, File: name, State: sh.states[e.ID]})
			}
		}
	}
	slices.SortFunc(out, func(a, b Item) int {
		if c := a.Time.Compare(b.Time); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out
}

func (sh *shelf) find(id string) (Item, bool) {
	for _, i := range sh.items() {
		if i.ID == id {
			return i, true
		}
	}
	return Item{}, false
}

// restored is the entry that stands for one that was retired and brought back.
func (sh *shelf) restored(id string) (Item, bool) {
	s := sh.states[id]
	if s.Status != mdfile.StatusRetired || s.By == "" {
		return Item{}, false
	}
	for _, i := range sh.items() {
		if slices.Contains(i.DependsOn, id) && slices.Contains(i.DependsOn, s.By) {
			return i, true
		}
	}
	return Item{}, false
}

// write runs fn under the lock and commits what it put.
func (e *Entries) write(ctx context.Context, what string, fn func(t *tx, sh *shelf) error) (warnings []string, err error) {
	begin := e.s.begin
	if e.plain {
		begin = e.s.beginPlain
	}
	d, c, err := begin(ctx)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	defer c.Abort()
	sh, err := e.read(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	t := &tx{s: e.s, d: d, c: c}
	if err := fn(t, sh); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if len(t.changes) > 0 {
		if err := c.Commit(); err != nil {
			if errors.Is(err, durable.ErrPending) {
				return nil, fmt.Errorf("%s: the change is recorded and will be completed, but is not in place yet: %w", what, err)
			}
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	return append(t.warnings, e.s.tell(ctx, t.changes...)...), nil
}

// beginPlain is begin for a directory without core and index.
func (s *Store) beginPlain(ctx context.Context) (*durable.Dir, *durable.Change, error) {
	if err := s.o.Access.MayWrite(); err != nil {
		return nil, nil, err
	}
	if s.o.Dir == "" {
		return nil, nil, errors.New("write entries: no directory is set")
	}
	if err := s.o.Disk.MkdirAll(s.o.Dir, dirPerm); err != nil {
		return nil, nil, fmt.Errorf("write entries: %w", err)
	}
	d, err := s.o.Disk.OpenDir(s.o.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("write entries: %w", err)
	}
	c, err := d.Begin(ctx)
	if err != nil {
		d.Close()
		return nil, nil, fmt.Errorf("write entries: %w", err)
	}
	s.sweep(d)
	return d, c, nil
}

// Added is the answer to a write of an entry that is on disk.
type Added struct {
	Item
	Path     string   `json:"path"`
	Existing bool     `json:"existing,omitempty"` // it was there already; nothing was written
	Warnings []string `json:"warnings,omitempty"`
}

// Add writes an entry and returns it with its id. A zero Time is now. The same
// content again, and anything whose Source names what an entry was already made
// from, is a success that changes nothing; what was forgotten is ErrRetired,
// unless Source is "hand". Secrets are taken out.
func (e *Entries) Add(ctx context.Context, n mdfile.Entry) (Added, error) {
	return e.AddOnce(ctx, n, func(Item, mdfile.Entry) bool { return false })
}

// AddOnce is Add unless there is an entry that says the same as the new one, which
// is then the answer. It is looked for under the lock, so that several who say the same at
// the same time make one entry.
func (e *Entries) AddOnce(ctx context.Context, n mdfile.Entry, same func(old Item, n mdfile.Entry) bool) (Added, error) {
	n, err := e.checked(n)
	if err != nil {
		return Added{}, fmt.Errorf("add entry: %w", err)
	}
	var out Added
	warnings, err := e.write(ctx, "add entry", func(t *tx, sh *shelf) (err error) {
		for _, i := range sh.items() {
			if same(i, n) {
				out = Added{Item: i, Path: e.s.abs(i.File), Existing: true}
				return nil
			}
		}
		out, err = e.add(t, sh, n)
		return err
	})
	out.Warnings = append(out.Warnings, warnings...)
	return out, err
}

func (e *Entries) checked(n mdfile.Entry) (mdfile.Entry, error) {
	if strings.TrimSpace(n.Text) == "" && strings.TrimSpace(n.Decision) == "" {
		return n, fmt.Errorf("%w: it is empty", ErrContent)
	}
	for _, f := range []*string{&n.Text, &n.Decision, &n.Rationale} {
		if err := checkText("the text", *f, MaxEntry); err != nil {
			return n, err
		}
		*f, _ = e.s.secrets.String(*f)
	}
	if n.Type == "" {
		n.Type = mdfile.TypeLearning
	}
	n.Alternatives = slices.Clone(n.Alternatives)
	for i, a := range n.Alternatives {
		if err := checkText("an alternative", a, MaxEntry); err != nil {
			return n, err
		}
		n.Alternatives[i], _ = e.s.secrets.String(a)
	}
	for _, s := range append([]string{n.Agent, n.Type, n.To, n.Parent, n.Source, n.Supersedes}, append(append(slices.Clone(n.DependsOn), n.Evidence...), n.ACL...)...) {
		if err := checkText("a field", s, 1000); err != nil || strings.ContainsAny(s, "\r\n") {
			return n, fmt.Errorf("%w: fields are one line of at most 1,000 bytes", ErrContent)
		}
	}
	for _, a := range n.ACL {
		kind, name, _ := strings.Cut(a, ":")
		if a != "*" && (name == "" || kind != "agent" && kind != "role" && kind != "client") {
			return n, fmt.Errorf("%w: acl entry %.80q is not agent:NAME, role:NAME, client:NAME or *", ErrContent, a)
		}
	}
	if n.Time.IsZero() {
		n.Time = e.s.o.Now()
	}
	return n, nil
}

// made says that a source names one thing that an entry is made from at most once.
func made(source string) bool { return strings.Contains(source, ":") }

func (e *Entries) add(t *tx, sh *shelf, n mdfile.Entry) (Added, error) {
	n, raw := n.Render()
	name := e.fileOf(n.Type)
	out := Added{Item: Item{Entry: n, File: name, State: mdfile.State{Status: mdfile.StatusActive}}, Path: e.s.abs(name)}
	for _, i := range sh.items() {
		if i.ID == n.ID || made(n.Source) && i.Source == n.Source {
			out.Item, out.Path, out.Existing = i, e.s.abs(i.File), true
			return out, nil
		}
	}
	for _, f := range sh.files {
		for _, old := range f.Entries {
			if old.Type == mdfile.TypeTombstone && old.Source == n.Source && made(n.Source) && !slices.Contains(n.DependsOn, old.ID) {
				return out, fmt.Errorf("%w: what comes from %s was forgotten on %s; `reprise memory forget --undo` brings it back", ErrRetired, n.Source, old.Time.Format(time.DateOnly))
			}
		}
	}
	if s, ok := sh.states[n.ID]; ok && s.Status == mdfile.StatusRetired {
		return out, fmt.Errorf("%w: entry %s", ErrRetired, n.ID)
	}
	return out, e.put(t, sh, name, "add_entry", raw)
}

// put adds a rendered entry to a file, in this change.
func (e *Entries) put(t *tx, sh *shelf, name, op string, raw []byte) error {
	f := sh.files[name]
	if len(f.Bytes()) == 0 && raw != nil {
		f = mdfile.ParseEntries([]byte(e.seed(name)))
	}
	next := f.Bytes()
	if raw != nil {
		next = f.WithEntry(raw)
	}
	return e.replace(t, sh, name, op, next)
}

func (e *Entries) replace(t *tx, sh *shelf, name, op string, next []byte) error {
	if len(next) > MaxFile {
		return fmt.Errorf("%w: %s would have %d bytes, at most %d are allowed; move old entries to another file", ErrTooLarge, name, len(next), MaxFile)
	}
	if sh.files[name].Foreign {
		return fmt.Errorf("%w: %s is UTF-16, and writing to it would not keep its bytes; save it as UTF-8", ErrContent, name)
	}
	block, isBlock := strings.CutPrefix(name, blocksDir+"/")
	if isBlock {
		// A file with bytes that are no text takes an entry all the same: only its
		// day stays what it was.
		old, oldErr := mdfile.Parse(sh.files[name].Bytes())
		f, err := mdfile.Parse(next)
		if err == nil && oldErr == nil && f.HasFrontMatter() && slices.Contains(f.Keys(), "updated") {
			if f, err = t.dated(old, f, true); err != nil {
				return err
			}
			next = f.Bytes()
		}
	}
	t.put(op, name, next)
	sh.files[name] = mdfile.ParseEntries(next)
	if isBlock {
		_, err := t.row(block, "", blockSummary(name))
		if errors.Is(err, ErrContent) { // what is to be kept or forgotten does not wait for the index
			t.warn("%v", err)
			return nil
		}
		return err
	}
	return nil
}

// seed is what a new file of entries begins with.
func (e *Entries) seed(name string) string {
	switch name {
	case learningsFile:
		return "# Learnings\n"
	case decisionsFile:
		return "# Decisions\n"
	case changelogFile:
		return "# Changelog\n"
	}
	day := e.s.today()
	title, tags := "Learned", "[reference, learned]"
	if name == decisionsBlock {
		title, tags = "Decisions", "[decisions]"
	}
	return "---\ncreated: " + day + "\nupdated: " + day + "\ntags: " + tags + "\n---\n\n# " + title + "\n"
}

func blockSummary(name string) string {
	if name == decisionsBlock {
		return "Decisions, with alternatives and reasons"
	}
	return "What was learnt and holds in every project"
}

// Correct adds an entry that takes the place of another one or, when no entry
// has the id, of something else (a block's section, an episode). From that
// moment the old one is superseded; it stays readable.
func (e *Entries) Correct(ctx context.Context, id string, n mdfile.Entry) (Added, error) {
	n.Supersedes = id
	n, err := e.checked(n)
	if err != nil {
		return Added{}, fmt.Errorf("correct %s: %w", id, err)
	}
	var out Added
	warnings, err := e.write(ctx, "correct "+id, func(t *tx, sh *shelf) (err error) {
		if s := sh.states[id]; s.Status == mdfile.StatusRetired {
			return fmt.Errorf("%w: entry %s is no more; `reprise learn` adds what holds now", ErrRetired, id)
		}
		for range len(sh.states) + 1 { // to correct what was corrected is to correct the correction
			s := sh.states[n.Supersedes]
			if s.Status != mdfile.StatusSuperseded || s.By == "" {
				break
			}
			if next, ok := sh.find(s.By); ok && next.Text == n.Text && next.Decision == n.Decision {
				out = Added{Item: next, Path: e.s.abs(next.File), Existing: true}
				return nil
			}
			n.Supersedes = s.By
		}
		if old, ok := sh.find(n.Supersedes); ok {
			if n.Type == "" || n.Type == mdfile.TypeLearning {
				n.Type = old.Type
			}
			if old.Type == mdfile.TypeDecision && n.Decision == "" {
				n.Decision, n.Text = n.Text, ""
			}
			if len(n.ACL) == 0 {
				n.ACL = old.ACL
			}
		}
		out, err = e.add(t, sh, n)
		return err
	})
	out.Warnings = append(out.Warnings, warnings...)
	return out, err
}

// Retired is what Retire took out.
type Retired struct {
	Entry     mdfile.Entry `json:"entry"` // as it was
	File      string       `json:"file"`
	Tombstone string       `json:"tombstone"`
	Existing  bool         `json:"existing,omitempty"` // it had been retired before
	Warnings  []string     `json:"warnings,omitempty"`
}

// Retire takes an entry out of its file and leaves a tombstone that names it,
// so that no copy of the file from elsewhere brings it back, and so that what it
// was made from makes it no second time. Reason may be empty.
func (e *Entries) Retire(ctx context.Context, id, agent, reason string) (Retired, error) {
	var out Retired
	reason, _ = e.s.secrets.String(reason)
	warnings, err := e.write(ctx, "retire "+id, func(t *tx, sh *shelf) error {
		old, ok := sh.find(id)
		if !ok {
			if s := sh.states[id]; s.Status == mdfile.StatusRetired {
				out = Retired{Tombstone: s.By, Existing: true}
				return nil
			}
			return fmt.Errorf("%w: no entry %s in %s", ErrNotFound, clip.Runes(id, 40), e.s.o.Dir)
		}
		stone := mdfile.Entry{Type: mdfile.TypeTombstone, Status: mdfile.StatusRetired, Time: e.s.o.Now(), Agent: agent, Supersedes: id, Rationale: clip.Runes(reason, 400), ACL: old.ACL}
		if made(old.Source) {
			stone.Source = old.Source
		}
		if old.Supersedes != "" {
			stone.DependsOn = []string{old.Supersedes}
		}
		stone, raw := stone.Render()
		for name, f := range sh.files {
			if !slices.ContainsFunc(f.Entries, func(x mdfile.Entry) bool { return x.ID == id && x.Type != mdfile.TypeTombstone }) {
				continue
			}
			next := f.Without(map[string]bool{id: true})
			if name == old.File {
				next = mdfile.ParseEntries(next).WithEntry(raw)
			}
			if err := e.replace(t, sh, name, "retire_entry", next); err != nil {
				return err
			}
		}
		out = Retired{Entry: old.Entry, File: old.File, Tombstone: stone.ID}
		return nil
	})
	out.Warnings = append(out.Warnings, warnings...)
	return out, err
}

// Restore brings an entry back that was retired. A tombstone holds for good, here and in
// all copies of the file: so the entry has another id, and names in DependsOn the
// tombstones that it takes back and the id that it had.
func (e *Entries) Restore(ctx context.Context, was mdfile.Entry) (Added, error) {
	n, err := e.checked(was)
	if err != nil {
		return Added{}, fmt.Errorf("restore %s: %w", was.ID, err)
	}
	var out Added
	warnings, err := e.write(ctx, "restore "+was.ID, func(t *tx, sh *shelf) (err error) {
		if i, ok := sh.find(was.ID); ok {
			out = Added{Item: i, Path: e.s.abs(i.File), Existing: true}
			return nil
		}
		n.ID, n.Status = "", ""
		for _, name := range slices.Sorted(maps.Keys(sh.files)) {
			for _, x := range sh.files[name].Entries {
				if x.Type == mdfile.TypeTombstone && x.Supersedes == was.ID && !slices.Contains(n.DependsOn, x.ID) {
					n.DependsOn = append(slices.Clone(n.DependsOn), x.ID)
				}
			}
		}
		if i, ok := sh.restored(was.ID); ok {
			out = Added{Item: i, Path: e.s.abs(i.File), Existing: true}
			return nil
		}
		n.DependsOn = append(slices.Clone(n.DependsOn), was.ID)
		out, err = e.add(t, sh, n)
		return err
	})
	out.Warnings = append(out.Warnings, warnings...)
	return out, err
}

// Block keeps anything from being made from a source: a tombstone without an
// entry, for what was suggested and not wanted.
func (e *Entries) Block(ctx context.Context, source, agent, reason string) error {
	if !made(source) || strings.ContainsAny(source, "\r\n") || len(source) > 1000 {
		return fmt.Errorf("block %q: %w: it is no source", clip.Runes(source, 80), ErrName)
	}
	reason, _ = e.s.secrets.String(reason)
	_, err := e.write(ctx, "block "+source, func(t *tx, sh *shelf) error {
		for _, f := range sh.files {
			if slices.ContainsFunc(f.Entries, func(x mdfile.Entry) bool { return x.Type == mdfile.TypeTombstone && x.Source == source }) {
				return nil
			}
		}
		_, raw := mdfile.Entry{Type: mdfile.TypeTombstone, Status: mdfile.StatusRetired, Time: e.s.o.Now(), Agent: agent, Source: source, Rationale: clip.Runes(reason, 400)}.Render()
		return e.put(t, sh, e.fileOf(mdfile.TypeLearning), "block_entry", raw)
	})
	return err
}

// Blocked are the sources that nothing may be made from any more.
func (e *Entries) Blocked(ctx context.Context) (map[string]bool, error) {
	sh, err := e.look(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, f := range sh.files {
		for _, x := range f.Entries {
			if x.Type == mdfile.TypeTombstone && made(x.Source) {
				out[x.Source] = true
			}
		}
	}
	return out, nil
}

// Merge brings another copy of a file of entries in: their union. It says
// whether the file changed.
func (e *Entries) Merge(ctx context.Context, name string, other []byte) (bool, error) {
	if !slices.Contains(e.Files(), name) {
		return false, fmt.Errorf("merge entries: %w: %q holds no entries", ErrName, clip.Runes(name, 80))
	}
	changed := false
	_, err := e.write(ctx, "merge "+name, func(t *tx, sh *shelf) error {
		mine := sh.files[name].Bytes()
		next := mdfile.MergeEntries(mine, other)
		if changed = string(next) != string(mine); !changed {
			return nil
		}
		return e.replace(t, sh, name, "merge_entries", next)
	})
	return changed, err
}

// Exists says whether any file of entries is there.
func (e *Entries) Exists() bool {
	d, err := e.s.open()
	if err != nil {
		return false
	}
	defer d.Close()
	return slices.ContainsFunc(e.Files(), func(n string) bool {
		_, err := d.Lstat(n)
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// Path is a file's absolute path.
func (e *Entries) Path(name string) string {
	return filepath.Join(e.s.o.Dir, filepath.FromSlash(name))
}
