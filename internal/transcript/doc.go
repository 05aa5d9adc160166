// Package transcript reads what clients wrote down of past sessions (and their
// own memory files) and turns it into events, so that there is something to
// recall on the first day.
//
// It only ever reads below the clients' own directories, follows no link out of
// them, and never writes there. Events go where its caller puts them. The files
// it owns are its cursors, `<state>/import/<hash>.json`: for each transcript
// what of it was read and what could not be. It takes the lock
// `<state>/import/import.lock` for the length of an import, so that two do not
// both add what neither has seen yet. Losing the cursors costs time only: an
// event's id is a hash of where it was read, and what the log holds already is
// not added again.
package transcript
