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
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("find project: %w", err)
	}
	home := ""
	if h, err := env.Home(); err == nil {
		if home, err = filepath.EvalSymlinks(h); err != nil {
			home = h
		}
	}
	var roots []string // where its file would be, the nearest first
	broken := ""
walk:
	for d := real; ; d = filepath.Dir(d) {
		p, err := projectAt(d)
		if p != nil {
			return nil, nil
		}
		roots = append(roots, d)
		if err != nil {
			broken = d
			break
		}
		if !isAgentDir(d) {
			switch kind, main, err := gitAt(d); {
			case err != nil:
				return nil, err
			case kind == gitMain:
				break walk
			case kind == gitLinked:
				there, at, err := mainRoots(main, d, real)
				if err != nil {
					return nil, err
				}
				roots, broken = append(roots, there...), at
				break walk
			}
		}
		if d == home || d == filepath.Dir(d) {
			break
		}
	}
	return paths.lostAt(roots, broken)
}

// mainRoots are the places of the main checkout that dir of a linked worktree stands
// for; broken is the one whose file cannot be read. There are none where a project is found.
func mainRoots(main, worktree, dir string) (roots []string, broken string, err error) {
	rel, err := filepath.Rel(worktree, dir)
	if err != nil {
		return nil, "", fmt.Errorf("find project: %w", err)
	}
	for {
		at := filepath.Join(main, rel)
		p, err := projectAt(at)
		if p != nil {
			return nil, "", nil
		}
		roots = append(roots, at)
		switch {
		case err != nil:
			return roots, at, nil
		case rel == ".":
			return roots, "", nil
		}
		rel = filepath.Dir(rel)
	}
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
