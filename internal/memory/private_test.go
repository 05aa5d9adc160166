package memory

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/mdfile"
)

// reading is the store as an agent reads it.
func reading(s *Store, agent string) *Store {
	o := s.o
	o.May = func(acl []string) bool {
		for _, a := range acl {
			if a == "*" || a == "agent:"+agent {
				return true
			}
		}
		return len(acl) == 0
	}
	return New(o)
}

func keepFor(t *testing.T, s *Store, text string, acl ...string) string {
	t.Helper()
	a, err := s.Entries().Add(t.Context(), mdfile.Entry{Text: text, Source: "hand", ACL: acl})
	if err != nil {
		t.Fatal(err)
	}
	return a.ID
}

// What is an agent's own is shown to that agent and, where nobody asks whose it
// is, to the person; another agent that reads, edits or replaces the file sees
// nothing of it and takes nothing of it away.
func TestPrivateEntriesStayPrivateAndStay(t *testing.T) {
	s := newStore(t)
	keepFor(t, s, "Everyone may know that the port is 5432.")
	bob := keepFor(t, s, "Only bob knows the zebra.", "agent:bob")
	keepFor(t, s, "Everyone may know the host.")
	alice := keepFor(t, s, "Only alice knows the okapi.", "agent:alice")
	read := func(s *Store) Doc {
		t.Helper()
		d, _, err := s.Read(t.Context(), "reference-learned", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	has := func(who, text string, want map[string]bool) {
		t.Helper()
		for word, there := range want {
			if strings.Contains(text, word) != there {
				t.Errorf("%s: %q is there: %v; in\n%s", who, word, !there, text)
			}
		}
	}
	forBob, forAlice := reading(s, "bob"), reading(s, "alice")
	has("the person", read(s).Content, map[string]bool{"zebra": true, "okapi": true, "5432": true})
	d := read(forAlice)
	has("alice", d.Content, map[string]bool{"zebra": false, bob: false, "okapi": true, "5432": true, "host": true})
	has("bob", read(forBob).Content, map[string]bool{"zebra": true, "okapi": false})
	if d.Private != 1 || d.Hash != read(s).Hash || d.Lines != mdfile.CountLines([]byte(d.Content)) {
		t.Errorf("%d left out, hash %s, %d lines", d.Private, d.Hash, d.Lines)
	}
	// A guess at what is hidden finds nothing.
	if _, err := forAlice.Update(t.Context(), UpdateBlock{Name: "reference-learned", OldText: "Only bob knows", NewText: "x"}); err == nil || !strings.Contains(err.Error(), "not in it") {
		t.Errorf("a passage of another's entry: %v", err)
	}
	if text, _, err := forAlice.Section(t.Context(), "reference-learned", "Learned"); err != nil || strings.Contains(text, "zebra") {
		t.Errorf("its section: %v\n%s", err, text)
	}
	// A stale version shows what is there now, and no more than a read would.
	_, err := forAlice.Update(t.Context(), UpdateBlock{Name: "reference-learned", Content: "# New\n", IfHash: "sha256:" + strings.Repeat("0", 64)})
	var stale *StaleError
	if !errors.As(err, &stale) || strings.Contains(stale.Current.Content, "zebra") || !strings.Contains(stale.Current.Content, "okapi") {
		t.Errorf("stale: %v", err)
	}
	if _, err := forAlice.Update(t.Context(), UpdateBlock{Name: "reference-learned", OldText: "the host", NewText: "the guest", IfHash: d.Hash}); err != nil {
		t.Fatal(err)
	}
	has("after a passage was replaced", read(s).Content, map[string]bool{"zebra": true, "okapi": true, "5432": true, "the guest": true})
	w, err := forAlice.Update(t.Context(), UpdateBlock{Name: "reference-learned", Content: "# All anew\n"})
	if err != nil || w.Unchanged {
		t.Fatal(w, err)
	}
	has("after all was replaced", read(s).Content, map[string]bool{"zebra": true, "okapi": false, "5432": false, "All anew": true})
	if i, err := s.Entries().Get(t.Context(), bob); err != nil || i.Edited || i.Text != "Only bob knows the zebra." {
		t.Errorf("bob's entry: %+v %v", i, err)
	}
	if _, err := s.Entries().Get(t.Context(), alice); !errors.Is(err, ErrNotFound) {
		t.Errorf("alice took her own out, and it is there: %v", err)
	}
	if again, err := forAlice.Update(t.Context(), UpdateBlock{Name: "reference-learned", Content: "# All anew\n"}); err != nil || !again.Unchanged {
		t.Errorf("the same again: %+v %v", again, err)
	}
	// Why something was forgotten is told to whom it was told.
	if _, err := s.Entries().Retire(t.Context(), bob, "user", "the zebra has left"); err != nil {
		t.Fatal(err)
	}
	has("the tombstone", read(forAlice).Content, map[string]bool{"zebra": false})
	if st, err := s.Entries().State(t.Context(), bob); err != nil || st.Status != mdfile.StatusRetired {
		t.Errorf("%+v %v", st, err)
	}
}

// A file of entries with bytes that are no text is read, added to and forgotten
// from, and keeps its bytes; Problems and Check name the line.
func TestDamagedEntriesAreKeptAndUsed(t *testing.T) {
	for _, bad := range []string{"\x00", "\xe9", "\xff\xff"} {
		s := newStore(t)
		first := keepFor(t, s, "The port is 5432.")
		keepFor(t, s, "The host is alpha.")
		file := filepath.Join(s.Dir(), "blocks", "reference-learned.md")
		text := get(t, s, "blocks/reference-learned.md")
		damaged := strings.Replace(text, "is alpha", "is "+bad+"alpha", 1)
		put(t, s, "blocks/reference-learned.md", damaged)
		e := s.Entries()
		list, err := e.List(t.Context())
		if err != nil || len(list) != 2 || list[0].ID != first || list[0].Edited {
			t.Fatalf("%q: %+v %v", bad, list, err)
		}
		line := strings.Count(damaged[:strings.Index(damaged, bad)], "\n") + 1
		problems, err := e.Problems(t.Context())
		if err != nil || len(problems) != 1 || problems[0].Line != line {
			t.Errorf("%q: problems %+v %v; want line %d", bad, problems, err, line)
		}
		d, _, err := s.Read(t.Context(), "reference-learned", 0, 0)
		if err != nil || !strings.Contains(d.Content, "is \uFFFDalpha") || len(d.Damage) != 1 || d.Damage[0].Line != line {
			t.Errorf("%q: %+v %v", bad, d, err)
		}
		r, err := s.Check(t.Context())
		if err != nil || r.OK() || len(r.Findings) != 1 || r.Findings[0].Line != line || r.Findings[0].Code != "text.damaged" {
			t.Errorf("%q: %+v %v", bad, r, err)
		}
		third := keepFor(t, s, "The door is blue.")
		if _, err := e.Retire(t.Context(), first, "user", ""); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(raw), "is "+bad+"alpha") || strings.Contains(string(raw), "5432") {
			t.Errorf("%q: %v\n%q", bad, err, raw)
		}
		if i, err := e.Get(t.Context(), third); err != nil || i.Edited {
			t.Errorf("%q: %+v %v", bad, i, err)
		}
		if _, err := s.Update(t.Context(), UpdateBlock{Name: "reference-learned", Content: "x"}); !errors.Is(err, ErrContent) {
			t.Errorf("%q: replaced: %v", bad, err)
		}
	}
}

// Writing to a file in another encoding would not keep its bytes.
func TestEntriesInUTF16AreReadOnly(t *testing.T) {
	s := newStore(t)
	_, raw := mdfile.Entry{Type: mdfile.TypeLearning, Time: time.Unix(1e9, 0), Text: "The port is 5432."}.Render()
	wide := []byte{0xff, 0xfe}
	for _, c := range raw {
		wide = append(wide, c, 0)
	}
	put(t, s, "blocks/reference-learned.md", string(wide))
	if list, err := s.Entries().List(t.Context()); err != nil || len(list) != 1 || list[0].Text != "The port is 5432." {
		t.Errorf("%+v %v", list, err)
	}
	if _, err := s.Entries().Add(t.Context(), mdfile.Entry{Text: "x"}); !errors.Is(err, ErrContent) || !strings.Contains(err.Error(), "UTF-16") {
		t.Error(err)
	}
	if get(t, s, "blocks/reference-learned.md") != string(wide) {
		t.Error("its bytes changed")
	}
}
