// Package dialect knows how each client speaks to its hooks: what a payload
// says, as one internal [Event], and how an internal [Decision] is said back,
// with a versioned manifest of what each client can do.
//
// It is pure: bytes in, bytes out. It touches no file, takes no lock, and links
// next to nothing, because it is part of the program that runs at every tool
// call.
package dialect

// Kind is what happened, in our own words.
type Kind string

// The kinds. A client's event that is none of them is Other: it is accepted,
// and nothing is said or recorded.
const (
	SessionStart     Kind = "session_start"
	SessionEnd       Kind = "session_end"
	Prompt           Kind = "prompt"
	ToolBefore       Kind = "tool_before"
	ToolAfter        Kind = "tool_after"
	ToolFailed       Kind = "tool_failed"
	PermissionAsked  Kind = "permission_asked"
	Response         Kind = "response"        // a turn ended; may be blocked
	ResponseFailed   Kind = "response_failed" // a turn ended by an error
	SubagentStarted  Kind = "subagent_started"
	SubagentFinished Kind = "subagent_finished"
	CompactBefore    Kind = "compact_before"
	CompactAfter     Kind = "compact_after"
	// PermissionDenied says that the client refused a call by itself.
	PermissionDenied Kind = "permission_denied"
	Notification     Kind = "notification"
	Other            Kind = "other"
)

// Event is a client's hook event in our own words. Strings are as the client
// gave them; what a client does not say is empty.
type Event struct {
	Client string // claude, codex, gemini or copilot
	Name   string // the client's own name of the event
	Kind   Kind

	Session    string
	Cwd        string
	Transcript string
	Model      string
	Permission string // permission mode
	Turn       string // the client's id of the turn or prompt
	Agent      string // id of the subagent that this happened in
	AgentType  string
	Source     string // session_start: startup, resume, clear or compact
	Reason     string // session_end, compaction trigger
	Prompt     string // prompt
	Text       string // response: last message; compaction: summary; notification: message

	Tool       string // kind of tool in our own words, as in event.ToolData
	ToolName   string // as the client calls it
	ToolID     string
	Input      []byte // JSON of the tool's input
	Output     string
	Error      string
	ExitCode   *int
	DurationMS int64
	// StopActive says that this turn is already the answer to a blocked stop.
	StopActive bool
	// Busy says that other subagents of the session are still at work at the end
	// of a turn.
	Busy bool
	// CutMark is the mark by which texts of a payload that was too large say what
	// was left out of them (see [Intake]); "" where all of it is here. Who judges
	// a tool by its input must not take such a one for the whole.
	CutMark string
}

// Permission is a verdict on a tool call. Empty is no opinion.
type Permission string

// The verdicts.
const (
	NoOpinion Permission = ""
	Allow     Permission = "allow"
	Ask       Permission = "ask"
	Deny      Permission = "deny"
)

// Decision is what we have to say. The zero value is "no opinion": an answer
// that changes nothing, in every client.
type Decision struct {
	// Context is text for the model, where the event has a channel to it.
	Context string
	// Permission and Reason answer ToolBefore and PermissionAsked.
	Permission Permission
	Reason     string
	// Block keeps a turn from ending (Response) or a prompt from being sent,
	// with Reason as what the model is told.
	Block bool
	// UpdatedInput replaces the tool's input (JSON), where the client can.
	UpdatedInput []byte
}

// Reply is what the hook program prints and how it exits. Exit is never 2
// unless a refusal could not be said in any other way.
type Reply struct {
	Stdout []byte
	Stderr []byte
	Exit   int
}
