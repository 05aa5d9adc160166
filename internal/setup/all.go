package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/durable"
)

// All says what to put into a client in one go, or to take out of it.
type All struct {
	Request
	HookProgram string // absolute path of reprise-hook
	Skill       string // text of SKILL.md; "" for none
	NoMCP       bool
	NoHooks     bool
	// Commands are put in too: slash commands and agents for the list of tasks.
	Commands bool
}

// SkillFile is where a client finds the skill; "" for a client without skills.
// Codex, Gemini CLI and Copilot CLI all read ~/.agents/skills (seen with the
// real programs), so they share one file.
func (w Where) SkillFile(client string) (string, error) {
	var dir string
	var err error
	switch client {
	case "claude-code":
		dir, err = w.Env.ClientDir(client)
	case "codex", "gemini", "copilot":
		if dir, err = w.Env.ClientHome(client); err == nil {
			dir = filepath.Join(dir, ".agents")
		}
	default:
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "skills", "reprise-memory", "SKILL.md"), nil
}

// InstallAll puts reprise's server, hooks and skill into a client. Nothing is
// changed where they are already. All files are read, and what is to become of them is
// made, before the first is written: one that cannot be changed leaves all as they are.
// When something fails nevertheless, the changes that were made are given with the
// error, and doing it again goes on from there.
func (s Setup) InstallAll(ctx context.Context, a All) ([]Change, error) {
	if !a.DryRun {
		dry := a
		dry.DryRun = true
		if _, err := s.installAll(ctx, dry); err != nil {
			return nil, told(err, nil)
		}
	}
	changes, err := s.installAll(ctx, a)
	return changes, told(err, changed(a.DryRun, changes))
}

func (s Setup) installAll(ctx context.Context, a All) ([]Change, error) {
	if changes := s.pluginThere(a); changes != nil {
		return changes, nil
	}
	var changes []Change
	var err error
	var hooks *hooksEdit
	if !a.NoHooks && slices.Contains(HookClients(), a.Client) {
		if hooks, err = s.hooksOf(a); err != nil {
			return changes, err
		}
	}
	if !a.NoMCP && slices.Contains(Scopes(a.Client), a.scope()) {
		t, err := Locate(s.Where, a.Client, a.Scope)
		if err != nil {
			return changes, err
		}
		noDoc := a.Instructions && t.Doc == ""
		if noDoc { // the others get theirs, and this one what it can have
			a.Instructions = false
		}
		var also *beside
		if hooks != nil && hooks.file == t.File { // one edit, and one copy of what was there
			also = &beside{"hooks and MCP server", hooks.edit, hooks.tell, s.hookWarnings(a)}
			hooks = nil
		}
		ch, err := s.install(ctx, a.Request, also)
		if noDoc && len(ch) > 0 {
			ch[0].Warnings = append(ch[0].Warnings, fmt.Sprintf("%s has no instructions file for scope %s: the section was left out; the skill says the same", a.Client, t.Scope))
		}
		changes = append(changes, ch...)
		if err != nil {
			return changes, err
		}
	}
	if hooks != nil {
		ch, err := s.changer(a.target(), a.DryRun).apply(ctx, hooks.file, perm(a.scope()), func(in input) ([]byte, bool, error) {
			text, err := hooks.edit(in.text)
			return text, false, err
		}, hooks.tell)
		if err != nil {
			return changes, err
		}
		ch.What, ch.Warnings = "hooks", s.hookWarnings(a)
		changes = append(changes, ch)
	}
	ch, err := s.installSkill(ctx, a)
	if ch != nil {
		changes = append(changes, *ch)
	}
	if err == nil {
		var more []Change
		more, err = s.installCommands(ctx, a)
		changes = append(changes, more...)
	}
	return changes, err
}

// scope is the scope by name, for the default the client's own.
func (r Request) scope() string {
	if r.Scope == "" {
		return Scopes(r.Client)[0]
	}
	return r.Scope
}

// hooksEdit is how hooks get into a client's file.
type hooksEdit struct {
	file string
	edit func(text []byte) ([]byte, error)
	tell func(*note)
}

func (s Setup) hooksOf(a All) (*hooksEdit, error) {
	if !filepath.IsAbs(a.HookProgram) {
		return nil, fmt.Errorf("install hooks into %s: %q is not an absolute path of a program", a.Client, a.HookProgram)
	}
	file, err := s.HookFile(a.Client, a.scope())
	if err != nil {
		return nil, err
	}
	did := map[string]made{}
	return &hooksEdit{file, func(text []byte) ([]byte, error) {
		clear(did)
		return s.setHooks(text, a.HookProgram, a.Client, did)
	}, func(n *note) {
		for k, m := range did {
			if _, known := n.Entries[k]; !known {
				n.Entries[k] = m
			}
		}
	}}, nil
}

// hookWarnings are what a user has to know or to do beyond what a file can say.
func (s Setup) hookWarnings(a All) []string {
	var out []string
	if a.Client == "codex" {
		out = append(out, "Codex runs new hooks only after you have trusted them once: start codex and accept them there (/hooks); until then `reprise doctor` says that it waits")
	}
	if a.scope() == Project {
		out = append(out, fmt.Sprintf("the hooks are shared through the repository, and they name this machine's %s; for yourself alone use --scope user", a.HookProgram))
		switch a.Client {
		case "gemini", "copilot":
			out = append(out, "the client runs a repository's hooks only in a folder that you have trusted")
		}
	}
	if s.Env.GOOS == "windows" {
		for _, name := range carried {
			if s.Env.Get(name) != "" {
				out = append(out, name+" is not written into the hooks on Windows: set it for your account, so that hooks and shell use the same files")
			}
		}
	}
	return out
}

// target stands for a client and scope where only these matter.
func (r Request) target() Target { return Target{Client: r.Client, Scope: r.scope()} }

func (s Setup) installSkill(ctx context.Context, a All) (*Change, error) {
	if a.Skill == "" || a.scope() == Project { // it names this machine's memory directory
		return nil, nil
	}
	file, err := s.SkillFile(a.Client)
	if err != nil || file == "" {
		return nil, err
	}
	return s.installFile(ctx, a, file, a.Skill, "skill")
}

// installFile writes a file that is reprise's as a whole. One that somebody else has
// written, or changed since, is left alone, with a warning.
func (s Setup) installFile(ctx context.Context, a All, file, text, what string) (*Change, error) {
	var warning string
	ch, err := s.skillChanger(a).apply(ctx, file, 0o644, func(in input) ([]byte, bool, error) {
		warning = ""
		if in.exists && !bytes.Equal(in.text, []byte(text)) && !ownSkill(in) {
			warning = "there is a " + what + " that reprise did not write, or that was changed since; it is left alone"
			return in.text, false, nil
		}
		return []byte(text), false, nil
	}, func(n *note) {
		if warning == "" {
			n.Entries[skillKey(a.Client)] = made{}
		}
	})
	if err != nil {
		return nil, err
	}
	ch.What = what
	if warning != "" {
		ch.Warnings = append(ch.Warnings, warning)
	}
	return &ch, nil
}

// ownDirs are the directories above a file that have our name, outermost first.
func ownDirs(file string) (out []string) {
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		out = append(out, dir)
		if strings.HasPrefix(filepath.Base(dir), Name) {
			slices.Reverse(out)
			return out
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (s Setup) skillChanger(a All) changer {
	c := s.changer(a.target(), a.DryRun)
	c.always = true
	return c
}

func skillKey(client string) string { return "skill\x1f" + client }

// ownSkill reports whether a skill file is as reprise wrote it last.
func ownSkill(in input) bool {
	for k := range in.note.Entries {
		if strings.HasPrefix(k, "skill\x1f") {
			return in.note.After == sum(in.raw)
		}
	}
	return false
}

// RemoveAll takes reprise's server, hooks, skill and instructions out of a
// client. Where nothing else was changed since, the files are what they were
// before, byte for byte, and what was made is gone. A file that cannot be changed
// keeps none of the others: the errors are given together.
func (s Setup) RemoveAll(ctx context.Context, a All) ([]Change, error) {
	s.left = new([]string)
	changes, err := s.removeAll(ctx, a)
	err = errors.Join(err, s.changer(a.target(), a.DryRun).sweepLeft(ctx))
	return changes, told(err, changed(a.DryRun, changes))
}

func (s Setup) removeAll(ctx context.Context, a All) ([]Change, error) {
	t := a.target()
	if slices.Contains(Scopes(a.Client), a.scope()) {
		var err error
		if t, err = Locate(s.Where, a.Client, a.Scope); err != nil {
			return nil, err
		}
	}
	// In the reverse order of the install, so that directories are empty when
	// their turn comes.
	changes, cerr := s.removeCommands(ctx, a)
	ch, err := s.removeSkill(ctx, a)
	err = errors.Join(cerr, err)
	if ch != nil {
		changes = append(changes, *ch)
	}
	hookFile := ""
	if slices.Contains(HookClients(), a.Client) {
		var ferr error
		hookFile, ferr = s.HookFile(a.Client, a.scope())
		err = errors.Join(err, ferr)
	}
	if hookFile != "" {
		var undone []string
		ch, herr := s.changer(t, a.DryRun).apply(ctx, hookFile, perm(t.Scope), func(in input) ([]byte, bool, error) {
			text, gone, keys, err := t.removeBoth(in, hookFile == t.File)
			undone = keys
			return text, gone, err
		}, func(n *note) {
			for _, k := range undone {
				delete(n.Entries, k)
			}
		})
		if herr == nil {
			ch.What = "hooks"
			if hookFile == t.File {
				ch.What = "hooks and MCP server"
			}
			changes = append(changes, ch)
		}
		err = errors.Join(err, herr)
	}
	switch {
	case t.File != "" && t.File != hookFile:
		ch, uerr := s.uninstall(ctx, a.Request)
		changes, err = append(changes, ch...), errors.Join(err, uerr)
	case t.File != "": // the server went with the hooks
		doc, derr := s.uninstallDoc(ctx, t, a.DryRun)
		if doc != nil {
			changes = append(changes, *doc)
		}
		err = errors.Join(err, derr)
	}
	return changes, err
}

// removeBoth takes the hooks, and where they share a file the server too, out of
// it. keys are the note's keys of what was taken out.
func (t Target) removeBoth(in input, shared bool) (text []byte, gone bool, keys []string, err error) {
	if !in.exists {
		return nil, true, nil, nil
	}
	for _, e := range HookEvents(t.Client) {
		keys = append(keys, hookKey(e))
	}
	if shared {
		for _, name := range t.ownNames(in.note) {
			keys = append(keys, strings.Join(t.path(name), "\x1f"))
		}
	}
	if old, gone, ok := in.note.restore(in.raw, keys...); ok {
		clean := true
		if !gone {
			_, hooks, err := removeHooks(old, t.Client, in.note)
			clean = err == nil && len(hooks) == 0 && !(shared && t.ours(old, t.path(Name)))
		}
		if clean {
			return old, gone, keys, nil
		}
	}
	text, keys, err = removeHooks(in.text, t.Client, in.note)
	if err != nil || !shared {
		return text, false, keys, err
	}
	names := t.ownNames(in.note)
	rest := in
	rest.text, rest.raw = text, nil // not restored: that was tried for all of it
	text, _, err = t.uninstall(rest, names, &keys)
	return text, false, keys, err
}

func (s Setup) removeSkill(ctx context.Context, a All) (*Change, error) {
	if a.scope() == Project {
		return nil, nil
	}
	file, err := s.SkillFile(a.Client)
	if err != nil || file == "" {
		return nil, err
	}
	return s.removeFile(ctx, a, file, a.Skill, "skill")
}

// removeFile takes out a file that [Setup.installFile] wrote, if it is still so and no
// other client reads it. One of which nothing is known, as in a home that was copied here, goes
// where it is what would be written; another one is named.
func (s Setup) removeFile(ctx context.Context, a All, file, text, what string) (*Change, error) {
	var warning string
	ch, err := s.skillChanger(a).apply(ctx, file, 0o644, func(in input) ([]byte, bool, error) {
		warning = ""
		_, own := in.note.Entries[skillKey(a.Client)]
		switch {
		case !in.exists:
			return nil, true, nil
		case len(in.note.Entries) == 0 && bytes.Equal(in.text, []byte(text)):
			in.note.Created, in.note.Dirs = true, ownDirs(file)
			in.note.Entries[skillKey(a.Client)] = made{}
			return nil, true, nil
		case len(in.note.Entries) == 0:
			warning = "it is not known whether reprise wrote this " + what + ", and it is another than this version writes; it is left there: if you do not need it, delete it"
			return in.text, false, nil
		case !own:
			return in.text, false, nil
		case len(in.note.Entries) > 1: // another client reads it too
			return in.text, false, nil
		case !ownSkill(in):
			warning = "the " + what + " was changed since it was written; it is left there"
			return in.text, false, nil
		}
		if old, gone, ok := in.note.restore(in.raw, skillKey(a.Client)); ok {
			return old, gone, nil
		}
		return nil, true, nil
	}, func(n *note) { delete(n.Entries, skillKey(a.Client)) })
	if err != nil {
		return nil, err
	}
	ch.What = what
	if warning != "" {
		ch.Warnings = append(ch.Warnings, warning)
	}
	if ch.Action == "unchanged" && warning == "" {
		return nil, nil
	}
	return &ch, nil
}

// usedGemini reports whether a .gemini is that of somebody who uses Gemini CLI: it makes
// the directory when it only says its version, with lists of its own in it, and other
// programs put theirs beside them.
func usedGemini(dir string) bool {
	list, err := durable.ReadDir(dir)
	return err == nil && slices.ContainsFunc(list, func(e os.DirEntry) bool {
		name := e.Name()
		return !strings.HasPrefix(name, "projects.json") && name != "tmp" && name != "history" && name != "antigravity"
	})
}

// used reports whether a client's settings directory has anything in it. An empty one is
// left by others: containers mount one, installers and dotfile managers make it.
func used(dir string) bool {
	list, err := durable.ReadDir(dir)
	return err == nil && len(list) > 0
}

// Found reports whether a client is on this machine: its program in PATH, or
// its settings directory with something in it.
func (s Setup) Found(client string, lookPath func(string) (string, error)) bool {
	if name, ok := programs[client]; ok {
		if _, err := lookPath(name); err == nil {
			return true
		}
	}
	if client == "cursor" || slices.Contains(HookClients(), client) {
		d, err := s.Env.ClientDir(client)
		return err == nil && used(d) && (client != "gemini" || usedGemini(d))
	}
	t, err := Locate(s.Where, client, User)
	return err == nil && isDir(filepath.Dir(t.File))
}
