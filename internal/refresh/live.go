package refresh

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"reprise/internal/proc"
)

// Live is a client's process that runs now, and what its session may be using.
type Live struct {
	Client string // "" where it could be any: a program that several are run by
	ID     proc.ID
	Began  time.Time // files that were written since are its own, or may be
	Dir    string    // working directory, "" where it cannot be told
	Words  string    // its command line: a session that is named there is kept
	RunID  string
	Entry  proc.Entry
}

// programs are words of paths by which a client's program is known. A process that
// is taken for a client by mistake keeps files and never loses any.
func programs(client string) []string {
	switch client {
	case "claude-code":
		return []string{"claude", "claude.exe", "claude-code"}
	case "codex":
		return []string{"codex", "codex.exe"}
	case "gemini":
		return []string{"gemini", "gemini.exe", "gemini-cli"}
	case "copilot":
		return []string{"copilot", "copilot.exe"}
	}
	return nil
}

// Sessions are the clients' processes among those of the machine, of the caller's
// own user.
func Sessions(table []proc.Entry) []Live {
	var out []Live
	for _, e := range table {
		if !e.Mine || len(e.Args) == 0 {
			continue
		}
		client, ok := clientOf(e.Args)
		if !ok {
			continue
		}
		out = append(out, Live{Client: client, ID: e.ID, Began: e.Began, Dir: e.Dir, Words: strings.Join(e.Args, " "), RunID: e.RunID, Entry: e})
	}
	return out
}

// clientOf says whose process it is. Clients are programs of their own or scripts that
// node runs, so the program's path and the script's are looked at, name by name.
func clientOf(args []string) (client string, ok bool) {
	first := strings.TrimSuffix(baseName(args[0]), ".exe")
	looked := args[:1]
	if first == "node" || first == "bun" || first == "MainThread" {
		if len(args) == 1 { // Windows tells no more than that
			return "", true
		}
		looked = args[1:]
		for i, a := range looked { // flags of node stand before the script
			if !strings.HasPrefix(a, "-") {
				looked = looked[i : i+1]
				break
			}
		}
	}
	for _, c := range Clients() {
		for _, word := range programs(c) {
			for _, part := range strings.FieldsFunc(looked[0], func(r rune) bool { return r == '/' || r == '\\' }) {
				if part == word {
					return c, true
				}
			}
		}
	}
	return "", false
}

func baseName(path string) string {
	if i := strings.LastIndexAny(path, `/\`); i >= 0 {
		return path[i+1:]
	}
	return path
}

// uuid is the form of a session's id in the names of the clients' files.
var uuid = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
})

// keeps says why a file or directory of a client is kept for a session that runs, ""
// where it is not. sessions are ids that are known to be live.
func keeps(live []Live, sessions []string, client string, a Area, rel string, newest time.Time) string {
	for _, id := range uuid().FindAllString(rel, -1) {
		for _, s := range sessions {
			if s == id {
				return "of a session that runs"
			}
		}
		for _, l := range live {
			if strings.Contains(l.Words, id) {
				return "of the session of process " + l.ID.String()
			}
		}
	}
	for _, l := range live {
		if l.Client != "" && client != Own && l.Client != client {
			continue
		}
		// A clock that is a second off must not take a session's first file.
		if !newest.Before(l.Began.Add(-time.Minute)) {
			return fmt.Sprintf("written since process %s began", l.ID)
		}
		if l.Dir != "" && a.Session && ofProject(client, rel, l.Dir) {
			return fmt.Sprintf("of the project that process %s works in", l.ID)
		}
	}
	return ""
}

// slug is how Claude Code names a project's directory: every other character than
// letters and digits is a hyphen.
var slug = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9]`) })

// ofProject reports whether a path belongs to the project in dir, by the name that
// the client gives it. Codex and Copilot do not sort by project.
func ofProject(client, rel, dir string) bool {
	parts := strings.Split(filepath.ToSlash(rel), "/")
	if len(parts) < 2 {
		return false
	}
	switch client {
	case "claude-code":
		return parts[0] == "projects" && parts[1] == slug().ReplaceAllString(dir, "-")
	case "gemini":
		// By the hash of the path, or by a short name made of its last part.
		base := strings.ToLower(slug().ReplaceAllString(filepath.Base(dir), "-"))
		return parts[0] == "tmp" && (parts[1] == fmt.Sprintf("%x", sha256.Sum256([]byte(dir))) || strings.HasPrefix(strings.ToLower(parts[1]), base))
	}
	return false
}

// Orphans are clients' processes that nobody seems to own: no terminal, whoever
// started them has ended, older than the margin, and of no run. That proves nothing
// about what they do, so a person has to be asked about each. Those of runs are
// proved by the run's id and not listed here.
func Orphans(live []Live, now time.Time) []Live {
	var out []Live
	for _, l := range live {
		if l.Client != "" && l.RunID == "" && l.Entry.Mine && l.Entry.Orphan && !l.Entry.Terminal && !l.Began.IsZero() && now.Sub(l.Began) >= Margin {
			out = append(out, l)
		}
	}
	return out
}
