package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/durable"
)

// FastForward moves the checkout, on whose branch it is, to a later commit: its index, its
// files and the branch, which may have no commit yet. What is not committed there stays, or nothing is done; a branch that
// has the commit already stays where it is. It is ErrMoved where the branch has another
// history than the commit, somebody moves it meanwhile, or the checkout is on another one, and
// ErrLocked where it is being moved at this moment.
//
// `git merge --ff-only` writes the index and the files first, and moves the branch after: who
// commits in between has the files of the merge in their own commit, and where the branch
// cannot be moved index and files stay behind. Here the branch is held from before that to the
// end.
func (g *Git) FastForward(ctx context.Context, branch, commit, reason string) error {
	from, err := g.Resolve(ctx, "refs/heads/"+branch)
	if err != nil {
		return err
	}
	to, err := g.Resolve(ctx, commit)
	switch {
	case err != nil:
		return err
	case to == "":
		return fmt.Errorf("there is no commit %s", commit)
	}
	at := from
	if from == "" { // the branch begins with it
		at = strings.Repeat("0", len(to))
		out, err := g.RunInput(ctx, nil, "hash-object", "-t", "tree", "-w", "--stdin")
		if err != nil {
			return err
		}
		from = strings.TrimSpace(string(out)) // a tree of nothing, which index and files come from
	} else {
		if has, err := g.IsAncestor(ctx, to, from); err != nil || has {
			return err
		}
		if behind, err := g.IsAncestor(ctx, from, to); err != nil || !behind {
			return errors.Join(err, fmt.Errorf("%w: %s is at %s, which is not in the history of %s", ErrMoved, branch, from, to))
		}
	}
	h, err := g.hold(ctx, "HEAD", to, at, reason)
	if err != nil {
		return movedError(err)
	}
	defer func() { _ = h.end() }() // where nothing was committed nothing has moved
	if on, err := g.Branch(ctx); err != nil || on != branch {
		return errors.Join(fmt.Errorf("%w: the checkout is on %q by now, and was on %q", ErrMoved, on, branch), err)
	}
	if merging, err := g.Merging(ctx); err != nil || merging {
		return errors.Join(errors.New("a merge was begun in the checkout, and not ended: end it (git commit), or take it back (git merge --abort)"), err)
	}
	// Files that were touched are not taken for changed ones; that others are changed is no error.
	var failed *Error
	if _, err := g.Run(ctx, "update-index", "--refresh"); err != nil && (!errors.As(err, &failed) || failed.Code != 1 || failed.Lock != "") {
		return err
	}
	why, err := g.inTheWay(ctx, from, to)
	if err == nil && why != "" {
		err = fmt.Errorf("%s is in the way: it is in no commit, and would be written over; move it elsewhere", why)
	}
	if err != nil {
		return err
	}
	if err := g.step(ctx, from, to); err != nil {
		return err
	}
	err = g.o.Disk.Step(durable.OpRun, "git update-ref commit")
	if err == nil {
		err = h.say("commit")
	}
	if err == nil {
		return nil
	}
	_ = h.end()
	if back := g.step(context.WithoutCancel(ctx), to, from); back != nil {
		err = errors.Join(err, fmt.Errorf("index and files of the checkout are as %s has them, and could not be taken back: `git reset --merge` does that (%w)", to, back))
	}
	return movedError(err)
}

// step takes the index and the files from one commit's to another's.
func (g *Git) step(ctx context.Context, from, to string) error {
	_, err := g.Run(ctx, "read-tree", "-m", "-u", from, to)
	return err
}

// inTheWay is a file that no commit has and that git would write over on the way from one
// commit to another. Of those that it ignores it asks nobody (since 2.34), and just they are
// what people have nowhere else, such as keys.
func (g *Git) inTheWay(ctx context.Context, from, to string) (string, error) {
	out, err := g.Run(ctx, "diff", "--name-status", "-z", "--no-ext-diff", "--no-renames", "--diff-filter=AD", from, to)
	if err != nil {
		return "", err
	}
	var added []string
	goes := map[string]bool{}
	for list := splitNUL(out); len(list) > 1; list = list[2:] {
		if list[0] == "A" {
			added = append(added, list[1])
		} else {
			goes[list[1]] = true
		}
	}
	if len(added) == 0 {
		return "", nil
	}
	line, err := g.Run(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	top := strings.TrimSuffix(string(line), "\n")
	isDir := map[string]bool{".": true}
	var there []string
	for _, name := range added {
		for dir := path.Dir(name); !isDir[dir]; dir = path.Dir(dir) {
			fi, err := os.Lstat(filepath.Join(top, dir))
			if err == nil && !fi.IsDir() && !goes[dir] {
				return dir, nil
			}
			isDir[dir] = err == nil && fi.IsDir()
		}
		if _, err := os.Lstat(filepath.Join(top, name)); err == nil {
			there = append(there, name)
		}
	}
	for some := range slices.Chunk(there, 200) {
		out, err := g.Run(ctx, append([]string{"ls-files", "--others", "-z", "--full-name", "--"}, literal(some)...)...)
		if err != nil {
			return "", err
		}
		if list := splitNUL(out); len(list) > 0 {
			return list[0], nil
		}
	}
	return "", nil
}

// held is a ref that is about to be moved, and that nobody else can move until then.
type held struct {
	g          *Git
	ctx, bound context.Context
	cancel     context.CancelFunc
	cmd        *exec.Cmd
	args       []string
	in         io.WriteCloser
	out        *bufio.Reader
	said       *capped
	errOut     *capped
	over       bool
	err        error
}

// hold begins to move a ref that is at old. It is not moved before commit is said, and then
// nothing can stand against it any more but the disk.
func (g *Git) hold(ctx context.Context, ref, id, old, why string) (h *held, err error) {
	if g.err != nil {
		return nil, g.err
	}
	if g.o.Programs != nil {
		if err := g.o.Programs.Check(ctx, g); err != nil {
			return nil, err
		}
	}
	if err := g.o.Disk.Step(durable.OpRun, "git update-ref"); err != nil {
		return nil, err
	}
	h = &held{g: g, ctx: ctx, args: []string{"update-ref", "--create-reflog", "-m", why, "--stdin"}, said: &capped{max: 4096}, errOut: &capped{max: 4096}}
	h.bound, h.cancel = context.WithTimeout(ctx, g.o.Local)
	var start func() error
	h.cmd, start = g.command(h.bound, h.args)
	h.cmd.Stderr, h.cmd.WaitDelay = h.errOut, g.o.Local
	out, err := h.cmd.StdoutPipe()
	if err == nil {
		h.out = bufio.NewReader(out)
		h.in, err = h.cmd.StdinPipe()
	}
	if err == nil {
		err = start()
	}
	if err != nil {
		h.cancel()
		return nil, g.failed(ctx, h.bound, h.args, err, h.said, h.errOut)
	}
	for _, line := range []string{"start", fmt.Sprintf("update %s %s %s\nprepare", ref, id, old)} {
		if err := h.say(line); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// say gives git a command, and waits until that is done. Where it is not, git has ended.
func (h *held) say(command string) error {
	if _, err := io.WriteString(h.in, command+"\n"); err != nil {
		return h.end()
	}
	line, _ := h.out.ReadString('\n')
	_, _ = h.said.Write([]byte(line))
	if line != command[strings.LastIndexByte(command, '\n')+1:]+": ok\n" {
		return h.end()
	}
	return nil
}

// end ends git, which lets go of what it holds, and says why it did not do what it was told.
func (h *held) end() error {
	if h.over {
		return h.err
	}
	h.over = true
	_ = h.in.Close()
	err := h.cmd.Wait()
	if err == nil {
		err = errors.New("git ended before it had done that")
	}
	h.err = h.g.failed(h.ctx, h.bound, h.args, err, h.said, h.errOut)
	h.cancel()
	return h.err
}
