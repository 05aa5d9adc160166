package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/clip"
	"reprise/internal/term"
)

// helpWidth is how wide the flags' help is: what fits everywhere.
const helpWidth = 80

// finish gives every command below cmd, and cmd itself, the same manners: a
// group without a command shows its help, a word that is no command is refused
// with the nearest one, wrong arguments are answered with the right form, and
// the help fits a terminal.
func finish(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		finish(sub)
	}
	if cmd.Hidden {
		return
	}
	if cmd.HasSubCommands() && cmd.Run == nil && cmd.RunE == nil {
		cmd.Args = onlyCommands
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		cmd.Annotations = map[string]string{onlyGroup: "yes"}
	} else if !cmd.HasSubCommands() && cmd.Args != nil {
		cmd.Args = checkedArgs(cmd.Args)
	}
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !strings.Contains(cmd.Use, "[FILE]") {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.SetUsageFunc(usage)
	cmd.SetHelpFunc(help)
}

// onlyGroup annotates a command that does nothing but hold others.
const onlyGroup = "only-group"

func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(cmd, args[0])
}

// unknownCommand says that word is no command of cmd, and which ones are near.
func unknownCommand(cmd *cobra.Command, word string) error {
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	near := cmd.SuggestionsFor(word)
	for i, name := range near {
		near[i] = fmt.Sprintf("`%s %s`", cmd.CommandPath(), name)
	}
	if !cmd.HasParent() || len(near) == 0 { // a word that says what is wanted, and stands elsewhere
		for _, path := range elsewhereNamed(cmd.Root(), strings.ToLower(word)) {
			near = append(near, "`"+path+"`")
		}
	}
	slices.Sort(near)
	return usagef("`%s` has no command %q%s\nSee `%s --help`.", cmd.CommandPath(), word, didYouMean(slices.Compact(near)), cmd.CommandPath())
}

// otherWords are words that people try first, and what does that here.
var otherWords = map[string][]string{
	"remember": {"learn", "memory create"}, "search": {"recall"}, "find": {"recall"}, "ask": {"recall"}, "forget": {"memory forget"},
	"uninstall": {"setup --remove"}, "remove": {"setup --remove"}, "install": {"setup"}, "connect": {"setup"},
	"update": {"upgrade"}, "check": {"doctor"}, "todo": {"task list"}, "tasks": {"task list"}, "start": {"loop run"}, "dashboard": {"web"},
	"settings": {"config show"}, "logs": {"runs logs"}, "ps": {"runs list"}, "kill": {"runs cancel"}, "stop": {"loop stop"},
	"run": {"loop run", "spawn"}, "status": {"status"}, // in a group: of the program as a whole
}

// nearWord is the one of otherWords that a word is, or was meant to be.
func nearWord(word string) string {
	if _, ok := otherWords[word]; ok {
		return word
	}
	words := &cobra.Command{SuggestionsMinimumDistance: 2}
	for w := range otherWords {
		if len(w) > 4 { // of a short one another short word is as near
			words.AddCommand(&cobra.Command{Use: w, Run: func(*cobra.Command, []string) {}})
		}
	}
	if near := words.SuggestionsFor(word); len(near) == 1 {
		return near[0]
	}
	return ""
}

// elsewhereNamed are the commands below other commands that have a name, and those that
// do what the word says.
func elsewhereNamed(root *cobra.Command, word string) []string {
	var out []string
	for _, words := range otherWords[nearWord(word)] {
		out = append(out, root.CommandPath()+" "+words)
	}
	said := slices.Clone(out)
	var below func(*cobra.Command)
	below = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if !sub.IsAvailableCommand() {
				continue
			}
			if cmd != root && sub.Name() == word {
				out = append(out, sub.CommandPath())
			}
			below(sub)
		}
	}
	below(root)
	slices.Sort(out)
	if out = slices.Compact(out); len(out) > 4 { // as of "list", which says nothing
		return said
	}
	return out
}

// newHelpCmd is cobra's help command, but for words that name no command: they
// are refused.
func newHelpCmd(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND ...]", Short: "Help about any command",
		Long: "Print the help of a command, as `reprise COMMAND --help` does.",
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			of, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var words []string
			for _, sub := range of.Commands() {
				if sub.IsAvailableCommand() {
					words = append(words, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			of, rest, err := root.Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknownCommand(of, rest[0])
			}
			return of.Help()
		},
	}
}

// checkedArgs is check with an error that says which argument is missing, or
// which is too much, in the words of the command's own usage line.
func checkedArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			return nil
		}
		_, form, _ := strings.Cut(cmd.Use, " ")
		needed := strings.Fields(form)
		if i := slices.IndexFunc(needed, func(s string) bool { return strings.HasPrefix(s, "[") }); i >= 0 {
			needed = needed[:i]
		}
		var what string
		switch {
		case len(args) < len(needed):
			what = strings.Join(needed[len(args):], " and ") + " is missing"
			if len(needed)-len(args) > 1 {
				what = strings.Join(needed[len(args):], " and ") + " are missing"
			}
		case len(args) == 0 || len(needed) > 0 && len(args) == len(needed):
			what = err.Error() // it is not their number
		case len(needed) == 0 && form == "":
			what = fmt.Sprintf("it takes no argument, and got %q", args[0])
		default:
			what = fmt.Sprintf("%q is one argument too many; text with spaces needs quotes around it", args[min(max(len(needed), 1), len(args)-1)])
		}
		name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
		return usagef("%s: %s\nUsage: %s\nSee `%s --help`.", name, what, cmd.UseLine(), cmd.CommandPath())
	}
}

// help prints what `COMMAND --help` says: the description, no wider than the flags' help, and
// the usage.
func help(cmd *cobra.Command, _ []string) {
	cmd.InheritedFlags() // they are known to the usage line from then on
	text := strings.TrimRight(cmp.Or(cmd.Long, cmd.Short), " \t\n")
	if text != "" {
		text = folded(text, helpWidth-1) + "\n\n"
	}
	if cmd.Runnable() || cmd.HasSubCommands() {
		text += cmd.UsageString()
	}
	fmt.Fprint(cmd.OutOrStdout(), text)
}

// folded is a text whose paragraphs and points have no line of more than width columns. What
// is indented, headings, tables, and what is narrow enough, stays as it is.
func folded(text string, width int) string {
	var out, part []string
	flush := func() {
		if slices.ContainsFunc(part, func(line string) bool { return term.Width(line) > width }) {
			hang := ""
			if strings.HasPrefix(part[0], "- ") {
				hang = "  "
			}
			part = []string{term.Wrap("", strings.Join(strings.Fields(strings.Join(part, " ")), " "), hang, width)}
		}
		out = append(out, part...)
		part = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		point := strings.HasPrefix(line, "- ")
		apart := line == "" || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#") || !point && line != strings.TrimLeft(line, " \t") && (len(part) == 0 || !strings.HasPrefix(part[0], "- "))
		if apart || point {
			flush()
		}
		if apart {
			out = append(out, line)
			continue
		}
		part = append(part, line)
	}
	flush()
	return strings.Join(out, "\n")
}

// usage prints what stands below the description in a command's help. It is
// cobra's, but for flags that are wrapped, and groups, which have no form
// without a command.
func usage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:")
	if cmd.Annotations[onlyGroup] == "" {
		fmt.Fprintf(&b, "\n  %s", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n  %s COMMAND", cmd.CommandPath())
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, "\n\nAlso:\n  %s", cmd.NameAndAliases())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\n\nExamples:\n%s", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n\nCommands:")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				head := fmt.Sprintf("  %-*s ", sub.NamePadding(), sub.Name())
				b.WriteString("\n" + term.Wrap(head, sub.Short, strings.Repeat(" ", len(head)), helpWidth-1))
			}
		}
	}
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(&b, "\n\nFlags:\n%s", strings.TrimRight(cmd.LocalFlags().FlagUsagesWrapped(helpWidth), " \n"))
	}
	if cmd.HasAvailableInheritedFlags() {
		fmt.Fprintf(&b, "\n\nFlags of every command:\n%s", strings.TrimRight(cmd.InheritedFlags().FlagUsagesWrapped(helpWidth), " \n"))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n\n`%s COMMAND --help` says more about a command.", cmd.CommandPath())
	}
	_, err := fmt.Fprintln(cmd.OutOrStderr(), b.String())
	return err
}

// said prints text after head, no wider than the terminal: broken between words, and what
// continues stands below where it began.
func (a *App) said(head, text string) { fmt.Fprintln(a.Out, hung(head, text, a.Columns)) }

// hung is what [App.said] prints, without the line break at its end.
func hung(head, text string, columns int) string {
	at := term.Width(head)
	if at > columns/2 {
		at = 4
	}
	return term.Wrap(head, text, strings.Repeat(" ", at), columns)
}

// times is how often something was, as people say it.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// count is n of something, as people say it.
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// clipText is a text in at most n characters.
func clipText(s string, n int) string { return clip.Runes(s, n) }
