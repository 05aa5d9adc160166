package learn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"reprise/internal/event"
	"reprise/internal/recall"
)

// What was served and then mentioned again was of use. A mention is one of the
// item's own words, of those that say something, in a later tool call or answer
// of the session, that had not been said in it before the item was served, by
// nobody, and that the user has not brought up since.

const (
	lookDays    = 7 // a session that has been silent for longer is not looked at any more
	plainNeeded = 3 // ordinary words that make a mention where no telling one does
	plainShare  = 0.4
	commonShare = 0.05 // of all documents: what occurs in more is not telling
	commonLeast = 5
)

// mentions records what was used of what was served in the sessions that have
// something new, as far as there is time.
func (o *Organizer) mentions(ctx context.Context, j Job, over func() bool) (int, error) {
	type look struct{ session, state string }
	var list []look
	err := o.store.View(ctx, func(tx Tx) error {
		return tx.EachKV(bucketLook, "", func(key string, value []byte) bool {
			list = append(list, look{key, string(value)})
			return len(list) < 200
		})
	})
	n := 0
	for _, l := range list {
		if err != nil || n > 0 && over() || ctx.Err() != nil {
			break
		}
		var found []event.Event
		if found, err = o.mentionsIn(ctx, l.session); err != nil {
			break
		}
		for _, e := range found {
			if err = j.Append(ctx, e); err != nil {
				return n, fmt.Errorf("record what was used: %w", err)
			}
			n++
		}
		err = o.store.Update(ctx, func(tx Tx) error {
			if now, ok, err := tx.Load(bucketLook, l.session); err != nil || !ok || string(now) != l.state {
				return err // something came meanwhile: it is looked at again
			}
			return tx.Drop(bucketLook, l.session)
		})
	}
	if err != nil {
		return n, fmt.Errorf("look for what was used: %w", err)
	}
	return n, nil
}

// watch puts a session on the list of those to be looked at.
func (f *folder) watch(key string, recs []*record, st *Stats) error {
	if st == nil || st.Served == 0 || f.asOf-day(st.End) > lookDays {
		return f.tx.Drop(bucketLook, key)
	}
	return f.tx.Store(bucketLook, key, []byte(strconv.Itoa(len(recs))))
}

// mentionsIn are the events of what was used in a session and is not recorded yet.
func (o *Organizer) mentionsIn(ctx context.Context, key string) ([]event.Event, error) {
	var out []event.Event
	err := o.store.View(ctx, func(tx Tx) error {
		f := &folder{o: &Organizer{cache: cache{sessions: map[string][]*record{}}}, tx: tx}
		recs, err := f.records(key)
		if err != nil || len(recs) == 0 {
			return err
		}
		b, _, err := tx.Load(bucketName, key)
		if err != nil {
			return err
		}
		name, _, _ := strings.Cut(string(b), "\t")
		m := mentioner{tx: tx, recs: recs, done: map[string]bool{}}
		if err := m.look(); err != nil {
			return err
		}
		for _, u := range m.found {
			data, err := json.Marshal(event.UsedData{ID: u.id, How: "mentioned"})
			if err != nil {
				return err
			}
			// The id and the time are those of the mention, so that two who find it
			// record one event.
			out = append(out, event.Event{
				ID: derivedID(u.in.time(), "used", key, u.id), TS: u.in.time(), Type: event.RecallUsed, Scope: event.ScopeSession, Session: name, Client: u.in.client,
				Project: u.in.project, Agent: u.in.agent, Role: u.in.role, ACL: u.in.acl, Data: data, Evidence: []string{u.served.id, u.in.id},
			})
		}
		return nil
	})
	return out, err
}

// derivedID is an event's id that depends on what it is about: a UUID of version
// 7 whose random part is a hash.
func derivedID(at time.Time, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	b := sum[:16]
	ms := max(at.UnixMilli(), 0)
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// DerivedID is the id of an event about something that is recorded once, however
// often it is found out.
func DerivedID(at time.Time, parts ...string) string { return derivedID(at, parts...) }

type mention struct {
	id     string
	served *record
	in     *record
}

type mentioner struct {
	tx    Tx
	recs  []*record
	done  map[string]bool // items whose use is recorded, or found
	found []mention
}

func (m *mentioner) look() error {
	for _, r := range m.recs {
		if r.typ == event.RecallUsed {
			var d event.UsedData
			decode(r.extra, &d)
			m.done[d.ID] = true
		}
	}
	for i, r := range m.recs {
		if r.typ != event.RecallServed {
			continue
		}
		var d event.ServedData
		decode(r.extra, &d)
		if d.HeldOut {
			continue
		}
		for _, it := range d.Items {
			if it.ID == "" || m.done[it.ID] {
				continue
			}
			doc, ok, err := m.tx.Get(it.ID)
			if err != nil {
				return err
			}
			if !ok {
				continue // it was forgotten, or is of another machine
			}
			in, err := m.mentioned(i, doc)
			if err != nil {
				return err
			}
			if in != nil {
				m.done[it.ID] = true
				m.found = append(m.found, mention{it.ID, r, in})
			}
		}
	}
	return nil
}

// mentioned is the first record after the i-th that mentions a document.
func (m *mentioner) mentioned(i int, d recall.Doc) (*record, error) {
	t := tellingOf(d)
	var known strings.Builder
	for _, r := range m.recs[:i] {
		known.WriteString(saidIn(r))
		known.WriteByte('\n')
	}
	for _, r := range m.recs[i+1:] {
		switch r.typ {
		case event.PromptSubmitted:
			known.WriteString(saidIn(r))
			known.WriteByte('\n')
			continue
		case event.ToolCalled, event.ToolSucceeded, event.ToolFailed, event.ResponseCompleted, event.SubagentFinished:
		default:
			continue
		}
		call := r.typ != event.ResponseCompleted && r.typ != event.SubagentFinished
		if call && d.Class == recall.ClassAntiPattern {
			continue // to do what did not help is not to use it
		}
		ok, err := m.names(t, " "+searchable(saidIn(r))+" ", " "+searchable(known.String())+" ")
		if ok || err != nil {
			return r, err
		}
	}
	return nil, nil
}

// saidIn is what a record says: a call's input, or a text.
func saidIn(r *record) string {
	return strings.Join([]string{r.command, r.path, r.target, r.text}, " ")
}

// searchable is a text as words are looked up in: one case, single spaces.
func searchable(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// traits are a document's words that a mention is known by.
type traits struct {
	id      string
	phrases []string // commands and what stands in backticks
	strong  []string // identifiers, paths, numbers
	plain   []string // ordinary words that are long enough to say something
	need    int      // strong ones that are needed
}

func tellingOf(d recall.Doc) traits {
	t := traits{id: strings.ToLower(d.ID), need: 1}
	text := d.Title + "\n" + d.Text
	if data, ok := DataOf(d); ok {
		if data.Kind == KindTurn || data.Kind == KindSession || data.Kind == KindDigest {
			t.need = 2 // they name all that was touched; to touch one of it again proves little
		}
		if data.Fix != nil {
			for _, c := range data.Fix.Commands {
				t.phrase(c)
			}
		}
	}
	for i, s := range strings.Split(text, "`") {
		if i%2 == 1 {
			t.phrase(s)
		}
	}
	for _, w := range tokens(text) {
		switch low := strings.ToLower(w); {
		case telltale(w):
			t.strong = appendNew(t.strong, low, 60)
		case ordinary(w):
			t.plain = appendNew(t.plain, low, 40)
		}
	}
	return t
}

func (t *traits) phrase(s string) {
	s = searchable(s)
	if len(s) >= 8 || len(s) >= 5 && strings.Contains(s, " ") {
		t.phrases = appendNew(t.phrases, s, 20)
	}
}

// tokens cuts a text into words as they are written, paths and dotted names in
// one piece, and Japanese by kind of letter.
func tokens(text string) []string {
	var out []string
	start, kind := -1, 0
	end := func(i int) {
		if start >= 0 {
			if w := strings.Trim(text[start:i], "./-_:"); w != "" && len(out) < 600 {
				out = append(out, w)
			}
		}
		start, kind = -1, 0
	}
	for i, r := range text {
		k := tokenKind(r)
		if k == 0 || k != kind {
			end(i)
		}
		if k != 0 && start < 0 {
			start, kind = i, k
		}
	}
	end(len(text))
	return out
}

func tokenKind(r rune) int {
	switch {
	case unicode.Is(unicode.Han, r) || r == '々':
		return 2
	case unicode.Is(unicode.Katakana, r) || r == 'ー':
		return 3
	case unicode.Is(unicode.Hiragana, r):
		return 0
	case unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("./-_:", r):
		return 1
	}
	return 0
}

// telltale reports that a word is a name of something: an identifier, a path, a
// number that is no year.
func telltale(w string) bool {
	if len(w) < 4 || w[0] >= utf8.RuneSelf {
		return false
	}
	letters, digits, marks, humps := 0, 0, 0, 0
	for i := range len(w) {
		switch c := w[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '/' || c == '_' || c == '.' || c == ':':
			marks++
		case c == '-':
		default:
			letters++
			if c >= 'A' && c <= 'Z' && i > 0 && w[i-1] >= 'a' && w[i-1] <= 'z' {
				humps++
			}
		}
	}
	switch {
	case letters == 0:
		year := len(w) == 4 && (w[:2] == "19" || w[:2] == "20")
		date := len(w) == 10 && w[4] == '-' && w[7] == '-'
		return digits >= 4 && !year && !date
	case digits > 0 && len(w) >= 5, marks > 0 && len(w) >= 6, humps > 0 && len(w) >= 6:
		return true
	}
	return false
}

// ordinary reports that a word is long enough to say something, and is none of
// those that every note has.
func ordinary(w string) bool {
	r, _ := utf8.DecodeRuneInString(w)
	switch tokenKind(r) {
	case 2:
		return utf8.RuneCountInString(w) >= 2 && utf8.RuneCountInString(w) <= 8
	case 3:
		return utf8.RuneCountInString(w) >= 3
	}
	if utf8.RuneCountInString(w) < 5 {
		return false
	}
	switch strings.ToLower(w) {
	case "about", "above", "after", "again", "answered", "asked", "because", "before", "being", "below", "between", "could", "doing", "during", "edited", "error", "every", "failed",
		"first", "following", "further", "having", "instead", "never", "other", "project", "session", "should", "since", "still", "their", "there", "these", "thing", "things", "those", "through",
		"times", "under", "until", "using", "where", "which", "while", "without", "worked", "works", "would", "yours", "answer", "editing":
		return false
	}
	return true
}

// names reports that a text mentions what is told of, with words that are not
// in what was known.
func (m *mentioner) names(t traits, text, known string) (bool, error) {
	fresh := func(w string) bool { return holds(text, w) && !holds(known, w) }
	if len(t.id) > 6 && fresh(t.id) {
		return true, nil
	}
	if slices.ContainsFunc(t.phrases, fresh) {
		return true, nil
	}
	strong := 0
	for _, w := range t.strong {
		if !fresh(w) {
			continue
		}
		common, err := m.common(w)
		if err != nil {
			return false, err
		}
		if !common {
			strong++
		}
	}
	if strong >= t.need {
		return true, nil
	}
	plain, of := 0, 0
	for _, w := range t.plain {
		if holds(known, w) {
			continue
		}
		of++
		if holds(text, w) {
			plain++
		}
	}
	return plain >= plainNeeded && float64(plain) >= plainShare*float64(min(of, 12)), nil
}

// common reports that so many documents have a word that it tells none of them.
func (m *mentioner) common(w string) (bool, error) {
	x, ok := m.tx.(interface {
		Frequency(word string) (docs, all int, err error)
	})
	if !ok {
		return false, nil
	}
	docs, all, err := x.Frequency(w)
	return float64(docs) > max(commonLeast, commonShare*float64(all)), err
}

// holds reports that a text has a word or phrase, not as a part of another word.
// Both are in the form of searchable.
func holds(text, w string) bool {
	if w == "" {
		return false
	}
	first, _ := utf8.DecodeRuneInString(w)
	last, _ := utf8.DecodeLastRuneInString(w)
	for at := 0; ; {
		i := strings.Index(text[at:], w)
		if i < 0 {
			return false
		}
		i += at
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(w):])
		if !(wordy(first) && wordy(before)) && !(wordy(last) && wordy(after)) {
			return true
		}
		_, n := utf8.DecodeRuneInString(text[i:])
		at = i + n
	}
}

// wordy reports that a letter is part of a word that spaces stand around.
func wordy(r rune) bool {
	return r != utf8.RuneError && tokenKind(r) == 1 && r != '.' && r != ':' && r != '/'
}
