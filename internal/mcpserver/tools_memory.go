package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	"reprise/internal/memory"
	"reprise/internal/recall"
)

// maxSearchTokens bounds the hits of one search, well under the bound of an
// answer: what is found is a hint where to read.
const maxSearchTokens = 4_000

// ready makes the memory what it should be at first use. A server that only
// reads makes nothing: an absent memory then shows as files that are not found.
func (s *Server) ready(ctx context.Context) error {
	if s.deps.ReadOnly || s.deps.MemoryAccess != memory.FullAccess {
		return nil
	}
	s.ensureMu.Lock()
	defer s.ensureMu.Unlock()
	if s.ensured {
		return nil
	}
	if err := s.deps.Memory.Ensure(ctx); err != nil {
		return fmt.Errorf("prepare the memory directory %s: %w", s.deps.Memory.Dir(), err)
	}
	s.ensured = true
	return nil
}

func searchParams() []param {
	return []param{
		{name: "query", kind: text, required: true, bytes: 2000, lines: true,
			about:  "Words to look for. Any characters are allowed; none has a special meaning.",
			remedy: "give a few words"},
		{name: "max_results", kind: integer, min: 1, max: recall.MaxHits,
			about:  "Most hits. Default 10.",
			remedy: "leave it out for 10"},
	}
}

type searchAnswer struct {
	Results []recall.Hit `json:"results"`
	// Projects are the other ones, where nothing was found: a project's name may be
	// misspelt.
	Projects []string `json:"other_projects,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// maxDamage is how many places that could not be read are named beside results.
const maxDamage = 5

func (s *Server) memorySearch(c *call) (any, error) {
	if err := s.ready(c.ctx); err != nil {
		return nil, err
	}
	hits, err := s.deps.Search.Search(c.ctx, recall.Query{
		Text: c.args.text("query"), Max: c.args.number("max_results", recall.DefaultMax), MaxTokens: maxSearchTokens,
		Reader: s.deps.Reader,
	})
	if err != nil {
		return nil, fmt.Errorf("memory_search: %w", err)
	}
	out := searchAnswer{Results: []recall.Hit{}}
	left := maxSearchTokens
	for _, h := range hits {
		h.Snippet, _ = cutText(h.Snippet, 400, "")
		h.Heading = shorten(h.Heading, 300)
		if left -= tokens(h.Snippet) + tokens(h.Heading) + tokens(h.File) + 30; left < 0 {
			break
		}
		out.Results = append(out.Results, h)
	}
	if len(hits) == 0 && s.deps.Projects != nil {
		names := s.deps.Projects()
		out.Projects = names[:min(len(names), 20)]
	}
	damage, err := s.deps.Search.Damage(c.ctx, s.deps.Reader)
	if err != nil {
		return nil, fmt.Errorf("memory_search: %w", err)
	}
	for i, d := range damage {
		if i == maxDamage {
			out.Warnings = append(out.Warnings, fmt.Sprintf("and %d more; `reprise memory check` names them", len(damage)-i))
			break
		}
		out.Warnings = append(out.Warnings, shorten(d.String(), 300))
	}
	return out, nil
}

// blockName refuses what cannot be a file of the memory, before anything looks
// at the disk. The memory package binds every name to the directory as well.
func blockName(s string) error {
	if strings.ContainsAny(s, `\:`) || strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") {
		return fmt.Errorf("is not the name of a memory file (%q)", shorten(s, 60))
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("is not the name of a memory file (%q)", shorten(s, 60))
		}
	}
	return nil
}

func readParams() []param {
	return []param{
		{name: "name", kind: text, required: true, bytes: 200, check: blockName,
			about:  "core, index, or a block's name as the index shows it, for example project-website.",
			remedy: "use core, index or a name from the index, without a path"},
		{name: "scope", kind: text, bytes: 20, enum: []string{memory.ScopeProject, memory.ScopeGlobal},
			about:  "Default: the project's where it has one of that name, else the global one.",
			remedy: "leave it out"},
		{name: "offset", kind: integer, min: 0, max: 10_000_000,
			about:  "Lines to skip: next_offset of the answer before. Default 0.",
			remedy: "leave it out to read from the beginning"},
		{name: "limit", kind: integer, min: 1, max: 10_000,
			about:  "Most lines. Default: as many as fit into an answer.",
			remedy: "leave it out"},
	}
}

type readAnswer struct {
	Name    string `json:"name"`
	Scope   string `json:"scope,omitempty"`
	Content string `json:"content"`
	Hash    string `json:"hash"` // of the whole file, for if_hash
	Updated string `json:"updated"`
	Tokens  int    `json:"tokens"` // of the whole file
	Lines   int    `json:"lines"`  // of the whole file
	Offset  int    `json:"offset"`
	More    bool   `json:"more"`
	Next    int    `json:"next_offset,omitempty"`
	Note    string `json:"note,omitempty"`
}

func (a *readAnswer) note(text string) {
	if a.Note != "" {
		a.Note += "; "
	}
	a.Note += text
}

func (s *Server) memoryRead(c *call) (any, error) {
	if err := s.ready(c.ctx); err != nil {
		return nil, err
	}
	return s.readMemory(c.ctx, c.args.text("scope"), c.args.text("name"), c.args.number("offset", 0), c.args.number("limit", 0), maxPayloadTokens)
}

// readMemory reads a page of a file: whole lines, as many as fit.
func (s *Server) readMemory(ctx context.Context, scope, name string, offset, limit, maxTokens int) (*readAnswer, error) {
	doc, more, err := s.deps.Memory.Read(ctx, scope, name, offset, limit)
	if err != nil {
		return nil, memoryError(err)
	}
	out := &readAnswer{
		Name: doc.Name, Scope: doc.Scope, Hash: doc.Hash, Tokens: doc.Tokens, Lines: doc.Lines, Offset: offset,
		Updated: doc.Updated.UTC().Format(time.RFC3339),
	}
	content := strings.ToValidUTF8(doc.Content, "\uFFFD")
	page, lines := wholeLines(content, maxTokens)
	if page == "" && content != "" {
		// One line alone is too long.
		first, rest, found := strings.Cut(content, "\n")
		page, _ = cutText(first, maxTokens, "the whole line is in the file itself")
		lines, more = 1, more || found && rest != ""
		out.note("a line was too long for an answer and was cut")
	} else if len(page) < len(content) {
		more = true
	}
	for _, other := range doc.Also {
		out.note(fmt.Sprintf("the %s memory has a file of this name, too: give scope %s for it", other, other))
	}
	if doc.Scope == memory.ScopeProject {
		out.note("it is the project's own, which no tool writes: update_memory_block changes the global memory")
	}
	if doc.Private > 0 {
		out.note(fmt.Sprintf("%d entries are left out: they are other agents' own", doc.Private))
	}
	for i, d := range doc.Damage {
		if i == maxDamage {
			break
		}
		out.note("not all of it can be read: " + d.String())
	}
	out.Content, out.More = page, more
	if more {
		out.Next = offset + lines
	}
	return out, nil
}

func createParams() []param {
	return []param{
		{name: "name", kind: text, required: true, bytes: 200, check: blockName,
			about:  "project-<name>, reference-<topic>, episodic-YYYY-MM or decisions.",
			remedy: "use lower case letters, digits and hyphens, as in project-website"},
		{name: "content", kind: text, required: true, bytes: memory.MaxContent, lines: true,
			about:  "Markdown. Front matter is made for you; your own is kept.",
			remedy: "give markdown text, at most 1 MiB"},
		{name: "summary", kind: text, bytes: 1000, blank: true,
			about:  "One line for the index. Default: taken from the content.",
			remedy: "give one line, or leave it out"},
		{name: "tags", kind: list, bytes: 100, entries: 20,
			about:  "Tags for the front matter.",
			remedy: "give a list of words, or leave it out"},
	}
}

type writeAnswer struct {
	Success bool     `json:"success"`
	Name    string   `json:"name"`
	Path    string   `json:"path"`
	Hash    string   `json:"hash"`
	Created bool     `json:"created"`
	Index   bool     `json:"index_updated"`
	Same    bool     `json:"unchanged,omitempty"`
	Notes   []string `json:"warnings"`
}

func written(w memory.Written) *writeAnswer {
	out := &writeAnswer{Success: true, Name: w.Name, Path: w.Path, Hash: w.Hash, Created: w.Created, Index: w.IndexUpdated, Same: w.Unchanged, Notes: []string{}}
	for _, n := range w.Warnings[:min(20, len(w.Warnings))] {
		out.Notes = append(out.Notes, shorten(n, 500))
	}
	return out
}

func (s *Server) createBlock(c *call) (any, error) {
	if err := s.ready(c.ctx); err != nil {
		return nil, err
	}
	w, err := s.deps.Memory.Create(c.ctx, memory.CreateBlock{
		Name: c.args.text("name"), Content: c.args.text("content"), Summary: c.args.text("summary"), Tags: c.args.list("tags"),
	})
	if err != nil {
		return nil, memoryError(err)
	}
	return written(w), nil
}

func updateParams() []param {
	return []param{
		{name: "block", kind: text, required: true, bytes: 200, check: blockName,
			about:  "core, index, or a block's name as the index shows it.",
			remedy: "use core, index or a name from the index, without a path"},
		{name: "content", kind: text, bytes: memory.MaxContent, lines: true,
			about:  "The whole new text. Give this, or old_text and new_text.",
			remedy: "give markdown text, at most 1 MiB"},
		{name: "old_text", kind: text, bytes: memory.MaxContent, lines: true, blank: true,
			about:  "Text to replace; it must occur exactly once.",
			remedy: "give a passage exactly as it stands in the file"},
		{name: "new_text", kind: text, bytes: memory.MaxContent, lines: true, blank: true,
			about:  "What old_text becomes.",
			remedy: "give the new passage; an empty string removes the old one"},
		{name: "summary", kind: text, bytes: 1000, blank: true,
			about:  "New line for the index. Default: the old one stays.",
			remedy: "give one line, or leave it out"},
		{name: "if_hash", kind: text, bytes: 100, check: checkHash,
			about:  "hash from memory_read: if the file has changed since, nothing is written and you are told.",
			remedy: "give the hash that memory_read returned, or leave it out"},
	}
}

var hashPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^sha256:[0-9a-f]{64}$`) })

func checkHash(s string) error {
	if !hashPattern().MatchString(s) {
		return errors.New("is not a hash of the form sha256:<64 hex digits>")
	}
	return nil
}

func (s *Server) updateBlock(c *call) (any, error) {
	a := c.args
	switch {
	case a.has("content") && (a.has("old_text") || a.has("new_text")):
		return nil, errors.New("update_memory_block: parameters \"content\" and \"old_text\"/\"new_text\" exclude each other: give the whole text or one replacement")
	case a.has("old_text") != a.has("new_text"):
		return nil, errors.New("update_memory_block: parameters \"old_text\" and \"new_text\" belong together: give both")
	case a.has("old_text") && a.text("old_text") == "":
		return nil, errors.New("update_memory_block: parameter \"old_text\" is empty: give a passage exactly as it stands in the file")
	case !a.has("content") && !a.has("old_text") && a.text("summary") == "":
		return nil, errors.New("update_memory_block: parameter \"content\" is missing: give the whole new text, or old_text and new_text")
	}
	if err := s.ready(c.ctx); err != nil {
		return nil, err
	}
	w, err := s.deps.Memory.Update(c.ctx, memory.UpdateBlock{
		Name: a.text("block"), Content: a.text("content"), Summary: a.text("summary"), IfHash: a.text("if_hash"),
		OldText: a.text("old_text"), NewText: a.text("new_text"),
	})
	if err != nil {
		return nil, memoryError(err)
	}
	return written(w), nil
}

func episodeParams() []param {
	return []param{
		{name: "entry", kind: text, required: true, bytes: memory.MaxContent, lines: true,
			about:  "Two to five sentences: what was done, what was decided, what came of it.",
			remedy: "give markdown text, at most 1 MiB"},
		{name: "title", kind: text, bytes: 300,
			about:  "A few words for the heading. Default: from the entry's first sentence.",
			remedy: "give one line, or leave it out"},
		{name: "date", kind: text, bytes: 10, check: checkDate,
			about:  "YYYY-MM-DD. Default: today.",
			remedy: "give a date such as 2026-02-21, or leave it out"},
	}
}

func checkDate(s string) error {
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		return fmt.Errorf("is not a date of the form YYYY-MM-DD (%q)", shorten(s, 20))
	}
	return nil
}

func (s *Server) appendEpisode(c *call) (any, error) {
	if err := s.ready(c.ctx); err != nil {
		return nil, err
	}
	e := memory.Episode{Title: c.args.text("title"), Entry: c.args.text("entry")}
	if d := c.args.text("date"); d != "" {
		at, err := time.ParseInLocation(time.DateOnly, d, s.deps.Now().Location())
		if err != nil {
			return nil, err // checkDate passed it
		}
		e.Date = at
	}
	w, err := s.deps.Memory.AppendEpisode(c.ctx, e)
	if err != nil {
		return nil, memoryError(err)
	}
	return written(w), nil
}

func appendParams() []param {
	return []param{
		{name: "path", kind: text, required: true, bytes: 4096,
			about:  "Absolute path inside the memory directory, or relative to it.",
			remedy: "give a path inside the memory directory"},
		{name: "text", kind: text, required: true, bytes: memory.MaxAppend, lines: true, blank: true,
			about:  "Appended exactly as given; begin with a line break where one is wanted.",
			remedy: "give text, at most 4 MiB a call"},
	}
}

type appendAnswer struct {
	Success bool     `json:"success"`
	Bytes   int      `json:"bytes_written"`
	Path    string   `json:"path"`
	Notes   []string `json:"warnings,omitempty"`
}

func (s *Server) appendFile(c *call) (any, error) {
	if err := s.ready(c.ctx); err != nil {
		return nil, err
	}
	path := c.args.text("path")
	n, err := s.deps.Memory.AppendFile(c.ctx, path, c.args.text("text"))
	if err != nil {
		if errors.Is(err, memory.ErrOutside) {
			return nil, fmt.Errorf("append_file: parameter \"path\": %w: give a path inside the memory directory (%s)", err, s.deps.Memory.Dir())
		}
		return nil, memoryError(err)
	}
	s.log.LogAttrs(c.ctx, slog.LevelInfo, LogAppend, slog.String("path", path), slog.Int("bytes_written", n))
	out := appendAnswer{Success: true, Bytes: n, Path: path}
	if s.deps.Redact != nil {
		if _, hidden := s.deps.Redact(c.args.text("text")); hidden > 0 {
			out.Notes = []string{fmt.Sprintf("%d of its words looked like a secret and were left out, with [redacted:…] in their place", hidden)}
		}
	}
	return out, nil
}

// memoryError adds to an error what the caller needs to go on.
func memoryError(err error) error {
	var stale *memory.StaleError
	if errors.As(err, &stale) {
		now, _ := cutText(stale.Current.Content, maxPayloadTokens/2, "read the rest with memory_read")
		return fmt.Errorf("%w\n\nIts content now:\n%s", err, now)
	}
	return err
}
