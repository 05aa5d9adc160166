package improve

import (
	"maps"
	"slices"

	"reprise/internal/recall"
)

// Difference is one value that two policies do not share.
type Difference struct {
	Name string  `json:"name"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// Differences are the values of two policies that are not the same; what one does not
// name is as without a policy.
func Differences(a, b recall.Policy) []Difference {
	list := []Difference{}
	put := func(name string, from, to float64) {
		if from != to {
			list = append(list, Difference{name, from, to})
		}
	}
	put("threshold", a.Threshold, b.Threshold)
	put("diversity", a.Diversity, b.Diversity)
	std := recall.DefaultPolicy()
	for _, k := range slices.Sorted(maps.Keys(std.TopK)) {
		put("top_k."+k, float64(a.TopK[k]), float64(b.TopK[k]))
	}
	for _, k := range slices.Sorted(maps.Keys(std.Budget)) {
		put("budget."+string(k), float64(a.Budget[k]), float64(b.Budget[k]))
	}
	for _, name := range recall.WeightNames() {
		s, _ := recall.StandardWeight(name)
		of := func(p recall.Policy) float64 {
			if v, ok := p.Weights[name]; ok {
				return v
			}
			return s
		}
		put("weights."+name, of(a), of(b))
	}
	return list
}
