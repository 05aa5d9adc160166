package session

import (
	"context"
	"slices"

	"reprise/internal/config"
	"reprise/internal/guard"
	"reprise/internal/hook/compile"
	"reprise/internal/learn"
	"reprise/internal/recall"
)

// Refused says why the guard, as it is set here, refuses a command; "" = it does not.
// It is for what the memory recommends: that a command once helped, with another guard or
// none, is no reason to advise what is refused now.
func Refused(home *config.Home, env config.Env) func(command string) string {
	var rules *guard.Rules
	return func(command string) string {
		if rules == nil {
			r := compile.Guard(home, env, "")
			r.Env = env.Get
			rules = &r
		}
		if v := rules.Command(command, env.Dir); v.Decision == guard.Deny && !rules.Off && !rules.Warn {
			return v.Reason
		}
		return ""
	}
}

// allowed leaves out of an answer what helped by a command that the guard refuses.
func (m *Memory) allowed(recalls func(context.Context, recall.Question) (recall.Answer, error)) func(context.Context, recall.Question) (recall.Answer, error) {
	return func(ctx context.Context, q recall.Question) (recall.Answer, error) {
		a, err := recalls(ctx, q)
		if err == nil {
			a.Results = m.withoutRefused(a.Results)
		}
		return a, err
	}
}

func (m *Memory) withoutRefused(list []recall.Result) []recall.Result {
	return slices.DeleteFunc(list, func(r recall.Result) bool {
		data, ok := learn.DataOf(r.Doc)
		return ok && data.Fix != nil && slices.ContainsFunc(data.Fix.Commands, func(c string) bool { return m.refused(c) != "" })
	})
}
