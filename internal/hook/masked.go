package hook

import (
	"strings"

	"reprise/internal/guard"
	"reprise/internal/redact/suspect"
)

// masked stands for a secret of a call in what is said of the call.
const masked = "[redacted:secret]"

// unseen is the reason of a verdict on a call in which there may be a secret, where nobody
// can tell which part of it that is.
const unseen = "what it was about is not repeated, for the call may hold a secret"

// leastRun is how many bytes of a secret are taken for a piece of it: the guard cuts long
// words, and takes a text apart at its blanks and line ends.
const leastRun = 8

// A mask takes the secrets of a call out of what is said of it. A command is shown as it
// was worked out, with the values of variables in it and without the assignments, so that
// nothing beside a value tells any more that it is a password: what the call as a whole
// shows to be one has to be known here.
type mask struct {
	secrets []string
	// blind says that there may be a secret and that nobody could look.
	blind bool
}

// mask looks for secrets in a call.
func (g *Guarding) mask(texts []guard.Text) (m mask) {
	for _, t := range texts {
		name := t.Name[strings.LastIndexByte(t.Name, '.')+1:]
		name, _, _ = strings.Cut(name, "[")
		switch {
		case !suspect.Named(name, t.Value):
		case g.Secrets == nil:
			m.blind = true
		default:
			m.secrets = append(m.secrets, g.Secrets(name, t.Value)...)
		}
	}
	return m
}

// verdict is a verdict without the secrets of its call.
func (m mask) verdict(v guard.Verdict) guard.Verdict {
	if !m.blind && len(m.secrets) == 0 {
		return v
	}
	v.Word, v.Reason = m.text(v.Word), m.text(v.Reason)
	if m.blind {
		v.Reason = unseen
		if v.Rule != "" {
			v.Reason += " [" + v.Rule + "]"
		}
	}
	parts := make([]guard.Part, len(v.Parts))
	for i, p := range v.Parts {
		p.Command, p.Word, p.Reason, p.Instead = m.text(p.Command), m.text(p.Word), m.text(p.Reason), m.text(p.Instead)
		parts[i] = p
	}
	v.Parts = parts
	return v
}

// text is a text without what belongs to a secret.
func (m mask) text(s string) string {
	if m.blind {
		return ""
	}
	for _, secret := range m.secrets {
		s = without(s, secret)
	}
	return s
}

// without is a text in which pieces of a secret are masked.
func without(s, secret string) string {
	least := min(len(secret), leastRun)
	if least == 0 || len(s) < least {
		return s
	}
	var b strings.Builder
	kept := 0
	for i := 0; i+least <= len(s); {
		n := least
		if !strings.Contains(secret, s[i:i+n]) {
			i++
			continue
		}
		for i+n < len(s) && strings.Contains(secret, s[i:i+n+1]) {
			n++
		}
		b.WriteString(s[kept:i] + masked)
		i += n
		kept = i
	}
	if kept == 0 {
		return s
	}
	b.WriteString(s[kept:])
	return b.String()
}
