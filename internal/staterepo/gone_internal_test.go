package staterepo

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/internal/git"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
)

// The place of an agent may be taken away between the moment in which agents are listed
// and that in which their files are read: then they are read as they were committed.
// The dashboard showed an error in place of its page.
func TestPlaceGoneWhileLooking(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	vars := map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "c", "GIT_AUTHOR_EMAIL": "c@example.org", "GIT_COMMITTER_NAME": "c", "GIT_COMMITTER_EMAIL": "c@example.org"}
	r := New(Options{Dir: filepath.Join(dir, "shop"), Project: "shop", Git: git.Options{Vars: vars}, Now: time.Now})
	tree, err := r.CreateAgent(t.Context(), "tidy", filepath.Join(dir, "place"), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Add(t.Context(), memory.FullAccess, mdfile.Entry{Type: mdfile.TypeStart, Text: "Make the port a setting"}); err != nil {
		t.Fatal(err)
	}
	agents, err := r.Agents(t.Context())
	if err != nil || len(agents) != 1 || agents[0].Dir == "" {
		t.Fatalf("the agents are %+v, %v", agents, err)
	}
	a := agents[0]
	want, err := r.agentFiles(t.Context(), a, "changelog.md")
	if err != nil || len(want["changelog.md"]) == 0 {
		t.Fatalf("%q, %v", want, err)
	}
	a.Dir = filepath.Join(dir, "was taken away")
	got, err := r.agentFiles(t.Context(), a, "changelog.md")
	if err != nil || string(got["changelog.md"]) != string(want["changelog.md"]) {
		t.Errorf("after its place was taken away: %q, %v, want %q", got, err, want)
	}
}
