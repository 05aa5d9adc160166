package queue

import (
	"encoding/json"
	"strings"
)

// priorityWords are the words that tasks have for how urgent they are, and what they are
// as numbers.
var priorityWords = []struct {
	word string
	n    int
}{{"critical", 0}, {"high", 2}, {"medium", DefaultPriority}, {"low", 8}}

// ParsePriority reads a priority as people write it: a number from 0, the most urgent, to
// 9, such a number behind a P, or one of the words that tasks have, critical, high,
// medium and low, which are 0, 2, 5 and 8. The error is ErrInvalid.
func ParsePriority(s string) (int, error) {
	word := strings.ToLower(strings.TrimSpace(s))
	for _, w := range priorityWords {
		if word == w.word {
			return w.n, nil
		}
	}
	if digit := strings.TrimPrefix(word, "p"); len(digit) == 1 && digit[0] >= '0' && digit[0] <= '9' {
		return int(digit[0] - '0'), nil
	}
	return 0, invalid("the priority is %q; it is from 0, the most urgent, to %d, or critical, high, medium or low", cut(s, 40), MaxPriority)
}

// PriorityWord is the word for a priority: the last of those that are as urgent or more.
func PriorityWord(n int) string {
	word := priorityWords[0].word
	for _, w := range priorityWords {
		if n >= w.n {
			word = w.word
		}
	}
	return word
}

// anyPriority is a priority in a list: a number, or a word.
type anyPriority struct{ n *int }

func (p *anyPriority) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(data, &text) != nil {
		if json.Unmarshal(data, &p.n) == nil {
			return nil // whether there is one such, is looked at with the item
		}
		text = string(data)
	}
	n, err := ParsePriority(text)
	p.n = &n
	return err
}
