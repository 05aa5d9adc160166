// Package replay keeps what the sessions of clients over HTTP were sent, within bounds, so that
// one whose connection broke goes on from the last event that it saw. It is in memory: it
// writes no file and takes no lock of one.
package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"reprise/internal/clip"
)

const (
	// keepBytes and keepStreams bound what one session can have replayed: a few
	// of the largest answers, and more streams than a client has at once.
	keepBytes   = 1 << 20
	keepStreams = 256
)

// Store keeps what was sent in each session, so that a client whose
// connection broke can go on from the last event it saw, and knows whose each
// session is. It is in memory, as sessions are: they end with the server.
//
// The SDK's own store has one bound for all sessions, so that one client could
// push out what another needs, and keeps a record of every stream there was.
type Store struct {
	now func() time.Time

	mu       sync.Mutex
	sessions map[string]*keptSession
}

type keptSession struct {
	owner   string
	used    time.Time
	busy    int // requests under way
	bytes   int
	streams map[string]*keptStream
	order   []string // of the streams, oldest first
}

type keptStream struct {
	first int // index of data[0]
	data  [][]byte
}

var errUnknownStream = errors.New("nothing is kept of that stream")

// New is an empty store.
func New(now func() time.Time) *Store {
	return &Store{now: now, sessions: map[string]*keptSession{}}
}

// Open implements mcp.EventStore.
func (s *Store) Open(ctx context.Context, sessionID, streamID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.sessions[sessionID]
	if k == nil {
		k = &keptSession{used: s.now(), streams: map[string]*keptStream{}}
		if info := auth.TokenInfoFromContext(ctx); info != nil {
			k.owner = info.UserID
		}
		s.sessions[sessionID] = k
	}
	if k.streams[streamID] != nil {
		return nil
	}
	k.streams[streamID] = &keptStream{}
	k.order = append(k.order, streamID)
	if len(k.order) > keepStreams {
		// The one without a name lives as long as the session, and was first.
		k.drop(k.order[1])
	}
	return nil
}

// drop forgets a stream; who asks for it is told that it is gone.
func (k *keptSession) drop(id string) {
	for _, d := range k.streams[id].data {
		k.bytes -= len(d)
	}
	delete(k.streams, id)
	k.order = slices.DeleteFunc(k.order, func(o string) bool { return o == id })
}

// Append implements mcp.EventStore.
func (s *Store) Append(_ context.Context, sessionID, streamID string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.sessions[sessionID]
	if k == nil || k.streams[streamID] == nil {
		return nil // ended or dropped: nobody can ask for it
	}
	k.streams[streamID].data = append(k.streams[streamID].data, data)
	k.bytes += len(data)
	for _, id := range k.order {
		st := k.streams[id]
		for len(st.data) > 0 && k.bytes > keepBytes && (id != streamID || len(st.data) > 1) {
			k.bytes -= len(st.data[0])
			st.data[0] = nil
			st.data, st.first = st.data[1:], st.first+1
		}
	}
	return nil
}

// After implements mcp.EventStore.
func (s *Store) After(_ context.Context, sessionID, streamID string, index int) iter.Seq2[[]byte, error] {
	data, err := s.after(sessionID, streamID, index)
	return func(yield func([]byte, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		for _, d := range data {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (s *Store) after(sessionID, streamID string, index int) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.sessions[sessionID]
	if k == nil || k.streams[streamID] == nil {
		return nil, fmt.Errorf("stream %q of session %q: %w", clip.Bytes(streamID, 60), clip.Bytes(sessionID, 60), errUnknownStream)
	}
	st := k.streams[streamID]
	start := index + 1 - st.first
	if start < 0 {
		return nil, fmt.Errorf("event %d of stream %q: %w", index, clip.Bytes(streamID, 60), mcp.ErrEventsPurged)
	}
	if start >= len(st.data) {
		return nil, nil
	}
	return slices.Clone(st.data[start:]), nil
}

// SessionClosed implements mcp.EventStore.
func (s *Store) SessionClosed(_ context.Context, sessionID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, sessionID)
	return nil
}

// Enter notes that a session is used, until the function it returns is called.
func (s *Store) Enter(sessionID string) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.sessions[sessionID]
	if k == nil {
		return func() {}
	}
	k.busy++
	k.used = s.now()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		k.busy--
		k.used = s.now()
	}
}

// Room finds the sessions of an owner that have to end before it may have
// another: the ones that were used least lately. ok is false where too few are
// idle.
func (s *Store) Room(owner string, most int) (end []string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var idle []string
	n := 0
	for id, k := range s.sessions {
		if k.owner != owner {
			continue
		}
		n++
		if k.busy == 0 {
			idle = append(idle, id)
		}
	}
	over := n - most + 1
	if over <= 0 {
		return nil, true
	}
	if over > len(idle) {
		return nil, false
	}
	slices.SortFunc(idle, func(a, b string) int { return s.sessions[a].used.Compare(s.sessions[b].used) })
	return idle[:over], true
}
