package dialect

import "strings"

// The marks of what a session is told, as package brief writes them and as a
// client hands them back: Gemini CLI escapes the angle brackets. All that is
// told begins with the same words, so that a text that only speaks of the mark
// is not taken for it.
const (
	toldName  = "reprise-memory"
	toldWords = "From reprise"
	hookOpen  = "<hook_context>"
	hookClose = "</hook_context>"
)

// WithoutTold is a text without what reprise told the session: clients put it
// where the user's words or a tool's output stand, and it is neither. A block
// that does not end is left as it is.
func WithoutTold(text string) string {
	if !strings.Contains(text, toldName) {
		return text
	}
	text = cutTold(text, "<"+toldName+">", "</"+toldName+">")
	text = cutTold(text, "&lt;"+toldName+"&gt;", "&lt;/"+toldName+"&gt;")
	return text
}

func cutTold(text, open, end string) string {
	for from := 0; ; {
		i := strings.Index(text[from:], open)
		if i < 0 {
			return text
		}
		i += from
		body := text[i+len(open):]
		n := strings.Index(body, end)
		if n < 0 || !strings.HasPrefix(strings.TrimLeft(body, " \r\n"), toldWords) {
			from = i + len(open)
			continue
		}
		before, after := text[:i], body[n+len(end):]
		// The wrapping of Gemini CLI goes too, where nothing else is in it.
		if b, ok := strings.CutSuffix(strings.TrimRight(before, " \r\n"), hookOpen); ok {
			if a, ok := strings.CutPrefix(strings.TrimLeft(after, " \r\n"), hookClose); ok {
				before, after = b, a
			}
		}
		before, after = strings.TrimRight(before, " \r\n"), strings.TrimLeft(after, "\r\n")
		if before != "" && after != "" {
			before += "\n"
		}
		text, from = before+after, len(before)
	}
}

// GeminiPrompt is a prompt as it was typed: Gemini CLI puts before the first one
// what hooks, reprise's or others, said at the session's start. It escapes what
// is inside, so that the first end is the end.
func GeminiPrompt(text string) string {
	if rest, ok := strings.CutPrefix(text, hookOpen); ok {
		if _, after, ok := strings.Cut(rest, hookClose); ok {
			text = strings.TrimLeft(after, "\r\n")
		}
	}
	return text
}
