package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/agent/dialect"
	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/event/quick"
	"reprise/internal/guard"
	"reprise/internal/proc"
	"reprise/internal/redact"
	"reprise/internal/term"
)

// pendingCall is a call that waits for the user: one file in the state
// directory. Its answer stands in a file beside it.
type pendingCall struct {
	V       int       `json:"v"`
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	Until   time.Time `json:"until"` // after that it is refused
	Client  string    `json:"client"`
	Session string    `json:"session,omitempty"`
	Run     string    `json:"run,omitempty"`
	Tool    string    `json:"tool"`
	Input   string    `json:"input"` // secrets taken out; whole, for nobody approves what is not seen
	Owner   proc.ID   `json:"owner"` // who waits
	Cwd     string    `json:"cwd"`
	Rule    string    `json:"rule"`
	Reason  string    `json:"reason"`
}

type pendingAnswer struct {
	V      int       `json:"v"`
	Answer string    `json:"answer"` // allow or deny
	Why    string    `json:"why,omitempty"`
	At     time.Time `json:"at"`
}

// maxPendingInput is the longest input, in bytes, of a call that may wait. It is
// shown whole: what is not seen would be approved unread.
const maxPendingInput = 16 << 10

// pendingEvery is how often a call that waits looks for its answer.
const pendingEvery = 100 * time.Millisecond

// waiting is the queue of calls that wait.
type waiting struct {
	dir string
	now func() time.Time
}

func (a *App) pendingQueue() (*waiting, error) {
	paths, err := config.FindPaths(a.Env)
	if err != nil {
		return nil, err
	}
	return &waiting{filepath.Join(paths.State, "guard", "pending"), a.Now}, nil
}

func (w *waiting) file(id string) string { return filepath.Join(w.dir, id+".json") }

// put notes a call, wait waits for its answer, and take removes both.
func (w *waiting) put(c pendingCall) error {
	if err := durable.MkdirAll(w.dir, 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return durable.WriteFile(w.file(c.ID), append(data, '\n'), 0o600)
}

func (w *waiting) wait(ctx context.Context, c pendingCall) (pendingAnswer, bool) {
	tick := time.NewTicker(pendingEvery)
	defer tick.Stop()
	for w.now().Before(c.Until) {
		data, err := durable.Read(filepath.Join(w.dir, c.ID+".answer"))
		var a pendingAnswer
		if err == nil && json.Unmarshal(data, &a) == nil && a.V == 1 {
			return a, true
		}
		select {
		case <-ctx.Done():
			return pendingAnswer{}, false
		case <-tick.C:
		}
	}
	return pendingAnswer{}, false
}

func (w *waiting) take(id string) {
	for _, name := range []string{w.file(id), filepath.Join(w.dir, id+".answer")} {
		_ = durable.Remove(name) // what stays is over by its time
	}
}

// orphan removes the answer to a call that waits no more: it came too late.
func (w *waiting) orphan(name string) {
	id, ok := strings.CutSuffix(name, ".answer")
	if !ok {
		return
	}
	if _, err := os.Lstat(w.file(id)); errors.Is(err, fs.ErrNotExist) {
		_ = durable.Remove(filepath.Join(w.dir, name)) // the next look tries again
	}
}

// list are the calls that wait now. What is over is removed.
func (w *waiting) list() ([]pendingCall, error) {
	entries, err := durable.ReadDir(w.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return []pendingCall{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what waits: %w", err)
	}
	out := []pendingCall{}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			w.orphan(e.Name())
			continue
		}
		data, err := durable.Read(w.file(id))
		var c pendingCall
		if err != nil || json.Unmarshal(data, &c) != nil || c.V != 1 || c.ID != id {
			continue
		}
		if !w.now().Before(c.Until) || !c.Owner.Alive() {
			w.take(id) // nobody would hear the answer
			continue
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b pendingCall) int { return a.At.Compare(b.At) })
	return out, nil
}

// find is the call that an id or its beginning means.
func (w *waiting) find(id string) (pendingCall, error) {
	list, err := w.list()
	if err != nil {
		return pendingCall{}, err
	}
	var found []pendingCall
	for _, c := range list {
		if strings.HasSuffix(c.ID, id) && id != "" {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 0:
		return pendingCall{}, exitWith(ExitNotFound, fmt.Errorf("no call %.40q waits; `reprise guard pending` lists them", id))
	case 1:
		return found[0], nil
	}
	return pendingCall{}, usagef("%q means %d calls; write more of the id", id, len(found))
}

func (w *waiting) answer(id, answer, why string) error {
	data, err := json.Marshal(pendingAnswer{1, answer, why, w.now().UTC()})
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(w.dir, id+".answer"), append(data, '\n'), 0o600)
}

func newGuardQueueCmds(app *App) []*cobra.Command {
	var asJSON bool
	pending := &cobra.Command{
		Use: "pending", Args: cobra.NoArgs, Short: "List the calls of unattended runs that wait for you",
		Long: `List the calls that wait for you. With guard.pending on, a call of an unattended run
that would have to be asked about waits, at most guard.pending_ms and never longer
than its client waits for a hook; then it is refused.`,
		RunE: func(*cobra.Command, []string) error {
			q, err := app.pendingQueue()
			if err != nil {
				return err
			}
			list, err := q.list()
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(app.Out, list)
			}
			if len(list) == 0 {
				fmt.Fprintln(app.Out, "Nothing waits.")
			}
			for _, c := range list {
				fmt.Fprintf(app.Out, "%s  %s %s, for %s more\n  %s\n  %s\n", shortID(c.ID), c.Client, term.SafeLine(c.Tool), c.Until.Sub(app.Now()).Round(time.Second), term.SafeLine(c.Input), term.SafeLine(c.Reason))
			}
			return nil
		},
	}
	pending.Flags().BoolVar(&asJSON, "json", false, "print them for programs")
	decide := func(use, short, answer string) *cobra.Command {
		var why string
		cmd := &cobra.Command{
			Use: use + " ID", Args: cobra.ExactArgs(1), Short: short,
			RunE: func(_ *cobra.Command, args []string) error {
				q, err := app.pendingQueue()
				if err != nil {
					return err
				}
				c, err := q.find(args[0])
				if err != nil {
					return err
				}
				if err := q.answer(c.ID, answer, why); err != nil {
					return fmt.Errorf("answer %s: %w", shortID(c.ID), err)
				}
				fmt.Fprintf(app.Out, "%s: %s\n", shortID(c.ID), answer)
				return nil
			},
		}
		cmd.Flags().StringVar(&why, "why", "", "a reason, which the agent is told")
		return cmd
	}
	return []*cobra.Command{pending, decide("approve", "Let a call that waits run", "allow"), decide("deny", "Refuse a call that waits", "deny")}
}

// shortID is the end of an id, which differs most.
func shortID(id string) string { return id[max(0, len(id)-8):] }

// queued has a call wait for the user.
func queued(ctx context.Context, app *App, ev dialect.Event, v guard.Verdict, wait time.Duration) (guard.Verdict, error) {
	q, err := app.pendingQueue()
	if err != nil {
		return v, err
	}
	now := app.Now()
	redactor := redact.New()
	if len(ev.Input) > maxPendingInput {
		return v, fmt.Errorf("its input is longer than %d bytes, more than a person would read", maxPendingInput)
	}
	owner, err := proc.Self()
	if err != nil {
		return v, fmt.Errorf("have the call wait: %w", err)
	}
	input, _ := redactor.String(string(ev.Input))
	reason, _ := redactor.String(v.Reason)
	ids := quick.IDs{}
	c := pendingCall{V: 1, ID: strings.ReplaceAll(ids.Next(now), "-", ""), At: now.UTC(), Until: now.Add(wait).UTC(), Client: ev.Client, Session: ev.Session, Run: app.Env.Get("REPRISE_RUN_ID"), Tool: ev.ToolName, Input: input, Owner: owner, Cwd: ev.Cwd, Rule: v.Rule, Reason: reason}
	if err := q.put(c); err != nil {
		return v, fmt.Errorf("have the call wait: %w", err)
	}
	defer q.take(c.ID)
	a, ok := q.wait(ctx, c)
	switch {
	case !ok:
		v.Reason += "; nobody answered in time"
	case a.Answer == "allow":
		v.Decision, v.By, v.Reason = guard.Allow, "user", "the user approved it"
	default:
		v.Decision, v.By, v.Reason = guard.Deny, "user", "the user refused it: "+v.Reason
		if a.Why != "" {
			v.Reason = "the user refused it: " + a.Why
		}
	}
	return v, nil
}
