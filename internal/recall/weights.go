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
	weightNear
	weightWindow
	weightSession
	weightAnswer
	weightAsks
	weightShort
	weightSubstance
	weightSpecific
	weightSelf
	weightLocal
	weightYou
	weightWhen
	weightCount
	weightWhere
	weightWho
	weightWhy
	weightDate
	weightPhrase
	weightCoverage
	weightStates
	weightRecency
	weightImportance
	weightConfidence
	weightScope
	weightClass
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
	weightSaturation:       {"saturation", 0.15},
	weightLength:           {"length", 0.15},
	weightPart:             {"part", 0.2},
	weightRelated:          {"related", 0.45},
	weightMember:           {"member", 0.7},
	weightGeneric:          {"generic", 0.5},
	weightNameInText:       {"name_in_text", 0.4},
	weightNamed:            {"named", 0.7},
	weightBefore:           {"before", 0.6},
	weightAfter:            {"after", 0.1},
	weightFar:              {"far", 0.15},
	weightNear:             {"near", 1},
	weightWindow:           {"window", 0.15},
	weightSession:          {"session", 0.45},
	weightAnswer:           {"answer", 0.5},
	weightAsks:             {"asks", 0.8},
	weightShort:            {"short", 0.25},
	weightSubstance:        {"substance", 1.5},
	weightSpecific:         {"specific", 0.5},
	weightSelf:             {"self", 0.2},
	weightLocal:            {"local", 0.9},
	weightYou:              {"you", 0.2},
	weightWhen:             {"when", 0.3},
	weightCount:            {"count", 0.4},
	weightWhere:            {"where", 0.15},
	weightWho:              {"who", 0.1},
	weightWhy:              {"why", 0.1},
	weightDate:             {"date", 0.3},
	weightPhrase:           {"phrase", 0.2},
	weightCoverage:         {"coverage", 0.15},
	weightStates:           {"states", 1},
	weightRecency:          {"recency", 0.02},
	weightImportance:       {"importance", 0.1},
	weightConfidence:       {"confidence", 0.05},
	weightScope:            {"scope", 0.05},
	weightClass:            {"class", 1},
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
