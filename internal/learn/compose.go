package learn

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"reprise/internal/clip"
	"reprise/internal/event"
	"reprise/internal/fact"
	"reprise/internal/learn/sign"
	"reprise/internal/recall"
)

// ground is what a session's results depend on besides its own events.
type ground struct {
	asOf    int // day
	tiers   Tiers
	usage   func(id string) (Usage, error)
	gone    func(id string) (bool, error) // forgotten
	retired retirements
	hide    func(id string) // something was kept out because that was retired
	earlier func(kind, group string, at int64, session string) (int, error)
}

// row is a session's part in something that is worked out over sessions.
type row struct {
	kind  string
	group string
	sort  string
	value []byte
}

func (r row) key() string { return r.kind + "\t" + r.group + "\t" + r.sort }

// Kinds of rows.
const (
	rowSig  = "sig"  // a failure of that signature
	rowSaid = "said" // a correction of those words
	rowUse  = "use"  // an item that was served or used
	rowGone = "gone" // an item that was forgotten
	rowCold = "cold" // something of that month that went cold
)

// output is all that comes of one session.
type output struct {
	docs  []recall.Doc
	rows  []row
	stats *Stats
	due   int // day on which it has to be worked out again
	told  []string
}

// composer makes a session's documents.
type composer struct {
	key  string // of the session
	name string // the client's own id of it
	s    *reading
	g    ground
	out  output
	err  error
	// retracted are ids of documents that were forgotten, or in whose place a
	// correction stands: the session's summary does not say it either.
	retracted map[string]bool
}

// sortKey orders rows by time; what follows is the session and an id of the
// row, joined by bars.
func sortKey(at int64, rest ...string) string {
	return fmt.Sprintf("%019d|%s", max(at, 0), strings.Join(rest, "|"))
}

// compose works out what a session comes to. recs are its records, in order.
func compose(key, name string, recs []*record, g ground) (output, error) {
	c := &composer{key: key, name: name, g: g, out: output{due: never}, retracted: map[string]bool{}}
	kept, err := distinct(recs, g.gone)
	if err != nil {
		return output{}, err
	}
	c.s = readSession(placed(kept))
	c.usageRows()
	c.feedbackRows()
	if name == "" { // events outside any session: nothing happened in turns
		return c.out, c.err
	}
	for _, ch := range c.s.chains {
		c.failure(ch)
	}
	for i := range c.s.saids {
		c.correction(&c.s.saids[i])
	}
	for i, t := range c.s.turns {
		c.turn(t, c.correctionOf(i))
	}
	c.session()
	c.number()
	st := c.s.stats
	st.Session = name
	c.out.stats = &st
	return c.out, c.err
}

// distinct are a session's records, which are in order, each once though it stands
// in two files, without those of which the log says that they are gone.
func distinct(recs []*record, gone func(id string) (bool, error)) ([]*record, error) {
	kept := recs[:0:0]
	var last *record
	for _, r := range recs {
		if last != nil && last.at == r.at && last.id == r.id {
			continue
		}
		out, err := gone(r.id)
		if err != nil {
			return nil, err
		}
		if last = r; !out {
			kept = append(kept, r)
		}
	}
	return kept, nil
}

// usageRows hands on what the session's events say about items of other
// sessions.
func (c *composer) usageRows() {
	for _, r := range c.s.recs {
		switch r.typ {
		case event.RecallServed:
			var d event.ServedData
			decode(r.extra, &d)
			for i, it := range d.Items {
				if it.ID != "" && !d.HeldOut {
					c.add(rowUse, sign.Hash(it.ID), sortKey(r.at, c.key, sign.Hash(r.id, fmt.Sprint(i))), useRow{How: "served", Event: r.id, At: r.at})
				}
			}
		case event.RecallUsed:
			var d event.UsedData
			decode(r.extra, &d)
			if d.ID != "" {
				c.add(rowUse, sign.Hash(d.ID), sortKey(r.at, c.key, sign.Hash(r.id)), useRow{How: d.How, Event: r.id, At: r.at, ID: d.ID})
			}
		case event.MemoryRetired:
			var d event.MemoryData
			decode(r.extra, &d)
			c.retired(r, d)
		}
	}
}

type useRow struct {
	How   string `json:"how"`
	ID    string `json:"id,omitempty"`
	Event string `json:"event"`
	At    int64  `json:"at"`
}

// goneRow is what a memory.retired event says about an item.
type goneRow struct {
	ID    string `json:"id"`
	Event string `json:"event"`
	// Over is when a correction took its place: it is superseded, not gone.
	Over int64 `json:"over,omitempty"`
	// Before says that all documents of a class in a project are gone that are
	// from before then; ID names them, see ExpiryID.
	Before int64 `json:"before,omitempty"`
	// Back is the event of a forgetting that is taken back.
	Back string `json:"back,omitempty"`
}

// retired hands on that an item was forgotten, corrected or has expired.
// Anything else, such as the end of a promotion, is about an entry's file.
func (c *composer) retired(r *record, d event.MemoryData) {
	add := func(row goneRow) {
		row.Event = r.id
		c.add(rowGone, sign.Hash(row.ID), sortKey(r.at, c.key, sign.Hash(r.id)), row)
	}
	switch {
	case d.ID == "":
	case d.Op == OpCorrect:
		add(goneRow{ID: d.ID, Over: max(r.at, 1)})
	case d.Op == OpExpire:
		if before, err := time.Parse(time.RFC3339, d.To); err == nil && strings.HasPrefix(d.ID, expiryPrefix) {
			add(goneRow{ID: d.ID, Before: nanos(before)})
		}
	case d.Op == OpRestore:
		if d.Supersedes != "" {
			add(goneRow{ID: d.ID, Back: d.Supersedes})
			if strings.HasPrefix(d.Hash, contentPrefix) {
				add(goneRow{ID: d.Hash, Back: d.Supersedes})
			}
		}
	case d.Op == OpForget, d.Op == "retire", d.Op == "purge", d.Op == "":
		add(goneRow{ID: d.ID})
		if strings.HasPrefix(d.Hash, contentPrefix) {
			add(goneRow{ID: d.Hash})
		}
	}
}

func (c *composer) add(kind, group, sort string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		c.err = cmp.Or(c.err, fmt.Errorf("organise: %w", err))
		return
	}
	c.out.rows = append(c.out.rows, row{kind: kind, group: group, sort: sort, value: b})
}

// put finishes a document: tier, importance, and whether it was forgotten. It
// returns whether the document is there.
func (c *composer) put(d recall.Doc, data Data, acl []string, readable bool) bool {
	if !readable || c.err != nil {
		return false
	}
	if c.name != "" {
		content := contentOf(c.name, data)
		if gone, err := c.g.gone(content); err != nil || gone {
			c.err = cmp.Or(c.err, err)
			c.retracted[d.ID] = true
			return false
		}
		d.Keys = append(slices.Clone(d.Keys), content)
	}
	if gone, err := c.g.gone(d.ID); err != nil || gone {
		c.err = cmp.Or(c.err, err)
		c.retracted[d.ID] = true
		return false
	}
	d.Session = c.name // it says by which retention a document is kept
	if c.g.retired.expired(d) {
		c.g.hide(ExpiryID(ExpiresAs(d), d.Project))
		return false
	}
	c.g.retired.supersede(&d)
	c.retracted[d.ID] = d.Status == recall.Superseded
	use, err := c.g.usage(d.ID)
	if err != nil {
		c.err = cmp.Or(c.err, err)
		return false
	}
	data.Signals[SignalUsage] = use.value()
	data.Signals[SignalSaid] = max(data.Signals[SignalSaid], use.said())
	data.Signals[SignalConflict] = max(data.Signals[SignalConflict], use.unwanted())
	base := importance(map[string]float64{
		SignalUsage: data.Signals[SignalUsage], SignalOutcome: data.Signals[SignalOutcome],
		SignalConflict: data.Signals[SignalConflict], SignalSaid: data.Signals[SignalSaid],
	})
	lastUse := day(d.Time)
	if !use.Last.IsZero() {
		lastUse = max(lastUse, day(use.Last))
	}
	var next int
	d.Tier, next = c.g.tiers.at(c.g.asOf, lastUse, base)
	c.out.due = min(c.out.due, next)
	data.Signals[SignalRecency] = recency(d.Tier)
	d.Importance = importance(data.Signals)
	d.Scope = string(event.ScopeGlobal)
	if d.Project != "" {
		d.Scope = string(event.ScopeProject)
	}
	d.ACL, d.Session, d.Group = acl, c.name, "session:"+c.key
	d.Data = data.encode()
	c.out.docs = append(c.out.docs, d)
	if d.Tier == Cold && d.Status == recall.Active {
		// Served as of a day when it was not cold; from then on its digest is.
		d.Status, d.Until = recall.Superseded, dayTime(c.g.tiers.coldDay(lastUse, base))
		c.out.docs[len(c.out.docs)-1] = d
		c.cold(d, data, base)
	}
	return true
}

// coldRow is what a digest is made of.
type coldRow struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"`
	Title   string   `json:"title"`
	Project string   `json:"project,omitempty"`
	Month   string   `json:"month"`
	ACL     []string `json:"acl,omitempty"`
	Keys    []string `json:"keys,omitempty"`
	Base    float64  `json:"base"`
	At      int64    `json:"at"`
	Fixed   bool     `json:"fixed,omitempty"`
	Quotes  bool     `json:"quotes,omitempty"`
}

func (c *composer) cold(d recall.Doc, data Data, base float64) {
	if data.Kind == KindTurn {
		return // its session's summary says it
	}
	month := d.Time.UTC().Format("2006-01")
	c.add(rowCold, sign.Hash(d.Project, month, strings.Join(d.ACL, " ")), sortKey(nanos(d.Time), c.key, d.ID), coldRow{
		ID: d.ID, Kind: data.Kind, Title: d.Title, Project: d.Project, Month: month, ACL: d.ACL, Keys: d.Keys, Base: base, At: nanos(d.Time), Fixed: data.Outcome == Fixed,
		Quotes: data.Quotes,
	})
}

// sigRow is a failure as patterns are worked out from it.
type sigRow struct {
	ID        string    `json:"id"` // of the episode
	Session   string    `json:"session"`
	Project   string    `json:"project,omitempty"`
	ACL       []string  `json:"acl,omitempty"`
	Exact     string    `json:"exact"`
	Line      string    `json:"line"`
	Shown     string    `json:"shown"`
	Tool      string    `json:"tool"`
	Target    string    `json:"target"`
	At        int64     `json:"at"`   // when it was settled, or failed last
	From      int64     `json:"from"` // when it failed first
	Fix       *Fix      `json:"fix,omitempty"`
	Again     int64     `json:"again,omitempty"` // when it failed again after the fix
	AgainAt   string    `json:"again_at,omitempty"`
	Tried     []Attempt `json:"tried,omitempty"`
	TriedAt   []int64   `json:"tried_at,omitempty"`
	SessionID string    `json:"session_id"`
	Earlier   int       `json:"earlier"` // sessions before it that novelty was reckoned by
}

// failure makes the episode of a failed call.
func (c *composer) failure(ch *chain) {
	first := ch.first
	target := c.s.targetFor(first)
	when := ch.last
	data := Data{
		Kind: KindFailure, Tool: first.tool, Target: target, Inputs: first.hash, Outcome: Unfixed, Signature: first.sig.Key, Exact: first.sig.Exact,
		Failure: first.sig.Shown, Line: first.sig.Line, Quotes: c.quotes(ch), Tries: ch.tries, Tried: ch.tried, Evidence: ch.evidence, Signals: map[string]float64{},
	}
	lists := [][]string{first.acl, ch.last.acl}
	if ch.prompt != nil {
		lists = append(lists, ch.prompt.acl)
		data.Task = firstSentence(ch.prompt.text, 160)
	}
	if ch.fix != nil {
		when = ch.closed
		data.Outcome, data.Fix = Fixed, ch.fix
		lists = append(lists, ch.closed.acl)
	}
	if ch.refailed != nil {
		data.Outcome = Refailed
		data.Evidence = appendNew(data.Evidence, ch.refailed.id, maxEvidence)
		lists = append(lists, ch.refailed.acl)
	}
	if len(data.Tried) > 5 {
		data.Tried = data.Tried[:5]
	}
	acl, readable := readableBy(lists...)
	earlier, err := c.g.earlier(rowSig, first.sig.Key, first.at, c.key)
	c.err = cmp.Or(c.err, err)
	data.Signals[SignalOutcome] = outcomeValue(data)
	data.Signals[SignalNovelty] = novelty(earlier)
	data.Signals[SignalSaid] = first.weight
	if data.Fix != nil && strings.Contains(data.Fix.Text, "the user said") {
		data.Signals[SignalSaid] = max(data.Signals[SignalSaid], 0.8)
	}
	if ch.refailed != nil {
		data.Signals[SignalConflict] = 1
	}
	d := recall.Doc{
		ID: ch.id(), Class: recall.ClassEpisode, Project: first.project, Client: first.client, Author: first.agent, Source: first.id,
		Keys: []string{first.sig.Key, first.sig.Exact}, Time: when.time(), Confidence: 0.2,
	}
	d.Title, d.Text = failureText(data, first, ch)
	if data.Fix != nil {
		d.Confidence = round3(data.Fix.Confidence)
		if ch.refailed != nil {
			d.Confidence = round3(data.Fix.Confidence / 3)
		}
	}
	if !c.put(d, data, acl, readable) {
		return
	}
	r := sigRow{
		ID: d.ID, Session: c.key, SessionID: c.name, Project: first.project, ACL: acl, Exact: first.sig.Exact, Line: first.sig.Line, Shown: first.sig.Shown,
		Tool: first.tool, Target: target, At: when.at, From: first.at, Fix: ch.fix, Tried: data.Tried, Earlier: earlier,
	}
	if ch.refailed != nil {
		r.Again, r.AgainAt = ch.refailed.at, ch.refailed.id
	}
	for range data.Tried {
		r.TriedAt = append(r.TriedAt, ch.last.at)
	}
	c.add(rowSig, first.sig.Key, sortKey(first.at, c.key, d.ID), r)
}

// quotes says that a failure's words are nothing to go by.
func (c *composer) quotes(ch *chain) bool {
	fix := ""
	if ch.fix != nil {
		fix = ch.fix.Text
	}
	return quotes(ch.first.sig.Shown, c.s.targetFor(ch.first), fix)
}

func outcomeValue(d Data) float64 {
	switch d.Outcome {
	case Fixed:
		switch d.Fix.Kind {
		case "retry":
			return 0.3
		case "edit":
			return 0.7
		}
		return 0.9
	case Refailed:
		return 0.2
	case Told:
		return 0.8
	case Corrected:
		return 0
	case Done:
		return 0.4
	}
	return 0.3
}

func failureText(d Data, first *record, ch *chain) (title, text string) {
	what := d.Target
	if first.tool != "shell" {
		what = first.tool + " " + d.Target
	}
	title = sign.Clip(what, 60) + ": " + sign.Clip(firstLine(d.Failure), 110)
	var b strings.Builder
	call := cmp.Or(first.command, what)
	fmt.Fprintf(&b, "`%s` failed: %s\n", sign.Clip(clip.Line(call), 200), clip.Line(d.Failure))
	switch {
	case d.Outcome == Fixed:
		title += " — worked " + sign.Clip(d.Fix.Text, 110)
		fmt.Fprintf(&b, "It worked %s.\n", d.Fix.Text)
	case d.Outcome == Refailed:
		fmt.Fprintf(&b, "It worked %s, and then failed in the same way again.\n", d.Fix.Text)
	case ch.tries > 1:
		fmt.Fprintf(&b, "It failed %d times and did not work in that session.\n", ch.tries)
	default:
		b.WriteString("It did not work in that session.\n")
	}
	for i, t := range d.Tried {
		if i == 3 {
			break
		}
		fmt.Fprintf(&b, "Did not help: %s.\n", t.Text)
	}
	if d.Task != "" {
		fmt.Fprintf(&b, "The task was: %s\n", clip.Line(d.Task))
	}
	return sign.Clip(title, 240), strings.TrimSpace(b.String())
}

func firstLine(s string) string {
	l, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return l
}

// standsFrom is how surely a prompt must be a correction to hold beyond its
// session. "It still fails" corrects, but says nothing about the next one.
const standsFrom = 0.75

// mostSaid is the most bytes of a correction in a title or a summary.
const mostSaid = 240

// saidRow is a correction as patterns are worked out from it.
type saidRow struct {
	ID        string   `json:"id"`
	Session   string   `json:"session"`
	SessionID string   `json:"session_id"`
	Project   string   `json:"project,omitempty"`
	ACL       []string `json:"acl,omitempty"`
	Sentence  string   `json:"sentence"`
	At        int64    `json:"at"`
	Event     string   `json:"event"`
	Earlier   int      `json:"earlier"`
}

func (c *composer) correction(s *said) {
	r := s.rec
	data := Data{
		Kind: KindCorrection, Task: firstSentence(r.text, 160), Outcome: Told, Said: s.sentence, SaidKey: sign.SaidKey(s.sentence), Evidence: []string{r.id},
		Signals: map[string]float64{SignalOutcome: 0.8, SignalSaid: round3(s.strength)},
	}
	acl, readable := readableBy(r.acl)
	d := recall.Doc{
		ID: s.id(), Class: recall.ClassEpisode, Project: r.project, Client: r.client, Author: "user", Source: r.id, Time: r.time(),
		Title: "The user corrected: " + sign.Clip(s.sentence, mostSaid), Facts: fact.Find(s.sentence), Confidence: round3(0.6 * s.strength),
		Text: "After " + clip.Line(s.before) + " the user said: " + clip.Line(s.sentence),
	}
	if s.strength >= standsFrom {
		d.Class = recall.ClassProfile // a person said so: sessions are told unasked
	}
	earlier := 0
	if data.SaidKey != "" {
		d.Keys = []string{data.SaidKey}
		var err error
		earlier, err = c.g.earlier(rowSaid, data.SaidKey, r.at, c.key)
		c.err = cmp.Or(c.err, err)
		data.Signals[SignalNovelty] = novelty(earlier)
	}
	if c.put(d, data, acl, readable) && data.SaidKey != "" {
		c.add(rowSaid, data.SaidKey, sortKey(r.at, c.key, d.ID), saidRow{ID: d.ID, Session: c.key, SessionID: c.name, Project: r.project, ACL: acl, Sentence: s.sentence, At: r.at, Event: r.id, Earlier: earlier})
	}
}

// correctionOf is what the user said of what was done in turn i, where the next
// prompt was a correction that is not forgotten; else nil.
func (c *composer) correctionOf(i int) *said {
	if i+1 >= len(c.s.turns) {
		return nil
	}
	for k := range c.s.saids {
		if x := &c.s.saids[k]; x.rec == c.s.turns[i+1].prompt && !c.retracted[x.id()] {
			return x
		}
	}
	return nil
}

// turn makes the episode of a prompt and what was done for it. What the user
// corrected is no precedent: it says so first, and counts little.
func (c *composer) turn(t *turn, wrong *said) {
	p := t.prompt
	if strings.TrimSpace(p.text) == "" || t.response == nil && t.calls == 0 || t.idle() {
		return
	}
	data := Data{
		Kind: KindTurn, Task: firstSentence(p.text, 160), Outcome: Broken, Evidence: []string{p.id}, Files: t.files,
		Signals: map[string]float64{SignalSaid: p.weight},
	}
	lists := [][]string{p.acl}
	when := p
	var b strings.Builder
	if wrong != nil {
		fmt.Fprintf(&b, "The user corrected what was done: %s\n", wrong.sentence)
	}
	fmt.Fprintf(&b, "Asked: %s\n", sign.Clip(clip.Line(p.text), 400))
	if len(t.files) > 0 {
		fmt.Fprintf(&b, "Edited: %s\n", strings.Join(t.files[:min(len(t.files), 8)], ", "))
	}
	if len(t.commands) > 0 {
		fmt.Fprintf(&b, "Ran: `%s`\n", strings.Join(t.commands[max(0, len(t.commands)-5):], "`, `"))
	}
	if t.response != nil {
		when = t.response
		data.Outcome = Done
		data.Evidence = append(data.Evidence, t.response.id)
		lists = append(lists, t.response.acl)
		if t.error != "" {
			data.Outcome = Broken
			if !t.unserved() || len(t.files) > 0 { // that an edit may not be all is worth to know
				fmt.Fprintf(&b, "The turn ended by an error: %s\n", clip.Line(t.error))
			}
		}
		if t.response.text != "" && !t.unserved() {
			fmt.Fprintf(&b, "Answered: %s\n", sign.Clip(clip.Line(t.response.text), 500))
		}
	}
	title, confidence := sign.Clip(data.Task, 160), 0.4
	if wrong != nil {
		data.Outcome, data.Said, data.Signals[SignalConflict] = Corrected, wrong.sentence, 1
		data.Evidence = append(data.Evidence, wrong.rec.id)
		lists = append(lists, wrong.rec.acl)
		title, confidence = "Corrected by the user ("+sign.Clip(wrong.sentence, 160)+"): "+sign.Clip(data.Task, 100), 0.1
	}
	data.Signals[SignalOutcome] = outcomeValue(data)
	acl, readable := readableBy(lists...)
	d := recall.Doc{
		ID: t.id(), Class: recall.ClassEpisode, Project: p.project, Client: p.client, Author: p.agent, Source: p.id, Time: when.time(),
		Title: title, Text: strings.TrimSpace(b.String()), Confidence: confidence,
	}
	if ch := c.allOf(t); ch != nil && wrong == nil {
		d.Keys = []string{ch.id()} // recall serves one of the two
	}
	c.put(d, data, acl, readable)
}

// briefly is how many characters of a prompt or an answer are read for whether they tell
// more than what was done: longer ones do.
const briefly = 200

// allOf is the failure of which a turn tells all there is to tell of it: it failed and
// worked in that turn, nothing else was run or edited, and prompt and answer are short and
// name nothing besides. nil = the turn tells more, or something else.
func (c *composer) allOf(t *turn) *chain {
	var ch *chain
	for _, x := range c.s.chains {
		switch {
		case x.prompt != t.prompt || c.retracted[x.id()]:
		case ch != nil, x.fix == nil, t.response == nil, order(x.closed, t.response) > 0:
			return nil
		default:
			ch = x
		}
	}
	if ch == nil || t.error != "" || utf8.RuneCountInString(t.prompt.text) > briefly || utf8.RuneCountInString(t.response.text) > briefly {
		return nil
	}
	_, own := sign.Acting(ch.closed.command, ch.closed.cwd)
	other := func(done, of []string) bool {
		return slices.ContainsFunc(done, func(s string) bool { return !slices.Contains(of, s) })
	}
	if other(t.commands, append(own, ch.fix.Commands...)) || other(t.files, ch.fix.Files) {
		return nil
	}
	known := strings.Join([]string{ch.first.sig.Shown, ch.first.command, ch.closed.command, ch.fix.Text, t.prompt.text}, "\n")
	for _, w := range strings.Fields(t.response.text) {
		if w = strings.Trim(w, ".,:;!?()`\"'"); strings.ContainsAny(w, "0123456789/_=`") && !strings.Contains(known, w) {
			return nil
		}
	}
	return ch
}

// number says which of the session's documents are neighbours: those that
// follow one another in time.
func (c *composer) number() {
	sortDocs(c.out.docs)
	for i := range c.out.docs {
		c.out.docs[i].Ord = i + 1
	}
}

func sortDocs(docs []recall.Doc) {
	slices.SortStableFunc(docs, func(a, b recall.Doc) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID)) })
}

// sessionTime is when a session was last active.
func sessionTime(recs []*record) time.Time {
	if len(recs) == 0 {
		return time.Time{}
	}
	return recs[len(recs)-1].time()
}
