package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"reprise/internal/agent"
	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
)

// said reports whether a person, or the command itself, has given a flag.
func (f *loopFlags) said(name string) bool {
	if slices.Contains(f.says, name) {
		return true
	}
	if f.cmd == nil {
		return false
	}
	flag := f.cmd.Flags().Lookup(name)
	return flag != nil && flag.Changed
}

// unsaid does what holds where a flag was not given.
func (f *loopFlags) unsaid(flag string, still func()) {
	if !f.said(flag) {
		still()
	}
}

// given is how the loop works beside its limits, as its state has it.
func (f *loopFlags) given() core.Given {
	return core.Given{
		Agent: f.agent, Script: f.script, Model: f.model, Turns: f.turns, Labels: slices.Clone(f.labels), Integrate: f.integrate,
		Base: f.base, InPlace: f.inPlace, Unattended: f.unattended,
	}
}

// goOn takes over what a loop that died is bounded by, and how it works, as far as no flag
// says otherwise. It gives the state that this was read from: one without a loop where
// there is none to go on with.
func goOn(dir string, f *loopFlags, l *core.Limits) (*core.State, error) {
	s, err := loop.ReadState(dir)
	if err != nil {
		return nil, err
	}
	if s == nil || s.Phase == core.Finished {
		return &core.State{Phase: core.Finished}, nil
	}
	if running, _, err := loop.Running(durable.Disk{}, dir); err != nil || running {
		return nil, err // who begins beside it is told so
	}
	f.own(s.Given)
	*l = f.ownLimits(s.Limits, *l)
	if err := f.bounded(*l); err != nil {
		return nil, exitWith(ExitUsage, fmt.Errorf("the state of the loop that is to be gone on with (%s) is not to be believed: %s; give that flag, or move the file away to begin anew", filepath.Join(dir, "loop.json"), err.Error()))
	}
	return s, nil
}

// ownLimits are the limits of a loop that goes on: was, but for what flags say; now are
// those of a new one.
func (f *loopFlags) ownLimits(was, now core.Limits) core.Limits {
	f.unsaid("workers", func() { now.Workers = max(was.Workers, 1) })
	f.unsaid("max-iterations", func() { now.MaxIterations = cmp.Or(was.MaxIterations, now.MaxIterations) })
	f.unsaid("budget-usd", func() { now.MaxUSD = cmp.Or(was.MaxUSD, now.MaxUSD) })
	f.unsaid("item-usd", func() { now.ItemUSD = cmp.Or(was.ItemUSD, now.ItemUSD) })
	f.unsaid("max-tokens", func() { now.MaxTokens = cmp.Or(was.MaxTokens, now.MaxTokens) })
	f.unsaid("max-hours", func() { now.MaxTime = cmp.Or(was.MaxTime, now.MaxTime) })
	f.unsaid("timeout", func() { now.ItemTimeout = cmp.Or(was.ItemTimeout, now.ItemTimeout) })
	f.unsaid("stall", func() { now.Stall = cmp.Or(was.Stall, now.Stall) })
	f.unsaid("delay", func() { now.Delay = was.Delay })
	f.unsaid("backoff-unit", func() { now.BackoffUnit = cmp.Or(was.BackoffUnit, now.BackoffUnit) })
	now.BackoffMax = cmp.Or(was.BackoffMax, now.BackoffMax)
	if f.elsewhere == nil { // a worker itself ends so, with all its loops
		f.unsaid("until-empty", func() { now.UntilEmpty = was.UntilEmpty })
	}
	if !f.said("on-interrupt") && !f.said("unattended") {
		now.OnInterrupt = cmp.Or(was.OnInterrupt, now.OnInterrupt)
	}
	return now
}

// own takes over how a loop works that goes on; g is nil where an older program began it.
func (f *loopFlags) own(g *core.Given) {
	if g == nil {
		return
	}
	switch agentSaid, scriptSaid := f.said("agent"), f.said("agent-script"); {
	case !agentSaid && !scriptSaid:
		f.agent, f.script = g.Agent, g.Script
	case !scriptSaid && f.agent == agent.KindScript:
		f.script = g.Script
	}
	f.unsaid("model", func() { f.model = g.Model })
	f.unsaid("max-turns", func() { f.turns = g.Turns })
	f.unsaid("label", func() { f.labels = slices.Clone(g.Labels) })
	f.unsaid("integrate", func() { f.integrate = cmp.Or(g.Integrate, f.integrate) })
	f.unsaid("integrate", func() { f.into = g.Into })
	f.unsaid("base", func() { f.base = g.Base })
	f.unsaid("in-place", func() { f.inPlace = g.InPlace })
	if f.elsewhere == nil { // a worker always is
		f.unsaid("unattended", func() { f.unattended = g.Unattended })
	}
}

// loopGiven tells a loop how it works beside its limits, and looks at the steps that the
// script client would play.
func (a *App) loopGiven(home *config.Home, f *loopFlags, opt *loop.Options) (*core.Given, error) {
	given := f.given()
	if f.script != "" {
		opt.ScriptFile = a.abs(f.script)
		given.Script = opt.ScriptFile
	}
	opt.Given = &given
	if cmp.Or(opt.Only, opt.Client) != agent.KindScript {
		return opt.Given, nil
	}
	if err := checkSteps(cmp.Or(opt.ScriptFile, home.Settings.SubAgent.ScriptFile)); err != nil {
		return nil, exitWith(ExitUsage, err)
	}
	return opt.Given, nil
}
