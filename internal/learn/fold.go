package learn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"reprise/internal/event"
	"reprise/internal/learn/sign"
	"reprise/internal/recall"
)

// folder is one transaction's work.
//
// Everything goes through a list of work that is part of the index: taking in
// events only keeps their records and puts their sessions on the list; a
// session that is worked out puts on it the groups (a signature, a month) whose
// rows it changed, and a group the sessions whose results it changes. What is
// made depends on records and day alone, so it does not matter how often or in
// which order the list is gone through, and it may be left at any point.
type folder struct {
	o      *Organizer
	tx     Tx
	over   func() bool
	report *Report
	asOf   int
	gone   retirements // nil = not read
	did    int         // things done in this transaction
	chunks map[string][]*record
	firsts map[string][]string // by kind and group: see first

	seen      int // see counts
	compacted string
}

// cache holds records of sessions between the transactions of one process.
type cache struct {
	generation int
	sessions   map[string][]*record
	size       int
}

const maxCached = 200_000 // records

// made is what a session or a group came to: hashes, by which it is seen what
// has to be written.
type made struct {
	Docs map[string]string `json:"d,omitempty"`
	Rows map[string]string `json:"r,omitempty"`
	Due  int               `json:"due,omitempty"`
	// Hidden are hashes of what was kept out, because it was forgotten.
	Hidden []string `json:"h,omitempty"`
}

func (m *made) decode(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return json.Unmarshal(b, m)
}

// step does a transaction's worth of work; report.More says that there is more.
func (f *folder) step(ctx context.Context) error {
	if ready, err := f.open(); err != nil || !ready {
		f.report.More = true
		return err
	}
	full := false
	for _, log := range f.o.o.Logs {
		done, err := f.takeIn(ctx, log)
		if err != nil {
			return err
		}
		if full = !done; full {
			break
		}
	}
	if err := f.flush(); err != nil {
		return err
	}
	if err := f.keepCounts(); err != nil {
		return err
	}
	more := full
	if !full && !(f.did > 0 && f.over()) {
		left, err := f.work(ctx)
		if err != nil {
			return err
		}
		more = left
	} else if !more {
		var err error
		if more, err = f.anyWork(); err != nil {
			return err
		}
	}
	f.report.More = more
	return f.close()
}

// open checks that the index is of this version, finds out the day and puts on
// the list what is due by it. What another version made is taken out first, as
// much as fits a transaction: ready is false while something is left of it.
func (f *folder) open() (ready bool, err error) {
	version, ok, err := f.tx.Load(bucketMeta, "version")
	if err != nil {
		return false, err
	}
	if ok && string(version) != f.o.version() {
		f.o.cache = cache{}
		if err := f.tx.Store(bucketMeta, "version", []byte(beingWiped)); err != nil {
			return false, err
		}
		if left, err := wipe(f.tx, f.o.o.Batch, f.over); err != nil || left {
			return false, err
		}
		ok = false
	}
	if !ok {
		if err := f.tx.Store(bucketMeta, "version", []byte(f.o.version())); err != nil {
			return false, err
		}
	}
	f.asOf = day(f.o.o.Now())
	last, err := f.number("asof")
	if err != nil {
		return false, err
	}
	// A clock that was put back makes nothing young again.
	f.asOf = max(f.asOf, last)
	if f.asOf != last {
		if err := f.tx.Store(bucketMeta, "asof", []byte(strconv.Itoa(f.asOf))); err != nil {
			return false, err
		}
	}
	if err := f.openCache(); err != nil {
		return false, err
	}
	return true, f.markDue()
}

func (f *folder) number(key string) (int, error) {
	b, ok, err := f.tx.Load(bucketMeta, key)
	if !ok || err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(string(b))
	if err != nil {
		return 0, nil // as if it had never been stored: it only saves work
	}
	return n, nil
}

// openCache drops what is cached when another process has written since.
func (f *folder) openCache() error {
	g, err := f.number("generation")
	if err != nil {
		return err
	}
	c := &f.o.cache
	if c.sessions == nil || c.generation != g || g == 0 || c.size > maxCached {
		*c = cache{sessions: map[string][]*record{}}
	}
	c.generation = g
	return nil
}

func (f *folder) close() error {
	if f.did == 0 {
		return nil
	}
	f.o.cache.generation++
	return f.tx.Store(bucketMeta, "generation", []byte(strconv.Itoa(f.o.cache.generation)))
}

func (f *folder) markDue() error {
	var due []string
	err := f.tx.EachKV(bucketDue, "", func(key string, _ []byte) bool {
		d, session, _ := strings.Cut(key, "\t")
		if n, err := strconv.Atoi(d); err != nil || n > f.asOf {
			return false
		}
		due = append(due, key, session)
		return true
	})
	for i := 0; i < len(due) && err == nil; i += 2 {
		if err = f.tx.Drop(bucketDue, due[i]); err == nil {
			err = f.mark("s" + due[i+1])
		}
	}
	return err
}

// mark puts something on the list of work.
func (f *folder) mark(what string) error { return f.tx.Store(bucketWork, what, nil) }

// cursors are how far a log's files were read, by their names.
func cursors(tx Tx, log Log) (map[string]event.Cursor, error) {
	prefix := sourceKey(log.Project, "")
	from := map[string]event.Cursor{}
	err := tx.EachKV(bucketCursor, prefix, func(key string, value []byte) bool {
		var c event.Cursor
		if json.Unmarshal(value, &c) == nil {
			from[key[len(prefix):]] = c
		}
		return true
	})
	return from, err
}

// takeIn reads what is new in a log; done is false when there is more.
func (f *folder) takeIn(ctx context.Context, log Log) (done bool, err error) {
	prefix := sourceKey(log.Project, "")
	from, err := cursors(f.tx, log)
	if err != nil {
		return false, err
	}
	moved := map[string]event.Cursor{}
	done = true
	for again := true; again; {
		again = false
		for t := range ahead(log, event.ReadFrom(log.Dir, maps.Clone(from)), prefix, f.o.o.Sweep) {
			item, err := &t.item, t.err
			var bad *event.LineError
			switch {
			case errors.Is(err, event.ErrChanged):
				// the records of the file as it was go, and it is read from its beginning
				if err := f.forgetFile(prefix + item.File); err != nil {
					return false, err
				}
				delete(from, item.File)
				f.report.Refolded = append(f.report.Refolded, item.File)
				again = true
			case errors.As(err, &bad):
				f.report.skip(err)
				moved[item.File] = item.Next
				f.did++
			case err != nil:
				f.report.skip(err) // a file that cannot be read keeps the others from nothing
			default:
				f.add(&t)
				moved[item.File] = item.Next
			}
			if f.did >= f.o.o.Batch || f.did > 0 && f.did%64 == 0 && f.over() || ctx.Err() != nil {
				done = false
				break
			}
		}
	}
	for file, c := range moved {
		b, err := json.Marshal(c)
		if err == nil {
			err = f.tx.Store(bucketCursor, prefix+file, b)
		}
		if err != nil {
			return false, err
		}
	}
	return done, nil
}

// add keeps an event's record for the end of the transaction.
func (f *folder) add(t *taken) {
	e := &t.item.Event
	f.did++
	f.report.Events++
	f.counts(e)
	if t.rec == nil {
		return
	}
	key, name := sessionKey(e)
	if f.chunks == nil {
		f.chunks = map[string][]*record{}
	}
	id := key + "\t" + name + "\t" + e.Client
	f.chunks[id] = append(f.chunks[id], t.rec)
}

// flush stores the records that were added.
func (f *folder) flush() error {
	for _, id := range slices.Sorted(maps.Keys(f.chunks)) {
		recs := f.chunks[id]
		key, rest, _ := strings.Cut(id, "\t")
		if err := f.tx.Store(bucketName, key, []byte(rest)); err != nil {
			return err
		}
		hours := map[string][]*record{}
		in := map[string]bool{}
		for _, r := range recs {
			h := hourKey(key, r.at)
			hours[h] = append(hours[h], r)
			in[r.src] = true
		}
		for h, list := range hours {
			b, _, err := f.tx.Load(bucketRecord, h)
			if err != nil {
				return err
			}
			b = bytes.Clone(b)
			for _, r := range list {
				b = appendRecord(b, r)
			}
			if err := f.tx.Store(bucketRecord, h, b); err != nil {
				return err
			}
		}
		for src := range in {
			if err := f.tx.Store(bucketIn, src+"\t"+key, nil); err != nil {
				return err
			}
		}
		if c := f.o.cache.sessions[key]; c != nil {
			f.o.cache.sessions[key] = append(c, recs...)
			f.o.cache.size += len(recs)
		}
		start := recs[0].at
		for _, r := range recs {
			start = min(start, r.at)
		}
		if err := f.tx.Store(bucketWork, "s"+key, []byte(sortKey(start))); err != nil {
			return err
		}
	}
	f.chunks = nil
	return nil
}

// Records are kept by the hour, so that a batch rewrites the end of a long
// session and not all of it.
func hourKey(session string, at int64) string {
	return fmt.Sprintf("%s/%08d", session, max(at, 0)/3600e9)
}

// records are a session's, in order.
func (f *folder) records(session string) ([]*record, error) {
	recs, ok := f.o.cache.sessions[session]
	if !ok {
		var bad error
		err := f.tx.EachKV(bucketRecord, session+"/", func(_ string, value []byte) bool {
			list, err := readRecords(value)
			bad = err
			recs = append(recs, list...)
			return err == nil
		})
		if err != nil {
			return nil, err
		}
		if bad != nil {
			return nil, bad
		}
	}
	slices.SortFunc(recs, order)
	f.o.cache.sessions[session] = recs
	if !ok {
		f.o.cache.size += len(recs)
	}
	return recs, nil
}

// forgetFile takes out the records of a log file.
func (f *folder) forgetFile(src string) error {
	if err := f.flush(); err != nil {
		return err
	}
	f.did++
	var sessions []string
	err := f.tx.EachKV(bucketIn, src+"\t", func(key string, _ []byte) bool {
		sessions = append(sessions, key[len(src)+1:])
		return true
	})
	for _, s := range sessions {
		if err == nil {
			err = f.forgetRecords(s, src)
		}
		if err == nil {
			err = f.tx.Drop(bucketIn, src+"\t"+s)
		}
	}
	if err == nil {
		err = f.tx.Drop(bucketCursor, src)
	}
	return err
}

func (f *folder) forgetRecords(session, src string) error {
	delete(f.o.cache.sessions, session)
	type chunk struct {
		key   string
		value []byte
	}
	var list []chunk
	err := f.tx.EachKV(bucketRecord, session+"/", func(key string, value []byte) bool {
		list = append(list, chunk{key, value})
		return true
	})
	if err != nil {
		return err
	}
	for _, c := range list {
		recs, err := readRecords(c.value)
		if err != nil {
			return err
		}
		var b []byte
		for _, r := range recs {
			if r.src != src {
				b = appendRecord(b, r)
			}
		}
		if len(b) == 0 {
			err = f.tx.Drop(bucketRecord, c.key)
		} else {
			err = f.tx.Store(bucketRecord, c.key, b)
		}
		if err != nil {
			return err
		}
	}
	return f.mark("s" + session)
}

// workBatch is how much of the list one transaction does: sessions or groups.
const workBatch = 1000

// work goes through the list; left says that there is more on it.
func (f *folder) work(ctx context.Context) (left bool, err error) {
	for n := 0; n < workBatch; {
		list, err := f.next()
		if err != nil {
			return false, err
		}
		if len(list) == 0 {
			return false, nil
		}
		for _, what := range list[:min(len(list), workBatch-n)] {
			if f.did > 0 && f.over() || ctx.Err() != nil {
				return true, nil
			}
			if err := f.tx.Drop(bucketWork, what); err != nil {
				return false, err
			}
			f.did++
			n++
			if what[0] == 's' {
				err = f.session(what[1:])
			} else {
				err = f.group(what[1:])
			}
			if err != nil {
				return false, err
			}
		}
	}
	return f.anyWork()
}

// next is what is to be done next: sessions before groups, and the older
// sessions first, so that what depends on earlier ones is right at once.
func (f *folder) next() ([]string, error) {
	type item struct {
		start string
		key   string
	}
	var list []item
	err := f.tx.EachKV(bucketWork, "", func(key string, value []byte) bool {
		if len(list) > 0 && list[0].key[0] != key[0] {
			return false
		}
		list = append(list, item{string(value), key})
		return len(list) < 50*workBatch
	})
	slices.SortFunc(list, func(a, b item) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.key, b.key)) })
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].key
	}
	return out, err
}

func (f *folder) anyWork() (bool, error) {
	any := false
	err := f.tx.EachKV(bucketWork, "", func(string, []byte) bool { any = true; return false })
	return any, err
}

// session works out a session again.
func (f *folder) session(key string) error {
	f.report.Sessions++
	recs, err := f.records(key)
	if err != nil {
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
	out := output{due: never}
	hidden := map[string]bool{}
	if len(recs) > 0 {
		out, err = compose(key, name, recs, ground{
			asOf: f.asOf, tiers: f.o.o.Tiers, earlier: f.earlier,
			usage: func(id string) (Usage, error) { return usageOf(f.tx, id) },
			gone: func(id string) (bool, error) {
				gone := f.gone.forgotten(id)
				if gone {
					hidden[id] = true
				}
				return gone, nil
			},
			retired: f.gone,
			hide:    func(id string) { hidden[id] = true },
		})
		if err != nil {
			return err
		}
	}
	if err := f.write("s"+key, out.docs, out.rows, out.due, hidden); err != nil {
		return err
	}
	if err := f.keepTold(key, out.told); err != nil {
		return err
	}
	if err := f.watch(key, recs, out.stats); err != nil {
		return err
	}
	switch {
	case out.stats != nil && out.stats.seen():
		return f.tx.Store(bucketStats, key, out.stats.encode())
	case len(recs) == 0:
		delete(f.o.cache.sessions, key)
		if err := f.tx.Drop(bucketName, key); err != nil {
			return err
		}
		fallthrough
	default:
		return f.tx.Drop(bucketStats, key)
	}
}

// write makes the index hold exactly this of a session (s+key) or group
// (t+key): what has not changed is not written again.
func (f *folder) write(owner string, docs []recall.Doc, rows []row, due int, hidden map[string]bool) error {
	var old made
	b, _, err := f.tx.Load(bucketMade, owner)
	if err == nil {
		err = old.decode(b)
	}
	if err != nil {
		return err
	}
	now := made{Docs: map[string]string{}, Rows: map[string]string{}, Due: due}
	for _, d := range docs {
		if err := f.writeDoc(owner, d, &old, &now); err != nil {
			return err
		}
	}
	for id := range old.Docs {
		if now.Docs[id] == "" {
			f.report.Deleted++
			if err := f.tx.Delete(id); err != nil {
				return err
			}
			if err := f.tx.Drop(bucketOwner, sign.Hash(id)); err != nil {
				return err
			}
		}
	}
	if err := f.writeRows(rows, &old, &now); err != nil {
		return err
	}
	if err := f.writeHidden(owner, hidden, &old, &now); err != nil {
		return err
	}
	if old.Due != now.Due && owner[0] == 's' {
		if old.Due != 0 && old.Due != never {
			if err := f.tx.Drop(bucketDue, dueKey(old.Due, owner[1:])); err != nil {
				return err
			}
		}
	}
	if now.Due != never && now.Due != 0 {
		if err := f.tx.Store(bucketDue, dueKey(now.Due, owner[1:]), nil); err != nil {
			return err
		}
	}
	if len(now.Docs)+len(now.Rows)+len(now.Hidden) == 0 && (now.Due == never || now.Due == 0) {
		return f.tx.Drop(bucketMade, owner)
	}
	if b, err = json.Marshal(now); err != nil {
		return err
	}
	return f.tx.Store(bucketMade, owner, b)
}

// writeHidden notes whose work has to be done again when something is not
// forgotten any more.
func (f *folder) writeHidden(owner string, hidden map[string]bool, old, now *made) error {
	for id := range hidden {
		now.Hidden = append(now.Hidden, sign.Hash(id))
	}
	slices.Sort(now.Hidden)
	for _, h := range now.Hidden {
		if !slices.Contains(old.Hidden, h) {
			if err := f.tx.Store(bucketHidden, h+"\t"+owner, nil); err != nil {
				return err
			}
		}
	}
	for _, h := range old.Hidden {
		if !slices.Contains(now.Hidden, h) {
			if err := f.tx.Drop(bucketHidden, h+"\t"+owner); err != nil {
				return err
			}
		}
	}
	return nil
}

func dueKey(day int, session string) string { return fmt.Sprintf("%08d\t%s", day, session) }

func (f *folder) writeDoc(owner string, d recall.Doc, old, now *made) error {
	d.Title, d.Text = f.o.o.Sweep(d.Title), f.o.o.Sweep(d.Text)
	b, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("document %s: %w", d.ID, err)
	}
	hash := sign.Hash(string(b))
	now.Docs[d.ID] = hash
	if old.Docs[d.ID] == hash {
		return nil
	}
	f.report.Docs++
	if err := f.tx.Put(d); err != nil {
		return err
	}
	if old.Docs[d.ID] == "" {
		return f.tx.Store(bucketOwner, sign.Hash(d.ID), []byte(owner))
	}
	return nil
}

func (f *folder) writeRows(rows []row, old, now *made) error {
	for _, r := range rows {
		key := r.key()
		hash := sign.Hash(string(r.value))
		now.Rows[key] = hash
		if old.Rows[key] == hash {
			continue
		}
		if err := f.tx.Store(bucketRow, key, r.value); err != nil {
			return err
		}
		if err := f.mark("t" + r.kind + "\t" + r.group); err != nil {
			return err
		}
		f.changed(r.kind, r.group, r.sort)
	}
	for key := range old.Rows {
		if now.Rows[key] != "" {
			continue
		}
		if err := f.tx.Drop(bucketRow, key); err != nil {
			return err
		}
		parts := strings.SplitN(key, "\t", 3)
		if err := f.mark("t" + parts[0] + "\t" + parts[1]); err != nil {
			return err
		}
		f.changed(parts[0], parts[1], parts[2])
	}
	return nil
}

// changed forgets what was read of rows that are other ones now.
func (f *folder) changed(kind, group, sort string) {
	if kind == rowGone {
		f.gone = nil
	}
	id := kind + "\t" + group
	if list := f.firsts[id]; len(list) < firstMost || sort <= list[len(list)-1] {
		delete(f.firsts, id)
	}
}

func (f *folder) readGone() error {
	if f.gone != nil {
		return nil
	}
	f.gone = retirements{}
	return f.tx.EachKV(bucketRow, rowGone+"\t", func(_ string, value []byte) bool {
		f.gone.add(value)
		return true
	})
}

// earlier counts the other sessions that had a row of that kind and group
// before, up to noveltyMost.
func (f *folder) earlier(kind, group string, at int64, session string) (int, error) {
	list, err := f.first(kind, group)
	before := sortKey(at, session)
	n := 0
	for _, sort := range list {
		if sort < before && sessionOfSort(sort) != session {
			n++
		}
	}
	return min(n, noveltyMost), err
}

// firstMost are as many sessions as earlier may have to know of, itself included.
const firstMost = noveltyMost + 1

// first are the sort keys of a kind's and group's rows, of each session the
// first one, up to firstMost sessions. Every failure asks for them, and only the
// group's first sessions change them.
func (f *folder) first(kind, group string) ([]string, error) {
	id := kind + "\t" + group
	if list, ok := f.firsts[id]; ok {
		return list, nil
	}
	list := []string{}
	seen := map[string]bool{}
	err := f.tx.EachKV(bucketRow, id+"\t", func(key string, _ []byte) bool {
		sort := key[len(id)+1:]
		if s := sessionOfSort(sort); !seen[s] {
			seen[s] = true
			list = append(list, sort)
		}
		return len(list) < firstMost
	})
	if err != nil {
		return nil, err
	}
	if f.firsts == nil {
		f.firsts = map[string][]string{}
	}
	f.firsts[id] = list
	return list, nil
}

// sessionOfSort is the session in a row's sort key, time|session|id.
func sessionOfSort(sort string) string {
	_, rest, _ := strings.Cut(sort, "|")
	s, _, _ := strings.Cut(rest, "|")
	return s
}

// usageOf is what the logs say became of an item.
func usageOf(tx Tx, id string) (Usage, error) {
	var u Usage
	var last int64
	err := tx.EachKV(bucketRow, rowUse+"\t"+sign.Hash(id)+"\t", func(_ string, value []byte) bool {
		var r useRow
		if json.Unmarshal(value, &r) != nil {
			return true
		}
		switch r.How {
		case "served":
			u.Served++
			return true
		case "mentioned":
			u.Mentioned++
		case "useful":
			u.Useful++
		case "useless":
			u.Useless++
		default:
			return true
		}
		if r.How != "useless" {
			last = max(last, r.At)
		}
		if len(u.Events) < maxEvidence {
			u.Events = append(u.Events, r.Event)
		}
		return true
	})
	if last > 0 {
		u.Last = timeOf(last)
	}
	return u, err
}
