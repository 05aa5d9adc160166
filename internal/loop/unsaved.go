package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"reprise/internal/durable"
	"reprise/internal/loop/core"
)

// unsavedFile says why the loop's own state cannot be written, as on a disk that is full. Who looks
// at the state would else see how things stood before, as if they still did. It has its room from
// the beginning, and is written in place.
const unsavedFile = "unsaved.json"

// unsavedSize is that of the file.
const unsavedSize = 2 << 10

// staleAfter is how old the state of a loop that works can be at most: it is written at least once
// a minute ([Loop.keepTime]).
const staleAfter = 3 * time.Minute

type unsaved struct {
	V     int       `json:"v"`
	Since time.Time `json:"since,omitzero"`
	Why   string    `json:"why,omitempty"` // "" where it can be written
}

func (u unsaved) encode() []byte {
	u.V = 1
	data, err := json.Marshal(u)
	if err != nil || len(data) >= unsavedSize { // of a time and a text that was cut
		data = []byte(`{"v":1}`)
	}
	return append(append(data, bytes.Repeat([]byte{' '}, unsavedSize-1-len(data))...), '\n')
}

// room makes the file, and its lock: on a full disk neither could be.
func (s *store) room() error {
	if err := s.disk.WriteFileHot(s.path(unsavedFile), unsaved{}.encode(), 0o600); err != nil {
		return err
	}
	return s.within(unsaved{})
}

func (s *store) within(u unsaved) error { // nobody else holds its lock
	return s.disk.WriteWithin(context.Background(), s.path(unsavedFile), func(io.ReaderAt, int64) (int64, []byte, error) { return 0, u.encode(), nil })
}

// unsaved has others see why the state cannot be written, or with nil that it can. Of the driver
// alone.
func (l *Loop) unsaved(why error) {
	if (why != nil) == l.untold {
		return
	}
	u := unsaved{}
	if why != nil {
		u.Since, u.Why = l.opt.Now().UTC(), oneLine(why.Error(), 500)
	}
	if err := l.store.within(u); err != nil { // then they see that the state is old
		l.warn("say that the state cannot be written", err)
	}
	l.untold = why != nil
}

// Unsaved says, of a loop that a process runs, why what there is to see of it is from before: its
// state cannot be written, or was not for long. "" is neither.
func Unsaved(dir string, s *core.State, now time.Time) string {
	if s == nil {
		return ""
	}
	o, err := readOwner(dir)
	if err != nil || o.Loop != s.Loop || !o.Process.Alive() {
		return "" // the one that runs is just beginning
	}
	var u unsaved
	data, err := durable.Read(filepath.Join(dir, unsavedFile))
	if err == nil && json.Unmarshal(data, &u) == nil && u.Why != "" {
		return fmt.Sprintf("since %s it cannot be written down what it does, so nothing is begun or ended, and what is told here is from then: %s. Once that is mended it goes on by itself", u.Since.Local().Format("15:04"), u.Why)
	}
	if s.Phase == core.Working || s.Phase != core.Finished && s.Busy() > 0 {
		if last := s.Now.Wall; now.Sub(last) > staleAfter && now.Sub(o.Since) > staleAfter {
			return fmt.Sprintf("what is told here is from %s, and nothing was written down since: its disk cannot be written to, its process (%d) is stopped, or the machine was asleep", last.Local().Format("15:04"), o.Process.PID)
		}
	}
	return ""
}
