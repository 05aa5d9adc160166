package config

import (
	"strings"
)

// Loop are the ceilings and habits of `reprise loop run`; each has a flag there, too.
// Only the user's own settings have this section.
type Loop struct {
	MaxIterations  int
	MaxHours       int
	MaxTokens      int
	BudgetUSD      float64
	ItemUSD        float64 // of one run
	Turns          int     // of one run
	TimeoutSeconds int     // of one run
	StallSeconds   int     // how long a run may say nothing
	DelaySeconds   int     // between two iterations of a worker
	BackoffSeconds int     // the longest wait after failures
	OnInterrupt    string  // wait or skip
	Integrate      string  // keep, merge or pr
	AllowedTools   []string
	RunDays        int // that the files of its runs are kept
	RunMB          int // that they may take together

	NotifyDesktop   string // on or off
	NotifyCommand   string // run by a shell
	NotifyWebhook   string
	NotifySecretVar string // variable that holds the key by which webhooks are signed
	NotifyMail      string // address, by the sendmail program
	NotifyPerHour   int
}

// defaultTools are what an agent that nobody watches may do without being asked.
func defaultTools() []string {
	return []string{"Bash", "Read", "Edit", "Write", "Glob", "Grep", "mcp__serena__*"}
}

func defaultLoop() Loop {
	return Loop{
		MaxIterations: 500, MaxHours: 8, MaxTokens: 50_000_000, BudgetUSD: 50, ItemUSD: 10, Turns: 50,
		TimeoutSeconds: 3600, StallSeconds: 600, DelaySeconds: 5, BackoffSeconds: 300, OnInterrupt: "wait", Integrate: "keep",
		AllowedTools: defaultTools(), RunDays: 30, RunMB: 2048, NotifyDesktop: "off", NotifyPerHour: 20,
	}
}

func loopKeys() []key {
	return []key{
		intKey("loop.max_iterations", "attempts at items that one loop may begin", func(s *Settings) *int { return &s.Loop.MaxIterations }, 1, 1_000_000),
		intKey("loop.max_hours", "hours that one loop may work", func(s *Settings) *int { return &s.Loop.MaxHours }, 1, 24*30),
		intKey("loop.max_tokens", "tokens that one loop may use", func(s *Settings) *int { return &s.Loop.MaxTokens }, 1, 1<<40),
		usdKey("loop.budget_usd", "US dollars that one loop may cost", func(s *Settings) *float64 { return &s.Loop.BudgetUSD }, 100_000),
		usdKey("loop.item_usd", "US dollars that one run may cost", func(s *Settings) *float64 { return &s.Loop.ItemUSD }, 10_000),
		intKey("loop.turns", "turns that one run may have", func(s *Settings) *int { return &s.Loop.Turns }, 1, 10_000),
		intKey("loop.timeout_seconds", "the longest that one run may take", func(s *Settings) *int { return &s.Loop.TimeoutSeconds }, 1, 24*3600*7),
		intKey("loop.stall_seconds", "how long a run may say nothing before it is stopped", func(s *Settings) *int { return &s.Loop.StallSeconds }, 10, 24*3600),
		intKey("loop.delay_seconds", "between two items of a worker", func(s *Settings) *int { return &s.Loop.DelaySeconds }, 0, 3600),
		intKey("loop.backoff_seconds", "the longest wait after failures in a row", func(s *Settings) *int { return &s.Loop.BackoffSeconds }, 1, 3600),
		enumKey("loop.on_interrupt", "when a person must decide: wait, or skip that item and go on", func(s *Settings) *string { return &s.Loop.OnInterrupt }, "wait", "skip"),
		enumKey("loop.integrate", "what becomes of the branch of an item that is done: keep it, merge it, or pr (a pull request, by gh)", func(s *Settings) *string { return &s.Loop.Integrate }, "keep", "merge", "pr"),
		listKey("loop.allowed_tools", "tools that a run needs no approval for, as the client spells them", func(s *Settings) *[]string { return &s.Loop.AllowedTools }, checkWord),
		intKey("loop.run_days", "days that `reprise loop gc` keeps the files of runs", func(s *Settings) *int { return &s.Loop.RunDays }, 0, 36500),
		intKey("loop.run_mb", "megabytes that these may take together; 0 is no bound", func(s *Settings) *int { return &s.Loop.RunMB }, 0, 10_000_000),
		onOff("loop.notify_desktop", "a notification of the desktop when a person must decide", func(s *Settings) *string { return &s.Loop.NotifyDesktop }),
		strKey("loop.notify_command", "command that a shell runs then, with REPRISE_NOTICE_KIND and REPRISE_NOTICE_TEXT in its environment", func(s *Settings) *string { return &s.Loop.NotifyCommand }, checkLine),
		strKey("loop.notify_webhook", "http or https address that is posted to then", func(s *Settings) *string { return &s.Loop.NotifyWebhook }, checkWebhook),
		strKey("loop.notify_secret_var", "variable of the environment with the key by which that is signed", func(s *Settings) *string { return &s.Loop.NotifySecretVar }, checkWord),
		strKey("loop.notify_mail", "address that mail is sent to by the sendmail program", func(s *Settings) *string { return &s.Loop.NotifyMail }, checkMail),
		intKey("loop.notify_per_hour", "notifications of one loop in an hour", func(s *Settings) *int { return &s.Loop.NotifyPerHour }, 0, 1000),
	}
}

func checkLine(_ Env, text string) (string, string, string) {
	if strings.ContainsAny(text, "\x00\n\r") {
		return "", "it has more than one line", "write it on one line"
	}
	return text, "", ""
}

func checkWebhook(_ Env, text string) (string, string, string) {
	if text != "" && !strings.HasPrefix(text, "https://") && !strings.HasPrefix(text, "http://") {
		return "", "it is no http or https address", "begin it with https://"
	}
	return checkLine(Env{}, text)
}

func checkMail(_ Env, text string) (string, string, string) {
	if text != "" && (!strings.Contains(text, "@") || strings.ContainsAny(text, " ,;<>") || strings.HasPrefix(text, "-")) {
		return "", "it is no mail address", "write one as name@example.org"
	}
	return checkLine(Env{}, text)
}
