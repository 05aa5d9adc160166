package learn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/clip"
	"reprise/internal/event"
	"reprise/internal/learn/sign"
	"reprise/internal/mdfile"
	"reprise/internal/recall"
)

// Known is what memory has on a failure.
type Known struct {
	Signature sign.Signature
	// Fixes are what helped before, the best first, at most three. Their
	// Snippet is one or two lines that say it.
	Fixes []recall.Result
	// Avoid is what was followed by the same failure, at most two.
	Avoid []recall.Result
}

// Empty reports that nothing is known.
func (k Known) Empty() bool { return len(k.Fixes)+len(k.Avoid) == 0 }

const (
	mostFixes = 3
	mostAvoid = 2
	// A fix of another case of the same failure (the quoted values differ)
	// counts less than one of the very same.
	otherCase = 0.7
	// An edit that helped another call is a hint and not much more.
	otherEdit = 0.6
	// What scores less than this is a near miss, and left out.
	leastKnown = 0.18
)

// signCall is the signature of a failed call as the client's hook says it, and what it
// acted on; both are empty for a call that was refused, or that only found nothing.
func signCall(d *event.ToolData) (sig sign.Signature, target string) {
	r := record{typ: event.ToolFailed, exit: noExit}
	r.ofTool(d, sign.Clip)
	if r.typ != event.ToolFailed || r.refused {
		return sign.Signature{}, ""
	}
	return r.sig, r.target
}

// KnownFix looks up what helped with a failed call before, and what did not,
// among what the reader may see.
func (o *Organizer) KnownFix(ctx context.Context, who recall.Reader, d event.ToolData) (Known, error) {
	var k Known
	var target string
	var corrected []string
	k.Signature, target = signCall(&d)
	if k.Signature.Empty() {
		return k, nil
	}
	err := o.store.View(ctx, func(tx Tx) error {
		l := &lookup{tx: tx, who: who, now: o.o.Now(), sig: k.Signature, target: target}
		if err := l.look(); err != nil {
			return err
		}
		k.Fixes, k.Avoid, corrected = l.best(), l.avoid, l.corrected
		return nil
	})
	if err != nil {
		return Known{}, fmt.Errorf("look up a known failure: %w", err)
	}
	if o.o.Index == nil || ctx.Err() != nil {
		return k, ctx.Err()
	}
	if err := o.written(ctx, who, &k); err != nil || len(corrected) == 0 {
		return k, err
	}
	return k, o.corrections(ctx, who, corrected, &k)
}

// corrections puts before all else what was written in the place of what had
// been worked out about the failure; ids are of that. A correction may have been
// corrected itself.
func (o *Organizer) corrections(ctx context.Context, who recall.Reader, ids []string, k *Known) error {
	var found []recall.Result
	err := o.store.View(ctx, func(tx Tx) error {
		found = nil
		l := &lookup{tx: tx, who: who, now: o.o.Now()}
		seen := map[string]bool{}
		for queue := slices.Clone(ids); len(queue) > 0 && len(seen) < 64; queue = queue[1:] {
			docs, err := tx.ByKey(queue[0])
			if err != nil {
				return err
			}
			for _, d := range docs {
				if seen[d.ID] || !strings.HasPrefix(d.ID, "e-") {
					continue
				}
				seen[d.ID] = true
				if l.visible(d) {
					found = append(found, l.result(d, 1, clip.Line(d.Text)))
				} else {
					queue = append(queue, d.ID)
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look up a known failure: %w", err)
	}
	slices.SortStableFunc(found, func(a, b recall.Result) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.ID, b.ID)) })
	for _, r := range k.Fixes {
		if !slices.ContainsFunc(found, func(x recall.Result) bool { return x.ID == r.ID }) {
			found = append(found, r)
		}
	}
	k.Fixes = found[:min(len(found), mostFixes)]
	return nil
}

// written puts in front what somebody wrote down, or let be promoted, about
// the failure.
func (o *Organizer) written(ctx context.Context, who recall.Reader, k *Known) error {
	a, err := o.o.Index.Recall(ctx, recall.Question{
		Keys: []string{k.Signature.Exact, k.Signature.Key}, Reader: who, Max: 1, Classes: []recall.Class{recall.ClassLearning, recall.ClassDecision},
	})
	if err != nil {
		return fmt.Errorf("look up a known failure: %w", err)
	}
	for _, r := range a.Results {
		if slices.Contains(r.Keys, k.Signature.Key) || slices.Contains(r.Keys, k.Signature.Exact) {
			k.Fixes = slices.Insert(k.Fixes, 0, r)
		}
	}
	k.Fixes = k.Fixes[:min(len(k.Fixes), mostFixes)]
	return nil
}

type lookup struct {
	tx     Tx
	who    recall.Reader
	now    time.Time
	sig    sign.Signature
	target string
	fixes  []recall.Result
	avoid  []recall.Result
	spoilt map[string]bool // keys of fixes that an anti-pattern speaks against
	ids    map[string]bool
	// corrected are those in whose place somebody wrote something else.
	corrected []string
}

func (l *lookup) look() error {
	l.spoilt, l.ids = map[string]bool{}, map[string]bool{}
	var patterns made
	b, _, err := l.tx.Load(bucketMade, "t"+rowSig+"\t"+l.sig.Key)
	if err == nil {
		err = patterns.decode(b)
	}
	if err != nil {
		return err
	}
	for id := range patterns.Docs {
		l.ids[id] = true
	}
	over, err := l.overruled()
	if err != nil {
		return err
	}
	// Of the episodes only those with a fix are read; most have none.
	prefix := rowSig + "\t" + l.sig.Key + "\t"
	err = l.tx.EachKV(bucketRow, prefix, func(key string, value []byte) bool {
		if id := key[strings.LastIndexByte(key, '|')+1:]; bytes.Contains(value, []byte(`"fix":{`)) || over[sign.Hash(id)] {
			l.ids[id] = true
		}
		return true
	})
	if err != nil {
		return err
	}
	docs := make([]recall.Doc, 0, len(l.ids))
	for id := range l.ids {
		d, ok, err := l.tx.Get(id)
		if err != nil {
			return err
		}
		if ok && l.visible(d) {
			docs = append(docs, d)
		} else if ok && over[sign.Hash(id)] && mayRead(l.who, d) && l.fits(d) {
			l.corrected = append(l.corrected, id)
		}
	}
	slices.Sort(l.corrected)
	cold, err := l.digests()
	if err != nil {
		return err
	}
	docs = append(docs, cold...)
	slices.SortFunc(docs, func(a, b recall.Doc) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.ID, b.ID)) })
	for _, d := range docs {
		if d.Class == recall.ClassAntiPattern {
			l.consider(d)
		}
	}
	for _, d := range docs {
		if d.Class != recall.ClassAntiPattern {
			l.consider(d)
		}
	}
	return nil
}

// overruled are the hashes of the ids in whose place a correction stands.
func (l *lookup) overruled() (map[string]bool, error) {
	out := map[string]bool{}
	err := l.tx.EachKV(bucketRow, rowGone+"\t", func(key string, value []byte) bool {
		var r goneRow
		if json.Unmarshal(value, &r) == nil && r.Over > 0 {
			out[sign.Hash(r.ID)] = true
		}
		return true
	})
	return out, err
}

// fits says that what was corrected is about this failure, and not another of
// its signature.
func (l *lookup) fits(d recall.Doc) bool {
	data, ok := DataOf(d)
	return ok && (slices.Contains(d.Keys, l.sig.Exact) || data.Fix == nil || !l.aboutAnother(data))
}

// digests are the summaries that stand for episodes gone cold.
func (l *lookup) digests() ([]recall.Doc, error) {
	all, err := l.tx.ByKey(l.sig.Exact)
	if err != nil {
		return nil, err
	}
	var out []recall.Doc
	for _, d := range all {
		if d.Class == recall.ClassSummary && strings.HasPrefix(d.ID, "dg-") && l.visible(d) {
			out = append(out, d)
		}
	}
	return out, nil
}

// visible reports whether the reader may be served a document, by the rules
// that recall goes by.
func (l *lookup) visible(d recall.Doc) bool {
	if d.Status != recall.Active || !d.Until.IsZero() && !d.Until.After(l.now) {
		return false
	}
	if d.Session != "" && l.who.OwnSession(d.Client, d.Session) {
		return false // it happened before the reader's eyes
	}
	return mayRead(l.who, d)
}

func mayRead(who recall.Reader, d recall.Doc) bool {
	if who.All {
		return true
	}
	switch event.Scope(d.Scope) {
	case event.ScopeGlobal:
	case event.ScopeProject:
		if !who.Sees(d.Project) {
			return false
		}
	default:
		if d.Session == "" || d.Session != who.Session {
			return false
		}
	}
	return who.MayRead(d.ACL)
}

func (l *lookup) consider(d recall.Doc) {
	data, ok := DataOf(d)
	if !ok {
		return
	}
	factor := 1.0
	exact := slices.Contains(d.Keys, l.sig.Exact)
	if !exact {
		factor = otherCase
	}
	snippet := ""
	switch data.Kind {
	case KindAntiPattern:
		for _, t := range data.Tried {
			l.spoilt[t.Key] = true
			snippet = "The same failure came again " + t.Text
		}
		if len(l.avoid) < mostAvoid {
			l.avoid = append(l.avoid, l.result(d, d.Confidence*factor, snippet))
		}
		return
	case KindPattern, KindFailure:
		if data.Fix == nil || data.Outcome == Refailed || l.spoilt[data.Fix.Key] || !exact && l.aboutAnother(data) {
			return
		}
		if data.Kind == KindPattern {
			factor *= 1.2
		}
		if data.Fix.Kind == "edit" && data.Target != l.target {
			factor *= otherEdit
		}
		snippet = fmt.Sprintf("`%s` failed with the same error before; it worked %s", sign.Clip(data.Target, 100), data.Fix.Text)
		if data.Sessions > 1 {
			snippet += " (" + count(data.Sessions, "session") + ")"
		}
	case KindDigest:
		snippet = l.line(d)
		factor *= 0.6
		if snippet == "" {
			return
		}
	default:
		return
	}
	age := l.now.Sub(d.Time)
	l.fixes = append(l.fixes, l.result(d, d.Confidence*factor*(0.5+0.5*half(age, 180*24*time.Hour)), snippet))
}

// line is what a digest has to say of this failure.
func (l *lookup) line(d recall.Doc) string {
	words := sign.Clip(clip.Line(l.sig.Shown), 60)
	words = strings.TrimSuffix(words, "…")
	for s := range strings.SplitSeq(d.Text, "\n") {
		if words != "" && strings.Contains(s, words) {
			return s
		}
	}
	return ""
}

// aboutAnother reports that a fix names a value that this failure does not
// have: `npm install left-pad` is of no use where another module is missing.
func (l *lookup) aboutAnother(d Data) bool {
	for _, v := range sign.Quoted(d.Failure) {
		if len(v) >= 3 && strings.Contains(d.Fix.Text, v) && !strings.Contains(l.sig.Shown, v) {
			return true
		}
	}
	return false
}

func (l *lookup) result(d recall.Doc, score float64, snippet string) recall.Result {
	snippet = sign.Clip(snippet, 500)
	return recall.Result{Doc: d, Score: round3(score), Snippet: snippet, Tokens: mdfile.Tokens(snippet)}
}

// best are the best fixes, each kind of fix once: a pattern says it for its
// episodes.
func (l *lookup) best() []recall.Result {
	slices.SortStableFunc(l.fixes, func(a, b recall.Result) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Time.Compare(a.Time), cmp.Compare(a.ID, b.ID))
	})
	var out []recall.Result
	seen := map[string]bool{}
	for _, r := range l.fixes {
		data, _ := DataOf(r.Doc)
		key := r.ID
		if data.Fix != nil {
			key = data.Fix.Key
		}
		if r.Score < leastKnown || seen[key] || len(out) == mostFixes {
			continue
		}
		seen[key] = true
		out = append(out, r)
	}
	return out
}
