package hookmain

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/clip"
	"reprise/internal/durable"
	"reprise/internal/event/quick"
	"reprise/internal/redact/suspect"
)

// logPatience bounds the wait for the log's lock: a log must not stand in the
// way of what it records.
const logPatience = 200 * time.Millisecond

// warn writes a line of reprise's own log, in the form that package logfile
// has, and to standard error where that cannot be and is no answer. Nothing is turned over here:
// the next line of the full program sees to that.
func (p *program) warn(what string, err error) {
	text := safe(err.Error())
	line := p.env.Now().UTC().AppendFormat([]byte(`{"ts":"`), "2006-01-02T15:04:05.000Z")
	line = quick.AppendString(append(line, `","level":"warn","msg":`...), "hook: "+what)
	line = strconv.AppendInt(append(line, `,"pid":`...), int64(os.Getpid()), 10)
	line = quick.AppendString(append(line, `,"client":`...), safe(clip.Head(p.client, 80)))
	line = quick.AppendString(append(line, `,"event":`...), safe(clip.Head(p.event, 80)))
	line = quick.AppendString(append(line, `,"error":`...), text)
	line = append(line, "}\n"...)
	file, why := p.logFile(), ""
	if file != "" {
		err := durable.Disk{}.MkdirAll(filepath.Dir(file), 0o700)
		if err == nil {
			err = durable.Disk{}.Append(quick.Within(time.Now, logPatience), file, line, 0o600)
		}
		if err == nil {
			return
		}
		why = " (nor can reprise's log be written: " + safe(err.Error()) + ")" // most often the reason of all
	}
	if dialect.ReadsStderr(p.client) {
		return
	}
	_, _ = os.Stderr.WriteString("reprise-hook: " + what + ": " + text + why + "\n") // nowhere is left to say that this failed
}

func (p *program) logFile() string {
	switch {
	case p.plan != nil:
		return p.plan.Log
	case p.dirs.State != "":
		return filepath.Join(p.dirs.State, "log", "reprise.log")
	}
	return ""
}

// safe leaves out what may hold a secret: there is nobody here who can tell.
func safe(text string) string {
	if suspect.Named("", text) {
		return "(left out: it may hold a secret)"
	}
	return text
}
