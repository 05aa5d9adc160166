package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/fleet/fleettest"
	"reprise/internal/proc"
	"reprise/internal/queue"
)

// On a machine whose clock is hours off, a lease of a fleet's item is told by the servers' clock.
func TestLeasesAreToldByTheServersClock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte("queue: "+fleettest.Server(t).ClientURL()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var notes said
	wrong := func() time.Time { return time.Now().Add(2 * time.Hour) }
	app := &App{Out: &notes, Err: &notes, Env: config.Env{Dir: dir, Now: wrong, Vars: map[string]string{"HOME": dir}}, ConfigFlag: file, Hostname: "here"}
	defer app.Close()
	q, err := app.Queue(proc.ID{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Add(t.Context(), queue.Item{ID: "a", Title: "A"}); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Claim(t.Context(), queue.ClaimOptions{Worker: "w", Lease: time.Hour}); err != nil {
		t.Fatal(err)
	}
	it, err := q.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(app.detail(&it), "; "); !strings.Contains(text, "w has it for") {
		t.Errorf("it is told as %q", text)
	}
}
