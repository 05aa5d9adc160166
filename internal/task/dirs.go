package task

import (
	"path/filepath"
	"strings"
)

// withoutDirs takes directories out of a text, each with what stands for it: a file below
// one is named from there, "" standing for that directory itself, which is then "." where
// it is named alone. The longest counts. An empty directory, or the top one, is none.
func withoutDirs(text string, dirs [][2]string) string {
	var known [][2]string
	for _, d := range dirs {
		if len(d[0]) < 2 || filepath.Dir(d[0]) == d[0] {
			continue
		}
		known = append(known, [2]string{filepath.Clean(d[0]), d[1]})
		if slash := filepath.ToSlash(filepath.Clean(d[0])); slash != filepath.Clean(d[0]) {
			known = append(known, [2]string{slash, d[1]})
		}
	}
	var out strings.Builder
	for at := 0; at < len(text); {
		found := dirAt(text, at, known)
		if found == nil {
			out.WriteByte(text[at])
			at++
			continue
		}
		at += len(found[0])
		switch below := at < len(text) && (text[at] == '/' || text[at] == '\\'); {
		case found[1] != "":
			out.WriteString(found[1])
		case below && at+1 < len(text) && inName(text[at+1]):
			at++
		default:
			out.WriteByte('.')
		}
	}
	return out.String()
}

// dirAt is the longest of some directories that is named at a place of a text.
func dirAt(text string, at int, dirs [][2]string) *[2]string {
	if at > 0 && (inName(text[at-1]) || text[at-1] == '/' || text[at-1] == '\\') && !strings.HasSuffix(text[:at], "://") {
		return nil // a part of a longer name
	}
	var found *[2]string
	for i, d := range dirs {
		rest, ok := strings.CutPrefix(text[at:], d[0])
		if !ok || rest != "" && inName(rest[0]) && !endsSentence(rest) || found != nil && len(found[0]) > len(d[0]) {
			continue
		}
		found = &dirs[i]
	}
	return found
}

// endsSentence reports whether a text begins with the point that ends a sentence.
func endsSentence(text string) bool { return text[0] == '.' && (len(text) == 1 || !inName(text[1])) }

// inName reports whether a byte may be part of a file's name that people write unquoted.
func inName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c >= 0x80
}
