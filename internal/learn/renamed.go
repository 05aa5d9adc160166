package learn

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/event"
	"reprise/internal/learn/sign"
)

// A project may get another name. Its log stays as it was written: events say the name that
// they were written under, and are taken for the project's that the log is of. What is named
// by a project's name, such as a pattern, is named by its first one, so that it has the
// same id after the renaming, and what was said about it (that it is to be forgotten) holds.

// rename has an event of a renamed project's log say the name that the project has now.
func (l Log) rename(e *event.Event) {
	if len(l.Names) < 2 || e.Project == "" || e.Project == l.Project || !slices.Contains(l.Names, e.Project) {
		return
	}
	was := e.Project
	e.Project = l.Project
	switch e.Type {
	case event.MemoryRetired:
		var d event.MemoryData
		if json.Unmarshal(e.Data, &d) != nil || d.Op != OpExpire {
			return
		}
		if class, ok := strings.CutSuffix(d.ID, ":"+was); ok {
			e.Data = withField(e.Data, class+":"+l.Project, "id")
		}
	case event.PolicyChanged:
		var d PolicyChange
		if decode(e.Data, &d); d.For.Project == was {
			e.Data = withField(e.Data, l.Project, "for", "project")
		}
	}
}

// withField is JSON with one text in it replaced; what cannot be read stays as it is.
func withField(data json.RawMessage, text string, path ...string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return data
	}
	var value json.RawMessage
	if len(path) == 1 {
		value, _ = json.Marshal(text)
	} else {
		value = withField(fields[path[0]], text, path[1:]...)
	}
	fields[path[0]] = value
	out, err := json.Marshal(fields)
	if err != nil {
		return data
	}
	return out
}

// version is what an index has to say that it is of. By which names a project was known is
// part of what is worked out, so after a renaming it is worked out anew.
func (o *Organizer) version() string {
	var names []string
	for _, l := range o.o.Logs {
		if len(l.Names) > 1 {
			names = append(names, l.Project+"="+strings.Join(l.Names, ","))
		}
	}
	if len(names) == 0 {
		return foldVersion
	}
	slices.Sort(names)
	return foldVersion + "+" + sign.Hash(names...)
}

// behind says that a project was renamed since this process looked which there are: it leaves
// what is worked out to those that know of it.
func (o *Organizer) behind() bool {
	return slices.ContainsFunc(o.o.Logs, func(l Log) bool {
		if l.Project == "" {
			return false
		}
		info, err := os.Lstat(filepath.Dir(l.Dir))
		return err == nil && info.Mode()&fs.ModeSymlink != 0
	})
}

// firstName is the first name of a project, by which what is of it is named.
func (o *Organizer) firstName(project string) string {
	for _, l := range o.o.Logs {
		if l.Project == project && len(l.Names) > 0 {
			return l.Names[0]
		}
	}
	return project
}
