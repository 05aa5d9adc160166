package redact

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	f.Rules = append(f.Rules, ownRules()...)
	for _, h := range byHand {
		f.Rules = append(f.Rules, rule{ID: h.id, Keywords: h.words()})
	}
	set := loadRules()
	var used, want []string
	words := map[string][]string{}
	for _, l := range set.rules {
		r := l.get()
		used = append(used, r.ID)
		if l.generic != (r.ID == genericRule) {
			t.Errorf("rule %s: generic %t", r.ID, l.generic)
		}
		if _, err := regexp.Compile(r.Regex); err != nil {
			t.Errorf("rule %s: %v", r.ID, err)
		}
		r.re()
		for i := range r.Allow {
			r.Allow[i].compiled()
		}
	}
	for _, list := range set.words {
		for _, kw := range list {
			for _, n := range kw.rules {
				words[used[n]] = append(words[used[n]], kw.word)
			}
		}
	}
	seen := map[string]bool{}
	for _, r := range f.Rules {
		if r.ID == "pkcs12-file" || r.ID == "hashicorp-tf-password" { // about a file's name, not its text; of certain files
			continue
		}
		want = append(want, r.ID)
		if seen[r.ID] {
			t.Errorf("rule %s is there twice", r.ID)
		}
		seen[r.ID] = true
		slices.Sort(words[r.ID])
		slices.Sort(r.Keywords)
		if d := cmp.Diff(r.Keywords, words[r.ID]); d != "" || len(r.Keywords) == 0 {
			t.Errorf("rule %s: keywords %s", r.ID, d)
		}
		for _, k := range r.Keywords {
			if len(k) < 2 || strings.ToLower(k) != k {
				t.Errorf("rule %s: the keyword %q is not one for the search", r.ID, k)
			}
		}
	}
	if d := cmp.Diff(want, used); d != "" {
		t.Errorf("rules in use:\n%s", d)
	}
	if d := cmp.Diff(len(f.Allow.Regexes), len(set.allow().compiled())); d != "" || len(f.Allow.Regexes) == 0 {
		t.Errorf("allowed everywhere: %s", d)
	}
}

// TestGenericFilter: the filter before the generic rule lets through whatever
// the rule's bare expression finds and does not allow itself.
func TestGenericFilter(t *testing.T) {
	set := loadRules()
	var generic *rule
	for _, l := range set.rules {
		if l.generic {
			generic = l.get()
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	words := []string{"access", "auth", "Api", "API", "credential", "creds", "key", "passwd", "password", "secret", "token", "KEY", "Secret"}
	pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
	some := func(n int, from string) string {
		var b strings.Builder
		for range rnd.IntN(n + 1) {
			b.WriteByte(from[rnd.IntN(len(from))])
		}
		return b.String()
	}
	const name, value = "abcXYZ019_.- \t", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789_.=-+/"
	found := 0
	for range 1500 {
		s := some(60, name) + pick(words...) + some(22, name) + some(4, " '\"\n") +
			pick("=", ">", ":=", "::=", ":::=", "||", ":", "=>", "?=", ",", "") + some(6, "`'\" =") + some(170, value) + pick("", "'", " ", ";", "\\n", "x") + some(5, name)
		bare := generic.find(set, s, window{0, len(s)}, nil)
		if len(bare) == 0 {
			continue
		}
		found++
		got := (&Redactor{}).find(s, nil)
		for _, b := range bare {
			if !slices.ContainsFunc(got, func(g span) bool { return g.start <= b.start && g.end >= b.end }) {
				t.Fatalf("%q: the expression finds %q, the filter lets through %v", s, s[b.start:b.end], got)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d of the texts had a secret", found)
	}
}
