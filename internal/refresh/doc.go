// Package refresh removes what agent clients leave behind: old transcripts, debug
// output, snapshots and caches in their directories, and temporary files that killed
// processes of reprise left in its own. It also names client processes that nobody
// owns any more.
//
// It owns no files and takes no lock. It writes nothing; it removes, through package
// durable, what stands below the directories of [Places] and of what [Clean] is told:
// never a protected name, never what was written within the last hour, and nothing
// that may belong to a session that runs. A symbolic link is never followed.
package refresh
