package guard

import (
	"path"
	"slices"
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

// A loop that nothing ends is as something that is read without an end, and what grows in it
// fills the memory by itself.

// turning judges a loop whose condition always holds, where endless says so, and returns what
// it writes.
func (a *analysis) turning(loop syntax.Node, endless bool, out source, st *state) source {
	if !endless {
		return out
	}
	leaves, rests := a.leavesLoop(loop, st)
	if leaves {
		return out
	}
	a.cur = current{text: a.source(loop)}
	if name := growing(loop); name != "" {
		a.give("never-ends", Ask, name, "the loop never ends, and the variable grows with each of its turns: the memory of the machine fills", "let it end")
	}
	switch {
	case rests:
		out.endless = max(out.endless, waits)
	case out.there:
		out.endless = max(out.endless, onLines)
	default:
		a.give("never-ends", Ask, "", "the loop never ends, and takes a processor for itself", "let it end, or sleep in it")
	}
	return out
}

// always reports whether the condition of a loop holds each time.
func always(cond []*syntax.Stmt, st *state, until bool) bool {
	s := cond[len(cond)-1]
	holds, known := endsAlike(s.Cmd, st)
	return known && holds != (s.Negated != until)
}

// endsAlike is how a command ends, where that is the same each time.
func endsAlike(c syntax.Command, st *state) (holds, known bool) {
	switch c := c.(type) {
	case *syntax.CallExpr:
		name, args := calledBy(c.Args)
		switch name {
		case ":", "true", "echo", "printf", "sleep":
			return true, true
		case "false":
			return false, true
		case "read":
			return true, st.in.endless > waits
		case "[", "test":
			if n := len(args); n > 0 && (n == 1) == (name == "test") && n < 3 {
				text, written := writtenOut(args[0])
				return text != "", written
			}
		}
	case *syntax.ArithmCmd:
		if w, ok := c.X.(*syntax.Word); ok {
			n, err := strconv.Atoi(w.Lit())
			return n != 0, err == nil
		}
	case *syntax.TestClause:
		if w, ok := c.X.(*syntax.Word); ok {
			text, written := writtenOut(w)
			return text != "", written
		}
	}
	return false, false
}

// leavesLoop reports whether something in a loop may leave it, and whether something in it
// has it rest.
func (a *analysis) leavesLoop(loop syntax.Node, st *state) (leaves, rests bool) {
	var called []*function
	call := func(c *syntax.CallExpr, depth int, beside bool) {
		name, args := calledBy(c.Args)
		switch name {
		case "exit", "exec", "eval":
			leaves = true
		case "return":
			leaves = leaves || depth > 0
		case "break":
			n := 1
			if len(args) > 0 {
				n, _ = strconv.Atoi(args[0].Lit())
			}
			leaves = leaves || n >= depth && depth > 0
		case "read":
			rests = rests || st.in.endless <= waits
		case "wait":
			rests = rests || !beside
		}
		if path.Base(name) == "sleep" {
			rests = rests || !beside
		}
		for f := st.funcs; f != nil; f = f.next {
			if f.name == name && !slices.Contains(called, f) {
				called = append(called, f)
			}
		}
	}
	a.calls(loop, call)
	for i := 0; i < len(called); i++ {
		a.calls(called[i].body, func(c *syntax.CallExpr, _ int, beside bool) { call(c, 0, beside) })
	}
	return leaves, rests
}

// calls goes over the commands of a piece, with the number of loops that each is in, and
// whether it runs beside the others.
func (a *analysis) calls(n syntax.Node, do func(c *syntax.CallExpr, loops int, beside bool)) {
	type place struct {
		loops  int
		beside bool
	}
	var at place
	var open []place
	syntax.Walk(n, func(n syntax.Node) bool {
		a.step(1)
		if n == nil {
			at, open = open[len(open)-1], open[:len(open)-1]
			return true
		}
		open = append(open, at)
		switch n := n.(type) {
		case *syntax.WhileClause, *syntax.ForClause:
			at.loops++
		case *syntax.Stmt:
			at.beside = at.beside || n.Background
		case *syntax.CallExpr:
			do(n, at.loops, at.beside)
		}
		return true
	})
}

// grown is a variable that gets a value, and the variables that are put together for it.
type grown struct {
	name string
	from []string
}

// tooLong is from which length on a variable counts as one that gets longer by its own length
// with each turn: what only gets longer by what is read, or by a letter, is far from it.
const tooLong = 1 << 20

// doubles judges that a variable gets longer by its own length with each turn of a loop.
func (a *analysis) doubles(do []*syntax.Stmt) {
	var list []grown
	for _, s := range do {
		list = grownIn(s, list)
	}
	a.step(40 * len(list))
	long := lengths(list, 40)
	for _, g := range list {
		if long[g.name] == tooLong {
			a.give("never-ends", Ask, g.name, "the variable gets longer by its own length with each turn of the loop: the memory of the machine fills", "bound how often it is done")
			return
		}
	}
}

// growing is a variable that is longer after each turn of a loop, "" where none is.
func growing(loop syntax.Node) string {
	list := grownIn(loop, nil)
	once, twice := lengths(list, 20), lengths(list, 40)
	for _, g := range list {
		if once[g.name] != twice[g.name] {
			return g.name
		}
	}
	return ""
}

// lengths are how long variables are after so many turns, where each began with one letter.
func lengths(list []grown, turns int) map[string]int {
	long := map[string]int{}
	for range turns {
		for _, g := range list {
			n := 1
			for _, name := range g.from {
				n = min(n+max(long[name], 1), tooLong)
			}
			long[g.name] = n
		}
	}
	return long
}

// grownIn are the variables that a piece of a command gives values, added to a list. The
// arguments of the shell are one, by the name @.
func grownIn(n syntax.Node, list []grown) []grown {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name == nil {
				break
			}
			g := grown{name: n.Name.Value, from: putIn(n)}
			if n.Append {
				g.from = append(g.from, g.name)
			}
			list = append(list, g)
		case *syntax.CallExpr:
			if name, words := calledBy(n.Args); name == "set" {
				g := grown{name: "@"}
				for _, w := range words {
					g.from = append(g.from, putIn(w)...)
				}
				list = append(list, g)
			}
		}
		return true
	})
	return list
}

// putIn are the variables that stand as they are in what is assigned.
func putIn(n syntax.Node) (names []string) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch p := n.(type) {
		case *syntax.CmdSubst, *syntax.ArithmExp:
			return false // what comes out of it is another text
		case *syntax.ParamExp:
			if p.Param == nil || p.Length || p.Exp != nil || p.Slice != nil || p.Repl != nil {
				return false // a part of it, or something else
			}
			if names = append(names, p.Param.Value); p.Param.Value == "*" {
				names[len(names)-1] = "@"
			}
		}
		return true
	})
	return names
}
