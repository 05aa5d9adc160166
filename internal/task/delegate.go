package task

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"reprise/internal/agent"
	"reprise/internal/pathname"
)

// MaxDepth is how deep delegations may stand in one another: a command's agent has
// depth 1, and one of depth 3 hands nothing further.
const MaxDepth = 3

// Timeouts of operations. What is not done by then is partial, not failed.
func Timeouts(op string) time.Duration {
	switch op {
	case OpResearch:
		return time.Hour
	case OpPlan, OpRevise:
		return 30 * time.Minute
	case OpReview:
		return time.Hour
	case OpImplement:
		return 2 * time.Hour
	}
	return 5 * time.Minute
}

// Variables of the environment that an agent of a delegation has.
const (
	DelegationVar = "REPRISE_DELEGATION"      // sess_…
	PathVar       = "REPRISE_DELEGATION_PATH" // names of agents, joined by commas
	ArtifactVar   = "REPRISE_ARTIFACT"        // where it is to write what it found
)

// Delegation is who does a step, and through whom it came to them.
type Delegation struct {
	Session string        `json:"session_id"`
	Agent   string        `json:"agent_type"`
	Path    []string      `json:"delegation_path"` // from the outermost, the agent last
	Timeout time.Duration `json:"-"`
}

// Depth is how deep it stands.
func (d Delegation) Depth() int { return len(d.Path) - 1 }

// DelegationError says why a step is not handed on.
type DelegationError struct {
	Type string // CycleDetected or MaxDepthExceeded
	Path []string
}

func (e *DelegationError) Error() string {
	if e.Type == CycleDetected {
		return fmt.Sprintf("delegation goes round in a circle: %s", strings.Join(e.Path, " → "))
	}
	return fmt.Sprintf("delegation is more than %d deep: %s; do this step yourself", MaxDepth, strings.Join(e.Path, " → "))
}

// NewSession is the id of a delegation: sess_, the seconds since 1970, and six random
// digits and letters.
func NewSession(now time.Time) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	var b [6]byte
	_, _ = rand.Read(b[:]) // it never fails
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return fmt.Sprintf("sess_%d_%s", now.Unix(), b[:])
}

// Delegate hands a step to an agent. from is the path of who hands it on, as its
// environment has it; empty is the program itself.
func Delegate(from []string, agent, session string, timeout time.Duration) (Delegation, error) {
	if len(from) == 0 {
		from = []string{"orchestrator"}
	}
	path := append(slices.Clone(from), agent)
	d := Delegation{Session: session, Agent: agent, Path: path, Timeout: timeout}
	if slices.Contains(from, agent) {
		return d, &DelegationError{CycleDetected, path}
	}
	if d.Depth() > MaxDepth {
		return d, &DelegationError{MaxDepthExceeded, path}
	}
	return d, nil
}

// ParsePath reads a path from the environment.
func ParsePath(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// Return is what an agent says at the end of a step.
type Return struct {
	Status    string      `json:"status"`
	Summary   string      `json:"summary"`
	Artifacts []string    `json:"artifacts"`
	Metadata  ReturnAbout `json:"metadata"`
	Errors    []ReturnErr `json:"errors"`
	NextSteps string      `json:"next_steps"`
}

// ReturnAbout is who says it.
type ReturnAbout struct {
	Session  string   `json:"session_id"`
	Duration float64  `json:"duration_seconds,omitempty"`
	Agent    string   `json:"agent_type"`
	Depth    int      `json:"delegation_depth"`
	Path     []string `json:"delegation_path"`
}

// returnSchema is the form of a Return for clients that can hold their model to one. It
// stays within what the strictest of them takes: every field is required, no further one
// is allowed, and lengths are not said. What it cannot say is checked all the same.
func returnSchema() json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{` +
		`"status":{"type":"string","enum":["completed","partial","blocked","failed"]},"summary":{"type":"string"},` +
		`"artifacts":{"type":"array","items":{"type":"string"}},` +
		`"metadata":{"type":"object","properties":{"session_id":{"type":"string"},"agent_type":{"type":"string"},"delegation_depth":{"type":"integer"},"delegation_path":{"type":"array","items":{"type":"string"}}},` +
		`"required":["session_id","agent_type","delegation_depth","delegation_path"],"additionalProperties":false},` +
		`"errors":{"type":"array","items":{"type":"object","properties":{"type":{"type":"string"},"message":{"type":"string"}},"required":["type","message"],"additionalProperties":false}},` +
		`"next_steps":{"type":"string"}},` +
		`"required":["status","summary","artifacts","metadata","errors","next_steps"],"additionalProperties":false}`)
}

// LastWords is what an agent said at its end: the answer by the schema where its client
// gave one, else its text.
func LastWords(r *agent.Result) string {
	if len(r.Structured) > 0 {
		return string(r.Structured)
	}
	return r.Text
}

// ReturnErr is one thing that went wrong.
type ReturnErr struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// UnmarshalJSON takes a bare text for an error without a type, which agents like to
// write.
func (e *ReturnErr) UnmarshalJSON(data []byte) error {
	type plain ReturnErr
	if json.Unmarshal(data, (*plain)(e)) == nil {
		return nil
	}
	e.Type = "unknown"
	return json.Unmarshal(data, &e.Message)
}

// maxSummary is in characters.
const maxSummary = 1000

var session = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^sess_\d{1,12}_[a-z0-9]{6}$`) })

// ParseReturn reads an agent's last words: a JSON object, alone, in a fence, or behind
// other words. The error says what is amiss, for the agent to mend.
// roots are the directories in which files that it names may lie; relative names are
// looked for in the first.
func ParseReturn(text string, d Delegation, roots ...string) (Return, error) {
	r, err := findReturn(text)
	if err != nil {
		return Return{}, err
	}
	return r, r.check(d, roots)
}

// MaxAnswer is the longest answer of an agent that is read, in bytes: all that belongs
// into one takes a few thousand.
const MaxAnswer = 1 << 20

// answerTries is at how many places of a text an answer is looked for: braces may stand
// there by the ten thousand.
const answerTries = 1000

func findReturn(text string) (Return, error) {
	if len(text) > MaxAnswer {
		return Return{}, fmt.Errorf("it is longer than %d bytes, the most that are read: write what is long into a file and name that in artifacts", MaxAnswer)
	}
	first := errors.New("there is no JSON object in it")
	end := max(0, strings.LastIndex(text, `"status"`)) // an answer begins before that
	at := strings.LastIndexByte(text[:end], '{')
	for n := 0; at >= 0 && n < answerTries; n++ {
		var r Return
		dec := json.NewDecoder(strings.NewReader(text[at:]))
		if err := dec.Decode(&r); err != nil {
			var syntax *json.SyntaxError
			if !errors.As(err, &syntax) {
				first = fmt.Errorf("it is not in the form that was asked for: %w", err)
			}
		} else if r.Status != "" {
			return r, nil
		}
		at = strings.LastIndexByte(text[:at], '{')
	}
	return Return{}, first
}

func (r Return) check(d Delegation, roots []string) error {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if !slices.Contains([]string{"completed", "failed", "partial", "blocked"}, r.Status) {
		say("status is %q, not completed, failed, partial or blocked", r.Status)
	}
	switch n := utf8.RuneCountInString(strings.TrimSpace(r.Summary)); {
	case n == 0:
		say("summary is empty")
	case n > maxSummary:
		say("summary has %d characters, at most %d are read", n, maxSummary)
	}
	switch {
	case !session().MatchString(r.Metadata.Session):
		say("metadata.session_id is %q, not %s", r.Metadata.Session, d.Session)
	case r.Metadata.Session != d.Session:
		say("metadata.session_id is %s, which is another session's: this one is %s", r.Metadata.Session, d.Session)
	}
	for _, a := range r.Artifacts {
		err := Inside(roots[0], a)
		for _, root := range roots[1:] {
			if err != nil && filepath.IsAbs(filepath.FromSlash(a)) {
				err = Inside(root, a)
			}
		}
		if err != nil {
			say("%v", err)
		}
	}
	if wrong == nil {
		return nil
	}
	return errors.New(strings.Join(wrong, "; "))
}

// Inside says what is wrong with a file that an agent names: it must exist, below
// root, by way of no link that leads out.
func Inside(root, name string) error {
	p := filepath.FromSlash(name)
	if !filepath.IsAbs(p) {
		p = filepath.Join(root, p)
	}
	real, err := filepath.EvalSymlinks(p)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("artifact %s does not exist", name)
	}
	if err != nil {
		return fmt.Errorf("artifact %s: %w", name, err)
	}
	top, err := filepath.EvalSymlinks(root)
	if err != nil {
		return err
	}
	rel, ok := pathname.Below(top, real)
	if !ok {
		return fmt.Errorf("artifact %s lies outside of the project", name)
	}
	if named, err := filepath.Rel(root, p); err == nil && kept(named) || kept(rel) {
		return fmt.Errorf("artifact %s belongs to git or to this program: name the files that the work is in", name)
	}
	if fi, err := os.Stat(real); err == nil && !fi.Mode().IsRegular() {
		if fi.IsDir() {
			return fmt.Errorf("artifact %s is a directory: name the files", name)
		}
		return fmt.Errorf("artifact %s is no regular file", name)
	}
	return nil
}

// kept reports whether a name below a checkout is git's own, a submodule's or a linked
// worktree's with it, or one of those that this program keeps for itself. Some file
// systems ignore case.
func kept(rel string) bool {
	parts := strings.Split(strings.ToLower(filepath.ToSlash(rel)), "/")
	return slices.Contains(parts, ".git") || slices.Contains(parts, journalDir) || len(parts) > 1 && parts[0] == ".reprise" && parts[1] == "agent"
}
