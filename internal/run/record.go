package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"reprise/internal/agent"
	"reprise/internal/durable"
	"reprise/internal/proc"
)

// Names of the files in a run's directory.
const (
	recordFile = "run.json"
	promptFile = "prompt.md"
	stdoutFile = "stdout.jsonl"
	stderrFile = "stderr.log"
	resultFile = "result.json"
	outputFile = "output.md"      // the whole final text, when an answer had to be cut
	emptyDir   = "empty"          // working directory of a bare question
	ownLogFile = "supervisor.log" // what the supervisor itself had to say; usually empty
	lockFile   = "supervisor.lock"
	// reserveFile is disk space for the record's last change; not there once
	// the run has ended.
	reserveFile = "reserve"
	// extendLock is held by who extends the run, until its supervisor knows.
	extendLock = "request-extend.lock"
)

// formatVersion is the "v" of run.json and result.json.
const formatVersion = 1

// Record is run.json: everything that is known of one run. Times are UTC.
type Record struct {
	V               int       `json:"v"`
	ID              string    `json:"id"`
	Status          Status    `json:"status"`
	StatusReason    string    `json:"status_reason,omitempty"`
	StatusUpdatedAt time.Time `json:"status_updated_at"`

	StartedAt  time.Time  `json:"started_at"`
	StartEpoch int64      `json:"start_epoch"` // StartedAt in seconds since 1970
	EndedAt    *time.Time `json:"ended_at"`

	Client    string `json:"client"`
	SessionID string `json:"session_id"`
	Project   string `json:"project,omitempty"`
	Model     string `json:"model,omitempty"`
	WorkDir   string `json:"working_directory"`
	Origin    string `json:"origin,omitempty"` // what started it: mcp, cli, demo, loop, judge, …
	// Principal is whose token the run was asked for with, over HTTP; "" of every
	// other run.
	Principal string `json:"principal,omitempty"`
	// Purpose is what a judge's question was for; "" of every other run.
	Purpose  string `json:"purpose,omitempty"`
	Detached bool   `json:"detached"`
	Key      string `json:"idempotency_key,omitempty"`

	// DelegationPath is the chain of runs that led to this one, outermost
	// first; empty for a run that no run started.
	DelegationPath []string `json:"delegation_path"`

	// Resumes is the run whose session this one went on with, and ResumedBy the one that
	// went on with this one's.
	Resumes   string `json:"resumes,omitempty"`
	ResumedBy string `json:"resumed_by,omitempty"`
	// Before is what the session had used up when the run began.
	Before *Before `json:"session_before,omitempty"`

	PID        int      `json:"pid"`                  // of the agent; 0 until it runs
	Child      *proc.ID `json:"child,omitempty"`      // the agent, told apart from a later owner of its pid
	Supervisor *proc.ID `json:"supervisor,omitempty"` // who owns the agent and writes this file
	Spawner    *proc.ID `json:"spawner,omitempty"`    // who started the supervisor

	ExitCode *int   `json:"exit_code"` // nil while it runs, and where it could not be learnt
	Signal   string `json:"signal,omitempty"`

	TimeoutSeconds  float64 `json:"timeout_seconds"` // counted from StartedAt; 0 means none
	MaxOutputTokens int     `json:"max_output_tokens"`
	AllowMemoryRead bool    `json:"allow_memory_read"`
	AllowStateWrite bool    `json:"allow_state_write,omitempty"` // the state of the run's own agent, as proposals

	AddDirs []string `json:"additional_directories,omitempty"`

	Command   Launch    `json:"command"`
	Logs      Logs      `json:"logs"`
	Heartbeat Heartbeat `json:"heartbeat"`
	Interrupt Interrupt `json:"interrupt"`

	// Notes are doubts about the client that did not keep the run from starting.
	Notes []string `json:"notes,omitempty"`

	// Collected is how many processes had to be stopped after the agent itself
	// had ended.
	Collected int `json:"collected_processes,omitempty"`

	// Result is what the agent's output came to; it stands in result.json and
	// is filled in by Manager.Get.
	Result *agent.Result `json:"-"`

	dir  string
	disk durable.Disk
}

// Launch is how the agent was started. The environment is not kept: it holds
// secrets.
type Launch struct {
	Path string   `json:"path"`
	Args []string `json:"args"`
	// Home is the home that the client was given in place of the user's; a session is
	// gone on with where it is.
	Home string `json:"home,omitempty"`
	// Sandbox says how the memory directory is kept from the run: "landlock",
	// or why only the client's own rules stand before it.
	Sandbox   string   `json:"sandbox"`
	DenyWrite []string `json:"deny_write,omitempty"`
	DenyAll   []string `json:"deny_all,omitempty"`
	// EventsDir is where the supervisor records what became of the run.
	EventsDir string `json:"events_dir,omitempty"`
	// Outbox is where that waits while it cannot be recorded.
	Outbox string `json:"outbox,omitempty"`
	// GraceSeconds is the time between asking the agent to end and killing it.
	GraceSeconds float64 `json:"grace_seconds"`
	// ResultPatienceSeconds is how long it may live on after its final result.
	ResultPatienceSeconds float64 `json:"result_patience_seconds"`
}

// Logs says where the run's output is.
type Logs struct {
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	Transcript string `json:"transcript,omitempty"`
	// CutBytes are those out of the middle of output that became too long, which read as zeros.
	CutBytes int64 `json:"cut_bytes,omitempty"`
}

// Heartbeat is what the supervisor last saw of the run's output.
type Heartbeat struct {
	LastCheck    time.Time `json:"last_check"`
	MessageCount int       `json:"message_count"`
	ToolCalls    int       `json:"tool_calls"`
	LastTool     string    `json:"last_tool,omitempty"`
	Tokens       int64     `json:"tokens,omitempty"` // as far as its messages tell
	OutputBytes  int64     `json:"output_bytes"`
	Retrying     string    `json:"retrying,omitempty"` // set while the client waits out an API error
}

// Interrupt is a request to stop for a person.
type Interrupt struct {
	Requested bool       `json:"requested"`
	Reason    *string    `json:"reason"`
	Timestamp *time.Time `json:"timestamp"`
}

// Dir is the run's directory.
func (r Record) Dir() string { return r.dir }

// Path is where the record itself lies.
func (r Record) Path() string { return r.path(recordFile) }

// path is where the run keeps a file.
func (r Record) path(name string) string { return filepath.Join(r.dir, name) }

// Elapsed is how long the run took, or has taken by now.
func (r Record) Elapsed(now time.Time) time.Duration {
	switch {
	case r.EndedAt != nil:
		now = *r.EndedAt
	case r.Status == Interrupted && !r.StatusUpdatedAt.IsZero():
		now = r.StatusUpdatedAt // its process has ended, though it may be gone on with
	}
	return max(0, now.Sub(r.StartedAt))
}

// MCPStatus is the run's state in the words of the MCP tools: running,
// complete, failed, timed_out, interrupted or cancelled.
func (r Record) MCPStatus() string {
	switch r.Status {
	case Completed:
		return "complete"
	case Failed:
		return "failed"
	case TimedOut:
		return "timed_out"
	case Interrupted:
		return "interrupted"
	case Killed:
		return "cancelled"
	}
	return "running"
}

// move takes the record to another state, or says why it cannot.
func (r *Record) move(to Status, reason string, now time.Time) error {
	if err := checkTransition(r.Status, to); err != nil {
		return fmt.Errorf("change run %s: %w", r.ID, err)
	}
	r.Status, r.StatusReason, r.StatusUpdatedAt = to, reason, now.UTC()
	if to.Done() {
		at := now.UTC()
		r.EndedAt = &at
	}
	return nil
}

// ErrNotFound is wrapped by errors about a run that has no record.
var ErrNotFound = errors.New("no such run")

// readRecord reads the record in dir. A record that cannot be read is an error
// that says where it is; nothing ever writes over such a file.
func readRecord(disk durable.Disk, dir string) (Record, error) {
	path := filepath.Join(dir, recordFile)
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, fmt.Errorf("read %s: %w", path, ErrNotFound)
	}
	if err != nil {
		return Record{}, fmt.Errorf("read run record: %w", err)
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("read run record %s: it is not valid JSON (%w); its output beside it is whole, move the directory away to be rid of it", path, err)
	}
	if r.V > formatVersion {
		return Record{}, fmt.Errorf("read run record %s: it has format %d, this program knows up to %d: use a newer reprise", path, r.V, formatVersion)
	}
	if !r.Status.Valid() {
		return Record{}, fmt.Errorf("read run record %s: unknown status %q", path, r.Status)
	}
	r.dir, r.disk = dir, disk
	if at := filepath.Dir(filepath.Dir(dir)); r.Project != "" && filepath.Base(filepath.Dir(at)) == "projects" {
		r.Project = filepath.Base(at) // it may have got another name since
	}
	return r, nil
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// write makes the record durable: it is on the disk when write returns.
func (r *Record) write() error {
	data, err := encode(r)
	if err != nil {
		return fmt.Errorf("encode run %s: %w", r.ID, err)
	}
	return r.disk.WriteFile(r.Path(), data, 0o600)
}

// writeHot replaces the record without waiting for the directory. After a
// power cut either the old or the new record is there, and since no process
// outlives a power cut both are settled the same way; a kill loses neither.
func (r *Record) writeHot() error {
	data, err := encode(r)
	if err != nil {
		return fmt.Errorf("encode run %s: %w", r.ID, err)
	}
	return r.disk.WriteFileHot(r.Path(), data, 0o600)
}

// resultDoc is result.json.
type resultDoc struct {
	V int `json:"v"`
	agent.Result
}

func (r *Record) writeResult(res agent.Result) error {
	data, err := encode(resultDoc{V: formatVersion, Result: res})
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	return r.disk.WriteFileHot(filepath.Join(r.dir, resultFile), data, 0o600)
}

func readResult(dir string) (*agent.Result, error) {
	data, err := readFile(filepath.Join(dir, resultFile))
	if err != nil {
		return nil, err
	}
	var doc resultDoc
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, resultFile), err)
	}
	return &doc.Result, nil
}
