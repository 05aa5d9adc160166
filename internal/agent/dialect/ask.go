package dialect

import "strconv"

// Question is one question that a client's asking tool put to the user.
type Question struct {
	Text    string
	Options []string
	Answer  string // "" as long as there is none
}

// Questions are what an event of the asking tool asks, with the answers where
// the tool has run. The forms differ: a list of questions or one; the answers
// by question, by the question's id or by its place, in the response or added
// to the input; or one text for one question.
func (e *Event) Questions() []Question {
	if e.Tool != "ask" {
		return nil
	}
	in := checked(e.Input).object()
	var out []Question
	var ids []string
	for _, item := range in.get("questions").items() {
		q := item.object()
		out = append(out, Question{Text: q.first("question", "text", "header"), Options: options(q)})
		ids = append(ids, q.text("id"))
	}
	if len(out) == 0 {
		if text := in.first("question", "prompt", "message"); text != "" {
			out, ids = []Question{{Text: text, Options: options(in)}}, []string{""}
		}
	}
	if e.Kind != ToolAfter {
		return out
	}
	said := checked([]byte(e.Output)).object()
	answers := said.get("answers").object()
	if answers == nil {
		answers = in.get("answers").object()
	}
	for i := range out {
		for _, name := range [...]string{out[i].Text, ids[i], strconv.Itoa(i)} {
			if v := answers.get(name); v != nil && name != "" {
				out[i].Answer = answerText(v)
				break
			}
		}
	}
	if len(out) == 1 && out[0].Answer == "" && answers == nil {
		if out[0].Answer = said.first("answer", "response", "text"); out[0].Answer == "" && said == nil {
			out[0].Answer = e.Output
		}
	}
	return out
}

// checked is a text as a value, nil where it is no JSON object.
func checked(b []byte) value {
	if _, err := readPayload(b); err != nil {
		return nil
	}
	return value(b[skipSpace(b, 0):])
}

func options(o object) []string {
	list := o.get("options")
	if list == nil {
		list = o.get("choices")
	}
	var out []string
	for _, item := range list.items() {
		s := item.text()
		if s == "" {
			s = item.object().first("label", "value", "name")
		}
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// answerText is an answer's text: a string, several, or either in an object.
func answerText(v value) string {
	if o := v.object(); o != nil {
		if list := o.get("answers"); list != nil {
			return answerText(list)
		}
		return o.first("answer", "text", "value", "label")
	}
	if s := v.text(); s != "" {
		return s
	}
	var out string
	for _, item := range v.items() {
		if s := answerText(item); s != "" {
			if out != "" {
				out += ", "
			}
			out += s
		}
	}
	return out
}
