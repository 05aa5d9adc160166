package cli

import (
	"slices"
	"strings"

	"reprise/internal/event"
	"reprise/internal/term"
)

const (
	shortEventID = 8   // last characters of an id: those that are random
	wideEnough   = 110 // columns from which on a list names sessions
)

// bookkeeping says that an event is of reprise's own doing, and not of anybody's
// work.
func bookkeeping(t event.Type) bool {
	return t == event.CompactionFinished || t == event.RecallServed || t == event.RecallUsed
}

// isEventID says that what was given names an event: its beginning, or enough
// of its end.
func isEventID(id, given string) bool {
	return strings.HasPrefix(id, given) || len(given) >= shortEventID && strings.HasSuffix(id, given)
}

// listEvents prints events by time. What they are about gets the room that is
// left.
func listEvents(app *App, events []event.Event) error {
	slices.SortStableFunc(events, func(a, b event.Event) int { return a.TS.Compare(b.TS) })
	today := app.Now().Local().Format("2006-01-02")
	sessions := app.Columns == 0 || app.Columns >= wideEnough
	head := []string{"ID", "TIME", "CLIENT", "SESSION", "TYPE", "WHAT"}
	rows := [][]string{}
	for _, e := range events {
		at := e.TS.Local()
		when := at.Format("2006-01-02 15:04:05")
		if rest, ok := strings.CutPrefix(when, today+" "); ok {
			when = rest
		} else if app.Columns > 0 && !sessions {
			when = at.Format("01-02 15:04")
		}
		rows = append(rows, []string{e.ID[max(0, len(e.ID)-shortEventID):], when, e.Client, e.Session[:min(len(e.Session), 8)], string(e.Type), term.SafeLine(eventWhat(e, 200))})
	}
	if !sessions {
		head = slices.Delete(head, 3, 4)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 3, 4)
		}
	}
	if last := len(head) - 1; app.Columns > 0 {
		room := app.Columns
		for c := range last {
			width := term.Width(head[c])
			for _, r := range rows {
				width = max(width, term.Width(r[c]))
			}
			room -= width + 2
		}
		for _, r := range rows {
			r[last] = term.Cut(r[last], max(room, 12))
		}
	}
	table := term.NewTable(app.Style(), head...).MaxWidth(app.Columns)
	for _, r := range rows {
		table.Text(r...)
	}
	return table.Write(app.Out)
}
