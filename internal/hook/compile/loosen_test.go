package compile

import (
	"bufio"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/config"
	"reprise/internal/guard"
)

// nested writes a key of the settings as YAML.
func nested(key, value string) string {
	var b strings.Builder
	parts := strings.Split(key, ".")
	for i, p := range parts {
		fmt.Fprintf(&b, "%s%s:", strings.Repeat("  ", i), p)
		if i < len(parts)-1 {
			b.WriteString("\n")
		}
	}
	return b.String() + " " + value + "\n"
}

// Whatever a repository writes into its project file, under each name that a
// setting has and with all kinds of values, comes to one of three: the file is
// refused by name of the key; the key is noted as one that waits for the user's
// approval, or as one that does nothing, and all is as it was without it; or it
// is one of the three that tighten, which TestRepositoryRulesOnlyTighten is about.
func TestRepositoryLoosensNothing(t *testing.T) {
	w := newWorld(t)
	// Settings of the user's that can be loosened.
	w.write("data/config.yaml", "guard: {mode: enforce, profile: unattended, ask: [git commit], deny: [docker ...], protected_branches: [main]}\nsub_agent: {sandbox: required}\ntools: {read: {record: failures}}\n")
	const head = "v: 1\nname: shop\n"
	plan := func() (*Made, error) {
		m, err := w.make("shop")
		if err != nil {
			return nil, err
		}
		return m, nil
	}
	before, err := plan()
	if err != nil {
		t.Fatal(err)
	}
	items, _, err := config.Explain(before.Home.Env, before.Home.Paths, "")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, it := range items {
		keys = append(keys, it.Key)
	}
	// And what only a project file has, or could be thought to have.
	for _, k := range []string{"hooks.off", "verify.profiles", "verify.profile", "routes.x", "guard.trusted", "trust", "mcp_servers", "env", "include", "extends", "memory", "sub_agent.agent.x", "aliases.x"} {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	values := []string{"off", "on", "false", "true", "allow", "warn", "attended", "none", "all", "0", "1", "999", "1.5", `""`, "[]", "[prompt, response]", `["..."]`, `["*"]`, "/", "~", "{}", "{a: off}", "{off: [prompt]}", "{client: claude}", "{quick: [{run: [touch, sprung]}]}"}
	tighten := []string{"guard.ask", "guard.deny", "guard.protected_branches"}
	refused, waits, inert := map[string]int{}, map[string]int{}, map[string]int{}
	for _, key := range keys {
		top, _, _ := strings.Cut(key, ".")
		for _, value := range values {
			text := head + nested(key, value)
			p, err := config.ParseProject(w.path("shop/.reprise/project.yaml"), []byte(text))
			if err != nil {
				if !strings.Contains(err.Error(), top) {
					t.Errorf("%s: %s is refused without naming it: %v", key, value, err)
				}
				refused[top]++
				continue
			}
			w.write("shop/.reprise/project.yaml", text)
			after, err := plan()
			if err != nil {
				t.Errorf("%s: %s: %v", key, value, err)
				continue
			}
			rules := after.Plan.Rules
			for _, kind := range config.HookKinds() {
				if rules.On(kind, "claude", "") != before.Plan.Rules.On(kind, "claude", "") {
					t.Errorf("%s: %s in a repository switches %s", key, value, kind)
				}
			}
			if !rules.Trusted {
				rules.RepoOff = nil // what it asks for stands there for when it is
			}
			same := cmp.Diff(before.Plan.Rules, rules)
			switch {
			case slices.Contains(tighten, key):
				continue
			case same != "":
				t.Errorf("%s: %s in a repository changes what holds, unasked:\n%s", key, value, same)
			case after.Home.Settings.Guard.Mode != before.Home.Settings.Guard.Mode || cmp.Diff(before.Home.Settings, after.Home.Settings) != "":
				t.Errorf("%s: %s in a repository changes the user's settings", key, value)
			case p.Guard != nil && slices.Contains(p.Guard.Inert, strings.TrimPrefix(key, "guard.")):
				inert[key]++
			case slices.Contains(p.Asks, top):
				waits[top]++
				tr, err := after.Home.Paths.Trust(after.Home.Project)
				if err != nil || tr.Approved || !slices.Contains(tr.Asks, top) {
					t.Errorf("%s: %s waits for approval, and nobody is told: %+v %v", key, value, tr.Asks, err)
				}
			case top == "aliases" || value == "{}" || value == "~": // says nothing
			default:
				t.Errorf("%s: %s in a repository is passed over without a word", key, value)
			}
		}
	}
	if len(refused) < 15 || len(waits) < 5 || len(inert) < 8 {
		t.Errorf("the test looks at too little: refused %v, waiting %v, without effect %v", slices.Sorted(maps.Keys(refused)), slices.Sorted(maps.Keys(waits)), slices.Sorted(maps.Keys(inert)))
	}
}

// A repository's guard rules, whatever they are, make no call milder: thousands of
// commands, with rules made of their own words.
func TestRepositoryRulesOnlyTighten(t *testing.T) {
	w := newWorld(t)
	w.write("data/config.yaml", "guard: {writes: allow, project_code: allow, ask: [git commit], deny: [docker ...], allow: [\"make ...\", \"npm test\"], hosts: [example.org]}\n")
	commands := corpus(t)
	rank := map[guard.Decision]int{guard.None: 0, guard.Allow: 1, guard.Ask: 2, guard.Deny: 3}
	judge := func(r guard.Rules, command string) guard.Decision {
		v := r.Judge(guard.Call{Kind: "shell", Name: "Bash", Texts: []guard.Text{{Name: "command", Value: command}}, Cwd: w.path("shop")})
		return v.Decision
	}
	rules := func() guard.Rules {
		m, err := w.make("shop")
		if err != nil {
			t.Fatal(err)
		}
		return Guard(m.Home, m.Home.Env, w.path("bin/reprise"))
	}
	plain := rules()
	before := map[string]guard.Decision{}
	for _, c := range commands {
		before[c] = judge(plain, c)
	}
	r := rand.New(rand.NewPCG(10, 29))
	stricter := 0
	for range 6 {
		w.write("shop/.reprise/project.yaml", "v: 1\nname: shop\n"+someGuard(r, commands))
		m, err := w.make("shop")
		if err != nil {
			continue // a shape that is none: the file is refused
		}
		tightened := Guard(m.Home, m.Home.Env, w.path("bin/reprise"))
		for _, c := range commands {
			after := judge(tightened, c)
			if rank[after] < rank[before[c]] {
				data, _ := os.ReadFile(w.path("shop/.reprise/project.yaml"))
				t.Fatalf("%q was %s and is %s with\n%s", c, before[c], after, data)
			}
			if after != before[c] {
				stricter++
			}
		}
	}
	if stricter == 0 {
		t.Error("no rule of a repository had any effect: the test shows nothing")
	}
}

// corpus is a part of the guard's own commands.
func corpus(t *testing.T) (out []string) {
	t.Helper()
	for name, every := range map[string]int{"everyday.txt": 3, "hard.txt": 4, "classes.txt": 20} {
		f, err := os.Open(filepath.Join("..", "..", "guard", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		for n := 0; lines.Scan(); {
			line := strings.TrimSpace(lines.Text())
			if name != "everyday.txt" {
				_, line, _ = strings.Cut(line, " ")
			}
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if n++; n%every == 0 {
				out = append(out, line)
			}
		}
		f.Close()
	}
	if len(out) < 400 {
		t.Fatalf("%d commands", len(out))
	}
	slices.Sort(out)
	return out
}

// someGuard is a guard section of a repository's, made of the words of commands.
func someGuard(r *rand.Rand, commands []string) string {
	words := func() string {
		f := strings.Fields(commands[r.IntN(len(commands))])
		f = f[:1+r.IntN(len(f))]
		for i, s := range f {
			if strings.ContainsAny(s, "'\"\\$`|&;<>(){}[]*?~#=!%") || !strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyz") {
				f = f[:i]
				break
			}
		}
		if len(f) == 0 {
			f = []string{"git"}
		}
		if r.IntN(2) == 0 {
			f = append(f, "...")
		}
		return strings.Join(f, " ")
	}
	var b strings.Builder
	b.WriteString("guard:\n")
	for _, key := range []string{"deny", "ask"} {
		fmt.Fprintf(&b, "  %s:\n", key)
		for range 1 + r.IntN(6) {
			fmt.Fprintf(&b, "    - %q\n", words())
		}
	}
	b.WriteString("  protected_branches: [trunk, \"x/*\"]\n  allow: [\"rm ...\"]\n  mode: \"off\"\n  loosen: [writes-outside]\n  hosts: [\"*\"]\n  writes: allow\n")
	return b.String()
}

// A name that a repository gives itself opens nothing of another project's.
func TestRepositoryCannotTakeAName(t *testing.T) {
	w := newWorld(t)
	m, err := w.make("shop")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Home.Paths.Claim(t.Context(), m.Home.Project, "", time.Now()); err != nil {
		t.Fatal(err)
	}
	w.write("evil/.git/config", "")
	w.write("evil/.reprise/project.yaml", "v: 1\nname: shop\n")
	if e, err := w.make("evil"); err == nil || !strings.Contains(err.Error(), "is taken by") {
		t.Errorf("works on the project of another directory: %+v %v", e, err)
	}
	w.write("evil/.reprise/project.yaml", "v: 1\nname: evil\naliases: [shop]\n")
	if e, err := w.make("evil"); err != nil || e.Plan.Project != "evil" || e.Home.EventsDir() == m.Home.EventsDir() {
		t.Errorf("with the other's name as a second one: %+v %v", e, err)
	}
}
