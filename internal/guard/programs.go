package guard

import (
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/guard/know"
)

// remote reports whether tar takes an archive's name for one on another machine.
func remote(name string) bool {
	host, _, ok := strings.Cut(name, ":")
	return ok && !strings.Contains(host, "/")
}

// curlFormat judges what curl is to write of a transfer: a newer one writes it into the
// file of %output{FILE}, and takes the format itself out of a file after @.
func (a *analysis) curlFormat(_ *know.Program, g args, st *state) {
	loud := g.has("-v") || g.has("--verbose") || g.has("--trace") || g.has("--trace-ascii") || g.has("-L") || g.has("--location") || g.has("--location-trusted")
	for _, o := range g.options {
		if o.opt != nil && o.given {
			a.curlFile(o, st)
			if loud && o.arg.secret {
				a.give("reads-secret", Ask, o.arg.shown(), "curl prints what it sends, or sends it on to where it is led", "leave -v and -L out")
			}
		}
		if o.opt == nil || o.opt.Name != "-w" && o.opt.Name != "--write-out" {
			continue
		}
		if !o.arg.known() || strings.HasPrefix(o.arg.text, "@") || strings.Contains(o.arg.text, "%output") {
			a.give("option-config", Ask, o.w.shown(), "the format may name a file that curl writes", "write the format out, without %output")
		}
	}
}

// curlFile judges options of curl whose text may be a file's name after @, which is sent.
func (a *analysis) curlFile(o option, st *state) {
	text := o.arg.text
	switch o.opt.Name {
	case "-H", "--header":
		if !strings.HasPrefix(text, "@") && !strings.HasPrefix(text, unknown) {
			return
		}
	case "--url-query":
		if !strings.Contains(text, "@") && o.arg.known() {
			return
		}
	default:
		return
	}
	_, file, _ := strings.Cut(text, "@")
	a.path(word{text: file, src: o.arg.src, made: o.arg.made, origin: o.arg.origin}, use{read: true}, st)
	a.give("needs-a-person", Ask, o.w.shown(), "it may send what a file holds", "write the text out")
}

// readsAddresses judges programs that take an address where others take a file.
func (a *analysis) readsAddresses(_ *know.Program, g args, _ *state) {
	for i, w := range g.operands {
		a.addressed(w)
		if g.name == "top" && i > 0 {
			a.processOptions(w) // they are given to ps
		}
	}
	for at := &g; at != nil; at = at.outer {
		for _, o := range at.options {
			a.addressed(o.arg)
		}
	}
}

// listedHosts judges a file of addresses that are asked beside those in the command:
// nothing is known of them.
func (a *analysis) listedHosts(_ *know.Program, g args, _ *state) {
	for _, o := range g.options {
		if o.opt == nil {
			continue
		}
		switch name := o.opt.Name; {
		case g.name == "wget" && (name == "-i" || name == "--input-file"), g.name != "wget" && name == "-f":
			a.give("network", Ask, o.w.shown(), "it reaches the machines that a file names", "name them in the command")
		}
	}
}

// startsOf are the directories that find begins in: where none is named, it is the one
// that it is in.
func startsOf(argv []word) []word {
	list := argv[1:]
	for len(list) > 0 && (list[0].text == "-H" || list[0].text == "-L" || list[0].text == "-P") {
		list = list[1:]
	}
	n := slices.IndexFunc(list, func(w word) bool { return strings.HasPrefix(w.text, "-") || w.text == "(" || w.text == "!" })
	if n < 0 {
		n = len(list)
	}
	if n == 0 {
		return []word{{text: ".", src: "."}}
	}
	return list[:n]
}

// unconditional reports whether find goes on to what it does with whatever it finds, or
// with every file.
func unconditional(argv []word) bool {
	for i, w := range argv {
		switch w.text {
		case "-delete", "-depth", "-d", "-print", "-print0", "-xdev", "-mount", "-true", "-H", "-L", "-P":
			continue
		case "-type":
			if i+1 < len(argv) && strings.Contains(argv[i+1].text, "f") {
				continue
			}
		case "-mindepth":
			if i+1 < len(argv) && argv[i+1].text == "1" {
				continue
			}
		}
		if strings.HasPrefix(w.text, "-") || w.text == "!" || w.text == "(" {
			return false
		}
	}
	return true
}

// jq judges jq, some of whose options take two arguments: a name, and a value or a
// file.
func (a *analysis) jq(argv []word, st *state) source {
	plain := []word{argv[0]}
	for i := 1; i < len(argv); i++ {
		switch w := argv[i]; w.text {
		case "--arg", "--argjson", "--slurpfile", "--rawfile":
			if i+2 >= len(argv) {
				a.give("unknown-option", Ask, w.shown(), w.text+" lacks its arguments", "write them out")
				break
			}
			if argv[i+1].several() || argv[i+2].several() {
				a.give("dynamic-option", Ask, w.shown(), "how many words follow is only known when it runs", "put them in double quotes")
			}
			if strings.HasSuffix(w.text, "file") {
				a.path(argv[i+2], use{read: true}, st)
			}
			i += 2
		case "--":
			plain = append(plain, argv[i:]...)
			i = len(argv)
		default:
			plain = append(plain, w)
		}
	}
	return a.known(know.Find(argv[0].text), plain, st)
}

// terminal judges stty: to look is fine.
func (a *analysis) terminal(argv []word, st *state) source {
	for _, w := range argv[1:] {
		switch w.text {
		case "size", "speed", "-a", "--all", "-g":
		default:
			return a.known(know.Find("stty"), argv, st)
		}
	}
	return source{there: true}
}

// operandsOf judges operands by what only their text tells.
func (a *analysis) operandsOf(_ *know.Program, g args, st *state) {
	for i, w := range g.operands {
		switch g.name {
		case "gofmt", "goimports", "gofumpt":
			if g.has("-w") {
				a.path(w, use{}, st)
			}
		case "date":
			if !strings.HasPrefix(w.text, "+") {
				a.give("needs-a-person", Ask, w.shown(), "it sets the clock", "write + before a format")
			}
		case "ar", "jar", "nm", "objdump", "readelf", "size", "strings", "addr2line", "c++filt", "otool":
			if strings.HasPrefix(w.text, "@") {
				a.give("option-config", Ask, w.shown(), "it takes its options from a file", "write the options out")
			}
		case "xmllint":
			a.addressed(w)
		case "man", "info":
			if strings.Contains(w.text, "/") || !w.known() {
				a.path(w, use{read: true}, st)
				a.give("needs-a-person", Ask, w.shown(), "a page may have other files shown in it, wherever they lie", "read it with cat")
			}
		case "ps":
			if i == 0 || !takesNext(g.operands[i-1].text) {
				a.processOptions(w)
			}
			a.processFields(w)
		case "getent":
			if i == 0 {
				a.database(w)
			}
		case "ldd":
			if _, ok := a.installed(w.text, st); !ok {
				a.projectCode(w, "it may run the program")
			}
		}
	}
	for _, o := range g.options {
		switch {
		case (g.name == "ar" || g.name == "jar") && strings.HasPrefix(o.arg.text, "@"):
			a.give("option-config", Ask, o.w.shown(), "it takes its options from a file", "write the options out")
		case g.name == "xmllint" && o.given:
			a.addressed(o.arg)
		case g.name == "objdump" && o.opt != nil && (o.opt.Name == "-S" || o.opt.Name == "--source"):
			a.give("needs-a-person", Ask, o.w.shown(), "it prints the files that a program says it was made from, wherever they lie", "leave it out")
		case g.name == "ps":
			a.processOptions(o.w)
			a.processFields(o.arg)
			if !strings.HasPrefix(o.w.text, "-") && !takesNext(o.w.text) {
				a.processOptions(o.arg) // ps u takes no argument
			}
		}
	}
	switch g.name {
	case "ps":
		a.aimed(nil, g, st)
	case "npx", "bunx", "pnpx":
		a.packagedAgent(st)
	}
}

// asksGit has the settings of a repository judged for a command of go that asks git
// about it: go list says which commit a program is made from, and has git look whether
// all of it is committed.
func (a *analysis) asksGit(p *know.Program, g args, st *state) {
	switch p.Name {
	case "list", "doc", "why":
		for _, w := range g.operands {
			// With -m a name without a version is one of the modules that are required.
			if !g.has("-m") || !w.known() || strings.Contains(w.text, "@") {
				a.packaged(w, st)
			}
		}
	}
	a.goWords(&g, st)
	if p.Name == "vet" {
		a.compiled(word{text: g.root()}, st)
	}
	if p.Name != "list" || g.has("-m") {
		return
	}
	at := st
	for _, o := range g.options {
		if o.opt != nil && o.opt.Name == "-C" {
			at = at.fork()
			a.chdir(o.arg, at)
		}
	}
	a.repository("status", word{text: g.root()}, nil, at)
}

// addressed is for what a program takes for a file or for an address.
func (a *analysis) addressed(w word) {
	if !strings.Contains(w.text, "://") {
		return
	}
	a.reaches(w.text)
	if !w.known() || !a.r.hostAllowed(hostOf(w.text)) {
		a.give("network", Ask, w.shown(), "it reads from another machine", "have the user add the host to guard.hosts")
	}
}

// commandsBefore judges fc: with -l it lists what was typed before, and else runs it, has
// it edited, or in zsh writes it into a file.
func (a *analysis) commandsBefore(argv []word, st *state) source {
	lists := false
	for _, w := range argv[1:] {
		letters, option := strings.CutPrefix(w.text, "-")
		if strings.Trim(letters, "0123456789") == "" && letters != "" {
			continue // which of them
		}
		if !w.known() || option && strings.Trim(letters, "lnr") != "" || !option && !lists {
			return a.asked(argv, st)
		}
		lists = lists || option && strings.Contains(letters, "l")
	}
	if !lists {
		return a.asked(argv, st)
	}
	return source{there: true}
}

// inspects reports whether a command of docker is to show of a container what the
// format names, and that is not its environment.
func (g *args) inspects(p *know.Program) bool {
	if p.Name != "inspect" || g.outer == nil || g.root() == "git" {
		return false
	}
	some := false
	for _, o := range g.options {
		if o.opt == nil || o.opt.Name != "-f" && o.opt.Name != "--format" {
			continue
		}
		some = true
		for i, part := range strings.Split(o.arg.text, "{{") {
			field, _, ok := strings.Cut(part, "}}")
			if i > 0 && !(ok && shownField(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(field), "json ")))) {
				return false
			}
		}
		if !o.arg.known() {
			return false
		}
	}
	return some
}

// shownField reports whether a field of what docker knows holds no secret.
func shownField(field string) bool {
	if strings.ContainsAny(field, " \t\n|()\"`$") {
		return false
	}
	for _, name := range [...]string{".State", ".Name", ".Id", ".Image", ".Created", ".RestartCount", ".NetworkSettings", ".Mounts", ".Config.Image", ".Config.Labels", ".RepoTags", ".Size", ".Os", ".Architecture"} {
		if rest, ok := strings.CutPrefix(field, name); ok && (rest == "" || rest[0] == '.') {
			return true
		}
	}
	return false
}

// stores judges what openssl takes for a file: a word with a scheme is a key or a
// certificate in another place, which an engine is loaded for or a machine is asked.
func (a *analysis) stores(_ *know.Program, g args, _ *state) {
	list := g.operands
	for _, o := range g.options {
		list = append(list[:len(list):len(list)], o.arg)
	}
	for _, w := range list {
		scheme, _, ok := strings.Cut(w.text, ":")
		switch {
		case !ok || strings.Contains(scheme, "/"):
		case strings.HasPrefix(scheme, "http"):
			a.reaches(w.text)
			a.give("network", Ask, w.shown(), "it reads from another machine", "name a file")
		default:
			a.give("program-runs", Ask, w.shown(), "what stands before the colon may have a library loaded", "write ./ before a file's name")
		}
	}
}

// processTakes are the letters of ps without a dash behind which a word follows.
const processTakes = "oOkpqtUN"

// takesNext reports whether letters of ps end in one that takes the next word.
func takesNext(letters string) bool {
	return letters != "" && letters[0] != '-' && strings.IndexAny(letters, processTakes) == len(letters)-1
}

// processFields judges what ps is to show of each process.
func (a *analysis) processFields(w word) {
	if strings.Contains(strings.ToLower(w.text), "environ") {
		a.give("shows-environment", Ask, w.shown(), "it prints the environment of processes, secrets among it", "leave environ out")
		a.reads("ps")
	}
}

// processOptions looks for ps's e without a dash, which shows environments.
func (a *analysis) processOptions(w word) {
	letters := w.text
	if i := strings.IndexAny(letters, processTakes); i >= 0 {
		letters = letters[:i]
	}
	if letters != "" && letters[0] != '-' && strings.Contains(letters, "e") && strings.Trim(letters, "abcefghjlmnrsuvwxyzACHLMSTVXZ") == "" || w.text == "-E" {
		a.give("shows-environment", Ask, w.shown(), "it prints the environment of processes, secrets among it", "leave the e out, or write -e")
		a.reads("ps")
	}
}

// database judges which of the system's databases getent is to ask.
func (a *analysis) database(w word) {
	switch w.text {
	case "passwd", "group", "services", "protocols", "rpc", "ethers", "aliases", "netgroup", "initgroups", "networks":
	case "shadow", "gshadow":
		a.reads(w.shown())
		a.give("reads-secret", Ask, w.shown(), "it reads secrets of the system", "leave it out")
	default:
		a.reaches("getent")
		a.give("network", Ask, w.shown(), "it may ask a name server", "let the user do it")
	}
}

// packagedAgent judges an agent that is started through a package manager.
func (a *analysis) packagedAgent(st *state) {
	argv := a.cur.argv
	for i, w := range argv[min(1, len(argv)):] {
		name := filepath.Base(w.text)
		switch {
		case w.text == "@anthropic-ai/claude-code":
			name = "claude"
		case strings.HasPrefix(w.text, "-"):
			continue
		}
		if name, _, _ = strings.Cut(name, "@"); agent(name) {
			a.nested(append([]word{{text: name, src: w.src}}, argv[i+2:]...), st)
		}
		return
	}
}
