package recall

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"reprise/internal/durable"
)

// Programs of two versions use one cache, as after an update while a client's server lives
// on: neither takes from the other what it has made, however often they take turns.
func TestVersionsKeepTheirOwnIndex(t *testing.T) {
	x, dir := newIndex(t)
	base := x.o.IndexFile
	write(t, dir, "blocks/reference-zoo.md", "# Zoo\n\nThe okapi eats leaves.\n")
	const q = "okapi leaves"
	// The program of before keeps base itself, which is of another version than this one's.
	if len(search(t, x, q)) == 0 {
		t.Fatal("not found")
	}
	x.Close()
	execSQL(t, base, "PRAGMA user_version="+strconv.Itoa(version-100))
	newer := filepath.Join(filepath.Dir(base), "index-v"+strconv.Itoa(version+1)+"-1.db")
	for _, f := range []string{base, newer} {
		if err := os.WriteFile(f+".told", nil, 0o600); err != nil { // no index
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(base)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(newer, data, 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	o := x.o
	o.IndexFile, o.Now = FileFor(base, "9"), func() time.Time { return now }
	if want := filepath.Join(filepath.Dir(base), "index-v"+strconv.Itoa(version)+"-9.db"); o.IndexFile != want {
		t.Fatalf("kept at %s, want %s", o.IndexFile, want)
	}
	y := Open(o)
	if len(search(t, y, q)) == 0 {
		t.Fatal("not found")
	}
	for _, f := range []string{base, newer} {
		if got, err := os.ReadFile(f); err != nil || string(got) != string(data) {
			t.Errorf("%s was changed by another version: %v", f, err)
		}
	}

	there := func(f string) bool { _, err := os.Lstat(f); return err == nil }
	sweep := func() {
		t.Helper()
		if err := y.Sweep(); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if !there(base) {
		t.Error("an index that was used a moment ago is swept")
	}
	now = now.Add(15 * 24 * time.Hour)
	unlock, err := durable.TryLock(base + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	sweep()
	if !there(base) {
		t.Error("an index that another process is writing is swept")
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	sweep()
	if there(base) || there(base+"-journal") || !there(newer) || !there(o.IndexFile) || !there(base+".told") || !there(base+".lock") {
		t.Error("not the old index alone is swept")
	}

	// What is purged stands in no other version's either; another memory's is not meant.
	other := filepath.Join(filepath.Dir(base), "index-0123456789ab-v1-1.db")
	if err := os.WriteFile(other, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := y.DropOthers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if there(newer) || !there(other) || !there(o.IndexFile) {
		t.Error("not the same memory's indexes alone are dropped")
	}
	if err := y.Close(); err != nil {
		t.Fatal(err)
	}
}

// An index that is only read is in use: its time says so, at most once a day.
func TestReadingIsUse(t *testing.T) {
	x, _ := newIndex(t)
	search(t, x, "okapi")
	x.Close()
	now := time.Now().Add(100 * time.Hour)
	o := x.o
	o.Now = func() time.Time { return now }
	y := Open(o)
	search(t, y, "okapi")
	for range 2 {
		info, err := os.Stat(o.IndexFile)
		if err != nil || now.Sub(info.ModTime()) > noteUse {
			t.Fatalf("%v, %v after its use", err, now.Sub(info.ModTime()))
		}
		now = now.Add(100 * time.Hour) // of one process that stays
		search(t, y, "okapi")
	}
	y.Close()
}
