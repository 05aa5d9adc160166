package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/event"
	"reprise/internal/term"
)

// eventStats counts events.
type eventStats struct {
	Events   int            `json:"events"`
	Sessions int            `json:"sessions"`
	Bytes    int64          `json:"bytes"` // of the logs' files
	Files    int            `json:"files"`
	First    *time.Time     `json:"first,omitempty"`
	Last     *time.Time     `json:"last,omitempty"`
	Bad      int            `json:"unreadable_lines"`
	Torn     int64          `json:"torn_bytes"`
	Outbox   int            `json:"in_outbox"`
	Lost     int            `json:"lost"` // could be kept nowhere, as far as it was counted
	Types    map[string]int `json:"types"`
	Clients  map[string]int `json:"clients"`
	Outcomes map[string]int `json:"outcomes"`
	Days     map[string]int `json:"days"` // local
	Projects map[string]int `json:"projects"`
}

func newEventsStatsCmd(app *App) *cobra.Command {
	var logs eventLogs
	var f eventFilter
	var asJSON bool
	cmd := &cobra.Command{
		Use: "stats", Args: cobra.NoArgs, Short: "Count events by type, client, outcome and day",
		RunE: func(*cobra.Command, []string) error {
			if err := f.prepare(app); err != nil {
				return err
			}
			where, err := logs.find(app)
			if err != nil {
				return err
			}
			stats, err := countEvents(app, where, &f)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(app.Out, stats)
			}
			return showStats(app, stats)
		},
	}
	logs.flags(app, cmd)
	f.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the figures for programs")
	return cmd
}

func countEvents(app *App, logs []eventLog, f *eventFilter) (eventStats, error) {
	s := eventStats{Types: map[string]int{}, Clients: map[string]int{}, Outcomes: map[string]int{}, Days: map[string]int{}, Projects: map[string]int{}}
	sessions := map[string]bool{}
	for _, log := range logs {
		for e, err := range event.ReadSince(log.dir, f.from) {
			if line := (*event.LineError)(nil); errors.As(err, &line) {
				s.Bad++
				continue
			}
			if err != nil {
				return s, err
			}
			if !f.keeps(&e) {
				continue
			}
			s.Events++
			s.Types[string(e.Type)]++
			s.Days[e.TS.Local().Format("2006-01-02")]++
			add := func(m map[string]int, name string) {
				if name != "" {
					m[name]++
				}
			}
			add(s.Clients, e.Client)
			add(s.Outcomes, e.Outcome)
			add(s.Projects, e.Project)
			if e.Session != "" {
				sessions[e.Session] = true
			}
			if ts := e.TS; s.First == nil || ts.Before(*s.First) {
				s.First = &ts
			}
			if ts := e.TS; s.Last == nil || ts.After(*s.Last) {
				s.Last = &ts
			}
		}
		names, err := event.FileNames(log.dir)
		if err != nil {
			return s, err
		}
		for _, name := range names {
			if fi, err := os.Stat(filepath.Join(log.dir, name)); err == nil {
				s.Bytes += fi.Size()
				s.Files++
			}
			if fi, err := os.Stat(filepath.Join(log.dir, name+".torn")); err == nil {
				s.Torn += fi.Size()
			}
		}
	}
	s.Sessions = len(sessions)
	b, err := app.Broker()
	if err != nil {
		return s, err
	}
	waiting, err := b.Outbox()
	if err != nil {
		return s, err
	}
	s.Outbox = len(waiting)
	s.Lost, err = b.Lost()
	return s, err
}

func showStats(app *App, s eventStats) error {
	fmt.Fprintf(app.Out, "%s of %s in %s, %s\n", count(s.Events, "event"), count(s.Sessions, "session"), count(s.Files, "file"), size(s.Bytes))
	if s.First != nil {
		fmt.Fprintf(app.Out, "from %s to %s\n", s.First.Local().Format("2006-01-02 15:04"), s.Last.Local().Format("2006-01-02 15:04"))
	}
	for _, part := range []struct {
		what string
		of   map[string]int
	}{{"type", s.Types}, {"client", s.Clients}, {"outcome", s.Outcomes}, {"project", s.Projects}} {
		if err := showCounts(app, part.what, part.of, 0); err != nil {
			return err
		}
	}
	if err := showCounts(app, "day", s.Days, 14); err != nil {
		return err
	}
	if s.Bad > 0 {
		fmt.Fprintf(app.Err, "note: %s cannot be read; `reprise events verify` says which\n", count(s.Bad, "line"))
	}
	if s.Torn > 0 {
		fmt.Fprintf(app.Err, "note: crashes left %s of lines that were never events; they are kept in *.torn\n", size(s.Torn))
	}
	if s.Outbox > 0 {
		fmt.Fprintf(app.Err, "note: %s in the outbox; see `reprise events outbox`\n", count(s.Outbox, "event"))
	}
	if s.Lost > 0 {
		fmt.Fprintf(app.Err, "note: %s could not be kept, because the disk was full\n", count(s.Lost, "event"))
	}
	return nil
}

// showCounts prints counts, the largest first; with a limit the last ones by
// name, as of days.
func showCounts(app *App, what string, counts map[string]int, limit int) error {
	if len(counts) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(counts))
	if limit == 0 {
		slices.SortStableFunc(names, func(a, b string) int { return counts[b] - counts[a] })
	} else {
		names = names[max(0, len(names)-limit):]
	}
	fmt.Fprintf(app.Out, "\nby %s\n", what)
	table := term.NewTable(app.Style()).AlignRight(0)
	for _, name := range names {
		table.Text(fmt.Sprintf("%8d", counts[name]), name)
	}
	return table.Write(app.Out)
}

// size is a number of bytes as people say it.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}
