package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKindIsRight: a wrong kind sends a person to look in the wrong place.
func TestKindIsRight(t *testing.T) {
	for msg, want := range map[string]error{
		"fatal: Unable to create '/m/.git/index.lock': File exists.":                                                     ErrLocked,
		"fatal: cannot lock ref 'HEAD': Unable to create '/m/.git/HEAD.lock': File exists.\n\nAnother git process seems": ErrLocked,
		"fatal: Unable to create '/m/.git/index.lock': Permission denied":                                                nil,
		" ! [remote rejected] HEAD -> main (failed to update ref)":                                                       ErrRejected,
		" ! [remote rejected] HEAD -> main (pre-receive hook declined)":                                                  nil,
		"fatal: the receiving end does not support push options\nfatal: the remote end hung up unexpectedly":             nil,
		"warning: unable to access '/x': Is a directory\nfatal: bad config line 2 in file /h/.gitconfig":                 nil,
		"fatal: unable to access 'https://example.org/m.git/': Could not resolve host: example.org":                      ErrNetwork,
		"fatal: '/nope' does not appear to be a git repository\nfatal: Could not read from remote repository.":           ErrNetwork,
	} {
		if got := kindOf(msg); got != want {
			t.Errorf("%q: got %v, want %v", msg, got, want)
		}
	}
}

// Who runs into a lock of git's is told which file it is, who may hold it, and what to do.
func TestLockIsNamed(t *testing.T) {
	dir := t.TempDir()
	g := NewBare(dir, Options{Vars: vars()})
	if !g.Installed() {
		t.Skip("git is not here")
	}
	if err := g.InitBare(t.Context(), "trunk"); err != nil {
		t.Fatal(err)
	}
	empty, err := g.StoreTree(nil)
	if err != nil {
		t.Fatal(err)
	}
	who := Person{Name: "x", Email: "x@x", Time: time.Unix(1, 0)}
	id, err := g.StoreCommit(empty, nil, who, who, "x")
	if err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func(g *Git) error{
		"refs/heads/trunk.lock": func(g *Git) error { return g.MoveRef(t.Context(), "refs/heads/trunk", id, "", "x") },
		"config.lock":           func(g *Git) error { _, err := g.Run(t.Context(), "config", "x.y", "z"); return err },
		"packed-refs.lock":      func(g *Git) error { _, err := g.Run(t.Context(), "pack-refs", "--all"); return err },
	} {
		lock := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.WriteFile(lock, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for now, want := range map[bool]string{false: "remove that file if no git runs there", true: "once it is a minute old"} {
			o := Options{Vars: vars()}
			if now {
				o.Now = time.Now
			}
			var e *Error
			if err := do(NewBare(dir, o)); !errors.As(err, &e) || e.Lock != lock || e.Kind == nil || !strings.Contains(err.Error(), "git's lock "+lock+" is there, since 20") || !strings.HasSuffix(strings.TrimSuffix(err.Error(), " ("+ErrLocked.Error()+")"), want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
		if err := do(g); err != nil {
			t.Errorf("%s: without the lock: %v", name, err)
		}
	}
}
