package judge

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/internal/agent"
	"reprise/internal/run"
)

func TestOff(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Settings.Client = "" })
	b.ask(question(), ErrOff)
	b = newBench(t, func(o *Options) { o.Settings.Purposes = []string{Review} })
	b.ask(question(), ErrOff)
	if b.Enabled(Guard) || !b.Enabled(Review) {
		t.Error("the settings name review and nothing else")
	}
	if _, err := os.Stat(b.opt.Dir); err == nil || b.runs.asked() != 0 {
		t.Error("something was written or asked")
	}
}

// Every way in which a question is none is said, and costs nothing.
func TestQuestionsThatAreNone(t *testing.T) {
	for name, change := range map[string]func(*Question){
		"purpose": func(q *Question) { q.Purpose = "fun" }, "empty": func(q *Question) { q.Prompt = " \n" },
		"long": func(q *Question) { q.Prompt = strings.Repeat("x", maxText) }, "no schema": func(q *Question) { q.Schema = nil },
		"not JSON": func(q *Question) { q.Schema = json.RawMessage("{") }, "no object": func(q *Question) { q.Schema = json.RawMessage(`{"type":"string"}`) },
		"long schema": func(q *Question) {
			q.Schema = json.RawMessage(`{"type":"object","description":"` + strings.Repeat("x", maxSchema) + `"}`)
		},
		"schema elsewhere": func(q *Question) {
			q.Schema = json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"https://a.example/s.json"}}}`)
		},
	} {
		b := newBench(t, nil)
		q := question()
		change(&q)
		if _, err := b.Ask(context.Background(), q); err == nil || b.runs.asked() != 0 || len(err.Error()) > 300 {
			t.Errorf("%s: %v, %d asked", name, err, b.runs.asked())
		}
	}
}

// What leaves the machine: no secret, no at sign, no NUL, never a slash at the
// start, nothing that lets a hook in it speak.
func TestWhatIsSent(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Environ = []string{"HOME=/h", "REPRISE_HOOK_DEPTH=1"} })
	q := question()
	token := "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
	q.Prompt, q.System = "/clear @/etc/passwd "+token+"\x00\xff", "By "+token
	b.ask(q, nil)
	r := b.sent()
	for _, text := range []string{r.Task, r.SystemPrompt} {
		if strings.Contains(text, token) || strings.ContainsAny(text, "@\x00") || !json.Valid([]byte(`"`+strings.NewReplacer("\n", "", `"`, "", `\`, "").Replace(text)+`"`)) {
			t.Errorf("sent %q", text)
		}
	}
	if !strings.Contains(r.Task, `/clear \u0040/etc/passwd`) || strings.HasPrefix(r.Task, "/") || !strings.Contains(r.SystemPrompt, okSchema) {
		t.Errorf("sent %q by %q", r.Task, r.SystemPrompt)
	}
	if r.Question == nil || r.Question.MaxTurns != maxTurns || r.Question.MaxBudgetUSD != 0.1 || r.Origin != Origin || r.Detach || r.Timeout != 30*time.Second {
		t.Errorf("asked by %+v, %+v", r, r.Question)
	}
	if d := value(r.Env, "REPRISE_HOOK_DEPTH"); d != "2" || value(r.Env, "HOME") != "/h" {
		t.Errorf("depth %q in %q", d, r.Env)
	}
}

// What came back is an answer only if it is the JSON that was asked for.
func TestAnswers(t *testing.T) {
	result := func(change func(*run.Record)) run.Record {
		r := said(`{"ok":true}`, 0.01)
		change(&r)
		return r
	}
	for _, c := range []struct {
		name   string
		client string
		r      run.Record
		want   error
	}{
		{"text", "", said(`{"ok": true}`, 0), nil},
		{"fenced", "", said("```json\n{\"ok\": true}\n```\n", 0), nil},
		{"words", "", said("It is well.", 0), ErrAnswer},
		{"words and JSON", "", said("Here:\n{\"ok\": true}", 0), ErrAnswer},
		{"two objects", "", said(`{"ok":true}{"ok":false}`, 0), ErrAnswer},
		{"another type", "", said(`{"ok":"yes"}`, 0), ErrAnswer},
		{"less", "", said(`{}`, 0), ErrAnswer}, {"null", "", said(`null`, 0), ErrAnswer}, {"list", "", said(`[true]`, 0), ErrAnswer}, {"nothing", "", said(``, 0), ErrAnswer},
		{"structured", agent.KindClaude, result(func(r *run.Record) { r.Result.Structured = json.RawMessage(`{"ok": true}`) }), nil},
		{"structured, wrong", agent.KindClaude, result(func(r *run.Record) { r.Result.Structured = json.RawMessage(`{"no":true}`) }), ErrAnswer},
		// Claude Code's exit is 0 and its result "success" when its model answered in
		// words twice; JSON among the words is luck, and not counted on.
		{"words by Claude", agent.KindClaude, said(`{"ok":true}`, 0.01), ErrAnswer},
		{"failed", "", result(func(r *run.Record) { r.Status, r.Result.OK, r.Result.Reason = run.Failed, false, "status 529" }), ErrFailed},
		{"not OK", "", result(func(r *run.Record) { r.Result.OK = false }), ErrFailed},
		{"killed", "", run.Record{Status: run.Killed, StatusReason: "killed"}, ErrFailed},
		{"timed out", "", run.Record{Status: run.TimedOut}, ErrTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil)
			b.runs.client = c.client
			b.runs.say = func(run.Request) (run.Record, error) { return c.r, nil }
			a := b.ask(question(), c.want)
			if c.want == nil && (string(a.JSON) != `{"ok":true}` || a.Run == "" || a.Cached) {
				t.Errorf("%+v", a)
			}
			if f := b.status().Failures; c.want != nil && (len(f) != 1 || f[0].Run == "" || f[0].Text == "") {
				t.Errorf("failures %+v", f)
			}
		})
	}
}

// Who runs inside something that a hook started, or inside a judge's run, asks
// nobody; by the run's id alone, too, should the counter have been lost.
func TestNested(t *testing.T) {
	b := newBench(t, nil)
	b.runs.records = map[string]run.Record{
		"run-aaaaaaaaaa": {ID: "run-aaaaaaaaaa", Origin: "mcp"},
		"run-bbbbbbbbbb": {ID: "run-bbbbbbbbbb", Origin: Origin},
		"run-cccccccccc": {ID: "run-cccccccccc", Origin: "cli", DelegationPath: []string{"run-aaaaaaaaaa", "run-bbbbbbbbbb"}},
	}
	for _, c := range []struct {
		depth, run string
		want       error
	}{
		{"", "", nil}, {"0", "", nil}, {"1", "", ErrNested}, {"7", "", ErrNested}, {"x", "", ErrNested},
		{"", "run-aaaaaaaaaa", nil}, {"", "run-bbbbbbbbbb", ErrNested}, {"", "run-cccccccccc", ErrNested},
		{"", "run-dddddddddd", ErrNested}, {"0", "run-bbbbbbbbbb", ErrNested},
	} {
		b.env = map[string]string{"REPRISE_HOOK_DEPTH": c.depth, "REPRISE_RUN_ID": c.run}
		b.ask(question(), c.want)
	}
	if n := b.runs.asked(); n != 3 {
		t.Errorf("%d asked", n)
	}
}

func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(o *Options) { o.Now = time.Now })
		b.runs.say = func(run.Request) (run.Record, error) { return run.Record{}, errHangs }
		// The settings' time, the question's, and the asker's.
		for _, c := range []struct{ q, ctx, want time.Duration }{
			{0, 0, 30 * time.Second}, {time.Second, 0, time.Second}, {time.Hour, 0, 30 * time.Second}, {0, 3 * time.Second, 3*time.Second - deadlineSlack},
			{0, 200 * time.Millisecond, 0},
		} {
			if _, err := b.Reset(context.Background(), Reset{Budget: true}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			if c.ctx > 0 {
				ctx, cancel = context.WithTimeout(context.Background(), c.ctx)
			}
			q := question()
			q.Timeout = c.q
			began, asked := time.Now(), b.runs.asked()
			_, err := b.Ask(ctx, q)
			cancel()
			if took := time.Since(began); !errors.Is(err, ErrTimeout) || took != c.want || b.runs.asked() == asked != (c.want == 0) {
				t.Errorf("%+v: %v after %v", c, err, took)
			}
		}
		// Given up by who asked: its run is stopped, and it is nobody's failure.
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		if _, err := b.Reset(context.Background(), Reset{}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Ask(ctx, question()); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if id := <-b.runs.canceled; id == "" {
			t.Error("its run was not stopped")
		}
		if s := b.status(); len(s.Failures) != 0 || s.Circuits[0].Failures != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestCircuit(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Settings.BudgetUSDPerDay = 1000 })
	up := true
	b.runs.say = func(run.Request) (run.Record, error) {
		if up {
			return said(`{"ok":true}`, 0), nil
		}
		return run.Record{Status: run.Failed, StatusReason: "down"}, nil
	}
	state := func(want string) {
		t.Helper()
		if c := b.status().Circuits; len(c) == 0 || c[0].Name != "script" || c[0].State != want {
			t.Fatalf("circuits %+v, want %s", c, want)
		}
	}
	// Failures count in a row only.
	for range 3 {
		up = false
		b.ask(question(), ErrFailed)
		b.ask(question(), ErrFailed)
		up = true
		b.ask(question(), nil)
	}
	state("closed")
	up = false
	for range openAfter {
		b.ask(question(), ErrFailed)
	}
	state("open")
	// It stays open for a time that doubles with each trial that fails.
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		asked := b.runs.asked()
		b.pass(wait - time.Second)
		b.ask(question(), ErrOpen)
		if b.runs.asked() != asked {
			t.Fatal("somebody was asked")
		}
		b.pass(time.Second)
		state("half-open")
		b.ask(question(), ErrFailed)
		state("open")
		if wait == mostWait {
			break
		}
	}
	// Another model is another circuit.
	b.opt.Settings.Model = "other"
	b.ask(question(), ErrFailed)
	b.opt.Settings.Model = ""
	// A clock that is set back does not keep it open for longer than ever.
	b.pass(-40 * 24 * time.Hour)
	b.ask(question(), ErrOpen)
	b.pass(mostWait - time.Second)
	b.ask(question(), ErrOpen)
	b.pass(time.Second)
	up = true
	b.ask(question(), nil)
	state("closed")
}

// Only one trial is made at a time, and one whose maker died is made again.
func TestTrial(t *testing.T) {
	b := newBench(t, nil)
	now := b.at
	c := &circuit{Failures: 3, OpenedAt: now, Wait: firstWait}
	st := &state{Circuits: map[string]*circuit{"x": c}}
	take := func(id string) (reservation, error) {
		r := reservation{ID: id, Purpose: Guard, Day: dayOf(now), Circuit: "x", Until: now.Add(time.Minute)}
		return r, st.begin(&r, 10, 1, 0.1, now)
	}
	if _, err := take("a"); !errors.Is(err, ErrOpen) {
		t.Fatal(err)
	}
	now = now.Add(firstWait)
	a, err := take("a")
	if err != nil || !a.Trial || c.word(now) != "half-open" {
		t.Fatal(a, err)
	}
	if _, err := take("b"); !errors.Is(err, ErrOpen) {
		t.Fatal(err)
	}
	st.end(a, outcome{unknown: true, at: now})
	second, err := take("b")
	if err != nil || !second.Trial {
		t.Fatal(second, err)
	}
	st.Open = nil // lost with its state
	third, err := take("c")
	if err != nil || !third.Trial {
		t.Fatal(third, err)
	}
	st.end(third, outcome{at: now})
	if c.Wait != 0 || c.Failures != 0 {
		t.Errorf("%+v", c)
	}
}

func TestBudget(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Settings.BudgetUSDPerDay, o.Settings.BudgetUSDPerQuestion, o.Settings.CallsPerDay = 0.25, 0.1, 5
	})
	b.runs.say = func(run.Request) (run.Record, error) { return said(`{"ok":true}`, 0.12), nil }
	b.ask(question(), nil)
	if most := b.sent().Question.MaxBudgetUSD; most != 0.1 {
		t.Errorf("may cost %v", most)
	}
	b.ask(question(), nil)
	b.ask(question(), nil) // for the cent that is left
	if most := b.sent().Question.MaxBudgetUSD; math.Abs(most-0.01) > 1e-9 {
		t.Errorf("may cost %v", most)
	}
	b.ask(question(), ErrBudget)
	other := question()
	other.Purpose = Summary
	b.ask(other, nil) // has a budget of its own
	b.pass(13 * time.Hour)
	b.ask(question(), ErrBudget)
	b.pass(time.Hour) // the next day, in UTC
	// A client that names no price has the number of its calls.
	b.runs.say = nil
	for range 5 {
		b.ask(question(), nil)
	}
	b.ask(question(), ErrBudget)
	// A day that comes again was spent already.
	b.pass(-14 * time.Hour)
	b.ask(question(), ErrBudget)
	// What a client says of its price is not believed in every case.
	b.pass(72 * time.Hour)
	for _, cost := range []float64{-5, math.Inf(1), math.NaN()} {
		b.runs.say = func(run.Request) (run.Record, error) { return said(`{"ok":true}`, cost), nil }
		b.ask(question(), nil)
	}
	b.ask(question(), ErrBudget)
	b.opt.Settings.CallsPerDay = 0
	b.pass(24 * time.Hour)
	b.ask(question(), ErrBudget)
}

// A client that cannot be started costs nothing, and opens the circuit.
func TestStartFails(t *testing.T) {
	b := newBench(t, nil)
	b.runs.startup = agent.ErrIsolation
	for range openAfter {
		_, err := b.Ask(context.Background(), question())
		if !errors.Is(err, ErrFailed) || !errors.Is(err, agent.ErrIsolation) {
			t.Fatal(err)
		}
	}
	b.ask(question(), ErrOpen)
	if s := b.spent(); s.USD != 0 || s.Failed != openAfter || s.Calls != openAfter {
		t.Errorf("%+v", s)
	}
}

func TestCache(t *testing.T) {
	b := newBench(t, nil)
	q := question()
	q.Fresh = false
	first := b.ask(q, nil)
	if a := b.ask(q, nil); !a.Cached || string(a.JSON) != string(first.JSON) || a.Run != first.Run || a.CostUSD != 0 || a.By != first.By {
		t.Errorf("%+v", a)
	}
	if s := b.spent(); s.Calls != 1 || s.Cached != 1 {
		t.Errorf("%+v", s)
	}
	// Anything else is another question.
	asked := b.runs.asked()
	for name, change := range map[string]func(*Question){
		"prompt": func(q *Question) { q.Prompt += "?" }, "system": func(q *Question) { q.System += "!" }, "directory": func(q *Question) { q.Dir = "/elsewhere" },
		"purpose": func(q *Question) { q.Purpose = Review }, "schema": func(q *Question) { q.Schema = json.RawMessage(`{"type":"object"}`) }, "fresh": func(q *Question) { q.Fresh = true },
	} {
		other := q
		change(&other)
		if a := b.ask(other, nil); a.Cached {
			t.Errorf("%s: from the cache", name)
		}
	}
	b.runs.version = "2"
	b.ask(q, nil)
	b.opt.Settings.Model = "m"
	b.ask(q, nil)
	if n := b.runs.asked() - asked; n != 8 {
		t.Errorf("%d asked", n)
	}
	// An open circuit and a budget that is used up do not keep what is known already.
	b.opt.Settings.CallsPerDay = 0
	b.ask(q, nil)
	b.opt.Settings.CallsPerDay = 200
	// Its time ends; one from the future has none.
	b.pass(-time.Hour)
	if a := b.ask(q, nil); a.Cached {
		t.Error("an answer from the future counts")
	}
	b.pass(24 * time.Hour)
	if a := b.ask(q, nil); a.Cached {
		t.Error("an old answer counts")
	}
	b.opt.Settings.CacheHours = 0
	if a := b.ask(q, nil); a.Cached {
		t.Error("kept although nothing is to be")
	}
}

// An answer that was tampered with, or is another question's, is none.
func TestCacheTampered(t *testing.T) {
	b := newBench(t, nil)
	q := question()
	q.Fresh = false
	b.ask(q, nil)
	files, err := filepath.Glob(filepath.Join(b.opt.Dir, answersDir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"", "{", "null", "[]", string(good) + "{}", strings.Replace(string(good), `"ok":true`, `"ok":"yes"`, 1), strings.Replace(string(good), `"v":1`, `"v":2`, 1),
		strings.Replace(string(good), `"purpose":"guard"`, `"purpose":"review"`, 1), strings.Replace(string(good), `"key":"`, `"key":"0`, 1), strings.Replace(string(good), `"v":1`, `"v":1,"x":1`, 1),
	} {
		if err := os.WriteFile(files[0], []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if a := b.ask(q, nil); a.Cached {
			t.Errorf("%.80q counts", bad)
		}
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", files[0]); err != nil {
		t.Skip("no symbolic links here")
	}
	b.ask(q, nil)
}

// What cannot be read, was changed or is gone is said, and nobody is asked; never
// is it a circuit that is closed and a budget that nobody has spent of.
func TestState(t *testing.T) {
	b := newBench(t, nil)
	b.ask(question(), nil)
	path := filepath.Join(b.opt.Dir, stateFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	asked := b.runs.asked()
	change := map[string]func() error{
		"gone":  func() error { return os.Remove(path) },
		"empty": func() error { return os.WriteFile(path, nil, 0o600) },
		"half":  func() error { return os.WriteFile(path, good[:len(good)/2], 0o600) },
		"null":  func() error { return os.WriteFile(path, []byte("null"), 0o600) },
		"edited": func() error {
			return os.WriteFile(path, []byte(strings.Replace(string(good), `"calls": 1`, `"calls": 0`, 1)), 0o600)
		},
		"newer": func() error {
			return os.WriteFile(path, []byte(strings.Replace(string(good), `"v": 1`, `"v": 2`, 1)), 0o600)
		},
		"more":      func() error { return os.WriteFile(path, append(good, "{}"...), 0o600) },
		"directory": func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"huge": func() error {
			return os.WriteFile(path, []byte(string(good)+strings.Repeat(" ", maxState)), 0o600)
		},
	}
	for name, spoil := range change {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		b.ask(question(), ErrState)
		if s := b.status(); s.Trouble == "" || !strings.Contains(s.Trouble, path) {
			t.Errorf("%s: trouble %q", name, s.Trouble)
		}
		aside, err := b.Reset(context.Background(), Reset{})
		if err != nil || (aside == "") != (name == "gone") {
			t.Fatalf("%s: %q, %v", name, aside, err)
		}
		if b.runs.asked() != asked {
			t.Fatalf("%s: somebody was asked", name)
		}
		b.ask(question(), nil)
		asked++
		b.pass(time.Second)
		if err := os.RemoveAll(aside); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A question whose asker died holds its place until its time is over; then what it
// cost is learnt from its run, and is all it might have where there is none.
func TestAskerDied(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Settings.CallsPerDay = 3 })
	ctx := context.Background()
	for i, id := range []string{"run-aaaaaaaaaa", ""} {
		res, err := b.begin(ctx, Guard, "script", 10*time.Second)
		if err != nil || i == 0 && res.USD != 0.1 {
			t.Fatal(res, err)
		}
		if err := b.name(ctx, res.ID, id); err != nil {
			t.Fatal(err)
		}
	}
	b.ask(question(), nil)
	b.ask(question(), ErrBudget) // they count while they are asked
	if s := b.status(); s.Asking != 2 {
		t.Errorf("%+v", s)
	}
	b.runs.records = map[string]run.Record{"run-aaaaaaaaaa": {Status: run.Completed, Result: &agent.Result{CostUSD: 0.03}}}
	b.opt.Settings.CallsPerDay = 10
	b.pass(10*time.Second + orphanGrace)
	b.ask(question(), nil)
	if s := b.spent(); s.Calls != 4 || math.Abs(s.USD-0.15) > 1e-9 || s.Failed != 0 || b.status().Asking != 0 {
		t.Errorf("%+v", s)
	}
}

func TestStateStaysSmall(t *testing.T) {
	st := &state{}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 1000 {
		day := dayOf(at.AddDate(0, 0, i))
		st.spent(day, Guard).Calls++
		st.circuit(day).Failures++
		st.Failures = append(st.Failures, Failure{Text: day})
	}
	st.trim()
	if len(st.Days) != maxDays || len(st.Circuits) != maxCircuits || len(st.Failures) != maxFailures || st.Failures[maxFailures-1].Text != dayOf(at.AddDate(0, 0, 999)) {
		t.Errorf("%d days, %d circuits, %d failures", len(st.Days), len(st.Circuits), len(st.Failures))
	}
	if st.Days[dayOf(at.AddDate(0, 0, 999))] == nil {
		t.Error("the newest day was forgotten")
	}
}
