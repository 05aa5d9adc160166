//go:build unix

package e2e

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// alone puts a copy of the hook program where no other is beside it, but for a
// script in place of the full one.
func (h *hooked) alone(full string) {
	h.t.Helper()
	dir := filepath.Join(filepath.Dir(h.dir), "bin")
	data, err := os.ReadFile(program("reprise-hook"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.program = filepath.Join(dir, "reprise-hook")
	h.write(h.program, string(data))
	if full != "" {
		h.write(filepath.Join(dir, "reprise"), full)
		if err := os.Chmod(filepath.Join(dir, "reprise"), 0o700); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := os.Chmod(h.program, 0o700); err != nil {
		h.t.Fatal(err)
	}
}

// Whatever the full program does, the client gets a whole answer or none.
func TestHookWithAFullProgramThatMisbehaves(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ script, out, log string }{
		"answers":          {`cat >/dev/null; echo '{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"c"}}'`, "{\"hookSpecificOutput\":{\"hookEventName\":\"SessionStart\",\"additionalContext\":\"c\"}}\n", ""},
		"says nothing":     {`cat >/dev/null`, "", ""},
		"blocks":           {`echo no; echo reason >&2; exit 2`, "", "exit code 2"},
		"fails":            {`exit 1`, "", "exit code 1"},
		"is killed":        {`kill -9 $$`, "", "exit code"},
		"prints text":      {`echo hello`, "", "not one JSON object"},
		"prints half":      {`printf '{"decision":"block",'`, "", "not one JSON object"},
		"prints two":       {`echo '{}{}'`, "", "not one JSON object"},
		"prints for ever":  {`while :; do echo 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'; done`, "", "more than it may"},
		"never ends":       {`trap '' TERM; while :; do sleep 60; done`, "", "too long"},
		"cannot be run":    {"\x00", "", "reprise"},
		"prints, and dies": {`echo '{}'; exit 3`, "", "exit code 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			script := "#!/bin/sh\n" + tc.script + "\n"
			if strings.HasPrefix(tc.script, "\x00") {
				script = tc.script
			}
			h.alone(script)
			began := time.Now()
			r := h.hook("claude", "SessionStart", h.payload("SessionStart", ""))
			if took := time.Since(began); took > 2*time.Minute {
				t.Errorf("took %s", took)
			}
			if r.out != tc.out || r.err != "" {
				t.Errorf("said %q and %q, want %q", r.out, r.err, tc.out)
			}
			if tc.log == "" {
				if h.log() != "" {
					t.Errorf("the log complains: %s", h.log())
				}
				return
			}
			h.wantLog(tc.log)
		})
	}
}

// Without the full program an earlier plan is enough to record; without a plan
// the log says what is missing.
func TestHookWithoutTheFullProgram(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.alone("")
	h.hook("claude", "PreToolUse", h.payload("PreToolUse", aTool))
	h.wantLog("no program reprise beside reprise-hook", "not recorded")
	h.wantEvents(nil)
}

// Plans and their directory damaged in every way: slower, never wrong.
func TestHookWithDamagedPlans(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	n := h.planned()
	plan := h.plans()[0]
	want := slices.Repeat([]string{"prompt.submitted"}, n)
	for _, damage := range []func() error{
		func() error { return os.WriteFile(plan, []byte("reprise hook plan 1\n"), 0o600) },
		func() error { return os.WriteFile(plan, nil, 0o600) },
		func() error { return os.WriteFile(plan, []byte(strings.Repeat("x", 1<<20)), 0o600) },
		func() error { return errors.Join(os.Remove(plan), os.Mkdir(plan, 0o700)) },
		func() error {
			return errors.Join(os.RemoveAll(filepath.Dir(plan)), os.WriteFile(filepath.Dir(plan), nil, 0o600))
		},
		func() error {
			cache := filepath.Join(h.data, "cache")
			return errors.Join(os.RemoveAll(cache), os.WriteFile(cache, nil, 0o600))
		},
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		h.hook("claude", "PreToolUse", h.payload("PreToolUse", aTool))
		want = append(want, "tool.called")
	}
	h.wantEvents(want)
}

func TestHookWithoutAHome(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.env = slices.DeleteFunc(h.env, func(v string) bool {
		return strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "USERPROFILE=") || strings.HasPrefix(v, "REPRISE_HOME=")
	})
	r := h.hook("claude", "SessionStart", h.payload("SessionStart", ""))
	if !strings.Contains(r.err, "HOME is not set") || !strings.Contains(r.err, "REPRISE_HOME") {
		t.Errorf("said %q: what is wrong and what to do is missing", r.err)
	}
	// What the built-in rules refuse is refused without the user's, too; the rest is asked about.
	for command, want := range map[string]string{"rm -rf /etc/x": `"permissionDecision":"deny"`, "ls": `"permissionDecision":"ask"`} {
		call := h.hook("claude", "PreToolUse", h.payload("PreToolUse", `,"tool_name":"Bash","tool_input":{"command":"`+command+`"},"tool_use_id":"t"`))
		if !strings.Contains(call.out, want) {
			t.Errorf("%s: %s", command, call.out)
		}
	}
	entries, err := os.ReadDir(h.work)
	if err != nil || len(entries) != 0 {
		t.Errorf("something was written into the working directory: %v, %v", entries, err)
	}
}

// The client's ends of the pipes: one never closed, one full of too much, one
// that is not there.
func TestHookWithBadPipes(t *testing.T) {
	t.Parallel()
	t.Run("input without an end", func(t *testing.T) {
		t.Parallel()
		h := newHooked(t)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if _, err := w.WriteString(`{"session_id":`); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		h.start(r, h.program, "claude", "PreToolUse")
		if took := time.Since(began); took > time.Minute {
			t.Errorf("took %s", took)
		}
		h.wantLog("did not finish writing")
	})
	t.Run("too much input", func(t *testing.T) {
		t.Parallel()
		h := newHooked(t)
		zero, err := os.Open("/dev/zero")
		if err != nil {
			t.Fatal(err)
		}
		defer zero.Close()
		h.start(zero, h.program, "claude", "PreToolUse")
		// What is too long is cut while it is read, and then it is no payload.
		if log := h.log(); !strings.Contains(log, "not a JSON object") && !strings.Contains(log, "did not finish") {
			t.Errorf("the log says %q", log)
		}
	})
	for name, script := range map[string]string{
		"no output": `exec "$0" claude Stop >&-`, "no errors": `exec "$0" claude Stop 2>&-`, "nothing but input": `exec "$0" claude Stop >&- 2>&-`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			h.start(strings.NewReader(h.payload("Stop", "")), "/bin/sh", "-c", script, h.program)
			h.wantEvents([]string{"response.completed"})
		})
	}
	t.Run("no input", func(t *testing.T) {
		t.Parallel()
		h := newHooked(t)
		h.start(nil, "/bin/sh", "-c", `exec "$0" claude Stop <&-`, h.program)
		h.wantEvents(nil)
	})
	t.Run("what is no payload", func(t *testing.T) {
		t.Parallel()
		h := newHooked(t)
		for _, in := range []string{"", "null", "[]", "{", `{"session_id":1`, "\xff\xfe{}", "hello"} {
			h.hook("claude", "PreToolUse", in)
		}
		h.hook("nobody", "PreToolUse", "{}")
		h.hook("claude", "NoSuchEvent", h.payload("NoSuchEvent", ""))
		h.wantEvents(nil)
		h.wantLog("could not be understood", "unknown client")
	})
}

// Few files may be open: the client goes on. With next to none not even the
// runtime can, and it must not end with the code that blocks a tool.
func TestHookWithFewFiles(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	for _, n := range []string{"3", "4", "5", "6", "8", "12"} {
		cmd := exec.Command("/bin/sh", "-c", `ulimit -n `+n+`; exec "$0" claude Stop`, h.program)
		cmd.Dir, cmd.Env, cmd.Stdin = h.work, h.env, strings.NewReader(h.payload("Stop", ""))
		out, err := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code == 2 || code > 0 || len(out) > 0 {
			t.Errorf("%s files: exit code %d, said %q, %v", n, code, out, err)
		}
	}
}

// The words of the command line are the setup's, not a person's: a mistake in
// them must not block a tool either.
func TestHookUsage(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	for _, args := range [][]string{{program("reprise-hook")}, {program("reprise-hook"), "claude"}, {program("reprise"), "hook", "claude"}, {program("reprise"), "hook", "--nope", "claude", "Stop"}} {
		if r := h.run(args[0], args[1:]...); r.code == 0 || r.code == 2 || r.err == "" || r.out != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if _, err := os.Stat(h.data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
}

// Where nothing can be written, the settings can still be read: calls are judged by them,
// and only what cannot be recorded is lost. Where the full program says nothing of a call
// for a reason of its own, the question names that reason.
func TestHookWhereNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.write(h.config, "guard:\n  deny: [\"wc ...\"]\n")
	for _, dir := range []string{"cache", "outbox", "events", "state", "log"} {
		path := filepath.Join(h.data, dir)
		if err := errors.Join(os.RemoveAll(path), os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	call := func(event, command string) string {
		return h.payload(event, `,"tool_name":"Bash","tool_input":{"command":"`+command+`"},"tool_use_id":"tu1"`)
	}
	for _, tc := range []struct{ client, event, command, says string }{
		{"claude", "PreToolUse", "ls", ""},
		{"claude", "PreToolUse", "wc -l f", `"permissionDecision":"deny"`},
		{"claude", "PreToolUse", "touch f", `"permissionDecision":"ask"`},
		{"claude", "PermissionRequest", "ls", `"behavior":"allow"`},
		{"codex", "PreToolUse", "ls", ""},
		{"codex", "PreToolUse", "wc -l f", `"permissionDecision":"deny"`},
	} {
		r := h.hook(tc.client, tc.event, call(tc.event, tc.command))
		if !strings.Contains(r.out, tc.says) || tc.says == "" && r.out != "" || strings.Contains(r.out, "guard-failed") {
			t.Errorf("%s %s, %s: said %q, want %q", tc.client, tc.event, tc.command, r.out, tc.says)
		}
		if !strings.Contains(r.err, "could not record it") {
			t.Errorf("%s %s, %s: standard error %q does not say that it was not recorded", tc.client, tc.event, tc.command, r.err)
		}
	}
	h.alone("#!/bin/sh\nexit 3\n")
	if r := h.hook("claude", "PreToolUse", call("PreToolUse", "ls")); !strings.Contains(r.out, `"ask"`) || !strings.Contains(r.out, "the settings could not be looked at: ") || !strings.Contains(r.out, "ended with exit code 3 [guard-failed]") {
		t.Errorf("with a full program that fails: %q", r.out)
	}
}
