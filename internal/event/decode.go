package event

import (
	"encoding/json"
	"fmt"
	"strconv"

	"reprise/internal/event/quick"
)

// decode reads a line without reflection: a log is read from its beginning
// whenever what is derived from it is made again, at some microseconds a line.
// Fields that it does not know are left out.
func (e *Event) decode(line string) error {
	return quick.Members(line, func(name, raw string) error {
		if raw == "null" {
			return nil
		}
		var err error
		switch name {
		case "v":
			e.V, err = strconv.Atoi(raw)
		case "id":
			e.ID, err = quick.Unquote(raw)
		case "ts":
			err = e.TS.UnmarshalJSON([]byte(raw))
		case "scope":
			var s string
			s, err = quick.Unquote(raw)
			e.Scope = Scope(s)
		case "project":
			e.Project, err = quick.Unquote(raw)
		case "session":
			e.Session, err = quick.Unquote(raw)
		case "run":
			e.Run, err = quick.Unquote(raw)
		case "client":
			e.Client, err = quick.Unquote(raw)
		case "agent":
			e.Agent, err = quick.Unquote(raw)
		case "role":
			e.Role, err = quick.Unquote(raw)
		case "task":
			e.Task, err = quick.Unquote(raw)
		case "parent":
			e.Parent, err = quick.Unquote(raw)
		case "type":
			var s string
			s, err = quick.Unquote(raw)
			e.Type = Type(s)
		case "data":
			e.Data = json.RawMessage(raw)
		case "outcome":
			e.Outcome, err = quick.Unquote(raw)
		case "importance":
			e.Importance, err = strconv.ParseFloat(raw, 64)
		case "evidence":
			e.Evidence, err = texts(raw)
		case "acl":
			e.ACL, err = texts(raw)
		case "cut":
			err = json.Unmarshal([]byte(raw), &e.Cut)
		case "prev":
			e.Prev, err = quick.Unquote(raw)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

func texts(raw string) ([]string, error) {
	var out []string
	err := quick.Elements(raw, func(raw string) error {
		s, err := quick.Unquote(raw)
		out = append(out, s)
		return err
	})
	return out, err
}
