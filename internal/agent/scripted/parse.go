package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Error is a fault in a file of steps.
type Error struct {
	File         string
	Line, Column int // from 1; 0 unknown
	Problem      string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Problem)
}

// step is one action of a script.
type step struct {
	name string
	line int
	do   action
}

// action plays a step. A code of 0 and above ends the script with it.
type action interface {
	play(*player) (code int, err error)
}

// kinds makes an empty action of each kind.
func kinds() map[string]func() action {
	return map[string]func() action{
		"say":       func() action { return new(sayStep) },
		"when":      func() action { return new(whenStep) },
		"delay":     func() action { return new(delayStep) },
		"echo":      func() action { return new(echoStep) },
		"write":     func() action { return new(writeStep) },
		"read":      func() action { return new(readStep) },
		"shell":     func() action { return new(shellStep) },
		"tool":      func() action { return new(toolStep) },
		"denied":    func() action { return new(deniedStep) },
		"flood":     func() action { return new(floodStep) },
		"long_line": func() action { return new(longLineStep) },
		"stderr":    func() action { return new(stderrStep) },
		"raw":       func() action { return new(rawStep) },
		"partial":   func() action { return new(partialStep) },
		"api_retry": func() action { return new(apiRetryStep) },
		"api_error": func() action { return new(apiErrorStep) },
		"result":    func() action { return new(resultStep) },
		"ignore":    func() action { return new(ignoreStep) },
		"fork":      func() action { return new(forkStep) },
		"wait_for":  func() action { return new(waitForStep) },
		"signal":    func() action { return new(signalStep) },
		"hang":      func() action { return new(hangStep) },
		"exit":      func() action { return new(exitStep) },
	}
}

// checker is an action whose values have rules beyond their types.
type checker interface{ check() error }

// maxSteps bounds a file.
const maxSteps = 10_000

// Parse reads a file of steps. Errors are *Error. name is for their text.
func Parse(name string, data []byte) ([]step, error) {
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, yamlError(name, nil, err)
	}
	var root *ast.MappingNode
	for _, d := range f.Docs {
		if d.Body == nil {
			continue
		}
		m, ok := d.Body.(*ast.MappingNode)
		if !ok || root != nil {
			return nil, at(name, d.Body, "a script is one mapping with the key steps")
		}
		root = m
	}
	if root == nil {
		return nil, &Error{File: name, Line: 1, Column: 1, Problem: "the script is empty; it needs the key steps"}
	}
	var list *ast.SequenceNode
	for _, kv := range root.Values {
		switch key := keyOf(kv); key {
		case "v":
			if kv.Value.String() != "1" {
				return nil, at(name, kv.Value, "v is the format's version, and only 1 is known")
			}
		case "steps":
			l, ok := kv.Value.(*ast.SequenceNode)
			if !ok {
				return nil, at(name, kv.Value, "steps is a list")
			}
			list = l
		default:
			return nil, at(name, kv, fmt.Sprintf("unknown key %q; the keys are v and steps", key))
		}
	}
	if list == nil {
		return nil, at(name, root, "the key steps is missing")
	}
	if len(list.Values) > maxSteps {
		return nil, at(name, list, fmt.Sprintf("more than %d steps", maxSteps))
	}
	known := kinds()
	steps := make([]step, 0, len(list.Values))
	for _, n := range list.Values {
		s, err := parseStep(name, n, known)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func parseStep(name string, n ast.Node, known map[string]func() action) (step, error) {
	m, ok := n.(*ast.MappingNode)
	if !ok || len(m.Values) != 1 {
		return step{}, at(name, n, "a step is a mapping with one key, such as `say: hello`")
	}
	kv := m.Values[0]
	key := keyOf(kv)
	make, ok := known[key]
	if !ok {
		names := []string{}
		for k := range known {
			names = append(names, k)
		}
		sort.Strings(names)
		return step{}, at(name, kv, fmt.Sprintf("unknown step %q; known are %s", key, strings.Join(names, ", ")))
	}
	a := make()
	var buf bytes.Buffer
	if err := yaml.NewDecoder(&buf, yaml.DisallowUnknownField(), yaml.Strict()).DecodeFromNode(kv.Value, a); err != nil {
		return step{}, yamlError(name, kv.Value, fmt.Errorf("%s: %w", key, err))
	}
	if c, ok := a.(checker); ok {
		if err := c.check(); err != nil {
			return step{}, at(name, kv.Value, key+": "+err.Error())
		}
	}
	return step{name: key, line: kv.Key.GetToken().Position.Line, do: a}, nil
}

func keyOf(kv *ast.MappingValueNode) string {
	if s, ok := kv.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return kv.Key.String()
}

func at(name string, n ast.Node, problem string) *Error {
	e := &Error{File: name, Problem: problem}
	if kv, ok := n.(*ast.MappingValueNode); ok {
		n = kv.Key
	}
	if n != nil {
		if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
			n = m.Values[0].Key
		}
		e.setPos(n.GetToken())
	}
	return e
}

func (e *Error) setPos(t *token.Token) {
	if t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
}

// yamlError takes the place out of the YAML library's error and leaves its
// drawing of the source away.
func yamlError(name string, n ast.Node, err error) *Error {
	e := &Error{File: name, Problem: err.Error()}
	var ye yaml.Error
	if errors.As(err, &ye) {
		e.Problem = ye.GetMessage()
		e.setPos(ye.GetToken())
	} else if n != nil {
		e = at(name, n, err.Error())
	}
	return e
}

// duration is written as Go does: 250ms, 1.5s, 2m.
type duration time.Duration

// UnmarshalYAML reads a duration.
func (d *duration) UnmarshalYAML(b []byte) error {
	s, err := scalar(b)
	if err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is no duration such as 250ms or 1.5s", s)
	}
	if v < 0 || v > 24*time.Hour {
		return fmt.Errorf("%s is not between 0 and 24h", s)
	}
	*d = duration(v)
	return nil
}

// size is a number of bytes: 1000, 64kB, 60MB.
type size int64

// maxSize bounds one step's output.
const maxSize = 10_000_000_000

// UnmarshalYAML reads a size.
func (n *size) UnmarshalYAML(b []byte) error {
	s, err := scalar(b)
	if err != nil {
		return err
	}
	num, factor := s, 1.0
	for _, u := range []struct {
		suffix string
		factor float64
	}{{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}} {
		if v, ok := strings.CutSuffix(s, u.suffix); ok {
			num, factor = strings.TrimSpace(v), u.factor
			break
		}
	}
	f, err := strconv.ParseFloat(num, 64)
	if err != nil || f != f || f < 0 || f*factor > maxSize {
		return fmt.Errorf("%q is no size such as 1000, 64kB or 60MB, at most 10GB", s)
	}
	*n = size(f * factor)
	return nil
}

func scalar(b []byte) (string, error) {
	var s any
	if err := yaml.Unmarshal(b, &s); err != nil {
		return "", err
	}
	switch s.(type) {
	case string, uint64, int64, float64, int:
		return fmt.Sprint(s), nil
	}
	return "", errors.New("a single value is wanted here")
}
