package loop

import "reprise/internal/loop/said"

// unparkReason is why an item is put back: for what a person has answered, or let go on.
func (l *Loop) unparkReason(item string) string {
	if f := l.State().Items[item].From; f != nil && f.Answer != "" {
		return said.AnsweredNote + f.Answer
	}
	return said.GoesOnNote
}
