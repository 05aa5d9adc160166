package guard

import "strings"

// cmdlet is what is known of a command of PowerShell that only looks: how its parameters
// are to be read, and what its words are. Names are in lower case, as it compares none.
type cmdlet struct {
	flags  string // parameters alone
	values string // those that a text or a number follows
	text   bool   // the first word is a text, and no path
	looks  bool   // what files hold is not shown
}

// cmdletOf is what is known of a command by its name.
func cmdletOf(name string) (cmdlet, bool) {
	switch strings.ToLower(name) {
	case "get-content":
		return cmdlet{" -raw ", " -tail -totalcount -head -first -last -encoding -readcount ", false, false}, true
	case "get-childitem":
		return cmdlet{" -recurse -force -name -file -directory -hidden ", " -depth -filter -include -exclude ", false, true}, true
	case "select-string":
		return cmdlet{" -simplematch -casesensitive -list -quiet -notmatch -allmatches -raw -noemphasis ", " -pattern -context -encoding -include -exclude ", true, false}, true
	case "test-path":
		return cmdlet{" -isvalid ", " -pathtype ", false, true}, true
	case "get-location":
		return cmdlet{"", "", false, true}, true
	case "get-item":
		return cmdlet{" -force ", "", false, true}, true
	case "resolve-path":
		return cmdlet{" -relative ", "", false, true}, true
	case "get-filehash":
		return cmdlet{"", " -algorithm ", false, true}, true
	}
	return cmdlet{}, false
}

// cmdletLooks judges one of PowerShell's commands that look, in plain words; it reports
// false where it is none, or something of it is not known.
func (a *analysis) cmdletLooks(argv []word, st *state) bool {
	c, ok := cmdletOf(argv[0].text)
	if !ok {
		return false
	}
	var paths []word
	patterned := !c.text
	for i := 1; i < len(argv); i++ {
		name := strings.ToLower(argv[i].text)
		switch {
		case strings.ContainsAny(name, ":,"): // a drive, env: among them, or a list
			return false
		case !strings.HasPrefix(name, "-"):
			if patterned {
				paths = append(paths, argv[i])
			}
			patterned = true
		case name == "-path" || name == "-literalpath":
			if i++; i == len(argv) || strings.ContainsAny(argv[i].text, ":,") || strings.HasPrefix(argv[i].text, "-") {
				return false
			}
			paths = append(paths, argv[i])
		case strings.Contains(c.values, " "+name+" "):
			if i++; i == len(argv) {
				return false
			}
			patterned = patterned || name == "-pattern"
		case !strings.Contains(c.flags, " "+name+" "):
			return false
		}
	}
	if len(paths) == 0 && !c.looks || !patterned {
		return false // it waits for words
	}
	for _, w := range paths {
		a.path(w, use{read: true, looks: c.looks}, st)
	}
	return true
}
