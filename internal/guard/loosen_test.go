package guard

import (
	"slices"
	"testing"

	"reprise/internal/config"
)

// The settings know the names of the rules, so that a slip in guard.loosen is an
// error and not a rule that stays in force without a word.
func TestSettingsKnowTheRules(t *testing.T) {
	var names []string
	var loosened []bool
	for _, r := range BuiltIn() {
		names, loosened = append(names, r.Name), append(loosened, !r.Fixed)
	}
	got, can := config.GuardRules()
	if !slices.Equal(got, names) || !slices.Equal(can, loosened) {
		t.Errorf("config.GuardRules has\n%q %v, the guard\n%q %v", got, can, names, loosened)
	}
}
