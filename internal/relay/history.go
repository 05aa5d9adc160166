package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrOtherHistory says that the project is another one than the fleet knows by its name.
var ErrOtherHistory = errors.New("another repository has this project's name in the fleet")

// History is with which commits the history of a project begins, by which two projects of one
// name are told apart.
type History struct {
	V     int      `json:"v"`     // 1
	Roots []string `json:"roots"` // commits without a parent
	By    string   `json:"by"`    // who told it
}

// SameHistory says whether the project is the one that the fleet knows by its name: the first who
// comes tells which that is, and anew tells it again, as where the history was written anew. The
// error is [ErrOtherHistory]; whatever else it is, nobody can tell.
func (r *Relay) SameHistory(ctx context.Context, h History, anew bool) error {
	kv, err := bucket(ctx, r.conn)
	if err != nil {
		return err
	}
	h.V = 1
	key := r.key("p", "history")
	e, err := kv.Get(ctx, key)
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		return r.conn.Explain("ask which project it is", err)
	}
	if err == nil && !anew {
		var was History
		if json.Unmarshal(e.Value(), &was) == nil && len(was.Roots) > 0 {
			if !slices.ContainsFunc(h.Roots, func(c string) bool { return slices.Contains(was.Roots, c) }) {
				return fmt.Errorf("%w: it begins with the commit %.12s, as %s told at %s", ErrOtherHistory, was.Roots[0], was.By, e.Created().Local().Format(time.DateTime))
			}
			h = was
		}
	}
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return told(ctx, r.conn, "say which project it is", func(ctx context.Context) error {
		if e == nil { // of two who come first at once one is
			_, err = kv.Create(ctx, key, data)
		} else {
			_, err = kv.Put(ctx, key, data) // or it would be forgotten with what workers said long ago
		}
		if errors.Is(err, jetstream.ErrKeyExists) {
			return r.SameHistory(ctx, h, anew)
		}
		return err
	}, r.conn.Workers())
}
