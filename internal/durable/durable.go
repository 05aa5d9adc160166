// Package durable is how every other package of reprise changes a file.
//
// It owns no file of its own. It writes exactly the paths that it is given,
// and beside them: a temporary file `.<name>.<random>.tmp` while a file is
// being replaced, `<name>.lock` for appends (never removed, because removing a
// lock file lets two holders lock two different inodes of one name),
// `<name>.torn` with what a crash left behind of an append,
// `.reprise-journal/` in a directory in which several files are changed at
// once, and `<name>.kept-<random>` with what somebody wrote into a guarded file
// (see [Change.Expect]) in the very moment in which it was replaced.
//
// It takes these locks: `<name>.lock` during an append, and
// `.reprise-journal/lock` from [Dir.Begin] until [Change.Commit] or
// [Change.Abort]. It never holds two of them at once.
//
// What it promises, on a file system that honours fsync and atomic rename:
//
//   - a call that returned nil is still there after a crash or a power cut;
//   - a call that failed, or never returned because its process was killed,
//     left the old content or the new one, never a mixture. The exception is
//     an append of several lines, which can be there in part, whole lines only;
//   - a last line torn by a crash is set aside by the next append, and nothing
//     that was acknowledged is touched by that;
//   - a symbolic link, a device, a pipe or a directory is never written through
//     or replaced.
//
// The package-level functions work on paths. A [Dir] does the same beneath one
// directory, by portable relative names, and cannot be led out of it. Both run
// the same code.
package durable

import (
	"context"
	"io/fs"
	"os"
	"time"
)

// WriteFile replaces the content of path, or makes the file. Readers see the
// old content or the new, whole. A file that exists keeps its permission bits
// (and, where the process may set it, its owner); a new one gets perm less the
// umask. The directory must exist. A path that is there and is not a regular
// file is refused with an error that is [ErrNotRegular].
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	return Disk{}.WriteFile(path, data, perm)
}

// WriteFileHot is [WriteFile] without the fsync of the directory: after a power
// cut the old or the new file is there, whole, but it may be the old one even
// though the call returned nil. It is for records that are written often and of
// which only the last matters.
func WriteFileHot(path string, data []byte, perm fs.FileMode) error {
	return Disk{}.WriteFileHot(path, data, perm)
}

// Append adds whole lines to the log at path, under the lock path+".lock", by
// one write and an fsync. The data must end in a newline. What a crash left of
// an earlier append (a last line without newline) is first moved to
// path+".torn". When the write fails, what it wrote is taken back and the error
// is returned.
func Append(path string, data []byte, perm fs.FileMode) error {
	return Disk{}.Append(context.Background(), path, data, perm)
}

// AppendNext is [Disk.Append] for data that depends on what is there: next is
// called with the lock held and the torn tail, if any, set aside. When it
// returns an error or nothing, nothing is appended.
func AppendNext(ctx context.Context, path string, perm fs.FileMode, next NextFunc) error {
	return Disk{}.AppendNext(ctx, path, perm, next)
}

// AppendText adds data to the text file at path, under the lock path+".lock",
// by one write and an fsync. Unlike [Append] it neither asks for a newline nor
// looks at how the file ends. When the write fails, what it wrote is taken back
// and the error is returned.
func AppendText(path string, data []byte, perm fs.FileMode) error {
	return Disk{}.AppendText(context.Background(), path, data, perm)
}

// MkdirAll makes the directory path and those above it that are missing, and
// makes them last. Directories that exist are left as they are.
func MkdirAll(path string, perm fs.FileMode) error { return Disk{}.MkdirAll(path, perm) }

// Remove removes the file, symbolic link or empty directory at path, for good.
// The error is [fs.ErrNotExist] when there is none.
func Remove(path string) error { return Disk{}.Remove(path) }

// RemoveAll removes path and what is beneath it, for good. A path that does not
// exist is no error; the file system's root, "." and "" are refused.
func RemoveAll(path string) error { return Disk{}.RemoveAll(path) }

// Rename moves a file or directory within one file system, replacing a regular
// file at new, and makes that last.
func Rename(old, new string) error { return Disk{}.Rename(old, new) }

// Create makes a new file for a stream, such as a child's output, open for
// appending. It fails with [fs.ErrExist] when the path is taken. What is
// written through it lasts when the caller calls Sync.
func Create(path string, perm fs.FileMode) (*os.File, error) { return Disk{}.Create(path, perm) }

// RemoveStale removes, from the one directory dir, temporary files of this
// package that were last written before the time given: what killed processes
// left behind. The zero time stands for all of them, whatever their age: for a
// caller that holds the lock under which all of dir is written. It returns the
// names removed.
func RemoveStale(dir string, before time.Time) ([]string, error) {
	return Disk{}.RemoveStale(dir, before)
}
