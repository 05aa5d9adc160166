package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/proc"
)

// Checks run code that an agent may have written, and what they start can kill the very
// process that waits for them; so can the system, when memory is short. Who is killed says
// nothing any more. So a verification leaves a word before its first check, and until there
// is a result; of whom nothing but that word is left, the turn was not judged.

// begunExt is what the word's name ends with, behind the id.
const begunExt = ".begun"

// begun is a verification that runs checks.
type begun struct {
	V       int     `json:"v"`
	Process proc.ID `json:"process"`
	Result  *Result `json:"result"` // what it is if nothing comes after it
}

// begin leaves the word.
func (s Store) begin(r *Result) error {
	self, err := proc.Self()
	if err != nil {
		return fmt.Errorf("begin a verification: %w", err)
	}
	lost := *r
	lost.Stamp, lost.Issues = "", nil
	lost.failed("the verification was killed while its checks ran: by one of them or by what it started, by the system for want of memory, or from outside; look at what the checks and their tests do")
	return s.write(r.ID+begunExt, begun{V: ResultVersion, Process: self, Result: &lost})
}

// unmark takes the word away: there is a result, or nobody is to know of one.
func (s Store) unmark(id string) error {
	if err := s.Disk.Remove(filepath.Join(s.Dir, id+begunExt)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("save verification: %w", err)
	}
	return nil
}

// killed is the result of a verification that left nothing but its word, nil where it is
// still at work, or there is none.
func (s Store) killed(id string) *Result {
	data, err := durable.Read(filepath.Join(s.Dir, id+begunExt))
	var b begun
	if err != nil || json.Unmarshal(data, &b) != nil || b.V != ResultVersion || b.Result == nil || b.Result.ID != id || b.Process.Alive() {
		return nil
	}
	return b.Result
}

// settleKilled makes results of the words of verifications that were killed, as they would
// have done themselves. What cannot be done is done the next time; it is told all the same.
func (v *Verifier) settleKilled(ctx context.Context) {
	entries, err := durable.ReadDir(v.o.Store.Dir)
	if err != nil {
		v.o.Warn("verifications that were killed were not looked for", err)
		return
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), begunExt)
		if !ok || !isID(id) {
			continue
		}
		if r := v.o.Store.killed(id); r != nil {
			if err := v.keep(ctx, r); err != nil {
				v.o.Warn("the result of a verification that was killed is not kept", err)
			}
		}
	}
}
