package memory

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"
)

//go:embed skills/SKILL.md.tmpl
var skillText string

// Flavours of the skill: with reprise's memory tools, or with a filesystem
// server's file tools and append_file.
const (
	FlavourReprise    = "reprise"
	FlavourFilesystem = "filesystem"
)

// SkillName is the skill's name in its front matter.
const SkillName = "reprise-memory"

// Skill returns the text of SKILL.md for a memory directory.
func Skill(flavour, memoryDir string) (string, error) {
	if flavour != FlavourReprise && flavour != FlavourFilesystem {
		return "", fmt.Errorf("make skill: unknown flavour %q; there are %q and %q", flavour, FlavourReprise, FlavourFilesystem)
	}
	if memoryDir == "" || strings.ContainsAny(memoryDir, "`\r\n") || !utf8.ValidString(memoryDir) {
		return "", fmt.Errorf("make skill: the memory directory %q cannot be named in it: it is no text (UTF-8), or has a line break or a backtick; memory.directory of the settings can name another", memoryDir)
	}
	t, err := template.New("skill").Option("missingkey=error").Parse(skillText)
	if err != nil {
		return "", fmt.Errorf("make skill: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, map[string]any{"Name": SkillName, "Dir": memoryDir, "Filesystem": flavour == FlavourFilesystem}); err != nil {
		return "", fmt.Errorf("make skill: %w", err)
	}
	return b.String(), nil
}

// PackSkill writes a zip with SKILL.md alone, as Claude's skill upload takes
// it. The same input gives the same bytes.
func PackSkill(w io.Writer, flavour, memoryDir string) error {
	text, err := Skill(flavour, memoryDir)
	if err != nil {
		return err
	}
	z := zip.NewWriter(w)
	// A fixed day, the first that the format can hold, so that bytes do not
	// depend on when it was packed. Stored, so that they do not depend on the
	// compressor's version either.
	f, err := z.CreateHeader(&zip.FileHeader{Name: "SKILL.md", Method: zip.Store, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		return fmt.Errorf("pack skill: %w", err)
	}
	if _, err := io.WriteString(f, text); err != nil {
		return fmt.Errorf("pack skill: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("pack skill: %w", err)
	}
	return nil
}

// PackSkill writes the skill zip for this directory.
func (s *Store) PackSkill(w io.Writer, flavour string) error { return PackSkill(w, flavour, s.o.Dir) }
