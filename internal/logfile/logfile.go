// Package logfile is reprise's own log: JSON lines in a file, rotated by size,
// written by any number of processes at once. It implements slog.Handler.
//
// It owns the file it is given, <state>/log/reprise.log by default, and the
// rotated ones beside it (reprise.log.1 is the newest). It takes the lock
// reprise.log.lock for the length of one write. Nothing is made before the
// first line is written, and nothing is ever written to standard output.
//
// A log must not stand in the way of what it records: a line that cannot be
// written is counted (Handler.Failures) and the program goes on. The next line
// that can be written is preceded by one that says how many were lost. Lines
// are not synced to the disk one by one: they survive a crash of the program,
// the last ones perhaps not a power cut.
package logfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"reprise/internal/durable"
)

// Options say where and how to log.
type Options struct {
	File       string           // absolute path
	Level      string           // "debug", "info", "warn" or "error"; "" is info
	MaxSizeMB  int              // rotate before the file would exceed this many MiB; 0 is 10
	MaxBackups int              // rotated files kept; negative is 3
	Now        func() time.Time // clock of the lines
	Redact     func(string) string
	// Redact, if set, is applied to every text in a line.

	maxBytes int64 // for tests: instead of MaxSizeMB
}

// Handler writes log lines. Handlers made of it by WithAttrs and WithGroup
// share its file, level and counts.
type Handler struct {
	*sink
	pre    []field  // attributes of WithAttrs, in their groups already
	groups []string // open groups
}

// sink is what all handlers of one log share.
type sink struct {
	opts  Options
	level slog.LevelVar

	mu      sync.Mutex
	closed  bool
	lost    int   // lines not written since the last that was
	failed  int   // lines not written at all
	lastErr error // why
}

// New returns a handler. It fails only for options that cannot be: the file
// itself is not touched.
func New(opts Options) (*Handler, error) {
	if !filepath.IsAbs(opts.File) {
		return nil, fmt.Errorf("open log: %q is not an absolute path; correct logging.file", opts.File)
	}
	if opts.Now == nil {
		return nil, errors.New("open log: no clock given")
	}
	if opts.maxBytes == 0 {
		if opts.MaxSizeMB <= 0 {
			opts.MaxSizeMB = 10
		}
		opts.maxBytes = int64(opts.MaxSizeMB) << 20
	}
	if opts.MaxBackups < 0 {
		opts.MaxBackups = 3
	}
	h := &Handler{sink: &sink{opts: opts}}
	if err := h.SetLevel(opts.Level); err != nil {
		return nil, err
	}
	return h, nil
}

// SetLevel changes from which level on lines are written.
func (s *sink) SetLevel(name string) error {
	switch name {
	case "debug":
		s.level.Set(slog.LevelDebug)
	case "info", "":
		s.level.Set(slog.LevelInfo)
	case "warn":
		s.level.Set(slog.LevelWarn)
	case "error":
		s.level.Set(slog.LevelError)
	default:
		return fmt.Errorf("set log level: %q is not one of debug, info, warn and error", name)
	}
	return nil
}

// Failures returns how many lines this process could not write, and the last
// reason.
func (s *sink) Failures() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed, s.lastErr
}

// Close stops writing. Lines that come later are dropped.
func (s *sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level.Level() }

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	n := *h
	n.pre = append(n.pre[:len(n.pre):len(n.pre)], h.fields(attrs)...)
	return &n
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	n := *h
	n.groups = append(n.groups[:len(n.groups):len(n.groups)], name)
	return &n
}

// Handle implements slog.Handler. It never fails: see Failures.
func (h *Handler) Handle(_ context.Context, r slog.Record) error {
	line := h.line(r)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	if h.lost > 0 {
		note := h.note(h.lost, h.lastErr)
		line = append(note, line...)
	}
	if err := h.write(line); err != nil {
		h.lost++
		h.failed++
		h.lastErr = err
		return nil
	}
	h.lost = 0
	return nil
}

// lockWait bounds how long a line waits for other processes' lines. A holder
// keeps the lock for microseconds unless it is stopped in the middle.
const lockWait = 2 * time.Second

// write appends line under the lock, after a rotation where one is due. The
// file is opened for each line, so that no process keeps writing to one that
// another has rotated away.
func (s *sink) write(line []byte) (err error) {
	if err := durable.MkdirAll(filepath.Dir(s.opts.File), 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	unlock, err := durable.Lock(ctx, s.opts.File+".lock")
	if err != nil {
		return err
	}
	defer func() {
		if uerr := unlock(); err == nil {
			err = uerr
		}
	}()
	size, err := s.size()
	if err != nil {
		return err
	}
	if size > 0 && size+int64(len(line)) > s.opts.maxBytes {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	return s.append(line)
}

func (s *sink) size() (int64, error) {
	info, err := os.Lstat(s.opts.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular():
		return 0, fmt.Errorf("write log: %s is not a regular file", s.opts.File)
	}
	return info.Size(), nil
}

// rotate renames the log to .1, .1 to .2 and so on, and removes the oldest.
// Files beyond the number kept, left by an earlier setting, go too.
func (s *sink) rotate() error {
	name := func(i int) string { return fmt.Sprintf("%s.%d", s.opts.File, i) }
	for i := max(s.opts.MaxBackups, 1); ; i++ {
		err := durable.Remove(name(i))
		if errors.Is(err, fs.ErrNotExist) && i > s.opts.MaxBackups {
			break
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rotate log: %w", err)
		}
	}
	if s.opts.MaxBackups == 0 {
		if err := durable.Remove(s.opts.File); err != nil {
			return fmt.Errorf("rotate log: %w", err)
		}
		return nil
	}
	for i := s.opts.MaxBackups - 1; i >= 0; i-- {
		from := name(i)
		if i == 0 {
			from = s.opts.File
		}
		if err := durable.Rename(from, name(i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rotate log: %w", err)
		}
	}
	return nil
}

// append writes line with one write(2). A torn line that a crash or a full
// disk left is closed first, so that it spoils nothing but itself.
func (s *sink) append(line []byte) (err error) {
	f, err := s.open()
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	size, err := f.Seek(0, 2)
	if err != nil {
		return err
	}
	if size > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], size-1); err == nil && last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	if n, err := f.Write(line); err != nil {
		if n > 0 {
			_ = f.Truncate(size) // best effort: the next append closes what is left
		}
		return fmt.Errorf("write log: %w", err)
	}
	return nil
}

func (s *sink) open() (*os.File, error) {
	// Opening what is there makes nothing; a new file is made by durable.
	f, err := os.OpenFile(s.opts.File, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		made, err := durable.Create(s.opts.File, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open log: %w", err)
		}
		if err := made.Close(); err != nil {
			return nil, fmt.Errorf("open log: %w", err)
		}
		f, err = os.OpenFile(s.opts.File, os.O_RDWR|os.O_APPEND, 0)
		if err != nil {
			return nil, fmt.Errorf("open log: %w", err)
		}
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return f, nil
}
