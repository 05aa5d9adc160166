package core

import "slices"

// Gone says of an item that is set aside that somebody has seen to it beside the loop: it was
// dropped or done by hand, its file is gone, a person has set it aside for themselves or put
// it back. Number is that of its question.
type Gone struct {
	Item   string
	Number int64
	Ended  bool   // there will be no other session of it
	What   string // has become of it, for people
}

func (Gone) event() {}

// gone ends the question of an item that is nobody's to answer any more. A loop that waited
// for nothing else goes on.
func (s *State) gone(e Gone, out *[]Action) {
	m := s.Items[e.Item]
	if !m.Parked || m.Number != e.Number || slices.Contains(s.Unpark, e.Item) {
		return
	}
	s.Rev++
	if e.Ended {
		delete(s.Items, e.Item)
	} else {
		s.letGo(e.Item)
	}
	without := func(items []string) []string {
		return slices.DeleteFunc(slices.Clone(items), func(id string) bool { return id == e.Item })
	}
	s.Open = without(s.Open)
	s.lookAgain()
	i := s.Interrupt
	if i == nil || !slices.Contains(i.Items, e.Item) {
		return
	}
	i.Items = without(i.Items)
	switch {
	case s.Phase != Waiting, i.Halt, i.Kind != m.Kind, i.Why != m.Asked: // for which it waits all the same
	case len(i.Items) > 0:
		s.wait(i.Items, out)
	default:
		s.over(Working, "", out)
	}
}

// cleared ends what the loop waits for, where that is no question of an item: for those it
// waits on.
func (s *State) cleared(e Cleared, out *[]Action) {
	i := s.Interrupt
	if s.Phase != Waiting || i.Halt || i.Kind != e.Kind {
		return
	}
	if open := s.stillParked(i.Items); len(open) > 0 {
		s.wait(open, out)
		return
	}
	s.over(Working, "", out)
	s.lookAgain()
}
