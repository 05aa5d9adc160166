package judge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"
)

// Status is what a judge has done and may still do.
type Status struct {
	Client   string          `json:"client"` // "": nobody is asked
	Model    string          `json:"model,omitempty"`
	Dir      string          `json:"directory"`
	Trouble  string          `json:"trouble,omitempty"` // why the state cannot be used
	Circuits []CircuitStatus `json:"circuits"`
	Purposes []PurposeStatus `json:"purposes"`
	Asking   int             `json:"asking"` // questions that are being asked
	Cache    CacheStatus     `json:"cache"`
	Failures []Failure       `json:"failures"` // newest first
}

// CircuitStatus is one client and model.
type CircuitStatus struct {
	Name     string    `json:"name"`
	State    string    `json:"state"` // closed, open or half-open
	Failures int       `json:"failures"`
	Until    time.Time `json:"until,omitzero"` // of an open one
}

// PurposeStatus is what the questions of a purpose took today (UTC).
type PurposeStatus struct {
	Purpose string `json:"purpose"`
	On      bool   `json:"on"`
	Spent
	MostCalls int     `json:"most_calls"`
	MostUSD   float64 `json:"most_usd"`
}

// CacheStatus is what is kept of answers.
type CacheStatus struct {
	Answers int   `json:"answers"`
	Bytes   int64 `json:"bytes"`
	Hours   int   `json:"hours"`
}

// Status reads it. It changes nothing. A state that cannot be used is said in
// Trouble.
func (j *Judge) Status() (Status, error) {
	set := j.opt.Settings
	out := Status{Client: set.Client, Model: set.Model, Dir: j.opt.Dir, Circuits: []CircuitStatus{}, Failures: []Failure{}, Cache: CacheStatus{Hours: set.CacheHours}}
	list, err := j.answers()
	if err != nil {
		return out, fmt.Errorf("status of the judge: %w", err)
	}
	for _, a := range list {
		out.Cache.Answers++
		out.Cache.Bytes += a.size
	}
	st, err := j.load()
	if err != nil {
		out.Trouble, st = err.Error(), &state{}
	}
	now := j.opt.Now()
	for _, name := range slices.Sorted(maps.Keys(st.Circuits)) {
		c := *st.Circuits[name]
		c.mind(now)
		s := CircuitStatus{Name: name, State: c.word(now), Failures: c.Failures}
		if c.Wait > 0 {
			s.Until = c.OpenedAt.Add(c.Wait)
		}
		out.Circuits = append(out.Circuits, s)
	}
	for _, purpose := range Purposes() {
		out.Purposes = append(out.Purposes, PurposeStatus{
			Purpose: purpose, On: j.Enabled(purpose), Spent: *st.spent(dayOf(now), purpose), MostCalls: set.CallsPerDay, MostUSD: set.BudgetUSDPerDay,
		})
	}
	out.Asking = len(st.Open)
	out.Failures = append(out.Failures, st.Failures...)
	slices.Reverse(out.Failures)
	return out, nil
}

// Ready says why nobody could be asked, though the settings name somebody: the
// client is not there or cannot be isolated, or the state cannot be used. Nobody
// is asked to find out.
func (j *Judge) Ready(ctx context.Context) error {
	p, err := j.prepare(Question{Purpose: Review, Prompt: "Is anybody there?", Schema: []byte(`{"type":"object"}`)})
	if err != nil {
		return err
	}
	if _, _, err := j.opt.Runs.Client(ctx, p.request); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	_, err = j.load()
	return err
}

// Reset is what is to be forgotten.
type Reset struct {
	Budget bool // what was spent today, too
	Cache  bool // the answers that are kept
}

// Reset closes the circuits and forgets failures. A state that cannot be used is
// put aside, and its name returned: with it goes what was spent.
func (j *Judge) Reset(ctx context.Context, what Reset) (aside string, err error) {
	if err := j.opt.Disk.MkdirAll(j.opt.Dir, 0o700); err != nil {
		return "", fmt.Errorf("reset judge: %w", err)
	}
	wait, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	unlock, err := j.opt.Disk.Lock(wait, j.path(lockFile))
	if err != nil {
		return "", fmt.Errorf("reset judge: %w", err)
	}
	defer unlock()
	st, err := j.load()
	if err != nil {
		aside = j.path("state-" + j.opt.Now().UTC().Format("20060102T150405") + ".bad")
		if err := j.opt.Disk.Rename(j.path(stateFile), aside); errors.Is(err, fs.ErrNotExist) {
			aside = ""
		} else if err != nil {
			return "", fmt.Errorf("reset judge: put %s aside: %w", j.path(stateFile), err)
		}
		st = &state{}
	}
	st.Circuits, st.Failures = nil, nil
	st.Resets++
	if what.Budget {
		delete(st.Days, dayOf(j.opt.Now()))
	}
	if err := j.write(st); err != nil {
		return aside, fmt.Errorf("reset judge: %w", err)
	}
	if !what.Cache {
		return aside, nil
	}
	if err := j.opt.Disk.RemoveAll(j.path(answersDir)); err != nil {
		return aside, fmt.Errorf("reset judge: %w", err)
	}
	return aside, nil
}
