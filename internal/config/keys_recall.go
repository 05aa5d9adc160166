package config

import "strings"

// Embeddings say where vectors of texts come from. Without a URL there are none,
// and nothing is sent anywhere.
type Embeddings struct {
	URL, Model  string
	KeyVariable string // name of the environment variable with the key
}

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
		intKey("recall.state_tokens", "tokens of where the work stands within a session's start", func(s *Settings) *int { return &s.Recall.StateTokens }, 0, 20_000),
		intKey("recall.job_ms", "the longest that organising may take at a session's start or end, in milliseconds; what is left over waits for the next",
			func(s *Settings) *int { return &s.Recall.JobMS }, 10, 10_000),
		intKey("recall.hold_out_percent", "sessions in a hundred that are told nothing recalled, so that `reprise metrics` can tell what recall is good for; 0 is none",
			func(s *Settings) *int { return &s.Recall.HoldOutPercent }, 0, 50),
		onOff("recall.learn", "rank by what was used of what was served, by policies that past recalls would have done better with", func(s *Settings) *string { return &s.Recall.Learn }),
		strKey("recall.embeddings.url", "endpoint in the form of OpenAI's API that makes vectors of texts, such as http://localhost:11434/v1; empty: recall is by words alone",
			func(s *Settings) *string { return &s.Recall.Embeddings.URL }, checkURL),
		strKey("recall.embeddings.model", "model that the endpoint is asked for", func(s *Settings) *string { return &s.Recall.Embeddings.Model }, checkWord),
		strKey("recall.embeddings.key_variable", "environment variable that holds the endpoint's key; the key itself stands in no file",
			func(s *Settings) *string { return &s.Recall.Embeddings.KeyVariable }, checkVariable),
	}
}

// checkVariable wants the name of an environment variable, so that a key which
// is written in its place is not taken.
func checkVariable(e Env, text string) (string, string, string) {
	if _, problem, remedy := checkWord(e, text); problem != "" {
		return "", problem, remedy
	}
	name := func(r rune) bool {
		return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_'
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !name(r) }) || text[0] >= '0' && text[0] <= '9' {
		return "", "is not the name of an environment variable", "write a name such as OPENAI_API_KEY, and the key into that variable"
	}
	return text, "", ""
}
