package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"reprise/internal/durable"
	"reprise/internal/memory"
	"reprise/internal/staterepo"
)

// newMergeDriverCmd is what git starts for a merge by hand in a state repository,
// as its configuration says. The answer is the file of our side.
func newMergeDriverCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "merge-driver BASE OURS THEIRS PATH", Hidden: true, Args: cobra.ExactArgs(4),
		Short: "Merge one file of a state repository (started by git)",
		RunE: func(_ *cobra.Command, args []string) error {
			var sides [3][]byte
			for i := range sides {
				if !filepath.IsAbs(args[i]) {
					args[i] = filepath.Join(app.Env.Dir, args[i])
				}
				data, err := durable.Read(args[i])
				if err != nil {
					return fmt.Errorf("merge %s: %w", args[3], err)
				}
				sides[i] = data
			}
			merged, notice := staterepo.Options{Merge: memory.MergeFile}.MergeFile(args[3], sides[0], sides[1], sides[2])
			if err := durable.WriteFile(args[1], merged, 0o644); err != nil {
				return fmt.Errorf("merge %s: %w", args[3], err)
			}
			if notice != "" {
				fmt.Fprintf(app.Err, "note: %s\n", notice)
			}
			return nil
		},
	}
}
