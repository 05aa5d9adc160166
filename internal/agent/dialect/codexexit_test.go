package dialect

import (
	"strings"
	"testing"
)

func TestCodexExit(t *testing.T) {
	line := func(id, code string) string {
		return `{"timestamp":"2026-11-28T07:01:47.974Z","ordinal":13,"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"` + id +
			`","command":["/bin/bash","-lc","x"],"status":"failed","aggregated_output":"\"id\":\"call_9\" \"exit_code\":7","exit_code":` + code + `,"duration":{"secs":0}}}}` + "\n"
	}
	other := `{"type":"response_item","payload":{"type":"function_call","name":"exec_command","call_id":"call_1","arguments":"{\"type\":\"CommandExecution\",\"id\":\"call_1\",\"exit_code\":3}"}}` + "\n"
	for name, tc := range map[string]struct {
		tail, id string
		code     int
		ok       bool
	}{
		"the line":            {line("call_1", "2") + other, "call_1", 2, true},
		"of several the last": {line("call_1", "2") + line("call_1", "0") + line("call_2", "5"), "call_1", 0, true},
		"signal":              {line("call_1", "-1"), "call_1", -1, true},
		"no line yet":         {other, "call_1", 0, false},
		"not ended":           {line("call_1", "null"), "call_1", 0, false},
		"cut":                 {line("call_1", "2")[160:], "call_1", 0, false},
		"id in an output":     {line("call_1", "2"), "call_9", 0, false},
		"no id":               {line("", "2"), "", 0, false},
		"nothing":             {"", "call_1", 0, false},
		"no newline":          {strings.TrimSuffix(line("call_1", "2"), "\n"), "call_1", 2, true},
	} {
		if code, ok := CodexExit([]byte(tc.tail), tc.id); code != tc.code || ok != tc.ok {
			t.Errorf("%s: %d %v", name, code, ok)
		}
	}
}

func TestExited(t *testing.T) {
	e := Event{Kind: ToolAfter}
	if e.Exited(2); e.Kind != ToolFailed || e.Error != "exit code 2" || *e.ExitCode != 2 {
		t.Errorf("%+v", e)
	}
	e = Event{Kind: ToolFailed, Error: "looked like one"}
	if e.Exited(0); e.Kind != ToolAfter || e.Error != "" || *e.ExitCode != 0 {
		t.Errorf("%+v", e)
	}
	if e.Exited(3); *e.ExitCode != 0 {
		t.Error("what the payload says was overwritten")
	}
	e = Event{Kind: ToolBefore}
	if e.Exited(1); e.Kind != ToolBefore {
		t.Errorf("%+v", e)
	}
}

func FuzzCodexExit(f *testing.F) {
	f.Add([]byte(`{"type":"CommandExecution","id":"a","exit_code":1}`), "a")
	f.Fuzz(func(t *testing.T, tail []byte, id string) { CodexExit(tail, id) })
}
