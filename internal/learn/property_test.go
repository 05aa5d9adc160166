package learn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn/sign"
	"reprise/internal/recall"
)

// worldEvent is an event and the file that it will stand in.
type worldEvent struct {
	host string
	e    event.Event
}

// world makes sessions at random: two projects, two machines, and imports of
// older sessions that come late. The order of the list is the order of arrival.
func world(t testing.TB, r *rand.Rand, sessions int) []worldEvent {
	failures := []string{
		"Error: Cannot find module 'express'", "Error: Cannot find module 'left-pad'", "bash: pnpm: command not found", "main.go:3:4: undefined: x",
		"--- FAIL: TestCart (0.00s)\n    cart_test.go:3: got 1, want 2", "fatal: not a git repository", "open /w/shop/x: permission denied",
	}
	commands := []string{"npm test", "npm ci", "npm install express", "go test ./internal/cart", "go test -v ./internal/cart", "pnpm install", "git push", "npm ci && npm test", "ls", "make build"}
	files := []string{"/w/shop/cart.go", "/w/shop/package.json", "/w/shop/internal/x.go"}
	prompts := []string{"Make the tests pass", "no, use pnpm instead of npm", "カートを直して", "違う、テストを先に書いて", "Add a page", "don't edit the lock file", "Now deploy"}
	often := func(n int) int { return min(r.IntN(n), r.IntN(n), r.IntN(n)) } // the first ones
	stubborn := r.IntN(3) == 0                                               // failures seldom go
	policies := func() PolicyChange {
		c := PolicyChange{Op: []string{"learnt", "adopted", "rollback"}[r.IntN(3)], Version: 1 + r.IntN(4), Parent: "default",
			For: PolicyScope{Project: []string{"", "shop", "site"}[r.IntN(3)], Role: []string{"", "musician"}[r.IntN(2)]}}
		if r.IntN(4) > 0 { // else the scope is left without one
			p := recall.DefaultPolicy()
			p.Threshold = r.Float64() // also beyond what may be
			p.Weights = map[string]float64{"importance": r.Float64()}
			c.Policy = &p
		}
		return c
	}
	var streams [][]worldEvent
	for i := range sessions {
		s := newStoryAt(t, time.Date(2026, time.Month(3+r.IntN(10)), 1+r.IntN(20), r.IntN(24), 0, 0, 0, time.UTC))
		s.project = []string{"shop", "site", ""}[min(r.IntN(5), 2)]
		s.session = fmt.Sprintf("s%d", i)
		s.client = []string{"claude", "codex"}[r.IntN(2)]
		s.n = i * 1000
		host := []string{"desk", "lap"}[r.IntN(2)]
		var list []worldEvent
		put := func(typ event.Type, data any) {
			e := s.event(typ, data)
			if r.IntN(25) == 0 {
				e.ACL = []string{"agent:ann"}
			}
			list = append(list, worldEvent{host, e})
		}
		put(event.SessionStarted, event.SessionData{Cwd: "/w/shop"})
		for range 1 + r.IntN(4) {
			put(event.PromptSubmitted, event.PromptData{Text: prompts[r.IntN(len(prompts))]})
			for range r.IntN(8) {
				what := r.IntN(8)
				if r.IntN(12) == 0 {
					put(event.PolicyChanged, policies())
				}
				if stubborn && what >= 6 {
					what = 0
				}
				switch what {
				case 0, 1, 2:
					code := 1
					put(event.ToolFailed, shellData(commands[often(len(commands))], failures[often(len(failures))], &code))
				case 3, 4, 5:
					put(event.ToolSucceeded, shellData(commands[often(len(commands))], "", nil))
				case 6:
					in, _ := json.Marshal(map[string]string{"file_path": files[r.IntN(len(files))]})
					put(event.ToolSucceeded, event.ToolData{Tool: "edit", Name: "Edit", Input: in, Cwd: "/w/shop"})
				case 7:
					id := "ep-" + sign.Hash(fmt.Sprintf("%d", r.IntN(40)))
					if len(streams) > 0 && r.IntN(2) == 0 { // an episode that may well exist
						for _, w := range streams[r.IntN(len(streams))] {
							if w.e.Type == event.ToolFailed && r.IntN(3) == 0 {
								id = "ep-" + sign.Hash(w.e.ID)
							}
						}
					}
					switch r.IntN(4) {
					case 0:
						put(event.MemoryRetired, event.MemoryData{Op: "forget", ID: id})
					case 1:
						at := []string{"prompt", "prompt", "tool_failure", "session_start", "compact"}[r.IntN(5)]
						put(event.RecallServed, event.ServedData{At: at, Query: "q", Items: []event.ServedItem{{ID: id}}, HeldOut: r.IntN(6) == 0})
					default:
						put(event.RecallUsed, event.UsedData{ID: id, How: []string{"useful", "mentioned", "useless"}[r.IntN(3)]})
					}
				}
			}
			if r.IntN(5) > 0 {
				put(event.ResponseCompleted, event.ResponseData{Text: "I decided to do it. Done."})
			}
		}
		if r.IntN(3) > 0 {
			put(event.SessionEnded, event.SessionData{Reason: "other"})
		}
		if r.IntN(12) == 0 { // outside any session
			s.session = ""
			put(event.MemoryRetired, event.MemoryData{Op: "forget", ID: list[r.IntN(len(list))].e.ID})
		}
		if r.IntN(4) > 0 {
			streams = append(streams, list)
			continue
		}
		// carried on on another machine, whose log comes when it comes
		var here, there []worldEvent
		for _, w := range list {
			if w.host = "desk"; r.IntN(2) == 0 {
				w.host = "lap"
				there = append(there, w)
			} else {
				here = append(here, w)
			}
		}
		for _, part := range [][]worldEvent{here, there} {
			if len(part) > 0 {
				streams = append(streams, part)
			}
		}
	}
	// arrival: sessions interleaved; each keeps its own order
	var out []worldEvent
	for len(streams) > 0 {
		i := r.IntN(min(len(streams), 4))
		n := min(1+r.IntN(6), len(streams[i]))
		out = append(out, streams[i][:n]...)
		if streams[i] = streams[i][n:]; len(streams[i]) == 0 {
			streams = append(streams[:i], streams[i+1:]...)
		}
	}
	return out
}

func newStoryAt(t testing.TB, at time.Time) *story {
	s := newStory(t)
	s.at = at
	return s
}

func shellData(command, failure string, code *int) event.ToolData {
	in, _ := json.Marshal(map[string]string{"command": command})
	return event.ToolData{Tool: "shell", Name: "Bash", Input: in, Cwd: "/w/shop", Error: failure, ExitCode: code}
}

// rounds is how many worlds a property is tried on.
func rounds(short, long int) int {
	if os.Getenv("REPRISE_LONG_TESTS") != "" {
		return long
	}
	return short
}

// Whatever the batches, budgets, days and restarts are in which the logs are
// taken in, the result is the one of a fold from zero, and that of a rebuild.
func TestFoldingInBatchesIsFoldingFromZero(t *testing.T) {
	kinds := map[string]int{}
	for seed := range rounds(8, 300) {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		s := newStory(t)
		events := world(t, r, 3+r.IntN(10))
		now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
		final := time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC)
		ticks := time.Duration(0)
		st := newFake()
		options := Options{Store: st, Logs: s.logs(), Batch: 1 + r.IntN(30), Now: func() time.Time { ticks += time.Millisecond; return now.Add(ticks % time.Hour) }}
		o := New(options)
		for len(events) > 0 {
			n := min(1+r.IntN(20), len(events))
			for _, w := range events[:n] {
				s.host = w.host
				s.write(w.e)
			}
			events = events[n:]
			if r.IntN(3) == 0 {
				now = now.AddDate(0, 0, r.IntN(20))
			}
			if r.IntN(4) == 0 {
				o = New(options) // another process
			}
			st.failAt = 0
			if r.IntN(3) == 0 {
				st.failAt = 1 + r.IntN(40) // it dies, or the disk is full: nothing of the transaction stays
			}
			_, err := o.Run(context.Background(), time.Duration(1+r.IntN(30))*time.Millisecond)
			if err != nil && !errors.Is(err, errFake) {
				t.Fatal(err)
			}
		}
		st.failAt = 0
		now = final
		finish(t, o)
		got := st.dump()

		zero := newFake()
		z := New(Options{Store: zero, Logs: s.logs(), Now: func() time.Time { return final }})
		finish(t, z)
		if want := zero.dump(); got != want {
			t.Fatalf("seed %d: folded in batches and folded from zero differ:\n%s", seed, firstDifference(got, want))
		}
		if len(zero.docs) == 0 {
			t.Fatalf("seed %d: nothing was made of the events", seed)
		}
		for _, d := range zero.docs {
			data, _ := DataOf(d)
			kinds[data.Kind+" "+d.Tier]++
		}
		kinds["policy"] += strings.Count(zero.dump(), bucketPolicy+" ")
		kinds["told"] += strings.Count(zero.dump(), bucketTold+" ")
		kinds["gone"] += strings.Count(zero.dump(), bucketRow+" "+rowGone)
		writes := zero.writes
		if rep, err := z.Run(context.Background(), 0); err != nil || rep.Events+rep.Sessions+rep.Groups != 0 || zero.writes != writes {
			t.Fatalf("seed %d: a second run had something to do: %+v, %v", seed, rep, err)
		}
		if err := st.Update(context.Background(), func(tx Tx) error { return tx.Store(bucketMeta, "version", []byte("of another program")) }); err != nil {
			t.Fatal(err)
		}
		finish(t, New(Options{Store: st, Logs: s.logs(), Now: func() time.Time { return final }}))
		if again := st.dump(); again != got {
			t.Fatalf("seed %d: what another version made, made anew, differs:\n%s", seed, firstDifference(again, got))
		}
	}
	for _, k := range []string{
		KindFailure + " " + Hot, KindFailure + " " + Warm, KindFailure + " " + Cold, KindCorrection + " " + Cold, KindTurn + " " + Warm, KindSession + " " + Cold,
		KindDigest + " " + Warm, KindPattern + " ", KindAntiPattern + " ", KindSaid + " ", "gone", "policy", "told",
	} {
		if kinds[k] == 0 {
			t.Errorf("no world came to any %q: the property was not tried on it", k)
		}
	}
}

func finish(t *testing.T, o *Organizer) {
	t.Helper()
	for range 10_000 {
		rep, err := o.Run(context.Background(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if !rep.More {
			return
		}
	}
	t.Fatal("organising does not come to an end")
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	inB := map[string]bool{}
	for _, l := range y {
		inB[l] = true
	}
	inA := map[string]bool{}
	out := ""
	for _, l := range x {
		inA[l] = true
		if !inB[l] && len(out) < 3000 {
			out += "- " + l + "\n"
		}
	}
	for _, l := range y {
		if !inA[l] && len(out) < 6000 {
			out += "+ " + l + "\n"
		}
	}
	return out
}

// A log that was purged is taken in again: what came of the lines that are gone
// is gone, and the rest is as if they had never been.
func TestPurgedLogIsRefolded(t *testing.T) {
	for seed := range rounds(6, 100) {
		r := rand.New(rand.NewPCG(uint64(seed), 8))
		s := newStory(t)
		for _, w := range world(t, r, 8) {
			s.host = w.host
			s.write(w.e)
		}
		st, o := s.fold("2026-12-24")
		files, err := filepath.Glob(filepath.Join(s.dir, "*", "*.jsonl"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		file := files[r.IntN(len(files))]
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(strings.TrimSuffix(string(b), "\n"), "\n")
		lines[len(lines)-1] += "\n"
		var kept string
		for i, l := range lines {
			if i != len(lines)-1 && r.IntN(3) > 0 {
				kept += l
			}
		}
		if r.IntN(4) == 0 {
			err = os.Remove(file)
		} else {
			err = os.WriteFile(file, []byte(kept), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		rep, err := o.Run(context.Background(), 0)
		if err != nil || len(rep.Refolded) != 1 {
			t.Fatalf("seed %d: %+v, %v", seed, rep, err)
		}
		zero, _ := s.fold("2026-12-24")
		if got, want := st.dump(), zero.dump(); got != want {
			t.Fatalf("seed %d: refolded and folded from zero differ:\n%s", seed, firstDifference(got, want))
		}
	}
}
