// Package reading finds where a shell reads a command otherwise than the parser that
// the guard reads it by: around a backslash at a line's end, at the ends of
// here-documents, and in backquotes. There the parser's tree is not to be trusted.
//
// It is a function of a text and of its tree: it touches no file, writes none and
// takes no lock.
package reading

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// span is a piece of the text, from its first byte to the one after its last.
type span struct{ from, to int }

func (s span) has(i int) bool { return i >= s.from && i < s.to }

// Doubt says where a shell may read the text otherwise than it was parsed, "" where
// both read the same. Everything before the first such place is read the same by
// both, so that what the tree says of quotes counts up to there; and one such place
// is enough to doubt the rest.
func Doubt(f *syntax.File, text string) string {
	if !strings.Contains(text, "\\\n") && !strings.Contains(text, "<<") && !strings.Contains(text, "`") {
		return ""
	}
	var literal []span // where a backslash at a line's end is two bytes like others
	why := ""
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.SglQuoted:
			literal = append(literal, span{offset(n.Pos()), offset(n.End())})
		case *syntax.CmdSubst:
			if n.Backquotes && strings.Contains(text[offset(n.Pos()):min(offset(n.End()), len(text))], `\`) {
				why = "a backslash in backquotes"
			}
		case *syntax.Redirect:
			if n.Op != syntax.Hdoc && n.Op != syntax.DashHdoc {
				break
			}
			s, raw, odd := document(n, text)
			if odd != "" {
				why = odd
			}
			if raw {
				literal = append(literal, s)
			}
		}
		return why == ""
	})
	if why != "" {
		return why
	}
	return continued(text, literal)
}

func offset(p syntax.Pos) int { return int(p.Offset()) }

// continued looks at each backslash at a line's end. A shell takes both away before
// it reads on, so that what stands before and after may become one thing: $ and (,
// two letters of a name. Where a blank stands on one side nothing can become of it.
// In a comment it means nothing, and the next line is a command.
func continued(text string, literal []span) string {
	inLiteral := func(i int) bool {
		return slices.ContainsFunc(literal, func(s span) bool { return s.has(i) })
	}
	for from := 0; ; {
		i := strings.Index(text[from:], "\\\n")
		if i < 0 {
			return ""
		}
		i += from
		from = i + 2
		if inLiteral(i) {
			continue
		}
		line := text[strings.LastIndexByte(text[:i], '\n')+1 : i]
		for k := range len(line) {
			if line[k] == '#' && !inLiteral(i-len(line)+k) && (k == 0 || strings.IndexByte(" \t;&|()<>`{}\"'", line[k-1]) >= 0) {
				return "a comment that ends in a backslash"
			}
		}
		switch {
		case strings.HasSuffix(line, `\`):
			if strings.HasSuffix(line, `\\`) {
				return "several backslashes at a line's end"
			}
		case line != "" && !blank(line[len(line)-1]) && from < len(text) && !blank(text[from]) && text[from] != '\n':
			return "a backslash at a line's end inside a word"
		case line == "" && from < len(text) && !blank(text[from]):
			return "a line that is nothing but a backslash"
		}
	}
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

// document looks at a here-document: what it spans, whether it is read as it stands,
// and why its end may be another one for a shell.
func document(r *syntax.Redirect, text string) (s span, raw bool, why string) {
	stop, raw, ok := delimiter(r.Word)
	if !ok {
		return s, raw, "a here-document whose end is not a plain word"
	}
	tabs := r.Op == syntax.DashHdoc
	if r.Hdoc == nil {
		_, rest, _ := strings.Cut(text[min(offset(r.End()), len(text)):], "\n")
		line, _, _ := strings.Cut(rest, "\n")
		if line != stop && !(tabs && strings.TrimLeft(line, "\t") == stop) {
			return s, raw, "a here-document with nothing in it"
		}
		return s, raw, ""
	}
	s = span{offset(r.Hdoc.Pos()), min(offset(r.Hdoc.End()), len(text))}
	s.from = strings.LastIndexByte(text[:s.from], '\n') + 1 // the tree has the first part's place
	last := strings.LastIndexByte(text[:s.to], '\n') + 1    // of the line that ends it for the parser
	for at := s.from; at < len(text); {
		begin := at
		line := ""
		for {
			var l string
			var more bool
			l, _, more = strings.Cut(text[at:], "\n")
			at += len(l) + 1
			if raw || !more || !odd(l) {
				line += l
				break
			}
			line += l[:len(l)-1]
			if strings.Trim(line, "\t") == stop || strings.TrimLeft(l[:len(l)-1], "\t") == stop {
				return s, raw, "a here-document whose end is put together of two lines"
			}
		}
		if tabs {
			line = strings.TrimLeft(line, "\t")
		}
		if line == stop {
			if begin != last {
				return s, raw, "a here-document that ends elsewhere than it seems"
			}
			return s, raw, ""
		}
		if strings.ReplaceAll(line, "\t", "") == stop {
			return s, raw, "a here-document that may end at a line with tabs"
		}
	}
	return s, raw, "a here-document without its end"
}

// odd reports whether a line ends in a backslash that is not itself quoted by one.
func odd(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

// delimiter is the word that ends a here-document, and whether it is quoted.
func delimiter(w *syntax.Word) (stop string, raw, ok bool) {
	if len(w.Parts) != 1 {
		return "", false, false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		stop, raw = p.Value, false
		if strings.HasPrefix(stop, `\`) {
			stop, raw = stop[1:], true
		}
	case *syntax.SglQuoted:
		stop, raw = p.Value, true
		if p.Dollar {
			return stop, raw, false
		}
	case *syntax.DblQuoted:
		raw = true
		if len(p.Parts) == 1 {
			l, isLit := p.Parts[0].(*syntax.Lit)
			if !isLit {
				return "", raw, false
			}
			stop = l.Value
		}
		if p.Dollar {
			return stop, raw, false
		}
	default:
		return "", false, false
	}
	return stop, raw, stop != "" && !strings.ContainsAny(stop, "\\\n$`\"'\t")
}

// Readings are other ways to read a text that is in doubt: with the lines joined as
// a shell joins them, and with the next line a command after a comment.
func Readings(text string) []string {
	var out []string
	add := func(s string) {
		if s != text && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	add(strings.ReplaceAll(text, "\\\n", ""))
	var b strings.Builder
	for rest := text; rest != ""; {
		line, after, more := strings.Cut(rest, "\n")
		rest = after
		switch {
		case !more:
			b.WriteString(line)
		case !strings.HasSuffix(line, `\`):
			b.WriteString(line + "\n")
		case strings.Contains(line, "#"):
			b.WriteString(line[:len(line)-1] + "\n")
		default:
			b.WriteString(line[:len(line)-1])
		}
	}
	add(b.String())
	add(strings.ReplaceAll(text, "\\\n", "\n"))
	return out
}
