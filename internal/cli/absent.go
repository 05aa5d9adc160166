package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"reprise/internal/config"
	"reprise/internal/git"
)

// absent is a project whose file is not in the working directory, although the directory is
// the project's: a sparse checkout leaves the file out, another branch is checked out, or it
// was removed.
type absent struct {
	top  string // of the git working tree, or the directory itself
	file string // .reprise/project.yaml from there, with slashes
	// Of these one is set.
	sparse, deleted bool   // git's index has the file, with the sign that it is left out, or without
	ref             string // a branch that has it
	former          string // the name under which something is kept of the directory
	foreign         string // a project file that another user of the machine put there
	owner           int    // and that user's id

	name string // of the project, "" where it is not known
}

// absentProject looks for what there is of a project in a directory in which none is found;
// nil where there is nothing.
func (a *App) absentProject(ctx context.Context, dir string) *absent {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	out := &absent{top: real, file: ".reprise/project.yaml"}
	if out.foreign, out.owner = config.ForeignProject(a.Env, real); out.foreign != "" {
		return out
	}
	if top := git.Top(real); top != "" {
		out.top = top
		if a.absentInGit(ctx, out, real) {
			return out
		}
	}
	paths, err := config.FindPaths(a.Env)
	if err != nil {
		return nil
	}
	names, err := paths.FormerNames(&config.Project{Root: out.top, Main: out.top})
	if err != nil || len(names) != 1 { // of several it cannot be told which is meant
		return nil
	}
	out.former, out.name = names[0], names[0]
	return out
}

// mostRefs is how many branches are asked for a project's file.
const mostRefs = 1000

// absentInGit looks for the file in git's index and on branches.
func (a *App) absentInGit(ctx context.Context, out *absent, dir string) bool {
	g := git.New(out.top, git.Options{Vars: a.Env.Vars})
	if !g.IsTop() {
		return false
	}
	var names []string // where the file may lie, the nearest first
	for d := dir; ; d = filepath.Dir(d) {
		rel, err := filepath.Rel(out.top, d)
		if err != nil || !filepath.IsLocal(rel) {
			break
		}
		names = append(names, path.Join(filepath.ToSlash(rel), ".reprise/project.yaml"))
		if rel == "." {
			break
		}
	}
	args := []string{"ls-files", "-t", "-z", "--"}
	for _, n := range names {
		args = append(args, ":(top,literal)"+n)
	}
	if list, err := g.Run(ctx, args...); err == nil && len(list) > 2 {
		first, _, _ := strings.Cut(string(list), "\x00")
		out.sparse, out.deleted, out.file = first[0] == 'S', first[0] != 'S', first[2:]
		out.name = nameAt(ctx, g, ":"+out.file)
		return true
	}
	refs, err := g.Run(ctx, "for-each-ref", fmt.Sprintf("--count=%d", mostRefs), "--format=%(refname)", "refs/heads", "refs/remotes")
	if err != nil {
		return false
	}
	var ask strings.Builder
	var asked [][2]string
	for _, n := range names {
		for ref := range strings.FieldsSeq(string(refs)) {
			asked = append(asked, [2]string{ref, n})
			fmt.Fprintf(&ask, "%s:%s\n", ref, n)
		}
	}
	found, err := g.RunInput(ctx, []byte(ask.String()), "cat-file", "--batch-check=%(objecttype)")
	if err != nil {
		return false
	}
	i := 0
	for line := range strings.Lines(string(found)) {
		if i < len(asked) && strings.TrimSpace(line) == "blob" {
			out.ref, out.file = strings.TrimPrefix(strings.TrimPrefix(asked[i][0], "refs/heads/"), "refs/remotes/"), asked[i][1]
			out.name = nameAt(ctx, g, asked[i][0]+":"+out.file)
			return true
		}
		i++
	}
	return false
}

// nameAt is the name of the project whose file is an object of git's, "" where it has none.
func nameAt(ctx context.Context, g *git.Git, object string) string {
	data, err := g.Run(ctx, "cat-file", "blob", object)
	if err != nil {
		return ""
	}
	p, err := config.ParseProject(object, data)
	if err != nil {
		return ""
	}
	return p.Name
}

// why says that there is no project here, and how it comes back.
func (ab *absent) why() string {
	if ab == nil {
		return "there is no project here; `reprise init` makes one"
	}
	named, at := "", shellWords([]string{ab.top})
	if ab.name != "" {
		named = " (of project " + ab.name + ")"
	}
	switch {
	case ab.foreign != "":
		return fmt.Sprintf("there is no project here: %s belongs to another user of this machine (uid %d) and is passed over; `reprise init` makes one, in a directory of your own", ab.foreign, ab.owner)
	case ab.sparse:
		return fmt.Sprintf("there is no project here: %s%s is in git and not in this checkout, as a sparse one leaves it out; `git -C %s sparse-checkout add %s` brings it", ab.file, named, at, shellWords([]string{path.Dir(ab.file)}))
	case ab.deleted:
		return fmt.Sprintf("there is no project here: %s%s is in git and not in this checkout; `git -C %s checkout -- %s` brings it back", ab.file, named, at, shellWords([]string{ab.file}))
	case ab.ref != "":
		return fmt.Sprintf("there is no project here: %s%s is on the branch %s and not in what is checked out; go back there, or `git -C %s checkout %s -- %s` brings it here", ab.file, named, ab.ref, at, shellWords([]string{ab.ref}), shellWords([]string{ab.file}))
	}
	return fmt.Sprintf("there is no project here any more: %s was project %s, and its %s is gone; `reprise init --yes --name %s` there makes it again, with what is known of it", ab.top, ab.former, ab.file, ab.former)
}

// noProject says that there is no project here, and what to do.
func (a *App) noProject() error {
	return errors.New(a.absentProject(context.Background(), a.Env.Dir).why())
}
