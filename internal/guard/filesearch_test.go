package guard

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Many patterns cost no more than one: what is beyond the bound is compared with names
// that secrets usually have.
func TestManyPatternsAreBounded(t *testing.T) {
	p := newProject(t)
	files := map[string]string{}
	for i := range 400 {
		files[fmt.Sprintf("many/%d/x", i)] = ""
	}
	p.put(t, files)
	defer func(n int) { maxWalk = n }(maxWalk)
	maxWalk = 500
	r := p.rules()
	a := newAnalysis(r)
	st := a.start(p.dir)
	var pairs []string
	for i := range 300 {
		pairs = append(pairs, fmt.Sprintf("include[%d]", i), fmt.Sprintf("**/{a,b,c}%d*", i))
	}
	a.many(&Call{Kind: "read", Name: "read_many_files", Texts: toolCall{texts: pairs}.call(p.dir).Texts}, st)
	if len(a.parts) > 0 || a.looked > 2*maxWalk+300*3*walkDir {
		t.Errorf("%d was spent, %d found", a.looked, len(a.parts))
	}
	for pattern, want := range map[string]string{"**/.e?v": ".env", "**/*.{go,x}": "", "many/**/id_r*": "many/id_rsa"} {
		if got := a.secretFor(pattern, p.dir, false, false); !strings.HasSuffix(filepath.ToSlash(want), got) || (got == "") != (want == "") {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"*.go", "a.go", true}, {"*.go", "x/a.go", false}, {"**/*.go", "a.go", true}, {"**/*.go", "x/y/a.go", true}, {"x/**", "x/y/z", true}, {"x/**", "y/z", false},
		{"x/**/z", "x/z", true}, {"[!a]x", "bx", true}, {"[!a]x", "ax", false}, {"a?", "ab", true}, {"a", "a/b", false}, {"a/b", "a", false},
	} {
		if got := fitsAll(c.pattern, c.path); got != c.want {
			t.Errorf("%s, %s: %v, want %v", c.pattern, c.path, got, c.want)
		}
	}
	for pattern, want := range map[string]string{"a{b,c}": "ab ac", "{a,b}{c,d}": "ac ad bc bd", "{a,{b,c}}": "a b a c", "a{b": "a{b", "a}b{": "a}b{", "x": "x"} {
		if got := strings.Join(alternatives(pattern), " "); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
	if n := len(alternatives(strings.Repeat("{a,b,c}", 40))); n > 3*maxAlternatives {
		t.Errorf("%d alternatives", n)
	}
}
