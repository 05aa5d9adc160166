package reprise_test

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

var (
	mdLink  = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	mdDef   = regexp.MustCompile(`(?m)^\[[^\]]+\]: (\S+)`)
	mdCode  = regexp.MustCompile("`([^`\n]+)`")
	mdBlock = regexp.MustCompile(`(?m)^(?: {4}|\t).*$`) // indented code
	// namedPath is a path of this tree in code: a directory of ours, then names.
	namedPath = regexp.MustCompile(`^(?:cmd|docs|e2e|internal|script|testdata)(?:/[A-Za-z0-9_.-]+)+/?$`)
	// namedTest is a test in code: what a document says is held by it must be there.
	namedTest = regexp.MustCompile(`^(?:Test|Fuzz)[A-Z][A-Za-z0-9_]*$`)
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z][A-Za-z0-9_]*)\(`)
	namedFile = regexp.MustCompile(`^[a-z0-9_]+(?:_test)?\.go$`)
)

// Documents that name a file which is not there send their reader looking for
// it, and are the first sign that the rest is out of date, too.
func TestRuleDocumentsNameWhatIsThere(t *testing.T) {
	files := tracked(t)
	base, tests := map[string]bool{}, map[string]bool{}
	for _, name := range files {
		base[path.Base(name)] = true
		if strings.HasSuffix(name, "_test.go") {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range testFunc.FindAllStringSubmatch(string(data), -1) {
				tests[m[1]] = true
			}
		}
	}
	named := 0
	for _, doc := range files {
		if filepath.Ext(doc) != ".md" || strings.Contains(doc, "testdata/") || strings.HasPrefix(doc, "internal/") {
			continue // those of the programs are texts for models
		}
		data, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		linked := mdBlock.ReplaceAllString(text, "") // an example's links lead nowhere here
		there := func(name string) {
			named++
			if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
				t.Errorf("%s names %s, which is not there", doc, name)
			}
		}
		for _, m := range mdLink.FindAllStringSubmatch(linked, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			to := doc // #part alone is of the same document
			if m[1] != "" {
				to = path.Join(path.Dir(doc), m[1])
				there(to)
			}
			if m[2] != "" {
				named++
				if !anchors(t, to)[m[2]] {
					t.Errorf("%s leads to #%s of %s, and no heading there is called that", doc, m[2], to)
				}
			}
		}
		for _, m := range mdDef.FindAllStringSubmatch(linked, -1) {
			if !strings.Contains(m[1], "://") {
				t.Errorf("%s has a link by reference to %s: write it where it stands, where this check sees it", doc, m[1])
			}
		}
		for _, m := range mdCode.FindAllStringSubmatch(text, -1) {
			switch {
			case namedPath.MatchString(m[1]):
				there(m[1])
			case namedTest.MatchString(m[1]):
				named++
				if !tests[m[1]] {
					t.Errorf("%s names %s, and no test is called that", doc, m[1])
				}
			case namedFile.MatchString(m[1]):
				named++
				if !base[m[1]] {
					t.Errorf("%s names %s, and no file is called that", doc, m[1])
				}
			}
		}
	}
	if named < 20 {
		t.Errorf("%d names were found in the documents: the check looks at too little", named)
	}
}

// anchors are the names by which a document's headings are led to, as hosts of git
// repositories make them: small letters, words joined by -, no other marks, and a number
// for each that is called as one before it.
func anchors(t *testing.T, doc string) map[string]bool {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(doc))
	if err != nil {
		return nil // that it is not there is another error
	}
	found, fenced := map[string]bool{}, false
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		mark, title, ok := strings.Cut(strings.TrimSpace(line), " ")
		if fenced || !ok || strings.HasPrefix(line, " ") || mark == "" || strings.Trim(mark, "#") != "" {
			continue
		}
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(title))
		for n, base := 1, name; found[name]; n++ {
			name = base + "-" + strconv.Itoa(n)
		}
		found[name] = true
	}
	return found
}

func TestAnchors(t *testing.T) {
	doc := filepath.Join(t.TempDir(), "a.md")
	if err := os.WriteFile(doc, []byte("# One `two`: three, (four)!\n\n## Same\n```sh\n# no heading\n```\n## Same\n## a_b-c — d\n#no\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := slices.Sorted(maps.Keys(anchors(t, doc)))
	if want := []string{"a_b-c--d", "one-two-three-four", "same", "same-1"}; !slices.Equal(got, want) {
		t.Errorf("anchors are %q, not %q", got, want)
	}
}

// An agent reads AGENTS.md at the start of every session.
func TestRuleAgentsFileIsShort(t *testing.T) {
	data, err := os.ReadFile("AGENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "\n"); n > 100 {
		t.Errorf("AGENTS.md has %d lines; 100 is the most: it is read at the start of every session", n)
	}
}
