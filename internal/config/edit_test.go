package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestEdited(t *testing.T) {
	env := Env{GOOS: "linux", Dir: "/work", Vars: map[string]string{"HOME": "/home/nina"}}
	paths, err := FindPaths(env)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, old, key string
		values         []string
		want           string
	}{
		{"an empty file", "", "guard.writes", []string{"allow"}, "guard:\n  writes: allow\n"},
		{"deep", "", "http.limits.sessions", []string{"7"}, "http:\n  limits:\n    sessions: 7\n"},
		{"a section that is there", "guard:\n    mode: enforce\n\n# the log\nlogging:\n  level: warn\n", "guard.writes", []string{"allow"},
			"guard:\n    mode: enforce\n    writes: allow\n\n# the log\nlogging:\n  level: warn\n"},
		{"an empty section", "guard:\nlogging:\n  level: warn\n", "guard.writes", []string{"allow"}, "guard:\n  writes: allow\nlogging:\n  level: warn\n"},
		{"no newline at the end", "logging:\n  level: warn", "guard.writes", []string{"allow"}, "logging:\n  level: warn\nguard:\n  writes: allow\n"},
		{"carriage returns", "logging:\r\n  level: warn\r\n", "logging.max_backups", []string{"2"}, "logging:\r\n  level: warn\r\n  max_backups: 2\r\n"},
		{"another value, the comment stays", "guard:\n  writes: ask # for now\n  mode: enforce\n", "guard.writes", []string{"allow"}, "guard:\n  writes: allow # for now\n  mode: enforce\n"},
		{"the same value", "guard:\n  writes: allow\n", "guard.writes", []string{"allow"}, "guard:\n  writes: allow\n"},
		{"a word that YAML reads otherwise", "", "guard.judge", []string{"off"}, "guard:\n  judge: \"off\"\n"},
		{"a list", "", "http.allowed_origins", []string{"https://a.example", "https://b.example"}, "http:\n  allowed_origins: [\"https://a.example\", \"https://b.example\"]\n"},
		{"a list of lines", "http:\n  allowed_origins:\n  - https://a.example\n\n  - https://b.example\n  addr: 127.0.0.1:1\n", "http.allowed_origins", []string{"https://c.example"},
			"http:\n  allowed_origins: [\"https://c.example\"]\n  addr: 127.0.0.1:1\n"},
		{"taken out", "guard:\n  writes: allow\n  mode: enforce\n", "guard.writes", nil, "guard:\n  mode: enforce\n"},
		{"taken out with its section", "logging:\n  level: warn\nguard:\n  writes: allow\n", "guard.writes", nil, "logging:\n  level: warn\n"},
		{"taken out with all sections", "http:\n  limits:\n    sessions: 7\n", "http.limits.sessions", nil, ""},
		{"taken out where it is not", "logging:\n  level: warn\n", "guard.writes", nil, "logging:\n  level: warn\n"},
		{"a wrong value gets a right one", "guard:\n  mode: wran\n", "guard.mode", []string{"warn"}, "guard:\n  mode: warn\n"},
		{"a wrong value is taken out", "guard:\n  mode: wran\n  writes: allow\n", "guard.mode", nil, "guard:\n  writes: allow\n"},
		{"a name that is none is taken out", "logging:\n  level: warn\ngaurd:\n  mode: warn\n", "gaurd", nil, "logging:\n  level: warn\n"},
		{"one of a section", "guard:\n  mod: warn\n  writes: allow\n", "guard.mod", nil, "guard:\n  writes: allow\n"},
		{"a mark in front", "\ufefflogging:\n  level: warn\n", "logging.level", []string{"debug"}, "\ufefflogging:\n  level: debug\n"},
	} {
		got, err := edited(env, paths, "config.yaml", []byte(c.old), c.key, c.values)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	for _, c := range []struct {
		name, old, key string
		values         []string
		want           string
	}{
		{"not a setting", "", "guard.write", []string{"allow"}, "did you mean guard.writes?"},
		{"a section", "", "guard", []string{"allow"}, "is not a setting"},
		{"a wrong value", "", "guard.writes", []string{"perhaps"}, "command line: guard.writes: \"perhaps\" is not one of its values; write one of"},
		{"a wrong number", "logging:\n  level: warn\n", "sub_agent.sync_window_seconds", []string{"300"}, "300 is too large"},
		{"two values", "", "guard.writes", []string{"allow", "ask"}, "takes one value"},
		{"a value of more lines", "", "logging.level", []string{"warn\n  file: /x"}, "is not one of its values"},
		{"a number of more lines", "", "logging.max_backups", []string{"1\n  level: debug"}, "write by hand"},
		{"braces", "guard: {mode: enforce}\n", "guard.writes", []string{"allow"}, "write by hand:\nguard:\n  writes: allow"},
		{"a name that is none, and not there", "logging:\n  level: warn\n", "gaurd", nil, "did you mean guard?"},
		{"something else is wrong, too", "gaurd:\n  mode: warn\nloging: {}\n", "gaurd", nil, "is not a setting"},
		{"a wrong value, and something else", "guard:\n  mode: wran\nloging: {}\n", "guard.mode", []string{"warn"}, "did you mean logging?"},
		{"no YAML", "guard: [\n", "guard.mode", []string{"warn"}, "config.yaml:"},
		{"a file that is wrong already", "loging: {}\n", "guard.writes", []string{"allow"}, "did you mean logging?"},
	} {
		got, err := edited(env, paths, "config.yaml", []byte(c.old), c.key, c.values)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %q, %v; want an error with %q", c.name, got, err, c.want)
		}
	}
}

// Whatever file there is: an edit that is made changes nothing else, and taking it back
// leaves a file that says what it said.
func FuzzEdited(f *testing.F) {
	for _, s := range []string{"", "guard:\n  mode: enforce\n", "guard: {mode: off}", "logging:\n  level: warn # x\n\n#c\n  file: |\n    a\n", "http:\n  allowed_origins:\n  - a\n"} {
		f.Add(s, "allow")
	}
	env := Env{GOOS: "linux", Dir: "/work", Vars: map[string]string{"HOME": "/home/nina"}}
	paths, err := FindPaths(env)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, old, value string) {
		text, err := edited(env, paths, "config.yaml", []byte(old), "logging.file", []string{value})
		if err != nil {
			return
		}
		l, err := parsed(env, paths, "config.yaml", text)
		if err != nil || l.set["logging.file"] == 0 {
			t.Fatalf("%q became %q: %v", old, text, err)
		}
		back, err := edited(env, paths, "config.yaml", text, "logging.file", nil)
		if err != nil {
			t.Fatalf("%q cannot be taken out of %q: %v", value, text, err)
		}
		if l, err := parsed(env, paths, "config.yaml", back); err != nil || l.set["logging.file"] != 0 {
			t.Fatalf("%q, without it %q: %v", text, back, err)
		}
	})
}

// The file is made where there is none, a link to it stays one, and a file that cannot be
// changed stays as it is.
func TestSetInFile(t *testing.T) {
	dir := t.TempDir()
	env := Env{GOOS: runtime.GOOS, Dir: dir, Vars: map[string]string{"HOME": dir, "USERPROFILE": dir, "REPRISE_HOME": filepath.Join(dir, "r")}}
	paths, err := FindPaths(env)
	if err != nil {
		t.Fatal(err)
	}
	file, changed, err := SetInFile(env, paths, "", "logging.level", "debug")
	if err != nil || !changed || file != paths.ConfigFile {
		t.Fatalf("%s %t %v", file, changed, err)
	}
	if s, _, err := Load(env, paths, ""); err != nil || s.Logging.Level != "debug" {
		t.Fatalf("%q, %v", s.Logging.Level, err)
	}
	if _, changed, err := SetInFile(env, paths, "", "logging.level", "debug"); err != nil || changed {
		t.Errorf("the same again: %t %v", changed, err)
	}
	real := filepath.Join(dir, "dotfile.yaml")
	if err := os.Rename(file, real); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, file); err != nil {
		t.Skip("no links here")
	}
	if _, _, err := SetInFile(env, paths, "", "logging.level", "warn"); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(file); err != nil || to != real {
		t.Errorf("the link is %q, %v", to, err)
	}
	if s, _, err := Load(env, paths, ""); err != nil || s.Logging.Level != "warn" {
		t.Errorf("%q, %v", s.Logging.Level, err)
	}
}
