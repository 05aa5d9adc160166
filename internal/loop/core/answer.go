package core

import (
	"slices"
	"time"
)

// heardMost bounds how many requests are remembered as done: those whose file may be there
// still because their driver died before it took it away.
const heardMost = 64

// resume lets go on what waits for a person, with an answer or without one. An answer
// reaches the question that it was given for, or is refused: then nothing else of the
// request is done either, but that ceilings are raised.
func (s *State) resume(e Resumed, out *[]Action) {
	if e.Request != "" {
		if slices.Contains(s.Heard, e.Request) {
			return
		}
		s.Heard = append(slices.Clip(s.Heard), e.Request)
		s.Heard = s.Heard[max(0, len(s.Heard)-heardMost):]
	}
	s.Rev++
	if e.More != nil {
		s.Limits.Raise(*e.More)
	}
	items, halted, why := s.meant(e)
	if why != "" {
		*out = append(*out, Action{Op: OpRefuse, Slot: -1, Text: why})
		return
	}
	late := e.Answer != "" && !halted
	stays := len(e.Items) > 0 && s.HaltStays(items)
	for _, id := range items {
		switch {
		case s.Items[id].Parked:
			s.unpark(id, e.Answer, out)
			late = false
		case e.Answer != "":
			s.give(id, e.Answer)
		case e.NoAnswer && len(e.Items) > 0 && s.answerable(id, e) == "":
			s.give(id, "") // the last word counts, and no session was told of the one before
		}
	}
	if late {
		return // what it is for has gone on already, and has the answer now
	}
	if e.bare() && s.Phase == Working && len(items) == 0 && !e.NoAnswer && e.More == nil {
		s.HoldUntil, s.HoldWall, s.HoldWhy = 0, time.Time{}, "" // it can be for nothing else
	}
	if !stays {
		s.goOn(e, halted, out)
	}
	s.lookAgain()
}

// HaltStays reports whether what a person has stopped stays so when these items are let go,
// because none of them was stopped by that. They go back into the queue, and wait there.
func (s *State) HaltStays(items []string) bool {
	return s.Phase == Waiting && s.Interrupt.Halt && len(items) > 0 && !slices.ContainsFunc(items, func(id string) bool {
		return s.Items[id].Kind == ByPerson
	})
}

// meant are the items that a request is for; halted says that it is for a person's
// interrupt. why is why an answer is refused, "" where it is not.
func (s *State) meant(e Resumed) (items []string, halted bool, why string) {
	halt := s.Interrupt != nil && s.Interrupt.Halt
	switch {
	case e.Answer == "" && len(e.Items) > 0:
		return e.Items, false, ""
	case e.Answer == "":
		items = s.parked()
		if s.Interrupt != nil {
			items = slices.Clone(s.Interrupt.Items)
		} else if s.Phase != Working {
			items = nil
		}
		if !e.NoAnswer {
			items = slices.DeleteFunc(items, func(id string) bool { return s.Items[id].Kind == ByAgent })
		}
		return items, halt, ""
	case len(e.Items) > 0:
		for _, id := range e.Items {
			if why := s.answerable(id, e); why != "" {
				return nil, false, why
			}
		}
		return e.Items, false, ""
	case halt && (e.Number == 0 || e.Number == s.Interrupt.Number):
		for _, id := range s.Interrupt.Items {
			if s.Items[id].Kind == ByPerson {
				items = append(items, id)
			} else if e.Number == 0 && s.Items[id].Parked {
				return nil, false, "it does not say whether it is for the interrupt or for what " + id + " asks"
			}
		}
		return items, true, ""
	case e.Number != 0:
		return nil, false, "the interrupt that it was given for is over"
	}
	if items = s.parked(); s.Interrupt != nil && len(s.Interrupt.Items) > 0 {
		items = slices.DeleteFunc(items, func(id string) bool { return !slices.Contains(s.Interrupt.Items, id) })
	}
	switch len(items) {
	case 0:
		return nil, false, "nothing waits for it"
	case 1:
		return items, false, ""
	}
	return nil, false, "more than one question is open, and it does not say which it is for"
}

// parked are the items that are set aside, by name.
func (s *State) parked() (items []string) {
	for id, m := range s.Items {
		if m.Parked {
			items = append(items, id)
		}
	}
	slices.Sort(items)
	return items
}

// stillParked are those of the items that are set aside.
func (s *State) stillParked(items []string) []string {
	return slices.DeleteFunc(slices.Clone(items), func(id string) bool { return !s.Items[id].Parked })
}

// answerable is why an answer cannot be given to an item, "" where it can. One that goes on
// already, and whose session has not begun, is given it in time.
func (s *State) answerable(id string, e Resumed) string {
	m := s.Items[id]
	if m.Parked {
		if e.Number != 0 && m.Number != 0 && e.Number != m.Number {
			return "what " + id + " asks now is another question than it was given for"
		}
		return ""
	}
	f := m.From
	if s.Begun(id) || f == nil || f.Number == 0 || e.Number != 0 && e.Number != f.Number {
		return "nothing of " + id + " waits for it: the session that it was for has begun without it, or there is none"
	}
	return ""
}

// Begun reports whether a session of an item may have been started that does not know of
// what is answered now.
func (s *State) Begun(id string) bool {
	return slices.ContainsFunc(s.Slots, func(p Slot) bool {
		return p.Claim.Fence != 0 && p.Claim.Item.ID == id && (p.Step == Launching || p.Step == Running || p.Step == Verifying)
	})
}

// give tells the next session of an item, which has not begun, what a person has answered.
func (s *State) give(id, answer string) {
	m := s.Items[id]
	answered := *m.From
	answered.Answer = answer
	m.From = &answered
	s.keep(id, m)
	for i := range s.Slots {
		if p := &s.Slots[i]; p.Step == Preparing && p.Claim.Item.ID == id {
			p.From = &answered
		}
	}
}

// bare says that a request is for the loop as a whole. What is said to an item does not end
// a pause: whoever answers need not be who has paused it.
func (e Resumed) bare() bool { return e.Answer == "" && len(e.Items) == 0 }

// goOn has the loop work again after a person has said something. Questions of agents that
// nobody has answered keep it waiting, unless the person has answered another. A rate limit
// with a time outlives what a person decides, for the service knows nothing of that.
func (s *State) goOn(e Resumed, halted bool, out *[]Action) {
	if s.Phase == Waiting {
		open := s.stillParked(s.Interrupt.Items)
		if halted {
			for i := range s.Slots { // those that are still being stopped
				if s.Slots[i].Stop == StopPerson {
					s.Slots[i].Answer = e.Answer
				}
			}
		}
		if e.bare() && len(open) > 0 {
			s.wait(open, out)
			return
		}
		s.Open, s.Interrupt = open, nil
		s.Failing, s.Same, s.Spawning, s.Row = nil, nil, 0, 0
		if !s.Limited() {
			s.HoldUntil, s.HoldWall, s.HoldWhy = 0, time.Time{}, ""
		}
		*out = append(*out, Action{Op: OpLower, Slot: -1})
		s.Paused = s.Paused && !e.bare()
		s.wake()
	} else if s.Phase == Paused && e.bare() {
		s.wake()
	}
}

// wait has the loop wait for the questions of items.
func (s *State) wait(items []string, out *[]Action) {
	m := s.Items[items[0]]
	i := Interrupt{Kind: m.Kind, Why: m.Asked, Items: items, At: s.Now}
	if s.Interrupt != nil {
		i.At = s.Interrupt.At
	}
	s.Interrupt, s.Open = &i, nil
	s.await(i.Kind + ": " + i.Why)
	s.show(out, i.Kind, i.Why, items[0])
}

// show asks for the interrupt to be shown to people.
func (s *State) show(out *[]Action, kind, why, item string) {
	s.Shown = s.Interrupt.Words()
	*out = append(*out, Action{Op: OpRaise, Slot: -1, Kind: kind, Text: why, Item: item})
}

// Words are the interrupt as people are shown it.
func (i *Interrupt) Words() string { return i.Kind + ": " + i.Why }

// waitAgain has a loop that would end wait for the questions that are still open, where
// it is to wait for a person.
func (s *State) waitAgain(out *[]Action) bool {
	open := s.stillParked(s.Open)
	if len(open) == 0 || s.Limits.OnInterrupt != Wait {
		return false
	}
	s.wait(open, out)
	return true
}

// Upgrade gives items that an older program set aside their questions, which its states
// have in the interrupt alone: the first item of it is the one whose words it has.
func (s *State) Upgrade() {
	if s.Interrupt == nil {
		return
	}
	for n, id := range s.Interrupt.Items {
		m := s.Items[id]
		if !m.Parked || m.Kind != "" {
			continue
		}
		if m.Kind = s.Interrupt.Kind; n == 0 {
			m.Asked = s.Interrupt.Why
		}
		s.keep(id, m)
	}
}

// unpark puts an item back into the queue, with a person's answer for its next run.
func (s *State) unpark(id, answer string, out *[]Action) {
	if !s.Items[id].Parked {
		return
	}
	s.letGo(id)
	m := s.Items[id]
	if answer != "" {
		from := m.goesOn()
		if from.Answer != "" {
			answer = from.Answer + "\n\n" + answer
		}
		from.Answer = answer
		m.From = &from
	}
	s.keep(id, m)
	s.Unpark = with(s.Unpark, id)
	s.Rev++
	*out = append(*out, Action{Op: OpUnpark, Slot: -1, Item: id})
}

// goesOn is what the item's next session goes on from; a fresh one where it has none.
func (m *Memory) goesOn() Continuation {
	if m.From != nil {
		return *m.From
	}
	return Continuation{Fresh: true}
}

// letGo notes of an item that it is set aside no more. Until its next session begins its
// question can still be answered.
func (s *State) letGo(id string) {
	m := s.Items[id]
	if !m.Parked {
		return
	}
	if m.Number != 0 || m.Asked != "" {
		from := m.goesOn()
		if from.Number = m.Number; from.Answer == "" { // else no session was told of that yet
			from.Asked, from.Kind = m.Asked, m.Kind
		}
		m.From = &from
	}
	m.Parked, m.Kind, m.Asked, m.Number = false, "", "", 0
	m.GateFails, m.Continues, m.Identical, m.Failure, m.Starts = 0, 0, 0, "", 0
	s.keep(id, m)
	s.Rev++
}
