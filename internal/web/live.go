package web

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// beatEvery is how often a stream that has nothing to say says so, so that one
	// whose browser has gone is found out about, and a page knows that it is not old.
	beatEvery  = 15 * time.Second
	writeTime  = 10 * time.Second
	maxStreams = 64
)

// stream is an answer of server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     bytes.Buffer
}

var errStreams = errors.New("too many pages are open at once: close some")

// openStream begins an answer of events. close must be called.
func openStream(w http.ResponseWriter, open *atomic.Int32) (s *stream, closed func(), err error) {
	if open.Add(1) > maxStreams {
		open.Add(-1)
		return nil, nil, errStreams
	}
	s = &stream{w: w, control: http.NewResponseController(w)}
	// A writer without deadlines exists in tests only.
	_ = s.control.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "text/event-stream")
	return s, func() { open.Add(-1) }, nil
}

// event sends one event. An id is what the browser asks to go on from when the
// connection was lost.
func (s *stream) event(name, id, data string) error {
	s.buf.Reset()
	if id != "" {
		fmt.Fprintf(&s.buf, "id: %s\n", id)
	}
	fmt.Fprintf(&s.buf, "event: %s\n", name)
	for line := range strings.Lines(data) {
		fmt.Fprintf(&s.buf, "data: %s\n", strings.TrimRight(line, "\r\n"))
	}
	if data == "" {
		s.buf.WriteString("data:\n")
	}
	s.buf.WriteString("\n")
	return s.flush()
}

func (s *stream) beat() error { return s.event("beat", "", "") }

func (s *stream) flush() error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime))
	if _, err := s.w.Write(s.buf.Bytes()); err != nil {
		return err
	}
	return s.control.Flush()
}

// live tells a page what has changed on disk, by topic, for as long as it is open.
func (s *Server) live(w http.ResponseWriter, r *http.Request) {
	out, closed, err := openStream(w, &s.streams)
	if err != nil {
		s.fail(w, r, http.StatusServiceUnavailable, err)
		return
	}
	defer closed()
	l, leave := s.watch.Listen(r.Context())
	defer leave()
	// The page was made before this began: it looks once more now.
	if out.event("hello", "", "") != nil {
		return
	}
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		var err error
		select {
		case <-r.Context().Done():
			return
		case <-l.Wake:
			if topics := l.Take(); len(topics) > 0 {
				err = out.event("changed", "", strings.Join(topics, " "))
			}
		case <-beat.C:
			err = out.beat()
		}
		if err != nil {
			return // the page is closed
		}
	}
}
