// Package learn is how memory learns: it folds the event logs into episodes
// (task, tool, inputs hash, outcome, error signature, fix, confidence), patterns
// and anti-patterns, tiers and summaries, questions and answers, and the policy
// that recall ranks by; and it moves knowledge between scopes through gates.
//
// Everything it makes but entries and events is derived: it stands in recall's
// index and can be made again from the logs. What it acknowledges as learnt is
// an event or an entry of a plain file. It writes files only through event,
// recall and memory, and takes their locks and no lock of its own.
//
// # How folding works
//
// Of each event a record is kept, by session (record.go). A session's records in
// order of time come to documents and to rows (compose.go); the rows of one kind
// and group, such as all failures of one signature, come to documents that stand
// over sessions (pattern.go). A list of work in the index says which sessions and
// groups have to be worked out again (fold.go). To work out more from the log:
// keep the event's data (keepsData), add documents or rows in compose, and a case
// for the rows' kind in folder.group. Neither may depend on anything but
// records, rows, usage and the day, and foldVersion has to change.
package learn
