package scopes

import (
	"context"
	"fmt"
	"strings"

	"reprise/internal/event"
	"reprise/internal/learn"
)

// finishForgetting takes out the entries that the log says are forgotten and whose
// file still has them: who forgot them died between the two.
func (s *Scopes) finishForgetting(ctx context.Context) error {
	gone := map[string]string{} // id → reason
	err := s.eachRetired(func(_ string, _ event.Event, d event.MemoryData) {
		if d.Op == learn.OpForget && strings.HasPrefix(d.ID, "e-") {
			gone[d.ID] = d.Reason
		}
	})
	if err != nil || len(gone) == 0 {
		return err
	}
	for _, p := range s.places() {
		e := s.o.Entries(p)
		if e == nil {
			continue
		}
		list, err := e.List(ctx)
		if err != nil {
			return fmt.Errorf("finish forgetting: %w", err)
		}
		for _, i := range list {
			reason, ok := gone[i.ID]
			if !ok || !i.Active() {
				continue
			}
			agent, _, _ := s.who()
			if _, err := e.Retire(ctx, i.ID, agent, reason); err != nil {
				return fmt.Errorf("finish forgetting %s: %w", i.ID, err)
			}
			s.touch(p, i.File)
		}
	}
	return nil
}
