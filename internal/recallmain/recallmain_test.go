package recallmain

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/agent/dialect"
	"reprise/internal/config"
	"reprise/internal/event"
	"reprise/internal/hook"
	"reprise/internal/hook/compile"
	"reprise/internal/session"
)

// world is a machine with a project whose memory knows one thing, and a plan.
type world struct {
	t    *testing.T
	root string
	env  config.Env
	made *compile.Made
}

func newWorld(t *testing.T, settings string) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, root: root, env: config.Env{
		Vars: map[string]string{"HOME": root, "USERPROFILE": root, "REPRISE_HOME": filepath.Join(root, "data")}, GOOS: "linux", Dir: filepath.Join(root, "shop"), Now: time.Now,
	}}
	for name, text := range map[string]string{
		"bin/reprise": "program", "shop/.reprise/project.yaml": "v: 1\nname: shop\n", "data/config.yaml": settings,
		"data/memory/core.md": "# Core\n\nThis user says tabs, not spaces.\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var kinds []string
	for _, k := range session.Told() {
		kinds = append(kinds, string(k))
	}
	env := w.env
	env.Now = func() time.Time { return time.Now().Add(time.Minute) } // by which all files are old
	if w.made, err = compile.Make(compile.Options{Env: env, Host: "vm", Program: filepath.Join(root, "bin", "reprise"), Hand: kinds, Tell: kinds}); err != nil {
		t.Fatal(err)
	}
	if err := w.made.Write(w.made.Home.Paths.Cache, time.Now()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) run(event, payload string) (string, int) {
	w.t.Helper()
	var out bytes.Buffer
	p := &program{client: "claude", event: event, dir: w.env.Dir, env: w.env, host: "vm", in: strings.NewReader(payload), out: &out}
	code := p.run(w.t.Context())
	return out.String(), code
}

const start = `{"session_id":"s1","cwd":"/x","hook_event_name":"SessionStart","source":"startup"}`

// The answer is the one that the full program gives, from the plan instead of the
// settings.
func TestSaysWhatIsRemembered(t *testing.T) {
	w := newWorld(t, "recall: {hold_out_percent: 0}\n")
	out, code := w.run("SessionStart", start)
	if code != 0 || !strings.Contains(out, "tabs, not spaces") || !dialect.IsReply([]byte(out)) {
		t.Fatalf("%d: %q", code, out)
	}
	m := session.Open(session.Options{Home: w.made.Home, Env: w.env})
	defer m.Close()
	ev, err := dialect.Parse("claude", "SessionStart", []byte(start))
	if err != nil {
		t.Fatal(err)
	}
	full := session.Teller{Memory: m, Warn: func(what string, err error) { t.Error(what, err) }, Broker: func(who event.Event) (*event.Broker, error) {
		return session.Broker(w.made.Home, w.env, "vm", who, nil), nil
	}}
	d, err := full.Tell(t.Context(), ev)
	if err != nil {
		t.Fatal(err)
	}
	if want := string(dialect.Encode(ev, d).Stdout); out != want {
		t.Errorf("%s", cmp.Diff(want, out))
	}
}

// What the plan says of settings is all of it.
func TestHomeOfPlan(t *testing.T) {
	w := newWorld(t, "recall: {prompt_tokens: 123, job_ms: 77}\nqa: {auto: context}\nhooks: {off: [prompt], clients: {codex: {off: [response]}}}\n")
	got, err := compile.Home(w.made.Plan, w.env)
	if err != nil {
		t.Fatal(err)
	}
	a, errA := json.Marshal(got.Settings)
	b, errB := json.Marshal(w.made.Home.Settings)
	if errA != nil || errB != nil || !bytes.Equal(a, b) || got.Settings.Recall.PromptTokens != 123 {
		t.Errorf("%s\n%s", a, b)
	}
	if diff := cmp.Diff(w.made.Home.Settings, got.Settings); diff != "" {
		t.Error(diff)
	}
	if got.Project == nil || got.Project.Name != "shop" || got.Project.Root != w.made.Home.Project.Root || got.Project.Main != w.made.Home.Project.Main {
		t.Errorf("%+v", got.Project)
	}
	w.made.Plan.Home = "{"
	if _, err := compile.Home(w.made.Plan, w.env); err == nil {
		t.Error("a damaged plan is an installation")
	}
}

// What is the full program's business is left to it, without a word.
func TestLeavesToTheFullProgram(t *testing.T) {
	for name, tc := range map[string]struct {
		settings, event, payload string
		change                   func(w *world)
	}{
		"a run's session": {"", "SessionStart", start, func(w *world) { w.env.Vars[hook.RunVar] = "run-x" }},
		"no plan":         {"", "SessionStart", start, func(w *world) { os.RemoveAll(filepath.Join(w.root, "data", "cache", "hooks")) }},
		"a plan that is over": {"", "SessionStart", start, func(w *world) {
			os.WriteFile(filepath.Join(w.root, "data", "config.yaml"), []byte("recall: {prompt_tokens: 5}\n"), 0o600)
		}},
		"embeddings":    {"recall: {embeddings: {url: 'http://localhost:1/v1', model: m}}\n", "SessionStart", start, nil},
		"another event": {"", "SessionEnd", `{"session_id":"s1","cwd":"/x","hook_event_name":"SessionEnd","reason":"exit"}`, nil},
		"no JSON":       {"", "SessionStart", "{", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.settings)
			if tc.change != nil {
				tc.change(w)
			}
			if out, code := w.run(tc.event, tc.payload); code != hook.ExitFull || out != "" {
				t.Errorf("%d: %q", code, out)
			}
		})
	}
}

// Without time nothing is said, and that is no failure of the hook.
func TestEndsInTime(t *testing.T) {
	w := newWorld(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	r, never, err := os.Pipe() // the payload never comes
	if err != nil {
		t.Fatal(err)
	}
	defer never.Close()
	defer r.Close()
	p := &program{client: "claude", event: "SessionStart", dir: w.env.Dir, env: w.env, host: "vm", in: r, out: &out}
	if code := p.run(ctx); code != 0 || out.Len() > 0 {
		t.Errorf("%d: %q", code, out.String())
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"1", "/x", "claude"}, {"x", "/x", "claude", "Stop"}, {"-1", "/x", "claude", "Stop"}} {
		if code := Main(args); code != exitUsage {
			t.Errorf("%q: %d", args, code)
		}
	}
}
