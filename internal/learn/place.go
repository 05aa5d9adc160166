package learn

import (
	"slices"

	"reprise/internal/recall"
)

// placed gives what a session did outside any project to the directory that the
// session began in: it says something about that place, and nothing about every
// project. A session that never says where it is stays everybody's.
func placed(recs []*record) []*record {
	place := ""
	for _, r := range recs {
		if place = recall.Place(r.cwd); place != "" {
			break
		}
	}
	if place == "" {
		return recs
	}
	out := slices.Clone(recs)
	for i, r := range out {
		if r.project == "" {
			there := *r // the record itself is kept for when more of the session is known
			there.project = place
			out[i] = &there
		}
	}
	return out
}

// isProject says that a name is a project's, and neither a place nor nothing.
func isProject(name string) bool {
	_, place := recall.PlaceDir(name)
	return name != "" && !place
}
