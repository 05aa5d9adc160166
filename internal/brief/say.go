package brief

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"reprise/internal/clip"
	"reprise/internal/recall"
)

const (
	// summaryMost is the most bytes of a summary or a turn in a brief.
	summaryMost = 480
	// answerLeast is how many characters an answer has that says more than that
	// it is done.
	answerLeast = 16

	around = "`\"'.,:;()—" // what may stand around a word

	asked = "Asked: " // what the text of a turn begins with
)

// says is the text of a recalled thing, each thing once: what was worked out
// from events has in its title all that there is to tell, and its text is the
// evidence. Empty means that there is nothing to tell.
func says(r recall.Result, others []recall.Result) string {
	text, title := r.Snippet, strings.TrimSpace(r.Title)
	if text == "" {
		text = r.Text
	}
	switch {
	case title == "":
	case r.Class == recall.ClassPattern, r.Class == recall.ClassAntiPattern:
		return title
	case r.Class == recall.ClassEpisode && strings.HasPrefix(r.Text, asked):
		return turn(r.Text)
	case r.Class == recall.ClassEpisode && r.Confidence > 0 && (len(r.Keys) > 0 || r.Author == "user"):
		return title
	case r.Class == recall.ClassSummary && strings.HasPrefix(r.Text, "Task: "):
		return summary(title, r.Text, others)
	case !strings.Contains(text, title):
		return title + ": " + text
	}
	return text
}

// summary is a session's summary without what says nothing: the counts, a last
// answer that only says that it is done, and what other lines tell.
func summary(title, text string, others []recall.Result) string {
	counts, err := regexp.Compile(`^\d+ prompts?, \d+ tool calls?, \d+ failed(?:, \d+ refused)?, outcome \w+\.$`)
	if err != nil {
		return title
	}
	title, _, _ = strings.Cut(title, ": ") // the task is the text's first line
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		task, isTask := strings.CutPrefix(line, "Task: ")
		answer, isAnswer := strings.CutPrefix(line, "Last answer: ")
		switch {
		case isTask:
			title += ": " + task
		case counts.MatchString(line), isAnswer && utf8.RuneCountInString(answer) < answerLeast, line == "", saidBy(line, others):
		default:
			kept = append(kept, line)
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return clip.Bytes(title+". "+strings.Join(kept, " ⏎ "), summaryMost)
}

// turn is a prompt with what came of it. One of which nothing is known but what
// was asked, and perhaps which commands ran, teaches nothing.
func turn(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		answer, isAnswer := strings.CutPrefix(line, "Answered: ")
		if isAnswer && utf8.RuneCountInString(answer) >= answerLeast || strings.HasPrefix(line, "Edited: ") || strings.HasPrefix(line, "The turn ended by an error") {
			return clip.Bytes(text, summaryMost)
		}
	}
	return ""
}

// saidBy says that another result, and no summary, has nearly all words of a line
// about a failure.
func saidBy(line string, others []recall.Result) bool {
	line, ok := strings.CutPrefix(line, "Failed and fixed: ")
	if !ok {
		return false
	}
	// What stands around a word, a quote or a colon, is another in each kind of text.
	words := slices.DeleteFunc(strings.Fields(line), func(w string) bool { return strings.Trim(w, around) == "" })
	for _, o := range others {
		if o.Class == recall.ClassSummary {
			continue
		}
		have, n := o.Title+" "+o.Text, 0
		for _, w := range words {
			if strings.Contains(have, strings.Trim(w, around)) {
				n++
			}
		}
		if n*5 >= len(words)*4 {
			return true
		}
	}
	return false
}
