// Command chaos runs the real loop while its processes are killed at random, and then
// looks whether anything was lost, done twice or left behind:
//
//	go run ./script/chaos [-for 5m] [-items 500] [-workers 8] [-seed N]
//
// For as long as it is told it kills, with SIGKILL, the loop, supervisors and agents, one
// by one and all at once, lets processes stand still for a while, begins the loop anew
// with a clock that was set, by more than a lease forward or by a little back, and is the person who answers
// interrupts. Then it lets the loop come to its end in peace. After that every item must
// be done or dead, exactly once, with what was made of it on its branch; each claim must
// have had one run at most; and no process, lease or worktree may be left.
//
// The seed makes the items and the order and times of the blows; which process is hit
// depends on what lives at that moment. It writes only below a temporary directory, which
// it removes when all went well, and takes no lock.
package main
