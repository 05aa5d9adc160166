// Package find tells which workspace a directory lies in. It is apart from package
// workspace because programs link it that start often, and is all that they need of
// it. It reads the records of workspaces (<project's data>/workspaces/NAME.json),
// writes nothing and takes no lock.
package find

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"reprise/internal/durable"
)

// Of is the name and the top of the workspace that dir lies in, of those of the
// project with this data directory; "" where it lies in none. dir has no symbolic
// links in it. A record that cannot be read is none: nobody is let into anything by
// it.
func Of(projectDir, dir string) (name, top string) {
	list, err := durable.ReadDir(filepath.Join(projectDir, "workspaces"))
	if err != nil {
		return "", ""
	}
	for _, e := range list {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		data, err := durable.Read(filepath.Join(projectDir, "workspaces", e.Name()))
		if err != nil {
			continue
		}
		var w struct {
			Name string `json:"name"`
			Dir  string `json:"dir"`
		}
		if json.Unmarshal(data, &w) != nil || !filepath.IsAbs(w.Dir) {
			continue
		}
		if rel, err := filepath.Rel(w.Dir, dir); err == nil && filepath.IsLocal(rel) && len(w.Dir) > len(top) {
			name, top = w.Name, w.Dir
		}
	}
	return name, top
}
