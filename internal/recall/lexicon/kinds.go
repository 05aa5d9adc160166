package lexicon

import (
	_ "embed"
	"strings"
)

// kindsTable is made of kinds.txt by this package's tests with -update: a line a
// kind of thing that a project has one of, its parts with tabs between: the phrases
// that name it (stemmed, ";" between; those with "?" before them are words of everyday
// talk, too), the attributes of package fact that say which
// it is (";" between), and the stems of its members. It is searched as it stands.
//
//go:embed kinds.tab
var kindsTable string

// Kind is a kind of thing that a question names, such as "package manager".
type Kind struct {
	Words      []string // the stems of the phrase that names it
	Members    []string // stems of what it can be
	Attributes []string // of statements that say which it is; see package fact
}

// Kinds are those that a text names, given its stems in their order, without parts.
// Of two phrases of one kind the longer one counts. A word of everyday talk names a
// kind only where the text asks what is used.
func Kinds(stems []string) []Kind {
	if len(stems) == 0 {
		return nil
	}
	text := " " + strings.Join(stems, " ") + " "
	used := contains(text, "use") || contains(text, "we") || contains(text, "our") || contains(text, "使")
	var out []Kind
	for rest := kindsTable; rest != ""; {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		phrases, tail, _ := strings.Cut(line, "\t")
		best := ""
		for phrases != "" {
			var p string
			p, phrases, _ = strings.Cut(phrases, ";")
			p, weak := strings.CutPrefix(p, "?")
			if (used || !weak) && len(p) > len(best) && contains(text, p) {
				best = p
			}
		}
		if best == "" {
			continue
		}
		attributes, members, _ := strings.Cut(tail, "\t")
		k := Kind{Words: strings.Fields(best), Members: strings.Fields(members)}
		if attributes != "" {
			k.Attributes = strings.Split(attributes, ";")
		}
		out = append(out, k)
	}
	return out
}

// contains says that a text that begins and ends with a space has a phrase.
func contains(text, phrase string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], phrase)
		if i < 0 {
			return false
		}
		i += from
		if text[i-1] == ' ' && text[i+len(phrase)] == ' ' {
			return true
		}
		from = i + 1
	}
}
