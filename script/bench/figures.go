package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The figures that are kept: what `bench record` writes, `bench compare` looks at and
// documents show between marks that name a part of them.
const (
	figuresFile = "script/bench/figures.json"
	figuresFrom = "<!-- figures of %s: written by `go run ./script/bench record` -->\n"
	figuresTo   = "<!-- end of figures -->\n"
)

// figureDocs are the documents with such marks.
var figureDocs = []string{"docs/benchmarks.md", "docs/recall.md"}

// How much a figure may differ, as a part of it, without meaning anything: what pairs of
// runs differed by on a machine with and without other work on it.
const (
	noiseClock = 0.60
	noiseCPU   = 0.45
	noiseRSS   = 0.15
	noisePages = 0.12
	noiseCount = 0.10
	exact      = 0
)

// figure is one ratio, or one count.
type figure struct {
	Name  string  `json:"name"` // of what is measured, and of what unit
	What  string  `json:"what"`
	Of    string  `json:"of"` // what it is a multiple of, or is counted in
	Value float64 `json:"value"`
	Noise float64 `json:"noise"` // a part of the value; 0 is a figure that comes out the same each time
	// Seen is what the two things were by the clock or in bytes when the figure was taken, for
	// readers; nothing compares it.
	Seen string `json:"seen,omitempty"`
	// Day is when the figure was taken, where that was before the rest of its part was.
	Day string `json:"day,omitempty"`
}

// away is why a part, or what it has of some programs, cannot be measured on this machine:
// what was recorded stays, with its day. Anything else that goes wrong is a failure.
type away struct {
	why      string
	programs []string // whose figures are missing; none is the whole part
}

func (a *away) Error() string { return a.why }

// of reports whether f is a figure of a program that is away: peers.PART.PROGRAM-WAY.COLUMN.
func (a *away) of(f *figure) bool {
	words := strings.Split(f.Name, ".")
	return len(words) > 2 && slices.ContainsFunc(a.programs, func(p string) bool { return words[2] == p || strings.HasPrefix(words[2], p+"-") })
}

// newFigure is a figure of now, seen as what it was by the clock or in bytes.
func newFigure(name, what, of string, value, noise float64, seen string) figure {
	return figure{Name: name, What: what, Of: of, Value: value, Noise: noise, Seen: seen}
}

// steady reports whether other work on the machine leaves the figure as it is.
func (f *figure) steady() bool { return f.Noise <= noisePages }

// section is what is measured together, and when that was.
type section struct {
	Name    string   `json:"name"`
	At      string   `json:"at"` // the day
	Machine string   `json:"machine"`
	Figures []figure `json:"figures"`
}

// kept is the file of figures.
type kept struct {
	V     int       `json:"v"` // 2
	Parts []section `json:"parts"`
}

func (k *kept) part(name string) *section {
	i := slices.IndexFunc(k.Parts, func(p section) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &k.Parts[i]
}

// put has p in the place of the part of its name.
func (k *kept) put(p section) {
	if was := k.part(p.Name); was != nil {
		*was = p
	} else {
		k.Parts = append(k.Parts, p)
	}
}

// measure is how a part comes about.
type measure struct {
	name, what string
	run        func(*rig) ([]figure, error)
}

// measures are all parts, in the order in which they are measured.
var measures = []measure{
	{"programs", "what programs cost that are started again and again", (*rig).programFigures},
	{"context", "what is told to an agent", (*rig).contextFigures},
	{"server", "the MCP server, runs, memory", (*rig).serverFigures},
	{"quality", "what is found on the own set", (*rig).qualityFigures},
	{"search", "what a search costs", (*rig).searchFigures},
	{"million", "the same of a million documents", (*rig).millionFigures},
	{"queue", "claims", (*rig).queueFigures},
	{"loop", "the loop", (*rig).loopFigures},
	{"disk", "transcripts, writes, state", (*rig).diskFigures},
	{"pages", "the dashboard", (*rig).pageFigures},
	{"peers-servers", "servers of others", peerFigures("servers")},
	{"peers-hooks", "hooks of others", peerFigures("hooks")},
	{"peers-search", "what others find", peerFigures("search")},
	{"peers-items", "work items of others", peerFigures("items")},
	{"peers-kill", "what others keep when they are killed", peerFigures("kill")},
}

// chosen are those that are named, by their names or by what these begin with ("peers"), or
// all.
func chosen(only string) ([]measure, error) {
	if only == "" {
		return measures, nil
	}
	var out []measure
	for name := range strings.SplitSeq(only, ",") {
		found := false
		for _, m := range measures {
			if m.name == name || strings.HasPrefix(m.name, name+"-") {
				out, found = append(out, m), true
			}
		}
		if !found {
			var all []string
			for _, m := range measures {
				all = append(all, m.name)
			}
			return nil, fmt.Errorf("-only %s: there is no such part; there are %s", name, strings.Join(all, ", "))
		}
	}
	return out, nil
}

// compareBench is "bench compare" and "bench record": figures beside the kept ones, or in
// their place. Beyond the noise of any of them is an error.
func compareBench(record bool, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	n := flags.Int("n", 11, "how often each program is started")
	only := flags.String("only", "", "just these parts, with commas between")
	tables := flags.Bool("tables", false, "measure nothing: write the documents' tables from the kept figures")
	if err := flags.Parse(args); err != nil {
		return err
	}
	parts, err := chosen(*only)
	if err != nil {
		return err
	}
	was, err := readKept("")
	if err != nil && (*tables || !record || *only != "") {
		return err
	}
	if *tables {
		return writeFigures(was)
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
	all := &comparison{record: record, now: kept{V: 2, Parts: was.Parts}, out: out}
	for _, m := range parts {
		if err := all.one(r, m); err != nil {
			return err
		}
	}
	return all.end()
}

// comparison is what a run of compare or record has come to.
type comparison struct {
	record              bool
	now                 kept
	out                 io.Writer
	wrong, left, failed []string
}

// one measures a part. What was measured is written at once, so that what fails later costs
// nothing of it.
func (c *comparison) one(r *rig, m measure) error {
	began := time.Now()
	p := section{Name: m.name, At: began.UTC().Format(time.DateOnly),
		Machine: fmt.Sprintf("%s %s/%s, %d CPUs, medians of %d, load %s", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), r.n, load())}
	figures, err := m.run(r)
	old := c.now.part(m.name)
	if old == nil {
		old = &section{}
	}
	fmt.Fprintf(c.out, "## %s: %s\n\n", m.name, m.what)
	var gone *away
	if errors.As(err, &gone) {
		c.left = append(c.left, m.name)
		if len(figures) == 0 {
			fmt.Fprintf(c.out, "Not measured here, and left as it was recorded on %s: %s\n\n", cmp.Or(old.At, "no day"), gone.why)
			return nil
		}
		fmt.Fprintf(c.out, "Not measured here, and left as it was recorded: %s. %s\n\n", strings.Join(gone.programs, ", "), gone.why)
		figures = append(figures, old.stay(gone)...)
	} else if err != nil {
		c.failed = append(c.failed, m.name)
		fmt.Fprintf(c.out, "**It failed**: %v\n\n", err)
		return nil
	}
	p.Figures = figures
	text, beyond := compare(old.Figures, p.Figures)
	fmt.Fprintf(c.out, "%s, %.0f s\n\n%s\n", p.Machine, time.Since(began).Seconds(), text)
	c.wrong = append(c.wrong, beyond...)
	if !c.record {
		return nil
	}
	c.now.put(p)
	return writeFigures(c.now)
}

// stay are the figures of programs that are away, with the day when they were taken.
func (p *section) stay(gone *away) (out []figure) {
	for _, f := range p.Figures {
		if gone.of(&f) {
			f.Day = cmp.Or(f.Day, p.At)
			out = append(out, f)
		}
	}
	return out
}

// end says what is left to be looked at, as an error where that is more than words.
func (c *comparison) end() error {
	if len(c.left) > 0 {
		fmt.Fprintf(c.out, "Left as it was recorded, in whole or in part: %s.\n", strings.Join(c.left, ", "))
	}
	var all []string
	if len(c.failed) > 0 {
		all = append(all, "not measured, for something failed: "+strings.Join(c.failed, ", "))
	}
	if !c.record && len(c.wrong) > 0 {
		all = append(all, fmt.Sprintf("beyond the noise: %s; where that is meant, `go run ./script/bench record` on a quiet machine", strings.Join(c.wrong, ", ")))
	}
	if len(all) == 0 {
		return nil
	}
	return errors.New(strings.Join(all, "; "))
}

func readKept(root string) (k kept, err error) {
	data, err := os.ReadFile(filepath.Join(root, figuresFile))
	if err != nil {
		return k, fmt.Errorf("%w (run this from the root of the repository)", err)
	}
	if err := json.Unmarshal(data, &k); err != nil {
		return k, fmt.Errorf("%s: %w", figuresFile, err)
	}
	if k.V != 2 || len(k.Parts) == 0 {
		return kept{}, fmt.Errorf("%s: it has no figures of version 2: `go run ./script/bench record` makes it", figuresFile)
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
			fmt.Fprintf(&b, "| %s | %s | | %s | | | new |\n", f.What, f.Of, digits(f.Value))
			continue
		}
		w := was[i]
		by, verdict := differs(w.Value, f.Value), ""
		if math.IsNaN(by) || math.Abs(by) > w.Noise {
			verdict = "**beyond**"
			beyond = append(beyond, fmt.Sprintf("%s (%+.0f %%)", f.Name, 100*by))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %+.1f %% | %s | %s |\n", f.What, f.Of, digits(w.Value), digits(f.Value), 100*by, noise(w.Noise), verdict)
	}
	for _, w := range was {
		if !slices.ContainsFunc(now, func(f figure) bool { return f.Name == w.Name }) {
			beyond = append(beyond, w.Name+" (not measured)")
		}
	}
	return b.String(), beyond
}

// differs is by what part of was now differs from it.
func differs(was, now float64) float64 {
	if was == now {
		return 0
	}
	return now/was - 1
}

func noise(of float64) string {
	if of == exact {
		return "none"
	}
	return fmt.Sprintf("± %.0f %%", 100*of)
}

// digits writes a figure with as many digits as say something.
func digits(x float64) string {
	if x == math.Trunc(x) && x < 1e6 {
		return strconv.Itoa(int(x))
	}
	if x >= 100 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// table is what a document shows of a part.
func (p *section) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s:\n\n", p.At, p.Machine)
	if p.Name == "quality" || strings.HasPrefix(p.Name, "peers-") {
		p.matrix(&b)
		return b.String()
	}
	seen := slices.ContainsFunc(p.Figures, func(f figure) bool { return f.Seen != "" })
	head := "| what | figure | of | noise |"
	if seen {
		head += " seen then |"
	}
	fmt.Fprintf(&b, "%s\n%s|\n", head, strings.Repeat("|---", strings.Count(head, "|")-1))
	for _, f := range p.Figures {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |", f.What, digits(f.Value), f.Of, noise(f.Noise))
		if seen {
			fmt.Fprintf(&b, " %s |", f.Seen)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// matrix writes figures whose rows are what they are about, and whose columns what they are.
// Where columns have noise, it is the last row.
func (p *section) matrix(b *strings.Builder) {
	var rows, columns []string
	cells, noises, noisy := map[[2]string]string{}, map[string]float64{}, false
	for _, f := range p.Figures {
		row := f.row()
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
		if !slices.Contains(columns, f.Of) {
			columns = append(columns, f.Of)
		}
		cells[[2]string{row, f.Of}] = f.cell(p.Name == "quality")
		noises[f.Of] = max(noises[f.Of], f.Noise)
		noisy = noisy || f.Noise != exact
	}
	fmt.Fprintf(b, "| part | %s |\n|---%s|\n", strings.Join(columns, " | "), strings.Repeat("|---", len(columns)))
	for _, row := range rows {
		fmt.Fprintf(b, "| %s |", row)
		for _, column := range columns {
			fmt.Fprintf(b, " %s |", cells[[2]string{row, column}])
		}
		b.WriteByte('\n')
	}
	if noisy {
		b.WriteString("| noise |")
		for _, column := range columns {
			fmt.Fprintf(b, " %s |", noise(noises[column]))
		}
		b.WriteByte('\n')
	}
}

// row is what a figure is about, with its day where the rest of its part is of a later one.
func (f *figure) row() string {
	if f.Day == "" {
		return f.What
	}
	return f.What + " (of " + f.Day + ")"
}

// cell is a figure in a matrix. Parts of one all have three digits in that of quality, so that
// they can be compared down a column.
func (f *figure) cell(quality bool) string {
	switch {
	case !quality && f.Seen != "":
		return digits(f.Value) + " (" + f.Seen + ")"
	case !quality:
		return digits(f.Value)
	case f.Value > 1 || f.Of == "n" || f.Of == "tokens":
		return strconv.FormatFloat(f.Value, 'f', 0, 64)
	}
	return strconv.FormatFloat(f.Value, 'f', 3, 64)
}

// withFigures is a document with what stands between its marks made anew. used are the
// parts that it shows.
func withFigures(doc string, k kept) (text string, used []string, err error) {
	start, end, _ := strings.Cut(figuresFrom, "%s")
	for {
		before, rest, ok := strings.Cut(doc, start)
		text += before
		if !ok {
			return text, used, nil
		}
		name, _, ok := strings.Cut(rest, end)
		if !ok || strings.Contains(name, "\n") {
			return "", nil, errors.New("a mark that figures begin with is not whole")
		}
		_, after, ok := strings.Cut(rest, figuresTo)
		if !ok {
			return "", nil, fmt.Errorf("the figures of %s have no mark at their end", name)
		}
		if p := k.part(name); p != nil {
			text += fmt.Sprintf(figuresFrom, name) + "\n" + p.table() + "\n" + figuresTo
		} else { // it is recorded by itself
			text += fmt.Sprintf(figuresFrom, name) + "\n" + figuresTo
		}
		used = append(used, name)
		doc = after
	}
}

// writeFigures writes the file, and into each document what it shows of it.
func writeFigures(k kept) error {
	data, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(figuresFile, append(data, '\n'), 0o644); err != nil {
		return err
	}
	for _, name := range figureDocs {
		doc, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		text, _, err := withFigures(string(doc), k)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// ratioOf is the figure of two lists of measurements: the median of one by that of the
// other.
func ratioOf(name, what, of string, ours, theirs []float64, noise float64) figure {
	return figure{Name: name, What: what, Of: of, Value: round(middle(ours) / middle(theirs)), Noise: noise}
}

// middle is a median.
func middle(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}
