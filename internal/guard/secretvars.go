package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"reprise/internal/guard/names"
)

// What a variable holds may not be known after a branch or a loop, and whether it was
// given a secret anywhere before is: a variable that was, and whose value is not known
// now, counts as one that holds it.

// taint notes that a variable was given a secret.
func (a *analysis) taint(name string, v value) {
	if !v.w.secret && !anySecret(v.list) {
		return
	}
	if a.tainted == nil {
		a.tainted = map[string]bool{}
	}
	a.tainted[name] = true
}

func anySecret(list []word) bool {
	return slices.ContainsFunc(list, func(w word) bool { return w.secret })
}

// holdsSecret reports whether a variable with this value holds a secret, by its name or
// by what it was given.
func (a *analysis) holdsSecret(name string, v value) bool {
	if v.w.secret || anySecret(v.list) {
		return true
	}
	if v.known || v.list != nil || v.origin == numbers {
		return false
	}
	return names.SecretVariable(name) || a.tainted[name] || a.opensProxy(name)
}

// opensProxy reports whether a variable is the address of a proxy with a password in it.
func (a *analysis) opensProxy(name string) bool {
	if !strings.HasSuffix(strings.ToLower(name), "_proxy") || a.r.Env == nil {
		return false
	}
	_, address, _ := strings.Cut(a.r.Env(name), "://")
	user, _, ok := strings.Cut(address, "@")
	return ok && strings.Contains(user, ":")
}

// toldSecrets judges words of test that it tells where they stand wrongly: a number that
// is none, an operator that it does not know.
func (a *analysis) toldSecrets(argv []word, st *state) {
	if n := len(argv); n > 0 && argv[n-1].text == "]" {
		argv = argv[:n-1]
	}
	at := func(i int) string {
		if i < 0 || i >= len(argv) {
			return ""
		}
		return argv[i].text
	}
	begins := func(i int) bool {
		switch at(i) {
		case "", "!", "(", "-a", "-o":
			return true
		}
		return false
	}
	for i, w := range argv {
		before, after := at(i-1), at(i+1)
		if i > 1 && compares(before) {
			a.guesses(argv[i-2], w, st)
		}
		switch {
		case before == "-n", before == "-z", compares(before), compares(after) && begins(i-1):
		case begins(i-1) && (begins(i+1) || after == ")"):
		default:
			a.says(w, st)
		}
	}
}

// guesses judges a comparison of a secret. Whether it is one text is little to tell; in a
// loop, or by a function that is given what to try, the answers make up the secret.
func (a *analysis) guesses(w, other word, st *state) {
	for range 2 {
		if w.secret && (other.text != "" || !other.known()) && (a.repeats > 0 || other.made && len(st.calls) > 0) {
			a.reads(w.shown())
			a.give("reads-secret", Ask, w.shown(), "a secret is compared again and again, which tells what it is", "compare it once")
			return
		}
		w, other = other, w
	}
}

// compares reports whether an operator of test takes any text, and says nothing of it.
func compares(op string) bool {
	switch op {
	case "=", "==", "!=", "<", ">":
		return true
	}
	return false
}

// declareWords judges the declaring words behind command or builtin.
func (a *analysis) declareWords(argv []word, st *state) source {
	named, prints := false, slices.ContainsFunc(argv[1:], func(w word) bool {
		return strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "p")
	})
	for _, w := range argv[1:] {
		name, v, ok := strings.Cut(w.text, "=")
		if argv[0].text == "readonly" || slices.ContainsFunc(argv, func(w word) bool { return w.text != "" && w.text[0] == '-' && strings.Contains(w.text, "r") }) {
			defer a.fix(strings.TrimSuffix(name, "+"))
		}
		switch {
		case strings.HasPrefix(w.text, "-") && w.known():
			if strings.Trim(w.text, "-xgrap") != "" {
				a.give("unknown-option", Ask, w.shown(), "this option changes what the variable means", "leave it out")
			}
		case !ok:
			a.subscript(w)
			if named = true; prints {
				a.shows(w.text, st)
				continue
			}
			if argv[0].text != "export" && argv[0].text != "readonly" && syntax.ValidName(w.text) {
				a.lost(w.text, st)
				a.locals = append(a.locals, w.text)
				st.bind(a, w.text, value{})
			}
		default:
			named = true
			a.subscript(word{text: strings.TrimSuffix(name, "+"), src: w.src})
			a.assignment(strings.TrimSuffix(name, "+"), word{text: v}, true, st)
			a.locals = append(a.locals, strings.TrimSuffix(name, "+"))
			st.bind(a, strings.TrimSuffix(name, "+"), value{w: word{secret: w.secret}})
		}
	}
	if !named {
		a.give("shows-environment", Ask, argv[0].text, "it prints the values of variables, secrets among them", "print the one variable that is wanted")
		a.reads(argv[0].text)
	}
	return source{}
}
