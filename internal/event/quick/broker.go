package quick

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"reprise/internal/clip"
	"reprise/internal/durable"
	"reprise/internal/redact/suspect"
)

// Broker takes events from everyone and sees to what holds for all of them:
// names in one spelling, the log that an event belongs to, and the outbox for
// what cannot be written at the moment. It is safe for use by several
// goroutines.
type Broker struct {
	// Events is the directory of a project's log, or with "" of the global one.
	Events func(project string) string
	// Outbox is the directory of events that could not be written; "" is none.
	Outbox string
	Host   string // as [HostName] makes it
	Now    func() time.Time
	Disk   durable.Disk
	IDs    IDs
	// Withhold, Mark and Back are those of [Log].
	Withhold bool
	Mark     string
	Back     func(before, now time.Time)
}

// Log is the log that a normalised event belongs to.
func (b *Broker) Log(e *Event) *Log {
	project := e.Project
	if e.Scope == "global" {
		project = ""
	}
	return &Log{Dir: b.Events(project), Host: b.Host, Now: b.Now, Disk: b.Disk, Withhold: b.Withhold, Mark: b.Mark, Back: b.Back}
}

// Record normalises an event, appends it to its log and, where that cannot be
// done, puts it into the outbox; pending says that it stands there. It refuses
// what [Log.Append] refuses.
func (b *Broker) Record(ctx context.Context, e *Event, sync bool) (pending bool, err error) {
	if err := b.Prepare(e); err != nil {
		return false, err
	}
	l := b.Log(e)
	line, err := l.Line(e)
	if err != nil {
		return false, err
	}
	return b.Add(ctx, l, e, line, sync)
}

// RecordAll is [Broker.Record] of what belongs together, in order: one lock and one
// write where all of it goes to one file, for each costs the agent that waits.
// When it is refused, nothing of it is recorded.
func (b *Broker) RecordAll(ctx context.Context, events []Event, sync bool) (pending bool, err error) {
	lines := make([][]byte, len(events))
	for i := range events {
		e := &events[i]
		if err := b.Prepare(e); err != nil {
			return false, err
		}
		if lines[i], err = b.Log(e).Line(e); err != nil {
			return false, err
		}
	}
	for i, n := 0, 0; i < len(events); i += n {
		l := b.Log(&events[i])
		file := l.File(events[i].TS)
		for n = 1; i+n < len(events); n++ {
			if e := &events[i+n]; b.Log(e).File(e.TS) != file {
				break
			}
		}
		aside, aerr := b.addAll(ctx, l, events[i:i+n], lines[i:i+n], sync)
		pending = pending || aside
		err = errors.Join(err, aerr)
	}
	return pending, err
}

// addAll is [Broker.Add] for lines of one file.
func (b *Broker) addAll(ctx context.Context, l *Log, events []Event, lines [][]byte, sync bool) (pending bool, err error) {
	err = l.AddAll(ctx, events[0].TS, sync, lines)
	if err == nil || b.Outbox == "" {
		return false, err
	}
	for i := range events {
		if perr := b.Put(l, &events[i], lines[i], err); perr != nil {
			return pending, errors.Join(err, perr)
		}
		pending = true
	}
	return true, nil
}

// Prepare normalises an event and fills in what it left empty.
func (b *Broker) Prepare(e *Event) error {
	if e.TS.IsZero() {
		e.TS = b.Now()
	}
	e.TS = e.TS.UTC().Round(0)
	if y := e.TS.Year(); y < 1970 || y > 9999 {
		return invalid("its time is in the year " + strconv.Itoa(y))
	}
	if e.ID == "" {
		e.ID = b.IDs.Next(e.TS)
	}
	if b.Back != nil {
		if before, ok := backBeyond(e); ok {
			b.Back(before, e.TS)
		}
	}
	return Normalise(e)
}

// Add appends a line to its log, and where that cannot be done, puts it into
// the outbox.
func (b *Broker) Add(ctx context.Context, l *Log, e *Event, line []byte, sync bool) (pending bool, err error) {
	if err = l.Add(ctx, e.TS, line, sync); err == nil || b.Outbox == "" {
		return false, err
	}
	if perr := b.Put(l, e, line, err); perr != nil {
		return false, errors.Join(err, perr)
	}
	return true, nil
}

// Put keeps an event in the outbox: the event, the file that it was meant for,
// and why it is not there, as far as one can tell: it is looked for before it is
// added. It is a file of its own, and where none can be made a line of the
// reserve.
func (b *Broker) Put(l *Log, e *Event, line []byte, why error) error {
	out := append(make([]byte, 0, len(line)+512), `{"v":1,"file":`...)
	out = AppendString(out, FileName(e.TS, l.Host))
	out = AppendString(append(out, `,"at":`...), b.Now().UTC().Format(time.RFC3339))
	text := why.Error()
	if suspect.String(text) { // the names of directories are in it
		text = Withheld
	}
	out = AppendString(append(out, `,"why":`...), text[:min(len(text), 500)])
	out = append(out, `,"event":`...)
	out = append(append(out, line...), `,"prev":""}}`+"\n"...)
	err := b.Disk.MkdirAll(b.Outbox, 0o700)
	if err == nil {
		err = b.Disk.WriteFile(b.file(e.ID), out, 0o600)
	}
	if err == nil {
		return nil
	}
	if rerr := b.reserve(out); rerr != nil {
		return errors.Join(err, rerr)
	}
	return nil
}

func (b *Broker) file(id string) string { return filepath.Join(b.Outbox, id+".json") }

// Waits reports whether the event of that id is in the outbox.
func (b *Broker) Waits(id string) bool {
	_, err := os.Lstat(b.file(id))
	return err == nil
}

// Normalise gives an event's names the spelling that everyone uses, its scope
// what it can be, and its ACL an order. Outside any project everything is
// recorded globally.
func Normalise(e *Event) error {
	e.Project = strings.TrimSpace(e.Project)
	if e.Project != "" && (durable.CheckName(e.Project) != nil || e.Project == "." || strings.ContainsRune(e.Project, '/')) {
		return invalid("project " + strconv.Quote(clip.Head(e.Project, 80)) + " cannot name a directory")
	}
	switch {
	case e.Scope == "":
		e.Scope = Narrowest(e.Session, e.Project)
	case e.Scope == "project" && e.Project == "":
		e.Scope = "global"
	case e.Scope == "session" && e.Session == "":
		e.Scope = Narrowest("", e.Project)
	}
	e.Client, e.Agent, e.Role = Client(e.Client), strings.TrimSpace(e.Agent), Role(e.Role)
	e.Session, e.Run = strings.TrimSpace(e.Session), strings.TrimSpace(e.Run)
	acl := e.ACL
	e.ACL = nil
	for _, a := range acl {
		kind, name, ok := strings.Cut(strings.TrimSpace(a), ":")
		if kind, name = strings.ToLower(strings.TrimSpace(kind)), strings.TrimSpace(name); ok {
			switch kind {
			case "client":
				name = Client(name)
			case "role":
				name = Role(name)
			}
			a = kind + ":" + name
		} else {
			a = kind
		}
		known := false
		for _, have := range e.ACL {
			known = known || have == a
		}
		if !known {
			e.ACL = append(e.ACL, a)
		}
	}
	return nil
}

// fold is a name in small letters, without what is around it. One that may hold
// a secret keeps its letters: the rules have to know it when they see it.
func fold(name string) string {
	name = strings.TrimSpace(name)
	for i := range len(name) { // most are folded already
		if c := name[i]; c >= 'A' && c <= 'Z' || c >= 0x80 {
			if suspect.String(name) {
				return name
			}
			return strings.ToLower(name)
		}
	}
	return name
}

// Client is a client's name as everyone writes it.
func Client(name string) string {
	name = fold(name)
	switch name {
	case "claude-code", "claude_code", "claudecode", "claude code":
		return "claude"
	case "codex-cli", "openai-codex":
		return "codex"
	case "gemini-cli":
		return "gemini"
	case "copilot-cli", "github-copilot", "github-copilot-cli":
		return "copilot"
	}
	return name
}

// Role is a role's name as everyone writes it: section-leader and its like.
func Role(name string) string {
	name = fold(name)
	if strings.ContainsAny(name, " _") && !suspect.String(name) {
		name = strings.NewReplacer(" ", "-", "_", "-").Replace(name)
	}
	return name
}

// Synced reports whether an event of that type is worth the wait for the disk.
// Those of single tool calls are not: there are hundreds a session, each in the
// way of the agent, and they survive everything but a power cut as they are.
func Synced(typ string) bool {
	switch typ {
	case "tool.called", "tool.succeeded", "tool.failed", "permission.asked", "permission.decided":
		return false
	}
	return true
}
