// Package reprise_test holds the rules of this repository as tests: what each
// package may import, where files are written, where the environment and the
// clock are read. Each failure says the reason for its rule. The tests own no
// files and write none, but for golden files under -update.
package reprise_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write golden files anew")

// file is one Go file of ours, for whatever system it is meant.
type file struct {
	name    string // from the root, with slashes
	dir     string
	test    bool
	ast     *ast.File
	fset    *token.FileSet
	imports map[string]string // path → name it goes by in the file
	lines   int
}

func (f *file) at(p token.Pos) string {
	return fmt.Sprintf("%s:%d", f.name, f.fset.Position(p).Line)
}

// parseTree gives all our Go files but those of client programs and testdata.
func parseTree(t *testing.T) []*file {
	t.Helper()
	out, err := parsedTree()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// parsedTree reads them once for all rules: each wants to see them all, and none changes
// any.
var parsedTree = sync.OnceValues(func() (out []*file, err error) {
	err = filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); n == "node_modules" || n == "testdata" || n != "." && strings.HasPrefix(n, ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parseFile(filepath.ToSlash(p))
		if f != nil {
			out = append(out, f)
		}
		return err
	})
	return out, err
})

func parseFile(name string) (*file, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, g := range tree.Comments {
		for _, c := range g.List {
			if constraint.IsGoBuild(c.Text) && strings.TrimSpace(strings.TrimPrefix(c.Text, "//go:build")) == "ignore" {
				return nil, nil
			}
		}
	}
	f := &file{
		name: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
		ast: tree, fset: fset, imports: map[string]string{}, lines: fset.Position(tree.FileEnd).Line,
	}
	for _, spec := range tree.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		as := path.Base(p)
		if spec.Name != nil {
			as = spec.Name.Name
		}
		f.imports[p] = as
	}
	return f, nil
}

// ours are the files of the product: no tests, no packages that only tests import.
func ours(files []*file) []*file {
	return slices.DeleteFunc(slices.Clone(files), func(f *file) bool {
		return f.test || testSupport(f.dir) || !strings.HasPrefix(f.dir, "internal/") && !strings.HasPrefix(f.dir, "cmd/")
	})
}

// testSupport are packages that stand in for something in tests.
func testSupport(dir string) bool {
	return strings.HasSuffix(dir, "test") || strings.HasPrefix(dir, "internal/mcpserver/conformance")
}

// layers, lowest first. A package may import what is below it.
var layers = [][]string{
	{"clip", "pathname", "shellword"},
	{"durable", "proc", "mdfile", "redact", "term", "fact"},
	{"event", "git", "config", "logfile", "fleet"},
	{"run", "agent", "queue", "memory", "recall", "learn", "staterepo", "workspace", "guard", "verify", "delegation", "relay"},
	{"loop", "worker", "task", "hook", "setup", "brief", "judge", "transcript", "session", "meta", "refresh"},
	{"mcpserver", "web", "fakemodel"},
	{"cli", "hookmain", "recallmain", "runmain"},
}

// sideways are the imports inside a layer, with their reasons.
var sideways = map[string]string{
	"run → agent":           "a run starts its agent through the agent's adapter",
	"agent → guard":         "an adapter writes the client's deny rules from the guard's policy",
	"worker → loop":         "what a worker does with an item is the loop's, in a clone of its own",
	"judge → hook":          "what a judge's client starts must know itself for nested, by the variable that hooks look at",
	"learn → recall":        "what is learnt from the log stands in the index, and is searched there",
	"delegation → agent":    "what is counted is a client's event in our own words",
	"learn → memory":        "what passes a promotion gate becomes an entry of a memory file",
	"session → brief":       "what a session is told is put together by the brief, which knows nothing of settings",
	"staterepo → memory":    "an agent's entries are written as the project's are",
	"workspace → staterepo": "a workspace is a worktree of the code and one of the agent's state, made together",
	"workspace → verify":    "dependencies are carried into a workspace as into a snapshot",
	"fleet → config":        "the user's settings name the servers, and what proves who this machine is",
	"session → hook":        "it is the part of the hooks' router that needs the index",
}

func layerOf(pkg string) int {
	for i, l := range layers {
		if slices.Contains(l, pkg) {
			return i
		}
	}
	return -1
}

func TestRuleImportsGoDown(t *testing.T) {
	for _, f := range ours(parseTree(t)) {
		from, ok := strings.CutPrefix(f.dir, "internal/")
		if !ok {
			continue // commands may import what they need
		}
		from, _, _ = strings.Cut(from, "/")
		if layerOf(from) < 0 {
			t.Errorf("%s: package %s is in no layer: give it one in rules_test.go and ARCHITECTURE.md, so that it is clear what may import it", f.name, from)
			continue
		}
		for imp := range f.imports {
			to, ok := strings.CutPrefix(imp, "reprise/internal/")
			if !ok {
				continue
			}
			if testSupport("internal/" + to) {
				t.Errorf("%s imports %s, which is for tests only", f.name, imp)
				continue
			}
			to, _, _ = strings.Cut(to, "/")
			if from == to || layerOf(to) < layerOf(from) && layerOf(to) >= 0 {
				continue
			}
			if sideways[from+" → "+to] == "" {
				t.Errorf("%s imports %s: imports go down only, so that a package can be understood, tested and linked without those above it; pass an interface in, or list the edge with its reason", f.name, imp)
			}
		}
	}
}

func TestRulePlaces(t *testing.T) {
	for _, rule := range []struct {
		what   string
		is     func(imp string) bool
		in     []string
		reason string
	}{
		{
			"SQLite", func(p string) bool { return strings.Contains(p, "sqlite") || p == "database/sql" },
			[]string{"internal/recall"}, "the index is derived and nothing else may come to depend on it",
		},
		{
			"the MCP SDK", func(p string) bool { return strings.HasPrefix(p, "github.com/modelcontextprotocol/") },
			[]string{"internal/mcpserver"}, "the protocol moves fast: one package pays for it",
		},
		{
			"cobra", func(p string) bool {
				return strings.HasPrefix(p, "github.com/spf13/")
			}, []string{"internal/cli"}, "only the command line knows flags",
		},
		{
			"a NATS server", func(p string) bool { return strings.HasPrefix(p, "github.com/nats-io/nats-server") },
			[]string{"internal/fleet/fleettest"}, "a fleet's servers are others' programs: linking one would make ours larger by 20 MB, and only tests start any",
		},
		{
			"os/exec", func(p string) bool { return p == "os/exec" },
			[]string{"internal/proc", "internal/git"}, "every process is started where it can be found and stopped again",
		},
		{
			"net/http", func(p string) bool { return p == "net/http" },
			[]string{"internal/mcpserver", "internal/web", "internal/cli", "internal/fakemodel"}, "what listens or calls out is in one place, and the hook program stays small",
		},
	} {
		for _, f := range ours(parseTree(t)) {
			for imp := range f.imports {
				inside := slices.ContainsFunc(rule.in, func(d string) bool { return f.dir == d || strings.HasPrefix(f.dir, d+"/") })
				if rule.is(imp) && !inside {
					t.Errorf("%s imports %s: %s belongs in %s, because %s", f.name, imp, rule.what, strings.Join(rule.in, " and "), rule.reason)
				}
			}
		}
	}
}

// uses calls found with each mention of pkg.Name in the file.
func (f *file) uses(pkg string, found func(name string, at token.Pos)) {
	as, ok := f.imports[pkg]
	if !ok {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			// An identifier with an object is a local of the same name.
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == as && id.Obj == nil {
				found(sel.Sel.Name, sel.Pos())
			}
		}
		return true
	})
}

// exceptions to a rule: file or directory → reason.
type exceptions map[string]string

func (e exceptions) has(f *file) bool {
	for where, reason := range e {
		if reason != "" && (f.name == where || f.dir == where || strings.HasPrefix(f.dir, where+"/")) {
			return true
		}
	}
	return false
}

func TestRuleFilesAreWrittenByDurable(t *testing.T) {
	writers := []string{
		"WriteFile", "Create", "CreateTemp", "MkdirTemp", "Mkdir", "MkdirAll", "Rename", "Remove", "RemoveAll",
		"Truncate", "Link", "Symlink", "Chmod", "Chown", "Chtimes", "CopyFS",
	}
	for _, f := range ours(parseTree(t)) {
		if fileWriters.has(f) {
			continue
		}
		f.uses("os", func(name string, at token.Pos) {
			if slices.Contains(writers, name) {
				t.Errorf("%s: os.%s: files are written only through internal/durable, so that kill -9, a full disk or another writer loses nothing", f.at(at), name)
			}
		})
		for _, call := range openFiles(f) {
			t.Errorf("%s: os.OpenFile for writing: files are written only through internal/durable, so that kill -9, a full disk or another writer loses nothing", f.at(call.Pos()))
		}
		if _, ok := f.imports["io/ioutil"]; ok {
			t.Errorf("%s imports io/ioutil, which writes files past internal/durable", f.name)
		}
	}
}

func TestRuleFilesAreReadByDurable(t *testing.T) {
	readers := []string{"Open", "ReadFile", "ReadDir", "OpenRoot"}
	for _, f := range ours(parseTree(t)) {
		if fileReaders.has(f) {
			continue
		}
		f.uses("os", func(name string, at token.Pos) {
			if slices.Contains(readers, name) {
				t.Errorf("%s: os.%s waits where a pipe lies in the file's place, and reads one that has no end: internal/durable has Open, Read, ReadFile, ReadDir and OpenRoot", f.at(at), name)
			}
		})
	}
}

// openFiles are calls of os.OpenFile whose flag is not plainly os.O_RDONLY.
func openFiles(f *file) []*ast.CallExpr {
	var out []*ast.CallExpr
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 3 {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "OpenFile" {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); !ok || id.Name != f.imports["os"] {
			return true
		}
		if dev, ok := call.Args[0].(*ast.SelectorExpr); ok && dev.Sel.Name == "DevNull" {
			return true
		}
		writes := false
		ast.Inspect(call.Args[1], func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				switch s.Sel.Name {
				case "O_WRONLY", "O_RDWR", "O_CREATE", "O_TRUNC", "O_APPEND", "O_EXCL":
					writes = true
				}
			} else if id, ok := n.(*ast.Ident); ok && id.Obj != nil {
				writes = true // a variable: cannot be told
			}
			return true
		})
		if writes {
			out = append(out, call)
		}
		return true
	})
	return out
}

func TestRuleExitOnlyInMain(t *testing.T) {
	for _, f := range ours(parseTree(t)) {
		if strings.HasPrefix(f.dir, "cmd/") && path.Base(f.name) == "main.go" {
			continue
		}
		fatal := map[string][]string{
			"os": {"Exit"}, "syscall": {"Exit"}, "golang.org/x/sys/unix": {"Exit"},
			"log": {"Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln"}, "runtime": {"Goexit"},
		}
		for pkg, names := range fatal {
			f.uses(pkg, func(name string, at token.Pos) {
				if slices.Contains(names, name) && !exits.has(f) {
					t.Errorf("%s: %s.%s: only main ends the process: an exit anywhere else skips what is deferred and cannot be tested", f.at(at), path.Base(pkg), name)
				}
			})
		}
	}
}

func TestRuleEnvironmentAndClockArePassedIn(t *testing.T) {
	for _, f := range ours(parseTree(t)) {
		if !strings.HasPrefix(f.dir, "internal/") {
			continue
		}
		for pkg, names := range map[string][]string{
			"os":      {"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv", "Unsetenv", "Getwd", "Chdir", "UserHomeDir", "UserConfigDir", "UserCacheDir", "Hostname"},
			"syscall": {"Getenv", "Setenv", "Environ", "Getwd", "Chdir"},
		} {
			f.uses(pkg, func(name string, at token.Pos) {
				if slices.Contains(names, name) && !ambient.has(f) {
					t.Errorf("%s: %s.%s: environment, directory and clock are passed in (config.Env, a now function), so that tests need no Setenv, no Chdir and no waiting", f.at(at), pkg, name)
				}
			})
		}
		for _, call := range f.calls("time", "Now", "Since", "Until") {
			if !ambient.has(f) {
				t.Errorf("%s: the machine's clock is read: clocks are passed in (a now function), so that tests need no waiting", f.at(call.Pos()))
			}
		}
	}
}

// calls are the calls of the package's functions: a function that is handed on
// as a value (Now: time.Now) is the seam that the rule asks for.
func (f *file) calls(pkg string, names ...string) []*ast.CallExpr {
	var out []*ast.CallExpr
	as, ok := f.imports[pkg]
	if !ok {
		return nil
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(names, sel.Sel.Name) {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == as && id.Obj == nil {
				out = append(out, call)
			}
		}
		return true
	})
	return out
}

func TestRuleNoInit(t *testing.T) {
	for _, f := range ours(parseTree(t)) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: func init: what happens at start is paid for by every hook and hidden from every reader; make a constructor", f.at(fn.Pos()))
			}
			vars, ok := d.(*ast.GenDecl)
			if !ok || vars.Tok != token.VAR {
				continue
			}
			ast.Inspect(vars, func(n ast.Node) bool {
				if _, ok := n.(*ast.FuncLit); ok {
					return false // it runs when it is asked for
				}
				if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "MustCompile" {
					t.Errorf("%s: a pattern that is compiled at start, which every command pays for: sync.OnceValue compiles it when it is first needed", f.at(sel.Pos()))
				}
				return true
			})
		}
	}
}

func TestRuleNoPackageState(t *testing.T) {
	vars := map[string]map[string]bool{} // directory → names
	files := ours(parseTree(t))
	for _, f := range files {
		if vars[f.dir] == nil {
			vars[f.dir] = map[string]bool{}
		}
		for _, d := range f.ast.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, s := range gen.Specs {
				for _, n := range s.(*ast.ValueSpec).Names {
					vars[f.dir][n.Name] = true
				}
			}
		}
	}
	for _, f := range files {
		check := func(e ast.Expr) {
			if id := root(e); id != nil && vars[f.dir][id.Name] && global(f, id) && !packageState.has(f) {
				t.Errorf("%s: %s is a package variable and changes: state belongs in a value that its user makes and owns, so that two can live side by side", f.at(id.Pos()), id.Name)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, e := range n.Lhs {
						check(e)
					}
				}
			case *ast.IncDecStmt:
				check(n.X)
			}
			return true
		})
	}
}

// root is the identifier that an assignable expression starts from.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// global reports whether the identifier means a package variable: declared in
// another file, or at the top of this one.
func global(f *file, id *ast.Ident) bool {
	if id.Obj == nil {
		return true
	}
	return f.ast.Scope.Lookup(id.Name) == id.Obj
}

func TestRulePackageComments(t *testing.T) {
	docs := map[string]string{}
	for _, f := range ours(parseTree(t)) {
		docs[f.dir] += f.ast.Doc.Text()
	}
	for dir, doc := range docs {
		if doc == "" {
			t.Errorf("%s has no package comment: it must say what the package owns, which files it may write and which lock it takes", dir)
			continue
		}
		if !strings.HasPrefix(dir, "internal/") {
			continue
		}
		for what, words := range map[string][]string{
			"which files it owns and may write (or that it has none)": {"write", "written", "no file"},
			"which lock it takes (or none)":                           {"lock"},
		} {
			if !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(doc), w) }) {
				t.Errorf("%s: its comment does not say %s: who changes it needs to know that before reading its code", dir, what)
			}
		}
	}
}

// What has grown too long to be read in one go is divided before it grows on.
func TestRuleSizes(t *testing.T) {
	const maxFile, maxFunc, maxPackage = 800, 100, 6000
	packages := map[string]int{}
	for _, f := range ours(parseTree(t)) {
		packages[f.dir] += f.lines
		if f.lines > maxFile {
			t.Errorf("%s has %d lines, more than %d: divide it by what its parts are about", f.name, f.lines, maxFile)
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1; n > maxFunc {
				t.Errorf("%s: %s has %d lines, more than %d: give its steps names", f.at(fn.Pos()), fn.Name.Name, n, maxFunc)
			}
		}
	}
	dirs := make([]string, 0, len(packages))
	for d := range packages {
		dirs = append(dirs, d)
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(packages[b], packages[a]) })
	for _, d := range dirs {
		if packages[d] > maxPackage && largePackages[d] == "" {
			t.Errorf("%s has %d lines, more than %d: it holds more than one thing", d, packages[d], maxPackage)
		}
	}
}

// An exception whose file has gone would excuse whatever comes to bear its name.
func TestRuleExceptionsAreInUse(t *testing.T) {
	for name, list := range map[string]exceptions{"fileWriters": fileWriters, "fileReaders": fileReaders, "exits": exits, "ambient": ambient, "packageState": packageState, "largePackages": largePackages} {
		for where, reason := range list {
			if _, err := os.Stat(where); err != nil || reason == "" {
				t.Errorf("%s: %s: %v, reason %q: remove the exception or give it its reason", name, where, err, reason)
			}
		}
	}
	used := map[string]bool{}
	for _, f := range ours(parseTree(t)) {
		from, _, _ := strings.Cut(strings.TrimPrefix(f.dir, "internal/"), "/")
		for imp := range f.imports {
			if to, ok := strings.CutPrefix(imp, "reprise/internal/"); ok {
				to, _, _ = strings.Cut(to, "/")
				used[from+" → "+to] = true
			}
		}
	}
	for edge := range sideways {
		if !used[edge] {
			t.Errorf("sideways import %s is not there any more: remove it from the list", edge)
		}
	}
}
