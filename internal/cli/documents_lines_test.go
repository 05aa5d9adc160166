//go:build unix

package cli_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"reprise/internal/cli"
)

// documentLine is a call of reprise that a document shows outside a ```sh block: a line of
// another block, or code within a sentence.
type documentLine struct {
	text, where string // the call; FILE:LINE of its first place
}

var (
	inlineCall = regexp.MustCompile("`(reprise [^`]+)`")
	// afterCall is what a block says of a call beside it.
	afterCall  = regexp.MustCompile(`(?:\s+#|\s{2,}\S).*$`)
	quotedText = regexp.MustCompile(`'[^']*'`)
	// pattern is a call that shows what may be written: names in capitals, what may be left
	// out, one or the other. Its words and flags are looked at by
	// TestDocumentsNameCommandsThatAre, and its command runs in TestExamples.
	pattern = regexp.MustCompile(`(?:^|[\s=/'"-])[A-Z][A-Z_]+\b(?:[\s.'"]|$)|\bN\b|[\[\]|…<>─]| \.\.\.$`)
)

// documentLines are the calls in documents that stand outside of ```sh blocks, each once,
// but for bare names of commands and patterns.
func documentLines(t *testing.T) (lines []documentLine) {
	t.Helper()
	tree, seen := cli.Tree(), map[string]bool{}
	for _, file := range documents(t, "*.md", "docs/*.md") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		block := "" // the language of the block that is open, "-" for none
		for i, line := range strings.Split(string(data), "\n") {
			if info, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
				if block == "" {
					block = "-" + info
				} else {
					block = ""
				}
				continue
			}
			var calls []string
			switch {
			case strings.HasPrefix(block, "-sh"): // run whole
			case block != "" || strings.HasPrefix(line, "    "):
				line = strings.TrimSpace(line)
				// With a colon after its name it is something that reprise says.
				if strings.HasPrefix(line, "reprise ") && !strings.HasSuffix(strings.Fields(line)[1], ":") {
					calls = []string{afterCall.ReplaceAllString(line, "")}
				}
			default:
				for _, m := range inlineCall.FindAllStringSubmatch(line, -1) {
					calls = append(calls, m[1])
				}
			}
			for _, call := range calls {
				words := strings.Fields(call)
				found, rest, err := tree.Find(words[1:])
				if err == nil && len(rest) == 0 && found.CommandPath() == strings.Join(words, " ") {
					continue // a name: its example runs
				}
				if seen[call] || pattern.MatchString(quotedText.ReplaceAllString(call, "")) && documentLinesNeed[call].instead == "" {
					continue
				}
				seen[call] = true
				lines = append(lines, documentLine{call, fmt.Sprintf("%s:%d", filepath.Base(file), i+1)})
			}
		}
	}
	return lines
}

// documentNeed is what a line of a document needs beside what its command's example does.
type documentNeed struct {
	exampleNeed
	instead   string // the line that is run, where what stands there cannot be
	elsewhere string // why it does not run here
}

// documentLinesNeed is by line. What a sentence names without its argument, for that is not
// what it is about, runs with one.
var documentLinesNeed = map[string]documentNeed{
	"reprise doctor --guard":                                             {elsewhere: "it needs a client; the suites of e2e have all four"},
	"reprise guard check -- 'cd sub && ls | xargs cat'":                  {exampleNeed: exampleNeed{code: 1}},
	"reprise hook replay [DIR] --against PROGRAM [-- ARG...]":            {instead: "reprise hook replay cases --against true", exampleNeed: exampleNeed{before: recorded}},
	"reprise mcp --http":                                                 {instead: "reprise mcp token create laptop && reprise mcp --http 127.0.0.1:0", exampleNeed: exampleNeed{until: "serving MCP"}},
	"reprise mcp --http 127.0.0.1:8765":                                  {instead: "reprise mcp token create laptop && reprise mcp --http 127.0.0.1:0", exampleNeed: exampleNeed{until: "serving MCP"}},
	"reprise memory forget --purge":                                      {instead: "reprise memory forget --purge e-3f9a2c0d51b7e684"},
	"reprise memory learn --private":                                     {instead: `REPRISE_AGENT=tidy reprise memory learn --private "The staging key is in the safe"`},
	"reprise queue done work-abcdefghij@1 --summary \"logged in again\"": {instead: `reprise queue done login@1 --summary "logged in again"`},
	"reprise web --listen 127.0.0.1:7878":                                {instead: "reprise web --listen 127.0.0.1:0"},
	"reprise init --adopt":                                               {elsewhere: "it needs a name whose project is away; claim.txtar has one"},
	"reprise refresh --client codex":                                     {instead: "reprise refresh --client codex --dry-run"},
	"reprise setup --remove":                                             {instead: "reprise setup --remove --yes"},
	"reprise setup claude-code":                                          {instead: "reprise setup claude-code --dry-run"},
	"reprise spawn --agent-script steps.yaml \"the task\"":               {exampleNeed: exampleNeed{before: []string{"printf 'steps:\\n  - say: done\\n' > steps.yaml"}}},
	"reprise spawn --allow-state-write":                                  {instead: `reprise spawn --allow-state-write "Say hello"`},
	"reprise task meta --answers answers.yaml":                           {elsewhere: "it needs a file of answers; meta.txtar has one"},
	"reprise task run 1 --loop":                                          {instead: "reprise task run 12 --loop"},
	"reprise upgrade --check":                                            {elsewhere: "it needs a release; upgrade.txtar has one"},
}

// tryLines runs what documents show outside of ```sh blocks.
func (w *exampleWorld) tryLines(t *testing.T) {
	lines := documentLines(t)
	there := map[string]bool{}
	for _, line := range lines {
		there[line.text] = true
	}
	for _, line := range slices.Sorted(maps.Keys(documentLinesNeed)) {
		if !there[line] {
			t.Errorf("%q stands in no document any more: take it out of this test", line)
		}
	}
	if len(lines) < 50 {
		t.Errorf("%d lines were found: the test looks at too little", len(lines))
	}
	for _, line := range lines {
		need := documentLinesNeed[line.text]
		if need.elsewhere != "" || examplesElsewhere[line.text] != "" {
			continue
		}
		t.Run(line.where, func(t *testing.T) {
			w.reset(t)
			defer w.stop(t)
			call, of := line.text, exampleNeed{}
			if found, err := commandOf(strings.Fields(call)[1:]); err == nil {
				of = examplesNeed[found.CommandPath()]
				w.prepare(t, of)
			}
			if own, ok := examplesNeed[call]; ok {
				need.exampleNeed = own
			}
			w.prepare(t, need.exampleNeed)
			if need.until == "" {
				need.until = of.until
			}
			if need.instead != "" {
				call = need.instead
			}
			call = w.named(t, call)
			run := w.line
			if need.until != "" {
				run = func(t *testing.T, line string) (string, error) { return w.until(t, line, need.until) }
			}
			out, err := run(t, call)
			if want := fmt.Sprintf("exit code %d", need.code); err != nil && (need.code == 0 || err.Error() != want) {
				t.Errorf("%s: %s\n%v\n%s", line.where, line.text, err, out)
			}
		})
	}
}
