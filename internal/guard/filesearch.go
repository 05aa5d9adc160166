package guard

import (
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/guard/names"
)

// Tools of clients that read or search many files are given patterns, and what a
// pattern stands for is looked up as a shell's is. Whoever searches the lines of many
// files is asked about only where the names were chosen so.

// search judges a tool that searches files, or lists them.
func (a *analysis) search(c *Call, st *state) {
	var places []string
	for _, t := range c.Texts {
		switch last(t.Name) {
		case "path", "dir_path", "directory", "paths":
			if onlyNames(c.Name) {
				a.file(t.Value, st, use{read: true})
			} else {
				a.searched(t.Value, st)
			}
			for _, base := range a.bases(a.fromHome(t.Value), st) {
				places = append(places, a.physical(base, a.fromHome(t.Value)))
			}
		}
	}
	if len(places) == 0 {
		places = st.cwds
		for _, dir := range places {
			a.file(dir, st, use{read: true})
		}
	}
	if pattern, ok := c.text("pattern"); ok && onlyNames(c.Name) && (filepath.IsAbs(a.fromHome(pattern)) || strings.Contains(pattern, "..")) {
		start, _, _ := strings.Cut(strings.NewReplacer("?", "*", "[", "*", "{", "*").Replace(pattern), "*")
		a.file(start[:strings.LastIndexByte(start, '/')+1], st, use{read: true})
	}
	for _, t := range c.Texts {
		switch last(t.Name) {
		case "glob", "globs", "include", "include_pattern", "file_pattern":
			if name := a.chosen(t.Value, places); name != "" {
				a.give("reads-secret", Ask, t.Value, "it looks into files that hold secrets: "+shown(name), "leave them out")
			}
		}
	}
}

// onlyNames reports whether a tool that searches tells names, and not what is in files.
func onlyNames(tool string) bool {
	switch tool {
	case "Glob", "LS", "list_dir", "list_directory", "glob":
		return true
	}
	return false
}

// searched judges a directory of which a tool shows what is in its files.
func (a *analysis) searched(dir string, st *state) {
	a.file(dir, st, use{read: true})
	text := a.fromHome(dir)
	for _, base := range a.bases(text, st) {
		p := a.physical(base, text)
		home := a.r.Home != "" && inside(Resolve(a.r.Home), p)
		if names.Secret(p+"/x") != "" || a.root(p) == "" && (home || names.HoldsSecrets(p)) {
			a.give("reads-secret", Ask, dir, "it looks into files that hold secrets", "name the directory that is meant")
			return
		}
	}
}

// many judges the patterns by which a tool reads many files.
func (a *analysis) many(c *Call, st *state) {
	if c.Name != "read_many_files" {
		return
	}
	for _, t := range c.Texts {
		switch last(t.Name) {
		case "include", "includes", "paths", "file_paths", "files", "patterns", "pattern":
		default:
			continue
		}
		before := len(a.parts)
		if name := last(t.Name); name != "paths" && name != "file_paths" {
			a.file(t.Value, st, use{read: true}) // the others were judged as files already
		}
		if len(a.parts) > before {
			continue
		}
		for _, base := range a.bases(a.fromHome(t.Value), st) {
			pattern := a.fromHome(t.Value)
			if isDir(a.physical(base, pattern)) {
				pattern = strings.TrimSuffix(pattern, "/") + "/**"
			}
			if name := a.secretFor(pattern, base, false, false); name != "" {
				a.give("reads-secret", Ask, t.Value, "among the files that it reads is "+shown(name)+", "+names.Secret("/"+name), "name what is to be read")
				break
			}
		}
	}
}

// fromHome is a path with the home written out.
func (a *analysis) fromHome(p string) string {
	p = strings.TrimPrefix(p, "file://")
	if a.r.Home != "" && (p == "~" || strings.HasPrefix(p, "~/")) {
		return a.r.Home + p[1:]
	}
	return p
}

// resource judges an address of what a server of tools is to read: it may be a file.
func (a *analysis) resource(uri string, st *state) {
	switch scheme, _, _ := strings.Cut(strings.ToLower(uri), ":"); scheme {
	case "file":
		path := filePath(uri)
		before := len(a.parts)
		a.file(path, st, use{read: true})
		if strings.Contains(path, "%") {
			a.give("reads-outside", Ask, uri, "which file this is, is written in a form that is not read", "name the file")
			return
		}
		for _, base := range a.bases(path, st) {
			if p := a.physical(base, path); a.root(p) == "" && len(a.parts) == before {
				a.give("reads-outside", Ask, uri, "it reads "+shown(p)+", outside the project", "read what is in the project, or have the user add its directory to guard.roots")
			}
		}
	case "http", "https":
		a.address(uri)
	}
}

// filePath is the path that an address of a file has.
func filePath(uri string) string {
	path := uri[len("file:"):]
	if rest, ok := strings.CutPrefix(path, "//"); ok {
		_, path, _ = strings.Cut(rest, "/") // what stands before is a machine
		path = "/" + path
	}
	return path
}

// chosen is a secret that patterns choose by its name, "" where there is none: those
// that ordinary files of the same kind have, too, choose none.
func (a *analysis) chosen(patterns string, places []string) string {
	if p := aims(patterns); p != "" {
		return p
	}
	for _, p := range separate(patterns) {
		for _, at := range places {
			if name := a.secretFor(p, at, true, true); name != "" {
				return name
			}
		}
	}
	return ""
}

// aims is the first of some patterns that is one for secrets, by itself.
func aims(patterns string) string {
	for _, p := range separate(patterns) {
		for _, alt := range alternatives(p) {
			if names.Aimed(strings.ToLower(alt)) {
				return alt
			}
		}
	}
	return ""
}

// separate are the patterns in a text, with blanks and commas between them, but for
// those that leave something out.
func separate(patterns string) []string {
	depth := 0
	list := strings.FieldsFunc(patterns, func(r rune) bool {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		}
		return r == ' ' || r == ',' && depth <= 0
	})
	return slices.DeleteFunc(list, func(p string) bool { return strings.HasPrefix(p, "!") })
}

// secretFor is a secret for which a pattern stands, below a directory. deep says that
// a pattern without a slash is of names at any depth, aimed that one does not count
// that ordinary files fit as well. It has as much to spend as the look for links;
// where that is too little, names that secrets usually have are tried.
func (a *analysis) secretFor(pattern, base string, deep, aimed bool) string {
	for _, p := range alternatives(pattern) {
		p = strings.TrimPrefix(p, "./")
		i := strings.IndexAny(p, "*?[")
		if i < 0 {
			if names.Secret(a.physical(base, p)) != "" || deep && names.Secret("/"+p) != "" {
				return p
			}
			continue
		}
		dir := p[:strings.LastIndexByte(p[:i], '/')+1]
		rest := strings.ToLower(p[len(dir):])
		deepHere := deep && dir == "" && !strings.Contains(rest, "/")
		top := a.physical(base, dir)
		fits := func(rel string) bool {
			if deepHere {
				rel = rel[strings.LastIndexByte(rel, '/')+1:]
			}
			rel = strings.ToLower(rel)
			return fitsAll(rest, rel) && !(aimed && fitsAll(rest, ordinary(rel)))
		}
		found, before := "", a.walked
		a.walked = a.looked
		w := walk{a: a, skip: func(p string) bool { return filepath.Base(p) == ".git" }, see: func(_, q string, _ bool) bool {
			rel := strings.TrimPrefix(strings.TrimPrefix(q, top), "/")
			if fits(rel) && names.Secret(a.leads(q)) != "" {
				found = dir + rel
			}
			return found != ""
		}}
		levels := strings.Count(rest, "/") + 1
		if deepHere || strings.Contains(rest, "**") {
			levels = walkForever
		}
		w.down(top, top, levels)
		if found == "" && a.walked > maxWalk {
			found = usualSecret(fits, top)
		}
		a.looked, a.walked = a.walked, before
		if found != "" {
			return found
		}
	}
	return ""
}

// usualSecret is a name that secrets usually have and that fits a pattern.
func usualSecret(fits func(string) bool, dir string) string {
	for _, name := range names.UsualSecrets() {
		if fits(name) && names.Secret(dir+"/"+name) != "" {
			return name
		}
	}
	return ""
}

// ordinary is the name of a file of the same kind that holds no secret.
func ordinary(rel string) string {
	dir, ext := rel[:strings.LastIndexByte(rel, '/')+1], filepath.Ext(rel)
	if name := dir + "other" + ext; names.Secret("/"+name) == "" {
		return name
	}
	return dir + "other"
}

// fitsAll reports whether a path fits a pattern in which ** stands for any directories.
func fitsAll(pattern, path string) bool {
	return fitsParts(strings.Split(pattern, "/"), strings.Split(path, "/"))
}

func fitsParts(pattern, path []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for i := range len(path) + 1 {
				if len(pattern) == 1 || fitsParts(pattern[1:], path[i:]) {
					return true
				}
			}
			return false
		}
		if len(path) == 0 {
			return false
		}
		if !names.Match(pattern[0], path[0]) {
			return false
		}
		pattern, path = pattern[1:], path[1:]
	}
	return len(path) == 0
}

// maxAlternatives is how many patterns braces are taken for; of more, those count.
const maxAlternatives = 64

// alternatives are the patterns for which one with braces stands.
func alternatives(pattern string) []string {
	list := []string{pattern}
	for i := 0; i < len(list) && len(list) < maxAlternatives; {
		p := list[i]
		from := strings.IndexByte(p, '{')
		to := strings.IndexByte(p[max(from, 0):], '}') + max(from, 0)
		if from < 0 || to <= from {
			i++
			continue
		}
		from = strings.LastIndexByte(p[:to], '{')
		var more []string
		for _, alt := range strings.Split(p[from+1:to], ",") {
			more = append(more, p[:from]+alt+p[to+1:])
		}
		list = slices.Replace(list, i, i+1, more...)
	}
	return list
}
