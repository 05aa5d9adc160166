package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestChosen: each command is found by its word, and alone it is what it is among all.
func TestChosen(t *testing.T) {
	whole := Tree()
	for _, c := range commands() {
		list := chosen([]string{c.word, "--help"})
		if len(list) != 1 {
			t.Fatalf("for %s these are made: %d commands", c.word, len(list))
		}
		alone := newRoot(&App{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, list)
		for _, cmd := range alone.Commands() {
			if cmd.Name() != c.word && cmd.Name() != "help" {
				t.Errorf("by the word %s %s is made", c.word, cmd.Name())
			}
		}
		same(t, alone, whole, c.word)
	}
	for _, args := range [][]string{nil, {"--version"}, {"help", "queue"}, {"hooks"}, {"completion", "bash"}, {"queu"}} {
		if got := len(chosen(args)); got != len(commands()) {
			t.Errorf("for %q %d commands are made, want all", args, got)
		}
	}
}

// same compares the help of a command, and of all below it, in two trees.
func same(t *testing.T, one, other *cobra.Command, path ...string) {
	t.Helper()
	a, _, err := one.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := other.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := HelpText(a)
	if err != nil {
		t.Fatal(err)
	}
	want, err := HelpText(b)
	if err != nil {
		t.Fatal(err)
	}
	if got != want || a.CommandPath() != b.CommandPath() {
		t.Errorf("%s alone says\n%s\namong all\n%s", b.CommandPath(), got, want)
	}
	for _, sub := range b.Commands() {
		same(t, one, other, append(path[:len(path):len(path)], sub.Name())...)
	}
}
