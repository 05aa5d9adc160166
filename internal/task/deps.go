package task

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// cycle finds numbers that wait for each other, as a path that ends where it
// begins; nil when there are none.
func cycle(deps map[int][]int) []int {
	const open, done = 1, 2
	mark := map[int]int{}
	var path []int
	var visit func(n int) []int
	visit = func(n int) []int {
		if mark[n] == done {
			return nil
		}
		path = append(path, n)
		if mark[n] == open {
			return slices.Clone(path[slices.Index(path, n):])
		}
		mark[n] = open
		for _, d := range deps[n] {
			if c := visit(d); c != nil {
				return c
			}
		}
		mark[n] = done
		path = path[:len(path)-1]
		return nil
	}
	for _, n := range slices.Sorted(maps.Keys(deps)) {
		path = path[:0]
		if c := visit(n); c != nil {
			return c
		}
	}
	return nil
}

func arrows(path []int) string {
	var words []string
	for _, n := range path {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, " → ")
}

// Proposal is a dependency that nobody declared and that what tasks touch speaks for.
type Proposal struct {
	Number int      `json:"number"`     // of the task that should wait
	On     int      `json:"depends_on"` // for this one
	Files  []string `json:"files"`      // that both touch
}

// Proposals are dependencies between tasks that have not ended, by what the phases
// of their plans that are still to be done say that they touch: of two that touch the same file the less
// urgent, then the later, should wait. Those that wait for each other already, however
// indirectly, are left out.
func (b *Board) Proposals() []Proposal {
	touch := map[string][]int{}
	var open []int
	for _, n := range b.State.Numbers() {
		t := b.State.Tasks[n]
		if t.Status.Ended() {
			continue
		}
		open = append(open, n)
		for _, f := range b.touches(t) {
			touch[f] = append(touch[f], n)
		}
	}
	shared := map[[2]int][]string{}
	for _, f := range slices.Sorted(maps.Keys(touch)) {
		list := touch[f]
		for i, a := range list {
			for _, other := range list[i+1:] {
				shared[[2]int{a, other}] = append(shared[[2]int{a, other}], f)
			}
		}
	}
	deps := b.deps()
	var out []Proposal
	for i, a := range open {
		for _, c := range open[i+1:] {
			files := shared[[2]int{a, c}]
			if len(files) == 0 || reaches(deps, a, c) || reaches(deps, c, a) {
				continue
			}
			first, later := a, c
			if rankOf(b.State.Tasks[c]) < rankOf(b.State.Tasks[a]) {
				first, later = c, a
			}
			out = append(out, Proposal{Number: later, On: first, Files: files})
		}
	}
	slices.SortFunc(out, func(a, b Proposal) int { return cmp.Or(a.Number-b.Number, a.On-b.On) })
	return out
}

// touches are the files that the phases of a task's plan name that are still to be done.
func (b *Board) touches(t *Task) []string {
	var out []string
	add := func(name string) {
		if name = path.Clean(strings.TrimSpace(name)); name != "." && !strings.HasPrefix(name, specsDir+"/") && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	if p, _, err := b.Plan(t); err == nil {
		for _, ph := range p.Phases {
			if ph.Status.Ended() {
				continue // what is done there is done
			}
			for _, f := range ph.Files {
				add(f)
			}
		}
	}
	return out
}

func rankOf(t *Task) int {
	if at := slices.Index(Priorities, t.Priority); at >= 0 {
		return at
	}
	return len(Priorities)
}

// reaches reports whether a waits for b, at whatever distance.
func reaches(deps map[int][]int, a, b int) bool {
	seen := map[int]bool{}
	var visit func(n int) bool
	visit = func(n int) bool {
		if n == b {
			return true
		}
		if seen[n] {
			return false
		}
		seen[n] = true
		return slices.ContainsFunc(deps[n], visit)
	}
	return slices.ContainsFunc(deps[a], visit)
}
