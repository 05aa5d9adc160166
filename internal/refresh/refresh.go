package refresh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/durable"
)

// Item is what is removed as one: a file, a directory, or a transcript with the
// directory of the same name.
type Item struct {
	Client string    `json:"client"`
	What   string    `json:"what"`
	Paths  []string  `json:"paths"`
	Files  int       `json:"files"`
	Bytes  int64     `json:"bytes"`
	Newest time.Time `json:"newest"`

	area Area
	root string   // the client's directory, without links
	rel  []string // of Paths, below root
}

// Kept is what was old enough and stays all the same.
type Kept struct {
	Client string `json:"client"`
	Path   string `json:"path"`
	Why    string `json:"why"`
}

// Report is what would be removed, or was.
type Report struct {
	Items []Item `json:"items"`
	Kept  []Kept `json:"kept"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
	// Problems are directories and files that could not be looked at or removed.
	Problems []string `json:"problems"`
}

func (r *Report) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// Options of a cleaning.
type Options struct {
	Places []Place
	// Older is how long ago the last write of a file must be; what is less than
	// [Margin] counts as that.
	Older time.Duration
	Live  []Live
	// Sessions are ids of sessions that are known to run.
	Sessions []string
	Now      func() time.Time
	Disk     durable.Disk
}

func (o Options) limit() time.Time { return o.Now().Add(-max(o.Older, Margin)) }

// Scan says what would be removed. A directory that is not there is no problem.
func Scan(ctx context.Context, o Options) (Report, error) {
	var r Report
	for _, p := range o.Places {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		o.scanPlace(&r, p)
	}
	for _, it := range r.Items {
		r.Files, r.Bytes = r.Files+it.Files, r.Bytes+it.Bytes
	}
	return r, nil
}

func (o Options) scanPlace(r *Report, p Place) {
	dir, err := filepath.EvalSymlinks(p.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		r.problem("%s: %v", p.Dir, err)
		return
	}
	root, err := durable.OpenRoot(dir)
	if err != nil {
		r.problem("%s: %v", p.Dir, err)
		return
	}
	defer root.Close()
	w := walker{fs: root.FS(), r: r, dir: dir}
	inUse := w.installed(p.Client)
	for _, a := range p.Areas {
		var found []string
		if a.Temp {
			found = w.temps()
		} else {
			found = w.match(strings.Split(a.Glob, "/"))
		}
		for _, group := range together(found, a) {
			o.consider(&w, p.Client, a, group, inUse)
		}
	}
}

// consider puts a group among the items, or among what is kept, or passes it over
// because it is young.
func (o Options) consider(w *walker, client string, a Area, group []string, inUse string) {
	it := Item{Client: client, What: a.What, area: a, root: w.dir, rel: group}
	why := ""
	for _, name := range group {
		it.Paths = append(it.Paths, filepath.Join(w.dir, filepath.FromSlash(name)))
		switch {
		case protected(path.Base(name)) && !a.Copies:
			why = "protected"
		case inUse != "" && strings.Contains(name, "plugins/cache/") && (inUse == unreadable || mentions(inUse, it.Paths[len(it.Paths)-1])):
			why = "a version that is installed"
		}
		if err := w.measure(name, &it); err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // gone meanwhile is no problem
				w.r.problem("%v", err)
			}
			return
		}
		if held := w.protectedWithin; held != "" && !a.Copies {
			why = "it holds " + held
		}
	}
	if !it.Newest.Before(o.limit()) {
		return
	}
	if why == "" {
		for _, name := range group {
			why = cmp.Or(why, keeps(o.Live, o.Sessions, client, a, name, it.Newest))
		}
	}
	for _, name := range group {
		if err := durable.CheckName(name); err != nil && why == "" {
			why = "its name cannot be handled"
		}
	}
	if why != "" {
		w.r.Kept = append(w.r.Kept, Kept{client, it.Paths[0], why})
		return
	}
	w.r.Items = append(w.r.Items, it)
}

// together groups a session's transcript with its directory: one does not go
// without the other.
func together(found []string, a Area) [][]string {
	if !a.Session {
		out := make([][]string, len(found))
		for i, f := range found {
			out[i] = []string{f}
		}
		return out
	}
	at := map[string]int{}
	var out [][]string
	for _, f := range found {
		stem := strings.TrimSuffix(f, path.Ext(f))
		if i, ok := at[stem]; ok {
			out[i] = append(out[i], f)
			continue
		}
		at[stem] = len(out)
		out = append(out, []string{f})
	}
	// The transcript last: where the removal is cut off, it says what is left.
	for _, g := range out {
		slices.SortFunc(g, func(a, b string) int { return len(a) - len(b) })
	}
	return out
}

// walker looks through one client's directory. Links are seen as links.
type walker struct {
	fs  fs.FS
	r   *Report
	dir string
	// protectedWithin is a protected name that the last measuring met.
	protectedWithin string
}

// match lists what a pattern of names leads to, through real directories only.
func (w *walker) match(parts []string) []string {
	level := []string{"."}
	for i, part := range parts {
		var next []string
		for _, dir := range level {
			if part != "*" {
				if info, err := fs.Lstat(w.fs, path.Join(dir, part)); err == nil && info.IsDir() {
					next = append(next, path.Join(dir, part))
				}
				continue
			}
			list, err := fs.ReadDir(w.fs, dir)
			if err != nil {
				if !errors.Is(err, fs.ErrNotExist) {
					w.r.problem("%s: %v", filepath.Join(w.dir, filepath.FromSlash(dir)), err)
				}
				continue
			}
			for _, e := range list {
				if e.IsDir() || i == len(parts)-1 {
					next = append(next, path.Join(dir, e.Name()))
				}
			}
		}
		level = next
	}
	return level
}

// temps are the temporary files that reprise's own writers left. Working trees and
// what agents made are not looked through: a name there is somebody else's.
func (w *walker) temps() []string {
	var out []string
	err := fs.WalkDir(w.fs, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				w.r.problem("%s: %v", filepath.Join(w.dir, filepath.FromSlash(name)), err)
			}
			return skipIf(d)
		}
		if d.IsDir() {
			if d.Name() == "workspaces" || d.Name() == "runs" || d.Name() == "verify" {
				return fs.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() && durable.IsTemp(d.Name()) {
			out = append(out, name)
		}
		return nil
	})
	if err != nil {
		w.r.problem("%s: %v", w.dir, err)
	}
	return out
}

func skipIf(d fs.DirEntry) error {
	if d != nil && d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// measure adds the size of a file or tree to an item. Of a directory the times of
// its files count: its own changes with each removal in it.
func (w *walker) measure(name string, it *Item) error {
	w.protectedWithin = ""
	files := 0
	var own time.Time
	// WalkDir would follow a link at its very beginning.
	if info, err := fs.Lstat(w.fs, name); err != nil || !info.IsDir() {
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(w.dir, filepath.FromSlash(name)), err)
		}
		it.Files++
		if info.Mode().IsRegular() {
			it.Bytes += info.Size()
		}
		if info.ModTime().After(it.Newest) {
			it.Newest = info.ModTime()
		}
		return nil
	}
	err := fs.WalkDir(w.fs, name, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w; what holds it is left alone", filepath.Join(w.dir, filepath.FromSlash(at)), err)
		}
		if at != name && protected(d.Name()) {
			w.protectedWithin = d.Name()
		}
		info, err := d.Info()
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(w.dir, filepath.FromSlash(at)), err)
		}
		if d.IsDir() {
			if info.ModTime().After(own) {
				own = info.ModTime()
			}
			return nil
		}
		files++
		it.Files++
		if info.Mode().IsRegular() {
			it.Bytes += info.Size()
		}
		if info.ModTime().After(it.Newest) {
			it.Newest = info.ModTime()
		}
		return nil
	})
	if files == 0 && own.After(it.Newest) {
		it.Newest = own
	}
	return err
}

// unreadable stands for a list of installed plugins that is there and cannot be read.
const unreadable = "\x00"

// installed is the text in which Claude Code notes where the plugins are that are in
// use: what it names must stay, in whatever form it does.
func (w *walker) installed(client string) string {
	if client != "claude-code" {
		return ""
	}
	const name = "plugins/installed_plugins.json"
	var data []byte
	info, err := fs.Stat(w.fs, name)
	if err == nil && !info.Mode().IsRegular() { // a pipe would be waited for
		err = durable.ErrNotRegular
	}
	if err == nil {
		data, err = fs.ReadFile(w.fs, name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		w.r.problem("%s: %v; all versions of plugins are left", filepath.Join(w.dir, "plugins", "installed_plugins.json"), err)
		return unreadable
	}
	return string(data)
}

// mentions reports whether a JSON text names a path, or something below it.
func mentions(text, path string) bool {
	plain := strings.ReplaceAll(text, `\\`, `\`)
	for _, end := range []string{`"`, "/", `\`} {
		if strings.Contains(plain, path+end) {
			return true
		}
	}
	// The client may know its directory by another name, such as a link.
	if _, below, ok := strings.Cut(filepath.ToSlash(path), "/plugins/cache/"); ok {
		return strings.Contains(filepath.ToSlash(plain), "/plugins/cache/"+below+`"`)
	}
	return false
}

// Clean removes what a scan found, each item after another look at it: what was
// written since, or is in the way of a session that began since, stays. It goes on
// past what cannot be removed, and says so in the report.
func Clean(ctx context.Context, o Options, found Report) (Report, error) {
	done := Report{Kept: found.Kept, Problems: slices.Clone(found.Problems)}
	for _, it := range found.Items {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		removed, err := o.remove(it, &done)
		if err != nil {
			done.problem("%s: %v", it.Paths[0], err)
		}
		if removed {
			done.Items = append(done.Items, it)
			done.Files, done.Bytes = done.Files+it.Files, done.Bytes+it.Bytes
		}
	}
	o.emptied(done.Items)
	return done, nil
}

func (o Options) remove(it Item, done *Report) (bool, error) {
	dir, err := o.Disk.OpenDir(it.root)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	root, err := durable.OpenRoot(it.root)
	if err != nil {
		return false, err
	}
	defer root.Close()
	w := walker{fs: root.FS(), r: &Report{}, dir: it.root}
	again := Item{}
	for _, name := range it.rel {
		if err := w.plain(name); err != nil {
			return false, err
		}
		if err := w.measure(name, &again); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return false, nil
			}
			return false, err
		}
		why := ""
		if w.protectedWithin != "" && !it.area.Copies {
			why = "it holds " + w.protectedWithin
		} else if !again.Newest.Before(o.limit()) {
			why = "written meanwhile"
		}
		why = cmp.Or(why, keeps(o.Live, o.Sessions, it.Client, it.area, name, again.Newest))
		if why != "" {
			done.Kept = append(done.Kept, Kept{it.Client, it.Paths[0], why})
			return false, nil
		}
	}
	for _, name := range it.rel {
		info, err := dir.Lstat(name)
		if err == nil && info.IsDir() {
			err = dir.RemoveAll(name)
		} else if err == nil {
			err = dir.Remove(name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return true, nil
}

// plain makes sure that what leads to a name are directories and no links, so that
// what is removed is what was looked at.
func (w *walker) plain(name string) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		info, err := fs.Lstat(w.fs, dir)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is no directory any more; nothing below it was removed", filepath.Join(w.dir, filepath.FromSlash(dir)))
		}
	}
	return nil
}

// emptied removes the directories that hold nothing any more, up to those that the
// client has made for itself. Whether one is empty the system decides: removing
// another fails, and that is what should happen.
func (o Options) emptied(items []Item) {
	seen := map[string]bool{}
	for _, it := range items {
		dir, err := o.Disk.OpenDir(it.root)
		if err != nil {
			continue
		}
		top := strings.Count(it.area.Glob[:max(0, strings.IndexByte(it.area.Glob, '*'))], "/")
		for _, name := range it.rel {
			for d := path.Dir(name); strings.Count(d, "/") >= top && d != "." && !seen[it.root+d]; d = path.Dir(d) {
				list, err := dir.ReadDir(d)
				if err != nil || len(list) > 0 || it.area.Temp {
					break
				}
				if err := dir.Remove(d); err != nil {
					break
				}
				seen[it.root+d] = true
			}
		}
		dir.Close()
	}
}
