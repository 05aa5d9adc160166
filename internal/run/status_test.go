package run

import (
	"errors"
	"testing"
	"time"
)

// Every step is either in the design's table or refused.
func TestTransitions(t *testing.T) {
	all := []Status{Spawning, Running, Completing, Completed, Failed, Interrupted, TimedOut, Killed}
	allowed := map[[2]Status]bool{
		{Spawning, Running}: true, {Spawning, Failed}: true, {Spawning, Killed}: true,
		{Running, Completing}: true, {Running, Failed}: true, {Running, Interrupted}: true, {Running, TimedOut}: true, {Running, Killed}: true,
		{Completing, Completed}: true, {Completing, Failed}: true, {Completing, TimedOut}: true, {Completing, Killed}: true,
		{Interrupted, Running}: true, {Interrupted, Failed}: true, {Interrupted, Spawning}: true,
	}
	now := time.Unix(1_800_000_000, 0)
	for _, from := range all {
		if !from.Valid() {
			t.Errorf("%s is not valid", from)
		}
		for _, to := range all {
			r := Record{ID: "run-x", Status: from}
			err := r.move(to, "why", now)
			if allowed[[2]Status{from, to}] != (err == nil) {
				t.Errorf("%s → %s: %v", from, to, err)
			}
			switch {
			case err != nil && (!errors.Is(err, ErrTransition) || r.Status != from || r.StatusReason != ""):
				t.Errorf("%s → %s was refused but changed the record: %+v", from, to, r)
			case err == nil && (r.Status != to || r.StatusReason != "why" || (r.EndedAt != nil) != to.Done()):
				t.Errorf("%s → %s: %+v", from, to, r)
			}
		}
	}
	if Status("dancing").Valid() {
		t.Error("an unknown status is valid")
	}
}

func TestTrimPartialRune(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a": "a", "ä": "ä", "a\xc3": "a", "€"[:1]: "", "a€"[:3]: "a", "😀"[:3]: "", "x😀": "x😀",
		"\xff": "\xff", "a\x80": "a\x80", // not the beginning of anything
	} {
		if got := trimPartialRune(in); got != want {
			t.Errorf("trimPartialRune(%q) = %q, want %q", in, got, want)
		}
	}
}
