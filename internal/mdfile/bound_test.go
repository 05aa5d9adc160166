package mdfile

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckYAML(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"plain":            {"a: [b, {c: d}]\n", true},
		"many flow lists":  {strings.Repeat("a: [x, {y: z}]\n", 500), true},
		"list in list":     {"- - - x\n", true},
		"brackets":         {"x: " + strings.Repeat("[", 101), false},
		"balanced":         {strings.Repeat("[", 101) + strings.Repeat("]", 101), false},
		"braces":           {strings.Repeat("{a: ", 101), false},
		"over many lines":  {strings.Repeat("[\n", 101), false},
		"dashes":           {strings.Repeat("- ", 101) + "x", false},
		"dashes with tabs": {strings.Repeat("-\t", 101) + "x", false},
		"longer than 8000": {strings.Repeat("x", 8001), false},
	} {
		if err := CheckYAML([]byte(c.text), 8000); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrYAMLBound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
