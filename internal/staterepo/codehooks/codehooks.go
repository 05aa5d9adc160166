// Package codehooks puts git's hooks into the code's repository: small scripts that
// start reprise in the background and give the user's own hook of that name, if there is
// one, its turn and the last word. Git waits for neither reprise nor its answer.
//
// It writes into the hooks directory of that repository, or one of ours beside it, and
// three settings of its configuration. It takes no lock, for one would stay in the user's
// repository for good; two commands at once make one of them fail at worst.
package codehooks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/shellword"
)

const (
	hookMark   = "# Written by reprise; `reprise state hooks remove` takes it out.\n"
	hookAside  = ".before-reprise"         // the user's hook, while ours has its name
	hooksOwn   = "reprise-hooks"           // the directory of hooks, where the user's lie elsewhere
	hooksWere  = "reprise.hookspathbefore" // setting: the core.hooksPath that ours took the place of
	hooksLocal = "reprise.hookspathlocal"  // as it stood in the repository's own configuration, if it did
)

// Names are the hooks that reprise has a use for.
func Names() []string { return []string{"post-checkout", "post-commit"} }

// State is how it stands about one hook of the code's repository.
type State struct {
	Name      string `json:"name"`
	File      string `json:"file"`
	Installed bool   `json:"installed"`
	Chained   string `json:"chained,omitempty"` // the user's hook, which ours runs
	// Problem is set where something else took our place since.
	Problem string `json:"problem,omitempty"`
}

// Repo is the repository of the code.
type Repo struct {
	Dir  string // a directory within it
	Git  git.Options
	Disk durable.Disk
}

// hooks is where the hooks of a repository are.
type hooks struct {
	g      *git.Git
	disk   durable.Disk
	common string // the repository's directory
	theirs string // what core.hooksPath names, but for ours; "" = it is not set
	local  string // that value, as it stands in the repository's own configuration
	own    bool   // core.hooksPath names our directory
	noted  bool   // the settings of ours are there, in which that is written down
}

func (r Repo) hooks(ctx context.Context) (*hooks, error) {
	r.Git.Disk = r.Disk
	h := &hooks{g: git.New(r.Dir, r.Git).OfUser(), disk: r.Disk}
	out, err := h.g.Run(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return nil, fmt.Errorf("look for the code's repository: %w", err)
	}
	h.common = strings.TrimRight(string(out), "\r\n")
	get := func(args ...string) (string, error) {
		out, err := h.g.Run(ctx, append([]string{"config"}, args...)...)
		var e *git.Error
		if errors.As(err, &e) && e.Code == 1 {
			return "", nil
		}
		return strings.TrimRight(string(out), "\r\n"), err
	}
	// What was there before is written down first and forgotten last: by that what a
	// killed command has left is known.
	set, err := get("--local", "--null", "--get-regexp", `^(core\.hookspath|reprise\.hookspath.*)$`)
	if err != nil {
		return nil, fmt.Errorf("look for hooks: %w", err)
	}
	found := map[string]string{}
	for kv := range strings.SplitSeq(set, "\x00") {
		if key, val, ok := strings.Cut(kv, "\n"); ok {
			found[strings.ToLower(key)] = val
		}
	}
	_, were := found[hooksWere]
	_, local := found[hooksLocal]
	h.noted = were || local
	h.local = found["core.hookspath"]
	if h.own = samePathText(h.local, filepath.Join(h.common, hooksOwn)); h.own {
		h.theirs, h.local = found[hooksWere], found[hooksLocal]
		return h, nil
	}
	all, err := get("--show-scope", "--type=path", "--get-all", "core.hooksPath")
	if err != nil {
		return nil, fmt.Errorf("look for hooks: %w", err)
	}
	for line := range strings.Lines(all) { // the last one counts
		if scope, val, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "\t"); ok && scope != "command" { // that is ours
			h.theirs = val
		}
	}
	return h, nil
}

func samePathText(a, b string) bool {
	return a != "" && filepath.Clean(filepath.FromSlash(a)) == filepath.Clean(filepath.FromSlash(b))
}

// dir is where our scripts go: beside the user's, or in a directory of our own
// where core.hooksPath names one that other repositories share or that is tracked.
func (h *hooks) dir() string {
	if h.theirs == "" {
		return filepath.Join(h.common, "hooks")
	}
	return filepath.Join(h.common, hooksOwn)
}

// user is the user's hook of a name, as a path in a shell's quotes, and whether
// there is one now. Git takes a relative core.hooksPath from the top of the checkout,
// where it also starts hooks.
func (h *hooks) user(name string) string {
	if h.theirs == "" {
		return filepath.Join(h.common, "hooks", name+hookAside)
	}
	return filepath.Join(filepath.FromSlash(h.theirs), name)
}

// script is our hook of a name. program is what it starts, "" for one that only
// hands on to the user's.
func (h *hooks) script(name, program string) []byte {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n" + hookMark)
	if program != "" {
		run := "(" + shellword.Quoted(filepath.ToSlash(program)) + " state hooks run " + name + ` "$@" </dev/null >/dev/null 2>&1 &)` + "\n"
		if name == "post-checkout" {
			run = `[ "$3" = 1 ] && ` + run // not of files alone
		}
		b.WriteString(run)
	}
	user := shellword.Quoted(filepath.ToSlash(h.user(name)))
	b.WriteString("if [ -x " + user + " ]; then exec " + user + " \"$@\"; fi\nexit 0\n")
	return []byte(b.String())
}

func isOurHook(path string) (bool, error) {
	data, err := durable.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return strings.Contains(string(data[:min(len(data), 200)]), strings.TrimSuffix(hookMark, "\n")), err
}

// Install puts hooks into the repository, which start program. A hook of the user's stays and has its turn. What is installed
// already is brought up to date.
func (r Repo) Install(ctx context.Context, program string, names []string) ([]State, error) {
	h, err := r.hooks(ctx)
	if err != nil {
		return nil, fmt.Errorf("install hooks: %w", err)
	}
	if err := h.disk.MkdirAll(h.dir(), 0o755); err != nil {
		return nil, fmt.Errorf("install hooks: %w", err)
	}
	write := func(name, program string) error {
		at := filepath.Join(h.dir(), name)
		mine, err := isOurHook(at)
		if err != nil {
			return err
		}
		if err := h.sweep(at); err != nil {
			return err
		}
		if !mine && h.theirs == "" && exists(at) {
			if err := h.setAside(at); err != nil {
				return err
			}
		}
		return h.disk.WriteFile(at, h.script(name, program), 0o755)
	}
	for _, name := range names {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("install hooks: there is no use for %s", name)
		}
		if err := write(name, program); err != nil {
			return nil, fmt.Errorf("install hook %s: %w", name, err)
		}
	}
	if h.theirs != "" {
		if err := h.handOn(ctx, write); err != nil {
			return nil, fmt.Errorf("install hooks: %w", err)
		}
		if err := h.takeOver(ctx); err != nil {
			return nil, fmt.Errorf("install hooks: %w", err)
		}
	}
	return r.Look(ctx)
}

// sweep removes half-written files that a killed command has left of a hook.
func (h *hooks) sweep(at string) error {
	for _, path := range [...]string{at, at + hookAside} {
		if err := h.disk.RemoveTemps(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// setAside gives the user's hook a second name. It keeps the first one until ours
// takes that, so that a kill in between leaves git a hook. Only what is no plain file,
// such as a link, is moved.
func (h *hooks) setAside(at string) error {
	aside := at + hookAside
	fi, err := os.Lstat(at)
	if err != nil {
		return err
	}
	if exists(aside) && !sameHook(at, aside) {
		return fmt.Errorf("%s is there already, and so is %s: something took our place since; look at both, and keep one as %s", aside, at, filepath.Base(at))
	}
	if !fi.Mode().IsRegular() {
		return h.disk.Rename(at, aside)
	}
	data, err := durable.Read(at)
	if err != nil {
		return err
	}
	return h.disk.WriteFile(aside, data, fi.Mode().Perm())
}

// sameHook says that two names stand for the same script: a command that was killed
// has left both.
func sameHook(a, b string) bool {
	x, err := durable.Read(a)
	if err != nil {
		return false
	}
	y, err := durable.Read(b)
	return err == nil && string(x) == string(y)
}

// handOn makes scripts for the user's other hooks in the directory that
// core.hooksPath names: git will not look there while ours is named.
func (h *hooks) handOn(ctx context.Context, write func(name, program string) error) error {
	at := filepath.FromSlash(h.theirs)
	if !filepath.IsAbs(at) {
		top, err := h.g.Run(ctx, "rev-parse", "--show-toplevel")
		if err != nil {
			return err
		}
		at = filepath.Join(strings.TrimRight(string(top), "\r\n"), at)
	}
	list, err := durable.ReadDir(at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range list {
		if name := e.Name(); !e.IsDir() && isHookName(name) && !exists(filepath.Join(h.dir(), name)) {
			if err := write(name, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// isHookName says that git may look for a file of this name among hooks.
func isHookName(name string) bool {
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c == '-') {
			return false
		}
	}
	return name != "" && name != "fsmonitor-watchman"
}

func (h *hooks) takeOver(ctx context.Context) error {
	if h.own {
		return nil
	}
	if h.noted {
		if err := h.forgetNotes(ctx); err != nil { // they are of another time
			return err
		}
	}
	if h.local != "" {
		if _, err := h.g.Run(ctx, "config", "--local", hooksLocal, h.local); err != nil {
			return err
		}
	}
	if _, err := h.g.Run(ctx, "config", "--local", hooksWere, h.theirs); err != nil {
		return err
	}
	_, err := h.g.Run(ctx, "config", "--local", "core.hooksPath", filepath.ToSlash(filepath.Join(h.common, hooksOwn)))
	return err
}

// forgetNotes removes our settings, and with the section its heading.
func (h *hooks) forgetNotes(ctx context.Context) error {
	_, err := h.g.Run(ctx, "config", "--local", "--remove-section", "reprise")
	return err
}

// Remove takes our hooks out and leaves all as it was before.
func (r Repo) Remove(ctx context.Context) ([]State, error) {
	h, err := r.hooks(ctx)
	if err != nil {
		return nil, fmt.Errorf("remove hooks: %w", err)
	}
	if h.own {
		args := []string{"config", "--local", "core.hooksPath", h.local}
		if h.local == "" {
			args = []string{"config", "--local", "--unset", "core.hooksPath"}
		}
		if _, err := h.g.Run(ctx, args...); err != nil {
			return nil, fmt.Errorf("remove hooks: %w", err)
		}
	}
	if h.noted {
		if err := h.forgetNotes(ctx); err != nil {
			return nil, fmt.Errorf("remove hooks: %w", err)
		}
	}
	if err := h.disk.RemoveAll(filepath.Join(h.common, hooksOwn)); err != nil {
		return nil, fmt.Errorf("remove hooks: %w", err)
	}
	for _, name := range Names() {
		at := filepath.Join(h.common, "hooks", name)
		mine, err := isOurHook(at)
		if err == nil {
			err = h.sweep(at)
		}
		if err != nil {
			return nil, fmt.Errorf("remove hook %s: %w", name, err)
		}
		switch aside := exists(at + hookAside); {
		case aside && (mine || !exists(at) || sameHook(at, at+hookAside)): // or killed before ours was there
			err = h.disk.Rename(at+hookAside, at)
		case mine:
			err = h.disk.Remove(at)
		}
		if err != nil {
			return nil, fmt.Errorf("remove hook %s: %w", name, err)
		}
	}
	return r.Look(ctx)
}

// Look says which hooks are in the repository.
func (r Repo) Look(ctx context.Context) ([]State, error) {
	h, err := r.hooks(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at hooks: %w", err)
	}
	var out []State
	for _, name := range Names() {
		s := State{Name: name, File: filepath.Join(h.dir(), name)}
		if s.Installed, err = isOurHook(s.File); err != nil {
			return nil, fmt.Errorf("look at hook %s: %w", name, err)
		}
		if user := h.user(name); s.Installed && exists(user) {
			s.Chained = user
		}
		switch left := exists(filepath.Join(h.common, "hooks", name+hookAside)); {
		case left && !s.Installed && (!exists(s.File) || sameHook(s.File, s.File+hookAside)):
			s.Problem = "putting ours in was cut off; `reprise state hooks install` goes on, and remove takes it back"
		case left && !s.Installed:
			s.Problem = "another hook took the place of ours; the one from before is " + name + hookAside
		case s.Installed && h.theirs != "" && !h.own:
			s.Problem = "core.hooksPath names another directory since; `reprise state hooks install` puts it right"
		}
		out = append(out, s)
	}
	return out, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
