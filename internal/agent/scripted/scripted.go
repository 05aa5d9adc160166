// Package scripted plays an agent by a list of steps: the `script` client. It
// needs no account and no network and behaves as well or as badly as it is
// asked to, which is what demos, tests and drills of the harness need.
//
// It writes only what its steps say, in its own working directory unless a
// step names another place, and without a file of steps one artefact,
// reprise-script-<run id>.txt. It takes no lock. Its standard output has the
// form of Claude Code's stream-json, so that one parser serves both.
//
// # File of steps
//
// A file is YAML with two keys. Unknown keys, wrong types and a step with
// other than one key are errors that name line and column; nothing is played
// then and the exit code is 2.
//
//	v: 1                        # optional
//	steps:
//	  - say: "text"             # one assistant message; the last one is the answer
//	  - when: "regexp"          # the steps up to the next when are for tasks that match
//	  - delay: 1.5s             # wait
//	  - echo: [task, cwd, system_prompt, env, args]   # say these; env gives names only
//	  - write: {path: out.txt, content: "x", append: false}
//	  - read: "{{.MemoryDir}}/core.md"   # a Read call: its content or its error is the answer so far
//	  - shell: {command: "make", background: false}   # a Bash call, really run by sh
//	  - tool: {name: Bash, count: 3}     # calls that are told of but not made
//	  - denied: {tool: Bash, input: "rm -rf /", reason: "no"}
//	  - flood: {bytes: 10MB, to: stdout, form: json}  # many lines; to: stderr, form: text
//	  - long_line: {bytes: 60MB, form: json}          # one line; form: text, or result for a result line
//	  - stderr: "text"
//	  - raw: "any line\n"       # written as it is
//	  - partial: '{"type":"assi'         # without a line end, then killed by SIGKILL
//	  - api_retry: {count: 10, status: 429, delay: 1s}
//	  - api_error: {status: 500, message: "overloaded"}   # ends, exit 1
//	  - result: {text: "", is_error: false, subtype: success, terminal_reason: completed, turns: 1, cost: 0.5}
//	  - ignore: [SIGTERM, SIGINT, SIGHUP]
//	  - fork: {escape: daemon, count: 2, for: 60s, keep_env: true, ignore: [SIGTERM]}
//	                            # children that outlive it; escape: none, group, session or daemon
//	  - wait_for: {file: go.txt, timeout: 30s}   # a barrier: until the file is there
//	  - signal: SIGKILL         # to itself
//	  - hang: true              # until it is killed; after a result this is the client that lives on
//	  - exit: 3                 # at once, without a result
//
// Sizes take B, kB, MB and GB (powers of 1000). {{.RunID}}, {{.SessionID}},
// {{.Task}}, {{.WorkDir}}, {{.MemoryDir}} and {{.Model}} are replaced in all
// texts and paths; in a step of a task {{.Delegation}} and {{.Artifact}}, too. If no step has ended the run, a good result with the last
// text that was said is written and the exit code is 0.
package scripted

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reprise/internal/proc"
)

// Exit codes of the player itself.
const (
	exitUsage  = 2 // bad arguments or a bad file of steps
	exitFailed = 1 // a step could not be done
)

// IO is everything the player touches.
type IO struct {
	In       io.Reader // the task
	Out, Err *os.File
	Env      []string // "NAME=value"
	Dir      string   // absolute working directory
	Self     string   // absolute path of this program, for children that escape
}

// maxTask bounds what is read of the task, which a script may echo.
const maxTask = 64 << 20

// Play plays the steps of a file ("" plays the default) and returns the exit
// code. Arguments are those after `script-agent`: [--file F], or the internal
// --linger.
func Play(sio IO, args []string) int {
	file, linger, err := parseArgs(args)
	if err != nil {
		fmt.Fprintln(sio.Err, "script-agent:", err)
		return exitUsage
	}
	if linger != nil {
		return linger.live(sio)
	}
	var steps []step
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintln(sio.Err, "script-agent: read steps:", err)
			return exitUsage
		}
		if steps, err = Parse(file, data); err != nil {
			fmt.Fprintln(sio.Err, "script-agent:", err)
			return exitUsage
		}
	}
	p := newPlayer(sio)
	if p.task, err = readTask(sio.In); err != nil {
		fmt.Fprintln(sio.Err, "script-agent: read task:", err)
		return exitFailed
	}
	p.init()
	if file == "" {
		steps = defaultSteps(p.Env)
	}
	for _, s := range steps {
		if _, marker := s.do.(*whenStep); p.skip && !marker {
			continue
		}
		code, err := s.do.play(p)
		if err != nil {
			fmt.Fprintf(sio.Err, "script-agent: %s:%d: %s: %v\n", file, s.line, s.name, err)
			return exitFailed
		}
		if code >= 0 {
			return code
		}
	}
	if !p.resulted {
		p.result(resultStep{})
	}
	if p.err != nil {
		fmt.Fprintln(sio.Err, "script-agent: write output:", p.err)
		return exitFailed
	}
	return 0
}

func parseArgs(args []string) (file string, l *linger, err error) {
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		if !has && (name == "--file" || name == "--linger") {
			if i++; i >= len(args) {
				return "", nil, fmt.Errorf("%s needs a value", name)
			}
			value = args[i]
		}
		switch {
		case name == "--file" && value != "":
			file = value
		case name == "--linger":
			l = &linger{}
			if err := json.Unmarshal([]byte(value), l); err != nil {
				return "", nil, fmt.Errorf("--linger: %w", err)
			}
		default:
			return "", nil, fmt.Errorf("unknown argument %q; usage: script-agent [--file FILE]", args[i])
		}
	}
	return file, l, nil
}

func readTask(r io.Reader) (string, error) {
	if r == nil {
		return "", nil
	}
	data, err := io.ReadAll(io.LimitReader(r, maxTask+1))
	if err != nil {
		return "", err
	}
	if len(data) > maxTask {
		return "", errors.New("it is longer than 64 MiB")
	}
	return string(data), nil
}

// player is the state of one run of the script.
type player struct {
	IO
	task     string
	run      string
	session  string
	model    string
	memory   string
	replace  *strings.Replacer
	err      error // the first failure to write output
	n        int   // counter for ids
	turns    int
	said     string
	denials  []map[string]any
	resulted bool
	skip     bool // the section of steps is for other tasks
}

func newPlayer(sio IO) *player {
	p := &player{IO: sio, run: proc.EnvValue(sio.Env, "REPRISE_RUN_ID"), session: proc.EnvValue(sio.Env, "REPRISE_SESSION_ID"),
		model: proc.EnvValue(sio.Env, "REPRISE_MODEL"), memory: proc.EnvValue(sio.Env, "REPRISE_MEMORY_DIR")}
	if p.run == "" {
		p.run = "alone"
	}
	if p.session == "" {
		p.session = "script-" + p.run
	}
	if p.model == "" {
		p.model = "script"
	}
	return p
}

// init announces the session and makes the task known to the templates.
func (p *player) init() {
	p.replace = strings.NewReplacer("{{.RunID}}", p.run, "{{.SessionID}}", p.session, "{{.Task}}", p.task,
		"{{.WorkDir}}", p.Dir, "{{.MemoryDir}}", p.memory, "{{.Model}}", p.model,
		"{{.Delegation}}", proc.EnvValue(p.Env, delegationVar), "{{.Artifact}}", proc.EnvValue(p.Env, artifactVar))
	p.emit(map[string]any{"type": "system", "subtype": "init", "cwd": p.Dir, "model": p.model, "tools": []string{"Read", "Write", "Bash"}, "mcp_servers": []string{}, "permissionMode": "default"})
}

func (p *player) text(s string) string { return p.replace.Replace(s) }

// path makes a step's path absolute, from the working directory.
func (p *player) path(s string) string {
	s = p.text(s)
	if !filepath.IsAbs(s) {
		s = filepath.Join(p.Dir, s)
	}
	return s
}

func (p *player) write(b []byte) {
	if p.err == nil {
		_, p.err = p.Out.Write(b)
	}
}

// emit writes one line of the stream.
func (p *player) emit(v map[string]any) {
	v["session_id"] = p.session
	b, err := json.Marshal(v)
	if err != nil {
		b = []byte(`{"type":"system","subtype":"unencodable"}`)
	}
	p.write(append(b, '\n'))
}

func (p *player) id(kind string) string {
	p.n++
	return fmt.Sprintf("%s_%s_%d", kind, p.run, p.n)
}

// assistant writes one message with one content block.
func (p *player) assistant(block map[string]any, extra map[string]any) {
	v := map[string]any{"type": "assistant", "parent_tool_use_id": nil, "message": map[string]any{
		"id": p.id("msg"), "type": "message", "role": "assistant", "model": p.model, "stop_reason": nil, "content": []any{block},
	}}
	for k, x := range extra {
		v[k] = x
	}
	p.emit(v)
}

func (p *player) say(text string) {
	p.turns++
	p.said = text
	p.assistant(map[string]any{"type": "text", "text": text}, nil)
}

// call tells of a tool call and returns its id.
func (p *player) call(tool string, input any) string {
	p.turns++
	id := p.id("toolu")
	p.assistant(map[string]any{"type": "tool_use", "id": id, "name": tool, "input": input}, nil)
	return id
}

// answer tells what a tool call gave. Content is a string or a list in the
// real client, so both forms are used.
func (p *player) answer(id, content string, failed bool) {
	block := map[string]any{"type": "tool_result", "tool_use_id": id, "is_error": failed}
	if p.n%2 == 0 {
		block["content"] = content
	} else {
		block["content"] = []any{map[string]any{"type": "text", "text": content}}
	}
	p.emit(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": []any{block}}})
}

// result writes the result line.
func (p *player) result(r resultStep) {
	text := p.said
	if r.Text != nil {
		text = p.text(*r.Text)
	} else if text == "" {
		text = "done"
	}
	turns := max(p.turns, 1)
	if r.Turns != nil {
		turns = *r.Turns
	}
	denials := p.denials
	if denials == nil {
		denials = []map[string]any{}
	}
	v := map[string]any{
		"type": "result", "subtype": cmp.Or(r.Subtype, "success"), "is_error": r.IsError, "terminal_reason": cmp.Or(r.TerminalReason, "completed"),
		"num_turns": turns, "result": text, "total_cost_usd": r.Cost, "permission_denials": denials,
		"usage": map[string]any{"input_tokens": len(p.task) / 4, "output_tokens": len(text) / 4, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
	}
	if r.APIStatus > 0 {
		v["api_error_status"] = r.APIStatus
	}
	p.resulted = true
	p.emit(v)
}

func (p *player) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}

// What a step of a task's work tells its agent: which delegation it is, and which file
// it is to write; none where it changes the project's own files.
const (
	delegationVar = "REPRISE_DELEGATION"
	artifactVar   = "REPRISE_ARTIFACT"
)

// defaultSteps is what is played without a file: a small, harmless piece of
// work with something to show for it.
func defaultSteps(env []string) []step {
	if proc.EnvValue(env, delegationVar) == "" {
		return []step{
			{name: "write", do: &writeStep{Path: "reprise-script-{{.RunID}}.txt", Content: "Written by the script agent in run {{.RunID}}.\nTask:\n{{.Task}}\n"}},
			{name: "say", do: &sayStep{"Script agent: task received, reprise-script-{{.RunID}}.txt written."}},
		}
	}
	artifact := proc.EnvValue(env, artifactVar)
	if artifact == "" {
		return []step{
			{name: "write", do: &writeStep{Path: "reprise-script-{{.RunID}}.txt", Content: "Written by the script agent in run {{.RunID}}.\n"}},
			{name: "say", do: &sayStep{delegateAnswer("reprise-script-{{.RunID}}.txt")}},
		}
	}
	return []step{
		{name: "write", do: &writeStep{Path: "{{.Artifact}}", Content: "# Written by the script agent\n\n### Phase 1: Write a file [NOT STARTED]\n\n- **Done when**: it is there\n"}},
		{name: "say", do: &sayStep{delegateAnswer(artifact)}},
	}
}

// delegateAnswer is the last message of a step of a task.
func delegateAnswer(file string) string {
	quoted, err := json.Marshal(file) // a path may have quotes in it
	if err != nil {
		quoted = []byte(`""`) // a string is marshalled
	}
	return `{"status":"completed","summary":"The script agent wrote a file.","artifacts":[` + string(quoted) + `],"metadata":{"session_id":"{{.Delegation}}","agent_type":"script","delegation_depth":1,"delegation_path":[]},"errors":[],"next_steps":""}`
}
