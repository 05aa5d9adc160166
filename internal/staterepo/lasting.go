package staterepo

import (
	"slices"
	"strings"
	"unicode"

	"reprise/internal/mdfile"
)

// Doubt is why a learning may be none. The zero value is no doubt.
type Doubt struct {
	Why string `json:"why"` // one sentence, for whoever wrote it
	// Log is the entry of the log that it should rather be; nil where it should
	// rather be said in other words.
	Log *mdfile.Entry `json:"log,omitempty"`
}

// GoodLearnings says what is worth keeping, with examples, for the texts of tools
// and commands that take learnings.
const GoodLearnings = `Worth keeping is what says what to do or to expect, and holds next time:
  Run the linter before a commit: the hook rejects it otherwise.
  workspace.go is where to begin: everything else calls it.
  Tokens need both checks, expiry and signature.
What was only done ("added X", "fixed a typo") is an entry of the log.`

// CheckLearning looks whether a text says something that holds next time, or only
// what was done. It would rather let a report pass than doubt a learning: who
// tells what they did and adds what follows from it, has learnt something.
func CheckLearning(text string) Doubt {
	title := mdfile.Entry{Text: text}.Title()
	lower := strings.ToLower(text)
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '’' && r != '-' && r != '_' && r != '.' && r != '/'
	})
	for i, w := range words {
		words[i] = strings.ReplaceAll(strings.Trim(w, ".'"), "’", "'")
	}
	if reportsWork(words, title) && !follows(lower) {
		return Doubt{
			Why: "this tells what was done, and not what to do or to expect; it is an entry of the log",
			Log: &mdfile.Entry{Type: mdfile.TypeImplement, Status: "completed", Text: text},
		}
	}
	letters := 0
	for _, r := range title {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	wide := strings.ContainsFunc(title, func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) })
	if len(strings.Fields(text)) < 3 && !wide || letters < 6 {
		return Doubt{Why: "this is too short to mean anything next time; say what to do or to expect, and where"}
	}
	return Doubt{}
}

// reportsWork says that a title tells of work that was done.
func reportsWork(words []string, title string) bool {
	if kind, _, ok := strings.Cut(title, ":"); ok { // as the titles of commits are
		kind, _, _ = strings.Cut(strings.TrimSuffix(strings.ToLower(kind), "!"), "(")
		if slices.Contains([]string{"feat", "fix", "chore", "refactor", "docs", "test", "style", "perf", "build", "ci", "wip", "done"}, kind) {
			return true
		}
	}
	for len(words) > 0 && slices.Contains([]string{"i", "we", "have", "has", "i've", "we've", "just", "also", "now", "finally", "successfully", "today", "then"}, words[0]) {
		words = words[1:]
	}
	if len(words) > 0 && workDone(words[0]) {
		return true
	}
	for i, w := range words {
		if i > 0 && i < 8 && workDone(w) {
			switch words[i-1] {
			case "was", "were", "been":
				return true
			case "now":
				return i > 1 && (words[i-2] == "is" || words[i-2] == "are")
			}
		}
	}
	for _, end := range []string{"追加した", "修正した", "実装した", "更新した", "削除した", "変更した", "作成した", "追加しました", "修正しました", "実装しました", "更新しました", "削除しました", "変更しました", "作成しました"} {
		if strings.HasSuffix(strings.TrimRight(title, "。． "), end) {
			return true
		}
	}
	return false
}

func workDone(word string) bool {
	switch word {
	case "added", "fixed", "implemented", "updated", "removed", "renamed", "refactored", "moved", "wrote", "created", "changed", "finished", "done",
		"completed", "deleted", "merged", "committed", "pushed", "deployed", "released", "upgraded", "bumped", "cleaned", "rewrote", "rewritten", "written",
		"converted", "migrated", "replaced", "reverted", "corrected", "improved", "extended", "introduced", "integrated", "resolved", "adjusted", "tweaked", "extracted", "split", "reformatted", "formatted", "documented":
		return true
	}
	return false
}

// follows says that a text, in lower case, says what follows from what was done.
func follows(text string) bool {
	for _, w := range []string{
		"always", "never", "must", "should", "need", "because", "otherwise", "instead", "unless", "don't", "do not", "cannot", "can't", "won't", "before ", "after ", "when ", "whenever",
		"if ", "requires", "only ", "so that", "turns out", "turned out", "learnt", "learned", "remember", "avoid", "make sure", "beware", "fails", "breaks", "depends on", "rather than",
		"べき", "必要", "必ず", "常に", "しない", "ため", "ので", "とき", "場合", "注意",
	} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
