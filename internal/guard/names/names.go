// Package names knows files and variables by their names: which decide about
// agents, which hold secrets, which lead programs to other code.
//
// It is a function of text: it touches no file, writes none and takes no lock.
package names

import (
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// fold is a path with slashes, in lower case where the usual file system takes
// two spellings of a name for one.
func fold(p string) string {
	p = filepath.ToSlash(p)
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return strings.ToLower(p)
	}
	return p
}

// below reports whether a path has one of these directories in it, or is one.
func below(p string, dirs []string) bool {
	for _, d := range dirs {
		for from := 0; ; {
			i := strings.Index(p[from:], d)
			if i < 0 {
				break
			}
			i += from
			if end := i + len(d); i > 0 && p[i-1] == '/' && (end == len(p) || p[end] == '/') {
				return true
			}
			from = i + 1
		}
	}
	return false
}

// Protected says by a resolved path's text whether agents do not change it, and
// what it is.
func Protected(p string) (bool, string) {
	p = "/" + strings.TrimPrefix(fold(p), "/")
	base := path.Base(p)
	in := func(dirs ...string) bool {
		return below(p, dirs)
	}
	switch {
	case in(".claude/hooks"), in(".claude") && strings.HasPrefix(base, "settings"), base == ".claude.json", in(".claude/plugins"), base == "managed-settings.json":
		return true, "Claude Code's settings or hooks"
	case in(".codex"), in(".gemini") && (base == "settings.json" || base == "oauth_creds.json" || strings.EqualFold(base, "trustedFolders.json")), in(".gemini/hooks", ".gemini/extensions", ".gemini/policies"):
		return true, "an agent's settings or hooks"
	case in(".copilot"), in(".github/hooks"), base == "mcp.json" && in(".cursor", ".vscode", ".gemini"), base == "hooks.json" && in(".cursor", ".claude", ".windsurf"):
		return true, "an agent's settings or hooks"
	case base == ".mcp.json":
		return true, "the tool servers of an agent"
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
	case ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".xinitrc", ".xprofile", ".xsession", ".pam_environment", ".netrc", ".pgpass", ".git-credentials", "authorized_keys", ".hushlogin", ".lesskey":
		return true, "what a shell or a login reads"
	}
	return false, ""
}

// Holds reports whether a directory is one of those whose files decide about agents
// and programs: it is not removed, moved or unpacked into as a whole.
func Holds(dir string) bool {
	switch path.Base(fold(dir)) {
	case ".claude", ".codex", ".gemini", ".copilot", ".reprise":
		return true
	}
	return false
}

// Stored reports whether a path is one of the files of a repository that git writes
// itself, and nobody else.
func Stored(p string) bool {
	p = "/" + strings.TrimPrefix(fold(p), "/")
	return below(p, []string{".git"}) && path.Base(p) != ".git" && !below(p, []string{".git/info/exclude"}) && path.Base(p) != "COMMIT_EDITMSG"
}

// Known are names of files that decide about agents and programs, for patterns that
// may stand for them.
func Known() []string {
	return []string{"settings.json", "settings.local.json", "config.toml", "hooks.json", "mcp.json", ".mcp.json", "project.yaml", "config", ".bashrc", ".zshrc", ".profile", ".gitconfig"}
}

// Secret says what kind of secret a file holds, by its name, "" for others.
func Secret(p string) string {
	p = fold(p)
	base := path.Base(p)
	in := func(dirs ...string) bool {
		return below(p, dirs)
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
	case disk(p):
		return "a disk, or the memory of the machine"
	case p == "/etc/shadow", p == "/etc/gshadow", p == "/etc/sudoers", in("etc/ssl/private"), strings.HasPrefix(p, "/proc/") && (base == "environ" || base == "mem"), strings.HasPrefix(p, "/run/secrets/"), strings.HasPrefix(p, "/var/run/secrets/"):
		return "secrets of the system"
	}
	switch base {
	case ".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".pypirc", ".git-credentials", ".dockercfg", ".htpasswd", "credentials", "client_secret.json", "service-account.json", "service_account.json", "serviceaccount.json", "master.key", "token", ".token", "terraform.tfstate", "wallet.dat", ".vault-token", ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history":
		return "credentials, or what may hold them"
	}
	if opens(base, in) || kept(p, base) {
		return "credentials, or what may hold them"
	}
	switch path.Ext(base) {
	case ".pem", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".key", ".asc", ".gpg", ".tfvars":
		return "a key or a certificate"
	}
	return ""
}

// disk reports whether a device is one that all files can be read from, or all memory.
func disk(p string) bool {
	name, ok := strings.CutPrefix(p, "/dev/")
	if !ok {
		return false
	}
	for _, kind := range [...]string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "dm-", "mapper/", "disk", "rdisk", "loop", "md"} {
		if strings.HasPrefix(name, kind) {
			return true
		}
	}
	return name == "mem" || name == "kmem" || name == "port" || name == "kcore"
}

// opens reports whether a file has one of the names that tools give to what opens
// something, or is data that is called so.
func opens(base string, in func(dirs ...string) bool) bool {
	lower := strings.ToLower(base)
	switch lower {
	case ".env", "kubeconfig", "auth.json", "credentials.tfrc.json", ".terraformrc", "terraform.rc", ".s3cfg", ".boto", "rclone.conf", "local.settings.json", "wp-config.php", "env.production", "env.local", "env.staging", "env.development":
		return true
	case "credentials.toml":
		return in(".cargo")
	case "settings.xml":
		return in(".m2")
	case "database.yml":
		return in("config")
	}
	stem := strings.TrimSuffix(lower, path.Ext(lower))
	switch path.Ext(lower) {
	case ".json":
		if strings.Contains(stem, "adminsdk") || strings.HasSuffix(stem, "-key") || strings.HasSuffix(stem, "_key") {
			return true
		}
	case ".txt", ".csv", ".yml", ".yaml", ".toml", ".ini", ".xml", ".conf", ".cfg", ".properties":
	default:
		return false
	}
	switch stem {
	case "token", "tokens", "secret", "secrets", "password", "passwords", "passwd", "credential", "credentials", "apikey", "api_key", "apikeys", "api_keys":
		return true
	}
	return false
}

// UsualSecrets are names that files with secrets often have, for patterns that may
// stand for them.
func UsualSecrets() []string {
	return []string{".env", ".env.local", ".envrc", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", ".htpasswd", "id_rsa", "id_ed25519", "credentials", "credentials.json", "secrets.yaml", "secrets.json", "server.pem", "server.key", "prod.tfvars", "terraform.tfstate", "shadow", "gshadow", "sudoers"}
}

// Aimed reports whether a pattern of file names is one for files that hold secrets, and
// not for others as well.
func Aimed(pattern string) bool {
	pattern = strings.TrimPrefix(path.Base(fold(pattern)), "./")
	fits := func(name string) bool {
		return pattern == name || Match(pattern, name)
	}
	for _, usual := range [...]string{"main.go", "README.md", "config.yaml", ".gitignore", "index.test.js", "package.json"} {
		if fits(usual) {
			return false
		}
	}
	if Secret("/"+pattern) != "" {
		return true
	}
	for _, secret := range UsualSecrets() {
		if Secret("/"+secret) != "" && fits(secret) {
			return true
		}
	}
	return false
}

// Weight is what a variable's name does to the programs that see it.
type Weight uint8

const (
	Cosmetic Weight = iota // listed as having no effect beyond how things look
	Plain                  // not known; in the shell itself it is a variable like others
	Steering               // it leads programs to code, settings or directories
	Loading                // it loads code into any program, or belongs to the guard
)

// Variable weighs a variable's name.
func Variable(name string) Weight {
	switch name {
	case "TZ", "LANG", "LANGUAGE", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "CI", "COLUMNS", "LINES", "TERM", "COLORTERM", "DEBIAN_FRONTEND",
		"LS_COLORS", "GREP_COLOR", "GREP_COLORS", "BLOCK_SIZE", "POSIXLY_CORRECT", "QUOTING_STYLE", "TIME_STYLE", "VERBOSE", "DEBUG", "REPLY", "OPTIND", "OPTARG",
		"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONHASHSEED", "RUST_BACKTRACE", "RUST_LOG", "CARGO_TERM_COLOR",
		"GIT_PAGER_IN_USE", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE",
		"GOOS", "GOARCH", "CGO_ENABLED", "GOMAXPROCS", "GOGC", "GOTRACEBACK", "GOEXPERIMENT", "NODE_ENV", "SOURCE_DATE_EPOCH", "MANWIDTH", "SYSTEMD_COLORS", "SYSTEMD_PAGER_DISABLED", "HISTCONTROL", "PAGERLESS":
		return Cosmetic
	case "IFS", "ENV", "PS0", "PS1", "PS2", "PS3", "PS4", "HOME", "SHELL", "TMPDIR", "TMP", "TEMP", "PWD", "OLDPWD",
		"BROWSER", "VISUAL", "FCEDIT", "EXECIGNORE", "GLOBIGNORE", "HISTFILE", "CC", "CXX", "LD", "AR",
		"GZIP", "XZ_OPT", "ZIPOPT", "UNZIP", "TERMINFO", "TERMCAP", "HOSTALIASES", "RESOLV_HOST_CONF", "IFS_OLD",
		"MANOPT", "COLUMN", "POSIXLY", "SSLKEYLOGFILE", "KUBECONFIG", "DOCKER_HOST", "DOCKER_CONFIG", "SUDO_ASKPASS", "TZDIR":
		return Steering
	}
	if strings.HasPrefix(name, "LC_") {
		return Cosmetic
	}
	for _, p := range [...]string{"LD_", "DYLD_", "REPRISE_", "BASH_FUNC_", "MALLOC_", "GCONV_", "CLAUDE_", "CODEX_", "GEMINI_", "COPILOT_"} {
		if strings.HasPrefix(name, p) {
			return Loading
		}
	}
	switch name {
	case "HUSKY", "HUSKY_SKIP_HOOKS", "LEFTHOOK", "OVERCOMMIT_DISABLE": // they switch off the project's hooks, as --no-verify does
		return Loading
	case "GIT_ALLOW_PROTOCOL", "CLAUDECODE", "AGENT_ROLE", "ANTHROPIC_BASE_URL", "SESSION_ID", "PROMPT_COMMANDS", "GIT_PROTOCOL_FROM_USER":
		return Loading
	}
	for _, p := range [...]string{"GIT_", "SSH_", "PYTHON", "PERL", "RUBY", "NODE_", "NPM_", "npm_", "YARN_", "JAVA_", "JDK_", "_JAVA", "LESS", "BASH", "ZDOTDIR", "RIPGREP_", "CARGO", "RUST", "GO", "DOTNET_", "LUA_", "PHP", "GEM_", "BUNDLE_", "PIP_", "UV_", "POETRY_", "VIRTUAL_ENV", "CONDA_", "MAVEN_", "GRADLE_", "XDG_", "GTK_", "QT_", "GIO_", "DBUS_", "GPG", "GNUPG", "AWS_", "AZURE_", "OPENAI_", "ANTHROPIC_", "FZF_", "BAT_", "RSYNC_", "CVS", "SVN_", "HG", "OPENSSL_", "CURL_", "TEX", "MAGICK_", "PKG_", "CMAKE", "JQ_", "DELTA_", "ACLOCAL", "VIM", "EMACS", "NVIM", "TMUX", "PROMPT", "READLINE"} {
		if strings.HasPrefix(name, p) {
			return Steering
		}
	}
	if strings.HasSuffix(strings.ToLower(name), "_proxy") || strings.HasSuffix(name, "OPTS") || strings.HasSuffix(name, "OPTIONS") || strings.HasSuffix(name, "_FLAGS") || strings.HasSuffix(name, "FLAGS") || strings.HasSuffix(name, "PRELOAD") ||
		strings.HasSuffix(name, "_COMMAND") || strings.HasSuffix(name, "_CMD") || strings.HasSuffix(name, "PAGER") || strings.HasSuffix(name, "EDITOR") || strings.HasSuffix(name, "PATH") || strings.HasSuffix(name, "_HOME") || strings.HasSuffix(name, "RC") || strings.HasSuffix(name, "OPEN") || strings.HasSuffix(name, "CLOSE") {
		return Steering
	}
	return Plain
}

// SecretVariable reports whether a variable's name says that it holds a secret.
func SecretVariable(name string) bool {
	n := strings.ToUpper(name)
	for _, s := range [...]string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "PRIVATE_KEY", "ACCESS_KEY", "CREDENTIAL", "AUTH", "DATABASE_URL", "REDIS_URL", "MONGODB_UR", "MONGO_UR", "AMQP_URL", "POSTGRES_URL", "MYSQL_URL", "CONNECTION_STRING", "CONN_STR", "CONNSTR", "WEBHOOK", "COOKIE", "BEARER", "JWT"} {
		if strings.Contains(n, s) {
			return true
		}
	}
	for _, s := range [...]string{"_KEY", "_PAT", "_PASS", "_PWD", "_DSN"} {
		if strings.HasSuffix(n, s) {
			return true
		}
	}
	return n == "DSN"
}
