package redact

import (
	"encoding/json"
	"regexp"
	"testing"
)

// TestEveryRule: none of the published rules is dropped or broken unseen.
func TestEveryRule(t *testing.T) {
	var f struct {
		Allow allowlist
		Rules []rule
	}
	if err := json.Unmarshal(rulesJSON, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Rules) != 222 {
		t.Errorf("%d rules in the file, want the 222 of gitleaks v8.30.1", len(f.Rules))
	}
	set := loadRules()
	if got, want := len(set.rules), len(f.Rules)-1+len(ownRules()); got != want {
		t.Errorf("%d rules in use, want %d: all but pkcs12-file, which is about a file's name", got, want)
	}
	seen := map[string]bool{}
	for _, r := range set.rules {
		if seen[r.ID] {
			t.Errorf("rule %s is there twice", r.ID)
		}
		seen[r.ID] = true
		if _, err := regexp.Compile(r.Regex); err != nil {
			t.Errorf("rule %s: %v", r.ID, err)
		}
		if len(r.Keywords) == 0 {
			t.Errorf("rule %s has no keyword and would never be tried", r.ID)
		}
		for _, k := range r.Keywords {
			if len(k) < 2 {
				t.Errorf("rule %s: the keyword %q is too short for the search", r.ID, k)
			}
		}
		for i := range r.Allow {
			r.Allow[i].compiled()
		}
		if r.reach < 0 {
			t.Logf("rule %s has no limit of length", r.ID)
		}
	}
	set.allow.compiled()
}
