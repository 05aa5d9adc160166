package config

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"reprise/internal/durable"
)

// Trust is whether the user approved what a project's file asks for. It is
// about one exact text: another one has to be approved anew.
type Trust struct {
	Asks     []string  `json:"asks"`     // settings that need an approval; none: nothing to approve
	Says     *Project  `json:"-"`        // what this very text says
	Approved bool      `json:"approved"` // this very text
	At       time.Time `json:"at,omitzero"`
	Hash     string    `json:"hash"` // SHA-256 of the file, hex
	// Before is the text that was approved last, where it is another one.
	Before string `json:"before,omitempty"`
	Text   string `json:"text"`
	// Was is the name that the project had when the text was approved, where that is another
	// one: by a name alone nobody could tell that gates are off.
	Was string `json:"-"`
}

// Lapsed reports whether the text that was approved last had checks, and this one is not
// approved: gates that the user counts on are off, whatever this text says.
func (t Trust) Lapsed() bool {
	if t.Approved || t.Before == "" {
		return false
	}
	before, err := ParseProject("project.yaml", []byte(t.Before))
	return err == nil && !before.Verify.Empty()
}

// trustRecord is <data>/projects/<name>/trust.json. It is the user's own, out of
// the repository's reach.
type trustRecord struct {
	V    int       `json:"v"`
	Root string    `json:"root"` // the checkout whose file it was
	Hash string    `json:"hash"`
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// TrustFile is where it stands what the user approved of a project's file.
func (paths Paths) TrustFile(p *Project) string {
	return filepath.Join(paths.ProjectDir(p.Name), "trust.json")
}

// Trust compares a project's file with what was approved. A record that cannot
// be read approves nothing.
func (paths Paths) Trust(p *Project) (Trust, error) {
	text, err := readFile(p.File())
	if err != nil {
		return Trust{}, err
	}
	now, err := ParseProject(p.File(), text)
	if err != nil {
		return Trust{}, ofLink(p.Root, p.File(), err)
	}
	t := Trust{Asks: now.Asks, Says: now, Text: string(text), Hash: fmt.Sprintf("%x", sha256.Sum256(text))}
	data, err := durable.Read(paths.TrustFile(p))
	if errors.Is(err, fs.ErrNotExist) {
		lost, err := paths.lostAt([]string{p.Root}, "")
		if err == nil && lost != nil {
			t.Was, t.Before = lost.Project.Name, lost.Trust.Before
		}
		return t, err
	}
	if err != nil {
		return t, fmt.Errorf("read what was approved of project %s: %w", p.Name, err)
	}
	var r trustRecord
	if err := json.Unmarshal(data, &r); err != nil || r.V != 1 {
		return t, fmt.Errorf("read what was approved of project %s: %s is damaged; `reprise trust` writes it anew", p.Name, paths.TrustFile(p))
	}
	if r.Hash == t.Hash && r.Text == t.Text {
		t.Approved, t.At = true, r.At
	} else {
		t.Before = r.Text
	}
	return t, nil
}

// Approve notes that the user approved a project's file as it is in t. If the
// file is another one by now, nothing is noted.
func (paths Paths) Approve(ctx context.Context, p *Project, t Trust, now time.Time) error {
	text, err := readFile(p.File())
	if err != nil {
		return err
	}
	if string(text) != t.Text {
		return fmt.Errorf("approve %s: it changed while you were looking at it; look again", p.File())
	}
	if err := paths.Claim(ctx, p, "", now); err != nil {
		return err
	}
	data, err := json.MarshalIndent(trustRecord{V: 1, Root: p.Root, Hash: t.Hash, At: now.UTC(), Text: t.Text}, "", "  ")
	if err != nil {
		return fmt.Errorf("approve %s: %w", p.File(), err)
	}
	if err := durable.WriteFile(paths.TrustFile(p), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("approve %s: %w", p.File(), err)
	}
	return nil
}

// Revoke takes an approval back, and those that the file had when the project had another name.
// There may be none.
func (paths Paths) Revoke(p *Project) error {
	for {
		if err := durable.Remove(paths.TrustFile(p)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("take back the approval of %s: %w", p.File(), err)
		}
		was, err := paths.lostAt([]string{p.Root}, "")
		if err != nil || was == nil {
			return err
		}
		p = was.Project
	}
}
