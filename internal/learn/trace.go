package learn

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn/sign"
)

// Trace is what in the logs tells of items that were worked out from them: what
// has to go there for nothing to find their words any more, and what stays because
// something else was worked out from it, too.
type Trace struct {
	// Events are ids of events that only these items were worked out from, or that
	// are nothing but a part of such a one: the call that a success is the end of.
	Events []string `json:"events,omitempty"`
	// Calls are the tool calls among them, as CallID names them: a client or the
	// guard may have recorded more of a call than organising reads.
	Calls []string `json:"calls,omitempty"`
	// With are ids of documents that tell nothing else, and go with the items.
	With []string `json:"with,omitempty"`
	// Sessions are the clients' ids of the sessions that they happened in.
	Sessions []string `json:"sessions,omitempty"`
	// Near are the prompts and answers of the turns that they happened in. One that
	// has any of Words or Single tells of them.
	Near []string `json:"near,omitempty"`
	// Keep are events of these sessions that others were worked out from.
	Keep []string `json:"keep,omitempty"`
	// Words are lines of their text; Only are those that nothing else of the
	// session says, so that whatever has one tells of them; Single are single words
	// of these, for what tells of them in other words.
	Words  []string `json:"words,omitempty"`
	Only   []string `json:"only,omitempty"`
	Single []string `json:"single,omitempty"`
	// Shared are documents that were worked out from some of the same events.
	Shared []string `json:"shared,omitempty"`
}

// CallID names a tool call of a session by the client's own id of it; "" where it
// gives none.
func CallID(session, use string) string {
	if use == "" {
		return ""
	}
	return session + "\x00" + use
}

// LeastWord is how long a line must be, in bytes, to be looked for: a shorter one
// is in much that has nothing to do with it.
const LeastWord = 8

// leastSingle is the same of a single word, which is looked for near by only.
const leastSingle = 5

// Trace finds what in the logs tells of the documents with these ids. Those that
// are kept out because they were forgotten are to be named by their tombstone's
// content key, too. Ids of others are left out.
func (o *Organizer) Trace(ctx context.Context, ids []string) (Trace, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var t Trace
	err := o.store.View(ctx, func(tx Tx) error {
		t = Trace{}
		f := &folder{o: &Organizer{cache: cache{sessions: map[string][]*record{}}}, tx: tx}
		sessions := map[string]map[string]bool{}
		for _, id := range ids {
			owners, err := f.madeBy(id)
			if err != nil {
				return err
			}
			for _, owner := range owners {
				if key, ok := strings.CutPrefix(owner, "s"); ok {
					if sessions[key] == nil {
						sessions[key] = map[string]bool{}
					}
					sessions[key][id] = true
				}
			}
		}
		for _, key := range slices.Sorted(maps.Keys(sessions)) {
			if err := f.trace(key, sessions[key], &t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Trace{}, fmt.Errorf("trace what memory was worked out from: %w", err)
	}
	return t, nil
}

// madeBy are the sessions and groups that make a document, or would if it were
// not forgotten.
func (f *folder) madeBy(id string) ([]string, error) {
	var out []string
	b, ok, err := f.tx.Load(bucketOwner, sign.Hash(id))
	if err != nil {
		return nil, err
	}
	if ok {
		out = append(out, string(b))
	}
	prefix := sign.Hash(id) + "\t"
	err = f.tx.EachKV(bucketHidden, prefix, func(key string, _ []byte) bool {
		out = append(out, key[len(prefix):])
		return true
	})
	return out, err
}

// tracer finds out what of one session tells of some of its documents.
type tracer struct {
	name   string // the client's own id of the session
	s      *reading
	want   map[string]bool
	mine   map[*record]bool
	others map[*record][]string // ids of the other documents that were worked out from it
	parts  map[*record][]*record
	alone  map[*record]bool // of calls that never ended: what was refused, or not answered
	turnOf map[*record]int  // index of the turn, -1 before the first
	out    *Trace
	words  []string
}

func (f *folder) trace(key string, want map[string]bool, out *Trace) error {
	recs, err := f.records(key)
	if err != nil || len(recs) == 0 {
		return err
	}
	b, _, err := f.tx.Load(bucketName, key)
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(string(b), "\t")
	if err := f.readGone(); err != nil {
		return err
	}
	kept, err := distinct(recs, func(id string) (bool, error) { return f.gone.forgotten(id), nil })
	if err != nil {
		return err
	}
	t := &tracer{
		name: name, s: readSession(placed(kept)), want: want, mine: map[*record]bool{}, others: map[*record][]string{},
		turnOf: map[*record]int{}, out: out,
	}
	t.join()
	t.claim()
	t.gather()
	return nil
}

// join finds which records are of one call, and of which turn each is.
func (t *tracer) join() {
	t.parts = map[*record][]*record{}
	begun := map[string][]*record{}
	turn := -1
	for _, r := range t.s.recs {
		call := r.tool + "\x00" + cmp.Or(r.useID, r.hash)
		switch r.typ {
		case event.PromptSubmitted:
			turn++
		case event.ToolCalled, event.PermissionAsked:
			begun[call] = append(begun[call], r)
		case event.ToolSucceeded, event.ToolFailed:
			t.parts[r] = begun[call]
			delete(begun, call)
		}
		t.turnOf[r] = turn
	}
	t.alone = map[*record]bool{}
	for _, list := range begun {
		for _, r := range list {
			t.alone[r] = true
		}
	}
	for _, r := range t.s.recs { // with its call's id it goes where the call goes
		if r.typ == event.PermissionDecided && decidedCall(r) == "" {
			t.alone[r] = true
		}
	}
}

// decidedCall is the id of the call that was decided about, where the client gave one.
func decidedCall(r *record) string {
	var d struct {
		UseID string `json:"use_id"`
	}
	decode(r.extra, &d)
	return d.UseID
}

// records are those that a failure was worked out from: its calls, what its text
// tells was tried or helped, and the call that worked.
func (ch *chain) records(s *reading) []*record {
	out := slices.Clone(ch.calls)
	if ch.closed != nil {
		out = append(out, ch.closed)
	}
	told := func(a action) bool {
		if a.said { // the user's word is a correction, which is an item of its own
			return false
		}
		for _, x := range ch.tried {
			if strings.Contains(x.Text, a.words) {
				return true
			}
		}
		return ch.fix != nil && (slices.Contains(ch.fix.Commands, a.words) || a.edit && slices.Contains(ch.fix.Files, a.target))
	}
	for _, a := range s.acts[min(ch.start, len(s.acts)):min(max(ch.start, ch.end, ch.mark), len(s.acts))] {
		if told(a) && !slices.Contains(out, a.rec) {
			out = append(out, a.rec)
		}
	}
	return out
}

// content is what a failure has in common with the same one read from elsewhere.
func (ch *chain) content(s *reading, session string) string {
	d := Data{Kind: KindFailure, Tool: ch.first.tool, Target: s.targetFor(ch.first), Inputs: ch.first.hash, Exact: ch.first.sig.Exact}
	if ch.prompt != nil {
		d.Task = firstSentence(ch.prompt.text, 160)
	}
	return contentOf(session, d)
}

func (x *said) content(session string) string {
	return contentOf(session, Data{Kind: KindCorrection, Task: firstSentence(x.rec.text, 160), SaidKey: sign.SaidKey(x.sentence)})
}

func (t *turn) content(session string) string {
	return contentOf(session, Data{Kind: KindTurn, Task: firstSentence(t.prompt.text, 160)})
}

// claim says which records belong to what is wanted, and which to something else.
// The same thing read from a transcript has another id, and is wanted, too.
func (t *tracer) claim() {
	same := map[string]bool{} // what was forgotten is known by its content alone
	for id := range t.want {
		same[id] = strings.HasPrefix(id, contentPrefix)
	}
	for _, ch := range t.s.chains {
		if t.want[ch.id()] {
			same[ch.content(t.s, t.name)] = true
		}
	}
	for i := range t.s.saids {
		if x := &t.s.saids[i]; t.want[x.id()] {
			same[x.content(t.name)] = true
		}
	}
	own := func(wanted bool, id string, recs ...*record) {
		for _, r := range recs {
			if wanted {
				t.mine[r] = true
			} else {
				t.others[r] = append(t.others[r], id)
			}
		}
	}
	for _, ch := range t.s.chains {
		wanted := t.want[ch.id()] || same[ch.content(t.s, t.name)]
		own(wanted, ch.id(), ch.records(t.s)...)
		if wanted {
			t.chainWords(ch)
		}
	}
	for i := range t.s.saids {
		x := &t.s.saids[i]
		wanted := t.want[x.id()] || same[x.content(t.name)]
		own(wanted, x.id(), x.rec)
		if wanted {
			t.say(x.rec.text)
		}
	}
	for i, turn := range t.s.turns {
		if t.want[turn.id()] || same[turn.content(t.name)] || t.copyOf(turn) {
			t.wholeTurn(i)
		}
	}
}

// copyOf says that a turn is one that is wanted, read from elsewhere.
func (t *tracer) copyOf(of *turn) bool {
	return slices.ContainsFunc(t.s.turns, func(x *turn) bool {
		apart := time.Duration(x.prompt.at - of.prompt.at).Abs()
		return x != of && t.want[x.id()] && x.prompt.text == of.prompt.text && apart < time.Minute
	})
}

// wholeTurn claims all of a turn.
func (t *tracer) wholeTurn(i int) {
	turn := t.s.turns[i]
	t.mine[turn.prompt] = true
	t.say(turn.prompt.text)
	if turn.response != nil {
		t.mine[turn.response] = true
		t.say(turn.response.text)
	}
	for _, r := range t.s.recs {
		if t.turnOf[r] == i && (isCall(r) || t.alone[r] || isQuestion(r)) {
			t.mine[r] = true
			if len(t.others[r]) == 0 {
				t.say(r.command)
				t.say(r.questions())
			}
		}
	}
}

func isCall(r *record) bool { return r.typ == event.ToolSucceeded || r.typ == event.ToolFailed }

// isQuestion says that an agent asked the user something, or was answered.
func isQuestion(r *record) bool {
	return r.typ == event.QuestionAsked || r.typ == event.QuestionAnswered
}

// questions are the words of a question to the user and its answer, each on a line.
func (r *record) questions() string {
	if !isQuestion(r) {
		return ""
	}
	var d event.QuestionData
	decode(r.extra, &d)
	return strings.Join(append([]string{d.Question, d.Answer}, d.Options...), "\n")
}

func (t *tracer) chainWords(ch *chain) {
	for _, r := range ch.records(t.s) {
		t.say(r.command)
		t.say(r.sig.Shown)
		if r.command == "" {
			t.say(r.target)
		}
	}
	if ch.fix != nil {
		for _, w := range slices.Concat(ch.fix.Commands, ch.fix.Files) {
			t.say(w)
		}
	}
}

func (t *tracer) say(text string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= LeastWord && !slices.Contains(t.words, line) {
			t.words = append(t.words, line)
		}
	}
}

// gather tells what goes and what stays.
func (t *tracer) gather() {
	near := t.near()
	going := map[*record]bool{}
	for _, r := range t.s.recs {
		switch {
		case !t.mine[r]:
		case len(t.others[r]) > 0:
			for _, id := range t.others[r] {
				t.out.Shared = appendOnce(t.out.Shared, id)
			}
		default:
			going[r] = true
			t.goes(r)
			for _, p := range t.parts[r] {
				going[p] = true
				t.goes(p)
			}
		}
	}
	if t.name != "" {
		t.out.Sessions = appendOnce(t.out.Sessions, t.name)
	}
	for _, r := range t.s.recs {
		of := t.turnOf[r]
		switch mine := slices.Contains(near, of); {
		case going[r]:
		case len(t.others[r]) > 0:
			t.out.Keep = appendOnce(t.out.Keep, r.id)
		case r.typ != event.PromptSubmitted && r.typ != event.ResponseCompleted:
		case mine:
			t.out.Near = appendOnce(t.out.Near, r.id)
		default: // another turn's
			t.out.Keep = appendOnce(t.out.Keep, r.id)
		}
	}
	for _, w := range t.words {
		t.out.Words = appendOnce(t.out.Words, w)
		if t.said(w, going, near) {
			continue
		}
		t.out.Only = appendOnce(t.out.Only, w)
	}
	for _, w := range t.words {
		for single := range strings.FieldsFuncSeq(w, func(r rune) bool { return r <= ' ' || strings.ContainsRune("`'\"()[]{}<>,;:=", r) }) {
			if single = strings.Trim(single, ".!?"); len(single) >= leastSingle && !t.said(single, going, near) {
				t.out.Single = appendOnce(t.out.Single, single)
			}
		}
	}
}

// said reports that something which stays says words of what goes.
func (t *tracer) said(w string, going map[*record]bool, near []int) bool {
	return slices.ContainsFunc(t.s.recs, func(r *record) bool { return !going[r] && t.saysStill(r, w, near) })
}

// saysStill says that a record which stays says words of what goes.
func (t *tracer) saysStill(r *record, w string, near []int) bool {
	switch r.typ {
	case event.ToolCalled, event.ToolSucceeded, event.ToolFailed, event.PermissionAsked:
		return strings.Contains(r.command, w) || strings.Contains(r.path, w) || strings.Contains(r.target, w) || strings.Contains(r.sig.Shown, w)
	case event.PromptSubmitted:
		return strings.Contains(r.text, w) && !slices.Contains(near, t.turnOf[r])
	}
	return false
}

// near are the turns that what is wanted happened in. One that tells of nothing
// else is wanted, too.
func (t *tracer) near() []int {
	var out []int
	for i := range t.s.turns {
		for _, r := range t.s.recs {
			if t.mine[r] && t.turnOf[r] == i {
				out = append(out, i)
				break
			}
		}
	}
	for _, i := range out {
		turn := t.s.turns[i]
		if len(t.others[turn.prompt]) > 0 || slices.ContainsFunc(t.s.recs, func(r *record) bool { return t.turnOf[r] == i && t.tellsElse(r) }) {
			continue
		}
		if !t.mine[turn.prompt] {
			t.wholeTurn(i)
		}
		if id := turn.id(); !t.want[id] {
			t.out.With = appendOnce(t.out.With, id)
		}
	}
	return out
}

// tellsElse says that a turn tells of a record which is not wanted, or not of it
// alone.
func (t *tracer) tellsElse(r *record) bool {
	switch {
	case len(t.others[r]) > 0:
		return true
	case r.typ == event.QuestionAnswered && !t.mine[r]:
		return true // what the user answered is an item of its own
	case t.mine[r] || !isCall(r):
		return false
	case r.typ == event.ToolFailed || r.tool == "edit" || r.tool == "write":
		return true
	case r.tool == "shell":
		targets, _ := sign.Acting(r.command, r.cwd)
		return len(targets) > 0
	}
	return false
}

func (t *tracer) goes(r *record) {
	t.out.Events = appendOnce(t.out.Events, r.id)
	if id := CallID(t.name, r.useID); id != "" {
		t.out.Calls = appendOnce(t.out.Calls, id)
	}
}

func appendOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
