package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"reprise/internal/clip"
	"reprise/internal/durable"
	"reprise/internal/mdfile"
)

// tx is one change under the writer lock.
type tx struct {
	s        *Store
	d        *durable.Dir
	c        *durable.Change
	warnings []string
	changes  []Change
}

// write runs fn under the writer lock and commits what it wrote.
func (s *Store) write(ctx context.Context, fn func(*tx) (Written, error)) (Written, error) {
	d, c, err := s.begin(ctx)
	if err != nil {
		return Written{}, err
	}
	defer d.Close()
	defer c.Abort()
	t := &tx{s: s, d: d, c: c}
	w, err := fn(t)
	if err != nil {
		return Written{}, err
	}
	if len(t.changes) > 0 {
		if err := c.Commit(); err != nil && !errors.Is(err, durable.ErrPending) {
			return Written{}, fmt.Errorf("write %s: %w", w.Name, err)
		} else if err != nil {
			return Written{}, fmt.Errorf("write %s: the change is recorded and will be completed, but is not in place yet: %w", w.Name, err)
		}
	}
	t.warnings = append(t.warnings, s.tell(ctx, t.changes...)...)
	w.Warnings = append(w.Warnings, t.warnings...)
	return w, nil
}

func (t *tx) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

func (t *tx) put(op, rel string, data []byte) {
	t.c.Write(rel, data, filePerm)
	t.changes = append(t.changes, Change{Op: op, Name: rel, Hash: hashOf(data), Bytes: len(data)})
}

// row brings the block's index row into the change, when it differs.
func (t *tx) row(name, summary, fallback string) (bool, error) {
	if n := utf8.RuneCountInString(summary); n > MaxSummary {
		t.warn("the summary had %d characters and was cut to %d: the index is loaded in every session", n, MaxSummary)
		summary = clip.Runes(summary, MaxSummary)
	}
	idx, err := load(t.d, indexFile)
	if errors.Is(err, ErrNotFound) {
		idx, err = mdfile.Parse([]byte(seedIndex))
	}
	if err != nil {
		return false, fmt.Errorf("the index cannot be kept in step, so nothing was written: %w", err)
	}
	// A summary that nobody wrote must not carry a secret out of the block into
	// the file that every session loads.
	fallback, _ = t.s.secrets.String(fallback)
	next, err := withRow(idx, name, summary, fallback, t.s.today())
	if err != nil {
		return false, fmt.Errorf("the index cannot be kept in step, so nothing was written: %w", err)
	}
	t.budget(indexFile, next.Bytes())
	if bytes.Equal(next.Bytes(), idx.Bytes()) {
		if _, err := t.d.Lstat(indexFile); err == nil {
			return false, nil
		}
	}
	t.put("index", indexFile, next.Bytes())
	return true, nil
}

// budget warns when a file that every session loads grows too long.
func (t *tx) budget(rel string, data []byte) {
	n, most := mdfile.Tokens(string(data)), 0
	switch rel {
	case coreFile:
		most = CoreBudget
	case indexFile:
		most = IndexBudget
	default:
		return
	}
	if n > most {
		t.warn("%s has about %d tokens, %d over its budget of %d; `reprise memory check` says what to move", rel, n, n-most, most)
	}
}

// Create makes a block with front matter and an index row, both or neither.
// The same content again is a success that changes nothing; other content
// under a name that is taken is ErrExists.
func (s *Store) Create(ctx context.Context, b CreateBlock) (Written, error) {
	stem := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.Name), blocksDir+"/"), ".md")
	if err := portableStem(stem); err != nil {
		return Written{}, fmt.Errorf("create block: %w", err)
	}
	if err := ValidName(stem); err != nil {
		return Written{}, fmt.Errorf("create block: %w", err)
	}
	if err := checkInput(b.Content, b.Summary, b.Tags); err != nil {
		return Written{}, fmt.Errorf("create %s: %w", stem, err)
	}
	if strings.TrimSpace(b.Content) == "" {
		return Written{}, fmt.Errorf("create %s: %w: it is empty", stem, ErrContent)
	}
	b.Tags = slices.Clone(b.Tags)
	hidden := s.hide(&b.Content, &b.Summary)
	for i := range b.Tags {
		hidden += s.hide(&b.Tags[i])
	}
	name := stem + ".md"
	rel := blocksDir + "/" + name
	return s.write(ctx, func(t *tx) (Written, error) {
		t.warnHidden(hidden)
		w := Written{Path: s.abs(rel), Name: name}
		other, err := sameButCase(t.d, rel)
		if err != nil {
			return w, fmt.Errorf("create %s: %w", name, err)
		}
		var old *mdfile.File
		if other != "" {
			if old, err = load(t.d, other); err != nil {
				return w, fmt.Errorf("create %s: there is a file of this name that cannot be read: %w", name, err)
			}
		}
		f, err := newBlock(stem, b, s.today(), old)
		if err != nil {
			return w, fmt.Errorf("create %s: %w", name, err)
		}
		w.Hash = hashOf(f.Bytes())
		switch {
		case old == nil:
			w.Created = true
			t.put("create", rel, f.Bytes())
		case other == rel && bytes.Equal(old.Bytes(), f.Bytes()):
			w.Unchanged = true
		default:
			return w, fmt.Errorf("create %s: %w: it is %s now; to change it, update it", name, ErrExists, hashOf(old.Bytes()))
		}
		w.IndexUpdated, err = t.row(name, b.Summary, summaryOf(stem, f))
		return w, err
	})
}

// portableStem catches what ValidName would only call badly spelt.
func portableStem(stem string) error {
	if !utf8.ValidString(stem) || stem == "" {
		return fmt.Errorf("%w: it is empty or not UTF-8", ErrName)
	}
	return portable(stem)
}

func checkInput(content, summary string, tags []string) error {
	if err := checkText("content", content, MaxContent); err != nil {
		return err
	}
	if err := checkText("summary", summary, 10*MaxSummary); err != nil {
		return err
	}
	if len(tags) > 50 {
		return fmt.Errorf("%w: %d tags, at most 50 are allowed", ErrTooLarge, len(tags))
	}
	for _, tag := range tags {
		if err := checkText("a tag", tag, 100); err != nil {
			return err
		}
		if strings.TrimSpace(tag) == "" || strings.ContainsAny(tag, "\r\n") {
			return fmt.Errorf("%w: a tag must be one line and not empty", ErrContent)
		}
	}
	return nil
}

// newBlock completes a block's front matter. Days are taken over from old, so
// that the same content made again gives the same bytes.
func newBlock(stem string, b CreateBlock, today string, old *mdfile.File) (*mdfile.File, error) {
	content := b.Content
	if !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	f, err := mdfile.Parse([]byte(content))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContent, err)
	}
	if f.HasFrontMatter() {
		if err := checkMeta(f); err != nil {
			return nil, err
		}
	}
	created, updated := today, today
	if old != nil {
		if v := old.Value("created"); v != "" {
			created = v
		}
		if v := old.Value("updated"); v != "" {
			updated = v
		}
	}
	tags := b.Tags
	if len(tags) == 0 && !slices.Contains(f.Keys(), "tags") {
		kind, _, _ := strings.Cut(stem, "-")
		tags = []string{kind}
		if old != nil && slices.Contains(old.Keys(), "tags") && !f.HasFrontMatter() {
			if raw, ok := old.RawEntry("tags"); ok { // tags given by hand meanwhile
				kindRaw := "tags: [" + kind + "]"
				if strings.TrimSpace(raw) != kindRaw {
					tags = nil
				}
			}
		}
	}
	if !slices.Contains(f.Keys(), "created") {
		if f, err = f.SetString("created", created); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
	}
	if f.Value("updated") == "" || old != nil {
		if f, err = f.SetString("updated", updated); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
	}
	if len(tags) > 0 {
		if f, err = f.SetList("tags", tags); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
	}
	return f, nil
}

// checkMeta validates the keys that the program knows; others are left alone.
func checkMeta(f *mdfile.File) error {
	m, err := f.Map()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	for _, k := range []string{"created", "updated", "review_after"} {
		v, ok := m[k]
		if !ok || v == nil {
			continue
		}
		if _, ok := parseDate(fmt.Sprint(v)); !ok {
			return fmt.Errorf("%w: %s is %q; it must be a day like 2026-02-15", ErrFormat, k, clip.Runes(fmt.Sprint(v), 40))
		}
	}
	switch v := m["tags"].(type) {
	case nil, string:
	case []any:
		for _, tag := range v {
			switch tag.(type) {
			case map[string]any, []any:
				return fmt.Errorf("%w: tags must be a list of words", ErrFormat)
			}
		}
	default:
		return fmt.Errorf("%w: tags must be a list of words, such as [project, go]", ErrFormat)
	}
	return nil
}

// summaryOf is the index summary of a block that came without one.
func summaryOf(stem string, f *mdfile.File) string {
	if episodicName().MatchString(stem) {
		return "Conversation log for " + monthName(strings.TrimPrefix(stem, "episodic-"))
	}
	head, text := "", ""
	for _, s := range f.Sections() {
		if head == "" {
			head = s.Heading
		}
		if line := firstText(string(f.Bytes()[s.Text:s.End])); line != "" {
			text = line
			break
		}
	}
	switch {
	case head == "" && text == "":
		return stem
	case head == "":
		return clip.Runes(text, 120)
	case text == "":
		return clip.Runes(head, 120)
	}
	return clip.Runes(head+": "+text, 120)
}

func firstText(s string) string {
	for line := range strings.Lines(s) {
		line = strings.Trim(line, " \t\r\n-*>#`|_")
		if line != "" {
			return line
		}
	}
	return ""
}

// Update changes a file that exists: a block with its index row, core.md or
// index.md. With IfHash it is refused as *StaleError when the file is no longer
// that version; asking again for what is already there is a success.
func (s *Store) Update(ctx context.Context, u UpdateBlock) (Written, error) {
	if err := checkInput(u.Content, u.Summary, nil); err != nil {
		return Written{}, fmt.Errorf("update %s: %w", clip.Runes(u.Name, 80), err)
	}
	for _, text := range []struct{ what, text string }{{"old_text", u.OldText}, {"new_text", u.NewText}} {
		if err := checkText(text.what, text.text, MaxContent); err != nil {
			return Written{}, fmt.Errorf("update %s: %w", clip.Runes(u.Name, 80), err)
		}
	}
	switch {
	case u.Content != "" && (u.OldText != "" || u.NewText != ""):
		return Written{}, fmt.Errorf("update %s: %w: give either content, or old_text and new_text", clip.Runes(u.Name, 80), ErrContent)
	case u.Content == "" && u.OldText == "" && u.NewText != "":
		return Written{}, fmt.Errorf("update %s: %w: new_text needs the old_text that it replaces", clip.Runes(u.Name, 80), ErrContent)
	case strings.TrimSpace(u.Content) == "" && u.OldText == "" && u.Summary == "":
		return Written{}, fmt.Errorf("update %s: %w: there is nothing to change: give content, old_text or summary", clip.Runes(u.Name, 80), ErrContent)
	}
	// What is replaced is looked for as it stands: a secret that got in is taken
	// out like that.
	hidden := s.hide(&u.Content, &u.NewText, &u.Summary)
	return s.write(ctx, func(t *tx) (Written, error) {
		t.warnHidden(hidden)
		return t.update(u)
	})
}

func (t *tx) update(u UpdateBlock) (Written, error) {
	rel, err := find(t.d, u.Name)
	if errors.Is(err, ErrNotFound) {
		return Written{}, fmt.Errorf("update: %w; what is not there is created, not updated", err)
	}
	if err != nil {
		return Written{}, fmt.Errorf("update: %w", err)
	}
	name := strings.TrimPrefix(rel, blocksDir+"/")
	isBlock := name != rel
	w := Written{Path: t.s.abs(rel), Name: name}
	old, err := load(t.d, rel)
	if err != nil {
		return w, fmt.Errorf("update: %w", err)
	}
	w.Hash = hashOf(old.Bytes())
	seen, kept, err := t.s.editable(rel, old)
	if err != nil {
		return w, fmt.Errorf("update %s: %w", name, err)
	}
	next, err := edited(seen, u)
	same := err == nil && bytes.Equal(next.Bytes(), seen.Bytes())
	if same {
		next = old
	} else if err == nil {
		next, err = withKept(next, kept)
	}
	stale := u.IfHash != "" && !sameHash(u.IfHash, w.Hash)
	if stale && !same {
		doc, derr := t.s.doc(t.d, rel)
		if derr != nil {
			return w, derr
		}
		return w, &StaleError{Name: name, Have: w.Hash, Want: u.IfHash, Current: doc}
	}
	if err != nil {
		return w, fmt.Errorf("update %s: %w", name, err)
	}
	if len(next.Bytes()) > MaxFile {
		return w, fmt.Errorf("update %s: %w: it would have %d bytes, at most %d are allowed", name, ErrTooLarge, len(next.Bytes()), MaxFile)
	}
	if same {
		w.Unchanged = u.Summary == ""
	} else {
		if next, err = t.dated(old, next, isBlock); err != nil {
			return w, fmt.Errorf("update %s: %w", name, err)
		}
		w.Hash = hashOf(next.Bytes())
		t.budget(rel, next.Bytes())
		t.put("update", rel, next.Bytes())
	}
	if isBlock && (!w.Unchanged || t.rowless(name)) {
		w.IndexUpdated, err = t.row(name, u.Summary, summaryOf(strings.TrimSuffix(name, ".md"), next))
	} else if rel == indexFile {
		w.IndexUpdated = !w.Unchanged
		if _, ok := findIndex(next); !ok {
			t.warn("index.md has no table with a Block column any more; the next block written will add one")
		}
	}
	return w, err
}

func (t *tx) rowless(name string) bool {
	idx, err := load(t.d, indexFile)
	if err != nil {
		return true // let row say what is wrong
	}
	it, ok := findIndex(idx)
	if !ok {
		return true
	}
	_, ok = it.find(name)
	return !ok
}

func sameHash(given, have string) bool {
	g := strings.ToLower(strings.TrimSpace(given))
	return g == have || "sha256:"+g == have
}

// edited applies what an update asks for, without dates.
func edited(old *mdfile.File, u UpdateBlock) (*mdfile.File, error) {
	if u.OldText != "" {
		from, to := old.WithEOL(u.OldText), old.WithEOL(u.NewText)
		switch n, i := occurrences(string(old.Bytes()), from); n {
		case 1:
			next, err := old.Replace(i, i+len(from), []byte(to))
			if err != nil {
				return nil, err
			}
			return next, stillWhole(old, next)
		case 0:
			return nil, fmt.Errorf("%w: old_text is not in it; read it again and give the text exactly", ErrContent)
		default:
			return nil, fmt.Errorf("%w: old_text is in it %d times; give more of the text around it", ErrContent, n)
		}
	}
	if u.Content == "" {
		return old, nil
	}
	text := old.WithEOL(u.Content)
	if !strings.HasSuffix(text, "\n") {
		text += old.EOL()
	}
	given, err := mdfile.Parse([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContent, err)
	}
	if !given.HasFrontMatter() {
		return withBody(old, text)
	}
	if err := checkMeta(given); err != nil {
		return nil, err
	}
	if !old.HasFrontMatter() {
		return given, nil
	}
	// A writer that gives back all keys has read them and may reorder them. One
	// that leaves some out gets its values set in what is there.
	for _, k := range old.Keys() {
		if !slices.Contains(given.Keys(), k) {
			next, err := withBody(old, string(given.Body()))
			for _, key := range given.Keys() {
				if raw, ok := given.RawEntry(key); ok && err == nil && key != "created" {
					next, err = next.SetEntry(key, raw)
				}
			}
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrFormat, err)
			}
			return next, nil
		}
	}
	return given, nil
}

// occurrences counts the places at which part stands in s, those that overlap
// included ("aa" is twice in "aaa"), and gives the first.
func occurrences(s, part string) (n, first int) {
	first = strings.Index(s, part)
	for at := first; at >= 0 && n < 1000; n++ {
		next := strings.Index(s[at+1:], part)
		if next < 0 {
			return n + 1, first
		}
		at += 1 + next
	}
	return n, first
}

// stillWhole refuses an edit of a passage that takes the front matter apart, or
// that leaves nothing of the file: neither is what replacing a passage is for.
func stillWhole(old, next *mdfile.File) error {
	if old.HasFrontMatter() && !next.HasFrontMatter() {
		return fmt.Errorf("%w: the edit would take the front matter apart; leave its lines of --- as they are", ErrFormat)
	}
	if len(bytes.TrimSpace(next.Body())) == 0 && len(bytes.TrimSpace(old.Body())) > 0 {
		return fmt.Errorf("%w: the edit would leave nothing of it; give the text that is to be there, or remove the file by hand", ErrContent)
	}
	return nil
}

// withBody puts a new body behind the front matter that is there, keeping the
// blank lines between the two.
func withBody(old *mdfile.File, text string) (*mdfile.File, error) {
	body := string(old.Body())
	gap := body[:len(body)-len(strings.TrimLeft(body, "\r\n"))]
	if !old.HasFrontMatter() {
		gap = ""
	}
	at := len(old.Head())
	if at > 0 && old.HasFrontMatter() && !bytes.HasSuffix(old.Head(), []byte("\n")) {
		gap = old.EOL() // the closing fence is the file's last line and has no end
	}
	return old.Replace(at, len(old.Bytes()), []byte(gap+strings.TrimLeft(text, "\r\n")))
}

// dated checks the front matter of an edited file and sets its day.
func (t *tx) dated(old, next *mdfile.File, isBlock bool) (*mdfile.File, error) {
	if err := checkMeta(next); err != nil {
		if checkMeta(old) != nil && bytes.Equal(old.Head(), next.Head()) {
			t.warn("the front matter was already invalid and is left as it is: %v", err)
			return next, nil
		}
		return nil, err
	}
	if !next.HasFrontMatter() || (!isBlock && !slices.Contains(next.Keys(), "updated")) {
		return next, nil
	}
	day := t.s.today()
	if v := next.Value("updated"); len(v) > len(day) && strings.Contains(v, ":") {
		day = t.s.o.Now().UTC().Format("2006-01-02T15:04:05Z")
	}
	g, err := next.SetString("updated", day)
	if err != nil {
		t.warn("the day in the front matter could not be set: %v", err)
		return next, nil
	}
	return g, nil
}

// AppendEpisode adds an entry to the log of its month, made when it is missing,
// and its index row. An entry that is already the last one is not added again.
func (s *Store) AppendEpisode(ctx context.Context, e Episode) (Written, error) {
	if err := checkInput(e.Entry, e.Title, nil); err != nil {
		return Written{}, fmt.Errorf("append to episodic log: %w", err)
	}
	date := e.Date
	if date.IsZero() {
		date = s.o.Now()
	}
	if y := date.Year(); y < 1970 || y > 9999 {
		return Written{}, fmt.Errorf("append to episodic log: %w: the year %d cannot be", ErrContent, y)
	}
	hidden := s.hide(&e.Entry, &e.Title)
	body := strings.TrimSpace(strings.ReplaceAll(e.Entry, "\r\n", "\n"))
	title := clip.Runes(strings.TrimLeft(strings.Join(strings.Fields(e.Title), " "), "# "), 150)
	day := date.Format("2006-01-02")
	if body == "" {
		return Written{}, fmt.Errorf("append to episodic log: %w: the entry is empty", ErrContent)
	}
	var entry string
	switch {
	case title == "" && strings.HasPrefix(body, "## "+day):
		entry = body // it brings its own heading
	case title == "":
		entry = "## " + day + " — " + clip.Runes(firstSentence(body), 80) + "\n" + body
	default:
		entry = "## " + day + " — " + strings.TrimPrefix(title, day+" — ") + "\n" + body
	}
	stem := "episodic-" + date.Format("2006-01")
	name := stem + ".md"
	rel := blocksDir + "/" + name
	return s.write(ctx, func(t *tx) (Written, error) {
		t.warnHidden(hidden)
		w := Written{Path: s.abs(rel), Name: name}
		old, err := load(t.d, rel)
		if errors.Is(err, ErrNotFound) {
			head := "---\ncreated: " + day + "\nupdated: " + s.today() + "\n---\n\n# " + monthName(date.Format("2006-01")) + "\n"
			w.Created = true
			old, err = mdfile.Parse([]byte(head))
		}
		if err != nil {
			return w, fmt.Errorf("append to episodic log: %w", err)
		}
		text := old.WithEOL(entry)
		if have := strings.TrimRight(string(old.Bytes()), "\r\n"); strings.HasSuffix(have, text) &&
			strings.HasSuffix(have[:len(have)-len(text)], "\n") {
			w.Hash, w.Unchanged = hashOf(old.Bytes()), true
			return w, nil
		}
		end := len(old.Bytes())
		next, err := old.Replace(end, end, []byte(gapBefore(old)+text+old.EOL()))
		if err == nil && len(next.Bytes()) > MaxFile {
			err = fmt.Errorf("%w: %s would have %d bytes, at most %d are allowed", ErrTooLarge, name, len(next.Bytes()), MaxFile)
		}
		if err == nil {
			next, err = t.dated(old, next, true)
		}
		if err != nil {
			return w, fmt.Errorf("append to episodic log: %w", err)
		}
		w.Hash = hashOf(next.Bytes())
		t.put("append_episode", rel, next.Bytes())
		w.IndexUpdated, err = t.row(name, "", summaryOf(stem, next))
		return w, err
	})
}

// gapBefore is what is missing at the end of a file to make it end in a blank line.
func gapBefore(f *mdfile.File) string {
	b, nl := f.Bytes(), f.EOL()
	switch {
	case len(b) == 0 || bytes.HasSuffix(b, []byte(nl+nl)):
		return ""
	case bytes.HasSuffix(b, []byte("\n")):
		return nl
	default:
		return nl + nl
	}
}

func firstSentence(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if i := strings.Index(s, ". "); i > 0 {
		s = s[:i]
	}
	return strings.TrimSpace(strings.TrimLeft(strings.TrimSuffix(s, "."), "#*-> "))
}

// AppendFile adds text, exactly as given, to a file within the memory directory,
// which is made with its directories when it is missing, and returns the bytes
// added. path is absolute or relative to the memory directory. A block's index
// row is added or dated with it.
func (s *Store) AppendFile(ctx context.Context, path, text string) (int, error) {
	if strings.TrimSpace(path) == "" {
		return 0, fmt.Errorf("append_file: %w: the path is empty", ErrName)
	}
	rel, err := s.inside(path)
	if err != nil {
		return 0, err
	}
	if err := checkText("text", text, MaxAppend); err != nil {
		return 0, fmt.Errorf("append_file %s: %w", rel, err)
	}
	if text == "" {
		return 0, ctx.Err()
	}
	given := len(text)
	s.hide(&text)
	added, told := false, false
	_, err = s.write(ctx, func(t *tx) (Written, error) {
		if err := spelling(t.d, rel); err != nil {
			return Written{}, err
		}
		name, block := strings.CutPrefix(rel, blocksDir+"/")
		block = block && strings.HasSuffix(name, ".md") && !strings.Contains(name, "/")
		if block && t.appendWithRow(rel, name, text) {
			told = true
			return Written{Name: rel}, nil
		}
		if i := strings.LastIndexByte(rel, '/'); i > 0 {
			if err := t.d.MkdirAll(rel[:i], dirPerm); err != nil {
				return Written{}, outside(err)
			}
		}
		_, missing := t.d.Lstat(rel)
		if err := t.d.AppendText(rel, []byte(text), filePerm); err != nil {
			if fi, serr := t.d.Lstat(rel); serr == nil && errors.Is(missing, fs.ErrNotExist) && fi.Size() == 0 {
				err = errors.Join(err, t.d.Remove(rel)) // made for this text alone
			}
			return Written{}, outside(err)
		}
		added = true
		if block {
			if _, err := t.row(name, "", strings.TrimSuffix(name, ".md")); err != nil {
				return Written{}, err
			}
		}
		return Written{Name: rel}, nil
	})
	// Once the text is on disk the call has succeeded: an error would make the
	// caller append it again. A row that is missing then is shown by Check.
	if err != nil && !added {
		return 0, fmt.Errorf("append_file %s: %w", rel, err)
	}
	if !told {
		s.tell(ctx, Change{Op: "append_file", Name: rel, Bytes: len(text)})
	}
	return given, nil
}

// hide takes secrets out of what is to be kept, and says how many there were:
// memory is read by every session, indexed, shown and pushed.
func (s *Store) hide(texts ...*string) (found int) {
	for _, t := range texts {
		clean, n := s.secrets.String(*t)
		*t = clean
		found += n
	}
	return found
}

func (t *tx) warnHidden(n int) {
	if n > 0 {
		t.warn("%d of its words looked like a secret and were left out, with [redacted:…] in their place", n)
	}
}

// appendWithRow adds text to a block and brings its index row up to date, both
// or neither. It is false, with nothing done, when the row needs no change or
// when the two cannot be one change: the index or the block is no text, or too
// long to be replaced as a whole.
func (t *tx) appendWithRow(rel, name, text string) bool {
	var old []byte
	fi, err := t.d.Lstat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil, !fi.Mode().IsRegular(), fi.Size()+int64(len(text)) > MaxFile:
		return false
	default:
		if old, err = t.d.ReadFile(rel); err != nil {
			return false
		}
	}
	next := append(old[:len(old):len(old)], text...)
	f, err := mdfile.Parse(next)
	if err != nil {
		return false
	}
	if changed, err := t.row(name, "", summaryOf(strings.TrimSuffix(name, ".md"), f)); err != nil || !changed {
		return false
	}
	t.c.Write(rel, next, filePerm)
	t.changes = append(t.changes, Change{Op: "append_file", Name: rel, Bytes: len(text)})
	return true
}

// spelling refuses a path of which a part is there in other letter case: on
// macOS and Windows the two are one file, and git cannot check out both.
func spelling(d *durable.Dir, rel string) error {
	dir := "."
	for part := range strings.SplitSeq(rel, "/") {
		at := part
		if dir != "." {
			at = dir + "/" + part
		}
		if _, err := d.Lstat(at); err == nil {
			dir = at
			continue
		}
		list, err := d.ReadDir(dir)
		if err != nil {
			return nil // the write itself says what is wrong
		}
		for _, e := range list {
			if strings.EqualFold(e.Name(), part) {
				return fmt.Errorf("%w: %q differs only in case from %q, which is there; use that spelling", ErrName, part, e.Name())
			}
		}
		return nil
	}
	return nil
}

// outside names the refusal of os.Root for what it is.
func outside(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) && strings.Contains(pe.Err.Error(), "escapes") {
		return fmt.Errorf("%w: a symbolic link leads out of it: %w", ErrOutside, err)
	}
	return err
}

func monthName(ym string) string {
	if t, ok := parseDate(ym + "-01"); ok {
		return t.Format("January 2006")
	}
	return ym
}
