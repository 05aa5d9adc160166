package names

import (
	"path"
	"slices"
	"strings"
)

// place is a file by its name, in a directory; "" is any.
type place struct{ dir, base string }

// credentials are files in which tools keep what opens something, under names that else
// say nothing: sorted by these, and in lower case, as they are compared.
var credentials = [...]place{
	{"", ".claude.json"}, {"", ".cloudsmith.ini"}, {".config/jira", ".config.yml"}, {".ivy2", ".credentials"}, {".sbt", ".credentials"}, {"", ".databrickscfg"},
	{"", ".dbtrc"}, {"", ".fetchmailrc"}, {"", ".fly.yml"}, {"", ".mbsyncrc"}, {"", ".msmtprc"}, {"", ".mylogin.cnf"}, {"", ".netrc.gpg"}, {"", ".offlineimaprc"},
	{"", ".rediscli_auth"}, {"", ".sentryclirc"}, {"", ".smbcredentials"}, {".supabase", "access-token"}, {"", "access_tokens.db"}, {"", "accesstokens.json"},
	{".purple", "accounts.xml"}, {"", "adbkey"}, {".config/github-copilot", "apps.json"}, {"github-copilot", "apps.json"}, {".config/pypoetry", "auth.toml"},
	{"", "azureprofile.json"}, {".lftp", "bookmarks"}, {".config/cachix", "cachix.dhall"}, {".cloudflared", "cert.pem"}, {".config/hcloud", "cli.toml"},
	{".circleci", "cli.yml"}, {".rancher", "cli2.json"}, {".config/openstack", "clouds.yaml"}, {".aws-sam", "config"}, {".bundle", "config"}, {".config/argocd", "config"},
	{".config/hub", "config"}, {".config/msmtp", "config"}, {".irssi", "config"}, {".litecli", "config"}, {".oci", "config"}, {".snowsql", "config"},
	{".bluemix", "config.json"}, {".cf", "config.json"}, {".config/helm/registry", "config.json"}, {".config/netlify", "config.json"}, {".continue", "config.json"},
	{".ibmcloud", "config.json"}, {".mc", "config.json"}, {".railway", "config.json"}, {".twilio-cli", "config.json"}, {".config/stripe", "config.toml"},
	{".snowflake", "config.toml"}, {".config/doctl", "config.yaml"}, {".config/scw", "config.yaml"}, {".config/yandex-cloud", "config.yaml"},
	{".config/glab-cli", "config.yml"}, {".config/tea", "config.yml"}, {".fly", "config.yml"}, {".travis", "config.yml"}, {".influxdbv2", "configs"}, {"", "credentials.db"},
	{".pulumi", "credentials.json"}, {".wrangler/config", "default.toml"}, {".config/configstore", "firebase-tools.json"}, {".gradle", "gradle.properties"},
	{".config/github-copilot", "hosts.json"}, {"github-copilot", "hosts.json"}, {".config/solana", "id.json"}, {".jfrog", "jfrog-cli.conf.v6"}, {".kaggle", "kaggle.json"},
	{".config/atuin", "key"}, {"", "key3.db"}, {"", "key4.db"}, {"", "keystore.json"}, {".config", "linode-cli"}, {"", "logins.json"}, {".config/ngrok", "ngrok.yml"},
	{".ngrok2", "ngrok.yml"}, {".config/nix", "nix.conf"}, {".nuget", "nuget.config"}, {"", "oauth_creds.json"}, {".vnc", "passwd"}, {".weechat", "sec.conf"},
	{".davfs2", "secrets"}, {".config/goose", "secrets.yaml"}, {".config/wandb", "settings"}, {"", "signons.sqlite"}, {".expo", "state.json"},
	{".config/exercism", "user.json"}, {"", "wpa_supplicant.conf"},
}

// credentialPlaces are directories that hold such files, and nothing that work needs:
// profiles of browsers and of mail, keyrings, wallets.
var credentialPlaces = []string{
	".mozilla", ".thunderbird", ".librewolf", ".waterfox", ".zen", ".config/google-chrome", ".config/google-chrome-beta", ".config/chromium", ".config/bravesoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera", ".config/discord", ".config/slack", ".config/signal",
	".var/app/org.mozilla.firefox", ".var/app/com.google.chrome", "snap/firefox", "snap/chromium",
	"library/keychains", "library/cookies", "library/application support/google/chrome", "library/application support/firefox", "library/application support/bravesoftware", "library/application support/microsoft edge", "library/application support/arc", "library/safari",
	"appdata/local/google/chrome/user data", "appdata/roaming/mozilla", "appdata/local/microsoft/edge/user data", "appdata/roaming/microsoft/credentials", "appdata/roaming/microsoft/protect",
	".config/sops", ".config/op", ".config/1password", ".config/bitwarden cli", ".config/keepassxc", ".config/lastpass", ".local/share/kwalletd", ".pki", ".secrets",
	".ethereum", ".bitcoin", ".electrum", ".near-credentials", ".config/solana", ".foundry/keystores", ".brownie/accounts", ".cosmos", ".config/rclone", ".config/gcloud", ".config/gnupg", "etc/networkmanager/system-connections", "etc/wireguard", "etc/openvpn",
}

// kept reports whether a file is one in which a tool or a browser keeps what opens
// something.
func kept(p, base string) bool {
	base = strings.ToLower(base)
	lower := ""
	in := func(dirs ...string) bool {
		if lower == "" {
			lower = strings.ToLower(p)
		}
		return below(lower, dirs)
	}
	at, _ := slices.BinarySearchFunc(credentials[:], base, func(c place, base string) int { return strings.Compare(c.base, base) })
	for ; at < len(credentials) && credentials[at].base == base; at++ {
		if c := &credentials[at]; c.dir == "" || in(c.dir) {
			return true
		}
	}
	for rest, ok := p, true; ok; {
		if _, rest, ok = strings.Cut(rest, "/"); !ok || !special(rest) {
			continue // most paths have no such directory in them
		}
		for _, d := range credentialPlaces {
			if len(rest) >= len(d) && strings.EqualFold(rest[:len(d)], d) && (len(rest) == len(d) || rest[len(d)] == '/') {
				return true
			}
		}
	}
	return false
}

// special reports whether a way begins as those to the places of credentials do.
func special(way string) bool {
	if strings.HasPrefix(way, ".") {
		return true
	}
	name, _, _ := strings.Cut(way, "/")
	switch strings.ToLower(name) {
	case "library", "appdata", "snap", "etc":
		return true
	}
	return false
}

// HoldsSecrets reports whether a directory is one below which files lie that hold
// secrets, as a rule: to search it is to look into them.
func HoldsSecrets(dir string) bool {
	if Secret(dir+"/x") != "" {
		return true
	}
	dir = strings.ToLower(fold(dir))
	above := func(below string) bool {
		for d := path.Dir(below); d != "." && d != "etc"; d = path.Dir(d) {
			if strings.HasSuffix(dir, "/"+d) {
				return true
			}
		}
		return false
	}
	for _, d := range credentialPlaces {
		if above(d) {
			return true
		}
	}
	for _, c := range credentials {
		if c.dir != "" && above(c.dir+"/"+c.base) {
			return true
		}
	}
	return false
}

// steeringPlaces are directories from which an agent or an editor takes instructions, commands
// or hooks.
var steeringPlaces = []string{
	".claude/skills", ".claude/agents", ".claude/commands", ".claude/output-styles", ".claude/workflows", ".claude/rules", ".claude-plugin",
	".agents/skills", ".gemini/commands", ".gemini/agents", ".gemini/skills", ".github/agents", ".github/skills", ".github/prompts", ".github/copilot", ".github/instructions", ".github/chatmodes",
	".cursor", ".windsurf", ".opencode", ".roo", ".kiro", ".amazonq", ".continue", ".clinerules", ".cline", ".kilocode", ".junie", ".trae", ".augment", ".factory", ".crush", ".goose", ".qwen", ".iflow", ".codebuddy", ".rovodev", ".openhands", ".devin", ".amp", ".tabnine", ".sourcegraph", ".aider",
}

// steeringFiles are single files of that kind.
var steeringFiles = [...]string{
	"opencode.json", "opencode.jsonc", "crush.json", ".crush.json", ".aider.conf.yml", ".aider.conf.yaml", ".roomodes", ".kilocodemodes", "mcp.json", "mcp_config.json", "mcp_settings.json", "cline_mcp_settings.json", "claude_desktop_config.json", ".lsp.json",
}

// editorPlaces and editorFiles are those of editors, which may run programs.
var (
	editorPlaces = []string{".idea/runconfigurations", ".run", ".idea/externaltools", ".idea/tools", ".vim", ".nvim", ".helix", ".fleet", ".nova", ".externaltoolbuilders", ".lapce", ".theia", ".vs"}
	editorFiles  = [...]string{"devcontainer.json", ".devcontainer.json", ".nvim.lua", ".nvimrc", ".exrc", ".vimrc", ".gvimrc", ".lvimrc", ".vimspector.json", ".dir-locals.el", ".dir-locals-2.el", ".emacs"}
)

// Steers says of files that an agent or an editor takes for more than text, and that
// people change all the same, what they are; "" of others.
func Steers(p string) string {
	p = "/" + strings.TrimPrefix(fold(p), "/")
	base := path.Base(p)
	lower := strings.ToLower(base)
	is := func(list []string) bool {
		for _, name := range list {
			if lower == name {
				return true
			}
		}
		return false
	}
	switch {
	case below(p, steeringPlaces), is(steeringFiles[:]), base == "hooks.json" && below(p, []string{"hooks"}):
		return "instructions of an agent, which may hold hooks and commands"
	case below(p, []string{".vscode"}) && is([]string{"tasks.json", "settings.json", "launch.json", "c_cpp_properties.json", "cmake-kits.json"}),
		below(p, []string{".zed"}) && is([]string{"tasks.json", "settings.json", "launch.json", "debug.json"}),
		below(p, []string{".idea"}) && is([]string{"workspace.xml", "externaltools.xml", "watchertasks.xml"}), below(strings.ToLower(p), editorPlaces),
		is(editorFiles[:]), strings.HasSuffix(lower, ".code-workspace"), strings.HasSuffix(lower, ".sublime-project"), strings.HasSuffix(lower, ".sublime-build"):
		return "settings of an editor, which may run programs"
	case base == ".git":
		return "the place of a repository"
	}
	return ""
}
