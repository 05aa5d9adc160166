package cli

import (
	"context"
	"errors"
	"os"
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
