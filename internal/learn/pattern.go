package learn

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"reprise/internal/clip"
	"reprise/internal/event"
	"reprise/internal/learn/sign"
	"reprise/internal/recall"
)

const (
	// A fix is a pattern from this many sessions on in which it worked; a mere
	// second try from more, because chance explains two.
	patternSessions = 2
	retrySessions   = 3
	// A pattern is everybody's from this many projects on.
	globalProjects = 2
	// reviewDays after its last success a pattern should be tested again.
	reviewDays = 180
	// A failed fix is forgotten when its confidence has decayed to this.
	antiFloor = 0.2
)

// group works out again what stands over sessions: patterns of a signature or
// correction, the digest of a month; or whom a use or a forgetting concerns.
func (f *folder) group(what string) error {
	f.report.Groups++
	kind, group, _ := strings.Cut(what, "\t")
	if kind == rowRecall {
		return nil // they are looked up, nothing is made of them
	}
	var values [][]byte
	var sorts []string
	prefix := kind + "\t" + group + "\t"
	err := f.tx.EachKV(bucketRow, prefix, func(key string, value []byte) bool {
		values = append(values, value)
		sorts = append(sorts, key[len(prefix):])
		return true
	})
	if err != nil {
		return err
	}
	var docs []recall.Doc
	switch kind {
	case rowSig:
		docs, err = f.sigGroup(values)
	case rowSaid:
		docs, err = f.saidGroup(values)
	case rowCold:
		docs, err = f.coldGroup(values)
	case rowAsk:
		docs, err = f.askGroup(values)
	case rowPolicy:
		return f.policyGroup(values)
	case rowUse:
		return f.ownerOf(group)
	case rowGone:
		return f.forgotten(group, values)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if err := f.readGone(); err != nil {
		return err
	}
	kept := docs[:0]
	hidden := map[string]bool{}
	for _, d := range docs {
		if f.gone.forgotten(d.ID) {
			hidden[d.ID] = true
			continue
		}
		if f.gone.expired(d) {
			hidden[ExpiryID(d.Class, d.Project)] = true
			continue
		}
		f.gone.supersede(&d)
		if err := f.finish(&d); err != nil {
			return err
		}
		kept = append(kept, d)
	}
	return f.write("t"+what, kept, nil, never, hidden)
}

// finish adds what usage has to say to a document that stands over sessions.
func (f *folder) finish(d *recall.Doc) error {
	data, ok := DataOf(*d)
	if !ok {
		return nil
	}
	use, err := usageOf(f.tx, d.ID)
	if err != nil {
		return err
	}
	data.Signals[SignalUsage] = use.value()
	data.Signals[SignalSaid] = max(data.Signals[SignalSaid], use.said())
	data.Signals[SignalConflict] = max(data.Signals[SignalConflict], use.unwanted())
	d.Importance = importance(data.Signals)
	d.Scope = string(event.ScopeGlobal)
	if d.Project != "" {
		d.Scope = string(event.ScopeProject)
	}
	d.Data = data.encode()
	return nil
}

// ownerOf puts whoever makes a document on the list of work.
func (f *folder) ownerOf(hash string) error {
	owner, ok, err := f.tx.Load(bucketOwner, hash)
	if err != nil || !ok {
		return err
	}
	return f.mark(string(owner))
}

// forgotten puts on the list what an item that was forgotten, or is not any
// more, is part of: its maker; for an event the sessions that it belongs to.
func (f *folder) forgotten(hash string, values [][]byte) error {
	f.gone = nil
	if err := f.ownerOf(hash); err != nil {
		return err
	}
	// What is kept out already has no document to find its maker by.
	var hiding []string
	err := f.tx.EachKV(bucketHidden, hash+"\t", func(key string, _ []byte) bool {
		hiding = append(hiding, key[len(hash)+1:])
		return true
	})
	for _, o := range hiding {
		if err == nil {
			err = f.mark(o)
		}
	}
	var id string
	for _, v := range values {
		var r goneRow
		if json.Unmarshal(v, &r) == nil {
			id = r.ID
		}
	}
	if err != nil || id == "" {
		return err
	}
	if also, err := f.alsoMadeBy(id); err != nil || also {
		return err
	}
	if len(hiding) > 0 || !sign.IsUUID(id) {
		return nil
	}
	var holding []string
	err = f.tx.EachKV(bucketRecord, "", func(key string, value []byte) bool {
		if bytes.Contains(value, []byte(id)) {
			s, _, _ := strings.Cut(key, "/")
			holding = appendNew(holding, "s"+s, math.MaxInt)
		}
		return true
	})
	for _, o := range holding {
		if err == nil {
			err = f.mark(o)
		}
	}
	return err
}

func readRows[T any](values [][]byte) []T {
	out := make([]T, 0, len(values))
	for _, v := range values {
		var r T
		if json.Unmarshal(v, &r) == nil {
			out = append(out, r)
		}
	}
	return out
}

// byReaders divides rows into those of each project ("p…") and those of all
// projects together ("g…"), apart for each access list.
func byReaders[R any](rows []R, of func(R) (project string, acl []string)) map[string][]R {
	parts := map[string][]R{}
	for _, r := range rows {
		project, list := of(r)
		acl := strings.Join(list, " ")
		for _, part := range []string{"p\t" + project + "\t" + acl, "g\t\t" + acl} {
			parts[part] = append(parts[part], r)
		}
	}
	return parts
}

// sigGroup works out the patterns and anti-patterns of a signature, for each
// project and over all of them, apart for each access list: what is one agent's
// own does not make a pattern for all.
func (f *folder) sigGroup(values [][]byte) ([]recall.Doc, error) {
	rows := readRows[sigRow](values)
	if err := f.checkNovelty(len(rows), func(i int) (string, int) { return rows[i].Session, rows[i].Earlier }); err != nil {
		return nil, err
	}
	parts := byReaders(rows, func(r sigRow) (string, []string) { return r.Project, r.ACL })
	var docs []recall.Doc
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		global := strings.HasPrefix(part, "g")
		if !global && parts[part][0].Project == "" {
			continue // outside any project is part of the whole
		}
		docs = append(docs, f.patterns(parts[part], global)...)
	}
	return docs, nil
}

// checkNovelty puts on the list the sessions that reckoned with other earlier
// sessions than there are.
func (f *folder) checkNovelty(n int, at func(int) (session string, earlier int)) error {
	seen := map[string]bool{}
	for i := range n {
		session, earlier := at(i)
		is := len(seen)
		if seen[session] {
			is--
		}
		if min(is, noveltyMost) != earlier {
			if err := f.mark("s" + session); err != nil {
				return err
			}
		}
		if len(seen) <= noveltyMost {
			seen[session] = true
		}
	}
	return nil
}

// trial is one time that a fix was put to the test.
type trial struct {
	at      int64
	worked  bool
	session string
	project string
	row     *sigRow
	event   string
	weak    bool // it was only done in between; nobody can say that it was meant as a fix
}

// patterns judges each kind of fix for a signature by its trials in time.
func (f *folder) patterns(rows []sigRow, global bool) []recall.Doc {
	trials := map[string][]trial{}
	fixes := map[string]*Fix{}
	others := map[string][]*Fix{}
	tried := map[string]string{}
	for i := range rows {
		r := &rows[i]
		if r.Fix != nil {
			k := r.Fix.Key
			fixes[k] = r.Fix // the newest says it best
			others[k] = append(others[k], r.Fix)
			trials[k] = append(trials[k], trial{at: r.At, worked: true, session: r.Session, project: r.Project, row: r, event: r.Fix.Event})
			if r.Again != 0 {
				trials[k] = append(trials[k], trial{at: r.Again, session: r.Session, project: r.Project, row: r, event: r.AgainAt})
			}
		}
		for j, t := range r.Tried {
			tried[t.Key] = t.Text
			at := r.At
			if j < len(r.TriedAt) {
				at = r.TriedAt[j]
			}
			trials[t.Key] = append(trials[t.Key], trial{at: at, session: r.Session, project: r.Project, row: r, event: t.Event, weak: true})
		}
	}
	var docs []recall.Doc
	for _, k := range slices.Sorted(maps.Keys(trials)) {
		list := trials[k]
		slices.SortStableFunc(list, func(a, b trial) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.event, b.event)) })
		j := judge(list, f.o.o.HalfLife)
		if global && len(j.projects) < globalProjects && (j.row == nil || j.row.Project != "") {
			continue
		}
		text, fix := tried[k], fixes[k]
		if fx := fix; fx != nil {
			text = fx.Text
			if global {
				told := *fx
				told.Common = anywhere(fx, others[k])
				fix, text = &told, told.Common
			}
		} else if global {
			continue // what only failed, and elsewhere, says nothing here
		}
		if global && unfitElsewhere(j.row, text) {
			continue
		}
		if d, ok := f.pattern(k, text, fix, j, rows, global); ok {
			docs = append(docs, d)
		}
		if d, ok := f.antiPattern(k, text, j, rows, global); ok {
			docs = append(docs, d)
		}
	}
	return docs
}

// judgement is what the trials of a fix come to.
type judgement struct {
	trials      []trial
	worked      map[string]bool // sessions
	projects    map[string]bool // in which it worked; a place outside any may be one of them before it was one
	failed      int
	lastWorked  int64
	lastFailed  int64
	failWeight  float64 // failures, each halved by the half-life until the last trial
	failStreak  int     // failures since it worked last
	strong      bool    // it was a fix once, or was tried twice
	row         *sigRow // of the newest trial
	lastTrialAt int64
}

func judge(list []trial, life time.Duration) judgement {
	j := judgement{trials: list, worked: map[string]bool{}, projects: map[string]bool{}}
	end := list[len(list)-1].at
	weak := 0
	for i := range list {
		t := &list[i]
		j.row, j.lastTrialAt = t.row, t.at
		if t.worked {
			j.worked[t.session] = true
			if isProject(t.project) {
				j.projects[t.project] = true
			}
			j.lastWorked, j.failStreak = t.at, 0
			j.strong = true
			continue
		}
		if t.weak {
			weak++
		}
		j.failed++
		j.failStreak++
		j.lastFailed = t.at
		j.failWeight += half(time.Duration(end-t.at), life)
	}
	j.strong = j.strong || weak >= 2
	return j
}

// confidence is the share of trials that worked, by Laplace's rule: one trial
// more of each kind is imagined, so that little evidence says little.
func (j judgement) confidence() float64 {
	s := float64(len(j.worked))
	return round3((s + 1) / (s + j.failWeight + 2))
}

// Anywhere is a fix in words that hold in other projects, too. differs reports that what
// would say what to do is another one in each: the words are of no use elsewhere.
func (f *Fix) Anywhere() (words string, differs bool) {
	words = cmp.Or(f.Common, anywhere(f, nil))
	return words, sign.Place(words)
}

// anywhere is a fix in words that hold in other projects, too: files by their
// names, and ids and places only where all that it was seen as have the same.
func anywhere(f *Fix, all []*Fix) string {
	var parts []string
	shared := func(of func(*Fix) []string) string {
		lists := make([][]string, len(all))
		for i, x := range all {
			lists[i] = of(x)
		}
		return sharedWords(of(f), lists)
	}
	if f.Kind == "changed" {
		if len(f.Come) > 0 {
			parts = append(parts, "with `"+shared(func(x *Fix) []string { return x.Come })+"`")
		}
		if len(f.Gone) > 0 {
			parts = append(parts, "without `"+shared(func(x *Fix) []string { return x.Gone })+"`")
		}
	}
	if len(f.Commands) > 0 {
		var list []string
		for i := range f.Commands {
			list = append(list, shared(func(x *Fix) []string {
				if i >= len(x.Commands) {
					return nil
				}
				return strings.Fields(x.Commands[i])
			}))
		}
		parts = append(parts, "after `"+strings.Join(list, "`, `")+"`")
	}
	if f.Kind == "edit" {
		var names []string
		for _, file := range f.Files {
			names = appendNew(names, path.Base(file), 3)
		}
		parts = append(parts, "after editing "+strings.Join(names, ", "))
	}
	if len(parts) == 0 {
		return f.Text
	}
	return strings.Join(parts, "; ")
}

// sharedWords are words, of which those that are another one in any of the lists have
// what differs from one time to the next taken out. One list alone shares nothing.
func sharedWords(words []string, lists [][]string) string {
	out := make([]string, len(words))
	for i, w := range words {
		other := func(l []string) bool { return i >= len(l) || l[i] != w }
		if out[i] = w; len(lists) < 2 || slices.ContainsFunc(lists, other) {
			out[i] = sign.NormalWord(w, "")
		}
	}
	return strings.Join(out, " ")
}

func (f *folder) pattern(key, text string, fix *Fix, j judgement, rows []sigRow, global bool) (recall.Doc, bool) {
	least := patternSessions
	if fix != nil && fix.Kind == "retry" {
		least = retrySessions
	}
	if fix == nil || len(j.worked) < least || j.failStreak > 0 && j.confidence() < 0.5 {
		return recall.Doc{}, false
	}
	r := j.row
	d, data := f.overSessions("pt-", key, text, j, rows, global)
	d.Class, data.Kind, data.Outcome = recall.ClassPattern, KindPattern, Fixed
	data.Fix = fix
	data.Lifted = j.failed > 0 && j.failStreak == 0
	d.Time = timeOf(j.lastTrialAt)
	d.Confidence = j.confidence()
	if fix.Kind == "retry" {
		d.Confidence = round3(d.Confidence * 0.7)
	}
	d.Review = timeOf(j.lastWorked).AddDate(0, 0, reviewDays)
	data.Signals[SignalOutcome] = d.Confidence
	if j.failed > 0 {
		data.Signals[SignalConflict] = round3(min(1, j.failWeight/float64(len(j.worked)+1)))
	}
	d.Title = sign.Clip(r.Target, 60) + ": " + sign.Clip(cmp.Or(clip.Line(firstLine(data.Failure)), "fails"), 110) + " — worked " + sign.Clip(text, 110)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nIt worked %s.\n", fails(r, data.Failure), text)
	fmt.Fprintf(&b, "Seen to work in %s", count(len(j.worked), "session"))
	if len(j.projects) > 1 {
		fmt.Fprintf(&b, " of %s", count(len(j.projects), "project"))
	}
	fmt.Fprintf(&b, ", last on %s.", timeOf(j.lastWorked).Format("2006-01-02"))
	if j.failed > 0 {
		fmt.Fprintf(&b, " It did not hold %s.", times(j.failed))
	}
	d.Text = b.String()
	d.Data = data.encode()
	return d, true
}

// fails says of what a pattern is; words are "" where none of them may be told.
func fails(r *sigRow, words string) string {
	if words = clip.Line(words); words == "" {
		return "`" + sign.Clip(r.Target, 120) + "` fails."
	}
	return "`" + sign.Clip(r.Target, 120) + "` fails with: " + words
}

// elsewhere are the words of a failure as they are told beyond its project: those in which
// failures are told, and of all else that the tool printed none, as nobody has looked at it.
func elsewhere(r *sigRow, fix string) string { return sign.Quote(sign.Seen(r.Line), r.Target, fix) }

// unfitElsewhere says that a pattern would not rise from its project: a tool, a command or a
// file's name speaks in it to a model. It is the projects' own then.
func unfitElsewhere(r *sigRow, fix string) bool {
	return slices.ContainsFunc([]string{r.Line, r.Target, fix}, func(s string) bool { return sign.Instructs(s) != "" })
}

// quotes says that the words of a failure have others in them than those in which failures
// are told: whatever a tool printed, so that it is nothing to go by.
func quotes(words, target, fix string) bool {
	return sign.Quote(words, target, fix) != strings.Join(strings.Fields(words), " ")
}

func (f *folder) antiPattern(key, text string, j judgement, rows []sigRow, global bool) (recall.Doc, bool) {
	if j.failStreak == 0 || !j.strong || key == "retry" || global && len(j.projects) < globalProjects {
		return recall.Doc{}, false
	}
	conf := round3((float64(j.failStreak) + 1) / (float64(j.failStreak) + float64(len(j.worked)) + 2))
	if conf < 0.4 {
		return recall.Doc{}, false
	}
	r := j.row
	d, data := f.overSessions("ap-", key, text, j, rows, global)
	d.Class, data.Kind, data.Outcome = recall.ClassAntiPattern, KindAntiPattern, Refailed
	data.Tried = []Attempt{{Key: key, Text: text, Event: j.trials[len(j.trials)-1].event}}
	d.Confidence = conf
	d.Time = timeOf(j.lastFailed)
	d.Review = d.Time.Add(f.o.o.HalfLife)
	// Decay: the day on which what is left of its confidence is next to nothing.
	lives := math.Log2(conf / antiFloor)
	d.Until = dayTime(day(d.Time.Add(time.Duration(lives*float64(f.o.o.HalfLife)))) + 1)
	data.Signals[SignalOutcome] = conf
	if len(j.worked) > 0 {
		data.Signals[SignalConflict] = round3(float64(len(j.worked)) / float64(len(j.worked)+j.failed))
	}
	d.Title = "Did not help with " + sign.Clip(r.Target, 60) + ": " + sign.Clip(cmp.Or(clip.Line(firstLine(data.Failure)), "fails"), 100) + " — " + sign.Clip(text, 100)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nThe same failure came again %s (%s, last on %s).", fails(r, data.Failure), text, times(j.failed), d.Time.Format("2006-01-02"))
	if len(j.worked) > 0 {
		fmt.Fprintf(&b, " It had worked in %s before.", count(len(j.worked), "session"))
	}
	fmt.Fprintf(&b, " Test again after %s.", d.Review.Format("2006-01-02"))
	d.Text = b.String()
	d.Data = data.encode()
	return d, true
}

// overSessions is what a pattern and an anti-pattern have in common.
func (f *folder) overSessions(prefix, key, fix string, j judgement, rows []sigRow, global bool) (recall.Doc, Data) {
	r := j.row
	sig, _, _ := strings.Cut(r.Exact, "=")
	data := Data{
		Tool: r.Tool, Target: r.Target, Signature: sig, Failure: r.Shown, Line: r.Line, Sessions: len(j.worked), Projects: len(j.projects), Failures: j.failed,
		Signals: map[string]float64{SignalRecency: 1, SignalNovelty: novelty(len(j.worked) - 1)},
	}
	keys := []string{sig}
	for i := len(j.trials) - 1; i >= 0; i-- {
		t := j.trials[i]
		keys = appendNew(keys, t.row.Exact, 9)
		data.Episodes = appendNew(data.Episodes, t.row.ID, 10)
		data.SessionID = appendNew(data.SessionID, t.row.SessionID, 10)
		data.Evidence = appendNew(data.Evidence, t.event, maxEvidence)
	}
	project := r.Project
	if global {
		project = ""
		data.Line = elsewhere(r, fix)
		data.Failure = data.Line
	}
	data.Quotes = !global && quotes(data.Failure, r.Target, fix)
	d := recall.Doc{
		ID: patternID(prefix, sig, key, global, f.o.firstName(project), r.ACL), Project: project, ACL: r.ACL, Source: r.ID, Keys: keys,
	}
	return d, data
}

// patternID names a pattern by what makes it one: it is the same whenever it is worked out.
func patternID(prefix, sig, key string, global bool, project string, acl []string) string {
	return prefix + sign.Hash(sig, key, fmt.Sprint(global), project, strings.Join(acl, " "))
}

// saidID is patternID for what the user said.
func saidID(key string, global bool, project string, acl []string) string {
	return "sd-" + sign.Hash(key, fmt.Sprint(global), project, strings.Join(acl, " "))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// saidGroup makes a pattern of what the user had to say in several sessions.
func (f *folder) saidGroup(values [][]byte) ([]recall.Doc, error) {
	rows := readRows[saidRow](values)
	if err := f.checkNovelty(len(rows), func(i int) (string, int) { return rows[i].Session, rows[i].Earlier }); err != nil {
		return nil, err
	}
	parts := byReaders(rows, func(r saidRow) (string, []string) { return r.Project, r.ACL })
	var docs []recall.Doc
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		list := parts[part]
		global := strings.HasPrefix(part, "g")
		sessions, projects := map[string]bool{}, map[string]bool{}
		data := Data{Kind: KindSaid, Outcome: Told, Signals: map[string]float64{SignalSaid: 1, SignalOutcome: 0.8, SignalRecency: 1}}
		for i := len(list) - 1; i >= 0; i-- {
			r := list[i]
			sessions[r.Session] = true
			if isProject(r.Project) {
				projects[r.Project] = true
			}
			data.Episodes = appendNew(data.Episodes, r.ID, 10)
			data.SessionID = appendNew(data.SessionID, r.SessionID, 10)
			data.Evidence = appendNew(data.Evidence, r.Event, maxEvidence)
		}
		last := list[len(list)-1]
		if len(sessions) < patternSessions || global && len(projects) < globalProjects || !global && last.Project == "" {
			continue
		}
		key := sign.SaidKey(last.Sentence)
		data.Said, data.SaidKey, data.Sessions, data.Projects = last.Sentence, key, len(sessions), len(projects)
		project := last.Project
		if global {
			project = ""
		}
		docs = append(docs, recall.Doc{
			ID: saidID(key, global, f.o.firstName(project), last.ACL), Class: recall.ClassPattern, Project: project, ACL: last.ACL, Author: "user",
			Source: last.ID, Keys: []string{key}, Time: timeOf(last.At), Confidence: round3((float64(len(sessions)) + 1) / (float64(len(sessions)) + 2)),
			Title: "The user said in " + count(len(sessions), "session") + ": " + sign.Clip(last.Sentence, 160), Text: clip.Line(last.Sentence), Data: data.encode(),
			Review: timeOf(last.At).AddDate(0, 0, reviewDays),
		})
	}
	return docs, nil
}

func (f *folder) coldGroup(values [][]byte) ([]recall.Doc, error) {
	rows := readRows[coldRow](values)
	if len(rows) == 0 {
		return nil, nil
	}
	d, data := digest(rows, f.o.firstName)
	d.Data = data.encode()
	return []recall.Doc{d}, nil
}
