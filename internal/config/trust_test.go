package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An approval is of one text: a changed one has to be approved anew, and the
// one before is kept to compare with.
func TestTrust(t *testing.T) {
	dir := t.TempDir()
	paths := Paths{Data: filepath.Join(dir, "data")}
	root := filepath.Join(dir, "shop")
	p := &Project{Name: "shop", Root: root, Main: root}
	write := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(p.File()), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p.File(), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is := func(approved bool, asks, before string) Trust {
		t.Helper()
		got, err := paths.Trust(p)
		if err != nil || got.Approved != approved || strings.Join(got.Asks, " ") != asks || got.Before != before {
			t.Fatalf("%+v, %v", got, err)
		}
		return got
	}
	first := "v: 1\nname: shop\nhooks:\n  off: [prompt]\n"
	write(first)
	tr := is(false, "hooks", "")
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	if err := paths.Approve(t.Context(), p, tr, now); err != nil {
		t.Fatal(err)
	}
	is(true, "hooks", "")
	write("v: 1\nname: shop\nhooks:\n  off: [prompt, session_end]\nverify: {}\n")
	changed := is(false, "hooks verify", first)
	write("v: 1\nname: shop\n")
	if err := paths.Approve(t.Context(), p, changed, now); err == nil || !strings.Contains(err.Error(), "changed while you were looking") {
		t.Errorf("a text that nobody saw was approved: %v", err)
	}
	is(false, "", first)
	write(first)
	is(true, "hooks", "")
	if err := paths.Revoke(p); err != nil {
		t.Fatal(err)
	}
	is(false, "hooks", "")
	if err := paths.Revoke(p); err != nil {
		t.Errorf("revoked twice: %v", err)
	}
	if err := os.WriteFile(paths.TrustFile(p), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := paths.Trust(p); err == nil || got.Approved {
		t.Errorf("a damaged record approves: %+v, %v", got, err)
	}
}

// What a project's file says of hooks about state counts in place of the user's
// word once that very file was approved, and not before.
func TestStateHooks(t *testing.T) {
	env := testEnv(t)
	paths := testPaths(t, env)
	root := filepath.Join(env.Dir, "shop")
	file := ProjectFile(root)
	write := func(text string) *Home {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("v: 1\nname: shop\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
		p, err := projectAt(root)
		if err != nil {
			t.Fatal(err)
		}
		return &Home{Env: env, Paths: paths, Settings: Default(paths), Project: p}
	}
	if got := (&Home{Settings: Default(paths)}).StateHooks(); got != defaultStateHooks() {
		t.Errorf("outside any project: %+v", got)
	}
	h := write("hooks: {pre_compact: false, post_commit: true, edits: 0, on_error: off}\n")
	if got := h.StateHooks(); got != defaultStateHooks() {
		t.Errorf("before it is approved: %+v", got)
	}
	tr, err := paths.Trust(h.Project)
	if err != nil {
		t.Fatal(err)
	}
	if err := paths.Approve(t.Context(), h.Project, tr, time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	want := StateHooks{SessionStart: "on", PreCompact: "off", PostCommit: "on", OnError: "off", SessionEnd: "on", BranchSwitch: "on"}
	if got := h.StateHooks(); got != want {
		t.Errorf("approved: %+v", got)
	}
	if got := write("hooks: {session_end: off}\n").StateHooks(); got != defaultStateHooks() {
		t.Errorf("another text: %+v", got)
	}
}
