package guard

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// What never ends fills the memory of whoever keeps it: a substitution, a program that
// holds all lines, or one line that has no end.

// endless is how something that is read has no end.
type endless uint8

const (
	ending  endless = iota // it has one
	onLines                // there are always further lines
	oneLine                // its first line never ends
)

// endlessFile is how the file of a name has no end.
func endlessFile(name string) endless {
	switch name {
	case "/dev/zero", "/dev/full":
		return oneLine
	case "/dev/random", "/dev/urandom", "/dev/arandom":
		return onLines
	}
	return ending
}

// neverEnds judges a program that reads something without an end, and says whether what it
// writes has one.
func (a *analysis) neverEnds(g *args, st *state) endless {
	kind := st.in.endless
	for _, w := range g.operands {
		kind = max(kind, endlessFile(w.text))
	}
	switch g.name {
	case "yes":
		return onLines
	case "cat", "tr", "base64", "base32", "basenc", "tee", "fold", "pv", "nl", "rev", "expand", "unexpand":
		return kind
	case "od", "xxd", "hexdump", "hd":
		if g.has("-N") || g.has("--read-bytes") || g.has("-l") || g.has("-len") || g.has("-n") {
			return ending
		}
		return kind
	case "sort", "tail", "tac", "shuf", "tsort", "column", "ptx", "sponge":
		a.fills(kind, g.name)
	case "grep", "egrep", "fgrep", "rg", "sed", "awk", "gawk", "mawk", "cut", "uniq", "paste", "comm", "join":
		if kind == oneLine || g.name == "paste" && g.has("-s") {
			a.fills(kind, g.name)
		}
		if !g.has("-q") && !g.has("-m") {
			return kind
		}
	}
	return ending
}

// fills judges that something without an end is kept.
func (a *analysis) fills(kind endless, what string) {
	if kind != ending {
		a.give("never-ends", Ask, what, "what it reads never ends, and it keeps all of it: the memory of the machine fills", "take a part of it with head -c")
	}
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

// steps is how many words {FROM..TO..STEP} is.
func steps(elems []*syntax.Word) int {
	var nums []int
	for _, e := range elems {
		text := strings.TrimLeft(e.Lit(), "+")
		n, err := strconv.Atoi(text)
		if err != nil && len(text) == 1 {
			n, err = int(text[0]), nil
		}
		if err != nil {
			return maxBraces + 1
		}
		nums = append(nums, n)
	}
	if len(nums) < 2 {
		return 1
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
