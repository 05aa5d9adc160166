//go:build unix

package queue_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"reprise/internal/queue"
)

// A pipe, or a file that may not be read, in an item's place is named and holds up neither
// the other items nor who looks at it.
func TestWhatCannotBeOpened(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(file string) error{
		"a pipe": func(file string) error {
			if err := os.Remove(file); err != nil {
				return err
			}
			return syscall.Mkfifo(file, 0o600)
		},
		"no right to read it": func(file string) error { return os.Chmod(file, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "no right to read it" && os.Geteuid() == 0 {
				t.Skip("root may read everything")
			}
			dir := t.TempDir()
			q := files(unsynced(), dir, at(0))
			for _, id := range []string{"first", "second"} {
				if _, err := q.Add(t.Context(), queue.Item{ID: id, Title: "x"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := spoil(one(t, filepath.Join(dir, "queue", "ready"), "~first.json")); err != nil {
				t.Fatal(err)
			}
			c, err := q.Claim(t.Context(), queue.ClaimOptions{})
			if err != nil || c.Item.ID != "second" {
				t.Fatalf("claimed %q: %v", c.Item.ID, err)
			}
			list, err := q.List(t.Context(), queue.Filter{})
			if err != nil || len(list.Items) != 1 || list.Items[0].ID != "second" || len(list.Trouble) != 1 {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
}

// What lies in the place of a directory is named, and nobody waits at it.
func TestPipeForADirectory(t *testing.T) {
	t.Parallel()
	for _, s := range queue.States() {
		dir := t.TempDir()
		q := files(unsynced(), dir, at(0))
		if _, err := q.Add(t.Context(), queue.Item{ID: "first", Title: "x"}); err != nil {
			t.Fatal(err)
		}
		place := filepath.Join(dir, "queue", string(s))
		if err := os.RemoveAll(place); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(place, 0o600); err != nil {
			t.Fatal(err)
		}
		q = files(unsynced(), dir, at(0)) // another process, which has seen nothing yet
		_, list := q.List(t.Context(), queue.Filter{})
		_, add := q.Add(t.Context(), queue.Item{ID: "second", Title: "x"})
		wait := q.Wait(t.Context(), queue.ClaimOptions{})
		for name, err := range map[string]error{"list": list, "add": add, "wait": wait} {
			if !errors.Is(err, syscall.ENOTDIR) || !strings.Contains(err.Error(), place) || queue.ForNow(err) {
				t.Errorf("%s: %s: %v", s, name, err)
			}
		}
		rep, err := q.Check(t.Context(), false)
		if err != nil || !slices.ContainsFunc(rep.Problems, func(p queue.Problem) bool { return p.Where == place }) {
			t.Errorf("%s: check: %+v, %v", s, rep, err)
		}
	}
}
