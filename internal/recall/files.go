package recall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ncruces/go-sqlite3"

	"reprise/internal/durable"
	"reprise/internal/mdfile"
)

// place is a source with what is known of it. The maps are filled when a look
// needs them.
type place struct {
	key, project, dir string
	fixed             []EntryFile
	come              func() []EntryFile // that may come and go; nil = none
	entries           []EntryFile        // all of them, as of the last look

	files   map[string]file // nil = not read yet
	seen    int64           // data_version when it was read
	looked  time.Time       // when all files were last looked at; zero = never in this process
	cost    time.Duration   // of that look
	count   int             // files it found
	dirs    [2]int64        // dirTimes at that look
	behind  bool            // a look at all files is due
	looking bool            // a look in the background is under way
	stored  bool            // looked, cost and dirs were read from the database
}

// racy says that a directory may have changed after the look without showing
// it: its time was that of the moment.
func (p *place) racy() bool { return max(p.dirs[0], p.dirs[1]) > p.looked.UnixNano()-int64(racy) }

// cheap says that each search can afford to look at all files. A few files are
// few on a busy machine, too.
func (p *place) cheap() bool {
	return p.cost <= quick || p.count <= 200 && p.cost < 100*time.Millisecond
}

const entryPrefix = "entries/" // of the names of entry files in the index

func placesOf(o Options) []*place {
	first := &place{key: "", dir: o.MemoryDir, behind: true}
	out := []*place{first}
	for _, s := range o.Sources {
		if s.Project == "" && s.Dir == "" {
			first.fixed = append(first.fixed, s.Entries...)
			first.entries = first.fixed
			continue
		}
		out = append(out, &place{key: s.Project, project: s.Project, dir: s.Dir, fixed: s.Entries, entries: s.Entries, come: s.Come, behind: true})
	}
	return out
}

func (p *place) forget() {
	p.files, p.stored, p.looked, p.behind = nil, false, time.Time{}, true
}

// shown is how a file is named to people.
func (p *place) shown(name string) string {
	if p.project == "" {
		return name
	}
	return p.project + ":" + name
}

func fileKey(source, name string) string { return source + "\x00" + name }

func splitKey(k string) (source, name string) {
	source, name, _ = strings.Cut(k, "\x00")
	return source, name
}

// arrive sees which files of entries there are now.
func (p *place) arrive() {
	if p.come != nil {
		p.entries = slices.Concat(p.fixed, p.come())
	}
}

// lookAll lists a place's files with their hints.
func (p *place) lookAll() (map[string]hint, error) {
	hints := map[string]hint{}
	if p.dir != "" {
		var err error
		if hints, err = look(p.dir); err != nil {
			return nil, err
		}
	}
	for name := range hints {
		if p.ofEntries(name) {
			delete(hints, name)
		}
	}
	return hints, p.lookEntries(hints)
}

// ofEntries says that a file of the memory directory is one of entries: its
// documents are the entries, not its sections.
func (p *place) ofEntries(name string) bool {
	path := filepath.Join(p.dir, filepath.FromSlash(name))
	for _, e := range p.entries {
		if e.Path == path {
			return true
		}
	}
	return false
}

func (p *place) lookEntries(hints map[string]hint) error {
	for _, e := range p.entries {
		fi, err := os.Stat(e.Path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && fi.IsDir() {
			continue
		}
		if err != nil {
			return fmt.Errorf("look at memory: %w", err)
		}
		hints[entryPrefix+e.Name] = hintOf(fi)
	}
	return nil
}

func (p *place) entry(name string) (EntryFile, bool) {
	if n, ok := strings.CutPrefix(name, entryPrefix); ok {
		for _, e := range p.entries {
			if e.Name == n {
				return e, true
			}
		}
	}
	return EntryFile{}, false
}

// read returns the text of one of the place's files.
func (p *place) read(name string) ([]byte, error) {
	dir, base := p.dir, name
	if e, ok := p.entry(name); ok {
		dir, base = filepath.Split(e.Path)
	}
	root, err := durable.OpenRoot(filepath.Clean(dir))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return read(root, base)
}

// there says that a file exists. Who finds in the index what is not in a list of
// the files may have made the list before another process took the file in.
func (p *place) there(name string) bool {
	if e, ok := p.entry(name); ok {
		fi, err := os.Stat(e.Path)
		return err == nil && !fi.IsDir()
	}
	if p.dir == "" || p.ofEntries(name) {
		return false
	}
	_, gone, err := lookAt(p.dir, name)
	return err == nil && !gone
}

// known reads what the index knows of the place's files.
func (x *Index) known(p *place) error {
	if p.files != nil && p.seen == x.db.seen {
		return nil
	}
	files := map[string]file{}
	err := x.db.rows(`SELECT id, name, hash, size, mtime, ctime, ino, at FROM files WHERE source=?`, func(s *sqlite3.Stmt) {
		f := scanFile(s)
		if old, ok := p.files[s.ColumnText(1)]; ok && old.hash == f.hash && old.at > f.at {
			f.hint, f.at = old.hint, old.at // new times that were noted in memory only
		}
		files[s.ColumnText(1)] = f
	}, p.key)
	if err == nil {
		p.files, p.seen = files, x.db.seen
	}
	return err
}

func scanFile(s *sqlite3.Stmt) file {
	return file{id: s.ColumnInt64(0), hash: s.ColumnText(2), at: s.ColumnInt64(7),
		hint: hint{size: s.ColumnInt64(3), mtime: s.ColumnInt64(4), ctime: s.ColumnInt64(5), ino: s.ColumnInt64(6)}}
}

// remembered reads when the place was last looked at, by whichever process.
func (x *Index) remembered(p *place) error {
	if p.stored {
		return nil
	}
	err := x.db.rows(`SELECT looked, cost, dir1, dir2, files FROM sources WHERE key=?`, func(s *sqlite3.Stmt) {
		p.looked, p.cost = fromNano(s.ColumnInt64(0)), time.Duration(s.ColumnInt64(1))
		p.dirs, p.count = [2]int64{s.ColumnInt64(2), s.ColumnInt64(3)}, s.ColumnInt(4)
	}, p.key)
	p.stored = err == nil
	return err
}

// Refresh looks at every file of every source and brings the index up to date.
func (x *Index) Refresh(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.mended(ctx, func() error {
		if err := x.current(ctx); err != nil {
			return err
		}
		for _, p := range x.places {
			if err := x.lookAll(ctx, p); err != nil {
				return err
			}
		}
		return x.dropStrangers(ctx)
	})
}

// current opens the index and notices changes by others.
func (x *Index) current(ctx context.Context) error {
	if err := x.ready(ctx); err != nil {
		return err
	}
	old := x.db.c.SetInterrupt(ctx)
	defer x.db.c.SetInterrupt(old)
	_, err := x.db.foreign()
	return err
}

// dropStrangers removes what was indexed of sources that are no more.
func (x *Index) dropStrangers(ctx context.Context) error {
	keys := map[string]bool{}
	for _, p := range x.places {
		keys[p.key] = true
	}
	gone := map[string][]string{}
	err := x.db.rows(`SELECT source, name FROM files`, func(s *sqlite3.Stmt) {
		if k := s.ColumnText(0); !keys[k] {
			gone[k] = append(gone[k], s.ColumnText(1))
		}
	})
	for _, k := range sortedKeys(gone) {
		if err == nil {
			err = x.apply(ctx, &place{key: k, project: k, seen: -1}, nil, nil, gone[k])
		}
	}
	return err
}

// refresh brings the index up to date for a reader of a project's; all asks
// for a look at every file the first time in this process. Else it is done as
// the package comment says.
func (x *Index) refresh(ctx context.Context, project string, every, all bool) error {
	if err := x.current(ctx); err != nil {
		return err
	}
	touched := x.takeTouched()
	for _, p := range x.places {
		if !every && p.project != "" && p.project != project && len(touched[p.key]) == 0 {
			continue
		}
		if err := x.refreshPlace(ctx, p, touched[p.key], all); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) refreshPlace(ctx context.Context, p *place, touched []string, all bool) error {
	if err := x.remembered(p); err != nil {
		return err
	}
	dirs := dirTimes(p.dir)
	now := x.o.Now()
	moved := dirs != p.dirs || p.racy()
	if p.looked.IsZero() || p.cheap() || len(touched) == 0 && moved || all && p.behind {
		return x.lookAll(ctx, p)
	}
	hints := map[string]hint{}
	p.arrive()
	if err := p.lookEntries(hints); err != nil {
		return err
	}
	var dirty, gone []string
	for _, e := range p.entries {
		n := entryPrefix + e.Name
		f, known, err := x.fileOf(p, n)
		if err != nil {
			return err
		}
		if h, there := hints[n]; there && !(known && f.trusted(h)) {
			dirty = append(dirty, n)
		} else if !there && known {
			gone = append(gone, n)
		}
	}
	for _, n := range touched {
		if p.ofEntries(n) {
			continue // looked at above
		}
		h, missing, err := lookAt(p.dir, n)
		if err != nil {
			return fmt.Errorf("look at memory: %w", err)
		}
		if !missing {
			hints[n] = h
			dirty = append(dirty, n)
		} else if _, known, err := x.fileOf(p, n); err != nil {
			return err
		} else if known {
			gone = append(gone, n)
		}
	}
	if err := x.apply(ctx, p, hints, dirty, gone); err != nil {
		return err
	}
	// A process that only asks one question is gone before a look in the
	// background would be of use.
	lives := now.Sub(x.opened) > staleness
	if lives && (dirs != p.dirs || now.Sub(p.looked) > max(staleness, 20*p.cost)) { // at most a twentieth of a core
		x.lookBehind(ctx, p, dirs)
	}
	return nil
}

// fileOf is what the index knows of one file.
func (x *Index) fileOf(p *place, name string) (f file, known bool, err error) {
	if p.files != nil && p.seen == x.db.seen {
		f, known = p.files[name]
		return f, known, nil
	}
	err = x.db.rows(`SELECT id, name, hash, size, mtime, ctime, ino, at FROM files WHERE source=? AND name=?`, func(s *sqlite3.Stmt) { f, known = scanFile(s), true }, p.key, name)
	return f, known, err
}

// lookAll looks at every file of a place and applies what changed.
func (x *Index) lookAll(ctx context.Context, p *place) error {
	dirs := dirTimes(p.dir)
	start := x.o.Now()
	p.arrive()
	hints, err := p.lookAll()
	if err != nil {
		return err
	}
	if err := x.known(p); err != nil {
		return err
	}
	dirty, gone := x.compare(p, hints)
	was := *p
	p.cost, p.count, p.looked, p.dirs = x.o.Now().Sub(start), len(hints), start, dirs
	if err := x.apply(ctx, p, hints, dirty, gone); err != nil {
		p.looked, p.dirs = was.looked, was.dirs
		return err
	}
	p.behind = false
	// Where a look is dear, others are spared it; where it is not, the write is.
	if !p.cheap() && len(dirty)+len(gone) == 0 && (was.dirs != dirs || was.racy() || start.Sub(was.looked) > time.Minute) {
		return x.noteLook(ctx, p)
	}
	return nil
}

// noteLook stores when the place was looked at. That it cannot be stored is no
// reason to fail.
func (x *Index) noteLook(ctx context.Context, p *place) error {
	if x.db.path == "" {
		return nil
	}
	err := x.writing(ctx, func(w *writer) error { return w.look(p) })
	if err != nil && (ctx.Err() != nil || unwritable(err)) {
		return nil
	}
	return err
}

func (w *writer) look(p *place) error {
	return w.d.run(`INSERT OR REPLACE INTO sources VALUES(?,?,?,?,?,?)`, p.key, toNano(p.looked), int64(p.cost), p.dirs[0], p.dirs[1], p.count)
}

func (x *Index) compare(p *place, hints map[string]hint) (dirty, gone []string) {
	for _, n := range sortedKeys(hints) {
		f, ok := p.files[n]
		if skipped := x.skipped[fileKey(p.key, n)] != ""; !ok || skipped || !f.trusted(hints[n]) {
			dirty = append(dirty, n)
		}
	}
	for _, n := range sortedKeys(p.files) {
		if _, ok := hints[n]; !ok {
			gone = append(gone, n)
		}
	}
	return dirty, gone
}

// lookBehind looks at every file without holding up searches; the next refresh
// applies what it found.
func (x *Index) lookBehind(ctx context.Context, p *place, dirs [2]int64) {
	if p.looking {
		return
	}
	p.looking = true
	start := x.o.Now()
	p.arrive()
	seen := *p // others go on with p meanwhile
	x.work.Go(func() {
		hints, err := seen.lookAll()
		x.mu.Lock()
		defer x.mu.Unlock()
		p.looking = false
		if err != nil || x.db == nil || x.known(p) != nil {
			p.looked = time.Time{}
			return
		}
		p.looked, p.dirs = start, dirs
		dirty, gone := x.compare(p, hints)
		if len(dirty)+len(gone) == 0 {
			return
		}
		if err := x.apply(context.WithoutCancel(ctx), p, hints, dirty, gone); err != nil {
			p.looked = time.Time{} // the next search meets the error itself
		}
	})
}

// manyRestats is how many files with new times and old content are worth a
// write of the index, and how many bytes of them: until then the times are noted in
// memory only, and the next process reads the files again.
const (
	manyRestats  = 256
	manyRestated = 256 << 10
)

// change is what a write does: names anew, names out, and new times.
type change struct {
	dirty, gone, restat []string
	restated            int // bytes of what has new times only
}

func (c change) small() bool {
	return len(c.dirty)+len(c.gone) == 0 && len(c.restat) <= manyRestats && c.restated <= manyRestated
}

// apply brings files into the open index.
func (x *Index) apply(ctx context.Context, p *place, hints map[string]hint, dirty, gone []string) error {
	if len(dirty)+len(gone) == 0 {
		return nil
	}
	// Most of what looks changed only has new times. That needs no write.
	ch, err := x.settle(p, hints, dirty, gone)
	if err != nil || ch.small() {
		return err
	}
	end, hurry := ctx.Deadline()
	if !hurry {
		return x.write(ctx, p, hints, ch)
	}
	// A reader with a deadline gives half of its time to what would be good to
	// have, and then answers from what is there.
	wait, cancel := context.WithTimeout(ctx, max(end.Sub(x.o.Now())/2, time.Millisecond))
	defer cancel()
	err = x.write(wait, p, hints, ch)
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		p.looked = time.Time{} // to look again next time
		return nil
	}
	return err
}

func (x *Index) write(ctx context.Context, p *place, hints map[string]hint, ch change) error {
	p.files = nil // read again, whatever comes of it
	err := x.writing(ctx, func(w *writer) error {
		if left, err := x.put(ctx, w, p, hints, ch); err != nil {
			return err
		} else if left {
			p.looked = time.Time{} // to go on next time
			return nil
		}
		return w.look(p)
	})
	if err != nil {
		return fmt.Errorf("update index: %w", err)
	}
	_, err = x.db.foreign()
	return err
}

// settle reads the files that look changed and gives those that are, and those
// that only have new times.
func (x *Index) settle(p *place, hints map[string]hint, names, gone []string) (ch change, err error) {
	ch.gone = gone
	for _, n := range names {
		f, ok, err := x.fileOf(p, n)
		if err != nil {
			return ch, err
		}
		if !ok {
			if _, known := x.skipped[fileKey(p.key, n)]; known { // still unreadable?
				if _, err := p.read(n); err != nil {
					continue
				}
			}
			ch.dirty = append(ch.dirty, n)
			continue
		}
		at := x.o.Now().UnixNano()
		data, err := p.read(n)
		if err != nil || hashOf(data) != f.hash {
			ch.dirty = append(ch.dirty, n)
			continue
		}
		f.hint, f.at = hints[n], at
		if p.files != nil {
			p.files[n] = f
		}
		ch.restat = append(ch.restat, n)
		ch.restated += len(data)
	}
	if x.db.path == "" {
		ch.restat, ch.restated = nil, 0
	}
	return ch, nil
}

// put writes a change within a transaction, or as much of it as fits half of the
// time that ctx leaves, so that what was done is kept: a large memory that is new to
// the index, as all of it is after a new version, takes longer than a client waits.
// The rest, if left, is done the next time, and so is what could not be read for a
// reason of the moment.
func (x *Index) put(ctx context.Context, w *writer, p *place, hints map[string]hint, ch change) (left bool, err error) {
	until := time.Time{}
	if end, hurry := ctx.Deadline(); hurry {
		if now := x.o.Now(); end.After(now) {
			until = now.Add(end.Sub(now) / 2)
		}
	}
	for _, n := range ch.gone {
		if p.there(n) {
			continue
		}
		if err := w.putFile(p.key, n, file{}, nil); err != nil {
			return false, err
		}
		if err := w.damaged(p.key, n, nil); err != nil {
			return false, err
		}
	}
	for _, n := range ch.restat {
		h := hints[n]
		err := w.d.run(`UPDATE files SET size=?, mtime=?, ctime=?, ino=?, at=? WHERE source=? AND name=?`, h.size, h.mtime, h.ctime, h.ino, x.o.Now().UnixNano(), p.key, n)
		if err != nil {
			return false, err
		}
	}
	for i, n := range ch.dirty {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if i > 0 && !until.IsZero() && x.o.Now().After(until) {
			return true, nil
		}
		f, docs, damage, err := x.readDocs(p, n, hints[n])
		if err != nil {
			left = true
			continue
		}
		if err := w.putFile(p.key, n, f, docs); err != nil {
			return false, err
		}
		if err := w.damaged(p.key, n, damage); err != nil {
			return false, err
		}
	}
	return left, nil
}

// readDocs makes documents of a file, of as much of it as can be read, and says
// what cannot. One that is gone or cannot be read at all has none, and a file
// without a hash. An error is one of the moment: it says nothing about the file, of which
// the index so keeps what it knows until it can be read.
func (x *Index) readDocs(p *place, name string, h hint) (file, []*entry, []mdfile.Damage, error) {
	at := x.o.Now().UnixNano()
	data, err := p.read(name)
	var docs []*entry
	var damage []mdfile.Damage
	if err == nil {
		_, damage = mdfile.Mended(data)
		if e, ok := p.entry(name); ok {
			docs, err = x.entryDocs(p, e, data)
		} else if x.o.Skip == nil || !x.o.Skip(name, data) {
			docs, err = x.sectionDocs(p, name, data)
		}
	}
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return file{}, nil, nil, nil
		}
		if ofMoment(err) {
			return file{}, nil, nil, err
		}
		x.skipped[fileKey(p.key, name)] = err.Error()
		return file{}, nil, []mdfile.Damage{{Problem: err.Error()}}, nil
	}
	delete(x.skipped, fileKey(p.key, name))
	return file{hash: hashOf(data), hint: h, at: at}, docs, damage, nil
}

// ofMoment reports whether a file could not be read for what the machine lacked then.
func ofMoment(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// putFile makes a file's documents those given; a file without a hash goes.
func (w *writer) putFile(source, name string, f file, docs []*entry) error {
	id, err := w.d.number(`SELECT id FROM files WHERE source=? AND name=?`, source, name)
	if err != nil {
		return err
	}
	old := map[string]bool{}
	if id != 0 {
		if err := w.d.rows(`SELECT id FROM docs WHERE file=? AND file<>0`, func(s *sqlite3.Stmt) { old[s.ColumnText(0)] = true }, id); err != nil {
			return err
		}
	}
	w.dirty = true
	switch {
	case f.hash == "" && id == 0:
		return nil
	case f.hash == "":
		err = w.d.run(`DELETE FROM files WHERE id=?`, id)
	case id == 0:
		err = w.d.run(`INSERT INTO files(source, name, hash, size, mtime, ctime, ino, at) VALUES(?,?,?,?,?,?,?,?)`, source, name, f.hash, f.size, f.mtime, f.ctime, f.ino, f.at)
		id = w.d.c.LastInsertRowID()
	default:
		err = w.d.run(`UPDATE files SET hash=?, size=?, mtime=?, ctime=?, ino=?, at=? WHERE id=?`, f.hash, f.size, f.mtime, f.ctime, f.ino, f.at, id)
	}
	if err != nil {
		return err
	}
	for _, d := range docs {
		delete(old, d.ID)
	}
	for _, gone := range sortedKeys(old) {
		if err := w.delete(gone); err != nil {
			return err
		}
	}
	for _, d := range docs {
		d.file = id
		if err := w.put(d); err != nil {
			return err
		}
	}
	return nil
}

// fillFiles puts all files of all places into an empty database, or as many as
// there is time for; left says that there are more, which are as good as new.
func (x *Index) fillFiles(ctx context.Context, w *writer) (left bool, err error) {
	for _, p := range x.places {
		p.forget()
		dirs := dirTimes(p.dir)
		start := x.o.Now()
		p.arrive()
		hints, err := p.lookAll()
		if err != nil {
			return false, err
		}
		more := left
		if !left {
			if more, err = x.put(ctx, w, p, hints, change{dirty: sortedKeys(hints)}); err != nil {
				return false, err
			}
		}
		if left = left || more; more {
			continue
		}
		p.cost, p.count, p.looked, p.dirs, p.stored, p.behind = x.o.Now().Sub(start), len(hints), start, dirs, true, false
		if err := w.look(p); err != nil {
			return false, err
		}
	}
	return left, nil
}
