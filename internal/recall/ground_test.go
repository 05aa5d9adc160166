package recall

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

// TestChangeWhileLoading: a change by another process that comes while the list
// of files is read must be noticed afterwards. It once was not, and the next
// update of the index failed because a file was in it already.
func TestChangeWhileLoading(t *testing.T) {
	x, _ := newIndex(t)
	search(t, x, "sourdough")
	x.places[0].files = nil
	other, err := sqlite3.OpenFlags(x.o.IndexFile, sqlite3.OPEN_READWRITE)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := x.db.foreign(); err != nil {
		t.Fatal(err)
	}
	if err := other.Exec(`INSERT INTO files(source, name, hash) VALUES('', 'blocks/project-new.md', 'x')`); err != nil {
		t.Fatal(err)
	}
	if err := x.known(x.places[0]); err != nil {
		t.Fatal(err)
	}
	if changed, err := x.db.foreign(); err != nil || !changed {
		t.Errorf("the change is not noticed: %v %v", changed, err)
	}
	if err := x.known(x.places[0]); err != nil {
		t.Fatal(err)
	}
	if _, known := x.places[0].files["blocks/project-new.md"]; !known {
		t.Error("the change is not loaded")
	}
}

// TestIndexHasWhatIsRemembered: should the two differ nonetheless, the index is
// built anew instead of failing each search.
func TestIndexHasWhatIsRemembered(t *testing.T) {
	x, dir := newIndex(t)
	search(t, x, "sourdough")
	write(t, dir, "blocks/project-new.md", "# New\n\nokapi\n")
	search(t, x, "okapi")
	delete(x.places[0].files, "blocks/project-new.md")
	if len(search(t, x, "okapi")) != 1 {
		t.Error("not found once")
	}
}

// TestIndexIsPrivate: it holds the text of the memory, whose files are private.
func TestIndexIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits there")
	}
	x, _ := newIndex(t)
	if err := os.MkdirAll(filepath.Dir(x.o.IndexFile), 0o755); err != nil {
		t.Fatal(err)
	}
	search(t, x, "sourdough")
	fi, err := os.Stat(x.o.IndexFile)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", fi.Mode(), err)
	}
}

// TestLongPath: SQLite's driver panics on a path that the system still takes.
func TestLongPath(t *testing.T) {
	x, _ := newIndex(t)
	x.o.IndexFile = filepath.Join(filepath.Dir(x.o.IndexFile), strings.Repeat(strings.Repeat("d", 100)+"/", 12), "index.db")
	if first(search(t, x, "sourdough")) != "core.md|Core > Key facts|5" {
		t.Error("not found")
	}
}
