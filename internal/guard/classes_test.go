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
