package logfile

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reprise/internal/durable"
)

// LostMessage is the msg of the line that says that lines could not be written.
const LostMessage = "log lines lost"

// Health is what a look at the log's file tells.
type Health struct {
	Exists bool
	Bytes  int64
	Lines  int // of those looked at
	Bad    int // lines that are not JSON objects
	Errors int // lines of level error
	Lost   int // lines that LostMessage lines say could not be written
}

// tailBytes is how much of the log's end is read.
const tailBytes = 4 << 20

// Check looks at the end of the log at path. It writes nothing.
func Check(path string) (Health, error) {
	var h Health
	info, err := eachLine(path, h.count)
	if info != nil {
		h.Exists, h.Bytes = true, info.Size()
	}
	if err != nil {
		return h, fmt.Errorf("check log: %w", err)
	}
	return h, nil
}

// eachLine calls look with each whole line of the file's last tailBytes. No file is
// no lines, and no info.
func eachLine(path string, look func(line []byte)) (fs.FileInfo, error) {
	f, err := durable.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	start := max(info.Size()-tailBytes, 0)
	r := bufio.NewReaderSize(io.NewSectionReader(f, start, info.Size()-start), 64<<10)
	if start > 0 {
		if _, err := r.ReadBytes('\n'); err != nil { // the rest of a line
			return info, nil
		}
	}
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			look(line)
		}
		if errors.Is(err, io.EOF) {
			return info, nil
		}
		if err != nil {
			return info, err
		}
	}
}

func (h *Health) count(line []byte) {
	h.Lines++
	var l struct {
		TS    string `json:"ts"`
		Level string `json:"level"`
		Msg   string `json:"msg"`
		Lines int    `json:"lines"`
	}
	if json.Unmarshal(line, &l) != nil || l.TS == "" {
		// "lines" may have another type in somebody's own field.
		var any map[string]json.RawMessage
		if json.Unmarshal(line, &any) != nil || any["ts"] == nil {
			h.Bad++
			return
		}
	}
	if l.Level == "error" {
		h.Errors++
	}
	if l.Msg == LostMessage {
		h.Lost += l.Lines
	}
}
