// Package lexicon is what recall knows of words: how a text is cut into them,
// which are forms of one another, which say little, which are related, and what
// a text says of times, numbers and names. It is pure: no files, no locks, no
// clock; its tables are made at first use.
package lexicon
