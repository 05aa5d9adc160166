// Package session is what a client's session is told, and how far what was
// recorded has to be organised before that. It is what the command line, the
// full program's hooks and the small program reprise-recall have in common, so
// that all of them say the same.
//
// It writes one small file a session below <state>/sessions, with the ids of
// what the session was told, through package durable and without a lock; events
// into the log through its broker; and the index (package recall), whose lock
// that package takes.
package session
