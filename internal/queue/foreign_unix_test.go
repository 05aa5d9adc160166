//go:build unix

package queue_test

import (
	"os"
	"path/filepath"
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
