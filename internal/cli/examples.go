package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// withExamples gives each command below cmd, and cmd itself, an example in its help,
// where its own file has none. They stand in one place because one test runs them all,
// in a project that it has made ready for them; ids in them are that test's.
func withExamples(cmd *cobra.Command, list map[string]string) {
	if text := list[cmd.CommandPath()]; text != "" && cmd.Example == "" {
		cmd.Example = "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
	}
	for _, sub := range cmd.Commands() {
		withExamples(sub, list)
	}
}

// examples are lines of a shell, by command.
func examples() map[string]string {
	all := map[string]string{}
	for _, part := range []map[string]string{examplesOfClients(), examplesOfRuns(), examplesOfMemory(), examplesOfState(), examplesOfTasks()} {
		for command, text := range part {
			all[command] = text
		}
	}
	return all
}

// examplesOfClients are those of setting up, hooks, the guard, gates and what looks
// after reprise itself.
func examplesOfClients() map[string]string {
	return map[string]string{
		"reprise":                       "reprise\nreprise demo\nreprise init --yes",
		"reprise demo":                  "reprise demo",
		"reprise init":                  "reprise init --yes --name bakery",
		"reprise project":               "reprise project rename patisserie --dry-run",
		"reprise project rename":        "reprise project rename patisserie --dry-run",
		"reprise trust":                 "reprise trust --show\nreprise trust --yes",
		"reprise doctor":                "reprise doctor --quick\nreprise doctor --quick --json",
		"reprise version":               "reprise version",
		"reprise help":                  "reprise help queue add",
		"reprise paths":                 "reprise paths\nreprise paths data",
		"reprise config":                "reprise config show recall",
		"reprise config check":          "reprise config check",
		"reprise completion":            "source <(reprise completion bash)",
		"reprise completion bash":       "source <(reprise completion bash)",
		"reprise completion zsh":        "reprise completion zsh > _reprise",
		"reprise completion fish":       "reprise completion fish > reprise.fish",
		"reprise completion powershell": "reprise completion powershell > reprise.ps1",
		"reprise compliance":            "reprise compliance --since 7d",
		"reprise delegation":            "reprise delegation status",
		"reprise delegation status":     "reprise delegation status\nreprise delegation status --json",
		"reprise delegation reset":      "reprise delegation reset 5a13438d-5a8e-41c4-808c-0000000000c1",
		"reprise gates":                 "reprise gates status",
		"reprise gates status":          "reprise gates status\nreprise gates status --json",
		"reprise gates reset":           "reprise gates reset --all",
		"reprise guard":                 "reprise guard check -- 'git push --force origin main'",
		"reprise guard approve":         "reprise guard approve 0a1b2c3d",
		"reprise guard deny":            "reprise guard deny 0a1b2c3d --why \"not on this branch\"",
		"reprise guard learn":           "reprise guard learn",
		"reprise guard pending":         "reprise guard pending\nreprise guard pending --json",
		"reprise guard rules":           "reprise guard rules",
		"reprise guard test":            "echo '{\"id\":\"1\",\"command\":\"git status\",\"want\":\"allow\"}' > cases.jsonl\nreprise guard test cases.jsonl",
		"reprise hook":                  "reprise hook matrix claude",
		"reprise hook matrix":           "reprise hook matrix\nreprise hook matrix codex --json",
		"reprise verify":                "reprise verify\nreprise verify --profile quick --json",
		"reprise verify explain":        "reprise verify explain",
		"reprise verify list":           "reprise verify list",
		"reprise verify show":           "reprise verify show",
		"reprise judge":                 "reprise judge status",
		"reprise judge status":          "reprise judge status",
		"reprise judge reset":           "reprise judge reset",
		"reprise mcp token":             "reprise mcp token list",
		"reprise mcp token create":      "reprise mcp token create laptop",
		"reprise mcp token list":        "reprise mcp token list",
		"reprise mcp token revoke":      "reprise mcp token revoke phone",
		"reprise mcp uninstall":         "reprise mcp uninstall codex --dry-run\nreprise mcp uninstall codex",
	}
}

// examplesOfRuns are those of runs, the queue and the loop.
func examplesOfRuns() map[string]string {
	return map[string]string{
		"reprise runs":           "reprise runs list",
		"reprise runs list":      "reprise runs list --limit 5\nreprise runs list --status failed --json\nreprise runs list --project shop",
		"reprise runs show":      "reprise runs show run-k3v9x2m7qa\nreprise runs show run-k3v9x2m7qa --tools",
		"reprise runs logs":      "reprise runs logs run-k3v9x2m7qa",
		"reprise runs wait":      "reprise runs wait run-k3v9x2m7qa",
		"reprise runs resume":    "reprise runs resume run-k3v9x2m7qa \"Use the second of the two; the first is deprecated.\"",
		"reprise runs cancel":    "reprise runs cancel run-w4n8t6c2ye",
		"reprise runs extend":    "reprise runs extend run-w4n8t6c2ye 10m",
		"reprise runs gc":        "reprise runs gc --older 168h",
		"reprise queue":          "reprise queue add \"Fix the login\"\nreprise queue list",
		"reprise queue check":    "reprise queue check",
		"reprise queue done":     "reprise queue done login@1 --summary \"logged in again\"",
		"reprise queue drop":     "reprise queue drop login --reason \"not needed any more\"",
		"reprise queue edit":     "reprise queue edit login --priority high --add-label auth",
		"reprise queue extend":   "reprise queue extend login@1 --lease 10m",
		"reprise queue fail":     "reprise queue fail login@1 --reason \"the test server is down\"",
		"reprise queue gc":       "reprise queue gc --dry-run",
		"reprise queue history":  "reprise queue history login",
		"reprise queue list":     "reprise queue list\nreprise queue list --state dead --json",
		"reprise queue migrate":  "reprise queue migrate --dry-run\nreprise queue migrate --to files",
		"reprise queue next":     "reprise queue next",
		"reprise queue park":     "reprise queue park login --reason \"wait for the release\"",
		"reprise queue progress": "reprise queue progress login@1 --completed 3 --total 10 --step \"the form\"",
		"reprise queue release":  "reprise queue release login@1",
		"reprise queue retry":    "reprise queue retry deploy",
		"reprise queue show":     "reprise queue show login",
		"reprise queue unpark":   "reprise queue unpark docs",
		"reprise worker list":    "reprise worker list",
		"reprise runs files":     "reprise runs files run-k3v9x2m7qa",
		"reprise loop":           "reprise loop run --agent script --until-empty\nreprise loop report",
		"reprise loop audit":     "reprise loop audit\nreprise loop audit --item login --json",
		"reprise loop bootstrap": "reprise loop bootstrap > .reprise/bootstrap.md\nreprise loop bootstrap --variables",
		"reprise loop gc":        "reprise loop gc --dry-run",
		"reprise loop interrupt": "reprise loop interrupt \"The staging server is being moved\"",
		"reprise loop logs":      "reprise loop logs",
		"reprise loop metrics":   "reprise loop metrics\nreprise loop metrics --prometheus",
		"reprise loop notify":    "reprise config set loop.notify_command 'cat >> \"$HOME/notices\"'\nreprise loop notify",
		"reprise loop pause":     "reprise loop pause",
		"reprise loop status":    "reprise loop status\nreprise loop status --json",
		"reprise loop stop":      "reprise loop stop --drain",
	}
}

// examplesOfMemory are those of memory, recall, the event log and what is learnt.
func examplesOfMemory() map[string]string {
	const entry = "e-3f9a2c0d51b7e684"
	return map[string]string{
		"reprise memory append":       "reprise memory append --title \"Moved staging\" --text \"It is on port 6543 now.\"",
		"reprise memory check":        "reprise memory check",
		"reprise memory conflicts":    "reprise memory conflicts",
		"reprise memory create":       "reprise memory create project-site --summary \"The site\" --content \"# Site\"",
		"reprise memory demote":       "reprise memory demote e-7c41d09be2a3f856 --reason \"it holds here alone\"",
		"reprise memory expire":       "reprise memory expire",
		"reprise memory forget":       "reprise memory forget " + entry + " --reason \"it was wrong\"",
		"reprise memory init":         "reprise memory init",
		"reprise memory list":         "reprise memory list",
		"reprise memory pack-skill":   "reprise memory pack-skill -o reprise-memory.zip",
		"reprise memory path":         "cd \"$(reprise memory path)\"",
		"reprise memory profile":      "reprise memory profile",
		"reprise memory profile show": "reprise memory profile show --json",
		"reprise memory profile keep": "reprise memory profile keep said:0a1b2c3d",
		"reprise memory profile edit": "reprise memory profile edit said:0a1b2c3d \"Answer in short sentences\"",
		"reprise memory profile drop": "reprise memory profile drop said:0a1b2c3d",
		"reprise memory promote":      "reprise memory promote\nreprise memory promote " + entry + " --to global",
		"reprise memory read":         "reprise memory read core\nreprise memory read project-shop",
		"reprise memory search":       "reprise memory search staging port",
		"reprise memory summarize":    "reprise memory summarize --limit 3",
		"reprise memory sync":         "reprise memory sync --no-push\nreprise memory sync --install-timer --dry-run",
		"reprise memory update":       "reprise memory update project-shop --old \"port 5432\" --new \"port 6543\"",
		"reprise memory useful":       "reprise memory useful " + entry,
		"reprise memory useless":      "reprise memory useless " + entry,
		"reprise memory why":          "reprise memory why " + entry,
		"reprise context":             "reprise context show --explain",
		"reprise events":              "reprise events list --since 1h",
		"reprise events export":       "reprise events export --format csv -o events.csv",
		"reprise events list":         "reprise events list --type tool.failed --since 2d\nreprise events list --limit 5 --json",
		"reprise events migrate":      "reprise events migrate --dry-run",
		"reprise events outbox":       "reprise events outbox",
		"reprise events show":         "reprise events show 9a4e71d3",
		"reprise events stats":        "reprise events stats --since 30d",
		"reprise events tail":         "reprise events tail -n 20",
		"reprise events verify":       "reprise events verify",
		"reprise import":              "reprise import transcripts --dry-run",
		"reprise import memory":       "reprise import memory --dry-run\nreprise import memory",
		"reprise import transcripts":  "reprise import transcripts --dry-run\nreprise import transcripts --client claude --since 30d",
		"reprise index":               "reprise index status",
		"reprise index embed":         "reprise index embed --max 1000",
		"reprise index rebuild":       "reprise index rebuild",
		"reprise index status":        "reprise index status",
		"reprise policy":              "reprise policy show",
		"reprise policy show":         "reprise policy show\nreprise policy show --json",
		"reprise policy history":      "reprise policy history",
		"reprise policy diff":         "reprise policy diff",
		"reprise policy rollback":     "reprise policy rollback default --reason \"it ranked worse\"",
		"reprise qa":                  "reprise qa list",
		"reprise qa list":             "reprise qa list",
		"reprise qa show":             "reprise qa show qa-51c0ffee",
		"reprise qa forget":           "reprise qa forget qa-51c0ffee --reason \"it was a joke\"",
	}
}

// examplesOfState are those of an agent's state, the team and workspaces.
func examplesOfState() map[string]string {
	const entry = "e-3f9a2c0d51b7e684"
	return map[string]string{
		"reprise artifact":            "reprise artifact add report.html",
		"reprise artifact add":        "reprise artifact add report.html --name login/report.html",
		"reprise checkpoint":          "reprise checkpoint before-the-rewrite -m \"the tests pass\"\nreprise checkpoint list",
		"reprise checkpoint list":     "reprise checkpoint list --json",
		"reprise context promote":     "reprise context promote\nreprise context promote --all",
		"reprise context set":         "reprise context set \"The login works; the tests are missing\"",
		"reprise context suggestions": "reprise context suggestions",
		"reprise handoff accept":      "reprise handoff accept e-6b18a7f3c95d0e24",
		"reprise handoff list":        "reprise handoff list",
		"reprise log add":             "reprise log add \"Validate the token's expiry\" --status completed",
		"reprise log copy":            "reprise log copy " + entry,
		"reprise log show":            "reprise log show " + entry,
		"reprise note":                "reprise note latency \"The first request after a deploy takes four seconds\"",
		"reprise scratch":             "reprise scratch \"try the other cipher first\"\nreprise scratch",
		"reprise scratch show":        "reprise scratch show",
		"reprise state":               "reprise state init\nreprise state show",
		"reprise state archive":       "reprise state archive tester --yes",
		"reprise state branch":        "reprise state branch \"The login is moved to its own package here\"",
		"reprise state branch show":   "reprise state branch show main",
		"reprise state find":          "reprise state find \"both checks\"",
		"reprise state fork":          "reprise state fork tester",
		"reprise state fsck":          "reprise state fsck",
		"reprise state gc":            "reprise state gc\nreprise state gc --repos",
		"reprise state hooks":         "reprise state hooks",
		"reprise state hooks install": "reprise state hooks install",
		"reprise state hooks remove":  "reprise state hooks remove",
		"reprise state metrics":       "reprise state metrics",
		"reprise state plan":          "reprise state plan \"First the login, then its tests\"\nreprise state plan",
		"reprise state plan show":     "reprise state plan show",
		"reprise state pull":          "reprise state pull",
		"reprise state push":          "reprise state push",
		"reprise state rename":        "reprise state rename builder",
		"reprise state reset":         "reprise state reset --yes",
		"reprise state show":          "reprise state show\nreprise state show --json",
		"reprise state sync":          "reprise state sync",
		"reprise team":                "reprise team",
		"reprise workspace":           "reprise workspace create auth\nreprise workspace list",
		"reprise workspace list":      "reprise workspace list",
		"reprise workspace remove":    "reprise workspace remove billing",
		"reprise workspace restore":   "reprise workspace restore docs",
		"reprise workspace saved":     "reprise workspace saved",
		"reprise workspace show":      "reprise workspace show billing",
	}
}

// examplesOfTasks are those of the list of tasks.
func examplesOfTasks() map[string]string {
	const session = "sess_1764374400_a1b2c3"
	return map[string]string{
		"reprise task abandon":    "reprise task abandon 12 \"the old login goes away\"",
		"reprise task block":      "reprise task block 12 \"no access to the server yet\"",
		"reprise task cancel":     "reprise task cancel " + session + " \"asked for something else\"",
		"reprise task check":      "reprise task check --fix\nreprise task check",
		"reprise task context":    "reprise task context",
		"reprise task deps":       "reprise task deps",
		"reprise task edit":       "reprise task edit 12 --priority high --depends-on 13",
		"reprise task errors":     "reprise task errors",
		"reprise task errors add": "reprise task errors add build_error \"undefined: Login\" --task 12",
		"reprise task finish":     "reprise task finish " + session + " < answer.json",
		"reprise task implement":  "reprise task implement 14 --all-phases",
		"reprise task list":       "reprise task list --json\nreprise task list --status blocked",
		"reprise task new":        "reprise task new \"Fix the login\" --priority high --language go",
		"reprise task phase":      "reprise task phase 14 1 --status completed",
		"reprise task plan":       "reprise task plan 12 \"keep the old endpoint\"",
		"reprise task recover":    "reprise task recover 15",
		"reprise task research":   "reprise task research 12 \"the session store\"",
		"reprise task review":     "reprise task review internal/login",
		"reprise task revise":     "reprise task revise 14 \"the tests first\"",
		"reprise task show":       "reprise task show 14",
		"reprise task todo":       "reprise task todo --dry-run",
	}
}
