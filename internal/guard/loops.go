package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// forClause judges a loop once for each of a few values that are known, and
// else once for all.
func (a *analysis) forClause(c *syntax.ForClause, st *state) source {
	switch l := c.Loop.(type) {
	case *syntax.CStyleLoop:
		for _, x := range []syntax.ArithmExpr{l.Init, l.Cond, l.Post} {
			a.arith(x, st)
		}
		a.unsure(st, c)
		return a.turning(c, l.Cond == nil, a.loop(nil, c.Do, st), st)
	case *syntax.WordIter:
		return a.forWords(c, l, st)
	default:
		a.give("unknown-syntax", Ask, "", "this kind of loop is not known", "write it more plainly")
	}
	return a.loop(nil, c.Do, st)
}

// loop judges what runs any number of times: until the places where a turn may end,
// and its arguments, are those where the next one may begin.
func (a *analysis) loop(cond, do []*syntax.Stmt, st *state) source {
	first := len(a.parts)
	a.doubles(do)
	a.repeats++
	defer func() { a.repeats-- }()
	var out source
	for {
		was, n := st.fork(), len(a.parts)
		out = out.and(a.turn(cond, do, st))
		a.onlyNew(first, n)
		if samePlaces(was, st) {
			return out
		}
	}
}

// turn judges one turn of a loop, of which it is not known whether it comes to its end.
func (a *analysis) turn(cond, do []*syntax.Stmt, st *state) source {
	n := len(a.left)
	out := a.stmts(cond, st)
	body := st.fork()
	out = out.and(a.stmts(do, body))
	st.join(a, append(slices.Clone(a.left[n:]), body)...)
	return out
}

// samePlaces reports whether the directories and the arguments are the same.
func samePlaces(x, y *state) bool {
	return slices.Equal(x.cwds, y.cwds) && (x.cwds == nil) == (y.cwds == nil) && x.linked == y.linked && sameArgs(x, y)
}

func sameArgs(x, y *state) bool { return x.argsKnown == y.argsKnown && slices.Equal(x.args, y.args) }

// onlyNew leaves out of what was found from n on what was found since first already.
func (a *analysis) onlyNew(first, n int) {
	again := slices.Clone(a.parts[n:])
	a.parts = a.parts[:n]
	for _, p := range again {
		if !slices.Contains(a.parts[first:], p) {
			a.parts = append(a.parts, p)
		}
	}
}

const maxTurns = 12

func (a *analysis) forWords(c *syntax.ForClause, l *syntax.WordIter, st *state) source {
	var items []word
	for _, w := range l.Items {
		items = append(items, a.fields(w, st)...)
	}
	if a.closing != nil {
		for _, it := range items {
			a.closing.text(a, it, st)
		}
	}
	if !l.InPos.IsValid() {
		items = []word{{text: unknown, split: true, made: true, dashed: true}}
		if st.argsKnown {
			items = st.args
		}
	}
	a.assignment(l.Name.Value, word{text: unknown}, false, st)
	if c.Select {
		a.bindOwn("REPLY", value{}, st)
		a.eats([]word{{text: "read", src: "select"}}, st)
		for _, it := range items {
			a.says(it, st) // they are shown to choose from
		}
	}
	a.unsure(st, c)
	a.repeats++
	defer func() { a.repeats-- }()
	var out source
	body, n := st.fork(), len(a.left)
	early := func() []*state { return append(slices.Clone(a.left[n:]), body) }
	for i, it := range items {
		if i >= maxTurns {
			// The others are looked at as one that is not known, but where they
			// come from counts.
			a.loopValue(body, l.Name.Value, mixed(items[i:]))
			out = out.and(a.loop(nil, c.Do, body))
			break
		}
		a.loopValue(body, l.Name.Value, it)
		if it.several() {
			out = out.and(a.loop(nil, c.Do, body))
		} else {
			out = out.and(a.stmts(c.Do, body))
		}
		st.join(a, early()...) // it may go on with the next from where it was left
		*body = *st
	}
	if len(items) == 0 {
		out = a.loop(nil, c.Do, body)
	}
	st.join(a, early()...)
	return out
}

func (a *analysis) loopValue(st *state, name string, it word) {
	a.gets(name, value{known: !it.split, w: it, origin: it.origin}, st)
	switch {
	case it.split && it.text == unknown:
		st.bind(a, name, value{origin: it.origin, dotted: !it.dashed, w: word{secret: it.secret}})
	case it.glob:
		st.bind(a, name, value{known: true, w: word{text: it.text, src: it.src, glob: true, made: true, listed: a.patterned(it, st)}})
	default:
		st.bind(a, name, value{known: true, w: it})
	}
}

// mixed is a word that stands for any of these.
func mixed(list []word) word {
	out := word{text: unknown, split: true, made: true, origin: numbers, dashed: false}
	for _, w := range list {
		if !w.known() || strings.ContainsAny(w.text, "/.~$*?[") || strings.HasPrefix(w.text, "-") {
			return word{text: unknown, split: true, made: true, dashed: true, secret: anySecret(list)}
		}
		if w.text == "" || strings.Trim(w.text, "0123456789") != "" {
			out.origin = fewWords
		}
	}
	return out
}
