package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"reprise/internal/clip"
	"reprise/internal/durable"
	"reprise/internal/pathname"
)

const (
	coreFile  = "core.md"
	indexFile = "index.md"
	blocksDir = "blocks"
	decisions = "decisions.md"
)

var (
	topicName    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(project|reference)-[a-z0-9]+(-[a-z0-9]+)*$`) })
	episodicName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^episodic-[0-9]{4}-(0[1-9]|1[0-2])$`) })
)

// ValidName reports why a block of this name cannot be created, or nil. The
// name is without ".md".
func ValidName(stem string) error {
	if len(stem) > MaxName {
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrName, len(stem), MaxName)
	}
	if topicName().MatchString(stem) || episodicName().MatchString(stem) || stem == "decisions" {
		return nil
	}
	hint := ""
	if s := suggestName(stem); s != "" && s != stem {
		hint = fmt.Sprintf("; %q would do", s)
	}
	return fmt.Errorf("%w: %q is none of project-<name>, reference-<topic>, episodic-YYYY-MM, decisions, in lower-case letters, digits and single hyphens%s",
		ErrName, clip.Runes(stem, 60), hint)
}

// suggestName makes an allowed name of a near miss, "" when nothing is left.
func suggestName(stem string) string {
	s := slug(stem)
	if s == "" {
		return ""
	}
	if !strings.HasPrefix(s, "project-") && !strings.HasPrefix(s, "reference-") && !episodicName().MatchString(s) && s != "decisions" {
		s = "reference-" + s
	}
	if len(s) > MaxName {
		s = strings.Trim(s[:MaxName], "-")
	}
	return s
}

func slug(s string) string {
	var b strings.Builder
	dash := false
	for _, r := range strings.ToLower(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			if dash && b.Len() > 0 {
				b.WriteByte('-')
			}
			dash = false
			b.WriteRune(r)
		default:
			dash = true
		}
	}
	return b.String()
}

// fileFor turns what a caller calls a file into its name in the directory:
// core, index, or a block with or without "blocks/" and ".md".
func fileFor(name string) (string, error) {
	n := strings.TrimSpace(name)
	if n == "" {
		return "", fmt.Errorf("%w: it is empty", ErrName)
	}
	if !utf8.ValidString(n) {
		return "", fmt.Errorf("%w: it is not UTF-8", ErrName)
	}
	n = strings.TrimPrefix(n, "./")
	if err := portable(n); err != nil {
		return "", err
	}
	switch strings.ToLower(n) {
	case "core", coreFile:
		return coreFile, nil
	case "index", indexFile:
		return indexFile, nil
	}
	if rest, ok := strings.CutPrefix(n, blocksDir+"/"); ok {
		n = rest
	}
	if strings.Contains(n, "/") {
		return "", fmt.Errorf("%w: %q is not core, index or a block (blocks/<name>.md)", ErrName, clip.Runes(name, 80))
	}
	if !strings.HasSuffix(n, ".md") {
		n += ".md"
	}
	return blocksDir + "/" + n, nil
}

// portable says whether a relative name may be used at all, and tells names
// that would lead out of the directory from names that are merely bad.
func portable(n string) error {
	if escapes(n) {
		return fmt.Errorf("%w: %q leads out of it", ErrOutside, clip.Runes(n, 120))
	}
	if err := durable.CheckName(n); err != nil {
		return fmt.Errorf("%w: %w", ErrName, err)
	}
	for part := range strings.SplitSeq(n, "/") {
		if strings.HasPrefix(part, ".") {
			return fmt.Errorf("%w: %q: names that begin with a dot belong to the program and to git", ErrName, clip.Runes(n, 120))
		}
		if strings.EqualFold(part, "git~1") { // what old Windows file systems call .git
			return fmt.Errorf("%w: %q belongs to git", ErrName, clip.Runes(n, 120))
		}
		for _, suffix := range []string{".lock", ".torn", ".tmp"} {
			if strings.HasSuffix(strings.ToLower(part), suffix) {
				return fmt.Errorf("%w: %q: %s files belong to the program", ErrName, clip.Runes(n, 120), suffix)
			}
		}
		for _, r := range part {
			if unicode.Is(unicode.Cf, r) || unicode.IsControl(r) {
				return fmt.Errorf("%w: it holds the invisible character U+%04X", ErrName, r)
			}
		}
	}
	return nil
}

func escapes(n string) bool {
	s := strings.ReplaceAll(n, `\`, "/")
	if strings.HasPrefix(s, "/") || filepath.IsAbs(n) || filepath.VolumeName(n) != "" {
		return true
	}
	if len(s) > 1 && s[1] == ':' && unicode.IsLetter(rune(s[0])) { // a Windows drive, on any system
		return true
	}
	for part := range strings.SplitSeq(s, "/") {
		if strings.TrimRight(part, ". ") == "" && strings.HasPrefix(part, "..") {
			return true
		}
	}
	return false
}

// find is fileFor for a file that should be there: when no file has exactly
// this name, the one that differs only in case is taken.
func find(d *durable.Dir, name string) (string, error) {
	rel, err := fileFor(name)
	if err != nil {
		return "", err
	}
	_, err = d.Lstat(rel)
	if err == nil {
		return rel, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("look at %s: %w", rel, err)
	}
	if other, err := sameButCase(d, rel); err != nil || other != "" {
		return other, err
	}
	return "", fmt.Errorf("%w: %s", ErrNotFound, rel)
}

func sameButCase(d *durable.Dir, rel string) (string, error) {
	base, ok := strings.CutPrefix(rel, blocksDir+"/")
	if !ok {
		return "", nil
	}
	list, err := d.ReadDir(blocksDir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, e := range list {
		if strings.EqualFold(e.Name(), base) {
			return blocksDir + "/" + e.Name(), nil
		}
	}
	return "", nil
}

// inside turns an absolute or relative path into a name within the directory.
func (s *Store) inside(path string) (string, error) {
	if strings.IndexByte(path, 0) >= 0 || !utf8.ValidString(path) {
		return "", fmt.Errorf("%w: the path holds a NUL or is not UTF-8", ErrName)
	}
	rel := path
	if filepath.IsAbs(path) {
		clean, ok := filepath.Clean(path), false
		for _, dir := range s.spellings() {
			if rel, ok = pathname.Below(dir, clean); ok && rel != "." {
				rel = filepath.ToSlash(rel)
				break
			}
		}
		if !ok || rel == "." {
			return "", fmt.Errorf("append_file is %w: %s; %q is not in it", ErrOutside, s.o.Dir, clip.Runes(path, 200))
		}
	}
	if filepath.Separator == '\\' {
		rel = filepath.ToSlash(rel)
	}
	if escapes(rel) {
		return "", fmt.Errorf("append_file is %w: %s; %q leads out of it", ErrOutside, s.o.Dir, clip.Runes(path, 200))
	}
	if strings.HasPrefix(rel, "~") {
		return "", fmt.Errorf("append_file is %w: %s; \"~\" is not expanded, give the whole path", ErrOutside, s.o.Dir)
	}
	if err := portable(rel); err != nil {
		return "", fmt.Errorf("append_file: %w", err)
	}
	return rel, nil
}

// spellings are the paths by which the memory directory may be named: as
// configured, and with symbolic links followed (macOS /tmp is one).
func (s *Store) spellings() []string {
	out := []string{filepath.Clean(s.o.Dir)}
	if real, err := filepath.EvalSymlinks(s.o.Dir); err == nil && real != out[0] {
		out = append(out, real)
	}
	return out
}

// checkText refuses what cannot stand in a text file.
func checkText(what, text string, max int) error {
	if len(text) > max {
		return fmt.Errorf("%w: %s has %d bytes, at most %d are allowed; split it into several blocks", ErrTooLarge, what, len(text), max)
	}
	if i := strings.IndexByte(text, 0); i >= 0 {
		return fmt.Errorf("%w: %s holds a NUL at byte %d", ErrContent, what, i)
	}
	if !utf8.ValidString(text) {
		return fmt.Errorf("%w: %s is not valid UTF-8", ErrContent, what)
	}
	return nil
}
