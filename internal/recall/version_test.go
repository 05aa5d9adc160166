package recall

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/fact"
)

// After a new version of the index, whoever asks within a time gets an answer in
// it, from as much as could be taken in, and the next one goes on from there: a
// memory that takes longer than any client waits is still taken in.
func TestNewVersionIsBuiltByPieces(t *testing.T) {
	x, dir := newIndex(t)
	for i := range 40 {
		write(t, dir, fmt.Sprintf("blocks/reference-%02d.md", i), fmt.Sprintf("# Note %d\n\nThe okapi of stall %d eats leaves.\n", i, i))
	}
	const q = "okapi stall leaves"
	if len(search(t, x, q)) == 0 {
		t.Fatal("the files are not found")
	}
	want := search(t, x, "okapi stall 7")
	x.Close()
	execSQL(t, x.o.IndexFile, "PRAGMA user_version=99")
	synctest.Test(t, func(t *testing.T) {
		have := 0
		for round := 1; ; round++ {
			o := x.o
			o.Facts = func(string, string) []fact.Fact { time.Sleep(100 * time.Millisecond); return nil } // by the clock of the test
			y := Open(o)                                                                                  // each is a process of its own
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			began := time.Now()
			_, err := y.Search(ctx, Query{Text: q})
			took := time.Since(began)
			cancel()
			if err != nil || took > 1500*time.Millisecond {
				t.Fatalf("round %d: %v after %s", round, err, took)
			}
			st, err := y.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			y.Close()
			if st.Files == 43 {
				if round < 3 {
					t.Errorf("all at once in %d rounds", round)
				}
				break
			}
			if st.Files <= have || round > 43 {
				t.Fatalf("round %d: %d files, %d before", round, st.Files, have)
			}
			have = st.Files
		}
	})
	if diff := cmp.Diff(want, search(t, x, "okapi stall 7")); diff != "" {
		t.Error(diff)
	}
}
