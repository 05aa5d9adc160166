package scripted

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"reprise/internal/proc"
)

// Children escape as they are told to, and the tools of proc still find them.
func TestForksEscapeAndAreFound(t *testing.T) {
	for _, escape := range []string{"none", "group", "session", "daemon"} {
		t.Run(escape, func(t *testing.T) {
			p := start(t, "x", "steps: [{fork: {escape: "+escape+", count: 2, for: 60s, ignore: [SIGTERM]}}, {say: forked}]")
			if r, _, _ := p.end(t); r.Text != "forked" {
				t.Fatalf("%+v", r)
			}
			var left []proc.ID
			until(t, "two children", func() bool {
				var err error
				if left, err = proc.Sweep(p.run); err != nil {
					t.Fatal(err)
				}
				return len(left) == 2
			})
			for _, id := range left {
				ppid, pgrp, session := stat(t, id.PID)
				if gone := ppid != p.proc.ID().PID; escape == "daemon" && !gone {
					t.Errorf("its parent is still the agent")
				}
				if own := pgrp != p.proc.ID().PID; own != (escape != "none") {
					t.Errorf("group %d", pgrp)
				}
				if own := session != p.proc.ID().PID; own != (escape == "session" || escape == "daemon") {
					t.Errorf("session %d", session)
				}
			}
			if _, err := proc.StopTree(t.Context(), proc.ID{}, p.run, 10*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if left, err := proc.Sweep(p.run); err != nil || len(left) != 0 {
				t.Errorf("left: %v %v", left, err)
			}
		})
	}
}

func stat(t *testing.T, pid int) (ppid, pgrp, session int) {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if _, err := fmt.Sscan(strings.Join(f[1:4], " "), &ppid, &pgrp, &session); err != nil {
		t.Fatal(err)
	}
	return ppid, pgrp, session
}

func TestIgnoredSignal(t *testing.T) {
	p := start(t, "x", "steps: [{ignore: [SIGTERM]}, {say: ready}, {hang: true}]")
	until(t, "ready", contains(p.stdout, "ready"))
	st, err := proc.StopTree(t.Context(), p.proc.ID(), p.run, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, exit := p.end(t); exit.Signal != "SIGKILL" {
		t.Errorf("%+v, %+v", exit, st)
	}
}
