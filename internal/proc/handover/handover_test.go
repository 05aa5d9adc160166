//go:build unix

package handover

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestDo(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	for name, tc := range map[string]struct {
		script, input, out string
		exit               int
		err                error
		quick              bool // must not take its whole time
	}{
		"answers":               {script: "cat", input: "hello", out: "hello", quick: true},
		"much input":            {script: "cat", input: big, out: big, quick: true},
		"reads nothing":         {script: "echo no", input: big, out: "no\n", quick: true},
		"fails":                 {script: "echo half; exit 2", out: "half\n", exit: 2, quick: true},
		"killed":                {script: "kill -9 $$", exit: -1, quick: true},
		"says too much":         {script: "while :; do echo " + strings.Repeat("y", 1000) + "; done", err: ErrTooLong, quick: true},
		"never ends":            {script: "trap '' TERM; while :; do sleep 60; done", err: ErrTime},
		"leaves a child behind": {script: "sleep 3 & echo done", out: "done\n", quick: true},
		"talks on stderr":       {script: "echo oops >&2", quick: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := time.Second
			if tc.quick {
				timeout = 20 * time.Second
			}
			began := time.Now()
			out, exit, err := Do(Call{
				Path: "/bin/sh", Args: []string{"-c", tc.script}, Env: []string{"PATH=" + os.Getenv("PATH")},
				Input: []byte(tc.input), MaxOutput: 2 << 20, Timeout: timeout,
			})
			if !errors.Is(err, tc.err) || string(out) != tc.out || exit != tc.exit {
				t.Errorf("%d bytes %.40q, exit code %d, %v", len(out), out, exit, err)
			}
			if took := time.Since(began); took > timeout+10*time.Second || tc.quick && took > timeout {
				t.Errorf("took %s", took)
			}
		})
	}
	if _, _, err := Do(Call{Path: "/nowhere/reprise", Timeout: time.Second}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}
