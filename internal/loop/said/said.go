// Package said takes the output of a run apart, line by line, as its client has written
// it: which tools were called and what went wrong with them, the last messages, the files
// that were named last, and the session's own plan.
//
// It owns no files and takes no locks.
package said

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"reprise/internal/agent"
	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/loop/core"
	"reprise/internal/loop/tell"
	"reprise/internal/run"
)

// Stream is what is taken out of a run's output.
type Stream struct {
	// Tools and Errors are JSON lines: each call of a tool, and each of its errors and of
	// the client's, long texts cut.
	Tools, Errors bytes.Buffer
	Messages      []string        // the last few, the oldest first
	Files         []string        // that its tools named last, the latest at the end
	Plan          json.RawMessage // the session's own list, as its client writes it; nil without one
	Calls         []Call          // the first of them
	Results       map[string]Result
	// Refused is what the guard said of the first call that it refused: of what, why and what
	// a person can do about it; "" where it refused none.
	Refused string
	more    bool // the last message may go on
}

// Call is a call of a tool, with the client's own time as it wrote it.
type Call struct{ Name, ID, At string }

// Result is what came back under the id of a call.
type Result struct {
	At     string
	Failed bool
}

// What is kept, and how much is read.
const (
	// KeepLast is how many of the last messages are kept.
	KeepLast = 5
	// Longest is how many bytes of a longer output are read, which are its last.
	Longest = 64 << 20
)

// Bounds on what is taken out.
const (
	maxLine     = 4 << 20
	keepFiles   = 20
	maxToolText = 2 << 10
	maxCalls    = 500
)

// Read takes a run's output apart, the file at path as the client of that name writes it.
// Lines that are none of ours are passed over, and of a file that is not there nothing comes.
func Read(client, path string) *Stream {
	var s Stream
	f, err := durable.Open(path)
	if err != nil {
		return &s
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return &s
	} else if info.Size() > Longest {
		_, _ = f.Seek(-Longest, 2) // the end is what matters
	}
	sc := bufio.NewScanner(f)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	for sc.Scan() {
		switch client {
		case agent.KindCodex, agent.KindGemini, agent.KindCopilot:
			s.other(agent.ReadLine(client, sc.Bytes()))
		default:
			s.line(sc.Bytes())
		}
	}
	return &s
}

func (s *Stream) line(data []byte) {
	var l struct {
		Type      string          `json:"type"`
		Subtype   string          `json:"subtype"`
		Timestamp string          `json:"timestamp"`
		IsError   bool            `json:"is_error"`
		Message   json.RawMessage `json:"message"` // of what the client itself tells a string
	}
	if json.Unmarshal(data, &l) != nil {
		return
	}
	denied := l.Type == "system" && l.Subtype == "permission_denied"
	if denied || l.Type == "result" && l.IsError || l.Type == "system" && l.Subtype == "api_retry" {
		s.Errors.WriteString(tell.Clip(string(bytes.TrimSpace(data)), maxToolText*4) + "\n")
	}
	if denied {
		s.refused(plain(l.Message))
	}
	var m struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(l.Message, &m) != nil {
		return
	}
	var blocks []struct {
		Type    string          `json:"type"`
		Text    string          `json:"text"`
		Name    string          `json:"name"`
		ID      string          `json:"id"`
		UseID   string          `json:"tool_use_id"`
		Input   json.RawMessage `json:"input"`
		IsError bool            `json:"is_error"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(m.Content, &blocks) != nil {
		return
	}
	for _, b := range blocks {
		switch {
		case b.Type == "text" && l.Type == "assistant" && strings.TrimSpace(b.Text) != "":
			s.Messages = append(s.Messages, tell.Clip(b.Text, 4000))
			if n := len(s.Messages); n > KeepLast {
				s.Messages = s.Messages[n-KeepLast:]
			}
		case b.Type == "tool_use":
			s.tool(l.Timestamp, b.Name, b.ID, b.Input)
		case b.Type == "tool_result":
			s.result(l.Timestamp, b.UseID, b.IsError)
			if !b.IsError {
				continue
			}
			s.refused(plain(b.Content))
			line, _ := json.Marshal(map[string]any{"tool_use_id": b.UseID, "error": tell.Clip(string(b.Content), maxToolText), "at": l.Timestamp})
			s.Errors.Write(append(line, '\n'))
		}
	}
}

func (s *Stream) result(at, id string, failed bool) {
	if s.Results == nil {
		s.Results = map[string]Result{}
	}
	if len(s.Results) < maxCalls {
		s.Results[id] = Result{At: at, Failed: failed}
	}
}

func (s *Stream) tool(at, name, id string, input json.RawMessage) {
	if len(s.Calls) < maxCalls {
		s.Calls = append(s.Calls, Call{Name: name, ID: id, At: at})
	}
	line, _ := json.Marshal(map[string]any{"tool": name, "id": id, "input": tell.Clip(string(input), maxToolText), "at": at})
	s.Tools.Write(append(line, '\n'))
	var in struct {
		Path  string          `json:"file_path"`
		Todos json.RawMessage `json:"todos"`
	}
	if json.Unmarshal(input, &in) != nil {
		return
	}
	if in.Path != "" {
		s.touched(in.Path)
	}
	if name == "TodoWrite" && len(in.Todos) > 0 {
		s.Plan = slices.Clone(in.Todos)
	}
}

// refusal is how what the guard says of a call begins, and alone how it goes on where nobody
// was asked, which who reads it afterwards knows.
const (
	refusal = "reprise guard: "
	alone   = ". Nobody is there to be asked"
)

func (s *Stream) refused(text string) {
	_, why, ok := strings.Cut(text, refusal)
	if !ok || s.Refused != "" {
		return
	}
	why, _, _ = strings.Cut(why, alone)
	s.Refused = tell.OneLine(why, maxRefused)
}

// maxRefused bounds what is kept of a refusal.
const maxRefused = 400

// Refusal is what the guard refused by the output alone: of how many calls it does not say.
func (s *Stream) Refusal() core.Refusal { return core.Refusal{What: s.Refused} }

// Refusals are the calls of a run that the guard refused, by what it has recorded: whether a client
// says it in its output differs from one to the next. dir is where events are; what cannot be read there is the error, beside
// what could.
func Refusals(dir string, r run.Record) (out core.Refusal, err error) {
	if dir == "" {
		return out, nil
	}
	seen := map[string]bool{}
	for e, bad := range event.OfRun(dir, r.ID, r.StartedAt.Add(-time.Hour)) {
		var d struct {
			ID     string `json:"use_id"`
			By     string `json:"by"`
			Name   string `json:"name"`
			Reason string `json:"reason"`
		}
		switch {
		case bad != nil:
			err = bad
		case e.Type != event.PermissionDecided || e.Outcome != "denied" || json.Unmarshal(e.Data, &d) != nil || d.By == "":
		case d.ID != "" && seen[d.ID]: // the client has asked about it once more
		default:
			seen[d.ID] = true
			if out.Calls++; out.What == "" {
				out.What = tell.OneLine(cmp.Or(d.Reason, d.Name), maxRefused)
			}
		}
	}
	return out, err
}

// plain is the text of what came back from a tool: a string, or blocks of which some are text.
func plain(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &blocks) // what is neither says nothing
	for _, b := range blocks {
		text += b.Text + "\n"
	}
	return text
}

// touched keeps which files were named last.
func (s *Stream) touched(file string) {
	s.Files = append(slices.DeleteFunc(s.Files, func(f string) bool { return f == file }), file)
	if n := len(s.Files); n > keepFiles {
		s.Files = s.Files[n-keepFiles:]
	}
}

// other takes what a line of Codex, Gemini CLI or Copilot CLI tells.
func (s *Stream) other(l agent.Said) {
	if l.Text != "" {
		if n := len(s.Messages); l.More && s.more && n > 0 {
			s.Messages[n-1] = tell.Clip(s.Messages[n-1]+l.Text, 4000)
		} else if s.Messages = append(s.Messages, tell.Clip(l.Text, 4000)); n+1 > KeepLast {
			s.Messages = s.Messages[n+1-KeepLast:]
		}
	}
	s.more = l.More
	if l.Tool != "" {
		s.tool(l.At, l.Tool, l.ID, json.RawMessage(l.Input))
		for _, f := range l.Files {
			s.touched(f)
		}
	}
	if l.Back {
		s.result(l.At, l.ID, l.Failed)
	}
	if l.Error != "" {
		s.refused(l.Error)
		line, _ := json.Marshal(map[string]any{"tool_use_id": l.ID, "error": tell.Clip(l.Error, maxToolText), "at": l.At})
		s.Errors.Write(append(line, '\n'))
	}
}
