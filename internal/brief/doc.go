// Package brief puts together what a session is told: core, index, state and
// what recall finds, within one token budget, each line with its source, date
// and id, labelled as data from memory. It writes no files and takes no locks.
package brief
