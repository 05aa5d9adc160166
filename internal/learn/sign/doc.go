// Package sign reads what tools and people say, to know it again: the signature
// of a failed call, what a command line acts on and what two of them have in
// common, and whether a prompt corrects what was done.
//
// It is pure: it writes no file and takes no lock.
package sign
