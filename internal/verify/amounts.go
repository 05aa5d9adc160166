package verify

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

var (
	notReached = pattern(`(?i)not reached|not met|not meet|less than|lower than|below|under\b|fail`)
	percents   = pattern(`\d+(?:\.\d+)? ?%`)
	decimals   = pattern(`\d+(?:\.\d+)?`)
	amounts    = pattern(`(?i)(?:^|[\s(✖])(\d+) (?:[a-z]+ )?(problems?|warnings?|files? (?:differ|(?:would|should|must) be (?:re)?(?:formatted|changed)|(?:is|are|were) not formatted|needs? (?:re)?formatting))(?:[^\w\s]|\s*$|\s(?:in|were|was|found|remain)\b|,)`)
	// status is what a server answered. Those of a moment, as 503, come and go.
	status = pattern(`(?i)\b(HTTP(?:/[\d.]+)?|(?:http )?status(?: code)?)([:=]? )(4[0-9][0-79]|500|501)\b|\b((?:returned|responded with|answered)) (4[0-9][0-79]|500|501)(\s*(?:$|[.,;:)\]]))`)
	counts = pattern(`(?i)\b(\d+) (?:\w+ )?(?:failing|failed|failures?|errors?|issues?|offenses?|violations?)\b|\b(?:failures|errors|failed|fail)[:=]? ?(\d+)\b`)
)

var (
	// ofAll is how many of all failed, or passed.
	ofAll = pattern(`(?i)\b(\d+) ?(?:/|of|out of) ?(\d+) (?:(?:unit |integration )?(?:tests?|checks?|cases?|specs?|examples?|suites?|files?|assertions?|scenarios?|steps?|targets?|packages?|modules?) )?(?:have |has |were |was )?(failing|failed|failures?|errors?|passed|passing|succeeded)\b|\b(failures|errors|failed|fail|passed|pass)[:=]? ?(\d+) ?(?:/|of|out of) ?(\d+)\b`)
	skips = pattern(`(?i)\b(?:skip|ignored|pending|todo|disabled|not run|filtered|xfail)`)
	// exits is with which code a program ended that a line complains of.
	exits = pattern(`^(?:[gr]e?)?make(?:\[\d+\])?: \*\*\* .*\bError (\d{1,3})$|(?i)\bexit(?:ed)?(?: with)?(?: code| status)[:=]? (\d{1,3})\b`)
	// expects is a number that a test expects.
	expects     = pattern(`(?i)\b(to (?:strictly |deeply |deep |strict |loosely )?(?:equal|be|eql|have (?:a )?length(?: of)?)|want(?:ed)?:?|expected:?) ?<?(-?\d+(?:\.\d+)?)`)
	notExpected = pattern(`(?i)^(?:[\pL\pN%_]|[.:/\-]\d| ?(?:ns|us|µs|ms|s|secs?|seconds?|minutes?|hours?|days?|[kmgt]?i?b|bytes)\b)`)
	actual      = pattern(`(?i)^>? (?:not )?to\b`)
)

// amount notes a number that is the complaint itself.
func (s *scanner) amount(l string) {
	if !strings.ContainsAny(l, "0123456789") {
		return
	}
	note := func(kind string, n float64) {
		if was, ok := s.amounts[kind]; ok && was >= n || len(s.amounts) >= maxAmounts {
			return
		}
		if s.amounts == nil {
			s.amounts, s.amountLines = map[string]float64{}, map[string]string{}
		}
		s.amounts[kind], s.amountLines[kind] = n, l
	}
	if low := strings.ToLower(l); (strings.Contains(low, "coverage") || strings.Contains(low, "fail-under")) && notReached().MatchString(l) {
		numbers := percents().FindAllString(l, -1)
		if len(numbers) == 0 {
			numbers = decimals().FindAllString(l, -1)
		}
		least := -1.0 // what was reached, for it is less than what is asked for
		for _, d := range numbers {
			if n, err := strconv.ParseFloat(strings.TrimRight(d, " %"), 64); err == nil && (least < 0 || n < least) {
				least = n
			}
		}
		if least >= 0 {
			note("not covered "+hashed(normal(l)), 100-least)
		}
		return
	}
	if m := exits().FindStringSubmatch(l); m != nil && !strings.Contains(l, "ignored") {
		if n, err := strconv.Atoi(m[1] + m[2]); err == nil {
			note(exitKind+hashed(normal(l)), float64(n))
		}
	}
	// Where a line has errors apart from warnings, those count.
	if m := amounts().FindStringSubmatch(l); m != nil && failuresCounted(l) < 0 && !strings.HasPrefix(l, "ok ") {
		if n, err := strconv.Atoi(m[1]); err == nil {
			note(strings.TrimSuffix(strings.Replace(strings.ToLower(m[2]), "files ", "file ", 1), "s"), float64(n))
		}
	}
}

// exitKind begins the kinds of amounts that are exit codes: of most programs the greater one is
// the worse, from tests that fail to what could not be run, or it is the number of failures.
const exitKind = "exit "

// worse are lines whose numbers are worse than they were at the base.
func (s *said) worse(base *said) []string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(s.amounts)) {
		was, known := base.amounts[kind]
		if strings.HasPrefix(kind, exitKind) && s.named(base) {
			continue // the names tell
		}
		if kind == "warning" && (s.failing > 0 || base.failing > 0 || len(s.names)+len(s.telling.order) > 0) {
			continue // they are not why it failed
		}
		if known && was > 0 && s.amounts[kind] > was+jitter {
			out = append(out, s.amountLines[kind])
		}
	}
	return out
}

// named reports whether both runs say which tests failed.
func (s *said) named(base *said) bool { return len(s.names) > 0 && len(base.names) > 0 }

// failuresCounted is how many failures a line counts, -1 where it counts none.
func failuresCounted(l string) int {
	most := -1
	if !strings.ContainsAny(l, "0123456789") {
		return most
	}
	for _, m := range ofAll().FindAllStringSubmatch(l, -1) {
		if n, err := strconv.Atoi(m[1] + m[5]); err == nil && !good(m[3]+m[4]) {
			most = max(most, n)
		}
	}
	for _, m := range counts().FindAllStringSubmatch(ofAll().ReplaceAllString(l, " "), -1) {
		if n, err := strconv.Atoi(m[1] + m[2]); err == nil {
			most = max(most, n)
		}
	}
	return most
}

// good reports whether a word counts what went well.
func good(word string) bool {
	return strings.HasPrefix(strings.ToLower(word), "pass") || strings.EqualFold(word, "succeeded")
}

// unpassed notes how many of all did not pass, where a line counts those that did. The last
// such line says what it came to: others are on the way.
func (s *scanner) unpassed(l string) {
	if !strings.ContainsAny(l, "0123456789") || skips().MatchString(l) {
		return
	}
	for _, m := range ofAll().FindAllStringSubmatch(l, -1) {
		n, err := strconv.Atoi(m[1] + m[5])
		all, aerr := strconv.Atoi(m[2] + m[6])
		if word := m[3] + m[4]; err == nil && aerr == nil && good(word) && n <= all {
			s.missing, s.missingLine = all-n, l
		}
	}
}

// withExpected is a line whose numbers that a test expects are words, for they stand in its
// source: another one is another test. What there was instead may differ from run to run, and
// so may what takes time or is long enough for having been drawn.
func withExpected(l string) string {
	found := expects().FindAllStringSubmatchIndex(l, -1)
	for _, at := range slices.Backward(found) {
		word, number, rest := strings.ToLower(l[at[2]:at[3]]), l[at[4]:at[5]], l[at[5]:]
		if len(number) > 5 || notExpected().MatchString(rest) || strings.HasPrefix(word, "expected") && actual().MatchString(rest) {
			continue
		}
		l = l[:at[4]] + "num_" + strings.Map(func(r rune) rune {
			switch {
			case r >= '0' && r <= '9':
				return 'a' + r - '0'
			case r == '-':
				return 'm'
			}
			return 'p'
		}, number) + rest
	}
	return l
}
