package learn

import (
	"cmp"
	"slices"
	"strings"

	"reprise/internal/clip"
	"reprise/internal/event"
	"reprise/internal/learn/sign"
)

const (
	maxEvidence = 12
	// A call that worked is taken for another way of saying one that failed
	// only when it follows within so many calls.
	similarWithin = 12
)

// chain is one failure of a call, from its first appearance to the success of
// the same call, or to the end of the session.
type chain struct {
	first, last *record // failed calls
	calls       []*record
	evidence    []string
	tries       int
	start       int // of the session's actions: those since the first failure
	mark        int // those since the last failure
	end         int // those before the success; 0 = there was none
	call        int // number of the call that failed last
	prompt      *record
	tried       []Attempt
	fix         *Fix
	closed      *record
	refailed    *record
	behind      []*chain // failures of the same call that another failure took the place of
	partial     *Fix     // what was done before another failure came
}

// The ids of the documents that are made of them.
func (ch *chain) id() string { return "ep-" + sign.Hash(ch.first.id) }
func (s *said) id() string   { return "co-" + sign.Hash(s.rec.id) }
func (t *turn) id() string   { return "tn-" + sign.Hash(t.prompt.id) }

// action is something that was done and may have been a fix.
type action struct {
	edit   bool
	said   bool
	target string // of a command; the file of an edit
	words  string
	rec    *record
}

// turn is a prompt and what was done for it.
type turn struct {
	prompt   *record
	response *record
	calls    int
	happened int // calls that were not refused
	refused  int
	failed   int
	files    []string
	commands []string
	error    string
}

// said is a correction by the user.
type said struct {
	rec      *record
	sentence string
	strength float64
	before   string // what had been done
}

// reading is a session read from its beginning to its end.
type reading struct {
	recs    []*record
	root    string // the directory that paths are relative to
	open    map[string]*chain
	fixed   map[string]*chain // by call and signature: the last that was fixed
	chains  []*chain
	acts    []action
	turns   []*turn
	saids   []said
	calls   int
	lastRun map[string]string  // call → hash of the input it failed with last
	pending map[string]*record // calls that have not ended, by use id
	denied  map[string]bool    // calls that a rule or a person kept from happening, by use id
	kept    []string           // what those would have acted on, some of them
	stats   Stats
}

// readSession reads a session's records, which are in order.
func readSession(recs []*record) *reading {
	s := &reading{
		recs: recs, open: map[string]*chain{}, fixed: map[string]*chain{}, lastRun: map[string]string{}, pending: map[string]*record{}, denied: map[string]bool{},
	}
	s.root = rootOf(recs)
	for _, r := range recs {
		s.step(r)
	}
	s.finish()
	return s
}

// rootOf is the shortest directory that the session's calls were made in.
func rootOf(recs []*record) string {
	root := ""
	for _, r := range recs {
		if r.cwd != "" && (root == "" || len(r.cwd) < len(root) || len(r.cwd) == len(root) && r.cwd < root) {
			root = r.cwd
		}
	}
	return root
}

// targetFor is what a call acts on, as seen from the session's directory.
func (s *reading) targetFor(r *record) string {
	if r.path != "" {
		return cmp.Or(sign.Relative(r.path, s.root), r.target)
	}
	return r.target
}

// keptFrom is a call that was refused, as a summary names it: of a command all that may be why.
func (s *reading) keptFrom(r *record) string {
	return cmp.Or(sign.Clip(clip.Line(r.command), 120), s.targetFor(r))
}

func (s *reading) turn() *turn {
	if len(s.turns) == 0 {
		return nil
	}
	return s.turns[len(s.turns)-1]
}

func (s *reading) step(r *record) {
	s.stats.see(r)
	switch r.typ {
	case event.PromptSubmitted:
		s.prompt(r)
	case event.ToolCalled:
		if r.useID != "" {
			s.called(r)
		}
	case event.ToolFailed:
		s.calls++
		s.stats.Calls++
		if t := s.turn(); t != nil {
			t.calls++
		}
		if r.refused {
			s.refuse(r.useID, r)
			return
		}
		delete(s.pending, r.useID)
		s.happened()
		s.failed(r)
	case event.PermissionDecided:
		if r.outcome == "denied" { // what runs no tool has no other end at some clients
			s.refuse(decidedCall(r), nil)
		}
	case event.ToolSucceeded:
		delete(s.pending, r.useID)
		s.calls++
		s.stats.Calls++
		if t := s.turn(); t != nil {
			t.calls++
		}
		s.happened()
		s.succeeded(r)
	case event.ResponseCompleted:
		if t := s.turn(); t != nil {
			t.response = r
			if strings.HasPrefix(r.outcome, "error: ") {
				t.error = strings.TrimPrefix(r.outcome, "error: ")
			}
		}
	}
}

func (s *reading) called(r *record) {
	if s.denied[r.useID] { // the decision stands before the call in the log
		s.kept = appendNew(s.kept, s.keptFrom(r), keptMost)
		return
	}
	s.pending[r.useID] = r
}

const keptMost = 3

// refuse counts a call that did not happen, once, though both the decision and the
// client's own word of it are recorded. r is that word, nil = there is none.
func (s *reading) refuse(id string, r *record) {
	if call := s.pending[id]; call != nil {
		r = call
	}
	delete(s.pending, id)
	if id != "" {
		if s.denied[id] {
			return
		}
		s.denied[id] = true
	}
	s.stats.Refused++
	if t := s.turn(); t != nil {
		t.refused++
	}
	if r != nil {
		s.kept = appendNew(s.kept, s.keptFrom(r), keptMost)
	}
}

func (s *reading) happened() {
	if t := s.turn(); t != nil {
		t.happened++
	}
}

func (s *reading) prompt(r *record) {
	s.stats.Prompts++
	if before := s.before(); before != "" && !r.handed {
		if sentence, strength := sign.Correction(r.text); strength > 0 {
			s.stats.Corrections++
			s.saids = append(s.saids, said{rec: r, sentence: sentence, strength: strength, before: before})
			s.acts = append(s.acts, action{said: true, target: sign.SaidKey(sentence), words: sentence, rec: r})
		}
	}
	s.turns = append(s.turns, &turn{prompt: r})
}

// before is what had been done when a prompt came: empty when there was
// nothing that could be corrected.
func (s *reading) before() string {
	if t := s.turn(); t != nil {
		switch {
		case len(t.commands) > 0:
			return "`" + t.commands[len(t.commands)-1] + "`"
		case len(t.files) > 0:
			return "an edit of " + t.files[len(t.files)-1]
		case t.response != nil && t.response.text != "":
			return "the answer: " + firstSentence(t.response.text, 120)
		case t.calls > 0:
			return "a tool call"
		}
	}
	return ""
}

func callKey(r *record, target string) string { return r.tool + "\x00" + target }

func (s *reading) failed(r *record) {
	target := s.targetFor(r)
	key := callKey(r, target)
	s.stats.Failures++
	if t := s.turn(); t != nil {
		t.failed++
	}
	if r.hash != "" && s.lastRun[key] == r.hash {
		s.stats.Retries++
	}
	s.lastRun[key] = r.hash
	c := s.open[key]
	if c != nil && c.first.sig.Key == r.sig.Key {
		c.tried = append(c.tried, s.inVain(c, r)...)
		c.last, c.mark, c.call = r, len(s.acts), s.calls
		c.calls = append(c.calls, r)
		c.tries++
		c.witness(r.id)
		return
	}
	next := &chain{first: r, last: r, calls: []*record{r}, tries: 1, start: len(s.acts), mark: len(s.acts), call: s.calls}
	next.witness(r.id)
	if t := s.turn(); t != nil {
		next.prompt = t.prompt
	}
	if c != nil { // another failure of the same call: what was done since may have helped with the first
		if f := s.fixOf(c, r, c.mark); f != nil && f.Kind != "retry" {
			f.Confidence = min(f.Confidence, 0.4)
			f.Text += ", then another failure came"
			c.partial = f
		}
		next.behind = append(c.behind, c)
		c.behind = nil
	} else if old := s.fixed[key+"\x00"+r.sig.Key]; old != nil && old.refailed == nil && !s.editedSince(old) {
		old.refailed = r
	}
	s.open[key] = next
	s.chains = append(s.chains, next)
}

func (c *chain) witness(id string) {
	if len(c.evidence) < maxEvidence && !slices.Contains(c.evidence, id) {
		c.evidence = append(c.evidence, id)
	}
}

// editedSince reports that files were edited after a failure was fixed: when it
// then comes again, the edits may be to blame and not the fix.
func (s *reading) editedSince(c *chain) bool {
	for _, a := range s.acts {
		if a.edit && order(a.rec, c.closed) > 0 {
			return true
		}
	}
	return false
}

// inVain are the commands that were run, and the changes to the command line,
// since the last failure, where the same failure came again. Edits are left
// out: work in progress fails the same way many times.
func (s *reading) inVain(c *chain, r *record) []Attempt {
	var out []Attempt
	f := s.fixOf(c, r, c.mark)
	if f == nil {
		return nil
	}
	switch f.Kind {
	case "changed", "command":
		out = append(out, Attempt{Key: f.Key, Text: f.Text, Event: r.id})
	}
	return out
}

func (s *reading) succeeded(r *record) {
	target := s.targetFor(r)
	key := callKey(r, target)
	delete(s.lastRun, key)
	if c := s.open[key]; c != nil {
		s.settle(key, c, r, 1)
	} else if r.tool == "shell" {
		if key, c := s.otherWay(r); c != nil {
			s.settle(key, c, r, 0.8)
		}
	}
	t := s.turn()
	switch r.tool {
	case "edit", "write":
		s.acts = append(s.acts, action{edit: true, target: target, words: target, rec: r})
		if t != nil {
			t.files = appendNew(t.files, target, 20)
		}
		s.stats.Edits++
	case "shell":
		targets, words := sign.Acting(r.command, r.cwd)
		for i := range targets {
			s.acts = append(s.acts, action{target: targets[i], words: words[i], rec: r})
			if t != nil {
				t.commands = appendNew(t.commands, words[i], 20)
			}
		}
	}
}

func appendNew(list []string, s string, most int) []string {
	if s == "" || len(list) >= most || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// otherWay finds the open failure that a command which worked is another way
// of saying: the newest one.
func (s *reading) otherWay(r *record) (string, *chain) {
	var best *chain
	bestKey := ""
	for key, c := range s.open {
		if c.first.tool != "shell" || s.calls-c.call > similarWithin || !sign.Similar(c.last.command, r.command) {
			continue
		}
		if best == nil || order(c.last, best.last) > 0 {
			best, bestKey = c, key
		}
	}
	return bestKey, best
}

// settle ends a failure and those behind it with the success of the call.
func (s *reading) settle(key string, c *chain, r *record, factor float64) {
	f := s.fixOf(c, r, c.mark)
	f.Confidence *= factor
	s.close(key, c, r, f)
	for _, b := range c.behind {
		g := b.partial
		if g == nil {
			copied := *f
			copied.Confidence = min(copied.Confidence, 0.4)
			g = &copied
		}
		g.Event = r.id
		s.close(key, b, r, g)
	}
	c.behind = nil
	delete(s.open, key)
}

func (s *reading) close(key string, c *chain, r *record, f *Fix) {
	c.fix, c.closed, c.end = f, r, len(s.acts)
	c.witness(r.id)
	s.stats.Fixed++
	s.fixed[key+"\x00"+c.first.sig.Key] = c
}

// fixOf distils what was done since an action of that number until the call r.
func (s *reading) fixOf(c *chain, r *record, since int) *Fix {
	f := &Fix{Event: r.id}
	own := map[string]bool{c.first.target: true, r.target: true}
	var targets []string
	command := func(target, words string) {
		if own[target] || sign.Checks(target) || slices.Contains(targets, target) {
			return
		}
		targets = append(targets, target)
		f.Commands = append(f.Commands, words)
	}
	var spoken []action
	for _, a := range s.acts[since:] {
		switch {
		case a.said:
			spoken = append(spoken, a)
		case a.edit:
			f.Files = appendNew(f.Files, a.target, 50)
		default:
			command(a.target, a.words)
		}
	}
	if r.tool == "shell" && r.command != c.last.command {
		// a line that does something first, and then the same: npm ci && npm test
		ts, ws := sign.Acting(r.command, r.cwd)
		old, _ := sign.Acting(c.last.command, c.last.cwd)
		for i := range ts {
			if i+1 < len(ts) && !slices.Contains(old, ts[i]) {
				command(ts[i], ws[i])
			}
		}
		if len(ts) <= 1 || len(f.Commands) == 0 {
			f.Gone, f.Come = lookedAt(sign.ChangedWords(c.last.command, r.command))
		}
	}
	n := len(f.Commands) + len(f.Files)
	if len(f.Commands) > 3 {
		f.Commands, targets = f.Commands[len(f.Commands)-3:], targets[len(targets)-3:]
	}
	if len(f.Files) > 5 {
		f.Files = f.Files[len(f.Files)-5:]
	}
	s.nameFix(f, c, r, targets, spoken)
	if n > 6 {
		f.Confidence -= 0.1
	}
	return f
}

// lookedAt takes out of a changed command line what only says how to look at
// the result, or at how much of it: that is no fix.
func lookedAt(gone, come []string) ([]string, []string) {
	drop := func(words []string) []string {
		var out []string
		for i := 0; i < len(words); i++ {
			w := words[i]
			switch {
			case w == "-v" || w == "-vv" || w == "--verbose" || w == "-q" || w == "--quiet" || w == "-x" || w == "-s" || w == "--silent" || w == "--no-color" || strings.HasPrefix(w, "--color") ||
				strings.HasPrefix(w, "-count=") || strings.HasPrefix(w, "-run=") || strings.HasPrefix(w, "--tb=") || w == "--no-pager" || strings.HasPrefix(w, "--reporter"):
				continue
			case (w == "-run" || w == "-k" || w == "-t" || w == "-count" || w == "--testNamePattern") && i+1 < len(words):
				i++
				continue
			}
			out = append(out, w)
		}
		if len(out) > 8 {
			out = out[:8]
		}
		return out
	}
	return drop(gone), drop(come)
}

// nameFix says in one line what a fix is, and by which key it is the same as
// another.
func (s *reading) nameFix(f *Fix, c *chain, r *record, targets []string, spoken []action) {
	var parts []string
	if len(f.Gone)+len(f.Come) > 0 {
		f.Kind, f.Confidence = "changed", 0.6
		f.Key = "changed:-" + keyWords(f.Gone) + "+" + keyWords(f.Come)
		switch was, now := sign.Clip(c.last.command, 100), sign.Clip(r.command, 100); {
		case len(f.Gone) == 0 && len(f.Come) <= 3:
			parts = append(parts, "with `"+strings.Join(f.Come, " ")+"` added: `"+now+"`")
		case len(f.Come) == 0 && len(f.Gone) <= 3:
			parts = append(parts, "without `"+strings.Join(f.Gone, " ")+"`: `"+now+"`")
		default:
			parts = append(parts, "with `"+now+"` instead of `"+was+"`")
		}
	}
	if len(f.Commands) > 0 {
		if f.Kind == "" {
			f.Kind, f.Confidence = "command", 0.6
			f.Key = "command:" + strings.Join(slices.Sorted(slices.Values(targets)), ";")
		}
		parts = append(parts, "after `"+strings.Join(f.Commands, "`, `")+"`")
	}
	if len(f.Files) > 0 {
		if f.Kind == "" {
			names := slices.Clone(f.Files[:min(len(f.Files), 3)])
			slices.Sort(names)
			f.Kind, f.Confidence, f.Key = "edit", 0.5, "edit:"+strings.Join(names, ";")
		}
		parts = append(parts, "after editing "+strings.Join(f.Files, ", "))
	}
	if len(spoken) > 0 {
		last := spoken[len(spoken)-1]
		if f.Kind == "" {
			f.Kind, f.Confidence, f.Key = "said", 0.6, last.target
		}
		f.Confidence = min(f.Confidence+0.1, 0.7)
		parts = append(parts, "after the user said: "+sign.Clip(last.words, 160))
	}
	if f.Kind == "" {
		f.Kind, f.Key, f.Confidence = "retry", "retry", 0.3
		parts = append(parts, "when run again with nothing changed that was seen")
	}
	f.Text = sign.Clip(strings.Join(parts, "; "), 400)
}

// keyWords are words without what differs from one time to the next.
func keyWords(words []string) string {
	out := make([]string, 0, len(words))
	for _, w := range words {
		out = append(out, sign.NormalWord(w, ""))
	}
	return strings.Join(out, " ")
}

func (s *reading) finish() {
	s.stats.Open = len(s.open)
	s.stats.Unended = len(s.pending)
	s.stats.settle(s)
}

// firstSentence is the beginning of a text, to the end of its first sentence.
func firstSentence(text string, most int) string {
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#*->• \t"))
		if line == "" || strings.HasPrefix(line, "```") {
			continue
		}
		for _, end := range []string{". ", "。", "! ", "? ", "！", "？"} {
			if i := strings.Index(line, end); i > 20 && i < most {
				return strings.TrimSpace(line[:i+len(end)])
			}
		}
		return sign.Clip(line, most)
	}
	return ""
}
