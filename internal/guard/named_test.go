package guard

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each rule that a verdict may name is listed, with whether it can be loosened.
func TestRulesAreNamed(t *testing.T) {
	list := BuiltIn()
	if !slices.IsSortedFunc(list, func(a, b Named) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the list is not in order")
	}
	for _, n := range list {
		if n.Fixed != fixed(n.Name) {
			t.Errorf("%s: fixed is said to be %v", n.Name, n.Fixed)
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	re := regexp.MustCompile(`(?:give\(|Rule: |Rule = |\.Rule, p\.Decision = )"([a-z-]+)"`)
	seen := 0
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range re.FindAllStringSubmatch(string(data), -1) {
			seen++
			if !slices.ContainsFunc(list, func(n Named) bool { return n.Name == m[1] }) {
				t.Errorf("%s: rule %s is not in the list", f, m[1])
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d rules were found in the code", seen)
	}
}
