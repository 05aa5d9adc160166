package config

import (
	"fmt"
	"strings"
)

// CommandLine is the File of an Error about what a command was given.
const CommandLine = "command line"

// Error is one thing that is wrong with the settings, and where.
type Error struct {
	File    string // path, [CommandLine], or "environment" for a variable
	Line    int    // from 1; 0 when the problem is not at one place
	Column  int    // from 1, in characters
	Key     string // "sub_agent.sync_window_seconds", or a variable's name
	Problem string // what is wrong
	Remedy  string // what to do about it
	Err     error  // cause, may be nil
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(e.Problem)
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Errors are all problems found in one file, in the order of the file.
type Errors []*Error

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the first *Error.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// err returns nil, the only problem, or all of them.
func (es Errors) err() error {
	switch len(es) {
	case 0:
		return nil
	case 1:
		return es[0]
	}
	return es
}
