// Package transcript reads what clients wrote down of past sessions (and their
// own memory files) and turns it into events, so that there is something to
// recall on the first day. It writes through package event only, plus its own
// cursor of what it has read; it takes the locks of those writes and no other.
package transcript
