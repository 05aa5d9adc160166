package recall

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/fact"
)

var rankDay = time.Date(2024, 5, 1, 9, 0, 0, 0, time.UTC)

// memory is an index of these documents, all of one project unless they say
// otherwise.
func memoryOf(t *testing.T, docs ...Doc) *Index {
	t.Helper()
	x := Open(Options{MemoryDir: t.TempDir(), Now: func() time.Time { return rankDay.AddDate(1, 0, 0) }})
	t.Cleanup(func() { x.Close() })
	err := x.Update(t.Context(), func(tx *Tx) error {
		for i, d := range docs {
			if d.ID == "" {
				d.ID = fmt.Sprint("d", i)
			}
			if d.Scope == "" {
				d.Scope, d.Project = scopeProject, "p"
			}
			if d.Class == "" {
				d.Class = ClassLearning
			}
			if d.Time.IsZero() {
				d.Time = rankDay
			}
			if err := tx.Put(d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func recallFrom(t *testing.T, x *Index, q Question) Answer {
	t.Helper()
	if q.Project == "" {
		q.Project = "p"
	}
	a, err := x.Recall(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func answerIDs(a Answer) string {
	var ids []string
	for _, r := range a.Results {
		ids = append(ids, r.ID)
	}
	return strings.Join(ids, " ")
}

// filler are documents about other things, so that words have a rarity.
func filler(n int) []Doc {
	topics := strings.Fields("weather garden kitchen holiday tractor concert library bicycle mountain harbour")
	var out []Doc
	for i := range n {
		out = append(out, Doc{ID: fmt.Sprintf("f%02d", i), Text: fmt.Sprintf("Notes about the %s and the %s, number %d.", topics[i%10], topics[(i*7+3)%10], i)})
	}
	return out
}

func loose() *Policy {
	p := DefaultPolicy()
	p.Threshold = 0
	return &p
}

func TestRankFinds(t *testing.T) {
	docs := append(filler(30),
		Doc{ID: "port", Title: "Database", Text: "The development Postgres listens on port 5544."},
		Doc{ID: "gust", Text: "KeyError in normaliseRecord: old loggers send windGust."},
		Doc{ID: "ja", Text: "開発用のサーバーのポートは9200に変更した。"},
		Doc{ID: "kana", Text: "ﾌﾟﾘﾝﾀの設定はトナーの交換後に行う。"},
		Doc{ID: "went", Author: "Ana", Text: "I bought two mice for the children."},
		Doc{ID: "heard", Author: "Ben", Text: "Ana, did you see the film about mice?"},
	)
	x := memoryOf(t, docs...)
	for q, want := range map[string]string{
		"which port does the database listen on":  "port",
		"wind_gust":                               "gust",
		"normalise_record KeyError":               "gust",
		"サーバのポート番号は？":                             "ja",
		"プリンターの設定":                                "kana",
		"What did Ana purchase for her child?":    "went",
		"Who bought a mouse?":                     "went",
		"WHICH PORT DOES THE DATABASE LISTEN ON?": "port",
	} {
		if got, _, _ := strings.Cut(answerIDs(recallFrom(t, x, Question{Text: q, Policy: loose()})), " "); got != want {
			t.Errorf("%q: %q comes first, want %q", q, got, want)
		}
	}
}

// TestNothing: a near miss is left out.
func TestNothing(t *testing.T) {
	x := memoryOf(t, append(filler(30), Doc{ID: "port", Text: "The development Postgres listens on port 5544."})...)
	if got := answerIDs(recallFrom(t, x, Question{Text: "Which port does Postgres listen on in development?"})); got != "port" {
		t.Fatalf("what is there is not served: %q", got)
	}
	for _, q := range []string{
		"", "?!", "the of and", "How do I brew espresso on Mars?", "Kafka consumer rebalancing", "What is the salary of the interns?",
		"社員食堂のメニューは何ですか", "Explain monads in Haskell and translate the examples to Scala, then compare number systems.",
	} {
		if a := recallFrom(t, x, Question{Text: q, Explain: true}); len(a.Results) > 0 {
			t.Errorf("%q is answered by %q (%v)", q, a.Results[0].Text, a.Results[0].Signals)
		}
	}
}

// TestNamesOfAgents: an agent that is called like what is asked for is not asked for itself,
// and what others know of that is served. Who is asked for by name is meant.
func TestNamesOfAgents(t *testing.T) {
	docs := append(filler(30),
		Doc{ID: "db", Author: "user", Class: ClassLearning, Text: "The integration tests need the database: make db"},
		Doc{ID: "login", Author: "bob", Class: ClassLearning, Text: "The customer login keeps its cookie for nine hours."})
	for _, agent := range []string{"", "loop-tests", "loop-integration", "tests", "docs", "loop-login", "login", "ci:tests"} {
		x := memoryOf(t, append(docs, Doc{ID: "other", Author: agent, Class: ClassEpisode, Text: "Nothing of interest came of the parser."})...)
		for q, want := range map[string]string{
			"integration tests": "db", "do the integration tests need the database": "db", "run the integration tests": "db",
			"Tests need the database?": "db", "customer login": "login", "how long does the login cookie live": "login",
			"what did bob say of the login": "login", "What did Bob say of the cookie?": "login",
		} {
			if got, _, _ := strings.Cut(answerIDs(recallFrom(t, x, Question{Text: q})), " "); got != want {
				t.Errorf("agent %q: %q: %q comes first, want %q", agent, q, got, want)
			}
		}
		if strings.HasPrefix(agent, "loop-") {
			q := "what did " + agent + " find of interest"
			if got, _, _ := strings.Cut(answerIDs(recallFrom(t, x, Question{Text: q, Policy: loose()})), " "); got != "other" {
				t.Errorf("%q: %q comes first", q, got)
			}
		}
	}
}

// TestNeighbours: what answers a question often has none of its words.
func TestNeighbours(t *testing.T) {
	turn := func(session string, n int, who, text string) Doc {
		return Doc{ID: fmt.Sprint(session, n), Group: session, Ord: n, Author: who, Text: text, Class: ClassEpisode}
	}
	x := memoryOf(t, append(filler(30),
		turn("s", 1, "Ana", "Morning! Lovely to hear from you."), turn("s", 2, "Ben", "When is your recital on the harpsichord?"),
		turn("s", 3, "Ana", "Second of June, in the town hall."), turn("s", 4, "Ben", "I will be there."),
		turn("t", 1, "Ana", "The bus was late."), turn("t", 2, "Ben", "As always."))...)
	got := strings.Fields(answerIDs(recallFrom(t, x, Question{Text: "When does Ana give her harpsichord recital?", Policy: loose()})))
	if len(got) < 2 || got[0] != "s3" {
		t.Errorf("got %v, want the answer before the question", got)
	}
}

func TestDates(t *testing.T) {
	var docs []Doc
	for m := range 12 {
		docs = append(docs, Doc{ID: fmt.Sprintf("m%02d", m+1), Text: "We talked about the forecast model and decided to wait.", Time: time.Date(2024, time.Month(m+1), 10, 0, 0, 0, 0, time.UTC), Group: fmt.Sprint("g", m), Ord: 1})
	}
	x := memoryOf(t, docs...)
	p := loose()
	p.Diversity = 1
	for q, want := range map[string]string{
		"What did we decide about the model in April 2024?": "m04", "what was decided about the model on 10 September": "m09",
		"2024-11: which decision on the model?": "m11", "3月のモデルの決定 model": "m03",
	} {
		if got, _, _ := strings.Cut(answerIDs(recallFrom(t, x, Question{Text: q, Policy: p})), " "); got != want {
			t.Errorf("%q: got %s, want %s", q, got, want)
		}
	}
}

// TestConflicts: two things that contradict each other are never both served.
func TestConflicts(t *testing.T) {
	port := func(v string) []fact.Fact {
		return []fact.Fact{{Subject: "dev databas", Attribute: "port", Value: v}}
	}
	for name, c := range map[string]struct {
		a, b Doc
		win  string
	}{
		"the newer":              {Doc{Time: rankDay}, Doc{Time: rankDay.AddDate(0, 1, 0)}, "b"},
		"the narrower scope":     {Doc{Scope: scopeProject, Project: "p", Time: rankDay}, Doc{Scope: scopeGlobal, Time: rankDay.AddDate(0, 1, 0)}, "a"},
		"what the user said":     {Doc{Author: "user", Time: rankDay}, Doc{Time: rankDay.AddDate(0, 1, 0)}, "a"},
		"the surer of one time":  {Doc{Confidence: .9}, Doc{Confidence: .3}, "a"},
		"the same value, no win": {Doc{}, Doc{Facts: port("5433")}, ""},
	} {
		a, b := c.a, c.b
		a.ID, a.Text, a.Facts = "a", "The dev database listens on port 5433.", port("5433")
		b.ID, b.Text = "b", "Port 5544 is where the dev database listens since the move."
		if b.Facts == nil {
			b.Facts = port("5544")
		}
		x := memoryOf(t, append(filler(30), a, b)...)
		got := recallFrom(t, x, Question{Text: "Which port does the dev database listen on?", Policy: loose(), Explain: true, Max: 2})
		ids := strings.Fields(answerIDs(got))
		if c.win == "" {
			if !slices.Contains(ids, "a") || !slices.Contains(ids, "b") {
				t.Errorf("%s: got %v", name, ids)
			}
			continue
		}
		lose := map[string]string{"a": "b", "b": "a"}[c.win]
		if len(ids) == 0 || ids[0] != c.win || slices.Contains(ids, lose) || got.Dropped[lose] != dropConflict || !slices.Equal(got.Results[0].Conflicts, []string{lose}) {
			t.Errorf("%s: got %v, dropped %v", name, ids, got.Dropped)
		}
	}
}

// TestOtherProjectsSayNothing: what a project's block states takes nothing out of
// another project's.
func TestOtherProjectsSayNothing(t *testing.T) {
	manager := func(v string) []fact.Fact {
		return []fact.Fact{{Subject: "we", Attribute: "package manager", Value: v}}
	}
	for _, c := range []struct {
		a, b Doc
		both bool
	}{
		{Doc{Scope: scopeGlobal, Source: "blocks/project-shop.md:3"}, Doc{Scope: scopeGlobal, Source: "blocks/project-blog.md:3"}, true},
		{Doc{Scope: scopeGlobal, Source: "blocks/project-shop.md:3"}, Doc{Scope: scopeGlobal, Source: "blocks/project-shop.md:9"}, false},
		{Doc{Scope: scopeGlobal, Source: "blocks/project-shop.md:3"}, Doc{Scope: scopeGlobal, Source: "blocks/reference-npm.md:3"}, false},
		{Doc{Scope: scopeGlobal, Source: "blocks/project-blog.md:3"}, Doc{Source: "p:learnings.md:3", Scope: scopeProject, Project: "p"}, true},
		{Doc{Scope: scopeGlobal, Source: "blocks/project-p.md:3"}, Doc{Source: "p:learnings.md:3", Scope: scopeProject, Project: "p"}, false},
	} {
		a, b := c.a, c.b
		a.ID, a.Text, a.Facts = "a", "The zebra client is installed by npm.", manager("npm")
		b.ID, b.Text, b.Facts = "b", "Zebra packages come through pnpm for the client.", manager("pnpm")
		x := memoryOf(t, append(filler(30), a, b)...)
		ans := recallFrom(t, x, Question{Text: "zebra client", Policy: loose(), Explain: true, Reader: Reader{Project: "p"}})
		ids := strings.Fields(answerIDs(ans))
		if got := slices.Contains(ids, "a") && slices.Contains(ids, "b"); got != c.both || len(ids) == 0 {
			t.Errorf("%s and %s: served %v, dropped %v", a.Source, b.Source, ids, ans.Dropped)
		}
	}
}

// TestConflictNotFound: the winner is served though only the loser's words
// match the question.
func TestConflictNotFound(t *testing.T) {
	f := func(v string) []fact.Fact {
		return []fact.Fact{{Subject: "packag manag", Attribute: "is", Value: v}}
	}
	x := memoryOf(t, append(filler(30),
		Doc{ID: "old", Text: "The package manager of the web client is pnpm.", Facts: f("pnpm")},
		Doc{ID: "new", Text: "Moved over to Bun.", Facts: f("Bun"), Time: rankDay.AddDate(0, 2, 0)})...)
	got := recallFrom(t, x, Question{Text: "What is the package manager of the web client?"})
	if len(got.Results) == 0 || got.Results[0].ID != "new" || strings.Contains(answerIDs(got), "old") || !slices.Equal(got.Results[0].Conflicts, []string{"old"}) {
		t.Errorf("got %q", answerIDs(got))
	}
}

func TestDuplicatesAndExcluded(t *testing.T) {
	x := memoryOf(t, append(filler(30),
		Doc{ID: "a", Text: "Run make migrate before the zebra tests."}, Doc{ID: "b", Text: "run `make migrate` before the Zebra tests!", Time: rankDay.AddDate(0, 0, 1)},
		Doc{ID: "c", Text: "Zebra tests need two cores."})...)
	got := recallFrom(t, x, Question{Text: "zebra tests migrate", Explain: true, Policy: loose()})
	if ids := answerIDs(got); strings.Contains(ids, "a") == strings.Contains(ids, "b") || !strings.Contains(ids, "c") {
		t.Errorf("got %q", ids)
	}
	got = recallFrom(t, x, Question{Text: "zebra tests migrate", Explain: true, Policy: loose(), Exclude: []string{"a", "b"}})
	if ids := answerIDs(got); ids != "c" || got.Dropped["a"] != dropExcluded {
		t.Errorf("got %q, dropped %v", ids, got.Dropped)
	}
}

// TestBudgets: no answer costs more than it may, in all and by class, and what
// is cut is cut to the part that fits.
func TestBudgets(t *testing.T) {
	var docs []Doc
	for i := range 20 {
		docs = append(docs, Doc{ID: fmt.Sprintf("%02d", i), Class: []Class{ClassLearning, ClassDecision}[i%2],
			Text: strings.Repeat(fmt.Sprintf("Line %d of much else. ", i), 30) + fmt.Sprintf("The giraffe number %d eats leaves of tree %d. ", i, i*3) + strings.Repeat("And more. ", 40)})
	}
	x := memoryOf(t, docs...)
	for _, most := range []int{1, 30, 60, 200, 500, 2000} {
		a := recallFrom(t, x, Question{Text: "what does the giraffe eat", MaxTokens: most, Policy: loose()})
		sum, class := 0, map[Class]int{}
		for _, r := range a.Results {
			sum += r.Tokens
			class[r.Class] += r.Tokens
			if !strings.Contains(r.Snippet, "giraffe") {
				t.Errorf("%d tokens: the snippet misses the point: %q", most, r.Snippet)
			}
		}
		if sum != a.Tokens || sum > most {
			t.Errorf("%d tokens: %d in all, %d said", most, sum, a.Tokens)
		}
		for c, n := range class {
			if n > DefaultPolicy().Budget[c] {
				t.Errorf("%d tokens of class %s", n, c)
			}
		}
		if most >= 200 && len(a.Results) == 0 {
			t.Errorf("%d tokens: nothing", most)
		}
	}
	if a := recallFrom(t, x, Question{Text: "giraffe", Max: 3, Policy: loose()}); len(a.Results) != 3 {
		t.Errorf("%d results, 3 were asked for", len(a.Results))
	}
}

// TestDeterministic: the order in which documents came changes nothing.
func TestDeterministic(t *testing.T) {
	var docs []Doc
	r := rand.New(rand.NewPCG(1, 2))
	vocabulary := strings.Fields("okapi zebra lion gnu emu tapir ibex lynx puma mole vole newt")
	for i := range 120 {
		var ws []string
		for range 6 {
			ws = append(ws, vocabulary[r.IntN(len(vocabulary))])
		}
		docs = append(docs, Doc{ID: fmt.Sprintf("x%03d", i), Text: strings.Join(ws, " "), Group: fmt.Sprint("g", i/10), Ord: i % 10, Author: []string{"Ana", "Ben"}[i%2]})
	}
	var want Answer
	for round := range 4 {
		x := memoryOf(t, docs...)
		got := recallFrom(t, x, Question{Text: "Did Ana see the okapi or the newt with the lynx?", Policy: loose(), Explain: true, Max: 40})
		if round == 0 {
			want = got
			if len(want.Results) < 20 {
				t.Fatalf("only %d results", len(want.Results))
			}
		} else if !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: %s, before %s", round, answerIDs(got), answerIDs(want))
		}
		r.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
	}
}

// TestWeights: each weight has a name of its own and a standard value, and a
// policy's values are taken, wild ones within bounds.
func TestWeights(t *testing.T) {
	names := WeightNames()
	if len(slices.Compact(slices.Clone(names))) != int(numWeights) || slices.Contains(names, "") {
		t.Errorf("names %q", names)
	}
	for _, n := range names {
		v, ok := StandardWeight(n)
		if w := weightsOf(Policy{Weights: map[string]float64{n: v + 1, "unheard of": 3}}); !ok || !slices.Contains(w[:], v+1) {
			t.Errorf("%s is not taken from a policy", n)
		}
	}
	if _, ok := StandardWeight("unheard of"); ok {
		t.Error("a weight that there is not has a value")
	}
	w := weightsOf(Policy{Weights: map[string]float64{"session": 1e300}})
	if w[weightSession] > 10 {
		t.Error("a wild weight is taken as it is")
	}
}

// TestKeys: what has the key of a question is an answer, whatever its words.
func TestKeys(t *testing.T) {
	x := memoryOf(t, append(filler(30), Doc{ID: "fix", Text: "Start the daemon first.", Keys: []string{"sig:1"}})...)
	if got := answerIDs(recallFrom(t, x, Question{Text: "connection refused", Keys: []string{"sig:1"}})); got != "fix" {
		t.Errorf("got %q", got)
	}
}
