package guard

import "strings"

// gitSetting is one line of git's settings, as git reads it.
type gitSetting struct {
	key     string // section, subsection and name: in lower case but for a quoted subsection
	value   string
	alone   bool // there is no =: true to git where it wants yes or no
	blurred bool // tabs or the like in the value, which gits of different age keep or take for blanks
}

// gitLexer takes a text apart as git does, byte for byte: a carriage return counts for
// nothing before a line's end only, a backslash goes on in the next line within a value
// only, and what is wrong ends it all.
type gitLexer struct {
	text string
	at   int
	over bool // the end is reached, which counts as a line's end, too
}

// gitSettingsOf are the settings in a text up to the first that git cannot read; sound
// tells that there is none, without which git itself gives up.
func gitSettingsOf(text string) (out []gitSetting, sound bool) {
	l := gitLexer{text: strings.TrimPrefix(text, "\ufeff")}
	if strings.IndexByte(text, 0) >= 0 {
		return nil, false // git, which is written in C, ends names and values there
	}
	section := ""
	for {
		switch c := l.next(); {
		case c == '\n':
			if l.over {
				return out, true
			}
		case blank(c):
		case c == '#' || c == ';':
			for l.next() != '\n' {
			}
			if l.over {
				return out, true
			}
		case c == '[':
			if section, sound = l.section(); !sound {
				return out, false
			}
			section += "."
		case letter(c):
			s, ok := l.setting(section + string(lower(c)))
			if !ok {
				return out, false
			}
			out = append(out, s)
		default:
			return out, false
		}
	}
}

func (l *gitLexer) next() byte {
	if l.at >= len(l.text) {
		l.over = true
		return '\n'
	}
	c := l.text[l.at]
	if l.at++; c == '\r' && l.at < len(l.text) && l.text[l.at] == '\n' {
		l.at++
		return '\n'
	}
	return c
}

// section reads a header from behind its bracket.
func (l *gitLexer) section() (string, bool) {
	var b strings.Builder
	for {
		c := l.next()
		switch {
		case l.over:
			return "", false
		case c == ']':
			return b.String(), true
		case blank(c):
			for blank(c) {
				if c == '\n' {
					return "", false
				}
				c = l.next()
			}
			if c != '"' {
				return "", false
			}
			b.WriteByte('.')
			ok := l.subsection(&b)
			return b.String(), ok
		case !keyByte(c) && c != '.':
			return "", false
		}
		b.WriteByte(lower(c))
	}
}

// subsection reads what stands in a header's quotes: any byte after a backslash is
// itself.
func (l *gitLexer) subsection(b *strings.Builder) bool {
	for {
		c := l.next()
		if c == '"' {
			return l.next() == ']'
		}
		if c == '\\' {
			c = l.next()
		}
		if c == '\n' {
			return false
		}
		b.WriteByte(c)
	}
}

// setting reads the rest of a name, and its value.
func (l *gitLexer) setting(key string) (s gitSetting, ok bool) {
	var c byte
	name := []byte(key)
	for c = l.next(); !l.over && keyByte(c); c = l.next() {
		name = append(name, lower(c))
	}
	s.key = string(name)
	for c == ' ' || c == '\t' {
		c = l.next()
	}
	switch c {
	case '\n':
		s.alone = true
		return s, true
	case '=':
		ok = l.value(&s)
	}
	return s, ok
}

// value reads a value: without the blanks around it, the quotes and a comment.
func (l *gitLexer) value(s *gitSetting) bool {
	var b strings.Builder
	quoted, space := false, ""
	for {
		c := l.next()
		switch {
		case c == '\n':
			s.value = b.String()
			return !quoted
		case !quoted && blank(c):
			if b.Len() > 0 {
				space += " "
				s.blurred = s.blurred || c != ' '
			}
			continue
		case !quoted && (c == '#' || c == ';'):
			for l.next() != '\n' {
			}
			s.value = b.String()
			return true
		}
		b.WriteString(space)
		space = ""
		switch c {
		case '\\':
			switch c = l.next(); c {
			case '\n':
				continue
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			case 'n':
				c = '\n'
			case '\\', '"':
			default:
				return false
			}
			b.WriteByte(c)
		case '"':
			quoted = !quoted
		default:
			b.WriteByte(c)
		}
	}
}

// blank, letter, keyByte and lower are as git has them, whatever the language.
func blank(c byte) bool   { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func letter(c byte) bool  { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func keyByte(c byte) bool { return letter(c) || c >= '0' && c <= '9' || c == '-' }
func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
