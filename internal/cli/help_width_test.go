package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"reprise/internal/term"
)

// Help is read in a terminal of 80 columns: its prose is broken between words there. What is
// indented is an example, and stays whole.
func TestHelpFitsATerminal(t *testing.T) {
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			look(sub)
		}
		text, err := HelpText(cmd)
		if err != nil {
			t.Fatal(err)
		}
		description, _, _ := strings.Cut(text, "\nUsage:")
		_, commands, _ := strings.Cut(text, "\nCommands:")
		commands, _, _ = strings.Cut(commands, "\n\n")
		for line := range strings.SplitSeq(description+"\n"+commands, "\n") {
			if term.Width(line) >= helpWidth && !strings.HasPrefix(line, "    ") && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s --help has a line of %d columns: %s", cmd.CommandPath(), term.Width(line), line)
			}
		}
	}
	look(Tree())
}

func TestFolded(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"short":                              "short",
		"two\nshort":                         "two\nshort",
		"words that are too many for a line": "words that\nare too\nmany for a\nline",
		"a\n\nwords that are too many\n\nb":  "a\n\nwords that\nare too\nmany\n\nb",
		"- words that are many\n- b":         "- words\n  that are\n  many\n- b",
		"x\n  an example that is long\ny":    "x\n  an example that is long\ny",
	} {
		if got := folded(text, 10); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
