package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"reprise/internal/agent/dialect"
	"reprise/internal/shellword"
)

// HookClients are the clients whose hooks reprise can be put behind.
func HookClients() []string { return []string{"claude-code", "codex", "gemini", "copilot"} }

// hookTimeout is how long a client waits for a hook of ours, in seconds. It is
// a last resort, well above the hook program's own deadline for the event: a
// client that cuts a hook off lets the tool run.
func hookTimeout(client, event string) int {
	word := hookWord(client)
	if ms := dialect.GateMS(word, event); ms > 0 {
		return ms/1000 + 15
	}
	if dialect.Judged(word, event) {
		// The guard may let a call wait for a person until shortly before the time
		// that the client grants of itself, so a shorter one must not be written.
		return max(10, (dialect.ClientMS(word, event)+999)/1000)
	}
	if ms := dialect.ClientMS(word, event); client == "codex" && ms > 0 && ms < 10_000 {
		return ms / 1000 // it takes no longer one, and complains of it at each start
	}
	return max(10, dialect.DeadlineMS(word, event)/1000+8)
}

// hookSpec is one hook that is put into a client.
type hookSpec struct {
	event string
	tools bool // it has a matcher, which is set to all tools
}

// hookSpecs are the events that reprise listens to, in the order in which a
// session has them. Events that say nothing beyond these (message deltas, model
// requests, batches) are left out: each costs a process.
func hookSpecs(client string) []hookSpec {
	switch client {
	case "claude-code":
		return []hookSpec{
			{event: "SessionStart"}, {event: "UserPromptSubmit"}, {event: "PreToolUse", tools: true},
			{event: "PermissionRequest", tools: true}, {event: "PermissionDenied", tools: true},
			{event: "PostToolUse", tools: true}, {event: "PostToolUseFailure", tools: true},
			{event: "SubagentStart"}, {event: "SubagentStop"}, {event: "PreCompact"}, {event: "PostCompact"},
			{event: "Stop"}, {event: "StopFailure"}, {event: "SessionEnd"},
		}
	case "codex":
		return []hookSpec{
			{event: "SessionStart"}, {event: "UserPromptSubmit"}, {event: "PreToolUse", tools: true},
			{event: "PermissionRequest", tools: true}, {event: "PostToolUse", tools: true},
			{event: "SubagentStart"}, {event: "SubagentStop"}, {event: "PreCompact"}, {event: "PostCompact"},
			{event: "Stop"}, {event: "Interrupt"}, {event: "SessionEnd"},
		}
	case "gemini":
		return []hookSpec{
			{event: "SessionStart"}, {event: "BeforeAgent"}, {event: "BeforeTool", tools: true},
			{event: "AfterTool", tools: true}, {event: "AfterAgent"}, {event: "SessionEnd"},
		}
	case "copilot":
		return []hookSpec{
			{event: "sessionStart"}, {event: "userPromptSubmitted"}, {event: "preToolUse"}, {event: "permissionRequest"},
			{event: "postToolUse"}, {event: "postToolUseFailure"}, {event: "subagentStart"}, {event: "subagentStop"},
			{event: "preCompact"}, {event: "errorOccurred"}, {event: "agentStop"}, {event: "sessionEnd"},
		}
	}
	return nil
}

// HookEvents are the names of the events that reprise listens to in a client.
func HookEvents(client string) []string {
	var out []string
	for _, s := range hookSpecs(client) {
		out = append(out, s.event)
	}
	return out
}

// HookFile is where a client's hooks of a scope are set; "" where the client
// has no hooks, or none of that scope.
func (w Where) HookFile(client, scope string) (string, error) {
	if scope == Project {
		switch client {
		case "claude-code":
			return filepath.Join(w.Root, ".claude", "settings.json"), nil
		case "codex":
			return filepath.Join(w.Root, ".codex", "hooks.json"), nil
		case "gemini":
			return filepath.Join(w.Root, ".gemini", "settings.json"), nil
		case "copilot":
			return filepath.Join(w.Root, ".github", "hooks", "reprise.json"), nil
		}
		return "", nil
	}
	dir, err := w.Env.ClientDir(client)
	if err != nil {
		return "", err
	}
	switch client {
	case "claude-code", "gemini":
		return filepath.Join(dir, "settings.json"), nil
	case "codex":
		return filepath.Join(dir, "hooks.json"), nil
	case "copilot":
		return filepath.Join(dir, "hooks", "reprise.json"), nil
	}
	return "", nil
}

// hookWord is the client's name on the hook program's command line.
func hookWord(client string) string { return strings.TrimSuffix(client, "-code") }

// HookCommand is what a client runs for an event. Where the same stands in the
// user's settings and in those of a run, the client starts it once.
func (s Setup) HookCommand(program, client, event string) string {
	return s.hookCommand(program, client, event)
}

// hookCommand is what a client runs for an event: through a POSIX shell, on
// Windows through whatever the client takes. The variables that say where
// reprise's files are go along, as in [Setup.Server].
func (s Setup) hookCommand(program, client, event string) string {
	var b strings.Builder
	if s.Env.GOOS == "windows" {
		b.WriteString(`"` + strings.ReplaceAll(program, `\`, "/") + `"`)
	} else {
		for _, name := range carried {
			if v := s.Env.Get(name); v != "" {
				b.WriteString(name + "=" + shellword.Quote(v) + " ")
			}
		}
		b.WriteString(shellword.Quote(program))
	}
	return b.String() + " " + hookWord(client) + " " + event
}

// ownHook reports whether a hook's command runs the hook program for client,
// wherever that program is and whatever a user put before or after it. The name
// as a part of another word (a directory, another program's name) is not it.
func ownHook(command, client string) bool {
	if strings.Contains(command, `:\`) { // of Windows, where it escapes nothing
		command = strings.ReplaceAll(command, `\`, "/")
	}
	for rest := command; rest != ""; {
		var word string
		word, rest = firstWord(rest)
		name := strings.TrimSuffix(word[strings.LastIndexByte(word, '/')+1:], ".exe")
		if name != HookProgram || isVariable(word) {
			continue
		}
		if next, event := firstWord(rest); next == hookWord(client) && event != "" {
			return true
		}
	}
	return false
}

// isVariable reports whether a shell word sets a variable.
func isVariable(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && !strings.ContainsAny(name, `/\:`)
}

// hookEntry is one hook in the client's form, and group what stands around it.
func (s Setup) hookEntry(program, client string, spec hookSpec) (entry object) {
	command := s.hookCommand(program, client, spec.event)
	switch client {
	case "gemini":
		return object{{"name", Name}, {"type", "command"}, {"command", command}, {"timeout", hookTimeout(client, spec.event) * 1000}}
	case "copilot":
		entry = object{{"type", "command"}, {"bash", command}}
		if s.Env.GOOS == "windows" {
			entry = append(entry, member{"powershell", "& " + command})
		}
		return append(entry, member{"timeoutSec", hookTimeout(client, spec.event)})
	}
	return object{{"type", "command"}, {"command", command}, {"timeout", hookTimeout(client, spec.event)}}
}

func hookGroup(client string, spec hookSpec, entry object) any {
	if client == "copilot" {
		return entry
	}
	group := object{{"hooks", []any{entry}}}
	if spec.tools {
		group = append(object{{"matcher", "*"}}, group...)
	}
	return group
}

// place is where a hook of ours stands: in which element of the event's list,
// and in which of that element's hooks (-1 where elements are hooks).
type place struct{ group, hook int }

// findHook looks for our hook in an event's list.
func findHook(list *hujson.Array, client string) (place, *hujson.Value, bool) {
	command := func(v *hujson.Value) string {
		for _, key := range []string{"command", "bash", "powershell"} {
			if m := memberOf(v, key); m != nil {
				if lit, ok := m.Value.Value.(hujson.Literal); ok && lit.Kind() == '"' {
					return lit.String()
				}
			}
		}
		return ""
	}
	for i := range list.Elements {
		e := &list.Elements[i]
		if ownHook(command(e), client) {
			return place{i, -1}, e, true
		}
		m := memberOf(e, "hooks")
		if m == nil {
			continue
		}
		hooks, ok := m.Value.Value.(*hujson.Array)
		if !ok {
			continue
		}
		for j := range hooks.Elements {
			if h := &hooks.Elements[j]; ownHook(command(h), client) {
				return place{i, j}, h, true
			}
		}
	}
	return place{}, nil, false
}

// memberOf is the last member of an object with a name; nil when there is none.
func memberOf(v *hujson.Value, name string) *hujson.ObjectMember {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	for i := range slices.Backward(obj.Members) {
		if lit, ok := obj.Members[i].Name.Value.(hujson.Literal); ok && lit.String() == name {
			return &obj.Members[i]
		}
	}
	return nil
}

var errNotList = errors.New("not a list: make it [], or take it out, and try again")

// setHooks puts our hooks into a client's settings. did says what was made, by
// key of the note.
func (s Setup) setHooks(text []byte, program, client string, did map[string]made) ([]byte, error) {
	fresh := len(bytes.TrimSpace(text)) == 0
	orig := text
	if fresh {
		text = []byte("{}\n")
		if client == "copilot" {
			text = []byte("{\n  \"version\": 1\n}\n")
		}
	}
	for _, spec := range hookSpecs(client) {
		entry := s.hookEntry(program, client, spec)
		next, created, err := setHook(text, client, spec, entry)
		if err != nil {
			return nil, err
		}
		if created >= 0 {
			did[hookKey(spec.event)] = made{Empties: created}
		}
		text = next
	}
	if !fresh {
		if err := sameButHooks(orig, text, client); err != nil {
			return nil, err
		}
	}
	return text, nil
}

func hookKey(event string) string { return "hooks\x1f" + event }

// setHook puts one hook in. created is how many lists and objects around it were
// made; -1 where the hook was there already.
func setHook(text []byte, client string, spec hookSpec, entry object) (out []byte, created int, err error) {
	f, err := parseJSONFile(text)
	if err != nil {
		return nil, 0, err
	}
	path := []string{"hooks", spec.event}
	m, _, depth, err := f.find(path)
	if err != nil {
		return nil, 0, err
	}
	group := hookGroup(client, spec, entry)
	if depth < len(path) {
		out, created, err = setJSON(text, path, []any{group})
		return out, created + 1, err
	}
	list, ok := m.Value.Value.(*hujson.Array)
	if !ok {
		line, col := lineCol(text, m.Value.StartOffset)
		return nil, 0, fmt.Errorf("line %d, column %d: %q is %w", line, col, strings.Join(path, "."), errNotList)
	}
	_, have, ok := findHook(list, client)
	if !ok {
		return f.insert(&m.Value, "", group), 0, nil
	}
	if sameJSON(have, entry) {
		return text, -1, nil
	}
	st, _ := f.layout(have)
	outer, _ := f.lineIndent(have.StartOffset)
	return splice(text, have.StartOffset, have.EndOffset, render(entry, st, outer)), -1, nil
}

// removeHooks takes our hooks out. keys are the note's keys of those that were
// there.
func removeHooks(text []byte, client string, n *note) (out []byte, keys []string, err error) {
	out = text
	if len(bytes.TrimSpace(text)) == 0 {
		return text, nil, nil
	}
	for _, event := range slices.Backward(HookEvents(client)) {
		empties := n.Entries[hookKey(event)].Empties
		if len(n.Entries) == 0 { // nothing is known of how it came: what is empty now was made for ours
			empties = 2
		}
		for {
			next, found, err := removeHook(out, client, event, empties)
			if err != nil {
				return nil, nil, err
			}
			if !found {
				break
			}
			out = next
			if !slices.Contains(keys, hookKey(event)) {
				keys = append(keys, hookKey(event))
			}
		}
	}
	if len(keys) > 0 {
		if err := sameButHooks(text, out, client); err != nil {
			return nil, nil, err
		}
	}
	return out, keys, nil
}

// removeHook takes one hook out, and what was made around it and is empty now.
func removeHook(text []byte, client, event string, empties int) (out []byte, found bool, err error) {
	f, err := parseJSONFile(text)
	if err != nil {
		return nil, false, err
	}
	path := []string{"hooks", event}
	m, _, depth, err := f.find(path)
	if err != nil || depth < len(path) {
		return text, false, nil // nothing of ours can be in what is no object
	}
	list, ok := m.Value.Value.(*hujson.Array)
	if !ok {
		return text, false, nil
	}
	at, _, ok := findHook(list, client)
	if !ok {
		return text, false, nil
	}
	if at.hook >= 0 {
		hooks := &memberOf(&list.Elements[at.group], "hooks").Value
		if len(parts(hooks)) > 1 { // the user put others beside it
			return f.remove(hooks, at.hook), true, nil
		}
	}
	out = f.remove(&m.Value, at.group)
	g, err := parseJSONFile(out)
	if err != nil {
		return nil, false, fmt.Errorf("the edit would break the file: %w", err)
	}
	if m, _, depth, err := g.find(path); empties > 0 && err == nil && depth == len(path) && emptyObject(g, m) {
		out, _, err = removeJSON(out, path, empties-1)
		return out, true, err
	}
	return out, true, nil
}

// sameButHooks checks that two texts differ in our hooks only.
func sameButHooks(before, after []byte, client string) error {
	a, errA := withoutHooks(before, client)
	b, errB := withoutHooks(after, client)
	if errB != nil {
		return fmt.Errorf("the edit would break the file: %w", errB)
	}
	if errA != nil {
		return errA
	}
	if !reflect.DeepEqual(a, b) {
		return errors.New("the edit would change something else in the file")
	}
	return nil
}

// withoutHooks is a settings file as data, without our hooks and without lists
// of hooks that are empty.
func withoutHooks(text []byte, client string) (any, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return map[string]any{}, nil
	}
	f, err := parseJSONFile(text)
	if err != nil {
		return nil, err
	}
	v, _, err := f.get(nil)
	if err != nil {
		return nil, err
	}
	doc, _ := v.(map[string]any)
	hooks, ok := doc["hooks"].(map[string]any)
	if !ok {
		return v, nil
	}
	for event, l := range hooks {
		list, ok := l.([]any)
		if !ok {
			continue
		}
		list = slices.DeleteFunc(list, func(e any) bool { return stripOwn(e, client) })
		hooks[event] = list
		if len(list) == 0 {
			delete(hooks, event)
		}
	}
	if len(hooks) == 0 {
		delete(doc, "hooks")
	}
	return v, nil
}

// stripOwn takes our hook out of an element of an event's list, and reports
// whether the element was ours alone.
func stripOwn(e any, client string) bool {
	o, ok := e.(map[string]any)
	if !ok {
		return false
	}
	own := func(o map[string]any) bool {
		for _, key := range []string{"command", "bash", "powershell"} {
			if c, ok := o[key].(string); ok && ownHook(c, client) {
				return true
			}
		}
		return false
	}
	if own(o) {
		return true
	}
	list, ok := o["hooks"].([]any)
	if !ok {
		return false
	}
	left := slices.DeleteFunc(list, func(h any) bool {
		m, ok := h.(map[string]any)
		return ok && own(m)
	})
	o["hooks"] = left
	return len(list) > 0 && len(left) == 0
}

// Hook is a hook of ours as it stands in a client's settings.
type Hook struct {
	Event   string `json:"event"`
	Command string `json:"command"`
	// Seconds is after how long the client gives up on it; 0 where the client's
	// own default holds.
	Seconds float64 `json:"seconds,omitempty"`

	at      place          // where it stands among its event's
	matcher string         // of what it stands in
	raw     map[string]any // as it stands there
}

// short reports whether the client gives up on the hook before we may be through.
func (h Hook) short(client string) bool {
	return h.Seconds > 0 && h.Seconds < float64(hookTimeout(client, h.Event))
}

// FindHooks are our hooks in a client's file, in the order of [HookEvents]. An
// error means that the file cannot be read or does not parse.
func FindHooks(file, client string) ([]Hook, error) {
	raw, exists, err := readSettings(file)
	if err != nil || !exists || len(bytes.TrimSpace(raw)) == 0 {
		return nil, err
	}
	f, err := parseJSONFile(bytes.TrimPrefix(raw, bom))
	if err != nil {
		return nil, err
	}
	var out []Hook
	for _, event := range HookEvents(client) {
		m, _, depth, err := f.find([]string{"hooks", event})
		if err != nil || depth < 2 {
			continue
		}
		list, ok := m.Value.Value.(*hujson.Array)
		if !ok {
			continue
		}
		at, v, ok := findHook(list, client)
		if !ok {
			continue
		}
		var h struct {
			Command, Bash, Powershell string
			Timeout, TimeoutSec       any // what is no number the client has to complain of
		}
		std := v.Clone()
		std.Standardize()
		std.BeforeExtra, std.AfterExtra = nil, nil
		if err := json.Unmarshal(std.Pack(), &h); err != nil {
			return nil, fmt.Errorf("read hook %s: %w", event, err)
		}
		for _, c := range []string{h.Command, h.Bash, h.Powershell} {
			if c != "" {
				hook := Hook{Event: event, Command: c, Seconds: seconds(client, h.Timeout, h.TimeoutSec), at: at}
				raw, _ := decode(v)
				hook.raw, _ = raw.(map[string]any)
				if m := memberOf(&list.Elements[at.group], "matcher"); m != nil && at.hook >= 0 {
					raw, _ := decode(&m.Value)
					hook.matcher, _ = raw.(string)
				}
				out = append(out, hook)
				break
			}
		}
	}
	return out, nil
}

// seconds is a hook's timeout as a client counts it; 0 where there is none.
func seconds(client string, timeout, timeoutSec any) float64 {
	v, _ := timeout.(float64)
	if client == "copilot" && timeoutSec != nil {
		v, _ = timeoutSec.(float64)
	}
	if m := dialect.ManifestOf(hookWord(client)); m != nil && m.Unit == "ms" {
		v /= 1000
	}
	return v
}
