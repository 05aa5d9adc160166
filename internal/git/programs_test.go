package git

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A run may write what all worktrees of a repository share, and its own worktree. Whatever it
// has git run by that, git is not started for: a program that says where it ran would say so.
func TestNewProgramsAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	for _, c := range []struct {
		name, key string // key: of what is refused, "" for nothing
		do        func(r *programRepo)
		asUser    bool
	}{
		{name: "nothing"},
		{"a branch with a remote", "", func(r *programRepo) { r.git(r.place, "config", "branch.own.remote", "origin") }, false},
		{"the user's filter", "", func(r *programRepo) { r.write("place/.gitattributes", "*.bin filter=kept\n") }, false},
		{"a setting that is taken out", "", func(r *programRepo) { r.git(r.place, "config", "--unset", "filter.kept.clean") }, false},
		{"a setting of files alone", "", func(r *programRepo) { r.git(r.place, "config", "core.autocrlf", "false") }, false},
		{"a filter", "filter.evil.clean", func(r *programRepo) { r.git(r.place, "config", "filter.evil.clean", r.touch) }, false},
		{"another program of a filter", "filter.kept.clean", func(r *programRepo) { r.git(r.place, "config", "filter.kept.clean", r.touch) }, false},
		{"one more value", "filter.kept.clean", func(r *programRepo) { r.git(r.place, "config", "--add", "filter.kept.clean", r.touch) }, false},
		{"a filter in other letters", "filter.Evil.X.process", func(r *programRepo) { r.git(r.place, "config", "FILTER.Evil.X.PROCESS", r.touch) }, false},
		{"a merge driver", "merge.evil.driver", func(r *programRepo) { r.git(r.place, "config", "merge.evil.driver", r.touch) }, false},
		{"a text conversion", "diff.evil.textconv", func(r *programRepo) { r.git(r.place, "config", "diff.evil.textconv", r.touch) }, false},
		{"a diff program", "diff.external", func(r *programRepo) { r.git(r.place, "config", "diff.external", r.touch) }, false},
		{"how ssh is started", "core.sshcommand", func(r *programRepo) { r.git(r.place, "config", "core.sshCommand", r.touch) }, false},
		{"who knows passwords", "credential.https://x.example.helper", func(r *programRepo) { r.git(r.place, "config", "credential.https://x.example.helper", r.touch) }, false},
		{"another tree", "core.worktree", func(r *programRepo) { r.git(r.place, "config", "core.worktree", r.dir) }, false},
		{"settings of the worktree", "filter.evil.clean", func(r *programRepo) {
			r.git(r.place, "config", "extensions.worktreeConfig", "true")
			r.git(r.place, "config", "--worktree", "filter.evil.clean", r.touch)
		}, false},
		{"an included file", "filter.evil.clean", func(r *programRepo) {
			r.write("more", "[filter \"evil\"]\n\tclean = x\n")
			r.git(r.place, "config", "include.path", filepath.Join(r.dir, "more"))
		}, false},
		{"a file that is included already", "filter.evil.clean", func(r *programRepo) { r.write("later", "[filter \"evil\"]\n\tclean = x\n") }, false},
		{"the user's own settings", "filter.evil.clean", func(r *programRepo) { r.write("home/.gitconfig", "[filter \"evil\"]\n\tclean = x\n") }, false},
		{"a repository in it", "filter.evil.clean", func(r *programRepo) {
			inner := filepath.Join(r.place, "inner")
			r.git(r.place, "init", "-q", inner)
			r.git(inner, "commit", "-q", "--allow-empty", "-m", "x")
			r.git(r.place, "add", "inner")
			r.git(inner, "config", "filter.evil.clean", r.touch)
		}, false},
		{"a repository in it that has nothing", "", func(r *programRepo) {
			inner := filepath.Join(r.place, "inner")
			r.git(r.place, "init", "-q", inner)
			r.git(inner, "commit", "-q", "--allow-empty", "-m", "x")
			r.git(r.place, "add", "inner")
		}, false},
		{"hooks elsewhere", "", func(r *programRepo) { r.git(r.place, "config", "core.hooksPath", "x") }, false},
		{"hooks elsewhere, as the user", "core.hookspath", func(r *programRepo) { r.git(r.place, "config", "core.hooksPath", "x") }, true},
		{"a hook", "", func(r *programRepo) { r.write("repo/.git/hooks/pre-push", "x") }, false},
		{"a hook, as the user", "pre-push", func(r *programRepo) { r.write("repo/.git/hooks/pre-push", "x") }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newProgramRepo(t)
			if c.do != nil {
				c.do(r)
			}
			// Also for who comes later, and has the sums only.
			for _, p := range []*Programs{r.programs, KnownPrograms(r.sums)} {
				g := New(r.place, Options{Vars: r.vars, Programs: p}).OfUser()
				if c.asUser {
					g = g.AsUser()
				}
				for range 2 { // a refusal holds
					_, err := g.Run(t.Context(), "status", "--porcelain")
					var e *ProgramsError
					switch {
					case c.key == "" && err != nil:
						t.Fatal(err)
					case c.key != "" && (!errors.As(err, &e) || !errors.Is(err, ErrPrograms) || e.Key != c.key || !strings.Contains(err.Error(), e.File)):
						t.Fatalf("%v, want a refusal of %s", err, c.key)
					}
				}
			}
			if _, err := os.Lstat(filepath.Join(r.dir, "ran")); err == nil {
				t.Error("the program was run")
			}
		})
	}
}

// programRepo is a repository with a linked worktree.
type programRepo struct {
	t                 *testing.T
	dir, place, touch string
	vars              map[string]string
	programs          *Programs
	sums              []string
}

func newProgramRepo(t *testing.T) *programRepo {
	dir := t.TempDir()
	r := &programRepo{t: t, dir: dir, place: filepath.Join(dir, "place"), touch: "touch " + filepath.ToSlash(filepath.Join(dir, "ran")) + "; cat"}
	r.vars = map[string]string{"PATH": os.Getenv("PATH"), "HOME": filepath.Join(dir, "home")}
	r.write("home/.gitconfig", "[user]\n\tname = x\n\temail = x@example.invalid\n")
	repo := filepath.Join(dir, "repo")
	r.write("repo/a.txt", "a\n")
	r.git(repo, "init", "-q")
	r.git(repo, "add", "-A")
	r.git(repo, "commit", "-q", "-m", "first")
	r.git(repo, "config", "filter.kept.clean", "cat")
	r.git(repo, "config", "include.path", filepath.Join(dir, "later"))
	r.git(repo, "worktree", "add", "-q", r.place, "-b", "own")
	r.write("place/.gitattributes", "*.txt filter=evil\n")
	r.write("place/a.txt", "b\n")
	r.programs = KnownPrograms(nil)
	if err := r.programs.Learn(t.Context(), New(repo, Options{Vars: r.vars})); err != nil {
		t.Fatal(err)
	}
	r.sums = r.programs.Sums()
	if _, err := New(r.place, Options{Vars: r.vars, Programs: r.programs}).OfUser().Run(t.Context(), "status"); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *programRepo) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *programRepo) git(dir string, args ...string) {
	r.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		r.t.Fatal(err)
	}
	if _, err := New(dir, Options{Vars: r.vars}).Run(r.t.Context(), args...); err != nil {
		r.t.Fatal(err)
	}
}

// A submodule names its own tree among its settings: that is no new program.
func TestSubmodulesNameTheirTree(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	r := newProgramRepo(t)
	r.git(r.place, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", filepath.Join(r.dir, "repo"), "sub")
	g := New(r.place, Options{Vars: r.vars, Programs: r.programs}).OfUser()
	if _, err := g.Run(t.Context(), "status", "--porcelain"); err != nil {
		t.Fatal(err)
	}
	// Git's path is meant from the submodule's git directory, in a linked worktree of it, too, and
	// where a submodule lies in another, or had its git directory in it until now.
	sub := filepath.Join(r.place, "sub")
	r.git(sub, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", filepath.Join(r.dir, "repo"), "inner")
	r.git(r.dir, "clone", "-q", "repo", filepath.Join(sub, "old"))
	r.git(sub, "submodule", "--quiet", "add", filepath.Join(r.dir, "repo"), "old")
	r.git(sub, "submodule", "absorbgitdirs", "old")
	r.git(sub, "commit", "-q", "-m", "with submodules")
	linked := filepath.Join(r.dir, "linked")
	r.git(sub, "worktree", "add", "-q", "-b", "linked", linked)
	beside := filepath.Join(r.dir, "beside")
	r.git(filepath.Join(sub, "inner"), "worktree", "add", "-q", "-b", "beside", beside)
	for _, dir := range []string{sub, linked, filepath.Join(sub, "inner"), filepath.Join(sub, "old"), beside} {
		if _, err := New(dir, Options{Vars: r.vars, Programs: r.programs}).OfUser().Run(t.Context(), "status", "--porcelain"); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	// With settings of each worktree's own, as `git sparse-checkout` makes them.
	r.git(sub, "config", "extensions.worktreeConfig", "true")
	own, err := filepath.Rel(LinkedDir(sub), sub)
	if err != nil {
		t.Fatal(err)
	}
	r.git(sub, "config", "--unset", "core.worktree")
	r.git(sub, "config", "--worktree", "core.worktree", filepath.ToSlash(own))
	for _, dir := range []string{sub, linked} {
		if _, err := New(dir, Options{Vars: r.vars, Programs: r.programs}).OfUser().Run(t.Context(), "status", "--porcelain"); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	r.git(linked, "config", "--worktree", "core.worktree", r.dir)
	if _, err := New(linked, Options{Vars: r.vars, Programs: r.programs}).OfUser().Run(t.Context(), "status", "--porcelain"); !errors.Is(err, ErrPrograms) {
		t.Errorf("another tree of a linked worktree: %v", err)
	}
	r.git(sub, "config", "--worktree", "core.worktree", r.dir)
	if _, err := g.Run(t.Context(), "status", "--porcelain"); !errors.Is(err, ErrPrograms) {
		t.Fatalf("another tree: %v", err)
	}
}

// Each form of git's index says the same.
func TestGitlinks(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	dir := t.TempDir()
	g := New(dir, Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}})
	run := func(args ...string) {
		t.Helper()
		if _, err := g.Run(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "-q")
	id := strings.Repeat("12", 20)
	for _, name := range []string{"a/inner", "a/long-one-" + strings.Repeat("x", 300), "z"} {
		run("update-index", "--add", "--cacheinfo", ModeRepo+","+id+","+name)
	}
	for _, name := range []string{"a/file", "a/inner2", "y"} {
		run("update-index", "--add", "--cacheinfo", ModeFile+","+id+","+name)
	}
	want := []string{"a/inner", "a/long-one-" + strings.Repeat("x", 300), "z"}
	for _, version := range []string{"2", "3", "4"} {
		run("update-index", "--index-version", version)
		if got, ok := gitlinks(filepath.Join(dir, ".git", "index")); !ok || !slices.Equal(got, want) {
			t.Errorf("version %s: %q, %v", version, got, ok)
		}
	}
	run("update-index", "--split-index")
	if _, ok := gitlinks(filepath.Join(dir, ".git", "index")); ok {
		t.Error("a split index is understood")
	}
}
