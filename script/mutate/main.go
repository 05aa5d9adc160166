// Mutate takes the guard's rules away one by one, and says which of them no test
// would miss: go run ./script/mutate [-v] [FILE.go ...]
//
// A mutant is the analyser with one condition taken for true or for false, one call
// left out, one name taken from a list, or one entry of the table of programs made
// milder. All of them are compiled into one test program (go test -overlay; nothing
// in the tree is written) with a switch that says which is on, so that one costs
// milliseconds. Each is given the same cases as the package's own tests; it is
// killed by the first that comes out otherwise, by a panic, or by not ending. A file's name narrows it to that file.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stalled is how long a mutant may be silent before it counts as one that does not
// end.
const stalled = 30 * time.Second

// mutation is one change at one place.
type mutation struct{ At, What string }

func main() {
	verbose := flag.Bool("v", false, "list every mutant with what became of it")
	flag.Parse()
	if err := run(*verbose, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(verbose bool, only []string) error {
	top, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	overlay, list, err := instrument(top, tmp, only)
	if err != nil {
		return err
	}
	data, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, "overlay.json"), data, 0o600); err != nil {
		return err
	}
	program := filepath.Join(tmp, "guard.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(tmp, "overlay.json"), "-o", program, "./internal/guard")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	results, table, err := try(program, filepath.Join(top, "internal", "guard"), len(list))
	if err != nil {
		return err
	}
	report(list, results, verbose)
	fmt.Print(table)
	return nil
}

func report(list []mutation, results map[int]string, verbose bool) {
	killed := 0
	for i, m := range list {
		r := results[i+1]
		if r != "survived" {
			killed++
		}
		if verbose || r == "survived" {
			fmt.Printf("%s: %s: %s\n", r, m.At, m.What)
		}
	}
	fmt.Printf("analyser: %d mutants, %d killed, %d survive\n", len(list), killed, len(list)-killed)
}

// try runs every mutant, and returns what became of each and what the program says
// of the table.
func try(program, dir string, n int) (results map[int]string, table string, err error) {
	results = map[int]string{}
	for next := 1; next <= n; {
		last, tail, err := part(program, dir, next, n, results)
		if err != nil {
			return nil, "", err
		}
		table += tail
		if last > n {
			break
		}
		if last < next { // the first one was silent
			last = next
		} else if last++; results[last] != "" {
			return nil, "", fmt.Errorf("mutant %d: it came twice", last)
		}
		if last <= n {
			results[last] = "does not end, or ends the program"
		}
		next = last + 1
	}
	return results, table, nil
}

// part runs mutants from one on until the program ends or is silent; last is the
// last one that it told of, n+1 where it came to its end.
func part(program, dir string, from, n int, results map[int]string) (last int, tail string, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-test.run", "^TestMutants$", "-test.timeout", "0")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), fmt.Sprintf("MUTANTS=%d-%d", from, n))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, "", err
	}
	if err := cmd.Start(); err != nil {
		return 0, "", err
	}
	watch := time.AfterFunc(2*stalled, cancel)
	last = from - 1
	for s := bufio.NewScanner(out); s.Scan(); {
		watch.Reset(stalled)
		word, rest, _ := strings.Cut(s.Text(), " ")
		switch word {
		case "mutant":
			id, what, _ := strings.Cut(rest, " ")
			if last, err = strconv.Atoi(id); err != nil {
				return 0, "", err
			}
			results[last] = what
			if last%100 == 0 {
				fmt.Fprintf(os.Stderr, "%d of %d\n", last, n)
			}
		case "table":
			tail += rest + "\n"
		case "broken":
			cancel()
			return 0, "", fmt.Errorf("without any mutation: %s", rest)
		}
	}
	watch.Stop()
	if cmd.Wait() == nil {
		last = n + 1
	}
	return last, tail, nil
}

// instrument writes the changed files, and returns which takes the place of which,
// and the mutations by number, from 1.
func instrument(top, tmp string, only []string) (map[string]string, []mutation, error) {
	overlay := map[string]string{}
	var list []mutation
	put := func(name, text string) error {
		to := filepath.Join(tmp, strings.ReplaceAll(name, string(filepath.Separator), "_"))
		overlay[filepath.Join(top, name)] = to
		return os.WriteFile(to, []byte(text), 0o600)
	}
	for _, dir := range []string{"internal/guard", "internal/guard/filter", "internal/guard/names"} {
		files, err := filepath.Glob(filepath.Join(top, dir, "*.go"))
		if err != nil {
			return nil, nil, err
		}
		for _, f := range files {
			base := filepath.Base(f)
			if strings.HasSuffix(base, "_test.go") || slices.Contains(passed, base) || len(only) > 0 && !slices.Contains(only, base) {
				continue
			}
			src, err := os.ReadFile(f)
			if err != nil {
				return nil, nil, err
			}
			text, found, err := mutateFile(filepath.Join(dir, base), src, len(list))
			if err != nil {
				return nil, nil, err
			}
			list = append(list, found...)
			if err := put(filepath.Join(dir, base), text); err != nil {
				return nil, nil, err
			}
		}
	}
	if err := put("internal/guard/mutant/mutant.go", mutantPackage); err != nil {
		return nil, nil, err
	}
	return overlay, list, put("internal/guard/mutants_test.go", mutantsTest)
}

// passed are files that hold no rule of the analyser: what is shown, how rules stand
// in a plan, what the built-in rules are called.
var passed = []string{"tree.go", "lines.go", "hook.go"}

// edit is text that is put at a place of a file.
type edit struct {
	at   int
	text string
}

// mutator finds the places in one file.
type mutator struct {
	fset  *token.FileSet
	name  string
	src   []byte
	first int // number before the first
	list  []mutation
	edits []edit
	bytes bool // characters in cases are bytes
}

func mutateFile(name string, src []byte, first int) (string, []mutation, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ParseComments)
	if err != nil {
		return "", nil, err
	}
	m := &mutator{fset: fset, name: name, src: src, first: first, bytes: strings.Contains(name, "filter")}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && !shows(fn.Name.Name) {
			ast.Inspect(fn.Body, m.visit)
		}
	}
	if len(m.list) == 0 {
		return string(src), nil, nil
	}
	slices.SortStableFunc(m.edits, func(a, b edit) int { return a.at - b.at })
	var b strings.Builder
	at := 0
	for _, e := range m.edits {
		b.Write(src[at:e.at])
		b.WriteString(e.text)
		at = e.at
	}
	b.Write(src[at:])
	text := b.String()
	i := fset.Position(f.Name.End()).Offset
	return text[:i] + "\n\nimport \"reprise/internal/guard/mutant\"\n" + text[i:], m.list, nil
}

// shows reports whether a function only words something, or bounds the work.
func shows(name string) bool {
	return slices.Contains([]string{"shown", "hidden", "String", "commandLine", "sentence", "source", "BuiltIn", "step", "nesting", "keywords", "give", "run"}, name)
}

func (m *mutator) offset(p token.Pos) int { return m.fset.Position(p).Offset }

func (m *mutator) text(n ast.Node) string {
	s := strings.Join(strings.Fields(string(m.src[m.offset(n.Pos()):m.offset(n.End())])), " ")
	if len(s) > 90 {
		s = s[:90] + "…"
	}
	return s
}

func (m *mutator) add(n ast.Node, what string) int {
	m.list = append(m.list, mutation{fmt.Sprintf("%s:%d", m.name, m.fset.Position(n.Pos()).Line), what + " " + m.text(n)})
	return m.first + len(m.list)
}

func (m *mutator) around(n ast.Node, before, after string) {
	// What begins later lies within, so that its text comes later at the front and
	// earlier at the end: ends go before what stands there already.
	m.edits = append(m.edits, edit{m.offset(n.Pos()), before})
	m.edits = slices.Insert(m.edits, 0, edit{m.offset(n.End()), after})
}

func (m *mutator) condition(x ast.Expr) {
	no := m.add(x, "never:")
	yes := m.add(x, "always:")
	m.around(x, fmt.Sprintf("mutant.If(%d, %d, ", no, yes), ")")
}

func (m *mutator) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		m.condition(n.Cond)
	case *ast.SwitchStmt:
		for _, c := range n.Body.List {
			for _, x := range c.(*ast.CaseClause).List {
				m.caseOf(x, n.Tag == nil)
			}
		}
	case *ast.CompositeLit:
		if a, ok := n.Type.(*ast.ArrayType); ok {
			if id, ok := a.Elt.(*ast.Ident); ok && id.Name == "string" {
				for _, x := range n.Elts {
					m.literal(x)
				}
			}
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "in" {
			for _, x := range n.Args {
				m.literal(x)
			}
		}
	case *ast.ExprStmt:
		if c, ok := n.X.(*ast.CallExpr); ok && !m.bounds(c) {
			id := m.add(n, "without:")
			m.around(n, fmt.Sprintf("if mutant.Keep(%d) { ", id), " }")
		}
	}
	return true
}

// bounds reports whether a call only counts the work, or words something.
func (m *mutator) bounds(c *ast.CallExpr) bool {
	text := m.text(c.Fun)
	return strings.HasSuffix(text, ".step") || text == "panic" || strings.HasPrefix(text, "b.Write") || text == "defer"
}

func (m *mutator) caseOf(x ast.Expr, condition bool) {
	if condition {
		m.condition(x)
		return
	}
	m.literal(x)
}

// literal is one name of a list.
func (m *mutator) literal(x ast.Expr) {
	l, ok := x.(*ast.BasicLit)
	switch {
	case !ok:
	case l.Kind == token.STRING:
		m.around(x, fmt.Sprintf("mutant.Name(%d, ", m.add(x, "without the name")), ")")
	case l.Kind == token.CHAR && m.bytes:
		m.around(x, fmt.Sprintf("mutant.Byte(%d, ", m.add(x, "without the letter")), ")")
	}
}

const mutantPackage = `// Package mutant says which mutation is on.
package mutant

var Active int

func If(never, always int, c bool) bool {
	switch Active {
	case never:
		return false
	case always:
		return true
	}
	return c
}

func Keep(id int) bool { return Active != id }

func Name(id int, s string) string {
	if Active == id {
		return "\x00none\x00"
	}
	return s
}

func Byte(id int, b byte) byte {
	if Active == id {
		return 0
	}
	return b
}
`

const mutantsTest = `package guard

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"reprise/internal/guard/mutant"
)

// bounded ends the program where a mutant takes all memory, which is one way of not
// ending.
func bounded() {
	for range time.Tick(50 * time.Millisecond) {
		var m runtime.MemStats
		if runtime.ReadMemStats(&m); m.HeapAlloc > 600<<20 {
			os.Exit(3)
		}
	}
}

func TestMutants(t *testing.T) {
	var from, to int
	if _, err := fmt.Sscanf(os.Getenv("MUTANTS"), "%d-%d", &from, &to); err != nil {
		t.Fatal(err)
	}
	go bounded()
	cases := mutationCases(t)
	try := func() (what string) {
		defer func() {
			if p := recover(); p != nil {
				what = fmt.Sprint("killed by a panic")
			}
		}()
		for _, c := range cases {
			if !c.holds() {
				return "killed by " + c.name
			}
		}
		return "survived"
	}
	if what := try(); what != "survived" {
		fmt.Println("broken", what)
		t.FailNow()
	}
	for id := from; id <= to; id++ {
		mutant.Active = id
		fmt.Println("mutant", id, try())
	}
	mutant.Active = 0
}
`
