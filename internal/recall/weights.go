package recall

import (
	"slices"
)

// weight is one number that a ranking is steered by.
type weight int

// The weights. Each has its name in weightTable, which is the name that
// Policy.Weights uses; docs/recall.md explains them in the same order.
const (
	weightTitle weight = iota
	weightText
	weightAuthor
	weightSaturation
	weightLength
	weightPart
	weightRelated
	weightMember
	weightGeneric
	weightNameInText
	weightNamed
	weightBefore
	weightAfter
	weightFar
	weightWindow
	weightSession
	weightAnswer
	weightAsks
	weightShort
	weightWhen
	weightCount
	weightWhere
	weightWho
	weightWhy
	weightDate
	weightPhrase
	weightCoverage
	weightRecency
	weightImportance
	weightConfidence
	weightScope
	weightVectors
	weightNeighbourQuality
	numWeights
)

type weights [numWeights]float64

var weightTable = [numWeights]struct {
	name     string
	standard float64
}{
	weightTitle:            {"title", 1.6},
	weightText:             {"text", 1},
	weightAuthor:           {"author", 0.5},
	weightSaturation:       {"saturation", 1.2},
	weightLength:           {"length", 0.5},
	weightPart:             {"part", 0.5},
	weightRelated:          {"related", 0.35},
	weightMember:           {"member", 0.3},
	weightGeneric:          {"generic", 0.5},
	weightNameInText:       {"name_in_text", 0.3},
	weightNamed:            {"named", 0.4},
	weightBefore:           {"before", 0.3},
	weightAfter:            {"after", 0.2},
	weightFar:              {"far", 0.1},
	weightWindow:           {"window", 0},
	weightSession:          {"session", 0.2},
	weightAnswer:           {"answer", 0.2},
	weightAsks:             {"asks", 0.3},
	weightShort:            {"short", 0.2},
	weightWhen:             {"when", 0.2},
	weightCount:            {"count", 0.2},
	weightWhere:            {"where", 0.1},
	weightWho:              {"who", 0.1},
	weightWhy:              {"why", 0.1},
	weightDate:             {"date", 0.3},
	weightPhrase:           {"phrase", 0.2},
	weightCoverage:         {"coverage", 0.3},
	weightRecency:          {"recency", 0.05},
	weightImportance:       {"importance", 0.1},
	weightConfidence:       {"confidence", 0.05},
	weightScope:            {"scope", 0.05},
	weightVectors:          {"vectors", 0.5},
	weightNeighbourQuality: {"neighbour_quality", 0.5},
}

// WeightNames lists the names that Policy.Weights knows, sorted.
func WeightNames() []string {
	names := make([]string, 0, numWeights)
	for _, w := range weightTable {
		names = append(names, w.name)
	}
	slices.Sort(names)
	return names
}

// StandardWeight is what a weight is when a policy does not name it; ok is
// false for a name that no weight has.
func StandardWeight(name string) (v float64, ok bool) {
	for _, w := range weightTable {
		if w.name == name {
			return w.standard, true
		}
	}
	return 0, false
}

// weightsOf fills a policy's weights up with the standard ones. Names that are
// not known are left out, so that a policy of a later version does no harm.
func weightsOf(p Policy) weights {
	var out weights
	for i, w := range weightTable {
		out[i] = w.standard
		if v, ok := p.Weights[w.name]; ok && v == v {
			out[i] = min(max(v, -10), 10)
		}
	}
	return out
}
