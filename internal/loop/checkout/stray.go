package checkout

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/git"
)

// Stray is a commit that came into the main checkout while an item was worked on, and that
// neither the loop nor another command of reprise has made there: its agent may have, and
// then the work is not on the item's branch.
type Stray struct {
	Commit string
	What   string // as the reflog has it, such as "commit: Fix the login"
}

// Strayed are the stray commits in a checkout since a moment, and since it was at a commit.
func Strayed(root, base string, since time.Time) []Stray {
	moves := git.Moves(root, since)
	for i := len(moves) - 1; i >= 0; i-- {
		if moves[i].New == base { // the times of moves are whole seconds
			moves = moves[i+1:]
			break
		}
	}
	var out []Stray
	for _, m := range moves {
		how, _, _ := strings.Cut(m.What, ":")
		word, _, _ := strings.Cut(how, " ")
		switch word {
		case "commit", "cherry-pick", "revert", "rebase", "am":
			out = append(out, Stray{Commit: m.New, What: m.What})
		}
	}
	return out
}

// Committed reports whether git has said in a text that it made a commit: "[trunk 1a2b3c4] ".
func Committed(data []byte, commit string) bool {
	mark := []byte(" " + commit[:7])
	for {
		_, after, ok := bytes.Cut(data, mark)
		if !ok {
			return false
		}
		if rest := bytes.TrimLeft(after, "0123456789abcdef"); len(rest) > 0 && rest[0] == ']' {
			return true
		}
		data = after
	}
}

// NamesDir reports whether a text has the path of a directory, and not only that of one
// below or beside it.
func NamesDir(data []byte, dir string) bool {
	if dir == "" {
		return false
	}
	for {
		_, after, ok := bytes.Cut(data, []byte(dir))
		if !ok {
			return false
		}
		if len(after) == 0 || !strings.ContainsRune("/.-_", rune(after[0])) && !alphanumeric(after[0]) {
			return true
		}
		data = after
	}
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// ReadEnd reads the end of a regular file, so many bytes at most.
func ReadEnd(path string, most int64) ([]byte, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: it is no file", path)
	}
	f, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, min(fi.Size(), most))
	n, err := f.ReadAt(data, fi.Size()-int64(len(data)))
	if n > 0 {
		return data[:n], nil
	}
	return nil, err
}

// ReadStart reads the beginning of a regular file. An agent can put anything in its
// place.
func ReadStart(path string, most int) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("read %s: it is no file", path)
	}
	f, err := durable.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, most)
	n, err := f.Read(b)
	if n == 0 && err != nil && info.Size() > 0 {
		return "", err
	}
	return strings.ToValidUTF8(string(b[:n]), "\uFFFD"), nil
}
