package durable

import (
	"slices"
	"strings"
)

// Passing reports whether an error of the file system may be over the next time, whoever
// tries: the disk is full or fails, another machine's is away, or there is too little of
// what all share, such as open files. What is refused, missing or damaged is not of that kind.
func Passing(err error) bool { return err != nil && passing(err) }

// SaysPassing is [Passing] of what another program says that it has met, in the words of the
// system: programs give no number.
func SaysPassing(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(momentsInWords(), func(w string) bool { return strings.Contains(text, w) })
}
