package judge

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"reprise/internal/agent"
	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/run"
)

// scenario is one question, asked on a disk that dies or fails. Whatever happens,
// the state can be used afterwards, and a run that was started is counted.
func scenario() durabletest.Scenario {
	open := func(t *testing.T, dir string) *bench {
		return newBench(t, func(o *Options) { o.Dir = filepath.Join(dir, "judge") })
	}
	return durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) {
			b := open(t, dir)
			b.ask(question(), nil)
			b.pass(time.Minute)
		},
		Act: func(disk durable.Disk, dir string) error {
			b := newBench(&testing.T{}, func(o *Options) { o.Dir, o.Disk = filepath.Join(dir, "judge"), disk })
			b.runs.mark = filepath.Join(dir, "started-a-run")
			q := question()
			q.Fresh, q.Prompt = false, "Is this another one?"
			_, err := b.Ask(context.Background(), q)
			return err
		},
		Check: func(t *testing.T, dir string, err error, at string) {
			b := open(t, dir)
			s := b.status()
			if s.Trouble != "" {
				t.Fatalf("%s: %s", at, s.Trouble)
			}
			_, lerr := os.Lstat(filepath.Join(dir, "started-a-run"))
			started := lerr == nil
			if n := b.spent().Calls + s.Asking; n < 1 || started && n != 2 {
				t.Errorf("%s: %d calls are known of, a second run was started: %v", at, n, started)
			}
			if err == nil && (!started || b.spent().Calls+s.Asking != 2) {
				t.Errorf("%s: an answer, and %+v", at, s)
			}
			// Nothing that a crash leaves keeps the next question from being asked, or
			// gives it half an answer.
			b.pass(2 * time.Hour)
			q := question()
			q.Fresh, q.Prompt = false, "Is this another one?"
			if a := b.ask(q, nil); string(a.JSON) != `{"ok":true}` {
				t.Errorf("%s: %s", at, a.JSON)
			}
			q.Fresh = true // what is in the cache asks nobody, and clears nothing up
			b.ask(q, nil)
			if s := b.status(); s.Asking != 0 {
				t.Errorf("%s: %d are still being asked", at, s.Asking)
			}
		},
	}
}

func TestCrash(t *testing.T) { scenario().CrashAtEachStep(t) }

func TestDiskFails(t *testing.T) {
	scenario().FailAtEachStep(t, errors.New("no space left"), fs.ErrPermission)
}

// Several processes ask at once: together they ask no more than one may, whatever
// becomes of any of them.
func TestProcesses(t *testing.T) {
	const child, calls = "judge-child", 12
	change := func(dir string) func(*Options) {
		return func(o *Options) {
			o.Dir, o.Now = dir, time.Now
			o.Settings.CallsPerDay, o.Settings.BudgetUSDPerDay = calls, 1000
		}
	}
	if args := flag.Args(); len(args) == 2 && args[0] == child {
		b := newBench(t, change(args[1]))
		b.runs.say = func(run.Request) (run.Record, error) { return said(`{"ok":true}`, 0.01), nil }
		for {
			if _, err := b.Ask(context.Background(), question()); errors.Is(err, ErrBudget) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		out := filepath.Join(args[1], "asked-"+strconv.Itoa(os.Getpid()))
		if err := os.WriteFile(out, []byte(strconv.Itoa(b.runs.asked())), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	dir := filepath.Join(t.TempDir(), "judge")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var all []*os.Process
	for range 4 {
		p, err := os.StartProcess(self, []string{self, "-test.run=^TestProcesses$", "-test.timeout=60s", child, dir}, &os.ProcAttr{Files: []*os.File{nil, nil, os.Stderr}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	for _, p := range all {
		if st, err := p.Wait(); err != nil || !st.Success() {
			t.Errorf("%v, %v", st, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "asked-*"))
	if err != nil || len(files) != len(all) {
		t.Fatal(files, err)
	}
	sum := 0
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(string(data))
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	b := newBench(t, change(dir))
	if s := b.spent(); sum != calls || s.Calls != calls || fmt.Sprintf("%.2f", s.USD) != "0.12" || b.status().Asking != 0 {
		t.Errorf("%d asked, %+v on record", sum, s)
	}
}

// Whatever stands in state.json: it is refused, or it is one that we could have
// written, and that survives being written again.
func FuzzState(f *testing.F) {
	good := &state{Resets: 2, Failures: []Failure{{Text: "x"}}, Open: []reservation{{ID: "a", USD: 0.1}}}
	good.spent("2026-11-28", Guard).USD = 0.5
	good.circuit("claude").failed(false, time.Unix(0, 0))
	data, err := good.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"v":1,"sha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","state":{}}`))
	for _, s := range []string{"", "{}", "null", `{"v":1,"sha256":"","state":null}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		st, err := decodeState(data)
		if err != nil {
			return
		}
		if st == nil {
			t.Fatal("neither state nor error")
		}
		now := time.Unix(1e9, 0)
		res := reservation{ID: "new", Purpose: Guard, Day: dayOf(now), Circuit: "c"}
		if st.begin(&res, 5, 1, 0.1, now) == nil && (res.USD < 0 || res.USD > 0.1) {
			t.Fatalf("may cost %v", res.USD)
		}
		st.end(res, outcome{at: now, err: ErrTimeout})
		st.trim()
		again, err := st.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeState(again); err != nil {
			t.Fatalf("%v in %s", err, again)
		}
	})
}

// Whatever a model answers: it is refused, or it is JSON by the schema.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{`{"ok":true}`, "```json\n{\"ok\":false}\n```", "``````", "{", `{"ok":true}x`, "null", `{"ok":1e999}`, `{"ok":true,"ok":"no"}`, "\xff"} {
		f.Add(s)
	}
	schema, err := resolve([]byte(okSchema))
	if err != nil {
		f.Fatal(err)
	}
	p := &prepared{schema: schema, client: agent.KindScript}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := p.answer(said(text, 0))
		if err != nil {
			if !errors.Is(err, ErrAnswer) {
				t.Fatal(err)
			}
			return
		}
		if again, err := p.valid(a.JSON); err != nil || string(again) != string(a.JSON) {
			t.Fatalf("%q, then %q, %v", a.JSON, again, err)
		}
	})
}
