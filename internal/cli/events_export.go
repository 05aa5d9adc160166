package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/redact"
)

func newEventsExportCmd(app *App) *cobra.Command {
	var logs eventLogs
	var f eventFilter
	var format, file string
	cmd := &cobra.Command{
		Use: "export", Args: cobra.NoArgs, Short: "Write events out as JSON lines, CSV or a readable text",
		Long: `Write events out, the oldest first: as JSON lines, as CSV (one row an event, the
data as JSON in its last column), or as markdown, which with --session reads as the
story of the session. Secrets are looked for once more on the way out, by today's
rules.`,
		RunE: func(*cobra.Command, []string) error {
			if err := f.prepare(app); err != nil {
				return err
			}
			write, ok := map[string]func(io.Writer, []event.Event) error{"jsonl": exportLines, "csv": exportCSV, "markdown": exportMarkdown}[format]
			if !ok {
				return usagef("--format %q is none of jsonl, csv and markdown", format)
			}
			where, err := logs.find(app)
			if err != nil {
				return err
			}
			events, err := collect(app, where, &f, 0)
			if err != nil {
				return err
			}
			if len(events) == 0 {
				return exitWith(ExitNotFound, fmt.Errorf("no such events to export"))
			}
			red := redact.New()
			for i := range events {
				if events[i], err = event.Redact(red, events[i]); err != nil {
					return err
				}
			}
			if file == "" {
				return write(app.Out, events)
			}
			var b bytes.Buffer
			if err := write(&b, events); err != nil {
				return err
			}
			path := file
			if !filepath.IsAbs(path) {
				path = filepath.Join(app.Env.Dir, path)
			}
			if err := durable.WriteFile(path, b.Bytes(), 0o600); err != nil {
				return err
			}
			fmt.Fprintf(app.Err, "%s written to %s\n", count(len(events), "event"), file)
			return nil
		},
	}
	logs.flags(app, cmd)
	f.flags(cmd)
	cmd.Flags().StringVar(&format, "format", "jsonl", "`jsonl`, csv or markdown")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this `FILE` instead of standard output")
	offer(cmd, "format", "jsonl", "csv", "markdown")
	return cmd
}

func exportLines(w io.Writer, events []event.Event) error {
	for _, e := range events {
		line, err := jsonData(e)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

func exportCSV(w io.Writer, events []event.Event) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"id", "ts", "type", "scope", "project", "session", "run", "client", "agent", "role", "task", "outcome", "importance", "what", "data"}); err != nil {
		return err
	}
	for _, e := range events {
		row := []string{
			e.ID, e.TS.Format(time.RFC3339Nano), string(e.Type), string(e.Scope), e.Project, e.Session, e.Run, e.Client, e.Agent,
			e.Role, e.Task, e.Outcome, fmt.Sprint(e.Importance), eventWhat(e, 200), string(e.Data),
		}
		for i, cell := range row { // a spreadsheet would run these
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				row[i] = "'" + cell
			}
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// exportMarkdown tells what happened, session by session, as people read it.
func exportMarkdown(w io.Writer, events []event.Event) error {
	var b strings.Builder
	session, first := "", true
	for _, e := range events {
		if e.Session != session || first {
			session, first = e.Session, false
			title := "Outside any session"
			if session != "" {
				title = fmt.Sprintf("Session %s", mdText(session))
			}
			fmt.Fprintf(&b, "\n# %s\n\n%s", title, e.TS.Local().Format("2006-01-02 15:04:05 MST"))
			for _, part := range []struct{ name, value string }{{"client", e.Client}, {"project", e.Project}, {"agent", e.Agent}, {"run", e.Run}} {
				if part.value != "" {
					fmt.Fprintf(&b, " · %s %s", part.name, mdText(part.value))
				}
			}
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "\n## %s %s\n", e.TS.Local().Format("15:04:05"), e.Type)
		if e.Outcome != "" {
			fmt.Fprintf(&b, "\nOutcome: %s\n", mdText(e.Outcome))
		}
		mdData(&b, e)
		for at, cut := range e.Cut {
			fmt.Fprintf(&b, "\n(%s is cut: it had %d bytes)\n", mdText(at), cut.Len)
		}
	}
	_, err := io.WriteString(w, strings.TrimLeft(b.String(), "\n"))
	return err
}

// mdData writes an event's data: its texts as they are, within fences, so that
// nothing in them is taken for markdown, and the rest as JSON.
func mdData(b *strings.Builder, e event.Event) {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(e.Data, &fields) != nil {
		return
	}
	for _, name := range []string{"name", "text", "question", "answer", "input", "output", "error", "summary", "reason"} {
		raw, ok := fields[name]
		delete(fields, name)
		if !ok || len(raw) == 0 {
			continue
		}
		text := string(raw)
		var s string
		var in map[string]any
		if json.Unmarshal(raw, &s) == nil {
			text = s
		} else if json.Unmarshal(raw, &in) == nil && len(in) == 1 && toolTarget(in) != "" {
			text = toolTarget(in)
		}
		if !strings.Contains(text, "\n") && len(text) < 100 && name != "input" && name != "output" {
			fmt.Fprintf(b, "\n%s: %s\n", name, mdText(text))
			continue
		}
		fmt.Fprintf(b, "\n%s:\n\n%s\n", name, fence(text))
	}
	if len(fields) > 0 {
		if rest, err := json.Marshal(fields); err == nil {
			fmt.Fprintf(b, "\n%s\n", fence(string(rest)))
		}
	}
}

// fence puts text between fences that are longer than any in it.
func fence(text string) string {
	n, run := 3, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		n = max(n, run+1)
	}
	mark := strings.Repeat("`", n)
	return mark + "\n" + strings.TrimRight(text, "\n") + "\n" + mark
}

// mdText is a word within a line of markdown.
func mdText(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "<", "&lt;", "#", "\\#", "|", "\\|").Replace(s)
}
