package config

// Tasks are habits of the work at tasks.
type Tasks struct {
	Commit   string // "on" or "off": each step becomes a commit
	Parallel int    // phases and tasks that are worked at side by side with --parallel
}

func defaultTasks() Tasks { return Tasks{Commit: "on", Parallel: 2} }

func taskKeys() []key {
	return []key{
		onOff("tasks.commit", "commit what a step of a task made, and the list", func(s *Settings) *string { return &s.Tasks.Commit }),
		intKey("tasks.parallel", "phases and tasks that --parallel works at side by side", func(s *Settings) *int { return &s.Tasks.Parallel }, 1, 32),
	}
}
