package recall

import (
	"strings"
	"time"

	"reprise/internal/fact"
)

// Class is the kind of a thing that can be recalled. Each has a token budget of
// its own.
type Class string

// The classes.
const (
	ClassCore        Class = "core"
	ClassIndex       Class = "index"
	ClassBlock       Class = "block" // a section of a memory block
	ClassDecision    Class = "decision"
	ClassLearning    Class = "learning"
	ClassEpisode     Class = "episode"
	ClassPattern     Class = "pattern"      // what worked again and again
	ClassAntiPattern Class = "anti_pattern" // a fix that failed again, an assumption that was wrong
	ClassSummary     Class = "summary"      // of a session, at a tier's boundary
	ClassAnswer      Class = "answer"       // a question to the user and what they said
	ClassState       Class = "state"        // where an agent's work stands
	ClassProfile     Class = "profile"
)

// Status of a document. Only an active one is served as a fact.
type Status string

// The states of a document.
const (
	Active     Status = ""
	Superseded Status = "superseded" // readable, and served only as of a time before Until
	Candidate  Status = "candidate"  // session knowledge that no gate has let through
)

// Doc is one thing that can be recalled, wherever it comes from: a section of a
// memory file, an entry, or something worked out from the event log.
type Doc struct {
	ID      string `json:"id"` // stable over rebuilds
	Class   Class  `json:"class"`
	Scope   string `json:"scope"`             // session, project or global
	Project string `json:"project,omitempty"` // empty = global; see Place for what was seen outside any project
	Session string `json:"session,omitempty"`
	Client  string `json:"client,omitempty"`
	Author  string `json:"author,omitempty"` // agent, user or speaker; searched with more weight than the text
	// ACL as in event.Event: empty is everyone in scope.
	ACL    []string `json:"acl,omitempty"`
	Source string   `json:"source"` // file:line, event id or transcript: shown with what is served
	Title  string   `json:"title,omitempty"`
	Text   string   `json:"text"`
	// Group and Ord say which documents are neighbours: those of one Group
	// whose Ord differ by one (turns of a session, sections of a file).
	Group string `json:"group,omitempty"`
	Ord   int    `json:"ord,omitempty"`
	// Keys are exact handles: an error signature, the hash of a question, the
	// subject of a fact, an older id.
	Keys       []string    `json:"keys,omitempty"`
	Facts      []fact.Fact `json:"facts,omitempty"`
	Time       time.Time   `json:"time"`            // when it became known
	Until      time.Time   `json:"until,omitzero"`  // when it stopped being true
	Review     time.Time   `json:"review,omitzero"` // when it should be tested again
	Status     Status      `json:"status,omitempty"`
	Importance float64     `json:"importance"` // 0 to 1
	Confidence float64     `json:"confidence"` // 0 to 1; 0 = unknown
	Tier       string      `json:"tier,omitempty"`
	// Data is the maker's own, kept as it is.
	Data []byte `json:"data,omitempty"`
}

// About is the project that the document speaks of: the one that it belongs to,
// or the one that a block of the user's own memory is named after
// (blocks/project-shop.md). Empty is no project, or all of them.
func (d Doc) About() string {
	if d.Project != "" {
		return d.Project
	}
	name, ok := strings.CutPrefix(d.Source, "blocks/project-")
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(name, ".md")
	return name
}

// SameWorld says that what two documents state can be compared: "we use npm" of
// one project says nothing against "we use pnpm" of another.
func SameWorld(a, b Doc) bool {
	x, y := a.About(), b.About()
	return x == "" || y == "" || x == y
}

// Reader is who asks: what an ACL is compared with, and which scopes are seen.
type Reader struct {
	Project string
	// Places are directories, as Place has them, of which the reader sees what
	// was seen there outside any project.
	Places  []string `json:",omitempty"`
	Session string
	Client  string
	Agent   string
	Role    string
	// Keeps is the agent whose state is kept where the reader works: what is that
	// agent's own is the reader's, too.
	Keeps string `json:",omitempty"`
	// All lifts scope and ACL: the person at the keyboard.
	All bool
	// Wide sees every project, and of each what everyone and this reader may: an
	// agent that asks for all projects does not so become the person.
	Wide bool
}

// Question asks for what fits best.
type Question struct {
	Text string
	Keys []string // exact handles; a document that has one always fits
	Reader
	Classes []Class   // nil = all
	AsOf    time.Time // zero = now
	Max     int       // documents; 0 = by the policy
	// MaxTokens of the whole answer; 0 = by the policy.
	MaxTokens int
	Policy    *Policy // nil = DefaultPolicy
	Explain   bool    // fill Signals
	// NotOwn leaves out what was worked out from the reader's own session.
	NotOwn bool
	// Elsewhere asks for Answer.Elsewhere, which costs as much as the answer.
	Elsewhere bool
	// Exclude are ids that the session has been given already.
	Exclude []string
	// Vector is the question's embedding by VectorModel (Embedder.Name); empty
	// = by words only.
	Vector      []float32
	VectorModel string
}

// Result is one document with its score in this answer.
type Result struct {
	Doc
	Score   float64            `json:"score"`
	Snippet string             `json:"snippet"` // the part that fits best, within the budget
	Tokens  int                `json:"tokens"`
	Signals map[string]float64 `json:"signals,omitempty"` // what the score is made of
	// Conflicts are ids of documents that say otherwise and were not served.
	Conflicts []string `json:"conflicts,omitempty"`
}

// Answer to a question. Empty when nothing fits: a near miss is left out.
type Answer struct {
	Results []Result `json:"results"`
	Tokens  int      `json:"tokens"`
	// Dropped says why candidates were left out (threshold, budget, conflict,
	// duplicate, acl), by id; only with Explain.
	Dropped map[string]string `json:"dropped,omitempty"`
	Policy  string            `json:"policy"` // id of the policy that ranked
	// Elsewhere are projects and places outside the reader's scope that have matches:
	// filled when it was asked for and the answer is empty, so that a misspelt
	// project shows.
	Elsewhere []string `json:"elsewhere,omitempty"`

	want map[string]float64 // the words that were asked for, with their weights: what a part of a text is chosen by
}

// Policy is what ranking is steered by: a value, so that a past recall can be
// replayed with another one.
type Policy struct {
	ID string `json:"id"` // "default" or the id of the policy.changed event
	// Weights by signal: see rank.go for the list. A missing one has the default.
	Weights map[string]float64 `json:"weights,omitempty"`
	// Threshold is the least score, by [0,1] match quality, at which a
	// document is served.
	Threshold float64 `json:"threshold"`
	// Diversity is MMR's lambda: 1 = relevance only.
	Diversity float64 `json:"diversity"`
	// TopK is the most documents by scope (session, project, global).
	TopK map[string]int `json:"top_k,omitempty"`
	// Budget is the most tokens by class.
	Budget map[Class]int `json:"budget,omitempty"`
}
