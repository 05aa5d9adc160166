package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"reprise/internal/durable"
)

// A project's data lie in a directory of its name, so another name is another directory: it
// is moved in one step, with all that is in it, and a link stays where it was. By that link a
// checkout that still has the old name in its file (a linked worktree, another branch), a
// session that began before, and whatever notes a path are led to what they are about.

// mostNames bounds how often one was renamed after the other; a link may lead in a circle.
const mostNames = 32

// NameNow is the name by which a project is kept that was kept by this one.
func (paths Paths) NameNow(name string) string {
	for range mostNames {
		to, err := os.Readlink(paths.ProjectDir(name))
		if err != nil || to == name || filepath.Base(to) != to || CheckProjectName(to) != nil {
			break // no link, or one of somebody's own to another disk
		}
		name = to
	}
	return name
}

// NamesOf are the names that a project has had on this machine, the first one first and with
// the one it has; that one alone where it never had another. What cannot be read has none beside it.
func (paths Paths) NamesOf(name string) []string {
	c, err := readClaim(paths, name)
	if err != nil || c == nil || len(c.Names) == 0 {
		return []string{name}
	}
	return slices.Clone(c.Names)
}

// OtherName is what a person is told of a project whose file has not the name that its data are
// kept by and are to be, and of a renaming that was cut off; "" where there is nothing to do.
func (paths Paths) OtherName(p *Project) string {
	if c, err := readClaim(paths, p.Name); err == nil && c != nil && c.Name != p.Name {
		return fmt.Sprintf("to call project %[1]s %[2]s was cut off: `reprise project rename %[2]s` goes on with it", p.Name, c.Name)
	}
	if p.Says != "" && p.Says != p.Name && paths.NameNow(p.Says) != p.Name {
		return fmt.Sprintf("%s calls project %s %s by now: `reprise project rename %[3]s` has what is known here go along", p.File(), p.Name, p.Says)
	}
	return ""
}

// find gives a project the name by which its data are kept: its file may still have an older
// one, or by now one that they have not been moved to. A stranger's file leads nowhere: who is
// not known by the register keeps the name that the file has.
func (paths Paths) find(p *Project) {
	p.Says = p.Name
	known := func(name string) bool {
		c, err := readClaim(paths, name)
		if err != nil || c == nil {
			return false
		}
		free, err := c.check(paths, &Project{Name: c.Name, Root: p.Root, Main: p.Main}, "", false)
		return err == nil && !free
	}
	if now := paths.NameNow(p.Name); now != p.Name {
		if known(now) {
			p.Name = now
		}
		return
	}
	if len(p.Aliases) == 0 {
		return
	}
	if c, err := readClaim(paths, p.Name); err != nil || c != nil {
		return
	}
	for _, alias := range slices.Backward(p.Aliases) {
		if now := paths.NameNow(alias); known(now) {
			p.Name = now
			return
		}
	}
}

// CheckMove tells whether the data of p may be had by another name: whether that is free.
// Where somebody has changed the name by hand, what was recorded by the new one since is no
// hindrance.
func (paths Paths) CheckMove(p *Project, to string) error {
	if err := CheckProjectName(to); err != nil {
		return fmt.Errorf("%w; %s", err, nameRemedy)
	}
	info, err := os.Lstat(paths.ProjectDir(to))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		if now := paths.NameNow(to); now == p.Name || now == to {
			return nil // its own name, from before, or one that was being put there
		}
		return &NameTakenError{Name: to, Root: p.Root, Now: paths.NameNow(to)}
	}
	c, err := readClaim(paths, to)
	if err != nil {
		return err
	}
	if c != nil && !c.has(p) && len(c.Roots) > 0 {
		return &NameTakenError{Name: to, Root: p.Root, By: c.Roots[len(c.Roots)-1]}
	}
	kept, err := paths.Kept(to)
	if err != nil {
		return err
	}
	if kept = slices.DeleteFunc(kept, func(what string) bool { return what == keptAs["events"] }); len(kept) > 0 {
		return fmt.Errorf("by the name %s there is something already in %s (%s), which is not mixed with what project %s has; move it away once you have looked at it", to, paths.ProjectDir(to), strings.Join(kept, ", "), p.Name)
	}
	return nil
}

// Move has a project's data kept by another name. Where that is killed, the next one of the
// same names goes on; until then all is found by the old name, or by the new one.
func (paths Paths) Move(ctx context.Context, disk durable.Disk, p *Project, to string) error {
	unlock, err := disk.Lock(ctx, filepath.Join(paths.Data, "rename.lock"))
	if err != nil {
		return fmt.Errorf("rename project: %w", err)
	}
	defer unlock()
	from := p.Name
	if err := paths.CheckMove(p, to); err != nil {
		return fmt.Errorf("rename project %s: %w", from, err)
	}
	if err := paths.takeIn(disk, from, to); err != nil {
		return fmt.Errorf("rename project %s: %w", from, err)
	}
	if err := paths.noteName(ctx, disk, from, to); err != nil {
		return fmt.Errorf("rename project %s: %w", from, err)
	}
	if err := paths.moveDir(disk, from, to); err != nil {
		return fmt.Errorf("rename project %s: %w", from, err)
	}
	return nil
}

// dropLink takes a former name's link away whose project was removed by hand: the name is free.
func (paths Paths) dropLink(name string) error {
	dir := paths.ProjectDir(name)
	info, err := os.Lstat(dir)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 || paths.NameNow(name) == name {
		return nil
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return durable.Remove(dir)
}

// noteName writes the new name into the register, which is found by both from then on.
func (paths Paths) noteName(ctx context.Context, disk durable.Disk, from, to string) error {
	unlock, err := disk.Lock(ctx, claimFile(paths, from)+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	c, err := readClaim(paths, from)
	if err != nil {
		return err
	}
	if c == nil {
		return errors.New("nothing is kept of it; `reprise init` makes it a project here")
	}
	c.Name = to
	for _, name := range []string{from, to} {
		if !slices.Contains(c.Names, name) {
			c.Names = append(c.Names, name)
		}
	}
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return disk.WriteFile(claimFile(paths, from), append(data, '\n'), 0o600)
}

// moveDir moves the directory and leaves the link, in one step where the file system has one:
// at no time the old name then leads nowhere. The link is put where the data will be, and the
// two change places.
func (paths Paths) moveDir(disk durable.Disk, from, to string) error {
	old, new := paths.ProjectDir(from), paths.ProjectDir(to)
	if info, err := os.Lstat(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	} else if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is a link, and is not moved", old)
	}
	if err := disk.Symlink(to, new); err != nil {
		return fmt.Errorf("%w (the old name stays as a link; on Windows that needs developer mode, or an administrator)", err)
	}
	err := disk.Exchange(old, new)
	if !errors.Is(err, durable.ErrNoExchange) {
		return err
	}
	if err := disk.Remove(new); err != nil {
		return err
	}
	if err := disk.Rename(old, new); err != nil {
		return err
	}
	if err := disk.Symlink(to, old); err != nil {
		return errors.Join(err, disk.Rename(new, old))
	}
	return nil
}

// takeIn makes room for the data where there is only what was recorded by the new name since
// somebody changed it by hand: these logs go to the others, as those of another machine do.
// The directory is put aside first, so that nothing can be recorded in it between a look
// at what it has and its end.
func (paths Paths) takeIn(disk durable.Disk, from, to string) error {
	dir := paths.ProjectDir(to)
	aside := filepath.Join(filepath.Dir(dir), ".taken-"+to)
	if err := paths.takeLogs(disk, aside, from, to); err != nil { // of one that was killed
		return err
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return nil // nothing, or a link
	}
	if err := disk.Rename(dir, aside); err != nil {
		return err
	}
	return paths.takeLogs(disk, aside, from, to)
}

// takeLogs moves the logs of what was put aside to those of a project, and removes the rest.
func (paths Paths) takeLogs(disk durable.Disk, aside, from, to string) error {
	events := filepath.Join(aside, filepath.Base(paths.Events(to)))
	logs, err := durable.ReadDir(events)
	if errors.Is(err, fs.ErrNotExist) {
		return disk.RemoveAll(aside)
	}
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(paths.Events(from), 0o700); err != nil {
		return err
	}
	for _, e := range logs {
		stem, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok {
			continue // locks; what else there is, is no log
		}
		target := filepath.Join(paths.Events(from), stem+"-"+to+".jsonl")
		for n := 2; ; n++ {
			if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
				break
			}
			target = filepath.Join(paths.Events(from), fmt.Sprintf("%s-%s-%d.jsonl", stem, to, n))
		}
		if err := disk.Rename(filepath.Join(events, e.Name()), target); err != nil {
			return err
		}
	}
	return disk.RemoveAll(aside)
}

// RenameEdit is what becomes of a project's file by another name: the one before is an alias
// from then on, by which other checkouts and machines find what they have of it.
func RenameEdit(p *Project, to string) (Edit, error) {
	old, err := readFile(p.File())
	if err != nil {
		return Edit{}, err
	}
	now, err := ParseProject(p.File(), old)
	if err != nil {
		return Edit{}, ofLink(p.Root, p.File(), err)
	}
	aliases := slices.DeleteFunc(slices.Clone(now.Aliases), func(a string) bool { return a == to })
	for _, name := range []string{now.Name, p.Name} {
		if name != to && !slices.Contains(aliases, name) {
			aliases = append(aliases, name)
		}
	}
	words := make([]string, len(aliases))
	for i, a := range aliases {
		words[i] = yamlWord(a)
	}
	text := string(old)
	var lines [][2]string
	if now.Name != to {
		lines = append(lines, [2]string{"name", yamlWord(to)})
	}
	if !slices.Equal(now.Aliases, aliases) {
		lines = append(lines, [2]string{"aliases", "[" + strings.Join(words, ", ") + "]"})
	}
	for _, line := range lines {
		d, err := parseYAML(p.File(), []byte(text))
		if err != nil {
			return Edit{}, err
		}
		var ok bool
		if text, ok = d.edit(text, line[0], line[1]); !ok {
			return Edit{}, byHand(p.File(), line[0], line[1])
		}
	}
	next, err := ParseProject(p.File(), []byte(text))
	if err != nil || next.Name != to || !slices.Equal(next.Aliases, aliases) {
		return Edit{}, byHand(p.File(), "name", yamlWord(to))
	}
	return Edit{p.File(), string(old), text}, nil
}

// SettingsEdit is what becomes of the settings that name a project; Before and After are the
// same where none does.
func SettingsEdit(env Env, paths Paths, flag, from, to string) (Edit, error) {
	file, _, err := settingsFile(env, paths, flag)
	if err != nil {
		return Edit{}, err
	}
	old, err := readFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Edit{File: file}, nil
	}
	if err != nil {
		return Edit{}, err
	}
	text := string(old)
	l, err := parsed(env, paths, file, old)
	if err != nil {
		return Edit{}, err
	}
	named := func(l *loader, name string) bool {
		return slices.ContainsFunc(l.out.Worker.Projects, func(w WorkerProject) bool { return w.Name == name })
	}
	if from == to || !named(l, from) {
		return Edit{file, text, text}, nil
	}
	if named(l, to) {
		return Edit{}, &Error{File: file, Key: "worker.projects." + from, Problem: "is to be called " + to + ", and there is one of that name", Remedy: "take one of the two out"}
	}
	key := l.keyNode("worker", "projects", from)
	lines := strings.SplitAfter(text, "\n")
	if key != nil {
		if at := key.GetToken().Position; at.Line <= len(lines) {
			line, in := lines[at.Line-1], at.Column-1
			for _, word := range []string{from, yamlWord(from)} {
				if rest, ok := strings.CutPrefix(line[min(in, len(line)):], word); ok {
					lines[at.Line-1] = line[:in] + yamlWord(to) + rest
					next := strings.Join(lines, "")
					if after, err := parsed(env, paths, file, []byte(next)); err == nil && named(after, to) && !named(after, from) {
						return Edit{file, text, next}, nil
					}
				}
			}
		}
	}
	return Edit{}, &Error{File: file, Key: "worker.projects." + from, Problem: "is in a form that cannot be changed from here", Remedy: "call it " + to + " there by hand, and run this again"}
}

// keyNode is the node of a key, nil where it is not there.
func (d *document) keyNode(parts ...string) ast.Node {
	level := d.root
	for i, part := range parts {
		at := slices.IndexFunc(level, func(v *ast.MappingValueNode) bool {
			s, ok := v.Key.(*ast.StringNode)
			return ok && s.Value == part
		})
		if at < 0 {
			return nil
		}
		if i == len(parts)-1 {
			return level[at].Key
		}
		switch v := level[at].Value.(type) {
		case *ast.MappingNode:
			level = v.Values
		case *ast.MappingValueNode:
			level = []*ast.MappingValueNode{v}
		default:
			return nil
		}
	}
	return nil
}

// WriteEdit writes what an edit of a project's file comes to, if the file is still as it was.
func WriteEdit(e Edit) error {
	now, err := readFile(e.File)
	if err != nil {
		return err
	}
	switch string(now) {
	case e.After:
		return nil
	case e.Before:
	default:
		return fmt.Errorf("%s was changed meanwhile; look at it, and run this again", e.File)
	}
	perm := fs.FileMode(0o644)
	target := e.File
	if real, err := filepath.EvalSymlinks(target); err == nil {
		target = real
	}
	if info, err := os.Stat(target); err == nil {
		perm = info.Mode().Perm()
	}
	return durable.WriteFile(target, []byte(e.After), perm)
}
