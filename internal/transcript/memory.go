package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"reprise/internal/durable"
)

// MemoryFile is a file of standing notes that people or clients keep: what
// every session of a client is told.
type MemoryFile struct {
	Client string
	Path   string // for people
	// Project says that it speaks of the project, not of the user.
	Project bool
	// Block is the name of the block that it becomes.
	Block   string
	Summary string
	Text    string
	// Hash is the SHA-256 of the text.
	Hash string
}

// FindMemory reads the clients' files of standing notes: the user's own, and
// where root is not empty those of the project at root and what Claude Code
// noted of it by itself. Two files with the same text are one. Files that cannot
// be used are told of in the errors; links are not followed.
func FindMemory(places Places, root string) ([]MemoryFile, []error) {
	m := &memoryFinder{seen: map[string]bool{}}
	if root != "" {
		for _, f := range []struct{ client, name string }{
			{"claude", "CLAUDE.md"}, {"claude", "CLAUDE.local.md"}, {"claude", ".claude/CLAUDE.md"},
			{"codex", "AGENTS.md"}, {"gemini", "GEMINI.md"}, {"copilot", ".github/copilot-instructions.md"},
		} {
			m.file(root, f.name, f.client, blockName("instructions", f.client, f.name), true)
		}
		m.notes(places["claude"], root)
	}
	for _, f := range []struct{ client, name string }{
		{"claude", "CLAUDE.md"}, {"codex", "AGENTS.md"}, {"gemini", "GEMINI.md"}, {"copilot", "copilot-instructions.md"},
	} {
		if dir := places[f.client]; dir != "" {
			m.file(dir, f.name, f.client, blockName("instructions", f.client, f.name), false)
		}
	}
	return m.files, m.bad
}

// blockName is reference-<client>-<what>, and where one client has several
// files, the file's own name.
func blockName(what, client, name string) string {
	switch path.Base(name) {
	case "CLAUDE.local.md":
		what = "local-" + what
	}
	if strings.HasPrefix(name, ".claude/") {
		what = "folder-" + what
	}
	return "reference-" + client + "-" + what
}

type memoryFinder struct {
	files []MemoryFile
	bad   []error
	seen  map[string]bool // hashes
}

func (m *memoryFinder) file(dir, name, client, block string, project bool) {
	root, err := durable.OpenRoot(dir)
	if err == nil {
		defer root.Close()
		var data []byte
		if info, lerr := root.Lstat(name); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
			return // often to another of these files
		}
		if data, err = readSmall(root, name); err == nil {
			m.add(MemoryFile{Client: client, Path: filepath.Join(dir, filepath.FromSlash(name)), Block: block, Project: project}, data)
			return
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		m.bad = append(m.bad, fmt.Errorf("%s: %w", filepath.Join(dir, filepath.FromSlash(name)), err))
	}
}

func (m *memoryFinder) add(f MemoryFile, data []byte) {
	data = bytes.TrimSpace(bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\r\n"), []byte("\n")))
	if len(data) == 0 {
		return
	}
	f.Text = strings.ToValidUTF8(string(data), "\ufffd")
	sum := sha256.Sum256([]byte(f.Text))
	f.Hash = hex.EncodeToString(sum[:])
	if m.seen[f.Hash] {
		return
	}
	m.seen[f.Hash] = true
	whose := "the user"
	if f.Project {
		whose = "the project"
	}
	if f.Summary == "" {
		f.Summary = fmt.Sprintf("What %s tells %s in %s", whose, f.Client, filepath.Base(f.Path))
	}
	m.files = append(m.files, f)
}

// notes reads what Claude Code noted by itself of the project:
// projects/<slug>/memory/*.md, one fact a file.
func (m *memoryFinder) notes(claude, project string) {
	if claude == "" {
		return
	}
	root, err := durable.OpenRoot(claude)
	if err != nil {
		return // no client, no notes; a directory that is there was told of by its transcripts
	}
	defer root.Close()
	dir := path.Join("projects", claudeSlug(project), "memory")
	entries, err := fs.ReadDir(root.FS(), dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			m.bad = append(m.bad, fmt.Errorf("%s: %w", filepath.Join(claude, filepath.FromSlash(dir)), err))
		}
		return
	}
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name(), ".md")
		if !ok || !e.Type().IsRegular() || strings.EqualFold(stem, "MEMORY") { // MEMORY.md is the list of the others
			continue
		}
		data, err := readSmall(root, path.Join(dir, e.Name()))
		if err != nil {
			m.bad = append(m.bad, fmt.Errorf("%s: %w", filepath.Join(claude, filepath.FromSlash(dir), e.Name()), err))
			continue
		}
		m.add(MemoryFile{
			Client: "claude", Path: filepath.Join(claude, filepath.FromSlash(dir), e.Name()), Project: true,
			Block: "reference-claude-note-" + wordsOf(stem), Summary: "Noted by claude: " + strings.ReplaceAll(stem, "_", " "),
		}, data)
	}
}

// claudeSlug is the name of a directory's folder below projects: all but
// letters and digits are hyphens.
func claudeSlug(dir string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, dir)
}

// wordsOf is a name in lower-case letters, digits and single hyphens.
func wordsOf(s string) string {
	var out []byte
	for _, c := range []byte(strings.ToLower(s)) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			out = append(out, c)
		} else if len(out) > 0 && out[len(out)-1] != '-' {
			out = append(out, '-')
		}
	}
	if name := strings.Trim(string(out[:min(len(out), 40)]), "-"); name != "" {
		return name
	}
	sum := sha256.Sum256([]byte(s)) // a name in another script
	return hex.EncodeToString(sum[:4])
}
