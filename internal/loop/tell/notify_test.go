package tell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/proc"
)

// TestNotices: a person is told in each way, signed where there is a key, and not
// oftener than wanted.
func TestNotices(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if Sign("key", r.Header.Get("X-Reprise-Timestamp"), body) != r.Header.Get("X-Reprise-Signature") {
			http.Error(w, "not signed", http.StatusForbidden)
			return
		}
		var n Notice
		if err := json.Unmarshal(body, &n); err != nil {
			t.Error(err)
		}
		got = append(got, n.Kind+" "+n.Text)
	}))
	defer server.Close()
	var ran []string
	now := time.Date(2026, 1, 28, 22, 0, 0, 0, time.UTC)
	n := &Notifier{
		Desktop: true, Command: "tell", Webhook: server.URL, Secret: "key", Mail: "a@example.org", PerHour: 2, GOOS: "linux", Now: func() time.Time { return now },
		LookPath: func(name string) (string, error) { return "/bin/" + name, nil },
		Run: func(_ context.Context, c proc.Cmd, input string) error {
			ran = append(ran, filepath.Base(c.Path)+" "+strings.Join(c.Args, " ")+" "+input)
			if filepath.Base(c.Path) == "sh" && !slices.Contains(c.Env, "REPRISE_NOTICE_TEXT=which; $(rm)") && !strings.Contains(strings.Join(c.Env, "\n"), "not sent") {
				t.Errorf("environment %q", c.Env)
			}
			return nil
		},
		Post: func(ctx context.Context, url string, header map[string]string, body []byte) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
			if err != nil {
				return err
			}
			for k, v := range header {
				req.Header.Set(k, v)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				return errors.New(res.Status)
			}
			return nil
		},
	}
	for range 4 {
		if err := n.Send(t.Context(), Notice{Kind: "agent", Text: "which; $(rm)", Project: "shop\nBcc: x"}); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 2 || len(ran) != 6 {
		t.Fatalf("%d posts, %d programs: %q", len(got), len(ran), ran)
	}
	now = now.Add(time.Hour)
	if err := n.Send(t.Context(), Notice{Kind: "agent", Text: "again"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got[2], "2 notices before this were not sent") {
		t.Errorf("%q", got[2])
	}
	for _, line := range ran {
		if strings.HasPrefix(line, "sendmail") && strings.Contains(strings.SplitN(line, "\n\n", 2)[0], "\nBcc:") {
			t.Errorf("a project's name becomes a header: %q", line)
		}
	}
	n.Secret, n.Command = "other", ""
	if err := n.Send(t.Context(), Notice{Kind: "agent"}); err == nil || !strings.Contains(err.Error(), "webhook: 403") {
		t.Errorf("a receiver that refuses: %v", err)
	}
}
