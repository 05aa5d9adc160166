package improve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/learn"
	"reprise/internal/recall"
)

// AnswerOptions say when memory answers a question in the user's place.
type AnswerOptions struct {
	TTL time.Duration // an answer counts for so long after it was given last
	// Threshold is the confidence from which on memory answers by itself.
	Threshold float64
	Now       func() time.Time
}

// Remembered is what the user said to a question before.
type Remembered struct {
	learn.Asked
	ID         string  `json:"id"`
	Exact      bool    `json:"exact"`      // the very same question, with the same options
	Confidence float64 `json:"confidence"` // that the user would say the same now
	// Auto says that memory may answer; Why says what keeps it from that.
	Auto bool   `json:"auto"`
	Why  string `json:"why,omitempty"`
}

// Remember looks up a question among those that the user has answered: in the
// same project or place, or outside any, for who asks. ok is false where there is none
// that is young enough.
func Remember(ctx context.Context, x *recall.Index, o AnswerOptions, who recall.Reader, question string, options []string) (r Remembered, ok bool, err error) {
	now := o.Now()
	key := learn.QuestionKey(question, options)
	a, err := x.Recall(ctx, recall.Question{
		Text: question, Keys: []string{key}, Reader: who, Classes: []recall.Class{recall.ClassAnswer}, Max: 8,
	})
	if errors.Is(err, recall.ErrNotBuilt) {
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("look up what was answered: %w", err)
	}
	for _, d := range a.Results {
		asked, is := learn.AskedOf(d.Doc)
		if !is || d.Project != who.Project && !slices.Contains(who.Places, d.Project) || d.Status != recall.Active || now.Sub(asked.Last) > o.TTL {
			continue
		}
		next := Remembered{Asked: asked, ID: d.ID, Exact: slices.Contains(d.Keys, key)}
		next.judge(d.Doc, o, who, now, question, options)
		if !ok || next.Exact && !r.Exact || next.Exact == r.Exact && next.Confidence > r.Confidence {
			r, ok = next, true
		}
	}
	return r, ok, nil
}

// Judge is what becomes of the very question of an answer when it is asked in a
// new session.
func Judge(d recall.Doc, a learn.Asked, o AnswerOptions) Remembered {
	r := Remembered{Asked: a, ID: d.ID, Exact: true}
	r.judge(d, o, recall.Reader{Session: "\x00"}, o.Now(), a.Question, a.Options)
	return r
}

func (r *Remembered) judge(d recall.Doc, o AnswerOptions, who recall.Reader, now time.Time, question string, options []string) {
	age := max(now.Sub(r.Last), 0)
	r.Confidence = d.Confidence
	if o.TTL > 0 {
		r.Confidence -= 0.15 * float64(age) / float64(o.TTL)
	}
	if !r.Exact {
		r.Confidence *= 0.7
	}
	r.Confidence = round(max(r.Confidence, 0))
	switch {
	case !r.Exact:
		r.Why = "the question is only similar"
	case r.Before != "":
		r.Why = "the user has answered differently before"
	case len(options) > 0 && !answersOneOf(r.Answer, options):
		r.Why = "the answer is none of the options"
	case slices.Contains(r.Sessions, who.Session):
		r.Why = "it was answered in this session already, so it is asked again on purpose"
	case Consent(question, options, r.Answer):
		r.Why = "it asks for consent, which is given for one time"
	case r.Confidence < o.Threshold:
		r.Why = fmt.Sprintf("the confidence of %.2f is below %.2f", r.Confidence, o.Threshold)
	default:
		r.Auto = true
	}
}

// answersOneOf reports that an answer is made of options: one, or several joined
// by commas.
func answersOneOf(answer string, options []string) bool {
	has := func(s string) bool {
		return slices.ContainsFunc(options, func(o string) bool { return strings.EqualFold(strings.TrimSpace(o), strings.TrimSpace(s)) })
	}
	if has(answer) {
		return true
	}
	for part := range strings.SplitSeq(answer, ",") {
		if !has(part) {
			return false
		}
	}
	return true
}

// Consent reports that a question asks for leave to do something, now: what was
// answered once says nothing about the next time.
func Consent(question string, options []string, answer string) bool {
	q := " " + strings.ToLower(strings.Join(strings.FieldsFunc(question, func(r rune) bool { return r <= ' ' || strings.ContainsRune(",.;:?!()\"'`", r) }), " ")) + " "
	for _, w := range []string{
		"may i", "can i", "shall i", "should i proceed", "should i continue", "should i go ahead", "ok to", "okay to", "safe to", "proceed", "go ahead", "continue", "confirm", "approve", "permission", "are you sure",
		"delete", "remove", "drop", "destroy", "overwrite", "discard", "reset", "revert", "force", "push", "publish", "release", "deploy", "production", "merge", "send", "pay", "purchase", "buy", "install", "sudo",
	} {
		if strings.Contains(q, " "+w+" ") {
			return true
		}
	}
	for _, w := range []string{"してよい", "していい", "してもよろしい", "よろしいですか", "続けますか", "続行", "実行しますか", "削除", "消去", "破棄", "上書き", "本番", "公開しますか", "承認", "許可", "確認してください", "プッシュ", "デプロイ", "マージ"} {
		if strings.Contains(question, w) {
			return true
		}
	}
	for _, s := range append(slices.Clone(options), answer) {
		switch strings.ToLower(strings.Trim(strings.TrimSpace(s), ".!。！")) {
		case "yes", "no", "y", "n", "ok", "okay", "proceed", "cancel", "abort", "continue", "stop", "approve", "deny", "allow", "reject", "go ahead", "はい", "いいえ", "続行", "中止", "許可", "拒否", "キャンセル":
			return true
		}
		if low := strings.ToLower(strings.TrimSpace(s)); strings.HasPrefix(low, "yes,") || strings.HasPrefix(low, "no,") || strings.HasPrefix(low, "はい、") {
			return true
		}
	}
	return false
}
