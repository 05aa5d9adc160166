package cli

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

// withoutJSON are the commands that have no --json, by why they need none.
var withoutJSON = map[string][]string{
	"it does something, and its exit code says whether": {
		"artifact add", "config set", "config unset", "context set", "delegation reset", "gates reset", "guard approve", "guard deny", "init", "judge reset", "log copy",
		"loop ask", "loop interrupt", "loop notify", "loop pause", "loop progress", "loop resume", "loop stop", "memory init", "memory summarize", "note",
		"project rename", "runs cancel", "runs extend", "runs gc", "runs wait", "state archive", "state fork", "state init", "state rename", "state reset",
		"state hooks install", "state hooks remove", "task abandon", "task block", "task edit", "task errors add", "task phase", "task recover", "task todo",
		"handoff accept", "mcp token create", "mcp token revoke", "index rebuild", "worker prepare",
	},
	"it prints a text, a file or a path as it is": {
		"bug-report", "config get", "completion bash", "completion fish", "completion powershell", "completion zsh", "events export", "hook record", "hook schema",
		"loop bootstrap", "loop logs", "mcp bundle", "memory pack-skill", "memory path", "runs files", "runs logs", "scratch", "scratch show",
		"state plan", "state plan show", "state branch", "state branch show", "state hooks", "help", "hook", "loop metrics", "task context",
	},
	"a person looks on, or types into it": {"demo", "loop run", "watch", "web", "worker", "workspace enter", "mcp", "reprise"},
}

// Whatever prints data prints it for programs, too.
func TestDataIsPrintedForPrograms(t *testing.T) {
	var exempt []string
	for _, list := range withoutJSON {
		exempt = append(exempt, list...)
	}
	seen := map[string]bool{}
	var walk func(cmd *cobra.Command, path string)
	walk = func(cmd *cobra.Command, path string) {
		seen[path] = true
		if cmd.Annotations[onlyGroup] == "" && cmd.Flag("json") == nil && !slices.Contains(exempt, path) {
			t.Errorf("`reprise %s` has no --json, and nothing says why it needs none", path)
		}
		for _, sub := range cmd.Commands() {
			if !sub.IsAvailableCommand() {
				continue
			}
			if cmd.HasParent() {
				walk(sub, path+" "+sub.Name())
			} else {
				walk(sub, sub.Name())
			}
		}
	}
	walk(Tree(), "reprise")
	for _, path := range exempt {
		if !seen[path] && path != "help" {
			t.Errorf("there is no command `reprise %s` any more: take it out of the list", path)
		}
	}
}
