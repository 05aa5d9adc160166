package recall

import (
	"slices"
	"strings"
	"testing"
)

func TestClauses(t *testing.T) {
	for text, want := range map[string]string{
		"How do we back up the database and how often are restores rehearsed?": "How do we back up the database|how often are restores rehearsed",
		"Where is the kiln of Ana kept and who repaired the chimney":           "Where is the kiln of Ana kept|who repaired the chimney Ana",
		"Who owns billing tables? Which port does the gateway have?":           "Who owns billing tables| Which port does the gateway have",
		"データベースのポートは何番ですか、ログの保存期間はどのくらいですか":                                    "データベースのポートは何番ですか|ログの保存期間はどのくらいですか",
		"How did Marcus propose, and whose ring was it?":                       "", // the second says nothing alone
		"What do salt and pepper cost?":                                        "",
		"Which port does the database have?":                                   "",
		"kiln roof? kiln door? kiln floor? kiln wall?":                         "", // a list
		"":         "",
		"?and how": "",
		strings.Repeat("how is the kiln built and ", 2000): "",
	} {
		if got := strings.Join(clauses(text), "|"); got != want {
			t.Errorf("%.80q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzClauses(f *testing.F) {
	for _, s := range []string{"a? b?", "か、か、", " and how", "x; what y z and why b c", "？\xff？"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := clauses(s)
		if len(out) == 1 || len(out) > maxClauses {
			t.Fatalf("%q: %q", s, out)
		}
	})
}

// TestTwoQuestions: what is asked in one breath gets both answers, and the half that
// the memory speaks of where it speaks of one only.
func TestTwoQuestions(t *testing.T) {
	docs := append(filler(30),
		Doc{ID: "backup", Text: "The nightly backup of the ledger goes to the vault in Bern."},
		Doc{ID: "fuzz", Text: "Fuzz targets for article numbers run on the old build machine."})
	for i := range 12 {
		docs = append(docs, Doc{ID: "n" + string(rune('a'+i)), Text: "The nightly report of the ledger was late for reason " + string(rune('a'+i)) + "."})
	}
	x := memoryOf(t, docs...)
	got := strings.Fields(answerIDs(recallFrom(t, x, Question{Text: "Where does the nightly backup of the ledger go and which machine runs the fuzz targets?"})))
	for _, want := range []string{"backup", "fuzz"} {
		if i := slices.Index(got, want); i < 0 || i > 1 {
			t.Errorf("%s is not among the first two of %v", want, got)
		}
	}
	got = strings.Fields(answerIDs(recallFrom(t, x, Question{Text: "Which machine runs the fuzz targets and who shot the moose in Alaska?"})))
	if len(got) == 0 || got[0] != "fuzz" {
		t.Errorf("half a question: %v", got)
	}
	if got := answerIDs(recallFrom(t, x, Question{Text: "Which opera did Yvette sing and who shot the moose in Alaska?"})); got != "" {
		t.Errorf("no half of it is in the memory: %v", got)
	}
}
