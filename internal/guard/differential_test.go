package guard

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// wholes are texts that each shell reads, of words that no shell knows and that name
// no program; pieces are what shells and the parser may read in different ways when
// they come to stand anywhere in them.
var (
	wholes = []string{
		"m1", "m2 x; m3", "m1 && m2", "m1 || m2 # c", "echo \"a $(m3) b\"", "echo 'm4'", "x=$(m5)", "echo `m6`", "{ m7; }", "(m8)", "if m1; then m2; else m3; fi", "case x in x) m4;; esac", "for x in a b; do m5; done", "[[ x == x ]] && m6",
		"echo <<E\nm1\nE\nm2", "echo <<'E'\nm1\nE\nm2", "echo <<-E\n\tm1\n\tE\nm2", "echo <<E\n$(m3)\nE", "echo <<E <<F\na\nE\nm1\nF\nm2", "echo $((1+2)); m4", "echo ${x:-m1}; m2", "echo ${x:-$(m3)}", "f() { m4; }; f", "a=(m1 m2); m3", "! m1", "m1 | m2", "m1 \\\n  x", "echo \"a\\\nb\"; m2",
		"echo $'a\\'b'; m1", "echo \"'\"; m2; echo \"'\"", "echo \"${x:-'}\"; m3; echo \"'}\"", "m1 <<< x", "echo \"`m1 \\\"x\\\"`\"", "time m1", "echo a#b; m2", "[[ a =~ (b|c) ]]; m3", "echo @(a|b); m4", "echo {m1,m2}; m3", "x[0]=1; m4", "while m1; do :; done", "echo \"$(echo \"m1\")\"; m2", "(( 1 < 2 )) && m1", "echo ${#x} m1; m2", "echo \"$(case x in x) m1;; esac)\"", "echo $(# c)\nm2\n)", "let 1+1; m1", "echo ${x//\\}/b}; m2", "echo ${x/'/'/\"/\"}; m3", "echo \\\\\nm4", "m1 2>&1; m2", "echo <(m3)", "m1& m2", "m1;;m2", "echo \"a\\\\\"; m2 \"\"", "select x in; do m1; done",
	}
	pieces = []string{"\\\n", "\\\n", "\n", "\n", " ", "\t", "#", " #", " # c\\\n", "\\", "\\\\", "$", "(", ")", "`", "\"", "'", "E", "E\n", "\nE\n", "<<E\n", "<<\\E\n", "<<'E F'\nE F\n", "<<\"E\"\nE\n", "$'", "{", "}", ";", "&", "|", "!", "[[ ", " ]]", "${", "${x#", "}", "$((", "))", "=", "=(", "*", "~", "$#", "<", "m9", " m9", ";m9\n", "f()", "x", "0", "%", ",", "\\'", "\\\"", "[", "]", "@(", "-", "esac", " in ", "do ", "\\$", "$\"", "$(", "^", ":", "\v", "\u00a0", "é"}
)

// snippets are n texts that were put together and that the guard thinks it can read:
// all that it says of them is which programs it does not know.
func snippets(r *rand.Rand, n int, judge func(text string) Verdict) (texts []string, said []Verdict) {
	for len(texts) < n {
		text := wholes[r.IntN(len(wholes))]
		for range r.IntN(3) {
			text += []string{"\n", "; ", " && ", "\n\n", " ", "\\\n"}[r.IntN(6)] + wholes[r.IntN(len(wholes))]
		}
		for range 1 + r.IntN(4) {
			i := r.IntN(len(text) + 1)
			text = text[:i] + pieces[r.IntN(len(pieces))] + text[min(len(text), i+r.IntN(2)*r.IntN(3)):]
		}
		v := judge(text)
		if !slices.ContainsFunc(v.Parts, func(p Part) bool { return p.Rule != "unknown-program" }) {
			texts, said = append(texts, text), append(said, v)
		}
	}
	return texts, said
}

// trying gives each of the texts that it reads to a shell that finds no program, and
// says after each which words it took for one.
const trying = `PATH=/none; set -f; while IFS= read -r -d '' s; do ( eval "$s"; wait ) </dev/null >/dev/null; printf '\001' >&2; done`

// What a shell takes for a command the guard has seen as one, or the text is not
// allowed for another reason: bash itself is asked, with texts that do nothing.
func TestShellAndParserReadTheSame(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash to compare with")
	}
	n, seed := 60, uint64(1)
	if long() {
		n, seed = 4_000, rand.Uint64()
		t.Logf("seed %d", seed)
	}
	p := newProject(t)
	r := rand.New(rand.NewPCG(seed, 2))
	texts, said := snippets(r, n, p.judge)
	dir := t.TempDir()
	answersTo := func(texts ...string) []string {
		cmd := exec.Command(bash, "-c", trying)
		cmd.Dir = dir
		cmd.Env = []string{"LC_ALL=C"}
		cmd.Stdin = strings.NewReader(strings.Join(texts, "\x00") + "\x00")
		var heard bytes.Buffer
		cmd.Stderr = &heard
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		answers := strings.Split(heard.String(), "\x01")
		if len(answers) != len(texts)+1 {
			t.Fatalf("%d answers to %d texts", len(answers)-1, len(texts))
		}
		return answers
	}
	answers := answersTo(texts...)
	notFound := regexp.MustCompile(`(?m): (m[0-9]): command not found$`)
	ran := 0
	for i, text := range texts {
		var words []string
		for _, m := range notFound.FindAllStringSubmatch(answers[i], -1) {
			words = append(words, m[1])
		}
		if len(words) == 0 {
			continue
		}
		ran++
		for _, w := range words {
			seen := slices.ContainsFunc(said[i].Parts, func(p Part) bool { return p.Word == w })
			// No shell waits for what stands in <(…): it may be heard after the texts that follow.
			if !seen && strings.Contains(answersTo(text)[0], ": "+w+": ") {
				t.Errorf("%s: bash runs %s, which the guard has not seen", strconv.Quote(text), w)
			}
		}
	}
	t.Logf("%d of %d texts ran something", ran, n)
	if ran < n/3 {
		t.Errorf("only %d of %d texts ran anything", ran, n)
	}
}

// The same for what is given to dash, which knows POSIX only and is /bin/sh on many
// systems, and for zsh: each reads some of bash's own forms otherwise.
func TestOtherShellsAndParserReadTheSame(t *testing.T) {
	for _, shell := range []struct{ name, not string }{{"dash", `(?m): (m[0-9]): not found$`}, {"zsh", `(?m): command not found: (m[0-9])$`}} {
		t.Run(shell.name, func(t *testing.T) {
			program, err := exec.LookPath(shell.name)
			if err != nil {
				t.Skipf("there is no %s to compare with", shell.name)
			}
			n, seed := 60, uint64(1)
			if long() {
				n, seed = 4_000, rand.Uint64()
				t.Logf("seed %d", seed)
			}
			p := newProject(t)
			texts, said := snippets(rand.New(rand.NewPCG(seed, 3)), n, func(text string) Verdict { return p.judge(shell.name + " -c " + quote(text)) })
			notFound := regexp.MustCompile(shell.not)
			ran := 0
			for i, text := range texts {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				cmd := exec.CommandContext(ctx, program, "-c", "PATH=/none; set -f; eval \"$1\"", "sh", text)
				cmd.Dir, cmd.Env = t.TempDir(), []string{"LC_ALL=C"}
				heard, _ := cmd.CombinedOutput() // that nothing is found is what it is to say
				cancel()
				for _, m := range notFound.FindAllStringSubmatch(string(heard), -1) {
					ran++
					if !slices.ContainsFunc(said[i].Parts, func(p Part) bool { return p.Word == m[1] }) {
						t.Errorf("%s: %s runs %s, which the guard has not seen", strconv.Quote(text), shell.name, m[1])
					}
				}
			}
			if ran < n/3 {
				t.Errorf("only %d commands were run by %d texts", ran, n)
			}
		})
	}
}
