package guard

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"reprise/internal/guard/know"
)

// What never ends fills the memory of whoever keeps it: a substitution, a program that
// holds all lines, or one line that has no end.

// endless is how something that is read has no end.
type endless uint8

const (
	ending  endless = iota // it has one
	waits                  // it goes on as long as something comes, or rests between its turns
	onLines                // there are always further lines
	oneLine                // its first line never ends
)

// endlessFile is how the file of a name has no end.
func endlessFile(name string) endless {
	switch name {
	case "/dev/zero", "/dev/full":
		return oneLine
	case "/dev/random", "/dev/urandom":
		return onLines
	}
	return ending
}

// neverEnds judges a program that reads something without an end, and says whether what it
// writes has one.
func (a *analysis) neverEnds(p *know.Program, g *args, st *state) endless {
	kind := st.in.endless
	for _, w := range g.operands {
		kind = max(kind, w.endless, endlessFile(w.text))
	}
	switch g.name {
	case "yes":
		return onLines
	case "seq":
		if n := len(g.operands); n > 0 && countless(g.operands[n-1].text) {
			return onLines
		}
	case "logs", "journalctl":
		if g.has("-f") || g.has("--follow") {
			return waits
		}
	case "cat", "tr", "base64", "base32", "basenc", "tee", "fold", "nl", "rev", "expand", "unexpand":
		return kind
	case "head":
		for _, o := range g.options {
			if countless(o.arg.text) {
				return kind
			}
		}
	case "od", "xxd", "hexdump", "hd":
		if !g.has("-N") && !g.has("--read-bytes") && !g.has("-l") && !g.has("-len") && !g.has("-n") {
			return kind
		}
	case "tail":
		a.fills(kind, g.name)
		if g.has("-f") || g.has("-F") || g.has("--follow") {
			return waits
		}
	case "shuf":
		if (g.has("-r") || g.has("--repeat")) && !g.has("-n") && !g.has("--head-count") {
			return onLines
		}
		a.fills(kind, g.name)
	case "sort", "tac", "tsort", "column", "cp", "wc", "cmp", "diff", "cksum", "md5sum", "sha1sum", "sha256sum", "sha512sum", "b2sum":
		a.fills(kind, g.name)
	case "dd":
		if !g.has("count") {
			for _, o := range g.options {
				kind = max(kind, endlessFile(o.arg.text))
			}
			a.fills(kind, g.name)
		}
	case "awk", "gawk", "mawk", "jq", "gojq", "jaq":
		if len(g.operands) > 0 && loopsForever(g.operands[0].text) {
			return oneLine // it may hold what it makes
		}
		fallthrough
	case "grep", "egrep", "fgrep", "rg", "sed", "cut", "uniq", "paste", "comm", "join":
		if kind == oneLine || g.name == "paste" && g.has("-s") {
			a.fills(kind, g.name)
		}
		if !g.has("-q") && !g.has("-m") {
			return kind
		}
	default:
		for i, w := range g.operands {
			if op := p.OperandAt(i, len(g.operands), g.has); op != nil && op.Kind == know.Read {
				a.fills(max(w.endless, endlessFile(w.text)), g.name)
			}
		}
		if st.in.endless == oneLine {
			a.fills(oneLine, g.name)
		}
	}
	return ending
}

// fills judges that something without an end is kept.
func (a *analysis) fills(kind endless, what string) {
	if kind != ending {
		a.give("never-ends", Ask, what, "what it reads never ends, and it waits for the end, or keeps all of it: the memory of the machine fills", "take a part of it with head -c")
	}
}

// pours judges what goes somewhere until there is no more room: a file, or the client.
func (a *analysis) pours(kind endless, where string) {
	if kind > waits {
		a.give("never-ends", Ask, "", "what it writes never ends, and fills "+where, "take a part of it with head -c")
	}
}

// countless reports whether a number, as seq and head take it, is one that nobody waits for.
func countless(text string) bool {
	number := strings.TrimRight(text, "bBKMGTPEkmi")
	large := len(number) < len(text) && strings.ContainsAny(text, "GTPE")
	switch strings.ToLower(strings.TrimPrefix(text, "+")) {
	case "inf", "infinity":
		return true
	}
	return number != "" && strings.Trim(number, "0123456789") == "" && (large || len(number) > 9)
}

// loopsForever reports whether a program for jq or awk has a loop in it that nothing ends.
func loopsForever(program string) bool {
	plain := strings.Join(strings.Fields(program), "")
	for _, begin := range []string{"while(1)", "while(true)", "for(;;)", "repeat(", "range(infinite)"} {
		if strings.Contains(plain, begin) {
			return !strings.Contains(plain, "break") && !strings.Contains(plain, "exit") && !strings.Contains(plain, "limit(") && !strings.Contains(plain, "first(")
		}
	}
	return false
}

// maxBraces is how many words braces may be for a shell before they count as filling the
// memory.
const maxBraces = 1_000_000

// braced is how many words a shell makes of a word's braces, at most a little more than
// maxBraces. The parser has taken them apart.
func braced(parts []syntax.WordPart) int {
	n := 1
	for _, p := range parts {
		b, ok := p.(*syntax.BraceExp)
		if !ok {
			continue
		}
		here := 0
		if b.Sequence {
			here = steps(b.Elems)
		} else {
			for _, e := range b.Elems {
				here = min(here+braced(e.Parts), maxBraces+1)
			}
		}
		n = min(n*here, maxBraces+1)
	}
	return n
}

// steps is how many words {FROM..TO..STEP} is: of numbers, or of letters.
func steps(elems []*syntax.Word) int {
	var nums []int
	for _, e := range elems {
		n, err := strconv.Atoi(e.Lit())
		if err != nil {
			n = int(e.Lit()[0])
		}
		nums = append(nums, n)
	}
	from, to := slices.Min(nums[:2]), slices.Max(nums[:2])
	step := 1
	if len(nums) > 2 {
		step = max(nums[2], -nums[2], 1)
	}
	if to-from < 0 || to-from > maxBraces*step {
		return maxBraces + 1
	}
	return (to-from)/step + 1
}
