package guard

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Whatever is large or deep is answered at once, and never with "allowed".
func TestBombs(t *testing.T) {
	p := newProject(t)
	n := 40_000
	rep := strings.Repeat
	for name, c := range map[string]string{
		"brackets": rep("(", n) + "touch x" + rep(")", n), "braces": rep("{ ", n/2) + "touch x" + rep(";}", n/2), "substitutions": rep("$(", n/2) + "touch x" + rep(")", n/2), "quoted substitutions": rep(`"$(`, n/3) + "touch x" + rep(`)"`, n/3),
		"parameters": "echo " + rep("${a:-", n/6) + "$(touch x)" + rep("}", n/6), "ifs": rep("if ls; then ", n/13) + "touch x" + rep("; fi", n/13), "negations": rep("! ", n/2) + "touch x", "times": rep("time ", n/6) + "touch x",
		"long list": rep("true; ", n/6) + "touch x", "long chain": rep("true && ", n/9) + "touch x", "long pipe": rep("cat | ", n/7) + "touch x", "background": rep("ls & ", n/6) + "touch x", "lines": rep("ls\n", n/4) + "touch x",
		"one word": "echo " + rep("a", n) + "; touch x", "many words": "echo " + rep("a ", n/2) + "; touch x", "huge": rep("true; ", 1<<18) + "touch x", "brace bomb": "echo " + rep("{a,b}", 40) + "; touch x", "sequence": "echo {1..100000000}; touch x", "nested braces": "echo " + rep("{a,", 5000) + rep("}", 5000) + "; touch x",
		"assignments": rep("a=$a$a; ", n/9) + "touch x", "doubling": "a=x; " + rep("a=$a$a; ", 60) + "echo $a; touch x", "loops": rep("for i in 1 2 3 4 5 6 7 8 9; do ", 12) + "touch x" + rep("; done", 12), "functions": rep("f() { ", 100) + "touch x" + rep("; }", 100), "recursion": "f() { f; }; f; touch x", "mutual": "f() { g; }; g() { f; }; f; touch x",
		"fan out": fan(14), "shells": shells(40), "a path of a path": "cat " + rep("~/", 31_000) + "; touch x", "paths": rep("cat "+rep("a/", 1000)+"; ", 30) + "touch x", "names of names": "cat /usr/*/*/*/*/*/* /usr/*/*/*/*/*/x; touch x", "names everywhere": "ls /*/*/*/*/* /*/*/*/*/x* /*/*/*/y*; touch x", "relative names": rep("cat */*/*/*; ", 2000) + "touch x", "evals": "eval " + rep("eval ", 3000) + "touch x", "here documents": rep("cat <<A\nx\nA\n", n/12) + "touch x", "arithmetic": "echo $((" + rep("-", n/2) + "1)); touch x", "parentheses": "echo $((" + rep("(", n/2) + "1" + rep(")", n/2) + ")); touch x", "ternary": "echo $((" + rep("1?", n/3) + "1" + rep(":1", n/3) + ")); touch x", "assign": "echo $((" + rep("a=", n/3) + "1)); touch x",
		"backquotes": "echo " + rep("`", 2001) + "touch x", "globs": "ls " + rep("*/", 2000) + "; touch x", "test": "[[ " + rep("! ", n/2) + "x ]]; touch x", "test brackets": "[[ " + rep("( ", n/3) + "x" + rep(" )", n/3) + " ]]; touch x", "case": rep("case x in x) ", n/14) + "touch x" + rep(";; esac", n/14), "sed": "sed '" + rep("s/a/b/;", n/7) + "' f; touch x", "awk": "awk '" + rep("{print}", n/7) + "' f; touch x", "assoc": rep("a[", n/3) + "1" + rep("]", n/3) + "=1; touch x", "xargs": rep("xargs ", n/6) + "touch x", "envs": rep("env ", n/4) + "touch x", "wrapped": rep("timeout 5 nice ", n/16) + "touch x",
	} {
		began := spent()
		v := p.judge(c)
		took := spent() - began
		if v.Decision == Allow || v.Decision == None {
			t.Errorf("%s is allowed", name)
		}
		// Of processor time, which is what it takes by the clock where nothing else runs.
		if took > 50*time.Millisecond*slower {
			t.Errorf("%s took %s", name, took)
		}
	}
}

// fan is a function that calls two that call two, and so on.
func fan(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "f%d() { f%d; f%d; }; ", i, i+1, i+1)
	}
	fmt.Fprintf(&b, "f%d() { touch x; }; f0", n)
	return b.String()
}

func shells(n int) string {
	c := "touch x"
	for range n {
		if c = "bash -c " + quote(c); len(c) > 50_000 {
			break
		}
	}
	return c
}
