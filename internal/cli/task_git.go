package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/task"
	"reprise/internal/term"
)

// taskStore is the list of tasks of a checkout.
func (a *App) taskStore(main string) *task.Store {
	return task.New(main, task.Options{Now: a.Env.Now, Home: cmp.Or(a.Env.Get("HOME"), a.Env.Get("USERPROFILE")), Committed: func(ctx context.Context, name string) iter.Seq[[]byte] {
		return func(yield func([]byte) bool) { a.committedTasks(ctx, main, name, yield) }
	}})
}

// mostVersions is how many commits are looked through for what a task said.
const mostVersions = 200

// committedTasks tells what commits have of a file of a project, as [task.Options] wants it.
func (a *App) committedTasks(ctx context.Context, main, name string, yield func([]byte) bool) {
	top := git.Top(main)
	if top == "" {
		return
	}
	below, err := filepath.Rel(top, main)
	if err != nil {
		return
	}
	g := git.New(top, git.Options{Vars: a.Env.Vars})
	name = path.Join(filepath.ToSlash(below), name)
	last, err := g.Run(ctx, "cat-file", "blob", "HEAD:"+name)
	if err != nil {
		last = nil
	}
	if !yield(last) {
		return
	}
	commits, err := g.Run(ctx, "log", "--format=%H", fmt.Sprintf("--max-count=%d", mostVersions), "HEAD", "--", ":(top,literal)"+name)
	if err != nil {
		return // a repository without a commit
	}
	for commit := range strings.FieldsSeq(string(commits)) {
		if data, err := g.Run(ctx, "cat-file", "blob", commit+":"+name); err == nil && !bytes.Equal(data, last) {
			if last = data; !yield(data) {
				return
			}
		}
	}
}

// underWay is what git is in the middle of in a checkout and would take a commit into,
// "" where it is in the middle of nothing.
func underWay(ctx context.Context, g *git.Git) string {
	out, err := g.Run(ctx, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return "" // said by the commit
	}
	dir := strings.TrimRight(string(out), "\r\n")
	for _, s := range [][2]string{
		{"rebase-merge", "rebase"}, {"rebase-apply", "rebase"}, {"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"MERGE_HEAD", "merge"},
	} {
		if _, err := os.Lstat(filepath.Join(dir, s[0])); err == nil {
			return s[1]
		}
	}
	return ""
}

// errGoingOn is what [errUnderWay] says, for who asks.
var errGoingOn = errors.New("nothing is committed in the middle of it")

// errUnderWay says why nothing is committed just now.
func errUnderWay(what string) error {
	if what == "merge" {
		return underWayError("a merge is going on in this checkout; what changed in specs/ goes into its commit: add it there")
	}
	return underWayError(fmt.Sprintf("a %s is going on in this checkout and would take the commit along; once it is over, the next command that changes specs/ commits this, too; what is not committed is gone after `git %s --abort`", what, what))
}

type underWayError string

func (e underWayError) Error() string        { return string(e) }
func (e underWayError) Is(target error) bool { return target == errGoingOn }

// commitPatience is how long a commit waits for those of other commands.
const commitPatience = 30 * time.Second

// oneAtATime keeps commits of several commands apart: one would find committed what it
// had just found changed, which git calls a failure.
func oneAtATime(ctx context.Context, store *task.Store, commit func() error) error {
	wait, cancel := context.WithTimeout(ctx, commitPatience)
	defer cancel()
	if unlock, err := durable.Lock(wait, store.CommitLock()); err == nil {
		defer func() { _ = unlock() }() // it ends with the process
	}
	return commit()
}

// changedUnderGit is how often a commit is begun anew because files were changed while git
// read them.
const changedUnderGit = 5

// commitWhenFree commits, and tries again for a while where another git is at work, or
// where another command changed the list while this one's was read: git reads each file
// twice, for the commit and for the user's index, and says nothing where it finds the
// first as it was committed.
func (a *App) commitWhenFree(ctx context.Context, g *git.Git, top, message string, paths []string) error {
	again := 0
	for wait := 50 * time.Millisecond; ; {
		before := lookAt(top, paths)
		_, err := g.CommitOnly(ctx, message, paths)
		var said *git.Error
		switch {
		case err == nil && before.same(lookAt(top, paths)):
			return nil
		case err == nil: // what stands in the index may be another version than that in the commit
			return g.ResetIndex(ctx, paths)
		case errors.As(err, &said) && said.Code == 1 && strings.TrimSpace(said.Stderr) == "" && again < changedUnderGit:
			again++
			continue
		case !errors.Is(err, git.ErrLocked):
			return err
		case a.takeLeft(git.LockedAt(err)):
			continue
		case wait > 2*time.Second:
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
		wait *= 2
	}
}

// leftLock is how old a lock of git's must be before it is thought of as left.
const leftLock = time.Minute

// takeLeft takes a lock away that a killed git left in a user's repository.
func (a *App) takeLeft(lock string) bool {
	gone, err := git.TakeLeft(lock, leftLock, a.Env.Now())
	if gone && err == nil {
		fmt.Fprintf(a.Err, "note: %s is taken away: the git that made it is gone\n", lock)
	}
	return gone && err == nil
}

// lookedAt is what can be seen of files without reading them; nil is for none.
type lookedAt []fs.FileInfo

func lookAt(top string, paths []string) (l lookedAt) {
	for _, p := range paths {
		fi, err := os.Lstat(filepath.Join(top, filepath.FromSlash(p)))
		if err != nil {
			fi = nil
		}
		l = append(l, fi)
	}
	return l
}

func (l lookedAt) same(m lookedAt) bool {
	return slices.EqualFunc(l, m, func(a, b fs.FileInfo) bool {
		if a == nil || b == nil {
			return a == b
		}
		return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
	})
}

// commitTasks commits files of a checkout, and nothing else of the user's, with what of
// the list could not be committed before. A commit that fails is a note and stands in
// errors.json: the task goes on without it.
// The error says that the command was stopped before it was committed.
func (a *App) commitTasks(ctx context.Context, store *task.Store, dir, message string, files []string) error {
	if home, err := a.Home(); err != nil || home.Settings.Tasks.Commit == "off" || len(files) == 0 {
		return nil
	}
	top := git.Top(dir)
	if top == "" {
		return nil
	}
	below, err := filepath.Rel(top, dir)
	if err == nil {
		g := git.New(top, git.Options{Vars: a.Env.Vars})
		err = oneAtATime(ctx, store, func() error {
			return a.commitFiles(ctx, g, store, taskCommit{top, filepath.ToSlash(below), dir == filepath.Dir(store.Dir()), message, files})
		})
	}
	if err == nil || errors.Is(err, git.ErrNothingToCommit) {
		return nil
	}
	if ctx.Err() != nil { // who stops a command knows it, and nothing went wrong
		subject, _, _ := strings.Cut(message, "\n")
		return fmt.Errorf("%w, before git had committed %q: what changed in specs/ is kept, and the next command that changes it commits this, too", context.Cause(ctx), subject)
	}
	fmt.Fprintf(a.Err, "note: not committed: %v\n", err)
	if errors.Is(err, errGoingOn) {
		return nil
	}
	_, rerr := store.Change(ctx, func(b *task.Board) error {
		l, lerr := b.Failures()
		if lerr == nil {
			l.Record(task.Failure{Type: task.CommitFailure, Message: err.Error(), Context: task.Context{Command: "commit"}}, a.Now())
		}
		return lerr
	})
	if rerr != nil {
		fmt.Fprintf(a.Err, "note: that it was not is not in errors.json either: %v\n", rerr)
	}
	return nil
}

// taskCommit is what is to be committed for tasks.
type taskCommit struct {
	top     string // of the checkout
	below   string // of the checkout's top the project lies in, with slashes
	main    bool   // it is the main checkout, which has the list
	message string
	files   []string // relative to the project, with slashes
}

// commitFiles commits with the commit lock held. What cannot be committed is noted, and
// taken along by the next commit of the list.
func (a *App) commitFiles(ctx context.Context, g *git.Git, store *task.Store, c taskCommit) error {
	if what := underWay(ctx, g); what != "" {
		return a.missed(ctx, store, c, errUnderWay(what))
	}
	paths := func(files []string) (out []string) {
		for _, f := range files {
			out = append(out, path.Join(c.below, f))
		}
		return out
	}
	also := a.leftBehind(ctx, g, store, c)
	if c.main {
		// Noted first, so that where this is killed the next commit has what an agent made.
		if err := store.Missed(ctx, c.files); err != nil {
			return err
		}
	}
	if len(also) > 0 {
		named := also[:min(len(also), 20)]
		message := c.message + "\n\nWith what could not be committed before: " + strings.Join(named, ", ")
		err := a.commitWhenFree(ctx, g, c.top, message+"\n", paths(slices.Concat(c.files, also)))
		if err == nil || errors.Is(err, git.ErrNothingToCommit) {
			if cerr := store.Committed(); cerr != nil {
				fmt.Fprintf(a.Err, "note: what is committed is still noted as missing: %v\n", cerr)
			}
			return err
		}
		// What was left behind may be why, as where a hook refuses it again.
	}
	err := a.commitWhenFree(ctx, g, c.top, c.message+"\n", paths(c.files))
	if err == nil || errors.Is(err, git.ErrNothingToCommit) {
		if c.main && len(also) == 0 {
			err = errors.Join(err, store.Committed())
		}
		return err
	}
	return a.missed(ctx, store, c, commitProblem(err))
}

// missed notes what was not committed, and gives back why.
func (a *App) missed(ctx context.Context, store *task.Store, c taskCommit, why error) error {
	if !c.main {
		return why // it stays in its checkout, which is committed as a whole in the end
	}
	if err := store.Missed(context.WithoutCancel(ctx), c.files); err != nil {
		fmt.Fprintf(a.Err, "note: what was not committed is not noted for the next commit: %v\n", err)
	}
	return why
}

// leftBehind are files that an earlier commit was to have and has not, relative to the
// project: those that the list names, and what was noted of the work beside it.
func (a *App) leftBehind(ctx context.Context, g *git.Git, store *task.Store, c taskCommit) []string {
	if !c.main {
		return nil
	}
	out, err := g.AsUser().Run(ctx, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--", ":(top,literal)"+path.Join(c.below, "specs"))
	if err != nil {
		return nil // said by the commit
	}
	also, err := store.Unmissed()
	if err != nil {
		fmt.Fprintf(a.Err, "note: what was not committed before cannot be read: %v\n", err)
	}
	var b *task.Board
	for line := range strings.SplitSeq(string(out), "\x00") {
		if len(line) < 4 {
			continue
		}
		name := strings.TrimPrefix(line[3:], strings.TrimPrefix(c.below+"/", "./"))
		if slices.Contains(c.files, name) || slices.Contains(also, name) {
			continue
		}
		if b == nil {
			if b, err = store.Load(ctx); err != nil {
				return nil // said by whoever reads it next
			}
		}
		if b.Keeps(name) {
			also = append(also, name)
		}
	}
	return slices.DeleteFunc(also, func(name string) bool { return slices.Contains(c.files, name) })
}

// commitProblem says in a line why git did not commit.
func commitProblem(err error) error {
	var said *git.Error
	if !errors.As(err, &said) {
		return err
	}
	text := said.Stderr
	switch {
	case strings.Contains(text, "cannot do a partial commit during a"):
		return errUnderWay("merge")
	case strings.Contains(text, "Please tell me who you are"), strings.Contains(text, "empty ident name"), strings.Contains(text, "unable to auto-detect email"):
		return errors.New("git does not know who you are: `git config user.name NAME` and `git config user.email ADDRESS` tell it")
	case strings.Contains(text, dubiousOwnership):
		return dubiousOwner(text)
	case errors.Is(err, git.ErrTimeout):
		return errors.New("git did not end in the time it was given: a hook of the repository that waits does that, and so does a pipe or a huge file where git reads one (.gitignore, .gitattributes, .git/info/exclude)")
	case errors.Is(err, git.ErrLocked):
		return fmt.Errorf("%s; the next command that changes specs/ commits it", cmp.Or(term.SafeLine(said.Held()), "another git was at work in this checkout all the while"))
	}
	last := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		// What git warns of or hints at stops nothing: with line ends that it will turn it
		// warns at each file, and a hook that ends with 1 says nothing.
		if strings.HasPrefix(line, "warning: ") || strings.HasPrefix(line, "hint: ") || strings.HasPrefix(line, "The file will have its original line endings") {
			continue
		}
		for _, mark := range []string{"fatal: ", "error: "} {
			if rest, ok := strings.CutPrefix(line, mark); ok {
				return fmt.Errorf("git says: %s", term.SafeLine(clipText(rest, 200)))
			}
		}
		if line != "" {
			last = line
		}
	}
	if last == "" {
		return fmt.Errorf("git ended with exit code %d and did not say why, as where a hook of the repository (pre-commit, commit-msg) refuses it without a word", said.Code)
	}
	return fmt.Errorf("git, or a hook of the repository, says: %s", term.SafeLine(clipText(last, 200)))
}

// dubiousOwnership is what git says of a repository that another user owns.
const dubiousOwnership = "detected dubious ownership"

// dubiousOwner says what to do where git does not read a repository because another user
// owns it; text is what git said.
func dubiousOwner(text string) error {
	return fmt.Errorf("git does not read this repository, because another user owns it; if you trust what is in it: `%s`", term.SafeLine(trustOwner(text)))
}

// trustOwner is git's own remedy for that, from what it said: it names the directory.
func trustOwner(text string) string {
	const command = "git config --global --add safe.directory "
	for line := range strings.Lines(text) {
		if _, dir, ok := strings.Cut(strings.TrimSpace(line), command); ok && dir != "" {
			return command + dir
		}
	}
	return command + "DIRECTORY"
}
