package scopes

import (
	"strings"
	"testing"
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
