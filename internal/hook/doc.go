// Package hook is the one router behind every client's hooks: a payload in, an
// event recorded, a decision out. It is linked into the small program, so it
// imports neither the index nor git; what needs them is handed over to the full
// program, which passes its handlers in.
//
// Files it writes: the event log (through package event), the outbox of what
// could not be logged, and reprise's own log. It takes their locks only.
package hook
