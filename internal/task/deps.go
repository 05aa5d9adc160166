package task

import (
	"maps"
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
