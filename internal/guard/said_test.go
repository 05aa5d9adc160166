package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"reprise/internal/guard/filter"
	"reprise/internal/guard/names"
)

// question is something that is asked of the guard or of a part of it, in words
// that can stand in a line; answer is all that it says.
type question struct{ about, text string }

// answer is what is said: of a command every finding with its rule and word, so
// that a rule which another one stands in for is missed all the same.
func (q question) answer(p project) string {
	switch q.about {
	case "command":
		v := p.rules().Command(q.text, p.dir)
		var b strings.Builder
		b.WriteString(string(v.Decision))
		for _, part := range v.Parts {
			fmt.Fprintf(&b, " | %s %s %q %s; %s", part.Decision, part.Rule, part.Word, part.Reason, part.Instead)
		}
		return strings.NewReplacer(p.dir, "PROJECT", p.outside, "OUTSIDE", p.home, "HOME", filepath.Dir(p.outside), "ROOT").Replace(b.String())
	case "sed":
		what, file := filter.Sed(q.text)
		return fmt.Sprintf("%s %q", what, file)
	case "awk":
		what, file := filter.Awk(q.text)
		return fmt.Sprintf("%s %q", what, file)
	case "path":
		bad, what := names.Protected(q.text)
		return fmt.Sprintf("%v %q, holds %v, secret %q", bad, what, names.Holds(q.text), names.Secret(q.text))
	case "variable":
		return fmt.Sprintf("%d, secret %v", names.Variable(q.text), names.SecretVariable(q.text))
	}
	return "?"
}

// questions are the lines of testdata/questions.txt, and the commands of the corpora.
func questions(t testing.TB) []question {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "questions.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var out []question
	for _, l := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		about, text, _ := strings.Cut(l, " ")
		text, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
		if err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		out = append(out, question{about, text})
	}
	for _, c := range append(readCorpus(t, "bypasses.jsonl"), hard(t)...) {
		out = append(out, question{"command", c.Command})
	}
	return out
}

// What the guard says, to the word: testdata/said.txt. A decision may be right for
// another reason than the one that is meant, which then nobody would miss.
func TestSaid(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("where the file system folds case, names are said otherwise")
	}
	p := newProject(t)
	var b strings.Builder
	for _, q := range questions(t) {
		fmt.Fprintf(&b, "%s %q\n\t%s\n", q.about, q.text, q.answer(p))
	}
	file := filepath.Join("testdata", "said.txt")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.Split(string(data), "\n"), strings.Split(b.String(), "\n")
	if len(want) != len(got) {
		t.Errorf("%d lines in testdata/said.txt, %d are said; if that is meant: go test ./internal/guard -run TestSaid -update", len(want), len(got))
	}
	for i, shown := 0, 0; i < min(len(want), len(got)) && shown < 10; i++ {
		if want[i] != got[i] {
			t.Errorf("testdata/said.txt:%d:\n%s, now\n%s", i+1, want[i], got[i])
			shown++
		}
	}
}
