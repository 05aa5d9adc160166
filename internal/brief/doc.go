// Package brief puts together what a session is told: core, index, state and
// what recall finds, within one token budget, each line with its source, date
// and id, labelled as data from memory. It owns no files, writes none and takes
// no lock.
//
// The order is fixed: what a person curated (core, index) comes first and has
// the smaller share, then where the work stands, then what was recalled, best
// first. What does not fit is left out whole or cut at a heading, and then the
// file is named that has the rest.
package brief
