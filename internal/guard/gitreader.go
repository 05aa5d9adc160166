package guard

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of what is read of a repository's settings. What lies beyond is asked about.
const (
	maxGitConfig = 256 << 10 // bytes of a file
	maxIncludes  = 8         // files
)

// configReader reads git's settings as far as they name programs.
type configReader struct {
	a     *analysis
	found *gitFound
	see   func(s gitSetting) // what is done with each of them
	git   string             // the repository's own directory
	read  int
	hooks []string // every core.hooksPath: which of them counts depends on conditions

	// What fetching runs and where from, which reading does where objects are not there.
	transport        []gitSetting
	promisors        map[string]bool // remotes that have the missing objects
	urls             map[string][]string
	bases            []string // what url.BASE.insteadOf turns other addresses to
	cookies, savings string
}

// unread notes why the settings cannot be followed to the end.
func (r *configReader) unread(why string) {
	r.found.unread = cmp.Or(r.found.unread, why)
}

// file reads a file of settings with those that it includes.
func (r *configReader) file(path string) {
	f, err := openNow(path)
	if err != nil {
		return // what is not there, or not to be read, git does not use either
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		r.unread(shown(path) + " is no file")
		return
	}
	if r.read++; r.read > maxIncludes {
		r.unread("they are in more files than are read, " + shown(path) + " among them")
		return
	}
	data, err := io.ReadAll(io.LimitReader(f, maxGitConfig+1))
	if err != nil || len(data) > maxGitConfig {
		r.unread(shown(path) + " is larger than is read")
		return
	}
	r.a.step(len(data) / 256)
	settings, sound := gitSettingsOf(string(data))
	if !sound {
		r.unread(shown(path) + " has a line that git does not understand")
	}
	for _, s := range settings {
		r.see(s)
		first, name := ends(s.key)
		if s.key != "include.path" && (first != "includeif" || name != "path") {
			continue
		}
		p, ok := r.place(s)
		if !ok || p == "" {
			r.unread("which file " + shown(s.key+"="+s.value) + " means is not known")
			continue
		}
		r.file(joined(filepath.Dir(path), p))
	}
}

// place is the path that a setting means; ok is false where only git can tell.
func (r *configReader) place(s gitSetting) (p string, ok bool) {
	v := s.value
	switch {
	case s.alone, s.blurred, strings.HasPrefix(v, "%("), strings.HasPrefix(v, ":("):
		return "", false
	case v == "~" || strings.HasPrefix(v, "~/"):
		return r.a.r.Home + v[1:], r.a.r.Home != ""
	case strings.HasPrefix(v, "~"):
		return "", false // another user's home
	}
	return v, true
}

// ends are the first part of a setting's key and the last.
func ends(key string) (first, name string) {
	first, _, _ = strings.Cut(key, ".")
	return first, key[strings.LastIndexByte(key, '.')+1:]
}

// setting judges one setting.
func (r *configReader) setting(s gitSetting) {
	key, v := s.key, s.value
	first, name := ends(key)
	if r.found.secret == "" && secretSetting(key, v) {
		r.found.secret = key
	}
	sub := strings.TrimSuffix(strings.TrimPrefix(key[len(first):], "."), name)
	sub = strings.TrimSuffix(sub, ".")
	plain := v == "" || v == "true" || v == "false"
	program := false
	switch {
	case key == "core.hookspath":
		r.hooks = append(r.hooks, v)
		if p, ok := r.place(s); ok {
			r.hooks[len(r.hooks)-1] = p
		} else {
			r.unread("which directory " + shown(key+"="+v) + " means is not known")
		}
	case key == "core.worktree":
		if p := r.a.physical(r.git, v); r.a.root(p) == "" {
			r.found.elsewhere = cmp.Or(r.found.elsewhere, v)
		}
	case first == "alias":
		if r.found.aliases == nil {
			r.found.aliases = map[string]string{}
		}
		r.found.aliases[strings.ToLower(cmp.Or(sub, name))] = v
	case key == "core.pager" || first == "pager":
		if !plain && !harmlessPager(v) {
			r.found.pager = cmp.Or(r.found.pager, key+"="+v)
		}
	case strings.HasPrefix(strings.ToLower(v), "ext::"), first == "url" && strings.Contains(strings.ToLower(key), "ext::"):
		program = true
	case first == "filter" && (name == "clean" || name == "smudge" || name == "process"):
		program = !plain && !(strings.HasPrefix(v, "git-lfs ") && !strings.ContainsAny(v, ";&|$`<>\n"))
	case key == "core.fsmonitor":
		program = !plain && !slices.Contains(yesOrNo[:], strings.ToLower(v))
	case first == "protocol" && name == "allow":
		program = v != "never" && v != "user"
	case first == "submodule" && name == "update":
		program = strings.HasPrefix(v, "!")
	default:
		program = !plain && runs(key, first, name)
	}
	if program && r.found.key == "" {
		r.found.key, r.found.value = key, v
	}
	r.remote(s, first, sub, name)
}

// yesOrNo are the values that git takes for yes or no beside true, false and nothing.
var yesOrNo = [...]string{"yes", "no", "on", "off", "1", "0", "true", "false"}

// runs reports whether git runs the value of a setting, or has it run.
func runs(key, first, name string) bool {
	switch key {
	case "diff.external", "core.editor", "sequence.editor", "core.askpass", "core.alternaterefscommand", "interactive.difffilter", "gc.recentobjectshook", "imap.tunnel", "svn.authorsprog", "uploadpack.packobjectshook":
		return true
	}
	switch first {
	case "gpg":
		return name == "program" || name == "defaultkeycommand"
	case "hook", "tar":
		return name == "command"
	case "lfs":
		return name == "clean" || name == "smudge" || name == "path" || name == "standalonetransferagent"
	case "diff":
		return name == "command" || name == "textconv"
	case "merge":
		return name == "driver"
	case "trailer":
		return name == "command" || name == "cmd"
	case "remote":
		return name == "vcs"
	case "man", "browser", "difftool", "mergetool", "guitool":
		return name == "cmd" || name == "path"
	}
	return false
}

// remote notes what a setting says of fetching.
func (r *configReader) remote(s gitSetting, first, sub, name string) {
	v := s.value
	switch {
	case s.key == "extensions.partialclone":
		r.promisor(v)
	case first == "remote" && name == "promisor":
		// Once it is said it stays: a later no takes nothing back.
		if low := strings.ToLower(v); s.alone || low != "" && low != "false" && low != "no" && low != "off" && low != "0" {
			r.promisor(sub)
		}
	case first == "remote" && name == "partialclonefilter":
		r.promisor(sub)
	case first == "remote" && name == "url":
		if r.urls == nil {
			r.urls = map[string][]string{}
		}
		r.urls[sub] = append(r.urls[sub], v)
	case first == "url" && name == "insteadof":
		r.bases = append(r.bases, sub)
	case s.key == "http.cookiefile" || first == "http" && name == "cookiefile":
		r.cookies = cmp.Or(r.cookies, v)
	case first == "http" && name == "savecookies":
		r.savings = cmp.Or(r.savings, v)
	case v == "":
	case s.key == "core.sshcommand", s.key == "core.gitproxy", first == "remote" && (name == "uploadpack" || name == "proxy"):
		r.transport = append(r.transport, s)
	case first == "credential" && name == "helper":
		if !slices.Contains(ownHelpers[:], v) {
			r.transport = append(r.transport, s)
		}
	}
}

// ownHelpers are programs of git and of systems that keep passwords.
var ownHelpers = [...]string{"store", "cache", "osxkeychain", "manager", "manager-core", "wincred", "libsecret", "gnome-keyring", "oauth"}

func (r *configReader) promisor(name string) {
	if r.promisors == nil {
		r.promisors = map[string]bool{}
	}
	r.promisors[name] = true
}

// fetched notes what git runs to fetch objects that are not there, which it does when
// they are looked at, from the remotes that promise to have them.
func (r *configReader) fetched(git gitDir) {
	if len(r.promisors) == 0 || r.found.key != "" {
		return
	}
	for _, s := range r.transport {
		r.found.key, r.found.value = s.key, s.value
		return
	}
	if r.cookies != "" && r.savings != "" {
		r.found.key, r.found.value = "http.cookiefile", r.cookies
		return
	}
	for name := range r.promisors {
		urls := r.urls[name]
		if len(urls) == 0 {
			// Git has older places for addresses, and takes a name for one at last.
			urls = []string{name}
		}
		for _, u := range urls {
			if !usualAddress(u) {
				r.found.key, r.found.value = "remote."+name+".url", u
				return
			}
		}
	}
	for _, u := range r.bases {
		if !usualAddress(u) {
			r.found.key = "url." + u + ".insteadof"
			return
		}
	}
}

// usualAddress reports whether git fetches from an address by its own programs and
// ssh: another kind is left to a program that is named so, and a directory is a
// repository with settings of its own, which its side of fetching obeys.
func usualAddress(u string) bool {
	scheme, rest, ok := strings.Cut(u, "://")
	if ok {
		switch scheme {
		case "https", "http", "ssh", "git", "git+ssh", "ssh+git":
			return !strings.HasPrefix(rest, "-")
		}
		return false
	}
	host, path, ok := strings.Cut(u, ":")
	return ok && host != "" && !strings.Contains(host, "/") && !strings.HasPrefix(host, "-") && !strings.HasPrefix(path, ":")
}

// hooksOf notes the hooks of a repository: those in the work, and of all places the
// ones that commands run which only read. They refresh the index, and tell of it.
func (r *configReader) hooksOf(git gitDir) {
	top := cmp.Or(git.top, git.own)
	dirs := []string{filepath.Join(git.common, "hooks")}
	for _, h := range r.hooks {
		p := r.a.physical(top, h)
		dirs = append(dirs, p)
		if r.a.root(p) != "" && !inside(p, git.common) {
			r.found.hooks = cmp.Or(r.found.hooks, h)
		}
	}
	for _, d := range dirs {
		for _, name := range [...]string{"post-index-change", "reference-transaction"} {
			if info, err := os.Stat(filepath.Join(d, name)); err == nil && info.Mode().IsRegular() {
				r.found.always = cmp.Or(r.found.always, filepath.Join(d, name))
			}
		}
	}
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
