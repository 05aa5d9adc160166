package agent

import (
	"context"
	"errors"
)

type claude struct{}

func (claude) Name() string                  { return KindClaude }
func (claude) Command(Task) (Command, error) { return Command{}, errors.New("not yet") }
func (claude) NewStream() Stream             { return nil }

type script struct{}

func (script) Name() string                  { return KindScript }
func (script) Command(Task) (Command, error) { return Command{}, errors.New("not yet") }
func (script) NewStream() Stream             { return nil }

type generic struct{}

func (generic) Name() string                  { return KindGeneric }
func (generic) Command(Task) (Command, error) { return Command{}, errors.New("not yet") }
func (generic) NewStream() Stream             { return nil }

// Info is what a program said about itself.
type Info struct {
	Kind    string // KindClaude or KindGeneric
	Version string // "" when it did not say
	Path    string // the program asked
}

// Detect asks a program for its version.
func Detect(ctx context.Context, program string, env []string) (Info, error) {
	return Info{}, errors.New("not yet")
}
