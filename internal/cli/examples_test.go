//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/cli"
	"reprise/internal/proc"
)

// Every command's help has an example, and every example runs: the lines of each are
// what somebody would type in a project that has what they speak of.
func TestExamples(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("the project that the examples speak of is a git repository, and git is not here")
	}
	t.Parallel()
	var commands []*cobra.Command
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		commands = append(commands, cmd)
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				walk(sub)
			}
		}
	}
	walk(cli.Tree())
	known, lines := map[string]bool{}, map[string]bool{}
	for _, cmd := range commands {
		known[cmd.CommandPath()] = true
		for line := range strings.Lines(cmd.Example) {
			lines[strings.TrimSpace(line)] = true
		}
		if !cmd.HasExample() {
			t.Errorf("`%s --help` has no example: give it one in examples.go", cmd.CommandPath())
		}
	}
	for line := range examplesElsewhere {
		if !lines[line] {
			t.Errorf("%q is no line of an example any more: take it out of this test", line)
		}
	}
	for what := range examplesNeed {
		if !lines[what] && !known[what] {
			t.Errorf("%q is neither a command nor a line of an example: take it out of this test", what)
		}
	}
	// Each worker has a project of its own, made once and put back for each command.
	work := make(chan *cobra.Command)
	var wait sync.WaitGroup
	for range 2 {
		w := newExampleWorld(t)
		wait.Go(func() {
			for cmd := range work {
				t.Run(strings.ReplaceAll(cmd.CommandPath(), " ", "-"), func(t *testing.T) { w.try(t, cmd) })
			}
		})
	}
	for _, cmd := range commands {
		if cmd.HasExample() {
			work <- cmd
		}
	}
	close(work)
	wait.Wait()
}

// try runs the example of a command.
func (w *exampleWorld) try(t *testing.T, cmd *cobra.Command) {
	began := time.Now()
	w.reset(t)
	defer w.stop(t)
	var lines []string
	for line := range strings.Lines(cmd.Example) {
		lines = append(lines, strings.TrimSpace(line))
	}
	need := examplesNeed[cmd.CommandPath()]
	w.prepare(t, need)
	script := false // what one line keeps for the next only a shell knows
	for _, line := range lines {
		if _, plain := plainCall(line); !plain && strings.HasPrefix(line, "token=") {
			script = true
		}
	}
	if script {
		lines = []string{strings.Join(lines, "\n")}
	}
	asJSON := -1
	if !script {
		asJSON = forPrograms(cmd, lines)
	}
	for i, line := range lines {
		if examplesElsewhere[line] != "" {
			continue
		}
		need := need
		own, special := examplesNeed[line]
		if i > 0 && (need.fresh || own.fresh) {
			w.stop(t)
			w.reset(t)
			w.prepare(t, need)
		}
		if special && line != cmd.CommandPath() {
			w.prepare(t, own)
			need = own
		}
		was := line
		if i == asJSON {
			line = cmd.CommandPath() + " --json" + strings.TrimPrefix(line, cmd.CommandPath())
		}
		line = w.named(t, line)
		run := w.line
		if need.until != "" {
			run = func(t *testing.T, line string) (string, error) { return w.until(t, line, need.until) }
		}
		if out, err := run(t, line); err != nil && (need.code == 0 || err.Error() != fmt.Sprintf("exit code %d", need.code)) {
			t.Errorf("%s\n%v\n%s", was, err, out)
		}
	}
	t.Logf("%v", time.Since(began).Round(time.Millisecond))
}

// forPrograms is which line of a command's example is run with --json, where none of them
// has it: what it prints is then compared with what is documented of that. -1 is none.
func forPrograms(cmd *cobra.Command, lines []string) int {
	name := strings.TrimPrefix(cmd.CommandPath(), "reprise ")
	if jsonCommands()[name] == nil || jsonElsewhere[name] != "" {
		return -1
	}
	for _, line := range lines {
		if _, plain := plainCall(line); plain && strings.Contains(line, "--json") {
			return -1
		}
	}
	for i, line := range slices.Backward(lines) {
		args, plain := plainCall(line)
		if !plain || examplesElsewhere[line] != "" || examplesNeed[line].until != "" || strings.Contains(line, "--tools") || strings.Contains(line, "--install-timer") || !strings.HasPrefix(line+" ", cmd.CommandPath()+" ") {
			continue
		}
		if found, err := commandOf(args); err == nil && found.CommandPath() == cmd.CommandPath() {
			return i
		}
	}
	return -1
}

func (w *exampleWorld) prepare(t *testing.T, need exampleNeed) {
	t.Helper()
	if need.dir != "" {
		w.vars["PWD"] = filepath.Join(w.root, need.dir)
		if err := os.MkdirAll(w.vars["PWD"], 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if need.packed {
		w.program = filepath.Join(w.root, "reprise")
		if err := os.WriteFile(w.program, []byte("a program\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range need.vars {
		w.vars[name] = strings.ReplaceAll(value, "WORLD", w.root)
	}
	for _, line := range need.before {
		if out, err := w.line(t, line); err != nil {
			t.Fatalf("before the example: %s: %v\n%s", line, err, out)
		}
	}
	if need.waiting {
		w.putWaiting(t)
	}
	if need.running {
		w.startLoop(t)
	}
	if need.asked {
		if out, err := w.line(t, "reprise loop interrupt why"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		w.poll(t, "reprise loop status", "waits for a person")
	}
}

// startLoop has a loop run, whose agent does not end by itself, and gives what follows
// the place of that agent.
func (w *exampleWorld) startLoop(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.root, "hang.yaml"), []byte("steps:\n  - say: at it\n  - hang: true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "loop", "run", "--agent-script", filepath.Join(w.root, "hang.yaml"), "--delay", "0s")
	cmd.Dir, cmd.Env = w.vars["PWD"], w.environ()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	w.looping = cmd.Process
	w.poll(t, "reprise loop status", "run-")
}

// poll runs a line until it prints what is waited for.
func (w *exampleWorld) poll(t *testing.T, line, want string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		out, _ := w.line(t, line)
		if strings.Contains(out, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not print %q:\n%s", line, want, out)
		}
	}
}

// putWaiting puts a call among those that wait; who waits for the answer is this test.
func (w *exampleWorld) putWaiting(t *testing.T) {
	t.Helper()
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]any{
		"v": 1, "id": "01a225a88764000a1b2c3d", "at": time.Now(), "until": time.Now().Add(time.Hour), "client": "claude", "tool": "Bash",
		"input": "git push", "owner": self, "cwd": "/", "rule": "writes", "reason": "it writes",
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(w.vars["HOME"], ".local", "state", "reprise", "guard", "pending")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "01a225a88764000a1b2c3d.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// stop ends what an example has left running.
func (w *exampleWorld) stop(t *testing.T) {
	delete(w.vars, "REPRISE_RUN_ID")
	w.vars["PWD"] = filepath.Join(w.root, "shop")
	if w.looping != nil {
		_, _ = w.line(t, "reprise loop stop")
		_, _ = w.looping.Wait()
		w.looping = nil
	}
	out, err := w.line(t, "reprise runs list")
	if err != nil {
		t.Errorf("look for what runs: %v\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 1 && runID.MatchString(f[0]) && (strings.HasPrefix(f[1], "spawning") || strings.HasPrefix(f[1], "running")) {
			if out, err := w.line(t, "reprise runs cancel "+f[0]); err != nil {
				t.Errorf("end %s: %v\n%s", f[0], err, out)
			}
		}
	}
	// A run is told to be over before its process is: that writes its last files.
	if err := outlived(w.vars["HOME"]); err != nil {
		t.Fatalf("this example: %v", err)
	}
}

// exampleNeed is what the project must have beside what it always has.
type exampleNeed struct {
	dir     string            // where it is typed, below the world
	vars    map[string]string // of its environment
	before  []string          // lines
	running bool              // a loop, and its agent
	fresh   bool              // each line in a world of its own
	packed  bool              // a program that is small: this one takes seconds to be packed
	waiting bool              // a call that waits for the user
	asked   bool              // the loop was told to wait for an answer
	code    int               // exit code
	// until ends a command that goes on until Ctrl-C, when it has printed this.
	until string
}

// examplesNeed is by command, or by line of an example.
var examplesNeed = map[string]exampleNeed{
	"reprise":                  {dir: "bakery", fresh: true},
	"reprise init":             {dir: "bakery"},
	"reprise demo":             {dir: "bakery"},
	"reprise artifact":         {before: []string{"echo text > report.html"}},
	"reprise artifact add":     {before: []string{"echo text > report.html"}},
	"reprise delegation reset": {vars: map[string]string{"AGENT_ROLE": "conductor"}, before: []string{worked}},
	"reprise guard approve":    {waiting: true},
	"reprise guard deny":       {waiting: true},
	"reprise hook record":      {before: recorded},
	"reprise hook replay":      {before: recorded},
	"reprise verify":           {before: []string{"reprise trust --yes"}},
	"reprise verify list":      {before: []string{"reprise trust --yes", "reprise verify"}},
	"reprise verify show":      {before: []string{"reprise trust --yes", "reprise verify"}},
	"reprise mcp bundle":       {packed: true},
	"reprise mcp verify":       {before: []string{"reprise mcp install claude-code"}},
	"reprise mcp token revoke": {before: []string{"reprise mcp token create phone"}},
	"reprise mcp uninstall":    {before: []string{"reprise mcp install codex"}},
	"reprise mcp token create laptop && reprise mcp --http 127.0.0.1:8765": {until: "serving MCP"},
	"reprise runs cancel":    {before: hang},
	"reprise runs extend":    {before: hang},
	"reprise queue add":      {before: queueLists},
	"reprise queue done":     {before: []string{"reprise queue claim login --lease 1h"}},
	"reprise queue extend":   {before: []string{"reprise queue claim login --lease 1h"}},
	"reprise queue fail":     {before: []string{"reprise queue claim login --lease 1h"}},
	"reprise queue progress": {before: []string{"reprise queue claim login --lease 1h"}},
	"reprise queue release":  {before: []string{"reprise queue claim login --lease 1h"}},
	"reprise loop ask":       {vars: asAgent},
	"reprise loop progress":  {vars: asAgent},
	"reprise loop audit":     {before: []string{looped}},
	"reprise loop logs":      {before: []string{looped}},
	"reprise loop metrics":   {before: []string{looped}},
	"reprise loop report":    {before: []string{looped}},
	"reprise loop status":    {before: []string{looped}},
	"reprise loop pause":     {running: true},
	"reprise loop interrupt": {running: true},
	"reprise loop stop":      {running: true},
	"reprise loop resume":    {running: true, before: []string{"true"}, asked: true, fresh: true},
	"reprise loop run --workers 4 --unattended --budget-usd 20 --max-hours 6": {until: "4 workers"},
	"reprise worker list": {code: cli.ExitNotFound}, // this world has no servers
	"reprise runs files":  {code: cli.ExitNotFound},
	"reprise worker":      {before: []string{worksForShop}, until: "1 worker"},
	"reprise worker --workers 4 --can gpu --budget-usd 20": {until: "4 workers"},
	"reprise worker prepare":                               {before: []string{worksForShop}},
	"reprise index":                                        {before: []string{"reprise index rebuild"}},
	"reprise index status":                                 {before: []string{"reprise index rebuild"}},
	"reprise memory":                                       {before: []string{"echo '# Backups' > backups.md"}},
	"reprise memory correct":                               {fresh: true},
	"reprise memory read":                                  {before: []string{aboutShop}},
	"reprise memory update":                                {before: []string{aboutShop}},
	"reprise memory demote":                                {before: []string{"reprise memory promote $(reprise recall --json 'billing is 5432' | grep -o 'e-[0-9a-f]*' | head -1) --to global"}},
	"reprise qa show":                                      {before: []string{answered}},
	"reprise qa forget":                                    {before: []string{answered}},
	"reprise recall":                                       {before: []string{"reprise memory learn 'connection refused means that the database is down'"}},
	"reprise recall --as-of 2026-09-01 deploy day":         {code: cli.ExitNotFound}, // this world is younger
	"reprise spawn":                                        {before: []string{"echo 'Say hello' > task.md"}},
	"reprise state archive":                                {before: []string{"reprise state fork tester"}},
	"reprise state find":                                   {before: []string{"reprise learn 'Tokens need both checks'"}},
	"reprise state pull":                                   {before: []string{withRemote}},
	"reprise state push":                                   {before: []string{withRemote}},
	"reprise state sync":                                   {before: []string{withRemote}},
	"reprise handoff accept":                               {before: []string{forTidy}},
	"reprise handoff":                                      {before: []string{forTidy}},
	"reprise task cancel":                                  {before: []string{"reprise task begin 12 research"}},
	"reprise watch":                                        {until: "next"},
	"reprise web":                                          {until: "http"},
	"reprise workspace enter":                              {before: []string{"reprise workspace create auth"}},
	"reprise workspace env":                                {before: []string{"reprise workspace create auth"}},
}

var (
	worksForShop = `printf 'worker:\n  projects:\n    shop: {remote: %s}\n' "$PWD" >> $HOME/.config/reprise/config.yaml`

	hang = []string{
		`printf 'steps:\n  - hang: true\n' > hang.yaml`, "reprise spawn --detach --agent-script hang.yaml wait",
		"until reprise runs list --status running | grep -q run-; do sleep 0.05; done",
	}
	recorded   = []string{`echo '{"session_id":"s1","hook_event_name":"SessionStart","source":"startup"}' | reprise hook record cases --client claude`}
	queueLists = []string{`echo '{"title":"From a file"}' > tasks.jsonl`, `printf -- '- [ ] From a list\n' > TODO.md`, "reprise task research 12", "reprise task plan 12"}
	asAgent    = map[string]string{"HARNESS_SESSION": "true", "INTERRUPT_FILE": "WORLD/interrupt.txt", "ERROR_FILE": "WORLD/error.txt", "PROGRESS_FILE": "WORLD/progress.txt"}
)

const (
	looped     = "reprise loop run --until-empty --delay 0s --max-iterations 1"
	aboutShop  = `reprise memory create project-shop --summary "The shop" --content "Billing listens on port 5432."`
	withRemote = "git init --quiet --bare ../remote.git && reprise state init --remote ../remote.git"
	forTidy    = "cd ../shop.workspaces/billing && reprise handoff --to tidy 'Go on'"
	worked     = `echo '{"session_id":"5a13438d-5a8e-41c4-808c-0000000000c1","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"make"}}' | reprise hook claude PreToolUse --deadline-ms=60000`
	answered   = `echo '{"session_id":"s1","hook_event_name":"PostToolUse","tool_name":"AskUserQuestion","tool_use_id":"u1","tool_input":{"questions":[{"question":"Which database?","header":"DB","multiSelect":false,"options":[{"label":"Postgres","description":"a"},{"label":"SQLite","description":"b"}]}]},"tool_response":{"questions":[],"answers":{"Which database?":"SQLite"}}}' | reprise hook claude PostToolUse --deadline-ms=60000`
)

// examplesElsewhere are lines that are not run here, with the reason.
var examplesElsewhere = map[string]string{
	"claude --settings hooks.json -p \"run the tests\"":                                                   "it needs the client; e2e has one",
	"reprise workspace enter auth -- claude":                                                              "it needs the client",
	"reprise workspace enter auth --tmux":                                                                 "it needs tmux and a terminal",
	"reprise workspace create auth --base origin/main --branch feature/auth --tmux":                       "it needs tmux",
	"reprise workspace env auth --shell fish | source":                                                    "it is a line of fish",
	"reprise workspace env auth --shell powershell | Invoke-Expression":                                   "it is a line of PowerShell",
	"reprise loop resume --item login --answer \"Yes.\"":                                                  "it needs an agent that asked; loop_answers.txtar has two",
	"reprise queue add --from-github --gh-label agent --parked":                                           "it needs the network; queue_github.txtar has a stand-in",
	"reprise mcp install claude-code --scope user --with-server lean-lsp --verify":                        "it needs that server; mcp_verify.txtar has a stand-in",
	"reprise mcp verify claude-code --with-server lean-lsp":                                               "it needs that server; mcp_verify.txtar has a stand-in",
	"reprise judge ask --purpose review --schema word.json \"The first word of the Odyssey, in English\"": "it needs a model; judge.txtar has a stand-in",
	"reprise hook replay cases --against ./old-hook -- --quiet":                                           "it needs another program",
	"reprise policy evaluate --candidate mine.json --adopt":                                               "it needs a history of recalls; policy.txtar has one",
	"reprise policy rollback default --reason \"it ranked worse\"":                                        "it needs a policy that was learnt; policy.txtar has one",
	"reprise memory summarize --limit 3":                                                                  "it needs a model; summarize.txtar has a stand-in",
	"reprise task finish sess_1764374400_a1b2c3 < answer.json":                                            "it needs an agent's last message; task_session.txtar has one",
	"reprise task meta --answers answers.yaml --dry-run":                                                  "it needs a file of answers; meta.txtar has one",
	"reprise task meta --undo":                                                                            "it needs something that was made; meta.txtar has it",
	"reprise task begin 12 implement --phase 2 --json":                                                    "it needs a plan of two phases; task_session.txtar has one",
	"reprise web --open":                                                      "it opens a browser",
	"reprise queue migrate --dry-run":                                         "it needs servers; queue_fleet.txtar has one",
	"reprise queue migrate --to files":                                        "it needs servers; queue_fleet.txtar has one",
	"reprise state init --remote git@example.org:team/shop-state.git":         "it needs the network; state_sync.txtar has a directory in its place",
	"reprise index embed --max 1000":                                          "it needs an endpoint for vectors; embed.txtar has a stand-in",
	"reprise memory profile keep said:0a1b2c3d":                               "it needs a session that said a wish; memory_corrected.txtar has one",
	"reprise memory profile edit said:0a1b2c3d \"Answer in short sentences\"": "it needs a session that said a wish; memory_corrected.txtar has one",
	"reprise memory profile drop said:0a1b2c3d":                               "it needs a session that said a wish; memory_corrected.txtar has one",
}
