package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/mdfile"
)

// spentBy runs a program and gives what it cost with all that it started, what outlived it
// included.
func (s *shop) spentBy(in []byte, args ...string) (c cost, took time.Duration, err error) {
	cmd := s.command(append([]string{s.r.spent}, args...)...)
	cmd.Stdin = bytes.NewReader(in)
	var said bytes.Buffer
	cmd.Stderr = &said
	began := time.Now()
	out, err := cmd.Output()
	took = time.Since(began)
	if err != nil {
		return c, took, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, said.Bytes())
	}
	_, err = fmt.Sscan(string(out), &c.cpu, &c.pages)
	return c, took, err
}

// contextFigures are the tokens that an agent is told without having asked, in a project
// that is made the same each time.
func (r *rig) contextFigures() ([]figure, error) {
	s, err := r.newShop("told")
	if err != nil {
		return nil, err
	}
	memory := filepath.Join(s.home, "memory")
	if err := writeNotes(memory, 500); err != nil {
		return nil, err
	}
	core := "# Core\n\n" + strings.Repeat("The shop sells tea by weight, and rounds prices to whole cents at the end.\n", 20)
	if err := os.WriteFile(filepath.Join(memory, "core.md"), []byte(core), 0o600); err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"log", "add", "Begin"}, {"decide", "Prices are whole cents"}, {"memory", "learn", "The tests need a server on port 4180"}, {"index", "rebuild"}} {
		if _, err := s.run(append([]string{r.reprise}, args...)...); err != nil {
			return nil, err
		}
	}
	told := func(event, session, more string) (int, error) {
		cmd := s.command(r.hook, "claude", event)
		cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"session_id":"5a13438d-5a8e-41c4-808c-00000000000%s","transcript_path":"/x/y.jsonl","cwd":%q,"permission_mode":"default","hook_event_name":%q%s}`, session, s.dir, event, more))
		out, err := cmd.Output()
		if err != nil {
			return 0, fmt.Errorf("%s: %w", event, err)
		}
		if len(bytes.TrimSpace(out)) == 0 {
			return 0, nil
		}
		var answer struct {
			HookSpecificOutput struct{ AdditionalContext string }
		}
		if err := json.Unmarshal(out, &answer); err != nil {
			return 0, fmt.Errorf("%s said %q: %w", event, out, err)
		}
		// Where the measurement is made has another name each time.
		return mdfile.Tokens(strings.ReplaceAll(answer.HookSpecificOutput.AdditionalContext, r.dir, "/measured")), nil
	}
	var out []figure
	for _, m := range []struct{ name, what, event, session, more string }{
		{"start", "a session's start", "SessionStart", "1", `,"source":"startup"`},
		{"prompt", "a prompt that something is remembered about", "UserPromptSubmit", "2", `,"prompt_id":"p1","prompt":"which port does the server of the tests listen on"`},
		{"prompt-nothing", "a prompt that nothing is remembered about", "UserPromptSubmit", "3", `,"prompt_id":"p1","prompt":"paint the bicycle shed green"`},
		{"tool", "before a tool", "PreToolUse", "4", `,"tool_name":"Read","tool_input":{"file_path":"README.md"},"tool_use_id":"t1"`},
	} {
		n, err := told(m.event, m.session, m.more)
		if err != nil {
			return nil, err
		}
		out = append(out, figure{Name: "told." + m.name, What: m.what, Of: "tokens", Value: float64(n), Noise: exact})
	}
	for _, m := range []struct {
		name, what string
		args       []string
	}{{"tools", "the tools of `reprise mcp`", []string{"mcp"}}, {"tools-all", "the same with `--toolsets all`", []string{"mcp", "--toolsets", "all"}}} {
		p, err := startIn(s.dir, s.env, r.reprise, m.args...)
		if err != nil {
			return nil, err
		}
		if err := p.handshake(); err != nil {
			return nil, err
		}
		list, err := p.call("tools/list", map[string]any{})
		if err != nil {
			return nil, err
		}
		if err := p.end(); err != nil {
			return nil, err
		}
		out = append(out, figure{Name: "told." + m.name, What: m.what, Of: "tokens", Value: float64(mdfile.Tokens(string(list))), Noise: exact})
	}
	return out, nil
}

// serverFigures are calls on an open session, runs, and the memory of what stays.
func (r *rig) serverFigures() ([]figure, error) {
	calls, err := r.callFigures()
	if err != nil {
		return nil, err
	}
	spawns, err := r.spawnFigures()
	if err != nil {
		return nil, err
	}
	sizes, err := r.sizeFigures()
	return slices.Concat(calls, spawns, sizes), err
}

// callFigures is a small tool call beside the bare server's, in turn.
func (r *rig) callFigures() ([]figure, error) {
	type server struct {
		path, tool string
		args       []string
		with       map[string]any
	}
	ours, bare := server{r.reprise, "memory_read", []string{"mcp"}, map[string]any{"name": "core"}}, server{r.bare, "echo", nil, map[string]any{"text": "x"}}
	open := func(s server) (*peer, error) {
		p, err := r.start(s.path, s.args...)
		if err == nil {
			err = p.handshake()
		}
		return p, err
	}
	a, err := open(ours)
	if err != nil {
		return nil, err
	}
	b, err := open(bare)
	if err != nil {
		return nil, err
	}
	var clock, base []float64
	for i := range 30*r.n + 1 {
		for _, c := range []struct {
			p    *peer
			s    server
			into *[]float64
		}{{a, ours, &clock}, {b, bare, &base}} {
			began := time.Now()
			if _, err := c.p.tool(c.s.tool, c.s.with); err != nil {
				return nil, err
			}
			if i > 0 {
				*c.into = append(*c.into, float64(time.Since(began)))
			}
		}
	}
	if err := errors.Join(a.end(), b.end()); err != nil {
		return nil, err
	}
	trip := ratioOf("call.clock", "round trip of a tool call (`memory_read`)", "× the bare server's echo", clock, base, noiseClock)
	trip.Seen = ms(time.Duration(middle(clock))) + " to " + ms(time.Duration(middle(base)))
	const many = 300
	each := func(s server) (float64, error) {
		var used [2]cost
		for i, n := range []int{0, many} {
			p, err := open(s)
			if err != nil {
				return 0, err
			}
			for range n {
				if _, err := p.tool(s.tool, s.with); err != nil {
					return 0, err
				}
			}
			if err := p.end(); err != nil {
				return 0, err
			}
			used[i], _ = spent(p.cmd.ProcessState)
		}
		return float64(used[1].cpu-used[0].cpu) / many, nil
	}
	var cpu, theirs []float64
	for range max(1, r.n/3) {
		x, err := each(ours)
		if err != nil {
			return nil, err
		}
		y, err := each(bare)
		if err != nil {
			return nil, err
		}
		cpu, theirs = append(cpu, x), append(theirs, y)
	}
	return []figure{trip, ratioOf("call.processor", "the same, processor time", "× the bare server's echo", cpu, theirs, noiseCPU)}, nil
}

// spawnFigures is what a run costs over its command, by the clock as a tool call and in
// processor time as a command, with its supervisor and whatever else it starts.
func (r *rig) spawnFigures() ([]figure, error) {
	ours, bare, err := r.spawnTimes()
	if err != nil {
		return nil, err
	}
	a, b := median(ours), median(bare)
	clock := newFigure("spawn.clock", "`spawn_agent` of an agent that answers at once", "× the same command bare", round(float64(a)/float64(b)), noiseClock, ms(a-b)+" more")
	s := &shop{r: r, dir: r.dir, env: r.env}
	var run, alone, start []cost
	for i := range r.n + 1 {
		x, _, err := s.spentBy(nil, r.reprise, "spawn", "go")
		if err != nil {
			return nil, err
		}
		y, _, err := s.spentBy([]byte("go\n"), r.agent)
		if err != nil {
			return nil, err
		}
		z, _, err := s.spentBy(nil, r.reprise, "--version")
		if err != nil {
			return nil, err
		}
		if i > 0 {
			run, alone, start = append(run, x), append(alone, y), append(start, z)
		}
	}
	// Program and agent are there without the run, too: what is left is the run's own.
	for i := range start {
		start[i].cpu += alone[i].cpu
		start[i].pages += alone[i].pages
	}
	return append([]figure{clock}, costFigures("spawn", "`reprise spawn` of it, with its supervisor", "× `reprise --version` and the command bare", run, start)...), nil
}

// sizeFigures is the resident memory of processes.
func (r *rig) sizeFigures() ([]figure, error) {
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n"
	s, err := r.newShop("sizes")
	if err != nil {
		return nil, err
	}
	call := hookPayload(s.dir, "PreToolUse", "go test ./...")
	if err := s.planned(s.starts(call, r.hook, "claude", "PreToolUse")); err != nil {
		return nil, err
	}
	size := func(in string, args ...string) (float64, error) {
		var all []float64
		for range max(1, r.n/2) {
			cmd := s.command(append([]string{r.rss}, args...)...)
			cmd.Stdin = strings.NewReader(in)
			out, err := cmd.Output()
			if err != nil {
				return 0, fmt.Errorf("%s: %w", r.rss, err)
			}
			n, err := strconv.Atoi(strings.TrimSpace(string(out)))
			if err != nil {
				return 0, err
			}
			all = append(all, float64(n)/1024)
		}
		return middle(all), nil
	}
	mb := map[string]float64{}
	for _, m := range []struct {
		name, in string
		args     []string
	}{
		{"empty", "", []string{r.empty}}, {"bare", hello, []string{r.bare}}, {"mcp", hello, []string{r.reprise, "mcp"}}, {"version", "", []string{r.reprise, "--version"}},
		{"hook", string(call), []string{r.hook, "claude", "PreToolUse"}},
	} {
		if mb[m.name], err = size(m.in, m.args...); err != nil {
			return nil, err
		}
	}
	whole, _, err := r.supervisorSize()
	if err != nil {
		return nil, err
	}
	of := func(name, what, of string, a, b float64) figure {
		return newFigure(name+".rss", what+", most memory", of, round(a/b), noiseRSS, fmt.Sprintf("%.1f MB to %.1f", a, b))
	}
	return []figure{
		of("mcp", "`reprise mcp` to `tools/list` answered", "× the SDK's bare server", mb["mcp"], mb["bare"]),
		of("hook", "`reprise-hook` before a tool", "× an empty Go program", mb["hook"], mb["empty"]),
		of("version", "`reprise --version`", "× an empty Go program", mb["version"], mb["empty"]),
		of("supervisor", "a run's supervisor", "× an empty Go program", whole, mb["empty"]),
	}, nil
}

// qualityFigures are what script/eval measures on the own set: by the words of questions
// alone, so that they come out the same each time.
func (r *rig) qualityFigures() ([]figure, error) {
	files, err := filepath.Glob("internal/recall/testdata/eval/*.jsonl")
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("the own set is not here: %w", err)
	}
	var out []figure
	for _, split := range []struct{ name, called string }{{"dev", "dev"}, {"held", "held-out"}} {
		cmd := exec.Command("go", append(append([]string{"run", "./script/eval"}, files...), "--split", split.name, "--json")...)
		cmd.Stderr = os.Stderr
		data, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("script/eval: %w", err)
		}
		var rep struct {
			All                             evaluated
			Categories, Languages, Projects map[string]evaluated
		}
		if err := json.Unmarshal(data, &rep); err != nil {
			return nil, err
		}
		out = append(out, rep.All.figures(split.called)...)
		for _, g := range []struct {
			groups map[string]evaluated
			is     string
		}{{rep.Projects, ", "}, {map[string]evaluated{"Japanese": rep.Languages["ja"]}, ", "}, {rep.Categories, ": "}} {
			for _, name := range sortedKeys(g.groups) {
				if split.name == "dev" && g.groups[name].Questions > 0 {
					continue // what was tuned by is shown as a whole
				}
				out = append(out, g.groups[name].figures(split.called+g.is+name)...)
			}
		}
	}
	return out, nil
}

// evaluated are the figures of a group of questions, as script/eval prints them.
type evaluated struct {
	Questions    int
	Recall       map[string]float64
	MRR          float64
	NDCG         float64            `json:"ndcg_10"`
	ServedRecall map[string]float64 `json:"served_recall"`
	WrongNothing float64            `json:"wrong_nothing"`
	None         int                `json:"none_apply"`
	RightNothing float64            `json:"right_nothing"`
	Tokens       float64
}

// figures are one row of a table, whose columns Of names.
func (e evaluated) figures(what string) (out []figure) {
	add := func(of string, v float64) {
		out = append(out, figure{Name: "quality." + what + "." + of, What: what, Of: of, Value: v, Noise: exact})
	}
	add("n", float64(e.Questions))
	if e.Questions > 0 {
		for _, k := range []string{"5", "10", "20"} {
			add("R@"+k, e.Recall[k])
		}
		add("MRR", e.MRR)
		add("nDCG@10", e.NDCG)
		add("served R@10", e.ServedRecall["10"])
		add("wrongly nothing", e.WrongNothing)
	}
	if e.None > 0 {
		add("rightly nothing", e.RightNothing)
		add("of", float64(e.None))
	}
	add("tokens", e.Tokens)
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// goBench runs benchmarks of a package and gives what they reported: by name and unit.
func goBench(pkg, pattern, times string) (map[string]map[string]float64, error) {
	cmd := exec.Command("go", "test", pkg, "-run", "^$", "-bench", pattern, "-benchtime", times, "-timeout", "30m")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the benchmarks %s of %s: %w\n%s", pattern, pkg, err, out)
	}
	all := map[string]map[string]float64{}
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name := f[0]
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i] // the number of processors
			}
		}
		units := map[string]float64{}
		for i := 2; i+1 < len(f); i += 2 {
			if units[f[i+1]], err = strconv.ParseFloat(f[i], 64); err != nil {
				return nil, fmt.Errorf("the benchmark %s says %q: %w", name, s.Text(), err)
			}
		}
		all[name] = units
	}
	return all, nil
}

// reported is one of them, which must be there.
func reported(all map[string]map[string]float64, name, unit string) (float64, error) {
	v, ok := all[name][unit]
	if !ok || v <= 0 {
		return 0, fmt.Errorf("the benchmark %s did not report its %s", name, unit)
	}
	return v, nil
}

// searchKinds are the questions of the benchmarks of package recall.
var searchKinds = []struct{ name, what string }{
	{"rare", "three rare words"}, {"middling", "six middling ones"}, {"common", "six of the hundred commonest"}, {"mixed", "rare, middling and common ones"},
	{"common-small-project", "the commonest, in a project with a hundredth of the documents"}, {"common-private-class", "the commonest, of one class"},
	{"common-as-of", "the commonest, as of a day"}, {"key", "a key"},
}

func (r *rig) searchFigures() (out []figure, err error) {
	for _, size := range []struct{ name, documents, times string }{{"1k", "1,000", "60x"}, {"10k", "10,000", "60x"}, {"100k", "100,000", "40x"}} {
		more, err := searchOf(size.name, size.documents, size.times)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// millionRoom is what the index of a million documents and its making take on the disk, at most.
const millionRoom = 4 << 30

func (r *rig) millionFigures() ([]figure, error) {
	if free, ok := room(os.TempDir()); ok && free < millionRoom {
		return nil, &away{why: fmt.Sprintf("%s has %d MB free, and an index of a million documents may take %d", os.TempDir(), free>>20, millionRoom>>20)}
	}
	return searchOf("1M", "1,000,000", "20x")
}

// searchOf are processor times of a question beside that of plain FTS5, which has the twenty
// best for six of the hundred commonest words of the same index.
func searchOf(size, documents, times string) (out []figure, err error) {
	bench := "BenchmarkRecall" + size
	all, err := goBench("./internal/recall", "^"+bench+"$", times)
	if err != nil {
		return nil, err
	}
	plain, err := reported(all, bench+"/yardstick-common", "cpu-ms")
	if err != nil {
		return nil, err
	}
	for _, k := range searchKinds {
		cpu, err := reported(all, bench+"/"+k.name, "cpu-p50-ms")
		if err != nil {
			return nil, err
		}
		clock := all[bench+"/"+k.name]
		out = append(out, newFigure("search."+size+"."+k.name, documents+" documents: "+k.what, "× plain FTS5's commonest words", round(cpu/plain), noiseCPU,
			fmt.Sprintf("%.1f to %.1f ms of processor; by the clock half within %.1f, 99 of 100 within %.1f", cpu, plain, clock["p50-ms"], clock["p99-ms"])))
	}
	return out, nil
}

// queueFigures are claims by eight processes, beside SQLite and bare renames in the same run.
func (r *rig) queueFigures() ([]figure, error) {
	const workers, items = 8, 2000
	ways := []string{"files", "files, not synced", "sqlite, synced", bareRenames}
	rates, used := map[string][]float64{}, map[string][]float64{}
	twice := 0
	for range max(3, r.n/3) {
		for _, way := range ways {
			rate, cpu, double, err := claimAll(way, workers, items)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", way, err)
			}
			rates[way], used[way] = append(rates[way], rate), append(used[way], float64(cpu)/items)
			twice += double
		}
	}
	var out []figure
	for _, m := range []struct{ name, way, of, called string }{
		{"claims.sqlite", "files", "sqlite, synced", "× those of a SQLite table, each commit synced"}, {"claims.renames", "files", bareRenames, "× bare renames, both directories synced"},
		{"claims.unsynced", "files, not synced", "files", "× the same with waiting for the disk"},
	} {
		what := "claims a second from the queue of files"
		if m.way != "files" {
			what += ", without waiting for the disk"
		}
		f := ratioOf(m.name, what, m.called, rates[m.way], rates[m.of], noiseClock)
		f.Seen = fmt.Sprintf("%.0f to %.0f", middle(rates[m.way]), middle(rates[m.of]))
		out = append(out, f)
	}
	cpu := ratioOf("claims.processor", "processor time of a claim", "× that of the SQLite table's", used["files"], used["sqlite, synced"], noiseCPU)
	cpu.Seen = fmt.Sprintf("%.0f to %.0f µs", middle(used["files"])/1e3, middle(used["sqlite, synced"])/1e3)
	return append(out, cpu, figure{Name: "claims.twice", What: "claimed twice", Of: "counted", Value: float64(twice), Noise: exact}), nil
}

// loopFigures are what the loop adds to an agent.
func (r *rig) loopFigures() ([]figure, error) {
	items, err := r.itemFigures()
	if err != nil {
		return nil, err
	}
	many, err := r.manyRuns()
	if err != nil {
		return nil, err
	}
	empty, err := r.idleShare(10 * time.Second)
	if err != nil {
		return nil, err
	}
	return append(items,
		newFigure("loop.idle", "an idle loop with 8 workers, of a core's time", "%", round(100*empty), 1, ""),
		newFigure("loop.many", "50 items at once, each in a worktree, until all are done", "s by the clock", round(many.whole.Seconds()), noiseClock, fmt.Sprintf("all run after %.1f s", many.all.Seconds())),
		newFigure("loop.many.rss", "the loop meanwhile, resident memory", "MB", round(many.mb), 2*noiseRSS, "")), nil
}

// itemFigures is an item of the loop, with all that is started for it, beside the script
// agent alone: in place and in a worktree.
func (r *rig) itemFigures() ([]figure, error) {
	const items = 10
	var out []figure
	for _, mode := range []struct {
		name, what string
		args       []string
	}{{"item.place", "an item of the loop, in place", []string{"--in-place"}}, {"item.worktree", "an item of the loop, in a worktree", nil}} {
		s, err := r.newShop(mode.name)
		if err != nil {
			return nil, err
		}
		loop := append([]string{r.reprise, "loop", "run", "--agent", "script", "--until-empty", "--delay", "0s", "-q"}, mode.args...)
		var ours, bare []cost
		var clock, base []float64
		rounds := max(1, r.n/4)
		for round := range rounds {
			if err := s.add(fmt.Sprintf("r%d-", round), items); err != nil {
				return nil, err
			}
			all, took, err := s.spentBy(nil, loop...)
			if err != nil {
				return nil, err
			}
			none, idle, err := s.spentBy(nil, loop...) // what it takes to begin and end a loop is not an item's
			if err != nil {
				return nil, err
			}
			ours = append(ours, cost{(all.cpu - none.cpu) / items, (all.pages - none.pages) / items})
			clock = append(clock, float64(took-idle)/items)
			for i := range items {
				b := &shop{r: r, dir: filepath.Dir(s.dir), env: append(slices.Clip(s.env), fmt.Sprintf("REPRISE_RUN_ID=run-bare%d", i))}
				c, took, err := b.spentBy([]byte("say hello"), r.reprise, "script-agent")
				if err != nil {
					return nil, err
				}
				bare, base = append(bare, c), append(base, float64(took))
			}
		}
		if err := s.done(items * rounds); err != nil {
			return nil, err
		}
		more := costFigures(mode.name, mode.what, "× the script agent bare", ours, bare)
		t := ratioOf(mode.name+".clock", mode.what+", by the clock", "× the script agent bare", clock, base, noiseClock)
		t.Seen = fmt.Sprintf("%s to %s", ms(time.Duration(middle(clock))), ms(time.Duration(middle(base))))
		out = append(append(out, t), more...)
	}
	git, err := r.gitOfItem()
	if err != nil {
		return nil, err
	}
	return append(out, figure{Name: "item.git", What: "an item of the loop in a worktree, questions to git", Of: "counted", Value: round(git), Noise: noiseCount}), nil
}

// diskFigures are what reads and writes much: transcripts, single writes, state, places.
func (r *rig) diskFigures() ([]figure, error) {
	out, err := r.importFigures()
	if err != nil {
		return nil, err
	}
	writes, err := r.writeFigures()
	if err != nil {
		return nil, err
	}
	out = append(out, writes...)
	for _, b := range []struct{ name, pkg, bench, times, unit, what, of string }{
		{"state.log", "./internal/staterepo", "BenchmarkLog", "40x", "ratio", "an entry logged and committed", "× the same commit by git's plumbing"},
		{"workspace.create", "./internal/workspace", "BenchmarkCreate", "11x", "times-worktree-add", "a workspace of 200 files", "× `git worktree add` of the same"},
	} {
		all, err := goBench(b.pkg, "^"+b.bench+"$", b.times)
		if err != nil {
			return nil, err
		}
		v, err := reported(all, b.bench, b.unit)
		if err != nil {
			return nil, err
		}
		out = append(out, figure{Name: b.name, What: b.what, Of: b.of, Value: round(v), Noise: noiseClock})
	}
	return out, nil
}

// pageFigures are the dashboard's pages of much beside those of little.
func (r *rig) pageFigures() ([]figure, error) {
	all, err := goBench("./internal/web", "^BenchmarkPages$", "15x")
	if err != nil {
		return nil, err
	}
	var out []figure
	for _, name := range sortedKeys(all) {
		path, ok := strings.CutPrefix(name, "BenchmarkPages/many")
		if !ok {
			continue
		}
		many, err := reported(all, name, "cpu-ms/op")
		if err != nil {
			return nil, err
		}
		few, err := reported(all, "BenchmarkPages/few"+path, "cpu-ms/op")
		if err != nil {
			return nil, err
		}
		out = append(out, newFigure("page."+path, "`"+path+"` of 10,000 events, 5,000 tasks, 500 items and runs, processor time", "× of 100 events and 50 tasks", round(many/few), noiseClock, fmt.Sprintf("%.1f to %.1f ms", many, few)))
	}
	if len(out) == 0 {
		return nil, errors.New("the benchmark of pages reported none")
	}
	return out, nil
}
