package fakemodel

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Trial is how one client is started without a person against a Server: what to
// pass to it and what to write first. It holds for the versions that
// script/clients pins; each piece of it was tried with them.
type Trial struct {
	Client string
	// Args come before the prompt.
	Args []string
	// Trust are further arguments by which the client runs hooks, and uses a
	// project's settings, that nobody has been asked about yet. Codex and Gemini
	// CLI do not run them otherwise.
	Trust []string
	// Env is NAME=value, to be put behind HOME, PATH and the like. No value is a
	// key of anything.
	Env []string
	// Files are to be written before the start, by path, where there are none
	// yet. All of them lie in the working directory, none in the user's settings.
	Files map[string]string
}

// fakeKey is long and like no word: Copilot CLI blots its key out of all it
// says, so that a short one would take harmless text with it.
func fakeKey() string { return "fake-" + strings.Repeat("q7z9", 6) + "-key" }

// TrialClients are the names that Trial knows.
func TrialClients() []string { return []string{"claude", "codex", "gemini", "copilot"} }

// Trial says how the client is run against this server in the directory work.
// Nothing is written here.
func (s *Server) Trial(client, work string) (Trial, error) {
	t := Trial{Client: client}
	switch client {
	case "claude":
		t.Args = []string{"-p", "--output-format=stream-json", "--verbose", "--allowedTools=Bash"}
		t.Env = append(s.Env(), "CLAUDE_CODE_MAX_RETRIES=1")
	case "codex":
		provider := fmt.Sprintf(`model_providers.fake={name="fake", base_url="%s/v1", env_key="REPRISE_FAKE_KEY", wire_api="responses", request_max_retries=0, stream_max_retries=0}`, s.URL)
		t.Args = []string{
			"exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
			"-c", provider, "-c", `model_provider="fake"`, "-c", `model="fake-model"`,
			"-c", "check_for_update_on_startup=false", "-c", "analytics.enabled=false",
		}
		t.Trust = []string{"--dangerously-bypass-hook-trust"}
		t.Env = []string{"REPRISE_FAKE_KEY=" + fakeKey()}
	case "gemini":
		// A workspace's settings win over those of a user who is logged in another
		// way. No variable does: with a base URL in the environment and no settings
		// the client picks a way to log in that it then refuses. (The machine's
		// settings would win, too, but not from below a directory for all, like /tmp.)
		file := filepath.Join(work, ".gemini", "settings.json")
		t.Files = map[string]string{file: `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},` +
			`"general":{"enableAutoUpdate":false,"enableAutoUpdateNotification":false},"telemetry":{"enabled":false}}` + "\n"}
		t.Args = []string{"-o", "stream-json", "--approval-mode", "yolo", "-m", "gemini-2.5-pro"}
		t.Trust = []string{"--skip-trust"}
		t.Env = []string{
			"GEMINI_API_KEY=" + fakeKey(), "GOOGLE_GEMINI_BASE_URL=" + s.URL, "GEMINI_TELEMETRY_ENABLED=false",
			// --skip-trust comes too late for the settings: they are read before the arguments.
			"GEMINI_CLI_TRUST_WORKSPACE=true",
			// It starts itself a second time to have more memory, which costs seconds.
			"GEMINI_CLI_NO_RELAUNCH=true",
		}
	case "copilot":
		t.Args = []string{"--allow-all-tools", "--output-format", "json", "--stream", "off", "--no-color"}
		t.Trust = []string{"--trust-folder"}
		t.Env = []string{
			"COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false", "COPILOT_MODEL=fake-model",
			"COPILOT_PROVIDER_BASE_URL=" + s.URL + "/v1", "COPILOT_PROVIDER_API_KEY=" + fakeKey(),
		}
	default:
		return Trial{}, fmt.Errorf("no trial of a client %q: known are %s", client, strings.Join(TrialClients(), ", "))
	}
	return t, nil
}

// Argv is the command line after the program's name. Standard input must be
// empty, or it is read as more of the prompt.
func (t Trial) Argv(prompt string, more ...string) []string {
	args := append(append([]string{}, t.Args...), more...)
	switch t.Client {
	case "gemini", "copilot":
		return append(args, "-p", prompt)
	}
	return append(args, "--", prompt)
}

// Env is the part of an environment that makes Claude Code use this model and
// nothing else, as NAME=value. The key is not a key of anything.
func (s *Server) Env() []string {
	return []string{
		"ANTHROPIC_BASE_URL=" + s.URL,
		"ANTHROPIC_API_KEY=" + strings.Repeat("fake-", 3) + "key",
		"DISABLE_TELEMETRY=1",
		"DISABLE_AUTOUPDATER=1",
		"DISABLE_ERROR_REPORTING=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}
}
