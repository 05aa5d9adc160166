package lexicon

import _ "embed"

// lightTable is made of light.txt by this package's tests with -update: the stems of
// its words in one line, each once, sorted. It is searched as it stands.
//
//go:embed light.tab
var lightTable string

// Light says that a word, by its stem, is one that questions are framed in (happen,
// choose, favourite): where it is missing, that tells little of whether the memory
// speaks of the matter.
func Light(stem string) bool {
	return stem != "" && contains(lightTable, stem)
}

// rolesTable is made of roles.txt as lightTable is of light.txt.
//
//go:embed roles.tab
var rolesTable string

// Role says that a word, by its stem, is what somebody or something is to others
// (sister, dog, cluster), beside which a name often stands.
func Role(stem string) bool { return stem != "" && contains(rolesTable, stem) }
