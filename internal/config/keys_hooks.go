package config

import (
	"fmt"
	"slices"
	"strings"
)

// hookKeys are the settings of hooks, tools and roles.
func hookKeys() []key {
	list := []key{
		onOff("hooks.record", "record what happens in sessions", func(s *Settings) *string { return &s.Hooks.Record }),
		onOff("hooks.recall", "put what is remembered into sessions", func(s *Settings) *string { return &s.Hooks.Recall }),
		onOff("hooks.jobs", "do bounded work at the end of turns and sessions", func(s *Settings) *string { return &s.Hooks.Jobs }),
		intKey("hooks.deadline_ms", "the longest that a hook may take, in milliseconds; 0 leaves it to the event",
			func(s *Settings) *int { return &s.Hooks.DeadlineMS }, 0, 60_000),
		listKey("hooks.off", "kinds of events that are not looked at, such as prompt or tool_after",
			func(s *Settings) *[]string { return &s.Hooks.Off }, checkHookKind),
	}
	list = append(list, stateHookKeys()...)
	for i, c := range hookClients {
		list = append(list, listKey("hooks.clients."+c+".off", "kinds of events of "+c+" that are not looked at",
			func(s *Settings) *[]string { return &s.Hooks.Clients[i].Off }, checkHookKind))
	}
	for i, t := range toolKinds {
		list = append(list, enumKey("tools."+t+".record", "which calls of such tools are recorded: all, failures or off",
			func(s *Settings) *string { return &s.Tools[i].Record }, toolRecords[:]...))
	}
	for i, r := range roles {
		list = append(list, listKey("profiles."+r+".hooks_off", "kinds of events that are not looked at in sessions of this role",
			func(s *Settings) *[]string { return &s.Profiles[i].HooksOff }, checkHookKind))
	}
	return list
}

func onOff(name, doc string, field func(*Settings) *string) key {
	return enumKey(name, doc+": on or off", field, "on", "off")
}

func checkHookKind(_ Env, text string) (string, string, string) {
	if slices.Contains(hookKinds[:], text) {
		return text, "", ""
	}
	return "", fmt.Sprintf("%q is not a kind of event", shown(text)), "write one of " + strings.Join(hookKinds[:], ", ")
}
