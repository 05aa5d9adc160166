package reprise_test

// The exceptions to the rules, each with its reason. A new one is a decision:
// say why here.

var fileWriters = exceptions{
	"internal/durable": "this is where files are written",
}

var exits = exceptions{}

var ambient = exceptions{
	"internal/cli/demo_client.go": "the demo waits for real processes",
	"internal/hookmain":           "the small program's composition: it reads the real environment for those below it",
	"internal/config/env.go":      "config.OSEnv reads the process's environment, directory and clock once, for main",
	"internal/cli/osapp.go":       "cli.OSApp makes the App of the real process, for main",
	"internal/term":               "only the terminal's own queries",
	"internal/proc":               "identities and deadlines of processes are the machine's: a made-up clock would name the wrong process",
	"internal/durable/time.go":    "deadlines of locks are the machine's",
}

var packageState = exceptions{}
