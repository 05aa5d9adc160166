package setup

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Where nothing was before, nothing is afterwards: no directory that was made stays because
// of its files one was put in first and another taken out last. Of reprise's own notes of it
// one lock is left, which is never removed, and not one for each file.
func TestNothingIsLeft(t *testing.T) {
	tree := func(s Setup, dirs ...string) (out []string) {
		for _, dir := range dirs {
			err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				if !strings.HasPrefix(s.Paths.Data, p) && !strings.HasPrefix(p, s.Paths.Data) {
					out = append(out, p)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	for _, client := range HookClients() {
		for _, scope := range []string{User, Project} {
			for _, doc := range []bool{false, true} {
				s := newSetup(t)
				home, err := s.Env.Home()
				if err != nil {
					t.Fatal(err)
				}
				before := tree(s, home, s.Env.Dir)
				a := All{Request: Request{Client: client, Scope: scope, Program: "/bin/reprise", Instructions: doc}, HookProgram: "/bin/reprise-hook", Skill: "x", Commands: true}
				made, err := s.InstallAll(t.Context(), a)
				if err != nil {
					t.Fatalf("%s, scope %s: %v", client, scope, err)
				}
				if len(made) == 0 || slices.Equal(tree(s, home, s.Env.Dir), before) {
					t.Errorf("%s, scope %s: nothing was put in", client, scope)
				}
				if _, err := s.RemoveAll(t.Context(), a); err != nil {
					t.Fatalf("%s, scope %s: %v", client, scope, err)
				}
				if after := tree(s, home, s.Env.Dir); !slices.Equal(after, before) {
					t.Errorf("%s, scope %s, instructions %t: before there was %q, afterwards %q", client, scope, doc, before, after)
				}
				notes, err := filepath.Glob(filepath.Join(s.Paths.Data, "clients", "*"))
				if err != nil || len(notes) != 1 || filepath.Base(notes[0]) != "lock" {
					t.Errorf("%s, scope %s: of the notes %q are left, %v", client, scope, notes, err)
				}
			}
		}
	}
}
