package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/memory"
	"reprise/internal/redact"
	"reprise/internal/term"
	"reprise/internal/transcript"
)

func newImportMemoryCmd(app *App) *cobra.Command {
	var dryRun, asJSON bool
	cmd := &cobra.Command{
		Use: "memory", Args: cobra.NoArgs, Short: "Take in the clients' files of standing notes as blocks",
		Long: `Read the files that tell the clients how to work (CLAUDE.md, AGENTS.md,
GEMINI.md, .github/copilot-instructions.md) and what Claude Code noted by itself,
and make a block of each, so that every client can be told what was written for
one. The user's own files become blocks of the global memory, those of the
project around the working directory blocks of that project's.

Each block names its source. Doing it again follows what changed in the source;
a block that was edited since is left alone. The files themselves are only read,
links are not followed, and secrets are taken out.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			done, bad, err := importMemory(cmd.Context(), app, dryRun)
			if err != nil {
				return err
			}
			if asJSON {
				if err := printJSON(app.Out, map[string]any{"files": done, "problems": bad, "dry_run": dryRun}); err != nil {
					return err
				}
			} else {
				showImportedMemory(app, done, bad)
			}
			if len(bad) > 0 {
				return exitWithCode(ExitFailure)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done, and write nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report for programs")
	return cmd
}

// importedFile is what became of one file of notes.
type importedFile struct {
	Client string `json:"client"`
	Path   string `json:"path"`
	Scope  string `json:"scope"` // global, or the project's name
	Block  string `json:"block"`
	// Did is created, updated, unchanged or kept (edited since, left alone).
	Did string `json:"did"`
}

func showImportedMemory(app *App, done []importedFile, bad []string) {
	if len(done) == 0 && len(bad) == 0 {
		fmt.Fprintln(app.Out, "No client's file of notes was found.")
	}
	for _, f := range done {
		note := ""
		if f.Did == "kept" {
			note = " (it was edited since the last import, and the source changed, too)"
		}
		fmt.Fprintf(app.Out, "%-9s %s/%s from %s%s\n", f.Did, term.SafeLine(f.Scope), f.Block, term.SafeLine(f.Path), note)
	}
	for _, b := range bad {
		fmt.Fprintf(app.Err, "error: %s\n", term.SafeLine(b))
	}
}

func importMemory(ctx context.Context, app *App, dryRun bool) (done []importedFile, bad []string, err error) {
	home, err := app.Home()
	if err != nil {
		return nil, nil, err
	}
	places, err := transcript.FindPlaces(app.Env)
	if err != nil {
		return nil, nil, err
	}
	global, err := app.Memory()
	if err != nil {
		return nil, nil, err
	}
	root := ""
	var project *memory.Store
	if home.Project != nil {
		root = home.Project.Root
		if project, err = projectMemory(app, home); err != nil {
			return nil, nil, err
		}
	}
	done, bad = []importedFile{}, []string{}
	files, problems := transcript.FindMemory(places, root)
	for _, p := range problems {
		bad = append(bad, p.Error())
	}
	red := redact.New()
	for _, f := range files {
		store, scope := global, "global"
		if f.Project {
			store, scope = project, home.Project.Name
		}
		did, err := importFile(ctx, store, red, f, dryRun)
		if errors.Is(err, memory.ErrDenied) || ctx.Err() != nil {
			return done, bad, err
		}
		if err != nil {
			bad = append(bad, fmt.Sprintf("%s: %v", f.Path, err))
			continue
		}
		done = append(done, importedFile{Client: f.Client, Path: f.Path, Scope: scope, Block: f.Block, Did: did})
	}
	return done, bad, nil
}

// projectMemory is the memory directory of the project around the working
// directory.
func projectMemory(app *App, home *config.Home) (*memory.Store, error) {
	access, err := app.memoryAccess()
	if err != nil {
		return nil, err
	}
	index, err := app.anyIndex()
	if err != nil {
		return nil, err
	}
	return memory.New(memory.Options{
		Dir:        filepath.Join(home.Paths.ProjectDir(home.Project.Name), "global", "memory"),
		Access:     access,
		Now:        app.Env.Now,
		Events:     &memoryEvents{app: app},
		AfterWrite: index.Touch,
		Git:        memory.GitOptions{Off: true}, // the project's state has a repository of its own
	}), nil
}

// importFile makes or follows the block of one file.
func importFile(ctx context.Context, store *memory.Store, red *redact.Redactor, f transcript.MemoryFile, dryRun bool) (string, error) {
	body, _ := red.String(withoutFrontMatter(f.Text))
	body = strings.TrimSpace(body) + "\n"
	if !strings.HasPrefix(body, "#") {
		body = "# " + f.Summary + "\n\n" + body
	}
	content := fmt.Sprintf("---\nsource: %q\nsource_sha256: %s\nimported_sha256: %s\n---\n%s", f.Path, f.Hash, hashText(body), body)
	doc, _, err := store.Read(ctx, f.Block, 0, 0)
	if errors.Is(err, memory.ErrNotFound) {
		if !dryRun {
			_, err = store.Create(ctx, memory.CreateBlock{Name: f.Block, Content: content, Summary: f.Summary, Tags: []string{"imported", f.Client}})
			return "created", err
		}
		return "created", nil
	}
	switch {
	case err != nil:
		return "", err
	case frontMatterValue(doc.Content, "source_sha256") == f.Hash:
		return "unchanged", nil
	case frontMatterValue(doc.Content, "imported_sha256") != hashText(strings.TrimLeft(withoutFrontMatter(doc.Content), "\n")):
		return "kept", nil
	case dryRun:
		return "updated", nil
	}
	_, err = store.Update(ctx, memory.UpdateBlock{Name: f.Block, Content: content, IfHash: doc.Hash})
	return "updated", err
}

func hashText(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// frontMatter splits off a text's front matter.
func frontMatter(text string) (front, body string) {
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", text
	}
	front, body, ok = strings.Cut(rest, "\n---\n")
	if !ok {
		return "", text
	}
	return front, body
}

func withoutFrontMatter(text string) string {
	_, body := frontMatter(text)
	return body
}

// frontMatterValue is a plain value of a text's front matter.
func frontMatterValue(text, key string) string {
	front, _ := frontMatter(text)
	for line := range strings.Lines(front) {
		if v, ok := strings.CutPrefix(line, key+": "); ok {
			return strings.Trim(strings.TrimSpace(v), `"'`)
		}
	}
	return ""
}
