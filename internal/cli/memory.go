package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/memory"
	"reprise/internal/recall"
	"reprise/internal/term"
)

func newMemoryCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "memory", Short: "Read, write, search, check and back up the memory",
		Long: `The memory is plain markdown: core.md and index.md, which every session reads,
and blocks/, which are read when they matter. Edit the files as you like; these
commands and the tools of the MCP server keep what you wrote.`,
		Example: `  reprise memory create project-shop --summary "The shop" --content "# Shop"
  reprise memory create reference-backups < backups.md
  reprise memory search "staging port"
  reprise memory append --title "Moved staging" --text "It is on port 6543 now."
  reprise memory read core`,
	}
	cmd.AddCommand(memoryInit(app), memoryPath(app), memoryList(app), memoryRead(app), memorySearch(app), memoryCheck(app),
		memoryCreate(app), memoryUpdate(app), memoryAppend(app), memorySync(app), memoryPackSkill(app))
	cmd.AddCommand(knowledgeCommands(app)...)
	return cmd
}

// memoryError gives the memory's errors their exit codes.
func memoryError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, memory.ErrNotFound):
		if !strings.Contains(err.Error(), "`") { // it says no command that helps
			err = fmt.Errorf("%w; `reprise memory list` says which blocks there are", err)
		}
		return exitWith(ExitNotFound, err)
	case errors.Is(err, memory.ErrStale), errors.Is(err, memory.ErrExists), errors.Is(err, memory.ErrOutside), errors.Is(err, memory.ErrDiverged),
		errors.Is(err, git.ErrRejected), errors.Is(err, git.ErrLocked):
		return exitWith(ExitConflict, err)
	case errors.Is(err, git.ErrTimeout):
		return exitWith(ExitTimeout, err)
	case errors.Is(err, memory.ErrName):
		return exitWith(ExitUsage, err)
	}
	return err
}

// wrote reports a write that is on disk.
func wrote(app *App, w memory.Written, asJSON bool) error {
	if asJSON {
		return printJSON(app.Out, w)
	}
	verb := "updated"
	switch {
	case w.Unchanged:
		verb = "unchanged"
	case w.Created:
		verb = "created"
	}
	fmt.Fprintf(app.Out, "%s %s\n  %s\n", verb, w.Path, app.Style().Dim("version "+w.Hash))
	for _, warning := range w.Warnings {
		fmt.Fprintf(app.Err, "warning: %s\n", warning)
	}
	return nil
}

// textArg is the text of a flag or argument: "-" or nothing means standard input.
func textArg(ctx context.Context, app *App, text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	return readInput(ctx, app, "the text", memory.MaxAppend+1)
}

// saidArg is textArg for what has to say something: there is nothing to keep of blanks.
func saidArg(ctx context.Context, app *App, text string) (string, error) {
	text, err := textArg(ctx, app, text)
	if err == nil && strings.TrimSpace(text) == "" {
		return "", usagef("the text is empty: say what is to be kept")
	}
	return text, err
}

func memoryInit(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "init", Args: cobra.NoArgs, Short: "Make what is missing of the memory; change nothing that is there",
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := app.Memory()
			if err != nil {
				return err
			}
			if err := m.Ensure(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintln(app.Out, m.Dir())
			if app.OutIsTerminal {
				fmt.Fprintln(app.Err, "Next: write who you are into core.md there, and make a block with `reprise memory create NAME`.")
			}
			if !git.New(m.Dir(), git.Options{Vars: app.Env.Vars}).Installed() {
				fmt.Fprintln(app.Err, "note: git is not installed, so the memory has no history and cannot be synced")
			}
			return nil
		},
	}
}

func memoryPath(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "path", Args: cobra.NoArgs, Short: "Print the memory directory",
		RunE: func(*cobra.Command, []string) error {
			home, err := app.Home()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(app.Out, home.MemoryDir())
			return err
		},
	}
}

// scopeFlag is --scope of what reads.
func scopeFlag(cmd *cobra.Command, scope *string) {
	cmd.Flags().StringVar(scope, "scope", "", "project or global (default: both, the project's first)")
	offer(cmd, "scope", memory.ScopeProject, memory.ScopeGlobal)
}

func checkScope(scope string) error {
	switch scope {
	case "", memory.ScopeProject, memory.ScopeGlobal:
		return nil
	}
	return usagef("--scope %q: it is project or global", clipText(scope, 40))
}

func memoryList(app *App) *cobra.Command {
	var asJSON bool
	var scope string
	cmd := &cobra.Command{
		Use: "list", Args: cobra.NoArgs, Short: "List the blocks, inside a project its own first",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkScope(scope); err != nil {
				return err
			}
			m, err := app.Layers()
			if err != nil {
				return err
			}
			blocks, err := m.List(cmd.Context(), scope)
			if err != nil {
				return memoryError(err)
			}
			if asJSON {
				if blocks == nil {
					blocks = []memory.BlockInfo{}
				}
				return printJSON(app.Out, blocks)
			}
			if len(blocks) == 0 {
				fmt.Fprintln(app.Err, "No blocks yet. `reprise memory create NAME` makes one.")
				return nil
			}
			return listBlocks(app, blocks, len(m) > 1)
		},
	}
	scopeFlag(cmd, &scope)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them for programs")
	return cmd
}

// listBlocks prints blocks; with scopes, whose each is.
func listBlocks(app *App, blocks []memory.BlockInfo, scopes bool) error {
	heads := []string{"BLOCK", "UPDATED", "TOKENS", "SUMMARY"}
	if scopes {
		heads = append([]string{"SCOPE"}, heads...)
	}
	table := term.NewTable(app.Style(), heads...).AlignRight(len(heads) - 2).MaxWidth(app.Columns)
	for _, b := range blocks {
		day := ""
		if !b.Updated.IsZero() {
			day = b.Updated.Format("2006-01-02")
		}
		row := []string{b.Name, day, fmt.Sprint(b.Tokens), b.Summary}
		if scopes {
			row = append([]string{b.Scope}, row...)
		}
		table.Text(row...)
	}
	return table.Write(app.Out)
}

func memoryRead(app *App) *cobra.Command {
	var asJSON bool
	var scope string
	var offset, limit int
	cmd := &cobra.Command{
		Use: "read NAME", Args: cobra.ExactArgs(1), ValidArgsFunction: completeMemory(app), Short: "Print core, index or a block",
		Long: `Print core, index or a block, or inside a project its learnings, decisions or
changelog. Where the project and the global memory both have one of that name, it
is the project's; --scope names the other. What agents keep for themselves is
shown to them and to you.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkScope(scope); err != nil {
				return err
			}
			m, err := app.Layers()
			if err != nil {
				return err
			}
			doc, more, err := m.Read(cmd.Context(), scope, args[0], offset, limit)
			if err != nil {
				return memoryError(err)
			}
			if asJSON {
				return printJSON(app.Out, struct {
					memory.Doc
					More bool `json:"more"`
				}{doc, more})
			}
			if _, err := io.WriteString(app.Out, doc.Content); err != nil {
				return err
			}
			readNotes(app, doc, more)
			return nil
		},
	}
	scopeFlag(cmd, &scope)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs, with its hash")
	cmd.Flags().IntVar(&offset, "offset", 0, "lines to leave out at the start")
	cmd.Flags().IntVar(&limit, "limit", 0, fmt.Sprintf("most lines to print (default %d)", memory.DefaultReadRows))
	return cmd
}

// readNotes says on the side what a reader should know of a file.
func readNotes(app *App, doc memory.Doc, more bool) {
	if more {
		fmt.Fprintf(app.Err, "note: it has %s in all; --offset and --limit show others\n", count(doc.Lines, "line"))
	}
	if doc.Project != "" {
		fmt.Fprintf(app.Err, "note: this is of project %s\n", doc.Project)
	}
	for _, other := range doc.Also {
		fmt.Fprintf(app.Err, "note: there is one of this name in the scope %s, too: --scope %s\n", other, other)
	}
	if doc.Private > 0 {
		entries := "1 entry"
		if doc.Private > 1 {
			entries = fmt.Sprintf("%d entries", doc.Private)
		}
		fmt.Fprintf(app.Err, "note: %s left out, which others keep for themselves\n", entries)
	}
	for _, d := range doc.Damage {
		fmt.Fprintf(app.Err, "warning: %s, %s\n", doc.Name, term.SafeLine(d.String()))
	}
}

// warnDamage says what could not be read, and so was not found.
func warnDamage(ctx context.Context, app *App, r recall.Reader) error {
	list, err := searcher{app}.Damage(ctx, r)
	if err != nil {
		return err
	}
	const most = 5
	for i, d := range list {
		if i == most {
			fmt.Fprintf(app.Err, "warning: and %d more; `reprise memory check` names them\n", len(list)-most)
			break
		}
		fmt.Fprintf(app.Err, "warning: %s\n", term.SafeLine(d.String()))
	}
	return nil
}

func memorySearch(app *App) *cobra.Command {
	var asJSON bool
	var most, tokens int
	cmd := &cobra.Command{
		Use: "search WORDS…", Args: cobra.MinimumNArgs(1), Short: "Find what is remembered by words, however weak the match",
		Long: `Find what is remembered by words, however weak the match. As with recall, the exit
code is 3 when nothing is found. What of the files cannot be read is named.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(strings.Join(args, " ")) == "" {
				return usagef("the words are empty: say what to look for; `reprise recall` alone lists the newest")
			}
			reader, err := app.reader()
			if err != nil {
				return err
			}
			hits, err := searcher{app}.Search(cmd.Context(), recall.Query{Text: strings.Join(args, " "), Max: most, MaxTokens: tokens, Reader: reader})
			if err != nil {
				return err
			}
			if err := warnDamage(cmd.Context(), app, reader); err != nil {
				return err
			}
			if asJSON {
				if hits == nil {
					hits = []recall.Hit{}
				}
				if err := printJSON(app.Out, hits); err != nil {
					return err
				}
			} else {
				showHits(app, hits)
			}
			if len(hits) == 0 {
				return exitWithCode(ExitNotFound)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them for programs")
	cmd.Flags().IntVar(&most, "max", 0, fmt.Sprintf("most results (default %d)", recall.DefaultMax))
	cmd.Flags().IntVar(&tokens, "max-tokens", 0, fmt.Sprintf("most tokens in all (default %d)", recall.DefaultMaxTokens))
	return cmd
}

func showHits(app *App, hits []recall.Hit) {
	if len(hits) == 0 {
		fmt.Fprintln(app.Err, "nothing found; one word of the question is enough for a match, so try other words")
	}
	for _, h := range hits {
		head := ""
		if h.Heading != "" {
			head = "  " + term.SafeText(h.Heading)
		}
		where := fmt.Sprintf("%s:%d", h.File, h.Line)
		if h.File == "" {
			where = fmt.Sprintf("%s %s", h.Class, h.ID)
		}
		if h.Project != "" {
			where = strings.TrimPrefix(recall.Where(h.Project), "project ") + " " + where
		}
		fmt.Fprintln(app.Out, term.Wrap("", fmt.Sprintf("%s%s  (%.2f)", term.SafeText(where), head, h.Score), "  ", app.Columns))
		for line := range strings.Lines(h.Snippet) {
			fmt.Fprintln(app.Out, term.Wrap("    ", term.SafeText(strings.TrimRight(line, "\r\n")), "    ", app.Columns))
		}
	}
}

// toldAtStart says how much of a file a session is told when it starts, which has a
// budget of its own.
func toldAtStart(tokens, budget int) string {
	if tokens > budget {
		return fmt.Sprintf("; a session's start tells the first %d", budget)
	}
	return fmt.Sprintf("; a session's start tells up to %d", budget)
}

// checked is what `memory check --json` prints.
type checked struct {
	memory.Report
	Projects []memory.Report `json:"projects,omitempty"`
}

func showReport(app *App, r memory.Report, set config.Recall) {
	if r.Project == "" {
		fmt.Fprintf(app.Out, "core.md   %5d of %d tokens%s\nindex.md  %5d of %d tokens%s\nblocks    %5d\n", r.CoreTokens, r.CoreBudget, toldAtStart(r.CoreTokens, set.CoreTokens),
			r.IndexTokens, r.IndexBudget, toldAtStart(r.IndexTokens, set.IndexTokens), r.Blocks)
	} else {
		fmt.Fprintf(app.Out, "project %s: %s\n", r.Project, count(r.Blocks, "block"))
	}
	for _, f := range r.Findings {
		where := f.File
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if r.Project != "" {
			where = r.Project + ":" + where
		}
		fmt.Fprintf(app.Out, "%s %s [%s]: %s\n    do: %s\n", f.Level, term.SafeText(where), f.Code, term.SafeText(f.Problem), term.SafeText(f.Remedy))
	}
}

func memoryCheck(app *App) *cobra.Command {
	var asJSON bool
	var scope string
	cmd := &cobra.Command{
		Use: "check", Args: cobra.NoArgs, Short: "Say what is wrong or too long, and what to do",
		Long: `Look at budgets, front matter, names, the index and bytes that are no text; inside
a project, at its memory and entries, too. Ends with 1 when something is wrong;
warnings alone end with 0.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkScope(scope); err != nil {
				return err
			}
			m, err := app.Layers()
			if err != nil {
				return err
			}
			reports, err := m.Check(cmd.Context())
			if err != nil {
				return memoryError(err)
			}
			reports = slices.DeleteFunc(reports, func(r memory.Report) bool { return scope != "" && r.Scope != scope })
			ok := true
			for _, r := range reports {
				ok = ok && r.OK()
			}
			switch {
			case len(reports) == 0:
				return exitWith(ExitNotFound, errors.New("there is no project here that has a memory or entries of its own"))
			case asJSON:
				err = printJSON(app.Out, checked{reports[0], reports[1:]})
			default:
				home, err := app.Home()
				if err != nil {
					return err
				}
				for _, r := range reports {
					showReport(app, r, home.Settings.Recall)
				}
			}
			if err == nil && !ok {
				return exitWithCode(ExitFailure)
			}
			return err
		},
	}
	scopeFlag(cmd, &scope)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report for programs")
	return cmd
}

func memoryCreate(app *App) *cobra.Command {
	var b memory.CreateBlock
	var asJSON, ofProject bool
	cmd := &cobra.Command{
		Use: "create NAME", Args: cobra.ExactArgs(1), Short: "Make a block, with front matter and index row",
		Long: `Make a block of the global memory, whose row in the index every session in every
project is told. With --project it is the project's own: only sessions there are told of it.
It is a file then that you change with your own editor; its path is printed. NAME is
reference-TOPIC, project-NAME, episodic-YYYY-MM or decisions.`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			b.Name = args[0]
			if b.Content, err = textArg(cmd.Context(), app, b.Content); err != nil {
				return err
			}
			m, err := app.Memory()
			if err != nil {
				return err
			}
			if ofProject {
				if m, err = app.projectMemory(cmd.Context()); err != nil {
					return err
				}
			}
			w, err := m.Create(cmd.Context(), b)
			if ofProject && errors.Is(err, memory.ErrExists) {
				err = fmt.Errorf("%w; a project's own is a file that is yours to edit, in %s", err, filepath.Join(m.Dir(), "blocks"))
			}
			if err != nil {
				return memoryError(err)
			}
			return wrote(app, w, asJSON)
		},
	}
	cmd.Flags().StringVar(&b.Content, "content", "-", "text; - reads standard input")
	cmd.Flags().StringVar(&b.Summary, "summary", "", "line in the index (default: made from the text)")
	cmd.Flags().StringSliceVar(&b.Tags, "tag", nil, "tag; may be given several times")
	cmd.Flags().BoolVar(&ofProject, "project", false, "make it in the memory of the project around the working directory")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer for programs")
	return cmd
}

// projectMemory is the memory of the project around the working directory, for what is
// written into it.
func (a *App) projectMemory(ctx context.Context) (*memory.Store, error) {
	layers, err := a.Layers()
	if err != nil {
		return nil, err
	}
	if layers[0].Scope() != memory.ScopeProject {
		return nil, exitWith(ExitNotFound, errors.New("--project: there is no project here; go into one, make this directory one with `reprise init`, or leave out --project"))
	}
	return layers[0].Store, conflict(a.claim(ctx))
}

func memoryUpdate(app *App) *cobra.Command {
	var u memory.UpdateBlock
	var asJSON bool
	cmd := &cobra.Command{
		Use: "update NAME", Args: cobra.ExactArgs(1), ValidArgsFunction: completeMemory(app), Short: "Change core, index or a block",
		Long: `Replace a file's text with --content (its front matter stays), or one passage
with --old and --new, or only its index row with --summary. With --if-hash, a
file that changed since you read it is left alone (exit code 4). What is changed
is the global memory; a project's own blocks are yours to edit.`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			u.Name = args[0]
			if u.Content == "" && u.OldText == "" && u.Summary == "" {
				return usagef("update %s: give --content, --old with --new, or --summary", args[0])
			}
			if u.Content, err = textArg(cmd.Context(), app, u.Content); err != nil {
				return err
			}
			m, err := app.Layers()
			if err != nil {
				return err
			}
			w, err := m.Update(cmd.Context(), u)
			if err != nil {
				return memoryError(err)
			}
			return wrote(app, w, asJSON)
		},
	}
	cmd.Flags().StringVar(&u.Content, "content", "", "new text; - reads standard input")
	cmd.Flags().StringVar(&u.OldText, "old", "", "passage to replace; it must occur once")
	cmd.Flags().StringVar(&u.NewText, "new", "", "what it is replaced by")
	cmd.Flags().StringVar(&u.Summary, "summary", "", "new line in the index")
	cmd.Flags().StringVar(&u.IfHash, "if-hash", "", "change it only if it is still this version")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer for programs")
	return cmd
}

func memoryAppend(app *App) *cobra.Command {
	var title, text, file string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "append", Args: cobra.NoArgs, Short: "Add an entry to the month's log, or text to a file",
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := textArg(cmd.Context(), app, text)
			if err != nil {
				return err
			}
			m, err := app.Memory()
			if err != nil {
				return err
			}
			if file != "" {
				n, err := m.AppendFile(cmd.Context(), file, text)
				if err != nil {
					return memoryError(err)
				}
				_, err = fmt.Fprintf(app.Out, "appended %s\n", count(n, "byte"))
				return err
			}
			w, err := m.AppendEpisode(cmd.Context(), memory.Episode{Title: title, Entry: text})
			if err != nil {
				return memoryError(err)
			}
			return wrote(app, w, asJSON)
		},
	}
	cmd.Flags().StringVar(&title, "title", "", "heading of the entry")
	cmd.Flags().StringVar(&text, "text", "-", "text; - reads standard input")
	cmd.Flags().StringVar(&file, "file", "", "append exactly this text to a file of the memory instead")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer for programs")
	return cmd
}

func memorySync(app *App) *cobra.Command {
	var o memory.SyncOptions
	var timer, asJSON bool
	var every time.Duration
	cmd := &cobra.Command{
		Use: "sync", Args: cobra.NoArgs, Short: "Commit the memory and exchange it with its remote",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timer {
				return installTimer(app, every, o.DryRun)
			}
			m, err := app.Memory()
			if err != nil {
				return err
			}
			res, err := m.Sync(cmd.Context(), o)
			if err != nil {
				return memoryError(err)
			}
			if asJSON {
				return printJSON(app.Out, res)
			}
			switch {
			case o.DryRun:
				fmt.Fprintf(app.Out, "would commit %s\n", count(len(res.Files), "file"))
				for _, f := range res.Files {
					fmt.Fprintf(app.Out, "  %s\n", term.SafeText(f))
				}
			case res.Committed:
				fmt.Fprintf(app.Out, "committed %s as %.12s\n", count(len(res.Files), "file"), res.Commit)
			default:
				fmt.Fprintln(app.Out, "nothing to commit")
			}
			if res.Merged {
				fmt.Fprintf(app.Out, "merged what %s had\n", res.Remote)
			}
			if res.Pushed {
				fmt.Fprintf(app.Out, "pushed to %s %s\n", res.Remote, res.Branch)
			}
			for _, n := range res.Notes {
				fmt.Fprintf(app.Err, "note: %s\n", n)
			}
			if res.Merged {
				return noteRivals(cmd.Context(), app)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&o.Message, "message", "m", "", "commit message")
	cmd.Flags().BoolVar(&o.NoPush, "no-push", false, "commit only")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "say what would be done")
	cmd.Flags().BoolVar(&timer, "install-timer", false, "write the files that make the system sync now and then")
	cmd.Flags().DurationVar(&every, "every", 4*time.Hour, "time between syncs of the timer")
	cmd.Flags().Lookup("every").DefValue = "4h"
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer for programs")
	return cmd
}

func installTimer(app *App, every time.Duration, dry bool) error {
	home, err := app.Home()
	if err != nil {
		return err
	}
	user, err := app.Env.Home()
	if err != nil {
		return err
	}
	conf := app.Env.Get("XDG_CONFIG_HOME")
	if conf == "" {
		conf = filepath.Join(user, ".config")
	}
	var args []string
	if home.Source != "" {
		args = []string{"--config", home.Source}
	}
	t, err := memory.NewTimer(memory.TimerOptions{GOOS: app.Env.GOOS, Program: app.Program, Args: args, Every: every,
		ConfigDir: conf, Home: user, StateDir: home.Paths.State})
	if err != nil {
		return err
	}
	for _, f := range t.Files {
		if dry {
			fmt.Fprintf(app.Out, "--- %s\n%s\n", f.Path, f.Content)
			continue
		}
		if err := durable.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			return err
		}
		if err := durable.WriteFile(f.Path, []byte(f.Content), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(app.Out, "wrote %s\n", f.Path)
	}
	fmt.Fprintln(app.Out, "to switch it on:")
	for _, c := range t.Enable {
		fmt.Fprintf(app.Out, "  %s\n", c)
	}
	fmt.Fprintln(app.Out, "to switch it off:")
	for _, c := range t.Off {
		fmt.Fprintf(app.Out, "  %s\n", c)
	}
	return nil
}

func memoryPackSkill(app *App) *cobra.Command {
	var flavour, out, dir string
	cmd := &cobra.Command{
		Use: "pack-skill", Args: cobra.NoArgs, Short: "Write the skill that teaches a client to use the memory",
		Long: `Write a zip with one SKILL.md, for Claude's Settings > Capabilities. The flavour
"reprise" uses the tools of this server, "filesystem" those of a filesystem
server for all but append_file. Without --output it is in reprise's cache directory,
so that it does not turn up among a project's files; its path is printed.`,
		RunE: func(*cobra.Command, []string) error {
			home, err := app.Home()
			if err != nil {
				return err
			}
			var b bytes.Buffer
			if err := memory.PackSkill(&b, flavour, cmp.Or(dir, home.MemoryDir())); err != nil {
				return usagef("%w", err)
			}
			return app.writePacked(out, memory.SkillName+".zip", b.Bytes(), "upload it in Claude under Settings > Capabilities.")
		},
	}
	defer func() { offer(cmd, "flavour", memory.FlavourReprise, memory.FlavourFilesystem) }()
	cmd.Flags().StringVar(&flavour, "flavour", memory.FlavourReprise, "reprise or filesystem")
	cmd.Flags().StringVar(&dir, "directory", "", "what the skill calls the memory directory (default: where it is here)")
	cmd.Flags().StringVarP(&out, "output", "o", "", "`FILE` to write; - is standard output (default: "+memory.SkillName+".zip in the cache directory)")
	return cmd
}
