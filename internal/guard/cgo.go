package guard

import (
	"bytes"
	"path/filepath"
	"strings"
)

// What bounds the look for sources in which Go's tools take in files of another kind: the
// size of one that is read whole, and of all, in bytes.
// Tests make the second one smaller.
const maxSource = 1 << 20

var maxSources = 32 << 20

// compiled judges what go vet compiles on its way. A Go file with import "C" has a C
// compiler look at what its comment includes, and an assembler's file includes others: what
// these hold comes out in the messages about it. A tree with more sources than are looked
// through counts as one without, for else each large project would be asked about.
func (a *analysis) compiled(w word, st *state) {
	seen := ""
	for _, dir := range st.cwds {
		root := a.root(dir)
		if root == seen { // in none at first
			continue
		}
		seen = root
		before, read := a.walked, 0
		a.walked = 0
		found := ""
		look := walk{a: a, levels: walkForever, skip: func(p string) bool { return filepath.Base(p) == ".git" }, see: func(p, q string, _ bool) bool {
			if read > maxSources {
				return true
			}
			switch ext := filepath.Ext(p); ext {
			case ".swig", ".swigcxx":
				found = p
			case ".go", ".s", ".S":
				data, _ := fileOf(q, maxSource)
				read += len(data)
				if ext == ".go" && importsC(data) || ext != ".go" && includesOut(data) {
					found = p
				}
			}
			return found != ""
		}}
		look.down("", root, look.levels)
		a.walked = before
		if found != "" {
			a.projectCode(w, "it has a compiler take in the files that "+shown(found)+" names")
		}
	}
}

// importsC reports whether a Go file may import "C": the name stands where one of an
// import does, after the word, a bracket or a comment, or at the beginning of a line.
func importsC(data []byte) bool {
	for _, name := range [...]string{`"C"`, "`C`"} {
		for rest := data; ; {
			before, after, ok := bytes.Cut(rest, []byte(name))
			if !ok {
				break
			}
			rest = after
			line := bytes.TrimRight(before, " \t\r")
			at := len(line) == 0 || line[len(line)-1] == '\n' || line[len(line)-1] == ';' || bytes.HasSuffix(line, []byte("import")) || bytes.HasSuffix(line, []byte("*/"))
			if open, bracket := bytes.CutSuffix(line, []byte("(")); bracket {
				at = bytes.HasSuffix(bytes.TrimSpace(open), []byte("import"))
			}
			end := bytes.TrimLeft(after, " \t\r")
			if at && (len(end) == 0 || strings.IndexByte("\n;)/", end[0]) >= 0) {
				return true
			}
		}
	}
	return false
}

// includesOut reports whether an assembler's file includes one by a path.
func includesOut(data []byte) bool {
	for line := range bytes.Lines(data) {
		if i := bytes.Index(line, []byte("include")); i >= 0 && bytes.IndexByte(line, '#') >= 0 && bytes.ContainsAny(line[i:], `/\`) {
			return true
		}
	}
	return false
}
