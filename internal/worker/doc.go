// Package worker has a machine work for projects that it clones: it keeps a checkout of
// each project that the user's own settings name, and runs the loop in it. What is done
// with an item is the loop's; this package brings the machine to where a loop can run, and
// sees that its loops together take no more than it can do.
//
// It owns one directory, worker.directory of the settings or ~/reprise-worker, and writes in it NAME, a clone
// of the project; NAME.new while it is being cloned; NAME.broken-N, what was there and was no
// clone any more; and NAME.lock, which is held while a clone is made or looked at. No other
// lock is taken within it. What happens in a clone afterwards is the loop's, and git's.
package worker
