// Package meta builds a system of agents for a domain: an interview in stages, which
// can be left and gone on with, and from its answers agents, commands, a skill,
// context files and workflows for Claude Code, scored before they are written.
//
// It owns <data>/meta/<hash of the project's path>/: interview.json, the answers so
// far, and built.json, what was written where and what was there before. In the
// project it writes below .claude/ and nowhere else, through a [durable.Dir] that
// cannot be led out of it, and never over a file that it has not written itself. It
// holds <data>/meta/<hash>/lock from reading to writing, and takes no other lock.
package meta
