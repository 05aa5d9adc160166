package cli

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/logfile"
	"reprise/internal/redact"
	"reprise/internal/setup"
	"reprise/internal/term"
)

func newBugReportCmd(app *App) *cobra.Command {
	var out string
	var lines int
	cmd := &cobra.Command{
		Use: "bug-report", Args: cobra.NoArgs, Short: "Write down what a bug report needs, without what is yours",
		Long: `Print a page of markdown with what somebody needs who looks into a fault: which
build and system this is, the settings that you changed, what doctor finds, how
much there is of what, and the last warnings and errors of reprise's own log.

Nothing is sent anywhere. It holds no memory, no events and no output of agents;
secrets are taken out, and your home directory, project, user and machine get other
names. Read it before you give it away: messages may quote what you would not.`,
		Example: `  reprise bug-report
  reprise bug-report -o report.md`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := bugReport(cmd, app, lines)
			if out == "" {
				_, err := fmt.Fprint(app.Out, text)
				return err
			}
			return app.writeOutput(out, []byte(text), 0o600)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write it to `FILE` (default: standard output)")
	cmd.Flags().IntVar(&lines, "log-lines", 40, "how many warnings and errors of the log, at most")
	return cmd
}

// bugReport is the page. What cannot be found out is said in it: that may be the fault.
func bugReport(cmd *cobra.Command, app *App, lines int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Report\n\n- reprise %s, %s/%s, %s\n", Version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	paths, err := config.FindPaths(app.Env)
	if err != nil {
		fmt.Fprintf(&b, "- no places: %v\n", err)
		return stranger(app, "").of(b.String())
	}
	root := ""
	home, err := app.Home()
	if err != nil {
		fmt.Fprintf(&b, "- the settings cannot be read: %v\n", err)
	} else if home.Project != nil {
		root = home.Project.Root
		b.WriteString("- in a project\n")
	} else {
		b.WriteString("- in no project\n")
	}

	b.WriteString("\n## Settings that are not the defaults\n\n")
	b.WriteString(changedSettings(app, paths))

	b.WriteString("\n## What doctor finds (--quick)\n\n")
	if d, err := doctor(app); err != nil {
		fmt.Fprintf(&b, "It cannot look: %v\n", err)
	} else {
		for _, f := range setup.Diagnose(cmd.Context(), d.Checks(), nil) {
			fmt.Fprintf(&b, "- %s, %s: %s\n", f.Status, f.Check, f.Message)
		}
	}

	b.WriteString("\n## What there is\n\n| where | files | bytes |\n|---|---|---|\n")
	for _, p := range []place{{Name: "data", Path: paths.Data}, {Name: "state", Path: paths.State}, {Name: "cache", Path: paths.Cache}} {
		files, size, err := durable.Size(p.Path)
		if err != nil {
			fmt.Fprintf(&b, "| %s | %v | |\n", p.Name, err)
			continue
		}
		fmt.Fprintf(&b, "| %s | %d | %d |\n", p.Name, files, size)
	}

	fmt.Fprintf(&b, "\n## The last %d warnings and errors of the log\n\n", lines)
	b.WriteString(lastLines(app, paths, lines))
	s := stranger(app, root)
	if home != nil && home.Project != nil {
		s = s.also(home.Project.Name, "the-project")
	}
	return s.of(b.String())
}

// changedSettings lists what has another value than it would have of itself.
func changedSettings(app *App, paths config.Paths) string {
	items, _, err := config.Explain(app.Env, paths, app.ConfigFlag)
	if err != nil {
		return fmt.Sprintf("They cannot be read: %v\n", err)
	}
	var b strings.Builder
	red := redact.New()
	for _, it := range items {
		if it.Origin == "default" {
			continue
		}
		value, _ := red.Named(it.Key, addressee(it.Key, fmt.Sprint(it.Value)))
		fmt.Fprintf(&b, "- `%s`: %s (%s)\n", it.Key, term.SafeLine(value), filepath.Base(it.Origin))
	}
	return cmp.Or(b.String(), "None.\n")
}

// addressee is a setting without what lets anybody who reads it post to the same place, run
// the same or write to the same person: of an address its host stays.
func addressee(key, value string) string {
	if value == "" || !slices.Contains([]string{"loop.notify_webhook", "loop.notify_command", "loop.notify_mail"}, key) {
		return value
	}
	if at, err := url.Parse(value); err == nil && (at.Scheme == "https" || at.Scheme == "http") && at.Hostname() != "" {
		return at.Scheme + "://" + at.Hostname() + "/… (the rest is left out)"
	}
	return "set (what to is left out)"
}

func lastLines(app *App, paths config.Paths, n int) string {
	file := paths.LogFile()
	if home, err := app.Home(); err == nil {
		file = home.LogFile()
	}
	list, err := logfile.Tail(file, n, func(level string) bool { return level == "warn" || level == "error" })
	if err != nil {
		return fmt.Sprintf("It cannot be read: %v\n", err)
	}
	if len(list) == 0 {
		return "None.\n"
	}
	var b strings.Builder
	b.WriteString("```text\n")
	for _, l := range list {
		// A fence of its own in a line would end ours.
		fmt.Fprintln(&b, strings.ReplaceAll(term.SafeLine(l.Text), "```", "'''"))
	}
	b.WriteString("```\n")
	return b.String()
}

// naming gives what is somebody's own another name.
type naming struct{ from, to []string }

// anybody are names of users that say nothing about who it is.
var anybody = []string{"root", "user", "admin", "administrator", "Administrator"}

// stranger names the home directory, the project, the user and the machine anew.
func stranger(app *App, root string) naming {
	var n naming
	home := app.Env.Get("HOME")
	if app.Env.GOOS == "windows" {
		home = app.Env.Get("USERPROFILE")
	}
	n = n.also(root, "<project>").also(app.Env.Dir, "<here>").also(app.Env.Get("REPRISE_HOME"), "<reprise home>").also(home, "~").also(app.Hostname, "the-machine")
	for _, v := range []string{"USER", "LOGNAME", "USERNAME"} {
		if name := app.Env.Get(v); !slices.Contains(anybody, name) {
			n = n.also(name, "the-user")
		}
	}
	return n
}

// also names one thing more. What is very short is left: it would be found in words
// that have nothing to do with it.
func (n naming) also(from, to string) naming {
	if len(from) < 3 || slices.Contains(n.from, from) {
		return n
	}
	return naming{append(slices.Clone(n.from), from), append(slices.Clone(n.to), to)}
}

// of is text with the names, and without secrets. The longest is named first, so that
// a directory in another one is not taken for the rest of a path.
func (n naming) of(text string) string {
	order := make([]int, len(n.from))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(n.from[b]) - len(n.from[a]) })
	text, _ = redact.New().String(text)
	for _, i := range order {
		text = replaceWord(text, n.from[i], n.to[i])
	}
	return text
}

// replaceWord replaces word where it is not part of a longer one: a user named ann is
// not in "cannot".
func replaceWord(text, word, by string) string {
	inside := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	var b strings.Builder
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			b.WriteString(text[from:])
			return b.String()
		}
		at, end := from+i, from+i+len(word)
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		first, _ := utf8.DecodeRuneInString(word)
		last, _ := utf8.DecodeLastRuneInString(word)
		after, _ := utf8.DecodeRuneInString(text[end:])
		b.WriteString(text[from:at])
		if inside(before) && inside(first) || inside(last) && inside(after) {
			b.WriteString(word)
		} else {
			b.WriteString(by)
		}
		from = end
	}
}
