// Package setup writes reprise's entries into the settings of agent programs,
// and takes them out again.
//
// It may write these files, each through package durable: a client's own
// settings file (see Locate for which), a backup of it beside it named
// <file>.bak-<time>, an instructions file such as CLAUDE.md between two marker
// lines, and its own note of what it did,
// <data>/clients/<hash of the path>.json. It takes the lock
// <data>/clients/<hash of the path>.lock while it changes a file.
//
// Settings files belong to their users. An edit changes the bytes it has to
// and no others: comments, order, indentation, line ends, a byte order mark
// and a missing last newline stay. A file that does not parse is not touched.
// The result of an edit is parsed again, and must differ from the original in
// reprise's entry only, before anything is written.
package setup
