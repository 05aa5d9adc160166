package recall

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"reprise/internal/mdfile"
)

// sectionDocs cuts a file of a memory directory into documents. The id of a section is a hash of the file, its
// headings, and its number among sections with the same headings, so that it
// outlives edits elsewhere and in its text.
func (x *Index) sectionDocs(p *place, name string, data []byte) ([]*entry, error) {
	f, _ := mdfile.Readable(data)
	front, _ := f.Map() // one that cannot be read says nothing
	base := Doc{Class: classOf(name), Scope: scopeGlobal, Project: p.project, Group: "file:" + p.project + ":" + name, Author: frontText(front, "author"),
		Time: frontTime(front, "updated", "created"), Review: frontTime(front, "review_after"), Confidence: frontNumber(front, "confidence")}
	if p.project != "" {
		base.Scope = scopeProject
	}
	stem := strings.TrimSuffix(strings.TrimPrefix(name, "blocks/"), path.Ext(name))
	var out []*entry
	seen := map[string]int{}
	add := func(line int, headings, text string) error {
		d := base
		seen[headings]++
		d.ID = fileID(p.project, name, headings, seen[headings])
		d.Ord, d.Source = len(out), p.shown(name)+":"+strconv.Itoa(line)
		d.Title, d.Text = stem, text
		if headings != "" {
			d.Title += " > " + headings
		}
		if t, ok := leadingTime(headings); ok && strings.HasPrefix(stem, "episodic-") {
			d.Time = t
		}
		if x.o.Facts != nil {
			d.Facts = x.o.Facts(d.Title, text)
		}
		e, err := makeEntry(d, 0, line)
		if err == nil {
			out = append(out, e)
		}
		return err
	}
	if tags := tagsOf(front); tags != "" {
		if err := add(1, "", "tags: "+tags); err != nil {
			return nil, err
		}
	}
	for _, s := range f.Sections() {
		if err := cutSection(f.Bytes(), s, add); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// cutSection gives a section in pieces of at most maxSection bytes, cut at
// lines where there are any.
func cutSection(data []byte, s mdfile.Section, add func(line int, headings, text string) error) error {
	headings := strings.Join(s.Path, " > ")
	line := s.Line
	body := string(data[s.Text:s.End])
	if s.Level > 0 {
		body = strings.TrimRight(body, " \t\r\n")
	}
	for {
		piece := body
		if len(piece) > maxSection {
			cut := strings.LastIndexByte(piece[:maxSection], '\n')
			if cut <= 0 {
				cut = maxSection
				for cut > 0 && piece[cut]&0xc0 == 0x80 {
					cut--
				}
			}
			piece = piece[:cut]
		}
		if err := add(line, headings, piece); err != nil {
			return err
		}
		body = body[len(piece):]
		if len(body) == 0 {
			return nil
		}
		if line == s.Line && s.Text > s.Start {
			line += strings.Count(string(data[s.Start:s.Text]), "\n")
		}
		line += strings.Count(piece, "\n")
	}
}

// entryDocs makes documents of a file of entries.
func (x *Index) entryDocs(p *place, f EntryFile, data []byte) ([]*entry, error) {
	if f.Parse == nil {
		return nil, fmt.Errorf("nothing reads entries of %s", f.Name)
	}
	docs, err := f.Parse(data)
	if err != nil {
		return nil, err
	}
	var out []*entry
	seen := map[string]int{}
	for i, d := range docs {
		line, _ := strconv.Atoi(d.Source)
		d.Source = p.shown(f.Name)
		if line > 0 {
			d.Source += ":" + strconv.Itoa(line)
		}
		if d.Class == "" {
			d.Class = f.Class
		}
		if d.Project == "" {
			d.Project = p.project
		}
		if d.ID == "" {
			same := d.Title + "\x00" + d.Text
			seen[same]++
			d.ID = fileID(p.project, f.Name, same, seen[same])
		}
		d.Group, d.Ord = "file:"+p.project+":"+f.Name, i
		e, err := makeEntry(d, 0, line)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func fileID(project, name, what string, number int) string {
	sum := sha256.Sum256([]byte(project + "\x00" + name + "\x00" + what + "\x00" + strconv.Itoa(number)))
	return "file-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

func classOf(name string) Class {
	switch name {
	case coreFile:
		return ClassCore
	case indexFile:
		return ClassIndex
	case "blocks/decisions.md":
		return ClassDecision
	}
	return ClassBlock
}

func frontText(front map[string]any, key string) string {
	s, _ := front[key].(string)
	return s
}

func frontNumber(front map[string]any, key string) float64 {
	switch v := front[key].(type) {
	case float64:
		return v
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	case string:
		n, _ := strconv.ParseFloat(v, 64)
		return n
	}
	return 0
}

// frontTime is the first of the keys that has a time or a date.
func frontTime(front map[string]any, keys ...string) time.Time {
	for _, k := range keys {
		switch v := front[k].(type) {
		case time.Time:
			return v.UTC()
		case string:
			if t, ok := leadingTime(v); ok {
				return t
			}
		}
	}
	return time.Time{}
}

// leadingTime reads a time or a date at the start of a text.
func leadingTime(s string) (time.Time, bool) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.UTC(), true
	}
	if i := strings.LastIndex(s, " > "); i >= 0 {
		s = s[i+3:]
	}
	if len(s) >= 10 {
		if t, err := time.Parse(time.DateOnly, s[:10]); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func tagsOf(front map[string]any) string {
	switch v := front["tags"].(type) {
	case string:
		return v
	case []any:
		var tags []string
		for _, t := range v {
			tags = append(tags, fmt.Sprint(t))
		}
		return strings.Join(tags, " ")
	}
	return ""
}
