package transcript

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/event"
)

// maxCalls is how many tool calls may wait for their result at once.
const maxCalls = 4096

// errLine is a line that says nothing usable. Reading goes on after it.
var errLine = errors.New("not a line of this client")

// place is where a reader is in its transcript. The subagents that are told of
// in one file share it.
type place struct {
	line int
	// done is how many lines were dealt with by an import before: what they say
	// is not emitted again, whether the log still holds it or not.
	done int
}

// call is a tool call whose result has not been read yet.
type call struct {
	at   time.Time
	line int
	data event.ToolData
}

// answer is the last text of the model: the end of a turn, unless a tool call
// follows it.
type answer struct {
	at        time.Time
	line      int
	key, text string
	err       string
}

// session makes events of what a client's reader finds. Each reader calls its
// methods in the order of the transcript.
type session struct {
	client, id string
	path       string
	// cwd is where the session works, as last said; base is where it began. All
	// its events are filed by that, as hooks do: a session's events stay together.
	cwd, base string
	model     string
	agent     string // a subagent's id, by the client
	agentType string
	// now is when the import runs: no event may be later.
	now  time.Time
	emit func(cwd string, e event.Event) error
	at   *place

	started bool
	// began and turn are the events that others belong to: the session's, or the
	// subagent's, beginning, and the last prompt.
	began, turn string
	subs        map[string]string // subagents of the same file: their beginnings
	last        time.Time
	calls       map[string]*call
	order       []string
	answer      *answer
}

// when parses a time of the client and keeps it sane: events of one session
// never lie in the future.
func (s *session) when(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() < 2020 || t.After(s.now.Add(24*time.Hour)) {
		return s.last // the line before is the best guess; zero: there is none
	}
	s.last = t.UTC()
	return s.last
}

// eventID makes a UUID (version 7) of an event's time and of where it was read: the
// same transcript makes the same ids, on every machine.
func eventID(at time.Time, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	var b [16]byte
	copy(b[6:], sum[:])
	binary.BigEndian.PutUint64(b[:8], uint64(max(at.UnixMilli(), 0))<<16|uint64(binary.BigEndian.Uint16(b[6:8])))
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// add emits an event. key tells it from all others of the session.
func (s *session) add(at time.Time, key string, kind event.Type, agent string, data any) error {
	return s.addFrom(s.at.line, at, key, kind, agent, data)
}

// addFrom is add for an event that an earlier line tells of.
func (s *session) addFrom(line int, at time.Time, key string, kind event.Type, agent string, data any) error {
	if at.IsZero() {
		return fmt.Errorf("%w: it has no time, and none before it has", errLine)
	}
	id := s.id
	if len(key) >= 12 && !strings.HasPrefix(key, "line ") {
		// The client's own id of the message or call: a session that was forked
		// or resumed into a new file brings along what the old one holds.
		id = ""
	}
	e := event.Event{
		ID: eventID(at, s.client, id, agent, string(kind), key, at.Format(time.RFC3339Nano)), TS: at,
		Session: s.id, Client: s.client, Agent: agent, Type: kind,
	}
	e.Parent = s.parent(kind, agent, e.ID)
	if line <= s.at.done {
		return nil
	}
	var err error
	if e.Data, err = json.Marshal(data); err != nil {
		return fmt.Errorf("%w: %v", errLine, err)
	}
	return s.emit(s.base, e)
}

// parent is the event that one belongs to, as hooks have it (see hook.Parent), and
// takes down the one if others will belong to it.
func (s *session) parent(kind event.Type, agent, id string) string {
	inner := s.agent == "" && agent != ""
	switch {
	case kind == event.SubagentStarted && inner:
		if s.subs == nil {
			s.subs = map[string]string{}
		}
		s.subs[agent] = id
	case inner && s.subs[agent] != "":
		return s.subs[agent]
	}
	switch kind {
	case event.SessionStarted:
		s.began, s.turn = id, ""
		return ""
	case event.SubagentStarted:
		if inner {
			break
		}
		s.began = id
		return ""
	case event.PromptSubmitted:
		s.turn = id
		return s.began
	case event.SessionEnded, event.ClientCompacted:
		return s.began
	}
	if s.turn != "" {
		return s.turn
	}
	return s.began
}

// begin is called with the first line that has a time, or with one that says
// the session went on.
func (s *session) begin(at time.Time, key, source string) error {
	if s.base == "" || source == "resume" {
		s.base = s.cwd
	}
	if s.started && source == "startup" {
		return nil
	}
	if s.agent != "" { // a subagent's own file
		if s.started {
			return nil
		}
		s.started = true
		return s.add(at, "start", event.SubagentStarted, s.agent, event.SubagentData{ID: s.agent, Type: s.agentType})
	}
	if !s.started {
		key = "start"
	}
	s.started = true
	return s.add(at, key, event.SessionStarted, "", event.SessionData{
		Source: source, Cwd: s.cwd, Model: s.model, Transcript: s.path, Imported: true,
	})
}

func (s *session) prompt(at time.Time, key, text string) error {
	text = strings.TrimSpace(dialect.WithoutTold(text))
	if text == "" || s.agent != "" { // a subagent's prompt is its parent's call
		return nil
	}
	if err := s.endTurn(); err != nil {
		return err
	}
	return s.add(at, key, event.PromptSubmitted, "", event.PromptData{Text: text, Cwd: s.cwd})
}

// said takes down a text of the model.
func (s *session) said(at time.Time, key, text string) {
	if strings.TrimSpace(text) != "" {
		s.answer = &answer{at: at, line: s.at.line, key: key, text: text}
	}
}

// failedTurn takes down that the turn ended by an error.
func (s *session) failedTurn(at time.Time, key, why string) {
	a := &answer{at: at, line: s.at.line, key: key, err: why}
	if s.answer != nil {
		a.text = s.answer.text
	}
	s.answer = a
}

// endTurn emits the last text, if no tool call came after it.
func (s *session) endTurn() error {
	a := s.answer
	s.answer = nil
	if a == nil {
		return nil
	}
	if s.agent != "" {
		return s.addFrom(a.line, a.at, a.key, event.SubagentFinished, s.agent, event.SubagentData{ID: s.agent, Type: s.agentType, Text: a.text})
	}
	return s.addFrom(a.line, a.at, a.key, event.ResponseCompleted, "", event.ResponseData{Text: a.text, Error: a.err})
}

// called takes down a tool call.
func (s *session) called(at time.Time, id, name string, input []byte) {
	s.answer = nil
	if id == "" || s.calls[id] != nil {
		return
	}
	if s.calls == nil {
		s.calls = map[string]*call{}
	}
	if len(s.order) >= maxCalls {
		delete(s.calls, s.order[0])
		s.order = s.order[1:]
	}
	s.order = append(s.order, id)
	s.calls[id] = &call{at: at, line: s.at.line, data: event.ToolData{
		Tool: dialect.ToolKind(name), Name: name, ID: id, Input: object(input), Cwd: s.cwd,
	}}
}

// outcome is how a tool call ended.
type outcome struct {
	output string
	err    string
	code   *int
	failed bool
	denied bool // it was not allowed to run
	took   time.Duration
	// answers is what an asking tool came to, where it stands apart from the output.
	answers string
}

// ended emits the end of a tool call. A result whose call was not read, because
// the transcript begins after it, is left out: nobody could tell what it was.
func (s *session) ended(at time.Time, id, agent string, o outcome) error {
	c := s.calls[id]
	if c == nil {
		return nil
	}
	delete(s.calls, id)
	for i, have := range s.order {
		if have == id {
			s.order = append(s.order[:i], s.order[i+1:]...)
			break
		}
	}
	d := c.data
	d.Output, d.Error, d.ExitCode = dialect.WithoutTold(o.output), dialect.WithoutTold(o.err), o.code
	if d.DurationMS = o.took.Milliseconds(); d.DurationMS == 0 && at.After(c.at) {
		d.DurationMS = at.Sub(c.at).Milliseconds()
	}
	kind := event.ToolSucceeded
	switch {
	case o.denied:
		kind = event.PermissionDecided
	case o.failed || o.code != nil && *o.code != 0:
		kind = event.ToolFailed
		if d.Error == "" && o.code != nil {
			d.Error = fmt.Sprintf("exit code %d", *o.code)
		}
	}
	if agent == "" {
		agent = s.agent
	}
	if d.Tool == "ask" && kind == event.ToolSucceeded {
		if err := s.answered(at, agent, d, cmp.Or(o.answers, o.output)); err != nil {
			return err
		}
	}
	return s.add(at, id, kind, agent, d)
}

// answered emits what the user answered to questions of the agent, as hooks read it.
// Where that is no object, it is an answer only if it is one of the options: else
// it may be any remark of the client's.
func (s *session) answered(at time.Time, agent string, d event.ToolData, said string) error {
	ev := dialect.Event{Tool: d.Tool, Kind: dialect.ToolAfter, Input: d.Input, Output: said}
	object := strings.HasPrefix(strings.TrimSpace(said), "{")
	for i, q := range ev.Questions() {
		if q.Answer = strings.TrimSpace(q.Answer); q.Answer == "" || !object && !slices.Contains(q.Options, q.Answer) {
			continue
		}
		data := event.QuestionData{Question: q.Text, Options: q.Options, Answer: q.Answer, UseID: d.ID, By: "user"}
		if err := s.add(at, fmt.Sprintf("%s/%d", d.ID, i), event.QuestionAnswered, agent, data); err != nil {
			return err
		}
	}
	return nil
}

// end is called once, at the end of the file. over says that nobody writes to
// it any more.
func (s *session) end(over bool) error {
	if err := s.endTurn(); err != nil {
		return err
	}
	if !s.started || !over {
		return nil
	}
	for _, id := range s.order { // calls that nobody saw the end of
		c := s.calls[id]
		if c == nil {
			continue
		}
		if err := s.addFrom(c.line, c.at, id, event.ToolCalled, s.agent, c.data); err != nil && !errors.Is(err, errLine) {
			return err
		}
	}
	if s.agent != "" {
		return nil
	}
	// Beyond the last line: what was read of a session that went on has no end.
	return s.addFrom(s.at.done+1, s.last, "end", event.SessionEnded, "", event.SessionData{
		Reason: "imported", Cwd: s.cwd, Transcript: s.path, Imported: true,
	})
}

// object is a tool's input as the JSON object that events have; what is none is
// put under the name that says so.
func object(raw []byte) json.RawMessage {
	text := strings.TrimSpace(string(raw))
	if text == "" || text == "null" {
		return nil
	}
	if text[0] == '{' && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	if text[0] == '"' { // an object in a string
		var in string
		if json.Unmarshal([]byte(text), &in) == nil && strings.HasPrefix(strings.TrimSpace(in), "{") && json.Valid([]byte(in)) {
			return json.RawMessage(in)
		}
	}
	if !json.Valid([]byte(text)) {
		data, err := json.Marshal(strings.ToValidUTF8(text, "\ufffd"))
		if err != nil {
			return nil
		}
		text = string(data)
	}
	return json.RawMessage(`{"text":` + text + `}`)
}

// contentText is the text of content that is a string or a list of blocks.
func contentText(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	switch raw[0] {
	case '"':
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return s
		}
	case '[':
		var blocks []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &blocks) != nil {
			return ""
		}
		var parts []string
		for _, b := range blocks {
			if b.Text != "" {
				parts = append(parts, b.Text)
			}
		}
		return strings.Join(parts, "\n")
	case '{':
		var o struct {
			Text    string          `json:"text"`
			Content json.RawMessage `json:"content"`
			Output  string          `json:"output"`
		}
		if json.Unmarshal(raw, &o) == nil {
			switch {
			case o.Output != "":
				return o.Output
			case o.Text != "":
				return o.Text
			}
			return contentText(o.Content)
		}
	}
	return ""
}
