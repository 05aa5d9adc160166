// Package lines changes a setting in the text of a YAML file by its lines, so that all else in
// it stays as a person wrote it, to the byte.
//
// It owns no file, writes none and takes no lock.
package lines

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Set is text, whose entries are root, with the lines of a setting written anew, put in, or
// with written "" taken out; ok is false where it is in a form for which that is not done: a
// section between braces, a line with two keys.
func Set(text string, root []*ast.MappingValueNode, name, written string) (out string, ok bool) {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	eol := "\n"
	if len(lines) > 0 && strings.HasSuffix(lines[0], "\r\n") {
		eol = "\r\n"
	}
	if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
		lines[n-1] += eol
	}
	parts := strings.Split(name, ".")
	level := root
	var above []*ast.MappingValueNode // the sections that the setting stands in, the outermost first
	for depth, part := range parts {
		var found *ast.MappingValueNode
		for _, v := range level {
			if s, isText := v.Key.(*ast.StringNode); isText && s.Value == part {
				found = v
			}
		}
		switch {
		case found == nil && written == "":
			return text, true
		case found == nil:
			return putIn(lines, above, level, parts[depth:], written, eol)
		case !ownLine(lines, found):
			return "", false
		case depth == len(parts)-1:
			if written == "" {
				return without(lines, append(above, found))
			}
			return replaced(lines, found, written, eol)
		}
		switch v := found.Value.(type) {
		case *ast.MappingNode:
			if v.IsFlowStyle {
				return "", false
			}
			level = v.Values
		case *ast.MappingValueNode:
			level = []*ast.MappingValueNode{v}
		case nil, *ast.NullNode:
			level = nil
		default:
			return "", false
		}
		above = append(above, found)
	}
	return "", false
}

// ownLine says that a key is the first thing on its line.
func ownLine(lines []string, v *ast.MappingValueNode) bool {
	p := v.Key.GetToken().Position
	return p.Line <= len(lines) && p.Column >= 1 && indentOf(lines[p.Line-1]) == p.Column-1
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// endOf is the index of the first line, from 0, that is no more of an entry.
func endOf(lines []string, v *ast.MappingValueNode) int {
	p := v.Key.GetToken().Position
	last := p.Line
	for i := p.Line; i < len(lines); i++ {
		rest := strings.TrimSpace(lines[i])
		in := indentOf(lines[i]) > p.Column-1 || indentOf(lines[i]) == p.Column-1 && (rest == "-" || strings.HasPrefix(rest, "- "))
		switch {
		case rest == "" || !in && strings.HasPrefix(rest, "#"):
			continue // of it only where more follows
		case !in:
			return last
		}
		last = i + 1
	}
	return last
}

// putIn adds a setting to the innermost of the sections above, whose entries are level, or at
// the file's end.
func putIn(lines []string, above, level []*ast.MappingValueNode, parts []string, written, eol string) (string, bool) {
	at, indent := len(lines), 0
	if n := len(level); n > 0 {
		if !ownLine(lines, level[n-1]) {
			return "", false
		}
		indent = level[n-1].Key.GetToken().Position.Column - 1
		at = endOf(lines, level[n-1])
	} else if n := len(above); n > 0 {
		p := above[n-1].Key.GetToken().Position
		at, indent = p.Line, p.Column+1
	}
	var fresh []string
	for i, part := range parts {
		line := strings.Repeat(" ", indent+2*i) + part + ":"
		if i == len(parts)-1 {
			line += " " + written
		}
		fresh = append(fresh, line+eol)
	}
	return strings.Join(slices.Insert(slices.Clone(lines), at, fresh...), ""), true
}

// replaced gives an entry another value. What is said behind it on its line stays.
func replaced(lines []string, v *ast.MappingValueNode, written, eol string) (string, bool) {
	p := v.Key.GetToken().Position
	line := lines[p.Line-1]
	colon := strings.IndexByte(line, ':')
	if colon < 0 {
		return "", false
	}
	last := endOf(lines, v)
	comment := ""
	for tk := v.Key.GetToken(); tk != nil && tk.Position.Line <= last; tk = tk.Next {
		if tk.Type == token.CommentType && tk.Position.Line == p.Line {
			comment = " #" + strings.TrimRight(tk.Value, "\r\n")
		}
	}
	out := slices.Clone(lines)
	return strings.Join(slices.Replace(out, p.Line-1, last, line[:colon]+": "+written+comment+eol), ""), true
}

// without takes the last of the entries out, and what stands above it where nothing else is
// left there.
func without(lines []string, path []*ast.MappingValueNode) (string, bool) {
	i := len(path) - 1
	for ; i > 0; i-- {
		if m, many := path[i-1].Value.(*ast.MappingNode); many && len(m.Values) > 1 {
			break
		}
	}
	from := path[i].Key.GetToken().Position.Line - 1
	return strings.Join(slices.Delete(slices.Clone(lines), from, endOf(lines, path[i])), ""), true
}
