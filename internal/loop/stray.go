package loop

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/loop/checkout"
	"reprise/internal/loop/core"
	"reprise/internal/loop/said"
	"reprise/internal/run"
)

// Stray is a commit that came into the main checkout and was not made by reprise.
type Stray = checkout.Stray

// Strayed are the stray commits since a moment, and since the work of a place was begun.
func (t *Worktrees) Strayed(p Place, since time.Time) []Stray {
	list := checkout.Strayed(t.Root, p.Base, since)
	if p.Base == "" {
		return list
	}
	// Git tells the time of a move in seconds: what the work began with came before it.
	return slices.DeleteFunc(list, func(s Stray) bool {
		had, err := t.git(t.Root).IsAncestor(context.Background(), s.Commit, p.Base)
		return err == nil && had
	})
}

// maxStrays are told of.
const maxStrays = 5

// strays are the stray commits of the time of a run that were not told of before. made says
// that the run has made them, as its own output shows.
func (l *Loop) strays(r run.Record, p Place) (list []Stray, made bool) {
	if l.opt.Strayed == nil || r.StartedAt.IsZero() {
		return nil, false
	}
	list = l.opt.Strayed(p, r.StartedAt)
	l.mu.Lock()
	list = slices.DeleteFunc(list, func(s Stray) bool { told, ok := l.strayed[s.Commit]; return ok && told != r.ID })
	for _, s := range list {
		l.strayed[s.Commit] = r.ID
	}
	l.mu.Unlock()
	if len(list) == 0 {
		return nil, false
	}
	out := said.Read(r.Client, r.Logs.Stdout)
	for call := range bytes.Lines(out.Tools.Bytes()) {
		made = made || bytes.Contains(call, []byte("commit")) && checkout.NamesDir(call, l.opt.Root)
	}
	if data, err := checkout.ReadEnd(r.Logs.Stdout, said.Longest); err == nil {
		made = made || slices.ContainsFunc(list, func(s Stray) bool { return checkout.Committed(data, s.Commit) })
	}
	return list, made
}

// strayText says which commits came, and what to do.
func (l *Loop) strayText(list []Stray, made bool, p Place) string {
	var ids, whats []string
	for _, s := range list[max(0, len(list)-maxStrays):] {
		ids = append(ids, s.Commit[:10])
		_, what, _ := strings.Cut(s.What, ": ")
		whats = append(whats, fmt.Sprintf("%s (%s)", s.Commit[:10], oneLine(what, 80)))
	}
	where := filepath.Base(l.opt.Root)
	if made {
		return fmt.Sprintf("it committed in the main checkout, %s, and not in its place: %s; the work belongs on %s: go there, `git cherry-pick %s`, and leave the main checkout to people, who may want to take these commits back there",
			where, strings.Join(whats, ", "), p.Branch, strings.Join(ids, " "))
	}
	return fmt.Sprintf("commits came into the main checkout, %s, meanwhile: %s; if they are of this session and not of a person, the work belongs on %s: go there, and `git cherry-pick %s`",
		where, strings.Join(whats, ", "), p.Branch, strings.Join(ids, " "))
}

// astray fails the work of a run that has committed in the main checkout: what it made is
// not, or not all, on the item's branch.
func (l *Loop) astray(slot int, key string, r run.Record, p Place) (wrong string) {
	list, made := l.strays(r, p)
	if len(list) == 0 {
		return ""
	}
	text := l.strayText(list, made, p)
	l.tell("elsewhere", slot, text)
	if !made {
		l.mu.Lock()
		l.shared[key] = join(l.shared[key], text) // the report has it
		l.mu.Unlock()
		return ""
	}
	return text
}

// missed says of a run that has changed nothing in its place whether it may have worked in
// the main checkout.
func (l *Loop) missed(r run.Record, p Place, o *core.Outcome) {
	list, made := l.strays(r, p)
	if len(list) == 0 {
		return
	}
	o.Reason = join(o.Reason, l.strayText(list, made, p))
}
