package recall

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// scale makes an index of n derived documents of 20 words with Zipf's
// distribution, as in the table that the choice of the engine rests on: nine in
// ten of project big, a hundredth of project small, the others global; one in
// fifty private to an agent.
func scale(b testing.TB, n int) (*Index, []string) {
	var derive func(context.Context, *Index) error
	x := Open(Options{MemoryDir: b.TempDir(), IndexFile: filepath.Join(b.TempDir(), "index.db"), Derive: func(ctx context.Context, x *Index) error { return derive(ctx, x) }})
	b.Cleanup(func() { x.Close() })
	r := rand.New(rand.NewPCG(1, 2))
	z := rand.NewZipf(r, 1.1, 4, 50_000)
	start, cpu := time.Now(), cpuTime()
	const batch = 20_000
	derive = func(context.Context, *Index) error {
		for from := 0; from < n; from += batch {
			update(b, x, func(tx *Tx) error {
				for i := from; i < min(n, from+batch); i++ {
					var s strings.Builder
					for range 20 {
						fmt.Fprintf(&s, "w%dq ", z.Uint64())
					}
					d := Doc{ID: fmt.Sprintf("ep-%08x", i*2654435761%(1<<32)), Class: ClassEpisode, Project: "big", Session: fmt.Sprint("s", i/50), Source: fmt.Sprint("event-", i),
						Title: fmt.Sprintf("w%dq", z.Uint64()), Text: s.String(), Group: fmt.Sprint("s", i/50), Ord: i % 50, Time: noon.Add(time.Duration(i) * time.Minute), Importance: r.Float64(), Tier: "warm"}
					switch i % 100 {
					case 0:
						d.Project = "small"
					case 1, 2, 3, 4, 5, 6, 7, 8:
						d.Project = ""
					case 9:
						d.Class = ClassPattern
					case 10, 11:
						d.ACL = []string{"agent:ada"}
					}
					d.Keys = []string{fmt.Sprint("sig", i%5000)}
					if err := tx.Put(d); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	}
	if _, err := x.Rebuild(context.Background()); err != nil {
		b.Fatal(err)
	}
	took := time.Since(start)
	b.Logf("%d documents in %s: %.0f a second, %.0f a second of processor time", n, took.Round(time.Millisecond), float64(n)/took.Seconds(), float64(n)/(cpuTime()-cpu).Seconds())
	var terms []queryTerm
	err := x.db.rows(`SELECT term, df FROM terms WHERE term LIKE 'w%q' ORDER BY df DESC, term`, func(s stmt) { terms = append(terms, queryTerm{text: s.ColumnText(0), df: s.ColumnInt64(1)}) })
	if err != nil {
		b.Fatal(err)
	}
	words := make([]string, len(terms))
	for i, t := range terms {
		words[i] = t.text
	}
	return x, words
}

func benchmarkRecall(b *testing.B, n int) {
	x, words := scale(b, n)
	r := rand.New(rand.NewPCG(3, 4))
	pick := func(from, to, n int) string {
		var q []string
		for range n {
			q = append(q, words[min(from+r.IntN(max(1, to-from)), len(words)-1)])
		}
		return strings.Join(q, " ")
	}
	big, small := Reader{Project: "big", Agent: "bob"}, Reader{Project: "small"}
	for _, k := range []struct {
		name string
		q    func() Question
	}{
		{"rare", func() Question { return Question{Text: pick(len(words)/2, len(words), 3), Reader: big} }},
		{"middling", func() Question { return Question{Text: pick(300, 2000, 6), Reader: big} }},
		{"common", func() Question { return Question{Text: pick(0, 100, 6), Reader: big} }},
		{"mixed", func() Question {
			return Question{Text: pick(0, 50, 3) + " " + pick(300, 2000, 2) + " " + pick(5000, 20000, 1), Reader: big}
		}},
		{"common-small-project", func() Question { return Question{Text: pick(0, 100, 6), Reader: small} }},
		{"common-private-class", func() Question {
			return Question{Text: pick(0, 100, 6), Reader: Reader{Project: "big", Agent: "ada"}, Classes: []Class{ClassPattern}}
		}},
		{"common-as-of", func() Question {
			return Question{Text: pick(0, 100, 6), Reader: big, AsOf: noon.Add(time.Duration(n/3) * time.Minute)}
		}},
		{"key", func() Question { return Question{Keys: []string{fmt.Sprint("sig", r.IntN(5000))}, Reader: big} }},
	} {
		b.Run(k.name, func(b *testing.B) {
			var took, cpu []time.Duration // the clock of a busy machine says little
			for b.Loop() {
				q := k.q()
				start, used := time.Now(), cpuTime()
				if _, err := x.Recall(context.Background(), q); err != nil {
					b.Fatal(err)
				}
				took, cpu = append(took, time.Since(start)), append(cpu, cpuTime()-used)
			}
			for unit, all := range map[string][]time.Duration{"": took, "cpu-": cpu} {
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, unit+"p50-ms")
				b.ReportMetric(float64(all[min(len(all)-1, len(all)*99/100)].Microseconds())/1000, unit+"p99-ms")
			}
		})
	}
	b.Run("yardstick-common", func(b *testing.B) { // FTS5 as it is, for comparison in the same minute
		cpu := cpuTime()
		for b.Loop() {
			err := x.db.run(`SELECT rowid FROM fts WHERE fts MATCH ? ORDER BY rank LIMIT 20`, quoted(strings.Fields(pick(0, 100, 6)), " OR "))
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/1000/float64(b.N), "cpu-ms")
	})
	b.Run("candidates-common", func(b *testing.B) {
		cpu := cpuTime()
		defer func() { b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/1000/float64(b.N), "cpu-ms") }()
		for b.Loop() {
			q := Question{Text: pick(0, 100, 6), Reader: big}
			err := x.View(context.Background(), func(tx *Tx) error {
				a, v, err := tx.d.ask(q, x)
				if err == nil {
					_, err = (&ledge{d: tx.d, a: &a, v: v}).candidates(context.Background())
				}
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkRecall1k(b *testing.B)   { benchmarkRecall(b, 1_000) }
func BenchmarkRecall10k(b *testing.B)  { benchmarkRecall(b, 10_000) }
func BenchmarkRecall100k(b *testing.B) { benchmarkRecall(b, 100_000) }
func BenchmarkRecall1M(b *testing.B)   { benchmarkRecall(b, 1_000_000) }
