package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A request to stop ends a command that waits for standard input. The read
// itself cannot be cancelled, and used to be waited for: Ctrl-C did nothing
// while a person was asked for a text, and what was typed next became it.
func TestInputStopsWithContext(t *testing.T) {
	in, typing, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer typing.Close()
	var said strings.Builder
	app := &App{In: in, Err: &said, InIsTerminal: true}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := textArg(ctx, app, "-")
		ended <- err
	}()
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the end of the context", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("still waiting for input a minute after it was to stop")
	}
	if !strings.Contains(said.String(), "Ctrl-D") {
		t.Errorf("it said %q; a person has to know that it waits, and how to end", said.String())
	}

	// A pipe is read in silence, to its end.
	said.Reset()
	app = &App{In: strings.NewReader("text"), Err: &said}
	if got, err := textArg(t.Context(), app, "-"); got != "text" || err != nil || said.Len() > 0 {
		t.Errorf("got %q, %v, and it said %q", got, err, said.String())
	}
}

// What a person names may have neither a size nor an end: it is read up to the most that
// is taken.
func TestReadNamed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := readNamed(t.Context(), file, 4); err != nil || string(data) != "four" {
		t.Errorf("%q, %v", data, err)
	}
	endless := file
	if _, err := os.Stat("/dev/zero"); err == nil {
		endless = "/dev/zero"
	}
	if data, err := readNamed(t.Context(), endless, 3); err == nil || !strings.Contains(err.Error(), "longer than 3 bytes") {
		t.Errorf("%q, %v", data, err)
	}
}
