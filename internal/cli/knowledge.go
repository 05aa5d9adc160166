package cli

import (
	"context"
	"fmt"

	"reprise/internal/hook"
	"reprise/internal/learn"
	"reprise/internal/memory"
	"reprise/internal/proc"
	"reprise/internal/recall"
	"reprise/internal/redact"
	"reprise/internal/session"
)

// Remembered is all that is remembered, for one who may read the memory.
func (a *App) Remembered() (*session.Memory, error) {
	access, err := a.memoryAccess()
	if err != nil {
		return nil, err
	}
	if err := access.MayRead(); err != nil {
		return nil, err
	}
	return a.anyKnown()
}

func (a *App) anyKnown() (*session.Memory, error) {
	if a.known != nil && !a.known.Renamed() {
		return a.known, nil
	}
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	if p := home.Project; p != nil {
		if now := home.Paths.NameNow(p.Name); now != p.Name {
			return nil, exitWith(ExitConflict, fmt.Errorf("project %s is called %s since this process began (`reprise project rename`): begin the session anew, and what it asks for is found again; what it writes arrives", p.Name, now))
		}
	}
	access, err := a.memoryAccess()
	if err != nil {
		return nil, err
	}
	a.known = session.Open(session.Options{
		Home: home, Env: a.Env, Access: access, Build: !a.hurried,
		Embedder: embedderOf(home, a.Env, redact.New()), EmbedFailed: a.embedFailed,
		Rebuilt: func(r learn.Report) {
			if a.onRebuild != nil {
				a.onRebuild(r)
			}
		},
	})
	return a.known, nil
}

// Organizer works out from the logs what can be recalled, for one who may read
// the memory.
func (a *App) Organizer() (*learn.Organizer, error) {
	m, err := a.Remembered()
	if err != nil {
		return nil, err
	}
	return m.Organizer, nil
}

// Layers are the memories that are read from here: the project's, and the global one.
func (a *App) Layers() (memory.Layers, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	global, err := a.Memory()
	if err != nil {
		return nil, err
	}
	access, err := a.memoryAccess()
	if err != nil || home.Project == nil {
		return memory.Layers{{Store: global}}, err
	}
	name := home.Project.Name
	project := memory.New(memory.Options{
		Dir: home.Paths.ProjectMemory(name), Access: access, May: a.may(), Now: a.Env.Now, Git: memory.GitOptions{Off: true}, Part: true,
	})
	entries := memory.NewEntries(memory.EntriesOptions{Dir: home.Paths.ProjectGlobal(name), Access: access, May: a.may(), Now: a.Env.Now})
	return memory.Layers{{Project: name, Store: project, Entries: entries}, {Store: global}}, nil
}

// may says which entries are shown to who asks: all to a person, to an agent those
// that are everyone's or its own. nil is all.
func (a *App) may() func(acl []string) bool {
	if a.person() && !a.served {
		return nil
	}
	r, err := a.reader()
	if err != nil {
		r = recall.Reader{} // of whom nothing is known
	}
	return r.MayRead
}

// reader is who asks from the working directory: the person at the keyboard, or
// the agent whose environment this is.
func (a *App) reader() (recall.Reader, error) {
	home, err := a.Home()
	if err != nil {
		return recall.Reader{}, err
	}
	return session.Reader(home, a.Env), nil
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
	if err := s.app.finishForgetting(ctx); err != nil {
		return nil, err
	}
	m, err := s.app.Remembered()
	if err != nil {
		return nil, err
	}
	if _, err := m.Organizer.Run(ctx, m.Budget()); err != nil {
		return nil, err
	}
	return m.Index.Search(ctx, q)
}

// Damage is what of the files could not be read.
func (s searcher) Damage(ctx context.Context, r recall.Reader) ([]recall.FileDamage, error) {
	m, err := s.app.Remembered()
	if err != nil {
		return nil, err
	}
	return m.Index.Damage(ctx, r)
}
