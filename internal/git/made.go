package git

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"

	"reprise/internal/durable"
)

// maxLine bounds how much of a line of a reflog is read, in bytes.
const maxLine = 16 << 10

// By are the settings of a command by which the reflog names who made what it makes. mark is
// what the mail address of that one is: letters, digits, and ".", "_", "-", "+" and "@" in between.
func By(name, mark string) []string {
	return []string{"-c", "committer.name=" + name, "-c", "committer.email=" + mark}
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// MadeBy is what the reflog of a branch begins with, in the repository of the checkout around a
// directory, or whose git directory it is: the mail address of who made the branch, and what
// for. Both are "" where git has no reflog of it, and they are those of a later move where its
// beginning has expired. Git takes a branch's reflog away with the branch, and renames it with
// it. known is false where refs are kept in another form than files (reftable), which is not
// read here.
func MadeBy(dir, branch string) (mark, what string, known bool) {
	admin := dir
	if fi, err := os.Lstat(filepath.Join(dir, "objects")); err != nil || !fi.IsDir() || there(filepath.Join(dir, ".git")) || !there(filepath.Join(dir, "HEAD")) {
		admin = adminAround(dir)
	}
	if admin == "" || !filepath.IsLocal(filepath.FromSlash(branch)) {
		return "", "", true
	}
	admin = CommonOf(admin) // of a linked worktree
	if there(filepath.Join(admin, "reftable")) {
		return "", "", false
	}
	f, err := durable.Open(filepath.Join(admin, "logs", "refs", "heads", filepath.FromSlash(branch)))
	if err != nil {
		return "", "", true
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, maxLine)).ReadString('\n')
	if err != nil {
		return "", "", true
	}
	who, what, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
	_, mark, _ = strings.Cut(who, "<")
	mark, _, _ = strings.Cut(mark, ">")
	return mark, what, true
}
