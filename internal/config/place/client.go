package place

import "maps"

// clientDirs are where clients keep settings and sessions: a directory in the home
// directory, and the variable that names another one. (Seen with Claude Code 2.1, Codex
// 0.171, Gemini CLI 0.61, whose variable stands for the home directory, and Copilot CLI
// 1.0.)
var clientDirs = []struct {
	client, dir, name string
	home              bool // the variable is in the place of the home directory
}{
	{"claude-code", ".claude", "CLAUDE_CONFIG_DIR", false},
	{"codex", ".codex", "CODEX_HOME", false},
	{"gemini", ".gemini", "GEMINI_CLI_HOME", true},
	{"copilot", ".copilot", "COPILOT_HOME", false},
}

// ClientDir is where a client keeps its settings and sessions: where its own variable
// says, else below the home directory. A variable with a path that is not absolute is
// passed over, because it would mean another place in every directory.
func (e Env) ClientDir(client string) (string, error) {
	home, err := e.ClientHome(client)
	if err != nil {
		return "", err
	}
	for _, c := range clientDirs {
		if c.client != client {
			continue
		}
		if d, err := e.Expand(e.Get(c.name)); err == nil && !c.home {
			return d, nil
		}
		return e.Join(home, c.dir), nil
	}
	return e.Join(home, "."+client), nil
}

// ClientHome is what a client takes for the user's home directory.
func (e Env) ClientHome(client string) (string, error) {
	for _, c := range clientDirs {
		if c.client == client && c.home {
			if d, err := e.Expand(e.Get(c.name)); err == nil {
				return d, nil
			}
		}
	}
	return e.Home()
}

// WithoutClientDirs is the environment without the variables by which clients keep their
// files elsewhere than in the home directory.
func (e Env) WithoutClientDirs() Env {
	e.Vars = maps.Clone(e.Vars)
	for _, c := range clientDirs {
		delete(e.Vars, c.name)
	}
	return e
}
