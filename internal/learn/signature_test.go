package learn

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden file of signatures")

// signCase is one failure, in one or more outputs that must come to the same.
type signCase struct {
	name, tool, target string
	outputs            []string
}

func signCases(t *testing.T) []signCase {
	t.Helper()
	b, err := os.ReadFile("testdata/signatures.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []signCase
	for block := range strings.SplitSeq("\n"+string(b), "\n=== ") {
		if strings.TrimSpace(block) == "" {
			continue
		}
		// a go test's own "=== RUN" begins a line, too
		head, body, _ := strings.Cut(block, "\n")
		f := strings.Split(head, " | ")
		if len(f) != 3 {
			out[len(out)-1].outputs[len(out[len(out)-1].outputs)-1] += "\n=== " + block
			continue
		}
		out = append(out, signCase{name: f[0], tool: f[1], target: f[2], outputs: strings.Split(body, "\n--- same\n")})
	}
	return out
}

// Each failure has one signature whatever its paths, numbers and quoted values
// are, and no two have the same. What the signature is made from stands in the
// golden file: look at its diff.
func TestSignatures(t *testing.T) {
	cases := signCases(t)
	if len(cases) < 60 {
		t.Fatalf("%d cases, fewer than 60: the file was not read as it is meant", len(cases))
	}
	var got strings.Builder
	seen := map[string]string{}
	for _, c := range cases {
		var first Signature
		for i, out := range c.outputs {
			s := Sign(c.tool, c.target, out, nil)
			if i == 0 {
				first = s
				fmt.Fprintf(&got, "%s | %s | %s\n", c.name, s.Family, s.Line)
				continue
			}
			if s.Key != first.Key {
				t.Errorf("%s: output %d has another signature:\n%s\n%s", c.name, i, first.Line, s.Line)
			}
		}
		if other, ok := seen[first.Key]; ok {
			t.Errorf("%s and %s have the same signature: %s", c.name, other, first.Line)
		}
		seen[first.Key] = c.name
		if !strings.HasPrefix(first.Exact, first.Key+"=") {
			t.Errorf("%s: the exact signature %q does not begin with the general one", c.name, first.Exact)
		}
	}
	const golden = "testdata/signatures.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the golden file says otherwise; run with -update and look at the diff\n%s", got.String())
	}
}
