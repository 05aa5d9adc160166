package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/run"
)

// runRule says whether a command may be called by a run, or by what a run starts. A run's words
// would else pass for those of the person who set its bounds.
type runRule int

const (
	// runsTell is for what only tells something.
	runsTell runRule = iota + 1
	// runsOwn is for what changes what is the agent's to change, or looks by itself at who asks.
	runsOwn
	// runsToken is for what settles an item: of a claim of one's own, by its token.
	runsToken
	// runsBelow is for what ends a run, or goes on with it: of those that the run began itself,
	// or that came of these.
	runsBelow
	// runsNever is for what is a person's to say. With --dry-run it only tells.
	runsNever
	// runsNeverSay is runsNever with one of the flags of personsFlags; without one the command
	// shows, wants a terminal, or is for the agent's client.
	runsNeverSay
)

// personsFlags are those by which nobody is asked, something is taken back or others are let in.
var personsFlags = map[string][]string{
	"trust":   {"yes", "revoke"},
	"refresh": {"force", "install-aliases", "remove-aliases"},
	"mcp":     {"http", "no-auth"},
}

// inRuns has every command. A new one has to decide (TestEachCommandSaysWhetherRunsMay).
var inRuns = ruled(map[runRule]string{
	runsTell: `status; watch; demo; doctor; paths; version; bug-report; compliance; metrics; recall; qa; qa list; qa show; help;
		config check; config get; config show; context show; context suggestions; checkpoint list; handoff list; team;
		delegation status; gates status; judge status; guard check; guard pending; guard rules; guard test;
		events export; events list; events outbox; events show; events stats; events tail; events verify;
		hook matrix; hook replay; hook schema; index status; log show; scratch show;
		loop audit; loop bootstrap; loop logs; loop metrics; loop report; loop status; mcp bundle; mcp token list; mcp verify;
		memory check; memory conflicts; memory list; memory path; memory profile; memory profile show; memory read; memory search; memory why;
		policy; policy diff; policy evaluate; policy history; policy show; queue history; queue list; queue next; queue show;
		runs list; runs show; runs logs; runs files; runs wait; state branch show; state ci; state find; state metrics; state plan show; state show;
		task list; task show; task check; task context; task deps; task errors; verify explain; verify list; verify show;
		worker list; workspace env; workspace list; workspace saved; workspace show`,
	runsOwn: `artifact add; checkpoint; config set; config unset; context set; context promote; decide; events migrate; handoff; handoff accept;
		hook; hook record; import memory; import transcripts; index embed; index rebuild; init; judge ask; learn; log; log add; log copy;
		loop ask; loop progress; loop run; memory append; memory correct; memory create; memory decide; memory demote; memory expire;
		memory forget; memory init; memory learn; memory pack-skill; memory profile drop; memory profile edit; memory profile keep; memory promote;
		memory summarize; memory sync; memory update; memory useful; memory useless; note; qa forget; queue add; queue check; queue claim;
		queue extend; queue progress; scratch; spawn; state archive; state branch; state fork;
		state fsck; state gc; state hooks install; state hooks remove; state hooks run; state init; state plan; state pull; state push; state rename;
		state reset; state sync; task abandon; task begin; task block; task cancel; task edit; task errors add; task finish; task implement; task meta;
		task new; task phase; task plan; task recover; task research; task review; task revise; task run; task todo; verify;
		workspace create; workspace enter; workspace remove; workspace restore; web; supervise; protect; script-agent; merge-driver`,
	runsToken: `queue done; queue fail; queue park; queue release`,
	runsBelow: `runs cancel; runs extend; runs resume`,
	runsNever: `delegation reset; project rename; gates reset; guard approve; guard deny; guard learn; judge reset; loop gc; loop interrupt; loop notify; loop pause; loop resume; loop stop;
		mcp install; mcp token create; mcp token revoke; mcp uninstall; policy rollback; queue drop; queue edit; queue gc; queue migrate; queue retry;
		queue unpark; runs gc; setup; upgrade; worker; worker prepare`,
	runsNeverSay: `mcp; refresh; trust`,
})

func ruled(words map[runRule]string) map[string]runRule {
	all := map[string]runRule{}
	for rule, list := range words {
		for name := range strings.SplitSeq(list, ";") {
			all[strings.Join(strings.Fields(name), " ")] = rule
		}
	}
	return all
}

// commandName is a command without the program's name.
func commandName(cmd *cobra.Command) string {
	_, name, _ := strings.Cut(cmd.CommandPath(), " ")
	return name
}

// mayCall refuses, within a run, what is a person's to say: the program itself does, for a guard
// sees the words of a client's command and not those of a script that it starts.
func (a *App) mayCall(cmd *cobra.Command, args []string) error {
	if a.Env.Get(proc.RunIDVar) == "" {
		return nil
	}
	name := commandName(cmd)
	switch inRuns[name] {
	case runsToken:
		if len(args) > 0 && queue.IsToken(args[0]) {
			return nil
		}
		return exitWith(ExitConflict, fmt.Errorf("within a run `reprise %s` settles only what it has claimed itself, by the token of that claim; of other items a person says so", name))
	case runsBelow:
		ids := args
		if name != "runs cancel" {
			ids = args[:min(len(args), 1)] // what follows is no run
		}
		return a.beganItself(name, ids)
	case runsNeverSay:
		said := func(flag string) bool { return cmd.Flags().Changed(flag) }
		at := slices.IndexFunc(personsFlags[name], said)
		if at < 0 {
			return nil
		}
		name += " --" + personsFlags[name][at]
	case runsNever:
		if dry, err := cmd.Flags().GetBool("dry-run"); err == nil && dry {
			return nil
		}
	default:
		return nil
	}
	how := "say what should be done, and leave it to them"
	if a.loopSession() != nil {
		how = "ask them with `reprise loop ask`"
	}
	return exitWith(ExitConflict, fmt.Errorf("`reprise %s` is a person's to say, and this is within a run: %s", name, how))
}

// beganItself refuses, within a run, runs that it did not begin: they are others' work, or what
// a person bounded, as the run's own time.
func (a *App) beganItself(name string, ids []string) error {
	runs, err := a.Runs()
	if err != nil {
		return err
	}
	own := a.Env.Get(proc.RunIDVar)
	for _, id := range ids {
		r, err := runs.Get(id)
		if err != nil && !errors.Is(err, run.ErrNotFound) {
			return err
		}
		if err != nil || !slices.Contains(r.DelegationPath, own) {
			return exitWith(ExitConflict, fmt.Errorf("within a run `reprise %s` is for runs that it began itself, and %s is none; of others a person says so", name, id))
		}
	}
	return nil
}
