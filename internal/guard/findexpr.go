package guard

import (
	"path/filepath"
	"strconv"
	"strings"

	"reprise/internal/guard/know"
)

// truth is what is known of a condition.
type truth int8

const (
	no truth = iota - 1
	maybe
	yes
)

// expression is find's, as far as it tells which links are listed, and into which
// directories it does not go. The language is that of find(1).
type expression struct {
	words  []word
	levels int  // below what it is given
	late   bool // directories come after what is in them: nothing is pruned

	at     int
	dir    bool   // it is asked about a directory, and not about a link
	file   bool   // it is asked about files in place of links
	path   string // that it is asked about
	beyond bool   // any link below path is meant
	pruned bool
	acts   bool // something in it says what to do with a name; else those are listed for which it holds
	out    bool // that is come to
}

// findExpression takes find's words apart: its conditions and its directories.
func findExpression(argv []word) (e *expression, dirs []word) {
	e = &expression{levels: walkForever}
	words := argv[1:]
	for len(words) > 0 {
		t := words[0].text
		if t == "-H" || t == "-L" || t == "-P" || t == "--" || strings.HasPrefix(t, "-O") {
			words = words[1:]
		} else if t == "-D" && len(words) > 1 {
			words = words[2:]
		} else {
			break
		}
	}
	for len(words) > 0 && !strings.HasPrefix(words[0].text, "-") && words[0].text != "!" && words[0].text != "(" {
		dirs, words = append(dirs, words[0]), words[1:]
	}
	if len(dirs) == 0 {
		dirs = []word{{text: "."}}
	}
	e.words = words
	e.list(yes) // for the options among the conditions
	return e, dirs
}

// lists reports whether a link at a path may be listed.
func (e *expression) lists(path string) bool {
	e.path, e.dir, e.beyond = path, false, false
	return e.listed()
}

// skips reports whether nothing below a directory is listed.
func (e *expression) skips(path string) bool {
	e.at, e.path, e.dir, e.beyond, e.pruned = 0, path, true, false, false
	e.list(yes)
	if e.pruned && !e.late {
		return true
	}
	e.dir, e.beyond = false, true // a link anywhere below it
	return !e.listed()
}

// listed reports whether what it is asked about may be written out, or given to a
// command.
func (e *expression) listed() bool {
	e.at, e.acts, e.out = 0, false, false
	v := e.list(yes)
	return e.out || !e.acts && v > no
}

// list is conditions with -o or a comma between them; reach says whether it comes
// to them at all.
func (e *expression) list(reach truth) truth {
	v := e.both(reach)
	for e.at < len(e.words) {
		switch e.words[e.at].text {
		case "-o", "-or":
			e.at++
			v = max(v, e.both(min(reach, -v)))
		case ",":
			e.at++
			v = max(v, e.both(reach))
		default:
			return v
		}
	}
	return v
}

// both is conditions of which each has to hold.
func (e *expression) both(reach truth) truth {
	v := yes
	for e.at < len(e.words) {
		switch e.words[e.at].text {
		case "-o", "-or", ",", ")":
			return v
		case "-a", "-and":
			e.at++
		default:
			v = min(v, e.one(min(reach, v)))
		}
	}
	return v
}

func (e *expression) one(reach truth) truth {
	w := e.words[e.at]
	e.at++
	switch w.text {
	case "!", "-not":
		if e.at < len(e.words) {
			return -e.one(reach)
		}
		return maybe
	case "(":
		v := e.list(reach)
		e.at++ // its end
		return v
	case "-exec", "-execdir", "-ok", "-okdir":
		for e.at < len(e.words) && e.words[e.at].text != ";" && !(e.words[e.at].text == "+" && e.words[e.at-1].text == "{}") {
			e.at++
		}
		e.at++
		e.acts, e.out = true, e.out || reach > no
		return maybe
	}
	p := know.Find("find").Opt(w.text)
	var arg word
	if p != nil && p.Arg == know.Required && e.at < len(e.words) {
		arg = e.words[e.at]
		e.at++
	}
	return e.holds(w.text, arg, reach)
}

// holds is one condition.
func (e *expression) holds(name string, arg word, reach truth) truth {
	switch name {
	case "-depth", "-d", "-delete":
		e.late = true
		return yes
	case "-maxdepth":
		if n, err := strconv.Atoi(arg.text); err == nil {
			e.levels = min(n, walkForever)
		}
		return yes
	case "-print", "-print0", "-printf":
		e.acts, e.out = true, e.out || reach > no
		return yes
	case "-true", "-mount", "-xdev", "-ls": // what -ls writes is not taken for names
		return yes
	case "-false":
		return no
	case "-prune":
		e.pruned = e.pruned || reach == yes && !e.beyond
		return yes
	}
	switch {
	case !arg.known() || arg.text == "":
		return maybe
	case name == "-type" && e.file && !e.dir:
		if strings.Contains(arg.text, "f") {
			return yes
		} else if !strings.Contains(arg.text, "d") {
			return no
		}
		return maybe // the name of a directory that a file is in
	case name == "-type" && !e.dir:
		if strings.Contains(arg.text, "l") {
			return yes
		}
		return no
	case name == "-name" && !e.beyond:
		return fnmatch(arg.text, filepath.Base(e.path))
	case name == "-iname" && !e.beyond:
		return fnmatch(strings.ToLower(arg.text), strings.ToLower(filepath.Base(e.path)))
	case name == "-path" || name == "-wholename":
		if !e.beyond {
			return fnmatch(arg.text, e.path)
		}
		if strings.HasSuffix(arg.text, "/*") && fnmatch(arg.text, e.path+"/") == yes {
			return yes // and so does any longer name
		}
	}
	return maybe
}

// fnmatch compares a name with a pattern as find does: * stands for slashes, too.
func fnmatch(pattern, name string) truth {
	if strings.ContainsAny(pattern, `[\`) || strings.Contains(name, unknown) {
		return maybe
	}
	flat := strings.NewReplacer("/", "\x01", "[", "\x02", `\`, "\x03")
	if ok, _ := filepath.Match(strings.ReplaceAll(pattern, "/", "\x01"), flat.Replace(name)); ok {
		return yes
	}
	return no
}
