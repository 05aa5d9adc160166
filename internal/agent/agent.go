// Package agent knows how each agent program is started and how what it says
// is understood: one adapter a client (claude, script, generic).
//
// It owns the command line, the environment and the per-run files of a client
// and the parser of its output. It starts no run and writes no file itself: an
// adapter returns the files that internal/run writes into the run's directory,
// and a stream parser is fed the lines that internal/run reads. It takes no
// lock. The only programs it runs are short questions to a client
// ("--version"), through internal/proc.
package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Names of the clients that have an adapter.
const (
	KindClaude  = "claude"
	KindScript  = "script"
	KindGeneric = "generic"

	// Those that are asked bare questions, or work in a loop.
	KindCodex   = "codex"
	KindGemini  = "gemini"
	KindCopilot = "copilot"
)

// ErrBadTask is wrapped by every error of Adapter.Command that is the
// caller's fault: the text names the field and what to do about it.
var ErrBadTask = errors.New("bad task")

// ErrIsolation is wrapped by Adapter.Command for a client that cannot be started
// without its user's hooks, tools and instructions.
var ErrIsolation = errors.New("client cannot be isolated")

// ErrUnknownClient is wrapped by For for a name without an adapter.
var ErrUnknownClient = errors.New("unknown client")

// Task is all that an adapter is told about a run.
type Task struct {
	RunID     string // "run-" and ten base32 characters
	SessionID string // the client's session id; a UUID for claude
	Resume    string // the client's session to go on with, as Work.Resume is; "" begins a new one
	RunDir    string // absolute; the run's directory

	Prompt       string // the task, given on standard input from RunDir/prompt.md
	SystemPrompt string // the whole system prompt, see func SystemPrompt
	Model        string // as the client spells it; "" leaves the choice to it
	WorkDir      string // absolute working directory of the child

	AddDirs         []string // absolute; further directories the client may use
	MemoryDir       string   // absolute; never writable by the run's own tools
	AllowMemoryRead bool     // MemoryDir may be read
	ProtectDirs     []string // absolute; neither readable nor writable

	MaxTurns     int           // 0: no limit of ours
	MaxBudgetUSD float64       // 0: no limit of ours
	Timeout      time.Duration // the run's own limit; 0: unknown. Bounds the client's retries

	// Work makes the run an agent that works by itself, with nobody's settings but those
	// given here: one of the loop's, or of a client that has a home of its own.
	Work *Work

	// Isolated makes the run one bare question: no hooks, no tools, no tool
	// servers, nobody's instructions but SystemPrompt. Limits of the client's
	// own, MaxTurns and MaxBudgetUSD, hold as they do for any run.
	Isolated *Isolation

	ScriptFile string // script client: file of steps; "" plays the default
	Program    string // resolved client program
	// GuardHook is the command line of the hook that judges the tool calls of the
	// run, as a shell takes it; "" is none.
	GuardHook string
	// Self is the absolute path of the reprise program, for hooks and for
	// the script player.
	Self string
	Env  []string // environment the child starts from, "NAME=value"
}

// Work is what a run of the loop has of its own.
type Work struct {
	// AllowedTools are the tools that need no approval, as the client spells them.
	AllowedTools []string
	// Resume is the client's session to go on with; "" begins a new one.
	Resume string
	// Hooks are command lines by the client's name of an event, as a shell takes them.
	// They stand in place of the user's.
	Hooks map[string]string
	// Settings are keys of the client's settings file that it cannot do without, such
	// as how it gets at its key.
	Settings map[string]json.RawMessage
	// Vars are variables of the environment, "NAME=value".
	Vars []string
	// Servers are the tool servers of the run, as the client's own file of them has
	// them, which stand in place of the user's; for claude. nil: none.
	Servers json.RawMessage
	// HomeFiles are what the home of a client has that gets one of its own (codex,
	// gemini, copilot), by path below it: its settings, hooks and servers.
	HomeFiles map[string][]byte
	// Home is that of the session to go on with, as Command.Home was; "" makes one in
	// the run's directory.
	Home string
	// Schema is the JSON Schema of the last answer, an object, for the clients that can
	// hold their model to one (claude, codex); whoever reads the answer checks it all the
	// same. nil: none.
	Schema json.RawMessage
}

// Isolation is what a bare question has of its own.
type Isolation struct {
	// Schema is the JSON Schema of the answer, an object. The client is told of
	// it where it can be; whoever reads the answer checks it all the same.
	Schema json.RawMessage
}

// Command is what to start for a task. Standard input is always
// RunDir/prompt.md, which the caller writes.
type Command struct {
	Path string
	Args []string // without the program's own name
	Env  []string // the whole environment
	Dir  string
	// Files are written with mode 0600 before the start; names are relative
	// to RunDir.
	Files map[string][]byte
	// Home is the home that the client was given in place of the user's, where its
	// session is; "" is none.
	Home string
}

// Adapter is one client.
type Adapter interface {
	// Name is the kind that For knows it by.
	Name() string
	// Command says how to start the task. It touches no file. Errors wrap
	// ErrBadTask.
	Command(Task) (Command, error)
	// NewStream returns a parser for one run's standard output.
	NewStream() Stream
}

// Stream is fed a run's standard output line by line and judges the run at
// its end. It is not safe for use by several goroutines at once.
type Stream interface {
	// Line takes one line without its end. cut says that the line was longer
	// than the reader's limit and that line is only its beginning.
	Line(line []byte, cut bool)
	// Skip says that n bytes of whole lines were passed over here, because
	// there was more output than anybody has time to read.
	Skip(n int64)
	// Progress is what is known so far.
	Progress() Progress
	// Finish judges the run once its process has ended.
	Finish(Exit) Result
}

// Progress is what a stream knows while the run is alive.
type Progress struct {
	Messages  int    `json:"messages"`
	ToolCalls int    `json:"tool_calls"`
	LastTool  string `json:"last_tool,omitempty"`
	// Tokens is what the messages so far have used. The result may correct it.
	Tokens int64  `json:"tokens,omitempty"`
	Retry  *Retry `json:"retry,omitempty"` // set while the client waits to ask its model again
	// ResultSeen says that the final result has come: whoever runs the
	// process should give it a deadline now, for it may live on.
	ResultSeen bool   `json:"result_seen"`
	SessionID  string `json:"session_id,omitempty"`
	LastText   string `json:"last_text,omitempty"` // at most 2 KiB
}

// Retry is a client's announcement that it will ask its model again.
type Retry struct {
	Attempt     int    `json:"attempt"`
	MaxAttempts int    `json:"max_attempts"`
	DelayMS     int    `json:"delay_ms"`
	Status      int    `json:"status,omitempty"` // HTTP status, 0 if there was none
	Error       string `json:"error,omitempty"`
}

// Exit is how the process ended.
type Exit struct {
	Code      int
	Signal    string // "" unless killed by a signal
	TimedOut  bool   // stopped by reprise at the run's timeout
	Cancelled bool   // stopped by reprise because somebody asked
	// AfterResult says that reprise stopped the process because it lived on
	// past its final result. Code and Signal are then of reprise's making
	// and say nothing about the agent.
	AfterResult bool
	Stderr      string // tail of standard error
}

// Usage is the token count of a run, from its result.
type Usage struct {
	InputTokens         int64 `json:"input_tokens"`
	OutputTokens        int64 `json:"output_tokens"`
	CacheCreationTokens int64 `json:"cache_creation_tokens"`
	CacheReadTokens     int64 `json:"cache_read_tokens"`
}

// Sum is all of them together.
func (u Usage) Sum() int64 {
	return u.InputTokens + u.OutputTokens + u.CacheCreationTokens + u.CacheReadTokens
}

// Denial is a tool call that the client did not permit.
type Denial struct {
	Tool   string `json:"tool"`
	UseID  string `json:"use_id,omitempty"`
	Input  string `json:"input,omitempty"` // JSON, at most 2 KiB
	Reason string `json:"reason,omitempty"`
}

// Result is the verdict on a run.
type Result struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // one line: why it is not OK, and what was denied
	Text   string `json:"text"`             // the answer

	SessionID      string  `json:"session_id,omitempty"`
	IsError        bool    `json:"is_error"`
	APIStatus      int     `json:"api_status,omitempty"`
	TerminalReason string  `json:"terminal_reason,omitempty"`
	Subtype        string  `json:"subtype,omitempty"`     // as the client calls the kind of result; never to be judged by alone
	StopReason     string  `json:"stop_reason,omitempty"` // why the model ended its last message
	NumTurns       int     `json:"num_turns"`
	CostUSD        float64 `json:"cost_usd"` // of the session; cumulative over resume and fork
	Usage          Usage   `json:"usage"`

	PermissionDenials []Denial       `json:"permission_denials,omitempty"`
	Retries           int            `json:"retries,omitempty"`
	Tools             map[string]int `json:"tools,omitempty"` // calls by tool name
	Errors            []string       `json:"errors,omitempty"`
	// Structured is the answer by a JSON schema, where one was asked for.
	Structured json.RawMessage `json:"structured,omitempty"`
}

// CanResume says whether a client can go on with a session that it had before.
func CanResume(kind string) bool {
	switch kind {
	case KindClaude, KindScript, KindCodex, KindGemini, KindCopilot:
		return true
	}
	return false
}

// For returns the adapter of a kind of client. The error wraps
// ErrUnknownClient.
func For(kind string) (Adapter, error) {
	switch kind {
	case KindClaude:
		return claude{}, nil
	case KindScript:
		return script{}, nil
	case KindGeneric:
		return generic{}, nil
	case KindCodex, KindGemini, KindCopilot:
		return other{kind}, nil
	}
	return nil, fmt.Errorf("find adapter for %q: %w: use %s, %s, %s, %s, %s or %s", kind, ErrUnknownClient, KindClaude, KindCodex, KindGemini, KindCopilot, KindScript, KindGeneric)
}
