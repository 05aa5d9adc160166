package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// generic is the adapter for any program that reads a task on standard input,
// writes an answer as plain text and exits 0 when it is done. The system
// prompt is in the file that REPRISE_SYSTEM_PROMPT_FILE names.
type generic struct{}

func (generic) Name() string { return KindGeneric }

func (generic) NewStream() Stream { return &textStream{} }

func (generic) Command(t Task) (Command, error) {
	if err := t.check(); err != nil {
		return Command{}, err
	}
	if t.Program == "" {
		return Command{}, bad("program", "is empty; set claude_cli.path")
	}
	if t.Isolated != nil {
		return Command{}, fmt.Errorf("start %s: %w: nothing is known of its hooks and tools, so that it is not asked as a judge; use Claude Code", t.Program, ErrIsolation)
	}
	extra, err := t.plainEnv()
	if err != nil {
		return Command{}, err
	}
	if t.Work != nil {
		extra = append(extra, t.Work.Vars...)
	}
	env, err := t.environ(extra...)
	if err != nil {
		return Command{}, err
	}
	return Command{Path: t.Program, Env: env, Dir: t.WorkDir, Files: map[string][]byte{SystemFile: []byte(t.SystemPrompt)}}, nil
}

// plainEnv hands to a program without flags of its own what a client would
// get by flags.
func (t Task) plainEnv() ([]string, error) {
	dirs := t.openDirs()
	for _, d := range dirs {
		if strings.ContainsRune(d, os.PathListSeparator) {
			return nil, bad("additional directory", fmt.Sprintf("%q holds %q, which separates the directories in %s", d, os.PathListSeparator, AddDirsVar))
		}
	}
	env := []string{SystemPromptVar + "=" + filepath.Join(t.RunDir, SystemFile)}
	if t.Model != "" {
		env = append(env, ModelVar+"="+t.Model)
	}
	if len(dirs) > 0 {
		env = append(env, AddDirsVar+"="+strings.Join(dirs, string(os.PathListSeparator)))
	}
	if t.SessionID != "" {
		env = append(env, SessionVar+"="+t.SessionID)
	}
	return env, nil
}

// script is the built-in scripted agent, played by reprise itself. It talks
// like Claude Code, so it is parsed like it.
type script struct{}

func (script) Name() string { return KindScript }

func (script) NewStream() Stream { return newClaudeStream() }

func (script) Command(t Task) (Command, error) {
	if err := t.check(); err != nil {
		return Command{}, err
	}
	if !filepath.IsAbs(t.Self) {
		return Command{}, bad("reprise program", fmt.Sprintf("%q is not an absolute path, and it plays the script", t.Self))
	}
	extra, err := t.plainEnv()
	if err != nil {
		return Command{}, err
	}
	if t.Work != nil {
		extra = append(extra, t.Work.Vars...)
	}
	if session := t.resume(); session != "" {
		extra = append(extra, ResumeVar+"="+session)
	}
	if t.MemoryDir != "" {
		// Named so that a script can try to reach it; that it cannot is for
		// the sandbox to see to.
		extra = append(extra, MemoryDirVar+"="+t.MemoryDir)
	}
	env, err := t.environ(extra...)
	if err != nil {
		return Command{}, err
	}
	args := []string{"script-agent"}
	if t.ScriptFile != "" {
		args = append(args, "--file="+t.ScriptFile)
	}
	return Command{Path: t.Self, Args: args, Env: env, Dir: t.WorkDir, Files: map[string][]byte{SystemFile: []byte(t.SystemPrompt)}}, nil
}
