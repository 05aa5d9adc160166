package recall

import (
	"slices"
	"strings"
	"testing"

	"reprise/internal/fact"
	"reprise/internal/recall/lexicon"
)

// TestKindsOfThings: a question for what a project has one of finds what says which
// one it is, without a word in common, and nothing where nothing does.
func TestKindsOfThings(t *testing.T) {
	docs := filler(30)
	for id, text := range map[string]string{
		"pm": "We use pnpm, not npm.", "fail": "`pnpm install` failed with ERR_PNPM_OUTDATED_LOCKFILE in a hurry of three people.",
		"db": "データはMariaDBに置く。", "branch": "The default branch is trunk.", "port": "The gateway listens on 4180.",
	} {
		docs = append(docs, Doc{ID: id, Text: text, Class: ClassDecision, Author: "user", Facts: fact.Find(text)})
	}
	x := memoryOf(t, docs...)
	for q, want := range map[string]string{
		"which package manager do we use":     "pm",
		"What is our package manager?":        "pm",
		"パッケージマネージャーは何を使っていますか":               "pm",
		"which database do we use?":           "db",
		"データベースは何ですか":                         "db",
		"What is the default branch?":         "branch",
		"What port does the gateway have?":    "port",
		"which CI do we use?":                 "",
		"What is our issue tracker?":          "",
		"テストランナーは何を使いますか":                     "",
		"which branch of the bank do we use?": "",
	} {
		if got, _, _ := strings.Cut(answerIDs(recallFrom(t, x, Question{Text: q})), " "); got != want {
			t.Errorf("%q: %q comes first, want %q", q, got, want)
		}
	}
}

// TestKindsAndFacts: what package fact knows to be a database is one here, too.
func TestKindsAndFacts(t *testing.T) {
	seen := 0
	for _, m := range strings.Fields("npm pnpm yarn bun pip poetry uv jest vitest pytest unittest postgres mysql sqlite mongodb tabs spaces prettier biome black " +
		"webpack vite esbuild gradle bazel jenkins circleci slack discord jira linear terraform pulumi") {
		var stem string
		lexicon.Words(m, func(w lexicon.Word) bool { stem = w.Term; return false })
		for _, f := range fact.Find("We use " + m + ".") {
			seen++
			stems := []string{"we"}
			lexicon.Words(f.Attribute, func(w lexicon.Word) bool { stems = append(stems, w.Term); return true })
			if !slices.ContainsFunc(lexicon.Kinds(stems), func(k lexicon.Kind) bool {
				return slices.Contains(k.Members, stem) && ofAttribute(f.Attribute, k.Attributes)
			}) {
				t.Errorf("%s is a %s for package fact, and not in the table of kinds", m, f.Attribute)
			}
		}
	}
	if seen < 25 {
		t.Errorf("only %d statements were found", seen)
	}
}
