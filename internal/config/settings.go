package config

// Settings is what the settings file says, with every default filled in. After
// Load both memory.directory and logging.file are absolute.
type Settings struct {
	SubAgent   SubAgent
	Memory     Memory
	Logging    Logging
	ClaudeCLI  ClaudeCLI
	Recall     Recall
	Learn      Learn
	QA         QA
	Judge      Judge
	HTTP       HTTP
	Hooks      Hooks
	Guard      Guard
	Gates      Gates
	Loop       Loop
	Routes     []Route
	Tasks      Tasks
	Delegation Delegation
	Queue      string // [QueueFiles], or the servers' addresses, with commas between
	Fleet      Fleet
	Worker     Worker
	Tools      [len(toolKinds)]Tool
	Profiles   [len(roles)]Profile
}

// Hooks says which hooks of clients are on, and what they may do. What a
// project says narrows it once the project is trusted; a profile narrows it for
// a role.
type Hooks struct {
	Record     string // "on" or "off": events are recorded
	Recall     string // "on" or "off": memory is put into sessions
	Jobs       string // "on" or "off": bounded work at the end of turns and sessions
	DeadlineMS int    // the longest that a hook may take; 0 leaves it to the event
	// Off are kinds of events that are not looked at, Clients those of a client.
	Off     []string
	Clients [len(hookClients)]HookClient
	State   StateHooks
}

// HookClient is what one client's hooks have of their own, in the order of
// [HookClients].
type HookClient struct {
	Off []string
}

// Tool is what the calls of one kind of tool have of their own, in the order of
// [ToolKinds].
type Tool struct {
	Record string // "all", "failures" or "off"
}

// Profile is what the sessions of one role have of their own, in the order of
// [Roles].
type Profile struct {
	HooksOff []string
}

var (
	hookClients = [...]string{"claude", "codex", "gemini", "copilot"}
	toolKinds   = [...]string{"shell", "read", "write", "edit", "search", "fetch", "agent", "ask", "mcp", "other"}
	toolRecords = [...]string{"all", "failures", "off"}
	roles       = [...]string{"conductor", "section-leader", "musician"}
	hookKinds   = [...]string{"session_start", "session_end", "prompt", "tool_before", "tool_after", "tool_failed",
		"permission_asked", "permission_denied", "response", "response_failed", "subagent_started",
		"subagent_finished", "compact_before", "compact_after"}
)

// HookClients are the clients whose hooks have settings.
func HookClients() []string { return hookClients[:] }

// ToolKinds are the kinds of tools that have settings.
func ToolKinds() []string { return toolKinds[:] }

// Roles are the roles that have a profile.
func Roles() []string { return roles[:] }

// HookKinds are the kinds of events that can be switched off.
func HookKinds() []string { return hookKinds[:] }

// SubAgent are the defaults and limits of spawned runs.
type SubAgent struct {
	SyncWindowSeconds      int    // how long spawn_agent waits before it hands off; 0–29
	DefaultTimeoutSeconds  int    // a run's longest life unless the call says otherwise
	DefaultMaxOutputTokens int    // output is cut at this; a token is about four characters
	MaxConcurrentAgents    int    // runs at once
	JobExpirySeconds       int    // an uncollected job is dropped this long after its end
	Sandbox                string // "auto", "off" or "required"
	ScriptFile             string // steps of the script client; "" plays the default
	Agent                  string // client that runs tasks: "claude", "script", …
}

// Memory says where the memory is.
type Memory struct {
	Directory string
}

// Logging is about reprise's own log.
type Logging struct {
	File       string
	Level      string // "debug", "info", "warn" or "error"
	MaxSizeMB  int    // a file is rotated at this size, in MiB
	MaxBackups int    // rotated files kept
}

// Recall says how much a session is told. A token is about four characters.
type Recall struct {
	SessionStartTokens int // all of a session's start; 0 says nothing
	PromptTokens       int
	FailureTokens      int
	CoreTokens         int // of SessionStartTokens
	IndexTokens        int
	StateTokens        int
	JobMS              int    // longest time of organising in a hook, in milliseconds
	HoldOutPercent     int    // sessions in a hundred that are told nothing recalled
	Learn              string // "on" or "off": policies of ranking are learnt
	Embeddings         Embeddings
}

// QA says when a question to the user is answered from memory.
type QA struct {
	Auto      string // "on", "context" (what was answered is only told) or "off"
	TTLDays   int    // that an answer counts after it was given last
	Threshold int    // per cent of confidence from which on memory answers by itself
}

// ClaudeCLI says how to start Claude Code. Whether the program exists is found
// at the first call, not at load.
type ClaudeCLI struct {
	Path string // a bare name looked up in PATH, or an absolute path
}

// HTTP is about the MCP server's HTTP transport.
type HTTP struct {
	Addr           string   // host:port
	AllowedOrigins []string // scheme://host[:port], beyond the loopback ones
	PublicURL      string   // of the endpoint, as clients see it behind a proxy; "" = none stands before it
	Limits         HTTPLimits
	OAuth          OAuth
}

// HTTPLimits bound what one token may do. 0 is no bound.
type HTTPLimits struct {
	RequestsPerMinute int
	Concurrent        int // requests under way
	Sessions          int // sessions that can be resumed; at least 1
	RunsAtOnce        int
	RunsPerDay        int     // started in the last 24 hours
	USDPerDay         float64 // US dollars that runs of the last 24 hours have cost
}

// OAuth names the issuer whose tokens the HTTP transport accepts. All empty:
// none.
type OAuth struct {
	Issuer   string
	Audience string
	JWKSURL  string
	Resource string   // "" = HTTP.PublicURL
	Scopes   []string // that a client is told to ask for at first; nil = the one for everything
	Subjects []string // nil = every subject
}

// Default returns the settings of an empty file. Limits of runs are the ones
// that MCP clients are known to live with: a call answered within 30 s, and
// everything else small enough for a laptop.
func Default(p Paths) Settings {
	s := Settings{
		Hooks: Hooks{Record: "on", Recall: "on", Jobs: "on", State: defaultStateHooks()},
		SubAgent: SubAgent{
			SyncWindowSeconds:      25,
			DefaultTimeoutSeconds:  300,
			DefaultMaxOutputTokens: 4000,
			MaxConcurrentAgents:    5,
			JobExpirySeconds:       600,
			Sandbox:                "auto",
			Agent:                  "claude",
		},
		Memory:     Memory{Directory: p.Memory()},
		Logging:    Logging{File: p.LogFile(), Level: "info", MaxSizeMB: 10, MaxBackups: 3},
		ClaudeCLI:  ClaudeCLI{Path: "claude"},
		HTTP:       HTTP{Addr: "127.0.0.1:8765", Limits: HTTPLimits{RequestsPerMinute: 600, Concurrent: 32, Sessions: 16}},
		Recall:     Recall{SessionStartTokens: 1500, PromptTokens: 500, FailureTokens: 300, CoreTokens: 600, IndexTokens: 300, StateTokens: 350, JobMS: 200, HoldOutPercent: 5, Learn: "on"},
		Learn:      DefaultLearn(),
		Judge:      DefaultJudge(),
		Guard:      DefaultGuard(),
		QA:         QA{Auto: "on", TTLDays: 30, Threshold: 75},
		Gates:      defaultGates(),
		Loop:       defaultLoop(),
		Tasks:      defaultTasks(),
		Delegation: defaultDelegation(),
		Queue:      QueueFiles,
		Fleet:      Fleet{Namespace: defaultNamespace},
	}
	for i := range s.Tools {
		s.Tools[i].Record = "all"
	}
	return s
}
