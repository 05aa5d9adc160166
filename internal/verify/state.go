package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"reprise/internal/durable"
)

// gateState is <store>/gates/<key>.json: what is known of a session, or of a
// subagent in one. Sum is a checksum of the rest: who changes the file by hand
// is found out, and gains no turn by it.
type gateState struct {
	V        int       `json:"v"`
	Client   string    `json:"client"`
	Session  string    `json:"session"`
	Agent    string    `json:"agent,omitempty"`
	Baseline *baseline `json:"baseline,omitempty"`
	Blocks   int       `json:"blocks"`           // in this turn
	Total    int       `json:"total"`            // in the session
	Prompt   string    `json:"prompt,omitempty"` // event of the prompt that the turn began with
	Told     string    `json:"told,omitempty"`   // verification after a failure that was told last
	Unseen   bool      `json:"unseen,omitempty"` // it was told that its work could not be looked at
	Lapsed   string    `json:"lapsed,omitempty"` // text of the project's file of which it was told that it is not approved
	Sum      string    `json:"sum"`
}

// turn begins to count anew where the end is one of another turn. A turn begins with
// a prompt: clients that say of every end that they were not kept before would be
// kept for ever otherwise. Only where no prompt is known does their word count. How
// often a turn was kept of which the count is lost is not known, so that stays what
// the results say.
func (s *gateState) turn(t Turn, how found) {
	switch {
	case t.Prompt == "" && s.Prompt == "":
		if !t.Active {
			s.Blocks = 0
		}
	case t.Prompt == "" || t.Prompt == s.Prompt:
	default:
		// A prompt may also be what the client makes of the reason of a block.
		if !t.Active && how == intact {
			s.Blocks = 0
		}
		s.Prompt = t.Prompt
	}
}

// baseline is what the tree was when a session began.
type baseline struct {
	Dir     string    `json:"dir"`
	Stamp   string    `json:"stamp"`
	Settled bool      `json:"settled"`
	Commit  string    `json:"commit,omitempty"`
	At      time.Time `json:"at"`
}

// found is how a session's state was found.
type found string

const (
	intact   found = "there"
	lost     found = "lost"
	tampered found = "changed by somebody else, or damaged"
)

func (s gateState) sum() string {
	s.Sum = ""
	data, err := json.Marshal(s)
	if err != nil {
		return "" // it has no form that could fail
	}
	h := sha256.Sum256(append([]byte("reprise gate state\n"), data...))
	return hex.EncodeToString(h[:16])
}

func gateKey(t Turn) string {
	sum := sha256.Sum256([]byte(t.Client + "\x00" + t.Session + "\x00" + t.Agent))
	return hex.EncodeToString(sum[:10])
}

func (s Store) gates() string { return filepath.Join(s.Dir, "gates") }

// change reads a session's state, has it changed and writes it, under its lock.
// A session that is new has none, and nothing is lost by that: blocks that were
// said are in the results.
func (s Store) change(ctx context.Context, t Turn, do func(*gateState, found)) error {
	if t.Session == "" {
		return errors.New("the client did not say which session it is")
	}
	if err := s.Disk.MkdirAll(s.gates(), 0o700); err != nil {
		return fmt.Errorf("note the state of a session: %w", err)
	}
	file := filepath.Join(s.gates(), gateKey(t)+".json")
	unlock, err := s.Disk.Lock(ctx, file+".lock")
	if err != nil {
		return fmt.Errorf("note the state of a session: %w", err)
	}
	defer unlock() // an error of it ends with the process
	st, how, err := s.load(file, t)
	if err != nil {
		return err
	}
	before := st
	do(&st, how)
	if how == intact && before == st {
		return nil
	}
	st.Sum = st.sum()
	data, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return fmt.Errorf("note the state of a session: %w", err)
	}
	if err := s.Disk.WriteFile(file, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("note the state of a session: %w", err)
	}
	return nil
}

// load reads a session's state. What is lost or tampered with is made anew from
// the results that say that they blocked.
func (s Store) load(file string, t Turn) (gateState, found, error) {
	fresh := gateState{V: 1, Client: t.Client, Session: t.Session, Agent: t.Agent}
	data, err := durable.Read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fresh, lost, fmt.Errorf("read the state of a session: %w", err)
	}
	var st gateState
	how := tampered
	if err != nil {
		how = lost
	} else if json.Unmarshal(data, &st) == nil && st.V == 1 && st.Sum == st.sum() && st.Client == t.Client && st.Session == t.Session && st.Agent == t.Agent {
		return st, intact, nil
	}
	n, err := s.blocked(t)
	if err != nil {
		return fresh, how, err
	}
	if n == 0 && how == lost && !t.Active {
		return fresh, intact, nil // it is new
	}
	fresh.Blocks, fresh.Total = n, n
	return fresh, how, nil
}

// blocked counts the results that kept a session.
func (s Store) blocked(t Turn) (int, error) {
	list, _, err := s.List(keepResults)
	n := 0
	for _, r := range list {
		if r.Blocked && r.Client == t.Client && r.Session == t.Session && r.Agent == t.Agent {
			n++
		}
	}
	return n, err
}

// keepGates is how long a session's state is kept after its file changed last.
const keepGates = 30 * 24 * time.Hour

func (s Store) sweepGates(now time.Time) error {
	entries, err := durable.ReadDir(s.gates())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) < 50 {
		return nil
	}
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".json") && now.Sub(fi.ModTime()) > keepGates {
			if err := s.Disk.Remove(filepath.Join(s.gates(), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// GateState is what is known of a session, for people.
type GateState struct {
	Client   string    `json:"client"`
	Session  string    `json:"session"`
	Agent    string    `json:"agent,omitempty"`
	Began    time.Time `json:"began,omitzero"`
	Blocks   int       `json:"blocks"`
	Total    int       `json:"total"`
	Problem  string    `json:"problem,omitempty"`
	Modified time.Time `json:"modified"`
	file     string
}

// Sessions are the sessions of which something is known, and what is wrong with
// the notes of some.
func (s Store) Sessions() ([]GateState, error) {
	entries, err := durable.ReadDir(s.gates())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the gates' sessions: %w", err)
	}
	var out []GateState
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		file := filepath.Join(s.gates(), e.Name())
		data, err := durable.Read(file)
		if err != nil {
			continue // gone meanwhile
		}
		g := GateState{file: file}
		if fi, err := e.Info(); err == nil {
			g.Modified = fi.ModTime()
		}
		var st gateState
		if json.Unmarshal(data, &st) != nil || st.Sum != st.sum() {
			g.Problem = string(tampered)
		}
		g.Client, g.Session, g.Agent, g.Blocks, g.Total = st.Client, st.Session, st.Agent, st.Blocks, st.Total
		if st.Baseline != nil {
			g.Began = st.Baseline.At
		}
		out = append(out, g)
	}
	return out, nil
}

// Reset forgets how often sessions were kept: of one whose id begins so, or with
// "" of all. What the tree was when they began is kept.
func (s Store) Reset(ctx context.Context, session string) (n int, err error) {
	list, err := s.Sessions()
	if err != nil {
		return 0, err
	}
	for _, g := range list {
		if g.Problem != "" {
			if session == "" {
				if err := s.Disk.Remove(g.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return n, err
				}
				n++
			}
			continue
		}
		if !strings.HasPrefix(g.Session, session) {
			continue
		}
		err := s.change(ctx, Turn{Client: g.Client, Session: g.Session, Agent: g.Agent}, func(st *gateState, _ found) { st.Blocks, st.Total = 0, 0 })
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
