package event

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"reprise/internal/durable"
	"reprise/internal/event/quick"
)

// PurgeOptions says what is to go from a log.
type PurgeOptions struct {
	Dir    string
	Host   string // of the one who purges, for the event
	Now    func() time.Time
	Disk   durable.Disk
	Match  func(Event) bool
	Reason string
	// Raw tells which bytes are to go where no event can be read: lines that
	// are none, and what crashes left of lines (`<file>.torn`). nil keeps them.
	Raw func([]byte) bool
	// Event is who purges and in whose name; type, time, data and outcome are
	// set here.
	Event Event
	// Item is the id of what was purged, for the record.
	Item string
}

// Purged is what a purge did.
type Purged struct {
	Files  []string `json:"files"`  // rewritten
	Events int      `json:"events"` // gone
	Torn   []string `json:"torn,omitempty"`
	// Unread is how many lines of the files looked at could not be read, and
	// were kept.
	Unread int `json:"unread"`
}

// Purge takes events out of the log in a directory for good. A file that holds
// any is replaced as a whole, under its lock, so that a crash leaves the old
// file or the new one and another writer loses nothing. The new file begins
// with a memory.purged event that names the last hash of the old chain and how
// many events went; what stays follows in its order, chained anew. A crash
// between two files is made good by purging again.
func Purge(ctx context.Context, opt PurgeOptions) (Purged, error) {
	var out Purged
	names, err := FileNames(opt.Dir)
	if err != nil {
		return out, err
	}
	var ids quick.IDs
	for _, name := range names {
		if err := purgeFile(ctx, opt, name, &ids, &out); err != nil {
			return out, fmt.Errorf("purge %s: %w", filepath.Join(opt.Dir, name), err)
		}
	}
	return out, nil
}

func purgeFile(ctx context.Context, opt PurgeOptions, name string, ids *quick.IDs, out *Purged) error {
	path := filepath.Join(opt.Dir, name)
	unlock, err := opt.Disk.Lock(ctx, path+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	data, err := durable.ReadFile(path, maxLog)
	if err != nil {
		return err
	}
	var kept []piece
	gone, unread, old := 0, 0, ""
	for text, rest, ok := bytes.Cut(data, []byte("\n")); ok; text, rest, ok = bytes.Cut(rest, []byte("\n")) {
		old = quick.Hash(text)
		e, err := parseText(string(text))
		switch {
		case err != nil && opt.Raw != nil && opt.Raw(text), err == nil && opt.Match(e):
			gone++
		case err != nil:
			unread++
			kept = append(kept, piece{text: text})
		default:
			head, err := headOf(text)
			if err != nil {
				return err
			}
			kept = append(kept, piece{head, true})
		}
	}
	torn := data[bytes.LastIndexByte(data, '\n')+1:]
	tornGone := len(torn) > 0 && opt.Raw != nil && opt.Raw(torn)
	if gone > 0 || tornGone {
		if tornGone {
			torn = nil
		}
		first, err := purgeEvent(opt, ids, old, gone)
		if err != nil {
			return err
		}
		if err := opt.Disk.WriteFile(path, chain(append([]piece{{first, true}}, kept...), old, torn), 0o600); err != nil {
			return err
		}
		out.Files, out.Events = append(out.Files, name), out.Events+gone
	}
	out.Unread += unread
	if err := purgeTorn(opt, path, out); err != nil {
		return err
	}
	// A purge that was killed in the middle of a write has left a file of what
	// stayed then, and of that this one may take.
	return errors.Join(opt.Disk.RemoveTemps(path), opt.Disk.RemoveTemps(path+".torn"))
}

// purgeTorn removes what a crash left of lines, when it is of what is to go.
func purgeTorn(opt PurgeOptions, path string, out *Purged) error {
	torn := path + ".torn"
	if opt.Raw == nil {
		return nil
	}
	data, err := durable.ReadFile(torn, maxLog)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var kept []byte
	for line := range bytes.Lines(data) {
		if !opt.Raw(line) {
			kept = append(kept, line...)
		}
	}
	if len(kept) == len(data) {
		return nil
	}
	out.Torn = append(out.Torn, filepath.Base(torn))
	if len(kept) == 0 {
		return opt.Disk.Remove(torn)
	}
	return opt.Disk.WriteFile(torn, kept, 0o600)
}

func purgeEvent(opt PurgeOptions, ids *quick.IDs, chain string, gone int) ([]byte, error) {
	e := opt.Event
	what := MemoryData{Op: "purge", ID: opt.Item, Reason: opt.Reason, Count: gone}
	data, err := marshal(what)
	if err != nil {
		return nil, err
	}
	now := opt.Now().UTC().Round(0)
	e.ID, e.TS, e.Type, e.Data, e.Outcome = ids.Next(now), now, MemoryPurged, data, "success"
	q := e.quick()
	if err := quick.Normalise(&q); err != nil {
		return nil, err
	}
	l := Open(opt.Dir, opt.Host, opt.Now)
	if e, err = clean(l.red, e.from(&q)); err != nil {
		return nil, err
	}
	// Only now the hash: one in a few hundred looks like a secret, and a chain
	// whose beginning is redacted cannot be followed.
	if err := json.Unmarshal(e.Data, &what); err != nil {
		return nil, err
	}
	what.Chain = chain
	if e.Data, err = marshal(what); err != nil {
		return nil, err
	}
	q = e.quick()
	return quick.Encode(nil, &q), nil
}

// headOf is an event's line up to where its prev belongs: as it is, and where
// another program put prev elsewhere, with its members in their order.
func headOf(line []byte) ([]byte, error) {
	const key = `,"prev":"`
	if i := len(line) - len(key) - len(`"}`); i > 0 {
		for _, n := range []int{quick.HashSize, 0} {
			if at := i - n; at > 0 && bytes.HasPrefix(line[at:], []byte(key)) && bytes.HasSuffix(line, []byte(`"}`)) &&
				!bytes.ContainsAny(line[at+len(key):len(line)-2], `"\`) {
				return line[:at], nil
			}
		}
	}
	out := []byte{'{'}
	err := quick.Members(string(line), func(name, raw string) error {
		if name == "prev" {
			return nil
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(quick.AppendString(out, name), ':'), raw...)
		return nil
	})
	return out, err
}

// piece is one line of a file that is made anew: an event's up to where its
// prev belongs, or the whole of what is no event.
type piece struct {
	text  []byte
	event bool
}

// chain makes a file of lines, each naming the one before; the first names prev.
func chain(lines []piece, prev string, torn []byte) []byte {
	var out []byte
	for _, p := range lines {
		from := len(out)
		if out = append(out, p.text...); p.event {
			out = quick.End(out, prev)
		} else {
			out = append(out, '\n')
		}
		prev = quick.Hash(out[from : len(out)-1])
	}
	return append(out, torn...)
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // <, > and & stay readable
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
