package config

import "slices"

// Gates says what is looked at before an agent's turn may end. A project adds
// to it through what its trusted file says; see [Verify].
type Gates struct {
	Stop     string // "on" or "off": at the end of a turn
	Subagent string // "on" or "off": at the end of a subagent
	// When says at which ends of turns: "changed" (something changed, and the
	// agent does not itself say that it is not done), "claimed" (it says that it
	// is) or "always".
	When           string
	MaxBlocks      int    // in one turn
	TimeoutSeconds int    // of all checks together
	Profile        string // "auto", or one of [VerifyProfiles]
	Sandbox        string // "auto", "off" or "required": the real tree is write-protected for checks
	// On says of each gate, in the order of [GateNames], whether it is "on", "off"
	// or "project": on where the project asks for it.
	On [len(gateNames)]string
}

func defaultGates() Gates {
	return Gates{Stop: "on", Subagent: "on", When: "changed", MaxBlocks: 2, TimeoutSeconds: 300, Profile: "auto", Sandbox: "auto",
		On: [len(gateNames)]string{"on", "on", "on", "project"}}
}

// gateKeys are the settings of the gates. They are the user's: a project cannot
// switch on what is off here.
func gateKeys() []key {
	list := []key{
		onOff("gates.stop", "look whether the work is done before an agent's turn ends, in projects with trusted checks", func(s *Settings) *string { return &s.Gates.Stop }),
		onOff("gates.subagent", "the same before a subagent ends", func(s *Settings) *string { return &s.Gates.Subagent }),
		enumKey("gates.when", "at which ends: changed (files changed, and the agent does not say itself that it is not done), claimed (it says that it is) or always",
			func(s *Settings) *string { return &s.Gates.When }, "changed", "claimed", "always"),
		intKey("gates.max_blocks", "how often the same turn is kept from ending; clients override a hook that never stops", func(s *Settings) *int { return &s.Gates.MaxBlocks }, 0, 5),
		intKey("gates.timeout_seconds", "time of all checks together; when it is over, nothing is said", func(s *Settings) *int { return &s.Gates.TimeoutSeconds }, 5, 570),
		enumKey("gates.profile", "profile of checks: auto goes by the project and the risk of the change", func(s *Settings) *string { return &s.Gates.Profile }, append([]string{"auto"}, verifyProfiles[:]...)...),
		enumKey("gates.sandbox", "auto: checks cannot write into the working tree, where the system can see to that; off; required: no check runs where it cannot", func(s *Settings) *string { return &s.Gates.Sandbox }, "auto", "off", "required"),
	}
	docs := [...]string{
		"the project's checks", "a check that failed before the work began, too, is not held against it",
		"acceptance criteria and open steps of the current task", "a review by another agent",
	}
	for i, g := range gateNames {
		list = append(list, enumKey("gates."+g, docs[i]+": on, off or project (where the project asks for it)",
			func(s *Settings) *string { return &s.Gates.On[i] }, "on", "off", "project"))
	}
	return list
}

// Off is why a gate is not looked at, "" where it is. v is what a trusted project
// says; it may be nil.
func (g Gates) Off(name string, v *Verify) string {
	i := slices.Index(gateNames[:], name)
	switch {
	case i < 0:
		return "there is no such gate"
	case g.On[i] == "off":
		return "the setting gates." + name + " is off"
	case g.On[i] == "project" && (v == nil || !slices.Contains(v.Gates, name)):
		return "the project does not ask for it"
	}
	return ""
}
