package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The figures that are kept: what `bench record` writes, `bench compare` looks at and
// docs/benchmarks.md shows between two marks.
const (
	figuresFile = "script/bench/figures.json"
	figuresDoc  = "docs/benchmarks.md"
	figuresFrom = "<!-- figures: written by `go run ./script/bench record` -->\n"
	figuresTo   = "<!-- end of figures -->\n"
)

// How much a figure may differ, as a part of it, without meaning anything: what pairs of
// runs differed by on a machine with and without other work on it.
const (
	noiseCPU   = 0.45
	noisePages = 0.12
	noiseCount = 0.10
)

// figure is one ratio, or one count.
type figure struct {
	Name  string  `json:"name"` // of what is measured, and of what unit
	What  string  `json:"what"`
	Of    string  `json:"of"` // what it is a multiple of, or is counted
	Value float64 `json:"value"`
	Noise float64 `json:"noise"` // a part of the value
}

// kept is the file of figures.
type kept struct {
	V       int      `json:"v"` // 1
	At      string   `json:"at"`
	Machine string   `json:"machine"`
	Figures []figure `json:"figures"`
}

// compareBench is "bench compare" and "bench record": the ratios of whole programs, in one
// run, beside the kept ones or in their place. Beyond the noise of any of them is an error.
func compareBench(record bool, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	n := flags.Int("n", 11, "how often each program is started")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "reprise-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r, err := newRig(dir, *n)
	if err != nil {
		return err
	}
	machine := fmt.Sprintf("%s %s/%s, %d CPUs, medians of %d, load %s", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), *n, load())
	now, err := r.ratios()
	if err != nil {
		return err
	}
	if record {
		data, err := json.MarshalIndent(kept{1, time.Now().UTC().Format(time.DateOnly), machine, now}, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(figuresFile, append(data, '\n'), 0o644); err != nil {
			return err
		}
		return writeFigures()
	}
	was, err := readKept("")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s; kept: %s, %s\n\n", machine, was.At, was.Machine)
	text, beyond := compare(was.Figures, now)
	fmt.Fprint(out, text)
	if len(beyond) > 0 {
		return fmt.Errorf("beyond the noise: %s; where that is meant, `go run ./script/bench record` on a quiet machine", strings.Join(beyond, ", "))
	}
	return nil
}

func readKept(root string) (k kept, err error) {
	data, err := os.ReadFile(filepath.Join(root, figuresFile))
	if err != nil {
		return k, fmt.Errorf("%w (run this from the root of the repository)", err)
	}
	if err := json.Unmarshal(data, &k); err != nil {
		return k, fmt.Errorf("%s: %w", figuresFile, err)
	}
	if k.V != 1 || len(k.Figures) == 0 {
		return k, fmt.Errorf("%s: it has no figures of version 1", figuresFile)
	}
	return k, nil
}

// compare tells by how much figures differ from the kept ones; beyond names those that
// differ by more than their noise, or are missing on one side.
func compare(was, now []figure) (text string, beyond []string) {
	var b strings.Builder
	b.WriteString("| what | of | kept | now | differs by | noise | |\n|---|---|---|---|---|---|---|\n")
	for _, f := range now {
		i := slices.IndexFunc(was, func(w figure) bool { return w.Name == f.Name })
		if i < 0 {
			beyond = append(beyond, f.Name+" (not kept)")
			fmt.Fprintf(&b, "| %s | %s | | %.2f | | | new |\n", f.What, f.Of, f.Value)
			continue
		}
		w := was[i]
		by, verdict := f.Value/w.Value-1, ""
		if math.IsNaN(by) || math.Abs(by) > w.Noise {
			verdict = "**beyond**"
			beyond = append(beyond, fmt.Sprintf("%s (%+.0f %%)", f.Name, 100*by))
		}
		fmt.Fprintf(&b, "| %s | %s | %.2f | %.2f | %+.1f %% | ± %.0f %% | %s |\n", f.What, f.Of, w.Value, f.Value, 100*by, 100*w.Noise, verdict)
	}
	for _, w := range was {
		if !slices.ContainsFunc(now, func(f figure) bool { return f.Name == w.Name }) {
			beyond = append(beyond, w.Name+" (not measured)")
		}
	}
	return b.String(), beyond
}

// figuresTable is the part of the document that the kept figures make.
func figuresTable(k kept) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s:\n\n| what | figure | of | noise |\n|---|---|---|---|\n", k.At, k.Machine)
	for _, f := range k.Figures {
		fmt.Fprintf(&b, "| %s | %.2f | %s | ± %.0f %% |\n", f.What, f.Value, f.Of, 100*f.Noise)
	}
	return b.String()
}

// withFigures is the document with the part between the marks made anew.
func withFigures(doc string, k kept) (string, error) {
	before, rest, ok := strings.Cut(doc, figuresFrom)
	_, after, ok2 := strings.Cut(rest, figuresTo)
	if !ok || !ok2 {
		return "", fmt.Errorf("%s has not the two marks that figures stand between", figuresDoc)
	}
	return before + figuresFrom + "\n" + figuresTable(k) + "\n" + figuresTo + after, nil
}

func writeFigures() error {
	k, err := readKept("")
	if err != nil {
		return err
	}
	doc, err := os.ReadFile(figuresDoc)
	if err != nil {
		return err
	}
	text, err := withFigures(string(doc), k)
	if err != nil {
		return err
	}
	return os.WriteFile(figuresDoc, []byte(text), 0o644)
}

// cost is what one start of a program took: what other work beside it changes little.
type cost struct {
	cpu   time.Duration
	pages int64 // that were touched for the first time
}

// subject is a program that is started again and again.
type subject struct {
	name, what string
	of         string // the subject that it is a multiple of; "" of a yardstick
	run        func() (*os.ProcessState, error)
}

// ratios measures all of them in turns.
func (r *rig) ratios() ([]figure, error) {
	list, err := r.subjects()
	if err != nil {
		return nil, err
	}
	costs := map[string][]cost{}
	for i := range r.n + 1 {
		for _, s := range list {
			state, err := s.run()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.what, err)
			}
			c, ok := spent(state)
			if !ok {
				return nil, errors.New("what processes cost is not known on this system")
			}
			if i > 0 { // the first start reads the program from disk
				costs[s.name] = append(costs[s.name], c)
			}
		}
	}
	middle := func(name string, of func(cost) float64) float64 {
		var all []float64
		for _, c := range costs[name] {
			all = append(all, of(c))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	var out []figure
	for _, s := range list {
		if s.of == "" {
			continue
		}
		of := list[slices.IndexFunc(list, func(o subject) bool { return o.name == s.of })]
		cpu := func(c cost) float64 { return float64(c.cpu) }
		pages := func(c cost) float64 { return float64(c.pages) }
		out = append(out,
			figure{s.name + ".processor", s.what + ", processor time", "× " + of.what, round(middle(s.name, cpu) / middle(s.of, cpu)), noiseCPU},
			figure{s.name + ".pages", s.what + ", pages touched first", "× " + of.what, round(middle(s.name, pages) / middle(s.of, pages)), noisePages})
	}
	git, err := r.gitOfItem()
	if err != nil {
		return nil, err
	}
	return append(out, figure{"item.git", "an item of the loop in a worktree, questions to git", "counted", git, noiseCount}), nil
}

func round(x float64) float64 { return math.Round(x*100) / 100 }

// subjects are the programs that are measured, in a project of their own.
func (r *rig) subjects() ([]subject, error) {
	s, err := r.newShop("ratios")
	if err != nil {
		return nil, err
	}
	if err := s.add("item", 1000); err != nil {
		return nil, err
	}
	if err := writeNotes(filepath.Join(s.home, "memory"), 500); err != nil {
		return nil, err
	}
	if _, err := s.run(r.reprise, "index", "rebuild"); err != nil {
		return nil, err
	}
	program := func(in []byte, args ...string) func() (*os.ProcessState, error) {
		return func() (*os.ProcessState, error) {
			cmd := s.command(args...)
			cmd.Stdin = strings.NewReader(string(in))
			out, err := cmd.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			return cmd.ProcessState, err
		}
	}
	hook := func(event string) func() (*os.ProcessState, error) {
		return program(hookPayload(s.dir, event), r.hook, "claude", event)
	}
	if err := s.planned(hook("PreToolUse")); err != nil {
		return nil, err
	}
	served := func(path string, args ...string) func() (*os.ProcessState, error) {
		return func() (*os.ProcessState, error) {
			p, err := startIn(s.dir, s.env, path, args...)
			if err == nil {
				err = p.handshake()
			}
			if err == nil {
				_, err = p.call("tools/list", map[string]any{})
			}
			if err == nil {
				err = p.end()
			}
			if err != nil {
				return nil, err
			}
			return p.cmd.ProcessState, nil
		}
	}
	return []subject{
		{"empty", "an empty Go program", "", program(nil, r.empty)},
		{"bare", "the SDK's bare server", "", served(r.bare)},
		{"version", "`reprise --version`", "empty", program(nil, r.reprise, "--version")},
		{"mcp", "`reprise mcp` to `tools/list` answered and its end", "bare", served(r.reprise, "mcp")},
		{"before-tool", "`reprise-hook` before a tool", "empty", hook("PreToolUse")},
		{"after-tool", "`reprise-hook` after a tool", "empty", hook("PostToolUse")},
		{"prompt", "`reprise-hook` at a prompt", "empty", hook("UserPromptSubmit")},
		{"session", "`reprise-hook` at a session's start", "empty", hook("SessionStart")},
		{"search", "`reprise recall` over 500 blocks", "version", program(nil, r.reprise, "recall", "w5q w9q w300q")},
		{"queue", "`reprise queue list` of 1,000 items", "version", program(nil, r.reprise, "queue", "list", "--json", "--limit", "50")},
	}, nil
}

// hookPayload is what a client says at an event.
func hookPayload(dir, event string) []byte {
	return fmt.Appendf(nil, `{"session_id":"5a13438d-5a8e-41c4-808c-4bfdd26a2a8d","transcript_path":"/none.jsonl","cwd":%q,"permission_mode":"default","source":"startup","prompt":"w5q w9q please","hook_event_name":%q,"tool_name":"Bash","tool_input":{"command":"go test ./..."},"tool_use_id":"toolu_1","tool_response":{"stdout":"ok","stderr":"","interrupted":false}}`, dir, event)
}

// planned runs a hook until there is a plan for hooks, which lasts once the programs that
// it names are two seconds old.
func (s *shop) planned(hook func() (*os.ProcessState, error)) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if _, err := hook(); err != nil {
			return err
		}
		if plans, _ := filepath.Glob(filepath.Join(s.home, "cache", "hooks", "*.plan")); len(plans) > 0 { // the pattern is right
			return nil
		}
	}
	return errors.New("no plan for hooks was made within a minute")
}

// gitOfItem is how often git is started for an item of the loop that has a worktree: counted
// by a stand-in on the PATH, over what a loop without items starts.
func (r *rig) gitOfItem() (float64, error) {
	const items = 8
	s, err := r.newShop("git")
	if err != nil {
		return 0, err
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return 0, err
	}
	bin, log := filepath.Join(r.dir, "git", "bin"), filepath.Join(r.dir, "git", "log")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(bin, "git"), fmt.Appendf(nil, "#!/bin/sh\necho x >> %q\nexec %q \"$@\"\n", log, git), 0o700); err != nil {
		return 0, err
	}
	s.env = slices.DeleteFunc(s.env, func(v string) bool { return strings.HasPrefix(v, "PATH=") })
	s.env = append(s.env, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	loop := func() (int, error) {
		if err := os.WriteFile(log, nil, 0o600); err != nil {
			return 0, err
		}
		if _, err := s.run(r.reprise, "loop", "run", "--agent", "script", "--until-empty", "--delay", "0s", "--workers", "1", "-q"); err != nil {
			return 0, err
		}
		data, err := os.ReadFile(log)
		return strings.Count(string(data), "x"), err
	}
	base, err := loop()
	if err != nil {
		return 0, err
	}
	if err := s.add("item", items); err != nil {
		return 0, err
	}
	all, err := loop()
	if err != nil {
		return 0, err
	}
	if err := s.done(items); err != nil {
		return 0, err
	}
	return round(float64(all-base) / items), nil
}
