package guard

import (
	"path/filepath"
	"strings"

	"reprise/internal/guard/know"
	"reprise/internal/guard/names"
)

// git judges what its table cannot say: settings on the command line, what a
// push goes over, paths of commands that read files outside the repository.
func (a *analysis) git(p *know.Program, g args, st *state) {
	at := st
	command := p.Name // git's own: stash of git stash list
	for outer := g.outer; outer != nil; outer = outer.outer {
		for _, o := range outer.options {
			switch {
			case o.opt == nil:
				a.give("unknown-option", Ask, o.w.shown(), "it is not known what this option of git does", "leave it out")
			case outer.outer == nil && (o.opt.Name == "-c" || o.opt.Name == "--config-env"):
				a.gitConfig(o)
			case outer.outer == nil && o.opt.Name == "-C":
				at = at.fork()
				a.chdir(o.arg, at) // the directory itself was judged with the words
			default:
				a.judgeOption(o, st)
			}
		}
		if outer.outer != nil {
			command = outer.name
		}
	}
	a.gitIn = at.cwds
	a.repository(command, word{text: g.name}, g.operands, at)
	a.gitFiles(p, g, at)
	a.gitSecrets(command, g, at)
	switch p.Name {
	case "push":
		a.push(g, at)
	case "config", "set", "unset":
		a.gitSet(g)
	}
}

// gitPlace is the state of the directory that git works in: what -C says counts for all
// files that come behind it. What is wrong with that directory is said where git is judged.
func (a *analysis) gitPlace(g *args, st *state) *state {
	if g.root() != "git" || g.outer == nil {
		return st
	}
	at, n := st, len(a.parts)
	top := g.outer
	for top.outer != nil {
		top = top.outer
	}
	for _, o := range top.options {
		if o.opt != nil && o.opt.Name == "-C" {
			at = at.fork()
			a.chdir(o.arg, at)
		}
	}
	a.parts = a.parts[:n]
	return at
}

// pathspec is the path in a word that git takes for one, in the spelling in which it
// counts, and whether it leaves out what it names.
func pathspec(text string, g args) (path string, out bool) {
	folded := false
	switch {
	case strings.HasPrefix(text, ":("):
		words, rest, ok := strings.Cut(text[2:], ")")
		if !ok {
			return text, false
		}
		path, out, folded = rest, strings.Contains(words, "exclude"), strings.Contains(words, "icase")
	case strings.HasPrefix(text, ":"):
		path = strings.TrimLeft(text[1:], "/!^:")
		out = strings.ContainsAny(text[:len(text)-len(path)], "!^")
	default: // REVISION:PATH
		path = text[strings.LastIndexByte(text, ':')+1:]
	}
	for outer := g.outer; outer != nil; outer = outer.outer {
		folded = folded || outer.has("--icase-pathspecs")
	}
	if folded {
		path = strings.ToLower(path)
	}
	return path, out
}

// changes reports whether a command of git changes more than it reads.
func changes(p *know.Program) bool {
	switch p.Name {
	case "add", "stage", "commit":
		return true
	}
	return p.Base == know.Write || p.Base == know.Delete || p.Base == know.Ask || p.Base == know.Config
}

// gitFiles judges what the table cannot say of operands: each may be a path or
// a name of the repository's history.
func (a *analysis) gitFiles(p *know.Program, g args, st *state) {
	if changes(p) {
		for _, dir := range st.cwds {
			if a.root(dir) == "" {
				a.outside(word{text: g.name}, dir, use{})
				break
			}
		}
	}
	if g.has("--no-index") {
		a.secretsOf(&g, st)
	}
	content := showsContent(p, g)
	a.gitNamed(p, g, st)
	if p.Name == "add" || p.Name == "stage" {
		a.gitForced(g, st)
	}
	for _, w := range g.operands {
		if strings.HasPrefix(strings.ToLower(w.text), "ext::") {
			a.give("command-as-address", Deny, w.shown(), "git takes this address for a command and runs it", "use https")
		}
		if g.has("--no-index") {
			a.path(w, use{read: true}, st)
			continue
		}
		text, out := pathspec(w.text, g)
		for _, base := range a.bases(text, st) {
			q := a.physical(base, text)
			bad, what := a.protected(q, use{})
			switch {
			case content && (names.Secret(q) != "" || strings.ContainsAny(text, "*?[") && names.Aimed(text)) && !out:
				a.reads(w.shown())
				kind := names.Secret(q)
				if kind == "" {
					kind = "what holds secrets"
				}
				a.give("reads-secret", Ask, w.shown(), "it shows or takes in "+kind, "leave it out")
			case bad && (p.Base == know.Write || p.Base == know.Delete):
				a.give("protected-file", Deny, w.shown(), "it changes "+what, "leave these files to the user")
			case p.Name == "diff" && a.root(q) == "" && (filepath.IsAbs(text) || strings.Contains(text, "..")):
				// With a path outside the repository it compares any two files.
				a.outside(w, q, use{read: true})
			}
		}
	}
}

// gitForced judges git add -f, which takes in what the project has git pass over: secrets,
// as a rule. Files that are named one by one are judged by their names.
func (a *analysis) gitForced(g args, st *state) {
	if !g.has("-f") && !g.has("--force") || g.has("-n") || g.has("--dry-run") {
		return
	}
	many := len(g.operands) == 0
	for _, w := range g.operands {
		text, _ := pathspec(w.text, g)
		many = many || !w.known() || text == "" || strings.ContainsAny(w.text, "*?[") || strings.HasPrefix(w.text, ":")
		for _, base := range a.bases(text, st) {
			many = many || isDir(a.physical(base, text))
		}
	}
	if many {
		a.give("needs-a-person", Ask, "-f", "it takes in files that the project has git pass over, secrets among them", "leave -f out, or name the files")
	}
}

// gitNamed judges files of the history that stand in an option, or that git is told by
// its standard input.
func (a *analysis) gitNamed(p *know.Program, g args, st *state) {
	shown := func(w word, text string) {
		if i := strings.LastIndexByte(text, ':'); i >= 0 && names.Secret("/"+text[i+1:]) != "" {
			a.reads(w.shown())
			a.give("reads-secret", Ask, w.shown(), "it shows what holds secrets", "leave it out")
		}
	}
	for _, o := range g.options {
		if o.opt != nil && o.opt.Name == "-L" {
			shown(o.arg, o.arg.text)
		}
	}
	if p.Name == "cat-file" && st.in.fixed {
		for _, l := range strings.Fields(st.in.text) {
			shown(word{text: l, src: l}, l)
		}
	}
	if p.Name == "cat-file" && g.has("--batch") && (!st.in.fixed || g.has("--batch-all-objects")) {
		a.give("dynamic-path", Ask, g.name, "which files of the history it shows is only known when it runs, and secrets may be among them", "name the file, as in git show HEAD:FILE")
	}
}

// showsContent reports whether a command of git shows what files hold, or takes it
// into the repository.
func showsContent(p *know.Program, g args) bool {
	switch p.Name {
	case "show", "diff", "cat-file", "grep", "blame", "annotate", "add", "stage", "commit", "diff-tree", "diff-index", "diff-files", "archive", "format-patch":
		return true
	case "log", "whatchanged", "reflog":
		return g.has("-p") || g.has("-u") || g.has("--patch") || g.has("-U") || g.has("--unified") || g.has("-L")
	}
	return false
}

// gitConfig judges -c NAME=VALUE: of settings, those count as harmless that only
// say how things look, and by whom they are.
func (a *analysis) gitConfig(o option) {
	name, v, _ := strings.Cut(o.arg.text, "=")
	name = strings.ToLower(name)
	switch {
	case !o.arg.known() && strings.Contains(name, unknown):
		a.give("dynamic-option", Ask, o.arg.shown(), "which setting this is is only known when it runs", "write it out")
	case name == "core.hookspath" || strings.HasPrefix(name, "core.hookspath"):
		a.give("refused-option", Deny, o.arg.shown(), "it switches off or replaces the repository's checks", "leave it out")
	case strings.HasPrefix(name, "protocol.") && strings.Contains(name, "allow"):
		a.give("command-as-address", Deny, o.arg.shown(), "it lets addresses be commands", "leave it out")
	case o.opt.Name == "--config-env":
		a.give("option-config", Ask, o.arg.shown(), "it gives git a setting that is not seen", "leave it out")
	case strings.HasPrefix(name, "color."), strings.HasPrefix(name, "advice."), name == "core.quotepath", name == "core.abbrev", name == "user.name", name == "user.email", name == "log.date", name == "log.decorate", name == "log.showsignature", name == "diff.algorithm", name == "diff.renames", name == "diff.mnemonicprefix", name == "diff.noprefix", name == "commit.gpgsign" && v == "false", name == "tag.gpgsign" && v == "false", name == "core.pager" && (v == "" || v == "cat"), name == "safe.directory", name == "init.defaultbranch", name == "column.ui", name == "status.short", name == "status.showuntrackedfiles":
	default:
		a.give("option-config", Ask, o.arg.shown(), "it gives git a setting, which may name a program to run", "leave it out")
	}
}

// gitSet judges git config: to read is fine, to change what decides about hooks
// and programs is not.
func (a *analysis) gitSet(g args) {
	if len(g.operands) == 0 {
		return
	}
	key := strings.ToLower(g.operands[0].text)
	writes := len(g.operands) > 1 && !g.has("--get") && !g.has("--get-all") && !g.has("--get-regexp") && !g.has("--get-urlmatch") && !g.has("--get-color") && !g.has("--get-colorbool")
	writes = writes || g.has("--add") || g.has("--replace-all") || g.has("--unset") || g.has("--unset-all")
	if !writes && g.outer != nil && g.outer.name == "git" {
		return
	}
	for _, bad := range [...]string{"core.hookspath", "core.fsmonitor", "core.sshcommand", "core.pager", "core.editor", "core.askpass", "core.gitproxy", "core.alternaterefscommand", "credential", "filter.", "diff.external", "alias.", "protocol.", "include.", "includeif.", "url.", "gpg.", "uploadpack.", "receive.", "remote.", "mergetool.", "difftool.", "sequence.editor", "pager.", "http.proxy"} {
		if strings.HasPrefix(key, bad) || strings.HasPrefix(key, "diff.") && strings.HasSuffix(key, ".command") || strings.HasSuffix(key, ".textconv") {
			a.give("git-settings", Deny, g.operands[0].shown(), "the setting names a program, or decides which checks run", "let the user set it")
			return
		}
	}
	if writes {
		a.give("changes-settings", Ask, g.operands[0].shown(), "it changes git's settings", "let the user set it")
	}
}

// push judges what a push goes over.
func (a *analysis) push(g args, st *state) {
	force := g.has("-f") || g.has("--force") || g.has("--force-with-lease")
	gone := g.has("-d") || g.has("--delete")
	refs := g.operands
	if len(refs) > 0 {
		refs = refs[1:]
	}
	deny := func(w word, what string) {
		a.give("push-over-protected", Deny, w.shown(), what, "push to a branch of your own")
	}
	for _, w := range refs {
		ref := w.text
		f := force
		if strings.HasPrefix(ref, "+") {
			f, ref = true, ref[1:]
		}
		src, dst, colon := strings.Cut(ref, ":")
		if !colon {
			dst = src
		}
		if dst == "HEAD" || dst == "@" {
			dst = a.branch(st)
		}
		dst = strings.TrimPrefix(strings.TrimPrefix(dst, "refs/"), "heads/")
		switch {
		case f && colon && src == "" && dst == "":
			deny(w, "it pushes over every branch that both have, protected ones among them")
		case !w.known() && (f || gone):
			a.give("dynamic-option", Ask, w.shown(), "which branch this goes over is only known when it runs", "write it out")
		case (gone || colon && src == "") && a.r.protectedBranch(dst):
			deny(w, "it removes the protected branch "+shown(dst))
		case f && a.r.protectedBranch(dst), f && strings.Contains(dst, "*"):
			deny(w, "it pushes over the protected branch "+shown(dst))
		}
	}
	if len(refs) == 0 && force {
		if a.branch(st) != "" || g.has("--all") || g.has("--branches") {
			deny(word{text: "--force"}, "it pushes over a protected branch")
		}
	}
}

// branch is the branch that is checked out where it is a protected one, "" where it is
// none or cannot be told. Of several that it may be one that is protected counts.
func (a *analysis) branch(st *state) string {
	if len(st.cwds) != 1 {
		return ""
	}
	for _, g := range a.gitDirs(st.cwds[0]) {
		name, ok := strings.CutPrefix(firstLine(filepath.Join(g.own, "HEAD")), "ref: refs/heads/")
		if ok && a.r.protectedBranch(name) {
			return name
		}
	}
	return ""
}

// gitTop is the top of the working tree that a directory is in, "" where there is
// none, or it cannot be told for certain.
func (a *analysis) gitTop(dir string) string {
	if found := a.gitDirs(dir); len(found) == 1 && found[0].sure {
		return found[0].top
	}
	return ""
}
