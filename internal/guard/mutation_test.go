package guard

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"reprise/internal/guard/names"
)

// What a policy covers, and what touches it, counts by the paths as they are written
// and by where they lead.
func TestCoversAndTouching(t *testing.T) {
	w := newWorld(t)
	if err := os.Symlink(w.mem, filepath.Join(w.work, "to-memory")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	p := Policy{WorkDir: w.work, DenyAll: []string{w.mem}, DenyWrite: []string{filepath.Join(w.work, "kept")}, Home: w.home}
	touching := p.Touching()
	for path, want := range map[string][2]bool{
		w.mem: {true, true}, w.mem + "/x/y": {true, true}, filepath.Dir(w.mem): {false, true}, w.mem + "-other": {false, false}, w.work + "/to-memory": {true, true}, w.work + "/to-memory/x": {true, true},
		w.work + "/kept": {false, true}, w.work + "/kept/x": {false, true}, w.work: {false, true}, w.work + "/other": {false, false}, "": {false, false}, "/": {false, true},
	} {
		d, covers := p.Covers(path)
		if got := [2]bool{covers, touching(path)}; got != want {
			t.Errorf("%s: covers and touching are %v, want %v", path, got, want)
		}
		if covers && d != w.mem {
			t.Errorf("%s: covered by %s", path, d)
		}
	}
}

// unitCases are cases about parts of the guard that no command tells of.
func unitCases(t *testing.T, p asked) (out []mutationCase) {
	add := func(name string, say func() string) { out = append(out, mutationCase{name, say}) }
	add("fixed rules", func() string {
		var b strings.Builder
		for _, n := range BuiltIn() {
			fmt.Fprint(&b, n.Name, fixed(n.Name), n.Fixed)
		}
		return b.String()
	})
	for _, path := range []string{p.mem, p.mem + "/x", filepath.Dir(p.mem), p.mem + "-other", p.work, "", "/", p.work + "/x"} {
		add("covers "+path, func() string {
			d, ok := p.policy(false).Covers(path)
			return fmt.Sprint(d, ok, p.policy(true).Touching()(path), p.policy(false).Touching()(path), Resolve(path))
		})
	}
	for _, c := range []string{"grep -R x .", "find . | xargs cat", "cat **/*.go", "grep -R x src", "find . -type f | xargs cat"} {
		add("in a large tree: "+c, func() string {
			defer func(old int) { maxWalk = old }(maxWalk)
			maxWalk = 60
			return p.said(p.rules().Command(c, p.dir))
		})
	}
	crowded := linked(t, nil)
	crowded.put(t, map[string]string{".env": "", "src/.env": "", "src/x": ""})
	for _, pattern := range []string{"**/.e?v", "**/*.go", "**/id_r*", "src/.e*", ".ssh/id_?sa"} {
		for _, most := range []int{0, 1 << 20} {
			add(fmt.Sprint("names for ", pattern, ", looking at ", most), func() string {
				defer func(old int) { maxWalk = old }(maxWalk)
				maxWalk = most
				return newAnalysis(crowded.rules()).secretFor(pattern, crowded.dir, false, false)
			})
		}
	}
	for _, names := range []string{"x.go", "-x", "k.pem", "two -words"} {
		o, ok := tracked(t, names)
		for _, c := range []string{"git ls-files | xargs cat", "git ls-files | xargs grep x", "git ls-files src | xargs grep x; git ls-files | xargs grep -l y", "git ls-files -z | xargs -0 grep x", "ls; git ls-files | xargs -n1 head -1"} {
			if ok {
				add("in the index "+names+": "+c, func() string { return o.said(o.judge(c)) })
			}
		}
	}
	for name, tt := range nested() {
		o := newProject(t)
		o.put(t, tt.files)
		for _, c := range []string{"git status", "cd src && git diff", "git status; git diff", "git add sub/mod", "git add f"} {
			add("nested: "+name+": "+c, func() string { return string(o.judge(c).Decision) })
		}
	}
	for name, tt := range repositorySettings() {
		o := newProject(t)
		o.put(t, map[string]string{".git/config": tt.config, "evil.config": "[core]\n\tfsmonitor = ./x\n"})
		add("settings: "+name, func() string { return string(o.judge(tt.command).Decision) })
	}
	for file, c := range turningFiles() {
		o := newProject(t)
		add("turned without "+file, func() string { return string(o.judge(c).Decision) })
		q := newProject(t)
		q.put(t, map[string]string{file: ""})
		add("turned by "+file, func() string { return string(q.judge(c).Decision) + string(q.judge("cd src && "+c).Decision) })
	}
	for _, v := range versionsOfTools() {
		o := newProject(t)
		o.put(t, map[string]string{v.file: v.text})
		add("version: "+v.name, func() string { return p.said(o.judge(v.command)) + p.said(o.judge("cd sub && "+v.command)) })
	}
	for _, v := range versionsOfManagers() {
		o, r := managedProject(t)
		o.put(t, map[string]string{v.file: v.text})
		add("manager: "+v.name, func() string { return o.judgeBy(r, "jq . f") + o.judgeBy(r, "cd sub; node -v") + o.judgeBy(r, "cat f") })
	}
	for file := range pythonFiles() {
		o := newProject(t)
		o.put(t, map[string]string{"sub/" + file: ""})
		add("Python beside "+file, func() string { return string(o.judge("cd sub; python3 -m json.tool f").Decision) })
	}
	bare, secret := linked(t, nil), linked(t, nil)
	secret.put(t, map[string]string{".env": "", "src/a.pem": "", ".hidden/x.pem": ""})
	for _, c := range append(showSecrets, passSecrets...) {
		add("without secrets: "+c, func() string { return p.said(bare.judge(c)) })
		add("with secrets: "+c, func() string { return p.said(secret.judge(c)) })
	}
	for _, c := range append(printedAsked, printedAllowed...) {
		add("printed: "+c, func() string { return p.said(p.rules().Command(c, p.dir)) })
	}
	seeded := rand.New(rand.NewPCG(3, 5))
	for i := range 500 {
		text := oddText(seeded)
		if i < len(plainSettings) {
			text = plainSettings[i]
		}
		add(fmt.Sprintf("settings %q", text), func() string {
			list, sound := gitSettingsOf(text)
			return fmt.Sprintf("%+v %v", list, sound)
		})
	}
	for _, tt := range append(trueSettings("https://example.org"), moreSettings()...) {
		o := newProject(t)
		o.put(t, tt.files)
		o.put(t, map[string]string{".git/config": tt.config})
		add("truly: "+tt.name, func() string { return p.said(o.judge(tt.command)) })
	}
	managed, r := managedProject(t)
	for _, file := range []string{".tool-versions", "mise.toml", ".mise.toml"} {
		for _, text := range []string{"jq path:./x\n", "jq 1.7\n", strings.Repeat("#", maxSmall+1)} {
			for _, c := range []string{"jq . f; cd sub; jq . g", "cat f", "node --version"} {
				add("managed by "+file+": "+c, func() string {
					managed.put(t, map[string]string{file: text})
					defer os.Remove(filepath.Join(managed.dir, file))
					return managed.judgeBy(r, c)
				})
			}
		}
	}
	add("managed by nothing", func() string { return managed.judgeBy(r, "jq . f") })
	for file, name := range map[string]string{"interrupt.txt": "INTERRUPT_FILE", "error.txt": "ERROR_FILE", "progress.json": "PROGRESS_FILE"} {
		loop := *r
		loop.Own, loop.Writes = []string{managed.outside}, true
		loop.Roots = append(loop.Roots, filepath.Join(managed.outside, "asks"))
		loop.Env = func(n string) string {
			if n == name {
				return filepath.Join(managed.outside, "asks", "run", file)
			}
			return ""
		}
		add("the loop's "+name, func() string { return managed.judgeBy(&loop, `echo x > "$`+name+`"`) })
	}
	many := newProject(t)
	many.put(t, map[string]string{"-oPWNED": "", "--pre=evil": ""})
	for _, c := range optionNames {
		add("names that are options: "+c, func() string { return string(many.judge(c).Decision) })
	}
	for _, text := range []string{"a\xffb", "a\x00b", "ls \xc3\x28", "ls é"} {
		add(fmt.Sprintf("bytes %q", text), func() string { return p.said(p.rules().Command(text, p.dir)) })
	}
	deep := `"x"`
	for range 120 {
		deep = "[" + deep + "]"
	}
	for _, in := range []string{`{"a":` + deep + `}`, `{"a":"` + strings.Repeat("y", 5000) + `"}`, `{"a":"x\u0000"}`, `{"a":"` + p.mem + `\n"}`, `{"a":[]}`, `{"a":1}`} {
		add("odd tool", func() string {
			return string(Memory(p.policy(false), ToolCall{Name: "frob", Input: []byte(in)}).Decision)
		})
	}
	add("cwd", func() string {
		v := Memory(p.policy(false), ToolCall{Name: "Bash", Input: []byte(`{"command":"cat x"}`), Cwd: p.mem})
		return string(v.Decision) + string(Memory(p.policy(false), ToolCall{Name: "Read", Input: []byte(`{"file_path":"x"}`), Cwd: p.mem}).Decision)
	})
	add("a home elsewhere", func() string {
		r := p.rules()
		r.Home = "/nowhere/home" // not below the directories of what is temporary
		return p.said(r.Judge(toolCall{kind: "write", name: "Write", texts: texts("file_path", "~/x")}.call(p.dir)))
	})
	for _, b := range beginnings {
		add("begun in "+b.dir+": "+b.input, func() string { return b.said(p.world) })
	}
	own, ownRules := ownProject(t)
	for _, c := range append(ownWrites[:len(ownWrites):len(ownWrites)], plainWrites...) {
		add("with writes allowed: "+c, func() string { return p.said(ownRules.Command(c, own.dir)) })
	}
	for _, tt := range meantRules {
		r := own.rules()
		r.List = []Rule{{Shape: tt.shape, Decision: Allow}}
		add("by the rule "+tt.shape+": "+tt.command, func() string { return p.said(r.Command(tt.command, own.dir)) })
	}
	for _, c := range drives {
		add("drives: "+c, func() string {
			return p.said(p.rules().Judge(toolCall{kind: "shell", name: "PowerShell", texts: texts("command", c)}.call(p.dir)))
		})
	}
	for name, tt := range gitSecretsIn {
		o := newProject(t)
		o.put(t, map[string]string{".git/config": tt.config})
		for _, c := range append(tt.asked[:len(tt.asked):len(tt.asked)], tt.passed...) {
			add("secrets of git, "+name+": "+c, func() string { return p.said(o.judge(c)) })
		}
	}
	for _, pattern := range []string{"[[:alnum:]]", "[[:lower:]]", "[[:upper:]]", "[[:punct:]]", "[[:graph:]]", "[[:print:]]", "[[:space:]]", "[[:blank:]]", "[[:cntrl:]]", "[[:xdigit:]]", "[[:word:]]", "[![:lower:]]", "[![:upper:]]", "[[:alpha]", "[[:alpha", "???", "??x", "[!a]?x", "[A-Z]", "[!A-Z]", "[!0-9]", "[0-9]", "[!a-z]", "[\\a]", "[!\\a]", "a\\", "\\[a]", "*.go", "[!.]x", "[^a-c]*", "[[:alpha:]]*", "[![:digit:]]", "[]a]", "[!]a]", "[a", "\\*x", "[\\]]x", "a?c", "*a*b*", "[a-c]x", "[+-9]", "[[=a=]]", "[x-[:alpha:]]", "[[:nope:]]", "[é-ü]", "", "**", "a[/]b", "\\", "[b]??", "[!Ã]?", "\\[[.x.]]", "[[:]"} {
		for _, name := range []string{"", "a", "x", "ax", "Ax", "]x", "]", ".x", "aXb", "abc", "é", "éx", "x.go", "*x", "+", "5", "[a", "\\", "_", " ", "\t", "f", "G", "\xff", "[a]", "Z", "aé", ":", "!", "[z", "[x"} {
			add("fits "+pattern+" "+name, func() string { return fmt.Sprint(names.Match(pattern, name), names.Widen(pattern)) })
		}
	}
	out = append(out, nameCases()...)
	out = append(out, indexCases(t)...)
	out = append(out, treeCases(t, p)...)
	out = append(out, policyCases(t, p)...)
	add("long word", func() string {
		return Memory(p.policy(false), bash("cat "+p.mem+"/"+strings.Repeat("x", 300))).Reason
	})
	return out
}

// plainSettings are texts of settings of which each has one thing that matters.
var plainSettings = []string{
	"[core]\x00\nfsmonitor = ./x\n", "[core]\n1x = ./x\n", "[core]\n-x = ./x\n", "[core]\nx1-y = ./x\n", "[core]\n# c", "[core]\n; c\n", "[core]\nfsmonitor", "[core]\nfsmonitor \n", "[core]\r\nfsmonitor = a\r\nb = c\r\n", "[core]\nfsmonitor = a\rb\n",
	"[core]\nfsmonitor = a\x00b\n", "[core x\"]\ny = 1\n", "[core", "[co re]\n", "[core!]\nx = 1\n", "[core.Ab]\nx = 1\n", "[core\n]\nx = 1\n", "[core x]\nx = 1\n", "[core \n\"x\"]\nx = 1\n", "[core \"x\n\"]\ny = 1\n", "[core \"x\\\n\"]\ny = 1\n", "[core \"x\\\"y\"]\nz = 1\n", "[core \"x\" ]\ny = 1\n", "[core \"x\"]y = 1\n", "[core \"", "[", "[]\nx = 1\n", "\ufeff[core]\nx = 1\n", "x = 1\n[core]\n", "[core]\n!x = 1\n", "[core]\nx! = 1\n", "[core]\nX_y = 1\n",
}

// moreSettings are those of which each name is one that git runs, or looks up.
func moreSettings() (out []trueSetting) {
	for _, key := range []string{
		"gc.recentObjectsHook", "imap.tunnel", "svn.authorsProg", "uploadpack.packObjectsHook", "difftool.x.cmd", "mergetool.x.cmd", "guitool.x.cmd", "difftool.x.path", "browser.x.path", "man.x.path", "remote.o.vcs", "merge.x.driver", "trailer.x.cmd", "trailer.x.command",
		"lfs.x.smudge", "lfs.x.path", "lfs.x.clean", "lfs.standalonetransferagent", "hook.x.command", "tar.x.command", "gpg.x.program", "gpg.ssh.defaultKeyCommand", "sequence.editor", "interactive.diffFilter", "core.alternateRefsCommand", "core.askPass", "core.editor",
	} {
		i, j := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
		section := "[" + key[:i] + "]\n"
		if i != j {
			section = "[" + key[:i] + " \"" + key[i+1:j] + "\"]\n"
		}
		out = append(out, trueSetting{key, section + key[j+1:] + " = ./x\n", nil, "git log -p", true})
	}
	for _, address := range []string{"https://a/b", "http://a/b", "ssh://a/b", "git://a/b", "git+ssh://a/b", "ssh+git://a/b", "https://-a", "foo://a", "a:b", "./a", "-a:b", "a::b", ":b", "a/b:c", ""} {
		out = append(out, trueSetting{"fetched from " + address, lazy + "[remote \"o\"]\nurl = " + address + "\n", nil, "git log", true}, trueSetting{"put in the place of " + address, lazy + "[remote \"o\"]\nurl = https://a/b\n[url \"" + address + "\"]\ninsteadOf = x:\n", nil, "git log", true})
	}
	for _, more := range []string{
		"[credential]\nhelper = store\n", "[credential]\nhelper = ./x\n", "[credential]\nhelper =\n", "[core]\nsshCommand =\n", "[remote \"p\"]\nproxy =\n", "[remote \"p\"]\nuploadpack = ./x\n", "[http]\ncookieFile = x\n", "[http]\ncookieFile = x\nsaveCookies = true\n", "[http \"a\"]\nsaveCookies = true\ncookieFile = x\n", "[user]\nhelper = ./x\n", "[credential]\nuseHttpPath = ./x\n",
		"[remote \"p\"]\npromisor\n", "[remote \"p\"]\npromisor = no\nurl = foo://x\n", "[remote \"p\"]\npromisor = off\nurl = foo://x\n", "[remote \"p\"]\npromisor = 0\nurl = foo://x\n", "[remote \"p\"]\npromisor = yes\nurl = foo://x\n", "[core]\nhooksPath\n", "[core]\nhooksPath = ~\n", "[core]\nhooksPath = ~/x\n", "[core]\nhooksPath = ~root/x\n", "[core]\nhooksPath = :(optional)x\n",
		"[alias]\nx = !y\nz = log\n", "[alias \"st\"]\ncommand = !y\n", "[submodule \"x\"]\nupdate = !y\n", "[protocol]\nallow = user\n", "[protocol]\nallow = never\n", "[protocol \"ext\"]\nallow = always\n", "[filter \"lfs\"]\nclean = git-lfs clean -- %f\n", "[filter \"lfs\"]\nclean = git-lfs clean; ./x\n",
	} {
		out = append(out, trueSetting{more, lazy + "[remote \"o\"]\nurl = https://a/b\n" + more, nil, "git log", true}, trueSetting{"alone: " + more, more, nil, "git commit -m x", true})
	}
	return out
}

// What the parts of the guard answer that no command tells of, as it is recorded in
// testdata/units.txt: a short answer whole, of a long one a sum, and one sum for all of a kind
// (its first two words) where there are hundreds. Whoever takes a rule away of which these cases
// alone tell fails here, and not in script/mutate only.
func TestUnitsAreAsRecorded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the record has the paths of one system; script/mutate asks the same cases")
	}
	p := newAsked(t)
	own := regexp.MustCompile(`/[^ "\n:]*/` + t.Name() + `[0-9]*/[0-9]{3}`) // each world's directory
	tidy := func(s string) string { return own.ReplaceAllString(p.short.Replace(s), "TMP") }
	sum := func(s string) string {
		if len(s) <= 60 {
			return s
		}
		h := sha256.Sum256([]byte(s))
		return fmt.Sprintf("%d bytes, %x", len(s), h[:6])
	}
	said := map[string][]string{}
	for _, c := range unitCases(t, p) {
		if c.name == "long word" {
			continue // what it says has as many bytes as the name of the world's directory
		}
		name := tidy(c.name)
		words := strings.SplitN(name, " ", 3)
		kind := strings.Join(words[:min(2, len(words))], " ")
		answer := tidy(c.say())
		if kind == "with secrets:" {
			answer, _, _ = strings.Cut(answer, " ") // the rest names files in the order of the file system
		}
		said[kind] = append(said[kind], fmt.Sprintf("%q: %q\n", name, sum(answer)))
	}
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(said)) { // some are kept in maps
		slices.Sort(said[kind])
		text := strings.Join(said[kind], "")
		if len(said[kind]) > 100 {
			text = fmt.Sprintf("%d of %q: %s\n", len(said[kind]), kind, sum(text))
		}
		b.WriteString(text)
	}
	isRecorded(t, "units.txt", b.String())
}
