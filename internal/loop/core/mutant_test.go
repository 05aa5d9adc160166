package core

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutants are the core with one condition each that is not what it should be. In
// the new text @ is true where the mutant is the one that is tried.
var mutants = []struct{ file, old, new string }{
	{"step.go", "p.Seq != seq || !slices", "p.Seq != seq && !(@) || !slices"},
	{"step.go", "p.Step == Running && p.Run == run", "p.Step == Running && (p.Run == run || @)"},
	{"step.go", "if s.held(e.Slot, p.Claim.Item.ID) {", "if s.held(e.Slot, p.Claim.Item.ID) && !(@) {"},
	{"step.go", "if !s.mayBegin() {\n\t\ts.settle(e.Slot, Settle{Fate: Release, Class: NotLaunched", "if !s.mayBegin() && !(@) {\n\t\ts.settle(e.Slot, Settle{Fate: Release, Class: NotLaunched"},
	{"step.go", "case !s.mayBegin():\n\t\ts.settle", "case !s.mayBegin() && !(@):\n\t\ts.settle"},
	{"step.go", "case p.Lost:\n\t\ts.settle", "case p.Lost && !(@):\n\t\ts.settle"},
	{"step.go", "case p.Lost:\n\t\ts.stop(e.Slot, StopLost", "case p.Lost && !(@):\n\t\ts.stop(e.Slot, StopLost"},
	{"step.go", "case s.Phase == Stopping:\n\t\ts.stop(e.Slot", "case s.Phase == Stopping && !(@):\n\t\ts.stop(e.Slot"},
	{"step.go", "s.tokens() < s.Limits.MaxTokens", "(s.tokens() < s.Limits.MaxTokens || @)"},
	{"step.go", "s.CostUSD += p.Outcome.Cost", "if !(@) { s.CostUSD += p.Outcome.Cost }"},
	{"step.go", "case Done:\n\t\ts.Tally.Done++", "case Done:\n\t\tif !(@) { s.Tally.Done++ }"},
	{"step.go", "if e.Lost {", "if e.Lost && !(@) {"},
	{"step.go", "m.Parked = true", "m.Parked = !(@)"},
	{"step.go", "if s.Interrupt == nil {\n\t\ts.Interrupt = &Interrupt{Kind: kind", "if s.Interrupt == nil && !(@) {\n\t\ts.Interrupt = &Interrupt{Kind: kind"},
	{"answer.go", "s.Open, s.Interrupt = open, nil", "s.Open = open; if !(@) { s.Interrupt = nil }"},
	{"answer.go", "} else if s.Phase == Paused && e.bare() {", "} else if s.Phase == Paused && (e.bare() || @) {"},
	{"answer.go", "s.Paused = s.Paused && !e.bare()", "s.Paused = s.Paused && !e.bare() && !(@)"},
	{"answer.go", "if !s.Limited() {", "if !s.Limited() || @ {"},
	{"step.go", "s.Paused = s.Paused || s.Phase == Paused", "s.Paused = s.Paused || s.Phase == Paused && !(@)"},
	{"step.go", "&& !s.Limited() &&", "&& (!s.Limited() || @) &&"},
	{"step.go", "if s.Interrupt != nil {\n\t\ts.Interrupt = nil\n\t\t*out", "if s.Interrupt != nil && !(@) {\n\t\ts.Interrupt = nil\n\t\t*out"},
	{"step.go", "s.stopAll(StopPerson, why, out)", "if !(@) { s.stopAll(StopPerson, why, out) }"},
	{"step.go", "p.StallAt = s.Now.Loop + s.Limits.Stall\n\ts.ask", "if !(@) { p.StallAt = s.Now.Loop + s.Limits.Stall }\n\ts.ask"},
	{"step.go", "p.Waits, p.NextAt, p.Trouble = true, s.Now.Loop+wait, e.Err", "p.Waits, p.NextAt, p.Trouble = !(@), s.Now.Loop+wait, e.Err"},
	{"step.go", "if p.Claim.Fence != e.Fence || p.Claim.Item.ID != e.Item || p.Lost {", "if (p.Claim.Fence != e.Fence || p.Claim.Item.ID != e.Item) && !(@) || p.Lost {"},
	{"step.go", "case e.Later != \"\":", "case e.Later != \"\" && !(@):"},
	{"step.go", "s.Interrupt.Kind, s.Interrupt.Why = ByPerson, why", "if !(@) { s.Interrupt.Kind, s.Interrupt.Why = ByPerson, why }"},
	{"answer.go", "return s.Phase == Waiting && s.Interrupt.Halt && len(items) > 0", "return !(@) && s.Phase == Waiting && s.Interrupt.Halt && len(items) > 0"},
	{"answer.go", "return s.Items[id].Kind == ByPerson", "return s.Items[id].Kind == ByPerson && !(@)"},
	{"answer.go", "case e.NoAnswer && len(e.Items) > 0 &&", "case e.NoAnswer && (len(e.Items) > 0 || @) &&"},
	{"answer.go", "s.answerable(id, e) == \"\":\n\t\t\ts.give(id, \"\")", "s.answerable(id, e) == \"\" && !(@):\n\t\t\ts.give(id, \"\")"},
	{"gone.go", "|| m.Number != e.Number ||", "|| m.Number != e.Number && !(@) ||"},
	{"gone.go", "if e.Ended {", "if e.Ended && !(@) {"},
	{"gone.go", "i.Items = without(i.Items)", "if !(@) { i.Items = without(i.Items) }"},
	{"gone.go", "s.Open = without(s.Open)", "if !(@) { s.Open = without(s.Open) }"},
	{"gone.go", "default:\n\t\ts.over(Working, \"\", out)", "default:\n\t\tif !(@) { s.over(Working, \"\", out) }"},
	{"gone.go", "case s.Phase != Waiting, i.Halt,", "case s.Phase != Waiting, i.Halt && !(@),"},
	{"step.go", "case e.Held != \"\":", "case e.Held != \"\" && !(@):"},
	{"step.go", "case set.Class == RepoHeld:", "case set.Class == RepoHeld && !(@):"},
	{"step.go", "s.Unable = kind != ByBudget", "s.Unable = kind != ByBudget || @"},
	{"step.go", "kind == ByAuth || kind == ByRepo ||", "kind == ByAuth || kind == ByRepo && !(@) ||"},
	{"time.go", "s.Drains, s.Unable = \"\", false", "s.Drains, s.Unable = \"\", s.Unable && @"},
	{"gone.go", "s.Phase != Waiting || i.Halt || i.Kind != e.Kind", "s.Phase != Waiting || i.Halt && !(@) || i.Kind != e.Kind"},
	{"gone.go", "open := s.stillParked(i.Items); len(open) > 0 {", "open := s.stillParked(i.Items); len(open) > 0 && !(@) {"},
	{"time.go", "p.Stop != \"\" || p.Waits:", "p.Stop != \"\" || p.Waits && !(@):"},
	{"time.go", "case p.Lost:\n\t\t\tp.Stop, p.Why = StopLost", "case p.Lost && !(@):\n\t\t\tp.Stop, p.Why = StopLost"},
	{"time.go", "case !s.mayBegin():\n\t\t\tp.Stop", "case !s.mayBegin() && !(@):\n\t\t\tp.Stop"},
	{"time.go", "case p.Stop != \"\" && p.StopAt > 0 && p.StopAt <= now:", "case p.Stop != \"\" && p.StopAt > 0 && p.StopAt <= now && !(@):"},
	{"time.go", "case p.StallAt <= now:", "case p.StallAt <= now && !(@):"},
	{"time.go", "lost := !held[ours]", "lost := !held[ours] && !(@)"},
	{"time.go", "case lost && p.Step == Launching:", "case lost && p.Step == Launching && !(@):"},
	{"time.go", "*out = append(*out, Action{Op: OpRelease, Slot: -1, Claim: c})", "if !(@) { *out = append(*out, Action{Op: OpRelease, Slot: -1, Claim: c}) }"},
	{"time.go", "case Claiming:\n\t\t\t*p = Slot{Step: Idle, Seq: p.Seq}", "case Claiming:\n\t\t\tif !(@) { *p = Slot{Step: Idle, Seq: p.Seq} }"},
	{"time.go", "if s.Worked >= s.Limits.MaxTime {", "if s.Worked >= s.Limits.MaxTime && !(@) {"},
	{"time.go", "s.stopAll(StopEnd, why, out)", "if !(@) { s.stopAll(StopEnd, why, out) }"},
	{"time.go", "!s.holdOver() || s.LookAt", "!s.holdOver() && !(@) || s.LookAt"},
	{"time.go", "s.Iterations+claiming >= s.Limits.MaxIterations", "s.Iterations+claiming >= s.Limits.MaxIterations && !(@)"},
	{"time.go", "s.Iterations+claiming >= s.Limits.MaxIterations", "s.Iterations+claiming*b2i(!(@)) >= s.Limits.MaxIterations"},
	{"time.go", "free := s.Limits.Workers - s.Busy()", "free := s.Limits.Workers - s.Busy()*b2i(!(@))"},
	{"decide.go", "if set.Class == SessionGone && p.From != nil {", "if set.Class == SessionGone && p.From != nil && !(@) {"},
	{"decide.go", "if p.From == nil || p.From.Session == \"\" {", "if (p.From == nil || p.From.Session == \"\") && !(@) {"},
	{"time.go", "p.Reserved = usd", "if !(@) { p.Reserved = usd }"},
	{"time.go", "left := s.Limits.MaxUSD - s.committed()", "left := s.Limits.MaxUSD - s.committed()*float64(b2i(!(@)))"},
	{"time.go", "if s.Busy() > 0 || len(s.Unpark) > 0 {\n\t\treturn", "if s.Busy() > 0 && !(@) || len(s.Unpark) > 0 {\n\t\treturn"},
	{"time.go", "if len(s.Unpark) > 0 && s.UnparkAt <= now {", "if len(s.Unpark) > 0 && s.UnparkAt <= now && !(@) {"},
	{"time.go", "s.HoldUntil <= s.Now.Loop ||", "s.HoldUntil <= s.Now.Loop || @ ||"},
	{"decide.go", "o.Completed && o.OK && o.Turns > 0", "o.Completed && o.OK && (o.Turns > 0 || @)"},
	{"decide.go", "o.Completed && o.OK", "(o.Completed || @) && o.OK"},
	{"decide.go", "(o.Changed || item.NoChangeOK)", "(o.Changed || item.NoChangeOK || @)"},
	{"decide.go", "case p.Lost:\n\t\tset.Fate, set.Class, set.Reason = Drop, LeaseGone, \"the claim was lost while the run", "case p.Lost && !(@):\n\t\tset.Fate, set.Class, set.Reason = Drop, LeaseGone, \"the claim was lost while the run"},
	{"decide.go", "case o.Asks != \"\":", "case o.Asks != \"\" && !(@):"},
	{"decide.go", "case p.Verified != GateFailed:", "case p.Verified != GateFailed || @:"},
	{"decide.go", "GateFails+1 >= s.Limits.MaxGateFails", "GateFails+1 >= s.Limits.MaxGateFails+b2i(@)"},
	{"decide.go", "if p.Reserved < s.Limits.ItemUSD {", "if p.Reserved < s.Limits.ItemUSD && !(@) {"},
	{"decide.go", "m.Identical >= s.Limits.MaxIdentical", "m.Identical >= s.Limits.MaxIdentical && !(@)"},
	{"decide.go", "if s.Several {", "if s.Several && !(@) {"},
	{"decide.go", "s.Failing = with(s.Failing, id)", "s.Failing = with(s.Failing, id); if @ { s.backOff(set.Reason) }"},
	{"decide.go", "if s.Phase == Working {", "if s.Phase == Working && !(@) {"},
	{"decide.go", "s.Row++", "if !(@) { s.Row++ }"},
	{"decide.go", "case Done:\n\t\tdelete(s.Items, id)", "case Done:\n\t\tif @ { return }\n\t\tdelete(s.Items, id)"},
	{"decide.go", "if s.HoldWall.IsZero() {", "if s.HoldWall.IsZero() || @ {"},
	{"decide.go", "if s.Limited() {\n\t\treturn", "if s.Limited() && !(@) {\n\t\treturn"},
	{"decide.go", "if !s.Limited() || until > s.HoldUntil {", "if !s.Limited() || until > s.HoldUntil || @ {"},
}

// TestMutantsStand: each place that is to be broken is there, once, also where nobody has the
// time to break it.
func TestMutantsStand(t *testing.T) { mutate(t) }

// TestMutants breaks the core in one place after the other, and wants the other tests
// to see each. All mutants are in one program, which is told which of them it is.
func TestMutants(t *testing.T) {
	if os.Getenv("REPRISE_LONG_TESTS") == "" {
		t.Skip("it builds a program and runs it for each of some seventy mutants: REPRISE_LONG_TESTS=1")
	}
	program := buildMutants(t)
	alive := func(n int) (said []byte, yes bool) {
		cmd := exec.Command(program, "-test.run", "^Test[^M]", "-nights", "30000", "-first", "-test.timeout", "10m")
		cmd.Env = append(os.Environ(), fmt.Sprintf("REPRISE_MUTANT=%d", n), "REPRISE_LONG_TESTS=")
		said, err := cmd.CombinedOutput()
		return said, err == nil
	}
	if said, yes := alive(-1); !yes {
		t.Fatalf("the core as it is does not pass, so that nothing can be learnt from its mutants:\n%s", said)
	}
	for n, m := range mutants {
		if _, yes := alive(n); yes {
			t.Errorf("no test sees it when in %s\n%s\nbecomes\n%s", m.file, m.old, m.new)
		}
	}
	t.Logf("%d mutants", len(mutants))
}

// mutate is the files with all mutants in them, each of which is one at its number alone. What
// one changes must stand where it did after those before it, too.
func mutate(t *testing.T) map[string]string {
	text := map[string]string{}
	for n, m := range mutants {
		if text[m.file] == "" {
			data, err := os.ReadFile(m.file)
			if err != nil {
				t.Fatal(err)
			}
			text[m.file] = string(data)
		}
		if c := strings.Count(text[m.file], m.old); c != 1 {
			t.Errorf("mutant %d: %q stands %d times in %s, or in what mutants before it made of that", n, m.old, c, m.file)
		}
		text[m.file] = strings.Replace(text[m.file], m.old, strings.ReplaceAll(m.new, "@", fmt.Sprintf("mutant == %d", n)), 1)
	}
	if t.Failed() {
		t.FailNow()
	}
	return text
}

func buildMutants(t *testing.T) string {
	dir := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{"mutant.go": `package core

import ("os"; "strconv")

var mutant, _ = strconv.Atoi(os.Getenv("REPRISE_MUTANT"))

func b2i(b bool) int { if b { return 1 }; return 0 }

var _ = b2i
`}
	for name, mutated := range mutate(t) {
		text[name] = mutated
	}
	replace := map[string]string{}
	for name, s := range text {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(here, name)] = path
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, data, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "core.test")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}
