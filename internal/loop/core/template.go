package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// BootstrapError says what is wrong with a template.
type BootstrapError struct {
	Line    int // from 1; 0 where it is about the whole
	Problem string
}

func (e *BootstrapError) Error() string {
	if e.Line == 0 {
		return "bootstrap template: " + e.Problem
	}
	return fmt.Sprintf("bootstrap template, line %d: %s", e.Line, e.Problem)
}

// maxBootstrap bounds what a session's system prompt is made of, in bytes.
const maxBootstrap = 1 << 20

// Render fills a template in. It is strict: a variable that there is not is an error,
// for the session would otherwise begin with a hole in what it is told. What is filled
// in is not looked at again.
func Render(template string, vars map[string]string) (string, error) {
	if strings.TrimSpace(template) == "" {
		return "", &BootstrapError{Problem: "it is empty"}
	}
	if len(template) > maxBootstrap {
		return "", &BootstrapError{Problem: fmt.Sprintf("it has %d bytes, the most is %d", len(template), maxBootstrap)}
	}
	var b strings.Builder
	rest, line := template, 1
	for {
		before, after, ok := strings.Cut(rest, "{{")
		b.WriteString(before)
		line += strings.Count(before, "\n")
		if !ok {
			return b.String(), nil
		}
		name, tail, ok := strings.Cut(after, "}}")
		if !ok || strings.ContainsAny(name, "\n{") {
			return "", &BootstrapError{line, `"{{" has no "}}" on its line`}
		}
		value, known := vars[strings.TrimSpace(name)]
		if !known {
			return "", &BootstrapError{line, fmt.Sprintf("there is no variable %q; there are %s", strings.TrimSpace(name), strings.Join(slices.Sorted(maps.Keys(vars)), ", "))}
		}
		b.WriteString(value)
		rest = tail
	}
}
