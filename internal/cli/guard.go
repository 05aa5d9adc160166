package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/agent/dialect"
	"reprise/internal/config"
	"reprise/internal/guard"
	"reprise/internal/hook/compile"
	"reprise/internal/term"
)

func newGuardCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "guard", Short: "Judge what agents want to run, and see why",
		Long: `Before a tool runs, its call is judged: a command is read whole, and each part of
it is allowed, asked about or refused; the strictest counts. docs/guard.md says how,
and what a guard is not: a sandbox.

What it decided before, and of which command, is in the event log:
reprise events list --type permission.decided`,
	}
	cmd.AddCommand(newGuardCheckCmd(app), newGuardTestCmd(app), newGuardRulesCmd(app), newGuardLearnCmd(app))
	cmd.AddCommand(newGuardQueueCmds(app)...)
	return cmd
}

// guardRules are the rules as they are in force in the current directory.
func (a *App) guardRules() (*guard.Rules, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	r := compile.Guard(home, home.Env, a.Program)
	r.Env = a.Env.Get
	return &r, nil
}

type guardVerdict struct {
	Command  string       `json:"command,omitempty"`
	Tool     string       `json:"tool,omitempty"`
	Cwd      string       `json:"cwd"`
	Mode     string       `json:"mode"`
	Decision string       `json:"decision"`
	Rule     string       `json:"rule,omitempty"`
	Word     string       `json:"word,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	Client   string       `json:"client,omitempty"`
	Answer   string       `json:"answer,omitempty"` // what the client is told
	Tree     []guard.Line `json:"tree,omitempty"`
	Parts    []guard.Part `json:"parts"`
}

func newGuardCheckCmd(app *App) *cobra.Command {
	var client, cwd, tool string
	var asJSON, unattended bool
	cmd := &cobra.Command{
		Use: "check COMMAND", Short: "Explain how a command would be judged here",
		Long: `Explain how a command would be judged here: how the shell reads it, what each part
comes to, and by which rule. Nothing is run. With --tool, the argument is that
tool's input (JSON) instead of a command.`,
		Example: `  reprise guard check -- 'cd sub && ls | xargs cat'
  reprise guard check --tool Write -- '{"file_path":".claude/settings.json"}'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if client != "" {
				if err := clientArg(client); err != nil {
					return err
				}
			}
			dir := app.Env.Dir
			if cwd != "" {
				var err error
				if dir, err = absPath(app, cwd); err != nil {
					return usagef("guard check --cwd: %w", err)
				}
			}
			r, err := app.guardRules()
			if err != nil {
				return err
			}
			r.Explain, r.Unattended = true, r.Unattended || unattended
			text := strings.Join(args, " ")
			v := guardVerdict{Cwd: dir, Mode: guardMode(r), Client: client}
			var got guard.Verdict
			if tool == "" {
				v.Command = text
				got = r.Command(text, dir)
				v.Tree = guard.Tree(text)
			} else {
				ev := dialect.Event{Kind: dialect.ToolBefore, Tool: dialect.ToolKind(tool), ToolName: tool, Input: []byte(text)}
				call := guard.Call{Kind: ev.Tool, Name: tool, Cwd: dir}
				if !json.Valid([]byte(text)) || !ev.Texts(func(n, s string) { call.Texts = append(call.Texts, guard.Text{Name: n, Value: s}) }) {
					return usagef("guard check --tool %s: the argument is no JSON object with the tool's input", tool)
				}
				v.Tool = tool
				got = r.Judge(call)
			}
			v.Decision, v.Rule, v.Word, v.Reason, v.Parts = string(got.Decision), got.Rule, got.Word, got.Reason, got.Parts
			if v.Parts == nil {
				v.Parts = []guard.Part{}
			}
			if client != "" {
				v.Answer = clientAnswer(client, got, r.Unattended)
				if v.Mode != "enforce" && !strings.HasPrefix(v.Answer, "nothing") {
					v.Answer = fmt.Sprintf("nothing: guard.mode is %s; with enforce it would be %s", v.Mode, v.Answer)
				}
			}
			if asJSON {
				return printJSON(app.Out, v)
			}
			printGuardVerdict(app.Out, v, app.Columns)
			if client == "" && r.Unattended && got.Decision == guard.Ask && v.Mode == "enforce" {
				fmt.Fprintln(app.Out, "It would be refused, for nobody is there to be asked.")
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&client, "client", "", "also say what this client would be told: "+strings.Join(dialect.Clients(), ", "))
	f.StringVar(&cwd, "cwd", "", "directory that the command would run in (default: this one)")
	f.StringVar(&tool, "tool", "", "name of the tool, as its client has it (default: a shell)")
	f.BoolVar(&unattended, "unattended", false, "judge as where nobody is there to be asked")
	f.BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func guardMode(r *guard.Rules) string {
	switch {
	case r.Off:
		return "off"
	case r.Warn:
		return "warn"
	}
	return "enforce"
}

// clientAnswer says in words what a client is told before the tool runs.
func clientAnswer(client string, v guard.Verdict, unattended bool) string {
	switch {
	case v.Decision == guard.Deny:
		return "refused, with the reason"
	case v.Decision == guard.Ask && unattended:
		return "refused, for nobody is there to be asked"
	case v.Decision == guard.Ask && client == "claude":
		return "asked: a person decides"
	case v.Decision == guard.Ask:
		return "nothing: its own approval asks"
	}
	return "nothing: its own rules stay in force"
}

func printGuardVerdict(w io.Writer, v guardVerdict, columns int) {
	for _, l := range v.Tree {
		fmt.Fprintf(w, "%s%s  %s\n", strings.Repeat("  ", l.Depth), l.Kind, term.SafeLine(l.Text))
	}
	if len(v.Tree) > 0 {
		fmt.Fprintln(w)
	}
	for _, p := range v.Parts {
		fmt.Fprintf(w, "%-5s  %s%s\n", p.Decision, strings.Repeat("  ", max(p.Depth-1, 0)), term.SafeLine(p.Command))
		if p.Reason != "" && p.Decision != guard.Allow {
			word := ""
			if p.Word != "" {
				word = term.SafeLine(p.Word) + ": "
			}
			// What decides is told whole in the last line, and once is enough.
			decides := string(p.Decision) == v.Decision && p.Rule == v.Rule && p.Word == v.Word && strings.Contains(v.Reason, p.Reason)
			if !decides {
				fmt.Fprintln(w, hung("       ", fmt.Sprintf("%s%s [%s]", word, term.SafeLine(p.Reason), p.Rule), columns))
			}
			if p.Instead != "" && !decides {
				fmt.Fprintf(w, "       would pass: %s\n", term.SafeLine(p.Instead))
			}
			if p.From != "" {
				fmt.Fprintf(w, "       from: %s\n", term.SafeLine(p.From))
			}
		}
	}
	verdict := string(v.Decision)
	switch {
	case v.Reason != "":
		verdict += ": " + term.SafeLine(v.Reason)
	case v.Tool == "" && len(v.Tree) == 0 && len(v.Parts) == 0:
		verdict += ": there is no command in it, and nothing would run"
	}
	fmt.Fprintln(w, term.Wrap("", verdict, "  ", columns))
	if v.Answer != "" {
		fmt.Fprintf(w, "%s is told %s\n", v.Client, v.Answer)
	}
	if v.Mode != "enforce" && !strings.Contains(v.Answer, "guard.mode") {
		fmt.Fprintf(w, "guard.mode is %s: verdicts are not enforced\n", v.Mode)
	}
}

// guardCase is one line of a corpus; what else stands in it is for people.
type guardCase struct {
	ID      string `json:"id"`
	Command string `json:"command"`
	Want    string `json:"want"`
}

const maxCorpusLine = 1 << 20

func newGuardTestCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "test FILE.jsonl", Args: cobra.ExactArgs(1), Short: "Judge each command of a corpus, and compare",
		Long: `Judge each command of a corpus in the current directory and compare with what is
wanted. A line is a JSON object with id, command and want (allow, ask or deny). Each
miss is printed; the last line is "N right, M wrong". A stricter verdict than is
wanted is a miss, too. Nothing is run. The exit code is 1 where anything was wrong.`,
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := app.guardRules()
			if err != nil {
				return err
			}
			cases, err := readCases(app, args[0])
			if err != nil {
				return err
			}
			return runCases(app, r, cases, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func readCases(app *App, name string) ([]guardCase, error) {
	path, err := absPath(app, name)
	if err != nil {
		return nil, usagef("guard test: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, exitWith(ExitNotFound, fmt.Errorf("read the corpus: %w", err))
	}
	defer f.Close()
	var out []guardCase
	s := bufio.NewScanner(f)
	s.Buffer(make([]byte, 0, 64<<10), maxCorpusLine)
	for n := 1; s.Scan(); n++ {
		if strings.TrimSpace(s.Text()) == "" {
			continue
		}
		var c guardCase
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("read the corpus: %s:%d: %w; a line is {\"id\":…,\"command\":…,\"want\":…}", path, n, err)
		}
		if c.Want != "allow" && c.Want != "ask" && c.Want != "deny" {
			return nil, fmt.Errorf("read the corpus: %s:%d: want is %q; write allow, ask or deny", path, n, c.Want)
		}
		if c.ID == "" {
			c.ID = fmt.Sprintf("line %d", n)
		}
		out = append(out, c)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("read the corpus: %s: %w", path, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read the corpus: %s holds no case", path)
	}
	return out, nil
}

type guardMiss struct {
	ID      string `json:"id"`
	Command string `json:"command"`
	Want    string `json:"want"`
	Got     string `json:"got"`
	Reason  string `json:"reason,omitempty"`
}

func runCases(app *App, r *guard.Rules, cases []guardCase, asJSON bool) error {
	misses := []guardMiss{}
	for _, c := range cases {
		v := r.Command(c.Command, app.Env.Dir)
		if string(v.Decision) != c.Want {
			misses = append(misses, guardMiss{c.ID, c.Command, c.Want, string(v.Decision), v.Reason})
		}
	}
	right := len(cases) - len(misses)
	if asJSON {
		if err := printJSON(app.Out, struct {
			Right  int         `json:"right"`
			Wrong  int         `json:"wrong"`
			Misses []guardMiss `json:"misses"`
		}{right, len(misses), misses}); err != nil {
			return err
		}
	} else {
		for _, m := range misses {
			fmt.Fprintf(app.Out, "%s: %s, want %s: %s\n", term.SafeLine(m.ID), m.Got, m.Want, term.SafeLine(m.Command))
			if m.Reason != "" {
				fmt.Fprintf(app.Out, "  %s\n", term.SafeLine(m.Reason))
			}
		}
		fmt.Fprintf(app.Out, "%d right, %d wrong\n", right, len(misses))
	}
	if len(misses) > 0 {
		return exitWithCode(ExitFailure)
	}
	return nil
}

type guardRulesView struct {
	Mode        string        `json:"mode"`
	Profile     string        `json:"profile"`
	ProjectCode string        `json:"project_code"`
	Writes      string        `json:"writes"`
	Roots       []string      `json:"roots"`
	Hosts       []string      `json:"hosts"`
	Branches    []string      `json:"protected_branches"`
	Own         []string      `json:"own"` // reprise's places, which no agent changes
	Rules       []guardRule   `json:"rules"`
	Inert       []string      `json:"inert"` // of the project's file: what would loosen
	BuiltIn     []guard.Named `json:"built_in"`
	Loose       []string      `json:"loosened"`
	Source      string        `json:"settings,omitempty"`
}

type guardRule struct {
	Decision string `json:"decision"`
	Shape    string `json:"shape"`
	From     string `json:"from"`
}

func newGuardRulesCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "rules", Args: cobra.NoArgs, Short: "List the rules that are in force here, and where each comes from",
		RunE: func(*cobra.Command, []string) error {
			r, err := app.guardRules()
			if err != nil {
				return err
			}
			home, err := app.Home()
			if err != nil {
				return err
			}
			v := rulesView(r, home)
			if asJSON {
				return printJSON(app.Out, v)
			}
			return printRules(app, v)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func rulesView(r *guard.Rules, home *config.Home) guardRulesView {
	s := home.Settings.Guard
	v := guardRulesView{
		Mode: s.Mode, Profile: s.Profile, ProjectCode: s.ProjectCode, Writes: s.Writes,
		Roots: list(r.Roots), Hosts: list(r.Hosts), Branches: list(r.Branches), Own: list(r.Own),
		Rules: []guardRule{}, Inert: []string{}, BuiltIn: guard.BuiltIn(), Loose: list(r.Loose), Source: home.Source,
	}
	if len(v.Branches) == 0 {
		v.Branches = guard.UsualBranches()
	}
	for _, rule := range r.List {
		v.Rules = append(v.Rules, guardRule{string(rule.Decision), rule.Shape, rule.From})
	}
	if home.Project != nil && home.Project.Guard != nil {
		for _, k := range home.Project.Guard.Inert {
			v.Inert = append(v.Inert, "guard."+k)
		}
	}
	return v
}

func list(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}

func printRules(app *App, v guardRulesView) error {
	w, source := app.Out, v.Source
	if source == "" {
		source = "defaults; there is no settings file"
	}
	fmt.Fprintf(w, "mode %s, profile %s, project code: %s, writes: %s\n", v.Mode, v.Profile, v.ProjectCode, v.Writes)
	fmt.Fprintf(w, "settings: %s\n", term.SafeLine(source))
	for _, l := range []struct {
		what string
		list []string
	}{{"roots", v.Roots}, {"hosts", v.Hosts}, {"protected branches", v.Branches}, {"reprise's own", v.Own}, {"loosened", v.Loose}} {
		if len(l.list) > 0 {
			fmt.Fprintln(w, wrapList(l.what+": ", l.list, ", ", app.Columns))
		}
	}
	fmt.Fprintln(w)
	table := term.NewTable(app.Style()).MaxWidth(app.Columns)
	for _, r := range v.Rules {
		table.Text(r.Decision, r.Shape, r.From)
	}
	for _, k := range v.Inert {
		table.Text("inert", k+" of the project", "a repository loosens nothing")
	}
	if err := table.Write(w); err != nil {
		return err
	}
	if len(v.Rules)+len(v.Inert) > 0 {
		fmt.Fprintln(w)
	}
	table = term.NewTable(app.Style(), "BUILT IN", "RULE", "WHAT").MaxWidth(app.Columns)
	for _, n := range v.BuiltIn {
		fixed := ""
		if n.Fixed {
			fixed = ", fixed"
		}
		table.Row(string(n.Decision)+fixed, n.Name, n.What)
	}
	return table.Write(w)
}

// wrapList is a list in lines of a width, 0 for one line; what is wider than that by
// itself stands alone.
func wrapList(head string, list []string, between string, width int) string {
	lines, at := []string{head}, term.Width(head)
	for i, item := range list {
		item = term.SafeLine(item)
		if i < len(list)-1 {
			item += between
		}
		if n := term.Width(strings.TrimRight(item, " ")); width > 0 && i > 0 && at+n > width {
			lines = append(lines, "  ")
			at = 2
		}
		lines[len(lines)-1] += item
		at += term.Width(item)
	}
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

var errNoConsent = errors.New("nothing was written; pass --yes to write it without being asked")
