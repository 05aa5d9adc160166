package git

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of times in /proc/PID/stat, in all of Linux's ABIs for programs.
const clockTick = time.Second / 100

// gitsIn says whether a git that was started before then works in a repository, or in
// one of its checkouts, and whether that could be found out.
func gitsIn(bare string, then time.Time) (working, known bool) {
	stat, err := os.ReadFile("/proc/stat")
	_, at, ok := bytes.Cut(stat, []byte("\nbtime ")) // when the machine began, in seconds
	list, lerr := os.ReadDir("/proc")
	if err != nil || lerr != nil || !ok {
		return false, false
	}
	line, _, _ := bytes.Cut(at, []byte("\n"))
	sec, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil {
		return false, false
	}
	boot := time.Unix(sec, 0)
	unseen := false
	for _, e := range list {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		dir := filepath.Join("/proc", e.Name())
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // ended meanwhile
		}
		open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
		if open < 0 || end < open || !bytes.HasPrefix(stat[open+1:end], []byte("git")) {
			continue
		}
		field := strings.Fields(string(stat[end+1:])) // from the third field on, the state
		if len(field) < 20 || field[0] == "Z" {
			continue
		}
		ticks, err := strconv.ParseInt(field[19], 10, 64)
		if err == nil && boot.Add(time.Duration(ticks)*clockTick).After(then.Add(2*time.Second)) {
			continue // it came later than the lock
		}
		at, err := os.Readlink(filepath.Join(dir, "cwd"))
		if err == nil && worksIn(at, bare) {
			return true, true
		}
		unseen = unseen || errors.Is(err, fs.ErrPermission)  // somebody else's git
		env, _ := os.ReadFile(filepath.Join(dir, "environ")) // of somebody else's it cannot be read
		for kv := range bytes.SplitSeq(env, []byte{0}) {
			if at, ok := bytes.CutPrefix(kv, []byte("GIT_DIR=")); ok && worksIn(string(at), bare) {
				return true, true
			}
		}
	}
	return false, !unseen
}

// worksIn says that a directory is of the repository, or in a checkout of it.
func worksIn(dir, bare string) bool {
	if !filepath.IsAbs(dir) {
		return false
	}
	if rel, err := filepath.Rel(bare, dir); err == nil && filepath.IsLocal(rel) {
		return true
	}
	for {
		dot := filepath.Join(dir, ".git")
		if fi, err := os.Lstat(dot); err == nil {
			if fi.IsDir() {
				return dot == filepath.Clean(bare)
			}
			link, err := os.ReadFile(dot)
			return err == nil && strings.HasPrefix(string(link), "gitdir: "+bare+string(filepath.Separator))
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}
