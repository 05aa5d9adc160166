// Package task holds a project's list of tasks: specs/TODO.md for people,
// specs/state.json for programs, a folder a task with its reports, plans and
// summaries, and specs/errors.json.
//
// It writes TODO.md, state.json, errors.json, the folders NNN_slug/ and archive/,
// all beneath the project's specs/ and nowhere else. All that belongs together
// changes as one, through a [durable.Change] of that directory, whose lock
// (.reprise-journal/lock) is held from reading to writing, and within it an append's
// where a number is given. Who commits the files holds [Store.CommitLock].
//
// TODO.md is a person's file. It is read as markdown, and an edit replaces the few
// bytes that it is about: a field's value, a marker, a heading's number. What a
// person wrote by hand, in whatever order and spelling, stays as it stands.
package task
