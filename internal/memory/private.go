package memory

import (
	"bytes"
	"fmt"

	"reprise/internal/mdfile"
)

// holdsEntries says that a file of a memory, or of a project's global/, is one of
// entries.
func holdsEntries(rel string) bool {
	switch rel {
	case learnedBlock, decisionsBlock, learningsFile, decisionsFile, changelogFile:
		return true
	}
	return false
}

// shown is a file's text as the reader may see it, and how each entry that is of
// others alone stands in it. Only the files of entries hold any.
func (s *Store) shown(rel string, text []byte) (shown []byte, kept [][]byte) {
	if s.o.May == nil || !holdsEntries(rel) || !bytes.Contains(text, []byte("acl")) {
		return text, nil
	}
	return mdfile.ParseEntries(text).Cut(func(e *mdfile.Entry) bool { return !s.o.May(e.ACL) })
}

// editable gives a writer the file without the entries that are of others alone,
// and what has to be put back with [withKept].
func (s *Store) editable(rel string, f *mdfile.File) (*mdfile.File, [][]byte, error) {
	shown, kept := s.shown(rel, f.Bytes())
	if len(kept) == 0 {
		return f, nil, nil
	}
	g, err := mdfile.Parse(shown)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrContent, err)
	}
	return g, kept, nil
}

// withKept puts entries back behind a text that was changed without them.
func withKept(f *mdfile.File, kept [][]byte) (*mdfile.File, error) {
	if len(kept) == 0 {
		return f, nil
	}
	data := f.Bytes()
	for _, raw := range kept {
		data = mdfile.ParseEntries(data).WithEntry(raw)
	}
	g, err := mdfile.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContent, err)
	}
	return g, nil
}
