package cli

import (
	"bytes"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Tree is the whole command line, for what describes it: reference pages, manual
// pages. Its commands are not to be run: nothing of the world stands behind them.
func Tree() *cobra.Command {
	return newRoot(&App{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, commands())
}

// HelpText is what `COMMAND --help` prints.
func HelpText(cmd *cobra.Command) (string, error) {
	var b bytes.Buffer
	cmd.SetOut(&b)
	err := cmd.Help()
	return b.String(), err
}
