// Package scopes is all that is remembered, wherever it stands, as one thing: it
// finds an item by its id, moves knowledge from sessions to projects and to all
// projects through gates and by hand, corrects it, forgets it, finds what
// contradicts, and explains.
//
// It writes entries and blocks through package memory, under its locks, and events
// through whoever records them. Files of its own are those of what is being
// forgotten, in the directory Options.Pending, whose forget.lock is held by who
// forgets, before any lock of memory or log is taken.
package scopes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/fact"
	"reprise/internal/learn"
	"reprise/internal/learn/sign"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/recall"
	"reprise/internal/redact"
)

// Scopes is all that is remembered, in every scope: a session's episodes, a
// project's entries and memory, the global memory. It moves knowledge between
// scopes, and takes it out again.
//
// What people wrote (entries, blocks) is changed in its file; what was worked
// out from the logs is changed by an event, which every fold of the logs
// honours. The event comes first, so that what was to be forgotten is not served
// any more even when the process dies before the file was changed.
type Scopes struct {
	o       Options
	secrets *redact.Redactor
}

// Options of [New]. Index, Global, Entries, Record and Now are
// required.
type Options struct {
	Index  *recall.Index
	Global *memory.Store
	// Entries are a project's; with "" the global memory's.
	Entries func(project string) *memory.Entries
	// Blocks is a project's own memory directory; nil = it has none.
	Blocks func(project string) *memory.Store
	// Projects are the names of all projects.
	Projects func() []string
	// Claims names the project that a directory is of, "" for none; nil = none is.
	Claims func(dir string) string
	// Record appends an event to the log that it belongs to.
	Record func(context.Context, event.Event) (event.Event, error)
	// Events is the directory of a project's log, or with "" of the global one.
	Events func(project string) string
	// Organize takes in what is new in the logs; nil = somebody else does.
	Organize func(context.Context) error
	// Purge takes events out of a log for good; nil = it cannot be done here.
	Purge func(context.Context, Purging) (Purged, error)
	// Trace finds what in the logs tells of what was worked out from them; nil = an
	// item's own evidence is all that is known.
	Trace func(ctx context.Context, ids []string) (learn.Trace, error)
	// Pending is the directory of what is being forgotten; "" = a forgetting that is
	// killed is finished by nobody.
	Pending string
	Disk    durable.Disk // of Pending
	// Rebuild makes the index anew; nil = Index.Rebuild. It is called by a purge.
	Rebuild func(context.Context) error
	Now     func() time.Time
	// Who asks: Reader.All is the person at the keyboard.
	Who recall.Reader
	// Identify gives an agent the name by which it signs; nil = its own.
	Identify  Identify
	Gates     Gates
	Retention Retention
	// Refused says why the guard refuses a command, "" = it does not: what helped by one is
	// not promoted. nil = nothing is.
	Refused func(command string) string
	// Holders says what of a project's state still holds the text of an item that was
	// taken out (id) in its history, one line each; nil = there is none.
	Holders func(ctx context.Context, project, id, text string) ([]string, error)
}

// New returns the scopes. It touches nothing.
func New(o Options) *Scopes {
	o.Gates = o.Gates.withDefaults()
	if o.Projects == nil {
		o.Projects = func() []string { return nil }
	}
	if o.Blocks == nil {
		o.Blocks = func(string) *memory.Store { return nil }
	}
	return &Scopes{o: o, secrets: redact.New()}
}

// Kinds of what can be named by an id.
const (
	FoundEntry   = "entry"   // of a file of entries
	FoundSection = "section" // of a memory block
	FoundDerived = "derived" // worked out from the logs
)

// Found is an item, wherever it stands.
type Found struct {
	Kind    string
	Project string // empty = global
	Doc     recall.Doc
	Entry   memory.Item    // of an entry
	Passage memory.Passage // of a section
}

// Scope is the item's scope in words.
func (f Found) Scope() string { return cmp.Or(f.Doc.Scope, scopeOf(f.Project)) }

func scopeOf(project string) string {
	if project == "" {
		return string(event.ScopeGlobal)
	}
	return string(event.ScopeProject)
}

// visible says that the reader may see what has this list.
func visible(r recall.Reader, acl []string) bool { return r.MayRead(acl) }

// places are the projects that the reader sees, its own first; "" is global.
func (s *Scopes) places() []string {
	var out []string
	if s.o.Who.Project != "" {
		out = append(out, s.o.Who.Project)
	}
	out = append(out, "")
	if s.o.Who.All {
		for _, p := range s.o.Projects() {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// Find returns the item with this id: an entry (also by the beginning of its
// id), a section, or something worked out from the logs.
func (s *Scopes) Find(ctx context.Context, id string) (Found, error) {
	id = strings.TrimSpace(id)
	if id == "" {
		return Found{}, fmt.Errorf("%w: the id is empty", memory.ErrName)
	}
	for _, p := range s.places() {
		e := s.o.Entries(p)
		if e == nil {
			continue
		}
		item, err := e.Get(ctx, id)
		if errors.Is(err, memory.ErrNotFound) && !strings.Contains(err.Error(), "give more of the id") {
			continue
		}
		if err != nil {
			return Found{}, err
		}
		if visible(s.o.Who, item.ACL) {
			return foundEntry(p, item), nil
		}
	}
	if err := s.fresh(ctx); err != nil {
		return Found{}, err
	}
	var d recall.Doc
	ok := false
	err := s.o.Index.View(ctx, func(tx *recall.Tx) (err error) { d, ok, err = tx.Get(id); return err })
	if err != nil {
		return Found{}, err
	}
	if !ok || !s.sees(d) {
		return Found{}, fmt.Errorf("%w: nothing has the id %s; `reprise recall` shows ids, and `reprise memory read` a block", memory.ErrNotFound, sign.Clip(id, 60))
	}
	return s.foundDoc(d), nil
}

func (s *Scopes) sees(d recall.Doc) bool {
	if !visible(s.o.Who, d.ACL) {
		return false
	}
	return s.o.Who.Sees(d.Project)
}

// fresh brings the index up to date with files and logs.
func (s *Scopes) fresh(ctx context.Context) error {
	if s.o.Organize != nil {
		if err := s.o.Organize(ctx); err != nil {
			return err
		}
	}
	return s.o.Index.Refresh(ctx)
}

func foundEntry(project string, item memory.Item) Found {
	d := EntryDoc(item.Entry, item.State)
	d.Project, d.Scope = project, scopeOf(project)
	d.Source = item.File
	if item.Line > 0 { // what has just been written has no line yet
		d.Source += ":" + strconv.Itoa(item.Line)
	}
	if project != "" {
		d.Source = project + ":" + d.Source
	}
	return Found{Kind: FoundEntry, Project: project, Doc: d, Entry: item}
}

// home is the project whose memory and log a document's are: for what was seen
// outside any, the one that has the directory since; else none.
func (s *Scopes) home(d recall.Doc) string {
	dir, ok := recall.PlaceDir(d.Project)
	switch {
	case !ok:
		return d.Project
	case s.o.Claims == nil:
		return ""
	}
	return s.o.Claims(dir)
}

func (s *Scopes) foundDoc(d recall.Doc) Found {
	f := Found{Kind: FoundDerived, Project: s.home(d), Doc: d}
	if !strings.HasPrefix(d.ID, "file-") {
		return f
	}
	f.Kind = FoundSection
	where := d.Source
	if i := strings.LastIndexByte(where, ':'); i >= 0 {
		where = where[:i] // the line
	}
	where = strings.TrimPrefix(where, d.Project+":")
	_, headings, _ := strings.Cut(d.Title, " > ")
	f.Passage = memory.Passage{File: where, Headings: headings, Text: d.Text}
	return f
}

// store is the memory that a section is in.
func (s *Scopes) store(project string) (*memory.Store, error) {
	if project == "" {
		return s.o.Global, nil
	}
	if st := s.o.Blocks(project); st != nil {
		return st, nil
	}
	return nil, fmt.Errorf("%w: project %s has no memory of its own", memory.ErrNotFound, project)
}

func (s *Scopes) entries(project string) (*memory.Entries, error) {
	if e := s.o.Entries(project); e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("%w: there is no project %s", memory.ErrNotFound, project)
}

// TypeData stands before the type of an entry of a log in the Data of its document:
// they share one class.
const TypeData = "type:"

// EntryDoc is an entry as it can be recalled, with what has become of it.
func EntryDoc(e mdfile.Entry, st mdfile.State) recall.Doc {
	d := recall.Doc{
		ID: e.ID, Author: e.Agent, ACL: e.ACL, Title: sign.Clip(e.Title(), 200), Text: entryText(e), Time: e.Time, Confidence: e.Confidence, Importance: 0.6,
	}
	switch e.Type {
	case mdfile.TypeDecision:
		d.Class, d.Importance = recall.ClassDecision, 0.7
	case mdfile.TypePreference:
		d.Class, d.Importance = recall.ClassProfile, 0.8
	case mdfile.TypeStart, mdfile.TypePlan, mdfile.TypeImplement, mdfile.TypeError, mdfile.TypeHandoff, mdfile.TypeEnd:
		d.Class, d.Importance, d.Data = recall.ClassState, 0.4, []byte(TypeData+e.Type)
	default:
		d.Class = recall.ClassLearning
	}
	if e.Source == sourceHand {
		d.Importance += 0.1 // somebody said so
	}
	if e.Supersedes != "" {
		d.Keys = append(d.Keys, e.Supersedes)
	}
	if made, ok := madeFrom(e.Source); ok { // it says what that says, and both need not be told
		d.Keys = append(d.Keys, made)
	}
	if st.Status == mdfile.StatusSuperseded {
		d.Status, d.Until = recall.Superseded, st.Until
	}
	d.Facts = fact.Find(d.Text)
	return d
}

// entryText is an entry in the words that are served.
func entryText(e mdfile.Entry) string {
	var parts []string
	if e.Decision != "" {
		parts = append(parts, e.Decision)
	}
	if e.Text != "" {
		parts = append(parts, e.Text)
	}
	if e.Rationale != "" {
		parts = append(parts, "Because: "+e.Rationale)
	}
	if len(e.Alternatives) > 0 {
		parts = append(parts, "Instead of: "+strings.Join(e.Alternatives, "; "))
	}
	return strings.Join(parts, "\n")
}

// EntryDocs makes documents of a file of entries: each entry that was not
// retired, and each section of what people wrote between them. It is what a
// [recall.EntryFile] reads its file by; Source is the line.
func EntryDocs(data []byte) ([]recall.Doc, error) {
	f := mdfile.ParseEntries(data)
	states := mdfile.Resolve(f.Entries)
	var out []recall.Doc
	seen := map[string]int{}
	for _, e := range f.Entries {
		st := states[e.ID]
		if e.Type == mdfile.TypeTombstone || st.Status == mdfile.StatusRetired {
			continue
		}
		d := EntryDoc(e, st)
		d.Source = fmt.Sprint(e.Line)
		if at, ok := seen[d.ID]; ok { // edited by hand elsewhere, and merged: the edit is the newer word
			if e.Edited {
				out[at] = d
			}
			continue
		}
		seen[d.ID] = len(out)
		out = append(out, d)
	}
	for _, r := range f.Free {
		out = append(out, freeDocs(f.Bytes(), r[0], r[1])...)
	}
	return out, nil
}

// freeDocs are the sections of a stretch that people wrote.
func freeDocs(src []byte, from, to int) []recall.Doc {
	f, _ := mdfile.Readable(src[from:to])
	before := mdfile.CountLines(src[:from])
	var out []recall.Doc
	for _, sec := range f.Sections() {
		text := strings.TrimSpace(withoutGenerated(string(f.Bytes()[sec.Text:sec.End])))
		if strings.Trim(text, "-*_ \r\n") == "" {
			continue
		}
		title := strings.Join(sec.Path, " > ")
		out = append(out, recall.Doc{
			Source: fmt.Sprint(before + sec.Line), Title: title, Text: text, Author: "user", Importance: 0.6, Facts: fact.FindUnder(title, text),
		})
	}
	return out
}

// withoutGenerated takes out what stands between "<!-- reprise: NAME -->" and its end: it is
// made of the entries, and says nothing that they do not.
func withoutGenerated(text string) string {
	const begin = "<!-- reprise: "
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, begin)
		name, _, ended := strings.Cut(rest, " -->")
		end := "<!-- /reprise: " + name + " -->"
		_, after, closed := strings.Cut(rest, end)
		if !found || !ended || !closed {
			return out.String() + text
		}
		out.WriteString(before)
		text = strings.TrimPrefix(after, "\n")
	}
}

// Sources of entries. One with a colon names what the entry was made from, and
// makes no second one.
const (
	sourceHand  = "hand"
	sourceAgent = "agent"
)

// By whom something is done, in MemoryData.By.
const (
	byHand = "hand"
	byGate = "gate"
)

// who is how the asking one stands in entries.
func (s *Scopes) who() (agent, source string, confidence float64) {
	w := s.o.Who
	if w.All || w.Agent == "" && w.Client == "" {
		return "user", sourceHand, 0.95
	}
	agent = cmp.Or(w.Agent, w.Client)
	if s.o.Identify != nil {
		// Without its local name an entry says only which client wrote it: better
		// than none, and than a name that means nothing elsewhere.
		if name, err := s.o.Identify(context.Background(), w.Client, w.Agent); err == nil {
			agent = name
		} else {
			agent = cmp.Or(w.Client, "agent")
		}
	}
	return agent, sourceAgent, 0.6
}

// note records an event about an item.
func (s *Scopes) note(ctx context.Context, typ event.Type, project string, d event.MemoryData, acl, evidence []string) (string, error) {
	return s.noteBelow(ctx, "", typ, project, d, acl, evidence)
}

// noteBelow records an event that belongs to another one, parent.
func (s *Scopes) noteBelow(ctx context.Context, parent string, typ event.Type, project string, d event.MemoryData, acl, evidence []string) (string, error) {
	data, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("record %s: %w", d.Op, err)
	}
	w := s.o.Who
	ev := event.Event{
		Type: typ, Scope: event.Scope(scopeOf(project)), Project: project, Session: w.Session, Client: w.Client, Agent: w.Agent, Role: w.Role,
		Data: data, Outcome: "success", ACL: acl, Evidence: evidence, Parent: parent,
	}
	ev, err = s.o.Record(ctx, ev)
	if err != nil {
		return "", fmt.Errorf("record %s of %s: %w", d.Op, sign.Clip(d.ID, 60), err)
	}
	return ev.ID, nil
}

// Change is the answer to something that was done to the memory.
type Change struct {
	Op      string `json:"op"`
	ID      string `json:"id"`            // of the item that holds now, or that was taken out
	Old     string `json:"old,omitempty"` // id of the item that it replaces
	Scope   string `json:"scope"`
	Project string `json:"project,omitempty"`
	File    string `json:"file,omitempty"`
	Text    string `json:"text,omitempty"`
	Event   string `json:"event,omitempty"`
	// Existing says that it was so already.
	Existing  bool       `json:"existing,omitempty"`
	Also      []string   `json:"also,omitempty"`  // ids of other items that went with it
	Stays     string     `json:"stays,omitempty"` // id of what a demoted item was made from, which is left
	Conflicts []Conflict `json:"conflicts,omitempty"`
	Warnings  []string   `json:"warnings,omitempty"`
	Purged    int        `json:"purged,omitempty"` // events taken out of the logs
	Taken     []Taken    `json:"taken,omitempty"`  // those events by type
	Items     []Going    `json:"items,omitempty"`  // of a forgetting: all that goes, what was named first
	DryRun    bool       `json:"dry_run,omitempty"`
	Left      []Left     `json:"left,omitempty"` // words of it that something else says
}

// Note is something to be remembered.
type Note struct {
	Type         string // mdfile.TypeLearning when empty
	Text         string
	Decision     string
	Rationale    string
	Alternatives []string
	Project      string // empty = global
	Private      bool   // for the asking agent alone
	Evidence     []string
}

// Learn keeps a note as an entry of its scope, and tells what says otherwise.
func (s *Scopes) Learn(ctx context.Context, n Note) (Change, error) {
	e, err := s.entries(n.Project)
	if err != nil {
		return Change{}, err
	}
	agent, source, confidence := s.who()
	entry := mdfile.Entry{
		Type: cmp.Or(n.Type, mdfile.TypeLearning), Agent: agent, Source: source, Confidence: confidence, Text: n.Text, Decision: n.Decision,
		Rationale: n.Rationale, Alternatives: n.Alternatives, Evidence: n.Evidence,
	}
	if n.Private {
		if s.o.Who.Agent == "" {
			return Change{}, fmt.Errorf("%w: a private note needs an agent whose it is", memory.ErrContent)
		}
		entry.ACL = []string{"agent:" + s.o.Who.Agent}
	}
	a, err := e.AddOnce(ctx, entry, saysSame)
	if err != nil {
		return Change{}, err
	}
	s.touch(n.Project, a.File)
	c := Change{Op: opOf(entry.Type), ID: a.ID, Scope: scopeOf(n.Project), Project: n.Project, File: a.File, Text: entryText(a.Entry), Existing: a.Existing, Warnings: a.Warnings}
	if a.Existing {
		return c, nil
	}
	c.Event, err = s.note(ctx, event.MemoryWritten, n.Project, event.MemoryData{Op: c.Op, ID: a.ID, Name: a.File, To: c.Scope, By: byHand, Text: c.Text}, entry.ACL, n.Evidence)
	if err != nil {
		c.Warnings = append(c.Warnings, "it is written, but the event of it is not: "+err.Error())
	}
	if c.Conflicts, err = s.against(ctx, foundEntry(n.Project, a.Item).Doc); err != nil {
		c.Warnings = append(c.Warnings, "could not look for what says otherwise: "+err.Error())
	}
	return c, nil
}

func opOf(typ string) string {
	if typ == mdfile.TypeDecision {
		return "decide"
	}
	return "learn"
}

// saysSame reports an active entry that says what a new one does, to the same
// readers: telling something twice is no second thing.
func saysSame(old memory.Item, n mdfile.Entry) bool {
	return old.Active() && old.Type == n.Type && slices.Equal(old.ACL, n.ACL) && sayKey(entryText(old.Entry)) == sayKey(entryText(n))
}

// sayKey is a text without what does not count: case, white space, the full
// stop at the end.
func sayKey(text string) string {
	return strings.TrimRight(strings.ToLower(strings.Join(strings.Fields(text), " ")), ".。! ")
}

// touch tells the index of a file that changed.
func (s *Scopes) touch(project, file string) {
	if s.o.Index != nil {
		s.o.Index.TouchIn(project, file)
	}
}

// Used records that an item was of use, or of none.
func (s *Scopes) Used(ctx context.Context, id string, useful bool) (Change, error) {
	f, err := s.Find(ctx, id)
	if err != nil {
		return Change{}, err
	}
	how := "useful"
	if !useful {
		how = "useless"
	}
	data, err := json.Marshal(event.UsedData{ID: f.Doc.ID, How: how})
	if err != nil {
		return Change{}, err
	}
	w := s.o.Who
	ev, err := s.o.Record(ctx, event.Event{
		Type: event.RecallUsed, Scope: event.Scope(scopeOf(f.Project)), Project: f.Project, Session: w.Session, Client: w.Client, Agent: w.Agent, Role: w.Role, Data: data, ACL: f.Doc.ACL,
	})
	if err != nil {
		return Change{}, fmt.Errorf("record that %s was %s: %w", id, how, err)
	}
	return Change{Op: how, ID: f.Doc.ID, Scope: f.Scope(), Project: f.Project, Event: ev.ID, Text: f.Doc.Title}, nil
}

// sweep takes secrets out, by the full rules: everything goes through it before
// it is promoted.
func (s *Scopes) sweep(text string) string {
	clean, _ := s.secrets.String(text)
	return clean
}

// Identify gives an agent of a client the name by which it stands in memory
// that is shared; see memory.Identities.
type Identify func(ctx context.Context, client, agent string) (string, error)

// maxEvidence is the most ids of events that an entry names.
const maxEvidence = 12

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func appendNew(list []string, s string, most int) []string {
	if len(list) >= most || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
