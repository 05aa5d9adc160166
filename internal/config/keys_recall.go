package config

// recallKeys are the settings of what a session is told.
func recallKeys() []key {
	return []key{
		intKey("recall.session_start_tokens", "tokens of all that a session is told at its start; 0 says nothing",
			func(s *Settings) *int { return &s.Recall.SessionStartTokens }, 0, 20_000),
		intKey("recall.prompt_tokens", "tokens of what is told with a prompt; 0 says nothing",
			func(s *Settings) *int { return &s.Recall.PromptTokens }, 0, 20_000),
		intKey("recall.failure_tokens", "tokens of what is told of a failure that is known; 0 says nothing",
			func(s *Settings) *int { return &s.Recall.FailureTokens }, 0, 20_000),
		intKey("recall.core_tokens", "tokens of core.md within a session's start", func(s *Settings) *int { return &s.Recall.CoreTokens }, 0, 20_000),
		intKey("recall.index_tokens", "tokens of index.md within a session's start", func(s *Settings) *int { return &s.Recall.IndexTokens }, 0, 20_000),
		intKey("recall.job_ms", "the longest that organising may take at a session's start or end, in milliseconds; what is left over waits for the next",
			func(s *Settings) *int { return &s.Recall.JobMS }, 10, 10_000),
	}
}
