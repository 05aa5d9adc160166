package fakemodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// pieceBytes is about how much text one streamed delta carries.
const pieceBytes = 48

const midwayText = "the fake model was told to fail midway"

// wire is how one API says what a Request and an Answer hold.
type wire interface {
	name() string
	// parse fills in the request from its body.
	parse(*Request) error
	// whole is the answer without streaming, frames the same as a stream.
	whole(*Request, Answer) any
	frames(*Request, Answer) []frame
	// midway is what a stream says when it fails after it began, end what
	// follows its last frame ("" for nothing).
	midway(kind string) frame
	end() string
	failure(Failure) any
}

// frame is one server-sent event.
type frame struct {
	event string // "" in the APIs that do not name their events
	data  any
	piece bool // a bit of the answer: paced, and where a stream may fail midway
}

func (u Usage) orDefault() Usage {
	if u.Input == 0 && u.Output == 0 {
		u.Input, u.Output = 100, 20
	}
	return u
}

func (f Failure) text() string {
	if f.Message != "" {
		return f.Message
	}
	kind := f.Type
	if kind == "" {
		kind = errorType(f.Status)
	}
	return "the fake model was told to fail with " + kind
}

// callID names the i-th call of an answer. It is made from the request's number,
// so that a log reads the same in each run.
func callID(prefix string, q *Request, i int) string {
	return fmt.Sprintf("%s_fake%04d%02d", prefix, q.N, i)
}

// encode is a value as JSON in a string. Values come from JSON or from test
// code: one that cannot be encoded must show.
func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return `{"fakemodel":"input could not be encoded"}`
	}
	return string(data)
}

// ShellTool in a call stands for the client's own shell tool. Its input is
// {"command": …}, which becomes what that tool takes.
const ShellTool = "(shell)"

// Shell is a call of the client's shell tool, whatever the client calls it.
func Shell(command string) Call {
	return Call{Tool: ShellTool, Input: map[string]any{"command": command}}
}

// shellTools are the clients' shell tools and the name of their parameter.
func shellTools() [][2]string {
	return [][2]string{
		{"Bash", "command"}, {"exec_command", "cmd"}, {"shell_command", "command"},
		{"run_shell_command", "command"}, {"bash", "command"}, {"powershell", "command"},
	}
}

// resolve puts the client's own tool in the place of ShellTool. Where the
// client offers none, the name stays and the client will say that it is unknown.
func (a Answer) resolve(q *Request) Answer {
	a.Calls = slices.Clone(a.Calls)
	for i, c := range a.Calls {
		if c.Tool != ShellTool {
			continue
		}
		for _, t := range shellTools() {
			if q.Offers(t[0]) {
				input := map[string]any{t[1]: c.Input["command"]}
				if t[1] == "command" && t[0] != "shell_command" {
					input["description"] = "a command of the fake model"
				}
				a.Calls[i] = Call{Tool: t[0], Input: input}
				break
			}
		}
	}
	return a
}

func joinText(blocks []Block, kind string) string {
	var parts []string
	for _, b := range blocks {
		if b.Type == kind {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// pieces cuts text into parts of about pieceBytes, never inside a rune.
func pieces(s string) []string {
	var out []string
	for len(s) > pieceBytes {
		n := pieceBytes
		for n > 1 && !utf8.RuneStart(s[n]) {
			n--
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return append(out, s)
}

func (m *Model) stream(w http.ResponseWriter, r *http.Request, q *Request, a Answer, api wire) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	flush := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	for i, e := range api.frames(q, a) {
		if a.CutAfter > 0 && i >= a.CutAfter {
			panic(http.ErrAbortHandler)
		}
		if e.piece && a.PaceMS > 0 && !m.wait(r.Context(), ms(a.PaceMS)) {
			panic(http.ErrAbortHandler)
		}
		if err := e.send(w); err != nil {
			return // the caller has left
		}
		if err := flush.Flush(); err != nil {
			return
		}
		if e.piece && a.FailMidway != "" {
			_ = api.midway(a.FailMidway).send(w)
			return
		}
	}
	if end := api.end(); end != "" {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", end) // the caller may have left
	}
}

func (e frame) send(w http.ResponseWriter) error {
	data, err := json.Marshal(e.data)
	if err != nil {
		return err
	}
	if e.event != "" {
		data = append([]byte("event: "+e.event+"\ndata: "), data...)
	} else {
		data = append([]byte("data: "), data...)
	}
	_, err = w.Write(append(data, "\n\n"...))
	return err
}
