package recall

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"reprise/internal/fact"
	"reprise/internal/mdfile"
	"reprise/internal/recall/lexicon"
)

// DefaultPolicy is what a recall is ranked by when nothing was learned yet.
func DefaultPolicy() Policy {
	return Policy{
		ID:        "default",
		Threshold: 0.5,
		Diversity: 0.85,
		TopK:      map[string]int{scopeSession: 6, scopeProject: 12, scopeGlobal: 8},
		Budget: map[Class]int{
			ClassCore: 600, ClassIndex: 300, ClassBlock: 600, ClassDecision: 400, ClassLearning: 400, ClassEpisode: 500,
			ClassPattern: 300, ClassAntiPattern: 250, ClassSummary: 300, ClassAnswer: 250, ClassState: 300, ClassProfile: 200,
		},
	}
}

const (
	scanned     = 60  // best documents among which an answer's are picked
	pickedMost  = 30  // documents of an answer, where the question does not ask for more
	snippetMost = 360 // characters of a document that are served, at most
	overhead    = 12  // tokens of a line's source, date and id
	leastUseful = 16  // tokens below which a snippet says nothing
	alike       = 0.9 // share of words in common at which two documents are one
)

// Why a candidate was left out, in Answer.Dropped.
const (
	dropThreshold = "threshold" // it does not match well enough
	dropExcluded  = "excluded"  // the session has it already
	dropConflict  = "conflict"  // another document says otherwise, and wins
	dropDuplicate = "duplicate" // another one says the same
	dropTopK      = "top_k"     // enough of its scope, or enough in all
	dropBudget    = "budget"    // no tokens left in its class, or in all
)

// answer picks from the ranked documents what is served.
func (r *ranking) answer() (Answer, error) {
	out := Answer{Policy: r.policy.ID, Dropped: map[string]string{}}
	fit := r.fitting(&out)
	fit, conflicts, err := r.settled(fit, &out)
	if err != nil {
		return out, err
	}
	fit = r.once(fit, &out)
	fit = r.diverse(fit, &out)
	r.serve(fit, conflicts, &out)
	if !r.Explain || len(out.Dropped) == 0 {
		out.Dropped = nil
	}
	return out, nil
}

// fitting leaves out what was served before and what only nearly fits.
func (r *ranking) fitting(out *Answer) []*scoredDoc {
	var fit []*scoredDoc
	for _, d := range r.docs {
		switch {
		case slices.Contains(r.Exclude, d.ID):
			out.Dropped[d.ID] = dropExcluded
		case !d.exact && (d.quality < r.policy.Threshold || d.score <= 0):
			out.Dropped[d.ID] = dropThreshold
		case len(fit) < max(scanned, 2*r.Max):
			fit = append(fit, d)
		default:
			out.Dropped[d.ID] = dropTopK
		}
	}
	return fit
}

// settled sees to it that no two documents are served that contradict each
// other. The winner takes the place of the better placed of the two, and may be
// one that the question's words did not find.
func (r *ranking) settled(fit []*scoredDoc, out *Answer) ([]*scoredDoc, map[string][]string, error) {
	conflicts := map[string][]string{}
	lost := map[string]bool{}
	for i := 0; i < len(fit); i++ {
		d := fit[i]
		for _, f := range d.Facts {
			if lost[d.ID] || f.Key() == "" {
				continue
			}
			ids, err := r.g.byFact(f.Key())
			if err != nil {
				return nil, nil, err
			}
			others, err := r.opponents(d, f, ids)
			if err != nil {
				return nil, nil, err
			}
			for _, o := range others {
				if lost[o.ID] || lost[d.ID] {
					continue
				}
				win, lose := d, o
				if beats(o.candidate, d.candidate) {
					win, lose = o, d
				}
				lost[lose.ID] = true
				if !slices.Contains(conflicts[win.ID], lose.ID) {
					conflicts[win.ID] = append(conflicts[win.ID], lose.ID)
				}
				if win == o && !slices.Contains(fit, o) && !slices.Contains(r.Exclude, o.ID) {
					o.score, o.quality = d.score, d.quality
					fit = slices.Insert(fit, i+1, o)
				}
			}
		}
	}
	kept := fit[:0:0]
	for _, d := range fit {
		if lost[d.ID] {
			out.Dropped[d.ID] = dropConflict
			continue
		}
		kept = append(kept, d)
	}
	return kept, conflicts, nil
}

// opponents are the documents that state something else about a fact's subject.
func (r *ranking) opponents(d *scoredDoc, f fact.Fact, ids []string) ([]*scoredDoc, error) {
	var out []*scoredDoc
	for _, id := range ids {
		if id == d.ID {
			continue
		}
		o := r.byID[id]
		if o == nil || !o.filled {
			got, err := r.g.byID(id)
			if err != nil {
				return nil, err
			}
			if len(got) == 0 {
				continue
			}
			o = &scoredDoc{candidate: got[0], sat: make([]float64, len(r.q.concepts))}
		}
		if SameWorld(d.Doc, o.Doc) && slices.ContainsFunc(o.Facts, func(g fact.Fact) bool { return fact.Contradict(f, g) }) {
			r.byID[id] = o
			out = append(out, o)
		}
	}
	return out, nil
}

// beats says which of two contradicting documents is served: the one of the
// narrower scope, then what a person said, then the newer, then the surer.
func beats(a, b *candidate) bool {
	return cmp.Or(
		cmp.Compare(scopeRank(a.Scope), scopeRank(b.Scope)),
		cmp.Compare(saidBy(a), saidBy(b)),
		a.Time.Compare(b.Time),
		cmp.Compare(a.Confidence, b.Confidence),
		strings.Compare(a.ID, b.ID)) > 0
}

func saidBy(c *candidate) int {
	if c.Class == ClassAnswer || c.Author == "user" {
		return 1
	}
	return 0
}

// diverse orders by maximal marginal relevance, so that the second place goes
// to what adds something, and leaves out what says the same again.
func (r *ranking) diverse(fit []*scoredDoc, out *Answer) []*scoredDoc {
	if len(fit) < 2 {
		return fit
	}
	lambda := r.policy.Diversity
	if lambda <= 0 || lambda > 1 {
		lambda = 1
	}
	sets := make([][]uint32, len(fit))
	top := 0.0
	for i, d := range fit {
		sets[i] = shingles(d.Text)
		if !d.exact {
			top = max(top, d.score)
		}
	}
	top = max(top, 1e-9)
	nearest := make([]float64, len(fit)) // to what was picked
	taken := make([]bool, len(fit))
	var picked []*scoredDoc
	for range fit {
		if len(picked) >= max(r.Max, pickedMost) {
			break
		}
		best, bestScore := -1, 0.0
		for i, d := range fit {
			if taken[i] {
				continue
			}
			rel := d.score / top
			if d.exact {
				rel += 2
			}
			if s := lambda*rel - (1-lambda)*nearest[i]; best < 0 || s > bestScore {
				best, bestScore = i, s
			}
		}
		taken[best] = true
		if nearest[best] >= alike {
			out.Dropped[fit[best].ID] = dropDuplicate
			continue
		}
		picked = append(picked, fit[best])
		for i := range fit {
			if !taken[i] {
				nearest[i] = max(nearest[i], jaccard(sets[i], sets[best]))
			}
		}
	}
	return picked
}

// shingles are the hashes of a text's words, sorted, each once.
func shingles(text string) []uint32 {
	var out []uint32
	lexicon.Words(text, func(w lexicon.Word) bool {
		if !w.Part {
			h := uint32(2166136261) // FNV-1a
			for i := range len(w.Term) {
				h = (h ^ uint32(w.Term[i])) * 16777619
			}
			out = append(out, h)
		}
		return len(out) < 400
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// jaccard is the share of what two sorted sets have in common.
func jaccard(a, b []uint32) float64 {
	both := common(a, b)
	if n := len(a) + len(b) - both; n > 0 {
		return float64(both) / float64(n)
	}
	return 1
}

// common counts what two sorted sets have in common.
func common(a, b []uint32) int {
	both, i, j := 0, 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			both++
			i++
			j++
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return both
}

// serve cuts what was picked to the budgets. A question that says how many
// documents it wants gets so many, whatever their scope.
func (r *ranking) serve(picked []*scoredDoc, conflicts map[string][]string, out *Answer) {
	most, total := r.Max, r.MaxTokens
	byScope, byClass := map[string]int{}, map[Class]int{}
	want := map[string]float64{}
	for _, c := range r.q.concepts {
		for _, t := range c.terms {
			want[r.terms[t.at].text] = c.gain * t.weight
		}
	}
	out.want = want
	for _, d := range picked {
		if most > 0 && len(out.Results) >= most {
			out.Dropped[d.ID] = dropTopK
			continue
		}
		if k, ok := r.policy.TopK[d.Scope]; ok && most <= 0 && byScope[d.Scope] >= k {
			out.Dropped[d.ID] = dropTopK
			continue
		}
		room := 1 << 30
		if total > 0 {
			room = total - out.Tokens
		}
		if b, ok := r.policy.Budget[d.Class]; ok {
			room = min(room, b-byClass[d.Class])
		}
		snip, cost := cutTo(d.Text, want, room-overhead-mdfile.Tokens(d.Title))
		if snip == "" {
			out.Dropped[d.ID] = dropBudget
			continue
		}
		cost += overhead + mdfile.Tokens(d.Title)
		res := Result{Doc: d.Doc, Score: round(d.score), Snippet: snip, Tokens: cost, Conflicts: conflicts[d.ID]}
		if r.Explain {
			res.Signals = d.signals
		}
		byScope[d.Scope]++
		byClass[d.Class] += cost
		out.Tokens += cost
		out.Results = append(out.Results, res)
	}
}

// cutTo gives the part of a text that fits best in so many tokens; nothing
// when that would be too little to be of use.
func cutTo(text string, want map[string]float64, room int) (string, int) {
	text = strings.TrimSpace(text)
	all := mdfile.Tokens(text)
	if all <= room && utf8.RuneCountInString(text) <= snippetMost {
		return text, all
	}
	if room < min(leastUseful, all) {
		return "", 0
	}
	for chars := snippetMost; chars >= 24; chars = chars * 3 / 4 {
		s := snippet(text, want, chars)
		if n := mdfile.Tokens(s); n <= room {
			return s, n
		}
	}
	return "", 0
}
