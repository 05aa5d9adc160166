package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"reprise/internal/cli/embeddings"
	"reprise/internal/recall"
)

// embedOptions say where embeddings come from; without a URL there are none.
type embedOptions struct {
	url, model, keyVar string
}

// vectors makes the vectors of all documents and returns those of the
// questions, by project and id.
func (o *embedOptions) vectors(ctx context.Context, x *recall.Index, set *evalSet, errOut io.Writer) (map[[2]string][]float32, error) {
	if o.url == "" {
		return nil, nil
	}
	key := ""
	if o.keyVar != "" {
		key = os.Getenv(o.keyVar)
	}
	e, err := embeddings.New(o.url, o.model, key)
	if err != nil {
		return nil, err
	}
	o.model = e.Name()
	n, err := x.EmbedMissing(ctx, e, len(set.docs))
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(errOut, "eval: %d documents embedded by %s\n", n, e.Name())
	out := map[[2]string][]float32{}
	for i := 0; i < len(set.questions); i += 32 {
		qs := set.questions[i:min(i+32, len(set.questions))]
		texts := make([]string, len(qs))
		for j, q := range qs {
			texts[j] = q.Text
		}
		vs, err := recall.Embed(ctx, e, texts)
		if err != nil {
			return nil, err
		}
		for j, q := range qs {
			out[q.key()] = vs[j]
		}
	}
	return out, nil
}
