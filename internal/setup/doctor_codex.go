package setup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// codexTrust looks whether a person has accepted the hooks in Codex, which does
// not run them before.
func (d Doctor) codexTrust(h InstalledHooks) []Finding {
	s, err := d.codexStates(h)
	if err != nil {
		return nil // what cannot be read the MCP entries' check says
	}
	var out []Finding
	if waiting := s.list(codexNew, codexChanged); len(waiting) > 0 {
		why := ""
		if changed := s.list(codexChanged); len(changed) > 0 {
			why = fmt.Sprintf(" (%d changed since you did)", len(changed))
		}
		out = one(Warn, "start codex and accept the hooks it asks about (or /hooks)",
			"codex: waiting for trust: %d of %d hooks do not run until you have accepted them in Codex%s: %s", len(waiting), len(h.Hooks), why, strings.Join(waiting, ", "))
	}
	if off := s.list(codexOff); len(off) > 0 {
		out = append(out, one(Warn, "switch them on in codex with /hooks", "codex: %d of %d hooks are switched off in Codex: %s", len(off), len(h.Hooks), strings.Join(off, ", "))...)
	}
	return out
}

// Unaccepted are the events whose hooks Codex does not run, because nobody has accepted
// them as they are now, or because they were switched off there. Other clients ask nobody.
func (d Doctor) Unaccepted(h InstalledHooks) ([]string, error) {
	if h.Client != "codex" {
		return nil, nil
	}
	s, err := d.codexStates(h)
	return s.list(codexNew, codexChanged, codexOff), err
}

// codexState is how Codex takes a hook.
type codexState int

const (
	codexRuns    codexState = iota
	codexNew                // nobody has accepted it
	codexChanged            // what was accepted had another text
	codexOff                // a person switched it off
)

type codexHook struct {
	event string
	state codexState
}

type codexHooks []codexHook

func (all codexHooks) list(states ...codexState) []string {
	var out []string
	for _, h := range all {
		if slices.Contains(states, h.state) {
			out = append(out, h.event)
		}
	}
	return out
}

// codexStates compares our hooks with what Codex noted in config.toml as accepted: each by
// its place in the file and a hash of its text (seen with 0.171.0). An update of reprise
// that changes a command or a timeout makes Codex ask again, and run nothing until then.
func (d Doctor) codexStates(h InstalledHooks) (codexHooks, error) {
	target, err := Locate(d.Setup.Where, "codex", User)
	if err != nil {
		return nil, err
	}
	doc, err := settingsDoc(target.File, true)
	if err != nil {
		return nil, err
	}
	v, _ := lookup(doc, []string{"hooks", "state"})
	noted, _ := v.(map[string]any)
	var out codexHooks
	for _, hook := range h.Hooks {
		out = append(out, codexHook{hook.Event, codexStateOf(noted, h.File, hook)})
	}
	return out, nil
}

func codexStateOf(noted map[string]any, file string, hook Hook) codexState {
	files := []string{file}
	if real, err := filepath.EvalSymlinks(file); err == nil && real != file {
		files = append(files, real) // Codex names its home without links
	}
	for _, f := range files {
		key := fmt.Sprintf("%s:%s:%d:%d", f, snake(hook.Event), hook.at.group, hook.at.hook)
		state, _ := noted[key].(map[string]any)
		hash, _ := state["trusted_hash"].(string)
		switch {
		case hash == "":
			continue
		case !slices.Contains(codexHashes(hook), hash):
			return codexChanged
		case state["enabled"] == false:
			return codexOff
		}
		return codexRuns
	}
	return codexNew
}

// codexHashes are the hashes that Codex may give to a hook: of its canonical JSON, with what
// the file leaves out. For some events it drops the matcher, so there are two.
func codexHashes(hook Hook) []string {
	handler := map[string]any{"type": "command", "command": hook.Command, "async": hook.raw["async"] == true, "timeout": codexSeconds(hook)}
	if said, ok := hook.raw["statusMessage"].(string); ok {
		handler["statusMessage"] = said
	}
	plain := map[string]any{"event_name": snake(hook.Event), "hooks": []any{handler}}
	full := maps.Clone(plain)
	full["matcher"] = hook.matcher
	var out []string
	for _, identity := range []map[string]any{plain, full} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(identity); err != nil {
			return nil
		}
		sum := sha256.Sum256(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
		out = append(out, "sha256:"+hex.EncodeToString(sum[:]))
	}
	return out
}

// codexSeconds is how long Codex gives a hook.
func codexSeconds(hook Hook) int64 {
	last := hook.Event == "SessionEnd" || hook.Event == "Interrupt"
	number, ok := hook.raw["timeout"].(json.Number)
	given, _ := number.Int64()
	switch {
	case !ok && last:
		return 1
	case !ok:
		return 600
	case last:
		return max(1, min(3, given))
	}
	return max(1, given)
}
