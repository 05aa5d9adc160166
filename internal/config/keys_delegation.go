package config

import (
	"path/filepath"
	"strings"
)

// Delegation says how much sessions of a role may do themselves; package
// delegation has what it means. Numbers are calls of tools that do work, since
// the session last delegated; 0 is no limit.
type Delegation struct {
	Tiers              int
	ConductorWarn      int
	ConductorBlock     int
	SectionLeaderWarn  int
	SectionLeaderBlock int
	// Free are paths that anybody may write, beside the built-in ones.
	Free []string
}

func defaultDelegation() Delegation {
	return Delegation{Tiers: 2, ConductorWarn: 3, ConductorBlock: 6, SectionLeaderWarn: 10, SectionLeaderBlock: 20}
}

// delegationKeys are the user's: who writes a project's file is not asked how
// much this user's agents delegate.
func delegationKeys() []key {
	limit := func(name, doc string, field func(*Settings) *int) key { return intKey(name, doc, field, 0, 1000) }
	return []key{
		intKey("delegation.tiers", "2: a conductor delegates to musicians; 3: section leaders stand between them", func(s *Settings) *int { return &s.Delegation.Tiers }, 2, 3),
		limit("delegation.conductor.warn", "own work calls from which a conductor is told to delegate; 0: never", func(s *Settings) *int { return &s.Delegation.ConductorWarn }),
		limit("delegation.conductor.block", "own work calls after which a conductor's are refused until it delegates; 0: never", func(s *Settings) *int { return &s.Delegation.ConductorBlock }),
		limit("delegation.section_leader.warn", "the same of a section leader", func(s *Settings) *int { return &s.Delegation.SectionLeaderWarn }),
		limit("delegation.section_leader.block", "the same of a section leader", func(s *Settings) *int { return &s.Delegation.SectionLeaderBlock }),
		listKey("delegation.free", "paths that every role may write, beside the built-in ones: relative to the project, a directory with / at its end",
			func(s *Settings) *[]string { return &s.Delegation.Free }, checkFreePath),
	}
}

func checkFreePath(_ Env, text string) (string, string, string) {
	if c := filepath.Clean(text); text == "" || c == "." || c == ".." || c == string(filepath.Separator) || strings.HasPrefix(c, ".."+string(filepath.Separator)) {
		return "", "would set the role's limits aside for everything", "name the directories and files, or set the limits to 0"
	}
	return text, "", ""
}
