// Package judge puts one bounded question to a model and takes back one JSON
// answer: for the summary of a session, for the guard where it is unsure, for a
// review. The model is asked by a run of its own with isolated settings: no
// hooks, no tools, no tool servers, an empty directory.
//
// Files it owns: <state>/judge/state.json, the circuit and what was spent, and
// <state>/judge/answers/, the cache. It takes <state>/judge/state.json.lock,
// after which it takes no other. The run itself belongs to package run.
package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// What a question is for. Budgets and the switch in the settings are by purpose.
const (
	Summary = "summary"
	Guard   = "guard"
	Review  = "review"
)

// Why there is no answer. Errors of [Judge.Ask] wrap one of them, or are about
// the question itself.
var (
	// ErrOff: the settings name no client, or not this purpose.
	ErrOff = errors.New("no judge is configured for this")
	// ErrOpen: too many questions in a row had no answer; nobody is asked until
	// the time that the error names.
	ErrOpen = errors.New("circuit breaker is open")
	// ErrBudget: the day's money or calls are used up.
	ErrBudget = errors.New("budget of the judge is used up")
	// ErrTimeout: there was no answer in time.
	ErrTimeout = errors.New("judge did not answer in time")
	// ErrAnswer: what came back is not the JSON that was asked for.
	ErrAnswer = errors.New("judge did not answer with the JSON asked for")
	// ErrNested: the asker runs inside a judge's run itself, or inside
	// something that a hook started.
	ErrNested = errors.New("a judge is not asked from inside a judge's run")
	// ErrFailed: the client could not be started, or ended with an error.
	ErrFailed = errors.New("judge failed")
)

// Question is what a model is asked.
type Question struct {
	Purpose string // Summary, Guard or Review
	System  string // the whole system prompt
	Prompt  string
	// Schema is the JSON Schema (2020-12) of the answer, an object.
	Schema json.RawMessage
	// Dir is the project directory that the question is about, "" for none: for
	// the record only, the model does not see it.
	Dir string
	// Timeout is the longest the answer may take; 0 takes the settings', which
	// bound it in any case.
	Timeout time.Duration
	// Fresh asks although an answer is in the cache.
	Fresh bool
}

// Answer is what it said.
type Answer struct {
	JSON    json.RawMessage `json:"answer"` // valid by the question's schema
	Run     string          `json:"run"`    // id of the run that was asked; of a cached answer, the one that was
	CostUSD float64         `json:"cost_usd"`
	Cached  bool            `json:"cached"`
	Took    time.Duration   `json:"took_ns"`
}

// Options is what a judge needs to know of the world.
type Options struct{}

// Judge answers questions. It is safe for concurrent use, by several processes too.
type Judge struct{ opt Options }

// New returns a judge. It touches nothing yet.
func New(opt Options) *Judge { return &Judge{opt} }

// Ask puts the question and waits for the answer.
func (j *Judge) Ask(ctx context.Context, q Question) (Answer, error) {
	return Answer{}, fmt.Errorf("ask judge: %w: set judge.client in the settings", ErrOff)
}
