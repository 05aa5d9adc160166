package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Embedder makes vectors of texts. What it stands for is outside this package:
// nothing here opens a connection.
type Embedder interface {
	// Embed returns one vector for each text, all of one length.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Name says which model the vectors are of: those of two models cannot be
	// compared.
	Name() string
}

const (
	embedBatch  = 32              // texts of one request
	embedWait   = 5 * time.Second // for the vector of a question
	embedLength = 2000            // characters of a document that are embedded
	vectorsBest = 60              // nearest documents that take part in a ranking
	fusion      = 60              // the constant of reciprocal rank fusion
)

// EmbedMissing makes vectors of at most most documents that have none of the
// embedder's model, the newest first, and returns how many it made. What was
// made is kept batch by batch, so that a call that is cut short has lost one
// batch at most, and the next goes on where it ended.
func (x *Index) EmbedMissing(ctx context.Context, e Embedder, most int) (done int, err error) {
	for done < most {
		var ids, texts []string
		err := x.View(ctx, func(tx *Tx) error {
			ids, texts = nil, nil // View may run this twice
			return tx.WithoutVector(e.Name(), min(embedBatch, most-done), func(d Doc) bool {
				ids, texts = append(ids, d.ID), append(texts, embedded(d))
				return true
			})
		})
		if err != nil || len(ids) == 0 {
			return done, err
		}
		vs, err := Embed(ctx, e, texts)
		if err != nil {
			return done, err
		}
		err = x.Update(ctx, func(tx *Tx) error {
			for i, id := range ids {
				if err := tx.PutVector(id, e.Name(), vs[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return done, err
		}
		done += len(ids)
	}
	return done, nil
}

// withVector adds a question's vector, where there is an embedder and the
// question has none. Half of the time that is left is spent on it at most: an
// answer by words is better than none.
func (x *Index) withVector(ctx context.Context, q Question) Question {
	if x.o.Embedder == nil || len(q.Vector) > 0 || strings.TrimSpace(q.Text) == "" {
		return q
	}
	wait := embedWait
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, end.Sub(x.o.Now())/2)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	vs, err := Embed(ctx, x.o.Embedder, []string{embedded(Doc{Text: q.Text})})
	if err != nil {
		if x.o.EmbedFailed != nil {
			x.o.EmbedFailed(err)
		}
		return q
	}
	q.Vector, q.VectorModel = vs[0], x.o.Embedder.Name()
	return q
}

// Embed asks for vectors and checks that they can be used.
func Embed(ctx context.Context, e Embedder, texts []string) ([][]float32, error) {
	vs, err := e.Embed(ctx, texts)
	if err != nil {
		return nil, fmt.Errorf("embeddings of %s: %w", e.Name(), err)
	}
	if len(vs) != len(texts) {
		return nil, fmt.Errorf("embeddings of %s: %d vectors for %d texts", e.Name(), len(vs), len(texts))
	}
	for _, v := range vs {
		if len(v) == 0 || len(v) != len(vs[0]) {
			return nil, fmt.Errorf("embeddings of %s: vectors of %d and of %d numbers", e.Name(), len(vs[0]), len(v))
		}
		if norm(v) == 0 {
			return nil, fmt.Errorf("embeddings of %s: %w", e.Name(), errNoDirection)
		}
	}
	return vs, nil
}

var errNoDirection = errors.New("a vector is all zeros or has a number that is none")

// embedded is the text that a document's vector is made of.
func embedded(d Doc) string {
	var b strings.Builder
	if d.Title != "" {
		b.WriteString(d.Title + "\n")
	}
	if d.Author != "" {
		b.WriteString(d.Author + ": ")
	}
	b.WriteString(d.Text)
	s := b.String()
	if utf8.RuneCountInString(s) > embedLength {
		s = string([]rune(s)[:embedLength])
	}
	if strings.TrimSpace(s) == "" {
		return "-" // endpoints refuse an empty text
	}
	return s
}

func norm(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return 0
	}
	return math.Sqrt(sum)
}

type similar struct {
	id  string
	sim float64
}

// addNearest brings in the documents whose vectors are nearest to the
// question's, and notes on each how near it is.
func (r *ranking) addNearest() error {
	if len(r.Vector) == 0 || r.w[weightVectors] <= 0 {
		return nil
	}
	length := norm(r.Vector)
	if length == 0 {
		return nil
	}
	var best []similar
	n, sum, squares := 0, 0.0, 0.0
	order := func(a, b similar) int { return cmp.Or(cmp.Compare(b.sim, a.sim), strings.Compare(a.id, b.id)) }
	err := r.g.vectors(r.VectorModel, func(id string, v []float32) {
		l := norm(v)
		if len(v) != len(r.Vector) || l == 0 {
			return
		}
		dot := 0.0
		for i, x := range v {
			dot += float64(x) * float64(r.Vector[i])
		}
		s := similar{id, dot / l / length}
		n, sum, squares = n+1, sum+s.sim, squares+s.sim*s.sim
		if len(best) == vectorsBest && order(s, best[len(best)-1]) >= 0 {
			return
		}
		at, _ := slices.BinarySearchFunc(best, s, order)
		best = slices.Insert(best, at, s)
		best = best[:min(len(best), vectorsBest)]
	})
	if err != nil || n == 0 {
		return err
	}
	mean := sum / float64(n)
	spread := math.Sqrt(max(squares/float64(n)-mean*mean, 1e-12))
	var missing []string
	for _, s := range best {
		if r.byID[s.id] == nil {
			missing = append(missing, s.id)
		}
	}
	found, err := r.g.byID(missing...)
	if err != nil {
		return err
	}
	for _, c := range found {
		r.add(c)
	}
	rank := 0
	for _, s := range best {
		if d := r.byID[s.id]; d != nil {
			rank++
			// How far out of the crowd it is: models differ in what a
			// similarity of .7 means, but not in this.
			d.vrank, d.vector = rank, (s.sim-mean)/spread
		}
	}
	return nil
}

// fuse joins the order by words with the order by vectors. Afterwards scores
// are those of reciprocal rank fusion, times a number that keeps them readable.
func (r *ranking) fuse() {
	w := r.w[weightVectors]
	if len(r.Vector) == 0 || w <= 0 {
		return
	}
	for i, d := range r.docs {
		s := 0.0
		if d.score > 0 {
			s = 1 / float64(fusion+i+1)
		}
		if d.vrank > 0 {
			s += w / float64(fusion+d.vrank)
			d.quality = max(d.quality, min(1, max(0, (d.vector-1.5)/4)))
			if d.signals != nil {
				d.signals["vectors"] = round(d.vector)
			}
		}
		d.score = s * fusion
	}
}
