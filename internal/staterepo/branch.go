package staterepo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/memory"
)

// BranchContext is what is known of a branch of the code. It is a file on global,
// see [BranchFile], and so survives what is done to the branch's commits.
type BranchContext struct {
	Branch  string    `json:"branch"`
	Created time.Time `json:"created_at"`
	Agent   string    `json:"agent,omitempty"`  // who was last on it
	Status  string    `json:"status,omitempty"` // as an entry's
	Was     []string  `json:"was,omitempty"`    // names that it had before
	File    string    `json:"file"`             // on global
	Text    string    `json:"text"`             // below the front matter
}

const branchDir = "branches"

// BranchFile is the file of a branch of the code, on global with slashes:
// branches/NAME.md, and where the name has characters that a file's cannot have on
// every system, these as %XX.
func BranchFile(branch string) string {
	parts := strings.Split(branch, "/")
	for i, p := range parts {
		var b strings.Builder
		for _, c := range []byte(p) {
			if c < ' ' || strings.IndexByte(`<>:"|?*\%`, c) >= 0 {
				fmt.Fprintf(&b, "%%%02X", c)
				continue
			}
			b.WriteByte(c)
		}
		p = b.String()
		if i < len(parts)-1 && strings.HasSuffix(p, ".md") {
			p = strings.TrimSuffix(p, ".md") + "%2Emd" // else a directory where another branch has its file
		}
		if p == "" || p == "." || p == ".." { // of no branch of git's, but of what somebody asks for
			p = "%" + strings.Repeat("%2E", len(p))
		} else if i < len(parts)-1 && !portable(p) || i == len(parts)-1 && !portable(p+".md") { // CON, or a dot at the end
			last := len(p) - 1
			p = fmt.Sprintf("%%%02X", p[0]) + p[1:max(1, last)] + fmt.Sprintf("%%%02X", p[last])
		}
		parts[i] = p
	}
	return path.Join(branchDir, path.Join(parts...)) + ".md"
}

// Branches lists what is known of branches of the code, in order of their files.
func (r *Repo) Branches() ([]BranchContext, error) {
	d, err := r.o.Disk.OpenDir(r.Global().Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var out []BranchContext
	todo := []string{branchDir}
	for len(todo) > 0 {
		dir := todo[0]
		todo = todo[1:]
		list, err := d.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range list {
			name := path.Join(dir, e.Name())
			switch {
			case e.IsDir():
				todo = append(todo, name)
			case strings.HasSuffix(name, ".md") && ours(name):
				data, err := d.ReadFile(name)
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return nil, err
				}
				out = append(out, parseBranch(name, data))
			}
		}
	}
	slices.SortFunc(out, func(a, b BranchContext) int { return cmp.Compare(a.File, b.File) })
	return out, nil
}

func parseBranch(file string, data []byte) BranchContext {
	b := BranchContext{File: file, Branch: strings.TrimSuffix(strings.TrimPrefix(file, branchDir+"/"), ".md")}
	head, body := branchHead(data)
	for line := range strings.Lines(head) {
		key, val, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		val = strings.Trim(strings.TrimSpace(val), `"'`)
		switch key {
		case "branch":
			b.Branch = cmp.Or(val, b.Branch)
		case "created_at":
			b.Created, _ = time.Parse(time.RFC3339, val) // by hand it may be anything
		case "agent":
			b.Agent = val
		case "status":
			b.Status = val
		case "was":
			for w := range strings.SplitSeq(strings.Trim(val, "[]"), ",") {
				if w = strings.Trim(strings.TrimSpace(w), `"'`); w != "" {
					b.Was = append(b.Was, w)
				}
			}
		}
	}
	b.Text = strings.TrimSpace(body)
	return b
}

// branchHead parts the front matter from what stands below it.
func branchHead(data []byte) (head, body string) {
	rest, ok := bytes.CutPrefix(data, []byte("---\n"))
	if !ok {
		return "", string(data)
	}
	h, b, ok := bytes.Cut(rest, []byte("\n---\n"))
	if !ok {
		return "", string(data)
	}
	return string(h), string(b)
}

// BranchPlaceholder stands in a new branch's file until somebody says it.
const BranchPlaceholder = "What this branch is for."

const branchSeed = `
## Context

` + BranchPlaceholder + `

## Plan

## Key decisions
`

// Switched notes that an agent works on a branch of the code: the branch's file is
// made where there is none, or moves along where the branch was renamed, which the
// code's reflog tells. code is the code's checkout; agent may be "". It says what
// is known, and whether the file is new.
func (r *Repo) Switched(ctx context.Context, access memory.Access, code *git.Git, branch, agent string) (b BranchContext, made bool, err error) {
	if err := access.MayWrite(); err != nil {
		return b, false, err
	}
	if branch == "" || strings.Contains(branch, "..") {
		return b, false, fmt.Errorf("note the branch: %q is no branch", branch)
	}
	t := r.Global()
	d, c, err := t.open(ctx)
	if err != nil {
		return b, false, fmt.Errorf("note the branch: %w", err)
	}
	defer d.Close()
	defer c.Abort()
	b, made, err = t.switched(ctx, d, c, code, branch, agent)
	if err != nil {
		return b, false, fmt.Errorf("note the branch %s: %w", branch, err)
	}
	if made {
		t.wrote(b.File)
		t.changed(ctx, Change{Op: "branch", Title: branch, Files: []string{b.File}})
	}
	return b, made, nil
}

func (t *Tree) switched(ctx context.Context, d *durable.Dir, c *durable.Change, code *git.Git, branch, agent string) (BranchContext, bool, error) {
	file := BranchFile(branch)
	data, err := d.ReadFile(file)
	switch {
	case err == nil:
		b := parseBranch(file, data)
		if agent == "" || b.Agent == agent || !bytes.HasPrefix(data, []byte("---\n")) {
			return b, false, nil
		}
		b.Agent = agent
		next := []byte(withHead(data, "agent", agent))
		if err := d.WriteFile(file, next, filePerm); err != nil {
			return b, false, err
		}
		_, err = t.save(ctx, d, agent, "branch: "+branch)
		return b, false, err
	case !errors.Is(err, fs.ErrNotExist):
		return BranchContext{}, false, err
	}
	old, err := renamedFrom(ctx, code, branch)
	if err != nil {
		return BranchContext{}, false, err
	}
	for _, name := range old {
		was, err := d.ReadFile(BranchFile(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return BranchContext{}, false, err
		}
		b := parseBranch(BranchFile(name), was)
		next := withHead(withHead(was, "branch", branch), "was", "["+strings.Join(append(b.Was, name), ", ")+"]")
		if agent != "" {
			next = withHead(next, "agent", agent)
		}
		c.Write(file, next, filePerm)
		c.Remove(BranchFile(name))
		if err := c.Commit(); err != nil {
			return b, false, err
		}
		_, err = t.Save(ctx, agent, "branch: "+name+" is now "+branch)
		return parseBranch(file, next), false, err
	}
	var head strings.Builder
	fmt.Fprintf(&head, "---\nbranch: %s\ncreated_at: %s\n", branch, t.r.o.Now().UTC().Format(time.RFC3339))
	if agent != "" {
		fmt.Fprintf(&head, "agent: %s\n", agent)
	}
	text := []byte(head.String() + "status: in_progress\n---\n" + branchSeed)
	if err := d.MkdirAll(path.Dir(file), dirPerm); err != nil {
		return BranchContext{}, false, err
	}
	if err := d.WriteFile(file, text, filePerm); err != nil {
		return BranchContext{}, false, err
	}
	_, err = t.save(ctx, d, agent, "branch: "+branch)
	return parseBranch(file, text), true, err
}

// withHead sets one key of a file's front matter, which is made where there is none.
func withHead(data []byte, key, val string) []byte {
	head, body := branchHead(data)
	if head == "" && !bytes.HasPrefix(data, []byte("---\n")) {
		body = "\n" + strings.TrimLeft(string(data), "\n")
	}
	var out strings.Builder
	done := false
	for line := range strings.Lines(head) {
		line = strings.TrimRight(line, "\n")
		if k, _, _ := strings.Cut(line, ":"); k == key {
			line, done = key+": "+val, true
		}
		out.WriteString(line + "\n")
	}
	if !done {
		out.WriteString(key + ": " + val + "\n")
	}
	return []byte("---\n" + out.String() + "---\n" + body)
}

// renamedFrom are the names that a branch of the code had before, the newest
// first, as its reflog tells; those that are branches again are left out.
func renamedFrom(ctx context.Context, code *git.Git, branch string) ([]string, error) {
	if code == nil {
		return nil, nil
	}
	const ref = "refs/heads/"
	out, err := code.Run(ctx, "reflog", "show", "--format=%gs", ref+branch, "--")
	var e *git.Error
	if errors.As(err, &e) {
		return nil, nil //nolint:nilerr // it has no commit yet, or no reflog
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "Branch: renamed "+ref)
		from, _, ok2 := strings.Cut(rest, " to "+ref)
		if ok && ok2 && from != branch && !slices.Contains(names, from) {
			names = append(names, from)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		id, rerr := code.Resolve(ctx, ref+name)
		if rerr != nil {
			err = rerr
		}
		return id != ""
	}), err
}

// WriteBranch replaces what stands below the front matter of a branch's file, or
// with a status sets that.
func (r *Repo) WriteBranch(ctx context.Context, access memory.Access, branch, text, status string) (BranchContext, error) {
	if err := access.MayWrite(); err != nil {
		return BranchContext{}, err
	}
	if status != "" && !slices.Contains(Statuses(), status) {
		return BranchContext{}, fmt.Errorf("write about branch %s: status %q is none; there are %s", branch, status, strings.Join(Statuses(), ", "))
	}
	t := r.Global()
	d, c, err := t.open(ctx)
	if err != nil {
		return BranchContext{}, fmt.Errorf("write about branch %s: %w", branch, err)
	}
	defer d.Close()
	defer c.Abort()
	file := BranchFile(branch)
	data, err := d.ReadFile(file)
	if err != nil {
		return BranchContext{}, fmt.Errorf("write about branch %s: %w", branch, err)
	}
	if text != "" {
		head, _ := branchHead(data)
		data = []byte("---\n" + strings.TrimRight(head, "\n") + "\n---\n\n" + strings.TrimSpace(text) + "\n")
	}
	if status != "" {
		data = withHead(data, "status", status)
	}
	if err := d.WriteFile(file, data, filePerm); err != nil {
		return BranchContext{}, fmt.Errorf("write about branch %s: %w", branch, err)
	}
	if _, err := t.save(ctx, d, "", "branch: "+branch); err != nil {
		return BranchContext{}, fmt.Errorf("write about branch %s: %w", branch, err)
	}
	t.wrote(file)
	return parseBranch(file, data), nil
}
