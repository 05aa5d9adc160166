package reprise_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// No engine for containers runs these tests, so what can be known of the container file
// without one is looked at here: what it copies is in the tree, its Go can build the module,
// it starts a program of ours as a user who is not root, and what is known lies on a volume.
func TestRuleContainerfileFitsTheTree(t *testing.T) {
	data, err := os.ReadFile("Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(string(data), "")
	text = strings.ReplaceAll(text, "\\\n", " ")
	known := []string{"FROM", "ARG", "WORKDIR", "COPY", "RUN", "USER", "ENV", "VOLUME", "ENTRYPOINT", "CMD"}
	stages, last := []string{}, map[string]string{} // names of stages; instructions of the last one
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		fields := strings.Fields(rest)
		switch {
		case word == "":
			continue
		case !slices.Contains(known, word) || len(fields) == 0:
			t.Errorf("%q is not an instruction that this test knows", strings.TrimSpace(line))
			continue
		case word == "FROM":
			last = map[string]string{}
			name := ""
			if len(fields) == 3 && strings.EqualFold(fields[1], "AS") {
				name = fields[2]
			}
			stages = append(stages, name)
		case word == "COPY" && strings.HasPrefix(fields[0], "--from="):
			if from := strings.TrimPrefix(fields[0], "--from="); !slices.Contains(stages[:len(stages)-1], from) {
				t.Errorf("COPY from %q, which is no stage before it", from)
			}
		case word == "COPY":
			for _, from := range fields[:len(fields)-1] {
				if found, err := filepath.Glob(from); err != nil || len(found) == 0 {
					t.Errorf("COPY %s: it is not there", from)
				}
			}
		case word == "ENTRYPOINT" || word == "CMD":
			var args []string
			if err := json.Unmarshal([]byte(rest), &args); err != nil || len(args) == 0 {
				t.Errorf("%s %s: not a list of words in JSON, so a shell would be between: %v", word, rest, err)
			} else if word == "ENTRYPOINT" {
				if _, err := os.Stat(filepath.Join("cmd", args[0])); err != nil {
					t.Errorf("it starts %s, which is no program of ours", args[0])
				}
			}
		}
		last[word] += rest + "\n"
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	if version == nil || !strings.Contains(text, "golang:"+string(version[1])+"-") {
		t.Errorf("the image to build in is not of the Go that go.mod names, %s", version)
	}
	if !regexp.MustCompile(`CGO_ENABLED=0 go build [^\n]*\./cmd/\.\.\.`).MatchString(text) {
		t.Error("not all programs are built as a release builds them")
	}
	user, home := strings.TrimSpace(last["USER"]), strings.TrimSpace(last["VOLUME"])
	if user == "" || user == "root" || user == "0" {
		t.Errorf("it runs as %q", user)
	}
	if home == "" || !strings.Contains(last["ENV"], "REPRISE_HOME="+home+"\n") {
		t.Errorf("what is known lies elsewhere (%q) than on the volume %q", last["ENV"], home)
	}
	for _, need := range []string{" git ", " ca-certificates ", "-o " + user + " "} {
		if !strings.Contains(last["RUN"], need) {
			t.Errorf("the last image lacks %q", need)
		}
	}
}

// The number of a release gets into the programs of its image as it does into those of the
// archives, with or without the v of its tag.
func TestRuleContainerfileKnowsItsVersion(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell here")
	}
	data, err := os.ReadFile("Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	args := regexp.MustCompile(`(?m)^RUN CGO_ENABLED=0 go (build .*)$`).FindStringSubmatch(string(data))
	if args == nil || !regexp.MustCompile(`(?m)^ARG VERSION=$`).Match(data) {
		t.Fatal("it takes no VERSION, or builds otherwise than this test knows")
	}
	for version, want := range map[string]string{
		"":        "-ldflags=-s -w ",
		"0.2.0":   "-ldflags=-s -w -X reprise/internal/cli.release=v0.2.0",
		"v0.2.0":  "-ldflags=-s -w -X reprise/internal/cli.release=v0.2.0",
		"1.0.0-a": "-ldflags=-s -w -X reprise/internal/cli.release=v1.0.0-a",
	} {
		cmd := exec.Command(sh, "-c", `set -f; set -- `+args[1]+`; printf '%s\n' "$@"`)
		cmd.Env = []string{"VERSION=" + version}
		out, err := cmd.Output()
		if err != nil || !slices.Contains(strings.Split(string(out), "\n"), want) {
			t.Errorf("VERSION=%s: %v, the words are %q", version, err, out)
		}
	}
	config, err := os.ReadFile(".goreleaser.yaml")
	if err != nil || !strings.Contains(string(config), "-s -w -X reprise/internal/cli.release=v{{ .Version }}") {
		t.Errorf("a release sets its number by another flag: %v", err)
	}
}
