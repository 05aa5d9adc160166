//go:build unix

package cli_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"reprise/internal/cli"
	"reprise/internal/setup"
)

// Every command in the documents runs: a ```sh block is a script, in a world that has what
// it speaks of; what stands in other blocks and in sentences runs line by line. A block that
// cannot be run here says so, ```sh norun, and of a line documentLinesNeed says why.
// README.md's blocks are another test's, which also installs what they say.
func TestDocumentCommands(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	t.Parallel()
	w, ran := newExampleWorld(t), 0
	for _, file := range documents(t, "docs/*.md") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var script []string
		for i, part := range strings.Split(string(data), "\n```") {
			info, body, _ := strings.Cut(part, "\n")
			if i > 0 && strings.TrimSpace(info) == "sh" {
				script = append(script, body)
			}
		}
		if len(script) == 0 {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			ran++
			w.reset(t)
			defer w.stop(t)
			w.vars["PROJECT"] = "shop"
			if out, err := w.line(t, "set -v\n"+strings.Join(script, "\n")); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if ran < 2 {
		t.Errorf("%d documents have commands: the test looks at too little", ran)
	}
	w.tryLines(t)
}

// documents are the files of this repository that the patterns, with slashes from its top,
// name.
func documents(t *testing.T, patterns ...string) (files []string) {
	t.Helper()
	for _, pattern := range patterns {
		list, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	return files
}

// What docs say of codes is what the program has: the exit codes, and each check of the
// doctor has its part in troubleshooting.md, in the doctor's order.
func TestDocumentedCodes(t *testing.T) {
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	var rows, codes []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| ([a-z ]+) \| .`).FindAllStringSubmatch(read("exit-codes.md"), -1) {
		rows = append(rows, row[1]+" "+strings.ReplaceAll(row[2], " ", ""))
	}
	for name, code := range exitCodes(t) {
		codes = append(codes, code+" "+strings.ToLower(strings.TrimPrefix(name, "Exit")))
	}
	slices.Sort(codes)
	if !slices.Equal(rows, codes) {
		t.Errorf("exit-codes.md has %q,\nthe program %q", rows, codes)
	}
	var want []string
	for _, c := range (setup.Doctor{}).Checks() {
		want = append(want, c.Name)
	}
	want = append(want, "repository", "judge", "fleet", "event logs", "what was learnt", "guard", "gates", "delegation") // cli's own, as doctor.go adds them
	var got []string
	for line := range strings.Lines(read("troubleshooting.md")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "## doctor: "); ok {
			got = append(got, name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("troubleshooting.md has parts for %q,\nthe doctor checks %q", got, want)
	}
}

// exitCodes are the constants of the package that say how the program ends, by name: what
// none of them is, no command ends with by itself.
func exitCodes(t *testing.T) map[string]string {
	t.Helper()
	codes := map[string]string{}
	var literal []string
	for _, file := range documents(t, "internal/cli/*.go") {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if strings.HasPrefix(name.Name, "Exit") && i < len(n.Values) {
						codes[name.Name] = n.Values[i].(*ast.BasicLit).Value
					}
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && strings.HasPrefix(f.Name, "exitWith") && len(n.Args) > 0 {
					if lit, ok := n.Args[0].(*ast.BasicLit); ok {
						literal = append(literal, filepath.Base(file)+": "+lit.Value)
					}
				}
			}
			return true
		})
	}
	if len(literal) > 0 {
		t.Errorf("codes without a name: %q", literal)
	}
	return codes
}

// What looks like a command of ours in any document, in a block of code or in a line of
// text, is one: its words are commands, and its flags are theirs. Whether it also does
// what is said is shown where it runs: TestDocumentCommands, TestReadmeCommands, TestExamples.
func TestDocumentsNameCommandsThatAre(t *testing.T) {
	t.Parallel()
	tree := cli.Tree() // to be made for each of so many lines it takes too long
	files := documents(t, "*.md", "docs/*.md", "script/release/*.md", "plugin/*.md", "plugin/*/*.md", "docs/commands/*.md")
	said := regexp.MustCompile("(?:^|[`(;&|$\"]|\\s\\$ )reprise((?: +[^ `|;&#<>()\"']+)+)")
	seen := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fenced := false
		for i, line := range strings.Split(string(data), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
				continue
			}
			code := fenced || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
			if !code && !strings.Contains(line, "`reprise ") {
				continue
			}
			for _, m := range said.FindAllStringSubmatch(strings.TrimSpace(line), -1) {
				if code || strings.Contains(line, "`reprise"+m[1]) {
					seen++
					if err := isCommand(tree, strings.Fields(m[1])); err != nil {
						t.Errorf("%s:%d: `reprise%s`: %v", strings.TrimPrefix(filepath.ToSlash(file), "../../"), i+1, m[1], err)
					}
				}
			}
		}
	}
	if seen < 300 {
		t.Errorf("%d commands were found in the documents: the test looks at too little", seen)
	}
}

// isCommand says what is wrong with a command as a document writes it: with names in
// capitals for what somebody puts there, and brackets around what may be left out.
func isCommand(cmd *cobra.Command, words []string) error {
	named := regexp.MustCompile("^[a-z][a-z-]*$")
	at := 0
	for ; at < len(words); at++ {
		if strings.HasPrefix(words[at], "-") && cmd == cmd.Root() { // --config FILE before the command
			continue
		}
		i := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == words[at] || c.HasAlias(words[at]) })
		if i < 0 {
			break
		}
		cmd = cmd.Commands()[i]
	}
	if at < len(words) && named.MatchString(words[at]) && !cmd.Runnable() && cmd.HasSubCommands() {
		return fmt.Errorf("`%s` has no command %q", cmd.CommandPath(), words[at])
	}
	if cmd == cmd.Root() && at < len(words) && named.MatchString(words[at]) {
		return fmt.Errorf("there is no command %q", words[at])
	}
	for _, word := range words[at:] {
		word = strings.Trim(word, "[]|.,:…")
		if word == "--" {
			break
		}
		if !strings.HasPrefix(word, "-") || len(word) < 2 || cmd.DisableFlagParsing {
			continue
		}
		name, long := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		name, _, _ = strings.Cut(name, "[")
		cmd.InitDefaultHelpFlag()
		cmd.InitDefaultVersionFlag()
		if long && cmd.Flag(name) == nil {
			return fmt.Errorf("`%s` has no flag --%s", cmd.CommandPath(), name)
		}
		if !long {
			if short := word[1:2]; cmd.Flags().ShorthandLookup(short) == nil && cmd.InheritedFlags().ShorthandLookup(short) == nil && (short < "0" || short > "9") {
				return fmt.Errorf("`%s` has no flag -%s", cmd.CommandPath(), short)
			}
		}
	}
	return nil
}
