package recall

import (
	"fmt"
	"testing"
	"time"
)

// A list without a question has what the reader may see, the newest first, within what was
// asked for, and says when others follow.
func TestLatest(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	x := Open(Options{MemoryDir: t.TempDir(), Now: func() time.Time { return now }})
	defer x.Close()
	ago := func(n int) time.Time { return now.Add(-time.Duration(n) * time.Second) }
	put(t, x,
		Doc{ID: "e3", Class: ClassEpisode, Project: "shop", Text: "the third last", Time: ago(3)},
		Doc{ID: "e1", Class: ClassEpisode, Project: "shop", Text: "the last", Time: ago(1)},
		Doc{ID: "e2", Class: ClassEpisode, Project: "shop", Text: "the last", Time: ago(2)}, // says the same: it is another one
		Doc{ID: "s4", Class: ClassSummary, Project: "shop", Text: "a session", Time: ago(4)},
		Doc{ID: "g5", Class: ClassDecision, Text: "a decision for all", Time: ago(5)},
		Doc{ID: "other", Class: ClassEpisode, Project: "till", Text: "of another project", Time: ago(0)},
		Doc{ID: "nina", Class: ClassLearning, Project: "shop", Text: "for nina alone", Time: ago(0), ACL: []string{"agent:nina"}},
		Doc{ID: "was", Class: ClassLearning, Project: "shop", Text: "was so once", Time: ago(0), Status: Superseded, Until: ago(0)},
	)
	shop := Reader{Project: "shop"}
	for _, c := range []struct {
		name string
		q    Question
		want string
		more bool
	}{
		{"all", Question{Reader: shop}, "[e1 e2 e3 s4 g5]", false},
		{"a class", Question{Reader: shop, Classes: []Class{ClassSummary, ClassDecision}}, "[s4 g5]", false},
		{"as many as there are", Question{Reader: shop, Max: 5}, "[e1 e2 e3 s4 g5]", false},
		{"so many", Question{Reader: shop, Max: 2}, "[e1 e2]", true},
		{"so many tokens", Question{Reader: shop, MaxTokens: 2*overhead + 4}, "[e1 e2]", true},
		{"nothing", Question{Reader: shop, Classes: []Class{ClassPattern}}, "[]", false},
		{"as of before", Question{Reader: shop, AsOf: ago(3)}, "[e3 s4 g5]", false},
		{"an agent's own", Question{Reader: Reader{Project: "shop", Agent: "nina"}, Max: 2}, "[nina e1]", true},
		{"everything", Question{Reader: Reader{All: true}}, "[nina other e1 e2 e3 s4 g5]", false},
	} {
		a, more, err := x.Latest(t.Context(), c.q)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		ids := []string{}
		tokens := 0
		for _, r := range a.Results {
			ids = append(ids, r.ID)
			tokens += r.Tokens
		}
		if fmt.Sprint(ids) != c.want || more != c.more || tokens != a.Tokens || c.q.MaxTokens > 0 && tokens > c.q.MaxTokens {
			t.Errorf("%s: got %v, more %t, %d tokens of %d in all; want %s, more %t", c.name, ids, more, a.Tokens, c.q.MaxTokens, c.want, c.more)
		}
	}
}

// What was promoted is listed once: the copy that all projects are told, and not the project's
// own words again. Two of one scope are two, and so is what happened twice.
func TestLatestTellsPromotedOnce(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	x := Open(Options{MemoryDir: t.TempDir(), Now: func() time.Time { return now }})
	defer x.Close()
	ago := func(n int) time.Time { return now.Add(-time.Duration(n) * time.Second) }
	put(t, x,
		Doc{ID: "up", Class: ClassDecision, Title: "Use UTC", Text: "times are UTC", Time: ago(1)},
		Doc{ID: "own", Class: ClassDecision, Project: "shop", Title: "Use UTC", Text: "times are UTC", Time: ago(2)},
		Doc{ID: "learnt", Class: ClassLearning, Project: "shop", Title: "Use UTC", Text: "times are UTC", Time: ago(3)},
		Doc{ID: "twice", Class: ClassLearning, Project: "shop", Title: "Use UTC", Text: "times are UTC", Time: ago(4)},
		Doc{ID: "till", Class: ClassLearning, Project: "till", Title: "Use UTC", Text: "times are UTC", Time: ago(5)},
		Doc{ID: "once", Class: ClassEpisode, Project: "shop", Text: "it failed", Time: ago(6)},
		Doc{ID: "again", Class: ClassEpisode, Text: "it failed", Time: ago(7)},
	)
	for reader, want := range map[*Reader]string{{Project: "shop"}: "[up learnt twice once again]", {All: true}: "[up learnt twice till once again]"} {
		a, more, err := x.Latest(t.Context(), Question{Reader: *reader})
		var ids []string
		for _, r := range a.Results {
			ids = append(ids, r.ID)
		}
		if err != nil || more || fmt.Sprint(ids) != want {
			t.Errorf("%+v: %v, more %t, %v; want %s", reader, ids, more, err, want)
		}
	}
}
