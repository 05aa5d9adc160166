package cli_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/internal/cli"
)

// Whatever names a thing that is there is completed: the first argument of a command, and the
// value of a flag. What is made anew, or stands elsewhere, is named here with the reason.
func TestWhatNamesAThingIsCompleted(t *testing.T) {
	things := []string{"AGENT", "CLIENT", "ID", "ITEM", "ITEMS", "LABEL", "LABELS", "LANGUAGE", "LOOP", "NAME", "NUMBERS", "PROJECT", "RUN", "SESSION", "TOKEN"}
	made := map[string]string{
		"reprise checkpoint": "a new name", "reprise note": "a new name or an old one, as it comes", "reprise memory create": "a new name",
		"reprise mcp token create": "a new name", "reprise workspace create": "a new name", "reprise state fork": "a new name", "reprise state rename": "a new name", "reprise project rename": "a new name",
		"reprise state init --agent": "a new name", "--as": "a new name", "--gh-label": "of GitHub", "--id": "a new name", "--name": "a new name", "--get": "a file of a run elsewhere",
		"--worker": "a new name", "--with-server": "of the client's settings",
	}
	nothing := reflect.ValueOf(cobra.NoFileCompletions).Pointer()
	seen := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if words := strings.Fields(cmd.Use); len(words) > 1 {
			arg, _, _ := strings.Cut(strings.Trim(words[1], "[]."), "|")
			if (slices.Contains(things, arg) || arg == "A" || arg == "N") && made[cmd.CommandPath()] == "" {
				seen++
				if len(cmd.ValidArgs) == 0 && (cmd.ValidArgsFunction == nil || reflect.ValueOf(cmd.ValidArgsFunction).Pointer() == nothing) {
					t.Errorf("%s: nothing completes %s", cmd.CommandPath(), arg)
				}
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if kind := f.Value.Type(); kind == "int" || kind == "float64" || kind == "duration" {
				if _, ok := cmd.GetFlagCompletionFunc(f.Name); !ok {
					t.Errorf("%s: files are offered for --%s, which is a number", cmd.CommandPath(), f.Name)
				}
			}
			called, _ := pflag.UnquoteUsage(f)
			if made["--"+f.Name] != "" || made[cmd.CommandPath()+" --"+f.Name] != "" || !slices.Contains(things, called) && called != "TASK" {
				return
			}
			seen++
			if _, ok := cmd.GetFlagCompletionFunc(f.Name); !ok {
				t.Errorf("%s: nothing completes --%s %s", cmd.CommandPath(), f.Name, called)
			}
		})
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				walk(sub)
			}
		}
	}
	walk(cli.Tree())
	if seen < 60 {
		t.Errorf("%d names were found: the test looks at too little", seen)
	}
}
