package guard

import "strings"

// Decision is what the guard thinks of a call, or of a part of one.
type Decision string

// The decisions, from the mildest to the strictest. None is that of a policy
// that only closes directories, of a call that does not touch them.
const (
	None  Decision = "none"
	Allow Decision = "allow"
	Ask   Decision = "ask"
	Deny  Decision = "deny"
)

func (d Decision) rank() int {
	switch d {
	case Deny:
		return 3
	case Ask:
		return 2
	case Allow:
		return 1
	}
	return 0
}

// Part is one thing that was found in a call: a simple command, a redirection,
// an assignment, a path.
type Part struct {
	Command  string   `json:"command,omitempty"` // the simple command, as it was resolved
	Decision Decision `json:"decision"`
	Rule     string   `json:"rule"`
	Word     string   `json:"word,omitempty"` // the word that it is about, with hidden characters escaped
	Reason   string   `json:"reason,omitempty"`
	Instead  string   `json:"instead,omitempty"` // a form that would pass
	From     string   `json:"from,omitempty"`    // where a rule of the settings stands
	Depth    int      `json:"depth"`             // commands inside commands
}

// Verdict is a decision with its reason.
type Verdict struct {
	Decision Decision `json:"decision"`
	Rule     string   `json:"rule,omitempty"`
	Word     string   `json:"word,omitempty"`
	// Reason tells the agent which word was the trouble and what it may do
	// instead.
	Reason string `json:"reason,omitempty"`
	Parts  []Part `json:"parts,omitempty"`
	// Let says that something of what is allowed is so because the settings let
	// it, and not because it is known to be harmless.
	Let bool `json:"-"`
	// By is who settled what the rules would ask about: "judge" or "user", "" where
	// nobody did.
	By string `json:"-"`
}

// verdictOf is the strictest of the parts; of several the first speaks.
func verdictOf(parts []Part) Verdict {
	v := Verdict{Decision: Allow}
	for _, p := range parts {
		if p.Decision.rank() > v.Decision.rank() {
			v.Decision, v.Rule, v.Word, v.Reason = p.Decision, p.Rule, p.Word, p.sentence()
		}
	}
	v.Parts = parts
	return v
}

// sentence words a part for an agent: the word, the reason, what would pass,
// and the rule's name.
func (p Part) sentence() string {
	var b strings.Builder
	if p.Word != "" && !strings.Contains(p.Reason, p.Word) {
		b.WriteString(p.Word + ": ")
	}
	b.WriteString(p.Reason)
	if p.Instead != "" {
		b.WriteString("; " + p.Instead)
	}
	switch {
	case p.Rule != "" && p.From != "":
		b.WriteString(" [" + p.Rule + ": " + p.From + "]")
	case p.Rule != "":
		b.WriteString(" [" + p.Rule + "]")
	}
	return b.String()
}

// maxShown is how much of a word is shown in a reason, in bytes.
const maxShown = 120

// shown is a text as a person can be shown it: hidden characters and those that
// change the direction of text are escaped, and it is cut.
func shown(s string) string {
	var b strings.Builder
	for _, r := range s {
		if b.Len() > maxShown {
			b.WriteString("…")
			break
		}
		switch {
		case r == 0:
			b.WriteString("…")
		case hidden(r):
			const hex = "0123456789abcdef"
			b.WriteString(`\u`)
			if r > 0xffff {
				b.WriteByte('{')
			}
			for i := 20; i >= 0; i -= 4 {
				if d := r >> i; i < 16 || d > 0 {
					b.WriteByte(hex[d&15])
				}
			}
			if r > 0xffff {
				b.WriteByte('}')
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports whether a character is not seen, or changes how others are:
// control characters, zero-width ones, direction marks, tags, variation
// selectors and blanks that are no blank to a shell.
func hidden(r rune) bool {
	switch {
	case r < 0x20:
		return r != '\n' && r != '\t'
	case r >= 0x7f && r <= 0xa0, r == 0xad, r == 0x34f, r == 0x61c, r == 0x1680, r == 0x180e:
		return true
	case r >= 0x115f && r <= 0x1160, r >= 0x17b4 && r <= 0x17b5, r >= 0x180b && r <= 0x180f:
		return true
	case r >= 0x2000 && r <= 0x200f, r >= 0x2028 && r <= 0x202f, r >= 0x205f && r <= 0x206f:
		return true
	case r == 0x2800, r == 0x3000, r == 0x3164, r == 0xfeff, r == 0xffa0, r == 0xfffd:
		return true
	case r >= 0xfff9 && r <= 0xfffb, r >= 0xfe00 && r <= 0xfe0f, r >= 0x1d173 && r <= 0x1d17a, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}
