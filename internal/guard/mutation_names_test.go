package guard

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/guard/names"
)

// nameCases are what names tell, each by itself: where a whole command is judged, another
// rule often says the same.
func nameCases() (out []mutationCase) {
	add := func(name string, say func() string) { out = append(out, mutationCase{name, say}) }
	for _, p := range []string{
		".claude/output-styles/x", ".gemini/agents/x", ".gemini/skills/x", ".github/skills/x", ".github/prompts/x", ".cursor/commands/x", ".cursor/rules/x", ".zed/settings.json", ".zed/x",
		".idea/runConfigurations/x", ".idea/runconfigurations/x", ".run/x", "x.code-workspace", "devcontainer.json", ".devcontainer.json", ".vscode/tasks.json", "tasks.json",
		"terraform.rc", "env.local", "env.staging", "env.development", "env.test", ".cargo/credentials.toml", "credentials.toml", "x/settings.xml", ".m2/settings.xml",
	} {
		add("name "+p, func() string { return fmt.Sprint(names.Steers("/w/"+p), names.Secret("/w/"+p)) })
	}
	for _, stem := range []string{"token", "tokens", "secret", "secrets", "password", "passwords", "passwd", "credential", "credentials", "apikey", "api_key", "apikeys", "api_keys", "x"} {
		for _, ext := range []string{".txt", ".csv", ".yml", ".yaml", ".toml", ".ini", ".xml", ".conf", ".cfg", ".properties", ".json", ".go"} {
			add("name "+stem+ext, func() string { return names.Secret("/w/" + stem + ext) })
		}
	}
	for _, s := range names.UsualSecrets() {
		for _, pattern := range []string{s[:len(s)-1] + "?", "?" + s[1:], s[:len(s)/2] + "*" + s[len(s)/2+1:], s[:1] + "?" + s[2:], s[:len(s)-2] + "??"} {
			add("aimed "+pattern, func() string { return fmt.Sprint(names.Aimed(pattern)) })
		}
	}
	for _, pattern := range []string{"[ms]*", "[Rs]*", "[cs]*", "[.s]*", "[is]*", "[ps]*", "*.pem", "*.go", "*.k", "", ".e*", "deploy.pem", "*.tfvars", "id_dsa", "x.kdbx"} {
		add("aimed "+pattern, func() string { return fmt.Sprint(names.Aimed(pattern)) })
	}
	for _, v := range []string{"MONGO_URI", "MONGODB_URI", "AMQP_URL", "POSTGRES_URL", "MYSQL_URL", "CONNSTR", "CONNECTOR"} {
		add("variable "+v, func() string { return fmt.Sprint(names.SecretVariable(v)) })
	}
	for _, p := range []string{"/bin/x", "/sbin/x", "/lib/x", "/lib64/x", "/usr/x", "/usr/local/etc/x", "/opt/x", "/snap/x", "/nix/store/x", "/binx", "/etc/os-release", "/etc/localtime", "/proc/mounts", "/dev/fd/3", "/dev/sda", "/home/x"} {
		add("system "+p, func() string { return fmt.Sprint(system(p), device(p)) })
	}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "OTHER", "NO_PROXY"} {
		for _, value := range []string{"http://me:pw@proxy", "http://proxy", "http://me@proxy", ""} {
			add("proxy "+name+" "+value, func() string {
				a := newAnalysis(&Rules{Env: func(string) string { return value }})
				return fmt.Sprint(a.opensProxy(name), newAnalysis(&Rules{}).opensProxy(name))
			})
		}
	}
	return out
}

// treeCases are cases of what lies in a tree: indexes with links and repositories in them,
// and sources.
func treeCases(t *testing.T, p asked) (out []mutationCase) {
	add := func(name string, say func() string) { out = append(out, mutationCase{name, say}) }
	linkedTo := linked(t, map[string]string{"src/link": "OUT/secret"})
	linkedTo.put(t, map[string]string{
		".git/index": string(indexBytes(2, 20, indexEntry{"src/link", modeLink, false})), "bare/HEAD": "ref: refs/heads/main\n", "bare/objects/x": "", "bare/refs/x": "",
		"bare/index": string(indexBytes(2, 20, indexEntry{"link", modeLink, false}, indexEntry{"x /etc", 0o100644, false}, indexEntry{linkedTo.dir + "/evil", modeRepository, false})), "evil/.git/HEAD": "ref: refs/heads/main\n", "evil/.git/config": "[core]\nfsmonitor = ./x\n",
	})
	if err := os.Symlink(filepath.Join(linkedTo.outside, "secret"), filepath.Join(linkedTo.dir, "bare", "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"git ls-files | xargs cat", "git ls-files src | xargs cat", "cd bare; git ls-files | xargs cat", "cd bare; git status", "git status", "cd src; git status", "git ls-files src bare | xargs cat", "git ls-files nothing | xargs cat", "git ls-files '*' | xargs cat"} {
		add("links of an index: "+c, func() string { return p.said(linkedTo.judge(c)) })
	}
	add("beside a repository that is no workspace", func() string {
		back, err := os.Getwd()
		if err == nil {
			err = os.Chdir(linkedTo.dir)
		}
		if err != nil {
			return err.Error()
		}
		defer os.Chdir(back)
		r := linkedTo.rules()
		r.Roots = nil
		return p.said(r.Command("echo x > f; cat f", linkedTo.dir))
	})
	for _, roots := range [][]string{{"/usr/bin"}, {linkedTo.dir}} {
		for _, sh := range []string{"/usr/bin/bash", "bash", "./bash", ""} {
			add(fmt.Sprint("by the shell ", sh, " with ", len(roots[0]) < 10), func() string {
				r := linkedTo.rules()
				r.Roots = roots
				return p.said(r.Judge(toolCall{kind: "shell", name: "Bash", texts: []string{"command", "ls", "shell", sh}}.call(linkedTo.dir)))
			})
		}
	}
	sources := newProject(t)
	sources.put(t, map[string]string{"a.go": "package a\n// " + strings.Repeat("x", 100) + "\n", "sub/b.go": "package b; import \"C\"\n", "../../outside/c.go": "package c; import \"C\"\n"})
	for _, most := range []int{10, 1 << 20} {
		for _, c := range []string{"go vet ./...", "cd sub; go vet", "cd /; go vet ./...", "go list ./...", "go doc fmt", "[ -f x ] && cd sub; go vet ./..."} {
			add(fmt.Sprint("sources, looking at ", most, ": ", c), func() string {
				defer func(old int) { maxSources = old }(maxSources)
				maxSources = most
				return p.said(sources.judge(c))
			})
		}
	}
	return out
}

// Indexes that are damaged are read as far as they can be, and whole ones to the end.
func TestIndexesOfAllKinds(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "index")
	for _, version := range []int{2, 3, 4} {
		for _, id := range []int{20, 32} {
			data := indexBytes(version, id, indexEntry{"d/" + strings.Repeat("a", 300), 0o100644, version > 2}, indexEntry{"d/b", modeLink, false}, indexEntry{"e", modeRepository, false})
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(indexed(file, modeLink, 10), indexed(file, modeRepository, 10)); got != "[d/b] [e]" {
				t.Errorf("version %d with ids of %d bytes: %s", version, id, got)
			}
		}
	}
	for _, c := range indexCases(t) {
		c.say() // none panics
	}
}

// policyCases are runs that may not read a directory, wherever that and the home lie.
func policyCases(t *testing.T, p asked) (out []mutationCase) {
	add := func(name string, say func() string) { out = append(out, mutationCase{name, say}) }
	top := t.TempDir()
	for _, dir := range []string{"home/m", "home/a/long/way/down/m", "m", "home", "work"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	commands := []string{
		"cat ~/m/x", "cat $HOME/m/x", "cat ${HOME}/m/x", "cd $HOME; cat m/x", "cd ~; cat m/x", "cd; cat m/x", "echo m", "cat m/x", "echo ~/m", "python3 -c 'open(\"~/m/x\")'", "python3 -c 'open(\"../m\")'", "python3 -c '~/../m'",
		"echo long/way/down/m", "echo a/long/way/down/m", "echo ~/.", "ls TOP/*", "ls -d TOP/*", "cat TOP/*/x", "cat TOP/*/m/x", "cat TOP/h*/m/x", "cat TOP/[h]ome/m/x", "rm -r TOP/m*", "grep -r x TOP/*", "grep -r x TOP/**", "cat TOP/**/x", "cat TOP/h**/x", "cat TOP/q**/x", "cat TOP/?*/?/x*",
		"cat TOP/????/?/*x", "cat TOP/*/*/*/*/x", "cat TOP/[home/m/x", "cat TOP/ho*", "cat TOP/*", "ls TOP", "cat TOP/m/x", "rm -r TOP", "cat /*", "cat /*/x", "echo x > TOP/*/x", "cat ~", "ls ~", "cat '~/m/x'", "cat TOP/home/../m/x", "cat TOP/work/./../m/x", "cat TOP//m/x", "echo m > f", "mv TOP/m x", "touch ~/m/x", "touch TOP/?/x",
	}
	for _, home := range []string{"", "home", "m", "none"} {
		for _, closed := range []string{"m", "home/m", "home/a/long/way/down/m", "home", ""} {
			pol := Policy{WorkDir: filepath.Join(top, "work"), Home: filepath.Join(top, home), DenyAll: []string{filepath.Join(top, closed)}}
			if home == "" {
				pol.Home = ""
			}
			if closed == "" {
				pol.DenyAll, pol.DenyWrite = nil, []string{filepath.Join(top, "m")}
			}
			for _, c := range commands {
				c = strings.ReplaceAll(c, "TOP", top)
				add("closed is "+closed+", home "+home+": "+c, func() string {
					return strings.ReplaceAll(p.said(Memory(pol, bash(c)))+fmt.Sprint(pol.Touching()(""), pol.Touching()("x")), top, "TOP")
				})
			}
		}
	}
	for _, path := range []string{"nowhere", "loop", "sub/up", "nowhere/x", "inner/x", "tosettings", "none/x"} {
		add("resolved "+path, func() string { return p.short.Replace(Resolve(filepath.Join(p.dir, path)) + Resolve(path)) })
	}
	for name, value := range map[string]string{"INTERRUPT_FILE": "asks/run/other.txt", "ERROR_FILE": "asks/run/x", "PROGRESS_FILE": "other/run/x"} {
		r := p.rules()
		r.Own = []string{p.outside}
		r.Env = func(n string) string {
			if n == name {
				return filepath.Join(p.outside, value)
			}
			return ""
		}
		for _, file := range []string{value, "asks/run/interrupt.txt", "asks/run/x"} {
			add("the loop's "+name+": "+file, func() string { return p.said(r.Command("echo x > "+filepath.Join(p.outside, file), p.dir)) })
		}
	}
	add("many names in a directory", func() string {
		defer func(old int) { maxNames = old }(maxNames)
		maxNames = 2
		return p.said(p.rules().Command("sort *", p.dir))
	})
	return out
}

// indexEntry is an entry of an index: a name, its mode, and whether it has more flags.
type indexEntry struct {
	name  string
	mode  uint32
	flags bool
}

// indexBytes is an index of a version, with ids of a length.
func indexBytes(version, id int, entries ...indexEntry) []byte {
	b := binary.BigEndian.AppendUint32([]byte("DIRC"), uint32(version))
	b = binary.BigEndian.AppendUint32(b, uint32(len(entries)))
	before := ""
	for _, e := range entries {
		start := len(b)
		b = append(b, make([]byte, 24)...)
		b = binary.BigEndian.AppendUint32(b, e.mode)
		b = append(append(b, make([]byte, 12)...), strings.Repeat("\xab", id)...)
		flags := uint16(min(len(e.name), 0xfff))
		if e.flags {
			flags |= 0x4000
		}
		b = binary.BigEndian.AppendUint16(b, flags)
		if e.flags {
			b = append(b, 0x20, 0)
		}
		name := e.name
		if version >= 4 {
			same := 0
			for same < min(len(before), len(name)) && before[same] == name[same] {
				same++
			}
			b = appendStripped(b, len(before)-same)
			name = name[same:]
		}
		before = e.name
		b = append(append(b, name...), 0)
		for version < 4 && (len(b)-start)%8 != 0 {
			b = append(b, 0)
		}
	}
	return append(b, make([]byte, id)...)
}

// appendStripped writes a number as the names of version 4 begin with.
func appendStripped(b []byte, n int) []byte {
	code := []byte{byte(n & 0x7f)}
	for n >>= 7; n > 0; n >>= 7 {
		n--
		code = append([]byte{byte(n&0x7f) | 0x80}, code...)
	}
	return append(b, code...)
}

// indexCases are indexes of all kinds, whole, cut off and with a byte that is wrong.
func indexCases(t *testing.T) (out []mutationCase) {
	add := func(name string, say func() string) { out = append(out, mutationCase{name, say}) }
	file := filepath.Join(t.TempDir(), "index")
	read := func(data []byte) string {
		has := func(mode uint32, most int) []string {
			return entriesOf(data, most, func(m uint32, _ []byte) bool { return m == mode }, binary.BigEndian.AppendUint32(nil, mode)...)
		}
		return fmt.Sprint(has(modeLink, 100), has(modeRepository, 1))
	}
	long := "d/" + strings.Repeat("a", 20000)
	lists := map[string][]indexEntry{
		"plain":    {{"a", 0o100644, false}, {"l", modeLink, false}, {"m", modeRepository, false}, {"n", modeRepository, false}},
		"flags":    {{"a", 0o100644, true}, {"l", modeLink, false}, {"m", modeLink, true}},
		"long":     {{long, 0o100644, false}, {long + "b", modeLink, false}, {"e", modeLink, false}, {"f", modeLink, false}},
		"middling": {{"d/" + strings.Repeat("a", 200), 0o100644, false}, {"d/b", modeLink, false}, {"e", modeLink, false}},
		"one":      {{"l", modeLink, false}},
		"none":     {},
	}
	for name, list := range lists {
		for _, version := range []int{2, 3, 4} {
			for _, id := range []int{20, 32} {
				data := indexBytes(version, id, list...)
				kind := fmt.Sprint("index ", name, " ", version, " ", id)
				add(kind, func() string { return read(data) })
				if len(data) > 1000 {
					continue
				}
				for cut := 0; cut < len(data); cut += 3 {
					add(fmt.Sprint(kind, " cut at ", cut), func() string { return read(data[:cut]) })
				}
				for at := 12; at < len(data); at++ {
					for _, c := range []byte{0xff, 0x85, 1} {
						wrong := append([]byte(nil), data...)
						wrong[at] = c
						add(fmt.Sprint(kind, " with ", c, " at ", at), func() string { return read(wrong) })
					}
				}
			}
		}
	}
	add("an index that is too large", func() string {
		defer func(old int64) { maxIndex = old }(maxIndex)
		maxIndex = 10
		if err := os.WriteFile(file, indexBytes(2, 20, lists["plain"]...), 0o600); err != nil {
			return err.Error()
		}
		return fmt.Sprint(indexed(file, modeLink, 100))
	})
	for b := range 300 {
		code := []byte{byte(b) | 0x80, byte(b>>1) | 0x80, byte(b>>2) | 0x80, byte(b) & 0x7f, 0x80, 0x80, 0x81, 1}[b%4:]
		add(fmt.Sprintf("stripped %x", code), func() string { return fmt.Sprint(stripped(code)) })
	}
	for name, file := range map[string]string{"nothing": "/nothing", "a device": "/dev/null", "a directory": "/", "a file": "../guard/guard.go"} {
		add("what is read of "+name, func() string {
			data, ok := fileOf(file, 1<<20)
			_, whole := indexData(file)
			return fmt.Sprint(len(data) > 0, ok, whole)
		})
	}
	return out
}
