package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	maxCommand = 1 << 20 // bytes of a command that are read
	maxNesting = 8       // sh -c inside sh -c
	maxDirs    = 16      // directories a command may change to
	maxWords   = 4096    // what braces may expand to
)

// shellReader walks through one command line.
type shellReader struct {
	g     *judge
	depth int
	line
	why string
}

// line is what has to be known of a whole command line before its parts can
// be judged.
type line struct {
	trust    bool // names mean what they usually mean: no functions, PATH unchanged
	allRead  bool // every command only reads
	indirect bool // one command's output may become another one's arguments
}

// shell judges a command for a POSIX-like shell. What the grammar does not
// know is refused. Otherwise every constant word, wherever it stands, is taken
// for a path (and a text that may name one); words that are only known when
// they run count as far as their constant beginning tells where they lead.
func (g *judge) shell(command string, depth int) string {
	if depth > maxNesting {
		return "the command starts shells inside shells, more than can be followed"
	}
	if len(command) > maxCommand {
		return "the command is longer than 1 MiB; put it into a file"
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return fmt.Sprintf("the command cannot be read as shell (%v); write it more plainly", err)
	}
	r := &shellReader{g: g, depth: depth}
	r.survey(f)
	r.start(f)
	syntax.Walk(f, r.visit)
	return r.why
}

func (r *shellReader) survey(f *syntax.File) {
	r.line = line{trust: true, allRead: true}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			r.trust = false
		case *syntax.Assign:
			if n.Name != nil && n.Name.Value == "PATH" {
				r.trust = false
			}
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.WhileClause, *syntax.ForClause:
			r.indirect = true
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				prog, args, _ := r.split(n)
				switch prog {
				case "xargs", "parallel", "read", "mapfile", "readarray":
					r.indirect = true
				}
				r.allRead = r.allRead && reads(prog, args)
			}
		}
		return true
	})
	r.allRead = r.allRead && r.trust
}

// start follows a cd that a line begins with: what comes after it does not
// run in the directory before it. Only there, and only into a directory that
// exists, is that sure.
func (r *shellReader) start(f *syntax.File) {
	if len(f.Stmts) == 0 || !r.trust {
		return
	}
	cmd := f.Stmts[0].Cmd
	for {
		b, ok := cmd.(*syntax.BinaryCmd)
		if !ok || b.Op != syntax.AndStmt {
			break
		}
		cmd = b.X.Cmd
	}
	c, ok := cmd.(*syntax.CallExpr)
	if !ok || f.Stmts[0].Background || len(c.Assigns) > 0 {
		return
	}
	prog, args, known := r.split(c)
	if prog != "cd" || !known || len(args) != 1 || args[0] == "" || args[0][0] == '-' || !(filepath.IsAbs(args[0]) || args[0][0] == '.') {
		return // a bare name may go through CDPATH
	}
	dir := r.g.abs(r.g.cwds[0], args[0])
	if st, err := os.Stat(dir); err == nil && st.IsDir() {
		r.word(c.Args[1], use{read: true, shallow: true}) // before it counts as here
		r.g.cwds = []string{dir}
	}
}

// split takes a simple command apart; known says that all of it is constant.
func (r *shellReader) split(n *syntax.CallExpr) (prog string, args []string, known bool) {
	known = true
	for i, w := range n.Args {
		text, ok := r.value(w)
		if known = known && ok; i == 0 {
			prog = plainName(text)
		} else {
			args = append(args, text)
		}
	}
	return prog, args, known
}

func (r *shellReader) visit(n syntax.Node) bool {
	if r.why != "" {
		return false
	}
	switch n := n.(type) {
	case *syntax.CallExpr:
		r.call(n)
	case *syntax.Assign:
		r.assign(n)
	case *syntax.Redirect:
		r.redirect(n)
	case *syntax.WordIter:
		for _, w := range n.Items {
			r.word(w, use{read: r.allRead})
		}
	case *syntax.TestClause:
		syntax.Walk(n, func(n syntax.Node) bool {
			if w, ok := n.(*syntax.Word); ok {
				r.word(w, use{read: r.allRead, shallow: true})
			}
			return r.why == ""
		})
	}
	return r.why == ""
}

func (r *shellReader) redirect(n *syntax.Redirect) {
	if n.Hdoc != nil {
		text, _ := r.value(n.Hdoc)
		r.text(text, use{read: r.allRead})
	}
	if n.Word == nil {
		return
	}
	switch n.Op {
	case syntax.RdrIn:
		r.word(n.Word, use{read: true, shallow: true})
	case syntax.Hdoc, syntax.DashHdoc:
	default:
		r.word(n.Word, use{shallow: true})
	}
}

func (r *shellReader) assign(n *syntax.Assign) {
	if n.Name == nil || n.Value == nil {
		return
	}
	text, known := r.value(n.Value)
	r.text(text, use{read: r.allRead})
	if known {
		r.g.vars[n.Name.Value] = text
	} else {
		delete(r.g.vars, n.Name.Value)
	}
}

func (r *shellReader) text(text string, u use) {
	if r.why == "" {
		r.why = r.g.mention(text, u)
	}
}

// call judges one simple command.
func (r *shellReader) call(n *syntax.CallExpr) {
	if len(n.Args) == 0 {
		return
	}
	prog, args, known := r.split(n)
	u := use{}
	if r.trust {
		u = use{read: reads(prog, args) && (!r.indirect || r.allRead), shallow: shallow[prog] && !recursive(prog, args)}
	}
	r.cwdUse(prog, args, u)
	for i, w := range n.Args {
		wu := u
		if (prog == "cp" || prog == "mv") && r.trust && i == len(n.Args)-1 && i > 1 {
			wu.shallow = true // the place that things go to is not gone down into
		}
		r.word(w, wu)
	}
	if r.why != "" {
		return
	}
	switch prog {
	case "cd", "pushd":
		r.chdir(args)
	case "eval":
		r.nested(strings.Join(args, " "), known)
	case "sh", "bash", "dash", "zsh", "ksh":
		for i, a := range args {
			if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.HasSuffix(a, "c") && i+1 < len(args) {
				r.nested(args[i+1], !strings.Contains(args[i+1], unknown))
				return
			}
		}
	}
}

func (r *shellReader) nested(command string, known bool) {
	if !known {
		r.why = "a command is put together while it runs and given to a shell; write it out so that it can be read"
		return
	}
	r.why = r.g.shell(command, r.depth+1)
}

// cwdUse judges a command by where it runs: in a directory that must not
// change only reading is allowed, and above a closed one nothing that goes
// down by itself.
func (r *shellReader) cwdUse(prog string, args []string, u use) {
	if prog == "cd" || prog == "pushd" {
		return
	}
	for _, dir := range r.g.cwds {
		u.shallow = !recursive(prog, args)
		for i, op := range operands(args) {
			// One that is there is what the command goes down into instead.
			if _, err := os.Lstat(r.g.abs(dir, op)); err == nil && i >= needsPattern(prog) {
				u.shallow = true
			}
		}
		if r.why == "" {
			r.why = r.g.path(dir, strings.TrimSpace(prog+" in "+dir), u)
		}
	}
}

func (r *shellReader) chdir(args []string) {
	ops := operands(args)
	if len(ops) == 0 && r.g.home != "" {
		ops = []string{r.g.home}
	}
	for _, a := range ops {
		a, _, _ = strings.Cut(a, unknown)
		for _, base := range slices.Clone(r.g.cwds) {
			if len(r.g.cwds) >= maxDirs {
				r.why = "the command changes directory more often than can be followed"
				return
			}
			if dir := r.g.abs(base, a); !slices.Contains(r.g.cwds, dir) {
				r.g.cwds = append(r.g.cwds, dir)
			}
		}
	}
}

// word judges one word in every directory that the command may be in.
func (r *shellReader) word(w *syntax.Word, u use) {
	if r.why != "" {
		return
	}
	alts := expandBraces(w)
	if alts == nil {
		r.why = "the command's braces stand for more words than can be followed"
	}
	for _, alt := range alts {
		text, _ := r.value(alt)
		r.text(text, u)
		for _, part := range candidates(text) {
			start, _, cut := strings.Cut(part, unknown)
			if cut && !strings.ContainsRune(start, filepath.Separator) {
				continue // could be anything, and mostly is a loop's variable
			}
			if cut {
				start += "**"
			}
			for _, dir := range r.g.cwds {
				if r.why == "" {
					r.why = r.g.pattern(r.g.abs(dir, start), strings.ReplaceAll(text, unknown, "…"), u)
				}
			}
		}
	}
}

// candidates are the parts of an argument that may be a path.
func candidates(text string) []string {
	if text == "" {
		return nil
	}
	out := []string{text}
	if _, v, ok := strings.Cut(text, "="); ok && v != "" {
		out = append(out, v)
	}
	if len(text) > 2 && text[0] == '-' && text[1] != '-' {
		out = append(out, text[2:])
	}
	if v, ok := strings.CutPrefix(text, "@"); ok && v != "" { // curl -d @file
		out = append(out, v)
	}
	return out
}

// unknown stands in a word's text for what is only known when it runs. No
// word can hold it otherwise.
const unknown = "\x00"

// value evaluates a word as far as it is constant.
func (r *shellReader) value(w *syntax.Word) (text string, known bool) {
	var b strings.Builder
	for i, p := range w.Parts {
		b.WriteString(r.part(p, i == 0))
	}
	return b.String(), !strings.Contains(b.String(), unknown)
}

func (r *shellReader) part(p syntax.WordPart, first bool) string {
	switch p := p.(type) {
	case *syntax.Lit:
		s := unescape(p.Value)
		if !first || !strings.HasPrefix(s, "~") {
			return s
		}
		if t := r.g.tilde(s); t != s {
			return t
		}
		return unknown // another user's home
	case *syntax.SglQuoted:
		if p.Dollar {
			return ansiC(p.Value)
		}
		return p.Value
	case *syntax.DblQuoted:
		var b strings.Builder
		for _, q := range p.Parts {
			if l, ok := q.(*syntax.Lit); ok {
				b.WriteString(unescape(l.Value))
			} else {
				b.WriteString(r.part(q, false))
			}
		}
		return b.String()
	case *syntax.ParamExp:
		// Only the plain forms; anything that works on a value is unknown.
		if p.Param == nil || p.Excl || p.Length || p.Width || p.IsSet || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Exp != nil || p.Names != 0 {
			return unknown
		}
		if p.Param.Value == "PWD" {
			return r.g.cwds[len(r.g.cwds)-1]
		}
		if v, ok := r.g.vars[p.Param.Value]; ok {
			return v
		}
	case *syntax.CmdSubst:
		if len(p.Stmts) == 1 {
			if c, ok := p.Stmts[0].Cmd.(*syntax.CallExpr); ok && len(c.Args) == 1 && c.Args[0].Lit() == "pwd" {
				return r.g.cwds[len(r.g.cwds)-1]
			}
		}
	case *syntax.ExtGlob:
		return "*"
	}
	return unknown
}
