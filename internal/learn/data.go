package learn

import (
	"encoding/json"

	"reprise/internal/recall"
)

// What a derived document is about, in Data.Kind.
const (
	KindFailure     = "failure"      // a call that failed, and what came of it
	KindCorrection  = "correction"   // the user said that it should be otherwise
	KindTurn        = "turn"         // a prompt and what was done for it
	KindSession     = "session"      // summary of a session
	KindDigest      = "digest"       // summary of a project's month that has gone cold
	KindPattern     = "pattern"      // the same fix for the same failure, in several sessions
	KindSaid        = "said"         // the same correction, in several sessions
	KindAntiPattern = "anti_pattern" // a fix that was followed by the same failure
)

// Outcomes of an episode.
const (
	Fixed    = "fixed"    // the call worked later in the session
	Unfixed  = "unfixed"  // it never did
	Refailed = "refailed" // it worked, and failed again in the same way
	Told     = "told"     // the user said what to do
	Done     = "done"     // a turn that ended with a response
	Broken   = "broken"   // a turn that ended by an error, or not at all
	// Corrected is a turn of which the user then said that it was wrong.
	Corrected = "corrected"
)

// Data is what stands in recall.Doc.Data of everything that is worked out here.
type Data struct {
	Kind      string `json:"kind"`
	Task      string `json:"task,omitempty"` // the prompt it served
	Tool      string `json:"tool,omitempty"` // in our own words, as in event.ToolData
	Target    string `json:"target,omitempty"`
	Inputs    string `json:"inputs,omitempty"` // hash of the call's input
	Outcome   string `json:"outcome,omitempty"`
	Signature string `json:"signature,omitempty"`
	Exact     string `json:"exact,omitempty"` // the signature with quoted values kept
	Failure   string `json:"failure,omitempty"`
	Line      string `json:"line,omitempty"` // the failure, normalised
	// Quotes says that it tells words of a tool's that nobody has looked at, and which are
	// not those in which failures are told.
	Quotes  bool      `json:"quotes,omitempty"`
	Fix     *Fix      `json:"fix,omitempty"`
	Tried   []Attempt `json:"tried,omitempty"` // what was followed by the same failure
	Tries   int       `json:"tries,omitempty"` // failed calls
	Said    string    `json:"said,omitempty"`  // the user's words
	SaidKey string    `json:"said_key,omitempty"`
	Files   []string  `json:"files,omitempty"`
	Asked   *Asked    `json:"asked,omitempty"`

	Sessions  int      `json:"sessions,omitempty"` // in which the fix worked
	Projects  int      `json:"projects,omitempty"`
	Failures  int      `json:"failures,omitempty"` // times that it did not hold
	Episodes  []string `json:"episodes,omitempty"` // ids, newest first, at most 10
	SessionID []string `json:"session_ids,omitempty"`
	Lifted    bool     `json:"lifted,omitempty"` // it worked again after it had failed

	// Signals are what Importance is made of, each 0 to 1; see importance.go.
	Signals  map[string]float64 `json:"signals,omitempty"`
	Evidence []string           `json:"evidence,omitempty"` // event ids, at most 12
}

// Fix is what was done between a failure and the success of the same call.
type Fix struct {
	// Kind says what carried it: changed (another command line), command,
	// edit, said (the user's word) or retry (nothing was changed).
	Kind string `json:"kind"`
	// Key is the same for the same kind of fix.
	Key  string `json:"key"`
	Text string `json:"text"` // one line
	// Common is, of a pattern over several projects, the fix in the words that all of them
	// share; what differs from one to the other is a placeholder.
	Common     string   `json:"common,omitempty"`
	Commands   []string `json:"commands,omitempty"`
	Files      []string `json:"files,omitempty"`
	Gone       []string `json:"gone,omitempty"` // words that the command line lost
	Come       []string `json:"come,omitempty"` // words that it gained
	Confidence float64  `json:"confidence"`
	Event      string   `json:"event"` // id of the success
}

// Attempt is something that was done and did not help.
type Attempt struct {
	Key   string `json:"key"`
	Text  string `json:"text"`
	Event string `json:"event"`
}

// DataOf reads the Data of a document; ok is false where it holds none of ours.
func DataOf(d recall.Doc) (Data, bool) {
	var out Data
	if len(d.Data) == 0 || json.Unmarshal(d.Data, &out) != nil || out.Kind == "" {
		return Data{}, false
	}
	return out, true
}

func (d Data) encode() []byte {
	b, err := json.Marshal(d)
	if err != nil {
		return nil // floats are bounded and strings are strings: cannot be
	}
	return b
}
