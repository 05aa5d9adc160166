package git

import (
	"errors"
	"slices"
	"strings"

	"reprise/internal/durable"
)

// Passing is durable.Passing also of what git has met, and says in words.
func Passing(err error) bool {
	var said *Error
	return durable.Passing(err) || errors.As(err, &said) && (durable.SaysPassing(said.Stderr) || full(said.Stderr))
}

// full says that git could write no more, in words of its own for a full disk: the system's are
// not in them. Where it gives another reason, that counts.
func full(stderr string) bool {
	text := strings.ToLower(stderr)
	if strings.Contains(text, "permission denied") || strings.Contains(text, "read-only") {
		return false
	}
	return slices.ContainsFunc([]string{"out of diskspace", "couldn't write '", "unable to write new index file", "unable to write new_index file"}, func(w string) bool { return strings.Contains(text, w) })
}
