package learn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reprise/internal/clip"
	"reprise/internal/event"
	"reprise/internal/learn/sign"
	"reprise/internal/recall"
)

// session makes the session's summary: when it has ended, or when a day has
// gone by without a word from it.
func (c *composer) session() {
	recs := c.s.recs
	worked := slices.ContainsFunc(c.s.turns, func(t *turn) bool { return !t.idle() })
	if len(recs) == 0 || !worked && len(c.s.chains) == 0 {
		return
	}
	st := &c.s.stats
	last := day(sessionTime(recs))
	if !st.Ended && c.g.asOf <= last {
		c.out.due = min(c.out.due, last+1)
		return
	}
	var lists [][]string
	for _, r := range recs {
		lists = append(lists, r.acl)
	}
	acl, readable := readableBy(lists...)
	text, title := c.summaryText()
	data := Data{
		Kind: KindSession, Quotes: slices.ContainsFunc(c.s.chains, c.quotes), Task: title, Outcome: st.Outcome, Evidence: c.summaryEvidence(), Files: c.files(8),
		Signals: map[string]float64{SignalOutcome: map[string]float64{"good": 0.6, "corrected": 0.6, "failed": 0.4, "error": 0.3}[st.Outcome]},
	}
	if by, written := c.written(); written != "" && !c.retracts() { // it may say what was taken back
		text = sign.Clip(written, 1500) + "\n(written by " + cmp.Or(by, "a model") + ")"
	}
	c.put(recall.Doc{
		ID: "sm-" + sign.Hash(c.key), Class: recall.ClassSummary, Project: c.project(), Client: st.Client, Source: recs[0].id, Time: sessionTime(recs),
		Title: "Session of " + st.Start.Format("2006-01-02") + ": " + sign.Clip(title, 140), Text: text, Confidence: 0.5,
	}, data, acl, readable)
}

// retracts says that something of the session was forgotten or corrected.
func (c *composer) retracts() bool {
	for _, yes := range c.retracted {
		if yes {
			return true
		}
	}
	return false
}

// project is the one that most of the session's events are of.
func (c *composer) project() string {
	count := map[string]int{}
	best := ""
	for _, r := range c.s.recs {
		count[r.project]++
	}
	for p, n := range count {
		if n > count[best] || n == count[best] && p > best {
			best = p
		}
	}
	return best
}

// written is the text that a model or person wrote about the session last.
func (c *composer) written() (by, text string) { return writtenIn(c.s.recs) }

func writtenIn(recs []*record) (by, text string) {
	for _, r := range recs {
		if r.typ != event.EpisodeRecorded {
			continue
		}
		var d Recorded
		decode(r.extra, &d)
		if d.Kind == KindWritten && d.Text != "" {
			by, text = d.By, d.Text
		}
	}
	return by, text
}

func (c *composer) files(most int) []string {
	var out []string
	for _, t := range c.s.turns {
		for _, f := range t.files {
			out = appendNew(out, f, most)
		}
	}
	return out
}

func (c *composer) summaryEvidence() []string {
	var out []string
	for _, t := range c.s.turns {
		out = appendNew(out, t.prompt.id, maxEvidence-1)
	}
	if last := c.s.turn(); last != nil && last.response != nil {
		out = appendNew(out, last.response.id, maxEvidence)
	}
	return out
}

// summaryText is extractive: the session's own words, chosen by rules, without
// what of it was forgotten or corrected since.
func (c *composer) summaryText() (text, title string) {
	s := c.s
	st := &s.stats
	var b strings.Builder
	var tasks []string
	for _, t := range s.turns {
		if corrected := slices.ContainsFunc(s.saids, func(x said) bool { return x.rec == t.prompt }); !corrected && !c.retracted[t.id()] && !t.idle() {
			tasks = appendNew(tasks, firstSentence(t.prompt.text, 160), 4)
		}
	}
	title = "(no prompt)"
	if len(tasks) > 0 {
		title = tasks[0]
		fmt.Fprintf(&b, "Task: %s\n", strings.Join(tasks, " / "))
	}
	if files := c.files(8); len(files) > 0 {
		fmt.Fprintf(&b, "Edited: %s\n", strings.Join(files, ", "))
	}
	fixed, open := 0, 0
	for _, ch := range s.chains {
		switch {
		case c.retracted[ch.id()]:
		case ch.fix != nil && ch.fix.Kind != "retry" && fixed < 4:
			fixed++
			fmt.Fprintf(&b, "Failed and fixed: %s: %s — %s\n", sign.Clip(s.targetFor(ch.first), 60), sign.Clip(clip.Line(ch.first.sig.Shown), 120), sign.Clip(ch.fix.Text, 160))
		case ch.fix == nil && ch.first.tool == "shell" && open < 3:
			open++
			fmt.Fprintf(&b, "Failed and left: %s: %s\n", sign.Clip(s.targetFor(ch.first), 60), sign.Clip(clip.Line(ch.first.sig.Shown), 120))
		}
	}
	if len(s.kept) > 0 {
		fmt.Fprintf(&b, "Refused, and not done: `%s`\n", strings.Join(s.kept, "`, `"))
	}
	told := 0
	for _, x := range s.saids {
		if told < 3 && !c.retracted[x.id()] {
			told++
			fmt.Fprintf(&b, "The user said: %s\n", sign.Clip(clip.Line(x.sentence), mostSaid))
		}
	}
	if st.Verified == "failed" {
		fmt.Fprintf(&b, "%s\n", strings.TrimSuffix("Checks failed at its end: "+st.Unmet, ": "))
	}
	if st.Judged == "failed" {
		fmt.Fprintf(&b, "%s\n", strings.TrimSuffix("What it was to do was not done: "+st.Undone, ": "))
	}
	turns := slices.DeleteFunc(slices.Clone(s.turns), func(t *turn) bool { return c.retracted[t.id()] })
	for _, d := range decisions(turns) {
		fmt.Fprintf(&b, "Decided: %s\n", d)
	}
	if last := lastResponse(turns); last != "" {
		fmt.Fprintf(&b, "Last answer: %s\n", sign.Clip(clip.Line(last), 300))
	}
	refused := ""
	if st.Refused > 0 {
		refused = fmt.Sprintf(", %d refused", st.Refused)
	}
	fmt.Fprintf(&b, "%s, %s, %d failed%s, outcome %s.", count(st.Prompts, "prompt"), count(st.Calls, "tool call"), st.Failures, refused, st.Outcome)
	return b.String(), title
}

func lastResponse(turns []*turn) string {
	for i := len(turns) - 1; i >= 0; i-- {
		if r := turns[i].response; r != nil && r.text != "" && !turns[i].unserved() {
			return r.text
		}
	}
	return ""
}

// decisions are sentences of answers that say what was decided, at most three.
func decisions(turns []*turn) []string {
	var out []string
	for _, t := range turns {
		if t.response == nil {
			continue
		}
		for _, sentence := range sign.Sentences(t.response.text) {
			low := strings.ToLower(sentence)
			for _, w := range []string{"decided to", "we decided", "i decided", "i chose", "we chose", "chose to", "going with", "instead of", "ことにしました", "ことにした", "採用し", "選びました", "決めました"} {
				if strings.Contains(low, w) {
					out = appendNew(out, sign.Clip(clip.Line(strings.TrimLeft(sentence, "-*# ")), 160), 3)
					break
				}
			}
		}
	}
	return out
}

// digest is the summary of what of one project and month has gone cold.
func digest(rows []coldRow, firstName func(string) string) (recall.Doc, Data) {
	best := slices.Clone(rows)
	slices.SortStableFunc(best, func(a, b coldRow) int {
		return cmp.Or(cmp.Compare(b.Base, a.Base), cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID))
	})
	first := rows[0]
	var b strings.Builder
	var keys, ids []string
	var last int64
	sessions, failures, fixed, saids, quotes := 0, 0, 0, 0, false
	for _, r := range rows {
		last = max(last, r.At)
		switch r.Kind {
		case KindSession:
			sessions++
		case KindFailure:
			failures++
			if r.Fixed {
				fixed++
			}
		case KindCorrection:
			saids++
		}
		for _, k := range r.Keys {
			keys = appendNew(keys, k, 200)
		}
	}
	fmt.Fprintf(&b, "%s, %s of which %d were fixed, %s.\n", count(sessions, "session"), count(failures, "failure"), fixed, count(saids, "correction"))
	lines := 0
	for _, r := range best {
		if r.Kind == KindFailure && !r.Fixed || lines == 16 {
			continue
		}
		lines++
		quotes = quotes || r.Quotes && r.Kind == KindFailure
		fmt.Fprintf(&b, "%s %s\n", dayTime(int(r.At/1e9/daySeconds)).Format("01-02"), sign.Clip(clip.Line(r.Title), 180))
		ids = appendNew(ids, r.ID, 16)
	}
	where := ""
	if first.Project != "" {
		where = " in " + strings.TrimPrefix(strings.TrimPrefix(recall.Where(first.Project), "project "), "in ")
	}
	data := Data{
		Kind: KindDigest, Quotes: quotes, Outcome: Done, Episodes: ids, Sessions: sessions, Failures: failures,
		Signals: map[string]float64{SignalOutcome: 0.5, SignalRecency: 0.1},
	}
	return recall.Doc{
		ID: "dg-" + sign.Hash(firstName(first.Project), first.Month, strings.Join(first.ACL, " ")), Class: recall.ClassSummary, Project: first.Project, ACL: first.ACL,
		Source: best[0].ID, Title: "What happened in " + first.Month + where, Text: strings.TrimSpace(b.String()), Keys: keys,
		Time: dayTime(int(last / 1e9 / daySeconds)), Confidence: 0.4, Tier: Warm,
	}, data
}
