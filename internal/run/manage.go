package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"reprise/internal/agent"
	"reprise/internal/durable"
	"reprise/internal/proc"
)

// dirs are the directories that runs may be in, this manager's own first. The
// others are not looked for until somebody wants more than the first.
func (m *Manager) dirs() iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(m.opt.Dir) || m.opt.Also == nil {
			return
		}
		for _, dir := range m.opt.Also() {
			if !yield(dir) {
				return
			}
		}
	}
}

// find returns the directory of a run.
func (m *Manager) find(id string) (string, error) {
	if !ValidID(id) {
		return "", fmt.Errorf("find run %q: %w: an id looks like run-abcdefghij; see `reprise runs list`", id, ErrNotFound)
	}
	for base := range m.dirs() {
		dir := filepath.Join(base, id)
		if _, err := os.Lstat(filepath.Join(dir, recordFile)); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("find run %s in %s: %w", id, m.opt.Dir, ErrNotFound)
}

// Get returns a run's record as it is, with its result if it has one. The
// error wraps ErrNotFound where there is no such run.
func (m *Manager) Get(id string) (Record, error) {
	dir, err := m.find(id)
	if err != nil {
		return Record{}, err
	}
	r, err := readRecord(m.opt.Disk, dir)
	if err != nil {
		return Record{}, err
	}
	return r.withResult()
}

// withResult fills in what a settled run came to, if that is on disk.
func (r Record) withResult() (Record, error) {
	if !r.Status.Settled() {
		return r, nil
	}
	var err error
	r.Result, err = readResult(r.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	return r, nil
}

// Settle is Get for a reader that wants the truth: a run whose supervisor is
// dead is settled first.
func (m *Manager) Settle(ctx context.Context, id string) (Record, error) {
	r, err := m.settle(ctx, id)
	if err != nil {
		return Record{}, err
	}
	return r.withResult()
}

// List returns all runs, newest first, and settles those whose supervisor is
// dead. A record that cannot be read does not hide the others: they are
// returned together with the joined errors.
func (m *Manager) List(ctx context.Context) ([]Record, error) {
	var out []Record
	var errs []error
	for base := range m.dirs() {
		entries, err := durable.ReadDir(base)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		for _, e := range entries {
			if !ValidID(e.Name()) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return out, errors.Join(append(errs, err)...)
			}
			r, err := m.settle(ctx, e.Name())
			if errors.Is(err, ErrNotFound) {
				continue // a directory whose run never was, or was just removed
			}
			if err != nil {
				errs = append(errs, err)
			}
			if r.ID != "" { // one that could not be settled is there all the same
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, func(a, b Record) int {
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(a.ID, b.ID))
	})
	return out, errors.Join(errs...)
}

// Wait returns the run's record once it is settled. If ctx ends first it
// returns the record as it is then, and the context's error.
func (m *Manager) Wait(ctx context.Context, id string) (Record, error) {
	m.mu.Lock()
	s := m.attached[id]
	m.mu.Unlock()
	if s != nil {
		select {
		case <-s.settled:
			// Unless somebody else is settling it just now, this is the end.
			r, err := m.Settle(ctx, id)
			if err != nil {
				return r, err
			}
			m.forget(id)
			if r.Status.Settled() {
				return r, nil
			}
		case <-ctx.Done():
			r, err := m.Get(id)
			return r, errors.Join(err, ctx.Err())
		}
	}
	pause := 10 * time.Millisecond
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			r, err := m.Get(id)
			return r, errors.Join(err, ctx.Err())
		case <-timer.C:
		}
		r, err := m.Settle(ctx, id)
		if err != nil || r.Status.Settled() {
			return r, err
		}
		timer.Reset(pause)
		pause = min(2*pause, 200*time.Millisecond)
	}
}

// Cancel stops a run and everything it started, and returns its record when
// that is done. Cancelling a run that has ended changes nothing.
func (m *Manager) Cancel(ctx context.Context, id, reason string) (Record, error) {
	return m.stopBy(ctx, id, stopRequest{Kind: requestCancel, Reason: reason})
}

// Interrupt stops a run because a person must decide something; its record and
// output stay, so that it can be resumed.
func (m *Manager) Interrupt(ctx context.Context, id, reason string) (Record, error) {
	return m.stopBy(ctx, id, stopRequest{Kind: requestInterrupt, Reason: reason})
}

func (m *Manager) stopBy(ctx context.Context, id string, req stopRequest) (Record, error) {
	r, err := m.Settle(ctx, id)
	if err != nil || r.Status.Settled() {
		return r, err
	}
	req.At = m.opt.Now()
	if err := ask(r, req); err != nil {
		// On a full disk, when stopping matters most, there is still the signal.
		if req.Kind != requestCancel || r.Supervisor == nil || politeStop == nil || r.Supervisor.Signal(politeStop) != nil {
			return r, err
		}
		return m.Wait(ctx, id)
	}
	for _, rouse := range []func(Record) error{wakeUp, killSupervisor} {
		r, err := m.waitFor(ctx, id, m.opt.AskPatience)
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return r, err
		}
		if _, err := os.Lstat(requestPath(r.dir, req.Kind)); err != nil {
			break // it has read the request and is at work
		}
		if err := rouse(r); err != nil && !errors.Is(err, proc.ErrGone) {
			m.opt.Log.Warn("rouse supervisor", "run", id, "error", err.Error())
		}
	}
	return m.Wait(ctx, id)
}

func (m *Manager) waitFor(ctx context.Context, id string, most time.Duration) (Record, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return m.Wait(ctx, id)
}

// killSupervisor ends a supervisor that does not read its requests. The run is
// settled then without it, and what it was asked is honoured.
func killSupervisor(r Record) error {
	if r.Supervisor == nil {
		return nil
	}
	return r.Supervisor.Signal(os.Kill)
}

// Extend gives a running run more time. When it returns without an error the
// time counts. Two who extend at once both do.
func (m *Manager) Extend(ctx context.Context, id string, by time.Duration) error {
	r, err := m.Settle(ctx, id)
	if err != nil {
		return err
	}
	if r.Status.Settled() {
		return fmt.Errorf("extend run %s: it has ended (%s)", id, r.Status)
	}
	if by <= 0 || by > maxTimeout {
		return fmt.Errorf("extend run %s: %s is not a time between 0 and %s", id, by, maxTimeout)
	}
	if r.TimeoutSeconds == 0 {
		return fmt.Errorf("extend run %s: it has no time limit, so there is nothing to extend", id)
	}
	unlock, err := m.opt.Disk.Lock(ctx, r.path(extendLock))
	if err != nil {
		return fmt.Errorf("extend run %s: %w", id, err)
	}
	defer unlock()
	if err := ask(r, stopRequest{Kind: requestExtend, Seconds: by.Seconds(), At: m.opt.Now()}); err != nil {
		return err
	}
	return m.awaitExtension(ctx, r)
}

// awaitExtension returns when the supervisor has read the request, or takes it
// back.
func (m *Manager) awaitExtension(ctx context.Context, r Record) error {
	path := requestPath(r.dir, requestExtend)
	patience := time.NewTimer(2 * m.opt.AskPatience)
	defer patience.Stop()
	ticker := time.NewTicker(tick / 4)
	defer ticker.Stop()
	for {
		why := ""
		select {
		case <-ticker.C:
			if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			now, err := m.Settle(ctx, r.ID)
			if err != nil {
				return err
			}
			if now.Status.Settled() {
				why = fmt.Sprintf("it has ended meanwhile (%s)", now.Status)
			}
		case <-patience.C:
			why = "its supervisor does not answer; see `reprise doctor`"
		case <-ctx.Done():
			why = ctx.Err().Error()
		}
		if why == "" {
			continue
		}
		if err := m.opt.Disk.Remove(path); errors.Is(err, fs.ErrNotExist) {
			return nil // it was read at the last moment
		}
		return fmt.Errorf("extend run %s: nothing was changed: %s", r.ID, why)
	}
}

// StopAll stops the attached runs that this manager started and returns how
// many there were. It returns when they have ended or when ctx does; their
// supervisors go on stopping them in either case.
func (m *Manager) StopAll(ctx context.Context) (int, error) {
	m.mu.Lock()
	var waiting []*started
	for _, s := range m.attached {
		if s.lifeline != nil {
			waiting = append(waiting, s)
		}
	}
	m.mu.Unlock()
	for _, s := range waiting {
		s.lifeline.Close()
	}
	for _, s := range waiting {
		select {
		case <-s.settled:
		case <-ctx.Done():
			return len(waiting), ctx.Err()
		}
	}
	return len(waiting), nil
}

// Output is what a run's agent said.
type Output struct {
	Text       string // cut to the limit, with a marker that says so
	Truncated  bool
	TotalBytes int64  // of the whole text
	Path       string // of a file that has the whole text
}

// bytesPerToken is the usual rough measure for English and code.
const bytesPerToken = 4

// Output returns the final text of a run, cut at maxTokens (four bytes each) on
// a rune boundary. The marker at the cut contains the word "truncated" and says
// how much is missing and where the whole lies. A maxTokens of 0 takes the
// run's own limit.
func (m *Manager) Output(id string, maxTokens int) (Output, error) {
	r, err := m.Get(id)
	if err != nil {
		return Output{}, err
	}
	if maxTokens <= 0 {
		maxTokens = r.MaxOutputTokens
	}
	limit := int64(maxTokens) * bytesPerToken
	if r.Client == agent.KindGeneric || r.Result == nil {
		return fileOutput(r.Logs.Stdout, limit)
	}
	text := r.Result.Text
	out := Output{Text: text, TotalBytes: int64(len(text)), Path: filepath.Join(r.dir, resultFile)}
	if out.TotalBytes <= limit {
		return out, nil
	}
	// A person who follows the marker should find text, not JSON.
	out.Path = filepath.Join(r.dir, outputFile)
	if sizeOf(out.Path) != out.TotalBytes {
		if err := m.opt.Disk.WriteFile(out.Path, []byte(text), 0o600); err != nil {
			// JSON is better than nothing on a disk that is full.
			m.opt.Log.Warn("keep the whole output", "run", id, "error", err.Error())
			out.Path = filepath.Join(r.dir, resultFile)
		}
	}
	return out.cut(text[:limit]), nil
}

// fileOutput reads at most limit bytes of a file that may be of any size.
func fileOutput(path string, limit int64) (Output, error) {
	out := Output{Path: path}
	f, err := durable.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil // it never got as far as saying something
	}
	if err != nil {
		return out, fmt.Errorf("read output: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return out, fmt.Errorf("read output: %w", err)
	}
	out.TotalBytes = info.Size()
	data, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return out, fmt.Errorf("read output: %w", err)
	}
	if out.TotalBytes <= limit {
		out.Text = strings.ToValidUTF8(string(data), "\uFFFD")
		return out, nil
	}
	return out.cut(string(data)), nil
}

// cut completes an output whose text is only the head of the whole.
func (o Output) cut(head string) Output {
	head = trimPartialRune(head)
	o.Truncated = true
	o.Text = strings.ToValidUTF8(head, "\uFFFD") +
		fmt.Sprintf("\n\n[output truncated: %d of %d bytes are missing here; the whole is in %s]", o.TotalBytes-int64(len(head)), o.TotalBytes, o.Path)
	return o
}

// trimPartialRune drops the beginning of a rune at the end of s.
func trimPartialRune(s string) string {
	for i := 1; i <= utf8.UTFMax && i <= len(s); i++ {
		c := s[len(s)-i]
		if !utf8.RuneStart(c) {
			continue
		}
		if !utf8.FullRuneInString(s[len(s)-i:]) {
			return s[:len(s)-i]
		}
		return s
	}
	return s
}

// GC removes runs that ended more than older ago, and the directories of runs
// that never were. A run goes in two steps, first its name and then its files,
// so that a crash in between leaves nothing that looks like a run. It returns
// the ids it removed.
func (m *Manager) GC(ctx context.Context, older time.Duration) ([]string, error) {
	return m.GCOf(ctx, older, nil)
}

// Ended are the runs of a list that ended more than older before now, as GC removes them.
// One stays whose directory holds the home that a session is gone on with in.
func Ended(list []Record, older time.Duration, now time.Time) []Record {
	over := func(r Record) bool {
		at := r.EndedAt
		if r.Status == Interrupted && r.ResumedBy != "" { // it waits for nobody any more
			at = &r.StatusUpdatedAt
		}
		return at != nil && r.Status.Settled() && now.Sub(*at) >= older
	}
	stay := homes(slices.DeleteFunc(slices.Clone(list), over))
	return slices.DeleteFunc(slices.Clone(list), func(r Record) bool { return !over(r) || stay[r.dir] })
}

// GoneOnBy is the run that has gone on with r's session: the one that its record names, or,
// as a loop's runs name only the one before, the last one of list that names r; "" for none.
func GoneOnBy(list []Record, r Record) string {
	if r.ResumedBy != "" {
		return r.ResumedBy
	}
	next := Record{}
	for _, one := range list {
		if one.Resumes == r.ID && (next.ID == "" || one.StartedAt.After(next.StartedAt)) {
			next = one
		}
	}
	return next.ID
}

// GCOf is GC of the runs that may go; nil is all of them.
func (m *Manager) GCOf(ctx context.Context, older time.Duration, may func(Record) bool) ([]string, error) {
	runs, err := m.List(ctx)
	if err != nil {
		return nil, err
	}
	var removed []string
	now := m.opt.Now()
	for _, r := range Ended(runs, older, now) {
		if may != nil && !may(r) {
			continue
		}
		trash := filepath.Join(filepath.Dir(r.dir), ".trash-"+r.ID)
		if err := m.opt.Disk.Rename(r.dir, trash); err != nil {
			return removed, fmt.Errorf("remove run %s: %w", r.ID, err)
		}
		removed = append(removed, r.ID)
	}
	for dir := range m.dirs() { // wherever a run was removed
		if err := m.emptyTrash(dir, older, now); err != nil {
			return removed, err
		}
		if err := m.dropKeys(dir); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

func (m *Manager) emptyTrash(dir string, older time.Duration, now time.Time) error {
	entries, err := durable.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if ValidID(e.Name()) {
			info, err := e.Info()
			if err != nil || now.Sub(info.ModTime()) < max(older, time.Hour) {
				continue
			}
			if _, err := os.Lstat(filepath.Join(path, recordFile)); !errors.Is(err, fs.ErrNotExist) {
				continue
			}
		} else if !strings.HasPrefix(e.Name(), ".trash-run-") {
			continue
		}
		if err := m.opt.Disk.RemoveAll(path); err != nil {
			return fmt.Errorf("remove %s: %w", path, err)
		}
	}
	return nil
}

// dropKeys forgets the idempotency keys whose run is gone.
func (m *Manager) dropKeys(runs string) error {
	dir := filepath.Join(runs, ".keys")
	entries, err := durable.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		if err := m.dropKey(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) dropKey(base string) error {
	unlock, err := m.opt.Disk.TryLock(base + ".lock")
	if err != nil {
		return nil // in use just now
	}
	defer unlock()
	doc, err := readKey(base + ".json")
	if err != nil {
		return nil // its owner gets the error when it uses the key
	}
	if _, err := m.find(doc.RunID); errors.Is(err, ErrNotFound) && m.opt.Now().Sub(doc.At) > time.Hour {
		return m.opt.Disk.Remove(base + ".json")
	}
	return nil
}

// Remove removes one run that has ended, as GC does. A run that has not is refused; so is
// one that was interrupted, for it may be gone on with, unless that is over.
func (m *Manager) Remove(ctx context.Context, id string) error {
	r, err := m.Settle(ctx, id)
	if err != nil {
		return err
	}
	if !r.Status.Settled() {
		return fmt.Errorf("remove run %s: it is %s", id, r.Status)
	}
	trash := filepath.Join(filepath.Dir(r.dir), ".trash-"+r.ID)
	if err := m.opt.Disk.Rename(r.dir, trash); err != nil {
		return fmt.Errorf("remove run %s: %w", id, err)
	}
	if err := m.opt.Disk.RemoveAll(trash); err != nil {
		return fmt.Errorf("remove run %s: %w", id, err) // the next GC does
	}
	return nil
}
