package git

import (
	"context"
	"errors"
	"path/filepath"
)

// ErrNothingToCommit says that none of the files differs from the last commit.
var ErrNothingToCommit = errors.New("nothing to commit")

// CommitOnly commits some files of the user's code as they are on disk, and nothing
// else: what the user has staged stays staged and is not in the commit. Their hooks
// run and their signing is done. Files that are gone are committed as removed; those
// that git ignores are left out. paths are relative to the Git's directory, which is
// the top of the checkout. It returns the commit's id; the error is [ErrNothingToCommit] where nothing differs.
//
// git's own --only makes the commit from an index of its own, which begins as the
// last commit; new files have to be known to the user's index for that, without
// their content (add --intent-to-add), and are forgotten there when it fails.
func (g *Git) CommitOnly(ctx context.Context, message string, paths []string) (id string, err error) {
	u := g.AsUser()
	out, err := u.Run(ctx, append([]string{"status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--"}, literal(paths)...)...)
	if err != nil {
		return "", err
	}
	var changed, fresh []string
	for _, line := range splitNUL(out) {
		if len(line) < 4 {
			continue
		}
		changed = append(changed, ":(top,literal)"+line[3:])
		if line[:2] == "??" {
			fresh = append(fresh, ":(top,literal)"+line[3:])
		}
	}
	if len(changed) == 0 {
		return "", ErrNothingToCommit
	}
	before, _ := u.Resolve(ctx, "HEAD") // none before the first commit
	if len(fresh) > 0 {
		if _, err := u.Run(ctx, append([]string{"add", "--intent-to-add", "--"}, fresh...)...); err != nil {
			return "", err
		}
		defer func() {
			if err != nil {
				_, _ = u.Run(context.WithoutCancel(ctx), append([]string{"rm", "--cached", "--quiet", "--ignore-unmatch", "--"}, fresh...)...)
			}
		}()
	}
	// Hooks and signing may take their time.
	if _, err := u.run(ctx, g.o.Remote, []byte(message), append([]string{"commit", "--quiet", "--only", "--file=-", "--"}, changed...)...); err != nil {
		return u.madeSince(context.WithoutCancel(ctx), before, changed, err)
	}
	return u.Resolve(ctx, "HEAD")
}

// ResetIndex has the user's index hold for the files at paths, named as for
// [Git.CommitOnly], what the last commit holds of them.
func (g *Git) ResetIndex(ctx context.Context, paths []string) error {
	_, err := g.AsUser().Run(ctx, append([]string{"reset", "--quiet", "--"}, literal(paths)...)...)
	return err
}

// literal are paths from the top of a checkout as git takes them for no pattern.
func literal(paths []string) []string {
	out := make([]string, 0, len(paths))
	for _, p := range paths {
		out = append(out, ":(top,literal)"+filepath.ToSlash(p))
	}
	return out
}

// madeSince is the commit that a git made before it was cut off, as in a hook that comes
// after it; where there is none, the error that it ended with.
func (g *Git) madeSince(ctx context.Context, before string, paths []string, failed error) (string, error) {
	var e *Error
	if errors.As(failed, &e) && e.Code >= 0 {
		return "", failed // it ended by itself
	}
	id, err := g.Resolve(ctx, "HEAD")
	if err != nil || id == before {
		return "", failed
	}
	if _, err := g.Run(ctx, append([]string{"diff", "--quiet", "HEAD", "--"}, paths...)...); err != nil {
		return "", failed // somebody else's
	}
	// It may have been cut off before it wrote the index.
	if _, err := g.Run(ctx, append([]string{"reset", "--quiet", "--"}, paths...)...); err != nil {
		return "", err
	}
	return id, nil
}
