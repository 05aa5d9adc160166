package git

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"reprise/internal/durable"
)

// Move is one line of a reflog: a checkout's HEAD went from one commit to another.
type Move struct {
	Old, New string
	At       time.Time // to the second
	// What is who moved it and what for, such as "commit: Fix the login". What this package
	// commits for a user begins with [Action].
	What string
}

// Action is how a reflog names what reprise committed for a user.
const Action = "reprise"

// maxReflog bounds how much of the end of a reflog is read, in bytes.
const maxReflog = 256 << 10

// Moves are the moves of the HEAD of the checkout around a directory since a moment, the
// oldest first. There are none where git keeps no reflog.
func Moves(dir string, since time.Time) []Move {
	admin := adminAround(dir)
	if admin == "" {
		return nil
	}
	return movesIn(filepath.Join(admin, "logs", "HEAD"), since)
}

// MovedBehind is where a checkout had its branch last that is at tip by now, moved there by a git
// that did not work in that checkout: git does not do that by itself, and update-ref in another
// worktree does. It is "" where that is not so, or where git keeps no reflogs.
func MovedBehind(dir, branch, tip string) (was string) {
	admin := adminAround(dir)
	if admin == "" || !filepath.IsLocal(filepath.FromSlash(branch)) {
		return ""
	}
	here := movesIn(filepath.Join(admin, "logs", "HEAD"), time.Time{})
	if len(here) == 0 || here[len(here)-1].New == tip {
		return ""
	}
	all := movesIn(filepath.Join(CommonOf(admin), "logs", "refs", "heads", filepath.FromSlash(branch)), time.Time{})
	if len(all) == 0 || all[len(all)-1].New != tip {
		return "" // not all is written there
	}
	return here[len(here)-1].New
}

// WasAt are the commits to which a branch was brought in the checkout around a directory, as far
// as git has kept that; not those to which somebody has moved it from elsewhere.
func WasAt(dir, branch string) map[string]bool {
	admin := adminAround(dir)
	if admin == "" || !filepath.IsLocal(filepath.FromSlash(branch)) {
		return nil
	}
	here, was := map[string]bool{}, map[string]bool{}
	for _, m := range movesIn(filepath.Join(admin, "logs", "HEAD"), time.Time{}) {
		here[m.New] = true // also of other branches that were checked out
	}
	for _, m := range movesIn(filepath.Join(CommonOf(admin), "logs", "refs", "heads", filepath.FromSlash(branch)), time.Time{}) {
		if here[m.New] {
			was[m.New] = true
		}
	}
	return was
}

// movesIn are the moves in a reflog since a moment, the oldest first; none where it cannot be read.
func movesIn(file string, since time.Time) []Move {
	f, err := durable.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil
	}
	from := max(0, fi.Size()-maxReflog)
	data := make([]byte, fi.Size()-from)
	n, _ := f.ReadAt(data, from)
	data = data[:n]
	if from > 0 {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	since = since.Truncate(time.Second)
	var out []Move
	for line := range strings.Lines(string(data)) {
		who, what, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		f := strings.Fields(who)
		if len(f) < 4 || !isID(f[0]) || !isID(f[1]) {
			continue
		}
		sec, err := strconv.ParseInt(f[len(f)-2], 10, 64)
		if at := time.Unix(sec, 0); err == nil && !at.Before(since) {
			out = append(out, Move{Old: f[0], New: f[1], At: at, What: what})
		}
	}
	return out
}

// Top is the top of the checkout that a directory lies in, a linked worktree's or a
// submodule's, too: the nearest at or above it that has a .git. "" outside git.
func Top(dir string) string {
	for d := dir; ; d = filepath.Dir(d) {
		if there(filepath.Join(d, ".git")) {
			return d
		}
		if d == filepath.Dir(d) {
			return ""
		}
	}
}

// adminAround is the git directory of the checkout around a directory, "" for none.
func adminAround(dir string) string {
	top := Top(dir)
	if top == "" {
		return ""
	}
	dot := filepath.Join(top, ".git")
	if fi, err := os.Lstat(dot); err == nil && fi.IsDir() {
		return dot
	}
	return LinkedDir(top)
}

// LinkedDir is the git directory that the checkout at top names as its own in a file, as
// that of a linked worktree or a submodule does; "" where there is none.
func LinkedDir(top string) string {
	data, err := durable.Read(filepath.Join(top, ".git"))
	if err != nil {
		return ""
	}
	path, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), "gitdir: ")
	if !ok || path == "" {
		return ""
	}
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(top, path)
	}
	return filepath.Clean(path)
}
