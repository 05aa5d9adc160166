package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/config"
	"reprise/internal/mdfile"
)

const program = "/opt/reprise/bin/reprise"

func newSetup(t *testing.T) Setup {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, dir := filepath.Join(base, "home"), filepath.Join(base, "work")
	for _, d := range []string{home, dir} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	env := config.Env{Vars: map[string]string{"HOME": home, "USERPROFILE": home}, Dir: dir, GOOS: runtime.GOOS, Now: time.Now}
	paths, err := config.FindPaths(env)
	if err != nil {
		t.Fatal(err)
	}
	return Setup{Where: Where{Env: env, Dir: dir, Root: dir, Machine: filepath.Join(base, "etc")}, Paths: paths,
		Now: func() time.Time { return time.Date(2026, 11, 28, 4, 5, 6, 0, time.UTC) }}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	// A process that is started just now would hold the file open for writing, and
	// until it has become another program nobody could run it (ETXTBSY).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}

// Every place of every client: installed where there was nothing, found again,
// not changed by a second install, and gone without a trace.
func TestEveryClient(t *testing.T) {
	for _, client := range Clients() {
		for _, scope := range Scopes(client) {
			t.Run(client+"/"+scope, func(t *testing.T) {
				s := newSetup(t)
				target, err := Locate(s.Where, client, scope)
				if err != nil {
					t.Fatal(err)
				}
				req := Request{Client: client, Scope: scope, Program: program}
				dry := req
				dry.DryRun = true
				changes, err := s.Install(t.Context(), dry)
				if err != nil || changes[0].Action != "created" || changes[0].Diff == "" || !absent(target.File) || !absent(s.Paths.Data) {
					t.Fatalf("dry run: %+v, %v", changes, err)
				}
				if changes, err = s.Install(t.Context(), req); err != nil || changes[0].Action != "created" || changes[0].Backup != "" {
					t.Fatalf("install: %+v, %v", changes, err)
				}
				e, ok, err := Find(target, Name)
				if err != nil || !ok || e.Command != program || !cmp.Equal(e.Args, []string{"mcp"}) {
					t.Errorf("found %+v, %v, %v", e, ok, err)
				}
				if info, err := os.Stat(target.File); err != nil || runtime.GOOS != "windows" && scope != Project && info.Mode().Perm() != 0o600 {
					t.Errorf("mode %v, %v", info.Mode(), err)
				}
				first := get(t, target.File)
				if changes, err = s.Install(t.Context(), req); err != nil || changes[0].Action != "unchanged" || get(t, target.File) != first {
					t.Errorf("again: %+v, %v", changes, err)
				}
				if changes, err = s.Uninstall(t.Context(), req); err != nil || changes[0].Action != "removed" || !absent(target.File) {
					t.Errorf("uninstall: %+v, %v", changes, err)
				}
				if changes, err = s.Uninstall(t.Context(), req); err != nil || changes[0].Action != "unchanged" {
					t.Errorf("uninstall again: %+v, %v", changes, err)
				}
			})
		}
	}
}

func TestEntryForms(t *testing.T) {
	s := newSetup(t)
	s.Env.Vars["REPRISE_HOME"] = "/data/r"
	for client, want := range map[string]string{
		"claude-code":    "{\n  \"mcpServers\": {\n    \"reprise\": {\n      \"type\": \"stdio\",\n      \"command\": \"/opt/reprise/bin/reprise\",\n      \"args\": [\n        \"mcp\",\n        \"--config\",\n        \"/c.yaml\"\n      ],\n      \"env\": {\n        \"REPRISE_HOME\": \"/data/r\"\n      }\n    }\n  }\n}\n",
		"claude-desktop": "{\n  \"mcpServers\": {\n    \"reprise\": {\n      \"command\": \"/opt/reprise/bin/reprise\",\n      \"args\": [\n        \"mcp\",\n        \"--config\",\n        \"/c.yaml\"\n      ],\n      \"env\": {\n        \"REPRISE_HOME\": \"/data/r\"\n      }\n    }\n  }\n}\n",
		"copilot":        "{\n  \"mcpServers\": {\n    \"reprise\": {\n      \"type\": \"local\",\n      \"command\": \"/opt/reprise/bin/reprise\",\n      \"args\": [\n        \"mcp\",\n        \"--config\",\n        \"/c.yaml\"\n      ],\n      \"tools\": [\n        \"*\"\n      ],\n      \"env\": {\n        \"REPRISE_HOME\": \"/data/r\"\n      }\n    }\n  }\n}\n",
		"vscode":         "{\n  \"servers\": {\n    \"reprise\": {\n      \"type\": \"stdio\",\n      \"command\": \"/opt/reprise/bin/reprise\",\n      \"args\": [\n        \"mcp\",\n        \"--config\",\n        \"/c.yaml\"\n      ],\n      \"env\": {\n        \"REPRISE_HOME\": \"/data/r\"\n      }\n    }\n  }\n}\n",
		"codex":          "[mcp_servers.reprise]\ncommand = \"/opt/reprise/bin/reprise\"\nargs = [\"mcp\", \"--config\", \"/c.yaml\"]\nenv = { REPRISE_HOME = \"/data/r\" }\n",
	} {
		t.Run(client, func(t *testing.T) {
			if _, err := s.Install(t.Context(), Request{Client: client, Program: program, ConfigFile: "/c.yaml"}); err != nil {
				t.Fatal(err)
			}
			target, err := Locate(s.Where, client, "")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, get(t, target.File)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The whole way through files: bytes as they were after install and uninstall.
func TestRoundTrip(t *testing.T) {
	for name, text := range map[string]string{
		"plain": "{\n  \"a\": 1\n}", "mark": "\ufeff{\r\n\t\"a\": 1\r\n}\r\n", "comments": "// c\n{ } // d\n", "spaces": "{   }\n\n", "empty servers": "{\"mcpServers\": { } }", "empty file": "", "blank file": "\n \n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			req := Request{Client: "cursor", Program: program}
			target, err := Locate(s.Where, "cursor", "")
			if err != nil {
				t.Fatal(err)
			}
			put(t, target.File, text)
			changes, err := s.Install(t.Context(), req)
			if err != nil || changes[0].Action != "changed" || get(t, changes[0].Backup) != text {
				t.Fatalf("%+v, %v", changes, err)
			}
			if want := target.File + ".bak-20261128T040506Z"; changes[0].Backup != want {
				t.Errorf("backup %s, want %s", changes[0].Backup, want)
			}
			if strings.HasPrefix(text, "\ufeff") != strings.HasPrefix(get(t, target.File), "\ufeff") {
				t.Error("the byte order mark is not as it was")
			}
			if info, err := os.Stat(target.File); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			if _, err := s.Uninstall(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text, get(t, target.File)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What the user did after the install is kept by the uninstall.
func TestUninstallAfterEdits(t *testing.T) {
	s := newSetup(t)
	req := Request{Client: "claude-code", Program: program}
	target, err := Locate(s.Where, "claude-code", "")
	if err != nil {
		t.Fatal(err)
	}
	put(t, target.File, "{\n  \"a\": 1\n}")
	if _, err := s.Install(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	text := get(t, target.File)
	put(t, target.File, strings.Replace(text, "\"a\": 1", "\"a\": 2", 1))
	if _, err := s.Uninstall(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if got := get(t, target.File); got != "{\n  \"a\": 2\n}" {
		t.Errorf("got %q", got)
	}
	// Two entries in one file, taken out in the other order.
	put(t, target.File, "{\n  \"a\": 1\n}")
	local := req
	local.Scope = Local
	for _, r := range []Request{req, local} {
		if _, err := s.Install(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []Request{req, local} {
		if _, err := s.Uninstall(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if got := get(t, target.File); got != "{\n  \"a\": 1\n}" {
		t.Errorf("got %q", got)
	}
	// An entry that a person wrote goes too, and nothing else.
	put(t, target.File, "{\"mcpServers\":{\"reprise\":{\"command\":\"x\"},\"y\":{}}}")
	if _, err := s.Uninstall(t.Context(), req); err != nil || get(t, target.File) != "{\"mcpServers\":{\"y\":{}}}" {
		t.Errorf("%v %q", err, get(t, target.File))
	}
}

func TestRefusedFilesStay(t *testing.T) {
	for _, tc := range []struct{ name, client, text, want string }{
		{"broken JSON", "cursor", "{\"a\": 1,, }", "line 1, column 9"},
		{"broken TOML", "codex", "a = 1\nb = = 2\n", "line 2"},
		{"UTF-16", "cursor", "\xff\xfe{\x00}\x00", "UTF-8"},
		{"not UTF-8", "cursor", "{\"a\": \"\xe9\"}", "UTF-8"},
		{"servers of another kind", "gemini", "{\"mcpServers\": 1}", "not an object"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSetup(t)
			target, err := Locate(s.Where, tc.client, "")
			if err != nil {
				t.Fatal(err)
			}
			put(t, target.File, tc.text)
			for name, do := range map[string]func(context.Context, Request) ([]Change, error){"install": s.Install, "uninstall": s.Uninstall} {
				if _, err := do(t.Context(), Request{Client: tc.client, Program: program}); err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), target.File) {
					t.Errorf("%s: got %v, want %q", name, err, tc.want)
				}
			}
			if get(t, target.File) != tc.text {
				t.Error("the file was changed")
			}
			if entries, err := os.ReadDir(filepath.Dir(target.File)); err != nil || len(entries) != 1 {
				t.Errorf("left behind: %v", entries)
			}
		})
	}
	s := newSetup(t)
	target, err := Locate(s.Where, "cursor", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(target.File, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Install(t.Context(), Request{Client: "cursor", Program: program}); err == nil {
		t.Error("a directory was taken for a settings file")
	}
	if _, err := s.Install(t.Context(), Request{Client: "cursor", Program: "reprise"}); err == nil {
		t.Error("a relative program was taken")
	}
	if _, err := s.Install(t.Context(), Request{Client: "copilot", Scope: Project, Program: program}); err == nil {
		t.Error("a scope that there is not was taken")
	}
}

func TestLinks(t *testing.T) {
	s := newSetup(t)
	target, err := Locate(s.Where, "gemini", "")
	if err != nil {
		t.Fatal(err)
	}
	real := filepath.Join(s.Env.Vars["HOME"], "dotfiles", "gemini.json")
	put(t, real, "{}\n")
	if err := os.MkdirAll(filepath.Dir(target.File), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../dotfiles/gemini.json", target.File); err != nil {
		t.Skip("no links here: ", err)
	}
	changes, err := s.Install(t.Context(), Request{Client: "gemini", Program: program})
	if err != nil || changes[0].Real != real || !strings.Contains(get(t, real), program) || filepath.Dir(changes[0].Backup) != filepath.Dir(real) {
		t.Fatalf("%+v, %v", changes, err)
	}
	if info, err := os.Lstat(target.File); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
	if _, err := s.Uninstall(t.Context(), Request{Client: "gemini", Program: program}); err != nil || get(t, real) != "{}\n" {
		t.Errorf("%v %q", err, get(t, real))
	}
	if err := os.Remove(real); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Install(t.Context(), Request{Client: "gemini", Program: program}); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a link to nothing: %v", err)
	}
	// A repository must not lead a write out of itself.
	outside := filepath.Join(s.Env.Vars["HOME"], ".claude.json")
	put(t, outside, "{}")
	if err := os.Symlink(outside, filepath.Join(s.Root, ".mcp.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Install(t.Context(), Request{Client: "claude-code", Scope: Project, Program: program}); err == nil || !strings.Contains(err.Error(), "out of the project") || get(t, outside) != "{}" {
		t.Errorf("a link out of the project: %v", err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(s.Root, ".vscode")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Install(t.Context(), Request{Client: "vscode", Scope: Project, Program: program}); err == nil || !strings.Contains(err.Error(), "out of the project") {
		t.Errorf("a directory that leads out of the project: %v", err)
	}
}

// Many installs at once into one file: all entries are in, none is lost.
func TestInstallsAtOnce(t *testing.T) {
	s := newSetup(t)
	target, err := Locate(s.Where, "claude-code", "")
	if err != nil {
		t.Fatal(err)
	}
	put(t, target.File, "{\n  \"keep\": true\n}\n")
	var wg sync.WaitGroup
	const n = 6
	for i := range n {
		wg.Go(func() {
			one := s
			one.Dir = filepath.Join(s.Dir, fmt.Sprint("d", i))
			if err := os.MkdirAll(one.Dir, 0o755); err != nil {
				t.Error(err)
			}
			if _, err := one.Install(context.Background(), Request{Client: "claude-code", Scope: Local, Program: program}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var doc struct {
		Keep     bool
		Projects map[string]struct{ McpServers map[string]any }
	}
	if err := json.Unmarshal([]byte(get(t, target.File)), &doc); err != nil || !doc.Keep || len(doc.Projects) != n {
		t.Errorf("%v %+v", err, doc)
	}
	for dir, p := range doc.Projects {
		if p.McpServers["reprise"] == nil {
			t.Errorf("%s has no entry", dir)
		}
	}
	if backups, err := filepath.Glob(target.File + ".bak-*"); err != nil || len(backups) != n {
		t.Errorf("%d backups, %v", len(backups), err)
	}
}

// A client that writes its file while it is being edited loses nothing.
func TestClientWritesMeanwhile(t *testing.T) {
	s := newSetup(t)
	file := filepath.Join(s.Env.Vars["HOME"], "x.json")
	put(t, file, "{}")
	c := changer{notes: filepath.Join(s.Paths.Data, "clients"), now: s.Now}
	tries := 0
	ch, err := c.apply(t.Context(), file, 0o600, func(in input) ([]byte, bool, error) {
		if tries++; tries == 1 {
			put(t, file, "{\"client\": 1}")
		}
		text, _, err := setJSON(in.text, []string{"reprise"}, "x")
		return text, false, err
	}, func(*note) {})
	if err != nil || tries != 2 || get(t, file) != "{\"client\": 1, \"reprise\": \"x\"}" {
		t.Errorf("%d tries, %v, %q", tries, err, get(t, file))
	}
	if backups, _ := filepath.Glob(file + ".bak-*"); len(backups) != 1 || get(t, ch.Backup) != "{\"client\": 1}" {
		t.Errorf("backups %v", backups)
	}
	_, err = c.apply(t.Context(), file, 0o600, func(in input) ([]byte, bool, error) {
		tries++
		put(t, file, fmt.Sprintf("{\"client\": %d}", tries))
		return []byte("{}"), false, nil
	}, func(*note) {})
	if err == nil || !strings.Contains(get(t, file), "client") {
		t.Errorf("%v, %q", err, get(t, file))
	}
}

func TestInstructions(t *testing.T) {
	if n := mdfile.Tokens(instructionsText + beginMark + endMark); n > InstructionsBudget {
		t.Errorf("the section costs %d tokens, more than %d", n, InstructionsBudget)
	}
	for name, text := range map[string]string{"none": "", "text": "# Mine\n\nText.\n", "no last newline": "# Mine", "CRLF": "a\r\n", "blank lines": "a\n\n\n"} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			req := Request{Client: "claude-code", Program: program, Instructions: true}
			target, err := Locate(s.Where, "claude-code", "")
			if err != nil {
				t.Fatal(err)
			}
			if name != "none" {
				put(t, target.Doc, text)
			}
			if _, err := s.Install(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			with := get(t, target.Doc)
			if !strings.HasPrefix(with, text) || strings.Count(with, "spawn_agent") != 1 || strings.Contains(text, "\r\n") && strings.Count(with, "\n") != strings.Count(with, "\r\n") {
				t.Errorf("got %q", with)
			}
			if changes, err := s.Install(t.Context(), req); err != nil || changes[1].Action != "unchanged" || get(t, target.Doc) != with {
				t.Errorf("again: %+v %v", changes, err)
			}
			// An old section is replaced where it is.
			if !strings.Contains(with, "managed by `reprise setup --with-instructions`") {
				t.Errorf("the mark names another command: %q", with)
			}
			was := strings.Replace(with, "reprise setup --with-instructions", "reprise mcp install", 1)
			put(t, target.Doc, strings.Replace(was, "spawn_agent", "old_words", 1)+"after\n")
			if _, err := s.Install(t.Context(), req); err != nil || get(t, target.Doc) != with+"after\n" {
				t.Errorf("%v %q", err, get(t, target.Doc))
			}
			put(t, target.Doc, with)
			if _, err := s.Uninstall(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			want := text
			if name == "none" || name == "no last newline" { // the note is out of date by the edits above
				return
			}
			if got := get(t, target.Doc); got != want {
				t.Errorf("after uninstall %q, want %q", got, want)
			}
		})
	}
	for name, text := range map[string]string{"no end": beginMark + "\n", "no begin": endMark + "\n", "turned": endMark + beginMark, "twice": beginMark + endMark + beginMark + endMark} {
		if _, err := setInstructions([]byte(text)); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
	s := newSetup(t)
	if _, err := s.Install(t.Context(), Request{Client: "claude-desktop", Program: program, Instructions: true}); err == nil {
		t.Error("claude-desktop has no instructions file")
	}
}

func TestFilesystem(t *testing.T) {
	s := newSetup(t)
	docs, mem := filepath.Join(s.Dir, "docs"), filepath.Join(s.Env.Vars["HOME"], "mem")
	for _, d := range []string{docs, mem} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	req := Request{Client: "claude-desktop", Program: program, Filesystem: []string{"docs", docs}, MemoryDir: mem}
	changes, err := s.Install(t.Context(), req)
	if err != nil || len(changes[0].Warnings) != 1 || !strings.Contains(changes[0].Warnings[0], mem) {
		t.Fatalf("%+v, %v", changes, err)
	}
	target, err := Locate(s.Where, "claude-desktop", "")
	if err != nil {
		t.Fatal(err)
	}
	if e, ok, err := Find(target, FilesystemName); err != nil || !ok || !cmp.Equal(e.FilesystemDirs(), []string{docs}) {
		t.Errorf("%+v %v %v", e, ok, err)
	}
	req.Filesystem = []string{"~/mem"}
	if changes, err = s.Install(t.Context(), req); err != nil || len(changes[0].Warnings) != 0 {
		t.Errorf("%+v, %v", changes, err)
	}
	if e, _, _ := Find(target, FilesystemName); !cmp.Equal(e.FilesystemDirs(), []string{docs, mem}) {
		t.Errorf("directories %v: one that was there is gone, or the new one is missing", e.FilesystemDirs())
	}
	if _, err := s.Uninstall(t.Context(), req); err != nil || !absent(target.File) {
		t.Errorf("%v: the file is still there: %v", err, !absent(target.File))
	}
	// Somebody's own filesystem server stays.
	put(t, target.File, `{"mcpServers":{"filesystem":{"command":"npx","args":["-y","@modelcontextprotocol/server-filesystem","/x"]}}}`)
	before := get(t, target.File)
	plain := Request{Client: "claude-desktop", Program: program}
	for _, do := range []func(context.Context, Request) ([]Change, error){s.Install, s.Uninstall} {
		if _, err := do(t.Context(), plain); err != nil {
			t.Fatal(err)
		}
	}
	if got := get(t, target.File); got != before {
		t.Errorf("got %q", got)
	}
	for _, bad := range []string{"", "none", "~bob", "docs/../none"} {
		req.Filesystem = []string{bad}
		if _, err := s.Install(t.Context(), req); err == nil {
			t.Errorf("directory %q was taken", bad)
		}
	}
}

func TestWarnings(t *testing.T) {
	s := newSetup(t)
	changes, err := s.Install(t.Context(), Request{Client: "cursor", Program: "/tmp/go-build123/b001/exe/reprise"})
	if err != nil || len(changes[0].Warnings) != 1 || !strings.Contains(changes[0].Warnings[0], "go run") {
		t.Errorf("%+v, %v", changes, err)
	}
	changes, err = s.Install(t.Context(), Request{Client: "cursor", Scope: Project, Program: program})
	if err != nil || len(changes[0].Warnings) != 1 || !strings.Contains(changes[0].Warnings[0], "shared") {
		t.Errorf("%+v, %v", changes, err)
	}
}

func TestPlacesOfOtherSystems(t *testing.T) {
	for _, tc := range []struct {
		goos, client string
		vars         map[string]string
		want         string
	}{
		{"darwin", "claude-desktop", map[string]string{"HOME": "/h"}, "/h/Library/Application Support/Claude/claude_desktop_config.json"},
		{"darwin", "vscode", map[string]string{"HOME": "/h"}, "/h/Library/Application Support/Code/User/mcp.json"},
		{"linux", "vscode", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/Code/User/mcp.json"},
		{"linux", "codex", map[string]string{"HOME": "/h", "CODEX_HOME": "/c"}, "/c/config.toml"},
		{"linux", "claude-code", map[string]string{"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"},
		{"linux", "claude-code", map[string]string{"HOME": "/h", "CLAUDE_CONFIG_DIR": "c"}, "/h/.claude.json"},
		{"windows", "claude-desktop", map[string]string{"USERPROFILE": `C:\u`, "APPDATA": `D:\r`}, `D:\r` + string(filepath.Separator) + filepath.Join("Claude", "claude_desktop_config.json")},
	} {
		got, err := Locate(Where{Env: config.Env{Vars: tc.vars, GOOS: tc.goos}, Dir: "/w", Root: "/w"}, tc.client, "")
		if err != nil || got.File != tc.want {
			t.Errorf("%s on %s: %s, %v; want %s", tc.client, tc.goos, got.File, err, tc.want)
		}
	}
	if _, err := Locate(Where{Env: config.Env{GOOS: "linux"}}, "codex", ""); !errors.Is(err, config.ErrNoHome) {
		t.Errorf("got %v", err)
	}
	if c, err := Canonical("claude"); err != nil || c != "claude-code" {
		t.Errorf("%s, %v", c, err)
	}
	if _, err := Canonical("emacs"); err == nil {
		t.Error("emacs is no client of ours")
	}
}

// The key of Claude's local scope is the main checkout, from a linked worktree
// and from below it too.
func TestClaudeLocalKey(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not there")
	}
	s := newSetup(t)
	cmd := exec.CommandContext(t.Context(), git, "init", "-q", s.Dir)
	cmd.Env = []string{"HOME=" + s.Env.Vars["HOME"], "PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	below := filepath.Join(s.Dir, "a")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	w := s.Where
	w.Dir = below
	if got, err := Locate(w, "claude-code", Local); err != nil || got.Keys[1] != filepath.ToSlash(s.Dir) {
		t.Errorf("%v, %v", got.Keys, err)
	}
}
