package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/agent/dialect"
	"reprise/internal/agent/dialect/schema"
	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/loop"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/staterepo"
	"reprise/internal/verify"
	"reprise/plugin"
)

// thing is something that a command can be told to be about, and what a person knows it by.
type thing struct{ id, what string }

// completeThings offers what list gives, in its order and each once: the newest first, where they
// have an order in time. What was given already is left out. A shell waits for completeTime.
func completeThings(list func(context.Context) []thing) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !strings.Contains(cmd.Use, "...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		seen := map[string]bool{"": true}
		var words []string
		for _, one := range list(ctx) {
			if seen[one.id] || slices.Contains(args, one.id) {
				continue
			}
			seen[one.id] = true
			words = append(words, cobra.CompletionWithDesc(one.id, firstLine(one.what, 60)))
			if len(words) == completeMost {
				break
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completeAgents offers the agents that have state in the project.
func completeAgents(app *App) completer {
	return completeThings(func(ctx context.Context) (out []thing) {
		repo, err := app.State()
		if err != nil {
			return nil
		}
		list, _ := repo.Agents(ctx)
		for _, a := range list {
			where := "works nowhere now"
			if a.Dir != "" {
				where = a.Dir
			}
			out = append(out, thing{a.Name, where})
		}
		return out
	})
}

// completeBranches offers the branches of the code of which something is known.
func completeBranches(app *App) completer {
	return completeThings(func(context.Context) (out []thing) {
		repo, err := app.State()
		if err != nil {
			return nil
		}
		list, _ := repo.Branches()
		for _, b := range list {
			out = append(out, thing{b.Branch, b.Status})
		}
		return out
	})
}

// completeEntries offers the entries of all agents' logs.
func completeEntries(app *App) completer {
	return completeThings(func(ctx context.Context) []thing {
		repo, err := app.State()
		if err != nil {
			return nil
		}
		list, _ := repo.Log(ctx, staterepo.Everyone)
		return app.entryThings(list)
	})
}

// completeUnpromoted offers what the agent that works here knows, and the project does not.
func completeUnpromoted(app *App) completer {
	return completeThings(func(ctx context.Context) []thing {
		repo, err := app.State()
		if err != nil {
			return nil
		}
		t, err := app.agentTree(ctx, repo, false)
		if err != nil || t == nil {
			return nil
		}
		list, _ := repo.Unpromoted(ctx, t.Agent())
		return app.entryThings(list)
	})
}

// entryThings are entries that the reader may see, the newest first.
func (a *App) entryThings(list []staterepo.LogEntry) (out []thing) {
	may := a.may()
	for _, e := range slices.Backward(list) {
		if may == nil || may(e.ACL) {
			out = append(out, thing{e.ID, e.Type + " of " + e.Agent + ": " + e.Title()})
		}
	}
	return out
}

// completeHandoffs offers what waits to be taken.
func completeHandoffs(app *App) completer {
	return completeThings(func(ctx context.Context) (out []thing) {
		repo, err := app.State()
		if err != nil {
			return nil
		}
		list, _ := repo.Handoffs(ctx, "")
		for _, h := range slices.Backward(list) {
			if h.AcceptedBy == "" {
				out = append(out, app.entryThings([]staterepo.LogEntry{h.LogEntry})...)
			}
		}
		return out
	})
}

// completeEvents offers the newest events of the log.
func completeEvents(app *App) completer {
	return completeThings(func(ctx context.Context) (out []thing) {
		home, err := app.Home()
		if err != nil {
			return nil
		}
		sees, err := app.seesEvents()
		if err != nil {
			return nil
		}
		for item, err := range event.ReadFrom(home.EventsDir(), nil) {
			if ctx.Err() != nil {
				break
			}
			if err == nil && sees(&item.Event) {
				out = append(out, thing{item.ID, string(item.Type) + " " + eventWhat(item.Event, 60)})
			}
			if len(out) > 2*completeMost {
				out = out[completeMost:]
			}
		}
		slices.Reverse(out)
		return out
	})
}

// completeSessions offers the sessions that are known, the newest first.
func completeSessions(app *App) completer {
	return completeThings(func(ctx context.Context) (out []thing) {
		home, err := app.Home()
		if err != nil {
			return nil
		}
		organizer, err := app.Organizer()
		if err != nil {
			return nil
		}
		_ = organizer.SessionStats(ctx, func(s learn.Stats) bool { // what can be read is offered
			if home.Project == nil || s.Project == home.Project.Name {
				out = append(out, thing{s.Session, s.Client + ", " + s.Start.Local().Format("2006-01-02 15:04")})
			}
			return true
		})
		slices.Reverse(out)
		return out
	})
}

// completePolicies offers the versions of what recall ranks by.
func completePolicies(app *App) completer {
	return completeThings(func(ctx context.Context) (out []thing) {
		organizer, err := app.Organizer()
		if err != nil {
			return nil
		}
		list, _ := organizer.Policies(ctx)
		for _, v := range list {
			out = append(out, thing{v.ID, v.Op + " for " + v.For.String() + ", " + v.Time.Local().Format("2006-01-02 15:04")})
		}
		return out
	})
}

// completeAnswers offers the questions that were answered.
func completeAnswers(app *App) completer {
	return completeThings(func(ctx context.Context) (out []thing) {
		list, _ := answers(ctx, app, false)
		for _, v := range list {
			out = append(out, thing{v.ID, v.Question})
		}
		return out
	})
}

// completePreferences offers what is kept of how the user likes things, and what is suggested.
func completePreferences(app *App) completer {
	return completeThings(func(ctx context.Context) (out []thing) {
		s, err := app.Scopes()
		if err != nil {
			return nil
		}
		list, _ := s.Profile(ctx)
		for _, p := range list {
			what := "suggested: "
			if p.Kept {
				what = "kept: "
			}
			out = append(out, thing{p.ID, what + p.Text})
		}
		return out
	})
}

// completeVerifications offers what was verified.
func completeVerifications(app *App) completer {
	return completeThings(func(context.Context) (out []thing) {
		home, err := app.Home()
		if err != nil || home.Project == nil {
			return nil
		}
		list, _, _ := app.verifyStore(home).List(completeMost)
		for _, r := range list {
			out = append(out, thing{r.ID, string(r.Status) + " " + r.Trigger + ", " + r.Started.Local().Format("2006-01-02 15:04")})
		}
		return out
	})
}

// completeGated offers the sessions whose turns were looked at.
func completeGated(app *App) completer {
	return completeThings(func(context.Context) (out []thing) {
		home, err := app.Home()
		if err != nil || home.Project == nil {
			return nil
		}
		list, _ := app.verifyStore(home).Sessions()
		slices.SortFunc(list, func(a, b verify.GateState) int { return b.Modified.Compare(a.Modified) })
		for _, s := range list {
			out = append(out, thing{s.Session, s.Client + ", kept " + times(s.Total)})
		}
		return out
	})
}

// completeCounted offers the sessions that are held to delegating.
func completeCounted(app *App) completer {
	return completeThings(func(ctx context.Context) (out []thing) {
		v, err := app.delegation(ctx, "")
		if err != nil {
			return nil
		}
		for _, s := range v.Sessions {
			out = append(out, thing{s.Session, s.Role + " of " + s.Client})
		}
		return out
	})
}

// completeSaved offers the workspaces of which something was kept.
func completeSaved(app *App) completer {
	return completeThings(func(ctx context.Context) (out []thing) {
		ws, err := app.Workspaces()
		if err != nil {
			return nil
		}
		list, _ := ws.ListSaved(ctx, "")
		for _, s := range slices.Backward(list) {
			out = append(out, thing{s.Workspace, "kept " + s.At.Local().Format("2006-01-02 15:04")})
		}
		return out
	})
}

// completeSteps offers the steps of tasks that were begun and are not ended.
func completeSteps(app *App) completer {
	return completeThings(func(ctx context.Context) (out []thing) {
		b, err := app.loadTasks(ctx)
		if err != nil {
			return nil
		}
		for _, n := range b.State.Numbers() {
			for _, o := range b.State.Tasks[n].Operations {
				out = append(out, thing{o.Session, fmt.Sprintf("%s of %d: %s", o.Name, n, b.State.Tasks[n].Title)})
			}
		}
		return out
	})
}

// completeTokensOfClaims offers the tokens of the items that are claimed.
func completeTokensOfClaims(app *App) completer {
	return completeThings(func(ctx context.Context) (out []thing) {
		for _, it := range app.offeredItems(ctx) {
			if it.State == queue.Claimed {
				out = append(out, thing{string(queue.NewToken(it.ID, it.Fence)), it.Title})
			}
		}
		return out
	})
}

// completeLabels offers the labels that items have.
func completeLabels(app *App) completer {
	return completeThings(func(ctx context.Context) (out []thing) {
		n := map[string]int{}
		var names []string
		for _, it := range app.offeredItems(ctx) {
			for _, l := range it.Labels {
				if n[l]++; n[l] == 1 {
					names = append(names, l)
				}
			}
		}
		slices.Sort(names)
		for _, l := range names {
			out = append(out, thing{l, count(n[l], "item")})
		}
		return out
	})
}

// offeredItems are the items of the queue, as far as they can be read.
func (a *App) offeredItems(ctx context.Context) []queue.Item {
	q, err := a.Queue(proc.ID{})
	if err != nil {
		return nil
	}
	l, _ := q.List(ctx, queue.Filter{})
	return l.Items
}

// completeLoops offers the loops that something is kept of.
func completeLoops(app *App) completer {
	return completeThings(func(context.Context) (out []thing) {
		_, dir, err := app.loopDir()
		if err != nil {
			return nil
		}
		its, _, _ := loop.Iterations(dir, "")
		for _, it := range slices.Backward(its) {
			out = append(out, thing{it.Loop, "ended an item " + it.Ended.Local().Format("2006-01-02 15:04")})
		}
		return out
	})
}

// completeWorkerProjects offers the projects that the settings name for workers.
func completeWorkerProjects(app *App) completer {
	return completeThings(func(context.Context) (out []thing) {
		home, err := app.Home()
		if err != nil {
			return nil
		}
		for _, p := range home.Settings.Worker.Projects {
			out = append(out, thing{p.Name, p.Remote})
		}
		return out
	})
}

// completeTaskContext offers the context files, and the agents.
func completeTaskContext(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	names := slices.Clone(plugin.ContextNames())
	for _, n := range plugin.AgentNames() {
		names = append(names, "agent/"+n)
	}
	return fixed(names)(cmd, args, begun)
}

// completeLanguages offers the languages of which something is known in particular.
func completeLanguages(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, n := range plugin.ContextNames() {
		if lang, ok := strings.CutPrefix(n, "project/"); ok {
			names = append(names, lang)
		}
	}
	return fixed(names)(cmd, nil, begun)
}

// completeSchemas offers the names of the schemas of hooks.
func completeSchemas(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, n := range schema.All() {
		names = append(names, n.Name)
	}
	return fixed(names)(cmd, args, begun)
}

// completeHookClients offers the clients, and after one its events.
func completeHookClients(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return fixed(dialect.Clients())(cmd, nil, begun)
	}
	m := dialect.ManifestOf(args[0])
	if len(args) > 1 || m == nil || !strings.Contains(cmd.Use, " EVENT") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, e := range m.Events {
		names = append(names, e.Name)
	}
	return fixed(names)(cmd, nil, begun)
}

// fixed offers words that do not change.
func fixed(names []string) completer {
	return completeThings(func(context.Context) (out []thing) {
		for _, n := range names {
			out = append(out, thing{id: n})
		}
		return out
	})
}
