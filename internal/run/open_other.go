//go:build !unix

package run

// dontWait is about named pipes, which do not lie in directories here.
const dontWait = 0
