// Package e2e holds the tests that run the built programs from outside, as a
// client and a person would: raw JSON-RPC over the server's pipes, the command
// line, and real agent programs that talk to a scripted model on loopback.
//
// It has no code of its own outside tests. Tests write only under their own
// temporary directories; each has its own home, and no test may leave a process
// behind that was started with that home.
//
// The agent programs are npm packages, pinned in script/clients and installed by
// script/test. Without them the tests that need them are skipped, unless
// REPRISE_REQUIRE_CLIENTS is set. They, and others that cost as much, run only with
// REPRISE_SUITES, in a step of script/test. The tests need a POSIX shell and
// signals, so they are not built on Windows; those that look at processes need
// Linux.
package e2e
