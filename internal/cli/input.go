package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"reprise/internal/term"
)

// readInput reads standard input to its end, and refuses more of it than most bytes.
// At a terminal it says that it is waiting, and for what. A request to stop
// ends it at once: the read itself cannot be taken back, and goes on unseen for
// as long as the process lives.
func readInput(ctx context.Context, app *App, what string, most int64) (string, error) {
	if app.InIsTerminal {
		fmt.Fprintf(app.Err, "Type %s. A line with only %s ends it, Ctrl-C gives up.\n", what, endOfInput(app.Env.GOOS))
	}
	data, err := interruptible(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(app.In, most+1)) })
	if err != nil {
		if app.InIsTerminal && ctx.Err() != nil {
			fmt.Fprintln(app.Err) // the terminal shows ^C, and stays behind it
		}
		return "", fmt.Errorf("read %s from standard input: %w", what, err)
	}
	if int64(len(data)) > most { // a part of it might be taken for the whole
		return "", usagef("read %s from standard input: it is longer than %d bytes, the most that are read", what, most)
	}
	return string(data), nil
}

// readNamed reads a file that the user named, or what a pipe of that name gives, to its end,
// and refuses more of it than most bytes: not every file has a size, or an end. A request to
// stop ends it at once, as in [readInput].
func readNamed(ctx context.Context, path string, most int64) ([]byte, error) {
	data, err := interruptible(ctx, func() ([]byte, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, most+1))
	})
	if err == nil && int64(len(data)) > most {
		return nil, fmt.Errorf("%s is longer than %d bytes, the most that are read", path, most)
	}
	return data, err
}

// interruptible is read, or the end of ctx where that comes first.
func interruptible[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type answer struct {
		data T
		err  error
	}
	ready := make(chan answer, 1)
	go func() {
		data, err := read()
		ready <- answer{data, err}
	}()
	select {
	case a := <-ready:
		return a.data, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func endOfInput(goos string) string {
	if goos == "windows" {
		return "Ctrl-Z"
	}
	return "Ctrl-D"
}

// prompt shows a question, broken between words where the terminal is narrower, and
// leaves the cursor behind it.
func (a *App) prompt(question string) {
	fmt.Fprint(a.Out, strings.TrimSuffix(wrapLine(question, max(a.Columns-1, 0)), "\n")+" ")
}

// confirm asks a question until its answer is yes or no; an empty line means what byDefault
// says. Where no answer comes it is no, with an error where the default is yes.
func (a *App) confirm(ctx context.Context, question string, byDefault bool) (bool, error) {
	choice := "[y/N]"
	if byDefault {
		choice = "[Y/n]"
	}
	a.prompt(question + " " + choice)
	yes, err := a.yesOrNo(ctx, byDefault)
	if errors.Is(err, errNoAnswer) && !byDefault {
		err = nil
	}
	return yes, err
}

var errNoAnswer = errors.New("no answer came")

// yesOrNo reads answers to a question that was asked until one is yes or no.
func (a *App) yesOrNo(ctx context.Context, byDefault bool) (bool, error) {
	for {
		line, err := a.answered(ctx)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(line) {
		case "":
			return byDefault, nil
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
		a.prompt(fmt.Sprintf("%s is neither yes nor no. Which is it?", term.SafeLine(clipText(line, 40))))
	}
}

// answered is what ask has read; errNoAnswer where nobody is there, and the context's error
// where that has ended.
func (a *App) answered(ctx context.Context) (string, error) {
	line, err := a.ask(ctx)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && line == "":
		return "", errNoAnswer
	}
	return line, nil
}

// ask reads one line of an answer, and no byte beyond it: the next question
// reads on from there.
func (a *App) ask(ctx context.Context) (string, error) {
	line, err := interruptible(ctx, func() (string, error) {
		var line []byte
		for b := make([]byte, 1); ; {
			n, err := a.In.Read(b)
			if n > 0 && b[0] != '\n' && len(line) < 4096 {
				line = append(line, b[0])
			}
			if n > 0 && b[0] == '\n' || err != nil {
				return strings.TrimSpace(string(line)), err
			}
		}
	})
	if err != nil && a.InIsTerminal && a.OutIsTerminal {
		fmt.Fprintln(a.Out) // the cursor stands behind the question, or behind ^C
	}
	return line, err
}
