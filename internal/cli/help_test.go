package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// No help says a flag's default twice, or an empty one, and there is none that says what
// means "not given" as if it were one.
func TestHelpSaysDefaultsOnce(t *testing.T) {
	seen := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			one := pflag.NewFlagSet("", pflag.ContinueOnError)
			one.AddFlag(f)
			n := strings.Count(one.FlagUsages(), "(default")
			seen += n
			if n > 1 || strings.Contains(one.FlagUsages(), "(default )") {
				t.Errorf("%s --%s says %d defaults: %s", cmd.CommandPath(), f.Name, n, one.FlagUsages())
			}
		})
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(Tree())
	if seen < 50 {
		t.Errorf("only %d defaults were looked at", seen)
	}
}

// What has nothing to say is a wrong word on the command line, in every command that keeps
// a text.
func TestEmptyTextIsUsage(t *testing.T) {
	app := &App{In: strings.NewReader(" \n\t")}
	for _, text := range []string{"", "  ", "\n", "-"} {
		var said *ExitError
		if _, err := saidArg(t.Context(), app, text); !errors.As(err, &said) || said.Code != ExitUsage {
			t.Errorf("%q: %v", text, err)
		}
	}
	if got, err := saidArg(t.Context(), app, "x "); got != "x " || err != nil {
		t.Errorf("%q %v", got, err)
	}
}
