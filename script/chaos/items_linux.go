package main

import (
	"fmt"
	"math/rand/v2"
)

// item is one of the items, as it is added.
type item struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	Priority    int      `json:"priority"`
	DependsOn   []string `json:"depends_on,omitempty"`
	MaxAttempts int      `json:"max_attempts"`
	good        bool     // it can be done
}

// kinds of work, by their share in a hundred. What is to be done stands in steps.
var kinds = []struct {
	share int
	title string
	good  bool
}{
	{50, "write", true}, {12, "write slowly", true}, {8, "write very slowly", true}, {8, "write at the second try", true}, {6, "write and leave children", true},
	{6, "say that it failed", false}, {4, "kill yourself", false}, {3, "hang", false}, {3, "change nothing", false},
}

// steps are what the agent does. It appends, so that work that was done twice is seen. A shell
// that has no descriptor left to write by, and puts its complaint into the file, is an agent that
// dies of it.
const steps = `v: 1
steps:
  - when: "write slowly"
  - delay: 700ms
  - when: "write very slowly"
  - delay: 3s
  - when: "write at the second try"
  - shell: {command: "test -f .tried || { touch .tried; kill -9 $PPID; sleep 5; }"}
  - when: "write and leave children"
  - fork: {escape: session, count: 1, for: 600s}
  - fork: {escape: daemon, count: 2, for: 600s, ignore: [SIGTERM]}
  - when: "write"
  - shell: {command: "grep -qsx \"$WORK_ITEM\" work.txt || echo \"$WORK_ITEM\" >> work.txt; grep -qx \"$WORK_ITEM\" work.txt || { rm -f work.txt; kill -9 $PPID; }"}
  - when: "say that it failed"
  - result: {text: "it cannot be done", is_error: true}
  - when: "kill yourself"
  - signal: SIGKILL
  - when: "hang"
  - hang: true
  - when: "change nothing"
  - say: "nothing to do"
`

func someItems(r *rand.Rand, n int) []item {
	list := make([]item, n)
	for i := range list {
		at, kind := r.IntN(100), 0
		for at >= kinds[kind].share {
			at -= kinds[kind].share
			kind++
		}
		k := kinds[kind]
		it := item{ID: fmt.Sprintf("i%03d", i), Title: k.title, Priority: r.IntN(10), MaxAttempts: 6, good: k.good}
		if !k.good {
			it.MaxAttempts = 2
		}
		// Some wait for another, which can be done: one that waits for what is dead waits on.
		if on := r.IntN(i + 1); i > 0 && r.IntN(6) == 0 && list[on].good && list[on].DependsOn == nil {
			it.DependsOn = []string{list[on].ID}
		}
		list[i] = it
	}
	return list
}
