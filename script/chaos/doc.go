// Command chaos uses the whole of reprise while its processes are killed at random and its
// machine fails, and then looks whether anything was lost, done twice or left behind:
//
//	go run ./script/chaos [-for 5m] [-items 500] [-workers 8] [-seed N] [-only PARTS] [-faults FAULTS]
//
// The parts are the loop, hooks of the four clients, the MCP server, the dashboard, people
// who write into the memory, and agents whose state goes to a remote; the faults are
// SIGKILL and SIGSTOP, clocks that are set, a full, a slow and a read-only disk, a remote
// that is gone or says nothing, and no room for another open file. What was acknowledged
// meanwhile is written down. Then everything is left in peace until nothing is left to
// do, and each promise is looked at by name (docs/reliability.md).
//
// The seed makes the items, who does what, and the order and times of the blows; which
// process is hit depends on what lives at that moment. It writes only below a temporary
// directory, which it removes when all went well, and takes no lock. As root it mounts a
// file system there, and makes a control group.
package main
