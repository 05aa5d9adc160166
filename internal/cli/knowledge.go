package cli

import (
	"context"
	"time"

	"reprise/internal/config"
	"reprise/internal/fact"
	"reprise/internal/hook"
	"reprise/internal/learn"
	"reprise/internal/memory"
	"reprise/internal/proc"
	"reprise/internal/recall"
	"reprise/internal/redact"
)

// openIndex is the index of everything: the global memory, every project's, and
// what was worked out from every log. build says whether what is missing of it
// is made at once; a hook has no time for that.
func (a *App) openIndex(home *config.Home, build bool) (*recall.Index, *learn.Organizer) {
	o := recall.Options{IndexFile: home.IndexFile(), MemoryDir: home.MemoryDir(), Now: a.Env.Now, Facts: fact.FindUnder}
	o.Skip = func(name string, data []byte) bool { return memory.IsSeed(name, string(data)) }
	o.Sources = append(o.Sources, recall.Source{Entries: entryFiles(home, "")})
	logs := []learn.Log{{Dir: home.Paths.Events("")}}
	for _, name := range projectNames(home) {
		o.Sources = append(o.Sources, recall.Source{Project: name, Dir: home.Paths.ProjectMemory(name), Entries: entryFiles(home, name)})
		logs = append(logs, learn.Log{Project: name, Dir: home.Paths.Events(name)})
	}
	var organizer *learn.Organizer
	if build {
		o.Derive = func(ctx context.Context, _ *recall.Index) error {
			_, err := organizer.Rebuild(ctx, nil)
			return err
		}
	}
	redactor := redact.New()
	if e := embedderOf(home, a.Env, redactor); e != nil {
		o.Embedder, o.EmbedFailed = e, a.embedFailed
	}
	index := recall.Open(o)
	organizer = learn.New(learn.Options{
		Index: index, Logs: logs, Now: a.Env.Now,
		Sweep: func(s string) string { s, _ = redactor.String(s); return s },
	})
	return index, organizer
}

// Organizer works out from the logs what can be recalled, for one who may read
// the memory.
func (a *App) Organizer() (*learn.Organizer, error) {
	if _, err := a.Index(); err != nil {
		return nil, err
	}
	return a.organizer, nil
}

// projectMemory is the memory of the project around the working directory; nil
// outside any.
func (a *App) projectMemory() (*memory.Store, error) {
	home, err := a.Home()
	if err != nil || home.Project == nil {
		return nil, err
	}
	access, err := a.memoryAccess()
	if err != nil {
		return nil, err
	}
	return memory.New(memory.Options{
		Dir: home.Paths.ProjectMemory(home.Project.Name), Access: access, Now: a.Env.Now, Git: memory.GitOptions{Off: true},
	}), nil
}

// reader is who asks from the working directory: the person at the keyboard, or
// the agent whose environment this is.
func (a *App) reader() (recall.Reader, error) {
	home, err := a.Home()
	if err != nil {
		return recall.Reader{}, err
	}
	r := recall.Reader{Agent: a.Env.Get(hook.AgentVar), Role: a.Env.Get("AGENT_ROLE")}
	if home.Project != nil {
		r.Project = home.Project.Name
	}
	for _, dir := range config.Places(home.Paths, home.Project, a.Env.Dir) {
		if p := recall.Place(dir); p != "" {
			r.Places = append(r.Places, p)
		}
	}
	return r, nil
}

// person says that a person asks, at the keyboard, and neither an agent that has a
// name nor a run: nothing is private before the person.
func (a *App) person() bool {
	return a.Env.Get(hook.AgentVar) == "" && a.Env.Get(proc.RunIDVar) == ""
}

// searcher searches what is remembered, what was recorded since the last look
// included, as far as organising it takes no longer than a hook may.
type searcher struct{ app *App }

func (s searcher) Search(ctx context.Context, q recall.Query) ([]recall.Hit, error) {
	index, err := s.app.Index()
	if err != nil {
		return nil, err
	}
	home, err := s.app.Home()
	if err != nil {
		return nil, err
	}
	if _, err := s.app.organizer.Run(ctx, time.Duration(home.Settings.Recall.JobMS)*time.Millisecond); err != nil {
		return nil, err
	}
	return index.Search(ctx, q)
}
