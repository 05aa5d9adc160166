package setup

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is put into a client's instructions file goes with all else, whichever of its files
// the client keeps together, and a client that has no such file gets the rest.
func TestInstructionsGoWithTheRest(t *testing.T) {
	for _, client := range HookClients() {
		for _, scope := range []string{User, Project} {
			for _, had := range []string{"", "# Mine\n"} {
				s := newSetup(t)
				a := All{Request: Request{Client: client, Scope: scope, Program: "/bin/reprise", Instructions: true}, HookProgram: "/bin/reprise-hook", Skill: "x", Commands: true}
				doc := ""
				if slices.Contains(Scopes(client), scope) {
					target, err := Locate(s.Where, client, scope)
					if err != nil {
						t.Fatal(err)
					}
					doc = target.Doc
				}
				if doc != "" && had != "" {
					put(t, doc, had)
				}
				changes, err := s.InstallAll(t.Context(), a)
				if err != nil {
					t.Errorf("%s, scope %s: %v", client, scope, err)
					continue
				}
				wrote := slices.ContainsFunc(changes, func(c Change) bool { return c.What == "instructions" })
				if wrote != (doc != "") {
					t.Errorf("%s, scope %s: the section was written: %t; its instructions file is %q", client, scope, wrote, doc)
				}
				if _, err := s.RemoveAll(t.Context(), a); err != nil {
					t.Errorf("%s, scope %s: %v", client, scope, err)
				}
				if doc == "" {
					continue
				}
				left, err := os.ReadFile(doc)
				if had == "" && !os.IsNotExist(err) || had != "" && string(left) != had {
					t.Errorf("%s, scope %s: %s held %q before, and %q (%v) afterwards", client, scope, doc, had, left, err)
				}
			}
		}
	}
}

// A settings file that cannot be read hides no other client's hooks.
func TestInstalledBesideABrokenFile(t *testing.T) {
	s := newSetup(t)
	for _, client := range HookClients() {
		a := All{Request: Request{Client: client, Scope: User, Program: "/bin/reprise"}, HookProgram: "/bin/reprise-hook"}
		if _, err := s.InstallAll(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := s.Installed()
	if err != nil || len(whole) != len(HookClients()) {
		t.Fatalf("%d installed, %v", len(whole), err)
	}
	put(t, whole[0].File, `{"theme": "dark",`)
	rest, err := s.Installed()
	if err == nil || len(rest) != len(whole)-1 {
		t.Errorf("beside a broken file %d of %d are listed, and the error is %v", len(rest), len(whole), err)
	}
}

// An entry of that name that runs another program is its user's: what setup put in its place
// goes, and it comes back. One that an earlier setup made, of which nothing is noted any
// more, does not.
func TestAnotherProgramsEntryComesBack(t *testing.T) {
	for _, client := range HookClients() {
		for command, back := range map[string]bool{"mine": true, "/elsewhere/reprise": false} {
			s := newSetup(t)
			a := All{Request: Request{Client: client, Program: "/bin/reprise"}, HookProgram: "/bin/reprise-hook"}
			target, err := Locate(s.Where, client, User)
			if err != nil {
				t.Fatal(err)
			}
			had := `{"mcpServers":{"reprise":{"command":"` + command + `","args":["mcp"]}}}`
			if target.TOML {
				had = "[mcp_servers.reprise]\ncommand = \"" + command + "\"\nargs = [\"mcp\"]\n"
			}
			put(t, target.File, had)
			if _, err := s.InstallAll(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			if _, err := s.RemoveAll(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			left, err := os.ReadFile(target.File)
			if err != nil || (string(left) == had) != back || !back && strings.Contains(string(left), command) {
				t.Errorf("%s, which ran %s: %q is left (%v)", client, command, left, err)
			}
		}
	}
}

// In a home that was copied to another place nothing is known of what is there: what is as it
// would be written goes, the rest is named, and of the settings no empty lists stay.
func TestRemovedWhereNothingIsKnown(t *testing.T) {
	for _, client := range HookClients() {
		s := newSetup(t)
		a := All{Request: Request{Client: client, Program: "/bin/reprise"}, HookProgram: "/bin/reprise-hook", Skill: "of that home", Commands: true}
		home, err := s.Env.Home()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.InstallAll(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(s.Paths.Data, "clients")); err != nil {
			t.Fatal(err)
		}
		a.Skill = "of this home"
		changes, err := s.RemoveAll(t.Context(), a)
		if err != nil {
			t.Errorf("%s: %v", client, err)
		}
		left := 0
		for _, c := range changes {
			left += len(c.Warnings)
		}
		if left != 1 {
			t.Errorf("%s: %d files are named that stay, want the skill: %+v", client, left, changes)
		}
		err = filepath.WalkDir(home, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.Contains(p, ".bak-") {
				if d != nil && d.IsDir() && strings.Contains(p, "reprise-todo") {
					t.Errorf("%s: %s is left", client, p)
				}
				return err
			}
			switch text := get(t, p); {
			case filepath.Base(p) == "SKILL.md" && text == "of that home":
			case strings.TrimSpace(text) == "", strings.TrimSpace(text) == "{}", strings.Join(strings.Fields(text), "") == `{"version":1}`:
			default:
				t.Errorf("%s: %s is left: %q", client, p, text)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
