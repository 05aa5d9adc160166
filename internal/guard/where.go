package guard

import (
	"os"
	"path"
	"path/filepath"
	"strings"
)

// exists reports whether a directory is there.
func (a *analysis) exists(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// path judges a word that names a file or a directory.
func (a *analysis) path(w word, u use, st *state) {
	a.step(4)
	if w.text == "" {
		return
	}
	if a.closed(w, u, st) {
		return
	}
	if !w.known() {
		a.darkPath(w, u, st)
		return
	}
	if !u.read && w.glob && strings.ContainsAny(w.text, "*?[") && u.shallow {
		// Where something is written, a pattern that matches nothing stands for itself.
		a.each(w, u, st, true)
		return
	}
	a.each(w, u, st, w.glob && strings.ContainsAny(w.text, "*?["))
}

// darkPath judges a path of which a part is only known when it runs.
func (a *analysis) darkPath(w word, u use, st *state) {
	start, rest, _ := strings.Cut(w.text, unknown)
	if u.gone && start == "" && strings.HasPrefix(rest, "/") && !w.certain {
		a.give("unset-path", Deny, w.shown(), "where the variable is empty this is the root of the file system", "write ${NAME:?} so that the shell stops there, or the path itself")
		return
	}
	if dangerous, what := protectedText(start); !u.read && dangerous {
		a.give("protected-file", Deny, w.shown(), "it may write "+what, "leave these files to the user")
		return
	}
	switch {
	case w.origin == numbers || w.origin == names:
		// A number cannot lead elsewhere: the path is as good as any of its kind.
		v := w
		v.text = strings.ReplaceAll(w.text, unknown, "0")
		v.made = true
		a.each(v, u, st, false)
	case w.origin == paths && u.read && start == "":
	case w.origin == paths && start == "" && !u.read:
		if u.gone {
			a.give("removes", Ask, w.shown(), "it removes or moves files that are only known when it runs", "name the files")
			return
		}
		a.give("dynamic-path", Ask, w.shown(), "which file this writes is only known when it runs", "write the path out")
	case u.read:
		a.give("dynamic-path", Ask, w.shown(), "which file this reads is only known when it runs", "write the path out")
	default:
		if start != "" && strings.Contains(start, "/") {
			// What is known of it may be enough: outside is outside.
			dir := start[:strings.LastIndexByte(start, '/')+1]
			for _, base := range a.bases(dir, st) {
				if p := physicalPath(base, dir); a.root(p) == "" && !inside(p, "/dev") {
					a.outside(w, p, u)
					return
				}
			}
		}
		a.give("dynamic-path", Ask, w.shown(), "which file this writes is only known when it runs", "write the path out")
	}
}

// bases are the directories that a path may be relative to.
func (a *analysis) bases(p string, st *state) []string {
	if filepath.IsAbs(p) {
		return []string{""}
	}
	return st.cwds
}

// each judges a path in each directory that the command may be in.
func (a *analysis) each(w word, u use, st *state, glob bool) {
	bases := a.bases(w.text, st)
	if len(bases) == 0 {
		a.give("unknown-directory", Ask, w.shown(), "the path is relative, and the directory is not known", "write an absolute path")
		return
	}
	for _, base := range bases {
		if !glob {
			if a.one(w, physicalPath(base, w.text), u) {
				return
			}
			continue
		}
		if a.pattern(w, base, u) {
			return
		}
	}
}

// maxMatches is how many names of a pattern are looked at one by one.
const maxMatches = 200

// pattern judges what a pattern may stand for: where its constant beginning
// leads, and each name that it matches now.
func (a *analysis) pattern(w word, base string, u use) bool {
	i := strings.IndexAny(w.text, "*?[")
	dir := w.text[:i]
	dir = dir[:strings.LastIndexByte(dir, '/')+1]
	top := physicalPath(base, dir)
	if a.one(word{text: w.text, src: w.src, glob: true}, top, use{read: u.read, shallow: true, gone: u.gone, top: true}) {
		return true
	}
	full := w.text
	if !filepath.IsAbs(full) {
		full = base + "/" + full
	}
	found, err := filepath.Glob(full)
	if err != nil {
		return false
	}
	a.step(len(found))
	for n, f := range found {
		if n >= maxMatches {
			break
		}
		if dotted(full, f) {
			continue
		}
		if a.one(w, physicalPath("", f), u) {
			return true
		}
	}
	return false
}

// dotted reports whether a name was matched that a shell passes over: one that
// begins with a dot, by a pattern that does not.
func dotted(pattern, name string) bool {
	sep := string(filepath.Separator)
	for pattern != "" && name != "" {
		var p, n string
		p, pattern, _ = strings.Cut(pattern, sep)
		n, name, _ = strings.Cut(name, sep)
		if strings.HasPrefix(n, ".") && p != "" && strings.IndexByte("*?[", p[0]) >= 0 {
			return true
		}
	}
	return false
}

// one judges one resolved path; it reports whether something was found.
func (a *analysis) one(w word, p string, u use) bool {
	a.step(2)
	if !u.read {
		if device(p) {
			return false
		}
		if bad, what := a.protected(p, u); bad {
			a.give("protected-file", Deny, w.shown(), "it changes "+what, "leave these files to the user")
			return true
		}
	}
	if strings.HasPrefix(p, "/dev/tcp/") || strings.HasPrefix(p, "/dev/udp/") {
		a.reaches(p)
		a.give("network", Deny, w.shown(), "the shell opens a connection to another machine by it", "use curl with a host that is allowed")
		return true
	}
	if kind := secretFile(p); kind != "" && !u.top && !u.probe {
		a.reads(w.shown())
		if u.read {
			a.give("reads-secret", Ask, w.shown(), "it reads "+kind, "read something that holds no secrets")
			return true
		}
	}
	root := a.root(p)
	switch {
	case root == "":
		if u.read && (system(p) || u.probe) {
			return false
		}
		return a.outside(w, p, u)
	case u.read:
		return false
	case u.gone && (p == root || filepath.Base(p) == ".git"):
		if !u.top {
			a.give("removes-repository", Deny, w.shown(), "it removes the whole of the work", "name what is to go")
			return true
		}
		fallthrough
	case u.gone:
		a.give("removes", Ask, w.shown(), "it removes or moves files", "let the user do it, or allow it by a rule")
		return true
	}
	if a.r.Writes {
		return false
	}
	a.give("writes", Ask, w.shown(), "it writes a file", "use the client's own tool for writing files, or allow it by guard.writes")
	return true
}

// outside judges a path that lies in none of the roots.
func (a *analysis) outside(w word, p string, u use) bool {
	if u.read {
		a.give("reads-outside", Ask, w.shown(), "it reads "+shown(p)+", outside the project", "read what is in the project, or add its directory to guard.roots")
		return true
	}
	what := "it writes to "
	if u.gone {
		what = "it removes or moves "
	}
	a.give("writes-outside", Deny, w.shown(), what+shown(p)+", outside the project", "write into the project, or have the user add its directory to guard.roots")
	return true
}

// reads notes that something secret is read, reaches that the network is used.
func (a *analysis) reads(what string) {
	if a.secret.Rule == "" {
		a.secret = Part{Command: a.cur, Word: what, Rule: "reads-secret", Depth: a.depth}
	}
}

func (a *analysis) reaches(what string) {
	if a.net.Rule == "" {
		a.net = Part{Command: a.cur, Word: shown(what), Rule: "network", Depth: a.depth}
	}
}

// physicalPath is where a path leads as the kernel goes it: link by link, and ..
// from where a link led to. What is not there is kept as it is written.
func physicalPath(base, p string) string {
	if !filepath.IsAbs(p) {
		p = base + string(filepath.Separator) + p
	}
	return physicalAt(p, maxLinks)
}

func physicalAt(p string, links int) string {
	if strings.HasPrefix(p, "/dev/fd/") && !strings.Contains(p, "..") || p == "/dev/stdin" || p == "/dev/stdout" || p == "/dev/stderr" {
		return p // the command's own, not this program's
	}
	vol := filepath.VolumeName(p)
	sep := string(filepath.Separator)
	at := vol + sep
	rest := p[len(vol):]
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, sep)
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		target, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if links--; links < 0 {
			return next
		}
		if !filepath.IsAbs(target) {
			target = at + sep + target
		}
		if rest != "" {
			target += sep + rest
		}
		return physicalAt(target, links)
	}
	return at
}

// protected reports whether a resolved path is one that agents do not change:
// what decides about agents, and what runs or opens doors by itself later.
func (a *analysis) protected(p string, u use) (bool, string) {
	for _, d := range a.own() {
		if inside(p, d) || u.gone && !u.top && inside(d, p) {
			return true, "reprise's own files"
		}
	}
	if bad, what := protectedText(p); bad {
		return true, what
	}
	if a.r.Home != "" && u.gone && !u.top && inside(Resolve(a.r.Home), p) {
		return true, "the home directory"
	}
	return false, ""
}

func (a *analysis) own() []string {
	if a.ownDirs == nil {
		a.ownDirs = []string{}
		for _, d := range a.r.Own {
			a.ownDirs = append(a.ownDirs, Resolve(d))
		}
	}
	return a.ownDirs
}

// protectedText is the part of it that a path's text tells.
func protectedText(p string) (bool, string) {
	p = "/" + strings.TrimPrefix(slashed(p), "/")
	base := path.Base(p)
	in := func(dirs ...string) bool {
		for _, d := range dirs {
			if strings.Contains(p+"/", "/"+d+"/") {
				return true
			}
		}
		return false
	}
	switch {
	case in(".claude/hooks"), in(".claude") && strings.HasPrefix(base, "settings"), base == ".claude.json", in(".claude/plugins"), base == "managed-settings.json":
		return true, "Claude Code's settings or hooks"
	case in(".codex"), in(".gemini") && (base == "settings.json" || base == "oauth_creds.json" || base == "trustedfolders.json"), in(".gemini/hooks", ".gemini/extensions", ".gemini/policies"):
		return true, "an agent's settings or hooks"
	case in(".copilot"), in(".github/hooks"), base == "mcp.json" && in(".cursor", ".vscode", ".gemini", ".copilot"), base == "hooks.json" && in(".cursor", ".claude", ".windsurf"):
		return true, "an agent's settings or hooks"
	case in(".reprise") && base == "project.yaml":
		return true, "the project's rules for reprise"
	case in(".git/hooks", ".git/info", ".git/modules") && !in(".git/info/exclude"), in(".git") && (base == "config" || base == "config.worktree" || base == "alternates"), base == ".gitconfig", in(".config/git"):
		return true, "git's settings or hooks"
	case in(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".config/systemd", ".config/autostart", ".config/fish", "launchagents", "launchdaemons", ".local/share/keyrings"):
		return true, "keys, credentials or what starts by itself"
	case in("etc/cron.d", "etc/cron.daily", "etc/cron.hourly", "var/spool/cron", "etc/systemd", "etc/sudoers.d", "etc/profile.d", "etc/pam.d"), strings.HasPrefix(p, "/etc/"), strings.HasPrefix(p, "/boot/"), strings.HasPrefix(p, "/sys/"), strings.HasPrefix(p, "/proc/"):
		return true, "the system's configuration"
	}
	switch base {
	case ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".xinitrc", ".xprofile", ".xsession", ".pam_environment", ".netrc", ".pgpass", ".git-credentials", ".ssh", ".gnupg", ".aws", "authorized_keys", ".hushlogin", ".lesskey":
		return true, "what a shell or a login reads"
	}
	return false, ""
}

// secretFile says what kind of secret a file holds, by its name, "" for others.
func secretFile(p string) string {
	p = slashed(p)
	base := path.Base(p)
	in := func(dirs ...string) bool {
		for _, d := range dirs {
			if strings.Contains(p, "/"+d+"/") || strings.HasSuffix(p, "/"+d) {
				return true
			}
		}
		return false
	}
	switch {
	case base == ".env" || base == ".envrc" || strings.HasPrefix(base, ".env.") && !strings.HasSuffix(base, ".example") && !strings.HasSuffix(base, ".sample") && !strings.HasSuffix(base, ".template") && !strings.HasSuffix(base, ".dist") && !strings.HasSuffix(base, ".defaults"),
		strings.HasSuffix(base, ".env") && base != "example.env" && base != "sample.env":
		return "a file of secrets for the environment"
	case strings.HasPrefix(base, "id_") && (strings.HasPrefix(base, "id_rsa") || strings.HasPrefix(base, "id_ed25519") || strings.HasPrefix(base, "id_ecdsa") || strings.HasPrefix(base, "id_dsa")) && !strings.HasSuffix(base, ".pub"):
		return "a private key"
	case in(".ssh") && !strings.HasSuffix(base, ".pub") && base != "known_hosts" && base != ".ssh", in(".gnupg"), in(".aws"), in(".azure"), in(".config/gcloud"), in(".password-store"), in(".local/share/keyrings"):
		return "keys or credentials"
	case in(".kube") && base == "config", in(".docker") && base == "config.json", in(".config/gh") && base == "hosts.yml", in(".claude") && base == ".credentials.json", in(".codex") && base == "auth.json", in(".gemini") && strings.HasPrefix(base, "oauth"), in(".copilot") && base == "config.json":
		return "credentials"
	case p == "/etc/shadow", p == "/etc/gshadow", p == "/etc/sudoers", in("etc/ssl/private"), strings.HasPrefix(p, "/proc/") && (base == "environ" || base == "mem"), strings.HasPrefix(p, "/run/secrets/"), strings.HasPrefix(p, "/var/run/secrets/"):
		return "secrets of the system"
	}
	switch base {
	case ".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".pypirc", ".git-credentials", ".dockercfg", ".htpasswd", "credentials", "credentials.json", "credentials.yml", "credentials.yaml", "client_secret.json", "secrets.json", "secrets.yml", "secrets.yaml", "secrets.toml", "secret.json", "secret.yaml", "secret.yml", "service-account.json", "service_account.json", "serviceaccount.json", "master.key", "token", ".token", "terraform.tfstate", "wallet.dat", ".vault-token", ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history":
		return "credentials, or what may hold them"
	}
	switch path.Ext(base) {
	case ".pem", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".key", ".asc", ".gpg", ".tfvars":
		return "a key or a certificate"
	}
	return ""
}
