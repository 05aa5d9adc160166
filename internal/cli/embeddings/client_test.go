package embeddings

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestNew(t *testing.T) {
	for _, c := range [][2]string{{"", "m"}, {"localhost:11434", "m"}, {"ftp://x/v1", "m"}, {"http://", "m"}, {"http://x/v1", ""}, {"http://u:secret@x/v1", "m"}, {"http://x y", "m"}} {
		if _, err := New(c[0], c[1], ""); err == nil {
			t.Errorf("%q, %q: no error", c[0], c[1])
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

// TestEmbed: what is sent, in which order it comes back, and what is said of
// answers that are none.
func TestEmbed(t *testing.T) {
	answer, status := "", http.StatusOK
	var got struct {
		path, auth string
		Model      string   `json:"model"`
		Input      []string `json:"input"`
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the key followed a redirect") }))
	defer elsewhere.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.path, got.auth = r.URL.Path, r.Header.Get("Authorization")
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer srv.Close()
	for _, base := range []string{srv.URL + "/v1", srv.URL + "/v1/", srv.URL + "/v1/embeddings"} {
		e, err := New(base, "small", "k")
		if err != nil {
			t.Fatal(err)
		}
		answer = `{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,0]}],"usage":{}}`
		vs, err := e.Embed(t.Context(), []string{"a", "b"})
		if err != nil || !slices.Equal(vs[0], []float32{1, 0}) || !slices.Equal(vs[1], []float32{0, 1}) {
			t.Errorf("%s: %v, %v", base, vs, err)
		}
		if got.path != "/v1/embeddings" || got.auth != "Bearer k" || got.Model != "small" || !slices.Equal(got.Input, []string{"a", "b"}) || e.Name() != "small" {
			t.Errorf("%s: sent %+v", base, got)
		}
	}
	e, err := New(srv.URL, "m", "")
	if err != nil {
		t.Fatal(err)
	}
	answer = `{"data":[{"embedding":[1]},{"embedding":[2]}]}` // without numbers: in order
	if vs, err := e.Embed(t.Context(), []string{"a", "b"}); err != nil || vs[1][0] != 2 || got.auth != "" {
		t.Errorf("%v, %v, %q", vs, err, got.auth)
	}
	for _, c := range []struct {
		status       int
		answer, want string
	}{
		{200, ``, "something else"}, {200, `<html>`, "something else"}, {200, `{"data":[]}`, "no vector for text 1"},
		{200, `{"data":[{"index":0,"embedding":[1]}]}`, "no vector for text 2"}, {200, `{"data":[{"index":7,"embedding":[1]}]}`, "number 7"},
		{200, `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`, "number 0"}, {200, `{"data":[{"index":-1,"embedding":[1]}]}`, "number -1"},
		{404, `{"error":"model \"m\" not found"}`, "not found"}, {500, "", "no more"}, {302, "", "302"},
	} {
		status, answer = c.status, c.answer
		if _, err := e.Embed(t.Context(), []string{"a", "b"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d %s: got %v, want %q in it", c.status, c.answer, err, c.want)
		}
	}
}
