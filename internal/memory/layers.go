package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/clip"
)

// Scopes of a layer.
const (
	ScopeProject = "project"
	ScopeGlobal  = "global"
)

// Layer is the memory of one scope.
type Layer struct {
	Project string   // empty = global
	Store   *Store   // core, index and blocks
	Entries *Entries // a project's files of entries; nil = they are in Store's blocks
}

// Scope is the layer's scope in a word.
func (l Layer) Scope() string {
	if l.Project == "" {
		return ScopeGlobal
	}
	return ScopeProject
}

// Layers are the memories that are read from one place, the narrowest first: that
// of the project, if there is one, then the global one. What is written goes to
// the global one; a project's own is written by hand, and its entries through
// [Entries].
type Layers []Layer

// in are the layers of a scope, of all where it is empty.
func (ls Layers) in(scope string) ([]Layer, error) {
	switch scope {
	case "":
		return ls, nil
	case ScopeProject, ScopeGlobal:
	default:
		return nil, fmt.Errorf("%w: the scope %q is neither project nor global", ErrName, clip.Runes(scope, 40))
	}
	var out []Layer
	for _, l := range ls {
		if l.Scope() == scope {
			out = append(out, l)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: there is no project here", ErrNotFound)
	}
	return out, nil
}

// Read is [Store.Read] in the narrowest scope that has the file, or in the one
// that is named. A core.md or index.md that nobody has written anything into is
// none where another scope has one. The answer says which scope it is of, and
// which others have a file of that name.
func (ls Layers) Read(ctx context.Context, scope, name string, offset, limit int) (Doc, bool, error) {
	list, err := ls.in(scope)
	if err != nil {
		return Doc{}, false, fmt.Errorf("read %s: %w", clip.Runes(name, 80), err)
	}
	var doc Doc
	var more, found bool
	var missing error
	for _, l := range list {
		d, m, err := l.read(ctx, name, offset, limit)
		if errors.Is(err, ErrNotFound) {
			missing = err
			continue
		}
		if err != nil {
			return Doc{}, false, err
		}
		switch {
		case !found || doc.isSeed():
			if found {
				d.Also = []string{doc.Scope}
			}
			doc, more, found = d, m, true
		default:
			doc.Also = append(doc.Also, d.Scope)
		}
	}
	if !found {
		return Doc{}, false, missing
	}
	return doc, more, nil
}

func (l Layer) read(ctx context.Context, name string, offset, limit int) (doc Doc, more bool, err error) {
	doc, more, err = l.Store.Read(ctx, name, offset, limit)
	if errors.Is(err, ErrNotFound) && l.Entries != nil {
		if file, ok := l.Entries.named(name); ok {
			doc, more, err = l.Entries.Read(ctx, file, offset, limit)
		}
	}
	doc.Scope, doc.Project = l.Scope(), l.Project
	return doc, more, err
}

// named is the file of entries that a name means.
func (e *Entries) named(name string) (string, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	if !strings.HasSuffix(name, ".md") {
		name += ".md"
	}
	return name, slices.Contains(e.Files(), name)
}

// Read is [Store.Read] for a file of entries: without what is of others alone.
func (e *Entries) Read(ctx context.Context, file string, offset, limit int) (Doc, bool, error) {
	if !slices.Contains(e.Files(), file) {
		return Doc{}, false, fmt.Errorf("read entries: %w: %q holds none", ErrName, clip.Runes(file, 80))
	}
	d, err := e.s.open()
	if err != nil {
		return Doc{}, false, err
	}
	defer d.Close()
	doc, err := e.s.doc(d, file)
	if err != nil {
		return Doc{}, false, err
	}
	return doc.page(offset, limit, ctx.Err())
}

func (d Doc) page(offset, limit int, err error) (Doc, bool, error) {
	if limit == 0 {
		limit = DefaultReadRows
	}
	text, more := cutLines(d.Content, offset, limit)
	d.Content = text
	return d, more, err
}

// List are the blocks and files of entries of all scopes, or of the one that is
// named; the narrowest scope first. Shadowed ones are read only by their scope.
func (ls Layers) List(ctx context.Context, scope string) ([]BlockInfo, error) {
	list, err := ls.in(scope)
	if err != nil {
		return nil, fmt.Errorf("list blocks: %w", err)
	}
	var out []BlockInfo
	seen := map[string]bool{}
	var missing error
	found := false
	for _, l := range list {
		blocks, err := l.Store.List(ctx)
		switch {
		case errors.Is(err, ErrNotFound):
			missing = err
		case err != nil:
			return nil, err
		default:
			found = true
		}
		if l.Entries != nil {
			more, err := l.Entries.infos(ctx)
			if err != nil {
				return nil, err
			}
			found = found || len(more) > 0
			blocks = append(blocks, more...)
		}
		here := map[string]bool{}
		for _, b := range blocks {
			low := strings.ToLower(b.Name)
			b.Scope, b.Project, b.Shadowed = l.Scope(), l.Project, seen[low] || here[low]
			here[low] = true
			out = append(out, b)
		}
		for low := range here {
			seen[low] = true
		}
	}
	if !found {
		return nil, missing
	}
	return out, nil
}

// infos are the files of entries that are there.
func (e *Entries) infos(ctx context.Context) ([]BlockInfo, error) {
	d, err := e.s.open()
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var out []BlockInfo
	for _, name := range e.Files() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		doc, err := e.s.doc(d, name)
		switch {
		case errors.Is(err, ErrNotFound):
			continue
		case err != nil:
			out = append(out, BlockInfo{Name: name, Summary: "(unreadable: " + clip.Runes(err.Error(), 120) + ")"})
		default:
			out = append(out, BlockInfo{Name: name, Summary: entriesSummary(name), Updated: doc.Updated, Tokens: doc.Tokens})
		}
	}
	return out, nil
}

func entriesSummary(name string) string {
	switch name {
	case decisionsFile:
		return "Entries: decisions, with alternatives and reasons"
	case changelogFile:
		return "Entries: what was changed"
	}
	return "Entries: what was learnt in this project"
}

// Global is the memory that is written to.
func (ls Layers) Global() *Store { return ls[len(ls)-1].Store }

// Dir is the directory of the global memory.
func (ls Layers) Dir() string { return ls.Global().Dir() }

// Ensure is [Store.Ensure] of the global memory.
func (ls Layers) Ensure(ctx context.Context) error { return ls.Global().Ensure(ctx) }

// Create is [Store.Create] in the global memory.
func (ls Layers) Create(ctx context.Context, b CreateBlock) (Written, error) {
	return ls.Global().Create(ctx, b)
}

// AppendEpisode is [Store.AppendEpisode] in the global memory.
func (ls Layers) AppendEpisode(ctx context.Context, e Episode) (Written, error) {
	return ls.Global().AppendEpisode(ctx, e)
}

// AppendFile is [Store.AppendFile] in the global memory.
func (ls Layers) AppendFile(ctx context.Context, path, text string) (int, error) {
	return ls.Global().AppendFile(ctx, path, text)
}

// Update is [Store.Update] in the global memory. Where a reader is shown a
// narrower scope's file of that name, the new text may have been made from that
// one: replacing the global one as a whole then needs the global one's hash.
func (ls Layers) Update(ctx context.Context, u UpdateBlock) (Written, error) {
	own := ""
	for _, l := range ls[:len(ls)-1] {
		doc, _, err := l.read(ctx, u.Name, 0, 0)
		if err != nil || doc.isSeed() {
			continue // it is not what a reader is shown
		}
		own = fmt.Sprintf("project %s has it, as a file that is yours to edit: %s", l.Project, filepath.Join(l.Store.Dir(), l.dirOf(doc.Name), doc.Name))
		if u.IfHash != "" && sameHash(u.IfHash, doc.Hash) || u.IfHash == "" && u.Content != "" {
			return Written{}, fmt.Errorf("update %s: %w: project %s has a %s of its own, which is the one that reading shows, and this writes the global one; read that with the scope global and give its hash",
				clip.Runes(u.Name, 80), ErrStale, l.Project, doc.Name)
		}
	}
	w, err := ls.Global().Update(ctx, u)
	if errors.Is(err, ErrNotFound) && own != "" {
		err = fmt.Errorf("update %s: %w: the global memory has none of that name; %s", clip.Runes(u.Name, 80), ErrNotFound, own)
	}
	return w, err
}

// dirOf is the directory of a file of a memory, below the memory's.
func (l Layer) dirOf(name string) string {
	if name == coreFile || name == indexFile {
		return ""
	}
	return blocksDir
}

// Check is [Store.Check] of every layer, the global one first, a project's entries
// with its memory. A scope that has neither has no report; when none has, that is the
// error.
func (ls Layers) Check(ctx context.Context) ([]Report, error) {
	var out []Report
	var missing error
	for i := len(ls) - 1; i >= 0; i-- {
		l := ls[i]
		r, err := l.Store.Check(ctx)
		switch {
		case errors.Is(err, ErrNotFound):
			missing = cmp.Or(missing, err)
		case err != nil:
			return out, err
		}
		r.Scope, r.Project = l.Scope(), l.Project
		there := err == nil
		if l.Entries != nil && l.Entries.Exists() {
			there = true
			problems, err := l.Entries.Problems(ctx)
			if err != nil {
				return out, err
			}
			for _, p := range problems {
				r.Findings = append(r.Findings, p.finding())
			}
		}
		if there {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return nil, missing
	}
	return out, nil
}

func (p EntryProblem) finding() Finding {
	if p.ID == "" {
		return Finding{Level: LevelError, Code: "text.damaged", File: p.File, Line: p.Line, Problem: p.Problem, Remedy: damagedRemedy}
	}
	return Finding{Level: LevelError, Code: "entries.frontmatter", File: p.File, Line: p.Line, Problem: "entry " + p.ID + ": " + p.Problem,
		Remedy: "mend it in an editor; the entries around it are read"}
}

const damagedRemedy = "mend it in an editor; until then the rest is served, and only entries and appends are written to it"
