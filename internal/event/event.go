// Package event is the history: what happened, one JSON line each, only ever
// added to.
//
// It owns the files `<YYYY-MM>.<host>.jsonl` in a directory of events (the
// global one or a project's), one for each month (UTC, by the event's time) and
// writing machine, so that the logs of two machines merge by being put side by
// side; the directories `before-<time>` there, in which a migration keeps what it
// replaced; and the outbox, `<event id>.json` a file, for what could not be
// appended yet. It writes those and nothing else, through package durable, which
// takes the lock `<file>.lock` for each append and keeps beside the file, as
// `<file>.torn`, what a crash left of a line. Replaying the outbox holds its
// `replay.lock`, and then an append's.
//
// Each line carries in "prev" the SHA-256, in hex, of the line before it in its
// file (without the newline), so that an edited or missing line shows; see
// [Verify]. Secrets are taken out before a line is written, and long fields are
// cut. Lines are never rewritten: [Purge] and [Migrate] put a new file in the
// old one's place, with its chain made anew and the change on record.
//
// [Broker] is the way in for everyone, [Read] and [ReadFrom] are the ways out;
// package quick is the part that the hook program links.
package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"reprise/internal/event/quick"
)

// Version is the format's version, in each event's "v".
const Version = quick.Version

// Type says what happened. The list is closed: a type that is not in it is
// refused, so that readers need to know no others.
type Type string

// The types.
const (
	SessionStarted       Type = "session.started"
	SessionEnded         Type = "session.ended"
	PromptSubmitted      Type = "prompt.submitted"
	ToolCalled           Type = "tool.called"
	ToolSucceeded        Type = "tool.succeeded"
	ToolFailed           Type = "tool.failed"
	PermissionAsked      Type = "permission.asked"
	PermissionDecided    Type = "permission.decided"
	ResponseCompleted    Type = "response.completed"
	VerificationFinished Type = "verification.finished"
	QuestionAsked        Type = "question.asked"
	QuestionAnswered     Type = "question.answered"
	MemoryWritten        Type = "memory.written"
	MemoryPromoted       Type = "memory.promoted"
	MemoryRetired        Type = "memory.retired"
	MemoryPurged         Type = "memory.purged"
	RecallServed         Type = "recall.served"
	RecallUsed           Type = "recall.used"
	EpisodeRecorded      Type = "episode.recorded"
	PolicyChanged        Type = "policy.changed"
	RunChanged           Type = "run.changed"
	WorkChanged          Type = "work.changed"
	TaskChanged          Type = "task.changed"
	StateChanged         Type = "state.changed"
	CompactionFinished   Type = "compaction.finished"
	DelegationCounted    Type = "delegation.counted"
	SubagentStarted      Type = "subagent.started"
	SubagentFinished     Type = "subagent.finished"
	ClientCompacted      Type = "client.compacted"
	TrustChanged         Type = "trust.changed"
)

// Types returns the closed list.
func Types() []Type {
	return []Type{
		SessionStarted, SessionEnded, PromptSubmitted, ToolCalled, ToolSucceeded, ToolFailed,
		PermissionAsked, PermissionDecided, ResponseCompleted, VerificationFinished,
		QuestionAsked, QuestionAnswered, MemoryWritten, MemoryPromoted, MemoryRetired, MemoryPurged,
		RecallServed, RecallUsed, EpisodeRecorded, PolicyChanged, RunChanged, WorkChanged,
		TaskChanged, StateChanged, CompactionFinished, DelegationCounted, SubagentStarted,
		SubagentFinished, ClientCompacted, TrustChanged,
	}
}

// Scope says for whom an event counts.
type Scope string

// The scopes, from narrow to wide.
const (
	ScopeSession Scope = "session"
	ScopeProject Scope = "project"
	ScopeGlobal  Scope = "global"
)

// Event is one line of the log. The writer sets V, ID, TS, Prev and Cut; the
// caller the rest.
type Event struct {
	V       int       `json:"v"`
	ID      string    `json:"id"` // UUID version 7
	TS      time.Time `json:"ts"` // UTC
	Scope   Scope     `json:"scope"`
	Project string    `json:"project,omitempty"`
	Session string    `json:"session,omitempty"` // the client's own id
	Run     string    `json:"run,omitempty"`
	Client  string    `json:"client,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	Role    string    `json:"role,omitempty"`
	Task    string    `json:"task,omitempty"`
	Parent  string    `json:"parent,omitempty"` // id of the event that this one belongs to
	Type    Type      `json:"type"`
	// Data is a JSON object, its fields by type.
	Data       json.RawMessage `json:"data,omitempty"`
	Outcome    string          `json:"outcome,omitempty"`
	Importance float64         `json:"importance,omitempty"` // 0 to 1
	Evidence   []string        `json:"evidence,omitempty"`
	// ACL is who may read the event: agent:NAME, role:NAME, client:NAME or *;
	// empty is everyone in its scope.
	ACL []string `json:"acl,omitempty"`
	// Cut describes the fields that were too long, by JSON pointer.
	Cut  map[string]Whole `json:"cut,omitempty"`
	Prev string           `json:"prev"` // SHA-256 of the line before, empty in a file's first line
}

// Whole describes a field, after redaction, of which the event holds only the
// beginning.
type Whole struct {
	SHA256 string `json:"sha256"`
	Len    int    `json:"len"` // bytes
}

// ErrInvalid is the error of an event that does not follow the schema.
var ErrInvalid = quick.ErrInvalid

// ErrNewer is the error of an event of a version that is newer than this program, beside
// [ErrInvalid]: nothing is wrong with it, and a newer program reads it.
var ErrNewer = errors.New("newer than this program: use the newer reprise")

// checkRead reports what is wrong with an event that was read.
func (e *Event) checkRead() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
	}
	if e.V > Version {
		return fmt.Errorf("%w: version %d is %w", ErrInvalid, e.V, ErrNewer)
	}
	if e.V != Version {
		return bad("version %d is not one that this program knows", e.V)
	}
	if e.ID == "" || e.TS.IsZero() {
		return bad("id or ts is missing")
	}
	if _, ok := quick.Fields(string(e.Type)); !ok {
		return bad("type %.80q is not one of the list", e.Type)
	}
	if len(e.Data) > 0 && e.Data[0] != '{' && string(e.Data) != "null" {
		return bad("data is not a JSON object")
	}
	return quick.Check(string(e.Scope), e.Importance, e.ACL)
}
