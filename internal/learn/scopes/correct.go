package scopes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reprise/internal/event"
	"reprise/internal/fact"
	"reprise/internal/learn"
	"reprise/internal/learn/sign"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/recall"
)

// Correct puts what holds in the place of what does not. From that moment the
// old is not served any more; it stays readable: an entry in its file, a
// passage of a block, and what was worked out, in the log. part, when it is not
// empty, is the words of the item that are wrong; text then takes their place
// and the rest stays.
func (s *Scopes) Correct(ctx context.Context, id, part, text string) (Change, error) {
	if strings.TrimSpace(text) == "" {
		return Change{}, fmt.Errorf("correct %s: %w: the new text is empty; `reprise memory forget` takes it out", sign.Clip(id, 60), memory.ErrContent)
	}
	f, err := s.Find(ctx, id)
	if err != nil {
		return Change{}, err
	}
	return s.correct(ctx, f, part, text)
}

// CorrectText is Correct of the one item that has these words in it.
func (s *Scopes) CorrectText(ctx context.Context, words, text string) (Change, error) {
	if strings.TrimSpace(text) == "" {
		return Change{}, fmt.Errorf("correct: %w: the new text is empty; `reprise memory forget` takes it out", memory.ErrContent)
	}
	found, err := s.WithText(ctx, words)
	if err != nil {
		return Change{}, err
	}
	switch len(found) {
	case 0:
		return Change{}, fmt.Errorf("%w: nothing says %q; `reprise recall` finds what is said in other words", memory.ErrNotFound, sign.Clip(words, 120))
	case 1:
		return s.correct(ctx, found[0], words, text)
	}
	var list []string
	for _, f := range found[:min(len(found), 8)] {
		list = append(list, f.Doc.ID+" ("+f.Doc.Source+")")
	}
	return Change{}, fmt.Errorf("correct: %w: %d items say so: %s; name one by its id", memory.ErrExists, len(found), strings.Join(list, ", "))
}

// WithText are the items that say these words, what people wrote before what
// was worked out; what was worked out only where nobody wrote it.
func (s *Scopes) WithText(ctx context.Context, words string) ([]Found, error) {
	words = strings.TrimSpace(words)
	if len(words) < 3 {
		return nil, fmt.Errorf("%w: %q is too short to look for", memory.ErrContent, words)
	}
	if err := s.fresh(ctx); err != nil {
		return nil, err
	}
	want := strings.ToLower(words)
	var written, derived []Found
	active := recall.Active
	err := s.o.Index.View(ctx, func(tx *recall.Tx) error {
		written, derived = nil, nil
		return tx.Each(recall.Filter{Status: &active}, func(d recall.Doc) bool {
			if !s.sees(d) || d.Class == recall.ClassIndex || !strings.Contains(strings.ToLower(d.Text), want) {
				return true
			}
			if f := s.foundDoc(d); f.Kind == FoundSection || strings.HasPrefix(d.ID, "e-") {
				written = append(written, f)
			} else {
				derived = append(derived, f)
			}
			return true
		})
	})
	if err != nil {
		return nil, err
	}
	if len(written) == 0 {
		return derived, nil
	}
	for i, f := range written {
		if strings.HasPrefix(f.Doc.ID, "e-") {
			if written[i], err = s.Find(ctx, f.Doc.ID); err != nil {
				return nil, err
			}
		}
	}
	return written, nil
}

func (s *Scopes) correct(ctx context.Context, f Found, part, text string) (Change, error) {
	switch f.Kind {
	case FoundEntry:
		return s.correctEntry(ctx, f, part, text)
	case FoundSection:
		return s.correctSection(ctx, f, part, text)
	}
	return s.correctDerived(ctx, f, text)
}

// swap puts text in the place of part, whatever case part is given in.
func swap(whole, part, text string) (string, bool) {
	if part == "" {
		return "", false
	}
	i := strings.Index(strings.ToLower(whole), strings.ToLower(part))
	if i < 0 || i+len(part) > len(whole) || !strings.EqualFold(whole[i:i+len(part)], part) {
		return "", false
	}
	return whole[:i] + text + whole[i+len(part):], true
}

func (s *Scopes) correctEntry(ctx context.Context, f Found, part, text string) (Change, error) {
	e, err := s.entries(f.Project)
	if err != nil {
		return Change{}, err
	}
	agent, source, confidence := s.who()
	old := f.Entry.Entry
	n := mdfile.Entry{Agent: agent, Source: source, Confidence: confidence, Type: old.Type, Text: text, ACL: old.ACL}
	if whole, ok := swap(old.Text, part, text); ok {
		n.Text, n.Decision, n.Rationale, n.Alternatives = whole, old.Decision, old.Rationale, old.Alternatives
	} else if whole, ok := swap(old.Decision, part, text); ok {
		n.Text, n.Decision, n.Rationale, n.Alternatives = old.Text, whole, old.Rationale, old.Alternatives
	}
	a, err := e.Correct(ctx, old.ID, n)
	if err != nil {
		return Change{}, err
	}
	s.touch(f.Project, a.File)
	c := Change{Op: "correct", ID: a.ID, Old: a.Supersedes, Scope: f.Scope(), Project: f.Project, File: a.File, Text: entryText(a.Entry), Existing: a.Existing, Warnings: a.Warnings}
	if !a.Existing {
		c.Event, err = s.note(ctx, event.MemoryWritten, f.Project, event.MemoryData{Op: "correct", ID: a.ID, Name: a.File, Supersedes: a.Supersedes, By: byHand, Text: c.Text}, a.ACL, nil)
		if err != nil {
			c.Warnings = append(c.Warnings, "it is corrected, but the event of it is not written: "+err.Error())
		}
	}
	// What says the same in a wider scope, or was worked out, must not go on.
	also, warnings := s.supersedeKin(ctx, f, a.ID)
	c.Also, c.Warnings = also, append(c.Warnings, warnings...)
	if c.Conflicts, err = s.against(ctx, foundEntry(f.Project, a.Item).Doc); err != nil {
		c.Warnings = append(c.Warnings, "could not look for what says otherwise: "+err.Error())
	}
	return c, nil
}

// supersedeKin takes what an entry was made from, where that was worked out,
// out of what is served: it says the same.
func (s *Scopes) supersedeKin(ctx context.Context, f Found, by string) (also, warnings []string) {
	kin, err := s.sayers(ctx, f)
	if err != nil {
		return nil, []string{"could not look for what says the same: " + err.Error()}
	}
	var derived []string
	for _, k := range kin {
		if k.Doc.ID == by {
			continue
		}
		if err := s.supersede(ctx, k, by); err != nil {
			warnings = append(warnings, err.Error())
			continue
		}
		also = append(also, k.Doc.ID)
		switch k.Kind {
		case FoundDerived:
			derived = append(derived, k.Doc.ID)
		case FoundEntry:
			if err := s.retire(ctx, k, "corrected by "+by); err != nil {
				warnings = append(warnings, err.Error())
			}
		}
	}
	if len(also) > 0 {
		if err := s.drop(ctx, derived...); err != nil {
			warnings = append(warnings, err.Error())
		}
	}
	return also, warnings
}

// retire takes an entry that was promoted out of its file.
func (s *Scopes) retire(ctx context.Context, f Found, reason string) error {
	e, err := s.entries(f.Project)
	if err != nil {
		return err
	}
	agent, _, _ := s.who()
	if _, err := e.Retire(ctx, f.Entry.ID, agent, reason); err != nil {
		return err
	}
	s.touch(f.Project, f.Entry.File)
	return nil
}

// sayers are the other items that say what an item says, where a correction of
// it holds: its kin, the episodes and patterns of the same failure and fix, and
// what an entry was promoted from.
func (s *Scopes) sayers(ctx context.Context, f Found) ([]Found, error) {
	var out []Found
	seen := map[string]bool{f.Doc.ID: true}
	for queue := []Found{f}; len(queue) > 0 && len(out) < 200; queue = queue[1:] {
		at := queue[0]
		next, err := s.kinOf(ctx, at)
		if err != nil {
			return nil, err
		}
		if made, ok := madeFrom(at.Entry.Source); ok && strings.HasPrefix(made, "e-") {
			if origin, err := s.Find(ctx, made); err == nil && origin.Entry.Active() {
				next = append(next, origin)
			}
		}
		if data, ok := learn.DataOf(at.Doc); ok && at.Kind == FoundDerived {
			var same []recall.Doc
			err := s.o.Index.View(ctx, func(tx *recall.Tx) (err error) { same, err = sameFix(tx, data); return err })
			if err != nil {
				return nil, err
			}
			for _, d := range same {
				if d.Status == recall.Active && s.sees(d) && !strings.HasPrefix(d.ID, "e-") {
					next = append(next, s.foundDoc(d))
				}
			}
		}
		for _, k := range next {
			// A correction in one project says nothing of what another saw itself.
			if !seen[k.Doc.ID] && (k.Project == "" || f.Project == "" || k.Project == f.Project) {
				seen[k.Doc.ID] = true
				out = append(out, k)
				queue = append(queue, k)
			}
		}
	}
	return out, nil
}

// supersede records that something that was worked out does not hold. The words
// it had are kept with it, so that they stay readable.
func (s *Scopes) supersede(ctx context.Context, f Found, by string) error {
	_, err := s.note(ctx, event.MemoryRetired, f.Project, event.MemoryData{Op: learn.OpCorrect, ID: f.Doc.ID, Supersedes: by, By: byHand, Text: f.Doc.Title}, f.Doc.ACL, nil)
	return err
}

// correctSection changes a passage of a memory file. Without part it is the line
// that states something else about the same subject, or the whole section where
// that is one paragraph; more is not thrown away for one sentence.
func (s *Scopes) correctSection(ctx context.Context, f Found, part, text string) (Change, error) {
	st, err := s.store(f.Project)
	if err != nil {
		return Change{}, err
	}
	p := f.Passage
	switch {
	case part != "":
		exact, ok := cutCase(p.Text, part)
		if !ok {
			return Change{}, fmt.Errorf("correct %s: %w: %q is not in it", f.Doc.ID, memory.ErrNotFound, sign.Clip(part, 120))
		}
		p.Text = exact
	default:
		line, ok := contradicted(p.Text, f.Passage.Headings, text)
		if ok {
			p.Text = line
		} else if trimmed := strings.TrimSpace(p.Text); strings.Contains(trimmed, "\n\n") || strings.Count(trimmed, "\n") > 2 {
			return Change{}, fmt.Errorf("correct %s: %w: the section says more than that; name the words that are wrong with --find", f.Doc.ID, memory.ErrContent)
		}
	}
	old, w, err := st.ReplacePassage(ctx, p, text)
	if err != nil {
		return Change{}, err
	}
	s.touch(f.Project, p.File)
	c := Change{Op: "correct", ID: f.Doc.ID, Old: f.Doc.ID, Scope: f.Scope(), Project: f.Project, File: p.File, Text: text, Existing: w.Unchanged, Warnings: w.Warnings}
	if !w.Unchanged {
		c.Event, err = s.note(ctx, event.MemoryWritten, f.Project, event.MemoryData{Op: "correct", ID: f.Doc.ID, Supersedes: f.Doc.ID, Name: p.File, Hash: w.Hash, By: byHand, Text: text, Reason: "instead of: " + sign.Clip(old, 400)}, nil, nil)
		if err != nil {
			c.Warnings = append(c.Warnings, "it is corrected, but the event of it is not written: "+err.Error())
		}
	}
	d := f.Doc
	d.Text, d.Time, d.Facts = text, s.o.Now(), fact.FindUnder(d.Title, text)
	if c.Conflicts, err = s.against(ctx, d); err != nil {
		c.Warnings = append(c.Warnings, "could not look for what says otherwise: "+err.Error())
	}
	return c, nil
}

// cutCase finds part in a text whatever its case, as it stands there.
func cutCase(text, part string) (string, bool) {
	i := strings.Index(strings.ToLower(text), strings.ToLower(strings.TrimSpace(part)))
	n := len(strings.TrimSpace(part))
	if i < 0 || n == 0 || i+n > len(text) {
		return "", false
	}
	return text[i : i+n], true
}

// contradicted is the line of a text that states something else than the
// correction does about the same subject, without its list marker.
func contradicted(text, headings, correction string) (string, bool) {
	says := fact.FindUnder(headings, correction)
	var hits []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "-* "))
		for _, have := range fact.FindUnder(headings, line) {
			if slices.ContainsFunc(says, func(f fact.Fact) bool { return fact.Contradict(f, have) }) {
				hits = append(hits, line)
				break
			}
		}
	}
	if len(hits) != 1 {
		return "", false
	}
	return hits[0], true
}

// correctDerived keeps what holds as an entry, and what was worked out is not
// served any more.
func (s *Scopes) correctDerived(ctx context.Context, f Found, text string) (Change, error) {
	e, err := s.entries(f.Project)
	if err != nil {
		return Change{}, err
	}
	agent, source, confidence := s.who()
	a, err := e.Correct(ctx, f.Doc.ID, mdfile.Entry{Type: mdfile.TypeLearning, Agent: agent, Source: source, Confidence: confidence, Text: text, ACL: f.Doc.ACL})
	if err != nil {
		return Change{}, err
	}
	s.touch(f.Project, a.File)
	c := Change{Op: "correct", ID: a.ID, Old: f.Doc.ID, Scope: scopeOf(f.Project), Project: f.Project, File: a.File, Text: entryText(a.Entry), Existing: a.Existing, Warnings: a.Warnings}
	if err := s.supersede(ctx, f, a.ID); err != nil {
		return c, err
	}
	c.Event, err = s.note(ctx, event.MemoryWritten, f.Project, event.MemoryData{Op: "correct", ID: a.ID, Name: a.File, Supersedes: f.Doc.ID, By: byHand, Text: c.Text}, f.Doc.ACL, nil)
	if err != nil {
		c.Warnings = append(c.Warnings, "it is corrected, but the event of it is not written: "+err.Error())
	}
	also, warnings := s.supersedeKin(ctx, f, a.ID)
	c.Also, c.Warnings = also, append(c.Warnings, warnings...)
	if err := s.drop(ctx, f.Doc.ID); err != nil {
		return c, err
	}
	if c.Conflicts, err = s.against(ctx, foundEntry(f.Project, a.Item).Doc); err != nil {
		c.Warnings = append(c.Warnings, "could not look for what says otherwise: "+err.Error())
	}
	return c, nil
}

// drop makes the index stop serving what was worked out, now: by taking in the
// event that says so, and where nobody does that here, by hand.
func (s *Scopes) drop(ctx context.Context, ids ...string) error {
	if s.o.Organize != nil {
		if err := s.o.Organize(ctx); err != nil {
			return err
		}
	}
	return s.o.Index.Update(ctx, func(tx *recall.Tx) error {
		for _, id := range ids {
			d, ok, err := tx.Get(id)
			if err != nil {
				return err
			}
			if ok && d.Status == recall.Active {
				if err := tx.Delete(id); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
