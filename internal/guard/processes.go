package guard

import (
	"path/filepath"
	"strings"

	"reprise/internal/guard/know"
)

// kill lets go of what this command itself started.
func (a *analysis) kill(argv []word, st *state) source {
	own := len(argv) > 1
	for _, w := range argv[1:] {
		own = own && strings.HasPrefix(w.text, "%") && w.known()
	}
	if own {
		return source{}
	}
	if len(argv) == 3 && argv[1].text == "-0" && (!argv[2].split || argv[2].origin == numbers) && !strings.HasPrefix(argv[2].text, "-") {
		return source{} // it only asks whether a process is there
	}
	return a.known(know.Find("kill"), argv, st)
}

// kills judges who is to be ended.
func (a *analysis) kills(_ *know.Program, g args, _ *state) {
	name := g.name
	if g.has("-l") || g.has("-L") || g.has("--list") || g.has("--table") {
		return
	}
	deny := func(w word, what string) {
		a.give("ends-supervisor", Deny, w.shown(), what, "name a process that this session started")
	}
	for i, o := range g.options {
		if i > 0 && o.w.text == "-1" && name == "kill" {
			deny(o.w, "it ends everything at once")
		}
	}
	for _, w := range g.operands {
		text := strings.ToLower(w.text)
		src := strings.ToUpper(w.src)
		switch {
		case w.process == parentProcess, strings.Contains(src, "PPID"), strings.Contains(src, "CLAUDE_PID"), strings.Contains(src, "REPRISE"):
			deny(w, "it ends the program that watches over this session")
		case name == "kill" && (text == "-1" || text == "1" || text == "0" || text == "-0"):
			deny(w, "it ends everything at once")
		case name != "kill" && strings.Trim(text, ".*^$") == "":
			deny(w, "it ends everything at once")
		case name == "pkill" && hitsOwn(text), name != "kill" && (ownProgram(text) || g.has("-r") && hitsOwn(text)):
			deny(w, "it ends the agent or what watches over it")
		case !w.known() && w.process != ownProcess && w.origin != fewWords:
			if a.ends.Rule == "" {
				a.ends = Part{Command: a.cur.String(), Decision: Deny, Rule: "ends-supervisor", Word: w.shown(), Depth: a.depth}
			}
		}
	}
	for _, o := range g.options {
		switch {
		case o.given && name != "kill" && ownProgram(strings.ToLower(o.arg.text)):
			deny(o.w, "it ends the agent or what watches over it")
		case o.opt != nil && name != "kill" && len(g.operands) == 0 && (strings.EqualFold(o.opt.Name, "-u") || o.opt.Name == "--user" || o.arg.text == "1"):
			deny(o.w, "it ends everything that a user runs")
		}
	}
}

// ownPrograms are the agents, and what watches over them.
func ownPrograms() [5]string { return [...]string{"reprise", "claude", "codex", "gemini", "copilot"} }

func ownProgram(text string) bool {
	for _, n := range ownPrograms() {
		if strings.Contains(text, n) {
			return true
		}
	}
	return false
}

// ownName is the program of reprise's own that goes by a name, "" for any other.
func ownName(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), ".exe")
	switch name {
	case "reprise", "reprise-hook", "reprise-supervise":
		return name
	}
	return ""
}

// ownElsewhere judges a program that is named by a place: where it is reprise by its name, or
// by where a link leads, what reprise may not be told is refused there, too.
func (a *analysis) ownElsewhere(argv []word, st *state) {
	names := []string{filepath.Base(argv[0].text)}
	for _, base := range a.bases(argv[0].text, st) {
		names = append(names, filepath.Base(a.physical(base, argv[0].text)))
	}
	for _, n := range names {
		if own := ownName(n); own != "" {
			before := len(a.parts)
			a.known(know.Find(own), asNamed(own, argv), st)
			a.onlyRefused(before)
			return
		}
	}
}

// asNamed are the words of a command with its program by another name. A word that is known
// counts as one that is written out, wherever it comes from.
func asNamed(name string, argv []word) []word {
	out := append([]word{{text: name, src: argv[0].src}}, argv[1:]...)
	for i := range out {
		out[i].made = out[i].made && !out[i].known()
	}
	return out
}

// hitsOwn reports whether a pattern, as pkill has it, may fit one of the names: its
// letters stand in the name in their order.
func hitsOwn(pattern string) bool {
	parts := strings.FieldsFunc(pattern, func(r rune) bool { return strings.ContainsRune(`.*+?[](){}|^$\\`, r) })
	for _, n := range ownPrograms() {
		rest, all := n, true
		for _, p := range parts {
			i := strings.Index(rest, p)
			if all = i >= 0; !all {
				break
			}
			rest = rest[i+len(p):]
		}
		if all {
			return true
		}
	}
	return false
}

// aimed notes that the processes of agents are looked for. Together with ending
// processes that are only known when it runs that is ending these.
func (a *analysis) aimed(_ *know.Program, g args, _ *state) {
	a.secretPatterns(&g)
	if a.aims.Rule != "" {
		return
	}
	for _, w := range g.operands {
		if ownProgram(strings.ToLower(w.text)) {
			a.aims = Part{Word: w.shown(), Rule: "ends-supervisor"}
			return
		}
	}
	for _, o := range g.options {
		if o.given && ownProgram(strings.ToLower(o.arg.text)) {
			a.aims = Part{Word: o.arg.shown(), Rule: "ends-supervisor"}
			return
		}
	}
}
