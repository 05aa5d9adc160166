package guard

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

// repository judges what git would run here because the repository's own settings
// say so: they lie in the tree that the agent works in, and git status alone runs
// core.fsmonitor. The user's settings are the user's. The command is git's own, as
// stash of git stash list.
func (a *analysis) repository(command string, w word, given []word, st *state) {
	switch command {
	case "version", "check-ref-format":
		return
	case "help":
		if len(given) == 0 {
			return
		}
	}
	plain := len(given) == 0 && len(st.cwds) == 1
	if plain && a.harmlessIn[st.cwds[0]] {
		return
	}
	for _, dir := range a.allRepositories(st.cwds, given) {
		f := a.gitSettings(dir)
		if why := f.reason(command); why != "" {
			a.give("repository-config", Ask, w.shown(), why, "have the user look at the repository's settings")
			return
		}
		switch hooks := f.hooks != "" && hooked(command); {
		case command == "config":
		case f.always != "":
			a.projectCode(w, "it runs the hook "+shown(f.always))
			return
		case hooks:
			a.projectCode(w, "it runs the hooks in "+shown(f.hooks))
			return
		}
		// Of others not everything is harmless.
		plain = plain && f.nothing()
	}
	if plain {
		if a.harmlessIn == nil {
			a.harmlessIn = map[string]bool{}
		}
		a.harmlessIn[st.cwds[0]] = true
	}
}

// hooked reports whether a command of git runs hooks.
func hooked(name string) bool {
	switch name {
	case "commit", "merge", "rebase", "checkout", "switch", "pull", "push", "am", "cherry-pick", "revert", "clone", "worktree", "gc", "fetch", "maintenance", "submodule", "bisect":
		return true
	}
	return false
}

// gitFound is what stands in the settings of a repository.
type gitFound struct {
	key, value string            // the first that names a program
	unread     string            // why the settings are not known to the end
	elsewhere  string            // a working tree that is not in the work
	pager      string            // one that git config runs, too
	hooks      string            // a directory of hooks that lies in the work
	always     string            // a hook that reading commands run, too
	aliases    map[string]string // commands of git's or the user's that are others here
	secret     string            // the key of one that holds a secret
}

// secretSetting reports whether a setting of git holds what opens something: by its
// name, or because an address has a password or a token in it.
func secretSetting(key, value string) bool {
	if secretKey(key) {
		return true
	}
	for _, text := range [...]string{value, key} { // url.ADDRESS.insteadOf
		_, rest, ok := strings.Cut(text, "://")
		host, _, _ := strings.Cut(rest, "/")
		user, _, at := strings.Cut(host, "@")
		if ok && at && (strings.Contains(user, ":") || len(user) >= 20) {
			return true
		}
	}
	return false
}

// userSecret is the key of one of the user's own settings of git that holds a secret, ""
// where none is found.
func (a *analysis) userSecret() string {
	if a.r.Home == "" {
		return ""
	}
	f := gitFound{}
	r := configReader{a: a, found: &f}
	r.see = func(s gitSetting) {
		if f.secret == "" && secretSetting(s.key, s.value) {
			f.secret = s.key
		}
	}
	r.file(filepath.Join(a.r.Home, ".gitconfig"))
	r.file(filepath.Join(a.r.Home, ".config", "git", "config"))
	return f.secret
}

// secretKey reports whether a setting's name says that it holds a secret.
func secretKey(key string) bool {
	_, name := ends(strings.ToLower(key))
	for _, s := range [...]string{"extraheader", "password", "smtppass", "token", "secret", "apikey"} {
		if strings.Contains(name, s) {
			return true
		}
	}
	return false
}

// gitSecrets judges what a command of git tells of settings.
func (a *analysis) gitSecrets(command string, g args, st *state) {
	key := ""
	for _, w := range g.operands {
		if command == "config" && w.text != "get" && w.text != "list" && key == "" {
			key = strings.ToLower(w.text)
		}
	}
	all := key == "" || g.has("--get-regexp") || g.has("--regexp") || g.has("--get-urlmatch") || g.has("--url")
	if command != "config" && command != "remote" || g.has("--name-only") {
		return
	}
	why := ""
	if command == "config" && (secretKey(key) || g.has("--get-regexp") && strings.ContainsAny(key, "|.") && secretKey("x."+key)) {
		why = key
	}
	for _, dir := range st.cwds {
		f := a.gitSettings(dir)
		if f.secret != "" && (command == "remote" && strings.HasPrefix(f.secret, "remote.") || command == "config" && (all || key == f.secret)) {
			why = f.secret
		}
	}
	if why == "" && command == "config" && !g.has("--local") && !g.has("--worktree") && !g.has("-f") && !g.has("--file") {
		if own := a.userSecret(); all || key == own {
			why = own
		}
	}
	if why != "" {
		a.reads(why)
		a.give("reads-secret", Ask, why, "it shows a setting of git that holds a secret", "leave it out, or add --name-only")
	}
}

func (f *gitFound) nothing() bool {
	return f.reason("") == "" && f.pager == "" && f.hooks == "" && f.always == "" && len(f.aliases) == 0
}

// reason is what a command of git is asked about for, "" for nothing.
func (f *gitFound) reason(command string) string {
	key, value := f.key, f.value
	if command == "config" {
		key, value = "", ""
	}
	if alias, ok := f.aliases[command]; ok && key == "" {
		// Git prefers its own command of the name, where it has one.
		key, value = "alias."+command, alias
	}
	if key == "" && f.pager != "" {
		key, value, _ = strings.Cut(f.pager, "=")
	}
	switch {
	case strings.HasSuffix(key, ".url"), strings.HasSuffix(key, ".insteadof"), strings.HasSuffix(key, ".proxy"):
		return "objects that are missing here git would fetch by an address that the repository's own settings name (" + shown(key+"="+value) + ")"
	case strings.HasSuffix(key, ".cookiefile"):
		return "the repository's own settings name a file, which git would write (" + shown(key+"="+value) + ")"
	case key != "":
		return "the repository's own settings name a program, which git would run (" + shown(key+"="+value) + ")"
	case command == "config": // it shows what is there, from a tree or not
	case f.unread != "":
		return "the repository's own settings cannot be followed to the end: " + f.unread
	case f.elsewhere != "":
		return "the repository's own settings have git look at files outside the project (" + shown("core.worktree="+f.elsewhere) + ")"
	}
	return ""
}

// gitSettings looks into the settings of the repository that a directory is in,
// once for each directory.
func (a *analysis) gitSettings(dir string) gitFound {
	if f, ok := a.repositories[dir]; ok {
		return f
	}
	var f gitFound
	for _, git := range a.gitDirs(dir) {
		r := configReader{a: a, found: &f, git: git.own}
		r.see = r.setting
		r.file(filepath.Join(git.common, "config"))
		r.file(filepath.Join(git.own, "config.worktree"))
		r.fetched(git)
		r.hooksOf(git)
	}
	if a.repositories == nil {
		a.repositories = map[string]gitFound{}
	}
	a.repositories[dir] = f
	return f
}

// gitDir is where a repository has its own files, and those that it shares with others.
type gitDir struct {
	own, common string
	top         string // of the working tree; "" of a bare one
	sure        bool   // that git takes it for a repository
}

// gitDirs are the repository that a directory is in. A bare one, which may lie
// anywhere in a tree, counts as it does for git. Where git may not take a .git for a
// repository it goes on upwards, and what it finds there counts, too.
func (a *analysis) gitDirs(dir string) []gitDir {
	if found, ok := a.gitAt[dir]; ok {
		return found
	}
	if a.gitAt == nil {
		a.gitAt = map[string][]gitDir{}
	}
	a.gitAt[dir] = findGitDirs(dir)
	return a.gitAt[dir]
}

func findGitDirs(dir string) (out []gitDir) {
	for d := dir; ; d = filepath.Dir(d) {
		g := gitDir{top: d}
		if info, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			g.own = filepath.Join(d, ".git")
			if !info.IsDir() {
				if to := firstLine(g.own); strings.HasPrefix(to, "gitdir:") {
					g.own = joined(d, strings.TrimSpace(to[len("gitdir:"):]))
				}
			}
		} else if isFile(filepath.Join(d, "HEAD")) && isDir(filepath.Join(d, "objects")) && isDir(filepath.Join(d, "refs")) {
			g.own, g.top = d, ""
		}
		if g.own != "" {
			g.common = joined(g.own, firstLine(filepath.Join(g.own, "commondir")))
			g.sure = g.certain()
			if out = append(out, g); g.sure {
				return out
			}
		}
		if d == filepath.Dir(d) {
			return out
		}
	}
}

// certain reports whether git takes it for a repository: it wants a HEAD that names a
// branch or a commit, objects and refs.
func (g gitDir) certain() bool {
	head := firstLine(filepath.Join(g.own, "HEAD"))
	if !strings.HasPrefix(head, "ref: refs/") && (len(head) != 40 && len(head) != 64 || strings.Trim(head, "0123456789abcdef") != "") {
		return false
	}
	return isDir(filepath.Join(g.common, "objects")) && isDir(filepath.Join(g.common, "refs"))
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func joined(dir, p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(dir, p)
}

// firstLine is the first line of a small file, "" where there is none.
func firstLine(path string) string {
	data, _ := smallFile(path)
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}

// maxSmall is the size in bytes beyond which a file is none of git's one-line files.
const maxSmall = 4096

// smallFile is what a small regular file holds; ok is false for anything else.
func smallFile(path string) (data []byte, ok bool) { return fileOf(path, maxSmall) }

// fileOf is what a regular file of at most so many bytes holds; ok is false for
// anything else.
func fileOf(path string, most int64) (data []byte, ok bool) {
	f, err := openNow(path)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	data, err = io.ReadAll(io.LimitReader(f, most+1))
	if err != nil || int64(len(data)) > most {
		return nil, false
	}
	return data, true
}
