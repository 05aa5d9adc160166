package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func testPaths(t *testing.T, env Env) Paths {
	t.Helper()
	p, err := FindPaths(env)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// first is the first *Error in err.
func first(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T) has no *Error", err, err)
	}
	return e
}

func TestLoadEverything(t *testing.T) {
	env := testEnv(t)
	file := write(t, filepath.Join(env.Dir, "c.yaml"), `# all of them
sub_agent:
  sync_window_seconds: 0
  default_timeout_seconds: 10
  default_max_output_tokens: 11
  max_concurrent_agents: 12
  job_expiry_seconds: 13
  sandbox: off   # plain text in YAML 1.2
  agent: script
  script_file: /s.yaml
memory:
  directory: ~/mem/
logging: {file: "/var/log/r.log", level: debug, max_size_mb: 1, max_backups: 0}
claude_cli:
  path: /opt/claude
http:
  addr: "[::1]:1"
  allowed_origins: [ "https://a.example", http://b.example:8080 ]
  public_url: https://p.example/x/mcp
  limits: {requests_per_minute: 1, concurrent: 2, sessions: 3, runs_at_once: 4, runs_per_day: 5, usd_per_day: 6.5}
  oauth: {issuer: "https://i.example/", audience: a, jwks_url: "http://127.0.0.1:9/jwks", resource: "https://r.example/mcp", scopes: ["reprise:read"], subjects: [me]}
hooks:
  record: off
  recall: off
  jobs: off
  deadline_ms: 700
  off: [prompt, tool_after]
  session_start: off
  pre_compact: off
  post_commit: on
  on_error: off
  session_end: off
  branch_switch: off
  edits: 8
  clients: {claude: {off: [response]}, codex: {off: []}, gemini: {off: [prompt]}, copilot: {off: [session_end]}}
tools:
  shell: {record: failures}
  read: {record: off}
  write: {record: all}
  edit: {record: all}
  search: {record: off}
  fetch: {record: failures}
  agent: {record: all}
  ask: {record: all}
  mcp: {record: all}
  other: {record: off}
profiles:
  conductor: {hooks_off: [tool_before]}
  section-leader: {hooks_off: []}
  musician: {hooks_off: [prompt, response]}
recall: {session_start_tokens: 1, prompt_tokens: 2, failure_tokens: 3, core_tokens: 4, index_tokens: 5, state_tokens: 6, job_ms: 60, hold_out_percent: 7, learn: off, embeddings: {url: "http://localhost:1/v1", model: m, key_variable: K}}
learn: {promote: off, project_sessions: 3, global_projects: 4, min_confidence: 70, episode_days: 5, summary_days: 6, pattern_days: 7, anti_pattern_days: 8}
qa: {auto: context, ttl_days: 9, threshold: 99}
judge: {client: script, program: /p, model: m, script_file: /j.yaml, purposes: [guard], timeout_seconds: 9, budget_usd_per_day: 0.25, budget_usd_per_question: 2, calls_per_day: 8, cache_hours: 0}
guard: {mode: warn, profile: unattended, project_code: allow, writes: allow, mcp: allow, judge: both, pending: on, pending_ms: 1000, roots: [/other], hosts: ["*.example.org"], protected_branches: [next], loosen: [git-settings], allow: ["make ..."], ask: [git commit], deny: ["docker *"]}
loop: {max_iterations: 1, max_hours: 2, max_tokens: 3, budget_usd: 4, item_usd: 0.5, turns: 6, timeout_seconds: 7, stall_seconds: 18, delay_seconds: 9, backoff_seconds: 10, on_interrupt: skip, integrate: merge, allowed_tools: [Read], run_days: 11, run_mb: 12, notify_desktop: on, notify_command: "say hi", notify_webhook: "https://a.example/x", notify_secret_var: S, notify_mail: a@b.example, notify_per_hour: 13}
routes: {go: {client: codex, model: m, tools: [a, b], turns: 1, budget_usd: 0.5, timeout_seconds: 2}, ui: {client: gemini}}
tasks: {commit: off, parallel: 5}
gates: {stop: off, subagent: off, when: claimed, max_blocks: 1, timeout_seconds: 60, profile: deep, sandbox: off, tests: off, regressions: project, tasks: off, review: on}
delegation: {tiers: 3, conductor: {warn: 1, block: 2}, section_leader: {warn: 0, block: 4}, free: [notes/, /abs/x.md]}
queue: nats://a.example,b.example:5222
fleet: {namespace: team, credentials: /c.creds, nkey: ~/n.nk, ca: /ca.pem, cert: /c.pem, key: /k.pem, inbox: _INBOX_me, replicas: 5}
worker: {name: build-1, directory: /srv/work, clients: [claude, script], can: [gpu], projects: {shop: {remote: "git@h:t/shop.git", branch: next, state: /s.git}, api: {remote: "https://h/api.git"}}}
`)
	got, source, err := Load(env, testPaths(t, env), file)
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{
		SubAgent:  SubAgent{0, 10, 11, 12, 13, "off", "/s.yaml", "script"},
		Memory:    Memory{filepath.Join(env.Dir, "mem")},
		Logging:   Logging{"/var/log/r.log", "debug", 1, 0},
		ClaudeCLI: ClaudeCLI{"/opt/claude"},
		HTTP: HTTP{"[::1]:1", []string{"https://a.example", "http://b.example:8080"}, "https://p.example/x/mcp", HTTPLimits{1, 2, 3, 4, 5, 6.5},
			OAuth{"https://i.example/", "a", "http://127.0.0.1:9/jwks", "https://r.example/mcp", []string{"reprise:read"}, []string{"me"}}},
		Hooks: Hooks{"off", "off", "off", 700, []string{"prompt", "tool_after"},
			[len(hookClients)]HookClient{{[]string{"response"}}, {}, {[]string{"prompt"}}, {[]string{"session_end"}}}, StateHooks{"off", "off", "on", "off", "off", "off", 8}},
		Tools:    [len(toolKinds)]Tool{{"failures"}, {"off"}, {"all"}, {"all"}, {"off"}, {"failures"}, {"all"}, {"all"}, {"all"}, {"off"}},
		Profiles: [len(roles)]Profile{{[]string{"tool_before"}}, {}, {[]string{"prompt", "response"}}},
		Recall:   Recall{SessionStartTokens: 1, PromptTokens: 2, FailureTokens: 3, CoreTokens: 4, IndexTokens: 5, StateTokens: 6, JobMS: 60, HoldOutPercent: 7, Learn: "off", Embeddings: Embeddings{"http://localhost:1/v1", "m", "K"}},
		Learn:    Learn{"off", 3, 4, 70, 5, 6, 7, 8},
		QA:       QA{"context", 9, 99},
		Judge:    Judge{"script", "/p", "m", "/j.yaml", []string{"guard"}, 9, 0.25, 2, 8, 0},
		Guard: Guard{"warn", "unattended", "allow", "allow", "allow", "both", "on", 1000, []string{"/other"}, []string{"*.example.org"}, []string{"next"},
			[]string{"git-settings"}, []string{"make ..."}, []string{"git commit"}, []string{"docker *"}},
		Delegation: Delegation{3, 1, 2, 0, 4, []string{"notes/", "/abs/x.md"}},
		Queue:      "nats://a.example:4222,nats://b.example:5222",
		Fleet:      Fleet{"team", "/c.creds", filepath.Join(env.Dir, "n.nk"), "/ca.pem", "/c.pem", "/k.pem", "_INBOX_me", 5},
		Worker: Worker{"build-1", "/srv/work", []string{"claude", "script"}, []string{"gpu"}, []WorkerProject{
			{"shop", "git@h:t/shop.git", "next", "/s.git"}, {"api", "https://h/api.git", "", ""}}},
		Loop:   Loop{1, 2, 3, 4, 0.5, 6, 7, 18, 9, 10, "skip", "merge", []string{"Read"}, 11, 12, "on", "say hi", "https://a.example/x", "S", "a@b.example", 13},
		Routes: []Route{{"go", "codex", "m", []string{"a", "b"}, 1, 0.5, 2, RouteWork{}}, {Label: "ui", Client: "gemini"}},
		Tasks:  Tasks{"off", 5},
		Gates:  Gates{"off", "off", "claimed", 1, 60, "deep", "off", [len(gateNames)]string{"off", "project", "off", "on"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if source != file {
		t.Errorf("source %q", source)
	}
	items, _, err := Explain(env, testPaths(t, env), file)
	if err != nil || len(items) != len(keys()) {
		t.Fatalf("%d items, %v", len(items), err)
	}
	for _, it := range items {
		if !strings.HasPrefix(it.Origin, file+":") {
			t.Errorf("%s is said to be from %s", it.Key, it.Origin)
		}
	}
}

func TestFilesThatMeanTheDefaults(t *testing.T) {
	env := testEnv(t)
	paths := testPaths(t, env)
	for name, text := range map[string]string{
		"empty": "", "space": " \n\n", "comment": "# nothing\n", "document": "---\n", "empty section": "sub_agent:\nmemory:\n  # directory: x\nhttp:\n  oauth:\n",
		"byte order mark": "\ufeff", "mark and setting": "\ufefflogging:\n  level: info\n", "CRLF": "logging:\r\n  level: info\r\n", "null": "null\n", "null section": "memory: ~\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := Load(env, paths, write(t, filepath.Join(env.Dir, "c.yaml"), text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Default(paths), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func judgeWays(ints, texts, lists, files map[string]string) map[string][]map[string]string {
	usd := map[string]string{"null": "", "text": "much", "quoted": `"5"`, "exponent": "1e1", "hex": "0x10", "octal": "010", "truth": "true", "list": "[1]",
		"section": "{a: 1}", "negative": "-0.5", "too large": "99999999", "infinity": ".inf", "not a number": ".nan", "two points": "1.2.3", "sign": "$5"}
	return map[string][]map[string]string{
		"judge.client": {texts, {"other": "chatty", "case": "Claude", "not isolated": "codex"}}, "judge.program": {texts, {"relative": "a/b"}}, "judge.model": {texts},
		"judge.script_file": {texts, files}, "judge.purposes": {lists, {"unknown": "[anything]"}},
		"judge.timeout_seconds": {ints, {"zero": "0"}}, "judge.calls_per_day": {ints}, "judge.cache_hours": {ints},
		"judge.budget_usd_per_day": {usd}, "judge.budget_usd_per_question": {usd},
	}
}

// Each key wrong in each way: every wrong value is refused with the file, the
// place of the value, the key, what is wrong and what to do.
func TestEachKeyWrongInEachWay(t *testing.T) {
	env := testEnv(t)
	paths := testPaths(t, env)
	ints := map[string]string{
		"null": "", "text": "many", "quoted": `"5"`, "float": "1.5", "exponent": "1e1", "hex": "0x10", "octal": "010", "underscore": "1_0",
		"truth": "true", "list": "[1]", "section": "{a: 1}", "negative": "-1", "too large": "99999999", "overflow": "99999999999999999999999",
		"int64 overflow": "9223372036854775808", "infinity": ".inf", "not a number": ".nan", "two signs": "+-1", "anchor": "&x 5", "tag": "!!int 5", "date": "2026-11-28",
	}
	texts := map[string]string{"null": "", "number": "5", "truth": "true", "list": "[a]", "section": "{a: b}", "empty": `""`, "float": "1.5", "anchor": "&x a", "tag": "!!str a", "control": `"a\nb"`, "NUL": `"a\0b"`}
	files := map[string]string{"relative": "a/b", "dot": "./a", "variable": "$HOME/a", "other user": "~bob/a", "windows": `C:\a`, "percent": "'%APPDATA%/a'"}
	urls := map[string]string{"no scheme": "a.example", "ftp": "ftp://a.example", "plain http": "http://a.example", "password": "https://u:p@a.example", "no host": "https:///x", "fragment": "https://a.example/#x"}
	ways := map[string][]map[string]string{
		"sub_agent.sync_window_seconds":       {ints, {"30": "30", "31": "31"}},
		"sub_agent.default_timeout_seconds":   {ints, {"zero": "0"}},
		"sub_agent.default_max_output_tokens": {ints, {"zero": "0"}},
		"sub_agent.max_concurrent_agents":     {ints, {"zero": "0", "1001": "1001"}},
		"sub_agent.job_expiry_seconds":        {ints, {"zero": "0"}},
		"sub_agent.sandbox":                   {texts, {"other": "maybe", "case": "Off"}},
		"sub_agent.script_file":               {texts, files, {"directory": "/a/"}},
		"sub_agent.agent":                     {texts, {"space": `" a"`}},
		"memory.directory":                    {texts, files, {"root": "/", "home": "~", "roots": "//"}},
		"logging.file":                        {texts, files, {"directory": "/var/log/"}},
		"logging.level":                       {texts, {"other": "loud", "case": "INFO"}},
		"logging.max_size_mb":                 {ints, {"zero": "0"}},
		"logging.max_backups":                 {ints},
		"claude_cli.path":                     {texts, {"relative": "a/b", "dot": "./claude", "variable": "$HOME/claude", "other user": "~bob"}},
		"http.addr":                           {texts, {"no port": "127.0.0.1", "port name": "a:http", "large port": "a:65536", "sign": "a:+1", "url": "http://a:1", "space": `"a b:1"`}},
		"http.allowed_origins":                {{"null": "", "text": "https://a", "number": "5", "section": "{a: b}", "path": "[https://a/b]", "wildcard": `["*"]`, "subdomains": `["https://*.a"]`, "number in": "[5]", "null in": "[~]", "empty in": `[""]`, "bare host": "[a.example]"}},
		"http.oauth.issuer":                   {texts, urls},
		"http.oauth.audience":                 {texts},
		"http.oauth.jwks_url":                 {texts, urls},
		"http.oauth.resource":                 {texts, urls},
		"http.public_url":                     {texts, urls},
		"http.limits.requests_per_minute":     {ints},
		"http.limits.concurrent":              {ints},
		"http.limits.sessions":                {ints, {"zero": "0", "1001": "1001"}},
		"http.limits.runs_at_once":            {ints, {"1001": "1001"}},
		"http.limits.runs_per_day":            {ints},
		"http.limits.usd_per_day":             {{"null": "", "text": "much", "quoted": `"5"`, "negative": "-1", "infinity": ".inf", "not a number": ".nan", "list": "[1]"}},
		"http.oauth.scopes":                   {{"null": "", "text": "reprise", "number in": "[5]", "null in": "[~]", "empty in": `[""]`, "two in one": `["a b"]`, "quote": `['a"']`, "not ASCII": "[é]"}},
		"http.oauth.subjects":                 {{"null": "", "text": "me", "number in": "[5]", "null in": "[~]", "empty in": `[""]`}},
	}
	kinds := map[string]string{"null": "", "text": "prompt", "number": "5", "section": "{a: b}", "unknown": "[all]", "case": "[Prompt]", "number in": "[5]", "null in": "[~]", "empty in": `[""]`}
	switches := map[string]string{"other": "maybe", "case": "Off", "truth": "true"}
	for _, k := range hookKeys() {
		switch {
		case k.name == "hooks.deadline_ms":
			ways[k.name] = []map[string]string{ints, {"60001": "60001"}}
		case k.name == "hooks.edits":
			ways[k.name] = []map[string]string{ints, {"10001": "10001"}}
		case strings.HasSuffix(k.name, "off"):
			ways[k.name] = []map[string]string{kinds}
		default:
			ways[k.name] = []map[string]string{{"null": "", "list": "[a]", "section": "{a: b}", "empty": `""`}, switches}
		}
	}
	for _, k := range recallKeys() {
		switch k.name {
		case "recall.embeddings.url":
			ways[k.name] = []map[string]string{texts, urls}
		case "recall.embeddings.model":
			ways[k.name] = []map[string]string{texts}
		case "recall.embeddings.key_variable":
			ways[k.name] = []map[string]string{texts, {"the key itself": "sk-abc-123", "number first": "1A"}}
		case "recall.learn":
			ways[k.name] = []map[string]string{{"null": "", "list": "[a]", "section": "{a: b}", "empty": `""`}, switches}
		case "recall.hold_out_percent":
			ways[k.name] = []map[string]string{ints, {"51": "51"}}
		default:
			ways[k.name] = []map[string]string{ints}
		}
	}
	for _, k := range qaKeys() {
		ways[k.name] = []map[string]string{ints}
		if k.name == "qa.auto" {
			ways[k.name] = []map[string]string{{"null": "", "list": "[a]", "section": "{a: b}", "empty": `""`}, switches}
		}
	}
	for _, k := range learnKeys() {
		ways[k.name] = []map[string]string{ints}
		if k.name == "learn.promote" {
			ways[k.name] = []map[string]string{{"null": "", "list": "[a]", "section": "{a: b}", "empty": `""`}, switches}
		}
	}
	for name, more := range judgeWays(ints, texts, kinds, files) {
		ways[name] = more
	}
	for _, k := range guardKeys() {
		switch k.name {
		case "guard.pending_ms":
			ways[k.name] = []map[string]string{ints, {"999": "999"}}
		case "guard.roots", "guard.hosts", "guard.protected_branches", "guard.loosen", "guard.allow", "guard.ask", "guard.deny":
			ways[k.name] = []map[string]string{{"null": "", "text": "a", "number": "5", "section": "{a: b}", "number in": "[5]", "null in": "[~]", "empty in": `[""]`, "space around": `[" a"]`, "dots": `["... a/"]`}}
		default:
			ways[k.name] = []map[string]string{{"null": "", "list": "[a]", "section": "{a: b}", "empty": `""`}, switches}
		}
	}
	for _, k := range gateKeys() {
		ways[k.name] = []map[string]string{{"null": "", "list": "[a]", "section": "{a: b}", "empty": `""`}, switches}
	}
	for _, k := range loopKeys() {
		switch k.name {
		case "loop.budget_usd", "loop.item_usd":
			ways[k.name] = []map[string]string{{"null": "", "text": "many", "negative": "-1", "list": "[1]", "not a number": ".nan"}}
		case "loop.max_tokens":
			ways[k.name] = []map[string]string{{"null": "", "zero": "0", "text": "many", "float": "1.5", "overflow": "99999999999999999999999"}}
		case "loop.on_interrupt", "loop.integrate", "loop.notify_desktop":
			ways[k.name] = []map[string]string{{"null": "", "list": "[a]", "section": "{a: b}", "empty": `""`}, switches}
		case "loop.allowed_tools":
			ways[k.name] = []map[string]string{{"null": "", "text": "a", "number": "5", "section": "{a: b}", "number in": "[5]", "null in": "[~]", "empty in": `[""]`}}
		case "loop.notify_command", "loop.notify_secret_var":
			ways[k.name] = []map[string]string{{"null": "", "list": "[a]", "section": "{a: b}", "control": `"a\nb"`}}
		case "loop.notify_webhook":
			ways[k.name] = []map[string]string{{"null": "", "list": "[a]", "no scheme": "a.example", "other": "ftp://a.example"}}
		case "loop.notify_mail":
			ways[k.name] = []map[string]string{{"null": "", "list": "[a]", "no address": "me", "option": "-f@a", "two": `"a@b, c@d"`}}
		default:
			ways[k.name] = []map[string]string{ints}
		}
	}
	remotes := map[string]string{"text": "a", "number": "5", "list": "[a]", "no name": `{"A b": {remote: /r}}`, "null in": "{a: ~}", "no remote": "{a: {branch: main}}",
		"other": "{a: {remote: /r, push: force}}", "option": `{a: {remote: "--upload-pack=x"}}`, "program": `{a: {remote: "ext::sh -c x"}}`, "branch": `{a: {remote: /r, branch: "-x"}}`}
	ways["worker.name"] = []map[string]string{texts, {"dots": "a.b", "long": strings.Repeat("a", 64)}}
	ways["worker.directory"] = []map[string]string{texts, files}
	ways["worker.clients"] = []map[string]string{{"null": "", "text": "claude", "other": "[chatty]", "case": "[Claude]", "null in": "[~]"}}
	ways["worker.can"] = []map[string]string{{"null": "", "text": "gpu", "label": "[needs-gpu]", "two": "[a b]", "empty in": `[""]`, "null in": "[~]"}}
	ways["worker.projects"] = []map[string]string{remotes}
	for _, k := range fleetKeys() {
		switch k.name {
		case "queue":
			ways[k.name] = []map[string]string{texts, {"no scheme": "host:4222", "other": "https://host", "password": "nats://me:secret@host", "path": "nats://host/x", "port": "nats://host:0", "no host": "nats://", "mixed": "nats://a,tls://b", "hole": "nats://a,,b"}}
		case "fleet.namespace":
			ways[k.name] = []map[string]string{texts, {"dots": "a.b", "capital": "A", "long": strings.Repeat("a", 33)}}
		case "fleet.inbox":
			ways[k.name] = []map[string]string{texts, {"wildcard": `"a.>"`, "dots": "a..b"}}
		case "fleet.replicas":
			ways[k.name] = []map[string]string{{"null": "", "text": "many", "float": "1.5", "negative": "-1", "6": "6"}}
		default:
			ways[k.name] = []map[string]string{texts, files}
		}
	}
	for _, k := range delegationKeys() {
		ways[k.name] = []map[string]string{ints, {"1001": "1001"}}
	}
	ways["routes"] = []map[string]string{{"text": "a", "number": "5", "list": "[a]", "route is text": "{a: b}", "unknown": "{a: {b: 1}}"}}
	ways["tasks.commit"] = []map[string]string{{"null": "", "list": "[a]", "section": "{a: b}", "empty": `""`}, switches}
	ways["tasks.parallel"] = []map[string]string{ints, {"33": "33"}}
	ways["delegation.tiers"] = []map[string]string{ints, {"1": "1", "4": "4"}}
	ways["delegation.free"] = []map[string]string{{"text": "docs/", "nothing": `[""]`, "all": `["./"]`, "root": "[/]", "above": `["../x/"]`}}
	ways["gates.max_blocks"] = []map[string]string{ints, {"6": "6"}}
	ways["gates.timeout_seconds"] = []map[string]string{ints, {"4": "4", "571": "571"}}
	for _, k := range keys() {
		if ways[k.name] == nil {
			t.Errorf("%s is not in the table", k.name)
		}
		for _, set := range ways[k.name] {
			for way, value := range set {
				t.Run(k.name+"/"+way, func(t *testing.T) {
					parts := strings.Split(k.name, ".")
					text := "# first line\n"
					for i, p := range parts {
						text += strings.Repeat("  ", i) + p + ":"
						if i < len(parts)-1 {
							text += "\n"
						}
					}
					file := write(t, filepath.Join(env.Dir, "c.yaml"), text+" "+value+"\n")
					_, _, err := Load(env, paths, file)
					if err == nil {
						t.Fatalf("%q was taken", value)
					}
					e := first(t, err)
					if e.File != file || e.Line != len(parts)+1 || e.Column < 2*len(parts) || !strings.HasPrefix(e.Key, k.name) || e.Problem == "" || e.Remedy == "" {
						t.Errorf("error %+v\n%v", *e, err)
					}
					if !strings.HasPrefix(err.Error(), fmt.Sprintf("%s:%d:%d: %s", file, e.Line, e.Column, k.name)) {
						t.Errorf("message %q", err)
					}
				})
			}
		}
	}
}

func TestWrongFiles(t *testing.T) {
	env := testEnv(t)
	paths := testPaths(t, env)
	for _, tc := range []struct {
		name, text string
		line, col  int
		key        string
		want       string // part of the message
	}{
		{"unknown section", "sub_agents:\n  x: 1\n", 1, 1, "sub_agents", "did you mean sub_agent?"},
		{"colon in a text", "logging:\n  level: echo a: b\n", 2, 10, "", "put quotes around the text"},
		{"judge that cannot be one", "judge:\n  client: codex\n", 2, 11, "judge.client", "docs/judge.md says why"},
		{"root of all", "guard:\n  roots: [/]\n", 2, 11, "guard.roots[0]", "agents may work in"},
		{"root that is none", "guard:\n  roots: [a]\n", 2, 11, "guard.roots[0]", "absolute"},
		{"unknown key", "sub_agent:\n  sync_window: 5\n", 2, 3, "sub_agent.sync_window", "is not a setting"},
		{"slip in a rule's name", "guard:\n  loosen: [reads-outsde]\n", 2, 12, "guard.loosen[0]", "did you mean reads-outside?"},
		{"rule with an underscore", "guard:\n  loosen: [reads_outside]\n", 2, 12, "guard.loosen[0]", "did you mean reads-outside?"},
		{"rule that is fixed", "guard:\n  loosen: [dynamic-command]\n", 2, 12, "guard.loosen[0]", "leave it out"},
		{"another word", "bogus:\n  x: 1\n", 1, 1, "bogus", "is not a setting; remove it, or update reprise where a newer one wrote it"},
		{"slip", "logging:\n  levle: info\n", 2, 3, "logging.levle", "did you mean logging.level?"},
		{"key at the top", "level: info\n", 1, 1, "level", "did you mean logging.level?"},
		{"key in the wrong section", "memory:\n  level: info\n", 2, 3, "memory.level", "did you mean logging.level?"},
		{"no likeness", "zzzzzzzz: 1\n", 1, 1, "zzzzzzzz", "lists all settings"},
		{"long key", strings.Repeat("k", 500) + ": 1\n", 1, 1, strings.Repeat("k", 500), "is not a setting"},
		{"section twice", "memory:\n  directory: /a\nmemory:\n  directory: /b\n", 3, 1, "memory", "already defined"},
		{"key twice", "logging:\n  level: info\n  level: warn\n", 3, 3, "level", "keep one"},
		{"key twice, quoted", "logging:\n  level: info\n  \"level\": warn\n", 3, 3, "", ""},
		{"section as text", "memory: /a\n", 1, 9, "memory", "not a section"},
		{"section as list", "memory:\n  - directory: /a\n", 2, 3, "memory", "not a section"},
		{"tab", "memory:\n\tdirectory: /a\n", 2, 1, "", "indent with spaces"},
		{"list at the top", "- a\n", 1, 1, "", "where settings are expected"},
		{"text at the top", "hello\n", 1, 1, "", "where settings are expected"},
		{"two documents", "memory:\n---\nlogging:\n", 3, 1, "", "second document"},
		{"directive", "%YAML 1.2\n---\nmemory:\n", 1, 1, "", "directive"},
		{"merge key", "<<: {a: 1}\n", 1, 1, "", "not a setting's name"},
		{"number as key", "1: 2\n", 1, 1, "", "not a setting's name"},
		{"alias", "memory: *x\n", 1, 9, "", ""},
		{"unclosed quote", "memory:\n  directory: 'a\n", 2, 14, "", "close the quotation mark"},
		{"unclosed bracket", "http:\n  allowed_origins: [a\n", 2, 20, "", "not valid YAML"},
		{"wrong indent", "memory:\n  directory: /a\n level: x\n", 3, 2, "", "not valid YAML"},
		{"unresolved merge", "logging:\n<<<<<<< HEAD\n  level: info\n=======\n  level: debug\n>>>>>>> other\n", 2, 1, "", "a merge that is not resolved"},
		{"unresolved merge at the top", "<<<<<<< HEAD\nv: 1\nname: a\n||||||| base\nname: c\n=======\nname: b\n>>>>>>> x\n", 1, 1, "", "take the marks out"},
		{"not UTF-8", "memory:\n  # caf\xe9\n", 2, 8, "", "not UTF-8"},
		{"UTF-16", "\xff\xfem\x00", 1, 1, "", "UTF-16"},
		{"NUL", "memory:\x00\n", 1, 8, "", "NUL"},
		{"refused before told", "delegation:\n  conductor: {warn: 8, block: 2}\n", 2, 24, "delegation.conductor.block", "conductor.block to 8 or more"},
		{"told later than refused by default", "delegation:\n  section_leader:\n    warn: 21\n", 3, 5, "delegation.section_leader.warn", "refuses after 20"},
		{"half of OAuth", "http:\n  oauth:\n    issuer: https://a.example\n", 2, 3, "http.oauth.audience", "is missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := Load(env, paths, write(t, filepath.Join(env.Dir, "c.yaml"), tc.text))
			if err == nil {
				t.Fatal("was taken")
			}
			e := first(t, err)
			if e.Line != tc.line || e.Column != tc.col || tc.key != "" && e.Key != tc.key || !strings.Contains(err.Error(), tc.want) || e.Remedy == "" {
				t.Errorf("got %d:%d key %q: %v; want %d:%d %q %q", e.Line, e.Column, e.Key, err, tc.line, tc.col, tc.key, tc.want)
			}
		})
	}
}

func TestAllProblemsAreTold(t *testing.T) {
	env := testEnv(t)
	_, _, err := Load(env, testPaths(t, env), write(t, filepath.Join(env.Dir, "c.yaml"), "sub_agent:\n  sync_window_seconds: 30\nlogging:\n  level: loud\nfoo: 1\n"))
	var all Errors
	if !errors.As(err, &all) || len(all) != 3 {
		t.Fatalf("got %v", err)
	}
	if strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("message %q", err)
	}
}

func TestWhichFile(t *testing.T) {
	env := testEnv(t)
	level := func(name, level string) string {
		return write(t, filepath.Join(env.Dir, name), "logging: {level: "+level+"}\n")
	}
	paths := testPaths(t, env)
	flag, own, old := level("flag.yaml", "debug"), level("own.yaml", "warn"), level("old.yaml", "error")
	write(t, paths.ConfigFile, "logging: {max_backups: 7}\n")
	// The place of an older program is not looked at unless it is named.
	level(".claude-agent-memory/bridge-config.yaml", "error")
	for _, tc := range []struct {
		name, flag string
		vars       map[string]string
		want       string
	}{
		{"flag first", flag, map[string]string{"REPRISE_CONFIG": own, "MCP_BRIDGE_CONFIG": old}, "debug"},
		{"relative flag", "flag.yaml", nil, "debug"},
		{"dotted flag", "./flag.yaml", nil, "debug"},
		{"home flag", "~/flag.yaml", nil, "debug"},
		{"own variable second", "", map[string]string{"REPRISE_CONFIG": own, "MCP_BRIDGE_CONFIG": old}, "warn"},
		{"home in a variable", "", map[string]string{"REPRISE_CONFIG": "~/own.yaml"}, "warn"},
		{"alias third", "", map[string]string{"MCP_BRIDGE_CONFIG": old}, "error"},
		{"empty variables are unset", "", map[string]string{"REPRISE_CONFIG": "", "MCP_BRIDGE_CONFIG": old}, "error"},
		{"default place", "", nil, "info"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := env
			e.Vars = map[string]string{"HOME": env.Vars["HOME"], "USERPROFILE": env.Vars["USERPROFILE"]}
			for k, v := range tc.vars {
				e.Vars[k] = v
			}
			s, _, err := Load(e, paths, tc.flag)
			if err != nil {
				t.Fatal(err)
			}
			if s.Logging.Level != tc.want {
				t.Errorf("level %s, want %s", s.Logging.Level, tc.want)
			}
			if tc.name == "default place" && s.Logging.MaxBackups != 7 {
				t.Error("the default place was not read")
			}
		})
	}
}

func TestFilesThatCannotBe(t *testing.T) {
	env := testEnv(t)
	paths := testPaths(t, env)
	missing := filepath.Join(env.Dir, "none.yaml")
	big := write(t, filepath.Join(env.Dir, "big.yaml"), "#"+strings.Repeat("x", maxFile))
	file := write(t, filepath.Join(env.Dir, "f"), "")
	// 60 kB of brackets take the YAML parser minutes.
	deep := write(t, filepath.Join(env.Dir, "deep.yaml"), "http: {allowed_origins: "+strings.Repeat("[", 60_000)+"}")
	for _, tc := range []struct {
		name, flag string
		vars       map[string]string
		want       string
	}{
		{"missing flag", missing, nil, "no such file"},
		{"nested deep", deep, nil, "nested deeper than 100 levels"},
		{"missing variable", "", map[string]string{"REPRISE_CONFIG": missing}, "no such file"},
		{"missing alias", "", map[string]string{"MCP_BRIDGE_CONFIG": missing}, "no such file"},
		{"relative variable", "", map[string]string{"REPRISE_CONFIG": "none.yaml"}, "not an absolute path"},
		{"relative alias", "", map[string]string{"MCP_BRIDGE_CONFIG": "none.yaml"}, "not an absolute path"},
		{"control character", "a\x01b", nil, "control character"},
		{"other user", "~bob/x", nil, "~user"},
		{"directory", env.Dir, nil, "is not a regular file but a directory"},
		{"below a file", filepath.Join(file, "x"), nil, "not a directory"},
		{"huge", big, nil, "larger than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := env
			e.Vars = map[string]string{"HOME": env.Vars["HOME"], "USERPROFILE": env.Vars["USERPROFILE"]}
			for k, v := range tc.vars {
				e.Vars[k] = v
			}
			_, _, err := Load(e, paths, tc.flag)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if first(t, err).Remedy == "" {
				t.Error("no remedy")
			}
		})
	}
	t.Run("directory at the default place", func(t *testing.T) {
		if err := os.MkdirAll(paths.ConfigFile, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Load(env, paths, ""); err == nil {
			t.Error("a directory was taken for no file")
		}
	})
	t.Run("unreadable", func(t *testing.T) {
		if runtime.GOOS == "windows" || os.Getuid() == 0 {
			t.Skip("everything is readable here")
		}
		f := write(t, filepath.Join(env.Dir, "secret.yaml"), "")
		if err := os.Chmod(f, 0); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Load(env, paths, f); err == nil || !strings.Contains(err.Error(), "permission") {
			t.Errorf("got %v", err)
		}
	})
}

func TestMemoryVariable(t *testing.T) {
	env := testEnv(t)
	paths := testPaths(t, env)
	env.Vars["AI_MEMORY_PATH"] = "~/old"
	s, _, err := Load(env, paths, "")
	if err != nil || s.Memory.Directory != filepath.Join(env.Dir, "old") {
		t.Errorf("%v, %v", s.Memory.Directory, err)
	}
	if _, err := os.Stat(s.Memory.Directory); !errors.Is(err, os.ErrNotExist) {
		t.Error("loading made the memory directory")
	}
	file := write(t, filepath.Join(env.Dir, "c.yaml"), "memory: {directory: /from/file}\n")
	if s, _, err = Load(env, paths, file); err != nil || s.Memory.Directory != "/from/file" {
		t.Errorf("the file does not win: %v, %v", s.Memory.Directory, err)
	}
	env.Vars["AI_MEMORY_PATH"] = "relative"
	if _, _, err = Load(env, paths, ""); err == nil || first(t, err).Key != "AI_MEMORY_PATH" {
		t.Errorf("got %v", err)
	}
}

func TestHomeFiles(t *testing.T) {
	env := testEnv(t)
	h, err := Open(env, "")
	if err != nil {
		t.Fatal(err)
	}
	if h.IndexBase() != h.Paths.IndexBase() || h.LogFile() != h.Paths.LogFile() || h.RunsDir() != h.Paths.Runs("") || h.EventsDir() != h.Paths.Events("") {
		t.Errorf("%+v", h)
	}
	env.Vars["AI_MEMORY_PATH"] = "/other"
	other, err := Open(env, "")
	if err != nil {
		t.Fatal(err)
	}
	if other.IndexBase() == h.IndexBase() || filepath.Dir(other.IndexBase()) != h.Paths.Cache {
		t.Errorf("two memories share %s", other.IndexBase())
	}
}

func FuzzLoad(f *testing.F) {
	for _, s := range []string{"", "sub_agent:\n  sync_window_seconds: 25\n", "a: [", "\ufeffmemory: {directory: ~/x}", "? a\n: b", "a: &x [*x]", "'", "a: |\n  b", "http: {oauth: {issuer: \"https://a\"}}", "%\n", "- - -", "{}", "[]: 1", "a: !!binary x", "\"\\u0000\": 1"} {
		f.Add([]byte(s))
	}
	home := f.TempDir()
	env := Env{Vars: map[string]string{"HOME": home, "USERPROFILE": home}, Dir: home, GOOS: "linux"}
	if runtime.GOOS == "windows" {
		env.GOOS = "windows"
	}
	paths, err := FindPaths(env)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := &loader{env: env, out: Default(paths), set: map[string]int{}, document: &document{file: "f"}}
		err := l.parse(data)
		if err == nil {
			s := l.out
			if s.SubAgent.SyncWindowSeconds < 0 || s.SubAgent.SyncWindowSeconds >= 30 || s.SubAgent.MaxConcurrentAgents < 1 ||
				!filepath.IsAbs(s.Memory.Directory) || !filepath.IsAbs(s.Logging.File) || s.ClaudeCLI.Path == "" ||
				!slices.Contains([]string{"debug", "info", "warn", "error"}, s.Logging.Level) {
				t.Errorf("%q gives %+v", data, s)
			}
			return
		}
		var e *Error
		if !errors.As(err, &e) || e.Problem == "" || e.Remedy == "" {
			t.Errorf("%q: error without parts: %v", data, err)
		}
		if _, err := ParseProject("f", data); err != nil && !errors.As(err, &e) {
			t.Errorf("%q: error without parts: %v", data, err)
		}
	})
}
