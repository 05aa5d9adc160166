package mdfile

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// State is what has become of an entry among all that are known.
type State struct {
	Status string    // StatusActive, StatusSuperseded or StatusRetired
	By     string    // id of the entry that made it so; empty where its own status says so
	Until  time.Time // since when, where it is known
}

// Resolve works out the state of every item that the entries name: those of the
// set itself and others (blocks, episodes) that they replace or retire. The set may
// come in several lists. What comes out depends on the set alone, not on the order.
//
// Of several that took the place of one and know nothing of each other, only the newest
// holds, see [Rivals].
func Resolve(lists ...[]Entry) map[string]State {
	states := resolve(lists)
	for _, r := range rivals(lists, states) {
		for i, loser := range r[1:] {
			for _, holds := range r[:i+1] { // of the newer ones the first that all can read who could read it
				if readers(holds.ACL, loser.ACL) {
					states[loser.ID] = State{StatusSuperseded, holds.ID, holds.Time}
					break
				}
			}
		}
	}
	return states
}

func resolve(lists [][]Entry) map[string]State {
	n := 0
	for _, l := range lists {
		n += len(l)
	}
	states := make(map[string]State, n)
	worse := func(id string, s State) {
		old, ok := states[id]
		if !ok || rank(s.Status) > rank(old.Status) ||
			rank(s.Status) == rank(old.Status) && s.By != "" && (old.By == "" || s.Until.Before(old.Until) || s.Until.Equal(old.Until) && s.By < old.By) {
			states[id] = s
		}
	}
	for _, entries := range lists {
		for i := range entries {
			e := &entries[i]
			if e.Type != TypeTombstone {
				worse(e.ID, State{Status: knownStatus(e.Status)})
			}
			if e.Supersedes == "" || e.Supersedes == e.ID {
				continue
			}
			if e.Type == TypeTombstone {
				worse(e.Supersedes, State{StatusRetired, e.ID, e.Time})
				for _, old := range e.DependsOn {
					worse(old, State{StatusSuperseded, e.ID, e.Time})
				}
				continue
			}
			worse(e.Supersedes, State{StatusSuperseded, e.ID, e.Time})
		}
	}
	return states
}

// Rivals are corrections of one item that know nothing of each other, as two machines make
// them: of each group the newest comes first, which holds in the place of the others. One
// that was corrected again since is settled: whoever did so saw which of them held.
func Rivals(lists ...[]Entry) [][]Entry {
	var out [][]Entry
	for _, r := range rivals(lists, resolve(lists)) {
		group := []Entry{*r[0]}
		for _, loser := range r[1:] {
			seen := false // the newest took the place of one that was newer than this one already
			for _, list := range lists {
				for i := range list {
					seen = seen || list[i].ID == r[0].Supersedes && list[i].Supersedes != "" && list[i].Time.After(loser.Time)
				}
			}
			if !seen && readers(r[0].ACL, loser.ACL) {
				group = append(group, *loser)
			}
		}
		if len(group) > 1 {
			out = append(out, group)
		}
	}
	return out
}

// rivals are groups of entries that hold, all in the place of the same item, the newest first.
func rivals(lists [][]Entry, states map[string]State) [][]*Entry {
	known := map[string]*Entry{}
	for _, list := range lists {
		for i := range list {
			if e := &list[i]; e.Type != TypeTombstone && e.Supersedes != "" && e.Supersedes != e.ID {
				known[e.ID] = e
			}
		}
	}
	if len(known) < 2 {
		return nil
	}
	groups := map[string][]*Entry{}
	for id, e := range known {
		if states[id].Status != StatusActive {
			continue
		}
		root := e.Supersedes
		for range len(known) { // what it replaced may have replaced something itself
			up := known[root]
			if up == nil {
				break
			}
			root = up.Supersedes
		}
		groups[root] = append(groups[root], e)
	}
	var out [][]*Entry
	for _, root := range slices.Sorted(maps.Keys(groups)) {
		if g := groups[root]; len(g) > 1 {
			slices.SortFunc(g, func(a, b *Entry) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.ID, b.ID)) })
			out = append(out, g)
		}
	}
	return out
}

// readers says that whoever may read what has the list b may read what has a.
func readers(a, b []string) bool {
	if len(a) == 0 || slices.Contains(a, "*") {
		return true
	}
	return len(b) > 0 && !slices.ContainsFunc(b, func(who string) bool { return !slices.Contains(a, who) })
}

func knownStatus(s string) string {
	if s == StatusActive {
		return s
	}
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "", StatusActive, "accepted", "current":
		return StatusActive
	case StatusSuperseded, "replaced", "outdated", "deprecated":
		return StatusSuperseded
	case StatusRetired, "forgotten", "rejected", "deleted", "withdrawn", "expired":
		return StatusRetired
	}
	return StatusActive
}

func rank(status string) int {
	switch status {
	case StatusRetired:
		return 2
	case StatusSuperseded:
		return 1
	}
	return 0
}

// Retired are the ids that tombstones among the entries name.
func Retired(entries []Entry) map[string]bool {
	gone := map[string]bool{}
	addRetired(gone, entries)
	return gone
}

func addRetired(gone map[string]bool, entries []Entry) {
	for i := range entries {
		if e := &entries[i]; e.Type == TypeTombstone && e.Supersedes != "" {
			gone[e.Supersedes] = true
		}
	}
}

// Without returns the file without the entries of these ids. Nothing else of it
// changes but blank lines around them. Text by hand that would come to stand
// behind an entry whose end cannot be told moves before that entry.
func (f *EntryFile) Without(gone map[string]bool) []byte {
	out, _ := f.Cut(func(e *Entry) bool { return gone[e.ID] && e.Type != TypeTombstone })
	return out
}

// Cut is [EntryFile.Without] for the entries that gone says, tombstones too, and
// gives what was cut, each as it stands in the file.
func (f *EntryFile) Cut(gone func(*Entry) bool) (rest []byte, cut [][]byte) {
	if !slices.ContainsFunc(f.Entries, func(e Entry) bool { return gone(&e) }) {
		return f.src, nil
	}
	nl := eolOf(f.src)
	var out []byte
	keepBefore := 0 // where text can be put that must not be swallowed
	swallows := false
	at := 0
	put := func(free []byte) {
		if swallows && len(bytes.TrimSpace(free)) > 0 {
			free = append(bytes.Clone(bytes.Trim(free, "\r\n")), nl+nl...)
			out = slices.Insert(out, keepBefore, free...)
			keepBefore += len(free)
			return
		}
		out = append(out, free...)
	}
	for _, e := range f.Entries {
		free := f.src[at:e.Start]
		at = e.End
		if gone(&e) {
			cut = append(cut, f.src[e.Start:e.End])
			put(append(bytes.Clone(bytes.TrimRight(free, " \t\r\n")), nl...))
			continue
		}
		put(free)
		if n := len(out); n > 0 && out[n-1] != '\n' && out[n-1] != '\r' {
			out = append(out, nl...)
		}
		if edited := e.Edited || e.Short || e.Problem != ""; !edited || !swallows {
			swallows, keepBefore = edited, len(out)
		}
		out = append(out, f.src[e.Start:e.End]...)
	}
	put(f.src[at:])
	return bytes.TrimLeft(out, "\r\n"), cut
}

func (f *EntryFile) has(gone map[string]bool) bool {
	for i := range f.Entries {
		if e := &f.Entries[i]; len(gone) > 0 && gone[e.ID] && e.Type != TypeTombstone {
			return true
		}
	}
	return false
}

// WithEntry returns the file with an entry added at its end.
func (f *EntryFile) WithEntry(rendered []byte) []byte { return addEntry(f.src, rendered) }

func addEntry(src, rendered []byte) []byte {
	out := bytes.Clone(src)
	nl := []byte("\n")
	switch {
	case crOnly(src):
		nl = []byte("\r")
	case bytes.Contains(src[:min(len(src), 4096)], []byte("\r\n")):
		nl = []byte("\r\n")
	}
	if rendered = withLF(rendered); len(nl) != 1 || nl[0] != '\n' {
		rendered = bytes.ReplaceAll(rendered, []byte("\n"), nl)
	}
	switch {
	case len(out) == 0:
	case bytes.HasSuffix(out, append(bytes.Clone(nl), nl...)):
	case bytes.HasSuffix(out, nl), bytes.HasSuffix(out, []byte("\n")):
		out = append(out, nl...)
	default:
		out = append(append(out, nl...), nl...)
	}
	return append(out, rendered...)
}

// withLF is a text with LF line ends.
func withLF(text []byte) []byte {
	if crOnly(text) {
		return bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
	}
	return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
}

// MergeEntries is the union of two files of entries: every entry of either, in
// order of time, without those that a tombstone of either retires, and every
// paragraph that people wrote in either. It does not matter which file is which,
// nor in what order, nor how often, files are merged: the same entries and the
// same paragraphs come out. A file that already has all that the other has
// comes back as it is.
func MergeEntries(a, b []byte) []byte {
	out, _, _ := MergeSettled(Settled{Data: a}, Settled{Data: b})
	return out
}

// MergeSettled is [MergeEntries] of what was settled just now, and gives the entries of
// both sides too, those of tombstones among them.
func MergeSettled(sa, sb Settled) (merged []byte, ours, theirs []Entry) {
	asText := func(s Settled) *EntryFile {
		if s.file != nil && !crOnly(s.Data) {
			return s.file
		}
		if crOnly(s.Data) {
			s.Data = withLF(s.Data)
		}
		return ParseEntries(s.Data)
	}
	// Both at once: logs of thousands of entries are united while somebody waits.
	var fa, fb *EntryFile
	var both sync.WaitGroup
	both.Go(func() { fa = asText(sa) })
	fb = asText(sb)
	both.Wait()
	if bytes.Equal(sa.Data, sb.Data) {
		return sa.Data, fa.Entries, fb.Entries
	}
	return mergeFiles(sa.Data, sb.Data, fa, fb), fa.Entries, fb.Entries
}

func mergeFiles(a, b []byte, fa, fb *EntryFile) []byte {
	gone := Retired(fa.Entries)
	addRetired(gone, fb.Entries)
	if fa.has(gone) || fb.has(gone) {
		return union(fa, fb, gone)
	}
	inA, inB := fa.covers(fb), fb.covers(fa)
	switch {
	case inA && inB: // the same in another order: both come to one
	case inA:
		return a
	case inB:
		return b
	}
	return union(fa, fb, nil)
}

func (f *EntryFile) set() (entries, paragraphs map[string]bool) {
	entries, paragraphs = make(map[string]bool, len(f.Entries)), map[string]bool{}
	text := string(f.src) // one for all of them
	for i := range f.Entries {
		entries[normalText(text[f.Entries[i].Start:f.Entries[i].End])] = true
	}
	for _, r := range f.Free {
		for _, p := range paragraphsOf(f.src[r[0]:r[1]]) {
			paragraphs[p] = true
		}
	}
	return entries, paragraphs
}

// covers says that f has all that g has.
func (f *EntryFile) covers(g *EntryFile) bool {
	ids := make(map[string]bool, len(f.Entries)) // quicker told than what stands there
	for i := range f.Entries {
		ids[f.Entries[i].ID] = true
	}
	for i := range g.Entries {
		if !ids[g.Entries[i].ID] {
			return false
		}
	}
	e, p := f.set()
	ge, gp := g.set()
	for k := range ge {
		if !e[k] {
			return false
		}
	}
	for k := range gp {
		if !p[k] {
			return false
		}
	}
	return true
}

func paragraphsOf(b []byte) []string {
	var out []string
	var cur []string
	flush := func() {
		if len(cur) > 0 {
			out = append(out, strings.Join(cur, "\n"))
			cur = nil
		}
	}
	if len(bytes.Trim(b, " \t\r\n")) == 0 { // between entries, as nearly always
		return nil
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" {
			flush()
			continue
		}
		cur = append(cur, line)
	}
	flush()
	return out
}

// piece is an entry with the free text that follows it.
type piece struct {
	e    *Entry
	raw  string
	free [][]string // paragraphs, of each place where the entry stands
}

// pieces takes a file apart for a union, in order of time. What stands before the first
// entry is head; what follows an entry whose end cannot be told (edited by hand) has
// become a part of that entry.
func (f *EntryFile) pieces() (head []string, list []*piece) {
	at := 0
	if bytes.HasPrefix(f.src, bom) {
		at = len(bom)
	}
	all := make([]piece, len(f.Entries))
	list = make([]*piece, len(f.Entries))
	text := string(f.src) // one for all of them
	free := func(i, to int) {
		switch p := paragraphsOf(f.src[at:to]); {
		case i < 0:
			head = p
		case len(p) > 0:
			all[i].free = [][]string{p}
		}
	}
	for i := range f.Entries {
		e := &f.Entries[i]
		free(i-1, e.Start)
		all[i].e, all[i].raw = e, normalText(text[e.Start:e.End])
		list[i], at = &all[i], e.End
	}
	free(len(all)-1, len(f.src))
	if !slices.IsSortedFunc(list, inTime) { // as the last union left it
		slices.SortStableFunc(list, inTime)
	}
	return head, list
}

func inTime(x, y *piece) int {
	return cmp.Or(x.e.Time.Compare(y.e.Time), cmp.Compare(x.e.ID, y.e.ID), cmp.Compare(x.raw, y.raw))
}

// united merges two lists that are in order. What stands in both, or twice in one, is
// there once, with the text behind it of each place.
func united(a, b []*piece) []*piece {
	out := make([]*piece, 0, len(a)+len(b))
	for len(a)+len(b) > 0 {
		from := &a
		if len(a) == 0 || len(b) > 0 && inTime(b[0], a[0]) < 0 {
			from = &b
		}
		p := (*from)[0]
		*from = (*from)[1:]
		if n := len(out); n > 0 && out[n-1].raw == p.raw {
			out[n-1].free = append(out[n-1].free, p.free...)
			continue
		}
		out = append(out, p)
	}
	return out
}

func union(fa, fb *EntryFile, gone map[string]bool) []byte {
	var headA []string
	var a []*piece
	var both sync.WaitGroup
	both.Go(func() { headA, a = fa.pieces() })
	headB, b := fb.pieces()
	both.Wait()
	heads := [][]string{headA, headB}
	if len(gone) > 0 {
		retired := func(p *piece) bool {
			was := gone[p.e.ID] && p.e.Type != TypeTombstone
			if was {
				heads = append(heads, p.free...)
			}
			return was
		}
		a, b = slices.DeleteFunc(a, retired), slices.DeleteFunc(b, retired)
	}
	all := united(a, b)
	edited := map[string]bool{}
	for _, list := range [][]*piece{a, b} {
		for _, p := range list {
			if p.e.Edited || p.e.Problem != "" {
				edited[p.e.ID] = true
			}
		}
	}
	if len(edited) > 0 {
		for _, p := range all {
			if edited[p.e.ID] { // text behind an edited entry would be taken for a part of it
				heads = append(heads, p.free...)
				p.free = nil
			}
		}
	}
	out := make([]byte, 0, len(fa.src)+len(fb.src)+len(all))
	put := func(s string) {
		if len(out) > 0 {
			out = append(out, '\n')
		}
		out = append(append(out, s...), '\n')
	}
	for _, s := range joinParagraphs(heads) {
		put(s)
	}
	for _, p := range all {
		put(p.raw)
		for _, s := range joinParagraphs(p.free) {
			put(s)
		}
	}
	return out
}

// joinParagraphs keeps the longest text in its order and adds what only the
// others have. The order of the texts does not matter.
func joinParagraphs(texts [][]string) []string {
	slices.SortFunc(texts, func(a, b []string) int { return cmp.Or(cmp.Compare(len(b), len(a)), slices.Compare(b, a)) })
	var out []string
	for i, text := range texts {
		if i == 0 {
			out = slices.Clone(text)
			continue
		}
		for _, p := range text {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}
