package guard

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	"reprise/internal/guard/know"
)

// Bounds of what is read of a repository's settings.
const (
	maxGitConfig = 256 << 10 // bytes of a file; a larger one is asked about
	maxIncludes  = 8         // files
)

// repository judges what git would run here because the repository's own settings
// say so: they lie in the tree that the agent works in, and git status alone runs
// core.fsmonitor. The user's settings are the user's.
func (a *analysis) repository(p *know.Program, w word, given []word, st *state) {
	switch p.Name {
	case "version", "config", "list", "get", "check-ref-format":
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
		if f := a.gitSettings(dir); f.key != "" {
			a.give("repository-config", Ask, w.shown(), "the repository's own settings name a program, which git would run ("+shown(f.key+"="+f.value)+")", "have the user look at the repository's settings")
			return
		} else if f.hooks != "" && hooked(p.Name) {
			a.projectCode(w, "it runs the hooks in "+shown(f.hooks))
			return
		} else if f.hooks != "" {
			plain = false // others run them
		}
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
	case "commit", "merge", "rebase", "checkout", "switch", "pull", "push", "am", "cherry-pick", "revert", "clone", "worktree", "gc":
		return true
	}
	return false
}

// gitFound is what stands in the settings of a repository.
type gitFound struct {
	key, value string // the first that names a program
	hooks      string // a directory of hooks that lies in the work
}

// gitSettings looks into the settings of the repository that a directory is in,
// once for each directory.
func (a *analysis) gitSettings(dir string) gitFound {
	if f, ok := a.repositories[dir]; ok {
		return f
	}
	var f gitFound
	for _, git := range a.gitDirs(dir) {
		r := configReader{a: a, found: &f, top: filepath.Dir(git.own), git: git.own}
		r.file(filepath.Join(git.common, "config"))
		r.file(filepath.Join(git.own, "config.worktree"))
		if r.ssh != "" && r.promisor {
			// Objects that are not there are fetched when they are looked at.
			f.key, f.value = "core.sshcommand", r.ssh
		}
		if r.hooks != "" {
			if p := a.physical(r.top, r.hooks); a.root(p) != "" && !strings.Contains(p, "/.git/") {
				f.hooks = r.hooks
			}
		}
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
			g.common = g.own
			if to := firstLine(filepath.Join(g.own, "commondir")); to != "" {
				g.common = joined(g.own, to)
			}
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
func smallFile(path string) (data []byte, ok bool) {
	f, err := openNow(path)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	data, err = io.ReadAll(io.LimitReader(f, maxSmall+1))
	if err != nil || len(data) > maxSmall {
		return nil, false
	}
	return data, true
}

// configReader reads git's settings as far as they name programs. The format is
// that of git-config(1), "CONFIGURATION FILE".
type configReader struct {
	a        *analysis
	found    *gitFound
	top, git string // the working tree and the repository's own directory
	read     int
	promisor bool
	ssh      string
	hooks    string
}

func (r *configReader) file(path string) {
	if r.found.key != "" {
		return
	}
	f, err := openNow(path)
	if err != nil {
		return // what is not there, or not to be read, git does not use either
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		r.found.key = path
		return
	}
	if r.read++; r.read > maxIncludes {
		r.found.key = "include.path"
		return
	}
	data, err := io.ReadAll(io.LimitReader(f, maxGitConfig+1))
	if err != nil || len(data) > maxGitConfig {
		r.found.key = path
		return
	}
	r.a.step(len(data) / 256)
	section := ""
	for len(data) > 0 && r.found.key == "" {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte("\n"))
		text := strings.TrimSpace(string(line))
		if strings.HasPrefix(text, "[") {
			end := headerEnd(text)
			section = sectionName(text[1:end])
			text = strings.TrimSpace(text[min(end+1, len(text)):])
		}
		for strings.HasSuffix(text, `\`) && len(data) > 0 {
			line, data, _ = bytes.Cut(data, []byte("\n"))
			text = text[:len(text)-1] + strings.TrimRight(string(line), "\r")
		}
		if text == "" || text[0] == '#' || text[0] == ';' {
			continue
		}
		name, v, given := strings.Cut(text, "=")
		if !given {
			v = "true"
		}
		r.setting(section+"."+strings.ToLower(strings.TrimSpace(name)), configValue(v), path)
	}
}

// headerEnd is where a section's header ends: at the first ] that is not in quotes.
func headerEnd(s string) int {
	quoted := false
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quoted:
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ']' && !quoted:
			return i
		}
	}
	return len(s)
}

// sectionName is a header's text as settings are named: in lower case, and what
// stands in quotes as it is.
func sectionName(s string) string {
	name, sub, quoted := strings.Cut(s, `"`)
	name = strings.ToLower(strings.TrimSpace(name))
	if !quoted {
		return name
	}
	return name + "." + strings.ReplaceAll(strings.TrimSuffix(strings.TrimSpace(sub), `"`), `\`, "")
}

// configValue is a value without its quotes and what follows as a comment.
func configValue(s string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case c == '"':
			quoted = !quoted
		case (c == '#' || c == ';') && !quoted:
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String())
}

// setting judges one setting.
func (r *configReader) setting(key, v, path string) {
	first, _, _ := strings.Cut(key, ".")
	name := key[strings.LastIndexByte(key, '.')+1:]
	plain := v == "" || v == "true" || v == "false"
	switch {
	case key == "include.path", first == "includeif" && name == "path":
		if h := r.a.r.Home; h != "" && strings.HasPrefix(v, "~/") {
			v = h + v[1:]
		}
		r.file(joined(filepath.Dir(path), v))
		return
	case key == "core.hookspath":
		r.hooks = v
		return
	case key == "core.sshcommand", key == "core.gitproxy", first == "remote" && (name == "uploadpack" || name == "proxy"):
		r.ssh = v
		return
	case key == "core.worktree":
		if p := r.a.physical(r.git, v); r.a.root(p) == "" {
			r.found.key, r.found.value = key, v
		}
		return
	case strings.HasPrefix(strings.ToLower(v), "ext::"), first == "url" && strings.Contains(strings.ToLower(key), "ext::"):
		r.found.key, r.found.value = key, v
		return
	case key == "extensions.partialclone", name == "promisor":
		r.promisor = v != "false"
		return
	case key == "core.pager" || first == "pager":
		if harmlessPager(v) {
			return
		}
	case first == "filter" && (name == "clean" || name == "smudge" || name == "process"):
		if strings.HasPrefix(v, "git-lfs ") && !strings.ContainsAny(v, ";&|$`<>\n") {
			return
		}
	case key == "core.fsmonitor", key == "diff.external", first == "gpg" && (name == "program" || name == "defaultkeycommand"), first == "hook" && name == "command",
		first == "lfs" && (name == "clean" || name == "smudge" || name == "path" || name == "standalonetransferagent"), key == "core.editor", key == "sequence.editor", key == "core.askpass", key == "core.alternaterefscommand", key == "interactive.difffilter",
		first == "diff" && (name == "command" || name == "textconv"), first == "merge" && name == "driver", first == "tar" && name == "command", first == "trailer" && (name == "command" || name == "cmd"),
		first == "protocol" && name == "allow" && v != "never" && v != "user", first == "remote" && name == "vcs",
		(first == "man" || first == "browser" || first == "difftool" || first == "mergetool") && (name == "cmd" || name == "path"):
	default:
		return
	}
	if plain && name != "allow" {
		return
	}
	r.found.key, r.found.value = key, v
}

// harmlessPager reports whether a pager is one that only shows.
func harmlessPager(v string) bool {
	if strings.ContainsAny(v, ";&|$`<>()/\n+'\"") {
		return false
	}
	word, _, _ := strings.Cut(strings.TrimSpace(v), " ")
	switch word {
	case "cat", "less", "more", "delta", "bat":
		return true
	}
	return false
}
