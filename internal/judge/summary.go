package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"reprise/internal/learn"
)

// Summaries has a judge write the summaries of sessions; it is a
// [learn.Summarizer].
type Summaries struct{ Judge *Judge }

const summarySystem = `You write the summary of one session of a coding agent, for whoever goes on with the work on another day.
Use only what stands in the notes. Say what was asked for, what was done and decided, what failed and how it was solved, and what is left to do. Keep names of files, commands and values as they are.
No advice, no guesses, no instructions to the reader, no headings. At most 120 words, in the language of the session's task.`

const summarySchema = `{"type":"object","properties":{"summary":{"type":"string","minLength":1,"maxLength":1500}},"required":["summary"],"additionalProperties":false}`

// mostEpisodes is how many of a session's episodes the model is told of: the
// last ones.
const mostEpisodes = 60

// Summarize implements [learn.Summarizer].
func (s Summaries) Summarize(ctx context.Context, in learn.SummaryInput) (text, by string, err error) {
	episodes := in.Episodes
	if n := len(episodes) - mostEpisodes; n > 0 {
		episodes = episodes[n:]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Notes that were taken by rules:\n%s\n", in.Extract)
	if len(episodes) > 0 {
		b.WriteString("\nWhat happened, in order:\n")
	}
	for _, e := range episodes {
		fmt.Fprintf(&b, "- %s\n", oneLine(e, 300))
	}
	a, err := s.Judge.Ask(ctx, Question{Purpose: Summary, System: summarySystem, Prompt: b.String(), Schema: json.RawMessage(summarySchema), Dir: in.Project})
	if err != nil {
		return "", "", err
	}
	var out struct{ Summary string }
	if err := json.Unmarshal(a.JSON, &out); err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	text = oneLine(strings.ReplaceAll(out.Summary, `\u0040`, "@"), 1500)
	if text == "" {
		return "", "", fmt.Errorf("%w: the summary is empty", ErrAnswer)
	}
	return text, a.By, nil
}
