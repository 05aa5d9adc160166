package verify

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
)

// Store keeps the results of a project's verifications: <dir>/<id>.json,
// base/<key>.json with how a check went at a commit, and gates/ with what is
// known of sessions.
type Store struct {
	Dir  string
	Disk durable.Disk // the zero value is the machine's
}

// keepResults is how many results are kept, keepBase how long a check's result
// at a commit is.
const (
	keepResults = 100
	keepBase    = 14 * 24 * time.Hour
)

// ErrNoResult says that there is no verification with that id.
var ErrNoResult = errors.New("there is no such verification")

const idChars = "0123456789abcdefghijklmnopqrstuv"

// newID is an id that sorts by time.
func newID(now time.Time) string {
	b := make([]byte, 0, 20)
	b = append(b, "ver-"...)
	ms := uint64(now.UnixMilli())
	for shift := 45; shift >= 0; shift -= 5 {
		b = append(b, idChars[ms>>shift&31])
	}
	var r [6]byte
	_, _ = rand.Read(r[:]) // it never fails: it ends the program where it would
	for _, c := range r {
		b = append(b, idChars[c&31])
	}
	return string(b)
}

// isID keeps what is not an id from becoming a path.
func isID(id string) bool {
	rest, ok := strings.CutPrefix(id, "ver-")
	return ok && len(rest) == 16 && strings.Trim(rest, idChars) == ""
}

// Save writes a result, and lets the oldest go.
func (s Store) Save(r *Result) error {
	if err := s.Disk.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("save verification: %w", err)
	}
	if err := s.write(r.ID+".json", r); err != nil {
		return err
	}
	if err := s.unmark(r.ID); err != nil {
		return err
	}
	names, err := s.names()
	if err != nil {
		return err
	}
	for len(names) > keepResults {
		if err := s.Disk.Remove(filepath.Join(s.Dir, names[0]+".json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("save verification: %w", err)
		}
		if err := s.unmark(names[0]); err != nil {
			return err
		}
		names = names[1:]
	}
	return nil
}

func (s Store) write(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("save verification: %w", err)
	}
	if err := s.Disk.WriteFile(filepath.Join(s.Dir, name), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("save verification: %w", err)
	}
	return nil
}

// names are the ids of all results, the oldest first, those of verifications that were
// killed among them.
func (s Store) names() ([]string, error) {
	entries, err := durable.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list verifications: %w", err)
	}
	var out []string
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && isID(id) {
			out = append(out, id)
		} else if id, ok := strings.CutSuffix(e.Name(), begunExt); ok && isID(id) && s.killed(id) != nil {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Get reads a result; the beginning of an id is enough where it is one's alone,
// and "latest" is the newest. The error is [ErrNoResult] where there is none.
func (s Store) Get(id string) (*Result, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	if id == "latest" || id == "" {
		if len(names) == 0 {
			return nil, ErrNoResult
		}
		return s.read(names[len(names)-1])
	}
	var found []string
	for _, n := range names {
		if n == id {
			return s.read(n)
		}
		if len(id) >= 6 && strings.HasPrefix(n, id) {
			found = append(found, n)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%w: %.40q; `reprise verify list` shows ids", ErrNoResult, id)
	case 1:
		return s.read(found[0])
	}
	return nil, fmt.Errorf("%d verifications have an id that begins with %.40q; give more of it", len(found), id)
}

func (s Store) read(id string) (*Result, error) {
	name := filepath.Join(s.Dir, id+".json")
	data, err := durable.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		if r := s.killed(id); r != nil {
			return r, nil
		}
		return nil, ErrNoResult
	}
	if err != nil {
		return nil, fmt.Errorf("read verification: %w", err)
	}
	var r Result
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("read verification %s: %w; remove the file", name, err)
	}
	if r.V != ResultVersion {
		return nil, fmt.Errorf("read verification %s: its form is version %d, this program knows %d", name, r.V, ResultVersion)
	}
	return &r, nil
}

// List are the newest results, at most n, the newest first, and how many files
// could not be read.
func (s Store) List(n int) (list []*Result, bad int, err error) {
	names, err := s.names()
	if err != nil {
		return nil, 0, err
	}
	for _, id := range slices.Backward(names) {
		if len(list) == n {
			break
		}
		r, err := s.read(id)
		if err != nil {
			bad++
			continue
		}
		list = append(list, r)
	}
	return list, bad, nil
}

// Ends is how the last turns ended.
type Ends struct {
	// Loose is the last end of a turn, where that was not judged, or its work is not
	// done, and nothing was found out of the same tree since; else nil.
	Loose *Result
	// Unjudged is how many of the newest [LookedAt] verifications are of turns that were
	// not judged, Newest the newest of these.
	Unjudged int
	Newest   *Result
}

// LookedAt is how many verifications [Store.Ends] looks at for ends that were not judged.
const LookedAt = 5

// Ends looks how the last turns ended.
func (s Store) Ends() (Ends, error) {
	list, _, err := s.List(20)
	if err != nil {
		return Ends{}, err
	}
	var out Ends
	for i, r := range list {
		if i < LookedAt && r.Unjudged() != "" {
			if out.Unjudged++; out.Newest == nil {
				out.Newest = r
			}
		}
	}
	known := map[string]bool{}
	for _, r := range list {
		if r.Loose() != "" && !known[r.Dir] {
			out.Loose = r
			break
		}
		if r.Trigger == Stop || r.Trigger == SubagentStop && r.Unjudged() == "" {
			break // that one was judged, and is done or went on
		}
		known[r.Dir] = known[r.Dir] || r.Status != Error
	}
	return out, nil
}

// red is the newest result if it says that the same checks fail in the very same tree.
func (s Store) red(w sought) *Result {
	list, _, err := s.List(1)
	if err != nil || len(list) == 0 {
		return nil
	}
	r := list[0]
	if r.Status != Failed || r.Tree != w.hash || r.Config != w.config || r.Profile != w.profile || r.Base != w.base {
		return nil
	}
	return r
}

// sought is what an earlier verification must say for its answer to be taken: of a
// tree, seen by its stamp or by its hash (an empty one fits nothing), under these
// checks, under a profile that covers this one. What was excused because its base
// failed in the same way counts for that base alone, and only where excuses count.
type sought struct {
	dir, stamp, hash, config, profile string
	base                              string
	excused                           bool
	gates                             []string // that must have been looked at, too
}

// green is the newest result that says that a tree passes.
func (s Store) green(w sought) *Result {
	list, _, err := s.List(20)
	if err != nil {
		return nil // then it is looked at anew
	}
	for _, r := range list {
		same := w.stamp != "" && r.Stamp == w.stamp && r.Dir == w.dir || w.hash != "" && r.Tree == w.hash
		if !same || r.Status != Passed || r.Config != w.config || !covers(r.Profile, w.profile) {
			continue
		}
		alike := r.Base == w.base && w.excused
		looked := !slices.ContainsFunc(w.gates, func(g string) bool { return r.Base != w.base || !slices.Contains(r.Gates, g) })
		if looked && (alike || sound(list, r)) {
			return r
		}
	}
	return nil
}

// sound reports whether everything required passed by itself, with nothing excused.
// An answer that was taken from another of the list is what that one is.
func sound(list []*Result, r *Result) bool {
	if r.Reused != "" {
		i := slices.IndexFunc(list, func(o *Result) bool { return o.ID == r.Reused && o.Reused == "" })
		return i >= 0 && sound(list, list[i])
	}
	return len(r.Checks) > 0 && !slices.ContainsFunc(r.Checks, func(c CheckResult) bool { return c.Level == levelRequired && c.Status != Passed })
}

// atBase is how a check went at a commit.
type atBase struct {
	V      int       `json:"v"`
	At     time.Time `json:"at"`
	Commit string    `json:"commit"`
	Check  string    `json:"check"`
	Status Status    `json:"status"`
	// Ended is how it ended, where that was by no exit code of its own choice; the rest is
	// what it said, see [said].
	Ended      string             `json:"ended,omitempty"`
	Exit       int                `json:"exit,omitempty"`
	Failures   []string           `json:"failures,omitempty"`
	Failing    int                `json:"failing,omitempty"`
	Telling    map[string]int     `json:"telling,omitempty"`
	Other      []string           `json:"other,omitempty"`
	Amounts    map[string]float64 `json:"amounts,omitempty"`
	Outside    map[string]int     `json:"outside,omitempty"`
	Details    map[string]int     `json:"details,omitempty"`
	CutDetails bool               `json:"cut_details,omitempty"`
	Cut        bool               `json:"cut,omitempty"`
	CutTelling bool               `json:"cut_telling,omitempty"`
	CutOther   bool               `json:"cut_other,omitempty"`
}

// atBaseVersion is the version of [atBase]'s form; what an older one lacks is found out
// again.
const atBaseVersion = 8

func baseKey(commit, sub string, c config.Check, v *config.Verify) (string, error) {
	data, err := json.Marshal([]any{commit, sub, c.Shell, c.Argv, c.Dir, c.TimeoutSeconds, v.Env, v.Carry})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12]), nil
}

func (s Store) base(key string, now time.Time) (atBase, bool) {
	var b atBase
	data, err := durable.Read(filepath.Join(s.Dir, "base", key+".json"))
	if err != nil || json.Unmarshal(data, &b) != nil || b.V != atBaseVersion || now.Sub(b.At) > keepBase {
		return atBase{}, false
	}
	return b, true
}

func (s Store) saveBase(key string, b atBase) error {
	dir := filepath.Join(s.Dir, "base")
	if err := s.Disk.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("save a check's result at its base: %w", err)
	}
	entries, err := durable.ReadDir(dir)
	if err == nil && len(entries) > 4*keepResults {
		for _, e := range entries {
			if fi, err := e.Info(); err == nil && b.At.Sub(fi.ModTime()) > keepBase {
				_ = s.Disk.Remove(filepath.Join(dir, e.Name())) // it is only a saving
			}
		}
	}
	return s.write(filepath.Join("base", key+".json"), b)
}
