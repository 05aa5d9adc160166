package scopes

import (
	"strings"
	"testing"

	"reprise/internal/mdfile"
)

// A table that reprise makes of the entries is nothing to remember beside them; what people
// wrote around it is.
func TestGeneratedIsNotRemembered(t *testing.T) {
	const table = "<!-- reprise: agents -->\n| Agent | Status |\n|---|---|\n| tidy | completed |\n<!-- /reprise: agents -->\n"
	for _, c := range []struct{ text, want string }{
		{"# Changelog\n\n" + table, ""},
		{"# Changelog\n\nAsk Ada first.\n" + table + "And Ben.\n", "Ask Ada first.\nAnd Ben."},
		{"# Changelog\n" + table + table, ""},
		{"# Notes\n<!-- reprise: agents -->\nnever ended", "<!-- reprise: agents -->\nnever ended"},
		{"# Notes\n<!-- a note -->\ntext", "<!-- a note -->\ntext"},
	} {
		docs, err := EntryDocs([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range docs {
			got = append(got, d.Text)
		}
		if s := strings.Join(got, "\n"); s != c.want {
			t.Errorf("of %q is remembered %q, want %q", c.text, s, c.want)
		}
	}
}

// An entry that was made of a pattern, or of another entry, has its id among its keys: by
// that recall serves one of the two.
func TestEntryNamesWhatItWasMadeOf(t *testing.T) {
	for source, want := range map[string]string{"pattern:pt-1": "pt-1", "entry:e-1": "e-1", sourceHand: "", "import": ""} {
		d := EntryDoc(mdfile.Entry{ID: "e-2", Type: mdfile.TypeLearning, Source: source, Text: "x"}, mdfile.State{})
		if got := strings.Join(d.Keys, " "); got != want {
			t.Errorf("%s: keys %q", source, got)
		}
	}
}
