package loop

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reprise/internal/durable"
	"slices"
	"strings"
	"time"

	"reprise/internal/git"
	"reprise/internal/loop/core"
	"reprise/internal/loop/said"
	"reprise/internal/run"
)

// Stray is a commit that came into the main checkout while an item was worked on, and that
// neither the loop nor another command of reprise has made there: its agent may have, and
// then the work is not on the item's branch.
type Stray struct {
	Commit string
	What   string // as the reflog has it, such as "commit: Fix the login"
}

// maxStrays are told of.
const maxStrays = 5

// Strayed are the stray commits since a moment, and since the work of a place was begun.
func (t *Worktrees) Strayed(p Place, since time.Time) []Stray {
	moves := git.Moves(t.Root, since)
	for i := len(moves) - 1; i >= 0; i-- {
		if moves[i].New == p.Base { // the times of moves are whole seconds
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

// strays are the stray commits of the time of a run that were not told of before. made says
// that the run has made them, as its own output shows.
func (l *Loop) strays(r run.Record, p Place) (list []Stray, made bool) {
	if l.opt.Strayed == nil || r.StartedAt.IsZero() {
		return nil, false
	}
	list = l.opt.Strayed(p, r.StartedAt)
	l.mu.Lock()
	list = slices.DeleteFunc(list, func(s Stray) bool { told, ok := l.strayed[s.Commit]; return ok && told != r.ID })
	for _, s := range list {
		l.strayed[s.Commit] = r.ID
	}
	l.mu.Unlock()
	if len(list) == 0 {
		return nil, false
	}
	out := said.Read(r.Client, r.Logs.Stdout)
	for call := range bytes.Lines(out.Tools.Bytes()) {
		made = made || bytes.Contains(call, []byte("commit")) && namesDir(call, l.opt.Root)
	}
	if data, err := readEnd(r.Logs.Stdout, said.Longest); err == nil {
		made = made || slices.ContainsFunc(list, func(s Stray) bool { return committed(data, s.Commit) })
	}
	return list, made
}

// committed reports whether git has said in a text that it made a commit: "[trunk 1a2b3c4] ".
func committed(data []byte, commit string) bool {
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

// namesDir reports whether a text has the path of a directory, and not only that of one
// below or beside it.
func namesDir(data []byte, dir string) bool {
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

// strayText says which commits came, and what to do.
func (l *Loop) strayText(list []Stray, made bool, p Place) string {
	var ids, whats []string
	for _, s := range list[max(0, len(list)-maxStrays):] {
		ids = append(ids, s.Commit[:10])
		_, what, _ := strings.Cut(s.What, ": ")
		whats = append(whats, fmt.Sprintf("%s (%s)", s.Commit[:10], oneLine(what, 80)))
	}
	where := filepath.Base(l.opt.Root)
	if made {
		return fmt.Sprintf("it committed in the main checkout, %s, and not in its place: %s; the work belongs on %s: go there, `git cherry-pick %s`, and leave the main checkout to people, who may want to take these commits back there",
			where, strings.Join(whats, ", "), p.Branch, strings.Join(ids, " "))
	}
	return fmt.Sprintf("commits came into the main checkout, %s, meanwhile: %s; if they are of this session and not of a person, the work belongs on %s: go there, and `git cherry-pick %s`",
		where, strings.Join(whats, ", "), p.Branch, strings.Join(ids, " "))
}

// astray fails the work of a run that has committed in the main checkout: what it made is
// not, or not all, on the item's branch.
func (l *Loop) astray(slot int, r run.Record, p Place) (wrong string) {
	list, made := l.strays(r, p)
	if len(list) == 0 {
		return ""
	}
	text := l.strayText(list, made, p)
	l.tell("elsewhere", slot, text)
	if !made {
		return ""
	}
	return text
}

// missed says of a run that has changed nothing in its place whether it may have worked in
// the main checkout.
func (l *Loop) missed(r run.Record, p Place, o *core.Outcome) {
	list, made := l.strays(r, p)
	if len(list) == 0 {
		return
	}
	o.Reason = join(o.Reason, l.strayText(list, made, p))
}

// readEnd reads the end of a regular file, so many bytes at most.
func readEnd(path string, most int64) ([]byte, error) {
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
