package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/internal/agent/dialect"
	"reprise/internal/config"
	"reprise/internal/event/quick"
)

// clientNames has a flag that names a client take each name that the client goes by: setup
// calls claude-code what a session's events are of claude.
func clientNames(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if called, _ := pflag.UnquoteUsage(f); f.Name != "client" && called != "CLIENT" {
			return
		}
		var ferr error
		if list, ok := f.Value.(pflag.SliceValue); ok {
			names := list.GetSlice()
			for i, n := range names {
				names[i] = clientName(n)
			}
			ferr = list.Replace(names)
		} else {
			ferr = f.Value.Set(clientName(f.Value.String()))
		}
		err = errors.Join(err, ferr)
	})
	return err
}

// noneNegative refuses a number or a time below 0, which none of our flags can mean: how
// many, how long, which one.
func noneNegative(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if kindOf(f) != "" && strings.HasPrefix(strings.TrimPrefix(f.Value.String(), "["), "-") && err == nil {
			err = usagef("--%s %s is negative", f.Name, f.Value)
		}
	})
	return err
}

// noneEmpty refuses an empty word in the place of one that may be left out: it comes of a
// variable that is not set, and would be taken for all, or for any.
func noneEmpty(cmd *cobra.Command, args []string) error {
	_, use, _ := strings.Cut(cmd.Use, " ")
	for i, word := range strings.Fields(use) {
		if i < len(args) && args[i] == "" && strings.HasPrefix(word, "[") {
			return usagef("%s is empty: give one, or leave it out", strings.Trim(word, "[]."))
		}
	}
	return nil
}

// kindOf is what a flag of numbers takes, in words; "" of another flag.
func kindOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int64":
		return "a whole number"
	case "float64":
		return "a number"
	case "duration":
		return "a time such as 90s, 30m or 4h"
	case "intSlice":
		return "whole numbers with commas between them"
	}
	return ""
}

// clientName is the name of a client that we know, by whichever it was called; another is
// left as it is, for who asks for it to say what there is.
func clientName(given string) string {
	if name := quick.Client(given); slices.Contains(dialect.Clients(), name) || slices.Contains(config.RouteClients(), name) {
		return name
	}
	return given
}

// flagError says what is wrong with a command's flags: of one that there is not which ones are
// near, and of a value that was taken for one how it is given.
func flagError(cmd *cobra.Command, err error) error {
	hint := ""
	if e := (*pflag.InvalidValueError)(nil); errors.As(err, &e) {
		if kind := kindOf(e.GetFlag()); kind != "" { // what Go's own functions say of it helps nobody
			err = fmt.Errorf("--%s takes %s, not %q", e.GetFlag().Name, kind, clipText(e.GetValue(), 60))
		}
	}
	if e := (*pflag.NotExistError)(nil); errors.As(err, &e) {
		if short := e.GetSpecifiedShortnames(); short != "" {
			hint = shorthandHint(cmd, e.GetSpecifiedName(), short)
		} else {
			hint = didYouMean(nearFlags(cmd, e.GetSpecifiedName()))
			if hint == "" && below(cmd, e.GetSpecifiedName()) > 0 {
				hint = fmt.Sprintf("\nIt stands after a command: `%s COMMAND --%s`", cmd.CommandPath(), e.GetSpecifiedName())
			}
		}
	}
	return usagef("%w%s\nSee `%s --help`.", err, hint, cmd.CommandPath())
}

// shorthandHint is of the letter that no flag of cmd has, in the word -short.
func shorthandHint(cmd *cobra.Command, letter, short string) string {
	switch {
	case strings.Contains(".0123456789", letter): // no flag of ours is called so
		return fmt.Sprintf("\nIf -%s is a value and no flag, put -- before it: `%s … -- -%s`", short, cmd.CommandPath(), short)
	case len(short) > 2: // -json, as other programs have it
		name, _, _ := strings.Cut(short, "=")
		return didYouMean(nearFlags(cmd, name))
	}
	return ""
}

func didYouMean(near []string) string {
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf("\nDid you mean %s?", strings.Join(near, " or "))
}

// below is how many of the commands below cmd have a flag.
func below(cmd *cobra.Command, flag string) (n int) {
	for _, sub := range cmd.Commands() {
		if f := sub.Flags().Lookup(flag); f != nil && !f.Hidden && sub.IsAvailableCommand() {
			n++
		}
	}
	return n
}

// mostNear bounds how many flags are proposed.
const mostNear = 3

// nearFlags are the flags of cmd that are spelled nearly like a word, and where there is
// none those of the commands below it that are spelled so.
func nearFlags(cmd *cobra.Command, word string) []string {
	words := &cobra.Command{SuggestionsMinimumDistance: 2}
	if len(word) < 4 { // of a short word another short one is as near
		words.SuggestionsMinimumDistance = 1
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Deprecated == "" {
			words.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	near := words.SuggestionsFor(word)
	for i, name := range near {
		near[i] = "`--" + name + "`"
	}
	if len(near) == 0 {
		for _, sub := range cmd.Commands() {
			if f := sub.Flags().Lookup(word); f != nil && !f.Hidden && sub.IsAvailableCommand() {
				near = append(near, "`"+sub.CommandPath()+" --"+word+"`")
			}
		}
	}
	slices.Sort(near)
	if near = slices.Compact(near); len(near) > mostNear {
		return nil // as of a single letter, or of "json" at a group: it says nothing
	}
	return near
}
