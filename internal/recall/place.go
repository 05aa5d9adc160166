package recall

import (
	"path"
	"slices"
	"strings"
)

// placePrefix marks a Doc.Project that is a directory outside any project. No
// project's name has a colon in it.
const placePrefix = "dir:"

// Place is what stands in Doc.Project for what was seen in a directory outside
// any project: "dir:" and the directory. It is empty for what is no absolute
// path, of whichever system.
func Place(dir string) string {
	switch {
	case strings.HasPrefix(dir, "/"):
		return placePrefix + path.Clean(dir)
	case len(dir) >= 3 && dir[1] == ':' && (dir[2] == '\\' || dir[2] == '/'), strings.HasPrefix(dir, `\\`):
		dir = strings.ReplaceAll(dir, "/", `\`)
		if trimmed := strings.TrimRight(dir, `\`); len(trimmed) > 2 {
			dir = trimmed
		}
		return placePrefix + dir
	}
	return ""
}

// PlaceDir is the directory that a place stands for; ok is false for a project
// and for what is global.
func PlaceDir(project string) (dir string, ok bool) { return strings.CutPrefix(project, placePrefix) }

// Where says in words whose a document is: "project shop", "in /x", or nothing
// for what is global.
func Where(project string) string {
	if dir, ok := PlaceDir(project); ok {
		return "in " + dir
	}
	if project == "" {
		return ""
	}
	return "project " + project
}

// Sees says that what is of a project, a place or, with "", of everywhere is in
// the reader's sight, its access list aside.
func (r Reader) Sees(project string) bool {
	return r.All || r.Wide || project == "" || project == r.Project || slices.Contains(r.Places, project)
}

// own says that a document was worked out from the reader's own session, which
// has it before it. A note of session scope is no such thing: it was kept so as
// to be found again.
func (r Reader) own(d *Doc) bool {
	return d.Session != "" && d.Scope != scopeSession && r.OwnSession(d.Client, d.Session)
}

// OwnSession says that a session is the reader's. Ids are of a client; where one
// side does not say which, the id decides.
func (r Reader) OwnSession(client, session string) bool {
	return session != "" && session == r.Session && (client == r.Client || client == "" || r.Client == "")
}
