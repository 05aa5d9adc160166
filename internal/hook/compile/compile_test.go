package compile

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/agent/dialect"
	"reprise/internal/config"
	"reprise/internal/config/place"
	"reprise/internal/delegation"
	"reprise/internal/guard"
	"reprise/internal/hook"
	"reprise/internal/hook/plan"
)

// world is a machine with two projects, a linked worktree, and settings.
type world struct {
	t    *testing.T
	root string
	env  config.Env
}

func newWorld(t *testing.T) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, root: root}
	w.env = config.Env{
		Vars: map[string]string{"HOME": root, "USERPROFILE": root, "REPRISE_HOME": filepath.Join(root, "data")},
		GOOS: "linux",
		// Everything that the test makes is older than two seconds by this clock.
		Now: func() time.Time { return time.Now().Add(time.Minute) },
	}
	w.write("bin/reprise", "program")
	w.write("shop/.git/config", "")
	w.write("shop/.reprise/project.yaml", "v: 1\nname: shop\n")
	w.write("shop/sub/deep/x", "")
	w.write("shop/.git/worktrees/wt/commondir", "../..\n")
	w.write("shop/.git/worktrees/wt/gitdir", filepath.Join(root, "wt", ".git")+"\n")
	w.write("wt/.git", "gitdir: "+filepath.Join(root, "shop/.git/worktrees/wt")+"\n")
	w.write("wt/sub/x", "")
	w.write("none/x", "")
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.root, filepath.FromSlash(name)) }

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.path(name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) make(dir string) (*Made, error) {
	env := w.env
	env.Dir = w.path(dir)
	return Make(Options{Env: env, Host: "vm", Program: w.path("bin/reprise"), Hand: []string{"prompt"}})
}

// decisions are what of a plan decides what happens to an event.
func decisions(p *plan.Plan) plan.Plan {
	out := *p
	out.Stamps = nil
	return out
}

func TestMake(t *testing.T) {
	w := newWorld(t)
	w.write("data/config.yaml", "hooks: {off: [prompt], deadline_ms: 500, clients: {codex: {off: [response]}}}\ntools: {read: {record: off}}\nprofiles: {musician: {hooks_off: [tool_after]}}\ndelegation: {tiers: 3, conductor: {block: 4}, free: [notes/]}\n")
	for dir, project := range map[string]string{"shop": "shop", "shop/sub/deep": "shop", "wt": "shop", "wt/sub": "shop", "none": "", "shop/sub/gone/too": "shop"} {
		m, err := w.make(dir)
		if err != nil || m.Plan.Project != project || !m.Lasting {
			t.Fatalf("%s: %+v, %v", dir, m, err)
		}
		want := plan.Rules{Record: true, Recall: true, Jobs: true, DeadlineMS: 500, Off: []string{"prompt", "codex:response", "musician:tool_after"}, Tools: []string{"read:off"},
			Delegation: delegation.Rules{Tiers: 3, Conductor: delegation.Limits{Warn: 3, Block: 4}, SectionLeader: delegation.Limits{Warn: 10, Block: 20}, Free: []string{"notes/"}}}
		if !slices.Contains(m.Plan.Rules.Guard, "home "+w.path("")) || !slices.ContainsFunc(m.Plan.Rules.Guard, func(l string) bool { return strings.HasPrefix(l, "root ") }) {
			t.Errorf("%s: the guard knows neither home nor directory: %q", dir, m.Plan.Rules.Guard)
		}
		want.Guard = m.Plan.Rules.Guard
		if diff := cmp.Diff(want, m.Plan.Rules); diff != "" {
			t.Error(dir, diff)
		}
		if err := m.Write(w.path("data/cache"), time.Now()); err != nil {
			t.Fatal(err)
		}
		got, err := plan.Load(w.path("data/cache"), m.Plan.Key, "vm")
		if diff := cmp.Diff(m.Plan, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", dir, err, diff)
		}
	}
}

// What a repository switches off counts when its user trusts that very text.
func TestRepositoryRulesNeedTrust(t *testing.T) {
	w := newWorld(t)
	w.write("shop/.reprise/project.yaml", "v: 1\nname: shop\nhooks: {off: [prompt]}\n")
	on := func() bool {
		t.Helper()
		m, err := w.make("shop")
		if err != nil {
			t.Fatal(err)
		}
		return m.Plan.Rules.On("prompt", "claude", "")
	}
	if !on() {
		t.Error("a repository switched a hook off unasked")
	}
	m, err := w.make("shop")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := m.Home.Paths.Trust(m.Home.Project)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Home.Paths.Approve(t.Context(), m.Home.Project, tr, time.Now()); err != nil {
		t.Fatal(err)
	}
	if on() {
		t.Error("what the user approved does not count")
	}
	w.write("shop/.reprise/project.yaml", "v: 1\nname: shop\nhooks: {off: [prompt, response]}\n")
	if !on() {
		t.Error("an approval counts for another text")
	}
}

// Checks that the user approved may be run by agents as they stand there, be they
// lists or lines. What means something to a shell is no plain command.
func TestTrustedChecksAreAllowed(t *testing.T) {
	w := newWorld(t)
	w.write("shop/.reprise/project.yaml", `v: 1
name: shop
verify:
  profiles:
    quick:
      - run: [go, vet, ./...]
      - run: python3 -m unittest
      - run: go test  -count=1 ./...
      - run: |
          script/test --all
      - run: A=1 make test
      - run: make && make test
      - run: echo $HOME
      - run: cat "a b"
      - run: ls *.go
      - run: make ...
      - run: =make
      - run: "make a\nmake b"
`)
	m, err := w.make("shop")
	if err != nil {
		t.Fatal(err)
	}
	if got := Guard(m.Home, w.env, w.path("bin/reprise")).List; len(got) != 0 {
		t.Errorf("not approved: %+v", got)
	}
	tr, err := m.Home.Paths.Trust(m.Home.Project)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Home.Paths.Approve(t.Context(), m.Home.Project, tr, time.Now()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range Guard(m.Home, w.env, w.path("bin/reprise")).List {
		if r.Decision != guard.Allow {
			t.Errorf("%+v", r)
		}
		got = append(got, r.Shape)
	}
	if want := []string{"go vet ./...", "python3 -m unittest", "go test -count=1 ./...", "script/test --all", "make ..."}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a project says of tools and roles holds in place of what the settings
// say, either way, once it is approved; of others the settings hold.
func TestProjectOverSettings(t *testing.T) {
	w := newWorld(t)
	w.write("data/config.yaml", "tools: {read: {record: off}, search: {record: failures}}\nprofiles: {musician: {hooks_off: [tool_after]}, conductor: {hooks_off: [prompt]}}\n")
	w.write("shop/.reprise/project.yaml", "v: 1\nname: shop\ntools: {read: {record: all}, shell: {record: failures}}\nprofiles: {musician: {hooks_off: [response]}}\n")
	is := func(trusted bool) {
		t.Helper()
		m, err := w.make("shop")
		if err != nil {
			t.Fatal(err)
		}
		r := &m.Plan.Rules
		for name, c := range map[string][2]bool{
			"read is recorded":             {r.Records("read", false), trusted},
			"a failed read is recorded":    {r.Records("read", true), trusted},
			"shell is recorded":            {r.Records("shell", false), !trusted},
			"a failed shell is recorded":   {r.Records("shell", true), true},
			"search is recorded":           {r.Records("search", false), false},
			"musicians have tool_after":    {r.On("tool_after", "claude", "musician"), trusted},
			"musicians have response":      {r.On("response", "claude", "musician"), !trusted},
			"conductors have prompt":       {r.On("prompt", "claude", "conductor"), false},
			"who has no role has response": {r.On("response", "claude", ""), true},
		} {
			if c[0] != c[1] {
				t.Errorf("approved %v: %s: %v", trusted, name, c[0])
			}
		}
	}
	is(false)
	m, err := w.make("shop")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := m.Home.Paths.Trust(m.Home.Project)
	if err != nil || len(tr.Asks) != 2 {
		t.Fatalf("%+v, %v", tr, err)
	}
	if err := m.Home.Paths.Approve(t.Context(), m.Home.Project, tr, time.Now()); err != nil {
		t.Fatal(err)
	}
	is(true)
}

// With broken settings the events stay whose they were.
func TestBrokenSettings(t *testing.T) {
	w := newWorld(t)
	m, err := w.make("shop")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Write(w.path("data/cache"), time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"shop/.reprise/project.yaml", "data/config.yaml"} {
		w.write(file, "v: [\n")
		broken, err := w.make("shop")
		if err == nil || broken == nil || broken.Plan.Project != "shop" || broken.Lasting || broken.Home != nil {
			t.Errorf("%s: %+v, %v", file, broken, err)
		}
		if broken, err := w.make("shop/sub"); err == nil || broken != nil {
			t.Errorf("%s: of a directory without a plan something is known: %+v", file, broken)
		}
	}
}

// A plan that is written a moment after its inputs changed could miss the next
// change, so it is not.
func TestFreshInputsMakeNoPlan(t *testing.T) {
	w := newWorld(t)
	w.env.Now = time.Now
	m, err := w.make("shop")
	if err != nil || m.Lasting || m.Why == "" {
		t.Fatalf("%+v, %v", m, err)
	}
	if err := m.Write(w.path("data/cache"), time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(m.Plan.Key.File(w.path("data/cache"))); err == nil {
		t.Error("it was written")
	}
}

// The names of directories are nothing that may put a secret into one more file.
func TestPlansHoldNoSecret(t *testing.T) {
	w := newWorld(t)
	for dir, want := range map[string]bool{"none": true, "none/x-" + "AK" + "IA" + "QYLPMN5HHHFPZAM2": false, "none/password=hunter2" + "hunter2": false} {
		w.write(dir+"/f", "")
		m, err := w.make(dir)
		if err != nil || !m.Lasting {
			t.Fatalf("%+v, %v", m, err)
		}
		if err := m.Write(w.path("data/cache"), time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(m.Plan.Key.File(w.path("data/cache"))); (err == nil) != want {
			t.Errorf("%s: a plan %v", dir, err == nil)
		}
	}
}

// Whatever is done to files and directories, in whatever order: as long as the
// plan is believed, it says what would be worked out anew. Never wrong, only
// slower.
func TestPlansAreNeverWrong(t *testing.T) {
	rounds, seed := 60, uint64(1795950269426778367)
	if os.Getenv("REPRISE_LONG_TESTS") != "" {
		rounds, seed = 5000, uint64(time.Now().UnixNano())
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t)
	dirs := []string{"shop", "shop/sub/deep", "wt", "wt/sub", "none", "link"}
	if err := os.Symlink(w.path("shop"), w.path("link")); err != nil {
		t.Fatal(err)
	}
	project := func(name string) string { return fmt.Sprintf("v: 1\nname: %s\n", name) }
	files := []string{"shop/.reprise/project.yaml", "shop/sub/.reprise/project.yaml", "wt/.reprise/project.yaml", "wt/sub/.reprise/project.yaml", ".reprise/project.yaml", "none/.reprise/project.yaml"}
	steps := []func(){
		func() { w.write(files[rnd.IntN(len(files))], project([]string{"a", "b", "shop"}[rnd.IntN(3)])) },
		func() { _ = os.Remove(w.path(files[rnd.IntN(len(files))])) },
		func() {
			w.write("data/config.yaml", fmt.Sprintf("hooks: {off: [%s]}\n", []string{"prompt", "response"}[rnd.IntN(2)]))
		},
		func() { _ = os.Remove(w.path("data/config.yaml")) },
		func() { _ = os.RemoveAll(w.path([]string{"wt/.git", "none/.git", "shop/sub/.git"}[rnd.IntN(3)])) },
		func() {
			if os.Mkdir(w.path([]string{"none/.git", "shop/sub/.git"}[rnd.IntN(2)]), 0o700) != nil {
				_ = os.Remove(w.path("none/.git"))
			}
		},
		func() {
			_ = os.RemoveAll(w.path("wt/.git"))
			w.write("wt/.git", "gitdir: "+w.path("shop/.git/worktrees/wt")+"\n")
		},
		func() {
			w.write("shop/.git/worktrees/wt/gitdir", w.path([]string{"wt", "other"}[rnd.IntN(2)])+"/.git\n")
		},
		func() {
			_ = os.Remove(w.path("link"))
			_ = os.Symlink(w.path(dirs[rnd.IntN(len(dirs)-1)]), w.path("link")) // it is only another round if this fails
		},
	}
	held := 0
	for round := range rounds {
		steps[rnd.IntN(len(steps))]()
		for _, dir := range dirs {
			key := plan.Key{Dir: w.path(dir), Vars: plan.Vars(place.Vars(), w.env.Get)}
			believed, stale := plan.Load(w.path("data/cache"), key, "vm")
			fresh, err := w.make(dir)
			if stale == nil {
				held++
				if err != nil {
					t.Fatalf("seed %d, round %d: a plan of %s is believed where there should be an error: %v", seed, round, dir, err)
				}
				if diff := cmp.Diff(decisions(fresh.Plan), decisions(believed)); diff != "" {
					t.Fatalf("seed %d, round %d: the plan of %s is wrong: %s", seed, round, dir, diff)
				}
			}
			if err == nil {
				if err := fresh.Write(w.path("data/cache"), time.Now()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if held < rounds {
		t.Errorf("plans held %d times in %d rounds: the test looks at nothing", held, rounds)
	}
}

// The settings know the kinds, the tools, the clients and the roles that there
// are.
func TestSettingsKnowTheWords(t *testing.T) {
	var kinds []string
	for _, c := range dialect.Clients() {
		for _, e := range dialect.ManifestOf(c).Events {
			if k := string(e.Kind); e.Kind != dialect.Other && e.Kind != dialect.Notification && !slices.Contains(kinds, k) {
				kinds = append(kinds, k)
			}
		}
	}
	for _, l := range []struct{ a, b []string }{
		{kinds, config.HookKinds()}, {dialect.Clients(), config.HookClients()}, {hook.Roles(), config.Roles()},
	} {
		a, b := slices.Sorted(slices.Values(l.a)), slices.Sorted(slices.Values(l.b))
		if diff := cmp.Diff(a, b); diff != "" {
			t.Error(diff)
		}
	}
}

// A file that was changed for a moment, and back, between reading it and looking
// up its approval gets nothing but what was approved.
func TestApprovalIsOfTheTextThatCounts(t *testing.T) {
	w := newWorld(t)
	w.write("shop/.reprise/project.yaml", "v: 1\nname: shop\nhooks: {off: [response]}\n")
	env := w.env
	env.Dir = w.path("shop")
	home, err := config.Open(env, "")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := home.Paths.Trust(home.Project)
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Paths.Approve(t.Context(), home.Project, tr, time.Now()); err != nil {
		t.Fatal(err)
	}
	home.Project.HooksOff = []string{"prompt"} // as it was read in that moment
	r := rules(home, false)
	if !r.On("prompt", "claude", "") || r.On("response", "claude", "") {
		t.Errorf("%+v", r)
	}
}
