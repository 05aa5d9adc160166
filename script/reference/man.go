package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/internal/cli"
)

// manual is a manual page for root and each command below it: what `--help` says, in the
// parts that a page of section 1 has. cobra's own pages show the zero value of each flag as
// if that were what to write, name no command of a group, and run lines into each other that
// are to stand apart.
func manual(root *cobra.Command, date time.Time) (map[string][]byte, error) {
	pages := map[string][]byte{}
	var walk func(*cobra.Command) error
	walk = func(cmd *cobra.Command) error {
		page, err := manPage(cmd, date)
		if err != nil {
			return fmt.Errorf("manual page of %s: %w", cmd.CommandPath(), err)
		}
		pages[manName(cmd)+".1"] = []byte(page)
		for _, sub := range visible(cmd) {
			if err := walk(sub); err != nil {
				return err
			}
		}
		return nil
	}
	return pages, walk(root)
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func manPage(cmd *cobra.Command, date time.Time) (string, error) {
	help, err := cli.HelpText(cmd)
	if err != nil {
		return "", err
	}
	usage := cmd.UsageString()
	about, ok := strings.CutSuffix(help, usage)
	if !ok {
		return "", fmt.Errorf("its help does not end in its usage")
	}
	var b strings.Builder
	fmt.Fprintf(&b, ".TH \"%s\" \"1\" \"%s\" \"reprise\" \"reprise\"\n", roff(strings.ToUpper(manName(cmd))), date.Format("Jan 2006"))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(cmd)), roff(cmd.Short))
	b.WriteString(".SH SYNOPSIS\n")
	forms, _, _ := strings.Cut(strings.TrimPrefix(usage, "Usage:\n"), "\n\n")
	for form := range strings.SplitSeq(strings.TrimSpace(forms), "\n") {
		fmt.Fprintf(&b, ".PP\n%s\n", roff(strings.TrimSpace(form)))
	}
	if about = strings.TrimSpace(about); about != "" {
		b.WriteString(".SH DESCRIPTION\n" + prose(about))
	}
	if subs := visible(cmd); len(subs) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range subs {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fP\n%s; see \\fB%s\\fP(1)\n", roff(sub.Name()), roff(sub.Short), roff(manName(sub)))
		}
	}
	options(&b, "OPTIONS", cmd.LocalFlags())
	options(&b, "OPTIONS OF EVERY COMMAND", cmd.InheritedFlags())
	if cmd.HasExample() {
		b.WriteString(".SH EXAMPLES\n" + asIs(cmd.Example))
	}
	if cmd.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n\\fB%s\\fP(1)\n", roff(manName(cmd.Parent())))
	}
	return b.String(), nil
}

// options are flags, each as its help has it.
func options(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH " + title + "\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		alone := pflag.NewFlagSet("", pflag.ContinueOnError)
		alone.AddFlag(f)
		head, text, _ := strings.Cut(strings.TrimSpace(alone.FlagUsages()), "   ")
		fmt.Fprintf(b, ".TP\n\\fB%s\\fP\n%s\n", roff(head), roff(strings.TrimSpace(text)))
	})
}

// prose is text of a help: paragraphs and points are filled, and what is indented or a table
// stands as it is.
func prose(text string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(text, "\n\n") {
		lines := strings.Split(part, "\n")
		var run []string // lines that are filled together
		flush := func(before string) {
			if len(run) > 0 {
				b.WriteString(before + roff(strings.Join(run, "\n")) + "\n")
			}
			run = nil
		}
		before := ".PP\n"
		for i := 0; i < len(lines); i++ {
			line := lines[i]
			switch {
			case strings.HasPrefix(line, "- "):
				flush(before)
				before = ".IP \\(bu 2\n"
				run = []string{line[2:]}
			case before != ".PP\n" && strings.HasPrefix(line, "  ") && len(run) > 0: // a point goes on
				run = append(run, strings.TrimSpace(line))
			case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "|"):
				flush(before)
				from := i
				for i+1 < len(lines) && lines[i+1] != "" && strings.ContainsAny(lines[i+1][:1], " \t|") {
					i++
				}
				b.WriteString(asIs(strings.Join(lines[from:i+1], "\n")))
				before = ".PP\n"
			default:
				run = append(run, line)
			}
		}
		flush(before)
	}
	return b.String()
}

// asIs are lines that are not filled.
func asIs(text string) string {
	return ".PP\n.nf\n" + roffLines(text) + "\n.fi\n"
}

var codeWords = regexp.MustCompile("`([^`\n]+)`")

// roff is text in which nothing is taken for a request or an escape; what stands between
// backquotes is bold.
func roff(text string) string {
	return roffLines(codeWords.ReplaceAllString(text, "\x01$1\x02"))
}

// roffLines is the same for what is shown as it is. A hyphen stays one: of what is copied
// from a page a typographic one would not work. Neither would other quotes.
func roffLines(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "\x01", `\fB`, "\x02", `\fP`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
