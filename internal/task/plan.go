package task

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"reprise/internal/mdfile"
)

// Plan is a plan of implementation taken apart: its phases with their statuses.
type Plan struct {
	file   *mdfile.File
	Phases []Phase
	marks  []edit
}

// Phase is one phase: a heading "### Phase 2: Title [NOT STARTED]" of any level and
// what follows it. The marker may stand in a field Status below the heading, too.
type Phase struct {
	Number    int      `json:"number"`
	Title     string   `json:"title"`
	Status    Status   `json:"status"`
	DependsOn []int    `json:"depends_on,omitempty"` // numbers of phases; empty = none is named
	Files     []string `json:"files,omitempty"`
	Line      int      `json:"line"`
	Text      string   `json:"-"` // what the phase says, heading included
	// Unknown is a marker that is no status, with its brackets: the phase counts as not
	// started.
	Unknown string `json:"unknown_marker,omitempty"`

	from, to int  // bytes of the marker; the end of the heading where there is none
	says     bool // it says what it depends on, be it nothing
}

var phasePatterns = sync.OnceValue(func() (p struct{ heading, marker, atEnd, status, depends, files, number *regexp.Regexp }) {
	p.heading = regexp.MustCompile(`^(?i:phase)\s+(\d+)\s*[:.\-–—]?\s*(.*)$`)
	p.marker = regexp.MustCompile(`\[[A-Za-z][A-Za-z _-]{2,20}\]`)
	p.atEnd = regexp.MustCompile(`\[[A-Z][A-Z _-]{2,20}\][ \t#]*[\r\n]*$`) // other words in brackets are a part of the title
	p.status = regexp.MustCompile(`(?m)^[ \t]*(?:[-*+][ \t]+)?\*\*Status:?\*\*:?[ \t]*(\[[A-Za-z _-]+\])`)
	p.depends = regexp.MustCompile(`(?mi)^[ \t]*(?:[-*+][ \t]+)?\*\*(?:Depends on|Dependencies|Requires):?\*\*:?[ \t]*(.*)$`)
	p.files = regexp.MustCompile(`(?mi)^[ \t]*(?:[-*+][ \t]+)?\*\*(?:Files|Touches)[^*\n]*:?\*\*:?[ \t]*(.*)$`)
	p.number = regexp.MustCompile(`\d{1,4}`)
	return p
})

// maxPhase is the highest number of a phase: as many digits as are read where one phase
// depends on others.
const maxPhase = 9999

// ParsePlan takes a plan apart. The error is [mdfile.ErrNotText], or says which
// number two phases have.
func ParsePlan(data []byte) (*Plan, error) {
	f, err := mdfile.Parse(data)
	if err != nil {
		return nil, err
	}
	p := &Plan{file: f}
	re := phasePatterns()
	all := f.Sections()
	seen := map[int]int{}
	for i, s := range all {
		m := re.heading.FindStringSubmatch(s.Heading)
		if m == nil {
			continue
		}
		end := sectionEnd(all, i, len(data))
		ph := Phase{Title: m[2], Status: NotStarted, Line: s.Line, Text: string(data[s.Start:end])}
		if ph.Number, err = strconv.Atoi(m[1]); err != nil || ph.Number < 1 || ph.Number > maxPhase {
			return nil, fmt.Errorf("%q, line %d: phases have numbers from 1 to %d: give it another one", s.Heading, s.Line, maxPhase)
		}
		if line, twice := seen[ph.Number]; twice {
			return nil, fmt.Errorf("phase %d stands in lines %d and %d: give each phase a number of its own", ph.Number, line, s.Line)
		}
		seen[ph.Number] = s.Line
		p.mark(&ph, data, s, end)
		ph.links()
		p.Phases = append(p.Phases, ph)
	}
	slices.SortStableFunc(p.Phases, func(a, b Phase) int { return cmp.Compare(a.Number, b.Number) })
	return p, nil
}

// mark finds the marker of a phase.
func (p *Plan) mark(ph *Phase, data []byte, s mdfile.Section, end int) {
	re := phasePatterns()
	heading := data[s.Start:s.Text]
	for _, at := range re.marker.FindAllIndex(heading, -1) {
		if status, ok := ParseStatus(string(heading[at[0]:at[1]])); ok {
			ph.Status, ph.from, ph.to = status, s.Start+at[0], s.Start+at[1]
			ph.Title = strings.TrimSpace(strings.Replace(ph.Title, string(heading[at[0]:at[1]]), "", 1))
			return
		}
	}
	if at := re.status.FindSubmatchIndex(data[s.Text:end]); at != nil {
		if status, ok := ParseStatus(string(data[s.Text+at[2] : s.Text+at[3]])); ok {
			ph.Status, ph.from, ph.to = status, s.Text+at[2], s.Text+at[3]
			return
		}
		ph.Unknown = string(data[s.Text+at[2] : s.Text+at[3]])
	}
	if m := re.atEnd.Find(heading); m != nil && ph.Unknown == "" {
		ph.Unknown = strings.TrimRight(string(m), " \t#\r\n")
	}
	ph.from = s.Start + len(strings.TrimRight(string(heading), "\r\n# \t"))
	ph.to = ph.from
}

// links reads what a phase depends on and touches.
func (ph *Phase) links() {
	re := phasePatterns()
	if m := re.depends.FindStringSubmatch(ph.Text); m != nil {
		ph.says = true
		for _, n := range re.number.FindAllString(m[1], -1) {
			if v, _ := strconv.Atoi(n); v != ph.Number && !slices.Contains(ph.DependsOn, v) {
				ph.DependsOn = append(ph.DependsOn, v)
			}
		}
	}
	if m := re.files.FindStringSubmatch(ph.Text); m != nil {
		ph.Files = filesOf(m[1])
	}
}

// Phase is the phase of a number; nil without one.
func (p *Plan) Phase(number int) *Phase {
	for i := range p.Phases {
		if p.Phases[i].Number == number {
			return &p.Phases[i]
		}
	}
	return nil
}

// Next is the first phase that is not complete; nil when all are.
func (p *Plan) Next() *Phase {
	for i := range p.Phases {
		if !p.Phases[i].Status.Ended() {
			return &p.Phases[i]
		}
	}
	return nil
}

// Ready are the phases that can be worked on now, side by side: not ended, and all
// that they depend on complete. A phase that does not say what it depends on comes after
// the one before it.
func (p *Plan) Ready() []*Phase {
	var out []*Phase
	for i := range p.Phases {
		ph := &p.Phases[i]
		ready := !ph.Status.Ended() && (ph.says || i == 0 || p.Phases[i-1].Status.Ended())
		for _, n := range ph.DependsOn {
			if d := p.Phase(n); d == nil || d.Status != Completed {
				ready = false
			}
		}
		if ready {
			out = append(out, ph)
		}
	}
	return out
}

// SetStatus gives a phase another marker.
func (p *Plan) SetStatus(number int, s Status) error {
	ph := p.Phase(number)
	if ph == nil {
		return fmt.Errorf("the plan has no phase %d", number)
	}
	ph.Status = s
	text := s.Marker()
	if ph.from == ph.to {
		text = " " + text
	}
	p.marks = slices.DeleteFunc(p.marks, func(e edit) bool { return e.from == ph.from && e.to == ph.to })
	p.marks = append(p.marks, edit{from: ph.from, to: ph.to, text: text})
	return nil
}

// Bytes is the plan with the markers that were set.
func (p *Plan) Bytes() []byte { return splice(p.file.Bytes(), p.marks) }

// Check finds phases that wait for each other, or for one that is not there.
func (p *Plan) Check() error {
	deps := map[int][]int{}
	for _, ph := range p.Phases {
		deps[ph.Number] = ph.DependsOn
		for _, d := range ph.DependsOn {
			if p.Phase(d) == nil {
				return fmt.Errorf("phase %d depends on phase %d, which the plan does not have", ph.Number, d)
			}
		}
	}
	if c := cycle(deps); c != nil {
		return fmt.Errorf("phases wait for each other: %s", arrows(c))
	}
	return nil
}
