package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
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
		return "", fmt.Errorf("read %s from standard input: %w", what, err)
	}
	if int64(len(data)) > most { // a part of it might be taken for the whole
		return "", usagef("read %s from standard input: it is longer than %d bytes, the most that are read", what, most)
	}
	return string(data), nil
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

// ask reads one line of an answer, and no byte beyond it: the next question
// reads on from there.
func (a *App) ask(ctx context.Context) (string, error) {
	return interruptible(ctx, func() (string, error) {
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
}
