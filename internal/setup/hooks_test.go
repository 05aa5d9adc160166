package setup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const hookBinary = "/opt/reprise/bin/reprise-hook"

func all(client, scope string) All {
	return All{Request: Request{Client: client, Scope: scope, Program: program}, HookProgram: hookBinary, Skill: "---\nname: reprise-memory\n---\n"}
}

// tree is every file under a directory with its bytes, and every directory, but
// for reprise's own data: there lock files stay.
func tree(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err != nil || p == dir {
				return err
			}
			if d.Name() == ".local" {
				return filepath.SkipDir
			}
			if d.IsDir() {
				out[p] = "directory"
				return nil
			}
			out[p] = get(t, p)
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return out
}

// Everything of every client in every scope: put in, found, nothing done by a
// second time, and not a byte or directory left of it after the removal.
func TestSetupLeavesNoTrace(t *testing.T) {
	for _, client := range HookClients() {
		for _, scope := range []string{User, Project} {
			t.Run(client+"/"+scope, func(t *testing.T) {
				s := newSetup(t)
				home := s.Env.Vars["HOME"]
				if err := os.MkdirAll(s.Root, 0o755); err != nil {
					t.Fatal(err)
				}
				before := tree(t, home, s.Root)
				dry := all(client, scope)
				dry.DryRun = true
				changes, err := s.InstallAll(t.Context(), dry)
				if err != nil || len(changes) == 0 {
					t.Fatalf("dry run: %+v, %v", changes, err)
				}
				if diff := cmp.Diff(before, tree(t, home, s.Root)); diff != "" {
					t.Fatalf("the dry run changed something: %s", diff)
				}
				if _, err = s.InstallAll(t.Context(), all(client, scope)); err != nil {
					t.Fatal(err)
				}
				file, err := s.HookFile(client, scope)
				if err != nil {
					t.Fatal(err)
				}
				hooks, err := FindHooks(file, client)
				if err != nil {
					t.Fatal(err)
				}
				var events []string
				for _, h := range hooks {
					events = append(events, h.Event)
					if want := hookBinary + " " + hookWord(client) + " " + h.Event; h.Command != want {
						t.Errorf("command %q, want %q", h.Command, want)
					}
				}
				if diff := cmp.Diff(HookEvents(client), events); diff != "" {
					t.Errorf("hooks: %s", diff)
				}
				installed := tree(t, home, s.Root)
				if changes, err = s.InstallAll(t.Context(), all(client, scope)); err != nil {
					t.Fatal(err)
				}
				for _, c := range changes {
					if c.Action != "unchanged" {
						t.Errorf("again: %+v", c)
					}
				}
				if diff := cmp.Diff(installed, tree(t, home, s.Root)); diff != "" {
					t.Errorf("the second time changed something: %s", diff)
				}
				if _, err = s.RemoveAll(t.Context(), all(client, scope)); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(before, tree(t, home, s.Root)); diff != "" {
					t.Errorf("a trace is left: %s", diff)
				}
				if changes, err = s.RemoveAll(t.Context(), all(client, scope)); err != nil {
					t.Fatal(err)
				}
				for _, c := range changes {
					if c.Action != "unchanged" {
						t.Errorf("removed again: %+v", c)
					}
				}
			})
		}
	}
}

// A user's own hooks stay to the byte, in whatever style the file is written,
// and the file is the same after install and removal.
func TestSetupKeepsOthersHooks(t *testing.T) {
	for name, text := range map[string]string{
		"own hooks":     "{\n  \"model\": \"x\",\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\",\n        \"hooks\": [\n          { \"type\": \"command\", \"command\": \"mine.sh\" }\n        ]\n      }\n    ]\n  }\n}\n",
		"one line":      `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"mine"}]}]},"a":1}`,
		"empty lists":   "{\n\t\"hooks\": {\n\t\t\"Stop\": [],\n\t\t\"SessionStart\": [ ]\n\t}\n}",
		"no hooks":      "{\n    \"permissions\": {\"allow\": [\"Bash(ls:*)\"]}\n}\n",
		"windows lines": "\ufeff{\r\n  \"hooks\": {}\r\n}\r\n",
		"empty":         "",
		"nothing":       "{}",
		"one inside":    "{\"hooks\": {\"Stop\": [\n  // why\n  {\"hooks\": [{\"type\": \"command\", \"command\": \"a\"}]}, // trailing\n]}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			file, err := s.HookFile("claude-code", User)
			if err != nil {
				t.Fatal(err)
			}
			put(t, file, text)
			a := all("claude-code", User)
			a.NoMCP, a.Skill = true, ""
			if _, err := s.InstallAll(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			installed := get(t, file)
			if hooks, err := FindHooks(file, "claude-code"); err != nil || len(hooks) != len(HookEvents("claude-code")) {
				t.Fatalf("%d hooks, %v in\n%s", len(hooks), err, installed)
			}
			for _, own := range []string{"mine.sh", "\"mine\"", "// why", "// trailing", "Bash(ls:*)"} {
				if strings.Contains(text, own) && !strings.Contains(installed, own) {
					t.Errorf("%s is gone from\n%s", own, installed)
				}
			}
			// By the note: byte for byte.
			if _, err := s.RemoveAll(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			if got := get(t, file); got != text {
				t.Errorf("removed by the note: %q, was %q", got, text)
			}
			// And by looking, where the file was changed in between.
			if _, err := s.InstallAll(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			touched := strings.Replace(get(t, file), "{", "{ ", 1)
			put(t, file, touched)
			if _, err := s.RemoveAll(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			if hooks, err := FindHooks(file, "claude-code"); err != nil || len(hooks) != 0 || strings.Contains(get(t, file), "reprise") {
				t.Errorf("left: %v, %v in %s", hooks, err, get(t, file))
			}
			for _, own := range []string{"mine.sh", "\"mine\"", "// why", "// trailing", "Bash(ls:*)"} {
				if strings.Contains(text, own) && !strings.Contains(get(t, file), own) {
					t.Errorf("%s is gone from\n%s", own, get(t, file))
				}
			}
		})
	}
}

// A hook that was installed by a program at another place is brought up to
// date where it stands, and a hook that the user put beside it stays there.
func TestSetupMovesWithTheProgram(t *testing.T) {
	s := newSetup(t)
	file, err := s.HookFile("claude-code", User)
	if err != nil {
		t.Fatal(err)
	}
	put(t, file, `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"'/old place/reprise-hook' claude Stop","timeout":3},{"type":"command","command":"mine"}]}]}}`)
	a := all("claude-code", User)
	a.NoMCP, a.Skill = true, ""
	if _, err := s.InstallAll(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if text := get(t, file); strings.Contains(text, "old place") || strings.Count(text, "claude Stop") < 1 || strings.Count(text, "claude Stop\"") != 1 {
		t.Errorf("not moved: %s", text)
	}
	if _, err := s.RemoveAll(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Hooks map[string][]struct {
			Hooks []struct{ Command string }
		}
	}
	if err := json.Unmarshal([]byte(get(t, file)), &doc); err != nil {
		t.Fatal(err)
	}
	if stop := doc.Hooks["Stop"]; len(doc.Hooks) != 1 || len(stop) != 1 || len(stop[0].Hooks) != 1 || stop[0].Hooks[0].Command != "mine" {
		t.Errorf("left: %s", get(t, file))
	}
}

// What is not a list of hooks is never touched.
func TestSetupRefusesBrokenHooks(t *testing.T) {
	for name, text := range map[string]string{
		"hooks is a list": `{"hooks": []}`, "an event is text": `{"hooks": {"Stop": "x"}}`, "broken": `{"hooks": {`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			file, err := s.HookFile("claude-code", User)
			if err != nil {
				t.Fatal(err)
			}
			put(t, file, text)
			a := all("claude-code", User)
			a.NoMCP, a.Skill = true, ""
			if _, err := s.InstallAll(t.Context(), a); err == nil || !strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("%v", err)
			}
			if get(t, file) != text {
				t.Errorf("changed to %q", get(t, file))
			}
		})
	}
}

// A file that cannot be read keeps the others of a client from nothing.
func TestRemovalGoesOn(t *testing.T) {
	s := newSetup(t)
	a := all("claude-code", User)
	if _, err := s.InstallAll(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	file, err := s.HookFile("claude-code", User)
	if err != nil {
		t.Fatal(err)
	}
	put(t, file, `{"hooks": {`)
	changes, err := s.RemoveAll(t.Context(), a)
	if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "; done already: ") || strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("%v", err)
	}
	skill, serr := s.SkillFile("claude-code")
	server, terr := Locate(s.Where, "claude-code", User)
	if serr != nil || terr != nil {
		t.Fatal(serr, terr)
	}
	for _, gone := range []string{skill, server.File} {
		if _, err := os.Stat(gone); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", gone, err)
		}
	}
	if len(changes) != 2 {
		t.Errorf("%+v", changes)
	}
}

// Clients share one skill file: it stays until the last of them has gone, and
// one that a person wrote or changed is left alone.
func TestSkillIsShared(t *testing.T) {
	s := newSetup(t)
	file, err := s.SkillFile("codex")
	if err != nil {
		t.Fatal(err)
	}
	only := func(client string) All {
		a := all(client, User)
		a.NoMCP, a.NoHooks = true, true
		return a
	}
	for _, client := range []string{"codex", "gemini"} {
		if _, err := s.InstallAll(t.Context(), only(client)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.RemoveAll(t.Context(), only("codex")); err != nil || absent(file) {
		t.Fatalf("the other client's skill is gone (%v)", err)
	}
	if _, err := s.RemoveAll(t.Context(), only("gemini")); err != nil || !absent(file) || !absent(filepath.Dir(file)) {
		t.Fatalf("the skill is still there (%v)", err)
	}
	put(t, file, "my own\n")
	ch, err := s.InstallAll(t.Context(), only("copilot"))
	if err != nil || get(t, file) != "my own\n" || len(ch) != 1 || len(ch[0].Warnings) == 0 {
		t.Errorf("%+v, %v", ch, err)
	}
	if _, err := s.RemoveAll(t.Context(), only("copilot")); err != nil || get(t, file) != "my own\n" {
		t.Errorf("a person's own skill was touched: %v", err)
	}
}

func TestHookCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the quoting of POSIX shells")
	}
	s := newSetup(t)
	s.Env.Vars["REPRISE_HOME"] = "/data/my memory"
	got := s.hookCommand("/Users/it's me/bin/reprise-hook", "claude-code", "Stop")
	want := `REPRISE_HOME='/data/my memory' '/Users/it'\''s me/bin/reprise-hook' claude Stop`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !ownHook(got, "claude-code") || ownHook(got, "codex") || ownHook("my-reprise-hooks claude Stop", "claude-code") || !ownHook(`"C:/x/reprise-hook.exe" codex Stop`, "codex") {
		t.Error("the program's own hook is not recognised, or another's is")
	}
}

// A directory of that name is no program, and neither is one whose name only
// ends so: a hook of another tool is not taken for ours, nor ours missed.
func TestOwnHook(t *testing.T) {
	for command, want := range map[string]bool{
		"/opt/reprise-hook/bin/reprise-hook claude Stop":            true,
		"'/opt/my reprise-hook claude x/reprise-hook' claude Stop":  true,
		"REPRISE_HOME=/srv/reprise-hook /bin/reprise-hook claude X": true,
		"nice -n 5 /bin/reprise-hook claude Stop || true":           true,
		`& "C:/Program Files/reprise-hook.exe" claude Stop`:         true,
		`C:\bin\reprise-hook.exe claude Stop`:                       true,
		"/opt/bin/not-reprise-hook claude Stop":                     false,
		"/opt/bin/reprise-hook-wrapper claude Stop":                 false,
		"/opt/reprise-hook/bin/other claude Stop":                   false,
		"'/opt/reprise-hook claude Stop/other' x":                   false,
		"LOG=/var/log/reprise-hook claude Stop":                     false,
		"/bin/reprise-hook codex Stop":                              false,
		"/bin/reprise-hook claude-code Stop":                        false,
		"/bin/reprise-hook":                                         false,
		"'/bin/reprise-hook claude Stop":                            false,
		"":                                                          false,
	} {
		if got := ownHook(command, "claude-code"); got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
}
