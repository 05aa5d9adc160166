package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/durable"
)

// Identities gives clients and agents names of this installation's own. What
// clients call their agents ("agent-a6f0c1…", a session's number) means nothing
// elsewhere and may tell more than it should; a local name, such as
// "claude-2", is stable and can stand in memory that is shared.
//
// The file is JSON: {"v":1,"identities":[{"id","client","name","since"}]}. Lock:
// <file>.lock, from the read to the write.
type Identities struct {
	File string
	Now  func() time.Time
	Disk durable.Disk
}

// Identity is one of them.
type Identity struct {
	ID     string    `json:"id"`
	Client string    `json:"client"`
	Name   string    `json:"name,omitempty"` // as the client calls the agent; empty is the client itself
	Since  time.Time `json:"since"`
}

type identityFile struct {
	V          int        `json:"v"`
	Identities []Identity `json:"identities"`
}

// Of returns the local name of a client's agent, giving it one at the first
// time. The client itself (an empty name) is called by its own name.
func (i Identities) Of(ctx context.Context, client, name string) (string, error) {
	client = cmp.Or(slug(client), "agent")
	if name == "" || name == client {
		return client, nil
	}
	list, err := i.List()
	if err != nil {
		return "", err
	}
	if id, ok := findIdentity(list, client, name); ok {
		return id, nil
	}
	if err := i.Disk.MkdirAll(filepath.Dir(i.File), dirPerm); err != nil {
		return "", fmt.Errorf("identities: %w", err)
	}
	unlock, err := i.Disk.Lock(ctx, i.File+".lock")
	if err != nil {
		return "", fmt.Errorf("identities: %w", err)
	}
	defer unlock()
	if list, err = i.List(); err != nil { // again, now that nobody else is at it
		return "", err
	}
	if id, ok := findIdentity(list, client, name); ok {
		return id, nil
	}
	n := 1
	for _, old := range list {
		if old.Client == client {
			n++
		}
	}
	id := fmt.Sprintf("%s-%d", client, n)
	list = append(list, Identity{ID: id, Client: client, Name: name, Since: i.Now().UTC().Truncate(time.Second)})
	data, err := json.MarshalIndent(identityFile{V: 1, Identities: list}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("identities: %w", err)
	}
	if err := i.Disk.WriteFile(i.File, append(data, '\n'), filePerm); err != nil {
		return "", fmt.Errorf("identities: %w", err)
	}
	return id, nil
}

func findIdentity(list []Identity, client, name string) (string, bool) {
	for _, x := range list {
		if x.Client == client && x.Name == name || x.ID == name {
			return x.ID, true
		}
	}
	return "", false
}

// List returns all of them in the order in which they came. A file that cannot
// be read is an error: to begin anew would give a name to another agent.
func (i Identities) List() ([]Identity, error) {
	d, err := i.Disk.OpenDir(filepath.Dir(i.File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("identities: %w", err)
	}
	defer d.Close()
	data, err := d.ReadFile(filepath.Base(i.File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("identities: %w", err)
	}
	var f identityFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("identities: %s cannot be read: %w; mend it in an editor", i.File, err)
	}
	if f.V != 1 {
		return nil, fmt.Errorf("identities: %s has format %d, which this program does not know; install a newer reprise", i.File, f.V)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(f.Identities, func(x Identity) bool {
		bad := x.ID == "" || seen[x.ID] || strings.ContainsAny(x.ID, " \r\n")
		seen[x.ID] = true
		return bad
	}), nil
}
