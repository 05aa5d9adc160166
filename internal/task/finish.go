package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/clip"
	"reprise/internal/durable"
	"reprise/internal/pathname"
	"reprise/internal/run"
)

// judge reads what the agent said. An answer in a wrong form gets one chance to be
// mended, in the same session where the client can go on with one; then it counts as
// partial. why and kind are empty where all is well.
func (s *step) judge(ctx context.Context, rec *run.Record) (ret Return, why, kind string) {
	switch rec.Status {
	case run.TimedOut:
		return Return{Status: "partial"}, fmt.Sprintf("%s took longer than %s", s.what(), s.d.Timeout), Timeout
	case run.Completed:
	case run.Spawning, run.Running, run.Completing, run.Interrupted, run.Killed, run.Failed:
		if ctx.Err() != nil {
			return Return{Status: "partial"}, "it was stopped by the person who began it", ""
		}
		return Return{Status: "failed"}, cmp.Or(rec.StatusReason, "the run ended "+string(rec.Status)), endedBadly(rec.StatusReason)
	}
	if rec.Result == nil {
		return Return{Status: "partial"}, "the agent said nothing at its end", DelegationHang
	}
	ret, err := ParseReturn(LastWords(rec.Result), s.d, s.roots()...)
	if err == nil {
		return ret, "", ""
	}
	s.f.Say("%s: the agent's answer is not in order (%v); it may mend it once", s.name(), err)
	req, serr := s.request()
	req.IdempotencyKey += "-again"
	req.Timeout = Timeouts("")
	req.Work.Resume, req.Work.Home, req.Work.After = rec.SessionID, rec.Command.Home, rec.ID
	req.Task = fmt.Sprintf("Your last message cannot be used: %v.\n\nIt was:\n\n%s\n\nSay the same again in the right form.\n", err, clip.Bytes(LastWords(rec.Result), 4000)) + s.render("answer")
	var again run.Record
	if serr == nil {
		again, serr = s.f.Runs.Start(ctx, req)
	}
	if serr == nil {
		if again = s.wait(ctx, again); again.Status == run.Completed && again.Result != nil {
			var aerr error
			if ret, aerr = ParseReturn(LastWords(again.Result), s.d, s.roots()...); aerr == nil {
				return ret, "", ""
			}
			err = aerr
		}
	}
	return Return{Status: "partial", Summary: clip.Bytes(clip.Line(LastWords(rec.Result)), maxSummary)}, "the agent's answer is not in order: " + err.Error(), ValidationFailed
}

// end brings the list up to how the step went, commits it, and notes what went wrong.
func (s *step) end(ctx context.Context, rec run.Record, ret Return, why, kind string) (StepResult, error) {
	res := StepResult{Number: s.number(), Op: s.o.Name, Status: ret.Status, Session: s.d.Session, Run: rec.ID, Summary: ret.Summary, Files: ret.Artifacts, Reason: why, Next: ret.NextSteps}
	res.Reason, res.Summary, res.Next = s.plain(res.Reason), s.plain(res.Summary), s.plain(res.Next)
	if s.phase != nil {
		res.Phase = s.phase.Number
	}
	if rec.Result != nil {
		res.Cost = rec.Result.CostUSD
	}
	if kind == "" && len(ret.Errors) > 0 {
		res.Reason = s.plain(ret.Errors[0].Message)
	}
	if failed := s.verify(ctx, res.Status); failed != "" {
		res.Status, res.Reason, kind = "partial", "the checks fail: "+s.plain(failed), BuildError
	}
	if s.o.Name == OpImplement {
		if refused := s.bringBack(ctx, res); refused != "" {
			res.Status, res.Reason, kind = "partial", s.plain(refused), cmp.Or(kind, BuildError)
		}
	}
	b, err := s.f.Store.Change(ctx, func(b *Board) error {
		o, err := b.operation(s.d.Session, s.number())
		if err != nil {
			return fmt.Errorf("%w; what it did is in %s", err, cmp.Or(rec.ID, s.dir()))
		}
		if err := s.fetch(b); err != nil {
			return err
		}
		if res.Status == "completed" && s.tooLong() {
			s.refuseLong(&res)
		}
		s.plainArtifact(b)
		if s.review != nil {
			s.endReview(b, &res)
		} else if t := b.State.Tasks[s.number()]; kind == Timeout {
			s.outOfTime(b, t, o, res)
		} else if err := s.settle(b, t, o, &res); err != nil {
			return err
		}
		if t := b.State.Tasks[s.number()]; t != nil {
			res.Task = t.Status
		}
		if kind == "" {
			return nil
		}
		l, err := b.Failures()
		if err != nil {
			return nil // said where it is asked for
		}
		c := s.context()
		c.Run = rec.ID
		l.Record(Failure{Type: kind, Message: res.Reason, Context: c}, b.now)
		return nil
	})
	if err != nil {
		return res, err
	}
	s.f.Changed(ctx, b)
	s.commit(ctx, b, res)
	s.tidy()
	if s.o.Name != OpImplement { // what was found is on record; nothing of it goes into the code
		if refused := s.bringBack(ctx, res); refused != "" {
			s.f.Say("note: %s: %s", s.name(), refused)
		}
	}
	if res.Status == "completed" && s.o.Name == OpImplement {
		return res, s.finish(ctx, &res)
	}
	return res, nil
}

// verify runs the project's checks after a phase, and says what fails. What was done in
// a place of its own is checked when it is brought back.
func (s *step) verify(ctx context.Context, status string) string {
	if status != "completed" || s.o.Name != OpImplement || s.f.Verify == nil || s.integrate != nil {
		return ""
	}
	failed, err := s.f.Verify(ctx, s.dir(), s.route.Verify)
	if err != nil {
		s.f.Say("note: %s: the checks could not be run: %v", s.name(), err)
	}
	return failed
}

// How often it is tried to bring work to the main checkout, and the time between.
const (
	mergeTries = 5
	mergeWait  = 200 * time.Millisecond
)

// bringBack commits what was done in a place of its own and has it brought to the main
// checkout.
func (s *step) bringBack(ctx context.Context, res StepResult) (refused string) {
	if s.o.Place == "" {
		return ""
	}
	s.f.commits.Lock()
	defer s.f.commits.Unlock()
	if files := s.named(s.o.Place, res); s.f.Commit != nil && s.o.Name == OpImplement && len(files) > 0 {
		s.f.Commit(ctx, s.o.Place, s.message(res), files)
	}
	if s.integrate == nil {
		return ""
	}
	var err error
	for range mergeTries {
		if refused, err = s.integrate(ctx, res.Status == "completed"); err == nil {
			return refused
		}
		select { // somebody else moved the branch, as likely as not
		case <-ctx.Done():
			return ctx.Err().Error()
		case <-time.After(mergeWait):
		}
	}
	return "what was done could not be brought to the main checkout: " + err.Error()
}

// fetch takes the file that was written in a place of its own over into the list's
// directory, which is the main checkout's.
func (s *step) fetch(b *Board) error {
	if s.o.Place == "" || s.o.Artifact == "" {
		return nil
	}
	name := path.Join(specsDir, s.o.Artifact)
	if Inside(s.o.Place, name) != nil {
		return nil // it is not there
	}
	file := filepath.Join(s.o.Place, filepath.FromSlash(name))
	if fi, err := os.Stat(file); err != nil || fi.Size() > maxArtifact {
		s.long = err == nil
		return err // one that is too long is refused where it is filed
	}
	data, err := durable.Read(file)
	if err != nil {
		return err
	}
	b.Write(s.o.Artifact, data)
	return nil
}

// maxArtifact bounds a report or plan that is filed, and any file that is committed
// because an agent named it, in bytes: what is longer was not meant to be kept in git.
const maxArtifact = 8 << 20

// tooLong reports whether the file that the step was to write is too long to be filed.
func (s *step) tooLong() bool {
	if s.o.Artifact == "" || s.long {
		return s.long
	}
	fi, err := os.Stat(filepath.Join(s.f.Store.dir, filepath.FromSlash(s.o.Artifact)))
	return err == nil && fi.Size() > maxArtifact
}

// refuseLong makes partial what came to a file that is too long to be filed; it stays
// where it is, and is not committed.
func (s *step) refuseLong(res *StepResult) {
	res.Status, res.Reason = "partial", fmt.Sprintf("%s is longer than %d bytes, the most that is filed: cut it down to what matters, and do the step again", path.Join(specsDir, s.o.Artifact), maxArtifact)
}

// plain is a text without the directories that this machine has the work in: what goes
// into specs/ is committed, and read elsewhere.
func (s *step) plain(text string) string {
	return withoutDirs(text, append(s.f.Store.dirs(), [2]string{s.o.Place, ""}))
}

// plainArtifact does that to the file that the agent wrote.
func (s *step) plainArtifact(b *Board) {
	if s.o.Artifact == "" || s.tooLong() {
		return
	}
	data, err := b.Read(s.o.Artifact)
	if err != nil {
		return // said where it is filed
	}
	if text := s.plain(string(data)); text != string(data) {
		b.Write(s.o.Artifact, []byte(text))
	}
}

// tidy takes away what was taken over: the branch of the place must not bring it, too.
func (s *step) tidy() {
	if s.o.Place == "" || s.o.Artifact == "" || s.long {
		return
	}
	file := filepath.Join(s.o.Place, specsDir, filepath.FromSlash(s.o.Artifact))
	if err := s.f.Store.o.Disk.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.f.Say("note: %s: %v", s.name(), err)
	}
}

// settle files what was found and moves the statuses.
func (s *step) settle(b *Board, t *Task, o *Operation, res *StepResult) error {
	completed := res.Status == "completed"
	switch {
	case completed && o.Artifact != "" && !s.fileThere(b):
		res.Status, res.Reason = "partial", fmt.Sprintf("it was to write specs/%s and did not", o.Artifact)
	case completed && o.Name == OpResearch:
		return b.adoptReport(t, o, o.Artifact)
	case completed && o.Artifact != "":
		err := b.adoptPlan(t, o, o.Artifact)
		if err == nil {
			return nil
		}
		res.Status, res.Reason = "partial", err.Error()
	case completed:
		return b.endPhase(t, o, "completed", "")
	}
	s.keepPart(b, t, o)
	reason := cmp.Or(res.Reason, res.Summary)
	if o.Name != OpImplement && res.Status == "partial" { // nothing of it counts: the task is what it was before
		b.end(t, o, res.Status, 0, reason)
		b.set(t, o.From, "")
		return nil
	}
	return b.Stop(t.Number, o.Session, res.Status, reason)
}

// outOfTime leaves a task in progress, without anybody who works at it: what was
// done is there, and the next who begins goes on.
func (s *step) outOfTime(b *Board, t *Task, o *Operation, res StepResult) {
	s.keepPart(b, t, o)
	b.end(t, o, "partial", res.Phase, res.Reason)
}

// keepPart files what research wrote before it was cut short: part of a report is
// better than none.
func (s *step) keepPart(b *Board, t *Task, o *Operation) {
	if o.Name == OpResearch && s.fileThere(b) && !slices.Contains(t.Research, o.Artifact) {
		t.Research = append(t.Research, o.Artifact)
		b.link(t, "research", o.Artifact)
	}
}

func (s *step) fileThere(b *Board) bool {
	if s.tooLong() {
		return false
	}
	data, err := b.Read(s.o.Artifact)
	return err == nil && strings.TrimSpace(string(data)) != ""
}

func (b *Board) adoptReport(t *Task, o *Operation, name string) error {
	t.Research = append(t.Research, name)
	b.link(t, "research", name)
	b.changed(t, Change{Op: "report", Files: []string{name}})
	b.end(t, o, "completed", 0, "", name)
	b.set(t, Researched, "")
	return nil
}

func (b *Board) adoptPlan(t *Task, o *Operation, name string) error {
	text, err := b.Read(name)
	if err != nil {
		return err
	}
	if err := checkPlan(t, text); err != nil {
		return err
	}
	t.Plans = append(t.Plans, name)
	b.link(t, "plan", name)
	if b.mendsErrors(t) {
		for _, f := range b.failures.List {
			if f.FixTask == t.Number && f.FixStatus == FixBegun {
				f.FixPlan, b.failures.dirty = name, true
			}
		}
	}
	b.changed(t, Change{Op: "plan", Files: []string{name}})
	b.end(t, o, "completed", 0, "", name)
	b.set(t, Planned, "")
	return nil
}

// finish ends a task whose last phase is completed, with a summary of what was done.
func (s *step) finish(ctx context.Context, res *StepResult) error {
	done, next := false, res.Next
	b, err := s.f.Store.Change(ctx, func(b *Board) error {
		done, res.Next = false, next
		var open string
		var err error
		done, open, err = b.endWhole(s.number())
		res.Next = strings.TrimSpace(res.Next + " " + open)
		return err
	})
	if err != nil || !done {
		return err
	}
	res.Task = Completed
	s.f.Changed(ctx, b)
	s.commitFiles(ctx, Message(&s.task, OpImplement, 0, ""), b.Files())
	return nil
}

// endWhole ends a task all of whose phases are completed and at which nobody works; done is
// false for another. open says what is left to be looked at, "" where that is nothing.
func (b *Board) endWhole(n int) (done bool, open string, err error) {
	t, err := b.Task(n)
	if err != nil || t.Status.Ended() || len(t.Operations) > 0 || len(t.Plans) == 0 {
		return false, "", err
	}
	p, name, err := b.Plan(t)
	if err != nil || len(p.Phases) == 0 || p.Next() != nil {
		return false, "", err
	}
	unmet := 0
	for _, c := range b.Criteria(t) {
		if !c.Met {
			unmet++
		}
	}
	if unmet > 0 {
		open = fmt.Sprintf("Boxes of the task's text that are not ticked: %d. See whether that holds.", unmet)
	}
	if !t.Status.CanBecome(Completed) {
		b.set(t, InProgress, "")
	}
	return true, open, b.Complete(n, b.summary(t, p, name))
}

// EndLeft ends a task whose last phase was completed by a process that did not live to end the
// task; done is false for another.
func (f *Flow) EndLeft(ctx context.Context, n int) (res StepResult, done bool, err error) {
	b, err := f.Store.Load(ctx)
	if err != nil {
		return res, false, err
	}
	if t := b.State.Tasks[n]; t == nil || t.Status == Blocked {
		return res, false, nil // said by what comes next
	}
	if done, _, err = b.endWhole(n); err != nil || !done {
		return res, false, nil //nolint:nilerr // a plan that cannot be read is told by what comes next
	}
	b, err = f.Store.Change(ctx, func(b *Board) error {
		done, res.Next, err = b.endWhole(n)
		return err
	})
	if err != nil || !done {
		return res, false, err
	}
	t := b.State.Tasks[n]
	res.Number, res.Op, res.Status, res.Task = n, OpImplement, "completed", t.Status
	res.Summary = "Every phase was completed before; the task had not been ended, and is now."
	f.Changed(ctx, b)
	if f.Commit != nil {
		f.commits.Lock()
		f.Commit(ctx, f.Root, Message(t, OpImplement, 0, ""), b.Files())
		f.commits.Unlock()
	}
	res, err = f.tell(res, nil)
	return res, true, err
}

// summary says what was done when a task is completed.
func (b *Board) summary(t *Task, p *Plan, plan string) []byte {
	var out strings.Builder
	fmt.Fprintf(&out, "# Task %d: %s\n\n- **Plan**: %s\n- **Completed**: %s\n\n", t.Number, t.Title, path.Join(specsDir, plan), stamp(&b.now))
	own, _ := b.Own(t) // what cannot be read is left out
	took := PhaseTimes(own)
	for _, ph := range p.Phases {
		fmt.Fprintf(&out, "- Phase %d: %s", ph.Number, ph.Title)
		if took[ph.Number] > 0 {
			fmt.Fprintf(&out, " (%s)", took[ph.Number])
		}
		out.WriteString("\n")
	}
	return []byte(out.String())
}

// PhaseTimes is how long was worked at each phase, tries that came to nothing with it.
func PhaseTimes(list []Outcome) map[int]time.Duration {
	took := map[int]time.Duration{}
	for _, o := range list {
		if o.Op == OpImplement && o.Phase > 0 {
			took[o.Phase] += o.Ended.Sub(o.Started)
		}
	}
	return took
}

// named are the files that the agent says it made or changed and that lie in a
// checkout, relative to it.
func (s *step) named(dir string, res StepResult) []string {
	var out []string
	for _, a := range res.Files {
		if name := relative(dir, a); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// message is the subject of the step's commit.
func (s *step) message(res StepResult) string {
	if s.review != nil {
		return "review: update registries and create tasks"
	}
	if res.Status != "completed" {
		return fmt.Sprintf("task %d: %s %s", s.number(), s.what(), res.Status)
	}
	title := ""
	if s.phase != nil {
		title = s.phase.Title
	}
	return Message(&s.task, s.o.Name, res.Phase, title)
}

// wholeMessage is message for the step as it ends well.
func (s *step) wholeMessage() string {
	return s.message(StepResult{Op: s.o.Name, Phase: s.o.Phase, Status: "completed"})
}

// onRecord ends the subject of a commit of the list after a phase that was worked at in a place
// of its own: the work itself is another commit, of the place's branch.
const onRecord = ", on record"

// commit commits what the step made, with the list.
func (s *step) commit(ctx context.Context, b *Board, res StepResult) {
	files := b.Files()
	if s.o.Artifact != "" && !s.tooLong() {
		files = append(files, path.Join(specsDir, s.o.Artifact))
	}
	msg := s.message(res)
	if s.o.Place == "" {
		for _, name := range s.named(s.f.Root, res) {
			if fi, err := os.Stat(filepath.Join(s.f.Root, filepath.FromSlash(name))); err == nil && fi.Size() > maxArtifact {
				s.f.Say("note: %s: %s is not committed: it has %d MB, more than %d; commit it yourself if it belongs into git", s.name(), name, fi.Size()>>20, maxArtifact>>20)
				continue
			}
			files = append(files, name)
		}
	} else if s.phase != nil {
		msg += onRecord
	}
	slices.Sort(files)
	s.commitFiles(ctx, msg, slices.Compact(files))
}

func (s *step) commitFiles(ctx context.Context, message string, files []string) {
	if s.f.Commit == nil {
		return
	}
	s.f.commits.Lock()
	defer s.f.commits.Unlock()
	s.f.Commit(ctx, s.f.Root, message+"\n\nSession: "+s.d.Session, files)
}

// relative is an artifact's name below a checkout, "" for one outside.
func relative(dir, name string) string {
	if Inside(dir, name) != nil {
		return ""
	}
	if !filepath.IsAbs(name) {
		return path.Clean(filepath.ToSlash(name))
	}
	rel, ok := pathname.Below(dir, name)
	if !ok {
		return ""
	}
	return filepath.ToSlash(rel)
}
