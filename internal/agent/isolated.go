package agent

import (
	"path/filepath"
)

// Measured with Claude Code 2.1.332, against a home and a repository full of
// hooks, servers, CLAUDE.md and plugins:
//
//   - --setting-sources= loads no settings file, so no hook, no plugin, no
//     CLAUDE.md and no .mcp.json of anybody. disableAllHooks, in the one source
//     that is left, is for the settings that an organisation manages.
//   - --tools= offers nothing but StructuredOutput, by which --json-schema has
//     the answer given, and DeferredToolPlaceholder, the client's stand-in for
//     tools that it has none of: a call of it is "no such tool".
//   - --disable-slash-commands leaves out skills and commands, and
//     --no-session-persistence the transcript, which would be imported later as
//     if somebody had worked there.
//
// What no flag keeps out: a prompt that begins with a slash is a command, and
// @path in a prompt is replaced by that file's content, without a tool and
// without asking. Whoever asks must see to it that neither is in the prompt.
func isolatedClaude(t Task) (Command, error) {
	args := []string{
		"-p", "--output-format=stream-json", "--verbose", "--session-id=" + t.SessionID,
		"--system-prompt-file=" + filepath.Join(t.RunDir, SystemFile),
		"--setting-sources=", `--settings={"disableAllHooks":true}`, "--strict-mcp-config", "--tools=",
		"--disable-slash-commands", "--no-session-persistence",
	}
	if len(t.Isolated.Schema) > 0 {
		args = append(args, "--json-schema="+string(t.Isolated.Schema))
	}
	args = append(args, claudeLimits(t)...)
	env, err := t.environ("CLAUDE_CODE_MAX_RETRIES=1", "CLAUDE_CODE_DISABLE_AUTO_MEMORY=1", "DISABLE_AUTOUPDATER=1")
	if err != nil {
		return Command{}, err
	}
	return Command{Path: t.Program, Args: args, Env: env, Dir: t.WorkDir, Files: map[string][]byte{SystemFile: []byte(t.SystemPrompt)}}, nil
}
