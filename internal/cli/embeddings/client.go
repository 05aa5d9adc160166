// Package embeddings asks an endpoint for vectors of texts, in the form of
// OpenAI's embeddings API, which Ollama, llama.cpp, vLLM and others serve too.
// It writes no files and takes no lock. Texts go to the endpoint that the user named, and to no
// other; without one, nothing in reprise calls it.
package embeddings

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"reprise/internal/recall"
)

const (
	timeout    = 60 * time.Second // of one request; a local model may have to load first
	mostAnswer = 64 << 20         // bytes of an answer that are read
)

type client struct {
	endpoint, model, key string
	http                 *http.Client
}

// New makes vectors by POST {base}/embeddings. key may be empty.
func New(base, model, key string) (recall.Embedder, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("embeddings: %q is no http or https URL, such as http://localhost:11434/v1", base)
	}
	if model == "" {
		return nil, errors.New("embeddings: no model is named")
	}
	if u.User != nil {
		return nil, errors.New("embeddings: put the key into its own setting, not into the URL")
	}
	if !strings.HasSuffix(u.Path, "/embeddings") {
		u = u.JoinPath("embeddings")
	}
	return &client{endpoint: u.String(), model: model, key: key, http: &http.Client{
		Timeout: timeout,
		// The key goes where the user said, and nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Name is the model's.
func (e *client) Name() string { return e.model }

// Embed returns one vector for each text.
func (e *client) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": e.model, "input": texts, "encoding_format": "float"})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if e.key != "" {
		req.Header.Set("Authorization", "Bearer "+e.key)
	}
	res, err := e.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, mostAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", e.endpoint, err)
	}
	if res.StatusCode != http.StatusOK {
		text := strings.Join(strings.Fields(strings.ToValidUTF8(string(data[:min(len(data), 300)]), "")), " ")
		return nil, fmt.Errorf("%s answered %s: %s", e.endpoint, res.Status, cmp.Or(text, "no more"))
	}
	var out struct {
		Data []struct {
			Index     *int      `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("%s answered something else than embeddings: %w", e.endpoint, err)
	}
	vs := make([][]float32, len(texts))
	for i, d := range out.Data {
		at := i // servers that leave the index out answer in order
		if d.Index != nil {
			at = *d.Index
		}
		if at < 0 || at >= len(vs) || vs[at] != nil {
			return nil, fmt.Errorf("%s answered a vector number %d for %d texts", e.endpoint, at, len(texts))
		}
		vs[at] = d.Embedding
	}
	if i := slices.IndexFunc(vs, func(v []float32) bool { return len(v) == 0 }); i >= 0 {
		return nil, fmt.Errorf("%s answered no vector for text %d of %d", e.endpoint, i+1, len(texts))
	}
	return vs, nil
}
