package mdfile

import (
	"bytes"
	"slices"
	"strings"
)

// TextMerge is free text that was changed on two sides.
type TextMerge struct {
	Data      []byte
	Conflicts int // places that both sides changed; both versions stand there
}

// How [MergeText] says which version is whose.
const (
	conflictOurs   = "> **Two versions.** This was changed here and elsewhere at the same time. This is what was here:"
	conflictTheirs = "> This is what came from elsewhere; keep what holds, and remove these notices:"
	conflictEnd    = "> End of the two versions."
)

// MergeText merges text by lines. Where both sides changed the same lines, both
// versions stay, each under a notice; no line of either is lost.
func MergeText(base, ours, theirs []byte) TextMerge {
	return mergeLines(base, ours, theirs, func(ours, theirs []string) [][]string {
		return [][]string{{conflictOurs + "\n", "\n"}, ours, {"\n", conflictTheirs + "\n", "\n"}, theirs, {"\n", conflictEnd + "\n"}}
	})
}

// MergeUnion is [MergeText] for logs: where both sides changed the same lines, those
// of ours stand before those of theirs, without a notice.
func MergeUnion(base, ours, theirs []byte) []byte {
	return mergeLines(base, ours, theirs, func(ours, theirs []string) [][]string { return [][]string{ours, theirs} }).Data
}

func mergeLines(base, ours, theirs []byte, both func(ours, theirs []string) [][]string) TextMerge {
	switch {
	case bytes.Equal(ours, theirs), bytes.Equal(theirs, base):
		return TextMerge{Data: ours}
	case bytes.Equal(ours, base):
		return TextMerge{Data: theirs}
	}
	b, o, t := textLines(base), textLines(ours), textLines(theirs)
	toO, toT := matches(b, o), matches(b, t)
	var out bytes.Buffer
	m := TextMerge{}
	put := func(lines []string) {
		for _, l := range lines {
			if n := out.Len(); n > 0 && out.Bytes()[n-1] != '\n' {
				out.WriteByte('\n')
			}
			out.WriteString(l)
		}
	}
	ib, io, it := 0, 0, 0
	for {
		// The next line that all three have.
		nb := ib
		for nb < len(b) && (toO[nb] < io || toT[nb] < it) {
			nb++
		}
		no, nt := len(o), len(t)
		if nb < len(b) {
			no, nt = toO[nb], toT[nb]
		}
		bb, oo, tt := b[ib:nb], o[io:no], t[it:nt]
		switch {
		case slices.Equal(oo, tt), slices.Equal(bb, tt):
			put(oo)
		case slices.Equal(bb, oo):
			put(tt)
		default:
			m.Conflicts++
			for _, lines := range both(oo, tt) {
				put(lines)
			}
		}
		if nb == len(b) {
			break
		}
		put(o[no : no+1])
		ib, io, it = nb+1, no+1, nt+1
	}
	m.Data = bytes.Clone(out.Bytes())
	return m
}

func textLines(b []byte) []string { return slices.Collect(strings.Lines(string(b))) }

// matches gives for each line of a the line of b that it is, -1 for none, so that
// both go up: the longest common subsequence, where that can be afforded, and
// the lines at both ends else.
func matches(a, b []string) []int {
	out := make([]int, len(a))
	for i := range out {
		out[i] = -1
	}
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		out[from] = from
		from++
	}
	endA, endB := len(a), len(b)
	for endA > from && endB > from && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
		out[endA] = endB
	}
	const afford = 4 << 20
	n, k := endA-from, endB-from
	if n == 0 || k == 0 || n*k > afford {
		return out
	}
	length := make([]int32, (n+1)*(k+1))
	for i := n - 1; i >= 0; i-- {
		for j := k - 1; j >= 0; j-- {
			if a[from+i] == b[from+j] {
				length[i*(k+1)+j] = length[(i+1)*(k+1)+j+1] + 1
			} else {
				length[i*(k+1)+j] = max(length[(i+1)*(k+1)+j], length[i*(k+1)+j+1])
			}
		}
	}
	for i, j := 0, 0; i < n && j < k; {
		switch {
		case a[from+i] == b[from+j]:
			out[from+i] = from + j
			i, j = i+1, j+1
		case length[(i+1)*(k+1)+j] >= length[i*(k+1)+j+1]:
			i++
		default:
			j++
		}
	}
	return out
}
