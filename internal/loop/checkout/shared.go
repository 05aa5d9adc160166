package checkout

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/git"
)

// Shared is what all worktrees of a repository share, so that who works in one of them can change
// it for all: branches, tags and the like, the stash, settings and hooks. It is read from files.
type Shared struct {
	refs    map[string]string
	stashed int
	config  string
	hooks   map[string][sha256.Size]byte
}

// sharedRefs are those of which a change is told: not copies of what a remote has, nor reprise's own.
var sharedRefs = []string{"refs/heads/", "refs/tags/", "refs/stash", "refs/replace/", "refs/notes/"}

// ReadShared reads what the worktrees of the repository share whose git directory it is.
func ReadShared(ctx context.Context, common string, o git.Options) (s Shared, err error) {
	if s.refs, err = git.NewBare(common, o).Refs(ctx, sharedRefs...); err != nil {
		return s, err
	}
	log, err := readOr(filepath.Join(common, "logs", "refs", "stash"))
	if err != nil {
		return s, err
	}
	s.stashed = bytes.Count(log, []byte("\n"))
	config, err := readOr(filepath.Join(common, "config"))
	if err != nil {
		return s, err
	}
	s.config = string(config)
	hooks, err := durable.ReadDir(filepath.Join(common, "hooks"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	s.hooks = map[string][sha256.Size]byte{}
	for _, h := range hooks {
		if strings.HasSuffix(h.Name(), ".sample") || h.IsDir() {
			continue
		}
		data, err := readOr(filepath.Join(common, "hooks", h.Name()))
		if err != nil {
			return s, err
		}
		s.hooks[h.Name()] = sha256.Sum256(data)
	}
	return s, nil
}

// readOr is a file, nothing where there is none.
func readOr(path string) ([]byte, error) {
	data, err := durable.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Change is one thing that has become of what worktrees share.
type Change struct {
	What string // in words, such as "the tag v1 was deleted (it was at 0123456789ab)"
	Ref  string // whole, "" for what is none
	// Name is what who did it has named: of a ref its short name, "stash", a key or a hook's name.
	Name string
	Made bool // a ref that was not there before: nothing is lost by that

	was, now string // values of a setting, a line each
}

// Runs says that a change is of a setting by which every git here runs a program that somebody
// chose, the person's own first of all, while the loop's runs none.
func (c Change) Runs() bool {
	switch c.Name {
	case "core.hookspath":
		return c.now != ""
	case "core.fsmonitor":
		v := strings.TrimSpace(c.now)
		return v != "" && v != "true" && v != "false"
	}
	return false
}

// PutBack has the setting be what it was, unless it is another one by now than when the change
// was seen. common is the git directory that worktrees share.
func (c Change) PutBack(ctx context.Context, g *git.Git, common string) error {
	file := filepath.Join(common, "config")
	read := func() (string, error) {
		text, err := readOr(file)
		if err != nil {
			return "", err
		}
		list, err := settings(ctx, g, string(text))
		return list[c.Name], err
	}
	is, err := read()
	switch {
	case err != nil:
		return err
	case is != c.now:
		return fmt.Errorf("the setting %s was changed again meanwhile", c.Name)
	}
	if _, err := g.Run(ctx, "config", "--file", file, "--unset-all", c.Name); err != nil {
		return err
	}
	for v := range strings.Lines(c.was) {
		if _, err := g.Run(ctx, "config", "--file", file, "--add", c.Name, strings.TrimSuffix(v, "\n")); err != nil {
			return err
		}
	}
	if is, err = read(); err == nil && is != c.was {
		err = fmt.Errorf("the setting %s did not become what it was", c.Name)
	}
	return err
}

// NamedIn says that a call of a run's tools, a line each, has git in it and the name of what has
// changed.
func (c Change) NamedIn(calls []byte) bool {
	for call := range bytes.Lines(calls) {
		if bytes.Contains(call, []byte("git")) && bytes.Contains(bytes.ToLower(call), bytes.ToLower([]byte(c.Name))) {
			return true
		}
	}
	return false
}

// Changed is how what worktrees share differs from what it was before, by name. g asks git how
// settings read, only where the file has changed.
func (s *Shared) Changed(ctx context.Context, g *git.Git, before *Shared) (list []Change, err error) {
	list = append(refsChanged(before.refs, s.refs), stashChanged(before, s)...)
	if s.config != before.config {
		was, err := settings(ctx, g, before.config)
		if err != nil {
			return nil, err
		}
		now, err := settings(ctx, g, s.config)
		if err != nil {
			return nil, err
		}
		list = append(list, settingsChanged(was, now)...)
	}
	for _, name := range names(before.hooks, s.hooks) {
		was, had := before.hooks[name]
		now, has := s.hooks[name]
		if word := changed(had, has, was != now); word != "" {
			list = append(list, Change{What: fmt.Sprintf("the hook %s was %s", name, word), Name: name})
		}
	}
	return list, nil
}

// changed is what has become of something in a word, "" for nothing.
func changed(had, has, differs bool) string {
	switch {
	case !had && has:
		return "made"
	case had && !has:
		return "removed"
	case had && differs:
		return "changed"
	}
	return ""
}

func names[V any](a, b map[string]V) []string {
	all := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(all)
	return slices.Compact(all)
}

func refsChanged(was, now map[string]string) (list []Change) {
	for _, ref := range names(was, now) {
		if ref == "refs/stash" {
			continue
		}
		a, b := was[ref], now[ref]
		c := Change{Ref: ref, Name: ref[strings.IndexByte(ref[len("refs/"):], '/')+len("refs/")+1:], Made: a == ""}
		kind := map[string]string{"heads": "branch", "tags": "tag", "replace": "replacement of", "notes": "notes"}[strings.Split(ref, "/")[1]]
		switch {
		case a == b:
			continue
		case a == "":
			c.What = fmt.Sprintf("the %s %s was made, at %.12s", kind, c.Name, b)
		case b == "":
			c.What = fmt.Sprintf("the %s %s was deleted (it was at %.12s)", kind, c.Name, a)
		default:
			c.What = fmt.Sprintf("the %s %s was moved from %.12s to %.12s", kind, c.Name, a, b)
		}
		list = append(list, c)
	}
	return list
}

func stashChanged(was, now *Shared) []Change {
	before, after := was.refs["refs/stash"], now.refs["refs/stash"]
	if before == after {
		return nil
	}
	c := Change{Ref: "refs/stash", Name: "stash"}
	switch {
	case now.stashed > was.stashed:
		c.What = "something was put on the stash, which all worktrees share"
	case now.stashed < was.stashed:
		c.What = fmt.Sprintf("something was taken off the stash, which all worktrees share (its first entry was %.12s)", before)
	default:
		c.What = fmt.Sprintf("the stash, which all worktrees share, is another one (its first entry was %.12s)", before)
	}
	return []Change{c}
}

// settings are those of a file of settings: keys, with all values that each has.
func settings(ctx context.Context, g *git.Git, text string) (map[string]string, error) {
	out, err := g.RunInput(ctx, []byte(text), "config", "--file=-", "--null", "--list")
	if err != nil {
		return nil, err
	}
	list := map[string]string{}
	for rec := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		key, value, _ := strings.Cut(rec, "\n")
		list[key] += value + "\n"
	}
	return list, nil
}

func settingsChanged(was, now map[string]string) (list []Change) {
	for _, key := range names(was, now) {
		a, had := was[key]
		b, has := now[key]
		word := changed(had, has, a != b)
		// Git writes these itself, where a branch gets a remote one and a submodule is used.
		if word == "" || strings.HasPrefix(key, "branch.") || strings.HasPrefix(key, "submodule.") {
			continue
		}
		what := fmt.Sprintf("the setting %s of the repository was %s", key, word)
		if v := strings.TrimSpace(b); v == "true" || v == "false" { // others may be nobody's to see
			what = fmt.Sprintf("the setting %s of the repository was set to %s", key, v)
		}
		list = append(list, Change{What: what, Name: key, was: a, now: b})
	}
	return list
}
