package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/learn/scopes"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/staterepo"
	"reprise/internal/web/timeline"
	"reprise/internal/web/watch"
)

const (
	entriesPerPage = 50
	stepsPerPage   = 50
	maxDiff        = 256 << 10 // bytes of a diff that a page shows
)

// StateService is what the pages need of staterepo.Repo.
type StateService interface {
	Exists() bool
	Dir() string
	Team(ctx context.Context) ([]staterepo.Member, error)
	Log(ctx context.Context, agent string) ([]staterepo.LogEntry, error)
	Handoffs(ctx context.Context, agent string) ([]staterepo.Handoff, error)
	Unpromoted(ctx context.Context, agent string) ([]staterepo.LogEntry, error)
	History(ctx context.Context, agent, from string, most int) ([]staterepo.Step, error)
	Diff(ctx context.Context, commit string) (staterepo.Step, string, error)
}

// State is what a project's agents know, as the pages use it.
type State struct {
	Repo StateService
	// Shared is the directory of what all agents share.
	Shared string
	// Keep keeps a learning or a decision of the person, for the project, at once. Keep
	// and Promote are called one at a time.
	Keep func(ctx context.Context, n scopes.Note) (scopes.Change, error)
	// Promote gives an agent's own learning or decision to the project.
	Promote func(ctx context.Context, agent, id string) (scopes.Change, error)
}

func (s *Server) stateRoutes() {
	s.mux.HandleFunc("GET /state", s.stateShow)
	s.mux.HandleFunc("GET /state/entries/{id}", s.entryShow)
	s.mux.HandleFunc("GET /state/history", s.historyShow)
	s.mux.HandleFunc("GET /state/commits/{id}", s.commitShow)
	s.mux.HandleFunc("POST /state/{op}", s.stateChange)
}

// known is the state as it was read last: reading it starts git several times.
type known struct {
	team []staterepo.Member
	log  []staterepo.Handoff // every entry once, with who accepted it, by time
	left map[string]string   // ids of what can be promoted, with whose it is
}

// stateLook looks at what the state is read from: the refs, and the files of those who
// work on this machine.
func (s *Server) stateLook() func(*watch.Look) {
	repo, shared := s.deps.State.Repo.Dir(), s.deps.State.Shared
	return func(l *watch.Look) {
		l.File(filepath.Join(repo, "packed-refs"))
		for _, refs := range []string{"heads", "remotes/origin", "reprise/handoff", "reprise/claims", "reprise/consolidated"} {
			l.Dir(filepath.Join(repo, "refs", filepath.FromSlash(refs)), true)
		}
		l.Dir(shared, true)
		l.Dir(filepath.Join(shared, "branches"), true)
		places := staterepo.Checkouts(filepath.Dir(repo))
		for _, name := range slices.Sorted(maps.Keys(places)) {
			l.Dir(places[name], true)
		}
	}
}

// state is what the agents know, as it is on disk.
func (s *Server) state(ctx context.Context) (known, error) {
	if !s.deps.State.Repo.Exists() {
		return known{}, nil
	}
	return s.keptState.get(s.stateLook(), func() (known, bool, error) {
		k, err := readKnown(ctx, s.deps.State.Repo)
		return k, true, err
	})
}

func readKnown(ctx context.Context, repo StateService) (k known, err error) {
	if k.team, err = repo.Team(ctx); err != nil {
		return known{}, err
	}
	entries, err := repo.Log(ctx, staterepo.Everyone)
	if err != nil {
		return known{}, err
	}
	handoffs, err := repo.Handoffs(ctx, "")
	if err != nil {
		return known{}, err
	}
	taken := map[string]string{}
	for _, h := range handoffs {
		taken[h.ID] = h.AcceptedBy
	}
	for _, e := range entries {
		k.log = append(k.log, staterepo.Handoff{LogEntry: e, AcceptedBy: taken[e.ID]})
	}
	k.left = map[string]string{}
	for _, m := range k.team {
		list, err := repo.Unpromoted(ctx, m.Agent)
		if err != nil {
			return known{}, err
		}
		for _, e := range list {
			k.left[e.ID] = m.Agent
		}
	}
	return k, nil
}

type memberRow struct {
	staterepo.Member
	Class, Where string
}

// entryRow is an entry in a list.
type entryRow struct {
	staterepo.Handoff
	Who   string // whose log it stands in, "" of what all share
	Title string
	How   string // how it stands
	Class string // of that
	From  []entryLink
	Mine  string // the agent whose own it is still, which could give it to the project
}

type entryLink struct{ Word, ID, Title string }

type statePage struct {
	There    bool
	Team     []memberRow
	Over     int
	Open     []entryRow
	Taken    []entryRow
	Entries  []entryRow
	Graph    timeline.Graph
	Total    int
	Kept     int
	Agents   []string
	Types    []string
	Agent    string
	Type     string
	Newer    string
	Older    string
	Left     int
	ShowOver bool
}

func statusTone(status string) string {
	switch status {
	case "completed":
		return "good"
	case "blocked", "failed":
		return "bad"
	case "in_progress":
		return "busy"
	case "pending":
		return "warn"
	}
	return ""
}

// entryRows are entries as pages list them; all is where what they name is looked up.
func entryRows(list, all []staterepo.Handoff, left map[string]string) []entryRow {
	titles, before, last := map[string]string{}, map[string]string{}, map[string]string{}
	for _, e := range all {
		titles[e.ID] = e.Title()
		before[e.ID], last[e.Branch] = last[e.Branch], e.ID
	}
	var out []entryRow
	for _, e := range list {
		row := entryRow{Handoff: e, Who: timeline.Whose(e.LogEntry), Title: e.Title(), Mine: left[e.ID]}
		switch {
		case e.AcceptedBy != "":
			row.How, row.Class = "taken by "+e.AcceptedBy, "good"
		case e.Type == mdfile.TypeHandoff:
			row.How, row.Class = "waits", "warn"
		case e.State.Status != mdfile.StatusActive && e.State.Status != "":
			row.How, row.Class = e.State.Status, "warn"
		case slices.Contains(staterepo.Statuses(), e.Status):
			row.How, row.Class = e.Status, statusTone(e.Status)
		}
		if e.Parent != "" && e.Parent != before[e.ID] { // that it goes on from the one before says nothing
			row.From = append(row.From, entryLink{"goes on from", e.Parent, titles[e.Parent]})
		}
		for _, id := range e.DependsOn {
			row.From = append(row.From, entryLink{"needs", id, titles[id]})
		}
		if e.Supersedes != "" {
			row.From = append(row.From, entryLink{"in place of", e.Supersedes, titles[e.Supersedes]})
		}
		out = append(out, row)
	}
	return out
}

func (s *Server) stateShow(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p := statePage{There: s.deps.State.Repo.Exists(), Agent: q.Get("agent"), Type: q.Get("type"), Types: staterepo.Types(), ShowOver: q.Get("over") != ""}
	k, err := s.state(r.Context())
	if err != nil {
		s.stateFail(w, r, err)
		return
	}
	team, log, left := k.team, k.log, k.left
	for _, m := range team {
		p.Agents = append(p.Agents, m.Agent)
		p.Left += m.Left
		if m.Over() && !p.ShowOver {
			p.Over++
			continue
		}
		row := memberRow{Member: m, Class: statusTone(m.Status), Where: "elsewhere"}
		switch {
		case m.Here:
			row.Where = "on this machine"
		case m.Nowhere:
			row.Where = "nowhere any more"
		}
		p.Team = append(p.Team, row)
	}
	slices.Sort(p.Agents)
	var open, taken, kept []staterepo.Handoff
	for _, e := range slices.Backward(log) {
		if e.Type == mdfile.TypeHandoff {
			if e.AcceptedBy == "" {
				open = append(open, e)
			} else {
				taken = append(taken, e)
			}
		}
		if (p.Agent == "" || e.Agent == p.Agent || timeline.Whose(e.LogEntry) == p.Agent) && (p.Type == "" || e.Type == p.Type) {
			kept = append(kept, e)
		}
	}
	p.Open, p.Taken = entryRows(open, log, left), entryRows(taken[:min(len(taken), 20)], log, left)
	p.Total, p.Kept = len(log), len(kept)
	from := max(0, min(number(r, "from"), len(kept)))
	page := kept[from:min(len(kept), from+entriesPerPage)]
	p.Entries, p.Graph = entryRows(page, log, left), timeline.Of(page)
	link := func(from int) string {
		v := url.Values{}
		for name, value := range map[string]string{"agent": p.Agent, "type": p.Type} {
			if value != "" {
				v.Set(name, value)
			}
		}
		v.Set("from", fmt.Sprint(from))
		return "?" + v.Encode() + "#timeline"
	}
	if from > 0 {
		p.Newer = link(max(0, from-entriesPerPage))
	}
	if from+entriesPerPage < len(kept) {
		p.Older = link(from + entriesPerPage)
	}
	s.show(w, r, "state", s.view(r, "state", "State", p))
}

type entryPage struct {
	Row      entryRow
	Children []entryLink
	Memory   bool // there is an account of why it is remembered
}

func (s *Server) entryShow(w http.ResponseWriter, r *http.Request) {
	k, err := s.state(r.Context())
	if err != nil {
		s.stateFail(w, r, err)
		return
	}
	log, left := k.log, k.left
	id := r.PathValue("id")
	i := slices.IndexFunc(log, func(e staterepo.Handoff) bool { return e.ID == id })
	if i < 0 {
		s.fail(w, r, http.StatusNotFound, errors.New("no agent has an entry with this id, as far as is known here"))
		return
	}
	p := entryPage{Row: entryRows(log[i:i+1], log, left)[0]}
	for _, e := range log {
		switch {
		case e.Parent == id:
			p.Children = append(p.Children, entryLink{"gone on with in", e.ID, e.Title()})
		case slices.Contains(e.DependsOn, id):
			p.Children = append(p.Children, entryLink{"needed by", e.ID, e.Title()})
		case e.Supersedes == id:
			p.Children = append(p.Children, entryLink{"replaced by", e.ID, e.Title()})
		}
	}
	p.Memory = s.deps.Memory != nil && p.Row.Who == "" && (p.Row.Type == mdfile.TypeLearning || p.Row.Type == mdfile.TypeDecision)
	s.show(w, r, "entry", s.view(r, "state", cmp.Or(oneLine(80, p.Row.Title), id), p))
}

type historyPage struct {
	Agent string
	Steps []staterepo.Step
	Older string
}

func (s *Server) historyShow(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p := historyPage{Agent: q.Get("agent")}
	steps, err := s.deps.State.Repo.History(r.Context(), p.Agent, q.Get("from"), stepsPerPage+1)
	if err != nil {
		s.stateFail(w, r, err)
		return
	}
	if len(steps) > stepsPerPage {
		p.Older = "?" + url.Values{"agent": {p.Agent}, "from": {steps[stepsPerPage].Commit}}.Encode()
		steps = steps[:stepsPerPage]
	}
	for _, st := range steps {
		if len(st.Parents) > 0 { // what every repository begins with says nothing
			p.Steps = append(p.Steps, st)
		}
	}
	name := p.Agent
	if name == "" {
		name = "what all share"
	}
	s.show(w, r, "history", s.view(r, "state", "History of "+name, p))
}

type commitPage struct {
	Step  staterepo.Step
	Files []fileDiff
	Cut   bool
}

// fileDiff is what a commit changed in a file.
type fileDiff struct {
	Name  string
	Lines []diffLine
}

func (s *Server) commitShow(w http.ResponseWriter, r *http.Request) {
	step, diff, err := s.deps.State.Repo.Diff(r.Context(), r.PathValue("id"))
	if err != nil {
		s.stateFail(w, r, err)
		return
	}
	p := commitPage{Step: step}
	if len(diff) > maxDiff {
		diff, p.Cut = strings.ToValidUTF8(diff[:maxDiff], ""), true
	}
	p.Files = filesOf(diff)
	s.show(w, r, "commit", s.view(r, "state", oneLine(80, step.Message), p))
}

// filesOf divides a diff by its files; their names are read where git wrote them, from
// the lines that begin with --- and +++.
func filesOf(diff string) []fileDiff {
	var out []fileDiff
	head := false
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "diff --git "):
			out, head = append(out, fileDiff{Name: strings.TrimPrefix(line, "diff --git ")}), true
		case len(out) == 0:
		case head && (strings.HasPrefix(line, "+++ b/") || strings.HasPrefix(line, "--- a/")):
			out[len(out)-1].Name = line[len("+++ b/"):]
		case head && !strings.HasPrefix(line, "@@"):
			// index, mode, /dev/null
			if strings.HasPrefix(line, "Binary files") {
				out[len(out)-1].Lines = append(out[len(out)-1].Lines, diffLine{"@", line})
			}
		default:
			head = false
			kind := " "
			if line != "" {
				kind, line = line[:1], line[1:]
			}
			out[len(out)-1].Lines = append(out[len(out)-1].Lines, diffLine{kind, line})
		}
	}
	return out
}

// stateChange is what a person adds: what was learnt, what was decided, what of an
// agent's is the project's from now on.
func (s *Server) stateChange(w http.ResponseWriter, r *http.Request) {
	text := func(name string) string { return strings.TrimSpace(normal(r.PostForm.Get(name))) }
	op := r.PathValue("op")
	if op != "learn" && op != "decide" && op != "promote" {
		s.fail(w, r, http.StatusNotFound, errors.New("there is no such change of what agents know"))
		return
	}
	if text("text") == "" && op != "promote" {
		s.fail(w, r, http.StatusBadRequest, errors.New("write down what is to be kept"))
		return
	}
	if err := s.deps.Claim(r.Context()); err != nil {
		s.fail(w, r, http.StatusConflict, err)
		return
	}
	s.thinking.Lock()
	defer s.thinking.Unlock()
	var c scopes.Change
	var err error
	note := ""
	switch op {
	case "learn":
		note = "learnt"
		c, err = s.deps.State.Keep(r.Context(), scopes.Note{Type: mdfile.TypeLearning, Text: text("text")})
	case "decide":
		note = "decided"
		n := scopes.Note{Type: mdfile.TypeDecision, Decision: text("text"), Rationale: text("because")}
		for line := range strings.Lines(text("over")) {
			if line = strings.TrimSpace(line); line != "" {
				n.Alternatives = append(n.Alternatives, line)
			}
		}
		c, err = s.deps.State.Keep(r.Context(), n)
	case "promote":
		note = "promoted"
		c, err = s.deps.State.Promote(r.Context(), text("agent"), text("id"))
	}
	if err != nil {
		s.stateFail(w, r, err)
		return
	}
	if c.Existing {
		note = "known"
	}
	s.done(w, r, "/state", note)
}

func (s *Server) stateFail(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, staterepo.ErrNoAgent), errors.Is(err, staterepo.ErrUnknown), errors.Is(err, memory.ErrNotFound):
		s.fail(w, r, http.StatusNotFound, err)
	case errors.Is(err, memory.ErrContent), errors.Is(err, memory.ErrFormat), errors.Is(err, memory.ErrTooLarge):
		s.fail(w, r, http.StatusBadRequest, err)
	case errors.Is(err, memory.ErrDenied), errors.Is(err, memory.ErrRetired), errors.Is(err, staterepo.ErrBusy):
		s.fail(w, r, http.StatusConflict, err)
	default:
		s.fail(w, r, http.StatusInternalServerError, err)
	}
}
