package reprise_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// golist runs go list as for a release build on Linux, so that the answer is the
// same on every machine.
func golist(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %q: %v\n%s", args, err, errs.String())
	}
	return string(out)
}

// linkedInto asks once what a program links: the asking is most of what these rules take.
var linkedInto = map[string][2][]string{}

// linked are the packages that a program links: those of the standard library, and others.
func linked(t *testing.T, program string) (std, others []string) {
	t.Helper()
	if _, ok := linkedInto[program]; !ok {
		var both [2][]string
		for line := range strings.Lines(golist(t, "-deps", "-f", "{{.Standard}} {{.ImportPath}}", "./cmd/"+program)) {
			standard, path, _ := strings.Cut(strings.TrimSpace(line), " ")
			i := 1
			if standard == "true" {
				i = 0
			}
			both[i] = append(both[i], path)
		}
		linkedInto[program] = both
	}
	return slices.Clone(linkedInto[program][0]), slices.Clone(linkedInto[program][1])
}

func TestRuleSmallProgramsStaySmall(t *testing.T) {
	for _, p := range []struct {
		program, golden, when string
		heavy                 []string
	}{
		{"reprise-hook", "testdata/hook-deps.txt", "at every tool call of every agent", []string{
			// The shell's parser brings regexp along, for its printer: two expressions,
			// which cost under a tenth of a millisecond. We compile none ourselves.
			"net/http", "html/template", "text/template", "database/sql", "go/parser", "testing", "net/rpc", "net", "log/slog", "os/exec",
		}},
		{"reprise-recall", "testdata/recall-deps.txt", "at every prompt and each start of a session", []string{
			"net/http", "html/template", "database/sql", "go/parser", "testing", "net/rpc",
		}},
		{"reprise-supervise", "testdata/supervise-deps.txt", "for every run", []string{
			"net/http", "html/template", "text/template", "database/sql", "go/parser", "testing", "net/rpc",
		}},
	} {
		standard, deps := linked(t, p.program)
		slices.Sort(deps)
		got := "# Packages linked into cmd/" + p.program + " on Linux besides the standard library.\n" +
			"# Each is paid for " + p.when + ": add one only with a measured reason.\n" +
			strings.Join(deps, "\n") + "\n"
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p.golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(p.golden)
		if err != nil {
			t.Fatalf("%v (go test . -run SmallPrograms -update writes it)", err)
		}
		if got != string(want) {
			t.Errorf("what %s links has changed: it starts %s, so each package must be worth its time.\ngot:\n%s\nwant:\n%s\n(go test . -run SmallPrograms -update)", p.program, p.when, got, want)
		}
		for _, std := range standard {
			if slices.Contains(p.heavy, std) {
				t.Errorf("cmd/%s links %s, which costs milliseconds %s", p.program, std, p.when)
			}
		}
	}
}

// A fleet's servers are programs of others; ours link the client alone, and the small
// ones not even that.
func TestRuleNoServerIsLinked(t *testing.T) {
	for _, program := range []string{"reprise", "reprise-hook", "reprise-recall", "reprise-supervise"} {
		_, others := linked(t, program)
		for _, dep := range others {
			if strings.HasPrefix(dep, "github.com/nats-io/nats-server") || program != "reprise" && strings.HasPrefix(dep, "github.com/nats-io/") {
				t.Errorf("cmd/%s links %s: only tests start a server, and only the full program is a client of one", program, dep)
			}
		}
	}
}

// tracked are the files that git knows or would add.
func tracked(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("not a git checkout, so there are no tracked files to look at: %v", err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
}

func TestRuleNothingOfThisMachine(t *testing.T) {
	// The patterns are put together so that this file does not hold them.
	hosts := []string{"registry." + "npmjs.org", "proxy." + "golang.org", "sum." + "golang.org", "deb." + "debian.org", "registry." + "yarnpkg.com"}
	var quoted []string
	for _, h := range hosts {
		quoted = append(quoted, regexp.QuoteMeta(h))
	}
	for _, rule := range []struct {
		re     *regexp.Regexp
		parts  []string // one of them is in whatever re finds: looking for those costs a tenth
		reason string
	}{
		{regexp.MustCompile(strings.Join(quoted, "|")), hosts, "names a package registry: whoever builds this may use a mirror"},
		{regexp.MustCompile(`/work/(?:main|shared|\.library|\.mirror)|/root/(?:go|\.)|/tmp/brie` + `f\b`), []string{"/wor" + "k/", "/roo" + "t/", "/tmp/brie" + "f"}, "names a path of the machine that it was written on"},
	} {
		for _, name := range tracked(t) {
			data, err := os.ReadFile(name)
			if errors.Is(err, os.ErrNotExist) {
				continue // removed, not yet committed
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(rule.parts, func(part string) bool { return bytes.Contains(data, []byte(part)) }) || !utf8.Valid(data) || filepath.Ext(name) == ".sum" {
				continue
			}
			if m := rule.re.FindIndex(data); m != nil {
				line := 1 + bytes.Count(data[:m[0]], []byte("\n"))
				t.Errorf("%s:%d: %q %s", name, line, data[m[0]:m[1]], rule.reason)
			}
		}
	}
}

// licences we may link, told apart by words that only their texts have.
var licences = []struct {
	name  string
	words []string
}{
	{"Apache-2.0", []string{"Apache License", "Version 2.0"}},
	{"MIT", []string{"Permission is hereby granted, free of charge", "without restriction", "WARRANTY OF ANY KIND"}},
	{"BSD", []string{"Redistribution and use in source and binary forms"}},
	{"ISC", []string{"Permission to use, copy, modify, and/or distribute this software for any purpose with or without"}},
}

func licence(text string) string {
	flat := strings.ToLower(strings.Join(strings.Fields(text), " "))
	if strings.Contains(flat, "gnu general public") || strings.Contains(flat, "gnu affero") || strings.Contains(flat, "gnu lesser") {
		return ""
	}
	for _, l := range licences {
		all := true
		for _, w := range l.words {
			all = all && strings.Contains(flat, strings.ToLower(w))
		}
		if all {
			return l.name
		}
	}
	return ""
}

func TestRuleLicences(t *testing.T) {
	type module struct {
		Path, Version, Dir string
		Main               bool
	}
	linked := map[string]module{}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", "list", "-deps", "-json=Module", "./cmd/...")
		cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list for %s: %v", goos, err)
		}
		dec := json.NewDecoder(bytes.NewReader(out))
		for {
			var p struct{ Module *module }
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if p.Module != nil && !p.Module.Main {
				linked[p.Module.Path] = *p.Module
			}
		}
	}
	if len(linked) == 0 {
		t.Fatal("no linked modules found: the check looks at nothing")
	}
	// What a release says of each part is what was read in it; see script/release/sbom.
	said := saidLicences(t)
	for path := range said {
		if _, ok := linked[path]; !ok && path != "std" && path != "reprise" {
			t.Errorf("script/release/licences.txt names %s, which no program links: take it out", path)
		}
	}
	for _, m := range linked {
		if said[m.Path] == "" {
			t.Errorf("script/release/licences.txt lacks %s %s: read its licence, and add it", m.Path, m.Version)
		} else if name, err := moduleLicence(m.Dir); err == nil && !strings.Contains(said[m.Path], name) {
			t.Errorf("script/release/licences.txt says of %s %s that it is %s, and its own text is that of %s", m.Path, m.Version, said[m.Path], name)
		}
		if reason := licenceChoices[m.Path]; reason != "" {
			t.Logf("%-12s %s %s", reason, m.Path, m.Version)
			continue
		}
		name, err := moduleLicence(m.Dir)
		if err != nil {
			t.Errorf("%s %s: %v: what is linked into the programs must be under a licence that asks for no more than its notice", m.Path, m.Version, err)
			continue
		}
		t.Logf("%-12s %s %s", name, m.Path, m.Version)
	}
}

// saidLicences are the licences that a release's lists of parts name.
func saidLicences(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("script/release/licences.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		module, terms, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && module != "#" {
			out[module] = terms
		}
	}
	if out["std"] == "" || out["reprise"] == "" {
		t.Error("script/release/licences.txt lacks the standard library, or reprise itself")
	}
	return out
}

func moduleLicence(dir string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return "", err
	}
	var seen []string
	for _, p := range found {
		base := strings.ToUpper(filepath.Base(p))
		if !strings.HasPrefix(base, "LICEN") && !strings.HasPrefix(base, "COPYING") {
			continue
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return "", err
		}
		if name := licence(string(data)); name != "" {
			return name, nil
		}
		seen = append(seen, filepath.Base(p))
	}
	return "", fmt.Errorf("no allowed licence recognised in %s (files: %q)", dir, seen)
}
