package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/recall"
)

// promptTokens is what an answer to a prompt may cost: the figure of tokens
// served is measured under it.
const promptTokens = 500

// figures of a group of questions. Those of ranking are of the whole order,
// before anything is left out; those of serving are of what would be served.
type figures struct {
	Questions int                `json:"questions"` // with evidence
	Recall    map[string]float64 `json:"recall,omitempty"`
	MRR       float64            `json:"mrr"`
	NDCG      float64            `json:"ndcg_10"`
	// Served are the same figures with the threshold on.
	ServedRecall map[string]float64 `json:"served_recall,omitempty"`
	ServedMRR    float64            `json:"served_mrr"`
	WrongNothing float64            `json:"wrong_nothing"` // share that got no answer
	None         int                `json:"none_apply"`    // questions without evidence
	RightNothing float64            `json:"right_nothing"` // share of them that got no answer
	Tokens       float64            `json:"tokens"`        // served for a prompt, mean
}

// tally adds up figures.
type tally struct {
	n, none                            int
	recall, served                     []float64
	mrr, ndcg, servedMRR, wrong, right float64
	tokens                             float64
	asked                              int
}

type report struct {
	Documents  int                `json:"documents"`
	BuildMS    float64            `json:"build_ms"`
	QueryP50MS float64            `json:"query_p50_ms"`
	QueryP99MS float64            `json:"query_p99_ms"`
	All        figures            `json:"all"`
	Categories map[string]figures `json:"categories"`
	Languages  map[string]figures `json:"languages,omitempty"`
	Projects   map[string]figures `json:"projects,omitempty"`
	Without    map[string]figures `json:"without,omitempty"`
	Misses     []string           `json:"misses,omitempty"`
	order      []string
}

// signalGroups are what --ablate switches off, one at a time.
var signalGroups = []struct {
	name    string
	weights []string
}{
	{"everything but words", nil}, // filled in by ablations
	{"neighbours", []string{"before", "after", "far", "window", "answer"}},
	{"session", []string{"session"}},
	{"author named", []string{"named"}},
	{"rarity among what is seen", []string{"local"}},
	{"substance", []string{"substance", "specific"}},
	{"who is talked of", []string{"self", "you"}},
	{"related words", []string{"related", "member"}},
	{"questions count less", []string{"asks"}},
	{"short turns count less", []string{"short"}},
	{"question type", []string{"when", "count", "where", "who", "why"}},
	{"dates", []string{"date"}},
	{"coverage", []string{"coverage"}},
	{"phrase", []string{"phrase"}},
	{"stated attributes", []string{"states"}},
	{"title", []string{"title"}},
	{"parts of identifiers", []string{"part"}},
	{"recency", []string{"recency"}},
}

func defaultPolicy() recall.Policy { return recall.DefaultPolicy() }

func build(ctx context.Context, set *evalSet, dir string) (*recall.Index, error) {
	memory := filepath.Join(dir, "memory")
	if err := os.MkdirAll(filepath.Join(memory, "blocks"), 0o700); err != nil {
		return nil, err
	}
	x := recall.Open(recall.Options{IndexFile: filepath.Join(dir, "index.db"), MemoryDir: memory})
	err := x.Update(ctx, func(tx *recall.Tx) error {
		for _, d := range set.docs {
			if err := tx.Put(d); err != nil {
				return fmt.Errorf("document %q: %w", d.ID, err)
			}
		}
		return nil
	})
	if err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

func measure(ctx context.Context, set *evalSet, o options, errOut io.Writer) (*report, error) {
	dir, err := os.MkdirTemp("", "reprise-eval-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	policy := defaultPolicy()
	if o.policy != "" {
		data, err := os.ReadFile(o.policy)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &policy); err != nil {
			return nil, fmt.Errorf("policy %s: %w", o.policy, err)
		}
	}
	start := time.Now()
	x, err := build(ctx, set, dir)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	rep := &report{Documents: len(set.docs), BuildMS: ms(time.Since(start))}
	vectors, err := o.embed.vectors(ctx, x, set, errOut)
	if err != nil {
		return nil, err
	}
	m := &meter{x: x, set: set, o: o, vectors: vectors}
	if err := m.run(ctx, policy, everything); err != nil {
		return nil, err
	}
	m.into(rep)
	if o.ablate {
		rep.Without = map[string]figures{}
		for _, g := range signalGroups {
			p := policy
			p.Weights = maps.Clone(policy.Weights)
			if p.Weights == nil {
				p.Weights = map[string]float64{}
			}
			names := g.weights
			if names == nil {
				for _, h := range signalGroups[1:] {
					names = append(names, h.weights...)
				}
			}
			for _, n := range names {
				p.Weights[n] = 0
			}
			am := &meter{x: x, set: set, o: o, vectors: vectors}
			if err := am.run(ctx, p, onlyRanking); err != nil {
				return nil, err
			}
			rep.Without[g.name] = am.all.figures(o.ks)
			rep.order = append(rep.order, g.name)
		}
	}
	return rep, nil
}

// meter asks the questions and tallies the answers.
type meter struct {
	x       *recall.Index
	set     *evalSet
	o       options
	vectors map[[2]string][]float32
	all     tally
	by      [3]map[string]*tally // category, language, project
	took    []time.Duration
	misses  []string
}

// How much is asked for each question.
const (
	onlyRanking = iota
	andServed
	everything // what a prompt would get, and how long that takes
)

func (m *meter) run(ctx context.Context, policy recall.Policy, depth int) error {
	for i := range m.by {
		m.by[i] = map[string]*tally{}
	}
	top := max(slices.Max(m.o.ks), 10)
	whole := policy
	whole.Threshold, whole.Diversity, whole.Budget, whole.TopK = 0, 1, nil, nil
	served := policy
	served.Budget, served.TopK = nil, nil
	for _, q := range m.set.questions {
		ask := func(p recall.Policy, most, tokens int) (recall.Answer, time.Duration, error) {
			r := recall.Question{Text: q.Text, AsOf: q.Time.Time, Max: most, MaxTokens: tokens, Policy: &p}
			r.Reader = recall.Reader{Project: q.Project, All: q.Project == "" || m.o.all}
			if v := m.vectors[q.key()]; v != nil {
				r.Vector, r.VectorModel = v, m.o.embed.model
			}
			start := time.Now()
			a, err := m.x.Recall(ctx, r)
			if err != nil {
				err = fmt.Errorf("question %q: %w", q.ID, err)
			}
			return a, time.Since(start), err
		}
		ranked, _, err := ask(whole, top, 0)
		if err != nil {
			return err
		}
		var fit, prompt recall.Answer
		if depth >= andServed {
			if fit, _, err = ask(served, top, 0); err != nil {
				return err
			}
		}
		if depth >= everything {
			var took time.Duration
			if prompt, took, err = ask(policy, 0, promptTokens); err != nil {
				return err
			}
			m.took = append(m.took, took)
		}
		for _, t := range append([]*tally{&m.all}, m.groups(q)...) {
			t.add(q.Evidence, ids(ranked), ids(fit), prompt.Tokens, m.o.ks)
		}
		if m.o.misses && depth == everything {
			m.miss(q, ids(ranked))
		}
	}
	return nil
}

func (m *meter) groups(q question) []*tally {
	var out []*tally
	for i, key := range []string{q.Category, q.Lang, q.Project} {
		if key == "" {
			continue
		}
		t := m.by[i][key]
		if t == nil {
			t = &tally{}
			m.by[i][key] = t
		}
		out = append(out, t)
	}
	return out
}

func (m *meter) miss(q question, ranked []string) {
	var gone []string
	for _, e := range q.Evidence {
		if at := slices.Index(ranked, e); at < 0 || at >= 10 {
			gone = append(gone, m.set.id(e))
		}
	}
	if len(gone) > 0 {
		m.misses = append(m.misses, fmt.Sprintf("%s %q: %v", q.ID, q.Text, gone))
	}
}

func ids(a recall.Answer) []string {
	out := make([]string, len(a.Results))
	for i, r := range a.Results {
		out[i] = r.ID
	}
	return out
}

func (t *tally) add(evidence, ranked, served []string, tokens int, ks []int) {
	t.tokens += float64(tokens)
	t.asked++
	if len(evidence) == 0 {
		t.none++
		if len(served) == 0 {
			t.right++
		}
		return
	}
	t.n++
	if t.recall == nil {
		t.recall, t.served = make([]float64, len(ks)), make([]float64, len(ks))
	}
	for i, k := range ks {
		t.recall[i] += found(evidence, ranked, k)
		t.served[i] += found(evidence, served, k)
	}
	t.mrr += reciprocal(evidence, ranked)
	t.servedMRR += reciprocal(evidence, served)
	t.ndcg += ndcg(evidence, ranked, 10)
	if len(served) == 0 {
		t.wrong++
	}
}

// found is the share of the evidence among the first k.
func found(evidence, got []string, k int) float64 {
	n := 0
	for _, id := range got[:min(k, len(got))] {
		if slices.Contains(evidence, id) {
			n++
		}
	}
	return float64(n) / float64(len(evidence))
}

// reciprocal is one over the rank of the first evidence; 0 when there is none.
func reciprocal(evidence, got []string) float64 {
	for i, id := range got {
		if slices.Contains(evidence, id) {
			return 1 / float64(i+1)
		}
	}
	return 0
}

// ndcg is the discounted gain of the first k over the best possible one.
func ndcg(evidence, got []string, k int) float64 {
	gain, ideal := 0.0, 0.0
	for i, id := range got[:min(k, len(got))] {
		if slices.Contains(evidence, id) {
			gain += 1 / math.Log2(float64(i+2))
		}
	}
	for i := range min(k, len(evidence)) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	return gain / ideal
}

func (t *tally) figures(ks []int) figures {
	f := figures{Questions: t.n, None: t.none, Tokens: round(t.tokens / float64(max(1, t.asked)))}
	if t.n > 0 {
		n := float64(t.n)
		f.Recall, f.ServedRecall = map[string]float64{}, map[string]float64{}
		for i, k := range ks {
			f.Recall[fmt.Sprint(k)] = round(t.recall[i] / n)
			f.ServedRecall[fmt.Sprint(k)] = round(t.served[i] / n)
		}
		f.MRR, f.NDCG, f.ServedMRR, f.WrongNothing = round(t.mrr/n), round(t.ndcg/n), round(t.servedMRR/n), round(t.wrong/n)
	}
	if t.none > 0 {
		f.RightNothing = round(t.right / float64(t.none))
	}
	return f
}

func round(x float64) float64    { return math.Round(x*1e4) / 1e4 }
func ms(d time.Duration) float64 { return round(float64(d) / float64(time.Millisecond)) }
func (m *meter) into(rep *report) {
	slices.Sort(m.took)
	if n := len(m.took); n > 0 {
		rep.QueryP50MS, rep.QueryP99MS = ms(m.took[n/2]), ms(m.took[min(n-1, n*99/100)])
	}
	rep.All = m.all.figures(m.o.ks)
	rep.Misses = m.misses
	for i, to := range []*map[string]figures{&rep.Categories, &rep.Languages, &rep.Projects} {
		*to = map[string]figures{}
		for k, t := range m.by[i] {
			(*to)[k] = t.figures(m.o.ks)
		}
	}
}

func (rep *report) print(out io.Writer, o options) {
	fmt.Fprintf(out, "%d documents, index built in %.0f ms; a prompt's recall takes %.2f ms (p50), %.2f ms (p99)\n\n",
		rep.Documents, rep.BuildMS, rep.QueryP50MS, rep.QueryP99MS)
	fmt.Fprint(out, "| questions | n |")
	for _, k := range o.ks {
		fmt.Fprintf(out, " R@%d |", k)
	}
	fmt.Fprint(out, " MRR | nDCG@10 | served R@10 | served MRR | wrongly nothing | none apply | rightly nothing | tokens |\n|---|---|")
	for range len(o.ks) + 8 {
		fmt.Fprint(out, "---|")
	}
	fmt.Fprintln(out)
	line := func(name string, f figures) {
		fmt.Fprintf(out, "| %s | %d |", strings.ReplaceAll(name, "|", `\|`), f.Questions)
		for _, k := range o.ks {
			fmt.Fprintf(out, " %.3f |", f.Recall[fmt.Sprint(k)])
		}
		at := fmt.Sprint(nearestK(o.ks))
		fmt.Fprintf(out, " %.3f | %.3f | %.3f | %.3f | %.3f | %d | %.3f | %.0f |\n", f.MRR, f.NDCG, f.ServedRecall[at], f.ServedMRR, f.WrongNothing, f.None, f.RightNothing, f.Tokens)
	}
	line("**all**", rep.All)
	for _, m := range []map[string]figures{rep.Categories, rep.Languages, rep.Projects} {
		if len(m) > 1 {
			for _, k := range slices.Sorted(maps.Keys(m)) {
				line(k, m[k])
			}
		}
	}
	if len(rep.Without) > 0 {
		at := fmt.Sprint(nearestK(o.ks))
		fmt.Fprintf(out, "\n| without | R@%s | MRR | nDCG@10 |\n|---|---|---|---|\n", at)
		for _, k := range rep.order {
			f := rep.Without[k]
			fmt.Fprintf(out, "| %s | %.3f (%+.3f) | %.3f (%+.3f) | %.3f (%+.3f) |\n", k, f.Recall[at], f.Recall[at]-rep.All.Recall[at],
				f.MRR, f.MRR-rep.All.MRR, f.NDCG, f.NDCG-rep.All.NDCG)
		}
	}
	for _, s := range rep.Misses {
		fmt.Fprintln(out, s)
	}
}

// nearestK is the rank of the ones measured that is nearest to 10.
func nearestK(ks []int) int {
	best := ks[0]
	for _, k := range ks {
		if max(k-10, 10-k) < max(best-10, 10-best) {
			best = k
		}
	}
	return best
}
