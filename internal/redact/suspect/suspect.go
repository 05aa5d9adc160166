// Package suspect tells, quickly and without anything to set up, whether a
// secret may stand in a text: a keyword of one of package redact's rules with
// enough of the right characters beside it. It says yes too often and never no
// where a rule would find something, which a test checks rule by rule.
//
// It is apart from package redact because it is linked into the program that
// runs at every tool call: it uses no regular expressions and no tables of
// Unicode. It writes no file and takes no lock.
package suspect

// Named is [String] for a text that goes by a name, because "password" beside
// it is what tells a password.
func Named(key, s string) bool {
	if String(s) {
		return true
	}
	return NameTells(key, s) && hasKeyword(key) && String(key+`="`+s+`"`)
}

// NameTells reports whether the name is to be looked at together with the text.
func NameTells(key, s string) bool {
	return key != "" && len(key) < 100 && len(s) < 1000
}

// String reports whether a secret may stand in s.
func String(s string) bool {
	for level := 0; ; level++ {
		if scan(s) {
			return true
		}
		found := false
		Encoded(s, func(_, _ int, text string) bool {
			found = scan(text)
			return !found
		})
		if found {
			return true
		}
		view, _, ok := Plain(s)
		if !ok || level == Levels {
			return false
		}
		s = view
	}
}
