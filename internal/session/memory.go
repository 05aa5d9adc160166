package session

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/brief"
	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/fact"
	"reprise/internal/hook"
	"reprise/internal/learn"
	"reprise/internal/learn/improve"
	"reprise/internal/learn/scopes"
	"reprise/internal/memory"
	"reprise/internal/recall"
	"reprise/internal/redact"
)

// Options say whose memory is opened, and for whom.
type Options struct {
	Home *config.Home
	// Env is where who asks works: its Dir decides whose places are told of.
	Env config.Env
	// Access is what this process may do with the memory.
	Access memory.Access
	// Build says that what is missing of the index is made at once; a hook has no
	// time for that.
	Build bool
	// Look says that nothing is made at all: what is not there is an error,
	// recall.ErrNotBuilt.
	Look bool
	// Embedder finds by meaning; nil = by words alone. EmbedFailed is told when it
	// does not answer.
	Embedder    recall.Embedder
	EmbedFailed func(error)
	// Rebuilt, if not nil, is told how far what is worked out from the logs is made anew,
	// after each step.
	Rebuilt func(learn.Report)
}

// Memory is all that is remembered: the global memory, every project's, and what
// was worked out from every log. It is for one goroutine.
type Memory struct {
	o         Options
	projects  []string // that there were when it was opened
	refused   func(command string) string
	Index     *recall.Index
	Organizer *learn.Organizer
}

// Open returns the memory. It reads no file of it yet.
func Open(o Options) *Memory {
	home := o.Home
	projects, names := projectsOf(home)
	m := &Memory{o: o, projects: projects, refused: Refused(home, o.Env)}
	x := recall.Options{IndexFile: IndexFile(home), MemoryDir: home.MemoryDir(), Now: o.Env.Now, Facts: fact.FindUnder}
	x.Skip = func(name string, data []byte) bool { return memory.IsSeed(name, string(data)) }
	x.Sources = append(x.Sources, recall.Source{Entries: entryFiles(home, "")})
	logs := []learn.Log{{Dir: home.Paths.Events("")}}
	for _, name := range projects {
		x.Sources = append(x.Sources, recall.Source{Project: name, Dir: home.Paths.ProjectMemory(name), Entries: entryFiles(home, name), Come: agentFiles(home, name)})
		logs = append(logs, learn.Log{Project: name, Dir: home.Paths.Events(name), Names: names[name]})
	}
	if o.Build {
		x.Derive = func(ctx context.Context, _ *recall.Index) error { return m.organize(ctx) }
	}
	x.NoBuild = o.Look
	if o.Embedder != nil {
		x.Embedder, x.EmbedFailed = o.Embedder, o.EmbedFailed
	}
	redactor := redact.New()
	m.Index = recall.Open(x)
	m.Organizer = learn.New(learn.Options{
		Index: m.Index, Logs: logs, Now: o.Env.Now,
		Sweep: func(s string) string { s, _ = redactor.String(s); return s },
	})
	return m
}

// Renamed says that a project was renamed since this was opened: whoever has it open longer
// than a command takes opens it anew.
func (m *Memory) Renamed() bool {
	return slices.ContainsFunc(m.projects, func(name string) bool { return m.o.Home.Paths.NameNow(name) != name })
}

// Close frees the index.
func (m *Memory) Close() error { return m.Index.Close() }

// Projects are the projects that have data here.
func Projects(home *config.Home) []string {
	projects, _ := projectsOf(home)
	return projects
}

// projectsOf are the projects that have data here, and of those that had another name before
// all their names. A link is what a renaming leaves; where there is none, no register is read.
func projectsOf(home *config.Home) (projects []string, names map[string][]string) {
	entries, err := durable.ReadDir(filepath.Join(home.Paths.Data, "projects"))
	if err != nil {
		return nil, nil
	}
	names = map[string][]string{}
	for _, e := range entries {
		switch {
		case e.IsDir() && !strings.HasPrefix(e.Name(), "."):
			projects = append(projects, e.Name())
		case e.Type()&fs.ModeSymlink != 0:
			if now := home.Paths.NameNow(e.Name()); now != e.Name() && names[now] == nil {
				names[now] = home.Paths.NamesOf(now)
			}
		}
	}
	return projects, names
}

// entryFiles are the files of entries of a project, or with "" of the global
// memory, as the index reads them.
func entryFiles(home *config.Home, project string) []recall.EntryFile {
	e := Entries(home, project, memory.FullAccess, nil)
	var out []recall.EntryFile
	for _, name := range e.Files() {
		class := recall.ClassLearning
		switch filepath.Base(name) {
		case "decisions.md":
			class = recall.ClassDecision
		case "changelog.md":
			class = recall.ClassState
		}
		out = append(out, recall.EntryFile{Name: name, Path: e.Path(name), Class: class, Parse: scopes.EntryDocs})
	}
	return out
}

// Entries are the entries of a project, or with "" of the global memory. now may
// be nil where nothing is written.
func Entries(home *config.Home, project string, access memory.Access, now func() time.Time) *memory.Entries {
	if project == "" {
		return memory.New(memory.Options{Dir: home.MemoryDir(), Access: access, Now: now, Git: memory.GitOptions{Vars: home.Vars}}).Entries()
	}
	return memory.NewEntries(memory.EntriesOptions{Dir: home.Paths.ProjectGlobal(project), Access: access, Now: now})
}

// Reader is who asks: the person at the keyboard, or the agent whose environment
// this is.
func Reader(home *config.Home, env config.Env) recall.Reader {
	r := recall.Reader{Agent: env.Get(hook.AgentVar), Role: env.Get(hook.RoleVar)}
	if home.Project != nil {
		r.Project = home.Project.Name
		r.Keeps, _ = desk(home, env)
	}
	for _, dir := range config.Places(home.Paths, home.Project, env.Dir) {
		if p := recall.Place(dir); p != "" {
			r.Places = append(r.Places, p)
		}
	}
	return r
}

// Reader is who asks of this memory.
func (m *Memory) Reader() recall.Reader { return Reader(m.o.Home, m.o.Env) }

// project is the name of the project that is worked in, "" outside any.
func (m *Memory) project() string {
	if m.o.Home.Project == nil {
		return ""
	}
	return m.o.Home.Project.Name
}

// Policy is what ranks for a reader, at a time or now.
func (m *Memory) Policy(ctx context.Context, r recall.Reader, asOf time.Time) (*recall.Policy, error) {
	p, err := m.Organizer.PolicyFor(ctx, learn.PolicyScope{Project: r.Project, Role: r.Role}, asOf)
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// Brief is where a brief takes what it says.
func (m *Memory) Brief() brief.Options {
	set := m.o.Home.Settings.Recall
	curated := func(name string) func(context.Context) ([]brief.File, error) {
		return func(ctx context.Context) ([]brief.File, error) { return m.curated(ctx, name) }
	}
	return brief.Options{
		Budgets: brief.Budgets{Start: set.SessionStartTokens, Prompt: set.PromptTokens, Failure: set.FailureTokens, Core: set.CoreTokens, Index: set.IndexTokens, State: set.StateTokens},
		Core:    curated("core.md"), Index: curated("index.md"), State: m.stateLines,
		Recall: m.allowed(m.Index.Recall), Top: m.allowed(m.Index.Top), KnownFix: m.knownFix, Now: m.o.Env.Now,
	}
}

// curated are core.md or index.md of the project and of the global memory.
func (m *Memory) curated(ctx context.Context, name string) ([]brief.File, error) {
	var out []brief.File
	read := func(dir, scope string) error {
		s := memory.New(memory.Options{Dir: dir, Access: m.o.Access, Now: m.o.Env.Now, Git: memory.GitOptions{Off: true}})
		doc, _, err := s.Read(ctx, name, 0, 0)
		if errors.Is(err, memory.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if !memory.IsSeed(name, doc.Content) {
			out = append(out, brief.File{Name: name, Scope: scope, Text: doc.Content})
		}
		return nil
	}
	if p := m.project(); p != "" {
		if err := read(m.o.Home.Paths.ProjectMemory(p), p); err != nil {
			return nil, err
		}
	}
	return out, read(m.o.Home.MemoryDir(), "global")
}

// knownFix is what helped with a failure before, then what did not.
func (m *Memory) knownFix(ctx context.Context, r recall.Reader, failed event.ToolData) (recall.Answer, error) {
	known, err := m.Organizer.KnownFix(ctx, r, failed)
	if err != nil {
		return recall.Answer{}, err
	}
	return recall.Answer{Results: append(m.withoutRefused(known.Fixes), known.Avoid...)}, nil
}

// Answers are what the settings say of questions; auto is on, context or off.
func (m *Memory) Answers() (o improve.AnswerOptions, auto string) {
	set := m.o.Home.Settings.QA
	return improve.AnswerOptions{TTL: time.Duration(set.TTLDays) * 24 * time.Hour, Threshold: float64(set.Threshold) / 100, Now: m.o.Env.Now}, set.Auto
}

// Budget is how long one bounded job may take.
func (m *Memory) Budget() time.Duration {
	return time.Duration(m.o.Home.Settings.Recall.JobMS) * time.Millisecond
}
