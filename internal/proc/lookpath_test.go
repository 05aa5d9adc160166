package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// fake is a file system of made-up absolute paths of any system: "/bin/x" and
// `C:\x\y` are keys as they stand, values "x" (program), "-" (file that is not
// executable), "d" (directory) or else the text of a file.
type fake map[string]string

func (f fake) key(p string) (string, bool) {
	for k := range f {
		if k == p || strings.Contains(p, `\`) && strings.EqualFold(k, p) {
			return k, true
		}
	}
	return "", false
}

func (f fake) stat(p string) (fs.FileInfo, error) {
	k, ok := f.key(p)
	if !ok {
		return nil, &fs.PathError{Op: "stat", Path: p, Err: fs.ErrNotExist}
	}
	file := &fstest.MapFile{Mode: 0o644}
	switch f[k] {
	case "x":
		file.Mode = 0o755
	case "d":
		file.Mode = fs.ModeDir | 0o755
	}
	return fs.Stat(fstest.MapFS{"f": file}, "f")
}

func (f fake) readFile(p string) ([]byte, error) {
	if k, ok := f.key(p); ok {
		return []byte(f[k]), nil
	}
	return nil, fs.ErrNotExist
}

// readDir knows children that are listed with the value "d".
func (f fake) readDir(p string) ([]fs.DirEntry, error) {
	m := fstest.MapFS{}
	for k, v := range f {
		if rest, ok := strings.CutPrefix(k, p+"/"); ok && v == "d" && !strings.Contains(rest, "/") {
			m[rest] = &fstest.MapFile{Mode: fs.ModeDir}
		}
	}
	if len(m) == 0 {
		return nil, fs.ErrNotExist
	}
	return fs.ReadDir(m, ".")
}

type vars = map[string]string

func TestLookPathTable(t *testing.T) {
	for _, tc := range []struct {
		name, goos, program string
		vars                vars
		files               fake
		want                string // "" means not found
	}{
		{"on PATH", "linux", "claude", vars{"PATH": "/a:/b"}, fake{"/b/claude": "x"}, "/b/claude"},
		{"first on PATH wins", "linux", "claude", vars{"PATH": "/a:/b"}, fake{"/a/claude": "x", "/b/claude": "x"}, "/a/claude"},
		{"not executable is passed over", "linux", "claude", vars{"PATH": "/a:/b"}, fake{"/a/claude": "-", "/b/claude": "x"}, "/b/claude"},
		{"directory is passed over", "linux", "claude", vars{"PATH": "/a:/b"}, fake{"/a/claude": "d", "/b/claude": "x"}, "/b/claude"},
		{"relative PATH entries are passed over", "linux", "claude", vars{"PATH": ":.:bin:/b"}, fake{"claude": "x", "./claude": "x", "/claude": "x", "bin/claude": "x", "/b/claude": "x"}, "/b/claude"},
		{"spaces", "linux", "my agent", vars{"PATH": "/a b/c d"}, fake{"/a b/c d/my agent": "x"}, "/a b/c d/my agent"},
		{"trailing slash", "linux", "claude", vars{"PATH": "/a/"}, fake{"/a/claude": "x"}, "/a/claude"},
		{"absolute", "linux", "/opt/claude", vars{}, fake{"/opt/claude": "x"}, "/opt/claude"},
		{"absolute, not executable", "linux", "/opt/claude", vars{}, fake{"/opt/claude": "-"}, ""},
		{"home", "linux", "~/x/claude", vars{"HOME": "/home/u"}, fake{"/home/u/x/claude": "x"}, "/home/u/x/claude"},
		{"home without home", "linux", "~/x/claude", vars{}, fake{"/x/claude": "x"}, ""},
		{"relative", "linux", "x/claude", vars{"PATH": "/a"}, fake{"/a/x/claude": "x", "x/claude": "x"}, ""},
		{"empty", "linux", "", vars{"PATH": "/a"}, fake{"/a": "x"}, ""},
		{"NUL", "linux", "a\x00b", vars{"PATH": "/a"}, fake{}, ""},
		{"no PATH, no home", "linux", "claude", vars{}, fake{"/usr/local/bin/claude": "x"}, "/usr/local/bin/claude"},
		{"native installer", "linux", "claude", vars{"PATH": "/usr/bin", "HOME": "/h"}, fake{"/h/.local/bin/claude": "x"}, "/h/.local/bin/claude"},
		{"local installer", "linux", "claude", vars{"HOME": "/h"}, fake{"/h/.claude/local/claude": "x"}, "/h/.claude/local/claude"},
		{"npm-global", "linux", "claude", vars{"HOME": "/h"}, fake{"/h/.npm-global/bin/claude": "x"}, "/h/.npm-global/bin/claude"},
		{"npm prefix by variable", "linux", "claude", vars{"HOME": "/h", "npm_config_prefix": "/npm"}, fake{"/npm/bin/claude": "x"}, "/npm/bin/claude"},
		{"npm prefix by .npmrc", "linux", "claude", vars{"HOME": "/h"}, fake{"/h/.npmrc": "a=b\nprefix = \"${HOME}/n\"\n", "/h/n/bin/claude": "x"}, "/h/n/bin/claude"},
		{"npm prefix with tilde", "linux", "claude", vars{"HOME": "/h"}, fake{"/h/.npmrc": "prefix=~/n", "/h/n/bin/claude": "x"}, "/h/n/bin/claude"},
		{"nvm, newest first", "linux", "claude", vars{"HOME": "/h"}, fake{
			"/h/.nvm/versions/node/v9.1.0": "d", "/h/.nvm/versions/node/v22.3.1": "d", "/h/.nvm/versions/node/v20.9.0": "d",
			"/h/.nvm/versions/node/v9.1.0/bin/claude": "x", "/h/.nvm/versions/node/v20.9.0/bin/claude": "x"}, "/h/.nvm/versions/node/v20.9.0/bin/claude"},
		{"nvm elsewhere", "linux", "claude", vars{"NVM_DIR": "/nvm"}, fake{"/nvm/versions/node/v1.0.0": "d", "/nvm/versions/node/v1.0.0/bin/claude": "x"}, "/nvm/versions/node/v1.0.0/bin/claude"},
		{"volta", "darwin", "claude", vars{"HOME": "/Users/u"}, fake{"/Users/u/.volta/bin/claude": "x"}, "/Users/u/.volta/bin/claude"},
		{"homebrew on macOS", "darwin", "claude", vars{"HOME": "/Users/u", "PATH": "/usr/bin:/bin"}, fake{"/opt/homebrew/bin/claude": "x"}, "/opt/homebrew/bin/claude"},
		{"no homebrew of macOS on linux", "linux", "claude", vars{"HOME": "/h"}, fake{"/opt/homebrew/bin/claude": "x"}, ""},
		{"PATH before known places", "linux", "claude", vars{"HOME": "/h", "PATH": "/b"}, fake{"/h/.local/bin/claude": "x", "/b/claude": "x"}, "/b/claude"},
		{"variables are case-sensitive", "linux", "claude", vars{"Path": "/a"}, fake{"/a/claude": "x"}, ""},

		{"exe", "windows", "claude", vars{"Path": `C:\a;C:\b`, "PATHEXT": ".COM;.EXE;.BAT;.CMD"}, fake{`C:\b\claude.exe`: "-"}, `C:\b\claude.exe`},
		{"npm's cmd, not the script beside it", "windows", "claude", vars{"APPDATA": `C:\Users\A B\AppData\Roaming`}, fake{
			`C:\Users\A B\AppData\Roaming\npm\claude`: "-", `C:\Users\A B\AppData\Roaming\npm\claude.cmd`: "-", `C:\Users\A B\AppData\Roaming\npm\claude.ps1`: "-"},
			`C:\Users\A B\AppData\Roaming\npm\claude.cmd`},
		{"exe before cmd", "windows", "claude", vars{"PATH": `C:\a`}, fake{`C:\a\claude.cmd`: "-", `C:\a\claude.exe`: "-"}, `C:\a\claude.exe`},
		{"order of PATHEXT", "windows", "claude", vars{"PATH": `C:\a`, "PATHEXT": ".CMD;.EXE"}, fake{`C:\a\claude.cmd`: "-", `C:\a\claude.exe`: "-"}, `C:\a\claude.cmd`},
		{"PATHEXT without dots and with blanks", "windows", "claude", vars{"PATH": `C:\a`, "PATHEXT": " exe ; ;cmd"}, fake{`C:\a\claude.exe`: "-"}, `C:\a\claude.exe`},
		{"name with its ending", "windows", "Claude.CMD", vars{"PATH": `C:\a`}, fake{`C:\a\claude.cmd`: "-"}, `C:\a\Claude.CMD`},
		{"other ending is part of the name", "windows", "claude.v2", vars{"PATH": `C:\a`}, fake{`C:\a\claude.v2`: "-", `C:\a\claude.v2.exe`: "-"}, `C:\a\claude.v2.exe`},
		{"quoted entry with semicolon", "windows", "claude", vars{"PATH": `"C:\a;b";C:\c`}, fake{`C:\a;b\claude.exe`: "-"}, `C:\a;b\claude.exe`},
		{"absolute without ending", "windows", `C:/Program Files/x/claude`, vars{}, fake{`C:/Program Files/x/claude.exe`: "-"}, `C:/Program Files/x/claude.exe`},
		{"relative to a drive", "windows", `C:claude`, vars{}, fake{`C:claude.exe`: "-"}, ""},
		{"rooted without drive", "windows", `\x\claude`, vars{}, fake{`\x\claude.exe`: "-"}, ""},
		{"share", "windows", `\\host\s\claude.exe`, vars{}, fake{`\\host\s\claude.exe`: "-"}, `\\host\s\claude.exe`},
		{"home", "windows", `~\bin\claude`, vars{"USERPROFILE": `C:\Users\u`}, fake{`C:\Users\u\bin\claude.exe`: "-"}, `C:\Users\u\bin\claude.exe`},
		{"native installer", "windows", "claude", vars{"UserProfile": `C:\Users\u`}, fake{`C:\Users\u\.local\bin\claude.exe`: "-"}, `C:\Users\u\.local\bin\claude.exe`},
		{"program's own folder", "windows", "claude", vars{"LOCALAPPDATA": `C:\L`}, fake{`C:\L\Programs\claude\claude.exe`: "-"}, `C:\L\Programs\claude\claude.exe`},
		{"relative PATH entries are passed over", "windows", "claude", vars{"PATH": `.;a;\b;C:c`}, fake{`.\claude.exe`: "-", `a\claude.exe`: "-", `\b\claude.exe`: "-", `C:c\claude.exe`: "-"}, ""},
	} {
		t.Run(tc.goos+"/"+tc.name, func(t *testing.T) {
			f := finder{vars: tc.vars, goos: tc.goos, windows: tc.goos == "windows", stat: tc.files.stat, readDir: tc.files.readDir, readFile: tc.files.readFile}
			got, err := f.find(tc.program)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Fatalf("found %q, %v; want %q", got, err, tc.want)
			}
			var nf *NotFoundError
			if err != nil && (!errors.Is(err, ErrNotFound) || !errors.As(err, &nf) || nf.Name != tc.program) {
				t.Errorf("error %v does not match ErrNotFound", err)
			}
		})
	}
}

func TestLookPathSaysWhereItLooked(t *testing.T) {
	f := finder{vars: vars{"PATH": "/a:/b:/a", "HOME": "/h"}, goos: "linux", stat: fake{}.stat, readDir: fake{}.readDir, readFile: fake{}.readFile}
	_, err := f.find("claude")
	var nf *NotFoundError
	if !errors.As(err, &nf) || len(nf.Looked) < 5 || nf.Looked[0] != "/a" || nf.Looked[1] != "/b" || nf.Looked[2] != "/h/.local/bin" {
		t.Errorf("%v, looked in %q", err, nf.Looked)
	}
	for file, want := range map[string]string{"/x": "no such file", "/d": "is a directory", "/f": "not executable"} {
		f.stat = fake{"/d": "d", "/f": "-"}.stat
		if _, err := f.find(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

func TestLookPathOnDisk(t *testing.T) {
	if os.PathSeparator != '/' {
		t.Skip("makes files with unix permissions")
	}
	dir := filepath.Join(t.TempDir(), "with space")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	prog := filepath.Join(dir, "agent")
	if err := os.WriteFile(prog, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("agent", link); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"agent": prog, "link": link, prog: prog} {
		if got, err := LookPath(name, vars{"PATH": dir}, "linux"); got != want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
