package transcript

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"time"

	"reprise/internal/event"
)

// Bad is a part of a transcript that could not be used.
type Bad struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Offset int64  `json:"offset,omitempty"` // of the line's first byte
	Why    string `json:"why"`
}

// maxBad is how many bad lines a file's cursor holds; all are counted.
const maxBad = 20

// Stats is what reading a transcript came to.
type Stats struct {
	Lines  int // whole ones
	Bytes  int64
	Bad    int
	Places []Bad // the first of them
	// Hash is the SHA-256 of what was read.
	Hash string
	// Session is the id that the transcript itself gives.
	Session string
}

// reader makes events of one client's transcript.
type reader interface {
	read(line) error
	// end is called after the last line. over says that nobody adds to the
	// file any more.
	end(over bool) error
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// settled is how long a transcript lies still until its session is taken to be
// over.
const settled = time.Hour

// Read reads a transcript and gives its events, with the directory that each
// happened in, in the transcript's order. Lines that cannot be used are counted
// and told of, and reading goes on; an error is one of the disk, of emit, or
// that ctx ended.
//
// done is how many lines were dealt with before: they are read, because what
// follows depends on them, and give no events.
func (src Source) Read(ctx context.Context, now time.Time, done int, emit func(cwd string, e event.Event) error) (Stats, error) {
	f, err := openRegular(src.root, src.name)
	if err != nil {
		return Stats{}, fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	return src.read(ctx, f, now, done, emit)
}

// begins reports whether the first size bytes of the transcript have this
// SHA-256.
func (src Source) begins(size int64, hash string) bool {
	f, err := openRegular(src.root, src.name)
	if err != nil {
		return false
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.CopyN(sum, f, size)
	return err == nil && n == size && hex.EncodeToString(sum.Sum(nil)) == hash
}

func (src Source) read(ctx context.Context, in io.Reader, now time.Time, done int, emit func(string, event.Event) error) (Stats, error) {
	var st Stats
	sum := sha256.New()
	in = io.TeeReader(in, sum)
	at := &place{done: done}
	s := &session{
		at: at, client: src.Client, id: src.Session, path: src.Path, cwd: src.Cwd, agent: src.Agent, agentType: src.AgentType, now: now, emit: emit,
	}
	bad := func(l line, why string) {
		st.Bad++
		if len(st.Places) < maxBad {
			st.Places = append(st.Places, Bad{File: src.Path, Line: l.n, Offset: l.offset, Why: why})
		}
	}
	r := src.reader(s)
	if g, ok := r.(*geminiReader); ok && path.Ext(src.name) == ".json" {
		counted := &countingReader{r: in}
		err := g.document(counted, func(n int, err error) { bad(line{n: n}, err.Error()) })
		st.Bytes = counted.n
		if err != nil && !errors.Is(err, errLine) {
			return st, err
		}
		if err != nil {
			bad(line{n: 1}, err.Error())
		}
	} else if err := readLines(ctx, in, r, at, &st, bad); err != nil {
		return st, err
	}
	err := r.end(now.Sub(src.Mod) > settled)
	st.Hash, st.Session = hex.EncodeToString(sum.Sum(nil)), s.id
	return st, err
}

func readLines(ctx context.Context, in io.Reader, r reader, at *place, st *Stats, bad func(line, string)) error {
	lines := newLineReader(in)
	for {
		l, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if l.n%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		at.line, st.Bytes = l.n, l.offset+l.size
		if !l.torn {
			st.Lines = l.n
		}
		if l.n <= at.done && l.long {
			continue
		}
		if l.long {
			bad(l, fmt.Sprintf("a line of %d bytes, longer than the %d that are read", l.size, maxLine))
			continue
		}
		if len(bytes.TrimSpace(l.text)) == 0 {
			continue
		}
		switch err := r.read(l); {
		case err == nil:
		case errors.Is(err, errLine):
			if !l.torn && l.n > at.done { // else it is still being written, and read the next time
				bad(l, err.Error())
			}
		default:
			return err
		}
	}
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (src Source) reader(s *session) reader {
	switch src.Client {
	case "codex":
		return &codexReader{session: s, marks: codexMarks()}
	case "gemini":
		return &geminiReader{session: s}
	case "copilot":
		return &copilotReader{session: s, marks: copilotMarks()}
	}
	r := &claudeReader{session: s, marks: claudeMarks()}
	if src.root != nil && src.Session != "" {
		dir := path.Join(path.Dir(src.name), src.Session, "tool-results")
		if src.Agent != "" {
			dir = path.Join(path.Dir(path.Dir(src.name)), "tool-results")
		}
		r.result = func(name string) (*os.File, error) { return openRegular(src.root, path.Join(dir, name)) }
	}
	return r
}
