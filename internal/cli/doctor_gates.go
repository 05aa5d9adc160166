package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reprise/internal/config"
	"reprise/internal/hook"
	"reprise/internal/setup"
	"reprise/internal/term"
	"reprise/internal/verify"
)

// checkGates says whether anything keeps agents of this project from ending too
// early, and what keeps that from working.
func (a *App) checkGates(context.Context) []setup.Finding {
	home, err := a.Home()
	if err != nil {
		return one(setup.Warn, "mend the settings", "what gates there are is not known: %v", err)
	}
	if home.Project == nil {
		if lost, err := home.Paths.Lost(home.Env, home.Dir); err == nil && lost != nil {
			return one(setup.Warn, "bring it back, or have gates off for good with `reprise trust --revoke`", "off: %s %s, and the checks that were approved are not run", lost.Project.File(), lost.Why())
		}
		return one(setup.Info, "", "%s is in no project, so nothing is verified here", a.Env.Dir)
	}
	_, trust, err := verifyHome(a)
	if err != nil {
		return one(setup.Warn, "see `reprise gates status`", "what was approved is not known: %v", err)
	}
	v, err := gatesOf(a, home, trust)
	if err != nil {
		return one(setup.Warn, "see `reprise gates status`", "what gates keep is not known: %v", err)
	}
	var out []setup.Finding
	switch {
	case strings.HasPrefix(v.Works, "on"):
		out = one(setup.OK, "", "%s", v.Works)
	case (v.Checks || trust.Lapsed()) && !v.Trusted:
		out = one(setup.Warn, "look at them with `reprise trust`, and approve them", "%s", v.Works)
	default:
		out = one(setup.Info, "", "%s", v.Works)
	}
	switch e := v.Ends; {
	case e.Unjudged > 1:
		out = append(out, one(setup.Warn, "do what it says; where the time was over, raise gates.timeout_seconds, or put less into the quick profile; `reprise verify list` has them",
			"%d of the newest %d verifications came to no result, so those turns ended unjudged; the newest: %s", e.Unjudged, verify.LookedAt, term.SafeLine(e.Newest.Unjudged()))...)
	case e.Loose != nil:
		out = append(out, one(setup.Warn, "see `reprise verify show "+e.Loose.ID+"`", "the last turn %s", term.SafeLine(e.Loose.Loose()))...)
	}
	for _, s := range v.Sessions {
		if s.Problem != "" {
			out = append(out, one(setup.Warn, "`reprise gates reset --all` begins anew", "a session's note was %s: its blocks are counted by the results", s.Problem)...)
			break
		}
	}
	j := home.Settings.Judge
	if strings.HasPrefix(v.Works, "on") && home.Settings.Gates.Off("review", trust.Says.Verify) == "" && (j.Client == "" || !slices.Contains(j.Purposes, "review")) {
		out = append(out, one(setup.Warn, "set judge.client, and add review to judge.purposes; or set gates.review to off", "work is to be reviewed, and nobody is there to do it")...)
	}
	return out
}

func one(s setup.Status, remedy, format string, args ...any) []setup.Finding {
	return []setup.Finding{{Status: s, Message: fmt.Sprintf(format, args...), Remedy: remedy}}
}

// checkDelegation says who is held to delegating, and what is wrong with what is
// counted.
func (a *App) checkDelegation(ctx context.Context) []setup.Finding {
	v, err := a.delegation(ctx, "")
	if err != nil {
		return one(setup.Warn, "see `reprise delegation status`", "what sessions do themselves is not known: %v", err)
	}
	var out []setup.Finding
	for _, d := range v.Damaged {
		out = append(out, one(setup.Warn, "nothing is to be done: it is counted anew from the event log at the session's next call", "%s: %s", d.File, d.Problem)...)
	}
	role := a.Env.Get(hook.RoleVar)
	if v.Unknown != "" {
		out = append(out, one(setup.Warn, "set it to one of "+strings.Join(config.Roles(), ", ")+", or unset it", "%s is %q here, which is no role: nothing of such a session is counted", hook.RoleVar, clipText(role, 40))...)
	}
	for _, r := range v.Roles {
		if r.Role == role && (r.Warn > 0 || r.Block > 0) {
			out = append(out, one(setup.Info, "", "AGENT_ROLE is %s here: sessions started in this shell are told from call %d of their own work on, and refused after %d", role, r.Warn, r.Block)...)
		}
	}
	if len(out) == 0 {
		out = one(setup.OK, "", "%d tiers, %s counted; only a session with AGENT_ROLE conductor or section-leader is held to anything", v.Tiers, count(len(v.Sessions), "session"))
	}
	return out
}
