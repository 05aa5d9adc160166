package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"reprise/internal/durable"
)

// Lost is a project with checks that the user approved, whose file is not where it was,
// or cannot be read: gates that the user counts on are off.
type Lost struct {
	Project *Project // as far as it is known without its file: name, root and main checkout
	Trust   Trust    // of a text that says nothing
	Broken  bool     // the file is there, and cannot be read
}

// Why says what is the matter with the file.
func (l *Lost) Why() string {
	if l.Broken {
		return "cannot be read any more"
	}
	return "is not there any more"
}

// Lost looks whether there is such a project where [FindProject] finds none in dir, or
// cannot read what it finds; nil where there is none.
func (paths Paths) Lost(env Env, dir string) (*Lost, error) {
	var roots []string // where its file would be, the nearest first
	found, broken := false, ""
	err := projectPlaces(env, dir, func(root string) (done bool, _ error) {
		p, err := projectAt(root)
		if found = p != nil; found {
			return true, nil
		}
		roots = append(roots, root)
		if err != nil {
			broken = root
		}
		return err != nil, nil
	})
	if err != nil || found {
		return nil, err
	}
	return paths.lostAt(roots, broken)
}

// lostAt is the project that has been approved in one of the roots, the nearest first.
func (paths Paths) lostAt(roots []string, broken string) (*Lost, error) {
	dir := filepath.Dir(paths.ProjectDir("x"))
	entries, err := durable.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look what was approved: %w", err)
	}
	var out *Lost
	nearest := len(roots)
	for _, e := range entries {
		if !e.IsDir() {
			continue // an earlier name leads to the same
		}
		data, err := durable.Read(paths.TrustFile(&Project{Name: e.Name()}))
		if err != nil {
			continue // nothing was approved, or it is another project's trouble
		}
		var r trustRecord
		if json.Unmarshal(data, &r) != nil || r.V != 1 {
			continue
		}
		i := slices.Index(roots, r.Root)
		if i < 0 || i >= nearest {
			continue
		}
		t := Trust{Says: &Project{}, Before: r.Text}
		if !t.Lapsed() {
			continue
		}
		p := &Project{Name: e.Name(), Root: r.Root, Main: r.Root}
		if _, main, err := gitTop(r.Root); err == nil && main != "" {
			p.Main = main
		}
		nearest, out = i, &Lost{Project: p, Trust: t, Broken: r.Root == broken}
	}
	return out, nil
}
