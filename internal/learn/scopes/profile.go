package scopes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/clip"
	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/learn/sign"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/recall"
)

// Preference is one thing about how the user likes things to be.
type Preference struct {
	ID       string    `json:"id"` // of the entry, or the key of a suggestion
	Text     string    `json:"text"`
	Kept     bool      `json:"kept"`     // an entry, which sessions are told; else a suggestion
	Sessions int       `json:"sessions"` // in which the user said so
	Projects []string  `json:"projects,omitempty"`
	Scope    string    `json:"scope"`
	Last     time.Time `json:"last"`
	Source   string    `json:"source"`
	Evidence []string  `json:"evidence,omitempty"`
}

// saidOften is in how many sessions a wish must have been said to be suggested
// when its words do not make it a general one.
const saidOften = 2

// Profile is what is known of how the user likes things: the preferences that
// were kept, by hand or by a gate, then what their own words suggest. It is made
// of prompts and corrections, never of what tools or models said.
func (s *Scopes) Profile(ctx context.Context) ([]Preference, error) {
	if err := s.fresh(ctx); err != nil {
		return nil, err
	}
	out := []Preference{}
	known := map[string]bool{}
	blocked := map[string]bool{}
	for _, p := range s.places() {
		e := s.o.Entries(p)
		if e == nil {
			continue
		}
		list, err := e.List(ctx)
		if err != nil {
			return nil, err
		}
		gone, err := e.Blocked(ctx)
		if err != nil {
			return nil, err
		}
		for source := range gone {
			blocked[source] = true
		}
		for _, i := range list {
			if i.Type != mdfile.TypePreference && !(i.Type == mdfile.TypeLearning && prefers(i.Text)) || !visible(s.o.Who, i.ACL) {
				continue // a learning that tells a preference is one, too
			}
			text := strings.TrimPrefix(entryTextOf(i.Entry), "The user said: ")
			known[i.Source], known[sign.SaidKey(text)] = true, true
			if !i.Active() {
				continue
			}
			pref := Preference{ID: i.ID, Text: text, Kept: true, Scope: scopeOf(p), Last: i.Time, Source: i.Source, Evidence: i.Evidence}
			if p != "" {
				pref.Projects = []string{p}
			}
			out = append(out, pref)
		}
	}
	list, err := s.suggestions(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if !known[p.ID] && !blocked[p.ID] {
			out = append(out, p)
		}
	}
	return out, nil
}

func entryTextOf(e mdfile.Entry) string { return cmp.Or(e.Text, e.Decision) }

// suggestions are wishes in the user's own words that nobody has kept yet.
func (s *Scopes) suggestions(ctx context.Context) ([]Preference, error) {
	type wish struct {
		Preference
		sessions map[string]bool
		general  bool
	}
	by := map[string]*wish{}
	active := recall.Active
	err := s.o.Index.View(ctx, func(tx *recall.Tx) error {
		clear(by)
		add := func(d recall.Doc) bool {
			data, ok := learn.DataOf(d)
			if !ok || !s.sees(d) || data.Kind != learn.KindCorrection && data.Kind != learn.KindTurn {
				return true
			}
			words := data.Said
			if data.Kind == learn.KindTurn {
				words = data.Task
			}
			general := prefers(words)
			key := sign.SaidKey(words)
			if key == "" || data.Kind == learn.KindTurn && !general {
				return true
			}
			w := by[key]
			if w == nil {
				w = &wish{Preference: Preference{ID: key, Source: d.ID}, sessions: map[string]bool{}}
				by[key] = w
			}
			w.Text, w.Last, w.general = sign.Clip(clip.Line(words), 240), d.Time, w.general || general
			w.sessions[d.Session] = true
			if p := s.home(d); p != "" {
				w.Projects = appendNew(w.Projects, p, 20)
			}
			w.Evidence = appendNew(w.Evidence, d.ID, maxEvidence)
			return true
		}
		for _, class := range []recall.Class{recall.ClassEpisode, recall.ClassProfile} {
			if err := tx.Each(recall.Filter{Class: class, Status: &active}, add); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []Preference
	for _, w := range by {
		if w.Sessions = len(w.sessions); !w.general && w.Sessions < saidOften || s.unfit(w.Text) != "" {
			continue
		}
		w.Scope = string(event.ScopeProject)
		if len(w.Projects) != 1 {
			w.Scope = string(event.ScopeGlobal)
		}
		out = append(out, w.Preference)
	}
	slices.SortFunc(out, func(a, b Preference) int {
		return cmp.Or(cmp.Compare(b.Sessions, a.Sessions), b.Last.Compare(a.Last), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// prefers says that a sentence of the user's tells how things should be in
// general, and not what to do now.
func prefers(sentence string) bool {
	low := " " + strings.ToLower(strings.Join(strings.Fields(strings.ReplaceAll(sentence, "’", "'")), " ")) + " "
	if strings.HasSuffix(strings.TrimSpace(low), "?") || strings.HasPrefix(low, " if ") {
		return false
	}
	for _, w := range [...]string{" i prefer ", " i'd prefer ", " i would prefer ", " i'd rather ", " i like it when ", " i don't like ", " i hate ", " my preference is ", " i always want ", " i never want ", " we prefer "} {
		if strings.Contains(low, w) {
			return true
		}
	}
	for _, w := range [...]string{" always ", " please always ", " never ", " please never ", " don't ever ", " do not ever ", " from now on, ", " from now on ", " in future, ", " in general, "} {
		if strings.HasPrefix(low, w) {
			return true
		}
	}
	for _, w := range [...]string{"いつも", "常に", "必ず", "今後は", "これからは", "絶対に", "毎回"} {
		if strings.Contains(sentence, w) && (strings.Contains(sentence, "ください") || strings.Contains(sentence, "て欲しい") || strings.Contains(sentence, "てほしい") || strings.Contains(sentence, "こと")) {
			return true
		}
	}
	return strings.Contains(sentence, "方が好き") || strings.Contains(sentence, "ほうが好き") || strings.Contains(sentence, "好みです") || strings.Contains(sentence, "のが好き")
}

// Keep makes a suggestion a preference that sessions are told. text, when it is
// not empty, says it better. To is project or global; empty is where it was said.
func (s *Scopes) Keep(ctx context.Context, key, text, to string) (Change, error) {
	list, err := s.Profile(ctx)
	if err != nil {
		return Change{}, err
	}
	p, err := preferenceOf(list, key)
	if err != nil {
		return Change{}, err
	}
	if p.Kept {
		if text != "" {
			return s.Correct(ctx, p.ID, "", text)
		}
		return Change{Op: "keep", ID: p.ID, Scope: p.Scope, Text: p.Text, Existing: true}, nil
	}
	project := ""
	switch cmp.Or(to, p.Scope) {
	case string(event.ScopeProject):
		if project = s.o.Who.Project; project == "" && len(p.Projects) == 1 {
			project = p.Projects[0]
		}
		if project == "" {
			return Change{}, fmt.Errorf("keep %s: %w: run this inside the project's directory, or use --to global", key, memory.ErrContent)
		}
	case string(event.ScopeGlobal):
	default:
		return Change{}, fmt.Errorf("keep %s: %w: there is no scope %q; use project or global", key, memory.ErrContent, to)
	}
	e, err := s.entries(project)
	if err != nil {
		return Change{}, err
	}
	agent, _, confidence := s.who()
	a, err := e.Add(ctx, mdfile.Entry{Type: mdfile.TypePreference, Agent: agent, Source: p.ID, Confidence: confidence, Text: cmp.Or(text, p.Text), Evidence: p.Evidence})
	if err != nil {
		return Change{}, err
	}
	s.touch(project, a.File)
	c := Change{Op: "keep", ID: a.ID, Old: p.ID, Scope: scopeOf(project), Project: project, File: a.File, Text: a.Text, Existing: a.Existing, Warnings: a.Warnings}
	c.Event, err = s.note(ctx, event.MemoryWritten, project, event.MemoryData{Op: "keep", ID: a.ID, Name: a.File, By: byHand, To: c.Scope, Text: a.Text}, nil, nil)
	return c, err
}

// DropPreference takes a preference out, or keeps a suggestion from being made
// again.
func (s *Scopes) DropPreference(ctx context.Context, key string) (Change, error) {
	list, err := s.Profile(ctx)
	if err != nil {
		return Change{}, err
	}
	p, err := preferenceOf(list, key)
	if err != nil {
		return Change{}, err
	}
	if p.Kept {
		return s.Forget(ctx, p.ID, Forgetting{Reason: "dropped from the profile", Only: true})
	}
	agent, _, _ := s.who()
	if err := s.o.Entries("").Block(ctx, p.ID, agent, "not a preference"); err != nil {
		return Change{}, err
	}
	return Change{Op: "drop", ID: p.ID, Scope: p.Scope, Text: p.Text}, nil
}

func preferenceOf(list []Preference, key string) (Preference, error) {
	var found []Preference
	for _, p := range list {
		if p.ID == key {
			return p, nil
		}
		if len(key) >= 4 && (strings.HasPrefix(p.ID, key) || strings.HasPrefix(p.ID, "said:"+key)) {
			found = append(found, p)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return Preference{}, fmt.Errorf("%w: no one preference is %s; `reprise memory profile` lists them", memory.ErrNotFound, sign.Clip(key, 60))
}
