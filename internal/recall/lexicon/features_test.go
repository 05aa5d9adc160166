package lexicon

import "testing"

func TestFeatures(t *testing.T) {
	talker := func(w string) bool { return w == "dana" }
	for text, want := range map[string][4]int{ // content, specific, self, you
		"":                               {},
		"Thanks, Dana! That's so great!": {},
		"I flew to Lisbon with my sister on the 3rd.": {4, 2, 2, 0},
		"How was your trip, Dana?":                    {1, 0, 0, 1},
	} {
		f := FeaturesOf(text, talker)
		if got := [4]int{f.Content, f.Specific, f.Self, f.You}; got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
