package guard

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"reprise/internal/clip"
)

// Line is one line of a tree of what the shell reads.
type Line struct {
	Depth int    `json:"depth"`
	Kind  string `json:"kind"`
	Text  string `json:"text"`
}

// Tree is how a command is read: its lists, commands, words that are not plain,
// redirections and substitutions. What cannot be read is one line that says so.
func Tree(command string) []Line {
	if len(command) > maxText || nesting(command) > maxNested {
		return []Line{{Kind: "error", Text: "more than is read"}}
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return []Line{{Kind: "error", Text: err.Error()}}
	}
	var out []Line
	depth := 0
	syntax.Walk(f, func(n syntax.Node) bool {
		if n == nil {
			depth--
			return true
		}
		if kind := nodeKind(n); kind != "" && len(out) < 2000 {
			out = append(out, Line{Depth: max(depth-1, 0), Kind: kind, Text: text(command, n)})
		}
		depth++
		return true
	})
	return flatten(out)
}

// flatten takes out the depths at which nothing is shown.
func flatten(lines []Line) []Line {
	var at []int
	for i := range lines {
		d := lines[i].Depth
		for len(at) > 0 && at[len(at)-1] >= d {
			at = at[:len(at)-1]
		}
		lines[i].Depth = len(at)
		at = append(at, d)
	}
	return lines
}

func text(command string, n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(command) || from >= to {
		return ""
	}
	s := strings.ReplaceAll(command[from:to], "\n", `\n`)
	return clip.Bytes(s, maxShown)
}

func nodeKind(n syntax.Node) string {
	switch n := n.(type) {
	case *syntax.CallExpr:
		return "command"
	case *syntax.BinaryCmd:
		return "list " + n.Op.String()
	case *syntax.Redirect:
		return "redirect"
	case *syntax.Assign:
		return "assign"
	case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ParamExp, *syntax.ArithmExp, *syntax.Subshell, *syntax.Block, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause,
		*syntax.FuncDecl, *syntax.TestClause, *syntax.ArithmCmd, *syntax.DeclClause, *syntax.LetClause, *syntax.TimeClause, *syntax.CoprocClause, *syntax.ExtGlob:
		name := strings.TrimPrefix(fmt.Sprintf("%T", n), "*syntax.")
		var b strings.Builder
		for i, r := range name {
			if i > 0 && r >= 'A' && r <= 'Z' {
				b.WriteByte(' ')
			}
			b.WriteRune(r | 0x20)
		}
		return b.String()
	}
	return ""
}
