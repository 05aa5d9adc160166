package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testdata/classes.txt has the known ways past guards by class, as headings: the
// environment, what evaluates text, what leaves the machine, grouping, sequences,
// substitutions, spellings of words, options, the guard's own, redirections, paths,
// the project's own code, hidden characters, wrappers, and what has to pass. A line
// is a verdict and a command, with \n, \t and \\ for what they say.
func TestClasses(t *testing.T) {
	p := newProject(t)
	of := map[string]int{}
	for _, c := range classes(t) {
		of[c.ID]++
		if v := p.judge(c.Command); v.Decision != c.Want {
			t.Errorf("%s: %s, want %s: %s\n\t%s", c.ID, v.Decision, c.Want, c.Command, v.Reason)
		}
	}
	if len(of) < 14 {
		t.Errorf("only %d classes", len(of))
	}
}

// classes are the commands of testdata/classes.txt, with their class as id.
func classes(t testing.TB) (out []corpusCase) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "classes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	unescape := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`)
	class := ""
	for _, l := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		if name, ok := strings.CutPrefix(l, "# "); ok {
			class = name
			continue
		}
		want, c, _ := strings.Cut(l, " ")
		out = append(out, corpusCase{ID: class, Command: unescape.Replace(c), Want: Decision(want)})
	}
	return out
}

// What a repository's own settings have git run is asked about at the commands of
// git that would run it; nothing is said of what is harmless.
func TestRepositorySettings(t *testing.T) {
	for name, tt := range repositorySettings() {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.put(t, map[string]string{".git/config": tt.config, "evil.config": "[core]\nfsmonitor = ./x\n"})
			if v := p.judge(tt.command); v.Decision != tt.want {
				t.Errorf("%s, want %s: %s", v.Decision, tt.want, v.Reason)
			}
		})
	}
}

// settingOf are settings of a repository, and what is said of a command there.
type settingOf struct {
	config, command string
	want            Decision
}

func repositorySettings() map[string]settingOf {
	return map[string]settingOf{
		"none":                    {"[core]\n\tbare = false\n", "git status", Allow},
		"fsmonitor":               {"[core]\n\tfsmonitor = touch PWNED\n", "git status", Ask},
		"fsmonitor in a subdir":   {"[core]\nfsmonitor=./x\n", "cd sub && git diff", Ask},
		"fsmonitor by -C":         {"[core]\nfsmonitor=./x\n", "git -C sub log", Ask},
		"fsmonitor of git itself": {"[core]\nfsmonitor = true\n", "git status", Allow},
		"case and spaces":         {"[ CORE ]\n  FsMonitor   =   ./x ; y\n", "git status", Ask},
		"on the header's line":    {"[core] fsmonitor = ./x\n", "git status", Ask},
		"continued":               {"[core]\nfsmonitor = \\\n./x\n", "git status", Ask},
		"quoted":                  {"[core]\nfsmonitor = \"./x\"\n", "git status", Ask},
		"a comment":               {"[core]\n# fsmonitor = ./x\n", "git status", Allow},
		"external diff":           {"[diff]\nexternal = ./x\n", "git diff", Ask},
		"a driver of diffs":       {"[diff \"x.y\"]\ncommand = ./x\n", "git diff", Ask},
		"textconv":                {"[diff \"x]\"]\ntextconv = ./x\n", "git log -p", Ask},
		"old subsection":          {"[diff.x]\ntextconv = ./x\n", "git show", Ask},
		"clean filter":            {"[filter \"x\"]\nclean = ./x\n", "git add f", Ask},
		"large files":             {"[filter \"lfs\"]\nclean = git-lfs clean -- %f\nprocess = git-lfs filter-process\n", "git status", Allow},
		"not quite large files":   {"[filter \"lfs\"]\nclean = \"git-lfs clean -- %f; ./x\"\n", "git status", Ask},
		"pager":                   {"[core]\npager = ./x\n", "git log", Ask},
		"harmless pager":          {"[core]\npager = less -FRX\n[pager]\nlog = cat\n", "git log", Allow},
		"pager of one command":    {"[pager]\nlog = ./x\n", "git log", Ask},
		"pager with a command":    {"[core]\npager = \"less; ./x\"\n", "git log", Ask},
		"signatures":              {"[gpg \"ssh\"]\nprogram = ./x\n", "git log --show-signature", Ask},
		"ssh of the user's":       {"[core]\nsshCommand = ssh -i key\n", "git status", Allow},
		"ssh with a promisor":     {"[core]\nsshCommand = ./x\n[remote \"o\"]\npromisor = true\n", "git log -p", Ask},
		"addresses as commands":   {"[protocol \"ext\"]\nallow = always\n", "git log", Ask},
		"hooks in the work":       {"[core]\nhooksPath = .husky\n", "git commit -m x", Ask},
		"hooks of worktree":       {"[core]\nhooksPath = .husky\n", "git worktree add w", Ask},
		"hooks of fetch":          {"[core]\nhooksPath = .husky\n", "git fetch", Ask},
		"hooks of maintenance":    {"[core]\nhooksPath = .husky\n", "git maintenance run", Ask},
		"hooks of submodule":      {"[core]\nhooksPath = .husky\n", "git submodule update", Ask},
		"hooks of bisect":         {"[core]\nhooksPath = .husky\n", "git bisect start", Ask},
		"hooks of subtree":        {"[core]\nhooksPath = .husky\n", "git subtree pull", Ask},
		"hooks do not look":       {"[core]\nhooksPath = .husky\n", "git status", Allow},
		"included":                {"[include]\npath = ../evil.config\n", "git status", Ask},
		"included nothing":        {"[include]\npath = ../none\n", "git status", Allow},
		"included itself":         {"[include]\npath = config\n", "git status", Ask},
		"included on condition":   {"[includeIf \"gitdir:/\"]\npath = ../evil.config\n", "git status", Ask},
		"a key for signatures":    {"[gpg \"ssh\"]\ndefaultKeyCommand = ./x\n", "git commit -m x", Ask},
		"a hook in the settings":  {"[hook \"x\"]\ncommand = ./x\nevent = pre-commit\n", "git commit -m x", Ask},
		"an extension of lfs":     {"[lfs \"extension.x\"]\nclean = ./x %f\n", "git add f", Ask},
		"a transfer of lfs":       {"[lfs]\nstandalonetransferagent = x\n[lfs \"customtransfer.x\"]\npath = ./x\n", "git status", Ask},
		"another setting of lfs":  {"[lfs]\nconcurrenttransfers = 3\n", "git status", Allow},
		"go asks git":             {"[core]\nfsmonitor = ./x\n", "go list ./...", Ask},
		"go asks git elsewhere":   {"[core]\nfsmonitor = ./x\n", "go list -C sub -f '{{.Dir}}' .", Ask},
		"go does not ask git":     {"[core]\nfsmonitor = ./x\n", "go list -m all", Allow},
		"go vets without git":     {"[core]\nfsmonitor = ./x\n", "go vet ./...", Allow},
		"only its version":        {"[core]\nfsmonitor = ./x\n", "git --version", Allow},
		"a promisor's program":    {"[remote \"o\"]\npromisor = true\nuploadpack = ./x\n", "git show", Ask},
		"an address as a command": {"[remote \"o\"]\nurl = ext::./x\n", "git log -p", Ask},
		"a viewer of help":        {"[man \"x\"]\ncmd = ./x\n", "git help log", Ask},
		"a browser of help":       {"[browser \"x\"]\ncmd = ./x\n", "git help -a log", Ask},
		"a tree elsewhere":        {"[core]\nworktree = ../../../outside\n", "git grep x", Ask},
		"a tree here":             {"[core]\nworktree = ..\n", "git grep x", Allow},
		"a backslash escaped":     {"[x]\n\ty = \\\\\n[core]\n\tfsmonitor = ./x\n", "git status", Ask},
		"a comment's backslash":   {"[x]\n# c \\\n[core]\n\tfsmonitor = ./x\n", "git status", Ask},
		"a line gone on with":     {"[x]\n\ty = \\\n[core]\n\tfsmonitor = ./x\n", "git status", Allow},
		"not git's":               {"[core]\n\t= x\n", "git status", Ask},
		"not git's, only listed":  {"[core]\n\t= x\n", "git config --list", Allow},
		"another user's file":     {"[include]\n\tpath = ~root/x\n", "git status", Ask},
		"a file of git's place":   {"[include]\n\tpath = %(prefix)/x\n", "git status", Ask},
		"an optional file":        {"[include]\n\tpath = :(optional)x\n", "git status", Ask},
		"a blank that may be two": {"[include]\n\tpath = a\tb\n", "git status", Ask},
		"the user's own file":     {"[include]\n\tpath = ~/more\n", "git status", Allow},
		"hooks of git's place":    {"[core]\n\thooksPath = %(prefix)/x\n", "git commit -m x", Ask},
		"hooks, taken back":       {"[core]\n\thooksPath = .husky\n\thooksPath = /none\n", "git commit -m x", Ask},
		"a filter alone promises": {"[core]\nsshCommand = ./x\n[remote \"o\"]\nurl = ssh://a/b\npartialclonefilter = blob:none\n", "git show", Ask},
		"a promise stays":         {"[core]\nsshCommand = ./x\n[remote \"o\"]\npromisor = yes\npromisor = no\n[remote \"p\"]\npromisor = false\n", "git show", Ask},
		"a promise without value": {"[core]\nsshCommand = ./x\n[remote \"o\"]\nurl = https://a/b\npromisor\n", "git show", Ask},
		"no promise":              {"[core]\nsshCommand = ./x\n[remote \"o\"]\npromisor = no\npromisor = OFF\npromisor = 0\npromisor =\npromisor = false\n", "git show", Allow},
		"no proxy takes back":     {"[core]\nsshCommand = ./x\n[remote \"o\"]\nurl = ssh://a/b\npromisor = true\n[remote \"p\"]\nproxy =\n", "git show", Ask},
		"a usual partial clone":   {"[remote \"o\"]\nurl = https://example.org/a/b.git\npromisor = true\npartialclonefilter = blob:none\n[remote \"p\"]\nurl = ../p\n", "git log -p", Allow},
		"one over ssh":            {"[remote \"o\"]\nurl = git@example.org:a/b.git\npromisor = true\n[url \"git@example.org:\"]\ninsteadOf = https://example.org/\n", "git log -p", Allow},
		"one with a known keeper": {"[remote \"o\"]\nurl = https://example.org/a/b\npromisor = true\n[credential]\nhelper = osxkeychain\n", "git log -p", Allow},
		"a keeper of passwords":   {"[remote \"o\"]\nurl = https://example.org/a/b\npromisor = true\n[credential]\nhelper = store --file=x\n", "git log -p", Ask},
		"a keeper for one":        {"[remote \"o\"]\nurl = https://example.org/a/b\npromisor = true\n[credential \"https://example.org\"]\nhelper = !./x\n", "git log -p", Ask},
		"a keeper, all there":     {"[remote \"o\"]\nurl = https://example.org/a/b\n[credential]\nhelper = !./x\n", "git log -p", Allow},
		"cookies are written":     {"[remote \"o\"]\nurl = https://example.org/a/b\npromisor = true\n[http]\ncookieFile = x\nsaveCookies = true\n", "git log -p", Ask},
		"cookies are read":        {"[remote \"o\"]\nurl = https://example.org/a/b\npromisor = true\n[http]\ncookieFile = x\n", "git log -p", Allow},
		"a directory promises":    {"[remote \"o\"]\nurl = ./b\npromisor = true\n", "git log -p", Ask},
		"a helper promises":       {"[remote \"o\"]\nurl = foo::b\npromisor = true\n", "git log -p", Ask},
		"a scheme promises":       {"[remote \"o\"]\nurl = foo://b\npromisor = true\n", "git log -p", Ask},
		"a name promises":         {"[remote \"./b\"]\npromisor = true\n", "git log -p", Ask},
		"an address turned":       {"[remote \"o\"]\nurl = https://a/b\npromisor = true\n[url \"foo::\"]\ninsteadOf = https://\n", "git log -p", Ask},
		"below a command":         {"[diff]\nexternal = ./x\n", "git stash list -p", Ask},
		"below another":           {"[core]\nfsmonitor = ./x\n", "git worktree list", Ask},
		"a pager of settings":     {"[core]\npager = ./x\n", "git config list", Ask},
		"no pager of settings":    {"[core]\nfsmonitor = ./x\n", "git config list", Allow},
		"an alias of one's own":   {"[alias]\nst = !./x\n", "git status", Allow},
		"an alias of a command":   {"[alias]\nWhatChanged = !./x\n", "git whatchanged", Ask},
		"monitor: yes":            {"[core]\nfsmonitor = Yes\n", "git status", Allow},
		"a submodule's update":    {"[submodule \"x\"]\nupdate = !./x\n", "git status", Ask},
		"a submodule, usual":      {"[submodule \"x\"]\nupdate = rebase\nactive = true\n", "git status", Allow},
		"too large":               {"[core]\n" + strings.Repeat("#\n", maxGitConfig), "git status", Ask},
	}
}

// A directory may be a bare repository without saying so, a worktree has its
// settings elsewhere, and each of two may have settings of its own.
func TestOtherRepositories(t *testing.T) {
	p := newProject(t)
	evil := "[core]\nfsmonitor = ./x\nworktree = .\n"
	for path, text := range map[string]string{
		"bare/HEAD": "ref: x\n", "bare/config": evil, "bare/objects/x": "", "bare/refs/x": "",
		"tree/.git": "gitdir: ../store/worktrees/t\n", "store/worktrees/t/commondir": "../..\n", "store/worktrees/t/config.worktree": "", "store/config": evil,
		"own/.git": "gitdir: ../apart\n", "apart/config": "", "apart/config.worktree": evil,
	} {
		path = filepath.Join(p.dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for c, want := range map[string]Decision{"git status": Allow, "cd bare && git status": Ask, "git -C bare log": Ask, "cd tree && git status": Ask, "cd own && git diff": Ask, "git --git-dir=bare status": Ask} {
		if v := p.judge(c); v.Decision != want {
			t.Errorf("%s: %s, want %s: %s", c, v.Decision, want, v.Reason)
		}
	}
}

// A hook that git runs when it writes its index is run by commands that only read, too:
// git status looks again at what has changed, and notes it. The user's own settings are
// not the repository's.
func TestHooksOfReading(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  Decision
		named string
	}{
		"none":                  {map[string]string{".git/hooks/pre-commit": "", ".git/hooks/post-index-change.sample": ""}, Allow, ""},
		"git's own":             {map[string]string{".git/hooks/post-index-change": ""}, Ask, "post-index-change"},
		"of references":         {map[string]string{".git/hooks/reference-transaction": ""}, Ask, "reference-transaction"},
		"of the work":           {map[string]string{".git/config": "[core]\nhooksPath = .husky/_\n", ".husky/_/post-index-change": ""}, Ask, "post-index-change"},
		"of the work, as usual": {map[string]string{".git/config": "[core]\nhooksPath = .husky/_\n", ".husky/_/pre-commit": "", ".husky/_/post-checkout": ""}, Allow, ""},
		"in a nested .git":      {map[string]string{".git/config": "[core]\nhooksPath = sub/.git/h\n", "sub/.git/h/post-index-change": ""}, Ask, "post-index-change"},
		"the user's own keeper": {map[string]string{"../../home/.gitconfig": "[credential]\nhelper = !./x\n[core]\nfsmonitor = ./x\n", ".git/config": "[remote \"o\"]\nurl = https://example.org/a/b\npromisor = true\n"}, Allow, ""},
	} {
		p := newProject(t)
		p.put(t, tt.files)
		for _, c := range []string{"git status", "git diff", "git describe --dirty", "go list ./...", "cd sub && git status"} {
			if name == "in a nested .git" && strings.HasPrefix(c, "cd") {
				continue
			}
			if v := p.judge(c); v.Decision != tt.want || !strings.Contains(v.Reason, tt.named) {
				t.Errorf("%s: %s: %s, want %s: %s", name, c, v.Decision, tt.want, v.Reason)
			}
		}
		p.wants(t, map[string]Decision{"git config --list": Allow, "git --version": Allow})
	}
}
