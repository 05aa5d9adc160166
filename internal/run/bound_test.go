package run

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/durable"
	"reprise/internal/proc"
)

// An agent that prints for ever does not fill the disk: of each file of its output the
// beginning and the end stay, the middle is given back, and the agent's own writing goes on.
func TestOutputIsBounded(t *testing.T) {
	dir := t.TempDir()
	s := &supervisor{bounds: outputBounds{head: 8 << 10, tail: 16 << 10, most: 64 << 10, whole: 1 << 20}, opt: SuperviseOptions{Dir: dir}}
	for _, name := range []string{"stdout.jsonl", "stderr.log"} {
		f, err := durable.Disk{}.CreateHot(filepath.Join(dir, name), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s.output = append(s.output, f)
	}
	in, err := os.Open(s.output[0].Name())
	if err != nil {
		t.Fatal(err)
	}
	s.tail = proc.NewTail(in, 1<<20)
	defer s.tail.Close()
	line := bytes.Repeat([]byte("x"), 1023)
	line = append(line, '\n')
	put := func(f *os.File, n int) {
		t.Helper()
		for range n {
			if _, err := f.Write(line); err != nil {
				t.Fatal(err)
			}
		}
	}
	follow := func() {
		t.Helper()
		for {
			if _, _, _, err := s.tail.Next(); err != nil {
				return
			}
		}
	}
	put(s.output[0], 63)
	put(s.output[1], 10)
	follow()
	s.bound(context.Background())
	if s.r.Logs.CutBytes != 0 {
		t.Fatalf("of what is short enough %d bytes are gone", s.r.Logs.CutBytes)
	}
	// What nobody has followed yet stays, however long it is.
	put(s.output[0], 201)
	s.bound(context.Background())
	if s.r.Logs.CutBytes != 0 {
		t.Fatalf("%d bytes are gone that were not followed", s.r.Logs.CutBytes)
	}
	follow()
	s.bound(context.Background())
	if errors.Is(durable.Hole(s.output[1], 0, block), errors.ErrUnsupported) {
		t.Skip("this file system gives no part of a file back")
	}
	const want = (264 - 16 - 8) << 10
	if s.r.Logs.CutBytes != want || s.stopped {
		t.Fatalf("%d bytes were given back, want %d (%q)", s.r.Logs.CutBytes, want, s.reason)
	}
	data, err := os.ReadFile(s.output[0].Name())
	if err != nil {
		t.Fatal(err)
	}
	if len(data) != 264<<10 || !bytes.HasPrefix(data, bytes.Repeat(line, 8)) || !bytes.HasSuffix(data, bytes.Repeat(line, 16)) {
		t.Errorf("%d bytes, beginning or end are not as they were", len(data))
	}
	if middle := data[8<<10 : 248<<10]; strings.Trim(string(middle), "\x00") != "" {
		t.Error("the middle is still there")
	}
	// It goes on, and only what came since is looked at.
	put(s.output[0], 5)
	follow()
	s.bound(context.Background())
	if s.r.Logs.CutBytes != want {
		t.Errorf("%d bytes by now, want %d", s.r.Logs.CutBytes, want)
	}
	put(s.output[0], 100)
	follow()
	s.bound(context.Background())
	if s.r.Logs.CutBytes != want+104<<10 {
		t.Errorf("%d bytes by now, want %d", s.r.Logs.CutBytes, want+104<<10)
	}
}
