package recall

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

// themes is an embedder that knows two themes.
type themes struct {
	calls, most int
	fail        error
	short       bool
}

func (e *themes) Name() string { return "themes" }

func (e *themes) Embed(_ context.Context, texts []string) ([][]float32, error) {
	e.calls++
	e.most = max(e.most, len(texts))
	if e.fail != nil {
		return nil, e.fail
	}
	var out [][]float32
	for i, t := range texts {
		v := []float32{.2, .2, float32(i%3) / 10}
		if strings.Contains(t, "zymurgy") || strings.Contains(t, "homemade ale") {
			v = []float32{1, 0, 0}
		}
		out = append(out, v)
	}
	if e.short {
		return out[1:], nil
	}
	return out, nil
}

func TestEmbedMissing(t *testing.T) {
	docs := append(filler(70), Doc{ID: "beer", Text: "She took up zymurgy."}, Doc{ID: "empty"})
	x := memoryOf(t, docs...)
	e := &themes{}
	for _, want := range []int{40, 32, 0} {
		n, err := x.EmbedMissing(t.Context(), e, 40)
		if err != nil || n != want {
			t.Fatalf("%d embedded, want %d: %v", n, want, err)
		}
	}
	if e.most > embedBatch {
		t.Errorf("%d texts in one request", e.most)
	}
	q := Question{Text: "Does anybody produce homemade ale?"}
	if got := answerIDs(recallFrom(t, x, q)); got != "" {
		t.Errorf("by words: %q", got)
	}
	x.o.Embedder = e
	if got := answerIDs(recallFrom(t, x, q)); !strings.HasPrefix(got, "beer") {
		t.Errorf("with vectors: %q", got)
	}
	// What words find is still found.
	if got := answerIDs(recallFrom(t, x, Question{Text: "zymurgy"})); !strings.HasPrefix(got, "beer") {
		t.Errorf("with vectors, by a word: %q", got)
	}
}

// TestEmbedderFails: the answer is by words then, and the failure is told.
func TestEmbedderFails(t *testing.T) {
	x := memoryOf(t, append(filler(30), Doc{ID: "port", Text: "The development Postgres listens on port 5544."})...)
	for name, e := range map[string]*themes{"an error": {fail: errors.New("no route")}, "too few vectors": {short: true}} {
		told := 0
		x.o.Embedder, x.o.EmbedFailed = e, func(err error) { told++ }
		if got := answerIDs(recallFrom(t, x, Question{Text: "Which port does Postgres listen on in development?"})); got != "port" || told != 1 {
			t.Errorf("%s: got %q, told %d times", name, got, told)
		}
		if n, err := x.EmbedMissing(t.Context(), e, 5); err == nil || n != 0 {
			t.Errorf("%s: %d embedded, %v", name, n, err)
		}
	}
}

// TestBadVectors: numbers that cannot be compared are refused before they are kept.
func TestBadVectors(t *testing.T) {
	for _, v := range [][][]float32{{{}}, {{0, 0}}, {{float32(math.NaN())}}, {{float32(math.Inf(1)), 1}}, {{1}, {1, 2}}} {
		if _, err := Embed(t.Context(), fixed(v), make([]string, len(v))); err == nil {
			t.Errorf("%v: no error", v)
		}
	}
}

type fixed [][]float32

func (f fixed) Name() string                                         { return fmt.Sprint(len(f)) }
func (f fixed) Embed(context.Context, []string) ([][]float32, error) { return f, nil }
