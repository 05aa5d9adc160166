package delegation

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func add(c Count, err error) (Count, error) {
	if err != nil && !errors.Is(err, ErrMissing) {
		return c, err
	}
	c.Role = Conductor
	c, _ = c.Next(Work, Limits{})
	return c, nil
}

func TestCountsAreKept(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "delegation")}
	if _, err := s.Load("claude", "s1"); !errors.Is(err, ErrMissing) {
		t.Fatalf("load before anything: %v, want ErrMissing", err)
	}
	for range 3 {
		if err := s.Update(t.Context(), "claude", "s1", add); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Update(t.Context(), "codex", "s1", add); err != nil {
		t.Fatal(err)
	}
	want := Count{Client: "claude", Session: "s1", Role: Conductor, Work: 3, Total: 3}
	if got, err := s.Load("claude", "s1"); err != nil || got != want {
		t.Fatalf("load: %+v, %v; want %+v", got, err, want)
	}
	list, damaged, err := s.List()
	if err != nil || len(list) != 2 || len(damaged) != 0 {
		t.Fatalf("list: %v, %v, %v; want two counts", list, damaged, err)
	}
}

func TestNothingIsWrittenWhenItFails(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	if err := s.Update(t.Context(), "claude", "s1", add); err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	if err := s.Update(t.Context(), "claude", "s1", func(Count, error) (Count, error) { return Count{}, no }); !errors.Is(err, no) {
		t.Fatalf("update: %v, want its function's error", err)
	}
	if got, err := s.Load("claude", "s1"); err != nil || got.Work != 1 {
		t.Fatalf("load: %+v, %v; want 1", got, err)
	}
}

// Calls that a client makes at the same time are all counted.
func TestCallsAtTheSameTime(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := s.Update(context.Background(), "claude", "s1", add); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, err := s.Load("claude", "s1"); err != nil || got.Work != 20 {
		t.Fatalf("load: %+v, %v; want 20", got, err)
	}
}

// No edit of a file is taken for a count: not a byte changed, left out or put
// in, nor another session's file in its place.
func TestDamageIsSeen(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	for range 12 {
		if err := s.Update(t.Context(), "claude", "s1", add); err != nil {
			t.Fatal(err)
		}
	}
	file := s.File("claude", "s1")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	put := func(what string, data []byte) {
		t.Helper()
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := s.Load("claude", "s1"); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%s: %+v, %v; want ErrDamaged", what, c, err)
		}
		called := false
		err := s.Update(t.Context(), "claude", "s1", func(c Count, err error) (Count, error) {
			called = true
			if !errors.Is(err, ErrDamaged) || c.Work != 0 {
				t.Fatalf("%s: update was given %+v, %v; want ErrDamaged", what, c, err)
			}
			return c, err
		})
		if !called || !errors.Is(err, ErrDamaged) {
			t.Fatalf("%s: update: %v", what, err)
		}
	}
	for i := range good {
		flipped := bytes.Clone(good)
		flipped[i] ^= 1
		put("a bit", flipped)
		put("a byte less", append(bytes.Clone(good[:i]), good[i+1:]...))
		put("the rest gone", good[:i])
	}
	put("a line more", append(bytes.Clone(good), '\n'))
	if err := s.Update(t.Context(), "codex", "s1", add); err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(s.File("codex", "s1"))
	if err != nil {
		t.Fatal(err)
	}
	put("another session's", other)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(s.File("codex", "s1"), file); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load("claude", "s1"); !errors.Is(err, ErrDamaged) {
		t.Fatalf("a link: %v, want ErrDamaged", err)
	}
	if _, damaged, err := s.List(); err != nil || len(damaged) != 1 {
		t.Fatalf("list: %v, %v; want one damaged file", damaged, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Count{Client: "claude", Session: "s", Role: Conductor, Work: 1, Total: 2}.encode())
	f.Add([]byte(head + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := decode(data)
		if err == nil && !bytes.Equal(c.encode(), data) {
			t.Fatalf("%q was taken for %+v", data, c)
		}
	})
}
