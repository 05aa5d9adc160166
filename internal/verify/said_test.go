package verify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// heard is what a check said that printed the text, in pieces.
func heard(text string) *said {
	var s scanner
	for len(text) > 0 {
		n := min(len(text), 7)
		s.add([]byte(text[:n]))
		text = text[n:]
	}
	return s.end()
}

// news is what is new in a text, in whatever way it is told.
func news(now, base string) string {
	names, lines, why := heard(now).news(heard(base))
	return strings.Join(append(append(names, lines...), why), "\n")
}

// What real programs print (testdata/said; of those that begin with "form" the form only
// was written down): in each directory base.txt is a run with a failure. Whatever else
// there is fails, too, with the same exit code. noise is the same failure at another
// place, with new tests that pass; fewer has less to say; all others have something new.
func TestFailedInTheSameWay(t *testing.T) {
	dirs, err := filepath.Glob("testdata/said/*")
	if err != nil || len(dirs) < 10 {
		t.Fatal(dirs, err)
	}
	read := func(name string) string {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, dir := range dirs {
		base := read(filepath.Join(dir, "base.txt"))
		if got := news(base, base); got != "" {
			t.Errorf("%s: the very same is new: %s", dir, got)
		}
		runs, _ := filepath.Glob(filepath.Join(dir, "*.txt"))
		for _, run := range runs {
			name, got := strings.TrimSuffix(filepath.Base(run), ".txt"), news(read(run), base)
			switch name {
			case "base":
			case "noise", "fewer":
				if got != "" {
					t.Errorf("%s: it is held against the work: %s", run, got)
				}
			default:
				if got == "" {
					t.Errorf("%s: it is excused", run)
				}
			}
			// The other way round: what is mended is not new.
			if back := news(base, read(run)); name == "new" && back != "" {
				t.Errorf("%s: less than it is new: %s", run, back)
			}
		}
	}
}

// Lines that differ from run to run are not new, and those that look alike are told apart.
func TestWhatIsNewInALine(t *testing.T) {
	for _, tc := range []struct{ base, same, other string }{
		{"rspec ./a_spec.rb:5 # A adds\n  1) A adds\n     Failure/Error: expect(1).to eq(2)\nFinished in 0.01 seconds (files took 0.1 seconds to load)\n3 examples, 1 failure\nRandomized with seed 12345\n",
			"  1) A adds\n     Failure/Error: expect(1).to eq(2)\nFinished in 1 minute 2 seconds\n4 examples, 1 failure\nRandomized with seed 777\nrspec ./a_spec.rb:9 # A adds\n",
			"  1) A adds\n     Failure/Error: expect(1).to eq(2)\n  2) A takes away\n     Failure/Error: expect(1).to eq(2)\n4 examples, 2 failures\n"},
		{"1 example, 1 failure\n  1) A adds\n     Failure/Error: no\n", "", "An error occurred while loading ./b_spec.rb.\nSyntaxError:\n  b_spec.rb:3: syntax error\n0 examples, 0 failures, 1 error occurred outside of examples\n"},
		{"[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.04 s <<< FAILURE! -- in x.AppTest\n[ERROR] x.AppTest.testA -- Time elapsed: 0.01 s <<< FAILURE!\nTests run: 2, Failures: 1, Errors: 0\n[INFO] BUILD FAILURE\n[INFO] Finished at: 2026-11-30T08:10:25Z\n",
			"[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 1.2 s <<< FAILURE! -- in x.AppTest\n[ERROR] x.AppTest.testA -- Time elapsed: 1 s <<< FAILURE!\nTests run: 3, Failures: 1, Errors: 0\n[INFO] BUILD FAILURE\n",
			"[ERROR] x.AppTest.testA -- Time elapsed: 0.01 s <<< FAILURE!\n[ERROR] x.AppTest.testB -- Time elapsed: 0.01 s <<< FAILURE!\nTests run: 3, Failures: 2, Errors: 0\n[INFO] BUILD FAILURE\n"},
		{"[ERROR] x.AppTest.testA -- Time elapsed: 0.01 s <<< FAILURE!\n[INFO] BUILD FAILURE\n", "", "[ERROR] COMPILATION ERROR : \n[ERROR] /w/App.java:[3,5] cannot find symbol\n[INFO] BUILD FAILURE\n"},
		{"F401 [*] `os` imported but unused\n --> a.py:1:8\n  |\n1 | import os\n  |        ^^\nFound 1 error.\n",
			"F401 [*] `os` imported but unused\n --> a.py:9:8\n  |\n9 | import os, errors\n  |        ^^\nFound 1 error.\n",
			"F401 [*] `os` imported but unused\n --> a.py:1:8\nF401 [*] `os` imported but unused\n --> b.py:1:8\nFound 2 errors.\n"},
		{"a.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.\n", "a.py:3:8: F401 [*] `os` imported but unused\nFound 1 error.\n", "a.py:1:8: F401 [*] `os` imported but unused\na.py:3:8: F811 redefined\nFound 2 errors.\n"},
		{"a.py:1: error: Incompatible types in assignment  [assignment]\nb.py:2: error: No\nFound 2 errors in 2 files (checked 3 source files)\n",
			"a.py:7: error: Incompatible types in assignment  [assignment]\nFound 1 error in 1 file (checked 4 source files)\n",
			"a.py:1: error: Incompatible types in assignment  [assignment]\na.py:2: error: Incompatible types in assignment  [assignment]\n"},
		{"a.go:3:6: func `x` is unused (unused)\n1 issues:\n* unused: 1\n", "a.go:5:6: func `x` is unused (unused)\n1 issues:\n* unused: 1\n", "a.go:3:6: func `x` is unused (unused)\nb.go:3:6: func `y` is unused (unused)\n2 issues:\n* unused: 2\n"},
		{"a.go\n", "", "a.go\nb.go\n"}, // gofmt -l
		{"would reformat a.py\n1 file would be reformatted, 2 files would be left unchanged.\n", // black
			"would reformat a.py\n1 file would be reformatted, 1 file would be left unchanged.\n", "would reformat a.py\nwould reformat b.py\n2 files would be reformatted.\n"},
		{"[warn] src/a.js\n", "", "[warn] src/a.js\n[warn] src/b.js\n"}, // prettier
		{"not ok 1 - a\n", "ok 1 - cannot fail\nnot ok 2 - a\n", "Bail out! cannot load\n"},
		{"not ok 1 - a\n", "not ok 1 - a\nnot ok 2 - c # TODO later\n  ---\n  error: 'not yet'\n  ...\nnot ok 3 - d # skip no network\n", "not ok 1 - a\nnot ok 2 - c # TODO later\n  ---\n  error: 'not yet'\n  ...\nnot ok 3 - mends the #todo list\n"},
		{"1..2\nnot ok 1 - a\n", "", "not ok 1 - a\nnot ok 2 - c # TODO later\n  ---\nnot ok 3 - e\n"},
		{"error: old\n", "not ok 1 - c # TODO\nerror: old\n", "not ok 1 - c # TODO\nerror: new\n"},
		{"FAIL: test_a (t.T.test_a)\nAssertionError: 1 != 2\nFAILED (failures=1)\n", "FAIL: test_a (t.T.test_a)\nAssertionError: 7 != 2\nFAILED (failures=1)\n", "FAIL: test_a (t.T.test_a)\nERROR: b (unittest.loader._FailedTest.b)\nFAILED (failures=1, errors=1)\n"},
		{"AppTest > testA FAILED\n    java.lang.AssertionError\n2 tests completed, 1 failed\n", "AppTest > testA FAILED\n    java.lang.AssertionError: x\n3 tests completed, 1 failed\n", "> Task :compileJava FAILED\n/w/App.java:3: error: cannot find symbol\n"},
		{"error: cannot connect to 127.0.0.1:41234 (pid 4711, try 3)\n", "error: cannot connect to 127.0.0.1:39999 (pid 9, try 1)\nerror: cannot connect to 127.0.0.1:39999 (pid 9, try 2)\n", "error: cannot connect\n"},
		{"error in /tmp/tmp.aBcDeF/x after 1.2s: 0xc000123456 (request 9f86d081884c7d65)\n", "error in /tmp/tmp.Zyxwvu/x after 310ms: 0xc0009abcde (request 0b22f0a1d2c3e4f5)\n", "error in src/x after 1.2s: (request 9f86d081884c7d65)\n"},
		{"Nov 30 08:10:25 error: no\nMon, 30 Nov 2026 error: no such thing\n", "Dec 1 09:11:26 error: no\nTue, 1 Dec 2026 error: no such thing\n", "Nov 30 08:10:25 error: yes\n"},
		{"error: b\nerror: a\n", "error: a\nerror: b\n", "error: a\nerror: b\nerror: c\n"},
		{"error: old\n12 passed\n", "warning: unused x\nerror: old\n✓ returns an error for bad input\n--- PASS: TestError (0.1s)\nok 5 - fails well\n13 passed\n", "Segmentation fault\n"},
		{"test_b1 error\n", "", "test_b2 error\n"},
		{"a.ts(1,2): error TS2304: Cannot find name 'x'.\n", "a.ts(9,9): error TS2304: Cannot find name 'x'.\n", "a.ts(1,2): error TS2322: Cannot find name 'x'.\n"},
		{"", "", "x\n"},
		{"x\n", "", "\n"},
		{"\x1b[31merror\x1b[0m: red\n", "error: red\n", "\x1b[31merror\x1b[0m: blue\n"},
	} {
		if tc.same == "" {
			tc.same = tc.base
		}
		if got := news(tc.same, tc.base); got != "" {
			t.Errorf("it is new: %q\nthen:\n%s\nnow:\n%s", got, tc.base, tc.same)
		}
		if got := news(tc.other, tc.base); got == "" {
			t.Errorf("nothing is new; then:\n%s\nnow:\n%s", tc.base, tc.other)
		}
	}
	long := strings.Repeat("error: x\n", 10)
	for i := range maxTelling + 1 {
		long += "error: " + strings.Repeat("ab", i%7) + string(rune('a'+i%26)) + strings.Repeat("x", i/26) + "\n"
	}
	for _, text := range []string{strings.Repeat("error: "+strings.Repeat("x", 100)+"\nerror: y\n", maxScan/100), long} {
		if got := news(text, text); !strings.Contains(got, "too much for being compared") {
			t.Errorf("%d bytes: %q", len(text), got)
		}
	}
}

// What was found at the base counts as long as nothing new is said, also from its file.
func TestOnlyWhatFailedBeforeIsExcused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sh("tool", "cat out; exit $(cat exit)"), sh("place", `echo "error: in $PWD/x, $TMPDIR/y"; f=$(mktemp); echo "error: $f: bad"; d=$(mktemp -d); echo "$d/b001/x.o: undefined reference to foo"; exit 1`))
	w.put("out", "error: old\n")
	w.put("exit", "101")
	base := w.commit()
	for _, tc := range []struct{ out, exit, want string }{
		{"error: old\n", "101", ""},
		{"error: old\n", "101", ""}, // as it is kept
		{"error: old\nerror: new\n", "101", "did not say there: error: new"},
		{"error: could not compile `shop`\n", "101", "did not say there: error: could not compile"},
		{"error: old\n", "2", ""},
		{"error: old\n", "127", "could not be started (exit code 127), which it did not at the base"},
		{"error: old\n", "102", "it failed at the base, too, but with exit code 101"},
		{"error: old\n", "124", "ran out of its time (exit code 124), which it did not at the base"},
		{"error: old\n", "139", "ended by a signal (exit code 139), which it did not at the base"},
		{"error: old\n", "137", "ended by a signal (exit code 137), which it did not at the base"},
		{"error: old\nok\n", "101", ""},
	} {
		w.put("out", tc.out)
		w.put("exit", tc.exit)
		w.put("made", tc.out)
		r := w.run(Request{Trigger: Manual, Base: base, Regressions: true})
		if got := r.Issues[0].Message; (r.Status == Passed) != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%q, exit code %s: %s %s", tc.out, tc.exit, r.Status, got)
		}
		if r.Checks[1].AtBase != Failed || !r.Checks[1].Excused {
			t.Errorf("the place of its copy is held against the work: %+v", r.Checks[1])
		}
	}
}

// A shell says by its exit code that a signal ended what it ran.
func TestSignalsInExitCodes(t *testing.T) {
	for _, tc := range []struct {
		exit int
		out  string
		want bool
	}{
		{1, "", false}, {2, "", false}, {101, "", false}, {128, "", false}, {255, "", false},
		{130, "", true}, {132, "", true}, {134, "", true}, {135, "", true}, {136, "", true}, {137, "", true}, {139, "", true}, {143, "", true}, {159, "", true},
		{141, "", false},                // a reader that ended first
		{137, "  137 failing\n", false}, // mocha's exit code is their number
		{137, "  12 failing\n", true},
	} {
		c := CheckResult{Exit: tc.exit, said: heard(tc.out)}
		if got := c.ended(); strings.Contains(got, "signal") != tc.want {
			t.Errorf("exit code %d, %q: %q", tc.exit, tc.out, got)
		}
	}
}

// What stands on lines around one that complains is a part of it, as long as it is none
// of what differs from run to run or with other work.
func TestWhatIsNewAroundALine(t *testing.T) {
	for _, tc := range []struct{ base, same, other string }{
		{"/src/a.js\n  3:5  error  \"x\" is never used  no-unused-vars\n\n✖ 1 problem (1 error, 0 warnings)\n",
			"/src/c.js\n  1:1  warning  \"y\" is long  max-len\n\n/src/a.js\n  9:7  error  \"x\" is never used  no-unused-vars\n\n✖ 2 problems (1 error, 1 warning)\n",
			"/src/b.js\n  3:5  error  \"x\" is never used  no-unused-vars\n\n✖ 1 problem (1 error, 0 warnings)\n"},
		{"a.js\n  1:1  error  x  r\n  2:1  error  x  r\n\nb.js\n  1:1  error  x  r\n", "b.js\n  4:1  error  x  r\n\na.js\n  2:1  error  x  r\n", "a.js\n  1:1  error  x  r\n\nb.js\n  1:1  error  x  r\n  3:1  error  x  r\n"},
		{"a.css\n 1:1  ✖  Unexpected empty block  block-no-empty\n", "a.css\n 7:1  ✖  Unexpected empty block  block-no-empty\n", "b.css\n 1:1  ✖  Unexpected empty block  block-no-empty\n"},
		{"a.yaml\n  1:1       error    trailing spaces  (trailing-spaces)\n", "", "b.yaml\n  1:1       error    trailing spaces  (trailing-spaces)\n"},
		{"A.java:3: error: cannot find symbol\n    foo();\n    ^\n  symbol:   method foo()\n  location: class A\n1 error\n",
			"A.java:9: error: cannot find symbol\n        if (foo()) return;\n            ^\n  symbol:   method foo()\n  location: class A\n1 error\n",
			"A.java:3: error: cannot find symbol\n    foo();\n    ^\n  symbol:   method bar()\n  location: class A\n1 error\n"},
		{"error[E0308]: mismatched types\n --> src/main.rs:2:18\n  |\n2 |     let a: u8 = \"x\";\n  |            --   ^^^ expected `u8`, found `&str`\n  |\n  = help: use one of: b\n",
			"error[E0308]: mismatched types\n  --> src/main.rs:12:18\n   |\n12 |     let other: u8 = \"y\";\n   |                --   ^^^ expected `u8`, found `&str`\n   |\n   = help: use one of: b, c\n",
			"error[E0308]: mismatched types\n --> src/main.rs:2:18\n  |\n2 |     let b: u8 = 1.0;\n  |            --   ^^^ expected `u8`, found floating-point number\n"},
		{"a.hs:3:5: error:\n    Variable not in scope: foo\n  |\n3 |     foo\n  |     ^^^\n", "a.hs:8:2: error:\n    Variable not in scope: foo\n    Suggested fix: use bar\n  |\n8 |  1 + foo\n  |      ^^^\n", "a.hs:3:5: error:\n    Variable not in scope: bar\n"},
		{"Undefined symbols for architecture arm64:\n  \"_foo\", referenced from:\n      _main in a.o\nld: symbol(s) not found for architecture arm64\n", "", "Undefined symbols for architecture arm64:\n  \"_bar\", referenced from:\n      _main in a.o\nld: symbol(s) not found for architecture arm64\n"},
		{"a.go:3:2: Error return value is not checked (errcheck)\n\tfoo()\n\t^\n", "a.go:8:3: Error return value is not checked (errcheck)\n\t\tfoo(1)\n\t\t^\n", "a.go:8:2: Error return value is not checked (errcheck)\n\tbar()\n\t^\n"},
		{"File \"a.ml\", line 3, characters 4-7:\n3 |     foo\n        ^^^\nError: Unbound value foo\n", "File \"a.ml\", line 9, characters 1-4:\n9 | foo\n    ^^^\nError: Unbound value foo\n", "File \"b.ml\", line 3, characters 4-7:\n3 |     foo\n        ^^^\nError: Unbound value foo\n"},
		{"error: undefined variable \"x\"\n│\n3 │   x\n│   ^\n│\n└─ lib/a.ex:3:3: A.f/0\n", "error: undefined variable \"x\"\n│\n4 │   x + 1\n│   ^\n│\n└─ lib/a.ex:4:3: A.f/0\n", "error: undefined variable \"x\"\n│\n3 │   x\n│   ^\n│\n└─ lib/b.ex:3:3: A.f/0\n"},
		{"TypeError: x is not a function\n    at Array.map (node:internal:3:1)\n    at f (/x/a.js:3:5)\n    at main (/x/main.js:9:1)\n", "TypeError: x is not a function\n    at h (/x/a.js:30:5)\n    at other (/x/other.js:9:1)\n", "TypeError: x is not a function\n    at g (/x/b.js:3:5)\n"},
		{"Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    go(x)\n    ^^^^^\n  File \"/usr/lib/python3/json/a.py\", line 3, in loads\nAssertionError\n", "Traceback (most recent call last):\n  File \"a.py\", line 9, in f\n    go(x, y)\n    ^^^^^^^^\nAssertionError\n", "Traceback (most recent call last):\n  File \"b.py\", line 3, in f\n    go(x)\nAssertionError\n"},
		{"error: 2 of them did not answer\n  after 1.2s, pid 41, /tmp/tmp.a1/x\n✓ loads\n", "error: 2 of them did not answer\n  after 310ms, pid 9, /tmp/tmp.b2/x\n  ✓ loads\n  ✓ is new\n  warning: old\nnot a part of it\n", "error: 2 of them did not answer\n  connection refused\n"},
	} {
		if tc.same == "" {
			tc.same = tc.base
		}
		if got := news(tc.same, tc.base); got != "" {
			t.Errorf("it is new: %q\nthen:\n%s\nnow:\n%s", got, tc.base, tc.same)
		}
		if got := news(tc.other, tc.base); got == "" {
			t.Errorf("nothing is new; then:\n%s\nnow:\n%s", tc.base, tc.other)
		}
	}
}

// Where tests are named the names decide about tests, and about nothing that ran beside
// them. What tests print is theirs.
func TestWhatIsNewBesideTests(t *testing.T) {
	gotest := "--- FAIL: TestA (0.01s)\n    a_test.go:3: bad\nFAIL\nFAIL\tx/a\t0.012s\n"
	jest := "FAIL ./a.test.js\n  ● A › does x\n\n    expect(received).toBe(expected)\n\n      at Object.x (a.test.js:3:5)\n\nTests:       1 failed, 1 total\n"
	pytest := "=== FAILURES ===\n___ test_b ___\nE   assert 1 == 2\ntests/test_a.py:5: AssertionError\n=== short test summary info ===\nFAILED tests/test_a.py::test_b - assert 1 == 2\n=== 1 failed, 2 passed in 0.03s ===\n"
	vet := "# x/b\nb/b.go:3:2: fmt.Printf format %d has arg of wrong type\n"
	tsc := "src/a.ts(3,5): error TS2304: Cannot find name 'foo'.\n"
	rspec := "Failures:\n\n  1) A does x\n     Failure/Error: expect(1).to eq 2\nFinished in 0.01 seconds\n2 examples, 1 failure\n\nFailed examples:\n\nrspec ./spec/a_spec.rb:3 # A does x\n"
	for _, tc := range []struct {
		base, now string
		blocks    bool
	}{
		{gotest, gotest + vet, true},
		{rspec, strings.Replace(rspec, ":3", ":7", 1), false},
		{rspec, strings.Replace(rspec, "a_spec", "b_spec", 1), true},
		{rspec, "An error occurred while loading ./spec/b_spec.rb.\n" + rspec, true},
		{gotest + vet, strings.ReplaceAll(vet, ":3:", ":9:") + gotest, false},
		{gotest + vet, gotest + vet + "b/b.go:5:2: fmt.Printf format %d has arg of wrong type\n", true},
		{gotest + vet, gotest, false},
		{gotest, gotest + "make: *** [Makefile:5: lint] Error 1\n", true},
		{gotest + "make: *** [Makefile:5: test] Error 1\n", gotest + "make: *** [Makefile:9: test] Error 2\n", false},
		{gotest, "2026/11/30 08:10:25 server.go:12: error: no such user\nerror: expected here\n/tmp/x1/a.go:3:2: undefined: y\nserver.go:12: error\n" + gotest, false},
		{gotest, "=== RUN   TestA\nb.go:3:2: undefined: y\n" + gotest, false}, // a test of a compiler
		{gotest, "=== RUN   TestA\n" + gotest + vet, true},
		{gotest, gotest + "b/b.c:3:2: warning: unused variable error\nb/b.c:3:2: note: error was here\n", false},
		{jest, jest + tsc, true},
		{jest + tsc, jest + strings.Replace(tsc, "3,5", "4,6", 1), false},
		{jest + tsc, jest + strings.Replace(tsc, "src/a", "src/b", 1), true},
		{jest, strings.Replace(jest, "toBe(expected)", "toBe(expected) // error\n    src/a.ts:3:5: error: is not", 1), false},
		{jest, jest + "\n/src/b.js\n  3:5  error  'x' is not defined  no-undef\n", true},
		{jest + "\n/src/b.js\n  3:5  error  'x' is not defined  no-undef\n", jest + "\n/src/b.js\n  9:5  error  'x' is not defined  no-undef\n  9:9  warning  long  max-len\n", false},
		{pytest, pytest + "src/a.py:3:1: E999 SyntaxError\n", true},
		{pytest, pytest + "Segmentation fault (core dumped)\n", true},
		{pytest, pytest + "script: line 3:  4711 Segmentation fault      python -m pytest\n", true},
		{pytest, pytest + "F401 `os` imported but unused\n --> src/a.py:1:8\n", true},
		{pytest, strings.Replace(pytest, "E   assert", "--- Captured stdout call ---\nx.py:3:1: E999 SyntaxError\nSegmentation fault (core dumped)\nE   assert", 1), false},
		{"a.js:3:5 lint/noDebugger ━━━━\n\n  × This is unexpected.\n", "b.js:3:5 lint/noDebugger ━━━━\n\n  × This is unexpected.\n", true},
	} {
		if got := news(tc.now, tc.base); (got != "") != tc.blocks {
			t.Errorf("new: %q, and it should be: %v; then:\n%s\nnow:\n%s", got, tc.blocks, tc.base, tc.now)
		}
	}
}

// Numbers that are the complaint itself: more of it is new, and other numbers are not.
func TestWorseNumbers(t *testing.T) {
	pytest := "FAILED t.py::test_b - assert\n1 failed, 2 passed in 0.03s\n"
	for _, tc := range []struct {
		base, now string
		blocks    bool
	}{
		{"12 problems\n", "13 problems\n", true},
		{"12 problems\n", "9 problems\n", false},
		{"12 problems found in 40 files\n", "12 problems found in 52 files\n", false},
		{"error: bad\n3 problems fixed\n", "error: bad\n9 problems fixed\n", false},
		{"✖ 2 problems (1 error, 1 warning)\n", "✖ 3 problems (1 error, 2 warnings)\n", false},
		{"3 files differ\n", "9 files differ\n", true},
		{"9 files differ, 40 checked\n", "9 files differ, 52 checked\n", false},
		{"1 file would be reformatted, 2 files would be left unchanged.\n", "1 file would be reformatted, 7 files would be left unchanged.\n", false},
		{"1 file would be reformatted, 2 files would be left unchanged.\n", "2 files would be reformatted, 1 file would be left unchanged.\n", true},
		{"too many\n3 warnings\n", "too many\n5 warnings\n", true},
		{"error: old\n3 warnings\n", "error: old\n5 warnings\n", false},
		{"Dockerfile:3 DL3008 warning: Pin versions\n", "Dockerfile:5 DL3008 warning: Pin versions\n", false},
		{"error: GET /a returned 404\n", "error: GET /a returned 500\n", true},
		{"error: GET /a returned 404\n", "error: GET /a returned 404\n", false},
		{"error: GET /a: HTTP 404 after 12 ms\n", "error: GET /a: HTTP 404 after 31 ms\n", false},
		{"error: status code: 404\n", "error: status code: 401\n", true},
		{"error: GET /a returned 503\n", "error: GET /a returned 502\n", false},
		{"error: it returned 404 rows\n", "error: it returned 417 rows\n", false},
		{"FAIL Required test coverage of 90% not reached. Total coverage: 85.00%\n", "FAIL Required test coverage of 90% not reached. Total coverage: 60.00%\n", true},
		{"FAIL Required test coverage of 90% not reached. Total coverage: 85.00%\n", "FAIL Required test coverage of 90% not reached. Total coverage: 84.95%\n", false},
		{"FAIL Required test coverage of 90% not reached. Total coverage: 85.00%\n", "FAIL Required test coverage of 90% not reached. Total coverage: 88.10%\n", false},
		{"Coverage failure: total of 85 is less than fail-under=90\n", "Coverage failure: total of 80 is less than fail-under=90\n", true},
		{"ERROR: Coverage for lines (85.1%) does not meet global threshold (90%)\nERROR: Coverage for branches (50%) does not meet global threshold (90%)\n", "ERROR: Coverage for lines (80%) does not meet global threshold (90%)\nERROR: Coverage for branches (50%) does not meet global threshold (90%)\n", true},
		{pytest + "ERROR: Coverage failure: total of 85 is less than fail-under=90\n", pytest + "ERROR: Coverage failure: total of 70 is less than fail-under=90\n", true},
		{pytest + "TOTAL coverage 85%\n", pytest + "TOTAL coverage 70%\n", false}, // it does not complain
		// How many of all.
		{"1/10 tests failed\n", "2/10 tests failed\n", true},
		{"1/10 tests failed\n", "1/12 tests failed\n", false},
		{"3 of 10 checks failed\n", "4 out of 12 checks failed\n", true},
		{"3 of 10 checks failed\n", "2 of 10 checks failed\n", false},
		{"Failed: 1/10\n", "Failed: 2/10\n", true},
		{"Failed: 1/10\n", "Failed: 1/14\n", false},
		{"9/10 tests passed\n", "8/10 tests passed\n", true},
		{"9/10 tests passed\n", "11/12 passed\n", false},
		{"1/10 passed\n5/10 passed\n9/10 passed\n", "1/14 passed\n6/14 passed\n13/14 passed\n", false}, // on the way
		{"error: old\n9/10 passed, 1 skipped\n", "error: old\n8/10 passed, 2 skipped\n", false},
		{"error: old\n10/10 passed\n", "error: old\n12/12 passed\n", false},
		{"3/10 Test #3: foo ....***Failed  0.01 sec\n", "7/10 Test #7: foo ....***Failed  0.02 sec\n", false},
		{"[3/10] foo: failed\n", "[4/11] foo: failed\n", false},
		// How a program ended, by the line of who started it.
		{"make: *** [Makefile:3: test] Error 1\n", "make: *** [Makefile:9: test] Error 2\n", true},
		{"make: *** [Makefile:3: test] Error 3\n", "make: *** [Makefile:3: test] Error 2\n", false},
		{"gmake[1]: *** [test] Error 1\n", "gmake[2]: *** [test] Error 1\n", false},
		{"error: build.sh failed with exit code 1\n", "error: build.sh failed with exit code 3\n", true},
		{"exit status 1\n", "exit status 1\n", false},
		{"error: it exited with status 1 after 3 s\n", "error: it exited with status 1 after 9 s\n", false},
		{pytest + "make: *** [test] Error 1\n", pytest + "make: *** [test] Error 2\n", false}, // the names tell
		// What a test expects stands in its source; what it got may be by chance.
		{"AssertionError: expected 3 to equal 4\n", "AssertionError: expected 3 to equal 5\n", true},
		{"AssertionError: expected 3 to equal 4\n", "AssertionError: expected 7 to equal 4\n", false},
		{"error: expected 4, got 3\n", "error: expected 5, got 3\n", true},
		{"error: expected 4, got 3\n", "error: expected 4, got 2\n", false},
		{"error: got 3, want 4\n", "error: got 3, want -4\n", true},
		{"error: got 3, want 4\n", "error: got 8, want 4\n", false},
		{"AssertionFailedError: expected: <4> but was: <3>\n", "AssertionFailedError: expected: <5> but was: <3>\n", true},
		{"AssertionFailedError: expected: <4> but was: <3>\n", "AssertionFailedError: expected: <4> but was: <1>\n", false},
		{"error: expected 12 ms, took 31 ms\n", "error: expected 14 ms, took 29 ms\n", false},
		{"error: expected 12ms, took 31ms\n", "error: expected 14ms, took 29ms\n", false},
		{"error: expected 1796040000, got 0\n", "error: expected 1796041234, got 0\n", false}, // a time, or drawn
		{"error: expected 12:31:07, got none\n", "error: expected 12:33:09, got none\n", false},
		{"error: expected 17 to be less than 12\n", "error: expected 19 to be less than 12\n", false},
		{"error: seed 4711: failed after 3 tries\n", "error: seed 17: failed after 5 tries\n", false},
	} {
		if got := news(tc.now, tc.base); (got != "") != tc.blocks {
			t.Errorf("new: %q, and it should be: %v; then:\n%s\nnow:\n%s", got, tc.blocks, tc.base, tc.now)
		}
	}
}
