package event

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/event/quick"
)

// waiting is the format of a file of the outbox, `<event id>.json`, and of a line
// of its reserve.
type waiting struct {
	V     int             `json:"v"`
	File  string          `json:"file"` // of the log that the event was meant for
	At    time.Time       `json:"at"`
	Why   string          `json:"why"`
	Event json.RawMessage `json:"event"`
}

// Waiting is an event in the outbox.
type Waiting struct {
	ID   string    `json:"id"`
	At   time.Time `json:"at"`
	Why  string    `json:"why"`
	Type Type      `json:"type,omitempty"`
	Bad  string    `json:"bad,omitempty"` // why it cannot be recorded at all
	File string    `json:"file"`          // path
}

// Replayed is what became of the events in an outbox.
type Replayed struct {
	Added   int      `json:"added"`             // now in their logs
	Known   int      `json:"known"`             // had been there already
	Left    int      `json:"left"`              // for another time
	Aside   []string `json:"aside,omitempty"`   // cannot be recorded; moved into the directory bad
	Trouble []string `json:"trouble,omitempty"` // why others are left
}

const (
	waitingExt = ".json"
	badDir     = "bad"
	// batchSize is how many bytes of lines are added at once.
	batchSize = 4 * MaxLine
)

// Outbox lists what waits, oldest first, and what was set aside.
func (b *Broker) Outbox() ([]Waiting, error) {
	names, err := b.names()
	if err != nil {
		return nil, err
	}
	var out []Waiting
	for _, name := range names {
		out = append(out, b.look(filepath.Join(b.opt.Outbox, name)))
	}
	aside, err := durable.ReadDir(filepath.Join(b.opt.Outbox, badDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, fmt.Errorf("list outbox: %w", err)
	}
	for _, entry := range aside {
		if filepath.Ext(entry.Name()) == waitingExt {
			w := b.look(filepath.Join(b.opt.Outbox, badDir, entry.Name()))
			if w.Bad == "" {
				w.Bad = "set aside"
			}
			out = append(out, w)
		}
	}
	kept, _, err := b.readReserve()
	for _, k := range kept {
		k.where.File = b.reserveFile()
		if k.err != nil {
			k.where.Bad = k.err.Error()
		}
		out = append(out, k.where)
	}
	return out, err
}

func (b *Broker) look(path string) Waiting {
	out := Waiting{ID: strings.TrimSuffix(filepath.Base(path), waitingExt), File: path}
	w, e, err := b.open(path)
	if err != nil {
		out.Bad = err.Error()
		return out
	}
	out.At, out.Why, out.Type = w.At, w.Why, e.Type
	return out
}

// names are the files that wait, by id and so by time.
func (b *Broker) names() ([]string, error) {
	if b.opt.Outbox == "" {
		return nil, nil
	}
	list, err := durable.ReadDir(b.opt.Outbox)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list outbox: %w", err)
	}
	var names []string
	for _, entry := range list {
		if filepath.Ext(entry.Name()) == waitingExt && !strings.HasPrefix(entry.Name(), ".") && !entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// open reads and checks one file of the outbox.
func (b *Broker) open(path string) (waiting, Event, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return waiting{}, Event{}, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > maxRead {
		return waiting{}, Event{}, fmt.Errorf("%w: it is not a regular file of at most %d bytes", ErrInvalid, maxRead)
	}
	data, err := durable.Read(path)
	if errors.Is(err, fs.ErrPermission) {
		return waiting{}, Event{}, fmt.Errorf("%w: it cannot be read: %v", ErrInvalid, err)
	}
	if err != nil {
		return waiting{}, Event{}, err
	}
	w, e, err := parseWaiting(data)
	if err == nil && e.ID+waitingExt != filepath.Base(path) {
		err = fmt.Errorf("%w: it holds the event %.60q", ErrInvalid, e.ID)
	}
	return w, e, err
}

func parseWaiting(data []byte) (waiting, Event, error) {
	var w waiting
	if err := json.Unmarshal(data, &w); err != nil {
		return w, Event{}, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	if w.V != 1 {
		return w, Event{}, fmt.Errorf("%w: version %d is not one that this program knows", ErrInvalid, w.V)
	}
	e, err := parseText(string(w.Event))
	return w, e, err
}

// Replay records what waits in the outbox, oldest first: at most limit events
// (0: all), until ctx ends. An event that is in its log already is not added
// again, whatever happened before. One that cannot be recorded at all is set
// aside and holds no other up. When another process is replaying, nothing is
// done. Where nothing could be done, hooks are kept from trying again for a
// while.
func (b *Broker) Replay(ctx context.Context, limit int) (Replayed, error) {
	var r Replayed
	names, err := b.names()
	if err != nil {
		return r, err
	}
	if kept, _, _ := b.readReserve(); len(names)+len(kept) == 0 {
		return r, nil
	}
	unlock, err := b.opt.Disk.TryLock(filepath.Join(b.opt.Outbox, quick.HoldName))
	if errors.Is(err, durable.ErrLocked) {
		r.Left = len(names)
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("replay outbox: %w", err)
	}
	defer unlock()
	if limit > 0 && len(names) > limit {
		r.Left, names = len(names)-limit, names[:limit]
	}
	late := ctx.Err() != nil // then nothing is tried, and nothing is known to be in the way
	b.replayFiles(ctx, names, &r)
	err = b.replayReserve(ctx, &r)
	if !late && r.Left > 0 && r.Added+r.Known+len(r.Aside) == 0 {
		if herr := b.quick.Hold(); herr != nil {
			r.Trouble = append(r.Trouble, herr.Error())
		}
	}
	return r, err
}

// item is one event of the outbox on its way into its log.
type item struct {
	name  string // of its file; "" in the reserve
	event Event
	log   *quick.Log
	known bool // it is in the log
	err   error
	where Waiting
	text  []byte // its line in the reserve
}

// replayFiles records events that have files of their own, several at once.
func (b *Broker) replayFiles(ctx context.Context, names []string, r *Replayed) {
	const several = 512 // so many are read before the first is recorded
	for chunk := range slices.Chunk(names, several) {
		if ctx.Err() != nil {
			r.Left += len(chunk)
			continue
		}
		items := make([]*item, len(chunk))
		for i, name := range chunk {
			w, e, err := b.open(filepath.Join(b.opt.Outbox, name))
			items[i] = b.item(w, e, err)
			items[i].name = name
		}
		b.record(ctx, items)
		var done []string
		for _, it := range items {
			switch {
			case errors.Is(it.err, fs.ErrNotExist): // taken meanwhile
			case errors.Is(it.err, ErrInvalid):
				if err := b.setAside(it.name); err != nil {
					r.Left++
					r.Trouble = append(r.Trouble, fmt.Sprintf("%s: %v, and cannot be set aside: %v", it.name, it.err, err))
					continue
				}
				r.Aside = append(r.Aside, fmt.Sprintf("%s: %v", it.name, it.err))
			case it.err != nil:
				r.Left++
				r.Trouble = append(r.Trouble, fmt.Sprintf("%s: %v", it.name, it.err))
			default:
				done = append(done, it.name)
				r.count(it)
			}
		}
		if err := b.opt.Disk.RemoveSeveral(b.opt.Outbox, done); err != nil {
			r.Trouble = append(r.Trouble, err.Error()) // they are in the log, and are not added again
		}
	}
}

func (r *Replayed) count(it *item) {
	if it.known {
		r.Known++
	} else {
		r.Added++
	}
}

// item makes an event that waits ready for its log.
func (b *Broker) item(w waiting, e Event, err error) *item {
	it := &item{where: Waiting{ID: e.ID, At: w.At, Why: w.Why, Type: e.Type}}
	if err == nil {
		q := e.quick()
		if err = b.quick.Prepare(&q); err == nil {
			// What waits was clean when it was put there; the rules may have grown.
			e, err = clean(b.red, e.from(&q))
		}
	}
	if it.err = err; err != nil {
		return it
	}
	it.event = bound(e)
	q := it.event.quick()
	it.log = b.quick.Log(&q)
	it.where.File = w.File
	return it
}

// record looks for events in the logs and adds those that are not there: once
// for all, since no one else adds events that wait as long as the replay's lock
// is held.
func (b *Broker) record(ctx context.Context, items []*item) {
	search := map[string]map[string]*item{} // by file of a log, by id
	for _, it := range items {
		if it.err != nil {
			continue
		}
		files := []string{it.log.File(it.event.TS)}
		if _, ok := logName(it.where.File); ok { // the host may have got another name since
			files = append(files, filepath.Join(it.log.Dir, it.where.File))
		}
		for _, f := range files {
			if search[f] == nil {
				search[f] = map[string]*item{}
			}
			if twin := search[f][it.event.ID]; twin != nil && twin != it {
				it.known = true // in the reserve and in a file
				continue
			}
			search[f][it.event.ID] = it
		}
	}
	for file, wanted := range search {
		if err := findIDs(file, wanted); err != nil {
			for _, it := range wanted {
				it.err = err
			}
		}
	}
	for from := 0; from < len(items); {
		first := items[from]
		if first.err != nil || first.known {
			from++
			continue
		}
		var batch []*item
		var lines [][]byte
		size := 0
		file := first.log.File(first.event.TS)
		for ; from < len(items) && size < batchSize; from++ {
			it := items[from]
			if it.err != nil || it.known {
				continue
			}
			if it.log.File(it.event.TS) != file {
				break
			}
			q := it.event.quick()
			line := quick.Encode(nil, &q)
			batch, lines, size = append(batch, it), append(lines, line), size+len(line)
		}
		err := ctx.Err()
		if err == nil {
			err = first.log.AddAll(ctx, first.event.TS, true, lines)
		}
		for _, it := range batch {
			it.err = err
		}
	}
}

func (b *Broker) setAside(name string) error {
	dir := filepath.Join(b.opt.Outbox, badDir)
	if err := b.opt.Disk.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return b.opt.Disk.Rename(filepath.Join(b.opt.Outbox, name), filepath.Join(dir, name))
}

// setAsideText keeps a line of the reserve that cannot be recorded.
func (b *Broker) setAsideText(text []byte) error {
	dir := filepath.Join(b.opt.Outbox, badDir)
	if err := b.opt.Disk.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return b.opt.Disk.WriteFile(filepath.Join(dir, quick.Hash(text)[:16]+waitingExt), text, 0o600)
}

// Lost is how many events could be kept nowhere, as far as that could be
// counted: the disk was full, and so was what is kept for that.
func (b *Broker) Lost() (int, error) {
	_, lost, err := b.readReserve()
	return lost, err
}

func (b *Broker) reserveFile() string { return filepath.Join(b.opt.Outbox, quick.ReserveName) }

// readReserve is what the reserve holds, and how many events it had no room for.
func (b *Broker) readReserve() ([]*item, int, error) {
	if b.opt.Outbox == "" {
		return nil, 0, nil
	}
	f, err := durable.Open(b.reserveFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the outbox's reserve: %w", err)
	}
	defer f.Close()
	// Nearly always nothing is in it, and each hook of the full program looks: its
	// two megabytes are read only where something is.
	data := make([]byte, quick.ReserveHead+1)
	n, err := io.ReadFull(f, data)
	if data = data[:n]; err == nil && data[quick.ReserveHead] != 0 {
		var rest []byte
		rest, err = io.ReadAll(io.LimitReader(f, 4*quick.ReserveSize)) // more is none of ours
		data = append(data, rest...)
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, 0, fmt.Errorf("read the outbox's reserve: %w", err)
	}
	items, lost := b.parseReserve(data)
	return items, lost, nil
}

func (b *Broker) parseReserve(data []byte) (items []*item, lost int) {
	lost, ok := quick.ReserveLost(data)
	if !ok {
		return nil, 0
	}
	data = data[quick.ReserveHead:]
	if end := bytes.IndexByte(data, 0); end >= 0 {
		data = data[:end]
	}
	for text := range bytes.Lines(data) {
		w, e, err := parseWaiting(text)
		if err != nil && !bytes.HasSuffix(text, []byte("\n")) {
			continue // a crash tore it: it was never acknowledged
		}
		it := b.item(w, e, err)
		it.text = text
		items = append(items, it)
	}
	return items, lost
}

// replayReserve records what is in the reserve and empties it, as far as it can.
// The reserve's lock is held, and then an append's.
func (b *Broker) replayReserve(ctx context.Context, r *Replayed) error {
	kept, _, err := b.readReserve()
	if err != nil || len(kept) == 0 {
		return err
	}
	err = b.opt.Disk.WriteWithin(ctx, b.reserveFile(), func(f io.ReaderAt, size int64) (int64, []byte, error) {
		data := make([]byte, size)
		if _, err := f.ReadAt(data, 0); err != nil {
			return 0, nil, err
		}
		items, _ := b.parseReserve(data)
		b.record(ctx, items)
		left := make([]byte, 0, 4096)
		for _, it := range items {
			switch {
			case errors.Is(it.err, ErrInvalid) && b.setAsideText(it.text) == nil:
				r.Aside = append(r.Aside, fmt.Sprintf("a line of the reserve: %v", it.err))
			case it.err != nil:
				r.Left++
				r.Trouble = append(r.Trouble, fmt.Sprintf("%s: %v", it.event.ID, it.err))
				left = append(left, it.text...)
			default:
				r.count(it)
			}
		}
		used := bytes.IndexByte(data[quick.ReserveHead:], 0)
		if used < 0 {
			used = len(data) - quick.ReserveHead
		}
		out := make([]byte, used)
		copy(out, left)
		return quick.ReserveHead, out, nil
	})
	if err != nil {
		return fmt.Errorf("replay the outbox's reserve: %w", err)
	}
	return nil
}

// Reserve makes the reserve where there is none: space that is taken while
// there is some, for what cannot be recorded when there is none.
func (b *Broker) Reserve() error {
	if b.opt.Outbox == "" {
		return nil
	}
	fi, err := os.Lstat(b.reserveFile())
	if err == nil && fi.Mode().IsRegular() && fi.Size() == quick.ReserveSize || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := b.opt.Disk.MkdirAll(b.opt.Outbox, 0o700); err != nil {
		return fmt.Errorf("make the outbox's reserve: %w", err)
	}
	unlock, err := b.opt.Disk.TryLock(b.reserveFile() + ".lock") // which is made here, too, while there is space
	if errors.Is(err, durable.ErrLocked) {
		return nil // another is at it
	}
	if err == nil {
		err = b.opt.Disk.WriteFile(b.reserveFile(), quick.ReserveStart(), 0o600)
		err = errors.Join(err, unlock())
	}
	if err != nil {
		return fmt.Errorf("make the outbox's reserve: %w", err)
	}
	return nil
}

// findIDs marks those that are in a log's file.
func findIDs(path string, wanted map[string]*item) error {
	f, err := durable.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return eachLine(f, func(text []byte, _ int64, _ bool) bool {
		// Ours begin with version and id; the id of another's line is read whole.
		if rest, ok := bytes.CutPrefix(text, []byte(`{"v":1,"id":"`)); ok {
			if i := bytes.IndexByte(rest, '"'); i > 0 {
				if it := wanted[string(rest[:i])]; it != nil {
					it.known = true
				}
			}
			return true
		}
		if e, err := parseText(string(text)); err == nil && wanted[e.ID] != nil {
			wanted[e.ID].known = true
		}
		return true
	})
}
