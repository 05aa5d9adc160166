package git_test

import (
	"errors"
	"fmt"
	"testing"

	"reprise/internal/git"
)

func TestPassing(t *testing.T) {
	said := func(text string) error { return fmt.Errorf("make workspace: %w", &git.Error{Stderr: text}) }
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{said("fatal: cannot create directory at 'a': No space left on device"), true},
		{said("error: open(\"a\"): Too many open files"), true},
		{said("fatal: 'a' already exists"), false},
		{errors.New("an item that is called: no space left on device"), false},
	} {
		if got := git.Passing(c.err); got != c.want {
			t.Errorf("Passing(%v) = %v", c.err, got)
		}
	}
}
