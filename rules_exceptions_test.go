package reprise_test

// The exceptions to the rules, each with its reason. A new one is a decision:
// say why here.

var fileWriters = exceptions{
	"internal/durable":             "this is where files are written",
	"internal/logfile/logfile.go":  "opens for appending what durable has made: a log line is not worth a sync, and says so",
	"internal/cli/demo.go":         "makes a throwaway directory for the demo, as a user would",
	"internal/verify/tree":         "copies trees into throwaway places: nothing there has to outlive anything, and a wait for the disk at each of thousands of files would",
	"internal/cli/doctor_live.go":  "makes a throwaway home in which a client shows that its hooks work",
	"internal/cli/doctor_guard.go": "the same, for what is refused",
	"internal/cli/loop_client.go":  "makes a throwaway home of which a client's settings for a run are read",
}

var fileReaders = exceptions{
	"internal/guard/open_other.go":        "opens directories, too, on systems without pipes among their files",
	"internal/agent/scripted/scripted.go": "opens what a person named: a pipe is waited for on purpose",
	"internal/durable":                    "this is where files are read",
	"internal/proc":                       "reads what the kernel says of processes, below /proc and /dev",
	"internal/git/stale_linux.go":         "the same",
	"internal/workspace/inside_linux.go":  "the same",
	"internal/cli/guard.go":               "opens what a person named: a pipe is waited for on purpose",
	"internal/cli/input.go":               "the same",
	"internal/run/run.go":                 "opens the null device",
	"internal/redact/gen":                 "a program of the developers', which reads what it is given",
	"internal/agent/dialect/fixture":      "a part of the tests",
}

var exits = exceptions{}

var ambient = exceptions{
	"internal/cli/demo_client.go":  "the demo waits for real processes",
	"internal/hookmain":            "the hook program's composition: it reads the real environment for those below it",
	"internal/recallmain":          "the recall program's composition: it reads the real environment for those below it",
	"internal/runmain":             "the run program's composition: it reads the real environment for those below it",
	"internal/durable/durabletest": "it starts the test binary again: with its environment, but for the temporary directory, which a killed process does not clear",
	"internal/config/env.go":       "config.OSEnv reads the process's environment, directory and clock once, for main",
	"internal/cli/osapp.go":        "cli.OSApp makes the App of the real process, for main",
	"internal/mcpserver/http.go":   "deadlines of connections are instants of the machine's clock",
	"internal/web/live.go":         "the same",
}

var packageState = exceptions{}

// largePackages hold more lines than one package should.
var largePackages = exceptions{
	"internal/guard":  "a walk over the shell's grammar, whose parts share one state; filters, names and the table of programs are packages of their own",
	"internal/learn":  "the fold is one function of the log, whose parts share a session's records; signatures, scopes and improvement are packages of their own",
	"internal/recall": "database, planner and ranking share one state; words and dates are a package of their own",
	"internal/cli":    "one file a command: whoever works on one needs to know App and that file",
	"internal/loop":   "the driver, whose parts share its state and its lock; what is pure in it lies in seven packages of its own, and what sweeps old runs and places would be the next",
	"internal/task":   "two files, their change as one and the steps that move them share one Board; what is known of failures could be a package of its own",
}

// licenceChoices are modules that let their user choose, and what is chosen.
var licenceChoices = map[string]string{
	"kernel.org/pub/linux/libs/security/libcap/psx": "BSD-3-Clause, the other choice being GPL-2.0",
}
