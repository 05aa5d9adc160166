package guard

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

func let(v Verdict) bool { return v.Decision == Allow || v.Decision == None }

// wraps reports whether a command can be put inside others by its text: one that
// ends in the middle of a line cannot.
func wraps(c string) bool {
	return !strings.HasSuffix(c, `\`) && !strings.Contains(c, "\\\n") && !strings.Contains(c, "END_OF_")
}

// For any command that is not allowed, no wrapping of it is: of each command of the
// corpus by itself, in the long form in every wrapping, in the short one in some.
func TestWrappedCorpus(t *testing.T) {
	p := newProject(t)
	g := newGenerator(t)
	list := wrappings()
	if len(list) < 30 {
		t.Fatalf("%d wrappings", len(list))
	}
	count := 0
	check := func(name, text string) {
		if count++; let(p.judge(text)) {
			t.Errorf("%s: %q is allowed", name, text)
		}
	}
	for _, c := range append(readCorpus(t, "bypasses.jsonl"), hard(t)...) {
		if c.Want == Allow || !wraps(c.Command) {
			continue
		}
		for i, k := range g.Perm(len(list)) {
			if !long() && i >= 8 {
				break
			}
			check(list[k].name, list[k].wrap(c.Command))
		}
	}
	// A command that is about nothing but its own program, in each of them.
	for _, w := range list {
		check(w.name, w.wrap("touch PWNED"))
		for i, k := range g.Perm(len(list)) {
			if !long() && i >= 12 {
				break
			}
			check(list[k].name+" "+w.name, list[k].wrap(w.wrap("touch PWNED")))
		}
	}
	t.Logf("%d wrapped commands", count)
}

// The same for generated commands, among others and in several wrappings at once.
func TestWrappedGenerated(t *testing.T) {
	p := newProject(t)
	g := newGenerator(t)
	list := wrappings()
	n := 4000
	if long() {
		n = 400_000
	}
	for range n {
		c := g.bad()
		if let(p.judge(c)) {
			t.Errorf("%q is allowed", c)
			continue
		}
		if !wraps(c) {
			continue
		}
		text, names := g.among(c), "among"
		for range 1 + g.IntN(2) {
			w := list[g.IntN(len(list))]
			text, names = w.wrap(text), names+", "+w.name
		}
		if let(p.judge(text)) {
			t.Errorf("%s: %q is allowed", names, text)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// The other way round: what is put together of allowed parts only is allowed, or
// users switch the guard off.
func TestChainsOfAllowedAreAllowed(t *testing.T) {
	p := newProject(t)
	g := newGenerator(t)
	n := 1500
	if long() {
		n = 30_000
	}
	for range n {
		a, b := g.everyday[g.IntN(len(g.everyday))], g.everyday[g.IntN(len(g.everyday))]
		if name, _, ok := strings.Cut(b, "="); ok && syntax.ValidName(name) {
			continue // after && or || nobody knows whether it was assigned
		}
		if strings.HasPrefix(a, "! ") || !let(p.judge(a)) || !let(p.judge(b)) {
			continue
		}
		w := []wrapping{
			around("and", "", " && "+b), around("or", "", " || "+b), around("list", "", "; "+b), around("lines", "", "\n"+b), around("heading", "echo \"=== x ===\"; ", "; echo ---; "+b), around("quiet", "", " 2>/dev/null; "+b), around("subshell", "( ", " ); "+b), around("block", "{ ", "; } | head -5; "+b),
			around("if", "if ", "; then "+b+"; fi"), around("for", "for i in 1 2; do ", "; "+b+"; done"), around("in a directory", "cd sub && ", ""), around("time", "time ", ""), around("or true", "", " || true"), around("both", "", " 2>&1 | tail -3"),
		}[g.IntN(14)]
		if text := w.wrap(a); !let(p.judge(text)) {
			t.Errorf("%s: %q: %s", w.name, text, p.judge(text).Reason)
		}
	}
}
