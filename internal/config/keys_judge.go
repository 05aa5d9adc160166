package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Judge says which model is asked where reprise itself has a question: for a
// session's summary, where the guard is unsure, for a review. Only the user's own
// settings have this section; no project's file has it.
type Judge struct {
	Client     string // "" is off; claude, gemini, copilot or script
	Program    string // "": the client's own name, or claude_cli.path
	Model      string // "" leaves it to the client
	ScriptFile string // steps of the script client

	Purposes             []string // what it may be asked for
	TimeoutSeconds       int
	BudgetUSDPerDay      float64 // of one purpose
	BudgetUSDPerQuestion float64
	CallsPerDay          int // of one purpose
	CacheHours           int // that an answer is given again; 0 is never
}

// DefaultJudge is what holds without settings: nobody is asked.
func DefaultJudge() Judge {
	return Judge{Purposes: judgePurposes(), TimeoutSeconds: 30, BudgetUSDPerDay: 1, BudgetUSDPerQuestion: 0.1, CallsPerDay: 200, CacheHours: 24}
}

func judgePurposes() []string { return []string{"summary", "guard", "review"} }

func judgeKeys() []key {
	return []key{
		strKey("judge.client", "client that is asked where reprise has a question of its own: claude, gemini, copilot or script; empty: nobody is asked",
			func(s *Settings) *string { return &s.Judge.Client }, checkJudge),
		strKey("judge.program", "its program: a name to look up in PATH, or an absolute path; empty: the client's own name, or claude_cli.path",
			func(s *Settings) *string { return &s.Judge.Program }, checkProgram),
		strKey("judge.model", "model that it is asked to use, as the client spells it; empty leaves it to the client", func(s *Settings) *string { return &s.Judge.Model }, checkWord),
		strKey("judge.script_file", "file of steps that the script client plays as a judge", func(s *Settings) *string { return &s.Judge.ScriptFile }, checkPath),
		listKey("judge.purposes", "what it may be asked for: summary, guard, review", func(s *Settings) *[]string { return &s.Judge.Purposes }, checkPurpose),
		intKey("judge.timeout_seconds", "the longest that an answer may take", func(s *Settings) *int { return &s.Judge.TimeoutSeconds }, 1, 600),
		usdKey("judge.budget_usd_per_day", "US dollars that the questions of one purpose may cost in a day", func(s *Settings) *float64 { return &s.Judge.BudgetUSDPerDay }, 10_000),
		usdKey("judge.budget_usd_per_question", "US dollars that one question may cost", func(s *Settings) *float64 { return &s.Judge.BudgetUSDPerQuestion }, 100),
		intKey("judge.calls_per_day", "questions of one purpose in a day", func(s *Settings) *int { return &s.Judge.CallsPerDay }, 0, 1_000_000),
		intKey("judge.cache_hours", "hours that an answer is given again to the same question; 0 is never", func(s *Settings) *int { return &s.Judge.CacheHours }, 0, 24*365),
	}
}

// checkJudge refuses what is no client that can be asked without tools, which codex
// cannot: internal/judge has the reason.
func checkJudge(_ Env, text string) (string, string, string) {
	switch text {
	case "claude", "gemini", "copilot", "script":
		return text, "", ""
	case "codex":
		return "", "is codex, which cannot be asked without tools of its own", "write one of claude, gemini, copilot, script; docs/judge.md says why"
	}
	return "", fmt.Sprintf("%q is not one of its values", shown(text)), "write one of claude, gemini, copilot, script"
}

func checkPurpose(_ Env, text string) (string, string, string) {
	for _, p := range judgePurposes() {
		if p == text {
			return text, "", ""
		}
	}
	return "", fmt.Sprintf("%q is not one of its values", shown(text)), "write one of " + strings.Join(judgePurposes(), ", ")
}

// usdKey is an amount of money from 0 to hi.
func usdKey(name, doc string, field func(*Settings) *float64, hi float64) key {
	return key{name, doc,
		func(l *loader, n ast.Node) {
			if v, ok := l.usd(name, n, hi); ok {
				*field(&l.out) = v
			}
		},
		func(s Settings) any { return *field(&s) }, nil}
}

// usd is an amount of money from 0 to hi, written in plain decimal.
func (d *document) usd(name string, n ast.Node, hi float64) (float64, bool) {
	remedy := fmt.Sprintf("write an amount from 0 to %v, such as 0.50", hi)
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
	default:
		d.add(n, name, "is "+describe(n)+", not an amount of money", remedy)
		return 0, false
	}
	text := strings.TrimSpace(n.GetToken().Value)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || v < 0 || v > hi || strings.Trim(text, "0123456789.") != "" || len(text) > 1 && text[0] == '0' && text[1] != '.' {
		d.add(n, name, shown(text)+" is not an amount of money that it can have", remedy)
		return 0, false
	}
	return v, true
}
