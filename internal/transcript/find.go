package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
)

// Clients are those whose transcripts can be read.
func Clients() []string { return []string{"claude", "codex", "gemini", "copilot"} }

// Places are the clients' own directories, by client.
type Places map[string]string

// FindPlaces says where the clients keep their files: where their own variables
// say, else below the home directory.
func FindPlaces(env config.Env) (Places, error) {
	p := Places{}
	for _, client := range Clients() {
		of := client
		if of == "claude" {
			of = "claude-code"
		}
		dir, err := env.ClientDir(of)
		if err != nil {
			return nil, err
		}
		p[client] = dir
	}
	return p, nil
}

// Source is one transcript.
type Source struct {
	Client  string
	Path    string // for people
	Size    int64  // bytes
	Mod     time.Time
	Session string // as far as its name says
	// Agent is the id of the subagent whose file it is, AgentType its kind.
	Agent, AgentType string
	// Cwd is where the session worked, where that does not stand in the file.
	Cwd string

	root *os.Root
	name string // below root
}

// Found are the transcripts of the clients. Close it when they have been read.
type Found struct {
	Sources []Source
	// Bad are places that could not be looked at.
	Bad   []error
	roots []*os.Root
}

// Close lets go of the clients' directories.
func (f *Found) Close() {
	for _, r := range f.roots {
		_ = r.Close() // only read from
	}
}

// Find looks for transcripts, oldest first. A client that is not there has
// none. Links that lead out of a client's directory are not followed, and what
// is no regular file is left alone.
func Find(places Places, clients []string) *Found {
	f := &Found{}
	for _, client := range Clients() {
		dir, ok := places[client]
		if !ok || len(clients) > 0 && !slices.Contains(clients, client) {
			continue
		}
		root, err := durable.OpenRoot(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			f.Bad = append(f.Bad, fmt.Errorf("look for transcripts of %s: %w", client, err))
			continue
		}
		f.roots = append(f.roots, root)
		switch client {
		case "claude":
			f.walk(root, client, "projects", claudeSource)
		case "codex":
			f.walk(root, client, "sessions", codexSource)
			f.walk(root, client, "archived_sessions", codexSource)
		case "gemini":
			dirs := geminiDirs(root)
			f.walk(root, client, "tmp", func(s *Source) bool { return geminiSource(s, dirs) })
		case "copilot":
			f.walk(root, client, "session-state", copilotSource)
		}
	}
	slices.SortStableFunc(f.Sources, func(a, b Source) int {
		if c := a.Mod.Compare(b.Mod); c != 0 {
			return c
		}
		return strings.Compare(a.Path, b.Path)
	})
	return f
}

// walk adds the files below dir that take wants.
func (f *Found) walk(root *os.Root, client, dir string, take func(*Source) bool) {
	err := fs.WalkDir(root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				f.Bad = append(f.Bad, fmt.Errorf("look for transcripts of %s: %w", client, err))
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		s := Source{Client: client, root: root, name: name, Path: filepath.Join(root.Name(), filepath.FromSlash(name))}
		if !take(&s) {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil // gone meanwhile
		}
		s.Size, s.Mod = info.Size(), info.ModTime()
		f.Sources = append(f.Sources, s)
		return nil
	})
	if err != nil {
		f.Bad = append(f.Bad, fmt.Errorf("look for transcripts of %s: %w", client, err))
	}
}

// claudeSource: projects/<slug>/<session>.jsonl and
// projects/<slug>/<session>/subagents/agent-<id>.jsonl.
func claudeSource(s *Source) bool {
	parts := strings.Split(s.name, "/")
	id, ok := strings.CutSuffix(path.Base(s.name), ".jsonl")
	switch {
	case !ok:
		return false
	case len(parts) == 3:
		s.Session = id
	case len(parts) == 5 && parts[3] == "subagents":
		s.Session, s.Agent = parts[2], strings.TrimPrefix(id, "agent-")
		var meta struct {
			Type string `json:"agentType"`
		}
		data, err := readSmall(s.root, strings.TrimSuffix(s.name, ".jsonl")+".meta.json")
		if err != nil {
			return true // older versions say no more of it
		}
		// A subagent without a kind is the client's own, which sums up or
		// guesses what the user may want next.
		ok = json.Unmarshal(data, &meta) == nil
		s.AgentType = meta.Type
		return !ok || s.AgentType != ""
	default:
		return false
	}
	return true
}

// codexSource: sessions/YYYY/MM/DD/rollout-<time>-<session>.jsonl.
func codexSource(s *Source) bool {
	name, ok := strings.CutSuffix(path.Base(s.name), ".jsonl")
	if !ok || !strings.HasPrefix(name, "rollout-") {
		return false
	}
	if len(name) > 36 {
		s.Session = name[len(name)-36:]
	}
	return true
}

// geminiSource: tmp/<project>/chats/session-<time>-<start of the id>.jsonl.
func geminiSource(s *Source, dirs map[string]string) bool {
	parts := strings.Split(s.name, "/")
	ext := path.Ext(s.name)
	if len(parts) < 4 || parts[2] != "chats" || ext != ".jsonl" && ext != ".json" || !strings.HasPrefix(path.Base(s.name), "session-") {
		return false
	}
	s.Cwd = dirs[parts[1]]
	if data, err := readSmall(s.root, path.Join("tmp", parts[1], ".project_root")); err == nil {
		s.Cwd = strings.TrimSpace(string(data))
	}
	return true
}

// geminiDirs are the directories that Gemini CLI knows, by the name of their
// folder below tmp: a short name, and in older versions the path's SHA-256.
func geminiDirs(root *os.Root) map[string]string {
	out := map[string]string{}
	var p struct {
		Projects map[string]string `json:"projects"`
	}
	data, err := readSmall(root, "projects.json")
	if err == nil && json.Unmarshal(data, &p) == nil {
		for dir, name := range p.Projects {
			out[name] = dir
			sum := sha256.Sum256([]byte(dir))
			out[hex.EncodeToString(sum[:])] = dir
		}
	}
	return out
}

// copilotSource: session-state/<session>/events.jsonl.
func copilotSource(s *Source) bool {
	parts := strings.Split(s.name, "/")
	if len(parts) != 3 || parts[2] != "events.jsonl" {
		return false
	}
	s.Session = parts[1]
	return true
}

// readSmall reads a file of at most 1 MiB.
func readSmall(root *os.Root, name string) ([]byte, error) {
	f, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const most = 1 << 20
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("%s is longer than %d bytes", name, most)
	}
	return data, err
}

// openRegular opens a file for reading, and nothing that is none: a pipe would
// be waited for.
func openRegular(root *os.Root, name string) (*os.File, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	return root.Open(name)
}
