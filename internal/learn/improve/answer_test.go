package improve_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn/improve"
	"reprise/internal/recall"
)

func (h *history) answered(session, question, answer string, options ...string) {
	h.t.Helper()
	h.add(event.Event{Type: event.QuestionAnswered, Scope: event.ScopeSession, Project: "shop", Session: session, Client: "claude"},
		event.QuestionData{Question: question, Options: options, Answer: answer, By: "user", UseID: "u" + session})
}

func TestRemember(t *testing.T) {
	t.Parallel()
	dbs := []string{"Postgres", "SQLite"}
	for name, c := range map[string]struct {
		say      func(h *history)
		ask      string
		options  []string
		who      recall.Reader
		later    time.Duration
		ok, auto bool
		why      string
	}{
		"the same question":        {say: func(h *history) { h.answered("a", "Which database?", "SQLite", dbs...) }, ask: "which database", options: dbs, ok: true, auto: true},
		"options in another order": {say: func(h *history) { h.answered("a", "Which database?", "SQLite", dbs...) }, ask: "Which database?", options: []string{"SQLite", "Postgres"}, ok: true, auto: true},
		"other options":            {say: func(h *history) { h.answered("a", "Which database?", "SQLite", dbs...) }, ask: "Which database?", options: []string{"SQLite", "MySQL"}, ok: true, why: "only similar"},
		"another question":         {say: func(h *history) { h.answered("a", "Which database?", "SQLite", dbs...) }, ask: "What colour has the header?", options: []string{"red", "blue"}},
		"another project":          {say: func(h *history) { h.answered("a", "Which database?", "SQLite", dbs...) }, ask: "Which database?", options: dbs, who: recall.Reader{Project: "site", Session: "z"}},
		"the same session":         {say: func(h *history) { h.answered("z", "Which database?", "SQLite", dbs...) }, ask: "Which database?", options: dbs, ok: true, why: "on purpose"},
		"too old":                  {say: func(h *history) { h.answered("a", "Which database?", "SQLite", dbs...) }, ask: "Which database?", options: dbs, later: 31 * 24 * time.Hour},
		"once, and some weeks ago": {say: func(h *history) { h.answered("a", "Which database?", "SQLite", dbs...) }, ask: "Which database?", options: dbs, later: 28 * 24 * time.Hour, ok: true, why: "confidence"},
		"twice, and some weeks ago": {say: func(h *history) {
			h.answered("a", "Which database?", "SQLite", dbs...)
			h.answered("b", "Which database?", "SQLite", dbs...)
		}, ask: "Which database?", options: dbs, later: 28 * 24 * time.Hour, ok: true, auto: true},
		"another answer before": {say: func(h *history) {
			h.answered("a", "Which database?", "Postgres", dbs...)
			h.answered("b", "Which database?", "SQLite", dbs...)
		}, ask: "Which database?", options: dbs, ok: true, why: "differently"},
		"an answer of their own": {say: func(h *history) { h.answered("a", "Which database?", "Neither, use files", dbs...) }, ask: "Which database?", options: dbs, ok: true, why: "none of the options"},
		"several":                {say: func(h *history) { h.answered("a", "Which checks?", "lint, test", "lint", "test", "fuzz") }, ask: "Which checks?", options: []string{"lint", "test", "fuzz"}, ok: true, auto: true},
		"yes or no":              {say: func(h *history) { h.answered("a", "Is the schema ready?", "Yes", "Yes", "No") }, ask: "Is the schema ready?", options: []string{"Yes", "No"}, ok: true, why: "consent"},
		"leave to delete":        {say: func(h *history) { h.answered("a", "Which branches should I delete?", "all", "all", "none") }, ask: "Which branches should I delete?", options: []string{"all", "none"}, ok: true, why: "consent"},
		"Japanese":               {say: func(h *history) { h.answered("a", "どのデータベースを使いますか？", "SQLite", dbs...) }, ask: "どのデータベースを使いますか", options: dbs, ok: true, auto: true},
		"leave in Japanese": {say: func(h *history) {
			h.answered("a", "古いファイルを削除してもよろしいですか？", "全部", "全部", "一部")
		}, ask: "古いファイルを削除してもよろしいですか？", options: []string{"全部", "一部"}, ok: true, why: "consent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			c.say(h)
			h.fold()
			h.now = h.now.Add(c.later)
			if c.who.Session == "" {
				c.who = recall.Reader{Project: "shop", Session: "z", Client: "claude"}
			}
			o := improve.AnswerOptions{TTL: 30 * 24 * time.Hour, Threshold: 0.75, Now: func() time.Time { return h.now }}
			r, ok, err := improve.Remember(context.Background(), h.index, o, c.who, c.ask, c.options)
			if err != nil || ok != c.ok || r.Auto != c.auto || !strings.Contains(r.Why, c.why) {
				t.Errorf("%v %+v, %v", ok, r, err)
			}
		})
	}
}
