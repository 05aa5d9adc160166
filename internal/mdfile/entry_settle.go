package mdfile

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Settled is what [SettleEdits] made of a file of entries.
type Settled struct {
	Data       []byte
	Superseded []string // ids of entries that were edited: as they were again, each with a new one that replaces it
	Retired    []string // ids of entries that were cut out: each has a tombstone now
	Restored   []string // ids of entries that were missing, too many at once to believe that they were meant to

	file *EntryFile // Data taken apart; nil where that was not done
}

// Changed says that the file is another one than before.
func (s Settled) Changed() bool { return len(s.Superseded)+len(s.Retired)+len(s.Restored) > 0 }

// maxCut is how many entries can be cut out of a file by hand at once. Where more
// are missing, a program or an accident took them: then they come back.
const maxCut = 8

// SettleEdits turns what people did to a file of entries since base, the version
// that is known, into what a set that only grows can hold. An entry whose text
// was edited is put back, and the edit becomes an entry that supersedes it; one
// that was cut out becomes a tombstone. Text between entries is left alone. What
// was there already in base is not looked at twice, so that settling again
// changes nothing. A zero now is the time of the newest entry, so that the same
// comes out wherever it is done.
func SettleEdits(data, base []byte, now time.Time) Settled {
	out := Settled{Data: data}
	if bytes.Equal(data, base) {
		return out
	}
	if n := len(base); n > 0 && base[n-1] == '\n' && !now.IsZero() && bytes.HasPrefix(data, base) && bytes.HasPrefix(data[n:], []byte("\n---\n")) {
		// Entries were added at the end, as nearly always: what was there is as
		// it was, and only these are looked at.
		out = SettleEdits(data[n:], nil, now)
		out.Data = append(bytes.Clone(base), out.Data...)
		return out
	}
	f, old := ParseEntries(data), ParseEntries(base)
	if f.Foreign || old.Foreign {
		return out
	}
	out.file = f
	if now.IsZero() {
		for i := range f.Entries {
			if at := f.Entries[i].Time; at.After(now) {
				now = at
			}
		}
	}
	known := make(map[string]*Entry, len(old.Entries))
	for i := range old.Entries {
		if e := &old.Entries[i]; !e.Edited && e.Problem == "" {
			known[e.ID] = e
		}
	}
	if out.edits(f, old, known, now); len(out.Superseded) > 0 {
		f = ParseEntries(out.Data)
	}
	if out.missing(f, old, known, now); out.Changed() {
		out.file = nil
	}
	return out
}

// edits puts edited entries back and adds what they were edited to.
func (s *Settled) edits(f, old *EntryFile, known map[string]*Entry, now time.Time) {
	var next []byte
	var added [][]byte
	at := 0
	whole := map[string]bool{}
	if !slices.ContainsFunc(f.Entries, func(e Entry) bool { return e.Edited }) {
		return
	}
	for _, e := range f.Entries {
		if !e.Edited && e.Problem == "" {
			whole[e.ID] = true
		}
	}
	for _, e := range f.Entries {
		if !e.Edited || e.Problem != "" || !entryIDForm().MatchString(e.ID) || e.ID == EntryID(e) || e.Type == TypeTombstone {
			continue
		}
		edit := e
		edit.Supersedes, edit.Source, edit.Agent, edit.Time, edit.Status = e.ID, "hand", "user", now, StatusActive
		_, raw := edit.Render()
		added = append(added, withLF(raw))
		s.Superseded = append(s.Superseded, e.ID)
		next = append(next, f.src[at:e.Start]...)
		at = e.End
		if was, ok := known[e.ID]; ok && !whole[e.ID] {
			whole[e.ID] = true
			body := bytes.TrimRight(old.src[was.Start:was.End], "\r\n")
			nl := eolOf(f.src)
			next = append(next, bytes.ReplaceAll(withLF(body), []byte("\n"), []byte(nl))...)
			next = append(next, nl...)
		} else {
			next = bytes.TrimRight(next, "\r\n")
			if len(next) > 0 {
				next = append(next, eolOf(f.src)...)
			}
		}
	}
	if len(added) == 0 {
		return
	}
	next = append(next, f.src[at:]...)
	for _, raw := range added {
		next = addEntry(next, raw)
	}
	s.Data = next
}

// missing deals with entries of the base that are not in the file.
func (s *Settled) missing(f, old *EntryFile, known map[string]*Entry, now time.Time) {
	if len(known) == 0 {
		return
	}
	here := make(map[string]bool, len(f.Entries))
	for i := range f.Entries {
		here[f.Entries[i].ID] = true
	}
	gone := Retired(f.Entries)
	// Where none is left, the file was removed or emptied, and what is in it has come since.
	// That they cut out the only one there was is believed of a person where all else is there.
	stays := len(known) == 1 && len(f.Entries) == 0 && len(f.Free) > 0 && len(f.Damage) == 0
	var lost []Entry
	for i := range old.Entries {
		e := &old.Entries[i]
		if known[e.ID] != e {
			continue // damaged, or there twice
		}
		if here[e.ID] || gone[e.ID] {
			stays = true
		} else {
			lost = append(lost, *e)
		}
	}
	// A tombstone is cut out by nobody on purpose; one that is missing comes back.
	cut := 0
	for _, e := range lost {
		if e.Type != TypeTombstone {
			cut++
		}
	}
	for _, e := range lost {
		if e.Type == TypeTombstone || cut > maxCut || !stays {
			s.Data = addEntry(s.Data, old.src[e.Start:e.End])
			s.Restored = append(s.Restored, e.ID)
			continue
		}
		stone := Entry{Type: TypeTombstone, Status: StatusRetired, Time: now, Agent: "user", Supersedes: e.ID, Rationale: "cut out by hand", ACL: e.ACL}
		if strings.Contains(e.Source, ":") {
			stone.Source = e.Source
		}
		if e.Supersedes != "" {
			stone.DependsOn = []string{e.Supersedes}
		}
		_, raw := stone.Render()
		s.Data = addEntry(s.Data, raw)
		s.Retired = append(s.Retired, e.ID)
	}
}

var entryIDForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^e-[0-9a-f]{16}$`) })

// String tells in a few words what was settled.
func (s Settled) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{len(s.Superseded), "edited by hand: the edit is an entry of its own that supersedes the old one"},
		{len(s.Retired), "cut out by hand: a tombstone stands for it"},
		{len(s.Restored), "were missing, more than anyone cuts out by hand, and are back"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, "; ")
}
