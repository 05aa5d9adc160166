package compile

import (
	"encoding/json"
	"fmt"

	"reprise/internal/config"
	"reprise/internal/hook/plan"
	"reprise/internal/learn"
	"reprise/internal/recall"
)

// index is the version of the index as a whole. Two programs of different versions
// would each build it anew at every event.
var index = fmt.Sprintf("%d/%s", recall.Layout, learn.Version)

// home is what a plan holds of an installation: all settings, so that whoever
// opens it from there is told nothing else than who reads the files, and of the
// project what says whose memory it is. Index is the version of the index that the
// program which made the plan keeps.
type home struct {
	Index    string
	Settings config.Settings
	Project  *project `json:",omitempty"`
}

type project struct{ Name, Root, Main string }

func encodeHome(h *config.Home) (string, error) {
	out := home{Index: index, Settings: h.Settings}
	out.Settings.Hooks.State = h.StateHooks() // as the project has them, once it is approved
	if p := h.Project; p != nil {
		out.Project = &project{p.Name, p.Root, p.Main}
	}
	data, err := json.Marshal(out)
	if err != nil {
		return "", fmt.Errorf("write the hooks' plan: %w", err)
	}
	return string(data), nil
}

// Home is the installation that a plan was made of, without a look at its files:
// the plan holds, so they have not changed. The project's own settings, which
// count once they are approved, stand in the plan's rules and are not in it.
func Home(p *plan.Plan, env config.Env) (*config.Home, error) {
	paths, err := config.FindPaths(env)
	if err != nil {
		return nil, err
	}
	var in home
	if err := json.Unmarshal([]byte(p.Home), &in); err != nil {
		return nil, fmt.Errorf("read the hooks' plan: %w", err)
	}
	if in.Index != index {
		return nil, fmt.Errorf("read the hooks' plan: it is of a program that keeps the index in version %q, and this one in %s; install both from one release", in.Index, index)
	}
	h := &config.Home{Env: env, Paths: paths, Settings: in.Settings}
	if in.Project != nil {
		h.Project = &config.Project{Name: in.Project.Name, Root: in.Project.Root, Main: in.Project.Main}
	}
	return h, nil
}
