package memory

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reprise/internal/git"
	"reprise/internal/mdfile"
)

// Passage names a part of a section of a memory file.
type Passage struct {
	File     string // core.md, or a block as "blocks/<name>.md"
	Headings string // headings of the section, from the outermost, joined by " > "; empty = before the first
	Text     string // what of the section's text is meant, exactly as it stands; empty = all of it
}

// Section returns the text of a section, without its heading, and how many
// sections have these headings.
func (s *Store) Section(ctx context.Context, file, headings string) (text string, n int, err error) {
	d, err := s.open()
	if err != nil {
		return "", 0, err
	}
	defer d.Close()
	rel, err := find(d, file)
	if err != nil {
		return "", 0, fmt.Errorf("read section: %w", err)
	}
	data, err := loadBytes(d, rel)
	if err != nil {
		return "", 0, err
	}
	f, _ := mdfile.Readable(data)
	if shown, kept := s.shown(rel, f.Bytes()); len(kept) > 0 {
		f, _ = mdfile.Readable(shown)
	}
	for _, sec := range f.Sections() {
		if strings.Join(sec.Path, " > ") == headings {
			if n++; n == 1 {
				text = string(f.Bytes()[sec.Text:sec.End])
			}
		}
	}
	return text, n, ctx.Err()
}

// ReplacePassage puts new text in the place of a passage, or with an empty text
// takes it out, its heading too where nothing would be left below it. It
// returns what was there.
func (s *Store) ReplacePassage(ctx context.Context, p Passage, text string) (old string, w Written, err error) {
	if err := checkText("the text", text, MaxContent); err != nil {
		return "", Written{}, fmt.Errorf("change %s: %w", p.File, err)
	}
	text, _ = s.secrets.String(text)
	w, err = s.write(ctx, func(t *tx) (Written, error) {
		rel, err := find(t.d, p.File)
		if err != nil {
			return Written{}, fmt.Errorf("change section: %w", err)
		}
		name := strings.TrimPrefix(rel, blocksDir+"/")
		w := Written{Path: s.abs(rel), Name: name}
		if rel == indexFile {
			return w, fmt.Errorf("change %s: %w: the index says what blocks hold; change the block", name, ErrContent)
		}
		f, err := load(t.d, rel)
		if err != nil {
			return w, fmt.Errorf("change section: %w", err)
		}
		from, to, err := locate(f, p)
		if err != nil {
			return w, fmt.Errorf("change %s: %w", name, err)
		}
		old = string(f.Bytes()[from:to])
		if text == "" {
			from, to = withHeading(f, p, from, to)
		}
		next, err := f.Replace(from, to, []byte(f.WithEOL(text)))
		if err == nil {
			err = fenced(f, next)
		}
		if err == nil {
			next, err = t.dated(f, next, name != rel)
		}
		if err != nil {
			return w, fmt.Errorf("change %s: %w", name, err)
		}
		w.Hash = hashOf(next.Bytes())
		if bytes.Equal(next.Bytes(), f.Bytes()) {
			w.Unchanged = true
			return w, nil
		}
		t.budget(rel, next.Bytes())
		t.put("update", rel, next.Bytes())
		if name != rel {
			w.IndexUpdated, err = t.row(name, "", summaryOf(strings.TrimSuffix(name, ".md"), next))
			if err == nil && old != "" {
				err = t.indexWithout(name, old, next)
			}
		}
		return w, err
	})
	return old, w, err
}

// indexWithout keeps the index from saying what its block does not say any
// more: a summary that was taken from the passage is made anew.
func (t *tx) indexWithout(name, old string, next *mdfile.File) error {
	idx, err := load(t.d, indexFile)
	if err != nil {
		return nil // row has said what is wrong
	}
	has := strings.TrimSuffix(strings.TrimSpace(summaries(idx)[strings.ToLower(name)]), "…")
	if has == "" || strings.Contains(string(next.Bytes()), has) {
		return nil
	}
	_, told, _ := strings.Cut(has, ": ")
	if told == "" {
		told = has
	}
	if len(told) < 12 || !strings.Contains(strings.Join(strings.Fields(old), " "), strings.Join(strings.Fields(told), " ")) {
		return nil
	}
	_, err = t.row(name, summaryOf(strings.TrimSuffix(name, ".md"), next), "")
	return err
}

// fenced is stillWhole, but a file may be left with headings alone.
func fenced(old, next *mdfile.File) error {
	if old.HasFrontMatter() && !next.HasFrontMatter() {
		return fmt.Errorf("%w: the edit would take the front matter apart", ErrFormat)
	}
	return nil
}

func locate(f *mdfile.File, p Passage) (from, to int, err error) {
	found := 0
	for _, sec := range f.Sections() {
		if strings.Join(sec.Path, " > ") != p.Headings {
			continue
		}
		body := string(f.Bytes()[sec.Text:sec.End])
		if p.Text == "" {
			trimmed := strings.TrimSpace(body)
			i := strings.Index(body, trimmed)
			from, to = sec.Text+i, sec.Text+i+len(trimmed)
			found++
			continue
		}
		part := f.WithEOL(p.Text)
		n, i := occurrences(body, part)
		if n == 0 {
			part = strings.TrimSpace(part)
			n, i = occurrences(body, part)
		}
		if n > 0 {
			from, to = sec.Text+i, sec.Text+i+len(part)
			found += n
		}
	}
	switch {
	case found == 0:
		return 0, 0, fmt.Errorf("%w: the passage is not there any more", ErrNotFound)
	case found > 1:
		return 0, 0, fmt.Errorf("%w: the passage is there %d times; change it in an editor", ErrContent, found)
	}
	return from, to, nil
}

// withHeading widens a passage that is to go by the heading that would stand
// over nothing, and by the line that would be empty.
func withHeading(f *mdfile.File, p Passage, from, to int) (int, int) {
	src := f.Bytes()
	secs := f.Sections()
	for i, sec := range secs {
		if from < sec.Text || to > sec.End || strings.Join(sec.Path, " > ") != p.Headings {
			continue
		}
		rest := string(src[sec.Text:from]) + string(src[to:sec.End])
		parent := i+1 < len(secs) && secs[i+1].Level > sec.Level
		if strings.TrimSpace(rest) == "" && sec.Level > 1 && !parent {
			return sec.Start, sec.End
		}
	}
	start := bytes.LastIndexByte(src[:from], '\n') + 1
	if head := bytes.TrimSpace(src[start:from]); len(head) == 0 || string(head) == "-" || string(head) == "*" {
		if end := bytes.IndexByte(src[to:], '\n'); end >= 0 && len(bytes.TrimSpace(src[to:to+end])) == 0 {
			return start, to + end + 1
		}
	}
	return from, to
}

// Committed says in which commits of the memory's repository a text stands, at
// most ten, newest first: what git keeps after the text has left the files.
// None without a repository.
func (s *Store) Committed(ctx context.Context, text string) ([]string, error) {
	if s.o.Git.Off {
		return nil, nil
	}
	if _, err := os.Stat(filepath.Join(s.o.Dir, ".git")); err != nil {
		return nil, nil
	}
	g := git.New(s.o.Dir, git.Options{Program: s.o.Git.Program, Vars: s.o.Git.Vars})
	if !g.Installed() || !g.IsTop() {
		return nil, nil
	}
	line := longestLine(text)
	if line == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := g.Run(ctx, "log", "--all", "-n", "10", "--format=%h", "-S", line)
	if err != nil {
		if _, herr := g.Resolve(ctx, "HEAD"); herr != nil {
			return nil, nil // nothing was committed yet
		}
		return nil, fmt.Errorf("look through the memory's history: %w", err)
	}
	return strings.Fields(string(out)), nil
}

func longestLine(text string) string {
	best := ""
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) > len(best) {
			best = line
		}
	}
	return best
}
