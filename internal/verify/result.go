package verify

import (
	"time"

	"reprise/internal/config"
	"reprise/internal/event"
)

// Status is how a verification, or one check, ended.
type Status string

// The statuses.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"  // something required does not hold
	Error   Status = "error"   // it could not be found out
	Skipped Status = "skipped" // it was not looked at
)

// ResultVersion is the version of [Result]'s form, in its "v".
const ResultVersion = 1

// Result is what a verification found. It is what stands in its file and, in
// short, in the event log.
type Result struct {
	V       int    `json:"v"`
	ID      string `json:"id"` // ver-…; sorts by time
	Project string `json:"project,omitempty"`
	Session string `json:"session,omitempty"` // of the client
	Client  string `json:"client,omitempty"`
	Run     string `json:"run,omitempty"`
	Agent   string `json:"agent,omitempty"` // id of the subagent whose end it was
	// Trigger is what it was for; see [Triggers].
	Trigger string    `json:"trigger"`
	Claim   string    `json:"claim,omitempty"` // what the agent's last words say of the work: done, open or none
	Started time.Time `json:"started"`
	// DurationMS is how long all of it took.
	DurationMS int64 `json:"duration_ms"`

	Status  Status `json:"status"`
	Profile string `json:"profile"`
	// Why says why this profile.
	Why string `json:"why"`
	// Risk is what changed since the base.
	Risk RiskSeen `json:"risk"`
	// Base is the commit that the change is seen against, "" where there is none.
	Base string `json:"base,omitempty"`
	// Tree is a hash of what was checked, Stamp one of how it looked from outside
	// ("" where that would not tell a later change), Config one of the approved
	// text that the checks stand in.
	Tree   string `json:"tree,omitempty"`
	Stamp  string `json:"stamp,omitempty"`
	Config string `json:"config,omitempty"`
	Dir    string `json:"dir"` // the top of the tree

	Checks []CheckResult `json:"checks"`
	Issues []Issue       `json:"issues"`
	Next   []string      `json:"next_steps"`
	// Gates are those beside the checks that were looked at: tasks, review.
	Gates []string `json:"gates,omitempty"`
	// Reused is the id of an earlier verification of the very same tree whose
	// answer this is.
	Reused string `json:"reused,omitempty"`
	// Blocked says that an agent was kept from ending because of it, Reason what
	// it was told.
	Blocked bool   `json:"blocked,omitempty"`
	Reason  string `json:"reason,omitempty"`

	// unseen says that not even a check could begin, although there was time: what is
	// in the way may be the agent's own.
	unseen bool
}

// Unjudged is why the end of a turn was not judged, "" where it was, or where the
// result is not of one.
func (r *Result) Unjudged() string {
	if r.Status != Error || r.Trigger != Stop && r.Trigger != SubagentStop {
		return ""
	}
	why := "it could not be found out"
	for _, i := range r.Issues {
		if i.Gate == "tests" {
			why = i.Message
		}
	}
	return why
}

// Loose says of the end of a turn that it was not judged, or came although the work is
// not done: "" where neither is so.
func (r *Result) Loose() string {
	if why := r.Unjudged(); why != "" {
		return "was not judged: " + why
	}
	list := r.Blocking()
	if r.Status != Failed || r.Trigger != Stop || r.Blocked || len(list) == 0 {
		return ""
	}
	what := list[0].Message
	if list[0].Check != "" {
		what = list[0].Check + ": " + what
	}
	return "ended although its work is not done: " + what
}

// RiskSeen is how much changed.
type RiskSeen struct {
	Known     bool     `json:"known"` // there is something to compare with
	Files     int      `json:"files"`
	Lines     int      `json:"lines"`
	Protected []string `json:"protected,omitempty"` // protected paths that changed, a few of them
}

// CheckResult is how one check went.
type CheckResult struct {
	Name       string `json:"name"`
	Command    string `json:"command"`
	Dir        string `json:"dir,omitempty"`
	Level      string `json:"level"` // required or advisory
	Status     Status `json:"status"`
	Exit       int    `json:"exit"`
	Signal     string `json:"signal,omitempty"`
	TimedOut   bool   `json:"timed_out,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	// Problem is why there is no result, or what was odd.
	Problem string `json:"problem,omitempty"`
	// Output is the beginning and the end of what it printed; OutputBytes is how
	// much that was.
	Output      string `json:"output,omitempty"`
	OutputBytes int64  `json:"output_bytes"`
	// Failures are the names of tests that it says have failed, Lines the first
	// lines that say what went wrong.
	Failures []string `json:"failures,omitempty"`
	Lines    []string `json:"lines,omitempty"`
	// Changed are files of the snapshot that it changed; Left is how many
	// processes it left behind, which were ended.
	Changed      []string `json:"changed,omitempty"`
	ChangedCount int      `json:"changed_count,omitempty"`
	Left         int      `json:"left_processes,omitempty"`
	// AtBase is how the same check went at the base, where that was looked at;
	AtBase Status   `json:"at_base,omitempty"`
	New    []string `json:"new_failures,omitempty"`
	// Excused says that a failure is not held against the work: its base fails in
	// the same way.
	Excused bool `json:"excused,omitempty"`

	said    *said  // of one that failed
	differs string // how else it failed otherwise than at the base
	byLine  bool   // New are lines
	carried string // what was not the base's when it failed there in the same way
	running bool   // something of it may still be at work
}

// blocking reports whether the check says that the work is not done.
func (c *CheckResult) blocking() bool {
	return c.Status == Failed && c.Level == levelRequired && !c.Excused
}

const (
	levelRequired = "required"
	levelAdvisory = "advisory"
)

func levelOf(c config.Check) string {
	if c.Advisory {
		return levelAdvisory
	}
	return levelRequired
}

// Issue is one thing that a person or an agent should know.
type Issue struct {
	Level   string `json:"level"` // blocking or advisory
	Gate    string `json:"gate"`  // tests, regressions, tasks, review, or tree
	Check   string `json:"check,omitempty"`
	Message string `json:"message"`
}

const (
	blocking = "blocking"
	advisory = "advisory"
)

// Blocking are the issues that keep work from being done.
func (r *Result) Blocking() []Issue {
	var out []Issue
	for _, i := range r.Issues {
		if i.Level == blocking {
			out = append(out, i)
		}
	}
	return out
}

// What a verification is for.
const (
	Manual       = "manual"
	Stop         = "stop"
	SubagentStop = "subagent_stop"
	ToolFailure  = "tool_failure"
	TaskPhase    = "task_phase"
)

// Triggers are the known values of [Result.Trigger].
func Triggers() []string { return []string{Manual, Stop, SubagentStop, ToolFailure, TaskPhase} }

// Event is what the event log keeps of a result; the rest is in its file.
func (r *Result) Event() event.VerificationData {
	d := event.VerificationData{
		ID: r.ID, Status: string(r.Status), Profile: r.Profile, Trigger: r.Trigger, Claim: r.Claim, Base: r.Base, Tree: r.Tree,
		Blocked: r.Blocked, DurationMS: r.DurationMS, Agent: r.Agent,
	}
	for _, c := range r.Checks {
		d.Checks = append(d.Checks, event.CheckData{Name: c.Name, Status: string(c.Status), Level: c.Level, AtBase: string(c.AtBase), DurationMS: c.DurationMS})
	}
	for _, i := range r.Blocking() {
		d.Issues = append(d.Issues, i.Gate+": "+i.Check+": "+i.Message)
	}
	return d
}
