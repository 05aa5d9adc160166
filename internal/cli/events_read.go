package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/event"
	"reprise/internal/term"
)

// followEvery is how often `events tail --follow` looks for more.
const followEvery = 200 * time.Millisecond

func newEventsTailCmd(app *App) *cobra.Command {
	var logs eventLogs
	var f eventFilter
	var asJSON, follow bool
	var limit int
	cmd := &cobra.Command{
		Use: "tail", Args: cobra.NoArgs, Short: "Show the last events, and with -f what comes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.prepare(app); err != nil {
				return err
			}
			where, err := logs.find(app)
			if err != nil {
				return err
			}
			t := tailer{app: app, filter: &f, asJSON: asJSON, at: make([]map[string]event.Cursor, len(where))}
			var last []event.Event
			for i, log := range where {
				t.at[i] = map[string]event.Cursor{}
				if err := t.read(log, i, func(e event.Event) {
					if last = append(last, e); len(last) > 2*limit+1000 && len(where) == 1 {
						last = slices.Delete(last, 0, len(last)-limit)
					}
				}); err != nil {
					return err
				}
			}
			slices.SortStableFunc(last, func(a, b event.Event) int { return a.TS.Compare(b.TS) })
			for _, e := range last[max(0, len(last)-limit):] {
				if err := t.print(e); err != nil {
					return err
				}
			}
			for follow {
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(followEvery):
				}
				for i, log := range where {
					var perr error
					if err := t.read(log, i, func(e event.Event) { perr = errors.Join(perr, t.print(e)) }); err != nil {
						return err
					}
					if perr != nil {
						return perr
					}
				}
			}
			return nil
		},
	}
	logs.flags(app, cmd)
	f.flags(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until stopped")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one event a line for programs")
	cmd.Flags().IntVarP(&limit, "limit", "n", 10, "begin with the last `N`")
	return cmd
}

// tailer reads logs on and on.
type tailer struct {
	app    *App
	filter *eventFilter
	asJSON bool
	at     []map[string]event.Cursor
}

func (t *tailer) read(log eventLog, i int, found func(event.Event)) error {
	for item, err := range event.ReadFrom(log.dir, t.at[i]) {
		if errors.Is(err, event.ErrChanged) {
			fmt.Fprintf(t.app.Err, "note: %v; going on at its end\n", err)
			t.at[i] = map[string]event.Cursor{}
			return t.read(log, i, func(event.Event) {})
		}
		if line := (*event.LineError)(nil); err != nil && !errors.As(err, &line) {
			return err
		}
		t.at[i][item.File] = item.Next
		if err == nil && t.filter.keeps(&item.Event) {
			found(item.Event)
		}
	}
	return nil
}

func (t *tailer) print(e event.Event) error {
	if t.asJSON {
		typed(t.app.Out, e)
		data, err := jsonData(e)
		if err == nil {
			_, err = fmt.Fprintf(t.app.Out, "%s\n", data)
		}
		return err
	}
	who := strings.Trim(e.Client+" "+e.Session[:min(len(e.Session), 8)], " ")
	line := fmt.Sprintf("%s  %-16s %-20s %s", e.TS.Local().Format("15:04:05"), who, e.Type, eventWhat(e, 200))
	if t.app.Columns > 0 {
		line = term.Cut(line, t.app.Columns)
	}
	_, err := fmt.Fprintln(t.app.Out, term.SafeLine(line))
	return err
}

// eventDoc is an event for programs, with its place.
type eventDoc struct {
	event.Event
	File string `json:"file"`
	Line int    `json:"line"`
}

func newEventsShowCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show ID", Args: cobra.ExactArgs(1), Short: "Show one event whole",
		Long: `Show one event whole, of whatever project. The beginning of its id, or its last
eight characters, are enough where no other event's are the same.`,
		RunE: func(_ *cobra.Command, args []string) error {
			found, err := findEvent(app, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(app.Out, found)
			}
			return showEvent(app, found)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func findEvent(app *App, id string) (eventDoc, error) {
	logs := eventLogs{all: true}
	where, err := logs.find(app)
	if err != nil {
		return eventDoc{}, err
	}
	sees, err := app.seesEvents()
	if err != nil {
		return eventDoc{}, err
	}
	var found []eventDoc
	for _, log := range where {
		for item, err := range event.ReadFrom(log.dir, nil) {
			if err == nil && isEventID(item.ID, id) && sees(&item.Event) {
				found = append(found, eventDoc{item.Event, log.dir + "/" + item.File, item.Line})
			}
		}
	}
	if i := slices.IndexFunc(found, func(d eventDoc) bool { return d.ID == id }); i >= 0 {
		return found[i], nil
	}
	switch len(found) {
	case 0:
		return eventDoc{}, exitWith(ExitNotFound, fmt.Errorf("no event %q in any log", id))
	case 1:
		return found[0], nil
	}
	return eventDoc{}, usagef("%s have %q at an end of their ids: give more of the id, as %s", count(len(found), "event"), id, found[0].ID)
}

func showEvent(app *App, d eventDoc) error {
	row := func(name, value string) {
		if value != "" {
			app.said(fmt.Sprintf("%-11s ", name), term.SafeLine(value))
		}
	}
	row("id", d.ID)
	row("type", string(d.Type))
	row("time", d.TS.Local().Format("2006-01-02 15:04:05.000 MST"))
	row("scope", string(d.Scope))
	row("project", d.Project)
	row("session", d.Session)
	row("run", d.Run)
	row("client", d.Client)
	row("agent", d.Agent)
	row("role", d.Role)
	row("task", d.Task)
	row("parent", d.Parent)
	row("outcome", d.Outcome)
	if d.Importance != 0 {
		row("importance", fmt.Sprint(d.Importance))
	}
	row("acl", strings.Join(d.ACL, ", "))
	for _, e := range d.Evidence {
		row("evidence", e)
	}
	row("in", fmt.Sprintf("%s:%d", d.File, d.Line))
	for at, w := range d.Cut {
		row("cut", fmt.Sprintf("%s had %d bytes, SHA-256 %s", at, w.Len, w.SHA256))
	}
	if len(d.Data) == 0 {
		return nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(d.Data, &fields); err != nil {
		return err
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text := string(fields[name])
		if s := ""; json.Unmarshal(fields[name], &s) == nil {
			text = s
		}
		if !strings.Contains(text, "\n") {
			app.said(fmt.Sprintf("%-11s ", term.SafeLine(name)), term.SafeLine(text))
			continue
		}
		fmt.Fprintf(app.Out, "%s\n", term.SafeLine(name))
		for line := range strings.Lines(text) {
			fmt.Fprintf(app.Out, "    %s\n", term.SafeLine(strings.TrimRight(line, "\r\n")))
		}
	}
	return nil
}

// eventWhat is what an event is about, on one line of at most that many bytes.
func eventWhat(e event.Event, most int) string {
	data := map[string]any{}
	_ = json.Unmarshal(e.Data, &data) // what is no object says nothing
	text := func(name string) string { s, _ := data[name].(string); return s }
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	switch {
	case strings.HasPrefix(string(e.Type), "tool."), e.Type == event.PermissionAsked:
		add(text("name"))
		add(toolTarget(data["input"]))
		if text("error") != "" {
			add("— " + text("error"))
		}
	case e.Type == event.RecallServed:
		items, _ := data["items"].([]any)
		add(text("at"))
		add(count(len(items), "item"))
		add(text("query"))
	case e.Type == event.PermissionDecided:
		if e.Outcome != "denied" && e.Outcome != "would be denied" { // which say it behind
			add(text("verdict"))
		}
		add(text("name"))
		list, _ := data["commands"].([]any)
		for _, c := range list {
			s, _ := c.(string)
			add(s)
		}
		if len(list) == 0 {
			add(text("reason"))
		}
		if rule := text("rule"); rule != "" {
			add("[" + rule + "]")
		}
	case e.Type == event.DelegationCounted:
		work, _ := data["work"].(float64)
		add(fmt.Sprintf("%s: %s since it last delegated", text("what"), count(int(work), "call")))
		add(text("name"))
		add(text("reason"))
	case e.Type == event.QuestionAsked, e.Type == event.QuestionAnswered:
		add(text("question"))
		if text("answer") != "" {
			add("→ " + text("answer"))
		}
	default:
		if n, ok := data["number"].(float64); ok {
			add(fmt.Sprintf("%.0f", n))
		}
		for _, name := range []string{"op", "status", "name", "file", "source", "trigger", "phase", "title", "text", "summary", "id", "reason", "error"} {
			if name == "id" && text("title") != "" {
				continue // what it is called says more
			}
			add(text(name))
		}
	}
	if e.Outcome != "" && e.Outcome != "success" {
		add("(" + e.Outcome + ")")
	}
	return firstLine(strings.Join(parts, " "), most)
}

// toolTarget is what a tool was used on.
func toolTarget(input any) string {
	m, _ := input.(map[string]any)
	for _, name := range []string{"command", "cmd", "file_path", "path", "filePath", "pattern", "query", "url", "description", "prompt"} {
		switch v := m[name].(type) {
		case string:
			return v
		case []any:
			var words []string
			for _, w := range v {
				words = append(words, fmt.Sprint(w))
			}
			return strings.Join(words, " ")
		}
	}
	s, _ := input.(string)
	return s
}
