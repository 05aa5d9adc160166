package guard

// Named is a built-in rule.
type Named struct {
	Name     string   `json:"name"`
	Decision Decision `json:"decision"` // what it comes to, where it fits
	What     string   `json:"what"`
	// Fixed rules cannot be loosened: without them nothing could be told.
	Fixed bool `json:"fixed,omitempty"`
}

// BuiltIn are the built-in rules, by name.
func BuiltIn() []Named {
	return []Named{
		{"abbreviated-option", Ask, "a long option is shortened, so that it may be another one", false},
		{"cdpath", Ask, "cd goes through CDPATH", false},
		{"changes-settings", Ask, "a program's settings are changed", false},
		{"changes-shell", Ask, "aliases, completions and options that change what later words mean", false},
		{"command-as-address", Deny, "git takes an address for a command (ext::)", false},
		{"coproc", Ask, "a command runs beside this one", false},
		{"data-evaluated", Ask, "text is evaluated by the shell as a calculation or a subscript", false},
		{"declare-option", Ask, "functions or traces are made known to other commands", false},
		{"destructive", Deny, "disks, file systems, the machine, other users' rights", false},
		{"dynamic-command", Deny, "which program runs is only known when it runs", true},
		{"dynamic-name", Ask, "which variable is meant is only known when it runs", false},
		{"dynamic-option", Ask, "a word that is only known when it runs may be an option", false},
		{"dynamic-path", Ask, "a path is only known when it runs", false},
		{"dynamic-program", Ask, "a program for sed or awk is only known when it runs", false},
		{"ends-supervisor", Deny, "the agent or what watches over it is ended", false},
		{"environment", Ask, "a variable that is not known to be harmless", false},
		{"environment-loads", Deny, "a variable that loads code, or decides about the guard", false},
		{"function-name", Ask, "a function takes the place of a program", false},
		{"git-settings", Deny, "git's settings that name programs or checks", false},
		{"guard-failed", Ask, "the guard itself failed", true},
		{"hidden-character", Ask, "a character that is not seen, or changes how others are shown", false},
		{"limits-dropped", Deny, "an agent is started without this run's limits", false},
		{"loads-code", Deny, "machine code is loaded into the shell", false},
		{"memory", Deny, "a directory that is closed to this run", true},
		{"nameref", Ask, "a reference hides which variable is meant", false},
		{"needs-a-person", Ask, "known to do more than read", false},
		{"network", Ask, "another machine is reached", false},
		{"network-to-shell", Deny, "what comes from another machine is run", false},
		{"never-ends", Ask, "what never ends is kept, or a value that doubles and doubles", false},
		{"odd-bytes", Ask, "bytes that are no text", true},
		{"option-config", Ask, "an option gives settings, which may name programs", false},
		{"option-runs", Ask, "an option runs a program", false},
		{"other-shell", Ask, "another shell's grammar", false},
		{"program-runs", Ask, "a program for sed or awk runs commands or writes", false},
		{"project-code", Ask, "the project's own code is run", false},
		{"prompt-expansion", Ask, "a value is expanded as a prompt", false},
		{"protected-file", Deny, "settings and hooks of agents, of git, of shells, of reprise; keys", false},
		{"push-over-protected", Deny, "a protected branch is pushed over or removed", false},
		{"read-two-ways", Ask, "shells read a part of the command otherwise than its parser", true},
		{"reads-outside", Ask, "a file outside the project is read", false},
		{"reads-secret", Ask, "a secret is read", false},
		{"recursion", Ask, "a function calls itself", true},
		{"refused-option", Deny, "an option that switches checks off (--no-verify and its like)", false},
		{"removes", Ask, "files are removed or moved", false},
		{"removes-repository", Deny, "the whole of the work, or its repository, is removed", false},
		{"repository-config", Ask, "the repository's own settings name a program that git runs", false},
		{"rule", Ask, "a rule of the settings", true},
		{"secret-leaves", Deny, "a secret is read where the network is reached", false},
		{"shows-environment", Ask, "the environment is printed, secrets among it", false},
		{"syntax", Ask, "the command cannot be read", true},
		{"too-deep", Ask, "commands inside commands, deeper than is followed", true},
		{"too-large", Ask, "longer than is read", true},
		{"too-many-words", Ask, "more words than are followed", true},
		{"too-much", Ask, "more than can be looked at while a tool waits", true},
		{"types-into-program", Ask, "text is typed into a program that runs already", false},
		{"unknown-directory", Ask, "the current directory is not known", false},
		{"unknown-operand", Ask, "an argument of which nothing is known", false},
		{"unknown-option", Ask, "an option of which nothing is known", false},
		{"unknown-program", Ask, "a program of which nothing is known", false},
		{"unknown-subcommand", Ask, "a subcommand of which nothing is known", false},
		{"unknown-syntax", Ask, "a form of the grammar that is not known", true},
		{"unknown-tool", Ask, "a tool of which nothing is known", false},
		{"unset-path", Deny, "removing below a variable that may be empty", false},
		{"workspace-gone", Deny, "the workspace that the session was started in is gone", true},
		{"writes", Ask, "a file of the project is written by a command", false},
		{"writes-outside", Deny, "something outside the project is written or removed", false},
		{"wrong-checkout", Deny, "another checkout of the repository than the session's workspace is changed", true},
	}
}

// fixed reports whether a built-in rule cannot be loosened.
func fixed(name string) bool {
	switch name {
	case "dynamic-command", "guard-failed", "memory", "odd-bytes", "read-two-ways", "recursion", "rule", "syntax", "too-deep", "too-large", "too-many-words", "too-much", "unknown-syntax", "workspace-gone", "wrong-checkout":
		return true
	}
	return false
}
