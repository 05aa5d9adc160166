package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"reprise/internal/guard/reading"
)

// closing judges a command by the directories that are closed to a run: each of its
// words, wherever it stands, is taken for a path and for a text that may name one.
type closing struct {
	g *judge
	// been are directories that the command may have been in: what is done after a
	// cd may still be done where it was before, for all that is sure.
	been     []string
	why      string
	indirect bool // one command's output may become another one's arguments
	fed      bool // a command may act on the names that it reads
	// into says that what is written out goes into a file, stored that names may stand in
	// one by now, and used that a command which came later may act on them.
	into, stored, used bool
	changes            bool // a command does more than read
	distrust           bool // names of programs may mean others than they usually do
	// named and taken are why texts, and arguments of commands that only read, are
	// refused where something else in the command changes things; listed is of those
	// commands that tell names.
	named, taken, listed string
}

// unknown stands in a word for what is only known when it runs. No word can hold it
// otherwise.
const unknown = "\x00"

// shell judges a command for a POSIX-like shell; what cannot be read is refused.
func (g *judge) shell(command string) string {
	a := newAnalysis(&Rules{Home: g.home})
	c := &closing{g: g}
	a.closing = c
	a.run(func() {
		st := a.start(g.cwds[0])
		f := a.parse(command)
		if f == nil {
			return
		}
		if why := reading.Doubt(f, command); why != "" {
			a.doubted(why, command, st)
		}
		if !c.leaves(f) {
			c.been = slices.Clone(g.cwds)
		}
		a.text = command
		a.stmts(f.Stmts, st)
		a.uncalled()
	})
	switch {
	case c.why != "":
		return c.why
	case c.changes && c.named != "":
		return c.named
	case c.changes && c.indirect && c.taken != "":
		return c.taken
	case (c.fed || c.used) && c.listed != "":
		return c.listed
	}
	for _, p := range a.parts {
		if fixed(p.Rule) {
			return p.sentence()
		}
	}
	return ""
}

// leaves reports whether a command begins by changing into a directory that is
// there: what comes after does not run where it was. Only there is that sure.
func (c *closing) leaves(f *syntax.File) bool {
	if len(f.Stmts) == 0 || f.Stmts[0].Background {
		return false
	}
	cmd := f.Stmts[0].Cmd
	for {
		b, ok := cmd.(*syntax.BinaryCmd)
		if !ok || b.Op != syntax.AndStmt {
			break
		}
		cmd = b.X.Cmd
	}
	call, ok := cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) != 2 || call.Args[0].Lit() != "cd" {
		return false
	}
	to, ok := plainWord(call.Args[1])
	if !ok || !filepath.IsAbs(to) && to[0] != '.' {
		return false // a bare name may go through CDPATH
	}
	info, err := os.Stat(c.g.abs(c.g.cwds[0], to))
	return err == nil && info.IsDir()
}

// dirs are the directories that the command may be in.
func (c *closing) dirs(st *state) []string {
	out := slices.Clone(st.cwds)
	for _, d := range c.been {
		if !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

// command judges a simple command.
func (c *closing) command(a *analysis, argv []word, st *state, function bool) {
	if c.why != "" {
		return
	}
	prog := plainName(argv[0].text)
	args := make([]string, len(argv)-1)
	for i, w := range argv[1:] {
		args[i] = w.text
	}
	c.indirect = c.indirect || takesNames(prog, args)
	reading := reads(prog, args) && !function && !c.distrust
	c.changes = c.changes || !reading
	// A function is looked at by itself, with what it is fed.
	c.fed = c.fed || st.in.there && !reading && !function && (c.distrust || !passesOn(prog, args))
	passes := passesOn(prog, args) && !function && !c.distrust
	c.used = c.used || c.stored && !reading && !passes
	c.stored = c.stored || reading && c.into && tellsNames(prog) || st.in.there && passes && (c.into || prog == "tee")
	u := use{read: reading, shallow: isShallow(prog) && !recursive(prog, args) && !function && !c.distrust}
	c.where(prog, args, u, st)
	for i, w := range argv {
		wu := u
		if (prog == "cp" || prog == "mv") && !c.distrust && i == len(argv)-1 && i > 1 {
			wu.shallow = true // the place that things go to is not gone down into
		}
		c.say(c.word(a, w, wu, st))
		if reading { // else it was said above
			why := c.word(a, w, use{shallow: wu.shallow}, st)
			c.keep(&c.taken, why)
			if tellsNames(prog) {
				c.keep(&c.listed, why)
			}
		}
	}
}

func (c *closing) say(why string) { c.keep(&c.why, why) }

func (c *closing) keep(at *string, why string) {
	if *at == "" {
		*at = why
	}
}

// where judges a command by where it runs: in a directory that must not change only
// reading is allowed, and above a closed one nothing that goes down by itself.
func (c *closing) where(prog string, args []string, u use, st *state) {
	for _, dir := range c.dirs(st) {
		u.shallow = !recursive(prog, args)
		for i, op := range operands(args) {
			// One that is there is what the command goes down into instead.
			if _, err := os.Lstat(c.g.abs(dir, op)); err == nil && i >= needsPattern(prog) {
				u.shallow = true
			}
		}
		c.say(c.g.path(dir, strings.TrimSpace(prog+" in "+dir), u))
	}
}

// text judges a text that is no argument: a value, a here-document, what a loop
// goes over.
func (c *closing) text(a *analysis, w word, st *state) {
	if c.why != "" {
		return
	}
	c.say(c.word(a, w, use{read: true, shallow: true}, st))
	c.keep(&c.named, c.word(a, w, use{shallow: true}, st))
}

// word says what is wrong with a word, "" where nothing is.
func (c *closing) word(a *analysis, w word, u use, st *state) string {
	a.step(2 + len(w.text)/64)
	if why := c.g.mention(w.text, u); why != "" {
		return why
	}
	for _, part := range candidates(w.text) {
		start, _, cut := strings.Cut(part, unknown)
		if cut && !strings.ContainsRune(start, filepath.Separator) {
			continue // could be anything, and mostly is a loop's variable
		}
		if cut {
			start += "**"
		}
		for _, dir := range c.dirs(st) {
			if why := c.g.pattern(c.g.abs(dir, start), strings.ReplaceAll(w.text, unknown, "…"), u); why != "" {
				return why
			}
		}
	}
	return ""
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
