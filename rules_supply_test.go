package reprise_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	usesAction = regexp.MustCompile(`(?m)^\s*-?\s*uses:\s*(\S+)`)
	pinned     = regexp.MustCompile(`^[^@]+@[0-9a-f]{40}$`)
	floating   = regexp.MustCompile(`@latest\b|npm install(?:\s|$)|npx (?:--yes|-y) |curl [^\n]*\|\s*(?:ba)?sh\b`)
	packages   = regexp.MustCompile(`npm ci[^\n)]*`)
)

// Nothing of what builds or tests us comes in a version that somebody else
// chooses later: modules are in go.sum, npm packages have their hash, actions a
// commit; and no package's own script runs when it is installed.
func TestRuleVersionsArePinned(t *testing.T) {
	for _, name := range tracked(t) {
		base := filepath.Base(name)
		switch {
		case base == "package-lock.json":
			checkLock(t, name)
		case base == "package.json":
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), "package-lock.json")); err != nil && !strings.Contains(name, "testdata/") {
				t.Errorf("%s has no package-lock.json beside it", name)
			}
		case strings.HasPrefix(name, ".github/workflows/") || strings.HasPrefix(name, "script/") && !strings.Contains(base, ".") || strings.HasPrefix(name, ".ci/") || base == "Containerfile":
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range usesAction.FindAllStringSubmatch(string(data), -1) {
				if !strings.HasPrefix(m[1], "./") && !pinned.MatchString(m[1]) {
					t.Errorf("%s uses %s: name the commit, as owner/name@<40 hex digits>", name, m[1])
				}
			}
			if m := floating.FindString(string(data)); m != "" {
				t.Errorf("%s has %q: whatever is newest would be run", name, m)
			}
			for _, m := range packages.FindAllString(string(data), -1) {
				if !strings.Contains(m, "--ignore-scripts") {
					t.Errorf("%s: %q runs the packages' own scripts", name, m)
				}
			}
		}
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mod), "\nreplace ") || strings.Contains(string(mod), "\nreplace (") {
		t.Error("go.mod replaces a module: what is built would not be what go.sum names")
	}
}

func checkLock(t *testing.T, name string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Version  int `json:"lockfileVersion"`
		Packages map[string]struct {
			Version   string `json:"version"`
			Integrity string `json:"integrity"`
			Resolved  string `json:"resolved"`
			Link      bool   `json:"link"`
			InBundle  bool   `json:"inBundle"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(data, &lock); err != nil || lock.Version < 3 || len(lock.Packages) < 2 {
		t.Fatalf("%s: version %d, %d packages, %v", name, lock.Version, len(lock.Packages), err)
	}
	for at, p := range lock.Packages {
		switch {
		case at == "" || p.InBundle: // ourselves; what is inside a package whose hash is checked
		case p.Link || !strings.HasPrefix(p.Integrity, "sha512-"):
			t.Errorf("%s: %s %s has no SHA-512", name, at, p.Version)
		case p.Resolved != "" && !strings.HasPrefix(p.Resolved, "https://"):
			t.Errorf("%s: %s comes from %s", name, at, p.Resolved)
		}
	}
}

var threatTest = regexp.MustCompile("`(?:Test|Fuzz)[A-Z][A-Za-z0-9_]*`")

// Each threat in SECURITY.md is held by a test that it names; that the tests are
// there is TestRuleDocumentsNameWhatIsThere's to see.
func TestRuleEachThreatIsHeld(t *testing.T) {
	data, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) < 4 || strings.HasPrefix(cells[0], "threat") || strings.Trim(line, "|- \n") == "" || strings.HasPrefix(cells[0], " threat") {
			continue
		}
		rows++
		if !threatTest.MatchString(cells[len(cells)-1]) {
			t.Errorf("SECURITY.md: no test holds %q", strings.TrimSpace(cells[0]))
		}
	}
	if rows < 25 {
		t.Errorf("%d threats were found in SECURITY.md", rows)
	}
	for _, about := range []string{"repository", "MCP client", "other user", "homoglyph", "symbolic link", "a pipe", "umask", "giant", "supply", "secret", "token of another"} {
		if !slices.ContainsFunc(strings.Split(string(data), "\n"), func(l string) bool {
			return strings.HasPrefix(l, "| ") && strings.Contains(strings.ToLower(l), strings.ToLower(about))
		}) {
			t.Errorf("SECURITY.md has no threat about %s", about)
		}
	}
}
