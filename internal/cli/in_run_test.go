package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Whoever adds a command says whether a run may call it: what bounds a run, and what others
// have begun, is a person's to decide.
func TestEachCommandSaysWhetherRunsMay(t *testing.T) {
	t.Parallel()
	there := map[string]bool{"help": true}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if name := commandName(cmd); cmd.HasParent() && (cmd.Run != nil || cmd.RunE != nil) {
			there[name] = true
			if inRuns[name] == 0 && !cmd.HasSubCommands() && !strings.HasPrefix(name, "completion") && !strings.HasPrefix(name, "hook ") {
				t.Errorf("inRuns says nothing of `reprise %s`", name)
			}
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(newRoot(&App{}, commands()))
	for name, rule := range inRuns {
		if rule >= runsToken && !there[name] {
			t.Errorf("inRuns has `reprise %s`, and there is no such command", name)
		}
	}
}
