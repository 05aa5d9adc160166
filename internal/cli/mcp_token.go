package cli

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/mcpserver"
)

func (a *App) tokens(home *config.Home) mcpserver.TokenStore {
	return mcpserver.TokenStore{Path: home.Paths.Tokens(), Now: a.Env.Now}
}

func newMCPTokenCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke access tokens for `reprise mcp --http`",
	}
	cmd.AddCommand(newMCPTokenCreateCmd(app), newMCPTokenListCmd(app), newMCPTokenRevokeCmd(app))
	return cmd
}

func newMCPTokenCreateCmd(app *App) *cobra.Command {
	var scopes []string
	var days int
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a token and print it, this once",
		Long: `Make a token and print it. Only a hash of it is kept, so this is the only time
that it can be seen. A client sends it as "Authorization: Bearer TOKEN".

Without --scope it is for everything. reprise:read is for reading memory, state, tasks
and what runs said; reprise:write for changing memory, state and tasks; reprise:runs for
starting and stopping agents.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := app.Home()
			if err != nil {
				return err
			}
			if days > 36_500 {
				return usagef("--days must be from 1 to 36500, or 0 for a token that does not expire")
			}
			token, err := app.tokens(home).Create(cmd.Context(), mcpserver.NewToken{
				Name: args[0], Scopes: scopes, Life: time.Duration(days) * 24 * time.Hour,
			})
			if errors.Is(err, mcpserver.ErrTokenExists) {
				return exitWith(ExitConflict, err)
			}
			if errors.Is(err, mcpserver.ErrTokenWords) {
				return exitWith(ExitUsage, err)
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(app.Err, "Keep this token, it is not shown again:")
			fmt.Fprintln(app.Out, token)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&scopes, "scope", nil, "what it is for: "+strings.Join(mcpserver.Scopes()[1:], ", ")+" (several with commas)")
	f.IntVar(&days, "days", 0, "days until it expires; 0: when it is revoked")
	offer(cmd, "scope", mcpserver.Scopes()...)
	return cmd
}

func newMCPTokenListCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tokens by name",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			home, err := app.Home()
			if err != nil {
				return err
			}
			tokens, err := app.tokens(home).List()
			if err != nil {
				return err
			}
			if asJSON {
				docs := make([]map[string]any, 0, len(tokens))
				for _, t := range tokens {
					doc := map[string]any{"name": t.Name, "created": t.Created.UTC(), "scopes": t.Grants()}
					if t.Expires != nil {
						doc["expires"] = t.Expires.UTC()
					}
					docs = append(docs, doc)
				}
				return printJSON(app.Out, docs)
			}
			if len(tokens) == 0 {
				fmt.Fprintln(app.Err, "No tokens. `reprise mcp token create NAME` makes one.")
				return nil
			}
			w := tabwriter.NewWriter(app.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tCREATED\tEXPIRES\tFOR")
			for _, t := range tokens {
				end := "never"
				if t.Expires != nil {
					end = t.Expires.UTC().Format(time.RFC3339)
				}
				if t.Expires != nil && !app.Env.Now().Before(*t.Expires) {
					end += " (expired)"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Name, t.Created.UTC().Format(time.RFC3339), end, strings.Join(t.Grants(), " "))
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them for programs")
	return cmd
}

func newMCPTokenRevokeCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use:               "revoke NAME",
		ValidArgsFunction: completeTokens(app),
		Short:             "Make a token worthless, from the next request on",
		Args:              cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := app.Home()
			if err != nil {
				return err
			}
			err = app.tokens(home).Revoke(cmd.Context(), args[0])
			if errors.Is(err, mcpserver.ErrTokenNotFound) {
				return exitWith(ExitNotFound, err)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(app.Out, "revoked %s\n", args[0])
			return nil
		},
	}
}
