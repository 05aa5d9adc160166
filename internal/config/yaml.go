package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"reprise/internal/clip"
	"reprise/internal/durable"
	"reprise/internal/mdfile"
)

// maxFile bounds a settings file. A real one has a few kilobytes; a larger one
// is a mistake, or a repository's trap: its project file is read by each command
// within it, and of a megabyte the parser makes minutes.
const maxFile = 64 << 10

// readFile reads a settings file: a regular file (a symbolic link to one is
// fine), at most maxFile bytes, UTF-8 with or without a byte order mark.
func readFile(path string) ([]byte, error) {
	data, err := durable.ReadFile(path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{File: path, Problem: "no such file", Remedy: "correct the path, or create the file", Err: err}
	case errors.Is(err, durable.ErrNotRegular):
		_, what, _ := strings.Cut(err.Error(), durable.ErrNotRegular.Error()+" ")
		return nil, &Error{File: path, Problem: "is not a regular file " + what, Remedy: "name a file", Err: err}
	case errors.Is(err, durable.ErrTooLong):
		return nil, &Error{File: path, Problem: fmt.Sprintf("is larger than %d bytes", maxFile), Remedy: "name a settings file", Err: err}
	case err != nil:
		return nil, &Error{File: path, Problem: "cannot be read: " + cause(err), Remedy: "check the path and its permissions", Err: err}
	}
	return data, nil
}

func cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// document is one parsed YAML file: a mapping, or nothing at all.
type document struct {
	file string
	root []*ast.MappingValueNode
	errs Errors
}

// parseYAML parses data as the single mapping that a settings file is. It
// returns an error for anything it would have to guess about: more than one
// document, anchors, tags, keys that are not plain words, the same key twice.
func parseYAML(file string, data []byte) (*document, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if e := checkText(file, data); e != nil {
		return nil, e
	}
	if err := mdfile.CheckYAML(data, maxFile); err != nil {
		return nil, &Error{File: file, Problem: "is " + err.Error(), Remedy: "shorten it", Err: err}
	}
	f, err := safeParse(data)
	if err != nil {
		return nil, syntaxError(file, data, err)
	}
	d := &document{file: file}
	var body ast.Node
	for _, doc := range f.Docs {
		if doc.Body == nil {
			continue
		}
		if _, ok := doc.Body.(*ast.DirectiveNode); ok {
			return nil, d.problem(doc.Body, "", "a YAML directive is not supported here", "remove the line")
		}
		if body != nil {
			return nil, d.problem(doc.Body, "", "a second document begins", "keep everything in one document: remove the \"---\" line before it")
		}
		body = doc.Body
	}
	switch b := body.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
	case *ast.MappingNode:
		d.root = b.Values
	case *ast.MappingValueNode:
		d.root = []*ast.MappingValueNode{b}
	default:
		return nil, d.problem(body, "", "holds "+describe(body)+" where settings are expected", "write \"key: value\" lines")
	}
	return d, nil
}

// checkText refuses what is not UTF-8 text and says where.
func checkText(file string, data []byte) error {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return &Error{File: file, Line: 1, Column: 1, Problem: "is UTF-16 text", Remedy: "save it as UTF-8"}
	}
	line, col := 1, 1
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return &Error{File: file, Line: line, Column: col, Problem: fmt.Sprintf("byte 0x%02x is not UTF-8", data[i]), Remedy: "save the file as UTF-8"}
		case r == 0:
			return &Error{File: file, Line: line, Column: col, Problem: "holds a NUL byte", Remedy: "save the file as plain text"}
		case r == '\n':
			line, col = line+1, 0
		}
		col++
		i += n
	}
	return nil
}

// safeParse keeps a panic of the parser from ending the program: its input is
// foreign.
func safeParse(data []byte) (f *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, err = nil, fmt.Errorf("the YAML parser gave up: %v", r)
		}
	}()
	return parser.ParseBytes(data, 0)
}

// conflictLine is the first line, from 1, of what git writes where a merge finds that both
// sides changed the same; 0 where none of it is there.
func conflictLine(data []byte) int {
	n, first, end := 0, 0, false
	for line := range bytes.Lines(data) {
		n++
		switch {
		case bytes.HasPrefix(line, []byte("<<<<<<< ")) && first == 0:
			first = n
		case bytes.HasPrefix(line, []byte(">>>>>>> ")):
			end = true
		}
	}
	if !end {
		return 0
	}
	return first
}

func syntaxError(file string, data []byte, err error) error {
	e := &Error{File: file, Problem: "is not valid YAML: " + err.Error(), Remedy: "correct the syntax", Err: err}
	var ye yaml.Error
	if !errors.As(err, &ye) {
		return e
	}
	msg := ye.GetMessage()
	e.Problem = "is not valid YAML: " + msg
	if tk := ye.GetToken(); tk != nil && tk.Position != nil {
		e.Line, e.Column = tk.Position.Line, tk.Position.Column
	}
	if line := conflictLine(data); line > 0 {
		e.Line, e.Column = line, 1
		e.Problem, e.Remedy = "is a merge that is not resolved: git's marks (<<<<<<<, =======, >>>>>>>) are in it", "leave what is to count, and take the marks out; then `git add` it"
		return e
	}
	switch {
	case strings.Contains(msg, "already defined"):
		if tk := ye.GetToken(); tk != nil {
			e.Key = tk.Value
		}
		e.Problem, e.Remedy = strings.TrimPrefix(msg, "mapping "), "keep one of the two lines"
	case strings.Contains(msg, "mapping value is not allowed"):
		e.Remedy = "put quotes around the text: a colon and a blank in it begin another setting"
	case strings.Contains(msg, `'	'`) || strings.Contains(msg, `'\t'`):
		e.Problem, e.Remedy = "a tab is used for indentation", "indent with spaces"
	case strings.Contains(msg, "quoted text"):
		e.Remedy = "close the quotation mark"
	}
	return e
}

// problem makes an *Error that points at n.
func (d *document) problem(n ast.Node, key, problem, remedy string) *Error {
	e := &Error{File: d.file, Key: key, Problem: problem, Remedy: remedy}
	if tk := position(n); tk != nil && tk.Position != nil {
		e.Line, e.Column = tk.Position.Line, tk.Position.Column
	}
	return e
}

// position is the first token of n.
func position(n ast.Node) *token.Token {
	switch n := n.(type) {
	case nil:
		return nil
	case *ast.MappingNode:
		if n.Start != nil && n.Start.Value == "{" || len(n.Values) == 0 {
			return n.Start
		}
		return position(n.Values[0])
	case *ast.MappingValueNode:
		return position(n.Key)
	}
	return n.GetToken()
}

func (d *document) add(n ast.Node, key, problem, remedy string) {
	d.errs = append(d.errs, d.problem(n, key, problem, remedy))
}

// entry is one "key: value" of a mapping.
type entry struct {
	key   string
	node  ast.Node // the key's node
	value ast.Node
}

// entries checks the keys of a mapping whose own key is prefix ("" at the top).
func (d *document) entries(prefix string, values []*ast.MappingValueNode) []entry {
	seen := map[string]bool{}
	var out []entry
	for _, v := range values {
		s, ok := v.Key.(*ast.StringNode)
		if !ok {
			d.add(v.Key, prefix, fmt.Sprintf("%q is not a setting's name", strings.TrimSpace(v.Key.String())), "write a plain word, a colon and a value")
			continue
		}
		key := joinKey(prefix, s.Value)
		if seen[s.Value] {
			d.add(v.Key, key, "is set twice", "keep one of the two lines")
			continue
		}
		seen[s.Value] = true
		out = append(out, entry{key, v.Key, v.Value})
	}
	return out
}

func joinKey(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}

// mapping returns the entries of a section; an empty section is allowed.
func (d *document) mapping(key string, n ast.Node) ([]entry, bool) {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return nil, true
	case *ast.MappingNode:
		return d.entries(key, n.Values), true
	case *ast.MappingValueNode:
		return d.entries(key, []*ast.MappingValueNode{n}), true
	}
	d.add(n, key, "is "+describe(n)+", not a section", "write its settings on the lines below, indented")
	return nil, false
}

// str returns a text value.
func (d *document) str(key string, n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return strings.TrimRight(n.Value.Value, "\n"), true
	case nil, *ast.NullNode:
		d.add(n, key, "has no value", "give it one, or remove the line to have the default")
	default:
		d.add(n, key, "is "+describe(n)+", not text", "put quotation marks around it if it is meant as text")
	}
	return "", false
}

// integer returns a whole number within [lo, hi], written in plain decimal:
// what YAML makes of 010, 0x10 or 1_000 differs between its versions.
func (d *document) integer(key string, n ast.Node, lo, hi int) (int, bool) {
	span := fmt.Sprintf("give a whole number from %d to %d", lo, hi)
	switch n.(type) {
	case nil, *ast.NullNode:
		d.add(n, key, "has no value", span+", or remove the line to have the default")
		return 0, false
	case *ast.IntegerNode, *ast.StringNode:
	default:
		d.add(n, key, "is "+describe(n)+", not a whole number", span)
		return 0, false
	}
	tk := n.GetToken()
	text := strings.TrimSpace(tk.Value)
	digits := strings.TrimLeft(text, "+-")
	quoted := tk.Type == token.SingleQuoteType || tk.Type == token.DoubleQuoteType
	switch {
	case quoted || digits == "" || len(text)-len(digits) > 1 || strings.Trim(digits, "0123456789") != "":
		if _, ok := n.(*ast.IntegerNode); ok {
			d.add(n, key, fmt.Sprintf("%s is not written as a plain decimal number", shown(text)), span)
		} else {
			d.add(n, key, "is "+describe(n)+", not a whole number", span)
		}
		return 0, false
	case len(digits) > 1 && digits[0] == '0':
		d.add(n, key, fmt.Sprintf("%s begins with a zero, which some read as octal", shown(text)), span)
		return 0, false
	}
	v, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || v > int64(hi):
		d.add(n, key, fmt.Sprintf("%s is too large", shown(text)), span)
		return 0, false
	case v < int64(lo) && v < 0:
		d.add(n, key, fmt.Sprintf("%s is negative", shown(text)), span)
		return 0, false
	case v < int64(lo):
		d.add(n, key, fmt.Sprintf("%s is too small", shown(text)), span)
		return 0, false
	}
	return int(v), true
}

// list returns a list of texts with the node of each.
func (d *document) list(key string, n ast.Node) ([]string, []ast.Node, bool) {
	switch s := n.(type) {
	case nil, *ast.NullNode:
		d.add(n, key, "has no value", "write [] for none, or remove the line")
	case *ast.SequenceNode:
		var out []string
		for i, v := range s.Values {
			text, ok := d.str(fmt.Sprintf("%s[%d]", key, i), v)
			if !ok {
				return nil, nil, false
			}
			out = append(out, text)
		}
		return out, s.Values, true
	default:
		d.add(n, key, "is "+describe(n)+", not a list", "write each item on a line of its own after \"- \"")
	}
	return nil, nil, false
}

// describe says in words what a node holds.
func describe(n ast.Node) string {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.StringNode:
		return "the text " + strconv.Quote(shown(n.Value))
	case *ast.LiteralNode:
		return "a block of text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "the number " + shown(n.GetToken().Value)
	case *ast.BoolNode:
		return "the truth value " + n.GetToken().Value
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a section"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "a YAML anchor or alias"
	case *ast.TagNode:
		return "a YAML tag"
	}
	return "something that is not a plain value"
}

// shown is what a message shows of a value.
func shown(s string) string { return clip.Runes(s, 60) }
