package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"reprise/internal/cli/embeddings"
	"reprise/internal/config"
	"reprise/internal/recall"
	"reprise/internal/redact"
	"reprise/internal/term"
)

// embedder sends no secret: what a person asks has not been redacted yet.
type embedder struct {
	recall.Embedder
	redactor *redact.Redactor
}

// Embed redacts and asks.
func (e embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	clean := make([]string, len(texts))
	for i, t := range texts {
		clean[i], _ = e.redactor.String(t)
	}
	return e.Embedder.Embed(ctx, clean)
}

// noEmbedder stands for settings that cannot work.
type noEmbedder struct{ err error }

func (n noEmbedder) Name() string { return "" }
func (n noEmbedder) Embed(context.Context, []string) ([][]float32, error) {
	return nil, n.err
}

// embedderOf is the endpoint of the settings; nil when there is none.
func embedderOf(home *config.Home, env config.Env, redactor *redact.Redactor) recall.Embedder {
	set := home.Settings.Recall.Embeddings
	if set.URL == "" {
		return nil
	}
	key := ""
	if set.KeyVariable != "" {
		key = env.Get(set.KeyVariable)
	}
	e, err := embeddings.New(set.URL, set.Model, key)
	if err != nil {
		return noEmbedder{err}
	}
	return embedder{e, redactor}
}

// embedFailed says once that an answer is by words alone. A hook says nothing:
// what it prints is the client's.
func (a *App) embedFailed(err error) {
	if a.hurried {
		return
	}
	a.embedNote.Do(func() {
		fmt.Fprintf(a.Err, "note: recall is by words alone: %s\n", term.SafeText(err.Error()))
	})
}

func newIndexEmbedCmd(app *App) *cobra.Command {
	var most int
	var asJSON bool
	cmd := &cobra.Command{
		Use: "embed", Args: cobra.NoArgs, Short: "Make the vectors that are missing, by the endpoint of recall.embeddings",
		RunE: func(cmd *cobra.Command, _ []string) error {
			index, err := app.Index()
			if err != nil {
				return err
			}
			home, err := app.Home()
			if err != nil {
				return err
			}
			e := embedderOf(home, app.Env, redact.New())
			if e == nil {
				return exitWith(ExitUsage, errors.New("no endpoint is set: `reprise config set recall.embeddings.url http://localhost:11434/v1`, or where yours is, and `reprise config set recall.embeddings.model NAME`"))
			}
			if err := index.Refresh(cmd.Context()); err != nil {
				return err
			}
			n, err := index.EmbedMissing(cmd.Context(), e, most)
			if err != nil {
				return fmt.Errorf("%w (%d documents have their vectors now; the same command goes on)", err, n)
			}
			if asJSON {
				return printJSON(app.Out, map[string]any{"embedded": n, "model": e.Name()})
			}
			fmt.Fprintf(app.Out, "%d documents embedded by %s\n", n, term.SafeText(e.Name()))
			return nil
		},
	}
	cmd.Flags().IntVarP(&most, "max", "n", 1_000_000, "at most so many documents, the newest first")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}
