// Mutate takes the guard's rules away one by one, and says which of them no test
// would miss: go run ./script/mutate [-v] [-list] [-among FILE] [-hunt FILE] [FILE.go ...]
//
// A mutant is the analyser with one condition taken for true or for false, one call
// left out, one name taken from a list, or one entry of the table of programs made
// milder. All of them are compiled into one test program (go test -overlay; nothing
// in the tree is written) with a switch that says which is on, so that one costs
// milliseconds. Each is given those cases of the package's own tests in which the
// changed place decides something; it is killed by the first that comes out
// otherwise, by a panic, or by not ending. A file's name narrows it to that file; with
// -among only those mutants are tried that a FILE names, as what this printed before does;
// -list prints all their names and tries none.
//
// What survives is either listed in internal/guard/testdata/equivalent.txt, with the
// reason why no answer can tell it, or it is a rule that no test would miss: then the
// exit code is 1. With -hunt the survivors are given a large number of generated
// commands, and a few of these that kill as many as can be are written to FILE, in
// the form of internal/guard/testdata/questions.txt. Whoever puts them there has to
// look at what is said of them.
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
const stalled = 5 * time.Minute

// mutation is one change at one place. Name says which without the line's number,
// so that it stays the same where other things change.
type mutation struct{ At, What, Name string }

func main() {
	verbose := flag.Bool("v", false, "list every mutant with what became of it")
	hunt := flag.String("hunt", "", "write commands that kill survivors to `FILE`")
	from := flag.String("from", "", "with -hunt: take the commands from `FILE` and do not generate any")
	among := flag.String("among", "", "try only the mutants that `FILE` names")
	most := flag.Int("most", 400, "with -hunt: commands that a survivor is given at most")
	names := flag.Bool("list", false, "print the names of the mutants, and try none")
	flag.Parse()
	if *hunt == "" {
		*most = 0
	}
	if *names {
		if err := list(flag.Args()); err != nil {
			fmt.Fprintln(os.Stderr, "mutate:", err)
			os.Exit(1)
		}
		return
	}
	ok, err := run(*verbose, *hunt, *from, *among, *most, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(verbose bool, hunt, from, among string, most int, only []string) (bool, error) {
	top, err := filepath.Abs(".")
	if err != nil {
		return false, err
	}
	tmp, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(tmp)
	overlay, list, err := instrument(top, tmp, only)
	if err != nil {
		return false, err
	}
	data, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return false, err
	}
	if err := os.WriteFile(filepath.Join(tmp, "overlay.json"), data, 0o600); err != nil {
		return false, err
	}
	t := trial{program: filepath.Join(tmp, "guard.test"), dir: filepath.Join(top, "internal", "guard"), n: len(list), most: most, from: from, results: map[int]string{}, killers: map[int][]string{}}
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(tmp, "overlay.json"), "-o", t.program, "./internal/guard")
	if out, err := build.CombinedOutput(); err != nil {
		return false, fmt.Errorf("build: %w\n%s", err, out)
	}
	if among != "" {
		if t.skip, err = skipped(list, among); err != nil {
			return false, err
		}
	}
	reasons, err := equivalent(filepath.Join(t.dir, "testdata", "equivalent.txt"))
	if err != nil {
		return false, err
	}
	if err := t.all(); err != nil {
		return false, err
	}
	if hunt != "" {
		if err := os.WriteFile(hunt, []byte(strings.Join(t.cover(), "\n")+"\n"), 0o600); err != nil {
			return false, err
		}
	}
	for id, c := range t.killers {
		t.results[id] = "survived, but this kills it: " + c[0]
	}
	if among != "" { // the others were not tried
		tried := map[int]string{}
		var few []mutation
		for i, m := range list {
			if !slices.Contains(t.skip, i+1) {
				few = append(few, m)
				tried[len(few)] = t.results[i+1]
			}
		}
		return report(few, tried, reasons, false, verbose), nil
	}
	return report(list, t.results, reasons, len(only) == 0, verbose), nil
}

// list prints the names of the mutants.
func list(only []string) error {
	top, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	_, all, err := instrument(top, tmp, only)
	for _, m := range all {
		fmt.Println(m.Name)
	}
	return err
}

// skipped are the numbers of the mutants that no line of a file names at its end.
func skipped(list []mutation, file string) (out []int, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(data), "\n")
	for i, m := range list {
		if !slices.ContainsFunc(lines, func(l string) bool { return l == m.Name || strings.HasSuffix(l, ": "+m.Name) }) {
			out = append(out, i+1)
		}
	}
	return out, nil
}

// equivalent reads the mutants that no answer can tell, by name: after a line that
// begins with # and gives the reason come those that it is the reason for.
func equivalent(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	reason := ""
	for _, l := range strings.Split(string(data), "\n") {
		if why, ok := strings.CutPrefix(l, "# "); ok {
			reason = why
		} else if l != "" {
			out[l] = reason
		}
	}
	return out, nil
}

// report prints what became of the mutants, and returns whether each is killed or
// listed, and none is listed that is killed.
func report(list []mutation, results map[int]string, reasons map[string]string, whole, verbose bool) bool {
	killed, listed, wrong := 0, 0, 0
	known := map[string]bool{}
	for i, m := range list {
		r := results[i+1]
		dead := r != "survived" && !strings.HasPrefix(r, "not reached") && !strings.HasPrefix(r, "survived,")
		_, here := reasons[m.Name]
		known[m.Name] = true
		switch {
		case dead && here:
			r = "listed in equivalent.txt, and " + r
			wrong++
		case dead:
			killed++
		case here:
			r = "equivalent"
			listed++
		}
		if verbose || !dead && !here || dead && here {
			fmt.Printf("%s: %s: %s\n", r, m.At, m.Name)
		}
	}
	if whole {
		for name := range reasons {
			if !known[name] {
				wrong++
				fmt.Printf("listed in equivalent.txt, and not there: %s\n", name)
			}
		}
	}
	survive := len(list) - killed - listed
	fmt.Printf("analyser: %d mutants, %d killed, %d equivalent, %d survive\n", len(list), killed, listed, survive)
	return survive == 0 && wrong == 0
}

// trial is one run over all mutants.
type trial struct {
	program, dir string
	n, most      int
	from         string
	skip         []int // what is not tried
	results      map[int]string
	killers      map[int][]string // what kills survivors
}

// all runs every mutant.
func (t *trial) all() error {
	for next := 1; next <= t.n; {
		last, err := t.part(next)
		if err != nil {
			return err
		}
		if last > t.n {
			break
		}
		if last++; t.results[last] != "" {
			return fmt.Errorf("mutant %d: it came twice", last)
		}
		t.results[last] = "killed: it does not end, or ends the program"
		next = last + 1
	}
	return nil
}

// part runs mutants from one on until the program ends or is silent; last is the
// last one that it told of, n+1 where it came to its end.
func (t *trial) part(from int) (last int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, t.program, "-test.run", "^TestMutants$", "-test.timeout", "0")
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), fmt.Sprintf("MUTANTS=%d-%d-%d", from, t.n, t.most), "MUTANTS_FROM="+t.from, "MUTANTS_SKIP="+fmt.Sprint(t.skip))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	watch := time.AfterFunc(2*stalled, cancel)
	last = from - 1
	ready := false
	s := bufio.NewScanner(out)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		watch.Reset(stalled)
		word, rest, _ := strings.Cut(s.Text(), " ")
		id, what, _ := strings.Cut(rest, " ")
		switch word {
		case "mutant":
			if last, err = strconv.Atoi(id); err != nil {
				return 0, err
			}
			t.results[last] = what
			if last%200 == 0 {
				fmt.Fprintf(os.Stderr, "%d of %d\n", last, t.n)
			}
		case "ready":
			ready = true
		case "killer":
			n, err := strconv.Atoi(id)
			if err != nil {
				return 0, err
			}
			t.killers[n] = append(t.killers[n], what)
		case "broken":
			cancel()
			return 0, fmt.Errorf("without any mutation: %s", rest)
		}
	}
	watch.Stop()
	if cmd.Wait() == nil {
		last = t.n + 1
	}
	if !ready {
		return 0, fmt.Errorf("the cases cannot be asked without any mutation; run TestMutants of %s to see why", t.program)
	}
	return last, nil
}

// cover are few candidates that kill every mutant that some of them kills.
func (t *trial) cover() (out []string) {
	by := map[string][]int{}
	for id, list := range t.killers {
		for _, c := range list {
			by[c] = append(by[c], id)
		}
	}
	done := map[int]bool{}
	for {
		best, most := "", 0
		for c, ids := range by {
			n := 0
			for _, id := range ids {
				if !done[id] {
					n++
				}
			}
			if n > most || n == most && n > 0 && (len(c) < len(best) || len(c) == len(best) && c < best) {
				best, most = c, n
			}
			if n == 0 {
				delete(by, c)
			}
		}
		if most == 0 {
			return out
		}
		out = append(out, best)
		for _, id := range by[best] {
			done[id] = true
		}
	}
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
	for _, dir := range []string{"internal/guard", "internal/guard/filter", "internal/guard/names", "internal/guard/reading"} {
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
	bytes bool   // characters in cases are bytes
	fn    string // the function that it is in
	names map[string]int
	// begins are statements that an if begins with, which cannot be put into another.
	begins map[ast.Stmt]bool
}

func mutateFile(name string, src []byte, first int) (string, []mutation, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ParseComments)
	if err != nil {
		return "", nil, err
	}
	m := &mutator{fset: fset, name: name, src: src, first: first, names: map[string]int{}, begins: map[ast.Stmt]bool{}, bytes: strings.Contains(name, "filter")}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && !shows(fn.Name.Name) {
			m.fn = fn.Name.Name
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
	name := filepath.Base(m.name) + " " + m.fn + ": " + what + " " + m.text(n)
	if m.names[name]++; m.names[name] > 1 {
		name = fmt.Sprintf("%s (%d)", name, m.names[name])
	}
	m.list = append(m.list, mutation{fmt.Sprintf("%s:%d", m.name, m.fset.Position(n.Pos()).Line), what + " " + m.text(n), name})
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
		m.begins[n.Init] = true
		m.condition(n.Cond)
	case *ast.RangeStmt:
		m.edits = append(m.edits, edit{m.offset(n.Body.Lbrace) + 1, " mutant.Tick(); "})
	case *ast.ForStmt:
		m.edits = append(m.edits, edit{m.offset(n.Body.Lbrace) + 1, " mutant.Tick(); "})
	case *ast.SwitchStmt:
		if n.Tag != nil {
			m.around(n.Tag, "mutant.Tag(", ")")
		}
		for _, c := range n.Body.List {
			for _, x := range c.(*ast.CaseClause).List {
				m.caseOf(x, n.Tag == nil)
			}
		}
	case *ast.CompositeLit:
		if a, ok := n.Type.(*ast.ArrayType); ok {
			if id, ok := a.Elt.(*ast.Ident); ok && id.Name == "string" {
				for _, x := range n.Elts {
					m.literal(x, "Name")
				}
			}
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "in" {
			for _, x := range n.Args {
				m.literal(x, "Name")
			}
		}
	case *ast.ExprStmt:
		if c, ok := n.X.(*ast.CallExpr); ok && !m.begins[n] && !m.bounds(c) {
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
	m.literal(x, "Case")
}

// literal is one name of a list, or of a switch.
func (m *mutator) literal(x ast.Expr, as string) {
	l, ok := x.(*ast.BasicLit)
	switch {
	case !ok:
	case l.Kind == token.STRING:
		m.around(x, fmt.Sprintf("mutant.%s(%d, ", as, m.add(x, "without the name")), ")")
	case l.Kind == token.CHAR && m.bytes:
		m.around(x, fmt.Sprintf("mutant.Byte(%d, ", m.add(x, "without the letter")), ")")
	}
}

const mutantPackage = `// Package mutant says which mutation is on, and notes which would have made a
// difference to what is asked.
package mutant

// Active is the mutation that is on, 0 for none.
var Active int

// Hits has a bit for each mutation that would have changed something at its place;
// nil where that is not noted.
var Hits []uint64

var (
	ticks int
	tag   string
)

func hit(id int) { Hits[id/64] |= 1 << (id % 64) }

func If(never, always int, c bool) bool {
	switch {
	case Active == never:
		return false
	case Active == always:
		return true
	case Hits == nil:
	case c:
		hit(never)
	default:
		hit(always)
	}
	return c
}

func Keep(id int) bool {
	if Hits != nil {
		hit(id)
	}
	return Active != id
}

func Name(id int, s string) string {
	if Hits != nil {
		hit(id)
	}
	if Active == id {
		return "\x00none\x00"
	}
	return s
}

// Tag notes what a switch compares with.
func Tag[T any](v T) T {
	if Hits != nil {
		tag, _ = any(v).(string)
	}
	return v
}

// Case is Name in a switch.
func Case(id int, s string) string {
	if Hits != nil && s == tag {
		hit(id)
	}
	if Active == id {
		return "\x00none\x00"
	}
	return s
}

func Byte(id int, b byte) byte {
	if Hits != nil {
		hit(id)
	}
	if Active == id {
		return 0
	}
	return b
}

// Start begins a question.
func Start() { ticks = 0 }

// Tick ends a loop that does not end.
func Tick() {
	if ticks++; ticks > 2_000_000 {
		panic("it does not end")
	}
}
`

const mutantsTest = `package guard

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"reprise/internal/guard/mutant"
)

// bounded ends the program where a mutant takes all memory, which is one way of not
// ending.
func bounded() {
	for range time.Tick(50 * time.Millisecond) {
		var m runtime.MemStats
		if runtime.ReadMemStats(&m); m.HeapAlloc > 1200<<20 {
			os.Exit(3)
		}
	}
}

func TestMutants(t *testing.T) {
	var from, to, most int
	if _, err := fmt.Sscanf(os.Getenv("MUTANTS"), "%d-%d-%d", &from, &to, &most); err != nil {
		t.Fatal(err)
	}
	go bounded()
	seed := maphash.MakeSeed()
	say := func(f func() string) (h uint64, panics bool) {
		defer func() {
			if p := recover(); p != nil {
				panics = true
			}
		}()
		mutant.Start()
		return maphash.String(seed, f()), false
	}
	// What is said without any mutation, and which mutations each case and each
	// candidate can tell of at all.
	by := make([][]int, to+1)
	reach := func(i int, f func() string, most int, seen []int) uint64 {
		mutant.Hits = make([]uint64, to/64+1)
		h, panics := say(f)
		if panics && seen != nil {
			mutant.Hits = nil
			return 0 // a candidate that takes too long even so
		}
		for k, w := range mutant.Hits {
			for ; w != 0; w &= w - 1 {
				id := k*64 + bits.TrailingZeros64(w)
				if id > to {
					continue
				}
				if len(by[id]) < most {
					by[id] = append(by[id], i)
				}
				if seen == nil {
					continue
				}
				if seen[id]++; seen[id] <= most {
					continue
				} else if at := rand.IntN(seen[id]); at < most {
					by[id][at] = i
				}
			}
		}
		mutant.Hits = nil
		return h
	}
	cases := mutationCases(t)
	want := make([]uint64, len(cases))
	for i, c := range cases {
		want[i] = reach(i, c.say, 1<<30, nil)
		if i%1000 == 0 {
			fmt.Println("alive")
		}
	}
	for i, c := range cases {
		if os.Getenv("MUTANTS_SKIP") != "[]" {
			break // that was seen when all were tried
		}
		if h, _ := say(c.say); h != want[i] {
			fmt.Println("broken", c.name, "is answered otherwise the second time")
			t.FailNow()
		}
	}
	fmt.Println("ready")
	caseBy := by
	var others []mutationCase
	if most > 0 {
		others = mutationCandidates(t, os.Getenv("MUTANTS_FROM"))
	}
	by = make([][]int, to+1)
	seen := make([]int, to+1)
	otherWant := make([]uint64, len(others))
	for i, c := range others {
		otherWant[i] = reach(i, c.say, most, seen)
		if i%10000 == 0 {
			fmt.Println("alive")
		}
	}
	skip := map[string]bool{}
	for _, id := range strings.Fields(strings.Trim(os.Getenv("MUTANTS_SKIP"), "[]")) {
		skip[id] = true
	}
	for id := from; id <= to; id++ {
		if skip[fmt.Sprint(id)] {
			fmt.Println("mutant", id, "skipped")
			continue
		}
		mutant.Active = id
		what := "survived"
		if len(caseBy[id]) == 0 {
			what = "not reached"
		}
		for _, i := range caseBy[id] {
			if h, panics := say(cases[i].say); panics {
				what = "killed by a panic"
			} else if h != want[i] {
				what = "killed by " + cases[i].name
			} else {
				continue
			}
			break
		}
		if most > 0 && !strings.HasPrefix(what, "killed") {
			n := 0
			for _, i := range by[id] {
				if h, panics := say(others[i].say); panics || h != otherWant[i] {
					fmt.Println("killer", id, others[i].name)
					if n++; n >= 60 || panics {
						break
					}
				}
			}
			if len(by[id]) == 0 {
				what += ", not reached by any candidate"
			}
		}
		fmt.Println("mutant", id, what)
	}
	mutant.Active = 0
}
`
