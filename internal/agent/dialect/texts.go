package dialect

import "strconv"

// maxTexts bounds how many texts of an input are told apart; no tool has as many.
const maxTexts = 10_000

// Texts calls yield with every text in the tool's input, and the way to it:
// "command", "edits[0].path". whole is false where there are more than are told
// apart, or the input is no JSON object.
func (e *Event) Texts(yield func(name, value string)) (whole bool) {
	left := maxTexts
	v := checked(e.Input)
	if v == nil {
		return len(e.Input) == 0
	}
	texts(v, "", &left, yield)
	return left > 0
}

func texts(v value, name string, left *int, yield func(name, value string)) {
	if *left--; *left <= 0 {
		return
	}
	switch {
	case v.is('"'):
		yield(name, unquote(v))
	case v.isTrue() && name == "discard_changes":
		yield(name, "true") // of what is no text, the guard has to know this
	case v.is('{'):
		for _, m := range v.object() {
			way := m.name
			if name != "" {
				way = name + "." + m.name
			}
			texts(m.val, way, left, yield)
		}
	case v.is('['):
		for i, item := range v.items() {
			texts(item, name+"["+strconv.Itoa(i)+"]", left, yield)
		}
	}
}
