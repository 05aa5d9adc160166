package guard

import (
	"slices"
	"strings"
)

// xargs judges the command that xargs puts together from its standard input.
func (a *analysis) xargs(argv []word, st *state) source {
	if len(argv) == 2 && (argv[1].text == "--version" || argv[1].text == "--help") {
		return source{there: true}
	}
	g := a.parseArgs(&xargsProgram, argv[1:], st)
	mark, ends := "", ""
	in := st.in
	for _, o := range g.options {
		a.judgeUnknown(&xargsProgram, o)
		a.judgeOption(o, st)
		if o.opt == nil {
			continue
		}
		switch o.opt.Name {
		case "-I", "-J":
			mark = o.arg.text
		case "-i", "--replace":
			if mark = o.arg.text; mark == "" {
				mark = "{}"
			}
		case "-a", "--arg-file":
			in = source{there: true}
		case "-0", "--null", number.Name:
			ends = `\0` // alone it looks like a number, of which xargs takes no other
		case "-d", "--delimiter":
			if ends = o.arg.text; ends == "" {
				ends = unknown // which is no character
			}
		}
	}
	if ends != `\0` {
		a.apart(in.origin)
	}
	given, fixed := []string(nil), false
	if in.fixed && !in.doubt {
		given, fixed = xargsWords(in.text, ends)
	}
	inner := slices.Clone(g.operands)
	if len(inner) == 0 {
		inner = []word{{text: "echo"}}
	}
	switch {
	case mark != "":
		return a.eachLine(inner, mark, in, xargsLines(in, ends, given, fixed), st)
	case fixed:
		for _, f := range given {
			inner = append(inner, word{text: f, made: true})
		}
	default:
		inner = append(inner, word{text: unknown, split: true, made: true, origin: in.origin, dashed: !in.dotted})
	}
	return a.fedTo(inner, in, st)
}

// fedTo judges a command that is started as long as there is something to read.
func (a *analysis) fedTo(argv []word, in source, st *state) source {
	c := st.fork()
	c.in = source{}
	out := a.nested(argv, c)
	out.endless = max(out.endless, in.endless)
	return out
}

// maxLines is how many lines of a text that is known xargs -I is judged with one by one.
const maxLines = 16

// xargsLines are what xargs -I puts in the place of its mark, where that is plain.
func xargsLines(in source, ends string, given []string, fixed bool) []string {
	switch lines := strings.Split(strings.TrimSpace(in.text), "\n"); {
	case !fixed || ends != "" && len(given) != 1:
		return nil
	case len(lines) == 1 || ends == "" && len(lines) <= maxLines:
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		return lines
	}
	return nil
}

// eachLine judges a command in which xargs -I puts what it reads, each of these texts
// or, without any, one that is not known.
func (a *analysis) eachLine(inner []word, mark string, in source, texts []string, st *state) source {
	put := func(as word) source {
		argv := slices.Clone(inner)
		for i, w := range inner {
			argv[i] = w.put(mark, as)
		}
		return a.fedTo(argv, in, st)
	}
	if len(texts) == 0 {
		return put(word{text: unknown, made: true, origin: in.origin, dashed: !in.dotted})
	}
	out := put(word{text: texts[0], made: true})
	for _, t := range texts[1:] {
		if t != "" {
			out = out.and(put(word{text: t, made: true}))
		}
	}
	return out
}

// xargsWords are the words that xargs makes of a text, where that is plain: without an
// option to say what ends a word it takes quotes and backslashes out itself.
func xargsWords(text, ends string) (list []string, ok bool) {
	switch {
	case ends == "":
		return strings.Fields(text), !strings.ContainsAny(text, `\'"`)
	case ends == `\0`, ends == `\n`: // what has such an end is a line here
		ends = "\n"
	case ends == `\t`:
		ends = "\t"
	case len(ends) != 1 || ends == unknown:
		return nil, false
	}
	rest, line := strings.CutSuffix(text, "\n")
	if !line {
		rest = strings.TrimSuffix(text, ends)
	}
	if rest == "" {
		return nil, true
	}
	list = strings.Split(rest, ends)
	// Some give an empty word on and some do not, so that those behind it may be in
	// another place.
	return list, !slices.Contains(list, "")
}
