package judge

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"reprise/internal/durable"
	"reprise/internal/term"
)

// Names of files beneath the judge's directory.
const (
	stateFile   = "state.json"
	lockFile    = "state.lock"
	startedFile = "started"
	answersDir  = "answers"
)

const (
	formatVersion = 1
	// maxState bounds state.json, in bytes: it never comes near.
	maxState = 4 << 20
	// Days, circuits, failures and open questions that are kept.
	maxDays, maxCircuits, maxFailures, maxOpen = 400, 16, 20, 200
	// lockWait is how long the state's lock is waited for: it is held for a
	// read and a write.
	lockWait = 5 * time.Second
	// orphanGrace is how long after its time a question counts as being asked:
	// its run needs that to end.
	orphanGrace = 15 * time.Second
)

// state is what is known of all questions so far.
type state struct {
	Circuits map[string]*circuit          `json:"circuits,omitempty"` // by client and model
	Days     map[string]map[string]*Spent `json:"days,omitempty"`     // by UTC date, then purpose
	Open     []reservation                `json:"open,omitempty"`     // being asked
	Failures []Failure                    `json:"failures,omitempty"` // the newest last
	Resets   int                          `json:"resets,omitempty"`
}

// Spent is what the questions of a purpose took in a day.
type Spent struct {
	Calls  int     `json:"calls"`
	USD    float64 `json:"usd"`
	Failed int     `json:"failed"`
	Cached int     `json:"cached"` // answered from the cache; not calls
}

// Failure is a question that had no answer.
type Failure struct {
	At      time.Time `json:"at"`
	Purpose string    `json:"purpose"`
	Run     string    `json:"run,omitempty"`
	Text    string    `json:"text"`
}

// reservation is a place in the budget, taken before a question is asked, so
// that several who ask at once do not spend more than one may.
type reservation struct {
	ID      string    `json:"id"`
	Purpose string    `json:"purpose"`
	Day     string    `json:"day"`
	Circuit string    `json:"circuit"`
	USD     float64   `json:"usd"` // the most that it may cost
	Until   time.Time `json:"until"`
	Run     string    `json:"run,omitempty"`
	Trial   bool      `json:"trial,omitempty"`
}

// outcome is how a question ended.
type outcome struct {
	run  string
	cost float64
	err  error
	at   time.Time
	// unknown: the asker died, or gave up; that says nothing of the client.
	unknown bool
}

// stateDoc is state.json. The sum is there to notice what was edited by hand or
// half restored; it keeps nobody out who means to get in.
type stateDoc struct {
	V     int             `json:"v"`
	Sum   string          `json:"sha256"` // of State, without spaces
	State json.RawMessage `json:"state"`
}

func decodeState(data []byte) (*state, error) {
	var doc stateDoc
	if err := strict(data, &doc); err != nil {
		return nil, err
	}
	if doc.V != formatVersion {
		return nil, fmt.Errorf("it has format %d, this program knows %d", doc.V, formatVersion)
	}
	var plain bytes.Buffer
	if err := json.Compact(&plain, doc.State); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(plain.Bytes()); hex.EncodeToString(sum[:]) != doc.Sum {
		return nil, errors.New("it was changed by something else than reprise")
	}
	st := &state{}
	if err := strict(doc.State, st); err != nil {
		return nil, err
	}
	return st, st.check()
}

// strict decodes the whole of data, without keys that are not known.
func strict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("it goes on behind its end")
	}
	return nil
}

func money(usd float64) bool { return usd >= 0 && !math.IsInf(usd, 0) && !math.IsNaN(usd) }

// check finds what no writer of ours leaves behind.
func (st *state) check() error {
	for name, c := range st.Circuits {
		if c == nil || c.Failures < 0 || c.Wait < 0 || c.Wait > mostWait {
			return fmt.Errorf("the circuit of %q cannot be", name)
		}
	}
	for day, byPurpose := range st.Days {
		if _, err := time.Parse(time.DateOnly, day); err != nil {
			return fmt.Errorf("%q is not a day", day)
		}
		for purpose, s := range byPurpose {
			if s == nil || s.Calls < 0 || s.Failed < 0 || s.Cached < 0 || !money(s.USD) {
				return fmt.Errorf("what %s took on %s cannot be", purpose, day)
			}
		}
	}
	for _, r := range st.Open {
		if r.ID == "" || !money(r.USD) {
			return errors.New("a question that is being asked cannot be")
		}
	}
	return nil
}

func (st *state) encode() ([]byte, error) {
	plain, err := json.Marshal(st)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(plain)
	out, err := json.MarshalIndent(stateDoc{V: formatVersion, Sum: hex.EncodeToString(sum[:]), State: plain}, "", "  ")
	return append(out, '\n'), err
}

// load reads the state. One that was there and is gone is an error like one that
// cannot be read: it would be a budget that nobody has spent of.
func (j *Judge) load() (*state, error) {
	data, err := readBounded(j.path(stateFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(j.path(startedFile)); err == nil {
			return nil, fmt.Errorf("%w: %s was removed, and with it what was spent; `reprise judge reset` starts anew", ErrState, j.path(stateFile))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %w", ErrState, err)
		}
		return &state{}, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	st, err := decodeState(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w; `reprise judge reset` starts anew", ErrState, j.path(stateFile), err)
	}
	return st, nil
}

func readBounded(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxState {
		return nil, fmt.Errorf("%s is not a file of ours: %s of %d bytes", path, info.Mode().Type(), info.Size())
	}
	return durable.Read(path)
}

// change reads the state, has it changed and writes it, under its lock. When do
// returns an error nothing is written.
func (j *Judge) change(ctx context.Context, do func(*state) error) error {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	if err := j.opt.Disk.MkdirAll(j.opt.Dir, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	unlock, err := j.opt.Disk.Lock(ctx, j.path(lockFile))
	if err != nil {
		return fmt.Errorf("%w: lock: %w", ErrState, err)
	}
	defer unlock()
	st, err := j.load()
	if err != nil {
		return err
	}
	if err := do(st); err != nil {
		return err
	}
	return j.write(st)
}

func (j *Judge) write(st *state) error {
	st.trim()
	data, err := st.encode()
	if err != nil {
		return fmt.Errorf("%w: encode: %w", ErrState, err)
	}
	if err := j.opt.Disk.WriteFile(j.path(stateFile), data, 0o600); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	// After the state: a crash between the two leaves a state without its mark,
	// which the next writer makes.
	if _, err := os.Lstat(j.path(startedFile)); err == nil {
		return nil
	}
	if err := j.opt.Disk.WriteFile(j.path(startedFile), nil, 0o600); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	return nil
}

// trim keeps the state small. Days go by how many there are and not by age: a
// clock that jumps ahead must not forget today.
func (st *state) trim() {
	if n := len(st.Days) - maxDays; n > 0 {
		for _, day := range slices.Sorted(maps.Keys(st.Days))[:n] {
			delete(st.Days, day)
		}
	}
	if len(st.Circuits) > maxCircuits {
		for _, name := range slices.Sorted(maps.Keys(st.Circuits)) {
			if len(st.Circuits) > maxCircuits && st.Circuits[name].Wait == 0 {
				delete(st.Circuits, name)
			}
		}
	}
	if n := len(st.Failures) - maxFailures; n > 0 {
		st.Failures = slices.Delete(st.Failures, 0, n)
	}
}

func (st *state) spent(day, purpose string) *Spent {
	if st.Days == nil {
		st.Days = map[string]map[string]*Spent{}
	}
	if st.Days[day] == nil {
		st.Days[day] = map[string]*Spent{}
	}
	if st.Days[day][purpose] == nil {
		st.Days[day][purpose] = &Spent{}
	}
	return st.Days[day][purpose]
}

func (st *state) circuit(name string) *circuit {
	if st.Circuits == nil {
		st.Circuits = map[string]*circuit{}
	}
	if st.Circuits[name] == nil {
		st.Circuits[name] = &circuit{}
	}
	return st.Circuits[name]
}

func dayOf(now time.Time) string { return now.UTC().Format(time.DateOnly) }

// begin takes a place in the budget, or says why there is none.
func (j *Judge) begin(ctx context.Context, purpose, name string, limit time.Duration) (reservation, error) {
	left := j.orphans(ctx)
	var id [9]byte
	rand.Read(id[:]) // never fails
	now := j.opt.Now()
	res := reservation{ID: hex.EncodeToString(id[:]), Purpose: purpose, Day: dayOf(now), Circuit: name, Until: now.Add(limit + orphanGrace).UTC()}
	var refused error
	err := j.change(ctx, func(st *state) error {
		for _, o := range left {
			st.end(o.res, o.out)
		}
		moved := st.circuit(name).mind(now)
		refused = st.begin(&res, j.opt.Settings.CallsPerDay, j.opt.Settings.BudgetUSDPerDay, j.opt.Settings.BudgetUSDPerQuestion, now)
		if refused != nil && !moved && len(left) == 0 {
			return refused // nothing to write
		}
		return nil
	})
	if err == nil {
		err = refused
	}
	return res, err
}

// begin fills in what the question may cost.
func (st *state) begin(res *reservation, calls int, perDay, perQuestion float64, now time.Time) error {
	c := st.circuit(res.Circuit)
	ok, trial, until := c.allow(now)
	if !ok && c.Trial != "" && !slices.ContainsFunc(st.Open, func(r reservation) bool { return r.ID == c.Trial }) {
		c.Trial = "" // whoever made it is no more
		ok, trial, until = c.allow(now)
	}
	if !ok {
		if c.Trial != "" {
			return fmt.Errorf("%w: %s in a row had no answer, and a trial is being made", ErrOpen, term.Plural(c.Failures, "question"))
		}
		return fmt.Errorf("%w until %s: %s in a row had no answer; see `reprise judge status`", ErrOpen, until.UTC().Format(time.RFC3339), term.Plural(c.Failures, "question"))
	}
	s := st.spent(res.Day, res.Purpose)
	asked, held := s.Calls, s.USD
	for _, r := range st.Open {
		if r.Day == res.Day && r.Purpose == res.Purpose {
			asked++
			held += r.USD
		}
	}
	switch {
	case len(st.Open) >= maxOpen:
		return fmt.Errorf("%w: %d questions are being asked at once", ErrBudget, len(st.Open))
	case asked >= calls:
		return fmt.Errorf("%w: %d of %s for %s today (judge.calls_per_day)", ErrBudget, asked, term.Plural(calls, "question"), res.Purpose)
	case held >= perDay:
		return fmt.Errorf("%w: %.2f of %.2f US dollars for %s today (judge.budget_usd_per_day)", ErrBudget, held, perDay, res.Purpose)
	}
	res.USD = min(perQuestion, perDay-held)
	if trial {
		res.Trial, c.Trial = true, res.ID
	}
	st.Open = append(st.Open, *res)
	return nil
}

// name puts the question's run on record, by which whoever comes next learns
// what became of it should this process die.
func (j *Judge) name(ctx context.Context, id, runID string) error {
	return j.change(ctx, func(st *state) error {
		for i := range st.Open {
			if st.Open[i].ID == id {
				st.Open[i].Run = runID
			}
		}
		return nil
	})
}

// end gives the place back and notes what was spent in its stead.
func (j *Judge) end(ctx context.Context, res reservation, out outcome) error {
	if errors.Is(out.err, context.Canceled) {
		out.unknown = true
	}
	text := ""
	if out.err != nil {
		text = oneLine(j.opt.Redact(out.err.Error()), 300)
	}
	return j.change(ctx, func(st *state) error {
		st.end(res, out)
		if out.err != nil && !out.unknown {
			st.Failures = append(st.Failures, Failure{At: out.at.UTC(), Purpose: res.Purpose, Run: out.run, Text: text})
		}
		return nil
	})
}

func (st *state) end(res reservation, out outcome) {
	i := slices.IndexFunc(st.Open, func(r reservation) bool { return r.ID == res.ID })
	if i < 0 {
		return // somebody took this process for dead, and counted it already
	}
	st.Open = slices.Delete(st.Open, i, i+1)
	s := st.spent(res.Day, res.Purpose)
	s.Calls++
	if money(out.cost) {
		s.USD += out.cost
	} else {
		s.USD += res.USD
	}
	c := st.circuit(res.Circuit)
	switch {
	case out.unknown:
		c.gaveUp(res.Trial)
	case out.err != nil:
		s.Failed++
		c.failed(res.Trial, out.at)
	default:
		c.succeeded()
	}
}

// orphan is a question whose asker died.
type orphan struct {
	res reservation
	out outcome
}

// orphans are those whose time is over. What they cost their runs' results say;
// where there is none, as much as they might have.
func (j *Judge) orphans(ctx context.Context) []orphan {
	st, err := j.load()
	if err != nil {
		return nil // change says so
	}
	now := j.opt.Now()
	var out []orphan
	for _, r := range st.Open {
		// One from the future is of a clock that was set back.
		if now.Before(r.Until) && r.Until.Sub(now) < time.Hour {
			continue
		}
		o := orphan{res: r, out: outcome{run: r.Run, cost: r.USD, at: now, unknown: true}}
		if r.Run != "" {
			if rec, err := j.opt.Runs.Settle(ctx, r.Run); err == nil && rec.Result != nil {
				o.out.cost = rec.Result.CostUSD
			}
		}
		out = append(out, o)
	}
	return out
}
