package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/agent/dialect"
	"reprise/internal/agent/dialect/fixture"
	"reprise/internal/redact"
)

// recordLimit is how long a recording hook waits for its turn.
const recordLimit = 2 * time.Second

type recordFlags struct {
	client, event, version, note string
	most                         int
	settings                     bool
}

func newHookRecordCmd(app *App) *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use: "record DIR --client CLIENT [--event EVENT]", Short: "Be a client's hook that keeps what it is sent, and says nothing",
		Long: `Be a client's hook: read the payload from standard input and keep it below DIR as a
case, CLIENT/EVENT/{case.json,stdin.json,expected.json}. To the client nothing is
said; whatever goes wrong, the exit code is 0. Secrets, the ids of the session and
the paths of the user are taken out and long texts are cut; still, look at a case
before you give it to others.

The same payload is kept once. Of one event, only so many cases are kept.

--print-settings prints hooks for a whole session instead, in the form of the
client's settings: one such hook for each event that it has.`,
		Example: `  reprise hook record cases --client claude --print-settings > hooks.json
  claude --settings hooks.json -p "run the tests"
  reprise hook replay cases`,
		// Arguments are looked at here and not in Args, whose errors end with 2.
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &ExitError{Code: exitHookUsage, Err: errors.New("hook record takes the directory to record into")}
			}
			if dialect.ManifestOf(f.client) == nil {
				return &ExitError{Code: exitHookUsage, Err: fmt.Errorf("hook record --client: no client %.40q; there are %s", f.client, strings.Join(dialect.Clients(), ", "))}
			}
			dir, err := absPath(app, args[0])
			if err != nil {
				return &ExitError{Code: exitHookUsage, Err: err}
			}
			if f.settings {
				return printRecordSettings(app, f, dir)
			}
			// A client takes a failing hook for a verdict, so it is only told.
			if err := recordHook(cmd.Context(), app, f, dir); err != nil {
				printError(app.Err, fmt.Errorf("hook not recorded: %w", err))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&f.client, "client", "", "the client that starts the hook: "+strings.Join(dialect.Clients(), ", "))
	cmd.Flags().StringVar(&f.event, "event", "", "the event, where the payload does not name it (copilot)")
	cmd.Flags().StringVar(&f.version, "client-version", "", "the client's version, to be kept with the case")
	cmd.Flags().StringVar(&f.note, "note", "", "a note to be kept with the case")
	cmd.Flags().IntVar(&f.most, "max", 20, "keep at most so many cases of one event")
	cmd.Flags().BoolVar(&f.settings, "print-settings", false, "print the client's settings for recording a session, and record nothing")
	return cmd
}

func recordHook(ctx context.Context, app *App, f recordFlags, dir string) (err error) {
	defer func() {
		if r := recover(); r != nil { // a panic would exit with 2, which blocks
			err = fmt.Errorf("%v", r)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, recordLimit)
	defer cancel()
	raw, err := interruptible(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(app.In, dialect.MaxPayload+1)) })
	if err != nil {
		return fmt.Errorf("read the payload: %w", err)
	}
	e, err := dialect.Parse(f.client, f.event, raw)
	if err != nil {
		return err
	}
	home, _ := app.Env.Home() // unknown, its path stays
	redactor := redact.New()
	stdin, err := fixture.Record(raw, fixture.Places{Home: home}, func(s string) string { s, _ = redactor.String(s); return s })
	if err != nil {
		return err
	}
	_, _, err = fixture.Add(ctx, dir, fixture.Case{
		V: fixture.Version, Client: f.client, Event: e.Name, Captured: true, Version: f.version, Note: f.note, Stdin: stdin,
	}, f.most)
	return err
}

// printRecordSettings prints hooks that record, for all events of the client.
func printRecordSettings(app *App, f recordFlags, dir string) error {
	type hook map[string]any
	hooks := map[string]any{}
	m := dialect.ManifestOf(f.client)
	for _, s := range m.Events {
		if s.Name == "WorktreeCreate" {
			continue // a hook there would have to make the worktree
		}
		words := []string{app.Program, "hook", "record", dir, "--client", f.client, "--event", s.Name}
		if f.version != "" {
			words = append(words, "--client-version", f.version)
		}
		command := shellWords(words)
		if f.client == "copilot" {
			hooks[s.Name] = []hook{{"type": "command", "bash": command, "powershell": "& " + command, "timeoutSec": 10}}
			continue
		}
		timeout := 10
		if m.Unit == "ms" {
			timeout *= 1000
		}
		hooks[s.Name] = []hook{{"hooks": []hook{{"type": "command", "command": command, "timeout": timeout}}}}
	}
	doc := map[string]any{"hooks": hooks}
	if f.client == "copilot" {
		doc["version"] = 1
	}
	data, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	data, err = fixture.Format(json.RawMessage(data))
	if err != nil {
		return err
	}
	_, err = app.Out.Write(data)
	return err
}

// shellWords is a command line of these words, for sh and PowerShell alike.
func shellWords(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") == "" && w != "" {
			b.WriteString(w)
			continue
		}
		b.WriteString("'" + strings.ReplaceAll(w, "'", `'\''`) + "'")
	}
	return b.String()
}
