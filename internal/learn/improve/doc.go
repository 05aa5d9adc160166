// Package improve is what memory learns about itself: it replays past recalls
// with other policies and takes one that does better, measures what recall is
// good for, and answers questions that the user has answered before.
//
// It works on what package learn has folded from the logs, and what it finds out
// it records as events. It owns no file, writes none but through what it is
// given, and takes no lock. In the index's key-value store it keeps how far an
// evaluation has come, which may be lost at any time.
package improve
