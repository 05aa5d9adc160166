package staterepo

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Step is a commit of an agent's state, or of what all agents share.
type Step struct {
	Commit  string    `json:"commit"`
	By      string    `json:"by"`
	Time    time.Time `json:"time"`
	Message string    `json:"message"` // its first line
	Parents []string  `json:"parents,omitempty"`
	Files   []string  `json:"files,omitempty"` // that it changed, against its first parent
}

// stepFormat is a commit in one record: its fields are apart by NUL, and a record ends
// with two of them before the names of its files.
const stepFormat = "--format=%x01%H%x00%P%x00%an%x00%at%x00%s%x00"

// History lists the commits of an agent's state, of what all share with "", the newest
// first: at most so many, beginning with the commit from where that is not "". It is
// the branch's own line: what a merge brought in is one step. Agents of other
// machines are as they were fetched.
func (r *Repo) History(ctx context.Context, agent, from string, most int) ([]Step, error) {
	tip, err := r.tipOf(ctx, agent)
	if err != nil || tip == "" {
		return nil, err
	}
	if from != "" {
		in := isCommit(from)
		if in {
			in, err = r.git.IsAncestor(ctx, from, tip)
		}
		if err != nil || !in {
			return nil, fmt.Errorf("%w: no commit %.20q in that history", ErrUnknown, from)
		}
		tip = from
	}
	list, err := r.steps(ctx, tip, most)
	if err != nil {
		return nil, fmt.Errorf("read the history of the state: %w", err)
	}
	return list, nil
}

func isCommit(s string) bool {
	return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == ""
}

// tipOf is the commit that an agent's state, or with "" what all share, is at.
func (r *Repo) tipOf(ctx context.Context, agent string) (string, error) {
	if !r.Exists() {
		return "", nil
	}
	if agent == "" {
		refs, err := r.git.Refs(ctx, heads+GlobalBranch)
		return refs[heads+GlobalBranch], err
	}
	agents, err := r.Agents(ctx)
	if err != nil {
		return "", err
	}
	for i := range agents {
		if a := &agents[i]; a.Name == agent {
			err := r.follow(ctx, a)
			return a.Commit, err
		}
	}
	return "", fmt.Errorf("%w: %q", ErrNoAgent, agent)
}

// steps are a commit and those before it on its branch's own line, at most so many.
func (r *Repo) steps(ctx context.Context, from string, most int) ([]Step, error) {
	out, err := r.git.Run(ctx, "log", "--first-parent", "-m", "--name-only", "-z", "--no-renames", "--no-textconv", "--no-ext-diff", stepFormat, "-n", strconv.Itoa(most), from, "--")
	if err != nil {
		return nil, err
	}
	return stepsOf(out), nil
}

func stepsOf(out []byte) []Step {
	var list []Step
	for rec := range bytes.SplitSeq(out, []byte{1}) {
		f := strings.Split(strings.TrimRight(string(rec), "\x00\n"), "\x00")
		if len(f) < 5 {
			continue // what is before the first
		}
		s := Step{Commit: f[0], Parents: strings.Fields(f[1]), By: f[2], Message: f[4]}
		if sec, err := strconv.ParseInt(f[3], 10, 64); err == nil {
			s.Time = time.Unix(sec, 0).UTC()
		}
		for _, name := range f[5:] {
			if name = strings.TrimLeft(name, "\n"); name != "" {
				s.Files = append(s.Files, name)
			}
		}
		list = append(list, s)
	}
	return list
}

// Diff is a commit of the state repository with what it changed, against its first
// parent, as a unified diff.
func (r *Repo) Diff(ctx context.Context, commit string) (Step, string, error) {
	if !r.Exists() || !isCommit(commit) {
		return Step{}, "", fmt.Errorf("%w: no commit %.20q", ErrUnknown, commit)
	}
	steps, err := r.steps(ctx, commit, 1)
	if err != nil || len(steps) != 1 {
		return Step{}, "", fmt.Errorf("%w: no commit %s", ErrUnknown, commit)
	}
	args := []string{"diff-tree", "-p", "-r", "--no-commit-id", "--root", "--no-renames", "--no-textconv", "--no-ext-diff"}
	if p := steps[0].Parents; len(p) > 0 {
		args = append(args, p[0])
	}
	diff, err := r.git.Run(ctx, append(args, commit, "--")...)
	if err != nil {
		return Step{}, "", fmt.Errorf("compare a commit of the state with the one before it: %w", err)
	}
	return steps[0], string(diff), nil
}
