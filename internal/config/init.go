package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"reprise/internal/durable"
)

// ignoreLine keeps an agent's own state out of the project's history. Without a slash at
// the end it counts for a symbolic link of that name, too, which must never be committed.
const ignoreLine = ".reprise/agent"

// InitProject makes root a project: it adds the ignore line to root's
// .gitignore, every other byte of which stays, and writes
// .reprise/project.yaml. name "" stands for one made of the directory's name.
// A project that is there already is returned as it is, when name is "" or its
// own; another name is refused, because changing it would leave its data
// behind.
func InitProject(root, name string) (*Project, error) {
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("make project: %q is not an absolute path", root)
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, fmt.Errorf("make project: %w", err)
	}
	if real == filepath.Dir(real) {
		return nil, fmt.Errorf("make project: %s is the root of the file system; change to the project's directory", real)
	}
	old, err := projectAt(real)
	if err != nil {
		return nil, err
	}
	if old != nil {
		if name != "" && name != old.Name {
			return nil, &Error{File: old.File(), Key: "name", Problem: fmt.Sprintf("the project is named %q already", old.Name),
				Remedy: fmt.Sprintf("leave out --name; `reprise project rename %s` renames it, with what is known of it", name)}
		}
		return old, addIgnoreLine(real)
	}
	if err := ownDirectory(real); err != nil {
		return nil, err
	}
	p, err := Prospect(real, name)
	if err != nil {
		return nil, err
	}
	if err := durable.MkdirAll(filepath.Join(real, ".reprise"), 0o755); err != nil {
		return nil, fmt.Errorf("make project: %w", err)
	}
	if err := addIgnoreLine(real); err != nil {
		return nil, err
	}
	if err := durable.WriteFile(ProjectFile(real), projectText(p.Name), 0o644); err != nil {
		return nil, fmt.Errorf("make project: %w", err)
	}
	return projectAt(real)
}

// ownDirectory wants the directory of the project's file to be in the project: a repository
// can bring a link along that leads to any place of the user's.
func ownDirectory(root string) error {
	dir := filepath.Join(root, ".reprise")
	if info, err := os.Lstat(dir); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return nil
	}
	to, err := os.Readlink(dir)
	if err != nil {
		return fmt.Errorf("make project: %w", err)
	}
	return &Error{File: dir, Problem: fmt.Sprintf("is a link to %q, and a project's own directory has to be in the project", to), Remedy: "remove the link, or put the directory itself there"}
}

func projectText(name string) []byte {
	return []byte("# A project of reprise. Commit this file.\nv: 1\nname: " + yamlWord(name) + "\naliases: []\n")
}

// yamlWord quotes a project name that YAML would take for a number or a word
// of its own.
func yamlWord(name string) string {
	switch name {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return `"` + name + `"`
	}
	if strings.Trim(name, "0123456789._-exob") == "" || name[0] >= '0' && name[0] <= '9' {
		return `"` + name + `"`
	}
	return name
}

// addIgnoreLine appends the ignore line to .gitignore unless a line there has
// the same effect already.
func addIgnoreLine(root string) error {
	file := filepath.Join(root, ".gitignore")
	data, err := durable.Read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		// An unreadable file must not be taken for an absent one and replaced.
		return fmt.Errorf("add %s to .gitignore: %w", ignoreLine, err)
	}
	perm := fs.FileMode(0o644)
	if err == nil {
		info, err := os.Lstat(file)
		if err != nil {
			return fmt.Errorf("add %s to .gitignore: %w", ignoreLine, err)
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("add %s to .gitignore: %s is not a regular file; add the line by hand", ignoreLine, file)
		}
		perm = info.Mode().Perm()
	}
	next := withIgnoreLine(data, ignoreLine)
	if bytes.Equal(next, data) {
		return nil
	}
	if err := durable.WriteFile(file, next, perm); err != nil {
		return fmt.Errorf("add %s to .gitignore: %w", ignoreLine, err)
	}
	return nil
}

// withIgnoreLine adds a line that ignores an agent's state, unless one of the usual
// forms is there.
func withIgnoreLine(data []byte, add string) []byte {
	for line := range bytes.Lines(data) {
		switch strings.TrimRight(string(line), " \t\r\n") {
		case add, "**/" + ignoreLine:
			return data
		}
		if add != ignoreLine {
			continue // the others count in one directory only
		}
		switch strings.TrimRight(string(line), " \t\r\n") {
		case ignoreLine, "/" + ignoreLine:
			return data
		}
	}
	eol := "\n"
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		eol = "\r\n"
	}
	out := bytes.Clone(data)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, eol...)
	}
	return append(out, add+eol...)
}

// InitRoot is where `reprise init` makes a project of dir: the root of the
// project that is there already, else the top of the git working tree, else dir
// itself.
func InitRoot(env Env, dir string) (root string, existing *Project, err error) {
	existing, err = FindProject(env, dir)
	if err != nil {
		return "", nil, err
	}
	if existing != nil {
		return existing.Root, existing, nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", nil, fmt.Errorf("find project: %w", err)
	}
	top, _, err := gitTop(real)
	if err != nil {
		return "", nil, err
	}
	if top == "" {
		top = real
	}
	return top, nil, nil
}

// Edit is what would become of one file.
type Edit struct {
	File          string
	Before, After string // Before is "" where there is none yet
}

// InitEdits are the files that InitProject would write for a project that is not there
// yet, with nothing written.
func InitEdits(p *Project) ([]Edit, error) {
	ignore := filepath.Join(p.Root, ".gitignore")
	data, err := durable.Read(ignore)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("add %s to .gitignore: %w", ignoreLine, err)
	}
	edits := []Edit{{ProjectFile(p.Root), "", string(projectText(p.Name))}}
	if next := withIgnoreLine(data, ignoreLine); !bytes.Equal(next, data) {
		edits = append(edits, Edit{ignore, string(data), string(next)})
	}
	return edits, nil
}

// ErrNoName is the error for a directory of whose name none can be made for a project.
var ErrNoName = errors.New("no name can be made of the directory's name")

// Prospect is the project that InitProject would make of root, with nothing
// written yet.
func Prospect(root, name string) (*Project, error) {
	if root == filepath.Dir(root) {
		return nil, fmt.Errorf("make project: %s is the root of the file system; change to the project's directory", root)
	}
	if !utf8.ValidString(root) { // no file of ours could name it as it is
		return nil, fmt.Errorf("make project: the directory %q has bytes in its path that are no text (UTF-8): rename it, and make the project then", root)
	}
	if strings.ContainsAny(root, "\n\r") { // lists and answers of git have a line for each path
		return nil, fmt.Errorf("make project: the directory %q has a line break in its path: rename it, and make the project then", root)
	}
	if name == "" {
		if name = NameFrom(root); name == "" {
			return nil, fmt.Errorf("make project: %w %q; pass --name: %s", ErrNoName, filepath.Base(root), nameRemedy)
		}
	}
	if err := CheckProjectName(name); err != nil {
		return nil, fmt.Errorf("make project: %w; %s", err, nameRemedy)
	}
	p := &Project{Name: name, Root: root, Main: root}
	if _, main, err := gitTop(root); err == nil && main != "" {
		p.Main = main
	}
	return p, nil
}
