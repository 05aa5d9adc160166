package git

import (
	"errors"

	"reprise/internal/durable"
)

// Passing is durable.Passing also of what git has met, and says in words.
func Passing(err error) bool {
	var said *Error
	return durable.Passing(err) || errors.As(err, &said) && durable.SaysPassing(said.Stderr)
}
