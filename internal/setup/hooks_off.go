package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/pathname"
)

// HooksOff says by what a client runs none of our hooks though they are set up: a setting,
// a variable or what an administrator decided. why is "" where there is nothing of that
// kind; remedy is what to do. A client says nothing of it, and a repository can bring it.
// plugin asks for hooks that are a plugin's, not in settings.
//
// Seen with the real programs: Claude Code 2.1.332, Codex 0.171.0, Gemini CLI 0.61.0,
// Copilot CLI 1.0.102. Where they keep what an administrator decided on macOS and Windows is
// from their makers' documentation.
func (w Where) HooksOff(client string, plugin bool) (why, remedy string, err error) {
	switch client {
	case "claude-code":
		return w.claudeOff(plugin)
	case "codex":
		return w.codexOff()
	case "gemini":
		return w.geminiOff()
	case "copilot":
		return w.copilotOff()
	}
	return "", "", nil
}

// Off is [Where.HooksOff] of hooks that are set up.
func (s Setup) Off(h InstalledHooks) (why, remedy string, err error) {
	why, remedy, err = s.HooksOff(h.Client, false)
	if why != "" || h.Client != "copilot" {
		return why, remedy, err
	}
	if doc, _ := settingsDoc(h.File, false); doc["disableAllHooks"] == true { // of this file alone
		return "disableAllHooks in " + h.File, "take disableAllHooks out of " + h.File, err
	}
	return "", "", err
}

// SwitchedOff says that a client runs none of our hooks, by [Where.HooksOff].
func SwitchedOff(client, why string) string {
	return fmt.Sprintf("%s runs no hooks here, by %s: nothing is guarded, held by a gate, recorded or told", client, why)
}

// layer is a settings file of a client, as far as it can be read.
type layer struct {
	file string
	doc  map[string]any
}

// layers reads files of settings, those that are there, in the order in which they are given:
// what stands in a later one counts. What cannot be read is in the error, and the others
// are there all the same.
func layers(files []string, isTOML bool) ([]layer, error) {
	var out []layer
	var bad []error
	for i, file := range files {
		if slices.Contains(files[:i], file) {
			continue
		}
		doc, err := settingsDoc(file, isTOML)
		if err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", file, err))
		}
		if doc != nil {
			out = append(out, layer{file, doc})
		}
	}
	return out, errors.Join(bad...)
}

// settingsDoc is a settings file as data; nil where it is not there, or empty.
func settingsDoc(file string, isTOML bool) (map[string]any, error) {
	raw, exists, err := readSettings(file)
	if err != nil || !exists || len(bytes.TrimSpace(raw)) == 0 {
		return nil, err
	}
	raw = bytes.TrimPrefix(raw, bom)
	if isTOML {
		return parseTOML(raw)
	}
	f, err := parseJSONFile(raw)
	if err != nil {
		return nil, err
	}
	v, _, err := f.get(nil)
	doc, _ := v.(map[string]any)
	return doc, err
}

// decides is the layer whose value at path counts, and whether that is what is asked for;
// only what is true or false counts, as it does for the clients.
func decides(all []layer, want bool, path ...string) (layer, bool) {
	for _, l := range slices.Backward(all) {
		if v, ok := lookup(l.doc, path); ok {
			if is, ok := v.(bool); ok {
				return l, is == want
			}
		}
	}
	return layer{}, false
}

// byAdministrator is what to do about what the user cannot change.
const byAdministrator = "ask whoever manages this machine: only they can change it"

// dirs are the project's top and the working directory: clients look in one of them.
func (w Where) dirs() []string {
	if w.Dir == "" || pathname.Same(w.Dir, w.Root) {
		return []string{w.Root}
	}
	return []string{w.Root, w.Dir}
}

// managed is a directory in which an administrator decides for all users of this machine.
func (w Where) managed(linux, darwin, windows string) string {
	dir := linux
	switch w.Env.GOOS {
	case "darwin":
		dir = darwin
	case "windows":
		dir = windows
	}
	if w.Machine != "" {
		return filepath.Join(w.Machine, filepath.Base(linux)) // the same on every system
	}
	return dir
}

// inDirectory are the files with an extension in a directory, in order.
func inDirectory(dir, ext string) ([]string, error) {
	entries, err := durable.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ext {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, err
}

// claudeBare are variables with which Claude Code starts without hooks, plugins and memory.
var claudeBare = []string{"CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"}

func (w Where) claudeOff(plugin bool) (why, remedy string, err error) {
	user, err := w.HookFile("claude-code", User)
	if err != nil {
		return "", "", err
	}
	dir := w.managed("/etc/claude-code", "/Library/Application Support/ClaudeCode", `C:\Program Files\ClaudeCode`)
	more, errDir := inDirectory(filepath.Join(dir, "managed-settings.d"), ".json")
	managed, errManaged := layers(append([]string{filepath.Join(dir, "managed-settings.json")}, more...), false)
	var files []string
	for _, d := range w.dirs() {
		files = append(files, filepath.Join(d, ".claude", "settings.json"))
	}
	for _, d := range w.dirs() {
		files = append(files, filepath.Join(d, ".claude", "settings.local.json"))
	}
	own, errUser := layers([]string{user}, false)
	repository, errOwn := layers(files, false)
	err = errors.Join(errDir, errManaged, errUser, errOwn)
	for _, key := range []string{"disableAllHooks", "allowManagedHooksOnly"} {
		if l, ok := decides(managed, true, key); ok {
			return key + " in " + l.file, byAdministrator, err
		}
	}
	for _, l := range managed {
		v := l.doc["strictPluginOnlyCustomization"]
		if list, _ := v.([]any); !plugin && (v == true || slices.Contains(list, any("hooks"))) {
			return "strictPluginOnlyCustomization in " + l.file, byAdministrator, err
		}
	}
	all := slices.Concat(own, repository, managed)
	if l, ok := decides(all, true, "disableAllHooks"); ok {
		return "disableAllHooks in " + l.file, "take disableAllHooks out of " + l.file, err
	}
	for _, name := range claudeBare {
		for _, l := range slices.Concat(managed, own) { // a repository's does not count for that
			if v, _ := lookup(l.doc, []string{"env", name}); isOn(fmt.Sprint(v)) {
				return name + " in " + l.file, "take " + name + " out of " + l.file, err
			}
		}
		if isOn(w.Env.Get(name)) {
			return "the variable " + name, "start claude without it", err
		}
	}
	return "", "", err
}

// isOn reports whether Claude Code takes a variable's value for a yes.
func isOn(value string) bool {
	return slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(strings.TrimSpace(value)))
}

func (w Where) geminiOff() (why, remedy string, err error) {
	user, err := w.HookFile("gemini", User)
	if err != nil {
		return "", "", err
	}
	system := filepath.Join(w.managed("/etc/gemini-cli", "/Library/Application Support/GeminiCli", `C:\ProgramData\gemini-cli`), "settings.json")
	if f := w.Env.Get("GEMINI_CLI_SYSTEM_SETTINGS_PATH"); f != "" {
		system = f
	}
	defaults := filepath.Join(filepath.Dir(system), "system-defaults.json")
	if f := w.Env.Get("GEMINI_CLI_SYSTEM_DEFAULTS_PATH"); f != "" {
		defaults = f
	}
	files := []string{defaults, user}
	for _, d := range w.dirs() {
		files = append(files, filepath.Join(d, ".gemini", "settings.json"))
	}
	all, err := layers(append(files, system), false)
	remedyFor := func(l layer, what string) string {
		if l.file == system || l.file == defaults {
			return byAdministrator
		}
		return what + " in " + l.file
	}
	if l, ok := decides(all, false, "hooksConfig", "enabled"); ok {
		return "hooksConfig.enabled in " + l.file, remedyFor(l, "set hooksConfig.enabled to true"), err
	}
	for _, l := range all { // these lists are put together
		v, _ := lookup(l.doc, []string{"hooksConfig", "disabled"})
		if list, ok := v.([]any); ok && slices.Contains(list, any(Name)) {
			return "hooksConfig.disabled in " + l.file, remedyFor(l, "take "+Name+" out of hooksConfig.disabled"), err
		}
	}
	return "", "", err
}

func (w Where) copilotOff() (why, remedy string, err error) {
	var files []string
	for _, name := range []string{".claude/settings.json", ".claude/settings.local.json", ".github/copilot/settings.json", ".github/copilot/settings.local.json"} {
		for _, d := range w.dirs() {
			files = append(files, filepath.Join(d, filepath.FromSlash(name)))
		}
	}
	all, err := layers(files, false)
	if l, ok := decides(all, true, "disableAllHooks"); ok {
		return "disableAllHooks in " + l.file, "take disableAllHooks out of " + l.file, err
	}
	return "", "", err
}

func (w Where) codexOff() (why, remedy string, err error) {
	user, err := Locate(w, "codex", User)
	if err != nil {
		return "", "", err
	}
	dir := w.managed("/etc/codex", "/etc/codex", `C:\ProgramData\OpenAI\Codex`)
	required, errRequired := layers([]string{filepath.Join(dir, "requirements.toml")}, true)
	if l, ok := decides(required, true, "allow_managed_hooks_only"); ok {
		return "allow_managed_hooks_only in " + l.file, byAdministrator, errRequired
	}
	system, over := filepath.Join(dir, "config.toml"), filepath.Join(dir, "managed_config.toml")
	files := []string{system, user.File}
	if doc, err := settingsDoc(user.File, true); err == nil {
		for _, d := range w.dirs() {
			if level, _ := lookup(doc, []string{"projects", d, "trust_level"}); level == "trusted" { // or Codex passes it over
				files = append(files, filepath.Join(d, ".codex", "config.toml"))
			}
		}
	}
	all, errAll := layers(append(files, over), true)
	all = append(all, required...)
	err = errors.Join(errRequired, errAll)
	for _, name := range []string{"hooks", "codex_hooks"} {
		l, ok := decides(all, false, "features", name)
		switch {
		case !ok:
		case filepath.Dir(l.file) == dir:
			return "features." + name + " in " + l.file, byAdministrator, err
		default:
			return "features." + name + " in " + l.file, "set features." + name + " to true in " + l.file, err
		}
	}
	return "", "", err
}
