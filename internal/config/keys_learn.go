package config

// Learn says when knowledge rises to a wider scope by itself, and how long what
// was worked out is kept.
type Learn struct {
	Promote         string // "on" or "off": gates promote by themselves
	ProjectSessions int    // sessions in which something was seen to work, for its project
	GlobalProjects  int    // projects, for all of them
	MinConfidence   int    // in per cent
	// Days that what was worked out is kept; 0 is for ever.
	EpisodeDays, SummaryDays, PatternDays, AntiPatternDays int
}

// DefaultLearn is what holds without settings.
func DefaultLearn() Learn {
	return Learn{Promote: "on", ProjectSessions: 2, GlobalProjects: 2, MinConfidence: 60}
}

func learnKeys() []key {
	const century = 36_500
	return []key{
		enumKey("learn.promote", "whether what was seen to work often enough becomes an entry by itself: on or off", func(s *Settings) *string { return &s.Learn.Promote }, "on", "off"),
		intKey("learn.project_sessions", "sessions in which something was seen to work before it is an entry of its project",
			func(s *Settings) *int { return &s.Learn.ProjectSessions }, 2, 1000),
		intKey("learn.global_projects", "projects in which something was seen to work before it is an entry of the global memory",
			func(s *Settings) *int { return &s.Learn.GlobalProjects }, 2, 1000),
		intKey("learn.min_confidence", "per cent of confidence that a promotion asks for", func(s *Settings) *int { return &s.Learn.MinConfidence }, 1, 100),
		intKey("learn.episode_days", "days that episodes are kept; 0 is for ever", func(s *Settings) *int { return &s.Learn.EpisodeDays }, 0, century),
		intKey("learn.summary_days", "days that summaries of sessions are kept; 0 is for ever", func(s *Settings) *int { return &s.Learn.SummaryDays }, 0, century),
		intKey("learn.pattern_days", "days that patterns are kept after they were last seen; 0 is for ever", func(s *Settings) *int { return &s.Learn.PatternDays }, 0, century),
		intKey("learn.anti_pattern_days", "days that fixes which failed are kept; 0 is until they have decayed", func(s *Settings) *int { return &s.Learn.AntiPatternDays }, 0, century),
	}
}
