package loop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"reprise/internal/durable"
	"reprise/internal/loop/core"
	"reprise/internal/loop/tell"
)

// record adds an iteration to the list of all.
func (s *store) record(ctx context.Context, it Iteration) error {
	line, err := json.Marshal(it)
	if err != nil {
		return err
	}
	if err := s.disk.Append(ctx, s.path(iterationsFile), append(line, '\n'), 0o600); err != nil {
		return fmt.Errorf("keep an iteration: %w", err)
	}
	return nil
}

// Iterations are those of a loop, or with "" of all loops there were, in their order. A
// line that cannot be read is counted and passed over. One that was written twice,
// because its loop died in the middle, counts once.
func Iterations(dir, loop string) (out []Iteration, bad int, err error) {
	at := map[string]int{}
	bad, err = readLines(filepath.Join(dir, iterationsFile), func(data []byte) error {
		var it Iteration
		if err := json.Unmarshal(data, &it); err != nil {
			return err
		}
		if loop != "" && it.Loop != loop {
			return nil
		}
		key := fmt.Sprintf("%s/%s/%d/%v", it.Loop, it.Item, it.Fence, it.Later)
		if i, twice := at[key]; twice {
			out[i] = it
			return nil
		}
		at[key] = len(out)
		out = append(out, it)
		return nil
	})
	return out, bad, err
}

// Audit are the lines of the audit, of a loop or with "" of all.
func Audit(dir, loop string) (out []Line, bad int, err error) {
	bad, err = readLines(filepath.Join(dir, auditFile), func(data []byte) error {
		var l Line
		if err := json.Unmarshal(data, &l); err != nil {
			return err
		}
		if loop == "" || l.Loop == loop {
			out = append(out, l)
		}
		return nil
	})
	return out, bad, err
}

// AuditFrom is where the lines of a loop begin in the audit, in bytes; its end where it has
// none yet.
func AuditFrom(dir, loop string) (at int64, err error) {
	read, found := int64(0), false
	_, err = readLines(filepath.Join(dir, auditFile), func(data []byte) error {
		var l Line
		if !found && json.Unmarshal(data, &l) == nil && l.Loop == loop {
			at, found = read, true
		}
		read += int64(len(data))
		return nil
	})
	if !found {
		at = read
	}
	return at, err
}

// AuditFile is where the audit of the loop in a directory is.
func AuditFile(dir string) string { return filepath.Join(dir, auditFile) }

func readLines(path string, each func([]byte) error) (bad int, err error) {
	f, err := durable.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 && each(line) != nil {
			bad++
		}
		if errors.Is(err, io.EOF) {
			return bad, nil
		}
		if err != nil {
			return bad, err
		}
	}
}

// Metrics are a loop's figures.
type Metrics = tell.Metrics

// MetricsOf are the figures of a state.
func MetricsOf(s core.State) Metrics { return tell.MetricsOf(s) }

func (s *store) writeMetrics(st core.State) error { return s.writeJSON(metricsFile, MetricsOf(st)) }
