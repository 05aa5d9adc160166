package recall

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

const (
	maxSeeds  = 24  // best matches whose neighbours are fetched
	maxFilled = 120 // documents whose text is looked at
	reach     = 2   // neighbours on each side
)

// scoredDoc is a candidate on its way through the ranking.
type scoredDoc struct {
	*candidate
	// sat is the match of each concept, in [0,1]: how often and in which field
	// its best word occurs, and how near that word is to the question's.
	sat     []float64
	own     float64 // by its own words
	base    float64 // with neighbours and session
	score   float64
	covered float64 // [0,1]: how much of what the question asks for it and its neighbours have
	quality float64 // [0,1]: how likely it is an answer, for the threshold
	named   bool    // its author is named in the question
	signals map[string]float64
	vector  float64 // similarity to the question, in standard deviations above the mean
	vrank   int     // from 1; 0 = not among the nearest
}

// ranking is the state of one call of rank.
type ranking struct {
	asked
	w    weights
	g    ground
	q    understood
	docs []*scoredDoc
	byID map[string]*scoredDoc
	// groups holds the documents of a group in order of Ord.
	groups  map[string][]*scoredDoc
	authors map[string]bool // stems of authors' names; see talks
	avg     [fieldCount]float64
}

// order scores all candidates and sorts them, the best first. It depends on
// nothing but its arguments, and equal scores are ordered by time and id, so that
// an index that was built anew answers alike.
func order(a asked, cands []*candidate, g ground) (*ranking, error) {
	r := &ranking{asked: a, w: weightsOf(a.policy), g: g, byID: map[string]*scoredDoc{}, groups: map[string][]*scoredDoc{}}
	for f := range fieldCount {
		r.avg[f] = a.corpus.average(f)
	}
	r.q = understand(&r.asked, r.w, cands)
	for _, c := range cands {
		r.add(c)
	}
	if err := r.addNeighbours(); err != nil {
		return nil, err
	}
	if err := r.addNearest(); err != nil {
		return nil, err
	}
	r.spread()
	r.sort(func(d *scoredDoc) float64 { return d.base })
	r.cutOff()
	var empty []*candidate
	for _, d := range r.docs {
		if !d.filled {
			empty = append(empty, d.candidate)
		}
	}
	if err := g.fill(empty...); err != nil {
		return nil, err
	}
	r.second()
	r.sort(func(d *scoredDoc) float64 { return d.score })
	r.judge()
	r.byClass()
	r.sort(func(d *scoredDoc) float64 { return d.score })
	r.fuse()
	r.sort(func(d *scoredDoc) float64 { return d.score })
	return r, nil
}

// cutOff keeps the best by words, and what vectors found.
func (r *ranking) cutOff() {
	n := 0
	for i, d := range r.docs {
		if i < maxFilled || d.vrank > 0 || d.exact {
			r.docs[n] = d
			n++
		}
	}
	r.docs = r.docs[:n]
}

func (r *ranking) sort(key func(*scoredDoc) float64) {
	slices.SortFunc(r.docs, func(a, b *scoredDoc) int {
		if a.exact != b.exact {
			if a.exact {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(key(b), key(a)), b.Time.Compare(a.Time), strings.Compare(a.ID, b.ID))
	})
}

func (r *ranking) add(c *candidate) *scoredDoc {
	if d := r.byID[c.ID]; d != nil {
		return d
	}
	d := &scoredDoc{candidate: c}
	d.named = r.q.author(c.Author)
	d.sat = make([]float64, len(r.q.concepts))
	for i := range r.q.concepts {
		d.sat[i] = r.saturation(c, &r.q.concepts[i])
	}
	for i, s := range d.sat {
		d.own += s * r.q.concepts[i].gain
	}
	r.byID[c.ID] = d
	r.docs = append(r.docs, d)
	if c.Group != "" {
		r.groups[c.Group] = append(r.groups[c.Group], d)
	}
	return d
}

// saturation is BM25's view of one concept in one document, over all fields,
// about 1 for one mention. Of the words that stand for a concept the best counts.
func (r *ranking) saturation(c *candidate, k *concept) float64 {
	best := 0.0
	k1, b := r.w[weightSaturation], r.w[weightLength]
	for _, t := range k.terms {
		if t.at >= len(c.tf) {
			continue
		}
		tf := c.tf[t.at]
		sum := 0.0
		for f := range fieldCount {
			if tf[f] == 0 {
				continue
			}
			fw := r.w[weightText]
			switch f {
			case fieldTitle:
				fw = r.w[weightTitle]
			case fieldAuthor:
				if k.name {
					continue // counted as a signal of its own
				}
				fw = r.w[weightAuthor]
			}
			norm := 1.0
			if f == fieldText {
				norm = 1 - b + b*float64(c.length[f])/r.avg[f]
			}
			sum += fw * float64(tf[f]) / max(norm, 0.1)
		}
		if sum > 0 {
			best = max(best, t.weight*sum*(k1+1)/(sum+k1))
		}
	}
	return best
}

// addNeighbours brings in the turns before and after the best matches: what
// answers a question often has none of its words.
func (r *ranking) addNeighbours() error {
	if r.w[weightBefore] == 0 && r.w[weightAfter] == 0 {
		return nil
	}
	seeds := slices.Clone(r.docs)
	slices.SortFunc(seeds, func(a, b *scoredDoc) int {
		return cmp.Or(cmp.Compare(b.own, a.own), b.Time.Compare(a.Time), strings.Compare(a.ID, b.ID))
	})
	n := 0
	for _, d := range seeds {
		if d.Group == "" || d.own <= 0 {
			continue
		}
		if n++; n > maxSeeds {
			break
		}
		near, err := r.g.around(d.Group, d.Ord-reach, d.Ord+reach)
		if err != nil {
			return err
		}
		for _, c := range near {
			r.add(c)
		}
	}
	return nil
}

// spread gives each document a share of its neighbours' and its session's match.
func (r *ranking) spread() {
	bestSession := 0.0
	session := map[string]float64{}
	for name, docs := range r.groups {
		slices.SortFunc(docs, func(a, b *scoredDoc) int { return cmp.Or(cmp.Compare(a.Ord, b.Ord), strings.Compare(a.ID, b.ID)) })
		top := make([]float64, len(r.q.concepts))
		for _, d := range docs {
			for i, s := range d.sat {
				top[i] = max(top[i], s)
			}
		}
		sum := 0.0
		for i, s := range top {
			sum += s * r.q.concepts[i].gain
		}
		session[name] = sum
		bestSession = max(bestSession, sum)
	}
	far := r.w[weightFar]
	for _, d := range r.docs {
		d.base = d.own
	}
	win := make([]float64, len(r.q.concepts))
	for name, docs := range r.groups {
		for i, d := range docs {
			copy(win, d.sat)
			near := 0.0
			for j := i - 1; j >= 0 && d.Ord-docs[j].Ord <= reach; j-- {
				share := r.w[weightBefore]
				if d.Ord-docs[j].Ord == 2 {
					share = far
				}
				if d.Ord == docs[j].Ord {
					continue
				}
				near += share * docs[j].own
				r.widen(win, docs[j].sat, share)
			}
			for j := i + 1; j < len(docs) && docs[j].Ord-d.Ord <= reach; j++ {
				share := r.w[weightAfter]
				if docs[j].Ord-d.Ord == 2 {
					share = far
				}
				if d.Ord == docs[j].Ord {
					continue
				}
				near += share * docs[j].own
				r.widen(win, docs[j].sat, share)
			}
			window := 0.0
			for k, s := range win {
				window += s * r.q.concepts[k].gain
			}
			d.base = d.own + r.w[weightNear]*near + r.w[weightWindow]*(window-d.own)
			if bestSession > 0 {
				d.base += r.w[weightSession] * session[name]
			}
		}
	}
	// A document that belongs to no session, or is alone in it, is its own session.
	for _, d := range r.docs {
		if d.Group == "" || alone(&d.Doc) {
			d.base = d.own * (1 + r.w[weightSession])
		}
		if d.named {
			d.base *= 1 + r.w[weightNamed]
		}
	}
}

func (r *ranking) widen(win, sat []float64, share float64) {
	for k, s := range sat {
		win[k] = max(win[k], s*share)
	}
}

// idfOf is BM25's inverse document frequency, in a memory that is taken to have
// some ordinary documents more than it has: in one of two documents, a word that
// occurs in neither would otherwise weigh five times one that occurs in one, and
// on the first day nothing would ever fit.
func idfOf(df, docs int64) float64 {
	n := float64(docs) + 25
	return math.Log(1 + (n-float64(df)+0.5)/(float64(df)+0.5))
}
