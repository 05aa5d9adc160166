package web

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"reprise/internal/learn"
	"reprise/internal/learn/scopes"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/recall"
	"reprise/internal/term"
)

const (
	// foundMost is how many results a search shows.
	foundMost   = 20
	foundTokens = 4000
	// latestFew are listed where nothing is asked, latestMany when more are wanted.
	latestFew    = 10
	latestMany   = 200
	allLines     = 1 << 30
	maxQuestion  = 2000
	diffsContext = 3
)

// MemoryService is what the pages need of memory.Layers.
type MemoryService interface {
	Read(ctx context.Context, scope, name string, offset, limit int) (memory.Doc, bool, error)
	List(ctx context.Context, scope string) ([]memory.BlockInfo, error)
	// Create and Update change the global memory.
	Create(ctx context.Context, b memory.CreateBlock) (memory.Written, error)
	Update(ctx context.Context, b memory.UpdateBlock) (memory.Written, error)
	Check(ctx context.Context) ([]memory.Report, error)
}

// Knowledge finds and changes what is remembered, wherever it stands; scopes.Scopes is
// one.
type Knowledge interface {
	Why(ctx context.Context, id string) (scopes.Account, error)
	Correct(ctx context.Context, id, part, text string) (scopes.Change, error)
	// Would is what Forget would take out; Unforget takes a forgetting back.
	Would(ctx context.Context, id string, o scopes.Forgetting) (scopes.Change, error)
	Forget(ctx context.Context, id string, o scopes.Forgetting) (scopes.Change, error)
	Unforget(ctx context.Context, id, reason string) (scopes.Change, error)
	PromoteItem(ctx context.Context, id, to string) (scopes.Change, error)
	Demote(ctx context.Context, id, reason string) (scopes.Change, error)
}

// Remembering is the memory as the pages use it. Recall and Knowledge are called one at
// a time.
type Remembering struct {
	Files MemoryService
	// CreateHere makes a block of the project's own memory; nil outside any project.
	CreateHere func(ctx context.Context, b memory.CreateBlock) (memory.Written, error)
	// Recall answers a question by the policy in force, with what its scores are made of.
	Recall    func(ctx context.Context, q recall.Question) (recall.Answer, error)
	Knowledge Knowledge
	// Ready finishes what a forgetting that was killed has left, before anything is shown.
	Ready func(ctx context.Context) error
	// Saved is told of a change by Knowledge.
	Saved func(ctx context.Context, c scopes.Change)
	// Latest lists what was remembered last, of q's classes or of Classes; more says that
	// there is more. nil where there is no such list.
	Latest func(ctx context.Context, q recall.Question) (a recall.Answer, more bool, err error)
	// Classes are the kinds of what sessions and people leave, by which a list can be
	// narrowed.
	Classes []recall.Class
	// Sessions calls fn with the figures of each session, until it says false. nil where
	// there are none. It is called one at a time with Recall, Latest, Knowledge and WorkOut.
	Sessions func(ctx context.Context, fn func(learn.Stats) bool) error
	// WorkOut works out for about so long what the logs have new; more says that
	// something is left. nil where Sessions is.
	WorkOut func(ctx context.Context, budget time.Duration) (more bool, err error)
	// Logs are the directories of the logs that sessions are worked out from.
	Logs []string
	// Dirs are the directories whose files are watched.
	Dirs []string
}

func (s *Server) memoryRoutes() {
	s.mux.HandleFunc("GET /memory", s.remembered(s.memoryShow))
	s.mux.HandleFunc("GET /memory/block/{scope}/{name}", s.remembered(s.blockShow))
	s.mux.HandleFunc("GET /memory/edit/{name}", s.remembered(s.blockEdit))
	s.mux.HandleFunc("POST /memory/edit/{name}", s.remembered(s.blockSave))
	s.mux.HandleFunc("POST /memory/create", s.remembered(s.blockCreate))
	s.mux.HandleFunc("GET /memory/item/{id}", s.remembered(s.itemWhy))
	s.mux.HandleFunc("POST /memory/item/{id}/{op}", s.remembered(s.knowledgeChange))
}

// remembered finishes what is to be forgotten before a page shows anything.
func (s *Server) remembered(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if ready := s.deps.Memory.Ready; ready != nil {
			s.thinking.Lock()
			err := ready(r.Context())
			s.thinking.Unlock()
			if err != nil {
				s.fail(w, r, http.StatusInternalServerError, err)
				return
			}
		}
		next(w, r)
	}
}

type signalRow struct {
	Name  string
	Value float64
}

type foundRow struct {
	recall.Result
	Signals []signalRow
}

type memoryPage struct {
	Question string
	AsOf     string
	All      bool
	Class    string
	Classes  []recall.Class
	Asked    bool
	Last     []recall.Result // where nothing was asked: the newest
	More     string          // where more of them are
	Most     bool            // there are others, and no more are listed
	Working  bool            // what sessions left is being worked out
	Found    []foundRow
	Dropped  map[string]int
	Policy   string
	Tokens   int
	Blocks   []memory.BlockInfo
	Always   []string // of core and index those that are there
	Reports  []memory.Report
	Trouble  []string
	Here     bool // a block can be made for the project alone
}

func (s *Server) memoryShow(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p := memoryPage{Question: strings.TrimSpace(q.Get("q")), AsOf: strings.TrimSpace(q.Get("as-of")), All: q.Get("all") != "", Here: s.deps.Memory.CreateHere != nil}
	if len(p.Question) > maxQuestion {
		p.Question = strings.ToValidUTF8(p.Question[:maxQuestion], "")
	}
	p.Classes = s.deps.Memory.Classes
	if class := q.Get("class"); slices.Contains(p.Classes, recall.Class(class)) {
		p.Class = class
	}
	if p.Question != "" {
		s.ask(r.Context(), &p)
	} else if s.deps.Memory.Latest != nil {
		s.latest(r.Context(), &p, q)
	}
	var err error
	if p.Blocks, err = s.deps.Memory.Files.List(r.Context(), ""); err != nil && !errors.Is(err, memory.ErrNotFound) {
		p.Trouble = append(p.Trouble, err.Error())
	}
	for _, name := range []string{"core", "index"} {
		if _, _, err := s.deps.Memory.Files.Read(r.Context(), memory.ScopeGlobal, name, 0, 1); err == nil {
			p.Always = append(p.Always, name)
		}
	}
	if p.Reports, err = s.deps.Memory.Files.Check(r.Context()); err != nil && !errors.Is(err, memory.ErrNotFound) {
		p.Trouble = append(p.Trouble, err.Error())
	}
	s.show(w, r, "memory", s.view(r, "memory", "Memory", p))
}

// question is what a page's form asks; ok is false where it cannot be made out, which the
// page says then.
func (p *memoryPage) question() (q recall.Question, ok bool) {
	q.Text, q.All, q.Wide = p.Question, p.All, p.All
	if p.Class != "" {
		q.Classes = []recall.Class{recall.Class(p.Class)}
	}
	if p.AsOf != "" {
		day, err := time.Parse(time.DateOnly, p.AsOf)
		if err != nil {
			p.Trouble = append(p.Trouble, fmt.Sprintf("As of %.40q is no date: write 2026-09-01.", p.AsOf))
			return q, false
		}
		q.AsOf = day.Add(24*time.Hour - time.Nanosecond) // the end of that day
	}
	return q, true
}

// latest lists what was remembered last.
func (s *Server) latest(ctx context.Context, p *memoryPage, asked url.Values) {
	question, ok := p.question()
	if !ok {
		return
	}
	question.Max = latestFew
	if asked.Get("many") != "" {
		question.Max = latestMany
	}
	var err error
	if p.Working, err = s.workedOut(ctx, workPatience); err != nil {
		p.Trouble = append(p.Trouble, err.Error())
	}
	s.thinking.Lock()
	answer, more, err := s.deps.Memory.Latest(ctx, question)
	s.thinking.Unlock()
	if err != nil {
		p.Trouble = append(p.Trouble, err.Error())
		return
	}
	p.Last = answer.Results
	switch {
	case more && question.Max == latestMany:
		p.Most = true
	case more:
		asked.Set("many", "yes")
		p.More = "/memory?" + asked.Encode()
	}
}

// ask answers the page's question.
func (s *Server) ask(ctx context.Context, p *memoryPage) {
	question, ok := p.question()
	if !ok {
		return
	}
	question.Max, question.MaxTokens, question.Explain = foundMost, foundTokens, true
	s.thinking.Lock()
	answer, err := s.deps.Memory.Recall(ctx, question)
	s.thinking.Unlock()
	if err != nil {
		p.Trouble = append(p.Trouble, err.Error())
		return
	}
	p.Asked, p.Policy, p.Tokens, p.Dropped = true, answer.Policy, answer.Tokens, map[string]int{}
	for _, why := range answer.Dropped {
		p.Dropped[why]++
	}
	for _, res := range answer.Results {
		row := foundRow{Result: res}
		for _, name := range slices.Sorted(maps.Keys(res.Signals)) {
			row.Signals = append(row.Signals, signalRow{name, res.Signals[name]})
		}
		p.Found = append(p.Found, row)
	}
}

type blockPage struct {
	Doc         memory.Doc
	Front, Body string
	Entries     []mdfile.Entry // of a file of entries, the last one first; Body is what stands between
	Editable    bool
	Why         string // why it is not
}

func (s *Server) blockShow(w http.ResponseWriter, r *http.Request) {
	doc, _, err := s.deps.Memory.Files.Read(r.Context(), r.PathValue("scope"), r.PathValue("name"), 0, allLines)
	if err != nil {
		s.memoryFail(w, r, err)
		return
	}
	p := blockPage{Doc: doc, Body: doc.Content}
	if f := mdfile.ParseEntries([]byte(doc.Content)); len(f.Entries) > 0 {
		p.Entries, p.Body = f.Entries, ""
		slices.Reverse(p.Entries)
		for _, free := range f.Free {
			p.Body += string(f.Bytes()[free[0]:free[1]]) + "\n"
		}
	} else if f, err := mdfile.Parse([]byte(doc.Content)); err == nil {
		p.Front, p.Body = string(f.FrontMatter()), string(f.Body())
	}
	p.Editable, p.Why = editable(doc)
	s.show(w, r, "block", s.view(r, "memory", doc.Name, p))
}

// editable says whether a file can be edited in a form without losing any of it: a
// browser sends back what it shows, and what cannot be seen is not shown as it is.
func editable(d memory.Doc) (bool, string) {
	switch {
	case d.Scope == memory.ScopeProject:
		return false, "A project's own memory is edited in its files, and its entries by what agents and people learn."
	case len(d.Damage) > 0 || d.Private > 0:
		return false, "Parts of this file are not shown here: edit the file itself."
	case term.SafeText(d.Content) != d.Content:
		return false, "The file has characters that cannot be seen, or line ends of another system: edit the file itself, so that none is changed unseen."
	case len(d.Content) > memory.MaxContent:
		return false, "The file is too long for a form: edit the file itself."
	}
	return true, ""
}

type editPage struct {
	Name, Hash, Text string
	// Theirs is what the file holds now, where it changed since the form was made, and
	// Diff what is different in Text.
	Conflict bool
	Theirs   string
	Diff     []diffLine
	Trouble  string
}

// diffLine is a line of a comparison: kind is "+", "-", "@" or " ".
type diffLine struct{ Kind, Text string }

func (s *Server) blockEdit(w http.ResponseWriter, r *http.Request) {
	doc, _, err := s.deps.Memory.Files.Read(r.Context(), memory.ScopeGlobal, r.PathValue("name"), 0, allLines)
	if err != nil {
		s.memoryFail(w, r, err)
		return
	}
	if ok, why := editable(doc); !ok {
		s.fail(w, r, http.StatusConflict, errors.New(why))
		return
	}
	s.show(w, r, "edit", s.view(r, "memory", "Edit "+doc.Name, editPage{Name: doc.Name, Hash: doc.Hash, Text: doc.Content}))
}

// blockSave writes an edit, by the checks of `memory update --if-hash`. What cannot be
// written comes back with the form, so that nothing that was typed is lost.
func (s *Server) blockSave(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	p := editPage{Name: name, Hash: r.PostForm.Get("hash"), Text: normal(r.PostForm.Get("text"))}
	if p.Hash == "" {
		s.fail(w, r, http.StatusBadRequest, errors.New("the form does not say which version of the file it is about: load the page anew"))
		return
	}
	written, err := s.deps.Memory.Files.Update(r.Context(), memory.UpdateBlock{Name: name, Content: p.Text, IfHash: p.Hash})
	var stale *memory.StaleError
	switch {
	case errors.As(err, &stale):
		p.Conflict, p.Theirs, p.Hash = true, stale.Current.Content, stale.Have
		p.Diff = diffOf(p.Theirs, p.Text)
		s.showAs(w, r, http.StatusConflict, "edit", s.view(r, "memory", "Edit "+name, p))
		return
	case errors.Is(err, memory.ErrNotFound):
		p.Trouble = err.Error() + "; what you wrote is still in the form"
		s.showAs(w, r, http.StatusNotFound, "edit", s.view(r, "memory", "Edit "+name, p))
		return
	case err != nil:
		p.Trouble = err.Error()
		s.showAs(w, r, http.StatusUnprocessableEntity, "edit", s.view(r, "memory", "Edit "+name, p))
		return
	}
	note := "saved"
	if written.Unchanged {
		note = "unchanged"
	}
	s.done(w, r, "/memory/block/"+memory.ScopeGlobal+"/"+url.PathEscape(written.Name), note)
}

// diffOf compares two texts line by line.
func diffOf(old, text string) []diffLine {
	var out []diffLine
	diff, err := udiff.ToUnified("", "", old, udiff.Strings(old, text), diffsContext)
	if err != nil {
		return []diffLine{{"@", "the texts cannot be compared: " + err.Error()}}
	}
	for i, line := range strings.Split(strings.TrimSuffix(diff, "\n"), "\n") {
		if i < 2 || line == "" {
			continue // names of files
		}
		out = append(out, diffLine{line[:1], line[1:]})
	}
	return out
}

func (s *Server) blockCreate(w http.ResponseWriter, r *http.Request) {
	b := memory.CreateBlock{Name: strings.TrimSpace(r.PostForm.Get("name")), Content: normal(r.PostForm.Get("text")), Summary: strings.TrimSpace(r.PostForm.Get("summary"))}
	scope, create := memory.ScopeGlobal, s.deps.Memory.Files.Create
	if here := s.deps.Memory.CreateHere; here != nil && r.PostForm.Get("for") == memory.ScopeProject {
		if err := s.deps.Claim(r.Context()); err != nil {
			s.fail(w, r, http.StatusConflict, err)
			return
		}
		scope, create = memory.ScopeProject, here
	}
	written, err := create(r.Context(), b)
	if err != nil {
		s.memoryFail(w, r, err)
		return
	}
	s.done(w, r, "/memory/block/"+scope+"/"+url.PathEscape(written.Name), "created")
}

func (s *Server) memoryFail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, memory.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, memory.ErrStale), errors.Is(err, memory.ErrExists), errors.Is(err, memory.ErrDenied), errors.Is(err, memory.ErrRetired):
		status = http.StatusConflict
	case errors.Is(err, memory.ErrName), errors.Is(err, memory.ErrContent), errors.Is(err, memory.ErrFormat), errors.Is(err, memory.ErrTooLarge), errors.Is(err, memory.ErrOutside):
		status = http.StatusBadRequest
	}
	s.fail(w, r, status, err)
}

type whyPage struct {
	ID       string
	Account  scopes.Account
	File     string // page of the file that it stands in
	Promoted bool   // by a person or a gate, which can be taken back
	// Would is what goes where it is forgotten with what says the same, itself among it.
	Would scopes.Change
}

// ByKind reports whether the importance is that of the kind and the author, of which the
// signals say nothing.
func (p whyPage) ByKind() bool { return scopes.ByKind(p.Account.Doc.Class) }

// choice is a value of a form, with its name on the page.
type choice struct{ Value, Name string }

// Wider are the scopes to which it can be promoted, the likely one first; none where all
// projects are told it already.
func (p whyPage) Wider() []choice {
	d := &p.Account.Doc
	private := len(d.ACL) > 0 && !slices.Contains(d.ACL, "*")
	all := choice{"global", "all projects"}
	switch entry := p.Account.MadeFrom != ""; {
	case !entry || private:
		return []choice{{"", "the next wider scope"}, {"project", "the project"}, all}
	case d.Project == "":
		return nil
	}
	return []choice{all} // it is the project's
}

func (s *Server) itemWhy(w http.ResponseWriter, r *http.Request) {
	s.thinking.Lock()
	account, err := s.deps.Memory.Knowledge.Why(r.Context(), r.PathValue("id"))
	var would scopes.Change
	if err == nil && !s.deps.ReadOnly && !account.Forgotten {
		would, _ = s.deps.Memory.Knowledge.Would(r.Context(), r.PathValue("id"), scopes.Forgetting{}) // of what is gone already it is nothing
	}
	s.thinking.Unlock()
	if err != nil {
		s.memoryFail(w, r, err)
		return
	}
	s.show(w, r, "why", s.view(r, "memory", "Why it is remembered", whyPage{
		ID: r.PathValue("id"), Account: account, Promoted: slices.ContainsFunc(account.History, func(h scopes.Step) bool { return h.Op == "promote" }),
		Would: would,
	}))
}

// onlyThat reports whether an item is forgotten without what says the same: where that is told
// in other projects, too, and the person has not said that it goes as well.
func (s *Server) onlyThat(ctx context.Context, id, also string) (bool, error) {
	if also != "" {
		return false, nil
	}
	would, err := s.deps.Memory.Knowledge.Would(ctx, id, scopes.Forgetting{})
	if errors.Is(err, memory.ErrNotFound) { // forgetting says what became of it
		return false, nil
	}
	return would.Far(), err
}

func (s *Server) knowledgeChange(w http.ResponseWriter, r *http.Request) {
	ctx, k, id := r.Context(), s.deps.Memory.Knowledge, r.PathValue("id")
	if err := s.deps.Claim(ctx); err != nil {
		s.fail(w, r, http.StatusConflict, err)
		return
	}
	text := strings.TrimSpace(normal(r.PostForm.Get("text")))
	s.thinking.Lock()
	defer s.thinking.Unlock()
	var c scopes.Change
	var err error
	note := ""
	switch r.PathValue("op") {
	case "correct":
		if note = "corrected"; text == "" {
			s.fail(w, r, http.StatusBadRequest, errors.New("write what holds instead"))
			return
		}
		c, err = k.Correct(ctx, id, "", text)
	case "promote":
		note = "promoted"
		c, err = k.PromoteItem(ctx, id, r.PostForm.Get("to"))
	case "demote":
		note = "demoted"
		c, err = k.Demote(ctx, id, text)
	case "forget":
		note = "forgotten"
		var only bool
		if only, err = s.onlyThat(ctx, id, r.PostForm.Get("also")); err == nil {
			c, err = k.Forget(ctx, id, scopes.Forgetting{Reason: text, Only: only})
		}
	case "unforget":
		note = "brought-back"
		c, err = k.Unforget(ctx, id, text)
	default:
		s.fail(w, r, http.StatusNotFound, errors.New("there is no such change of what is remembered"))
		return
	}
	if err != nil {
		s.memoryFail(w, r, err)
		return
	}
	if s.deps.Memory.Saved != nil {
		s.deps.Memory.Saved(ctx, c)
	}
	to := "/memory"
	if note != "forgotten" && c.ID != "" {
		to = "/memory/item/" + url.PathEscape(c.ID)
	} else if a, err := k.Why(ctx, id); err == nil && a.Forgotten { // where it is brought back
		to = "/memory/item/" + url.PathEscape(id)
	}
	s.done(w, r, to, note)
}
