package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What one session has to have replayed takes nothing from another, and no
// session takes more than its share.
func TestStoreIsBounded(t *testing.T) {
	s := New(time.Now)
	ctx := t.Context()
	open := func(session, stream string) {
		if err := s.Open(ctx, session, stream); err != nil {
			t.Fatal(err)
		}
	}
	add := func(session, stream, data string) {
		if err := s.Append(ctx, session, stream, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	after := func(session, stream string, index int) (out []string, err error) {
		for d, e := range s.After(ctx, session, stream, index) {
			if e != nil {
				return nil, e
			}
			out = append(out, string(d))
		}
		return out, nil
	}
	open("quiet", "")
	open("quiet", "a")
	add("quiet", "a", "one")
	add("quiet", "a", "two")
	open("loud", "")
	open("loud", "b")
	block := strings.Repeat("x", keepBytes/4)
	for i := range 12 {
		add("loud", "b", fmt.Sprint(i)+block)
	}
	if got, err := after("quiet", "a", -1); err != nil || strings.Join(got, " ") != "one two" {
		t.Errorf("the quiet one: %q %v", got, err)
	}
	if got, err := after("quiet", "a", 0); err != nil || strings.Join(got, " ") != "two" {
		t.Errorf("from its first: %q %v", got, err)
	}
	if got, err := after("quiet", "a", 9); err != nil || len(got) != 0 {
		t.Errorf("from beyond its end: %q %v", got, err)
	}
	if _, err := after("loud", "b", 2); !errors.Is(err, mcp.ErrEventsPurged) {
		t.Errorf("what was let go: %v", err)
	}
	if got, err := after("loud", "b", 10); err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "11x") {
		t.Errorf("its last: %d %v", len(got), err)
	}
	if n := s.sessions["loud"].bytes; n > keepBytes {
		t.Errorf("%d bytes are kept", n)
	}
	add("loud", "b", strings.Repeat("y", 2*keepBytes))
	if got, err := after("loud", "b", 11); err != nil || len(got) != 1 {
		t.Errorf("one event over the bound, which is the newest: %d %v", len(got), err)
	}
	for i := range 3 * keepStreams {
		open("loud", fmt.Sprint("s", i))
	}
	if n := len(s.sessions["loud"].streams); n > keepStreams {
		t.Errorf("%d streams are kept", n)
	}
	if s.sessions["loud"].streams[""] == nil {
		t.Error("the stream of the session itself was dropped")
	}
	if _, err := after("loud", "b", 12); err == nil {
		t.Error("a dropped stream is said to have nothing new")
	}
	add("loud", "b", "late") // of a call that still works: no harm
	add("nobody", "x", "late")
	if err := s.SessionClosed(ctx, "loud"); err != nil || len(s.sessions) != 1 {
		t.Errorf("after its end: %v, %d sessions", err, len(s.sessions))
	}
	if _, err := after("loud", "", -1); err == nil {
		t.Error("an ended session has events")
	}
	// Whose it is comes from the token.
	info := &auth.TokenInfo{UserID: "token:x"}
	var owner string
	auth.RequireBearerToken(func(context.Context, string, *http.Request) (*auth.TokenInfo, error) { return info, nil },
		&auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if err := s.Open(r.Context(), "owned", ""); err == nil {
			owner = s.sessions["owned"].owner
		}
	})).ServeHTTP(httptest.NewRecorder(), &http.Request{Header: http.Header{"Authorization": {"Bearer t"}}})
	if owner != "token:x" {
		t.Errorf("its owner is %q", owner)
	}
}
