package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"reprise/internal/durable"
	"reprise/internal/mdfile"
	"reprise/internal/pathname"
)

// programs are the names of the clients' programs; those without one are
// desktop programs, known by their settings directory.
var programs = map[string]string{
	"claude-code": "claude", "codex": "codex", "gemini": "gemini", "copilot": "copilot", "cursor": "cursor-agent", "vscode": "code",
}

// Program is the name of a client's program; "" for a desktop program.
func Program(client string) string { return programs[client] }

func (d Doctor) clients(ctx context.Context) []Finding {
	// At once: some of them take seconds to say their version.
	found := make([][]Finding, len(Clients()))
	var all sync.WaitGroup
	for i, client := range Clients() {
		all.Go(func() { found[i] = d.client(ctx, client) })
	}
	all.Wait()
	out := slices.Concat(found...)
	if len(out) == 0 {
		return one(Warn, "install one, or try things with the built-in one: `reprise spawn --agent script \"hello\"`", "no client was found: %s", strings.Join(Clients(), ", "))
	}
	return out
}

func (d Doctor) client(ctx context.Context, client string) []Finding {
	name, ok := programs[client]
	if !ok {
		if t, err := Locate(d.Setup.Where, client, User); err == nil && isDir(filepath.Dir(t.File)) {
			return one(OK, "", "%s: settings in %s", client, filepath.Dir(t.File))
		}
		return nil
	}
	program := name
	if client == "claude-code" {
		if h, err := d.Load(); err == nil {
			program = h.Settings.ClaudeCLI.Path
		}
	}
	path, err := d.LookPath(program)
	if err != nil {
		if program != name {
			return one(Fail, "correct claude_cli.path", "%s: %s is not there", client, program)
		}
		return nil
	}
	v, err := d.Version(ctx, path)
	if errors.Is(err, context.DeadlineExceeded) {
		return one(Warn, "try again when the machine has less to do, or run it by hand", "%s: %s did not answer --version within %s", client, path, checkTime)
	}
	if err != nil {
		return one(Warn, "run it by hand", "%s: %s does not answer --version: %v", client, path, err)
	}
	return one(OK, "", "%s %s (%s)", client, v, path)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// targets are all places of all clients.
func (d Doctor) targets() []Target {
	var out []Target
	for _, client := range Clients() {
		for _, scope := range Scopes(client) {
			if t, err := Locate(d.Setup.Where, client, scope); err == nil {
				out = append(out, t)
			}
		}
	}
	return out
}

func (d Doctor) entries(context.Context) []Finding {
	var out []Finding
	for _, t := range d.targets() {
		e, ok, err := Find(t, Name)
		if err != nil {
			out = append(out, one(Warn, "correct the file; until then neither the client nor reprise can use it", "%s: %s: %v", t.Client, t.File, err)...)
			continue
		}
		if ok {
			out = append(out, d.entry(t, e)...)
		}
	}
	if name, file := d.Setup.Plugin("claude-code"); name != "" {
		out = append(out, one(OK, "", "claude-code: by its plugin %s (%s)", name, file)...)
	}
	if len(out) == 0 {
		return one(Warn, "run `reprise setup`", "reprise is in no client's MCP servers")
	}
	return out
}

func (d Doctor) entry(t Target, e Entry) []Finding {
	again := fmt.Sprintf("run `reprise mcp install %s --scope %s`", t.Client, t.Scope)
	where := fmt.Sprintf("%s (%s, %s)", t.Client, t.Scope, t.File)
	if !filepath.IsAbs(e.Command) {
		if _, err := d.LookPath(e.Command); err != nil || e.Command == "" {
			return one(Fail, again, "%s: its program %q is not there", where, e.Command)
		}
	} else if info, err := os.Stat(e.Command); err != nil || !info.Mode().IsRegular() {
		return one(Fail, again, "%s: its program %s is not there", where, e.Command)
	} else if info.Mode().Perm()&0o111 == 0 && d.Setup.Env.GOOS != "windows" {
		return one(Fail, "make it executable", "%s: its program %s is not executable", where, e.Command)
	}
	for i, a := range e.Args {
		if a == "--config" && i+1 < len(e.Args) {
			if _, err := os.Stat(e.Args[i+1]); err != nil {
				return one(Fail, again+" with the right --config", "%s: its settings file %s is not there", where, e.Args[i+1])
			}
		}
	}
	if filepath.IsAbs(e.Command) && !pathname.Same(e.Command, d.Program) && !strings.Contains(filepath.ToSlash(d.Program), "/go-build") {
		return one(Warn, again, "%s: it starts %s, and this is %s", where, e.Command, d.Program)
	}
	return one(OK, "", "%s starts %s", where, e.Command)
}

// filesystem checks the filesystem server where one is configured beside
// reprise: its directories exist, and the memory directory is in one of them.
func (d Doctor) filesystem(context.Context) []Finding {
	h, err := d.Load()
	if err != nil {
		return one(Info, "", "not looked at, because the settings are wrong")
	}
	var out []Finding
	for _, t := range d.targets() {
		e, ok, err := Find(t, FilesystemName)
		dirs := e.FilesystemDirs()
		if err != nil || !ok || dirs == nil {
			continue
		}
		where := fmt.Sprintf("%s (%s)", t.Client, t.Scope)
		healthy := true
		for _, dir := range dirs {
			if !isDir(dir) {
				healthy = false
				out = append(out, one(Fail, "correct it in "+t.File, "%s: its directory %s is not there, so the server does not start", where, dir)...)
			}
		}
		if !insideAny(dirs, h.MemoryDir()) {
			healthy = false
			out = append(out, one(Warn, fmt.Sprintf("run `reprise mcp install %s --scope %s --with-filesystem %s`", t.Client, t.Scope, h.MemoryDir()),
				"%s: the memory directory %s is in none of its directories", where, h.MemoryDir())...)
		}
		if healthy {
			out = append(out, one(OK, "", "%s: %d directories, the memory is in one of them", where, len(dirs))...)
		}
	}
	if len(out) == 0 {
		return one(Info, "", "not configured; reprise's own tools do without it")
	}
	return out
}

// instructions looks at the files that clients read at each session's start:
// what is long is paid for every time, and what is secret is sent every time.
func (d Doctor) instructions(context.Context) []Finding {
	var out []Finding
	var seen []string
	for _, t := range d.targets() {
		if t.Doc == "" || slices.Contains(seen, t.Doc) {
			continue
		}
		seen = append(seen, t.Doc)
		data, err := durable.Read(t.Doc)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			out = append(out, one(Warn, "check its permissions", "%v", err)...)
			continue
		}
		text := string(data)
		healthy := true
		if n := d.Secrets(text); n > 0 {
			healthy = false
			out = append(out, one(Fail, "move it to an environment variable, and change it: it was sent with every session", "%s: %d strings look like credentials", t.Doc, n)...)
		}
		// The lean target is for what every spawned agent loads too.
		if n := mdfile.Tokens(text); n > InstructionsBudget && t.Scope == User {
			healthy = false
			out = append(out, one(Warn, "keep what every agent needs, and move the rest to memory or a project's file", "%s: about %d tokens, read at the start of every session; %d is lean", t.Doc, n, InstructionsBudget)...)
		}
		if _, _, _, err := section(data); err != nil {
			healthy = false
			out = append(out, one(Warn, "mend the marks by hand", "%s: %v", t.Doc, err)...)
		}
		if healthy {
			out = append(out, one(OK, "", "%s: about %d tokens", t.Doc, mdfile.Tokens(text))...)
		}
	}
	if len(out) == 0 {
		return one(Info, "", "none")
	}
	return out
}
