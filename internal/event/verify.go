package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"reprise/internal/event/quick"
)

// Problem is one thing that is wrong with a log.
type Problem struct {
	File string `json:"file"` // name within the directory
	Line int    `json:"line"` // from 1; 0 when it is about the file
	What string `json:"what"`
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.What
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.What)
}

// Report is what [Verify] found.
type Report struct {
	Files    int       `json:"files"`
	Events   int       `json:"events"` // those that can be used
	Problems []Problem `json:"problems"`
	// Newer is how many of the problems are lines of a newer version, see [ErrNewer].
	Newer int `json:"-"`
	// Unfinished names files whose last line has no newline: it is being
	// written, or a crash tore it and the next append sets it aside.
	Unfinished []string `json:"unfinished"`
	// Torn are the files beside the log that keep what crashes left of lines.
	Torn []Torn `json:"torn"`
	// Last is the hash of each file's last line, which the next event names.
	Last map[string]string `json:"last"`
}

// Torn is a file that keeps what crashes left of lines.
type Torn struct {
	File  string `json:"file"` // name within the directory
	Bytes int64  `json:"bytes"`
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// Verify checks every line of the log in dir and that each names the line
// before it. An edited, added, missing or moved line shows as a problem at the
// line after it; only lines missing from a file's end leave no trace in the
// file itself, which is what Last is for. The error is about the directory.
func Verify(dir string) (Report, error) { return VerifyContext(context.Background(), dir) }

// VerifyContext is [Verify] with an end: where ctx ends first its error is given, with
// what was found by then.
func VerifyContext(ctx context.Context, dir string) (Report, error) {
	r := Report{Last: map[string]string{}}
	d, files, err := list(dir)
	if err != nil || d == nil {
		return r, err
	}
	defer d.Close()
	for _, month := range slices.Sorted(maps.Keys(files)) {
		for _, name := range files[month] {
			r.Files++
			r.verifyFile(ctx, name, readLines(d, name))
			if err := ctx.Err(); err != nil {
				return r, fmt.Errorf("verify %s: %w", dir, err)
			}
			if fi, err := d.Lstat(name + ".torn"); err == nil {
				r.Torn = append(r.Torn, Torn{File: name + ".torn", Bytes: fi.Size()})
			}
		}
	}
	return r, nil
}

func (r *Report) verifyFile(ctx context.Context, name string, lines func(func(line, error) bool)) {
	problem := func(n int, format string, args ...any) {
		r.Problems = append(r.Problems, Problem{File: name, Line: n, What: fmt.Sprintf(format, args...)})
	}
	prev, known := "", true
	for l, err := range lines {
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			problem(0, "%v", err)
			return
		}
		if l.torn {
			r.Unfinished = append(r.Unfinished, name)
			return
		}
		e, err := parse(l)
		switch {
		case err != nil:
			problem(l.n, "%v", err)
			if errors.Is(err, ErrNewer) {
				r.Newer++
			}
		case l.n == 1 && e.Prev != "" && !startsChain(e):
			problem(l.n, "the file's first line names one before it: lines are missing from its beginning")
		case l.n > 1 && known && e.Prev != prev:
			problem(l.n, "the line before it is not the one it names: that was edited, or lines are missing, added or moved")
		}
		if err == nil {
			r.Events++
		}
		prev, known = quick.Hash(l.text), l.err == nil
		r.Last[name] = prev
	}
}

// startsChain reports whether an event is the one that a purge begins a new
// file with; its prev is the old chain's last hash, which its data names too.
func startsChain(e Event) bool { return e.Prev == oldChain(e) }

// oldChain is the last hash of the chain that a purge ended, from the data of
// its event.
func oldChain(e Event) string {
	var data struct {
		Chain string `json:"chain"`
	}
	if e.Type != MemoryPurged || json.Unmarshal(e.Data, &data) != nil {
		return ""
	}
	return data.Chain
}
