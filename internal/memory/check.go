package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"reprise/internal/durable"
	"reprise/internal/mdfile"
)

// Check looks at the whole memory and says what is wrong or too long and what
// to do about it. It writes nothing.
func (s *Store) Check(ctx context.Context) (Report, error) {
	r := Report{Dir: s.o.Dir, CoreBudget: CoreBudget, IndexBudget: IndexBudget, Findings: []Finding{}}
	d, err := s.open()
	if err != nil {
		return r, err
	}
	defer d.Close()
	k := &checker{s: s, d: d, r: &r, blocks: map[string]*blockState{}}
	names, err := blockNames(d)
	if err != nil {
		return r, err
	}
	r.Blocks = len(names)
	for _, n := range names {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		k.block(n)
	}
	k.strays()
	k.core()
	k.index()
	k.entries(ctx)
	sort.SliceStable(r.Findings, func(i, j int) bool {
		a, b := r.Findings[i], r.Findings[j]
		if a.Level != b.Level {
			return a.Level == LevelError
		}
		if a.File != b.File {
			return a.File < b.File
		}
		return a.Line < b.Line
	})
	return r, nil
}

type blockState struct {
	name    string
	updated string
	tokens  int
	title   string
}

type checker struct {
	s      *Store
	d      *durable.Dir
	r      *Report
	blocks map[string]*blockState // by lower-case name
}

// read gives a file as far as it can be read, and names the places that are no text.
func (k *checker) read(rel string) (*mdfile.File, error) {
	data, err := loadBytes(k.d, rel)
	if err != nil {
		return nil, err
	}
	f, damage := mdfile.Readable(data)
	for _, at := range damage {
		k.find(LevelError, "text.damaged", rel, at.Line, at.Problem, damagedRemedy)
	}
	return f, nil
}

func (k *checker) find(l Level, code, file string, line int, problem, remedy string) {
	k.r.Findings = append(k.r.Findings, Finding{Level: l, Code: code, File: file, Line: line, Problem: problem, Remedy: remedy})
}

func (k *checker) block(name string) {
	rel := blocksDir + "/" + name
	st := &blockState{name: name}
	if other, ok := k.blocks[strings.ToLower(name)]; ok {
		k.find(LevelError, "block.case", rel, 0, fmt.Sprintf("differs from %s only in case, so one hides the other on macOS and Windows", other.name), "rename one of them")
	}
	k.blocks[strings.ToLower(name)] = st
	stem := strings.TrimSuffix(name, ".md")
	if err := ValidName(stem); err != nil {
		remedy := "rename it"
		if to := suggestName(stem); to != "" && to != stem {
			remedy = fmt.Sprintf("rename it to %s.md, with its index row", to)
		}
		k.find(LevelWarning, "block.name", rel, 0, "the name does not follow project-<name>, reference-<topic>, episodic-YYYY-MM or decisions", remedy)
	}
	f, err := k.read(rel)
	if err != nil {
		k.find(LevelError, "block.unreadable", rel, 0, err.Error(), "mend or remove it by hand; no tool will overwrite it")
		return
	}
	st.tokens = mdfile.Tokens(string(f.Bytes()))
	for _, sec := range f.Sections() {
		if sec.Heading != "" {
			st.title = sec.Heading
			break
		}
	}
	k.conflict(rel, f)
	if len(strings.TrimSpace(string(f.Body()))) == 0 {
		k.find(LevelWarning, "block.empty", rel, 0, "there is nothing in it", "write it or remove it with its index row")
	}
	if err := checkMeta(f); err != nil {
		k.find(LevelError, "block.frontmatter", rel, 1, err.Error(), "mend it in an editor; the text below it is not touched by tools until then")
		return
	}
	if f.HasFrontMatter() {
		st.updated = f.Value("updated")
		for _, key := range []string{"created", "updated"} {
			if f.Value(key) == "" {
				k.find(LevelWarning, "block.dates", rel, 1, "the front matter has no "+key, "add a line like "+key+": 2026-02-15")
			}
		}
	}
	if due, ok := parseDate(f.Value("review_after")); ok && k.s.o.Now().After(due) {
		k.find(LevelWarning, "block.review", rel, 1, "it was to be looked at again after "+f.Value("review_after"), "see whether it still holds, then set review_after anew or take it out")
	}
	if n := len(f.Bytes()); n > MaxContent {
		k.find(LevelWarning, "block.size", rel, 0, fmt.Sprintf("it has %d bytes; a tool can write at most %d at once", n, MaxContent), "split it by topic into several blocks")
	}
}

// entries finds entries whose front matter cannot be read.
func (k *checker) entries(ctx context.Context) {
	problems, err := k.s.Entries().Problems(ctx)
	if err != nil {
		k.find(LevelError, "entries.unreadable", "", 0, err.Error(), "mend it by hand")
		return
	}
	for _, p := range problems {
		if p.ID != "" { // damage was found with its block
			k.r.Findings = append(k.r.Findings, p.finding())
		}
	}
}

// conflict finds the marks that a merge by hand leaves around lines that clash.
func (k *checker) conflict(rel string, f *mdfile.File) {
	n, ours := 0, 0
	for line := range strings.Lines(string(f.Bytes())) {
		n++
		switch {
		case strings.HasPrefix(line, "<<<<<<< "):
			ours = n
		case strings.HasPrefix(line, ">>>>>>> ") && ours > 0:
			k.find(LevelError, "conflict", rel, ours, fmt.Sprintf("lines %d to %d are both sides of a merge that was not settled", ours, n), "keep what is right and remove the lines of <<<<<<<, ======= and >>>>>>>")
			ours = 0
		}
	}
}

// strays are things in blocks/ that are no blocks.
func (k *checker) strays() {
	list, err := k.d.ReadDir(blocksDir)
	if k.s.o.Part && errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		k.find(LevelError, "blocks.missing", blocksDir, 0, err.Error(), "run `reprise memory init`")
		return
	}
	for _, e := range list {
		name := e.Name()
		switch {
		case strings.HasPrefix(name, ".") || k.blocks[strings.ToLower(name)] != nil:
		case strings.HasSuffix(name, ".torn"):
			k.find(LevelWarning, "blocks.torn", blocksDir+"/"+name, 0, "a write that a crash cut short was put here", "look whether anything in it is missing, then remove it")
		case !strings.HasSuffix(strings.ToLower(name), ".md"):
			k.find(LevelWarning, "blocks.stray", blocksDir+"/"+name, 0, "it is no .md file, so it is neither listed nor searched", "move it elsewhere or rename it")
		}
	}
}

func (k *checker) core() {
	f, err := k.read(coreFile)
	if k.s.o.Part && errors.Is(err, ErrNotFound) {
		return
	}
	if errors.Is(err, ErrNotFound) {
		k.find(LevelError, "core.missing", coreFile, 0, "it does not exist", "run `reprise memory init`")
		return
	}
	if err != nil {
		k.find(LevelError, "core.unreadable", coreFile, 0, err.Error(), "mend it by hand")
		return
	}
	k.conflict(coreFile, f)
	k.r.CoreTokens = mdfile.Tokens(string(f.Bytes()))
	over := k.r.CoreTokens - CoreBudget
	if over <= 0 {
		return
	}
	// The largest sections first, until what is left fits. A section moved
	// leaves one line behind, for which 20 tokens are allowed.
	type part struct {
		sec    mdfile.Section
		tokens int
	}
	var parts []part
	for _, sec := range f.Sections() {
		n := mdfile.Tokens(string(f.Bytes()[sec.Start:sec.End]))
		if sec.Level != 1 && n > 40 {
			parts = append(parts, part{sec, n})
		}
	}
	sort.SliceStable(parts, func(i, j int) bool { return parts[i].tokens > parts[j].tokens })
	problem := fmt.Sprintf("about %d tokens, %d over the budget of %d; every session is told its beginning", k.r.CoreTokens, over, CoreBudget)
	if len(parts) == 0 {
		k.find(LevelWarning, "core.budget", coreFile, 0, problem, "shorten it, or give it headings and move sections into blocks")
		return
	}
	left := over
	for _, p := range parts {
		if left <= 0 {
			break
		}
		name := p.sec.Heading
		if name == "" {
			name = "the text before the first heading"
		}
		k.find(LevelWarning, "core.budget", coreFile, p.sec.Line, problem,
			fmt.Sprintf("move %q (about %d tokens) to %s and leave one line here that names it", name, p.tokens, k.target(p.sec.Heading, string(f.Bytes()[p.sec.Start:p.sec.End]))))
		left -= p.tokens - 20
	}
}

// target is the block that a section of core should go to: one that the section
// names, one that is called like its heading, else a new one.
func (k *checker) target(heading, text string) string {
	names := make([]string, 0, len(k.blocks))
	for _, b := range k.blocks {
		names = append(names, b.name)
	}
	slices.Sort(names)
	for _, n := range names {
		if strings.Contains(text, n) && !strings.HasPrefix(n, "episodic-") {
			return blocksDir + "/" + n
		}
	}
	want := slug(heading)
	for _, n := range names {
		_, topic, _ := strings.Cut(strings.TrimSuffix(n, ".md"), "-")
		if topic != "" && want != "" && (topic == want || strings.Contains(want, topic) || strings.Contains(topic, want)) {
			return blocksDir + "/" + n
		}
	}
	if want == "" {
		want = "background"
	}
	return "a new block " + blocksDir + "/reference-" + strings.Trim(shortSlug(want), "-") + ".md"
}

func shortSlug(s string) string {
	if len(s) > 40 {
		return s[:40]
	}
	return s
}

func (k *checker) index() {
	f, err := k.read(indexFile)
	if k.s.o.Part && errors.Is(err, ErrNotFound) {
		if len(k.blocks) > 0 {
			k.find(LevelWarning, "index.missing", indexFile, 0, "it does not exist, so no session is told which blocks there are", "write one, with the table `| Block | Summary | Updated |`")
		}
		return
	}
	if errors.Is(err, ErrNotFound) {
		k.find(LevelError, "index.missing", indexFile, 0, "it does not exist", "run `reprise memory init`, then name each block in it")
		return
	}
	if err != nil {
		k.find(LevelError, "index.unreadable", indexFile, 0, err.Error(), "mend it by hand")
		return
	}
	k.conflict(indexFile, f)
	k.r.IndexTokens = mdfile.Tokens(string(f.Bytes()))
	t, ok := findIndex(f)
	if !ok {
		k.find(LevelError, "index.table", indexFile, 0, "it has no table with a Block column", "add the header `| Block | Summary | Updated |` with `|---|---|---|` below it")
		return
	}
	k.rows(t)
	if k.r.IndexTokens > IndexBudget {
		k.longIndex(t)
	}
}

func (k *checker) rows(t indexTable) {
	seen := map[string]int{}
	for _, r := range t.Rows {
		name := t.rowName(r)
		low := strings.ToLower(name)
		b := k.blocks[low]
		switch {
		case name == "":
			k.find(LevelWarning, "index.row", indexFile, r.Line, "the row names no block", "fill it in or remove it")
			continue
		case seen[low] > 0:
			k.find(LevelWarning, "index.duplicate", indexFile, r.Line, fmt.Sprintf("%s has a row in line %d already", name, seen[low]), "keep one of the two")
			continue
		case b == nil && (low == coreFile || low == indexFile):
			continue
		case b == nil:
			k.find(LevelError, "index.dangling", indexFile, r.Line, fmt.Sprintf("it names %s, which does not exist", name), "remove the row or restore the block (`git log -- blocks/` in the memory directory)")
			continue
		}
		seen[low] = r.Line
		if n := utf8.RuneCountInString(t.cell(r, t.summary)); n > MaxSummary {
			k.find(LevelWarning, "index.summary", indexFile, r.Line, fmt.Sprintf("the summary of %s has %d characters", name, n), fmt.Sprintf("shorten it to %d", MaxSummary))
		}
		day := t.cell(r, t.updated)
		if len(b.updated) >= 10 && dateOnly().MatchString(day) && day < b.updated[:10] {
			k.find(LevelWarning, "index.date", indexFile, r.Line, fmt.Sprintf("%s was updated on %s, the row says %s", name, b.updated[:10], day), "set the row's day")
		}
	}
	var names []string
	for low, b := range k.blocks {
		if seen[low] == 0 {
			names = append(names, b.name)
		}
	}
	slices.Sort(names)
	for _, n := range names {
		stem := strings.TrimSuffix(n, ".md")
		remedy := fmt.Sprintf("add a row, or run `reprise memory update %s --summary …`", stem)
		switch {
		case k.s.o.Part:
			remedy = "add a row"
		case ValidName(stem) != nil:
			remedy = "rename the file first, then add a row" // the tools do not take such a name
		}
		k.find(LevelError, "index.unlisted", indexFile, 0, fmt.Sprintf("%s/%s has no row, so no session will know of it", blocksDir, n), remedy)
	}
}

// longIndex says which rows to shorten and, when that is not enough, which
// blocks to make one of.
func (k *checker) longIndex(t indexTable) {
	const short = 60 // characters that a summary can do with
	over := k.r.IndexTokens - IndexBudget
	problem := fmt.Sprintf("about %d tokens, %d over the budget of %d; every session is told its beginning", k.r.IndexTokens, over, IndexBudget)
	rows := slices.Clone(t.Rows)
	length := func(r mdfile.Row) int { return utf8.RuneCountInString(t.cell(r, t.summary)) }
	sort.SliceStable(rows, func(i, j int) bool { return length(rows[i]) > length(rows[j]) })
	left, told := over*4, 0
	for _, r := range rows {
		save := length(r) - short
		if left <= 0 || save < 20 || told == 10 {
			break
		}
		k.find(LevelWarning, "index.budget", indexFile, r.Line, problem,
			fmt.Sprintf("shorten the summary of %s from %d to about %d characters", t.rowName(r), length(r), short))
		left -= save
		told++
	}
	if left <= 0 {
		return
	}
	for _, group := range k.mergeable(t) {
		if left <= 0 {
			return
		}
		k.find(LevelWarning, "index.budget", indexFile, 0, problem, fmt.Sprintf("merge %s into one block and keep one row", strings.Join(group, ", ")))
		left -= (len(group) - 1) * 60
	}
	if left > 0 {
		k.find(LevelWarning, "index.budget", indexFile, 0, problem, "remove rows of blocks that no longer matter, or merge blocks of one topic")
	}
}

// mergeable groups blocks that could be one: those that share the first word of
// their topic, and logs older than the three latest months.
func (k *checker) mergeable(t indexTable) [][]string {
	groups := map[string][]string{}
	var logs []string
	for _, r := range t.Rows {
		n := t.rowName(r)
		stem := strings.TrimSuffix(n, ".md")
		if episodicName().MatchString(stem) {
			logs = append(logs, n)
			continue
		}
		if part := strings.SplitN(stem, "-", 3); len(part) > 1 {
			key := part[0] + "-" + part[1]
			groups[key] = append(groups[key], n)
		}
	}
	var out [][]string
	keys := make([]string, 0, len(groups))
	for key := range groups {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if len(groups[key]) > 1 {
			out = append(out, groups[key])
		}
	}
	slices.Sort(logs)
	if len(logs) > 4 {
		out = append(out, logs[:len(logs)-3])
	}
	return out
}
