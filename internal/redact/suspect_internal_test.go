package redact

import (
	"flag"
	"fmt"
	"go/format"
	"maps"
	"math/rand/v2"
	"os"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"testing"

	"reprise/internal/redact/suspect"
)

var update = flag.Bool("update", false, "write suspect/table.go anew")

// handMade are the keywords whose rules cannot be told by the length of a token
// beside the keyword; package suspect has a test of its own for each.
var handMade = map[string]string{
	"://": "url", "authorization": "header", "-----begin": "privKey", "-----end": "privKey", "private key": "", // it follows -----begin
	"curl": "curl", "secret_key": "freemius", "<add key=": "nuget",
	// Microsoft's webhook is a URL of its own host.
	"webhook.office.com": "always", "webhookb2": "always", "incomingwebhook": "always",
	// Two letters, and digits after them.
	"sk": "hexas,32", "test_": "hexas,31", "ey": "jwt", "s.": "vault",
	// Any character may stand in its name.
	"mailchimp": "near,32", "new-york-times": "near,32",
	// Line ends may stand in its value.
	"zxlk": "after,6",
	// The match holds other keywords of the same rule, which have their own marks.
	"intra": "",
	// What belongs to it stands further on.
	"cookie": "cookie", "machine": "netrc",
	"2a$": "hash", "2b$": "hash", "2y$": "hash", "apr1$": "hash", "argon2": "hash", "$1$": "hash", "$5$": "hash", "$6$": "hash", "$y$": "hash",
}

// minimal returns the shortest texts that an expression matches: each branch,
// each repetition as rarely as it may be, and of each class a character that is
// no token's, where it has one.
func minimal(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{string(re.Rune)}
	case syntax.OpCharClass:
		if few := members(re); len(few) > 0 { // a choice that a keyword may make
			return few
		}
		for _, c := range "#!, \n\"" {
			if inClass(re, c) {
				return []string{string(c)}
			}
		}
		for _, c := range "k8Kx" {
			if inClass(re, c) {
				return []string{string(c)}
			}
		}
		return []string{string(re.Rune[0])}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return []string{"#"}
	case syntax.OpCapture, syntax.OpPlus:
		return minimal(re.Sub[0])
	case syntax.OpQuest:
		return append(minimal(re.Sub[0]), "")
	case syntax.OpRepeat:
		var out []string
		for _, s := range minimal(re.Sub[0]) {
			out = append(out, strings.Repeat(s, re.Min))
		}
		return out
	case syntax.OpConcat:
		out := []string{""}
		for _, sub := range re.Sub {
			var next []string
			for _, tail := range minimal(sub) {
				for _, head := range out {
					if len(next) < 400 {
						next = append(next, head+tail)
					}
				}
			}
			out = next
		}
		return out
	case syntax.OpAlternate:
		var out []string
		for _, sub := range re.Sub {
			out = append(out, minimal(sub)...)
		}
		return out
	}
	return []string{""} // nothing at all, and what asserts
}

// members are the characters of a class that has but a few.
func members(re *syntax.Regexp) []string {
	var out []string
	for i := 0; i < len(re.Rune); i += 2 {
		for c := re.Rune[i]; c <= re.Rune[i+1]; c++ {
			if out = append(out, string(c)); len(out) > 4 {
				return nil
			}
		}
	}
	return out
}

func inClass(re *syntax.Regexp, c rune) bool {
	for i := 0; i < len(re.Rune); i += 2 {
		if re.Rune[i] <= c && c <= re.Rune[i+1] {
			return true
		}
	}
	return false
}

// beginsWord reports whether each match begins where a word does.
func beginsWord(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpWordBoundary:
		return true
	case syntax.OpConcat, syntax.OpCapture:
		return beginsWord(re.Sub[0])
	}
	return false
}

// derive is the marks of a rule's keywords.
func derive(t *testing.T, r *rule) map[string]string {
	out := map[string]string{}
	re, err := syntax.Parse(r.Regex, syntax.Perl)
	if err != nil {
		t.Fatalf("%s: %v", r.ID, err)
	}
	texts := minimal(re)
	for _, k := range r.Keywords {
		if hand, ok := handMade[k]; ok {
			if hand != "" && !strings.Contains(hand, ",") {
				hand += ",0"
			}
			if hand != "" {
				out[k] = hand
			}
			continue
		}
		after, named, before, longest, held := 1<<10, 1<<10, 1<<10, 1<<10, 0
		how := "after"
		if beginsWord(re) {
			how = "edge"
		}
		for _, s := range texts {
			run, most := 0, 0
			for i := range len(s) {
				if run++; !suspect.Token(s[i]) {
					run = 0
				}
				most = max(most, run)
			}
			longest = min(longest, most)
			at := strings.Index(strings.ToLower(s), k)
			if at < 0 {
				continue
			}
			held++
			if at > 0 {
				how = "after"
			}
			a, n, b := suspect.Runs(s, at, at+len(k))
			after, named, before = min(after, a), min(named, n), min(before, b)
		}
		switch {
		case held == 0:
			out[k] = fmt.Sprintf("near,%d", longest)
		case after >= 8:
			out[k] = fmt.Sprintf("%s,%d", how, after)
		case named >= 8:
			out[k] = fmt.Sprintf("named,%d", named)
		case before >= 8:
			out[k] = fmt.Sprintf("before,%d", before)
		default:
			t.Errorf("rule %s, keyword %q: what makes it suspect cannot be told from the expression (runs of %d, %d and %d); write a test for it into package suspect", r.ID, k, after, named, before)
		}
	}
	return out
}

// TestSuspectTable: the table is what the rules come to.
func TestSuspectTable(t *testing.T) {
	type mark struct{ word, how string }
	least := map[mark]int{}
	for _, l := range loadRules().rules {
		for word, h := range derived(t, l.get()) {
			how, num, _ := strings.Cut(h, ",")
			n, err := strconv.Atoi(num)
			if err != nil {
				t.Fatal(err)
			}
			if old, ok := least[mark{word, how}]; !ok || n < old {
				least[mark{word, how}] = n
			}
		}
	}
	marks := slices.Collect(maps.Keys(least))
	slices.SortFunc(marks, func(a, b mark) int { return strings.Compare(a.word+"\x00"+a.how, b.word+"\x00"+b.how) })
	var pairs [suspect.Classes]uint64
	groups := map[[2]byte][2]int{}
	var b strings.Builder
	b.WriteString("// Code generated by go test ./internal/redact -run TestSuspectTable -update; DO NOT EDIT.\n\npackage suspect\n\n")
	b.WriteString("// marks are sorted, so that those with the same beginning are found together.\n//\nvar marks = [...]mark{\n")
	for i, m := range marks {
		fmt.Fprintf(&b, "\t{%q, %s, %d},\n", m.word, m.how, least[m])
		first, second := suspect.Class(m.word[0]), suspect.Class(m.word[1])
		if first == 0 || second == 0 {
			t.Errorf("keyword %q begins with characters that have no class", m.word)
		}
		if pairs[first]>>second&1 == 0 {
			groups[[2]byte{first, second}] = [2]int{i, i}
		}
		pairs[first] |= 1 << second
		g := groups[[2]byte{first, second}]
		if g[1] != i {
			t.Errorf("keyword %q does not stand with those that begin as it does", m.word)
		}
		groups[[2]byte{first, second}] = [2]int{g[0], i + 1}
	}
	b.WriteString("}\n\n// pairs tells which second character may follow which first one, by class.\nvar pairs = [Classes]uint64{\n")
	for i, p := range pairs {
		fmt.Fprintf(&b, "%#x,%s", p, ends(i))
	}
	b.WriteString("\n}\n\n// groups are where the marks of each pair begin and end, in the order of pairs.\nvar groups = [...][2]uint16{\n")
	order := slices.SortedFunc(maps.Keys(groups), func(a, b [2]byte) int { return strings.Compare(string(a[:]), string(b[:])) })
	for i, k := range order {
		fmt.Fprintf(&b, "{%d, %d},%s", groups[k][0], groups[k][1], ends(i))
	}
	b.WriteString("\n}\n\n// rows are where the groups of each first character begin.\nvar rows = [Classes]uint16{\n")
	for class := range suspect.Classes {
		n, _ := slices.BinarySearchFunc(order, byte(class), func(k [2]byte, class byte) int { return int(k[0]) - int(class) })
		fmt.Fprintf(&b, "%d,%s", n, ends(class))
	}
	b.WriteString("\n}\n")
	want, err := format.Source([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("suspect/table.go", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile("suspect/table.go"); err != nil || string(got) != string(want) {
		t.Errorf("suspect/table.go is not what the rules come to (%v); run this test with -update", err)
	}
}

// ends is what follows the i-th number of a table, eight of which are a line.
func ends(i int) string {
	if i%8 == 7 {
		return "\n"
	}
	return " "
}

func derived(t *testing.T, r *rule) map[string]string {
	for _, h := range byHand {
		if h.id == r.ID {
			out := map[string]string{}
			for _, k := range h.words() {
				out[k] = map[string]string{assignedRule: "assigns,0", "option-password": "gives,0", "vendor-key": "vends,0", "placed-secret": "places,0"}[h.id]
			}
			return out
		}
	}
	switch r.ID {
	case genericRule:
		out := map[string]string{}
		for _, k := range r.Keywords {
			out[k] = "generic,0"
		}
		return out
	case "kubernetes-secret-yaml":
		return map[string]string{"secret": "kube,0"}
	}
	return derive(t, r)
}

// text makes a random text that the expression matches.
func text(rnd *rand.Rand, re *syntax.Regexp, b *strings.Builder) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if re.Flags&syntax.FoldCase != 0 && rnd.IntN(2) == 0 {
				r = []rune(strings.ToUpper(string(r)))[0]
			}
			b.WriteRune(r)
		}
	case syntax.OpCharClass:
		for range 50 {
			i := 2 * rnd.IntN(len(re.Rune)/2)
			lo, hi := re.Rune[i], min(re.Rune[i+1], re.Rune[i]+200)
			if c := lo + rune(rnd.IntN(int(hi-lo)+1)); c < 127 || rnd.IntN(40) == 0 {
				b.WriteRune(c)
				return
			}
		}
		b.WriteRune(re.Rune[0])
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte(" #aZ9-\"'"[rnd.IntN(8)])
	case syntax.OpCapture:
		text(rnd, re.Sub[0], b)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			text(rnd, sub, b)
		}
	case syntax.OpAlternate:
		text(rnd, re.Sub[rnd.IntN(len(re.Sub))], b)
	case syntax.OpQuest, syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		least, most := re.Min, re.Max
		switch re.Op {
		case syntax.OpQuest:
			least, most = 0, 1
		case syntax.OpStar:
			least, most = 0, -1
		case syntax.OpPlus:
			least, most = 1, -1
		}
		if most < 0 {
			most = least + 6
		}
		n := least
		if rnd.IntN(2) == 0 {
			n += rnd.IntN(min(most-least, 30) + 1)
		}
		for range n {
			text(rnd, re.Sub[0], b)
		}
	}
}

// TestSuspectMissesNothing: what a rule finds, package suspect suspects.
func TestSuspectMissesNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	red, n := New(), 25
	if os.Getenv("REPRISE_LONG_TESTS") != "" {
		n = 2000
	}
	for _, l := range loadRules().rules {
		r := l.get()
		if l.byHand != nil {
			continue // one piece of code does both
		}
		re, err := syntax.Parse(r.Regex, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for range n {
			var b strings.Builder
			if rnd.IntN(2) == 0 {
				b.WriteString([]string{"x ", "the ", "\"", "export "}[rnd.IntN(4)])
			}
			switch r.ID { // whose keyword stands beside the match
			case "facebook-access-token", "sourcegraph-access-token", "airtable-personnal-access-token":
				b.WriteString(r.Keywords[len(r.Keywords)-1] + " ")
			}
			text(rnd, re, &b)
			if rnd.IntN(2) == 0 {
				b.WriteString([]string{" and", "\"", "'\n", ";"}[rnd.IntN(4)])
			}
			s := b.String()
			if _, n := red.String(s); n > 0 {
				found++
				if !suspect.String(s) {
					t.Errorf("%s finds something in %q, which is not suspected", r.ID, s)
					break
				}
			}
		}
		if found == 0 && r.ID != "slack-config-access-token" && r.ID != "slack-webhook-url" { // their random texts are too odd
			t.Errorf("rule %s found nothing in any text made for it: the test tests nothing", r.ID)
		}
	}
}
