package names

import (
	"slices"
	"strings"
	"testing"
)

// What tools, browsers and wallets keep is known by its place, in any spelling; what only
// looks like it is not.
func TestCredentials(t *testing.T) {
	for _, p := range []string{
		"/home/me/.config/github-copilot/apps.json", "/home/me/.mozilla/firefox/x/logins.json", "/home/me/.config/google-chrome/Default/Cookies", "/home/me/.config/sops/age/keys.txt", "/home/me/.kaggle/kaggle.json",
		"/home/me/.databrickscfg", "/home/me/.snowsql/config", "/home/me/.config/glab-cli/config.yml", "/home/me/.config/doctl/config.yaml", "/home/me/.fly/config.yml", "/home/me/.gradle/gradle.properties", "/home/me/.claude.json", "/home/me/.ethereum/keystore/x",
		"/Users/me/Library/Keychains/login.keychain-db", "/Users/me/Library/Application Support/Google/Chrome/Default/Cookies", "/C/Users/me/AppData/Roaming/Mozilla/Firefox/x", "/home/me/snap/firefox/common/x", "/etc/wireguard/wg0.conf",
		"/dev/sda", "/dev/nvme0n1p1", "/dev/mem", "/home/me/.oci/config", "/home/me/.nuget/NuGet.Config", "/home/me/AppData/Local/github-copilot/hosts.json",
	} {
		if Secret(p) == "" {
			t.Errorf("%s is not known", p)
		}
	}
	for _, p := range []string{"/w/config.yml", "/w/src/config", "/w/gradle.properties", "/w/.fly/other.yml", "/w/apps.json", "/w/library/x", "/w/etc/x", "/w/snap/x", "/w/.config/x", "/dev/null", "/dev/zero", "/dev/sound", "/w/mozilla/x", "/w/.mozilla2/x"} {
		if what := Secret(p); what != "" {
			t.Errorf("%s: %s", p, what)
		}
	}
	for dir, want := range map[string]bool{"/home/me/.config": true, "/home/me/.local/share": true, "/home/me/.ssh": true, "/home/me/Library": true, "/home/me/.mozilla/firefox": true, "/w/src": false, "/home/me/.cache": false} {
		if HoldsSecrets(dir) != want {
			t.Errorf("%s: %t", dir, !want)
		}
	}
}

// The tables are compared in lower case, and the one of files is searched in its order.
func TestPlacesAreInOrder(t *testing.T) {
	if !slices.IsSortedFunc(credentials[:], func(a, b place) int { return strings.Compare(a.base, b.base) }) {
		t.Error("credentials are not sorted by name")
	}
	all := slices.Concat(credentialPlaces, steeringPlaces, steeringFiles[:], editorPlaces, editorFiles[:])
	for _, c := range credentials {
		all = append(all, c.dir, c.base)
	}
	for _, text := range all {
		if text != strings.ToLower(text) {
			t.Errorf("%s is not in lower case", text)
		}
	}
}

// What tells agents and editors what to run, of whatever client.
func TestSteers(t *testing.T) {
	for _, p := range []string{
		"opencode.json", ".opencode/plugin/x.ts", ".roo/mcp.json", ".kiro/settings/mcp.json", ".amazonq/mcp.json", ".continue/mcpServers/x.yaml", ".clinerules/hooks/PreToolUse", ".idea/workspace.xml", ".nvim.lua", ".exrc", ".dir-locals.el", "x.sublime-project",
		".claude/workflows/x.md", ".claude/rules/x.md", ".claude-plugin/plugin.json", "hooks/hooks.json", ".github/instructions/x.md", ".github/chatmodes/x.md", ".cursor/environment.json", ".vscode/tasks.json", ".zed/debug.json", "sub/.git", "x.code-workspace", "a/.devcontainer/devcontainer.json", ".idea/runConfigurations/x.xml",
	} {
		if Steers("/w/"+p) == "" {
			t.Errorf("%s is not known", p)
		}
	}
	for _, p := range []string{"CLAUDE.md", "AGENTS.md", ".github/workflows/x.yml", ".vscode/extensions.json", "hooks.json", "src/hooks/index.ts", ".gitignore", "run/x", "vim/x", "opencode/x", ".idea/modules.xml"} {
		if what := Steers("/w/" + p); what != "" {
			t.Errorf("%s: %s", p, what)
		}
	}
}
