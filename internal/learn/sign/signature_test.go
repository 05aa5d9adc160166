package sign

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
			s := Of(c.tool, c.target, out, nil)
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

// A signature does not depend on paths, numbers and ids, whatever the line is.
func FuzzSign(f *testing.F) {
	f.Add("Error: cannot open /tmp/x: 12 of 'q'")
	f.Add("「注文」が見つかりません 123")
	f.Add("\x1b[31mfatal\x1b[0m: x\r\n")
	f.Fuzz(func(t *testing.T, out string) {
		s := Of("shell", "make", out, nil)
		if s.Empty() || len(s.Shown) > MaxShown {
			t.Fatalf("%+v", s)
		}
		if again := Of("shell", "make", out, nil); again != s {
			t.Fatal("two signatures of one output")
		}
	})
}

// The targets that calls are matched by.
func TestTargets(t *testing.T) {
	for _, c := range [][2]string{
		{"go test ./internal/x", "go test ./internal/x"},
		{"cd /w/shop && go test -run TestA -count=1 ./internal/x 2>&1 | tail -5", "go test ./internal/x"},
		{"FOO=1 timeout 60 go test -v /w/shop/internal/x", "go test internal/x"},
		{"npm run build -- --watch", "npm run build"},
		{"npx tsc --noEmit -p tsconfig.json", "tsc"},
		{"python3 -m pytest -k total tests/test_cart.py", "pytest tests/test_cart.py"},
		{"uv run pytest tests", "pytest tests"},
		{"sudo apt-get install -y jq", "apt-get install jq"},
		{"git commit -m 'a message; with && and | in it'", "git commit"},
		{"git -C /w/shop push origin main", "git push origin"},
		{"docker compose -f dev.yaml up -d db", "docker compose up db"},
		{"bash -lc 'cd /w/shop && make lint'", "make lint"},
		{"make -j8", "make"},
		{"echo done", "echo done"},
		{"cat <<'EOF' > x.txt\nnpm test\nEOF", "cat"},
		{"./script/test --long", "./script/test"},
		{"export A=1; cargo build --release", "cargo build"},
		{"kill 12345", "kill <n>"},
		{"", ""},
		{"   &&  | ; ", ""},
	} {
		if got := Target(c[0], "/w/shop"); got != c[1] {
			t.Errorf("%q: %q, want %q", c[0], got, c[1])
		}
	}
}

// A correction is told from what only sounds like one, in English and Japanese.
func TestCorrections(t *testing.T) {
	for _, yes := range []string{
		"no, use pnpm", "No. Put it into internal/cart.", "nope, that's the old API", "Wrong file!", "That's not what I asked for.", "Don't edit the lock file", "do not use any here",
		"use pnpm instead of npm", "Please use tabs, not spaces", "Actually, keep the old name", "I said no mocks", "Why did you delete the test?", "revert that", "stop adding comments",
		"Never push to main", "you forgot the tests", "違う、pnpmを使って", "違います。テストが先です", "npmじゃなくてpnpmを使って", "コメントを書かないで", "勝手にコミットしないでください", "いや、そのままでいい",
		"元に戻して", "それは間違っています。JSON ではなく YAML です", "It still fails with the same error.",
	} {
		if _, strength := Correction(yes); strength == 0 {
			t.Errorf("not taken for a correction: %q", yes)
		}
	}
	for _, no := range []string{
		"No problem, go on", "no worries!", "Add a page that says no to robots", "Don't forget to run the tests", "Don't worry about the lint", "Is there no way to do that?", "If it doesn't work, stop",
		"Stop the server and start it again", "Use the new API to load carts", "Write a test", "I don't know why it fails, look at it", "not sure whether that helps", "What is wrong with the cart?",
		"Why does this not compile?", "```\nno, this is code\n```\nExplain it", "> no, use pnpm\nWhat did they mean?", "間違いないか確認して", "テストを書いて", "違いを説明して", "どうすればいい？", "なぜ失敗したの？", "",
	} {
		if s, strength := Correction(no); strength > 0 {
			t.Errorf("taken for a correction (%v): %q", strength, s)
		}
	}
}

// Of a correction that only says no, what should be instead is kept with it.
func TestCorrectionKeepsItsPoint(t *testing.T) {
	for _, c := range [][2]string{
		{"No, not npm. We use pnpm in this repository.", "No, not npm. We use pnpm in this repository."},
		{"No.\nUse pnpm.", "No. Use pnpm."},
		{"Wrong! Nope. The port is 6543. And then deploy it.", "Wrong! Nope. The port is 6543."},
		{"違う。pnpmを使って。", "違う。pnpmを使って。"},
		{"違います。テストが先です。", "違います。テストが先です。"},
		{"違う、pnpmを使って。次にテストを実行", "違う、pnpmを使って。"},
		{"No, don't touch the migrations. Run the tests again.", "No, don't touch the migrations."},
		{"No, don't use npm. Use pnpm.", "No, don't use npm. Use pnpm."},
		{"no, use pnpm. Then fix the login page.", "no, use pnpm."},
		{"No. Why would you do that?", "No."},
		{"That's not what I asked for. The file is internal/cart.go.", "That's not what I asked for. The file is internal/cart.go."},
	} {
		if got, strength := Correction(c[0]); got != c[1] || strength == 0 {
			t.Errorf("%q: %q (%v), want %q", c[0], got, strength, c[1])
		}
	}
	long := "No, not npm. We use " + strings.Repeat("pnpm ", 60) + "."
	if got, _ := Correction(long); len(got) > 240+len("…") {
		t.Errorf("%d bytes are kept", len(got))
	}
}
