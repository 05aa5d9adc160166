package judge

import (
	"context"
	"errors"
	"strings"
	"testing"

	"reprise/internal/learn"
	"reprise/internal/run"
)

func TestSummaries(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Settings.Model = "small" })
	in := learn.SummaryInput{Session: "s1", Project: "shop", Extract: "Task: mend the cart\nEdited: cart.go", Episodes: []string{"npm test failed"}}
	for _, c := range []struct {
		answer, want string
		err          error
	}{
		{`{"summary":"They mended\n the cart for a\\u0040b.example."}`, "They mended the cart for a@b.example.", nil},
		{`{"summary":"` + strings.Repeat("x", 1501) + `"}`, "", ErrAnswer},
		{`{"summary":" \n "}`, "", ErrAnswer}, {`{"summary":""}`, "", ErrAnswer}, {`{}`, "", ErrAnswer},
	} {
		b.runs.say = func(run.Request) (run.Record, error) { return said(c.answer, 0), nil }
		in.Extract += "." // another question
		if _, err := b.Reset(context.Background(), Reset{}); err != nil {
			t.Fatal(err)
		}
		text, by, err := Summaries{b.Judge}.Summarize(context.Background(), in)
		if !errors.Is(err, c.err) || text != c.want || err == nil && by != "script small" {
			t.Errorf("%.60s: %q by %q, %v", c.answer, text, by, err)
		}
	}
	if task := b.sent().Task; !strings.Contains(task, "Edited: cart.go") || !strings.Contains(task, "- npm test failed") {
		t.Errorf("sent %q", task)
	}
	b.opt.Settings.Purposes = []string{Guard}
	if _, _, err := (Summaries{b.Judge}).Summarize(context.Background(), in); !errors.Is(err, ErrOff) {
		t.Error(err)
	}
}
