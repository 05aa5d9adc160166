package durable_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"reprise/internal/durable"
)

func TestPassing(t *testing.T) {
	_, missing := os.Open(filepath.Join(t.TempDir(), "nothing"))
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{missing, false},
		{fs.ErrPermission, false},
		{durable.ErrNotRegular, false},
		{full(), true},
		{fmt.Errorf("write item: %w", full()), true},
		{errors.New("no space left on device"), false},
	} {
		if got := durable.Passing(c.err); got != c.want {
			t.Errorf("Passing(%v) = %v", c.err, got)
		}
	}
	for text, want := range map[string]bool{
		"fatal: cannot create directory at 'a': No space left on device": true,
		"fatal: 'a' already exists":                                      false,
		"":                                                               false,
	} {
		if got := durable.SaysPassing(text); got != want {
			t.Errorf("SaysPassing(%q) = %v", text, got)
		}
	}
}
