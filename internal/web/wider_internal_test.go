package web

import (
	"testing"

	"reprise/internal/learn"
	"reprise/internal/learn/scopes"
	"reprise/internal/recall"
)

// A form offers only scopes that are wider than the one in which something is: that which is
// the project's is not offered for the project, and what all are told is not offered at all.
func TestPromotionIsOfferedForWiderScopes(t *testing.T) {
	for name, c := range map[string]struct {
		doc    recall.Doc
		source string // of an entry
		want   []string
	}{
		"a pattern":         {recall.Doc{Project: "shop"}, "", []string{"", "project", "global"}},
		"a project's entry": {recall.Doc{Project: "shop"}, "hand", []string{"global"}},
		"one for all there": {recall.Doc{Project: "shop", ACL: []string{"*"}}, "hand", []string{"global"}},
		"an agent's own":    {recall.Doc{Project: "shop", ACL: []string{"agent:nina"}}, "agent", []string{"", "project", "global"}},
		"what all are told": {recall.Doc{}, "entry:e-1", nil},
	} {
		p := whyPage{Account: scopes.Account{MadeFrom: c.source, Reasons: learn.Reasons{Doc: c.doc}}}
		var got []string
		for _, w := range p.Wider() {
			got = append(got, w.Value)
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		}
	}
}
