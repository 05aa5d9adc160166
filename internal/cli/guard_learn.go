package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/guard"
	"reprise/internal/guard/know"
	"reprise/internal/term"
)

// proposal is a rule that what the user approved before speaks for, or what the user
// told a client.
type proposal struct {
	Shape    string    `json:"shape"`
	Approved int       `json:"approved"`       // calls that ran after they were asked about
	Refused  int       `json:"refused"`        // that did not
	Example  string    `json:"example"`        // a command, or the client's own rule
	Rules    []string  `json:"rules"`          // built-in rules that asked
	Last     time.Time `json:"last"`           // when that was; of a client's settings, when they were changed
	From     string    `json:"from,omitempty"` // the client's settings where it stands
}

func newGuardLearnCmd(app *App) *cobra.Command {
	var logs eventLogs
	var least int
	var write, yes, asJSON bool
	cmd := &cobra.Command{
		Use: "learn", Args: cobra.NoArgs, Short: "Propose rules from what you have approved before, or told Claude Code",
		Long: `Look in the event log for what was asked about and then ran, because you approved
it, and propose rules that would allow it without asking. So are those that you told
Claude Code to run without asking, by permissions.allow of your own settings of it (a
project's never count): the guard asks before Claude Code looks there. Nothing changes
by that: --write puts them under guard.allow of your settings, after you agreed.

Commands that were refused are never proposed, nor what you did not let run, nor what
was asked about because of what it reads: a secret, the environment, a file outside.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			where, err := logs.find(app)
			if err != nil {
				return err
			}
			r, err := app.guardRules()
			if err != nil {
				return err
			}
			list, err := proposals(where, r, least)
			if err != nil {
				return err
			}
			told, err := app.toldClaude(r)
			if err != nil {
				return err
			}
			list = append(list, slices.DeleteFunc(told.rules, func(p proposal) bool {
				return slices.ContainsFunc(list, func(q proposal) bool { return q.Shape == p.Shape })
			})...)
			if asJSON {
				return printJSON(app.Out, list)
			}
			for _, p := range list {
				fmt.Fprintf(app.Out, "%s\n  %s\n", term.SafeLine(p.Shape), term.SafeLine(p.reason()))
			}
			if len(list) == 0 {
				fmt.Fprintln(app.Out, "Nothing to propose: nothing that was asked about ran often enough.")
			}
			told.say(app.Out, r)
			switch {
			case len(list) == 0:
				return nil
			case !write:
				fmt.Fprintln(app.Out, "\nWith --write they become rules of your settings.")
				return nil
			}
			return writeProposals(cmd, app, list, yes)
		},
	}
	logs.flags(app, cmd)
	f := cmd.Flags()
	f.IntVar(&least, "least", 2, "how often something must have been approved")
	f.BoolVar(&write, "write", false, "put the proposed rules into your settings, after asking")
	f.BoolVarP(&yes, "yes", "y", false, "do not ask")
	f.BoolVar(&asJSON, "json", false, "print them for programs")
	return cmd
}

// proposals are what was asked about at least so often and then ran.
func proposals(where []eventLog, r *guard.Rules, least int) ([]proposal, error) {
	type asked struct {
		commands []string
		rule     string
		at       time.Time
	}
	type data struct {
		UseID    string   `json:"use_id"`
		Verdict  string   `json:"verdict"`
		By       string   `json:"by"`
		Rule     string   `json:"rule"`
		Commands []string `json:"commands"`
	}
	waiting := map[string]asked{}
	ran := map[string]bool{}
	for _, l := range where {
		for e, err := range event.Read(l.dir) {
			if line := (*event.LineError)(nil); errors.As(err, &line) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("read the event log: %w", err)
			}
			var d data
			switch e.Type {
			case event.PermissionDecided, event.ToolSucceeded, event.ToolFailed:
				if json.Unmarshal(e.Data, &d) != nil || d.UseID == "" {
					continue
				}
			default:
				continue
			}
			key := e.Client + "\t" + e.Session + "\t" + d.UseID
			switch {
			case e.Type != event.PermissionDecided:
				ran[key] = true
			case d.By == "guard" && d.Verdict == string(guard.Ask):
				waiting[key] = asked{d.Commands, d.Rule, e.TS}
			}
		}
	}
	found := map[string]*proposal{}
	for key, a := range waiting {
		counted := map[string]bool{} // a call that has a shape several times is one approval
		for _, c := range a.commands {
			shape := shapeOf(c, r)
			if aboutReading(a.rule) {
				shape = "" // the next of its kind would read something else
			}
			if shape == "" || counted[shape] {
				continue
			}
			counted[shape] = true
			p := found[shape]
			if p == nil {
				p = &proposal{Shape: shape}
				found[shape] = p
			}
			if !ran[key] {
				p.Refused++
				continue
			}
			p.Approved++
			if a.at.After(p.Last) {
				p.Last, p.Example = a.at, c
			}
			if a.rule != "" && !slices.Contains(p.Rules, a.rule) {
				p.Rules = append(p.Rules, a.rule)
				slices.Sort(p.Rules)
			}
		}
	}
	out := []proposal{}
	for _, p := range found {
		if p.Approved >= least && p.Refused == 0 {
			out = append(out, *p)
		}
	}
	slices.SortFunc(out, func(a, b proposal) int {
		if a.Approved != b.Approved {
			return b.Approved - a.Approved
		}
		return strings.Compare(a.Shape, b.Shape)
	})
	return out, nil
}

// aboutReading reports whether a rule asks because of what is shown or reached, which
// the program's name says nothing of.
func aboutReading(rule string) bool {
	switch rule {
	case "reads-secret", "reads-outside", "shows-environment", "secret-leaves", "network", "changes-settings", "dynamic-path", "dynamic-command", "dynamic-option":
		return true
	}
	return false
}

// shapeOf is the shape that a command was asked about by: its program, the
// subcommand where it has some, and any further words; of what runs code its words as
// they are. "" is for what no rule should allow in general.
func shapeOf(command string, r *guard.Rules) string {
	words := strings.Fields(command)
	if len(words) == 0 || strings.ContainsAny(words[0], "'\"…=$") {
		return ""
	}
	if wordsDiffer(words[0]) {
		return ""
	}
	shape, p := words[:1], know.Find(words[0])
	if p != nil && len(p.Subs) > 0 && len(words) > 1 && p.Sub(words[1]) != nil {
		shape, p = words[:2], p.Sub(words[1])
	}
	if p != nil && p.Base == know.Exec && len(words) > 1 {
		// What runs the project's code is that call and no other: with further words it
		// may be told to run something else.
		for _, w := range words {
			if strings.ContainsAny(w, "'\"…*$;&|<>()`") {
				return ""
			}
		}
		return unlisted(strings.Join(words, " "), r)
	}
	for _, w := range shape {
		if strings.ContainsAny(w, "'\"…*$;&|<>()`") {
			return ""
		}
	}
	return unlisted(strings.Join(shape, " ")+" ...", r)
}

// wordsDiffer reports whether what a program does stands in its words, which differ, so
// that no rule should allow it in general.
func wordsDiffer(program string) bool {
	switch program {
	case "bash", "sh", "zsh", "dash", "ksh", "eval", "sudo", "doas", "env", "xargs", "source", ".", "rm", "ssh", "curl", "wget", "nc", "kill", "pkill", "killall", "dd", "chmod", "chown", "find":
		return true
	}
	return false
}

// unlisted is a shape that no rule has yet, or "".
func unlisted(shape string, r *guard.Rules) string {
	for _, rule := range r.List {
		if rule.Shape == shape {
			return ""
		}
	}
	return shape
}

// writeProposals puts rules into the user's settings.
func writeProposals(cmd *cobra.Command, app *App, list []proposal, yes bool) error {
	home, err := app.Home()
	if err != nil {
		return err
	}
	file := cmp.Or(home.Source, home.Paths.ConfigFile)
	if !yes {
		if !app.InIsTerminal || !app.OutIsTerminal {
			return usagef("nobody can be asked here: %w", errNoConsent)
		}
		fmt.Fprintf(app.Out, "Add these to guard.allow in %s? [y/N] ", term.SafeLine(file))
		line, err := app.ask(cmd.Context())
		if answer := strings.ToLower(strings.TrimSpace(line)); err != nil && line == "" || answer != "y" && answer != "yes" {
			return exitWith(ExitConflict, errNoConsent)
		}
	}
	var shapes []string
	for _, p := range list {
		shapes = append(shapes, p.Shape)
	}
	if err := allowShapes(home, file, shapes); err != nil {
		return err
	}
	fmt.Fprintf(app.Out, "Added %s to %s.\n", count(len(shapes), "rule"), term.SafeLine(file))
	return nil
}

// allowShapes adds rules to guard.allow in the file of settings.
func allowShapes(home *config.Home, file string, shapes []string) error {
	old, err := durable.Read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the rules: %w", err)
	}
	text, ok := addAllowed(string(old), shapes)
	if ok {
		err = config.CheckSettings(home.Env, home.Paths, file, []byte(text))
	}
	if !ok || err != nil {
		return fmt.Errorf("write the rules: guard.allow of %s is not in a form that can be added to; add by hand:\n%s", file, allowLines(shapes, "  "))
	}
	return config.WriteSettings(file, []byte(text))
}

func allowLines(shapes []string, indent string) string {
	var b strings.Builder
	for _, s := range shapes {
		fmt.Fprintf(&b, "%s- %q\n", indent, s)
	}
	return b.String()
}

// addAllowed adds shapes to guard.allow in the text of settings, as few lines of
// it changed as can be; ok is false where it is in a form of one line.
func addAllowed(text string, shapes []string) (string, bool) {
	lines := strings.SplitAfter(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		lines[len(lines)-1] += "\n"
	}
	at, allow := -1, -1
	for i, l := range lines {
		trimmed := strings.TrimRight(l, " \r\n")
		switch {
		case trimmed == "guard:":
			at = i
		case strings.HasPrefix(l, "guard:"):
			return "", false
		case at >= 0 && allow < 0 && strings.TrimSpace(trimmed) == "allow:" && strings.HasPrefix(l, " "):
			allow = i
		case at >= 0 && allow < 0 && strings.HasPrefix(strings.TrimSpace(l), "allow:") && strings.HasPrefix(l, " "):
			return "", false
		case at >= 0 && allow < 0 && l != "" && !strings.HasPrefix(l, " ") && !strings.HasPrefix(l, "#") && trimmed != "":
			// The section is over.
			return strings.Join(slices.Insert(lines, at+1, "  allow:\n"+allowLines(shapes, "    ")), ""), true
		}
	}
	switch {
	case allow >= 0:
		indent := lines[allow][:len(lines[allow])-len(strings.TrimLeft(lines[allow], " "))] + "  "
		if allow+1 < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[allow+1]), "-") {
			next := lines[allow+1]
			indent = next[:len(next)-len(strings.TrimLeft(next, " "))]
		}
		return strings.Join(slices.Insert(lines, allow+1, allowLines(shapes, indent)), ""), true
	case at >= 0:
		return strings.Join(slices.Insert(lines, at+1, "  allow:\n"+allowLines(shapes, "    ")), ""), true
	}
	return strings.Join(lines, "") + "guard:\n  allow:\n" + allowLines(shapes, "    "), true
}
