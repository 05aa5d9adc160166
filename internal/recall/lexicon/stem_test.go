package lexicon

import "testing"

func TestStem(t *testing.T) {
	for in, want := range map[string]string{
		"caresses": "caress", "ponies": "poni", "cats": "cat", "feed": "feed", "agreed": "agre", "plastered": "plaster", "motoring": "motor",
		"sing": "sing", "conflated": "conflat", "troubled": "troubl", "hopping": "hop", "falling": "fall", "hissing": "hiss", "failing": "fail",
		"filing": "file", "happy": "happi", "sky": "sky", "relational": "relat", "conditional": "condit", "digitizer": "digit", "operator": "oper",
		"feudalism": "feudal", "hopefulness": "hope", "formaliti": "formal", "triplicate": "triplic", "electrical": "electr", "goodness": "good",
		"revival": "reviv", "allowance": "allow", "adjustable": "adjust", "replacement": "replac", "adoption": "adopt", "probate": "probat",
		"rate": "rate", "cease": "ceas", "controll": "control", "roll": "roll", "generalizations": "gener", "2026s": "2026s", "is": "is",
	} {
		if got := stem(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
