package event

import (
	"context"
	"fmt"
	"strings"

	"reprise/internal/event/quick"
)

// importMark ends the host's name of files that hold what was read elsewhere
// and not seen happen. They are files of their own so that the others stay in
// the order of time, and so that one can tell what was recorded live.
const importMark = "-import"

// ImportHost is the host under which what was read elsewhere is written.
func ImportHost(host string) string {
	name := quick.HostName(host)
	return name[:min(len(name), 64-len(importMark))] + importMark
}

// IsImport reports whether a file of the log, by its name, holds what was read
// elsewhere.
func IsImport(file string) bool {
	name, ok := strings.CutSuffix(file, quick.Ext)
	return ok && strings.HasSuffix(name, importMark)
}

// Import appends events that happened before, with the ids and times that they
// have, each to the file of its own month. Events that follow each other in one
// month are written as one, and waited for. On an error the events of later
// months are missing; whoever imports looks which are there.
func (l *Log) Import(ctx context.Context, events []Event) error {
	for len(events) > 0 {
		n, size := 0, 0
		var lines [][]byte
		for n < len(events) && size < 4*MaxLine && l.quick.File(events[n].TS) == l.quick.File(events[0].TS) {
			e := events[n]
			if e.ID == "" || e.TS.IsZero() {
				return fmt.Errorf("import events: %w: an event without id or time", ErrInvalid)
			}
			e.Cut = nil
			e, err := l.prepare(e)
			if err != nil {
				return fmt.Errorf("import events: %w", err)
			}
			q := e.quick()
			line := quick.Encode(nil, &q)
			lines = append(lines, line)
			size += len(line)
			n++
		}
		err := l.quick.AddAll(ctx, events[0].TS, true, lines)
		if err != nil {
			return fmt.Errorf("import events: %w", err)
		}
		events = events[n:]
	}
	return nil
}
