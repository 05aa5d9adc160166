package event

import "encoding/json"

// The payloads of events: what stands in "data", by type. A reader takes any
// field as possibly missing, for other versions and other machines write too.
// The first line that a hook writes ends in "hook_us", whatever its type; see
// [quick.HookTime].

// SessionData is the data of session.started and session.ended.
type SessionData struct {
	Source     string `json:"source,omitempty"` // startup, resume, clear or compact
	Reason     string `json:"reason,omitempty"` // why it ended, in the client's word
	Cwd        string `json:"cwd,omitempty"`
	Model      string `json:"model,omitempty"`
	Transcript string `json:"transcript,omitempty"` // the client's own file of the session
	Imported   bool   `json:"imported,omitempty"`   // read from a transcript, later
}

// PromptData is the data of prompt.submitted.
type PromptData struct {
	Text string `json:"text"`
	Cwd  string `json:"cwd,omitempty"`
}

// ToolData is the data of tool.called, tool.succeeded, tool.failed and
// permission.asked. It is what the client said; what it comes to (target, hash
// of the input, error signature) is worked out by readers, so that a better way
// of working it out changes no log.
type ToolData struct {
	// Tool is the kind of tool in our own words: shell, read, write, edit,
	// search, fetch, agent, ask, mcp or other.
	Tool string `json:"tool"`
	Name string `json:"name"`             // as the client calls it
	ID   string `json:"use_id,omitempty"` // joins a call with its end; not every client has one
	// Input is the tool's input: a JSON object for all known clients.
	Input      json.RawMessage `json:"input,omitempty"`
	Output     string          `json:"output,omitempty"`
	Error      string          `json:"error,omitempty"`
	ExitCode   *int            `json:"exit_code,omitempty"` // where the client says or shows it
	DurationMS int64           `json:"duration_ms,omitempty"`
	Cwd        string          `json:"cwd,omitempty"`
}

// ResponseData is the data of response.completed: the end of a turn.
type ResponseData struct {
	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"` // the turn ended by an error of the client or its model
}

// CompactData is the data of client.compacted.
type CompactData struct {
	Trigger string `json:"trigger,omitempty"` // manual or auto
	Phase   string `json:"phase"`             // before or after
	Summary string `json:"summary,omitempty"`
}

// SubagentData is the data of subagent.started and subagent.finished.
type SubagentData struct {
	ID   string `json:"id,omitempty"`
	Type string `json:"type,omitempty"`
	Text string `json:"text,omitempty"` // its last message
}

// QuestionData is the data of question.asked and question.answered. An answer
// repeats its question, so that it can stand alone.
type QuestionData struct {
	Question string   `json:"question"`
	Options  []string `json:"options,omitempty"`
	Answer   string   `json:"answer,omitempty"`
	By       string   `json:"by,omitempty"` // user, or memory where reprise answered
	UseID    string   `json:"use_id,omitempty"`
}

// ServedItem is one thing that recall put into a context.
type ServedItem struct {
	ID     string  `json:"id"`
	Class  string  `json:"class"`
	Score  float64 `json:"score"`
	Tokens int     `json:"tokens"`
}

// ServedData is the data of recall.served.
type ServedData struct {
	At      string       `json:"at"` // session_start, prompt, compact or tool_failure
	Query   string       `json:"query,omitempty"`
	Items   []ServedItem `json:"items"`
	Tokens  int          `json:"tokens"`
	Policy  string       `json:"policy,omitempty"`   // id of the policy that ranked
	HeldOut bool         `json:"held_out,omitempty"` // a hold-out session: ranked, and not served
}

// UsedData is the data of recall.used.
type UsedData struct {
	ID  string `json:"id"`  // of the item that had been served
	How string `json:"how"` // mentioned, useful (somebody said so) or useless
}

// MemoryData is the data of memory.written, memory.promoted, memory.retired and
// memory.purged about one item of memory. File changes of the memory directory
// (op, name, hash, bytes) share memory.written.
type MemoryData struct {
	Op   string `json:"op,omitempty"`   // learn, decide, correct, promote, demote, forget, expire, useful, create, update, …
	ID   string `json:"id,omitempty"`   // of the item
	Name string `json:"name,omitempty"` // file, relative to its memory
	Hash string `json:"hash,omitempty"`
	// Bytes of the file after the write.
	Bytes  int    `json:"bytes,omitempty"`
	From   string `json:"from,omitempty"` // scope before
	To     string `json:"to,omitempty"`   // scope after
	By     string `json:"by,omitempty"`   // hand (a person said so), gate or import
	Reason string `json:"reason,omitempty"`
	// Supersedes is the id of the item that this one replaces.
	Supersedes string `json:"supersedes,omitempty"`
	Text       string `json:"text,omitempty"`
	Chain      string `json:"chain,omitempty"` // memory.purged: last hash of the chain that it ended
	Count      int    `json:"count,omitempty"` // memory.purged: how many events went
	// Item is, of what leaves its file, what it was: by it a forgetting can be taken
	// back. It stands in an event of its own, which a purge takes out.
	Item json.RawMessage `json:"item,omitempty"`
}

// DelegationData is the data of delegation.counted: a session that should
// delegate did, or was told or made to.
type DelegationData struct {
	What      string `json:"what"` // one of the Delegation constants
	Tool      string `json:"tool,omitempty"`
	Name      string `json:"name,omitempty"` // of the tool, as the client calls it
	Work      int    `json:"work"`           // own work calls since it last delegated
	Total     int    `json:"total"`          // of them since it began
	Delegated int    `json:"delegated"`      // times that it delegated
	Limit     int    `json:"limit,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// What a delegation.counted says.
const (
	DelegationWarned    = "warned"
	DelegationRefused   = "refused"
	DelegationDelegated = "delegated"
	DelegationReset     = "reset"     // a person set the count back
	DelegationRecounted = "recounted" // the count was lost or damaged and was made again from the log
)

// VerificationData is the data of verification.finished: a verification in short.
// The whole of it is in its own file, by its id.
type VerificationData struct {
	ID         string      `json:"id"`
	Status     string      `json:"status"` // passed, failed, error or skipped
	Profile    string      `json:"profile,omitempty"`
	Trigger    string      `json:"trigger,omitempty"`
	Claim      string      `json:"claim,omitempty"` // what the agent's last words said of the work
	Base       string      `json:"base,omitempty"`  // commit
	Tree       string      `json:"tree,omitempty"`  // hash of what was checked
	Checks     []CheckData `json:"checks,omitempty"`
	Issues     []string    `json:"issues,omitempty"` // those that say that the work is not done
	Blocked    bool        `json:"blocked,omitempty"`
	Agent      string      `json:"agent,omitempty"` // id of the subagent whose end it was
	DurationMS int64       `json:"duration_ms,omitempty"`
}

// CheckData is how one check went.
type CheckData struct {
	Name       string `json:"name"`
	Status     string `json:"status"`
	Level      string `json:"level,omitempty"`
	AtBase     string `json:"at_base,omitempty"`
	DurationMS int64  `json:"duration_ms,omitempty"`
}

// WorkData is the data of work.changed: what happened to a work item of the queue.
type WorkData struct {
	ID       string `json:"id"`
	Op       string `json:"op"` // added, claimed, progress, done, failed, released, lost, unblocked, parked, …
	Title    string `json:"title,omitempty"`
	Key      string `json:"key,omitempty"`
	From     string `json:"from,omitempty"` // state before; empty for an item that is new
	To       string `json:"to,omitempty"`   // state since; empty for one that was removed
	Fence    uint64 `json:"fence,omitempty"`
	Attempts int    `json:"attempts,omitempty"`
	By       string `json:"by,omitempty"` // the claim's worker, or who changed it
	Note     string `json:"note,omitempty"`
	Run      string `json:"run,omitempty"`
}

// StateData is the data of state.changed: what was committed to the state of a
// project or of one of its agents.
type StateData struct {
	Op     string   `json:"op"`               // add, write, copy, commit, merge, aggregate, branch, consolidate, fork, reset, archive, collect, purge
	Agent  string   `json:"agent,omitempty"`  // whose state it is, empty for what all share
	Commit string   `json:"commit,omitempty"` // that the branch is at since
	ID     string   `json:"id,omitempty"`     // of the entry
	Type   string   `json:"type,omitempty"`   // of the entry
	Title  string   `json:"title,omitempty"`  // of the entry, in one line
	Files  []string `json:"files,omitempty"`
}

// TaskData is the data of task.changed: what happened to a task of the project's
// list.
type TaskData struct {
	Number    int      `json:"number"`
	Op        string   `json:"op"` // added, status, edited, report, plan, phase, archived
	Title     string   `json:"title,omitempty"`
	From      string   `json:"from,omitempty"` // status before
	To        string   `json:"to,omitempty"`   // status since
	Phase     int      `json:"phase,omitempty"`
	Operation string   `json:"operation,omitempty"` // research, plan, implement, revise
	Session   string   `json:"session,omitempty"`   // sess_…, of the delegation
	Reason    string   `json:"reason,omitempty"`
	Files     []string `json:"files,omitempty"` // below specs/
	ByHand    bool     `json:"by_hand,omitempty"`
}
