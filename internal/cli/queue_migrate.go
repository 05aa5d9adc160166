package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/term"
)

func newQueueMigrateCmd(app *App) *cobra.Command {
	var to string
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use: "migrate", Args: cobra.NoArgs, Short: "Move all items to the servers of a fleet, or back to files",
		Long: `Move the items of this project's queue from the files of this machine to the servers
that "queue" names in the settings, or with --to files back. Items keep their ids, states,
histories and numbers. An item that somebody has claimed stays; so does one whose id the
other queue has already. Both are named, and the command then ends with 4: run it again
when they are settled. At no moment both queues would give an item to somebody, and a
command that was killed is gone on with by the next. The files that were moved are kept in
the directory "moved" of the queue.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to != "fleet" && to != "files" {
				return usagef("--to %s: there are fleet and files", to)
			}
			home, err := app.Home()
			if err != nil {
				return err
			}
			if home.Settings.Queue == config.QueueFiles {
				return usagef("the settings name no servers: write `queue: nats://host:port` into %s; after a move back the line may go", home.Paths.ConfigFile)
			}
			if home.Project != nil && !dry {
				if err := app.claim(cmd.Context()); err != nil {
					return conflict(err)
				}
			}
			files, err := app.fileQueue(proc.ID{})
			if err != nil {
				return err
			}
			servers, err := app.fleetQueue(proc.ID{})
			if err != nil {
				return err
			}
			var from, into queue.Mover = files, servers
			if to == "files" {
				from, into = servers, files
			}
			m, err := queue.Migrate(cmd.Context(), from, into, dry, nil)
			if err != nil {
				return queueError(err)
			}
			return app.sayMoved(&m, to, dry, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&to, "to", "fleet", "where to: `fleet` or files")
	f.BoolVar(&dry, "dry-run", false, "only say what would be moved")
	f.BoolVar(&asJSON, "json", false, "print it for programs")
	offer(cmd, "to", "fleet", "files")
	return cmd
}

func (a *App) sayMoved(m *queue.Moved, to string, dry, asJSON bool) error {
	docs := func(list []queue.Item) []workItem {
		out := make([]workItem, len(list))
		for i, it := range list {
			out[i] = workDoc(it)
		}
		return out
	}
	if asJSON {
		if err := printJSON(a.Out, struct {
			To       string          `json:"to"`
			Moved    []workItem      `json:"moved"`
			Claimed  []workItem      `json:"claimed"`
			There    []workItem      `json:"there"`
			Left     []workItem      `json:"left"`
			Problems []queue.Trouble `json:"problems"`
		}{to, docs(m.Moved), docs(m.Claimed), docs(m.There), docs(m.Left), append([]queue.Trouble{}, m.Trouble...)}); err != nil {
			return err
		}
	} else {
		n := map[queue.State]int{}
		for _, it := range m.Moved {
			n[it.State]++
		}
		for _, s := range queue.States() {
			if n[s] > 0 {
				fmt.Fprintf(a.Out, "%-8s %d\n", s, n[s])
			}
		}
		where := map[string]string{"fleet": "the fleet's servers", "files": "files"}[to]
		done := "moved to " + where
		if dry {
			done = "would be moved to " + where
		}
		fmt.Fprintf(a.Err, "%s %s.\n", count(len(m.Moved), "item"), done)
		for _, g := range []struct {
			list []queue.Item
			why  string
		}{{m.Claimed, "somebody has it"}, {m.There, "there is one of that id already"}, {m.Left, "it changed meanwhile"}} {
			for _, it := range g.list {
				fmt.Fprintf(a.Err, "%s stays: %s (%s)\n", it.ID, g.why, term.SafeLine(term.Cut(it.Title, 60)))
			}
		}
		a.sayTrouble(m.Trouble)
	}
	if dry || m.Whole() {
		return nil
	}
	return exitWith(ExitConflict, fmt.Errorf("%s stayed; run this again when that is settled", count(len(m.Claimed)+len(m.There)+len(m.Left)+len(m.Trouble), "item")))
}
