package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const wholeVerify = `v: 1
name: a
verify:
  profile: deep
  on_failure: true
  carry: [node_modules, "packages/*/deps"]
  protected: ["*.sql", db/**, migrations/]
  env: [DATABASE_URL, TZ=UTC]
  gates: [review]
  max_mb: 10
  risk:
    standard: {files: 1}
    deep: {files: 2, lines: 3}
  profiles:
    quick:
      - run: go build   ./...
      - name: lint
        run: [golint, "-x"]
        dir: a/b
        timeout_seconds: 7
        level: advisory
    deep:
      - name: lint
        run: |
          golint --all
`

func TestVerifySection(t *testing.T) {
	p, err := ParseProject("f", []byte(wholeVerify))
	if err != nil {
		t.Fatal(err)
	}
	want := &Verify{
		Profile: "deep", OnFailure: true, Carry: []string{"node_modules", "packages/*/deps"}, Protected: []string{"*.sql", "db/**", "migrations/"},
		Env: []string{"DATABASE_URL", "TZ=UTC"}, Gates: []string{"review"}, MaxMB: 10,
	}
	want.Risk[1], want.Risk[2] = Risk{Files: 1}, Risk{Files: 2, Lines: 3}
	lint := Check{Name: "lint", Argv: []string{"golint", "-x"}, Dir: "a/b", TimeoutSeconds: 7, Advisory: true}
	build := Check{Name: "go build ./...", Shell: "go build   ./...", Dir: ".", TimeoutSeconds: 300}
	all := Check{Name: "lint", Shell: "golint --all", Dir: ".", TimeoutSeconds: 300}
	want.Checks[0], want.Checks[2] = []Check{build, lint}, []Check{all}
	if d := cmp.Diff(want, p.Verify); d != "" {
		t.Error(d)
	}
	for profile, want := range map[string][]Check{"quick": {build, lint}, "standard": {build, lint}, "deep": {build, all}} {
		if d := cmp.Diff(want, p.Verify.ChecksOf(profile)); d != "" {
			t.Errorf("%s: %s", profile, d)
		}
	}
	// No profile passes for having no checks of its own.
	only := &Verify{}
	only.Checks[1] = []Check{build}
	for _, profile := range VerifyProfiles() {
		if len(only.ChecksOf(profile)) != 1 {
			t.Errorf("%s has none", profile)
		}
	}
	if !slices.Contains(p.Asks, "verify") {
		t.Error("it is not asked for")
	}
	var none *Verify
	if !none.Empty() || none.ChecksOf("quick") != nil {
		t.Error("nothing is something")
	}
}

func TestVerifySectionWrong(t *testing.T) {
	for text, want := range map[string]string{
		"verify: [z]":                                                         "not a section",
		"verify: {x: 1}":                                                      "verify.x",
		"verify: {profile: fast}":                                             "verify.profile",
		"verify: {on_failure: maybe}":                                         "verify.on_failure",
		"verify: {carry: [/etc]}":                                             "verify.carry[0]",
		"verify: {carry: [../x]}":                                             "verify.carry[0]",
		"verify: {carry: [.git]}":                                             "verify.carry[0]",
		"verify: {carry: [a//b]}":                                             "verify.carry[0]",
		"verify: {protected: [\"[\"]}":                                        "verify.protected[0]",
		"verify: {env: [\"1A\"]}":                                             "verify.env[0]",
		"verify: {env: [REPRISE_RUN_ID=x]}":                                   "verify.env[0]",
		"verify: {gates: [coffee]}":                                           "verify.gates[0]",
		"verify: {max_mb: 0}":                                                 "verify.max_mb",
		"verify: {risk: {quick: {}}}":                                         "verify.risk.quick",
		"verify: {risk: {deep: {words: 1}}}":                                  "verify.risk.deep.words",
		"verify: {profiles: {huge: []}}":                                      "verify.profiles.huge",
		"verify: {profiles: {quick: x}}":                                      "not a list",
		"verify: {profiles: {quick: [{}]}}":                                   "quick[0].run: is missing",
		"verify: {profiles: {quick: [x]}}":                                    "quick[0]",
		"verify: {profiles: {quick: [{run: []}]}}":                            "quick[0].run",
		"verify: {profiles: {quick: [{run: ' '}]}}":                           "quick[0].run",
		"verify: {profiles: {quick: [{run: a, dir: /}]}}":                     "quick[0].dir",
		"verify: {profiles: {quick: [{run: a, dir: ../b}]}}":                  "quick[0].dir",
		"verify: {profiles: {quick: [{run: a, level: hard}]}}":                "quick[0].level",
		"verify: {profiles: {quick: [{run: a, timeout_seconds: 3601}]}}":      "quick[0].timeout_seconds",
		"verify: {profiles: {quick: [{run: a, name: b}, {run: c, name: b}]}}": "second time",
		"verify: {profiles: {quick: [{run: a, shell: b}]}}":                   "quick[0].shell",
	} {
		_, err := ParseProject("f", []byte("v: 1\nname: a\n"+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	many := "v: 1\nname: a\nverify:\n  profiles:\n    quick:\n" + strings.Repeat("      - run: 'true'\n", maxChecks+1)
	if _, err := ParseProject("f", []byte(many)); err == nil {
		t.Error("any number of checks")
	}
}

func TestGateOff(t *testing.T) {
	g := defaultGates()
	asks := &Verify{Gates: []string{"review", "tests"}}
	for _, tc := range []struct {
		set  string
		v    *Verify
		name string
		on   bool
	}{
		{"on", nil, "tests", true}, {"off", asks, "tests", false}, {"project", nil, "tests", false}, {"project", asks, "tests", true},
		{"project", asks, "review", true}, {"on", nil, "coffee", false},
	} {
		for i := range g.On {
			g.On[i] = tc.set
		}
		if got := g.Off(tc.name, tc.v) == ""; got != tc.on {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

func FuzzVerifySection(f *testing.F) {
	f.Add(wholeVerify)
	f.Add("v: 1\nname: a\nverify: {profiles: {quick: [{run: [a], dir: b}]}}\n")
	f.Add("v: 1\nname: a\nverify:\n  profiles: &x\n    quick: *x\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseProject("f", []byte(text))
		if err != nil {
			var one *Error
			if !errors.As(err, &one) {
				t.Fatalf("%v does not say where", err)
			}
			return
		}
		if p.Verify == nil {
			return
		}
		for _, profile := range VerifyProfiles() {
			for _, c := range p.Verify.ChecksOf(profile) {
				if c.Name == "" || c.Command() == "" || c.TimeoutSeconds < 1 || c.TimeoutSeconds > maxCheckSeconds || c.Dir == "" || strings.HasPrefix(c.Dir, "/") || strings.Contains("/"+c.Dir+"/", "/../") {
					t.Fatalf("%+v", c)
				}
			}
		}
		for _, c := range p.Verify.Carry {
			if strings.HasPrefix(c, "/") || strings.Contains("/"+c+"/", "/../") {
				t.Fatalf("carries %q", c)
			}
		}
	})
}
