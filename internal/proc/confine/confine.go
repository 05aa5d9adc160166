// Package confine keeps an agent's process away from directories, whatever
// program or interpreter it runs, by Linux's Landlock. It is apart from proc so
// that only the program that applies it links the library.
//
// It owns no files, writes none and takes no lock. Start confines the child
// only; the calling process stays free.
//
// # What Landlock can say
//
// Landlock knows grants only, and a grant holds for everything below a
// directory. To deny D, everything that exists beside D and beside each of its
// ancestors is granted, and the ancestors themselves are not. The price:
//
//   - In an ancestor of D itself no entry can be made, removed or renamed, and
//     so no file there be replaced by rename. Files that are there can be
//     written in place, and directories that are there are free.
//   - With DenyAll, an ancestor cannot be listed, and a file that somebody else
//     puts there later cannot be read. (Looking up a known name, stat
//     included, always works.)
//   - Grants hold for the files of the moment: one that is replaced by another
//     program while the confined one runs is a new file directly in an
//     ancestor.
//   - mount(2) and pivot_root(2) are refused, so that bubblewrap and other
//     sandboxes made of mount namespaces do not work inside; ptrace and
//     /proc/<pid>/environ of processes outside are refused too, and set-user-id
//     programs (sudo) get no privileges.
//
// A confined process can confine what it starts further, unless it is kept from
// reading something by DenyAll: it cannot list the ancestors then. What it may
// neither read nor write is denied to all that it starts anyway, and is left out
// of a Spec; for the rest there is [ErrWithin].
//
// So put D deep, and make beforehand what the program needs beside it. (Claude
// Code 2.1 with D somewhere below its home directory: all tools work; without an
// existing ~/.claude it keeps no transcript and says nothing; ~/.claude.json is
// not written, since that goes by rename.) Network, abstract sockets and ioctls
// are not restricted, signals only with OwnSignals. A hard link to a
// file of D, or a bind mount of D, that exists elsewhere is not seen.
package confine

import "errors"

// ErrUnsupported says that this system cannot confine; Supported says why.
var ErrUnsupported = errors.New("confining is not supported here")

// ErrWithin says that this process is confined itself so that it cannot see what
// it would have to grant: nothing that it starts can be confined further.
var ErrWithin = errors.New("this process may itself not list a directory above, so what it starts cannot be confined further")

// Spec says what the program must not do. Paths are absolute; symbolic links in
// them are followed and the links themselves protected too. A path that does
// not exist cannot be made.
type Spec struct {
	// DenyWrite are directories (or files) that may be read and not changed.
	DenyWrite []string `json:"deny_write,omitempty"`
	// DenyAll are directories (or files) that may not be read either.
	DenyAll []string `json:"deny_all,omitempty"`
	// OwnSignals has the program signal only itself and what it starts, where the kernel
	// can see to that beside the rest (Linux 6.12, with the mending of 6.15): it cannot
	// end who waits for it.
	OwnSignals bool `json:"own_signals,omitempty"`
}

// Empty reports whether the Spec denies no path; then nothing is confined.
func (s Spec) Empty() bool { return len(s.DenyWrite) == 0 && len(s.DenyAll) == 0 }
