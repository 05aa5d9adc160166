// Package output makes of what a run's client wrote what people read on a page: texts,
// tools with their inputs and answers, errors, without the secrets among them.
//
// It owns no file, writes none and takes no lock.
package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"reprise/internal/agent"
	"reprise/internal/durable"
	"reprise/internal/redact"
	"reprise/internal/run"
)

const (
	// Window is how much of a run's output a page shows, in bytes of the stream.
	Window   = 512 << 10
	maxShown = 4 << 10 // of a tool's input or answer, in bytes
	maxSaid  = 64 << 10
)

// Said is one thing that a run's output tells.
type Said struct {
	Kind string // text, tool, answer, failed, error, line
	Name string // of a tool
	Text string
	Cut  bool
}

// Piece is a part of an output that begins and ends at line ends.
type Piece struct {
	From, To int64 // bytes from the beginning of the file
	Size     int64 // of the file
	Said     []Said
}

// Later says that there is more after the piece.
func (p Piece) Later() bool { return p.To < p.Size }

var secrets = sync.OnceValue(redact.New)

// Hide takes secrets out of what a page shows of a run's own files, which hold what an
// agent was given and wrote as it was.
func Hide(s string) string {
	s, _ = secrets().String(s)
	return s
}

// openFile opens what a run's client wrote. The agent can write in its run's
// directory: only a regular file within it is opened. nil means that there is none yet.
func openFile(r run.Record, name string) (io.ReadSeekCloser, error) {
	d, err := durable.OpenDir(r.Dir())
	if err != nil {
		return nil, fmt.Errorf("read the output of %s: %w", r.ID, err)
	}
	defer d.Close()
	f, err := d.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the output of %s: %w", r.ID, err)
	}
	return f, nil
}

// Read reads about a window of a run's output, from an offset at which a line
// begins, or the last window where from is negative. With ended a last line without
// its end counts.
func Read(r run.Record, from int64, ended bool) (Piece, error) {
	f, err := openFile(r, filepath.Base(r.Logs.Stdout))
	if err != nil || f == nil {
		return Piece{}, err
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return Piece{}, fmt.Errorf("read the output of %s: %w", r.ID, err)
	}
	p := Piece{From: from, Size: end}
	middle := false
	if from < 0 {
		p.From = max(0, end-Window)
		middle = p.From > 0
	}
	p.From = min(p.From, end)
	if _, err := f.Seek(p.From, io.SeekStart); err != nil {
		return Piece{}, fmt.Errorf("read the output of %s: %w", r.ID, err)
	}
	data, err := io.ReadAll(io.LimitReader(f, Window))
	if err != nil {
		return Piece{}, fmt.Errorf("read the output of %s: %w", r.ID, err)
	}
	if middle {
		skip := bytes.IndexByte(data, '\n') + 1
		data, p.From = data[skip:], p.From+int64(skip)
	}
	atEnd := p.From+int64(len(data)) >= end
	whole := bytes.LastIndexByte(data, '\n') + 1
	switch {
	case atEnd && ended:
		whole = len(data)
	case whole == 0 && len(data) >= Window:
		whole = len(data) // a line longer than a window is shown in parts, and makes no sense as JSON
	}
	p.To = p.From + int64(whole)
	p.Said = Of(r.Client, data[:whole])
	return p, nil
}

// Of is what people read of a client's lines.
func Of(client string, text []byte) []Said {
	var lines lineReader
	for line := range bytes.Lines(text) {
		lines.add(client, bytes.TrimRight(line, "\r\n"))
	}
	for i := range lines.said {
		lines.said[i].Text = Hide(lines.said[i].Text)
	}
	return lines.said
}

// lineReader makes of a client's lines what people read.
type lineReader struct {
	said []Said
	more bool
}

func (o *lineReader) put(s Said) {
	if in := strings.TrimSpace(s.Text); s.Kind == "tool" && (in == "{}" || in == "null") {
		s.Text = "" // a tool that takes nothing
	}
	most := maxShown
	if s.Kind == "text" {
		most = maxSaid
	}
	if len(s.Text) > most {
		s.Text, s.Cut = strings.ToValidUTF8(s.Text[:most], ""), true
	}
	o.said = append(o.said, s)
}

func (o *lineReader) add(client string, line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	switch client {
	case agent.KindCodex, agent.KindGemini, agent.KindCopilot:
		if json.Valid(line) {
			o.other(agent.ReadLine(client, line))
			return
		}
	}
	o.claude(line)
}

func (o *lineReader) other(l agent.Said) {
	if l.Text != "" {
		if n := len(o.said); l.More && o.more && n > 0 && o.said[n-1].Kind == "text" && len(o.said[n-1].Text) < maxSaid {
			o.said[n-1].Text += l.Text
		} else {
			o.put(Said{Kind: "text", Text: l.Text})
		}
	}
	o.more = l.More
	if l.Tool != "" {
		o.put(Said{Kind: "tool", Name: l.Tool, Text: l.Input})
	}
	switch {
	case l.Back && l.Failed:
		o.put(Said{Kind: "failed", Text: l.Error})
	case l.Error != "":
		o.put(Said{Kind: "error", Text: l.Error})
	}
}

// claude reads a line as Claude Code and the scripted client write it; what is no such
// line is shown as it is.
func (o *lineReader) claude(line []byte) {
	var l struct {
		Type    string `json:"type"`
		Subtype string `json:"subtype"`
		IsError bool   `json:"is_error"`
		Result  string `json:"result"`
		Error   string `json:"error"`
		Tool    string `json:"tool_name"`
		Said    string `json:"message_text"`
		Message struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if err := json.Unmarshal(line, &l); err != nil || l.Type == "" {
		if !json.Valid(line) {
			o.put(Said{Kind: "line", Text: string(line)})
		}
		return
	}
	switch {
	case l.Type == "result" && l.IsError:
		o.put(Said{Kind: "error", Text: l.Result})
	case l.Type == "system" && l.Subtype == "api_retry":
		o.put(Said{Kind: "error", Text: "the client asks the model again: " + l.Error})
	case l.Type == "system" && l.Subtype == "permission_denied":
		o.put(Said{Kind: "error", Text: "not permitted: " + l.Tool})
	}
	var text string
	if json.Unmarshal(l.Message.Content, &text) == nil {
		if text != "" && l.Type == "assistant" {
			o.put(Said{Kind: "text", Text: text})
		}
		return
	}
	var blocks []struct {
		Type    string          `json:"type"`
		Text    string          `json:"text"`
		Name    string          `json:"name"`
		Input   json.RawMessage `json:"input"`
		IsError bool            `json:"is_error"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(l.Message.Content, &blocks) != nil {
		return
	}
	for _, b := range blocks {
		switch {
		case b.Type == "text" && l.Type == "assistant" && strings.TrimSpace(b.Text) != "":
			o.put(Said{Kind: "text", Text: b.Text})
		case b.Type == "tool_use" || b.Type == "server_tool_use" || b.Type == "mcp_tool_use":
			o.put(Said{Kind: "tool", Name: b.Name, Text: inputText(b.Input)})
		case b.Type == "tool_result":
			kind := "answer"
			if b.IsError {
				kind = "failed"
			}
			o.put(Said{Kind: kind, Text: contentText(b.Content)})
		}
	}
}

// inputText is a tool's input as people read it: of one with a single text that text,
// else JSON.
func inputText(raw json.RawMessage) string {
	var m map[string]any
	if json.Unmarshal(raw, &m) == nil {
		if s, ok := m["command"].(string); ok {
			return s
		}
		if s, ok := m["file_path"].(string); ok && len(m) == 1 {
			return s
		}
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") == nil {
		return b.String()
	}
	return string(raw)
}

// contentText is the text of a tool's answer: one text, or those of a list.
func contentText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var list []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return string(raw)
	}
	var parts []string
	for _, p := range list {
		if p.Text != "" {
			parts = append(parts, p.Text)
		}
	}
	return strings.Join(parts, "\n")
}
