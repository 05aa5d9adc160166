package logfile

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A Line is one line of the log, as far as a person asks for it.
type Line struct {
	Time  string `json:"ts"`
	Level string `json:"level"`
	Msg   string `json:"msg"`
	Text  string `json:"-"` // the whole line
}

// Tail are the last n lines of the log at path whose level keep says yes to, oldest
// first. Only the end of the file is read, as by Check; lines that are no JSON objects
// have no level and no text but their own. No log is no lines.
func Tail(path string, n int, keep func(level string) bool) ([]Line, error) {
	var out []Line
	_, err := eachLine(path, func(line []byte) {
		l := Line{Text: strings.TrimRight(string(line), "\r\n")}
		if json.Unmarshal(line, &l) != nil {
			l = Line{Text: l.Text} // half of it may have been understood
		}
		if keep(l.Level) {
			out = append(out, l)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	return out[max(0, len(out)-max(0, n)):], nil
}
