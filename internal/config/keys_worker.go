package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Worker says what `reprise worker` does on this machine. Only the user's own settings
// have this section: what stands in a queue cannot make a machine clone anything.
type Worker struct {
	Name string // "" is the machine's name
	// Directory is where its clones are; "" is reprise-worker in the user's home. It cannot be
	// below reprise's own directories, which agents must not change.
	Directory string
	Clients   []string // that work here; none are those that are found, beside the default one
	Can       []string // what items may need, beside clients: a label needs-X wants X in it
	// Projects are those that it works for, in the order of the file.
	Projects []WorkerProject
}

// WorkerProject is a project that a worker works for, and where it is cloned from.
type WorkerProject struct {
	Name   string
	Remote string // of the code
	Branch string // that work begins at; "" is the remote's own choice
	State  string // remote of what agents know; "" exchanges nothing
}

// maxWorkerProjects bounds how many there are.
const maxWorkerProjects = 200

func workerKeys() []key {
	return []key{
		strKey("worker.name", "what this worker is called in the queue; empty: the machine's name", func(s *Settings) *string { return &s.Worker.Name }, checkWorkerName),
		strKey("worker.directory", "where its clones are; empty: reprise-worker in your home", func(s *Settings) *string { return &s.Worker.Directory }, checkDir),
		listKey("worker.clients", "clients that work here; empty: those that are found, and sub_agent.agent", func(s *Settings) *[]string { return &s.Worker.Clients }, checkWorkClient),
		listKey("worker.can", "what this machine has that items may need: one with the label needs-gpu goes where gpu is named", func(s *Settings) *[]string { return &s.Worker.Can }, checkCan),
		{
			"worker.projects", "by name: remote, branch and state of the projects that this machine clones and works for; it works for no other",
			func(l *loader, n ast.Node) { l.out.Worker.Projects = l.workerProjects(n) },
			func(s Settings) any { return workerMap(s.Worker.Projects) }, nil,
		},
	}
}

// workerMap are projects as the settings have them, in their order, as JSON.
type workerMap []WorkerProject

// MarshalJSON implements json.Marshaler.
func (m workerMap) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		fields, err := json.Marshal(struct {
			Remote string `json:"remote"`
			Branch string `json:"branch,omitempty"`
			State  string `json:"state,omitempty"`
		}{p.Remote, p.Branch, p.State})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%q:%s", p.Name, fields) // a project's name needs no escapes
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (d *document) workerProjects(n ast.Node) (out []WorkerProject) {
	entries, ok := d.mapping("worker.projects", n)
	if !ok {
		return nil
	}
	if len(entries) > maxWorkerProjects {
		d.add(n, "worker.projects", fmt.Sprintf("has %d projects, the most is %d", len(entries), maxWorkerProjects), "remove some")
		return nil
	}
	for _, e := range entries {
		p := WorkerProject{Name: strings.TrimPrefix(e.key, "worker.projects.")}
		if err := CheckProjectName(p.Name); err != nil {
			d.add(e.node, e.key, err.Error(), "write the name that the project's own .reprise/project.yaml has")
			continue
		}
		fields, ok := d.mapping(e.key, e.value)
		if !ok {
			continue
		}
		for _, f := range fields {
			d.workerField(&p, e.key, f)
		}
		if p.Remote == "" {
			d.add(e.node, e.key, "has no remote", "write the address that git clones it from: remote: git@example.org:team/"+p.Name+".git")
		}
		out = append(out, p)
	}
	return out
}

func (d *document) workerField(p *WorkerProject, project string, f entry) {
	field, c := (*string)(nil), checkRemote
	switch strings.TrimPrefix(f.key, project+".") {
	case "remote":
		field = &p.Remote
	case "state":
		field = &p.State
	case "branch":
		field, c = &p.Branch, checkBranch
	default:
		d.add(f.node, f.key, "is not a setting of a worker's project", RemoveIt+"there are remote, branch and state")
		return
	}
	text, ok := d.str(f.key, f.value)
	if !ok {
		return
	}
	value, problem, remedy := c(Env{}, text)
	if problem != "" {
		d.add(f.value, f.key, problem, remedy)
	}
	*field = value
}

// checkRemote wants what git takes for an address and for nothing else: an option, or a
// transport that runs a command (ext::), is none.
func checkRemote(e Env, text string) (string, string, string) {
	switch {
	case strings.HasPrefix(text, "-"):
		return "", fmt.Sprintf("%q is one that git takes for an option", shown(text)), "write the address of a repository"
	case strings.Contains(text, "::"):
		return "", fmt.Sprintf("%q names a transport that runs a program", shown(text)), "write an ssh, https or file address, or a path"
	}
	return checkWord(e, text)
}

func checkBranch(e Env, text string) (string, string, string) {
	if strings.HasPrefix(text, "-") || strings.ContainsAny(text, " ~^:?*[\\") || strings.Contains(text, "..") {
		return "", fmt.Sprintf("%q is no branch", shown(text)), "write a branch of the remote, such as main"
	}
	return checkWord(e, text)
}

// checkWorkerName wants what can stand in names of subjects and keys.
func checkWorkerName(e Env, text string) (string, string, string) {
	if !IsWorkerName(text) {
		return "", fmt.Sprintf("%q is no name for a worker", shown(text)), "use 1 to 63 letters, digits, '-' and '_'"
	}
	return text, "", ""
}

// IsWorkerName reports whether a worker can have the name: 1 to 63 letters, digits, "-"
// and "_".
func IsWorkerName(text string) bool {
	return text != "" && len(text) <= 63 && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
}

func checkWorkClient(_ Env, text string) (string, string, string) {
	if !slices.Contains(routeClients[:], text) {
		return "", fmt.Sprintf("%q is no client that can work in a loop", shown(text)), "write one of " + strings.Join(routeClients[:], ", ")
	}
	return text, "", ""
}

// checkClient is of a client that a run may have: one that a loop has, too, or a program of
// one's own.
func checkClient(_ Env, text string) (string, string, string) {
	clients := append(slices.Clone(routeClients[:]), "generic")
	if !slices.Contains(clients, text) {
		return "", fmt.Sprintf("%q is no client that can be started", shown(text)), "write one of " + strings.Join(clients, ", ")
	}
	return text, "", ""
}

func checkCan(e Env, text string) (string, string, string) {
	if strings.ContainsAny(text, " ,") || strings.HasPrefix(text, "needs-") {
		return "", fmt.Sprintf("%q is no word that a label needs-… can have", shown(text)), "write it as labels have it after needs-, such as gpu"
	}
	return checkWord(e, text)
}
