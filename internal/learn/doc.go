// Package learn is how memory learns: it folds the event logs into episodes
// (task, tool, inputs hash, outcome, error signature, fix, confidence), patterns
// and anti-patterns, tiers and summaries, questions and answers, and the policy
// that recall ranks by; and it moves knowledge between scopes through gates.
//
// Everything it makes but entries and events is derived: it stands in recall's
// index and can be made again from the logs. What it acknowledges as learnt is
// an event or an entry of a plain file. It writes files only through event,
// recall and memory, and takes their locks and no lock of its own.
package learn
